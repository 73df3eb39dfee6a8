#!/usr/bin/env python3
"""The STACK records of `symloom dump-syms` against other tools' reading of the same tables: ELF against readelf, PE against
llvm-readobj, PDB against llvm-pdbutil, Mach-O against llvm-objdump and llvm-dwarfdump. Ends in "N places, M differ"; status 1 if any differs."""
import argparse, re, subprocess, sys

ARM = {f"r{i}": name for i, name in ((13, "sp"), (14, "lr"), (15, "pc"))}
RETURN = {"AArch64": "x30", "ARM": "lr"}


def output(*command):
    run = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if run.returncode and not run.stdout:
        sys.exit(f"{' '.join(command)}: {run.stderr}")
    return run.stdout


def parse_rules(text):
    rules, name = {}, None
    for token in text.split():
        if token.endswith(":"):
            name = token[:-1]
            rules[name] = []
        else:
            rules[name].append(token)
    return {name: " ".join(words) for name, words in rules.items()}


def symloom_ranges(symloom, path):
    """[(start, size, [(address, all rules in force)])] in order."""
    ranges = []
    for line in output(symloom, "dump-syms", "--preserve-load-address", path).splitlines():
        if m := re.match(r"STACK CFI INIT (\w+) (\w+) (.*)", line):
            start = int(m[1], 16)
            ranges.append((start, int(m[2], 16), [(start, parse_rules(m[3]))]))
        elif m := re.match(r"STACK CFI (\w+) (.*)", line):
            rows = ranges[-1][2]
            rows.append((int(m[1], 16), {**rows[-1][1], **parse_rules(m[2])}))
    return ranges


def at(rows, address):
    rules = None
    for start, r in rows:
        if start <= address:
            rules = r
    return rules


# ---- ELF ----

def readelf_fdes(path):
    """[(start, end, [(address, {column: text})])]; registers by their names in STACK records, return register."""
    machine = re.search(r"Machine: +(.*)", output("readelf", "-h", path))[1]
    prefix = "$" if "86" in machine else ""
    reg = lambda name: name if name == "ra" else prefix + ARM.get(name, name) if machine == "ARM" else prefix + name
    cies, fdes, columns, rows = {}, [], [], None
    for line in output("readelf", "-W", "--debug-dump=frames-interp", path).splitlines():
        if m := re.match(r"Contents of the (\S+) section", line):
            cies = {}
        elif m := re.match(r"(\w+) \w+ \w+ CIE", line):
            rows = cies[int(m[1], 16)] = []
        elif m := re.match(r"\w+ \w+ \w+ FDE cie=(\w+) pc=(\w+)\.\.(\w+)", line):
            rows = []
            fdes.append((int(m[2], 16), int(m[3], 16), rows, cies[int(m[1], 16)]))
        elif line.split()[:2] == ["LOC", "CFA"]:
            columns = ["CFA"] + [reg(c) for c in line.split()[2:]]
        elif rows is not None and re.match(r"[0-9a-f]{8,16} ", line):
            words = re.sub(r"r\d+ \((\w+)\)", r"\1", line).split()  # "r2 (rcx)"
            if words[1] == "ZERO":  # terminator
                continue
            rows.append((int(words[0], 16), dict(zip(columns, words[1:]))))
    done = []
    for start, end, own, cie in fdes:
        own = own or [(start, cie[0][1])]
        done.append((start, end, [r for r in own if r[0] < end], reg))
    return done, RETURN.get(machine)


def same_elf(expected, rules, reg, return_register):
    """Whether one row says the same."""
    cfa = expected["CFA"]
    if m := re.fullmatch(r"(\w+)([+-]\d+)", cfa):
        if rules.get(".cfa") != f"{reg(m[1])} {int(m[2])} +":
            return False
    for name, text in expected.items():
        if name == "CFA" or re.fullmatch(r"r2\d\d", name):  # d0.. of ARM have no names in STACK records
            continue
        ours = rules.get(".ra" if name == "ra" else name)
        if m := re.fullmatch(r"c([+-]\d+)", text):
            ok = ours == f".cfa {int(m[1])} + ^"
        elif m := re.fullmatch(r"v([+-]\d+)", text):
            ok = ours == f".cfa {int(m[1])} +"
        elif text in ("exp", "vexp"):
            ok = ours is not None
        elif text in ("u", "s"):
            ok = ours in (None, ".undef", name, return_register if name == "ra" else name)
        else:
            ok = ours == reg(text)
        if not ok:
            return False
    said = set(rules) - {".cfa"}
    return said <= {".ra" if n == "ra" else n for n in expected} | ({".ra"} if return_register else set())


