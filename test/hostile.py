"""Requests that ask for more than they weigh: short ones whose answer is long, or that take long to work out. Each is made for a
size in bytes, which it has about, with what it refers to. For test/http, test/cost and test/soak alike."""
import json, os, struct, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [path for path in (HERE, os.path.join(HERE, "http"), os.path.join(HERE, "http", "js")) if path not in sys.path]
import artifacts as js
import dumps
import test_jvm as jvm
from harness import Upstream, http_source, multipart

PDB = "3249d99d-0c40-4931-8610-f4e4fb0b6936-1"
SYMBOLS = f"/crash.pdb/{PDB.replace('-', '').upper()}/crash.sym"
STACK, CODE = 0x7000000, 0x400000


class Hostile:
    """`upstream`: a server of files, to be used as a context; `request()`: (path, headers, body), while it serves; `size` is of the
    body then."""

    def __init__(self, path, body, upstream=None, headers=None):
        self.path, self.body, self.upstream = path, body, upstream or Upstream({})
        self.headers = headers or {"Content-Type": "application/json"}

    def request(self):
        body = self.body(self.upstream) if callable(self.body) else self.body
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.size = len(body)
        return self.path, self.headers, body


def posted(path, **parts):
    """A form; lists and dicts become JSON. What needs the upstream's URL is a function of it."""
    def value(part, upstream):
        part = part(upstream) if callable(part) else part
        return part if isinstance(part, (bytes, str)) else json.dumps(part)

    def body(upstream):
        return multipart([(name, value(part, upstream), *(["file"] if name in FILES else [])) for name, part in parts.items()])[0]
    return lambda up=None: Hostile(path, body, up, multipart([])[1])


FILES = ("upload_file_minidump", "apple_crash_report")


# ---- answers ----

def symbols(depth, name):
    """Functions that are inlined into one another, all at one address."""
    lines = ["MODULE windows x86 " + PDB.replace("-", "").upper() + " crash.pdb", "FILE 0 a.c"]
    lines += [f"INLINE_ORIGIN {i} {name}{i}" for i in range(depth)] + ["FUNC 10 10 0 main"]
    lines += [f"INLINE {i} 1 0 {i} 10 10" for i in range(depth)] + ["10 10 1 0", ""]
    return "\n".join(lines).encode()


def native(url, count):
    module = {"type": "pe", "debug_id": PDB, "debug_file": "crash.pdb", "image_addr": "0x400000", "image_size": 1 << 20}
    frame = {"instruction_addr": "0x400018", "adjust_instruction_addr": False}
    source = http_source(url, layout={"type": "native"}, filters={"filetypes": ["breakpad"]})
    return {"modules": [module], "stacktraces": [{"frames": [frame] * count}], "sources": [source]}


