"""What the instruction did that a minidump crashed at, and what may have been meant."""
import json, struct
import dumps
from harness import contains, equal
from test_dump_formats import APP, symbolicate, utf8

LOAD, STORE, CALL, PUSH, NOP = b"\x8b\x40\x08", b"\x89\x00", b"\xff\xd0", b"\x50", b"\x90"  # mov eax, [rax+8]; mov [rax], eax; call rax
HEAP = 0x7F0000000000
MAPS = ("00400000-00410000 r-xp 00000000 fe:01 7 /bin/app", "00600000-00602000 rw-p 00000000 00:00 0 [stack]",
        "7f0000000000-7f0000010000 rw-p 00000000 00:00 0", "7f0000010000-7f0000011000 ---p 00000000 00:00 0")


def crashed(code, registers, signal=11, flags=1, address=0, cpu=dumps.AMD64, maps=MAPS):
    dump = dumps.Dump(cpu=cpu)
    pc, sp = {dumps.AMD64: ("rip", "rsp"), dumps.ARM64: ("pc", "sp"), dumps.X86: ("eip", "esp")}[cpu]
    dump.threads.append((1, {pc: APP, sp: 0x601000, **registers}, 0x601000, bytes(64)))
    dump.memory.append((APP, code + bytes(16)))
    dump.stream(0x47670009, utf8(dump, *maps))
    return dump.crash(1, signal, flags, address)


def region(address, size, protection, state=0x1000):
    return struct.pack("<QQIIQIIII", address, address, protection, 0, size, state, protection, 0x20000, 0)


def crashed_windows(code, registers, exception, address, *parameters, regions=()):
    dump = dumps.Dump(platform=dumps.WINDOWS, version=(10, 0, 19045))
    dump.threads.append((1, {"rip": APP, "rsp": 0x601000, **registers}, 0x601000, bytes(64)))
    dump.memory.append((APP, code + bytes(16)))
    dump.stream(16, struct.pack("<IIQ", 16, 48, len(regions)) + b"".join(region(*r) for r in regions))
    return dump.crash(1, exception, 0, address, list(parameters))


def analysis(work, dump):
    return json.loads(symbolicate(work, dump, "-f", "json"))["details"]["crash_analysis"]


def crash_info(work, dump):
    return json.loads(symbolicate(work, dump, "-f", "minidump-json"))["crash_info"]


def test_null_pointer_offset_is_found(work, files):
    dump = crashed(LOAD, {"rax": 0}, address=8)
    answer = crash_info(work, dump)
    equal(answer["adjusted_address"], {"kind": "null-pointer", "offset": "0x0000000000000008"})
    equal(answer["memory_accesses"], [{"address": "0x0000000000000008", "size": 4, "access_type": "read"}])
    equal((answer["instruction"], answer["possible_bit_flips"], answer["crash_inconsistencies"], answer["instruction_pointer_update"]),
          ("mov eax, dword [rax + 0x8]", None, [], None))
    contains(symbolicate(work, dump, "-f", "full"), "\nCode:       mov eax, dword [rax + 0x8]\n", "\nAccesses:   read of 4 bytes at 0x8\n",
             "\nAddress:    a null pointer + 0x8\n")
    equal(analysis(work, crashed(CALL, {"rax": 0}))["adjusted_address"], {"kind": "null-pointer", "offset": "0x0"})


def test_jump_and_call_targets_are_shown(work, files):
    """To what a register holds, or memory does; what is not known is not told."""
    dump = crashed(CALL, {"rax": 0x1234}, address=0x1234)
    equal([crash_info(work, dump)[key] for key in ("instruction_pointer_update", "memory_accesses")],
          [{"address": "0x0000000000001234"}, [{"address": "0x0000000000600ff8", "size": 8, "access_type": "write"}]])
    contains(symbolicate(work, dump, "-f", "full"), "\nCode:       call rax\n", "\nJumps to:   0x1234\n")
    for pointer, wanted in ((0x601010, {"address": "0x55667788"}), (0x700000, None)):
        dump = crashed(b"\xff\x20", {"rax": pointer}, address=pointer)  # jmp [rax]
        dump.threads[0] = (*dump.threads[0][:3], bytes(16) + struct.pack("<6Q", 0x55667788, *[0] * 5))
        equal(analysis(work, dump)["instruction_pointer_update"], wanted)


def test_dump_without_exception_has_no_analysis(work, files):
    dump = crashed(STORE, {"rax": 8})
    dump.exception = None
    equal("crash_analysis" in json.loads(symbolicate(work, dump, "-f", "json")).get("details", {}), False)
    answer = crash_info(work, dump)
    equal([answer[key] for key in ("instruction", "memory_accesses", "adjusted_address", "possible_bit_flips", "crash_inconsistencies")], [None] * 5)


def test_non_canonical_addresses_are_found(work, files):
    bad = HEAP + 0x1000 | 1 << 48
    answer = analysis(work, crashed(LOAD, {"rax": bad}, flags=0x80))
    equal(answer["adjusted_address"], {"kind": "non-canonical", "address": hex(bad + 8)})
    details = {"was_non_canonical": True, "is_null": False, "was_low": False, "nearby_registers": 0, "poison_registers": False}
    equal(answer["possible_bit_flips"], [
        {"address": hex(HEAP + 0x1008), "details": details, "confidence": 0.925, "source_register": None},
        {"address": hex(HEAP + 0x1000), "details": details, "confidence": 0.925, "source_register": "rax"}])
    equal(analysis(work, crashed(LOAD, {"rax": bad}, flags=1, address=bad + 8))["adjusted_address"], None, "the system tells it")


