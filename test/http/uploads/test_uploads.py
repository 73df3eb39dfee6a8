"""Mozilla's symbol server: archives of symbols in forms, tokens, and downloads of what was uploaded."""
import concurrent.futures, gzip, json, os, re, struct, zipfile

from harness import Service, Upstream, equal
from pushing import (EXPIRED, INACTIVE, SAMPLE, SYM, TOKEN, TOKENS, TRY, VIEWER, XPC, form, get, pack, refused, send, server, stored,
                     upload)

PATTERN = ("Unrecognized file pattern. Should only be <module>/<hex>/<file> or <name>-symbols.txt and nothing else. "
           "(First unrecognized pattern was '%s')")


def test_repeated_archive_is_stored_once(work, objects):
    with server(work) as s:
        data = pack(SAMPLE)
        status, answer = upload(s, data)
        first = answer["upload"]
        times = [first.pop("completed_at"), first.pop("created_at")]
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", t) for t in times), times
        assert 0 < first.pop("id") < 2 ** 53
        equal((status, first), (201, {"size": len(data), "filename": "file.zip", "bucket": "store", "download_url": None,
                                      "try_symbols": False, "redirect_urls": [], "user": "a@example.com", "skipped_keys": []}))
        equal(stored(work), ["codeinfo/xpcshell.dbg/A7D6F1BB18CD4CB48", "codeinfo/xpcshell/80AE0509E7CE",
                             "v1/flag/DEADBEEF/flag.jpeg", "v1/" + XPC])
        with open(os.path.join(work, "store/v1", XPC), "rb") as f:
            equal(gzip.decompress(f.read()), SYM)
        for method in zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED:
            _, answer = upload(s, SAMPLE, method=method)
            equal(sorted(answer["upload"]["skipped_keys"]), ["flag/deadbeef/flag.jpeg", XPC])  # as they were sent
        changed = {**SAMPLE, XPC: SYM + b"PUBLIC 90 0 g\n", "flag/deadbeef/flag.jpeg": os.urandom(69183)}
        equal(upload(s, changed, method=zipfile.ZIP_STORED)[1]["upload"]["skipped_keys"], [])
        with open(os.path.join(work, "store/v1", XPC), "rb") as f:
            equal(gzip.decompress(f.read()), changed[XPC])
        ignored = {"flag/.DS_Store": b"x", "xpcshell.dbg/A7D6F1BB18CD4CB48/.DS_Store": b"x", "a/": b"",
                   "a/ab/my-symbols.txt": b"x"}
        equal(upload(s, {**changed, **ignored})[0], 201)
        equal(len(stored(work)), 4)


def test_upload_results_are_shown_to_their_user(work, objects):
    """Its user may ask, and who may see all; before and after a restart."""
    lower = XPC.replace("A7D6", "a7d6")
    members = {"flag/deadbeef/flag.jpeg": SAMPLE["flag/deadbeef/flag.jpeg"], lower: SYM}
    with server(work) as s:
        first, second, tried = (upload(s, members, headers)[1]["upload"] for headers in (TOKEN, TOKEN, TRY))
        equal(sorted(second["skipped_keys"]), sorted(members))
    with server(work) as s:
        def ask(number, headers):
            status, _, body = get(s, f"api/uploads/upload/{number}", headers)
            return status, json.loads(body)
        status, answer = ask(first["id"], TOKEN)
        told = answer["upload"]
        equal((status, told["user"], told["bucket_name"]), (200, {"id": 7, "email": "a@example.com"}, "store"))
        equal({k: told[k] for k in first if k not in ("user", "bucket", "completed_at")},
              {k: v for k, v in first.items() if k not in ("user", "bucket", "completed_at")})
        equal(sorted((f["key"], f["compressed"]) for f in told["file_uploads"]), [("flag/DEADBEEF/flag.jpeg", False), (XPC, True)])
        equal([f["size"] for f in told["file_uploads"]],
              [os.path.getsize(os.path.join(work, "store/v1", f["key"])) for f in told["file_uploads"]])
        told = ask(second["id"], TOKEN)[1]["upload"]
        equal((sorted(told["skipped_keys"]), told["ignored_keys"], told["file_uploads"]), (sorted(members), [], []))
        changed = {lower: SYM + b"PUBLIC 90 0 g\n", "build-symbols.txt": b"x", "flag/": b"", "flag/.DS_Store": b"x", "n/1/n.sym": b"x"}
        told = ask(upload(s, changed)[1]["upload"]["id"], TOKEN)[1]["upload"]
        equal(told["ignored_keys"], ["build-symbols.txt", "flag/.DS_Store"])
        equal(sorted((f["key"], f["update"]) for f in told["file_uploads"]), [("n/1/n.sym", False), (XPC, True)])
        equal([ask(tried["id"], h)[0] for h in (TRY, VIEWER, TOKEN, {})], [200, 200, 403, 403])
        equal([ask(n, TOKEN)[0] for n in (1, "x", "..", "9" * 30)], [404] * 4)


