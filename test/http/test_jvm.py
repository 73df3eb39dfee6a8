"""POST /symbolicate-jvm: frames of obfuscated JVM programs, by mappings and bundles of any source."""
import contextlib, io, json, os, re, struct, zipfile, zlib

from harness import Service, Upstream, equal, http_source, wait_until

ID, OTHER, BUNDLE = ("8236f5cf-52c8-4e35-a7cf-01421e4c2c88", "246fb328-fc4e-406a-87ff-fc35f6149d8f",
                     "550e8400-e29b-11d4-a716-446655440000")
MAPPING = """# compiler: R8
some.pack.Main -> a.b:
# {"id":"sourceFile","fileName":"Main.kt"}
    1:1:void some.pack.Util.check(int):3:3 -> c
    1:1:void run(java.lang.String):2 -> c
    2:2:void $r8$lambda$p():0:0 -> d
    # {"id":"com.android.tools.r8.synthesized"}
    void bare() -> e
some.pack.Oops -> a.e:
    void <init>() -> <init>
"""


def places(uuid, what):
    simple = uuid.replace("-", "")
    return f"/{simple[:2]}/{simple[2:]}/{what}"


def bundle(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        manifest = {f"files/_/_/{name}.jvm": {"url": f"~/{name}.jvm", "type": "source"} for name in files}
        z.writestr("manifest.json", json.dumps({"debug_id": BUNDLE, "files": manifest}))
        for name, text in files.items():
            z.writestr(f"files/_/_/{name}.jvm", text)
    return b"SYSB\2\0\0\0" + out.getvalue()


def asked(up, **keys):
    return {"sources": [http_source(up.url, layout={"type": "unified"})], "modules": [{"type": "proguard", "uuid": ID}], **keys}


def frame(function, line=None, index=0, module="a.b", **keys):
    return {"function": function, "module": module, "index": index, **({} if line is None else {"lineno": line}), **keys}


def symbolicate(s, body, status=200):
    answered, _, data = s.post("/symbolicate-jvm", body)
    equal(answered, status, data)
    return json.loads(data) if status == 200 else data


def told(frames):
    return [(f["module"], f["function"], f.get("filename"), f.get("lineno"), f["index"]) for f in frames]


def test_mappings_are_found_in_every_kind_of_source(work, objects):
    with Upstream({places(ID, "proguard"): MAPPING.encode()}) as up, Service(work) as s:
        frames = [frame("c", 1, 7), frame("x", 3, 8, "no.Where"), frame("e", None, 9)]
        body = asked(up, exceptions=[{"type": "e", "module": "a"}, {"type": "Error", "module": "java.lang"}],
                     stacktraces=[{"exception": {"type": "e", "module": "a"}, "frames": frames}, {"frames": []}],
                     classes=["a.b", "nope", "a.b"])
        answer = symbolicate(s, body)
        equal(list(answer), ["status", "exceptions", "stacktraces", "classes", "errors"])
        equal(answer["exceptions"], [{"type": "Oops", "module": "some.pack"}, {"type": "Error", "module": "java.lang"}])
        equal(answer["stacktraces"][0]["exception"], {"type": "Oops", "module": "some.pack"})
        equal(told(answer["stacktraces"][0]["frames"]),
              [("some.pack.Main", "run", "Main.kt", 2, 7), ("some.pack.Util", "check", "Util.kt", 3, 7),
               ("no.Where", "x", None, 3, 8), ("some.pack.Main", "bare", "Main.kt", 0, 9)])
        equal((answer["stacktraces"][1], answer["classes"], answer["errors"]),
              ({"exception": None, "frames": []}, {"a.b": "some.pack.Main"}, []))
        callee = symbolicate(s, {**body, "options": {"frame_order": "callee_first"}})
        equal(told(callee["stacktraces"][0]["frames"])[:2],
              [("some.pack.Util", "check", "Util.kt", 3, 7), ("some.pack.Main", "run", "Main.kt", 2, 7)])
        equal(up.hits[places(ID, "proguard")], 1, "the second time from the cache")


def test_sent_fields_of_mapped_frames_are_kept(work, objects):
    with Upstream({places(ID, "proguard"): MAPPING.encode()}) as up, Service(work) as s:
        sent = [frame("c", None, 1, signature="(Ljava/lang/String;)V", platform="java", context_line="x", pre_context=["a"], vars={}),
                frame("d", None, 2), frame("d", 2, 3), frame("f", 5, 4, "x.Y", signature="(La/b;)I", in_app=False),
                frame("e", 5, 5, in_app=False)]
        frames = symbolicate(s, asked(up, release_package="some.pack", stacktraces=[{"frames": sent}]))["stacktraces"][0]["frames"]
        equal(frames[0], {"platform": "java", "function": "run", "filename": "Main.kt", "module": "some.pack.Main", "abs_path": "Main.kt",
                          "lineno": 2, "pre_context": ["a"], "context_line": "x", "in_app": True, "index": 1,
                          "signature": "(java.lang.String)"})
        equal((frames[1]["index"], frames[1]["lineno"], frames[1]["method_synthesized"]), (2, 0, True))
        equal(frames[2], {"function": "f", "module": "x.Y", "lineno": 5, "in_app": False, "index": 4, "signature": "(some.pack.Main): int"})
        equal((frames[3]["index"], frames[3]["in_app"], len(frames)), (5, False, 4))


def test_unusable_mappings_are_listed_as_errors(work, objects):
    with Upstream({places(ID, "proguard"): b"not a mapping"}) as up, Service(work) as s:
        body = asked(up, stacktraces=[{"frames": [frame("c", 1)]}])
        body["modules"] = [{"type": "proguard", "uuid": OTHER}, {"type": "proguard", "uuid": ID.replace("-", "").upper()}]
        answer = symbolicate(s, body)
        equal(answer["errors"], [{"uuid": OTHER, "type": "missing"}, {"uuid": ID, "type": "invalid"}])
        equal(answer["stacktraces"][0]["frames"], [frame("c", 1)])


def test_error_details_of_mappings_are_shown_when_configured(work, objects):
    with Upstream({places(ID, "proguard"): b"not a mapping"}) as up, Service(work, {"jvm": {"error_details": True}}) as s:
        body = asked(up)
        body["modules"].append({"type": "proguard", "uuid": OTHER})
        equal(symbolicate(s, body)["errors"],
              [{"uuid": ID, "type": "invalid",
                "detail": "The proguard mapping file is invalid: The file is not a valid ProGuard file."},
               {"uuid": OTHER, "type": "missing", "detail": "The proguard mapping file is missing: no symbol source has the file."}])
        for words in ((ID, "not a valid ProGuard file"), (OTHER, "no symbol source has the file")):
            wait_until(words, lambda words=words: any(all(word in line for word in (*words, "cannot use the ProGuard mapping of a JVM module", "INFO"))
                                                      for line in s.logged().splitlines()))


def test_chained_mappings_are_applied_in_turn(work, objects):
    """A library that was shrunk before the program that has it."""
    routes = {places(ID, "proguard"): b"lib.a -> x:\n    1:1:void b():5:5 -> m\nlib.Only -> o:\n    1:1:void q():7:7 -> m\n",
              places(OTHER, "proguard"): b"lib.Widget -> lib.a:\n    5:5:void inner():20:20 -> b\n    5:5:void draw():30 -> b\n"}
    body = {"exceptions": [{"type": "x", "module": ""}], "classes": ["x", "o"],
            "stacktraces": [{"frames": [frame("m", 1, 0, "x"), frame("m", 1, 1, "o"), frame("z", 3, 2, "lib.a")]}]}
    for chain, traced, named in ((False, [("lib.a", "b", "a.java", 5, 0)], "lib.a"),
                                 (True, [("lib.Widget", "draw", "Widget.java", 30, 0), ("lib.Widget", "inner", "Widget.java", 20, 0)],
                                  "lib.Widget")):
        with Upstream(routes) as up, Service(work, {"jvm": {"chain_mappings": chain}}) as s:
            asks = asked(up, **body)
            asks["modules"].append({"type": "proguard", "uuid": OTHER})
            answer = symbolicate(s, asks)
            equal(told(answer["stacktraces"][0]["frames"]),
                  traced + [("lib.Only", "q", "Only.java", 7, 1), ("lib.Widget", "z", "Widget.java", 3, 2)])
            equal(answer["exceptions"], [{"type": named.split(".")[1], "module": "lib"}])
            equal(answer["classes"], {"x": named, "o": "lib.Only"})


def test_metrics_count_the_contents_of_requests(work, objects):
    with Upstream({places(ID, "proguard"): MAPPING.encode()}) as up, Service(work) as s:
        symbolicate(s, asked(up, exceptions=[{"type": "e", "module": "a"}, {"type": "E", "module": ""}], classes=["a.b"],
                             stacktraces=[{"frames": [frame("c", 1, platform="java"), frame("x", 1, module="no.Where")]}]))
        text = s.request("GET", "/metrics")[2].decode()
        frames = dict(re.findall(r'symloom_frames_total\{origin="symbolicate_jvm",(.*)\} (\d+)', text))
        equal(frames, {'platform="java",status="symbolicated"': "2", 'platform="none",status="missing"': "1"})
        items = dict(re.findall(r'symloom_symbolication_items_sum\{origin="symbolicate_jvm",item="(.*)",platform="none"\} (\d+)', text))
        equal(items, {"num_exceptions": "2", "unsymbolicated_exceptions": "1", "num_classes": "1", "unsymbolicated_classes": "0",
                      "num_stacktraces": "1", "num_frames": "3", "unsymbolicated_frames": "1"})


def test_truncated_mapping_table_is_remade_while_in_use(work, objects):
    mapping = "".join(f"p.Class{i} -> c{i}:\n    1:1:void f():{i + 1}:{i + 1} -> m\n" for i in range(20000))
    with Upstream({places(ID, "proguard"): mapping.encode()}) as up, Service(work) as s:
        body = asked(up, stacktraces=[{"frames": [frame("m", 1, i, f"c{i}") for i in range(0, 20000, 1000)]}])
        wanted = [(f"p.Class{i}", "f", f"Class{i}.java", i + 1, i) for i in range(0, 20000, 1000)]
        for _ in range(2):
            answer = symbolicate(s, body)
            equal((told(answer["stacktraces"][0]["frames"]), answer["errors"]), (wanted, []))
            for folder, _, names in os.walk(os.path.join(s.cache, "proguard")):
                for name in names:
                    with contextlib.suppress(FileNotFoundError):
                        os.truncate(os.path.join(folder, name), 4096)
        answer = symbolicate(s, body)
        equal((told(answer["stacktraces"][0]["frames"]), answer["errors"]), (wanted, []))
        equal((s.process.poll(), "cache entry damaged" in s.logged()), (None, True))


def test_the_first_mapping_that_knows_the_class_answers(work, objects):
    routes = {places(ID, "proguard"): b"p.A -> a:\n    1:1:void x():5:5 -> m\n",
              places(OTHER, "proguard"): b"q.A -> a:\n    2:2:void z():9:9 -> m\nq.B -> b:\n    1:1:void y():7:7 -> m\n"}
    with Upstream(routes) as up, Service(work) as s:
        body = asked(up, stacktraces=[{"frames": [frame("m", 2, 0, "a"), frame("m", 1, 1, "b")]}])
        body["modules"].append({"type": "proguard", "uuid": OTHER})
        equal(told(symbolicate(s, body)["stacktraces"][0]["frames"]), [("p.A", "m", "A.java", 2, 0), ("q.B", "y", "B.java", 7, 1)])


def test_frames_get_source_context_from_bundles(work, objects):
    lines = "".join(f"line {i}\r\n" for i in range(1, 9)) + "y" * 200 + "\n"
    routes = {places(ID, "proguard"): MAPPING.encode(), places(BUNDLE, "sourcebundle"): bundle(**{"some/pack/Main": lines})}
    with Upstream(routes) as up, Service(work) as s:
        sent = [frame("c", 1, 1), frame("f", 9, 2, "some.pack.Main$Inner"), frame("f", 10, 3, "some.pack.Main", context_line="as sent")]
        body = asked(up, stacktraces=[{"frames": sent}])
        body["modules"].append({"type": "source", "uuid": BUNDLE})
        frames = symbolicate(s, body)["stacktraces"][0]["frames"]
        equal((frames[0]["pre_context"], frames[0]["context_line"], frames[0]["post_context"]),
              (["line 1"], "line 2", [f"line {i}" for i in range(3, 8)]))
        equal(("context_line" in frames[1], frames[2]["context_line"]), (False, "y" * 140 + " {snip}"))
        equal(frames[3]["context_line"], "as sent")
        body["options"] = {"apply_source_context": False}
        equal("context_line" in symbolicate(s, body)["stacktraces"][0]["frames"][0], False)


def test_source_paths_are_guessed_from_module_and_file(work, objects):
    instrumented = "io/sentry/samples/MainActivity"
    files = ["OtherActivity", "DifferentActivity", instrumented, "com/foo/bar/ui/activities/base/BaseActivity", "a/b/C", "a/b/X.android"]
    rows = [("OtherActivity", "OtherActivity.java", 0), ("DifferentActivity", "DifferentActivity", 1),
            ("io.sentry.samples.MainActivity", None, 2), ("io.sentry.samples.MainActivity$InnerClass", "MainActivity.kt", 2),
            ("io.sentry.samples.MainActivity$InnerClass", "SourceFile", 2), ("io.sentry.samples.MainActivity$InnerClass", None, 2),
            ("com.foo.bar.ui.activities.base.BaseActivity$$ExternalSyntheticLambda2", None, 3), ("a.b.C", "R8$$SyntheticClass", 4),
            ("a.b.C", "X.android.kt", 5)]
    routes = {places(BUNDLE, "sourcebundle"): bundle(**{name: f"this is {name}\n" for name in files})}
    with Upstream(routes) as up, Service(work) as s:
        sent = [frame("f", 1, i, module, **({"abs_path": path} if path else {})) for i, (module, path, _) in enumerate(rows)]
        body = {**asked(up, stacktraces=[{"frames": sent}]), "modules": [{"type": "source", "uuid": BUNDLE}]}
        equal([f.get("context_line") for f in symbolicate(s, body)["stacktraces"][0]["frames"]], [f"this is {files[n]}" for *_, n in rows])


WHOLE_FRAMES = """# compiler: R8
io.sentry.sample.-$$Lambda$r3Avcbztes2hicEObh02jjhQqd4 -> e.a.c.a:
    int a -> a
io.sentry.sample.MainActivity -> io.sentry.sample.MainActivity:
    1:1:void bar():54:54 -> t
    1:1:void foo():44 -> t
    1:1:void onClickHandler(android.view.View):40 -> t
org.slf4j.helpers.Util$ClassContextSecurityManager -> org.a.b.g$a:
androidx.x.DiagnosticComposeException -> kj:
android.arch.core.executor.ArchTaskExecutor -> a.a.a.a.c:
com.example.App -> x.App:
# {"id":"sourceFile","fileName":"App.java"}
    0:4:void barInternalInject():47:47 -> onCreate
    0:4:void onCreate():42 -> onCreate
    5:6:void barInternalInject():48:48 -> onCreate
    5:6:void onCreate():42 -> onCreate
    21:24:void onCreate():43:43 -> onCreate
p.CustomThreadFactory$$ExternalSyntheticLambda0 -> x.L:
# {"id":"sourceFile","fileName":"R8$$SyntheticClass"}
# {"id":"com.android.tools.r8.synthesized"}
    0:25:void p.CustomThreadFactory$$InternalSyntheticLambda$1$5320$0.run$bridge():0:0 -> run
    # {"id":"com.android.tools.r8.synthesized"}
p.Bare -> yy.zX:
    java.lang.StackTraceElement _COROUTINE.ArtificialStackFrames.coroutineBoundary() -> VF
    void other() -> o
"""


def test_frames_are_mapped_by_line_or_signature(work, objects):
    view, signature = "io.sentry.sample.MainActivity", "(Landroid/view/View;)V"
    with Upstream({places(ID, "proguard"): WHOLE_FRAMES.encode()}) as up, Service(work) as s:
        def frames(*sent, **keys):
            answer = symbolicate(s, asked(up, stacktraces=[{"frames": list(sent)}], **keys))
            equal(answer["errors"], [])
            return answer["stacktraces"][0]["frames"]

        lambda_class = "io.sentry.sample.-$$Lambda$r3Avcbztes2hicEObh02jjhQqd4"
        mapped = frames(frame("onClick", 2, 0, "e.a.c.a"), frame("t", 1, 1, view), frame("t", None, 2, view, signature=signature),
                        frame("onClickHandler", None, 3, view, signature=signature),
                        frame("x", None, 4, "io.sentry.sample.ClassDoesNotExist", signature=signature))
        equal(told(mapped), [(lambda_class, "onClick", "-.java", 2, 0), (view, "onClickHandler", "MainActivity.java", 40, 1),
                             (view, "foo", "MainActivity.java", 44, 1), (view, "bar", "MainActivity.java", 54, 1),
                             (view, "onClickHandler", "MainActivity.java", 40, 2), (view, "onClickHandler", "MainActivity.java", 0, 3),
                             ("io.sentry.sample.ClassDoesNotExist", "x", None, None, 4)])
        equal((mapped[0]["abs_path"], [f.get("signature") for f in mapped[4:]]), ("-.java", ["(android.view.View)"] * 3))
        equal(told(frames(frame("onCreate", None, 0, "x.App"))), [("com.example.App", "onCreate", "App.java", 0, 0)])
        bridge, = frames(frame("run", None, 0, "x.L"))
        equal((bridge["function"], bridge["filename"], bridge["lineno"], bridge["method_synthesized"]),
              ("run$bridge", "CustomThreadFactory.java", 0, True))
        equal(frames(frame("run", 3, 0, "x.L")), [])
        equal([(f["function"], f["filename"], f["lineno"]) for f in frames(frame("VF", None, 0, "yy.zX"), frame("o", 42, 1, "yy.zX"))],
              [("coroutineBoundary", "ArtificialStackFrames.java", 0), ("other", "Bare.java", 42)])
        own = frames(frame("c", 1, 0, "org.slf4j.x"), frame("f", 1, 1, "org.a.b.g$a"), frame("f", 1, 2, "org.a.b.g$a", in_app=False),
                     release_package="org.slf4j")
        equal([f.get("in_app") for f in own], [None, True, False])
        answer = symbolicate(s, asked(up, exceptions=[{"type": "g$a", "module": "org.a.b"}, {"type": "kj", "module": ""}],
                                      classes=["a.a.a.a.c", "nope"]))
        equal(answer["exceptions"], [{"type": "Util$ClassContextSecurityManager", "module": "org.slf4j.helpers"},
                                     {"type": "DiagnosticComposeException", "module": "androidx.x"}])
        equal(answer["classes"], {"a.a.a.a.c": "android.arch.core.executor.ArchTaskExecutor"})


def test_compiler_made_frames_are_dropped(work, objects):
    """With a line, what R8 made is gone; what no mapping knows stays as it was sent, also with line 0."""
    synthesized = '# {"id":"com.android.tools.r8.synthesized"}'
    mapping = f"""com.example.Foobar -> a.a:
# {{"id":"sourceFile","fileName":"Foobar.kt"}}
    12:12:void foo():10:10 -> a
com.example.MainActivity -> com.example.MainActivity:
# {{"id":"sourceFile","fileName":"MainActivity.kt"}}
    1:1:void $r8$lambda$p(android.view.View):0:0 -> a
    {synthesized}
    6:6:void onCreate$lambda$1$lambda$0(android.view.View):14:14 -> b
com.example.MainActivity$$ExternalSyntheticLambda0 -> a.c:
# {{"id":"sourceFile","fileName":"R8$$SyntheticClass"}}
{synthesized}
    1:1:void onClick(android.view.View):0:0 -> onClick
    {synthesized}
"""
    view, activity = "android.view.View", "com.example.MainActivity"
    sent = [frame("a", 12, 0, "a.a"), frame("b", 6, 1, activity), frame("a", 1, 2, activity), frame("onClick", 1, 3, "a.c"),
            frame("performClick", 7659, 4, view), frame("-$$Nest$mperformClickInternal", 0, 5, view), frame("run", 30000, 6, view + "$PerformClick")]
    with Upstream({places(ID, "proguard"): mapping.encode()}) as up, Service(work) as s:
        for order in ("callee_first", "caller_first"):
            turn = lambda list_: list_ if order == "callee_first" else list_[::-1]
            body = asked(up, stacktraces=[{"frames": turn(sent)}], options={"frame_order": order})
            frames = turn(symbolicate(s, body)["stacktraces"][0]["frames"])
            equal(told(frames[:2]), [("com.example.Foobar", "foo", "Foobar.kt", 10, 0),
                                     (activity, "onCreate$lambda$1$lambda$0", "MainActivity.kt", 14, 1)])
            equal(frames[2:], sent[4:])


def test_inlined_chain_is_expanded_with_source_context(work, objects):
    """Its outermost call was made by the compiler; the others come with the text of their files, which are in two bundles."""
    samples = "io.sentry.samples.instrumentation.ui"
    edit, service, other = (f"{samples}.{name}" for name in ("EditActivity", "SomeService", "AnotherClassInSameFile"))
    mapping = f"""{edit}$$ExternalSyntheticLambda0 -> {samples}.g:
# {{"id":"sourceFile","fileName":"R8$$SyntheticClass"}}
# {{"id":"com.android.tools.r8.synthesized"}}
    36:44:void {other}.helloOtherInner():26:26 -> onMenuItemClick
    36:44:void {other}.otherFun():21:21 -> onMenuItemClick
    36:44:void {other}.helloOther():17:17 -> onMenuItemClick
    36:44:void {service}.helloInner():10:10 -> onMenuItemClick
    36:44:void {service}.helloThere():5:5 -> onMenuItemClick
    36:44:boolean {edit}.onCreate$lambda-1(android.view.MenuItem):37:37 -> onMenuItemClick
    36:44:boolean onMenuItemClick(android.view.MenuItem):0:0 -> onMenuItemClick
    # {{"id":"com.android.tools.r8.synthesized"}}
{edit} -> {edit}:
# {{"id":"sourceFile","fileName":"EditActivity.kt"}}
"""
    text = lambda name, count: "".join(f"{name} {i}\n" for i in range(1, count + 1))
    second = "550e8400-e29b-11d4-a716-446655440001"
    routes = {places(OTHER, "proguard"): mapping.encode(),
              places(BUNDLE, "sourcebundle"): bundle(**{edit.replace(".", "/"): text("edit", 60)}),
              places(second, "sourcebundle"): bundle(**{service.replace(".", "/"): text("service", 12)})}
    with Upstream(routes) as up, Service(work) as s:
        sent = frame("onMenuItemClick", 40, 18, f"{samples}.g", filename="R8$$SyntheticClass", in_app=True)
        body = asked(up, stacktraces=[{"frames": [sent]}])
        body["modules"] = [{"type": kind, "uuid": uuid} for kind, uuid in (("source", BUNDLE), ("proguard", OTHER), ("source", second), ("proguard", ID))]
        answer = symbolicate(s, body)
        frames = answer["stacktraces"][0]["frames"]
        equal([(f["module"], f["function"], f["filename"], f["lineno"], f.get("context_line")) for f in frames],
              [(edit, "onCreate$lambda-1", "EditActivity.kt", 37, "edit 37"), (service, "helloThere", "SomeService.java", 5, "service 5"),
               (service, "helloInner", "SomeService.java", 10, "service 10"), (other, "helloOther", "AnotherClassInSameFile.java", 17, None),
               (other, "otherFun", "AnotherClassInSameFile.java", 21, None),
               (other, "helloOtherInner", "AnotherClassInSameFile.java", 26, None)])
        equal({(f["index"], f["in_app"]) for f in frames}, {(18, True)})
        equal(answer["errors"], [{"uuid": ID, "type": "missing"}])


def many_large_texts(count, size):
    """A bundle whose files are all the same bytes of the archive, which inflate to `size` blanks."""
    pack = lambda text: (lambda z: z.compress(text) + z.flush())(zlib.compressobj(9, zlib.DEFLATED, -15))
    names = [f"files/_/_/p/C{i}.jvm" for i in range(count)]
    files = {name: {"url": f"~/p/C{i}.jvm", "type": "source"} for i, name in enumerate(names)}
    text, out, directory = b" " * size, b"SYSB\2\0\0\0", b""
    for plain, entries in ((json.dumps({"debug_id": BUNDLE, "files": files}).encode(), ["manifest.json"]), (text, names)):
        packed, crc = pack(plain), zlib.crc32(plain)
        for name in entries:
            directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 8, 0, 33, crc, len(packed), len(plain), len(name),
                                     0, 0, 0, 0, 0, len(out)) + name.encode()
        out += struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 8, 0, 33, crc, len(packed), len(plain), 0, 0) + packed
    return out + directory + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count + 1, count + 1, len(directory), len(out), 0)


