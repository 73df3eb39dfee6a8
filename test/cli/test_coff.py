"""Object files of compilers for Windows: CodeView and DWARF in them, their symbols, and libraries of them."""
import json, os, re, struct

from harness import contains, equal, linked, ok, symloom

SOURCE = """namespace n {
struct S { int v; int get(int x) const; };
static inline __attribute__((always_inline)) int in(int x) {
  return x * 3 + 1;
}
int S::get(int x) const { return in(x) + v; }
}
template <class T> __attribute__((noinline)) T larger(T a, T b) { return a > b ? a : b; }
static __attribute__((noinline)) int helper(int x) {
  return n::in(x) - 5;
}
extern "C" int entry(int x) {
  n::S s{x};
  return helper(x) + s.get(2) + larger(x, 4);
}
"""
TARGETS = {"x86_64": "x86_64", "i686": "x86", "aarch64": "arm64"}


def compiled(work, files, target, flags, name="o.obj"):
    with open(f"{work}/s.cc", "w") as f:
        f.write(SOURCE)
    files.run(f"cd {work} && clang-19 --target={target}-pc-windows-msvc -O1 {flags} -c s.cc -o {name}")
    return os.path.join(work, name)


def chains(path, count, *options):
    """Names and lines at each byte: [(function, line), ..] from the innermost one."""
    return read_chains(ok("lookup", "-e", path, *options, *[f"0x{at:x}" for at in range(count)]))


def read_chains(found):
    return [[(name, place.split(":")[-2]) for name, place in zip(block.split("\n")[0::2], block.split("\n")[1::2])]
            for block in found.strip().split("\n\n")]


