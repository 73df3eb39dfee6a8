#!/usr/bin/env python3
"""What is to be answered about the debug files of the conformance corpus: identities, addresses, names of obfuscated builds.

usage: acceptance.py --symloom PATH CORPUS

The last line is "N passed, N failed".
"""
import argparse, glob, json, os, shutil, subprocess, sys, tempfile, traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "http"))
import harness
from harness import Service, equal, frames

SYMBOLS = None  # directory of the symbol files


def file(pattern):
    found = glob.glob(os.path.join(SYMBOLS, pattern))
    equal(len(found), 1, pattern)
    return found[0]


def command(*args):
    return subprocess.run([harness.SYMLOOM, *args], check=True, capture_output=True, text=True).stdout


def inspect(pattern, *options):
    return json.loads(command("inspect", "--json", *options, file(pattern)))[0]


def chain(pattern, address, *options):
    """(name, file, line) of each element; the address is relative."""
    answer = json.loads(command("lookup", "--json", "--relative-address", *options, "-e", file(pattern), hex(address)))
    answer = answer[0] if isinstance(answer, list) else answer
    return [(s["FunctionName"], s["FileName"], s["Line"]) for s in answer["Symbol"]]


CRASH = "crash.pdb/*ffffffff/crash.pdb"
SRCSRV = "crash_with_srcsrv.pdb/*/crash_with_srcsrv.pdb"


def test_pdb_identity_is_read():
    for pattern in (CRASH, SRCSRV):
        found = inspect(pattern)
        equal((found["debug_id"], found["arch"], found["kind"]), ("3249d99d-0c40-4931-8610-f4e4fb0b6936-1", "x86", "debug companion"))
        equal(found["features"], "symtab, debug, unwind")


def test_pdb_addresses_are_named_with_inlined_calls():
    equal(chain(CRASH, 0x3756), [("malloc", "", 0)])
    name, path, line = chain(CRASH, 0x1000)[-1]
    assert path.endswith("\\crash_generation_client.cc") and line > 0, path
    names = [name for name, _, _ in chain(CRASH, 0x2A3D)]
    equal(names[-2:], ["`anonymous namespace'::start()", "main(int, char**)"])
    # a function without lines of its own calls the destructor inline
    calls = chain(SRCSRV, 0x2755)
    equal(calls[-1], ("google_breakpad::CrashGenerationClient::`scalar deleting destructor'(unsigned int)", "", 0))
    equal((calls[-2][0], calls[-2][2]), ("google_breakpad::CrashGenerationClient::{dtor}()", 145))


def test_microsoft_names_are_demangled_as_recorded():
    """Each name is that of a symbol; the texts are what crashes are grouped by."""
    with open(os.path.join(SYMBOLS, "..", "..", "names", "msvc.tsv")) as table:
        names = [line.rstrip("\n").split("\t") for line in table]
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "names.sym")
        with open(path, "w") as out:
            out.write("MODULE windows x86_64 000102030405060708090A0B0C0D0E0F1 names.pdb\n")
            for i, (mangled, _) in enumerate(names):
                out.write("PUBLIC %x 0 %s\n" % (0x1000 + 16 * i, mangled))
        addresses = "".join("0x%x\n" % (0x1000 + 16 * i) for i in range(len(names)))
        answer = subprocess.run([harness.SYMLOOM, "lookup", "--output-style", "gnu", "-f", "-C", "-e", path], input=addresses,
                                check=True, capture_output=True, text=True).stdout.splitlines()[::2]
    equal(len(answer), len(names))
    wrong = [(mangled, text, got) for (mangled, text), got in zip(names, answer) if text != got]
    assert len(wrong) * 200 <= len(names), wrong[:5]
    print("names as the reference prints them: %d of %d" % (len(names) - len(wrong), len(names)))


