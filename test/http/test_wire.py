"""The bytes on the connection: framing, limits, slow and silent clients, few descriptors, a log that nobody takes."""
import contextlib, fcntl, gzip, os, re, resource, signal, socket, subprocess, time, zlib

import harness
from harness import DEADLINE, Service, equal, free_port, wait_until
from test_memory import big_request, post_unread

POST = b"POST /symbolicate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
HEALTH = b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n"


def dial(service):
    return socket.create_connection(("127.0.0.1", service.port), timeout=DEADLINE)


def rest(client):
    """Everything until the server ends the connection."""
    received = b""
    try:
        while piece := client.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


def statuses(service, sent):
    """The statuses of all answers to these bytes, after which nothing more comes."""
    with dial(service) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        return [int(s) for s in re.findall(rb"HTTP/1\.1 (\d+) ", rest(client))]


def test_framing_errors_end_the_connection(work, objects):
    """Behind each of these stands a second request: after an error it must not be answered."""
    cases = [
        (400, POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        (400, POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
        (400, POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}"),
        *((400, POST + b"Content-Length: " + n + b"\r\n\r\n{}") for n in
          (b"+2", b"-2", b"2, 2", b"0x2", b"", b"2 2", b"18446744073709551618")),
        *((413, POST + b"Content-Length: " + n + b"\r\n\r\n{}") for n in (b"9223372036854775809", b"18446744073709551615")),
        (400, POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
        (400, POST + b"X: a\r\n\tb\r\n\r\n"),
        (400, POST + b"Content-Length: 0\r\n\n"),
        (400, b"GET /healthcheck HTTP/1.1\nHost: x\n\n"),
        (400, POST + b"X: a\rb\r\n\r\n"),
        (400, POST + b"X : a\r\n\r\n"),
        (400, POST + b": a\r\n\r\n"),
        (400, POST + b"X: a\x01b\r\n\r\n"),
        (400, b"GET /healthcheck HTTP/1.1\r\n Host: localhost\r\n\r\n"),
        (501, POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        (400, POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        (400, POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        (400, b"POST /symbolicate HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        (505, b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n"),
        (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (505, b"GET /\r\n\r\n"),
        (505, b"GET /healthcheck HTTP/1.2\r\nHost: localhost\r\n\r\n"),
        (400, b"GET /healthcheck HTTP/1.1\r\n\r\n"),
        (400, b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
        (400, b"GET /healthcheck#a HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        (405, b"CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        (414, b"GET /" + b"a" * 9 * 1024 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        (431, POST + b"X: " + b"a" * 33 * 1024 + b"\r\n\r\n"),
        (431, POST + b"X: y\r\n" * 100 + b"\r\n"),
        *((400, CHUNKED + body + b"\r\n0\r\n\r\n") for body in
          (b"2\n{}", b"2;a\n{}", b"2;a\rb\r\n{}", b" 2\r\n{}", b"0x2\r\n{}", b"-2\r\n{}", b"+2\r\n{}", b"\r\n{}", b"g\r\n{}",
           b"2\r\n{}X", b"10000000000000002\r\n{}", b"1;" + b"x" * (1 << 20))),
        (400, CHUNKED + b"2\r\n{}\n0\r\n\r\n"),
        *((400, CHUNKED + b"2\r\n{}\r\n0\r\n" + trailers) for trailers in
          (b"\n", b"X: y\r\n\n", b"X: y\n\r\n", b"X: y\r\n z\r\n\r\n", b" X: y\r\n\r\n")),
        (431, CHUNKED + b"2\r\n{}\r\n0\r\nX: " + b"y" * 40 * 1024 + b"\r\n\r\n"),
    ]
    with Service(work) as service:
        for status, sent in cases:
            equal(statuses(service, sent + HEALTH), [status], sent[:120])


def test_pipelined_requests_are_answered_in_order(work, objects):
    cases = [
        ([200, 200], HEALTH),
        ([200, 200], CHUNKED + b"2;a=b\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n"),
        ([200, 200], POST + b"Content-Length: 2\r\n\r\n{}"),
        ([200, 200], b"\r\n\r\n" + HEALTH),
        ([404, 200], b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"),
        ([404, 200], b"HEAD /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ([415, 200], POST.replace(b"json", b"xml") + b"Content-Length: 2\r\n\r\n{}"),
        ([417, 200], POST + b"Expect: tea\r\nContent-Length: 2\r\n\r\n{}"),
        ([204, 200], b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ([200, 200], b"GET http://other/healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ([200, 200], b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"),
        ([200, 200], POST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}"),
        ([200, 200], b"GET /healthcheck HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        ([200], b"GET /healthcheck HTTP/1.0\r\n\r\n"),
        ([200], b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nConnection: x, close\r\n\r\n"),
        ([200] * 501, HEALTH * 500),
        ([400], CHUNKED + b"5\r\nab"),
    ]
    with Service(work) as service:
        for wanted, sent in cases:
            equal(statuses(service, sent + (b"" if wanted == [400] else HEALTH)), wanted, sent[:120])


def test_expect_100_continue_is_answered(work, objects):
    with Service(work) as service:
        with dial(service) as client:
            client.sendall(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            equal(client.recv(65536), b"HTTP/1.1 100 Continue\r\n\r\n")
            client.sendall(b"{}")
            head, _, body = client.recv(65536).partition(b"\r\n\r\n")
            equal((head.split(b"\r\n")[0], body), (b"HTTP/1.1 200 OK", b'{"status":"completed","stacktraces":[],"modules":[]}'))
        with dial(service) as client:
            client.sendall(POST + b"Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n")
            received = rest(client)
            equal(received.split(b"\r\n")[0], b"HTTP/1.1 413 Payload Too Large")
            equal(received.count(b"HTTP/1.1"), 1)


def test_content_encodings_are_checked_and_limited(work, objects):
    bomb = gzip.compress(b'{"a":"' + b" " * (60 << 20) + b'"}', 9)
    assert len(bomb) < 64 << 10, len(bomb)
    cases = [(200, b"gzip", gzip.compress(b"{}")), (200, b"deflate", zlib.compress(b"{}")), (200, b"identity", b"{}"),
             (413, b"gzip", bomb), (415, b"br", b"{}"), (415, b"gzip, zstd", b"{}"), (415, b"gzip\r\nContent-Encoding: gzip", b"{}"),
             (400, b"gzip", b"{}"), (400, b"zstd", b"{}"), (400, b"gzip", gzip.compress(b"{}")[:-4])]
    with Service(work) as service:
        for status, coding, body in cases:
            with dial(service) as client:
                client.sendall(POST + b"Content-Encoding: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (coding, len(body)) + body)
                head, _, text = rest(client).partition(b"\r\n\r\n")
            equal(int(head.split()[1]), status, coding)
            equal(b"\r\nAccept-Encoding: zstd, gzip\r\n" in head, status == 415, coding)
            if status == 400:
                equal(text, b'{"detail":"request body could not be decompressed"}')


def test_malformed_targets_are_refused(work, objects):
    with Service(work, {"symstore_proxy": True}) as service:
        for target, status in ((b"/proxy/a%2Fb", 404), (b"/proxy/%zz", 400), (b"/proxy/%00", 400), (b"/symbolicate/", 404),
                               (b"//healthcheck", 404), (b"/HEALTHCHECK", 404), (b"/x/../healthcheck", 404)):
            equal(statuses(service, b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"), [status], target)


def test_slow_clients_time_out(work, objects):
    quick = {"header_timeout": "300ms", "body_timeout": "300ms", "idle_timeout": "300ms"}
    with Service(work, {"http": quick}) as service:
        for sent, wanted in ((b"", b""), (b"GET /healthcheck HT", b"HTTP/1.1 408"), (b"\r\n", b"HTTP/1.1 408"),
                             (POST + b"Content-Length: 10\r\n\r\n{", b"HTTP/1.1 408"), (HEALTH, b"HTTP/1.1 200")):
            with dial(service) as client:
                client.sendall(sent)
                received = rest(client)
                equal(received[:len(wanted)], wanted, sent)
                equal(received.count(b"HTTP/1.1"), 1 if wanted else 0, sent)
        with dial(service) as client:  # a byte now and then does not buy more time
            sent, start = 0, time.monotonic()
            try:
                while time.monotonic() - start < DEADLINE:
                    client.sendall(b"G" if sent == 0 else b"E")
                    sent += 1
                    client.settimeout(0.05)
                    try:
                        if client.recv(1):
                            break
                    except TimeoutError:
                        pass
            except ConnectionError:
                pass
            assert sent < 100, sent


def test_client_that_never_reads_is_reset(work, objects):
    """Its answer is given up, and the connection reset."""
    with Service(work, {"http": {"write_timeout": "500ms"}}) as service:
        client = post_unread(service, big_request(10 << 20))
        wait_until("the line", lambda: re.search(r"access: .* path=/symbolicate .* aborted=write_timeout", service.logged()))
        try:
            while client.recv(1 << 20):
                pass
            raise AssertionError("the answer came to an end")
        except ConnectionResetError:
            client.close()


def test_health_is_answered_with_few_descriptors(work, objects):
    """More clients than descriptors: health is answered at once, everybody in the end."""
    with Service(work) as service:
        # Some are the process's own already; the rest is soon taken by connections.
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (48, 48))
        clients = [dial(service) for _ in range(200)]
        try:
            for client in clients:
                client.sendall(HEALTH)
            for client in clients:
                equal(client.recv(65536).split(b"\r\n")[0], b"HTTP/1.1 200 OK")
                client.close()
            start = time.monotonic()
            equal(service.request("GET", "/healthcheck")[0], 200)
            assert time.monotonic() - start < 5
        finally:
            for client in clients:
                client.close()


def test_full_log_pipe_blocks_nothing(work, objects):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    port = free_port()
    config = os.path.join(work, "config.yml")
    with open(config, "w") as f:
        f.write(f"bind: 127.0.0.1:{port}\ncache_dir: {work}/cache\nlogging: {{level: trace}}\n")
    process = subprocess.Popen([harness.SYMLOOM, "run", "-c", config], stdout=writer, stderr=writer)
    try:
        os.close(writer)

        def ready():
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)

        for _ in range(300):
            with wait_until("the service", ready) as client:
                client.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                equal(rest(client)[:12], b"HTTP/1.1 404")
        process.send_signal(signal.SIGTERM)
        equal(process.wait(DEADLINE), 0)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(reader)
