"""`symloom symbolicate` of profiles of the Firefox Profiler and of samply."""
import functools, gzip, json, os
from harness import contains, equal, ok, symloom

LABEL, ENTRY, INLINED, NOWHERE = range(4)  # frames
TABLES = ("stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols")


@functools.cache
def chains(files, *addresses):
    """What binutils say is at each address, the outermost call first: functions and lines."""
    text = files.run(f"addr2line -a -f -i -e {files.get('t')} " + " ".join(map(hex, addresses)))
    blocks = [block.split("\n")[1:] for block in text.strip().split("0x0")[1:]]
    return [[(name, int(place.split(":")[1].split()[0])) for name, place in zip(lines[0::2], lines[1::2])][::-1] for lines in blocks]


def chain(files, address):
    return chains(files, address)[0]


@functools.cache
def addresses(files):
    """Of a call in `entry`, and one at which `inner` is inlined into `mid` and that into `outer`."""
    near = range(files.address("t", "outer"), files.address("t", "outer") + 48)
    inlined = next(a for a, calls in zip(near, chains(files, *near)) if [name for name, _ in calls] == ["outer", "mid", "inner"])
    return files.address("t", "entry") + 4, inlined


@functools.cache
def inspected(files):
    return json.loads(ok("inspect", "--json", files.get("t")))[0]


def with_length(table):
    return {**table, "length": len(next(iter(table.values())))}


def profile(files, version):
    """A label calls `entry`, which calls what is inlined, or something outside of all libraries' functions."""
    entry, inlined = addresses(files)
    item = inspected(files)
    strings = ["0x1000", "label", "0x2000", "0x3000", "t"]
    files_column = "source" if version >= 58 else "fileName"
    tables = {
        "stackTable": {"frame": [LABEL, ENTRY, INLINED, NOWHERE], "prefix": [None, 0, 1, 1]},
        "frameTable": {"address": [-1, entry, inlined, 0x7fffffff], "inlineDepth": [0] * 4, "category": [1, 2, 3, 4], "subcategory": [0] * 4,
                       "func": [0, 1, 2, 3], "nativeSymbol": [None] * 4, "innerWindowID": [0] * 4, "line": [None] * 4, "column": [None] * 4},
        "funcTable": {"isJS": [False] * 4, "relevantForJS": [True, False, False, False], "name": [1, 0, 2, 3], "resource": [-1, 0, 0, 0],
                      files_column: [None] * 4, "lineNumber": [None] * 4, "columnNumber": [None] * 4},
        "resourceTable": {"lib": [0], "name": [4], "host": [None], "type": [1]},
        "nativeSymbols": {"libIndex": [], "address": [], "name": [], "functionSize": []},
    }
    tables = {name: with_length(table) for name, table in tables.items()}
    tables["nativeSymbols"]["length"] = 0
    if version < 53:
        tables["stackTable"].update({"category": [1, 2, 3, 4], "subcategory": [0] * 4})
    thread = {"name": "main", "tid": 1, "pid": "1", "samples": {"stack": [2, 3, None, 2], "time": [0, 1e-3, 2, 3], "weight": None, "length": 4},
              "markers": {"data": [None, {"type": "x", "cause": {"time": 1, "stack": 2}}, {"type": "y"}], "name": [1, 1, 1], "length": 3},
              "nativeAllocations": {"stack": [1, 2, 3], "length": 3}}
    shared = {}
    (shared if version >= 56 else thread)["stringArray"] = strings
    (shared if version >= 59 else thread).update(tables)
    if version >= 58:
        shared["sources"] = {"id": ["x"], "filename": [1], "startLine": [1], "length": 1}
    library = {"arch": "x86_64", "name": "t", "path": "/app/t", "debugName": "t", "debugPath": "/app/t",
               "breakpadId": item["debug_id"].replace("-", "").upper() + "0", "codeId": item["code_id"]}
    document = {"meta": {"version": 24, "preprocessedProfileVersion": version, "symbolicated": False}, "libs": [library],
                "threads": [thread, json.loads(json.dumps(thread))]}
    return {**document, "shared": shared} if shared else document


def whole(table):
    """Every column has as many cells as the table says."""
    equal({name: len(column) for name, column in table.items() if isinstance(column, list)},
          {name: table["length"] for name, column in table.items() if isinstance(column, list)})


def calls(document, thread, stack):
    """The calls of a stack, the outermost first: function, file, line, depth, symbol."""
    shared = document.get("shared", {})
    table = lambda name: thread[name] if name in thread else shared[name]
    strings, stacks, frames, funcs, symbols = (table(name) for name in ("stringArray", "stackTable", "frameTable", "funcTable", "nativeSymbols"))
    for name in TABLES:
        whole(table(name))
    equal(len(set(strings)), len(strings))
    found = []
    while stack is not None:
        frame = stacks["frame"][stack]
        func, symbol = frames["func"][frame], frames["nativeSymbol"][frame]
        path = funcs["fileName"][func] if "fileName" in funcs else funcs["source"][func]
        if path is not None and "source" in funcs:
            path = shared["sources"]["filename"][path]
        found.append((strings[funcs["name"][func]], path if path is None else strings[path], frames["line"][frame],
                      frames["inlineDepth"][frame], symbol if symbol is None else strings[symbols["name"][symbol]]))
        prefix = stacks["prefix"][stack]
        assert prefix is None or prefix < stack, (prefix, stack)
        stack = prefix
    return found[::-1]


