"""Runs every function test_* of the files test_*.py of one folder and those in it, for the run.py of that folder.

With --jobs several run at once, each in a process of its own with what the tests share. Those of a file that says ALONE = True run
after all others, one by one: they measure times or memory, or make something scarce. --only runs but these, or but the others.

The longest begin first, by the seconds that they took the last time: --times names the file that keeps them.

A test that takes longer than LONGEST, or than it says itself with @runner.limit, has failed, and the log says where it and the programs
it started were. After MOST_FAILURES the rest is not run: something is wrong that they all need, and each would wait for it.

With SYMLOOM_TEST_EFFORT=all, tests that try something by chance try it more often: see effort()."""
import argparse, concurrent.futures, contextlib, faulthandler, fcntl, fnmatch, glob, importlib, json, multiprocessing, os, shutil, signal
import subprocess, sys, tempfile, time, traceback

LONGEST = 120  # seconds
USUAL = 5      # seconds of a test that has not run before
AGAIN = 30     # seconds that the end of such a test may take, before what it started is killed and it is interrupted again
MOST_FAILURES = 20


def limit(seconds):
    """For a test that may take longer than LONGEST."""
    def mark(test):
        test.limit_s = seconds
        return test
    return mark


def effort(few, most):
    """How often something is tried by chance."""
    return most if os.environ.get("SYMLOOM_TEST_EFFORT") == "all" else few


def limit_of(test):
    return getattr(test, "limit_s", LONGEST) * effort(1, 5)


class Times:
    """Seconds that tests took, by suite and title, in a file that suites share."""

    def __init__(self, path, suite):
        self.path, self.suite, self.new = path, suite, {}
        self.old = self.read().get(suite, {})

    def read(self):
        with contextlib.suppress(OSError, ValueError):
            with open(self.path or "") as f:
                return json.load(f)
        return {}

    def expected(self, title, test):
        return self.old.get(title, getattr(test, "limit_s", USUAL))

    def write(self):
        if not self.path or not self.new:
            return
        with open(self.path + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self.read()
            known.setdefault(self.suite, {}).update(self.new)
            with open(self.path + ".new", "w") as f:
                json.dump(known, f, indent=0, sort_keys=True)
            os.replace(self.path + ".new", self.path)


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
    parser.add_argument("--times", metavar="FILE", type=os.path.abspath)
    parser.add_argument("--only", choices=("together", "alone"))
    parser.add_argument("patterns", nargs="*")
    return parser


def children(pid):
    """The processes that one started, and theirs."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as f:
                for child in map(int, f.read().split()):
                    yield child
                    yield from children(child)


class Watch:
    """Ends a test that takes too long."""

    def __init__(self, seconds):
        self.told, self.seconds = False, seconds
        signal.signal(signal.SIGALRM, self.interrupt)

    def interrupt(self, *_):
        started = list(children(os.getpid()))
        if not self.told:
            self.tell(started)
        for pid in started if self.told else ():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.told = True
        raise TimeoutError(f"it takes longer than {self.seconds} s")

    def tell(self, started):
        sys.stdout.flush()
        faulthandler.dump_traceback(sys.stdout)
        for pid in started:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                with open(f"/proc/{pid}/cmdline") as f:
                    print(f"process {pid}: {f.read().replace(chr(0), ' ')}", flush=True)
                subprocess.run(["eu-stack", "-p", str(pid)], stderr=subprocess.STDOUT, timeout=AGAIN)


def run_test(title, test, work, shared):
    """Returns whether it passed, and its seconds."""
    start, longest = time.monotonic(), limit_of(test)
    line = lambda: f"{title} ({time.monotonic() - start:.1f} s)"
    Watch(longest)
    try:
        signal.setitimer(signal.ITIMER_REAL, longest, AGAIN)
        try:
            test(tempfile.mkdtemp(dir=work), shared)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Exception:
        print(f"FAILED  {line()}")
        traceback.print_exc(file=sys.stdout)
        return False, time.monotonic() - start
    print(f"ok      {line()}", flush=True)
    return True, time.monotonic() - start


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
        good, seconds = run_test(title, test, self.work, self.shared)
        sys.stdout.flush()
        self.printed.seek(0)
        text = self.printed.read().decode(errors="replace")
        self.printed.seek(0)
        self.printed.truncate()
        return good, seconds, text


def worker_begin(*about):
    globals()["worker"] = Worker(*about)


def worker_run(number):
    return worker.run(number)


def run_together(jobs, tests, work, share, times):
    """Yields for each test whether it passed."""
    failures = 0
    tests = sorted(tests, key=lambda test: -times.expected(*test[:2]))
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), worker_begin, (tests, work, share)) as pool:
        runs = {pool.submit(worker_run, number): number for number in range(len(tests))}
        for done in concurrent.futures.as_completed(runs):
            good, times.new[tests[runs[done]][0]], text = done.result()
            print(text, end="", flush=True)
            failures += not good
            yield good
            if failures == MOST_FAILURES:
                return pool.shutdown(cancel_futures=True)


def run_in_turn(tests, work, share, times):
    shared = share(work)
    for title, test, _ in tests:
        good, times.new[title] = run_test(title, test, work, shared)
        yield good


def run(folder, args, share, wanted=lambda test: True):
    """Each test gets a temporary directory and what `share` made in another. Returns the status of the process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for what they run in the background, and so would commands
    work = tempfile.mkdtemp(prefix="symloom-test-")
    tests, results = [test for test in collect(folder, args.patterns, wanted) if args.only in (None, "alone" if test[2] else "together")], []
    together = [test for test in tests if args.jobs > 1 and not test[2]]
    alone = [test for test in tests if test not in together]
    times = Times(args.times, os.path.basename(folder))
    try:
        if together:
            results += run_together(args.jobs, together, work, share, times)
        if alone and results.count(False) < MOST_FAILURES:
            results += run_in_turn(alone, work, share, times)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    times.write()
    print(f"{sum(results)} passed, {len(tests) - sum(results)} failed")
    return not results or not all(results)
