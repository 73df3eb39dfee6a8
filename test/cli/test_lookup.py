"""`symloom lookup`, and the tools it takes the place of."""
import json, os, shutil, subprocess
from cabinets import cabinet
from harness import SOURCE, contains, equal, linked, ok, symloom


def inlined(files):
    """An address of `inner` inlined into `mid` into `outer`, in the file "t"."""
    start = files.address("t", "outer")
    text = "".join(f"0x{a:x}\n" for a in range(start, start + 64))
    for line in ok("lookup", "-e", files.get("t"), "--output-style", "json", input=text).splitlines():
        answer = json.loads(line)
        if len(answer["Symbol"]) == 3:
            return int(answer["Address"], 16)
    raise AssertionError("nothing is inlined twice")


def test_addr2line_output_is_printed(work, files):
    tool, at = linked(work, "addr2line"), f"0x{inlined(files):x}"
    t = files.get("t")
    equal(ok("-e", t, "-f", "-i", at, program=tool), "inner\n/src/t.c:1\nmid\n/src/t.c:3\nouter\n/src/t.c:5\n")
    equal(ok("-e", t, at, program=tool), "/src/t.c:1\n")
    equal(ok("-e", t, "-s", at, program=tool), "t.c:1\n")
    equal(ok("-e", t, "-afipC", at, "0x0", program=tool),
          f"0x{int(at, 16):016x}: inner at /src/t.c:1\n (inlined by) mid at /src/t.c:3\n (inlined by) outer at /src/t.c:5\n"
          "0x0000000000000000: ?? ??:0\n")
    equal(ok("-e", t, "-fi", input="foo\n\n,\n", program=tool), "??\n??:0\n" * 3)


def test_addr2line_input_is_read(work, files):
    tool, start = linked(work, "addr2line"), files.address("t", "outer")
    lines = [f"{start + 4:x} zz", f" {start + 4:x}", f"{start + 4:x}h", "outer+4", f"0x{start + 4:X}"]
    equal(ok("-f", "-e", files.get("t"), input="\n".join(lines), program=tool), "outer\n/src/t.c:5\n" * 5)
    words = os.path.join(work, "words")
    with open(words, "w") as f:
        f.write(f"-e '{files.get('t')}'\n  -f outer+4")
    equal(ok(f"@{words}", program=tool), "outer\n/src/t.c:5\n")


def test_symbol_without_line_is_printed_as_each_tool_does(work, files):
    """A name and no place: each tool says so in its own way, and binutils say the same."""
    bare = os.path.join(work, "bare")
    files.run(f"objcopy --strip-debug {files.get('t')} {bare}")
    at = f"0x{files.address('t', 'outer') + 4:x}"
    equal(ok("-f", "-e", bare, at, program=linked(work, "addr2line")), "outer\n??:?\n")
    equal(subprocess.run(["addr2line", "-f", "-e", bare, at], capture_output=True, text=True, check=True).stdout, "outer\n??:?\n")
    equal(ok("-e", bare, at, program=linked(work, "llvm-symbolizer")), "outer\n??:0:0\n\n")


def test_lookup_equals_binutils_addr2line(work, files):
    """Inside of functions with lines: elsewhere it names object files and lets lines reach into the padding."""
    tool = linked(work, "addr2line")
    for name in ("t", "t.static"):
        start = files.address(name, "outer")
        size = int(files.run(f"nm -S {files.get(name)} | awk '$4 == \"outer\" {{print $2}}'"), 16)
        addresses = [f"0x{a:x}" for a in range(start, start + size)] + ["0"]
        for options in ("-e", "-fe", "-fie", "-afipCse", "-pe", "-fiCe"):
            theirs = subprocess.run(["addr2line", options, files.get(name), *addresses], capture_output=True, text=True)
            ours = ok(options, files.get(name), *addresses, program=tool)
            without = lambda text: "\n".join(line.split(" (discriminator")[0] for line in text.splitlines())
            equal(without(ours), without(theirs.stdout), f"{name} {options}")


def test_lines_are_shown_without_symbols_but_not_for_dropped_code(work, files):
    """Lines are shown wherever the linker has put code; not of code that it dropped, whose lines are left at 0 or below the code."""
    with open(os.path.join(work, "bare.s"), "w") as f:
        f.write(".globl named\n.type named,@function\nnamed: nop\nret\n.size named,.-named\n"
                '.section .bare,"axR",@progbits\nnop\nret\n.fill 99,1,0x90\n'
                '.section .dropped,"ax",@progbits\n.fill 0x1008,1,0x90\nnop\n')
    files.run(f"cd {work} && gcc -g -c -Wa,--debug-prefix-map=$PWD=/src -o bare.o bare.s && "
              "gcc -shared -nostdlib -Wl,--gc-sections,-u,named,--section-start=.bare=0x9000 -o bare.so bare.o && "
              "readelf -WS bare.so | (! grep dropped)")
    bare = os.path.join(work, "bare.so")
    llvm, named = linked(work, "llvm-symbolizer"), f"0x{int(files.run(f'nm -D {bare}').split()[0], 16):x}"
    for many in ([], ["0x9001"] * 200):  # few addresses are answered from their units alone
        answer = ok("-e", bare, named, "0x9001", "0x800", *many, program=llvm)
        equal(answer, "named\n/src/bare.s:3:0\n\n??\n/src/bare.s:8:0\n\n??\n??:0:0\n\n" + "??\n/src/bare.s:8:0\n\n" * len(many))
    equal(ok("-e", bare, "-f", "0x9001", program=linked(work, "addr2line")), "??\n/src/bare.s:8\n")
    dump = ok("dump-syms", bare)
    equal([line.split(" ", 4)[4:] for line in dump.splitlines() if line.startswith("FUNC ")], [["named"]])


