"""Files are read by confined worker processes: what a hostile one has its worker do reaches nothing else."""
import concurrent.futures, contextlib, gzip, json, os, re, signal, subprocess

import cabinets
import harness
import pushing
import readers
import test_crash_files as crash_files
from harness import Service, Upstream, equal, wait_until
from runner import effort
from test_deaths import BIG, breakpad, quarantine, request, source, status_of

CRASHES = ["read", "open", "environ", "socket", "execve", "kill", "ptrace", "memory", "before"]
BREACHES = ["garbage", "descriptor", "wrong"]
UNNOTICED = ["twice", "after"]  # the answer counts, the worker is replaced


def preloaded(work):
    """The service with a library that misbehaves in workers."""
    library, program = os.path.join(work, "misbehave.so"), os.path.join(work, "symloom")
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "preload")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, os.path.join(folder, "misbehave.c")], check=True)
    with open(program, "w") as f:
        f.write(f"#!/bin/sh\nASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS LD_PRELOAD={library} exec {harness.SYMLOOM} \"$@\"\n")
    os.chmod(program, 0o755)
    return program


def id_of(number):
    return f"9EAE93A0B01240F5BB29110A8EFB{number:04X}0"


def add_deeds(work, deeds, first=0):
    for i, deed in enumerate(deeds):
        breakpad(work, f"deed-{deed}", id_of(first + i), 120)  # large enough to be mapped, which the library notices


def line_tells(service, name, error):
    """The log tells of the death, with the file and the cause."""
    line = rf'a worker ended during a job .*function=object_check location=deed-{name}/.*error="{error}"'
    wait_until(f"the line about {name}", lambda: re.search(line, service.logged()))


def deaths(service):
    return {cause: int(n) for cause, n in re.findall(r'^symloom_worker_deaths_total\{cause="(\w+)"\} (\d+)',
                                                     service.request("GET", "/metrics")[2].decode(), re.M)}


def children(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    return []


def launcher_of(service):
    found = children(service.process.pid)
    equal(len(found), 1, "the launcher is the service's only child")
    return found[0]


def conversion(service):
    return json.loads(service.request("GET", "/status")[2])["conversion"]


def test_hostile_files_kill_only_their_own_worker(work, objects):
    names = BREACHES + CRASHES + UNNOTICED + ["loop"]
    add_deeds(work, names)
    breakpad(work, "good", BIG, 10)
    with Service(work, {"sources": [source(work)], "conversion": {"max_time": "1s", "max_memory": "64MiB"}}, program=preloaded(work)) as s:
        if "memory limit" in conversion(s)["confined_by"]:
            names.append("allocate")
            add_deeds(work, ["allocate"], len(names) - 1)
        equal(status_of(s, "good", BIG), "found")
        launcher = launcher_of(s)
        descriptors = len(os.listdir(f"/proc/{s.process.pid}/fd"))
        for i, name in enumerate(names):
            before = deaths(s)
            status = status_of(s, f"deed-{name}", id_of(i))
            changed = {c for c, n in deaths(s).items() if n > before.get(c, 0)}
            if name == "after":  # the worker may get the next job before it has ended: then that is done again
                equal((status, changed - {"crashed"}), ("found", set()), name)
            elif name in UNNOTICED:
                equal((status, changed), ("found", set()), name)
            elif name in BREACHES:
                equal((status, changed), ("malformed", {"protocol"}), name)
            elif name == "loop":
                equal((status, changed), ("unsupported", {"over_time"}), name)
            else:
                equal((status, changed), ("malformed", {"crashed"}), name)
            known = deaths(s)
            equal(status_of(s, f"deed-{name}", id_of(i)), status, "it is remembered")
            equal(deaths(s), known)
        equal(launcher_of(s), launcher)
        line_tells(s, "garbage", "the worker process that read this file gave no valid answer")  # the log leaves out what comes too often
        line_tells(s, "read", r"the reader crashed on this file: signal 11 \(SIGSEGV\)")
        if "BREACH" in s.logged() or f"{os.path.basename(harness.SYMLOOM)}+0x" not in s.logged():
            raise AssertionError(s.logged()[-3000:])
        workers = conversion(s)["workers"]
        wait_until("the workers", lambda: len(children(launcher)) <= max(workers, 1))
        wait_until("the descriptors", lambda: len(os.listdir(f"/proc/{s.process.pid}/fd")) <= descriptors + 2)
        ended = [launcher, *children(launcher)]
        open(s.log, "w").close()  # what sanitizers say of workers is no finding
    for pid in ended:
        wait_until("the end of all processes", lambda: not os.path.exists(f"/proc/{pid}"))


def test_many_deaths_fail_no_other_request(work, objects):
    count = effort(40, 1000)
    for i in range(count):
        breakpad(work, "deed-read", id_of(i), 120)
    for i in range(count):
        breakpad(work, "fine", id_of(i), 5)
    with Service(work, {"sources": [source(work)]}, program=preloaded(work)) as s, concurrent.futures.ThreadPoolExecutor(4) as pool:
        bad = pool.map(lambda i: status_of(s, "deed-read", id_of(i)), range(count))
        good = pool.map(lambda i: status_of(s, "fine", id_of(i)), range(count))
        health = [s.request("GET", "/healthcheck")[0] for _ in range(count)]
        equal(set(bad), {"malformed"})
        equal(set(good), {"found"})
        equal(set(health), {200})
        if deaths(s)["crashed"] < count:
            raise AssertionError(deaths(s))
        open(s.log, "w").close()


def test_deaths_of_the_service_do_not_blame_what_workers_read(work, objects):
    breakpad(work, "big", BIG, 100000)
    cache = os.path.join(work, "cache")
    for turn in range(3):
        s = Service(work, {"sources": [source(work)]}, cache_dir=cache)
        asking = subprocess.Popen(["curl", "-s", "-m", "60", f"http://127.0.0.1:{s.port}/symbolicate", "-H", "Content-Type: application/json",
                                   "-d", json.dumps(request("big", BIG))], stdout=subprocess.DEVNULL)
        launcher = launcher_of(s)
        wait_until("the reading", lambda: any(busy(pid) for pid in children(launcher)) or asking.poll() is not None)
        s.process.kill()
        s.process.wait()
        asking.wait()
        wait_until("the end of the workers", lambda: not os.path.exists(f"/proc/{launcher}"))
    with Service(work, {"sources": [source(work)]}, cache_dir=cache) as s:
        equal(quarantine(s), "")
        equal(status_of(s, "big", BIG), "found")


def busy(pid):
    """Whether the worker has used a hundredth of a second."""
    with contextlib.suppress(OSError, IndexError):
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rsplit(")", 1)[1].split()[11]) > 0


