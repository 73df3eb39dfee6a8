"""Runs every function test_* of the files test_*.py of one folder and those in it, for the run.py of that folder."""
import argparse, fnmatch, glob, importlib, os, shutil, signal, sys, tempfile, time, traceback


def collect(folder, patterns, wanted):
    paths = sorted(glob.glob(os.path.join(folder, "**", "test_*.py"), recursive=True), key=os.path.basename)
    sys.path[:0] = sorted({os.path.dirname(path) for path in paths} - {folder})  # they share helpers, by their names
    for path in paths:
        name = os.path.basename(path)[:-3]
        module = importlib.import_module(name)
        for key, test in list(vars(module).items()):
            title = f"{name[5:]}/{key[5:]}"
            if key.startswith("test_") and wanted(test) and (not patterns or any(fnmatch.fnmatch(title, p) for p in patterns)):
                yield title, test


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True, type=os.path.abspath)
    parser.add_argument("patterns", nargs="*")
    return parser


def run(folder, args, share, wanted=lambda test: True):
    """Each test gets a temporary directory and what `share` made in another. Returns the status of the process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for what they run in the background, and so would commands
    work = tempfile.mkdtemp(prefix="symloom-test-")
    passed = failed = 0
    try:
        shared = share(work)
        for title, test in collect(folder, args.patterns, wanted):
            start = time.monotonic()
            try:
                test(tempfile.mkdtemp(dir=work), shared)
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
