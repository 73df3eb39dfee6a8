"""POST /page/read: what the page is given, as the program's own recognisers see it."""
import gzip, json

import dumps
from harness import Service, equal

JS = """TypeError: x
    at a (https://e.x/a.js:1:5)
    at Array.map (<anonymous>)
    at new Promise (<anonymous>)
    at async b (https://e.x/a.js:1:9)
"""
JAVA = """java.lang.RuntimeException: x
\tat a.b.c(Unknown Source:3)
\tat java.lang.reflect.Method.invoke(Native Method)
\t... 5 more
Caused by: a.e: y
\tat a.e.a(SourceFile:3)"""


def read(service, text, query="", **headers):
    status, _, body = service.request("POST", "/page/read" + query, text if isinstance(text, bytes) else text.encode(), headers)
    equal(status, 200, body)
    return json.loads(body)


def whole(parts):
    return "".join(p if isinstance(p, str) else p.get("text", p.get("class")) for p in parts)


def test_detected_kinds_equal_those_of_the_command(work, objects):
    profile = {"meta": {"version": 29}, "libs": [], "threads": []}
    kinds = [(JS, "jsstack"), (JAVA, "trace"), ("r@https://e.x/a.js:1:39\n", "jsstack"), ("    at f (address at index.android.bundle:1:22)\n", "jsstack"),
             (profile, "profile"), ({"jobs": []}, "mozilla"), ({"memoryMap": []}, "mozilla"), ({"stacktraces": []}, "request"), ({"exception": {}}, "event"),
             ("Incident Identifier: 1\nProcess: shop [1]\n", "apple"), (dumps.Dump().done(), "minidump"), ("hello", None), ("", None), (b"\x7fELF" + bytes(64), None)]
    with Service(work) as s:
        for given, kind in kinds:
            data = given if isinstance(given, (str, bytes)) else json.dumps(given)
            equal(read(s, data)["kind"], kind, given)
        equal(read(s, gzip.compress(JS.encode()), **{"Content-Encoding": "gzip"})["kind"], "jsstack")
        assert "ELF" in read(s, b"\x7fELF" + bytes(64))["unread"]
        equal(read(s, "panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/p.go:3 +0x16\n"), {"kind": None, "plain": "a Go stack trace"})
        equal(read(s, "stack backtrace:\n   0: f\n             at /rustc/1/library/std/src/panicking.rs:665:5\n"), {"kind": None, "plain": "a Rust backtrace"})
        equal(read(s, "   at a.B.C(D.java:1)\n   at Shop.Main(String[] args) in /src/a.cs:line 12\n"), {"kind": None, "plain": "a .NET exception"})
        equal(read(s, "Traceback (most recent call last):\n" + JAVA)["kind"], "trace", "of a JVM below it")


def test_parts_of_a_text_add_up_to_the_text(work, objects):
    with Service(work) as s:
        for text, kind in ((JS, "jsstack"), (JAVA, "trace"), (JAVA.replace("\n", "\r\n"), "trace"), ("x" * 100000 + "\n" + JS, "jsstack"),
                           ('web {"a":"b"} "Error: x\\n    at f (/a/b.js:1:2)\\n    at g (/a/b.js:3:4)"\n', "jsstack")):
            answer = read(s, text)
            equal(answer["kind"], kind)
            equal(whole(answer["parts"]), text)
        js = [p for p in read(s, JS)["parts"] if isinstance(p, dict)]
        equal([(p["function"], p["url"], p["line"], p["column"]) for p in js], [("a", "https://e.x/a.js", 1, 5), ("b", "https://e.x/a.js", 1, 9)])
        java = [p for p in read(s, JAVA)["parts"] if "head" in p]
        equal([(p["class"], p["method"], p["file"], p.get("line")) for p in java],
              [("a.b", "c", "Unknown Source", 3), ("java.lang.reflect.Method", "invoke", "Native Method", None), ("a.e", "a", "SourceFile", 3)])
        assert {"class": "a.e"} in read(s, JAVA)["parts"]


def test_as_parameter_overrides_the_detected_kind(work, objects):
    both = "    at Object.foo (https://e.x/a.js:1:5)\n"
    with Service(work) as s:
        equal(read(s, both)["kind"], "jsstack")
        equal(read(s, both, "?as=trace")["parts"][0]["method"], "foo")
        equal(read(s, JAVA, "?as=jsstack")["parts"], [JAVA])


def test_answers_over_max_response_bytes_are_refused(work, objects):
    """Short frames have long descriptions."""
    with Service(work, {"max_response_bytes": 100000}) as s:
        for text in ("\tat a.b(F)\n" * 2000, "a@/b:1:1\n" * 2000, '"' + "\\n a@/b:1:1" * 2000 + '"', "a: " * 20000 + "\n\tat a.b(F)\n" * 2000):
            status, _, body = s.request("POST", "/page/read", text.encode())
            equal((status, json.loads(body)), (413, {"detail": "the response would be larger than max_response_bytes"}), text[:40])
        equal(read(s, "\tat a.b(F)\n" * 100)["kind"], "trace")


def test_read_route_is_part_of_the_ui(work, objects):
    with Service(work, {"page": {"enabled": False}}) as s:
        equal(s.request("POST", "/page/read", b"x")[0], 404)
    with Service(work, {"symbolicate_body_max_bytes": 100}) as s:
        equal(s.request("POST", "/page/read", b"x" * 101)[0], 413)
        equal(s.request("GET", "/page/read")[0], 405)
