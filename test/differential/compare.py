#!/usr/bin/env python3
"""Compares symloom with llvm-symbolizer, or eu-addr2line, over random text addresses of an ELF file.

usage: compare.py --symloom PATH [--peer llvm|elfutils] [--count N] [--seed N] [--show N] [--least PERCENT] FILE ...

Both tools are asked for the inline chain of the same addresses (linkage names, no demangling). Every element's function,
file and line must be equal. A difference is put into the first class that explains it; the classes say who is right:

  alias        both names are symbols at the same address; either may be shown
  no-line      same function and file, one side knows no line (0)
  symbol-only  code without debug information: llvm-symbolizer names the nearest symbol below even outside of its size
  file-symbol  the same, and llvm-symbolizer shows the object file's STT_FILE symbol as source file
  path         same file, spelled differently (`..`, doubled or trailing separators)
  chain        the inline chains have different lengths
  name, file, line: the first element that differs, differs there

With eu-addr2line only the innermost position (file and line) is compared, where both know one: it does not follow imported
units (LTO), and names functions by their DWARF name where the linkage name is in the symbol table alone.

Where FILE.reference exists, llvm-symbolizer is asked about that file: the same code with debug information in a form that
it reads (it does not follow supplementary files).

Exit status 1 when fewer than PERCENT (default 99.5) of the addresses agree; aliases and path spellings count as agreeing.
"""
import argparse, collections, json, os, posixpath, random, struct, subprocess, sys


def text_ranges(path):
    """(address, size) of the executable sections of a 64-bit little-endian ELF file."""
    data = open(path, "rb").read()
    shoff, = struct.unpack_from("<Q", data, 0x28)
    entsize, count, _ = struct.unpack_from("<HHH", data, 0x3A)
    ranges = []
    for i in range(count):
        _, kind, flags, addr, _, size = struct.unpack_from("<IIQQQQ", data, shoff + i * entsize)
        if flags & 4 and size:
            ranges.append((addr, size))
    return ranges


def symbols(path):
    """name -> addresses of the file's function symbols; versions are no part of the name."""
    out = collections.defaultdict(set)
    for table in ([], ["-D"]):
        text = subprocess.run(["nm", *table, path], capture_output=True, text=True).stdout
        for line in text.splitlines():
            parts = line.split()
            if len(parts) == 3 and parts[1] in "TtWwiuVv":
                out[parts[2].split("@")[0]].add(int(parts[0], 16))
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
        if line.startswith("0x") and len(line) == 18 and pending is None:
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
    """A line without any function is padding between functions: no answer."""
    return [] if all(not f[0] for f in chain) else chain


def classify(ours, theirs, aliases):
    """None when equal, else (class, agrees)."""
    if ours == theirs:
        return None
    if len(ours) == len(theirs) == 1 and not ours[0][1] and not theirs[0][2]:
        same = ours[0][0] == theirs[0][0] or aliases(ours[0][0], theirs[0][0])
        return ("file-symbol" if theirs[0][1] else "symbol-only"), same
    if not any(f[1] for f in ours + theirs):
        return "symbol-only", False
    if len(ours) != len(theirs):
        return "chain", False
    seen = None
    for a, b in zip(ours, theirs):
        if a == b:
            continue
        if a[0] != b[0]:
            if not aliases(a[0], b[0]):
                return "name", False
            seen = "alias"
        if a[1] != b[1]:
            if posixpath.normpath(a[1] or ".") != posixpath.normpath(b[1] or "."):
                return "file", False
            seen = seen or "path"
        if a[2] != b[2]:
            return ("no-line" if 0 in (a[2], b[2]) else "line"), False
    return seen, True


def place_only(ours, theirs):
    """Innermost positions, for a peer whose chains and names are no reference."""
    if not ours or not theirs or not ours[0][1] or not theirs[0][1]:
        return [], []
    return [("", *ours[0][1:])], [("", *theirs[0][1:])]


def compare(symloom, peer, llvm, path, count, seed, show):
    ranges, where = text_ranges(path), symbols(path)
    def aliases(a, b):
        a, b = (name.split("@")[0].split(".cold")[0] for name in (a, b))
        return a == b or bool(where[a] & where[b]) or a.startswith(b + ".") or b.startswith(a + ".")
    rng = random.Random(seed)
    weights = [size for _, size in ranges]
    picks = rng.choices(ranges, weights, k=count)
    addresses = [start + rng.randrange(size) for start, size in picks]
    ours = ask([symloom, "lookup", "-e", path, "--output-style", "json", "--no-demangle", "-f", "-i"], addresses)
    reference = path + ".reference"
    asked = reference if os.path.exists(reference) else path
    if peer == "elfutils":
        theirs = ask_elfutils(asked, addresses)
    else:
        theirs = ask([llvm, "--obj=" + asked, "--output-style=JSON", "--no-demangle", "--functions=linkage", "--inlines"],
                     addresses)
    classes, agree, shown, known = collections.Counter(), 0, collections.Counter(), 0
    for address, a, b in zip(addresses, map(trim, ours), map(trim, theirs)):
        if peer == "elfutils":
            a, b = place_only(a, b)
        known += bool(a and b)
        verdict = classify(a, b, aliases)
        if verdict is None:
            agree += 1
            continue
        classes[verdict[0]] += 1
        agree += verdict[1]
        if shown[verdict[0]] < show:
            shown[verdict[0]] += 1
            print(f"  {verdict[0]} at 0x{address:x}\n    symloom {a}\n    {peer:7} {b}")
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
    parser.add_argument("--llvm-symbolizer", default="llvm-symbolizer-14")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--least", type=float, default=99.5)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    results = [compare(args.symloom, args.peer, args.llvm_symbolizer, f, args.count, args.seed, args.show) for f in args.files]
    sys.exit(0 if min(results) >= args.least else 1)


if __name__ == "__main__":
    main()
