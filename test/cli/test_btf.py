"""BPF objects without DWARF: functions and lines of .BTF and .BTF.ext."""
import json, os, re, struct, subprocess
from harness import contains, equal, ok, symloom

HEADER = """struct context { int a, b; long c; };
static unsigned total[4];
static inline unsigned in_header(struct context *c, unsigned i)
{
    total[i & 3] += c->b;
    return total[(i + 1) & 3] * 3;
}
"""
SOURCE = """#define IN(name) __attribute__((section(name), used))
#include "p.h"
enum kind { SMALL = 1, LARGE = 5 };
typedef struct { char text[4]; const volatile int *at; union { int i; float f; } value; enum kind kind; } entry;
static entry entries[4];
int seen;
static int __attribute__((always_inline)) twice(int v)
{
    return v * 2 + 1;
}
static int __attribute__((noinline)) helper(struct context *c)
{
    int s = 0;
    for (int i = 0; i < c->a; i++)
        s += twice(c->b) ^ seen;
    return s;
}
int __attribute__((noinline)) other(struct context *c)
{
    seen = c->a;
    return c->b + 3;
}
IN("xdp") int first(struct context *c)
{
    if (c->c > 4)
        return helper(c);
    return other(c);
}
IN("xdp") int second(struct context *c)
{
    seen += twice(c->a);
    entries[c->b & 3].kind = LARGE;
    return helper(c) + 1;
}
IN("tc/ingress") int third(struct context *c)
{
    unsigned s = 0;
    for (unsigned i = 0; i < 30; i++) {
        s += in_header(c, i);
        if (s > 1000)
            break;
    }
    return s + entries[c->a & 3].value.i;
}
"""
DECLARED = {line.split("(")[-2].split()[-1]: number for number, line in enumerate(SOURCE.split("\n"), 1) if line.endswith("(struct context *c)")}
ALLOCATED, CODE = 2, 4  # SHF_ALLOC, SHF_EXECINSTR
TARGETS = ("bpfel", "bpfeb")
ORDER = {1: "<", 2: ">"}  # of EI_DATA


def compiled(work, files, target="bpfel", options="-O2", compiler="clang-19"):
    """An object with DWARF, and the same without."""
    for name, text in (("p.h", HEADER), ("p.c", SOURCE)):
        with open(os.path.join(work, name), "w") as f:
            f.write(text)
    files.run(f"cd {work} && {compiler} -target {target} {options} -g -c p.c -o {target}.o && cp {target}.o {target}.btf.o && "
              f"llvm-strip-19 -g {target}.btf.o")
    return f"{work}/{target}.o", f"{work}/{target}.btf.o"


def read(path):
    with open(path, "rb") as f:
        return bytearray(f.read())


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def sections(data):
    """name -> header's place, flags, offset, size, alignment."""
    order = ORDER[data[5]]
    at, = struct.unpack_from(order + "Q", data, 40)
    count, names = struct.unpack_from(order + "HH", data, 60)
    headers = [(at + 64 * i, *struct.unpack_from(order + "IIQQQQIIQ", data, at + 64 * i)) for i in range(count)]
    strings = headers[names][5]
    return {bytes(data[strings + h[1]:]).split(b"\0")[0].decode(): (h[0], h[3], h[5], h[6], h[9]) for h in headers[1:]}


