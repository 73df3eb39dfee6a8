#!/usr/bin/env python3
"""What hostile files cost: each generator makes a file of a size and one of double the size, and converting the second may
take at most 2.3 times the instructions of the first, if it takes more than the 100 for each byte that a well-made file takes. The
start of the program, what it does for an empty file, is not counted.

usage: run.py --symloom PATH --readers PATH [--limits] [PATTERN ...]

With --limits, files of 1 MiB are converted instead, which may take at most a second of CPU time and 200 MB of memory for each
MB: figures of the machine at hand, to be looked at by people. Instructions are counted by callgrind in a release build: neither
the machine nor its load matters. A module of generators has GENERATORS = {name: (function of a size in bytes that returns a file,
arguments)}, and more of them, for --limits alone, in LIMITS. In the arguments, {file} is the file and {out} one that may be
written, and where the first is "readers", that program gets the others (readers.c), else symloom all of them. A file that has
companions is a dict: what their names have more than its own, "" for the file, and their contents. Where the arguments are
"service", the function returns a request (hostile.py), which the service answers with at most MOST_ANSWER bytes; there is nothing
of it in --limits, but rows of `./x soak storm`. The last line is "N passed, N failed".
"""
import argparse, concurrent.futures, contextlib, fnmatch, glob, importlib, os, re, resource, subprocess, sys, tempfile, threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "http")]
import harness, hostile

SIZE, MOST, WELL_MADE = 20_000, 2.3, 100
MOST_ANSWER = 1 << 17  # so that it is reached
LIMITS_SIZE, MOST_SECONDS, MOST_MEMORY = 1 << 20, 1, 200  # for each MB, at least one
GIVEN_UP = 30  # seconds of CPU time for each MB


def command_for(programs, arguments, data, work):
    """The command that reads this content."""
    paths = {"file": os.path.join(work, "file"), "out": os.path.join(work, "out")}
    for suffix, content in (data if isinstance(data, dict) else {"": data}).items():
        with open(paths["file"] + suffix, "wb") as f:
            f.write(content)
    own = arguments[0] == "readers"
    return [programs["readers" if own else "symloom"]] + [a.format(**paths) for a in arguments[own:]]


def size_of(data):
    if isinstance(data, hostile.Hostile):
        return data.size
    return sum(map(len, data.values())) if isinstance(data, dict) else len(data)


class Spawner:
    """A program under callgrind that runs itself again and again, each time with other arguments (spawn.c)."""

    def __init__(self, program, library):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env={**os.environ, "LD_PRELOAD": library})

    def instructions(self, arguments):
        self.process.stdin.write("\t".join(arguments).encode() + b"\n")
        self.process.stdin.flush()
        printed, ended = b"", None
        for line in self.process.stdout:
            ended = re.fullmatch(rb"ENDED (\d+)\n", line)
            if ended:
                break
            printed += line
        counted = re.search(rb"Collected : (\d+)", printed)
        if not ended or os.WIFSIGNALED(int(ended[1])) or not counted:
            raise RuntimeError(f"ended with {ended and ended[1]}: {printed[-1000:].decode(errors='replace')}")
        return int(counted[1])

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Spawners:
    """One of each program for each thread, started when it is first wanted."""

    def __init__(self, library):
        self.library, self.started = library, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for spawner in self.started.values():
            spawner.end()

    def instructions(self, program, *arguments):
        key = threading.get_ident(), program
        if key not in self.started:
            self.started[key] = Spawner(program, self.library)
        return self.started[key].instructions(arguments)


def build_library(work):
    path = os.path.join(work, "spawn.so")
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path, os.path.join(HERE, "spawn.c")],
                   check=True)
    return path


