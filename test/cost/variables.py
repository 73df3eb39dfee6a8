"""Variables and types whose entries refer to each other, and to the same texts, again and again."""
from elf import *
from functions import CODE, END, ROOT, code, dwarf, root

VARIABLES = ["readers", "variables", "{file}"]

FORMAL_PARAMETER, POINTER, STRUCTURE, SUBROUTINE, CONST, VARIABLE, ARRAY, SUBRANGE = 0x05, 0x0F, 0x13, 0x15, 0x26, 0x34, 0x01, 0x21
TYPE, COUNT = 0x49, 0x37
FUNCTION = len(root) + UNIT_HEADER  # where the first entry behind the root is

NAMED = abbrev(3, VARIABLE, 0, (NAME, STRP), (TYPE, REF4))
INLINE = abbrev(4, VARIABLE, 0, (NAME, STRING), (TYPE, REF4))
POINTERS = abbrev(5, POINTER, 0, (TYPE, REF4))
STRUCTURES = abbrev(6, STRUCTURE, 0, (NAME, STRP))
FUNCTIONS = abbrev(7, SUBROUTINE, 1, (TYPE, REF4))
PARAMETERS = abbrev(8, FORMAL_PARAMETER, 0, (TYPE, REF4))
REFERRED = abbrev(9, VARIABLE, 0, (ORIGIN, REF4))
CONSTS = abbrev(10, CONST, 0, (TYPE, REF4))
ARRAYS = abbrev(11, ARRAY, 1, (TYPE, REF4))
RANGES_OF = abbrev(12, SUBRANGE, 0, (COUNT, DATA1))
ABBREVS = ROOT + CODE + NAMED + INLINE + POINTERS + STRUCTURES + FUNCTIONS + PARAMETERS + REFERRED + CONSTS + ARRAYS + RANGES_OF


def variables_of(types, count, variable, size=16):
    """One function with `count` variables; `types` are the entries in front of it."""
    entries = b"".join(variable(i) for i in range(count))
    return root + types + code(0x1000, size) + entries + END


def one_long_name(size):
    """Of every variable, and its type."""
    count = size // 2 // 9
    return dwarf(ABBREVS, variables_of(b"\x06" + u32(0), count, lambda i: b"\x03" + u32(0) + u32(FUNCTION)),
                 debug_str=b"n" * min(size // 2, 60000) + b"\0")


def suffixes_of_a_name(size):
    count = size // 2 // 9
    return dwarf(ABBREVS, variables_of(b"\x06" + u32(0), count, lambda i: b"\x03" + u32(i) + u32(FUNCTION)),
                 debug_str=b"n" * (size // 2) + b"\0")


def pointers_in_a_loop(size):
    """Each type refers to the next one, the last to the first."""
    count = size // 2 // 7
    types = b"".join(b"\x05" + u32(FUNCTION + 5 * ((i + 1) % count)) for i in range(count))
    return dwarf(ABBREVS, variables_of(types, count, lambda i: b"\x04v\0" + u32(FUNCTION + 5 * i)))


def one_long_chain(size):
    """The variables have types all along it, from its end to its begin and back."""
    count = size // 2 // 12
    types = b"".join(b"\x05" + u32(FUNCTION + 5 * (i + 1)) for i in range(count)) + b"\x06" + u32(0)
    order = list(range(count)) + list(reversed(range(count)))
    return dwarf(ABBREVS, variables_of(types, count, lambda i: b"\x04v\0" + u32(FUNCTION + 5 * order[2 * i])), debug_str=b"int\0")


def pointers_to_a_long_name(size):
    """The name is written once more for each."""
    count = size // 16
    types = b"\x06" + u32(0) + b"".join(b"\x05" + u32(FUNCTION) for _ in range(count))
    return dwarf(ABBREVS, variables_of(types, count, lambda i: b"\x04v\0" + u32(FUNCTION + 5 * (i + 1))), debug_str=b"n" * 4000 + b"\0")


def functions_of_functions(size):
    """Each has the next one twice as a parameter."""
    count = size // 2 // 16
    step = 5 + 2 * 5 + 1
    types = b"".join(b"\x07" + u32(FUNCTION + step * (i + 1)) + (b"\x08" + u32(FUNCTION + step * (i + 1))) * 2 + b"\0"
                     for i in range(count)) + b"\x06" + u32(0)
    return dwarf(ABBREVS, variables_of(types, count, lambda i: b"\x04v\0" + u32(FUNCTION + step * i)), debug_str=b"int\0")


def one_long_function_type(size):
    """Every pointer to it asks for its parameters."""
    parameters = min(size // 3 // 5, 250)
    types = b"\x06" + u32(0) + b"\x07" + u32(FUNCTION) + (b"\x08" + u32(FUNCTION)) * parameters + b"\0"
    count = size // 3 // 12
    first = FUNCTION + len(types)
    types += b"".join(b"\x05" + u32(FUNCTION + 5) for _ in range(count))
    return dwarf(ABBREVS, variables_of(types, count, lambda i: b"\x04v\0" + u32(first + 5 * i)), debug_str=b"int\0")


def arrays_of_many_dimensions(size):
    count = 100
    types = b"\x06" + u32(0)
    arrays = [FUNCTION + len(types)]
    one = b"\x0b" + u32(FUNCTION) + b"\x0c\x03" * (size // 2 // 2 // count) + b"\0"
    types += one * count
    return dwarf(ABBREVS, variables_of(types, size // 2 // 7, lambda i: b"\x04v\0" + u32(arrays[0] + len(one) * (i % count))), debug_str=b"int\0")


def variables_that_refer_to_each_other(size):
    """Origins in a loop: none has a name."""
    count = size // 5
    begin = FUNCTION + len(code(0x1000, 16))
    return dwarf(ABBREVS, variables_of(b"", count, lambda i: b"\x09" + u32(begin + 5 * ((i + 1) % count))))


def one_list_of_many_functions(size):
    """The same variables everywhere."""
    count = size // 120
    body = b"".join(code(0x1000 + 16 * i, 8) + (b"\x03" + u32(0) + u32(FUNCTION)) * 10 + b"\0" for i in range(count))
    return dwarf(ABBREVS, root + b"\x06" + u32(0) + body + b"\0", debug_str=b"int\0")


def lists_of_one_name(size):
    """Only the last of each counts."""
    count = size // 9
    return dwarf(ABBREVS, variables_of(b"\x06" + u32(0), count, lambda i: b"\x03" + u32(0) + u32(FUNCTION)), debug_str=b"int\0")


def nested_calls(size):
    """Inlined calls in each other, with a variable each."""
    call = abbrev(13, INLINED, 1, (LOW_PC, ADDR), (HIGH_PC, DATA4))
    count = min(size // 20, 1000)
    again = size // 20 // count
    calls = (b"\x0d" + u64(0x1000) + u32(8) + b"\x04v\0" + u32(FUNCTION)) * count + b"\0" * count
    body = b"".join(code(0x1000 + 16 * i, 8) + calls + b"\0" for i in range(again))
    return dwarf(ABBREVS + call, root + b"\x06" + u32(0) + body + b"\0", debug_str=b"int\0")


GENERATORS = {f.__name__.replace("_", " "): (f, VARIABLES) for f in (
    one_long_name, suffixes_of_a_name, pointers_in_a_loop, one_long_chain, pointers_to_a_long_name, functions_of_functions,
    one_long_function_type, arrays_of_many_dimensions, variables_that_refer_to_each_other, one_list_of_many_functions,
    lists_of_one_name, nested_calls)}
