"""POST /symbolicate-text: stacks of all formats in texts, written again with names."""
import json, os, re, subprocess

from harness import Service, equal, multipart
from js import artifacts

BACKTRACE = """#include <execinfo.h>
__attribute__((noinline)) int f(int n)
{
    void *frames[16];
    if (n)
        return f(n - 1) + 1;
    int count = backtrace(frames, 16);
    backtrace_symbols_fd(frames, count, 1);
    return count;
}
int main(void)
{
    return f(2) > 100;
}
"""
FREED = """#include <stdlib.h>
static inline __attribute__((always_inline)) int element(int *p, int n) { return p[n]; }
__attribute__((noinline)) int f(int *p, int n)
{
    return element(p, n) + 1;
}
int main(void)
{
    int *p = malloc(8);
    free(p);
    return f(p, 1);
}
"""
PLAIN = """int sink;
__attribute__((noinline)) int f(int x) { return sink = x * 3; }
int main(int count, char **words) { return f(count) + 1; }
"""
MAPPING = "com.example.Main -> a.b:\n    20:20:void run():20:20 -> c\ncom.example.Oops -> a.e:\n"
RUST = """thread 'main' panicked at r.rs:1:35:
x
stack backtrace:
   0:     0x55cc5536701a - <unknown>
   1:     0x55cc553773ea - <unknown>
  19:     0x7f775a52e24a - __libc_start_call_main
                               at ./csu/../sysdeps/nptl/libc_start_call_main.h:58:16
"""


def run(*command, **keys):
    return subprocess.run(command, check=True, capture_output=True, text=True, **keys).stdout


def build_id(path):
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", path)).group(1)


def build(work, name, source, *flags):
    """A program in `work`, whose debug file is below work/symbols; (path, build id)."""
    path = os.path.join(work, name)
    with open(path + ".c", "w") as f:
        f.write(source)
    run("gcc", "-g", "-Wl,--build-id=sha1", *flags, "-o", path, path + ".c")
    place = os.path.join(work, "symbols", build_id(path))
    os.makedirs(place)
    run("objcopy", "--only-keep-debug", path, os.path.join(place, "debuginfo"))
    return path, build_id(path)


def source(work):
    return {"id": "local", "type": "filesystem", "path": os.path.join(work, "symbols"), "layout": {"type": "debuginfod"}}


def text(service, body, *parts, query="", **headers):
    if parts:
        body, more = multipart([("text", body), *parts])
        headers.update(more)
    status, told, data = service.request("POST", "/symbolicate-text" + query, body, {"Content-Type": "text/plain", **headers})
    equal(status, 200, data)
    return json.loads(data) if "json" in told["Content-Type"] else data.decode("utf-8", "surrogateescape")


def module(path, code_id, **more):
    return ("modules", json.dumps([{"type": "elf", "code_file": path, "code_id": code_id, **more}]))


def test_backtrace_symbols_are_named_as_addr2line_does(work, objects):
    path, code_id = build(work, "bt", BACKTRACE, "-O0")
    given = run(path)
    offsets = [int(o, 16) for o in re.findall(r"bt\(\+(0x\w+)\)", given)]
    equal(len(offsets), 5, given)
    with Service(work, {"sources": [source(work)]}) as s:
        told = text(s, given, module("bt", code_id)).splitlines()
    equal(len(told), len(given.splitlines()))
    for before, now, offset in zip([line for line in given.splitlines() if "bt(+" in line], [line for line in told if "bt(+" in line], offsets):
        name, place = run("addr2line", "-e", path, "-f", hex(offset - 1)).split("\n")[:2]
        place = place.split(" (")[0]
        equal(now, f"{before} {name}" + ("" if place.startswith("?") else f" at {place}"))
    equal([line for line in told if "bt(+" not in line], [line for line in given.splitlines() if "bt(+" not in line])


