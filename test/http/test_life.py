"""How the service ends, what it says of itself meanwhile, and what it needs of where it runs."""
import contextlib, ctypes, json, os, re, shutil, signal, socket, struct, subprocess, threading, time

import harness
from faults import metric
from harness import DEADLINE, Service, Upstream, equal, frames, http_source, request, wait_until
from test_cluster import Gate, begin, poll
from test_symbfile import EMPTY, ID, ask, good, service as uploads

HEAD = b"POST /symbolicate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


def test_idle_service_ends_at_once(work, objects):
    quickest = DEADLINE
    for _ in range(5):  # the machine may be busy
        s = Service(work)
        start = time.monotonic()
        equal(s.stop(), 0)
        quickest = min(quickest, time.monotonic() - start)
    leaks = "Sanitizer" if b"__asan_init" in open(harness.SYMLOOM, "rb").read() else ""  # what looks for them takes its time
    assert quickest < (2 if leaks else 0.2), quickest


def test_draining_finishes_running_requests_and_refuses_new_ones(work, objects):
    gate, answers = Gate(objects), []
    with Upstream(gate.routes) as upstream:
        s = Service(work)
        body = request(objects.module(), [objects.address("plain")], sources=[http_source(upstream.url, filters={"filetypes": ["elf_code"]})])
        job = begin(s, objects, upstream)
        client = threading.Thread(target=lambda: answers.append(s.symbolicate(body)))
        client.start()
        wait_until("both jobs", lambda: b'symloom_jobs_running{task="symbolicate"} 2' in s.request("GET", "/metrics")[2])
        s.process.send_signal(signal.SIGTERM)
        wait_until("draining", lambda: s.request("GET", "/healthcheck")[0] == 503)
        equal(s.request("GET", "/healthcheck")[2], b"draining")
        equal((s.request("GET", "/live")[0], s.request("GET", "/live")[2]), (200, b"ok"))
        equal((s.request("GET", "/ready")[0], json.loads(s.request("GET", "/ready")[2])["reasons"]), (503, ["draining"]))
        equal((s.request("GET", "/__lbheartbeat__")[0], s.post("/symbolicate", body)[0]), (503, 503))
        equal(json.loads(s.post("/symbolicate", body)[2]), {"detail": "service is shutting down"})
        equal(poll(s, job, "?timeout=0")[1]["status"], "pending")
        gate.open.set()
        client.join()
        equal(poll(s, job, "?timeout=30")[1]["status"], "completed")
        equal(frames(answers[0])[0]["status"], "symbolicated")
        equal(s.process.wait(DEADLINE), 0)


def test_draining_cuts_jobs_at_the_timeout(work, objects):
    gate = Gate(objects)
    with Upstream(gate.routes) as upstream:
        s = Service(work, {"shutdown": {"timeout": "300ms"}})
        begin(s, objects, upstream)
        s.process.send_signal(signal.SIGTERM)
        equal(s.process.wait(DEADLINE), 0)
        gate.open.set()


def slow_ranges():
    """A symbfile that takes long to convert: functions, each with many calls inlined in it."""
    first = EMPTY + bytes.fromhex("080260c00c10101a0161")
    return first + 1500000 * bytes.fromhex("0702082010101a0161")


def test_draining_abandons_long_conversions(work, objects):
    """What they had begun is gone, and nothing is remembered of it."""
    with uploads(work) as s:
        good(s, slow_ranges())
    with uploads(work, cache_dir=s.cache, config={"shutdown": {"timeout": "0s"}}) as s:
        body = {"modules": [{"type": "elf", "image_addr": "0x0", "file_id": ID}], "stacktraces": [
            {"frames": [{"instruction_addr": "0x644", "addr_mode": "rel:0"}]}]}
        jobs = [s.symbolicate(body, "?timeout=0") for _ in range(2)]
        equal([job["status"] for job in jobs], ["pending"] * 2)
        wait_until("the conversion", lambda: s.leftovers())
        start = time.monotonic()
        s.process.send_signal(signal.SIGTERM)
        equal(s.process.wait(DEADLINE), 0)
        assert time.monotonic() - start < 5, "it was waited for"
        assert re.search(r"WARN jobs: canceling the jobs that still run at shutdown jobs=2\n", s.logged()), s.logged()
        equal(os.listdir(os.path.join(s.cache, "tmp")), [])
    with uploads(work, cache_dir=s.cache) as s:
        equal(ask(s, [0x644])[0]["modules"][0]["debug_status"], "found")