def test_invalid_archives_are_refused(work, objects):
    with server(work, {"max_members": 5, "max_unpacked_size": 1 << 20, "scan_contents": True}) as s:
        none = "Must be multipart form data with at least one file"
        equal(send(s, form([], [("try", "1")])), (400, {"error": none}))
        equal(send(s, b"a=b", kind="application/x-www-form-urlencoded"), (400, {"error": none}))
        equal(send(s, b"--B\r\n"), (400, {"error": none}))
        refused(s, b"", "File is not a zip file", name="myfile.zip")
        refused(s, b"Rar!", 'Unrecognized archive file extension ".rar"', name="myfile.rar")
        refused(s, b"", 'Unrecognized archive file extension ""', name="myfile")
        for name in ("xpcshell.sym", "xpcfoo.dbg/A7D6F1BB18CD4CB48/p%eter.sym", "/a/ab/c", "../ab/c", "a/ab/..", "a/xy/c", "a/ab/c/d",
                     "x\u00fcl.pdb/1A/xul.sym", "a/ab/" + 300 * "x"):
            refused(s, {name: b"x"}, PATTERN % name)
        refused(s, {"it's/ab/c": b"x"}, PATTERN % r"it\'s/ab/c")
        twice = "foo.pdb/50FEB8DBDC024C66B42193D881CE80E12/ntdll.sym"
        refused(s, [(twice, 39 * b"x"), (twice, 24 * b"x")],
                f"The zipfile buffer contains two files both called {twice} and they have difference sizes (24 != 39)")
        equal(upload(s, [(twice, 30 * b"a"), (twice, 30 * b"b")])[0], 201)
        equal(get(s, twice)[2], 30 * b"b", "the later data")
        snippet = "Content of archive file contains the snippet 'qcom/proprietary' which is not allowed"
        refused(s, {"a/ab/c.sym": b"x", "qcom/proprietary/c.sym": b"x"}, snippet)
        refused(s, {"a/ab/c.sym": (256 * 1024 - 5) * b"x" + b"qcom/proprietary"}, snippet)
        data = pack({"a/ab/c.sym": b"0123456789" * 20, "a/ab/d.sym": b"y"}, zipfile.ZIP_STORED)
        refused(s, data.replace(b"01234567890", b"01234567891", 1), "Bad CRC-32 for file 'a/ab/c.sym'")
        at = data.index(b"PK\1\2")
        refused(s, data[:at + 8] + b"\1\0" + data[at + 10:], "Archive member 'a/ab/c.sym' is encrypted or compressed in an unknown way")
        refused(s, data[:at + 5] + b"\3" + data[at + 6:at + 38] + struct.pack("<I", 0o120777 << 16) + data[at + 42:],
                "Archive member 'a/ab/c.sym' is a symbolic link")
        refused(s, {f"a/ab/{i}": b"x" for i in range(6)}, "Archive file has more than 5 members")
        refused(s, {"a/ab/c.sym": os.urandom(1 << 20), "a/ab/d": b"x"}, "Upload is too large", status=413)
        refused(s, {"a/ab/c.sym": bytes(8 << 20)}, "Archive member 'a/ab/c.sym' is a zip bomb")
        equal([n for n in stored(work) if not n.startswith("v1/foo.pdb")], [])


def test_unusual_file_names_are_stored(work, objects):
    with server(work) as s:
        equal(upload(s, {"汉 a~+.pdb/1a/汉 a~+.sym": b"x"})[0], 201)
        equal(get(s, "%E6%B1%89%20a~+.pdb/1A/%E6%B1%89%20a~+.sym")[2], b"x")
        equal(get(s, "a%2Fb/1A/a.sym")[0], 404)


