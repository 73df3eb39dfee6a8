#!/usr/bin/env python3
"""Several nodes of several processes behind HAProxy, with one Redis, its replica and an S3 server, under faults.

usage: cluster.py --symloom PATH --load PATH [--seed N] [SECONDS]

As soak.py, but clients come through the balancer of deploy/haproxy.cfg, begin jobs without waiting, and poll for them at
whatever node they meet. Nodes and their processes are killed, restarted in order and told to read their configuration again;
the primary Redis is killed, its replica promoted; crowds beyond every limit come and go. A client may be turned away while a
node was just killed or a crowd is there; never while nodes are restarted in order or Redis is away. Prints figures; status 1
when something was wrong.
"""
import http.client, json, os, random, shutil, signal, socket, subprocess, sys, tempfile, time

import soak
import faults, harness
import storm

ROOT = os.path.dirname(os.path.dirname(soak.HERE))
HANGING = 30         # seconds
ROUGH = 6            # seconds after a kill in which a connection may still end
CROWD, CROWD_SECONDS = 600, 5
AFTERMATH = 30       # seconds after a crowd in which its jobs may still fill a node

REDIS_PROXY = """defaults
    mode tcp
    timeout connect 1s
    timeout client 1h
    timeout server 1h
    timeout check 500ms
listen redis
    bind 127.0.0.1:{port}
    option tcp-check
    tcp-check send info\\ replication\\r\\n
    tcp-check expect string role:master
    default-server check inter 200ms fall 2 rise 1 on-marked-down shutdown-sessions
    server a 127.0.0.1:{a}
    server b 127.0.0.1:{b}
"""


