"""`symloom symbolicate` of ELF core files: those of the kernel, of gdb and of qemu-user, whole, truncated, trimmed and packed."""
import json, os, re, shutil, subprocess
import cores, harness
from harness import contains, equal, ok, symloom

LOCAL = ["--offline", "--local-debug-info", "--no-source-context"]


def home(work):
    return {"HOME": work, "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": "", "SYMLOOM_CONFIG": "", "SYMLOOM_CACHE_DIR": "", "DEBUGINFOD_URLS": ""}


def symbolicated(work, *args):
    return json.loads(ok("symbolicate", "--json", *args, env=home(work), cwd=work))


def names(answer, thread=0):
    return [f.get("function") for f in answer["stacktraces"][thread]["frames"]]


def test_null_dereference_of_a_stripped_program(work, files):
    program = cores.build(work, cores.NULL, "t")
    os.makedirs(os.path.join(work, "symbols"))
    subprocess.run(["objcopy", "--only-keep-debug", program, "symbols/t.debug"], cwd=work, check=True)
    unstripped = shutil.copy(program, os.path.join(work, "t.full"))
    subprocess.run(["strip", program], check=True)
    core = cores.by_kernel(program, work)
    answer = symbolicated(work, core, "--symbols", os.path.join(work, "symbols"), *LOCAL)
    equal((answer["crashed"], answer["crash_reason"]), (True, "SIGSEGV / SEGV_MAPERR / 0x0"))
    equal(answer["system_info"], {"os_name": "Linux", "os_version": "", "os_build": "", "cpu_arch": "x86_64", "device_model": ""})
    frames = [(f.get("function"), f["trust"]) for f in answer["stacktraces"][0]["frames"][:4]]
    equal(frames, [("inner", "context"), ("middle", "context"), ("main", "cfi"), ("__libc_start_call_main", "cfi")])
    equal(names(answer)[:3], cores.of_gdb(core, unstripped))
    equal([f["lineno"] for f in answer["stacktraces"][0]["frames"][:3]], [3, 4, 5])
    thread = answer["stacktraces"][0]
    equal(thread["is_requesting"], True)
    equal((answer["process"]["name"], sorted(answer["process"])), ("t", ["name", "pid"]))
    equal(names(answer), cores.of_eu_stack(core, unstripped)[thread["thread_id"]])

    # the kernel left the code out of the core: it is read from the program, as gdb does
    symbols = ["--symbols", os.path.join(work, "symbols")]
    shown = ok("symbolicate", core, "-f", "full", *symbols, *LOCAL, env=home(work), cwd=work)
    contains(shown, f"\nCode:       {answer['details']['crash_analysis']['instruction']}\n", "\nAddress:    a null pointer + 0x0\n")
    shown = ok("symbolicate", core, "-f", "full", *symbols, "--offline", "--no-source-context", env=home(work), cwd=work)
    contains(shown, f"\nCode:       not in the core; name the file with --symbols: {program}, build id ")

    # without the option for files of this machine, it is named as the remedy
    os.makedirs(work + "/none")
    for more, begin in (([], "nowhere to search: pass"), (["--symbols", work + "/none", "-d"], f"searched {work}/none; run with")):
        done = symloom("symbolicate", core, "-f", "full", "--offline", *more, env=home(work), cwd=work)
        contains(done.err, f"; {begin} --local-debug-info to search the files of this machine that the core names")
    for more in (["--local-debug-info", "--symbols", work + "/none"], ["--local-debug-info", "-d"]):
        equal("pass --local-debug-info" in symloom("symbolicate", core, "-f", "full", "--offline", *more, env=home(work), cwd=work).err, False)
    by_gdb = subprocess.run(["gdb", "-batch", "-nx", "-ex", "x/i $pc", program, core], capture_output=True, text=True, timeout=60).stdout
    equal([re.search(rf"\t(mov|add|lea)\b.*\(%{base}\)", line) is not None for line in by_gdb.splitlines() if line.startswith("=> ")
           for base in re.findall(r"\[(\w+)", answer["details"]["crash_analysis"]["instruction"])], [True])


