"""What takes long is no work of the loop's thread, which all requests share: a job of the pool does it. Small things stay there."""
import contextlib, gzip, json, os, random, re, subprocess

import dumps, test_crash_files as crash
from harness import Service, Upstream, equal, frames, http_source, request, wait_until
from faults import World
from test_faults import large_program
from test_memory import MIB, anonymous, big_request, post_unread

ALONE = True

JS = {"source": {"type": "sentry", "id": "s", "url": "http://127.0.0.1:1/", "token": "t"}, "scraping": {"enabled": False}}
FRAME = {"instruction_addr": "0x1"}


def jobs(service):
    """How many of each kind the pool has done, but for those of the disk."""
    text = service.request("GET", "/metrics")[2].decode()
    return {k: int(n) for k, n in re.findall(r'symloom_pool_run_seconds_count{job="(\w+)"} (\d+)', text) if k != "io"}


def added(service, ask):
    before = jobs(service)
    ask()
    after = jobs(service)
    return {kind for kind in after if after[kind] > before.get(kind, 0)}


def test_large_bodies_are_read_by_the_pool(work, objects):
    """Of every API, and packed ones; and large answers that are packed."""
    bodies = {"/symbolicate": {"stacktraces": [{"frames": [FRAME]}], "modules": []},
              "/symbolicate-js": {**JS, "stacktraces": []}, "/symbolicate-jvm": {"sources": [], "stacktraces": [], "modules": []},
              "/symbolicate/v5": {"jobs": [{"memoryMap": [], "stacks": [[[-1, 1]]]}]},
              "/symbolicate/v4": {"memoryMap": [], "stacks": [[[-1, 1]]], "version": 4}}
    with Service(work, {"mozilla": {"sources": []}}) as s:
        for path, body in bodies.items():
            small, large = ({**body, "ignored": "x" * size} for size in (8, 100_000))

            def post(body, **headers):
                status, _, data = s.post(path, body, headers)
                equal(status, 200, data)

            equal("json" in added(s, lambda: post(small)), False, path)
            equal("json" in added(s, lambda: post(large)), True, path)
            packed = gzip.compress(json.dumps({**body, "ignored": "x" * 1_000_000}).encode())
            equal({"json", "compress"} - added(s, lambda: post(packed, **{"Content-Encoding": "gzip"})), set(), path)
        for size in (*range(16_200, 16_500, 60), 262_000, 270_000, 400_000):  # around what a decoder gives at once
            text = json.dumps({**bodies["/symbolicate"], "ignored": "".join(random.Random(size).choices("abcd", k=size))}).encode()
            packed = subprocess.run(["zstd", "-q", "--no-check", "-c"], input=text, capture_output=True, check=True).stdout
            equal(s.post("/symbolicate", packed, {"Content-Encoding": "zstd"})[0], 200, size)
            runs = subprocess.run(["zstd", "-q", "--no-check", "-c"], input=text[:-2] + b"x" * size + text[-2:], capture_output=True, check=True)
            equal(s.post("/symbolicate", runs.stdout, {"Content-Encoding": "zstd"})[0], 200, size)
        many = {"stacktraces": [{"frames": [{**FRAME, "filename": f"file-{n}"} for n in range(3000)]}], "modules": []}
        equal({"json", "symbolicate", "compress"} - added(s, lambda: s.post("/symbolicate", many, {"Accept-Encoding": "gzip"})), set())


def test_crash_files_are_read_by_the_pool(work, objects):
    """Reports and dumps of any size, and forms whose other parts are large."""
    dump = dumps.Dump()
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10010}, 0x7000, bytes(800)))
    with Service(work) as s:
        for path, kind, parts in (("/applecrashreport", "symbolicate", {"apple_crash_report": crash.REPORT.encode()}),
                                  ("/minidump", "walk", {"upload_file_minidump": dump.crash(7, 11, 0, 69).done()})):
            def post(**more):
                equal(crash.send(s, path, crash.form(**parts, sources=[], **more))[0], 200)

            equal({kind} - added(s, post), set(), path)
            equal({kind, "json"} - added(s, lambda: post(options={"ignored": "x" * 100_000})), set(), path)


# ---- what the kernel says of the loop's thread, which is the first of the process, and of the others ----
def threads(service, name, read):
    """Of the loop; of all others together."""
    home, loop, others = f"/proc/{service.process.pid}/task", 0, 0
    for thread in os.listdir(home):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            with open(f"{home}/{thread}/{name}") as f:
                value = read(f.read())
            loop, others = (loop + value, others) if int(thread) == service.process.pid else (loop, others + value)
    return loop, others


def faults(service):
    """Pages that had to be read from the disk."""
    return threads(service, "stat", lambda text: int(text.rpartition(")")[2].split()[9]))


def written(service):
    """Bytes of writing system calls, sockets included."""
    return threads(service, "io", lambda text: int(re.search(r"wchar: (\d+)", text).group(1)))


def cpu(service):
    """Nanoseconds."""
    return threads(service, "schedstat", lambda text: int(text.split()[0]))


def during(measure, service, ask):
    before = measure(service)
    ask()
    return tuple(b - a for a, b in zip(before, measure(service)))


