"""The debuggers and symbolizers that people use, with a stripped program and nothing but the address of the service."""
import os, re, subprocess, tempfile

from harness import Service, equal
from split_program import Client, Program, TEXT, directory

LLVM = "19"


def served(program, work):
    """A service with the program's files; its text is served from where it was compiled, and the program is moved to a place of its own."""
    place = os.path.realpath(tempfile.mkdtemp(dir=work))
    os.rename(os.path.join(program.dir, program.name), os.path.join(place, program.name))
    service = Service(work, {"sources": [directory(work, program)], "debuginfod": {"source_roots": [program.dir], "hold": "1s"}})
    return service, place


def run(command, place, client, **keys):
    """What the command prints, without input and with an empty home."""
    environment = {**client.environment, "HOME": place, "DEBUGINFOD_PROGRESS": "", "TERM": "dumb"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **keys).stdout


class Hidden:
    """The text is at its path only for the service, which has read it before."""

    def __init__(self, program, service):
        self.program = program
        equal(service.request("GET", program.path("source") + program.source)[2], TEXT.encode())

    def __enter__(self):
        os.rename(self.program.source, self.program.source + ".away")

    def __exit__(self, *_):
        os.rename(self.program.source + ".away", self.program.source)


def test_debuginfod_find_gets_every_kind(work, objects):
    t = Program(work)
    service, _ = served(t, work)
    with service as s:
        client = Client(work, s)
        text = subprocess.run(["objcopy", "--dump-section", f".text={t.dir}/text", t.dir + "/symbols", "/dev/null"], check=True) and t.read("text")
        for words, data in ((("debuginfo", t.id), t.debug), (("executable", t.id), t.stripped), (("source", t.id, t.source), TEXT.encode()), (("section", t.id, ".text"), text)):
            equal(client.find(*words) == data, True, (words, client.error))
        equal(client.find("debuginfo", "00112233"), None)
        equal(client.find("section", t.id, ".nosuch"), None)


def test_gdb_names_the_frames_of_a_core(work, objects):
    t = Program(work)
    service, place = served(t, work)
    with service as s, Hidden(t, s):
        gdb = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled on"]
        without = run(["gdb", "-nx", "-batch", "-ex", "run", "-ex", "generate-core-file core", "./t"], place, Client(work))
        assert os.path.exists(os.path.join(place, "core")), without
        equal("inner" in run(["gdb", "-nx", "-batch", "-ex", "bt", "t", "core"], place, Client(work)), False)
        shown = run([*gdb, "-ex", "bt", "-ex", "list middle", "t", "core"], place, Client(work, s))
        for line in (r"#0 .*inner \(p=.*\) at .*t\.c:2", r"#1 .*middle \(p=.*\) at .*t\.c:3", r"#2 .*main \(argc=.*\) at .*t\.c:4"):
            assert re.search(line, shown), shown
        assert "int middle(int *p) { return inner(p) + 2; }" in shown, shown


def test_lldb_shows_the_source_at_a_breakpoint(work, objects):
    t = Program(work)
    service, place = served(t, work)
    with service as s, Hidden(t, s):
        commands = ["settings set target.disable-aslr false", "target create t", "b middle", "run", "bt", "kill"]
        shown = run([f"lldb-{LLVM}", "--no-lldbinit", "--batch", *(word for c in commands for word in ("-o", c))], place, Client(work, s))
        assert re.search(r"frame #0: .*middle\(p=.*\) at t\.c:3", shown) and re.search(r"frame #1: .*main\(argc=.*\) at t\.c:4", shown), shown


def test_llvm_symbolizer_and_its_client_ask_the_service(work, objects):
    t = Program(work)
    service, place = served(t, work)
    with service as s:
        client = Client(work, s)
        address = next(line.split()[0] for line in subprocess.run(["nm", t.dir + "/full"], capture_output=True, text=True).stdout.splitlines() if line.endswith(" middle"))
        shown = run([f"llvm-symbolizer-{LLVM}", "--debuginfod", "-e", "t", "0x" + address], place, client)
        equal(shown.splitlines()[0], "middle", shown)
        assert "t.c:3" in shown, shown
        find = f"llvm-debuginfod-find-{LLVM}"
        for words, data in ((["--debuginfo", t.id], t.debug), (["--executable", t.id], t.stripped), (["--source=" + t.source, t.id], TEXT.encode())):
            with open(run([find, *words], place, client).strip(), "rb") as f:
                equal(f.read() == data, True, words)


def test_elfutils_tools_name_the_frames_of_a_core(work, objects):
    """Through libdwfl, which loads the client library."""
    t = Program(work)
    service, place = served(t, work)
    with service as s:
        run(["gdb", "-nx", "-batch", "-ex", "run", "-ex", "generate-core-file core", "./t"], place, Client(work))
        shown = run(["eu-stack", "--core", "core", "-e", "t", "-s"], place, Client(work, s))
        for name, line in (("inner", 2), ("middle", 3), ("main", 4)):
            assert re.search(rf"\b{name}\b.*\n.*t\.c:{line}", shown), shown