ALIASES = {"gsignal": "raise"}  # of symbols at one address each program takes another


def compare(work, core, program):
    """Every stack is that of eu-stack."""
    answer = symbolicated(work, core, *LOCAL)
    equal(len(answer["stacktraces"]), 8)
    found = {t["thread_id"]: [ALIASES.get(name, name) or "" for name in names(answer, i)] for i, t in enumerate(answer["stacktraces"])}
    equal(found, cores.of_eu_stack(core, program))
    return answer


def test_eight_threads_are_those_of_eu_stack(work, files):
    program = cores.build(work, cores.THREADS, "threads", "-pthread")
    core = cores.by_kernel(program, work)
    answer = compare(work, core, program)
    equal(answer["crash_reason"], "SIGABRT / SI_TKILL")

    # a smaller core, one from a pipe, and packed ones
    ok("symbolicate", "--trim", "trimmed", core, cwd=work, env=home(work))
    trimmed = os.path.join(work, "trimmed")
    equal(os.path.getsize(trimmed) < 1_000_000 < os.path.getsize(core), True)
    equal(symbolicated(work, trimmed, *LOCAL), answer)
    with open(core, "rb") as f:
        piped = subprocess.run([harness.SYMLOOM, "symbolicate", "--json", *LOCAL, "-"], stdin=f,
                               capture_output=True, cwd=work, env={**os.environ, **home(work)}, check=True)
    equal(json.loads(piped.stdout), answer)
    for command, suffix in ((["zstd", "-q", "-k"], ".zst"), (["xz", "-k", "-0"], ".xz"), (["gzip", "-k", "-1"], ".gz")):
        subprocess.run([*command, core], check=True)
        equal(symbolicated(work, core + suffix, *LOCAL), answer)


def test_core_of_gdb_is_that_of_eu_stack(work, files):
    program = cores.build(work, cores.THREADS, "threads", "-pthread")
    compare(work, cores.by_gdb(program, work), program)


def test_threads_of_a_32_bit_program_are_those_of_eu_stack(work, files):
    """They wait in the kernel's library, whose unwind tables are in the core only."""
    program = cores.build(work, cores.THREADS, "threads", "-pthread", "-m32")
    answer = compare(work, cores.by_kernel(program, work), program)
    equal({t["frames"][0]["function"] for t in answer["stacktraces"]}, {"__kernel_vsyscall"})


