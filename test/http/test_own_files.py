"""Files that come with a request: they are its best source, for it alone, and kept nowhere."""
import gzip, io, json, os, subprocess, zipfile

import dumps
import harness

from harness import Service, Upstream, equal, frames, multipart, request

MAP = {"version": 3, "sources": ["app.js"], "names": ["checkStock", "item", "order", "items"],
       "sourcesContent": ["function checkStock(item) {\n  if (item.left < 1) throw new Error('sold out');\n}\n"],
       "mappings": "MAAA,SAASA,EAAWC,EAAM,CACxB,GAAIA,EAAK,KAAO,EAAG,MAAM,IAAI,MAAM,UAAU,CAC/C,CAEO,SAASC,EAAMC,EAAO,CAC3BA,EAAM,QAAQH,CAAU,CAC1B,CAEAE,EAAM,CAAC,CAAC,KAAM,CAAC,CAAC,CAAC"}
SCRIPT = """(()=>{function r(o){if(o.left<1)throw new Error("sold out")}function t(o){o.forEach(r)}t([{left:0}]);})();
//# sourceMappingURL=app.min.js.map
"""
MAPPING = """com.example.Shop -> a.b:
    1:1:void com.example.Stock.check(int):7:7 -> c
    1:1:void order(java.util.List):20 -> c
"""
JS = {"stacktraces": [{"frames": [{"abs_path": "https://shop.invalid/x/app.min.js?v=1", "lineno": 1, "colno": 39}]}],
      "scraping": {"enabled": False}}
JVM = {"stacktraces": [{"frames": [{"module": "a.b", "function": "c", "lineno": 1, "index": 0}]}], "options": {"frame_order": "callee_first"}}


