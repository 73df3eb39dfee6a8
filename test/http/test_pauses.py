"""Hosts that ask to be left alone (Retry-After), and hosts that are blocked because they kept failing."""
import os, subprocess, threading, time

import harness
from harness import Service, Upstream, equal, http_source, request, wait_until
from test_invalidation import AUTH, BEARER

LAYOUT = {"layout": {"type": "debuginfod"}}


class Busy:
    """Answers `status` with Retry-After until that is over; counts who comes before."""

    def __init__(self, objects, status, seconds):
        self.objects, self.status, self.seconds = objects, status, seconds
        self.until, self.early, self.refused, self.lock = None, 0, 0, threading.Lock()

    def __call__(self, handler):
        now = time.monotonic()
        with self.lock:
            self.early += self.until is not None and now < self.until - 0.01
            over = self.until is not None and now >= self.until - 0.01
            self.refused += not over
            if self.until is None:
                self.until = now + self.seconds
        if over:
            handler.reply(200, self.objects.full)
        else:
            handler.reply(self.status, headers=[("Retry-After", str(self.seconds))])


def body(objects, up, **options):
    return request(objects.module(), [objects.address("plain")],
                   sources=[http_source(up.url, id="busy", **LAYOUT, filters={"filetypes": ["elf_code"]})], options=options)


def others(objects, count):
    """Modules that are not there, at the same host."""
    return [objects.module(code_id=f"{n + 1:040x}", debug_id=None) for n in range(count)]


def test_short_retry_after_is_waited_for_by_all(work, objects):
    for status in (429, 503):
        busy = Busy(objects, status, 2)
        path = f"/{objects.build_id}/executable"
        with Upstream({path: busy}) as up, Service(work) as s:
            jobs = [threading.Thread(target=lambda m=m: s.symbolicate({**body(objects, up), "modules": [m]})) for m in others(objects, 12)]
            began = time.monotonic()
            first = threading.Thread(target=lambda: equal(s.symbolicate(body(objects, up))["modules"][0]["debug_status"], "found"))
            first.start()
            wait_until("the refusal", lambda: busy.refused)
            hits = sum(up.hits.values())
            for job in jobs:
                job.start()
            for job in [first, *jobs]:
                job.join(harness.DEADLINE)
            equal((busy.early, busy.refused, time.monotonic() - began >= 2), (0, 1, True))
            equal(hits, 1)  # of the others none before the end of the pause


def test_long_retry_after_is_no_failure_of_files(work, objects):
    """Look-ups meanwhile fail at once, and the host is not blocked; when the pause is released, it is asked again."""
    busy = Busy(objects, 429, 600)
    path = f"/{objects.build_id}/executable"
    settings = {"deny_list_threshold": 1, "auth": AUTH}
    with Upstream({path: busy}) as up, Service(work, settings) as s:
        answer = s.symbolicate(body(objects, up, dif_candidates=True))["modules"][0]
        equal((answer["debug_status"], busy.refused), ("fetching_failed", 1))
        said = [c["download"]["details"] for c in answer["candidates"] if c["location"].endswith("executable")]
        equal(said, ["download failed: 429 Too Many Requests"])
        other = s.symbolicate({**body(objects, up, dif_candidates=True), "modules": others(objects, 1)})["modules"][0]
        said = [c["download"]["details"] for c in other["candidates"] if c["location"].endswith("executable")]
        assert said[0].startswith("download failed: 127.0.0.1 asked to wait "), said
        equal(sum(up.hits.values()), 1)
        assert "host blocked" not in s.logged()
        busy.until = 0
        equal(s.request("DELETE", "/admin/blocked-hosts")[0], 401)
        equal(s.request("DELETE", "/admin/blocked-hosts", headers=BEARER)[0], 204)
        more = s.symbolicate({**body(objects, up), "modules": others(objects, 2)[1:]})["modules"][0]
        equal((more["debug_status"], sum(up.hits.values())), ("missing", 2))


def blocked(objects, up, s, n):
    """Whether the host is left alone: another module is asked for."""
    module = s.symbolicate({**body(objects, up, dif_candidates=True), "modules": others(objects, n + 1)[n:]})["modules"][0]
    return any("temporarily blocked" in c["download"].get("details", "") for c in module["candidates"])


def test_blocked_hosts_are_released_on_demand(work, objects):
    """By an operator's request, by the command beside the service, and by a configuration that exempts them."""
    broken = {f"/{m['code_id']}/executable": 500 for m in others(objects, 1)}
    with Upstream(broken) as up:
        for way in ("request", "command", "reload"):
            with Service(work, {"deny_list_threshold": 1, "auth": AUTH}) as s:
                equal((blocked(objects, up, s, 0), blocked(objects, up, s, 1)), (False, True))
                config = os.path.join(s.work, "config.yml")
                if way == "request":
                    equal(s.request("DELETE", "/admin/blocked-hosts", headers=BEARER)[0], 204)
                elif way == "command":
                    done = subprocess.run([harness.SYMLOOM, "cache", "invalidate", "--hosts", "-c", config], capture_output=True, text=True)
                    equal(done.returncode, 0, done.stderr)
                else:
                    with open(config) as f:
                        text = f.read()
                    with open(config, "w") as f:
                        f.write(text.replace('"deny_list_threshold"', '"deny_list_never_block_hosts": ["127.0.0.1"], "deny_list_threshold"'))
                    equal(s.request("POST", "/admin/reload", headers=BEARER)[0], 200)
                equal(blocked(objects, up, s, 2), False, way)
