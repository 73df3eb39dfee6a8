"""Source maps and scripts that make their readers go back, search or sort again and again."""

WRITE = ["readers", "smcache", "{file}"]


def filled(size, piece, head=b"", tail=b""):
    """The head, pieces (bytes, or what a function makes of their number) and the tail."""
    out, number, left = [head], 0, size - len(head) - len(tail)
    while left > 0:
        out.append(piece(number) if callable(piece) else piece)
        left -= len(out[-1])
        number += 1
    return b"".join(out) + tail


MAPPINGS = b'{"sources":["a","b"],"names":["n"],"mappings":"'


def mappings_without_end(size):
    return filled(size, b"A,", MAPPINGS, b'"}')


def lines_without_end(size):
    return filled(size, b";", MAPPINGS, b'A"}')


def columns_that_go_back(size):
    return filled(size, b"+gggAAAA,/gggAAAA,", MAPPINGS, b'"}')


def lines_and_columns_far_apart(size):
    return filled(size, b"+/////BAAA,;", MAPPINGS, b'"}')


def tokens_at_one_place(size):
    return filled(size, b"AACA,", MAPPINGS, b'"}')


def a_range_for_each(size):
    return filled(size // 2, b"C,", MAPPINGS, b'",') + filled(size // 2, b"B", b'"rangeMappings":"', b'"}')


def functions_in_one_range(size):
    return b'{"sources":["a"],"mappings":"AAAA","rangeMappings":"A"}' + b"\0" + filled(size, b"f=()=>{};")


def numbers_of_ranges_told_twice(size):
    return MAPPINGS + b'A","rangeMappings":"' + filled(size, b"A") + b'"}'


def many_sources(size):
    return filled(size, lambda i: b'"%d",' % i, b'{"sourceRoot":"r","sources":[', b'"x"],"mappings":"AAAA"}')


def sources_behind_a_long_root(size):
    return filled(size, b'"x",', b'{"sourceRoot":"' + b"r" * 2000 + b'","sources":[', b'"x"]}')


def the_same_names(size):
    return filled(size, b'"n",', b'{"sources":["a"],"names":[', b'"n"],"mappings":"AAAAA"}')


def contents_of_escapes(size):
    return filled(size, b"\\u000a", b'{"sources":["a"],"sourcesContent":["', b'"],"mappings":"AAAA"}')


def sections(size):
    return filled(size, lambda i: b'{"offset":{"line":%d,"column":0},"map":{"sources":["a"],"mappings":"AAAA"}},' % i,
                  b'{"sections":[', b'{"offset":{"line":9999999,"column":0},"map":{}}]}')


def sections_from_behind(size):
    return filled(size, lambda i: b'{"offset":{"line":%d,"column":0},"map":{"sources":["a"],"mappings":"AAAA;A"}},' % (999999 - i),
                  b'{"sections":[', b'{"offset":{"line":0,"column":0},"map":{}}]}')


def sections_in_each_other(size):
    head = b'{"sections":[{"offset":{"line":0,"column":1},"map":' * 40
    return filled(size, b'{"offset":{"line":0,"column":0},"map":{}},', head + b'{"sections":[', b'{"offset":{"line":0,"column":0},"map":{}}]}')\
        + b"}]}" * 40


def function_maps_from_behind(size):
    return filled(size, b"DAB,", b'{"sources":["a"],"mappings":"AAAA","x_facebook_sources":[[{"names":["f"],"mappings":"gggEA,', b'"}]]}')


def tokens_in_one_function_map(size):
    return filled(size // 2, b"CACC,", MAPPINGS, b'",') + \
        filled(size // 2, b"CAC,", b'"x_facebook_sources":[[{"names":["f"],"mappings":"', b'"}]]}')


def functions_named_by_their_ends(size):
    script = filled(size // 2, b"f=()=>{};")
    return filled(size // 2, b"IAAAA,KAAA,", MAPPINGS, b'"}') + b"\0" + script


def classes_in_each_other(size):
    script = filled(size // 2, b"class abcdefg{x=")
    depth = script.count(b"{")
    return filled(size // 2, b"CAAAA,", MAPPINGS, b'"}') + b"\0" + script + b"1" + b"}" * depth


def scoped(pieces, tokens=b"AAAA"):
    return b'{"sources":["a"],"names":["n"],"mappings":"' + tokens + b'","scopes":"' + pieces + b'"}'


def scopes_in_each_other(size):
    depth = size // 12
    return scoped(b"BFAAA," * depth + b"CAA," * depth)


def scopes_one_after_the_other(size):
    return scoped(filled(size, b"BFAAA,CAB,", b"BAAA,", b"CAA"))


def calls_inlined_in_each_other(size):
    depth = size // 15
    return scoped(b"BFAAA,CAA," + b"ECBA,IAAA," * depth + b"FB," * depth)


def ranges_in_each_other_with_a_call(size):
    depth = size // 8
    return scoped(b"BFAAA,CAA,ECAA,IAAA," + b"EAB," * depth + b"FB," * depth + b"FA")


def scopes_without_end(size):
    return scoped(filled(size, b"BFAAA,"))


def sections_with_scopes(size):
    return filled(size, lambda i: b'{"offset":{"line":%d,"column":0},"map":{"sources":["a"],"names":["n"],"mappings":"AAAA",'
                  b'"scopes":"BFAAA,CKA,EGAA,FgggBA"}},' % i, b'{"sections":[', b'{"offset":{"line":9999999,"column":0},"map":{}}]}')


GENERATORS = {f.__name__.replace("_", " "): (f, WRITE) for f in (
    mappings_without_end, lines_without_end, columns_that_go_back, lines_and_columns_far_apart, tokens_at_one_place, a_range_for_each,
    functions_in_one_range, numbers_of_ranges_told_twice,
    many_sources, sources_behind_a_long_root, the_same_names, contents_of_escapes, sections, sections_from_behind,
    sections_in_each_other, function_maps_from_behind, tokens_in_one_function_map, functions_named_by_their_ends,
    classes_in_each_other, scopes_in_each_other, scopes_one_after_the_other, calls_inlined_in_each_other,
    ranges_in_each_other_with_a_call, scopes_without_end, sections_with_scopes)}