def test_pdb_function_names_show_types():
    functions = inspect(CRASH, "--functions")["functions"]
    names = set()
    while functions:
        names |= {f["name"] for f in functions}
        functions = [inlined for f in functions for inlined in f.get("inlinees", ())]
    wanted = {"std::allocator<wchar_t>::deallocate(wchar_t* const, const unsigned int)",
              "std::_WChar_traits<wchar_t>::assign(wchar_t&, wchar_t const&)",
              "std::_String_val<std::_Simple_types<wchar_t> >::_Large_string_engaged() const"}
    equal(wanted - names, set())


def test_wasm_addresses_and_symbols_are_named():
    found = inspect("bd/*.debug")
    equal((found["code_id"], found["debug_id"]), ("bda18fd85d4a4eb893022d6bfad846b1", "bda18fd8-5d4a-4eb8-9302-2d6bfad846b1"))
    equal(chain("bd/*.debug", 0x8C), [("internal_func", "/Users/mitsuhiko/Development/wasm-example/simple/src/lib.rs", 19)])
    symbols = inspect("bd/*.debug", "--symbols")["symbols"]
    assert any(s["name"] == "internal_func" and int(str(s["address"]), 0) == 0x8B for s in symbols), symbols


def test_dsym_addresses_are_named():
    found = inspect("502F/*/*/*/*/*")
    equal((found["debug_id"], found["kind"]), ("502fc0a5-1ec1-3e47-9998-684fa139dca7", "debug companion"))
    equal(chain("502F/*/*/*/*/*", 0xFA0), [("main", "/tmp/hello.c", 1)])
    name, _, line = chain("7f/*.debug", 0x3880)[-1]
    equal((name, line), ("trigger_crash", 60))


def test_breakpad_addresses_are_named():
    found = inspect("sentry_example/*/*.original")
    equal((found["debug_id"], found["arch"], found["debug_file"]), ("73781ede-bf5b-34ec-81b2-749a0f1fa5fd", "arm64", "sentry_example"))
    equal(chain("sentry_example/*/*.original", 0xD98),
          [("get_current_thread_id", "/Users/sentry/code/sentry-native/examples/example.c", 46)])


def test_breakpad_file_of_a_pe_keeps_its_code_id():
    found = inspect("crash.pdb/*1/*.original")
    equal((found["debug_id"], found["code_id"], found["arch"], found["debug_file"]),
          ("3249d99d-0c40-4931-8610-f4e4fb0b6936-1", "5ab380779000", "x86", "crash.pdb"))
    equal(found["features"], "symtab, debug, unwind")


def test_pdb_unwind_records_are_dumped():
    records = [line for line in command("dump-syms", file(CRASH)).splitlines() if line.startswith("STACK")]
    equal(records[0], "STACK WIN 4 1000 114 11 0 8 0 0 0 1 $T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + =")


PORTABLE = {  # documents, methods, points; embedded ones and those with a link
    "integration.pdb/*/*.pdb": ("0c1033f7-8632-492e-91c6-c314b72e1920-e60b819d", 4, 6, 40, 0, 0),
    "source-links.pdb/37*/*.pdb": ("37e9e8a6-1a8e-404e-b93c-6902e277ff55-a09672e1", 17, 103, 201, 3, 17),
    "portable-embedded.pdb/*/*.pdb": ("b6919861-510c-4887-9994-943f64f70c37-870b9ef9", 5, 9, 5, 5, 0),
    "source-links.pdb/0C*/*.pdb": ("0c380a12-8221-4069-8565-bee6b3ac196e-a596286e", 5, 9, 5, 0, 5),
}


def test_portable_pdbs_are_inspected():
    for pattern, wanted in PORTABLE.items():
        found = inspect(pattern, "--verify", "--sources")
        counts, sources = found["counts"], found["sources"]
        equal((found["debug_id"], counts["files"], counts["functions"], counts["lines"],
               sum(s["status"] == "embedded" for s in sources), sum(bool(s["url"]) for s in sources)), wanted, pattern)
        equal((found["kind"], found["arch"], found["code_id"]), ("debug companion", "unknown", None))


