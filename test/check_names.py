#!/usr/bin/env python3
"""A profile or a backtrace shows functions without their files: a name that many files use tells nothing there.

usage: check_names.py [MOST]     MOST: in how many files of lib and service a static function's name may occur (default 3)

Prints the names that are in more files, with the files; status 1 if there are any.
"""
import collections, glob, os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEFINITION = re.compile(r"^(?:static (?:[\w]+ [\s*]*)+?\**|SL_ORDER_BY\((?=\w+, ))(\w+)(?:\((?![^;{]*\);)|, )", re.M)


def common(most):
    files = collections.defaultdict(set)
    for path in sorted(glob.glob("lib/**/*.c", root_dir=ROOT, recursive=True) + glob.glob("service/**/*.c", root_dir=ROOT, recursive=True)):
        with open(os.path.join(ROOT, path)) as f:
            for name in DEFINITION.findall(f.read()):
                files[name].add(path)
    return {name: sorted(where) for name, where in files.items() if len(where) > most}


def main():
    found = common(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    for name, where in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{len(where):3} {name}: {' '.join(where)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
