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


def test_detected_kinds_equal_those_of_the_command(work, objects):
    profile = {"meta": {"version": 29}, "libs": [], "threads": []}
    kinds = [(JS, "jsstack"), (JAVA, "trace"), ("r@https://e.x/a.js:1:39\n", "jsstack"), ("    at f (address at index.android.bundle:1:22)\n", "jsstack"),
             (profile, "profile"), ({"jobs": []}, "mozilla"), ({"memoryMap": []}, "mozilla"), ({"stacktraces": []}, "request"), ({"exception": {}}, "event"),
             ("Incident Identifier: 1\nProcess: shop [1]\n", "apple"), (dumps.Dump().done(), "minidump"), ("hello", None), ("", None), (b"\x7fELF" + bytes(64), None),
             ("    #0 0x4a5f  (/srv/a+0x4a5f)\n", "text"), ("*** *** *** *** *** ***\n      #00 pc 00001106  /data/a (f+0)\n", "text"), ("*** *** *** *** *** ***\n", None),
             ("./bt(+0x1182)[0x559da1430182]\n" + JS, "text"), ("#0 0x4a5f in f /src/a.c:12\n", None)]
    with Service(work) as s:
        for given, kind in kinds:
            data = given if isinstance(given, (str, bytes)) else json.dumps(given)
            equal(read(s, data)["kind"], kind, given)
        equal(read(s, gzip.compress(JS.encode()), **{"Content-Encoding": "gzip"})["kind"], "jsstack")
        assert "ELF" in read(s, b"\x7fELF" + bytes(64))["unread"]
        equal(read(s, "panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/p.go:3 +0x16\n"), {"kind": None, "plain": "a Go stack trace"})
        equal(read(s, "stack backtrace:\n   0: f\n             at /rustc/1/library/std/src/panicking.rs:665:5\n"), {"kind": None, "plain": "a Rust backtrace"})
        assert "--extra-debuginfo-path" in read(s, "==1==    at 0x109149: ??? (in /tmp/a)\n")["advice"]
        equal(read(s, "   at a.B.C(D.java:1)\n   at Shop.Main(String[] args) in /src/a.cs:line 12\n"), {"kind": None, "plain": "a .NET exception"})
        equal(read(s, "Traceback (most recent call last):\n" + JAVA)["kind"], "trace", "of a JVM below it")


def test_read_route_is_part_of_the_ui(work, objects):
    with Service(work, {"page": {"enabled": False}}) as s:
        equal(s.request("POST", "/page/read", b"x")[0], 404)
    with Service(work, {"symbolicate_body_max_bytes": 100}) as s:
        equal(s.request("POST", "/page/read", b"x" * 101)[0], 413)
        equal(s.request("GET", "/page/read")[0], 405)
