"""POST /page/named: profiles and reports of samples come back as the command writes them."""
import gzip, json, os, subprocess

import harness
from harness import Service, Upstream, equal, http_source, multipart
from test_by_command import profile
from test_crash_files import SAMPLES

APP = "MODULE mac x86_64 2D903291397D3D14BFCA52C7FB8C5E000 app\nFILE 0 /src/app.m\nFUNC 0 20 0 -[App stop]\n0 20 7 0\n"


def named(service, data, *parts):
    body, headers = multipart([("file", data, "given"), *parts])
    status, _, answer = service.request("POST", "/page/named", body, headers)
    return status, json.loads(answer)


def by_command(work, data, *symbols):
    """What the command writes, to the byte."""
    path = os.path.join(work, "given")
    with open(path, "wb") as f:
        f.write(data)
    return subprocess.run([harness.SYMLOOM, "symbolicate", "--no-network", "--cache-dir", "", path, *symbols], check=True, capture_output=True).stdout


def two_addresses(objects):
    """Of `plain`, and where calls are inlined into Box::area."""
    document = profile(objects, objects.address("plain"))
    thread = document["threads"][0]
    for name, changed in (("stackTable", {"frame": [0, 1], "prefix": [None, 0]}), ("frameTable", {"address": [objects.address("plain"), inlined(objects)], "func": [0, 1]}),
                          ("funcTable", {"name": [0, 2], "resource": [0, 0]})):
        thread[name] = {**{key: value * 2 if isinstance(value, list) else 2 for key, value in thread[name].items()}, **changed}
    thread["stringArray"].append("0x2000")
    thread["samples"]["stack"] = [1]
    return document


def inlined(objects):
    begin, size = objects.symbols["_ZN6shapes3Box4areaEi"]
    return next(a for a in objects.line_addresses(3) if begin - objects.load <= a < begin - objects.load + size)


def test_named_profile_equals_that_of_the_command(work, objects):
    data = json.dumps(two_addresses(objects), indent=1).encode()
    expected = by_command(work, data, objects.dir + "/full")
    strings = json.loads(expected)["threads"][0]["stringArray"]
    assert {"plain", "shapes::Box::area(int)", "innermost"} <= set(strings), strings
    with Upstream(objects.layout()) as up, Service(work) as s:
        sources = json.dumps([http_source(up.url)])
        for given in (data, gzip.compress(data)):
            status, answer = named(s, given, ("sources", sources))
            equal((status, answer["status"]), (200, "completed"), answer)
            equal(answer["named"].encode(), expected)
        equal(named(s, data, ("artifact", objects.full, "shapes"))[1]["named"].encode(), expected, "with a file that came along")
        equal(named(s, data)[1]["named"].encode(), by_command(work, data), "without names")
    with Upstream(objects.layout()) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        equal(named(s, data)[1]["named"].encode(), expected, "by the sources of the service")
        other = ("sources", json.dumps([http_source("http://127.0.0.1:1/")])), ("options", '{"configured_sources":true}')
        equal(named(s, data, *other)[1]["named"].encode(), expected, "which count besides those of the request")


def test_named_sampling_report_equals_that_of_the_command(work, objects):
    symbols = os.path.join(work, "app.sym")
    with open(symbols, "w") as f:
        f.write(APP)
    expected = by_command(work, SAMPLES.encode(), symbols)
    assert b"-[App stop]  (in app) + 5" in expected, expected
    with Service(work) as s:
        answer = named(s, SAMPLES.encode(), ("artifact", APP, "app.sym"))[1]
        equal((answer["status"], answer.get("named", answer).encode()), ("completed", expected))


def test_unsupported_files_report_the_reason(work, objects):
    good = two_addresses(objects)
    old = {**good, "meta": {"preprocessedProfileVersion": 3}}
    with Service(work) as s:
        for given, problem in ((b"{}", "`meta` is missing"), (b"hello", "not a JSON object"), (b"\x1f\x8b\x08\x00junk", "not a JSON object"),
                               (json.dumps(old).encode(), "profile format version 3 is too old"), (b"Call graph:\n  1 Thread_1\n", "has no row with a call")):
            status, answer = named(s, given)
            equal((status, answer["status"], answer["message"]), (200, "failed", "cannot symbolicate this file"), given)
            assert problem in answer["detail"], answer
        body, headers = multipart([("artifact", b"x", "x")])
        status, _, text = s.request("POST", "/page/named", body, headers)
        equal((status, json.loads(text)["detail"]), (400, "missing file"))
        equal(s.request("POST", "/page/named", b"{}")[0], 400)


def test_named_files_over_the_limits_are_refused(work, objects):
    data = json.dumps(two_addresses(objects)).encode()
    for settings, problem in (({"max_request_frames": 1}, "2 addresses, more than 1 (max_request_frames)"), ({"max_response_frames": 1}, "max_response_frames"),
                              ({"max_response_bytes": len(data) // 2}, "max_response_bytes"), ({"max_response_bytes": len(data) + 10}, "max_response_bytes")):
        with Service(work, settings) as s:
            answer = named(s, data, ("artifact", objects.full, "shapes"))[1]
            assert answer["status"] == "failed" and problem in answer["detail"], (settings, answer)
    with Service(work, {"crash_file_body_max_bytes": 1000}) as s:
        equal(named_status(s, data), 413)
    with Service(work, {"page": {"enabled": False}}) as s:
        equal(named_status(s, data), 404)


def named_status(service, data):
    body, headers = multipart([("file", data)])
    return service.request("POST", "/page/named", body, headers)[0]
