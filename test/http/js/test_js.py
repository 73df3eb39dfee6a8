"""POST /symbolicate-js: frames of scripts, by artifacts and bundles of Sentry."""
import json, os, threading, urllib.parse

from artifacts import (FILES, ID, MAP, MAPPINGS, ON_FAILURE, SCRIPT, SOURCE, TOLD, Sentry, archive, asked, brief, bundle, data_url, frame, result,
                       source_map, symbolicate, told, vlq)
from faults import small_disk
from harness import Service, equal, wait_until


def test_minified_stack_is_mapped_to_source(work, objects):
    with Sentry(TOLD, FILES) as up, Service(work) as s:
        sent = [frame("http://example.com/index.html", 6, 7, function="produceStack", in_app=True, platform="javascript"),
                frame("http://example.com/test.min.js", 1, 183, function="i"),
                frame("async http://example.com/test.min.js", 1, 136, function="r"),
                frame("http://example.com/test.min.js", 1, 64, function="e")]
        answer = symbolicate(s, asked(up, sent))
        equal(list(answer), ["status", "stacktraces", "raw_stacktraces", "errors", "scraping_attempts"])
        frames, raw = answer["stacktraces"][0]["frames"], answer["raw_stacktraces"][0]["frames"]
        equal(frames[0], {"platform": "javascript", "function": "produceStack", "abs_path": "http://example.com/index.html", "lineno": 6,
                          "colno": 7, "data": {"symbolicated": False}})
        data = {"sourcemap": "http://example.com/test.min.js.map",
                "sourcemap_origin": {"individual_file": "sentry://project_debug_file/2"}, "resolved_with": "release", "symbolicated": True}
        lines = SOURCE.split("\n")
        equal(frames[1], {"function": "test", "filename": "test.js", "module": "test", "abs_path": "http://example.com/test.js", "lineno": 20,
                          "colno": 5, "pre_context": lines[14:19], "context_line": "    invoke(data);", "post_context": lines[20:24],
                          "data": data})
        equal(list(frames[1]), ["function", "filename", "module", "abs_path", "lineno", "colno", "pre_context", "context_line",
                                "post_context", "data"])
        equal(list(frames[1]["data"]), ["sourcemap", "sourcemap_origin", "resolved_with", "symbolicated"])
        equal(brief(frames[2]), ("invoke", "test.js", "test", "http://example.com/test.js", 15, 5))
        equal(brief(frames[3]), ON_FAILURE)
        equal((len(frames[3]["pre_context"]), frames[3]["context_line"], len(frames[3]["post_context"])),
              (4, "    throw new Error('failed!');", 5))
        equal((raw[0], raw[2]["abs_path"]), (frames[0], "http://example.com/test.min.js"))
        equal(raw[1]["context_line"], '{snip} row new Error("failed!")}function r(r){var i=null;if(r.failed){i=e}else{i=n}i(r)}function i(){'
              'var n={failed:true,value:42};r(n)}return i}();')
        equal((raw[1]["post_context"], "pre_context" in raw[1], raw[1]["data"]),
              (["//# sourceMappingURL=test.min.js.map"], False, {"symbolicated": False}))
        equal(answer["errors"], [{"abs_path": "http://example.com/index.html", "type": "scraping_disabled"}])
        equal(answer["scraping_attempts"],
              [{"url": "http://example.com/index.html", "status": "failure", "reason": "disabled"},
               {"url": "http://example.com/test.min.js", "status": "not_attempted"},
               {"url": "http://example.com/test.min.js.map", "status": "not_attempted"}])
        again = symbolicate(s, asked(up, sent[::-1], options={"frame_order": "caller_first"}))
        equal(again["stacktraces"][0]["frames"], frames[::-1])
        equal((up.hits["/test.min.js"], up.hits["/test.min.js.map"]), (1, 1), "the second time from the cache")


