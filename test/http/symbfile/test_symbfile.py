"""Symbfile uploads, what becomes of them, and symbolication with them."""
import base64, fcntl, glob, gzip, hashlib, json, os, signal, socket, subprocess, threading

import harness
from harness import Service, Upstream, equal, frames, http_source, request, wait_until

FILE = b"/media/share/Development/prodfiler/libpf-rs/testdata/inline.c"
ID = "136e8f69d518059e4437b4d5488878fd"
ID64 = "E26PadUYBZ5EN7TVSIh4_Q"

# An executable with four inlined calls: ranges and return pads, as published with the format.
RANGES = b"symbfile\x00\x01" + bytes.fromhex("3f040a3d") + FILE + bytes.fromhex(
    "190260c00c10241a046d61696e5000420a0a030008101203262729" "14020818100c1a08615f696e6c696e65282858003801"
    "14020800100c1a08625f696e6c696e65282358003802" "14020800100c1a08635f696e6c696e65281f58003803"
    "1e020800100c1a08645f696e6c696e655000281b5800380442060a0100120117"
    "160208c80610141a01615000420a0a030008041203121314" "1502083710141a01625000420a0a0300080412030e0f10"
    "1502082710141a01635000420a0a0300080412030a0b0c" "1902083f101c1a01645000420e0a05000408040412050607060708")
PADS = b"symbfile\x00\x01" + bytes.fromhex("7904") + b"".join(
    b"\x0a" + bytes([len(s)]) + s for s in (b"main", FILE, b"a_inline", b"b_inline", b"c_inline", b"d_inline", b"a", b"b",
                                            b"c", b"d")) + bytes.fromhex(
    "0c0328cb0c1201001a0101220127" "17030818120500020304051a050101010101220528231f1b17" "0c0308c8061201061a0101220113"
    "0b0308371201071a010122010f" "0b0308271201081a010122010b" "0b03082f1201091a0101220107")
EMPTY = b"symbfile\x00\x01"
KEY = "APIKey Y2k6c2VjcmV0"
FIVE = [("d_inline", 23), ("c_inline", 27), ("b_inline", 31), ("a_inline", 35), ("main", 40)]

CONFIG = {"auth": {"keys": [
    {"id": "ci", "sha256": hashlib.sha256(b"secret").hexdigest(), "rights": ["symbols:write"]},
    {"id": "boss", "sha256": hashlib.sha256(b"x:y").hexdigest(), "rights": ["symbols:read", "symbols:delete"]},
    {"id": "old", "sha256": hashlib.sha256(b"secret").hexdigest(), "rights": ["symbols:write"], "expires": "2020-01-01"},
]}, "symbfile": {"store_min_free": 0}}


def service(work, **keys):
    config = {**CONFIG, "symbfile": {**CONFIG["symbfile"], **keys.pop("symbfile", {})}}
    return Service(work, {**config, **keys.pop("config", {})}, **keys)


def key(text):
    return "APIKey " + base64.b64encode(text.encode()).decode()


def upload(s, body, kind="ranges", method="POST", **headers):
    """(status, JSON); None takes a header out."""
    sent = {"Authorization": KEY, "FileID": ID64, "FilePart": "0", "FileParts": "1", **headers}
    status, got, data = s.request(method, f"/api/symbols-{kind}", body,
                                  {k.replace("_", "-"): v for k, v in sent.items() if v is not None})
    answer = json.loads(data)
    equal((answer["success"], answer["status"]), (status == 200, status), "answer")
    equal(got["Content-Type"], "application/json")
    equal(got["Accept-Encoding"], "zstd, gzip")
    return status, answer


def good(s, body, **headers):
    status, answer = upload(s, body, **headers)
    equal((status, answer), (200, {"success": True, "status": 200}))


def refused(s, status, code, body=RANGES, **headers):
    got, answer = upload(s, body, **headers)
    equal((got, answer.get("error", {}).get("Code")), (status, code), answer)
    equal(sorted(answer), ["error", "status", "success", "uuid"])


