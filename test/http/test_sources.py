"""Sources that fail, lie or are slow, and what stays behind on disk."""
import json, os, re, signal, socket, threading, time

import dumps
from harness import Service, Upstream, equal, frames, http_source, multipart, request, wait_until


def outcome(service, body, query=""):
    """frame status, debug_status, the candidate's debug and download"""
    answer = service.symbolicate({**body, "options": {"dif_candidates": True}}, query)
    module = answer["modules"][0]
    candidate = next(c for c in module["candidates"] if c["location"].endswith("executable"))
    return frames(answer)[0]["status"], module["debug_status"], candidate.get("debug"), candidate["download"]


def only_executable(url):
    return http_source(url, filters={"filetypes": ["elf_code"]})


def test_download_failures_are_cached_by_kind(work, objects):
    """Each twice: the second answer comes from the cache."""
    path = f"/{objects.build_id}/executable"
    cases = [
        (500, 3, ("missing", "fetching_failed", None,
                  {"status": "error", "details": "download failed: 500 Internal Server Error"})),
        (404, 1, ("missing", "missing", None, {"status": "notfound"})),
        (403, 1, ("missing", "fetching_failed", None, {"status": "noperm", "details": "403 Forbidden"})),
        (b"no object at all" * 100, 1, ("malformed", "malformed", {"status": "malformed"}, {"status": "malformed"})),
    ]
    for route, attempts, expected in cases:
        with Upstream({path: route}) as up, Service(work) as s:
            body = request(objects.module(), [0], sources=[only_executable(up.url)])
            equal(outcome(s, body), expected, route)
            equal(outcome(s, body), expected, f"{route} again")
            equal(up.hits[path], attempts, route)
            equal(s.leftovers(), [])


def test_slow_server_times_out(work, objects):
    gate = threading.Event()
    path = f"/{objects.build_id}/executable"
    with Upstream({path: lambda handler: gate.wait(60)}) as up, Service(work, {"max_download_timeout": "200ms"}) as s:
        body = request(objects.module(), [0], sources=[only_executable(up.url)])
        expected = ("missing", "timeout", None, {"status": "error", "details": "download timed out after 200ms"})
        equal(outcome(s, body), expected)
        equal(outcome(s, body), expected)
        equal(up.hits[path], 1)
        equal(s.leftovers(), [])
        gate.set()


def test_refused_connection_is_a_fetch_failure(work, objects):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/"
        with Service(work) as s:
            status, debug_status, _, download = outcome(s, request(objects.module(), [0], sources=[only_executable(url)]))
            equal((status, debug_status, download["status"]), ("missing", "fetching_failed", "error"))


def test_sources_at_reserved_addresses_are_refused(work, objects):
    with Upstream(objects.layout()) as up, Service(work, {"connect_to_reserved_ips": False}) as s:
        for host in ("127.0.0.1", "localhost", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]", "[::1]"):
            url = up.url.replace("127.0.0.1", host)
            status, debug_status, _, download = outcome(s, request(objects.module(), [0], sources=[only_executable(url)]))
            equal((status, debug_status), ("missing", "fetching_failed"), host)
        equal(up.hits, {})


