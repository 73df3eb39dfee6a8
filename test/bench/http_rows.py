"""The service under load: requests per second against nginx, start-up, memory, and health while a thousand requests wait."""
import collections, contextlib, http.client, itertools, json, os, re, subprocess, sys, tempfile, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "http"))
import faults, harness

WAITING = 1000
QUIET = {"logging": {"access": "off"}}


FRAMES, MODULES = 100, 30
CONNECTIONS, ROUNDS = (16, 64, 128), 5
LOOP_FRAMES = 128  # NATIVE_FEW_FRAMES


def requests_per_second(url, body, work, connections=64):
    """`body` None: GET. Any answer but 200 is no figure."""
    script = os.path.join(work, "post.lua")
    with open(script, "w") as f:
        if body is not None:
            f.write(f'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [==[{body}]==]\n')
    out = subprocess.run(["wrk", "-t2", f"-c{connections}", "-d3s", "-s", script, url], capture_output=True, text=True,
                         check=True).stdout
    if "Non-2xx" in out:
        sys.exit(out)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])


def side_by_side(ours, theirs, rounds=3):
    """The best of each, measured in turns."""
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    return max(a for a, _ in pairs), max(b for _, b in pairs)


def one_frame(work, objects, row):
    """Both as they come, with their access logs."""
    with harness.Upstream(objects.layout()) as up, harness.Service(work) as s:
        body = json.dumps(harness.request(objects.module(), [objects.address("plain")],
                                          sources=[harness.http_source(up.url, filters={"filetypes": ["elf_code"]})]))
        answer = s.post("/symbolicate", body)[2].decode()
        assert '"status":"symbolicated"' in answer, answer
        with nginx(work, f"default_type application/json; return 200 '{answer}';") as url:
            a, b = side_by_side(lambda: requests_per_second(f"http://127.0.0.1:{s.port}/symbolicate", body, work),
                                lambda: requests_per_second(url, body, work))
    row("cached one-frame POST, requests/s, nginx", a, b, "1/s", ">= 0.75")


def many_frames(work, objects, row):
    """A hundred frames over thirty modules, all in the cache, against a file of the answer's size."""
    with faults.World(objects, MODULES) as world, harness.Service(work) as s:
        body = world.body(world.modules)
        trace = [body["stacktraces"][i % MODULES]["frames"][0] for i in range(FRAMES)]
        body = json.dumps({**body, "stacktraces": [{"frames": trace}]})
        answer = s.post("/symbolicate", body)[2]
        assert [m["debug_status"] for m in json.loads(answer)["modules"]] == ["found"] * MODULES, answer
        home = tempfile.mkdtemp(dir=work)
        with open(os.path.join(home, "answer"), "wb") as f:
            f.write(answer)
        subprocess.run(["chmod", "-R", "a+rX", work], check=True)
        ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
        with nginx(work, f"root {home};") as url:
            for _, connections in itertools.product(range(ROUNDS), CONNECTIONS):
                ours[connections].append(
                    requests_per_second(f"http://127.0.0.1:{s.port}/symbolicate", body, work, connections))
                theirs[connections].append(requests_per_second(url + "answer", None, work, connections))
    for connections in CONNECTIONS:
        row(f"{FRAMES} frames, {MODULES} modules, {connections} conn., nginx file", max(ours[connections]),
            max(theirs[connections]), "1/s", ">= 0.15")
    rates, peers = [max(ours[c]) for c in CONNECTIONS], [max(theirs[c]) for c in CONNECTIONS]
    print(f"  of these, the lowest to the highest rate: {min(rates) / max(rates):.2f} (must >= 0.90; nginx's "
          f"{min(peers) / max(peers):.2f}); {len(answer)} bytes an answer")


def loop_seconds(s):
    """Of processor, of the thread that all requests share: it is the first."""
    with open(f"/proc/{s.process.pid}/task/{s.process.pid}/schedstat") as f:
        return int(f.read().split()[0]) / 1e9


