"""POST /symbolicate-js: what is fetched from the web, how often, and what becomes of files that are not what they should be."""
import gzip, hashlib, json, os, re, struct, threading, time

from artifacts import (FILES, ID, MAP, ON_FAILURE, SCRIPT, TOLD, Sentry, archive, asked, brief, bundle, conversions, crowd, frame, result, source_map,
                       symbolicate, told, vlq)
from harness import Service, Upstream, equal

SCRAPED = {"/test.min.js": SCRIPT.encode(), "/test.min.js.map": MAP.encode()}


def scraping(sentry, frames, **keys):
    return {**asked(sentry, frames), "scraping": keys}


def attempts(answer):
    return [(a["url"].rpartition("/")[2], a["status"], a.get("reason"), a.get("details")) for a in answer["scraping_attempts"]]


def test_scripts_and_maps_are_scraped_from_the_web(work, objects):
    seen = []

    def packed(handler):
        seen.append(dict(handler.headers))
        handler.reply(200, gzip.compress(SCRIPT.encode()), [("Content-Encoding", "gzip")])

    with Sentry() as up, Upstream({**SCRAPED, "/test.min.js": packed}) as web, Service(work) as s:
        body = scraping(up, [frame(f"{web.url}test.min.js#x")], headers={"X-Mine": "1"}, allowed_origins=["127.0.0.1:*", "127.0.0.1"])
        answer = symbolicate(s, body)
        f = result(answer)
        equal(brief(f), ("onFailure", "test.js", "test", f"{web.url}test.js", 5, 11))
        origin = f["data"]["sourcemap_origin"]["scraped_file"]
        equal((bool(re.fullmatch(re.escape(f"{web.url}test.min.js.map") + "#[0-9]+", origin)), f["data"]["resolved_with"]), (True, "scraping"))
        equal(answer["scraping_attempts"], [{"url": f"{web.url}test.min.js#x", "status": "success"},
                                            {"url": f"{web.url}test.min.js.map", "status": "success"}])
        equal((seen[0]["X-Mine"], seen[0]["User-Agent"].startswith("symloom/")), ("1", True))
        equal(symbolicate(s, body), answer)
        equal((web.hits["/test.min.js"], web.hits["/test.min.js.map"]), (1, 1), "within the hour")
        symbolicate(s, body, query="?scope=other")
        equal(web.hits["/test.min.js"], 2, "each scope has its own")


def test_sourcemap_header_wins_over_the_comment(work, objects):
    """It counts more than the comment, as in browsers, and as long as the script is kept."""
    def headed(*fields):
        return lambda handler: handler.reply(200, SCRIPT.encode(), fields)

    routes = {"/maps/a.map": MAP.encode(), "/new.js": headed(("SourceMap", "/maps/a.map")), "/old.js": headed(("X-SourceMap", "maps/a.map")),
              "/both.js": headed(("X-SourceMap", "no.map"), ("SourceMap", "/maps/a.map"), ("x-sourcemap", "neither.map")),
              "/none.js": headed(("SourceMap", ""))}
    with Sentry() as up, Upstream(routes) as web:
        for _ in range(2):  # the second time from disk
            with Service(work, cache_dir=os.path.join(work, "kept")) as s:
                for name in ("new", "old", "both"):
                    f = result(symbolicate(s, scraping(up, [frame(f"{web.url}{name}.js")])))
                    equal((f["function"], f["data"]["sourcemap"]), ("onFailure", f"{web.url}maps/a.map"), name)
                answer = symbolicate(s, scraping(up, [frame(f"{web.url}none.js")]))
                equal([e["type"] for e in answer["errors"]], ["missing_sourcemap"], "the comment counts")
        equal({path: web.hits[path] for path in ("/new.js", "/old.js", "/both.js")}, {"/new.js": 1, "/old.js": 1, "/both.js": 1})
        assert "/no.map" not in web.hits and "/neither.map" not in web.hits and "/test.min.js.map" in web.hits, web.hits


