"""Files of the object formats that refer to their own parts again and again: what they cost must be in proportion to their size.

Each generator makes about `size` bytes. GENERATORS says with which commands they are read.
"""
import lzma
import random
import struct
import zlib


# ---- ELF ----

PT_LOAD, PT_NOTE = 1, 4
PF_X, PF_W, PF_R = 1, 2, 4
ET_REL, ET_EXEC = 1, 2
EM_ARM, EM_X86_64 = 40, 62
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA = 1, 2, 3, 4


class Elf:
    """An ELF file for x86-64 whose sections may have their bytes anywhere."""

    def __init__(self, kind=ET_EXEC):
        self.kind, self.body, self.sections, self.segments = kind, bytearray(64), [], []
        self.names = b"\0"

    def add(self, data):
        while len(self.body) % 8:
            self.body.append(0)
        at = len(self.body)
        self.body += data
        return at

    def name(self, text):
        self.names += text.encode() + b"\0"
        return len(self.names) - len(text) - 1

    def section(self, name, kind, at, size, flags=0, address=0, link=0, info=0):
        self.sections.append((self.name(name) if isinstance(name, str) else name, kind, flags, address, at, size, link, info))
        return len(self.sections)

    def file(self):
        names = self.add(self.names)
        self.section(".shstrtab", SHT_STRTAB, names, len(self.names))
        phoff = self.add(b"".join(struct.pack("<IIQQQQQQ", kind, *(flags or [PF_R | PF_X]), at, address, address, size, size, 1)
                                  for kind, at, address, size, *flags in self.segments))
        many = len(self.segments) >= 0xFFFF
        count = len(self.sections) + 1
        head = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, count, count - 1, len(self.segments) if many else 0, 0, 0)
        shoff = self.add(head + b"".join(
            struct.pack("<IIQQQQIIQQ", name, kind, flags, address, at, size, link, info, 1, 0)
            for name, kind, flags, address, at, size, link, info in self.sections))
        self.body[:64] = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
            "<HHIQQQIHHHHHH", self.kind, EM_X86_64, 1, 0, phoff if self.segments else 0, shoff, 0, 64, 56 if self.segments else 0,
            0xFFFF if many else len(self.segments), 64, 0, 0xFFFF)
        return bytes(self.body)


def with_text(elf):
    at = elf.add(b"\x90" * 4096)
    elf.segments.append((PT_LOAD, at, 0x10000, 4096))
    return elf.section(".text", SHT_PROGBITS, at, 4096, flags=6, address=0x10000)


