"""Minidumps in the formats of other tools: `minidump-json`, `machine`, `stackwalk`; and what all formats say of unloaded modules."""
import json, os, struct
import dumps
from harness import contains, equal, ok
from test_crash import home

APP, LIBRARY = 0x400000, 0x7F0000000000


def symbolicate(work, dump, *args):
    path = os.path.join(work, "crash.dmp")
    with open(path, "wb") as f:
        f.write(dump.done() if isinstance(dump, dumps.Dump) else dump)
    return ok("symbolicate", "--offline", "--cache-dir", "", *args, path, env=home(work), cwd=work)


def as_json(work, dump, *args):
    return json.loads(symbolicate(work, dump, "-f", "minidump-json", *args))


def two_modules(cpu=dumps.AMD64, order="<"):
    """The program comes first in the file, and last in memory."""
    dump = dumps.Dump(cpu=cpu, version=(0, 0, 0), text="Linux 5.4.0-custom #7 SMP Mon Jan 6 x86_64", order=order)
    dump.modules.append((LIBRARY if cpu != dumps.X86 else 0x7F000000, 0x10000, "/lib/first.so", b"", 0))
    dump.modules.append((APP, 0x10000, "/bin/app", dumps.elf("0102030405060708090a0b0c0d0e0f1011121314"), 0))
    return dump


def test_frames_show_instruction_and_registers(work, files):
    stack = struct.pack("<4Q", 0x7010, APP + 0x2005, 0, 0)
    dump = two_modules()
    dump.threads.append((17, {"rip": APP + 0x1234, "rsp": 0x7000, "rbp": 0x7000}, 0x7000, stack))
    dump.crash(17, 11, 1, 0x45)
    answer = as_json(work, dump)
    frames = answer["crashing_thread"]["frames"]
    equal([(f["offset"], f["module_offset"]) for f in frames[:2]],
          [("0x0000000000401234", "0x0000000000001234"), ("0x0000000000402004", "0x0000000000002004")])
    equal((frames[0]["registers"]["rsp"], "registers" in frames[1]), ("0x0000000000007000", False))
    equal([f["missing_symbols"] for f in frames[:2]], [True, True])
    equal([(m["filename"], m["base_addr"]) for m in answer["modules"]],
          [("first.so", "0x00007f0000000000"), ("app", "0x0000000000400000")], "as the dump lists them")
    equal((answer["main_module"], answer["modules"][1]["code_id"], answer["modules"][0]["code_id"], answer["modules"][0]["debug_id"]),
          (0, "0102030405060708090a0b0c0d0e0f1011121314", "", "0" * 33))
    equal(answer["system_info"]["os_ver"], "5.4.0-custom #7 SMP Mon Jan 6")
    equal([m["missing_symbols"] for m in answer["modules"]], [False, False], "nobody was asked for symbols")
    os.makedirs(os.path.join(work, "symbols"), exist_ok=True)
    answer = as_json(work, dump, "--symbols", os.path.join(work, "symbols"))
    equal([m["missing_symbols"] for m in answer["modules"]], [False, True])


def test_flags_register_is_named_eflags(work, files):
    dump = two_modules(dumps.X86)
    dump.threads.append((1, {"eip": APP + 4, "esp": 0x7000, "eflags": 0x10246}, 0x7000, bytes(16)))
    dump.crash(1, 11, 1, 0x45)
    registers = as_json(work, dump)["crashing_thread"]["frames"][0]["registers"]
    equal((registers["eflags"], "efl" in registers), ("0x00010246", False))


def test_module_offsets_follow_breakpad_per_processor(work, files):
    """Breakpad tells the address of the call on them, and the address to return to on x86."""
    stack = {dumps.ARM64: struct.pack("<4Q", 0x7010, APP + 0x2008, 0, 0), dumps.AMD64: struct.pack("<4Q", 0x7010, APP + 0x2008, 0, 0)}
    for cpu, registers, offset in ((dumps.ARM64, {"pc": APP + 0x1000, "sp": 0x7000, "x29": 0x7000}, "0x2004"),
                                   (dumps.AMD64, {"rip": APP + 0x1000, "rsp": 0x7000, "rbp": 0x7000}, "0x2008")):
        dump = two_modules(cpu)
        dump.threads.append((1, registers, 0x7000, stack[cpu]))
        dump.crash(1, 11, 1, 0x45)
        contains(symbolicate(work, dump, "-f", "machine"), "\n0|0|app||||0x1000\n", f"\n0|1|app||||{offset}\n")
        contains(symbolicate(work, dump, "-f", "stackwalk"), "\n 0  app + 0x1000\n", f"\n 1  app + {offset}\n")


