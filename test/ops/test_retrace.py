"""Traces of JVM programs made readable: beside ProGuard's own retrace, and as they were before ProGuard shrunk the program."""
import os, re, sys, zlib

import ops

sys.path.append(os.path.join(ops.ROOT, "test", "bench"))
import jvm_rows

CLASSES, LINES = 2000, 10000

LAMBDAS = """package com.example;
import java.util.*;
import java.util.function.*;
public class Main {
    enum Level { LOW, HIGH { int weight(Main main) { return main.checked(ordinal(), name()); } };
                 int weight(Main main) { return 1; } }
    private final Map<String, Supplier<Integer>> steps = new LinkedHashMap<>();
    private <T> T timed(String name, Supplier<T> body) {
        try {
            return body.get();
        } catch (RuntimeException e) {
            RuntimeException wrapped = new RuntimeException("in " + name, e);
            wrapped.addSuppressed(new IllegalArgumentException("while " + name));
            throw wrapped;
        }
    }
    private int checked(int value, String name) {
        if (value > 0) throw new UnsupportedOperationException(name);
        return value;
    }
    void fill(int count) {
        for (int i = 0; i < count; i++) {
            final int number = i;
            steps.put("step " + i, new Supplier<Integer>() {
                public Integer get() { return Level.values()[number % 2].weight(Main.this); }
            });
        }
    }
    int runAll() {
        int sum = 0;
        for (Map.Entry<String, Supplier<Integer>> step : steps.entrySet())
            sum += timed(step.getKey(), step.getValue());
        return sum;
    }
    public static void main(String[] words) {
        Main main = new Main();
        main.fill(words.length + 2);
        System.out.println(main.timed("all", main::runAll));
    }
}
"""


def lines_of(trace):
    """Without the indentation, and the endings of files, which ProGuard's retrace makes up."""
    return [re.sub(r"\.\w+:(\d+)\)$", r":\1)", line.strip()) for line in trace.splitlines()]


def test_traces_equal_retrace(work, shared):
    """Ten thousand lines over a mapping of R8's kind: the frames, the inlined ones among them, are those of retrace."""
    mapping, stack = os.path.join(work, "mapping.txt"), os.path.join(work, "stack.txt")
    jvm_rows.write_trace(stack, jvm_rows.write_mapping(mapping, CLASSES), LINES)
    ours = lines_of(ops.run(ops.SYMLOOM, "symbolicate", "--mapping", mapping, stack))
    theirs = lines_of(ops.run("java", "-jar", jvm_rows.RETRACE, mapping, stack))
    assert len(ours) > LINES, len(ours)
    different = [(a, b) for a, b in zip(ours, theirs) if a != b]
    assert len(ours) == len(theirs) and not different, (len(ours), len(theirs), different[:10])


def test_signatures_equal_retrace(work, shared):
    """The same with the types of methods, each of which returns one type wherever it is inlined."""
    mapping, stack = os.path.join(work, "mapping.txt"), os.path.join(work, "stack.txt")
    jvm_rows.write_trace(stack, jvm_rows.write_mapping(mapping, CLASSES), LINES)
    types = ["void", "int", "java.lang.String", "java.util.List", "int[]"]
    with open(mapping) as f:
        text = re.sub(r"^( +(?:\d+:\d+:)?)\S+ ((?:\S+\.)?(\w+)\(.*?\))",
                      lambda m: f"{m[1]}{types[zlib.crc32(m[3].encode()) % len(types)]} {m[2]}", f.read(), flags=re.M)
    with open(mapping, "w") as f:
        f.write(text)
    os.symlink(ops.SYMLOOM, os.path.join(work, "retrace"))
    ours = lines_of(ops.run(os.path.join(work, "retrace"), "-verbose", mapping, stack))
    theirs = [line.replace("null ", "").replace("(null)", "") for line in lines_of(ops.run("java", "-jar", jvm_rows.RETRACE, "-verbose", mapping, stack))]
    different = [(a, b) for a, b in zip(ours, theirs) if a != b]
    assert len(ours) == len(theirs) and not different, (len(ours), len(theirs), different[:10])
    assert sum(" " in line.partition("(")[0][3:] for line in ours) > LINES / 2, ours[:20]


def test_regex_output_equals_retrace(work, shared):
    mapping, stack, log = (os.path.join(work, name) for name in ("mapping.txt", "stack.txt", "log.txt"))
    jvm_rows.write_trace(stack, jvm_rows.write_mapping(mapping, CLASSES), LINES // 10)
    with open(stack) as f, open(log, "w") as out:  # class and method apart from the place
        for line in f:
            out.write(re.sub(r"at (\S+)\.([^.\s(]+)\((\w+(?:\.\w+)?):(\d+)\)", r"[\3, \4] \1 -> \2", line.strip()) + "\n")
    os.symlink(ops.SYMLOOM, os.path.join(work, "retrace"))
    regex = r"\[%s, %l\] %c -> %m"
    endings = lambda text: re.sub(r"\[(\w+)\.\w+,", r"[\1,", text).splitlines()
    ours = endings(ops.run(os.path.join(work, "retrace"), "-regex", regex, mapping, log))
    theirs = endings(ops.run("java", "-jar", jvm_rows.RETRACE, "-regex", regex, mapping, log))
    different = [(a, b) for a, b in zip(ours, theirs) if a != b]
    assert len(ours) == len(theirs) and not different, (len(ours), len(theirs), different[:10])
    with open(log) as f:
        assert ours != endings(f.read())


def whole(text):
    """The frames of each exception, with those that "... N more" stands for: the last of the one that it caused or is kept in."""
    traces, causes = [], []
    for line in text.splitlines():
        frame, more = re.match(r"\s*at (\S+)\((\S+?)\)", line), re.match(r"\s*\.\.\. (\d+) more", line)
        if frame:
            traces[-1].append(frame.groups())
        elif more:
            outer = causes[-1] if traces[-1] is not causes[-1] else causes[-2]
            traces[-1] += outer[len(outer) - int(more[1]):]
        else:
            traces.append([])
            if not line.strip().startswith("Suppressed:"):
                causes.append(traces[-1])
    return traces


def test_retraced_stack_equals_the_unshrunk_program(work, shared):
    for number, source in enumerate((jvm_rows.SOURCE, LAMBDAS)):
        home = os.path.join(work, str(number))
        os.mkdir(home)
        truth, trace, readable = jvm_rows.real_program(ops.SYMLOOM, home, source)
        before = whole(truth)
        assert sum(map(len, before)) > 8 and not set(sum(whole(trace), [])) & set(sum(before, [])), truth
        assert whole(readable) == before, (truth, trace, readable)