def test_last_symbol_ends_with_its_section(work, files):
    """Tables that have no sizes: the last symbol reaches to the end of its section, and no byte further."""
    with open(os.path.join(work, "ends.c"), "w") as f:
        f.write("int first(int x) { return x * 3; }\nint last(int x) { return x * 5; }\n")
    files.run(f"cd {work} && clang-14 -O1 --target=x86_64-apple-macos11 -c -o ends.o ends.c && "
              "ld64.lld-14 -arch x86_64 -platform_version macos 11 11 -undefined dynamic_lookup -dylib -o ends.dylib ends.o && "
              "clang-14 -O1 --target=x86_64-pc-windows-msvc -c -o ends.obj ends.c && "
              "lld-link-14 /dll /noentry /debug /export:first /export:last /out:ends.dll ends.obj && mkdir alone && cp ends.dll alone")
    for name, code, base in (("ends.dylib", "ends.dylib", 0), ("alone/ends.dll", "ends.dll", 0), ("ends.pdb", "ends.dll", 0x180000000)):
        text = next(line.split() for line in files.run(f"llvm-objdump-14 -h {work}/{code}").splitlines() if "text " in line)
        end = int(text[2], 16) + int(text[3], 16) - base
        asked = [f"0x{a:x}" for a in (end - 1, end, end + 1, end + 0x7000_0000)]
        for many in (1, 100):  # few addresses are answered from what is around them
            answer = ok("lookup", "-e", os.path.join(work, name), "--output-style", "gnu", "-f", *asked * many)
            equal(answer.splitlines()[::2], ["last", "??", "??", "??"] * many, name)


def test_relocatable_files_of_other_machines_are_relocated(work, files):
    """Their debug information is complete only with their relocations, which every machine has of its own."""
    with open(os.path.join(work, "machines.c"), "w") as f:
        f.write("int first(int a)\n{\n    return a * 2 + 1;\n}\nint second(int side)\n{\n    int sum = 0;\n"
                "    for (int i = 0; i < side; i++)\n        sum += first(i ^ sum);\n    return sum;\n}\n")
    tool = linked(work, "llvm-symbolizer")
    for target in ("riscv64-linux-gnu", "riscv32-linux-gnu", "s390x-linux-gnu", "mips64el-linux-gnuabi64",
                   "mips64-linux-gnuabi64", "powerpc64le-linux-gnu", "aarch64-linux-gnu"):
        rel = os.path.join(work, f"machines-{target}.o")
        files.run(f"cd {work} && clang-14 --target={target} -g -O1 -c -o {rel} machines.c")
        symbols = [line.split() for line in subprocess.check_output(["llvm-nm-14", "-S", rel], text=True).splitlines()]
        inside = [range(int(s[0], 16), int(s[0], 16) + int(s[1], 16), 2) for s in symbols if s[3:] in (["first"], ["second"])]
        addresses = [f"0x{a:x}" for r in inside for a in r]
        options = [f"--obj={rel}", "-f", "-i", *addresses]
        told = [line.rpartition(":")[0] or line for line in ok(*options, program=tool).splitlines()]
        peer = subprocess.check_output(["llvm-symbolizer-14", *options], text=True).splitlines()
        equal(told, [line.rpartition(":")[0] or line for line in peer])
        assert {"first", "second"} <= set(told) and len(addresses) > 16, told


def test_section_option_takes_offsets_in_relocatable_files(work, files):
    """Each begins at 0: an address is an offset in the section that -j names."""
    source = ("int sink;\nint first(int x) { return sink + x; }\n"
              '__attribute__((section(".init.text"))) int begin(int x) { return sink * x; }\n'
              '__attribute__((section(".exit.text"))) int end(int x) { return sink - x; }\n')
    with open(os.path.join(work, "rel.c"), "w") as f:
        f.write(source)
    files.run(f"cd {work} && gcc -g -O0 -c -o rel.o rel.c")
    tool, rel = linked(work, "addr2line"), os.path.join(work, "rel.o")
    for section, name in ((".text", "first"), (".init.text", "begin"), (".exit.text", "end")):
        asked = ["-f", "-e", rel, "-j", section, *(f"0x{at:x}" for at in range(16))]
        theirs = subprocess.run(["addr2line", *asked], capture_output=True, text=True).stdout
        equal(ok(*asked, program=tool), theirs)
        equal(theirs.splitlines()[::2], [name] * 16)


def test_llvm_symbolizer_output_is_printed(work, files):
    tool, at, t = linked(work, "llvm-symbolizer-14"), inlined(files), files.get("t")
    chain = "inner\n/src/t.c:1:71\nmid\n/src/t.c:3:72\nouter\n/src/t.c:5:55\n\n"
    equal(ok("-e", t, f"0x{at:x}", program=tool), chain)
    equal(ok("-e", t, str(at), program=tool), chain)
    equal(ok("-p", "-a", "-e", t, f"0x{at:x}", "0x0", program=tool),
          f"0x{at:x}: inner at /src/t.c:1:71\n (inlined by) mid at /src/t.c:3:72\n (inlined by) outer at /src/t.c:5:55\n\n"
          "0x0: ?? at ??:0:0\n\n")
    equal(ok("-e", t, "--no-inlines", "-f=none", f"0x{at:x}", program=tool), "/src/t.c:1:71\n\n")
    equal(ok("-e", t, input="foo\n\n,\n", program=tool), "foo\n\n,\n")
    verbose = ok("-e", t, "--verbose", "--no-inlines", f"0x{at:x}", program=tool)
    equal(verbose, f"outer\n  Filename: /src/t.c\n  Function start filename: /src/t.c\n  Function start line: 1\n  Function start address: 0x{files.address('t', 'outer'):x}\n  Line: 1\n  Column: 71\n\n")


