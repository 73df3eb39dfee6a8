"""A debug file out of a very large package that was compressed in blocks: Debian's debug package of the kernel, beside reading the package from its start."""
import glob, json, os, random, shutil, statistics, subprocess, sys, time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "http"))
import harness

MEMBERS = 20  # of about 8,000; half of them lie in the later half of their block


def download(directory):
    """Debian's current debug package of the kernel, about 860 MB."""
    text = lambda *words: subprocess.run(words, cwd=directory, check=True, capture_output=True, text=True).stdout
    depends = text("apt-cache", "depends", "linux-image-" + text("dpkg", "--print-architecture").strip() + "-dbg")
    name = next(line.split()[1] for line in depends.splitlines() if "Depends:" in line)
    text("apt-get", "download", "-o", "APT::Sandbox::User=root", name)
    return glob.glob(os.path.join(directory, "*.deb"))[0]


def forget_pages(path):
    """Drops the file from the page cache: the next reader waits for the disk."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def read_from_start(package, member):
    """Seconds until a reader without an index has come to the member."""
    forget_pages(package)
    start = time.monotonic()
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as tar:
        subprocess.run(["tar", "-xO", "--occurrence=1", "." + member], stdin=tar.stdout, check=True, stdout=subprocess.DEVNULL)
        tar.terminate()
    return time.monotonic() - start


def main(symloom, work, row):
    directory = os.path.join(work, "packages")
    mirror, cache = (os.path.join(directory, name) for name in ("mirror", "cache"))
    os.makedirs(mirror)
    package = download(mirror)
    subprocess.run([symloom, "scan", "--cache-dir", cache, "--log-level", "error", mirror], check=True, stdout=subprocess.DEVNULL)
    harness.SYMLOOM = symloom
    config = {"debuginfod": {"scan": [{"path": mirror, "interval": "0"}]}, "logging": {"access": "off"}}
    with harness.Service(work, config, cache_dir=cache) as s:
        modules = lambda: json.loads(s.request("GET", "/metadata?key=glob&value=/usr/lib/debug/lib/modules/*/kernel/drivers/*/*.ko*")[2])["results"]
        harness.wait_until("a scan", modules)
        chosen, seconds = random.Random(1).sample(modules(), MEMBERS), []
        for member in chosen:
            forget_pages(package)
            start = time.monotonic()
            status = s.request("GET", f"/buildid/{member['buildid']}/debuginfo")[0]
            seconds.append(time.monotonic() - start)
            if status != 200:
                sys.exit(f"{member['file']} in {package} is answered by {status}")
    row(f"one of {MEMBERS} files of a {os.path.getsize(package) / 1e6:.0f} MB package, cold", statistics.median(seconds), read_from_start(package, chosen[0]["file"]), "s", "<= 0.25 s")
    row("  the slowest of them, and the quickest", max(seconds), min(seconds), "s", "")
    shutil.rmtree(directory)
