"""`extract_variables`: frames with the variables of their functions, and symcaches that have them apart from those that do not."""
import glob, json, os, subprocess

import dumps
import harness
from harness import Service, Upstream, equal, frames, http_source, request
from test_crash_files import anywhere, form, send

BASE = 0x10000000
SOURCE = """struct point { int x, y; };
volatile int sink;
static inline __attribute__((always_inline)) int scale(const struct point *p, int by) { sink = by; return p->x * by; }
__attribute__((noinline)) int area(const struct point *p, const char *name)
{
    char label[8];
    label[0] = name[0];
    { int name = scale(p, 3); sink = name + label[0]; }
    return sink;
}
int main(int argc, char **argv) { struct point p = {argc, 2}; return area(&p, argv[0]); }
"""
AREA = {"label": "char[8]", "name": "int", "p": "const point*"}  # the inner name is the last
SCALE = {"by": "int", "p": "const point*"}


class Program:
    def __init__(self, work):
        with open(os.path.join(work, "v.c"), "w") as f:
            f.write(SOURCE)
        subprocess.run(["gcc", "-g", "-O0", "-no-pie", "-Wl,--build-id=0x" + "5a" * 20, "-o", "v", "v.c"], cwd=work, check=True)
        with open(os.path.join(work, "v"), "rb") as f:
            self.file = f.read()
        table = subprocess.run(["nm", "v"], cwd=work, check=True, capture_output=True, text=True).stdout
        self.area = int(next(line for line in table.splitlines() if line.endswith(" area")).split()[0], 16) - 0x400000
        lines = subprocess.run(["objdump", "-d", "-l", "v"], cwd=work, check=True, capture_output=True, text=True).stdout
        body = lines[lines.index("<area>:"):]
        inlined = body[body.index("v.c:3\n"):].splitlines()[1]
        self.scale = int(inlined.split(":")[0], 16) - 0x400000
        self.id = "5a" * 20
        self.debug_id = "5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a"
        self.path = os.path.join(work, "v")

    def routes(self):
        return {f"/{self.id}/debuginfo": self.file, f"/{self.id[:32]}/debuginfo": self.file}

    def request(self, up, **options):
        module = {"type": "elf", "code_id": self.id, "debug_id": self.debug_id, "image_addr": hex(BASE), "image_size": 0x10000}
        return request(module, [self.scale], sources=[http_source(up.url)], options=options)


def variables(found):
    return [(f.get("function"), f.get("vars")) for f in found]


def test_frames_show_variables_when_asked(work, objects):
    program = Program(work)
    with Upstream(program.routes()) as up, Service(work) as s:
        plain = s.symbolicate(program.request(up))
        equal(variables(frames(plain)), [("scale", None), ("area", None)])
        asked = s.symbolicate(program.request(up, extract_variables=True))
        equal(variables(frames(asked)), [("scale", SCALE), ("area", AREA)])
        members = list(frames(asked)[0])
        assert members.index("abs_path") < members.index("vars") == len(members) - 1, members
        for frame in frames(asked):
            del frame["vars"]
        equal(asked, plain, "nothing else changes")
        for options in ({}, {"extract_variables": False}, {"extract_variables": None}):
            equal(s.symbolicate(program.request(up, **options)), plain)
        equal(s.request("POST", "/symbolicate", json.dumps(program.request(up, extract_variables=1)),
                        {"Content-Type": "application/json"})[0], 422)


def keys(s):
    found = []
    for path in glob.glob(os.path.join(s.cache, "symcaches", "**"), recursive=True):
        if os.path.isfile(path):
            with open(path, "rb") as f:
                found.append((path, f.read()))
    return found


