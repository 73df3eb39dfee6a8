#!/usr/bin/env python3
"""Every message that doc/troubleshooting.md explains is one that the program prints.

usage: check_messages.py

Messages are the headings in code: "### `cannot listen on ...`". What stands between "..." has to be in a text of the sources, in that
order. Prints those that are not; status 1 if there is one.
"""
import glob, os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "doc/troubleshooting.md"
# A text in C, and the conversions that hold what differs each time: %s, %zu, SL_STR_FMT.
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
BETWEEN = re.compile(r'"(?:\s|SL_STR_FMT)*"')


def texts():
    """Texts of the sources, neighbouring ones joined."""
    for folder in ("lib", "service"):
        for path in glob.glob(os.path.join(ROOT, folder, "**/*.c"), recursive=True):
            with open(path, errors="replace") as f:
                yield from LITERAL.findall(BETWEEN.sub(lambda gap: "%s" if "FMT" in gap[0] else "", f.read()))


def main():
    with open(os.path.join(ROOT, PAGE)) as f:
        messages = re.findall(r"^### `(.+)`$", f.read(), re.M)
    known = sorted(set(texts()), key=len)
    wrong = []
    for message in messages:
        pattern = re.compile(".*".join(map(re.escape, message.split("..."))))
        if not any(pattern.search(text) for text in known):
            wrong.append(f"{PAGE}: nothing prints {message!r}")
    if len(messages) < 30:
        wrong.append(f"{PAGE}: {len(messages)} messages")
    print("\n".join(wrong) or f"{len(messages)} messages")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
