"""Failures of sources are remembered while they last, and no longer."""
import glob, json, os, re, threading

import harness
from faults import World
from harness import Service, Upstream, equal, http_source, request, wait_until

ALL = 12


def statuses(service, world, modules, sources=None):
    body = world.body(modules)
    if sources is not None:
        body["sources"] = sources
    return [m["debug_status"] for m in service.symbolicate(body)["modules"]]


def details(service, world, module, sources):
    answer = service.symbolicate({**world.body([module]), "sources": sources, "options": {"dif_candidates": True}})
    return [c["download"].get("details", c["download"]["status"]) for c in answer["modules"][0]["candidates"]]


def make_older(cache, seconds):
    """What is in the cache was put there so long ago."""
    for path in glob.glob(os.path.join(cache, "**", "*.metadata"), recursive=True):
        with open(path) as f:
            meta = json.load(f)
        meta["time_created"] -= seconds
        with open(path + ".new", "w") as f:
            json.dump(meta, f)
        os.rename(path + ".new", path)


class Outage:
    """The world's server, which answers all with this as long as `route` is there."""

    def __init__(self, world):
        self.world, self.good = world, dict(world.up.routes)

    def begin(self, route, but=()):
        for path in self.good:
            if not any(m.build_id in path for m in but):
                self.world.up.routes[path] = route

    def end(self):
        self.world.up.routes.update(self.good)

    def hits(self):
        return sum(self.world.up.hits.values())


def hang(handler):
    harness.time.sleep(1.5)
    handler.reply(404)


FAILURES = {
    "500": (500, "fetching_failed"),
    "403": (403, "fetching_failed"),
    "401": (401, "fetching_failed"),
    "429": (429, "fetching_failed"),
    "empty": (b"", "fetching_failed"),
    "page": (b"\n<!DOCTYPE html>\n<title>Log in</title>", "fetching_failed"),
    "time-out": (hang, "timeout"),
}


def test_failed_files_are_retried_once_the_source_answers(work, objects):
    """A file that is got tells that the others may be too."""
    with World(objects, ALL) as world:
        outage = Outage(world)
        for name, (route, status) in FAILURES.items():
            sources = world.body([])["sources"]
            with Service(work, {"max_download_timeout": "1s" if name == "time-out" else "1m"}) as s:
                first, other = world.modules[:3], world.modules[4]
                outage.begin(route)
                equal(statuses(s, world, first), [status] * 3, name)
                hits = outage.hits()
                equal(statuses(s, world, first), [status] * 3, name)
                equal(outage.hits(), hits, f"{name}: remembered")
                outage.end()
                equal(statuses(s, world, first), [status] * 3, name)
                equal(outage.hits(), hits, f"{name}: remembered, although it is over")
                equal(statuses(s, world, [other]), ["found"], name)
                equal(statuses(s, world, first), ["found"] * 3, name)


def test_failing_source_is_probed_with_one_file(work, objects):
    """In half a minute one of those that failed, whichever comes first; of all processes of a directory."""
    with World(objects, ALL) as world:
        outage, modules = Outage(world), world.modules
        cache = os.path.join(work, "cache")
        outage.begin(500)
        with Service(work, cache_dir=cache) as s:
            equal(statuses(s, world, modules), ["fetching_failed"] * ALL)
        make_older(cache, 40)
        hits = outage.hits()
        with Service(work, cache_dir=cache) as s:
            for _ in range(3):
                equal(statuses(s, world, modules), ["fetching_failed"] * ALL)
            equal(outage.hits() - hits, 3, "the attempts of one file")
        make_older(cache, 40)
        outage.end()
        hits = outage.hits()
        with Service(work, cache_dir=cache) as s:
            equal(statuses(s, world, modules[:1]), ["found"])
            equal(outage.hits() - hits, 1)
            equal(statuses(s, world, modules), ["found"] * ALL)
            equal(outage.hits() - hits, ALL)


