"""PDB files whose modules, names and programs are referred to again and again."""
import struct

from objects import leaf, msf, procedure

LOOKUP = ["lookup", "-e", "{file}", "--symcache-out", "{out}"]
DUMP = ["dump-syms", "{file}"]

INFO, TPI, DBI, IPI, SECTIONS, MODULE, NAMES, FRAMES, SERVER = range(1, 10)  # streams
END = struct.pack("<HH", 2, 6)


def named_streams(names):
    """{name: stream} as the info stream has it."""
    texts, pairs = b"", b""
    for name, stream in names.items():
        pairs += struct.pack("<II", len(texts), stream)
        texts += name + b"\0"
    bits = (1 << len(names)) - 1
    return struct.pack("<I", len(texts)) + texts + struct.pack("<IIIII", len(names), max(1, len(names)), 1, bits, 0) + pairs


def name_table(text):
    return struct.pack("<III", 0xEFFEEFFE, 1, len(text)) + text + struct.pack("<II", 0, 0)


def pdb(symbols, c13=b"", modules=1, ipi=(), types=(), names=b"\0", frames=b"", server=b""):
    info = struct.pack("<III", 20000404, 1, 1) + bytes(range(16))
    info += named_streams({b"/names": NAMES, b"srcsrv": SERVER} if server else {b"/names": NAMES})
    tables = [struct.pack("<IIIII", 20040203, 56, 0x1000, 0x1000 + len(t), 0).ljust(56, b"\0") + b"".join(t) for t in (types, ipi)]
    module = struct.pack("<I", 4) + symbols + c13
    entry = bytes(34) + struct.pack("<HIII", MODULE, 4 + len(symbols), 0, len(c13)) + bytes(16) + b"a\0b\0"
    entry += bytes(-len(entry) % 4)
    debug = struct.pack("<11H", *[0xFFFF] * 5 + [SECTIONS] + [0xFFFF] * 3 + [FRAMES if frames else 0xFFFF, 0xFFFF])
    dbi = struct.pack("<iII8xHHI16xIIIHHI", -1, 19990903, 1, 0xFFFF, 0, len(entry) * modules, 0, len(debug), 0, 0, 0x8664, 0)
    dbi += entry * modules + debug
    sections = b".text\0\0\0" + struct.pack("<II", 1 << 28, 4096) + bytes(20) + struct.pack("<I", 0x60000020)
    return msf([b"", info, tables[0], dbi, tables[1], sections, module, name_table(names), frames, server])


def subsection(kind, data):
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 4)


def lines(count, first=0):
    rows = b"".join(struct.pack("<II", 4 * i, 1 + i % 1000) for i in range(count))
    return subsection(0xF2, struct.pack("<IHHI", first, 1, 0, 4 * count) + struct.pack("<III", 0, count, 12 + len(rows)) + rows)


def inline_site(inlinee, annotations):
    return leaf(0x114D, struct.pack("<III", 0, 0, inlinee) + annotations)


SITE_END = struct.pack("<HH", 2, 0x114E)


