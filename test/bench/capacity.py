#!/usr/bin/env python3
"""What work costs, for planning machines: a table in Markdown. Figures are those of the machine that it names.

Times are of the processor and small; a machine that does other things beside makes them larger.
"""
import contextlib, http.client, json, os, re, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SYMLOOM = os.path.join(ROOT, "build", "symloom")
sys.path[:0] = [os.path.join(ROOT, "test", "http"), os.path.join(ROOT, "test", "http", "js"), os.path.join(ROOT, "test")]
import artifacts, crash_rows, dumps, faults, harness

QUIET = {"logging": {"access": "off"}}
FRAMES, MODULES, CONNECTIONS = 300, 30, 1000
SYMBOLS = "MODULE Linux x86_64 D48F191186D67E69DF025AD71FB91E1F0 program\nFILE 0 main.c\nFUNC 1000 1000 0 function\n1000 1000 7 0\n"
MAPPING = "com.example.Main -> a.b:\n    1:1:void com.example.Util.check(int):7:7 -> c\n    1:1:void run():20 -> c\n"


def metric(service, name):
    return float(re.search(rf"^{name} (\S+)$", service.request("GET", "/metrics")[2].decode(), re.M)[1])


def stress(service, work, seconds, *options, **workload):
    """The report on one workload."""
    path = os.path.join(work, "workloads.yml")
    with open(path, "w") as f:
        json.dump({"workloads": [workload]}, f)
    run = subprocess.run([SYMLOOM, "stress", "--server", f"http://127.0.0.1:{service.port}", "-w", path, "-d", f"{seconds}s", "--json",
                          *options], capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)["workloads"][0]


