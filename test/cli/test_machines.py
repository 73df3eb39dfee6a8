"""Debug information of objects and images for any machine: relocations, code at the ends of the address space, units whose root
entries do not say where their code is."""
import json, os, struct, subprocess
from harness import contains, equal, ok, symloom

# first, in which inner is inlined; second
with open(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "differential", "machine.ll")) as f:
    LLVM_CODE = f.read()

# Every machine that LLVM 19 writes ELF files for. Those of 64-bit PowerPC, big endian, have descriptors where symbols are.
TARGETS = ("aarch64", "aarch64_be", "arm64_32", "amdgcn", "arm", "armeb", "avr", "bpfeb", "bpfel", "hexagon", "i386", "lanai",
           "loongarch32", "loongarch64", "m68k", "mips", "mips64", "mips64el", "mipsel", "msp430", "powerpc", "powerpc64le",
           "powerpcle", "r600", "riscv32", "riscv64", "s390x", "sparc", "sparcel", "sparcv9", "thumb", "ve", "x86_64")


def write(work, name, text):
    with open(os.path.join(work, name), "w") as f:
        f.write(text)
    return os.path.join(work, name)


def chains(path, addresses):
    """Of each address [(function, file, line)], innermost first."""
    text = ok("lookup", "-e", path, "--output-style", "json", "-f", "-i", input="".join(f"{a:#x}\n" for a in addresses))
    answers = [json.loads(line)["Symbol"] for line in text.splitlines()]
    return [[(f["FunctionName"], f["FileName"], f["Line"]) for f in answer] for answer in answers]


def chain(path, address):
    """[(function, file:line)], innermost first."""
    lines = ok("lookup", "-e", path, "--output-style", "gnu", "-f", "-i", hex(address)).splitlines()
    return list(zip(lines[::2], lines[1::2]))


def check_chains(path, names, known):
    """Every byte of these functions is theirs, and each function of an answer has a file and lines of its own: `known`."""
    table = symbols(path)
    places = [(name, address) for name in names for address in range(table[name][0], sum(table[name]))]
    for (name, address), frames in zip(places, chains(path, [address for _, address in places])):
        equal(frames[-1][0] if frames else None, name, f"{path} {address:#x} {frames}")
        for function, file, line in frames:
            wanted, lines = known[function]
            assert file.endswith(wanted) and (line in lines or not line), f"{path} {address:#x} {frames}"


def symbols(path):
    """name -> address, size."""
    text = subprocess.check_output(["llvm-nm-19", "-S", path], text=True)
    return {f[3]: (int(f[0], 16), int(f[1], 16)) for f in map(str.split, text.splitlines()) if len(f) == 4}


def machine_object(work, files, target, version):
    code = write(work, f"v{version}.ll", LLVM_CODE.replace('"Dwarf Version", i32 5', f'"Dwarf Version", i32 {version}'))
    out = os.path.join(work, f"{target}-{version}.o")
    files.run(f"llc-19 -O0 -mtriple={target}-none-elf -filetype=obj {code} -o {out}")
    return out


def test_relocations_of_every_machine_are_applied(work, files):
    """No byte of a function has another name, file or line than the source."""
    known = {"first": ("/src/m.c", range(5, 10)), "second": ("/src/m.c", range(10, 14)), "inner": ("/src/m.c", range(1, 5))}
    for number, target in enumerate(TARGETS):
        for version in (5, (2, 4)[number % 2]):
            path = machine_object(work, files, target, version)
            check_chains(path, ("first", "second"), known)
        dump = ok("dump-syms", path)
        equal({line.split(" ", 4)[4] for line in dump.splitlines() if line.startswith("FUNC ")}, {"first", "second"}, path)
        equal([line for line in dump.splitlines() if line.startswith("FILE ")], ["FILE 0 /src/m.c"], path)


