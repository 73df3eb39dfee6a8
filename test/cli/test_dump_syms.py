"""`symloom dump-syms`: every format to the text, and back."""
import hashlib, json, os, re, shutil
import harness
from compare import compare
from harness import contains, equal, linked, ok, symloom


def records(text, kind):
    return [line for line in text.splitlines() if line.startswith(kind + " ")]


def agrees(work, files, path, dump=(), options=("--relative-address",), addresses=3000):
    """What the file and its text answer; only what the text cannot say may differ."""
    result, examples = compare(path, os.path.join(work, "out.sym"), addresses, 1, dump, options)
    assert result["same"] > addresses * 0.5, (result, examples)
    equal(result["other"], 0, str(examples.get("other")))
    return result


def test_elf_symbols_have_module_and_code_id(work, files):
    t = files.get("t")
    identity = json.loads(ok("inspect", "--json", t))[0]
    text = ok("dump-syms", "--inlines", t)
    lines = text.splitlines()
    equal(lines[0], f"MODULE Linux x86_64 {identity['breakpad_id']} t")
    equal(lines[1], f"INFO CODE_ID {identity['code_id'].upper()}")
    equal(lines[2], "INFO GENERATOR symloom " + ok("version").split()[1])
    contains(text, "FILE 0 ", " app::count(app::box<int> const&, char const*)\n", "<.plt ELF section in t>\n")
    outer = files.address("t", "outer")
    contains(text, f"FUNC {outer:x} ", " outer\nINLINE 0 5 ")
    order = [line.split()[0] for line in lines if not re.match("[0-9a-f]+ ", line)]
    equal(order[:3], ["MODULE", "INFO", "INFO"])
    assert order.index("INLINE_ORIGIN") > max(i for i, k in enumerate(order) if k == "FILE")
    addresses = [int(line.split()[2 if line.split()[1] == "m" else 1], 16) for line in lines if line[:5] in ("FUNC ", "PUBLI")]
    equal(addresses, sorted(addresses))
    agrees(work, files, t)
    agrees(work, files, files.get("t.static"))


def test_inline_records_follow_their_function(work, files):
    """A function, then its calls by depth with the lines that they are called at, then the innermost lines, which cover it all."""
    with open(os.path.join(work, "basic.cc"), "w") as f:
        f.write("volatile int sink;\nstatic inline __attribute__((always_inline)) int inline_1(int x)\n{\n    return sink * x;\n}\n"
                "static inline __attribute__((always_inline)) int inline_2(int x)\n{\n    sink = x;\n    x = inline_1(x + 3);\n"
                "    return x * sink;\n}\n__attribute__((noinline)) int inline_3(int x)\n{\n    sink++;\n    return inline_2(x);\n}\n"
                "int main(int count, char **) { return inline_3(count); }\n")
    build_id = "b060ad20c6b47781552708aa192e7739fac7c84a"
    files.run(f"cd {work} && g++ -g -O1 -no-pie -Wl,--build-id=0x{build_id} -o basic.full basic.cc")
    text = ok("dump-syms", "--inlines", os.path.join(work, "basic.full"))
    lines = text.splitlines()
    equal(lines[:2], ["MODULE Linux x86_64 20AD60B0B4C68177552708AA192E77390 basic.full", f"INFO CODE_ID {build_id.upper()}"])
    start, size = (int(n, 16) for n in files.run(f"nm -S {work}/basic.full | awk '/inline_3/ {{print $1, $2}}'").split())
    load = int(files.run(f"readelf -lW {work}/basic.full | awk '/LOAD/{{print $3; exit}}'"), 16)
    at = lines.index(f"FUNC {start - load:x} {size:x} 0 inline_3(int)")
    origins = {line.split(" ", 2)[1]: line.split(" ", 2)[2] for line in lines if line.startswith("INLINE_ORIGIN ")}
    file = next(line.split()[1] for line in lines if line.startswith("FILE ") and line.endswith("/basic.cc"))
    calls = [line.split() for line in lines[at + 1:at + 3]]
    equal([(c[0], c[1], c[2], c[3], origins[c[4]].split("(")[0]) for c in calls],
          [("INLINE", "0", "15", file, "inline_2"), ("INLINE", "1", "9", file, "inline_1")])
    spans = [[(int(c[i], 16), int(c[i], 16) + int(c[i + 1], 16)) for i in range(5, len(c), 2)] for c in calls]
    assert all(any(a <= b and e <= f for a, f in spans[0]) for b, e in spans[1]), spans
    rows = []
    for line in lines[at + 3:]:
        if not re.match("[0-9a-f]+ [0-9a-f]+ [0-9]+ [0-9]+$", line):
            break
        rows.append([int(n, base) for n, base in zip(line.split(), (16, 16, 10, 10))])
    equal((rows[0][0], rows[-1][0] + rows[-1][1]), (start - load, start - load + size))
    assert all(a[0] + a[1] == b[0] for a, b in zip(rows, rows[1:])), rows
    for row in rows:
        inner = any(a <= row[0] < e for a, e in spans[1])
        outer = any(a <= row[0] < e for a, e in spans[0])
        assert row[2] in (range(3, 6) if inner else range(7, 12) if outer else range(13, 17)), (row, spans)
    equal(ok("dump-syms", "--inlines", "--store", os.path.join(work, "s"), os.path.join(work, "basic.full")), "")
    with open(os.path.join(work, "s/basic.full/20AD60B0B4C68177552708AA192E77390/basic.full.sym")) as f:
        equal(f.read(), text)