def test_file_names_are_found_in_any_case(work, objects):
    """Of directories that were copied from a file system that does not tell cases apart; also what comes later."""
    root = os.path.join(work, "store")
    def put(*names):
        path = os.path.join(root, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(objects.full)
    source = {"id": "d", "type": "filesystem", "path": root, "layout": {"type": "symstore", "casing": "insensitive"}, "filters": {"filetypes": ["elf_code"]}}
    wanted = f"shapes/elf-buildid-{objects.build_id}/shapes"
    put("other", "x")
    put("Shapes", "elf-buildid-00", "shapes")  # a directory of that name, where it is not
    with Service(work, {"sources": [source]}) as s:
        equal(s.request("GET", "/proxy/shapes/elf-buildid-11/shapes")[0], 404)
        put("SHAPES", f"Elf-BuildId-{objects.build_id.upper()}", "shapes")
        equal(s.request("GET", "/proxy/" + wanted)[::2], (200, objects.full))
        os.symlink("/etc", os.path.join(root, "Escape"))
        equal(s.request("GET", "/proxy/escape/elf-buildid-00/escape")[0], 404)
        body = request(objects.module(), [0], sources=[http_source("http://localhost/", layout={"type": "native", "casing": "insensitive"})])
        status, _, text = s.post("/symbolicate", body)
        equal((400 <= status < 500, b"only directories" in text), (True, True), (status, text))


def test_cookies_stay_with_the_host_of_the_source(work, objects):
    """Of a source, as its header fields: not for the host of a redirect."""
    sent = []
    def answer(handler, status, *more):
        sent.append(handler.headers["Cookie"])
        handler.reply(status, *more)
    with Upstream({}) as other, Upstream({}) as up:
        path = f"/{objects.build_id}/executable"
        other.routes = {path: lambda h: answer(h, 200, objects.full)}
        up.routes = {path: lambda h: answer(h, 302, b"", [("Location", other.url[:-1].replace("127.0.0.1", "localhost") + path)])}
        source = {**only_executable(up.url), "cookies": "foo=bar; asd=123"}
        with Service(work, {"sources": [source]}) as s:
            equal(outcome(s, request(objects.module(), [objects.address("plain")]))[0], "symbolicated")
            equal(sent, ["foo=bar; asd=123", None])
        equal("foo=bar" in s.logged(), False)


def lying(kind, data):
    def route(handler):
        if kind == "short":  # promises more than it sends
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(data) * 2))
            handler.end_headers()
            handler.wfile.write(data)
            handler.close_connection = True
        elif kind == "loop":
            handler.reply(302, headers=[("Location", handler.path)])
        elif kind == "file":
            handler.reply(302, headers=[("Location", "file:///etc/passwd")])
        elif kind == "gzip":
            handler.reply(200, data, [("Content-Encoding", "gzip")])
        elif kind == "early":
            handler.close_connection = True
    return route


def test_malformed_http_answers_are_fetch_failures(work, objects):
    path = f"/{objects.build_id}/executable"
    for kind in ("short", "loop", "file", "gzip", "early"):
        with Upstream({path: lying(kind, objects.full[:5000])}) as up, Service(work) as s:
            body = request(objects.module(), [0], sources=[only_executable(up.url)])
            status, debug_status, _, download = outcome(s, body)
            assert status in ("missing", "malformed"), (kind, status)
            assert download["status"] in ("error", "malformed"), (kind, download)
            assert "passwd" not in str(download) or kind == "file"
            equal(s.leftovers(), [], kind)


