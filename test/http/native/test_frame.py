"""The frame of the native API: routes, checks and their order, life cycle of requests."""
import gzip, json, signal, threading, uuid

from harness import Service, Upstream, equal, frames, http_source, request, wait_until

EMPTY = {"stacktraces": [], "modules": [], "sources": []}


def stuck(gate):
    """A route that answers 404 once the gate is open."""
    def route(handler):
        gate.wait(60)
        handler.reply(404)
    return route


def test_health_routes_answer(work, objects):
    with Service(work) as s:
        status, headers, body = s.request("GET", "/healthcheck")
        equal((status, body, headers["content-type"]), (200, b"ok", "text/plain; charset=utf-8"))
        equal(s.request("HEAD", "/healthcheck")[0], 200)
        equal(s.request("GET", "/live")[::2], (200, b"ok"))
        equal(s.request("GET", "/ready")[::2], (200, b'{"status":"ready"}'))
        status, _, body = s.request("GET", "/metrics")
        equal(status, 200)
        assert b"symloom_healthchecks_total" in body and b"symloom_build_info" in body, body[:500]


def test_unknown_paths_and_methods_are_refused(work, objects):
    with Service(work) as s:
        equal(s.request("GET", "/nothing")[::2], (404, b""))
        equal(s.request("POST", "/symbolicate/")[::2], (404, b""))
        status, headers, body = s.request("GET", "/symbolicate")
        equal((status, headers["allow"], body), (405, "POST", b""))
        equal(s.request("POST", "/healthcheck")[0], 405)


def test_unknown_keys_are_ignored(work, objects):
    with Service(work) as s:
        status, headers, body = s.post("/symbolicate?unknown=1", {**EMPTY, "unknown": "value"})
        equal(body, b'{"status":"completed","stacktraces":[],"modules":[]}')
        equal((status, headers["content-type"]), (200, "application/json"))


def test_query_type_and_length_are_checked_before_the_body(work, objects):
    with Service(work, {"symbolicate_body_max_bytes": 5120}) as s:
        for query in ("timeout=", "timeout=-1", "timeout=1.5", "timeout=x", "timeout=1&timeout=2", "scope=a&scope=b"):
            status, headers, body = s.post("/symbolicate?" + query, EMPTY)
            equal((status, headers["content-type"]), (400, "text/plain; charset=utf-8"), query)
            assert body.startswith(b"Failed to deserialize query string: "), body
        for content_type in ("text/plain", "application/jsonx", "multipart/form-data"):
            status, _, body = s.post("/symbolicate", EMPTY, {"Content-Type": content_type})
            equal((status, body), (415, b"Expected request with `Content-Type: application/json`"), content_type)
        for content_type in ("application/json; charset=utf-8", "application/vnd.x+json", "APPLICATION/JSON"):
            equal(s.post("/symbolicate", EMPTY, {"Content-Type": content_type})[0], 200, content_type)
        equal(s.post("/symbolicate", '"' + "x" * 4094 + '"')[0], 422)
        status, _, body = s.post("/symbolicate", '"' + "x" * 8190 + '"')
        equal((status, body), (413, b"Failed to buffer the request body: length limit exceeded"))


def test_malformed_json_reports_line_and_column(work, objects):
    with Service(work) as s:
        for body in ("", "{", '{"stacktraces":[]', "nonsense", "[" * 200, '{"a":1}x', '{"a":01}', "\xff"):
            status, _, answer = s.post("/symbolicate", body.encode("latin-1"))
            equal(status, 400, body[:20])
            assert answer.startswith(b"Failed to parse the request body as JSON: "), answer
            assert b" at line 1 column " in answer, answer


