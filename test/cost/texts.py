"""Texts in which a line looks like a frame in many places, or lists modules again and again."""

TEXT = ["readers", "text", "{file}"]


def repeated(piece, before=b"", behind=b"\n"):
    return lambda size: before + piece * (size // len(piece)) + behind


def lines(piece, long=16000):
    """Lines as long as a line with frames may be, of one piece again and again."""
    line = piece * (long // len(piece)) + b"\n"
    return lambda size: line * (size // len(line) + 1)


def counted(make):
    def text(size):
        out, i = bytearray(), 0
        while len(out) < size:
            out += make(i)
            i += 1
        return bytes(out)
    return text


def report(body):
    """A report in JSON: its header, then what the function makes of the size."""
    return lambda size: b'{"bug_type":"309","timestamp":"0"}\n' + body(size)


FRAME, IMAGE = b'{"imageOffset":1,"imageIndex":0}', b'{"base":1,"uuid":"%032x","name":"m%d"}'
ID = b"ab" * 20
GENERATORS = {
    "sanitizers": (repeated(b"    #0 0x1  (/a+0x1) (BuildId: ab)\n"), TEXT),
    "mappings of gdb": (counted(lambda i: b"  0x%x     0x%x     0x1000        0x0  r-xp   /a%d\n" % (i << 12, (i + 1) << 12, i)), TEXT),
    "almost ids": (lines(b"0x1 " + b"a" * 31 + b"g ", 1000), TEXT),
    "many numbers in a line": (lines(b"#1 0x1 "), TEXT),
    "many places in a line": (lines(b" (a+0x1"), TEXT),
    "many brackets in a line": (lines(b"C  [a"), TEXT),
    "many addresses in a line": (lines(b"0x1 - "), TEXT),
    "many bangs in a line": (lines(b"a!b+0x"), TEXT),
    "many elements in a line": (lines(b"{{{pc:0x1}}}"), TEXT),
    "many parts in a line": (lines(b'"@a:1:1\\n'), TEXT),
    "many parts with numbers in a line": (lines(b'"@a:1:1 [#0 0x1!\\n'), TEXT),
    "elements before blanks": (lambda size: b"{{{pc:0x1}}}" * (size // 24) + b" " * (size // 2) + b"\n", TEXT),
    "unknown elements in a line": (lines(b"{{{a}}}"), TEXT),
    "open elements in a line": (lines(b"{{{"), TEXT),
    "modules": (counted(lambda i: b"#0 0x1  (/m%d+0x1)\n" % i), TEXT),
    "mappings up": (counted(lambda i: b"%x000-%x000 r-xp 0 0 0 /m\n" % (2 * i, 2 * i + 1)), TEXT),
    "mappings down": (counted(lambda i: b"%x000-%x000 r-xp 0 0 0 /m\n" % ((1 << 30) - 2 * i, (1 << 30) - 2 * i + 1)), TEXT),
    "mappings of markup": (counted(lambda i: b"{{{module:%d:m:elf:%s}}}\n{{{mmap:0x%x:0x1:load:%d:r:0x0}}}\n{{{pc:0x%x}}}\n" % (i, ID, 2 * i, i, 2 * i)), TEXT),
    "one module with many mappings": (counted(lambda i: b"{{{mmap:0x%x:0x1:load:0:r:0x0}}}\n" % (2 * i) if i else b"{{{module:0:m:elf:%s}}}\n" % ID), TEXT),
    "resets": (counted(lambda i: b"{{{module:%d:m:elf:%s}}}\n{{{reset}}}\n" % (i % 100, ID)), TEXT),
    "lists of modules": (counted(lambda i: b"m%d %s 0x%x000 0x1000\n" % (i, ID, i)), TEXT),
    "report of many frames": (report(repeated(FRAME, b'{"frames":[')), TEXT),
    "report of many frames before blanks": (report(lambda size: b"{" + FRAME * (size // 2 // len(FRAME)) + b" " * (size // 2) + b"\n"), TEXT),
    "report of many lines": (report(repeated(FRAME + b",\n", b"{[\n")), TEXT),
    "report of many images": (report(counted(lambda i: IMAGE % (i, i) + b"," if i else b'{"usedImages":[')), TEXT),
    "report of one image": (report(repeated(IMAGE % (1, 1) + b",", b'{"usedImages":[')), TEXT),
    "report of many levels": (report(repeated(b"[", b"{")), TEXT),
    "report of one string": (report(repeated(b'\\"', b'{"')), TEXT),
    "report of many strings": (report(repeated(b'"symbol":"a",', b"{")), TEXT),
    "reports": (counted(lambda i: b'{"bug_type":"309","timestamp":"0"}\n{"usedImages":[' + IMAGE % (i, i) + b"]," + FRAME + b"}\n"), TEXT),
    "headers of reports": (repeated(b'{"bug_type":"309","timestamp":"0"}\n'), TEXT),
    "logs": (counted(lambda i: b"2026-11-29T00:00:00Z INFO [worker] request #%d took 0x%x ns at /srv/app (ok): done\n" % (i, i)), TEXT),
}
