#!/usr/bin/env python3
"""The service far beyond its limits, and with thousands of jobs that wait.

usage: storm.py --symloom PATH --load PATH [--seconds N] [PHASE...]     phases: usual, tiny, pending, hostile (default: all)

A storm is ten times as many clients as there are slots, with readers that never read, bodies that trickle in, bodies that
want a lot of memory, and uploads; once with usual limits, once with tiny ones. Answers are compared, byte by byte, with
those of a service at ease, while each second a worker is killed. A refusal is allowed where a limit is reached; a wrong
answer, a slow /healthcheck or memory beyond the budget is not, nor that anything wrong is remembered afterwards. Then
thousands of jobs wait for a source that hangs. Hostile are short requests that ask for long answers or much work
(test/hostile.py), each alone and then four at a time, beside cached ones. Prints figures; status 1 when something was wrong.
"""
import argparse, asyncio, concurrent.futures, contextlib, gzip, hashlib, http.client, json, os, re, shutil, subprocess, sys
import tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
HTTP = os.path.join(os.path.dirname(HERE), "http")
sys.path[:0] = [os.path.dirname(HERE), HTTP, os.path.join(HTTP, "symbfile")]
import faults, harness, hostile
from killer import WorkerKiller
from test_symbfile import RANGES

MODULES = 300
SLOTS = 200                     # max_concurrent_requests by default
PENDING, THERE = 9500, 10       # jobs; each THERE-th module exists
HANGS = 60                      # seconds that the source sleeps
SETTLED_WITHIN = 60             # seconds
HOSTILE_SIZE, HOSTILE_SECONDS = 256 << 10, 4  # bytes of a request; how long they come
MOST_CPU, MOST_MB, MOST_ANSWER = 3, 300, (64 << 20) + 200000  # of each: seconds, above idle, bytes with what ends the answer
REFUSALS = ("maximum number of concurrent requests reached", "not enough memory for this request",
            "too many requests are in flight")
TINY = {"max_fibers": 400, "pool": {"max_queued": 64}, "memory": {"request_budget": "256MB"}}
UPLOADER = {"auth": {"keys": [{"id": "ci", "sha256": hashlib.sha256(b"secret").hexdigest(), "rights": ["symbols:write"]}]},
            "symbfile": {"store_min_free": 0}}
RIGHT = [("innermost", 3), ("middle", 6), ("shapes::Box::area(int)", 12)]


def status_kb(service, name):
    with open(f"/proc/{service.process.pid}/status") as f:
        return int(re.search(rf"^{name}:\s+(\d+)", f.read(), re.M)[1])


def cpu_seconds(service):
    with open(f"/proc/{service.process.pid}/stat") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