def code_size(files, path):
    """Of the sections with code, one after the other."""
    end = 0
    for block in re.split(r"\n  Section \{", files.run(f"llvm-readobj-19 --sections {path}"))[1:]:
        if "IMAGE_SCN_CNT_CODE" in block:
            align = int(re.search(r"IMAGE_SCN_ALIGN_(\d+)BYTES", block)[1])
            end = -(-end // align) * align + int(re.search(r"RawDataSize: (\d+)", block)[1])
    return end


def bare(chain):
    return [(name.split("(")[0], line) for name, line in chain]


def test_codeview_equals_llvm_on_the_linked_program(work, files):
    """Every byte of code, also of sections of their own, has the functions, inlined calls and lines that LLVM's tool knows of the linked
    program: the linker puts the sections one after the other, too."""
    for target, load in (("x86_64", 0x140000000), ("i686", 0x400000)):
        path = compiled(work, files, target, "-g -gcodeview")
        files.run(f"cd {work} && lld-link-14 /nodefaultlib /entry:entry /subsystem:console /safeseh:no /debug /opt:noref /opt:noicf /out:o.exe o.obj")
        size = code_size(files, path)
        wanted = read_chains(files.run(f"llvm-symbolizer-19 --obj={work}/o.exe " + " ".join(f"0x{load + 0x1000 + at:x}" for at in range(size))))
        pairs = [(at, bare(a), bare(b)) for at, (a, b) in enumerate(zip(chains(path, size), wanted)) if a[0][0] != "??"]  # padding
        equal([(at, a, b) for at, a, b in pairs if a != b and b[-1][0] != "??"], [], target)
        assert len(pairs) > size // 2 and any(len(a) == 2 for _, a, _ in pairs), pairs


def test_codeview_and_dwarf_agree(work, files):
    """Both are of one compiler, which gives the beginnings of functions to inlined calls in CodeView alone."""
    for target, arch in TARGETS.items():
        codeview = compiled(work, files, target, "-g -gcodeview", "cv.obj")
        dwarf = compiled(work, files, target, "-g -gdwarf", "dw.obj")
        size = code_size(files, codeview)
        equal(size, code_size(files, dwarf))
        got, wanted = chains(codeview, size), chains(dwarf, size)
        pairs = [(i, a, b) for i, (a, b) in enumerate(zip(got, wanted)) if a[0][0] != "??"]  # padding has lines of DWARF alone
        assert {("n::S::get(int) const",), ("entry(int)",), ("larger<int>(int, int)",)} <= {tuple(n for n, _ in c[-1:]) for c in got}, got
        equal([(i, a, b) for i, a, b in pairs if bare(a) != bare(b) and len(a) == len(b)], [], target)
        assert sum(len(a) != len(b) for _, a, b in pairs) < 8, (target, pairs)
        inspected = ok("inspect", "--verify", codeview)
        contains(inspected, f"Format       coff (object)", f"Arch         {arch}, load address 0x0", "Usable       yes")
        records = ok("dump-syms", "--inlines", codeview)
        contains(records, f"MODULE windows {arch} ", "INLINE_ORIGIN 0 n::in(int)\n", " n::S::get(int) const\n")


def test_dwarf_in_coff_equals_llvm_for_every_byte(work, files):
    """Where one section has all code, LLVM's tool knows which function an address is in, and the lines of DWARF."""
    llvm = linked(work, "llvm-symbolizer")
    text = "".join(f"int f{i}(int x) {{\n  return x * {i} +\n    g(x);\n}}\n" for i in range(3, 9))
    with open(f"{work}/c.c", "w") as f:
        f.write("int g(int);\nstatic __attribute__((noinline)) int own(int x) { return g(x) + 2; }\n" + text + "int last(int x) { return own(x); }\n")
    for target in ("x86_64-pc-windows-msvc", "i686-pc-windows-msvc", "aarch64-pc-windows-msvc"):
        for flags, output in (("-g -gdwarf", "llvm"), ("", "llvm")):
            files.run(f"cd {work} && clang-19 --target={target} -O1 {flags} -c c.c -o c.obj")
            path = f"{work}/c.obj"
            addresses = [f"0x{at:x}" for at in range(code_size(files, path))]
            wanted = files.run(f"llvm-symbolizer-19 --no-demangle --obj={path} {' '.join(addresses)}")
            equal(ok("--no-demangle", f"--obj={path}", *addresses, program=llvm), wanted, target + flags)
    for flags in ("", "-ffunction-sections"):
        files.run(f"cd {work} && x86_64-w64-mingw32-gcc -O1 -g {flags} -c c.c -o c.obj")
        functions = {name: chain for chain in chains(path, code_size(files, path)) for name, _ in chain[-1:]}
        assert {f"f{i}" for i in range(3, 9)} | {"own", "last"} <= set(functions), (flags, functions)
        assert all(int(functions[f"f{i}"][0][1]) for i in range(3, 9)), functions


def test_mangled_names_are_shown_without_demangling(work, files):
    path = compiled(work, files, "x86_64", "-g -gcodeview")
    size = code_size(files, path)
    names = {chain[-1][0] for chain in chains(path, size, "--no-demangle")}
    assert {"?get@S@n@@QEBAHH@Z", "entry", "?helper@@YAHH@Z", "??$larger@H@@YAHHH@Z"} <= names, names
    at = next(i for i, chain in enumerate(chains(path, size)) if chain[0][0] == "n::in(int)")
    equal(chains(path, size, "--no-demangle")[at][0][0], "n::in")


def test_section_option_takes_section_offsets(work, files):
    """An offset in a section is an address."""
    path = compiled(work, files, "x86_64", "-g -gcodeview")
    equal(ok("lookup", "-e", path, "-j", ".text", "0x0"), ok("lookup", "-e", path, "0x0"))


def test_libraries_list_members_and_imports(work, files):
    """Object files are members of libraries; imports have no code, and are told."""
    one = compiled(work, files, "x86_64", "-g -gcodeview", "one.obj")
    with open(f"{work}/two.c", "w") as f:
        f.write("int two(int x) { return x; }\n")
    with open(f"{work}/k.def", "w") as f:
        f.write("LIBRARY kernel.dll\nEXPORTS\n  GetTick\n  Sleep\n")
    files.run(f"cd {work} && clang-19 --target=x86_64-pc-windows-msvc -g -gcodeview -c two.c -o two.obj && "
              "llvm-lib-19 /out:both.lib one.obj two.obj && llvm-lib-19 /out:one.lib one.obj && "
              "llvm-lib-19 /def:k.def /machine:x64 /out:k.lib && x86_64-w64-mingw32-ar rcs gnu.a one.obj two.obj")
    for library in ("both.lib", "gnu.a"):
        equal(ok("lookup", "-e", f"{work}/{library}(two.obj)", "0x0").split("\n")[0], "two(int)")
        equal(ok("lookup", "-e", f"{work}/{library}(one.obj)", "0x0"), ok("lookup", "-e", one, "0x0"))
        several = symloom("lookup", "-e", f"{work}/{library}", "0x0")
        equal(several.status, 3)
        contains(several.err, "an archive of 2 debug files; choose one with ", "(MEMBER): ", "one.obj", "two.obj")
        equal(len(json.loads(ok("inspect", "--json", f"{work}/{library}"))), 2)
        contains(ok("dump-syms", f"{work}/{library}(two.obj)"), " two(int)\n")
    equal(ok("lookup", "-e", f"{work}/one.lib", "0x0"), ok("lookup", "-e", one, "0x0"))
    imports = symloom("lookup", "-e", f"{work}/k.lib(kernel.dll)", "0x0")
    equal(imports.status, 3)
    contains(imports.err, "an import of kernel.dll: it contains no code")
    contains(symloom("dump-syms", f"{work}/k.lib").err, "an import library of kernel.dll: its members contain no code")


def test_types_in_an_external_pdb_are_reported_as_missing(work, files):
    """Compilers that keep types in a PDB of their own leave object files without parameters and inlined calls: that is told."""
    path = compiled(work, files, "x86_64", "-g -gcodeview")
    with open(path, "rb") as f:
        data = bytearray(f.read())
    at = next(struct.unpack_from("<I", data, 20 + 40 * i + 20)[0] for i in range(struct.unpack_from("<H", data, 2)[0])
              if data[20 + 40 * i:28 + 40 * i] == b".debug$T")
    name = b"C:\\b\\vc140.pdb\0"
    struct.pack_into("<HH16sI", data, at + 4, 2 + 20 + len(name), 0x1515, b"", 1)
    data[at + 28:at + 28 + len(name)] = name
    with open(path, "wb") as f:
        f.write(data)
    found = symloom("lookup", "-e", path, "0x0")
    contains(found.err, "the types of the object file are in C:\\b\\vc140.pdb, which is not available: names have no parameters, and inlined calls are missing")
    contains(symloom("dump-syms", path).err, "the types of the object file are in C:\\b\\vc140.pdb")


def test_bigobj_with_many_sections_is_read(work, files):
    """More than 16 bits count, as /bigobj makes them."""
    sections = "".join(f'.section .text$f{i},"xr",one_only,f{i}\n.globl f{i}\n.def f{i}; .scl 2; .type 32; .endef\nf{i}: ret\n' for i in range(66000))
    with open(f"{work}/big.s", "w") as f:
        f.write(sections)
    files.run(f"cd {work} && clang-19 --target=x86_64-pc-windows-msvc -c big.s -o big.obj")
    path = f"{work}/big.obj"
    equal(open(path, "rb").read(4), b"\0\0\xff\xff")
    equal(ok("lookup", "-e", path, f"0x{65999:x}").split("\n")[0], "f65999")
