"""Redis as companies have it: with TLS, users and certificates, and behind a name that moves to another server."""
import contextlib, os, re, socket, threading, time

import harness
from faults import Redis, World, metric
from harness import Service, Upstream, equal, wait_until
from test_shared import compare_machines
from test_tls import Authority

PASSWORD = "p@ss/w:rd%"
NAME = "127.1"  # by which every resolver knows 127.0.0.1, and certificates a host


class SealedRedis(Redis):
    """A Redis that is asked by TLS (by tests without), wants certificates, and knows one user."""

    def __init__(self, work, authority, *certificate):
        self.sealed = harness.free_port()
        cert, key = certificate or authority.issue("redis", places=f"IP:127.0.0.1,DNS:{NAME}")
        super().__init__(work, "--bind", "127.0.0.1", "127.0.0.2", "--tls-port", str(self.sealed), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file",
                         authority.path, "--user", "crash", "on", ">" + PASSWORD, "~*", "&*", "+@all")

    def settings(self, authority, host="127.0.0.1", own=()):
        redis = {"url": f"rediss://crash:p%40ss%2Fw%3Ard%25@{host}:{self.sealed}/0", "ca_path": authority.path}
        if own:
            redis["certificate_path"], redis["key_path"] = own
        return {"redis": redis}


def complaint(service):
    """The line about the connection that could not be made."""
    return wait_until("the reason", lambda: re.search(".*cannot connect to Redis.*", service.logged()))[0]


def test_redis_works_over_tls(work, objects):
    authority = Authority(work)
    own = authority.issue("node")
    with SealedRedis(work, authority) as redis:
        for host in ("127.0.0.1", NAME):
            redis.ask("FLUSHALL")
            compare_machines(work, objects, redis.settings(authority, host, own), "redis")
        # More than goes into one record, or one buffer, in both directions.
        with World(objects, 2, padding=1 << 20) as world:
            config = {"shared_cache": redis.settings(authority, own=own)}
            for expected in (2, 0):
                with Service(work, config) as s:
                    equal(world.ask(s, world.modules), 2)
                    if expected:
                        wait_until("entries in Redis", lambda: metric(s, 'symloom_shared_ops_total{backend="redis",cache="objects",'
                                                                         'op="put",result="written"}') == 2)
                    equal(sum(world.up.hits.values()), 2)


def test_untrusted_redis_certificates_are_refused(work, objects):
    authority, other = Authority(work), Authority(work)
    own = authority.issue("node")
    with SealedRedis(work, authority) as redis, World(objects, 1) as world:
        stale = os.path.join(work, "no.pem")
        unsealed = {"redis": {"url": redis.url.replace(str(redis.port), str(redis.sealed))}}
        cases = ((redis.settings(other, own=own), "unable to get local issuer certificate|self.signed certificate"),
                 (redis.settings(authority), "certificate required|connection closed by Redis|reset"),
                 (redis.settings(authority, "127.0.0.2", own), "IP address mismatch"),
                 ({"redis": {**redis.settings(authority)["redis"], "ca_path": stale}}, "no.pem"),
                 (unsealed, "connection closed by Redis|answer|reset"))
        for settings, why in cases:
            with Service(work, {"shared_cache": settings}) as s:
                equal(world.ask(s, world.modules), 1)
                assert re.search(why, complaint(s)), complaint(s)
                assert PASSWORD not in s.logged() and "p%40ss" not in s.logged()
        equal(redis.size(), 0)


def test_wrong_redis_password_is_logged(work, objects):
    with Redis(work, "--user", "crash", "on", ">right", "~*", "+@all") as redis, World(objects, 1) as world:
        with Service(work, {"shared_cache": {"redis": {"url": redis.url.replace("//", "//crash@"), "password": "wrong"}}}) as s:
            equal(world.ask(s, world.modules), 1)
            assert re.search("AUTH.*WRONGPASS", complaint(s)), complaint(s)


class Name:
    """What a name in a URL stands for: connections go to `target` as it is when they are made, and stay there. What has the
    word `hold` in it is not passed on."""

    def __init__(self, target, hold=None):
        self.target, self.hold, self.held = target, hold, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            for one, two in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=(one, two), daemon=True).start()

    def carry(self, one, two):
        try:
            while piece := one.recv(65536):
                if self.hold and self.hold in piece:
                    self.held.set()
                else:
                    two.sendall(piece)
        except OSError:
            pass
        for end in (one, two):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def test_connection_to_a_demoted_primary_is_replaced(work, objects):
    with Redis(work) as old, Redis(work) as new, World(objects, 4) as world:
        name = Name(old.port)
        with Service(work, {"shared_cache": {"redis": {"url": name.url}}}) as s:
            equal(world.ask(s, world.modules[:2]), 2)
            wait_until("entries in the first one", lambda: old.size() > 0)
            name.target = new.port
            old.ask(f"REPLICAOF 127.0.0.1 {new.port}")
            equal(world.ask(s, world.modules[2:]), 2)  # the old connection is still there, and refuses what is written

            def moved():
                world.ask(s, world.modules)
                return metric(s, 'symloom_shared_up{backend="redis"}') == 1 and new.ask("CLIENT LIST").count("addr=") > 1
            wait_until("a connection to the new one", moved)
            more = World(objects, 6)
            with more:
                def written():
                    more.ask(s, [more.modules[5]])
                    return new.size() > 0
                wait_until("entries in the new one", written)
            assert "READONLY" in s.logged()
        name.close()


def test_service_stops_during_a_redis_command(work, objects):
    with Redis(work) as redis:
        name = Name(redis.port, b"GETRANGE")  # what others were told to forget is asked for each second
        s = Service(work, {"shared_cache": {"redis": {"url": name.url}}})
        assert name.held.wait(harness.DEADLINE)
        equal(s.stop(), 0)
        name.close()


def most_reserved(service):
    """Bytes of address space, at most: memory that is asked for and never touched counts, too."""
    with open(f"/proc/{service.process.pid}/status") as f:
        return int(re.search(r"VmPeak:\s+(\d+)", f.read())[1]) << 10


class Liar(threading.Thread):
    """Speaks like a Redis until it is asked for an entry; then says what `answer` is, on each connection."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer, self.asked = answer, 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def run(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client:
            while data := client.recv(65536):
                lies = b"GET" in data.upper()
                self.asked += lies
                client.sendall(self.answer if lies else b"+PONG\r\n" * data.count(b"PING"))


def test_absurd_sizes_in_redis_answers_allocate_nothing(work, objects):
    """A few bytes that promise gigabytes are no answer: nothing is allocated for them, and the file is had from its source."""
    for answer in (b"*1073741823\r\n", b"*2147483647\r\n", b"*-2\r\n", b"*64\r\n" * 7, b"$17179869184\r\n", b"%99999999\r\n", b"*65\r\n"):
        liar = Liar(answer)
        liar.start()
        with contextlib.closing(liar.socket), Upstream(objects.layout()) as up:
            config = {"shared_cache": {"redis": {"url": f"redis://127.0.0.1:{liar.port}"}}}
            with Service(work, config) as s:
                before = most_reserved(s)
                start = time.monotonic()
                body = harness.request(objects.module(), [objects.line_addresses(3)[0]], sources=[harness.http_source(up.url)])
                equal(harness.frames(s.symbolicate(body))[0]["status"], "symbolicated", answer)
                equal((liar.asked > 0, time.monotonic() - start < 20, most_reserved(s) - before < 2 << 30), (True, True, True), answer)
