"""`symloom symbolicate` of events and requests of JavaScript and of the JVM, offline."""
import gzip, hashlib, json, os, re, uuid, zipfile, io
from harness import contains, equal, ok, symloom
from test_jsstack import MAP, READABLE, SCRIPT, V8, artifacts
from test_symbolicate import MAPPING, written

ID = "11111111-2222-3333-4444-555555555555"
SPACE = uuid.UUID("4f44f30f-24be-53d0-bab6-f47c7120ad6c")


def mapping_id(text):
    digest = bytearray(hashlib.sha1(SPACE.bytes + text.encode()).digest()[:16])
    digest[6], digest[8] = 0x50 | digest[6] & 15, 0x80 | digest[8] & 63
    return str(uuid.UUID(bytes=bytes(digest)))


def jvm_event(identifier=ID):
    frames = [{"function": "main", "module": "java.lang.Thread", "lineno": -2, "filename": None, "pre_context": None},
              {"function": "c", "module": "a.b", "lineno": 1, "filename": "SourceFile", "vars": {"x": 1}}, {"function": "no module"}]
    return {"event_id": "1", "platform": "java", "release": "com.example@1.0",
            "exception": {"values": [{"type": "e", "module": "a", "value": "went wrong", "stacktrace": {"frames": []},
                                      "raw_stacktrace": {"frames": frames}}]},
            "threads": {"values": [{"id": 1, "stacktrace": None}, {"id": 2}]},
            "debug_meta": {"images": [{"type": "proguard", "uuid": identifier}, {"type": "jvm", "debug_id": ID}, {"type": "elf"}]}}


def symbolicated(work, document, *arguments, packed=False):
    path = os.path.join(work, "input.json")
    text = json.dumps(document).encode()
    with open(path, "wb") as f:
        f.write(gzip.compress(text) if packed else text)
    return ok("symbolicate", path, "--cache-dir", "", "--no-network", *arguments)


def functions(answer):
    return [(f["module"], f["function"], f.get("lineno")) for f in answer["stacktraces"][0]["frames"]]


MAPPED = [("com.example.Util", "check", 7), ("com.example.Main", "run", 20), ("java.lang.Thread", "main", None)]


def test_jvm_event_is_symbolicated(work, files):
    mapping = written(work, "m.map", MAPPING)
    answer = json.loads(symbolicated(work, jvm_event(), "--mapping", mapping))
    equal(functions(answer), MAPPED)
    equal(answer["exceptions"], [{"type": "Oops", "module": "com.example"}])
    equal(answer["stacktraces"][0]["exception"], answer["exceptions"][0])
    equal([f["index"] for f in answer["stacktraces"][0]["frames"]], [0, 0, 1])
    equal(answer["stacktraces"][0]["frames"][0]["in_app"], True)
    equal((answer["errors"], "status" in answer, len(answer["stacktraces"])), ([], False, 1))
    equal(json.loads(symbolicated(work, jvm_event(), "--mapping", mapping, packed=True)), answer)
    equal(json.loads(symbolicated(work, jvm_event(), "--mapping", mapping, "--indent")), answer)
    equal(symbolicated(work, jvm_event(), "--mapping", mapping, "-f", "compact"),
          " Module            Function  File     Line\n"
          " com.example.Util  check     Util.kt     7\n"
          " com.example.Main  run       Main.kt    20\n"
          " java.lang.Thread  main\n")


def test_mappings_are_found_by_uuid(work, files):
    event = jvm_event(mapping_id(MAPPING))
    symbols = os.path.join(work, "symbols")
    os.mkdir(symbols)
    pretty = symbolicated(work, event, "--symbols", symbols, "-f", "pretty")
    contains(pretty, "Errors during symbolication\n       Path: " + mapping_id(MAPPING) + "\n      Error: missing\n")
    written(symbols, "mapping.txt", MAPPING)
    written(symbols, "other.txt", MAPPING.replace("com.example", "com.other"))
    equal(functions(json.loads(symbolicated(work, event, "--symbols", symbols))), MAPPED)
    other = written(work, "first", "x.A -> a.b:\n    1:1:void f():3:3 -> c\n")
    equal(functions(json.loads(symbolicated(work, event, "--symbols", symbols, "--mapping", other))), MAPPED)
    event["debug_meta"]["images"] = []
    equal(functions(json.loads(symbolicated(work, event, "--mapping", other)))[0], ("x.A", "f", 3))
    unified = os.path.join(work, "unified", ID[:2])
    os.makedirs(os.path.join(unified, ID.replace("-", "")[2:]))
    written(os.path.join(unified, ID.replace("-", "")[2:]), "proguard", MAPPING)
    equal(functions(json.loads(symbolicated(work, jvm_event(), "--symbols", os.path.dirname(unified)))), MAPPED)