def test_output_is_the_same_for_any_number_of_threads(work, files):
    from harness import SYMLOOM
    first = ok("dump-syms", "-d", "-j", "1", SYMLOOM)
    equal(ok("dump-syms", "-d", "-j", "4", SYMLOOM), first)
    equal(agrees(work, files, SYMLOOM)["other"], 0)


def test_inlines_are_left_out_by_default(work, files):
    text = ok("dump-syms", files.get("t"))
    assert "INLINE" not in text
    contains(text, "FUNC ")


def test_pe_and_pdb_find_each_other(work, files):
    exe = files.get("t.exe")
    pdb = os.path.splitext(exe)[0] + ".pdb"
    code, debug = (json.loads(ok("inspect", "--json", f))[0] for f in (exe, pdb))
    for path in (exe, pdb):  # each finds the other beside it
        lines = ok("dump-syms", "-d", path).splitlines()
        equal(lines[0], f"MODULE windows x86_64 {debug['breakpad_id']} t.pdb")
        equal(lines[1], f"INFO CODE_ID {code['code_id'].upper()} t.exe")
        contains("\n".join(lines), " outer(int)\nINLINE 0 5 ")
    agrees(work, files, pdb)
    alone = symloom("dump-syms", "--pe", exe)
    equal((alone.status, alone.out), (3, ""))
    contains(alone.err, "error: no symbols")
    lonely = shutil.copy(pdb, work)
    assert "CODE_ID" not in ok("dump-syms", lonely)
    equal(ok("dump-syms", "--code-file", exe, lonely), ok("dump-syms", pdb))


def test_mingw_programs_are_dumped(work, files):
    for name in ("t.mingw", "t.32"):
        text = ok("dump-syms", "-d", files.get(name))
        contains(text, "MODULE windows x86", " outer\nINLINE 0 5 ")
        agrees(work, files, files.get(name))


def test_each_mach_o_slice_is_dumped(work, files):
    fat = files.get("t.fat")
    equal(ok("dump-syms", "--list-arch", fat), f"{fat} contains the following architecture(s):\nx86_64, arm64\n")
    for arch in ("x86_64", "arm64"):
        text = ok("dump-syms", "-d", "-a", arch, fat)
        contains(text, f"MODULE mac {arch} ", " t.fat\n", " outer\nINLINE 0 5 ")
        assert "CODE_ID" not in text
        agrees(work, files, os.path.join(files.dir, arch + ".dwarf"))
    missing = symloom("dump-syms", "-a", "ppc", fat)
    equal(missing.status, 3)
    contains(missing.err, "x86_64, arm64")
    bundle = ok("dump-syms", "-a", "arm64", os.path.join(files.dir, "app.dSYM"))
    contains(bundle, " app\n")
    image = os.path.join(files.dir, "arm64.dylib")
    contains(ok("dump-syms", "-d", "-g", os.path.join(files.dir, "app.dSYM"), image), " arm64.dylib\n", " outer\nINLINE 0 5 ")


