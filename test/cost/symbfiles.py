"""Symbfiles, and what they are made of: the code of programs, Go's line table, debug information."""
import struct

import functions
from elf import *

READ = ["readers", "symbfile", "{file}"]
PUSH = ["push-symbols", "executable", "--dry-run", "-e", "{file}", "--output", "{out}"]

TABLE, RANGE, PAD = 4, 2, 3


def message(kind, body):
    return uleb(len(body)) + uleb(kind) + body


def field(number, value):
    if isinstance(value, bytes):
        return uleb(number << 3 | 2) + uleb(len(value)) + value
    return uleb(number << 3) + uleb(value)


def record(va, length, depth=0, function=0, more=b""):
    return message(RANGE, field(12, va) + field(2, length) + field(9, function) + (field(7, depth) if depth else b"") + more)


HEAD = b"symbfile" + message(1, b"")


def table(*texts):
    return message(TABLE, b"".join(field(1, text) for text in texts))


def nested(size):
    """Functions one in the other, deeper and deeper."""
    return HEAD + table(b"f") + b"".join(record(0x1000 + i, 1 << 20, i % 1023) for i in range(size // 16))


def overlapping(size):
    """Functions that all reach far over the next ones."""
    return HEAD + table(b"f") + b"".join(record(0x1000 + i, 1 << 28) for i in range(size // 14))


def cut_by_lines(size):
    """Lines of an outer function below which deep chains go on."""
    depth = 200
    chain = b"".join(record(0x1000, 1 << 20, i) for i in range(depth))
    lines = field(8, field(1, b"\1" * (size // 2)) + field(2, b"\1\2" * (size // 4)))
    return HEAD + table(b"f") + chain + record(0x1000, 1 << 20, depth, 0, lines)


def deep_pads(size):
    """Return pads of deep chains."""
    depth = 1023
    column = b"\0" * depth
    pads = b"".join(message(PAD, field(5, 0x1000 + i) + field(2, column) + field(3, column) + field(4, column))
                    for i in range(max(1, size // 3 // depth)))
    return HEAD + table(b"f") + pads


def tables_without_use(size):
    """Tables of two texts, and a record of each that means the last one."""
    return HEAD + b"".join(table(b"f", b"%d" % i) + record(16 * i, 8, 0, 1) for i in range(size // 26))


def far_references(size):
    """A table of empty texts, and records that mean the last one of many tables."""
    many = message(TABLE, b"\x0a\0" * 200)
    return HEAD + b"".join(many + record(16 * i, 8, 0, 199) for i in range(size // 420))


def long_text(size):
    """One long text that all records have for everything."""
    more = field(10, 0) + field(11, 0)
    return HEAD + table(b"f" * (size // 2)) + b"".join(record(0x1000 + 16 * i, 8, i % 2, 0, more) for i in range(size // 2 // 18))


# ---- programs ----

def calls_in_deep_chains(size):
    """Code that is nothing but system calls, in functions one in the other."""
    code = b"\x0f\x05" * (size // 4)
    depth = min(size // 4 // 17, 500)
    name = abbrev(4, SUBPROGRAM, 0, (NAME, STRING))
    call = abbrev(3, INLINED, 1, (ORIGIN, REF4), (LOW_PC, ADDR), (HIGH_PC, DATA4))
    at = UNIT_HEADER + len(functions.root_lines)
    calls = (b"\x03" + u32(at) + u64(0x1000) + u32(len(code))) * depth + b"\0" * depth
    entries = functions.root_lines + b"\x04f\0" + functions.code(0x1000, len(code)) + calls + functions.END
    return elf({".debug_abbrev": functions.ROOT_LINES + functions.CODE + call + name + b"\0", ".debug_info": unit(entries),
                ".debug_line": line_program(sequence(0x1000, 2, len(code) - 1))}, code)


# ---- Go ----

def pclntab(names, files, values, rows):
    """Version 1.20. `rows`: (entry, name, file values, line values)."""
    functions_table = b"".join(struct.pack("<II", entry, 0) for entry, *_ in rows)
    end = len(functions_table) + 4
    bodies, table = b"", b""
    for entry, name, file, line in rows:
        table += struct.pack("<II", entry, end + len(bodies))
        bodies += struct.pack("<IIIIIIIII", entry, name, 0, 0, 0, file, line, 0, 0)
    functions_table = table + struct.pack("<I", 1 << 24) + bodies
    parts = [names, struct.pack("<I", 0) * 16, files, values, functions_table]
    at, offsets = 8 + 8 * 8, []
    for part in parts:
        offsets.append(at)
        at += len(part)
    head = struct.pack("<IBBBB", 0xFFFFFFF1, 0, 0, 1, 8) + struct.pack("<QQQ", len(rows), 1, 0x1000)
    return head + b"".join(struct.pack("<Q", o) for o in offsets) + b"".join(parts)


def go(names, files, values, rows):
    return elf({".gopclntab": pclntab(names, files, values, rows)}, b"\x90" * 16)


def go_shared_values(size):
    """Functions that share one long list of values."""
    values = b"\0" + b"\2\1" * (size // 4) + b"\0"
    rows = [(16 * i, 1, 0, 1) for i in range(size // 2 // 44)]
    return go(b"\0f\0", b"a.go\0", values, rows)


def go_suffixes(size):
    """Functions whose names are the ends of one long text."""
    names = b"\0" + b"".join(b"%07x" % (i * 0x9E3779B1 & 0xFFFFFFF) for i in range(size // 14)) + b"\0"
    rows = [(16 * i, 1 + i, 0, 1) for i in range(size // 2 // 44)]
    return go(names, b"a.go\0", b"\0\2\4\0", rows)


def go_far_files(size):
    """Functions that look long for a file that has a name."""
    values = b"\0\2\4\0" + b"\1\1\2\1" * (size // 8) + b"\0"
    rows = [(16 * i, 1, 4, 1) for i in range(size // 2 // 44)]
    return go(b"\0f\0", b"\0", values, rows)


GENERATORS = {f.__name__.replace("_", " "): (f, READ) for f in (
    nested, overlapping, cut_by_lines, deep_pads, tables_without_use, far_references)}
GENERATORS |= {f.__name__.replace("_", " "): (f, PUSH) for f in (
    calls_in_deep_chains, go_shared_values, go_suffixes, go_far_files)}


def loaded_in_part(make):
    """What the generator makes, but with no more code than programs have."""
    def made(size):
        data = make(size)
        return data[:64] + struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 1 << 24, 1 << 24, 4096) + data[120:]
    return made


GENERATORS |= {f.__name__.replace("_", " ") + " pushed": (loaded_in_part(f), PUSH) for f in (
    functions.list_of_many_calls, functions.nested_lists, functions.overlapping_calls, functions.suffixes_of_a_name,
    functions.suffixes_of_a_path)}
LIMITS = {"long text": (long_text, READ)}  # what a small file may do at least is more than this takes
