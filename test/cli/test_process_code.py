"""Code of a process that is in no file, as it says so itself; the kernel's."""
import json, os, struct, subprocess

from harness import contains, equal, ok, symloom

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    void *code = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(code, 0x90, 8192);
    printf("%lx\n", (unsigned long)code);
    fflush(stdout);
    return getchar() < 0;
}
"""


class Process:
    """A program with code that it made."""

    def __init__(self, work):
        source = os.path.join(work, "made.c")
        with open(source, "w") as f:
            f.write(PROGRAM)
        subprocess.run(["gcc", "-o", source[:-2], source], check=True)
        self.run = subprocess.Popen([source[:-2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.code = int(self.run.stdout.readline(), 16)
        self.paths = []

    def __enter__(self):
        return self

    def write(self, name, content):
        self.paths.append(f"/tmp/{name.format(self.run.pid)}")
        with open(self.paths[-1], "wb") as f:
            f.write(content)

    def __exit__(self, *unused):
        self.run.kill()
        self.run.communicate()
        for path in self.paths:
            os.unlink(path)

    def ask(self, *offsets, env=None):
        answer = json.loads(ok("symbolicate", "--pid", str(self.run.pid), *(hex(self.code + o) for o in offsets), "-f", "json", env=env))
        return [f.get("function") for f in answer["stacktraces"][0]["frames"]]


def test_perf_map_names_jit_code(work, files):
    with Process(work) as p:
        equal(p.ask(0x10), [None])
        p.write("perf-{}.map", b"%x 40 LazyCompile:*foo /app/x.js:10:3\n%x 80 py::bar:/app/m.py\n0x%x 0x20 old\nno line\n%x 8 new\n"
                % (p.code, p.code + 0x100, p.code + 0x200, p.code + 0x210))
        equal(p.ask(0, 0x3f, 0x40, 0x17f, 0x180), ["LazyCompile:*foo /app/x.js:10:3"] * 2 + [None, "py::bar:/app/m.py", None])
        equal(p.ask(0x208, 0x210), [None, "new"])  # what was written over is gone
        text = ok("symbolicate", "--pid", str(p.run.pid), hex(p.code + 0x10), "-f", "compact")
        contains(text, f"perf-{p.run.pid}.map", "LazyCompile:*foo /app/x.js:10:3  +0x10")
        made = os.path.join(work, "temporary")
        os.mkdir(made)
        os.symlink("/dev/null", os.path.join(made, f"symloom-perf-{p.run.pid}.map"))  # nothing of others is written to
        equal(p.ask(0x10, env={"TMPDIR": made}), ["LazyCompile:*foo /app/x.js:10:3"])
        equal(os.listdir(made), [f"symloom-perf-{p.run.pid}.map"])
        os.unlink(p.paths[0])
        os.symlink("/dev/zero", p.paths[0])
        equal(p.ask(0x10), [None])


def test_jitdump_names_jit_code(work, files):
    def record(kind, body):
        return struct.pack("<IIQ", kind, 16 + len(body), 0) + body

    def load(address, name):
        return record(0, struct.pack("<IIQQQQ", 1, 1, address, address, 16, 0) + name + b"\0" + b"\x90" * 16)

    with Process(work) as p:
        p.write("jit-{}.dump", struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, p.run.pid, 0, 0) + load(p.code, b"first") +
                load(p.code + 32, b"second") + record(1, struct.pack("<IIQQQQQ", 1, 1, 0, p.code, p.code + 64, 16, 0)) +
                record(3, b"") + b"\0\0")
        equal(p.ask(8, 40, 72), ["first", "second", "first"])


def test_kernel_symbols_are_named(work, files):
    with open("/proc/kallsyms") as f:
        symbols = [line.split() for line in f]
    code = [(int(s[0], 16), s[2]) for s in symbols if s[1] in "tTwW"]
    with Process(work) as p:
        result = symloom("symbolicate", "--pid", str(p.run.pid), hex(code[len(code) // 2][0] or 0xffffffff81000000), "-f", "json")
        equal(result.status, 0)
        if not code[0][0]:
            contains(result.err, "no kernel symbols: the kernel hides its addresses")
            return
        names = [name for address, name in code if address == code[len(code) // 2][0]]
        assert json.loads(result.out)["stacktraces"][0]["frames"][0]["function"] in names, (names, result.out)
