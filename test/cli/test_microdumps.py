"""Microdumps of Breakpad: the crash of one thread in a log."""
import json, os, struct
import dumps
from harness import contains, equal, linked, ok, symloom
from test_crash import home, rows

BASE, STACK, ID = 0x70000000, 0x7F000000, "11111111222233334444555555555555"
# Of each processor: its stack pointer in CFI and in contexts, the program counter, and the bytes of a word.
PROCESSORS = {dumps.X86: ("x86", "$esp", "esp", "eip", 4), dumps.AMD64: ("x86_64", "$rsp", "rsp", "rip", 8),
              dumps.ARM: ("arm", "sp", "r13", "r15", 4), dumps.ARM64: ("arm64", "sp", "sp", "pc", 8),
              dumps.MIPS: ("mips", "$sp", "r29", "pc", 4), dumps.MIPS64: ("mips64", "$sp", "r29", "pc", 8),
              dumps.RISCV32: ("riscv", "sp", "sp", "pc", 4), dumps.RISCV64: ("riscv64", "sp", "sp", "pc", 8)}


def symbols(work, cpu):
    arch, sp, _, _, width = PROCESSORS[cpu]
    path = os.path.join(work, "syms/libapp.so", ID + "0", "libapp.so.sym")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(f"MODULE Linux {arch} {ID}0 libapp.so\nFILE 0 app.c\nFUNC 1000 100 0 fails\n1000 100 7 0\nFUNC 2000 100 0 begins\n2000 100 30 0\n"
                f"STACK CFI INIT 1000 100 .cfa: {sp} {2 * width} + .ra: .cfa {width} - ^\n")


def crashed(cpu, **options):
    _, _, sp, pc, width = PROCESSORS[cpu]
    stack = struct.pack("<II" if width == 4 else "<QQ", 0, BASE + 0x2010) + bytes(1000)
    modules = [(BASE, 0x7000, ID + "0", "libapp.so"), (BASE + 0x7000, 0x5000, "2" * 32 + "0", "app process (deleted)")]
    return dumps.microdump(cpu, {sp: STACK, pc: BASE + 0x1010}, STACK, stack, modules, **options)


def symbolicate(work, lines, *options, end="\n", program=None):
    command = ["--offline", "--cache-dir", "", "--symbols", "syms", *options, "-"]
    return symloom("symbolicate", *command, input=end.join(lines) + end, env=home(work), cwd=work)


def functions(result):
    equal(result.status, 0, result.err)
    return [row[4] for row in rows(result.out)[1:] if len(row) > 4]


def test_stacks_of_all_processors_are_walked(work, files):
    for cpu in PROCESSORS:
        symbols(work, cpu)
        for options in ({}, {"context_size": 796}) if cpu == dumps.ARM64 else ({},):
            equal(functions(symbolicate(work, crashed(cpu, **options), "-f", "compact"))[:2], ["fails", "begins"], PROCESSORS[cpu])


def test_reason_and_system_are_read(work, files):
    symbols(work, dumps.ARM)
    answer = json.loads(symbolicate(work, crashed(dumps.ARM), "-f", "json").out)
    equal((answer["crashed"], answer["crash_reason"]), (True, "SIGSEGV / 0x0"))
    assert "timestamp" not in answer, answer
    equal(answer["system_info"], {"os_name": "Android", "os_version": "7.1.1", "os_build": "brand/product/device:7.1.1/N/1:user/keys",
                                  "cpu_arch": "arm", "device_model": ""})
    (thread,) = answer["stacktraces"]
    assert thread["is_requesting"] and "thread_id" not in thread, thread
    equal(thread["registers"]["pc"], "0x70001010")
    equal(answer["details"]["annotations"], [{"name": "product", "value": "App:1.2.3"}, {"name": "process_type", "value": "webview"}])
    module = answer["modules"][0]
    equal((module["code_file"], module["debug_id"], module["image_size"]), ("libapp.so", "11111111-2222-3333-4444-555555555555", 0x7000))
    linux = json.loads(symbolicate(work, crashed(dumps.AMD64, os="L", text="5.10.0 #1 SMP"), "-f", "json").out)
    equal({k: linux["system_info"][k] for k in ("os_name", "os_version", "os_build")}, {"os_name": "Linux", "os_version": "5.10.0", "os_build": "#1 SMP"})
    told = symbolicate(work, crashed(dumps.ARM, reason=None, text="no fingerprint"), "-f", "stackwalk").out
    contains(told, "Operating system: Android\n                  no fingerprint\nCPU: arm\n     4 CPUs\n\nGPU: UNKNOWN\n\n", "Crash reason:  unknown\n", "Thread 0 (crashed)\n")
    lines = crashed(dumps.ARM, gpu="OpenGL ES 3.0|Qualcomm|Adreno (TM) 330")
    contains(symbolicate(work, lines, "-f", "stackwalk").out, "\n\nGPU: OpenGL ES 3.0\n     Qualcomm\n     Adreno (TM) 330\n\nCrash reason:  SIGSEGV\n")
    contains(symbolicate(work, lines, "-f", "machine").out, "\nGPU|OpenGL ES 3.0|Qualcomm|Adreno (TM) 330\nCrash|SIGSEGV|0x0|0\n")