def test_single_failing_file_is_retried_rarely(work, objects):
    """A source that answers for the others is let off once, and then for half a minute no more."""
    with World(objects, ALL) as world, Service(work) as s:
        outage, modules = Outage(world), world.modules
        bad, path = modules[0], f"/{modules[0].build_id}/debuginfo"
        world.up.routes[path] = 500
        for module in modules[1:]:
            equal(statuses(s, world, [bad, module]), ["fetching_failed", "found"])
        if world.up.hits[path] > 2 * 3:
            raise AssertionError(f"{world.up.hits[path]} requests")


def test_recovery_is_seen_by_another_process(work, objects):
    """What a process of the directory has got, another one need not ask for to know that the source answers."""
    with World(objects, ALL) as world:
        outage, modules, cache = Outage(world), world.modules, os.path.join(work, "cache")
        source = world.body([])["sources"]
        with Service(work, {"sources": source}, cache_dir=cache) as a, Service(work, {"sources": source}, cache_dir=cache) as b:
            outage.begin(500)
            ask = lambda s, which: [m["debug_status"] for m in s.symbolicate({k: v for k, v in world.body(which).items() if k != "sources"})["modules"]]
            equal(ask(a, modules[:3]), ["fetching_failed"] * 3)
            equal(json.loads(a.request("GET", "/status")[2])["sources"][0]["up"], False)
            outage.end()
            equal(ask(b, modules[4:5]), ["found"])
            hits = outage.hits()
            equal(ask(a, modules[4:5]), ["found"])
            equal(outage.hits(), hits, "it was there")
            equal(json.loads(a.request("GET", "/status")[2])["sources"][0]["up"], True)
            equal(ask(a, modules[:3]), ["found"] * 3)


def test_remounted_directories_are_used_again(work, objects):
    with World(objects, ALL) as world:
        mount = os.path.join(work, "mount")
        source = {"id": "local", "type": "filesystem", "path": mount, "layout": {"type": "debuginfod"}}
        with Service(work, {"sources": [source]}) as s:
            body = {k: v for k, v in world.body(world.modules[:3]).items() if k != "sources"}
            ask = lambda: [m["debug_status"] for m in s.symbolicate(body)["modules"]]
            equal(ask(), ["fetching_failed"] * 3)
            equal(ask(), ["fetching_failed"] * 3)
            for path, data in world.up.routes.items():
                os.makedirs(os.path.dirname(mount + path), exist_ok=True)
                with open(mount + path, "wb") as f:
                    f.write(data)
            other = {k: v for k, v in world.body(world.modules[3:4]).items() if k != "sources"}
            equal(s.symbolicate(other)["modules"][0]["debug_status"], "found")
            equal(ask(), ["found"] * 3)
            wait_until("the log", lambda: "source local is failing" in s.logged())
            equal(s.logged().count("source local is failing"), 1)
            text = s.request("GET", "/metrics")[2].decode()
            equal('symloom_source_up{source="local"} 1' in text, True)


def test_unmounted_directories_are_reported_before_requests(work, objects):
    with World(objects, 1) as world:
        mount, missing = os.path.join(work, "mount"), os.path.join(work, "missing")
        os.makedirs(mount)
        sources = [{"id": id, "type": "filesystem", "path": path, "layout": {"type": "debuginfod"}} for id, path in (("a", mount), ("b", missing))]
        with Service(work, {"sources": sources}) as s:
            told = lambda: {x["id"]: (x["up"], re.split(": |; ", x["last_error"] or "")[-1]) for x in json.loads(s.request("GET", "/status")[2])["sources"]}
            wait_until("both down", lambda: told() == {"a": (False, "is it mounted?"), "b": (False, "No such file or directory")})
            wait_until("the log", lambda: "source a is failing" in s.logged() and "source b is failing" in s.logged())
            equal('symloom_source_up{source="a"} 0' in s.request("GET", "/metrics")[2].decode(), True)
            body = {k: v for k, v in world.body(world.modules).items() if k != "sources"}
            equal(s.symbolicate(body)["modules"][0]["debug_status"], "fetching_failed")
            for path, data in world.up.routes.items():
                os.makedirs(os.path.dirname(mount + path), exist_ok=True)
                with open(mount + path, "wb") as f:
                    f.write(data)
            wait_until("one is up", lambda: told()["a"][0] is True)
            equal(s.symbolicate(body)["modules"][0]["debug_status"], "found")


