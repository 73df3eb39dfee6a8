"""The variables of a program's functions, as they follow from the entries that llvm-dwarfdump prints: names, and types by the
names of their entries, put together as C writes them."""
import re, subprocess

ENTRY = re.compile(r"^(0x[0-9a-f]+):(\s+)(DW_TAG_\w+|NULL)")
ATTRIBUTE = re.compile(r"^\s+(DW_AT_\w+)\s+(\S.*)$")
RANGE = re.compile(r"\[(0x[0-9a-f]+), (0x[0-9a-f]+)\)")
UNKNOWN = ("<unknown>", "", False, False)
NAMED = {"base_type", "class_type", "enumeration_type", "interface_type", "structure_type", "typedef", "union_type",
         "unspecified_type"}
SIGNS = {"pointer_type": "*", "reference_type": "&", "rvalue_reference_type": "&&"}
QUALIFIERS = {"const_type": "const", "volatile_type": "volatile", "restrict_type": "restrict", "atomic_type": "_Atomic"}
BLOCKS = {"lexical_block", "try_block", "catch_block", "GNU_formal_parameter_pack", "common_block"}


class Entry:
    def __init__(self, tag):
        self.tag, self.values, self.children, self.ranges = tag, {}, [], []

    def name(self):
        return self.values["name"][2:-2] if "name" in self.values else ""


class Program:
    def __init__(self, path):
        self.entries, self.types = {}, {}
        dump = subprocess.run(["llvm-dwarfdump-19", "--debug-info", path], stdout=subprocess.PIPE, check=True, text=True)
        stack, attribute = [], None
        for line in dump.stdout.splitlines():
            if found := ENTRY.match(line):
                del stack[(len(found[2]) - 1) // 2:]
                entry = Entry(found[3].removeprefix("DW_TAG_"))
                if entry.tag == "NULL":
                    continue
                self.entries[int(found[1], 16)] = entry
                if stack:
                    stack[-1].children.append(entry)
                stack.append(entry)
            elif stack and (found := ATTRIBUTE.match(line)):
                attribute = found[1].removeprefix("DW_AT_")
                stack[-1].values.setdefault(attribute, found[2])
            elif stack and attribute == "ranges":
                stack[-1].ranges += [(int(low, 16), int(high, 16)) for low, high in RANGE.findall(line)]
        for entry in self.entries.values():
            low, high = (re.match(r"\((0x[0-9a-f]+)\)", entry.values.get(n, "")) for n in ("low_pc", "high_pc"))
            if low and high:
                entry.ranges.append((int(low[1], 16), int(high[1], 16)))
            entry.ranges = [r for r in entry.ranges if r[0] < r[1]]

    def referred(self, entry, attribute):
        found = re.match(r"\((?:cu \+ 0x[0-9a-f]+ => \{)?(0x[0-9a-f]+)", entry.values.get(attribute, ""))
        return self.entries.get(int(found[1], 16)) if found else None

    def described(self, entry):
        """Name, and the entry that has the type."""
        name, typed = "", None
        while entry and not (name and typed):
            name = name or entry.name()
            typed = typed or ("type" in entry.values and entry) or None
            entry = self.referred(entry, "abstract_origin") or self.referred(entry, "specification")
        return name, typed

    def type_of(self, entry):
        """What stands left and right of a declarator, whether it is a pointer, whether it binds stronger than a star."""
        if not entry or "type" not in entry.values:
            return "void", "", False, False
        type_entry = self.referred(entry, "type")
        if type_entry not in self.types:
            self.types[type_entry] = UNKNOWN
            self.types[type_entry] = self.named(type_entry) if type_entry else UNKNOWN
        return self.types[type_entry]

    def named(self, entry):
        name, typed = self.described(entry)
        if name:
            return name, "", entry.tag == "pointer_type", False
        if entry.tag in NAMED:
            return UNKNOWN
        left, right, pointer, binds = self.type_of(typed)
        if entry.tag in SIGNS:
            sign = SIGNS[entry.tag]
            return (f"{left}({sign}", ")" + right, True, False) if binds else (left + sign, right, True, False)
        if entry.tag in QUALIFIERS:
            word = QUALIFIERS[entry.tag]
            if pointer:
                return left if left.endswith(" " + word) else f"{left} {word}", right, pointer, binds
            return left if left.startswith(word + " ") else f"{word} {left}", right, pointer, binds
        if entry.tag == "array_type":
            extents = [self.extent(c) for c in entry.children if c.tag in ("subrange_type", "enumeration_type")]
            return left, "".join(extents or ["[]"]) + right, pointer, True
        if entry.tag == "subroutine_type":
            words = ["..." if c.tag == "unspecified_parameters" else "".join(self.type_of(c)[:2])
                     for c in entry.children if c.tag in ("formal_parameter", "unspecified_parameters")]
            return left, f"({', '.join(words)}){right}", pointer, True
        return "<not implemented>", "", False, False

    @staticmethod
    def extent(entry):
        for attribute, more in (("count", 0), ("upper_bound", 1)):
            if found := re.match(r"^\((0x[0-9a-f]+|\d+)\)$", entry.values.get(attribute, "")):
                return f"[{(int(found[1], 0) + more) % 2 ** 64}]"
        return "[]"

    def variables(self, entry):
        found = {}
        for child in entry.children:
            if child.tag in ("formal_parameter", "variable"):
                name, typed = self.described(child)
                if name and "declaration" not in child.values:
                    found[name] = "".join(self.type_of(typed)[:2])
            elif child.tag in BLOCKS:
                found |= self.variables(child)
        return found

    def functions(self):
        """By where they begin; the first one counts."""
        found = {}
        for entry in self.entries.values():
            if entry.tag == "subprogram" and "declaration" not in entry.values:
                for low, _ in entry.ranges:
                    found.setdefault(low, entry)
        return found

    def chain(self, function, address):
        """The inlined calls at the address, innermost first, and the function."""
        chain, inside = [function], [function]
        while inside:
            entry = inside.pop(0)
            for child in entry.children:
                covers = any(low <= address < high for low, high in child.ranges)
                if child.tag == "inlined_subroutine" and covers:
                    chain.insert(0, child)
                    inside = [child]
                    break
                if child.tag in BLOCKS:
                    inside.append(child)
        return chain
