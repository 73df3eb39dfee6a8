"""Files that hold the rest of a file's debug information: how they are found, and what is said when they are not."""
import json, os, shutil, zipfile

from cost.objects import macho_symbol_names
from harness import contains, equal, ok, symloom

INLINE = """static inline __attribute__((always_inline)) int in(int x) { return x * seed + 3; }
int f(int x) { x = in(x); return x + 1; }
int main(int argc, char **argv) { return f(argc); }
"""


def compiled(work, files, options, name="app"):
    """A program of one file that inlines a call, and an address in that call."""
    with open(f"{work}/io.c", "w") as f:
        f.write("volatile int seed = 7;\n" + INLINE)
    files.run(f"cd {work} && clang-14 -g -O1 -no-pie {options} -c io.c -o io.o && clang-14 io.o -no-pie -Wl,--build-id -o {name}")
    address = int(files.run(f"nm {work}/{name} | awk '$3 == \"f\" {{print $1}}'"), 16)
    return f"0x{address + 3:x}"


def names(text):
    return text.split("\n")[0::2]


def test_split_units_are_found_or_reported_missing(work, files):
    """A .dwo file that is not there, or that of another build, is told of; packages are found beside the program and beside its
    debug file."""
    for version in ("4", "5"):
        at = compiled(work, files, f"-gdwarf-{version} -gsplit-dwarf")
        app, dwo = f"{work}/app", f"{work}/io.dwo"
        complete = symloom("lookup", "-e", app, at)
        equal((names(complete.out)[:2], complete.err), (["in", "f"], ""))
        os.rename(dwo, dwo + ".away")
        for arguments in ((at,), ("--all",)):
            lost = symloom("lookup", "-e", app, *arguments)
            equal(lost.status, 0)
            contains(lost.err, f"warning: {app}: inlined calls are missing: io.dwo not found", dwo, "app.dwp")
        contains(ok("inspect", app), "Hint         inlined calls are missing: io.dwo not found")
        contains(json.loads(ok("inspect", "--json", "--verify", app))[0]["hints"][0], "io.dwo not found")
        dumped = symloom("dump-syms", "--inlines", app)
        contains(dumped.err, "inlined calls are missing: io.dwo not found")
        equal("INLINE" in dumped.out, False)
        # beside the program, when that was moved
        moved = os.path.join(work, "moved" + version)
        os.mkdir(moved)
        shutil.copy(app, moved)
        shutil.copy(dwo + ".away", f"{moved}/io.dwo")
        equal(symloom("lookup", "-e", f"{moved}/app", at).out, complete.out)
        # of another build
        files.run(f"cd {work} && sed -i 's/+ 3/+ 4/' io.c && clang-14 -g -O1 -no-pie -gdwarf-{version} -gsplit-dwarf -c io.c -o other.o "
                  "-DX=1 && mv other.dwo io.dwo")
        stale = symloom("lookup", "-e", app, at)
        contains(stale.err, "inlined calls are missing: io.dwo is from a different build")
        equal(names(stale.out)[:1], ["f"])
        for junk in (b"", b"junk" * 99, open(f"{work}/other.o", "rb").read()):
            with open(dwo, "wb") as f:
                f.write(junk)
            damaged = symloom("lookup", "-e", app, at)
            contains(damaged.err, f"inlined calls are missing: cannot read {dwo}")
            equal(damaged.out, stale.out)
        os.unlink(dwo)
        os.rename(dwo + ".away", dwo)
        # packages
        files.run(f"cd {work} && llvm-dwp-14 -e app -o app.dwp && rm io.dwo && cp app whole && cp app.dwp whole.dwp && "
                  "objcopy --only-keep-debug app app.debug && strip app && objcopy --add-gnu-debuglink=app.debug app")
        for package in ("app.dwp", "app.debug.dwp"):
            if package != "app.dwp":
                os.rename(f"{work}/app.dwp", f"{work}/{package}")
            for command in (("lookup", "-e", app, at),):
                found = symloom(*command)
                equal((found.out, found.err), (complete.out, ""), package)
            found = symloom("dump-syms", "--inlines", app)
            contains(found.out, "INLINE ")
            equal(found.err, "")
        os.unlink(f"{work}/app.debug.dwp")
        os.unlink(f"{work}/app.debug")