def test_a_service_without_its_launcher_ends(work, objects):
    s = Service(work)
    os.kill(launcher_of(s), signal.SIGKILL)
    equal(s.process.wait(60), 1)
    if "the launcher of the processes that read files has ended" not in s.logged():
        raise AssertionError(s.logged())


def test_isolation_key_chooses_threads(work, objects):
    breakpad(work, "good", BIG, 10)
    with Service(work, {"sources": [source(work)], "conversion": {"isolation": "thread"}}) as s:
        equal(conversion(s), {"isolation": "thread", "why_thread": None})
        equal(status_of(s, "good", BIG), "found")
        equal(children(s.process.pid), [])


def test_without_filters_files_are_read_in_threads_with_a_warning(work, objects):
    breakpad(work, "good", BIG, 10)
    os.environ["MISBEHAVE_NO_SECCOMP"] = "1"
    try:
        s = Service(work, {"sources": [source(work)]}, program=preloaded(work))
    finally:
        del os.environ["MISBEHAVE_NO_SECCOMP"]
    with s:
        why = "this system has no seccomp filters: workers cannot be confined"
        equal(conversion(s), {"isolation": "thread", "why_thread": why})
        equal(status_of(s, "good", BIG), "found")
        equal(children(s.process.pid), [])
        if f'hostile files are not isolated: threads of this process, which holds secrets, read them why="{why}"' not in s.logged():
            raise AssertionError(s.logged())


def test_each_of_several_processes_has_workers(work, objects):
    breakpad(work, "good", BIG, 10)
    port = harness.free_port()
    with Service(work, {"bind": f"127.0.0.1:{port}", "http": {"processes": 2}, "sources": [source(work)]}) as s:
        wait_until("both", lambda: s.logged().count("symloom is up") == 2)
        equal(status_of(s, "good", BIG), "found")
        state = json.loads(s.request("GET", "/status")[2])
        equal([p["conversion"]["isolation"] for p in state["processes"]], ["process", "process"])
        everything = all_below(s.process.pid)
        if len(everything) < 2 + 3 + 2:  # services, launchers, workers
            raise AssertionError(everything)
    for pid in everything:
        wait_until("the end of all processes", lambda: not os.path.exists(f"/proc/{pid}"))


