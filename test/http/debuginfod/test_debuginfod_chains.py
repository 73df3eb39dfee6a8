"""Servers that ask each other: a symloom below symloom, elfutils' debuginfod below it, what they tell each other, and how it ends."""
import os, re, threading

from harness import Service, Upstream, debuginfod, equal, free_port, http_source, wait_until
from split_program import Client, Program, TEXT, directory, requests_of


def above(service_or_url, **keys):
    """A source that is another server."""
    url = service_or_url if isinstance(service_or_url, str) else f"http://127.0.0.1:{service_or_url.port}/"
    return http_source(url + "buildid/", **keys)


def test_client_of_two_nodes_gets_everything(work, objects):
    t = Program(work)
    with Service(work, {"sources": [directory(work, t)], "debuginfod": {"source_roots": [t.dir]}}) as far, Service(work, {"sources": [above(far)]}) as near:
        client = Client(work, near)
        for words, data in ((("debuginfo", t.id), t.debug), (("executable", t.id), t.stripped), (("source", t.id, t.source), TEXT.encode()),
                            (("section", t.id, ".debug_info"), t.section(".debug_info", "t.debug"))):
            equal(client.find(*words) == data, True, words)
        equal(near.request("GET", t.path("debuginfo"))[1]["X-DEBUGINFOD-FILE"], "debuginfo")
        equal(client.find("debuginfo", "00112233"), None)
        equal(len(requests_of(far, t.path("debuginfo"))), 1, "it is kept")


def test_client_keeps_nothing_while_the_far_node_is_down(work, objects):
    t, port = Program(work), free_port()
    far = {"bind": f"127.0.0.1:{port}", "sources": [directory(work, t)]}
    with Service(work, {"sources": [above(f"http://127.0.0.1:{port}/", attempts=1)], "debuginfod": {"hold": "20s"}}) as near:
        found, client = [], Client(work, near)
        asking = threading.Thread(target=lambda: found.append(client.find("debuginfo", t.id)))
        asking.start()
        wait_until("a failed download", lambda: re.search(r'symloom_source_up\{.*\} 0', near.request("GET", "/metrics")[2].decode()))
        with Service(work, far):
            asking.join(60)
        equal(found == [t.debug], True, client.error)


def test_headers_of_an_upstream_are_kept_and_sent_on(work, objects):
    """Its archive by name alone, also after a restart; what is no header is not."""
    t = Program(work)
    sent = (("X-DEBUGINFOD-FILE", "/usr/lib/debug/t.debug"), ("X-Debuginfod-Archive", "/srv/pool/t-dbgsym_1.deb"),
            ("X-DEBUGINFOD-IMASIGNATURE", "0302" * 200), ("X-DEBUGINFOD-SIZE", "1"), ("X-DEBUGINFOD-OTHER", "x"))
    expected = {"FILE": "/usr/lib/debug/t.debug", "ARCHIVE": "t-dbgsym_1.deb", "IMASIGNATURE": "0302" * 200, "SIZE": str(len(t.debug)), "OTHER": None}
    cache = os.path.join(work, "cache")
    with Upstream({f"/{t.id}/debuginfo": lambda handler: handler.reply(200, t.debug, sent)}) as up:
        for _ in range(2):
            with Service(work, {"sources": [http_source(up.url)]}, cache) as s:
                headers = s.request("GET", t.path("debuginfo"))[1]
                equal({name: headers["X-DEBUGINFOD-" + name] for name in expected}, expected)
                equal(s.request("GET", t.path("section/.debug_info"))[1]["X-DEBUGINFOD-ARCHIVE"], "t-dbgsym_1.deb")
        equal(up.hits[f"/{t.id}/debuginfo"], 1)
    odd = (("X-DEBUGINFOD-FILE", "a\tb"), ("X-DEBUGINFOD-ARCHIVE", "x" * 5000))
    with Upstream({f"/{t.id}/debuginfo": lambda handler: handler.reply(200, t.debug, odd)}) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        headers = s.request("GET", t.path("debuginfo"))[1]
        equal((headers["X-DEBUGINFOD-FILE"], headers["X-DEBUGINFOD-ARCHIVE"]), ("debuginfo", None))


