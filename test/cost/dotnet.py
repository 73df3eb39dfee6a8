"""Portable PDBs whose rows share blobs, and the files that go with managed code: line mappings, source bundles."""
import json
import struct
import zlib

PPDB = ["readers", "ppdb", "{file}"]
IL2CPP = ["readers", "il2cpp", "{file}"]
BUNDLE = ["readers", "bundle", "{file}"]
INSPECT = ["inspect", "--verify", "{file}"]

EMBEDDED = bytes.fromhex("1b578a0e26696e46b4ad8ab04611f5fe")
LINK = bytes.fromhex("560511cc91a0384d9fec25ab9a351a6a")
MODULE, DOCUMENT = 7, 22  # tags of parents


def compressed(number):
    """ECMA-335, II.23.2."""
    if number < 0x80:
        return bytes([number])
    return struct.pack(">H", 0x8000 | number) if number < 0x4000 else struct.pack(">I", 0xC0000000 | number)


class Blobs:
    def __init__(self):
        self.heap = bytearray(b"\0")

    def add(self, data):
        self.heap += compressed(len(data)) + data
        return len(self.heap) - len(compressed(len(data))) - len(data)


def ppdb(blobs, documents=(), methods=(), custom=()):
    """`documents`: name blobs; `methods`: blobs of points; `custom`: (tag, parent, kind, blob). All indexes have 4 bytes but those
    of rows, which depend on how many there are."""
    wide_parent = len(documents) >= 2048
    rows = b"".join(struct.pack("<IIII", name, 0, 0, 0) for name in documents)
    rows += b"".join(struct.pack("<HI", 1, points) if len(documents) < 65536 else struct.pack("<II", 1, points) for points in methods)
    for tag, parent, kind, blob in custom:
        rows += struct.pack("<III" if wide_parent else "<HII", parent << 5 | tag, kind, blob)
    mask = (1 << 0x30) * bool(documents) | (1 << 0x31) * bool(methods) | (1 << 0x37) * bool(custom)
    counts = b"".join(struct.pack("<I", n) for n in (len(documents), len(methods), len(custom)) if n)
    tables = struct.pack("<IBBBBQQ", 0, 2, 0, 7, 1, mask, 0) + counts + rows
    streams = ((b"#Pdb\0\0\0\0", bytes(20) + struct.pack("<IQ", 0, 0)), (b"#~\0\0", tables), (b"#GUID\0\0\0", EMBEDDED + LINK),
               (b"#Blob\0\0\0", bytes(blobs.heap)))
    head = struct.pack("<IHHII12sHH", 0x424A5342, 1, 1, 0, 12, b"PDB v1.0", 0, len(streams))
    at = len(head) + sum(8 + len(name) for name, _ in streams)
    body = b""
    for name, data in streams:
        data += bytes(-len(data) % 4)
        head += struct.pack("<II", at + len(body), len(data)) + name
        body += data
    return head + body