def compare_elf(symloom, path, differ):
    fdes, return_register = readelf_fdes(path)
    ranges = symloom_ranges(symloom, path)
    places, next_range = 0, 0
    for start, end, rows, reg in fdes:
        # an entry may have been cut where its CFA cannot be said
        own = []
        while next_range < len(ranges) and start <= ranges[next_range][0] < end:
            own.append(ranges[next_range])
            next_range += 1
        last = {}
        for address, expected in rows:
            last[address] = expected  # the last row of a place holds
        for address, expected in last.items():
            places += 1
            mine = [r for r in own if r[0] <= address < r[0] + r[1]]
            if not mine:
                if expected["CFA"] != "exp":
                    differ(f"{address:#x}: no rules, expected {expected}")
            elif not same_elf(expected, at(mine[0][2], address), reg, return_register):
                differ(f"{address:#x}: {at(mine[0][2], address)}, expected {expected}")
    if next_range != len(ranges):
        differ(f"range {ranges[next_range][0]:#x} is no entry's")
    return places


# ---- PE ----

def arm64_prologue(lines):
    """Rules behind each instruction of a prologue, which is given newest first."""
    stack, fp, last, states = 0, None, None, [{".cfa": "sp 0 +", ".ra": "x30"}]
    name = lambda reg: {"fp": "x29", "lr": "x30"}.get(reg, "v" + reg[1:] if reg[0] == "d" else reg)
    for line in reversed(lines):
        rules = dict(states[-1])
        if m := re.search(r"st[pr] (\w+), (?:(\w+), )?\[sp(?:, #(-?\d+))?\](!?)", line):
            regs, offset = [name(r) for r in m.group(1, 2) if r], int(m[3] or 0)
            if m[4]:
                stack, offset = stack - offset, 0
            last = regs, offset
        elif "save next" in line:
            last = regs, offset = [r[0] + str(int(r[1:]) + 2) for r in last[0]], last[1] + 16
        else:
            regs = []
            if m := re.search(r"sub sp, (?:sp, )?#(\d+)", line):
                stack += int(m[1])
            elif m := re.search(r"mov (?:fp|x29), sp|add (?:fp|x29), sp, #(\d+)", line):
                fp = f"x29 {stack - int(m[1] or 0)} +"
            else:
                sys.exit(f"what is {line!r}?")
        for i, reg in enumerate(regs):
            rules[reg] = f".cfa {offset + 8 * i - stack} + ^"
            if reg == "x30":
                rules[".ra"] = rules[reg]
        rules[".cfa"] = fp or f"sp {stack} +"
        states.append(rules)
    return states


def compare_pe_arm64(symloom, path, differ):
    ranges = {r[0]: r for r in symloom_ranges(symloom, path)}
    places = 0
    for text in output("llvm-readobj-14", "--unwind", path).split("RuntimeFunction {")[1:]:
        start, length = int(re.search(r"Function: (0x\w+)", text)[1], 16), int(re.search(r"FunctionLength: (\d+)", text)[1])
        lines = re.findall(r".+", text[text.index("Prologue ["):].split("\n      ]" if "ExceptionData {" in text else "\n    ]")[0])[1:]
        states = arm64_prologue([l for l in lines if not re.search(r"\bend$", l.strip())])
        if start not in ranges or ranges[start][1] != length:
            differ(f"{start:#x}: no range of {length}")
            continue
        for i, expected in enumerate(states):
            places += 1
            ours = at(ranges[start][2], start + 4 * i)
            if 4 * i < length and ours != expected:
                differ(f"{start + 4 * i:#x}: {ours}, expected {expected}")
    return places


def compare_pe(symloom, path, differ):
    """Codes as llvm-readobj prints them, applied here once more."""
    if "Arch: aarch64" in output("llvm-readobj-14", "-h", path):
        return compare_pe_arm64(symloom, path, differ)
    ranges = {r[0]: r for r in symloom_ranges(symloom, path)}
    places = 0
    functions = output("llvm-readobj-14", "--unwind", path).split("RuntimeFunction {")[1:]
    for text in functions:
        start = int(re.search(r"StartAddress: .*?\(?(0x\w+)\)", text)[1], 16)
        codes = re.findall(r"(0x\w+): (\w+) ?(.*)", text[text.index("UnwindCodes"):].split("]")[0])
        frame_offset = re.search(r"FrameOffset: (\w+)", text)
        fields = [(int(o, 16), op, dict(f.split("=") for f in rest.split(", ") if f)) for o, op, rest in codes]
        if start not in ranges:
            differ(f"{start:#x}: no range")
            continue
        offsets = sorted({0} | {o for o, _, _ in fields})
        for offset in offsets:
            stack, cfa, fp, rules = 8, None, None, {".ra": ".cfa 8 - ^"}
            for o, op, f in reversed(fields):
                if o > offset:
                    continue
                reg = "$" + f.get("reg", "").lower()
                value = int(f.get("size", f.get("offset", "0")), 0)
                if op == "PUSH_NONVOL":
                    stack += 8
                    rules[reg] = f".cfa {stack} - ^"
                elif op.startswith("ALLOC"):
                    stack += value
                elif op == "SET_FPREG":
                    fp, cfa = (reg, value), f"{reg} {stack - value} +"
                elif op.startswith("SAVE_NONVOL"):
                    rules[reg] = f"{fp[0]} {value - fp[1]} + ^" if fp else f".cfa {stack - value} - ^"
            rules[".cfa"] = cfa or f"$rsp {stack} +"
            places += 1
            ours = at(ranges[start][2], start + offset)
            if ours != rules:
                differ(f"{start + offset:#x}: {ours}, expected {rules}")
    if not functions:
        differ("llvm-readobj sees no functions")
    return places