def ask(s, addresses, **module):
    """Frames at ELF addresses: of leaves numbers, of callers (number, True)."""
    listed = [a if isinstance(a, tuple) else (a, False) for a in addresses]
    body = {"modules": [{"type": "elf", "image_addr": "0x0", "file_id": ID, **module}], "stacktraces": [
        {"frames": [{"instruction_addr": hex(a), "addr_mode": "rel:0", "adjust_instruction_addr": caller}]}
        for a, caller in listed]}
    answer = s.symbolicate(body)
    return answer, [frames(answer, i) for i in range(len(listed))]


def names(chain):
    return [(f.get("function"), f.get("lineno")) for f in chain]


def found(s, address=0x654):
    return names(ask(s, [address])[1][0])


def test_ranges_are_used_with_and_without_pads(work, objects):
    with service(work) as s:
        equal(ask(s, [0x654])[0]["modules"][0]["debug_status"], "missing")
        good(s, RANGES)
        answer, got = ask(s, [0x654, 0x64b, 0x7bc])
        equal(names(got[0]), FIVE)
        equal(names(got[1]), [("main", 39)])
        equal(got[2][0]["status"], "missing_symbol")
        outer = got[0][-1]
        equal((outer["sym_addr"], outer["abs_path"], outer["filename"], outer["instruction_addr"], outer["symbol"]),
              ("0x640", FILE.decode(), "inline.c", "0x654", "main"))
        equal("sym_addr" in got[0][0], False)
        module = answer["modules"][0]
        equal((module["debug_status"], module["file_id"]), ("found", ID))
        equal(module["features"], {"has_debug_info": True, "has_unwind_info": False, "has_symbols": True,
                                   "has_sources": False})
        good(s, PADS, kind="returnpads", FileID=ID)
        for address in (0x658, 0x657):
            got = ask(s, [(address, True)])[1][0]
            equal(names(got), FIVE)
            equal((got[0]["instruction_addr"], got[-1]["sym_addr"] if address == 0x658 else "0x640"),
                  (hex(address - 1), "0x640"))
        equal(names(ask(s, [0x658])[1][0]), [("main", 41)])


def test_return_pads_alone_symbolicate_return_addresses(work, objects):
    with service(work) as s:
        good(s, PADS, kind="returnpads", method="PUT")
        got = ask(s, [(0x658, True), 0x654])[1]
        equal(names(got[0]), FIVE)
        equal("sym_addr" in got[0][-1], False)
        equal(got[1][0]["status"], "missing_symbol")


def test_parts_may_come_in_any_order(work, objects):
    with service(work) as s:
        good(s, RANGES, FilePart="1", FileParts="2")
        equal(ask(s, [0x654])[0]["modules"][0]["debug_status"], "missing")
        status, _, data = s.request("GET", "/api/symbols/" + ID64, headers={"Authorization": KEY})
        equal(status, 200)
        state = json.loads(data)
        equal((state["file_id"], state["build_id"], state["returnpads"]), (ID, None, None))
        equal({k: state["ranges"][k] for k in ("state", "parts", "received", "records")},
              {"state": "staged", "parts": 2, "received": [1], "records": 9})
        good(s, EMPTY, FilePart="0", FileParts="2")
        equal(found(s), FIVE)


def test_parts_split_at_any_byte_are_joined(work, objects):
    with service(work) as s:
        good(s, RANGES[100:], FilePart="1", FileParts="2")
        good(s, RANGES[:100], FilePart="0", FileParts="2")
        equal(found(s), FIVE)
    with service(work) as s:  # in more pieces than bytes of the magic, compressed as a whole
        packed = gzip.compress(RANGES)
        pieces = [packed[:3], packed[3:9]] + [packed[i:i + 40] for i in range(9, len(packed), 40)]
        for i in reversed(range(len(pieces))):
            good(s, pieces[i], FilePart=str(i), FileParts=str(len(pieces)))
        equal(found(s), FIVE)


def test_broken_byte_split_upload_is_dropped(work, objects):
    with service(work) as s:
        good(s, RANGES[:100], FilePart="0", FileParts="2")
        refused(s, 400, "1203", RANGES[100:-1], FilePart="1", FileParts="2")
        status, _, data = s.request("GET", "/api/symbols/" + ID, headers={"Authorization": KEY})
        equal((status, json.loads(data)["error"]["Code"]), (404, "1301"))