def test_jvm_request_is_symbolicated(work, files):
    request = {"sources": [], "modules": [{"type": "proguard", "uuid": ID}], "classes": ["a.b"], "stacktraces": [
        {"frames": [{"function": "c", "module": "a.b", "lineno": 1, "index": 7}]}], "options": {"frame_order": "callee_first"}}
    answer = json.loads(symbolicated(work, request, "--mapping", written(work, "m", MAPPING)))
    equal(functions(answer), MAPPED[:2])
    equal(answer["classes"], {"a.b": "com.example.Main"})
    del request["stacktraces"][0]["frames"][0]["index"]
    refused = symloom("symbolicate", "-", "--no-network", input=json.dumps(request))
    equal(refused.status, 3)
    contains(refused.err, "missing field `index`")


def native(files):
    """The program and its module at 0x400000, and a frame in `inner`, inlined twice into `outer`, as events have it."""
    program = files.get("t")
    found = json.loads(ok("inspect", "--json", program))[0]
    module = {"type": "elf", "code_id": found["code_id"], "debug_id": found["debug_id"], "image_addr": "0x400000", "image_size": 0x10000,
              "code_file": "/usr/bin/t"}
    at = next(int(line.split()[0], 16) for line in ok("lookup", "-e", program, "--all", "--output-style", "llvm", "-a", "-f").splitlines()
              if line.startswith("0x") and len(ok("lookup", "-e", program, "--output-style", "llvm", line).split("\n\n")[0].splitlines()) == 6)
    return program, module, hex(0x400000 + at)


CHAIN = [("inner", "t.c", 1), ("mid", "t.c", 3), ("outer", "t.c", 5)]


def test_native_event_is_symbolicated(work, files):
    program, module, address = native(files)
    frames = [{"instruction_addr": hex(0x400000 + 0x2000), "function": "sent", "lineno": 3}, {"function": "no address"},
              {"instruction_addr": address, "vars": {"x": 1}, "trust": "context"}]
    event = {"event_id": "1", "platform": "native", "signal": 11, "debug_meta": {"images": [module, {"type": "sourcemap"}, {"debug_id": "x"}]},
             "exception": {"values": [{"type": "SIGSEGV", "stacktrace": {"frames": frames}}]}, "threads": {"values": [{"id": 1}]}}
    answer = json.loads(symbolicated(work, event, program))
    equal((answer["signal"], len(answer["stacktraces"]), len(answer["modules"]), answer["stacktraces"][0]["is_requesting"]), (11, 1, 1, False))
    equal([(f.get("function"), f.get("filename"), f.get("lineno")) for f in answer["stacktraces"][0]["frames"]], CHAIN + [("sent", None, 3)])
    rows = [re.split(r"  +", line.strip()) for line in symbolicated(work, event, program, "-f", "compact").splitlines()]
    equal([(row[0], row[4], row[6]) for row in rows[1:4]], [("inline", "inner", "t.c:1"), ("inline", "mid", "t.c:3"), ("none", "outer", "t.c:5")])
    contains(symbolicated(work, event, program, "-f", "pretty"), "Frame #0\n      Trust: inline\nInstruction: " + address)
    contains(symbolicated(work, event, "-f", "full"), "missing: /usr/bin/t ")
    contains(symbolicated(work, event, program, "-d"), '"candidates":[{"source":"local:cli')
    path = os.path.join(work, "input.json")
    equal(symloom("symbolicate", "--fail-on-missing", "--no-network", "--cache-dir", "", path).status, 3)
    event["debug_meta"]["images"] = []
    refused = symloom("symbolicate", "-", "--no-network", input=json.dumps(event))
    equal((refused.status, refused.err), (3, "error: Event cannot be symbolicated\n  caused by: Event has no debug images\n"))


