"""ELF core files whose entries share headers, notes and memory: what they cost must be in proportion to their size."""
import os
import struct
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cores import AT_PHDR, AT_PHNUM, Core, R, W, X


def threads(size):
    """Threads that all have the same stack."""
    core = Core()
    for i in range(size // 380):
        core.thread(i + 1, {"rip": 0x1000, "rsp": 0x5000})
    return core.memory(0x5000, 64, R | W, b"s" * 64).done()


def shared_notes(size):
    """Note segments that are all the same notes."""
    core = Core()
    for i in range(size // 2 // 380):
        core.thread(i + 1, {"rip": 0x1000, "rsp": 0x5000})
    data, count = core.done(), size // 2 // 56
    notes = len(data) - 64 - 56
    at = 64 + count * 56
    return core.header(4, count) + core.segment(4, 0, at, 0, notes, 0) * count + data[64 + 56:]


def mapped_files(size):
    """Mappings of files with names of one letter, each at its beginning."""
    rows = [(0x10000 + (i << 12), 0x11000 + (i << 12), 0, chr(33 + i % 90)) for i in range(size // 26)]
    return Core().thread(1, {}).files(rows).done()


def overlapping_files(size):
    """Mappings that all begin at the page of one library with many program headers and notes."""
    core = Core()
    notes = core.note("GNU", 5, b"") * 200
    page = core.image([(R | X, 0, 0, 1 << 20, 1 << 20)] * 100, b"i" * 20, notes)
    rows = [(0x10000, 0x11000 + i, i % 2, str(i // 2)) for i in range(size // 30)]
    return core.thread(1, {}).files(rows).memory(0x10000, 1 << 20, R | X, page).done()


def shared_packages(size):
    """Libraries whose notes are the same long package notes."""
    core = Core()
    notes = core.note("FDO", 0xCAFE1A7E, b'{"a":"' + b"x" * 4000 + b'"}') * (size // 3 // 4100)
    page = core.image([(R | X, 0, 0, 1 << 20, 1 << 20)], b"", notes)
    rows = [(0x10000, 0x11000 + i, 0, str(i)) for i in range(size // 3 // 30)]
    return core.thread(1, {}).files(rows).memory(0x10000, 1 << 20, R | X, page).done()


def segments(size):
    """Memory segments inside of one another, in descending order."""
    core, count = Core().thread(1, {"rsp": 0x100000}), size // 57
    for i in range(count):
        core.memory(0x100000 + count - i, 64, R | W, b"m")
    return core.done()


def libraries(size):
    """A list of the dynamic linker whose entries are the same library, found in a dynamic section without headers."""
    count = size // 40
    words = [21, 0x20000] + [0, 0]
    memory = struct.pack("<4Q", *words)
    lists = struct.pack("<QQ", 1, 0x20010)
    for i in range(count):
        lists += struct.pack("<4Q", 0x40000, 0x30000, 0x10000 if not i else 0x40800, 0x20010 + 32 * (i + 1))
    core = Core().thread(1, {}).auxv([(AT_PHDR, 0x10040), (AT_PHNUM, 3)])
    core.memory(0x10000, 4096, R | W, memory).memory(0x20000, len(lists), R | W, lists)
    core.memory(0x30000, 16, R, b"/lib/x.so\0")
    return core.memory(0x40000, 4096, R | X, core.image([(R | X, 0, 0, 4096, 4096)], b"i" * 20)).done()


def false_lists(size):
    """Memory full of what looks like entries of a dynamic section."""
    core = Core().thread(1, {}).auxv([(AT_PHDR, 0x10040), (AT_PHNUM, 3)])
    return core.memory(0x10000, size, R | W, struct.pack("<QQ", 21, 0x10000) * (size // 16)).done()


def analysed(core, code=b""):
    """A core, the file of its first module, and its length: what the kind `core_code` reads."""
    return core + code + struct.pack("<Q", len(code))


def crash():
    return Core().thread(1, {"rip": 0x11000}, signal=11).siginfo(11, 1, 0x45).files([(0x10000, 0x12000, 0, "m")])


def code(core, rows):
    """An executable of these program headers, with instructions behind them."""
    image = core.image(rows)
    return image + b"\x48\x8b\x00" * (4096 // 3)


def crash_overlapping_headers(size):
    """A file whose program headers are the same segment of code."""
    core = crash()
    return analysed(core.done(), code(core, [(R | X, 0, 0x400000, size, size)] * (size // 57)))


def crash_many_headers(size):
    """A file with many segments of a byte each, in descending order."""
    core, count = crash(), size // 57
    return analysed(core.done(), code(core, [(R | X, 0, 0x400000 + 2 * (count - i), 1, 1) for i in range(count)]))


def crash_among_memory(size):
    """A core whose memory has many segments around the instruction."""
    core = crash()
    for i in range(size // 60):
        core.memory(0x10000 + 3 * i, 3, R | X, b"\x48\x8b\x00")
    return analysed(core.done())


def crash_among_files(size):
    """A core with many modules, of which one has the instruction."""
    core = Core().thread(1, {"rip": 0x11000}, signal=11).siginfo(11, 1, 0x45)
    rows = [(0x10000 + (i << 12), 0x11000 + (i << 12), 0, chr(33 + i % 90)) for i in range(size // 26)]
    return analysed(core.files(rows).memory(0x11000, 64, R | X, b"\x48\x8b\x00" * 21).done())


GENERATORS = {f"core_{make.__name__}": (make, ["readers", "core", "{file}"])
              for make in (threads, shared_notes, mapped_files, overlapping_files, shared_packages, segments, libraries, false_lists)}
GENERATORS |= {f"core_{make.__name__}": (make, ["readers", "core_code", "{file}"])
               for make in (crash_overlapping_headers, crash_many_headers, crash_among_memory, crash_among_files)}
