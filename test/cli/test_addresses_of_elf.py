"""Addresses of ELF files: where images begin, and programs whose debug file begins elsewhere."""
import json, os
from harness import contains, equal, ok, symloom

FUNCTIONS = "".join(f"__attribute__((noinline)) int fn_{i}(int x) {{ return x * {i} + 1; }}\n" for i in range(40))
MAIN = "int fn_0(int); void _start(void) { for (volatile int i = 0;; i++) i += fn_0(i); }\n"
BUILD_ID = "00112233445566778899aabbccddeeff00112233"


def symbols_of(files, path):
    names = {}
    for line in files.run(f"nm {path}").splitlines():
        address, _, name = line.split()
        names[name] = int(address, 16)
    return names


def edited_program(work, files):
    """A program of which a tool put a segment in front of all others, and its debug file, which stayed as it was."""
    with open(os.path.join(work, "many.c"), "w") as f:
        f.write(FUNCTIONS + MAIN)
    with open(os.path.join(work, "front.s"), "w") as f:
        f.write('.section .front,"aw",@progbits\n.quad 1\n')
    link = f"-static -nostdlib -no-pie -Wl,--build-id=0x{BUILD_ID}"
    files.run(f"cd {work} && gcc -g -O1 -fno-toplevel-reorder -c many.c && gcc -c front.s && gcc {link} -o full many.o && "
              f"gcc {link} -Wl,--section-start=.front=0x3fe000 -o app many.o front.o && "
              "objcopy --only-keep-debug full app.debug && objcopy --strip-all --add-gnu-debuglink=app.debug app")
    segments = [line.split()[2] for name in ("app", "app.debug")
                for line in files.run(f"cd {work} && readelf -lW {name} | grep -m1 LOAD").splitlines()]
    equal(segments, ["0x00000000003fd000", "0x0000000000400000"], "the tool chain does not make such a program")
    return os.path.join(work, "app"), os.path.join(work, "app.debug"), symbols_of(files, os.path.join(work, "full"))


def test_debug_file_with_another_base_gives_the_same_names(work, files):
    app, debug, names = edited_program(work, files)
    for i in (0, 1, 17, 39):
        name, at = f"fn_{i}", names[f"fn_{i}"]
        for many in (1, 200):  # from parts of the file, and from all of it
            answer = ok("lookup", "-f", "-e", app, *[f"0x{at + 1:x}"] * many, "--output-style", "gnu")
            equal(answer.splitlines()[::2], [name] * many)
        equal(ok("lookup", "-f", "-e", app, name, "--output-style", "gnu").splitlines()[0], name)
    base = 0x3fd000
    for arguments in (["-g", debug, app], ["-g", debug, app, "--inlines"], [app, debug], [debug, app]):
        dump = ok("dump-syms", *arguments)
        for name in ("fn_0", "fn_39"):
            contains(dump, f"\nFUNC {names[name] - base:x} ", f"\nSTACK CFI INIT {names[name] - base:x} ")
            equal([l.split()[1] for l in dump.splitlines() if l.startswith("FUNC ") and l.endswith(" " + name)],
                  [f"{names[name] - base:x}"], arguments)
    contains(ok("dump-syms", debug), f"\nFUNC {names['fn_0'] - 0x400000:x} ")


def test_fixed_address_program_is_symbolicated_by_the_service(work, files):
    """Where such a program was loaded is told by itself; the debug file alone says where its own addresses are."""
    app, debug, names = edited_program(work, files)
    at = names["fn_17"]
    answer = json.loads(ok("symbolicate", "--module", f"{app}@0x3fd000", f"0x{at:x}", "--symbols", work, "-f", "json"))
    frame = answer["stacktraces"][0]["frames"][0]
    equal((frame["function"], frame["sym_addr"]), ("fn_17", f"0x{at:x}"))
    os.mkdir(os.path.join(work, "only"))
    os.rename(debug, os.path.join(work, "only", "app.debug"))
    uuid = "33221100-5544-7766-8899-aabbccddeeff"
    for image, instruction, function in (("0x3fd000", at, "fn_17"), ("0x400000", at, "fn_17"),
                                         ("0x7f0000000000", at - 0x400000 + 0x7f0000000000, "fn_17")):
        body = {"modules": [{"type": "elf", "code_id": BUILD_ID, "debug_id": uuid, "image_addr": image, "image_size": 0x10000}],
                "stacktraces": [{"frames": [{"instruction_addr": f"0x{instruction:x}"}]}]}
        answer = json.loads(ok("symbolicate", "-", "--symbols", os.path.join(work, "only"), "-f", "json", input=json.dumps(body)))
        equal(answer["stacktraces"][0]["frames"][0].get("function"), function, image)
        equal(answer["stacktraces"][0]["frames"][0].get("sym_addr"), f"0x{instruction:x}", image)


