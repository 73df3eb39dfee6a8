"""GET /openapi.yaml; the document against the routes of the program, and against the rules of OpenAPI; and what the other tests rely on:
that a request or an answer which is not as described is found."""
import gzip, json, re, subprocess, threading

import harness, openapi, openapi_rules
from harness import Service, equal, wait_until
from test_access import bearer, key

JSON, TEXT = {"content-type": "application/json"}, {"content-type": "text/plain; charset=utf-8"}


def described():
    with open(openapi.DOCUMENT, encoding="utf-8") as f:
        return f.read()


def test_openapi_document_is_served(work, objects):
    version = subprocess.run([harness.SYMLOOM, "version"], capture_output=True, text=True, check=True).stdout.split()[1]
    expected = described().replace("@VERSION@", version.partition("-")[0]).encode()
    with Service(work, {"page": {"enabled": False}, "auth": {"require": ["page", "symbolicate"], "keys": [key("a", "page")]}}) as s:
        status, headers, body = s.request("GET", "/openapi.yaml")
        equal((status, headers["Content-Type"], body), (200, "application/yaml", expected))
        status, headers, body = s.request("GET", "/openapi.yaml", headers={"Accept-Encoding": "gzip"})
        equal((status, headers["Content-Encoding"], gzip.decompress(body)), (200, "gzip", expected))
        tag = {"Accept-Encoding": "gzip", "If-None-Match": headers["ETag"]}
        equal(s.request("GET", "/openapi.yaml", headers=tag)[::2], (304, b""))
        status, head, body = s.request("HEAD", "/openapi.yaml", headers={"Accept-Encoding": "gzip"})
        equal((status, body, head["Content-Length"], head["ETag"]), (200, b"", headers["Content-Length"], headers["ETag"]))
        equal(s.request("POST", "/openapi.yaml")[0], 405)
        equal(openapi.load(expected)["info"]["version"], version.partition("-")[0])
    with Service(work) as s:
        equal(s.request("GET", "/page/openapi.yaml")[0], 404, "it is no file of the page")


def test_openapi_document_is_valid(work, objects):
    equal(openapi_rules.problems(openapi.document()), [])


def test_every_rule_notices_an_invalid_document(work, objects):
    """Each change makes a rule complain."""
    changes = {
        "structure": ("      summary: Symbolicate native stack traces\n", ""),
        "references": ("schemas/NativeTrace'", "schemas/NativeTrack'"),
        "schemas": ("        crashed: {type: boolean}", "        crashed: {type: bool}"),
        "members": ("      required: [status, named]", "      required: [status, named, date]"),
        "examples": ("instruction_addr: '0x401136'", "instruction_addr: fast"),
        "values": ("servers:\n", "x-said: {a: b, c}\nservers:\n"),
        "discriminators": ("status: {const: pending}", "status: {const: waiting}"),
        "names": ("operationId: symbolicateJs\n", "operationId: symbolicate\n"),
        "security": ("      security: [{authToken: []}]", "      security: [{token: []}]"),
        "responses": ("        default: {$ref: '#/components/responses/Refused'}\n", ""),
    }
    equal(set(changes), {"structure", *(rule.__name__ for rule in openapi_rules.RULES)})
    for rule, (old, new) in changes.items():
        assert old in described(), old
        document = openapi.load(described().replace(old, new, 1))
        found = list(getattr(openapi_rules, rule)(document))
        assert found, f"{rule} finds nothing"


# ---- routes ----

EVERYTHING = {
    "logging": {"level": "debug"}, "symbfile": {"store_dir": ...}, "ms_symcache": {"transcoders": [{"version": "3.2.0", "command": ["false"]}]},
    "mozilla": {"sources": [], "profiler_apis": True, "store": {"filesystem": {"path": ...}}}, "auth": {"keys": [key("a", "admin", "symbols:write", "symbols:delete")], "require": ["admin"]}}


def everything(work):
    """A configuration with which every API is there."""
    text = json.dumps(EVERYTHING, default=lambda _: work + "/store")
    return json.loads(text)


def routes_of_program(service):
    """(method, pattern) of each, which the log tells at the start."""
    wait_until("the last route", lambda: re.search(r'path="?/\{file\}/\{id\}/\{name\}', service.logged()))
    return set(re.findall(r'route method=(\w+) path="?([^\s"]+)', service.logged()))


def routes_of_document():
    return {(method.upper(), item.get("x-route", path)) for path, item in openapi.document()["paths"].items() for method in openapi.METHODS if method in item}


def test_document_describes_every_route(work, objects):
    """Routes that only answer 404 in the form of their API, whatever is behind a prefix, are not described."""
    with Service(work, everything(work)) as s:
        program, document = routes_of_program(s), routes_of_document()
        equal(sorted(document - program), [], "the program does not have these routes of the document")
        others = sorted(program - document)
        for method, pattern in others:
            assert pattern.endswith("{rest..}"), f"the document does not have the route {method} {pattern}"
            equal(s.request(method, pattern.replace("{rest..}", "nothing/is/there"))[0], 404, (method, pattern))
        assert others


