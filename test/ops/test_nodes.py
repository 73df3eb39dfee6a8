"""Two nodes of two processes each behind HAProxy, with one Redis, its replica and an S3 server: everything is restarted under
load, and nobody notices."""
import contextlib, http.client, json, os, signal, subprocess, sys, tempfile, threading, time

import ops

sys.path[:0] = [os.path.join(ops.ROOT, "test", folder) for folder in ("http", "", "soak")]
import cluster, faults, harness, soak

CLIENTS, RATE = 24, 1000  # requests a second, of all
HANGING = 60


class Clients:
    """They begin jobs without waiting, and ask for the results until they are there; a 404 is submitted again."""

    def __init__(self, port, bodies):
        self.port, self.bodies, self.end = port, bodies, threading.Event()
        self.done, self.again, self.failures, self.lock = 0, 0, [], threading.Lock()
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(CLIENTS)]

    def ask(self, connection, method, path, body=None):
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def one(self, connection, number):
        body, expected = self.bodies[number % len(self.bodies)]
        scope = f"scope=s{number % 7}"
        status, answer = self.ask(connection, "POST", f"/symbolicate?timeout=0&{scope}", body)
        while status == 200 and json.loads(answer)["status"] == "pending":
            status, answer = self.ask(connection, "GET", f"/requests/{json.loads(answer)['request_id']}?timeout=5")
            if status == 404:
                with self.lock:
                    self.again += 1
                status, answer = self.ask(connection, "POST", f"/symbolicate?{scope}", body)
        if status != 200 or json.loads(answer).get("stacktraces") != expected:
            raise RuntimeError(f"{status} {answer[:300]}")

    def work(self, number):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.DEADLINE)
        due = time.monotonic()
        while not self.end.is_set():
            due += CLIENTS / RATE
            self.end.wait(max(0, due - time.monotonic()))
            due = max(due, time.monotonic() - 0.5)
            try:
                self.one(connection, number)
                with self.lock:
                    self.done += 1
            except Exception as error:
                with self.lock:
                    self.failures.append(f"{time.monotonic() - self.began:.1f} s: {error!r}")
                connection.close()
            number += CLIENTS

    def __enter__(self):
        self.began = time.monotonic()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        for thread in self.threads:
            thread.join()
        self.seconds = time.monotonic() - self.began


def proxy(work, front, ports):
    """The configuration that is shipped, for these ports."""
    with open(os.path.join(ops.ROOT, "deploy", "haproxy.cfg")) as f:
        text = f.read()
    text = text.replace("bind :3020", f"bind 127.0.0.1:{front}")
    for i, port in enumerate(ports, 1):
        text = text.replace(f"10.0.0.{i}:3021", f"127.0.0.1:{port}")
    path = os.path.join(work, "haproxy.cfg")
    with open(path, "w") as f:
        f.write(text)
    return subprocess.Popen(["haproxy", "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def node(work, number, port, redis, cache, s3=None):
    return harness.Service(work, {"bind": f"127.0.0.1:{port}", "http": {"processes": 2}, "shutdown": {"delay": "3s"},
                                  "cluster": {"node_id": number, "results": "redis"}, "logging": {"access": "errors"},
                                  "shared_cache": {**(s3.config if s3 else {}), "redis": {"url": redis.url}}}, cache_dir=cache)


def up(front):
    def ready():
        try:
            connection = http.client.HTTPConnection("127.0.0.1", front, timeout=5)
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
    harness.wait_until("HAProxy and a node", ready)


def wait_for_checks():
    time.sleep(2.5)  # HAProxy asks once a second


def test_rolling_restarts_fail_no_request(work, shared):
    harness.SYMLOOM = ops.SYMLOOM
    objects = harness.Objects(work)
    front, ports = harness.free_port(), [harness.free_port() for _ in range(2)]
    numbers, caches = (0x0100, 0x0200), [tempfile.mkdtemp(dir=work) for _ in range(2)]
    redis, s3 = cluster.RedisPair(work), soak.S3(work)
    with contextlib.closing(redis), harness.Upstream(objects.layout()) as upstream:
        body = json.dumps(harness.request(objects.module(), [objects.address("plain")], sources=[
            harness.http_source(upstream.url, filters={"filetypes": ["elf_code"]})]))
        nodes = [node(work, numbers[i], ports[i], redis, caches[i], s3) for i in range(2)]
        balancer = proxy(work, front, ports)
        try:
            up(front)
            expected = nodes[0].symbolicate(body)["stacktraces"]
            assert expected[0]["frames"][0]["status"] == "symbolicated", expected
            with Clients(front, [(body, expected)]) as clients:
                for i in range(2):
                    wait_for_checks()
                    assert nodes[i].stop() == 0
                    nodes[i] = node(work, numbers[i], ports[i], redis, caches[i], s3)
                    wait_for_checks()
                redis.stop()
                wait_for_checks()
                redis.start()
                redis.ask("FLUSHALL")
                wait_for_checks()
                redis.promote()
                wait_for_checks()
                s3.stop()
                wait_for_checks()
                s3.start()
                wait_for_checks()
            print(f"        {clients.done} requests in {clients.seconds:.0f} s, {clients.again} submitted again")
            assert not clients.failures, (len(clients.failures), clients.failures[:5])
            assert clients.done > 1000, clients.done
        finally:
            balancer.terminate()
            balancer.wait()
            s3.stop()
            for one in nodes:
                one.stop()


def test_jobs_of_a_killed_node_can_be_submitted_again(work, shared):
    harness.SYMLOOM = ops.SYMLOOM
    objects = harness.Objects(work)
    ports, gate = [harness.free_port() for _ in range(2)], threading.Event()

    def held(data):
        def route(handler):
            gate.wait(HANGING)
            handler.reply(200, data)
        return route

    with faults.Redis(work) as redis, harness.Upstream({p: held(d) for p, d in objects.layout().items()}) as upstream:
        body = harness.request(objects.module(), [objects.address("plain")], sources=[
            harness.http_source(upstream.url, filters={"filetypes": ["elf_code"]})])
        nodes = [node(work, 16 * i + 1, ports[i], redis, tempfile.mkdtemp(dir=work)) for i in range(2)]
        try:
            job = nodes[0].symbolicate(body, "?timeout=0")["request_id"]
            with open(f"/proc/{nodes[0].process.pid}/task/{nodes[0].process.pid}/children") as f:
                family = [nodes[0].process.pid, *map(int, f.read().split())]
            for pid in family:
                os.kill(pid, signal.SIGKILL)
            nodes[0].process.wait()
            harness.wait_until("the end of its marker", lambda: nodes[1].request("GET", f"/requests/{job}?timeout=0")[0] == 404)
            gate.set()
            assert nodes[1].symbolicate(body)["stacktraces"][0]["frames"][0]["status"] == "symbolicated"
        finally:
            gate.set()
            nodes[1].stop()