def test_upload_tokens_are_checked(work, objects):
    with server(work) as s:
        data = pack(SAMPLE)
        for headers, text in (({"Auth-Token": "junk"}, "API Token not matched"), (EXPIRED, "API Token found but expired"),
                              (INACTIVE, "API Token matched but user not active"), (VIEWER, "Forbidden"),
                              ({}, "This requires an Auth-Token to authenticate the request")):
            refused(s, data, text, 403, headers=headers)
            equal(send(s, b"", headers, "/upload/auth_info/"), (403, {"error": text}))
        for path in ("upload/", XPC, "upload/x", "api/syminfo/a/b"):
            equal(get(s, path, {"Auth-Token": "junk"})[::2], (403, b'{"error": "API Token not matched"}'))
        status, headers, body = get(s, "upload/", TOKEN)
        equal((status, headers["Allow"], body), (405, "POST", b'{"error": "Method Not Allowed (GET): /upload/"}'))
        equal(send(s, b"", {"Auth-Token": "aa11-my label-2"}, "/upload/auth_info/"),
              (200, {"email": "a@example.com", "user_id": 7, "try_symbols": False, "token_expires_at": 1893542400,
                     "upload_api_version": 1}))
        answer = send(s, b"", TRY, "/upload/auth_info/")[1]  # clients read a number, also of a token that never ends
        equal((answer["upload_api_version"], answer["token_expires_at"]), (2, 253402214400))
        for headers, fields, expected in ((TOKEN, (), False), (TRY, (), True), (TOKEN, [("try", "")], False),
                                          (TRY, [("try", "0")], True)):
            equal(upload(s, data, headers, fields=fields)[1]["upload"]["try_symbols"], expected)
        refused(s, data, "Forbidden", 403, headers=TRY, fields=[("try", "")])
        refused(s, data, "Forbidden", 403, fields=[("try", "1")])


def test_stored_files_are_downloaded(work, objects):
    with server(work) as s:
        upload(s, SAMPLE)
        path = XPC.replace("A7D6", "a7d6")
        status, headers, body = get(s, path)
        equal((status, body, headers["Content-Type"], headers["Access-Control-Allow-Origin"]), (200, SYM, "text/plain", "*"))
        for script in (path, "a.pdb/AB/a.sym", "api/syminfo/a/b", "api/syminfo/xpcshell/80AE0509E7CE"):
            _, headers, _ = get(s, script)
            equal([headers["Access-Control-Allow-" + name] for name in ("Origin", "Methods", "Headers")],
                  ["*", "GET", "accept,accept-encoding,authorization,content-type,dnt,origin,user-agent,x-csrftoken,x-requested-with"], script)
        status, headers, body = get(s, path, {"Accept-Encoding": "br, gzip"})
        equal((status, headers["Content-Encoding"], gzip.decompress(body)), (200, "gzip", SYM))
        equal(get(s, path, {"Accept-Encoding": "gzip", "If-None-Match": headers["ETag"]})[0], 304)
        for accepted in ("gzip;q=0", "gzip;q=0.0", "gzip; q=0.000", "gzip;q=0, *", "br"):
            status, headers, body = get(s, path, {"Accept-Encoding": accepted})
            equal((status, headers.get("Content-Encoding"), body), (200, None, SYM), accepted)
        status, part, piece = get(s, path, {"Accept-Encoding": "gzip", "Range": "bytes=10-19"})
        body = get(s, path, {"Accept-Encoding": "gzip"})[2]
        equal((status, piece, part["Content-Range"]), (206, body[10:20], f"bytes 10-19/{len(body)}"))
        status, head, nothing = get(s, path, {"Accept-Encoding": "gzip"}, "HEAD")
        equal((status, head["Content-Length"], head["Access-Control-Allow-Origin"], nothing), (200, str(len(body)), "*", b""))
        status, headers, body = get(s, path, method="PUT")
        equal((status, headers["Allow"]), (405, "GET, HEAD"))
        for bad in ("cxinjime.pdb/342D9B0A3AE64812A2388C055C9F6C321/file.ptr", "a.pdb/" + 33 * "0" + "/a.sym",
                    "flag/deadbeef/flag.jpeg", "a.pdb/AB/a.SYM"):
            status, headers, body = get(s, bad, {"Debug": "true"})
            equal((status, body, float(headers["Debug-Time"])), (404, b"Symbol Not Found (and ignored)", 0))
        status, headers, body = get(s, "a.pdb/AB/a.sym", {"Debug": "1"})
        equal((status, body, headers["Content-Type"]), (404, b"Symbol Not Found", "text/html; charset=utf-8"))
        assert float(headers["Debug-Time"]) > 0
        for path in ("a/xy/a.sym", "try/x", "api/nothing", "upload/blabla"):
            equal(get(s, path)[::2], (404, f'{{"error": "Not Found", "path": "/{path}"}}'.encode()))