def test_schema_errors_name_the_place(work, objects):
    frame = {"instruction_addr": "0x1"}
    cases = [
        ([], b"invalid type: sequence, expected a map"),
        ({"stacktraces": {}}, b"stacktraces: "),
        ({"stacktraces": [{}]}, b"stacktraces[0]: missing field `frames`"),
        ({"stacktraces": [{"frames": [frame, {}]}]}, b"stacktraces[0].frames[1]: missing field `instruction_addr`"),
        ({"modules": [{}]}, b"modules[0]: missing field `type`"),
        ({"modules": [{"type": "elf", "image_size": "big"}]}, b"modules[0].image_size: "),
        ({"signal": -1}, b"signal: "),
        ({"platform": 5}, b"platform: "),
        ({"options": {"frame_order": "upwards"}}, b"options.frame_order: "),
        ({"sources": [{"id": "x", "type": "carrier-pigeon"}]}, b"sources[0].type: "),
        ({"sources": [{"id": "x", "type": "filesystem", "path": "/", "layout": {"type": "native"}}]}, b"sources[0]"),
        ({"scraping": {"allowed_origins": [1]}}, b"scraping.allowed_origins[0]: "),
    ]
    for key, value in (("addr_mode", "rel:"), ("addr_mode", "near"), ("trust", "blind"), ("lang", "klingon"),
                       ("instruction_addr", ""), ("instruction_addr", "0x"), ("instruction_addr", "749d37f2"),
                       ("instruction_addr", 1.5), ("instruction_addr", "0x10000000000000000"), ("lineno", "5"),
                       ("in_app", 1), ("pre_context", [1]), ("vars", [])):
        cases.append(({"stacktraces": [{"frames": [{**frame, key: value}]}]}, b"stacktraces[0].frames[0]." + key.encode()))
    with Service(work) as s:
        for body, place in cases:
            status, headers, answer = s.post("/symbolicate", body)
            equal((status, headers["content-type"]), (422, "text/plain; charset=utf-8"), body)
            assert answer.startswith(b"Failed to deserialize the JSON body into the target type: " + place), (body, answer)
        status, _, answer = s.post("/symbolicate", '{"stacktraces":[{"frames":[{"instruction_addr":18446744073709551616}]}]}')
        equal(status, 422)
        assert b"stacktraces[0].frames[0].instruction_addr: invalid value: integer out of range" in answer, answer
        status, _, answer = s.post("/symbolicate", '{"stacktraces":[{"frames":[],"registers":{},"registers":{"a":1}}]}')
        equal(status, 422)
        assert b"stacktraces[0]: duplicate field `registers`" in answer, answer


def test_addresses_are_read_as_hex_decimal_or_number(work, objects):
    sent = ["0x0000000001509530", "0X1F", "17", 17, -1, 18446744073709551615]
    with Service(work) as s:
        answer = s.symbolicate({"stacktraces": [{"frames": [{"instruction_addr": a} for a in sent]}]})
        equal([f["instruction_addr"] for f in frames(answer)],
              ["0x1509530", "0x1f", "0x11", "0x11", "0xffffffffffffffff", "0xffffffffffffffff"])


def test_too_many_frames_or_modules_are_refused(work, objects):
    with Service(work, {"max_request_frames": 3, "max_request_modules": 1}) as s:
        many = [{"instruction_addr": 1}] * 4
        equal(s.post("/symbolicate", {"stacktraces": [{"frames": many}]})[0], 413)
        equal(s.post("/symbolicate", {"modules": [{"type": "elf"}] * 2})[0], 413)


def test_compressed_request_bodies_are_unpacked(work, objects):
    with Service(work) as s:
        body = gzip.compress(json.dumps(EMPTY).encode())
        equal(s.post("/symbolicate", body, {"Content-Encoding": "gzip"})[0], 200)
        equal(s.post("/symbolicate", body[:-9], {"Content-Encoding": "gzip"})[0], 400)
        equal(s.post("/symbolicate", body, {"Content-Encoding": "snappy"})[0], 415)


def test_concurrent_requests_are_limited(work, objects):
    gate = threading.Event()
    paths = {path: stuck(gate) for path in objects.layout()}
    with Upstream(paths) as up, Service(work, {"max_concurrent_requests": 2}) as s:
        body = request(objects.module(), [0], sources=[http_source(up.url)])
        for _ in range(2):
            equal(s.symbolicate(body, "?timeout=0")["status"], "pending")
        status, headers, answer = s.post("/symbolicate?timeout=0", body)
        equal((status, answer), (503, b'{"detail":"maximum number of concurrent requests reached"}'))
        equal(headers["retry-after"], None)
        equal(s.request("GET", "/healthcheck")[0], 200)
        gate.set()


def test_pending_job_is_polled_until_completed(work, objects):
    gate = threading.Event()
    paths = {path: stuck(gate) for path in objects.layout()}
    with Upstream(paths) as up, Service(work) as s:
        body = request(objects.module(), [0], sources=[http_source(up.url)])
        pending = s.symbolicate(body, "?timeout=1")
        equal((pending["status"], pending["retry_after"], list(pending)),
              ("pending", 30, ["status", "request_id", "retry_after"]))
        request_id = pending["request_id"]
        equal(str(uuid.UUID(request_id)), request_id)
        again = json.loads(s.request("GET", f"/requests/{request_id}?timeout=0")[2])
        equal(again, pending)
        answers = []
        pollers = [threading.Thread(target=lambda: answers.append(s.request("GET", f"/requests/{request_id}")[2]))
                   for _ in range(8)]
        for poller in pollers:
            poller.start()
        gate.set()
        for poller in pollers:
            poller.join()
        equal(len(set(answers)), 1)
        equal(json.loads(answers[0])["status"], "completed")
        for form in (request_id, request_id.replace("-", ""), request_id.upper()):
            equal(s.request("GET", f"/requests/{form}")[2], answers[0], form)
        for unknown in ("nonsense", str(uuid.uuid4()), request_id[:-1]):
            equal(s.request("GET", f"/requests/{unknown}")[::2], (404, b""), unknown)


