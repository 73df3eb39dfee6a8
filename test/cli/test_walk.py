"""`symloom symbolicate` of minidumps that were written for it: whose symbols a module gets, and how stacks are walked."""
import json, os, re, struct
import dumps, harness
from harness import contains, equal, ok, symloom
from test_crash import home, rows

BASE, STACK = 0x100000000, 0x7FFE0000000
SYM = """MODULE {os} {arch} {id} other.so
{code_id}FILE 0 other.c
FUNC 1000 800 0 function_of_another_library
1000 800 7 0
STACK CFI INIT 1000 800 .cfa: $rsp 8 + .ra: .cfa 8 - ^
"""
UUID = "11111111222233334444555555555555"


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


def one_module(work, codeview, platform=dumps.LINUX, name="/usr/lib/libfoo.so", timestamp=0):
    registers = {"rip": BASE + 0x1234, "rsp": STACK}
    dump = dumps.Dump(platform=platform).crash(1, 11, 1, registers=registers)
    dump.threads.append((1, registers, STACK, bytes(512)))
    dump.modules.append((BASE, 0x10000, name, codeview, timestamp))
    return write(os.path.join(work, "one.dmp"), dump.done())


def function_at(work, dump):
    """Of the frame that crashed; empty when it has none."""
    row = rows(ok("symbolicate", "--offline", "--cache-dir", "", "-f", "compact", "--symbols", "syms", dump, env=home(work), cwd=work))[1]
    return row[4] if len(row) > 4 else ""


def test_module_without_id_gets_no_symbols(work, files):
    """Not those of a file that has no id of the same kind either, whatever the file is and says."""
    zeros = "00000000-0000-0000-0000-000000000000"
    names = {"linux": (dumps.LINUX, "/usr/lib/libfoo.so"), "macos": (dumps.MACOS, "/usr/lib/libfoo.dylib"), "windows": (dumps.WINDOWS, "C:\\foo.dll")}
    for name, os_name, arch, id, code_id in (
            ("breakpad", "Linux", "x86_64", UUID + "A", ""), ("with a code id", "Linux", "x86_64", UUID + "0", "INFO CODE_ID ABCD1234\n"),
            ("of zeros", "Linux", "x86_64", "0" * 33, ""), ("of zeros with an age", "windows", "x86_64", "0" * 32 + "1", "INFO CODE_ID 00000000\n"),
            ("of macOS", "mac", "x86_64", UUID + "0", f"INFO CODE_ID {UUID}\n")):
        write(os.path.join(work, "syms/other.sym"), SYM.format(os=os_name, arch=arch, id=id, code_id=code_id))
        for platform, file in names.values():
            for codeview in (b"", dumps.elf(""), dumps.elf("00" * 20), dumps.pdb70(zeros, 1, "libfoo.so")):
                dump = one_module(work, codeview, platform, file)
                equal(function_at(work, dump), "", (name, file, codeview))


def test_ids_match_only_within_system_and_processor(work, files):
    """They are equal by chance, and name something else."""
    build_id = "5ab380779000"
    write(os.path.join(work, "syms/other.sym"), SYM.format(os="Linux", arch="x86_64", id="0" * 33, code_id=f"INFO CODE_ID {build_id}\n"))
    dump = one_module(work, b"", dumps.WINDOWS, "C:\\foo.dll", 0x5AB38077)
    equal(function_at(work, dump), "", "a time stamp and a size are no build id")
    codeview = dumps.elf("11" * 4 + "22" * 4 + "33" * 4 + "44" * 4)
    guid = "11111111222222223333333344444444"
    for arch, expected in (("x86_64", "function_of_another_library"), ("mips", ""), ("arm64", "")):
        write(os.path.join(work, "syms/other.sym"), SYM.format(os="Linux", arch=arch, id=guid + "0", code_id=""))
        equal(function_at(work, one_module(work, codeview)), expected, arch)


def test_zero_ids_find_no_file(work, files):
    """Neither in a layout by names, where an id of zeros has a place of its own."""
    zeros = "0" * 33
    write(os.path.join(work, f"syms/libfoo.so/{zeros}/libfoo.so.sym"), SYM.format(os="Linux", arch="x86_64", id=zeros, code_id=""))
    event = {"modules": [{"type": "elf", "debug_id": "00000000-0000-0000-0000-000000000000", "debug_file": "libfoo.so", "code_file": "libfoo.so",
                          "image_addr": hex(BASE), "image_size": 0x10000}],
             "stacktraces": [{"frames": [{"instruction_addr": hex(BASE + 0x1234)}]}]}
    path = write(os.path.join(work, "request.json"), json.dumps(event))
    answer = json.loads(ok("symbolicate", "--offline", "--cache-dir", "", "--symbols", "syms", path, env=home(work), cwd=work))
    equal(answer["stacktraces"][0]["frames"][0].get("function"), None)


