"""Where the code of a program lies, by its format: what addresses are worth asking about."""
import struct


def unpack(form, data, at):
    return struct.unpack_from(form, data, at)


def elf_sections(data):
    """(type, flags, address, size) of each section, of 32 and 64 bits and either byte order."""
    order, wide = "<>"[data[5] - 1], data[4] == 2
    shoff, = unpack(order + ("Q" if wide else "I"), data, 0x28 if wide else 0x20)
    entsize, count, _ = unpack(order + "HHH", data, 0x3A if wide else 0x2E)
    for i in range(count):
        _, kind, flags, address, _, size = unpack(order + ("IIQQQQ" if wide else "IIIIII"), data, shoff + i * entsize)
        yield kind, flags, address, size


def elf(data):
    for _, flags, address, size in elf_sections(data):
        if flags & 4:
            yield address, size


def pe(data):
    """Relative addresses."""
    head, = unpack("<I", data, 0x3C)
    count, = unpack("<H", data, head + 6)
    optional, = unpack("<H", data, head + 20)
    for i in range(count):
        size, address, raw = unpack("<III", data, head + 24 + optional + 40 * i + 8)
        flags, = unpack("<I", data, head + 24 + optional + 40 * i + 36)
        if flags & 0x20:  # code
            yield address, size


def machine(data):
    """Of a PE image; 0 of other files."""
    return unpack("<H", data, unpack("<I", data, 0x3C)[0] + 4)[0] if data.startswith(b"MZ") else 0


def image_base(path):
    """What relative addresses lack in a PE image; 0 in other files."""
    with open(path, "rb") as f:
        data = f.read(4096)
    if not data.startswith(b"MZ"):
        return 0
    head, = unpack("<I", data, 0x3C)
    is_64bit = unpack("<H", data, head + 24)[0] == 0x20B
    return unpack("<Q", data, head + 48)[0] if is_64bit else unpack("<I", data, head + 52)[0]


def macho(data):
    """Sections with instructions of 64-bit images."""
    count, = unpack("<I", data, 16)
    at = 32
    for _ in range(count):
        command, size = unpack("<II", data, at)
        if command == 0x19:
            sections, = unpack("<I", data, at + 64)
            for i in range(sections):
                place = at + 72 + 80 * i
                if unpack("<I", data, place + 64)[0] & 0x80000400:
                    yield unpack("<QQ", data, place + 32)
        at += size


def leb(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def wasm(data):
    """The code section: offsets in the file."""
    at = 8
    while at < len(data):
        size, begin = leb(data, at + 1)
        if data[at] == 10:
            yield begin, size
        at = begin + size


def wasm_functions(path):
    """(begin, end, name) of the functions, by the name section; ends are where the next one begins."""
    with open(path, "rb") as f:
        data = f.read()
    begins, names, imported, at, end = [], {}, 0, 8, 0
    while at < len(data):
        kind, (size, place) = data[at], leb(data, at + 1)
        at = place + size
        if kind == 2:
            imported, _ = leb(data, place)  # all of them functions, in what is asked here
        elif kind == 10:
            count, place = leb(data, place)
            for _ in range(count):
                size, place = leb(data, place)
                begins.append(place)
                place = end = place + size
        elif kind == 0:
            size, place = leb(data, place)
            section, place = data[place:place + size], place + size
            while section == b"name" and place < at:
                part, (size, place) = data[place], leb(data, place + 1)
                behind = place + size
                count, place = leb(data, place) if part == 1 else (0, place)
                for _ in range(count):
                    index, place = leb(data, place)
                    size, place = leb(data, place)
                    names[index] = data[place:place + size].decode()
                    place += size
                place = behind
    return [(begin, behind, names.get(imported + i, "")) for i, (begin, behind) in enumerate(zip(begins, begins[1:] + [end]))]


def breakpad(data):
    """What FUNC records cover."""
    for line in data.splitlines():
        if line.startswith(b"FUNC "):
            fields = line.split()
            at = 2 if fields[1] == b"m" else 1
            yield int(fields[at], 16), int(fields[at + 1], 16)


READERS = {b"\x7fELF": elf, b"MZ": pe, b"\xcf\xfa\xed\xfe": macho, b"\0asm": wasm, b"MODULE ": breakpad}


def code_ranges(path):
    """(address, size) of the code, never empty ones."""
    with open(path, "rb") as f:
        data = f.read()
    for magic, reader in READERS.items():
        if data.startswith(magic):
            return [(address, size) for address, size in reader(data) if size]
    raise SystemExit(f"{path}: no format with code in it")