def test_results_spill_to_disk_and_expire(work, objects):
    gate = threading.Event()
    paths = {path: stuck(gate) for path in objects.layout()}
    with Upstream(paths) as up, Service(work, {"result_ttl": "500ms", "result_bytes": 1}) as s:
        body = request(objects.module(), [0], sources=[http_source(up.url)])
        request_id = s.symbolicate(body, "?timeout=0")["request_id"]
        gate.set()
        first = s.request("GET", f"/requests/{request_id}")
        equal(json.loads(first[2])["status"], "completed")
        wait_until("the result to expire", lambda: s.request("GET", f"/requests/{request_id}?timeout=0")[0] == 404)


def test_jobs_have_a_deadline(work, objects):
    gate = threading.Event()
    paths = {path: stuck(gate) for path in objects.layout()}
    with Upstream(paths) as up, Service(work, {"max_job_duration": "300ms"}) as s:
        body = request(objects.module(), [0], sources=[http_source(up.url)])
        equal(s.post("/symbolicate", body)[2], b'{"status":"timeout"}')
        gate.set()


def test_idle_service_ends_at_once_on_a_signal(work, objects):
    for number in (signal.SIGTERM, signal.SIGINT):
        with Service(work) as s:
            s.request("GET", "/healthcheck")
            equal(s.stop(number), 0)


def test_draining_finishes_jobs(work, objects):
    gate = threading.Event()
    paths = {path: stuck(gate) for path in objects.layout()}
    with Upstream(paths) as up, Service(work) as s:
        body = request(objects.module(), [0], sources=[http_source(up.url)])
        request_id = s.symbolicate(body, "?timeout=0")["request_id"]
        s.process.send_signal(signal.SIGTERM)
        wait_until("the drain", lambda: s.request("GET", "/healthcheck")[0] == 503)
        equal(s.request("GET", "/live")[0], 200)
        equal(s.request("GET", "/ready")[0], 503)
        wait_until("new work to be refused", lambda: s.post("/symbolicate", EMPTY)[0] == 503)
        answers = []
        poll = threading.Thread(target=lambda: answers.append(s.request("GET", f"/requests/{request_id}")))
        poll.start()  # it has to be there when the job ends, since the service ends with it
        wait_until("the poll", lambda: b'http_connections{state="working"} 2' in s.request("GET", "/metrics")[2])  # and this
        gate.set()
        poll.join()
        equal(json.loads(answers[0][2])["status"], "completed")
        equal(s.process.wait(60), 0)


def test_draining_gives_up_at_its_timeout(work, objects):
    gate = threading.Event()
    paths = {path: stuck(gate) for path in objects.layout()}
    with Upstream(paths) as up, Service(work, args=["--shutdown-timeout", "300ms"]) as s:
        body = request(objects.module(), [0], sources=[http_source(up.url)])
        answers = []
        waiter = threading.Thread(target=lambda: answers.append(s.post("/symbolicate", body)))
        waiter.start()
        wait_until("the download", lambda: up.hits)
        equal(s.stop(), 0)
        waiter.join()
        equal(answers[0][::2], (503, b'{"detail":"service is shutting down"}'))
        gate.set()
        equal(s.leftovers(), [])


def test_jobs_of_disconnected_clients_end(work, objects):
    gate = threading.Event()
    paths = {path: stuck(gate) for path in objects.layout()}
    with Upstream(paths) as up, Service(work) as s:
        body = json.dumps(request(objects.module(), [0], sources=[http_source(up.url)]))
        connection = s.connection()
        connection.request("POST", "/symbolicate", body, {"Content-Type": "application/json"})
        wait_until("the download", lambda: up.hits)
        connection.close()
        gate.set()
        wait_until("the job to end", lambda: b'symloom_jobs_running{task="symbolicate"} 0' in s.request("GET", "/metrics")[2])
        equal(s.symbolicate(EMPTY)["status"], "completed")


def test_file_addresses_are_resolved_without_adjustment(work, objects):
    """What sanitizers and Android write counts from where the file's own addresses do, and is the call itself."""
    address = objects.symbols["plain"][0]
    with Upstream(objects.layout()) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        for base in ("0x10000000", "0x0"):
            sent = [{"instruction_addr": hex(a), "addr_mode": "file:0"} for a in (address, address, 0x10, objects.load + 0x7ffffff)]
            found = frames(s.symbolicate(request(objects.module(image_addr=base), sent)))
            equal([f.get("function") for f in found], ["plain", "plain", None, None], found)
            equal([f["status"] for f in found[2:]], ["missing_symbol"] * 2)
            equal(found[2]["addr_mode"], "file:0")
        for wrong in ("file:", "file", "file:x", "fil:0"):
            equal(s.post("/symbolicate", request(objects.module(), [{"instruction_addr": "0x1", "addr_mode": wrong}]))[0], 422)