# ---- stacks ----

def frames(work, dump, *symbols):
    """Module, and offset of the instruction, of each frame; 'unknown' outside of modules."""
    path = write(os.path.join(work, "walk.dmp"), dump.done())
    answer = json.loads(ok("symbolicate", "--offline", "--cache-dir", "", *symbols, path, env=home(work), cwd=work))
    found = []
    for frame in answer["stacktraces"][0]["frames"]:
        package = frame.get("package")
        found.append((os.path.basename(package) if package else None, int(frame["instruction_addr"], 16) - (BASE if package else 0), frame.get("trust")))
    return found


def dump_of(cpu, registers, words, modules=((0, 0x10000, "app"),), width=8, platform=dumps.LINUX):
    dump = dumps.Dump(cpu=cpu, platform=platform).crash(1, 11, 1, registers=registers)
    stack = bytearray(2048)
    for at, value in words.items():
        struct.pack_into("<Q" if width == 8 else "<I", stack, at, value)
    base = BASE if width == 8 else BASE32
    dump.threads.append((1, registers, STACK if width == 8 else STACK32, bytes(stack)))
    dump.modules += [(base + at, size, name, dumps.elf(f"{i + 1:02x}" * 20), 0) for i, (at, size, name) in enumerate(modules)]
    return dump


BASE32, STACK32 = 0x400000, 0x7E000000


def test_call_to_a_bad_address_has_a_caller(work, files):
    """The link register's, or the one on the stack; the frame pointer's comes behind it."""
    record = {0x40: STACK + 0x60, 0x48: BASE + 0x500, 0x60: 0, 0x68: BASE + 0x600}
    for pc in (0, 0x4141414141414141 & ((1 << 47) - 1)):
        registers = {"pc": pc, "x30": BASE + 0x104, "x29": STACK + 0x40, "sp": STACK}
        equal(frames(work, dump_of(dumps.ARM64, registers, record))[:3],
              [(None, pc, "context"), ("app", 0x104, "fp"), ("app", 0x500, "fp")])
        registers = {"rip": pc, "rbp": STACK + 0x40, "rsp": STACK}
        equal(frames(work, dump_of(dumps.AMD64, registers, {0: BASE + 0x105, **record}))[:3],
              [(None, pc, "context"), ("app", 0x105, "fp"), ("app", 0x500, "fp")])
    for cpu, link, sp, pc in ((dumps.ARM, "r14", "r13", "r15"), (dumps.MIPS, "r31", "r29", "pc")):
        dump = dump_of(cpu, {pc: 0, link: BASE32 + 0x104, sp: STACK32}, {0x20: BASE32 + 0x500}, width=4)
        found = frames(work, dump)
        equal([f[2] for f in found[:2]], ["context", "fp"], cpu)
        equal(found[1][1] + BASE - BASE32, 0x104, cpu)


def test_leaf_without_cfi_has_a_caller(work, files):
    """The link register's, but not where the innermost frame record has the same."""
    record = {0x40: STACK + 0x60, 0x48: BASE + 0x500, 0x60: 0, 0x68: BASE + 0x600}
    registers = {"pc": BASE + 0x204, "x30": BASE + 0x104, "x29": STACK + 0x40, "sp": STACK}
    equal([f[1] for f in frames(work, dump_of(dumps.ARM64, registers, record))[:3]], [0x204, 0x104, 0x500])
    registers["x30"] = BASE + 0x500
    equal([f[1] for f in frames(work, dump_of(dumps.ARM64, registers, record))[:3]], [0x204, 0x500, 0x600])
    registers["x30"] = BASE + 0x1C0  # left by a call that the function itself has made
    write(os.path.join(work, "syms/app.sym"), "MODULE Linux arm64 " + "01" * 16 + "0 app\nFUNC 180 100 0 inner\nFUNC 480 300 0 outer\n")
    equal([f[1] for f in frames(work, dump_of(dumps.ARM64, registers, record), "--symbols", "syms")[:3]], [0x204, 0x500 - 4, 0x600 - 4])


