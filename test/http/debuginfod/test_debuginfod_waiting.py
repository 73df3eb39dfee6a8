"""A debuginfod server whose sources fail: elfutils' clients remember every status but 200 and 406 for ten minutes, so they wait, or their
connection is reset. Nothing is left in their cache but what is true."""
import contextlib, os, re, socket, threading, time

from harness import Service, Upstream, equal, free_port, http_source, wait_until
from split_program import Client, Program, directory, requests_of

SOON = {"debuginfod": {"hold": "1s"}}  # long enough for an answer, short for a test


def down():
    """The URL of a server that is not there."""
    return f"http://127.0.0.1:{free_port()}/"


def raw(service, path, agent):
    """What comes back before the connection ends, and whether it ends by a reset."""
    with socket.create_connection(("127.0.0.1", service.port), 60) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n".encode())
        data = b""
        try:
            while piece := connection.recv(1 << 16):
                data += piece
        except ConnectionResetError:
            return data, True
        return data, False


def fails(status):
    return lambda handler: handler.reply(status)


def cut(data):
    """Sends a head that promises more than comes."""
    def route(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:len(data) // 2])
        handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_RDWR)
        handler.close_connection = True
    return route


def test_client_remembers_nothing_while_all_sources_are_down_and_succeeds_when_they_are_up(work, objects):
    t, port = Program(work), free_port()
    with Service(work, {"sources": [http_source(f"http://127.0.0.1:{port}/buildid/", attempts=1)], "debuginfod": {"hold": "1s"}}) as s:
        client = Client(work, s)
        equal(client.find("debuginfo", t.id), None)
        assert "reset" in client.error, client.error
        equal(client.kept(), [])
        wait_until("three requests", lambda: len(requests_of(s, t.path("debuginfo"))) == 3)
        equal({"aborted=refused" in line for line in requests_of(s, t.path("debuginfo"))}, {True})
    with Service(work, {"sources": [http_source(f"http://127.0.0.1:{port}/buildid/", attempts=1)]}) as s:
        client, found = Client(work, s), []
        asking = threading.Thread(target=lambda: found.append(client.find("debuginfo", t.id)))
        asking.start()
        wait_until("a failed download", lambda: re.search(r'symloom_source_up\{.*\} 0', s.request("GET", "/metrics")[2].decode()))
        with Service(work, {"bind": f"127.0.0.1:{port}", "sources": [directory(work, t)]}):
            asking.join(60)
        equal(found == [t.debug], True, "the request has waited for the source")


def test_no_negative_file_is_left_after_failures_of_a_source(work, objects):
    """Each failure ends as a reset; none as a file in the client's cache."""
    t = Program(work)
    for name, route in (("500", fails(500)), ("429", fails(429)), ("503", fails(503)), ("cut", cut(t.debug)), ("empty", lambda handler: handler.connection.close())):
        for kind, words in (("debuginfo", ()), ("executable", ()), ("source", (t.source,)), ("section", (".text",))):
            with Upstream({f"/{t.id}/{path}": route for path in ("debuginfo", "executable", "source" + t.source)}) as up, \
                    Service(work, {"sources": [http_source(up.url, attempts=1)], "debuginfod": {"hold": "100ms"}}) as s:
                client = Client(work, s)
                equal((client.find(kind, t.id, *words), client.kept()), (None, []), (name, kind, client.error))