def test_llvm_symbolizer_input_is_read(work, files):
    tool, t, start = linked(work, "llvm-symbolizer"), files.get("t"), files.address("t", "outer")
    lines = [f"{t} 0x{start:x}", f'"{t}" 0x{start:x}', f"CODE FILE:{t} 0x{start:x}", f"'{t}' {start}"]
    equal(ok("--no-inlines", input="\n".join(lines), program=tool), "outer\n/src/t.c:5:51\n\n" * 4)
    data = ok(input=f"DATA {t} 0x{start + 1:x}\n", program=tool).splitlines()
    equal(data[0], "outer")
    equal(data[1].split()[0], str(start))
    equal(ok("-e", t, input=f"FRAME 0x{start:x}\n", program=tool), "??\n\n")
    equal(ok(input="BUILDID:00112233 0x10\n", program=tool), "??\n??:0:0\n\n")


def llvm_symbolizer(*arguments, **options):
    return subprocess.run(["llvm-symbolizer-19", *arguments], capture_output=True, text=True, check=True, **options).stdout


def test_columns_and_relative_names_equal_llvm(work, files):
    """Of every address of a function that calls are inlined into, in every version of DWARF and of a file of several units."""
    tool = linked(work, "llvm-symbolizer")
    os.makedirs(os.path.join(work, "units/inner"))
    with open(os.path.join(work, "units/inner/part.h"), "w") as f:
        f.write("static inline __attribute__((always_inline)) int part(int x) {\n  return x > 3 ? x *\n     x : 0; }\n")
    for unit in ("one", "two"):
        with open(os.path.join(work, f"units/{unit}.c"), "w") as f:
            f.write('#include "inner/part.h"\n' + f"int {unit}(int a) {{ return a + part(a) * (a ? part(a + 1) : 2); }}\n" +
                    ("int main(int c, char **v) { (void)v; int two(int); return one(c) + two(c); }\n" if unit == "one" else ""))
    places = {}
    for options in ("-gdwarf-3", "-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -fdebug-prefix-map=$PWD=.", "-gdwarf-4 -fdebug-prefix-map=$PWD=sub/dir"):
        files.run(f"cd {work}/units && gcc -O1 {options} -I. -o units one.c two.c")
        units = os.path.join(work, "units/units")
        start, size = (int(n, 16) for n in files.run(f"nm -S {units} | awk '$4 == \"two\" {{print $1, $2}}'").split())
        asked = [f"0x{a:x}" for a in range(start, start + size)]
        for more in ([], ["--relativenames"], ["--basenames"]):
            theirs = json.loads(llvm_symbolizer("-e", units, "--output-style=JSON", *more, *asked))
            ours = json.loads(ok("-e", units, "--output-style=JSON", *more, *asked, program=tool))
            for a, b in zip(ours, theirs):
                place = lambda f: (f["FunctionName"], os.path.normpath(f["FileName"]), f["Line"], f["Column"])
                equal(list(map(place, a["Symbol"])), list(map(place, b["Symbol"])), f"{options} {more} {a['Address']}")
            places[options, *more] = {f["FileName"] for a in ours for f in a["Symbol"]}
    equal(places["-gdwarf-4", "--relativenames"], {"two.c", "inner/part.h"})
    equal(places["-gdwarf-5", "--basenames"], {"two.c", "part.h"})


def test_data_symbols_equal_llvm(work, files):
    """In the variables and between: as llvm-symbolizer has them. Mach-O has no sizes: a variable reaches to the next."""
    tool = linked(work, "llvm-symbolizer")
    with open(os.path.join(work, "data.cc"), "w") as f:
        f.write("namespace app { int counts[10] = {1}; const char *names[] = {\"a\", \"b\"}; }\nstatic short inner[3] = {7};\n"
                "int zeros[100];\nthread_local int own = 3;\nextern \"C\" int use(int i)\n"
                "{\n    inner[i]++;\n    return app::counts[i] + *app::names[i] + inner[1] + zeros[i] + own;\n}\n")
    files.run(f"cd {work} && g++ -g -O1 -shared -fPIC -o data.so data.cc && "
              "x86_64-w64-mingw32-gcc -g -O1 -shared -nostdlib -Dthread_local= -Wl,-e,0 -o data.dll data.cc && "
              "clang-14 --target=x86_64-apple-macos11 -Dthread_local= -c -o data.o -x c++ data.cc && "
              "ld64.lld-14 -arch x86_64 -platform_version macos 11 11 -undefined dynamic_lookup -dylib -o data.dylib data.o")
    for name, sizes in (("data.so", {"app::counts": 40, "inner": 6, "zeros": 400, "app::names": 16}),
                        ("data.dylib", {"app::counts": 48, "app::names": 16}), ("data.dll", {"app::counts": None})):
        path, found = os.path.join(work, name), {}
        symbols = [line.split() for line in files.run(f"llvm-nm-14 -n {path}").splitlines()]
        spans = [int(s[0], 16) for s in symbols if len(s) == 3 and s[1] in "dDbBsS" and not s[2].startswith((".", "_ZTH", "own"))]
        lines = "".join(f"DATA {path} 0x{s + i:x}\n" for s in spans for i in range(0, 64, 3))
        theirs = llvm_symbolizer(input=lines).split("\n\n")  # with a third line: where it is declared
        for a, b in zip(ok(input=lines, program=tool).split("\n\n"), theirs, strict=True):
            a, b = a.split("\n"), b.split("\n")[:2]
            if a[0] in sizes:
                found[a[0]] = int(a[1].split()[1])
                equal(a, b if name != "data.dll" else [b[0], a[1]], name)
        equal(set(found), set(sizes), name)
        equal({n: s for n, s in sizes.items() if s}, {n: found[n] for n, s in sizes.items() if s}, name)
    so = os.path.join(work, "data.so")
    start = int(files.run(f"nm {so} | awk '$3 == \"zeros\" {{print $1}}'"), 16)
    answer = json.loads(ok("--output-style=JSON", input=f"DATA {so} 0x{start + 399:x}\n", program=tool))
    equal(answer["Data"], {"Name": "zeros", "Size": "0x190", "Start": f"0x{start:x}"})
    equal(ok("lookup", "-e", so, "--names", "zeros"), f"0x{start:x} 0x190 zeros\n")
    block = next(int(line.split()[2], 16) for line in files.run(f"readelf -Wl {so}").splitlines() if line.split()[:1] == ["TLS"])
    equal(ok(input=f"DATA {so} 0x{block + 3:x}\n", program=tool), f"own\n{block} 4\n\n")  # where its first value is