def test_wasm_module_is_dumped(work, files):
    contains(ok("dump-syms", "-d", files.get("t.wasm")), "MODULE wasm wasm32 ", " outer\nINLINE 0 5 ")
    agrees(work, files, files.get("t.wasm"))


SYM = """MODULE windows x86 3249D99D0C4049318610F4E4FB0B69361 x.pdb
INFO CODE_ID 5AB380779000 x.exe
INFO GENERATOR other 1
FILE 7 c:\\b.c
FILE 3 c:\\a.c
INLINE_ORIGIN 5 inl
FUNC m 2000 10 4 g(int)
INLINE 0 3 7 5 2004 4
2000 4 1 7
2004 4 9 3
2008 8 4 7
PUBLIC m 1000 c f
STACK WIN 4 2000 10 2 0 4 0 0 0 1 $T0 .raSearch =
STACK CFI INIT 2000 10 .cfa: $esp 4 +
"""


def test_breakpad_file_is_normalised(work, files):
    path = os.path.join(work, "x.sym")
    with open(path, "w") as f:
        f.write(SYM)
    equal(ok("dump-syms", "-d", "--no-generator", path), """MODULE windows x86 3249D99D0C4049318610F4E4FB0B69361 x.pdb
INFO CODE_ID 5AB380779000 x.exe
FILE 0 c:\\b.c
FILE 1 c:\\a.c
INLINE_ORIGIN 0 inl
PUBLIC m 1000 c f
FUNC m 2000 10 4 g(int)
INLINE 0 3 0 0 2004 4
2000 4 1 0
2004 4 9 1
2008 8 4 0
STACK WIN 4 2000 10 2 0 4 0 0 0 1 $T0 .raSearch =
STACK CFI INIT 2000 10 .cfa: $esp 4 +
""")
    assert "STACK" not in ok("dump-syms", "-c", path)
    equal(ok("dump-syms", "-i", "--no-generator", path), "".join(line + "\n" for line in SYM.splitlines()[:2]))


def test_standard_input_is_read(work, files):
    path = os.path.join(work, "x.sym")
    with open(path, "w") as f:
        f.write(SYM)
    equal(ok("dump-syms", "-", input=SYM), ok("dump-syms", path))
    equal(symloom("dump-syms", "-", input="").status, 3)
    fifo = os.path.join(work, "fifo")
    os.mkfifo(fifo)
    equal(files.run(f"cat {path} >{fifo} & {harness.SYMLOOM} dump-syms {fifo}; wait"), ok("dump-syms", path))


def test_module_fields_can_be_set(work, files):
    lines = ok("dump-syms", "-n", "name", "-b", "ABC0", "--os", "Android", "--extra-info", "RELEASE_CHANNEL x y", files.get("t")).splitlines()
    equal(lines[0], "MODULE Android x86_64 ABC0 name")
    equal(lines[2], "INFO RELEASE_CHANNEL x y")
    bad = symloom("dump-syms", "--extra-info", "lower case", files.get("t"))
    equal((bad.status, bad.out), (2, ""))
    static = files.get("t.static")
    outer = files.address("t.static", "outer")
    contains(ok("dump-syms", "--preserve-load-address", static), f"FUNC {outer:x} ")
    assert f"FUNC {outer:x} " not in ok("dump-syms", static)


def test_store_option_writes_the_symbol_store_layout(work, files):
    t, store = files.get("t"), os.path.join(work, "store")
    identity = json.loads(ok("inspect", "--json", t))[0]["breakpad_id"]
    equal(ok("dump-syms", "--store", store, t), "")
    with open(os.path.join(store, "t", identity, "t.sym")) as f:
        equal(f.read(), ok("dump-syms", t))
    exe = files.get("t.exe")
    identity = json.loads(ok("inspect", "--json", exe))[0]["breakpad_id"]
    output = os.path.join(work, "both.sym")
    equal(ok("dump-syms", "-s", store, "-o", output, exe), "")
    with open(os.path.join(store, "t.pdb", identity, "t.sym")) as one, open(output) as other:
        equal(one.read(), other.read())
    leftovers = [f for d, _, found in os.walk(work) for f in found if not f.endswith(".sym")]
    equal(leftovers, [])
    odd = symloom("dump-syms", "-s", store, "-n", "..", t)
    equal(odd.status, 1)


