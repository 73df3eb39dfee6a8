"""The metrics that Mozilla's services send: their names, kinds and tags, of a service that does what they do."""
import hashlib, json, os, socket, time

import pushing
from harness import Service, Upstream, equal
from test_statsd import Receiver
from test_symbolicate import FILES, I, N, P, X, ask, job, place

HOST = "build-7"


def own_lines(lines):
    """(name, values, kind, tags) of what is neither symloom's own nor has its prefix."""
    for line in lines:
        if line.startswith(("eliot.", "tecken.")):
            name, _, rest = line.partition(":")
            parts = rest.split("|")
            tags = next((p[1:].split(",") for p in parts[2:] if p.startswith("#")), [])
            yield name, [float(v) for v in parts[0].split(":")], parts[1], tags


def collected(server):
    """By name, kind and the tags beside the host's: all values."""
    found = {}
    for name, values, kind, tags in own_lines(server.collect()):
        equal([t for t in tags if t.startswith("host:")], [f"host:{HOST}"], name)
        rest = tuple(sorted(t for t in tags if not t.startswith(("host:", "team:"))))
        equal("team:a" in tags, True, tags)
        found.setdefault((name, kind, rest), []).extend(values)
    return found


def total(found, name, kind, *tags):
    return sum(found.pop((name, kind, tags), [0]))


def values(found, name, kind, *tags):
    return sorted(found.pop((name, kind, tags), []))


def times(found, count, name, kind, *tags):
    """So many durations, in milliseconds."""
    got = values(found, name, kind, *tags)
    equal((len(got), all(0 <= v < 600000 for v in got)), (count, True), (name, tags, got))


def with_names(work, server, mozilla, **config):
    metrics = {"statsd": server.address, "prefix": "crash", "mozilla_names": True, "custom_tags": {"team": "a"}}
    os.environ["ELIOT_HOSTNAME"] = HOST
    try:
        return Service(work, {"metrics": metrics, "mozilla": mozilla, **config})
    finally:
        del os.environ["ELIOT_HOSTNAME"]