def test_second_signal_ends_the_process_without_quarantine(work, objects):
    gate = Gate(objects)
    with Upstream(gate.routes) as upstream:
        s = Service(work)
        begin(s, objects, upstream)
        s.process.send_signal(signal.SIGTERM)
        wait_until("draining", lambda: "stopping: waiting" in s.logged())
        s.process.send_signal(signal.SIGTERM)
        equal(s.process.wait(DEADLINE), 143)
        gate.open.set()
    with Service(work, cache_dir=s.cache) as again:
        assert "crashed or was killed" not in again.logged(), again.logged()


def test_world_writable_cache_dir_is_warned_of(work, objects):
    cache = os.path.join(work, "cache")
    os.mkdir(cache)
    for mode, told in ((0o750, 0), (0o777, 1)):
        os.chmod(cache, mode)
        with Service(work, cache_dir=cache) as s:
            equal(s.logged().count("WARN cache: the cache directory is writable by everyone; anyone can change results (chmod o-w)"), told, s.logged())


def test_sigusr2_logs_the_state(work, objects):
    gate = Gate(objects)
    with Upstream(gate.routes) as upstream, Service(work) as s:
        job = begin(s, objects, upstream)
        wait_until("the download", lambda: upstream.hits)
        s.process.send_signal(signal.SIGUSR2)
        told = wait_until("the state", lambda: "state: state of the process" in s.logged() and s.logged())
        for what in (rf"state: job job={job} task=symbolicate age_ms=\d+ waits_for=\S", r"state: cache cache=objects in_work=1 oldest=",
                     rf"state: download url={re.escape(upstream.url)}", r"state: state of the process jobs=1 .*pool_threads=\d.*memory_budget=\d"):
            assert re.search(what, told), (what, told)
        gate.open.set()
        equal(poll(s, job, "?timeout=30")[1]["status"], "completed")


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def test_access_lines_name_the_reason_of_an_abort(work, objects):
    gate = Gate(objects)
    with Upstream(gate.routes) as upstream, Service(work, {"http": {"body_timeout": "200ms"}}) as s:
        with socket.create_connection(("127.0.0.1", s.port)) as client:
            client.sendall(HEAD % 100 + b"{")
            assert client.recv(100).startswith(b"HTTP/1.1 408")
        body = json.dumps(request(objects.module(), [objects.address("plain")], sources=[http_source(upstream.url)])).encode()
        with socket.create_connection(("127.0.0.1", s.port)) as client:
            client.sendall(HEAD % len(body) + body)
            wait_until("the download", lambda: upstream.hits)
            reset(client)
        wait_until("both lines", lambda: re.search(r"access: .*status=408.* aborted=body_timeout", s.logged()) and
                   re.search(r"access: .* aborted=reset", s.logged()))
        wait_until("the end of the job", lambda: metric(s, 'symloom_jobs_finished_total{task="symbolicate",outcome="cancelled"}') == 1)
        gate.open.set()


class Threads:
    """The threads of the service's pool, each of which stands still once it works, until the service has ended."""

    SEIZE, INTERRUPT, ALL = 0x4206, 0x4207, 0x40000000  # ptrace(2), waitpid(2)

    def __init__(self, service):
        self.process, self.home = service.process, f"/proc/{service.process.pid}/task"
        self.all = [tid for tid in map(int, os.listdir(self.home)) if self.read(tid, "comm") == "pool"]
        self.for_requests = len(self.all) // 2  # as many are for background work alone
        self.before, self.stopped = {tid: self.user_ticks(tid) for tid in self.all}, []

    def read(self, tid, name):
        with open(f"{self.home}/{tid}/{name}") as f:
            return f.read().strip()

    def user_ticks(self, tid):
        return int(self.read(tid, "stat").rsplit(")", 1)[1].split()[11])

    def stop_busy(self):
        """Reading JSON, where they hold no lock. True when all stand still."""
        libc = ctypes.CDLL(None, use_errno=True)
        for tid in set(self.all) - set(self.stopped):
            if self.user_ticks(tid) < self.before[tid] + 4 or self.read(tid, "syscall") != "running":
                continue
            for what in (self.SEIZE, self.INTERRUPT):
                if libc.ptrace(ctypes.c_long(what), ctypes.c_long(tid), None, None) != 0:
                    raise OSError(ctypes.get_errno(), f"ptrace of {tid}")
            self.stopped.append(tid)
        return len(self.stopped) == self.for_requests

    def end(self):
        """How the process ends, whose threads are reaped here."""
        def ended():
            for tid in self.all:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(tid, os.WNOHANG | self.ALL)
            return self.process.poll() is not None
        wait_until("the end of the process", ended)
        return self.process.returncode


def send(client, data):
    """Or as much as the service takes before it ends."""
    with contextlib.suppress(OSError):
        client.sendall(data)