def test_sentry_lookup_sends_all_query_parameters(work, objects):
    with Sentry(TOLD, FILES) as up, Service(work) as s:
        body = asked(up, [frame("http://example.com/a b/x.min.js?v=1#f")], dist="d&1", source=up.source(url=f"{up.url}lookup?a=b"))
        body["modules"] = [{"type": "sourcemap", "code_file": "http://example.com/a b/x.min.js?v=1#f", "debug_id": ID}]
        symbolicate(s, body)
        query, headers = up.asked[0]
        equal(urllib.parse.parse_qsl(query),
              [("a", "b"), ("release", "release"), ("url", "/a b/x"), ("dist", "d&1"), ("debug_id", ID)])
        equal((headers["Authorization"], headers["Accept-Encoding"]), ("Bearer t0ken", "identity"))
        before = len(up.asked)
        symbolicate(s, body)
        equal(len(up.asked), before, "answers are remembered")
        symbolicate(s, {**body, "source": {"id": "x", "url": f"{up.url}lookup", "cookies": "a=1"}})
        equal(up.asked[-1][1]["Cookie"], "a=1")
        before = len(up.asked)
        symbolicate(s, asked(up, [frame("http://example.com/other.js")], release=None))
        equal(len(up.asked), before, "without a release and a debug id there is no question")


def test_malformed_lookup_answers_are_ignored(work, objects):
    odd = [{"type": "magic", "id": "1", "url": "{url}x"}, {"type": "file", "id": 7, "url": "{url}x", "abs_path": "~/test.min.js"},
           {"type": "file", "id": "8", "url": "relative", "abs_path": "~/test.min.js"}, {"type": "file", "id": "9", "url": "{url}x"}, 5, None]
    with Sentry([], FILES) as up, Service(work, {"cache_dir": ...}) as s:
        for answer in (401, 500, "{", "{}", "[{]", []):
            up.tells = answer
            equal(symbolicate(s, asked(up, [frame("http://example.com/test.min.js")]))["errors"],
                  [{"abs_path": "http://example.com/test.min.js", "type": "scraping_disabled"}])
        equal("a Sentry symbol source rejects the configured credentials" in s.logged(), True)
        up.tells = odd + TOLD
        answer = symbolicate(s, asked(up, [frame("http://example.com/test.min.js")]))
        equal((brief(result(answer)), "errors" in answer), (ON_FAILURE, False), "what does not fit is left out")
        up.tells = [{**t, "resolved_with": "magic"} for t in TOLD]
        equal(result(symbolicate(s, asked(up, [frame("http://example.com/test.min.js")])))["data"]["resolved_with"], "unknown")


def test_token_is_sent_to_the_sentry_host_only(work, objects):
    with Sentry([], FILES) as other, Sentry([], {"/lookup/test.min.js": SCRIPT}) as up, Service(work) as s:
        up.tells = [told(1, "~/test.min.js", "lookup/test.min.js"), {**told(2, "~/test.min.js.map"), "url": f"{other.url}test.min.js.map"}]
        equal(brief(result(symbolicate(s, asked(up, [frame("http://example.com/test.min.js")])))), ON_FAILURE)
        equal([headers.get("Authorization") for _, headers in up.got], ["Bearer t0ken"])
        equal([headers.get("Authorization") for _, headers in other.got], [None])


