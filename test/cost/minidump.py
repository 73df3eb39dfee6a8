"""Minidumps whose entries share names, identifiers and memory: what they cost must be in proportion to their size."""
import os
import struct
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import dumps
from dumps import finished

SYSTEM = (7, struct.pack("<HHHBB5IHH24x", dumps.AMD64, 0, 0, 1, 0, 10, 0, 1, dumps.WINDOWS, 0, 0, 0))
NO_THREADS = (3, struct.pack("<I", 0))


def shared_name(size):
    """Every module has the same long name."""
    name = struct.pack("<I", size // 2) + b"n\0" * (size // 4)
    count = size // 2 // 108
    modules = b"".join(struct.pack("<Q4I52x2I24x", 0x10000 * (i + 1), 0x1000, 0, 0, 32, 0, 0) for i in range(count))
    return finished([SYSTEM, NO_THREADS, (4, struct.pack("<I", count) + modules)], name)


def shared_identifier(size):
    """Every module has the same long build id."""
    name, record = struct.pack("<I", 2) + b"n\0", b"LEpB" + b"i" * (size // 2)
    count = size // 2 // 108
    modules = b"".join(struct.pack("<Q4I52x2I24x", 0x10000 * (i + 1), 0x1000, 0, 0, 32, len(record), 38) for i in range(count))
    return finished([SYSTEM, NO_THREADS, (4, struct.pack("<I", count) + modules)], name + record)


def shared_context(size):
    """Every thread has the same registers and the same stack; names are for all of them."""
    context = bytearray(1232)
    struct.pack_into("<I", context, 48, 0x10000B)
    count = size // 2 // 60
    threads = b"".join(struct.pack("<6IQ4I", i, 0, 0, 0, 0, 0, 0x1000, 1232, 32, 1232, 32) for i in range(count))
    name = struct.pack("<I", 200) + b"t\0" * 100
    names = b"".join(struct.pack("<IQ", count - i, 32 + 1232) for i in range(count))
    return finished([SYSTEM, (3, struct.pack("<I", count) + threads), (24, struct.pack("<I", count) + names)], bytes(context) + name)


def overlapping_memory(size):
    """Regions inside of one another, in descending order."""
    count = size // 16
    regions = b"".join(struct.pack("<QII", 0x100000 + count - i, 64, 32) for i in range(count))
    return finished([SYSTEM, NO_THREADS, (5, struct.pack("<I", count) + regions)], b"\0" * 64)


def nested_modules(size):
    """Modules inside of one another, every other one with an id, which all begin below the middle and end above it."""
    name, record = struct.pack("<I", 2) + b"n\0", b"LEpB" + b"i" * 20
    count = size // 108
    modules = b"".join(struct.pack("<Q4I52x2I24x", 0x100000 + i, 2 * (count - i), 0, 0, 32, len(record) if i % 2 else 0, 38)
                       for i in range(count))
    return finished([SYSTEM, NO_THREADS, (4, struct.pack("<I", count) + modules)], name + record)


def overlapping_modules(size):
    """Modules of one size that each begin one address behind the one before."""
    name, count = struct.pack("<I", 2) + b"n\0", size // 108
    modules = b"".join(struct.pack("<Q4I52x2I24x", 0x100000 + i, count, 0, 0, 32, 0, 0) for i in range(count))
    return finished([SYSTEM, NO_THREADS, (4, struct.pack("<I", count) + modules)], name)


def many_streams(size):
    """A directory and nothing else."""
    count = size // 12
    return finished([SYSTEM, NO_THREADS] + [(0x1000 + i, b"") for i in range(count)], b"")


def annotations(size):
    """Crashpad's dictionary names the same two texts again and again; of many modules it is the same one."""
    text = struct.pack("<I", size // 4) + b"v" * (size // 4)
    count = size // 4 // 8
    dictionary = struct.pack("<I", count) + struct.pack("<II", 32, 32) * count
    at = 32 + len(text)
    modules = struct.pack("<I", size // 4 // 12) + struct.pack("<III", 0, 28, at + len(dictionary)) * (size // 4 // 12)
    info = struct.pack("<IIIIIII", 1, 0, 0, len(dictionary), at, 0, 0)
    pad = struct.pack("<I32xIIII", 1, len(dictionary), at, len(modules), at + len(dictionary) + len(info))
    return finished([SYSTEM, NO_THREADS, (0x43500001, pad)], text + dictionary + info + modules)


# ---- what is read beside the crash ----

def crashed(platform, *streams):
    """A dump whose first thread crashed at `mov [rax + rcx], edx` with addresses that are nowhere."""
    dump = dumps.Dump(platform=platform)
    dump.threads.append((1, {"rip": 0x1000, "rax": 0x7000_0000_0000, "rcx": 8, "rsp": 0x5000}, 0x5000, b"s" * 64))
    dump.memory.append((0x1000, bytes.fromhex("891408")))
    dump.crash(1, 0xC0000005 if platform == dumps.WINDOWS else 11, 0, 0x7000_0000_0008, (1, 0x7000_0000_0008))
    for kind, content in streams:
        dump.stream(kind, content(dump) if callable(content) else content)
    return dump.done()


def regions(size):
    """Regions of memory inside of one another, in descending order; none may be written to."""
    count = size // 48
    entries = b"".join(struct.pack("<QQIIQIIII", 0x10000 + count - i, 0, 0, 0, 1 << 46, 0x1000, 2, 0, 0) for i in range(count))
    return crashed(dumps.WINDOWS, (16, struct.pack("<IIQ", 16, 48, count) + entries))


def mappings(size):
    """Lines of /proc/self/maps, each with a gap behind it."""
    lines = b"".join(b"%x-%x r--p 0 0 0\n" % (i << 13, (i << 13) + 1) for i in range(1, size // 24))
    return crashed(dumps.LINUX, (0x47670009, lines))


def emulated_threads(size):
    """Threads of a 32-bit program (WoW64) that all have the same environment, registers and stack."""
    dump = dumps.Dump(platform=dumps.WINDOWS)
    dumps.wow64(dump, 1, {"eip": 0x1000, "esp": 0x5000}, 0x7EFDB000)
    dump.memory += [(0x5000, b"s" * 64), (0x9000, b"s" * 64)]
    dump.modules.append((0x10000, 0x1000, "C:\\Windows\\System32\\wow64.dll", b"", 0))
    count = size // 48
    at = dump.context({"rip": 0x2000, "rsp": 0x9000, "cs": 0x33})
    entries = b"".join(struct.pack("<4I2Q4I", i, 0, 0, 0, 0x7EFDB000, 0x9000, 0, 0, *at) for i in range(count))
    threads = struct.pack("<I", count) + entries
    done = dump.done()
    streams, directory = struct.unpack_from("<II", done, 8)
    rows = [struct.unpack_from("<III", done, directory + 12 * i) for i in range(streams)]
    rows = [(3, len(threads), len(done)) if row[0] == 3 else row for row in rows]
    data = bytearray(done + threads + b"".join(struct.pack("<III", *row) for row in rows))
    struct.pack_into("<I", data, 12, len(done) + len(threads))
    return bytes(data)


def handles(size):
    """Open handles that all have the same long names."""
    def entries(dump):
        name = dump.string("n" * (size // 4))
        return struct.pack("<IIII", 16, 32, size // 2 // 32, 0) + struct.pack("<QII16x", 1, name, name) * (size // 2 // 32)
    return crashed(dumps.WINDOWS, (12, entries))


def linux_files(size):
    """Short lines of the files that Linux has."""
    quarter = size // 4
    return crashed(dumps.LINUX, (0x47670003, b"a:b\n" * (quarter // 4)), (0x47670004, b":\n" * (quarter // 2)),
                   (0x47670005, b"ID=x\n" * (quarter // 5)), (0x4D7A0003, b"limit\n" + b"a  1  2  b\n" * (quarter // 11)))


def mac_records(size):
    """Records of macOS that have the same texts."""
    def records(dump):
        at = dump.put(struct.pack("<QQQQQ", 0, 5, 1, 2, 3) + b"text\0" * 4 + b"m" * (size // 2) + b"\0")
        return struct.pack("<III", 0, 20, 40) + struct.pack("<II", 40 + 21 + size // 2, at) * (size // 2 // 8)
    return crashed(dumps.MACOS, (0x4D7A0001, records))


def soft_errors(size):
    """JSON of brackets, as deep as it may be and again."""
    return crashed(dumps.LINUX, (0x4D7A0004, b"[" + b",".join([b"[" * 60 + b"]" * 60] * (size // 121)) + b"]"))


MARK = "google-breakpad(1): -----BEGIN BREAKPAD MICRODUMP-----\n"


def microdump(lines, size):
    """These lines as often as there is room for them."""
    registers = bytearray(368)
    struct.pack_into("<I", registers, 0, 0x40000006)
    head = [MARK, "google-breakpad(1): O A arm 04 armv7l x\n", f"google-breakpad(1): C {registers.hex()}\n"]
    return ("".join(head) + lines(size)).encode()


def microdump_modules(size):
    """Modules at the same address, or inside of one another."""
    return microdump(lambda size: "".join(f"google-breakpad(1): M {i % 7 * 0x1000:08X} 00000000 00009000 {'1' * 33} n\n" for i in range(size // 90)), size)


def microdump_pieces(size):
    """Pieces of a stack, each elsewhere."""
    return microdump(lambda size: "".join(f"google-breakpad(1): S {0x10000 * (size - i) & 0xFFFFFFFF:08X} 00\n" for i in range(size // 34)), size)


def microdump_beginnings(size):
    """Microdumps of many processes, none of which ends."""
    return "".join(MARK.replace("1", str(i)) for i in range(size // 58)).encode()


READ = ["inspect", "--check", "{file}"]
FACTS = ["readers", "facts", "{file}"]
GENERATORS = {name: (make, READ) for name, make in (
    ("dump_shared_name", shared_name), ("dump_shared_identifier", shared_identifier), ("dump_shared_context", shared_context),
    ("dump_overlapping_memory", overlapping_memory), ("dump_nested_modules", nested_modules),
    ("dump_overlapping_modules", overlapping_modules), ("dump_many_streams", many_streams), ("dump_annotations", annotations),
    ("dump_microdump_modules", microdump_modules), ("dump_microdump_pieces", microdump_pieces), ("dump_microdump_beginnings", microdump_beginnings))}
GENERATORS |= {name: (make, FACTS) for name, make in (
    ("dump_regions", regions), ("dump_emulated_threads", emulated_threads), ("dump_mappings", mappings), ("dump_handles", handles), ("dump_linux_files", linux_files),
    ("dump_mac_records", mac_records), ("dump_soft_errors", soft_errors))}