def test_debuginfod_of_elfutils_below_and_above(work, objects):
    """Its files reach a client through symloom with their headers; and it asks symloom for what it does not have."""
    t = Program(work)
    with debuginfod(work, t.dir) as url:
        with Service(work, {"sources": [above(url)]}) as s:
            wait_until("a scan", lambda: Client(work, url.rstrip("/")).find("executable", t.id))
            client = Client(work, s)
            for words, data in ((("source", t.id, t.source), TEXT.encode()), (("section", t.id, ".text"), t.section(".text"))):
                equal(client.find(*words) == data, True, (words, client.error))
            headers = s.request("GET", t.path("debuginfo"))[1]
            assert headers["X-DEBUGINFOD-FILE"] in ("full", "t.debug", "symbols"), headers["X-DEBUGINFOD-FILE"]
    empty = os.path.join(work, "empty")
    os.mkdir(empty)
    with Service(work, {"sources": [directory(work, t)]}) as s:
        os.environ["DEBUGINFOD_URLS"], before = f"http://127.0.0.1:{s.port}", os.environ.get("DEBUGINFOD_URLS")
        os.environ["DEBUGINFOD_CACHE_PATH"] = os.path.join(work, "of-server")
        try:
            with debuginfod(work, empty) as url:
                equal(Client(work, url.rstrip("/")).find("debuginfo", t.id) == t.debug, True)
        finally:
            del os.environ["DEBUGINFOD_CACHE_PATH"]
            os.environ["DEBUGINFOD_URLS"] = before or ""
            if before is None:
                del os.environ["DEBUGINFOD_URLS"]


def test_forwarded_requests_name_their_clients_and_end(work, objects):
    t, seen = Program(work), []

    def route(handler):
        seen.append(handler.headers.get_all("X-Forwarded-For"))
        handler.reply(200, t.debug if "debuginfo" in handler.path else b"text")

    paths = {f"/{t.id}/debuginfo": route, f"/{t.id}/source/a.c": route, f"/{t.id}/source/b.c": route}
    with Upstream(paths) as up, Service(work, {"sources": [http_source(up.url)], "debuginfod": {"max_hops": 3}}) as s:
        hops = lambda n: {"X-Forwarded-For": ", ".join(f"10.0.0.{i}" for i in range(n))}
        equal(s.request("GET", t.path("debuginfo"), headers=hops(3))[0], 404, "passed on too often")
        equal(s.request("GET", t.path("source/a.c"), headers=hops(3))[0], 404)
        equal(seen, [])
        equal(s.request("GET", t.path("debuginfo"), headers=hops(2))[0], 200)
        equal(s.request("GET", t.path("source/a.c"))[0], 200)
        equal(seen, [["10.0.0.0, 10.0.0.1, 127.0.0.1"], ["127.0.0.1"]])
    with Upstream(paths) as up, Service(work, {"sources": [http_source(up.url)], "debuginfod": {"max_hops": 0}}) as s:
        equal(s.request("GET", t.path("debuginfo"))[0], 404, "upstreams are for others")
        body = {"stacktraces": [{"frames": [{"instruction_addr": "0x1000"}]}],
                "modules": [{"type": "elf", "code_id": t.id, "image_addr": "0x0", "image_size": 0x10000}]}
        equal(s.symbolicate(body)["modules"][0]["debug_status"], "found", "which is not limited")
        equal(seen[-1], None, "and names nobody")


def test_servers_that_ask_each_other_answer(work, objects):
    """Each has what the other does not have, and neither waits for itself: nor does one that asks itself."""
    ports, programs = (free_port(), free_port()), (Program(work), Program(work, "u", ["-DU"]))
    config = lambda i, other: {"bind": f"127.0.0.1:{ports[i]}", "sources": [directory(work, programs[i]), above(f"http://127.0.0.1:{ports[other]}/", attempts=1)]}
    with Service(work, config(0, 1)) as a, Service(work, config(1, 0)) as b:
        for service in (a, b):
            for program in programs:
                equal(service.request("GET", program.path("debuginfo"))[2] == program.debug, True)
            for path in ("/buildid/00112233/debuginfo", programs[0].path("section/.nosuch"), programs[1].path("source/none.c")):
                equal(service.request("GET", path)[0], 404, path)
    with Service(work, config(0, 0)) as a:
        equal(a.request("GET", programs[0].path("debuginfo"))[2] == programs[0].debug, True)
        equal(a.request("GET", programs[1].path("debuginfo"))[0], 404)
