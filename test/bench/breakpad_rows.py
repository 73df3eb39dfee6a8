"""Breakpad symbol files of about 50 MB, beside counting their lines: what dump-syms writes of the benchmark program, without
and with INLINE records, and a made-up one that has many INLINE records, many lines and nothing else."""
import os, random, re, subprocess, tempfile

import pdb_rows

SIZE = 50e6
RUNS = 15
COPIES = 3  # of the dump without INLINE records, one behind the other
FILES, NAMES, UNIT = 4000, 9000, 64  # functions of a unit
WORDS = ("frame layer buffer document element style cache thread message channel surface image font script value object "
         "wrapper holder manager service request response stream table index entry iterator visitor builder").split()
TYPES = ["int", "unsigned long", "const char*", "bool", "std::string const&", "mozilla::Span<unsigned char const>", "double"]


def identifier(rng):
    return "".join(w.capitalize() for w in rng.choices(WORDS, k=rng.randint(1, 3)))


def names(rng, count):
    """Readable names of C++ functions, some of templates, about 80 bytes each."""
    out = []
    for _ in range(count):
        scope = "::".join(rng.choice(WORDS) if rng.random() < 0.5 else identifier(rng) for _ in range(rng.randint(1, 3)))
        template = f"<{rng.choice(TYPES)}, {rng.choice(WORDS)}::{identifier(rng)}>" if rng.random() < 0.3 else ""
        arguments = ", ".join(rng.choices(TYPES, k=rng.randint(0, 4)))
        out.append(f"{scope}{template}::{identifier(rng)}({arguments})")
    return out