def test_bundle_files_are_found_by_debug_id(work, objects):
    files = archive({"script": ("minified_source", SCRIPT, {"Debug-Id": ID}), "map": ("source_map", MAP, {"debug-id": ID})})
    other = archive({"script": ("source", "wrong", {"debug-id": ID})})
    with Sentry([bundle(1), bundle(2)], {"/1.zip": files, "/2.zip": other}) as up, \
            Service(work, {"js": {"used_artifact_bundles": True}}) as s:
        body = asked(up, [frame("/any/where.js")], modules=[{"type": "sourcemap", "code_file": "/any/where.js", "debug_id": ID.upper()}])
        answer = symbolicate(s, body)
        equal(brief(result(answer)), ("onFailure", "test.js", None, "/any/test.js", 5, 11))
        equal(result(answer)["data"],
              {"sourcemap": "/any/test.min.js.map",
               "sourcemap_origin": {"bundled": ["sentry://project_debug_file/1",
                                                {"source_map": {"abs_path": "/any/test.min.js.map", "debug_id": ID}}]},
               "resolved_with": "debug-id", "symbolicated": True})
        equal((answer["used_artifact_bundles"], answer["scraping_attempts"]),
              (["1"], [{"url": "/any/test.min.js.map", "status": "not_attempted"}, {"url": "/any/where.js", "status": "not_attempted"}]))
        equal(symbolicate(s, body), answer)
        equal((up.hits["/1.zip"], up.hits["/2.zip"]), (1, 1))


def test_bundle_files_are_found_by_url(work, objects):
    wrong, right = (archive({"~/test.min.js": ("minified_source", text, {"Sourcemap": "test.min.js.map"}),
                             "~/test.min.js.map": ("source_map", source_map(sources=[name]), {})})
                    for text, name in ((SCRIPT, "wrong.js"), (SCRIPT, "test.js")))
    exact = archive({"http://example.com/test.min.js": (None, SCRIPT, {"x-sourcemap": "other.map"}),
                     "~/other.map": ("source_map", source_map(sources=["exact.js"]), {})})
    frames = [frame("http://example.com/test.min.js")]
    with Sentry([bundle(10), bundle(2)], {"/10.zip": wrong, "/2.zip": right, "/1.zip": exact}) as up, Service(work) as s:
        equal(brief(result(symbolicate(s, asked(up, frames)))), ON_FAILURE, "the greatest URI wins")
        up.tells = [bundle(1, resolved_with="index"), bundle(2)]
        answer = symbolicate(s, asked(up, frames, release="other"))
        equal((result(answer)["filename"], result(answer)["data"]["resolved_with"], result(answer)["data"]["sourcemap_origin"]),
              ("exact.js", "index", {"bundled": ["sentry://project_debug_file/1",
                                                 {"source_map": {"abs_path": "http://example.com/other.map"}}]}))


def test_next_js_script_of_type_source_is_used(work, objects):
    files = archive({"~/_next/server/pages/_error.js": ("source", SCRIPT, {}), "~/_next/server/pages/test.min.js.map": ("source_map", MAP, {})})
    with Sentry([bundle(1)], {"/1.zip": files}) as up, Service(work) as s:
        f = result(symbolicate(s, asked(up, [frame("app:///_next/server/pages/_error.js")])))
        equal((brief(f), f["data"]["sourcemap"]),
              (("onFailure", "test.js", "server/pages/test", "app:///_next/server/pages/test.js", 5, 11),
               "app:///_next/server/pages/test.min.js.map"))


def test_script_without_map_keeps_frame_and_gets_context(work, objects):
    text = "\n".join("hello worldly") + "\n"
    with Sentry([told(1, "~/foo.js")], {"/foo.js": text}) as up, Service(work) as s:
        answer = symbolicate(s, asked(up, [frame("http://example.com/foo.js", 4, 0), frame("http://example.com/foo.js", 40, 0)]))
        equal(result(answer), {"abs_path": "http://example.com/foo.js", "lineno": 4, "colno": 0, "pre_context": ["h", "e", "l"],
                               "context_line": "l", "post_context": ["o", " ", "w", "o", "r"], "data": {"symbolicated": False}})
        equal((result(answer, 1), "errors" in answer),
              ({"abs_path": "http://example.com/foo.js", "lineno": 40, "colno": 0, "data": {"symbolicated": False}}, False))
        plain = symbolicate(s, asked(up, [frame("http://example.com/foo.js", 4, 0)], options={"apply_source_context": False}))
        equal(("context_line" in result(plain), "context_line" in plain["raw_stacktraces"][0]["frames"][0]), (False, False))


