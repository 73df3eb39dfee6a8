"""Uploads of sentry-cli: chunks and their assembly, and that every API knows the files afterwards."""
import gzip, hashlib, json, os, signal, socket, subprocess, threading

import cloud
from cloud import S3, Google, google_account
from harness import Service, equal, frames, from_npm, multipart, npm_path, request, wait_until

KEY = "s" * 24
KEYS = {"keys": [{"id": "ci", "sha256": hashlib.sha256(KEY.encode()).hexdigest(), "rights": ["symbols:write", "symbols:delete"]},
                 {"id": "reader", "sha256": hashlib.sha256(b"reader").hexdigest(), "rights": ["symbols:read"]}]}
AUTH = {"Authorization": "Bearer " + KEY}
CHUNKS, ASSEMBLE = "/api/0/organizations/o/chunk-upload/", "/api/0/projects/o/p/files/difs/assemble/"


def server(work, **config):
    return Service(work, {"auth": KEYS, **config})


def sha1(data):
    return hashlib.sha1(data).hexdigest()


def send_chunks(s, *chunks, packed=False, name=None, headers=AUTH):
    parts = [("file_gzip" if packed else "file", gzip.compress(c) if packed else c, name or sha1(c)) for c in chunks]
    body, kind = multipart(parts)
    status, _, data = s.request("POST", CHUNKS, body, {**headers, **kind})
    return status, json.loads(data) if data else None


def assemble(s, data, name="shapes.debug", chunks=None, **keys):
    chunks = [sha1(data)] if chunks is None else chunks
    status, _, answer = s.post(ASSEMBLE, {sha1(data): {"name": name, "chunks": chunks, **keys}}, AUTH)
    equal(status, 200, answer)
    return json.loads(answer)[sha1(data)]


def upload(s, data, name="shapes.debug", **keys):
    """The last state of an upload as sentry-cli makes it."""
    state = assemble(s, data, name, **keys)
    if state["state"] == "not_found" and state["missingChunks"]:
        equal(send_chunks(s, data), (200, None))
    return wait_until("the assembly", lambda: (lambda got: got["state"] in ("ok", "error") and got)(assemble(s, data, name, **keys)))


def found_lines(s, objects):
    answer = s.symbolicate(request(objects.module(), [objects.address("main")]))
    return answer["modules"][0]["debug_status"], [f.get("function") for f in frames(answer)]


def test_uploaded_debug_files_answer_every_api(work, objects):
    with server(work) as s:
        equal(found_lines(s, objects)[0], "missing")
        status, _, limits = s.request("GET", CHUNKS, headers=AUTH)
        limits = json.loads(limits)
        equal((status, limits["url"], limits["chunkSize"], limits["hashAlgorithm"], limits["maxFileSize"]),
              (200, f"http://127.0.0.1:{s.port}{CHUNKS}", 8 << 20, "sha1", 15 << 30))
        half = len(objects.debug) // 2
        parts = [objects.debug[:half], objects.debug[half:]]
        names = [sha1(p) for p in parts]
        equal(assemble(s, objects.debug, chunks=[])["state"], "not_found")
        equal(assemble(s, objects.debug, chunks=names), {"state": "not_found", "missingChunks": names, "detail": None})
        equal(send_chunks(s, parts[0]), (200, None))
        equal(assemble(s, objects.debug, chunks=names)["missingChunks"], names[1:])
        equal(send_chunks(s, parts[1], parts[1], packed=True), (200, None))
        got = wait_until("the assembly", lambda: (lambda a: a["state"] == "ok" and a)(assemble(s, objects.debug, chunks=names)))
        dif = got["dif"]
        equal((got["missingChunks"], dif["debugId"], dif["codeId"], dif["cpuName"], dif["objectName"], dif["sha1"], dif["symbolType"]),
              ([], objects.debug_id, objects.build_id, "x86_64", "shapes.debug", sha1(objects.debug), "elf"))
        equal("debug" in dif["data"]["features"], True)
        equal(assemble(s, objects.debug, chunks=[])["state"], "ok")
        equal(found_lines(s, objects)[0], "found")
        equal(upload(s, objects.stripped, "shapes")["state"], "ok")
        status, _, data = s.request("GET", f"/proxy/shapes/elf-buildid-{objects.build_id}/shapes")
        equal((status, data), (200, objects.stripped))
        text = s.request("GET", "/metrics")[2].decode()
        for line in 'door="sentry",result="new"} 2', f'store_upload_bytes_total{{door="sentry",result="new"}} {len(objects.debug) + len(objects.stripped)}':
            equal(line in text, True, line)


