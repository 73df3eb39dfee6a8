"""The cache under fault: whatever happens to the process, the disk or its neighbours, an answer is right or says what is
missing, and the next one is right again.

With SYMLOOM_TEST_EFFORT=all it is killed more often.
"""
import contextlib, json, os, random, re, resource, subprocess, sys, threading, time

import harness
from faults import Module, Redis, World, check_directory, metric, small_disk
from harness import Service, equal, wait_until
from runner import effort

KILLS = effort(40, 1000)


def in_threads(count, work):
    """Runs work(i) in threads; returns the function that waits for them and passes on what they raised."""
    raised = []

    def guarded(i):
        try:
            work(i)
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()

    def join():
        for t in threads:
            t.join()
        if raised:
            raise raised[0]

    return join


def forget_deaths(cache):
    """What was in work at the third kill of a day would be left alone."""
    harness.shutil.rmtree(os.path.join(cache, "quarantine"), ignore_errors=True)


def test_cache_survives_kills_at_any_moment(work, objects):
    cache, rng = os.path.join(work, "cache"), random.Random(3)
    print(f"        {KILLS} kills", flush=True)
    with World(objects, 40) as world:
        longest = 0.05
        for turn in range(KILLS):
            if turn % 20 == 0:
                harness.shutil.rmtree(cache, ignore_errors=True)  # so that there is something to write again
            forget_deaths(cache)
            s = Service(work, cache_dir=cache)
            some = rng.sample(world.modules, 6)

            def ask(_):
                begin = time.monotonic()
                try:
                    world.ask(s, some)
                except (OSError, harness.http.client.HTTPException):
                    return  # killed meanwhile
                nonlocal longest
                longest = max(longest, min(time.monotonic() - begin, 0.5))

            join = in_threads(1, ask)
            time.sleep(rng.random() * longest)  # the moment is what is tested
            s.process.kill()
            s.process.wait()
            join()
            harness.shutil.rmtree(s.work)
        check_directory(cache)
        forget_deaths(cache)
        with Service(work, cache_dir=cache) as s:
            for i in range(0, 40, 10):
                equal(world.ask(s, world.modules[i:i + 10]), 10)
            equal(s.leftovers(), [], "what the killed ones left")
            equal(len(os.listdir(os.path.join(cache, "tmp"))), 1, "temporary directories")
        check_directory(cache)


def test_killed_process_does_not_disturb_another_one_of_the_directory(work, objects):
    cache, rng = os.path.join(work, "cache"), random.Random(4)
    with World(objects, 60) as world, Service(work, cache_dir=cache) as a:
        stop = threading.Event()

        def load(_):
            own = random.Random(_)
            while not stop.is_set():
                world.ask(a, own.sample(world.modules, 5))

        join = in_threads(2, load)
        try:
            for _ in range(10):
                forget_deaths(cache)
                b = Service(work, cache_dir=cache)
                some = rng.sample(world.modules, 20)
                other = in_threads(1, lambda _: quietly(lambda: world.ask(b, some)))
                time.sleep(rng.random() * 0.2)
                b.process.kill()
                b.process.wait()
                other()
            forget_deaths(cache)
            c = Service(work, cache_dir=cache)
            with c:
                equal(world.ask(c, world.modules), 60)
        finally:
            stop.set()
            join()
        check_directory(cache)


def quietly(what):
    try:
        what()
    except (OSError, harness.http.client.HTTPException):
        pass


REMOVER = """
import os, random, shutil, sys
rng = random.Random(1)
while True:
    for folder, folders, files in os.walk(sys.argv[1]):
        if f"{sys.argv[1]}/tmp" in folder and rng.random() < 0.9:
            continue
        for name in files:
            if name != "lock" and rng.random() < 0.5:
                try: os.unlink(os.path.join(folder, name))
                except OSError: pass
        if rng.random() < 0.05 and folder != sys.argv[1]:
            shutil.rmtree(folder, ignore_errors=True)
"""