def test_xtensa_relocations_are_applied(work, files):
    source = write(work, "x.s", ".text\n.globl first\n.type first,@function\nfirst:\nadd a2,a2,a3\nret\n.size first,.-first\n")
    path = os.path.join(work, "x.o")
    files.run(f"llvm-mc-19 -triple=xtensa -g -filetype=obj -fdebug-compilation-dir=/src -main-file-name=x.s {source} -o {path}")
    equal(chain(path, 0), [("first", f"{source}:5")])


def changed_machine(work, files, machine):
    path = machine_object(work, files, "x86_64", 5)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    struct.pack_into("<H", data, 18, machine)
    changed = os.path.join(work, f"machine-{machine}.o")
    with open(changed, "wb") as f:
        f.write(data)
    return changed


def test_unknown_machine_falls_back_to_symbols(work, files):
    """What cannot be read is said, and symbols answer: names and files would be others."""
    path = changed_machine(work, files, 4242)
    why = "cannot apply relocations of ELF machine 4242, so the debug information is ignored"
    equal(chain(path, symbols(path)["second"][0] + 4), [("second", "??:?")])
    contains(symloom("lookup", "-e", path, "0x0").err, why)
    dump = symloom("dump-syms", path)
    contains(dump.err, why)
    assert "FILE" not in dump.out and "PUBLIC 0 0 first" in dump.out, dump.out
    contains(ok("inspect", "--verify", path), why)
    plain = os.path.join(work, "plain.o")  # without relocations there is nothing to know
    files.run(f"cp {path} {plain}; llvm-objcopy-19 --strip-debug {plain}")
    assert "relocations" not in symloom("dump-syms", plain).err


def test_stabs_are_reported_as_unsupported(work, files):
    """They are not read, and it is said that they are there."""
    write(work, "old.s", '.stabs "old.c",100,0,0,f\n.stabs "f:F1",36,0,1,f\n.globl f\n.type f,@function\nf: ret\n.size f,.-f\n')
    files.run(f"cd {work} && as old.s -o old.o && ld -shared old.o -o old.so && "
              "sed '/type\\|size/d' old.s >pe.s && i686-w64-mingw32-gcc -nostdlib -Wl,-e,f pe.s -o old.exe")
    for name in ("old.so", "old.exe"):
        path = os.path.join(work, name)
        begin = int(files.run(f"nm {path} | awk '$3 == \"f\" {{print $1}}'"), 16)
        result = symloom("lookup", "-e", path, "-f", hex(begin))
        equal(result.out.splitlines()[1], "??:0:0", name)
        contains(result.err, "stabs debug information (section .stab) is not supported; compile with -gdwarf-4")
        contains(symloom("dump-syms", path).err, "stabs debug information (section .stab) is not supported")


def test_unknown_relocation_type_falls_back_to_symbols(work, files):
    path = machine_object(work, files, "x86_64", 5)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    table = next(line.split() for line in subprocess.check_output(["readelf", "-SW", path], text=True).replace("[ ", "[").splitlines()
                 if ".rela.debug_info" in line)
    struct.pack_into("<I", data, int(table[4], 16) + 8, 200)
    with open(path, "wb") as f:
        f.write(data)
    equal(chain(path, 0), [("first", "??:?")])
    contains(symloom("dump-syms", path).err, "cannot apply relocations of type 200 of ELF machine 62")


FIRMWARE = """volatile int sink;
int dead_a(int q)
{
    return q * q * q + 1;
}
int dead_b(int q)
{
    int s = 0;
    for (int i = 0; i < q; i++)
        s += dead_a(i);
    return s;
}
static int twice(int v)
{
    return v * 2 + 1;
}
__attribute__((noinline)) int work(int n)
{
    return twice(n) ^ sink;
}
void reset(void)
{
    sink = work(5);
    for (;;)
        sink++;
}
"""
SCRIPT = ("ENTRY(reset)\nSECTIONS { . = 0; .text : { KEEP(*(.text.reset)) *(.text .text.*) } "
          ".data 0x20000000 : { *(.data*) *(.bss*) *(COMMON) } /DISCARD/ : { *(.eh_frame*) *(.note*) *(.comment) } }\n")