def test_truncated_core_gives_what_is_left(work, files):
    program = cores.build(work, cores.THREADS, "threads", "-pthread")
    core = cores.by_kernel(program, work)
    with open(core, "rb") as f:
        half = f.read(os.path.getsize(core) // 2)
    with open(os.path.join(work, "half"), "wb") as f:
        f.write(half)
    done = symloom("symbolicate", "--json", "half", *LOCAL, cwd=work, env=home(work))
    equal(done.status, 0, done.err)
    contains(done.err, "the core file is truncated", "bytes of memory are missing")
    answer = json.loads(done.out)
    equal((len(answer["stacktraces"]), answer["crash_reason"]), (8, "SIGABRT / SI_TKILL"))
    equal(all(t["frames"] for t in answer["stacktraces"]), True)
    whole = symbolicated(work, core, *LOCAL)
    first = lambda a: [(t["thread_id"], t["registers"], t["frames"][0]["instruction_addr"]) for t in a["stacktraces"]]
    equal(first(answer), first(whole))
    equal({m["code_id"] for m in answer["modules"] if "code_id" in m} <= {m["code_id"] for m in whole["modules"]}, True)


def test_cores_of_other_processors(work, files):
    """qemu-user writes neither a list of files nor code, so ids are those of the program that is given."""
    for compiler, flags, runner, root in (("aarch64-linux-gnu-gcc", [], "qemu-aarch64", "/usr/aarch64-linux-gnu"),
                                          ("arm-linux-gnueabihf-gcc", [], "qemu-arm", "/usr/arm-linux-gnueabihf"),
                                          ("gcc", ["-m32"], "qemu-i386", "/lib32")):
        for static in ([], ["-static"]):
            program = cores.build(work, cores.NULL, runner + "".join(static), *flags, *static, compiler=compiler)
            core = cores.by_qemu(program, work, runner, root if root != "/lib32" else None)
            answer = symbolicated(work, "--offline", "--symbols", program, *(["--symbols", root] if root else []), core)
            equal(answer["crash_reason"], "SIGSEGV", core)
            frames = [(f.get("function"), f["trust"], f.get("lineno")) for f in answer["stacktraces"][0]["frames"][:3]]
            equal(frames, [("inner", "context", 3), ("middle", "context", 4), ("main", "cfi", 5)], core)
            if static:  # eu-stack lacks the program's address without the note of files, gdb that of libraries
                equal(cores.of_gdb(core, program, "gdb-multiarch"), names(answer)[:3])
            else:
                (stack,) = cores.of_eu_stack(core, program).values()
                equal(stack[:3], names(answer)[:3])


def test_core_of_riscv_is_that_of_gdb(work, files):
    program = cores.build(work, cores.NULL, "t", "-static", compiler="riscv64-linux-gnu-gcc")
    core, wanted = cores.by_debugger(program, work, "qemu-riscv64")
    answer = symbolicated(work, "--offline", "--symbols", program, core)
    equal((answer["system_info"]["cpu_arch"], answer["crash_reason"]), ("riscv64", "SIGSEGV / SEGV_MAPERR / 0x0"))
    found = [(f.get("function"), f["trust"]) for f in answer["stacktraces"][0]["frames"]]
    equal(found[:3], [("inner", "context"), ("middle", "context"), ("main", "cfi")])
    equal([name for name, _ in found if name in wanted][:len(wanted)], wanted)


def test_another_program_is_not_taken_for_the_crashed_one(work, files):
    """A file with the name of the program whose segments are elsewhere: no names are better than wrong ones."""
    program = cores.build(work, cores.NULL, "t", "-static", compiler="aarch64-linux-gnu-gcc")
    core = cores.by_qemu(program, work, "qemu-aarch64")
    other = os.path.join(work, "other")
    os.makedirs(other)
    cores.build(other, cores.NULL.replace("int main", "const char room[1 << 20] = {1}; int main"), "t", "-static",
                compiler="aarch64-linux-gnu-gcc")
    answer = symbolicated(work, "--offline", "--symbols", os.path.join(other, "t"), core)
    equal(set(names(answer)), {None})


def test_unusable_cores_report_the_reason(work, files):
    with open(os.path.join(work, "core"), "wb") as f:
        f.write(cores.Core().done())
    done = symloom("symbolicate", "core", cwd=work, env=home(work))
    equal(done.status != 0, True)
    contains(done.err, "the core file has no threads")
    with open(os.path.join(work, "text"), "w") as f:
        f.write("no core")
    done = symloom("symbolicate", "--trim", "out", "text", cwd=work, env=home(work))
    equal(done.status, 2)
    contains(done.err, "--trim: the file is not an ELF core file")
    equal(os.path.exists(os.path.join(work, "out")), False)
    core = cores.Core().thread(1, {"rip": 0x1000, "rsp": 0x5000})
    notes, count = core.done()[64 + 56:], 1000
    with open(os.path.join(work, "core"), "wb") as f:  # all of its segments are the same notes
        f.write(core.header(4, count) + core.segment(4, 0, 64 + 56 * count, 0, len(notes), 0) * count + notes)
    done = symloom("symbolicate", "--trim", "out", "core", cwd=work, env=home(work))
    equal(done.status != 0, True)
    contains(done.err, "the segments of the core share bytes")
    equal(os.path.exists(os.path.join(work, "out")), False)
