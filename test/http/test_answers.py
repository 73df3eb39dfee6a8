"""Answers of a bounded length (max_response_bytes): short requests whose texts occur in many frames, for every family that writes
frames. What is left out is said."""
import json

import artifacts as js
import test_jvm as jvm
from harness import Service, Upstream, equal
from hostile import PDB, SYMBOLS, native, symbols

LIMIT = 1 << 20
SLACK = 200_000  # of the last frame, and what stands behind the frames


def check(s, path, body, count, kept, headers=None):
    """`kept`: the frames of the answer."""
    status, _, data = s.request("POST", path, body if isinstance(body, (bytes, str)) else json.dumps(body),
                                {"Content-Type": "application/json", **(headers or {})})
    equal(status, 200, data[:300])
    equal(len(data) <= LIMIT + SLACK, True, len(data))
    answer = json.loads(data)
    frames = kept(answer)
    equal((0 < len(frames) < count, answer["omitted_frames"] > 0), (True, True), (len(frames), answer.get("omitted_frames")))
    return frames


def first(answer):
    return answer["stacktraces"][0]["frames"]


def test_long_module_names_respect_max_response_bytes(work, objects):
    module = {"type": "elf", "debug_id": PDB[:-2], "code_file": "/" + "x" * 9000, "image_addr": "0x1000", "image_size": 1 << 20}
    body = {"modules": [module], "stacktraces": [{"frames": [{"instruction_addr": "0x2000"}] * 4000}], "sources": []}
    with Service(work, {"max_response_bytes": "1MB"}) as s:
        equal(check(s, "/symbolicate", body, 4000, first)[0]["package"], module["code_file"])
        many = {**body, "modules": [{**module, "image_addr": hex(0x1000000 * (i + 1))} for i in range(300)], "stacktraces": []}
        answer = s.request("POST", "/symbolicate", json.dumps(many), {"Content-Type": "application/json"})[2]
        equal(len(answer) <= LIMIT + SLACK, True, len(answer))
        few = s.symbolicate({**body, "stacktraces": [{"frames": [{"instruction_addr": "0x2000"}] * 40}]})
        equal((len(first(few)), "omitted_frames" in few), (40, False))


def test_inlined_calls_respect_max_response_bytes(work, objects):
    """Many frames of many calls each, whose names are long."""
    for depth, name in ((100, "f"), (100, "f" * 900), (20, "f" * 60000)):
        with Upstream({SYMBOLS: symbols(depth, name)}) as up, Service(work, {"max_response_bytes": "1MB"}) as s:
            frames = check(s, "/symbolicate", native(up.url, 4000), 4000 * depth, first)
            equal([f["function"] for f in frames[:2]], [f"{name}{depth - 1}", f"{name}{depth - 2}"])
            equal(frames[0]["lineno"], 1)


def test_mozilla_answers_respect_max_response_bytes(work, objects):
    stack = {"memoryMap": [["crash.pdb", PDB.replace("-", "").upper()]], "stacks": [[[0, 24]] * 3000]}
    with Upstream({SYMBOLS: symbols(3, "f" * 5000).replace(b"main", b"m" * 5000)}) as up:
        with Service(work, {"max_response_bytes": "1MB", "mozilla": {"sources": [up.url]}}) as s:
            frames = check(s, "/symbolicate/v5", {"jobs": [stack]}, 3000, lambda a: a["results"][0]["stacks"][0])
            equal(frames[0]["function"], "m" * 5000)
            check(s, "/symbolicate/v4", {**stack, "version": 4}, 3000, lambda a: a["symbolicatedStacks"][0])


def test_jvm_answers_respect_max_response_bytes(work, objects):
    mapping = f"a.{'b' * 5000} -> a.b:\n    1:1:void m():1:1 -> c\n"
    with Upstream({jvm.places(jvm.ID, "proguard"): mapping.encode()}) as up, Service(work, {"max_response_bytes": "1MB"}) as s:
        body = jvm.asked(up, stacktraces=[{"frames": [jvm.frame("c", 1, i) for i in range(3000)]}])
        equal(check(s, "/symbolicate-jvm", body, 3000, first)[0]["module"], f"a.{'b' * 5000}")


def test_script_answers_respect_max_response_bytes(work, objects):
    """Names of sources, and lines of them, in the frames as they came and as they are."""
    source = "s" * 5000 + ".js"
    source_map = js.source_map(sources=[source], sourcesContent=[("x" * 100 + "\n") * 20], mappings="AAAA")
    told = [js.told(1, "~/app.js"), js.told(2, "~/app.js.map")]
    files = {"/app.js": "f();\n//# sourceMappingURL=app.js.map\n", "/app.js.map": source_map}
    with js.Sentry(told, files) as up, Service(work, {"max_response_bytes": "1MB"}) as s:
        body = js.asked(up, [js.frame("http://example.com/app.js", 1, 1) for _ in range(3000)])
        frames = check(s, "/symbolicate-js", body, 3000, first)
        equal(any(f["abs_path"] == f"http://example.com/{source}" for f in frames), True)
