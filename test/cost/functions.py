"""Files whose debug information refers to its own parts again and again. Each takes a size in bytes, about which it gets."""
from elf import *

CONVERT = ["lookup", "-e", "{file}", "--symcache-out", "{out}"]

ROOT = abbrev(1, COMPILE_UNIT, 1, (LOW_PC, ADDR))
ROOT_LINES = abbrev(1, COMPILE_UNIT, 1, (LOW_PC, ADDR), (STMT_LIST, SEC_OFFSET))
CODE = abbrev(2, SUBPROGRAM, 1, (NAME, STRING), (LOW_PC, ADDR), (HIGH_PC, DATA4))
CODE_RANGES = abbrev(2, SUBPROGRAM, 1, (NAME, STRING), (RANGES, SEC_OFFSET))
CALL_RANGES = abbrev(3, INLINED, 0, (RANGES, SEC_OFFSET))
root = b"\x01" + u64(0x1000)
root_lines = root + u32(0)
END = b"\0\0"


def code(address, size, name=b"f"):
    return b"\x02" + name + b"\0" + u64(address) + u32(size)


def dwarf(abbrevs, entries, **more):
    return elf({".debug_abbrev": abbrevs + b"\0", ".debug_info": unit(entries),
                **{"." + name: content for name, content in more.items()}})


def apart(count):
    return [(0x1000 + 16 * i, 0x1008 + 16 * i) for i in range(count)]


def list_of_many_calls(size):
    count = size // 22
    calls = (b"\x03" + u32(12)) * count
    return dwarf(ROOT + CODE + CALL_RANGES, root + code(0x1000, 16 * count) + calls + END,
                 debug_rnglists=range_list(apart(count)))


def list_of_many_functions(size):
    count = size // 26
    functions = (b"\x02f\0" + u32(12) + b"\0") * count
    return dwarf(ROOT + CODE_RANGES, root + functions + END, debug_rnglists=range_list(apart(count)))


def function_of_many_ranges(size):
    """Every range asks for every call."""
    count = size // 30
    call = abbrev(3, INLINED, 0, (LOW_PC, ADDR), (HIGH_PC, DATA1))
    calls = b"".join(b"\x03" + u64(low) + b"\x01" for low, _ in apart(count))
    return dwarf(ROOT + CODE_RANGES + call, root + b"\x02f\0" + u32(12) + calls + END,
                 debug_rnglists=range_list(apart(count)))


def nested_lists(size):
    """Calls in calls, all over one list whose ranges overlap."""
    count = size // 24
    calls = (b"\x03" + u32(12)) * count
    call = abbrev(3, INLINED, 1, (RANGES, SEC_OFFSET))
    ranges = [(0x1000 + 2 * i, 0x1000 + 2 * i + 64) for i in range(count)]
    return dwarf(ROOT + CODE + call, root + code(0x1000, 16 * count) + calls[:5 * 400] + b"\0" * 402,
                 debug_rnglists=range_list(ranges))


def overlapping_calls(size):
    """Long calls cut by short ones at another depth."""
    count = size // 28
    call = abbrev(3, INLINED, 1, (LOW_PC, ADDR), (HIGH_PC, DATA4))
    calls = b"".join(b"\x03" + u64(0x1000 + 2 * i) + u32(2) + b"\x03" + u64(0x1000 + i) + u32(1 << 20) + b"\0\0"
                     for i in range(count))
    return dwarf(ROOT + CODE + call, root + code(0x1000, 1 << 21) + calls + END)