class Peak:
    """The highest value of a line of /proc/PID/status while it is open, in MB."""

    def __init__(self, service, name):
        self.service, self.name, self.value, self.over = service, name, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.over.wait(0.1):
            with contextlib.suppress(OSError, TypeError):
                self.value = max(self.value, status_kb(self.service, self.name) / 1024)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Plan:
    """Requests as files for the load generator."""

    def __init__(self, work):
        self.home = tempfile.mkdtemp(dir=work)

    def add(self, name, method, path, body=b"", right=None, **headers):
        lines = {"Host": "127.0.0.1", "Content-Length": str(len(body)), **headers}
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in lines.items())
        for suffix, data in (("request", head.encode() + b"\r\n" + body), ("answer", right)):
            if data is not None:
                with open(os.path.join(self.home, f"{name}.{suffix}"), "wb") as f:
                    f.write(data)
        return name

    def start(self, load, port, seconds, *groups):
        process = subprocess.Popen([load, str(port), str(seconds), self.home], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        process.stdin.write("".join(" ".join(map(str, group)) + "\n" for group in groups))
        process.stdin.close()
        return process

    @staticmethod
    def end(process):
        groups = [json.loads(line) for line in process.stdout]
        if process.wait() != 0:
            raise AssertionError(f"the load generator ended with {process.returncode}")
        return groups


class Storm:
    def __init__(self, work, load, seconds):
        self.work, self.load, self.seconds, self.wrong = work, load, seconds, []
        self.objects = harness.Objects(work)
        self.address = self.objects.line_addresses(3)[0]
        self.modules = [faults.Module(self.objects, n) for n in range(1, MODULES + 1)]
        self.root = os.path.join(work, "files")
        for m in self.modules:
            os.makedirs(os.path.join(self.root, m.build_id))
            with open(os.path.join(self.root, m.build_id, "debuginfo"), "wb") as f:
                f.write(m.bytes)
        subprocess.run(["chmod", "-R", "a+rX", work], check=True)

    def check(self, good, what):
        print(f"  {'ok   ' if good else 'WRONG'} {what}", flush=True)
        if not good:
            self.wrong.append(what)

    # ---- requests ----
    def body(self, modules, url, stacks=1):
        described = [self.objects.module(code_id=m.build_id, debug_id=m.debug_id, image_addr=hex(faults.BASE + (i << 20)))
                     for i, m in enumerate(modules)]
        traces = [{"frames": [{"instruction_addr": hex(faults.BASE + (i << 20) + self.address)}]}
                  for i in range(len(modules))] * stacks
        source = harness.http_source(url, filters={"filetypes": ["elf_debug"]})
        return json.dumps({"stacktraces": traces, "modules": described, "sources": [source]}).encode()

    def questions(self, url):
        """Name to body, of all that have a right answer."""
        asked = {f"one-{i}": self.body([m], url) for i, m in enumerate(self.modules)}
        asked.update({f"ten-{i}": self.body(self.modules[i:i + 10], url) for i in range(0, MODULES, 10)})
        asked.update({f"hundred-{i}": self.body(self.modules[i:i + 100], url) for i in range(0, MODULES - 99, 20)})
        asked["large"] = self.body(self.modules[:1], url, 10000)
        return asked

    def truth(self, url):
        """The right answers, by a service at ease: once from the source, once from its cache."""
        answers = {}
        with harness.Service(self.work, {"logging": {"access": "off"}}) as s:
            for name, body in self.questions(url).items():
                first, again = (s.post("/symbolicate", body) for _ in range(2))
                statuses = {m["debug_status"] for m in json.loads(again[2])["modules"]}
                traces = json.loads(again[2])["stacktraces"]
                frames = {(f.get("function"), f.get("lineno")) for t in traces for f in t["frames"]}
                if statuses != {"found"} or frames != set(RIGHT) or first[2] != again[2]:
                    raise AssertionError(f"{name}: {statuses} {frames}, the same twice: {first[2] == again[2]}")
                answers[name] = again[2]
        return answers

    def plan(self, url, answers):
        plan, post = Plan(self.work), {"Content_Type": "application/json"}
        for name, body in self.questions(url).items():
            plan.add(name, "POST", "/symbolicate", body, answers[name], **post)
        zeros = b"[" + b"0," * 7500000 + b"0]"
        plan.add("zeros", "POST", "/symbolicate", gzip.compress(zeros), Content_Encoding="gzip", **post)
        plan.add("numbers", "POST", "/symbolicate", b'{"stacktraces":' + zeros + b"}", **post)
        plan.add("slow", "POST", "/symbolicate", self.body(self.modules[:1], url), **post)
        plan.add("upload", "POST", "/api/symbols-ranges", RANGES, Authorization="APIKey Y2k6c2VjcmV0", FilePart="0",
                 FileParts="1", FileID="E26PadUYBZ5EN7TVSIh4_Q")
        plan.add("health", "GET", "/healthcheck")
        plan.add("new-health", "GET", "/healthcheck", Connection="close")
        return plan

    # ---- a storm ----
    def judge(self, group):
        """Refusals only where they are right, with the right body."""
        kind, name = group["group"].split()
        allowed = {"health": {200}, "new-health": {200}, "zeros": {400, 413, 422, 503}, "numbers": {400, 413, 422, 503},
                   "slow": {408, 413, 503}, "upload": {200, 503}}.get(name, {200, 503})
        answers = [tuple(answer) for answer in group["answers"]]
        print(f"  {group['group']:14} " + ", ".join(f"{s}: {n}" for s, n, _ in answers) +
              f"; cut {group['cut']}, lost {group['lost']}; ms {group.get('ms')}, refusals {group.get('refusal_ms')}")
        bad = [a for a in answers if a[0] not in allowed or
               (a[0] == 503 and name != "upload" and not any(r in a[2] for r in REFUSALS))]
        if bad or group["wrong"] or (group["cut"] and kind != "slow"):
            self.check(False, f"{group['group']}: {group['wrong']} wrong, {group['cut']} cut, not allowed: {bad[:4]}")

    def settle(self, service, questions, answers):
        """Everything is found, by itself, and is what it was; None when it took too long."""
        begin, left = time.monotonic(), {n for n in answers if n.startswith("one-")}
        while left and time.monotonic() - begin < SETTLED_WITHIN:
            with contextlib.suppress(OSError, http.client.HTTPException):
                left = {n for n in left if service.post("/symbolicate", questions[n])[2] != answers[n]}
            time.sleep(0.2 if left else 0)
        return None if left else time.monotonic() - begin

    def storm(self, title, config, peak_must):
        print(f"{title}: {self.seconds} s", flush=True)
        with harness.nginx(self.work, self.root) as url:
            answers, questions = self.truth(url), self.questions(url)
            plan = self.plan(url, answers)
            service = harness.Service(self.work, {**UPLOADER, **config})
            try:
                service.request("GET", "/healthcheck")
                idle = status_kb(service, "RssAnon") / 1024
                with Peak(service, "RssAnon") as peak, WorkerKiller(lambda: [service]) as killer:
                    names = {k: [n for n in questions if n.startswith(k)] for k in ("one", "ten", "hundred")}
                    first = plan.start(self.load, service.port, self.seconds + 2, ("deaf", SLOTS // 2, "large"))
                    time.sleep(2)
                    crowd = plan.start(self.load, service.port, self.seconds, ("ask", SLOTS, *names["hundred"]),
                                       ("ask", 3 * SLOTS, *names["ten"]), ("ask", 6 * SLOTS, *names["one"]),
                                       ("slow", 1000, "slow"), ("ask", 20, "zeros"), ("ask", 4, "numbers"),
                                       ("ask", 16, "upload"))
                    health = plan.start(self.load, service.port, self.seconds, ("probe", 1, "health"),
                                        ("probe", 1, "new-health"))
                    groups, probes = plan.end(first) + plan.end(crowd), plan.end(health)
                for group in groups + probes:
                    self.judge(group)
                asks = [g for g in groups if g["group"].startswith("ask")]
                right = sum(n for g in asks for status, n, _ in g["answers"] if status == 200) - sum(g["wrong"] for g in asks)
                self.check(right > 100, f"{right} requests were answered rightly meanwhile (must > 100)")
                for group in probes:
                    ms = group.get("ms", {"p99": float("inf"), "worst": float("inf")})
                    self.check(ms["p99"] < 20 and ms["worst"] <= 250,
                               f"{group['group']}: p99 {ms['p99']} ms (must < 20), worst {ms['worst']} ms (must <= 250)")
                if peak_must:
                    self.check(peak.value <= peak_must, f"peak {peak.value:.0f} MB anonymous (must <= {peak_must})")
                else:
                    print(f"  peak {peak.value:.0f} MB anonymous")
                self.check(killer.counts["workers killed"] > 0, f"{killer.counts['workers killed']} workers were killed meanwhile (must > 0)")
                took = self.settle(service, questions, answers)
                self.check(took is not None, f"every module is found {'' if took is None else f'{took:.1f} s '}afterwards")
                self.back_to_idle(service, idle)
            finally:
                self.end(service)

    def back_to_idle(self, service, idle):
        end, left = time.monotonic() + SETTLED_WITHIN, float("inf")
        while left > 40 and time.monotonic() < end and service.process.poll() is None:
            time.sleep(0.5)
            left = status_kb(service, "RssAnon") / 1024 - idle
        self.check(left <= 40, f"{left:.0f} MB anonymous above {idle:.0f} MB when idle (must <= 40)")

    def end(self, service):
        status = service.process.poll()
        if status is None:
            try:
                status = service.stop()
            except AssertionError as e:
                status = e
                service.process.kill()
                service.process.wait()
        self.check(status == 0, f"it ends well: {status}")

    # ---- jobs that wait ----
    def p99(self, plan, port):
        """Of cached requests, the best of three."""
        return min(plan.end(plan.start(self.load, port, 4, ("ask", 2, "cached")))[0]["ms"]["p99"] for _ in range(3))

    def submit(self, service, bodies):
        connection = service.connection()
        ids = []
        for body in bodies:
            connection.request("POST", "/symbolicate?timeout=0", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            data = answer.read()
            ids.append(json.loads(data)["request_id"] if answer.status == 200 else f"{answer.status} {data[:100]!r}")
        return ids

    def collect(self, service, jobs):
        """What is wrong with the answers."""
        connection, wrong = service.connection(), []
        for number, job in jobs:
            connection.request("GET", f"/requests/{job}?timeout=50")
            answer = json.loads(connection.getresponse().read())
            if answer.get("status") != "completed":
                wrong.append((number, answer))
                continue
            found = [m["debug_status"] for m in answer["modules"]]
            frames = [(f.get("function"), f.get("lineno")) for f in harness.frames(answer)]
            if (found, frames) != ((["found"], RIGHT) if number % THERE == 0 else (["missing"], [(None, None)])):
                wrong.append((number, found, frames))
        return wrong

    def pending(self):
        print(f"{PENDING} jobs wait for a source that hangs for {HANGS} s", flush=True)
        files, modules = {}, []
        for n in range(PENDING):
            m = faults.Module(self.objects, MODULES + 1 + n)
            if n % THERE == 0:
                files[f"/{m.build_id}/debuginfo"] = m.bytes
            m.bytes = None
            modules.append(m)
        config = {"max_concurrent_requests": None, "head_timeout": "5m", "deny_list_enabled": False, "result_ttl": "10m"}
        with harness.nginx(self.work, self.root) as url, Sleeper(files) as sleeper, \
                concurrent.futures.ThreadPoolExecutor(4) as threads:
            service = harness.Service(self.work, config)
            try:
                plan, cached = Plan(self.work), self.body(self.modules[:1], url)
                answer = service.post("/symbolicate", cached)[2]
                plan.add("cached", "POST", "/symbolicate", cached, answer, Content_Type="application/json")
                calm = self.p99(plan, service.port)
                with Peak(service, "VmRSS") as peak:
                    bodies = [self.body([m], sleeper.url) for m in modules]
                    begin = time.monotonic()
                    parts = [bodies[i::4] for i in range(4)]
                    ids = [None] * PENDING
                    for i, got in enumerate(threads.map(lambda part: self.submit(service, part), parts)):
                        ids[i::4] = got
                    print(f"  taken in {time.monotonic() - begin:.1f} s")
                    refused = [i for i in ids if " " in i]
                    self.check(not refused, f"{len(refused)} jobs were refused: {sorted(set(refused))[:3]}")
                    busy = self.p99(plan, service.port)
                    time.sleep(max(0, begin + HANGS - time.monotonic()))
                    waiting = peak.value
                    sleeper.wake()
                    jobs = [job for job in enumerate(ids) if " " not in job[1]]
                    wrong = sum(threads.map(lambda i: self.collect(service, jobs[i::4]), range(4)), [])
                    print(f"  all answered {time.monotonic() - begin - HANGS:.1f} s after the source woke")
                self.check(not wrong, f"{len(wrong)} jobs answered wrongly: {wrong[:3]}")
                self.check(waiting <= 300, f"{waiting:.0f} MB while they wait (must <= 300), {peak.value:.0f} MB at most")
                self.check(busy <= 2 * calm, f"p99 of cached requests {busy:.2f} ms, when idle {calm:.2f} ms (must <= 2 times)")
            finally:
                sleeper.wake()
                self.end(service)


    # ---- requests that ask for more than they weigh ----
    def alone(self, service, name, path, headers, body):
        """One of them, by what it takes."""
        service.request("GET", "/healthcheck")
        idle, cpu = status_kb(service, "RssAnon") / 1024, cpu_seconds(service)
        with Peak(service, "RssAnon") as peak:
            status, _, answer = service.request("POST", path, body, headers)
        took, more, size = cpu_seconds(service) - cpu, max(peak.value - idle, 0), len(answer)
        self.check(status == 200 and took <= MOST_CPU and more <= MOST_MB and size <= MOST_ANSWER,
                   f"{name}: {len(body)} bytes, status {status}, {took:.2f} s (must <= {MOST_CPU}), {more:.0f} MB above idle (must "
                   f"<= {MOST_MB}), an answer of {size / (1 << 20):.1f} MiB (must <= 64)")

    def together(self, service, name, path, headers, body):
        """Four at a time, again and again, beside health checks and a cached request."""
        plan = Plan(self.work)
        plan.add(name, "POST", path, body, **{key.replace("-", "_"): value for key, value in headers.items()})
        plan.add("health", "GET", "/healthcheck")
        plan.add("cached", "POST", "/symbolicate", b'{"stacktraces":[],"modules":[]}', Content_Type="application/json")
        crowd = plan.start(self.load, service.port, HOSTILE_SECONDS, ("ask", 4, name))
        asked = plan.end(plan.start(self.load, service.port, HOSTILE_SECONDS, ("probe", 1, "health"), ("probe", 1, "cached")))
        answers = plan.end(crowd)[0]["answers"]
        figures = [group.get("ms", {"p99": float("inf"), "worst": float("inf")}) for group in asked]
        self.check(figures[0]["worst"] <= 250 and figures[1]["p99"] < 20,
                   f"{name}, four at a time: worst /healthcheck {figures[0]['worst']} ms (must <= 250), p99 of a cached request "
                   f"{figures[1]['p99']} ms (must < 20); answers {[(s, n) for s, n, _ in answers]}")

    def hostile(self):
        print("requests that ask for more than they weigh", flush=True)
        for name, make in {**hostile.ANSWERS, **hostile.WORK}.items():
            request = make(HOSTILE_SIZE)
            with request.upstream:
                service = harness.Service(self.work, {"logging": {"access": "off"}})
                try:
                    self.alone(service, name, *request.request())
                    self.together(service, name, *request.request())
                finally:
                    self.end(service)


class Sleeper:
    """A symbol server that answers nothing until it is woken."""

    def __init__(self, files):
        self.files, self.loop, self.awake = files, asyncio.new_event_loop(), asyncio.Event()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    async def serve(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await self.awake.wait()
                method, path, _ = head.decode().split(" ", 2)
                data = self.files.get(path)
                writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (b"404 Not Found" if data is None else b"200 OK",
                                                                          len(data or b"")))
                if method != "HEAD":
                    writer.write(data or b"")
                await writer.drain()
        writer.close()

    def wake(self):
        self.loop.call_soon_threadsafe(self.awake.set)

    def __enter__(self):
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=2048))
        self.url = "http://127.0.0.1:%d/" % server.sockets[0].getsockname()[1]
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True)
    parser.add_argument("--load", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("phases", nargs="*", default=["usual", "tiny", "pending", "hostile"])
    args = parser.parse_args()
    harness.SYMLOOM = os.path.abspath(args.symloom)
    work = tempfile.mkdtemp(prefix="symloom-storm-")
    os.chmod(work, 0o755)
    try:
        storm = Storm(work, os.path.abspath(args.load), args.seconds)
        for phase in args.phases:
            if phase == "usual":
                storm.storm("a storm at usual limits", {}, None)
            elif phase == "tiny":
                storm.storm("a storm at tiny limits", TINY, 512)
            elif phase == "pending":
                storm.pending()
            else:
                storm.hostile()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{len(storm.wrong)} things were wrong")
    return 1 if storm.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
