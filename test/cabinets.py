"""Cabinets (MS-CAB), in which symbol servers of Windows have their files."""
import struct


def cabinet(name, data):
    """A cabinet (MS-CAB) with one file, stored as it is."""
    blocks = [data[at:at + 32768] for at in range(0, len(data), 32768)]
    entry = struct.pack("<IIHHHH", len(data), 0, 0, 0, 0, 0x20) + name.encode() + b"\0"
    body = b"".join(struct.pack("<IHH", 0, len(block), len(block)) + block for block in blocks)
    folder = struct.pack("<IHH", 36 + 8 + len(entry), len(blocks), 0)
    size = 36 + len(folder + entry + body)
    return struct.pack("<4sIIIIIBBHHHHH", b"MSCF", 0, size, 0, 36 + 8, 0, 3, 1, 1, 1, 0, 0, 0) + folder + entry + body