def ppdb_names(size):
    """Documents that share the long part of their names."""
    blobs = Blobs()
    long = blobs.add(b"p" * 20000 if size > 40000 else b"p" * (size // 2))
    count = (size - len(blobs.heap)) // 26
    parts = [blobs.add(b"%d" % (i % 10)) for i in range(10)]
    names = [blobs.add(b"/" + compressed(long) + compressed(parts[i % 10])) for i in range(count)]
    return ppdb(blobs, names)


def ppdb_overlapping_names(size):
    """Names that are one in the other: each blob of parts holds all those behind it."""
    blobs = Blobs()
    part = blobs.add(b"abcdefgh" * 12)
    heap = blobs.heap
    start = len(heap)
    count = size // 24
    for i in range(count):
        heap += compressed(min(0x3FFF, 2 * (count - i))) if count - i > 64 else b"\1"
    heap += compressed(part) * 0x4000
    return ppdb(blobs, [start + 2 * i for i in range(count)])


def ppdb_points(size):
    """Methods that share one long list of points."""
    blobs = Blobs()
    name = blobs.add(b"/" + compressed(blobs.add(b"x.cs")))
    points = blobs.add(b"\0" + b"\0\1\0\1\1" + b"\1\1\0\2\0" * (size // 2 // 5))
    return ppdb(blobs, [name], [points] * (size // 2 // 6))


def ppdb_documents_of_points(size):
    """Points that change the document again and again."""
    blobs = Blobs()
    name = blobs.add(b"/" + compressed(blobs.add(b"x.cs")))
    points = blobs.add(b"\0" + b"\0\1\0\1\1" + b"\0\1" * (size // 2) + b"\1\1\0\2\0")
    return ppdb(blobs, [name], [points] * (size // 2 // 6))


def ppdb_sources(size):
    """Rows that all embed one source into one document."""
    blobs = Blobs()
    name = blobs.add(b"/" + compressed(blobs.add(b"x.cs")))
    source = blobs.add(struct.pack("<I", 0) + b"s" * (size // 4))
    return ppdb(blobs, [name], [], [(DOCUMENT, 1, 1, source)] * (size * 3 // 4 // 10))


def nested_links(size):
    """Prefixes that begin one another."""
    rules, left = {}, size
    while left > 0:
        rules["a" * (len(rules) + 1) + "*"] = "u*"
        left -= len(rules) + 10
    return json.dumps({"documents": rules}).encode()


def ppdb_links(size):
    """Long prefixes of long names, which all documents share."""
    blobs = Blobs()
    link = blobs.add(nested_links(size // 2))
    long = blobs.add(b"a" * 15 + b"b")
    digits = [blobs.add(b"%d" % i) for i in range(64)]
    names = [blobs.add(b"/" + b"".join(map(compressed, (long, digits[i % 64], digits[i // 64 % 64], digits[i // 4096]))))
             for i in range(size // 2 // 26)]
    return ppdb(blobs, names, [], [(MODULE, 1, 2, link)])


def ppdb_link_rows(size):
    """Rows that all name the same rules."""
    blobs = Blobs()
    link = blobs.add(json.dumps({"documents": {"/%d/*" % i: "u*" for i in range(size // 2 // 16)}}).encode())
    name = blobs.add(b"/" + compressed(blobs.add(b"x.cs")))
    return ppdb(blobs, [name], [], [(MODULE, 1, 2, link)] * (size // 2 // 10))


# ---- line mappings ----

def il2cpp_backwards(size):
    """Lines in falling order, of C# files whose names begin alike."""
    files = {"p" * 100 + str(i): {str(j): 1 for j in range(200, 0, -1)} for i in range(max(1, size // 2000))}
    return json.dumps({"c.cpp": files}, separators=(",", ":")).encode()


def il2cpp_one_line(size):
    """One C++ line, of every C# file."""
    files = ",".join('"%s%d":{"7":%d}' % ("n" * 40, i, i) for i in range(size // 60, 0, -1))
    return ('{"c.cpp":{%s}}' % files).encode()


def il2cpp_again(size):
    """The same member again and again."""
    return ('{%s}' % ",".join(['"c.cpp":{"c.cs":{"7":1,"6":2,"5":3}}'] * (size // 38))).encode()


# ---- source bundles ----

def archive(manifest, entries=()):
    """`entries`: (name, offset or None for one of its own)."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = packer.compress(manifest) + packer.flush()
    body, directory = b"SYSB\2\0\0\0", b""
    for name, data, plain in [(b"manifest.json", packed, manifest)] + [(name, None, b"") for name in entries]:
        common = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, zlib.crc32(plain), len(data or b""), len(plain), len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, len(body) if data else 8) + name
        if data:
            body += b"PK\3\4" + common + name + data
    count = min(1 + len(entries), 0xFFFE)
    return body + directory + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)


def bundle_entries(size):
    """Entries of one name, and as many files."""
    count = size // 64
    files = {"f%d" % i: {"path": "/s"} for i in range(count)}
    return archive(json.dumps({"files": files}).encode(), [b"f"] * count)


def bundle_windows_paths(size):
    """Paths that differ by case only, and long."""
    count = size // 400
    manifest = {"files": {"f%d" % i: {"path": "C:/" + "".join("aA"[i >> (b % 10) & 1] for b in range(200))} for i in range(count)}}
    return archive(json.dumps(manifest).encode(), [b"f%d" % i for i in range(count)])


def bundle_headers(size):
    """A file with the same header again and again."""
    headers = ",".join(['"debug-id":"x"'] * (size // 14 * 4))
    return archive(('{"files":{"f":{"headers":{%s}}}}' % headers).encode(), [b"f"])


def bundle_links(size):
    """Links that begin one another, and the files that they are asked for."""
    rules, left = {}, size // 2
    while left > 0:
        rules["a" * (len(rules) + 1) + "*"] = "u*"
        left -= len(rules) + 10
    files = {"f%d" % i: {"path": "a" * 20 + str(i)} for i in range(size // 2 // 60)}
    return archive(json.dumps({"files": files, "source_links": rules}).encode(), [b"f%d" % i for i in range(len(files))])


GENERATORS = {f.__name__.replace("_", " "): (f, command) for command, made in (
    (PPDB, (ppdb_names, ppdb_overlapping_names, ppdb_points, ppdb_documents_of_points, ppdb_sources, ppdb_links, ppdb_link_rows)),
    (IL2CPP, (il2cpp_backwards, il2cpp_one_line, il2cpp_again)),
    (BUNDLE, (bundle_entries, bundle_windows_paths, bundle_headers, bundle_links))) for f in made}
GENERATORS |= {f.__name__.replace("_", " ") + " inspected": (f, INSPECT) for f in (ppdb_names, ppdb_points)}