def test_pdb_of_another_build_is_ignored(work, files):
    exe = shutil.copy(files.get("t.exe"), work)
    pdb = os.path.splitext(files.get("t.exe"))[0] + ".pdb"
    other = f"{work}/t.pdb"
    files.run(f"lld-link-14 /nodefaultlib /entry:entry /subsystem:console /debug /base:0x150000000 /opt:noref /out:{work}/o.exe "
              "t.c.obj u.cc.obj sink.c.obj")
    os.rename(f"{work}/o.pdb", other)
    ids = [json.loads(ok("inspect", "--json", path))[0]["debug_id"] for path in (other, exe)]
    said = f"beside it has a different id: {ids[0]} instead of {ids[1]}"
    refused = symloom("lookup", "-e", exe, "0x140001000")
    equal((refused.status, refused.out), (3, ""))
    contains(refused.err, "caused by: ", other, said)
    contains(ok("inspect", exe), said)
    dumped = symloom("dump-syms", exe)
    contains(dumped.err, said)
    shutil.copy(pdb, other)
    equal(symloom("dump-syms", exe).err, "")


def test_debug_link_of_a_pe_is_checked_by_checksum(work, files):
    """Which has no id: the checksum tells."""
    dll = shutil.copy(files.get("t.mingw"), f"{work}/t.dll")
    start = ok("lookup", "-e", dll, "--names", "outer").split()[0]
    wanted = ok("lookup", "-e", dll, start)
    records = [line for line in ok("dump-syms", dll).splitlines() if line.startswith(("FUNC ", "FILE "))]
    files.run(f"cd {work} && x86_64-w64-mingw32-objcopy --only-keep-debug t.dll t.dbg && x86_64-w64-mingw32-strip t.dll && "
              "x86_64-w64-mingw32-objcopy --add-gnu-debuglink=t.dbg t.dll")
    equal(ok("lookup", "-e", dll, start), wanted)
    found = symloom("dump-syms", dll)
    equal([line for line in found.out.splitlines() if line.startswith(("FUNC ", "FILE "))], records)
    equal(found.err, "")
    with open(f"{work}/t.dbg", "ab") as f:
        f.write(b"x")
    contains(symloom("lookup", "-e", dll, start).err, "t.dbg cannot be matched: its checksum differs from the debug link")
    os.unlink(f"{work}/t.dbg")
    contains(symloom("lookup", "-e", dll, start).err, "t.dbg was not found beside it, in .debug there and below /usr/lib/debug")


def test_dump_syms_finds_debug_files_as_lookup_does(work, files):
    """dump-syms finds what lookup finds, or says what it lacks."""
    program = shutil.copy(files.get("t"), f"{work}/p")
    records = [line for line in ok("dump-syms", program).splitlines() if line.startswith(("FUNC ", "FILE "))]
    files.run(f"cd {work} && objcopy --only-keep-debug p p.debug && strip p && objcopy --add-gnu-debuglink=p.debug p")
    found = symloom("dump-syms", program)
    equal([line for line in found.out.splitlines() if line.startswith(("FUNC ", "FILE "))], records)
    equal(found.err, "")
    os.unlink(f"{work}/p.debug")
    lacking = symloom("dump-syms", program)
    equal((lacking.status, "FUNC " in lacking.out), (0, False))
    contains(lacking.err, f"warning: {program}: no debug information: p.debug was not found beside it")
    files.run(f"cd {work} && objcopy -R .gnu_debuglink -R .note.gnu.build-id p q")
    contains(symloom("dump-syms", f"{work}/q").err, "no debug information; only names from the symbol table")
    # a link to the file itself leads nowhere: it is not another file, which could be rejected
    files.run(f"cd {work} && objcopy -R .gnu_debuglink p r && echo > own && objcopy --add-gnu-debuglink=own r r2 && mv r2 own")
    contains(symloom("dump-syms", f"{work}/own").err, f"warning: {work}/own: no debug information: own was not found beside it")


