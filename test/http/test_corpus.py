"""Files of the conformance corpus, which other tools made: run when the corpus is there (run.py --corpus DIR)."""
import os

import harness
from harness import Service, Upstream, equal, frames, from_corpus


def fixture(path):
    with open(os.path.join(harness.CORPUS, "fixtures/symbols", path), "rb") as f:
        return f.read()


def serve(*paths, **moved):
    """The files under their own paths; `moved`: path to the file there."""
    return Upstream({**{"/" + p: fixture(p) for p in paths}, **{"/" + p: fixture(f) for p, f in moved.items()}})


def ask(s, up, module, sent, **options):
    return s.symbolicate({"stacktraces": [{"frames": [{"addr_mode": "rel:0", **f} for f in sent]}], "modules": [module],
                          "sources": [{"id": "test", "type": "http", "url": up.url, "layout": options.pop("layout", {"type": "native"})}],
                          "options": {"dif_candidates": True, **options}})


@from_corpus
def test_source_bundle_of_the_corpus_gives_lines(work, objects):
    stem = "7f/883fcdc55336d0a809b0150f09500b"
    with serve(stem + ".debug", stem + ".src.zip") as up, Service(work) as s:
        answer = ask(s, up, {"type": "wasm", "debug_id": "7f883fcd-c553-36d0-a809-b0150f09500b",
                             "code_id": "7f883fcdc55336d0a809b0150f09500b"}, [{"instruction_addr": 0x3880}])
        frame, module = frames(answer)[0], answer["modules"][0]
        wanted = {"function": "trigger_crash", "sym_addr": "0x3860", "lineno": 60,
                  "pre_context": ["#endif", "", "static void", "trigger_crash()", "{"],
                  "context_line": "    memset((char *)invalid_mem, 1, 100);",
                  "post_context": ["}", "", "int", "main(int argc, char **argv)", "{"]}
        equal({key: frame.get(key) for key in wanted}, wanted)
        equal(module["features"]["has_sources"], True)
        found = {c["location"].rsplit("/", 1)[1]: c for c in module["candidates"]}
        debug, bundle = found["883fcdc55336d0a809b0150f09500b.debug"], found["883fcdc55336d0a809b0150f09500b.src.zip"]
        equal((debug["download"]["features"]["has_sources"], debug["debug"]), (False, {"status": "ok"}))
        equal((bundle["download"]["features"], "debug" in bundle),
              ({"has_debug_info": False, "has_unwind_info": False, "has_symbols": False, "has_sources": True}, False))


def lines(s, up, name, debug_id, points):
    sent = [{"instruction_addr": offset, "function_id": function} for function, offset in points]
    answer = ask(s, up, {"type": "pe_dotnet", "debug_file": name, "debug_id": debug_id}, sent, apply_source_context=False,
                 layout={"type": "symstore"})
    return answer, [f.get("lineno") for f in frames(answer)]


@from_corpus
def test_portable_pdbs_of_the_corpus_give_lines(work, objects):
    files = {name: f"{name}/{guid}ffffffff/{name}" for name, guid in (
        ("integration.pdb", "0C1033F78632492E91C6C314B72E1920"), ("portable-embedded.pdb", "B6919861510C48879994943F64F70C37"),
        ("source-links.pdb", "37E9E8A61A8E404EB93C6902E277FF55"))}
    with serve(*files.values()) as up, Service(work) as s:
        answer, found = lines(s, up, "integration.pdb", "0c1033f78632492e91c6c314b72e1920e60b819d",
                              [(6, 10), (5, 6), (3, 0), (2, 0), (1, 45)])
        equal(found, [55, 48, 41, 36, 18])
        equal({(f["lang"], f["abs_path"]) for f in frames(answer)},
              {("csharp", "/Users/swatinem/Coding/sentry-dotnet/samples/foo/Program.cs")})
        equal(answer["modules"][0]["debug_id"], "0c1033f7-8632-492e-91c6-c314b72e1920-e60b819d")
        equal(lines(s, up, "portable-embedded.pdb", "b6919861-510c-4887-9994-943f64f70c37-870b9ef9", [(5, 47), (5, 36)])[1],
              [13, 3])
        answer, found = lines(s, up, "source-links.pdb", "37e9e8a6-1a8e-404e-b93c-6902e277ff55-a09672e1", [(7, 1), (7, 3)])
        equal(found, [24, 26])
        equal({f["abs_path"] for f in frames(answer)}, {"/_/src/libraries/Common/src/System/ThrowHelper.cs"})