def modules_of_one_stream(size):
    """Modules that all have the same symbols and lines."""
    symbols = b"".join(procedure(16 * i, 16, 0, b"f%d" % i) for i in range(size // 3 // 52))
    return pdb(symbols, lines(size // 3 // 8), modules=size // 3 // 68)


def blocks_without_end(size):
    """Procedures and blocks that never end."""
    block = leaf(0x1103, struct.pack("<IIIIH", 0, 0, 16, 0, 1) + b"\0")
    return pdb(b"".join(procedure(16 * i, 1 << 20, 0, b"f")[:-4] + block for i in range(size // 80)))


def sites_in_sites(size):
    """Inlined calls one in the other, all over the same code."""
    ids = [leaf(0x1601, struct.pack("<II", 0, 0) + b"g\0")]
    c13 = lines(16) + subsection(0xF6, struct.pack("<IIII", 0, 0x1000, 0, 1))
    count = min(size // 24, 400)
    sites = (inline_site(0x1000, b"\x03\1\x04\x0f\0") * count + SITE_END * count) * (size // 24 // count)
    return pdb(procedure(0, 1 << 20, 0, b"f")[:-4] + sites + END, c13, ipi=ids)


def sites_that_overlap(size):
    """Inlined calls beside each other that all reach over the next ones."""
    ids = [leaf(0x1601, struct.pack("<II", 0, 0) + b"g\0")]
    c13 = lines(16) + subsection(0xF6, struct.pack("<IIII", 0, 0x1000, 0, 1))
    sites = b"".join(inline_site(0x1000, b"\x03" + bytes([0xC0, i >> 16 & 255, i >> 8 & 255, i & 255]) + b"\x04\xc0\x0f\0\0") + SITE_END
                     for i in range(size // 36))
    return pdb(procedure(0, 1 << 24, 0, b"f")[:-4] + sites + END, c13, ipi=ids)


def inlinees_of_one_id(size):
    """Where an inlined function begins, again and again."""
    ids = [leaf(0x1601, struct.pack("<II", 0, 0) + b"g\0")]
    c13 = lines(16) + subsection(0xF6, struct.pack("<I", 0) + struct.pack("<III", 0x1000, 0, 1) * (size // 2 // 12))
    sites = (inline_site(0x1000, b"\x03\1\x04\1") + SITE_END) * (size // 2 // 24)
    return pdb(procedure(0, 1 << 24, 0, b"f")[:-4] + sites + END, c13, ipi=ids)


def files_of_one_name(size):
    """Files whose names are the ends of one long text."""
    text = b"\0" + b"n" * (size // 3) + b"\0"
    files = b"".join(struct.pack("<IBBH", 1 + i, 0, 0, 0) for i in range(size // 3 // 8))
    rows = b"".join(struct.pack("<III", 8 * i, 1, 20) + struct.pack("<II", 4 * i, 1) for i in range(size // 3 // 20))
    c13 = subsection(0xF4, files) + subsection(0xF2, struct.pack("<IHHI", 0, 1, 0, 1 << 20) + rows)
    return pdb(procedure(0, 1 << 20, 0, b"f"), c13, names=text)


def frames_of_one_program(size):
    """Frame data that name the ends of one long program."""
    program = b"\0" + b"$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + = " * (size // 2 // 45) + b"\0"
    frames = b"".join(struct.pack("<IIIIIIHHI", 16 * i, 16, 0, 0, 0, 1 + 45 * (i % max(1, len(program) // 45)), 0, 0, 0)
                      for i in range(size // 2 // 32))
    return pdb(procedure(0, 1 << 20, 0, b"f"), names=program, frames=frames)


def types_in_types(size):
    """Pointers to pointers, and procedures that have the last of them."""
    types = [leaf(0x1002, struct.pack("<II", 0x1000 + i - 1 if i else 3, 0x1000C)) for i in range(size // 2 // 12)]
    types.append(leaf(0x1201, struct.pack("<I", 30) + struct.pack("<I", 0x1000 + len(types) - 1) * 30))
    types.append(leaf(0x1008, struct.pack("<IBBHI", 3, 0, 0, 30, 0x1000 + len(types) - 1)))
    symbols = b"".join(procedure(16 * i, 16, 0x1000 + len(types) - 1, b"f%d" % i) for i in range(size // 2 // 52))
    return pdb(symbols, types=types)


def doubled_variables(size):
    """A source server's variables, each of which is the one before twice, for all of its files."""
    head = "SRCSRV: ini ---\r\nVERSION=2\r\nSRCSRV: variables ---\r\nV0=aaaaaaaa\r\n"
    head += "".join("V%d=%%V%d%%%%V%d%%\r\n" % (i + 1, i, i) for i in range(30))
    head += "SRCSRVTRG=http://%V30%/%var2%\r\nSRCSRV: source files ---\r\n"
    count = size // 2 // 36
    names, files, at = b"\0", b"", 1
    for i in range(count):
        name = b"c:\\%d.c" % i
        files += struct.pack("<IBBH", len(names), 0, 0, 0)
        names += name + b"\0"
        head += "c:\\%d.c*%d\r\n" % (i, i)
    rows = b"".join(struct.pack("<III", 8 * i, 1, 20) + struct.pack("<II", 4 * i, 1) for i in range(count))
    c13 = subsection(0xF4, files) + subsection(0xF2, struct.pack("<IHHI", 0, 1, 0, 1 << 20) + rows)
    server = (head + "SRCSRV: end ---\r\n").encode()
    return pdb(procedure(0, 1 << 20, 0, b"f"), c13, names=names, server=server)


READ_BY = {
    modules_of_one_stream: [LOOKUP],
    blocks_without_end: [LOOKUP],
    sites_in_sites: [LOOKUP],
    sites_that_overlap: [DUMP],
    inlinees_of_one_id: [LOOKUP],
    files_of_one_name: [LOOKUP],
    frames_of_one_program: [DUMP],
    types_in_types: [LOOKUP],
    doubled_variables: [LOOKUP],
}

GENERATORS = {f"{make.__name__.replace('_', ' ')} {command[0]}": (make, command)
              for make, commands in READ_BY.items() for command in commands}