def written(work, name, value):
    path = os.path.join(work, name)
    with open(path, "wb") as f:
        f.write(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


def of_request(what, service, work, **workload):
    """Milliseconds of the processor for a request that is answered from memory."""
    stress(service, work, 1, **workload)
    before = metric(service, "process_cpu_seconds_total")
    done = stress(service, work, 3, "--warmup", "0", **workload)["operations"]
    spent = metric(service, "process_cpu_seconds_total") - before
    print(f"| {what} | {spent / done * 1000:.2f} ms of the processor |")


def requests(work, objects):
    with faults.World(objects, MODULES) as world, harness.Service(work, QUIET) as service:
        for frames in (10, FRAMES):
            count = min(frames, MODULES)
            body = world.body(world.modules[:count])
            trace = [body["stacktraces"][i % count]["frames"][0] for i in range(frames)]
            event = written(work, "event.json", {**body, "stacktraces": [{"frames": trace}]})
            of_request(f"`/symbolicate`, {frames} frames in {count} modules, cached", service, work, concurrency=4, event=event)
    with tempfile.TemporaryDirectory() as files:
        os.makedirs(os.path.join(files, "00", "112233445566778899aabbccddeeff"))
        written(os.path.join(files, "00", "112233445566778899aabbccddeeff"), "proguard", MAPPING.encode())
        source = {"id": "m", "type": "filesystem", "path": files, "layout": {"type": "unified"}, "filters": {"filetypes": ["proguard"]}}
        frame = {"function": "c", "module": "a.b", "lineno": 1, "index": 0}
        request = {"modules": [{"uuid": "00112233-4455-6677-8899-aabbccddeeff", "type": "proguard"}], "sources": [source],
                   "stacktraces": [{"frames": [frame] * 30}], "exceptions": [], "options": {"apply_source_context": False}}
        with harness.Service(work, {**QUIET, "allow_filesystem_sources_in_requests": True}) as service:
            answer = json.loads(service.post("/symbolicate-jvm", request)[2])
            harness.equal({frame["function"] for frame in harness.frames(answer)}, {"check", "run"})
            of_request("`/symbolicate-jvm`, 30 frames, cached", service, work, concurrency=4, jvm=written(work, "jvm.json", request))


def scripts(work):
    source = written(work, "source.json", [artifacts.told(1, "~/test.min.js"), artifacts.told(2, "~/test.min.js.map")])
    written(work, "test.min.js", artifacts.SCRIPT.encode())
    written(work, "test.min.js.map", artifacts.MAP.encode())
    frames = [artifacts.frame("http://example.com/test.min.js")] * 30
    event = written(work, "event.json", {"stacktraces": [{"frames": frames}], "modules": []})
    with harness.Service(work, QUIET) as service:
        of_request("`/symbolicate-js`, 30 frames, cached", service, work, concurrency=4, js={"source": source, "event": event})


def mozilla(work):
    module = SYMBOLS.split()[3]
    jobs = {"jobs": [{"memoryMap": [["program", module]], "stacks": [[[0, 0x1010 + i] for i in range(30)]]}]}
    with harness.Upstream({f"/program/{module}/program.sym": SYMBOLS.encode()}) as store, \
            harness.Service(work, {**QUIET, "mozilla": {"sources": [store.url]}}) as service:
        answer = json.loads(service.post("/symbolicate/v5", jobs)[2])
        harness.equal({frame["function"] for frame in answer["results"][0]["stacks"][0]}, {"function"})
        of_request("`/symbolicate/v5`, 30 frames, cached", service, work, concurrency=4, mozilla=written(work, "jobs.json", jobs))


def crash(work):
    dump, program = crash_rows.small_dump(work, 4)
    crash_rows.serve(program, work)
    source = {"id": "f", "type": "filesystem", "path": os.path.join(work, "files"), "layout": {"type": "debuginfod"}}
    with harness.Service(work, {**QUIET, "sources": [source]}) as service:
        answer = crash_rows.send(service, crash_rows.form(dump))
        frames = sum(len(thread["frames"]) for thread in answer["stacktraces"])
        of_request(f"`/minidump`, {len(answer['stacktraces'])} threads, {frames} frames, cached", service, work, concurrency=4,
                   minidump=written(work, "dump", dump))


def conversion(work, path):
    child = subprocess.Popen([SYMLOOM, "lookup", "-e", path, "--symcache-out", os.path.join(work, "cache"), "--jobs", "1"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    if status:
        sys.exit(f"{path} was not converted")
    mib = os.path.getsize(path) / (1 << 20)
    print(f"| a debug file of {mib:.0f} MiB to its table | {(usage.ru_utime + usage.ru_stime) / mib * 1000:.1f} ms of the processor a MiB, "
          f"{usage.ru_maxrss / 1024:.0f} MiB at most |")


def connections(work):
    with harness.Service(work, QUIET) as service, contextlib.ExitStack() as held:
        before = metric(service, "process_resident_memory_bytes")
        for _ in range(CONNECTIONS):
            connection = http.client.HTTPConnection("127.0.0.1", service.port)
            held.callback(connection.close)
            connection.request("GET", "/healthcheck")
            connection.getresponse().read()
        after = metric(service, "process_resident_memory_bytes")
    print(f"| memory without work | {before / (1 << 20):.0f} MiB |\n| a connection that waits | {(after - before) / CONNECTIONS / 1024:.1f} KiB |")


def first_time(work, path):
    """Conversion of a file that no cache has, and what is left of it on disk."""
    files, build_id = tempfile.mkdtemp(dir=work), dumps.build_id(path)
    os.makedirs(os.path.join(files, build_id))
    shutil.copyfile(path, os.path.join(files, build_id, "executable"))
    source = {"id": "f", "type": "filesystem", "path": files, "layout": {"type": "debuginfod"}, "filters": {"filetypes": ["elf_code"]}}
    event = {"stacktraces": [{"frames": [{"instruction_addr": "0x10001000"}]}],
             "modules": [{"type": "elf", "code_id": build_id, "image_addr": "0x10000000", "image_size": 1 << 28}]}
    with harness.Service(work, {**QUIET, "sources": [source]}) as service:
        harness.equal(service.symbolicate(event)["modules"][0]["debug_status"], "found")
        report = stress(service, work, 8, "--cold", concurrency=1, event=written(work, "event.json", event))
        tables = os.path.join(service.cache, "symcaches")
        table = max(os.path.getsize(os.path.join(d, name)) for d, _, names in os.walk(tables) for name in names)
    mib = os.path.getsize(path) / (1 << 20)
    print(f"| the first request for a file of {mib:.0f} MiB | p50 {report['p50_s'] * 1000:.0f} ms, p99 {report['p99_s'] * 1000:.0f} ms |")
    print(f"| its table on disk | {table / (1 << 20):.1f} MiB, beside the file itself when it was downloaded |")


def machine():
    with open("/proc/cpuinfo") as f:
        model = re.search(r"^model name\s*: (.*)$", f.read(), re.M)
    return f"{model[1] if model else os.uname().machine}, {os.cpu_count()} cores, {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 30} GiB"


def main():
    harness.SYMLOOM = SYMLOOM
    large = os.path.join(os.environ.get("SYMLOOM_BENCH", os.path.join(ROOT, "build", "bench")), "bench.elf")
    paths = [path for path in (SYMLOOM, large) if os.path.exists(path)]
    print(f"| {machine()} | |\n|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as work:
        requests(work, harness.Objects(work))
        scripts(work)
        mozilla(work)
        crash(work)
        for path in paths:
            conversion(work, path)
        for path in paths:
            first_time(work, path)
        connections(work)


if __name__ == "__main__":
    main()
