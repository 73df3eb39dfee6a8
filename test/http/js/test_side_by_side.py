"""POST /symbolicate-js: the files of one request are looked for side by side, and what there is for one of them serves the others."""
import contextlib, json, threading, urllib.parse

from artifacts import MAP, SCRIPT, SOURCE, Sentry, archive, asked, brief, bundle, frame, result, source_map, symbolicate, told
from harness import Service, Upstream, equal

FOUND = ("onFailure", "test.js", "test", "http://example.com/test.js", 5, 11)


def together(*bodies):
    """What answers when all of them were asked for, and not before."""
    barrier = threading.Barrier(len(bodies))

    def served(body):
        def serve(handler):
            with contextlib.suppress(threading.BrokenBarrierError):
                barrier.wait(60)
            handler.reply(500 if barrier.broken else 200, body.encode() if isinstance(body, str) else body)
        return serve
    return [served(body) for body in bodies]


def script(name):
    return SCRIPT.replace("test.min.js.map", f"{name}.map")


def frames_of(answer):
    return answer["stacktraces"][0]["frames"]


def alone(s, body):
    """The answer of the same frames, each of them in a request of its own."""
    answers = [symbolicate(s, {**body, "stacktraces": [{"frames": [f]}]}) for f in body["stacktraces"][0]["frames"]]
    merged = {"status": "completed"}
    for key in ("stacktraces", "raw_stacktraces"):
        merged[key] = [{"frames": [a[key][0]["frames"][0] for a in answers]}]
    for key, order in (("errors", lambda e: (e["abs_path"], e["type"])), ("scraping_attempts", lambda a: a["url"])):
        items = {json.dumps(item): item for a in answers for item in a.get(key, [])}
        if items:
            merged[key] = sorted(items.values(), key=order)
    return merged


def test_scraped_files_are_fetched_concurrently(work, objects):
    routes = {}
    for i, (text, mapping, source) in enumerate(zip(together(*map(script, "ab")), together(*[source_map(sources=[f"{n}.src"], sourcesContent=None) for n in "ab"]),
                                                    together(SOURCE, SOURCE))):
        name = "ab"[i]
        routes |= {f"/{name}.js": text, f"/{name}.map": mapping, f"/{name}.src": source}
    with Sentry() as up, Upstream(routes) as web, Service(work) as s:
        sent = [frame(f"{web.url}{name}.js") for name in ("b", "gone", "a", "b")]
        body = {**asked(up, sent), "scraping": {}}
        answer = symbolicate(s, body)
        equal([f.get("context_line") for f in frames_of(answer)], ["    throw new Error('failed!');", None] + ["    throw new Error('failed!');"] * 2)
        equal([f["abs_path"].rpartition("/")[2] for f in frames_of(answer)], ["b.src", "gone.js", "a.src", "b.src"])
        equal([(a["url"].rpartition("/")[2], a["status"]) for a in answer["scraping_attempts"]],
              [("a.js", "success"), ("a.map", "success"), ("a.src", "success"), ("b.js", "success"), ("b.map", "success"), ("b.src", "success"),
               ("gone.js", "failure")])
        equal({path: web.hits[path] for path in routes}, dict.fromkeys(routes, 1), "each file once")
        equal(answer, alone(s, body))


def test_single_files_are_fetched_concurrently(work, objects):
    scripts, maps = together(*map(script, "ab")), together(MAP, source_map(sources=["b.src"]))
    files = {"/a.js": scripts[0], "/b.js": scripts[1], "/a.map": maps[0], "/b.map": maps[1]}
    with Sentry([told(path[1:], "~" + path) for path in files], files) as up, Service(work) as s:
        body = asked(up, [frame(f"http://example.com/{name}.js") for name in "ab"])
        answer = symbolicate(s, body)
        equal([brief(f) for f in frames_of(answer)], [FOUND, ("onFailure", "b.src", "b", "http://example.com/b.src", 5, 11)])
        equal((up.hits["/lookup"], {path: up.hits[path] for path in files}), (1, dict.fromkeys(files, 1)))
        equal(answer, alone(s, body))


