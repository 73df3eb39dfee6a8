"""`wasm-split`: build ids of WebAssembly modules, and companions with their debug information."""
import json, os, re, stat
from harness import contains, equal, linked, ok, symloom

UUID = "00112233-4455-6677-8899-aabbccddeeff"
CODE = bytes([10, 4, 1, 2, 0, 11])


def uleb(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def custom(name, contents):
    body = uleb(len(name)) + name.encode() + contents
    return b"\0" + uleb(len(body)) + body


def module(*sections):
    return b"\0asm\1\0\0\0" + bytes([1, 4, 1, 0x60, 0, 0]) + bytes([3, 2, 1, 0]) + CODE + b"".join(sections)


def sections(data):
    """(number, name or None, contents) of each."""
    def number(at):
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                return value, at
    at, found = 8, []
    while at < len(data):
        kind = data[at]
        size, begin = number(at + 1)
        at = begin + size
        if kind == 0:
            length, begin = number(begin)
            found.append((0, data[begin:begin + length].decode(), data[begin + length:at]))
        else:
            found.append((kind, None, data[begin:at]))
    return found


DEBUG = custom(".debug_info", b"\1" * 200) + custom(".debug_line", b"\2" * 30)


def made(work, data, name="in.wasm"):
    path = os.path.join(work, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def read(path):
    with open(path, "rb") as f:
        return f.read()


def test_debug_sections_are_split_into_the_companion(work, files):
    path, debug = made(work, module(custom("name", b"abc"), DEBUG)), os.path.join(work, "in.debug.wasm")
    os.chmod(path, 0o751)
    whole = read(path)
    equal(ok("wasm-split", path, "--build-id", UUID, "--strip", "-d", debug), UUID.replace("-", "") + "\n")
    main, companion = sections(read(path)), sections(read(debug))
    equal(main[-2:], [(0, "build_id", b"\x10" + bytes.fromhex(UUID.replace("-", ""))),
                      (0, "external_debug_info", b"\x0din.debug.wasm")])
    equal([name for _, name, _ in main], [None, None, None, "name", "build_id", "external_debug_info"])
    equal(companion[:-1], sections(whole))
    equal(companion[-1], main[-2])
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o751)
    before = os.stat(path)
    equal(ok("wasm-split", path), UUID.replace("-", "") + "\n")
    equal((os.stat(path).st_ino, os.stat(path).st_mtime_ns), (before.st_ino, before.st_mtime_ns))  # untouched
    contains(ok("inspect", path), "00112233-4455-6677-8899-aabbccddeeff")


def test_build_ids_are_made_kept_or_set(work, files):
    random = ok("wasm-split", made(work, module())).strip()
    assert re.fullmatch(r"[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}", random), random
    other = made(work, module(custom("build_id", b"\x03abc")), "own.wasm")
    result = symloom("wasm-split", "-v", other, "--build-id", UUID)
    equal((result.status, result.out), (0, "616263\n"))
    contains(result.err, "WARNING: the module already has a build id", "note: JavaScript SDKs send this id: 03616263\n")
    equal(ok("wasm-split", made(work, module(custom("build_id", b"\xFFabc")), "odd.wasm")), "ff616263\n")  # no length that fits
    for form in ("{" + UUID + "}", "urn:uuid:" + UUID, UUID.replace("-", "").upper()):
        equal(ok("wasm-split", made(work, module()), "--build-id", form), UUID.replace("-", "") + "\n")
    wrong = symloom("wasm-split", made(work, module()), "--build-id", UUID[:-1])
    equal((wrong.status, wrong.out), (2, ""))
    told = json.loads(ok("wasm-split", "--json", made(work, module(DEBUG)), "--build-id", UUID, "--strip", "--out", os.path.join(work, "o")))
    equal((told["build_id"], told["debug_id"], told["had_build_id"], told["bytes_out"]),
          (UUID.replace("-", ""), UUID, False, os.path.getsize(os.path.join(work, "o"))))


def test_options_drop_and_replace_sections(work, files):
    path, out = made(work, module(custom("name", b"abc"), DEBUG, custom("external_debug_info", b"\1a"))), os.path.join(work, "out.wasm")
    ok("wasm-split", path, "-o", out, "--strip-names", "-q", program=None)
    equal([name for _, name, _ in sections(read(out))], [None] * 3 + [".debug_info", ".debug_line", "external_debug_info", "build_id"])
    lost = symloom("wasm-split", path, "-o", out, "--strip", "--external-dwarf-url", "https://x/y.wasm", "-q")
    equal((lost.status, lost.out), (0, ""))
    contains(lost.err, "WARNING: debug information is discarded; pass --debug-out to keep it")
    equal(sections(read(out))[-1], (0, "external_debug_info", b"\x10https://x/y.wasm"))
    equal(ok("--build-id", UUID, path, program=linked(work, "wasm-split")), UUID.replace("-", "") + "\n")


def test_malformed_modules_are_left_unchanged(work, files):
    for data in (b"", b"\0asm", b"\0asm\2\0\0\0", module()[:-1], module() + b"\0\x05\x7Fabcd", module() + b"\0"):
        path = made(work, data)
        result = symloom("wasm-split", path, "--strip")
        equal((result.status, result.out), (3, ""), data)
        equal(read(path), data)
