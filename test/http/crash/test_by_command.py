"""`symloom symbolicate --server`: the command sends its input to a running service, and tells what that answers."""
import json, os, subprocess

import harness
from harness import Service, Upstream, equal, frames, http_source
from test_crash_files import SAMPLES, form, send, small_dump
from test_examples import REPORT


def run(work, service, *args, input=None, status=0):
    done = subprocess.run([harness.SYMLOOM, "symbolicate", "-s", f"http://127.0.0.1:{service.port}/", *args], input=input, capture_output=True,
                          timeout=harness.DEADLINE, env={**os.environ, "HOME": work, "XDG_CACHE_HOME": work, "SYMLOOM_CONFIG": ""})
    equal(done.returncode, status, done.stderr)
    return done.stdout.decode() if not status else done.stderr.decode()


def without_status(answer):
    equal(answer.pop("status"), "completed")
    return answer


def test_command_server_option_gives_the_answers_of_the_service(work, objects):
    dump = small_dump()
    native = {"modules": [], "stacktraces": [{"frames": [{"instruction_addr": "0x1000"}]}]}
    with Service(work) as s:
        for part, path, data in (("upload_file_minidump", "/minidump", dump), ("apple_crash_report", "/applecrashreport", REPORT.encode())):
            _, answer = send(s, path, form(**{part: data}, options={"dif_candidates": True, "apply_source_context": True}))
            equal(json.loads(run(work, s, "-d", "-", input=data)), without_status(answer))
        _, answer = send(s, "/applecrashreport", form(apple_crash_report=SAMPLES.encode(), options={"apply_source_context": True}))
        equal(json.loads(run(work, s, "-f", "json", "-", input=SAMPLES.encode())), without_status(answer))
        equal(run(work, s, "-", input=SAMPLES.encode()), SAMPLES)  # written back: no name was found
        assert run(work, s, "-f", "full", "-", input=dump).startswith("System:  "), "a text of the answer"
        _, answer = send(s, "/symbolicate", json.dumps(native), {"Content-Type": "application/json"})
        equal(json.loads(run(work, s, "--scope", "a b&c", "-", input=json.dumps(native).encode())), without_status(answer))
        local = subprocess.run([harness.SYMLOOM, "symbolicate", "--type", "minidump", "-"], input=b"junk", capture_output=True)
        equal(run(work, s, "--type", "minidump", "-", input=b"junk", status=3), local.stderr.decode())
        bad = run(work, s, "-", input=b'{"stacktraces":[{"frames":[{}]}]}', status=1)
        assert "the service responded with 422: " in bad, bad
        for wrong in (("-f", "machine"), ("--symbols", work)):
            run(work, s, *wrong, "-", input=dump, status=2)
    run(work, s, "-", input=dump, status=1)


def profile(objects, address):
    """Of one sample, which the Firefox Profiler knows no name for."""
    library = {"arch": "x86_64", "name": "shapes", "path": "/app/shapes", "debugName": "shapes", "debugPath": "/app/shapes",
               "breakpadId": objects.debug_id.replace("-", "").upper() + "0", "codeId": objects.build_id}
    tables = {
        "stackTable": {"frame": [0], "prefix": [None], "category": [0], "subcategory": [0]},
        "frameTable": {"address": [address], "inlineDepth": [0], "category": [0], "subcategory": [0], "func": [0], "nativeSymbol": [None],
                       "innerWindowID": [0], "line": [None], "column": [None]},
        "funcTable": {"isJS": [False], "relevantForJS": [False], "name": [0], "resource": [0], "fileName": [None], "lineNumber": [None],
                      "columnNumber": [None]},
        "resourceTable": {"lib": [0], "name": [1], "host": [None], "type": [1]},
        "samples": {"stack": [0], "time": [1], "weight": None},
    }
    thread = {"name": "main", "tid": 1, "pid": "1", "stringArray": ["0x1000", "shapes"], "markers": {"data": [], "name": [], "length": 0},
              "nativeSymbols": {"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0},
              **{name: {**table, "length": 1} for name, table in tables.items()}}
    return {"meta": {"version": 24, "preprocessedProfileVersion": 48, "symbolicated": False}, "libs": [library], "threads": [thread]}


def test_command_uses_the_sources_of_the_service(work, objects):
    """Also for requests that the command makes itself: of events, addresses and profiles."""
    at, module, program = objects.address("plain"), objects.module(), os.path.join(work, "shapes")
    with open(program, "wb") as f:
        f.write(objects.full)
    event = {"platform": "native", "debug_meta": {"images": [module]},
             "exception": {"values": [{"type": "x", "stacktrace": {"frames": [{"instruction_addr": hex(0x10000000 + at)}]}}]}}
    with Upstream(objects.layout()) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        for arguments, data in ((["-"], json.dumps(event).encode()), ([f"--module={program}@10000000", hex(0x10000000 + at)], None),
                                ([f"--module={program}@0", hex(at)], None)):
            answer = json.loads(run(work, s, "-f", "json", *arguments, input=data))
            equal([f.get("symbol") for f in frames(answer)], ["plain"], arguments)
        done = json.loads(run(work, s, "-", input=json.dumps(profile(objects, at)).encode()))
        assert "plain" in done["threads"][0]["stringArray"], done["threads"][0]["stringArray"]