def test_pdb_variables_equal_llvm(work, files):
    """Variables with the sizes of their types, in functions and of threads too; what only publics name ends with its section."""
    tool = linked(work, "llvm-symbolizer")
    with open(os.path.join(work, "pdb.cc"), "w") as f:
        f.write("namespace app { int counts[10] = {1}; const char *names[] = {\"a\", \"b\"}; }\nstatic short inner[3] = {7};\n"
                "struct part { int a; long long b[4]; } part;\nthread_local int own = 3;\nextern \"C\" int _tls_index;\nint _tls_index;\n"
                "extern \"C\" int use(int i)\n{\n    static long long kept = 5;\n    kept++, inner[i]++;\n"
                "    return app::counts[i] + *app::names[i] + inner[1] + own + (int)kept + part.a;\n}\n")
    files.run(f"cd {work} && clang-14 --target=x86_64-pc-windows-msvc -g -gcodeview -O1 -c -o pdb.obj pdb.cc && "
              "lld-link-14 /debug /dll /noentry /export:use /out:pdb.dll pdb.obj")
    sizes = {"app::counts": 40, "app::names": 16, "inner": 6, "part": 40, "own": 4, "use::kept": 8}
    for name, base in (("pdb.pdb", 0), ("pdb.dll", 0x180000000)):
        path = os.path.join(work, name)
        for variable, size in sizes.items():
            start = int(ok("lookup", "-e", os.path.join(work, "pdb.pdb"), "--names", variable).split()[0], 16) + base
            lines = "".join(f"DATA {path} 0x{start + i:x}\n" for i in (0, size - 1))
            equal(ok(input=lines, program=tool), f"{variable}\n{start} {size}\n\n" * 2, name)
            end = ok(input=f"DATA {path} 0x{start + size:x}\n", program=tool).split("\n")[0]
            if end == variable:
                raise AssertionError(f"{variable} has no end")
    text = ok("lookup", "-e", os.path.join(work, "pdb.pdb"), "--names", "??_C@_01MCMALHOG@a?$AA@").split()
    equal(ok(input=f"DATA {work}/pdb.pdb {text[0]}\n", program=tool), f"`string'\n{int(text[0], 16)} 2\n\n")


def test_gnu_style_of_llvm_reads_files_from_input(work, files):
    """From standard input, where a line names its file; there is no a.out that is meant by default."""
    tool, at, t = linked(work, "llvm-symbolizer"), inlined(files), files.get("t")
    lines = f"{t} 0x{at:x}\nCODE {t} 0x{at:x}\n{t} 0x0\n"
    for options in (["--output-style=GNU"], ["--output-style=GNU", "-p", "-a"], ["--output-style=GNU", "-f=none", "--no-inlines"]):
        equal(ok(*options, input=lines, program=tool), llvm_symbolizer(*options, input=lines), options)
    tool = linked(work, "addr2line")
    equal(ok("-e", t, "-fi", input=f"{at:x}\n0x{at:x}\n", program=tool), "inner\n/src/t.c:1\nmid\n/src/t.c:3\nouter\n/src/t.c:5\n" * 2)
    equal(ok("lookup", "--output-style", "gnu", "--no-inlines", "-e", t, input=f"{at:x}\nouter+4\n"), "outer\n/src/t.c:1\nouter\n/src/t.c:5\n")


def test_few_and_many_addresses_get_the_same_answers(work, files):
    """A few addresses are answered from the units that they are in, many from the whole file."""
    unit = ("static inline int twice(int x) { return x * 2 + (x >> 3); }\n"
            "static inline int sum(const int *p, int n) { int s = 0; while (n--) s += twice(*p++); return s; }\n" +
            "".join(f"int part%d_{i}(int *p, int n) {{ if (n > {i}) p[0] = sum(p + 1, n - {i}); return sum(p, n) + p[{i}]; }}\n" for i in range(9)))
    for i in range(8):
        with open(os.path.join(work, f"unit{i}.c"), "w") as f:
            f.write(unit.replace("%d", str(i)) + ("int main(void) { return 0; }\n" if i == 3 else ""))
    for compiler in ("gcc -O2 -g", "clang -O1 -gdwarf-4", "gcc -O2 -g -gsplit-dwarf"):
        files.run(f"cd {work} && {compiler} -o parts.elf unit*.c")
        path = os.path.join(work, "parts.elf")
        symbols = [line.split() for line in files.run(f"nm -S {path}").splitlines() if "part" in line]
        asked = [f"0x{a:x}" for start, size, *_ in symbols for a in range(int(start, 16), int(start, 16) + int(size, 16), 7)]
        whole = json.loads(ok("lookup", "-e", path, "--json", *asked))
        known = [a for a in whole if a["Symbol"][0]["Line"]]
        assert len(known) > 500, f"{compiler}: {len(known)} addresses have lines"
        for at in range(0, len(known), 48):
            some = known[at:at + 48]
            equal(json.loads(ok("lookup", "-e", path, "--json", *(a["Address"] for a in some))), some, compiler)
        begin = f"0x{int(files.run(f'nm {path}').split(' T _start')[0].split()[-1], 16):x}"  # no unit has it
        mixed = [a["Address"] for a in known[::99]] + [begin]
        apart = [json.loads(ok("lookup", "-e", path, "--json", a))[0] for a in mixed]
        lines = ok("lookup", "-e", path, "--json", input="".join(a + "\n" for a in mixed)).splitlines()
        equal([json.loads(line) for line in lines], apart, compiler)