def test_cache_files_removed_while_in_use_are_remade(work, objects):
    cache = os.path.join(work, "cache")
    small, rounds = {"caches": {"in_memory": {"object_meta_capacity": 1, "default_capacity": 1}}}, effort(10, 40)
    with World(objects, 20) as world, Service(work, small, cache_dir=cache) as s:
        remover = subprocess.Popen([sys.executable, "-c", REMOVER, cache])
        try:
            found = []

            def load(i):
                rng = random.Random(i)
                for _ in range(rounds):
                    # A temporary file that is gone when it is to be read is a failure of our own, for that moment.
                    found.append(world.ask(s, rng.sample(world.modules, 4), allowed=("other",)))

            in_threads(4, load)()
        finally:
            remover.kill()
            remover.wait()
        if sum(found) < 12 * rounds:
            raise AssertionError(f"only {sum(found)} of {16 * rounds} modules were found")
        wait_until("all modules again", lambda: world.ask(s, world.modules, allowed=("other",)) == 20)
        if "Sanitizer" in s.logged():
            raise AssertionError(s.logged()[-3000:])
    check_directory(cache)


def test_full_file_system_still_gives_answers(work, objects):
    with small_disk(work, "4m") as disk:
        if not disk:
            return full_by_limit(work, objects)  # the same without a file system of one's own
        old = os.path.join(disk, "objects", "v2", "00", "00")
        os.makedirs(old)
        for i in range(10):  # 3 MB that nobody has used for a day and a half
            path = os.path.join(old, f"{i:060x}")
            with open(path, "wb") as f:
                f.write(b"\x7fELF" + bytes(300000))
            os.utime(path, (time.time() - 20 * 3600,) * 2)
        with World(objects, 12, padding=200000) as world, Service(work, cache_dir=disk) as s:
            if all(world.ask(s, [m], allowed=("other",)) for m in world.modules):
                raise AssertionError("it was never full")
            wait_until("room made", lambda: "removed cache entries to free disk space" in s.logged())
            equal(s.logged().count("cache write failed"), 1, "lines, of which there is one a minute")
            equal(s.leftovers(), [])
            fresh = Module(objects, 1000, 200000)
            world.up.routes[f"/{fresh.build_id}/debuginfo"] = fresh.bytes
            world.modules.append(fresh)
            equal(world.ask(s, [fresh]), 1, "after room was made")
            equal(s.request("GET", "/healthcheck")[0], 200)
        check_directory(disk)


@contextlib.contextmanager
def limited_files(work, kib):
    """Services started inside may not write files above this size: their writes fail with EFBIG."""
    real, script = harness.SYMLOOM, os.path.join(work, "limited")
    with open(script, "w") as f:
        f.write(f"#!/bin/bash\ntrap '' XFSZ\nulimit -f {kib}\nexec {real} \"$@\"\n")
    os.chmod(script, 0o755)
    harness.SYMLOOM = script
    try:
        yield
    finally:
        harness.SYMLOOM = real


def full_by_limit(work, objects):
    with World(objects, 6) as world:
        big = Module(objects, 1000, 400000)
        world.up.routes[f"/{big.build_id}/debuginfo"] = big.bytes
        with limited_files(work, 150), Service(work) as s:
            for i in range(3):
                equal(world.ask(s, [world.modules[2 * i], big], allowed=("other",)), 1)
                equal(world.ask(s, [world.modules[2 * i + 1]]), 1)
            equal(s.leftovers(), [])
            check_directory(s.cache)


def test_file_size_limit_still_gives_answers(work, objects):
    full_by_limit(work, objects)