def test_source_maps_in_data_urls_are_read(work, objects):
    embedded = json.dumps({"version": 3, "sources": ["/test.js"], "names": [], "mappings": "AAAA", "sourcesContent": ["hi()"]})
    files = {"/test.min.js": "x()\n//# sourceMappingURL=" + data_url(embedded), "/bad.js": "x()\n//# sourceMappingURL=data:;base64,=",
             "/no-map.js": "x()\n//# sourceMappingURL=" + data_url("no map")}
    with Sentry([told(i, "~" + path) for i, path in enumerate(files)], files) as up, Service(work) as s:
        answer = symbolicate(s, asked(up, [frame(f"http://example.com{path}", 1, 1) for path in files]))
        f = result(answer)
        equal((brief(f), f["context_line"], f["data"]),
              (("<unknown>", "/test.js", "test", "http://example.com/test.js", 1, 1), "hi()",
               {"sourcemap": "http://example.com/test.min.js", "sourcemap_origin": "embedded", "resolved_with": "release",
                "symbolicated": True}))
        equal(answer["errors"], [{"abs_path": "http://example.com/no-map.js", "type": "malformed_sourcemap",
                                  "url": "http://example.com/no-map.js"}])
        equal((result(answer, 1)["data"], result(answer, 2)["data"]),
              ({"symbolicated": False}, {"sourcemap_origin": "embedded", "resolved_with": "release", "symbolicated": False}))


def test_unmapped_frames_report_the_reason(work, objects):
    files = {"/a.js": "x\n//# sourceMappingURL=a.map", "/a.map": "no map", "/b.js": "x\n//# sourceMappingURL=gone.map",
             "/c.js": "x\n//# sourceMappingURL=c.map", "/c.map": source_map(mappings=";;AAAA")}
    with Sentry([told(i, "~" + path) for i, path in enumerate(files)], files) as up, Service(work) as s:
        sent = [frame("http://e.x/a.js", 1, 1), frame("http://e.x/b.js", 1, 1), frame("http://e.x/c.js", 1, None), frame("http://e.x/c.js", 0, 5),
                frame("http://e.x/c.js", 0, None), frame("http://e.x/none.js", 1, 1), frame("http//e.x/none.js", 1, 1),
                frame("http://e.x/a.js", 1, 1)]
        answer = symbolicate(s, asked(up, sent))
        equal(answer["errors"],
              [{"abs_path": "http//e.x/none.js", "type": "missing_source"},
               {"abs_path": "http://e.x/a.js", "type": "malformed_sourcemap", "url": "http://e.x/a.map"},
               {"abs_path": "http://e.x/b.js", "type": "scraping_disabled"},
               {"abs_path": "http://e.x/c.js", "type": "invalid_location", "line": 0, "col": None},
               {"abs_path": "http://e.x/c.js", "type": "invalid_location", "line": 0, "col": 5},
               {"abs_path": "http://e.x/c.js", "type": "invalid_location", "line": 1, "col": 0},
               {"abs_path": "http://e.x/none.js", "type": "scraping_disabled"}])
        equal([a["url"] for a in answer["scraping_attempts"]],
              [f"http://e.x/{name}" for name in ("a.js", "a.map", "b.js", "c.js", "c.map", "gone.map", "none.js")])
        alone = symbolicate(s, asked(up, [frame("http://e.x/c.js", 0, 0)]))
        equal((alone["errors"], "scraping_attempts" in alone),
              ([{"abs_path": "http://e.x/c.js", "type": "invalid_location", "line": 0, "col": 0}], False))


