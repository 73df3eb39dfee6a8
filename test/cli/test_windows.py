"""Programs for Windows: names of C with their decoration, folded functions, functions without lines or without symbols."""
import os, re, subprocess

from harness import contains, equal, ok

HELPERS = """
int sink;
__declspec(noinline) int %(std)s RtlUnwindAll(int a, int b) { return sink += a * b; }
__declspec(noinline) int %(std)s ZwClose(int a) { return sink -= a; }
__declspec(noinline) int __fastcall fast(int a, int b, int c) { return sink = a + b + c; }
__declspec(noinline) int __tmainStart(int a) { return sink ^= a; }
int entry(int a) { return RtlUnwindAll(a, 2) + ZwClose(a) + fast(a, 1, 2) + __tmainStart(a); }
"""


def built(work, name, source, target="x86_64", flags="", link="", assemble=None):
    """Path of a PE file with its PDB beside it; `assemble` rewrites the assembler's text in between."""
    path = os.path.join(work, name)
    with open(path + ".c", "w") as f:
        f.write(source)

    def run(*command):
        done = subprocess.run(command, cwd=work, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    run("clang-14", f"--target={target}-pc-windows-msvc", "-g", "-gcodeview", "-O1", "-ffreestanding", "-fno-builtin",
        "-fdebug-compilation-dir=C:\\build", *flags.split(), "-S", "-o", name + ".s", name + ".c")
    if assemble:
        with open(path + ".s") as f:
            text = assemble(f.read())
        with open(path + ".s", "w") as f:
            f.write(text)
    run("clang-14", f"--target={target}-pc-windows-msvc", "-c", "-o", name + ".obj", name + ".s")
    run("lld-link-14", "/nodefaultlib", "/entry:entry", "/subsystem:console", "/safeseh:no", "/debug", "/opt:noref", "/opt:noicf",
        *link.split(), f"/out:{name}.exe", name + ".obj")
    return path


def publics(pdb):
    """Names and relative addresses of symbols in the first section, as LLVM reads them."""
    text = subprocess.run(["llvm-pdbutil-14", "dump", "--publics", pdb], capture_output=True, text=True, check=True).stdout
    return {name: int(offset) + 0x1000 for name, offset in re.findall(r"`(\S+)`\n\s+flags = \w+, addr = 0001:(\d+)", text)}


def test_x86_decoration_is_removed(work, files):
    path = built(work, "x86", HELPERS % {"std": "__stdcall"}, "i686")
    symbols = publics(path + ".pdb")
    assert {"_RtlUnwindAll@8", "_ZwClose@4", "@fast@12", "___tmainStart"} <= set(symbols), symbols
    found = [line.split(" ", 4)[1:] for line in ok("dump-syms", path + ".pdb").splitlines() if line.startswith("FUNC")]
    equal({name: parameters for _, _, parameters, name in found},
          {"RtlUnwindAll(int, int)": "8", "ZwClose(int)": "4", "fast(int, int, int)": "c", "__tmainStart(int)": "0", "entry(int)": "0"})
    # the same of a file's own symbols, and of DWARF
    gnu = os.path.join(work, "x86.gnu")
    sizes = {"RtlUnwindAll": "8", "ZwClose": "4", "fast": "c", "__tmainStart": "0"}
    for kind in ("PUBLIC", "FUNC"):
        subprocess.run(["i686-w64-mingw32-gcc", "-O1", "-g" if kind == "FUNC" else "-g0", "-ffreestanding", "-fno-builtin", "-nostdlib",
                        "-Wl,-e,_entry", "-o", gnu, path + ".c"], check=True, capture_output=True)
        found = [line.split() for line in ok("dump-syms", gnu).splitlines() if line.startswith(kind + " ")]
        equal({line[-1]: line[-2] for line in found if line[-1] != "entry" and "TOR_LIST" not in line[-1]}, sizes, kind)  # the linker's


def test_x64_names_are_left_undecorated(work, files):
    path = built(work, "x64", HELPERS % {"std": ""})
    equal(sorted(line.split(" ", 4)[4] for line in ok("dump-syms", path + ".pdb").splitlines() if line.startswith("FUNC")),
          ["RtlUnwindAll(int, int)", "ZwClose(int)", "__tmainStart(int)", "entry(int)", "fast(int, int, int)"])
    gnu = os.path.join(work, "x64.gnu")
    subprocess.run(["x86_64-w64-mingw32-gcc", "-O1", "-g", "-ffreestanding", "-fno-builtin", "-shared", "-nostdlib", "-Wl,-e,entry",
                    "-o", gnu, path + ".c"], check=True, capture_output=True)
    contains(ok("dump-syms", gnu), " __tmainStart\n")
    subprocess.run(["x86_64-w64-mingw32-strip", "-g", gnu], check=True)
    contains(ok("dump-syms", gnu), " __tmainStart\n")
    assert " tmainStart" not in ok("dump-syms", gnu)


FOLDED = """int sink;
int __attribute__((noinline)) one(int x)
{
    sink = x;
    return x * 3;
}
int __attribute__((noinline)) two(int x)
{
    sink = x;
    return x * 3;
}
int entry(int x) { return one(x) + two(x + 1); }
"""


def test_folded_functions_keep_their_own_lines(work, files):
    """Both functions begin where the lines of both do: each name has its own lines."""
    pdb = built(work, "icf", FOLDED, flags="-ffunction-sections", link="/opt:icf") + ".pdb"
    symbols = publics(pdb)
    equal(symbols["one"], symbols["two"])
    folded = [line for line in ok("dump-syms", pdb).splitlines() if line.startswith(f"FUNC m {symbols['one']:x} ")]
    equal([line.split()[-1] for line in folded], ["two(int)"])
    equal(ok("lookup", "-e", pdb, "--relative-address", "--output-style", "gnu", "-f", hex(symbols["one"])),
          "two(int)\nC:\\build\\icf.c:9\n")


BARE = """int sink;
static inline __attribute__((always_inline)) void inner(int x) { sink += x * 3; sink ^= 5; }
void __attribute__((noinline)) bare(int x) { sink++; inner(x); sink--; }
int entry(int x) { bare(x); return sink; }
"""


def without_lines(text):
    """The assembler's text of BARE, where the function `bare` has no lines of its own."""
    return re.sub(r"\t\.cv_loc\t0 .*\n", "", text)


def test_functions_without_lines_are_named(work, files):
    pdb = built(work, "bare", BARE, assemble=without_lines) + ".pdb"
    start = publics(pdb)["bare"]
    options = ("lookup", "-e", pdb, "--relative-address", "--output-style", "gnu", "-f", "-i")
    equal(ok(*options, hex(start)), "bare(int)\n??:?\n")
    equal(ok(*options, hex(start + 8)), "inner(int)\nC:\\build\\bare.c:2\nbare(int)\n??:?\n")
    text = ok("dump-syms", "-d", pdb)
    call = re.search(r"^INLINE 0 0 \d+ 0 ([0-9a-f]+) [0-9a-f]+$", text, re.M)
    assert call and start < int(call[1], 16) < start + 16, text
    equal(re.findall(r"^[0-9a-f]+ [0-9a-f]+ (\d+) \d+$", text, re.M)[0], "2")  # no line before the call
    sym = os.path.join(work, "bare.sym")
    with open(sym, "w") as f:
        f.write(text)
    for at in range(start, start + 24):  # the text answers the same
        equal(ok(*options[:2], sym, *options[3:], hex(at)), ok(*options, hex(at)))


UNWOUND = """int sink;
int __attribute__((noinline)) leaf(int x) { return sink += x; }
__declspec(dllexport) int known(int x) { int a[32]; for (int i = 0; i < 32; i++) a[i] = leaf(i); return a[x & 31]; }
int __attribute__((noinline)) first(int x) { int a[16]; for (int i = 0; i < 16; i++) a[i] = leaf(i); return a[x & 15]; }
int __attribute__((noinline)) second(int x) { int a[20]; for (int i = 0; i < 20; i++) a[i] = leaf(i); return a[x & 15]; }
int entry(int x) { return known(x) + first(x) + second(x); }
"""


def test_functions_known_only_to_unwind_information_are_bounded(work, files):
    exe = built(work, "u", UNWOUND, flags="-funwind-tables") + ".exe"
    symbols = publics(os.path.join(work, "u.pdb"))
    text = subprocess.run(["llvm-readobj-14", "--unwind", exe], capture_output=True, text=True, check=True).stdout
    ranges = {int(a, 16) & 0xFFFFFFF: int(b, 16) & 0xFFFFFFF for a, b in
              re.findall(r"StartAddress: .*?\(?(0x[0-9A-F]+)\)?\n\s+EndAddress: .*?\(?(0x[0-9A-F]+)\)?\n", text)}
    assert len(ranges) >= 4 and symbols["known"] in ranges, text
    expected = sorted((a, b - a) for a, b in ranges.items() if a != symbols["known"])
    alone = ok("dump-syms", "--pe", "-c", "--unwind-functions", exe)
    found = re.findall(r"^FUNC ([0-9a-f]+) ([0-9a-f]+) 0 <unknown in u\.exe>$", alone, re.M)
    equal([(int(a, 16), int(b, 16)) for a, b in found], expected)
    contains(alone, f"PUBLIC {symbols['known']:x} 0 known\n")
    assert "<unknown" not in ok("dump-syms", "--pe", exe)
    assert "<unknown" not in ok("dump-syms", "--unwind-functions", exe)  # with the PDB beside it
