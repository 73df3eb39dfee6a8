"""Where the modules of Mozilla's API come from and where they are kept: stores that fail, the cache of bounded size, Redis; and
the health checks that tell of them."""
import collections, glob, json, os, ssl, subprocess, threading, time

from faults import Redis, metric
from harness import Service, Upstream, equal, http_source, wait_until
from servers import free_port


def module(number, functions=40):
    """(debug file, debug id, text)"""
    debug_id = f"{number + 1:032X}0"
    lines = [f"MODULE Linux x86_64 {debug_id} lib{number}.so", f"FILE 0 /src/{number}.c"]
    for i in range(functions):
        lines += [f"FUNC {i * 64:x} 40 0 function_{number}_{i}", f"{i * 64:x} 40 {i + 1} 0"]
    return f"lib{number}.so", debug_id, "\n".join(lines) + "\n"


def place(m):
    return f"/{m[0]}/{m[1]}/{m[0]}.sym"


def store(modules):
    return Upstream({place(m): m[2].encode() for m in modules})


def ask(s, modules, status=200):
    """Whether each was found, and by the right name."""
    body = {"memoryMap": [m[:2] for m in modules], "stacks": [[[i, 64] for i in range(len(modules))]]}
    answered, _, text = s.request("POST", "/symbolicate/v5", json.dumps(body))
    equal(answered, status, text)
    if status != 200:
        return None
    result = json.loads(text)["results"][0]
    found = [result["found_modules"]["/".join(m[:2])] for m in modules]
    for m, frame, was in zip(modules, result["stacks"][0], found):
        equal(frame.get("function"), f"function_{int(m[1][:-1], 16) - 1}_1" if was else None)
    return found


def kept(s):
    """Debug ids of the modules on disk."""
    ids = []
    for path in glob.glob(os.path.join(s.cache, "mozilla_syms", "**", "*.metadata"), recursive=True):
        if os.path.exists(path[:-9]) and os.path.getsize(path[:-9]):
            with open(path, "rb") as f:
                ids.append(f.read())
    return len(ids)


def heartbeat(s):
    status, _, text = s.request("GET", "/__heartbeat__")
    answer = json.loads(text)
    return status, answer["status"], answer["checks"], answer["details"]


# ---- stores that fail ----

