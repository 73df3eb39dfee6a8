"""Files without an id: one is made of their contents. And names as files have them."""
import hashlib, json, os, re, struct

from harness import contains, equal, linked, ok, symloom

NIL = "0" * 33


def module_id(*arguments):
    result = symloom("dump-syms", *arguments)
    equal(result.status, 0, result.err)
    return result.out.split()[3], result.err


def macho(work, files, name, source, arch="x86_64"):
    """An executable without LC_UUID, which the linker always writes: the command becomes one that says nothing."""
    with open(f"{work}/{name}.c", "w") as f:
        f.write(source)
    files.run(f"cd {work} && clang-14 --target={arch}-apple-macos11 -O1 -c {name}.c -o {name}.o && "
              f"ld64.lld-14 -platform_version macos 11 11 -arch {arch} -dylib -undefined dynamic_lookup -o {name} {name}.o")
    path = f"{work}/{name}"
    with open(path, "rb") as f:
        data = bytearray(f.read())
    at, count = 32, struct.unpack_from("<I", data, 16)[0]
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command == 0x1B:
            struct.pack_into("<I", data, at, 0x7F)
        at += size
    with open(path, "wb") as f:
        f.write(data)
    return path, bytes(data)


def md5_of_sections(data):
    """As Breakpad makes the id of such a file: of what sections have in the file, in the order of the load commands."""
    digest, at = hashlib.md5(), 32
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<II", data, at)
        sections = struct.unpack_from("<I", data, at + 64)[0] if command == 0x19 else 0
        for i in range(sections):
            _, length, offset, _, _, _, flags = struct.unpack_from("<QQIIIII", data, at + 72 + 80 * i + 32)
            if flags & 0xFF != 1 and offset:
                digest.update(data[offset:offset + length])
        at += size
    return digest.hexdigest().upper() + "0"


SOURCE = "int puts(const char *);\nint f(int x) { return x * %d; }\nint g(void) { return puts(\"a\"); }\n"


def told(path):
    """The id that inspect tells."""
    hints = json.loads(ok("inspect", "--json", path))[0]["hints"]
    return next(h for h in hints if "no id: " in h).split(": ")[-1].replace("-", "").upper() + "0"


def test_mach_o_without_uuid_gets_a_hash_of_sections(work, files):
    one, data = macho(work, files, "one", SOURCE % 3)
    two, _ = macho(work, files, "two", SOURCE % 5)
    found, said = module_id(one)
    equal(found, md5_of_sections(data))
    equal(said.replace(symloom("dump-syms", "--id", "A" * 33, one).err, ""), "")
    equal(told(one), found)
    assert module_id(two)[0] not in (found, NIL)
    contains(ok("inspect", "--check", one), "Usable: yes")
    ok("sort", "-q", "-o", f"{work}/sorted", one)
    assert os.path.exists(f"{work}/sorted/{found[:2].lower()}/{found[2:].lower()}/executable")
    equal(module_id("--id", "A" * 33, one)[0], "A" * 33)


def test_id_of_pe_and_wasm_is_stable_under_stripping(work, files):
    """Stripping changes nothing of the id; other code does."""
    files.get("t")
    for number in (3, 5):
        with open(f"{work}/w{number}.c", "w") as f:
            f.write("int f(int x) { return x * %d; }\nint main(void) { return f(1); }\n" % number)
        files.run(f"cd {work} && x86_64-w64-mingw32-gcc -O1 -g w{number}.c -o w{number}.exe && clang-14 --target=wasm32 -O1 -g -c w{number}.c -o w.o && "
                  f"wasm-ld-14 --no-entry --export-all -o w{number}.wasm w.o")
    files.run(f"cd {work} && x86_64-w64-mingw32-strip -o stripped.exe w3.exe && wasm-ld-14 --no-entry --export-all --strip-debug -o stripped.wasm "
              f"w.o && clang-14 --target=wasm32 -O1 -g -c w3.c -o w.o && wasm-ld-14 --no-entry --export-all --strip-debug -o stripped.wasm w.o")
    for kind in ("exe", "wasm"):
        found = module_id(f"{work}/w3.{kind}")[0]
        assert found != NIL and found != module_id(f"{work}/w5.{kind}")[0]
        equal(module_id(f"{work}/stripped.{kind}")[0], found)
        equal(told(f"{work}/w3.{kind}"), found)
        ok("sort", "-q", "-o", f"{work}/sorted", f"{work}/w3.{kind}")
        assert os.path.exists(f"{work}/sorted/{found[:2].lower()}/{found[2:].lower()}/executable")
    files.run(f"cd {work} && objcopy --only-keep-debug -R .text -R .data -R .rdata -R .pdata -R .xdata -R .idata -R .CRT -R .tls w3.exe only.exe")
    result = symloom("dump-syms", f"{work}/only.exe")
    contains(result.out, f" {NIL} only.exe")
    contains(result.err, "the file has no id and no code to derive one from, so its symbols cannot be found by id; set one with --id")