def test_first_bundle_is_opened_before_other_files_are_looked_up(work, objects):
    """What is told of the first file is opened before anybody asks for the others: they may be in it."""
    def tells(query):
        return [bundle(query["url"][0].strip("/"))]

    bundles = [archive({f"~/{name}.js": ("minified_source", script(name), {}), f"~/{name}.map": ("source_map", MAP, {})}) for name in "abc"]
    held = together(*bundles[:2])
    with Sentry(tells, {"/a.zip": held[0], "/b.zip": held[1], "/c.zip": bundles[2]}) as up, Service(work) as s:
        body = asked(up, [frame(f"http://example.com/{name}.js") for name in "abc"])  # of which the last called the others
        answer = symbolicate(s, body)
        equal([brief(f) for f in frames_of(answer)], [FOUND] * 3)
        equal([f["data"]["sourcemap_origin"]["bundled"][0] for f in frames_of(answer)], [f"sentry://project_debug_file/{n}" for n in "abc"])
        equal((up.hits["/lookup"], [up.hits[f"/{n}.zip"] for n in "abc"]), (3, [1, 1, 1]))
        equal(answer, alone(s, body))


def test_bundles_of_one_answer_are_fetched_concurrently(work, objects):
    held = together(archive({"~/a.js": ("minified_source", script("a"), {})}), archive({"~/a.map": ("source_map", MAP, {})}))
    with Sentry([bundle(1), bundle(2)], {"/1.zip": held[0], "/2.zip": held[1]}) as up, Service(work) as s:
        equal(brief(result(symbolicate(s, asked(up, [frame("http://example.com/a.js")])))), FOUND)


def test_one_bundle_serves_all_its_files(work, objects):
    names = [f"chunk{i}" for i in range(40)]
    files = {f"~/{name}.js": ("minified_source", script(name), {}) for name in names} | {f"~/{name}.map": ("source_map", MAP, {}) for name in names}
    with Sentry([bundle(7)], {"/7.zip": archive(files)}) as up, Service(work) as s:
        body = asked(up, [frame(f"http://example.com/{name}.js") for name in names])
        equal([brief(f) for f in frames_of(symbolicate(s, body))], [FOUND] * len(names))
        equal((up.hits["/lookup"], up.hits["/7.zip"]), (1, 1), "one question, one download")
        equal(urllib.parse.parse_qs(up.asked[0][0])["url"], ["/chunk39"], "the outermost frame's")


def test_bundle_of_one_file_serves_other_files(work, objects):
    """Two answers tell of one bundle; it has a file that Sentry tells nothing of."""
    def tells(query):
        return [bundle(9)] if query["url"][0] in ("/b", "/c") else []

    files = {f"~/{name}.js": ("minified_source", script("a"), {}) for name in "bcd"} | {"~/a.map": ("source_map", MAP, {})}
    with Sentry(tells, {"/9.zip": archive(files)}) as up, Service(work) as s:
        answer = symbolicate(s, asked(up, [frame(f"http://example.com/{name}.js") for name in "abcd"]))
        equal([f["data"]["symbolicated"] for f in frames_of(answer)], [False, True, True, True])
        equal(([e["type"] for e in answer["errors"]], up.hits["/9.zip"]), (["scraping_disabled"], 1))


def test_concurrent_downloads_are_limited(work, objects):
    count, lock, full = 40, threading.Lock(), threading.Event()
    seen = {"open": 0, "most": 0}

    def serve(handler):
        with lock:
            seen["open"] += 1
            seen["most"] = max(seen["most"], seen["open"])
            if seen["open"] == 16:
                full.set()
        held = full.wait(60)
        with lock:
            seen["open"] -= 1
        handler.reply(200 if held else 500, b"x()")

    with Sentry() as up, Upstream({f"/{i}.js": serve for i in range(count)}) as web, Service(work) as s:
        answer = symbolicate(s, {**asked(up, [frame(f"{web.url}{i}.js", 1, 1) for i in range(count)]), "scraping": {}})
        equal([f["context_line"] for f in answer["raw_stacktraces"][0]["frames"]], ["x()"] * count)
        equal(seen, {"open": 0, "most": 16})
