#!/usr/bin/env python3
"""Every key of the configuration is explained, and doc/configuration.md and doc/metrics.md are what the program makes of its tables.

usage: check_reference.py SYMLOOM

Prints what is wrong; status 1 if there is anything. To mend it: a text in service/config/about.c, and
symloom config table >doc/configuration.md; symloom config metrics >doc/metrics.md
"""
import os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def printed(*command):
    return subprocess.run([sys.argv[1], *command], capture_output=True, text=True, check=True).stdout


def main():
    made = printed("config", "table")
    wrong = [f"{key}: has no text in service/config/about.c" for key in re.findall(r"^\| `([\w.]+)` \|.*\|  \|$", made, re.M)]
    table = read("service/config/keys.c")
    texts = set(re.findall(r'^ +\{"([\w.\[\]]+)",', read("service/config/about.c"), re.M))
    for group, names in re.findall(r'^    \{"(sources\[\][\w.]*)", KEY_\w+, NULL,\s*"([^"]*)"\}', table, re.M):
        wrong += [f"{group}.{name}: has no text in service/config/about.c" for name in names.split() if f"{group}.{name}" not in texts]
    if made != read("doc/configuration.md"):
        wrong.append("doc/configuration.md is not current: symloom config table >doc/configuration.md")
    if printed("config", "metrics") != read("doc/metrics.md"):
        wrong.append("doc/metrics.md is not current: symloom config metrics >doc/metrics.md")
    print("\n".join(wrong) or f"{made.count(chr(10) + '| `')} keys are explained")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
