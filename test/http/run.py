#!/usr/bin/env python3
"""Runs the HTTP tests: every function test_* of the files test_*.py beside this one.

usage: run.py --symloom PATH [--npm] [--corpus DIR] [PATTERN ...]

With --npm the tests that install a server from npm's registry, and only those. With --corpus also those that need
the conformance corpus. A test gets a temporary directory and the shared objects. The last line is "N passed, N failed".
"""
import argparse, fnmatch, glob, importlib, os, shutil, sys, tempfile, time, traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness


def is_wanted(test, npm):
    return getattr(test, "from_npm", False) == npm and (harness.CORPUS or not getattr(test, "from_corpus", False))


def collect(patterns, npm):
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "test_*.py"))):
        name = os.path.basename(path)[:-3]
        module = importlib.import_module(name)
        for key, test in list(vars(module).items()):
            title = f"{name[5:]}/{key[5:]}"
            if key.startswith("test_") and is_wanted(test, npm) and \
                    (not patterns or any(fnmatch.fnmatch(title, p) for p in patterns)):
                yield title, test


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True)
    parser.add_argument("--npm", action="store_true")
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--corpus")
    args = parser.parse_args()
    harness.CORPUS = args.corpus
    harness.SYMLOOM = os.path.abspath(args.symloom)
    work = tempfile.mkdtemp(prefix="symloom-http-")
    passed = failed = 0
    try:
        objects = harness.Objects(work)
        for title, test in collect(args.patterns, args.npm):
            start = time.monotonic()
            try:
                test(tempfile.mkdtemp(dir=work), objects)
                passed += 1
                print(f"ok      {title} ({time.monotonic() - start:.1f} s)", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED  {title}", flush=True)
                traceback.print_exc(file=sys.stdout)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
