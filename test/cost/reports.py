"""Crash reports of Apple's systems: texts, JSON and diagnostics of MetricKit, whose trees of calls become a thread for each path."""
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


GENERATORS = {"report_" + make.__name__: (make, READ) for make in (
    deep_tree, wide_tree, broom, trees_in_trees, many_images, many_threads, many_causes)}
