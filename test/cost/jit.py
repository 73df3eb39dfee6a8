"""Code of processes that was written over, moved about, and written over again."""
import struct

READ = ["readers", "jit", "{file}"]


def lines(size, line):
    made, left, number = [], size, 0
    while left > 0:
        made.append(line(number))
        left -= len(made[-1])
        number += 1
    return b"".join(made)


def ever_larger(size):
    return lines(size, lambda i: b"%x %x f%d\n" % (0x10000000 - i, 2 * i + 1, i))


def ever_smaller(size):
    return lines(size, lambda i: b"%x %x f%d\n" % (0x1000 + i, 0x10000000 - 2 * i, i))


def one_place(size):
    return lines(size, lambda i: b"1000 10 f\n")


def record(kind, body):
    return struct.pack("<IIQ", kind, 16 + len(body), 0) + body


def dump(*records):
    return struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0) + b"".join(records)


def load(address, size, name):
    return record(0, struct.pack("<IIQQQQ", 1, 1, address, address, size, 0) + name + b"\0" + b"\x90" * size)


def moves_of_the_first(size):
    """Each is looked for among all code."""
    half = size // 2
    loads = [load(0x1000 + 16 * i, 1, b"f") for i in range(half // 59)]
    moves = [record(1, struct.pack("<IIQQQQQ", 1, 1, 0x1000, 0x1000, 0x10000000 + 16 * i, 1, 0)) for i in range(half // 64)]
    return dump(*loads, *moves)


GENERATORS = {make.__name__.replace("_", " "): (make, READ)
              for make in (ever_larger, ever_smaller, one_place, moves_of_the_first)}
