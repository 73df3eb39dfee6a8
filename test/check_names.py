#!/usr/bin/env python3
"""A debugger's `ptype struct walk` has one answer only if the tag is defined in one file: tags of structs, unions and enums are unique
in lib and service. (Static functions may have short names; a backtrace shows their files.)

usage: check_names.py

Prints each tag that several files define, with the files; status 1 if there are any.
"""
import collections, glob, os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEFINITION = re.compile(r"\b(?:struct|union|enum)\s+(?:__attribute__\(\([^()]*\)\)\s*)?(\w+)\s*\{")
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)


def definitions():
    """The files that define each tag."""
    files = collections.defaultdict(set)
    for folder in ("lib", "service"):
        for path in glob.glob(folder + "/**/*.[ch]", root_dir=ROOT, recursive=True):
            with open(os.path.join(ROOT, path)) as f:
                for tag in DEFINITION.findall(NO_CODE.sub("", f.read())):
                    files[tag].add(path)
    return files


def main():
    files = definitions()
    if not files:
        sys.exit("no struct is defined anywhere: the pattern is wrong")
    found = {tag: sorted(where) for tag, where in files.items() if len(where) > 1}
    for tag, where in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{len(where):3} {tag}: {' '.join(where)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