def test_a_source_of_the_request_is_asked_before_uploads(work, objects):
    with server(work) as s:
        equal(upload(s, objects.debug)["state"], "ok")
        answer = s.symbolicate(request(objects.module(), [objects.address("main")], options={"dif_candidates": True},
                                       sources=[{"id": "down", "type": "http", "url": "http://127.0.0.1:1/", "layout": {"type": "native"}}]))
        equal(answer["modules"][0]["debug_status"], "found")
        equal({c["source"] for c in answer["modules"][0]["candidates"]}, {"down", "uploads"})


def test_a_worse_file_never_hides_a_better_one(work, objects):
    symbols = os.path.join(work, "symbols")
    subprocess.run(["strip", "-g", "-o", symbols, os.path.join(objects.dir, "full")], check=True)
    with open(symbols, "rb") as f:
        symbols = f.read()
    with server(work) as s:
        store = os.path.join(s.cache, "uploads", "objects", objects.build_id[:2], objects.build_id[2:])
        stored = lambda: {n: open(os.path.join(store, n), "rb").read() for n in sorted(os.listdir(store))}
        equal(upload(s, objects.full)["state"], "ok")
        equal(stored(), {"debuginfo": objects.full})
        equal(upload(s, objects.stripped)["state"], "ok")
        equal(stored(), {"debuginfo": objects.full, "executable": objects.stripped})
        equal(upload(s, symbols)["state"], "ok")
        equal(stored(), {"debuginfo": objects.full, "executable": symbols})
        equal(upload(s, objects.stripped + b"later")["state"], "ok")  # worse than the one with symbols
        equal(stored(), {"debuginfo": objects.full, "executable": symbols})
        equal(upload(s, objects.debug)["state"], "ok")  # as good: the newer one counts
        equal(stored()["debuginfo"], objects.debug)
        equal(found_lines(s, objects)[0], "found")


def test_what_is_no_debug_file_is_refused(work, objects):
    with server(work) as s:
        got = upload(s, b"no such thing" * 100, "x.bin")
        equal((got["state"], "no debug file" in got["detail"]), ("error", True))
        got = upload(s, objects.debug, debug_id="11111111-2222-3333-4444-555555555555")
        equal((got["state"], "which are not the given ones" in got["detail"]), ("error", True))
        equal(send_chunks(s, b"abc", name=sha1(b"abd")), (400, {"error": "Checksum mismatch"}))
        equal(send_chunks(s, bytes((8 << 20) + 1)), (400, {"error": "Chunk size too large"}))
        equal(send_chunks(s, bytes((8 << 20) + 1), packed=True), (400, {"error": "Chunk size too large"}))
        equal(send_chunks(s, b"abc", headers={})[0], 401)
        equal(send_chunks(s, b"abc", headers={"Authorization": "Bearer wrong"}), (401, {"detail": "Authentication credentials were not provided."}))
        equal(send_chunks(s, b"abc", headers={"Authorization": "Bearer reader"})[0], 403)
        for body in b"[]", b"{", b'{"x":{}}', json.dumps({"0" * 40: {"name": "a", "chunks": ["b"]}}).encode():
            status, _, answer = s.post(ASSEMBLE, body, AUTH)
            equal((status, list(json.loads(answer))), (400, ["error"]), body)


