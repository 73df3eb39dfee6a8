#!/usr/bin/env python3
"""FAULTS.md names what shows each fault: whether all of that is there. Prints what is not; status 1 if there is any."""
import fnmatch, glob, os, re, sys

TEST = os.path.dirname(os.path.abspath(__file__))
KIND = re.compile(r"^(unit|ops|soak): ")
TITLE = re.compile(r"^([a-z_]+/[a-z_0-9*]+|[a-z_]+\*?)(?: \(.*\))?$")


def read(path):
    with open(os.path.join(TEST, path)) as f:
        return f.read()


def titles():
    """What may be named, for each kind: tests of Python as `file/test`, programs of test/unit, faults of the soak."""
    found = {kind: {f"{os.path.basename(path)[5:-3]}/{name}" for path in glob.glob(f"{kind}/**/test_*.py", root_dir=TEST, recursive=True)
                    for name in re.findall(r"^def test_(\w+)", read(path), re.M)} for kind in ("http", "ops")}
    found["unit"] = {path[5:-2] for path in glob.glob("unit/*/*.c", root_dir=TEST)}
    found["soak"] = set(re.findall(r"def fault_(\w+)", read("soak/soak.py")))
    return found


def named():
    """(kind, title) for all that the table names; what is said in words is passed over."""
    for row in re.findall(r"^\| .* \| (.*) \|$", read("FAULTS.md"), re.M)[1:]:
        for part in row.split("; "):
            kind = KIND.match(part)
            for item in part[kind.end() if kind else 0:].split(", "):
                title = TITLE.match(item)
                if title:
                    yield kind[1] if kind else "http", title[1]


def main():
    there, wanted = titles(), list(named())
    missing = [f"{kind}: {title}" for kind, title in wanted if not fnmatch.filter(there[kind], title)]
    print("\n".join(missing), end="\n" if missing else "")
    return 1 if missing or len(wanted) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