def test_native_request_is_symbolicated(work, files):
    program, module, address = native(files)
    request = {"modules": [module], "stacktraces": [{"frames": [{"instruction_addr": address}]}], "sources": [
        {"id": "own", "type": "http", "url": "http://127.0.0.1:1/", "layout": {"type": "native"}}]}
    answer = json.loads(symbolicated(work, request, "--symbols", program))
    equal([(f["function"], f["filename"], f["lineno"]) for f in answer["stacktraces"][0]["frames"]], CHAIN)
    equal(json.loads(symbolicated(work, request))["modules"][0]["debug_status"], "missing")
    own = json.loads(symbolicated(work, request, "-d", "--use-request-sources"))["modules"][0]["candidates"]
    equal({c["source"] for c in own}, {"own"})
    # those of the configuration are not the request's own: nothing is asked without a network
    sources, config = request.pop("sources"), os.path.join(work, "config.json")
    with open(config, "w") as f:
        json.dump({"sources": sources}, f)
    for more in ([], ["--use-request-sources"]):
        equal(json.loads(symbolicated(work, request, "-d", "-c", config, *more))["modules"][0].get("candidates"), None, more)
    refused = symloom("symbolicate", "-", "--no-network", input='{"stacktraces":[{"frames":[{}]}]}')
    equal(refused.status, 3)
    contains(refused.err, "missing field `instruction_addr`")


def test_mozilla_request_is_symbolicated(work, files):
    program, module, address = native(files)
    sym = os.path.join(work, "t.sym")
    ok("dump-syms", "-o", sym, "--inlines", program)
    with open(sym) as f:
        name, identifier = f.readline().split()[4], open(sym).readline().split()[3]
    job = {"memoryMap": [[name, identifier], ["other", "0" * 33]], "stacks": [[[0, int(address, 16) - 0x400000], [1, 5]]]}
    frames = json.loads(symbolicated(work, {"jobs": [job]}, "--symbols", sym))["results"][0]["stacks"][0]
    equal((frames[0]["function"], frames[0]["module"], frames[0]["line"]), ("outer", name, 5))
    equal([f["function"] for f in frames[0]["inlines"]], ["inner", "mid"])
    equal("function" in frames[1], False)
    old = json.loads(symbolicated(work, {**job, "version": 4}, sym))
    contains(old["symbolicatedStacks"][0][0], f"outer (in {name})")
    equal(symloom("symbolicate", "-", "-f", "compact", "--no-network", input=json.dumps({"jobs": [job]})).status, 2)


def js_event(url="http://example.com/a/test.min.js", images=()):
    frames = [{"abs_path": "http://example.com/other.js", "lineno": 1, "colno": 2, "function": "o"},
              {"abs_path": url, "lineno": 1, "colno": 183, "function": "i"}, {"function": "nowhere"},
              {"abs_path": url, "lineno": 1, "colno": 136, "function": "r"}, {"abs_path": url, "lineno": 1, "colno": 64, "function": "e"}]
    return {"platform": "javascript", "release": "r1", "exception": {"values": [{"type": "Error", "stacktrace": {"frames": frames}}]},
            "debug_meta": {"images": list(images)}}


def js_frames(answer):
    return [(f.get("function"), f.get("filename"), f["lineno"]) for f in answer["stacktraces"][0]["frames"]]


JS = [("onFailure", "test.js", 5), ("invoke", "test.js", 15), ("test", "test.js", 20), ("o", None, 1)]


def test_javascript_event_uses_plain_files(work, files):
    for i, comment in enumerate(("//# sourceMappingURL=test.min.js.map", "")):
        os.mkdir(os.path.join(work, str(i)))
        root = artifacts(os.path.join(work, str(i)), comment)
        answer = json.loads(symbolicated(work, js_event(), "--symbols", root))
        equal(js_frames(answer), JS)
        frame = answer["stacktraces"][0]["frames"][0]
        equal(frame["abs_path"], "http://example.com/a/test.js")
        equal(frame["data"]["resolved_with"], "url")
        equal(frame["data"]["sourcemap"], "http://example.com/a/test.min.js.map")
        contains(frame["data"]["sourcemap_origin"]["individual_file"], "sentry://project_debug_file/a/test.min.js.map#")
    equal(symbolicated(work, js_event(), root, "-f", "compact"),
          " Function   File     Line  Column\n onFailure  test.js     5      11\n invoke     test.js    15       5\n"
          " test       test.js    20       5\n o                      1       2\n")
    contains(symbolicated(work, js_event(), root, "-f", "pretty"),
             "Frame #0\n   Function: onFailure\n       File: test.js\nLine/Column: 5:11\n".replace("Frame #0\n", "Frame #0\n     Module: a/test\n"))


