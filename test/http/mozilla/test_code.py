"""/asm/v1 and /source/v1 beside the code itself: what is asked wrongly, what is not there, where functions end, and whose files may
be seen."""
import io, json, os, subprocess, tarfile, zipfile

import cloud
import test_profiler as profiler
from harness import Service, Upstream, equal, http_source
from test_symbolicate import FILES, I, MAIN, place


def post(s, path, body, status=200):
    data = body if isinstance(body, str) else json.dumps(body)
    answered, got, text = s.request("POST", path, data, {"Origin": "http://a.com"})
    equal((answered, got["Access-Control-Allow-Origin"]), (status, "*"), text)
    return json.loads(text)


def test_invalid_asm_and_source_requests_are_refused(work, objects):
    with Service(work, {"mozilla": {"compat": "profiler", "sources": []}}) as s:
        for path in ("/asm/v1", "/source/v1"):
            equal(post(s, path, "{", 400)["title"].startswith("Couldn't parse request: "), True)
            for body in ("[]", "{}", '{"startAddress": "12", "size": "0x1"}', '{"startAddress": "0x123456789", "size": "0x1"}',
                         '{"moduleOffset": "0x", "file": "a"}', '{"moduleOffset": 5, "file": "a"}'):
                equal(post(s, path, body, 400)["title"].startswith("Malformed request JSON: "), True, body)
            equal(s.request("OPTIONS", path)[0], 200)
            equal(s.request("GET", path)[0], 405)
        equal(post(s, "/asm/v2", "{}", 404), {"title": "Unrecognized URL: /asm/v2"})
        equal(post(s, "/source/v1/x", "{}", 404), {"title": "Unrecognized URL: /source/v1/x"})
        answer = post(s, "/asm/v1", {"name": "a", "codeId": "ab" * 20, "startAddress": "0x10", "size": "0x10"})
        equal((answer["error"].startswith("An error occurred when loading the binary: "), answer["title"]), (True, answer["error"]))
        answer = post(s, "/source/v1", {"debugName": "../etc/passwd", "debugId": "A" * 33, "moduleOffset": "0x1", "file": "/etc/passwd"})
        equal(answer["error"], "Could not obtain symbols for the requested library: invalid module name")
    with Service(work, {"mozilla": {"sources": []}}) as s:
        equal([s.request("POST", path, "{}")[0] for path in ("/asm/v1", "/source/v1", "/asm/v2")], [404] * 3)


def test_disassembly_ends_with_the_function(work, objects):
    for compiler, flags, link, arch, step in (("aarch64-linux-gnu-gcc", (), "-static-pie", "aarch64", 4),
                                              ("arm-linux-gnueabihf-gcc", ("-mthumb", "-fPIC"), "-shared", "arm", 2)):
        path, build_id, functions = profiler.built(work, compiler, *flags, link=link)
        start, size = next((a & ~1, n) for a, n in functions if n > 20)
        upstream, service = profiler.serving(work, path, build_id)
        with upstream, service as s:
            ask = lambda a, n, **more: profiler.asm(s, build_id, a, n, **more)
            short, whole = ask(start, 8), ask(start, 8, continueUntilFunctionEnd=True)
            equal((short["arch"], short["syntax"], whole["arch"]), (arch, ["ARM"], arch))
            equal((8 <= int(short["size"], 16) <= 10, size <= int(whole["size"], 16) <= size + step), (True, True), (short, whole, size))
            equal(whole["instructions"][:len(short["instructions"])], short["instructions"])
            equal(any("Invalid" in text for _, text in whole["instructions"]), False, whole)
            equal(ask(start + 1, 8)["startAddress"], hex(start))  # instructions do not begin there
            equal("error" in ask(0xFFFFFF00, 8), True)
            invalid = [text for address in range(0, 0x200, 64) for _, text in ask(address, 64).get("instructions", []) if ".byte" in text]
            equal((bool(invalid) or arch == "arm") and all("# Invalid instruction " in text for text in invalid), True)
            if arch == "arm":
                equal(int(ask(start, 0xFFFFFFF0)["size"], 16) <= (1 << 20), True)  # a bounded answer


