"""Who may ask for what: groups of routes, rights, scopes, and the brake on guessing."""
import base64, datetime, hashlib, json

import faults
from harness import Service, Upstream, equal, frames, http_source, request
from test_cluster import Gate, held, nodes, poll, shared

KEY = "s3cr3t-of-the-tests"
EMPTY = {"stacktraces": [], "modules": []}


def key(name, *rights, **more):
    return {"id": name, "sha256": hashlib.sha256((KEY + name).encode()).hexdigest(), "rights": list(rights), **more}


def bearer(name):
    return {"Authorization": "Bearer " + KEY + name}


ROUTES = [  # group, right, method, path, status for who may
    ("symbolicate", "symbolicate", "POST", "/symbolicate", 200),
    ("symbolicate", "symbolicate", "GET", "/requests/nothing", 404),
    ("proxy", "proxy", "GET", "/proxy/a/b/a", 404),
    ("metrics", "metrics", "GET", "/metrics", 200),
]


def ask(service, method, path, headers=None):
    body = "{}" if method == "POST" else None
    kind = {"Content-Type": "application/json"} if body else {}
    return service.request(method, path, body, {**kind, **(headers or {})})


def test_each_group_needs_its_right(work, objects):
    groups = ["symbolicate", "mozilla", "proxy", "symcache", "symbols", "metrics", "status", "page", "admin", "downloads"]
    keys = [key(right, right) for right in ("symbolicate", "proxy", "metrics")]
    with Service(work, {"auth": {"require": groups, "keys": keys}}) as service:
        for _, right, method, path, status in ROUTES:
            answered, headers, body = ask(service, method, path)
            equal((answered, body), (401, b'{"detail":"authentication required"}'), path)
            offered = 'Bearer realm="symloom"' + (', Basic realm="symloom"' if right == "metrics" else "")
            equal(headers["WWW-Authenticate"], offered, path)
            equal(ask(service, method, path, bearer("nobody"))[0], 401, path)
            other = "proxy" if right != "proxy" else "metrics"
            equal(ask(service, method, path, bearer(other))[::2], (403, b'{"detail":"not allowed"}'), path)
            equal(ask(service, method, path, {"Authorization": f"Bearer :{KEY}{right}"})[0], 401, path) # the secret of no key
            basic = base64.b64encode(f"{right}:{KEY}{right}".encode()).decode()
            for form in (bearer(right), {"X-Api-Key": KEY + right}, {"Authorization": f"Bearer {right}:{KEY}{right}"},
                         {"Authorization": "Basic " + basic}, {"Authorization": "APIKey " + basic}):
                equal(ask(service, method, path, form)[0], status, (path, form))
        for path in ("/healthcheck", "/live", "/ready"):
            equal(ask(service, "GET", path)[0], 200, path)
        equal(ask(service, "OPTIONS", "/symbolicate")[0], 405)
        equal(ask(service, "GET", "/nothing")[0], 404)


