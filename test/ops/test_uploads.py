"""Large uploads to Mozilla's symbol server: of one member and of a thousand, cut in the middle, and twice at once."""
import concurrent.futures, gzip, hashlib, http.client, os, sys, threading, time, zipfile

import ops

sys.path[:0] = [os.path.join(ops.ROOT, "test", "bench"), os.path.join(ops.ROOT, "test", "http"), os.path.join(ops.ROOT, "test")]
import harness, upload_rows

TOTAL = 500 * 10**6
MEMORY = 32  # MiB above idle, for each upload at once
SLOWEST = 1.0  # seconds that /healthcheck may take meanwhile, on a machine whose disk is busy


def resident(service, key):
    return upload_rows.resident(service.process.pid, key)


class Health:
    """Asks for it all the time; the slowest answer."""

    def __init__(self, service):
        self.service, self.slowest, self.end = service, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.work)

    def work(self):
        while not self.end.wait(0.02):
            begin = time.monotonic()
            assert self.service.request("GET", "/healthcheck")[0] == 200
            self.slowest = max(self.slowest, time.monotonic() - begin)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()


def cut(service, path):
    """The first half of a form with the archive; then the client is gone."""
    size = os.path.getsize(path)
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    connection.putrequest("POST", "/upload/")
    for name, value in (("Auth-Token", upload_rows.TOKEN), ("Content-Type", "multipart/form-data; boundary=B"),
                        ("Content-Length", str(size + 200))):
        connection.putheader(name, value)
    connection.endheaders(b'--B\r\nContent-Disposition: form-data; name="file.zip"; filename="x"\r\n\r\n')
    with open(path, "rb") as f:
        for _ in range(size // 2 // (1 << 20)):
            connection.sock.sendall(f.read(1 << 20))
    connection.sock.close()


def digest(pieces):
    total = hashlib.sha256()
    for piece in pieces:
        total.update(piece)
    return total.hexdigest()


def pieces_of(file):
    while piece := file.read(1 << 20):
        yield piece


def check_contents(path, names, store):
    """Some of the members, as the archive has them."""
    with zipfile.ZipFile(path) as z:
        for name in names[::max(1, len(names) // 20)]:
            with z.open(name) as wanted, gzip.open(os.path.join(store, "v1", name)) as kept:
                harness.equal(digest(pieces_of(kept)), digest(pieces_of(wanted)), name)


def leftovers(store, cache):
    """Files that no longer belong to an upload; the cache keeps small ones of its own."""
    found = [os.path.join(d, f) for root in (os.path.join(store, "tmp"), os.path.join(cache, "tmp")) for d, _, files in os.walk(root) for f in files]
    return [path for path in found if path.startswith(store) or os.path.getsize(path) > 1 << 20]


def large(work, members, method):
    harness.SYMLOOM = ops.SYMLOOM
    path = os.path.join(work, "symbols.zip")
    names = upload_rows.archive(path, TOTAL, members, method)
    service, store = upload_rows.service(work)
    with service:
        idle = resident(service, "VmRSS")
        with open(f"/proc/{service.process.pid}/clear_refs", "w") as f:
            f.write("5")
        with Health(service) as health:
            cut(service, path)
            harness.wait_until("the end of what was cut", lambda: not leftovers(store, service.cache))
            assert not os.path.exists(os.path.join(store, "v1"))
            upload_rows.push(service, path)
            check_contents(path, names, store)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:  # everything is there by now
                list(pool.map(lambda _: upload_rows.push(service, path), range(2)))
        above = resident(service, "VmHWM") - idle
        assert above < 2 * MEMORY, f"{above:.1f} MiB above idle"
        assert health.slowest < SLOWEST, f"/healthcheck took {health.slowest:.3f} s"
        harness.equal(leftovers(store, service.cache), [])
        print(f"    {members} members: {above:.1f} MiB above idle, /healthcheck at most {health.slowest * 1000:.0f} ms", flush=True)


def test_archive_of_one_large_member_is_stored(work, shared):
    large(work, 1, zipfile.ZIP_DEFLATED)


def test_archive_of_a_thousand_members_is_stored(work, shared):
    large(work, 1000, zipfile.ZIP_DEFLATED)


def test_uncompressed_archive_is_stored(work, shared):
    large(work, 10, zipfile.ZIP_STORED)


def test_concurrent_uploads_of_one_archive_store_whole_members(work, shared):
    """Of the same new archive: each member is whole, whoever was first."""
    harness.SYMLOOM = ops.SYMLOOM
    path = os.path.join(work, "symbols.zip")
    names = upload_rows.archive(path, TOTAL // 5, 100, zipfile.ZIP_DEFLATED)
    service, store = upload_rows.service(work)
    with service, concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: upload_rows.push(service, path), range(2)))
        check_contents(path, names, store)
        harness.equal(sum(len(files) for _, _, files in os.walk(os.path.join(store, "v1"))), 100)
        harness.equal(leftovers(store, service.cache), [])