def test_stuck_threads_make_the_service_unready(work, objects):
    """They make the service unready and are left behind by its end, with what waited for them."""
    small, body = (b'{"stacktraces":[],"modules":[],"x":[' + b"0," * count + b"0]}" for count in (50000, 20000000))
    s = Service(work, {"health": {"stalled": "200ms"}, "shutdown": {"timeout": "300ms"}})
    with contextlib.ExitStack() as clients:
        for _ in range(os.cpu_count() * 2):  # so that all threads have begun
            equal(s.post("/symbolicate", small)[0], 200)
        equal(s.request("GET", "/ready")[0], 200)
        threads = Threads(s)
        for _ in range(threads.for_requests + 1):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", s.port)))
            threading.Thread(target=send, args=[client, HEAD % len(body) + body]).start()
        wait_until("threads that work", threads.stop_busy)
        answer = wait_until("unreadiness", lambda: (got := s.request("GET", "/ready"))[0] == 503 and got)
        equal(json.loads(answer[2])["reasons"], ["pool stalled"])
        equal(s.request("GET", "/healthcheck")[::2], (200, b"ok"))
        begun = time.monotonic()
        s.process.send_signal(signal.SIGTERM)
        equal(threads.end(), 0)
        assert time.monotonic() - begun < 8, "it was waited for"
    assert re.search(rf"WARN run: exiting although some threads are still running threads_at_work={threads.for_requests} waiting=\d", s.logged()), s.logged()
    equal(os.listdir(os.path.join(s.cache, "tmp")), [])


def test_work_for_disconnected_clients_is_cancelled(work, objects):
    """Once: the next one who wants the same, and does not wait for it either, does not keep others from getting it."""
    body = json.dumps({"modules": [{"type": "elf", "image_addr": "0x0", "file_id": ID}], "stacktraces": [
        {"frames": [{"instruction_addr": "0x644", "addr_mode": "rel:0"}]}]}).encode()
    with uploads(work) as s:
        good(s, slow_ranges())
        for left in (1, 2):
            with socket.create_connection(("127.0.0.1", s.port)) as client:
                client.sendall(HEAD % len(body) + body)
                wait_until("the conversion", lambda: s.leftovers())
                reset(client)
            wait_until("the end of the job", lambda: metric(s, 'symloom_jobs_finished_total{task="symbolicate",outcome="cancelled"}') == left)
            if left == 1:
                wait_until("the end of the conversion", lambda: metric(s, 'symloom_cache_abandoned_total{cache="symbfile_index"}') == 1)
                equal((metric(s, 'symloom_pool_cancelled_total{job="convert"}'), s.leftovers()), (1, []))
        equal(ask(s, [0x644])[0]["modules"][0]["debug_status"], "found")
        equal(metric(s, 'symloom_cache_abandoned_total{cache="symbfile_index"}'), 1)
        equal(len(re.findall(r"access: .* path=/symbolicate .* aborted=reset", s.logged())), 2)


def test_access_lines_report_queueing_time(work, objects):
    """In queues, of which what is in memory sees none."""
    with Upstream(objects.layout()) as upstream, Service(work) as s:
        body = request(objects.module(), [objects.address("plain")], sources=[http_source(upstream.url)])
        for _ in range(2):
            s.symbolicate(body)
        wait_until("both lines", lambda: s.logged().count(" path=/symbolicate ") == 2)
        cold, warm = [line for line in s.logged().splitlines() if " path=/symbolicate " in line]
        waited, all = (float(re.search(rf" {name}=(\S+)", cold)[1]) for name in ("wait_ms", "duration_ms"))
        assert 0 < waited <= all, cold
        assert "wait_ms" not in warm, warm


def test_another_process_on_the_address_takes_over_while_draining(work, objects):
    """It is the only one that listens, as soon as this one drains; what this one has accepted is answered."""
    gate, settings = Gate(objects), {"bind": f"127.0.0.1:{harness.free_port()}", "http": {"reuseport": True}}
    with Upstream(gate.routes) as upstream:
        first = Service(work, settings)
        job, kept = begin(first, objects, upstream), first.connection()
        kept.connect()
        with Service(work, settings) as second:
            first.process.send_signal(signal.SIGTERM)

            def listening():
                with open("/proc/net/tcp") as f:
                    return sum(f"0100007F:{first.port:04X} 00000000:0000 0A" in line for line in f)
            wait_until("one listener", lambda: listening() == 1)
            for _ in range(20):
                equal(second.request("GET", "/healthcheck")[::2], (200, b"ok"))
            kept.request("GET", f"/requests/{job}?timeout=0")
            answer = kept.getresponse()
            equal((answer.status, json.loads(answer.read())["status"], answer.headers["Connection"]), (200, "pending", "close"))
            gate.open.set()
            equal(first.process.wait(DEADLINE), 0)