def test_failing_stores_are_retried_and_the_next_is_asked(work, objects):
    """What failed is tried five times, and the module is neither there nor not there; the next store may have it."""
    x = module(1)
    down, other = free_port(), {place(x): x[2].encode()}
    cases = [  # statuses of two stores, the answer, how often they were asked
        ((404, 200), True, (1, 1)), ((200, 200), True, (1, 0)), ((404, 404), False, (1, 1)), ((403, 404), False, (1, 1)),
        ((500, 404), None, (5, 1)), ((503, 200), True, (5, 1)), ((b"junk", 404), False, (1, 1)), ((b"", 200), True, (1, 1)),
        ((None, 404), None, (None, 1)), ((404, None), None, (1, None)), (("hangs", 404), None, (5, 1)),
        (("certificate", 404), None, (None, 1)), (("certificate", 200), True, (None, 1))]
    failures, gate = [], threading.Event()
    key, certificate = os.path.join(work, "key.pem"), os.path.join(work, "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-subj", "/CN=127.0.0.1",
                    "-days", "2"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def url_of(up, status):
        if status is None:
            return f"http://127.0.0.1:{down}"
        if status != "certificate":
            return up.url
        up.socket = context.wrap_socket(up.socket, server_side=True, do_handshake_on_connect=False)
        return up.url.replace("http:", "https:")

    def one(statuses, found, hits):
        try:
            first, second = [{place(x): other[place(x)] if s == 200 else (lambda handler: gate.wait()) if s == "hangs" else s} for s in statuses]
            with Upstream(first) as a, Upstream(second) as b:
                urls = [url_of(up, status) for up, status in zip((a, b), statuses)]
                limits = {"head_timeout": "2s"} if "hangs" in statuses else {}
                with Service(work, {"mozilla": {"sources": urls}, **limits}) as s:
                    for again in range(1 if found is None else 2):  # the second time nobody is asked
                        got = ask(s, [x], 503 if found is None else 200)
                        equal(got, None if found is None else [found], (statuses, again))
                    equal([up.hits.get(place(x), 0) for up in (a, b)], [n or 0 for n in hits], statuses)
                    status, overall, checks, details = heartbeat(s)  # what does not answer for one file answers for others
                    is_down = bool({None, "certificate"} & set(statuses))
                    equal((status, overall, checks["check_storage_urls"]), (500, "error", "error") if is_down else (200, "ok", "ok"), statuses)
                    equal([(d["level"], list(d["messages"])) for d in details.values()], [(40, ["tecken.health.E002"])] if is_down else [])
        except BaseException as error:
            failures.append(AssertionError(f"{statuses}: {error}"))

    threads = [threading.Thread(target=one, args=case) for case in cases]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    gate.set()
    for error in failures:
        raise error


def test_expired_miss_is_asked_for_again(work, objects):
    x = module(1)
    for ttl, asked in (("1h", 1), ("0s", 2)):
        with store([]) as up, Service(work, {"mozilla": {"sources": [up.url], "negative_ttl": ttl}}) as s:
            equal(ask(s, [x]) + ask(s, [x]), [False, False])
            equal(up.hits[place(x)], asked)


# ---- health ----

def test_heartbeat_and_version_report_health(work, objects):
    version = os.path.join(work, "version.json")
    with open(version, "w") as f:
        json.dump({"commit": "ou812"}, f)
    with Service(work) as s:
        status, got, text = s.request("GET", "/__version__")
        equal((status, sorted(json.loads(text))), (200, ["build", "commit", "source", "version"]))
        equal(heartbeat(s), (200, "ok", {"check_storage_urls": "ok", "check_redis_connected": "ok", "check_redis_policy": "ok",
                                         "check_cache_dir": "ok"}, {}))
        status, got, text = s.request("GET", "/__lbheartbeat__")
        equal((status, got["Content-Type"], text), (200, "application/json; charset=utf-8", b""))
        equal(s.request("GET", "/__broken__")[0], 404)
    for name, expected in ((version, {"commit": "ou812"}), (version + ".none", {})):
        with Service(work, {"mozilla": {"sources": [], "version_file": name, "broken_endpoint": True}}) as s:
            equal(json.loads(s.request("GET", "/__version__")[2]), expected)
            equal(s.request("GET", "/__broken__")[::2], (500, b'{"title": "500 Internal Server Error"}'))
            wait_until("the error in the log", lambda: "a client requested this error" in s.logged())


# ---- the cache ----

def test_least_recently_used_modules_are_evicted(work, objects):
    modules = [module(i, 400) for i in range(6)]
    with store(modules) as up:
        with Service(work, {"mozilla": {"sources": [up.url]}}) as s:
            ask(s, modules[:1])
            size = sum(os.path.getsize(p) for p in glob.glob(os.path.join(s.cache, "mozilla_syms", "**", "*"), recursive=True)
                       if os.path.isfile(p) and not p.endswith(".metadata"))
        for evict_count in (1, 2):
            up.hits.clear()
            lru = {"max_size": size * 3 + size // 2, "evict_count": evict_count}
            with Service(work, {"mozilla": {"sources": [up.url], "lru": lru}}) as s:
                for i in (0, 1, 2, 0, 3):  # module 1 is the one that was not used for longest then
                    equal(ask(s, [modules[i]]), [True])
                wait_until("room", lambda: kept(s) == 3)
                for i in (0, 2, 3):
                    ask(s, [modules[i]])
                equal(dict(up.hits), {place(m): 1 for m in modules[:4]})
                ask(s, [modules[1]])
                equal(up.hits[place(modules[1])], 2)
                wait_until("room", lambda: kept(s) == 3)
                equal(metric(s, 'symloom_cache_removed_files_total{cache="mozilla_syms",reason="size"}'), 2)


def test_modules_are_shared_through_redis(work, objects):
    """Another machine has them from there; the server is told how to evict, and a policy that never does is told of."""
    modules = [module(i) for i in range(4)]
    with Redis(work) as redis, store(modules) as up:
        mozilla = {"sources": [up.url], "cache": "redis", "redis": {"url": redis.url, "manage": True},
                   "lru": {"max_size": "50 MB", "evict_count": 7}}
        source = http_source(up.url, layout={"type": "native"}, filters={"filetypes": ["breakpad"]})
        with Service(work, {"mozilla": mozilla, "sources": [source]}) as s:
            equal(ask(s, modules), [True] * 4)
            wait_until("modules in Redis", lambda: redis.size() == 4)
            equal(redis.ask("KEYS *").count("symloom:mozilla_syms/v1001/"), 4)
            wait_until("the policy", lambda: "allkeys-lru" in redis.ask("CONFIG GET maxmemory-policy"))
            wait_until("the samples", lambda: "\r\n7\r\n" in redis.ask("CONFIG GET maxmemory-samples"))
            wait_until("the size", lambda: "\r\n50000000\r\n" in redis.ask("CONFIG GET maxmemory"))
            equal(heartbeat(s)[2]["check_redis_policy"], "ok")
            s.symbolicate({"modules": [], "stacktraces": []})
        hits = dict(up.hits)
        with Service(work, {"mozilla": mozilla}) as s:
            equal(ask(s, modules), [True] * 4)
            equal(up.hits, hits)
            equal(metric(s, 'symloom_cache_lookups_total{cache="mozilla_syms",layer="shared",result="ok"}'), 4)
        redis.ask("CONFIG SET maxmemory-policy noeviction")
        with Service(work, {"mozilla": {**mozilla, "redis": {"url": redis.url}}}) as s:
            wait_until("the complaint", lambda: "Redis has no eviction policy" in s.logged())
            equal(heartbeat(s)[:2] + (heartbeat(s)[2]["check_redis_policy"],), (200, "warning", "warning"))


def test_requests_succeed_when_redis_dies_under_load(work, objects):
    """Whatever becomes of it, no request fails: modules are fetched again."""
    modules = [module(i, 10) for i in range(200)]
    with Redis(work) as redis, store(modules) as up:
        mozilla = {"sources": [up.url], "cache": "redis", "redis": {"url": redis.url}}
        with Service(work, {"mozilla": mozilla, "cache_dir": None, "caches": {"in_memory": {"default_capacity": 1}}}) as s:
            stop, counts, failures = threading.Event(), collections.Counter(), []

            def load(first):
                at = first
                try:
                    while not stop.is_set():
                        equal(ask(s, [modules[(at + i) % 200] for i in range(3)]), [True] * 3)
                        counts[first] += 1
                        at += 7
                except BaseException as error:
                    failures.append(error)

            threads = [threading.Thread(target=load, args=(i * 50,)) for i in range(4)]
            for t in threads:
                t.start()

            def more():
                before = sum(counts.values())
                wait_until("answers", lambda: failures or sum(counts.values()) >= before + 30)

            try:
                wait_until("modules in Redis", lambda: failures or redis.size() > 20)
                redis.stop()
                more()
                wait_until("left alone", lambda: failures or heartbeat(s)[2]["check_redis_connected"] == "warning")
                more()
                redis.start()
                wait_until("it is used again", lambda: failures or redis.size() > 5)
                more()
            finally:
                stop.set()
                for t in threads:
                    t.join()
            for error in failures:
                raise error


# ---- metrics ----

def test_mozilla_metrics_count_modules_and_bad_requests(work, objects):
    x = module(1)
    with store([x]) as up, Service(work, {"mozilla": {"sources": [up.url]}}) as s:
        ask(s, [x])
        for body in ("", '{"jobs": ' + json.dumps([{}] * 11) + "}", '{"memoryMap": 1, "stacks": []}', '{"memoryMap": [], "stacks": []}'):
            equal(s.request("POST", "/symbolicate/v5", body)[0], 400)
        for reason in ("bad_json", "too_many_jobs", "invalid_modules", "invalid_stacks"):
            equal(metric(s, f'symloom_mozilla_errors_total{{reason="{reason}"}}'), 1, reason)
        equal(metric(s, 'symloom_mozilla_request_seconds_count{version="v5"}'), 1)
        for item in ("jobs", "stacks", "frames"):
            equal(metric(s, f'symloom_mozilla_items_sum{{item="{item}"}}'), 1, item)
