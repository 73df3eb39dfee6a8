#!/usr/bin/env python3
"""FAULTS.md and PROMISES.md say which tests show what: each of those tests is to be there.

usage: check_shown.py

The last column of their tables lists tests of test/http; behind "unit:", "cost:", "ops:" or "soak:" they are of that kind, as far as
the next semicolon. What stands in brackets or has no slash is for people.
Prints what is missing; status 1 if anything is.
"""
import fnmatch, glob, importlib, os, re, sys

TEST = os.path.dirname(os.path.abspath(__file__))


def text_of(pattern):
    return "".join(open(path).read() for path in glob.glob(os.path.join(TEST, pattern), recursive=True))


def is_function(folder, name):
    file, _, test = name.partition("/")
    text = text_of(f"{folder}/**/test_{file}.py")
    return bool(re.search(rf"^def test_{test.replace('*', '.*')}\(", text, re.M))


def is_unit(name):
    """A file, or a test in it."""
    if glob.glob(os.path.join(TEST, "unit", name + ".c")):
        return True
    path, _, test = name.rpartition("/")
    return bool(re.search(rf"^(?:FIBER_)?TEST(?:_NAMED|_WITH)?\({re.escape(test)}\b", text_of(f"unit/{path}.c"), re.M))


def is_generator(name):
    sys.path[:0] = [os.path.join(TEST, "cost")] if os.path.join(TEST, "cost") not in sys.path else []
    file, _, generator = name.partition("/")
    if not os.path.exists(os.path.join(TEST, "cost", file + ".py")):
        return False
    known = importlib.import_module(file).GENERATORS
    return any(fnmatch.fnmatchcase(g, generator) or g.startswith(generator + " ") for g in known)


KINDS = {"": lambda name: is_function("http", name), "ops": lambda name: is_function("ops", name), "unit": is_unit,
         "cost": is_generator, "soak": lambda name: name.rstrip("*") in text_of("soak/*.py")}


def named(text):
    """(line, kind, name) of every test in the tables."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|") or line.startswith("|--"):
            continue
        for part in re.sub(r"\([^)]*\)", "", line.rstrip("| ").rpartition("|")[2]).split(";"):
            kind = ""
            for name in part.split(","):
                word, colon, rest = name.strip().partition(":")
                if colon and word in KINDS:
                    kind, name = word, rest
                name = name.strip()
                if kind == "soak" or "/" in name and not name.startswith("`") and " shows" not in name:
                    yield number, kind, name


def main():
    missing = seen = 0
    for file in ("FAULTS.md", "PROMISES.md"):
        for number, kind, name in named(open(os.path.join(TEST, file)).read()):
            seen += 1
            if not KINDS[kind](name):
                print(f"{file}:{number}: there is no {kind or 'http'} test {name}")
                missing += 1
    return 1 if missing or seen < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
