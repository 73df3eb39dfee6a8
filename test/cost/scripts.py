"""Scripts that nest, and of which only the end shows what the beginning was."""

SCOPES = ["readers", "scopes", "{file}"]
COMMENTS = ["readers", "comments", "{file}"]


def repeated(piece):
    return lambda size: piece * (size // len(piece))


def nested(opening, middle, closing):
    """So much of both that the size is reached. Deeper than the limit there is nothing to read."""
    def make(size):
        depth = size // (len(opening) + len(closing))
        return opening * depth + middle + closing * depth
    return make


def many_nested(opening, middle, closing, depth):
    """Nests as deep as that, one after another."""
    return repeated(opening * depth + middle + closing * depth + b";\n")


def late_arrows(size):
    """Each arrow begins before all that is inside its parameters."""
    depth = min(size // 20, 4000)
    functions = b"function(){}," * (max(0, size - depth * 10) // 13)
    return b"(a=" * depth + b"[" + functions + b"]" + b")=>1" * depth


def long_names(size):
    """Methods in an object within objects: each name has all of them."""
    depth = 1000
    return b"a={" + b"b:{" * depth + b"c(){}," * ((size - 4 * depth) // 6) + b"}" * depth + b"}"


def before_comments(piece):
    """Only who reads what is before these comments knows whether they are some."""
    return lambda size: repeated(piece)(size) + b"\n//# sourceMappingURL=a \"\n//# debugId=a \""


GENERATORS = {
    "parentheses": (nested(b"(", b"a", b")"), SCOPES),
    "nests of parentheses": (many_nested(b"(", b"()=>1", b")", 500), SCOPES),
    "nests of arrows' parameters": (many_nested(b"(a=", b"1", b")=>2", 300), SCOPES),
    "arrows of arrows": (many_nested(b"a=>", b"1", b"", 1000), SCOPES),
    "arrows with much in their parameters": (late_arrows, SCOPES),
    "async calls": (many_nested(b"async(", b"()=>1", b")", 300), SCOPES),
    "async names": (repeated(b"async\na\n"), SCOPES),
    "templates": (many_nested(b"`${", b"()=>1", b"}`", 400), SCOPES),
    "conditions": (repeated(b"a?b:"), SCOPES),
    "nested conditions": (many_nested(b"a?", b"()=>1", b":b", 500), SCOPES),
    "assignments": (lambda size: b"a.b[c]=" * (size // 7) + b"()=>1", SCOPES),
    "assignments in subscripts": (many_nested(b"a[b=", b"()=>1", b"]", 500), SCOPES),
    "long chains": (lambda size: b"a" + b".b" * (size // 2) + b"=()=>1", SCOPES),
    "patterns": (many_nested(b"[{a:", b"b=()=>1", b"}]", 300), SCOPES),
    "patterns that are assigned to": (many_nested(b"[", b"a=()=>1", b"]=b", 300), SCOPES),
    "objects": (many_nested(b"({a:", b"()=>1", b"})", 500), SCOPES),
    "names of many components": (long_names, SCOPES),
    "calls": (many_nested(b"f(", b"()=>1", b")", 500), SCOPES),
    "functions": (many_nested(b"(function a(){", b"", b"})", 500), SCOPES),
    "classes": (many_nested(b"(class a{b=", b"()=>1", b"})", 300), SCOPES),
    "blocks": (many_nested(b"{", b"()=>1", b"}", 500), SCOPES),
    "ifs": (repeated(b"if(a)b;else "), SCOPES),
    "unclosed parentheses": (repeated(b"("), SCOPES),
    "unclosed comments": (repeated(b"/*"), SCOPES),
    "unclosed templates": (repeated(b"`${"), SCOPES),
    "regular expressions": (repeated(b"/[/]/g/ 1\n/a/.b\n"), SCOPES),
    "comments": (repeated(b"/**/a//\n;"), SCOPES),
    "escapes in names": (repeated(b"\\u{61}"), SCOPES),
    "words that may be declarations": (repeated(b"let\n"), SCOPES),
    "comments behind unclosed regular expressions": (before_comments(b"(/["), COMMENTS),
    "comments behind regular expressions that end early": (before_comments(b"(\\/"), COMMENTS),
    "comments behind unclosed templates": (before_comments(b"`${"), COMMENTS),
    "comments behind unclosed comments": (before_comments(b"/*"), COMMENTS),
    "many comments in texts": (repeated(b"'//# sourceMappingURL=a';"), COMMENTS),
    "in behind assignments": (lambda size: b"for(a=" + b"b=" * (size // 8) + b"c in d" * (size // 8), SCOPES),
}