@from_corpus
def test_dotnet_module_lists_its_candidates(work, objects):
    path = "integration.pdb/0C1033F78632492E91C6C314B72E1920ffffffff/integration.pdb"
    with serve(path) as up, Service(work) as s:
        answer = ask(s, up, {"type": "pe_dotnet", "debug_file": "integration.pdb",
                             "debug_id": "0c1033f7-8632-492e-91c6-c314b72e1920-e60b819d"},
                     [{"instruction_addr": 10, "function_id": 6}], layout={"type": "symstore"})
        rows = [(c["location"].removeprefix(up.url), c["download"]["status"], c.get("debug", {}).get("status"))
                for c in answer["modules"][0]["candidates"]]
        folder = "integration.pdb/0C1033F78632492E91C6C314B72E1920"
        assert (folder + "ffffffff/integration.pdb", "ok", "ok") in rows, rows
        equal([r[1:] for r in rows if not r[0].endswith("/integration.pdb")], [("notfound", None)] * (len(rows) - 1))
        equal(sorted(rows), rows)


@from_corpus
def test_source_server_of_the_corpus_is_reported(work, objects):
    path = "crash_with_srcsrv.pdb/3249D99D0C4049318610F4E4FB0B69361/crash_with_srcsrv.pdb"
    module = {"type": "pe", "debug_file": "crash_with_srcsrv.pdb", "debug_id": "3249d99d-0c40-4931-8610-f4e4fb0b6936-1",
              "image_addr": "0x2a0000", "image_size": 0x10000}
    with serve(path) as up, Service(work) as s, Service(work, {"srcsrv_frames": True}) as more:
        answer = ask(s, up, module, [{"addr_mode": "abs", "instruction_addr": "0x2a2755"}], layout={"type": "symstore"})
        frame = frames(answer)[0]
        name = "google_breakpad::CrashGenerationClient::`scalar deleting destructor'(unsigned int)"
        equal([frame[k] for k in ("symbol", "function", "sym_addr", "lineno")], [name, name, "0x2a26f0", 0])
        equal(answer["modules"][0]["features"]["srcsrv_vcs"], "perforce")
        found = [c for c in answer["modules"][0]["candidates"] if c["download"]["status"] == "ok"]
        equal([c["download"]["features"].get("srcsrv_vcs") for c in found], ["perforce"])
        frame = frames(ask(more, up, module, [{"instruction_addr": 0x1000}], layout={"type": "symstore"}))[-1]
        equal((frame["srcsrv_path"], frame["srcsrv_revision"], frame["abs_path"]),
              ("depot/breakpad/src/client/windows/crash_generation/crash_generation_client.cc", "12345",
               "c:\\projects\\breakpad-tools\\deps\\breakpad\\src\\client\\windows\\crash_generation\\crash_generation_client.cc"))
        known = {(f["srcsrv_path"], f["srcsrv_revision"])
                 for f in frames(ask(more, up, module, [{"instruction_addr": a} for a in range(0x1000, 0x4000, 8)],
                                     layout={"type": "symstore"})) if "srcsrv_path" in f}
        assert ("depot/breakpad/src/common/scoped_ptr.h", "12346") in known, known


@from_corpus
def test_bcsymbolmap_of_the_corpus_restores_hidden_names(work, objects):
    stem, name = "2d/10c42f591d3265b14778ba0868073f", "2d10c42f-591d-3265-b147-78ba0868073f"
    module = {"type": "macho", "debug_id": name}
    files = {stem + "/debuginfo": name + ".dwarf-hidden", stem + "/uuidmap": name + ".plist",
             "c8/374b6d6e9634d8ae38efaa5fec424f/bcsymbolmap": "c8374b6d-6e96-34d8-ae38-efaa5fec424f.bcsymbolmap"}
    for moved, function, path in (
            (files, "-[SentryMessage initWithFormatted:]",
             "/Users/philipphofmann/git-repos/sentry-cocoa/Sources/Sentry/SentryMessage.m"),
            ({stem + "/debuginfo": name + ".dwarf-hidden"}, "__hidden#0_", None)):
        with serve(**moved) as up, Service(work) as s:
            answer = ask(s, up, module, [{"instruction_addr": a, "adjust_instruction_addr": False} for a in (0x5a75, 0x5a74)],
                         layout={"type": "unified"})
            equal([f["function"] for f in frames(answer)], [function] * 2)
            equal([f["abs_path"] if path else f["filename"] for f in frames(answer)], [path or "__hidden#42_"] * 2)
