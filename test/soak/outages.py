#!/usr/bin/env python3
"""Two nodes behind HAProxy, with a Redis and an S3 server, under a steady load while one outage follows another.

usage: outages.py --symloom PATH [--minutes N] [--rate N] [--seed N] [--outage SECONDS] [OUTAGE ...]

Both nodes, of two processes each, have the same two sources: a web server, which each reaches by a proxy of its own, and a directory,
which each has mounted for itself. Life times are those of the defaults: what is remembered wrongly is remembered for an hour. Each
outage begins with all files of the sources forgotten, and has clients that ask all the while: what an answer may say then is told by
the outage, for its node alone. When it is over both nodes have to give all right answers within a minute, and nobody may be told
anything else from then on. Prints what was asked and answered in each outage; status 1 when something was wrong. As root.
"""
import argparse, collections, contextlib, http.client, json, multiprocessing, os, queue, random, shutil, signal, socket, subprocess
import sys, tempfile, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import cluster, soak
import faults, harness

WEB, DISK, ABSENT, BROKEN = 40, 30, 10, 5
RIGHT = {"web": "found", "disk": "found", "absent": "missing", "broken": "malformed"}
FAILED = {"fetching_failed", "timeout"}
BODIES = 400           # different requests
SENDERS, CLIENTS = 2, 12  # processes that ask, and threads of each
FORGIVEN = 60          # seconds after an outage in which answers may still be those of it
ROUGH = 6              # seconds after a death in which connections may still end
QUIET = 3              # seconds between outages

CONFIG = {
    "logging": {"access": "off"}, "auth": soak.CONFIG["auth"], "max_download_timeout": "10s", "head_timeout": "3s",
    "enable_cache_cleanup": True, "http": {"processes": 2}, "shutdown": {"delay": "3s"},
}
# The node in a mount namespace of its own, so that both have their directory at the same place, and with a way of its own to the web.
START = """#!/bin/sh
export http_proxy=http://127.0.0.1:{way} no_proxy=localhost
exec unshare -m sh -c 'mount --bind {files} {place} && exec "$0" "$@"' {symloom} "$@"
"""


class Way(ThreadingHTTPServer):
    """A node's way to the web: a proxy, in one of several moods."""
    daemon_threads, request_queue_size = True, 512

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), WayHandler)
        self.files, self.mood, self.port, self.asked = files, "well", self.server_address[1], 0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


class WayHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, data=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        way = self.server
        way.asked += 1
        mood = way.mood
        if mood == "dead":
            self.close_connection = True
        elif mood == "silent":
            while way.mood == "silent":
                time.sleep(0.1)
            self.close_connection = True
        elif mood == "busy":
            self.reply(429, Retry_After="15")
        elif mood == "page":
            self.reply(200, b"<!doctype html><title>Log in</title>", Content_Type="text/html")
        elif mood == "nothing":
            self.reply(200)
        elif mood in ("500", "502", "503", "401", "403"):
            self.reply(int(mood))
        else:
            data = way.files.get("/" + self.path.split("/", 3)[3] if "://" in self.path else self.path)
            self.reply(404) if data is None else self.reply(200, data)


class Fake:
    """Listens where a server was, and says the same to whoever comes."""

    def __init__(self, port, answer):
        self.answer, self.clients, self.listener = answer, [], socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                self.clients.append(self.listener.accept()[0])
                threading.Thread(target=self.talk, args=(self.clients[-1],), daemon=True).start()

    def talk(self, client):
        with contextlib.suppress(OSError), client:
            while client.recv(65536):
                client.sendall(self.answer)

    def close(self):
        for one in (self.listener, *self.clients):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def start_again(server):
    """Where something else has listened in between."""
    def listens():
        if server.process.poll() is not None:
            server.start()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", server.port), 1).close()
            return True

    harness.wait_until("the server", listens)


