"""COFF object files whose sections share bytes, relocations or names."""
import struct

from pdb import END, FILES, lines, part, record

PROCEDURE = 0x1110
CODE, DEBUG = 0x60000020, 0x42100040


def coff(sections, data_at, data, symbols=(), strings=b""):
    """`sections`: (name, size, offset in the file, offset of relocations, their number, flags); symbols: (name offset, value, section)."""
    head = struct.pack("<HHIIIHH", 0x8664, len(sections), 0, data_at + len(data), len(symbols), 0, 0)
    for name, size, at, relocations, count, flags in sections:
        head += struct.pack("<8sIIIIIIHHI", name, 0, 0, size, at, relocations, 0, count, 0, flags)
    assert len(head) <= data_at, (len(head), data_at)
    table = b"".join(struct.pack("<IIIHHBB", 0, name, value, section, 0x20, 2, 0) for name, value, section in symbols)
    return head + bytes(data_at - len(head)) + data + table + struct.pack("<I", 4 + len(strings)) + strings


def shared_contents(size):
    """Sections of debug information that are all the same bytes, with the same relocations."""
    count = size // 3 // 40
    body = struct.pack("<I", 4) + FILES + lines(0, 64, max(1, size // 3 // 8))
    entries = min(0xFFFE, size // 3 // 10)
    at = 20 + 40 * (count + 1)
    relocations = b"".join(struct.pack("<IIH", i * 4 % (len(body) - 4), 0, 11) for i in range(entries))
    sections = [(b".text", 64, at, 0, 0, CODE)]
    sections += [(b".debug$S", len(body), at, at + len(body), entries, DEBUG)] * count
    return coff(sections, at, body + relocations, [(4, 0, 1)], b"f\0")


def symbol_names(size):
    """Symbols whose names are the ends of one long text."""
    count = size // 2 // 18
    symbols = [(4 + i * (size // 2 // count), i % 64, 1) for i in range(count)]
    return coff([(b".text", 64, 100, 0, 0, CODE)], 100, bytes(64), symbols, b"n" * (size // 2) + b"\0")


def folded(size):
    """Functions at one place, each with lines that begin there."""
    count = size // 130
    data = b"".join(record(PROCEDURE, struct.pack("<8I", 0, 0, 0, 64, 0, 0, 0, 0) + struct.pack("<HB", 1, 0) + b"f%d\0" % i) + record(END, b"")
                    for i in range(count))
    body = struct.pack("<I", 4) + part(0xF1, data) + FILES + b"".join(lines(0, 64, 2) for _ in range(count))
    return coff([(b".text", 64, 100, 0, 0, CODE), (b".debug$S", len(body), 200, 0, 0, DEBUG)], 200, body)


READERS = [["dump-syms", "--inlines", "{file}"], ["inspect", "--verify", "--symbols", "{file}"]]
GENERATORS = {f"{make.__name__} {command[0]}": (make, command) for make in (shared_contents, symbol_names, folded) for command in READERS}