class Function:
    """The code of one function, as its INLINE and line records. `origins`: what the unit inlines."""

    def __init__(self, rng, address, origins):
        self.rng, self.at, self.origins, self.inlines, self.lines = rng, address, origins, [], []

    def own_lines(self, count, file, line):
        for _ in range(count):
            size = self.rng.choice((2, 3, 3, 4, 4, 5, 5, 7, 8, 10, 16, 31))
            self.lines.append(f"{self.at:x} {size:x} {line} {file}\n")
            self.at += size
            line = max(1, line + self.rng.choice((-3, -1, 0, 1, 1, 1, 2, 2, 5)))
        return line

    def body(self, depth, file, budget):
        line = self.rng.randint(20, 4000)
        while budget > 0:
            count = self.rng.randint(1, 2)
            line = self.own_lines(count, file, line)
            budget -= count
            if depth < 8 and budget > 2 and self.rng.random() < 0.85:
                budget -= self.call(depth, file, line, self.rng.randint(1, max(2, budget * 3 // 4)))

    def call(self, depth, file, line, lines):
        """An inlined call; code of the caller is now and then in its middle. Returns the lines that it took."""
        record = len(self.inlines)
        self.inlines.append("")
        ranges, before, origin = [], len(self.lines), self.rng.choice(self.origins)
        for _ in range(1 + (self.rng.random() < 0.25)):
            if ranges:
                self.own_lines(1, file, line)
            start = self.at
            self.body(depth + 1, origin * 7 % FILES, lines)
            ranges.append(f" {start:x} {self.at - start:x}")
        self.inlines[record] = f"INLINE {depth} {line} {file} {origin}{''.join(ranges)}\n"
        return len(self.lines) - before


def write(path, size):
    rng = random.Random(1)
    inlined, outer = names(rng, NAMES), names(rng, 60000)
    with open(path, "w") as f:
        f.write("MODULE Linux x86_64 6216C672A8D33EC9CF4A1BAB8B29D00E0 libbench.so\nINFO CODE_ID 72C61662D3A8C93ECF4A1BAB8B29D00E\n")
        for i in range(FILES):
            f.write(f"FILE {i} /builds/worker/checkouts/{'/'.join(rng.choices(WORDS, k=4))}/{identifier(rng)}{i}.cpp\n")
        for i, name in enumerate(inlined):
            f.write(f"INLINE_ORIGIN {i} {name}\n")
        address, publics, n = 0x10000, [], 0
        while f.tell() < size * 0.99 if n % 64 == 0 else True:
            if n % UNIT == 0:
                file, origins = int(FILES * rng.random()), [int(NAMES * rng.random() ** 2) for _ in range(150)]
            function = Function(rng, address, origins)
            function.body(0, file, min(600, int(rng.expovariate(1 / 25)) + 1))
            f.write(f"FUNC {address:x} {function.at - address:x} 0 {outer[n % len(outer)]}\n")
            f.write("".join(function.inlines) + "".join(function.lines))
            address, n = (function.at + 15) & ~15, n + 1
            if n % 12 == 0:
                publics.append(f"PUBLIC {address:x} 0 _ZN{rng.randint(3, 20)}{identifier(rng)}Ev\n")
                address += 32
        f.write("".join(publics))


def dump(symloom, elf, path, options):
    with open(path + ".new", "w") as f:
        subprocess.run([symloom, "dump-syms", *options, elf], stdout=f, check=True)
    os.rename(path + ".new", path)


def repeat(source, path):
    """The records of `source` COPIES times, at other addresses and with other names; a STACK CFI INIT has the address of the
    code that it covers, what follows it not that of an earlier record."""
    lines = open(source).read().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(("FUNC", "PUBLIC")))
    stacks = next((i for i, line in enumerate(lines) if line.startswith("STACK")), len(lines))
    address = re.compile(r"^((?:FUNC|PUBLIC)(?: m)? |STACK CFI (?:INIT )?|)([0-9a-f]+)")

    def moved(line, copy):
        line = address.sub(lambda m: f"{m[1]}{int(m[2], 16) + (copy << 25):x}", line)
        return f"{line} [{copy}]" if line[0] in "FP" else line

    with open(path + ".new", "w") as f:
        f.writelines(line + "\n" for line in lines[:first])
        for part in (lines[first:stacks], lines[stacks:]):
            f.writelines(moved(line, copy) + "\n" for copy in range(COPIES) for line in part)
    os.rename(path + ".new", path)


def paths(data):
    return [os.path.join(data, name) for name in ("bench-dump.sym", "bench-inlines.sym", "bench.sym")]


def make(symloom, data):
    """Makes the files that are missing."""
    elf = os.path.join(data, "bench.elf")
    plain, inlines, dense = paths(data)
    if not os.path.exists(inlines):
        dump(symloom, elf, inlines, ["--inlines"])
    if not os.path.exists(plain):
        dump(symloom, elf, plain + ".one", [])
        repeat(plain + ".one", plain)
        os.remove(plain + ".one")
    if not os.path.exists(dense):
        write(dense + ".new", SIZE)
        os.rename(dense + ".new", dense)


def main(symloom, converter, data, row):
    """`converter`: bench_convert; `data`: the directory where bench.elf and the symbol files are kept."""
    make(symloom, data)
    for what, path in zip(("of dump-syms", "of dump-syms --inlines", "dense"), paths(data)):
        megabytes = os.path.getsize(path) / 1e6
        seconds, decoded = pdb_rows.conversions(converter, path, RUNS)
        lines = min(pdb_rows.measure(["wc", "-l", path])[0] for _ in range(RUNS))
        must = ">= 400 MB/s, or 0.5" if what == "of dump-syms" else ""
        row(f"Breakpad {what}, {megabytes:.0f} MB, against wc -l", megabytes / seconds,
            megabytes / lines, "MB/s", must)
        with tempfile.TemporaryDirectory(prefix="symloom-bench-") as work:
            cache = os.path.join(work, "cache")
            convert = [symloom, "lookup", "-e", path, "--symcache-out", cache, "--jobs", "1"]
            pdb_rows.memory_row(symloom, path, pdb_rows.measure(convert)[1], decoded, row)