def all_below(pid):
    found = children(pid)
    return found + [p for child in found for p in all_below(child)]


def test_a_reload_of_the_memory_limit_replaces_the_workers(work, objects):
    with Service(work, {"conversion": {"max_memory": "1GiB"}}) as s:
        launcher = launcher_of(s)
        before = set(wait_until("workers", lambda: children(launcher)))
        path = os.path.join(s.work, "config.yml")
        with open(path) as f:
            config = json.load(f)
        config["conversion"]["max_memory"] = "2GiB"
        with open(path, "w") as f:
            json.dump(config, f)
        s.process.send_signal(signal.SIGHUP)
        wait_until("new workers", lambda: children(launcher) and not before & set(children(launcher)))
        if "memory limit" in conversion(s)["confined_by"]:
            wait_until("the new limit", lambda: all(data_limit(pid) > 2 << 30 for pid in children(launcher)))


def data_limit(pid):
    """RLIMIT_DATA, in bytes; 0 = none yet."""
    with open(f"/proc/{pid}/limits") as f:
        found = re.search(r"Max data size +(\d+)", f.read())
    return int(found.group(1)) if found else 0


def test_workers_have_nothing_but_their_descriptors(work, objects):
    os.environ["SYMLOOM_TEST_SECRET"] = "a secret of the environment"
    try:
        s = Service(work)
    finally:
        del os.environ["SYMLOOM_TEST_SECRET"]
    with s:
        launcher = launcher_of(s)
        for pid in [launcher, *wait_until("workers", lambda: children(launcher))]:
            for name in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{name}", "rb") as f:
                    if b"SECRET" in (data := f.read()) or b"config.yml" in data:
                        raise AssertionError(f"{pid} {name}: {data}")
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        equal((status["Seccomp"], status["NoNewPrivs"], len(os.listdir(f"/proc/{pid}/fd"))), ("2", "1", 3))


def test_cabinets_are_read_in_workers(work, objects):
    """The times of their files are local ones: the C library wants to read the time zone for them, which workers cannot."""
    breakpad(work, "good", BIG, 10)
    path = os.path.join(work, "good", BIG, "good.sym")
    with open(path, "rb") as f:
        packed = cabinets.cabinet("good.sym", f.read())
    with open(path, "wb") as f:
        f.write(packed)
    with Service(work, {"sources": [source(work)]}) as s:
        equal((status_of(s, "good", BIG), deaths(s)), ("found", {}))


def test_files_of_clients_and_sources_are_read_in_workers(work, objects):
    """Crash files, uploads and downloads: by which readers, and never in a thread of the service."""
    breakpad(work, "good", BIG, 10)
    with open(os.path.join(work, "good", BIG, "good.sym"), "rb") as f:
        packed = gzip.compress(f.read())
    with Upstream({f"/good/{BIG}/good.sym": packed}) as upstream:
        symbols = {"id": "web", "type": "http", "url": upstream.url, "layout": {"type": "native"}, "filters": {"filetypes": ["breakpad"]}}
        with pushing.server(work, sources=[symbols]) as s:
            done = {}

            def readers_of(act):
                """Those that ran in workers since the last time."""
                act()
                now = readers.counts(s)
                new = {reader for (reader, place), n in now.items() if n > done.get((reader, place), 0)}
                equal([key for key, n in now.items() if key[1] != "worker" and n], [])
                done.update(now)
                return new

            equal(len(readers.counts(s)) > 20, True, "all readers are listed")
            dump = crash_files.form(upload_file_minidump=crash_files.small_dump(), sources=[])
            equal(readers_of(lambda: equal(crash_files.send(s, "/minidump", dump)[0], 200)), {"minidump", "walk"})
            zipped = {"minidump", "walk", "unpack"}
            dump = crash_files.form(upload_file_minidump=gzip.compress(crash_files.small_dump()), sources=[])
            equal(readers_of(lambda: equal(crash_files.send(s, "/minidump", dump)[0], 200)), zipped)
            equal(readers_of(lambda: equal(pushing.upload(s, pushing.SAMPLE)[0], 201)), {"archive_list", "member_check", "member_write"})
            found = readers_of(lambda: equal(status_of(s, "good", BIG), "found"))
            equal(found >= {"unpack", "object_check", "symcache"}, True, found)