def test_possible_bit_flips_are_found(work, files):
    bad = HEAP + 0x1000 ^ 1 << 40
    dump = crashed(STORE, {"rax": bad, "rbx": HEAP + 0x1800, "rcx": HEAP + 0x800}, address=bad)
    found = analysis(work, dump)["possible_bit_flips"]
    equal([(f["address"], f["source_register"], f["details"]["nearby_registers"], round(f["confidence"], 9)) for f in found],
          [(hex(HEAP + 0x1000), None, 2, 0.6625), (hex(HEAP + 0x1000), "rax", 2, 0.6625)])
    contains(symbolicate(work, dump, "-f", "full"), f"\nBit flip:   {HEAP + 0x1000:#x} may have been meant by rax, confidence 0.66")
    poisoned = crashed(STORE, {"rax": bad, "rdx": 0xE5E5E5E5E5E5E5E5}, address=bad)
    equal([f["confidence"] for f in analysis(work, poisoned)["possible_bit_flips"]], [0.125] * 2)
    equal([(f["details"]["was_low"], f["confidence"]) for f in analysis(work, crashed(STORE, {"rax": 0x1000}, address=0x1000))["possible_bit_flips"]
           if f["address"] == "0x0"], [(True, 0.4375)] * 2)
    for close in (HEAP + 0x11001, HEAP + 0x1000):
        equal(analysis(work, crashed(STORE, {"rax": close}, address=close))["possible_bit_flips"], None)


def test_guard_page_accesses_and_stack_overflows_are_found(work, files):
    guard = HEAP + 0x10010
    answer = analysis(work, crashed(STORE, {"rax": guard}, flags=2, address=guard))
    equal(answer["memory_accesses"], [{"address": hex(guard), "size": 4, "is_likely_guard_page": True, "access_type": "write"}])
    equal(answer["is_likely_stack_overflow"], False)
    overflow = crashed(PUSH, {"rsp": 0x600000}, address=0x5FFFF8)
    equal(analysis(work, overflow)["is_likely_stack_overflow"], True)
    contains(symbolicate(work, overflow, "-f", "full"), "\nAccesses:   write of 8 bytes at 0x5ffff8\n", "\nStack:      probably overflowed\n")


def test_crash_inconsistencies_are_found(work, files):
    regions = [(0x10000, 0x1000, 4), (0x11000, 0x1000, 1), (0x20000, 0x1000, 0, 0x10000)]
    violation = 0xC0000005
    for code, registers, exception, parameters, wanted in (
            (STORE, {"rax": 0x11010}, violation, (1, 0x11010), []),
            (STORE, {"rax": 0x10010}, violation, (1, 0x10010), ["access_violation_when_access_allowed"]),
            (STORE, {"rax": 0x11010}, violation, (0, 0x11010), ["crashing_access_not_found_in_memory_accesses"]),
            (STORE, {"rax": 0x20010}, violation, (1, 0x20018), ["crashing_access_not_found_in_memory_accesses"]),
            (LOAD, {"rax": 0x20010}, violation, (0, 2**64 - 1), ["non_canonical_address_falsely_reported"]),
            (LOAD, {"rax": 1 << 60}, violation, (0, 2**64 - 1), []),
            (NOP, {}, 0xC0000094, (), ["int_div_by_zero_not_possible"]),
            (b"\xf7\xf1", {}, 0xC0000094, (), []),
            (NOP, {}, 0xC0000096, (), ["priv_instruction_crash_without_priv_instruction"]),
            (b"\xf4", {}, 0xC0000096, (), [])):
        dump = crashed_windows(code, registers, exception, APP, *parameters, regions=regions)
        equal(crash_info(work, dump)["crash_inconsistencies"], wanted, (code, registers, parameters))
    contains(symbolicate(work, crashed(NOP, {}, signal=8, flags=1, address=APP), "-f", "full"), "\nDoubt:      reason is a division by zero, but the instruction does not divide\n")


def test_other_processors_are_analysed(work, files):
    for cpu, code, registers, text in ((dumps.ARM64, bytes.fromhex("200840b9"), {"x1": 0}, "ldr w0, [x1, #0x8]"),
                                       (dumps.X86, LOAD, {"eax": 0}, "mov eax, dword [eax + 0x8]")):
        dump = crashed(code, registers, address=8, cpu=cpu)
        answer = analysis(work, dump)
        equal((answer["instruction"].replace("\t", " "), answer["adjusted_address"]["kind"], answer["memory_accesses"]),
              (text, "null-pointer", [{"address": "0x8", "size": 4, "access_type": "read"}]))
        answer = crash_info(work, dump)
        equal((answer["instruction"], answer["memory_accesses"], answer["adjusted_address"]), (None, None, None), "the format has x86-64 alone")


def test_dump_without_code_has_no_instruction(work, files):
    dump = crashed(STORE, {}, address=0x45)
    dump.memory = []
    answer = analysis(work, dump)
    equal((answer["instruction"], answer["memory_accesses"], answer["crash_inconsistencies"]), (None, None, []))
    assert "\nCode:" not in symbolicate(work, dump, "-f", "full")