def test_no_inlines_follows_each_tool(work, files):
    """LLVM's symbolizer says whose code it is by its symbol, at the innermost line; who does not ask for that, and addr2line, the innermost function."""
    t, at = files.get("t"), f"0x{inlined(files):x}"
    outer, inner = "outer\n/src/t.c:1", "inner\n/src/t.c:1"
    llvm = subprocess.run(["llvm-symbolizer-14", "--no-inlines", "-e", t, at], capture_output=True, text=True, check=True).stdout
    equal(llvm.rpartition(":")[0], outer)
    equal(ok("--no-inlines", "-e", t, at, program=linked(work, "llvm-symbolizer")), f"{outer}:71\n\n")
    equal(ok("lookup", "--no-inlines", "--output-style", "llvm", "-e", t, at), f"{outer}:71\n\n")
    for words, name in ((("-f",), "llvm-addr2line"), (("--functions=short", "--no-inlines"), "llvm-symbolizer")):
        ours, theirs = (subprocess.run([program, *words, "-e", t, at], capture_output=True, text=True, check=True).stdout
                        for program in (os.path.join(work, name) if os.path.lexists(os.path.join(work, name)) else linked(work, name), name + "-19"))
        equal(ours, theirs)
        contains(ours, "inner")
    equal(ok("-f", "-e", t, at, program=linked(work, "addr2line")), inner + "\n")


def test_short_options_follow_each_tool(work, files):
    tool, mangled = linked(work, "addr2line"), files.run(f"nm {files.get('t')} | awk '/5count/{{print $3}}'").strip()
    equal(ok("-v", program=tool), ok("--version"))
    equal(ok("-H", program=tool), ok("--help", program=tool))
    llvm = linked(work, "llvm-symbolizer")
    at = f"0x{files.address('t', mangled):x}"
    equal(ok("-inlining", "-demangle=false", "-e", files.get("t"), at, program=llvm).splitlines()[0], mangled)
    equal(ok("-demangle", "-e", files.get("t"), at, program=llvm).splitlines()[0],
          "app::count(app::box<int> const&, char const*)")
    equal(ok("lookup", "--llvm", "-e", files.get("t"), at), ok("lookup", "--output-style", "llvm", "-e", files.get("t"), at))
    equal(ok("--no-debuginfod", "-e", files.get("t"), at, program=llvm), ok("-e", files.get("t"), at, program=llvm))


def test_json_output_equals_llvm(work, files):
    tool, t = linked(work, "llvm-symbolizer"), files.get("t")
    equal(ok("--output-style=JSON", "-e", "t", "0x0", program=tool, cwd=files.dir),
          '[{"Address":"0x0","ModuleName":"t","Symbol":[{"Column":0,"Discriminator":0,"FileName":"","FunctionName":"",'
          '"Line":0,"StartAddress":"","StartFileName":"","StartLine":0}]}]\n')
    lines = ok("--output-style=JSON", "-e", t, input=f"bad line\n0x{inlined(files):x}\n", program=tool).splitlines()
    equal(json.loads(lines[0]), {"Error": {"Message": "unable to parse arguments: bad line"}, "ModuleName": t})
    equal([(s["FunctionName"], s["Line"]) for s in json.loads(lines[1])["Symbol"]],
          [("inner", 1), ("mid", 3), ("outer", 5)])
    missing = symloom("--output-style=JSON", "-e", "/nowhere", "0x1", program=tool)
    equal(missing.status, 0)
    contains(json.loads(missing.out)[0]["Error"]["Message"], "No such file")


def test_unreadable_files_are_reported_as_each_tool_does(work, files):
    gnu = symloom("-e", "/nowhere", "0x1", program=linked(work, "addr2line"))
    equal((gnu.status, gnu.out, gnu.err), (1, "", "addr2line: '/nowhere': No such file\n"))
    llvm = symloom("-e", "/nowhere", "0x1", program=linked(work, "llvm-symbolizer"))
    equal((llvm.status, llvm.out), (0, "??\n??:0:0\n\n"))
    contains(llvm.err, "No such file")


def test_failures_set_status_1_or_3(work, files):
    """In every style a sentence and a status: 3 for what holds nothing, 1 for what cannot be read."""
    text, bare = os.path.join(work, "text"), os.path.join(work, "bare")
    with open(text, "w") as f:
        f.write("no debug file at all\n")
    files.run(f"echo 'void _start(void) {{}}' | gcc -nostdlib -static -s -fno-asynchronous-unwind-tables -x c - -o {bare}")
    nothing = "no debug information: no file with its build id below /usr/lib/debug"
    for style in ("gnu", "llvm", "json", "table"):
        for path, status, cause in ((text, 3, "unsupported object file format"), (bare, 3, nothing),
                                    ("/nowhere", 1, "cannot open /nowhere: No such file or directory")):
            for words, lines in (["0x1"], ""), ([], "0x1\n"):
                result = symloom("lookup", "--output-style", style, "-e", path, *words, input=lines)
                equal((result.status, result.out, result.err),
                      (status, "", f"error: cannot use {path}\n  caused by: {cause}\n"))
    result = symloom("lookup", "--output-style", "llvm", input=f"{text} 0x1\n{files.get('t')} 0x0\n")
    equal((result.status, result.out, result.err),
          (3, "??\n??:0:0\n\n" * 2, f"error: cannot use {text}\n  caused by: unsupported object file format\n"))
    equal(ok("-e", bare, "0x1", program=linked(work, "llvm-symbolizer")), "??\n??:0:0\n\n")