def test_scraped_files_are_refreshed_every_hour(work, objects):
    with Sentry() as up, Upstream(SCRAPED) as web, Service(work) as s:
        begin = int(time.time())
        origin = result(symbolicate(s, scraping(up, [frame(f"{web.url}test.min.js")])))["data"]["sourcemap_origin"]["scraped_file"]
        url, _, number = origin.partition("#")
        offset = int.from_bytes(hashlib.sha256(url.encode()).digest()[:8], "little") % 3600
        equal(int(number) in [(now - offset) // 3600 * 3600 + offset for now in range(begin, int(time.time()) + 1)], True, number)


def test_refused_scraping_attempts_report_the_reason(work, objects):
    with Sentry() as up, Upstream(SCRAPED) as web, Service(work, {"connect_to_reserved_ips": False}) as s:
        sent = [frame(path, 1, 1) for path in ("app:///a.js", "http://e.x/b.js", "/home/c.js", "http//d", f"{web.url}e.js")]
        answer = symbolicate(s, scraping(up, sent, allowed_origins=["127.0.0.1", "*.f"]))
        equal(attempts(answer), [("a.js", "failure", "invalid_host", "`app` is not an allowed download scheme"),
                                 ("e.js", "failure", "invalid_host", "Can't connect to restricted host 127.0.0.1"),
                                 ("b.js", "failure", "invalid_host", "http://e.x/b.js is not an allowed download origin")])
        equal({e["type"] for e in answer["errors"]}, {"missing_source"})
        equal([a[1:3] for a in attempts(symbolicate(s, scraping(up, [frame("http://10.0.0.1/b.js")])))], [("failure", "download_error")])
        for off in ({"scraping": {"enabled": False}}, {"allow_scraping": False, "scraping": {}}):
            answer = symbolicate(s, {**asked(up, [frame(f"{web.url}test.min.js")]), **off})
            equal((answer["errors"][0]["type"], attempts(answer)), ("scraping_disabled", [("test.min.js", "failure", "disabled", None)]))
        equal(web.hits, {})


def test_redirects_to_origins_not_allowed_are_refused(work, objects):
    def away(handler):
        handler.reply(302, b"", [("Location", f"{other.url}test.min.js")])

    def home(handler):
        handler.reply(302, b"", [("Location", "/test.min.js")])

    with Sentry() as up, Upstream(SCRAPED) as other, Upstream({**SCRAPED, "/home.js": home, "/away.js": away}) as web, Service(work) as s:
        body = scraping(up, [frame(f"{web.url}{name}.js") for name in ("home", "away")], allowed_origins=[web.url])
        answer = symbolicate(s, body)
        equal([f["data"]["symbolicated"] for f in answer["stacktraces"][0]["frames"]], [True, False])
        equal(attempts(answer)[0], ("away.js", "failure", "permission_denied", "redirected to an origin that is not allowed"))
        equal(other.hits, {})
        open_to_all = symbolicate(s, {**body, "scraping": {}}, query="?scope=other")
        equal([f["data"]["symbolicated"] for f in open_to_all["stacktraces"][0]["frames"]], [True, True])


def test_failed_scraping_attempts_report_the_reason(work, objects):
    routes = {"/403.js": 403, "/404.js": 404, "/429.js": 429, "/500.js": 500, "/empty.js": b"", "/latin.js": b"\xe4\n",
              "/large.js": b"x" * 20001, "/broken.js": b"\x1f\x8b\x08\x00broken"}
    with Sentry() as up, Upstream(routes) as web, Service(work, {"max_source_file_size": 20000, "head_timeout": "300ms"}) as s:
        web.routes["/slow.js"] = lambda handler: threading.Event().wait(3)
        answer = symbolicate(s, scraping(up, [frame(f"{web.url}{path[1:]}") for path in web.routes]))
        told_of = {name: (reason, details) for name, _, reason, details in attempts(answer)}
        equal(told_of.pop("broken.js")[0], "other")
        equal(told_of.pop("latin.js")[0], "other")
        equal(told_of, {"403.js": ("permission_denied", "403 Forbidden"), "404.js": ("not_found", None),
                        "429.js": ("download_error", "429 Too Many Requests"), "500.js": ("download_error", "500 Internal Server Error"),
                        "empty.js": ("not_found", None), "large.js": ("other", "Maximum file size exceeded"),
                        "slow.js": ("timeout", "Timeout after 300ms")})
        equal({e["type"] for e in answer["errors"]}, {"missing_source"})
        hits = dict(web.hits)
        again = scraping(up, [frame(f"{web.url}{path[1:]}") for path in web.routes])
        seen = []
        for _ in range(4):  # the host has answered for others meanwhile: what failed before that is asked for once more
            equal(symbolicate(s, again), answer)
            seen.append(dict(web.hits))
        equal(seen[3], seen[2], "errors are remembered")
        for path in ("/404.js", "/large.js", "/latin.js", "/empty.js", "/broken.js"):
            equal(seen[3][path], hits[path], path)
        for path in ("/403.js", "/429.js", "/500.js", "/slow.js"):
            assert seen[3][path] <= 2 * hits[path], (path, seen[3], hits)


def test_the_debug_id_of_a_scraped_script_finds_its_map(work, objects):
    script = SCRIPT.rpartition("\n")[0] + f"\n//# debugId={ID}"
    with Sentry([bundle(1)], {"/1.zip": archive({"map": ("source_map", MAP, {"debug-id": ID})})}) as up, \
            Upstream({"/app.js": script.encode()}) as web, Service(work) as s:
        f = result(symbolicate(s, {**scraping(up, [frame(f"{web.url}app.js")]), "release": None}))
        equal(brief(f), ("onFailure", "test.js", "test", f"{web.url}test.js", 5, 11))
        equal(f["data"], {"sourcemap": f"{web.url}app.js", "resolved_with": "debug-id", "symbolicated": True,
                          "sourcemap_origin": {"bundled": ["sentry://project_debug_file/1", {"source_map": {"debug_id": ID}}]}})
        equal([query for query, _ in up.asked], [f"debug_id={ID}"])


def test_concurrent_first_requests_share_download_and_conversion(work, objects):
    count, gate = 500, threading.Event()

    def slow(handler):
        gate.wait(60)
        handler.reply(200, SCRIPT.encode())

    with Sentry(TOLD, {**FILES, "/test.min.js": slow}) as up, Service(work, {"max_concurrent_requests": 600}) as s:
        answers = crowd(s, asked(up, [frame("http://example.com/test.min.js")]), count, gate)
        equal((len(answers), brief(result(answers[0]))), (1, ON_FAILURE))
        equal((up.hits["/test.min.js"], up.hits["/test.min.js.map"], conversions(s)), (1, 1, [1]))


HOSTILE = {
    "no-end": '{"version":3,"sources":["a"],"names":[],"mappings":"' + "AAAA," * 100000,
    "digits": source_map(mappings="/" * 100000),
    "negative": source_map(mappings="AAAA,DDDDD"),
    "huge": source_map(mappings="A" + "ggggggE" * 3 + ",AAAA"),
    "deep": '{"sections":' * 100000,
    "sections": json.dumps({"sections": [{"offset": {"line": 0, "column": 0}, "url": "self.map"}]}),
    "array": "[" * 100000,
    "text": "\0\1\2",
    "itself": None,  # the script names itself as its map
}


def test_hostile_maps_fail_only_their_own_frames(work, objects):
    files = dict(FILES)
    for name, text in HOSTILE.items():
        files[f"/{name}.js"] = f"f()\n//# sourceMappingURL={name}.{'map' if text else 'js'}"
        if text:
            files[f"/{name}.map"] = text
    with Sentry([told(path.strip("/"), "~" + path) for path in files], files) as up, Service(work) as s:
        sent = [frame(f"http://e.x/{name}.js", 1, 1) for name in HOSTILE] + [frame("http://example.com/test.min.js")]
        answer = symbolicate(s, asked(up, sent))
        equal(brief(result(answer, len(HOSTILE))), ON_FAILURE)
        equal({e["type"] for e in answer["errors"]} <= {"malformed_sourcemap", "invalid_location"}, True, answer["errors"])


def test_map_with_a_million_sources_is_read(work, objects):
    text = json.dumps({"version": 3, "sources": [f"{i}.js" for i in range(10 ** 6)], "names": [], "mappings": f"A{vlq(10 ** 6 - 1)}AA"})
    with Sentry(TOLD, {"/test.min.js": SCRIPT, "/test.min.js.map": text}) as up, Service(work) as s:
        f = result(symbolicate(s, asked(up, [frame("http://example.com/test.min.js", 1, 1)], options={"apply_source_context": False})))
        equal((f["filename"], f["lineno"], f["colno"]), ("999999.js", 1, 1))


def test_map_of_half_a_gigabyte_exceeds_the_conversion_limit(work, objects):
    begin, chunk = b'{"version":3,"sources":["a.js"],"names":[],"mappings":"AAAA', b",CAAC" * 200000
    size = 500 << 20

    def huge(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(size))
        handler.end_headers()
        left = size - handler.wfile.write(begin) - 2
        while left > 0:
            left -= handler.wfile.write(chunk[:left])
        handler.wfile.write(b'"}')

    files = {"/huge.js": "f()\n//# sourceMappingURL=huge.map", "/huge.map": huge, **FILES}
    told_of = [told(path.strip("/"), "~" + path) for path in files]
    with Sentry(told_of, files) as up, Service(work, {"conversion": {"max_memory": "64MiB"}}) as s:
        answer = symbolicate(s, asked(up, [frame("http://e.x/huge.js", 1, 1), frame("http://example.com/test.min.js")]))
        equal((answer["errors"], brief(result(answer, 1))),
              ([{"abs_path": "http://e.x/huge.js", "type": "malformed_sourcemap", "url": "http://e.x/huge.map"}], ON_FAILURE))


def test_sourcemap_reference_with_nul_bytes_is_not_found(work, objects):
    """Zeros end no text: the whole word is the reference, of which no server has a file."""
    files = {"/zeros.js": b"f()\n//# sourceMappingURL=zeros.map" + bytes(9000) + b"x", "/zeros.map": MAP.encode()}
    with Sentry() as up, Upstream(files) as web, Service(work) as s:
        answer = symbolicate(s, scraping(up, [frame(f"{web.url}zeros.js")]))
        equal([e["type"] for e in answer["errors"]], ["missing_sourcemap"])
        assert "/zeros.map" not in web.hits, web.hits


def test_reference_loops_end(work, objects):
    """A map whose source is the map, one whose source is the script, and a script that redirects to itself."""
    texts = {"map": "map.map", "script": "script.js"}
    routes = {"/round.js": lambda handler: handler.reply(302, b"", [("Location", "/round.js")])}
    for name, source in texts.items():
        routes[f"/{name}.js"] = f"f()\n//# sourceMappingURL={name}.map".encode()
        routes[f"/{name}.map"] = source_map(sources=[source], sourcesContent=None, names=[], mappings="AAAA").encode()
    with Sentry() as up, Upstream(routes) as web, Service(work) as s:
        answer = symbolicate(s, scraping(up, [frame(f"{web.url}{name}.js", 1, 1) for name in ("map", "script", "round")]))
        equal([f.get("context_line") for f in answer["stacktraces"][0]["frames"]], [routes["/map.map"].decode(), "f()", None])
        equal([e["type"] for e in answer["errors"]], ["missing_source"])
        equal((web.hits["/map.map"], web.hits["/script.js"]), (1, 1))


def lying(name, size):
    """A bundle with an entry that says it has another size."""
    data = bytearray(archive({"~/test.min.js": ("minified_source", SCRIPT, {}), "~/test.min.js.map": ("source_map", MAP, {})}))
    at = data.find(b"PK\1\2", data.find(name))
    while data[at + 46:at + 46 + len(name)] != name:
        at = data.index(b"PK\1\2", at + 4)
    struct.pack_into("<I", data, at + 24, size)
    return bytes(data)


def test_malformed_bundles_are_treated_as_missing(work, objects):
    for size in (1, 0xFFFFFFF0):
        files = {"/1.zip": lying(b"files/1", size), "/2.zip": b"SYSB\2\0\0\0nothing", "/3.zip": b"no bundle", **FILES}
        with Sentry([bundle(1), bundle(2), bundle(3), bundle(4), *[{**t, "id": "5" + t["id"]} for t in TOLD]], files) as up, Service(work) as s:
            answer = symbolicate(s, asked(up, [frame("http://example.com/test.min.js")]))
            equal((brief(result(answer)), "errors" in answer), (ON_FAILURE, False), "the single file is found behind it")
            equal(result(answer)["data"]["sourcemap_origin"], {"individual_file": "sentry://project_debug_file/52"})


def test_hostile_scripts_are_still_mapped(work, objects):
    texts = {"nest": "(" * 100000, "regex": "/" * 100000, "template": "`${" * 50000, "arrows": "a=>" * 100000, "nul": "\0f(\0)"}
    files = {f"/{name}.js": text + "\n//# sourceMappingURL=all.map" for name, text in texts.items()}
    files["/all.map"] = source_map(mappings="AAAA", sources=["a.js"])
    with Sentry([told(path.strip("/"), "~" + path) for path in files], files) as up, Service(work) as s:
        answer = symbolicate(s, asked(up, [frame(f"http://e.x/{name}.js", 1, 1) for name in texts]))
        equal(("errors" in answer, [f["filename"] for f in answer["stacktraces"][0]["frames"]]), (False, ["a.js"] * len(texts)))
