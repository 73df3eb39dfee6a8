"""`symloom stress`: load that is counted, on a running service and on one of its own."""
import hashlib, json, os, re, socket, subprocess
from artifacts import MAP, SCRIPT, frame, told
from test_symbfile import RANGES
from harness import DEADLINE, Service, Upstream, equal, http_source, request


def stress(*words, status=0):
    from harness import SYMLOOM
    run = subprocess.run([SYMLOOM, "stress", *words], capture_output=True, text=True, timeout=DEADLINE)
    equal(run.returncode, status, run.stdout + run.stderr)
    return run


def written(work, name, value):
    path = os.path.join(work, name)
    with open(path, "w") as f:
        f.write(value if isinstance(value, str) else json.dumps(value))
    return path


def test_stress_loads_a_running_service(work, objects):
    event = request(objects.module(), [objects.address("main"), objects.address("plain")])
    workloads = written(work, "workloads.yml", "workloads:\n"
                        f"  - {{concurrency: 2, event: {written(work, 'event.json', event)}}}\n"
                        "  - {concurrency: 1, proxy: /healthcheck}\n")
    with Upstream(objects.layout()) as upstream, Service(work, {"sources": [http_source(upstream.url)]}) as service:
        server = ["--server", f"http://127.0.0.1:{service.port}", "-w", workloads]
        report = json.loads(stress(*server, "-d", "1500ms", "--json").stdout)
        equal([(w["name"], w["concurrency"], w["errors"]) for w in report["workloads"]], [("event", 2, 0), ("proxy", 1, 0)])
        for load in report["workloads"]:
            assert load["operations"] > 0 and 0 < load["p50_s"] <= load["p90_s"] <= load["p99_s"] <= load["max_s"], load
        equal((report["duration_s"], report["peak_rss"]), (1.5, None))
        equal(len({path for path in upstream.hits}), len(upstream.hits))
        scopes = os.path.join(service.cache, "objects")
        paced = json.loads(stress(*server, "-d", "500ms", "--rate", "20", "--json").stdout)
        assert all(load["operations"] <= 10 for load in paced["workloads"]), paced
        before = sum(upstream.hits.values())
        stress(*server, "-d", "1s", "--cold")
        assert sum(upstream.hits.values()) > before  # each scope asks for itself
        assert os.path.isdir(scopes)
        faster = {**report, "workloads": [{**load, "p90_s": load["p90_s"] / 1e6} for load in report["workloads"]]}
        slower = stress(*server, "-d", "1s", "--compare", written(work, "before.json", faster), status=1)
        assert "workload 0: p90 grew from" in slower.stderr, slower.stderr


def test_stress_starts_its_own_service(work, objects):
    """The frames of events are turned round: the crash is where it was."""
    event = request(objects.module(), [objects.address("main"), objects.address("plain")])
    workloads = written(work, "w.yml", f"workloads:\n  - event: {written(work, 'event.json', event)}\n")
    with Upstream(objects.layout()) as upstream:
        config = written(work, "config.yml", {"sources": [http_source(upstream.url)], "connect_to_reserved_ips": True,
                                              "cache_dir": os.path.join(work, "cache")})
        text = stress("-c", config, "-w", workloads, "-d", "1s", "-t", "-m").stdout
    lines = text.splitlines()
    assert lines[0].startswith("Warmup: ") and lines[1] == "", text
    assert lines[2].startswith("Workload 0 (concurrency: 1): ") and lines[2].endswith(" ops/s"), text
    assert lines[3].startswith("  avg: ") and "; p99: " in lines[3], text
    assert "Errors: 0" in lines and lines[-1].startswith("Peak memory: "), text


def test_errors_go_to_the_sentry_of_the_run_only(work, objects):
    """And never to that of the configuration: a load test is no incident."""
    workloads = written(work, "w.yml", "workloads:\n  - proxy: /__broken__\n")
    with socket.create_server(("127.0.0.1", 0)) as real:
        real.setblocking(False)
        config = written(work, "config.yml", {"mozilla": {"broken_endpoint": True, "sources": []},
                                              "sentry_dsn": f"http://key@127.0.0.1:{real.getsockname()[1]}/1"})
        words = ["-c", config, "-w", workloads, "-d", "3s", "--warmup", "0"]
        equal(stress(*words, "-s", status=1).stdout.splitlines()[-1], "Reports: 1")  # one a minute
        equal(json.loads(stress(*words, "--sentry", "-t", "-m", "--json", status=1).stdout)["reports"], 1)
        assert "reports" not in json.loads(stress(*words, "--json", status=1).stdout)
        try:
            real.accept()
            raise AssertionError("the Sentry of the configuration was told")
        except BlockingIOError:
            pass