def test_llvm_addr2line_name_selects_its_output(work, files):
    tool, at = linked(work, "llvm-addr2line"), inlined(files)
    equal(ok("-e", files.get("t"), "-afp", f"{at:x}", "0", program=tool), f"0x{at:x}: inner at /src/t.c:1\n0x0: ?? at ??:0\n")


def test_every_format_gives_the_same_function(work, files):
    """The same function of files of all formats."""
    t = files.get("t.exe")
    formats = {"t": [], "t.static": [], "t.mingw": [], "t.32": [], "t.wasm": [], "t.fat": ["--default-arch", "arm64"]}
    for name, options in formats.items():
        path = files.get(name)
        names = ok("lookup", "-e", path, *options, "--names", "outer", "_outer", "nobody").splitlines()
        found = [line.split() for line in names if not line.startswith("??")]
        contains(names[2], "?? ?? nobody")
        address = found[0][0]
        answer = json.loads(ok("lookup", "-e", path, *options, "--output-style", "json", address))[0]["Symbol"]
        equal((answer[-1]["FunctionName"].lstrip("_"), os.path.basename(answer[-1]["FileName"]), answer[-1]["Line"]),
              ("outer", "t.c", 5), name)
    fat = files.get("t.fat")
    at = ok("lookup", "-e", fat + ":arm64", "--names", "outer").split()[0]
    equal(ok("lookup", "-e", fat + ":arm64", "--no-inlines", "--output-style", "gnu", at).splitlines()[0], "outer")
    equal(symloom("lookup", "-e", fat + ":ppc", "--output-style", "gnu", at).status, 3)
    pdb = os.path.splitext(t)[0] + ".pdb"
    address = ok("lookup", "-e", pdb, "--names", "outer").split()[0]
    equal(json.loads(ok("lookup", "-e", pdb, "--output-style", "json", address))[0]["Symbol"][-1]["Line"], 5)


def test_addresses_may_be_given_in_every_form(work, files):
    t, start = files.get("t.static"), files.address("t.static", "outer")
    answer = "outer\n/src/t.c:5:51\n\n"
    plain = ["lookup", "-e", t, "--no-inlines"]
    equal(ok(*plain, f"{start:x}"), answer)
    equal(ok(*plain, "--adjust-vma", "0x1000", f"{start + 0x1000:x}"), answer)
    load = int(files.run(f"readelf -lW {t} | awk '/LOAD/{{print $3; exit}}'"), 16)
    equal(ok(*plain, "--relative-address", f"{start - load:x}"), answer)
    text = int(files.run(f"readelf -SW {t} | awk '$2 == \".text\" || $3 == \".text\"{{print $(NF - 7)}}'"), 16)
    equal(ok(*plain, "-j", ".text", f"{start - text:x}"), answer)
    equal(ok(*plain, "--return-addresses", f"{start + 1:x}"), answer)
    missing = symloom(*plain, "-j", ".nothing", "0")
    equal((missing.status, missing.out), (1, ""))


def test_names_may_be_given_instead_of_addresses(work, files):
    t = files.get("t")
    mangled = files.run(f"nm {t} | awk '/5count/{{print $3}}'").strip()
    plain = ["lookup", "-e", t, "--no-inlines", mangled]
    equal(ok(*plain).splitlines()[0], "app::count(app::box<int> const&, char const*)")
    equal(ok(*plain, "--no-demangle").splitlines()[0], mangled)
    equal(ok(*plain, "-f=short").splitlines()[0], "count")
    equal(ok(*plain, "--functions", "short").splitlines()[0], "count")


def test_table_style_is_printed(work, files):
    t, start = files.get("t"), inlined(files)
    rows = ok("lookup", "-e", t, "--output-style", "table", f"0x{start:x}", "0").splitlines()
    equal(rows[0].split(), ["Address", "Function", "File:Line"])
    equal(rows[1].split()[:2], [f"0x{start:x}", "inner"])
    contains(rows[3], "  (inlined by) outer  +0x")
    equal(rows[4].split(), ["0x0", "??"])
    assert not any(row.endswith(" ") for row in rows), rows
    equal(len({row.index("/src/t.c") for row in rows[1:4]}), 1)


def test_colour_follows_options_and_environment(work, files):
    table = ["lookup", "-e", files.get("t"), "--output-style", "table", "0"]
    plain = ok(*table)
    assert "\033" not in plain
    contains(ok(*table, "--color", "always"), "\033[1m")
    contains(ok(*table, env={"CLICOLOR_FORCE": "1", "NO_COLOR": ""}), "\033[1m")
    equal(ok(*table, env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}), plain)


def test_control_characters_in_names_are_escaped(work, files):
    path = os.path.join(work, "x.sym")
    with open(path, "w") as f:
        f.write("MODULE Linux x86_64 3249D99D0C4049318610F4E4FB0B69360 x\nFUNC 10 4 0 a\0b\033[31m\n")
    row = ok("lookup", "-e", path, "--output-style", "table", "0x10").splitlines()[1]
    contains(row, "a\\x00b\\x1b[31m  +0x0")
    equal(ok("lookup", "-e", path, "--output-style", "gnu", "--basenames", "0x10"), "a\0b\033[31m\n??:?\n")


