"""What upload doors are sent: lists of chunks, descriptions that are not quite JSON, messages, bundles and mappings."""
import json, struct

import dotnet

DOOR, UPLOAD = ["readers", "door", "{file}"], ["readers", "upload", "{file}"]
SHA1 = '"%040x"'


def one_file(chunks):
    return ('{%s:{"name":"a","chunks":[%s]}}' % (SHA1 % 1, ",".join(chunks))).encode()


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


# ---- requests ----

def chunks(size):
    return one_file(SHA1 % i for i in range(size // 43))


def equal_chunks(size):
    return one_file(SHA1 % 1 for i in range(size // 43))


def files(size):
    """Without chunks."""
    return ("{%s}" % ",".join((SHA1 % i) + ':{"name":"","chunks":[]}' for i in range(size // 67))).encode()


def equal_files(size):
    return ("{%s}" % ",".join((SHA1 % 1) + ':{"name":"","chunks":[]}' for i in range(size // 67))).encode()


def unknown_members(size):
    return ('{%s:{"name":"a",%s,"chunks":[]}}' % (SHA1 % 1, ",".join(f'"m{i}":[{i}]' for i in range(size // 14)))).encode()


def names_again(size):
    """A member that replaces itself, with escapes."""
    return ('{%s:{%s,"chunks":[]}}' % (SHA1 % 1, ",".join(['"name":"\\u0041\\n"'] * (size // 18)))).encode()


def lists_again(size):
    return ('{%s:{"name":"a",%s}}' % (SHA1 % 1, ",".join(['"chunks":[%s]' % (SHA1 % 1)] * (size // 56)))).encode()


def nested(size):
    return b'{"a":' * (size // 5)


def braces(size):
    return b"{ symbol_id: " + b"{" * size


def bare_keys(size):
    return b"{ symbol_id: {" + b"debug_id: x, " * (size // 13) + b"}}"


def quotes(size):
    return b'{ symbol_id: {debug_file: "' + b'\\"' * (size // 2)


def colons(size):
    return b"debug_id:" * (size // 9)


def message_fields(size):
    """Unknown ones, and the known one again and again."""
    return (field(9, b"") + field(1, field(1, b"ab"))) * (size // 8)


def message_files(size):
    """Fields of the file again and again."""
    return field(1, field(1, b"ab") * (size // 4))


# ---- files ----

def headers_again(size):
    return dotnet.bundle_headers(size)


def ids(size):
    """Files of one debug id, and of ids of their own."""
    rows = ('"f%d":{"headers":{"debug-id":"%032x"}}' % (i, i if i % 2 else 7) for i in range(size // 120))
    return dotnet.archive(('{"files":{%s}}' % ",".join(rows)).encode(), [b"f%d" % i for i in range(size // 120)])


def arrows(size):
    return b" -> " * (size // 4)


def plist(size):
    return b'<?xml version="1.0"?><plist>' + b"<dict><key>" * (size // 11)


def binary_plist(size):
    """A list that has itself as each of its items."""
    count = size // 2
    head = b"bplist00" + b"\xaf\x12" + struct.pack(">I", count) + b"\0" * count
    return head + b"\x08" + b"\0" * 6 + b"\x01\x01" + struct.pack(">QQQ", 1, 0, len(head))


def symbol_map(size):
    return b"BCSymbolMap Version: 2.0\n" + b"_a\n" * (size // 3)


def fat_file(size):
    """Parts that are all the same bytes."""
    count = (size - 8) // 20
    return struct.pack(">II", 0xCAFEBABE, count) + struct.pack(">IIIII", 0x01000007, 3, 4096, 64, 0) * count


GENERATORS = {f"requests {f.__name__}".replace("_", " "): (f, DOOR) for f in (
    chunks, equal_chunks, files, equal_files, unknown_members, names_again, lists_again, nested, braces, bare_keys, quotes, colons, message_fields, message_files)}
GENERATORS |= {f"files {f.__name__}".replace("_", " "): (f, UPLOAD) for f in (
    dotnet.bundle_entries, dotnet.bundle_links, headers_again, ids, arrows, plist, binary_plist, symbol_map, fat_file)}