def test_try_uploads_are_kept_apart(work, objects):
    with server(work) as s:
        upload(s, SAMPLE, TRY)
        equal([get(s, p)[0] for p in (XPC, "try/" + XPC, XPC + "?try", XPC + "?try=")], [404, 200, 200, 200])
        upload(s, {XPC: SYM + b"PUBLIC 90 0 g\n"})
        equal([len(get(s, p)[2]) - len(SYM) for p in (XPC, "try/" + XPC)], [14, 14], "what is regular wins")
        equal(upload(s, {XPC: SYM + b"PUBLIC 90 0 g\n"}, TRY)[1]["upload"]["skipped_keys"], [XPC])


def test_code_ids_redirect_to_symbol_files(work, objects):
    with server(work) as s:
        upload(s, SAMPLE)
        for method in "GET", "HEAD":
            status, headers, _ = get(s, "xpcshell/80ae0509e7ce/xpcshell.sym?a=b", method=method)
            equal((status, headers["Location"]), (302, f"/{XPC}?a=b"))
        equal([get(s, p)[0] for p in ("gkcodecs.dll/650C26A577000/gkcodecs.dl_", "xpcshell/80AE0509E7CE/xpcshell.dl_",
                                      "xpcshell/" + 33 * "8" + "/xpcshell.sym")], [404, 404, 404])
        known = {"debug_id": "A7D6F1BB18CD4CB48", "debug_filename": "xpcshell.dbg", "code_file": "xpcshell",
                 "code_id": "80AE0509E7CE", "generator": "mozilla/dump_syms 2.3"}
        for pair in ("xpcshell/80AE0509E7CE", "xpcshell.dbg/a7d6f1bb18cd4cb48"):
            status, _, body = get(s, "api/syminfo/" + pair)
            answer = json.loads(body)
            assert answer.pop("url").endswith("/" + XPC)
            equal((status, answer), (200, known))
        equal(get(s, "api/syminfo/a/AB")[::2], (404, b"Code file / id Not Found"))
        for proto in "http", "https":
            _, _, body = get(s, "api/syminfo/xpcshell/80AE0509E7CE", {"X-Forwarded-Proto": proto})
            equal(json.loads(body)["url"], f"{proto}://127.0.0.1:{s.port}/{XPC}")
        info = os.path.join(work, "store/codeinfo/xpcshell/80AE0509E7CE")
        os.remove(info)
        os.symlink("80AE0509E7CE", info)  # there, and cannot be read
        equal([get(s, p)[0] for p in ("api/syminfo/xpcshell/80AE0509E7CE", "xpcshell/80ae0509e7ce/xpcshell.sym")], [500, 500])


def test_routes_are_missing_without_a_store(work, objects):
    with Service(work, {}) as s:
        equal([s.request(m, p)[0] for m, p in (("POST", "/upload/"), ("GET", "/upload/"), ("GET", "/" + XPC), ("PUT", "/a/b/c"))],
              [404, 404, 404, 404])
        equal(s.request("GET", "/" + XPC)[2], b"")


P = "testproj/D48F191186D67E69DF025AD71FB91E1F0/testproj.sym"
P_SYM = (b"MODULE Linux x86_64 D48F191186D67E69DF025AD71FB91E1F0 testproj\nFILE 0 main.rs\nFUNC 5380 44 0 testproj::main\n5380 44 1 0\n")


def ask_v5(s):
    body = {"jobs": [{"memoryMap": [P.split("/")[:2]], "stacks": [[[0, 0x5381]]]}]}
    status, _, answer = s.request("POST", "/symbolicate/v5", json.dumps(body))
    equal(status, 200, answer)
    result = json.loads(answer)["results"][0]
    return list(result["found_modules"].values())[0], result["stacks"][0][0].get("function")


