"""Split DWARF: a program whose units are in a package beside it."""
import struct

from elf import *

LOOKUP = ["lookup", "-e", "{file}", "--symcache-out", "{out}"]

SKELETON_UNIT, DWO_NAME, ADDR_BASE = 0x4A, 0x76, 0x73
SKELETON, SPLIT = 4, 5
INFO, ABBREV, STR_OFFSETS = 1, 3, 6  # columns of the index


def unit_of(kind, dwo_id, entries, abbrevs=0):
    return u32(16 + len(entries)) + struct.pack("<HBBIQ", 5, kind, 8, abbrevs, dwo_id) + entries


SKELETONS = abbrev(1, SKELETON_UNIT, 0, (DWO_NAME, STRING), (LOW_PC, ADDR))
CODE = abbrev(1, COMPILE_UNIT, 1) + abbrev(2, SUBPROGRAM, 0, (NAME, STRING), (LOW_PC, ADDR), (HIGH_PC, DATA4)) + b"\0"


def functions(count, first=0):
    return b"\1" + b"".join(b"\2f\0" + u64(0x1000 + 16 * (first + i)) + u32(8) for i in range(count)) + b"\0"


def index(rows, slots=None):
    """`rows`: (id, {column: (offset, size)}). `slots`: how many the table has, else twice as many as there are rows."""
    columns = sorted(rows[0][1])
    count = slots or 1 << (2 * len(rows)).bit_length()
    ids, numbers = [0] * count, [0] * count
    for number, (dwo_id, _) in enumerate(rows):
        at, step = dwo_id & count - 1, dwo_id >> 32 & count - 1 | 1
        while numbers[at]:
            at = at + step & count - 1
        ids[at], numbers[at] = dwo_id, number + 1
    out = struct.pack("<HHIII", 5, 0, len(columns), len(rows), count)
    out += b"".join(map(u64, ids)) + b"".join(map(u32, numbers)) + b"".join(map(u32, columns))
    out += b"".join(u32(row[c][0]) for _, row in rows for c in columns)
    return out + b"".join(u32(row[c][1]) for _, row in rows for c in columns)


def files(skeletons, rows, info, abbrevs=CODE, slots=None, **more):
    main = elf({".debug_abbrev": SKELETONS + b"\0", ".debug_info": skeletons})
    package = elf({".debug_info.dwo": info, ".debug_abbrev.dwo": abbrevs, ".debug_cu_index": index(rows, slots),
                   **{"." + name.replace("__", "."): data for name, data in more.items()}})
    return {"": main, ".dwp": package}


def skeleton(dwo_id):
    return unit_of(SKELETON, dwo_id, b"\1a\0" + u64(0x1000))


def one_unit_for_all(size):
    """Many skeletons of one unit."""
    info = unit_of(SPLIT, 7, functions(size // 2 // 15))
    return files(skeleton(7) * (size // 2 // 31), [(7, {INFO: (0, len(info)), ABBREV: (0, len(CODE))})], info)


def overlapping_units(size):
    """Units whose parts of the sections are all of them."""
    count = size // 160
    info = b"".join(unit_of(SPLIT, i + 1, functions(2, i)) for i in range(count))
    rows = [(i + 1, {INFO: (0, len(info)), ABBREV: (0, len(CODE))}) for i in range(count)]
    return files(b"".join(skeleton(i + 1) for i in range(count)), rows, info)


def one_chain_of_slots(size):
    """Ids that all belong into one slot of a table that is nearly full."""
    count = 1 << (size // 120).bit_length() - 1
    ids = [(i + 1) << 40 for i in range(count - 1)]
    info = unit_of(SPLIT, ids[0], functions(1))
    rows = [(i, {INFO: (0, len(info)), ABBREV: (0, len(CODE))}) for i in ids]
    return files(b"".join(skeleton(i) for i in ids), rows, info, slots=count)


def ids_that_are_not_there(size):
    """Skeletons that look through a table without a free slot."""
    count = 1 << (size // 100).bit_length() - 1
    ids = [(i + 1) << 40 for i in range(count)]
    info = unit_of(SPLIT, ids[0], functions(1))
    rows = [(i, {INFO: (0, len(info)), ABBREV: (0, len(CODE))}) for i in ids]
    return files(b"".join(skeleton((i << 40) + 0x100000) for i in range(count)), rows, info, slots=count)


def one_abbreviation_table(size):
    """Units that all read one long table of abbreviations."""
    table = CODE[:-1] + b"".join(abbrev(3 + i, 0x34, 0, (NAME, STRP)) for i in range(size // 2 // 8)) + b"\0"
    count = size // 2 // 120
    parts = [unit_of(SPLIT, i + 1, functions(1, i)) for i in range(count)]
    offsets = [sum(map(len, parts[:i])) for i in range(count)]
    rows = [(i + 1, {INFO: (offsets[i], len(parts[i])), ABBREV: (0, len(table))}) for i in range(count)]
    return files(b"".join(skeleton(i + 1) for i in range(count)), rows, b"".join(parts), table)


GENERATORS = {f.__name__.replace("_", " "): (f, LOOKUP) for f in (
    one_unit_for_all, overlapping_units, one_chain_of_slots, ids_that_are_not_there, one_abbreviation_table)}
