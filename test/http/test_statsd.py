"""Metrics that are pushed: names, kinds and tags of what a statsd server gets."""
import os, re, signal, socket, threading

from faults import metric
from harness import DEADLINE, Service, Upstream, equal, http_source, request, wait_until


class Receiver:
    """A statsd server: `until` collects lines until one matches."""

    def __init__(self, path=None):
        self.socket = socket.socket(socket.AF_UNIX if path else socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(path or ("127.0.0.1", 0))
        self.address = f"unix:{path}" if path else f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.socket.settimeout(DEADLINE)
        self.lines, self.longest = [], 0

    def collect(self):
        """What is there now."""
        self.socket.setblocking(False)
        try:
            while True:
                packet = self.socket.recv(65536)
                self.longest = max(self.longest, len(packet))
                self.lines += packet.decode().split("\n")
        except BlockingIOError:
            return self.lines


def test_lines_have_names_kinds_and_tags(work, objects):
    os.environ["SENTRY_ENVIRONMENT"] = "test, really"
    try:
        for path in (None, os.path.join(work, "statsd")):
            server = Receiver(path)
            metrics = {"statsd": server.address, "prefix": "crash", "custom_tags": {"team": "a|b"}, "environment_tag": "env"}
            with Upstream(objects.layout()) as upstream, Service(work, {"metrics": metrics}) as s:
                body = request(objects.module(), [4096], sources=[http_source(upstream.url)])
                s.symbolicate(body)
                s.symbolicate(body)
                s.request("GET", "/healthcheck")
            lines = server.collect()  # the last of them are sent before the service ends
            tags = "env:test__really,team:a_b"
            for line in (f"crash.healthcheck:1|c|#{tags}", f"crash.server.starting:1|c|#{tags}",
                         f"crash.caches.access:2|c|#{tags},cache:symcaches", f"crash.caches.memory.hit:1|c|#{tags},cache:symcaches",
                         f"crash.caches.computation:1|c|#{tags},cache:symcaches", f"crash.requests.max_in_flight:200|g|#{tags}",
                         f"crash.requests.processed:2|c|#{tags},task:symbolicate,outcome:completed",
                         f"crash.responses.status_code:2|c|#{tags},route:/symbolicate,method:POST,status:200"):
                assert line in lines, (line, lines)
            (durations,) = [line for line in lines if line.startswith("crash.requests.duration:") and "route:/symbolicate" in line]
            found = re.fullmatch(r"crash\.requests\.duration:([\d.e+-]+):([\d.e+-]+)\|d\|#.*", durations)
            assert found and 0 < float(found[1]) < 60000, durations
            assert server.longest <= (8192 if path else 1432), server.longest
            server.socket.close()
    finally:
        del os.environ["SENTRY_ENVIRONMENT"]


def test_metrics_are_sent_under_symbolicator_names(work, objects):
    """What another service calls the same thing, with its tags."""
    server = Receiver()
    with Upstream({}) as upstream, Service(work, {"metrics": {"statsd": server.address}, "deny_list_threshold": 1, "sources": [
            http_source(upstream.url, id="s", filters={"filetypes": ["elf_code"]})],
            "shared_cache": {"filesystem": {"path": work + "/shared"}}}) as s:
        upstream.routes.update({"/" + "01" * 20 + "/executable": objects.stripped, "/" + "02" * 20 + "/executable": 500})
        for name in ("01", "02", "03"):
            s.symbolicate(request(objects.module(code_id=name * 20, debug_id=None), [4096]))
        s.request("GET", "/requests/00000000-0000-4000-8000-000000000000")
    lines = server.collect()
    for line in ("symbolication.request_id_unknown:1|c", "service.download.failure:1|c|#source:s", "service.download.blocked:1|c|#source:s",
                 "service.builtin_source.download:1|c|#source:s", "services.shared_cache.fetch:\\d+\\|c\\|#cache:objects,hit:false,status:ok",
                 "symbolication.num_frames:1:1:1\\|d\\|#platform:elf,origin:symbolicate", "symbolication.debug_status:\\d\\|c\\|#status:\\w+",
                 "download_duration:.*\\|d\\|#task_name:source.download.connect,source:s", "requests.accepted:3|c|#task:symbolicate"):
        pattern = re.escape("symbolicator.") + (line if "\\" in line else re.escape(line))
        assert any(re.fullmatch(pattern, got) for got in lines), (line, lines)


def test_hits_in_older_cache_versions_are_tagged(work, objects):
    server, cache = Receiver(), os.path.join(work, "cache")
    with Upstream(objects.layout()) as upstream:
        body = request(objects.module(), [4096], sources=[http_source(upstream.url)])
        with Service(work, {}, cache_dir=cache) as s:
            s.symbolicate(body)
        (current,) = os.listdir(os.path.join(cache, "symcaches"))
        older = int(current[1:]) - 1
        os.rename(os.path.join(cache, "symcaches", current), os.path.join(cache, "symcaches", f"v{older}"))
        with Service(work, {"metrics": {"statsd": server.address}}, cache_dir=cache) as s:
            s.symbolicate(body)
            equal(metric(s, f'symloom_cache_fallbacks_total{{cache="symcaches",version="{older}"}}'), 1)
    lines = server.collect()
    assert f"symbolicator.caches.file.fallback:1|c|#cache:symcaches,version:{older}" in lines, lines


def test_counts_made_while_draining_are_sent(work, objects):
    server, path, answer = Receiver(), f"/{objects.build_id}/executable", threading.Event()

    def late(handler):
        answer.wait(DEADLINE)
        handler.reply(404)

    with Upstream({path: late}) as upstream, Service(work, {"metrics": {"statsd": server.address}}) as s:
        source = http_source(upstream.url, filters={"filetypes": ["elf_code"]})
        job = threading.Thread(target=s.symbolicate, args=(request(objects.module(), [4096], sources=[source]),))
        job.start()
        wait_until("the job", lambda: upstream.hits.get(path))
        s.process.send_signal(signal.SIGTERM)
        wait_until("the drain", lambda: " stopping: waiting " in s.logged())
        answer.set()
        job.join()
        equal(s.process.wait(DEADLINE), 0)
    lines = server.collect()
    assert any(line.startswith("symbolicator.requests.processed:1|c|") for line in lines), lines


def test_statsd_server_variable_and_untagged_mode_work(work, objects):
    server = Receiver()
    os.environ["STATSD_SERVER"] = server.address
    try:
        with Service(work, {"metrics": {"tags": False, "hostname_tag": "host"}}) as s:
            s.request("GET", "/nothing")
    finally:
        del os.environ["STATSD_SERVER"]
    lines = server.collect()
    assert "symbolicator.responses.status_code:1|c" in lines and not any("#" in line for line in lines), lines


def test_unreachable_statsd_delays_no_request(work, objects):
    for address in ("127.0.0.1:1", "nowhere.invalid:8125", "unix:/nowhere"):
        with Service(work, {"metrics": {"statsd": address}}) as s:
            equal(s.request("GET", "/healthcheck")[0], 200)
