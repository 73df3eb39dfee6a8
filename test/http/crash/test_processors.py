"""Stacks of programs that crashed, on each processor: functions and lines are those that the programs noted themselves."""
import json, os, subprocess

import dumps
from harness import Service, Upstream, equal
from test_crash_files import form, send, served

CRASH = dumps.HANDLER + r"""
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
CRASHES = {"pointer": "SIGSEGV", "trap": "SIG", "abort": "SIGABRT", "room": "SIGSEGV"}
OPTIMISED = ("-O2", "-fno-ipa-icf", "-fno-ipa-cp", "-fno-ipa-sra", "-fno-inline-small-functions", "-fno-optimize-strlen")


def compiled(work, machine, flags):
    with open(os.path.join(work, "crash.c"), "w") as f:
        f.write(CRASH)
    program = os.path.join(work, "crash")
    subprocess.run([*machine.compiler, "-g", "-w", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1", *flags, "-o", program, "crash.c"],
                   cwd=work, check=True)
    return program


def check_processor(work, name, *flags, kinds=CRASHES, change=None):
    """Every frame of the program equals what it noted; `change` is done to the program's file before it is served."""
    machine = dumps.MACHINES[name]
    program = compiled(work, machine, flags)
    with Upstream({}) as up, Service(work) as s:
        sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}]
        crashes = {kind: dumps.Crash(program, work, kind, machine=machine) for kind in kinds}
        if change:
            change(program)
        for kind, crash in crashes.items():
            up.routes.update(served(crash.modules))
            status, answer = send(s, "/minidump", form(upload_file_minidump=crash.dump(), sources=sources))
            equal(status, 200, answer)
            assert answer["crash_reason"].startswith(CRASHES[kind]), answer["crash_reason"]
            equal(answer["system_info"]["cpu_arch"], name)
            frames = answer["stacktraces"][0]["frames"]
            about = f"{name} {kind} {flags}: {json.dumps(frames, indent=1)}"
            ours = [f for f in frames if f.get("package") == program][:len(crash.calls)]
            equal([(f.get("function"), f.get("lineno")) for f in ours], crash.calls, about)
            innermost = [f for f in ours if f["instruction_addr"] == ours[0]["instruction_addr"]] if ours[0] is frames[0] else []
            equal({f["trust"] for f in ours[len(innermost):]}, {"cfi"}, about)


def test_x86_64(work, objects):
    check_processor(work, "x86_64", "-O1", "-fomit-frame-pointer")
    check_processor(work, "x86_64", *OPTIMISED)


def test_x86(work, objects):
    check_processor(work, "x86", "-O1", "-fomit-frame-pointer")
    check_processor(work, "x86", *OPTIMISED)


OF_ITS_OWN = ("pointer", "trap", "room")  # the C library of arm has no unwind tables for abort()


def test_arm(work, objects):
    for state in ("-mthumb", "-marm"):
        check_processor(work, "arm", state, "-O1", kinds=OF_ITS_OWN)
        check_processor(work, "arm", state, *OPTIMISED, kinds=OF_ITS_OWN)


def test_arm_by_its_exception_tables(work, objects):
    """They say how it is at calls: of a trap in a function that has not saved anything yet they do not know."""
    def without_frames(program):
        subprocess.run(["arm-linux-gnueabihf-objcopy", "--remove-section", ".debug_frame", program], check=True)

    for state in ("-mthumb", "-marm"):
        check_processor(work, "arm", state, "-O1", "-funwind-tables", kinds=("pointer", "room"), change=without_frames)


def test_arm64(work, objects):
    check_processor(work, "arm64", "-O1", "-fomit-frame-pointer")
    check_processor(work, "arm64", *OPTIMISED)
    check_processor(work, "arm64", "-O1", "-mbranch-protection=standard")