def names_of_modules(size):
    """One long path, and frames in it."""
    module = {"type": "elf", "debug_id": PDB[:-2], "code_file": "/" + "x" * (size // 2), "image_addr": "0x1000", "image_size": 1 << 20}
    return Hostile("/symbolicate", {"modules": [module], "stacktraces": [{"frames": [{"instruction_addr": "0x2000"}] * (size // 2 // 30)}],
                                    "sources": []})


def inlined_calls(size):
    """Calls in one another at one address, and frames there."""
    up = Upstream({SYMBOLS: symbols(size // 2 // 60, "f" * 10)})
    return Hostile("/symbolicate", lambda up: native(up.url, size // 2 // 75), up)


def classes(size):
    """One long name of a class, and frames in it."""
    mapping = f"a.{'b' * (size // 2)} -> a.b:\n    1:1:void m():1:1 -> c\n"
    body = lambda up: jvm.asked(up, stacktraces=[{"frames": [jvm.frame("c", 1, i) for i in range(size // 2 // 66)]}])
    return Hostile("/symbolicate-jvm", body, Upstream({jvm.places(jvm.ID, "proguard"): mapping.encode()}))


def sources_of_maps(size):
    """One long name of a source, and frames in it."""
    files = {"/app.js": "f();\n//# sourceMappingURL=app.js.map\n",
             "/app.js.map": js.source_map(sources=["s" * (size // 2) + ".js"], sourcesContent=["x\n"], mappings="AAAA")}
    frames = [js.frame("http://example.com/app.js", 1, 1) for _ in range(size // 2 // 67)]
    return Hostile("/symbolicate-js", lambda up: js.asked(up, frames), js.Sentry([js.told(1, "~/app.js"), js.told(2, "~/app.js.map")], files))


def images_of_reports(size):
    """One long name of an image of an .ips, and frames in it."""
    frame = {"imageOffset": 1, "imageIndex": 0}
    report = {"threads": [{"frames": [frame] * (size // 2 // 34)}],
              "usedImages": [{"base": 4096, "size": 4096, "uuid": "0", "path": "/" + "n" * (size // 2)}]}
    head = '{"app_name":"a","timestamp":"2022-01-01 00:00:00.00 +0000","bug_type":"309"}\n'
    return posted("/applecrashreport", apple_crash_report=head + json.dumps(report))()


def dump(threads, stack, name, codeview=b"", platform=dumps.LINUX):
    """Threads that all have the same registers and stack, which their frame pointer is the beginning of, and one module."""
    context = bytes(dumps.context(dumps.AMD64, {"rip": CODE + 0x1000, "rsp": STACK, "rbp": STACK}))
    text = name.encode("utf-16-le")
    body = context + stack + struct.pack("<I", len(text)) + text + codeview
    at_stack, at_name = 32 + len(context), 32 + len(context) + len(stack)
    thread = struct.pack("<Q4I", STACK, len(stack), at_stack, len(context), 32)
    module = struct.pack("<Q4I52x2I24x", CODE, 0x10000, 0, 0, at_name, len(codeview), at_name + 4 + len(text))
    streams = [(7, struct.pack("<HHHBB5IHH24x", dumps.AMD64, 0, 0, 1, 0, 10, 0, 1, platform, 0, 0, 0)),
               (3, struct.pack("<I", threads) + b"".join(struct.pack("<4IQ", i, 0, 0, 0, 0) + thread for i in range(threads))),
               (4, struct.pack("<I", 1) + module)]
    return dumps.finished(streams, body)


def chain(count):
    """A stack of frame pointers, each with a return address."""
    return b"".join(struct.pack("<QQ", STACK + 16 * (i + 1), CODE + 0x1010) for i in range(count))


def modules_of_dumps(size):
    """One long name of a module, of as many bytes as are taken, and threads on one stack in it."""
    return posted("/minidump", upload_file_minidump=dump(size // 2 // 48, chain(256), "n" * (size // 8)))()


# ---- work ----

def patterns(size):
    """Of names, that go back and forth."""
    name = "w" * (size // 2) + "!x"
    codeview = dumps.pdb70("01234567-89ab-cdef-0123-456789abcdef", 1, name)
    rules = [{"from": r"\w*?\w*![0-9]", "to": "a"}] * 100
    return posted("/minidump", upload_file_minidump=dump(1, chain(1), "a.exe", codeview, dumps.WINDOWS), rewrite_first_module=rules)()


def unwind_rules(size):
    """Long expressions for each register, threads on one stack whose frames all have them."""
    id = "0123456789abcdef0123456789abcdef"
    work = " ".join(["1 +"] * (size // 16 // 4))
    rules = " ".join(f"${r}: ${r} {work}" for r in ("rbx", "r12", "r13", "r14", "r15", "rax", "rcx", "rdx"))
    text = f"MODULE Linux x86_64 {id.upper()}0 lib.so\nFUNC 0 10000 0 f\nSTACK CFI INIT 0 10000 .cfa: $rsp 16 + .ra: .cfa 8 - ^ $rbp: .cfa 16 - ^ {rules}\n"
    place = "-".join((id[:8], id[8:12], id[12:16], id[16:20], id[20:]))
    guid = id.upper() + "0"
    codeview = dumps.pdb70(place, 0, "lib.so")
    source = lambda up: [http_source(up.url, layout={"type": "native"}, filters={"filetypes": ["breakpad"]})]
    up = Upstream({f"/lib.so/{guid}/lib.so.sym": text.encode()})
    return posted("/minidump", upload_file_minidump=dump(size // 2 // 48, chain(512), "lib.so", codeview, dumps.WINDOWS), sources=source)(up)


ANSWERS = {f.__name__: f for f in (names_of_modules, inlined_calls, classes, sources_of_maps, images_of_reports, modules_of_dumps)}
WORK = {f.__name__: f for f in (patterns, unwind_rules)}