def written(work, document, name="profile.json"):
    path = os.path.join(work, name)
    with open(path, "wb") as f:
        text = json.dumps(document).encode()
        f.write(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def symbolicated(work, *arguments, **options):
    return ok("symbolicate", "--cache-dir", "", "--no-network", *arguments, cwd=work, **options)


def test_profile_is_written_with_names(work, files):
    entry, inlined = addresses(files)
    for version in (48, 56, 58, 59):
        path = written(work, profile(files, version))
        text = symbolicated(work, path, "--symbols", files.get("t"))
        done = json.loads(text)
        outer = [("label", None, None, 0, None)] + [(name, "/src/t.c", line, 0, name) for name, line in chain(files, entry)]
        inner = outer + [(name, "/src/t.c", line, depth, "outer") for depth, (name, line) in enumerate(chain(files, inlined))]
        for thread in done["threads"]:
            stacks = thread["samples"]["stack"]
            equal([s is None for s in stacks], [False, False, True, False], version)
            equal(calls(done, thread, stacks[0]), inner, version)
            equal(calls(done, thread, stacks[1]), outer + [("0x3000", None, None, 0, None)], version)
            equal(stacks[3], stacks[0])
            equal(thread["markers"]["data"][1]["cause"]["stack"], stacks[0])
            allocations = thread["nativeAllocations"]["stack"]
            equal((calls(done, thread, allocations[0]), allocations[1:]), (outer, stacks[:2]), version)
        contains(text, '"time": [0, 0.001, 2, 3]', '"symbolicated": true')
        if version >= 58:
            whole(done["shared"]["sources"])
        tables = done["threads"][0] if version < 59 else done["shared"]
        symbols = tables["nativeSymbols"]
        equal((symbols["libIndex"], symbols["address"], symbols["functionSize"]),
              ([0, 0], [files.address("t", "entry"), files.address("t", "outer")], [None, None]))
        equal(tables["frameTable"]["category"], [1, 2, 3, 4, 3, 3], "inlined calls are of the category of their frame")
        equal(tables["funcTable"]["length"], 6, "functions of single frames are named in their place")
        # what has names stays
        again = written(work, done, "named.json")
        equal(json.loads(symbolicated(work, again, "--symbols", files.get("t"))), done)


def test_profile_is_read_from_file_gzip_or_input(work, files):
    path = written(work, profile(files, 48))
    text = symbolicated(work, path, files.get("t"))
    equal(symbolicated(work, written(work, profile(files, 48), "profile.json.gz"), "--symbols", files.get("t")), text)
    with open(path) as f:
        equal(symbolicated(work, "-", files.get("t"), input=f.read()), text)
    equal(symbolicated(work, "--output", "out.json", path, files.get("t")), "")
    with open(os.path.join(work, "out.json")) as f:
        equal(f.read(), text)
    equal(symbolicated(work, "--type", "profile", "-f", "json", path, files.get("t")), text)


def test_profile_without_symbols_is_unchanged(work, files):
    document = profile(files, 48)
    path = written(work, document)
    done = json.loads(symbolicated(work, path))
    equal(done["meta"].pop("symbolicated"), True)
    document["meta"].pop("symbolicated")
    equal(done, document)
    missing = symloom("symbolicate", "--cache-dir", "", "--no-network", "--fail-on-missing", path)
    equal(missing.status, 3, missing.err)
    equal(symloom("symbolicate", "--cache-dir", "", "--no-network", "--fail-on-missing", path, files.get("t")).status, 0)


def test_unsupported_profiles_are_refused(work, files):
    document = profile(files, 48)
    gecko = {"meta": {"version": 30}, "libs": [], "threads": []}
    old = {"meta": {"preprocessedProfileVersion": 30}, "threads": []}
    uneven = json.loads(json.dumps(document))
    uneven["threads"][0]["frameTable"]["address"].pop()
    others = json.loads(json.dumps(document))
    others["threads"][0]["frameTable"]["category"].pop()
    for broken, text in ((gecko, "raw profile of the browser: open it at profiler.firefox.com and save it"), (old, "profile format version 30 is too old"),
                         (uneven, "differ in length"), (others, "differ in length")):
        result = symloom("symbolicate", "--cache-dir", "", "--no-network", written(work, broken), files.get("t"))
        equal((result.status, result.out), (3, ""), result.err)
        contains(result.err, text)
    wrong = symloom("symbolicate", "-f", "compact", written(work, document))
    equal(wrong.status, 2, wrong.err)