def ask_native(s, **more):
    module = {"type": "elf", "debug_file": "testproj", "debug_id": "d48f1911-86d6-7e69-df02-5ad71fb91e1f", "image_addr": "0x10000"}
    answer = s.symbolicate({"sources": [], "modules": [module], "stacktraces": [{"frames": [{"instruction_addr": "0x15381"}]}], **more})
    return answer["modules"][0]["debug_status"], answer["stacktraces"][0]["frames"][0].get("function")


def test_uploads_answer_every_api_at_once(work, objects):
    """Also after it was known, in memory and on disk, that there is nothing; and when a file is replaced."""
    with server(work) as s:
        for _ in range(2):
            equal((ask_v5(s), ask_native(s)), ((False, None), ("missing", None)))
        equal(upload(s, {P: P_SYM}, TRY)[0], 201)
        equal((ask_v5(s), ask_native(s)), ((True, "testproj::main"), ("found", "testproj::main")))
        equal(upload(s, {P: P_SYM.replace(b"testproj::main", b"better")})[0], 201)
        equal((ask_v5(s), ask_native(s)), ((True, "better"), ("found", "better")))
        _, _, body = s.request("POST", "/symbolicate?scope=other", b'{"sources": [], "stacktraces": [{"frames": [{"instruction_addr":'
                               b' "0x15381"}]}], "modules": [{"type": "elf", "debug_file": "testproj", "debug_id":'
                               b' "d48f1911-86d6-7e69-df02-5ad71fb91e1f", "image_addr": "0x10000"}]}', {"Content-Type": "application/json"})
        assert b'"missing"' in body, "of other scopes they are not asked for"
    with server(work, {"serve_native": False}) as s:
        equal((ask_v5(s), ask_native(s)), ((True, "better"), ("missing", None)))


def test_truncated_and_concurrent_uploads_leave_whole_files(work, objects):
    with server(work) as s:
        big = {f"lib{i}.so/AB{i:04X}0/lib{i}.so.sym": b"MODULE Linux x86_64 AB%04X0 lib%d.so\n" % (i, i) + os.urandom(20000) for i in range(40)}
        body = form([("file.zip", pack(big))])
        c = s.connection()
        c.putrequest("POST", "/upload/")
        for name, value in {**TOKEN, "Content-Type": "multipart/form-data; boundary=B", "Content-Length": str(len(body))}.items():
            c.putheader(name, value)
        c.endheaders(body[:len(body) // 2])
        c.sock.close()
        equal(get(s, "healthcheck")[0], 200)
        equal(stored(work), [])
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: send(s, body), range(4)))
        equal([status for status, _ in answers], [201] * 4)
        equal(len([n for n in stored(work) if n.startswith("v1/")]), 40)
        for name, data in list(big.items())[::8]:
            equal(get(s, name)[2], data)
        equal([n for n in stored(work) if n.startswith("tmp/")], [])


def test_upload_ends_a_cached_miss(work, objects):
    """A module that was asked for in vain is there for the very next request, without another question to the stores before."""
    name, debug_id = "testproj", "D48F191186D67E69DF025AD71FB91E1F0"
    path = f"{name}/{debug_id}/{name}.sym"
    text = f"MODULE Linux x86_64 {debug_id} {name}\nFILE 0 /src/main.rs\nFUNC 5380 44 0 testproj::main\n5380 9 1 0\n"
    body = json.dumps({"memoryMap": [[name, debug_id]], "stacks": [[[0, 21376]]]})
    with Upstream({}) as up:
        store = {"filesystem": {"path": os.path.join(work, "store")}}
        with Service(work, {"mozilla": {"tokens": TOKENS, "sources": [up.url], "store": store}}) as s:
            def ask():
                result = json.loads(s.request("POST", "/symbolicate/v5", body)[2])["results"][0]
                return result["found_modules"][f"{name}/{debug_id}"], result["stacks"][0][0].get("function")

            equal((ask(), ask(), up.hits["/" + path]), ((False, None), (False, None), 1))
            equal(upload(s, {path: text.encode()})[0], 201)
            equal(ask(), (True, "testproj::main"))