def place(path):
    """The object with its sections of code at addresses of their own, one after the other, which other tools do not make up."""
    data, end, begins = read(path), 0, {}
    for name, (header, flags, _, size, alignment) in sections(data).items():
        if flags & CODE:
            begins[name] = end = -(-end // alignment) * alignment
            struct.pack_into(ORDER[data[5]] + "Q", data, header + 16, end)
            end += size
        elif flags & ALLOCATED:
            struct.pack_into(ORDER[data[5]] + "Q", data, header + 16, 1 << 20)
    return write(path + ".placed", data), begins, end


def answers(program, path, addresses):
    """Of each address: the function that is there, and the innermost file and line."""
    text = subprocess.run([*program, "-e", path, "--output-style=JSON", "-f", "-i"], input="".join(f"{a:#x}\n" for a in addresses),
                          text=True, capture_output=True, check=True).stdout
    frames = [json.loads(line)["Symbol"] for line in text.splitlines()]
    return [(f[-1]["FunctionName"], os.path.normpath(f[0]["FileName"]), f[0]["Line"]) for f in frames]


def ours(path, addresses):
    frames = [json.loads(line)["Symbol"] for line in ok("lookup", "-e", path, "--output-style", "json", "-f", "-i", input="".join(
        f"{a:#x}\n" for a in addresses)).splitlines()]
    assert all(len(f) == 1 for f in frames), frames  # inlined calls are not known
    return [(f[0]["FunctionName"], f[0]["FileName"], f[0]["Line"]) for f in frames]


def disassembled(path, begins):
    """What llvm-objdump, which reads BTF, has of each instruction: {address: (file, line)}."""
    found, begin, place = {}, 0, None
    for line in subprocess.check_output(["llvm-objdump-19", "-d", "-l", "--no-show-raw-insn", path], text=True).splitlines():
        section = re.fullmatch(r"Disassembly of section (\S+):", line)
        position, instruction = re.fullmatch(r"; (/.*):(\d+)", line), re.match(r" *(\d+):\t", line)
        if section:
            begin, place = begins[section[1]], None
        elif position:
            place = os.path.normpath(position[1]), int(position[2])
        elif instruction:
            found[begin + 8 * int(instruction[1])] = place
    for address in range(min(found), max(found) + 8, 8):  # some have two words
        found.setdefault(address, found.get(address - 8))
    return found


def test_btf_names_every_byte_as_llvm(work, files):
    """Functions, files and lines as llvm-symbolizer has them of DWARF. Where its line is 0, the compiler lets the line of before go
    on in BTF; up to the first line of a function, it writes that of its declaration there. Lines are all as llvm-objdump has them
    of BTF."""
    for compiler, target, options in ((c, t, o) for c in ("clang-14", "clang-19") for t in TARGETS for o in ("-O2", "-O1", "-Os -mcpu=v1")):
        dwarf, btf = compiled(work, files, target, options, compiler)
        placed, begins, end = place(dwarf)
        got, wanted = ours(btf, range(end)), answers(["llvm-symbolizer-19"], placed, range(end))
        lines, same, started = disassembled(btf, begins), 0, None
        for address, ((function, file, line), (name, *position)) in enumerate(zip(got, wanted)):
            about = f"{compiler} {target} {options} {address:#x}"
            if not name.startswith("LBB"):  # labels of blocks, which clang 14 leaves in the table
                equal(function, name, about)
            current = lines[address & ~7]
            equal((file, line), current, about)
            prologue = DECLARED[function] == line and started != function
            started = started if prologue else function
            if position[1] and not prologue:
                equal([file, line], position, about)
                same += 1
        assert same > end * 0.6, (same, end)
        equal({name for name, _, _ in got}, set(DECLARED))
        equal({os.path.basename(file) for _, file, _ in got}, {"p.c", "p.h"})


def test_dwarf_is_used_before_btf(work, files):
    """It has inlined calls; where it cannot be read, BTF answers, and it is said."""
    dwarf, btf = compiled(work, files)
    at = place(dwarf)[1]["xdp"] + 7 * 8 + 8  # in `second`, of `twice`
    equal(ok("lookup", "-e", dwarf, hex(at)).splitlines()[::2][:2], ["twice", "second"])
    equal(ok("lookup", "-e", btf, hex(at)).splitlines()[0], "second")
    data = read(dwarf)
    _, _, offset, size, _ = sections(data)[".debug_info"]
    data[offset:offset + size] = b"\xff" * size
    damaged = write(f"{work}/damaged.o", data)
    equal(ours(damaged, range(at, at + 1)), [("second", f"{work}/p.c", 9)])
    contains(symloom("dump-syms", damaged).err, "a unit header in .debug_info is invalid")
    contains(ok("inspect", "--verify", damaged), "a unit header in .debug_info is invalid")


def test_dump_syms_reads_btf(work, files):
    for target in TARGETS:
        dwarf, btf = compiled(work, files, target)
        dumped, full = symloom("dump-syms", btf), symloom("dump-syms", dwarf)
        equal((dumped.status, dumped.err), (0, ""))
        kept = [[line for line in text.splitlines() if line.startswith(("FUNC ", "PUBLIC "))] for text in (dumped.out, full.out)]
        equal(*kept)
        equal(len(kept[0]), 5)
        equal(sorted(line.split("/")[-1] for line in dumped.out.splitlines() if line.startswith("FILE ")), ["p.c", "p.h"])


def test_inspect_reads_btf(work, files):
    dwarf, btf = compiled(work, files)
    text = ok("inspect", "--verify", btf)
    contains(text, "Format       elf (object)", "Features     symtab, debug\n", "2 files, 5 functions, 0 inlinees, ", "Usable       yes")
    assert "stripped" not in text and "Hint" not in text, text


def test_btf_without_symbols_uses_type_names(work, files):
    """Names are those of the types, and functions end where the next begins, or their section."""
    _, btf = compiled(work, files)
    data = read(btf)
    end = place(btf)[2]
    whole = ours(btf, range(end))
    header = sections(data)[".symtab"][0]
    struct.pack_into("<I", data, header + 4, 1)  # SHT_PROGBITS
    equal(ours(write(f"{work}/bare.o", data), range(end)), whole)


def test_overloads_are_told_apart_by_symbols(work, files):
    """Types have short names: symbols tell overloads apart."""
    with open(f"{work}/o.cc", "w") as f:
        f.write('namespace n {\n__attribute__((noinline)) int f(int a)\n{\n    return a + 1;\n}\n'
                '__attribute__((noinline)) int f(long a)\n{\n    return a + 2;\n}\n}\n')
    files.run(f"cd {work} && clang-19 -target bpfel -O2 -g -c o.cc -o o.o && llvm-strip-19 -g o.o")
    text = ok("dump-syms", f"{work}/o.o")
    equal([line.split(" ", 4)[4] for line in text.splitlines() if line.startswith("FUNC ")], ["n::f(int)", "n::f(long)"])


def changed(work, btf, section, at, value):
    data = read(btf)
    struct.pack_into("<I", data, sections(data)[section][2] + at, value)
    return write(f"{work}/changed.o", data)


def test_damaged_btf_is_reported_and_the_rest_answers(work, files):
    """What cannot be read is said, and the rest answers."""
    _, btf = compiled(work, files)
    for section, at, value, why, lines in (
            (".BTF", 0, 0x01001234, "invalid header of section .BTF", False),
            (".BTF", 0, 0x0002EB9F, "unsupported version 2 of section .BTF", False),
            (".BTF", 20, 1 << 20, "the strings of section .BTF extend beyond it", False),
            (".BTF.ext", 4, 8, "invalid header of section .BTF.ext", False),
            (".BTF.ext", 0x20, 4, "records of section .BTF.ext are too small", False),
            (".BTF.ext", 0x24, 0, 'section .BTF.ext refers to section "" that is missing', True),
            (".BTF.ext", 0x28, 1 << 20, "functions extend beyond section .BTF.ext", False),
            (".BTF.ext", 0x34, 1 << 20, 'section .BTF.ext has functions beyond the end of section ".text"', True)):
        path = changed(work, btf, section, at, value)
        got = symloom("lookup", "-e", path, "0xb8", "0x0")
        equal(got.out.splitlines()[0], "first", why)  # the symbols' at least
        equal("p.c:" in got.out, lines, why)
        contains(ok("inspect", "--verify", path), why)
        contains(symloom("dump-syms", path).err, why)
