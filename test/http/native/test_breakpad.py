"""`symloom dump-syms` beside Breakpad's own programs: what dump_syms writes, what minidump_stackwalk reads."""
import os, subprocess

import harness
from harness import equal, from_corpus, from_npm, npm_path


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    equal(done.returncode, 0, done.stderr[-1000:])
    return done.stdout


def breakpad(work, program):
    return npm_path(work, "minidump@0.26.0", os.path.join("minidump/bin/linux-x64", program))


def rules(text):
    """The rules of every STACK record, by its place; the order of their registers has no meaning."""
    out = {}
    for line in text.splitlines():
        if line.startswith("STACK CFI "):
            head, *rest = line.replace("STACK CFI INIT ", "STACK CFI INIT,").split(": ")
            *place, register = head.split(" ")
            found = {}
            for part in rest:
                value, _, following = part.rpartition(" ") if part is not rest[-1] else (part, "", "")
                found[register] = value.strip()
                register = following
            out[" ".join(place)] = found
    return out


@from_npm
def test_unwind_rules_equal_those_of_breakpad_dump_syms(work, objects):
    """Of this program: tens of thousands of rules."""
    ours = rules(run(harness.SYMLOOM, "dump-syms", harness.SYMLOOM))
    theirs = rules(run(breakpad(work, "dump_syms"), harness.SYMLOOM))
    equal(len(ours) > 10000, True, "records")
    for place, found in theirs.items():
        if found != ours.get(place):  # it does not know functions without a caller, as _start is
            equal({k: v for k, v in found.items() if k != ".ra"}, ours.get(place), place)
            equal(found[".ra"], ".cfa -8 + ^", place)
    for place in set(ours) - set(theirs):  # nor expressions, as procedure linkage tables have
        equal("%" in ours[place][".cfa"], True, place)


@from_npm
@from_corpus
def test_breakpad_stackwalk_reads_symbols_made_from_a_pdb(work, objects):
    pdb = os.path.join(harness.CORPUS, "fixtures/symbols/crash_with_srcsrv.pdb/3249D99D0C4049318610F4E4FB0B69361/crash_with_srcsrv.pdb")
    place = os.path.join(work, "crash.pdb", "3249D99D0C4049318610F4E4FB0B69361")
    os.makedirs(place)
    run(harness.SYMLOOM, "dump-syms", "--inlines", pdb, "-o", os.path.join(place, "crash.sym"))
    out = run(breakpad(work, "minidump_stackwalk"), "-m", os.path.join(harness.CORPUS, "fixtures/windows.dmp"), work)
    stack = [line.split("|")[2:6] for line in out.splitlines() if line.startswith("0|")]
    equal([(module, function, path.rpartition("\\")[2], line) for module, function, path, line in stack][:6], [
        ("crash.exe", "`anonymous namespace'::crash()", "main.cpp", "24"),
        ("crash.exe", "`anonymous namespace'::start()", "main.cpp", "28"),
        ("crash.exe", "main(int, char**)", "main.cpp", "35"),
        ("crash.exe", "invoke_main()", "exe_common.inl", "78"),
        ("crash.exe", "__scrt_common_main_seh()", "exe_common.inl", "283"),
        ("kernel32.dll", "", "", ""),  # found by the frame data of the PDB: without it there is garbage between
    ])
