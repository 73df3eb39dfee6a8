"""What the configuration changes of Mozilla's API, the published form of its answers, and refusals that are not about the body."""
import json, os, subprocess, threading

import jsonschema

import cloud
from harness import Service, Upstream, equal
from test_symbolicate import FILES, I, N, P, W, X, ask, frames, job, place, serving

EVERYTHING = {"jobs": [job([P, I, N, ("none.so", "1" * 33), ("", ""), ("libc.so", "12345")],
                           [[[0, 21376], [1, 31354], [2, 4104], [-1, 5], [0, -1], [3, 6], [4, 7]], []]), job([X, W], [[[0, 11723767], [1, 65802]]])]}


def schema(version):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "schemas", f"symbolicate_api_response_v{version}.json")) as f:
        document = json.load(f)
    jsonschema.Draft7Validator.check_schema(document)
    return jsonschema.Draft7Validator(document)


def test_answers_match_the_published_schema(work, objects):
    with serving(work, {"mozilla": {"v5_extensions": ["function_size", "module_errors"]}}) as s:
        for headers in ({}, {"Debug": "1"}):
            equal([e.message for e in schema(5).iter_errors(ask(s, EVERYTHING, headers=headers))], [])
            for one in EVERYTHING["jobs"]:
                equal([e.message for e in schema(4).iter_errors(ask(s, one, 4, headers=headers))], [])
    equal(bool(list(schema(5).iter_errors({"results": [{"stacks": [[{"frame": 0, "line": 0}]], "found_modules": {}}]}))), True)
    equal(bool(list(schema(4).iter_errors({"symbolicatedStacks": [["a"]], "knownModules": [1]}))), True)


def test_module_name_key_selects_the_shown_name(work, objects):
    for config, name in (({}, "xul.dll"), ({"module_name": "debug_file"}, "xul.pdb")):
        with serving(work, {"mozilla": config}) as s:
            equal([(f["module"], f["function"], f["function_offset"]) for f in frames(s, [X, W], [[0, 11723767], [1, 65802]])[0]],
                  [(name, "XREMain::XRE_mainRun()", "0x0"), ("wntdll.pdb", "KiUserCallbackDispatcher", "0x2e")])


def test_compat_presets_set_the_documented_keys(work, objects):
    """Each as the table of its keys says; single keys override it."""
    eleven = {"jobs": [job([P], [[[0, 21376]]])] * 11}
    behind = job([X], [[[0, 0x268000]]])
    fraction = '{"memoryMap": [["%s", "%s"]], "stacks": [[[0, 1.5]]], "version": 4}' % P
    for config, jobs, unversioned, keys, near, skipped, root in (
            ({}, 400, 200, ["title"], True, 200, 200), ({"compat": "documented"}, 200, 400, ["title", "error"], True, 200, 200),
            ({"compat": "eliot"}, 400, 200, ["title"], False, 400, 405), ({"compat": "profiler"}, 400, 200, ["title"], False, 200, 200),
            ({"compat": "eliot", "lookup": "nearest", "root_alias": True, "max_jobs": 0}, 200, 200, ["title"], True, 400, 200),
            ({"max_jobs": 11, "error_key": "error"}, 200, 200, ["error"], True, 200, 200)):
        with serving(work, {"mozilla": {**config, "cache": "disk"}}) as s:
            def status(path, body):
                return s.request("POST", path, body if isinstance(body, str) else json.dumps(body))[0]
            equal((status("/symbolicate/v5", eleven), status("/symbolicate/v4", behind), status("/symbolicate/v4", fraction), status("/", {**behind, "version": 4})),
                  (jobs, unversioned, skipped, root), config)
            equal(list(json.loads(s.request("POST", "/symbolicate/v5", "{}")[2])), keys, config)
            equal("function" in ask(s, behind)["results"][0]["stacks"][0][0], near, config)


