"""Where requests may make the service connect to, and what never shows."""
import http.server, json, threading

from cloud import openssl
from harness import Service, Upstream, equal, http_source, request

RESTRICTED = {"status": "error", "details": "download failed: destination is restricted"}


def download(service, objects, source):
    body = request(objects.module(), [0], sources=[source], options={"dif_candidates": True})
    status, _, data = service.post("/symbolicate", body)
    equal(status, 200, data)
    rows = json.loads(data)["modules"][0]["candidates"]
    return next(c["download"] for c in rows if "No object" not in c["location"])


def source(url):
    return http_source(url, filters={"filetypes": ["elf_code"]})


def test_reserved_addresses_are_refused_in_any_notation(work, objects):
    """Loopback, private, link-local, shared, mapped, multicast, written in whatever way."""
    hosts = ("127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001", "localhost", "0.0.0.0", "10.0.0.1", "172.16.0.1",
             "172.31.255.255", "192.168.1.1", "169.254.1.1", "100.64.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.1", "224.0.0.1",
             "240.0.0.1", "255.255.255.255", "[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[fd00::1]", "[::ffff:10.0.0.1]",
             "[::ffff:a00:1]", "[64:ff9b::10.0.0.1]", "[2002:a00:1::1]", "[2001:db8::1]", "[ff02::1]")
    with Upstream(objects.layout()) as up, Service(work, {"connect_to_reserved_ips": False, "deny_list_enabled": False}) as s:
        port = up.server_address[1]
        for host in hosts:
            equal(download(s, objects, source(f"http://{host}:{port}/")), RESTRICTED, host)
        for kind in ({"type": "s3", "bucket": "b", "region": ["x", f"http://127.0.0.1:{port}"], "access_key": "a",
                      "secret_key": "s"},):
            got = download(s, objects, {"id": "x", "layout": {"type": "debuginfod"}, "filters": {"filetypes": ["elf_code"]}, **kind})
            equal(got, RESTRICTED, kind["type"])
        equal(up.hits, {})
        assert "connect_to_reserved_ips" in s.logged()  # which key would allow it


def test_metadata_services_are_always_refused(work, objects):
    """Refused whatever the switches say."""
    config = {"connect_to_reserved_ips": True, "allowed_reserved_networks": ["169.254.0.0/16", "fd00::/8"],
              "deny_list_enabled": False, "connect_timeout": "1s", "max_download_timeout": "3s"}
    with Service(work, config) as s:
        for host in ("169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "2852039166",
                     "0xa9.0xfe.0xa9.0xfe", "metadata.google.internal", "METADATA.google.internal."):
            equal(download(s, objects, source(f"http://{host}/")), RESTRICTED, host)


def test_filesystem_sources_in_requests_are_refused(work, objects):
    """A client names no directories here, unless the operator lets it."""
    named = {"type": "filesystem", "id": "x", "path": "/etc"}
    body = request(objects.module(), [0], sources=[named])
    with Service(work) as s:
        status, _, data = s.post("/symbolicate", body)
        equal(status, 422, data)
        assert b"sources[0].type" in data and b"allow_filesystem_sources_in_requests" in data, data
    with Service(work, {"allow_filesystem_sources_in_requests": True}) as s:
        body["sources"] = [{**named, "layout": {"type": "debuginfod"}}]
        equal(s.symbolicate(body)["modules"][0]["debug_status"], "missing")