def instructions_of_service(program, request, work):
    """Of its life with this request; None: without any."""
    path = os.path.join(work, "service")
    with open(path, "w") as f:
        f.write(f'#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file="{work}/callgrind" "{program}" "$@"\n')
    os.chmod(path, 0o755)
    with request.upstream if request else contextlib.nullcontext(), \
            harness.Service(work, {"max_response_bytes": MOST_ANSWER, "cache_dir": None}, program=path) as service:
        if request:
            path, headers, body = request.request()
            status, _, answer = service.request("POST", path, body, headers)
            if status != 200:
                raise RuntimeError(f"{status} {answer[:1000]!r}")
        if service.stop() != 0:
            raise RuntimeError(f"the service did not end well: {service.logged()[-1000:]}")
        return int(re.search(r"Collected : (\d+)", service.logged())[1])


def doubled(programs, spawners, generator, starts):
    """Whether that is good, and a sentence. `starts` keeps what each command takes for an empty file."""
    make, arguments = generator
    of_service = arguments[0] == "service"
    with tempfile.TemporaryDirectory(prefix="symloom-cost-") as work:
        take = lambda data: instructions_of_service(programs["symloom"], data, work) if of_service else \
            spawners.instructions(*command_for(programs, arguments, data, work))
        if tuple(arguments) not in starts:
            starts[tuple(arguments)] = take(None if of_service else b"")
        files = [make(SIZE), make(2 * SIZE)]
        small, large = [take(data) - starts[tuple(arguments)] for data in files]
    if small <= 0:
        raise RuntimeError(f"a file of {size_of(files[0])} bytes takes no more instructions than an empty one: "
                           "it was not read, so this shows nothing")
    return large <= max(MOST * small, WELL_MADE * size_of(files[1])), f"{small / 1e6:.1f} to {large / 1e6:.1f} million, {large / small:.2f} times"


def limits(programs, generator):
    make, arguments = generator
    data = make(LIMITS_SIZE)
    mb = max(1, size_of(data) / 1e6)
    most = int(GIVEN_UP * mb)
    with tempfile.TemporaryDirectory(prefix="symloom-cost-") as work:
        process = subprocess.Popen(command_for(programs, arguments, data, work), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, memory = (usage.ru_utime + usage.ru_stime) / mb, usage.ru_maxrss / 1024 / mb
    good = seconds <= MOST_SECONDS and memory <= MOST_MEMORY and process.returncode >= 0
    return good, f"{size_of(data) / 1e6:.2f} MB, {seconds:.2f} s and {memory:.0f} MB for each, ended with {process.returncode}"


def check_programs(programs):
    """Ends the run when one of them was not built."""
    for name, path in programs.items():
        if not os.access(path, os.X_OK):
            target = "test/cost/readers" if name == "readers" else "service/cli/symloom"
            sys.exit(f"cannot run {path}: build it first, with `ninja -C build {target}`")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True, type=os.path.abspath)
    parser.add_argument("--readers", required=True, type=os.path.abspath)
    parser.add_argument("--limits", action="store_true")
    parser.add_argument("patterns", nargs="*")
    args = parser.parse_args()
    sys.path.insert(0, HERE)
    generators = {}
    for path in sorted(glob.glob(os.path.join(HERE, "*.py"))):
        if path != os.path.abspath(__file__):
            module = os.path.basename(path)[:-3]
            for kind in ("GENERATORS", "LIMITS") if args.limits else ("GENERATORS",):
                generators |= {f"{module}/{name}": g for name, g in getattr(importlib.import_module(module), kind, {}).items()
                               if not (args.limits and g[1][0] == "service")}
    names = [n for n in generators if not args.patterns or any(fnmatch.fnmatch(n, p) for p in args.patterns)]
    programs = {"symloom": args.symloom, "readers": args.readers}
    check_programs(programs)
    passed, failed, starts = 0, 0, {}
    with tempfile.TemporaryDirectory(prefix="symloom-cost-") as work, Spawners(build_library(work)) as spawners, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        judge = lambda g: limits(programs, g) if args.limits else doubled(programs, spawners, g, starts)
        runs = {name: pool.submit(judge, generators[name]) for name in names}
        for name, run in runs.items():
            try:
                good, what = run.result()
            except Exception as error:
                good, what = False, str(error)
            passed += good
            failed += not good
            print(f"{'ok     ' if good else 'FAILED '} {name} ({what})", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