def test_sources_missing_in_the_map_are_looked_up_or_reported(work, objects):
    files = {"/test.min.js": SCRIPT, "/test.min.js.map": source_map(sourcesContent=None), "/test.js": SOURCE}
    with Sentry(TOLD, files) as up, Service(work) as s:
        body = asked(up, [frame("http://example.com/test.min.js")])
        answer = symbolicate(s, body)
        equal((brief(result(answer)), "context_line" in result(answer), result(answer)["data"]["symbolicated"]), (ON_FAILURE, False, True))
        equal(answer["errors"], [{"abs_path": "http://example.com/test.min.js", "type": "missing_source_content",
                                  "source": "http://example.com/test.js", "sourcemap": "http://example.com/test.min.js.map"}])
        equal(answer["scraping_attempts"][0], {"url": "http://example.com/test.js", "status": "failure", "reason": "disabled"})
        quiet = symbolicate(s, {**body, "options": {"apply_source_context": False}})
        equal(("errors" in quiet, len(quiet["scraping_attempts"])), (False, 2))
        up.tells = TOLD + [told(3, "~/test.js")]
        found = symbolicate(s, {**body, "release": "other"})
        equal((result(found)["context_line"], "errors" in found), ("    throw new Error('failed!');", False))


def test_empty_script_with_sourcemap_header_is_mapped(work, objects):
    mapping = source_map(sources=["module.js"], names=[], mappings="AAAA", sourcesContent=["a\nb"])
    files = {"/index.android.bundle": b"", "/index.android.bundle.map": mapping}
    for tells, given in (([told(1, "~/index.android.bundle", headers={"SoUrCemAp": "index.android.bundle.map"}),
                           told(2, "~/index.android.bundle.map")], files),
                         ([bundle(3)], {"/3.zip": archive({"~/index.android.bundle": ("minified_source", "", {"Sourcemap": "index.android.bundle.map"}),
                                                           "~/index.android.bundle.map": ("source_map", mapping, {})})})):
        with Sentry(tells, given) as up, Service(work) as s:
            answer = symbolicate(s, asked(up, [frame("app:///index.android.bundle", 1, 11940)]))
            equal(brief(result(answer)), ("<unknown>", "module.js", "module", "app:///module.js", 1, 1))
            equal("context_line" in answer["raw_stacktraces"][0]["frames"][0], False)


def test_non_ascii_paths_are_kept_byte_by_byte(work, objects):
    path = "/Users/x/playground/\u00f6ut path/rollup/entrypoint1.js"
    mapping = source_map(sources=["../../this is a s\u00f6urce path/entrypoint1.js"], names=[], mappings="AAAA")
    files = archive({"script": ("minified_source", "x()", {"debug-id": ID, "sourcemap": "entrypoint1.js.map"}),
                     "map": ("source_map", mapping, {"debug-id": ID})})
    with Sentry([bundle(1)], {"/1.zip": files}) as up, Service(work) as s:
        body = asked(up, [frame(path, 1, 1, function="Object.<anonymous>")],
                     modules=[{"type": "sourcemap", "code_file": path, "debug_id": ID}])
        equal(brief(result(symbolicate(s, body))),
              ("Object.<anonymous>", "../../this is a s\u00f6urce path/entrypoint1.js", None,
               "/Users/x/playground/this is a s\u00f6urce path/entrypoint1.js", 1, 1))


def test_webpack_and_missing_source_names_are_handled(work, objects):
    files = {"/w.js": "x()\n//# sourceMappingURL=w.map", "/n.js": "x()\n//# sourceMappingURL=n.map",
             "/w.map": source_map(sources=["webpack:///./src/components/CampaignContent.tsx"], names=[], mappings="AAAA"),
             "/n.map": source_map(sources=[None], names=[], mappings="AAAA", sourcesContent=None)}
    with Sentry([told(i, "~" + path) for i, path in enumerate(files)], files) as up, Service(work) as s:
        answer = symbolicate(s, asked(up, [frame("http://e.x/w.js", 1, 1), frame("app:///n.js", 1, 1)]))
        equal([brief(result(answer, i)) for i in (0, 1)],
              [("<unknown>", "./src/components/CampaignContent.tsx", "src/components/CampaignContent",
                "webpack:///./src/components/CampaignContent.tsx", 1, 1), ("<unknown>", None, None, "app:///n.js", 1, 1)])


