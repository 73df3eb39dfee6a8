#!/usr/bin/env python3
"""Prints the tests that took longest: slowest.py BUILD COUNT, of the unit tests and of the suites whose seconds BUILD/times.json has."""
import contextlib, json, sys

build, count = sys.argv[1], int(sys.argv[2])
seconds = []
with contextlib.suppress(OSError):
    with open(f"{build}/times.json") as f:
        seconds += [(took, f"{suite}: {title}") for suite, tests in json.load(f).items() for title, took in tests.items()]
with contextlib.suppress(OSError):
    with open(f"{build}/meson-logs/testlog.json") as f:
        tests = map(json.loads, f)
        seconds += [(test["duration"], test["name"].split(" / ")[-1]) for test in tests]
print("==> the slowest tests")
for took, title in sorted(seconds, reverse=True)[:count]:
    print(f"{took:7.1f} s  {title}")