def test_redis_may_stop_pause_and_flush_under_load(work, objects):
    """Stopped, paused and flushed in mid-run, under load; without a disk, so that everything is asked of it."""
    with World(objects, 12) as world, Redis(work) as redis:
        config = {"shared_cache": {"redis": {"url": redis.url}, "route": {"objects": "both"}},
                  "caches": {"in_memory": {"object_meta_capacity": 1, "default_capacity": 1}}, "cache_dir": None}
        with Service(work, config) as s:
            stop, answers = threading.Event(), [0]

            def load(i):
                rng = random.Random(i)
                while not stop.is_set():
                    begin = time.monotonic()
                    equal(world.ask(s, rng.sample(world.modules, 3)), 3)
                    took = time.monotonic() - begin
                    # One time limit of 2 s, whatever Redis does, and what the rest takes on a busy machine.
                    if took > 10:
                        raise AssertionError(f"an answer took {took:.1f} s")
                    answers[0] += 1

            def some_answers():
                target = answers[0] + 8
                wait_until("answers", lambda: answers[0] >= target)

            join = in_threads(3, load)

            def is_up():
                return metric(s, 'symloom_shared_up{backend="redis"}') == 1

            try:
                wait_until("entries in Redis", lambda: redis.size() >= 20)
                redis.ask("FLUSHALL")
                some_answers()
                redis.pause()
                wait_until("left alone", lambda: not is_up())
                some_answers()
                redis.go_on()
                wait_until("in use again", is_up)
                some_answers()
                redis.stop()
                wait_until("left alone", lambda: not is_up())
                some_answers()
                redis.start()
                wait_until("in use again", is_up)
                wait_until("entries in Redis", lambda: redis.size() >= 20)
            finally:
                stop.set()
                redis.go_on()
                join()
        with Service(work, config) as s:  # whatever was stored in between is right
            for m in world.modules:
                equal(world.ask(s, [m]), 1)


def test_five_hundred_requests_of_one_key_share_one_computation(work, objects):
    with World(objects, 1) as world, Service(work, {"max_concurrent_requests": None, "head_timeout": "5m"}) as s:
        gate = threading.Event()
        path, data = f"/{world.modules[0].build_id}/debuginfo", world.modules[0].bytes

        def slow(handler):
            gate.wait(harness.DEADLINE)
            handler.reply(200, data)

        world.up.routes[path] = slow
        join = in_threads(500, lambda _: equal(world.ask(s, world.modules), 1))
        wait_until("all of them", lambda: running(s) >= 500)
        gate.set()
        join()
        equal(world.up.hits[path], 1, "downloads")
        equal(metric(s, 'symloom_conversions_total{cache="symcaches",result="ok"}'), 1, "conversions")


def running(service):
    text = service.request("GET", "/metrics")[2].decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("symloom_jobs_running"))


def cached_files(cache):
    """Entries and side files of the cache."""
    return [os.path.join(d, f) for d, folders, files in os.walk(cache) for f in files
            if f != "lock" and not os.path.relpath(d, cache).startswith("tmp")]