KNOWN = {"dead_a": range(2, 6), "dead_b": range(6, 13), "reset": range(21, 27), "work": range(17, 21), "twice": range(13, 17)}


def check_firmware(path, about, names=("reset", "work")):
    """Every byte of code is of a function that is there, with its lines."""
    table = symbols(path)
    check_chains(path, names, {name: ("fw.c", lines) for name, lines in KNOWN.items()})
    equal(table[names[0]][0], 0)
    dump = ok("dump-syms", path)
    functions = [line.split(" ", 4)[4] for line in dump.splitlines() if line.startswith("FUNC ")]
    equal(sorted(functions), sorted(names), about)
    assert f"FUNC 0 {table[names[0]][1]:x} 0 {names[0]}" in dump, dump


def test_code_at_address_zero_is_named_and_dropped_code_is_not(work, files):
    """Firmware begins at 0, where linkers put what they drop, too: of that no name and no line is shown."""
    write(work, "fw.c", FIRMWARE)
    write(work, "fw.ld", SCRIPT)
    build = "-O1 -ffreestanding -nostdlib -static -fno-pie -no-pie -fcf-protection=none -Wl,--build-id=none,-T,fw.ld fw.c"
    for version in (2, 3, 4, 5):
        files.run(f"cd {work} && gcc -m32 -gdwarf-{version} {build} -ffunction-sections -Wl,--gc-sections -o gc{version}.elf")
        check_firmware(os.path.join(work, f"gc{version}.elf"), f"dropped functions, DWARF {version}")
        files.run(f"cd {work} && gcc -gdwarf-{version} {build} -ffunction-sections -fuse-ld=lld -Wl,--gc-sections -o lld{version}.elf")
        check_firmware(os.path.join(work, f"lld{version}.elf"), f"LLD, DWARF {version}")
    files.run(f"cd {work} && gcc -g {build} -o whole.elf")
    check_firmware(os.path.join(work, "whole.elf"), "all in one section", ("dead_a", "dead_b", "work", "reset"))


VECTORS = """.section .vectors,"ax",@progbits
.long 0x20001000, reset, 0, 0
.section .text.unused,"ax",@progbits
.type unused,@function
unused: nop
nop
ret
.size unused,.-unused
"""


def test_vector_table_at_zero_has_no_name_and_line(work, files):
    """No symbol is there: it has no name and no line, though all that the linker has dropped says that it is there."""
    write(work, "fw.c", FIRMWARE)
    write(work, "vectors.s", VECTORS)
    write(work, "fw.ld", SCRIPT.replace("KEEP(", "KEEP(*(.vectors)) KEEP("))
    for version in (3, 5):
        files.run(f"cd {work} && gcc -m32 -gdwarf-{version} -c vectors.s && gcc -m32 -gdwarf-{version} -O1 -ffreestanding -nostdlib -static "
                  "-fno-pie -no-pie -fcf-protection=none -ffunction-sections -Wl,--build-id=none,--gc-sections,-T,fw.ld fw.c vectors.o -o fw.elf")
        path = os.path.join(work, "fw.elf")
        begin = symbols(path)["reset"][0]
        equal(begin, 16)
        for many in (1, 20):  # from parts of the file, and from all of it
            equal(chains(path, list(range(begin)) * many), [[("", "", 0)]] * begin * many)
        check_chains(path, ("reset", "work"), {name: ("fw.c", lines) for name, lines in KNOWN.items()})
        dump = ok("dump-syms", path)
        equal(sorted(line.split(" ", 4)[4] for line in dump.splitlines() if line.startswith("FUNC ")), ["reset", "work"])