def test_slow_source_is_waited_for_without_a_head(work, objects):
    t, release = Program(work), threading.Event()

    def slow(handler):
        release.wait(30)
        handler.reply(200, t.debug)

    with Upstream({f"/{t.id}/debuginfo": slow}) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        with socket.create_connection(("127.0.0.1", s.port), 60) as connection:
            connection.sendall(f"GET {t.path('debuginfo')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            wait_until("the request at the source", lambda: up.hits.get(f"/{t.id}/debuginfo"))
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                raise AssertionError(f"sent early: {connection.recv(100)!r}")
            connection.settimeout(60)
            release.set()
            equal(connection.recv(12), b"HTTP/1.1 200")


def test_source_that_is_too_slow_ends_in_a_reset(work, objects):
    t, release = Program(work), threading.Event()
    with Upstream({f"/{t.id}/debuginfo": lambda handler: release.wait(60)}) as up, Service(work, {"sources": [http_source(up.url)], **SOON}) as s:
        client = Client(work, s)
        equal((client.find("debuginfo", t.id), client.kept()), (None, []), client.error)
        release.set()


def test_other_clients_get_503_and_configuration_may_want_it_for_all(work, objects):
    t, sources = Program(work), {"sources": [http_source(down(), attempts=1)]}
    agents = "elfutils/0.188,Linux/x86_64,debian/12", "curl/7.88.1"
    with Service(work, {**sources, **SOON}) as s:
        status, headers, body = s.request("GET", t.path("debuginfo"))
        equal((status, headers["Retry-After"], headers["Content-Type"]), (503, "5", "text/plain"), body)
        assert b"source does not answer" in body, body
        equal(raw(s, t.path("debuginfo"), agents[0]), (b"", True), "not a byte")
        data, reset = raw(s, t.path("debuginfo"), agents[1])
        equal((data[:12], reset), (b"HTTP/1.1 503", False))
        status, headers, _ = s.request("GET", "/metrics")
    with Service(work, {**sources, "debuginfod": {"hold": "100ms", "transient": "status"}}) as s:
        equal([raw(s, t.path("debuginfo"), agent)[0][:12] for agent in agents], [b"HTTP/1.1 503"] * 2)
    with Service(work, {**sources, **SOON, "http": {"trusted_proxies": ["127.0.0.1"]}}) as s:
        equal(raw(s, t.path("debuginfo"), agents[0])[0][:12], b"HTTP/1.1 503", "a proxy would turn the reset into a status")


def test_overload_and_shutdown_reset_elfutils_clients(work, objects):
    """Refusals of the server itself, before any source is asked."""
    t, release = Program(work), threading.Event()
    agent = "elfutils/0.188"
    with Upstream({f"/{t.id}/executable": lambda handler: release.wait(60)}) as up, \
            Service(work, {"sources": [http_source(up.url), directory(work, t)], "max_fibers": 20}) as s:
        equal(raw(s, t.path("debuginfo"), agent)[1], False)
        holders = [socket.create_connection(("127.0.0.1", s.port), 60) for _ in range(40)]
        for connection in holders:
            connection.sendall(f"GET {t.path('executable')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        wait_until("a refusal", lambda: "all fibers are in use" in s.logged())

        def is_refused():
            """Requests that are accepted wait, and keep their fibers."""
            holders.append(socket.create_connection(("127.0.0.1", s.port), 0.3))
            holders[-1].sendall(f"GET {t.path('executable')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            try:
                return holders[-1].recv(100).startswith(b"HTTP/1.1 503")
            except TimeoutError:
                return False

        wait_until("refusals, when the first requests have no more look-ups of their own", is_refused)
        wait_until("a reset", lambda: raw(s, t.path("debuginfo"), agent) == (b"", True))  # now and then a fiber is free for an answer
        wait_until("a status", lambda: raw(s, t.path("debuginfo"), "curl/7")[0].startswith(b"HTTP/1.1 503"))
        release.set()
        for connection in holders:
            connection.close()


def test_not_found_needs_the_word_of_every_source(work, objects):
    t = Program(work)
    with Upstream({}) as empty, Upstream(t.upstream_routes()) as full:
        with Service(work, {"sources": [http_source(empty.url, id="a"), http_source(down(), id="b", attempts=1)], "debuginfod": {"hold": "100ms"}}) as s:
            equal(s.request("GET", t.path("debuginfo"))[0], 503)
        with Service(work, {"sources": [http_source(empty.url, id="a"), http_source(full.url, id="b")]}) as s:
            equal(s.request("GET", "/buildid/00112233/debuginfo")[::2], (404, b"not found"))
            client = Client(work, s)
            equal((client.find("debuginfo", "00112233"), client.kept()), (None, ["00112233/debuginfo"]), "this the client may remember")
        with Service(work, {"sources": [http_source(down(), id="a", attempts=1), http_source(full.url, id="b")]}) as s:
            equal(s.request("GET", t.path("debuginfo"))[2] == t.debug, True, "a source that has it is enough")
        with Upstream({f"/{t.id}/debuginfo": 403, f"/{t.id}/executable": b"no program"}) as wrong, Service(work, {"sources": [http_source(wrong.url)]}) as s:
            equal(s.request("GET", t.path("debuginfo"))[0], 404, "refused for good, and a file that is none: both are answers")


def test_lesser_file_is_held_while_a_better_source_fails(work, objects):
    """A file of symbols alone stays in the client's cache; it is served only if the other source stays away."""
    t = Program(work)
    with Upstream({f"/{t.id}/debuginfo": t.symbols}) as up, \
            Service(work, {"sources": [http_source(up.url, id="a"), http_source(down(), id="b", attempts=1)], **SOON}) as s:
        begun = time.monotonic()
        equal(s.request("GET", t.path("debuginfo"))[2] == t.symbols, True)
        assert time.monotonic() - begun > 0.9, "it was not held"


def test_transfer_that_breaks_ends_with_a_reset(work, objects):
    """A client that reads slowly while the cached file is truncated gets no well-formed short body."""
    t = Program(work)
    big = t.debug + b"\0" * (8 << 20)
    with Upstream({f"/{t.id}/debuginfo": big}) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        equal(len(s.request("GET", t.path("debuginfo"))[2]), len(big))
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(60)
            connection.connect(("127.0.0.1", s.port))
            connection.sendall(f"GET {t.path('debuginfo')} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            first = connection.recv(1000)
            equal(first[:12], b"HTTP/1.1 200")
            for directory_, _, files in os.walk(os.path.join(s.cache, "objects")):
                for name in files:
                    if not name.endswith(".metadata"):
                        os.truncate(os.path.join(directory_, name), 4096)
            got, reset = len(first), False
            try:
                while piece := connection.recv(1 << 16):
                    got += len(piece)
            except ConnectionResetError:
                reset = True
            equal((reset, got < len(big)), (True, True))
