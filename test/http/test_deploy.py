"""What is shipped for running the service asks it for what it has: alerts and the dashboard for metrics, manifests for routes."""
import hashlib, json, os, re, socket, subprocess, threading
from harness import DEADLINE, Service, Upstream, equal, http_source, request, wait_until

DEPLOY = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "deploy")
ELSEWHERE = {"instance", "job", "le"}  # labels that Prometheus makes, and those of histograms


def read(path):
    with open(os.path.join(DEPLOY, path)) as f:
        return f.read()


def expressions():
    """Every query of the alerts and of the dashboard, with spaces for line ends."""
    alerts = re.findall(r"expr: (?:>-\n((?: {10}.*\n)+)|(.*)\n)", read("prometheus/alerts.yml"))
    equal(len(alerts), read("prometheus/alerts.yml").count("alert: "))
    panels = json.loads(read("grafana/symloom.json"))["panels"]
    return [" ".join((a or b).split()) for a, b in alerts] + [t["expr"] for panel in panels for t in panel["targets"]]


def used():
    """Metric: the labels that queries match or group by."""
    metrics = {}
    for query in expressions():
        for name, matched in re.findall(r"\b((?:symloom|process)_\w+)(?:\{([^}]*)\})?", query):
            metrics.setdefault(name, set()).update(re.findall(r"(\w+)!?=~?\"", matched))
        for names, inner in re.findall(r"by \(([\w, ]+)\) \(((?:rate\()?(?:symloom|process)_\w+)", query):
            metrics[inner.removeprefix("rate(")].update(names.split(", "))
    return {name: labels - ELSEWHERE for name, labels in metrics.items()}


def offered(service):
    series = {}
    for line in service.request("GET", "/metrics")[2].decode().splitlines():
        if not line.startswith("#"):
            name, labels = re.match(r"(\w+)(?:\{(.*)\})? ", line).groups()
            series.setdefault(name, set()).update(re.findall(r'(\w+)="', labels or ""))
    return series


def test_queries_name_existing_metrics(work, objects):
    wanted = used()
    assert len(wanted) >= 20, wanted
    with Upstream(objects.layout()) as upstream:
        config = {"sources": [http_source(upstream.url)], "enable_cache_cleanup": True, "cache_cleanup_interval": "100ms",
                  "shared_cache": {"filesystem": {"path": work}}, "auth": {"require": ["proxy"]}}
        with Service(work, config) as service:
            service.symbolicate(request(objects.module(), [objects.address("main")]))
            equal(service.request("GET", "/proxy/a/b/a")[0], 401)
            equal(service.request("GET", "/nothing")[0], 404)

            def complete():
                series = offered(service)
                return all(name in series and labels <= series[name] for name, labels in wanted.items())
            try:
                wait_until("every metric", complete)
            except AssertionError:
                series = offered(service)
                raise AssertionError({name: labels - series.get(name, set()) for name, labels in wanted.items()
                                      if name not in series or not labels <= series[name]})


def test_the_dashboard_is_what_its_script_writes(work, objects):
    space = {}
    exec(compile(read("grafana/make.py"), "make.py", "exec"), space)
    equal(json.loads(read("grafana/symloom.json")), space["dashboard"]())


def test_every_alert_is_tested_firing_and_silent(work, objects):
    """Each has a test in which it fires, and one in which it does not."""
    home = os.path.join(DEPLOY, "prometheus")
    done = subprocess.run(["promtool", "test", "rules", "tests.yml", "tests-week.yml"], cwd=home, capture_output=True, text=True)
    equal(done.returncode, 0, done.stdout + done.stderr)
    alerts = set(re.findall(r"- alert: (\w+)", read("prometheus/alerts.yml")))
    tests = read("prometheus/tests.yml") + read("prometheus/tests-week.yml")
    equal(alerts - set(re.findall(r"alertname: (\w+)\n +exp_alerts:", tests)), set())


def test_probes_ask_for_existing_routes(work, objects):
    paths = set(re.findall(r"path: (/[\w/]*), port: http", read("kubernetes/symloom.yml"))) | {"/metrics"}
    equal(paths, {"/live", "/ready", "/metrics"})
    with Service(work) as service:
        for path in paths:
            equal(service.request("GET", path)[0], 200, path)


def test_operator_routes_have_their_own_port(work, objects):
    """In the image, compose and Kubernetes; and clients reach the other port alone."""
    for path in ("../doc/container.yml", "compose-config.yml", "kubernetes/config.yml"):
        assert re.search(r"^admin_bind: 0\.0\.0\.0:3022\b", read(path), re.M), path
    equal(re.findall(r"ports: (.*)", read("compose.yml")), ['["3021:3021"]'])
    equal(re.findall(r"port: (\w+), path: (\S+),", read("kubernetes/servicemonitor.yml")), [("admin", "/metrics")])
    policy = read("kubernetes/symloom.yml").split("kind: NetworkPolicy")[1]
    rules = re.split(r"^    - ", policy.split("  ingress:\n")[1], flags=re.M)[1:]
    equal([re.findall(r"port: (\w+)", rule) for rule in rules], [["http"], ["admin"]])
    for rule in rules:
        assert rule.startswith("from:\n"), rule


def test_images_are_pinned(work, objects):
    with open(os.path.join(DEPLOY, "..", "Dockerfile")) as f:
        images = re.findall(r"^FROM (?!scratch)(\S+)", f.read(), re.M)
    images += [image for image in re.findall(r"image: (\S+)", read("compose.yml")) if image != "symloom"]
    equal(len(images), 4)
    for image in images:
        assert re.fullmatch(r"[\w/.-]+:[\w.-]+@sha256:[0-9a-f]{64}", image), image


def test_kubernetes_replicas_list_each_other_as_peers(work, objects):
    """Of Kubernetes: each replica has a name, and its number is made of that."""
    manifest = read("kubernetes/symloom.yml")
    (replicas,) = re.findall(r"replicas: (\d+)", manifest)
    (service,) = re.findall(r"serviceName: (\S+)", manifest)
    names = [f"symloom-{n}" for n in range(int(replicas))]
    numbers = [int(hashlib.sha256(name.encode()).hexdigest()[:4], 16) for name in names]
    told = re.findall(r'^    "(\d+)": (\S+)$', read("kubernetes/config.yml"), re.M)
    equal(told, [(str(number), f"http://{name}.{service}:3021") for number, name in zip(numbers, names)])
    own, asked = int(hashlib.sha256(socket.gethostname().encode()).hexdigest()[:4], 16), threading.Event()

    def late(handler):
        asked.wait(DEADLINE)
        handler.reply(404)

    with Upstream({f"/{objects.build_id}/executable": late}) as up, Service(work) as s:
        source = http_source(up.url, filters={"filetypes": ["elf_code"]})
        equal(s.symbolicate(request(objects.module(), [4096], sources=[source]), "?timeout=0")["request_id"][:4], f"{own:04x}")
        asked.set()
