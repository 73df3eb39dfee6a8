"""Where the service listens and to whom: listeners of operators, origins of scripts, hosts, and the lines that tell of requests."""
import grp, hashlib, os, re, signal, socket, stat, subprocess

import harness
from harness import DEADLINE, Service, equal, wait_until


def port_of(service, protocol):
    return int(wait_until("the port", lambda: re.search(rf"Starting {protocol} server on 127\.0\.0\.1:(\d+)", service.logged()))[1])


def ask(port, method, path, headers=None):
    connection = harness.Connection(port)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def test_admin_bind_serves_operator_routes_only(work, objects):
    keys = [{"id": "root", "sha256": hashlib.sha256(b"root").hexdigest(), "rights": ["admin"]}]
    with Service(work, {"admin_bind": "127.0.0.1:0", "auth": {"keys": keys}}) as s:
        admin, bearer = port_of(s, "admin"), {"Authorization": "Bearer root"}
        for method, path in (("GET", "/metrics"), ("GET", "/status"), ("POST", "/admin/reload"), ("DELETE", "/admin/cache?source=x")):
            equal((ask(s.port, method, path, bearer)[0], ask(s.port, method, path, bearer)[2]), (404, b""), path)
            assert ask(admin, method, path, bearer)[0] != 404, path
        equal(ask(s.port, "PUT", "/metrics")[0], 404)  # nor is it told that there is such a path
        equal((ask(s.port, "GET", "/healthcheck")[2], ask(admin, "GET", "/healthcheck")[2]), (b"ok", b"ok"))


