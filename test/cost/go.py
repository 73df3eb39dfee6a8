"""Go programs whose tables refer to their own parts again and again. Each takes a size in bytes, about which it gets."""
from elf import elf, uleb, u32, u64

CONVERT = ["lookup", "-e", "{file}", "--symcache-out", "{out}"]

TEXT, DEEP = 0x1000, 100
AT = 64 + 56 + 16  # where the table is in the file, and in memory: behind the headers and .text


def header(count, *offsets):
    """Of Go 1.16: entries are addresses, and so is where the calls are that are inlined."""
    return u32(0xFFFFFFFA) + b"\0\0\x01\x08" + u64(count) + u64(1) + b"".join(u64(o) for o in offsets)


def record(calls, tree):
    data = b"\0\0\0\x04" if tree else bytes(4)
    head = u64(TEXT) + u32(1) + bytes(12) + u32(0) + u32(1) + u32(3) + u32(0) + data + u32(0) + u32(0) + u32(calls)
    return head + bytes(-len(head) % 8) + u64(0) * 3 + u64(tree)


def program(count, lists, calls=0, tree=b"", name=b"f"):
    """`count` functions that are one record, whose lines are the list at offset 1 of `lists`."""
    names = b"\0" + name + b"\0"
    names_at = 64
    files_at = names_at + len(names)
    lists_at = files_at + 8
    tree_at = lists_at + len(lists) + -(lists_at + len(lists)) % 8
    functions_at = tree_at + len(tree) + -len(tree) % 8
    index = b"".join(u64(TEXT) + u64(16 * count) for _ in range(count))
    table = header(count, names_at, files_at, files_at, lists_at, functions_at) + names + bytes(8) + lists
    table = table.ljust(tree_at, b"\0") + tree
    table = table.ljust(functions_at, b"\0") + index + record(calls, AT + tree_at if tree else 0)
    return elf({".gopclntab": table})


def shared_lists(size):
    """Every function has the same long list of lines."""
    return program(size // 32, b"\0" + b"\x04\x01" * (size // 4) + b"\0")


def shared_name(size):
    return program(size // 32, b"\0\x04\x01\0", name=b"f" * (size // 2))


def nested_calls(size):
    """Each call is made where the one before is inlined, and every one of them has code."""
    count = size // 24
    lists = b"\0" + b"\x04" + uleb(count + 1) + b"\0"
    calls = len(lists)
    lists += b"\0\x01" + b"\x02\x01" * count + b"\0"
    tree = b"".join(bytes(12) + u32(1) + u32(i) for i in range(count))
    return program(1, lists, calls, tree)


def calls_in_turn(size):
    """Code of the innermost of many calls, and of the function, in turn."""
    count = size // 64
    lists = b"\0" + b"\x04" + uleb(2 * count + DEEP + 1) + b"\0"
    calls = len(lists)
    turns = uleb(2 * DEEP - 1) + b"\x01" + uleb(2 * DEEP) + b"\x01"
    lists += b"\0\x01" + b"\x02\x01" * DEEP + turns * count + b"\0"
    tree = b"".join(bytes(12) + u32(1) + u32(i) for i in range(DEEP))
    return program(1, lists, calls, tree)


GENERATORS = {name: (make, CONVERT) for name, make in
              {"shared_lists": shared_lists, "shared_name": shared_name, "nested_calls": nested_calls,
               "calls_in_turn": calls_in_turn}.items()}
