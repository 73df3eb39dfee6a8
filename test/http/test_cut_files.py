"""Files of the cache that are cut while the service has them mapped: of every kind, and for every kind of jobs. What a look-up meets
is made anew, and nothing ends the process."""
import contextlib, glob, json, os, random, re

import artifacts as js
import cores
import dumps
import harness
import test_code as code
import test_context as context
import test_crash_files as crash
import test_dotnet as dotnet
import test_faults as faults
import test_jvm as jvm
import test_named as named
import test_profiler as profiler
import test_push_symbols as push_symbols
import test_symbfile as symbfile
from harness import Service, Upstream, equal, frames
from test_symbolicate import FILES, I, MAIN, ask as ask_mozilla, job, place

PAGE = 4096


def cut_all(s, kinds, share):
    """How many files there were that are larger than a page, which alone are mapped."""
    cut = 0
    for path in faults.cached_files(s.cache):
        with contextlib.suppress(FileNotFoundError):
            size = os.path.getsize(path)
            if size > PAGE and not path.endswith(".metadata") and os.path.relpath(path, s.cache).split(os.sep)[0] in kinds:
                os.truncate(path, int(size * share) // PAGE * PAGE)  # what is missing of a page would be zeros
                cut += 1
    return cut


def check_cuts(s, kinds, ask):
    """`ask` fails unless the answer is right; one that meets a cut file may say that it could not be had."""
    ask()
    for share in (0.5, 0.0, 0.9, 0.0):
        equal(cut_all(s, kinds, share) > 0, True, f"large files of {kinds}")
        for last in (False, False, True):
            try:
                ask()
            except (AssertionError, KeyError) as error:
                equal((last, s.process.poll()), (False, None), error)
    equal(s.process.poll(), None)


def test_truncated_portable_pdb_tables_are_remade(work, objects):
    pdb = dotnet.PortablePdb()
    document = pdb.document("/src/app.cs")
    for i in range(2000):
        pdb.method(document, [(0, 1 + i % 100), (4 + i % 7, 3 + i % 90)])
    with Upstream({dotnet.PATH: pdb.data()}) as up, faults.leaks_accepted(), Service(work) as s:
        def ask():
            answer = s.symbolicate(dotnet.request(up.url, [(1 + i, 0) for i in range(0, 2000, 50)]))
            equal([f.get("lineno") for f in frames(answer)], [1 + i % 100 for i in range(0, 2000, 50)])
        check_cuts(s, ["ppdb_caches", "objects"], ask)


def test_truncated_bundles_are_remade(work, objects):
    text = "\n".join(f"{i} {random.Random(i).getrandbits(400):x}" for i in range(20000))
    data = context.bundle({"files/s": ({"path": "/a.cc"}, text.encode())})
    with Upstream(context.paths(objects, **{".src.zip": data})) as up, faults.leaks_accepted(), Service(work) as s:
        body = harness.request(objects.module(), [context.sent(objects, abs_path="/a.cc", lineno=n) for n in (5, 19000)],
                               sources=[context.source(up)])

        def ask():
            answer = s.symbolicate(body)
            found = [f.get("context_line", "").split(" ")[0] for f in frames(answer)]
            equal(found, ["4", "18999"])
        check_cuts(s, ["objects"], ask)


def test_truncated_unwind_tables_are_remade(work, objects):
    program = crash.crashing(work, "-O1", "-fomit-frame-pointer")
    dump, modules = dumps.of_crash(program, work, "pointer")
    with Upstream(crash.served(modules)) as up, faults.leaks_accepted(), Service(work) as s:
        sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}]
        form = crash.form(upload_file_minidump=dump, sources=sources)
        first = []

        def ask():
            status, answer = crash.send(s, "/minidump", form)
            equal(status, 200, answer)
            found = [(f.get("function"), f["trust"]) for f in answer["stacktraces"][0]["frames"]]
            first.extend(found if not first else [])
            equal(found, first)
        check_cuts(s, ["cficaches", "symcaches", "objects"], ask)


