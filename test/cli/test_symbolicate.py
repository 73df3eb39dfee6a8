"""`symloom symbolicate`: stack traces of obfuscated JVM programs."""
import gzip, hashlib, json, os, subprocess, time
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
\tat com.example.Util.check(Util.kt:7)
\tat com.example.Main.run(Main.kt:20)
\tat java.lang.Thread.run(Thread.java:829)
"""


def written(work, name, text):
    path = os.path.join(work, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def test_trace_is_read_from_file_or_standard_input(work, files):
    mapping, trace = written(work, "mapping.txt", MAPPING), written(work, "trace.txt", TRACE)
    equal(ok("symbolicate", "--mapping", mapping, trace), PLAIN)
    equal(ok("symbolicate", "--mapping", mapping, "--type", "trace", "-f", "text", "-", input=TRACE), PLAIN)
    equal(ok("symbolicate", trace, "--mapping=" + mapping), PLAIN)
    out = os.path.join(work, "out")
    equal(ok("symbolicate", "--mapping", mapping, "--output", out, trace), "")
    with open(out) as f:
        equal(f.read(), PLAIN)


def test_retrace_name_accepts_its_arguments(work, files):
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


def test_verbose_option_prints_signatures(work, files):
    """-verbose: methods with their types, where a mapping knows them; of several that a frame may be in, each."""
    mapping, retrace = written(work, "mapping.txt", SIGNED), linked(work, "retrace")
    trace = TRACE + "\tat a.b.d(SourceFile:2)\n\tat a.b.e(SourceFile)\n\tat a.b.f(SourceFile:3)\n\tat a.e.<init>(SourceFile)\n"
    verbose = """some log line