def large_program(work):
    """A library whose tables fill many pages: its bytes, its build id and the addresses inside of its functions by name."""
    names = [f"function_with_number_{i}" for i in range(3000)]
    with open(os.path.join(work, "large.c"), "w") as f:
        f.writelines(f"int {n}(int x) {{ return x * {i}; }}\n" for i, n in enumerate(names))
    subprocess.run(["gcc", "-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o", "large.so", "large.c"], cwd=work, check=True)
    read = lambda *command: subprocess.run(command, cwd=work, check=True, capture_output=True, text=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", read("readelf", "-n", "large.so"))[1]
    symbols = {parts[2]: int(parts[0], 16) + 1 for parts in map(str.split, read("nm", "large.so").splitlines()) if len(parts) == 3}
    with open(os.path.join(work, "large.so"), "rb") as f:
        return f.read(), build_id, {n: symbols[n] for n in names}


@contextlib.contextmanager
def leaks_accepted():
    """What a fault ended in the middle had allocated is lost, which is known."""
    before = os.environ.get("ASAN_OPTIONS", "")
    os.environ["ASAN_OPTIONS"] = f"{before}:detect_leaks=0"
    try:
        yield
    finally:
        os.environ["ASAN_OPTIONS"] = before


def test_truncated_mapped_files_are_remade(work, objects):
    data, build_id, addresses = large_program(work)
    some = dict(list(addresses.items())[::75])
    with harness.Upstream({f"/{build_id}/debuginfo": data}) as up, leaks_accepted(), Service(work) as s:
        body = harness.request(objects.module(code_id=build_id, debug_id=None, image_size=0x100000), list(some.values()),
                               sources=[harness.http_source(up.url)])

        def ask(*allowed):
            answer = s.symbolicate(body)
            status = answer["modules"][0]["debug_status"]
            if status not in allowed:
                equal([f.get("function") for f in harness.frames(answer)], list(some), status)

        ask()
        for share in (0.0, 0.5, 0.0):
            stop = threading.Event()

            def load(_):
                while not stop.is_set():
                    ask("other")

            join = in_threads(2, load)
            for path in cached_files(s.cache):
                with contextlib.suppress(FileNotFoundError):
                    os.truncate(path, int(os.path.getsize(path) * share))
            for _ in range(3):
                ask("other")
            stop.set()
            join()
            ask()
        equal(s.process.poll(), None, "the process")
        lines = [line for line in s.logged().splitlines() if "cache entry damaged" in line]
        assert lines and all(re.search(r" cache=\w+ key=[0-9a-f]{16}$", line) for line in lines), lines


def test_emptied_cache_entries_are_remade(work, objects):
    """Without a process that has them in memory."""
    cache = os.path.join(work, "cache")
    with World(objects, 2) as world:
        for kinds in (["objects"], ["symcaches", "object_meta"], ["objects", "symcaches", "object_meta"]):
            with Service(work, cache_dir=cache) as s:
                equal(world.ask(s, world.modules), 2)
            for path in cached_files(cache):
                if os.path.relpath(path, cache).split(os.sep)[0] in kinds and not path.endswith(".metadata"):
                    os.truncate(path, 0)
        with Service(work, cache_dir=cache) as s:
            equal(world.ask(s, world.modules), 2, "found")
            check_directory(cache)


def test_unwritable_cache_dir_still_gives_answers(work, objects):
    with World(objects, 4) as world, Service(work) as s:
        equal(world.ask(s, world.modules[:2]), 2)
        equal(s.request("GET", "/ready")[0], 200)
        aside = s.cache + ".aside"
        os.rename(s.cache, aside)
        with open(s.cache, "w"):
            pass  # a file is no directory, whoever asks
        equal(world.ask(s, world.modules), 4, "found without the directory")
        status, _, body = s.request("GET", "/ready")
        equal((status, json.loads(body)["reasons"]), (503, ["cache directory not writable"]))
        os.unlink(s.cache)
        os.rename(aside, s.cache)
        wait_until("the probe", lambda: s.request("GET", "/ready")[0] == 200)
        equal(world.ask(s, world.modules), 4)
        equal(s.leftovers(), [])
        equal(s.logged().count("cache directory not writable"), 1, "lines")


def test_jobs_waiting_for_a_hanging_source_take_one_fiber_each(work, objects):
    """A look-up that waits is a record: one fiber a job, few files, and answers from memory as before."""
    jobs = 600
    woken = threading.Event()

    class Hanging(harness.UpstreamHandler):
        def do_GET(self):
            woken.wait(harness.DEADLINE)
            self.reply(404)

    config = {"max_concurrent_requests": None, "head_timeout": "5m", "deny_list_enabled": False}
    with World(objects, 1) as world, Service(work, config) as s, harness.Upstream({}) as hanging:
        hanging.RequestHandlerClass = Hanging
        equal(world.ask(s, world.modules), 1)

        def body(i):
            module = objects.module(code_id=f"{i:040x}", debug_id=f"{i:08x}-0000-0000-0000-000000000001")
            source = harness.http_source(hanging.url, filters={"filetypes": ["elf_debug"]})
            return {"stacktraces": [{"frames": [{"instruction_addr": "0x10001000"}]}], "modules": [module],
                    "sources": [source]}

        for turn in range(2):
            woken.clear()
            ids = [s.symbolicate(body(turn * jobs + i), "?timeout=0")["request_id"] for i in range(jobs)]
            wait_until("the queue", lambda: metric(s, 'symloom_waiting{what="disk"}') == 0)
            if metric(s, "symloom_fibers") > jobs + 100:
                raise AssertionError(f"{metric(s, 'symloom_fibers')} fibers for {jobs} jobs")
            descriptors = len(os.listdir(f"/proc/{s.process.pid}/fd"))
            if descriptors > 200:
                raise AssertionError(f"{descriptors} descriptors for {jobs} jobs")
            equal(world.ask(s, world.modules), 1, "from memory")
            woken.set()
            for i in ids:
                answer = json.loads(s.request("GET", f"/requests/{i}?timeout=60")[2])
                equal((answer["status"], answer["modules"][0]["debug_status"]), ("completed", "missing"))


def test_request_with_more_modules_than_fibers_completes(work, objects):
    """What an admitted request needs is waited for, however little there is."""
    config = {"max_fibers": 16, "max_downloads": 2, "max_downloads_per_host": 1}  # of which the service has up to eight
    with World(objects, 60) as world, Service(work, config) as s:
        equal(world.ask(s, world.modules), 60)
        equal(metric(s, 'symloom_busy_total{what="memory"}'), 0.0)


def without_descriptors(world, service, body):
    """EMFILE fails the job, with words of its own, and nothing is kept: whatever it is that has no descriptor."""
    count = 10
    equal(world.check(service.symbolicate(body(world.modules[:1])), 1), 1)
    for spare, first in enumerate(range(1, len(world.modules), count)):
        some = world.modules[first:first + count]
        used = len(os.listdir(f"/proc/{service.process.pid}/fd"))
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (used + spare, 4096))
        status, _, data = service.post("/symbolicate", body(some))
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (4096, 4096))
        if status == 503:
            equal(json.loads(data), {"detail": "not enough memory for this request"})
        else:
            world.check(json.loads(data), count)
        equal(world.check(service.symbolicate(body(some)), count), count, f"found afterwards; {spare} were left")


