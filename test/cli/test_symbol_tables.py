"""Where symbols and build ids are found in files that are not as compilers leave them, and of which machines."""
import os
from harness import contains, equal, ok

C = "__attribute__((noinline)) int fold(int x) { return x * 3 + 1; }\nint outer(int x) { return fold(x) + fold(x + 1); }\n"


def write(work, name, text):
    with open(os.path.join(work, name), "w") as f:
        f.write(text)


def addresses(files, path, nm="nm"):
    rows = [line.split() for line in files.run(f"{nm} {path}").splitlines()]
    return {row[-1]: int(row[0], 16) for row in rows if len(row) == 3}


def first_line(path, address):
    return ok("lookup", "-f", "-e", path, f"0x{address:x}", "--output-style", "gnu").splitlines()[0]


def test_build_id_is_found_in_any_note(work, files):
    """As vDSOs have it; elfutils leave segments in debug files that point to what is not there."""
    write(work, "v.c", C)
    write(work, "v.lds", "PHDRS { text PT_LOAD FLAGS(5) FILEHDR PHDRS; note PT_NOTE FLAGS(4); dynamic PT_DYNAMIC FLAGS(4); }\n"
          "SECTIONS { . = SIZEOF_HEADERS; .hash : { *(.hash) } :text .dynsym : { *(.dynsym) } .dynstr : { *(.dynstr) }\n"
          ".note : { *(.note.*) } :text :note .dynamic : { *(.dynamic) } :text :dynamic .eh_frame : { *(.eh_frame) } :text\n"
          ".text : { *(.text*) } :text }\n")
    files.run(f"cd {work} && gcc -g -O1 -fPIC -shared -nostdlib -Wl,--build-id=0x00112233445566778899,-T,v.lds v.c -o v.so && "
              "cp v.so full.so && eu-strip -f v.debug v.so")
    for name in ("v.so", "v.debug"):
        contains(ok("inspect", os.path.join(work, name)), "00112233445566778899", "Usable       yes")
    fold = addresses(files, os.path.join(work, "full.so"))["fold"]
    equal(ok("lookup", "-f", "-s", "-e", os.path.join(work, "v.so"), f"0x{fold:x}", "--output-style", "gnu"), "fold\nv.c:1\n")
    ok("sort", "-o", os.path.join(work, "out"), os.path.join(work, "v.debug"))
    equal(os.path.exists(os.path.join(work, "out", "00", "112233445566778899", "debuginfo")), True)


def test_dynamic_symbols_are_read_without_section_headers(work, files):
    """The dynamic linker needs none, and has symbols."""
    write(work, "s.c", C + "int state[8] = {1};\n__thread int t = 1;\n")
    files.run(f"cd {work} && gcc -O1 -shared -fPIC -nostdlib -Wl,--build-id s.c -o full.so && llvm-objcopy-19 --strip-sections full.so bare.so")
    full, bare = os.path.join(work, "full.so"), os.path.join(work, "bare.so")
    names = addresses(files, full)
    for name in ("fold", "outer"):
        equal(first_line(bare, names[name]), name)
        equal(first_line(bare, names[name] + 3), name)
    equal(ok("lookup", "-e", bare, "--output-style", "llvm", input=f"DATA 0x{names['state'] + 4:x}\n").splitlines()[:2],
          ["state", f"{names['state']} 32"])
    contains(ok("inspect", bare), "elf (library)", "Usable       yes")
    equal([line for line in ok("dump-syms", bare).splitlines() if line.startswith("PUBLIC")],
          [f"PUBLIC {names[n]:x} 0 {n}" for n in sorted(("fold", "outer"), key=names.get)])


def test_sized_symbols_bound_unsized_ones(work, files):
    """They begin together, and end together: nothing behind is called so."""
    write(work, "names.s", """.globl _start
image: .type typed,@function
typed: .type _start,@function
_start: nop
nop
.size _start,2
nop
nop
begin: sized: nop
.size sized,1
nop
""")
    files.run(f"cd {work} && as names.s -o names.o && ld names.o -o names && strip -g names")
    path = os.path.join(work, "names")
    begin = addresses(files, path)["_start"]
    equal([first_line(path, begin + i) for i in range(6)], ["_start", "_start", "??", "??", "sized", "??"])