def test_without_a_key_that_may_upload_there_is_no_door(work, objects):
    with Service(work) as s:
        equal(s.request("GET", CHUNKS)[0], 404)
        equal(os.path.exists(os.path.join(s.cache, "uploads", "objects")), False)
    with server(work, upload={"sentry": False}) as s:
        equal(s.request("GET", CHUNKS, headers=AUTH)[0], 404)


def test_a_large_file_is_refused_by_the_limit(work, objects):
    with server(work, store={"max_file_size": "1KiB"}) as s:
        got = upload(s, objects.debug)
        equal((got["state"], "max_file_size" in got["detail"]), ("error", True))


def test_repeated_chunks_are_bounded(work, objects):
    """A chunk of 8 MiB that a list repeats is not written again and again; a few repetitions are a padded file."""
    zeros, end = bytes(8 << 20), b"\0" * 1000
    with server(work) as s:
        for chunk in zeros, end, objects.full:
            equal(send_chunks(s, chunk, packed=True), (200, None))
        ask = lambda chunks, data=b"other": s.post(ASSEMBLE, {sha1(data): {"name": "big", "chunks": chunks}}, AUTH)
        state = lambda answer: next(iter(json.loads(answer[2]).values()))
        got = state(ask([sha1(zeros)] * 64))
        equal((got["state"], "repeated too often" in got["detail"]), ("error", True))
        got = state(ask([sha1(zeros)] * 100000))
        equal((got["state"], "max_file_size" in got["detail"]), ("error", True))
        equal(s.request("GET", "/metrics")[2].decode().count('store_upload_bytes_total{door="sentry"'), 0)
        unknown = sha1(b"unknown")
        equal(state(ask([unknown, sha1(zeros), unknown]))["missingChunks"], [unknown])
        padded = objects.full + 3 * zeros
        got = wait_until("the assembly", lambda: (lambda a: a["state"] in ("ok", "error") and a)(state(ask([sha1(objects.full)] + 3 * [sha1(zeros)], padded))))
        equal((got["state"], got["dif"]["sha1"]), ("ok", sha1(padded)))
        many = {sha1(b"%d" % i): {"name": "a", "chunks": []} for i in range(10001)}
        equal(s.post(ASSEMBLE, many, AUTH)[0], 400)


