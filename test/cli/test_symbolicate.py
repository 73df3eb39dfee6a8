"""`symloom symbolicate`: stack traces of obfuscated JVM programs."""
import gzip, json, os, subprocess, time
import harness
from harness import contains, equal, linked, ok, symloom

MAPPING = """# compiler: R8
# compiler_version: 8.2
com.example.Main -> a.b:
# {"id":"sourceFile","fileName":"Main.kt"}
    int count -> a
    1:1:void com.example.Util.check(int):7:7 -> c
    1:1:void run():20 -> c
com.example.Oops -> a.e:
    void <init>(java.lang.String) -> <init>
"""
TRACE = """some log line
Exception in thread "main" a.e: a.b went wrong
\tat a.b.c(SourceFile:1)
\tat java.lang.Thread.run(Thread.java:829)
"""
PLAIN = """some log line
Exception in thread "main" com.example.Oops: a.b went wrong
    at com.example.Util.check(Util.kt:7)
    at com.example.Main.run(Main.kt:20)
\tat java.lang.Thread.run(Thread.java:829)
"""


def written(work, name, text):
    path = os.path.join(work, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def test_a_trace_from_a_file_or_standard_input(work, files):
    mapping, trace = written(work, "mapping.txt", MAPPING), written(work, "trace.txt", TRACE)
    equal(ok("symbolicate", "--mapping", mapping, trace), PLAIN)
    equal(ok("symbolicate", "--mapping", mapping, "--type", "trace", "-f", "text", "-", input=TRACE), PLAIN)
    equal(ok("symbolicate", trace, "--mapping=" + mapping), PLAIN)
    out = os.path.join(work, "out")
    equal(ok("symbolicate", "--mapping", mapping, "--output", out, trace), "")
    with open(out) as f:
        equal(f.read(), PLAIN)


def test_under_the_name_of_retrace(work, files):
    mapping, trace = written(work, "mapping.txt", MAPPING), written(work, "trace.txt", TRACE)
    retrace = linked(work, "retrace")
    equal(ok(mapping, trace, program=retrace), PLAIN)
    equal(ok(mapping, input=TRACE, program=retrace), PLAIN)
    equal(symloom(program=retrace).status, 2)


SIGNED = """com.example.Main -> a.b:
    int count -> a
    com.example.Oops[] all -> b
    java.lang.String all -> b
    1:1:void com.example.Util.check(int):7:7 -> c
    1:1:void run():20 -> c
    2:2:com.example.Oops[] find(java.lang.String,com.example.Main,int[]):30 -> d
    int two() -> e
    long two(int) -> e
com.example.Oops -> a.e:
    void <init>(java.lang.String) -> <init>
"""


def test_signatures_of_retrace(work, files):
    """-verbose: methods with their types, where a mapping knows them; of several that a frame may be in, each."""
    mapping, retrace = written(work, "mapping.txt", SIGNED), linked(work, "retrace")
    trace = TRACE + "\tat a.b.d(SourceFile:2)\n\tat a.b.e(SourceFile)\n\tat a.b.f(SourceFile:3)\n\tat a.e.<init>(SourceFile)\n"
    verbose = """some log line
Exception in thread "main" com.example.Oops: a.b went wrong
    at com.example.Util.void check(int)(Util.java:7)
    at com.example.Main.void run()(Main.java:20)
\tat java.lang.Thread.run(Thread.java:829)
    at com.example.Main.com.example.Oops[] find(java.lang.String,com.example.Main,int[])(Main.java:30)
    at com.example.Main.int two()(Main.java:0)
    at com.example.Main.long two(int)(Main.java:0)
    at com.example.Main.f(Main.java:3)
    at com.example.Oops.void <init>(java.lang.String)(Oops.java:0)
"""
    for option in ("-verbose", "--verbose"):
        equal(ok(option, mapping, input=trace, program=retrace), verbose)
    bridge = written(work, "bridge.txt", SIGNED.replace("    int two() -> e\n", "    3:3:java.lang.Object get():50 -> g\n    4:4:java.lang.String get():60 -> g\n"))
    equal(ok("-verbose", bridge, input="\tat a.b.g(SourceFile:4)\n\tat a.b.g(SourceFile:3)\n", program=retrace),
          "    at com.example.Main.java.lang.String get()(Main.java:60)\n    at com.example.Main.java.lang.Object get()(Main.java:50)\n")
    plain = ok(mapping, input=trace, program=retrace)
    contains(plain, "    at com.example.Main.two(Main.java:0)\n    at com.example.Main.f(Main.java:3)\n")
    equal(plain.count("two("), 1)


def test_expressions_of_retrace(work, files):
    """-regex: where the names are in lines of another form; what it does not match stays."""
    mapping, retrace = written(work, "mapping.txt", SIGNED), linked(work, "retrace")
    lines = "[E] a.b#c line 1 x\n[F] a/b a.e[] \n[M] d(java.lang.String,a.b, int[]) of a.b at SourceFile:2\n[T] a.e[] b of a.b\nnone a.b\n"
    for regex, before, after in (
            (r"\[E\] %c#%m line %l.*", "[E] a.b#c line 1 x\n", "[E] com.example.Util#check line 7 x\n[E] com.example.Main#run line 20 x\n"),
            (r"\[F\] %C %t\s*", "[F] a/b a.e[] \n", "[F] com/example/Main com.example.Oops[] \n"),
            (r"\[M\] %m\(%a\) of %c at %S", "[M] d(java.lang.String,a.b, int[]) of a.b at SourceFile:2\n",
             "[M] find(java.lang.String,com.example.Main,int[]) of com.example.Main at Main.java:30\n"),
            (r"\[M\] %m\(%a\) of %c at .*", "[M] d(java.lang.String,a.b, int[]) of a.b at SourceFile:2\n",
             "[M] find(java.lang.String,com.example.Main,int[]) of com.example.Main at SourceFile:2\n"),
            (r"\[T\] %t %f of %c", "[T] a.e[] b of a.b\n", "[T] com.example.Oops[] all of com.example.Main\n"),
            (r"(?:\[.\]|none) %c", "none a.b\n", "none com.example.Main\n"),
            (r"\[E\] %c", "", ""), (r"%q.*", "", "")):
        for option in ("-regex", "--regex"):
            equal(ok(option, regex, mapping, input=lines, program=retrace), lines.replace(before, after) if before else lines, regex)
    equal(ok("-verbose", "-regex", ".E. %c#%m line %l.*", mapping, input=lines.split("\n")[0], program=retrace),
          "[E] com.example.Util#void check(int) line 7 x\n[E] com.example.Main#void run() line 20 x\n")
    slow = "a" * 2000 + "!\n"  # an expression that would never end matches nothing
    equal(ok("-regex", "(a+)+%c?", mapping, input=slow, program=retrace), slow)
    for wrong in ("(", "%c" * 65):
        failed = symloom("-regex", wrong, mapping, input=lines, program=retrace)
        equal((failed.status, failed.out), (2, ""))
        contains(failed.err, "error: " + wrong)


def test_of_several_mappings_the_first_that_knows_the_class_tells(work, files):
    first = written(work, "1", "x.A -> a.b:\n    1:1:void f():3:3 -> c\n")
    second = written(work, "2", MAPPING)
    contains(ok("symbolicate", "--mapping", first, "--mapping", second, input=TRACE),
             "com.example.Oops: a.b went wrong\n    at x.A.f(A.java:3)\n\tat java.lang")


def test_a_trace_is_answered_while_more_of_it_may_come(work, files):
    mapping = written(work, "mapping.txt", MAPPING)
    with subprocess.Popen([harness.SYMLOOM, "symbolicate", "--mapping", mapping], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("\tat a.b.c(SourceFile:1)\n")
        process.stdin.flush()
        equal(process.stdout.readline(), "    at com.example.Util.check(Util.kt:7)\n")
        process.stdin.close()
        equal(process.wait(harness.DEADLINE), 0)


def test_long_logs_and_long_lines_pass_through(work, files):
    mapping = written(work, "mapping.txt", MAPPING)
    long_line = "\tat a.b.c(SourceFile:1) " + "x" * 700_000 + "\n"
    text = (TRACE + long_line) * 30
    equal(ok("symbolicate", "--mapping", mapping, input=text), (PLAIN + long_line) * 30)
    without_end = "y" * 300_000
    equal(ok("symbolicate", "--mapping", mapping, input=without_end), without_end)


def test_what_cannot_be_done(work, files):
    mapping, trace = written(work, "mapping.txt", MAPPING), written(work, "trace.txt", TRACE)
    equal(symloom("symbolicate", trace).status, 3)
    equal(symloom("symbolicate", "--type", "trace", trace).status, 2)
    equal(symloom("symbolicate", "--mapping", mapping, "--type", "minidump", trace).status, 2)
    equal(symloom("symbolicate", "--mapping", "/nowhere", trace).status, 1)
    none = symloom("symbolicate", "--mapping", trace, trace)
    equal((none.status, none.out), (3, ""))
    contains(none.err, "The file is not a valid ProGuard file")
    equal(symloom("symbolicate", "--mapping", mapping, "/nowhere").status, 1)


def test_inspecting_a_mapping(work, files):
    mapping = written(work, "mapping.txt", "a -> b:\n    void method() -> b")
    text = ok("inspect", mapping)
    contains(text, f"{mapping}\n  Format       proguard, 30 bytes\n",
             "  Debug ID     0099d4ac-7da8-5ef9-bad6-43c26f052e98\n", "  Counts       1 class, 1 method, no lines\n",
             "  Usable       yes\n")
    item = json.loads(ok("inspect", "--json", "-t", "proguard", written(work, "r8.txt", MAPPING)))[0]
    equal({k: item[k] for k in ("type", "compiler", "compiler_version", "min_api", "counts", "has_lines", "is_usable")},
          {"type": "proguard", "compiler": "R8", "compiler_version": "8.2", "min_api": None,
           "counts": {"classes": 2, "methods": 3}, "has_lines": True, "is_usable": True})
    equal(ok("inspect", "--check", mapping), f"Usable: yes  {mapping}\n")
    equal(symloom("inspect", "-t", "elf", mapping).status, 3)
    equal(ok("inspect", "--id", "0099d4ac-7da8-5ef9-bad6-43c26f052e98", mapping), text)
    equal(symloom("inspect", "--id", "0099d4ac-7da8-5ef9-bad6-43c26f052e99", mapping).status, 3)


def test_packed_logs(work, files):
    mapping, log = written(work, "mapping.txt", MAPPING), TRACE * 3000
    for packed in (gzip.compress(log.encode()), gzip.compress(TRACE.encode()) * 3000,
                   subprocess.run(["zstd", "-q", "-c"], input=log.encode(), stdout=subprocess.PIPE, check=True).stdout):
        path = os.path.join(work, "packed")
        with open(path, "wb") as f:
            f.write(packed)
        for arguments in ([path], ["-"]):
            with open(path, "rb") as f:
                done = subprocess.run([harness.SYMLOOM, "symbolicate", "--mapping", mapping, *arguments], stdin=f,
                                      stdout=subprocess.PIPE, text=True, check=True)
            assert done.stdout == PLAIN * 3000
        with open(path, "wb") as f:
            f.write(packed[:-30])
        refused = symloom("symbolicate", "--mapping", mapping, path)
        equal(refused.status, 1)
        contains(refused.err, "ends too early")
    for text in ("\x1f\n", "(\n", "(\xb5x\n", ""):
        equal(ok("symbolicate", "--mapping", mapping, input=text), text)
