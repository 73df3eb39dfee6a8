"""Stacks of programs that crashed, on each processor: functions and lines are those that the programs noted themselves."""
import json, os, subprocess

import dumps
from harness import Service, Upstream, equal, from_npm, npm_path
from test_crash_files import form, send, served

FUNCTIONS = r"""
static volatile int zero, sink;
static __attribute__((noinline)) int fall(int *where)
{
    CALL(), *where = 7;
    return sink++;
}
static inline __attribute__((always_inline)) int inlined(int *where)
{
    sink--;
    CALL(), sink += fall(where);
    return 2;
}
__attribute__((noinline)) int by_pointer(int depth)
{
    int room[50];
    room[depth] = depth;
    int result;
    if (depth)
        CALL(), result = by_pointer(depth - 1);
    else
        CALL(), result = inlined((int *)0x45);
    return result + room[depth];
}
__attribute__((noinline)) int by_trap(int depth)
{
    if (depth)
        return CALL(), by_trap(depth - 1) + sink;
    CALL(), __builtin_trap();
}
static int compare(const void *a, const void *b)
{
    CALL(), abort();
}
__attribute__((noinline)) int by_abort(int depth)
{
    int numbers[] = {3, 2, depth};
    CALL(), qsort(numbers, 3, sizeof *numbers, compare);
    return numbers[0] + sink;
}
__attribute__((noinline)) int with_room(int size)
{
    volatile char room[size];
    room[0] = 1;
    CALL(), sink += by_pointer(1);
    return room[0];
}
int main(int argc, char **argv)
{
    int result = 0;
    switch (*argv[1]) {
    case 'p':
        CALL(), result = by_pointer(3);
        break;
    case 't':
        CALL(), result = by_trap(3);
        break;
    case 'a':
        CALL(), result = by_abort(3);
        break;
    case 'r':
        CALL(), result = with_room(argc * 1000);
        break;
    }
    return result + sink;
}
"""
CRASH = dumps.HANDLER + FUNCTIONS
CRASHES = {"pointer": "SIGSEGV", "trap": "SIG", "abort": "SIGABRT", "room": "SIGSEGV"}
OPTIMISED = ("-O2", "-fno-ipa-icf", "-fno-ipa-cp", "-fno-ipa-sra", "-fno-inline-small-functions", "-fno-optimize-strlen")


def compiled(work, machine, flags):
    with open(os.path.join(work, "crash.c"), "w") as f:
        f.write(CRASH)
    program = os.path.join(work, "crash")
    subprocess.run([*machine.compiler, "-g", "-w", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1", *flags, "-o", program, "crash.c"],
                   cwd=work, check=True)
    return program


def expect_calls(frames, program, calls, about, trust="cfi"):
    """The frames of the program are its calls, and callers were found by its tables, or as `trust` has it."""
    about = f"{about}: {json.dumps(frames, indent=1)}"
    ours = [f for f in frames if f.get("package", "").endswith(program)][:len(calls)]
    equal([(f.get("function"), f.get("lineno")) for f in ours], calls, about)
    innermost = [f for f in ours if f["instruction_addr"] == ours[0]["instruction_addr"]] if ours[0] is frames[0] else []
    equal({f["trust"] for f in ours[len(innermost):]}, {trust}, about)


def check_processor(work, name, *flags, kinds=CRASHES, reasons=CRASHES, change=None, settings=None, trust="cfi"):
    """Every frame of the program equals what it noted; `change` is done to the program's file before it is served."""
    machine = dumps.MACHINES[name]
    program = compiled(work, machine, flags)
    with Upstream({}) as up, Service(work, settings) as s:
        sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}]
        crashes = {kind: dumps.Crash(program, work, kind, machine=machine) for kind in kinds}
        if change:
            change(program)
        for kind, crash in crashes.items():
            up.routes.update(served(crash.modules))
            status, answer = send(s, "/minidump", form(upload_file_minidump=crash.dump(), sources=sources))
            equal(status, 200, answer)
            assert answer["crash_reason"].startswith(reasons[kind]), answer["crash_reason"]
            equal(answer["system_info"]["cpu_arch"], name.split()[0])
            expect_calls(answer["stacktraces"][0]["frames"], program, crash.calls, f"{name} {kind} {flags}", trust)