def test_output_option_writes_one_file(work, files):
    output = os.path.join(work, "out.sym")
    equal(ok("dump-syms", "-o", output, files.get("t"), files.get("t.wasm")), "")
    with open(output) as f:
        equal(f.read(), ok("dump-syms", files.get("t")) + ok("dump-syms", files.get("t.wasm")))
    text = os.path.join(work, "text")
    with open(text, "w") as f:
        f.write("not a debug file\n")
    failed = symloom("dump-syms", "-o", os.path.join(work, "none.sym"), text)
    equal(failed.status, 3)
    contains(failed.err, "error: failed to process file", "  caused by: unsupported object file format")
    equal(sorted(os.listdir(work)), ["out.sym", "text"])
    equal(symloom("dump-syms", os.path.join(work, "nothing")).status, 1)


def test_separate_debug_file_is_merged(work, files):
    t = shutil.copy(files.get("t"), work)
    whole = ok("dump-syms", "-d", t)
    files.run(f"cd {work} && objcopy --only-keep-debug t t.debug && strip t")
    assert " outer\n" not in ok("dump-syms", "-d", t)
    equal(records(ok("dump-syms", "-d", "-g", t + ".debug", t), "FUNC"), records(whole, "FUNC"))
    files.run(f"cd {work} && mkdir dbg && mv t.debug dbg/ && objcopy --add-gnu-debuglink=dbg/t.debug t")
    for words in (["-g", f"{work}/dbg", t], [t, f"{work}/dbg"], [t, work, f"{work}/dbg"]):  # directories behind the file, as Breakpad's tool has it
        equal(records(ok("dump-syms", "-d", *words), "FUNC"), records(whole, "FUNC"), str(words))
    merged = ok("dump-syms", "-d", t, f"{work}/dbg/t.debug")
    equal(len(records(merged, "MODULE")), 1)
    equal(records(merged, "FUNC"), records(whole, "FUNC"))
    other = symloom("dump-syms", "-g", files.get("t.static"), t)
    equal((other.status, other.out), (1, ""))
    contains(other.err, "Cannot generate a symbol file from split sources that do not match.", "debug id: ")


def test_check_cfi_fails_without_stack_records(work, files):
    path = os.path.join(work, "x.sym")
    with open(path, "w") as f:
        f.write(SYM)
    ok("dump-syms", "--check-cfi", path)
    with open(path, "w") as f:
        f.write(SYM[:SYM.index("STACK")])
    failed = symloom("dump-syms", "--check-cfi", path)
    equal((failed.status, failed.out), (1, ""))
    contains(failed.err, "No CFI data")


def stack(*args):
    return [line for line in ok("dump-syms", *args).splitlines() if line.startswith("STACK ")]


def test_stack_records_have_cfi_rules(work, files):
    t = files.get("t")
    lines = stack(t)
    contains("\n".join(lines), f"STACK CFI INIT {files.address('t', 'outer'):x} ", " .cfa: $rsp 8 + .ra: .cfa -8 + ^",
             ".cfa: $rsp 16 + $rbx: .cfa -16 + ^")
    equal(stack("-c", t), [])
    text = ok("dump-syms", t)
    assert text.splitlines()[-len(lines):] == lines, "they are the end of the file"
    # read back they are the same
    path = os.path.join(work, "t.sym")
    with open(path, "w") as f:
        f.write(text)
    equal(stack(path), lines)
    # addresses as in the file
    static = files.get("t.static")
    low, high = stack(static)[0].split(), stack("--preserve-load-address", static)[0].split()
    equal(int(high[3], 16) - int(low[3], 16), 0x400000)
    equal(low[4:], high[4:])