def test_symbolication_sends_mozilla_metrics(work, objects):
    server = Receiver()
    other = "1" * 32 + "0"
    files = {place(m): FILES[m].encode() for m in (P, I, N)}
    files[f"/testproj/{other}/testproj.sym"] = FILES[P].encode()  # the file is of another id
    files[place(X)] = b"this is junk"
    size = 0
    with Upstream(files) as up, with_names(work, server, {"sources": [up.url], "fallback_sources": []}) as s:
        for _ in range(2):
            ask(s, {"jobs": [job([P, I], [[[0, 21376], [1, 31354]], [[0, 21377]]]), job([N], [[[0, 4104]]])]})
        kind = os.path.join(s.cache, "mozilla_syms")
        size = sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(kind) for f in names if not f.endswith(".metadata"))
        ask(s, job([("testproj", other), X, ("a.so", "abcde"), ("b.so", "2" * 33), ("c.so", "xyz"[:0])], [[[i, 1] for i in range(5)]]))
        ask(s, job([P], [[[0, 21376]]]), version=4)
        ask(s, job([P], [[[0, 21376]]]), version=0)
        for body in ("{", {"jobs": [job([], [[]])] * 11}, job([["a"]], [[]]), {"memoryMap": []}):
            ask(s, body, status=400)
        for path in ("/", "/__version__", "/__heartbeat__", "/__lbheartbeat__"):
            equal(s.request("GET", path)[0], 200)
    found = collected(server)
    for path, method, count in (("/symbolicate/v5", "post", 7), ("/symbolicate/v4", "post", 1), ("/", "post", 1), ("/", "get", 1),
                                ("/__version__", "get", 1), ("/__heartbeat__", "get", 1)):
        equal(total(found, "eliot.pageview", "c", f"method:{method}", f"path:{path}"), count, path)
    equal(total(found, "eliot.pageview", "c", "method:get", "path:/__lbheartbeat__") >= 1, True)
    times(found, 3, "eliot.symbolicate.api", "ms", "version:v5")
    times(found, 2, "eliot.symbolicate.api", "ms", "version:v4")
    for reason in ("bad_json", "too_many_jobs", "invalid_modules", "invalid_stacks"):
        equal(total(found, "eliot.symbolicate.request_error", "c", f"reason:{reason}"), 1, reason)
    equal(values(found, "eliot.symbolicate.jobs_count", "h", "version:v5"), [1, 2, 2])
    equal(values(found, "eliot.symbolicate.jobs_count", "h", "version:v4"), [1, 1])
    equal(values(found, "eliot.symbolicate.stacks_count", "h", "version:v5"), [1, 1, 1, 2, 2])
    equal(values(found, "eliot.symbolicate.stacks_count", "h", "version:v4"), [1, 1])
    equal(values(found, "eliot.symbolicate.frames_count", "h"), [1, 1, 4, 4, 5])
    times(found, 3, "eliot.symbolicate.parse_sym_file.parse", "ms")
    for reason in ("bad_debug_id", "sym_debug_id_lookup_error", "sym_malformed"):
        equal(total(found, "eliot.symbolicate.parse_sym_file.error", "c", f"reason:{reason}"), 1, reason)
    times(found, 5, "eliot.downloader.download", "h", "response:success")
    times(found, 1, "eliot.downloader.download", "h", "response:fail")
    times(found, 5, "eliot.diskcache.get", "h", "result:hit")
    times(found, 6, "eliot.diskcache.get", "h", "result:miss")
    times(found, 3, "eliot.diskcache.set", "h", "result:success")
    equal(values(found, "eliot.diskcache.usage", "g"), [size])
    equal(total(found, "tecken.symbolicate_cache_hit", "c"), 5)
    equal(total(found, "tecken.symbolicate_cache_miss", "c"), 6)
    equal(total(found, "tecken.symbolicate_download_fail", "c"), 3)
    equal(found, {})


def test_evictions_send_mozilla_metrics(work, objects):
    server = Receiver()
    modules = [(f"lib{i}.so", f"{i + 1:032X}0") for i in range(6)]
    text = "".join(f"FUNC {i * 16:x} 10 0 function_number_{i}\n" for i in range(300))
    files = {place(m): f"MODULE Linux x86_64 {m[1]} {m[0]}\n{text}".encode() for m in modules}
    with Upstream(files) as up, with_names(work, server, {"sources": [up.url], "lru": {"max_size": "16KiB", "evict_count": 1}}) as s:
        for module in modules:
            ask(s, job([module], [[[0, 0]]]))
        kind = os.path.join(s.cache, "mozilla_syms")
        left = sum(not f.endswith(".metadata") for _, _, names in os.walk(kind) for f in names)
    found = collected(server)
    evicted = total(found, "eliot.diskcache.evict", "c")
    equal((evicted > 0, evicted + left), (True, 6), (evicted, left))