def test_retry_after_is_not_sent_to_clients_that_begin_jobs(work, objects):
    """Clients that begin jobs are not, as some would sleep that long."""
    s = Service(work, {"max_concurrent_requests": 0, "shutdown": {"delay": "1m"}})
    try:
        for path in ("/symbolicate", "/symbolicate-js", "/symbolicate-jvm"):
            status, headers, _ = s.post(path, {})
            equal((status, headers["Retry-After"]), (503, None), path)
        s.process.send_signal(signal.SIGTERM)
        wait_until("draining", lambda: s.request("GET", "/ready")[0] == 503)
        equal((s.request("GET", "/ready")[1]["Retry-After"], s.request("GET", "/live")[1]["Retry-After"]), ("5", None))
    finally:
        s.process.kill()
        s.process.wait()


def test_unresolvable_source_name_is_a_fetch_failure(work, objects):
    with Service(work) as s:
        answer = s.symbolicate(request(objects.module(), [objects.address("plain")], options={"dif_candidates": True},
                                       sources=[http_source("http://symbols.invalid/", filters={"filetypes": ["elf_code"]})]))
        module = answer["modules"][0]
        equal(module["debug_status"], "fetching_failed")
        equal({c["download"]["status"] for c in module["candidates"]}, {"notfound", "error"})
        assert any(c["download"].get("details", "").startswith("download failed: Could not resolve host") for c in module["candidates"]), module


def test_requests_over_the_limit_are_shed_at_once(work, objects):
    """Refused at once, and health says ok."""
    gate, refused, took = Gate(objects), [], []
    with Upstream(gate.routes) as upstream, Service(work, {"max_concurrent_requests": 2}) as s:
        jobs = [begin(s, objects, upstream, address) for address in ("plain", "main")]
        body = request(objects.module(), [objects.address("plain")])
        for _ in range(50):
            start = time.monotonic()
            status, headers, answer = s.post("/symbolicate", body)
            took.append(time.monotonic() - start)
            refused.append((status, headers["Retry-After"], json.loads(answer)["detail"]))
        equal(set(refused), {(503, None, "maximum number of concurrent requests reached")})
        assert sorted(took)[40] < 0.5, took
        equal(s.request("GET", "/healthcheck")[2], b"ok")
        gate.open.set()
        for job in jobs:
            equal(poll(s, job, "?timeout=30")[1]["status"], "completed")


def test_service_without_privileges_writes_only_in_cache_dir(work, objects):
    """Every write goes below cache_dir."""
    cache = os.path.join(work, "cache")
    os.mkdir(cache)
    config, port = os.path.join(work, "config.json"), harness.free_port()
    with open(config, "w") as f:
        json.dump({"bind": f"127.0.0.1:{port}", "cache_dir": cache}, f)
    os.chmod(config, 0o644)
    for directory in (work, os.path.dirname(work)):
        os.chmod(directory, 0o755)
    as_nobody, program = [], shutil.copy(harness.SYMLOOM, work)  # where it is built may be closed to others
    if os.geteuid() == 0:
        os.chown(cache, 12345, 12345)
        # It may read what there is, as where programs and libraries are may be closed to others, too.
        reads = "-all,+dac_read_search"
        as_nobody = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "--no-new-privs", "--inh-caps", reads,
                     "--ambient-caps", reads, "--bounding-set", reads]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    log = open(os.path.join(work, "log"), "w+")
    service = subprocess.Popen([*as_nobody, program, "run", "-c", config], env=environment, stderr=log, stdout=log)
    try:
        def healthy():
            assert service.poll() is None, open(log.name).read()
            return subprocess.run([*as_nobody, program, "healthcheck", "-c", config], env=environment, capture_output=True).returncode == 0
        wait_until("health", healthy)
    finally:
        service.terminate()
        equal(service.wait(DEADLINE), 0, open(log.name).read())
        log.close()


def test_each_cache_lookup_is_counted_once(work, objects):
    def lookups(layer):
        return metric(s, f'symloom_cache_lookups_total{{cache="symcaches",layer="{layer}",result="ok"}}')

    with Upstream(objects.layout()) as upstream, Service(work) as s:
        body = request(objects.module(), [objects.address("plain")], sources=[http_source(upstream.url)])
        s.symbolicate(body)
        equal((lookups("computed"), lookups("memory")), (1, 0))
        s.symbolicate(body)
        equal((lookups("computed"), lookups("memory")), (1, 1))
