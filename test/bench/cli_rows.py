"""The commands beside the tools that people have: one address of a large program, and sorting debug files into a store."""
import os, re, shutil, subprocess, sys, tempfile, time

import deep

COPIES = 12  # of the large program: some 2 GB
RUNS = 5


def measure(command):
    """(seconds, peak MiB) of one run."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    if status:
        sys.exit(f"failed: {command}")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def pair(ours, theirs, runs=RUNS):
    measured = [(measure(ours), measure(theirs)) for _ in range(runs)]
    return min(m[0] for m in measured), min(m[1] for m in measured)


def copies(elf, directory):
    """Programs that differ in their build ids."""
    found = subprocess.run(["readelf", "-n", elf], check=True, capture_output=True, text=True).stdout
    build_id = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", found).group(1))
    with open(elf, "rb") as f:
        data = f.read()
    at = data.index(build_id)
    os.mkdir(directory)
    for i in range(COPIES):
        with open(os.path.join(directory, f"program{i}"), "wb") as f:
            f.write(data[:at] + bytes([i]) + data[at + 1:])
    return COPIES * len(data)


def one_address(symloom, elf, work, row):
    table = os.path.join(work, "one.symcache")
    subprocess.run([symloom, "lookup", "-e", elf, "--symcache-out", table], check=True)
    functions = "nm {} | awk '/ [tT] / {{ at[n++] = $1 }} END {{ print at[int(n / 2)] }}'"  # not read here: its size would count as theirs
    address = "0x" + subprocess.run(["sh", "-c", functions.format(elf)], check=True, capture_output=True, text=True).stdout.strip()
    ours = [symloom, "lookup", "--no-network", "--cache-dir", "", "--output-style", "llvm", "-e", elf, address]
    (a, am), (b, bm) = pair(ours, ["llvm-symbolizer-19", "-e", elf, address])
    print(f"one address of {os.path.getsize(elf) / 1e6:.0f} MB")
    row("  nothing cached, llvm-symbolizer", a, b, "s", "<= 0.7")
    row("  peak memory", am, bm, "MiB", "<= 0.5")
    ours[ours.index(elf)] = table
    row("  from its symcache, 5 ms", min(measure(ours)[0] for _ in range(20)), 0.005, "s", "<= 1")
    os.unlink(table)


def main(symloom, data, work, row):
    """`deep.elf` of `data` is there, made with the crash it is for; `large.elf` stays there for the next time."""
    elf, large = os.path.join(data, "deep.elf"), os.path.join(data, "large.elf")
    if not os.path.exists(large):
        deep.build(os.path.join(data, "large"), large, deep.LARGE_UNITS, "lld")
    one_address(symloom, large, work, row)
    many, sorted_files = os.path.join(work, "many"), os.path.join(work, "sorted")
    size = copies(elf, many)
    theirs = ["sh", "-c", f"cat {many}/* | zstd -q -10 -T2 -c"]
    times = []
    for _ in range(2):
        times.append((measure([symloom, "sort", "-q", "-zz", "-j", "2", "-o", sorted_files, many])[0], measure(theirs)[0]))
        shutil.rmtree(sorted_files)
    row(f"sort -zz of {size / 1e9:.1f} GB, zstd -10 -T2", min(t[0] for t in times), min(t[1] for t in times), "s", "<= 1.15")
    shutil.rmtree(many)


if __name__ == "__main__":  # SYMLOOM DIRECTORY
    with tempfile.TemporaryDirectory() as work:
        main(sys.argv[1], sys.argv[2], work, lambda what, ours, theirs, unit, must:
             print(f"{what:<44} {ours:>10.3f} {theirs:>10.3f} {unit:<5} {ours / theirs:>7.3f}   {must}"))