def test_symbol_server_sends_mozilla_metrics(work, objects):
    server = Receiver()
    store = os.path.join(work, "store")
    mozilla = {"tokens": pushing.TOKENS, "sources": [], "store": {"filesystem": {"path": store}}}
    sample = dict(pushing.SAMPLE)
    with with_names(work, server, mozilla) as s:
        for _ in range(2):  # the second time they are there
            equal(pushing.upload(s, sample)[0], 201)
        equal(pushing.upload(s, {"a.so/1A/a.sym": pushing.SYM}, headers=pushing.TRY)[0], 201)
        md5 = hashlib.md5(pushing.SYM).hexdigest()
        files = [{"key": key, "size": len(pushing.SYM), "md5_hash": md5} for key in (pushing.XPC, "new.so/1B/new.sym", "bad")]
        status, answer = pushing.send(s, json.dumps({"files": files}).encode(), path="/upload/v2/", kind="application/json")
        equal((status, [f["action"]["type"] for f in answer["files"]]), (201, ["skip", "upload", "error"]))
        old = time.time() - 10 * 86400
        os.utime(os.path.join(store, "v1", pushing.XPC), (old, old))
        for path, status in ((pushing.XPC, 200), ("try/a.so/1A/a.sym", 200), ("a.so/1A/a.sym", 404), ("xpcshell/80AE0509E7CE/xpcshell.sym", 302),
                             ("api/syminfo/xpcshell/80AE0509E7CE", 200)):
            equal(pushing.get(s, path)[0], status, path)
    found = collected(server)
    for name, count in (("upload_archive", 3), ("upload_v2", 1), ("upload_dump_and_extract", 3), ("upload_file_upload", 5),
                        ("upload_gzip_payload", 2), ("upload_put_object", 3), ("initiate_file_upload", 1), ("download_symbol", 4),
                        ("syminfo.lookup.timing", 3)):
        times(found, count, f"tecken.{name}", "ms")
    times(found, 8, "tecken.upload_file_exists", "ms")  # of a try in both parts
    times(found, 5, "tecken.symboldownloader_exists", "ms")
    for name, count in (("upload_file_upload_upload", 3), ("upload_file_upload_skip", 2), ("upload_skip_early_compressed", 1),
                        ("upload_skip_early_uncompressed", 1), ("download_symbol_code_id_lookup", 2)):
        equal(total(found, f"tecken.{name}", "c"), count, name)
    equal(total(found, "tecken.syminfo.lookup.cached", "c", "result:false"), 3)
    equal(total(found, "tecken.upload_uploads", "c", "bucket:store", "try:False"), 2)
    equal(total(found, "tecken.upload_uploads", "c", "bucket:store", "try:True"), 1)
    for storage, days in (("regular", 10), ("try", 0)):
        (age,) = values(found, "tecken.symboldownloader.file_age_days", "h", f"storage:{storage}")
        equal(abs(age - days) < 0.1, True, (storage, age))
    equal({key for key in found if key[0].startswith("tecken.")}, set())


def test_failing_store_sends_mozilla_metrics(work, objects):
    server = Receiver()
    store = os.path.join(work, "store")
    os.mkdir(store)
    mozilla = {"tokens": pushing.TOKENS, "sources": [], "store": {"filesystem": {"path": store}}}
    with with_names(work, server, mozilla) as s:
        with open(os.path.join(store, "v1"), "w"):  # where a directory should be
            pass
        equal(pushing.upload(s, {pushing.XPC: pushing.SYM})[0], 500)
    found = collected(server)
    equal(total(found, "tecken.upload_file_upload_error", "c"), 1)
    equal(total(found, "tecken.upload_file_upload_upload", "c"), 0)


def test_mozilla_metrics_are_sent_only_when_configured(work, objects):
    """And where Eliot's environment says, when no file does."""
    server = Receiver()
    host, port = server.address.rsplit(":", 1)
    os.environ |= {"ELIOT_STATSD_HOST": host, "ELIOT_STATSD_PORT": port}
    try:
        for metrics in ({}, {"mozilla_names": True, "tags": False}):
            with Service(work, {"metrics": metrics, "mozilla": {"sources": []}}) as s:
                equal(s.request("GET", "/")[0], 200)
                text = s.request("GET", "/metrics")[2].decode()
                equal("eliot" in text or "tecken" in text, False)
            lines = server.collect()
            equal(any(line.startswith("symbolicator.") for line in lines), True)
            equal([line for line in lines if line.startswith("eliot.pageview")], ["eliot.pageview:1|c"] if metrics else [], lines)
            equal(any("eliot." in line and not line.startswith("eliot.") for line in lines), False)
            server.lines.clear()
    finally:
        del os.environ["ELIOT_STATSD_HOST"], os.environ["ELIOT_STATSD_PORT"]