def test_riscv_stacks_are_walked(work, files):
    """By the frame pointer, which is the caller's stack pointer; by rules; and registers have their names."""
    registers = {"pc": BASE + 0x204, "ra": BASE + 0x104, "sp": STACK, "s0": STACK + 0x40, "a7": 93, "t6": 6}
    dump = dump_of(dumps.RISCV64, registers, {0x38: BASE + 0x504, 0x30: STACK + 0x60, 0x58: BASE + 0x604})
    equal(frames(work, dump), [("app", 0x204, "context"), ("app", 0x104, "fp"), ("app", 0x504, "fp"), ("app", 0x604, "fp")])
    path = os.path.join(work, "walk.dmp")
    answer = json.loads(ok("symbolicate", "--offline", "--cache-dir", "", path, env=home(work)))
    equal(answer["system_info"]["cpu_arch"], "riscv64")
    shown = {name: int(value, 16) for name, value in answer["stacktraces"][0]["registers"].items()}
    equal(shown, {name: registers.get(name, 0) for name in dumps.CONTEXTS[dumps.RISCV64][4]})
    text = ok("symbolicate", "--offline", "--cache-dir", "", "-f", "stackwalk", path, env=home(work))
    contains(text, "CPU: riscv64", "a7 = 0x000000000000005d", "t6 = 0x0000000000000006")
    write(os.path.join(work, "syms/app.sym"), "MODULE Linux riscv64 " + "01" * 16 + "0 app\nFUNC 200 100 0 inner\nFUNC 480 100 0 outer\nFUNC 600 100 0 main\n"
          "STACK CFI INIT 200 100 .cfa: sp 64 + .ra: .cfa 8 - ^ s0: .cfa 16 - ^\nSTACK CFI INIT 480 100 .cfa: sp 32 + .ra: .cfa 8 - ^\n")
    equal(frames(work, dump, "--symbols", "syms"), [("app", 0x204, "context"), ("app", 0x504 - 2, "cfi"), ("app", 0x604 - 2, "cfi")])


def test_scanned_words_count_only_behind_a_call(work, files):
    """A word that points behind something else than a call is no caller of a bad address."""
    registers = {"rip": 0, "rbp": STACK + 0x40, "rsp": STACK}
    words = {0: BASE + 0x110, 0x40: STACK + 0x60, 0x48: BASE + 0x500, 0x60: STACK + 0x80, 0x68: BASE + 0x600}
    for code, expected in ((b"\x90" * 16, 0x500), (b"\x90" * 11 + b"\xe8\0\0\0\0", 0x110), (b"\x90" * 14 + b"\xff\xd0", 0x110),
                           (b"\x90" * 13 + b"\xff\x50\x08", 0x110), (b"\x90" * 14 + b"\xff\xe0", 0x500)):
        dump = dump_of(dumps.AMD64, registers, words)
        dump.memory.append((BASE + 0x100, code))
        equal(frames(work, dump)[1][1], expected, code)


def test_windows_x64_scans_before_frame_pointers(work, files):
    """The register is that of a frame farther out: without unwind information what the stack has in front of that comes first."""
    registers = {"rip": BASE + 0x1100, "rbp": STACK + 0x60, "rsp": STACK}
    words = {0: BASE + 0x2200, 0x20: BASE + 0x3300, 0x38: STACK + 0x100, 0x60: STACK + 0x100, 0x68: BASE + 0x4400, 0x100: STACK + 0x200}
    for platform, expected in ((dumps.WINDOWS, [0x2200, 0x3300, 0x4400]), (dumps.LINUX, [0x4400])):
        found = frames(work, dump_of(dumps.AMD64, registers, words, platform=platform))
        equal([f[1] for f in found], [0x1100] + expected, platform)


def test_impossible_return_address_tries_the_next_method(work, files):
    """The next one is tried: the frame pointer where unwind tables are wrong, scanning where that is none."""
    write(os.path.join(work, "syms/app.sym"), "MODULE Linux x86_64 " + "01" * 16 + "0 app\nFUNC 100 100 0 crashed\nFUNC 480 400 0 other\n"
          "STACK CFI INIT 100 100 .cfa: $rsp 16 + .ra: .cfa 8 - ^\nSTACK CFI INIT 800 80 .cfa: $rsp 16 + .ra: .undef\n")
    registers = {"rip": BASE + 0x120, "rbp": STACK + 0x40, "rsp": STACK}
    record = {0x40: STACK + 0x60, 0x48: BASE + 0x500, 0x60: 0, 0x68: 0}
    for null in (0, 8):
        found = frames(work, dump_of(dumps.AMD64, registers, {8: null, **record}), "--symbols", "syms")
        equal(found[:2], [("app", 0x120, "context"), ("app", 0x500 - 1, "fp")], null)
    found = frames(work, dump_of(dumps.AMD64, {**registers, "rbp": 0}, {8: 0, 0x78: BASE + 0x520}), "--symbols", "syms")
    equal(found[:2], [("app", 0x120, "context"), ("app", 0x520 - 1, "scan")])
    registers = {"eip": BASE32 + 0x120, "ebp": STACK32 + 0x40, "esp": STACK32}
    found = frames(work, dump_of(dumps.X86, registers, {0x40: STACK32 + 0x60, 0x44: 0, 0x58: BASE32 + 0x520}, width=4))
    equal([f[2] for f in found[:2]], ["context", "scan"])


