#!/usr/bin/env python3
"""Measures symloom against the field's tools in one run and prints a table of ratios. Machines differ and are noisy: the
ratios count, each from the best of several alternating runs."""
import mmap, multiprocessing, os, random, struct, subprocess, sys, tempfile, time

import breakpad_rows, cache_rows, cli_rows, crash_rows, debuginfod_rows, http_rows, isolation_rows, js_rows, jvm_rows, mozilla_rows, name_rows, package_rows, pdb_rows, scan_rows, scope_rows, sourcemap_rows, symbfile_rows, text_rows, upload_rows

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SYMLOOM = os.path.join(ROOT, "build", "symloom")
DATA = os.environ.get("SYMLOOM_BENCH", os.path.join(ROOT, "build", "bench"))
GSYM, SYMBOLIZER = "llvm-gsymutil-14", "llvm-symbolizer-14"
RUNS = 5


def measure(command, stdin=None):
    """(seconds, peak MiB) of one run."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdin=open(stdin) if stdin else subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    if status:
        sys.exit(f"failed: {' '.join(command)}")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def pair(ours, theirs, stdin=None, runs=RUNS):
    a, b = [], []
    for _ in range(runs):
        a.append(measure(ours, stdin))
        b.append(measure(theirs, stdin))
    return min(a), min(b)


def text_addresses(path, count):
    with open(path, "rb") as f:
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    shoff, = struct.unpack_from("<Q", data, 0x28)
    entsize, n, names = struct.unpack_from("<HHH", data, 0x3A)
    ranges = []
    for i in range(n):
        _, _, flags, addr, _, size = struct.unpack_from("<IIQQQQ", data, shoff + i * entsize)
        if flags & 4 and size:
            ranges.append((addr, size))
    rng = random.Random(1)
    return [a + rng.randrange(s) for a, s in rng.choices(ranges, [s for _, s in ranges], k=count)]


def row(what, ours, theirs, unit, must):
    print(f"{what:<44} {ours:>10.3f} {theirs:>10.3f} {unit:<5} {ours / theirs:>7.3f}   {must}")


def apart(rows, *arguments):
    """Each set of rows has a process of its own: what a large process starts has the size of that as its peak memory."""
    sys.stdout.flush()
    child = multiprocessing.get_context("spawn").Process(target=rows, args=arguments)
    child.start()
    child.join()
    if child.exitcode:
        sys.exit(child.exitcode)


def main():
    elf = os.path.join(DATA, "bench.elf")
    if not os.path.exists(elf):
        print("==> building the benchmark program (some minutes, once)", flush=True)
        subprocess.run([sys.executable, os.path.join(ROOT, "test/bench/generate.py"), DATA, "300"], check=True)
    subprocess.run(["ninja", "-C", os.path.join(ROOT, "build"), "--quiet", "test/bench/bench_lookup", "test/bench/bench_symbfile", "test/bench/bench_convert", "test/bench/bench_crash", "test/bench/bench_jvm", "test/bench/bench_sourcemap", "test/bench/bench_scopes", "test/bench/bench_names"], check=True)
    work = tempfile.mkdtemp(prefix="symloom-bench-")
    cache, gsym, list_file = (os.path.join(work, n) for n in ("bench.symcache", "bench.gsym", "addresses"))
    print(f"{elf}: {os.path.getsize(elf) / 1e6:.0f} MB, {os.cpu_count()} cores\n")
    print(f"{'':<44} {'symloom':>10} {'peer':>10} {'':<5} {'ratio':>7}   must")
    for jobs, must in ((1, "<= 0.35"), (os.cpu_count(), "<= 0.25")):
        (a, am), (b, bm) = pair([SYMLOOM, "lookup", "-e", elf, "--symcache-out", cache, "--jobs", str(jobs)],
                                [GSYM, f"--num-threads={jobs}", f"--convert={elf}", f"--out-file={gsym}"])
        row(f"conversion, {jobs} thread(s), against gsymutil", a, b, "s", must)
        row(f"  peak memory", am, bm, "MiB", "<= 0.5" if jobs == 1 else "")
    row("  size", os.path.getsize(cache) / 1e6, os.path.getsize(gsym) / 1e6, "MB", "<= 0.6")
    addresses = text_addresses(elf, 200000)
    open(list_file, "w").write("".join(f"0x{a:x}\n" for a in addresses))
    with_file = os.path.join(work, "gsym-addresses")
    open(with_file, "w").write("".join(f"0x{a:x} {gsym}\n" for a in addresses))
    (a, _), (b, _) = (measure([SYMLOOM, "lookup", "-e", cache, "--output-style", "llvm", "--no-demangle"], list_file),
                      measure([GSYM, "--addresses-from-stdin"], with_file))
    row("200,000 look-ups, whole process, gsymutil", a, b, "s", "")
    few = os.path.join(work, "few")
    open(few, "w").write("".join(f"0x{a:x}\n" for a in addresses[:20000]))
    a, b = measure([SYMLOOM, "lookup", "--cache-dir", "", "-e", elf, "--no-demangle"], few), measure([SYMBOLIZER, "--obj=" + elf, "--no-demangle"], few)
    row("20,000 look-ups from the ELF, llvm-symbolizer", a[0], b[0], "s", "")
    inside = subprocess.run([os.path.join(ROOT, "build/test/bench/bench_lookup"), cache, list_file], capture_output=True, text=True)
    converter = os.path.join(ROOT, "build/test/bench/bench_convert")
    apart(breakpad_rows.main, SYMLOOM, converter, DATA, row)
    apart(scan_rows.main, SYMLOOM, work, row)
    apart(package_rows.main, SYMLOOM, work, row)
    apart(name_rows.main, os.path.join(ROOT, "build/test/bench/bench_names"), work, row)
    apart(pdb_rows.main, SYMLOOM, converter, DATA, row)
    apart(crash_rows.main, SYMLOOM, os.path.join(ROOT, "build/test/bench/bench_crash"), elf, work, row)
    apart(cli_rows.main, SYMLOOM, DATA, work, row)
    apart(isolation_rows.main, SYMLOOM, DATA, row)
    apart(http_rows.main, SYMLOOM, row)
    apart(debuginfod_rows.main, SYMLOOM, row)
    apart(mozilla_rows.main, SYMLOOM, row)
    apart(upload_rows.main, SYMLOOM, row)
    apart(text_rows.main, SYMLOOM, row)
    apart(symbfile_rows.main, SYMLOOM, os.path.join(ROOT, "build/test/bench/bench_symbfile"), elf, row)
    apart(js_rows.main, SYMLOOM, work, row)
    apart(scope_rows.main, os.path.join(ROOT, "build/test/bench/bench_scopes"), work, row)
    apart(sourcemap_rows.main, os.path.join(ROOT, "build/test/bench/bench_sourcemap"), work, row)
    apart(jvm_rows.main, SYMLOOM, os.path.join(ROOT, "build/test/bench/bench_jvm"), row)
    apart(cache_rows.main, os.path.join(ROOT, "build"), row)
    print(f"\nin process: {inside.stdout.strip()} (must <= 1000 ns)")


if __name__ == "__main__":
    main()