class House(cluster.Family):
    """A node with its own way to the web and its own mount."""

    def __init__(self, night, number, config):
        self.night, self.number = night, number
        self.way = Way(night.files)
        self.files = os.path.join(night.work, f"files-{number}")
        shutil.copytree(night.origin, self.files)
        self.starter = os.path.join(night.work, f"start-{number}")
        with open(self.starter, "w") as f:
            f.write(START.format(way=self.way.port, files=self.files, place=night.place, symloom=night.args.symloom))
        os.chmod(self.starter, 0o755)
        super().__init__(night.work, config, os.path.join(night.disks[number], "cache"))

    def start(self):
        harness.SYMLOOM = self.starter
        super().start()

    def inside(self, *command):
        subprocess.run(["nsenter", "-m", "-t", str(self.service.process.pid), *command], check=True)

    def unmount(self):
        self.inside("umount", "-l", self.night.place)

    def mount(self):
        self.inside("mount", "--bind", self.files, self.night.place)

    def forget_files(self):
        """Of both sources, wherever they are kept."""
        for source in ("web", "disk"):
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.service.request("DELETE", f"/admin/cache?source={source}", headers={"X-Api-Key": soak.KEY})

    def metric(self, line):
        return faults.metric(self.service, line)


# ---- the clients: processes of their own ----
def send(port, bodies, rate, seed, over, told, counts):
    """Asks `rate` times a second; tells of every answer that is not byte by byte the right one."""
    def ask(connection, body):
        connection.request("POST", f"/symbolicate?scope=s{rng.randrange(7)}", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.headers.get("x-node", ""), answer.read()

    def client(number):
        connection, due = http.client.HTTPConnection("127.0.0.1", port, timeout=120), time.monotonic() + rng.random()
        while not over.is_set():
            due += CLIENTS / rate
            time.sleep(max(0, due - time.monotonic()))
            kinds, body, right = rng.choice(bodies)
            begin = time.time()
            try:
                status, node, data = ask(connection, body)
            except (OSError, http.client.HTTPException) as e:
                connection.close()
                status, node, data = 0, "", repr(e).encode()
            took = time.time() - begin
            with counts.get_lock():
                counts[0] += 1
                counts[1 + min(int(took * 1000), len(counts) - 2)] += 1
            if status != 200 or data != right:
                told.put((begin, begin + took, node, kinds, status, data))

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    rng = random.Random(seed)
    threads = [threading.Thread(target=client, args=(i,), daemon=True) for i in range(CLIENTS)]
    for t in threads:
        t.start()
    over.wait()
    for t in threads:
        t.join(5)


class Outage:
    """What is allowed while it lasts: statuses of modules of these kinds, at one node or both; and whether connections may end."""

    def __init__(self, name, node=None, kinds=(), statuses=(), rough=False):
        self.name, self.node, self.kinds, self.statuses, self.rough = name, node, kinds, set(statuses), rough
        self.begin, self.end, self.excused, self.asked, self.recovery = time.time(), None, 0, 0, None

    def is_near(self, begin, end, node):
        over = (self.end or float("inf")) + FORGIVEN
        return end >= self.begin and begin <= over and (self.node is None or node == f"n{self.node + 1}")

    def ends_connections(self, begin, end):
        return self.rough and end >= self.begin and begin <= (self.end or float("inf")) + ROUGH


class Nights(soak.Soak):
    def __init__(self, args):
        self.args, self.rng, self.work = args, random.Random(args.seed), tempfile.mkdtemp(prefix="symloom-outages-")
        os.chmod(self.work, 0o755)
        self.stack, self.wrong, self.outages, self.remembered, self.lost = contextlib.ExitStack(), [], [], [], 0
        self.stack.callback(shutil.rmtree, self.work, True)
        objects = harness.Objects(self.work)
        self.objects, self.address = objects, objects.line_addresses(3)[0]
        self.modules, self.files = [], {}
        self.origin, self.place = os.path.join(self.work, "origin"), os.path.join(self.work, "symbols")
        os.makedirs(self.origin)
        os.makedirs(self.place)
        for n in range(1, WEB + DISK + ABSENT + BROKEN + 1):
            module = faults.Module(objects, n, self.rng.choice((0, 1000, 100000)))
            module.kind = next(k for k, most in (("web", WEB), ("disk", WEB + DISK), ("absent", WEB + DISK + ABSENT), ("broken", 1 << 30)) if n <= most)
            self.modules.append(module)
            path = f"/{module.build_id}/debuginfo"
            if module.kind == "disk":
                os.makedirs(os.path.dirname(self.origin + path))
                with open(self.origin + path, "wb") as f:
                    f.write(module.bytes)
            elif module.kind != "absent":
                self.files[path] = module.bytes if module.kind == "web" else b"\x7fELF" + self.rng.randbytes(3000)
        self.redis = faults.Redis(self.work)
        self.stack.callback(self.redis.stop)
        self.s3 = soak.S3(self.work)
        self.stack.callback(self.s3.stop)
        self.disks = [self.stack.enter_context(faults.small_disk(self.work, "64m")) for _ in range(2)]
        if None in self.disks:
            raise SystemExit("this needs a system that lets us mount")
        self.nodes = []
        self.make_nodes()

    def make_nodes(self):
        ports, self.front = [harness.free_port() for _ in range(2)], harness.free_port()
        with open(os.path.join(cluster.ROOT, "deploy", "haproxy.cfg")) as f:
            text = f.read().replace("bind :3020", f"bind 127.0.0.1:{self.front}")
        text = text.replace("    option httpchk GET /ready", "    http-response set-header x-node %s\n    option httpchk GET /ready")
        origin = Way(self.files)  # that proxies ask; nobody else knows it
        # Each module in one of them: of several sources the first that does not have it tells the status, whatever the others came to.
        parts = lambda *kinds: {"layout": {"type": "debuginfod"}, "filters": {"filetypes": ["elf_debug"], "path_patterns": [f"/{k}/*" for k in kinds]}}
        sources = [{"id": "web", "type": "http", "url": f"http://127.0.0.1:{origin.port}/", **parts("web", "absent", "broken")},
                   {"id": "disk", "type": "filesystem", "path": self.place, **parts("disk")}]
        for i, port in enumerate(ports):
            text = text.replace(f"10.0.0.{i + 1}:3021", f"127.0.0.1:{port}")
            config = {**CONFIG, "bind": f"127.0.0.1:{port}", "sources": sources, "cluster": {"node_id": 256 * (i + 1), "results": "redis"},
                      "shared_cache": {"s3": {**self.s3.config["s3"], "endpoint": f"http://localhost:{self.s3.port}"},
                                       "redis": {"url": self.redis.url}}}
            self.nodes.append(House(self, i, config))
        balancer = cluster.haproxy(self.work, "haproxy.cfg", text)
        self.stack.callback(lambda: (balancer.kill(), balancer.wait()))
        self.connections = {}

    # ---- asking ----
    def body(self, modules):
        described = [self.objects.module(code_id=m.build_id, debug_id=m.debug_id, image_addr=hex(faults.BASE + (i << 20)), code_file=f"/{m.kind}/x")
                     for i, m in enumerate(modules)]
        traces = [{"frames": [{"instruction_addr": hex(faults.BASE + (i << 20) + self.address)}]} for i in range(len(modules))]
        return {"stacktraces": traces, "modules": described}

    def make_bodies(self):
        """Requests with the answers that they have to get."""
        bodies = []
        for _ in range(BODIES):
            modules = self.rng.sample(self.modules, self.rng.choice((1, 2, 4)))
            body = self.body(modules)
            status, _, data = self.nodes[0].service.post("/symbolicate", body)
            found = [m["debug_status"] for m in json.loads(data)["modules"]]
            self.check(json.loads(data), modules)
            harness.equal(found, [RIGHT[m.kind] for m in modules])
            bodies.append(([m.kind for m in modules], json.dumps(body).encode(), data))
        return bodies

    def check(self, answer, modules):
        for i, module in enumerate(modules):
            if answer["modules"][i]["debug_status"] == "found":
                frames = [(f.get("function"), f.get("lineno")) for f in harness.frames(answer, i)]
                if frames != [("innermost", 3), ("middle", 6), ("shapes::Box::area(int)", 12)]:
                    raise AssertionError(f"a {module.kind} module is found as {frames}")

    def wrong_at(self, node):
        """What a node says of all modules that is not right."""
        wrong = []
        for i in range(0, len(self.modules), 17):
            modules = self.modules[i:i + 17]
            body = self.body(modules)
            try:
                status, _, data = node.service.post("/symbolicate", body)
                found = [m["debug_status"] for m in json.loads(data)["modules"]] if status == 200 else [f"status {status}"] * len(modules)
                if status == 200:
                    self.check(json.loads(data), modules)
            except (OSError, http.client.HTTPException) as e:
                found = [repr(e)] * len(modules)
            wrong += [(m.kind, s) for m, s in zip(modules, found) if s != RIGHT[m.kind]]
        return wrong

    # ---- judging what clients tell ----
    def is_excused(self, begin, end, node, kinds, found, status):
        """By outages of now and of a minute ago, all of them together."""
        if status != 200:
            by = [o for o in self.outages if status in (0, 502, 503) and o.ends_connections(begin, end)][-1:]
            self.lost += len(by)
        else:
            near = [o for o in self.outages[-8:] if o.is_near(begin, end, node)]
            by = [[o for o in near if k in o.kinds and s in o.statuses][-1:] for k, s in zip(kinds, found) if s != RIGHT[k]]
            by = [] if [] in by else [o for one in by for o in one]
        if by:
            by[-1].excused += 1
        return bool(by)

    def judge(self):
        with contextlib.suppress(queue.Empty):
            while True:
                begin, end, node, kinds, status, data = self.told.get_nowait()
                found = [m["debug_status"] for m in json.loads(data)["modules"]] if status == 200 else []
                if self.is_excused(begin, end, node, kinds, found, status):
                    continue
                now = self.outages[-1].name if self.outages else "start"
                self.tell(f"{now}: {node or 'nobody'} answers {status} {list(zip(kinds, found)) or data[:200]} after {end - begin:.2f} s, begun "
                          f"{begin - self.outages[-1].begin if self.outages else 0:.1f} s into the outage"
                          + (f", {begin - self.outages[-1].end:.1f} s behind it" if self.outages and self.outages[-1].end else ""))

    def tell(self, what):
        self.wrong.append(what)
        if len(self.wrong) <= 50:
            print("WRONG:", what, flush=True)

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.judge()
            time.sleep(0.2)

    # ---- outages: each a generator that breaks something, waits, and mends it ----
    def outage_source_of_one_node(self):
        node, mood = self.rng.choice(self.nodes), self.rng.choice(("dead", "500", "503", "silent"))
        yield Outage(f"the way to the web of one node: {mood}", node.number, ("web", "absent", "broken"), FAILED)
        node.way.mood = mood
        yield
        node.way.mood = "well"

    def outage_refused(self):
        node, mood = self.rng.choice(self.nodes), self.rng.choice(("401", "403"))
        yield Outage(f"one node is refused: {mood}", node.number, ("web", "absent", "broken"), FAILED)
        node.way.mood = mood
        yield
        node.way.mood = "well"

    def outage_login_page(self):
        node, mood = self.rng.choice(self.nodes), self.rng.choice(("page", "nothing"))
        yield Outage(f"one node gets in place of files: {mood}", node.number, ("web", "absent", "broken"), FAILED)
        node.way.mood = mood
        yield
        node.way.mood = "well"

    def outage_retry_after(self):
        node = self.rng.choice(self.nodes)
        yield Outage("one node is told to come later", node.number, ("web", "absent", "broken"), FAILED)
        node.way.mood = "busy"
        yield
        node.way.mood = "well"

    def outage_source_of_all(self):
        yield Outage("the web is down for both", None, ("web", "absent", "broken"), FAILED)
        for node in self.nodes:
            node.way.mood = "502"
        yield
        for node in self.nodes:
            node.way.mood = "well"

    def outage_mount(self):
        node = self.rng.choice(self.nodes)
        yield Outage("the mount of one node is gone", node.number, ("disk",), FAILED)
        node.unmount()
        yield
        node.mount()

    def outage_redis_stopped(self):
        yield Outage("Redis is stopped")
        self.redis.stop()
        yield
        self.redis.start()

    def outage_redis_paused(self):
        yield Outage("Redis is paused")
        self.redis.pause()
        yield
        self.redis.go_on()

    def outage_redis_lies(self):
        yield Outage("Redis lies")
        self.redis.stop()
        fake = Fake(self.redis.port, self.rng.choice((b"*2000000000\r\n", b"$900000000\r\nx", b"+OK\r\n", b"-ERR no\r\n", b"nonsense")))
        yield
        fake.close()
        start_again(self.redis)

    def outage_redis_full(self):
        yield Outage("Redis is full")
        self.redis.ask("CONFIG SET maxmemory-policy noeviction")
        self.redis.ask("CONFIG SET maxmemory 1")
        yield
        self.redis.ask("CONFIG SET maxmemory 0")

    def outage_redis_flushed(self):
        yield Outage("Redis is flushed")
        self.redis.ask("FLUSHALL")
        yield

    def outage_s3_silent(self):
        yield Outage("S3 is silent")
        self.s3.pause()
        yield
        self.s3.go_on()

    def outage_s3_without_rights(self):
        answers = {"rights": (403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"), "page": (200, b"<html>log in</html>"),
                   "errors": (500, b"")}
        mood = self.rng.choice(sorted(answers))
        status, body = answers[mood]
        yield Outage(f"S3 answers with {status} ({mood})")
        self.s3.stop()
        fake = Fake(self.s3.port, b"HTTP/1.1 %d No\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
        yield
        fake.close()
        start_again(self.s3)

    def outage_full_disk(self):
        node = self.rng.choice(self.nodes)
        yield Outage("the disk of one node is full", node.number, tuple(RIGHT), {"other"})
        path = os.path.join(self.disks[node.number], "filler")
        with contextlib.suppress(OSError), open(path, "wb", buffering=0) as f:
            while True:
                f.write(bytes(65536))
        yield
        os.unlink(path)

    def outage_worker_killed(self):
        node = self.rng.choice(self.nodes)
        yield Outage("a process of one node is killed", node.number, rough=True)
        before = node.metric("symloom_process_deaths_total")
        os.kill(self.rng.choice(node.children()), signal.SIGKILL)
        yield
        if node.metric("symloom_process_deaths_total") != before + 1:
            self.tell("a death was not counted")
        node.forget_deaths()

    def outage_node_killed(self):
        node = self.rng.choice(self.nodes)
        yield Outage("one node is killed", node.number, rough=True)
        node.kill()
        yield

    def outage_rolling_restart(self):
        yield Outage("both nodes are restarted in order")
        for node in self.nodes:
            node.restart()
            self.wait(2.5)  # HAProxy asks once a second
        yield

    def outage_wrong_configuration(self):
        node = self.rng.choice(self.nodes)
        yield Outage("one node is told to read a wrong configuration", node.number)
        path = os.path.join(node.service.work, "config.yml")
        with open(path) as f:
            right = f.read()
        with open(path, "w") as f:
            f.write("bind: nowhere\nsources: 7\n")
        node.service.process.send_signal(signal.SIGHUP)
        yield
        if node.metric("symloom_config_last_reload_successful") != 0:
            self.tell("a failed reload is not told of")
        with open(path, "w") as f:
            f.write(right)
        node.service.process.send_signal(signal.SIGHUP)
        self.wait(2)
        if node.metric("symloom_config_last_reload_successful") != 1:
            self.tell("a reload that went well is not told of")

    def outage_cache_cleaned(self):
        node = self.rng.choice(self.nodes)
        yield Outage("another process empties the cache of one node", node.number)
        over = threading.Event()

        def clean():
            while not over.wait(0.5):
                subprocess.run([self.args.symloom, "cleanup", "-c", os.path.join(node.service.work, "config.yml")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for folder, _, names in os.walk(node.cache):
                    for name in names:
                        if "/tmp" not in folder and name != "lock" and self.rng.random() < 0.3:
                            with contextlib.suppress(OSError):
                                os.unlink(os.path.join(folder, name))

        cleaner = threading.Thread(target=clean)
        cleaner.start()
        yield
        over.set()
        cleaner.join()

    def one(self, name):
        steps = getattr(self, "outage_" + name)()
        outage = next(steps)
        self.outages.append(outage)
        asked = self.counts_sum()
        next(steps)
        for node in self.nodes:
            node.forget_files()
        self.wait(self.args.outage)
        next(steps, None)
        outage.end = time.time()
        for node in self.nodes:
            right = 0  # times in a row, for a node has several processes
            while right < 5 and (wrong := self.wrong_at(node), time.time() - outage.end < FORGIVEN)[1]:
                right = 0 if wrong else right + 1
                self.wait(0.2)
            if wrong:
                self.remembered += wrong
                self.tell(f"{outage.name}: a minute behind it node {node.number} says {collections.Counter(wrong)}")
            node.check_log()
        outage.recovery = time.time() - outage.end
        outage.asked = self.counts_sum() - asked
        self.wait(QUIET)
        print(f"{time.strftime('%H:%M:%S')} {outage.name:58} {outage.asked:6} asked, {outage.excused:5} told of it, right again after "
              f"{outage.recovery:4.1f} s", flush=True)

    # ---- all of it ----
    def counts_sum(self):
        return sum(c[0] for c in self.counts)

    def percentile(self, share):
        slots = [sum(column) for column in zip(*(c[1:] for c in self.counts))]
        left = sum(slots) * share
        for ms, count in enumerate(slots):
            left -= count
            if left <= 0:
                return ms
        return len(slots)

    def run(self):
        bodies = self.make_bodies()
        context = multiprocessing.get_context("fork")
        self.told, over = context.Queue(), context.Event()
        self.counts = [context.Array("Q", 2 + 10000) for _ in range(SENDERS)]
        senders = [context.Process(target=send, args=(self.front, bodies, self.args.rate / SENDERS, self.args.seed + i, over, self.told, self.counts[i]))
                   for i in range(SENDERS)]
        names = self.args.outages or sorted(n[7:] for n in dir(self) if n.startswith("outage_"))
        for s in senders:
            s.start()
        begin = time.monotonic()
        try:
            self.wait(QUIET)
            rounds = 0
            while time.monotonic() - begin < self.args.minutes * 60 or not rounds:
                self.rng.shuffle(names)
                for name in names:
                    self.one(name)
                    if time.monotonic() - begin > self.args.minutes * 60 and rounds:
                        break
                rounds += 1
            seconds = time.monotonic() - begin
        finally:
            over.set()
            for s in senders:
                s.join(20)
                s.kill()
            self.judge()
        for node in self.nodes:
            if node.service.stop() != 0:
                self.tell(f"node {node.number} ended with another status than 0")
        count = self.counts_sum()
        print(f"{len(self.outages)} outages in {seconds:.0f} s, {count} requests ({count / seconds:.0f}/s), {sum(o.excused for o in self.outages)} told of an "
              f"outage, of which {self.lost} lost their connection\nslowest 1 in 2, 100, 1000: {self.percentile(.5)}, {self.percentile(.99)}, "
              f"{self.percentile(.999)} ms\nslowest recovery {max(o.recovery for o in self.outages):.1f} s\n"
              f"{len(self.remembered)} false answers remembered, {len(self.wrong) - len(self.remembered)} clients failed beyond an outage")
        return 1 if self.wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True, type=os.path.abspath)
    parser.add_argument("--minutes", type=float, default=0, help="at least each outage once")
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--outage", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("outages", nargs="*")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # not without an end of what it has started
    print(f"seed {args.seed}, {args.rate:.0f} requests/s", flush=True)
    nights = Nights(args)
    try:
        return nights.run()
    finally:
        for node in nights.nodes:
            if nights.wrong:
                print(f"---- end of the log of node {node.number}\n{node.service.logged()[-3000:]}")
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                node.service.process.kill()
                node.service.process.wait(5)
        nights.stack.close()


if __name__ == "__main__":
    sys.exit(main())
