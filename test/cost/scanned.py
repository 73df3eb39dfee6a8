"""Packages that cost more than their size lets expect: many empty parts, each with a price of its own."""
import bz2, gzip, lzma, struct, tarfile

import packages

READERS = ["readers", "scanned", "{file}"]


def empty_members(size):
    return packages.tar({f"{i}": b"" for i in range(size // 512)})


def source_texts(size):
    return packages.tar({f"{i}.c": b"x" for i in range(size // 1024)})


def small_programs(size):
    """ELF files with a note each, and no more."""
    note = struct.pack("<III4s", 4, 20, 3, b"GNU\0") + b"i" * 20
    head = b"\x7fELF\2\1\1" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 4, 120, 120, 120, len(note), len(note), 4)
    return packages.tar({f"{i}.so": head + segment + note for i in range(size // 1024)})


def repeated(part, size):
    """Compressed parts, of which only the first has contents."""
    return part(packages.tar({"a": b""})) + part(b"") * ((size - 300) // len(part(b"")))


def holes(size):
    """A sparse file of many holes, in the format of GNU tar 1.0."""
    count = size // 24
    numbers = f"{count}\n" + "".join(f"{i * 1024}\n1\n" for i in range(count))
    table = numbers.encode() + b"\0" * (-len(numbers) % 512)
    info = tarfile.TarInfo("s")
    info.size = len(table) + count
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "x.debug", "GNU.sparse.realsize": str(count * 1024)}
    return info.tobuf(tarfile.PAX_FORMAT) + table + b"\x7f" * count + b"\0" * 1024


def many_tags(size):
    return packages.rpm({"a": b""}, packer="")[:96] + packages.rpm_header({1000: "a"}) + b"\0" * 6 + packages.rpm_header({i: "" for i in range(2000, 2000 + size // 17)})


GENERATORS = {
    "scanned/empty_members": (empty_members, READERS),
    "scanned/source_texts": (source_texts, READERS),
    "scanned/small_programs": (small_programs, READERS),
    "scanned/gzip_members": (lambda size: repeated(gzip.compress, size), READERS),
    "scanned/bzip2_streams": (lambda size: repeated(bz2.compress, size), READERS),
    "scanned/xz_streams": (lambda size: repeated(lzma.compress, size), READERS),
    "scanned/zstd_frames": (lambda size: repeated(packages.PACKERS["zst"], size), READERS),
    "scanned/holes": (holes, READERS),
    "scanned/rpm_tags": (many_tags, READERS),
    "scanned/zip_entries": (lambda size: packages.zipped({f"{i}": b"" for i in range(size // 80)}), READERS),
}