THUMB = """.syntax unified
.thumb
.type first,%function
.thumb_func
first: nop
nop
.size first,.-first
.type second,%function
.thumb_func
second: nop
.size second,.-second
.type third,%function
.thumb_func
third: nop
bx lr
.size third,.-third
"""


def test_thumb_bit_of_assembler_functions_is_removed(work, files):
    """It gives the entries of functions the bit of the mode, and so an end behind the function."""
    write(work, "thumb.s", THUMB)
    files.run(f"cd {work} && arm-linux-gnueabihf-gcc -g -c thumb.s && arm-linux-gnueabihf-ld -e first -o thumb.elf thumb.o && "
              "llvm-dwarfdump-19 thumb.elf | grep -q 'DW_AT_low_pc.*[13579bdf])'")
    path = os.path.join(work, "thumb.elf")
    begin = symbols(path)["first"][0] & ~1
    known = [("first", 5)] * 2 + [("first", 6)] * 2 + [("second", 10)] * 2 + [("third", 14)] * 2 + [("third", 15)] * 2
    for many in (1, 20):
        answers = chains(path, list(range(begin, begin + len(known))) * many)
        equal([(name, line) for (name, _, line), in answers], known * many)


def unit_of_an_assembler(file, code, functions):
    """As GNU as 2.39 writes it: with an entry for every function that the file refers to."""
    entries = "".join(f'.uleb128 2\n.asciz "{name}"\n.quad {name}, {size}\n' for name, size in functions)
    return f""".text
.file 1 "{file}"
begin: {code}
end:
.section .debug_abbrev,"",@progbits
.uleb128 1,0x11,1,0x13,5,0x10,0x17,0x11,1,0x12,1,0,0
.uleb128 2,0x2e,0,3,8,0x11,1,0x12,7,0,0
.byte 0
.section .debug_info,"",@progbits
.long 2f-1f
1: .value 4
.long .debug_abbrev
.byte 8
.uleb128 1
.value 0x8001
.long .debug_line
.quad begin,end
{entries}.byte 0
2:
.section .debug_line,"",@progbits
"""


def test_function_gets_lines_from_the_unit_that_has_it(work, files):
    """The unit that has them has their lines."""
    write(work, "a.s", unit_of_an_assembler("a.s", ".globl first\n.type first,@function\nfirst: .loc 1 3\nnop\nret\n.size first,2",
                                            [("second", 3), ("first", 2)]))
    write(work, "b.s", unit_of_an_assembler("b.s", ".globl second\n.type second,@function\nsecond: .loc 1 7\nnop\n.loc 1 8\nnop\nret\n.size second,3",
                                            [("second", 3)]))
    files.run(f"cd {work} && as a.s -o a.o && as b.s -o b.o && ld -e first -o ab a.o b.o")
    path = os.path.join(work, "ab")
    begin = symbols(path)["first"][0]
    known = [("first", "a.s", 3)] * 2 + [("second", "b.s", 7)] + [("second", "b.s", 8)] * 2
    for many in (1, 20):
        answers = chains(path, list(range(begin, begin + 5)) * many)
        equal([(name, os.path.basename(file), line) for (name, file, line), in answers], known * many)


def test_padding_has_the_line_of_the_code_before(work, files):
    """It has the line of the code before, as in linked programs."""
    write(work, "pad.c", "int f(int x)\n{\n    return x * 3;\n}\n__attribute__((aligned(64))) int g(int x)\n{\n    return x + 1;\n}\n")
    files.run(f"cd {work} && gcc -g -O1 -fcf-protection=none -c pad.c")
    path = os.path.join(work, "pad.o")
    table = symbols(path)
    lines = ok("lookup", "-f", "-s", "-e", path, "-j", ".text", hex(table["f"][1]), hex(table["g"][0] - 1), "--output-style", "gnu").splitlines()
    equal(lines, ["??", "pad.c:4"] * 2)