def test_untyped_symbols_of_efi_programs_are_functions(work, files):
    """objcopy makes them of ELF files: local symbols are functions there."""
    write(work, "efi.c", "static volatile int n;\n__attribute__((noinline)) static int local(int x) { return x * n; }\n"
          "__attribute__((visibility(\"hidden\"))) int hidden(int x) { return local(x) + 1; }\nint _start(int x) { return hidden(x) + local(3); }\n")
    files.run(f"cd {work} && gcc -g -O1 -fpic -ffreestanding -shared -nostdlib -Wl,-Bsymbolic efi.c -o efi.so && "
              "objcopy -j .text -j .data --target efi-app-x86_64 --subsystem=10 efi.so efi.efi")
    image = os.path.join(work, "efi.efi")
    sizes = {row.split()[7]: (int(row.split()[1], 16), int(row.split()[2])) for row in files.run(f"readelf -sW {work}/efi.so").splitlines()
             if " FUNC " in row}
    equal(sorted(sizes), ["_start", "hidden", "local"])
    for name, (begin, size) in sizes.items():
        for address in (begin, begin + size - 1):
            equal(first_line(image, address), name)
    contains(ok("dump-syms", image), *[f"PUBLIC {begin:x} 0 {name}" for name, (begin, _) in sizes.items()])


def test_symbols_of_all_mach_o_code_sections_are_used(work, files):
    """Code is in sections of many names; symbols of those answer as those of __text do, also below it."""
    write(work, "m.c", 'int cold(int x) { return x + 1; }\n__attribute__((section("__TEXT,__hot_text,regular,pure_instructions")))\n'
          "int hot(int x) { return x * cold(x); }\nint value = 3;\n")
    files.run(f"cd {work} && clang-14 --target=arm64-apple-macos11 -O1 -c m.c && "
              "ld64.lld-14 -platform_version macos 11 11 -arch arm64 -dylib -undefined dynamic_lookup -o m.dylib m.o")
    for name in ("m.dylib", "m.o"):
        path = os.path.join(work, name)
        names = {name.lstrip("_"): address for name, address in addresses(files, path, "llvm-nm-14").items()}
        for function in ("cold", "hot"):
            equal(first_line(path, names[function]), function, name)
        contains(ok("dump-syms", path), " 0 hot\n", " 0 cold\n")
        equal(ok("lookup", "-e", path, "--output-style", "llvm", input=f"DATA 0x{names['value']:x}\n").splitlines()[0], "value")


def test_powerpc_dot_symbols_are_named(work, files):
    """Compilers for the first ABI of 64 bits once named the code with a dot, and the descriptor without."""
    write(work, "p.s", '.section ".opd","aw"\n.globl f\n.type f,@function\nf: .quad .f, .TOC.@tocbase, 0\n.size f,24\n'
          '.section ".text"\n.globl .f\n.type .f,@function\n.f: .fill 10,4,0x60000000\n.size .f,40\n'
          ".type .g,@function\n.g: nop\n.size .g,4\n")
    files.run(f"cd {work} && clang-19 --target=powerpc64-linux-gnu -c p.s && llvm-readelf-19 -s p.o | grep -q '24 FUNC.* f$'")
    path = os.path.join(work, "p.o")
    equal([first_line(path, at) for at in (0, 20, 24, 39, 40)], ["f"] * 4 + ["g"])


def test_symbols_and_cfi_of_every_machine_are_read(work, files):
    write(work, "a.c", C.replace("int outer", "int _start"))
    rows = {"riscv64-linux-gnu": ("riscv64", "sp 0 + .ra: ra"), "riscv32-linux-gnu": ("riscv", "sp 0 + .ra: ra"),
            "s390x-linux-gnu": ("s390x", "r15 160 + .ra: r14"), "loongarch64-linux-gnu": ("loongarch64", "r3 0 + .ra: r1")}
    for target, (arch, rules) in rows.items():
        files.run(f"cd {work} && clang-19 --target={target} -g -O1 -fasynchronous-unwind-tables -c a.c && ld.lld-19 a.o -o a")
        path = os.path.join(work, "a")
        dump = ok("dump-syms", path)
        equal(dump.split()[:3], ["MODULE", "Linux", arch])
        contains(dump, " 0 fold\n", "\nSTACK CFI INIT ", f" .cfa: {rules}\n")
        contains(ok("inspect", path), f"Arch         {arch},")
