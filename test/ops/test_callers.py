"""The program under the names of other tools, called by the programs that call those: perf, sanitizers, profilers."""
import glob, os, re, shutil, subprocess
from ops import DEADLINE, run

SOURCE = """#include <stdlib.h>
#include <string.h>
static volatile unsigned long sink;
static inline __attribute__((always_inline)) unsigned long mix(unsigned long x) { return x * 2654435761u ^ x >> 7; }
__attribute__((noinline)) void burn(unsigned long rounds)
{
    for (unsigned long i = 0; i < rounds; i++)
        sink = mix(sink + i);
}
int main(int argc, char **argv)
{
    burn(argc > 1 ? strtoul(argv[1], 0, 10) : 1000);
    return 0;
}
"""

BROKEN = """#include <stdlib.h>
__attribute__((noinline)) static int reach(int *cells, int at) { return cells[at]; }
int main(int argc, char **argv)
{
    int *cells = malloc(4 * sizeof *cells);
    return reach(cells, argc + 3);
}
"""

RACE = """#include <pthread.h>
static int counter;
static void *raise_it(void *arg) { for (int i = 0; i < 1000; i++) counter++; return arg; }
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, raise_it, 0);
    pthread_create(&b, 0, raise_it, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
"""


def compiled(work, name, text, *words, compiler="gcc"):
    source, path = os.path.join(work, name + ".c"), os.path.join(work, name)
    with open(source, "w") as f:
        f.write(text)
    run(compiler, "-g", "-O1", "-o", path, source, *words)
    return path


def named(work, *names):
    """A directory with the program under these names, before all others in PATH."""
    from ops import SYMLOOM
    tools = os.path.join(work, "tools")
    os.mkdir(tools)
    for name in names:
        os.symlink(SYMLOOM, os.path.join(tools, name))
    return tools, {**os.environ, "PATH": tools + ":" + os.environ["PATH"]}


def contains(text, *patterns):
    for pattern in patterns:
        assert re.search(pattern, text, re.M), f"{pattern!r} is not in\n{text[:6000]}"


def test_perf_gets_lines_from_addr2line(work, shared):
    """perf asks addr2line for lines and inlined calls."""
    tools, env = named(work, "addr2line")
    program, data = compiled(work, "hot", SOURCE, "-no-pie"), os.path.join(work, "perf.data")
    run("perf", "record", "-q", "-e", "cpu-clock", "--call-graph", "dwarf", "-o", data, program, "200000000")
    contains(run("perf", "script", "-i", data, "--inline", "-F", "ip,sym,srcline", env=env), r" mix\n +hot\.c:4 \(inlined\)", r" burn\n +hot\.c:8$")
    contains(run("perf", "report", "-i", data, "--stdio", "-g", "none", "-F", "overhead,srcline", "--no-children", env=env),
             r"\d+\.\d+% +hot\.c:\d+")


def test_address_sanitizer_gets_lines(work, shared):
    tools, env = named(work, "llvm-symbolizer")
    program = compiled(work, "broken", BROKEN, "-fsanitize=address", compiler="clang")
    env["ASAN_SYMBOLIZER_PATH"] = os.path.join(tools, "llvm-symbolizer")
    told = subprocess.run([program], env={**env, "ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, text=True, timeout=DEADLINE).stderr
    contains(told, r"heap-buffer-overflow", r"#0 0x\w+ in reach .*broken\.c:2", r"#1 0x\w+ in main .*broken\.c:6")

    raw = subprocess.run([program], env={**env, "ASAN_OPTIONS": "detect_leaks=0:symbolize=0"}, capture_output=True, text=True,
                         timeout=DEADLINE).stderr
    assert "broken.c" not in raw, raw
    script = sorted(glob.glob("/usr/bin/asan_symbolize*"))[0]
    env["LLVM_SYMBOLIZER_PATH"] = env["ASAN_SYMBOLIZER_PATH"]
    contains(run(script, "-d", env=env, input=raw), r"in reach .*broken\.c:2", r"in main .*broken\.c:6")


def test_thread_sanitizer_gets_lines(work, shared):
    tools, env = named(work, "llvm-symbolizer")
    program = compiled(work, "race", RACE, "-fsanitize=thread", "-pthread", compiler="clang")
    env["TSAN_SYMBOLIZER_PATH"] = os.path.join(tools, "llvm-symbolizer")
    env["TSAN_OPTIONS"] = f"external_symbolizer_path={tools}/llvm-symbolizer"
    told = subprocess.run(["setarch", "-R", program], env=env, capture_output=True, text=True, timeout=DEADLINE).stderr
    contains(told, r"data race", r"raise_it .*race\.c:3", r"main .*race\.c:\d")


def profiled(work):
    """A program, and a profile of it as gperftools write it."""
    program, profile = compiled(work, "hot", SOURCE), os.path.join(work, "hot.prof")
    library = sorted(glob.glob("/usr/lib/*/libprofiler.so.*"))[0]
    run(program, "400000000", env={**os.environ, "LD_PRELOAD": library, "CPUPROFILE": profile})
    return program, profile


def test_go_tool_pprof_gets_lines(work, shared):
    program, profile = profiled(work)
    tools, env = named(work, "llvm-symbolizer", "addr2line")
    env["PPROF_TOOLS"], env["PPROF_TMPDIR"] = tools, work
    command = ("go", "tool", "pprof", "-symbolize=force:local", "-lines", "-top", program, profile)
    contains(run(*command, env=env), r"burn .*hot\.c:\d+|mix .*hot\.c:4")
    os.remove(os.path.join(tools, "llvm-symbolizer"))
    env["PATH"] = ":".join([tools] + [os.path.dirname(shutil.which(name)) for name in ("go", "nm")])
    contains(run(*command, env=env), r"burn .*hot\.c:\d+|mix .*hot\.c:4")


def test_google_pprof_gets_lines(work, shared):
    program, profile = profiled(work)
    tools, env = named(work, "addr2line")
    others = [f"{name}:{shutil.which(name)}" for name in ("nm", "objdump", "c++filt")]
    text = run("google-pprof", "--text", "--lines", "--tools=" + ",".join([f"addr2line:{tools}/addr2line", *others]), program, profile, env=env)
    contains(text, r"\d% mix \(inline\) .*hot\.c:4$", r"\d% burn .*hot\.c:8$")
