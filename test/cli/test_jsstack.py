"""`symloom symbolicate --type jsstack`: stacks of JavaScript, offline."""
import base64, json, os, subprocess
import harness
from harness import contains, equal, ok, symloom
from test_symbolicate import written

SCRIPT = ('var makeAFailure=function(){function n(n){}function e(n){throw new Error("failed!")}function r(r){var i=null;'
          'if(r.failed){i=e}else{i=n}i(r)}function i(){var n={failed:true,value:42};r(n)}return i}();\n')
MAP = {"version": 3, "sources": ["test.js"], "mappings":
       "AAAA,GAAIA,cAAe,WACjB,QAASC,GAAUC,IAEnB,QAASC,GAAUD,GACjB,KAAM,IAAIE,OAAM,WAGlB,QAASC,GAAOH,GACd,GAAII,GAAK,IACT,IAAIJ,EAAKK,OAAQ,CACfD,EAAKH,MACA,CACLG,EAAKL,EAEPK,EAAGJ,GAGL,QAASM,KACP,GAAIN,IAAQK,OAAQ,KAAME,MAAO,GACjCJ,GAAOH,GAGT,MAAOM",
       "names": ["makeAFailure", "onSuccess", "data", "onFailure", "Error", "invoke", "cb", "failed", "test", "value"]}
V8 = """Error: failed!
    at e (http://example.com/a/test.min.js:1:64)
    at r (http://example.com/a/test.min.js:1:136)
    at async i (http://example.com/a/test.min.js?v=1:1:183)
    at http://example.com/other.js:1:2
    at Array.map (<anonymous>)
"""
READABLE = """Error: failed!
    at onFailure (http://example.com/a/test.js:5:11)
    at invoke (http://example.com/a/test.js:15:5)
    at async test (http://example.com/a/test.js:20:5)
    at http://example.com/other.js:1:2
    at Array.map (<anonymous>)
"""


def artifacts(work, comment="//# sourceMappingURL=test.min.js.map", name="a/test.min.js", map_name="a/test.min.js.map"):
    root = os.path.join(work, "artifacts")
    os.makedirs(os.path.join(root, "a"), exist_ok=True)
    os.makedirs(os.path.join(root, "b"), exist_ok=True)
    for path, text in ((name, SCRIPT + comment), (map_name, json.dumps(MAP)), ("b/test.min.js", "other()")):
        with open(os.path.join(root, path), "w") as f:
            f.write(text)
    return root


def test_v8_stack_is_mapped(work, files):
    root = artifacts(work)
    equal(ok("symbolicate", "--type", "jsstack", "--symbols", root, "-", input=V8), READABLE)
    equal(ok("symbolicate", "--type", "jsstack", "--symbols", os.path.join(root, "a"), input=V8), READABLE)
    stack, out = os.path.join(work, "stack"), os.path.join(work, "out")
    with open(stack, "w") as f:
        f.write(V8)
    equal(ok("symbolicate", "--type=jsstack", "--output", out, stack, root), "")
    with open(out) as f:
        equal(f.read(), READABLE)


def test_firefox_and_safari_stacks_are_mapped(work, files):
    stack = "e@http://example.com/a/test.min.js:1:64\nglobal code@http://example.com/a/test.min.js:1:2\n@x.js:1:1\n"
    contains(ok("symbolicate", "--type", "jsstack", "--symbols", artifacts(work), input=stack),
             "onFailure@http://example.com/a/test.js:5:11\nglobal code@http://example.com/a/test.js:1:1\n@x.js:1:1\n")


def test_source_map_is_found_beside_or_inside_the_script(work, files):
    frame, readable = "    at e (app:///a/test.min.js:1:64)\n", "    at onFailure (app:///a/test.js:5:11)\n"
    data = base64.b64encode(json.dumps(MAP).encode()).decode()
    for i, (comment, map_name) in enumerate([("", "a/test.min.js.map"), ("//# sourceMappingURL=https://x.y/z/m.map", "a/m.map"),
                                             ("//# sourceMappingURL=../b/m.map", "b/m.map"),
                                             ("//# sourceMappingURL=data:application/json;base64," + data, "b/unused")]):
        os.makedirs(os.path.join(work, str(i)))
        root = artifacts(os.path.join(work, str(i)), comment, map_name=map_name)
        out = ok("symbolicate", "--type", "jsstack", "--symbols", root, input=frame)
        contains(out, "at onFailure (")
        contains(out, "/test.js:5:11)\n")
        if i in (0, 3):
            equal(out, readable)
    text = "`\\n//# sourceMappingURL=../b/wrong.map\\n`"  # no comment, so the map is the one beside it
    os.makedirs(os.path.join(work, "text"))
    root = artifacts(os.path.join(work, "text"), text)
    with open(os.path.join(root, "b/wrong.map"), "w") as f:
        json.dump(dict(MAP, sources=["wrong.js"]), f)
    equal(ok("symbolicate", "--type", "jsstack", "--symbols", root, input=frame), readable)


