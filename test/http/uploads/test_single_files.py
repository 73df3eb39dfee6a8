"""Uploads of single files: what is to be sent, and where it goes, whole or in pieces; and what expires."""
import gzip, hashlib, json, os
from urllib.parse import urlsplit

from faults import small_disk
from harness import equal, wait_until
from pushing import SYM, TOKEN, TRY, XPC, get, send, server, stored, upload

FLAG = os.urandom(600000)


def md5(data):
    return hashlib.md5(data).hexdigest()


def announce(s, files, headers=TOKEN):
    body = {"files": [{"key": key, "size": len(data), "md5_hash": md5(data)} for key, data in files]}
    status, answer = send(s, json.dumps(body).encode(), headers, "/upload/v2/", "application/json")
    equal(status, 201, answer)
    return answer


def place(action):
    return urlsplit(action["url"]).path


def test_single_files_are_announced_and_uploaded(work, objects):
    with server(work) as s:
        answer = announce(s, [(XPC, SYM), ("flag/deadbeef/flag.jpeg", FLAG)])
        files = answer.pop("files")
        assert answer.pop("id") and answer.pop("created_at")
        equal(answer, {"user": "a@example.com", "try_symbols": False, "upload_protocol": "gcs-resumable"})
        equal([(f["key"], f["action"]["type"], f["action"]["content_encoding"]) for f in files],
              [(XPC, "upload", "gzip"), ("flag/deadbeef/flag.jpeg", "upload", None)])
        one, two = (place(f["action"]) for f in files)
        put = lambda path, data, **fields: s.request("PUT", path, data, {k.replace("_", "-"): v for k, v in fields.items()})
        for wrong in (SYM, gzip.compress(SYM[1:]), gzip.compress(SYM) + b"x", gzip.compress(SYM)[:-9], b"", gzip.compress(bytes(10 ** 6))):
            equal(put(one, wrong)[0], 400, wrong[:20])
        equal(stored(work), [])
        equal(put(one, gzip.compress(SYM))[0], 200)
        equal(get(s, XPC)[2], SYM)
        equal(get(s, "xpcshell/80AE0509E7CE/xpcshell.sym")[0], 302)
        half = 256 * 1024
        equal(put(two, b"", Content_Range="bytes */*")[0], 308)
        status, headers, _ = put(two, FLAG[:half], Content_Range=f"bytes 0-{half - 1}/{len(FLAG)}")
        equal((status, headers["Range"]), (308, f"bytes=0-{half - 1}"))
        for fields in ("bytes */*", f"bytes 0-{half - 1}/*"):
            status, headers, _ = put(two, b"" if "*/" in fields else FLAG[:half], Content_Range=fields)
            equal((status, headers["Range"]), (308, f"bytes=0-{half - 1}"))
        equal(put(two, b"xx", Content_Range=f"bytes {half}-{half + 5}/{len(FLAG)}")[0], 400)
        equal(put(two, b"x", Content_Range="what?")[0], 400)
        equal(put(two, FLAG[half:], Content_Range=f"bytes {half}-{len(FLAG) - 1}/{len(FLAG)}")[0], 200)
        equal(put(two, b"", Content_Range="bytes */*")[0], 200)
        with open(os.path.join(work, "store/v1/flag/DEADBEEF/flag.jpeg"), "rb") as f:
            assert f.read() == FLAG
        equal(put("/upload/v2/session/" + 32 * "a", b"x")[0], 404)
        for headers in TOKEN, TRY:
            equal([f["action"] for f in announce(s, [(XPC, SYM), ("flag/deadbeef/flag.jpeg", FLAG)], headers)["files"]], [{"type": "skip"}] * 2)
        again = announce(s, [(XPC, SYM + b"x")], TRY)
        equal((again["try_symbols"], put(place(again["files"][0]["action"]), gzip.compress(SYM + b"x"))[0]), (True, 200))
        equal([get(s, p)[2] for p in (XPC, "try/" + XPC)], [SYM, SYM])


def test_invalid_announcements_and_parts_are_refused(work, objects):
    with server(work, {"v2_max_files": 2}) as s:
        for key in ("x\u00fcl.pdb/1A2B3C4/xul.sym", "x%l.pdb/1A2B3C4/xul.sym", "xul.pdb/1A2B3C/xul#.ex_", "xul.so/1A2B3G4E/xul.sym"):
            equal(announce(s, [(key, b"")])["files"], [{"key": key, "action": {"type": "error", "msg": "invalid key"}}])
        for digest in (md5(b"").upper(), md5(b"")[1:], md5(b"") + "0"):
            body = json.dumps({"files": [{"key": XPC, "size": 1, "md5_hash": digest}]}).encode()
            equal(send(s, body, path="/upload/v2/", kind="application/json")[1]["files"][0]["action"],
                  {"type": "error", "msg": "invalid MD5 hex digest"})
        for body in (b"not JSON", b'{"files": "wrong type"}', b'{"files": [{}]}', b'{"files": [{"key": 1, "size": 1, "md5_hash": ""}]}', b"[]"):
            equal(send(s, body, path="/upload/v2/"), (400, {"error": "malformed JSON request body"}))
        body = json.dumps({"files": [{"key": XPC, "size": 1, "md5_hash": "x"}] * 3}).encode()
        equal(send(s, body, path="/upload/v2/"), (400, {"error": "too many files"}))
        equal(send(s, body, {}, "/upload/v2/")[0], 403)
        equal(send(s, bytes(2621441), path="/upload/v2/")[0], 413)
        equal(get(s, "upload/v2/")[0], 405)


def test_try_uploads_expire(work, objects):
    with server(work, {"try_retention": "1s"}) as s:
        upload(s, {XPC: SYM})
        upload(s, {XPC.replace("xpcshell", "other"): SYM}, TRY)
        left = ["codeinfo/xpcshell.dbg/A7D6F1BB18CD4CB48", "codeinfo/xpcshell/80AE0509E7CE", "v1/" + XPC]
        wait_until("tries to go", lambda: stored(work) == left)


def test_full_cache_dir_does_not_blame_the_parts_of_a_file(work, objects):
    """A part that cannot be kept is no part of a wrong size: the client gets 500, and may send less of it again."""
    data = os.urandom(3000000)
    with small_disk(work, "2m") as disk:
        if not disk:
            return
        with server(work, {"filesystem": {"path": os.path.join(work, "store")}}, cache_dir=os.path.join(disk, "cache")) as s:
            path = place(announce(s, [("a.so/AB/a.bin", data)])["files"][0]["action"])
            put = lambda size: s.request("PUT", path, data[:size], {"Content-Range": f"bytes 0-{size - 1}/{len(data)}"})
            status, _, answer = put(1500000)
            equal((status, json.loads(answer)), (500, {"error": "Internal Server Error"}))
            status, headers, _ = put(100000)
            equal((status, headers["Range"]), (308, "bytes=0-99999"))