def test_full_format_prints_the_whole_event(work, files):
    """Whole paths, lines of source, and what went wrong."""
    root = artifacts(work)
    written(os.path.join(root, "a"), "test.min.js.map",
            json.dumps({**MAP, "sourcesContent": ["".join(f"line {i}\n" for i in range(1, 30)) for _ in MAP["sources"]]}))
    equal(symbolicated(work, js_event(), root, "-f", "full", "--context", "1"),
          "Stack 0\n #  Function   File\n 0  onFailure  http://example.com/a/test.js:5:11\n"
          "       4 | line 4\n>      5 | line 5\n       6 | line 6\n 1  invoke     http://example.com/a/test.js:15:5\n"
          "      14 | line 14\n>     15 | line 15\n      16 | line 16\n 2  test       http://example.com/a/test.js:20:5\n"
          "      19 | line 19\n>     20 | line 20\n      21 | line 21\n 3  o          http://example.com/other.js:1:2\n"
          "\nerror: http://example.com/other.js: scraping_disabled\n")
    mapping = written(work, "m.map", MAPPING)
    stack = ("Stack 0\n #  Module            Function  File\n 0  com.example.Util  check     Util.kt:7\n"
             " 1  com.example.Main  run       Main.kt:20\n 2  java.lang.Thread  main\n")
    equal(symbolicated(work, jvm_event(), "--mapping", mapping, "-f", "full"), "Crash:      com.example.Oops\n\n" + stack)
    equal(symbolicated(work, jvm_event(), "--mapping", mapping, "-f", "markdown"),
          f"```text\nCrash:      com.example.Oops\n```\n\n```text\n{stack}```\n")
    contains(symbolicated(work, jvm_event(), "-f", "full"), f"\n\nerror: {ID}: missing\n")


def test_scripts_are_found_by_debug_id(work, files):
    root = artifacts(work, "//# sourceMappingURL=test.min.js.map\n//# debugId=" + ID)
    image = {"type": "sourcemap", "code_file": "app:///renamed.js", "debug_id": ID}
    answer = json.loads(symbolicated(work, js_event("app:///renamed.js", [image]), "--symbols", root))
    equal(js_frames(answer), JS)
    equal(answer["stacktraces"][0]["frames"][0]["data"]["resolved_with"], "debug-id")


def bundle(path, release=None, dist=None, debug_id=None, name="~/a/test.min.js"):
    headers = {"debug-id": debug_id} if debug_id else {}
    manifest = {"files": {"files/_/_/0": {"type": "minified_source", "url": name, "headers": {**headers, "sourcemap": "test.min.js.map"}},
                          "files/_/_/1": {"type": "source_map", "url": name + ".map", "headers": headers}}}
    manifest.update({k: v for k, v in (("release", release), ("dist", dist)) if v})
    out = io.BytesIO()
    out.write(b"SYSB\x02\0\0\0")
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as z:
        z.writestr("files/_/_/0", SCRIPT)
        z.writestr("files/_/_/1", json.dumps(MAP))
        z.writestr("manifest.json", json.dumps(manifest))
    with open(path, "wb") as f:
        f.write(out.getvalue())


def test_artifact_bundles_are_used(work, files):
    def asked(event, **keys):
        root = os.path.join(work, "bundles")
        os.makedirs(os.path.join(root, "in"), exist_ok=True)
        bundle(os.path.join(root, "in", "one.zip"), **keys)
        answer = json.loads(symbolicated(work, event, "--symbols", root))
        return js_frames(answer), answer["stacktraces"][0]["frames"][0]["data"]

    frames, data = asked(js_event(), release="r1")
    equal(frames, JS)
    equal(data["resolved_with"], "release")
    contains(data["sourcemap_origin"]["bundled"][0], "sentry://project_debug_file/in/one.zip#")
    unknown = [("e", None, 1), ("r", None, 1), ("i", None, 1), ("o", None, 1)]
    equal(asked(js_event(), release="r2")[0], unknown)
    equal(asked(js_event(), release="r1", dist="d")[0], unknown)
    event = js_event()
    event["dist"] = "d"
    equal(asked(event, release="r1", dist="d")[0], JS)
    equal(asked(event, release="r1")[0], unknown)
    image = {"type": "sourcemap", "code_file": "http://example.com/a/test.min.js", "debug_id": ID}
    frames, data = asked(js_event(images=[image]), debug_id=ID, name="~/somewhere.js")
    equal((frames, data["resolved_with"]), (JS, "debug-id"))
    broken = written(os.path.join(work, "bundles"), "broken.zip", "SYSB")
    path = written(work, "event.json", json.dumps(js_event(images=[image])))
    result = symloom("symbolicate", path, "--no-network", "--cache-dir", "", "--symbols", os.path.join(work, "bundles"))
    equal(result.status, 0)
    contains(result.err, f"warning: ignoring {broken}")
    equal(js_frames(json.loads(result.out)), JS)


