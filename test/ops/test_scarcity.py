"""What a machine may do to the service: no memory left, a clock that is set, nothing that can be written."""
import json, os, re, resource, shutil, subprocess, sys

import ops

sys.path[:0] = [os.path.join(ops.ROOT, "test", "http"), os.path.join(ops.ROOT, "test")]
import faults, harness


def objects(work):
    harness.SYMLOOM = ops.SYMLOOM
    return harness.Objects(work)


def size(process):
    with open(f"/proc/{process.pid}/status") as f:
        return int(re.search(r"VmSize:\s+(\d+) kB", f.read())[1]) * 1024


def test_exhausted_memory_sheds_requests_and_never_shortens_answers(work, shared):
    """Whoever asks for much is told to come again, and never given less in an answer that says it is whole."""
    with faults.World(objects(work), 30) as world, harness.Service(work) as s:
        big, statuses = world.body(world.modules), []
        big["stacktraces"] = big["stacktraces"] * 2000
        harness.equal(world.ask(s, world.modules), 30)
        for more in (0, 1, 4, 16, 64, 256):  # MiB
            resource.prlimit(s.process.pid, resource.RLIMIT_AS, (size(s.process) + (more << 20), resource.RLIM_INFINITY))
            for _ in range(3):
                status, _, body = s.post("/symbolicate", big)
                statuses.append(status)
                if status == 200:
                    answer = json.loads(body)
                    harness.equal((answer["status"], len(answer["stacktraces"])), ("completed", len(big["stacktraces"])))
                    harness.equal({m["debug_status"] for m in answer["modules"]}, {"found"})
            harness.equal(world.ask(s, world.modules), 30)  # a small one finds room
        print(f"        statuses {statuses}", flush=True)
        harness.equal(set(statuses), {200, 503})
        harness.equal(statuses[-1], 200)


def test_clock_changes_leave_answers_right(work, shared):
    """Forward and back: answers stay right, and the log tells."""
    clock = os.path.join(work, "clock")

    def set_clock(text):
        with open(clock + ".new", "w") as f:
            f.write(text)
        os.rename(clock + ".new", clock)

    set_clock("+0")
    library = subprocess.run(["sh", "-c", "ls /usr/lib/*/faketime/libfaketime.so.1"], capture_output=True, text=True, check=True).stdout.strip()
    os.environ.update(LD_PRELOAD=library, FAKETIME_TIMESTAMP_FILE=clock, FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1", DONT_FAKE_MONOTONIC="1")
    try:
        world = faults.World(objects(work), 20)
        service = harness.Service(work)
    finally:
        for name in ("LD_PRELOAD", "FAKETIME_TIMESTAMP_FILE", "FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC", "DONT_FAKE_MONOTONIC"):
            del os.environ[name]
    with world, service as s:
        harness.equal(world.ask(s, world.modules[:10]), 10)
        for i, text in enumerate(("+3h", "-2h", "+30d", "+0")):
            set_clock(text)
            harness.equal(world.ask(s, world.modules), 20, text)
            harness.wait_until("the line", lambda: s.logged().count("the system clock was changed") == i + 1)
            harness.equal(world.ask(s, world.modules), 20, text)
            harness.equal(s.request("GET", "/ready")[0], 200)



def test_read_only_root_needs_only_cache_dir(work, shared):
    """Nobody's rights, and nothing can be written but below cache_dir."""
    harness.SYMLOOM = ops.SYMLOOM
    cache, config, port = os.path.join(work, "cache"), os.path.join(work, "config.json"), harness.free_port()
    os.mkdir(cache)
    with open(config, "w") as f:
        json.dump({"bind": f"127.0.0.1:{port}", "cache_dir": cache}, f)
    for directory in (work, os.path.dirname(work), os.path.dirname(os.path.dirname(work))):
        os.chmod(directory, os.stat(directory).st_mode | 0o055)
    program = shutil.copy(ops.SYMLOOM, work)
    rights = "setpriv --reuid 12345 --regid 12345 --clear-groups --bounding-set -all --no-new-privs"
    script = (f"mount --make-rprivate / && mount -t tmpfs -o uid=12345,mode=700 tmpfs {cache} && "
              f"mount -o remount,bind,ro / && ! touch /tmp/written 2>/dev/null && exec {rights} {program} run -c {config}")
    with open(os.path.join(work, "log"), "w+") as log:
        service = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], stdout=log, stderr=log, env={"PATH": os.environ["PATH"]})
        try:
            def answers():
                assert service.poll() is None, open(log.name).read()
                return subprocess.run([program, "healthcheck", "--addr", f"127.0.0.1:{port}"], capture_output=True).returncode == 0
            harness.wait_until("health", answers)
        finally:
            service.terminate()
            harness.equal(service.wait(harness.DEADLINE), 0, open(log.name).read())
