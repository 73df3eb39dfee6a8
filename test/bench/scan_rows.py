"""Scanning packages, against debuginfod with the same number of threads: time until all are indexed, and the size of the index."""
import concurrent.futures, os, re, shutil, subprocess, sys, time, urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "http"))
import packages
from servers import free_port

PACKAGES = int(os.environ.get("SYMLOOM_BENCH_PACKAGES", "10000"))


def build(work):
    """A debug file of 24 sources, and its build id."""
    for i in range(24):
        with open(os.path.join(work, f"h{i}.h"), "w") as f:
            f.write(f"struct s{i} {{ int a; long b[{i + 1}]; }};\n")
        with open(os.path.join(work, f"f{i}.c"), "w") as f:
            f.write(f'#include "h{i}.h"\nint g{i}(struct s{i} *p, int n) {{ int r = 0; for (int k = 0; k < n; k++) r += p->a * k; return r; }}\n')
    with open(os.path.join(work, "main.c"), "w") as f:
        f.write("int main(void) { return 0; }\n")
    run = lambda *words: subprocess.run(words, cwd=work, check=True, capture_output=True, text=True).stdout
    run("gcc", "-g", "-O1", "-Wl,--build-id=sha1", f"-ffile-prefix-map={work}=/build/pkg-000000-1.0", "-o", "p", "main.c", *(f"f{i}.c" for i in range(24)))
    run("objcopy", "--only-keep-debug", "p", "p.debug")
    with open(os.path.join(work, "p.debug"), "rb") as f:
        return f.read(), bytes.fromhex(re.search(r"Build ID: (\w+)", run("readelf", "-n", "p")).group(1))


def write(directory, i, debug, build_id):
    """A package of its own: another id, another directory of sources."""
    own = i.to_bytes(4, "big") + build_id[4:]
    files = {f"usr/lib/debug/.build-id/{own.hex()[:2]}/{own.hex()[2:]}.debug": debug.replace(build_id, own).replace(b"pkg-000000", b"pkg-%06d" % i)}
    os.makedirs(folder := os.path.join(directory, f"{i // 100:03}"), exist_ok=True)
    with open(os.path.join(folder, f"p{i}-dbgsym_1.{i}-1_amd64.deb"), "wb") as f:
        f.write(packages.deb(files, package=f"p{i}-dbgsym", version=f"1.{i}-1", source=f"p{i}", packer="xz"))


def size(*paths):
    return sum(os.path.getsize(path) for path in paths if os.path.exists(path)) / 1e6


def scan_peer(mirror, database, threads):
    """Seconds until debuginfod has scanned all packages."""
    port, start = free_port(), time.monotonic()
    process = subprocess.Popen(["debuginfod", "-d", database, "-U", "-c", str(threads), "-t", "0", "-g", "0", "-p", str(port), mirror],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    scanned = 0
    while scanned < PACKAGES:
        time.sleep(0.2)
        try:
            text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
        except OSError:
            continue
        scanned = sum(map(int, re.findall(r"scanned_files_total\{[^}]*\} (\d+)", text)))
    seconds = time.monotonic() - start
    process.terminate()
    process.wait()
    return seconds


def main(symloom, work, row):
    directory = os.path.join(work, "scan")
    mirror, cache, database = (os.path.join(directory, name) for name in ("mirror", "cache", "peer.sqlite"))
    os.makedirs(mirror)
    debug, build_id = build(directory)
    with concurrent.futures.ProcessPoolExecutor() as pool:
        list(pool.map(write, [mirror] * PACKAGES, range(PACKAGES), [debug] * PACKAGES, [build_id] * PACKAGES, chunksize=100))
    start = time.monotonic()
    subprocess.run([symloom, "scan", "--cache-dir", cache, "--log-level", "error", mirror], check=True, stdout=subprocess.DEVNULL)
    ours = time.monotonic() - start
    row(f"scanning {PACKAGES} packages, debuginfod", ours, scan_peer(mirror, database, os.cpu_count()), "s", "<= 0.33")
    index = os.path.join(cache, "scan")
    row("  size of the index", size(*(os.path.join(index, name) for name in os.listdir(index))), size(database, database + "-wal"), "MB", "<= 0.1")
    shutil.rmtree(directory)
