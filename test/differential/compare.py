#!/usr/bin/env python3
"""Compares symloom with llvm-symbolizer, or eu-addr2line, over random text addresses of an ELF, Mach-O, PE, PDB or WASM file;
with a plain reader of the text where it is a Breakpad file.

usage: compare.py --symloom PATH [--peer llvm|elfutils] [--count N | --every [--of REGEX]] [--seed N] [--show N] [--least PERCENT]
           FILE ...

--every asks every byte of the code, and some before and behind each of its sections: for small programs. --of asks those of the
functions whose symbols begin with a match, and some around them: for programs with a large runtime.

Both tools are asked for the inline chain of the same addresses (linkage names, no demangling). Every element's function,
file and line must be equal. A difference is put into the first class that explains it; the classes say who is right:

  alias        both names are symbols at the same address; either may be shown
  form         one name is the other with the arguments that a PDB's types tell, or with the decoration of C names, or as gccgo
               codes it
  label        llvm-symbolizer shows a label that hand-written code left in a function or at its entry (`.l_start`)
  piece        a compiler's piece of a function: llvm-symbolizer shows its symbol (`f.part.0`, `f.isra.0`, `f.cold`), the tables `f`
  padding      between functions: neither the DWARF nor a symbol covers it. llvm-symbolizer lets what is before reach there,
               symloom shows a line where one is known, without a name
  nameless     the same, over more than functions are aligned to, where llvm-symbolizer alone knows a line
  behind       in no section with code: llvm-symbolizer goes on with the last symbol
  outer        behind a symbol that is within another one: llvm-symbolizer knows nothing, symloom shows the outer one
  no-line      same function and file, one side knows no line (0)
  symbol-only  code without debug information: llvm-symbolizer names the nearest symbol below even outside of its size
  file-symbol  the same, and llvm-symbolizer shows the object file's STT_FILE symbol as source file
  path         same file, spelled differently (`..`, doubled or trailing separators; `<no_file>` is in no directory)
  chain        the inline chains have different lengths
  name, file, line: the first element that differs, differs there

With eu-addr2line only the innermost position (file and line) is compared, where both know one: it does not follow imported
units (LTO), and names functions by their DWARF name where the linkage name is in the symbol table alone.

Of WASM llvm-symbolizer reads no names: where it knows nothing, those of the name section are its answer.

Where FILE.reference exists, llvm-symbolizer is asked about that file: the same code with debug information in a form that
it reads (it does not follow supplementary files).

A PDB lies beside its program (x.pdb, x.exe), a dSYM's DWARF beside its image (x.dwarf, x.dylib): addresses are those of the
code there. llvm-symbolizer is asked about the program of a PDB, which leads it to the PDB, and about x.pdb.reference, the
same objects linked with their DWARF. It takes a line of an inlined call for that of the record before, and DWARF has lines
of 0 where a PDB has no record: so every element of our answer must have the line of either, and a class of its own, `either`,
counts where only both together explain it.

Exit status 1 when fewer than PERCENT (default 99.5) of the addresses agree; aliases and path spellings count as agreeing.
"""
import argparse, bisect, collections, json, os, posixpath, random, re, subprocess, sys

from binary import code_ranges, elf_sections, image_base, machine, unpack, wasm_functions
from text import Text


def symbols(path):
    """name -> places of the symbols of functions, and of descriptors of functions; versions are no part of the name."""
    out = collections.defaultdict(set)
    for table in ([], ["-D"]):
        text = subprocess.run(["llvm-nm-14", *table, path], capture_output=True, text=True).stdout
        for line in text.splitlines():
            parts = line.split()
            if len(parts) == 3 and parts[1] in "TtWwiuVvDd":
                out[parts[2].split("@")[0]].add(int(parts[0], 16))
    add_coff(path, out)
    return out