def test_files_without_id_are_usable_by_path(work, files):
    """Debug information is of use by the path of its file: nothing was stripped of it."""
    files.get("t")
    files.run(f"gcc -g -O2 -include sink.h -Wl,--build-id=none -c -o {work}/t.o t.c")
    dll = files.get("t.mingw")
    equal(json.loads(ok("inspect", "--json", dll))[0]["debug_id"].strip("0-"), "")
    for path in (dll, f"{work}/t.o"):
        contains(ok("inspect", "--check", path), "Usable: yes")
    contains(ok("inspect", dll), "Hint         no id: found by its path")


def test_archive_members_are_read_by_name(work, files):
    """Of object files by name, of ZIP archives by path; the only debug file needs no name."""
    for name in "ab":
        with open(f"{work}/{name}.c", "w") as f:
            f.write(f"int f{name}(int x)\n{{\n    return x * 3;\n}}\n")
    files.run(f"cd {work} && gcc -g -c a.c -o a.o && gcc -g -c b.c -o a_member_with_a_long_name.o && ar rcs l.a a.o a_member_with_a_long_name.o && "
              "ar rcT thin.a a.o a_member_with_a_long_name.o && ar rc one.a a.o && "
              "llvm-ar-14 --format=bsd rcs bsd.a a.o a_member_with_a_long_name.o && llvm-lib-14 /out:x.lib a.o a_member_with_a_long_name.o 2>/dev/null || "
              "llvm-ar-14 --format=gnu rcs x.lib a.o a_member_with_a_long_name.o")
    for archive in ("l.a", "thin.a", "bsd.a", "x.lib"):
        equal(ok("lookup", "-e", f"{work}/{archive}(a_member_with_a_long_name.o)", "0x4").split("\n")[0], "fb", archive)
        several = symloom("lookup", "-e", f"{work}/{archive}", "0x4")
        equal((several.status, several.out), (3, ""))
        contains(several.err, "an archive of 2 debug files; choose one with ", "(MEMBER): a.o, a_member_with_a_long_name.o")
        none = symloom("dump-syms", f"{work}/{archive}(c.o)")
        contains(none.err, "no member c.o in ", "it has debug files: a.o, a_member_with_a_long_name.o")
    equal(ok("lookup", "-e", f"{work}/one.a", "0x4").split("\n")[0], "fa")
    equal([o["path"] for o in json.loads(ok("inspect", "--json", f"{work}/l.a"))], [f"{work}/l.a(a.o)", f"{work}/l.a(a_member_with_a_long_name.o)"])
    t = files.get("t")
    start = f"0x{files.address('t', 'outer'):x}"
    wanted = ok("lookup", "-e", t, start)
    for name, others, method in (("base.apk", {"lib/arm64-v8a/libt.so": t, "classes.dex": None}, zipfile.ZIP_STORED),
                                 ("more.zip", {"README": None}, zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(f"{work}/{name}", "w", method) as z:
            z.writestr("META-INF/MANIFEST.MF", "text " * 100)
            z.write(t, "lib/x86_64/libt.so")
            for path, source in others.items():
                z.write(source, path) if source else z.writestr(path, "text " * 100)
    for path in (f"{work}/base.apk!lib/x86_64/libt.so", f"{work}/base.apk!/lib/x86_64/libt.so", f"{work}/more.zip"):
        equal(ok("lookup", "-e", path, start), wanted, path)
        contains(ok("dump-syms", path), " libt.so\n", " /src/t.c\n")
        contains(ok("inspect", path), "Format       elf ")
        ok("push-symbols", "executable", "-e", path, "--dry-run", "--output", f"{work}/pushed")
    several = symloom("lookup", "-e", f"{work}/base.apk", start)
    equal(several.status, 3)
    contains(several.err, "an archive of 2 debug files; choose one with ", "base.apk!MEMBER: lib/x86_64/libt.so, lib/arm64-v8a/libt.so")


def test_symcache_is_remade_when_the_supplementary_file_appears(work, files):
    """Is made anew when that is there."""
    with open(f"{work}/t.c", "w") as f:
        f.write("int seed;\n" + INLINE)
    files.run(f"cd {work} && gcc -g -O1 t.c -o t && cp t u && dwz -m common t u && mv common away")
    start = files.run(f"nm {work}/t | awk '$3 == \"f\" {{print $1}}'").strip()
    args = ["lookup", "-i", "-f", "--cache", "--cache-dir", f"{work}/cache", "-e", f"{work}/t", f"0x{start}"]
    without = symloom(*args)
    contains(without.err, "names and types are missing: supplementary file ")
    os.rename(f"{work}/away", f"{work}/common")
    whole = symloom(*args)
    equal((whole.out, whole.err), (ok("lookup", "-i", "-f", "-e", f"{work}/t", f"0x{start}"), ""))
    assert whole.out != without.out, whole.out


def test_mach_o_debug_maps_lead_to_object_files(work, files):
    """A Mach-O file without a bundle: its debug information is in the object files it was linked of, also in libraries."""
    with open(f"{work}/io.c", "w") as f:
        f.write("volatile int seed;\nvoid unused(int x)\n{\n    seed = x;\n}\n" + INLINE)
    with open(f"{work}/lib.c", "w") as f:
        f.write("extern volatile int seed;\nstatic __attribute__((noinline)) int twice(int x)\n{\n    return x * 2 + seed;\n}\nint member(int x)\n{\n    return twice(x) + 1;\n}\n")
    for arch in ("x86_64", "arm64"):
        cc = f"clang-14 --target={arch}-apple-macos11 -g -gdwarf-4 -O1 -c"
        files.run(f"cd {work} && rm -f *.a *.dylib && {cc} io.c -o io.o && {cc} lib.c -o lib.o && {cc} lib.c -o other.o && llvm-ar-14 --format=darwin rcU l.a lib.o && rm lib.o && "
                  f"ld64.lld-14 -platform_version macos 11 11 -arch {arch} -dylib -undefined dynamic_lookup -dead_strip -exported_symbol _f -exported_symbol _member "
                  f"-o l.dylib {work}/io.o -force_load {work}/l.a")
        plain, bundle = f"{work}/l.dylib", f"{work}/l.dylib.dSYM"
        assert "OSO" in files.run(f"llvm-nm-14 -ap {plain}"), files.run(f"llvm-nm-14 -ap {plain}")
        addresses = [f"0x{int(words[0], 16) + at:x}" for words in map(str.split, files.run(f"llvm-nm-14 {plain}").splitlines())
                     if words[-1] in ("_f", "_member", "_twice") for at in (0, 4, 8)]
        equal(len(addresses), 9)
        found, dumped = symloom("lookup", "-e", plain, *addresses), symloom("dump-syms", "--inlines", plain)
        bytes_of = [f"0x{int(addresses[0], 16) + at:x}" for at in range(0, 80)]
        whole = ok("lookup", "-e", plain, *bytes_of)
        files.run(f"cd {work} && dsymutil-14 l.dylib")
        wanted = ok("lookup", "-e", plain, *addresses)
        contains(wanted, "/io.c:", "/lib.c:", "in\n")
        equal((found.out, found.err), (wanted, ""))
        equal(whole, ok("lookup", "-e", plain, *bytes_of))
        records = ok("dump-syms", "--inlines", plain)
        equal((dumped.out, dumped.err), (records, ""))
        shutil.rmtree(bundle)
        os.rename(f"{work}/io.o", f"{work}/io.o.away")
        lost = symloom("lookup", "-e", plain, *addresses)
        contains(lost.err, f"lines are missing: {work}/io.o was not found", "there is no ", "l.dylib.dSYM")
        contains(lost.out, "f\n??:0:0\n", "/lib.c:")
        contains(symloom("dump-syms", plain).err, "lines are missing: ")
        shutil.copy(f"{work}/io.o.away", f"{work}/io.o")
        os.utime(f"{work}/io.o", (1, 1))
        changed = symloom("lookup", "-e", plain, *addresses)
        equal(changed.out, lost.out)
        contains(changed.err, "io.o was changed since the program was linked")
        if arch == "x86_64":
            with open(f"{work}/io.o", "wb") as f:
                f.write(macho_symbol_names(1 << 20))
            shutil.copystat(f"{work}/io.o.away", f"{work}/io.o")
            damaged = symloom("lookup", "-e", plain, *addresses)
            equal(damaged.out, lost.out)
            contains(damaged.err, "reading the file needs more work than allowed for a file of ")


def with_link(module, url, front=b""):
    """The module with a section that names its companion, and others in front of the code."""
    section = b"\x13external_debug_info" + bytes([len(url)]) + url.encode()
    return module[:8] + front + module[8:] + bytes([0, len(section)]) + section


def test_wasm_companion_is_verified_by_id_or_code(work, files):
    """What external_debug_info names is beside the module; ids, or the code, say that it is the module's."""
    with open(f"{work}/io.c", "w") as f:
        f.write("volatile int seed;\n" + INLINE)
    files.run(f"cd {work} && clang-14 --target=wasm32 -g -O1 -c io.c -o io.o && mkdir -p out/debug && wasm-ld-14 --no-entry --export-all -o out/app.debug.wasm io.o && "
              "wasm-ld-14 --no-entry --export-all --strip-debug -o stripped.wasm io.o && sed -i 's/+ 3/+ 4/' io.c && "
              "clang-14 --target=wasm32 -g -O1 -c io.c -o io.o && wasm-ld-14 --no-entry --export-all -o other.wasm io.o")
    debug, module, other = f"{work}/out/app.debug.wasm", f"{work}/out/app.wasm", f"{work}/other.wasm"
    symbols = json.loads(ok("inspect", "--json", "--symbols", debug))[0]["symbols"]
    begin = next(int(s["address"], 16) for s in symbols if s["name"] == "f")
    wanted = ok("lookup", "-e", debug, *[hex(begin + at) for at in range(30)])
    contains(wanted, "in\n", "io.c:")
    stripped = open(f"{work}/stripped.wasm", "rb").read()
    front = b"\0\x05\x04abcd"  # a section in front: the code is elsewhere in the file
    for shift in (b"", front):
        addresses = [hex(begin + len(shift) + at) for at in range(30)]
        for url, place in (("app.debug.wasm", "app.debug.wasm"), ("debug/app.debug.wasm", "debug/app.debug.wasm"),
                           ("https://example.com/a/app.debug.wasm?v=1", "app.debug.wasm"), ("debug/app.debug.wasm", "app.debug.wasm")):
            with open(module, "wb") as f:
                f.write(with_link(stripped, url, shift))
            os.rename(debug, f"{work}/away")
            lost = symloom("lookup", "-e", module, *addresses)
            contains(lost.err, "no debug information: app.debug.wasm was not found beside it (it names ", url)
            assert "io.c" not in lost.out
            contains(ok("inspect", module), "app.debug.wasm was not found beside it")
            contains(symloom("dump-syms", module).err, "app.debug.wasm was not found beside it")
            shutil.copy(f"{work}/away", f"{work}/out/{place}")
            found = symloom("lookup", "-e", module, *addresses)
            equal((found.out, found.err), (wanted, ""), url)
            records = ok("dump-syms", "--inlines", module)
            contains(records, f"FUNC {begin + len(shift):x} ", "INLINE_ORIGIN 0 in\n")
            shutil.copy(other, f"{work}/out/{place}")
            contains(symloom("lookup", "-e", module, *addresses).err, "does not match: neither file has an id, and their code differs")
            os.unlink(f"{work}/out/{place}")
            os.rename(f"{work}/away", debug)
    # ids
    os.unlink(debug)
    ok("wasm-split", "-q", other, "-o", module, "-d", debug, "--strip", "--external-dwarf-url", "app.debug.wasm")
    contains(ok("lookup", "-e", module, hex(begin)), "io.c:")
    ok("wasm-split", "-q", other, "-o", f"{work}/another.wasm", "-d", debug, "--strip")
    contains(symloom("lookup", "-e", module, hex(begin)).err, "app.debug.wasm beside it has a different id: ")


def test_stale_split_units_do_not_hide_the_right_ones(work, files):
    """A .dwo file of another build hides none that is right."""
    for version in ("4", "5"):
        at = compiled(work, files, f"-gdwarf-{version} -gsplit-dwarf")
        wanted = ok("lookup", "-e", f"{work}/app", at)
        moved = f"{work}/moved{version}"
        os.mkdir(moved)
        shutil.copy(f"{work}/app", moved)
        os.rename(f"{work}/io.dwo", f"{moved}/io.dwo")
        files.run(f"cd {work} && sed -i 's/+ 3/+ 4/' io.c && clang-14 -g -O1 -no-pie -gdwarf-{version} -gsplit-dwarf -c io.c -o other.o && mv other.dwo io.dwo")
        found = symloom("lookup", "-e", f"{moved}/app", at)
        equal((found.out, found.err), (wanted, ""))
        contains(ok("dump-syms", "--inlines", f"{moved}/app"), "INLINE ")
        assert "io.dwo" not in ok("inspect", f"{moved}/app")
        push = lambda: ok("push-symbols", "executable", "-e", f"{moved}/app", "--dry-run", "--output", f"{work}/pushed")
        with_all = push()
        os.unlink(f"{work}/io.dwo")
        equal(push(), with_all)
        files.run(f"cd {work} && clang-14 -g -O1 -no-pie -gdwarf-{version} -gsplit-dwarf -c io.c -o other.o && mv other.dwo io.dwo")
        os.unlink(f"{moved}/io.dwo")
        stale = symloom("lookup", "-e", f"{moved}/app", at)
        contains(stale.err, "inlined calls are missing: io.dwo is from a different build")
        contains(ok("inspect", f"{moved}/app"), "inlined calls are missing: io.dwo is from a different build")


def test_members_of_a_debug_map_are_found_in_any_order(work, files):
    """Members are found by name in any order, the first of several."""
    count, arch = 12, "arm64"
    for i in range(count):
        with open(f"{work}/m{i}.c", "w") as f:
            f.write("\n" * i + f"int m{i}(int x) {{ return x * {i + 2}; }}\n")
    with open(f"{work}/main.c", "w") as f:
        f.write("".join(f"int m{i}(int);\n" for i in range(count)) + "int all(int x) { return " + " + ".join(f"m{i}(x)" for i in range(count)) + "; }\n")
    cc = f"clang-14 --target={arch}-apple-macos11 -g -gdwarf-4 -O1 -c"
    order = " ".join(f"m{i}.o" for i in reversed(range(count)))
    files.run(f"cd {work} && for i in $(seq 0 {count - 1}); do {cc} m$i.c -o m$i.o || exit; done; {cc} main.c -o main.o && llvm-ar-14 --format=darwin rcU l.a {order} && "
              f"rm m*[0-9].o && ld64.lld-14 -platform_version macos 11 11 -arch {arch} -dylib -undefined dynamic_lookup -o l.dylib {work}/main.o -force_load {work}/l.a")
    symbols = {words[-1]: words[0] for words in map(str.split, files.run(f"llvm-nm-14 {work}/l.dylib").splitlines())}
    found = symloom("lookup", "-e", f"{work}/l.dylib", *[f"0x{symbols[f'_m{i}']}" for i in range(count)])
    equal([line.split(":")[-2] for line in found.out.split("\n") if ".c:" in line], [str(i + 1) for i in range(count)])
    equal(found.err, "")