def test_frames_without_a_map_stay(work, files):
    root = artifacts(work)
    with open(os.path.join(root, "a/test.min.js.map"), "w") as f:
        f.write("{")
    done = symloom("symbolicate", "--type", "jsstack", "--symbols", root, input=V8)
    equal((done.status, done.out), (0, V8))
    contains(done.err, "test.min.js")


def test_invalid_options_are_usage_errors(work, files):
    equal(symloom("symbolicate", "--type", "jsstack", input=V8).status, 2)
    equal(symloom("symbolicate", "--type", "jsstack", "--symbols", work, "-f", "json", input=V8).status, 2)
    equal(symloom("symbolicate", "--type", "jsstack", "/none", work).status, 1)


def test_stack_is_printed_before_input_ends(work, files):
    """A line that is no frame says that a stack is over, or that nothing comes for a while; its frames are told as those of a file."""
    root = artifacts(work)
    wanted = ok("symbolicate", written(work, "stack.txt", V8), root)
    with subprocess.Popen([harness.SYMLOOM, "symbolicate", "--type", "jsstack", "-", root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(2):
            process.stdin.write(V8)
            process.stdin.flush()
            equal("".join(process.stdout.readline() for _ in wanted.splitlines()), wanted)
        out, _ = process.communicate(V8 * 4000, timeout=harness.DEADLINE)
        equal((process.returncode, out), (0, wanted * 4000))
    nobody = symloom("symbolicate", "--type", "jsstack", os.path.join(work, "nobody"), root)
    equal((nobody.status, nobody.out), (1, ""))


def test_text_around_frames_is_kept(work, files):
    """What is around a frame stays, byte for byte; so does a frame that nobody can tell more of."""
    root = artifacts(work, name="a/test.min.js")
    at, was = "at onFailure (%s/test.js:5:11)", "at e (%s/test.min.js:1:64)"
    for folder in ("/app/(main)/[id]/a", "/srv/my app (x86)/a", "https://x.y/_next/app/(main)/%5Bid%5D/a", "https://x.y/Program Files (x86)/a"):
        for line in ("    %s\n", "    %s {\n  code: 1\n}\n", "\x1b[90m    %s\x1b[39m\n", "web-1  |     %s\n", "[0]     %s,\n",
                     "Nov 28 03:00:00 host node[12]:     %s\n", "2026-11-28T03:00:00.000Z     %s;\n",
                     '{"level":"error","stack":"Error: x\\n    %s\\n    at Array.map (<anonymous>)"}\n'):
            equal(ok("symbolicate", "-q", "--type", "jsstack", "--symbols", root, input=line % was % folder), line % at % folder)
    equal(ok("symbolicate", "-q", "--type", "jsstack", "--symbols", root, input="    at e (C:\\a\\test.min.js:1:64)\n"),
          "    at onFailure (C:/a/test.js:5:11)\n")
    equal(ok("symbolicate", "-q", "--type", "jsstack", "--symbols", root, input="at eval (eval at e (/a/test.min.js:1:64), <anonymous>:1:1)\n"),
          "at eval (eval at onFailure (/a/test.js:5:11), <anonymous>:1:1)\n")
    equal(ok("symbolicate", "-q", "--type", "jsstack", "--symbols", os.path.join(root, "a"), input="e@1:64\n"), "onFailure@test.js:5:11\n")
    others = ("at  f  (address at x.bundle:1:2)\n  f@1:2\nhttps://x.y/z.js:1:2\n\tat new new  (z.js:1:2)\n    at new Promise (<anonymous>)\n"
              "    at <anonymous>:1:508\n    at async Promise.all (index 0)\n    at eval (eval at <anonymous>, <anonymous>:1:1)\n")
    equal(ok("symbolicate", "-q", "--type", "jsstack", "--symbols", root, input=others), others)


def test_scripts_of_one_name_are_told_apart_by_path(work, files):
    """The path decides, with what a URL writes by percent signs."""
    root = artifacts(work)
    for folder, source in (("[id]", "right.js"), ("[ib]", "wrong.js")):
        os.makedirs(os.path.join(root, "app", folder))
        for name, text in (("page.js", SCRIPT), ("page.js.map", json.dumps(dict(MAP, sources=[source])))):
            with open(os.path.join(root, "app", folder, name), "w") as f:
                f.write(text)
    for folder in ("[id]", "%5Bid%5D", "%5bid%5d"):
        contains(ok("symbolicate", "-q", "--type", "jsstack", "--symbols", root, input=f"at e (https://x.y/app/{folder}/page.js:1:64)\n"), "/right.js:5:11)")


def test_unusual_script_names_and_lone_maps_are_found(work, files):
    for i, name in enumerate(("main.jsbundle", "index-0a.hbc", "app.jsx", "app.ts", "index.android.bundle")):
        for k, has_script in enumerate((True, False)):
            root = os.path.join(work, f"{i}{k}")
            os.mkdir(root)
            with open(os.path.join(root, name + ".map"), "w") as f:
                json.dump(MAP, f)
            if has_script:
                with open(os.path.join(root, name), "wb") as f:
                    f.write(b"\xC6\x1F\xBC\x03\xC1\x03\x19\x1F\0\0" if name.endswith("hbc") else SCRIPT.encode())
            done = symloom("symbolicate", "--symbols", root, "-", "--type", "jsstack", input=f"    at e ({name}:1:64)\n    at r (address at {name}:1:135)\n")
            equal((done.status, done.err), (0, ""))
            equal([line.split("(")[1] for line in done.out.splitlines()], ["/test.js:5:11)", "/test.js:15:5)"])


def test_unresolved_frames_are_counted(work, files):
    stack = V8 + "    at Module._compile (node:internal/modules/cjs/loader:1:2)\n"
    root = artifacts(work)
    done = symloom("symbolicate", "--type", "jsstack", "--symbols", root, input=stack)
    equal(done.status, 0)
    equal(done.err, f"warning: 3 of 4 frames resolved; no source map for other.js; searched {root}; "
                    "pass --symbols with the scripts and source maps of the same build\n")
    missing = symloom("symbolicate", "-q", "--type", "jsstack", "--symbols", root, "--fail-on-missing", input=stack)
    equal((missing.status, missing.out, missing.err), (3, done.out, ""))
    whole = symloom("symbolicate", "--type", "jsstack", "--symbols", root, "--fail-on-missing", input="".join(V8.splitlines(True)[:4]))
    equal((whole.status, whole.err), (0, ""))


def vlq(number):
    value, digits = abs(number) << 1 | (number < 0), ""
    while True:
        value, digit = value >> 5, value & 31
        digits += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[digit | (32 if value else 0)]
        if not value:
            return digits


def identity(script, names):
    """The map of a script of one line whose original is the same, with a token for each column; the names of some."""
    segments, last = [], 0
    for column in range(len(script)):
        number = list(names).index(column) if column in names else None
        segments.append(vlq(column and 1) + "AA" + vlq(column and 1) + ("" if number is None else vlq(number - last)))
        last = last if number is None else number
    return {"version": 3, "sources": ["test.js"], "names": list(names.values()), "mappings": ",".join(segments)}


def test_react_native_bundle_urls_are_matched(work, files):
    """Parameters of a bundle's URL begin with a question mark, or as newer versions write them."""
    root = artifacts(work, name="index.bundle", map_name="index.bundle.map")
    for parameters in ("?platform=ios&dev=true", "//&platform=ios&dev=true&app=a/b.c"):
        stack = f"    at e (http://10.0.2.2:8081/index.bundle{parameters}:1:64)\n"
        equal(ok("symbolicate", "--type", "jsstack", "--symbols", root, input=stack), "    at onFailure (http://10.0.2.2:8081/test.js:5:11)\n")


def test_script_with_the_most_similar_path_wins(work, files):
    """Of files with one name the one whose path ends most like the frame's is it, of equal ones the first."""
    root = os.path.join(work, "artifacts")
    for i, folder in enumerate(("a/x", "b/x", "c/x", "x")):
        os.makedirs(os.path.join(root, folder))
        with open(os.path.join(root, folder, "page.js.map"), "w") as f:
            json.dump({"version": 3, "sources": [f"/{i}.js"], "names": [], "mappings": "AAAA"}, f)
    for path, number in (("/srv/b/x/page.js", 1), ("/srv/x/page.js", 0), ("/page.js", 0), ("/c/x/page.js", 2)):
        equal(ok("symbolicate", "--type", "jsstack", "--symbols", root, input=f"    at f ({path}:1:1)\n"), f"    at f (/{number}.js:1:1)\n")


def test_class_fields_and_private_methods_are_named(work, files):
    """Functions of fields are called as JavaScript calls them; private names are those that the map has."""
    script = "class App{h=n=>{this.#t(n)};static m=function(){f()};#t(n){throw n}}"
    root = os.path.join(work, "artifacts")
    os.mkdir(root)
    with open(os.path.join(root, "a.js"), "w") as f:
        f.write(script + "\n//# sourceMappingURL=a.js.map")
    with open(os.path.join(root, "a.js.map"), "w") as f:
        json.dump(identity(script, {script.index("h="): "handleClick", script.index("#t(n){"): "#secret"}), f)
    stack = "".join(f"    at {name} (/srv/a.js:1:{script.index(text) + 1})\n"
                    for name, text in (("#t", "throw n"), ("App.h", "this.#t"), ("App.m", "f()")))
    functions = [line.split()[1] for line in ok("symbolicate", "--type", "jsstack", "--symbols", root, input=stack).splitlines()]
    equal(functions, ["App.#secret", "App.handleClick", "App.m"])


# a.js has `validate` from 1:0, `handleClick` from 5:2; the script calls the former within the latter, and in a function of its own, which is hidden
SCOPED = {"version": 3, "sources": ["a.js", "b.js"], "mappings": "AAAA,YAMI,QAJE,eAIwB,2BAJtB,oBCCL,uBDIS,KAHX,UCJD",
          "names": ["global", "validate", "function", "x", "block", "App", "class", "handleClick", "7"],
          "scopes": "BCAAA,BHBACCE,DG,BCBCE,CAc,CBB,BDBAIE,BFBCE,CCD,BEAH,CAK,CBB,CBA,A,"
                    "ECAA,EGKI,ECKH,GJ,IAGE,ECCC,FG,FC,Fe,EOAA,FU,EEA,FK,FK"}


def scoped(work, **changes):
    root = os.path.join(work, "artifacts")
    os.makedirs(root, exist_ok=True)
    for name, text in (("a.min.js", "function m(){minified()}\n//# sourceMappingURL=a.min.js.map"), ("a.min.js.map", json.dumps({**SCOPED, **changes}))):
        with open(os.path.join(root, name), "w") as f:
            f.write(text)
    return lambda stack: symloom("symbolicate", "--no-network", "--type", "jsstack", "--symbols", root, input=stack)


def test_scopes_of_a_map_name_functions(work, files):
    """They name functions and say where some were inlined, in the words of the line; what stands behind the frame stays there."""
    mapped = scoped(work)
    run = mapped("Error: x\n    at async m (https://x.y/a.min.js:1:23)\n    at new o (https://x.y/a.min.js:1:41) {\n")
    equal((run.out, run.status), ("Error: x\n    at validate (https://x.y/a.js:3:7)\n    at async handleClick (https://x.y/a.js:7:5)\n"
                                  "    at new handleClick (https://x.y/a.js:7:31) {\n", 0))
    equal(mapped("10:00 E m@https://x.y/a.min.js:1:23\n").out, "10:00 E validate@https://x.y/a.js:3:7\n10:00 E handleClick@https://x.y/a.js:7:5\n")
    equal(mapped(r'{"stack":"Error\n    at m (https://x.y/a.min.js:1:23)\n    at n (https://x.y/a.min.js:1:13)"}').out,
          r'{"stack":"Error\n    at validate (https://x.y/a.js:3:7)\n    at handleClick (https://x.y/a.js:7:5)\n    at handleClick (https://x.y/a.js:7:5)"}')
    equal(mapped("    at m (https://x.y/a.min.js:1:23)").out, "    at validate (https://x.y/a.js:3:7)\n    at handleClick (https://x.y/a.js:7:5)")


def test_frames_hidden_by_scopes_are_dropped(work, files):
    """The frame goes when that of its caller follows, which gets its place if both are of one function. With more in its line it stays."""
    mapped = scoped(work)
    hidden, caller = "    at o (https://x.y/a.min.js:1:63)\n", "    at p (https://x.y/a.min.js:1:13)\n"
    shown = ["    at validate (https://x.y/a.js:3:9)\n", "    at handleClick (https://x.y/a.js:7:5)\n"]
    equal(mapped("E\n" + hidden + caller).out, "E\n" + shown[1])
    equal(mapped("E\n" + hidden).out, "E\n" + shown[0])
    equal(mapped("E at o (https://x.y/a.min.js:1:63)\n" + caller).out, "E at validate (https://x.y/a.js:3:9)\n" + shown[1])
    inlined = "    at p (https://x.y/a.min.js:1:23)\n"
    equal(mapped(hidden + inlined).out, shown[0] + shown[1])


def test_malformed_scopes_are_reported_and_ignored(work, files):
    """They are told of; functions are those of the script, and places stay."""
    for scopes, item in ((SCOPED["scopes"][:-1], 28), (7, 1), ("BFAA", 1)):
        run = scoped(work, scopes=scopes)("    at m (https://x.y/a.min.js:1:13)\n")
        equal((run.out, run.status), ("    at m (https://x.y/a.js:7:5)\n", 0))
        contains(run.err, f"item {item} of `scopes` in the source map is malformed")