def test_files_without_id_answer_by_path(work, files):
    """Modules that are given by their path answer, of programs as of object files."""
    with open(f"{work}/w.c", "w") as f:
        f.write("int f(int x) { return x * 3; }\nint main(void) { return f(1); }\n")
    files.run(f"cd {work} && x86_64-w64-mingw32-gcc -O1 -g w.c -o w.exe && clang-14 --target=x86_64-pc-windows-msvc -g -gcodeview -c w.c -o w.obj")
    start = int(next(line.split()[0] for line in files.run(f"nm {work}/w.exe").splitlines() if line.endswith(" T f")), 16) - 0x140000000
    for name, at in (("w.exe", start), ("w.obj", 0)):
        found = ok("symbolicate", "--module", f"{work}/{name}@0x10000", f"0x{0x10000 + at + 1:x}", "-f", "compact")
        contains(found, " w.c:1")


def test_files_with_an_id_are_not_warned_of(work, files):
    found, said = module_id(files.get("t"))
    assert "no id" not in said and found != NIL, said


def test_mangled_names_of_a_pdb_equal_llvm(work, files):
    """Mangled, as LLVM's tool has them; of what has no such name, the one of the debug information."""
    with open(f"{work}/p.cc", "w") as f:
        f.write("""namespace n {
static inline __attribute__((always_inline)) int in(int x) { return x * sink; }
struct S { int v; __attribute__((noinline)) int get(int x) const { return in(x) + v; } };
static __attribute__((noinline)) int own(int x) { return x - sink; }
template <class T> __attribute__((noinline)) T larger(T a, T b) { return a > b ? a : b; }
}
extern "C" int entry(int x) { n::S s{x}; return s.get(x) + n::own(x) + n::larger(x, 4); }
""")
    files.get("t.exe")
    for target in ("x86_64", "i686"):
        files.run(f"cd {work} && printf 'extern volatile int sink;\\n' > sink.h && printf 'volatile int sink;\\n' > sink.cc && "
                  f"for f in p.cc sink.cc; do clang-14 --target={target}-pc-windows-msvc -fno-exceptions -ffreestanding -g -gcodeview -O1 -include sink.h -c -o $f.obj $f || exit; done && "
                  f"lld-link-14 /nodefaultlib /entry:entry /subsystem:console /safeseh:no /debug /out:p.exe p.cc.obj sink.cc.obj")
        load = 0x140000000 if target == "x86_64" else 0x400000
        size = int(re.search(r"length = (\d+), alignment = \d+, rva = 4096", files.run(f"llvm-pdbutil-14 dump --symbols {work}/p.pdb"))[1])
        addresses = [f"0x{load + 0x1000 + at:x}" for at in range(size)]
        got = ok("lookup", "--no-demangle", "--no-inlines", "-e", f"{work}/p.exe", *addresses).split("\n\n")
        wanted = files.run(f"llvm-symbolizer-19 --no-demangle --no-inlines --obj={work}/p.exe {' '.join(addresses)}").split("\n\n")
        names = lambda blocks: [block.split("\n")[0] for block in blocks if block.strip()]
        pairs = [(a, b) for a, b in zip(names(got), names(wanted)) if a != "??"]
        assert len(pairs) > 40
        equal([a for a, _ in pairs], [b for _, b in pairs], target)
        decorated = "_entry" if target == "i686" else "entry"
        assert decorated in names(got) and any(n.startswith("?get@S@n@@") for n in names(got)), set(names(got))
        at = addresses[next(i for i, block in enumerate(ok("lookup", "-e", f"{work}/p.exe", *addresses).split("\n\n")) if block.startswith("n::in(int)"))]
        equal(ok("lookup", "--no-demangle", "-e", f"{work}/p.exe", at).split("\n")[0], "n::in")