# ---- long stacks ----

def recursion(work, depth):
    """Of two functions that call each other, without symbols for what is around them."""
    size = 16 * depth + 4096
    stack = bytearray(size)
    for i in range(depth):
        struct.pack_into("<QQ", stack, 16 * i, STACK + 16 * (i + 1), BASE + (0x120 if i % 2 else 0x220))
    registers = {"rip": BASE + 0x110, "rbp": STACK, "rsp": STACK - 8}
    dump = dumps.Dump().crash(1, 11, 1, registers=registers)
    dump.threads.append((1, registers, STACK - 8, bytes(8) + bytes(stack)))
    dump.modules.append((BASE, 0x10000, "/app", dumps.elf("01" * 20), 0))
    write(os.path.join(work, "syms/app.sym"), "MODULE Linux x86_64 " + "01" * 16 + "0 app\nFUNC 100 100 0 f\n100 100 7 0\nFUNC 200 100 0 g\n200 100 8 0\nFILE 0 a.c\n")
    return write(os.path.join(work, "long.dmp"), dump.done())


def test_deep_recursion_is_printed_or_folded_by_format(work, files):
    """Formats for programs have them all, those for people tell of the repeated ones in one line. None of them is inline."""
    path = recursion(work, 3000)
    def run(*args):
        return ok("symbolicate", "--offline", "--cache-dir", "", "--symbols", "syms", *args, path, env=home(work), cwd=work)
    count = len(json.loads(run("-f", "json"))["stacktraces"][0]["frames"])
    assert count > 3000, count
    equal(len([line for line in run("-f", "machine").splitlines() if line.startswith("0|")]), count)
    for form in ("compact", "pretty", "full", "stackwalk"):
        text = run("-f", form)
        folded = re.findall(r"^ ?\.\.\. ([\d,]+) frames of (.*) repeat \(([\d,]+) in all\) \.\.\.$", text, re.M)
        equal([(f[1], f[2]) for f in folded], [("f -> g", f"{count:,}")], (form, text[:2000]))
        left = count - int(folded[0][0].replace(",", ""))
        assert left < 8 and "inline" not in text, (form, text)


# ---- 32-bit programs on 64-bit Windows ----

def wow64_dump(work, crash=None):
    """Threads that wait for the system (1), run 32-bit code (2), and whose environment is not in the dump (3)."""
    dump = dumps.Dump(platform=dumps.WINDOWS)
    dump.modules += [(0x400000, 0x10000, "C:\\app.exe", dumps.pdb70("22222222-3333-4444-5555-666666666666", 1, "app.pdb"), 0),
                     (0x75540000, 0x8000, "C:\\Windows\\System32\\wow64cpu.dll", b"", 1), (0x755B0000, 0x3F000, "C:\\Windows\\System32\\Wow64.dll", b"", 1)]
    emulation = {"rip": 0x75542E09, "rsp": 0x20E518, "cs": 0x33}
    stack = struct.pack("<8I", 0, 0x400204, 0x37F5D8, 0x400304, 0, 0, 0x37F5E8, 0x400404)
    for i in (1, 3):
        dump.threads.append((i, emulation, 0x20E518, struct.pack("<4Q", 0x755B0010, 0, 0, 0)))
    dump.threads.insert(1, (2, {"rip": 0x400104, "rsp": 0x37F5C0, "rbp": 0x37F5C8, "rax": 0xFFFFFFFF00000007, "cs": 0x23}, 0x20E518, bytes(32)))
    dump.environments[3] = 0x7EFE0000
    dumps.wow64(dump, 1, {"eip": 0x400108, "esp": 0x37F5C0, "ebp": 0x37F5C8, "eax": 5}, 0x7EFDB000, 0x20FD20)
    dump.memory += [(0x37F5C0, stack), (0x7EFDB000 + 0x2034, struct.pack("<I", 2))]  # the last error, in the 32-bit environment
    if crash:
        dump.crash(1, 0xC0000005, 0, 0x45, (0, 0x45), registers=crash)
    return write(os.path.join(work, "wow64.dmp"), dump.done())


