"""Symbfiles: extraction from the benchmark program against converting it, decoding, making an index, and an upload of a
hundred megabytes against decoding them."""
import glob, os, re, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "test", "http"), os.path.join(ROOT, "test", "http", "symbfile")]
import harness, test_symbfile
from symbfile_load import uleb

UPLOAD, RUNS = 100e6, 7


def peak_mib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) / 1024


def best(*commands):
    """The shortest time of each; they take turns, so that what else the machine does falls on all of them."""
    times = [[] for _ in commands]
    for _ in range(RUNS):
        for command, taken in zip(commands, times):
            start = time.monotonic()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            taken.append(time.monotonic() - start)
    return [min(taken) for taken in times]


def read_uleb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def messages(data):
    at = 10
    while at < len(data):
        size, at = read_uleb(data, at)
        kind, at = read_uleb(data, at)
        yield kind, data[at:at + size]
        at += size


def renamed(table, copy):
    out, at = bytearray(), 0
    while at < len(table):
        size, start = read_uleb(table, at + 1)
        at = start + size
        text = table[start:at] + b"#%d" % copy
        out += b"\x0a" + uleb(len(text)) + text
    return bytes(out)


def enlarged(data, copies):
    """The file again and again, each time with other names at other addresses."""
    all_messages, out = list(messages(data)), bytearray(data[:10])
    for copy in range(copies):
        first = True
        for kind, body in all_messages:
            if kind == 4 and copy:
                body = renamed(body, copy)
            elif kind == 2 and first:
                va, rest = read_uleb(body, 1)  # a file begins with an absolute address
                body, first = b"\x60" + uleb(va + copy * 0x10000000) + body[rest:], False
            out += uleb(len(body)) + uleb(kind) + body
    return bytes(out)


def extraction(symloom, elf, work, row):
    push = [symloom, "push-symbols", "executable", "-e", elf, "--dry-run"]
    convert = [symloom, "lookup", "-e", elf, "--symcache-out", os.path.join(work, "cache")]
    ours, theirs, pads = best(push + ["--no-returnpads"], convert, push + ["--no-ranges"])
    row("symbfile: ranges of the program, own conversion", ours, theirs, "s", "<= 1")
    size = int(subprocess.run(["size", elf], capture_output=True, text=True, check=True).stdout.split("\n")[1].split()[0])
    print(f"symbfile: return pads {max(pads - ours, 0):.2f} s more, of {size / 1e6:.1f} MB of code and constants")


def ingest(bench, data, work, row):
    path = os.path.join(work, "large.symbfile")
    with open(path, "wb") as f:
        f.write(data)
    told = subprocess.run([bench, path], capture_output=True, text=True, check=True).stdout.strip()
    print("symbfile:", told)
    decoding = float(re.search(r"in ([\d.]+) s by the clock", told)[1])
    times = []
    with test_symbfile.service(work) as s:
        for i in range(RUNS):
            start = time.monotonic()
            test_symbfile.good(s, data, FileID=f"{i:032x}")
            times.append(time.monotonic() - start)
        peak = peak_mib(s.process.pid)
        row(f"symbfile: {len(data) / 1e6:.0f} MB uploaded, decoding alone", min(times), decoding, "s", "<= 1.5")
        start = time.monotonic()
        test_symbfile.ask(s, [0], file_id="0" * 32)
        print(f"symbfile: peak memory {peak:.0f} MiB while uploading; first request, with the index, "
              f"{time.monotonic() - start:.1f} s and {peak_mib(s.process.pid):.0f} MiB")


def main(symloom, bench, elf, row):
    harness.SYMLOOM = symloom
    with tempfile.TemporaryDirectory(prefix="symloom-bench-") as work:
        extraction(symloom, elf, work, row)
        subprocess.run([symloom, "push-symbols", "executable", "-e", elf, "--dry-run", "--output", work], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(glob.glob(os.path.join(work, "*.ranges.symbfile"))[0], "rb") as f:
            data = f.read()
        ingest(bench, enlarged(data, int(UPLOAD // len(data)) + 1), work, row)
