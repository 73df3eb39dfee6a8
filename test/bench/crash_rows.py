"""Crashes: the tables that stacks are walked with, and dumps with many threads, many at once."""
import json, os, statistics, subprocess, sys, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(ROOT, "test"), os.path.join(ROOT, "test/http")]
import dumps, harness

DEPTH = 42  # of each stack
PROGRAM = dumps.HANDLER + r"""
static volatile int sink;
__attribute__((noinline)) int down(int depth) { return depth ? down(depth - 1) + sink : *(volatile int *)0x45; }
int main(void) { return down(%d) + sink; }
"""
BOUNDARY = "bench"
CLIENTS = 200


def deep_dump(work, threads):
    """A dump, and the program that it is of."""
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


def at_once(service, body):
    """Seconds of each of many dumps that are sent at the same time, and of the slowest /healthcheck meanwhile."""
    times, health = [], []

    def client():
        start = time.monotonic()
        send(service, body)
        times.append(time.monotonic() - start)

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        start = time.monotonic()
        service.request("GET", "/healthcheck")
        health.append(time.monotonic() - start)
        time.sleep(0.01)
    return times, max(health)


def main(symloom, bench, elf, work, row):
    cfi, symbols, nanoseconds = (float(x) for x in subprocess.run([bench, elf, "3"], capture_output=True, text=True, check=True).stdout.split())
    row("CFI cache against the symcache, 1 thread", cfi, symbols, "s", "<= 0.3")
    row("a rule at a random address", nanoseconds / 1000, 0.2, "us", "<= 1")
    harness.SYMLOOM = symloom
    dump, program = deep_dump(work, 200)
    small, _ = deep_dump(work, 4)
    root = os.path.join(work, "files", dumps.build_id(program))
    os.makedirs(root)
    os.link(program, os.path.join(root, "executable"))
    source = {"id": "local", "type": "filesystem", "path": os.path.dirname(root), "layout": {"type": "debuginfod"}}
    with harness.Service(work, {"sources": [source], "max_concurrent_requests": None}) as service:
        frames = sum(len(t["frames"]) for t in send(service, form(dump))["stacktraces"])
        best = min(timed(service, form(dump)) for _ in range(5))
        print(f"200 threads, {frames} frames: {best * 1000:.0f} ms, everything in memory")
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