def test_sanitizer_report_equals_that_of_a_symbolizer(work, objects):
    path, code_id = build(work, "bta", FREED, "-O1", "-fsanitize=address")
    reports = [subprocess.run([path], stderr=subprocess.PIPE, text=True, env={"ASAN_OPTIONS": f"symbolize={n}"}).stderr for n in (0, 1)]

    def frames(report):
        return [(n, " ".join(rest)) for n, _, *rest in (line.split() for line in report.splitlines() if re.match(r"    #\d+ 0x", line))
                if path + "." in " ".join(rest) or path + "+" in " ".join(rest)]

    with Service(work, {"sources": [source(work)]}) as s:
        told = text(s, reports[0], module(path, code_id))
        equal([f for f in frames(told)], [f for f in frames(reports[1])])
        other = [line for line in told.splitlines() if not line.startswith("    #")]
        equal(other, [line for line in reports[0].splitlines() if not line.startswith("    #")])
        equal(text(s, reports[1], module(path, code_id)), reports[1], "has its names already")


def addresses(path, *names):
    symbols = {words[-1]: int(words[0], 16) for words in map(str.split, run("nm", "--defined-only", path).splitlines())}
    return [symbols[name] for name in names]


def llvm_place(path, at):
    """FILE:LINE:COLUMN as LLVM's symbolizer prints it."""
    return run("llvm-symbolizer-19", "-e", path, "--no-inlines", hex(at)).splitlines()[1]


def formats(path, code_id, at, base=0x555555554000):
    """(format, text, what comes back) for the function `f` of PLAIN."""
    place, name = f"{path}.c:2", os.path.basename(path)
    maps = f"{base:x}-{base + 0x10000:x} r-xp 00000000 fe:00 1   {path}\n"
    return [
        ("android", f"      #00 pc {at:016x}  /system/{name} (f+0) (BuildId: {code_id})", f"+ f ({place})"),
        ("android", f"07-01 10:00:00.000  1  1 F DEBUG   :       #00 pc {at:08x}  /data/app/base.apk!{name} (BuildId: {code_id})", f"+ f ({place})"),
        ("systemd", f"Module {name} with build-id {code_id}\n#0  0x{base + at:016x} n/a ({name} + 0x{at:x})", f"Module {name} with build-id {code_id}\n#0  0x{base + at:016x} f ({name} + 0x{at:x}) ({place})"),
        ("hs_err", f"C  [{name}+0x{at:x}]", f"C  [{name}+0x{at:x}]  f+0x0  ({place})"),
        ("hs_err", f"C  [{name}+0x{at:x}]  wrong+0x7", f"C  [{name}+0x{at:x}]  f+0x0  ({place})"),
        ("gdb", f"#0  0x{base + at:016x} in ?? () from {path}\n{maps}", f"#0  0x{base + at:016x} in f () at {place}\n{maps}"),
        ("eu-stack", f"#0  0x{base + at:016x}\n{maps}", f"#0  0x{base + at:016x} f\n    {place}\n{maps}"),
        ("eu-stack", f"#0  0x{base + at:016x} - {path}\n{maps}", f"#0  0x{base + at:016x} f - {path}\n    {place}\n{maps}"),
        ("rust", f"   0:     0x{base + at:x} - <unknown>\n{maps}", f"   0:     0x{base + at:x} - f\n                              at {place}\n{maps}"),
        ("windows", f"00 00d1 7ff9     {name}!<BaseAddress>+0x{at:x}", f"00 00d1 7ff9     {name}!f+0x0 [{path}.c @ 2]"),
        ("apple", f"0   {name}    0x{base + at:016x} 0x{base:x} + {at}", f"0   {name}    0x{base + at:016x} f + 0 ({place})"),
        ("addresses", f"{name} + 0x{at:x}", f"{name} + 0x{at:x} f ({place})"),
        ("markup", f"{{{{{{module:0:{name}:elf:{code_id}}}}}}}\n{{{{{{mmap:0x{base:x}:0x10000:load:0:rx:0x0}}}}}}\n{{{{{{pc:0x{base + at:x}}}}}}}\n",
         f'[[[ELF module #0x0 "{name}"; BuildID={code_id} [0x{base:x}-0x{base + 0xffff:x}](rx)]]]\nf[{place}]\n'),
        ("markup", f"{{{{{{module:0:{name}:elf:{code_id}}}}}}}\n{{{{{{mmap:0x{base:x}:0x10000:load:0:rx:0x0}}}}}}\n{{{{{{bt:3:0x{base + at:x}:pc}}}}}}\n",
         f'[[[ELF module #0x0 "{name}"; BuildID={code_id} [0x{base:x}-0x{base + 0xffff:x}](rx)]]]\n'
         f"    #3    0x{base + at:016x} f {llvm_place(path, at)} ({name}+0x{at:x})\n"),
    ]