def test_changed_file_is_read_again(work, files):
    root, cache = artifacts(work), os.path.join(work, "cache")
    path = written(work, "event.json", json.dumps(js_event()))
    command = ("symbolicate", path, "--no-network", "--cache-dir", cache, "--symbols", root)
    equal(js_frames(json.loads(ok(*command))), JS)
    changed = dict(MAP, names=["renamed" if n == "onFailure" else n for n in MAP["names"]])
    written(os.path.join(root, "a"), "test.min.js.map", json.dumps(changed))
    equal(js_frames(json.loads(ok(*command)))[0], ("renamed", "test.js", 5))


def test_javascript_request_is_symbolicated(work, files):
    frames = js_event()["exception"]["values"][0]["stacktrace"]["frames"]
    request = {"source": {"id": "s", "url": "http://127.0.0.1:9/", "token": ""}, "release": "r1", "options": {"frame_order": "callee_first"},
               "stacktraces": [{"frames": [f for f in reversed(frames) if "abs_path" in f]}]}
    answer = json.loads(symbolicated(work, request, "--symbols", artifacts(work)))
    equal(js_frames(answer), JS)
    equal([e["type"] for e in answer["errors"]], ["missing_source_content", "scraping_disabled"])


def test_one_script_serves_several_urls(work, files):
    root = artifacts(work)
    urls = ["http://a.example/a/test.min.js", "http://a.example/a/test.min.js?v=1", "http://b.example/a/test.min.js",
            "file:///srv/a/test.min.js", "/srv/a/test.min.js"]
    request = {"source": {"id": "s", "url": "http://127.0.0.1:9/", "token": ""}, "platform": "javascript",
               "stacktraces": [{"frames": [{"abs_path": url, "lineno": 1, "colno": 64} for url in urls]}]}
    answer = json.loads(symbolicated(work, request, "--symbols", root))
    equal([(f["data"]["symbolicated"], f["lineno"], f["colno"]) for f in answer["stacktraces"][0]["frames"]], [(True, 5, 11)] * len(urls))
    equal({e["type"] for e in answer["errors"]}, {"missing_source_content"})


def test_source_map_without_script_is_used(work, files):
    root = artifacts(work, name="a/unused.js", map_name="a/test.min.js.map")
    answer = json.loads(symbolicated(work, js_event(), "--symbols", os.path.join(root, "a")))
    frame = answer["stacktraces"][0]["frames"][0]
    equal((frame["data"]["symbolicated"], frame["lineno"], frame["colno"]), (True, 5, 11))


def test_unsupported_events_are_refused(work, files):
    def refused(document, *arguments):
        result = symloom("symbolicate", "-", "--no-network", *arguments, input=json.dumps(document))
        equal(result.status, 3)
        return result.err

    contains(refused({"event_id": "1", "platform": "perl"}), "Cannot symbolicate event: invalid platform perl")
    contains(refused({"event_id": "1", "platform": "java"}), "Event cannot be symbolicated\n  caused by: Event has no usable frames")
    contains(refused({"event_id": "1", "platform": "x"}, "--platform", "node"), "Event has no usable frames")
    equal(symloom("symbolicate", "--type", "event", "-", "--no-network", input="{").status, 3)


def test_stack_trace_kind_is_detected(work, files):
    root = artifacts(work)
    equal(ok("symbolicate", "--symbols", root, "-", input=V8), READABLE)
    firefox = "e@http://example.com/a/test.min.js:1:64\n"
    equal(ok("symbolicate", "-", root, input=firefox), "onFailure@http://example.com/a/test.js:5:11\n")
    equal(symloom("symbolicate", "-", input="\tat a.b.c(SourceFile:1)\nnothing\n").status, 3)