def test_invalid_request_bodies_are_refused(work, objects):
    with Sentry() as up, Service(work, {"symbolicate_body_max_bytes": 20000}) as s:
        equal(symbolicate(s, {"source": up.source()}), {"status": "completed", "stacktraces": [], "raw_stacktraces": []})
        symbolicate(s, {"source": up.source(type="http", name="x"), "scraping": {}, "modules": [{"type": "sourcemap", "code_file": "x", "debug_id": "?"}],
                        "options": {}, "platform": None, "allow_scraping": False})
        good = frame("http://e.x/a.js")
        for wrong in [{"source": None}, {"source": up.source(cookies="x")}, {"source": {"id": "x", "url": "u", "token": ""}},
                      {"source": {"url": f"{up.url}lookup", "token": ""}}, {"source": {"id": "x", "url": f"{up.url}lookup"}},
                      {"source": []}, {"stacktraces": [{}]}, {"stacktraces": [{"frames": [5]}]},
                      {"stacktraces": [{"frames": [{**good, "colno": "1"}]}]}, {"stacktraces": [{"frames": [{**good, "pre_context": "x"}]}]},
                      {"stacktraces": [{"frames": [{**good, "data": 5}]}]}, {"modules": [{"type": "debug_id", "code_file": "x", "debug_id": ID}]},
                      {"modules": [{"type": "sourcemap", "code_file": "x"}]}, {"options": {"frame_order": "x"}}, {"release": 5},
                      {"scraping": {"enabled": 1}}]:
            symbolicate(s, {"source": up.source(), **wrong}, 422)
        equal((s.post("/symbolicate-js", "{")[0], s.post("/symbolicate-js", "{}", {"Content-Type": "text/plain"})[0]), (400, 415))
        symbolicate(s, {"source": up.source(), "release": "x" * 30000}, 413)
        equal(up.hits, {})


def test_frame_without_position_leaves_other_frames_intact(work, objects):
    odd = [{"function": "native", "vars": {"a": 1.50}}, {"abs_path": "x", "lineno": "5"}, {"abs_path": None, "lineno": 5}, {"abs_path": "x", "lineno": -1}]
    with Sentry(TOLD, FILES) as up, Service(work) as s:
        answer = symbolicate(s, asked(up, [odd[0], frame("http://example.com/test.min.js"), *odd[1:]]))
        frames = answer["stacktraces"][0]["frames"]
        equal((frames[:1] + frames[2:], answer["raw_stacktraces"][0]["frames"][0]), (odd, odd[0]))
        equal((brief(frames[1]), "errors" in answer), (ON_FAILURE, False))


def test_fields_of_sent_frames_are_kept(work, objects):
    with Sentry(TOLD, FILES) as up, Service(work) as s:
        kept = {"platform": "node", "module": "mine", "pre_context": ["a"], "context_line": "", "post_context": ["b"], "token_name": "x",
                "data": {"sourcemap": "s", "sourcemap_origin": {"scraped_file": "u#1"}, "resolved_with": "url", "symbolicated": True}}
        answer = symbolicate(s, asked(up, [frame("/x.js", 1, 1, **kept), frame("http://example.com/test.min.js", 1, 64, module="mine")]))
        del kept["token_name"]
        kept["data"] = {**kept["data"], "symbolicated": False}
        equal((result(answer), answer["raw_stacktraces"][0]["frames"][0]), (frame("/x.js", 1, 1, **kept),) * 2)
        equal(result(answer, 1)["module"], "mine")