def test_corrupt_objects_never_end_the_service(work, objects):
    """Every kind of damage gives an answer, and the service lives on."""
    path = f"/{objects.build_id}/executable"
    data = objects.full
    damaged = [data[:n] for n in (1, 16, 63, 64, 500, len(data) // 2, len(data) - 100)]
    damaged += [data[:i] + b"\xff" * 64 + data[i + 64:] for i in range(0, len(data) - 64, max(64, len(data) // 40))]
    routes = {}
    with Upstream(routes) as up, Service(work) as s:
        for i, variant in enumerate(damaged):
            routes[f"/{i}{path}"] = variant
            answer = s.symbolicate(request(objects.module(), [objects.address("plain")],
                                           sources=[only_executable(f"{up.url}{i}/")]))
            status = frames(answer)[0]["status"]
            assert status in ("malformed", "missing", "missing_symbol", "symbolicated"), status
        equal(s.leftovers(), [])


def test_equal_requests_share_one_download(work, objects):
    gate = threading.Event()
    path = f"/{objects.build_id}/executable"

    def route(handler):
        gate.wait(60)
        handler.reply(200, objects.full)

    with Upstream({path: route}) as up, Service(work) as s:
        body = request(objects.module(), [objects.address("plain")], sources=[only_executable(up.url)])
        answers = []
        clients = [threading.Thread(target=lambda: answers.append(s.symbolicate(body))) for _ in range(20)]
        for client in clients:
            client.start()
        wait_until("twenty jobs", lambda: re.search(rb'symloom_jobs_running\{task="symbolicate"\} 20\b',
                                                    s.request("GET", "/metrics")[2]))
        gate.set()
        for client in clients:
            client.join()
        equal({frames(a)[0]["function"] for a in answers}, {"plain"})
        equal(up.hits[path], 1)


def test_the_cache_survives_restarts_and_is_shared(work, objects):
    cache = os.path.join(work, "cache")
    with Upstream(objects.layout()) as up:
        body = request(objects.module(), [objects.address("plain")], sources=[http_source(up.url)])
        with Service(work, cache_dir=cache) as a:
            equal(frames(a.symbolicate(body))[0]["function"], "plain")
            hits = dict(up.hits)
            with Service(work, cache_dir=cache) as b:
                equal(frames(b.symbolicate(body))[0]["function"], "plain")
            equal(frames(a.symbolicate(body))[0]["function"], "plain")
        with Service(work, cache_dir=cache) as c:
            equal(frames(c.symbolicate(body))[0]["function"], "plain")
        equal(up.hits, hits)
        # Files that vanish are made again.
        with Service(work, cache_dir=cache) as d:
            for directory, _, files in os.walk(cache):
                for file in files:
                    os.remove(os.path.join(directory, file))
            equal(frames(d.symbolicate(body))[0]["function"], "plain")


def test_service_works_without_cache_dir(work, objects):
    with Upstream(objects.layout()) as up, Service(work, {"cache_dir": None}) as s:
        body = request(objects.module(), [objects.address("plain")], sources=[http_source(up.url)])
        equal(frames(s.symbolicate(body))[0]["function"], "plain")
        equal(frames(s.symbolicate(body))[0]["function"], "plain")


def test_killed_download_is_repeated_after_restart(work, objects):
    cache = os.path.join(work, "cache")
    gate = threading.Event()

    def half(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(objects.full)))
        handler.end_headers()
        handler.wfile.write(objects.full[:1000])
        handler.wfile.flush()
        gate.wait(60)
        handler.close_connection = True

    path = f"/{objects.build_id}/executable"
    routes = {path: half}
    with Upstream(routes) as up:
        body = request(objects.module(), [objects.address("plain")], sources=[only_executable(up.url)])
        s = Service(work, cache_dir=cache)
        equal(s.symbolicate(body, "?timeout=0")["status"], "pending")
        wait_until("the download", lambda: up.hits and s.leftovers())
        s.stop(signal.SIGKILL)
        gate.set()
        routes[path] = objects.full
        with Service(work, cache_dir=cache) as again:
            equal(frames(again.symbolicate(body))[0]["function"], "plain")
            equal(again.leftovers(), [])


def test_thousand_requests_wait_without_threads(work, objects):
    """They wait for one slow server without a thread each, and are all answered."""
    gate = threading.Event()
    count = 1000

    def route(handler):
        gate.wait(60)
        handler.reply(404)

    names = [f"{i:040x}" for i in range(count)]
    paths = {f"/{name}/executable": route for name in names}
    config = {"max_concurrent_requests": None, "max_downloads": 2000, "max_downloads_per_host": 32}
    with Upstream(paths) as up, Service(work, config) as s:
        def body(name):
            return request(objects.module(code_id=name, debug_id=None), [0], sources=[only_executable(up.url)])

        ids = [s.symbolicate(body(name), "?timeout=0")["request_id"] for name in names]
        equal(len(set(ids)), count)
        threads = len(os.listdir(f"/proc/{s.process.pid}/task"))
        assert threads < 64, threads
        equal(s.request("GET", "/healthcheck")[0], 200)
        gate.set()
        for i in ids:
            status, _, answer = s.request("GET", f"/requests/{i}")
            assert status == 200 and b'"status":"missing"' in answer, answer


def test_source_secrets_do_not_reach_log_or_answer(work, objects):
    secret = "hunter2-very-secret"
    seen = {}

    def route(handler):
        seen.update(handler.headers.items())
        handler.reply(403)

    with Upstream({f"/{objects.build_id}/executable": route}) as up, Service(work, args=["--log-level", "trace"]) as s:
        url = up.url.replace("127.0.0.1", f"user:{secret}@127.0.0.1")
        source = {**only_executable(url), "headers": {"X-Api-Key": secret}}
        status, headers, answer = s.post("/symbolicate", request(objects.module(), [0], sources=[source],
                                                                  options={"dif_candidates": True}))
        equal(seen.get("X-Api-Key"), secret)
        assert secret.encode() not in answer, answer
        assert secret not in s.logged(), s.logged()


def test_configured_sources_option_adds_sources_of_the_request(work, objects):
    """With `configured_sources` the sources of a request do not take the place of those of the configuration: these come first."""
    executable, debug = f"/{objects.build_id}/executable", f"/{objects.build_id}/debuginfo"
    with Upstream({debug: objects.debug}) as ours, Upstream({executable: objects.full, debug: objects.debug}) as theirs:
        config = {"sources": [{**http_source(ours.url), "id": "ours"}]}
        with Service(work, config) as s:
            def places(**keys):
                options = {"dif_candidates": True, **keys.pop("options", {})}
                answer = s.symbolicate(request(objects.module(), [objects.address("plain")], options=options, **keys))
                return frames(answer)[0]["status"], {c["source"] for c in answer["modules"][0]["candidates"]}

            both, sources = {"configured_sources": True}, [{**http_source(theirs.url), "id": "theirs"}]
            equal(places(), ("symbolicated", {"ours"}))
            equal(places(sources=sources), ("symbolicated", {"theirs"}))
            equal(places(sources=sources, options=both), ("symbolicated", {"ours", "theirs"}))
            equal(places(sources=[], options=both), ("symbolicated", {"ours"}))
            equal(places(options=both), ("symbolicated", {"ours"}))
            equal(places(sources=sources, options={"configured_sources": False})[1], {"theirs"})


def test_jvm_requests_use_configured_sources(work, objects):
    uuid = "246fb328-fc4e-406a-87ff-fc35f6149d8f"
    symbols = os.path.join(work, "symbols")
    os.makedirs(f"{symbols}/24/6fb328fc4e406a87fffc35f6149d8f")
    with open(f"{symbols}/24/6fb328fc4e406a87fffc35f6149d8f/proguard", "w") as f:
        f.write("com.example.Shop -> a.b:\n    1:1:void com.example.Stock.check(int):7:7 -> c\n")
    body = {"sources": [], "modules": [{"type": "proguard", "uuid": uuid}],
            "stacktraces": [{"frames": [{"module": "a.b", "function": "c", "lineno": 1, "index": 0}]}]}
    with Service(work, {"sources": [{"id": "ours", "type": "filesystem", "path": symbols, "layout": {"type": "unified"}}]}) as s:
        for options, expected in (({}, "a.b"), ({"configured_sources": True}, "com.example.Stock")):
            status, _, answer = s.post("/symbolicate-jvm", {**body, "options": options})
            equal((status, frames(json.loads(answer))[0]["module"]), (200, expected), answer)


def test_crash_files_use_configured_and_sent_sources(work, objects):
    """The form of a crash file has the same option."""
    dump = dumps.Dump(text="Linux 5.10.0 #1 SMP x86_64", version=(0, 0, 0))
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10000000 + objects.address("plain")}, 0x7000, bytes(64)))
    dump.modules.append((0x10000000, 0x10000, "/usr/bin/shapes", dumps.elf(objects.build_id), 0))
    data = dump.crash(7, 11, 0, 69).done()
    with Upstream(objects.layout()) as ours, Upstream(objects.layout()) as theirs:
        with Service(work, {"sources": [{**http_source(ours.url), "id": "ours"}]}) as s:
            for options, expected in (({}, {"theirs"}), ({"configured_sources": True}, {"ours", "theirs"})):
                parts = [("upload_file_minidump", data), ("sources", json.dumps([{**http_source(theirs.url), "id": "theirs"}])),
                         ("options", json.dumps({"dif_candidates": True, **options}))]
                status, _, body = s.request("POST", "/minidump", *multipart(parts))
                answer = json.loads(body)
                equal((status, frames(answer)[0]["function"]), (200, "plain"), answer)
                equal({c["source"] for c in answer["modules"][0]["candidates"]}, expected)