def test_repeated_upload_changes_nothing(work, objects):
    with service(work) as s:
        good(s, RANGES)
        equal(found(s), FIVE)
        before = [n for _, d, _ in os.walk(os.path.join(s.cache, "uploads")) for n in d]
        good(s, RANGES)
        equal([n for _, d, _ in os.walk(os.path.join(s.cache, "uploads")) for n in d], before)
        equal(found(s), FIVE)


def test_new_set_replaces_the_old_one_as_a_whole(work, objects):
    with service(work) as s:
        good(s, RANGES, FilePart="0", FileParts="2")
        good(s, EMPTY, FilePart="1", FileParts="2")
        equal(found(s), FIVE)
        good(s, EMPTY, FilePart="0", FileParts="2")
        equal(found(s), FIVE, "half of a new set")
        good(s, EMPTY, FilePart="1", FileParts="2")  # equal to the published one, and still a part of the new set
        equal(ask(s, [0x654])[1][0][0]["status"], "missing_symbol")


def test_old_data_answers_until_the_new_set_is_complete(work, objects):
    with service(work) as s:
        good(s, RANGES)
        for part in "024":
            good(s, EMPTY, FilePart=part, FileParts="5", UploadID="new")
        equal(found(s), FIVE)


def test_compressed_uploads_are_unpacked(work, objects):
    packed = subprocess.run(["zstd", "-c"], input=RANGES, stdout=subprocess.PIPE, check=True).stdout
    for body, headers in ((packed, {}), (packed, {"Content_Encoding": "zstd"}), (gzip.compress(RANGES), {}),
                          (gzip.compress(RANGES), {"Content_Encoding": "gzip"}), (RANGES, {"Content_Encoding": "identity"})):
        with service(work) as s:
            good(s, body, **headers)
            equal(found(s), FIVE)
    with service(work) as s:
        refused(s, 400, "1112", packed[:-3])
        refused(s, 400, "1112", packed[:-3], Content_Encoding="zstd")
        refused(s, 415, "1109", Content_Encoding="br")


def test_invalid_upload_headers_are_refused(work, objects):
    with service(work) as s:
        refused(s, 400, "1105", FilePart="2", FileParts="2")
        for part in ("-1", "+1", "0x0", "1.0", "", "12345678901"):
            refused(s, 400, "1103", FilePart=part)
        refused(s, 400, "1103", FilePart=None)
        for parts in ("0", "10001", "x", ""):
            refused(s, 400, "1104", FileParts=parts)
        refused(s, 400, "1104", FileParts=None)
        for bad in ("abc", "LOVHl2iLH3cLBORj-O_QQR", "LOVHl2iLH3cLBORj-O_QQ", "xyz"):
            refused(s, 400, "1102", FileID=bad)
        refused(s, 400, "1101", FileID=None)
        for name, bad in (("BuildID", "abc"), ("BuildID", "xx"), ("DebugID", "nope"), ("BaseAddress", "0x"),
                          ("BaseAddress", "-4"), ("Arch", "vax"), ("UploadID", "a/b"), ("UploadID", "a" * 65),
                          ("GoBuildID", "g" * 257)):
            refused(s, 400, "1106", **{name: bad})
        refused(s, 401, "1001", Authorization=None)
        for value in ("Bearer x", "APIKey", "APIKey !!", key("nocolon"), key(":secret"), key("ci:")):
            refused(s, 401, "1002", Authorization=value)
        for value in ("APIKey Y2k6d3Jvbmc=", key("who:secret"), key("old:secret")):
            refused(s, 401, "1003", Authorization=value)
        refused(s, 403, "1004", Authorization=key("boss:x:y"))
        refused(s, 400, "1111", b"")
        refused(s, 400, "1201", b"symbf")
        refused(s, 400, "1202", b"symbfoo!" + RANGES)
        refused(s, 400, "1203", RANGES[:-1])
        refused(s, 400, "1202", b"symbfoo!" + RANGES, FilePart="0", FileParts="2")
        for path in ("/api/symbols-ranges", "/api/symbols-returnpads"):
            status, headers, data = s.request("GET", path)
            equal((status, json.loads(data)["error"]["Code"]), (405, "1302"))
            equal((headers["Allow"], headers["Accept-Encoding"]), ("POST, PUT", "zstd, gzip"))
        status, headers, _ = s.request("POST", "/api/symbols-ranges", RANGES, {"FileID": ID})
        equal((status, headers["WWW-Authenticate"]), (401, 'ApiKey realm="symloom"'))
        status, _, data = s.request("GET", "/api/symbols/a/b")
        equal((status, json.loads(data)["error"]["Code"]), (404, "1301"))
        equal(s.leftovers(), [])
        equal(os.listdir(os.path.join(s.cache, "uploads", "tmp")), [])
        # names without case, spaces around values
        good(s, RANGES, fileid="  " + ID + " ", FileID=None, authorization="  apikey  Y2k6c2VjcmV0 ", Authorization=None)