def utf8(dump, *lines):
    return "".join(line + "\n" for line in lines).encode()


def test_linux_streams_are_shown(work, files):
    dump = two_modules()
    dump.threads.append((17, {"rip": APP, "rsp": 0x7000}, 0x7000, bytes(64)))
    dump.stream(0x47670003, utf8(dump, "processor\t: 0", "microcode\t: 0xde", "processor\t: 1", "microcode\t: 0xff"))
    dump.stream(0x47670004, utf8(dump, "Name:\tapp", "Pid:\t4711", "PPid:\t1"))
    dump.stream(0x47670005, utf8(dump, "DISTRIB_ID=Distro", "DISTRIB_RELEASE=12.3", 'DISTRIB_DESCRIPTION="Distro 12.3 LTS"'))
    dump.stream(0x47670009, utf8(dump, "00400000-00410000 r-xp 00000000 fe:01 7 /bin/app", "7000-8000 rw-p 00000000 00:00 0 [stack]"))
    dump.stream(0x4D7A0003, utf8(dump, "Limit                     Soft Limit           Hard Limit           Units     ",
                                 "Max cpu time              unlimited            unlimited            seconds   ",
                                 "Max open files            1024                 4096                 files     ",
                                 "Max nice priority         0                    0                    "))
    dump.stream(0x4D7A0004, b' [{"WriterFailed": {"code": 7}}]\n')
    answer = as_json(work, dump)
    equal((answer["pid"], answer["system_info"]["cpu_microcode_version"], answer["linux_memory_map_count"]), (4711, "0xde", 2))
    equal(answer["lsb_release"], {"id": "Distro", "release": "12.3", "codename": "", "description": "Distro 12.3 LTS"})
    equal(answer["proc_limits"]["limits"], [
        {"name": "Max cpu time", "soft": "unlimited", "hard": "unlimited", "unit": "seconds"},
        {"name": "Max open files", "soft": 1024, "hard": 4096, "unit": "files"},
        {"name": "Max nice priority", "soft": 0, "hard": 0, "unit": "n/a"}])
    equal(answer["soft_errors"], [{"WriterFailed": {"code": 7}}])
    equal((answer["handles"], answer["mac_crash_info"], answer["mac_boot_args"], "crashing_thread" in answer), (None, None, None, False))
    dump = two_modules()
    dump.threads.append((17, {"rip": APP, "rsp": 0x7000}, 0x7000, bytes(64)))
    dump.stream(0x4D7A0004, b"{broken")
    equal([as_json(work, dump)[key] for key in ("soft_errors", "pid", "lsb_release", "proc_limits", "linux_memory_map_count")], [None] * 5)


def test_windows_streams_are_shown(work, files):
    dump = dumps.Dump(platform=dumps.WINDOWS, version=(10, 0, 19045))
    block = 0x9000
    memory = bytearray(0x100)
    struct.pack_into("<I", memory, 13 * 8, 2)
    dump.memory.append((block, bytes(memory)))
    dump.threads.append((17, {"rip": APP, "rsp": 0x7000}, 0x7000, bytes(64)))
    kind, name = dump.string("File"), dump.string(r"\Device\a.txt")
    dump.stream(12, struct.pack("<4I", 16, 32, 2, 0) + struct.pack("<Q6I", 0x44, kind, name, 0, 0, 1, 1) + struct.pack("<Q6I", 0x48, 0, 0, 0, 0, 1, 1))
    data = bytearray(dump.done())
    at = next(offset for kind, size, offset in dump.streams if kind == 3)
    struct.pack_into("<Q", data, at + 4 + 16, block)
    answer = as_json(work, bytes(data))
    equal(answer["threads"][0]["last_error_value"], "ERROR_FILE_NOT_FOUND")
    equal(answer["handles"], [{"handle": 0x44, "type_name": "File", "object_name": r"\Device\a.txt"},
                              {"handle": 0x48, "type_name": None, "object_name": None}])


