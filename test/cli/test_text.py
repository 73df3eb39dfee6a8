"""`symloom symbolicate` for texts with stacks, whole and as they come, and the tools whose place it takes."""
import os, re, subprocess, threading

import harness
from harness import DEADLINE, contains, equal, linked, ok, symloom
from test_symbolicate import MAPPING, written

SOURCE = """#include <execinfo.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) int element(int *p, int n) { return p[n]; }
__attribute__((noinline)) int use(int *p, int n) { return element(p, n) + 1; }
__attribute__((noinline)) int depth(int n)
{
    void *frames[16];
    if (n)
        return depth(n - 1) + 1;
    backtrace_symbols_fd(frames, backtrace(frames, 16), 1);
    return 0;
}
int main(int count, char **words)
{
    int *p = malloc(8);
    depth(2);
    free(p);
    return use(p, 1);
}
"""


def run(*command, **keys):
    return subprocess.run(command, check=True, capture_output=True, text=True, **keys).stdout


def build(work, name="shop", *flags):
    path = os.path.join(work, name)
    written(work, name + ".c", SOURCE)
    run("gcc", "-g", "-O1", "-Wl,--build-id=sha1", *flags, "-o", path, path + ".c")
    return path, re.search(r"Build ID: (\w+)", run("readelf", "-n", path)).group(1)


def address(path, name):
    return next(int(line.split()[0], 16) for line in run("nm", "--defined-only", path).splitlines() if line.split()[-1] == name)


def place(path, at):
    return run("addr2line", "-e", path, hex(at)).split(" (")[0].strip()


def test_reports_of_sanitizers_are_named(work, files):
    path, _ = build(work, "asan", "-fsanitize=address")
    given, wanted = (subprocess.run([path], capture_output=True, text=True, env={"ASAN_OPTIONS": f"symbolize={n}"}).stderr for n in (0, 1))
    own = lambda text: [" ".join(line.split()[2:]) for line in text.splitlines() if re.match(r"    #\d+ 0x", line) and f" {path}" in line.replace("(", " ")]
    report = written(work, "report.txt", given)
    told = symloom("symbolicate", report, "--symbols", path)
    equal((told.status, own(told.out)), (0, own(wanted)), told.err)
    contains(told.err, "warning: no symbols for 2 of 3 modules on the stack: ", "libasan")
    equal([line for line in told.out.splitlines() if "    #" not in line], [line for line in given.splitlines() if "    #" not in line])
    tool = linked(work, "asan_symbolize")
    for words in ([], ["-d"], ["-l", report]):
        equal(own(symloom(*words, program=tool, input=given).out), own(wanted), words)
    equal(symloom("symbolicate", report, "--local-debug-info", "--symbols", work, "-q").out.count(" in use "), 1)
    answer = ok("symbolicate", report, "--symbols", path, "-f", "compact")
    contains(answer, " Function ", "element", "use", "main")