def test_portable_pdbs_give_source_links():
    url = "https://raw.githubusercontent.com/dotnet/runtime/d099f075e45d2aa6007a22b71b45a08758559f80/"
    for source in inspect("source-links.pdb/37*/*.pdb", "--sources")["sources"]:
        assert source["path"].startswith("/_/"), source
        equal(source["url"], url + source["path"][3:])
    links = {s["path"].replace("\\", "/").rsplit("/", 1)[1]: s["url"] for s in inspect("source-links.pdb/0C*/*.pdb", "--sources")["sources"]}
    equal(links["Program.cs"], "https://raw.githubusercontent.com/getsentry/sentry-dotnet/b31b62192e6934ea04396456461f430e143cf4f9/"
                               "samples/Sentry.Samples.Console.Basic/Program.cs")


def test_embedded_sources_give_context_lines():
    source = {"id": "local", "type": "filesystem", "path": SYMBOLS, "layout": {"type": "symstore"}}
    work = tempfile.mkdtemp(prefix="symloom-acceptance-")
    try:
        with Service(work, {"sources": [source]}) as s:
            answer = s.symbolicate({
                "modules": [{"type": "pe_dotnet", "debug_file": "portable-embedded.pdb",
                             "debug_id": "b6919861-510c-4887-9994-943f64f70c37-870b9ef9"}],
                "stacktraces": [{"frames": [{"instruction_addr": 47, "function_id": 5, "addr_mode": "rel:0"}]}]})
        frame = frames(answer)[0]
        equal((frame["lineno"], frame["context_line"].strip(), frame["pre_context"][-2:]),
              (13, 'throw new Exception("test");', ["", "// The following unhandled exception will be captured and sent to Sentry."]))
        equal((len(frame["pre_context"]), "post_context" in frame, "source_link" in frame), (5, False, False))
        assert frame["pre_context"][1:3] == ["    o.Debug = true;", "});"], frame["pre_context"]
    finally:
        shutil.rmtree(work)


def test_source_bundle_is_inspected():
    path = file("7f/*.src.zip")
    with open(path, "rb") as f:
        data = f.read()
    equal((len(data), data[:8]), (18724, b"SYSB\x02\0\0\0"))
    found = inspect("7f/*.src.zip", "--sources")
    equal((found["debug_id"], found["code_id"], found["arch"], found["debug_file"]),
          ("7f883fcd-c553-36d0-a809-b0150f09500b", "7f883fcdc55336d0a809b0150f09500b", "x86_64", "sentry_example"))
    equal([s["status"] for s in found["sources"]], ["embedded"] * 4)
    home = "/Users/swatinem/Coding/sentry-native/"
    assert {home + "examples/example.c", home + "include/sentry.h"} < {s["path"] for s in found["sources"]}


HIDDEN = "2d10c42f-591d-3265-b147-78ba0868073f"
ORIGINAL = "c8374b6d-6e96-34d8-ae38-efaa5fec424f"


def symbolicate_hidden(work, with_map):
    root = tempfile.mkdtemp(dir=work)
    places = {"debuginfo": (HIDDEN, HIDDEN + ".dwarf-hidden"), "uuidmap": (HIDDEN, HIDDEN + ".plist")}
    if with_map:
        places["bcsymbolmap"] = ORIGINAL, ORIGINAL + ".bcsymbolmap"
    for kind, (owner, name) in places.items():
        identity = owner.replace("-", "")
        os.makedirs(os.path.join(root, identity[:2], identity[2:]), exist_ok=True)
        shutil.copy(file(name), os.path.join(root, identity[:2], identity[2:], kind))
    source = {"id": "local", "type": "filesystem", "path": root, "layout": {"type": "unified"}}
    with Service(work, {"sources": [source]}) as s:
        answer = s.symbolicate({"modules": [{"type": "macho", "debug_id": HIDDEN, "image_addr": "0x100000000"}],
                                "stacktraces": [{"frames": [{"instruction_addr": "0x100005a75", "adjust_instruction_addr": False}]}]})
    return frames(answer)[0]