def test_x86_64_crashes_are_unwound(work, objects):
    check_processor(work, "x86_64", "-O1", "-fomit-frame-pointer")
    check_processor(work, "x86_64", *OPTIMISED)


def test_x86_crashes_are_unwound(work, objects):
    check_processor(work, "x86", "-O1", "-fomit-frame-pointer")
    check_processor(work, "x86", *OPTIMISED)


OF_ITS_OWN = ("pointer", "trap", "room")  # the C library of arm has no unwind tables for abort()


def test_arm_crashes_are_unwound(work, objects):
    for state in ("-mthumb", "-marm"):
        check_processor(work, "arm", state, "-O1", kinds=OF_ITS_OWN)
        check_processor(work, "arm", state, *OPTIMISED, kinds=OF_ITS_OWN)


def test_arm_crashes_are_unwound_with_exception_tables(work, objects):
    """They say how it is at calls: of a trap in a function that has not saved anything yet they do not know."""
    def without_frames(program):
        subprocess.run(["arm-linux-gnueabihf-objcopy", "--remove-section", ".debug_frame", program], check=True)

    for state in ("-mthumb", "-marm"):
        check_processor(work, "arm", state, "-O1", "-funwind-tables", kinds=("pointer", "room"), change=without_frames)


def test_arm64_crashes_are_unwound(work, objects):
    check_processor(work, "arm64", "-O1", "-fomit-frame-pointer")
    check_processor(work, "arm64", *OPTIMISED)
    check_processor(work, "arm64", "-O1", "-mbranch-protection=standard")


# ---- side by side with Breakpad ----

def symbols_of(paths, work):
    """Breakpad's text of the modules, in a directory as its tools want it, and as routes of a server."""
    tool = npm_path(work, "minidump@0.26.0", "minidump/bin/linux-x64/dump_syms")
    root, routes = os.path.join(work, "symbols"), {}
    for path in paths:
        text = subprocess.run([tool, path], capture_output=True, check=True).stdout
        _, _, _, id, name = text.split(b"\n")[0].decode().split(" ")
        place = f"{name}/{id}/{name}.sym"
        os.makedirs(os.path.join(root, name, id), exist_ok=True)
        with open(os.path.join(root, place), "wb") as f:
            f.write(text)
        routes["/" + place] = text
    return root, routes


def stackwalk(dump, root, work):
    """(module, function, line) of each frame of the first thread."""
    path = os.path.join(work, "peer.dmp")
    with open(path, "wb") as f:
        f.write(dump)
    tool = npm_path(work, "minidump@0.26.0", "minidump/bin/linux-x64/minidump_stackwalk")
    rows = subprocess.run([tool, "-m", path, root], capture_output=True, text=True, check=True).stdout.split("\n\n", 1)[1].splitlines()
    frames = [row.split("|") for row in rows if row.startswith("0|")]
    return [(module, function, int(line or 0)) for _, _, module, function, _, line, _ in frames]


@from_npm
def test_stacks_equal_those_of_breakpad_up_to_scanned_frames(work, objects):
    """With the same symbols, up to the first frame that was found by scanning."""
    for name in ("x86_64", "x86", "arm", "arm64"):
        machine = dumps.MACHINES[name]
        program = compiled(work, machine, (*OPTIMISED, "-gdwarf-4"))
        crashes = {kind: dumps.Crash(program, work, kind, machine=machine) for kind in CRASHES}
        root, routes = symbols_of([path for path in crashes["pointer"].modules if "/ld-" not in path], work)
        with Upstream(routes) as up, Service(work) as s:
            sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "native"}}]
            compared = 0
            for kind, crash in crashes.items():
                _, answer = send(s, "/minidump", form(upload_file_minidump=crash.dump(), sources=sources))
                frames = answer["stacktraces"][0]["frames"]
                ours = [(os.path.basename(f.get("package", "")), f.get("function", ""), f.get("lineno", 0)) for f in frames]
                same = next((i for i, f in enumerate(frames) if f["trust"] == "scan"), len(frames))
                equal(ours[:same], stackwalk(crash.dump(), root, work)[:same], f"{name} {kind}")
                compared += same
            assert compared > 12, f"{name}: only {compared} frames are alike"
