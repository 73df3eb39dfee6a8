"""Mappings of the JVM: a large one to its table, lines looked up, and a trace through the command beside ProGuard's retrace. And
the truth: a program that ProGuard has shrunk throws, and its trace is to be that of the program before."""
import os, random, re, subprocess, tempfile, time, zipfile

RETRACE, PROGUARD = "/usr/share/java/retrace.jar", "/usr/share/java/proguard.jar"
CLASSES, LINES, RUNS = 9600, 10000, 5

SOURCE = """package com.example;
public class Main {
    interface Step { int run(int depth); }
    static class Deep implements Step {
        public int run(int depth) {
            if (depth == 0) throw new IllegalStateException("at the end");
            return helper(depth) + 1;
        }
        private int helper(int depth) { return nested(depth - 1) * 3; }
        private int nested(int depth) { return run(depth); }
    }
    static class Failure extends RuntimeException {
        Failure(String message, Throwable cause) { super(message, cause); }
    }
    static void guarded(Step step, int depth) {
        try {
            System.out.println(step.run(depth));
        } catch (IllegalStateException e) {
            throw new Failure("the step failed", e);
        }
    }
    public static void main(String[] words) {
        guarded(new Deep(), words.length + 3);
    }
}
"""


def name(number):
    letters = "abcdefghijklmnopqrstuvwxyz"
    out = letters[number % 26]
    while number >= 26:
        number = number // 26 - 1
        out = letters[number % 26] + out
    return out


def write_mapping(path, classes):
    """As R8 writes them: the files of classes, inlining up to four deep, and frames that hit it."""
    rng, frames = random.Random(1), []
    types = ["int", "void", "java.lang.String", "java.util.List", "boolean", "android.view.View"]
    original = [f"com.example.{rng.choice(['app', 'data', 'ui.widget', 'net.http'])}.p{i % 97}.Component{i}Impl" for i in range(classes)]
    with open(path, "w") as f:
        f.write('# compiler: R8\n# compiler_version: 8.2.33\n# min_api: 24\n# {"id":"com.android.tools.r8.mapping","version":"2.2"}\n')
        for i in range(classes):
            obfuscated = f"{name(i // 700)}.{name(i % 700)}"
            f.write(f'{original[i]} -> {obfuscated}:\n# {{"id":"sourceFile","fileName":"Component{i}Impl.kt"}}\n')
            for field in range(8):
                f.write(f"    {rng.choice(types)} field{field}Of{i % 50} -> {name(field)}\n")
            line, at = 20, 1
            for method in range(10):
                arguments = ",".join(rng.choice(types[2:]) for _ in range(rng.randrange(4)))
                short = name(method % 9)
                for _ in range(rng.choice((1, 1, 2, 3))):
                    size, source = rng.randrange(1, 6), line + rng.randrange(200)
                    for depth in range(rng.choice((0, 0, 0, 1, 2, 3))):
                        other = rng.randrange(classes)
                        f.write(f"    {at}:{at + size}:void {original[other]}.inlined{depth}({rng.choice(types[2:])}):{source}:{source + size} -> {short}\n")
                    f.write(f"    {at}:{at + size}:{rng.choice(types)} method{method}Of{i % 300}({arguments}):{line}:{line + size} -> {short}\n")
                    frames.append((obfuscated, short, at + size // 2))
                    at, line = at + size + 1, line + size + 3
                if method == 9:
                    f.write('    # {"id":"com.android.tools.r8.residualsignature","signature":"(ILa/b;)V"}\n')
    return frames


def write_trace(path, frames, lines):
    rng = random.Random(2)
    with open(path, "w") as f:
        for i in range(lines):
            if i % 40 == 0:
                f.write("java.lang.IllegalStateException: number " + str(i) + "\n")
            else:
                f.write("\tat %s.%s(SourceFile:%d)\n" % rng.choice(frames))


def shortest(command, out):
    best = 1e9
    for _ in range(RUNS):
        start = time.monotonic()
        with open(out, "w") as f:
            subprocess.run(command, check=True, stdout=f, stderr=subprocess.DEVNULL)
        best = min(best, time.monotonic() - start)
    return best


def library(work):
    """The classes of Java 8, which ProGuard reads: out of the JDK's own list of them."""
    java = os.path.dirname(os.path.dirname(os.path.realpath("/usr/bin/javac")))
    path = os.path.join(work, "library.jar")
    with zipfile.ZipFile(os.path.join(java, "lib", "ct.sym")) as symbols, zipfile.ZipFile(path, "w") as out:
        for entry in symbols.namelist():
            releases, _, rest = entry.partition("/")
            if "8" in releases and entry.endswith(".sig"):
                inner = rest.split("/", 1)[1] if rest.startswith("java.") else rest
                body = symbols.read(entry)
                out.writestr(inner[:-4] + ".class", body[:6] + b"\0\x34" + body[8:])  # version 52: Java 8
    return path


def run(*command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def real_program(symloom, work, source=SOURCE):
    """The trace of a program that ProGuard has shrunk, optimised and renamed, made readable; and the one of the program before."""
    with open(os.path.join(work, "Main.java"), "w") as f:
        f.write(source)
    compiled = run("javac", "--release", "8", "-g", "-d", "classes", "Main.java", cwd=work)
    assert compiled.returncode == 0, compiled.stderr
    options = ["-injars classes", "-outjars small.jar", f"-libraryjars {library(work)}", "-printmapping mapping.txt",
               "-keepattributes LineNumberTable,SourceFile", "-renamesourcefileattribute SourceFile", "-dontnote", "-dontwarn",
               "-repackageclasses ''", "-allowaccessmodification", "-keep class com.example.Main { public static void main(java.lang.String[]); }"]
    with open(os.path.join(work, "options.pro"), "w") as f:
        f.write("\n".join(options))
    shrunk = run("java", "-jar", PROGUARD, "@options.pro", cwd=work)
    assert shrunk.returncode == 0, shrunk.stdout + shrunk.stderr
    truth = run("java", "-cp", "classes", "com.example.Main", cwd=work).stderr
    trace = run("java", "-cp", "small.jar", "com.example.Main", cwd=work).stderr
    with open(os.path.join(work, "trace.txt"), "w") as f:
        f.write(trace)
    readable = run(symloom, "symbolicate", "--mapping", "mapping.txt", "trace.txt", cwd=work).stdout
    return truth, trace, readable


def frames_of(trace):
    return re.findall(r"^\s*at (\S+)\((\S+?)\)", trace, re.M)


def main(symloom, bench, row):
    with tempfile.TemporaryDirectory(prefix="symloom-bench-") as work:
        truth, trace, readable = real_program(symloom, work)
        right = sum(a == b for a, b in zip(frames_of(truth), frames_of(readable)))
        print(f"jvm: a shrunk program's trace: {right} of {len(frames_of(truth))} frames as before it was shrunk, "
              f"{sum(a in frames_of(truth) for a in frames_of(trace))} without the mapping")
        mapping, stack, out = (os.path.join(work, n) for n in ("large.txt", "stack.txt", "out"))
        write_trace(stack, write_mapping(mapping, CLASSES), LINES)
        told = subprocess.run([bench, mapping, stack], capture_output=True, text=True, check=True).stdout.strip()
        print("jvm:", told, "(must <= 80 ms for 30 MB, <= 0.4 us a line)")
        ours = shortest([symloom, "symbolicate", "--mapping", mapping, stack], out)
        theirs = shortest(["java", "-jar", RETRACE, mapping, stack], out + ".peer")
        row(f"jvm: {LINES} lines through the command, retrace", ours, theirs, "s", "<= 0.167")