def test_truncated_files_are_remade_for_cores(work, objects):
    program = cores.build(work, cores.NULL, "t", "-static")
    with open(cores.by_kernel(program, work), "rb") as f:
        core = f.read()
    with Upstream(crash.served([program])) as up, faults.leaks_accepted(), Service(work) as s:
        form = crash.form(upload_file_core=core, sources=[{"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}])

        def ask():
            status, answer = crash.send(s, "/core", form)
            equal(status, 200, answer)
            found = [(f.get("function"), f["trust"]) for f in answer["stacktraces"][0]["frames"][:3]]
            equal(found, [("inner", "context"), ("middle", "context"), ("main", "cfi")])
        check_cuts(s, ["cficaches", "symcaches", "objects"], ask)


def test_truncated_upload_indexes_are_remade(work, objects):
    data, _, addresses = faults.large_program(work)
    some = dict(list(addresses.items())[::100])
    path = os.path.join(work, "large.so")
    with faults.leaks_accepted(), symbfile.service(work) as s:
        symbfile.push("executable", "-e", path, "-u", f"http://127.0.0.1:{s.port}/", "-t", "ci:secret")

        def ask():
            chains = push_symbols.resolve(s, path, list(some.values()))
            equal([chain[0].get("function") for chain in chains], list(some))
        check_cuts(s, ["symbfile_index"], ask)


def large_script(url):
    """A script of many lines, its source map, and what the frames of some lines become."""
    chooser, previous, lines, wanted = random.Random(1), 0, [], {}
    for n in range(20000):
        place = chooser.randrange(20000)
        lines.append("AA" + js.vlq(place - previous) + "A")
        previous = place
        if n % 997 == 0:
            wanted[n + 1] = place + 1
    source_map = json.dumps({"version": 3, "sources": ["a.js"], "names": [], "mappings": ";".join(lines)})
    return "".join(f"f({n});\n" for n in range(20000)) + f"//# sourceMappingURL={url}.map\n", source_map, wanted


def check_script(up, s, wanted, kinds):
    body = js.asked(up, [js.frame("http://example.com/app.js", n, 1) for n in wanted], options={"apply_source_context": False})

    def ask():
        answer = js.symbolicate(s, body)
        equal([f["lineno"] for f in frames(answer)], list(wanted.values()))
    check_cuts(s, kinds, ask)


def test_truncated_scripts_and_maps_are_remade(work, objects):
    script, source_map, wanted = large_script("app.js")
    told = [js.told(1, "~/app.js"), js.told(2, "~/app.js.map")]
    with js.Sentry(told, {"/app.js": script, "/app.js.map": source_map}) as up, faults.leaks_accepted(), Service(work) as s:
        check_script(up, s, wanted, ["sourcemap_caches"])
        check_script(up, s, wanted, ["sourcemap_caches", "sourcefiles"])


def test_truncated_scripts_with_inline_maps_are_remade(work, objects):
    script, source_map, wanted = large_script("app.js")
    script = script[:script.rindex("//#")] + "//# sourceMappingURL=" + js.data_url(source_map)
    with js.Sentry([js.told(1, "~/app.js")], {"/app.js": script}) as up, faults.leaks_accepted(), Service(work) as s:
        check_script(up, s, wanted, ["sourcemap_caches", "sourcefiles"])


def test_truncated_bundles_of_scripts_are_remade(work, objects):
    script, source_map, wanted = large_script("app.js")
    files = {f"~/{n}.js": ("minified_source", "x", {}) for n in range(200)}  # a manifest of some pages
    files["~/app.js"] = ("minified_source", script, {"sourcemap": "app.js.map"})
    files["~/app.js.map"] = ("source_map", source_map, {})
    with js.Sentry([js.bundle(7)], {"/7.zip": js.archive(files)}) as up, faults.leaks_accepted(), Service(work) as s:
        check_script(up, s, wanted, ["sourcemap_caches", "objects", "sourcefiles"])


def test_truncated_objects_are_remade_for_disassembly(work, objects):
    path, build_id, functions = profiler.built(work, "gcc")
    start, size = next((a, n) for a, n in functions if n > 40)
    with faults.leaks_accepted():
        upstream, service = profiler.serving(work, path, build_id)
        with upstream, service as s:
            first = profiler.asm(s, build_id, start, size)["instructions"]
            check_cuts(s, ["objects"], lambda: equal(profiler.asm(s, build_id, start, size).get("instructions"), first))


def test_truncated_files_are_remade_for_source_v1(work, objects):
    text = "".join(f"{n} {random.Random(n).getrandbits(400):x}\n" for n in range(2000))
    routes = {place(I): FILES[I].encode(), f"/{I[0]}/{I[1]}/{I[0]}.src.zip": code.bundle({"main": (MAIN, text)})}
    with Upstream(routes) as up, faults.leaks_accepted():
        config = {"sources": [harness.http_source(up.url, layout={"type": "native"})],
                  "mozilla": {"compat": "profiler", "sources": [up.url]}}
        with Service(work, config) as s:
            body = {"debugName": I[0], "debugId": I[1], "moduleOffset": "0x7a7a", "file": MAIN}
            check_cuts(s, ["objects"], lambda: equal(code.post(s, "/source/v1", body).get("source"), text))


UUID = "2D903291397D3D14BFCA52C7FB8C5E000"  # of the module in crash.REPORT and crash.SAMPLES
FUNCTIONS = 5000


def symbols(uuid, name):
    lines = [f"MODULE mac x86_64 {uuid} {name}", "FILE 0 /src/a.c"]
    for n in range(FUNCTIONS):
        lines += [f"FUNC {n * 16:x} 10 0 function_with_number_{n}", f"{n * 16:x} 10 {n + 1} 0"]
    return "\n".join(lines) + "\n"


def report(offsets):
    """crash.REPORT with other frames of its module."""
    frames = [f"{i}   YetAnotherMac  0x{0x10864e000 + at:016x} 0x10864e000 + {at}" for i, at in enumerate(offsets)]
    return re.sub(r"(?m)^0   .*\n1   .*$", "\n".join(frames), crash.REPORT).encode()


def test_truncated_jvm_mappings_are_remade(work, objects):
    mapping = "".join(f"p.Class{i} -> c{i}:\n    1:1:void f():{i + 1}:{i + 1} -> m\n" for i in range(20000))
    numbers = range(0, 20000, 500)
    with Upstream({jvm.places(jvm.ID, "proguard"): mapping.encode()}) as up, faults.leaks_accepted(), Service(work) as s:
        body = jvm.asked(up, stacktraces=[{"frames": [jvm.frame("m", 1, i, f"c{i}") for i in numbers]}])
        check_cuts(s, ["proguard"], lambda: equal([f["module"] for f in frames(jvm.symbolicate(s, body))], [f"p.Class{i}" for i in numbers]))


def test_truncated_files_are_remade_for_mozilla_clients(work, objects):
    module = ("large.pdb", UUID)
    numbers = range(0, FUNCTIONS, 100)
    with Upstream({place(module): symbols(UUID, "large.pdb").encode()}) as up, faults.leaks_accepted():
        with Service(work, {"mozilla": {"sources": [up.url]}}) as s:
            def ask():
                answer = ask_mozilla(s, {"jobs": [job([module], [[[0, n * 16 + 1] for n in numbers]])]})
                equal([f["function"] for f in answer["results"][0]["stacks"][0]], [f"function_with_number_{n}" for n in numbers])
            check_cuts(s, ["symcaches", "mozilla_syms"], ask)


def serving_reports(work):
    """A service, and what sources it is to be asked with for symbols of the reports' module."""
    up = Upstream({f"/YetAnotherMac/{UUID}/YetAnotherMac.sym": symbols(UUID, "YetAnotherMac").encode(),
                   f"/app/{UUID}/app.sym": symbols(UUID, "app").encode(),
                   "/report": report(range(1, FUNCTIONS * 16, 1600))})
    return up, [harness.http_source(up.url, layout={"type": "native"}, filetypes=["breakpad"])]


def check_report(s, ask):
    numbers = range(0, FUNCTIONS, 100)
    check_cuts(s, ["symcaches"], lambda: equal([f.get("function") for f in frames(ask())[:len(numbers)]],
                                               [f"function_with_number_{n}" for n in numbers]))


def test_truncated_files_are_remade_for_apple_reports(work, objects):
    up, sources = serving_reports(work)
    with up, faults.leaks_accepted(), Service(work) as s:
        form = crash.form(apple_crash_report=report(range(1, FUNCTIONS * 16, 1600)), sources=sources)
        check_report(s, lambda: crash.send(s, "/applecrashreport", form)[1])


def test_truncated_files_are_remade_for_downloaded_crash_files(work, objects):
    up, sources = serving_reports(work)
    with up, faults.leaks_accepted(), Service(work) as s:
        body = {"symbolicate": {"type": "applecrashreport", "storage_url": up.url + "/report"}, "sources": sources}
        check_report(s, lambda: crash.anywhere(s, body)[1])


def test_truncated_symcaches_are_remade_for_named_files(work, objects):
    up, sources = serving_reports(work)
    with up, faults.leaks_accepted(), Service(work) as s:
        def ask():
            answer = named.named(s, crash.SAMPLES.encode(), ("sources", json.dumps(sources)))[1]
            equal("function_with_number_0  (in app) + 5" in answer.get("named", ""), True, answer)
        check_cuts(s, ["symcaches"], ask)


def test_truncated_symcaches_are_remade_for_texts(work, objects):
    up, sources = serving_reports(work)
    raw = bytes.fromhex(UUID[:32])
    build_id = (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex() + "00000000"
    numbers = range(0, FUNCTIONS, 100)
    text = "".join(f"    #{i} 0x{0x7f0000000000 + n * 16 + 1:x}  (/opt/app+0x{n * 16 + 1:x}) (BuildId: {build_id})\n" for i, n in enumerate(numbers))
    with up, faults.leaks_accepted(), Service(work) as s:
        def ask():
            headers = {"Content-Type": f"multipart/form-data; boundary={crash.BOUNDARY}", "Accept": "text/plain"}
            answer = s.request("POST", "/symbolicate-text", crash.form(text=text.encode(), sources=sources), headers)[2]
            equal([f" in function_with_number_{n}".encode() in line for n, line in zip(numbers, answer.splitlines())], [True] * len(numbers), answer[:300])
        check_cuts(s, ["symcaches"], ask)


# By the rows of kinds of jobs in the source: which tests cut files under their jobs.
JOBS = {
    "job_native": [test_truncated_portable_pdb_tables_are_remade, test_truncated_bundles_are_remade, test_truncated_upload_indexes_are_remade],
    "job_js": [test_truncated_scripts_and_maps_are_remade, test_truncated_scripts_with_inline_maps_are_remade, test_truncated_bundles_of_scripts_are_remade],
    "job_jvm": [test_truncated_jvm_mappings_are_remade],
    "job_mozilla": [test_truncated_files_are_remade_for_mozilla_clients],
    "job_asm": [test_truncated_objects_are_remade_for_disassembly],
    "job_source": [test_truncated_files_are_remade_for_source_v1],
    "job_any": [test_truncated_files_are_remade_for_downloaded_crash_files],
    "crash_minidump": [test_truncated_unwind_tables_are_remade],
    "crash_core": [test_truncated_files_are_remade_for_cores],
    "crash_apple": [test_truncated_files_are_remade_for_apple_reports],
    "job_text": [test_truncated_symcaches_are_remade_for_texts],
    "crash_named": [test_truncated_symcaches_are_remade_for_named_files],
}


def test_every_kind_of_job_has_a_truncation_test(work, objects):
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "service", "api")
    rows = []
    for path in glob.glob(folder + "/**/*.c", recursive=True):
        with open(path) as f:
            rows += re.findall(r"^(?:static )?const struct (?:job|crash)_kind (\w+) = \{", f.read(), re.M)
    equal(sorted(rows), sorted(JOBS))