def test_source_context_is_printed(work, files):
    path = os.path.join(work, "t.c")
    with open(path, "w") as f:
        f.write(SOURCE)
    files.get("t")
    files.run(f"gcc -g -O2 -include sink.h -shared -fPIC -o {work}/here.so {path} sink.c")
    out = ok("lookup", "-e", f"{work}/here.so", "--no-inlines", "--output-style", "llvm", "--print-source-context-lines", "3", "outer")
    lines = SOURCE.splitlines()
    wanted = f"outer\n{path}:5:51\n4  : {lines[3]}\n5 >: {lines[4]}\n6  : {lines[5]}\n\n"
    equal(out, wanted)
    args = ["lookup", "-e", f"{work}/here.so", "--no-inlines", "--output-style", "llvm", "--print-source-context-lines", "3",
            "outer"]
    with open(path, "w") as f:
        f.write("\0\n" + SOURCE.split("\n", 1)[1])  # no line ends but at its newline
    equal(ok(*args), wanted)
    os.unlink(path)
    os.symlink("/dev/zero", path)  # what the debug information names may be anything
    equal(ok(*args), f"outer\n{path}:5:51\n\n")
    os.unlink(path)
    os.mkfifo(path)
    equal(ok(*args), f"outer\n{path}:5:51\n\n")


def test_separate_debug_file_is_used(work, files):
    t = shutil.copy(files.get("t"), work)
    start = files.address("t", "outer")
    files.run(f"cd {work} && objcopy --only-keep-debug t t.debug && strip t && objcopy --add-gnu-debuglink=t.debug t")
    wanted = "outer\n/src/t.c:5:51\n\n"
    equal(ok("lookup", "-e", t, "--no-inlines", f"{start:x}"), wanted)
    identity = json.loads(ok("inspect", "--json", t))[0]["code_id"]
    directory = os.path.join(work, "dbg", ".build-id", identity[:2])
    os.makedirs(directory)
    os.rename(t + ".debug", os.path.join(directory, identity[2:] + ".debug"))
    bare = symloom("lookup", "-e", t, "--no-inlines", f"{start:x}")
    equal((bare.status, bare.out), (3, ""))
    equal(ok("lookup", "-e", t, "--debug-file-directory", f"{work}/dbg", "--no-inlines", f"{start:x}"), wanted)
    equal(ok("lookup", "--build-id", identity, "--debug-file-directory", f"{work}/dbg", "--no-inlines", f"{start:x}"), wanted)
    equal(ok("--debug-file-directory", f"{work}/dbg", "--no-inlines", input=f"BUILDID:{identity} {start}\n",
             program=linked(work, "llvm-symbolizer")), wanted)


def test_debug_links_are_followed_by_checksum_and_path(work, files):
    """By checksum where there is no build id; beside what a link leads to; at the file's own place below a directory."""
    program, start = os.path.join(work, "bin/p"), None
    os.makedirs(os.path.join(work, "bin"))
    files.get("t")
    files.run(f"gcc -g -O2 -fdebug-prefix-map=$PWD=/src -include sink.h -Wl,--build-id=none -o {program} t.c u.cc sink.c main.c")
    start = int(files.run(f"nm {program} | awk '$3 == \"outer\" {{print $1}}'"), 16)
    files.run(f"cd {work}/bin && objcopy --only-keep-debug p p.debug && strip p && objcopy --add-gnu-debuglink=p.debug p")
    wanted, plain = "outer\n/src/t.c:5:51\n\n", ["--no-inlines", f"{start:x}"]
    equal(ok("lookup", "-e", program, *plain), wanted)
    os.symlink(program, os.path.join(work, "linked"))
    equal(ok("lookup", "-e", os.path.join(work, "linked"), *plain), wanted)
    equal(ok("lookup", "-e", "linked", *plain, cwd=work), wanted)
    with open(program + ".debug", "ab") as f:
        f.write(b"x")  # another file than the one that was linked to
    equal(symloom("lookup", "-e", program, *plain).status, 3)
    with open(program + ".debug", "r+b") as f:
        f.truncate(os.path.getsize(program + ".debug") - 1)
    place = work + "/dbg" + os.path.realpath(work) + "/bin"
    os.makedirs(place)
    os.rename(program + ".debug", place + "/p.debug")
    os.symlink("dbg", os.path.join(work, "dbg2"))
    for directory in ("dbg", "./dbg2", work + "/dbg"):
        equal(ok("lookup", "-e", "bin/p", "--debug-file-directory", directory, *plain, cwd=work), wanted, directory)
        equal(ok("lookup", "-e", "../linked", "--debug-file-directory", "../" + directory if directory[0] != "/" else directory,
                 *plain, cwd=work + "/bin"), wanted, directory)


def test_pdb_beside_its_program_is_used(work, files):
    """Under its own name, and packed as symbol stores do; addresses are those of the program."""
    exe = shutil.copy(files.get("t.exe"), work)
    pdb = os.path.splitext(files.get("t.exe"))[0] + ".pdb"
    base = int(next(line for line in files.run("llvm-readobj-14 --file-headers t.exe").splitlines() if "ImageBase" in line).split()[-1], 16)
    rva = int(ok("lookup", "-e", pdb, "--names", "outer").split()[0], 16)
    with open(pdb, "rb") as f:
        contents = f.read()
    for name, data in (("t.pdb", contents), ("t.pd_", cabinet("t.pdb", contents))):
        with open(os.path.join(work, name), "wb") as f:
            f.write(data)
        answer = json.loads(ok("lookup", "-e", exe, "--output-style", "json", f"{base + rva:x}"))[0]["Symbol"]
        equal([s["Line"] for s in answer][-1:], [5], name)
        again = json.loads(ok("lookup", "-e", os.path.join(work, name), "--output-style", "json", f"{rva:x}"))[0]["Symbol"]
        equal([s["Line"] for s in again], [s["Line"] for s in answer], name)
        contains(ok("inspect", os.path.join(work, name)), "  Format       pdb ")
        contains(ok("dump-syms", os.path.join(work, name)), "MODULE windows x86_64 ", " t.pdb\n")
        os.unlink(os.path.join(work, name))