def test_symcaches_with_variables_are_separate_cache_entries(work, objects):
    """Whoever asks first does not decide for the others."""
    program = Program(work)
    for first in (True, False):
        with Upstream(program.routes()) as up, Service(work) as s:
            for option in (first, not first, first, not first):
                answer = s.symbolicate(program.request(up, extract_variables=option))
                equal(variables(frames(answer)), [("scale", SCALE), ("area", AREA)] if option else [("scale", None), ("area", None)])
            equal(len([path for path, data in keys(s) if data.startswith(b"SLSC")]), 2)


def test_crash_files_show_variables(work, objects):
    program = Program(work)
    dump = dumps.Dump(text="Linux 5.0", version=(5, 0, 0))
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x400000 + program.scale}, 0x7000, bytes(64)))
    dump.modules.append((0x400000, 0x10000, "/usr/bin/v", dumps.elf(program.id), 0))
    dump = dump.done()
    report = f"""Incident Identifier: 5C32DF84-31A0-43E7-87D0-239F7F594940
Code Type:       X86-64 (Native)
Date/Time:       2019-01-09 17:42:22 +0000
OS Version:      Mac OS X 10.14.0 (18A391)
Report Version:  104
Exception Type:  SIGSEGV
Crashed Thread:  0

Thread 0 Crashed:
0   v  {BASE + program.scale:#018x} {BASE:#x} + {program.scale}

Binary Images:
       {BASE:#x} - {BASE + 0xffff:#x} v x86_64 (1 - 1) <{program.id[:32]}> /usr/bin/v
"""
    with Upstream({**program.routes(), "/stored": dump}) as up, Service(work) as s:
        for path, part, data in (("/minidump", "upload_file_minidump", dump), ("/applecrashreport", "apple_crash_report", report.encode())):
            for option in (False, True):
                _, answer = send(s, path, form(**{part: data}, sources=[http_source(up.url)], options={"extract_variables": option}))
                equal(variables(frames(answer))[:2], [("scale", SCALE), ("area", AREA)] if option else [("scale", None), ("area", None)], answer)
        _, answer = anywhere(s, {"sources": [http_source(up.url)], "options": {"extract_variables": True},
                                 "symbolicate": {"type": "minidump", "storage_url": up.url + "stored"}})
        equal(variables(frames(answer))[:2], [("scale", SCALE), ("area", AREA)])


def test_command_option_extracts_variables(work, objects):
    """`symloom symbolicate --extract-variables`, by itself and of a service."""
    program = Program(work)
    env = {**os.environ, "HOME": work, "XDG_CACHE_HOME": work, "SYMLOOM_CONFIG": ""}

    def run(*args, input):
        done = subprocess.run([harness.SYMLOOM, "symbolicate", *args, "-"], input=input, capture_output=True, env=env,
                              timeout=harness.DEADLINE)
        equal(done.returncode, 0, done.stderr)
        return variables(frames(json.loads(done.stdout)))[:2]

    with Upstream(program.routes()) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        body = program.request(up)
        del body["sources"]
        event = {"platform": "native", "debug_meta": {"images": body["modules"]},
                 "exception": {"values": [{"stacktrace": body["stacktraces"][0]}]}}
        dump = dumps.Dump(text="Linux 5.0", version=(5, 0, 0))
        dump.threads.append((7, {"rsp": 0x7000, "rip": 0x400000 + program.scale}, 0x7000, bytes(64)))
        dump.modules.append((0x400000, 0x10000, "/usr/bin/v", dumps.elf(program.id), 0))
        without = {k: v for k, v in body.items() if k != "options"}
        inputs = [json.dumps(body), json.dumps(without), json.dumps({**body, "options": {"extract_variables": False, "dif_candidates": False}}),
                  dump.done().decode("latin-1")]
        server, local = ("-s", f"http://127.0.0.1:{s.port}"), ("--symbols", program.path)
        for where, input in [(w, i) for i in inputs for w in (server, local)] + [(local, json.dumps(event))]:
            input = input.encode("latin-1")
            equal(run(*where, input=input), [("scale", None), ("area", None)])
            equal(run(*where, "--extract-variables", input=input), [("scale", SCALE), ("area", AREA)], where)
