"""Mangled names that stand for far more than they say, as symbols: a long one, or many."""
import struct

import objects

DUMP = ["dump-syms", "{file}"]


def symbols(names):
    elf = objects.Elf()
    text = elf.add(b"\x90" * 64)
    elf.segments.append((objects.PT_LOAD, text, 0x10000, 1 << 24))
    elf.section(".text", objects.SHT_PROGBITS, text, 1 << 24, flags=6, address=0x10000)
    strings, table = b"\0", bytes(24)
    for i, name in enumerate(names):
        table += struct.pack("<IBBHQQ", len(strings), 2, 0, 1, 0x10000 + 16 * i, 16)
        strings += name + b"\0"
    link = elf.section(".strtab", objects.SHT_STRTAB, elf.add(strings), len(strings))
    elf.section(".symtab", objects.SHT_SYMTAB, elf.add(table), len(table), link=link, info=1)
    return elf.file()


def in_base(number, base):
    digits = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    out = b""
    while True:
        out = digits[number % base:number % base + 1] + out
        number //= base
        if not number:
            return out


def itanium_pairs(size):
    """Each argument is a pair of the one before."""
    name, i = b"_Z1f4pairIiiE", 0
    while len(name) < size:
        before = b"S" + in_base(i, 36).upper() + b"_"
        name += b"S_I" + before * 2 + b"E"
        i += 1
    return name


def itanium_nested(size):
    return b"_ZN" + b"1a" * (size // 2) + b"1fEv"


def itanium_templates(size):
    return b"_Z1fI" + b"1aI" * (size // 4) + b"i" + b"E" * (size // 4) + b"Evv"


def itanium_pointers(size):
    return b"_Z1f" + b"PK" * (size // 2) + b"i"


def itanium_functions(size):
    return b"_Z1f" + b"PFi" * (size // 4) + b"v" + b"E" * (size // 4)


def itanium_expressions(size):
    return b"_Z1fIiEvDT" + b"pl" * (size // 8) + b"fp_" * (size // 8) + b"E"


def itanium_packs(size):
    return b"_Z1fIJ" + b"i" * (size // 2) + b"EEv" + b"DpT_" * (size // 8)


def rust_pairs(size):
    """Each argument is a tuple of two of the one before."""
    name, at = b"_RIC1a", None
    while len(name) < size:
        here = len(name) - 2
        back = b"u" if at is None else b"B" + (in_base(at - 1, 62) if at else b"") + b"_"
        name += b"T" + back * 2 + b"E"
        at = here
    return name + b"E"


def rust_chain(size):
    """Paths that go back to each other."""
    return b"_RNv" + b"Nv" * (size // 6) + b"C1a" + b"1b" * (size // 6) + b"1c"


def rust_legacy(size):
    return b"_ZN" + b"4$LT$" * (size // 5) + b"17h0123456789abcdefE"


def swift_arrays(size):
    return b"$s1a1fyy" + b"Say" * (size // 4) + b"Si" + b"G" * (size // 4) + b"F"


def swift_pairs(size):
    """Tuples of what was there before."""
    return b"$s1a1fyy" + b"Si_Sit" + b"_AAt" * (size // 4) + b"F"


def swift_substitutions(size):
    return b"$s1a1fyy" + b"A" + b"a" * (size // 2) + b"A" + b"9" * (size // 2) + b"F"


def swift_old(size):
    return b"_TF1a1fF" + b"T" * (size // 2) + b"Si" + b"_" * (size // 2)


def swift_words(size):
    """Identifiers made of words of others."""
    return b"$s3FooV0" + b"a0B" * (size // 3) + b"F"


def microsoft_pointers(size):
    return b"?f@@YAX" + b"PA" * (size // 2) + b"H@Z"


def microsoft_templates(size):
    return b"?f@@YAX" + b"V?$a@" * (size // 7) + b"H" + b"@@" * (size // 7) + b"@Z"


def microsoft_pairs(size):
    """Arguments that are those before."""
    return b"?f@@YAXV?$p@HH@@" + b"V?$p@V1@V1@@@" * (size // 13) + b"0" * 10 + b"@Z"


def microsoft_functions(size):
    return b"?f@@YAX" + b"P6AX" * (size // 6) + b"H" + b"@Z" * (size // 6) + b"@Z"


NAMES = (itanium_pairs, itanium_nested, itanium_templates, itanium_pointers, itanium_functions, itanium_expressions, itanium_packs,
         rust_pairs, rust_chain, rust_legacy, swift_arrays, swift_pairs, swift_substitutions, swift_old, swift_words,
         microsoft_pointers, microsoft_templates, microsoft_pairs, microsoft_functions)


def one(make):
    return lambda size: symbols([make(min(size, 65000))])


def many(make):
    return lambda size: symbols([make(1200 + i % 64) for i in range(size // 1300 + 1)])


def mixed(size):
    """Names of all kinds, of all lengths."""
    names, left = [], size
    while left > 0:
        names.append(NAMES[len(names) % len(NAMES)](200 + 37 * (len(names) % 100)))
        left -= len(names[-1]) + 24
    return symbols(names)


def long_names(size):
    """A long name of each kind."""
    return symbols([make(min(size // len(NAMES), 65000)) for make in NAMES])


GENERATORS = {"mixed": (mixed, DUMP), "long names": (long_names, DUMP)}
LIMITS = {"one " + f.__name__.replace("_", " "): (one(f), DUMP) for f in NAMES}
LIMITS |= {"many " + f.__name__.replace("_", " "): (many(f), DUMP) for f in NAMES}