def test_each_format_is_written_as_its_tool_writes_it(work, objects):
    path, code_id = build(work, "prog", PLAIN, "-O1")
    at, = addresses(path, "f")
    with Service(work, {"sources": [source(work)]}) as s:
        for name, given, wanted in formats(path, code_id, at):
            wanted = given + wanted[1:] if wanted.startswith("+") else wanted  # appended
            for end in ("", "\n", "\r\n", "\nmore of the log\n"):
                if name == "markup" and end:
                    continue
                told = text(s, given + end, module(f"/other/{os.path.basename(path)}", code_id))
                equal(told, wanted + end, (name, end))
            answer = text(s, given, module(path, code_id), Accept="application/json")
            equal((answer["formats"], answer["text"]), ([name], wanted))
            equal({f["function"] for t in answer["stacktraces"] for f in t["frames"]}, {"f"})
            equal(text(s, given, module(path, code_id), query="?format=" + ("gdb" if name == "rust" else "rust")), given if name != "markup" else wanted.splitlines()[0] + "\n" + given.splitlines()[2] + "\n")


def test_texts_without_known_frames_come_back_byte_for_byte(work, objects):
    log = "".join(f"2026-11-29T00:00:{i % 60:02}Z INFO [worker-{i % 7}] request #{i} took 0x{i:x} ns at /srv/app: {'x' * (i % 90)}\r\n" for i in range(40000))
    odd = b"\xff\xfe\0 #0 0x1 (a+0x\n#1 0x2  (b+0x10)\r#2\r\n\n   at \n{{{pc:}}} {{{\n@1:2:3 (f\n" + bytes(range(256))
    with Service(work) as s:
        for given in (RUST.encode(), log.encode()[:4 << 20], odd, b"", b"\n", b"#0 0x1 (a+0x1)"):
            status, _, body = s.request("POST", "/symbolicate-text", given, {"Content-Type": "text/plain"})
            equal((status, body == given), (200, True), given[:80])


def test_limits_of_texts(work, objects):
    """What is beyond a limit comes back as it was; the text is whole in any case."""
    path, code_id = build(work, "prog", PLAIN, "-O1")
    at, = addresses(path, "f")
    frame = f"#0 0x1  (prog+0x{at:x})\n"
    named = f"#0 0x1 in f {path}.c:2\n"
    with Service(work, {"sources": [source(work)], "max_request_frames": 100000, "max_response_frames": 100000}) as s:
        ask = lambda given: text(s, given, module("prog", code_id))
        for given, wanted in ((199999 * "\n" + 2 * frame, 199999 * "\n" + named + frame),
                              ("x" * (16383 - len(frame)) + " " + frame, None), ("x" * (16384 - len(frame)) + " " + frame, False),
                              (50001 * frame, 50000 * named + frame)):
            told = ask(given)
            if wanted is None:
                equal(told, given[:-len(frame)] + named, "a line of 16 KiB")
            else:
                equal(told == (wanted or given), True, (len(given), told[-80:]))


def test_several_formats_in_one_text(work, objects):
    """Native code, a script and the JVM; what they need comes with the request."""
    path, code_id = build(work, "mixed", PLAIN, "-O1")
    at, = addresses(path, "f")
    given = (f"app | #0 0x7f01  ({path}+0x{at:x}) (BuildId: {code_id})\n"
             "Error: x\n    at t (http://example.com/test.min.js:1:183)\n"
             "E/AndroidRuntime( 1): a.e: y\nE/AndroidRuntime( 1): \tat a.b.c(SourceFile:20)\n"
             "\tat java.lang.Thread.run(Thread.java:1)\n\t... 3 more\n")
    parts = [("artifact", artifacts.SCRIPT, "test.min.js"), ("artifact", artifacts.MAP, "test.min.js.map"), ("artifact", MAPPING, "mapping.txt")]
    with Service(work, {"sources": [source(work)]}) as s:
        told = text(s, given, *parts)
        lines = told.splitlines()
        equal(lines[0], f"app | #0 0x7f01 in f {path}.c:2")
        assert "test.js" in lines[2] and "test.min.js" not in lines[2], lines[2]
        equal(lines[3:5], ["E/AndroidRuntime( 1): com.example.Oops: y", "E/AndroidRuntime( 1): \tat com.example.Main.run(Main.java:20)"])
        equal(lines[5:], given.splitlines()[5:])
        answer = text(s, given, *parts, Accept="application/json")
        equal(answer["text"], told)
        equal((sorted(answer["formats"]), [(t["format"], t["kind"], t["line"]) for t in answer["stacks"]]),
              (["asan", "js", "jvm"], [("asan", "native", 1), ("js", "js", 3), ("jvm", "jvm", 5)]))
        equal(answer["stacks"][2]["lines"], [0, 1, "... 3 more"])
        equal([f["function"] for f in answer["js"]["stacktraces"][0]["frames"]] != ["t"], True)
        equal(answer["jvm"]["stacktraces"][0]["frames"][0]["function"], "run")