def form(service, path, request, *files, boundary="xyz"):
    """(status, answer) of a form; `files`: (name, contents) of artifacts."""
    parts = [('name="request"', json.dumps(request) if isinstance(request, dict) else request)] if request is not None else []
    parts += [(f'name="artifact"; filename="{name}"', text) for name, text in files]
    body = "".join(f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n{text}\r\n" for head, text in parts)
    status, _, data = service.request("POST", path, (body + f"--{boundary}--\r\n").encode(),
                                      {"Content-Type": f"multipart/form-data; boundary={boundary}"})
    return status, json.loads(data) if data.startswith(b"{") else data


def test_scripts_and_maps_sent_with_a_request_are_used(work, objects):
    with Service(work) as s:
        both = ("app.min.js", SCRIPT), ("app.min.js.map", json.dumps(MAP))
        for files in (both, both[::-1], both[1:], (("dist\\\\app.min.js", SCRIPT.partition("//#")[0]), both[1])):
            status, answer = form(s, "/symbolicate-js", JS, *files)
            frame = frames(answer)[0]
            equal((status, frame["filename"], frame["lineno"], frame["context_line"]),
                  (200, "app.js", 2, "  if (item.left < 1) throw new Error('sold out');"), answer)
            equal(frame["function"], "checkStock" if len(files) > 1 else "<unknown>")  # names are the script's to tell
            equal(frame["data"]["sourcemap_origin"], {"individual_file": "artifact:app.min.js.map"})
        embedded = SCRIPT.partition("app.min")[0] + "data:application/json," + json.dumps(MAP).replace(" ", "%20").replace("\n", "")
        equal(frames(form(s, "/symbolicate-js", JS, ("app.min.js", embedded))[1])[0]["function"], "checkStock")
        # the next request knows nothing of them
        status, answer = form(s, "/symbolicate-js", JS)
        equal((status, answer["errors"]), (200, [{"abs_path": JS["stacktraces"][0]["frames"][0]["abs_path"], "type": "scraping_disabled"}]))
        for bad in ("{", "\xff\xfe", ""):
            answer = form(s, "/symbolicate-js", JS, ("app.min.js", SCRIPT), ("app.min.js.map", bad))[1]
            assert answer["errors"][0]["type"] in ("malformed_sourcemap", "missing_sourcemap"), answer
        equal(s.leftovers(), [])


def test_sent_files_are_used_before_the_source(work, objects):
    with Upstream({}) as sentry, Service(work) as s:
        request = {**JS, "source": {"id": "s", "url": sentry.url + "lookup", "token": "t"}, "release": "r"}
        form(s, "/symbolicate-js", request, ("app.min.js", SCRIPT), ("app.min.js.map", json.dumps(MAP)))
        equal(sentry.hits, {})
        form(s, "/symbolicate-js", request, ("other.js", SCRIPT))
        assert sentry.hits["/lookup"] > 0, sentry.hits


def test_mappings_sent_with_a_request_are_used(work, objects):
    with Service(work) as s:
        status, answer = form(s, "/symbolicate-jvm", JVM, ("mapping.txt", MAPPING))
        equal((status, answer["errors"]), (200, []))
        equal([(f["module"], f["function"], f["lineno"]) for f in frames(answer)],
              [("com.example.Stock", "check", 7), ("com.example.Shop", "order", 20)])
        module = {"type": "proguard", "uuid": "246fb328-fc4e-406a-87ff-fc35f6149d8f"}
        answer = form(s, "/symbolicate-jvm", {**JVM, "sources": [], "modules": [module]}, ("mapping.txt", MAPPING))[1]
        equal((len(frames(answer)), answer["errors"]), (2, []))
        answer = form(s, "/symbolicate-jvm", {**JVM, "modules": [module]}, ("<b>.txt", "no mapping"))[1]
        equal(answer["errors"], [{"uuid": module["uuid"], "type": "missing"}, {"artifact": "<b>.txt", "type": "invalid"}])
        equal(frames(form(s, "/symbolicate-jvm", JVM)[1])[0]["function"], "c")
        second = MAPPING.replace("Shop", "Store")
        equal(frames(form(s, "/symbolicate-jvm", JVM, ("1", MAPPING), ("2", second))[1])[1]["module"], "com.example.Shop")
        assert not any("mapping" in f or "proguard" in d for d, _, names in os.walk(s.cache) for f in names), "something was kept"


def test_malformed_forms_are_refused(work, objects):
    with Service(work, {"symbolicate_body_max_bytes": 4096}) as s:
        for path, request in (("/symbolicate-js", JS), ("/symbolicate-jvm", JVM)):
            equal(form(s, path, None, ("a", "b")), (400, {"detail": "missing request"}))
            equal(form(s, path, "{")[0], 400)
            equal(form(s, path, {**request, "stacktraces": 3})[0], 400)
            equal(form(s, path, request, ("a", "b" * 5000))[0], 413)
            status, answer = form(s, path, request, *[("", "")] * 33)
            equal((status, answer["causes"]), (400, ["the request has more than 32 files"]))
            status, _, body = s.request("POST", path, b"--xyz\r\n", {"Content-Type": "multipart/form-data; boundary=xyz"})
            equal((status, json.loads(body)["detail"]), (400, "Error parsing `multipart/form-data` request"))
            equal(s.request("POST", path, b"x", {"Content-Type": "multipart/form-data"})[0], 415)
            equal(s.request("POST", path + "?timeout=x", b"x", {"Content-Type": "multipart/form-data; boundary=xyz"})[0], 400)
            equal(s.post(path, {k: v for k, v in request.items()})[0], 422)  # JSON alone must name its source


def packed(**files):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return archive.getvalue()


def breakpad(objects):
    return subprocess.run([harness.SYMLOOM, "dump-syms", os.path.join(objects.dir, "full")], check=True, capture_output=True).stdout


def test_debug_files_sent_with_a_request_are_used(work, objects):
    """With stacks: of every format, in archives, the best of several; what belongs to another program is of no use."""
    body = json.dumps(request(objects.module(), [objects.address("plain")], options={"dif_candidates": True}))
    text = breakpad(objects)
    with Service(work) as s:
        def ask(*files):
            parts = [("request", body)] + [("artifact", data, name) for name, data in files]
            status, _, answer = s.request("POST", "/symbolicate", *multipart(parts))
            equal(status, 200, answer)
            return json.loads(answer)

        zipped = packed(**{"shapes.dSYM/Contents/Info.plist": b"<plist/>", "shapes.dSYM/Contents/Resources/DWARF/shapes": objects.debug})
        for files in ([("full.debug", objects.debug)], [("shapes.sym", text)], [("a.zip", zipped)], [("full.gz", gzip.compress(objects.full))], [("stripped", objects.stripped), ("full", objects.full)],
                      [("notes.txt", b"hello"), ("cut.zip", zipped[:100]), ("cut.gz", gzip.compress(text)[:100]), ("full", objects.full)]):
            answer = ask(*files)
            frame, module = frames(answer)[0], answer["modules"][0]
            equal((frame["status"], frame.get("function"), frame["filename"], module["debug_status"]), ("symbolicated", "plain", "shapes.cc", "found"), files)
            equal([(c["source"], c["debug"]) for c in module["candidates"]], [("artifact", {"status": "ok"})])
        equal(ask(("a.zip", zipped))["modules"][0]["candidates"][0]["location"], "shapes.dSYM/Contents/Resources/DWARF/shapes")
        other = text.replace(text.split()[3], b"0" * 32 + b"1", 1)
        for files in ([], [("other.sym", other)], [("full", objects.full[:4000])]):  # the next request knows nothing of them
            equal(frames(ask(*files))[0]["status"], "missing", [name for name, _ in files])
        equal(s.leftovers(), [])
        kept = [name for name in os.listdir(s.cache) if name in ("objects", "symcaches", "cficaches")]
        equal([os.path.join(at, f) for k in kept for at, _, files in os.walk(os.path.join(s.cache, k)) for f in files], [])


def test_modules_without_id_match_sent_files_by_name(work, objects):
    """As those of a sanitizer's report, of which nothing but the path is known."""
    module = {"type": "elf", "code_file": "/srv/app/shapes"}
    frame = {"instruction_addr": hex(objects.load + objects.address("plain")), "addr_mode": "file:0"}
    with Service(work) as s:
        for name, changes, status in (("shapes", {}, "symbolicated"), ("bin/shapes", {}, "symbolicated"), ("other", {}, "missing"),
                                      ("shapes", {"code_id": "ab" * 20}, "missing"), ("shapes", {"debug_id": objects.debug_id}, "symbolicated")):
            body = json.dumps({"modules": [{**module, **changes}], "stacktraces": [{"frames": [frame]}]})
            answer = json.loads(s.request("POST", "/symbolicate", *multipart([("request", body), ("artifact", objects.full, name)]))[2])
            equal((frames(answer)[0]["status"], frames(answer)[0].get("function")), (status, "plain" if status == "symbolicated" else None), (name, changes))


def test_sent_files_are_converted_once(work, objects):
    """However many modules and scripts of the request it is of."""
    modules = [objects.module(image_addr=hex(0x10000000 * (i + 1))) for i in range(20)]
    body = json.dumps({"modules": modules, "stacktraces": [{"frames": [{"instruction_addr": hex(0x10000000 * (i + 1) + objects.address("plain") + 2)} for i in range(20)]}]})
    with Service(work) as s:
        def conversions(cache):
            lines = s.request("GET", "/metrics")[2].decode().splitlines()
            return sum(float(line.split()[-1]) for line in lines if "conversions_total{" in line and f'cache="{cache}"' in line)

        for times in (1, 2):
            status, _, answer = s.request("POST", "/symbolicate", *multipart([("request", body), ("artifact", objects.full, "full")]))
            equal([f.get("function") for f in frames(json.loads(answer))], ["plain"] * 20)
            equal(conversions("symcaches"), times)
        many = [{"abs_path": f"https://shop.invalid/{i}/app.min.js", "lineno": 1, "colno": 39} for i in range(40)]
        for files in ((("app.min.js", SCRIPT), ("app.min.js.map", json.dumps(MAP))), (("app.min.js", SCRIPT.partition("app.min")[0] + "data:application/json," + json.dumps(MAP).replace(" ", "%20").replace("\n", "")),)):
            before = conversions("sourcemap_caches")
            answer = form(s, "/symbolicate-js", {**JS, "stacktraces": [{"frames": many}]}, *files)[1]
            equal([f["function"] for f in frames(answer)], ["checkStock"] * 40)
            equal(conversions("sourcemap_caches") - before, 1)
        bad = form(s, "/symbolicate-js", {**JS, "stacktraces": [{"frames": many}]}, ("app.min.js", SCRIPT), ("app.min.js.map", "{"))[1]
        equal([e["type"] for e in bad["errors"]], ["malformed_sourcemap"] * 40)


def test_debug_files_sent_with_a_crash_file_are_used(work, objects):
    """With crash files: for names, and for finding callers."""
    dump = dumps.Dump(text="Linux 5.10.0 #1 SMP x86_64", version=(0, 0, 0))
    stack = bytearray(4096)
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10000000 + objects.address("plain")}, 0x7000, bytes(stack)))
    dump.modules.append((0x10000000, 0x10000, "/usr/bin/shapes", dumps.elf(objects.build_id), 0))
    data = dump.crash(7, 11, 0, 69).done()
    with Service(work) as s:
        for files, status in (([("full", objects.full)], "symbolicated"), ([], "missing"), ([("shapes.sym", breakpad(objects))], "symbolicated")):
            parts = [("artifact", contents, name) for name, contents in files]
            answer = json.loads(s.request("POST", "/minidump", *multipart([*parts, ("upload_file_minidump", data)]))[2])
            equal((frames(answer)[0]["status"], answer["modules"][0]["unwind_status"]), (status, "found" if files else "missing"), answer)
        status, _, body = s.request("POST", "/minidump", *multipart([("artifact", b"x", "x")] * 33 + [("upload_file_minidump", data)]))
        equal(status, 400, body)
