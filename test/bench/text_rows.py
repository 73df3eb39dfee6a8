"""Texts with stacks, and core files: what they cost when everything is cached."""
import json, os, random, re, subprocess, tempfile, time

import cores, harness, texts

LINES, RUNS, LOG, THREADS = 10_000, 15, 4 << 20, 100
MEMORY = "#include <sys/mman.h>\n" + cores.THREADS.replace("NULL, 8)", f"NULL, {THREADS})").replace("i < 7", f"i < {THREADS - 1}").replace(
    "waiting < 7", f"waiting < {THREADS - 1}").replace("(void *)i)", "(void *)(i % 16))").replace(
    "pthread_t thread;", "pthread_t thread;\n    char *all_memory = mmap(NULL, 1UL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
    "    for (unsigned long i = 0; i < 1UL << 30; i += 1UL << 24)\n        all_memory[i] = 1;")


def repeated(text, lines):
    """The text again and again, with a line of a log before each, until it has so many lines."""
    all_lines, number = [], 0
    while len(all_lines) < lines:
        all_lines += [f"2026-11-28T02:39:{number % 60:02} INFO request {number} took {number * 7 % 900} ms\n", *text.splitlines(True)]
        number += 1
    return "".join(all_lines[:lines])


def unrelated(size):
    """A log without a stack: times, numbers, addresses, URLs, words in brackets."""
    rng, lines = random.Random(1), []
    while size > 0:
        lines.append(f"2026-11-28T02:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(1000):03}Z INFO [worker-{rng.randrange(64)}] handled "
                     f"GET https://shop.example/api/v1/items/{rng.randrange(10**6)}?page={rng.randrange(99)} in {rng.randrange(900)} ms (status=200, "
                     f"trace=0x{rng.randrange(2**64):016x}, user={rng.randrange(10**9)})\n")
        size -= len(lines[-1])
    return "".join(lines)


def send(service, text, *parts):
    body, headers = harness.multipart([("text", text), *parts]) if parts else (text, {})
    status, _, data = service.request("POST", "/symbolicate-text", body, {"Content-Type": "text/plain", **headers})
    assert status == 200, (status, data[:300])
    return data.decode()


def processor(service, *arguments):
    """The shortest of some requests in milliseconds of the processor."""
    send(service, *arguments)
    best = 1e9
    for _ in range(RUNS):
        before = processor_seconds(service.process.pid)
        answer = send(service, *arguments)
        best = min(best, processor_seconds(service.process.pid) - before)
    return 1000 * best, answer


def with_children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid] + [found for child in f.read().split() for found in with_children(int(child))]


def processor_seconds(pid):
    """Of the process and those that it has started, its workers: clock_getcpuclockid(3), whose numbers are those of the kernel."""
    return sum(time.clock_gettime(~process << 3 | 2) for process in with_children(pid))


def texts_rows(work, row):
    made = {text.name: text for text in texts.build(work)}
    mixed = made["mixed"]
    symbols, sent, modules = os.path.join(work, "symbols"), [], []
    os.mkdir(symbols)
    for name, data in mixed.files.items():
        if name in texts.SCRIPTS or name in texts.MAPPINGS:
            sent.append(("artifact", data, name))
            continue
        path = os.path.join(symbols, name)
        with open(path, "wb") as f:
            f.write(data)
        code_id = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout).group(1)
        modules.append({"type": "elf", "code_file": os.path.join(work, name), "code_id": code_id})
    sent.append(("modules", json.dumps(modules)))
    subprocess.run([harness.SYMLOOM, "sort", "-q", "-o", os.path.join(work, "sorted"), symbols], check=True)
    source = {"id": "files", "type": "filesystem", "path": os.path.join(work, "sorted"), "layout": {"type": "unified"}}
    with harness.Service(work, {"sources": [source], "text": {"max_body": "16MiB"}, "logging": {"access": "off"}}) as s:
        milliseconds, answer = processor(s, repeated(mixed.text, LINES), *sent)
        assert answer.count("checkStock") > 100 and answer.count(" in use ") > 50, answer[:2000]
        row(f"text: {LINES} mixed lines, cached, of the processor", milliseconds, 1, "ms", "<= 20")
        log = unrelated(LOG)
        milliseconds, answer = processor(s, log)
        assert answer == log
        row("text: an unrelated log of 4 MiB, unchanged", milliseconds, 1, "ms", "<= 50")


def core_row(work, row):
    program = cores.build(work, MEMORY, "waits", "-pthread")
    core, sparse = cores.by_kernel(program, work), os.path.join(work, "sparse.core")
    subprocess.run(["cp", "--sparse=always", core, sparse], check=True)
    size, held = os.path.getsize(sparse), os.stat(sparse).st_blocks * 512
    command = [harness.SYMLOOM, "symbolicate", sparse, "--symbols", program, "--cache-dir", os.path.join(work, "cache"), "-f", "json", "-q"]
    assert size >= 1 << 30 and subprocess.run(command, check=True, capture_output=True).stdout.count(b'"wait_here"') >= THREADS - 1
    best = 1e9
    for _ in range(RUNS):
        begin = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.monotonic() - begin)
    row(f"core: {size >> 20} MiB with {held >> 20} MiB of data, {THREADS} threads", 1000 * best, 1, "ms", "<= 100")


def main(symloom, row):
    harness.SYMLOOM = symloom
    with tempfile.TemporaryDirectory(prefix="symloom-bench-") as work:
        texts_rows(work, row)
        core_row(work, row)
