#!/usr/bin/env python3
"""Service under faults, for as long as one likes.

usage: soak.py --symloom PATH [--seed N] [SECONDS]

Two processes share one cache directory (on a small file system of its own where the system lets us mount one); two more
nodes have directories of their own and share a Redis and an S3 server. Clients ask all of them for modules that are there,
that are not, and that are malformed, and compare every answer with the right one. Meanwhile things break at random, and each
second a worker of each node is killed. An
answer may say that something failed while the source is down; it may never be wrong, and every half minute, with
everything in order again, all nodes have to give all the right answers. Prints figures; status 1 when something was wrong.
"""
import argparse, collections, contextlib, hashlib, http.client, json, os, random, re, shutil, signal, subprocess, sys, tempfile
import threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "http")]
import cloud, faults, harness
from killer import WorkerKiller

os.environ["SYMLOOM_LOG"] = "info,fetch=warn,cleanup=warn"

GOOD, ABSENT, BROKEN = 60, 15, 10
RIGHT = {"good": "found", "absent": "missing", "broken": "malformed"}
# What may be said instead while something is broken: the source (first three), or the node's own disk.
EXCUSES = {"fetching_failed", "timeout", "other"}
KEY = "soak"
SETTLED_WITHIN = 60  # seconds

CONFIG = {
    "logging": {"access": "off"},
    "auth": {"keys": [{"id": "op", "sha256": hashlib.sha256(KEY.encode()).hexdigest(), "rights": ["admin"]}]},
    "max_download_timeout": "4s", "head_timeout": "2s", "download_stall_timeout": "2s",
    "deny_list_block_time": "2s", "deny_list_threshold": 20,
    "enable_cache_cleanup": True, "cache_cleanup_interval": "5s",
    "caches": {
        **{section: {"max_unused_for": "20s", "retry_misses_after": "1s", "retry_misses_after_public": "1s",
                     "retry_malformed_after": "2s"} for section in ("downloaded", "derived")},
        "in_memory": {"object_meta_capacity": 4000, "default_capacity": 4000}},
}

NGINX = """daemon off; master_process on; pid {home}/pid; error_log {home}/error.log crit;
events {{ worker_connections 1024; }}
http {{ access_log off; client_body_temp_path {home}/b; proxy_temp_path {home}/p; fastcgi_temp_path {home}/f;
uwsgi_temp_path {home}/u; scgi_temp_path {home}/s; server {{ listen 127.0.0.1:{port}; location / {{ {what} }} }} }}
"""


