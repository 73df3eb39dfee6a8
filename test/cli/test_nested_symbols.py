"""Symbols within symbols: the innermost answers, in every command alike."""
import os
from harness import equal, ok

# _start [0, 9) holds inner [3, 5) and label, which answers from 7 to the end of _start; next [9, 10)
with open(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "differential", "nest.s")) as f:
    ASSEMBLY = f.read()
BARE = ["_start"] * 3 + ["inner"] * 2 + ["_start"] * 2 + ["label"] * 2 + ["next", "??"]
WITH_LINES = [(n, l) for n, l in zip(BARE, [3, 4, 5, 7, 8, 10, 11, 12, 13, 16])]


def built(work, files, name, compile):
    with open(os.path.join(work, "nest.s"), "w") as f:
        f.write(ASSEMBLY)
    files.run(f"cd {work} && {compile} -c -o {name}.o nest.s && ld -o {name} {name}.o")
    path = os.path.join(work, name)
    start = int(files.run(f"nm {path} | awk '$3 == \"_start\" {{print $1}}'"), 16)
    return path, start


def names_and_lines(path, start, count):
    addresses = [f"0x{start + i:x}" for i in range(count)]
    lines = ok("lookup", "-f", "-s", "-e", path, *addresses, "--output-style", "gnu").splitlines()
    return list(zip(lines[::2], [place.rpartition(":")[2] for place in lines[1::2]]))


def of_symbol_file(work, path, start, count):
    sym, load = os.path.join(work, "nest.sym"), 0
    with open(sym, "w") as f:
        f.write(ok("dump-syms", path))
    for line in ok("inspect", path).splitlines():
        if "load address " in line:
            load = int(line.rpartition(" ")[2], 16)
    return names_and_lines(sym, start - load, count)


def test_nested_symbols_are_resolved_without_lines(work, files):
    path, start = built(work, files, "bare", "gcc")
    equal([name for name, _ in names_and_lines(path, start, len(BARE))], BARE)
    cache = os.path.join(work, "bare.symcache")
    ok("lookup", "-e", path, "--symcache-out", cache)
    equal([name for name, _ in names_and_lines(cache, start, len(BARE))], BARE)
    # symbol files do not say where a symbol ends: the last one has no end
    equal([name for name, _ in of_symbol_file(work, path, start, len(BARE) - 1)], BARE[:-1])
    dump = [line.split(" ", 1)[0] + " " + line.rsplit(" ", 1)[1] for line in ok("dump-syms", path).splitlines() if line[:6] == "PUBLIC"]
    equal(dump, ["PUBLIC " + name for name in ("_start", "inner", "_start", "label", "next")])


def test_nested_symbols_are_resolved_with_lines(work, files):
    """An assembler that describes no functions: the symbols do."""
    path, start = built(work, files, "lines", "clang-19 -g")
    for answer in (names_and_lines(path, start, 10), of_symbol_file(work, path, start, 7)):
        equal(answer, [(name, str(line)) for name, line in WITH_LINES[:len(answer)]])


def test_labels_inside_functions_are_ignored(work, files):
    path, start = built(work, files, "functions", "gcc -g")
    expected = [(name if name != "label" else "_start", str(line)) for name, line in WITH_LINES]
    equal(names_and_lines(path, start, 10), expected)
    equal(of_symbol_file(work, path, start, 10), expected)


def test_overlapping_symbols_are_resolved(work, files):
    """Symbols that overlap, of one address and of several, and labels at beginnings and ends."""
    with open(os.path.join(work, "over.s"), "w") as f:
        f.write(".globl _start\n.type _start,@function\n_start: again: .fill 4,1,0x90\n.type short,@function\n.set short,_start\n"
                ".size short,2\n.type over,@function\nover: .fill 4,1,0x90\n.size _start,6\n.size over,8\n.fill 4,1,0x90\nend: .fill 4,1,0x90\n")
    files.run(f"cd {work} && gcc -c over.s && ld -o over over.o")
    path = os.path.join(work, "over")
    start = int(files.run(f"nm {path} | awk '$3 == \"_start\" {{print $1}}'"), 16)
    order = files.run(f"nm -p {path} | awk '$3 == \"_start\" || $3 == \"short\" {{print $3}}'").split()
    got = [name for name, _ in names_and_lines(path, start, 17)]
    equal(got, [order[0]] * 2 + ["_start"] * 2 + ["over"] * 8 + ["end"] * 4 + ["??"])


def test_pushed_symbols_resolve_nested_symbols(work, files):
    path, start = built(work, files, "pushed", "gcc")
    out = os.path.join(work, "out")
    ok("push-symbols", "executable", "--dry-run", "--output", out, path)
    symbfile = [os.path.join(out, name) for name in os.listdir(out) if name.endswith(".ranges.symbfile")]
    equal([name for name, _ in names_and_lines(symbfile[0], start, len(BARE))], BARE)
