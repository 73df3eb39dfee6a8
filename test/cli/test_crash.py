"""`symloom symbolicate` of minidumps and of crash reports of Apple's systems."""
import contextlib, gzip, json, os, re, shutil, subprocess
import dumps, harness
from harness import contains, equal, ok, symloom, terminal

CRASH = dumps.HANDLER + r"""
static volatile int sink;
static __attribute__((noinline)) int fall(int *where) { *where = 7; return sink++; }
static inline __attribute__((always_inline)) int inlined(int *where) { sink--; return fall(where) + 2; }
__attribute__((noinline)) int climb(int depth) { return depth ? climb(depth - 1) + sink : inlined((int *)0x45) + sink; }
int main(void) { return climb(1) + sink; }
"""
FUNCTIONS = ["fall", "inlined", "climb", "climb", "main"]


def line_of(code):
    return 1 + CRASH[:CRASH.index(code)].count("\n")


def home(work):
    return {"HOME": work, "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": "", "SYMLOOM_CONFIG": "", "SYMLOOM_CACHE_DIR": ""}


def crashed(work, *flags, threads=1):
    """The program, below `files` at no place that a layout knows, and the path of a dump of it."""
    root = os.path.join(work, "files/somewhere")
    os.makedirs(root, exist_ok=True)
    with open(os.path.join(work, "crash.c"), "w") as f:
        f.write(CRASH)
    program = os.path.join(root, "crash")
    subprocess.run(["gcc", "-g", "-O1", "-w", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1", *flags, "-o", program, "crash.c"],
                   cwd=work, check=True)
    ok("bundle", "-o", os.path.join(work, "files/sources.zip"), program)
    dump, _ = dumps.of_crash(program, work, threads=threads)
    path = os.path.join(work, "crash.dmp")
    with open(path, "wb") as f:
        f.write(dump)
    return program, path


def symbolicate(work, *args, **options):
    return ok("symbolicate", "--offline", "--symbols", os.path.join(work, "files"), *args, env=home(work), cwd=work, **options)


def test_minidump_is_printed_as_json(work, files):
    program, dump = crashed(work, threads=2)
    text = symbolicate(work, dump)
    answer = json.loads(text)
    equal(text, json.dumps(answer, separators=(",", ":"), ensure_ascii=False) + "\n")
    equal((answer.get("status"), answer["crash_reason"].startswith("SIGSEGV"), len(answer["stacktraces"])), (None, True, 2))
    frames = [f for f in answer["stacktraces"][0]["frames"] if f.get("package") == program]
    equal([f["function"] for f in frames[:5]], FUNCTIONS)
    equal(frames[0]["lineno"], line_of("static __attribute__((noinline)) int fall"))
    contains(frames[0]["context_line"], "*where = 7")  # of the bundle beside it
    equal(json.loads(symbolicate(work, "--indent", "-f", "json", dump)), answer)
    contains(symbolicate(work, "--indent", dump), '\n  "stacktraces": [\n    {\n      "thread_id": 1,\n')
    without = json.loads(symbolicate(work, "--no-source-context", dump))
    equal([key for key in without["stacktraces"][0]["frames"][0] if "context" in key], [])
    with open(dump, "rb") as f:
        packed = os.path.join(work, "packed")
        with open(packed, "wb") as g:
            g.write(gzip.compress(f.read()))
    equal(symbolicate(work, packed), text)
    with open(dump, "rb") as f:
        piped = subprocess.run([harness.SYMLOOM, "symbolicate", "-", os.path.join(work, "files")], stdin=f, cwd=work,
                               capture_output=True, env={**os.environ, **home(work)}, timeout=60)
    equal((piped.returncode, piped.stdout.decode()), (0, text), piped.stderr)
    out = os.path.join(work, "out")
    equal(symbolicate(work, "--output", out, dump), "")
    with open(out) as f:
        equal(f.read(), text)


def rows(text):
    """Cells of a table, by columns that two blanks separate."""
    return [re.split(r"  +", line.strip()) for line in text.splitlines()]


def test_minidump_is_printed_in_columns(work, files):
    program, dump = crashed(work)
    table = rows(symbolicate(work, "-f", "compact", dump))
    equal(table[0], ["Trust", "Instruction", "Module File", "Function", "File"])
    first = table[1]
    equal((first[0], first[2], first[4], first[6]),
          ("context", "crash", "fall", f"crash.c:{line_of('static __attribute__((noinline)) int fall')}"))
    symbols = subprocess.run(["nm", program], capture_output=True, text=True).stdout.splitlines()
    start = next(int(s.split()[0], 16) for s in symbols if s.endswith(" fall"))
    equal(int(first[3], 16) - int(first[5], 16), start, "offsets in the module and the function")
    equal([(row[0], row[4]) for row in table[2:6]], [("inline", "inlined"), ("cfi", "climb"), ("cfi", "climb"), ("cfi", "main")])
    lines = symbolicate(work, "-f", "compact", dump).splitlines()
    assert all(line.startswith(" ") and not line.endswith(" ") for line in lines), lines
    pretty = symbolicate(work, "-f", "pretty", dump)
    contains(pretty, "Frame #0\n      Trust: context\nInstruction: 0x", "\n     Module: crash +0x", "\n   Function: fall +0x",
             "\n       File: crash.c:", "\n\nFrame #1\n")


def test_full_format_prints_the_whole_minidump(work, files):
    program, dump = crashed(work, threads=3)
    text = symbolicate(work, "-f", "full", "--context", "1", dump)
    contains(text, "System:     Linux 6.1 #1 SMP x86_64\nTime:       2018-03-22T10:07:53Z\nCrash:      SIGSEGV / SEGV_MAPERR / 0x45\n",
             "\nThread 1 (crashed)\n", "\nThread 2\n", "\nThread 3\n", f"  {work}/crash.c:", "\nModules\n Start", "\nmissing: ")
    at = line_of("static __attribute__((noinline)) int fall")
    lines = CRASH.splitlines()
    contains(text, f"  {at - 1:6} | {lines[at - 2]}\n> {at:6} | {lines[at - 1]}\n  {at + 1:6} | {lines[at]}\n")
    assert "file:///" not in text, text
    contains(symbolicate(work, "-f", "full", "-d", dump), f"\n    ok  file://{program}\n")
    only = symbolicate(work, "-f", "full", "--crashed-only", dump)
    contains(only, "\nThread 1 (crashed)\n")
    assert "\nThread 2" not in only, only
    assert "\nThread 1" not in symbolicate(work, "-f", "full", "--thread", "3", dump)
    equal(symbolicate(work, "-f", "compact", "--thread-index", "2", dump), symbolicate(work, "-f", "compact", dump))
    equal(symbolicate(work, "-f", "compact", "--all-threads", dump), "\n".join([symbolicate(work, "-f", "compact", dump)] * 3))


def test_unusable_files_are_listed_with_the_reason(work, files):
    """Their own block: where they are and what is wrong with them; what is only missing is no error."""
    program, dump = crashed(work)
    code_id = json.loads(ok("inspect", "--json", program))[0]["code_id"]
    broken = os.path.join(work, "store", code_id, "debuginfo")
    os.makedirs(os.path.dirname(broken))
    with open(broken, "w") as f:
        f.write("no debug file\n")
    options = ["--offline", "--cache-dir", "", "--symbols", "debuginfod:" + os.path.join(work, "store"), dump]
    for form in ("full", "markdown"):
        text = ok("symbolicate", "-f", form, *options, env=home(work), cwd=work)
        blocks = [block.strip("`\n").removeprefix("text\n") for block in text.split("\n\n")]
        wanted = f"error: crash: file://{broken}: malformed"
        equal([block for block in blocks if "error: " in block], [wanted])
        equal(blocks.index(wanted), len(blocks) - 2)
        assert blocks[-1].startswith("missing: "), blocks[-1]
        contains(blocks[-1], f"missing: {program} ")
    assert "error: " not in symbolicate(work, "-f", "full", dump)


def test_unused_modules_are_not_fetched(work, files):
    dump = dumps.Dump()
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10010}, 0x7000, bytes(64)))
    dump.modules.append((0x10000, 0x1000, "/lib/used\x1b[m", dumps.elf("11" * 20), 0))
    dump.modules.append((0x20000, 0x1000, "/lib/idle", dumps.elf("22" * 20), 0))
    path = os.path.join(work, "small.dmp")
    with open(path, "wb") as f:
        f.write(dump.done())
    text = ok("symbolicate", "-f", "full", path, env=home(work))
    contains(text, "Crash:      none\n", " 0x10000  0x11000  unknown  missing  missing  11111111-1111-1111-1111-111111111111  used\\x1b[m\n",
             "\nmissing: /lib/used\\x1b[m 111111111111111111111111111111110\n")
    assert "idle" not in text, text
    contains(ok("symbolicate", "-f", "full", "-v", path, env=home(work)), "  unused   unused   22222222-2222-2222-2222-222222222222  idle\n")