def test_compressed_files_are_unpacked(work, files):
    """Whatever the name says."""
    t, packed = files.get("t"), os.path.join(work, "t")
    at = f"0x{inlined(files):x}"
    ok("push-symbols", "executable", "-e", t, "--dry-run", "--output", os.path.join(work, "plain"))
    for command in ("gzip -c", "zstd -qc", "xz -c"):
        files.run(f"{command} {t} >{packed}")
        equal(ok("lookup", "-e", packed, "--output-style", "llvm", at), ok("lookup", "-e", t, "--output-style", "llvm", at))
        equal(ok("inspect", packed).split("\n", 3)[3], ok("inspect", t).split("\n", 3)[3])
        equal(ok("dump-syms", packed), ok("dump-syms", t))
        ok("push-symbols", "executable", "-e", packed, "--dry-run", "--output", os.path.join(work, command))
        files.run(f"diff -r '{work}/{command}' {work}/plain")
    with open(packed, "r+b") as f:
        f.truncate(os.path.getsize(packed) // 2)
    equal(symloom("lookup", "-e", packed, "--output-style", "llvm", at).status, 3)


def test_symbol_places_are_searched_for_a_stripped_file(work, files):
    t = shutil.copy(files.get("t"), work)
    start = files.address("t", "outer")
    os.mkdir(os.path.join(work, "symbols"))
    files.run(f"cd {work} && objcopy --only-keep-debug t symbols/any && strip t")
    plain = ["lookup", "-e", t, "--output-style", "llvm", "--no-inlines", "--cache-dir", "", f"{start:x}"]
    equal(symloom(*plain).status, 3)
    equal(ok(*plain, "--symbols", os.path.join(work, "symbols")), "outer\n/src/t.c:5:51\n\n")
    os.mkdir(os.path.join(work, "others"))
    equal(symloom(*plain, "--symbols", os.path.join(work, "others")).status, 3)


def test_symbfiles_are_read(work, files):
    """Ranges answer any address, return pads those of callers; addresses are those of the program."""
    t = files.get("t.static")
    ok("push-symbols", "executable", "-e", t, "--dry-run", "--output", os.path.join(work, "out"))
    names = {name.split(".")[1]: os.path.join(work, "out", name) for name in os.listdir(os.path.join(work, "out"))}
    start, entry = files.address("t.static", "outer"), files.address("t.static", "entry")
    frames = lambda *words: [(s["FunctionName"], s["FileName"], s["Line"])
                             for s in json.loads(ok("lookup", *words, "--output-style", "json"))[0]["Symbol"]]
    for address in (start, start + 8, entry):
        equal(frames("-e", names["ranges"], f"{address:x}"), frames("-e", t, f"{address:x}"))
    calls = [line.split(":")[0] for line in files.run(f"objdump -d {t} | grep -A1 'call.*<outer>'").splitlines()[1::3]]
    after = int(calls[0], 16)
    equal(frames("-e", names["returnpads"], "--return-addresses", f"{after:x}"), frames("-e", t, "--return-addresses", f"{after:x}"))
    equal(frames("-e", names["returnpads"], f"{after + 1:x}"), [("", "", 0)])


def test_debug_information_without_linkage_names_uses_symbols(work, files):
    """Where it has no linkage names: the symbol says more, and symbfiles have what DWARF itself says."""
    with open(os.path.join(work, "n.cc"), "w") as f:
        f.write("namespace app { int sink; __attribute__((noinline)) int half(int x) { return sink += x / 2; } }\n"
                "int main(int c, char **) { return app::half(c); }\n")
    files.run(f"cd {work} && g++ -g -O1 -S -dA -o n.s n.cc && sed -i '/(DW_AT_linkage_name)/s/0x6e/0x2fff/' n.s && g++ -no-pie -o n n.s")
    start = next(line.split()[0] for line in files.run(f"nm {work}/n").splitlines() if "half" in line)
    ok("push-symbols", "executable", "-e", os.path.join(work, "n"), "--dry-run", "--output", os.path.join(work, "out"))
    ranges = next(name for name in os.listdir(os.path.join(work, "out")) if name.endswith(".ranges.symbfile"))
    for path, name in ((os.path.join(work, "n"), "_ZN3app4halfEi"), (os.path.join(work, "out", ranges), "half")):
        equal(ok("lookup", "-e", path, "--output-style", "gnu", "-f", "--no-demangle", start).splitlines()[0], name)


def test_each_input_line_is_answered_at_once(work, files):
    """A client that waits for an answer before it asks again gets it."""
    from harness import SYMLOOM
    at = inlined(files)
    process = subprocess.Popen([SYMLOOM, "lookup", "-e", files.get("t"), "--output-style", "llvm"], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        for _ in range(3):
            process.stdin.write(f"0x{at:x}\n")
            process.stdin.flush()
            equal([process.stdout.readline() for _ in range(7)][4:], ["outer\n", "/src/t.c:5:55\n", "\n"])
        process.stdin.close()
        equal(process.wait(60), 0)
    finally:
        process.kill()
        process.stdout.close()


def test_unreadable_input_fails(work, files):
    from harness import SYMLOOM
    for style in ("gnu", "llvm", "json"):
        with open(os.devnull, "w") as out:
            where = os.open(work, os.O_RDONLY)
            run = subprocess.run([SYMLOOM, "lookup", "-e", files.get("t"), "--output-style", style], stdin=where, stdout=out,
                                 stderr=subprocess.PIPE, text=True, timeout=60)
            os.close(where)
        equal((run.returncode, run.stderr),
              (1, "error: cannot read addresses from standard input\n  caused by: Is a directory\n"))
