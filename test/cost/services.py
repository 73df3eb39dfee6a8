"""What the service is sent and looks at itself: texts that the page is given, files that come back with names, debug files that
come with a request, and its own cache as cleanups measure it."""
import gzip, io, json, struct, zipfile

PAGE, NAMED, OWN, ARCHIVE, PACKED, MEASURE = (["readers", kind, "{file}"] for kind in ("page", "named", "own", "archive", "packed", "measure"))


def repeated(text, size, before=b"", behind=b""):
    return before + text * max(size // len(text), 1) + behind


# ---- texts ----

JS, JVM = b"    at f (https://a/b.js:1:2)\n", b"\tat a.b.c(F:1)\n"
TEXTS = { # those of traces are in mappings.py, too
    "js_frames": (JS,), "js_line": (b"at f (a:1:1) ",), "js_at": (b"a@/b:1:1 ", b"a@/b:1:1\n"), "js_escaped": (b"\\n    at f (/a:1:2)", b'"Error', b'"\n'),
    "js_backslashes": (b"\\\\", JS), "js_evals": (b"(eval at f ", b"    at f ", b"(a:1:1)\n"), "js_places": (b":1:1", b"    at f (a", b")\n"),
    "js_parentheses": (b"(", b"    at f ", b"a:1:1)\n" + JS), "jvm_frames": (JVM,), "jvm_classes": (b"a.b: ", b"", b"\n" + JVM),
    "log": (b"2026-11-28 12:00:00 INFO [main] nothing happens\n",),
}


def text_of(parts):
    return lambda size: repeated(parts[0], size, *parts[1:])


# ---- files with names ----

def profile(frames, prefixes, samples):
    """Of frames that are each a function of its own, at an address of its own."""
    rows = range(len(frames))
    column = lambda value: [value] * len(frames)
    tables = {
        "stackTable": {"frame": frames, "prefix": prefixes}, "samples": {"stack": samples},
        "frameTable": {"address": [16 * (i + 1) for i in rows], "func": list(rows), "nativeSymbol": column(None), "line": column(None)},
        "funcTable": {"name": column(0), "resource": column(0), "fileName": column(None)}, "resourceTable": {"lib": [0]}, "nativeSymbols": {"libIndex": [], "address": [], "name": []},
    }
    tables = {name: {**table, "length": len(next(iter(table.values())))} for name, table in tables.items()}
    thread = {"stringArray": ["0x1"], **tables}
    document = {"meta": {"preprocessedProfileVersion": 48}, "libs": [{"name": "a", "debugName": "a", "breakpadId": "0" * 32 + "1"}], "threads": [thread]}
    return json.dumps(document, separators=(",", ":")).encode()


def profile_deep(size):
    count = size // 50
    return profile(list(range(count)), [None] + list(range(count - 1)), [count - 1])


def profile_threads(size):
    """Threads of one frame."""
    one = json.loads(profile([0], [None], [0]))
    return json.dumps({**one, "threads": one["threads"] * (size // 500)}, separators=(",", ":")).encode()


def samples(size):
    row = b"    +   1 ???  (in a)  load address 0x1000 + 0x%x  [0x%x]\n"
    rows = b"".join(row % (i, 0x1000 + i) for i in range(size // 60))
    return (b"Analysis of sampling a (pid 1) every 1 millisecond\nProcess: a [1]\nCall graph:\n    1 Thread_1\n    + 1 main  (in a)  [0x1001]\n" + rows +
            b"\nBinary Images:\n    0x1000 - 0xffffff  a (1) <2d903291-397d-3d14-bfca-52c7fb8c5e00>  /a\n")


# ---- debug files that come with a request ----

def breakpad(number):
    return b"MODULE Linux x86_64 %032X0 a\nFUNC 0 1 0 f\n" % (number + 1)


def packed(members):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as z:
        for i, data in enumerate(members):
            z.writestr(str(i), data)
    return archive.getvalue()


def own_many(size):
    """Each with an id of its own."""
    return packed(breakpad(i) for i in range(size // 160))


def own_alike(size):
    """All with one id."""
    return packed(breakpad(0) for _ in range(size // 160))


def own_overlapping(size):
    """A ZIP archive whose entries are all the same bytes."""
    data = breakpad(0) + b"PUBLIC 0 0 f\n" * (size // 2 // 13)
    one = packed([data])
    directory = one.index(b"PK\x01\x02")
    end = one.index(b"PK\x05\x06")
    entry, count = one[directory:end], size // 2 // (end - directory)
    return one[:directory] + entry * count + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(entry) * count, directory, 0)


# ---- compressed files ----

def gzip_members(size):
    """Empty members of a gzip file, one behind the other."""
    return gzip.compress(b"", mtime=0) * (size // 20)


def zstd_frames(size):
    """Empty frames: magic number, a header of one byte and one of the size 0, an empty last block (RFC 8878, 3.1.1)."""
    return b"\x28\xb5\x2f\xfd\x20\0\x01\0\0" * (size // 9)


# ---- the cache ----

def cache_flat(size):
    return b"kind/\n" + b"".join(b"kind/%07d\n" % i for i in range(size // 100))


def cache_deep(size):
    """As deep as paths may be, again and again."""
    lines, path = [b"kind/"], b"kind/"
    for i in range(size // 400):
        path = b"kind/" if len(path) > 400 else path
        path += b"%x/" % i
        lines.append(path)
    return b"\n".join(lines) + b"\n"


GENERATORS = {f"page_{name}": (text_of(parts), PAGE) for name, parts in TEXTS.items()}
GENERATORS |= {f"named_{make.__name__}": (make, NAMED) for make in (profile_deep, profile_threads, samples)}
GENERATORS |= {make.__name__: (make, OWN) for make in (own_many, own_alike, own_overlapping)}
GENERATORS |= {f"archive_{make.__name__}": (make, ARCHIVE) for make in (own_many, own_overlapping)}
GENERATORS |= {f"packed_{make.__name__}": (make, PACKED) for make in (gzip_members, zstd_frames)}
GENERATORS |= {make.__name__: (make, MEASURE) for make in (cache_flat, cache_deep)}
