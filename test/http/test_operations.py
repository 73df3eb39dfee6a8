"""The service and those who look after it: its metrics, the service manager, and health under load."""
import concurrent.futures, json, os, re, signal, socket, statistics, subprocess, tempfile, threading, time

import harness
from cloud import environment
from harness import Service, Upstream, equal, http_source, nginx, request, wait_until


def metrics(service, accept=None):
    status, headers, body = service.request("GET", "/metrics", headers={"Accept": accept} if accept else None)
    equal(status, 200)
    return headers["content-type"], body.decode()


def value(text, series):
    found = re.search("^" + re.escape(series) + r" (\S+)$", text, re.M)
    return float(found.group(1)) if found else None


def test_metrics_parse_as_prometheus_and_openmetrics(work, objects):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families  # Debian: python3-prometheus-client
    paths = ("/symbolicate", "/symbolicate-js", "/symbolicate-jvm", "/symbolicate-any", "/symbolicate/v5", "/minidump", "/applecrashreport")
    with Upstream({}) as upstream, Upstream(objects.layout()) as good, Service(work, {"deny_list_threshold": 1, "mozilla": {"sources": []}}) as s, \
            concurrent.futures.ThreadPoolExecutor(8) as clients:
        upstream.routes.update({path: 500 for path in objects.layout()})
        found = request(objects.module(), [objects.address("main")], sources=[http_source(good.url)])
        load = [clients.submit(s.post, path, body) for _ in range(20) for path in paths for body in ("{}", json.dumps(found))]
        for path in ("/healthcheck", "/live", "/ready", "/nothing"):
            s.request("GET", path)
        for suffix in ("", "?timeout=0"):
            s.symbolicate(request(objects.module(), [4096], sources=[http_source(upstream.url)]), suffix)
        s.post("/symbolicate", "{")
        s.request("GET", "/requests/00000000-0000-4000-8000-000000000000")
        kind, text = metrics(s)
        equal(kind, "text/plain; version=0.0.4; charset=utf-8")
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        equal((checked.returncode, checked.stderr), (0, ""), checked.stdout)
        kind, text = metrics(s, "application/openmetrics-text; version=1.0.0")
        equal(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        families = {family.name: family for family in text_string_to_metric_families(text)}
        equal(families["symloom_http_connections"].type, "gauge")
        equal(families["symloom_http_requests"].type, "counter")
        for family in families.values():
            for sample in family.samples:
                assert sample.value == 0 or abs(sample.value) > 1e-300, sample  # the bits of a number are none
        names = {sample.name for family in families.values() for sample in family.samples}
        plain = set(re.findall(r"^(\w+)[ {]", metrics(s)[1], re.M))
        equal(names - plain, set())  # both formats call a series the same; some may have come meanwhile
        for asked in load:
            asked.result()
        names = {sample.name for family in text_string_to_metric_families(metrics(s, "application/openmetrics-text; version=1.0.0")[1])
                 for sample in family.samples}
        equal(names ^ set(re.findall(r"^(\w+)[ {]", metrics(s)[1], re.M)), set())


def test_health_checks_are_counted_once(work, objects):
    with Service(work) as s:
        for _ in range(5):
            s.request("GET", "/healthcheck")
        for _ in range(3):
            metrics(s)  # is none
        equal(value(metrics(s)[1], "symloom_healthchecks_total"), 5)
        s.request("GET", "/live")
        s.request("GET", "/ready")
        equal(value(metrics(s)[1], "symloom_healthchecks_total"), 7)


def test_blocked_hosts_are_released_after_the_block_time(work, objects):
    settings = {"deny_list_threshold": 1, "deny_list_block_time": "2s", "caches": {"downloaded": {"retry_misses_after": "0s"}}}
    with Upstream({}) as upstream, Service(work, settings) as s:
        upstream.routes.update({path: 500 for path in objects.layout()})
        s.symbolicate(request(objects.module(), [4096], sources=[http_source(upstream.url)]))
        equal(value(metrics(s)[1], "symloom_blocked_hosts"), 1)
        wait_until("the end of the block", lambda: value(metrics(s)[1], "symloom_blocked_hosts") == 0)


class Manager:
    """The socket of a service manager, for the processes that are started meanwhile."""

    def __init__(self, work, **environment):
        path = os.path.join(tempfile.mkdtemp(dir=work), "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.environment = {"NOTIFY_SOCKET": path, **environment}

    def told(self, last):
        """What was told, in order, until it is this."""
        self.socket.settimeout(harness.DEADLINE)
        states = []
        while last not in states:
            states += self.socket.recv(4096).decode().split("\n")
        return states

    def silent_for(self, seconds):
        """Whether nothing is told, apart from what lies there already."""
        self.socket.setblocking(False)
        try:
            while True:
                self.socket.recv(4096)
        except BlockingIOError:
            self.socket.settimeout(seconds)
        try:
            self.socket.recv(4096)
            return False
        except socket.timeout:
            return True

    def __enter__(self):
        os.environ.update(self.environment)
        return self

    def __exit__(self, *_):
        for name in self.environment:
            del os.environ[name]
        self.socket.close()


def test_systemd_is_notified_of_state_and_watchdog(work, objects):
    with Manager(work, WATCHDOG_USEC="300000") as manager, Service(work) as s:
        equal(manager.told("READY=1"), ["READY=1"])
        for state in ("WATCHDOG=1", "STATUS=0/200 jobs, 0 connections", "WATCHDOG=1", "WATCHDOG=1"):
            manager.told(state)
        s.process.send_signal(signal.SIGHUP)
        reloading = manager.told("RELOADING=1")
        assert re.fullmatch(r"MONOTONIC_USEC=\d+", reloading[-1]), reloading
        manager.told("READY=1")
        s.process.send_signal(signal.SIGSTOP)  # a loop that stands still says nothing
        with open(f"/proc/{s.process.pid}/stat") as stat:
            wait_until("the stop", lambda: stat.seek(0) == 0 and stat.read().rsplit(")", 1)[1].split()[0] == "T")
        silent = manager.silent_for(1)
        s.process.send_signal(signal.SIGCONT)
        equal(silent, True)
        manager.told("WATCHDOG=1")
        s.process.send_signal(signal.SIGTERM)
        manager.told("STOPPING=1")
        s.process.wait(harness.DEADLINE)  # a second signal would end it at once


def test_watchdog_of_another_process_is_not_fed(work, objects):
    for environment in ({"WATCHDOG_PID": "1", "WATCHDOG_USEC": "3000"}, {"WATCHDOG_USEC": "often"}, {}):
        with Manager(work, **environment) as manager:
            with Service(work) as s:
                for _ in range(20):
                    s.request("GET", "/healthcheck")
            equal([state for state in manager.told("STOPPING=1") if state.startswith("WATCHDOG")], [])


def test_health_is_answered_during_a_large_download(work, objects):
    root = tempfile.mkdtemp(dir=work)
    for name in objects.layout():
        os.makedirs(root + os.path.dirname(name), exist_ok=True)
        with open(root + name, "wb") as f:
            f.truncate(200 << 20)
    with nginx(work, root) as url, Service(work) as s:
        body = request(objects.module(), [4096], sources=[http_source(url)])
        client = threading.Thread(target=s.symbolicate, args=(body,))
        client.start()
        took = []
        while client.is_alive() or not took:
            start = time.monotonic()
            equal(s.request("GET", "/healthcheck")[0], 200)
            took.append(time.monotonic() - start)
        client.join()
        assert statistics.median(took) < 0.25, sorted(took)[-5:]
        assert value(metrics(s)[1], 'symloom_download_bytes_total{source="custom"}') >= 200 << 20


def test_addresses_below_their_module_are_counted(work, objects):
    with Upstream(objects.layout()) as upstream, Service(work) as s:
        s.symbolicate(request(objects.module(), [4096, 0], sources=[http_source(upstream.url)]))  # the call before 0
        equal(value(metrics(s)[1], "symloom_address_underflow_total"), 1)


def test_forms_are_read_without_cache_dir_and_tmpdir(work, objects):
    """They come into files, and the directory that the environment names takes none."""
    part = b'--b\r\nContent-Disposition: form-data; name="upload_file_minidump"; filename="d"\r\n\r\nnothing\r\n--b--\r\n'
    with environment(TMPDIR=os.path.join(work, "missing")), Service(work, {"cache_dir": ...}) as s:
        status, _, body = s.request("POST", "/minidump", part, {"Content-Type": "multipart/form-data; boundary=b"})
        equal((status, json.loads(body)["status"]), (200, "failed"))
        assert re.search(r"cannot create temporary files in \S+missing \(No such file or directory\); using /tmp instead", s.logged()), s.logged()
