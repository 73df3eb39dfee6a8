"""Dumps and debug files that Breakpad's own tests have, which an old version of an npm package carries."""
import os, re, subprocess

import harness
from harness import equal, npm_path

TESTDATA = "breakpad-data@npm:minidump@0.9.0", "breakpad-data/deps/breakpad/src"
TOOL = "minidump@0.26.0", "minidump/bin/linux-x64/minidump_stackwalk"


def testdata(work):
    return os.path.join(npm_path(work, *TESTDATA), "processor/testdata")


def functions(text):
    """By address: (name without parameters, file, line) of everything that a FUNC record covers, where lines begin and end."""
    files, found, name = {}, {}, None
    for fields in (line.rstrip("\r").split(" ") for line in text.splitlines()):
        if fields[0] == "FILE":
            files[fields[1]] = " ".join(fields[2:]).lower()
        elif fields[0] == "FUNC":
            start, size, _, *rest = (f for f in fields[1:] if f != "m")
            name = re.match(r"[_@]*([^(@]*)", " ".join(rest)).group(1)
            found.setdefault(int(start, 16), (name, "", 0))
            found.setdefault(int(start, 16) + int(size, 16) - 1, (name, "", 0))
        elif re.fullmatch("[0-9a-f]+", fields[0]) and len(fields) == 4:
            start, size, line = int(fields[0], 16), int(fields[1], 16), int(fields[2])
            if size:
                found[start] = found[start + size - 1] = (name, files.get(fields[3], "") if line else "", line)
    return found


def ours(format, dump, symbols, *options):
    command = [harness.SYMLOOM, "symbolicate", "-f", format, "--offline", *options, "--symbols", symbols, dump]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def theirs(tool, dump, symbols, *options):
    return subprocess.run([tool, *options, dump, symbols], capture_output=True, text=True, check=True).stdout


def dumps_of(data, linux):
    names = (n for n in sorted(os.listdir(data)) if n.endswith(".dmp") and not n.startswith("microdump"))
    return [os.path.join(data, n) for n in names if n.startswith("linux_") == linux]


def machine_frames(text):
    """Of all threads, without their numbers."""
    lines = [line.split("|") for line in text.splitlines() if re.match(r"\d+\|", line)]
    return [[thread] + fields for thread, _, *fields in lines]


def check_caller_of_bad_address(dump, symbols, tool, caller):
    """minidump_stackwalk leaves it out, and has all the other frames."""
    frames, others = machine_frames(ours("machine", dump, symbols)), machine_frames(theirs(tool, dump, symbols, "-m"))
    equal([frame[1:] for frame in frames if frame not in others], [caller], dump)
    equal([frame for frame in frames if frame in others], others, dump)


def test_windows_dumps_equal_minidump_stackwalk(work, args):
    data, tool = testdata(work), npm_path(work, *TOOL)
    symbols = os.path.join(data, "symbols")
    found = dumps_of(data, linux=False)
    for dump in found:
        if os.path.basename(dump) == "exec_av_on_stack.dmp":
            check_caller_of_bad_address(dump, symbols, tool, ["crashme1.exe", "", "", "", "0x10ae"])
            continue
        equal(ours("machine", dump, symbols), theirs(tool, dump, symbols, "-m"), dump)
        text = ours("stackwalk", dump, symbols)
        if re.search(r"^ *\.\.\. [0-9,]+ frames of .* repeat", text, re.M):  # folded, which is known of this one alone
            equal(os.path.basename(dump), "stack_exhaustion.dmp")
            continue
        equal(text, theirs(tool, dump, symbols), dump)
        equal(ours("stackwalk", dump, symbols, "--stack-contents"), theirs(tool, dump, symbols, "-s"), dump)
    assert len(found) >= 17, found
    words = ours("stackwalk", os.path.join(data, "minidump2.dmp"), symbols, "--stack-pointers")
    for part in ("\n\nThread 0 (crashed)\n Stack begin:   0x0012f31c\n Stack end:     0x00130000\n Stack pointer: 0x0012fe84\n",
                 "\n *(0x0012fe88) = 0x0012ff70\n *(0x0012fe8c) = 0x00404200 <main> [test_app.cc : 66 + 0x0]\n", "\n\nLoaded modules:\n"):
        assert part in words, words[:2000]
    with open(os.path.join(data, "minidump2.stackwalk.machine_readable.out")) as f:
        recorded = f.read()
    equal(ours("machine", os.path.join(data, "minidump2.dmp"), symbols).replace("GPU|||\n", ""), recorded)


def test_linux_dumps_equal_minidump_stackwalk_up_to_scanned_frames(work, args):
    """The reason is the service's own text: minidump_stackwalk adds the number of a code that has no name."""
    data, tool = testdata(work), npm_path(work, *TOOL)
    symbols, compared = os.path.join(data, "symbols"), 0
    for dump in dumps_of(data, linux=True):
        texts = (ours("stackwalk", dump, symbols), theirs(tool, dump, symbols))
        a, b = (re.sub(r"(Crash reason: +\w+).*", r"\1", text).split("\nLoaded modules:\n") for text in texts)
        equal(a[1], b[1], dump)
        frames = [re.split(r"\n(?= ?\d+  )", text[0].rstrip()) for text in (a, b)]
        same = next((i for i, frame in enumerate(frames[0]) if "Found by: stack scanning" in frame), None)
        if same is None:
            equal(a[0], b[0], dump)
        equal(frames[0][:same], frames[1][:same], dump)
        compared += len(frames[0][:same])
    assert compared > 20, compared


def test_rearranged_programs_equal_dump_syms(work, args):
    """Debug files of Windows with OMAP tables beside what dump_syms has recorded of them, which lacks lines of what was stretched
    or cut, and underscores of names."""
    root = os.path.join(npm_path(work, *TESTDATA), "tools/windows/dump_syms/testdata")
    compared = 0
    for name in ("dump_syms_regtest", "omap_reorder_funcs", "omap_reorder_bbs", "omap_stretched", "omap_stretched_filled"):
        with open(os.path.join(root, f"{name}.sym"), errors="replace") as f:
            wanted = functions(f.read())
        command = [harness.SYMLOOM, "dump-syms", os.path.join(root, f"{name}.pdb")]
        got = functions(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert max(got) < 0x80000000, f"{name}: {max(got):x}"
        for address, place in wanted.items():
            if place[2] or address in got:
                told = got[address]
                equal(told if place[2] else told[:1], place if place[2] else place[:1], f"{name} {address:x}")
                compared += 1
    assert compared > 15_000, compared