def test_bad_parts_leave_good_ones_intact(work, objects):
    with service(work) as s:
        good(s, RANGES, FilePart="0", FileParts="3")
        for body, code in ((RANGES[:-1], "1203"), (b"symbfile\x00\x02", "1204"), (gzip.compress(RANGES)[:-9], "1112")):
            refused(s, 400, code, body, FilePart="1", FileParts="3")
        refused(s, 400, "1202", b"symbfoo!" + RANGES, FilePart="0", FileParts="3")  # not in the place of the good one
        good(s, EMPTY, FilePart="1", FileParts="3")
        equal(ask(s, [0x654])[0]["modules"][0]["debug_status"], "missing")
        good(s, EMPTY, FilePart="2", FileParts="3")
        equal(found(s), FIVE)
        refused(s, 400, "1203", RANGES[:-1])  # nor of what is published
        equal(found(s), FIVE)
        equal(os.listdir(os.path.join(s.cache, "uploads", "tmp")), [])


def test_key_in_its_published_form_is_accepted(work, objects):
    """The key's form is the id and the secret with a colon, in base64."""
    secret = hashlib.sha256(b"cLapSuKkSIyrLYMMIhrRow").hexdigest()
    keys = [{"id": "C2jCT4YB56TtAYx59Yqx", "sha256": secret, "rights": ["symbols:write"]}]
    with service(work, config={"auth": {"keys": keys}}) as s:
        good(s, RANGES, Authorization="ApiKey QzJqQ1Q0WUI1NlR0QVl4NTlZcXg6Y0xhcFN1S2tTSXlyTFlNTUloclJvdw==")


def test_repeated_headers_must_agree(work, objects):
    with service(work) as s:
        for second, expected in ((ID, b"200"), (ID64, b"400")):
            with socket.create_connection(("127.0.0.1", s.port)) as c:
                c.sendall(f"POST /api/symbols-ranges HTTP/1.1\r\nHost: localhost\r\nAuthorization: {KEY}\r\nFileID: {ID}\r\n"
                          f"FileID: {second}\r\nConnection: close\r\nContent-Length: {len(RANGES)}\r\n\r\n".encode() + RANGES)
                answer = b"".join(iter(lambda: c.recv(65536), b""))
                equal(answer.split(b" ", 2)[1], expected, answer)


def test_uploads_need_a_key_unless_open(work, objects):
    with Service(work, {"auth": {"require": ["admin"]}, "symbfile": {"store_min_free": 0}}) as s:
        good(s, RANGES, Authorization=None)
        equal(found(s), FIVE)
    with Service(work) as s:
        refused(s, 401, "1003")


def test_uploads_without_a_store_are_refused(work, objects):
    with service(work, config={"cache_dir": None}) as s:
        refused(s, 404, "1301")
        wait_until("the warning", lambda: "rejecting uploads" in s.logged())


def push(*words, expect=0, env=None):
    done = subprocess.run([harness.SYMLOOM, "push-symbols", *words], capture_output=True, text=True,
                          env={**os.environ, **(env or {})})
    if done.returncode != expect:
        raise AssertionError(f"status {done.returncode}: {done.stdout}\n{done.stderr}")
    if "secret" in done.stderr or "Y2k6c2VjcmV0" in done.stderr:
        raise AssertionError("the key is shown")
    return done


