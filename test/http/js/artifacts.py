"""A stand-in of Sentry's look-up of artifacts, a script with its map, and what the tests of POST /symbolicate-js share."""
import base64, contextlib, io, json, re, urllib.parse, zipfile

from harness import Upstream, equal

SCRIPT = """var makeAFailure=function(){function n(n){}function e(n){throw new Error("failed!")}function r(r){var i=null;if(r.failed){i=e}else{i=n}i(r)}function i(){var n={failed:true,value:42};r(n)}return i}();
//# sourceMappingURL=test.min.js.map"""
SOURCE = """var makeAFailure = (function() {
  function onSuccess(data) {}

  function onFailure(data) {
    throw new Error('failed!');
  }

  function invoke(data) {
    var cb = null;
    if (data.failed) {
      cb = onFailure;
    } else {
      cb = onSuccess;
    }
    cb(data);
  }

  function test() {
    var data = {failed: true, value: 42};
    invoke(data);
  }

  return test;
})();
"""
MAPPINGS = ("AAAA,GAAIA,cAAe,WACjB,QAASC,GAAUC,IAEnB,QAASC,GAAUD,GACjB,KAAM,IAAIE,OAAM,WAGlB,QAASC,GAAOH,GACd,GAAII,GAAK,IACT,IAAIJ,EAAKK,OAAQ,CACfD,"
            "EAAKH,MACA,CACLG,EAAKL,EAEPK,EAAGJ,GAGL,QAASM,KACP,GAAIN,IAAQK,OAAQ,KAAME,MAAO,GACjCJ,GAAOH,GAGT,MAAOM")
NAMES = ["makeAFailure", "onSuccess", "data", "onFailure", "Error", "invoke", "cb", "failed", "test", "value"]
ID = "2f259f80-58b7-44cb-d7cd-de1505e7e718"


def source_map(**keys):
    return json.dumps({"version": 3, "sources": ["test.js"], "sourcesContent": [SOURCE], "names": NAMES, "mappings": MAPPINGS, **keys})


MAP = source_map()


class Sentry(Upstream):
    """The look-up API of a Sentry installation, and the files that it tells of. `tells`: its answer, or a function of the query;
    `files`: path to contents or a status; `asked`: the queries as they came, with their headers."""

    def __init__(self, tells=(), files=()):
        self.tells, self.asked, self.got = tells, [], []
        super().__init__({"/lookup": self.look_up, **{path: self.served(data) for path, data in dict(files).items()}})

    def look_up(self, handler):
        query = handler.path.partition("?")[2]
        with self.lock:
            self.asked.append((query, dict(handler.headers)))
        told = self.tells(urllib.parse.parse_qs(query)) if callable(self.tells) else self.tells
        if isinstance(told, int):
            handler.reply(told)
        else:
            text = told if isinstance(told, str) else json.dumps(told).replace("{url}", self.url)
            handler.reply(200, text.encode())

    def served(self, data):
        def serve(handler):
            with self.lock:
                self.got.append((handler.path, dict(handler.headers)))
            if callable(data):
                data(handler)
            elif isinstance(data, int):
                handler.reply(data)
            else:
                handler.reply(200, data.encode() if isinstance(data, str) else data)
        return serve

    def source(self, **keys):
        return {"id": "sentry:project", "url": f"{self.url}lookup", "token": "t0ken", **keys}


def told(id, path, file=None, **keys):
    """A single file, as the API tells of it."""
    return {"type": "file", "id": str(id), "url": "{url}" + (file or path.lstrip("~/")), "abs_path": path, "resolved_with": "release", **keys}


def bundle(id, **keys):
    return {"type": "bundle", "id": str(id), "url": "{url}" + f"{id}.zip", "resolved_with": "release", **keys}


def archive(files):
    """An artifact bundle: URL, or any text for files without one, to (type, contents, headers)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        manifest = {}
        for i, (url, (type, contents, headers)) in enumerate(files.items()):
            entry = {"headers": headers}
            if type:
                entry["type"] = type
            if "/" in url:
                entry["url"] = url
            manifest[f"files/{i}"] = entry
            z.writestr(f"files/{i}", contents)
        z.writestr("manifest.json", json.dumps({"files": manifest, "org": "o", "release": "r"}))
    return b"SYSB\2\0\0\0" + out.getvalue()


def frame(path, line=1, column=64, **keys):
    return {"abs_path": path, "lineno": line, **({} if column is None else {"colno": column}), **keys}


def asked(sentry, frames, **keys):
    return {"source": sentry.source(), "stacktraces": [{"frames": frames}], "release": "release", "scraping": {"enabled": False},
            "options": {"frame_order": "callee_first"}, **keys}


def symbolicate(s, body, status=200, query=""):
    answered, _, data = s.post("/symbolicate-js" + query, body)
    equal(answered, status, data)
    return json.loads(data) if status == 200 else data


def crowd(s, body, count, gate):
    """The different answers to so many requests, all of which are sent before `gate` opens."""
    body, answers = json.dumps(body), set()
    connections = [s.connection() for _ in range(count)]
    for connection in connections:
        connection.request("POST", "/symbolicate-js", body, {"Content-Type": "application/json"})
    gate.set()
    for connection in connections:
        with contextlib.closing(connection):
            answer = connection.getresponse()
            equal(answer.status, 200)
            answers.add(answer.read())
    return [json.loads(answer) for answer in answers]


def conversions(s):
    """How many source maps the service has converted."""
    metrics = s.request("GET", "/metrics")[2].decode()
    return [int(n) for n in re.findall(r'symloom_conversions_total\{cache="sourcemap_caches",result="ok"\} (\d+)', metrics)]


def result(answer, i=0):
    return answer["stacktraces"][0]["frames"][i]


def brief(f):
    return f.get("function"), f.get("filename"), f.get("module"), f["abs_path"], f["lineno"], f.get("colno")


FILES = {"/test.min.js": SCRIPT, "/test.min.js.map": MAP}
TOLD = [told(1, "~/test.min.js"), told(2, "~/test.min.js.map")]
ON_FAILURE = ("onFailure", "test.js", "test", "http://example.com/test.js", 5, 11)


def vlq(number):
    """A number of a source map's mappings."""
    rest, text = number << 1 if number >= 0 else -number << 1 | 1, ""
    while True:
        digit, rest = rest & 31, rest >> 5
        text += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[digit | (32 if rest else 0)]
        if not rest:
            return text


def data_url(text):
    return "data:application/json;base64," + base64.b64encode(text.encode()).decode()
