"""Symbfiles: extraction from the benchmark program, decoding, making an index, and uploads of a hundred megabytes."""
import glob, os, re, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "http"))
import harness, test_symbfile

UPLOAD = 100e6


def peak_mib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) / 1024


def main(symloom, bench, elf):
    harness.SYMLOOM = symloom
    with tempfile.TemporaryDirectory(prefix="symloom-bench-") as work:
        start = time.monotonic()
        subprocess.run([symloom, "push-symbols", "executable", "-e", elf, "--dry-run", "--output", work], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(f"\nsymbfile: extraction {time.monotonic() - start:.2f} s")
        ranges = glob.glob(os.path.join(work, "*.ranges.symbfile"))[0]
        print("symbfile:", subprocess.run([bench, ranges], capture_output=True, text=True, check=True).stdout.strip())
        with open(ranges, "rb") as f:
            data = f.read()
        parts = int(UPLOAD // len(data)) + 1
        with test_symbfile.service(work) as s:
            start = time.monotonic()
            for part in range(parts):
                test_symbfile.good(s, data, FilePart=str(part), FileParts=str(parts))
            seconds = time.monotonic() - start
            print(f"symbfile: upload of {len(data) * parts / 1e6:.0f} MB in {seconds:.2f} s, "
                  f"{len(data) * parts / 1e6 / seconds:.0f} MB/s, peak memory {peak_mib(s.process.pid):.0f} MiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