def test_pending_job_can_be_polled(work, objects):
    gate = threading.Event()

    def slow(handler):
        gate.wait(30)
        handler.reply(200, SCRIPT.encode())

    with Sentry(TOLD, {**FILES, "/test.min.js": slow}) as up, Service(work) as s:
        pending = symbolicate(s, asked(up, [frame("http://example.com/test.min.js")]), query="?timeout=0&scope=me")
        equal(pending["status"], "pending")
        gate.set()
        _, _, data = s.request("GET", f"/requests/{pending['request_id']}?timeout=30")
        equal(brief(result(json.loads(data))), ON_FAILURE)


def test_lookup_lists_the_candidate_urls_of_a_file(work, objects):
    stems = {"https://example.com/assets/bundle.min.js?foo=1&bar=baz#wat": "/assets/bundle", "app:///_next/server/pages/_error.js":
             "/_next/server/pages/_error", "app:///polyfills.e9f8f1606b76a9c9.js": "/polyfills.e9f8f1606b76a9c9", "~/x.d.ts": "/x",
             "http://e.x/a.min.js.map": "/a", "bundle.js": "bundle.js"}
    with Sentry() as up, Service(work) as s:
        for path, stem in stems.items():
            symbolicate(s, asked(up, [frame(path)]))
            equal(urllib.parse.parse_qs(up.asked[-1][0])["url"], [stem])
    path = "https://example.com/assets/bundle.min.js?foo=1&bar=baz#wat"
    listed = ["https://example.com/assets/bundle.min.js?foo=1&bar=baz", "https://example.com/assets/bundle.min.js",
              "~/assets/bundle.min.js?foo=1&bar=baz", "~/assets/bundle.min.js"]
    files = {f"/{i}": f"{i}\n" for i in range(4)}
    with Sentry((), files) as up, Service(work) as s:
        for i in range(4):
            up.tells = [told(n, listed[n], str(n)) for n in range(i, 4)][::-1]
            f = result(symbolicate(s, asked(up, [frame(path, 1, 1)], release=f"r{i}")))
            equal(f["context_line"], str(i), "the best that is there")


def test_metro_function_maps_name_functions(work, objects):
    mapping = source_map(sources=["foo.js"], names=[], mappings="AACA", sourcesContent=None,
                         x_facebook_sources=[[{"names": ["<global>", "foo"], "mappings": "AAA;ACC"}]])
    with Sentry([told(1, "~/h.js"), told(2, "~/h.map")], {"/h.js": "//# sourceMappingURL=h.map", "/h.map": mapping}) as up, Service(work) as s:
        f = result(symbolicate(s, asked(up, [frame("app:///h.js", 1, 1)], options={"apply_source_context": False})))
        equal(brief(f), ("foo", "foo.js", "foo", "app:///foo.js", 2, 1))


def test_empty_script_uses_function_names_of_its_map(work, objects):
    """As React Native uploads bytecode; by headers, and by the debug id of a bundle."""
    mapping = source_map(sources=["module.js"], names=["foo"], mappings="AACU", sourcesContent=["function foo() {\n  throw new Error()\n}\n"],
                         x_facebook_sources=[[{"names": ["<global>", "foo"], "mappings": "AAA;ACC"}]])
    with Sentry([told(1, "~/index.android.bundle", headers={"SoUrCemAp": "index.android.bundle.map"}), told(2, "~/index.android.bundle.map")],
                {"/index.android.bundle": b"", "/index.android.bundle.map": mapping}) as up, Service(work) as s:
        answer = symbolicate(s, asked(up, [frame("app:///index.android.bundle", 1, 11940)]))
        equal(brief(result(answer)), ("foo", "module.js", "module", "app:///module.js", 2, 11))
        equal((result(answer)["context_line"], "context_line" in answer["raw_stacktraces"][0]["frames"][0]), ("  throw new Error()", False))


