"""Eliot's environment alone makes the service answer as Eliot does; and the heartbeat of a service with symbol stores."""
import contextlib, json, os, threading

from harness import Service, Upstream, equal, wait_until
from servers import free_port
from test_symbolicate import FILES, P, place


@contextlib.contextmanager
def eliot(work, urls, config=None):
    os.environ["ELIOT_SYMBOLS_URLS"] = urls
    try:
        with Service(work, {"connect_to_reserved_ips": False, **(config or {})}) as s:
            yield s
    finally:
        del os.environ["ELIOT_SYMBOLS_URLS"]


def ask(s, offset, module=P):
    status, _, text = s.request("POST", "/symbolicate/v5", json.dumps({"memoryMap": [list(module)], "stacks": [[[0, offset]]]}))
    if status != 200:
        return status
    result = json.loads(text)["results"][0]
    return result["stacks"][0][0].get("function"), list(result["found_modules"].values())[0]


def test_eliot_environment_alone_configures_the_service(work, objects):
    """No neighbours' names, no v4 at the root, a store that does not answer is none; and the operator's own store is at any address."""
    with Upstream({place(P): FILES[P].encode()}) as up:
        with eliot(work, up.url) as s:
            equal([ask(s, o) for o in (0x5380, 0x53c4, 0x80000000)], [("testproj::main", True), (None, True), (None, True)])
            equal(s.request("POST", "/", "{}")[0], 405)
        with Upstream({place(P): lambda h: h.reply(302, headers=[("Location", up.url[:-1].replace("127.0.0.1", "localhost") + place(P))])}) as away:
            with eliot(work, away.url) as s:  # where that sends us is not the operator's word
                equal((ask(s, 0x5380), "reserved IP address" in s.logged()), ((None, False), True))
        with eliot(work, up.url, {"mozilla": {}}) as s:  # who has a section says there what is wanted
            equal((ask(s, 0x80000000), s.request("POST", "/", "{}")[0]), (("testproj::main", True), 400))


def test_store_at_reserved_address_is_warned_of(work, objects):
    """Its operator hears of it at the start, and when the configuration is read anew."""
    told = "a configured source is not asked because its address is reserved"
    with Upstream({}) as up:
        for config, count in (({"mozilla": {"sources": [up.url]}}, 1), ({"sources": [{"id": "own", "type": "http", "url": up.url.replace("127.0.0.1", "localhost")}]}, 1),
                              ({"mozilla": {"sources": [up.url]}, "allowed_reserved_networks": ["127.0.0.0/8"]}, 0)):
            with Service(work, {"connect_to_reserved_ips": False, **config}) as s:
                if count:
                    wait_until("the warning", lambda: told in s.logged())
                s.request("GET", "/__heartbeat__")
                equal(s.logged().count(told), count, config)


def heartbeat(s):
    return s.request("GET", "/__heartbeat__")[0]


def test_heartbeat_probes_the_stores(work, objects):
    """That a store is not there is seen without requests, and so is that it is back."""
    port = free_port()
    with Upstream({}) as up, Service(work, {"mozilla": {"sources": [up.url]}}) as s:
        equal(heartbeat(s), 200)
        probes = sum(up.hits.values())
        equal([heartbeat(s) for _ in range(5)], [200] * 5)
        equal(sum(up.hits.values()), probes)  # not each time
    with Service(work, {"mozilla": {"sources": [f"http://127.0.0.1:{port}"]}}) as s:
        equal(heartbeat(s), 500)
        with Back(port):
            wait_until("the store", lambda: heartbeat(s) == 200)
    gate = threading.Event()
    class Hanging(dict):
        def get(self, path, other=None):
            return lambda handler: gate.wait()
    with Upstream(Hanging()) as up, Service(work, {"mozilla": {"sources": [up.url]}}) as s:
        equal(heartbeat(s), 500)
        gate.set()


class Back(Upstream):
    """A store at a port where there was none."""

    def __init__(self, port):
        import http.server
        from harness import UpstreamHandler
        http.server.ThreadingHTTPServer.__init__(self, ("127.0.0.1", port), UpstreamHandler)
        self.routes, self.hits, self.lock = {}, {}, threading.Lock()
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()