# ---- PDB ----

def compare_pdb(symloom, path, differ):
    ours = [line.split(" ", 12) for line in output(symloom, "dump-syms", path).splitlines() if line.startswith("STACK WIN 4 ")]
    rows = re.findall(r"^([0-9A-F]{8}) \| +(.*)", output("llvm-pdbutil-14", "dump", "-fpo", path), re.M)
    expected = []
    for start, rest in rows:
        size, local, params, stack, prolog, saved, _, _, _, program = [f.strip() for f in rest.split("|", 9)]
        expected.append([int(start, 16)] + [int(n) for n in (size, prolog, "0", params, saved, local, stack)] + ["1", program])
    got = [[int(n, 16) for n in o[3:11]] + o[11:13] for o in ours]
    for a, b in zip(got, expected):
        if a != b:
            differ(f"{a}, expected {b}")
    if len(got) != len(expected):
        differ(f"{len(got)} records, expected {len(expected)}")
    return len(expected)


# ---- Mach-O ----

def dwarf_bodies(path):
    """The last row of each FDE, by the distance of its start from the first one."""
    rows, bodies, start, first = [], {}, None, None
    for line in output("llvm-dwarfdump-14", "--eh-frame", path).splitlines():
        if m := re.match(r"\w+ \w+ \w+ FDE .* pc=(\w+)", line):
            start = int(m[1], 16)
            first = start if first is None else first
        elif start is not None and (m := re.match(r"  0x(\w+): CFA=(\w+)\+(\d+)(?:: (.*))?", line)):
            rules = {".cfa": f"${m[2].lower()} {m[3]} +"}
            for name, offset in re.findall(r"(\w+)=\[CFA(-\d+)\]", m[4] or ""):
                rules[".ra" if name == "RIP" else "$" + name.lower()] = f".cfa {offset} + ^"
            bodies[start - first] = rules
    return bodies


def arm64_rules(encoding):
    mode = encoding >> 24 & 15
    if mode == 4:
        rules, where = {".cfa": "x29 16 +", "x29": ".cfa -16 + ^", ".ra": ".cfa -8 + ^"}, -24
    elif mode == 2:
        rules, where = {".cfa": f"sp {16 * (encoding >> 12 & 0xFFF)} +", ".ra": "x30 0 +"}, -8
    else:
        return {".cfa": "sp", ".ra": "x30"}
    names = [f"x{i}" for i in range(19, 29)] + [f"v{i}" for i in range(8, 16)]
    for bit in range(9):
        if encoding >> bit & 1:
            for name in names[2 * bit:2 * bit + 2]:
                rules[name] = f".cfa {where} + ^"
                where -= 8
    return rules


def compare_macho(symloom, path, differ):
    ranges = symloom_ranges(symloom, path)
    text = output("llvm-objdump-14", "--unwind-info", path)
    entries = [(int(a, 16), int(e, 16)) for a, e in
               re.findall(r"function offset=(0x\w+), encoding(?:\[\d+\])?=(0x\w+)", text)]
    is_arm64 = "arm64" in text.splitlines()[1]
    bodies = {} if is_arm64 else dwarf_bodies(path)
    by_start = {r[0]: r for r in ranges}
    places = 0
    for i, (start, encoding) in enumerate(entries):
        ends = [e for e, _ in entries[i + 1:i + 2]] + re.findall(r"offset=(0x\w+), 2nd level page offset=0x00000000", text)
        end = ends[0] if isinstance(ends[0], int) else int(ends[0], 16)
        if end == start:
            continue
        places += 1
        expected = arm64_rules(encoding) if is_arm64 else bodies.get(start - entries[0][0])
        ours = by_start.get(start)
        if not ours or ours[1] != end - start or ours[2][0][1] != expected:
            differ(f"{start:#x}: {ours}, expected {expected}")
    if not entries:
        differ("llvm-objdump sees no entries")
    return places


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    total = bad = 0
    for path in args.files:
        found = []
        kind = {"pe": compare_pe, "pdb": compare_pdb, "macho": compare_macho}.get(path.rsplit(".", 1)[-1], compare_elf)
        places = kind(args.symloom, path, found.append)
        for line in found[:5]:
            print(f"{path}: {line}")
        if not places:
            found.append("nothing")
            print(f"{path}: nothing to compare")
        total += places
        bad += len(found)
    print(f"{total} places, {bad} differ")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
