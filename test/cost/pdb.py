"""Program databases whose records refer to the same code, or the same types, again and again."""
import struct

PAGE = 512
END, GPROC, SITE, SITE_END = 6, 0x1110, 0x114D, 0x114E
ARRAY, STRUCTURE, ARGUMENTS, PROCEDURE, FUNCTION_ID = 0x1503, 0x1505, 0x1201, 0x1008, 0x1601
FORWARD = 0x80


def container(streams):
    """Streams one after the other, each in pages of its own."""
    pages, body, lists = 3, b"", []
    for stream in streams:
        count = -(-len(stream) // PAGE)
        lists.append(range(pages, pages + count))
        pages += count
        body += stream.ljust(count * PAGE, b"\0")
    directory = struct.pack(f"<I{len(streams)}I", len(streams), *map(len, streams))
    directory += b"".join(struct.pack("<I", page) for pages_of in lists for page in pages_of)
    own = range(pages, pages + -(-len(directory) // PAGE))
    block_map = struct.pack(f"<{len(own)}I", *own)
    head = struct.pack("<32s6I", b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0", PAGE, 1, pages + len(own) + 1, len(directory), 0,
                       pages + len(own))
    return head.ljust(3 * PAGE, b"\0") + body + directory.ljust(len(own) * PAGE, b"\0") + block_map.ljust(PAGE, b"\0")


def record(kind, data):
    data += bytes(-(len(data) + 2) % 4)
    return struct.pack("<HH", len(data) + 2, kind) + data


def types(records):
    data = b"".join(records)
    return struct.pack("<5I", 20040203, 56, 0x1000, 0x1000 + len(records), len(data)).ljust(56, b"\0") + data


def pdb(symbols, parts=b"", type_records=(), ids=(), omap=None, back=None):
    """One module; `parts` are its C13 subsections, `back` the map from the rearranged image to what symbols speak of."""
    symbols = struct.pack("<I", 4) + symbols
    module = struct.pack("<I28xHHIII16x", 0, 0, 6, len(symbols), 0, len(parts)) + b"a.obj\0a.obj\0"
    module += bytes(-len(module) % 4)
    headers = struct.pack("<11H", *([0xFFFF] * 3), 0xFFFF if back is None else 8, 0xFFFF if omap is None else 7, 5, *([0xFFFF] * 5))
    dbi = struct.pack("<iIIHHHHHHIIIIIIIIHHI", -1, 19990903, 1, 0xFFFF, 0, 0xFFFF, 0, 0xFFFF, 0, len(module), 0, 0, 0, 0, 0,
                      len(headers), 0, 0, 0x8664, 0)
    info = struct.pack("<III16sIIIII", 20000404, 0, 1, bytes(range(16)), 0, 0, 1, 0, 0)
    section = struct.pack("<8sIIIIIIHHI", b".text", 1 << 28, 0x1000, 0, 0, 0, 0, 0, 0, 0x60000020)
    return container([b"", info, types(type_records), dbi + module + headers, types(ids), section, symbols + parts, omap or b"", back or b""])


def procedure(offset, size, name, kind=0):
    return record(GPROC, struct.pack("<8I", 0, 0, 0, size, 0, 0, kind, offset) + struct.pack("<HB", 1, 0) + name + b"\0")


def part(kind, data):
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 4)


def lines(offset, size, count):
    rows = b"".join(struct.pack("<II", i * size // count, i + 1) for i in range(count))
    return part(0xF2, struct.pack("<IHHIIII", offset, 1, 0, size, 0, count, 12 + len(rows)) + rows)


FILES = part(0xF4, struct.pack("<IBB2x", 0, 0, 0))


def folded(size):
    """Functions at one place, each with lines that begin there."""
    count = size // 130
    symbols = b"".join(procedure(0, 64, b"f%d" % i) + record(END, b"") for i in range(count))
    return pdb(symbols, FILES + b"".join(lines(0, 64, 2) for _ in range(count)))


def cut_up(size):
    """Functions over all of the code, which OMAP has cut into pieces."""
    count = size // 80
    omap = b"".join(struct.pack("<II", 0x1000 + 16 * i, 0x100000 + 16 * (count - i) * 2) for i in range(count))
    symbols = b"".join(procedure(0, 16 * count, b"f") + record(END, b"") for _ in range(count))
    return pdb(symbols, FILES + lines(0, 16 * count, count), omap=omap)


def cut_up_calls(size):
    """One function in many pieces, with many inlined calls that lie in all of them."""
    count = size // 60
    omap = b"".join(struct.pack("<II", 0x1000 + 16 * i, 0x100000 + 16 * (count - i) * 2) for i in range(count))
    length = struct.pack(">I", 0xC0000000 | 16 * count)
    site = record(SITE, struct.pack("<III", 0, 0, 0x1000) + b"\x0c" + length + b"\0") + record(SITE_END, b"")
    symbols = procedure(0, 16 * count, b"f") + site * count + record(END, b"")
    inlinees = part(0xF6, struct.pack("<IIII", 0, 0x1000, 0, 1))
    ids = [record(FUNCTION_ID, struct.pack("<II", 0, 0) + b"i\0")]
    return pdb(symbols, FILES + inlinees + lines(0, 16 * count, count), ids=ids, omap=omap)


def put_in(size):
    """Code that was put in for all of the source, again and again: of every function each of it is a piece."""
    count = size // 90
    omap = b"".join(struct.pack("<II", 0x1000 + 16 * i, 0x100000 + 16 * (count - i) * 2) for i in range(count))
    back = b"".join(struct.pack("<II", 0x8000000 + 16 * count * i, 0x1000) for i in range(count))
    symbols = b"".join(procedure(16 * i, 16, b"f") + record(END, b"") for i in range(count))
    return pdb(symbols, FILES + lines(0, 16 * count, count), omap=omap, back=back)


def put_in_once(size):
    """The same for nearly all of the source at once, and one by one for a little of it."""
    count = size // 90
    omap = struct.pack("<II", 0x1000, 0x100000)
    back = struct.pack("<II", 0x8000000, 0x1000)
    back += b"".join(struct.pack("<II", 0x9000000 + i, 0x1001) for i in range(count))
    symbols = b"".join(procedure(16 * i, 16, b"f") + record(END, b"") for i in range(count))
    return pdb(symbols, FILES + lines(0, 16 * count, count), omap=omap, back=back)


def declared_types(size):
    """Functions whose arguments are arrays of types that are only declared, and defined somewhere."""
    count, records, symbols = size // 220, [], b""

    def structure(name, properties, length):
        return record(STRUCTURE, struct.pack("<HHIIIH", 0, properties, 0, 0, 0, length) + name + b"\0")

    for i in range(count):
        first = 0x1000 + len(records)
        records += [structure(b"type%d" % i, FORWARD, 0), record(ARRAY, struct.pack("<IIH", first, 0x74, 24) + b"\0"),
                    record(ARGUMENTS, struct.pack("<II", 1, first + 1)),
                    record(PROCEDURE, struct.pack("<IBBHI", 3, 0, 0, 1, first + 2))]
        symbols += procedure(16 * i, 16, b"f", first + 3) + record(END, b"")
    records += [structure(b"type%d" % i, 0, 8) for i in range(count)]
    return pdb(symbols, type_records=records)


LOOKUP, DUMP = ["lookup", "--jobs", "1", "-e", "{file}", "0x1000"], ["dump-syms", "-j", "1", "-d", "-o", "/dev/null", "{file}"]
GENERATORS = {
    "folded": (folded, LOOKUP),
    "folded_text": (folded, DUMP),
    "cut_up": (cut_up, LOOKUP),
    "cut_up_calls": (cut_up_calls, LOOKUP),
    "cut_up_calls_text": (cut_up_calls, DUMP),
    "put_in": (put_in, LOOKUP),
    "put_in_once": (put_in_once, LOOKUP),
    "declared_types": (declared_types, LOOKUP),
}
