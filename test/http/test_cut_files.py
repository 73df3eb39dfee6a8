"""Files of the cache that are cut while the service has them mapped: of every kind. What a look-up meets is made anew, and nothing
ends the process."""
import contextlib, os, random

import dumps
import harness
import test_context as context
import test_crash_files as crash
import test_dotnet as dotnet
import test_faults as faults
import test_symbfile as symbfile
from harness import Service, Upstream, equal, frames

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
