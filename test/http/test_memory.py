"""The memory that requests share, and connections at their limits."""
import concurrent.futures, http.client, json, os, re, socket, threading, time

import dumps, harness
from harness import DEADLINE, Service, equal, wait_until

ALONE = True

MIB = 1 << 20
# What a sanitizer would keep of freed memory hides what the service keeps.
os.environ["ASAN_OPTIONS"] = "quarantine_size_mb=0:thread_local_quarantine_size_kb=0:" + os.environ.get("ASAN_OPTIONS", "")
HEAD = b"POST /symbolicate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def anonymous(service):
    """Bytes of anonymous memory, now; and the most there ever was of all memory."""
    with open(f"/proc/{service.process.pid}/status") as f:
        fields = dict(re.findall(r"(\w+):\s+(\d+) kB", f.read()))
    return int(fields["RssAnon"]) * 1024


def big_request(size):
    """Long texts that come back with the answer, which is a little larger than this."""
    frames = [{"instruction_addr": hex(n), "filename": "x" * 2000} for n in range(size // 2000)]
    return json.dumps({"stacktraces": [{"frames": frames}], "modules": []}).encode()


def post_unread(service, body, receive=256 * 1024, head=HEAD):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    client.settimeout(DEADLINE)
    client.connect(("127.0.0.1", service.port))
    client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    return client


def large_dump(size):
    """With as much memory in it; on its stack an address in that, and a module around it."""
    dump = dumps.Dump()
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10010}, 0x7000, (0x10200).to_bytes(8, "little") * 100))
    dump.modules.append((0x10000, 0x1000, "/usr/lib/x", dumps.elf("f1c3bcc0279865fe3058404b2831d9e64135386c"), 0))
    dump.memory.append((0x40000000, os.urandom(1 << 16) * (size >> 16)))
    return dump.crash(7, 11, 0, 69).done()


def test_large_upload_is_mapped_from_a_file(work, objects):
    """A dump of 50 MB goes into a file that has no name, which is mapped: neither its form nor what is in it is held in memory."""
    boundary, size = "tests-boundary", 50 * MIB
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="upload_file_minidump"\r\n\r\n'
    body = head.encode() + large_dump(size) + f"\r\n--{boundary}--\r\n".encode()
    with Service(work) as service:
        peak, over = [anonymous(service)], threading.Event()
        idle = peak[0]

        def watch():
            while not over.wait(0.001):
                peak.append(anonymous(service))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for _ in range(3):
                status, _, data = service.request("POST", "/minidump", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})
                answer = json.loads(data)
                equal((status, answer["status"], len(answer["stacktraces"][0]["frames"])), (200, "completed", 101))
        finally:
            over.set()
            watcher.join()
        assert max(peak) < idle + size // 3, f"{idle} bytes idle, {max(peak)} at most, seen {len(peak)} times"
        equal(service.leftovers(), [])


def test_unread_answers_are_moved_to_disk(work, objects):
    """16 answers of 8 MB: what the kernel does not take is on disk, and all of it is right when it is read at last."""
    body = big_request(8 * MIB)
    with Service(work, {"logging": {"access": "off"}, "http": {"write_timeout": "2m"}}) as service:
        expected = service.post("/symbolicate", body)[2]
        assert len(expected) > 6 * MIB, len(expected)
        idle = anonymous(service)
        clients = [post_unread(service, body) for _ in range(16)]
        try:
            def finished():
                text = service.request("GET", "/metrics")[2].decode()
                return 'jobs_finished_total{task="symbolicate",outcome="completed"} 17' in text
            wait_until("all answers", finished)
            wait_until("the memory of the answers", lambda: anonymous(service) < idle + 40 * MIB)
            for client in clients[:2]:
                answer = http.client.HTTPResponse(client)
                answer.begin()
                equal(answer.read() == expected, True)
        finally:
            for client in clients:
                client.close()
        wait_until("the memory after they left", lambda: anonymous(service) < idle + 40 * MIB)


def test_pollers_share_one_copy_of_a_result(work, objects):
    body = big_request(8 * MIB)
    for config in ({}, {"result_bytes": 1000}):  # in memory; in a file
        with Service(work, config) as service:
            job = service.symbolicate(body, "?timeout=0")["request_id"]
            expected = service.request("GET", f"/requests/{job}?timeout=60")[2]
            assert len(expected) > 6 * MIB, expected[:100]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                for status, _, polled in pool.map(lambda _: service.request("GET", f"/requests/{job}"), range(16)):
                    equal((status, polled == expected), (200, True))
            descriptors = len(os.listdir(f"/proc/{service.process.pid}/fd"))
            jobs = [service.symbolicate(body, "?timeout=0")["request_id"] for _ in range(10)]
            for job in jobs:
                equal(service.request("GET", f"/requests/{job}?timeout=60")[2] == expected, True)
            wait_until("the descriptors of results",
                       lambda: len(os.listdir(f"/proc/{service.process.pid}/fd")) <= descriptors + 1)