def test_programs_are_found_by_debug_id_alone(work, objects):
    """A directory tells the build id, as it does for symbols; and Mozilla's stores have programs beside their symbols."""
    root = os.path.join(work, "programs")
    os.makedirs(os.path.join(root, objects.build_id))
    with open(os.path.join(root, objects.build_id, "executable"), "wb") as f:
        f.write(objects.full)
    source = {"id": "d", "type": "filesystem", "path": root, "layout": {"type": "debuginfod"}}
    short = objects.debug_id.replace("-", "").upper() + "0"
    start, size = objects.symbols["plain"]
    question = {"debugName": "shapes", "debugId": short, "name": "shapes", "startAddress": hex(start - objects.load), "size": hex(size)}
    with Service(work, {"sources": [source], "mozilla": {"compat": "profiler", "sources": []}}) as s:
        answers = [post(s, "/asm/v1", {**question, **more}) for more in ({"codeId": objects.build_id}, {"codeId": None}, {}, {"codeId": None, "name": None})]
        equal((answers[0].get("arch"), answers[1:]), ("x86_64", [answers[0]] * 3))
        padded = {**question, "codeId": objects.build_id, "startAddress": f"{start - objects.load:#018x}", "size": f"{size:#018x}"}
        equal(post(s, "/asm/v1", padded), answers[0])
    with Upstream({f"/{objects.build_id[:2]}/{objects.build_id[2:]}": objects.full}) as up:
        with Service(work, {"mozilla": {"compat": "profiler", "sources": [up.url]}}) as s:
            equal(post(s, "/asm/v1", {**question, "codeId": objects.build_id}), answers[0])