def test_every_route_of_a_required_group_needs_a_key(work, objects):
    """Every group alone, with everything configured that has routes: those of the group ask for a key, and no others do but the
    administration's, which always does."""
    of_group = {
        "symbolicate": ["POST /symbolicate", "POST /symbolicate-js", "POST /symbolicate-jvm", "POST /symbolicate-any", "POST /symbolicate-text", "POST /minidump",
                        "POST /applecrashreport", "POST /page/named", "GET /requests/nothing"],
        "mozilla": ["POST /symbolicate/v4", "POST /symbolicate/v5", "POST /source/v1", "POST /asm/v1"],
        "proxy": ["GET /proxy/a/b/a", "HEAD /proxy/a/b/a"],
        "symcache": ["GET /v3.2.0/ntdll.pdb/A7D6F1BB18CD4CB48A7D6F1BB18CD4CB/1"],
        "symbols": ["POST /api/symbols-ranges", "POST /api/symbols-returnpads", "GET /api/symbols/0", "DELETE /api/symbols/0"],
        "metrics": ["GET /metrics"],
        "page": ["GET /", "GET /page/about.json", "GET /page/example.json", "GET /page/status.js"],
        "admin": ["POST /admin/reload", "DELETE /admin/cache", "DELETE /admin/blocked-hosts"],
        "downloads": ["GET /a.pdb/A7D6F1BB18CD4CB48A7D6F1BB18CD4CB4/a.sym", "GET /try/a.pdb/A7D6F1BB18CD4CB48A7D6F1BB18CD4CB4/a.sym",
                      "GET /api/syminfo/a.pdb/A7D6F1BB18CD4CB48A7D6F1BB18CD4CB4"],
    }
    everything = {"symbfile": {"store_dir": work + "/symbols"}, "mozilla": {"compat": "profiler", "sources": [], "store": {"filesystem": {"path": work + "/store"}}},
                  "ms_symcache": {"transcoders": [{"version": "3.2.0", "command": ["false"]}]}}
    for group in of_group:
        with Service(work, {**everything, "auth": {"require": [group], "keys": [key("a", "admin", "symbols:read", "symbols:delete")]}}) as service:
            for other, routes in of_group.items():
                for method, path in map(str.split, routes):
                    status = ask(service, method, path)[0]
                    equal(status == 401, other in (group, "admin"), (group, method, path, status))
    with Service(work, {**everything, "auth": {"require": ["status"], "keys": [key("a", "status")]}}) as service:
        tells = [set(json.loads(ask(service, "GET", "/status", headers)[2])) for headers in ({}, bearer("a"))]
        assert tells[0] < tells[1], tells


def test_authentication_comes_before_query_type_and_length(work, objects):
    with Service(work, {"auth": {"require": ["symbolicate"]}}) as service:
        equal(service.request("POST", "/symbolicate?timeout=x", "{}", {"Content-Type": "text/plain"})[0], 401)
        equal(service.request("POST", "/symbolicate", None, {"Content-Length": "99999999999"})[0], 401)


def test_groups_that_are_not_listed_are_open(work, objects):
    with Service(work, {"auth": {"require": ["proxy"], "keys": [key("a", "proxy")]}}) as service:
        for group, _, method, path, status in ROUTES:
            equal(ask(service, method, path)[0], 401 if group == "proxy" else status, path)


def test_keys_are_limited_to_their_scopes(work, objects):
    keys = [key("one", "symbolicate", "proxy", scopes=["one", "two"]), key("all", "symbolicate", "proxy"),
            key("none", "symbolicate", scopes=[]), key("global", "symbolicate", "proxy", scopes=["global"])]
    with Service(work, {"auth": {"require": ["symbolicate", "proxy"], "keys": keys}}) as service:
        for name, query, status in (("one", "?scope=one", 200), ("one", "?scope=two", 200), ("one", "?scope=three", 403),
                                    ("one", "", 403), ("one", "?scope=One", 403), ("all", "?scope=three", 200),
                                    ("all", "", 200), ("none", "?scope=one", 403), ("none", "", 403), ("global", "", 200),
                                    ("global", "?scope=global", 200), ("one", "?scope=one&scope=three", 400)):
            equal(service.post("/symbolicate" + query, EMPTY, bearer(name))[0], status, (name, query))
        equal(ask(service, "GET", "/proxy/a/b/a", bearer("one"))[0], 403)
        equal(ask(service, "GET", "/proxy/a/b/a", bearer("global"))[0], 404)
        equal(ask(service, "GET", "/requests/x", bearer("one"))[0], 404)  # names no scope