def test_path_prefix_moves_the_upload_routes(work, objects):
    with service(work, symbfile={"path_prefix": "/profiling/v1"}) as s:
        headers = {"Authorization": KEY, "FileID": ID}
        equal(s.request("POST", "/api/symbols-ranges", RANGES, headers)[0], 404)
        equal(s.request("POST", "/profiling/v1/api/symbols-ranges", RANGES, headers)[0], 200)
        equal(s.request("POST", "/profiling/v1/api/symbols-returnpads", PADS, headers)[0], 200)
        status, _, data = s.request("GET", "/profiling/v1/api/symbols/" + ID64, headers={"Authorization": KEY})
        equal((status, json.loads(data)["returnpads"]["records"]), (200, 6))
        equal(names(ask(s, [(0x658, True)])[1][0]), FIVE)
        push("symbfile", "--file-id", "00" * 16, "--ranges", written(work, RANGES), "-u", f"http://127.0.0.1:{s.port}/profiling/v1/",
             "-t", "ci:secret")


def written(work, data):
    path = os.path.join(work, "ready.symbfile")
    with open(path, "wb") as f:
        f.write(data)
    return path


def test_stalled_upload_body_times_out(work, objects):
    with service(work, symbfile={"body_timeout": "300ms"}) as s:
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.sendall(f"POST /api/symbols-ranges HTTP/1.1\r\nHost: localhost\r\nAuthorization: {KEY}\r\nFileID: {ID}\r\n"
                      f"Content-Length: 297\r\n\r\n".encode() + RANGES[:100])
            c.settimeout(30)
            answer = b"".join(iter(lambda: c.recv(65536), b""))
        equal(answer.split(b" ", 2)[1], b"408", answer)
        equal(json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["Code"], "1110")
        wait_until("nothing is left", lambda: os.listdir(os.path.join(s.cache, "uploads", "tmp")) == [])
        equal('symloom_symbfile_parts_total{kind="ranges",result="cut off"} 1' in s.request("GET", "/metrics")[2].decode(), True)
        good(s, RANGES)


def part_head(size, file_id=ID):
    return (f"POST /api/symbols-ranges HTTP/1.1\r\nHost: localhost\r\nAuthorization: {KEY}\r\nFileID: {file_id}\r\n"
            f"Content-Length: {size}\r\n\r\n").encode()


def test_slow_uploaders_lose_their_slot(work, objects):
    """As many uploads at once as configured; whoever sends some bytes now and then does not hold a place for ever."""
    with service(work, symbfile={"max_uploads": 1, "body_timeout": "2s"}, config={"http": {"min_rate": "1MiB"}}) as s:
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.settimeout(0.05)
            c.sendall(part_head(1 << 20) + RANGES[:100])
            wait_until("the part's file", lambda: glob.glob(os.path.join(s.cache, "uploads", "tmp", "*")))
            refused(s, 503, "1401")
            answer = b""
            while b"}}" not in answer and b"408}" not in answer:
                try:
                    c.sendall(RANGES[100:101])
                    answer += c.recv(65536)
                except socket.timeout:
                    pass
        equal(answer.split(b" ", 2)[1], b"408", answer)
        equal(json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["Code"], "1110")
        wait_until("the place is free", lambda: upload(s, RANGES)[0] == 200)


def test_missing_uploads_are_cached(work, objects):
    """Modules without uploads cost no look at the disk again and again."""
    def io_jobs():
        return sum(int(float(l.split()[-1])) for l in s.request("GET", "/metrics")[2].decode().splitlines()
                   if l.startswith('symloom_pool_run_seconds_count{job="io"}'))

    with service(work) as s:
        body = {"modules": [{"type": "elf", "image_addr": hex(i << 20), "image_size": 4096, "file_id": f"{i:032x}",
                             "code_id": f"{i:040x}"} for i in range(1, 31)],
                "stacktraces": [{"frames": [{"instruction_addr": hex((i << 20) + 16)} for i in range(1, 31)]}]}
        s.symbolicate(body)
        before = io_jobs()
        for _ in range(30):
            equal({m["debug_status"] for m in s.symbolicate(body)["modules"]}, {"missing"})
        equal(io_jobs() - before < 90, True, "900 modules were asked for")
        good(s, RANGES, FileID=f"{7:032x}")
        equal([i for i, m in enumerate(s.symbolicate(body)["modules"]) if m["debug_status"] == "found"], [6])


