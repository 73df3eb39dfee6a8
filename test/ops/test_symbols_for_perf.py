"""perf and the debuginfod server. Debian's perf asks no server by itself: its cache of build ids is filled by elfutils' client."""
import os, sys

import ops
from ops import run

sys.path[:0] = [os.path.join(ops.ROOT, "test", folder) for folder in ("http", "http/debuginfod", "")]
import harness, split_program

BUSY = """__attribute__((noinline)) static unsigned spin(unsigned n) { unsigned x = 1; while (n--) x = x * 1664525u + 1013904223u; return x; }
int main(void) { return spin(300000000u) == 7; }
"""


def test_perf_report_names_functions_of_a_stripped_program(work, shared):
    harness.SYMLOOM, split_program.TEXT = ops.SYMLOOM, BUSY
    t = split_program.Program(work, "busy")
    with harness.Service(work, {"sources": [split_program.directory(work, t)]}) as s:
        client = split_program.Client(work, s)
        environment = {**client.environment, "HOME": t.dir}
        run("perf", "record", "-q", "-e", "cpu-clock:u", "-o", "perf.data", "./busy", cwd=t.dir, env=environment)
        report = lambda: run("perf", "report", "-i", "perf.data", "--stdio", cwd=t.dir, env=environment)
        assert "spin" not in report(), report()
        listed = run("perf", "buildid-list", "-i", "perf.data", "--with-hits", cwd=t.dir, env=environment)
        assert t.id in listed, listed
        file = run("debuginfod-find", "debuginfo", t.id, env=client.environment).strip()
        run("perf", "buildid-cache", "--update", file, cwd=t.dir, env=environment)
        assert "spin" in report(), report()