def evict(directory):
    """No page of any file below stays in memory."""
    for path, _, names in os.walk(directory):
        for name in names:
            fd = os.open(os.path.join(path, name), os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def test_tables_not_resident_are_read_by_the_pool(work, objects):
    """After a start with a cold cache the disk is waited for by the pool alone; what has come into memory is read by the loop."""
    program, build_id, addresses = large_program(work)
    module = objects.module(code_id=build_id, debug_id=None, image_size=0x100000)
    with Upstream({f"/{build_id}/debuginfo": program}) as upstream:
        config = {"sources": [http_source(upstream.url)]}
        cache = os.path.join(work, "cache")

        def ask(s, number):
            name = f"function_with_number_{number}"
            equal(frames(s.symbolicate(request(module, [addresses[name]])))[0].get("function"), name)

        with Service(work, config, cache) as s:
            ask(s, 0)
        evict(cache)
        with Service(work, config, cache) as s:
            s.request("GET", "/healthcheck")
            on_loop, on_pool = during(faults, s, lambda: ask(s, 2345))
            assert on_pool > 0, "the files of the temporary directory were in memory all the same"
            equal(on_loop, 0, "pages that the loop has waited for")
            ask(s, 777)  # its name is known from here on
            wait_until("the table in memory", lambda: "symbolicate" not in added(s, lambda: ask(s, 777)))


def test_small_resident_requests_stay_on_the_loop(work, objects):
    """Of what is in memory the loop looks up 128 frames itself, each of three calls, and no more; likewise modules."""
    with World(objects, 1) as world, Service(work) as s:
        one = world.body(world.modules)

        def asks(frames, modules=1):
            body = {**one, "stacktraces": one["stacktraces"] * frames, "modules": one["modules"] + [{"type": "elf"}] * (modules - 1)}

            def ask():
                equal(sum(len(trace["frames"]) for trace in s.symbolicate(body)["stacktraces"]), 3 * frames)

            ask()
            jobs = [frozenset(added(s, ask)) for _ in range(3)]  # now and then a table's pages are looked at
            return min(jobs, key=len)

        equal([set(asks(*n)) for n in ((1,), (128,), (129,), (1, 128), (1, 129))],
              [set(), set(), {"symbolicate"}, set(), {"symbolicate"}])


def test_kept_results_are_not_copied_for_each_poll(work, objects):
    """However many poll for one at a time: memory holds it once, and writing what they do not take is left to the pool."""
    clients = 30
    with Service(work, {"http": {"write_timeout": "2m"}, "logging": {"access": "off"}}) as s:
        before = written(s)
        job = s.symbolicate(big_request(8 * MIB), "?timeout=0")["request_id"]
        size = len(s.request("GET", f"/requests/{job}?timeout=60")[2])
        assert size > 6 * MIB, size
        idle = anonymous(s)
        waiting = [post_unread(s, b"", head=f"GET /requests/{job} HTTP/1.1\r\nHost: localhost\r\n".encode()) for _ in range(clients)]
        try:
            def polled():
                return f'symloom_polls_total{{result="done"}} {clients + 1}' in s.request("GET", "/metrics")[2].decode()
            wait_until("all polls", polled)
            held = anonymous(s) - idle
            assert held < 2 * size, f"{clients} polls of {size} bytes hold {held}"
            pool = written(s)[1] - before[1]
            assert size <= pool < 2 * size, f"the pool has written {pool} of {size} bytes"
        finally:
            for client in waiting:
                client.close()


def test_metrics_are_written_by_the_pool(work, objects):
    """Neither descriptors nor jobs make their text dearer for the loop, but for the pool."""
    with Service(work, {"result_ttl": "1h", "logging": {"access": "off"}, "max_concurrent_requests": None}) as s:
        def scrape():
            for _ in range(40):
                equal(s.request("GET", "/metrics")[0], 200)

        scrape()
        few = during(cpu, s, scrape)
        connections = [s.connection() for _ in range(1500)]
        for connection in connections:
            connection.connect()
        body = json.dumps({"stacktraces": [{"frames": [FRAME]}], "modules": []})
        poller = s.connection()
        for _ in range(3000):  # results that are kept
            poller.request("POST", "/symbolicate?timeout=0", body, {"Content-Type": "application/json"})
            poller.getresponse().read()
        wait_until("the connections", lambda: len(os.listdir(f"/proc/{s.process.pid}/fd")) > 1500)
        many = during(cpu, s, scrape)
        for connection in connections:
            connection.close()
        loop, pool = (b - a for a, b in zip(few, many))
        print(f"        40 times: loop {few[0] / 1e6:.1f} ms, then {many[0] / 1e6:.1f}; pool {few[1] / 1e6:.1f}, then {many[1] / 1e6:.1f}")
        assert pool > 5e6, "the descriptors were not listed"
        assert loop < pool / 2, (few, many)


def test_downloads_are_written_by_the_pool(work, objects):
    size = 24 * MIB
    junk = random.Random(1).randbytes(size)
    with Upstream({f"/{objects.build_id}/debuginfo": junk}) as upstream, Service(work, {"sources": [http_source(upstream.url)]}) as s:
        loop, pool = during(written, s, lambda: s.symbolicate(request(objects.module(), [objects.address("main")])))
        assert pool >= size and loop < size // 16, (loop, pool)