COMPACT = """\
 Trust    Instruction  Module File             Function                        File
 context     0x2a2a3d  crash.exe      +0x2a3d  main                    +0x12d  main.cpp:35
 cfi         0x2a2d96  crash.exe      +0x2d96  __scrt_common_main_seh   +0xf8  exe_common.inl:283
 cfi       0x750662c4  kernel32.dll  +0x162c4
 fp        0x771d0f79  ntdll.dll     +0x60f79
 fp        0x771d0f44  ntdll.dll     +0x60f44
"""
PRETTY = """\
Frame #0
      Trust: context
Instruction: 0x2a2a3d
     Module: crash.exe +0x2a3d
   Function: main +0x12d
       File: main.cpp:35

"""


def test_minidump_output_equals_the_recorded_text():
    fixtures = os.path.dirname(SYMBOLS)
    arguments = ("symbolicate", os.path.join(fixtures, "windows.dmp"), "--offline", "--cache-dir", "", "--symbols", SYMBOLS)
    equal(command(*arguments, "-f", "compact"), COMPACT)
    equal(command(*arguments, "-f", "pretty")[:len(PRETTY)], PRETTY)
    with open(os.path.join(fixtures, "..", "cases", "minidump", "windows.json")) as f:
        recorded = json.load(f)["steps"][0]["expect"]["json"]
    answer = json.loads(command(*arguments, "--no-source-context"))
    for module in recorded["modules"]:
        module.pop("candidates", None)
    recorded.pop("status", None)
    # A command tells more than the recorded answers of the service, and finds a caller of the last thread's wait by scanning.
    answer.pop("details")
    equal([(f["package"].split("\\")[-1], f["trust"]) for f in answer["stacktraces"][3]["frames"][1:]], [("KERNELBASE.dll", "scan")])
    del answer["stacktraces"][3]["frames"][1:]
    caller = next(i for i, m in enumerate(answer["modules"]) if m["code_file"].endswith("\\KERNELBASE.dll"))
    equal([answer["modules"][caller].pop(key) for key in ("debug_status", "unwind_status")], ["missing"] * 2)
    equal([recorded["modules"][caller].pop(key) for key in ("debug_status", "unwind_status")], ["unused"] * 2)
    equal(answer, recorded)


MACHINE = """\
OS|Windows NT|10.0.14393 \nCPU|x86|GenuineIntel family 6 model 63 stepping 2|2\nGPU|||\nCrash|EXCEPTION_ACCESS_VIOLATION_WRITE|0x45|0
Module|crash.exe||crash.pdb|3249D99D0C4049318610F4E4FB0B69361|0x002a0000|0x002a8fff|1
Module|dbghelp.dll|6.2.14321.1024|dbghelp.pdb|9C2A902B6FDF40AD8308588A41D572A01|0x70850000|0x70994fff|0
"""
FRAMES = """\
0|0|crash.exe|`anonymous namespace'::crash()|c:\\projects\\breakpad-tools\\windows\\crash\\main.cpp|24|0x0
0|1|crash.exe|`anonymous namespace'::start()|c:\\projects\\breakpad-tools\\windows\\crash\\main.cpp|28|0x0
0|2|crash.exe|main(int, char**)|c:\\projects\\breakpad-tools\\windows\\crash\\main.cpp|35|0x0
0|3|crash.exe|invoke_main()|f:\\dd\\vctools\\crt\\vcstartup\\src\\startup\\exe_common.inl|78|0x1b
0|4|crash.exe|__scrt_common_main_seh()|f:\\dd\\vctools\\crt\\vcstartup\\src\\startup\\exe_common.inl|283|0x1c
0|5|kernel32.dll||||0x162c4
0|6|ntdll.dll||||0x60f79
0|7|ntdll.dll||||0x60f44
1|0|ntdll.dll||||0x7016c
"""
STACK = """\

Thread 0 (crashed)
 0  crash.exe!`anonymous namespace'::crash() [main.cpp : 24 + 0x0]
 \n    Found by: inline record
 1  crash.exe!`anonymous namespace'::start() [main.cpp : 28 + 0x0]
 \n    Found by: inline record
 2  crash.exe!main(int, char**) [main.cpp : 35 + 0x0]
    eip = 0x002a2a3d   esp = 0x010ff644   ebp = 0x010ff670   ebx = 0x00fe5000
    esi = 0x759c6314   edi = 0x013bfd78   eax = 0x00000000   ecx = 0x010ff670
    edx = 0x00000007   efl = 0x00010246
    Found by: given as instruction pointer in context
 3  crash.exe!invoke_main() [exe_common.inl : 78 + 0x1b]
"""


