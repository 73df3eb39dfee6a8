"""Mozilla's symbol server: uploads of archives against unzip and gzip -1 of the same, what memory they take, and downloads against
nginx, which serves the very files of the store."""
import functools, os, random, re, subprocess, sys, tempfile, time, zipfile

import http_rows, harness  # in this order: the first says where the second is

MB = 10**6
TOKEN = "aa11"


@functools.cache
def functions():
    """Some megabytes of functions of a dozen lines each, as compilers leave them, in pieces."""
    rng, pieces, address = random.Random(1), [], 0x1000
    words = ["std::", "mozilla::", "dom::", "operator", "Create", "Runnable", "Pending", "Promise", "Buffer", "Decode", "Impl", "Atom"]
    for _ in range(100):
        lines = []
        for _ in range(200):
            name = "".join(rng.choices(words, k=5)) + str(rng.randrange(10**6))
            file, line, begin, records = rng.randrange(1000), rng.randrange(5000), address, []
            for _ in range(12):
                step = rng.randrange(1, 40)
                line += rng.randrange(-3, 9)
                records.append(f"{address:x} {step:x} {abs(line)} {file}\n")
                address += step
            lines.append(f"FUNC {begin:x} {address - begin:x} 0 {name}(unsigned int, {rng.choice(words)}{rng.randrange(5000)} const&)\n")
            lines += records
        pieces.append("".join(lines).encode())
    return pieces


def symbols(debug_id, size, seed):
    """A symbol file of about this size, in pieces: other functions first for another seed."""
    head = f"MODULE Linux x86_64 {debug_id} lib{seed}.so\nINFO CODE_ID {seed:08X} lib{seed}.so\n"
    yield (head + "".join(f"FILE {i} /builds/worker/checkouts/src/folder_{i % 50}/file_{i}.cpp\n" for i in range(1000))).encode()
    written, at = 0, seed * 7
    while written < size:
        piece = functions()[at % len(functions())][:size - written]
        written, at = written + len(piece), at + 1
        yield piece


def archive(path, total, members, method=zipfile.ZIP_DEFLATED):
    """A zip of symbol files, `total` bytes together; the paths of its members."""
    names = []
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as z:
        for seed in range(members):
            debug_id = f"{seed + 1:032X}0"
            names.append(f"lib{seed}.so/{debug_id}/lib{seed}.so.sym")
            with z.open(names[-1], "w", force_zip64=True) as out:
                for piece in symbols(debug_id, total // members, seed):
                    out.write(piece)
    return names


def service(work):
    store = tempfile.mkdtemp(dir=work)
    tokens = [{"key": TOKEN, "email": "a@example.com", "permissions": ["upload_symbols"]}]
    config = {"mozilla": {"tokens": tokens, "sources": [], "store": {"filesystem": {"path": store}}}}
    return harness.Service(work, {**http_rows.QUIET, **config}), store


def resident(pid, key):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(key + r":\s+(\d+)", f.read())[1]) / 1024


def push(s, path):
    out = subprocess.run(["curl", "-sS", "-o", os.devnull, "-w", "%{http_code}", "-H", f"Auth-Token: {TOKEN}", "-H", "Expect:", "-F",
                          f"file.zip=@{path}", f"http://127.0.0.1:{s.port}/upload/"], capture_output=True, text=True, check=True)
    assert out.stdout == "201", out


def upload(work, path):
    """(seconds of a first upload, MiB above idle at most), of a service of its own."""
    s, store = service(work)
    with s:
        assert s.request("GET", "/healthcheck")[0] == 200
        with open(f"/proc/{s.process.pid}/clear_refs", "w") as f:
            f.write("5")
        idle = resident(s.process.pid, "VmRSS")
        begin = time.monotonic()
        push(s, path)
        took = time.monotonic() - begin
        above = resident(s.process.pid, "VmHWM") - idle
    subprocess.run(["rm", "-rf", store], check=True)
    return took, above


def by_tools(work, path):
    home = tempfile.mkdtemp(dir=work)
    begin = time.monotonic()
    subprocess.run(["unzip", "-q", path, "-d", home], check=True)
    subprocess.run(["gzip", "-1", "-r", home], check=True)
    took = time.monotonic() - begin
    subprocess.run(["rm", "-rf", home], check=True)
    return took


def uploads(work, row, total=500 * MB, rounds=3):
    for members, method in ((1, zipfile.ZIP_DEFLATED), (1000, zipfile.ZIP_DEFLATED), (1000, zipfile.ZIP_STORED)):
        path = os.path.join(work, "symbols.zip")
        archive(path, total, members, method)
        pairs = [(upload(work, path), by_tools(work, path)) for _ in range(rounds)]
        stored = "stored " if method == zipfile.ZIP_STORED else ""
        row(f"upload, {total // MB} MB, {members} {stored}member(s), unzip + gzip -1", min(a[0] for a, _ in pairs), min(b for _, b in pairs), "s",
            "<= 1.3")
        most = max(a[1] for a, _ in pairs)
        small = os.path.join(work, "small.zip")
        archive(small, total // 10, max(1, members // 10), method)
        row(f"  memory above idle, and of {total // MB // 10} MB", most, max(upload(work, small)[1] for _ in range(rounds)), "MiB", "")
        os.unlink(path)


def gets_per_second(url):
    out = subprocess.run(["wrk", "-t2", "-c64", "-d3s", "-H", "Accept-Encoding: gzip", url], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out:
        sys.exit(out)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])


def downloads(work, row):
    for size in (50 * 1000, 5 * MB, 100 * MB):
        path = os.path.join(work, "one.zip")
        name = archive(path, size, 1)[0]
        s, store = service(work)
        with s:
            push(s, path)
            kept = os.path.join(store, "v1", name)
            packed = os.path.getsize(kept)
            subprocess.run(["chmod", "-R", "a+rX", work], check=True)
            with http_rows.nginx(work, f"root {store}/v1; sendfile on; tcp_nopush on; default_type text/plain; add_header Content-Encoding gzip;") as url:
                a, b = http_rows.side_by_side(lambda: gets_per_second(f"http://127.0.0.1:{s.port}/{name}"), lambda: gets_per_second(url + name))
        row(f"download of {packed / 1000:.0f} kB, gzip, requests/s, nginx", a, b, "1/s", ">= 0.5")


def main(symloom, row):
    harness.SYMLOOM = symloom
    with tempfile.TemporaryDirectory(prefix="symloom-bench-") as work:
        os.chmod(work, 0o755)
        uploads(work, row)
        downloads(work, row)


if __name__ == "__main__":
    main(sys.argv[1], lambda what, a, b, unit, must: print(f"{what:<60} {a:9.2f} {b:9.2f} {unit} {a / b:.3f} {must}", flush=True))