def test_requests_without_body_are_answered_as_described(work, objects):
    """Every operation of the document, without a body, with an access key and without. The harness looks at the answers."""
    with Service(work, everything(work)) as s:
        for path, item in openapi.document()["paths"].items():
            for method in [m for m in openapi.METHODS if m in item and path != "/admin/reload"]:
                for headers in ({}, bearer("a")):
                    status = s.request(method.upper(), re.sub(r"\{\w+\}", "1", path), headers=headers)[0]
                    assert status != 405 or (method, path) == ("post", "/"), (method, path, status)


# ---- what is found ----

ANSWER = {"status": "completed", "stacktraces": [{"frames": [{"status": "symbolicated", "original_index": 0, "instruction_addr": "0x1"}]}], "modules": []}
REQUEST = {"stacktraces": [{"frames": [{"instruction_addr": "0x1"}]}]}


def complaint(*about):
    """What is found in an exchange: nothing is empty."""
    try:
        openapi.Exchange(*about).check()
    except openapi.Mismatch as e:
        return str(e)
    return ""


def symbolicated(change=lambda answer: None, sent=REQUEST, status=200):
    answer = json.loads(json.dumps(ANSWER))
    change(answer)
    return complaint("POST", "/symbolicate", JSON, json.dumps(sent), status, JSON, json.dumps(answer).encode())


def test_undescribed_requests_and_answers_are_noticed(work, objects):
    frame = lambda answer: answer["stacktraces"][0]["frames"][0]
    equal(symbolicated(), "")
    assert "'secret'" in symbolicated(lambda a: frame(a).update(secret=1))
    assert "'0xA'" in symbolicated(lambda a: frame(a).update(instruction_addr="0xA"))
    assert "'original_index'" in symbolicated(lambda a: frame(a).pop("original_index"))
    assert "'done'" in symbolicated(lambda a: a.update(status="done"))
    assert "the status is not one of" in symbolicated(status=402)
    assert "not refused: stacktraces" in symbolicated(sent={"stacktraces": 5})
    assert "not refused: the whole" not in symbolicated(sent={**REQUEST, "unknown": 1}), "members that are not known are not taken"
    equal(complaint("POST", "/symbolicate", JSON, '{"stacktraces":5}', 422, TEXT, b"no list"), "")
    assert "not refused: text/xml" in complaint("POST", "/symbolicate", {"content-type": "text/xml"}, "{}", 200, JSON, json.dumps(ANSWER).encode())
    assert "a body of text/html" in complaint("POST", "/symbolicate", JSON, "{}", 422, {"content-type": "text/html"}, b"<p>")
    assert "the path is not" in complaint("GET", "/nothing", {}, None, 200, TEXT, b"x")
    assert "the method is not" in complaint("PUT", "/symbolicate", {}, None, 200, TEXT, b"x")
    assert "no error that is" in complaint("GET", "/nothing", {}, None, 404, JSON, b'{"reason":"none"}')
    assert "no header Location" in complaint("GET", "/a.pdb/A1/a.sym", {}, None, 302, {}, b"")
    assert "timeout is no number" in complaint("GET", "/requests/1?timeout=x", {}, None, 200, JSON, b'{"status":"timeout"}')
    done = {**JSON, "Accept-Encoding": "zstd"}
    assert "FileID" in complaint("POST", "/api/symbols-ranges", {}, b"x", 200, done, b'{"success":true,"status":200}')


def test_forms_are_checked_against_the_document(work, objects):
    def sent(parts):
        body, headers = harness.multipart(parts)
        return complaint("POST", "/minidump", headers, body, 200, JSON, b'{"status":"timeout"}')
    equal(sent([("upload_file_minidump", b"MDMP", "a.dmp"), ("options", "{}"), ("artifact", b"\0\1", "a.so")]), "")
    assert "'upload_file_minidump'" in sent([("options", "{}")])
    assert "options" in sent([("upload_file_minidump", b"MDMP", "a.dmp"), ("options", "[]")])


def test_requests_of_every_test_are_checked(work, objects):
    """By Service.request and on connections that a test keeps, whatever the prefix of the paths; also on threads."""
    def asked_in_vain(service):
        try:
            service.request("GET", "/live")
        except openapi.Mismatch as e:
            return e
        return None

    with Service(work, {"mozilla": {"sources": [], "path_prefix": "/deep"}}) as s:
        before = openapi.checks["exchanges"]
        s.post("/deep/symbolicate/v5", {"jobs": []})
        connection = s.connection()
        connection.request("GET", "/healthcheck")
        connection.getresponse().read()
        equal(openapi.checks["exchanges"] - before, 2)
    found = None
    try:
        openapi.document()["paths"].pop("/live")
        openapi.paths.cache_clear()
        with Service(work) as s:
            thread = threading.Thread(target=asked_in_vain, args=(s,))
            thread.start()
            thread.join()
    except openapi.Mismatch as e:
        found = str(e)
    finally:
        openapi.document.cache_clear()
        openapi.paths.cache_clear()
    assert found and "the path is not in the document" in found, found
