"""ELF files by hand: sections, and what DWARF is made of."""
import struct


def uleb(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def u32(value):
    return struct.pack("<I", value)


def u64(value):
    return struct.pack("<Q", value)


def elf(sections, code=None, base=0x1000):
    """A 64-bit x86 program with these sections: {name: bytes} or {name: (bytes, type, link, entry size)}. It is loaded at 0 with
    all that is behind; with `code` of its own, that is loaded at `base`, and nothing else."""
    names, table, body = b"\0", [(0,) * 10], b""
    text = {".text": code or b"\x90" * 16, **sections}
    start = 64 + 56
    order = list(text) + [".shstrtab"]
    for name in order:
        offset = len(names)
        names += name.encode() + b"\0"
        content, kind, link, entry = b"", 1, 0, 0
        if name == ".shstrtab":
            content, kind = names, 3
        elif isinstance(text[name], tuple):
            content, kind, link, entry = text[name]
            link = order.index(link) + 1 if link else 0
        else:
            content = text[name]
        flags = 6 if name == ".text" else 0
        table.append((offset, kind, flags, base if flags else 0, start + len(body), len(content), link, 0, 1, entry))
        body += content
    body += b"\0" * (-len(body) % 8)
    head = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, start + len(body), 0, 64, 56, 1, 64, len(table), len(table) - 1)
    place = (start, base, base, len(code), 1 << 24) if code else (0, 0, 0, 1 << 40, 1 << 40)
    load = struct.pack("<IIQQQQQQ", 1, 5, *place, 4096)
    return head + load + body + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in table)


# ---- DWARF 5 ----

COMPILE_UNIT, SUBPROGRAM, INLINED = 0x11, 0x2E, 0x1D
NAME, LOW_PC, HIGH_PC, STMT_LIST, RANGES, ORIGIN, CALL_FILE, CALL_LINE = 0x03, 0x11, 0x12, 0x10, 0x55, 0x31, 0x58, 0x59
DECLARATION, COMP_DIR, SPECIFICATION = 0x3C, 0x1B, 0x47
ADDR, DATA4, STRING, STRP, SEC_OFFSET, REF_ADDR, REF4, FLAG_PRESENT, DATA1, DATA8, LINE_STRP = (
    0x01, 0x06, 0x08, 0x0E, 0x17, 0x10, 0x13, 0x19, 0x0B, 0x07, 0x1F)

UNIT_HEADER = 12


def abbrev(code, tag, children, *attributes):
    pairs = b"".join(uleb(a) + uleb(f) for a, f in attributes)
    return uleb(code) + uleb(tag) + bytes([children]) + pairs + b"\0\0"


def unit(entries, abbrevs=0):
    return u32(8 + len(entries)) + b"\x05\0\x01\x08" + u32(abbrevs) + entries


def range_list(ranges):
    """One list, behind the header of its table (12 bytes)."""
    body = b"".join(b"\x06" + u64(low) + u64(high) for low, high in ranges) + b"\0"
    return u32(8 + len(body)) + b"\x05\0\x08\0" + u32(0) + body


def line_program(code, directories=(b"/d",), files=((b"f.c", 0),), form=STRING):
    """Version 5; names are inline, or offsets of `form` as bytes."""
    end = b"\0" if form == STRING else b""
    tables = b"\x01\x01" + uleb(form) + uleb(len(directories)) + b"".join(d + end for d in directories)
    tables += b"\x02\x01" + uleb(form) + b"\x02\x0b" + uleb(len(files))
    tables += b"".join(name + end + bytes([directory]) for name, directory in files)
    head = b"\x01\x01\x01\xfb\x0e\x0d" + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + tables
    body = b"\x05\0\x08\0" + u32(len(head)) + head + code
    return u32(len(body)) + body


def sequence(start, rows, step=1):
    """`rows` rows, `step` bytes apart."""
    row = b"\x01\x02" + uleb(step) + b"\x03\x01" # copy, advance_pc, advance_line
    return b"\0\x09\x02" + u64(start) + row * rows + b"\0\x01\x01"
