"""A configuration that changes while the service runs, and sockets that the service manager holds."""
import hashlib, json, os, re, signal, socket, subprocess, tempfile, threading, time

import harness
from harness import Service, Upstream, equal, http_source, wait_until

KEY = "0123456789abcdef"
AUTH = {"keys": [{"id": "op", "sha256": hashlib.sha256(KEY.encode()).hexdigest(), "rights": ["admin"]}]}
BEARER = {"Authorization": f"Bearer {KEY}"}


def gauge(service, name):
    found = re.search(rf"^symloom_{name} (\S+)$", service.request("GET", "/metrics")[2].decode(), re.M)
    return found and float(found.group(1))


def rewrite(service, **changes):
    path = os.path.join(service.work, "config.yml")
    with open(path) as f:
        config = {**json.load(f), **changes}
    with open(path, "w") as f:
        json.dump(config, f)


def hangup(service, line="configuration reloaded"):
    before = service.logged().count(line)
    service.process.send_signal(signal.SIGHUP)
    wait_until(line, lambda: service.logged().count(line) > before)


def status(service, objects):
    return service.symbolicate(harness.request(objects.module(), [objects.address("plain")]))["modules"][0]["debug_status"]


def test_reload_applies_new_sources_and_limits(work, objects):
    with Upstream(objects.layout()) as up, Service(work, {"sources": [], "auth": AUTH}) as s:
        equal(status(s, objects), "missing")
        rewrite(s, sources=[http_source(up.url, id="later")])
        hangup(s)
        equal(status(s, objects), "found")
        equal(gauge(s, "config_last_reload_successful"), 1)
        rewrite(s, symbolicate_body_max_bytes=10, http={"server_header": False}, max_concurrent_requests=7)
        equal(s.request("POST", "/admin/reload", headers=BEARER)[0], 200)
        answer = s.post("/symbolicate", {"stacktraces": []})
        equal((answer[0], answer[1].get("Server")), (413, None))
        equal(gauge(s, "jobs_limit"), 7)
        rewrite(s, symbolicate_body_max_bytes=1 << 20, sources=[])
        hangup(s)
        equal(s.process.poll(), None)
        equal(status(s, objects), "missing")


def test_invalid_file_keeps_the_old_configuration(work, objects):
    with Upstream(objects.layout()) as up, Service(work, {"sources": [http_source(up.url, id="good")], "auth": AUTH}) as s:
        rewrite(s, sources=[{"id": "x", "type": "nonsense"}], max_downloads="many")
        hangup(s, "invalid configuration")
        equal(status(s, objects), "found")
        equal(gauge(s, "config_last_reload_successful"), 0)
        answer = s.request("POST", "/admin/reload", headers=BEARER)
        equal(answer[0], 400)
        errors = json.loads(answer[2])["errors"]
        equal(any("max_downloads" in e and ":1:" in e for e in errors) and any("sources[0].type" in e for e in errors), True,
              errors)
        equal(s.request("POST", "/admin/reload")[0], 401)
        equal(status(s, objects), "found")


def test_keys_that_need_a_restart_keep_their_values(work, objects):
    with Upstream(objects.layout()) as up, Service(work, {"sources": [http_source(up.url, id="a")]}) as s:
        elsewhere = os.path.join(work, "elsewhere")
        rewrite(s, cache_dir=elsewhere, bind="127.0.0.1:1", shared_cache={"filesystem": {"path": elsewhere}},
                http={"backlog": 7, "unix_group": "root"},
                mozilla={"store": {"filesystem": {"path": elsewhere}}, "redis": {"url": "redis://127.0.0.1:1"}})
        keys = ("cache_dir", "bind", "shared_cache.filesystem.path", "http.backlog", "http.unix_group",
                "mozilla.store.filesystem.path", "mozilla.redis.url")
        for times in (1, 2):  # as long as it is so
            hangup(s)
            second = int(time.time())
            equal(status(s, objects), "found")
            equal(os.path.exists(elsewhere), False)
            for key in keys:
                equal(s.logged().count(f"the old value stays in use key={key}\n"), times, key)
            wait_until("another second, as one has room for ten lines", lambda: int(time.time()) != second)


def test_reload_applies_new_path_prefixes(work, objects):
    with Service(work, {"mozilla": {"sources": []}, "symbfile": {"store_dir": work + "/store"}, "auth": {**AUTH, "require": ["admin"]}}) as s:
        def statuses(*paths):
            return [s.request("POST", path, "{}", {"Content-Type": "application/json"})[0] for path in paths]

        plain, prefixed = ("/symbolicate/v5", "/api/symbols-ranges"), ("/moz/symbolicate/v5", "/sym/api/symbols-ranges")
        before = statuses(*plain, *prefixed)
        equal((404 in before[:2], before[2:]), (False, [404, 404]))
        for mozilla, symbfile, there, gone in (("/moz", "/sym", prefixed, plain), ("", "", plain, prefixed)):
            rewrite(s, mozilla={"sources": [], "path_prefix": mozilla}, symbfile={"store_dir": work + "/store", "path_prefix": symbfile})
            hangup(s)
            equal(statuses(*there, *gone), before)
        assert 'route="/moz/symbolicate/v5"' in s.request("GET", "/metrics")[2].decode()