def test_source_text_of_one_request_is_limited(work, objects):
    """Small bundles may hold any amount of text; what is read of them for one request ends at 1 GiB."""
    routes = {places(BUNDLE, "sourcebundle"): many_large_texts(40, 60 << 20)}
    with Upstream(routes) as up, Service(work) as s:
        body = {"sources": [http_source(up.url, layout={"type": "unified"})], "modules": [{"type": "source", "uuid": BUNDLE}],
                "stacktraces": [{"frames": [frame("m", 1, i, f"p.C{i}") for i in range(40)]}]}
        frames = symbolicate(s, body)["stacktraces"][0]["frames"]
        equal(len(frames), 40)
        equal(sum("context_line" in f for f in frames), 18)
        wait_until("the line in the log", lambda: "no more source files are read for this request: together they are too large" in s.logged())


def test_negative_line_is_treated_as_unknown(work, objects):
    """JVMs say -2 of native code and -1 of what they do not know."""
    with Upstream({places(ID, "proguard"): MAPPING.encode()}) as up, Service(work) as s:
        for line in (-1, -2, -9007199254740993):
            body = asked(up, stacktraces=[{"frames": [frame("c", 1, 0), frame("e", line, 1), frame("f", line, 2, "x.Y")]}])
            frames = symbolicate(s, body)["stacktraces"][0]["frames"]
            equal(told(frames)[2:], [("some.pack.Main", "bare", "Main.kt", 0, 1), ("x.Y", "f", None, None, 2)])
        for line in (-1.5, 4294967296, "-2"):
            symbolicate(s, asked(up, stacktraces=[{"frames": [frame("c", line)]}]), 422)


def test_invalid_request_bodies_are_refused(work, objects):
    with Service(work) as s:
        equal(symbolicate(s, {"sources": []}),
              {"status": "completed", "exceptions": [], "stacktraces": [], "classes": {}, "errors": []})
        for body in [{}, {"sources": [], "modules": [{"type": "elf", "uuid": ID}]}, {"sources": [], "modules": [{"type": "source"}]},
                     {"sources": [], "modules": [{"type": "source", "uuid": "x"}]}, {"sources": [], "exceptions": [{"type": "x"}]},
                     {"sources": [], "stacktraces": [{}]}, {"sources": [], "stacktraces": [{"frames": [{"function": "f", "module": "m"}]}]},
                     {"sources": [], "options": {"frame_order": "x"}}]:
            symbolicate(s, body, 422)
        equal(s.post("/symbolicate-jvm", "{")[0], 400)