def add_coff(path, out):
    """Of a PE file also those that llvm-nm leaves out (the first one of each object); names of 32-bit C without the underscore too."""
    with open(path, "rb") as f:
        kind = machine(f.read(4096))
    if not kind:
        return
    text = subprocess.run(["objdump", "-t", path], capture_output=True, text=True).stdout
    for section, value, name in re.findall(r"\(sec +(\d+)\).*\(ty +20\).* (0x[0-9a-f]+) (\S+)$", text, re.M):
        out[name].add((int(section), int(value, 16)))
    for name in [name for name in out if kind == 0x14C and name.startswith("_")]:
        out[name[1:]] |= out[name]


def covered(path):
    """Sorted ranges of the functions that the DWARF of a file describes."""
    tool = "llvm-dwarfdump-19" if path.endswith(".o") else "llvm-dwarfdump-14"  # version 14 has not all relocations, 19 no .zdebug
    text = subprocess.run([tool, "--debug-info", path], capture_output=True, text=True).stdout
    ranges = []
    for entry in re.split(r"\n(?=0x[0-9a-f]+: )", text):
        if "DW_TAG_subprogram" in entry:
            ranges += re.findall(r"DW_AT_low_pc\s+\((\w+)\)\s+DW_AT_high_pc\s+\((\w+)\)", entry)
            ranges += re.findall(r"\[(0x\w+), (0x\w+)\)", entry)
    return sorted((int(low, 16), int(high, 16)) for low, high in ranges)


class Symbols:
    """The code symbols of an ELF file as its tables have them: without a size they end at the next, or with their section."""

    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        self.typed, self.untyped = [], collections.defaultdict(set)
        found, sections = set(), list(elf_sections(data)) if data.startswith(b"\x7fELF") else []
        mode = unpack("<>"[data[5] - 1] + "H", data, 0x12)[0] in (8, 40) if sections else False  # Thumb, microMIPS
        text = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, errors="replace").stdout
        for line in text.splitlines() if sections else ():
            f = line.split()
            if len(f) < 8 or not f[6].isdigit() or int(f[6]) >= len(sections) or not sections[int(f[6])][1] & 4:
                continue
            kind, address, size = f[3], int(f[1], 16) & ~mode, int(f[2], 0)
            _, _, base, length = sections[int(f[6])]
            if kind in ("FUNC", "IFUNC", "NOTYPE", "OBJECT") and not re.match(r"\$[adtx](\.|$)|\$xrv", f[7]):
                found.add((address, size, base + length, kind in ("NOTYPE", "OBJECT"), f[7].split("@")[0]))
        starts = sorted({symbol[0] for symbol in found})
        sized = merged([symbol[0], symbol[0] + symbol[1]] for symbol in found)
        for address, size, limit, untyped, name in found:
            after, around = bisect.bisect_right(starts, address), bisect.bisect_right(sized, [address, 1 << 64]) - 1
            if not size and around >= 0 and address < sized[around][1]:
                limit = sized[around][1]  # a label ends with what it is within
            end = address + size if size else min(limit, starts[after] if after < len(starts) else limit)
            self.typed.append((address, end))
            if untyped:
                self.untyped[name].add(address)
        self.ranges = merged(self.typed)


def merged(ranges):
    """Sorted, and those that touch as one."""
    out = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1]:
            out[-1][1] = max(out[-1][1], high)
        elif low < high:
            out.append([low, high])
    return out


