"""Prometheus itself scrapes a service under load, with the alerts that are shipped."""
import contextlib, http.client, json, os, random, re, signal, subprocess, sys, threading, urllib.parse, urllib.request

import ops

sys.path[:0] = [os.path.join(ops.ROOT, "test", "http"), os.path.join(ops.ROOT, "test")]
import faults, harness

DEPLOY = os.path.join(ops.ROOT, "deploy")


def test_prometheus_scrapes_a_service_under_load(work, shared):
    harness.SYMLOOM, port = ops.SYMLOOM, harness.free_port()
    with faults.World(harness.Objects(work), 20) as world, harness.Service(work, {"sources": world.body([])["sources"]}) as s:
        with open(os.path.join(DEPLOY, "prometheus", "prometheus.yml")) as f:
            config = f.read().replace("localhost:3021", f"127.0.0.1:{s.port}").replace("alerts.yml", os.path.join(DEPLOY, "prometheus", "alerts.yml"))
        path, event, loads = (os.path.join(work, name) for name in ("prometheus.yml", "event.json", "workloads.yml"))
        with open(path, "w") as f:
            f.write(f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n{config}")
        with open(event, "w") as f:
            json.dump({key: value for key, value in world.body(world.modules).items() if key in ("stacktraces", "modules")}, f)
        with open(loads, "w") as f:
            f.write(f"workloads:\n  - {{concurrency: 4, event: {event}}}\n")

        def ask(path, **query):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}") as answer:
                return json.load(answer)["data"]

        def value(query):
            result = ask("query", query=query)["result"]
            return float(result[0]["value"][1]) if result else None

        command = ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={work}/data", f"--web.listen-address=127.0.0.1:{port}"]
        def ready():
            with contextlib.suppress(OSError):
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready").status == 200

        with harness.serving(command, port):
            harness.wait_until("Prometheus", ready)
            load = subprocess.Popen([ops.SYMLOOM, "stress", "--server", f"http://127.0.0.1:{s.port}", "-w", loads, "-d", "8s"], stdout=subprocess.DEVNULL)
            try:
                harness.wait_until("a rate", lambda: (value("sum(rate(symloom_http_requests_total[5s]))") or 0) > 10)
                harness.equal(value("min(up)"), 1)
                harness.equal(value("min(symloom_ready)"), 1)
                target, = ask("targets")["activeTargets"]
                harness.equal((target["health"], target["lastError"]), ("up", ""))
                assert target["lastScrapeDuration"] < 1, target
            finally:
                harness.equal(load.wait(), 0)
            rules = [rule for group in ask("rules")["groups"] for rule in group["rules"]]
            harness.equal({rule["health"] for rule in rules}, {"ok"}, [rule.get("lastError") for rule in rules])
            harness.equal([rule["name"] for rule in rules if rule["state"] == "firing"], [])


SHIPPED = os.path.join(DEPLOY, "prometheus", "alerts.yml")
LONG = {"SymloomCacheCollapse", "SymloomSymbolsMissing", "SymloomDiskFills"}  # of days and weeks; promtool has tests of them


def hurried():
    """The shipped alerts, with seconds in place of minutes."""
    with open(SHIPPED) as f:
        text = re.sub(r"for: \d+[mh]", "for: 3s", f.read())
    for long, short in (("[5m]", "[10s]"), ("[15m]", "[90s]"), ("[30m]", "[90s]"), ("[6h]", "[90s]")):
        text = text.replace(long, short)
    return text


