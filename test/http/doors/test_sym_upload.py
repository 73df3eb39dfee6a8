"""Uploads of Breakpad's sym_upload: version 2 in four requests, version 1 in one."""
import json, os, subprocess, urllib.parse

from harness import Service, equal, multipart, request
from test_sentry import AUTH, KEY, KEYS, found_lines, server

SYM = (b"MODULE Linux x86_64 A7D6F1BB18CD4CB48A7D6F1BB18CD4CB0 app\nFILE 0 a.c\nFUNC 10 20 0 spin()\n10 20 5 0\n")
SYM_ID = "A7D6F1BB18CD4CB48A7D6F1BB18CD4CB0"


def status(s, file, debug_id, key=KEY):
    code, _, data = s.request("GET", f"/v1/symbols/{file}/{debug_id}:checkStatus?key={key}")
    return code, data


def create(s):
    code, _, data = s.request("POST", f"/v1/uploads:create?key={KEY}", b"")
    equal(code, 200, data)
    equal(data.startswith(b'{"uploadUrl": "http://') and b', "uploadKey": "' in data, True, data)
    answer = json.loads(data)
    equal((answer["uploadUrl"], answer["uploadKey"]), (answer["upload_url"], answer["upload_key"]))
    return urllib.parse.urlsplit(answer["uploadUrl"]), answer["uploadKey"]


def complete(s, key, file, debug_id, kind=None, end=":complete"):
    body = f'{{ symbol_id: {{debug_file: "{file}", debug_id: "{debug_id}" }}, symbol_upload_type: "{kind or "BREAKPAD"}" }}'
    code, _, data = s.request("POST", f"/v1/uploads/{key}{end}?key={KEY}", body.encode(), {"Content-Type": "application/son"})
    return code, data


def upload(s, data, file, debug_id, kind=None):
    url, key = create(s)
    equal(s.request("PUT", f"{url.path}?{url.query}", data)[0], 200)
    return complete(s, key, file, debug_id, kind)


def test_version_2_uploads_native_files(work, objects):
    with server(work) as s:
        equal(status(s, "shapes", objects.build_id.upper()), (200, b'{"status": "MISSING"}'))
        equal(upload(s, objects.debug, "shapes", objects.build_id.upper(), "elf"), (200, b'{"result": "OK"}'))
        equal(status(s, "shapes", objects.build_id.upper()), (200, b'{"status": "FOUND"}'))
        equal(upload(s, objects.debug, "shapes", objects.build_id.upper(), "DEBUG_ONLY"), (200, b'{"result": "DUPLICATE_DATA"}'))
        equal(found_lines(s, objects)[0], "found")
        code, data = upload(s, objects.debug, "shapes", "0" * 39 + "1", "ELF")
        equal((code, b"not the given ones" in data), (400, True), data)
        equal(upload(s, b"nothing", "shapes", "", "PDB")[0], 400)
        equal(upload(s, objects.debug, "shapes", "", "ZIP")[0], 400)
        equal(os.listdir(os.path.join(s.cache, "uploads", "chunks", "received")), [])


def test_an_upload_url_serves_once_and_needs_its_secret(work, objects):
    with server(work) as s:
        url, key = create(s)
        equal(s.request("PUT", f"{url.path}?t={'0' * 32}", b"x")[0], 403)
        equal(s.request("PUT", url.path, b"x")[0], 403)
        equal(s.request("PUT", f"/v1/uploads/{'1' * 32}?{url.query}", b"x")[0], 404)
        equal(complete(s, key, "a", "b")[0], 404)
        equal(s.request("PUT", f"{url.path}?{url.query}", SYM)[0], 200)
        equal(s.request("PUT", f"{url.path}?{url.query}", SYM)[0], 403)
        equal(complete(s, key, "a", "b", end=":finish")[0], 404)
        equal(complete(s, key, "app", SYM_ID), (200, b'{"result": "OK"}'))
        equal(complete(s, key, "app", SYM_ID)[0], 404)
        equal(s.request("POST", "/v1/uploads:create", b"")[0], 401)
        equal(s.request("POST", "/v1/uploads:create?key=wrong", b"")[0], 401)
        equal(KEY in s.logged(), False)


def breakpad_name(s):
    answer = s.symbolicate(request({"type": "elf", "debug_id": "a7d6f1bb-18cd-4cb4-8a7d-6f1bb18cd4cb", "debug_file": "app",
                                    "code_id": "bbf1d6a7cd18b44c8a7d6f1bb18cd4cb00112233", "image_addr": "0x10000000", "image_size": 0x1000}, [0x12]))
    return answer["modules"][0]["debug_status"], answer["stacktraces"][0]["frames"][0].get("function")


def test_breakpad_files_are_found_by_their_debug_id(work, objects):
    with server(work) as s:
        equal(upload(s, SYM, "app", SYM_ID), (200, b'{"result": "OK"}'))
        equal(status(s, "app", SYM_ID), (200, b'{"status": "FOUND"}'))
        equal(breakpad_name(s), ("found", "spin()"))


def test_breakpad_files_go_to_mozillas_store_if_there_is_one(work, objects):
    store = os.path.join(work, "store")
    with server(work, mozilla={"sources": [], "store": {"filesystem": {"path": store}}}) as s:
        equal(status(s, "app", SYM_ID), (200, b'{"status": "MISSING"}'))
        equal(upload(s, SYM, "app", SYM_ID), (200, b'{"result": "OK"}'))
        equal(os.path.exists(os.path.join(store, "v1", "app", SYM_ID, "app.sym")), True)
        equal(status(s, "app", SYM_ID), (200, b'{"status": "FOUND"}'))
        equal(upload(s, SYM, "app", SYM_ID), (200, b'{"result": "DUPLICATE_DATA"}'))
        equal(s.request("GET", f"/app/{SYM_ID}/app.sym")[2], SYM)
        equal(breakpad_name(s), ("found", "spin()"))
        equal(upload(s, b"no module", "app", SYM_ID)[0], 400)


def test_version_1_uploads_a_form(work, objects):
    with server(work) as s:
        body, kind = multipart([("debug_file", "app"), ("debug_identifier", SYM_ID), ("symbol_file", SYM, "app.sym")])
        equal(s.request("POST", "/v1/symupload", body, {**AUTH, **kind})[0], 200)
        equal(breakpad_name(s), ("found", "spin()"))
        equal(s.request("POST", f"/v1/symupload?key={KEY}", *multipart([("debug_file", "app")]))[0], 400)
