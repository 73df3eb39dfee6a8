"""Several files for one module, on real servers: which one answers, and what the candidates say about the others."""
import contextlib, os, shutil, tempfile

from harness import Service, Upstream, equal, frames, http_source, nginx, request
from test_formats import built, identity, put, store_id
from test_native import check_inlined, inlined_address


@contextlib.contextmanager
def servers(work, *trees):
    """An nginx for each tree (path to bytes); yields their URLs."""
    with contextlib.ExitStack() as stack:
        urls = []
        for tree in trees:
            root = tempfile.mkdtemp(dir=work)
            for path, data in tree.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "wb") as f:
                    f.write(data)
            urls.append(stack.enter_context(nginx(work, root)))
        yield urls


def sources(urls):
    return [http_source(url, id=f"source{i}") for i, url in enumerate(urls)]


def ask(s, objects, urls, **keys):
    body = request(objects.module(), [inlined_address(objects)], options={"dif_candidates": True}, sources=sources(urls), **keys)
    return s.symbolicate(body)


def used(answer):
    """Source and file of the candidate that was converted."""
    return [(c["source"], c["location"].rsplit("/", 1)[1]) for c in answer["modules"][0]["candidates"] if "debug" in c]


def test_debug_information_wins_whatever_the_source_order(work, objects):
    symbols = {f"{objects.build_id}/executable": objects.stripped}
    debug = {f"{objects.build_id}/debuginfo": objects.debug}
    for trees, winner in (((symbols, debug), "source1"), ((debug, symbols), "source0"), (({**symbols, **debug}, {}), "source0")):
        with servers(work, *trees) as urls, Service(work) as s:
            answer = ask(s, objects, urls)
            check_inlined(answer)
            equal(used(answer), [(winner, "debuginfo")])
            statuses = {(c["source"], c["location"].rsplit("/", 1)[1]): c["download"]["status"]
                        for c in answer["modules"][0]["candidates"]}
            equal(len(statuses), 4)
            equal(sorted(statuses.values()), ["notfound", "notfound", "ok", "ok"])


def test_symbol_tables_are_used_without_debug_information(work, objects):
    tree = {f"{objects.build_id}/executable": objects.full}
    with servers(work, {}, tree) as urls, Service(work) as s:
        equal(used(ask(s, objects, urls)), [("source1", "executable")])
    program = os.path.join(work, "symbols")
    objects._run("strip", "--strip-debug", "-o", program, "full")
    with open(program, "rb") as f:
        tree = {f"{objects.build_id}/executable": f.read()}
    with servers(work, tree) as urls, Service(work) as s:
        answer = ask(s, objects, urls)
        equal([(f["function"], f["lineno"]) for f in frames(answer)], [("shapes::Box::area(int)", 0)])
        equal(answer["modules"][0]["features"]["has_debug_info"], False)
        equal(answer["modules"][0]["debug_status"], "found")


def test_first_of_equal_files_is_used(work, objects):
    both = {f"{objects.build_id}/executable": objects.full, f"{objects.build_id}/debuginfo": objects.debug}
    with servers(work, both, both) as urls, Service(work) as s:
        answer = ask(s, objects, urls)
        equal(used(answer), [("source0", "executable")])
        equal([c["download"]["status"] for c in answer["modules"][0]["candidates"]], ["ok"] * 4)


def test_malformed_files_are_skipped(work, objects):
    garbage = b"\x7fELF" + bytes(2000)
    broken = {f"{objects.build_id}/executable": garbage}
    good = {f"{objects.build_id}/debuginfo": objects.debug}
    with servers(work, broken, good) as urls, Service(work) as s:
        answer = ask(s, objects, urls)
        check_inlined(answer)
        equal(used(answer), [("source1", "debuginfo")])
        equal([c["download"]["status"] for c in answer["modules"][0]["candidates"]], ["notfound", "malformed", "ok", "notfound"])
    with servers(work, broken) as urls, Service(work) as s:
        answer = ask(s, objects, urls)
        # the first failure in order counts: the executable was asked for first
        equal((frames(answer)[0]["status"], answer["modules"][0]["debug_status"]), ("malformed", "malformed"))
        equal([(c["download"], c.get("debug")) for c in answer["modules"][0]["candidates"]],
              [({"status": "notfound"}, None), ({"status": "malformed"}, {"status": "malformed"})])


def test_status_is_that_of_the_first_failure(work, objects):
    for routes, status in (({"executable": 403}, "fetching_failed"), ({"debuginfo": 403}, "missing")):
        with Upstream({f"/{objects.build_id}/{name}": code for name, code in routes.items()}) as up, Service(work) as s:
            answer = ask(s, objects, [up.url])
            equal((frames(answer)[0]["status"], answer["modules"][0]["debug_status"]), ("missing", status))
            details = [c["download"] for c in answer["modules"][0]["candidates"] if c["download"]["status"] != "notfound"]
            equal(details, [{"status": "noperm", "details": "403 Forbidden"}])


def test_pe_without_exports_is_no_symbol_file(work, objects):
    """A PE file without exports beside its PDB; alone it is as good as none."""
    pdb = os.path.join(built(objects.dir), "pdb", "msvc-x86_64-O2.pdb")
    exe = pdb[:-4] + ".exe"
    code, debug = identity(exe), identity(pdb)
    module = {"type": "pe", "debug_id": debug["debug_id"], "code_id": code["code_id"], "debug_file": "a.pdb", "code_file": "a.exe",
              "image_addr": "0x10000000"}
    root = tempfile.mkdtemp(dir=work)
    put(root, f"a.exe/{store_id(code['code_id'])}/a.exe", exe)
    with nginx(work, root) as url:
        body = {"stacktraces": [{"frames": [{"instruction_addr": "0x10001010"}]}], "modules": [module],
                "options": {"dif_candidates": True},
                "sources": [{"id": "source0", "type": "http", "url": url, "layout": {"type": "symstore"}}]}
        with Service(work) as s:
            alone = s.symbolicate(body)
            equal((frames(alone)[0]["status"], alone["modules"][0]["debug_status"]), ("missing", "missing"))
            equal(used(alone), [])
            equal([c["download"]["status"] for c in alone["modules"][0]["candidates"] if c["location"].endswith(".exe")], ["ok"])
        put(root, f"a.pdb/{debug['breakpad_id']}/a.pdb", pdb)
        with Service(work) as s:
            together = s.symbolicate(body)
            equal(used(together), [("source0", "a.pdb")])
            equal(frames(together)[0]["status"], "symbolicated")


def test_file_with_a_newer_age_is_accepted(work, objects):
    """A server may answer a request for an old age with a newer file; what it has under an id is taken."""
    pdb = os.path.join(built(objects.dir), "pdb", "msvc-x86_64-O2.pdb")
    debug = identity(pdb)
    uuid, root = debug["breakpad_id"][:32], tempfile.mkdtemp(dir=work)
    put(root, f"a.pdb/{uuid}0/a.pdb", pdb)
    module = {"type": "pe", "debug_id": debug["debug_id"].rsplit("-", 1)[0], "debug_file": "a.pdb", "image_addr": "0x10000000"}
    with nginx(work, root) as url, Service(work) as s:
        answer = s.symbolicate({"stacktraces": [{"frames": [{"instruction_addr": "0x10001010"}]}], "modules": [module],
                                "sources": [{"id": "t", "type": "http", "url": url, "layout": {"type": "symstore"}}]})
        equal(frames(answer)[0]["status"], "symbolicated")
        equal(answer["modules"][0]["debug_id"], module["debug_id"])