def test_log_prefixes_are_skipped(work, files):
    symbols(work, dumps.ARM)
    tags = ("", "F/google-breakpad: ", "google-breakpad: ", "02-25 07:54:01.688 F/google-breakpad(13589): ",
            "02-23 15:49:14.700  1740  1739 F google-breakpad: ", "2024-02-23 15:49:14.700  1740  1739 F google-breakpad: ", "F( 3745) ")
    for i, tag in enumerate(tags):
        lines = crashed(dumps.ARM, tag=tag)
        equal(functions(symbolicate(work, lines, "-f", "compact", end=("\n", "\r\n")[i % 2]))[:2], ["fails", "begins"], tag)
        mixed = ["--------- beginning of crash", "I/other( 1): S 7F000000 00"]
        for line in lines:
            mixed += [line, "D/google-breakpad(   77): C 0000", "I/chatty  ( 3745): uid=10001 expire 3 lines"]
        if not tag:  # as `logcat -v long`
            long = [part for line in lines for part in ("[ 02-23 15:49:14.700  1740: 1739 F/google-breakpad ]", line, "")]
            equal(functions(symbolicate(work, long, "-f", "compact"))[:2], ["fails", "begins"])
        if "(13589" in tag or tag.startswith("02-23"):  # else nothing tells whose lines they are
            equal(functions(symbolicate(work, mixed, "-f", "compact"))[:2], ["fails", "begins"], tag)


def test_several_microdumps_in_a_log_are_separated(work, files):
    symbols(work, dumps.ARM)
    first, second = crashed(dumps.ARM, reason="00000005 SIGTRAP"), crashed(dumps.ARM, tag="W/google-breakpad(12): ")
    together = [line for pair in zip(first, second) for line in pair]
    cut = crashed(dumps.ARM, reason="00000006 SIGABRT")[:-2]
    reason = lambda result: json.loads(result.out)["crash_reason"].split()[0]
    for log, option, wanted, note in ((first + second, (), "SIGTRAP", "the log has 2 microdumps; using number 1 at line 1 (choose another with --microdump N)"),
                                      (first + second, ("--microdump", "2"), "SIGSEGV", ""), (together, ("--microdump", "2"), "SIGSEGV", ""),
                                      (together, ("--microdump", "1"), "SIGTRAP", ""), (cut + second, (), "SIGSEGV", "using number 2 at line"),
                                      (cut + second, ("--microdump", "1"), "SIGABRT", "the microdump at line 1 is truncated")):
        result = symbolicate(work, log, "-f", "json", *option)
        equal((result.status, reason(result)), (0, wanted), result.err)
        contains(result.err, note)
    equal(symbolicate(work, first, "--microdump", "2").status, 2)
    equal(symbolicate(work, first, "--microdump", "0").status, 2)


def test_truncated_microdump_reports_what_is_missing(work, files):
    symbols(work, dumps.ARM)
    lines = crashed(dumps.ARM)
    part = lambda letter: next(i for i, line in enumerate(lines) if f": {letter} " in line)
    for log, message in ((lines[:part("C")], "The registers of the microdump (line C) were not found"),
                         ([line[:200] for line in lines], "The registers of the microdump (line C) are cut: they have 86 bytes"),
                         ([line for line in lines if ": O " not in line], "The system of the microdump (line O) was not found, or its processor is not known")):
        result = symbolicate(work, log)
        equal(result.status, 3)
        contains(result.err, message)
    last = max(i for i, line in enumerate(lines) if ": S 7F" in line)
    result = symbolicate(work, lines[:last - 1] + lines[last:-2], "-f", "compact")
    equal(functions(result)[:2], ["fails", "begins"])
    contains(result.err, "warning: the microdump at line 1 is truncated")


def test_inspect_reads_microdumps(work, files):
    symbols(work, dumps.ARM)
    path = os.path.join(work, "crash.txt")
    with open(path, "w") as f:
        f.write("\n".join(crashed(dumps.ARM)))
    contains(ok("inspect", "--raw", path), "Format       microdump, ", ", 0 streams", "Reason       SIGSEGV / 0x0\n", "Annotation   product=App:1.2.3\n", "libapp.so")
    item = json.loads(ok("inspect", "--json", path))[0]
    equal((item["type"], item["size"], item["is_usable"]), ("microdump", os.path.getsize(path), True))
    told = ok(path, "syms", program=linked(work, "minidump_stackwalk"), cwd=work, env=home(work))
    contains(told, " 0  libapp.so!fails [app.c : 7 + 0x10]\n", " 1  libapp.so!begins [app.c : 30 + ")


def test_programs_are_found_by_debug_id(work, files):
    """A microdump has no code ids: programs are found by the debug id that is made of their build id."""
    os.makedirs(os.path.join(work, "syms"))
    os.symlink(files.get("t"), os.path.join(work, "syms/t"))
    id = json.loads(ok("inspect", "--json", files.get("t")))[0]["debug_id"].upper().replace("-", "")[:32]
    address = files.address("t", "outer")
    lines = dumps.microdump(dumps.AMD64, {"rip": BASE + address + 1, "rsp": STACK}, STACK, bytes(64), [(BASE, 0x10000, id + "0", "t")])
    equal(functions(symbolicate(work, lines, "-f", "compact"))[0], "outer")