def on_the_loop(work, objects):
    """Microseconds of the loop for a request, everything in memory: of one frame, of as many as it looks up itself, of one more."""
    took = []
    with faults.World(objects, MODULES) as world, harness.Service(work, QUIET) as s:
        body = world.body(world.modules)
        connection = s.connection()
        for frames in (1, LOOP_FRAMES, LOOP_FRAMES + 1):
            trace = [body["stacktraces"][i % MODULES]["frames"][0] for i in range(frames)]
            text = json.dumps({**body, "stacktraces": [{"frames": trace}]})
            for requests in (200, 2000):
                start = loop_seconds(s)
                for _ in range(requests):
                    connection.request("POST", "/symbolicate", text, {"Content-Type": "application/json"})
                    assert connection.getresponse().read().count(b'"symbolicated"') >= frames
            took.append((loop_seconds(s) - start) * 1e6 / requests)
    return took


@contextlib.contextmanager
def nginx(work, what):
    """nginx with this for every path: one worker, as the service has one loop."""
    port = harness.free_port()
    home = tempfile.mkdtemp(dir=work)
    conf = os.path.join(home, "nginx.conf")
    with open(conf, "w") as f:
        f.write(f"""daemon off; pid {home}/pid; error_log {home}/error.log; worker_processes 1;
events {{ worker_connections 2048; }}
http {{
  access_log {home}/access.log; client_body_temp_path {home}/b; proxy_temp_path {home}/p; fastcgi_temp_path {home}/f;
  uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
  server {{ listen 127.0.0.1:{port}; location / {{ {what} }} }}
}}
""")
    with harness.serving(["nginx", "-c", conf], port):
        yield f"http://127.0.0.1:{port}/"


def first_answer(work):
    """(seconds from exec to the first answer of /healthcheck, MiB when idle)"""
    port = harness.free_port()
    start = time.monotonic()
    process = subprocess.Popen([harness.SYMLOOM, "run", "--bind", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/healthcheck")
            assert connection.getresponse().status == 200
            break
        except ConnectionRefusedError:
            time.sleep(0.0005)
    seconds = time.monotonic() - start
    with open(f"/proc/{process.pid}/status") as f:
        resident = int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) / 1024
    process.terminate()
    process.wait()
    return seconds, resident


def waiting(work, objects):
    """Milliseconds that /healthcheck takes while a thousand requests wait for one slow server: median, worst."""
    gate = threading.Event()

    def route(handler):
        gate.wait(120)
        handler.reply(404)

    names = [f"{i:040x}" for i in range(WAITING)]
    with harness.Upstream({f"/{name}/executable": route for name in names}) as up, \
            harness.Service(work, {**QUIET, "max_concurrent_requests": None}) as s:
        source = harness.http_source(up.url, filters={"filetypes": ["elf_code"]})
        ids = [s.symbolicate(harness.request(objects.module(code_id=name, debug_id=None), [0], sources=[source]),
                             "?timeout=0")["request_id"] for name in names]
        pollers = [threading.Thread(target=s.request, args=("GET", f"/requests/{i}")) for i in ids]
        for poller in pollers:
            poller.start()
        times = []
        for _ in range(300):
            start = time.monotonic()
            assert s.request("GET", "/healthcheck")[0] == 200
            times.append((time.monotonic() - start) * 1000)
        threads = len(os.listdir(f"/proc/{s.process.pid}/task"))
        gate.set()
        for poller in pollers:
            poller.join()
    times.sort()
    return times[len(times) // 2], times[-1], threads


def main(symloom, row):
    harness.SYMLOOM = symloom
    with tempfile.TemporaryDirectory(prefix="symloom-bench-") as work:
        objects = harness.Objects(work)
        one_frame(work, objects, row)
        many_frames(work, objects, row)
        one, most, more = on_the_loop(work, objects)
        starts = [first_answer(work) for _ in range(5)]
        median, worst, threads = waiting(work, objects)
    print(f"the loop's part of a request: {one:.0f} us for one frame, {most:.0f} for {LOOP_FRAMES}, which it looks up, names and writes "
          f"itself, {more:.0f} for {LOOP_FRAMES + 1}, which the pool does")
    print(f"start to first /healthcheck: {min(s for s, _ in starts) * 1000:.1f} ms (must < 50)")
    print(f"resident when idle: {min(m for _, m in starts):.1f} MiB (must < 25)")
    print(f"/healthcheck while {WAITING} requests wait: median {median:.2f} ms, worst {worst:.2f} ms (must < 20); "
          f"{threads} threads")