def test_exceptions_alone_and_marks_of_the_encoding(work, objects):
    mapping = ("artifact", MAPPING, "mapping.txt")
    with Service(work) as s:
        equal(text(s, "a.e: y\n", mapping), "com.example.Oops: y\n")
        equal(text(s, "\ufeffa.e: y\n\tat a.b.c(SourceFile:20)\n".encode(), mapping), "\ufeffcom.example.Oops: y\n\tat com.example.Main.run(Main.java:20)\n")
        line = 'x {"stack":"Error: a.e: y\\n    at f (http://x/a.js:1:2)\\n    at g (http://x/a.js:3:4)"} z\n'
        for given in (line, line[:-1] + "\n", "\ufeff#0 0x1  (/a+0x1)\n", "\ufeff    at f (http://x/a.js:1:2)\n", "\ufeff", "\ufeff\tat a.x.c(SourceFile:20)\n"):
            equal(text(s, given.encode(), mapping), given)


def test_names_of_several_modules_are_not_guessed(work, objects):
    path, code_id = build(work, "twice", PLAIN, "-O1")
    at, = addresses(path, "f")
    given = f"#0 0x1  (/x/twice+0x{at:x})\n"
    both = ("modules", json.dumps([{"type": "elf", "code_file": "/a/twice", "code_id": "ab" * 20}, {"type": "elf", "code_file": "/b/twice", "code_id": code_id}]))
    with Service(work, {"sources": [source(work)]}) as s:
        equal(text(s, given, both), given)
        equal(text(s, given, both, query="?guess=newest"), f"#0 0x1 in f {path}.c:2\n")
        equal(text(s, given, both, query="?guess=none"), given)


def test_wrong_requests_are_refused(work, objects):
    with Service(work, {"text": {"max_body": 1000}}) as s:
        for query, body, headers, status in (("?guess=all", b"x", {}, 400), ("?format=elf", b"x", {}, 400), ("?timeout=x", b"x", {}, 400), ("", b"x" * 1001, {}, 413)):
            equal(s.request("POST", "/symbolicate-text" + query, body, {"Content-Type": "text/plain", **headers})[0], status, query)
        for parts, status in ([("modules", "[]")], 400), ([("text", "x"), ("modules", "{}")], 400), ([("text", "x"), ("modules", "[]"), ("sources", "no")], 400):
            body, headers = multipart(parts)
            equal(s.request("POST", "/symbolicate-text", body, headers)[0], status, parts)
        equal(s.request("GET", "/symbolicate-text")[0], 405)


def test_invalid_parts_for_scripts_are_refused_in_the_media_type_of_the_client(work, objects):
    """Such a request fails before it waits for anything, so the job has ended when its answer is chosen."""
    stack = "Error: x\n    at f (http://x/a.js:1:2)\n"
    with Service(work, {"text": {"max_body": 1000}}) as s:
        for part, value in ("source", "[]"), ("modules", '[{"type": "sourcemap", "code_file": 5}]'):
            body, headers = multipart([("text", stack), (part, value)])
            status, told, data = s.request("POST", "/symbolicate-text", body, headers)
            equal(status, 400, data)
            assert part in json.loads(data)["detail"], data
            status, told, data = s.request("POST", "/symbolicate-text", body, {**headers, "Accept": "application/json"})
            equal((status, json.loads(data)["status"]), (200, "failed"), data)
            assert part in json.loads(data)["message"], data