def ask(command, addresses):
    text = "".join(f"0x{a:x}\n" for a in addresses)
    run = subprocess.run(command, input=text, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{command[0]} failed: {run.stderr[-500:]}")
    answers = []
    for line in run.stdout.splitlines():
        if line.strip():
            answer = json.loads(line)
            answers.append([(f["FunctionName"], f["FileName"], f["Line"]) for f in answer.get("Symbol", [])])
    if len(answers) != len(addresses):
        sys.exit(f"{command[0]}: {len(answers)} answers to {len(addresses)} addresses")
    return answers


def ask_elfutils(path, addresses):
    """eu-addr2line's answers: an address, then pairs of lines: function (and where it is inlined), place."""
    text = "".join(f"0x{a:x}\n" for a in addresses)
    run = subprocess.run(["eu-addr2line", "-e", path, "-a", "-f", "-i"], input=text, capture_output=True, text=True)
    answers, pending = [], None
    for line in run.stdout.splitlines():
        if pending is None and re.fullmatch(r"0x([0-9a-f]{8}){1,2}", line):
            answers.append([])
        elif pending is None:
            pending = line.split(" inlined at ")[0]
        else:
            place = line.split(" (discriminator")[0].split(":")
            while len(place) > 2:  # the column
                place.pop()
            name = "" if pending in ("??", "(null)") else pending
            file = "" if place[0] == "??" else place[0]
            answers[-1].append((name, file, int(place[1]) if len(place) > 1 else 0))
            pending = None
    if len(answers) != len(addresses):
        sys.exit(f"eu-addr2line: {len(answers)} answers to {len(addresses)} addresses")
    return answers


def trim(chain):
    """Without any function and file: no answer."""
    return [] if all(not f[0] and not f[1] for f in chain) else chain


def same_but_for_form(ours, theirs):
    """Arguments and the ` const` behind them; the underscore of C names; what gccgo codes in names of symbols (DWARF has them plain)."""
    return ours.replace("_", "__").replace("/", "_1") == theirs or ours.startswith(theirs + "(") or ours.lstrip("_") == re.sub(r"@\d+$", "", theirs.lstrip("_"))


def same_file(ours, theirs):
    bracketed = ours.startswith("<") and ours.endswith(">")
    return posixpath.normpath(ours or ".") == posixpath.normpath((theirs.split("/")[-1] if bracketed else theirs) or ".")


def classify(ours, theirs, aliases):
    """None when equal, else (class, agrees)."""
    if ours == theirs:
        return None
    if len(ours) == len(theirs) == 1 and not ours[0][1] and not theirs[0][2]:
        names = ours[0][0], theirs[0][0]
        same = names[0] == names[1] or same_but_for_form(*names) or aliases(*names)
        return ("file-symbol" if theirs[0][1] else "symbol-only"), same
    if not any(f[1] for f in ours + theirs):
        return "symbol-only", False
    if len(ours) != len(theirs):
        return "chain", False
    seen = None
    for a, b in zip(ours, theirs):
        if a == b:
            continue
        if a[0] != b[0] and b[0].startswith(".l_"):
            seen = "label"
        elif a[0] != b[0] and same_but_for_form(a[0], re.sub(r"(\.(part|isra|constprop)\.\d+|\.cold)+$", "", b[0])):
            seen = "form" if same_but_for_form(a[0], b[0]) else "piece"
        elif a[0] != b[0]:
            form = same_but_for_form(a[0], b[0])
            if not form and not aliases(a[0], b[0]):
                return "name", False
            seen = "form" if form else "alias"
        if a[1] != b[1]:
            if not same_file(a[1], b[1]):
                return "file", False
            seen = seen or "path"
        if a[2] != b[2]:
            return ("no-line" if 0 in (a[2], b[2]) else "line"), False
    return seen, True


def plain(name):
    """`f` of `a::f<int>`, of `f<int>` and of `?f@a@@YAHXZ`: what names of a PDB, its symbols and DWARF have in common."""
    if name.startswith("?"):
        return (re.match(r"\?(?:\?\$)?(\w+)@", name) or ["", "operator"])[1]
    start = depth = 0
    for at, sign in enumerate(name):
        depth += {"<": 1, ">": -1}.get(sign, 0)
        if name.startswith("::", at) and depth <= 0:
            start = at + 2
    return "operator" if re.match(r"operator\W", name[start:]) else name[start:].split("<")[0] or name[start:]


def without_arguments(name):
    """`a::f` of `a::f(int (*)(int)) const`."""
    depth, name = 0, name.removesuffix(" const")
    if not name.endswith(")"):
        return name
    for at in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[at], 0)
        if not depth:
            return name[:at]
    return name