def test_code_at_the_end_of_the_address_space_is_named(work, files):
    """The last two addresses are those of code that was dropped, but where code lies there."""
    write(work, "end.s", '.section .reset,"ax",@progbits\n.globl reset\n.type reset,@function\nreset: jmp reset\n.size reset,.-reset\n')
    files.run(f"cd {work} && gcc -m32 -g -c end.s -o end.o && ld -m elf_i386 -e reset --section-start=.reset=0xfffffffe end.o -o end.elf")
    path = os.path.join(work, "end.elf")
    for address in (0xFFFFFFFE, 0xFFFFFFFF):
        (name, place), = chain(path, address)
        equal((name, place.rpartition("/")[2]), ("reset", "end.s:4"))


JIT = """.text
.globl compiled
.type compiled,@function
compiled: nop
nop
ret
.size compiled,.-compiled
.section .debug_abbrev,"",@progbits
.uleb128 1,0x11
.byte 0
.uleb128 0x10,6,0,0,0
.section .debug_info,"",@progbits
.long 2f-1f
1: .value 2
.long .debug_abbrev
.byte 8
.uleb128 1
.long .debug_line
2:
.section .debug_line,"",@progbits
.long 6f-3f
3: .value 2
.long 5f-4f
4: .byte 1,1,0xfb,14,13
.byte 0,1,1,1,1,0,0,0,1,0,0,1
.byte 0
.asciz "/app/script.js"
.uleb128 0,0,0
.byte 0
5: .byte 0,9,2
.quad compiled
.byte 3,9,1,0x21,2,2,0,1,1
6:
"""


def test_units_without_ranges_are_located_by_lines(work, files):
    """Then the lines and the subprograms tell."""
    write(work, "jit.s", JIT)
    files.run(f"cd {work} && as jit.s -o jit.o && ld -shared jit.o -o jit.so")
    path = os.path.join(work, "jit.so")
    begin = symbols(path)["compiled"][0]
    equal(chain(path, begin), [("compiled", "/app/script.js:10")])
    contains(ok("dump-syms", path), "FILE 0 /app/script.js", "0 compiled")
    write(work, "strict.cc", "#include <string>\n__attribute__((noinline)) int f(const std::string &s)\n{\n    return (int)s.size() * 3;\n}\n"
          "int main(int argc, char **argv)\n{\n    return f(argv[0]);\n}\n")
    files.run(f"cd {work} && g++ -gdwarf-2 -gstrict-dwarf -O2 -ffunction-sections strict.cc -o strict && nm strict | grep -q ' T main'")
    begin = int(files.run(f"nm {work}/strict | awk '$3 == \"main\" {{print $1}}'"), 16)
    equal([(f, p.rpartition("/")[2]) for f, p in chain(os.path.join(work, "strict"), begin)], [("main", "strict.cc:7")])
    counts = next(line for line in ok("inspect", "--verify", os.path.join(work, "strict")).splitlines() if "Counts" in line)
    assert " 0 functions" not in counts and " 0 lines" not in counts, counts


def test_type_units_in_sections_do_not_hide_code(work, files):
    """An object has as many .debug_info then, and that of the code is not the first."""
    write(work, "types.cc", "struct point { int x, y; int sum() const; };\nint point::sum() const\n{\n    return x + y;\n}\n"
          "struct other { point a; };\nint use(const other &o)\n{\n    return o.a.sum();\n}\n")
    for version in (4, 5):
        for compiler in ("g++", "clang++-14"):
            files.run(f"cd {work} && {compiler} -gdwarf-{version} -O1 -fdebug-types-section -c types.cc -o types.o")
            path = os.path.join(work, "types.o")
            for name, shown, line in (("_ZNK5point3sumEv", "point::sum() const", 3), ("_Z3useRK5other", "use(other const&)", 8)):
                frames = chain(path, symbols(path)[name][0])
                equal(frames[-1][0], shown, f"{compiler} {version}")
                contains(frames[-1][1], f"types.cc:")
                assert int(frames[-1][1].rpartition(":")[2]) in (line, line + 1), frames