def haproxy(work, name, text):
    path = os.path.join(work, name)
    with open(path, "w") as f:
        f.write(text)
    return subprocess.Popen(["haproxy", "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class RedisPair:
    """A primary and its replica behind a proxy that knows which is which."""

    def __init__(self, work):
        self.primary, self.replica = faults.Redis(work), faults.Redis(work)
        self.follow()
        port = harness.free_port()
        self.url = f"redis://127.0.0.1:{port}"
        self.proxy = haproxy(work, "redis.cfg", REDIS_PROXY.format(port=port, a=self.primary.port, b=self.replica.port))

    def follow(self):
        self.replica.ask(f"REPLICAOF 127.0.0.1 {self.primary.port}")

    def promote(self):
        """The primary dies; its replica takes its place, and it comes back as the replica of that."""
        self.primary.stop()
        self.primary, self.replica = self.replica, self.primary
        self.primary.ask("REPLICAOF NO ONE")
        self.replica.start()
        self.follow()

    def ask(self, command):
        return self.primary.ask(command)

    def pause(self):
        self.primary.pause()

    def go_on(self):
        self.primary.go_on()

    def start(self):
        self.primary.start()

    def stop(self):
        self.primary.stop()

    def close(self):
        self.proxy.kill()
        self.proxy.wait()
        for one in (self.primary, self.replica):
            one.process.send_signal(signal.SIGCONT)
            one.stop()


class Family(soak.Node):
    """A node of several processes."""

    def children(self):
        pid = self.service.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(child) for child in f.read().split()]

    def kill(self):
        with self.lock:
            self.down = True
            for pid in [self.service.process.pid, *self.children()]:
                os.kill(pid, signal.SIGKILL)
            self.service.process.wait()
            self.again()

    def restart(self):
        """In order: it says that it goes, and lets what is begun end."""
        with self.lock:
            status = self.service.stop()
            if status != 0:
                raise AssertionError(f"ended with status {status}")
            self.again()

    def again(self):
        self.check_log()
        shutil.rmtree(self.service.work, ignore_errors=True)
        self.start()


class Cluster(soak.Soak):
    CLIENTS = 6

    def make_redis(self):
        pair = RedisPair(self.work)
        self.stack.callback(pair.close)
        return pair

    def make_nodes(self):
        ports, self.front = [harness.free_port() for _ in range(2)], harness.free_port()
        with open(os.path.join(ROOT, "deploy", "haproxy.cfg")) as f:
            text = f.read().replace("bind :3020", f"bind 127.0.0.1:{self.front}")
        nodes = []
        for i, port in enumerate(ports):
            text = text.replace(f"10.0.0.{i + 1}:3021", f"127.0.0.1:{port}")
            config = {**self.shared(), "bind": f"127.0.0.1:{port}", "http": {"processes": 2}, "shutdown": {"delay": "3s"},
                      "cluster": {"node_id": 256 * (i + 1), "results": "redis"}}
            nodes.append(Family(self.work, config, os.path.join(self.work, f"own-{i + 1}")))
        self.balancer = haproxy(self.work, "haproxy.cfg", text)
        self.stack.callback(lambda: (self.balancer.kill(), self.balancer.wait()))
        harness.wait_until("HAProxy and a node", lambda: self.http("GET", "/ready")[0] == 200)
        self.rough, self.crowded = 0.0, 0.0  # when it last was; in the future while it is
        return nodes

    # ---- asking ----
    def http(self, method, path, body=None, connection=None):
        own = connection or http.client.HTTPConnection("127.0.0.1", self.front, timeout=harness.DEADLINE)
        try:
            own.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = own.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as e:
            own.close()
            return 0, repr(e).encode()
        finally:
            if not connection:
                own.close()

    def job(self, connection, rng, modules):
        """A result, as clients get it; None when one was turned away."""
        body, scope = json.dumps(self.body(modules)), f"scope=s{rng.randrange(7)}"
        status, data = self.http("POST", f"/symbolicate?timeout={rng.choice((0, 0, 5))}&{scope}", body, connection)
        while status == 200 and json.loads(data).get("status") == "pending":
            job = json.loads(data)["request_id"]
            status, data = self.http("GET", f"/requests/{job}?timeout={rng.choice((0, 1, 5))}", None, connection)
            self.counts["polls"] += 1
            if status == 404:
                self.counts["submitted again"] += 1
                status, data = self.http("POST", f"/symbolicate?{scope}", body, connection)
        if status == 200:
            return self.check(json.loads(data), modules)
        now = time.monotonic()
        full = status == 503 and now - self.crowded < AFTERMATH
        if full or (status in (0, 502, 503) and now - self.rough < ROUGH):
            self.counts[f"turned away, {status}"] += 1
            time.sleep(0.1)
            return None
        raise AssertionError(f"status {status}: {data[:300]!r}, {now - self.rough:.1f} s after a kill, "
                             f"{now - self.crowded:.1f} s after a crowd")

    def ask(self, node, modules):
        try:
            return super().ask(node, modules)
        except AssertionError as e:
            if "status 503" not in str(e) or time.monotonic() - self.crowded > AFTERMATH:
                raise
            self.counts["turned away, 503"] += 1
            time.sleep(0.2)
            return None

    def client(self, node, seed):
        rng = random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", self.front, timeout=harness.DEADLINE)
        while not self.stop.is_set():
            try:
                begin = time.monotonic()
                found = self.job(connection, rng, rng.sample(self.modules, rng.choice((1, 4, 12))))
                with self.lock:
                    self.counts["requests"] += 1
                    self.statuses.update(found or ())
                    self.counts["slowest, ms"] = max(self.counts["slowest, ms"], int((time.monotonic() - begin) * 1000))
            except Exception as e:
                self.note(f"a client: {e}")
        connection.close()

    # ---- breaking ----
    def roughly(self, what):
        self.rough = time.monotonic() + 3600
        what()
        self.rough = time.monotonic()

    def fault_kill(self):
        self.roughly(self.rng.choice(self.nodes).kill)

    def fault_kill_process(self):
        node = self.rng.choice(self.nodes)
        children = node.children()
        if not children:
            return False
        node.forget_deaths()
        self.roughly(lambda: os.kill(self.rng.choice(children), signal.SIGKILL))

    def fault_restart_all(self):
        for node in self.nodes:
            node.restart()
            self.stop.wait(2.5)  # HAProxy asks once a second

    def fault_promote(self):
        self.redis.promote()

    def fault_crowd(self):
        """More than fits, at one node."""
        node, plan = self.rng.choice(self.nodes), storm.Plan(self.work)
        names = []
        for i, module in enumerate(self.modules[:soak.GOOD]):
            names.append(plan.add(f"one-{i}", "POST", "/symbolicate", json.dumps(self.body([module])).encode(),
                                  Content_Type="application/json"))
        self.crowded = time.monotonic() + 3600
        with node.lock:
            crowd = plan.start(self.args.load, node.service.port, CROWD_SECONDS, ("ask", CROWD, *names), ("slow", 100, names[0]))
            for group in plan.end(crowd):
                wrong = [a for a in group["answers"] if a[0] not in (200, 408, 503)]
                if wrong:
                    raise AssertionError(f"a crowd is answered {wrong[:3]}")
                self.counts["answers to crowds"] += sum(a[1] for a in group["answers"])
        self.crowded = time.monotonic()
        shutil.rmtree(plan.home, ignore_errors=True)

    def fault_full_disk(self):
        return False  # nodes have directories of their own here


if __name__ == "__main__":
    sys.exit(soak.main(Cluster, lambda parser: parser.add_argument("--load", required=True)))