def test_minidump_output_equals_breakpad_stackwalk():
    """These texts are those of Breakpad's minidump_stackwalk with the same symbols, to the byte."""
    work = tempfile.mkdtemp(prefix="symloom-acceptance-")
    try:
        command("dump-syms", "--inlines", "--store", work, file(CRASH))
        tool = os.path.join(work, "minidump_stackwalk")
        os.symlink(harness.SYMLOOM, tool)

        def walked(*options):
            return subprocess.run([tool, *options, os.path.join(os.path.dirname(SYMBOLS), "windows.dmp"), work], check=True,
                                  capture_output=True, text=True, env={**os.environ, "SYMLOOM_CACHE_DIR": "", "XDG_CACHE_HOME": work}).stdout
        head, frames = walked("-m").split("\n\n")
        equal(head[:len(MACHINE)], MACHINE)
        equal(frames[:len(FRAMES)], FRAMES)
        text = walked()
        equal(text[:text.index("\n\nThread")], "Operating system: Windows NT\n                  10.0.14393 \nCPU: x86\n     GenuineIntel family 6 "
              "model 63 stepping 2\n     2 CPUs\n\nGPU: UNKNOWN\n\nCrash reason:  EXCEPTION_ACCESS_VIOLATION_WRITE\nCrash address: 0x45\n"
              "Process uptime: 1 seconds")
        at = text.index("\n\nThread") + 1
        equal(text[at:at + len(STACK)], STACK)
        loaded = text[text.index("\nLoaded modules:\n"):]
        assert loaded.startswith("\nLoaded modules:\n0x002a0000 - 0x002a8fff  crash.exe  ???  (main)\n0x70850000 - 0x70994fff  dbghelp.dll  6.2.14321.1024\n")
        assert "kernel32.dll  6.2.14393.1198  (WARNING: No symbols, wkernel32.pdb, D347455996F747D6BF43C176B2171E681)\n" in loaded
        told = json.loads(walked("--json"))
        equal((told["status"], told["process_uptime"], told["thread_count"], told["main_module"]), ("OK", 1, 4, 0))
        crash = {"type": "EXCEPTION_ACCESS_VIOLATION_WRITE", "address": "0x00000045", "assertion": None, "crashing_thread": 0}
        equal({key: told["crash_info"][key] for key in crash}, crash)
        frame = told["crashing_thread"]["frames"][0]
        equal((frame["function"], frame["line"], frame["module_offset"], [i["line"] for i in frame["inlines"]]),
              ("main(int, char**)", 35, "0x00002a3d", [24, 28]))
        equal(frame["registers"]["eip"], "0x002a2a3d")
    finally:
        shutil.rmtree(work)


def test_bcsymbolmap_restores_hidden_names():
    work = tempfile.mkdtemp(prefix="symloom-acceptance-")
    try:
        without = symbolicate_hidden(work, False)
        equal((without["symbol"], without["abs_path"]), ("__hidden#0_", "__hidden#41_/__hidden#41_/__hidden#42_"))
        found = symbolicate_hidden(work, True)
        equal((found["symbol"], found["function"]), ("-[SentryMessage initWithFormatted:]",) * 2)
        equal(found["abs_path"], "/Users/philipphofmann/git-repos/sentry-cocoa/Sources/Sentry/SentryMessage.m")
        equal(found["lang"], "objc")
    finally:
        shutil.rmtree(work)


def main():
    global SYMBOLS
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True)
    parser.add_argument("corpus")
    args = parser.parse_args()
    harness.SYMLOOM = os.path.abspath(args.symloom)
    SYMBOLS = os.path.join(args.corpus, "fixtures", "symbols")
    passed = failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            passed += 1
            print(f"ok      {name[5:]}")
        except Exception:
            failed += 1
            print(f"FAILED  {name[5:]}")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