def test_another_process_notices_new_uploads(work, objects):
    store = os.path.join(work, "store")
    with service(work, symbfile={"store_dir": store}) as one, service(work, symbfile={"store_dir": store}) as two:
        equal([ask(s, [0x654])[0]["modules"][0]["debug_status"] for s in (one, two)], ["missing", "missing"])
        good(one, RANGES)
        equal(found(one), FIVE)
        wait_until("the other to notice", lambda: ask(two, [0x654])[0]["modules"][0]["debug_status"] == "found")
        equal(one.request("DELETE", "/api/symbols/" + ID64, headers={"Authorization": key("boss:x:y")})[0], 200)
        equal(ask(one, [0x654])[0]["modules"][0]["debug_status"], "missing")
        wait_until("its removal", lambda: ask(two, [0x654])[0]["modules"][0]["debug_status"] == "missing")


def test_lock_held_for_ever_gives_503_and_blocks_no_thread(work, objects):
    """A process that hangs with an executable's lock in its hands: 503 after a while, and no thread waits for it."""
    with service(work, symbfile={"body_timeout": "300ms"}) as s:
        good(s, RANGES)
        with open(os.path.join(s.cache, "uploads", ID[:2], ID, "lock")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            answers = []
            threads = [threading.Thread(target=lambda: answers.append(upload(s, PADS, kind="returnpads")[0])) for _ in range(12)]
            for t in threads:
                t.start()
            good(s, RANGES, FileID="22" * 16)
            for t in threads:
                t.join()
            equal(answers, [503] * 12)
            equal(found(s), FIVE)
        good(s, PADS, kind="returnpads")


def test_damaged_upload_is_refused_before_the_body_ends(work, objects):
    with service(work) as s:
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.settimeout(30)
            c.sendall(f"POST /api/symbols-ranges HTTP/1.1\r\nHost: localhost\r\nAuthorization: {KEY}\r\nFileID: {ID}\r\n"
                      f"Content-Length: 1000000\r\n\r\n".encode() + b"no symbfile")
            equal(c.recv(65536).split(b" ", 2)[1], b"400")
        wait_until("nothing is left", lambda: os.listdir(os.path.join(s.cache, "uploads", "tmp")) == [])
        good(s, RANGES)


def framed(kind, body):
    """A message: size and type as LEB128, then the body."""
    out = bytearray()
    for n in (len(body), kind):
        while n > 0x7F:
            out.append(n & 0x7F | 0x80)
            n >>= 7
        out.append(n)
    return bytes(out) + body


def test_large_bodies_arrive_whole(work, objects):
    """Ten times what is kept in memory of a body; passed-over messages of random bytes, told by their hash."""
    body = RANGES + b"".join(framed(1000, os.urandom(size)) for size in (1, 5_000_000, 65_536, 333_333, 16_000_000))
    with service(work) as s:
        for compressed in (False, True):
            sent = gzip.compress(body, 1) if compressed else body
            good(s, sent, FileID=f"{compressed:032x}")
            status, _, told = s.request("GET", f"/api/symbols/{compressed:032x}", None, {"Authorization": KEY})
            equal((status, json.loads(told)["ranges"]["sha256"]),
                  (200, hashlib.sha256(hashlib.sha256(sent).digest()).hexdigest()))


def test_metrics_count_parts_by_result(work, objects):
    with service(work) as s:
        good(s, RANGES)
        good(s, RANGES)  # published already
        good(s, PADS, kind="returnpads")
        refused(s, 400, "1203", RANGES[:-1])
        refused(s, 400, "1102", FileID="abc")
        text = s.request("GET", "/metrics")[2].decode()
        for line in ('symbfile_parts_total{kind="ranges",result="ok"} 2', 'symbfile_parts_total{kind="returnpads",result="ok"} 1',
                     'symbfile_parts_total{kind="ranges",result="1203"} 1', 'symbfile_parts_total{kind="ranges",result="1102"} 1',
                     f'symbfile_bytes_total{{kind="ranges"}} {2 * len(RANGES)}', 'symbfile_records_total{kind="ranges"} 18',
                     'symbfile_records_total{kind="returnpads"} 6', 'symbfile_sets_published_total{kind="ranges"} 1'):
            equal("symloom_" + line in text.splitlines(), True, line + "\n" + text)
        cache = s.cache
    with service(work, cache_dir=cache) as s:
        def published():
            return [float(l.split()[-1]) for l in s.request("GET", "/metrics")[2].decode().splitlines()
                    if l.startswith('symloom_store_bytes{area="published"}')]
        wait_until("the size of the store", lambda: published() and published()[0] > 0)


def test_uploads_over_the_limits_are_refused(work, objects):
    with service(work, symbfile={"max_part_bytes": 296}) as s:
        refused(s, 413, "1108")
        good(s, PADS, kind="returnpads")
    with service(work, symbfile={"max_part_inflated_bytes": 296, "max_part_bytes": 290}) as s:
        refused(s, 413, "1108", gzip.compress(RANGES))
    with service(work, symbfile={"max_records": 8}) as s:
        refused(s, 413, "1108")
        good(s, PADS, kind="returnpads")
    with service(work, symbfile={"max_set_bytes": 500}) as s:
        good(s, RANGES, FilePart="0", FileParts="2")
        refused(s, 413, "1108", FilePart="1", FileParts="2")
    with service(work, symbfile={"store_min_free": 1 << 60}) as s:
        refused(s, 507, "1402")
    with service(work, symbfile={"store_max_size": 1}) as s:
        good(s, RANGES)
        refused(s, 507, "1402", FileID="00" * 16)


def test_conversions_over_their_limits_are_unsupported(work, objects):
    """An index that needs more than a conversion may have: unsupported, with a line in the log."""
    first = EMPTY + bytes.fromhex("080260c00c10101a0161")
    many = first + 130000 * bytes.fromhex("0702082010101a0161")
    long = first + b"".join(bytes.fromhex("f00702082010101ae907") + b"%04d" % i + 997 * b"x" for i in range(3000))
    for limit, body, text in (({"max_time": "1ms"}, many, "needs more than 1ms of time"),
                              ({"max_memory": "1MiB"}, long, "needs more than 1 MiB of memory")):
        with service(work, config={"conversion": limit}) as s:
            good(s, body)
            equal(ask(s, [0x644])[0]["modules"][0]["debug_status"], "unsupported")
            wait_until(f"{text!r} in the log", lambda: text in s.logged())  # which a thread of its own writes
        with service(work) as s:
            good(s, body)
            equal(names(ask(s, [0x644])[1][0]), [("a", 0)])


def test_uploads_can_be_inspected_and_deleted(work, objects):
    with service(work) as s:
        def get(rights="boss:x:y", method="GET"):
            status, _, data = s.request(method, "/api/symbols/" + ID64, headers={"Authorization": key(rights)})
            return status, json.loads(data)

        equal(get()[0], 404)
        good(s, RANGES, BuildID="AABBCCDDEE")
        status, state = get()
        equal((status, state["build_id"], state["ranges"]["state"], state["ranges"]["records"]), (200, "aabbccddee", "published", 9))
        equal(state["ranges"]["sha256"], hashlib.sha256(hashlib.sha256(RANGES).digest()).hexdigest())
        equal(get("ci:secret", "DELETE")[0], 403)
        equal(get(method="DELETE"), (200, {"success": True, "status": 200}))
        equal(get()[0], 404)
        equal(get(method="DELETE")[0], 404)
        equal(ask(s, [0x654])[0]["modules"][0]["debug_status"], "missing")
        good(s, RANGES)
        equal(found(s), FIVE)


def test_upload_continues_after_a_kill_between_parts(work, objects):
    s = service(work)
    good(s, RANGES[:100], FilePart="0", FileParts="3")
    with socket.create_connection(("127.0.0.1", s.port)) as c:  # a part that is on its way when the service dies
        c.sendall(f"POST /api/symbols-ranges HTTP/1.1\r\nHost: localhost\r\nAuthorization: {KEY}\r\nFileID: {ID}\r\n"
                  f"FilePart: 1\r\nFileParts: 3\r\nContent-Length: 100\r\n\r\n".encode() + RANGES[100:150])
        wait_until("the part's file", lambda: glob.glob(os.path.join(s.cache, "uploads", "tmp", "*")))
        s.process.send_signal(signal.SIGKILL)
        s.process.wait()
    with service(work, cache_dir=s.cache) as s:
        good(s, RANGES[200:], FilePart="2", FileParts="3")
        equal(ask(s, [0x654])[0]["modules"][0]["debug_status"], "missing")
        s.process.send_signal(signal.SIGKILL)
        s.process.wait()
        s.process.returncode = 0
    with service(work, cache_dir=s.cache) as s:
        good(s, RANGES[100:200], FilePart="1", FileParts="3")
        equal(found(s), FIVE)


def test_truncated_part_does_not_exist(work, objects):
    with service(work) as s:
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.sendall(f"POST /api/symbols-ranges HTTP/1.1\r\nHost: localhost\r\nAuthorization: {KEY}\r\nFileID: {ID}\r\n"
                      f"Content-Length: 297\r\n\r\n".encode() + RANGES[:200])
            wait_until("the part's file", lambda: glob.glob(os.path.join(s.cache, "uploads", "tmp", "*")))
        wait_until("its end", lambda: not glob.glob(os.path.join(s.cache, "uploads", "tmp", "*")))
        equal(ask(s, [0x654])[0]["modules"][0]["debug_status"], "missing")


def test_staged_sets_expire(work, objects):
    first = service(work, symbfile={"staging_ttl": "1s"})
    with first as s:
        good(s, EMPTY, FilePart="0", FileParts="2")
        home = os.path.join(s.cache, "uploads", ID[:2], ID)
        staged = [n for n in os.listdir(home) if n.startswith("staging")]
        equal(len(staged), 1)
        os.utime(os.path.join(home, staged[0]), (1, 1))
    with service(work, cache_dir=first.cache, symbfile={"staging_ttl": "1s"}) as s:
        wait_until("the sweep", lambda: not [n for n in os.listdir(home) if n.startswith("staging")])


def test_concurrent_parts_are_all_kept(work, objects):
    with service(work) as s:
        failures = []

        def send(part):
            try:
                good(s, RANGES if part == 17 else EMPTY, FilePart=str(part), FileParts="30")
            except Exception as e:
                failures.append(e)

        threads = [threading.Thread(target=send, args=(i,)) for i in range(30)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        equal(failures, [])
        equal(found(s), FIVE)


def test_uploads_are_found_by_build_id_or_debug_id(work, objects):
    """A build id or debug id finds what was uploaded with it, after the sources."""
    with Upstream({}) as up, service(work) as s:
        module = {"type": "elf", "code_id": objects.build_id, "image_addr": "0x10000000"}
        good(s, RANGES, BuildID=objects.build_id, BaseAddress="0x400", Arch="arm64")
        for ids in ({"code_id": objects.build_id}, {"debug_id": objects.debug_id}):
            answer = s.symbolicate({"modules": [{"type": "elf", "image_addr": "0x10000000", **ids}], "sources": [http_source(up.url)],
                                    "stacktraces": [{"frames": [{"instruction_addr": "0x10000254"}]}]})
            equal(names(frames(answer)), FIVE)
            equal((answer["modules"][0]["debug_status"], answer["modules"][0]["arch"]), ("found", "arm64"))
            equal("file_id" in answer["modules"][0], False)
            equal((frames(answer)[-1]["sym_addr"], frames(answer)[0]["instruction_addr"]), ("0x10000240", "0x10000254"))
        answer = s.symbolicate({"modules": [{**module, "image_vmaddr": "0x600"}], "sources": [],
                                "stacktraces": [{"frames": [{"instruction_addr": "0x10000054"}]}]})
        equal(names(frames(answer)), FIVE)


def test_prefer_key_orders_sources_and_uploads(work, objects):
    with Upstream(objects.layout()) as up:
        body = request(objects.module(file_id=ID), [0x254], sources=[http_source(up.url)])
        plain = request(objects.module(), [0x254], sources=[http_source(up.url)])
        for prefer, with_id, without in (("auto", True, False), ("symbfile", True, True), ("sources", False, False)):
            with service(work, symbfile={"prefer": prefer}) as s:
                good(s, RANGES, BuildID=objects.build_id, BaseAddress="0x400")
                equal(names(frames(s.symbolicate(body))) == FIVE, with_id, prefer)
                equal(names(frames(s.symbolicate(plain))) == FIVE, without, prefer)


def test_a_bad_file_id_makes_the_module_malformed(work, objects):
    with service(work) as s:
        answer, got = ask(s, [0x654], file_id="nonsense")
        equal((answer["modules"][0]["debug_status"], got[0][0]["status"]), ("malformed", "malformed"))
        equal("file_id" in answer["modules"][0], False)