def test_path_prefix_applies_to_all_routes(work, objects):
    body = json.dumps(job([P], [[[0, 21376]]]))
    with serving(work, {"mozilla": {"path_prefix": "/symbols", "profiler_apis": True}}) as s:
        for path, method, status in (("/symbols/symbolicate/v5", "POST", 200), ("/symbols/symbolicate/v4", "OPTIONS", 200), ("/symbols/", "POST", 200),
                                     ("/symbols/source/v1", "POST", 400), ("/symbolicate/v5", "POST", 404), ("/source/v1", "POST", 404),
                                     ("/symbols/symbolicate/v6", "POST", 404)):
            equal(s.request(method, path, None if method == "OPTIONS" else body)[0], status, path)


def test_private_network_preflight_is_answered_when_allowed(work, objects):
    headers = {"Origin": "https://profiler.firefox.com", "Access-Control-Request-Method": "POST", "Access-Control-Request-Private-Network": "true",
               "Access-Control-Request-Headers": "content-type"}
    for allowed in (True, False):
        with serving(work, {"mozilla": {"allow_private_network": allowed}}) as s:
            status, got, _ = s.request("OPTIONS", "/symbolicate/v5", None, headers)
            equal((status, got["Access-Control-Allow-Private-Network"], got["Access-Control-Allow-Headers"]), (200, "true" if allowed else None, "content-type"))
            del headers["Access-Control-Request-Private-Network"]
            equal(s.request("OPTIONS", "/symbolicate/v5", None, headers)[1]["Access-Control-Allow-Private-Network"], None)
            headers["Access-Control-Request-Private-Network"] = "true"


def test_body_depth_is_limited_and_zstd_is_read(work, objects):
    with serving(work) as s:
        body = json.dumps(job([P], [[[0, 21376]]])).encode()
        equal(list(ask(s, subprocess.run(["zstd", "-c"], input=body, check=True, capture_output=True).stdout, headers={"Content-Encoding": "zstd"})), ["results"])
        ignored = lambda depth: b'{"a": ' + b"[" * depth + b"]" * depth + b", " + body[1:]
        equal(list(ask(s, ignored(12))), ["results"])
        equal(ask(s, ignored(100000), status=400), b'{"title": "Payload is not valid JSON"}')
        for text in (body.decode().encode("utf-16"), b'{"a": Infinity, ' + body[1:], b'{"a": "\xff", ' + body[1:]):
            equal(ask(s, text, status=400), b'{"title": "Payload is not valid JSON"}')


def test_request_timeout_gives_503_with_retry_after(work, objects):
    gate = threading.Event()
    with Upstream({place(P): lambda handler: gate.wait()}) as up:
        with Service(work, {"mozilla": {"sources": [up.url], "request_timeout": "1s"}}) as s:
            status, got, text = s.request("POST", "/symbolicate/v5", json.dumps(job([P], [[[0, 21376]]])))
            equal((status, got["Retry-After"], json.loads(text)["title"]), (503, "5", "503 Service Unavailable"))
            gate.set()


def test_heartbeat_tells_missing_bucket_from_unreachable_one(work, objects):
    """The heartbeat says which of the two it is: no bucket, or no answer."""
    missing = '<?xml version="1.0"?><Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>'
    answers = [(404, missing)]
    with cloud.Web(lambda h: h.reply(*answers[0])) as web:
        bucket = {"id": "bucket", "type": "s3", "bucket": "symbols", "region": ["x", web.url], "access_key": "a", "secret_key": "b",
                  "prefix": "v1", "layout": {"type": "native"}}
        with Service(work, {"sources": [bucket], "mozilla": {"sources": ["bucket"], "fallback_sources": [], "negative_ttl": "0s"}}) as s:
            for answer, expected in (((404, missing), "E001"), ((404, "<Error><Code>NoSuchKey</Code></Error>"), None)):
                answers[0] = answer
                equal(frames(s, [P], [[0, 21376]])[1], {"/".join(P): False})
                status, _, text = s.request("GET", "/__heartbeat__")
                told = json.loads(text)
                equal((status, [list(d["messages"]) for d in told["details"].values()]),
                      (500, [["tecken.health." + expected]]) if expected else (200, []))
