"""Runs every function test_* of the files test_*.py of one folder and those in it, for the run.py of that folder.

With --jobs several run at once, each in a process of its own with what the tests share. Those of a file that says ALONE = True run
after all others, one by one: they measure times or memory, or make something scarce."""
import argparse, concurrent.futures, fnmatch, glob, importlib, multiprocessing, os, shutil, signal, sys, tempfile, time, traceback


def collect(folder, patterns, wanted):
    """Titles, tests, and whether they run alone."""
    paths = sorted(glob.glob(os.path.join(folder, "**", "test_*.py"), recursive=True), key=os.path.basename)
    sys.path[:0] = sorted({os.path.dirname(path) for path in paths} - {folder})  # they share helpers, by their names
    for path in paths:
        name = os.path.basename(path)[:-3]
        module = importlib.import_module(name)
        for key, test in list(vars(module).items()):
            title = f"{name[5:]}/{key[5:]}"
            if key.startswith("test_") and wanted(test) and (not patterns or any(fnmatch.fnmatch(title, p) for p in patterns)):
                yield title, test, getattr(module, "ALONE", False)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True, type=os.path.abspath)
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("patterns", nargs="*")
    return parser


def run_test(title, test, work, shared):
    start = time.monotonic()
    try:
        test(tempfile.mkdtemp(dir=work), shared)
    except Exception:
        print(f"FAILED  {title}")
        traceback.print_exc(file=sys.stdout)
        return False
    print(f"ok      {title} ({time.monotonic() - start:.1f} s)", flush=True)
    return True


class Worker:
    """Of a process that runs tests beside others: what they print is kept, to be printed in one piece."""

    def __init__(self, tests, work, share):
        self.tests, self.work = tests, tempfile.mkdtemp(dir=work)
        self.shared = share(self.work)
        self.printed = tempfile.TemporaryFile()
        for fd in (1, 2):
            os.dup2(self.printed.fileno(), fd)

    def run(self, number):
        title, test, _ = self.tests[number]
        good = run_test(title, test, self.work, self.shared)
        sys.stdout.flush()
        self.printed.seek(0)
        text = self.printed.read().decode(errors="replace")
        self.printed.seek(0)
        self.printed.truncate()
        return good, text


def worker_begin(*about):
    globals()["worker"] = Worker(*about)


def worker_run(number):
    return worker.run(number)


def run_together(jobs, tests, work, share):
    """Yields for each test whether it passed."""
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), worker_begin, (tests, work, share)) as pool:
        for done in concurrent.futures.as_completed([pool.submit(worker_run, number) for number in range(len(tests))]):
            good, text = done.result()
            print(text, end="", flush=True)
            yield good


def run_in_turn(tests, work, share):
    shared = share(work)
    for title, test, _ in tests:
        yield run_test(title, test, work, shared)


def run(folder, args, share, wanted=lambda test: True):
    """Each test gets a temporary directory and what `share` made in another. Returns the status of the process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for what they run in the background, and so would commands
    work = tempfile.mkdtemp(prefix="symloom-test-")
    tests, results = list(collect(folder, args.patterns, wanted)), []
    together = [test for test in tests if args.jobs > 1 and not test[2]]
    alone = [test for test in tests if test not in together]
    try:
        if together:
            results += run_together(args.jobs, together, work, share)
        if alone:
            results += run_in_turn(alone, work, share)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return not results or not all(results)
