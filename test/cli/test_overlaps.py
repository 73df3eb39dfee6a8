"""Modules of minidumps that overlap, as where code of Android lies in an archive that is mapped as a whole: they all stay in the list,
and an address belongs to the smallest that holds it and has an id."""
import json, os, struct
import dumps
from harness import contains, equal, ok
from test_crash import home
from test_walk import write

BASE, STACK = 0x7000000000, 0x7FFE0000000
IDS = {"base.apk": "01" * 20, "libmid.so": "02" * 20, "libinner.so": "03" * 20, "libart.so": "04" * 20}
# (offset, size, name): three that lie in one another, one of them with a module without id in it, and a module without id around one
# with id and one without
MODULES = [(0, 0x100000, "base.apk"), (0x20000, 0x20000, "libmid.so"), (0x28000, 0x1000, "libinner.so"), (0x30000, 0x1000, "guard"),
           (0x200000, 0x10000, "dalvik-jit-code-cache"), (0x204000, 0x1000, "libart.so"), (0x206000, 0x1000, "anonymous")]


def overlapping(returns, modules=MODULES, at=0x28800):
    """A thread at `at` whose stack has these addresses to return to."""
    registers = {"rip": BASE + at, "rsp": STACK}
    stack = b"".join(struct.pack("<Q", BASE + r) for r in returns)
    dump = dumps.Dump().crash(1, 11, 1, 8, registers=registers)
    dump.threads.append((1, registers, STACK, stack + bytes(2048 - len(stack))))
    dump.modules += [(BASE + start, size, f"/data/{name}", dumps.elf(IDS[name]) if name in IDS else b"", 0) for start, size, name in modules]
    return dump.done()


