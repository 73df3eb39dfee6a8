"""`symloom symbolicate --server`: the command sends its input to a running service, and tells what that answers."""
import json, os, subprocess

import harness
from harness import Service, equal
from test_crash_files import form, send, small_dump
from test_examples import REPORT


def run(work, service, *args, input=None, status=0):
    done = subprocess.run([harness.SYMLOOM, "symbolicate", "-s", f"http://127.0.0.1:{service.port}/", *args], input=input, capture_output=True,
                          timeout=harness.DEADLINE, env={**os.environ, "HOME": work, "XDG_CACHE_HOME": work, "SYMLOOM_CONFIG": ""})
    equal(done.returncode, status, done.stderr)
    return done.stdout.decode() if not status else done.stderr.decode()


def without_status(answer):
    equal(answer.pop("status"), "completed")
    return answer


def test_a_service_answers_the_command(work, objects):
    dump = small_dump()
    native = {"modules": [], "stacktraces": [{"frames": [{"instruction_addr": "0x1000"}]}]}
    with Service(work) as s:
        for part, path, data in (("upload_file_minidump", "/minidump", dump), ("apple_crash_report", "/applecrashreport", REPORT.encode())):
            _, answer = send(s, path, form(**{part: data}, options={"dif_candidates": True, "apply_source_context": True}))
            equal(json.loads(run(work, s, "-d", "-", input=data)), without_status(answer))
        assert run(work, s, "-f", "full", "-", input=dump).startswith("System:  "), "a text of the answer"
        _, answer = send(s, "/symbolicate", json.dumps(native), {"Content-Type": "application/json"})
        equal(json.loads(run(work, s, "--scope", "a b&c", "-", input=json.dumps(native).encode())), without_status(answer))
        local = subprocess.run([harness.SYMLOOM, "symbolicate", "--type", "minidump", "-"], input=b"junk", capture_output=True)
        equal(run(work, s, "--type", "minidump", "-", input=b"junk", status=3), local.stderr.decode())
        bad = run(work, s, "-", input=b'{"stacktraces":[{"frames":[{}]}]}', status=1)
        assert "the service answers 422: " in bad, bad
        for wrong in (("-f", "machine"), ("--symbols", work)):
            run(work, s, *wrong, "-", input=dump, status=2)
    run(work, s, "-", input=dump, status=1)