Exception in thread "main" com.example.Oops: a.b went wrong
\tat com.example.Util.void check(int)(Util.java:7)
\tat com.example.Main.void run()(Main.java:20)
\tat java.lang.Thread.run(Thread.java:829)
\tat com.example.Main.com.example.Oops[] find(java.lang.String,com.example.Main,int[])(Main.java:30)
\tat com.example.Main.int two()(Main.java)
\t<OR> at com.example.Main.long two(int)(Main.java)
\tat com.example.Main.f(Main.java:3)
\tat com.example.Oops.void <init>(java.lang.String)(Oops.java)
"""
    for option in ("-verbose", "--verbose"):
        equal(ok(option, mapping, input=trace, program=retrace), verbose)
    bridge = written(work, "bridge.txt", SIGNED.replace("    int two() -> e\n", "    3:3:java.lang.Object get():50 -> g\n    4:4:java.lang.String get():60 -> g\n"))
    equal(ok("-verbose", bridge, input="\tat a.b.g(SourceFile:4)\n\tat a.b.g(SourceFile:3)\n", program=retrace),
          "\tat com.example.Main.java.lang.String get()(Main.java:60)\n\tat com.example.Main.java.lang.Object get()(Main.java:50)\n")
    plain = ok(mapping, input=trace, program=retrace)
    contains(plain, "\tat com.example.Main.two(Main.java)\n\tat com.example.Main.f(Main.java:3)\n")
    equal(plain.count("two("), 1)


def test_options_of_other_retrace_tools_are_accepted(work, files):
    """With one dash or two; those that have nothing to change change nothing."""
    mapping, trace = written(work, "mapping.txt", MAPPING), written(work, "trace.txt", TRACE)
    retrace = linked(work, "retrace")
    for option in ("--info", "-info", "-quiet", "--quiet"):
        equal(ok(option, mapping, trace, program=retrace), PLAIN)
    contains(ok("-help", program=retrace), "--allclassnames")
    contains(ok("-version", program=retrace), "symloom")
    equal(symloom("-nonsense", mapping, trace, program=retrace).status, 2)
    text = "some a.b and (a.e) of xa.e, a.b.\n"
    equal(ok(mapping, input=text, program=retrace), text)
    equal(ok("-allclassnames", mapping, input=text, program=retrace),
          "some com.example.Main and (com.example.Oops) of xa.e, com.example.Main.\n")


def test_hash_of_a_mapping_is_verified(work, files):
    """R8 writes the SHA-256 of all that follows; without a trace nothing else is done."""
    retrace = linked(work, "retrace")
    good = written(work, "good.txt", f"# compiler: R8\n# pg_map_hash: SHA-256 {hashlib.sha256(MAPPING.encode()).hexdigest()}\n" + MAPPING)
    for option in ("--verify-mapping-file-hash", "-verify-mapping-file-hash"):
        equal(ok(option, good, program=retrace), "")
        equal(ok(option, good, "-", input=TRACE, program=retrace), PLAIN)
    with open(good) as f:
        changed = written(work, "changed.txt", f.read() + " ")
    failed = symloom("--verify-mapping-file-hash", changed, "-", input=TRACE, program=retrace)
    equal((failed.status, failed.out), (3, ""))
    contains(failed.err, "changed.txt", "the file was changed: its pg_map_hash is ")
    none = symloom("--verify-mapping-file-hash", written(work, "none.txt", MAPPING), program=retrace)
    equal((none.status, none.out), (0, ""))
    contains(none.err, "no pg_map_hash")


def test_android_logs_are_retraced(work, files):
    """Frames and exceptions behind what logcat writes in front, in reports of Play Console, and in messages of other exceptions."""
    mapping = written(work, "mapping.txt", MAPPING)
    for before, after in (
            ("E/AndroidRuntime( 1234): a.e: x\nE/AndroidRuntime( 1234): \tat a.b.c(SourceFile:1)\n",
             "E/AndroidRuntime( 1234): com.example.Oops: x\nE/AndroidRuntime( 1234): \tat com.example.Util.check(Util.kt:7)\n"
             "E/AndroidRuntime( 1234): \tat com.example.Main.run(Main.kt:20)\n"),
            ("11-28 10:00:00.123  1  2 E Tag     : a.e\n", "11-28 10:00:00.123  1  2 E Tag     : com.example.Oops\n"),
            ("java.lang.RuntimeException: Unable to start activity ComponentInfo{a.b/a.c}: a.e: x\n",
             "java.lang.RuntimeException: Unable to start activity ComponentInfo{a.b/a.c}: com.example.Oops: x\n"),
            ("java.lang.Error: a.e: x\n\t[CIRCULAR REFERENCE: a.e: x]\n",
             "java.lang.Error: com.example.Oops: x\n\t[CIRCULAR REFERENCE: com.example.Oops: x]\n"),
            ("  at a.b.c (SourceFile:1)\n", "  at com.example.Util.check (Util.kt:7)\n  at com.example.Main.run (Main.kt:20)\n"),
            ("D/x: a.e is in here, a.b too (a.e)\n", "D/x: a.e is in here, a.b too (a.e)\n")):
        equal(ok("symbolicate", "--mapping", mapping, input=before), after)


def test_utf_16_logs_are_retraced(work, files):
    """As PowerShell writes them: read, and written in the same encoding. A byte order mark hides nothing."""
    mapping, text = written(work, "mapping.txt", MAPPING), "a.e: \u00e9 \U0001F600\r\n" + TRACE * 1000
    wanted = ("com.example.Oops: \u00e9 \U0001F600\r\n" + PLAIN * 1000)
    for encoding, mark in (("utf-16-le", "\ufeff"), ("utf-16-be", "\ufeff"), ("utf-16-le", ""), ("utf-8", "\ufeff")):
        path = os.path.join(work, "log.txt")
        with open(path, "wb") as f:
            f.write((mark + text).encode(encoding))
        for arguments, input in ((("--mapping", mapping, path), b""), (("--mapping", mapping), (mark + text).encode(encoding))):
            done = subprocess.run([harness.SYMLOOM, "symbolicate", *arguments], input=input, capture_output=True)
            equal((done.returncode, done.stdout.decode(encoding)), (0, mark + wanted), encoding)
    odd = subprocess.run([harness.SYMLOOM, "symbolicate", "--mapping", mapping], input=b"\xff\xfea\0\x00\xd8b\0\x01", capture_output=True)
    equal(odd.stdout.decode("utf-16"), "a\ufffdb\ufffd\n")


def test_expansion_of_a_line_is_limited(work, files):
    """What one line becomes is bounded, and so is all that is written; what stays as it is is told."""
    chain = written(work, "chain.txt", "A -> a:\n" + "    1:1:void x():1 -> b\n" * 20000 + "    1:1:void f():1 -> c\n")
    done = symloom("symbolicate", "--mapping", chain, input="\tat a.b(S:1)\n\tat a.c(S:1)\n")
    equal((done.status, done.out), (0, "\tat a.b(S:1)\n\tat A.f(A.java:1)\n"))
    contains(done.err, "1 line was left")
    named = written(work, "named.txt", "A" * 300000 + " -> a:\n    1:1:void x():1 -> b\n")
    done = symloom("symbolicate", "--mapping", named, input="\tat a.b(S:1)\n" * 20000)
    assert len(done.out) < 100 << 20 and done.out.endswith("\tat a.b(S:1)\n"), len(done.out)
    contains(done.err, " lines were left")


def test_unmapped_classes_are_counted(work, files):
    """Frames that stay as they are, are counted and their classes named; those of Java and Android do not count."""
    mapping = written(work, "mapping.txt", MAPPING)
    trace = "".join(f"\tat {name}.m(S:1)\n" for name in ("a.b", "x.Y", "x.Y", "java.lang.Thread", "android.os.Looper", "q.Z"))
    for arguments in (("symbolicate", "--mapping", mapping), ("symbolicate", "--fail-on-missing", "--mapping", mapping)):
        done = symloom(*arguments, input=trace)
        equal(done.err, f"warning: 1 of 4 frames resolved; no mapping for x.Y, q.Z; searched {mapping}; pass the --mapping of the same build\n")
        equal(done.status, 3 if len(arguments) > 3 else 0)
    equal(symloom("symbolicate", "-q", "--mapping", mapping, input=trace).err, "")
    whole = symloom("symbolicate", "--fail-on-missing", "--mapping", mapping, input=TRACE)
    equal((whole.status, whole.err), (0, ""))


def test_mappings_without_members_are_used(work, files):
    many = "".join(f'p.C{i} -> p.C{i}:\n# {{"id":"sourceFile","fileName":"C.java"}}\n' for i in range(60))
    equal(ok("symbolicate", "--mapping", written(work, "many.txt", many + MAPPING), input=TRACE), PLAIN)
    equal(ok("symbolicate", "--mapping", written(work, "only.txt", "p.C -> a.e:\n"), input="a.e: x\n"), "p.C: x\n")


def test_regex_option_retraces_other_lines(work, files):
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
    ends = subprocess.run([retrace, "-regex", ".E. %c#%m line %l.*", mapping], input=b"[E] a.b#c line 1 x\r\n[T] a.b\r\n[T] a.b\n", capture_output=True)
    equal(ends.stdout, b"[E] com.example.Util#check line 7 x\r\n[E] com.example.Main#run line 20 x\r\n[T] a.b\r\n[T] a.b\n")
    slow = "a" * 2000 + "!\n"  # an expression that would never end matches nothing
    equal(ok("-regex", "(a+)+%c?", mapping, input=slow, program=retrace), slow)
    for wrong in ("(", "%c" * 65):
        failed = symloom("-regex", wrong, mapping, input=lines, program=retrace)
        equal((failed.status, failed.out), (2, ""))
        contains(failed.err, f"error: cannot use --regex '{wrong}'")


def test_first_mapping_with_the_class_is_used(work, files):
    first = written(work, "1", "x.A -> a.b:\n    1:1:void f():3:3 -> c\n")
    second = written(work, "2", MAPPING)
    contains(ok("symbolicate", "--mapping", first, "--mapping", second, input=TRACE),
             "com.example.Oops: a.b went wrong\n\tat x.A.f(A.java:3)\n\tat java.lang")


def test_trace_is_printed_before_input_ends(work, files):
    mapping = written(work, "mapping.txt", MAPPING)
    with subprocess.Popen([harness.SYMLOOM, "symbolicate", "--mapping", mapping], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("\tat a.b.c(SourceFile:1)\n")
        process.stdin.flush()
        equal(process.stdout.readline(), "\tat com.example.Util.check(Util.kt:7)\n")
        process.stdin.close()
        equal(process.wait(harness.DEADLINE), 0)


def test_long_logs_and_lines_are_kept(work, files):
    mapping = written(work, "mapping.txt", MAPPING)
    long_line = "\tat a.b.c(SourceFile:1) " + "x" * 700_000 + "\n"
    text = (TRACE + long_line) * 30
    equal(ok("symbolicate", "--mapping", mapping, input=text), (PLAIN + long_line) * 30)
    without_end = "y" * 300_000
    equal(ok("symbolicate", "--mapping", mapping, input=without_end), without_end)


def test_invalid_options_and_inputs_are_refused(work, files):
    mapping, trace = written(work, "mapping.txt", MAPPING), written(work, "trace.txt", TRACE)
    equal(symloom("symbolicate", trace).status, 3)
    equal(symloom("symbolicate", "--type", "trace", trace).status, 2)
    equal(symloom("symbolicate", "--mapping", mapping, "--type", "minidump", trace).status, 2)
    equal(symloom("symbolicate", "--mapping", "/nowhere", trace).status, 1)
    none = symloom("symbolicate", "--mapping", trace, trace)
    equal((none.status, none.out), (3, ""))
    contains(none.err, "The file is not a valid ProGuard file")
    equal(symloom("symbolicate", "--mapping", mapping, "/nowhere").status, 1)


def test_mapping_is_inspected(work, files):
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


def test_compressed_logs_are_unpacked(work, files):
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
        contains(refused.err, "ends early")
    for text in ("\x1f\n", "(\n", "(\xb5x\n", ""):
        equal(ok("symbolicate", "--mapping", mapping, input=text), text)