def suffixes_of_a_name(size):
    """Every function has another end of one long text as its name."""
    count = size // 33
    named = abbrev(2, SUBPROGRAM, 0, (NAME, STRP), (LOW_PC, ADDR), (HIGH_PC, DATA4))
    text = b"".join(b"%07x" % (i * 0x9E3779B1 & 0xFFFFFFF) for i in range(size // 14)) + b"\0"
    functions = b"".join(b"\x02" + u32(i) + u64(0x1000 + 16 * i) + u32(8) for i in range(count))
    return dwarf(ROOT + named, root + functions + b"\0", debug_str=text)


def suffixes_of_a_path(size):
    """The same of the files that lines belong to."""
    count = size // 34
    text = (b"p" * 61 + b"/q/") * (size // 128) + b"\0"
    steps = b"\0\x09\x02" + u64(0x1000) + b"".join(b"\x04" + uleb(i) + b"\x01\x02\x01" for i in range(count)) + b"\0\x01\x01"
    program = line_program(steps, (u32(0),), [(u32(i), 0) for i in range(count)], LINE_STRP)
    return dwarf(ROOT_LINES + CODE, root_lines + code(0x1000, count) + END, debug_line=program, debug_line_str=text)


def units_over_one_line_program(size):
    units = size // 60
    line = line_program(sequence(0x1000, size // 20))
    info = b"".join(unit(root_lines + code(0x1000, 8 + i) + END) for i in range(units))
    return elf({".debug_abbrev": ROOT_LINES + CODE + b"\0", ".debug_info": info, ".debug_line": line})


def units_over_one_file_table(size):
    units = size // 60
    line = line_program(b"", (b"d",) * (size // 6), ((b"f", 0),) * (size // 12))
    info = b"".join(unit(root_lines + code(0x1000 + 16 * i, 8) + END) for i in range(units))
    return elf({".debug_abbrev": ROOT_LINES + CODE + b"\0", ".debug_info": info, ".debug_line": line})


def files_in_one_long_directory(size):
    """Of the name that is looked for."""
    files = ((b"f", 1),) * (size // 6)
    return dwarf(ROOT_LINES + CODE, root_lines + code(0x1000, 8) + END, debug_line=line_program(sequence(0x1000, 2), (b"/d", b"/" + b"d" * (size // 3)), files))


def files_in_a_directory_of_4_kib(size):
    """Which is not too long to be joined."""
    files = ((b"f", 1),) * (size // 4)
    return dwarf(ROOT_LINES + CODE, root_lines + code(0x1000, 8) + END, debug_line=line_program(sequence(0x1000, 2), (b"/d", b"/" + b"d" * 4095), files))


def overlapping_sequences(size):
    count = size // 50
    line = line_program(b"".join(sequence(0x1000 + i, 2, 1 << 20) for i in range(count)))
    functions = b"".join(code(0x1000 + i, 1 << 20) + b"\0" for i in range(count))
    return dwarf(ROOT_LINES + CODE, root_lines + functions + b"\0", debug_line=line)


def overlapping_functions(size):
    """All lines belong to every function."""
    count = size // 26
    line = line_program(sequence(0x1000, count))
    functions = b"".join(code(0x1000, 1 + i) + b"\0" for i in range(count))
    return dwarf(ROOT_LINES + CODE, root_lines + functions + b"\0", debug_line=line)


def overlapping_abbreviations(size):
    """Each unit's table begins one abbreviation later."""
    count = size // 44
    filler = b"".join(abbrev(3 + i % 100, 0x34, 0, (NAME, STRP)) for i in range(count))
    table = filler + ROOT + CODE + b"\0"
    step = len(abbrev(3, 0x34, 0, (NAME, STRP)))
    info = b"".join(unit(root + code(0x1000 + 16 * i, 8) + END, step * i) for i in range(count))
    return elf({".debug_abbrev": table, ".debug_info": info})


def sparse_abbreviations(size):
    """Codes too large for an array, and all entries of the last one."""
    count = size // 20
    table = ROOT + CODE + b"".join(abbrev((1 << 20) + i, 0x34, 0) for i in range(count))
    entries = uleb((1 << 20) + count - 1) * (size // 6)
    return dwarf(table, root + code(0x1000, 16) + entries + END)


def gaps_of_abbreviations(size):
    """Codes that leave gaps, in tables that are read again for every unit."""
    count = size // 45
    gaps = b"".join(abbrev(1000 * i + 1000, 0x34, 0) for i in range(64))
    tables = b"".join(abbrev(5, 0x34, 0) for _ in range(count)) + ROOT + CODE + gaps + b"\0"
    info = b"".join(unit(root + code(0x1000 + 16 * i, 8) + END, 5 * i) for i in range(count))
    return elf({".debug_abbrev": tables, ".debug_info": info})


def attributes_without_bytes(size):
    wide = abbrev(2, SUBPROGRAM, 0, (LOW_PC, ADDR), (HIGH_PC, DATA4), *((DECLARATION, FLAG_PRESENT),) * (size // 4))
    functions = (b"\x02" + u64(0x1000) + u32(8)) * (size // 26)
    return dwarf(ROOT + wide, root + functions + b"\0")


def file_table_without_bytes(size):
    formats = b"\xff" + (b"\x05" + uleb(FLAG_PRESENT)) * 255
    head = b"\x01\x01\x01\xfb\x0e\x0d" + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + b"\x01\x01\x08\0"
    head += formats + uleb(size - 1000) + b"\0" * (size - 1000)
    body = b"\x05\0\x08\0" + u32(len(head)) + head + sequence(0x1000, 2)
    return dwarf(ROOT_LINES + CODE, root_lines + code(0x1000, 16) + END, debug_line=u32(len(body)) + body)


def chains_across_units(size):
    """Names that are found at the end of chains through units with tables of their own."""
    named = abbrev(2, SUBPROGRAM, 0, (ORIGIN, REF_ADDR))
    coded = abbrev(3, SUBPROGRAM, 0, (LOW_PC, ADDR), (HIGH_PC, DATA1), (ORIGIN, REF_ADDR))
    table = ROOT + named + coded + b"".join(abbrev(4 + i, 0x34, 0) for i in range(size // 16)) + b"\0"
    links = size // 4 // (UNIT_HEADER + 15)
    length = UNIT_HEADER + len(root) + 6
    at = lambda i: length * (i % links) + UNIT_HEADER + len(root)
    info = b"".join(unit(root + b"\x02" + u32(at(i + 17)) + b"\0") for i in range(links))
    callers = b"".join(b"\x03" + u64(0x1000 + 16 * i) + b"\x08" + u32(at(31 * i)) for i in range(size // 2 // 14))
    return elf({".debug_abbrev": table, ".debug_info": info + unit(root + callers + b"\0")})


def functions_at_zero(size):
    """Firmware with many functions that the linker has dropped, and many sequences at 0; and symbols there."""
    count = size // 3 // 26
    name = b"n" * 200
    functions = b"".join(code(0, 1 + i, name if i % 8 == 0 else b"f") + b"\0" for i in range(count))
    line = line_program(b"".join(sequence(0, 2, 1 + i) for i in range(size // 3 // 24)))
    strings = b"\0" + name + b"a\0"
    symbols = b"".join(struct.pack("<IBBHQQ", 1 + i % 90, 0x12, 0, 1, 0, 1) for i in range(size // 3 // 24))
    return elf({".debug_abbrev": ROOT_LINES + CODE + b"\0", ".debug_info": unit(b"\x01" + u64(0) + u32(0) + functions + b"\0"),
                ".debug_line": line, ".strtab": (strings, 3, 0, 0), ".symtab": (symbols, 2, ".strtab", 24)}, b"\x90" * 4096, 0)


def units_without_code(size):
    """Their roots say nothing: each asks for the header of its lines."""
    table = abbrev(1, COMPILE_UNIT, 1, (STMT_LIST, SEC_OFFSET)) + CODE + b"\0"
    return elf({".debug_abbrev": table, ".debug_info": unit(b"\x01" + u32(0) + code(0x1000, 1) + END) * (size // 40),
                ".debug_line": line_program(sequence(0x1000, 20))})


GENERATORS = {f.__name__.replace("_", " "): (f, CONVERT) for f in (
    list_of_many_calls, list_of_many_functions, function_of_many_ranges, nested_lists, overlapping_calls,
    suffixes_of_a_name, suffixes_of_a_path, units_over_one_line_program, units_over_one_file_table,
    overlapping_sequences, overlapping_functions, overlapping_abbreviations, sparse_abbreviations,
    gaps_of_abbreviations, attributes_without_bytes, file_table_without_bytes, chains_across_units,
    functions_at_zero, units_without_code)}

GENERATORS |= {f.__name__.replace("_", " ") + " by path": (f, ["readers", "source_path", "{file}"]) for f in (
    files_in_one_long_directory, files_in_a_directory_of_4_kib, suffixes_of_a_path, units_over_one_file_table)}
GENERATORS |= {f.__name__.replace("_", " ") + " as written": (f, ["readers", "listing", "{file}"]) for f in (
    function_of_many_ranges, chains_across_units, units_over_one_line_program)}
