"""Prometheus itself scrapes a service under load, with the alerts that are shipped."""
import contextlib, json, os, subprocess, sys, urllib.parse, urllib.request

import ops

sys.path[:0] = [os.path.join(ops.ROOT, "test", "http"), os.path.join(ops.ROOT, "test")]
import faults, harness

DEPLOY = os.path.join(ops.ROOT, "deploy")


def test_a_service_under_load_is_scraped(work, shared):
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
