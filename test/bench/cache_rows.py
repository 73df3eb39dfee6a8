"""The layers of the cache: what a hit costs, also among many entries."""
import os, shutil, subprocess, tempfile


def measure(program, entries):
    home = tempfile.mkdtemp(prefix="symloom-bench-cache-")
    try:
        out = subprocess.run([program, home, str(entries)], capture_output=True, text=True, check=True).stdout
        values = {name: float(value) for name, value in (line.split() for line in out.splitlines())}
        if "failed" in values:
            raise SystemExit("a hit was none")
        return values
    finally:
        shutil.rmtree(home)


def main(build, row):
    subprocess.run(["ninja", "-C", build, "--quiet", "test/bench/bench_cache"], check=True)
    program = os.path.join(build, "test", "bench", "bench_cache")
    few, many = (measure(program, n) for n in (1000, int(os.environ.get("SYMLOOM_BENCH_ENTRIES", "200000"))))
    row("hit in memory", few["memory_hit_ns"] / 1000, 5, "us", "<= 1, of 5 us")
    row("hit on disk, 1,000 entries", few["disk_hit_us_warm"], 100, "us", "<= 1, of 100 us")
    row("hit on disk, among many, against 1,000 entries", many["disk_hit_us_warm"], few["disk_hit_us_warm"], "us", "")
    row("start with many, against 1,000 entries", many["start_ms"], few["start_ms"], "ms", "")