class Broken:
    """Services, each with a fault of its own, and what asks them all the while. `mend` ends the fault."""

    def __init__(self, work, stack, objects):
        self.work, self.stack, self.objects = work, stack, objects
        self.stop, self.names, self.expected, self.mend = threading.Event(), {}, {}, {}
        self.gate = threading.Event()
        self.good = stack.enter_context(harness.Upstream(objects.layout()))
        self.bad = stack.enter_context(harness.Upstream(Always(500)))
        self.slow = stack.enter_context(harness.Upstream(Always(lambda handler: (self.gate.wait(300), handler.reply(404)))))
        stack.callback(self.gate.set)

    def start(self, name, alerts, ask=None, **config):
        port = harness.free_port()
        service = self.stack.enter_context(harness.Service(self.work, {"bind": f"127.0.0.1:{port}", "logging": {"access": "off"}, **config}))
        self.names[f"127.0.0.1:{service.port}"], self.expected[name] = name, set(alerts)
        if ask:
            threads = [threading.Thread(target=self.keep_asking, args=(service, ask, n)) for n in range(4)]
            for t in threads:
                t.start()
            self.stack.callback(lambda: (self.stop.set(), self.gate.set(), [t.join() for t in threads]))
        return service

    def keep_asking(self, service, ask, number):
        rng = random.Random(number)
        while not self.stop.wait(0.1):
            with contextlib.suppress(OSError, http.client.HTTPException):
                ask(service, rng.randbytes(20).hex())

    def symbolicate(self, service, build_id):
        """A module that nobody has asked for before, and one that is always the same."""
        modules = [self.objects.module(code_id=build_id, debug_id=None), self.objects.module(image_addr="0x20000000")]
        service.post("/symbolicate", {"stacktraces": [{"frames": [{"instruction_addr": "0x10000010"}, {"instruction_addr": "0x20000010"}]}],
                                      "modules": modules})

    def proxy(self, service, build_id):
        service.request("GET", f"/proxy/lib.so/elf-buildid-{build_id}/lib.so")

    def source(self, upstream, **keys):
        return [harness.http_source(upstream.url, filters={"filetypes": ["elf_code"]}, **keys)]

    def all(self):
        good, bad, slow, redis = self.source(self.good), self.source(self.bad), self.source(self.slow), faults.Redis(self.work)
        self.stack.callback(redis.stop)
        shared = {"shared_cache": {"redis": {"url": redis.url}}, "sources": good, "http": {"processes": 2}}
        self.start("well", [], self.symbolicate, **shared, enable_cache_cleanup=True, cache_cleanup_interval="1s")
        lonely = self.start("without its Redis", ["SymloomSharedCache"], self.symbolicate, sources=good,
                            shared_cache={"redis": {"url": f"redis://127.0.0.1:{harness.free_port()}"}})
        self.start("without its source", ["SymloomSourceFailing", "SymloomSourceDown"], self.symbolicate, sources=bad, deny_list_enabled=False)
        self.start("with answers of 500", ["SymloomErrors", "SymloomSourceFailing", "SymloomSourceDown"], self.proxy, symstore_proxy=True,
                   sources=[harness.http_source(self.bad.url, layout={"type": "symstore"})], deny_list_enabled=False)
        self.start("over its limit", ["SymloomRefusingWork"], self.symbolicate, sources=slow, max_concurrent_requests=1, head_timeout="10m")
        self.start("with jobs that do not end", ["SymloomJobsFail"], self.symbolicate, sources=slow, max_job_duration="1s", head_timeout="10m")
        dying = self.start("dying", ["SymloomProcessDied", "SymloomCrashLoop"], **shared)
        unlucky = self.start("with one death", ["SymloomProcessDied"], **shared)
        wrong = self.start("with a wrong configuration", ["SymloomReload"])
        gone = self.start("gone", ["SymloomDown"])
        disk = self.stack.enter_context(faults.small_disk(self.work, "16m"))
        if disk:
            self.start("with a full disk", ["SymloomDisk"], cache_dir=disk)
        return lonely, dying, unlucky, wrong, gone, disk


class Always(dict):
    """Routes of an upstream that has one answer."""

    def __init__(self, answer):
        self.answer = answer

    def get(self, path, default=None):
        return self.answer


def children(service):
    with open(f"/proc/{service.process.pid}/task/{service.process.pid}/children") as f:
        return [int(pid) for pid in f.read().split()]


def kill_one(service):
    ups = service.logged().count("symloom is up")
    os.kill(children(service)[0], signal.SIGKILL)
    harness.wait_until("the next", lambda: service.logged().count("symloom is up") > ups)


def panels():
    with open(os.path.join(DEPLOY, "grafana", "symloom.json")) as f:
        return [(p["title"], t["expr"]) for p in json.load(f)["panels"] for t in p["targets"]]


def test_alerts_fire_only_under_their_faults(work, shared):
    """A service for each fault; and the dashboard's queries have something to show of one that is well."""
    harness.SYMLOOM, port = ops.SYMLOOM, harness.free_port()
    with contextlib.ExitStack() as stack:
        broken = Broken(work, stack, harness.Objects(work))
        lonely, dying, unlucky, wrong, gone, disk = broken.all()
        rules, path = os.path.join(work, "hurried.yml"), os.path.join(work, "prometheus.yml")
        with open(rules, "w") as f:
            f.write(hurried())
        with open(path, "w") as f:
            json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [rules],
                       "scrape_configs": [{"job_name": "symloom", "static_configs": [{"targets": list(broken.names)}]}]}, f)
        command = ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={work}/alerts", f"--web.listen-address=127.0.0.1:{port}"]
        stack.enter_context(harness.serving(command, port))

        def ask(path, **query):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}") as answer:
                return json.load(answer)["data"]

        def firing():
            with contextlib.suppress(OSError):
                found = {name: set() for name in broken.expected}
                for alert in ask("alerts")["alerts"]:
                    if alert["state"] == "firing" and alert["labels"]["alertname"] not in LONG:
                        found[broken.names[alert["labels"]["instance"]]].add(alert["labels"]["alertname"])
                return found

        def up():
            with contextlib.suppress(OSError, IndexError):
                return ask("query", query="sum(up)")["result"][0]["value"][1] == str(len(broken.names))

        harness.wait_until("a scrape of each", up)
        kill_one(unlucky)
        for _ in range(3):
            kill_one(dying)
        with open(os.path.join(wrong.work, "config.yml"), "w") as f:
            f.write("bind: nowhere\n")
        wrong.process.send_signal(signal.SIGHUP)
        gone.stop()
        if disk:
            with contextlib.suppress(OSError), open(os.path.join(disk, "filler"), "wb", buffering=0) as f:
                while True:
                    f.write(bytes(65536))
        seen = {}
        try:
            harness.wait_until("the alerts", lambda: seen.update(firing() or {}) or seen == broken.expected)
        except AssertionError:
            raise AssertionError({name: (sorted(seen[name]), sorted(alerts)) for name, alerts in broken.expected.items() if seen[name] != alerts})
        empty = []
        for title, query in panels():
            query = query.replace("$instance", next(i for i, name in broken.names.items() if name == "well")).replace("$__rate_interval", "20s")
            if "[45]" not in query and not ask("query", query=query)["result"]:
                empty.append((title, query))
        harness.equal(empty, [])
