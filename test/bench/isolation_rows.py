"""What it costs to read files in confined worker processes, beside threads of the service (conversion.isolation)."""
import json, os, re, shutil, signal, statistics, subprocess, sys, tempfile, threading, time

import crash_rows, deep, dumps, harness

ISOLATIONS = ("process", "thread")
ROUNDS = int(os.environ.get("SYMLOOM_BENCH_ROUNDS", "9"))  # of each large file
FILES, CLIENTS = 1000, 16  # small files, asked for one after another, then by some clients at once
STARTS = 20


def copy_to(root, program):
    """Where a source of the layout `debuginfod` looks for it; its build id."""
    build_id = dumps.build_id(program)
    os.makedirs(os.path.join(root, build_id))
    try:
        os.link(program, os.path.join(root, build_id, "debuginfo"))
    except OSError:  # on another file system
        shutil.copyfile(program, os.path.join(root, build_id, "debuginfo"))
    return build_id


def settings(root, isolation):
    return {"sources": [{"id": "files", "type": "filesystem", "path": root, "layout": {"type": "debuginfod"}}], "conversion": {"isolation": isolation},
            "max_concurrent_requests": None, "logging": {"access": "off"}}


def ask(service, build_id):
    frame = {"instruction_addr": "0x10001140"}
    module = {"type": "elf", "code_id": build_id, "image_addr": "0x10000000", "image_size": 1 << 30}
    answer = service.symbolicate({"stacktraces": [{"frames": [frame]}], "modules": [module]})
    if answer["status"] != "completed" or answer["modules"][0]["debug_status"] != "found":
        sys.exit(f"a debug file was not found: {answer}")


def ended(service):
    """Ends the service; seconds of the processor that it, its launcher and all of its workers have used."""
    service.process.send_signal(signal.SIGTERM)
    _, status, usage = os.wait4(service.process.pid, 0)
    service.process.returncode = status
    return usage.ru_utime + usage.ru_stime


def conversion(work, root, isolation, question):
    """Seconds of the processor for one question to a service that has nothing cached, without what its start and end use."""
    used = []
    for asked in (False, True):
        own = tempfile.mkdtemp(dir=work)
        with harness.Service(own, settings(root, isolation)) as s:
            if asked:
                question(s)
            used.append(ended(s))
        shutil.rmtree(own)
    return used[1] - used[0]


def conversions(work, data, row):
    dump = deep.dump(os.path.join(data, "deep.elf"), work, crash_rows.THREADS, crash_rows.LEVELS)
    for name, program, what in (("big", "bench.elf", "symbol table"), ("crash", "deep.elf", f"dump of {crash_rows.THREADS} threads"), ("large", "large.elf", "symbol table")):
        path, root = os.path.join(data, program), os.path.join(work, name)
        build_id = copy_to(root, path)
        os.link(os.path.join(root, build_id, "debuginfo"), os.path.join(root, build_id, "executable"))
        question = (lambda s: crash_rows.send(s, crash_rows.form(dump))) if name == "crash" else (lambda s: ask(s, build_id))
        used = {isolation: [] for isolation in ISOLATIONS}
        for _ in range(ROUNDS):
            for isolation in ISOLATIONS:
                used[isolation].append(conversion(work, root, isolation, question))
        shutil.rmtree(root)
        row(f"CPU, {name}: {what} of {os.path.getsize(path) / 1e6:.0f} MB", *(statistics.median(used[i]) for i in ISOLATIONS), "s", "<= 1.03")


def small_files(work):
    """Programs of some 20 KB, each with a build id of its own; their directory and build ids."""
    source, program, root = os.path.join(work, "small.c"), os.path.join(work, "small"), os.path.join(work, "small-files")
    with open(source, "w") as f:
        f.write("int main(int argc, char **argv) { return argc; }\n" + "".join(f"int function_{i}(int a) {{ return a * {i + 3}; }}\n" for i in range(24)))
    subprocess.run(["gcc", "-g", "-O1", "-Wl,--build-id=sha1", "-o", program, source], check=True)
    with open(program, "rb") as f:
        data = f.read()
    first = bytes.fromhex(dumps.build_id(program))
    build_ids = [i.to_bytes(4, "big") + first[4:] for i in range(FILES)]
    for build_id in build_ids:
        os.makedirs(directory := os.path.join(root, build_id.hex()))
        with open(os.path.join(directory, "debuginfo"), "wb") as f:
            f.write(data.replace(first, build_id))
    return root, [build_id.hex() for build_id in build_ids], len(data)


def at_once(service, build_ids):
    """Seconds until all are answered."""
    def client(own):
        for build_id in own:
            ask(service, build_id)

    threads = [threading.Thread(target=client, args=(build_ids[i::CLIENTS],)) for i in range(CLIENTS)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - start


def many_small(work, row):
    root, build_ids, size = small_files(work)
    one, rate = {i: [] for i in ISOLATIONS}, {i: [] for i in ISOLATIONS}
    for _ in range(5):
        for isolation in ISOLATIONS:
            for clients in (1, CLIENTS):
                own = tempfile.mkdtemp(dir=work)
                with harness.Service(own, settings(root, isolation)) as s:
                    if clients == 1:
                        for build_id in build_ids[:300]:
                            start = time.monotonic()
                            ask(s, build_id)
                            one[isolation].append(1000 * (time.monotonic() - start))
                    else:
                        rate[isolation].append(FILES / at_once(s, build_ids))
                shutil.rmtree(own)
    row(f"a file of {size / 1e3:.0f} KB, nothing cached, median", *(statistics.median(one[i]) for i in ISOLATIONS), "ms", "0.3 ms more")
    row(f"files of {size / 1e3:.0f} KB a second, {os.cpu_count()} cores", *(max(rate[i]) for i in ISOLATIONS), "/s", ">= 0.9")


def proportional_memory(pid):
    """Megabytes of the process and of those below it, each page divided among those that share it."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        size = int(re.search(r"^Pss: +(\d+) kB", f.read(), re.M).group(1)) / 1e3
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return size + sum(proportional_memory(int(child)) for child in f.read().split())


def starts(work, row):
    root = os.path.join(work, "one")
    build_id = copy_to(root, os.path.join(work, "small"))
    answered, memory = {i: [] for i in ISOLATIONS}, {i: [] for i in ISOLATIONS}
    for _ in range(STARTS):
        for isolation in ISOLATIONS:
            start = time.monotonic()
            with harness.Service(work, settings(root, isolation)) as s:
                ask(s, build_id)
                answered[isolation].append(1000 * (time.monotonic() - start))
                memory[isolation].append(proportional_memory(s.process.pid))
    row("start to first answer, median", *(statistics.median(answered[i]) for i in ISOLATIONS), "ms", "30 ms more")
    row("memory after the first answer", *(statistics.median(memory[i]) for i in ISOLATIONS), "MB", "6 MB more")


def main(symloom, data, row):
    """`deep.elf`, `bench.elf` and `large.elf` of `data` are there already."""
    harness.SYMLOOM = symloom
    print("confined workers, beside threads of the service")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:  # in memory: how long a disk takes to write is not what is compared
        many_small(work, row)
        starts(work, row)
    with tempfile.TemporaryDirectory() as work:
        conversions(work, data, row)


if __name__ == "__main__":  # SYMLOOM DATA
    main(sys.argv[1], sys.argv[2], lambda what, ours, theirs, unit, must: print(f"{what:<44} {ours:>10.3f} {theirs:>10.3f} {unit:<5} {ours / theirs:>7.3f}   {must}", flush=True))