def test_minidump_stackwalk_name_selects_its_output(work, files):
    """A path of calls with inlined ones, as the tools of Breakpad and rust-minidump tell it; see also test/acceptance.py."""
    program, dump = crashed(work, threads=2)
    tool = harness.linked(work, "minidump_stackwalk")
    run = lambda *args: ok(*args, "--symbols-cache", "", dump, os.path.join(work, "files"), program=tool, env=home(work), cwd=work)
    head, frames = run("-m").split("\n\n")
    contains(head, "OS|Linux|", "\nCPU|amd64|", "\nGPU|||\nCrash|SIGSEGV / SEGV_MAPERR|0x45|0\n", "\nModule|crash||crash|")
    rows = [row.split("|") for row in frames.splitlines()]
    equal([(row[0], row[1], row[2], row[3]) for row in rows[:5]], [("0", str(i), "crash", name) for i, name in enumerate(FUNCTIONS)])
    equal((rows[0][4], int(rows[0][5])), (f"{work}/crash.c", line_of("static __attribute__((noinline)) int fall")))
    text = run()
    contains(text, "Operating system: Linux\n", "\nCPU: amd64\n     ", "\nCrash reason:  SIGSEGV / SEGV_MAPERR\nCrash address: 0x45\n",
             "\n\nThread 0 (crashed)\n 0  crash!fall [crash.c : ", "\n    Found by: given as instruction pointer in context\n 1  crash!inlined [crash.c : ",
             "]\n \n    Found by: inline record\n 2  crash!climb [crash.c : ", "\n    Found by: call frame info\n", "\n\nThread 1\n",
             "\n\nLoaded modules:\n0x")
    assert all(len(line) <= 81 for line in text.splitlines() if " = 0x" in line), text
    equal(run("-b").splitlines()[:2], ["Thread 0 (crashed)", next(line for line in text.splitlines() if line.startswith(" 0  crash!fall"))])
    assert "Thread 1" not in run("-c") and "Thread 0" not in run("-t", "1")
    stacks, line = run("-s", "-c"), line_of("__attribute__((noinline)) int climb")
    frames = stacks[stacks.index(" 2  crash!climb"):stacks.index(" 3  crash!climb")]
    contains(frames, "\n\n    Stack contents:\n     0000", "\n    Possible instruction pointers:\n     *(0x", f" <climb> [crash.c : {line} + 0x")
    words = run("-d", "-c")
    contains(words, "\n\nThread 0 (crashed)\n Stack begin:   0x", "\n Stack end:     0x", "\n Stack pointer: 0x", " <main> [crash.c : ", "\n\nLoaded modules:\n")
    assert "crash!" not in words, words
    told = json.loads(run("--json"))
    first, second = told["crashing_thread"]["frames"][:2]
    equal((told["crash_info"]["type"], first["function"], first["trust"], first["inlines"]), ("SIGSEGV / SEGV_MAPERR", "fall", "context", None))
    equal((second["frame"], second["function"], [i["function"] for i in second["inlines"]]), (1, "climb", ["inlined"]))
    equal(first["registers"]["rip"], first["offset"])
    equal(len(told["threads"]), 2)
    both = os.path.join(work, "both.json")
    equal(run("--cyborg", both), text)
    with open(both) as f:
        equal(json.load(f), told)
    contains(ok("--dump", dump, program=tool), "ThreadListStream")
    wrong = symloom("-c", "-t", "1", dump, program=tool)
    equal((wrong.status, wrong.err), (1, "error: -c and -t cannot be used together.\n"))
    report = os.path.join(work, "report.crash")
    with open(report, "w") as f:
        f.write(TEXT % (0x108000000, "67E9247C-814E-392B-A027-DBDE6748FCBF"))
    equal(symloom("symbolicate", "-f", "machine", report, env=home(work)).status, 2)


