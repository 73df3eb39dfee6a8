"""Mappings of the JVM that make their reader go back, compare or clear again and again; and stack traces with long lines."""

CONVERT = ["symbolicate", "--mapping", "{file}", "--output", "{out}", "/dev/null"]
INSPECT = ["inspect", "{file}"]
HEAD = b"A -> a:\n    int f -> f\n"


def filled(size, piece, head=HEAD):
    """The head, then pieces: bytes, or what a function makes of their number."""
    out, number = [head], 0
    left = size - len(head)
    while left > 0:
        out.append(piece(number) if callable(piece) else piece)
        left -= len(out[-1])
        number += 1
    return b"".join(out)


def classes_on_one_line(size):
    return filled(size, b"a -> b:")


def lines_that_end_at_cr(size):
    return filled(size, b"a -> b:\r")


def lines_of_blanks(size):
    return filled(size, b" \n")


def headers_in_a_row(size):
    return filled(size, b"#\n")


def members_of_one_method(size):
    return filled(size, lambda i: b"    %d:%d:void f(int):%d -> m\n" % (i, i + 9, i))


def names_of_one_method(size):
    return filled(size, lambda i: b"    void f%d(%d):7 -> m\n" % (i, i))


def one_large_class_and_many_small(size):
    large = filled(size // 2, lambda i: b"    void f%d() -> %d\n" % (i, i))
    return filled(size, lambda i: b"A%d -> a%d:\n    int f() -> f\n" % (i, i), large)


def one_class_listed_again(size):
    return filled(size, lambda i: b"A -> a:\n    void f() -> m\n")


def comments_of_one_method(size):
    rule = b'# {"id":"com.android.tools.r8.rewriteFrame","conditions":["throws(Lx%d;)"],"actions":["removeInnerFrames(1)"]}\n'
    return filled(size, lambda i: rule % i, b"A -> a:\n    void f() -> m\n")


def positions_of_one_call(size):
    body = filled(size, lambda i: b'"%d":1,' % i, b'A -> a:\n    void f() -> m\n# {"id":"com.android.tools.r8.outlineCallsite","positions":{')
    return body[:-1] + b"}}\n"


def comments_of_many_members(size):
    return filled(size, b'{"x":1},', b'A -> a:\n    void f() -> m\n# {"x":[')[:-1] + b'],"id":"other"}\n'


def marked_methods(size):
    return filled(size, lambda i: b'    void f%d() -> m\n# {"id":"com.android.tools.r8.synthesized"}\n' % i)


# ---- traces: a companion of the mapping, half of the size ----

TRACE = ["symbolicate", "--type", "trace", "--mapping", "{file}", "--output", "{out}", "{file}.trace"]


def traced(mapping, line):
    """The generator of such a mapping with a trace of this line, again and again."""
    def make(size):
        return {"": mapping(size // 2), ".trace": filled(size // 2, line, b"")}
    return make


TRACES = {
    "inline chains in traces": traced(lambda size: filled(size, b"    1:1:void x():1 -> b\n"), b"\tat a.b(S:1)\n"),
    "overloads without lines in traces": traced(lambda size: filled(size, lambda i: b"    void x%d() -> b\n" % i), b"\tat a.b(S)\n"),
    "overlapping ranges in traces": traced(lambda size: filled(size, lambda i: b"    1:65535:void x%d():1:65535 -> b\n" % i), b"\tat a.b(S:77)\n"),
    "long names in traces": traced(lambda size: b"A" * (size - 40) + b" -> a:\n    1:1:void x():1 -> b\n", b"\tat a.b(S:1)\n"),
    "brackets in traces": traced(lambda size: HEAD, lambda i: b"\tat a.b" + b"(" * 2000 + b"\n"),
    "frames of no class in traces": traced(lambda size: HEAD, b"at a/.b("),
    "words before brackets in traces": traced(lambda size: HEAD, b"at at (at a.b ("),
    "exceptions in traces": traced(lambda size: HEAD, b"a: "),
    "classes in traces": traced(lambda size: filled(size, lambda i: b"A%d -> a%d:\n    int f -> f\n" % (i, i)), lambda i: b"x: a%d: m\n" % i),
}

GENERATORS = {f.__name__.replace("_", " "): (f, CONVERT) for f in (
    classes_on_one_line, lines_that_end_at_cr, lines_of_blanks, headers_in_a_row, members_of_one_method, names_of_one_method,
    one_large_class_and_many_small, one_class_listed_again, comments_of_one_method, positions_of_one_call, comments_of_many_members,
    marked_methods)} | {"lines that end at cr, inspected": (lines_that_end_at_cr, INSPECT)} | {
        name: (make, TRACE) for name, make in TRACES.items()}