def bundle(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, (path, text) in files.items():
            archive.writestr(name, text)
        archive.writestr("manifest.json", json.dumps({"files": {n: {"path": p, "type": "source"} for n, (p, _) in files.items()}}))
    return b"SYSB\2\0\0\0" + out.getvalue()


def test_source_v1_serves_only_files_named_by_symbols(work, objects):
    """Only of files that the symbols of the address name, out of a bundle; never from the machine's own disk."""
    text = "fn main() {\n    helper::middle(); // ä\n}\n"
    secret = os.path.join(work, "secret")
    with open(secret, "w") as f:
        f.write("secret")
    symbols = FILES[I].replace("/home/willkg/projects/testproj/src/helper.rs", secret)
    routes = {place(I): symbols.encode(), f"/{I[0]}/{I[1]}/{I[0]}.src.zip": bundle({"main": (MAIN, text), "x": ("/x.rs", "x")})}
    with Upstream(routes) as up:
        source = http_source(up.url, layout={"type": "native"})
        with Service(work, {"sources": [source], "mozilla": {"compat": "profiler", "sources": [up.url]}}) as s:
            ask = lambda file, offset="0x7a7a", name=I[0]: post(s, "/source/v1", {"debugName": name, "debugId": I[1], "moduleOffset": offset, "file": file})
            equal(ask(MAIN), {"symbolsLastModified": None, "sourceLastModified": None, "file": MAIN, "source": text})
            for other in ("/x.rs", "/etc/passwd", MAIN + "/", ""):
                equal(ask(other)["error"], "The requested path is not present in the symbolication frames")
            equal(ask(secret)["error"].startswith("Cannot get the source file: "), True)
            equal(ask(MAIN, "0x1")["error"], "Don't have any debug info for the requested library")
            equal(ask(MAIN, name="other")["error"].startswith("Could not obtain symbols for the requested library: "), True)


def crate(members):
    """As Cargo packs crates; `members`: of (name, text)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in members:
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
        link = tarfile.TarInfo("md-5-0.10.6/src/link.rs")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return out.getvalue()


def test_source_v1_fetches_repository_paths(work, objects):
    """As the builds of Firefox have them: in repositories, buckets and crates."""
    registry = "cargo:github.com-1ecc6299db9ec823"
    texts = {  # what answers a URL
        "hg.mozilla.org/mozilla-central/raw-file/997f0081/widget/ns%20App.mm": b"an app",
        "raw.githubusercontent.com/rust-lang/rust/53cb7b09/library/std/thread.rs": b"a thread",
        "generated.s3.amazonaws.com/a5d3747707d6/ipc/PChild.cpp": b"a child",
        "static.crates.io/crates/md-5/md-5-0.10.6.crate": crate([("md-5-0.10.6/" + "d/" * 80 + "long.rs", b"long"),
                                                                 ("md-5-0.10.6/src/lib.rs", b"a hash")]),
        "static.crates.io/crates/z/z-1.0.0-beta.1%2B2.3.crate": crate([("z-1.0.0-beta.1+2.3/a.rs", b"zed")]),
        "static.crates.io/crates/bad/bad-1.0.0.crate": b"no archive",
    }
    expected = {
        "hg:hg.mozilla.org/mozilla-central:widget/ns App.mm:997f0081": "an app",
        "git:github.com/rust-lang/rust:library/std/thread.rs:53cb7b09": "a thread",
        "s3:generated:a5d3747707d6/ipc/PChild.cpp:": "a child",
        registry + ":md-5-0.10.6:src/lib.rs": "a hash",
        registry + ":md-5-0.10.6:" + "d/" * 80 + "long.rs": "long",
        "cargo:index.crates.io-6f17d22bba15001f:md-5-0.10.6:src/lib.rs": "a hash",
        registry + ":z-1.0.0-beta.1+2.3:a.rs": "zed",
    }
    refused = {
        registry + ":md-5-0.10.6:src/none.rs": "the archive does not contain the file",
        registry + ":md-5-0.10.6:src/link.rs": "the archive does not contain the file",
        registry + ":md-5-0.10.7:src/lib.rs": "not_found", registry + ":bad-1.0.0:a.rs": "Unrecognized archive format",
        registry + ":nothing:a.rs": "not found in any source bundle or debug file", registry + ":md-5-0.10.6:": "not found in any source bundle or debug file",
        "cargo:elsewhere-0123:md-5-0.10.6:src/lib.rs": "not found in any source bundle or debug file",
        "git:example.com/a/b:c.rs:d": "not found in any source bundle or debug file",
    }
    paths = [*expected, *refused]
    symbols = f"MODULE Linux x86_64 {I[1]} {I[0]}\n" + "".join(f"FILE {i} {path}\n" for i, path in enumerate(paths))
    symbols += "".join(f"FUNC {i + 1:x}0 10 0 f{i}\n{i + 1:x}0 10 {i + 1} {i}\n" for i in range(len(paths)))

    def answer(h):
        found = texts.get(h.headers["Host"] + h.path)
        h.reply(200 if found is not None else 404, found or b"")

    with Upstream({place(I): symbols.encode()}) as up, cloud.Cloud(work, answer) as web, web.environment():
        with Service(work, {"mozilla": {"compat": "profiler", "sources": [up.url]}}) as s:
            for i, path in enumerate(paths):
                got = post(s, "/source/v1", {"debugName": I[0], "debugId": I[1], "moduleOffset": f"{(i + 1) * 16:#x}", "file": path})
                if path in expected:
                    equal((got.get("source"), got.get("file")), (expected[path], path), got)
                else:
                    equal(got["error"].startswith("Cannot get the source file: "), True, got)
                    equal(refused[path] in got["error"], True, (path, got))


def test_eliot_environment_fills_missing_keys(work, objects):
    """It counts where the file is silent, for who wants this API."""
    import harness
    from servers import free_port, wait_until
    body = json.dumps({"memoryMap": [list(I)], "stacks": [[[0, 31354]]]})
    cache = os.path.join(work, "eliot")
    with Upstream({place(I): FILES[I].encode()}) as up:
        port = free_port()
        env = {**os.environ, "ELIOT_SYMBOLS_URLS": up.url + "nothing," + up.url, "PORT": str(port), "ELIOT_SYMBOLS_CACHE_DIR": cache,
               "ELIOT_SYMBOLS_CACHE_MAX_SIZE": "2gb", "ELIOT_LOGGING_LEVEL": "WARNING"}
        config = os.path.join(work, "config.yml")
        with open(config, "w") as f:
            f.write("connect_to_reserved_ips: true\n")
        shown = subprocess.run([harness.SYMLOOM, "config", "show", "-c", config], env=env, capture_output=True, text=True, check=True).stdout
        equal(["max_size: 1953125KiB" in shown, f":{port}" in shown, cache in shown, "level: \"warn\"" in shown or "level: warn" in shown],
              [True] * 4, shown)
        with open(os.path.join(work, "log"), "wb") as log:
            process = subprocess.Popen([harness.SYMLOOM, "run", "-c", config], env=env, stdout=log, stderr=log)
        try:
            def answers():
                try:
                    connection = harness.Connection(port)
                    connection.request("POST", "/symbolicate/v5", body)
                    return json.loads(connection.getresponse().read())
                except ConnectionRefusedError:
                    return None
            answer = wait_until("an answer", answers)
            equal(list(answer["results"][0]["found_modules"].values()), [True])
            equal(os.path.isdir(os.path.join(cache, "mozilla_syms")), True)
        finally:
            process.terminate()
            process.wait()