def test_symbol_table_gives_file_names(work, files):
    """The tools whose names it takes tell the file of a symbol by the symbol table where nothing else does."""
    for name in "ab":
        with open(f"{work}/{name}.c", "w") as f:
            f.write(f"static __attribute__((noinline)) int own_{name}(int x) {{ return x * 3; }}\nint all_{name}(int x) {{ return own_{name}(x) + 1; }}\n")
    with open(f"{work}/m.c", "w") as f:
        f.write("int all_a(int), all_b(int); int main(int n, char **v) { return all_a(n) + all_b(n); }\n")
    files.run(f"cd {work} && gcc -O1 -c a.c && gcc -O1 -c b.c && gcc -O1 -g m.c a.o b.o -o app && ld -r a.o b.o -o r.o && gcc -O1 -ffunction-sections -c a.c -o s.o")
    programs = {name: linked(work, name) for name in ("addr2line", "llvm-symbolizer", "llvm-addr2line")}
    for name in ("app", "a.o", "r.o", "s.o"):
        path = f"{work}/{name}"
        symbols = [line.split() for line in files.run(f"nm {path}").splitlines()]
        addresses = [f"0x{int(words[0], 16) + at:x}" for words in symbols if len(words) == 3 and words[1] in "tT" for at in (0, 1)]
        if name == "s.o":  # sections lie one after the other here, and all at 0 there
            addresses = ["0x0", "0x1"]
        commands = {"addr2line": ("addr2line", "-f -e"), "llvm-symbolizer": ("llvm-symbolizer-19", "-e"), "llvm-addr2line": ("llvm-addr2line-19", "-f -e")}
        for own, (theirs, options) in commands.items():
            if name == "s.o" and own != "addr2line":
                continue
            wanted = files.run(f"{theirs} {options} {path} {' '.join(addresses)}")
            equal(ok(*options.split(), path, *addresses, program=programs[own]), wanted, f"{own} {name}")
        assert "a.c" not in ok("lookup", "-e", path, *addresses)
    own = f"0x{int(next(line.split()[0] for line in files.run(f'nm {work}/app').splitlines() if line.endswith(' own_a')), 16):x}"
    for options in ("-f=none", "-f=short", "-s", "--output-style=JSON", "--verbose"):
        equal(ok(options, "-e", f"{work}/app", own, program=programs["llvm-symbolizer"]).replace("??", "own_a" if "short" in options else "??"),
              files.run(f"llvm-symbolizer-19 {options} -e {work}/app {own}").replace("??", "own_a" if "short" in options else "??"))
    equal(ok("-e", f"{work}/app", own, program=programs["addr2line"]), files.run(f"addr2line -e {work}/app {own}"))


def test_mach_o_stubs_are_named(work, files):
    """Jumps to other libraries are named as Apple's tools do it."""
    for arch in ("x86_64", "arm64"):
        path, _ = macho(work, files, f"stubs.{arch}", "int puts(const char *), _Z3fooi(int);\nint f(int x) { return puts(\"a\") + _Z3fooi(x); }\n", arch)
        section = re.search(r"sectname __stubs\n.*?addr 0x(\w+)\n\s+size 0x(\w+)\n.*?reserved2 (\d+)", files.run(f"llvm-otool-14 -l {path}"), re.S)
        if not section:
            section = re.search(r"sectname __stubs\n.*?addr 0x(\w+)\n\s+size 0x(\w+)\n.*?reserved2 (\d+)", files.run(f"llvm-objdump-14 --macho --private-headers {path}"), re.S)
        begin, size, step = int(section[1], 16), int(section[2], 16), int(section[3])
        equal(size, 2 * step)
        listing = files.run(f"llvm-objdump-14 --macho --indirect-symbols {path}")
        order = [re.search(rf"0x0*{begin + i * step:x}\s+\d+ (\w+)", listing)[1] for i in range(2)]
        equal(sorted(order), ["__Z3fooi", "_puts"])
        readable = {"_puts": "DYLD-STUB$$puts", "__Z3fooi": "DYLD-STUB$$foo(int)"}
        for at in range(size):
            equal(ok("lookup", "-e", path, f"0x{begin + at:x}").split("\n")[0], readable[order[at // step]])
        contains(ok("lookup", "--no-demangle", "-e", path, *[f"0x{begin + at:x}" for at in range(size)]), "DYLD-STUB$$_Z3fooi\n")
        contains(ok("dump-syms", path), *[f"PUBLIC {begin + i * step:x} 0 {readable[name]}\n" for i, name in enumerate(order)])
        contains(ok("inspect", "--symbols", path), "DYLD-STUB$$puts")