def test_script_workloads_are_served_locally(work, objects):
    """The files are beside what a look-up answers."""
    written(work, "test.min.js", SCRIPT)
    written(work, "test.min.js.map", MAP)
    source = written(work, "source.json", [told(1, "~/test.min.js"), told(2, "~/test.min.js.map")])
    event = {"stacktraces": [{"frames": [frame("http://example.com/test.min.js")]}], "modules": [], "release": "another"}
    workloads = written(work, "w.yml", "workloads:\n  - {concurrency: 2, js: {source: %s, event: %s}}\n"
                        % (source, written(work, "event.json", event)))
    with Service(work) as service:
        out = stress("--server", f"http://127.0.0.1:{service.port}", "-w", workloads, "-d", "1s", "--json").stdout
        (load,) = json.loads(out)["workloads"]
        equal((load["name"], load["concurrency"], load["errors"]), ("js", 2, 0))
        assert load["operations"] > 0, load
        assert 'symloom_conversions_total{cache="sourcemap_caches",result="ok"} 1' in service.request("GET", "/metrics")[2].decode()
    lacking = written(work, "l.yml", f"workloads: [{{js: {{source: {source}}}}}]\n")
    assert "js needs 'source' and 'event'" in stress("-w", lacking, status=1).stderr


def test_upload_workloads_send_symbfiles(work, objects):
    """The same file again and again, or another one each time; with the key of the environment."""
    ranges = os.path.join(work, "inline.symbfile")
    with open(ranges, "wb") as f:
        f.write(RANGES)
    workloads = written(work, "w.yml", f"workloads:\n  - {{concurrency: 2, symbfile: {ranges}}}\n")
    keys = {"auth": {"keys": [{"id": "ci", "sha256": hashlib.sha256(b"secret").hexdigest(), "rights": ["symbols:write"]}]},
            "symbfile": {"store_min_free": 0}}
    with Service(work, keys) as service:
        def published():
            return int(re.search(r'symbfile_sets_published_total\{kind="ranges"\} (\d+)', service.request("GET", "/metrics")[2].decode())[1])

        words = ["--server", f"http://127.0.0.1:{service.port}", "-w", workloads, "-d", "1s", "--json"]
        assert "a warm-up request failed" in stress(*words, status=1).stderr  # without a key
        os.environ["SYMLOOM_API_KEY"] = "ci:secret"
        try:
            (load,) = json.loads(stress(*words).stdout)["workloads"]
            equal((load["name"], load["concurrency"], load["errors"], published()), ("symbfile", 2, 0, 1))
            assert load["operations"] > 0, load
            (load,) = json.loads(stress(*words, "--cold").stdout)["workloads"]
            assert published() > load["operations"] > 0, (published(), load)
        finally:
            del os.environ["SYMLOOM_API_KEY"]


def test_unusable_workloads_are_refused(work, objects):
    refused = written(work, "w.yml", "workloads:\n  - proxy: /nothing\n")
    with Service(work) as service:
        run = stress("--server", f"http://127.0.0.1:{service.port}", "-w", refused, "-d", "100ms", status=1)
        equal(run.stderr, "error: a warm-up request failed; the service must answer each workload before it is measured\n")
        run = stress("--server", f"http://127.0.0.1:{service.port}", "-w", refused, "-d", "2s", "--warmup", "0", status=1)
        assert "Errors: 0" not in run.stdout and "Errors: " in run.stdout, run.stdout
    for text, said in (("a: 1\n", "the list 'workloads' is missing"), ("workloads: [{concurrency: 0, proxy: /}]\n", "concurrency must be 1 to 1000"),
                       ("workloads:\n  - nothing: x\n", "line 2: expected one of event"), ("workloads: [", "not a YAML map")):
        assert said in stress("-w", written(work, "bad.yml", text), status=1).stderr, text
    equal(stress("-d", "1s", status=2).stderr.splitlines()[0], "error: no workloads given (-w FILE)")
    equal(stress("-w", refused, "-d", "soon", status=2).stderr.splitlines()[0], "error: --duration: 'soon' is not a duration (example: 30s)")