def test_web_pages_and_empty_answers_are_no_debug_files(work, objects):
    """Of every kind of source: what a proxy says that wants a log-in says nothing about the file."""
    pages = (b"<html><body>Please log in</body></html>", b"\xef\xbb\xbf \r\n<!doctype HTML>", b"<!-- --><head><meta charset=utf-8>")
    with World(objects, 1) as world:
        module, = world.modules
        path = f"/{module.build_id}/debuginfo"
        for i, page in enumerate([*pages, b""]):
            expected = "the server sent " + ("a web page instead of the file; it may require a login" if page else "an empty file")
            world.up.routes[path] = lambda handler: handler.reply(200, page, [("Content-Type", "text/html; charset=utf-8")])
            with Service(work) as s:
                equal(details(s, world, module, world.body([])["sources"])[0], f"download failed: {expected}", page)
                equal(statuses(s, world, [module]), ["fetching_failed"])
        # what looks like a page, and is none, is told of as before
        world.up.routes[path] = b"<plist></plist>"
        with Service(work) as s:
            equal(statuses(s, world, [module]), ["malformed"])
        mount = os.path.join(work, "empty")
        os.makedirs(os.path.dirname(mount + path))
        open(mount + path, "wb").close()
        source = {"id": "local", "type": "filesystem", "path": mount, "layout": {"type": "debuginfod"}, "filters": {"filetypes": ["elf_debug"]}}
        with Service(work, {"allow_filesystem_sources_in_requests": True}) as s:
            equal(details(s, world, module, [source]), ["download failed: the file is empty"])
        bucket = {"id": "bucket", "type": "s3", "bucket": "symbols", "access_key": "a", "secret_key": "b", "layout": {"type": "debuginfod"},
                  "filters": {"filetypes": ["elf_debug"]}}
        with Service(work) as s:
            for i, (page, said) in enumerate(((pages[1], "a web page"), (b"", "an empty file"))):
                world.up.routes["/symbols" + path] = page
                source = {**bucket, "id": f"b{i}", "region": ["x", world.up.url]}
                assert details(s, world, module, [source])[0].startswith(f"download failed: the server sent {said}"), page


def test_web_pages_and_empty_answers_are_no_mappings_or_scripts(work, objects):
    page = b"<!doctype html><title>Log in</title>"
    proguard = "/82/36f5cf52c84e35a7cf01421e4c2c88/proguard"
    routes = {proguard: page, "/app.js": page, "/page": b"<html>here is a script</html>"}
    with Upstream(routes) as up, Service(work) as s:
        def mapping():
            body = {"sources": [http_source(up.url, layout={"type": "unified"})], "exceptions": [], "stacktraces": [],
                    "modules": [{"type": "proguard", "uuid": "8236f5cf-52c8-4e35-a7cf-01421e4c2c88"}]}
            return json.loads(s.post("/symbolicate-jvm", body)[2])["errors"]

        def scripts(name):
            body = {"source": {"id": "s", "type": "sentry", "url": up.url + "lookup", "token": "x"}, "platform": "javascript",
                    "stacktraces": [{"frames": [{"abs_path": up.url + name, "lineno": 1, "colno": 4}]}], "modules": [], "scraping": {"enabled": True}}
            answer = json.loads(s.post("/symbolicate-js", body)[2])
            return [(a["status"], a.get("reason"), a.get("details")) for a in answer["scraping_attempts"]][0]

        equal([e["type"] for e in mapping()], ["missing"])
        equal(scripts("app.js"), ("failure", "download_error", "the server sent a web page instead of the file; it may require a login"))
        equal(scripts("page"), ("success", None, None))
