"""What a newcomer meets first: help that fits, options that do nothing, inputs that are of another kind, tables on a terminal."""
import os, re, signal, struct, subprocess, termios, fcntl
import harness
from harness import contains, equal, ok, symloom, terminal

def commands():
    return re.findall(r"^  ([a-z][a-z-]*) ", ok("-h"), re.M)


def on_a_terminal(columns, *words):
    """Standard output, as a terminal of so many columns has it."""
    ours, theirs = terminal()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([harness.SYMLOOM, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL,
                               env={**os.environ, "NO_COLOR": "1", "TERM": "xterm"})
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    equal(process.wait(harness.DEADLINE), 0)
    return text.decode().replace("\r\n", "\n").splitlines()


def test_help_fits_80_columns_and_ten_options_a_group(work, files):
    """Lines of at most 80 columns, groups of at most ten options, each of them once; -h is the first group."""
    found = commands()
    equal({"lookup", "symbolicate", "run"} <= set(found), True, found)
    for command in [[], *([c] for c in found)]:
        text, short = ok(*command, "--help"), ok(*command, "-h")
        equal([line for line in text.splitlines() if len(line) > 80], [], command)
        names, count = [], 0
        for line in text.splitlines():
            option = re.match(r"  (?:-., |    )--([a-z0-9-]+)", line)
            count = count + 1 if option else count if line.startswith("   ") else 0
            equal(count <= 10, True, (command, line))
            names += [option[1]] if option else []
        equal((sorted(set(names)), "\nOther options:\n" in text), (sorted(names), False), command)
        equal(set(re.findall(r"^  (?:-., |    )--([a-z0-9-]+)", short, re.M)) <= set(names), True, command)
    assert ok("symbolicate", "-h").count("\n") < 40 < ok("symbolicate", "--help").count("\n")
    contains(ok("symbolicate", "-h"), "Most used:", "--symbols")


def test_global_options_without_effect_are_accepted(work, files):
    t = files.get("t")
    plain = symloom("lookup", "-e", t, "0x0")
    for words in (["--offline", "--log-level", "debug", "lookup", "-e", t, "0x0"], ["lookup", "-e", t, "0x0", "--offline", "--log-level=debug"]):
        told = symloom(*words)
        equal((told.status, told.out), (plain.status, plain.out))
        equal(told.err, "note: --log-level has no effect on 'lookup'\nnote: --offline has no effect on 'lookup'\n")
        equal(symloom("-q", *words).err, "")
    equal(symloom("--color", "never", "version").err, "note: --color has no effect on 'version'\n")
    for words in (["-v", "lookup"], ["--verbose", "lookup"], ["lookup", "-v"]):  # not the style that lookup calls verbose
        told = symloom(*words, "-e", t, "0x0")
        equal((told.out, told.err), (plain.out, "note: --verbose has no effect on 'lookup'\n"), words)
    assert "Filename:" in ok("lookup", "--verbose", "-e", t, "0x0")
    for words in (["-v", "cleanup"], ["cleanup", "-v"], ["cleanup", "--verbose"]):
        equal(symloom(*words, "--cache-dir", work).err.count("no effect"), 0)


def put(work, name, text):
    path = os.path.join(work, name)
    with open(path, "wb") as f:
        f.write(text)
    return path


TRACE = b"java.lang.IllegalStateException: sold out\n\tat a.b.c(SourceFile:12)\n\tat a.b.d(Unknown Source:3)\n"
LOG = b"11-28 10:00:00.000  1  1 E AndroidRuntime: java.lang.Error\n11-28 10:00:00.000  1  1 E AndroidRuntime: \tat a.e.f(SourceFile:1)\n"
STACK = b"Error: x\n    at f (http://x/a.js:1:2)\n"
PROFILE = b'{"meta": {"version": 24}, "threads": [], "libs": []}'


def test_error_names_the_kind_of_an_unsupported_input(work, files):
    java = "error: this looks like a Java stack trace: pass --mapping FILE, the mapping of ProGuard or R8\n"
    for name, text, status, said in (
            ("trace", TRACE, 3, java), ("log", LOG, 3, java), ("crlf", TRACE.replace(b"\n", b"\r\n"), 3, java),
            ("asan", b"==1==ERROR: AddressSanitizer\n    #0 0x4a5f3b in f /src/a.c:12\n", 3, "error: this looks like a sanitizer report"),
            ("go", b"panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/p.go:3 +0x16\n", 3, "error: this looks like a Go stack trace, which is symbolicated already\n"),
            ("dotnet", b"Unhandled exception. System.Exception: x\n   at System.Linq.A.B()\n   at Shop.Main(String[] args) in /src/a.cs:line 12\n", 3,
             "error: this looks like a .NET exception, which is symbolicated already\n"),
            ("python", b"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError\n", 3, "error: this looks like a Python traceback, which"),
            ("rust", b"thread 'main' panicked at p.rs:1:26:\nstack backtrace:\n   0: f\n             at /rustc/1/library/std/src/panicking.rs:665:5\n", 3, "error: this looks like a Rust backtrace, which"),
            ("valgrind", b"==1== Invalid read of size 4\n==1==    at 0x109149: f (a.c:3)\n", 3, "error: this looks like a Valgrind report, which"),
            ("nameless", b"==1== Invalid read of size 4\n==1==    at 0x109149: ??? (in /tmp/a)\n", 3, "error: Valgrind does not print where modules were loaded"),
            ("perf", b"crash  4422 36239.29: 250000 cpu-clock:ppp:\n\t           1469e f+0x7e (/usr/lib/a.so)\n", 3, "error: this looks like a perf text profile, which"),
            ("garbage", os.urandom(3000), 3, "error: unknown input format\n  caused by: supported: minidumps, ")):
        told = symloom("symbolicate", put(work, name, text))
        equal((told.status, told.out, told.err[:len(said)]), (status, "", said))
    told = symloom("symbolicate", put(work, "profile.json", PROFILE), "-f", "compact")
    equal((told.status, told.err.splitlines()[0]), (2, "error: --format compact is not available for profiles (only json)"))
    for options, what in (["--mapping", put(work, "mapping.txt", b"a.B -> c:\n")], "JVM stack traces"), (["--symbols", work], "JavaScript stack traces"):
        told = symloom("symbolicate", "-f", "compact", *options, input=(TRACE if "JVM" in what else STACK).decode())
        equal((told.status, told.err.splitlines()[0]), (2, f"error: --format compact is not available for {what} (only text)"))
    told = symloom("lookup", "--build-id", "ae" * 20, "--debuginfod", "0x401106", env={"DEBUGINFOD_URLS": ""})
    equal((told.status, told.out, told.err.splitlines()[-1]), (1, "", "  caused by: --debuginfod: $DEBUGINFOD_URLS is not set"))
    equal(ok("symbolicate", "--symbols", work, input=STACK.decode()), STACK.decode())  # standard input, without FILE
    equal(ok("symbolicate", "-", "--symbols", work, input=STACK.decode()), STACK.decode())


def test_second_input_is_refused(work, files):
    """What follows a crash are places of symbols, and another crash is none."""
    event = b'{"event_id": "a", "platform": "javascript"}'
    inputs = {"first.txt": STACK, "second.txt": STACK, "event.json": event, "profile.json": PROFILE, "request.json": b'{"stacktraces": []}',
              "dump.dmp": b"MDMP" + bytes(28)}
    paths = {name: put(work, name, text) for name, text in inputs.items()}
    for name, kind in (("second.txt", "a JavaScript stack trace"), ("event.json", "an event"), ("profile.json", "a profile"), ("request.json", "a request"),
                       ("dump.dmp", "a minidump")):
        told = symloom("symbolicate", paths["first.txt"], paths[name])
        equal((told.status, told.out), (2, ""))
        contains(told.err, f"{paths[name]} is {kind} too; symbolicate one at a time")
    code, source_map = put(work, "a.js", b"// Error\n//     at f (http://x/a.js:1:2)\n"), put(work, "a.js.map", b'{"version": 3, "mappings": "", "sources": []}')
    equal(ok("symbolicate", paths["first.txt"], code, source_map), STACK.decode())


def test_tables_are_trimmed_to_the_terminal(work, files):
    """Of long names and paths the middle is left out; also of names that are no ASCII. --no-trim shows all."""
    directory = os.path.join(work, "a" * 60)
    os.mkdir(directory)
    source = put(directory, "long.cc", ("namespace " + "\u00e4" * 40 + " { template<class T> struct Box { __attribute__((noinline)) static T area(T side)"
                                        "{ return side * side; } }; }\nint main(int c, char **) { return " + "\u00e4" * 40 +
                                        "::Box<int>::area(c); }\n").encode())
    subprocess.run(["g++", "-g", "-O1", "-o", "long", source], cwd=work, check=True)
    path = os.path.join(work, "long")
    addresses = ["0x" + line.split()[0] for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
                 if re.search(r" [TW] (main|_ZN.*)$", line)]
    equal(len(addresses), 2)
    fitted = on_a_terminal(80, "lookup", "-e", path, *addresses)
    equal(([len(line) for line in fitted if len(line) > 80], sum("..." in line for line in fitted)), ([], 2), fitted)
    contains("\n".join(fitted), "main", "long.cc:1", "long.cc:2")
    whole = on_a_terminal(80, "lookup", "--no-trim", "-e", path, *addresses)
    contains("\n".join(whole), source + ":2", "\u00e4" * 40 + "::Box<int>::area(int)")
    equal(on_a_terminal(400, "lookup", "-e", path, *addresses), whole)


def test_cleanup_repeats_with_a_pause(work, files):
    """The pause may follow as a word, as it does in Symbolicator."""
    for words in (["--repeat", "1h"], ["--repeat=1h"], ["--repeat"], ["--repeat", "--json"]):
        process = subprocess.Popen([harness.SYMLOOM, "cleanup", "--cache-dir", work, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        equal((bool(first), process.wait(harness.DEADLINE) < 0, process.stderr.read()), (True, True, ""), words)
    wrong = symloom("cleanup", "--cache-dir", work, "--repeat", "soon")
    equal((wrong.status, wrong.err.splitlines()[0]), (2, "error: --repeat: 'soon' is not a duration (example: 1h)"))