def test_elf_segments_may_be_in_any_order(work, files):
    """Firmware has code below its first segment: addresses are those of the file all the same."""
    with open(os.path.join(work, "fw.c"), "w") as f:
        f.write("int table[4] __attribute__((section(\".vectors\"), used)) = {1};\n"
                "__attribute__((noinline)) int work(int x) { return x * 3; }\n"
                "int boot(int x) { return work(x) + 1; }\nint state = 3;\n")
    with open(os.path.join(work, "fw.ld"), "w") as f:
        f.write("PHDRS { flash PT_LOAD; code PT_LOAD; ram PT_LOAD; }\nENTRY(boot)\nSECTIONS {\n"
                ".vectors 0x60000000 : { *(.vectors) } :flash\n.text 0x100 : { *(.text*) } :code\n"
                ".data 0x20000000 : { *(.data*) } :ram\n}\n")
    files.run(f"cd {work} && clang-19 --target=thumbv7em-none-eabi -O1 -g -ffreestanding -c fw.c && ld.lld-19 -T fw.ld fw.o -o fw.elf && "
              "llvm-objcopy-19 --strip-debug fw.elf fw.bare")
    for name in ("fw.elf", "fw.bare"):
        fw = os.path.join(work, name)
        names = symbols_of(files, fw)
        equal(names["work"] < 0x1000, True)
        for function in ("work", "boot"):
            equal(ok("lookup", "-f", "-e", fw, f"0x{names[function] & ~1:x}", "--output-style", "gnu").splitlines()[0], function)
        equal(ok("lookup", "-e", fw, "--output-style", "llvm", input=f"DATA 0x{names['state']:x}\n").splitlines()[0], "state")
        dump = ok("dump-syms", fw)
        kind = "FUNC" if name == "fw.elf" else "PUBLIC"
        contains(dump, *[f"\n{kind} {(names[n] & ~1) - 0x100:x} " for n in ("work", "boot")])
    contains(ok("inspect", os.path.join(work, "fw.elf")), "load address 0x100")


def test_per_cpu_segment_does_not_move_the_kernel_base(work, files):
    """vmlinux has them at 0, in a segment behind the others; its image begins where its code does."""
    with open(os.path.join(work, "kernel.c"), "w") as f:
        f.write("__attribute__((section(\".percpu\"))) int counter = 1;\nint data = 2;\n"
                "int _start(int x) { return x * data; }\n")
    with open(os.path.join(work, "kernel.ld"), "w") as f:
        f.write("PHDRS { text PT_LOAD FLAGS(5); percpu PT_LOAD FLAGS(6); data PT_LOAD FLAGS(6); }\nSECTIONS {\n"
                ".text 0xffffffff81000000 : { *(.text*) } :text\n.percpu 0 : { *(.percpu) } :percpu\n"
                ".data 0xffffffff82000000 : { *(.data*) } :data\n}\n")
    files.run(f"cd {work} && clang-19 --target=x86_64-linux-gnu -O1 -g -mcmodel=kernel -c kernel.c && "
              "ld.lld-19 -T kernel.ld kernel.o -o vmlinux")
    vmlinux = os.path.join(work, "vmlinux")
    contains(ok("inspect", vmlinux), "load address 0xffffffff81000000")
    contains(ok("dump-syms", vmlinux), "\nFUNC 0 ")
    equal(ok("lookup", "-f", "-e", vmlinux, "0xffffffff81000000", "--output-style", "gnu").splitlines()[0], "_start")