def test_stack_records_come_from_every_format(work, files):
    exe, pdb = os.path.join(files.dir, "calls.exe"), os.path.join(files.dir, "calls.pdb")
    files.run("printf 'int g(int x) { return x; } int entry(int x) { volatile int a[9]; a[x] = g(x); return g(a[1]) + 1; }' >calls.c; "
              "clang-14 --target=x86_64-pc-windows-msvc -g -gcodeview -fno-inline -c -o calls.obj calls.c && "
              "lld-link-14 /nodefaultlib /entry:entry /subsystem:console /debug /out:calls.exe calls.obj")
    lines = stack(exe)
    contains("\n".join(lines), "STACK CFI INIT ", " .cfa: $rsp 8 + .ra: .cfa 8 - ^")
    equal(stack(pdb), lines)  # the tables are in the executable beside it
    equal(stack("--pe", exe), lines)
    files.run("clang-14 --target=i686-pc-windows-msvc -g -gcodeview -fno-inline -c -o calls32.obj calls.c && "
              "lld-link-14 /nodefaultlib /entry:entry /subsystem:console /safeseh:no /debug /out:calls32.exe calls32.obj")
    lines = stack(os.path.join(files.dir, "calls32.exe"))  # of 32 bits the PDB has them
    contains("\n".join(lines), "STACK WIN 4 1000 ", " 0 0 0 1 $T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + =")
    contains("\n".join(stack(files.get("t.mingw"))), " .ra: .cfa 8 - ^")
    contains("\n".join(stack(files.get("t.32"))), " .cfa: $esp 4 + .ra: .cfa -4 + ^")
    files.get("t.fat")
    for arch, rule in ("x86_64", "$rbp: .cfa -16 + ^"), ("arm64", ".cfa: sp"):
        contains("\n".join(stack(os.path.join(files.dir, arch + ".dylib"))), "STACK CFI INIT ", rule)


def test_stack_records_of_split_files_equal_the_whole(work, files):
    t = files.get("t")
    stripped, debug = os.path.join(work, "t"), os.path.join(work, "t.debug")
    files.run(f"objcopy --only-keep-debug {t} {debug}; objcopy --strip-debug {t} {stripped}")
    equal(stack("-g", debug, stripped), stack(t))
    equal(stack(debug, stripped), stack(t))
    equal(stack(debug), [])  # a debug file has code and tables no more
    failed = symloom("dump-syms", "--check-cfi", debug)
    equal((failed.status, failed.out), (1, ""))
    ok("dump-syms", "--check-cfi", stripped)


def test_mapping_options_rewrite_paths(work, files):
    path = os.path.join(work, "x.sym")
    with open(path, "w") as f:
        f.write("MODULE Linux x86 3249D99D0C4049318610F4E4FB0B69360 x\nFILE 0 /rustc/1a/lib.rs\nFILE 1 /other.rs\n"
                f"FILE 2 {path}\nFUNC 0 c 0 f\n0 4 1 0\n4 4 2 1\n8 4 3 2\n")
    one = ["--mapping-src", "/rustc/([a-f0-9]+)/(.*)", "--mapping-dest", "git:x/rust:{2}:{1}"]
    names = lambda *args: [line.split(" ", 2)[2] for line in records(ok("dump-syms", *args, path), "FILE")]
    equal(names(*one), ["git:x/rust:lib.rs:1a", "/other.rs", path])
    digest = hashlib.sha512(open(path, "rb").read()).hexdigest()
    two = ["--mapping-src", ".*x\\.sym$", "--mapping-dest", "{rev}/{digest}", "--mapping-var", "rev=7"]
    equal(names(*one, *two), ["git:x/rust:lib.rs:1a", "/other.rs", f"7/{digest}"])
    file = os.path.join(work, "map.json")
    with open(file, "w") as f:
        json.dump({"variables": {"rev": "1", "v": "w"},
                   "mappings": [{"source": "^/(.*)", "destination": "{v}{rev}:{1}", "files": ["/other.rs"]}]}, f)
    equal(names("--mapping-file", file, "--mapping-var", "rev=2", *one), ["git:x/rust:lib.rs:1a", "w2:other.rs", path])
    bad = symloom("dump-syms", "--mapping-src", "a", "--mapping-dest", "{x}", path)
    equal(bad.status, 2)
    contains(bad.err, "Invalid action x in mapping string")
    equal(symloom("dump-syms", "--mapping-src", "a", path).status, 2)
    equal(symloom("dump-syms", "--mapping-src", "(", "--mapping-dest", "", path).status, 2)


def test_dump_syms_name_accepts_its_options(work, files):
    tool = linked(work, "dump_syms")
    equal(ok("-d", files.get("t"), program=tool), ok("dump-syms", "-d", files.get("t")))
    equal(ok("-i", "-r", "-w", "-v", "--verbose", "trace", files.get("t"), program=tool), ok("dump-syms", "-i", files.get("t")))
    contains(symloom("--nothing", program=tool).err, "Try 'dump_syms --help'.")