def test_scoped_key_fills_no_shared_cache(work, objects):
    """Whoever names a public source says what its files are for every scope."""
    keys = [key("held", "symbolicate", scopes=["one"]), key("free", "symbolicate")]
    with Upstream(objects.layout()) as upstream, \
            Service(work, {"auth": {"require": ["symbolicate"], "keys": keys}, "sources": [http_source(upstream.url, is_public=True)]}) as service:
        public, private = (json.dumps([http_source(upstream.url, id="mine", is_public=is_public)]) for is_public in (True, False))
        def form(part, sources):
            rows = [("sources", sources, "application/json"), (part, "x", "application/octet-stream")]
            return b"".join(f'--b\r\nContent-Disposition: form-data; name="{name}"\r\nContent-Type: {kind}\r\n\r\n{text}\r\n'.encode()
                            for name, text, kind in rows) + b"--b--\r\n"

        def posts(sources):
            of_json = {"/symbolicate": {"stacktraces": [], "modules": []},
                       "/symbolicate-jvm": {"platform": "java", "exceptions": [], "stacktraces": [], "modules": []},
                       "/symbolicate-any": {"symbolicate": {"type": "minidump", "storage_url": upstream.url + "nothing"}}}
            for path, body in of_json.items():
                yield path, json.dumps({**body, "sources": json.loads(sources)}), "application/json"
            for path, part in (("/minidump", "upload_file_minidump"), ("/applecrashreport", "apple_crash_report")):
                yield path, form(part, sources), "multipart/form-data; boundary=b"

        for sources, name, status in ((public, "held", 403), (private, "held", 200), (public, "free", 200)):
            for path, body, kind in posts(sources):
                answered, _, text = service.request("POST", path + "?scope=one", body, {"Content-Type": kind, **bearer(name)})
                equal(answered, status, (path, name, text))
                if status == 403:
                    equal(text, b'{"detail":"not allowed"}', path)
        answer = service.post("/symbolicate?scope=one", request(objects.module(), [objects.address("plain")]), bearer("held"))
        equal(frames(json.loads(answer[2]))[0]["status"], "symbolicated")  # the operator's may be public


def test_jobs_are_visible_only_to_their_key(work, objects):
    keys = {"require": ["symbolicate"], "keys": [key("one", "symbolicate"), key("two", "symbolicate")]}
    gate = Gate(objects)
    body = request(objects.module(), [objects.address("plain")])
    one, two = nodes(work, 2, auth=keys)
    with Upstream(gate.routes) as upstream, Service(work, one) as a, Service(work, two) as b:
        body["sources"] = [http_source(upstream.url, filters={"filetypes": ["elf_code"]})]
        job = json.loads(a.post("/symbolicate?timeout=0", body, bearer("one"))[2])["request_id"]
        for node in (a, b):
            equal(poll(node, job, "?timeout=0", bearer("two"))[0], 404)
            equal(poll(node, job, "?timeout=0", bearer("one"))[1]["status"], "pending")
        gate.open.set()
        equal(poll(a, job, "?timeout=30", bearer("one"))[1]["status"], "completed")
        for node in (a, b):
            equal((poll(node, job, "", bearer("two"))[0], poll(node, job, "", bearer("one"))[0]), (404, 200))


def test_results_in_redis_are_visible_only_to_their_key(work, objects):
    keys = {"require": ["symbolicate"], "keys": [key("one", "symbolicate"), key("two", "symbolicate")]}
    gate = Gate(objects)
    with faults.Redis(work) as server, Upstream(gate.routes) as upstream, Service(work, {**shared(server, 1), "auth": keys}) as a, \
            Service(work, {**shared(server, 2), "auth": keys}) as b:
        body = request(objects.module(), [objects.address("plain")], sources=[http_source(upstream.url, filters={"filetypes": ["elf_code"]})])
        job = json.loads(a.post("/symbolicate?timeout=0", body, bearer("one"))[2])["request_id"]
        equal(held(server, f"{job}@{hashlib.sha256(b'one').hexdigest()[:16]}"), "P1")
        equal((poll(b, job, "?timeout=0", bearer("one"))[1]["status"], poll(b, job, "?timeout=0", bearer("two"))[0]), ("pending", 404))
        gate.open.set()
        equal(poll(b, job, "?timeout=30", bearer("one"))[1]["status"], "completed")
        equal(poll(b, job, "?timeout=0", bearer("two"))[0], 404)


