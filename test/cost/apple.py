"""Mach-O files beyond their symbols' names: objects in objects, notes of the assembler, unwind tables; and WebAssembly."""
import struct

from elf import uleb
from objects import macho

LOOKUP = ["lookup", "-e", "{file}", "--symcache-out", "{out}"]
INSPECT = ["inspect", "{file}"]
DUMP = ["dump-syms", "{file}"]


def fat_many(size):
    """Objects of no bytes, as many as there is room for."""
    count = size // 20
    return struct.pack(">II", 0xCAFEBABE, count) + struct.pack(">IIIII", 7, 3, 8, 0, 0) * count


def fat_of_small_objects(size):
    """Objects side by side, none of which is the wanted one."""
    inner = macho(2, [("__TEXT", "__text", 64, 0)], extra=bytes(64))
    count = size // (len(inner) + 32)
    at = 8 + 32 * count
    head = struct.pack(">II", 0xCAFEBABF, count)
    head += b"".join(struct.pack(">IIQQII", 0x01000007, 3, at + i * len(inner), len(inner), 0, 0) for i in range(count))
    return head + inner * count


def stabs(size):
    """Notes of object files and functions, with the longest names again and again."""
    strings = b"\0" + b"/" + b"n" * (size // 2) + b"\0"
    entry = lambda kind, value: struct.pack("<IBBHQ", 1, kind, 1, 0, value)
    count = size // 2 // 64
    symbols = b"".join(entry(0x64, 0) + entry(0x66, 0) + entry(0x24, 16 * i) + entry(0x64, 0) for i in range(count))
    return macho(2, [("__TEXT", "__text", 4096, 0)], symbols, strings, bytes(4096))


def symbols_in_one_place(size):
    """Functions that all begin at one address."""
    strings = b"\0" + b"".join(b"_f%06d\0" % i for i in range(size // 25))
    symbols = b"".join(struct.pack("<IBBHQ", 1 + 9 * i, 0x0F, 1, 0, 16) for i in range(size // 25))
    return macho(2, [("__TEXT", "__text", 4096, 0)], symbols, strings, bytes(4096))


def unwind_info(pages, body):
    """`pages`: (function offset, page offset behind the index), and the bytes of the pages."""
    at = 28 + 12 * len(pages)
    head = struct.pack("<IIIIIII", 1, 28, 0, 28, 0, 28, len(pages))
    return head + b"".join(struct.pack("<III", function, at + offset if offset is not None else 0, 0) for function, offset in pages) + body


def with_unwind(info):
    """A file whose __text covers what the table speaks of."""
    text = bytes(4096)
    sections = [(b"__text", 4096, 1 << 24, 0), (b"__unwind_info", len(info), 0, 0)]
    size = 72 + 80 * 2
    at = 32 + size
    command = struct.pack("<II16sQQQQIIII", 0x19, size, b"__TEXT", 0, 1 << 25, 0, at + 4096 + len(info), 7, 7, 2, 0)
    command += struct.pack("<16s16sQQIIIIIIII", b"__text", b"__TEXT", 0, 1 << 24, at, 0, 0, 0, 0, 0, 0, 0)
    command += struct.pack("<16s16sQQIIIIIIII", b"__unwind_info", b"__TEXT", 1 << 24, len(info), at + 4096, 0, 0, 0, 0, 0, 0, 0)
    return struct.pack("<IIIIIIII", 0xFEEDFACF, 0x01000007, 3, 2, 1, len(command), 0, 0) + command + text + info


def unwind_one_page(size):
    """An index whose entries all have the same page."""
    entries = b"".join(struct.pack("<II", 4 * i, 0x01000000) for i in range(min(size // 2 // 8, 65535)))
    page = struct.pack("<IHH", 2, 8, len(entries) // 8) + entries
    count = size // 2 // 12
    return with_unwind(unwind_info([(4 * i, 0) for i in range(count)] + [(1 << 22, None)], page))


def unwind_ascending_pages(size):
    """The same with pages whose entries count from where the page begins."""
    entries = b"".join(struct.pack("<I", i) for i in range(min(size // 2 // 4, 65535)))
    page = struct.pack("<IHHHH", 3, 16, len(entries) // 4, 12, 1) + struct.pack("<I", 0x02050000) + entries
    count = size // 2 // 12
    return with_unwind(unwind_info([(64 * i, 0) for i in range(count)] + [(1 << 23, None)], page))


# ---- WebAssembly ----

def section(kind, data):
    return bytes([kind]) + uleb(len(data)) + data


def custom(name, data):
    return section(0, uleb(len(name)) + name + data)


def wasm(*sections):
    return b"\0asm" + struct.pack("<I", 1) + b"".join(sections)


def wasm_sections(size):
    """As many sections as there is room for."""
    return wasm(*[custom(b".debug_x", b"")] * (size // 11))


def wasm_names(size):
    """Names of few functions, again and again."""
    bodies = section(10, uleb(1) + uleb(2) + b"\0\x0b")
    names = b"\0\4name" * (size // 6)
    names = uleb(size // 6) + names
    return wasm(bodies, custom(b"name", b"\1" + uleb(len(names)) + names))


def wasm_bodies(size):
    """Functions of no code."""
    count = size // 3
    return wasm(section(10, uleb(count) + b"\0" * count), custom(b"name", b""))


READ_BY = {
    fat_many: [INSPECT],
    fat_of_small_objects: [LOOKUP],
    stabs: [LOOKUP],
    symbols_in_one_place: [DUMP],
    unwind_one_page: [DUMP],
    unwind_ascending_pages: [DUMP],
    wasm_sections: [INSPECT],
    wasm_names: [LOOKUP],
    wasm_bodies: [LOOKUP],
}

GENERATORS = {f"{make.__name__.replace('_', ' ')} {command[0]}": (make, command)
              for make, commands in READ_BY.items() for command in commands}