def breakpad_id(build_id):
    raw = bytes.fromhex(build_id)[:16]
    return (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex().upper() + "0"


def symbols(work):
    """Of each module with an id one function, as large as the module; of the innermost one also how it is unwound."""
    for start, size, name in MODULES:
        if name in IDS:
            id, function = breakpad_id(IDS[name]), "in_" + name.replace(".", "_")
            text = f"MODULE Linux x86_64 {id} {name}\nFUNC 0 {size:x} 0 {function}\n"
            if name == "libinner.so":
                text += "STACK CFI INIT 0 1000 .cfa: $rsp 16 + .ra: .cfa 8 - ^\n"
            write(os.path.join(work, "syms", name, id, f"{name}.sym"), text)
    return os.path.join(work, "syms")


def symbolicate(work, dump, *args):
    path = write(os.path.join(work, "overlaps.dmp"), dump)
    return ok("symbolicate", "--offline", "--cache-dir", "", *args, path, env=home(work), cwd=work)


def owners(work, dump, *args):
    """The module of each frame."""
    frames = json.loads(symbolicate(work, dump, *args))["stacktraces"][0]["frames"]
    return [os.path.basename(frame.get("package", "-")) for frame in frames]


def test_address_belongs_to_the_smallest_module_with_an_id(work, files):
    inside = [(0x1000, "base.apk"), (0x21000, "libmid.so"), (0x28100, "libinner.so"), (0x30800, "libmid.so"), (0x3F000, "libmid.so"),
              (0x41000, "base.apk"), (0x201000, "dalvik-jit-code-cache"), (0x204800, "libart.so"), (0x206800, "anonymous"),
              (0x20F000, "dalvik-jit-code-cache")]
    equal(owners(work, overlapping([at for at, _ in inside])), ["libinner.so"] + [name for _, name in inside])


def test_return_address_belongs_to_the_module_of_the_call(work, files):
    """The call lies in front of the address to return to, which may be the first of another module."""
    ends = [(0x29000, "libinner.so"), (0x28000, "libmid.so"), (0x20000, "base.apk"), (0x40000, "libmid.so"), (0x100000, "base.apk"),
            (0x204000, "dalvik-jit-code-cache"), (0x205000, "libart.so"), (0x210000, "dalvik-jit-code-cache")]
    equal(owners(work, overlapping([at for at, _ in ends], at=0x28000)), ["libinner.so"] + [name for _, name in ends])
    equal(owners(work, overlapping([], at=0x27FFF)), ["libmid.so"])
    equal(owners(work, overlapping([], at=0x29000)), ["libmid.so"])


def test_module_with_an_id_wins_over_one_of_the_same_range(work, files):
    """The one with the id, whichever comes first; of several the first."""
    twice = [(0, 0x10000, "guard"), (0, 0x10000, "libmid.so"), (0, 0x10000, "libinner.so")]
    for modules, owner in ((twice, "libmid.so"), (twice[::-1], "libinner.so"), (twice[:1] * 2, "guard")):
        answer = json.loads(symbolicate(work, overlapping([0x2000], modules, at=0x1000), "-f", "minidump-json"))
        equal([m["filename"] for m in answer["modules"]], [name for _, _, name in modules])
        equal([f["module"] for f in answer["crashing_thread"]["frames"]], [owner] * 2)


def test_every_format_shows_the_same_module(work, files):
    dump, syms = overlapping([0, 0x1000, 0x28100, 0, 0x21000, 0x204800]), symbols(work)
    modules = ["libinner.so", "base.apk", "libinner.so", "libmid.so", "libart.so"]
    offsets = [0x800, 0x1000 - 1, 0x100 - 1, 0x1000 - 1, 0x800 - 1]
    functions = ["in_" + name.replace(".", "_") for name in modules]
    answer = json.loads(symbolicate(work, dump, "--symbols", syms, "-f", "minidump-json"))
    frames = answer["crashing_thread"]["frames"]
    equal([(f["module"], int(f["module_offset"], 16), f["function"]) for f in frames], list(zip(modules, offsets, functions)))
    equal(frames[1]["trust"], "cfi")
    equal([m["filename"] for m in answer["modules"]], [name for _, _, name in MODULES])
    equal([m["filename"] for m in answer["modules"] if m["loaded_symbols"]], list(IDS))
    machine = [line.split("|") for line in symbolicate(work, dump, "--symbols", syms, "-f", "machine").splitlines()]
    equal([line[2:4] for line in machine if line[0] == "0"], [list(pair) for pair in zip(modules, functions)])
    equal(sum(line[0] == "Module" for line in machine), len(MODULES))
    text = symbolicate(work, dump, "--symbols", syms, "-f", "stackwalk")
    for module, function in zip(modules, functions):
        contains(text, f"{module}!{function}")
    for name in IDS:
        contains(text, f"  {name}  ")
    assert "No symbols" not in text, text
    answer = json.loads(symbolicate(work, dump, "--symbols", syms))
    equal([f["function"] for f in answer["stacktraces"][0]["frames"]], functions)


def test_overlapping_images_of_apple_reports_are_resolved(work, files):
    images = [("outer", 0x100000, "01" * 16), ("inner", 0x1000, "02" * 16)]
    frames = [{"imageIndex": 0, "imageOffset": at} for at in (0x20800, 0x21000, 0x30000)]
    report = {"osVersion": {"train": "macOS 12.0.1", "build": "21A559"}, "cpuType": "X86-64", "threads": [{"id": 1, "triggered": True, "frames": frames}],
              "usedImages": [{"source": "P", "arch": "x86_64", "base": BASE + 0x20000 * i, "size": size, "uuid": uuid, "path": f"/Apps/{name}", "name": name}
                             for i, (name, size, uuid) in enumerate(images)]}
    head = {"app_name": "app", "bug_type": "309", "os_version": "macOS 12.0.1 (21A559)"}
    equal(owners(work, (json.dumps(head) + "\n" + json.dumps(report)).encode()), ["inner", "inner", "outer"])


def test_address_requests_resolve_overlaps_as_dumps_do(work, files):
    """A request that is symbolicated by the command finds modules as a dump does."""
    syms = symbols(work)
    modules = [{"type": "elf", "image_addr": hex(BASE + start), "image_size": size, "code_file": name, "debug_file": name,
                **({"code_id": IDS[name]} if name in IDS else {})} for start, size, name in MODULES]
    frames = [{"instruction_addr": hex(BASE + at)} for at in (0x28800, 0x41000, 0x29000, 0x30800, 0x20F000)]
    path = write(os.path.join(work, "request.json"), json.dumps({"modules": modules, "stacktraces": [{"frames": frames}]}))
    answer = json.loads(ok("symbolicate", "--offline", "--cache-dir", "", "--symbols", syms, path, env=home(work), cwd=work))
    equal([f["package"] for f in answer["stacktraces"][0]["frames"]],
          ["libinner.so", "base.apk", "libinner.so", "libmid.so", "dalvik-jit-code-cache"])
