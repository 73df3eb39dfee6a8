"""Crashes: the tables that stacks are walked with, and dumps with many threads, many at once."""
import json, os, shutil, statistics, subprocess, sys, tempfile, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(ROOT, "test"), os.path.join(ROOT, "test/http")]
import deep, dumps, harness

DEPTH = 42  # of a small dump's stacks
PROGRAM = dumps.HANDLER + r"""
static volatile int sink;
__attribute__((noinline)) int down(int depth) { return depth ? down(depth - 1) + sink : *(volatile int *)0x45; }
int main(void) { return down(%d) + sink; }
"""
THREADS, LEVELS = 200, 9  # of a large one: some 42 frames each
BOUNDARY = "bench"
CLIENTS, RUNS = 200, 7


def small_dump(work, threads):
    """Of a small program, and the program."""
    with open(os.path.join(work, "deep.c"), "w") as f:
        f.write(PROGRAM % (DEPTH - 2))
    program = os.path.join(work, "deep")
    subprocess.run(["gcc", "-g", "-O1", "-w", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1", "-o", program, "deep.c"], cwd=work, check=True)
    return dumps.Crash(program, work).dump(threads), program


def form(dump):
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="upload_file_minidump"\r\n\r\n'
    return head.encode() + dump + f"\r\n--{BOUNDARY}--\r\n".encode()


def send(service, body):
    status, _, data = service.request("POST", "/minidump", body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})
    answer = json.loads(data)
    if status != 200 or answer["status"] != "completed":
        sys.exit(f"a dump was not answered: {status} {data[:300]}")
    return answer


# In a process of its own: within the clients' it would mostly wait for its turn in their interpreter.
PROBE = """
import http.client, select, sys, time
slowest = 0
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0.01)[0]:
    start = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    connection.request("GET", "/healthcheck")
    connection.getresponse().read()
    slowest = max(slowest, time.monotonic() - start)
    connection.close()
print(slowest)
"""


def at_once(service, body):
    """Seconds of each of many dumps that are sent at the same time, and of the slowest /healthcheck meanwhile."""
    times = []

    def client():
        start = time.monotonic()
        send(service, body)
        times.append(time.monotonic() - start)

    probe = subprocess.Popen([sys.executable, "-c", PROBE, str(service.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    probe.stdout.readline()
    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    slowest, _ = probe.communicate("over\n")
    return times, float(slowest)


def serve(program, work):
    """Puts the program where its build id says, below `files`."""
    root = os.path.join(work, "files", dumps.build_id(program))
    os.makedirs(root, exist_ok=True)
    place = os.path.join(root, "executable")
    if not os.path.exists(place):
        try:
            os.link(program, place)
        except OSError:  # on another file system
            shutil.copyfile(program, place)


def shortest(command, runs=RUNS, before=lambda: None, output=subprocess.DEVNULL):
    """Seconds of the fastest run."""
    times = []
    for _ in range(runs):
        before()
        start = time.monotonic()
        subprocess.run(command, stdout=output, stderr=subprocess.DEVNULL, check=True)
        times.append(time.monotonic() - start)
    return min(times)


class Large:
    """A dump of many threads of a large program, and the program."""

    def __init__(self, program, dump):
        self.program, self.dump = program, dump


def breakpad(program, dump, work, *options):
    """Megabytes of the text that dump_syms makes, its seconds, those of minidump_stackwalk with it, and where it is."""
    tools = os.path.dirname(harness.npm_path(os.path.join(work, "own"), "minidump@0.26.0", "minidump/bin/linux-x64/dump_syms"))
    root = tempfile.mkdtemp(dir=work)
    text = os.path.join(root, "text")
    with open(text, "wb") as out:
        made = shortest([os.path.join(tools, "dump_syms"), *options, program], 1, output=out)
    with open(text) as f:
        _, _, _, id, name = f.readline().split()
    os.makedirs(os.path.join(root, name, id))
    size = os.path.getsize(text) / 1e6
    os.rename(text, os.path.join(root, name, id, f"{name}.sym"))
    return size, made, shortest([os.path.join(tools, "minidump_stackwalk"), "-m", dump, root]), root


def large_dump(symloom, data, work, row):
    """By the command, beside Breakpad's tools: with what is made of debug files on disk, and from the debug files."""
    program, dump, cache = os.path.join(data, "deep.elf"), os.path.join(work, "deep.dmp"), os.path.join(work, "deep-cache")
    if not os.path.exists(program):
        deep.build(os.path.join(data, "deep"), program)
    large = Large(program, deep.dump(program, work, THREADS, LEVELS))
    with open(dump, "wb") as f:
        f.write(large.dump)
    serve(program, work)
    peers = [breakpad(program, dump, work, *options) for options in (("-d",), ())]
    ours = [symloom, "symbolicate", "-f", "json", "--symbols", f"debuginfod:{os.path.join(work, 'files')}", "--cache-dir", cache, dump]
    cold = shortest(ours, 3, before=lambda: shutil.rmtree(cache, ignore_errors=True))
    answer = json.loads(subprocess.run(ours, capture_output=True, check=True).stdout)
    if answer["modules"][0]["debug_status"] != "found":
        sys.exit("the large program was not found")
    frames = sum(len({f["original_index"] for f in t["frames"]}) for t in answer["stacktraces"])
    print(f"a dump of {THREADS} threads, {frames} frames, of a program of {os.path.getsize(program) / 1e6:.0f} MB")
    warm = shortest(ours)
    for (size, made, walked, root), what, musts in zip(peers, ("with inlined calls, as the answer", "without, less than the answer"), (("<= 0.06", "<= 0.3"), ("", ""))):
        print(f"  Breakpad's text {what}: {size:.0f} MB")
        row("  tables on disk, minidump_stackwalk", warm, walked, "s", musts[0])
        row("  from debug files, dump_syms and the same", cold, made + walked, "s", musts[1])
        texts = [symloom, "symbolicate", "-f", "machine", "--symbols", root, "--cache-dir", cache + "-texts", dump]
        from_text = shortest(texts, 3, before=lambda: shutil.rmtree(cache + "-texts", ignore_errors=True))
        row("  the same text and output, empty cache", from_text, walked, "s", "<= 0.25")
        row("  the same, what is made of it on disk", shortest(texts), walked, "s", "<= 0.05")
    return large


def main(symloom, bench, elf, work, row):
    cfi, symbols, nanoseconds = (float(x) for x in subprocess.run([bench, elf, "3"], capture_output=True, text=True, check=True).stdout.split())
    row("CFI cache against the symcache, 1 thread", cfi, symbols, "s", "<= 0.3")
    row("a rule at a random address", nanoseconds / 1000, 0.2, "us", "<= 1")
    harness.SYMLOOM = symloom
    large = large_dump(symloom, os.path.dirname(elf), work, row)
    small, program = small_dump(work, 4)
    serve(program, work)
    serve(large.program, work)
    source = {"id": "local", "type": "filesystem", "path": os.path.join(work, "files"), "layout": {"type": "debuginfod"}}
    with harness.Service(work, {"sources": [source], "max_concurrent_requests": None}) as service:
        send(service, form(large.dump))
        best = min(timed(service, form(large.dump)) for _ in range(5))
        print(f"the large dump over HTTP, everything in memory: {best * 1000:.0f} ms")
        times, health = at_once(service, form(small))
        row(f"{CLIENTS} dumps at once: slowest, median", max(times), statistics.median(times), "s", "<= 3")
        row("  /healthcheck meanwhile, at most", health * 1000, 20, "ms", "<= 1")


def timed(service, body):
    start = time.monotonic()
    send(service, body)
    return time.monotonic() - start


if __name__ == "__main__":  # SYMLOOM BENCH_CRASH ELF WORK
    main(*sys.argv[1:5], lambda what, ours, theirs, unit, must:
         print(f"{what:<44} {ours:>10.3f} {theirs:>10.3f} {unit:<5} {ours / theirs:>7.3f}   {must}"))