def test_only_listed_origins_pass_cors(work, objects):
    listed = {"Origin": "https://crashes.example.com"}
    with Service(work, {"http": {"cors": {"origins": [listed["Origin"]]}}}) as s:
        status, headers, _ = ask(s.port, "GET", "/healthcheck", listed)
        equal((status, headers["Access-Control-Allow-Origin"], headers["Vary"]), (200, listed["Origin"], "Origin"))
        status, headers, body = ask(s.port, "OPTIONS", "/symbolicate",
                                    {**listed, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"})
        equal((status, body, headers["Access-Control-Allow-Methods"], headers["Access-Control-Allow-Headers"],
               headers["Access-Control-Max-Age"]), (204, b"", "POST", "content-type", "86400"))
        status, headers, _ = ask(s.port, "GET", "/metrics", {**listed, "Accept-Encoding": "gzip"})
        equal((headers["Content-Encoding"], headers["Vary"]), ("gzip", "Origin, Accept-Encoding"))
        for origin in ("https://elsewhere.example.com", "null", "https://crashes.example.com:8443"):
            status, headers, _ = ask(s.port, "OPTIONS", "/symbolicate", {"Origin": origin, "Access-Control-Request-Method": "POST"})
            equal((status, headers["Access-Control-Allow-Origin"]), (405, None), origin)
    with Service(work, {"mozilla": {"compat": "default"}}) as s:
        equal(ask(s.port, "GET", "/healthcheck", listed)[1]["Access-Control-Allow-Origin"], None)
        equal(ask(s.port, "OPTIONS", "/symbolicate/v5", listed)[1]["Access-Control-Allow-Origin"], "*")
    with Service(work, {"mozilla": {"compat": "default"}, "http": {"cors": {"mozilla_origins": [listed["Origin"]]}}}) as s:
        equal(ask(s.port, "OPTIONS", "/symbolicate/v5", listed)[1]["Access-Control-Allow-Origin"], listed["Origin"])
        equal(ask(s.port, "OPTIONS", "/symbolicate/v5", {"Origin": "https://a.example"})[1]["Access-Control-Allow-Origin"], None)


def test_unlisted_hosts_are_refused(work, objects):
    with Service(work, {"http": {"allowed_hosts": ["symloom.example.com"]}}) as s:
        equal(ask(s.port, "GET", "/healthcheck")[0], 421)
        equal(ask(s.port, "GET", "/healthcheck", {"Host": "symloom.example.com"})[0], 200)
        config = os.path.join(work, "health.yml")  # the command that asks for its health names a host that is
        with open(config, "w") as f:
            f.write(f"bind: 127.0.0.1:{s.port}\nhttp: {{allowed_hosts: [symloom.example.com]}}\n")
        equal(subprocess.run([harness.SYMLOOM, "healthcheck", "-c", config], capture_output=True).stdout, b"OK\n")


def test_loopback_listener_refuses_other_host_names(work, objects):
    """A page whose name resolves to 127.0.0.1 all of a sudden has that name in Host."""
    local = ("localhost", "LOCALHOST:80", "localhost.", "symbols.localhost", "127.0.0.1", "127.8.8.8:3021", "[::1]:3021", "symloom", "x:80")
    others = ("rebound.example.com", "rebound.example.com:3021", "127.0.0.1.example.com", "127.0.0", "10.0.0.1", "[::2]", "[::1")
    with Service(work) as s:
        for host in local:
            equal(ask(s.port, "GET", "/healthcheck", {"Host": host})[0], 200, host)
        for host in others:
            status, _, body = ask(s.port, "GET", "/healthcheck", {"Host": host})
            equal(status, 421, host)
            assert b"http.allowed_hosts" in body and b"http.trusted_proxies" in body, body
        with socket.create_connection(("127.0.0.1", s.port)) as plain:  # HTTP/1.0 needs none, and browsers do not speak it
            plain.sendall(b"GET /healthcheck HTTP/1.0\r\n\r\n")
            assert b" 200 " in plain.recv(4096).split(b"\r\n")[0], "HTTP/1.0"
    elsewhere = {"Host": "rebound.example.com"}
    for config in ({"trusted_proxies": ["127.0.0.1"]}, {"allowed_hosts": [elsewhere["Host"]]}):
        with Service(work, {"http": config}) as s:
            equal(ask(s.port, "GET", "/healthcheck", elsewhere)[0], 200, config)
    with Service(work, {"bind": ["127.0.0.1:0", "0.0.0.0:0"]}) as s:
        everywhere = int(wait_until("the port", lambda: re.search(r"Starting HTTP server on 0\.0\.0\.0:(\d+)", s.logged()))[1])
        equal([ask(port, "GET", "/healthcheck", elsewhere)[0] for port in (s.port, everywhere)], [421, 200])


def test_cross_origin_forms_are_refused(work, objects):
    """Of every family: browsers post these without asking, and only keep the answer from the script."""
    form = "multipart/form-data; boundary=b"
    routes = ("/symbolicate", "/minidump", "/applecrashreport", "/symbolicate-js", "/symbolicate-jvm", "/symbolicate-any", "/page/read",
              "/upload/", "/admin/reload", "/api/symbols-ranges")
    config = {"mozilla": {"compat": "default", "store": {"path": os.path.join(work, "store")}}, "symbfile": {"store_dir": work},
              "http": {"cors": {"origins": ["https://crashes.example.com"]}}}
    with Service(work, config) as s:
        known = [path for path in routes if ask(s.port, "POST", path)[0] not in (404, 405)]
        assert len(known) >= 8, known
        own = f"http://127.0.0.1:{s.port}"
        for path in known:
            for kind in (form, "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "TEXT/PLAIN", None):
                sent = {"Content-Type": kind} if kind else {}
                usual = ask(s.port, "POST", path, sent)[0]
                for origin in ("https://elsewhere.example.com", "null", "http://127.0.0.1", f"http://127.0.0.1:{s.port}0", ""):
                    equal(ask(s.port, "POST", path, {**sent, "Origin": origin, "Sec-Fetch-Site": "cross-site"})[0], 403, (path, kind, origin))
                for headers in ({"Origin": own}, {"Origin": own.replace("http:", "https:")}, {"Origin": "https://crashes.example.com"},
                                {"Origin": "https://behind.example.com", "Sec-Fetch-Site": "same-origin"}):
                    equal(ask(s.port, "POST", path, {**sent, **headers})[0], usual, (path, kind, headers))
        text = ask(s.port, "POST", "/symbolicate", {"Origin": "null"})[2]
        assert b"http.cors.origins" in text, text
        asked = {"Origin": "https://elsewhere.example.com", "Content-Type": "application/json"}
        equal(ask(s.port, "POST", "/symbolicate", asked)[0], ask(s.port, "POST", "/symbolicate", {"Content-Type": "application/json"})[0])
        equal(ask(s.port, "POST", "/symbolicate/v5", {"Origin": "https://profiler.firefox.com", "Content-Type": "text/plain"})[0], 400)
        assert 'symloom_http_refused_total{reason="origin"}' in s.request("GET", "/metrics")[2].decode()
    with Service(work, {"mozilla": {"compat": "default"}, "http": {"cors": {"mozilla_origins": ["https://profiler.firefox.com"]}}}) as s:
        for origin, status in (("https://profiler.firefox.com", 400), ("https://elsewhere.example.com", 403)):
            equal(ask(s.port, "POST", "/symbolicate/v5", {"Origin": origin, "Content-Type": "text/plain"})[0], status)


def test_unix_socket_belongs_to_the_configured_group(work, objects):
    path = os.path.join(work, "socket")
    group = next(g for g in grp.getgrall() if g.gr_gid)
    group = group if os.geteuid() == 0 else grp.getgrgid(os.getegid())
    with Service(work, {"bind": ["127.0.0.1:0", "unix:" + path], "http": {"unix_group": group.gr_name}}) as s:
        found = os.stat(path)
        equal((stat.S_IMODE(found.st_mode), found.st_gid), (0o660, group.gr_gid))
        with socket.socket(socket.AF_UNIX) as plain:
            plain.connect(path)
            plain.sendall(b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            data = b""
            while piece := plain.recv(4096):
                data += piece
        assert data.endswith(b"ok"), data
    assert not os.path.exists(path)


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, errors="replace") as f:
        return f.read().splitlines()


def test_access_log_file_is_reopened_on_reload(work, objects):
    path = os.path.join(work, "access.log")
    with Service(work, {"logging": {"access_file": path}}) as s:
        s.request("GET", "/nothing?secret=s3cr3t", headers={"User-Agent": 'tests/1 "x"', "traceparent": "00-ab-cd-01"})
        s.post("/symbolicate?scope=mine", "{}")
        first, second = wait_until("two lines", lambda: len(lines(path)) == 2 and lines(path))
        assert re.search(r' INFO access: request req=\S+ duration_ms=\S+ client=127\.0\.0\.1 method=GET path=/nothing route=other status=404 '
                         r'bytes_in=0 bytes_out=\d+ user_agent="tests/1 \\"x\\"" traceparent=00-ab-cd-01$', first), first
        assert re.search(r" method=POST path=/symbolicate .* scope=mine job=[0-9a-f-]{36}( |$)", second) and "tls" not in second, second
        assert "/nothing" not in s.logged() and "s3cr3t" not in "".join(lines(path))
        os.rename(path, path + ".1")
        s.process.send_signal(signal.SIGUSR1)
        wait_until("the new file", lambda: os.path.exists(path))
        s.request("GET", "/another")
        wait_until("the line", lambda: any("/another" in line for line in lines(path)))
        equal(len(lines(path + ".1")), 2)


def test_client_address_is_taken_from_trusted_proxies(work, objects):
    """The last address that no proxy of ours has; request ids are believed to proxies."""
    path = os.path.join(work, "access.log")
    cases = [("203.0.113.9, 198.51.100.7, 10.0.0.9", "198.51.100.7"), ("nonsense", "127.0.0.1"), ("10.0.0.1, 10.0.0.2", "10.0.0.1"),
             ("198.51.100.7, nonsense, 10.0.0.9", "10.0.0.9"), ("2001:db8::1", "2001:db8::1")]
    for trusted in (["127.0.0.0/8", "10.0.0.0/8"], []):
        with Service(work, {"logging": {"access_file": path}, "http": {"trusted_proxies": trusted}}) as s:
            for i, (forwarded, client) in enumerate(cases):
                status, headers, _ = s.request("GET", f"/{len(trusted)}-{i}", headers={"X-Forwarded-For": forwarded, "X-Request-Id": f"id.{i}"})
                line, = wait_until("the line", lambda: [line for line in lines(path) if f"path=/{len(trusted)}-{i} " in line])
                equal(re.search(r" client=(\S+)", line)[1], client if trusted else "127.0.0.1", forwarded)
                equal((headers["X-Request-Id"] == f"id.{i}", f"req={headers['X-Request-Id']} " in line), (bool(trusted), True))
            for unfit in ("a b", "x" * 129, "a,b"):
                assert s.request("GET", "/", headers={"X-Request-Id": unfit})[1]["X-Request-Id"] != unfit


def test_access_log_can_use_the_combined_format(work, objects):
    path = os.path.join(work, "access.log")
    with Service(work, {"logging": {"access_file": path, "access_format": "combined"}}) as s:
        s.request("GET", "/nothing?q=1", headers={"User-Agent": 'a "b" \xff', "Referer": "http://x/"})
        (line,) = wait_until("the line", lambda: lines(path))
        assert re.fullmatch(r'127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET /nothing HTTP/1\.1" 404 \d+ '
                            r'"http://x/" "a \\x22b\\x22 \\xff"', line), line


def test_access_log_can_be_limited_to_errors_or_off(work, objects):
    for access in ("errors", "off"):
        with Service(work, {"logging": {"access": access}}) as s:
            s.request("GET", "/nothing")
            s.stop()
            assert "/nothing" not in s.logged(), s.logged()
