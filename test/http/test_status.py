"""GET /status: what the service is, what it does and how its sources are."""
import base64, hashlib, json, os, re, socket, time

from faults import Redis
from harness import Service, Upstream, equal, http_source, request, wait_until

KEYS = ["version", "commit", "node", "state", "uptime_seconds", "jobs", "pool", "memory", "conversion", "disk", "caches", "shared", "sources",
        "scans", "history"]


def status(service, headers=None):
    code, answer_headers, body = service.request("GET", "/status", headers=headers)
    equal((code, answer_headers["content-type"], answer_headers["cache-control"]), (200, "application/json", "no-store"))
    return json.loads(body)


def test_fresh_service_reports_version_and_node(work, objects):
    with Service(work) as s:
        seen = status(s)
        equal(list(seen), KEYS)
        assert re.fullmatch(r"[0-9a-f]{12}|unknown", seen["commit"]), seen["commit"]
        equal(seen["node"], hashlib.sha256(socket.gethostname().encode()).hexdigest()[:4])
        equal((seen["state"], seen["jobs"]), ("ready", {"running": 0, "limit": 200, "finished_1h": 0, "failed_1h": 0}))
        disk = os.statvfs(s.cache)
        equal(seen["disk"]["size"], disk.f_blocks * disk.f_frsize)
        assert seen["memory"]["resident"] > 1 << 20 and seen["memory"]["budget"] > 1 << 20 and seen["pool"]["threads"] >= 2, seen
        equal((seen["shared"], seen["sources"], seen["history"]["step_seconds"]), ([], [], 60))
        (point,) = seen["history"]["points"]
        equal(list(point), ["t", "requests", "errors", "lookups", "computed", "p50_ms", "p99_ms"])
        equal((point["requests"], point["p50_ms"], point["p99_ms"]), (0, None, None))  # it does not count itself
        assert abs(time.time() - time.mktime(time.strptime(point["t"], "%Y-%m-%dT%H:%M:%SZ")) + time.timezone) < 100, point
        equal([list(c) for c in seen["caches"][:1]], [["name", "memory_bytes", "disk_bytes", "disk_files", "lookups_1h", "computed_1h"]])


def test_status_counts_requests_lookups_and_jobs(work, objects):
    with Upstream(objects.layout()) as upstream, Service(work, {"max_concurrent_requests": None}) as s:
        body = request(objects.module(), [4096], sources=[http_source(upstream.url)])
        for _ in range(3):
            s.symbolicate(body)
        equal(s.post("/symbolicate", "{")[0], 400)
        seen = status(s)
        equal(seen["jobs"], {"running": 0, "limit": None, "finished_1h": 3, "failed_1h": 0})
        point = seen["history"]["points"][-1]
        equal((point["requests"], point["errors"]), (4, 0))
        assert point["lookups"] > point["computed"] > 0 and 0 <= point["p50_ms"] <= point["p99_ms"], point
        by_name = {c["name"]: c for c in seen["caches"]}
        assert by_name["symcaches"]["lookups_1h"] >= by_name["symcaches"]["computed_1h"] == 1, by_name
        assert by_name["symcaches"]["memory_bytes"] > 0, by_name
        equal(sum(c["lookups_1h"] for c in seen["caches"]), point["lookups"])


def test_health_of_sources_is_listed(work, objects):
    with Upstream({}) as upstream:
        sources = [http_source(upstream.url, id="web"),
                   {"id": "files", "type": "filesystem", "path": work, "layout": {"type": "symstore"}}]
        with Service(work, {"sources": sources}) as s:
            web, files = status(s)["sources"]
            equal(web, {"id": "web", "type": "http", "layout": web["layout"], "last_success": None, "last_error": None,
                        "last_error_at": None, "blocked_until": None, "ok_1h": 0, "not_found_1h": 0, "failed_1h": 0, "up": None})
            equal((files["type"], files["layout"]), ("filesystem", "symstore"))
            s.symbolicate({k: v for k, v in request(objects.module(), [4096]).items() if k != "sources"})
            web, files = status(s)["sources"]
            assert web["last_success"] and web["not_found_1h"] > 0 and not web["failed_1h"] and web["up"] is True, web
            assert files["last_success"] and files["not_found_1h"] > 0, files


def test_failing_source_is_listed_without_secrets(work, objects):
    secret = "s3cr3t"
    with Upstream({path: 500 for path in objects.layout()}) as upstream:
        url = upstream.url.replace("http://", f"http://user:{secret}@")
        settings = {"sources": [http_source(url, id="web", headers={"Authorization": secret})], "deny_list_threshold": 1}
        with Service(work, settings, args=["--log-level", "trace"]) as s:
            s.symbolicate({k: v for k, v in request(objects.module(), [4096]).items() if k != "sources"})
            web = status(s)["sources"][0]
            assert web["failed_1h"] > 0 and web["last_error"] and web["last_error_at"] and web["blocked_until"] and web["up"] is False, web
            wait_until("the warning", lambda: "source web is failing" in s.logged())
            assert secret not in json.dumps(status(s)) and secret not in s.logged()


def test_shared_cache_back_ends_are_listed(work, objects):
    with Redis(work) as redis:
        with Service(work, {"shared_cache": {"redis": {"url": redis.url}}}) as s:
            equal(status(s)["shared"], [{"backend": "redis", "up": True, "last_error": None}])


def test_without_the_right_only_version_and_state_are_shown(work, objects):
    keys = [{"id": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "rights": [name]} for name in ("status", "metrics")]
    with Service(work, {"auth": {"require": ["status"], "keys": keys}}) as s:
        for headers in (None, {"Authorization": "Bearer metrics"}, {"Authorization": "Bearer wrong"}):
            equal(list(status(s, headers)), ["version", "state"], headers)
        basic = base64.b64encode(b"status:status").decode()
        for headers in ({"Authorization": "Bearer status"}, {"Authorization": "Basic " + basic}, {"X-Api-Key": "status"}):
            equal(list(status(s, headers)), KEYS, headers)


def test_head_gives_the_headers_of_get(work, objects):
    with Service(work) as s:
        code, headers, body = s.request("HEAD", "/status")
        assert code == 200 and int(headers["content-length"]) > 100 and body == b"", (code, headers)


def test_disk_sizes_are_measured_without_cleanup(work, objects):
    with Upstream(objects.layout()) as upstream, Service(work) as s:
        equal(sum(c["disk_bytes"] for c in status(s)["caches"]), 0)
        s.symbolicate(request(objects.module(), [4096], sources=[http_source(upstream.url)]))

        def measured():
            return {c["name"]: (c["disk_files"], c["disk_bytes"]) for c in status(s)["caches"] if c["disk_files"]}
        wait_until("sizes", lambda: "symcaches" in measured())
        on_disk = {}
        for kind in ("objects", "symcaches", "object_meta"):
            paths = [os.path.join(at, f) for at, _, files in os.walk(os.path.join(s.cache, kind)) for f in files if not f.endswith(".metadata")]
            on_disk[kind] = len(paths), sum(map(os.path.getsize, paths))
        equal({kind: measured()[kind] for kind in on_disk}, on_disk)
        assert on_disk["objects"][1] > len(objects.debug)