def test_key_guessing_is_rate_limited(work, objects):
    config = {"auth": {"require": ["symbolicate", "symbols"], "keys": [key("a", "symbolicate")]},
              "http": {"trusted_proxies": ["127.0.0.1"]}, "symbfile": {"store_dir": work + "/store"}}
    with Service(work, config) as service:
        def post(client, headers):
            return service.post("/symbolicate", EMPTY, {"X-Forwarded-For": client, **headers})

        for _ in range(30):  # without a key nobody guesses
            equal(post("198.51.100.1", {})[0], 401)
        for n in range(19):
            equal(post("198.51.100.1", bearer(f"guess{n}"))[0], 401)
        equal(post("198.51.100.1", bearer("a"))[0], 200)
        equal(post("198.51.100.1", bearer("last"))[0], 401)
        for secret in ("more", "guess1"):
            status, answered, body = post("198.51.100.1", bearer(secret))
            equal((status, body), (429, b'{"detail":"too many wrong keys"}'))
            equal(answered["Retry-After"], "60")
        equal([post("198.51.100.1", headers)[0] for headers in (bearer("a"), {})], [200, 401])  # others behind the same proxy
        equal(post("198.51.100.2", bearer("a"))[0], 200)
        equal(service.request("GET", "/healthcheck", headers={"X-Forwarded-For": "198.51.100.1"})[0], 200)
        for n in range(20):  # a network of 64 bits is one address
            equal(post(f"2001:db8:1:2::{n}", bearer("guess"))[0], 401)
        equal([post("2001:db8:1:2:ffff::1", bearer(secret))[0] for secret in ("guess", "a")], [429, 200])
        equal(post("2001:db8:1:3::1", bearer("a"))[0], 200)
        upload = {"Authorization": "APIKey " + base64.b64encode(b"a:wrong").decode(), "X-Forwarded-For": "198.51.100.3",
                  "FileID": "0" * 32}
        for _ in range(20):
            equal(service.request("POST", "/api/symbols-ranges", b"x", upload)[0], 401)
        equal(service.request("POST", "/api/symbols-ranges", b"x", upload)[0], 429)
        right = {**upload, "Authorization": "APIKey " + base64.b64encode(b"a:" + KEY.encode() + b"a").decode()}
        equal(service.request("POST", "/api/symbols-ranges", b"x", right)[0], 403)  # known, without the right to upload


def test_known_key_id_is_rate_limited_on_its_own(work, objects):
    """A client with an old secret hides not what is wrong with others at its address."""
    config = {"auth": {"require": ["symbolicate"], "keys": [key("a", "symbolicate"), key("b", "symbolicate")]}}
    with Service(work, config) as service:
        def wrong(name):
            return ask(service, "POST", "/symbolicate", {"Authorization": f"Bearer {name}:old"})[0]
        equal([wrong("a") for _ in range(21)], [401] * 20 + [429])
        equal((wrong("b"), wrong("nobody")), (401, 401))
        equal([wrong(f"nobody{n}") for n in range(20)], [401] * 19 + [429])  # ids that are not known are one


def test_log_names_the_refused_key_and_the_reason(work, objects):
    past, soon = (str(datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days=n)) for n in (-2, 3))
    keys = [key("old", "metrics", expires=past), key("soon", "metrics", expires=soon), key("far", "proxy", expires="2999-01-01")]
    tokens = [{"key": "t0ken", "email": "a@b", "permissions": ["upload_symbols"], "expires_at": past}]
    with Service(work, {"auth": {"require": ["metrics"], "keys": keys}, "mozilla": {"tokens": tokens}}) as s:
        statuses = [ask(s, "GET", "/metrics", headers)[0] for headers in
                    (bearer("old"), bearer("soon"), bearer("far"), bearer("x"), {"Authorization": "Bearer old:x"}, {"Authorization": "x"}, {})]
        equal(statuses, [401, 200, 403, 401, 401, 401, 401])
        s.stop()
        log = s.logged()
        said = [line for line in log.splitlines() if "path=/metrics" in line]
        for line, parts in zip(said, ([" key_id=old", 'refused="expired key"'], [" key_id=soon"],
                                      [" key_id=far", 'refused="the key does not have the required right"'], ['refused="wrong key"'],
                                      [" key_id=old", 'refused="wrong key"'], ['refused="malformed key"'], ['refused="no key"'])):
            assert all(part in line for part in parts), (parts, line)
            equal(("key_id" in line, "refused" in line), (any("key_id" in p for p in parts), any("refused" in p for p in parts)))
        assert "auth.keys[0].expires: it has expired and is no longer accepted" in log, log
        assert "auth.keys[1].expires: it expires in " in log and "auth.keys[2].expires" not in log, log
        assert "mozilla.tokens[0].expires_at: it has expired" in log, log
        assert KEY not in log and "t0ken" not in log, log
