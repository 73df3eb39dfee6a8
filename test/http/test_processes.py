"""One service of several processes."""
import json, os, re, signal, socket, subprocess, tempfile, threading

import harness
from harness import Service, Upstream, equal, http_source, request, wait_until
from cloud import environment
from test_access import bearer, key
from test_cluster import Gate, begin, poll
from test_operations import metrics, value
from test_tls import Authority


def several(work, count=2, **config):
    port = harness.free_port()
    return Service(work, {"bind": f"127.0.0.1:{port}", "http": {"processes": count}, "cluster": {"node_id": 0x10}, **config})


def children(service):
    """Those that serve, without the launcher of workers."""
    with open(f"/proc/{service.process.pid}/task/{service.process.pid}/children") as f:
        return [int(pid) for pid in f.read().split() if comm(pid) != "symloom-worker"]


def comm(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


def all_up(service, count):
    return wait_until("the processes", lambda: service.logged().count("symloom is up") >= count and children(service))


def of_each(service, objects, upstream, count=2):
    """Pending jobs, of each process at least one; the first of each come first."""
    jobs, more = {}, []
    while len(jobs) < count:
        job = begin(service, objects, upstream)
        more += [job] if job[:4] in jobs else []
        jobs.setdefault(job[:4], job)
    return [jobs[node] for node in sorted(jobs)] + more


def test_polls_reach_the_process_of_the_job(work, objects):
    gate = Gate(objects)
    with Upstream(gate.routes) as upstream, several(work) as s:
        all_up(s, 2)
        jobs = of_each(s, objects, upstream)
        equal([job[:4] for job in jobs[:2]], ["0010", "0011"])
        for _ in range(8):
            equal([poll(s, job, "?timeout=0")[1]["status"] for job in jobs], ["pending"] * len(jobs))
        gate.open.set()
        for _ in range(8):
            equal([poll(s, job, "?timeout=30")[1]["status"] for job in jobs], ["completed"] * len(jobs))
        equal(poll(s, "00000000-0000-4000-8000-000000000000")[0], 404)


def test_polls_reach_the_process_of_another_node(work, objects):
    """By one line of `cluster.peers` for each node."""
    gate, ports = Gate(objects), [harness.free_port() for _ in range(2)]
    peers = {str(0x20 + 16 * i): f"http://127.0.0.1:{port}" for i, port in enumerate(ports)}
    config = [{"bind": f"127.0.0.1:{port}", "cluster": {"node_id": 0x20 + 16 * i, "peers": peers}} for i, port in enumerate(ports)]
    with Upstream(gate.routes) as upstream, several(work, 3, **config[0]) as a, several(work, 3, **config[1]) as b:
        for s, first in (a, 0x20), (b, 0x30):
            s.port = ports[first // 16 - 2]
            all_up(s, 3)
        for asked, other, first in (a, b, 0x20), (b, a, 0x30):
            jobs = of_each(asked, objects, upstream, 3)
            equal([int(job[:4], 16) for job in jobs[:3]], [first, first + 1, first + 2])
            for _ in range(6):
                equal([poll(other, job, "?timeout=0")[0] for job in jobs], [200] * len(jobs))
            unknown = "ffff0000-0000-4000-8000-000000000000"
            equal([poll(other, id)[0] for id in (unknown, jobs[0][:4] + unknown[4:], f"{first + 3:04x}" + unknown[4:])], [404] * 3)
        gate.open.set()


def test_metrics_are_summed_over_processes(work, objects):
    with Upstream(objects.layout()) as upstream, several(work, 3) as s:
        all_up(s, 3)
        body = request(objects.module(), [objects.address("plain")], sources=[http_source(upstream.url)])
        for _ in range(20):
            equal(s.symbolicate(body)["status"], "completed")
        for _ in range(5):
            text = metrics(s)[1]
            equal(value(text, "symloom_starts_total"), 3)
            equal(value(text, 'symloom_jobs_accepted_total{task="symbolicate"}'), 20)
            equal(value(text, "symloom_ready"), 1)
            equal(text.count("# TYPE symloom_jobs_accepted_total "), 1)
        assert metrics(s, "application/openmetrics-text; version=1.0.0")[1].endswith("# EOF\n")


def test_status_lists_all_processes(work, objects):
    nodes = ["0010", "0011", "0012"]
    with several(work, 3, auth={"keys": [key("me", "status")], "require": ["status"]}) as s:
        pids = all_up(s, 3)
        connection = s.connection()  # stays with one process

        def status(headers):
            connection.request("GET", "/status", headers=headers)
            return json.loads(connection.getresponse().read())

        equal(set(status({})), {"version", "state"})
        seen = status(bearer("me"))
        equal([p["node"] for p in seen["processes"]], nodes)
        equal([list(p) for p in seen["processes"]], [["node", "state", "uptime_seconds", "jobs", "pool", "memory", "conversion"]] * 3)
        equal(seen["processes"][nodes.index(seen["node"])]["memory"]["resident"], seen["memory"]["resident"])
        equal(list(seen)[-3:], ["history", "processes", "deaths"])
        equal(seen["deaths"], {"count": 0, "last": None, "last_why": None})
        still = (nodes.index(seen["node"]) + 1) % 3  # one that stands still is left out, and nobody waits long for it
        os.kill(pids[still], signal.SIGSTOP)
        try:
            equal([p["node"] for p in status(bearer("me"))["processes"]], [n for n in nodes if n != nodes[still]])
        finally:
            os.kill(pids[still], signal.SIGCONT)
        connection.close()


def test_dead_process_is_restarted(work, objects):
    with Upstream(objects.layout()) as upstream, several(work) as s:
        before = all_up(s, 2)
        os.kill(before[0], signal.SIGKILL)
        all_up(s, 3)
        after = children(s)
        equal(len(after), 2)
        equal(len(set(before) & set(after)), 1)
        body = request(objects.module(), [objects.address("plain")], sources=[http_source(upstream.url)])
        for _ in range(10):
            equal(s.symbolicate(body)["status"], "completed")
        assert "a service process crashed" in s.logged()


def counters(text):
    """What counts up, by series: whatever ends like a counter or the parts of a histogram."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    series = re.findall(r"^([a-z_]+)(\S*) (\S+)$", text, re.M)
    family = lambda name: name if name in kinds else re.sub("_(bucket|sum|count|total)$", "", name)
    return {name + labels: float(number) for name, labels, number in series if kinds.get(family(name)) in ("counter", "histogram", "unknown")}


def test_counters_never_fall_when_processes_die(work, objects):
    """Nothing of what a dead one has counted is lost, whatever asks at that moment."""
    with Upstream(objects.layout()) as upstream, several(work, 3) as s:
        all_up(s, 3)
        seen, lost, stop = {}, [], threading.Event()

        def scrape():
            while not stop.is_set():
                for accept in ("text/plain", "application/openmetrics-text; version=1.0.0"):
                    try:
                        now = counters(metrics(s, accept)[1])
                    except OSError:
                        continue  # at the one that died
                    before = seen.setdefault(accept, {})
                    lost.extend((name, number, now.get(name)) for name, number in before.items() if now.get(name, 0) < number)
                    before.update(now)

        scraping = threading.Thread(target=scrape)
        scraping.start()
        body = request(objects.module(), [objects.address("plain")], sources=[http_source(upstream.url)])
        asked = died = 0
        try:
            for number in (signal.SIGKILL, signal.SIGABRT, signal.SIGKILL):
                for _ in range(15):
                    equal(s.symbolicate(body)["status"], "completed")
                    asked += 1
                os.kill(children(s)[died % 3], number)
                died += 1
                wait_until("the next", lambda: s.logged().count("symloom is up") == 3 + died and len(children(s)) == 3)
        finally:
            stop.set()
            scraping.join()
        equal(lost, [])
        text = metrics(s)[1]
        equal(value(text, 'symloom_jobs_accepted_total{task="symbolicate"}'), asked)
        equal(value(text, 'symloom_job_duration_seconds_count{task="symbolicate"}'), asked)
        equal(value(text, "symloom_process_deaths_total"), 3)
        equal(value(text, "symloom_starts_total"), 6)
        deaths = json.loads(s.request("GET", "/status")[2])["deaths"]
        equal((deaths["count"], deaths["last_why"]), (3, "signal 9 (Killed)"))
        assert re.search(r"ERROR run.*a service process crashed.*signal 6.*again_in_ms", s.logged()), s.logged()


def test_repeated_deaths_are_restarted_with_backoff(work, objects):
    with several(work) as s:
        all_up(s, 2)
        for turn in range(4):
            os.kill(children(s)[-1], signal.SIGKILL)
            wait_until("the next", lambda: s.logged().count("symloom is up") == 3 + turn and len(children(s)) == 2)
        equal(re.findall(r"again_in_ms=(\d+)", s.logged()), ["400", "800", "1600", "3200"])


def test_restarted_process_has_the_last_configuration(work, objects):
    with several(work, logging={"level": "info"}) as s:
        all_up(s, 2)
        path = os.path.join(s.work, "config.yml")
        with open(path) as f:
            config = json.load(f)
        with open(path, "w") as f:
            json.dump({**config, "sources": [http_source("http://127.0.0.1:1/", id="new")]}, f)
        s.process.send_signal(signal.SIGHUP)
        wait_until("both configurations", lambda: s.logged().count("configuration reloaded") == 2)
        os.kill(children(s)[0], signal.SIGKILL)
        wait_until("the third", lambda: s.logged().count("configuration reloaded") == 3)
        for _ in range(8):
            equal([source["id"] for source in json.loads(s.request("GET", "/status")[2])["sources"]], ["new"])
            equal(value(metrics(s)[1], "symloom_config_last_reload_successful"), 1)


def test_process_that_cannot_start_ends_the_service(work, objects):
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    try:
        Service(work, {"bind": f"127.0.0.1:{taken.getsockname()[1]}", "http": {"processes": 2}}).stop()
        raise RuntimeError("it serves")
    except AssertionError as error:
        assert "cannot listen on" in str(error), error
    for bind in ("127.0.0.1:0", "unix:/tmp/x", "systemd"):
        try:
            Service(work, {"bind": bind, "http": {"processes": 2}}).stop()
            raise RuntimeError(f"{bind} was taken")
        except AssertionError as error:
            assert "error: bind: " in str(error), error


def test_signals_reach_all_processes(work, objects):
    runtime = tempfile.mkdtemp(dir=work)
    os.environ["RUNTIME_DIRECTORY"] = runtime
    try:
        service = several(work)
    finally:
        del os.environ["RUNTIME_DIRECTORY"]
    with service as s:
        all_up(s, 2)
        equal([len(os.listdir(os.path.join(runtime, d))) for d in os.listdir(runtime)], [2])
        s.process.send_signal(signal.SIGHUP)
        wait_until("both configurations", lambda: s.logged().count("configuration reloaded") == 2)
        pids = children(s)
        equal(s.stop(), 0)
        for pid in pids:
            assert not os.path.exists(f"/proc/{pid}"), pid
        equal(os.listdir(runtime), [])


def test_reload_by_request_reaches_all_processes(work, objects):
    key = {"id": "a", "sha256": "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b", "rights": ["admin"]}
    with several(work, auth={"keys": [key]}) as s:
        all_up(s, 2)
        equal(s.request("POST", "/admin/reload", headers={"X-Api-Key": "secret"})[0], 200)
        wait_until("both configurations", lambda: s.logged().count("configuration reloaded") == 2)


def test_systemd_is_notified_for_all_processes(work, objects):
    path = os.path.join(work, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(harness.DEADLINE)
        os.environ.update(NOTIFY_SOCKET=path, WATCHDOG_USEC="300000")
        try:
            with several(work) as s:
                equal(manager.recv(200), b"READY=1\nSTATUS=2 processes")
                equal(manager.recv(200), b"WATCHDOG=1")
                os.kill(children(s)[1], signal.SIGSTOP)  # one that stands still is all of them
                manager.settimeout(1)
                try:
                    for _ in range(3):
                        manager.recv(200)
                    raise RuntimeError("alive")
                except TimeoutError:
                    pass
                os.kill(children(s)[1], signal.SIGCONT)
                manager.settimeout(harness.DEADLINE)
                equal(manager.recv(200), b"WATCHDOG=1")
        finally:
            del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]


def test_listeners_are_shared_by_all_processes(work, objects):
    authority = Authority(work)
    cert, key = authority.issue("server")
    https, admin = harness.free_port(), harness.free_port()
    with Upstream(objects.layout()) as upstream, \
         several(work, bind_https=f"127.0.0.1:{https}", admin_bind=f"127.0.0.1:{admin}",
                 server_config={"https": {"certificate_path": cert, "key_path": key}}) as s:
        all_up(s, 2)
        path = os.path.join(work, "body.json")
        with open(path, "w") as f:
            json.dump(request(objects.module(), [objects.address("plain")], sources=[http_source(upstream.url)]), f)
        for _ in range(8):  # by connections of their own
            done = subprocess.run(["curl", "-sS", "--cacert", authority.path, "-H", "Content-Type: application/json", "--data-binary", "@" + path,
                                   f"https://127.0.0.1:{https}/symbolicate"], capture_output=True, timeout=harness.DEADLINE)
            equal((done.stderr, json.loads(done.stdout)["status"]), (b"", "completed"))
            for port, status in ((s.port, "404"), (admin, "200")):
                done = subprocess.run(["curl", "-s", "-o", os.path.join(work, "metrics"), "-w", "%{http_code}", f"http://127.0.0.1:{port}/metrics"],
                                      capture_output=True, text=True, timeout=harness.DEADLINE)
                equal(done.stdout, status)
        with open(os.path.join(work, "metrics")) as f:
            equal(value(f.read(), 'symloom_jobs_accepted_total{task="symbolicate"}'), 8)  # of both
        os.kill(children(s)[0], signal.SIGKILL)
        all_up(s, 3)
        for _ in range(4):
            equal(subprocess.run(["curl", "-s", "--cacert", authority.path, f"https://127.0.0.1:{https}/healthcheck"], capture_output=True).stdout, b"ok")


def test_several_processes_need_fixed_ports(work, objects):
    for name in ("bind_https", "admin_bind"):
        try:
            several(work, **{name: "127.0.0.1:0"}).stop()
            raise RuntimeError(f"{name} was taken")
        except AssertionError as error:
            assert f"error: {name}: " in str(error), error


def test_processes_talk_whatever_the_temporary_directory(work, objects):
    """They ask each other by sockets below it, whose addresses have room for 107 bytes."""
    places = [os.path.join(work, name) for name in ("with blanks", "x" * 120, os.path.join("y" * 100, "z" * 100))]
    for place in places:
        os.makedirs(place)
    for place, used in *((place, True) for place in places), (os.path.join(work, "missing"), False), ("/proc", False):
        with environment(TMPDIR=place), several(work) as s:
            all_up(s, 2)
            for _ in range(2):
                equal(len(json.loads(s.request("GET", "/status")[2])["processes"]), 2)
            equal([len(os.listdir(p)) for p in places], [used and p == place for p in places])
        equal([os.listdir(p) for p in places], [[]] * len(places))
        equal(f"TMPDIR: cannot create temporary files in {place}" in s.logged(), place not in places[:2])