def test_a_killed_upload_leaves_nothing_half_written(work, objects):
    with server(work) as s:
        cache = s.cache
        equal(send_chunks(s, objects.debug), (200, None))
        ask = lambda: s.post(ASSEMBLE, {sha1(objects.debug): {"name": "a", "chunks": [sha1(objects.debug)] * 1}}, AUTH)
        threading.Thread(target=lambda: swallow(ask), daemon=True).start()
        body, kind = multipart([("file", bytes(4 << 20), sha1(bytes(4 << 20)))])
        with socket.create_connection(("127.0.0.1", s.port)) as half:
            head = f"POST {CHUNKS} HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {len(body)}\r\n"
            half.sendall((head + f"Content-Type: {kind['Content-Type']}\r\n\r\n").encode() + body[:len(body) // 2])
        s.process.send_signal(signal.SIGKILL)
        s.process.wait()
        equal(s.process.returncode, -signal.SIGKILL)
        s.process.returncode = 0
    files = [os.path.join(d, f) for d, _, names in os.walk(os.path.join(cache, "uploads")) for f in names]
    for path in files:
        if "/objects/" in path:
            with open(path, "rb") as f:
                equal(f.read(), objects.debug)
        equal("/uploads/tmp/" in path, False, path)
    with Service(work, {"auth": KEYS}, cache_dir=cache) as s:
        equal(upload(s, objects.debug)["state"], "ok")
        equal(found_lines(s, objects)[0], "found")


def swallow(ask):
    try:
        ask()
    except OSError:
        pass


def test_two_nodes_share_a_bucket(work, objects):
    with S3() as s3:
        store = {"s3": {"bucket": "symbols", "endpoint": s3.url, "prefix": "here", "access_key": "AK", "secret_key": "secret"}}
        with server(work, store=store) as one, server(work, store=store) as two:
            equal(assemble(two, objects.debug)["state"], "not_found")
            equal(send_chunks(one, objects.debug), (200, None))
            equal(upload(two, objects.debug)["state"], "ok")
            equal(s3.objects[f"here/objects/{objects.build_id[:2]}/{objects.build_id[2:]}/debuginfo"][0], objects.debug)
            equal(upload(one, objects.stripped)["state"], "ok")
            for s in one, two:
                equal(assemble(s, objects.debug, chunks=[])["state"], "ok")
                equal(found_lines(s, objects)[0], "found")


def race(one, two, bucket, work, objects):
    """Node one stores a file with symbols alone; before its write arrives, node two has stored one with lines."""
    path = os.path.join(work, "symbols.debug")
    subprocess.run(["strip", "-g", "-o", path + ".full", os.path.join(objects.dir, "full")], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", path + ".full", path], check=True)
    with open(path, "rb") as f:
        symbols = f.read()
    name, = [f"objects/{objects.build_id[:2]}/{objects.build_id[2:]}/debuginfo"]
    writes, ended = [], []

    def before_put(at, body):
        if at.endswith(name):
            writes.append(body)
            if body == symbols and not ended:
                ended.append(upload(two, objects.debug)["state"])

    bucket.before_put = before_put
    equal(upload(one, symbols, "symbols.debug")["state"], "ok")
    stored, = [data for at, (data, _) in bucket.objects.items() if at.endswith(name)]
    return ended, stored == objects.debug, [w == objects.debug for w in writes]


def test_a_worse_file_of_another_node_at_the_same_moment_hides_nothing(work, objects):
    """Writes to a bucket name the version that was compared: a file that another node has stored since is compared, too."""
    with S3() as s3:
        store = {"s3": {"bucket": "symbols", "endpoint": s3.url, "access_key": "AK", "secret_key": "secret"}}
        with server(work, store=store) as one, server(work, store=store) as two:
            equal(race(one, two, s3, work, objects), (["ok"], True, [False, True]))
            # A file is there already: of the two that replace it, the better one stays.
            s3.objects = {n: v for n, v in s3.objects.items() if not n.startswith("uploads/")}
            name, = [n for n in s3.objects if n.endswith("/debuginfo")]
            s3.objects[name] = (b"damaged", {"ETag": '"0123456789abcdef0123456789abcdef"'})
            equal(race(one, two, s3, work, objects), (["ok"], True, [False, True]))


def test_a_bucket_without_conditional_writes_is_used(work, objects):
    with S3() as s3:
        s3.conditions = False
        store = {"s3": {"bucket": "symbols", "endpoint": s3.url, "access_key": "AK", "secret_key": "secret"}}
        with server(work, store=store) as s:
            equal(upload(s, objects.debug)["state"], "ok")
            equal(found_lines(s, objects)[0], "found")


def test_nodes_that_share_a_bucket_of_google_hide_nothing(work, objects):
    google = Google()
    with cloud.Cloud(work, google) as web, web.environment():
        store = {"gcs": {"bucket": "symbols", "service_account_path": google_account(work)}}
        with server(work, store=store) as one, server(work, store=store) as two:
            equal(race(one, two, google, work, objects), (["ok"], True, [False, True]))


@from_npm
def test_sentry_cli_uploads_debug_files(work, objects):
    cli = npm_path(work, "@sentry/cli@3.8.0", "@sentry/cli-linux-x64/bin/sentry-cli")
    files = os.path.join(work, "files")
    os.mkdir(files)
    with open(os.path.join(files, "shapes.debug"), "wb") as f:
        f.write(objects.debug)
    # 20 MiB of incompressible data in a section, so that the file has several chunks
    with open(os.path.join(work, "noise"), "wb") as f:
        f.write(os.urandom(20 << 20))
    subprocess.run(["objcopy", "--add-section", ".noise=" + os.path.join(work, "noise"), os.path.join(objects.dir, "full"),
                    os.path.join(files, "large")], check=True)
    with open(os.path.join(files, "win.c"), "w") as f:
        f.write("int spin(int a) { return a * 3; }\nint entry(void) { return spin(2); }\n")
    for command in ("clang-14 --target=x86_64-pc-windows-msvc -g -gcodeview -O1 -fno-inline -ffreestanding -c -o win.obj win.c",
                    "lld-link-14 /nodefaultlib /entry:entry /subsystem:console /debug /out:win.exe win.obj"):
        subprocess.run(command.split(), cwd=files, check=True, capture_output=True)
    for name in "win.c", "win.obj":
        os.unlink(os.path.join(files, name))
    with server(work) as s:
        ask = lambda: subprocess.run([cli, "--auth-token", KEY, "debug-files", "upload", "-o", "any", "-p", "any", files],
                                     env={**os.environ, "SENTRY_URL": f"http://127.0.0.1:{s.port}"}, capture_output=True, text=True, timeout=120)
        done = ask()
        equal((done.returncode, done.stdout.count("       OK ") + done.stderr.count("       OK ")), (0, 3), done.stdout + done.stderr)
        equal(found_lines(s, objects)[0], "found")
        pdb = next(os.path.join(d, n) for d, _, names in os.walk(os.path.join(s.cache, "uploads", "objects")) for n in names
                   if os.path.getsize(os.path.join(d, n)) == os.path.getsize(os.path.join(files, "win.pdb")))
        debug_id = "".join(pdb.split("/")[-3:-1])
        status, _, data = s.request("GET", f"/proxy/win.pdb/{debug_id}/win.pdb")
        with open(os.path.join(files, "win.pdb"), "rb") as f:
            equal((status, data == f.read()), (200, True))
        answer = s.symbolicate(request({"type": "pe", "debug_file": "win.pdb", "code_file": "win.exe", "image_addr": "0x140000000", "image_size": 0x10000,
                                        "debug_id": debug_id}, [{"instruction_addr": "0x140001000"}]))
        equal((answer["modules"][0]["debug_status"], frames(answer)[0].get("function")), ("found", "spin(int)"))
        again = ask()
        equal((again.returncode, "Nothing to upload" in again.stdout + again.stderr), (0, True), again.stdout + again.stderr)


MAPPING = b"# compiler: R8\ncom.example.Main -> a.b:\n    1:2:void run(int):10:11 -> c\n"
UUID = "6d8b3c9e-5b58-5f2b-9a0f-0d9d0f0a1b2c"


def test_mappings_and_source_bundles_are_found_by_their_ids(work, objects):
    with server(work) as s:
        equal(upload(s, MAPPING, f"/proguard/{UUID}.txt")["state"], "ok")
        status, _, data = s.post("/symbolicate-jvm", {
            "platform": "java", "sources": [], "exceptions": [], "modules": [{"type": "proguard", "uuid": UUID}],
            "stacktraces": [{"frames": [{"function": "c", "module": "a.b", "filename": "SourceFile", "lineno": 1, "index": 0}]}]})
        equal((status, json.loads(data)["stacktraces"][0]["frames"][0]["module"]), (200, "com.example.Main"))
        got = upload(s, MAPPING.replace(b"10", b"20"), "mapping.txt")
        equal((got["state"], "has no id" in got["detail"]), ("error", True))


def test_symbol_maps_need_an_id_in_their_name(work, objects):
    with server(work) as s:
        equal(upload(s, b"BCSymbolMap Version: 2.0\n_main\n", f"{UUID.upper()}.bcsymbolmap")["state"], "ok")
        store = os.path.join(s.cache, "uploads", "objects")
        equal([os.path.join(d, n)[len(store) + 1:] for d, _, names in os.walk(store) for n in names],
              [f"6d/{UUID.replace('-', '')[2:]}/bcsymbolmap"])
