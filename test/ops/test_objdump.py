"""Machine code as /asm/v1 shows it, beside llvm-objdump: thousands of functions of what Debian's packages install."""
import os, re, sys

import ops

sys.path[:0] = [os.path.join(ops.ROOT, "test", "http"), os.path.join(ops.ROOT, "test", "http", "mozilla")]
import harness, test_profiler as profiler
from harness import equal

FUNCTIONS = 10000  # of each machine
BINARIES = {
    "x86_64": ["/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1"],
    "aarch64": ["/usr/aarch64-linux-gnu/lib/" + name for name in ("libc.so.6", "libm.so.6", "libgomp.so.1", "libstdc++.so.6", "libasan.so.8", "libtsan.so.2")],
    "i686": ["/usr/lib32/libc.so.6"],
    "arm": ["/usr/arm-linux-gnueabihf/lib/libasan.so.8", None],
}


def libraries(work):
    """Of ARM, whose C library as it is installed has no marks of its code: the objects that it and C++'s are made of, in a program."""
    source, path = os.path.join(work, "empty.c"), os.path.join(work, "libraries")
    with open(source, "w") as f:
        f.write("int main(void) { return 0; }\n")
    compiler = "arm-linux-gnueabihf-g++"
    archives = [ops.run(compiler, f"-print-file-name={name}").strip() for name in ("libstdc++.a", "libm.a", "libc.a", "libgcc_eh.a")]
    ops.run(compiler, "-static", "-Wl,-Ttext-segment=0,--build-id,-z,muldefs,--unresolved-symbols=ignore-all,--whole-archive", "-o", path, source, *archives,
            "-Wl,--no-whole-archive")
    return path


def functions_of(path, thumb):
    """(start, size) of what the symbols call functions, each once; of Thumb none that are chosen when a program starts: llvm-objdump
    reads these from the odd address that their symbols have."""
    functions, kinds = {}, "FUNC" if thumb else "FUNC|IFUNC"
    for line in ops.run("llvm-readelf-19", "--symbols", "--dyn-syms", path).splitlines():
        found = re.match(rf"\s*\d+: ([0-9a-f]+)\s+(\d+) (?:{kinds})\s+\S+\s+\S+\s+\d", line)
        if found and int(found[2]):
            start = int(found[1], 16) & ~thumb
            functions[start] = max(int(found[2]), functions.get(start, 0))
    return sorted(functions.items())


def compared(work, arch, path, most):
    """How many functions, how many instructions, and the differences."""
    functions = functions_of(path, arch == "arm")
    functions = functions[::max(1, len(functions) // most)][:most]
    lines = profiler.objdump(path, functions)
    chosen = list(profiler.functions_of(functions, lines, most))
    build_id = re.search(r"Build ID: ([0-9a-f]+)", ops.run("readelf", "-n", path)).group(1)
    upstream, service = profiler.serving(work, path, build_id)
    same = profiler.x86 if arch in ("x86_64", "i686") else profiler.same_text
    with upstream, service as s:
        count, others = profiler.compare(s, build_id, chosen, lines, same, profiler.base_of(path))
    return len(chosen), count, others


def test_disassembly_equals_objdump(work, shared):
    harness.SYMLOOM = ops.SYMLOOM
    failures = []
    for arch, paths in BINARIES.items():
        left, total, instructions, wrong = FUNCTIONS, 0, 0, []
        for path in (p or libraries(work) for p in paths):
            done, count, others = compared(work, arch, path, left)
            left, total, instructions = left - done, total + done, instructions + count
            wrong += [(os.path.basename(path), *other) for other in others]
        print(f"{arch}: {total} functions, {instructions} instructions, {len(wrong)} of them otherwise: {wrong[:12]}")
        failures += wrong[:20]
    equal(failures, [])
