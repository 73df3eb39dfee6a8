"""Crash reports of Apple's systems: texts, JSON and diagnostics of MetricKit, whose trees of calls become a thread for each path, as do
those of samples."""
READ = ["readers", "report", "{file}"]
FRAME = b'{"address":4096,"subFrames":['


def tree(frames):
    return b'{"callStacks":[{"callStackRootFrames":[' + frames + b"]}]}"


def deep_tree(size):
    """One path."""
    count = size // (len(FRAME) + 2)
    return tree(FRAME * count + b"]}" * count)


def wide_tree(size):
    """Many roots."""
    return tree(b",".join([b"{}"] * (size // 3)))


def broom(size):
    """A stem that each of many paths has."""
    count = size // 2 // (len(FRAME) + 2)
    return tree(FRAME * count + b",".join([b"{}"] * (size // 2 // 3)) + b"]}" * count)


def trees_in_trees(size):
    """Trees in frames, which are none."""
    inner = b'{"callStacks":[{"callStackRootFrames":[{"subFrames":['
    count = size // (len(inner) + 6)
    return inner * count + b"{},{}" + b"]}]}]}" * count


def many_images(size):
    """Frames that are each in an image of their own."""
    frame = b'{"binaryUUID":"2d903291-397d-3d14-bfca-52c7fb8c5e00","offsetIntoBinaryTextSegment":1,"address":%d}'
    return tree(b",".join(frame % (4096 + i) for i in range(size // 100)))


def many_threads(size):
    """A text with threads of one frame."""
    thread = b"Thread %d:\n0   a 0x1000 b + 1\n\n"
    return b"Incident Identifier: x\n\n" + b"".join(thread % i for i in range(size // 32))


def many_causes(size):
    """A text whose head says the same again and again."""
    head = b"Termination Reason: SIGNAL, Code 11\nTermination Description: <a>\nException Codes: 0x1\n"
    return b"Incident Identifier: x\n" + head * (size // len(head)) + b"\nThread 0:\n0   a 0x1000 b + 1\n"


HEAD = b"Analysis of sampling a (pid 1) every 1 millisecond\nProcess: a [1]\nCall graph:\n    1 Thread_1\n"


def samples_deep(size):
    """A stack whose rows are each deeper by one column."""
    count = int((size * 2) ** 0.5) - 20
    return HEAD + b"".join(b" " * (5 + i) + b"1 f  (in a) + 1  [0x1000]\n" for i in range(max(count, 1)))


def samples_broom(size):
    """A stem, and many calls at its end: each row has its path."""
    depth = int((size // 4) ** 0.5)
    stem = b"".join(b" " * (5 + i) + b"9 f  (in a)  [0x1000]\n" for i in range(depth))
    leaf = b" " * (6 + depth) + b"1 g  (in a)  [0x1004]\n"
    return HEAD + stem + leaf * (max(size - len(stem), 0) // len(leaf))


def samples_processes(size):
    """Many processes that have the same images."""
    one = (b"Process: a [%d]\n  Thread 0x1  1 samples\n  1  ??? (a + 1) [0x1001]\n  Binary Images:\n"
           b"   0x1000 -  0x1fff  a (1) <2d903291-397d-3d14-bfca-52c7fb8c5e00>  /a\n")
    return b"Heaviest stack for the target process:\n" + b"".join(one % i for i in range(size // len(one)))


def samples_marks(size):
    """Rows that look like what they are not."""
    return HEAD + b"".join((b"    1 f (((( (in ( + + [0x  (in \n", b"    + ! : |  (in in in [0x1,0x1\n", b"    1 Thread_\n")[i % 3] for i in range(size // 30))


def stackshot(processes, images):
    return (b'{"bug_type":"288"}\n{"processByPid":{' + processes + b'},"binaryImages":[' + images + b"]}")


def stackshot_frames(size):
    """Threads of many frames in one image."""
    thread = b'"1":{"id":1,"userFrames":[' + b",".join([b"[0,1]"] * 100) + b"]}"
    threads = b",".join([thread] * (size // len(thread)))
    return stackshot(b'"7":{"pid":7,"threadById":{' + threads + b"}}", b'["2d903291-397d-3d14-bfca-52c7fb8c5e00",4096,"P"]')


def stackshot_processes(size):
    """Processes without frames, and as many images."""
    process, image = b'"7":{"pid":7,"threadById":{"1":{}}}', b'["2d903291-397d-3d14-bfca-52c7fb8c5e00",4096,"P"]'
    return stackshot(b",".join([process] * (size // 2 // len(process))), b",".join([image] * (size // 2 // len(image))))


GENERATORS = {"report_" + make.__name__: (make, READ) for make in (
    deep_tree, wide_tree, broom, trees_in_trees, many_images, many_threads, many_causes, samples_deep, samples_broom, samples_processes,
    samples_marks, stackshot_frames, stackshot_processes)}
GENERATORS |= {"symbolicate_" + make.__name__: (make, ["symbolicate", "--offline", "--cache-dir", "", "-f", "text", "{file}"])
               for make in (samples_broom, samples_marks)}