def mac_record(version, numbers, *texts):
    return struct.pack("<QQ", 0x4D7A0001, version) + struct.pack(f"<{len(numbers)}Q", *numbers) + b"".join(t.encode() + b"\0" for t in texts)


def test_macos_streams_are_shown(work, files):
    dump = dumps.Dump(platform=dumps.MACOS, version=(14, 1, 0), text="23B74")
    dump.threads.append((17, {"rip": APP, "rsp": 0x7000}, 0x7000, bytes(64)))
    first, second = mac_record(5, (1, 2, 3), "/lib/x", "abort() called", "sig", "", "more"), mac_record(1, ())
    places = [(len(r), dump.put(r)) for r in (first, second)] + [(0, 0)] * 18
    dump.stream(0x4D7A0001, struct.pack("<3I", 0x4D7A0001, 2, 40) + b"".join(struct.pack("<2I", *p) for p in places))
    dump.stream(0x4D7A0002, struct.pack("<IQ", 0x4D7A0002, dump.string("-v keepsyms=1")))
    answer = as_json(work, dump)
    nothing = dict.fromkeys(("thread", "dialog_mode", "abort_cause", "module", "message", "signature_string", "backtrace", "message2"))
    equal(answer["mac_crash_info"], {"num_records": 2, "records": [
        {"thread": "0x0000000000000001", "dialog_mode": "0x0000000000000002", "abort_cause": "0x0000000000000003", "module": "/lib/x",
         "message": "abort() called", "signature_string": "sig", "backtrace": "", "message2": "more"}, nothing]})
    equal((answer["mac_boot_args"], answer["system_info"]["os_ver"]), ("-v keepsyms=1", "14.1.0 23B74"))


def unloaded_dump():
    """The thread is where `many.dll` was in two places, and `solo.dll` in one; its caller where nothing was."""
    dump = dumps.Dump(platform=dumps.WINDOWS, version=(10, 0, 19045))
    dump.threads.append((17, {"rip": 0xF00800, "rsp": 0x7000, "rbp": 0x7000}, 0x7000, struct.pack("<4Q", 0x7010, APP + 0x2005, 0, 0)))
    dump.modules.append((APP, 0x10000, r"C:\app.exe", b"", 0))
    many, solo = dump.string(r"many.dll"), dump.string(r"C:\old\solo.dll")
    entries = [(0xF00000, 0x1000, 0, 0x5E000000, many), (0xF00220, 0x2000, 0, 0x5E000001, solo), (0xF00100, 0x1000, 0, 0x5E000000, many),
               (0xF00000, 0x1000, 0, 0x5E000000, many), (0xA00000, 0x1000, 0, 0, many)]
    dump.stream(14, struct.pack("<3I", 12, 24, len(entries)) + b"".join(struct.pack("<Q4I", *e) for e in entries))
    return dump.crash(17, 0xC0000005, 0, 0xF00800, (8, 0xF00800)).done()


def test_frames_in_unloaded_modules_name_them(work, files):
    dump = unloaded_dump()
    answer = as_json(work, dump)
    equal([f["unloaded_modules"] for f in answer["threads"][0]["frames"][:2]],
          [[{"module": r"C:\old\solo.dll", "offsets": ["0x00000000000005e0"]},
            {"module": "many.dll", "offsets": ["0x0000000000000700", "0x0000000000000800"]}], None])
    equal(answer["unloaded_modules"][0], {"base_addr": "0x0000000000f00000", "end_addr": "0x0000000000f01000", "code_id": "5e0000001000",
                                          "filename": "many.dll", "cert_subject": None})
    told = "(unloaded solo.dll@0x5e0) (unloaded many.dll@0x700|0x800)"
    for form in ("compact", "pretty", "full", "markdown", "stackwalk"):
        contains(symbolicate(work, dump, "-f", form), told)
    contains(symbolicate(work, dump, "-f", "machine"), "\n0|0|" + told.replace("|", ",") + "||||0xf00800\n0|1|app.exe|")
    frames = json.loads(symbolicate(work, dump, "-f", "json"))["stacktraces"][0]["frames"]
    equal([f.get("package") for f in frames[:2]], [told, r"C:\app.exe"])
