"""Files of the cache that are cut while the service has them mapped: of every kind. What a look-up meets is made anew, and nothing
ends the process."""
import contextlib, json, os, random

import artifacts as js
import dumps
import harness
import test_code as code
import test_context as context
import test_crash_files as crash
import test_dotnet as dotnet
import test_faults as faults
import test_profiler as profiler
import test_symbfile as symbfile
from harness import Service, Upstream, equal, frames
from test_symbolicate import FILES, I, MAIN, place

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


def test_portable_pdbs(work, objects):
    pdb = dotnet.PortablePdb()
    document = pdb.document("/src/app.cs")
    for i in range(2000):
        pdb.method(document, [(0, 1 + i % 100), (4 + i % 7, 3 + i % 90)])
    with Upstream({dotnet.PATH: pdb.data()}) as up, faults.leaks_accepted(), Service(work) as s:
        def ask():
            answer = s.symbolicate(dotnet.request(up.url, [(1 + i, 0) for i in range(0, 2000, 50)]))
            equal([f.get("lineno") for f in frames(answer)], [1 + i % 100 for i in range(0, 2000, 50)])
        check_cuts(s, ["ppdb_caches", "objects"], ask)


def test_bundles(work, objects):
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


def test_unwind_tables(work, objects):
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


def test_indexes_of_uploads(work, objects):
    data, _, addresses = faults.large_program(work)
    some = dict(list(addresses.items())[::100])
    path = os.path.join(work, "large.so")
    with faults.leaks_accepted(), symbfile.service(work) as s:
        symbfile.push("executable", "-e", path, "-u", f"http://127.0.0.1:{s.port}/", "-t", "ci:secret")

        def ask():
            chains = symbfile.resolve(s, path, list(some.values()))
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


def test_scripts(work, objects):
    script, source_map, wanted = large_script("app.js")
    told = [js.told(1, "~/app.js"), js.told(2, "~/app.js.map")]
    with js.Sentry(told, {"/app.js": script, "/app.js.map": source_map}) as up, faults.leaks_accepted(), Service(work) as s:
        check_script(up, s, wanted, ["sourcemap_caches"])
        check_script(up, s, wanted, ["sourcemap_caches", "sourcefiles"])


def test_scripts_that_hold_their_maps(work, objects):
    script, source_map, wanted = large_script("app.js")
    script = script[:script.rindex("//#")] + "//# sourceMappingURL=" + js.data_url(source_map)
    with js.Sentry([js.told(1, "~/app.js")], {"/app.js": script}) as up, faults.leaks_accepted(), Service(work) as s:
        check_script(up, s, wanted, ["sourcemap_caches", "sourcefiles"])


def test_scripts_in_bundles(work, objects):
    script, source_map, wanted = large_script("app.js")
    files = {f"~/{n}.js": ("minified_source", "x", {}) for n in range(200)}  # a manifest of some pages
    files["~/app.js"] = ("minified_source", script, {"sourcemap": "app.js.map"})
    files["~/app.js.map"] = ("source_map", source_map, {})
    with js.Sentry([js.bundle(7)], {"/7.zip": js.archive(files)}) as up, faults.leaks_accepted(), Service(work) as s:
        check_script(up, s, wanted, ["sourcemap_caches", "objects", "sourcefiles"])


def test_machine_code(work, objects):
    path, build_id, functions = profiler.built(work, "gcc")
    start, size = next((a, n) for a, n in functions if n > 40)
    with faults.leaks_accepted():
        upstream, service = profiler.serving(work, path, build_id)
        with upstream, service as s:
            first = profiler.asm(s, build_id, start, size)["instructions"]
            check_cuts(s, ["objects"], lambda: equal(profiler.asm(s, build_id, start, size).get("instructions"), first))


def test_source_of_an_address(work, objects):
    text = "".join(f"{n} {random.Random(n).getrandbits(400):x}\n" for n in range(2000))
    routes = {place(I): FILES[I].encode(), f"/{I[0]}/{I[1]}/{I[0]}.src.zip": code.bundle({"main": (MAIN, text)})}
    with Upstream(routes) as up, faults.leaks_accepted():
        config = {"sources": [harness.http_source(up.url, layout={"type": "native"})],
                  "mozilla": {"compat": "profiler", "sources": [up.url]}}
        with Service(work, config) as s:
            body = {"debugName": I[0], "debugId": I[1], "moduleOffset": "0x7a7a", "file": MAIN}
            check_cuts(s, ["objects"], lambda: equal(code.post(s, "/source/v1", body).get("source"), text))