def test_requests_wait_for_memory_or_are_refused(work, objects):
    with Service(work, {"memory": {"request_budget": "8MB", "queue_timeout": "100ms"}}) as service:
        equal(service.post("/symbolicate", b" " * (2 * MIB) + b"{}")[::2],
              (413, b"Failed to buffer the request body: length limit exceeded"))
        equal(service.request("POST", "/symbolicate", iter([b" " * (2 * MIB), b"{}"]), {"Content-Type": "application/json"})[0],
              413)
        padded = b" " * (15 * MIB // 8) + json.dumps({"stacktraces": [], "modules": []}).encode()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: service.post("/symbolicate", padded)[::2], range(64)))
        for status, data in answers:
            assert (status, data) == (503, b'{"detail":"not enough memory for this request"}') or status == 200, (status, data)
        assert any(status == 200 for status, _ in answers)
        equal(service.post("/symbolicate", padded)[0], 200)


def test_overload_stays_within_the_memory_limit(work, objects):
    """Bodies and answers of many times the budget: some are refused, the others are right, and the memory comes back."""
    config = {"memory": {"request_budget": "64MB", "queue_timeout": "1s"}, "logging": {"access": "off"}}
    body = big_request(MIB)
    with Service(work, config) as service:
        expected = service.post("/symbolicate", body)[2]
        idle = anonymous(service)
        slowest, stop = [0.0], threading.Event()

        def health():
            while not stop.is_set():
                start = time.monotonic()
                equal(service.request("GET", "/healthcheck")[0], 200)
                slowest[0] = max(slowest[0], time.monotonic() - start)

        prober = threading.Thread(target=health)
        prober.start()
        try:
            unread = [post_unread(service, body) for _ in range(8)]
            with concurrent.futures.ThreadPoolExecutor(40) as pool:
                answers = list(pool.map(lambda _: service.post("/symbolicate", body)[::2], range(60)))
            for client in unread:
                client.close()
        finally:
            stop.set()
            prober.join()
        for status, data in answers:
            assert (status, data) == (503, b'{"detail":"not enough memory for this request"}') or (status == 200 and data == expected), (status, data[:200])
        assert any(status == 200 for status, _ in answers)
        print(f"        {sum(s == 200 for s, _ in answers)} of 60 answered, slowest health check {slowest[0] * 1000:.0f} ms")
        wait_until("the memory of the storm", lambda: anonymous(service) < idle + 40 * MIB)
        equal(service.post("/symbolicate", body)[2] == expected, True)


def test_idle_connections_are_closed_for_new_ones(work, objects):
    """Idle connections beyond the limit end at once for new ones, whose requests are served."""
    with Service(work, {"http": {"max_connections": 50}}) as service:
        clients = []
        for _ in range(300):
            client = service.connection()
            client.request("POST", "/symbolicate", "{}", {"Content-Type": "application/json"})
            answer = client.getresponse()
            answer.read()
            equal(answer.status, 200)
            clients.append(client)
        for client in clients:
            client.close()


def test_slow_bodies_do_not_block_other_clients(work, objects):
    with Service(work, {"http": {"max_bodies_in_flight": 20}}) as service:
        slow = []
        for _ in range(60):
            client = socket.create_connection(("127.0.0.1", service.port), timeout=DEADLINE, source_address=("127.0.0.2", 0))
            client.sendall(HEAD + b"Content-Length: 100000\r\n\r\n{")
            slow.append(client)
        for source in ("127.0.0.1", "127.0.0.2"):  # small ones always, from anywhere
            client = harness.Connection(service.port, source_address=(source, 0))
            client.request("POST", "/symbolicate", "{}", {"Content-Type": "application/json"})
            equal(client.getresponse().status, 200)
            client.close()
        equal(service.post("/symbolicate", b" " * 100000 + b"{}")[0], 200)  # large ones from other addresses
        for client in slow:
            client.close()


def half_bodies(service, count):
    """Connections of one address that each send a part of a body: small ones, large ones, and those of no known size."""
    heads = (b"Content-Length: 100\r\n\r\n{", b"Content-Length: 100000\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n5\r\n{")
    clients = []
    for i in range(count):
        client = socket.create_connection(("127.0.0.1", service.port), timeout=DEADLINE, source_address=("127.0.0.2", 0))
        client.sendall(HEAD + heads[i % len(heads)])
        clients.append(client)
    return clients


def test_stalled_bodies_are_closed_when_descriptors_are_few(work, objects):
    """700 of one address, with the limit that many systems have by default: who has been silent for longest makes room."""
    limited = os.path.join(work, "limited")
    with open(limited, "w") as f:
        f.write(f'#!/bin/sh\nulimit -n 1024\nexec "{os.path.abspath(harness.SYMLOOM)}" "$@"\n')
    os.chmod(limited, 0o755)
    with Service(work, program=limited) as service:
        clients = half_bodies(service, 700)
        try:
            for body in (b"{}", b" " * 100000 + b"{}"):
                begun = time.monotonic()
                equal(service.post("/symbolicate", body)[0], 200)
                assert time.monotonic() - begun < 5, "others were locked out"
            equal(service.request("GET", "/healthcheck")[0], 200)
            wait_until("lines about some", lambda: " aborted=slow" in service.logged())
            equal("cannot accept connections" in service.logged(), False)
        finally:
            for client in clients:
                client.close()