def test_wow64_stacks_are_walked_when_present(work, files):
    """They are shown where the dump has them, with registers of x86; for others the command says what is missing, once."""
    write(os.path.join(work, "syms/app.sym"), "MODULE windows x86 222222223333444455556666666666661 app.pdb\nFUNC 100 100 0 wait\nFUNC 200 100 0 work\n"
          "FUNC 300 100 0 main\n")
    path = wow64_dump(work)
    arguments = ("--offline", "--cache-dir", "", "--symbols", "syms", path)
    result = symloom("symbolicate", *arguments, env=home(work), cwd=work)
    said = "32-bit program (WoW64): the dump lacks the 32-bit stacks of 1 of its 3 threads"
    equal(result.err.count(said), 1, result.err)
    first, second, third = json.loads(result.out)["stacktraces"]
    for thread, ip, eax in ((first, 0x400108, "0x5"), (second, 0x400104, "0x7")):
        equal((sorted(thread["registers"]), thread["registers"]["eip"], thread["registers"]["eax"]),
              (sorted("eax ebp ebx ecx edi edx eflags eip esi esp".split()), hex(ip), eax))
        equal([(f.get("function"), f["trust"]) for f in thread["frames"]], [("wait", "context"), ("main", "fp"), (None, "fp")], thread)
    equal((third["registers"]["rip"], third["frames"][0]["instruction_addr"], third["frames"][1]["trust"]), ("0x75542e09", "0x75542e09", "scan"))
    text = ok("symbolicate", "-f", "stackwalk", *arguments, env=home(work), cwd=work)
    contains(text, "eip = 0x00400108   esp = 0x0037f5c0   ebp = 0x0037f5c8", "rip = 0x0000000075542e09")
    threads = json.loads(ok("symbolicate", "-f", "minidump-json", *arguments, env=home(work), cwd=work))["threads"]
    equal([t["last_error_value"] for t in threads], ["ERROR_FILE_NOT_FOUND", None, None])
    contains(ok("inspect", path, env=home(work)), ", x86_64, a 32-bit program (WoW64)\n", "Usable       yes")
    contains(ok("symbolicate", "-f", "stackwalk", "--stack-pointers", *arguments, env=home(work), cwd=work), " *(0x0037f5c4) = 0x00400204 <work> ")


def test_wow64_crash_selects_the_right_registers(work, files):
    """In its own code the exception has the registers; in that of the emulation, the thread crashed there."""
    for segment, registers in ((0x23, ["eip", "0x400104"]), (0x33, ["rip", "0x400104"])):
        path = wow64_dump(work, {"rip": 0x400104, "rsp": 0x37F5C0, "rbp": 0x37F5C8, "cs": segment})
        answer = json.loads(ok("symbolicate", "--offline", "--cache-dir", "", path, env=home(work)))
        thread = answer["stacktraces"][0]
        equal((thread["is_requesting"], thread["registers"].get(registers[0])), (True, registers[1]), thread)


def test_dumps_that_are_not_wow64_have_one_stack(work, files):
    """A 32-bit program that wrote its own dump, and a 64-bit one: nothing is looked for behind their threads."""
    for cpu, name in ((dumps.AMD64, "C:\\app.dll"), (dumps.AMD64, "C:\\notwow64.dll"), (dumps.X86, "C:\\Windows\\System32\\wow64.dll")):
        registers = {"rip": 0x400104, "rsp": 0x20E518, "cs": 0x33} if cpu == dumps.AMD64 else {"eip": 0x400104, "esp": 0x20E518}
        dump = dumps.Dump(cpu=cpu, platform=dumps.WINDOWS)
        dump.modules.append((0x400000, 0x10000, name, b"", 1))
        dump.threads.append((1, registers, 0x20E518, bytes(64)))
        dumps.wow64(dump, 1, {"eip": 0x400108, "esp": 0x37F5C0}, 0x7EFDB000)
        path = write(os.path.join(work, "other.dmp"), dump.done())
        result = symloom("symbolicate", "--offline", "--cache-dir", "", path, env=home(work))
        equal(json.loads(result.out)["stacktraces"][0]["frames"][0]["instruction_addr"], "0x400104")
        equal("WoW64" in result.err, False, result.err)
