"""BPF objects whose BTF refers to its own parts again and again. Each takes a size in bytes, about which it gets."""
import struct

from elf import elf, u32

CONVERT = ["lookup", "-e", "{file}", "--symcache-out", "{out}"]
FUNC = 12


def header(size, *parts):
    """`parts` are what is behind it."""
    offsets, at = b"", 0
    for part in parts:
        offsets += u32(at) + u32(len(part))
        at += len(part)
    return b"\x9f\xeb\x01\0" + u32(size) + offsets.ljust(size - 8, b"\0") + b"".join(parts)


def program(strings, names, functions, lines, code=16, sections={}):
    """`names` are offsets of functions' names: types from 1 on. `functions` and `lines`: [(offset of a section's name, records)]."""
    types = b"".join(u32(name) + u32(FUNC << 24) + u32(0) for name in names)
    infos = [u32(size) + b"".join(u32(name) + u32(len(records)) + b"".join(struct.pack(f"<{size // 4}I", *r) for r in records)
                                  for name, records in groups) for size, groups in ((8, functions), (16, lines))]
    return elf({**sections, ".BTF": header(24, types, strings), ".BTF.ext": header(32, *infos)}, b"\x90" * code)


def shared_name(size):
    """Every function has the same long name."""
    name = b"\0.text\0" + b"f" * (size // 2) + b"\0"
    count = size // 2 // 9  # a byte of code, and a record
    return program(name, [7], [(1, [(i, 1) for i in range(count)])], [], count)


def nested_names(size):
    """Names are the ends of one long text, and so are the paths of files."""
    count = size // 48
    name = b"\0.text\0" + b"f" * count + b"\0"
    return program(name, range(7, 7 + count), [(1, [(i, 1 + i) for i in range(count)])],
                   [(1, [(i, 7 + i, 0, 1 << 10) for i in range(count)])], count)


def many_groups(size):
    """Each record names its section again, among many."""
    count = size // 2 // 16
    sections = {f".{i:x}": b"\x90" for i in range(size // 2 // 96)}
    return program(b"\0.text\0f\0", [7], [(1, [(0, 1)]) for _ in range(count)], [], sections=sections)


def backwards(size):
    """Records in descending order, two of each place."""
    count = size // 2 // 24
    return program(b"\0.text\0f\0", [7], [(1, [(i // 2, 1) for i in reversed(range(count))])],
                   [(1, [(i // 2, 7, 0, i + 1 << 10) for i in reversed(range(count))])], count)


GENERATORS = {name: (make, CONVERT) for name, make in
              {"shared_name": shared_name, "nested_names": nested_names, "many_groups": many_groups,
               "backwards": backwards}.items()}