def test_running_requests_keep_their_configuration(work, objects):
    gate = threading.Event()
    path = f"/{objects.build_id}/debuginfo"

    def slowly(h):
        gate.wait(60)
        h.reply(200, objects.full)

    source = lambda up: http_source(up.url, id="a", filters={"filetypes": ["elf_debug"]})
    with Upstream({path: slowly}) as up, Service(work, {"sources": [source(up)]}) as s:
        body = harness.request(objects.module(), [objects.address("plain")])
        job = s.symbolicate(body, "?timeout=0")["request_id"]
        wait_until("the download", lambda: up.hits)
        for _ in range(5):
            rewrite(s, sources=[], caches={"downloaded": {"retry_misses_after": "1s"}})
            hangup(s)
        gate.set()
        answer = json.loads(s.request("GET", f"/requests/{job}?timeout=30")[2])
        equal(answer["modules"][0]["debug_status"], "found")


def test_repeated_reloads_do_not_disturb_requests(work, objects):
    """A configuration goes with the last request that began with it; requests are asked in between all the time."""
    with Upstream(objects.layout()) as up, Service(work, {"sources": [], "auth": AUTH}) as s:
        stop = threading.Event()
        bad = []

        def ask():
            while not stop.is_set():
                if status(s, objects) not in ("missing", "found"):
                    bad.append(1)

        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        try:
            for i in range(1050):
                if i % 10 == 0:
                    rewrite(s, sources=[http_source(up.url, id=f"source{i}")] if i % 20 else [], max_concurrent_requests=100 + i)
                equal(s.request("POST", "/admin/reload", headers=BEARER)[0], 200)
        finally:
            stop.set()
            for asker in askers:
                asker.join()
        equal(bad, [])
        equal(gauge(s, "jobs_limit"), 100 + 1040)
        equal(s.process.poll(), None)


def test_sockets_of_systemd_survive_the_process(work, objects):
    """What systemd does: the sockets are there before the process and after it."""
    home = tempfile.mkdtemp(dir=work)
    tcp = socket.create_server(("127.0.0.1", 0))
    local = socket.socket(socket.AF_UNIX)
    local.bind(os.path.join(home, "socket"))
    local.listen(5)
    config = os.path.join(home, "config.yml")
    with open(config, "w") as f:
        json.dump({"bind": "systemd", "cache_dir": os.path.join(home, "cache")}, f)

    def start(names, fds, pid=None):
        """The child sets LISTEN_PID to its own number and puts the sockets from descriptor 3 on."""
        script = ("import os, sys\n"
                  f"fds = {[os.dup(fd) for fd in fds]!r}\n"
                  "for i, fd in enumerate(fds): os.dup2(fd, 3 + i, True)\n"
                  f"os.environ.update(LISTEN_PID={pid!r} or str(os.getpid()), LISTEN_FDS=str(len(fds)), "
                  f"LISTEN_FDNAMES={names!r})\n"
                  f"os.execv({harness.SYMLOOM!r}, {[harness.SYMLOOM, 'run', '-c', config]!r})\n")
        inherited = tuple(int(n) for n in re.search(r"fds = \[(.*?)\]", script).group(1).split(",") if n.strip())
        process = subprocess.Popen(["python3", "-c", script], pass_fds=inherited, stderr=subprocess.PIPE, text=True)
        for fd in inherited:
            os.close(fd)
        return process

    def ask(sock):
        connection = harness.Connection(0)
        connection.sock = sock
        connection.request("GET", "/healthcheck", headers={"Connection": "close"})
        return connection.getresponse().read()

    def over_unix():
        s = socket.socket(socket.AF_UNIX)
        s.connect(os.path.join(home, "socket"))
        return s

    high = [os.dup2(s.fileno(), 40 + i) for i, s in enumerate((tcp, local))]
    for _ in range(2):
        process = start("http:unknown", high)
        try:
            equal(ask(socket.create_connection(tcp.getsockname())), b"ok")
            equal(ask(over_unix()), b"ok")
        finally:
            process.send_signal(signal.SIGTERM)
            log = process.communicate(timeout=60)[1]
        equal(process.returncode, 0, log)
        equal(f"Starting HTTP server on 127.0.0.1:{tcp.getsockname()[1]}" in log, True, log)
        equal(os.path.exists(os.path.join(home, "socket")), True)  # the manager's, not ours
    for names, fds, pid, expected in (("http", high, "1", "no sockets were passed"),
                                      ("https:admin", high, None, "no sockets were passed"),
                                      ("http", [os.open("/dev/null", os.O_RDONLY)], None, "not a stream socket")):
        process = start(names, fds, pid)
        log = process.communicate(timeout=60)[1]
        equal((process.returncode, expected in log), (1, True), log)
    for s in (tcp, local):
        s.close()