class Source:
    """nginx with the modules' files, in one of several moods."""

    def __init__(self, work, files):
        self.home, self.port = tempfile.mkdtemp(dir=work), harness.free_port()
        self.url, self.config = f"http://127.0.0.1:{self.port}/", os.path.join(self.home, "nginx.conf")
        os.chmod(self.home, 0o755)
        for name, data in files.items():
            path = os.path.join(self.home, "files", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        subprocess.run(["chmod", "-R", "a+rX", work], check=True)
        self.liar = harness.Upstream({})
        self.liar.routes = type("Half", (dict,), {"get": lambda _, path, default=None: lambda h: self.half(h, path)})()
        self.moods = {"well": f"root {self.home}/files;", "errors": "return 500;",
                      "truncated": f"proxy_pass {self.liar.url}; proxy_buffering off;"}
        self.set("well")
        self.start()

    def half(self, h, path):
        try:
            with open(f"{self.home}/files{path}", "rb") as f:
                data = f.read()
        except OSError:
            return h.reply(404)
        h.send_response(200)
        h.send_header("Content-Length", str(len(data)))
        h.end_headers()
        h.wfile.write(data[:len(data) // 2])
        h.close_connection = True

    def set(self, mood):
        with open(self.config, "w") as f:
            f.write(NGINX.format(home=self.home, port=self.port, what=self.moods[mood]))

    def mood(self, mood):
        self.set(mood)
        self.process.send_signal(signal.SIGHUP)

    def start(self):
        self.process = subprocess.Popen(["nginx", "-c", self.config, "-e", f"{self.home}/error.log"])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def close(self):
        self.stop()
        self.liar.shutdown()
        self.liar.server_close()


class S3:
    def __init__(self, work):
        self.script, self.home, self.port = cloud.s3rver_script(work), tempfile.mkdtemp(dir=work), harness.free_port()
        self.config = {"s3": {"bucket": "cache", "endpoint": f"http://127.0.0.1:{self.port}", "access_key": "S3RVER",
                              "secret_key": "S3RVER"}}
        self.start()

    def start(self):
        self.process = subprocess.Popen(["node", self.script, "-d", self.home, "-a", "127.0.0.1", "-p", str(self.port),
                                         "--silent", "--no-vhost-buckets", "--configure-bucket", "cache"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Node:
    """A service that is started again when it was killed."""

    def __init__(self, work, config, cache):
        self.work, self.config, self.cache, self.lock = work, config, cache, threading.Lock()
        self.service, self.down, self.logs = None, True, []
        self.start()

    def forget_deaths(self):
        """It is killed more often than files are to blame."""
        shutil.rmtree(os.path.join(self.cache, "quarantine"), ignore_errors=True)

    def start(self):
        self.forget_deaths()
        self.service = harness.Service(self.work, self.config, cache_dir=self.cache)
        self.down = False

    def kill(self):
        with self.lock:
            self.down = True
            self.service.process.kill()
            self.service.process.wait()
            self.check_log()
            shutil.rmtree(self.service.work, ignore_errors=True)
            self.start()

    def check_log(self):
        text = self.service.logged()
        found = re.search("Sanitizer|runtime error:", text)
        if found:
            raise AssertionError("a sanitizer found something:\n" + text[max(0, found.start() - 500):][:8000])


class Soak:
    CLIENTS = 2  # of each node

    def __init__(self, work, args):
        self.rng, self.work, self.args = random.Random(args.seed), work, args
        self.counts, self.statuses, self.faults = collections.Counter(), collections.Counter(), collections.Counter()
        self.wrong, self.stop, self.settling = [], threading.Event(), 0.0
        self.lock = threading.Lock()
        objects = harness.Objects(work)
        self.address = objects.line_addresses(3)[0]
        self.objects, self.modules, files = objects, [], {}
        for n in range(1, GOOD + ABSENT + BROKEN + 1):
            module = faults.Module(objects, n, self.rng.choice((0, 1000, 100000)))
            module.kind = "good" if n <= GOOD else "absent" if n <= GOOD + ABSENT else "broken"
            self.modules.append(module)
            if module.kind == "good":
                files[f"{module.build_id}/debuginfo"] = module.bytes
            elif module.kind == "broken":
                files[f"{module.build_id}/debuginfo"] = b"\x7fELF" + self.rng.randbytes(3000)
        self.stack, self.nodes = contextlib.ExitStack(), []
        self.source = Source(work, files)
        self.stack.callback(self.source.close)
        self.redis = self.make_redis()
        self.stack.callback(self.redis.stop)
        self.s3 = S3(work)
        self.stack.callback(self.s3.stop)
        self.disk = self.stack.enter_context(faults.small_disk(work, "24m"))

    def make_redis(self):
        return faults.Redis(self.work)

    def shared(self):
        """The configuration of a node that shares what it has made."""
        return {**CONFIG, "shared_cache": {**self.s3.config, "redis": {"url": self.redis.url}}}

    def make_nodes(self):
        common = os.path.join(self.disk or self.work, "common")
        places = [(CONFIG, common), (CONFIG, common), (self.shared(), os.path.join(self.work, "own-1")),
                  (self.shared(), os.path.join(self.work, "own-2"))]
        return [Node(self.work, config, cache) for config, cache in places]

    # ---- asking ----
    def body(self, modules):
        described = [self.objects.module(code_id=m.build_id, debug_id=m.debug_id, image_addr=hex(faults.BASE + (i << 20)))
                     for i, m in enumerate(modules)]
        traces = [{"frames": [{"instruction_addr": hex(faults.BASE + (i << 20) + self.address)}]}
                  for i in range(len(modules))]
        source = harness.http_source(self.source.url, filters={"filetypes": ["elf_debug"]})
        return {"stacktraces": traces, "modules": described, "sources": [source]}

    def ask(self, node, modules):
        """The modules' statuses; None when the node did not answer, as it may when it was killed."""
        service = node.service
        try:
            status, _, data = service.post("/symbolicate", self.body(modules))
        except (OSError, http.client.HTTPException) as e:
            if node.down or service is not node.service:
                self.counts["cut off by a kill"] += 1
                time.sleep(0.05)
                return None
            raise AssertionError(f"no answer: {e!r}")
        if status != 200:
            raise AssertionError(f"status {status}: {data[:300]!r}")
        return self.check(json.loads(data), modules)

    def check(self, answer, modules):
        """The modules' statuses, when all that the answer says may be said."""
        if len(answer["modules"]) != len(modules):
            raise AssertionError(f"{len(answer['modules'])} modules instead of {len(modules)}")
        found = [m["debug_status"] for m in answer["modules"]]
        for i, module in enumerate(modules):
            if found[i] == "found":
                frames = [(f.get("function"), f.get("lineno")) for f in harness.frames(answer, i)]
                if module.kind != "good" or frames != [("innermost", 3), ("middle", 6), ("shapes::Box::area(int)", 12)]:
                    raise AssertionError(f"a {module.kind} module is found as {frames}")
            elif found[i] != RIGHT[module.kind] and found[i] not in EXCUSES:
                raise AssertionError(f"a {module.kind} module is {found[i]}: {json.dumps(answer['modules'][i])}")
        return found

    def note(self, what):
        with self.lock:
            self.wrong.append(f"{time.strftime('%H:%M:%S')} {what}")
        print("WRONG:", what, flush=True)
        self.stop.set()

    def client(self, node, seed):
        rng = random.Random(seed)
        while not self.stop.is_set():
            try:
                begin = time.monotonic()
                found = self.ask(node, rng.sample(self.modules, rng.choice((1, 4, 12))))
                with self.lock:
                    self.counts["requests"] += 1
                    self.statuses.update(found or ())
                    self.counts["slowest, ms"] = max(self.counts["slowest, ms"], int((time.monotonic() - begin) * 1000))
            except Exception as e:
                self.note(f"node {self.nodes.index(node)}: {e}")

    # ---- breaking ----
    def pause(self, shortest=0.2, longest=3.0):
        self.stop.wait(self.rng.uniform(shortest, longest))

    def fault_kill(self):
        self.rng.choice(self.nodes).kill()

    def fault_pause_redis(self):
        self.redis.pause()
        self.pause()
        self.redis.go_on()

    def fault_stop_redis(self):
        self.redis.stop()
        self.pause()
        self.redis.start()

    def fault_flush(self):
        self.redis.ask("FLUSHALL")

    def fault_pause_s3(self):
        self.s3.pause()
        self.pause()
        self.s3.go_on()

    def fault_stop_s3(self):
        self.s3.stop()
        self.pause()
        self.s3.start()

    def fault_empty_s3(self):
        """Objects go; s3rver has each in several files, which belong together."""
        for folder, _, files in os.walk(os.path.join(self.s3.home, "cache")):
            for name in files:
                stem = name.split("._S3rver")[0]
                if name.endswith("._S3rver_object") and self.rng.random() < 0.5:
                    for other in (f for f in files if f.startswith(stem + "._S3rver")):
                        with contextlib.suppress(OSError):
                            os.unlink(os.path.join(folder, other))

    def fault_remove_files(self):
        for folder, _, files in os.walk(self.rng.choice(self.nodes).cache):
            for name in files:
                if name == "lock" or name.endswith(".metadata") or self.rng.random() > 0.3:
                    continue
                # A side file goes with its entry or stays: without it a short entry cannot be told.
                for path in (name, name + ".metadata")[:self.rng.choice((1, 2))]:
                    with contextlib.suppress(OSError):
                        os.unlink(os.path.join(folder, path))

    def fault_cut_files(self):
        """What a crash of the machine leaves: entries without their end, by a file in place of the old one."""
        for folder, _, files in os.walk(self.rng.choice(self.nodes).cache):
            for name in files:
                path = os.path.join(folder, name)
                if "/tmp" in folder or "invalidated" in folder or name.endswith(".metadata") or self.rng.random() > 0.1:
                    continue
                with contextlib.suppress(OSError):
                    with open(path, "rb") as f:
                        data = f.read()
                    old = os.stat(path)
                    with open(path + ".cut", "wb") as f:
                        f.write(data[:len(data) // 2])
                    os.utime(path + ".cut", ns=(old.st_atime_ns, old.st_mtime_ns))
                    os.rename(path + ".cut", path)

    def fault_full_disk(self):
        if not self.disk:
            return False
        path = os.path.join(self.disk, "filler")
        with contextlib.suppress(OSError), open(path, "wb", buffering=0) as f:
            while True:
                f.write(bytes(65536))
        self.pause()
        os.unlink(path)

    def fault_source_errors(self):
        self.source.mood("errors")
        self.pause()
        self.source.mood("well")

    def fault_source_truncates(self):
        self.source.mood("truncated")
        self.pause()
        self.source.mood("well")

    def fault_source_gone(self):
        self.source.stop()
        self.pause()
        self.source.start()

    def fault_invalidate(self):
        node = self.rng.choice(self.nodes)
        uri = f"{self.source.url}{self.rng.choice(self.modules).build_id}/debuginfo"
        query = "?source=test" + self.rng.choice(("", f"&location={uri}"))
        with node.lock, contextlib.suppress(OSError, http.client.HTTPException):
            status = node.service.request("DELETE", "/admin/cache" + query, headers={"X-Api-Key": KEY})[0]
            if status != 204 and not (status == 500 and self.disk):
                raise AssertionError(f"invalidation: status {status}")

    def fault_reload(self):
        node = self.rng.choice(self.nodes)
        with node.lock:
            node.service.process.send_signal(signal.SIGHUP)

    def break_things(self, seconds):
        kinds = sorted(name[6:] for name in dir(self) if name.startswith("fault_"))
        settled = time.monotonic()
        end = settled + seconds
        while time.monotonic() < end and not self.stop.is_set():
            kind = self.rng.choice(kinds)
            if getattr(self, "fault_" + kind)() is not False:
                self.faults[kind] += 1
            self.pause(0.1, 1.0)
            if time.monotonic() - settled > 30:
                self.settle()
                settled = time.monotonic()
        self.settle()

    def settle(self):
        """With everything in order, all nodes say what is right, by themselves."""
        begin = time.monotonic()
        for node in self.nodes:
            while not self.stop.is_set():
                found = [s for i in range(0, len(self.modules), 17) for s in self.ask(node, self.modules[i:i + 17]) or ()]
                wrong = [(m.kind, s) for m, s in zip(self.modules, found) if s != RIGHT[m.kind]]
                if len(found) == len(self.modules) and not wrong:
                    break
                if time.monotonic() - begin > SETTLED_WITHIN:
                    raise AssertionError(f"node {self.nodes.index(node)} did not recover: {wrong[:5]}")
                time.sleep(0.1)
            node.check_log()
        self.counts["recoveries"] += 1
        self.counts["slowest recovery, ms"] = max(self.counts["slowest recovery, ms"], int((time.monotonic() - begin) * 1000))

    # ---- all of it ----
    def run(self, seconds):
        self.nodes = self.make_nodes()
        threads = [threading.Thread(target=self.client, args=(node, i)) for i, node in enumerate(self.nodes * self.CLIENTS)]
        for t in threads:
            t.start()
        killer = WorkerKiller(lambda: [node.service for node in self.nodes if not node.down], self.args.seed)
        try:
            with killer:
                self.break_things(seconds)
        except Exception as e:
            self.note(str(e))
        self.counts.update(killer.counts)
        self.stop.set()
        for t in threads:
            t.join()
        for node in self.nodes:
            if not self.wrong:
                status = node.service.stop()
                if status != 0 or node.service.leftovers():
                    self.note(f"ended with status {status}, left {node.service.leftovers()}")
            node.service.process.kill()
            node.service.process.wait()

    def close(self):
        self.stack.close()

    def report(self):
        for title, counter in (("figures", self.counts), ("module statuses", self.statuses), ("faults", self.faults)):
            print(f"{title}:")
            for name, count in sorted(counter.items()):
                print(f"  {name:24} {count}")
        print("small disk:", "yes" if self.disk else "no, the system does not let us mount one")
        print(f"{len(self.wrong)} wrong answers")


def main(kind=Soak, add=lambda parser: None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True)
    add(parser)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("seconds", nargs="?", type=int, default=120)
    args = parser.parse_args()
    harness.SYMLOOM = os.path.abspath(args.symloom)
    outer = tempfile.mkdtemp(prefix="symloom-soak-")
    os.chmod(outer, 0o755)
    work = os.path.join(outer, "work")
    os.mkdir(work)
    print(f"seed {args.seed}, {args.seconds} s", flush=True)
    soak = kind(work, args)
    try:
        soak.run(args.seconds)
        soak.report()
    finally:
        soak.close()
        if soak.wrong:
            for i, node in enumerate(soak.nodes):
                with contextlib.suppress(OSError):
                    print(f"---- end of the log of node {i}\n{node.service.logged()[-3000:]}")
        shutil.rmtree(outer, ignore_errors=True)
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