def test_scopes_of_maps_name_functions(work, objects):
    """Those of the map come before those of the script, whose frame names the function around an inlined one; malformed ones cost themselves."""
    names, mappings = ["outer", "inner"], "AAAA,UAEI,UAFF"
    scopes = "BAAA,BFAAA,CCA,BFACC,CCA,CKA,A,ECAA,EGKC,ECKC,IADE,FK,FK,FK"
    maps = {f"/{name}.map": source_map(sources=["foo.js", "bar.js"], names=names, mappings=mappings, sourcesContent=None, scopes=value)
            for name, value in (("whole", scopes), ("cut", scopes[:-4]))}
    scripts = {f"/{name}.js": f"function m(){{minified()}}\n//# sourceMappingURL={name}.map" for name in ("whole", "cut")}
    files = {**maps, **scripts}
    with Sentry([told(i, "~" + path) for i, path in enumerate(files)], files) as up, Service(work) as s:
        for name, wanted in (("whole", ["outer", "inner"]), ("cut", ["m", "m"])):
            frames = [frame(f"app:///{name}.js", 1, column, function="raw") for column in (13, 22)]
            answer = symbolicate(s, asked(up, frames, options={"apply_source_context": False}))
            equal([f["function"] for f in answer["stacktraces"][0]["frames"]], wanted)
            equal([f["lineno"] for f in answer["stacktraces"][0]["frames"]], [3, 1])


def test_maps_without_source_names_give_functions_and_positions(work, objects):
    text = 'function add(n,r){"use strict";return n+r}\n//# sourceMappingURL=nofiles.map'
    with Sentry([told(1, "~/nofiles.js"), told(2, "~/nofiles.map")],
                {"/nofiles.js": text, "/nofiles.map": source_map(sources=[None, None], names=[], mappings="AAAA,sCCEQ", sourcesContent=None)}) as up, \
            Service(work) as s:
        f = result(symbolicate(s, asked(up, [frame("app:///nofiles.js", 1, 39)])))
        equal(brief(f), ("add", None, None, "app:///nofiles.js", 3, 9))


def test_dart_async_functions_are_named_by_token(work, objects):
    """The function is called by the name of the token."""
    text = "function be(){var s=0\nvar $async$be=A.dv(function(a,b){x()})}\n//# sourceMappingURL=dart.map"
    column = text.split("\n")[1].index("x()")
    mapping = source_map(sources=["main.dart"], names=["main"], mappings=f"AAAA;{vlq(column)}AAAA", sourcesContent=None)
    with Sentry([told(1, "~/dart.js"), told(2, "~/dart.map")], {"/dart.js": text, "/dart.map": mapping}) as up, Service(work) as s:
        f = result(symbolicate(s, asked(up, [frame("app:///dart.js", 2, column + 1)], options={"apply_source_context": False})))
        equal(f["function"], "main")


def test_table_that_cannot_be_stored_is_no_missing_map(work, objects):
    """A full disk says nothing about the map: the request ends, and the log has the reason."""
    script = "".join(f"function f{i:x}(){{}}" for i in range(3300)) + "\n//# sourceMappingURL=test.min.js.map"
    files = {"/test.min.js": script, "/test.min.js.map": source_map(mappings=MAPPINGS + "," + "C," * 28000)}
    with small_disk(work, "2m") as disk:
        if not disk:
            return
        with Sentry(TOLD, files) as up, Service(work, cache_dir=os.path.join(disk, "cache")) as s:
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            with open(os.path.join(disk, "other"), "wb") as f:  # leaves room for script and map, not for the table of 90 KB
                f.write(bytes(free - (170 << 10)))
            status, _, answer = s.post("/symbolicate-js", asked(up, [frame("http://example.com/test.min.js", 1, 183)]))
            equal((status, json.loads(answer)), (200, {"status": "internal_error"}))
            wait_until("the reason", lambda: "cannot store the look-up table of a source map" in s.logged())