def explained_by_both(ours, pdb, dwarf):
    """Whether each element has the line of either; `pdb` is as long as ours, or `dwarf` is and has the same names."""
    sides = [side for side in (pdb, dwarf) if len(side) == len(ours) and
             all(plain(without_arguments(a[0])) == plain(b[0]) for a, b in zip(ours, side))]
    if pdb in sides and dwarf and dwarf[0][2] == 0:
        return True  # the record before reaches to here: nobody else says so
    return bool(sides) and all(any(side[i][2] in (0, a[2]) for side in sides) for i, a in enumerate(ours))


def place_only(ours, theirs):
    """Innermost positions, for a peer whose chains and names are no reference."""
    if not ours or not theirs or not ours[0][1] or not theirs[0][1]:
        return [], []
    return [("", *ours[0][1:])], [("", *theirs[0][1:])]


MAX_PADDING = 64


class Asked:
    """How the two are asked about a file: the code is that of `image`; `bias` is what the peer's addresses lack."""

    def __init__(self, path, peer="llvm", llvm="llvm-symbolizer-14"):
        self.image = self.file = path
        self.peer, self.llvm = "text" if path.endswith(".sym") else peer, llvm
        self.options, self.bias = [], 0
        stem, kind = os.path.splitext(path)
        self.dwarf = path + ".reference" if kind == ".pdb" else None
        if kind == ".pdb":
            self.image = self.file = stem + ".exe"
        if kind == ".dwarf":
            self.image = stem + ".dylib"
        self.ranges = code_ranges(self.image)
        if kind in (".pdb", ".exe"):
            self.options = ["--relative-address"]
        if kind == ".wasm":
            self.bias = self.ranges[0][0]
        self.named = wasm_functions(path) if kind == ".wasm" else []
        if not self.dwarf and os.path.exists(path + ".reference"):
            self.file = path + ".reference"
        self.base = image_base(self.image) - self.bias
        self.covered, self.where = None, symbols(self.file)
        self.symbols = Symbols(self.file)

    def every_byte(self, of):
        around = 3
        ranges = self.ranges if not of else [(low, high - low) for name, places in self.where.items() if re.match(of, name)
                                             for low, high in self.symbols.typed if low in places]
        return sorted({a for start, size in ranges for a in range(max(start - around, 0), start + size + around)})

    def addresses(self, count, seed):
        rng = random.Random(seed)
        picks = rng.choices(self.ranges, [size for _, size in self.ranges], k=count)
        return [start + rng.randrange(size) for start, size in picks]

    def symbolizer(self, file, addresses, functions="linkage"):
        return ask([self.llvm, "--obj=" + file, "--output-style=JSON", "--no-demangle", "--functions=" + functions,
                    "--inlines", *self.options], [address - self.bias for address in addresses])

    def reference(self, addresses):
        """Of a PDB's DWARF, and of the symbols where it knows nothing: only linkage names are asked of them."""
        answers = self.symbolizer(self.dwarf, addresses, "short")
        unknown = [i for i, answer in enumerate(answers) if not trim(answer)]
        for i, answer in zip(unknown, self.symbolizer(self.dwarf, [addresses[i] for i in unknown]) if unknown else ()):
            answers[i] = answer
        return answers

    def answers(self, addresses):
        """Of the peer, and of the peer about the DWARF of the same code where the file is a PDB."""
        if self.peer == "text":
            theirs = list(map(Text(self.file).chain, addresses))
        elif self.peer == "elfutils":
            theirs = ask_elfutils(self.file, addresses)
        else:
            theirs = self.symbolizer(self.file, addresses)
        for begin, end, name in self.named:
            theirs = [[(name, "", 0)] if begin <= a < end and not any(f[0] for f in t) else t for a, t in zip(addresses, theirs)]
        return theirs, self.reference(addresses) if self.dwarf else theirs

    def aliases(self, a, b):
        a, b = (name.split("@")[0].split(".cold")[0] for name in (a, b))
        return a == b or bool(self.where[a] & self.where[b]) or a.startswith(b + ".") or b.startswith(a + ".")

    def gap(self, address):
        """The size of the gap between all functions and symbols that the address is in; 0: it is in none."""
        if self.covered is None:
            self.covered = merged(covered(self.dwarf or self.file) + self.symbols.typed)
        at = bisect.bisect_right(self.covered, [self.base + address, 1 << 64]) - 1
        if not self.covered or (at >= 0 and self.base + address < self.covered[at][1]):
            return 0
        low = self.covered[at][1] if at >= 0 else 0
        return (self.covered[at + 1][0] if at + 1 < len(self.covered) else 1 << 64) - low

    def is_outer(self, address, ours, theirs):
        """Whether a symbol with a size holds the address, and theirs is none."""
        return bool(ours) and len(ours) == 1 and not any(f[0] for f in theirs) and \
            (not theirs or theirs[0][1:] == ours[0][1:]) and any(low <= self.base + address < high for low, high in self.symbols.typed)

    def is_label(self, ours, theirs):
        """Whether theirs is an untyped symbol where ours is the function that goes on around it."""
        names = [(a[0], b[0]) for a, b in zip(ours, theirs) if a[0] != b[0]]
        return len(ours) == len(theirs) and len(names) == 1 and [f[1:] for f in ours] == [f[1:] for f in theirs] and \
            bool(self.symbols.untyped[names[0][1]]) and not self.symbols.untyped[names[0][0]]

    def verdict(self, address, ours, theirs, dwarf):
        """None when equal, else (class, agrees)."""
        named = any(f[0] for f in theirs)
        if [f[0] for f in ours] == [""] and len(theirs) == 1 and theirs[0][0] and self.gap(address):
            ours = [(theirs[0][0], *ours[0][1:])]
            return classify(ours, theirs, self.aliases) or ("padding", True)
        if not ours and theirs and (gap := self.gap(address)):
            return ("padding", True) if named or gap < MAX_PADDING else ("nameless", False)
        if not ours and theirs and not any(start <= address < start + size for start, size in self.ranges):
            return "behind", True
        verdict = classify(ours, theirs, self.aliases)
        if verdict and not verdict[1] and self.dwarf and explained_by_both(ours, theirs, dwarf):
            return "either", True
        if verdict and not verdict[1] and self.is_outer(address, ours, theirs):
            return "outer", True
        if verdict and not verdict[1] and self.is_label(ours, theirs):
            return "label", True
        return verdict


