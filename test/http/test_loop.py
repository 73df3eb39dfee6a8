"""What takes long is no work of the loop's thread, which all requests share: a job of the pool does it. Small things stay there."""
import gzip, json, random, re, subprocess

import dumps, test_crash_files as crash
from harness import Service, equal

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


def test_large_bodies_leave_the_loop(work, objects):
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


def test_crash_files_leave_the_loop(work, objects):
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
