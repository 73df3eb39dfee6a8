"""The cache under fault: whatever happens to the process, the disk or its neighbours, an answer is right or says what is
missing, and the next one is right again.

SYMLOOM_KILLS=1000 in the environment kills more often.
"""
import contextlib, os, random, subprocess, sys, threading, time

import harness
from faults import Module, Redis, World, check_directory, metric, small_disk
from harness import Service, equal, wait_until

KILLS = int(os.environ.get("SYMLOOM_KILLS", "200"))


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


def test_killed_at_any_moment(work, objects):
    cache, rng = os.path.join(work, "cache"), random.Random(3)
    print(f"        {KILLS} kills", flush=True)
    with World(objects, 40) as world:
        longest = 0.05
        for turn in range(KILLS):
            if turn % 50 == 0:
                harness.shutil.rmtree(cache, ignore_errors=True)  # so that there is something to write again
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
        with Service(work, cache_dir=cache) as s:
            for i in range(0, 40, 10):
                equal(world.ask(s, world.modules[i:i + 10]), 10)
            equal(s.leftovers(), [], "what the killed ones left")
            equal(len(os.listdir(os.path.join(cache, "tmp"))), 1, "temporary directories")
        check_directory(cache)


def test_two_processes_and_one_is_killed(work, objects):
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
                b = Service(work, cache_dir=cache)
                some = rng.sample(world.modules, 20)
                other = in_threads(1, lambda _: quietly(lambda: world.ask(b, some)))
                time.sleep(rng.random() * 0.2)
                b.process.kill()
                b.process.wait()
                other()
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


def test_files_removed_under_its_feet(work, objects):
    cache = os.path.join(work, "cache")
    small = {"caches": {"in_memory": {"object_meta_capacity": 1, "default_capacity": 1}}}
    with World(objects, 20) as world, Service(work, small, cache_dir=cache) as s:
        remover = subprocess.Popen([sys.executable, "-c", REMOVER, cache])
        try:
            found = []

            def load(i):
                rng = random.Random(i)
                for _ in range(40):
                    # A temporary file that is gone when it is to be read is a failure of our own, for that moment.
                    found.append(world.ask(s, rng.sample(world.modules, 4), allowed=("other",)))

            in_threads(4, load)()
        finally:
            remover.kill()
            remover.wait()
        if sum(found) < 500:
            raise AssertionError(f"only {sum(found)} of 640 modules were found")
        wait_until("all modules again", lambda: world.ask(s, world.modules, allowed=("other",)) == 20)
        if "Sanitizer" in s.logged():
            raise AssertionError(s.logged()[-3000:])
    check_directory(cache)


def test_a_full_file_system(work, objects):
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
            wait_until("room made", lambda: "the disk was full" in s.logged())
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


def test_files_that_may_not_grow(work, objects):
    full_by_limit(work, objects)


def test_redis_comes_and_goes(work, objects):
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


def test_one_key_and_five_hundred_requests(work, objects):
    with World(objects, 1) as world, Service(work, {"max_concurrent_requests": None}) as s:
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