def compare(symloom, peer, llvm, path, count, seed, show, every, of):
    asked = Asked(path, peer, llvm)
    addresses = asked.every_byte(of) if every else asked.addresses(count, seed)
    count = len(addresses)
    ours = ask([symloom, "lookup", "--cache-dir", "", "-e", path, "--output-style", "json", "--no-demangle", "-f", "-i", *asked.options], addresses)
    classes, agree, shown, known = collections.Counter(), 0, collections.Counter(), 0
    for address, a, b, c in zip(addresses, *([trim(chain) for chain in chains] for chains in (ours, *asked.answers(addresses)))):
        if peer == "elfutils":
            a, b = place_only(a, b)
        known += bool(a and b)
        verdict = asked.verdict(address, a, b, c)
        if verdict is None:
            agree += 1
            continue
        classes[verdict[0]] += 1
        agree += verdict[1]
        if shown[verdict[0]] < show:
            shown[verdict[0]] += 1
            print(f"  {verdict[0]} at 0x{address:x}\n    symloom {a}\n    {asked.peer:7} {b}" + (f"\n    dwarf   {c}" if asked.dwarf else ""))
    percent = 100.0 * agree / count
    if known < count / 10:
        print(f"{path}: only {known} of {count} addresses are known to both")
        return 0.0
    print(f"{path}: {agree} of {count} agree ({percent:.2f} %); differences: {dict(classes) or 'none'}")
    return percent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True)
    parser.add_argument("--peer", choices=("llvm", "elfutils"), default="llvm")
    parser.add_argument("--llvm-symbolizer", default="llvm-symbolizer-19")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--of")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--least", type=float, default=99.5)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    results = [compare(args.symloom, args.peer, args.llvm_symbolizer, f, args.count, args.seed, args.show, args.every, args.of) for f in args.files]
    sys.exit(0 if min(results) >= args.least else 1)


if __name__ == "__main__":
    main()