def test_downloads_wait_for_descriptors(work, objects):
    with World(objects, 121) as world, Service(work) as s:
        without_descriptors(world, s, world.body)


def test_local_files_wait_for_descriptors(work, objects):
    root = os.path.join(work, "root")
    source = {"id": "local", "type": "filesystem", "path": root, "layout": {"type": "debuginfod"}}
    with World(objects, 121) as world, Service(work, {"sources": [source]}) as s:
        for m in world.modules:
            os.makedirs(os.path.join(root, m.build_id))
            with open(os.path.join(root, m.build_id, "debuginfo"), "wb") as f:
                f.write(m.bytes)
        without_descriptors(world, s, lambda some: {k: v for k, v in world.body(some).items() if k != "sources"})


def deleted_mappings(service):
    with open(f"/proc/{service.process.pid}/maps") as f:
        return sum(line.endswith(" (deleted)\n") and service.cache in line for line in f)


def test_removed_cache_files_are_unmapped(work, objects):
    """Whoever removes files of the cache: this service, or a command beside it. And what nobody asks for is not mapped."""
    with World(objects, 12, padding=1 << 20) as world:
        for caches in ({"max_size": "1MB"}, {"memory_idle": "1s"}):
            with Service(work, {"caches": caches}) as s:
                world.ask(s, world.modules)
                with open(f"/proc/{s.process.pid}/maps") as f:
                    assert sum(s.cache in line for line in f) > 6
                if "max_size" in caches:
                    for path in cached_files(s.cache):
                        os.utime(path, (time.time() - 1200,) * 2)  # what was used just now stays
                    subprocess.run([harness.SYMLOOM, "cleanup", "-c", os.path.join(s.work, "config.yml")], check=True,
                                   capture_output=True)
                    assert deleted_mappings(s) > 3
                wait_until("mappings to go", lambda: (deleted_mappings(s) == 0 and "max_size" in caches) or not any(
                    s.cache in line for line in open(f"/proc/{s.process.pid}/maps")))
                world.ask(s, world.modules)