class Second(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.hits += 1
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_redirects_to_reserved_addresses_are_refused(work, objects):
    """The first hop is allowed, the next one is looked at again."""
    inner = http.server.ThreadingHTTPServer(("127.0.0.2", 0), Second)
    inner.hits = 0
    threading.Thread(target=inner.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        targets = [f"http://{host}:{inner.server_address[1]}/x" for host in ("127.0.0.2", "127.0.0.02", "[::ffff:127.0.0.2]")]
        targets += ["http://169.254.169.254/latest/meta-data/", "http://[::1]/", "//127.0.0.2:%d/" % inner.server_address[1]]
        for target in targets:
            path = f"/{objects.build_id}/executable"
            with Upstream({path: lambda h: h.reply(302, headers=[("Location", target)])}) as up, \
                    Service(work, {"connect_to_reserved_ips": False, "allowed_reserved_networks": ["127.0.0.1/32"]}) as s:
                equal(download(s, objects, source(up.url)), RESTRICTED, target)
                equal(up.hits[path] > 0, True)
        equal(inner.hits, 0)
        path = f"/{objects.build_id}/executable"
        for target in ("file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/"):
            with Upstream({path: lambda h: h.reply(302, headers=[("Location", target)])}) as up, Service(work) as s:
                equal(download(s, objects, source(up.url))["details"], "download failed: URL scheme is not allowed")
    finally:
        inner.shutdown()
        inner.server_close()


def test_no_secret_of_any_source_is_shown(work, objects):
    """Neither in answers nor in logs of the finest level nor in metrics, whether named by a request or configured."""
    secret = "hunter2secret"
    key = openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048").decode()
    inside = key.split("\n")[5]  # a line of the key
    with Upstream({}) as up:
        at = up.url.replace("http://", f"http://user:{secret}@")
        layout = {"layout": {"type": "debuginfod"}}
        port = up.server_address[1]
        sources = [
            {"id": "h", "type": "http", "url": at + f"?sig={secret}", "headers": {"X-Key": secret, "Authorization": secret}, **layout},
            {"id": "s", "type": "s3", "bucket": "b", "region": ["x", f"http://127.0.0.1:{port}"], "access_key": secret + "a",
             "secret_key": secret, "session_token": secret + "t", **layout},
            {"id": "g", "type": "gcs", "bucket": "b", "bearer_token": secret, **layout},
            {"id": "k", "type": "gcs", "bucket": "b", "client_email": "a@b", "private_key": key, **layout},
            {"id": "t", "type": "sentry", "url": up.url + f"list?token={secret}", "token": secret},
            {"id": "c", "type": "sentry", "url": up.url + "list", "cookies": f"session={secret}"},
        ]
        shared = {"shared_cache": {"s3": {"bucket": "b", "endpoint": f"http://127.0.0.1:{port}", "access_key": secret,
                                          "secret_key": secret},
                                   "redis": {"url": f"redis://:{secret}@127.0.0.1:{port}", "password": secret}}}
        fast = {"connect_timeout": "1s", "max_download_timeout": "2s"}
        mozilla = {"mozilla": {"sources": [at + f"?sig={secret}"], "store": {"filesystem_path": work, "extra": [at]}},
                   "cluster": {"node_id": 1, "peers": {2: at}}}
        for config, named in (({**fast, **shared}, sources), ({**fast, **mozilla, "sources": sources}, None)):
            with Service(work, config, args=["--log-level", "trace"]) as s:
                body = request(objects.module(), [0], options={"dif_candidates": True})
                if named:
                    body["sources"] = named
                answers = [s.post("/symbolicate", body)[2].decode(), s.request("GET", "/metrics")[2].decode()]
                v5 = {"memoryMap": [["a.pdb", "0123456789ABCDEF0123456789ABCDEF1"]], "stacks": [[[0, 16]]]}
                answers += [s.post("/symbolicate/v5", v5)[2].decode(), s.request("GET", "/status")[2].decode()]
                answers.append(s.request("GET", "/requests/00000000-0000-4002-8000-000000000000")[2].decode())
                broken = [{**one, "type": "nonsense"} for one in sources]
                answers.append(s.post("/symbolicate", {**body, "sources": broken})[2].decode())
                for text in answers:
                    equal(secret in text or inside in text, False, text[:2000])
            log = s.logged()
            for word in (secret, inside):
                equal(log.find(word), -1, log[max(0, log.find(word) - 300):][:400])
