"""Files that come with a request for JavaScript or Java: they are its best source, for it alone, and kept nowhere."""
import json, os

from harness import Service, Upstream, equal, frames

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


def test_scripts_and_maps_that_come_along(work, objects):
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


def test_own_files_are_asked_before_the_source(work, objects):
    with Upstream({}) as sentry, Service(work) as s:
        request = {**JS, "source": {"id": "s", "url": sentry.url + "lookup", "token": "t"}, "release": "r"}
        form(s, "/symbolicate-js", request, ("app.min.js", SCRIPT), ("app.min.js.map", json.dumps(MAP)))
        equal(sentry.hits, {})
        form(s, "/symbolicate-js", request, ("other.js", SCRIPT))
        assert sentry.hits["/lookup"] > 0, sentry.hits


def test_mappings_that_come_along(work, objects):
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


def test_forms_that_are_wrong(work, objects):
    with Service(work, {"symbolicate_body_max_bytes": 4096}) as s:
        for path, request in (("/symbolicate-js", JS), ("/symbolicate-jvm", JVM)):
            equal(form(s, path, None, ("a", "b")), (400, {"detail": "missing request"}))
            equal(form(s, path, "{")[0], 400)
            equal(form(s, path, {**request, "stacktraces": 3})[0], 400)
            equal(form(s, path, request, ("a", "b" * 5000))[0], 413)
            status, answer = form(s, path, request, *[("", "")] * 33)
            equal((status, answer["causes"]), (400, ["more than 32 files"]))
            status, _, body = s.request("POST", path, b"--xyz\r\n", {"Content-Type": "multipart/form-data; boundary=xyz"})
            equal((status, json.loads(body)["detail"]), (400, "Error parsing `multipart/form-data` request"))
            equal(s.request("POST", path, b"x", {"Content-Type": "multipart/form-data"})[0], 415)
            equal(s.request("POST", path + "?timeout=x", b"x", {"Content-Type": "multipart/form-data; boundary=xyz"})[0], 400)
            equal(s.post(path, {k: v for k, v in request.items()})[0], 422)  # JSON alone must name its source