def test_symbolicli_name_prints_minidumps_as_json(work, files):
    """JSON on a terminal too."""
    program, dump = crashed(work)
    tool = harness.linked(work, "symbolicli")
    arguments = [dump, "--offline", "--cache-dir", "", "--symbols", os.path.join(work, "files")]
    equal(ok(*arguments, program=tool, env=home(work)), symbolicate(work, dump))
    for command, begin in (([tool], "{"), ([harness.SYMLOOM, "symbolicate"], " Trust ")):
        ours, theirs = terminal()
        with subprocess.Popen([*command, "--color", "never", *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL,
                              env={**os.environ, **home(work)}) as child:
            os.close(theirs)
            text = b""
            with contextlib.suppress(OSError):  # the end, once nobody has the other side
                while piece := os.read(ours, 65536):
                    text += piece
            equal(child.wait(), 0, text)
        os.close(ours)
        assert text.decode().startswith(begin), text[:200]
    contains(ok("--help", program=tool), "usage: symbolicli ")


def test_local_files_named_by_the_dump_are_used(work, files):
    """What a dump says of its files is enough, as long as they are the same ones."""
    program, dump = crashed(work)
    tool = harness.linked(work, "minidump_stackwalk")
    names = lambda *args: [row[4] for row in rows(ok("symbolicate", "-f", "compact", *args, dump, env=home(work)))[1:6] if len(row) > 5]
    equal(names(), [])
    equal(names("--local-debug-info"), FUNCTIONS)
    stacks = ok("-m", "--use-local-debuginfo", "--symbols-cache", "", dump, program=tool, env=home(work)).split("\n\n")[1]
    equal([row.split("|")[3] for row in stacks.splitlines()[:5]], FUNCTIONS)
    report, (uuid, address) = os.path.join(work, "report.crash"), dsym(work, files)
    dwarf = os.path.join(work, "files/app.dSYM/Contents/Resources/DWARF/app")
    with open(report, "w") as f:
        f.write((TEXT % (0x108000000 + address, uuid)).replace("/Apps/app", dwarf))
    contains(ok("symbolicate", "-f", "compact", "--local-debug-info", report, env=home(work)), "  outer ")
    crashed(work, "-Dclimb=scale")
    subprocess.run(["gcc", "-g", "-O2", "-w", "-Wl,--build-id=sha1", "-o", program, "crash.c"], cwd=work, check=True)
    equal(set(names("--local-debug-info")) & set(FUNCTIONS), set())


def test_changed_program_is_not_taken_from_the_cache(work, files):
    """What is kept of a file in the cache is not taken for the file that is there now."""
    for flags in ((), ("-Dclimb=scale",), ("-Dclimb=crawl",)):
        _, dump = crashed(work, *flags)
        wanted = flags[0].split("=")[1] if flags else "climb"
        contains(symbolicate(work, "-f", "compact", dump), f"  {wanted}  ")


def test_unusable_crash_files_report_the_reason(work, files):
    program, dump = crashed(work)
    junk = os.path.join(work, "junk")
    for data, status, text in ((b"MDMP" + b"." * 99, 3, "error: Minidump version mismatch\n"), (b"MDMP", 3, "error: Missing minidump header"),
                               (b"some text", 3, "error: unknown input format\n  caused by: supported: minidumps, "),
                               (b"{}", 3, "error: Cannot symbolicate event: invalid platform "), (b'{"a":', 3, "error: failed to parse event json file\n  caused by: "),
                               (b'{"threads": [], "usedImages": [], "pid": }', 3, "error: failed to parse"),
                               (b'{"bug_type": "309"}\n{"threads": [', 3, "error: failed to parse apple crash report\n  caused by: ")):
        with open(junk, "wb") as f:
            f.write(data)
        result = symloom("symbolicate", junk, env=home(work))
        equal((result.status, result.out), (status, ""), result.err)
        contains(result.err, text)
    equal(symloom("symbolicate", "--type", "minidump", program, env=home(work)).err, "error: Header mismatch\n")
    nowhere = symloom("symbolicate", "/nowhere", env=home(work))
    equal((nowhere.status, nowhere.err), (1, 'error: Could not open event file at "/nowhere"\n  caused by: No such file or directory\n'))
    for wrong in (("-f", "xml"), ("-f", "full", "--thread", "99"), ("--thread", "1"), ("-f", "full", "--thread", "1", "--all-threads"), ("-f", "machine", "--stack-contents"), ("--stack-pointers",),
                  ("--timeout", "soon"), ("--type", "unknown"), ("--rewrite-first-module", "["), ("--mapping", junk, "--type", "apple")):
        equal(symloom("symbolicate", *wrong, dump, env=home(work)).status, 2, wrong)
    equal(symloom("symbolicate", "--fail-on-missing", dump, env=home(work)).status, 3)
    equal(symloom("symbolicate", env=home(work)).status, 2)


def dsym(work, files):
    """Below `files`; its UUID and the address of `outer`."""
    files.get("t.fat")
    home = os.path.join(work, "files/app.dSYM")
    shutil.copytree(os.path.join(files.dir, "app.dSYM"), home)
    item = next(i for i in json.loads(ok("inspect", "--json", os.path.join(home, "Contents/Resources/DWARF/app"))) if i["arch"] == "x86_64")
    address = next(int(line.split()[0], 16) for line in files.run("llvm-nm-14 x86_64.dwarf").splitlines() if line.endswith(" _outer"))
    return item["debug_id"][:36], address


TEXT = """Incident Identifier: 5C32DF84-31A0-43E7-87D0-239F7F594940
Code Type:       X86-64 (Native)
Date/Time:       2019-01-09 17:42:22 +0000
OS Version:      Mac OS X 10.14.0 (18A391)
Exception Type:  SIGSEGV

Thread 0:
0   app                                 0x0000000108000000 0x108000000 + 0

Thread 3 Crashed:
0   app                                 %#x 0x108000000 + 1

Binary Images:
       0x108000000 -        0x108ffffff +app x86_64 (1.0) <%s> /Apps/app
"""


def test_files_of_another_processor_are_not_used(work, files):
    """An id decides only among files whose code may be in the process."""
    uuid = "5C32DF84-31A0-43E7-87D0-239F7F594940"
    os.mkdir(os.path.join(work, "files"))
    for arch, found in (("x86_64", True), ("arm64", True), ("riscv64", False), ("loongarch64", False), ("ppc", False)):
        with open(os.path.join(work, "files/app.sym"), "w") as f:
            f.write(f"MODULE mac {arch} {uuid.replace('-', '')}0 app\nPUBLIC 0 0 start\n")
        text = symbolicate(work, "-f", "compact", "-", input=TEXT % (0x108000010, uuid))
        equal("  start " in text, found, arch)


def ips(uuid, offset):
    return json.dumps({"app_name": "app", "bug_type": "309", "os_version": "macOS 12.0.1 (21A559)"}) + "\n" + json.dumps({
        "captureTime": "2021-11-15 10:00:00.00 +0100", "cpuType": "X86-64", "modelCode": "Mac1,1",
        "osVersion": {"train": "macOS 12.0.1", "build": "21A559"}, "exception": {"type": "EXC_BAD_ACCESS", "signal": "SIGSEGV"},
        "threads": [{"id": 5, "frames": []}, {"id": 6, "triggered": True, "name": "main", "frames": [{"imageIndex": 0, "imageOffset": offset}]}],
        "usedImages": [{"source": "P", "arch": "x86_64", "base": 0x108000000, "size": 0x1000000, "uuid": uuid, "path": "/Apps/app", "name": "app"}]})


CONSOLE = """Process:               Demo [1]
Code Type:             ARM-64 (Native)
OS Version:            macOS 15.1 (24B83)
Exception Type:        EXC_BAD_ACCESS (SIGSEGV)
Exception Codes:       KERN_INVALID_ADDRESS at 0x0000000000000010
Exception Codes:       0x0000000000000001, 0x0000000000000010

Thread 0 Crashed:: worker
0   Demo                          	       0x100003f70 run + 40 (run.c:12) [inlined]
1   Demo                          	       0x100003f70 start_worker + 44 (run.c:20)
2   ???                           	       0x10be3c7ac ???
3   libsystem_pthread.dylib       	       0x180005000 _pthread_start + 136

Binary Images:
       0x100000000 -        0x10000ffff com.demo (1.0) <2d903291-397d-3d14-bfca-52c7fb8c5e00> /Apps/Demo
"""


def test_apple_report_without_symbols_keeps_its_names(work, files):
    path = os.path.join(work, "report.crash")
    os.mkdir(os.path.join(work, "files"))
    with open(path, "w") as f:
        f.write(CONSOLE)
    told = symbolicate(work, "-f", "full", path)
    contains(told, "System:     macOS 15.1 24B83 arm64\n", "Details:    KERN_INVALID_ADDRESS at 0x0000000000000010\n", "run             +0x28  run.c:12\n",
             "start_worker    +0x2c  run.c:20\n", "_pthread_start  +0x88\n")
    assert "???" not in told, told
    contains(symbolicate(work, "-f", "compact", path), "run             +0x28  run.c:12\n", "_pthread_start  +0x88\n")
    raised = json.loads(ips("2d903291-397d-3d14-bfca-52c7fb8c5e00", 16).splitlines()[1])
    raised["exceptionReason"] = {"name": "NSRangeException", "composed_message": "index 3 beyond bounds"}
    raised["lastExceptionBacktrace"] = [{"imageIndex": 0, "imageOffset": 900, "symbol": "__exceptionPreprocess", "symbolLocation": 220}]
    raised["asi"] = {"libc": ["abort() called"]}
    with open(path, "w") as f:
        json.dump(raised, f)
    told = symbolicate(work, "-f", "full", path)
    contains(told, "Details:    NSRangeException: index 3 beyond bounds\nDetails:    abort() called\n\nLast Exception Backtrace\n")
    assert told.index("Last Exception Backtrace") < told.index("(crashed)"), told
    for form in ("compact", "pretty"):
        text = symbolicate(work, "-f", form, path)
        assert text.startswith("Last Exception Backtrace\n"), text
        contains(text, "__exceptionPreprocess")
    assert "Last Exception" not in symbolicate(work, "-f", "compact", "--thread-index", "1", path)
    contains(symbolicate(work, "-f", "compact", path), "__exceptionPreprocess  +0xdc\n")


def test_apple_reports_without_header_are_read(work, files):
    os.mkdir(os.path.join(work, "files"))
    for text in (CONSOLE[CONSOLE.index("Thread 0"):], "Hardware Model: Mac1,1\n" + CONSOLE[CONSOLE.index("Thread 0"):], CONSOLE[CONSOLE.index("Exception Type"):]):
        contains(symbolicate(work, "-f", "compact", "-", input=text), "run.c:12")


def test_apple_text_and_ips_reports_are_symbolicated(work, files):
    uuid, address = dsym(work, files)
    for name, text, told in (("report.crash", TEXT % (0x108000000 + address, uuid), "Crash:      SIGSEGV\n\nThread 3 (crashed)\n"),
                             ("report.ips", ips(uuid, address), "Crash:      EXC_BAD_ACCESS (SIGSEGV)\n\nThread 1 main (crashed)\n")):
        path = os.path.join(work, name)
        with open(path, "w") as f:
            f.write(text)
        answer = json.loads(symbolicate(work, path))
        equal([t["is_requesting"] for t in answer["stacktraces"]], [False, True])
        frames = answer["stacktraces"][1]["frames"]
        equal((frames[-1]["function"], frames[-1]["filename"]), ("outer", "t.c"), name)
        equal(json.loads(symbolicate(work, "-", input="\ufeff\n" + text)), answer)
        contains(symbolicate(work, "-f", "full", path), told)
        table = rows(symbolicate(work, "-f", "compact", path))
        equal((table[-1][0], table[-1][2], table[-1][4]), ("none", "app", "outer"))