def elf_notes(size):
    """PT_NOTE headers, all of the same notes."""
    elf = Elf()
    with_text(elf)
    notes = struct.pack("<III", 0, 0, 1) * (size // 2 // 12)
    at = elf.add(notes)
    elf.segments += [(PT_NOTE, at, 0, len(notes))] * (size // 2 // 56)
    return elf.file()


def elf_segments(size):
    """Code in the upper half, and segments at 0 that have none."""
    elf = Elf()
    elf.segments += [(PT_LOAD, elf.add(b"\x90" * 16), 0xFFFF << 48, 16)]
    elf.segments += [(PT_LOAD, 0, 0, 16, PF_W)] * (size // 56)
    return elf.file()


def elf_section_names(size):
    """Sections whose names are the ends of one long text."""
    elf = Elf()
    with_text(elf)
    start = len(elf.names)
    elf.names += b"n" * (size // 2) + b"\0"
    for i in range(size // 2 // 64):
        elf.section(start + i, SHT_PROGBITS, 64, 1)
    return elf.file()


def elf_symbol_names(size):
    """Symbols whose names are the ends of one long text."""
    elf = Elf()
    text = with_text(elf)
    count = size // 2 // 24
    strings = b"\0" + b"n" * (size // 2) + b"\0"
    at = elf.add(strings)
    link = elf.section(".strtab", SHT_STRTAB, at, len(strings))
    symbols = b"".join(struct.pack("<IBBHQQ", 1 + i * (size // 2 // count), 2, 0, text, 0x10000 + i % 4096, 1) for i in range(count))
    at = elf.add(symbols)
    elf.section(".symtab", SHT_SYMTAB, at, len(symbols), link=link)
    return elf.file()


def elf_untyped_symbols(size):
    """Functions that reach over each other and over symbols without type or size, in no order."""
    elf = Elf()
    text = with_text(elf)
    strings = b"\0f\0g\0"
    link = elf.section(".strtab", SHT_STRTAB, elf.add(strings), len(strings), link=0)
    symbols = b"".join(struct.pack("<IBBHQQ", 1 + 2 * (i % 2), (0, 2, 2)[i % 3], 0, text, 0x10000 + i * 2741 % 4096,
                                   (0, 0, 4096)[i % 3]) for i in range(size // 24))
    elf.section(".symtab", SHT_SYMTAB, elf.add(symbols), len(symbols), link=link)
    return elf.file()


def elf_relocations(size):
    """Relocation sections of one debug section, all with the same entries."""
    elf = Elf(ET_REL)
    with_text(elf)
    at = elf.add(bytes(4096))
    debug = elf.section(".debug_info", SHT_PROGBITS, at, 4096)
    symbols = elf.section(".symtab", SHT_SYMTAB, elf.add(bytes(48)), 48, link=debug)
    entries = struct.pack("<QQq", 8, 1, 1) * (size // 2 // 24)
    at = elf.add(entries)
    name = elf.name(".rela.debug_info")
    for _ in range(size // 2 // 64):
        elf.section(name, SHT_RELA, at, len(entries), link=symbols, info=debug)
    return elf.file()


def elf_units(size, kind=ET_REL):
    """Sections of units, all with the same contents."""
    elf = Elf(kind)
    with_text(elf)
    content = struct.pack("<IHBBI", 8, 5, 1, 8, 0) * (size // 2 // 12)
    at, name = elf.add(content), elf.name(".debug_info")
    for _ in range(size // 2 // 64):
        elf.section(name, SHT_PROGBITS, at, len(content))
    return elf.file()


DEBUG_SECTIONS = ("info abbrev addr aranges line line_str ranges rnglists str str_offsets loclists loc types names").split()


def elf_compressed(size):
    """Every debug section names one stream of zeros."""
    elf = Elf()
    with_text(elf)
    packed = zlib.compress(bytes(size * 60), 9)
    data = struct.pack("<IIQQ", 1, 0, size * 60, 1) + packed
    at = elf.add(data)
    elf.add(bytes(size - 2 * len(data)))
    for name in DEBUG_SECTIONS:
        elf.section(".debug_" + name, SHT_PROGBITS, at, len(data), flags=0x800)
    return elf.file()


def elf_inside_elf(size):
    """MiniDebugInfo inside of MiniDebugInfo."""
    inner, noise = b"", random.Random(1)
    while len(inner) < size:
        elf = Elf()
        with_text(elf)
        elf.add(noise.randbytes(size // 50))
        if inner:
            packed = lzma.compress(inner, preset=0)
            elf.section(".gnu_debugdata", SHT_PROGBITS, elf.add(packed), len(packed))
        inner = elf.file()
    return inner


def elf_frames(size, instructions, entry):
    """A .eh_frame with one CIE that has the first instructions, and FDEs with the others."""
    elf = Elf()
    text = elf.add(b"\x90" * 4096)
    elf.segments.append((PT_LOAD, text, 0x10000, 4096))
    elf.section(".text", SHT_PROGBITS, text, 4096, flags=6, address=0x10000)

    def padded(body):
        body += bytes(-len(body) % 4)
        return struct.pack("<I", len(body)) + body

    frames = padded(struct.pack("<I", 0) + b"\1\0\1\x78\x10" + b"\x0c\x07\x08" + instructions)
    while len(frames) < size:
        frames += padded(struct.pack("<IQQ", len(frames) + 4, 0x10000 + len(frames) % 4000, 16) + entry)
    at = elf.add(frames)
    elf.segments.append((PT_LOAD, at, 0x20000, len(frames)))
    elf.section(".eh_frame", SHT_PROGBITS, at, len(frames), flags=2, address=0x20000)
    return elf.file()


def elf_shared_rules(size):
    """Small FDEs, each of which has all rules of their CIE."""
    return elf_frames(size, b"".join(struct.pack("BB", 0x80 | r, 1) for r in range(17)), b"")


def elf_remembered(size):
    """Rules that are remembered and restored without an end."""
    return elf_frames(size, b"".join(struct.pack("BB", 0x80 | r, 1) for r in range(17)), b"\x0a\x0b" * 2000)


# ---- Mach-O ----

MH_OBJECT, MH_EXECUTE = 1, 2
LC_SYMTAB, LC_SEGMENT_64 = 2, 0x19


def macho(kind, sections, symbols=b"", strings=b"", extra=b""):
    """`sections`: (segment, name, size, relocation count); contents and relocations are at the front of `extra`."""
    commands_size = 72 + 80 * len(sections) + 24
    data_at = 32 + commands_size
    command = struct.pack("<II16sQQQQIIII", LC_SEGMENT_64, 72 + 80 * len(sections), b"", 0, 1 << 20, 0, len(extra), 7, 7,
                          len(sections), 0)
    for segment, name, size, relocations in sections:
        command += struct.pack("<16s16sQQIIIIIIII", name.encode(), segment.encode(), 0, size, data_at, 0, data_at, relocations, 0,
                               0, 0, 0)
    at = data_at + len(extra)
    command += struct.pack("<IIIIII", LC_SYMTAB, 24, at, len(symbols) // 16, at + len(symbols), len(strings))
    return struct.pack("<IIIIIIII", 0xFEEDFACF, 0x01000007, 3, kind, 2, commands_size, 0, 0) + command + extra + symbols + strings


def macho_symbol_names(size):
    """Symbols whose names are the ends of one long text."""
    count = size // 2 // 16
    strings = b"\0" + b"_n" * (size // 4) + b"\0"
    symbols = b"".join(struct.pack("<IBBHQ", 1 + i * (len(strings) // count), 0x0F, 1, 0, i % 4000) for i in range(count))
    return macho(MH_EXECUTE, [("__TEXT", "__text", 4096, 0)], symbols, strings, bytes(4096))


def macho_stubs(size):
    """Sections of stubs that all have the same entries, for one function with a long name."""
    entries, count = size // 2 // 4, size // 4 // 80
    name = b"\0_" + b"n" * (size // 4) + b"\0"
    segment, symtab, dysymtab = 72 + 80 * count, 24, 80
    at = 32 + segment + symtab + dysymtab
    head = struct.pack("<IIIIIIII", 0xFEEDFACF, 0x01000007, 3, MH_EXECUTE, 3, segment + symtab + dysymtab, 0, 0)
    head += struct.pack("<II16sQQQQIIII", LC_SEGMENT_64, segment, b"__TEXT", 0, 1 << 20, 0, at, 5, 5, count, 0)
    head += struct.pack("<16s16sQQIIIIIIII", b"__stubs", b"__TEXT", 0, entries, at, 0, 0, 0, 0x80000408, 0, 1, 0) * count
    head += struct.pack("<IIIIII", LC_SYMTAB, symtab, at + entries * 4, 1, at + entries * 4 + 16, len(name))
    head += struct.pack("<II12xIIIIII6I", 11, dysymtab, *([0] * 12)).ljust(56, b"\0")[:56] + struct.pack("<II", at, entries) + bytes(16)
    return head + bytes(entries * 4) + struct.pack("<IBBHQ", 1, 1, 0, 0, 0) + name


def macho_relocations(size):
    """Relocations of debug sections that name one symbol with a long name."""
    entries = struct.pack("<II", 0, 1 << 27 | 3 << 25) * (size // 2 // 8)
    sections = [("__DWARF", "__debug_" + name, len(entries), len(entries) // 8) for name in DEBUG_SECTIONS]
    symbols = struct.pack("<IBBHQ", 1, 0x0F, 1, 0, 0)
    return macho(MH_OBJECT, sections, symbols, b"\0" + b"n" * (size // 2) + b"\0", entries)


def fat_same(size):
    """A fat file whose objects are all the same bytes, which take long to open."""
    inner = b"MODULE Linux x86_64 00000000000000000000000000000000A a\n"
    inner += b"PUBLIC 1 0 a\n" * ((size - len(inner)) // 13)
    count = 44  # with more it would be Java's
    at = 8 + 20 * count
    return struct.pack(">II", 0xCAFEBABE, count) + struct.pack(">IIIII", 7, 3, at, len(inner), 0) * count + inner


# ---- PE ----

def pe(sections, directories, data_at, data, names=b""):
    """`sections`: (name, address, size, offset in the file); `names`: of the string table, which begins with its length."""
    head = b"MZ" + bytes(58) + struct.pack("<I", 64)
    head += b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, len(sections), 0, data_at + len(data), 0, 112 + 16 * 8, 0x22)
    optional = struct.pack("<HBBIIIIIQIIHHHHHHIIIIHHQQQQII", 0x20B, 0, 0, 0, 0, 0, 0, 0, 0x140000000, 4096, 512, 0, 0, 0, 0, 0, 0, 0,
                           1 << 28, 512, 0, 3, 0, 0, 0, 0, 0, 0, 16)
    for i in range(16):
        optional += struct.pack("<II", *directories.get(i, (0, 0)))
    head += optional
    for name, address, size, at in sections:
        head += struct.pack("<8sIIIIIIHHI", name, size, address, size, at, 0, 0, 0, 0, 0x60000020)
    assert len(head) <= data_at
    return head + bytes(data_at - len(head)) + data + struct.pack("<I", 4 + len(names)) + names


def pe_compressed(size):
    """Sections of one name, with a stream that inflates but not to the size it states."""
    data_at = 1024 + 40 * (size // 2 // 40) // 512 * 512 + 512
    packed = zlib.compress(bytes(size), 9)
    data = b"ZLIB" + struct.pack(">Q", size + 1) + packed
    data += bytes(max(0, size // 2 - len(data)))
    return pe([(b"/4", 4096, len(data), data_at)] * min(size // 2 // 40, 60000), {}, data_at, data, b".zdebug_info\0")


def pe_chained(size):
    """Functions that share one long chain of unwind information."""
    data_at, links = 1024, 100
    info = b""
    for i in range(links):
        last = i == links - 1
        codes = struct.pack("BB", 0, 0x02) * 254
        info += struct.pack("BBBB", 1 | (0 if last else 4 << 3), 0, 254, 0) + codes
        info += b"" if last else struct.pack("<III", 0, 0, 4096 + (i + 1) * (4 + 508 + 12))
    functions = b"".join(struct.pack("<III", 16 * i, 16 * i + 16, 4096) for i in range(size // 12))
    data = info + functions
    return pe([(b".text", 4096, len(data), data_at)], {3: (4096 + len(info), len(functions))}, data_at, data)


def pe_export_names(size):
    """Exports whose names are the ends of one long text."""
    count, data_at = size // 3 // 10, 1024
    at = 4096 + 40
    addresses = struct.pack("<I", at) * count
    names = b"".join(struct.pack("<I", at + 10 * count + i) for i in range(count))
    ordinals = b"".join(struct.pack("<H", i % min(count, 65536)) for i in range(count))
    directory = struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, 0, 1, count, count, at, at + 4 * count, at + 8 * count)
    data = directory + addresses + names + ordinals + b"n" * (size * 2 // 3) + b"\0"
    return pe([(b".text", 4096, len(data), data_at)], {0: (4096, 40)}, data_at, data)


# ---- PDB ----

PAGE = 4096


def msf(streams, scattered=()):
    """Pages of the streams in a row; those of scattered ones backwards."""
    pages, lists = [b"", b"", b""], []
    for number, data in enumerate(streams):
        pieces = [data[i:i + PAGE].ljust(PAGE, b"\0") for i in range(0, len(data), PAGE)]
        numbers = list(range(len(pages), len(pages) + len(pieces)))
        if number in scattered:
            pieces, numbers = pieces[::-1], numbers[::-1]
        lists.append(numbers)
        pages += pieces
    directory = struct.pack("<I", len(streams)) + b"".join(struct.pack("<I", len(s)) for s in streams)
    directory += b"".join(struct.pack("<I", n) for numbers in lists for n in numbers)
    at = len(pages)
    pages += [directory[i:i + PAGE].ljust(PAGE, b"\0") for i in range(0, len(directory), PAGE)]
    listing = b"".join(struct.pack("<I", n) for n in range(at, len(pages)))
    pages.append(listing.ljust(PAGE, b"\0"))
    pages[0] = (b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0" + struct.pack("<IIIIII", PAGE, 1, len(pages), len(directory), 0, len(pages) - 1)
                ).ljust(PAGE, b"\0")
    pages[1] = pages[2] = bytes(PAGE)
    return b"".join(pages)


def leaf(kind, data):
    data += bytes(-(2 + len(data)) % 4)
    return struct.pack("<HH", 2 + len(data), kind) + data


def procedure(offset, size, type_index, name):
    record = struct.pack("<IIIIIIIIHB", 0, 0, 0, size, 0, 0, type_index, offset, 1, 0) + name + b"\0"
    return leaf(0x1110, record) + struct.pack("<HH", 2, 6)


def pdb(types, symbols, c13, scattered=()):
    info = struct.pack("<III", 20000404, 1, 1) + bytes(range(16)) + bytes(20)
    tpi = struct.pack("<IIIII", 20040203, 56, 0x1000, 0x1000 + len(types), 0).ljust(56, b"\0") + b"".join(types)
    ipi = struct.pack("<IIIII", 20040203, 56, 0x1000, 0x1000, 0).ljust(56, b"\0")
    module = struct.pack("<I", 4) + symbols + c13
    modules = bytes(34) + struct.pack("<HIII", 6, 4 + len(symbols), 0, len(c13)) + bytes(16) + b"a\0b\0"
    modules += bytes(-len(modules) % 4)
    debug = struct.pack("<11H", *[0xFFFF] * 5 + [5] + [0xFFFF] * 5)
    dbi = struct.pack("<iII8xHHI16xIIIHHI", -1, 19990903, 1, 0xFFFF, 0, len(modules), 0, len(debug), 0, 0, 0x8664, 0) + modules + debug
    sections = b".text\0\0\0" + struct.pack("<II", 1 << 28, 4096) + bytes(20) + struct.pack("<I", 0x60000020)
    return msf([b"", info, tpi, dbi, ipi, sections, module], scattered)


def pdb_scattered_types(size):
    """Procedures whose arguments are of types with long records that lie in many places."""
    long = [leaf(0x1505, bytes(16) + struct.pack("<H", 8) + b"t\0" + bytes(65000)) for _ in range(size // 3 // 65000 + 1)]
    arguments = leaf(0x1201, struct.pack("<I", 100) + b"".join(struct.pack("<I", 0x1000 + i % len(long)) for i in range(100)))
    types = long + [arguments, leaf(0x1008, struct.pack("<IBBHI", 3, 0, 0, 100, 0x1000 + len(long)))]
    symbols = b"".join(procedure(16 * i, 16, 0x1000 + len(long) + 1, b"f%d" % i) for i in range(size // 2 // 52))
    return pdb(types, symbols, b"", scattered=(2,))


def pdb_pointers(size):
    """Procedures that all have the same long list of arguments, with long types."""
    pointer = [leaf(0x1505, bytes(16) + struct.pack("<H", 8) + b"t" * 120 + b"\0")]
    pointer += [leaf(0x1002, struct.pack("<II", 0x1000 + i, 0x1000C)) for i in range(40)]
    arguments = leaf(0x1201, struct.pack("<I", 80) + struct.pack("<I", 0x1000 + 40) * 80)
    types = pointer + [arguments, leaf(0x1008, struct.pack("<IBBHI", 3, 0, 0, 80, 0x1000 + 41))]
    symbols = b"".join(procedure(16 * i, 16, 0x1000 + 42, b"f%d" % i) for i in range(size // 52))
    return pdb(types, symbols, b"")


def pdb_shared_lines(size):
    """Procedures that all cover the same lines."""
    count = size // 2 // 8
    lines = b"".join(struct.pack("<II", 4 * i, 1 + i % 1000) for i in range(count))
    block = struct.pack("<IHHI", 0, 1, 0, 4 * count) + struct.pack("<III", 0, count, 12 + len(lines)) + lines
    c13 = struct.pack("<II", 0xF2, len(block)) + block
    symbols = b"".join(procedure(0, 4 * count - i, 0, b"f%d" % i) for i in range(size // 2 // 52))
    return pdb([], symbols, c13)


# ---- ARM ----

def arm_shared_table(size):
    """Functions that share the longest instructions of .ARM.extab."""
    words = 255
    code = bytes([0xB1, 0x0F, 0xC9, 0x0F, 0xC8, 0x0F, 0xC6, 0x0F])
    stream = (code * (words * 4 // len(code) + 1))[:words * 4 + 2]
    table = struct.pack("<I", 0x81000000 | words << 16 | stream[0] << 8 | stream[1])
    table += b"".join(struct.pack("<I", int.from_bytes(stream[2 + 4 * i:6 + 4 * i], "big")) for i in range(words))
    count = size // 8
    at_text, at_index = 0x8000, 0x8000 + 4 * count + 4096
    at_table = at_index + 8 * count
    index = b""
    for i in range(count):
        place = at_index + 8 * i
        index += struct.pack("<II", (at_text + 4 * i - place) & 0x7FFFFFFF, (at_table - place - 4) & 0x7FFFFFFF)
    body = bytearray(52)
    names = b"\0.text\0.ARM.exidx\0.ARM.extab\0.shstrtab\0"
    offsets = {}
    for name, data in (("i", index), ("t", table), ("n", names)):
        offsets[name] = len(body)
        body += data + bytes(-len(data) % 4)
    phoff = len(body)
    body += struct.pack("<IIIIIIII", PT_LOAD, 0, at_text, at_text, 4096, 4 * count + 4096, 5, 4)
    shoff = len(body)
    for name, kind, flags, address, at, length in (
            (0, 0, 0, 0, 0, 0), (1, 1, 6, at_text, 52, 4 * count), (7, 0x70000001, 2, at_index, offsets["i"], len(index)),
            (18, 1, 2, at_table, offsets["t"], len(table)), (29, 3, 0, 0, offsets["n"], len(names))):
        body += struct.pack("<IIIIIIIIII", name, kind, flags, address, at, length, 0, 0, 4, 0)
    body[:52] = b"\x7fELF\1\1\1" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", ET_EXEC, EM_ARM, 1, 0, phoff, shoff, 0, 52, 32, 1, 40, 5, 4)
    return bytes(body)


# ---- Breakpad ----

BREAKPAD = b"MODULE Linux x86_64 00000000000000000000000000000000A a\nFILE 0 a.c\n"


def breakpad_redefined(size):
    """Inlined calls of a function with a long name, which no number tells apart because it is defined twice."""
    name = b"n" * (size // 4)
    text = BREAKPAD + b"INLINE_ORIGIN 0 " + name + b"\nINLINE_ORIGIN 0 " + name + b"\nFUNC 1000 ffffff 0 f\n"
    lines = [b"INLINE 0 1 0 0 %x 4\n%x 4 2 0\n" % (0x1000 + 8 * i, 0x1000 + 8 * i) for i in range(size // 2 // 36)]
    return text + b"".join(lines)


def breakpad_overlapping(size):
    """Inlined calls that begin together and all end elsewhere."""
    text = BREAKPAD + b"INLINE_ORIGIN 0 g\nFUNC 1000 ffffff 0 f\n1000 ffffff 1 0\n"
    return text + b"".join(b"INLINE 0 1 0 0 1000 %x\n" % (16 * (i + 1)) for i in range((size - len(text)) // 24))


def breakpad_nested(size):
    """Inlined calls one in the other, deeper and deeper."""
    text = BREAKPAD + b"INLINE_ORIGIN 0 g\nFUNC 1000 ffffff 0 f\n1000 ffffff 1 0\n"
    depth = 400
    return text + b"".join(b"INLINE %d 1 0 0 %x fffff\n" % (i % depth, 0x1000 + i) for i in range((size - len(text)) // 26))


def breakpad_rules(size):
    """Frame rules with many registers, and changes of each of them."""
    text = BREAKPAD + b"STACK CFI INIT 1000 ffffff .cfa: $rsp 8 + "
    text += b"".join(b"r%d: 1 " % i for i in range(180)) + b"\n"
    return text + b"".join(b"STACK CFI %x r%d: %d\n" % (0x1001 + i, i % 180, i % 10) for i in range((size - len(text)) // 22))


# ---- source bundles ----

def bundle(size):
    """A manifest that is a thousand times as large as the archive."""
    files = ",".join('"":{}' for _ in range(size * 100 // 6))
    manifest = ('{"files":{' + files + "}}").encode()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(manifest) + packer.flush()
    name, crc = b"manifest.json", zlib.crc32(manifest)
    common = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, crc, len(packed), len(manifest), len(name), 0)
    local = b"PK\3\4" + common + name + packed
    local += bytes(max(0, size - len(local)))
    entry = b"PK\1\2" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, 8) + name
    return b"SYSB\2\0\0\0" + local + entry + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), 8 + len(local), 0)


LOOKUP = ["lookup", "-e", "{file}", "--symcache-out", "{file}.slsc"]
INSPECT = ["inspect", "{file}"]
DUMP = ["dump-syms", "{file}"]

# name: (generator, commands that read the file)
def ar_header(name, size):
    return b"%-16s%-32s%-10d`\n" % (name, b"", size)


def members_of_one_name(size):
    """A long one, that of all members, which are objects of nothing."""
    half = size // 4
    names = b"n" * (half & ~1)
    return b"!<arch>\n" + ar_header(b"//", len(names)) + names + (ar_header(b"/0", 16) + b"\0asm\1\0\0\0" + b"\0" * 8) * ((size - half) // 76)


READ_BY = {
    members_of_one_name: [INSPECT, LOOKUP],
    elf_notes: [LOOKUP, INSPECT],
    elf_segments: [LOOKUP, INSPECT],
    elf_section_names: [LOOKUP, INSPECT],
    elf_symbol_names: [LOOKUP, INSPECT, DUMP],
    elf_untyped_symbols: [LOOKUP, INSPECT, DUMP],
    elf_relocations: [LOOKUP, INSPECT],
    elf_units: [LOOKUP, INSPECT],
    elf_compressed: [LOOKUP, DUMP],
    elf_inside_elf: [LOOKUP, INSPECT],
    elf_shared_rules: [DUMP],
    elf_remembered: [DUMP],
    macho_symbol_names: [LOOKUP, DUMP],
    macho_stubs: [LOOKUP, DUMP, INSPECT],
    macho_relocations: [LOOKUP],
    fat_same: [LOOKUP, INSPECT],
    pe_compressed: [LOOKUP, INSPECT],
    pe_chained: [DUMP],
    pe_export_names: [LOOKUP, DUMP],
    pdb_scattered_types: [LOOKUP],
    pdb_pointers: [LOOKUP, DUMP],
    pdb_shared_lines: [LOOKUP, DUMP],
    arm_shared_table: [DUMP],
    breakpad_redefined: [LOOKUP, DUMP],
    breakpad_overlapping: [LOOKUP, DUMP],
    breakpad_nested: [LOOKUP, DUMP],
    breakpad_rules: [DUMP],
    bundle: [INSPECT],
}

GENERATORS = {f"{make.__name__} {command[0]}": (make, command) for make, commands in READ_BY.items() for command in commands}