def test_pipe_is_answered_while_it_is_written(work, files):
    path, _ = build(work)
    at = address(path, "depth")
    process = subprocess.Popen([harness.SYMLOOM, "symbolicate", "-", "--symbols", path, "-q"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        for i in range(3):
            process.stdin.write(f"{i} log\n{i} #0 0x1  (/x/shop+0x{at:x})\n")
            process.stdin.flush()
            equal([process.stdout.readline() for _ in range(2)], [f"{i} log\n", f"{i} #0 0x1 in depth {place(path, at)}\n"])
        process.stdin.close()
        equal((process.stdout.read(), process.wait(timeout=DEADLINE)), ("", 0))
    finally:
        process.kill()
        process.wait()


def test_traces_in_a_pipe_are_answered_line_by_line(work, files):
    """The exception of a trace counts for its frames, which come later."""
    lines = [("log\n", "log\n"), ("a.e: y\n", "com.example.Oops: y\n"),
             ("\tat a.b.c(SourceFile:1)\n", "\tat com.example.Util.check(Util.kt:7)\n\tat com.example.Main.run(Main.kt:20)\n"),
             ("    at f (/srv/x.js:1:2)\nend\n", "    at f (/srv/x.js:1:2)\nend\n")]
    command = [harness.SYMLOOM, "symbolicate", "-", "--symbols", work, "--mapping", written(work, "mapping.txt", MAPPING), "-q"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        for given, wanted in lines * 2:
            process.stdin.write(given)
            process.stdin.flush()
            equal("".join(process.stdout.readline() for _ in wanted.splitlines()), wanted)
        process.stdin.close()
        equal((process.stdout.read(), process.wait(timeout=DEADLINE)), ("", 0))
    finally:
        process.kill()
        process.wait()


def test_backtrace_symbols_and_tombstones_are_named(work, files):
    path, code_id = build(work)
    given = subprocess.run([path], capture_output=True, text=True).stdout
    told = ok("symbolicate", written(work, "bt.txt", given), "--symbols", path)
    for before, now in zip(given.splitlines(), told.splitlines()):
        found = re.search(r"shop\(\+(0x\w+)\)", before)
        equal(now, f"{before} depth at {place(path, int(found.group(1), 16) - 1)}" if found and " depth at" in now else now)
    equal(told.count(" depth at "), 3)
    at = address(path, "depth")
    crash = f"F DEBUG   : signal 11\nF DEBUG   :       #00 pc {at:08x}  /data/lib/{os.path.basename(path)} (depth+0) (BuildId: {code_id})\n"
    wanted = crash[:-1] + f" depth ({place(path, at)})\n"
    equal(symloom("-sym", work, program=linked(work, "ndk-stack"), input=crash).out, wanted)
    equal(symloom("-sym", work, "-dump", written(work, "dump.txt", crash), program=os.path.join(work, "ndk-stack")).out, wanted)
    equal(symloom(program=os.path.join(work, "ndk-stack"), input=crash).status, 2)


def test_markup_equals_llvm_symbolizer(work, files):
    path, code_id = build(work)
    debug = os.path.join(work, "debug/.build-id", code_id[:2], code_id[2:] + ".debug")
    os.makedirs(os.path.dirname(debug))
    os.link(path, debug)
    at, use = 0x10000 + address(path, "depth"), 0x10000 + address(path, "use")
    log = (f"{{{{{{reset}}}}}}\n[1] {{{{{{module:0:shop:elf:{code_id}}}}}}} gone\n{{{{{{mmap:0x10000:0x1000:load:0:r:0x0}}}}}}\n{{{{{{mmap:0x11000:0x3000:load:0:rx:0x1000}}}}}}\n"
           f"plain {{{{{{pc:0x{at:x}}}}}}} x {{{{{{pc:0x{at + 1:x}:ra}}}}}}\n{{{{{{bt:0:0x{use:x}:pc}}}}}}\n  {{{{{{bt:12:0x{at + 1:x}}}}}}} after\n{{{{{{symbol:_ZN1a1bEv}}}}}} {{{{{{unknown:3}}}}}} {{{{{{\n"
           f"{{{{{{bt:1:0x99999:ra}}}}}}\nx{{{{{{reset}}}}}}\n{{{{{{pc:0x{at:x}}}}}}}\n")
    words = ["--filter-markup", "--debug-file-directory", os.path.join(work, "debug")]
    wanted = run("llvm-symbolizer-19", *words, input=log)
    equal(re.search(r":\d+:[1-9]\d* \(", wanted) is not None, True)
    equal(symloom(*words, "-q", program=linked(work, "llvm-symbolizer"), input=log).out, wanted)
    both = ["--filter-markup", "--debug-file-directory", os.path.join(work, "empty"), "--fallback-debug-path", os.path.join(work, "debug")]
    os.mkdir(os.path.join(work, "empty"))
    equal(symloom(*both, "-q", program=os.path.join(work, "llvm-symbolizer"), input=log).out, wanted)


def test_text_holds_several_kinds_of_stacks(work, files):
    path, _ = build(work)
    at = address(path, "depth")
    given = f"x #0 0x1  (shop+0x{at:x})\nE: a.e: y\nE: \tat a.b.c(SourceFile:1)\n\tat java.lang.Thread.run(Thread.java:1)"
    told = ok("symbolicate", written(work, "log", given), "--symbols", path, "--mapping", written(work, "mapping.txt", MAPPING), "-q")
    contains(told, f"x #0 0x1 in depth {place(path, at)}\n", "com.example.Oops: y", "com.example.")


def test_text_without_known_frames_comes_back(work, files):
    rust = "stack backtrace:\n   0:     0x55cc5536701a - <unknown>\n  19:     0x7f775a52e24a - f\n                               at ./a.h:58:16\n"
    told = symloom("symbolicate", written(work, "rust.txt", rust))
    equal((told.status, told.out), (0, rust))
    contains(told.err, "warning: the modules of 2 of 2 native frames are unknown: ", "/proc/PID/maps")
    log = "".join(f"{i} took 0x{i:x} ns\n" for i in range(200000)) + "no end"
    told = symloom("symbolicate", "-f", "text", written(work, "log", log))
    equal((told.status, told.out == log), (0, True))
    contains(told.err, "no stack of native code was found")
    told = symloom("symbolicate", "-", input=log)  # longer than a pipe: written while it comes
    equal((told.status, told.out == log), (0, True), told.err)
    equal(symloom("symbolicate", os.path.join(work, "log")).status, 3)


def test_ambiguous_names_are_not_guessed(work, files):
    one, _ = build(work, "shop")
    os.mkdir(os.path.join(work, "a"))
    os.mkdir(os.path.join(work, "b"))
    os.rename(one, os.path.join(work, "a/shop"))
    with open(os.path.join(work, "shop.c"), "a") as f:
        f.write("int more;\n")
    run("gcc", "-g", "-O1", "-Wl,--build-id=sha1", "-o", os.path.join(work, "b/shop"), os.path.join(work, "shop.c"))
    at = address(os.path.join(work, "b/shop"), "depth")
    for name, wanted in (("shop", False), ("/x/shop", False), ("/x/b/shop", True), ("/x/a/shop", True)):
        given = f"#0 0x1  ({name}+0x{at:x})\n"
        told = symloom("symbolicate", written(work, "r.txt", given), "--symbols", os.path.join(work, "a"), "--symbols", os.path.join(work, "b"), "-q")
        equal((told.status, " in depth " in told.out), (0, wanted), told.out)


def test_long_log_needs_constant_memory(work, files):
    """1 GiB through a pipe, with frames of native code, scripts and the JVM in it. Of the memory, 28 MiB are the program itself."""
    count = 128
    path, _ = build(work)
    at = address(path, "depth")
    frames = f"#0 0x1  (/x/shop+0x{at:x})\n    at f (https://x.y/a.js:1:2)\n\tat a.b.c(SourceFile:1)\n"
    named = (f"#0 0x1 in depth {place(path, at)}\n    at f (https://x.y/a.js:1:2)\n\tat com.example.Util.check(Util.kt:7)\n"
             "\tat com.example.Main.run(Main.kt:20)\n")
    plain = "".join(f"2026-11-28 02:39:07.{i:06} INFO request {i} took 0x{i:x} ns\n" for i in range(1 << 14))
    block = plain * ((8 << 20) // len(plain))
    command = [harness.SYMLOOM, "symbolicate", "-", "--symbols", path, "--mapping", written(work, "mapping.txt", MAPPING), "-q"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        def write():
            with process.stdin:
                for _ in range(count):
                    process.stdin.write((frames + block).encode())
        writer = threading.Thread(target=write)
        writer.start()
        first = process.stdout.read(len(named))
        size, peak = len(first), 0
        while data := process.stdout.read(1 << 20):
            size += len(data)
            with open(f"/proc/{process.pid}/status") as f:  # what wait4 tells would be this process's memory, if that is more
                peak = max(peak, int((re.search(r"^VmHWM:\s+(\d+)", f.read(), re.M) or [0, 0])[1]) >> 10)
        writer.join()
    equal((process.returncode, first.decode()), (0, named))
    equal(size, count * (len(named) + len(block)))
    equal(0 < peak < 96, True, f"{peak} MiB")
