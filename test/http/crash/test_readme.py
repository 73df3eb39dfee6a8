"""What README promises to those who come from Sentry."""
import json, os, re

from harness import Service, equal
from test_crash_files import form, send, small_dump
from test_examples import REPORT

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../README.md")
JVM = {"platform": "java", "sources": [], "modules": [], "exceptions": [{"type": "b", "module": "a"}],
       "stacktraces": [{"frames": [{"module": "a.b", "function": "c", "lineno": 1, "index": 0}]}]}
JS = {"source": {"id": "none", "url": "http://127.0.0.1:1/", "token": ""}, "scraping": {"enabled": False},
      "stacktraces": [{"frames": [{"abs_path": "http://127.0.0.1:1/app.min.js", "lineno": 1, "colno": 39}]}]}
NATIVE = {"modules": [], "stacktraces": [{"frames": [{"instruction_addr": "0x1000"}]}]}


def posted(path, request):
    def ask(s):
        status, _, body = s.post(path, request)
        return status, json.loads(body) if status == 200 else body
    return ask


KINDS = {
    "Native": posted("/symbolicate", NATIVE),
    "JVM": posted("/symbolicate-jvm", JVM),
    "JavaScript events": posted("/symbolicate-js", JS),
    "minidumps": lambda s: send(s, "/minidump", form(upload_file_minidump=small_dump(), sources=[])),
    "Apple crash reports": lambda s: send(s, "/applecrashreport", form(apple_crash_report=REPORT.encode(), sources=[])),
}


def test_kinds_the_readme_promises_need_no_configuration(work, objects):
    """Each kind that the sentence names is answered, by a service that was told nothing of it; and it names all."""
    with open(README) as f:
        sentence = re.search(r"^(.+) need nothing but the address\.", " ".join(f.read().split("\n## Switch from Sentry's Symbolicator\n")[1].split()))
    kinds = re.split(", | and ", sentence[1])
    equal(sorted(kinds), sorted(KINDS))
    with Service(work) as s:
        for kind in kinds:
            status, answer = KINDS[kind](s)
            equal(status, 200, (kind, answer))
            equal((answer["status"], len(answer["stacktraces"]) > 0), ("completed", True), kind)
