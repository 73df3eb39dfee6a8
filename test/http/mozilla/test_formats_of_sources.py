"""Version 5 out of files that are no Breakpad text: whatever a configured source or an upload has answers it, level by level as
/symbolicate answers the same addresses, which test_formats.py compares with llvm-symbolizer."""
import json, os, re, shutil, subprocess, sys, tempfile

from harness import Service, equal, frames, nginx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "native"), os.path.join(HERE, "..", "symbfile")]
import test_formats as formats
import test_symbfile as symbfile

COUNT = 300


def v5(s, file, debug_id, addresses):
    body = {"memoryMap": [[file, debug_id]], "stacks": [[[0, a] for a in addresses]]}
    status, _, text = s.request("POST", "/symbolicate/v5", json.dumps(body))
    equal(status, 200, text)
    result = json.loads(text)["results"][0]
    return result["found_modules"][f"{file}/{debug_id}"], result["stacks"][0]


def levels(frame):
    """(function, file, line), innermost first, of an answer of version 5."""
    chain = [*frame.get("inlines", []), frame]
    return [(f["function"], f.get("file", ""), f.get("line", 0)) for f in chain if "function" in f]


def native(s, module, addresses):
    """The same of /symbolicate, with the address of the function."""
    sent = [{"instruction_addr": hex(0x10000000 + a), "adjust_instruction_addr": False} for a in addresses]
    answer = s.symbolicate({"stacktraces": [{"frames": sent}], "modules": [{"image_addr": "0x10000000", "image_size": 1 << 28, **module}]})
    equal(answer["modules"][0]["debug_status"], "found", answer["modules"])
    chains, starts = [[] for _ in addresses], [None] * len(addresses)
    for frame in frames(answer):
        if frame["status"] == "symbolicated":
            at, path = frame["original_index"], frame.get("abs_path", "")
            chains[at].append((frame["function"], path, frame["lineno"] if path else 0))
            starts[at] = int(frame["sym_addr"], 16) - 0x10000000 if "sym_addr" in frame else None
    return chains, starts


def same_as_native(work, source, file, debug_id, module, addresses, inlined=True):
    """`module`: how /symbolicate is asked about it."""
    config = {"sources": [source], "mozilla": {"sources": [], "lookup": "exact"}}
    with Service(work, config) as s:
        for _ in range(2):  # made, and out of the cache
            found, stack = v5(s, file, debug_id, addresses)
            equal(found, True, source)
        theirs, starts = native(s, module, addresses)
        for address, frame, chain, start in zip(addresses, stack, theirs, starts):
            equal(levels(frame), chain, hex(address))
            equal(frame.get("function_offset"), hex(address - start) if start is not None else None, hex(address))
        known = sum(bool(chain) for chain in theirs)
        equal(known >= COUNT // 2, True, known)
        equal(any(len(chain) > 2 for chain in theirs), inlined)
        equal(v5(s, file, debug_id[:-2] + ("1" if debug_id[-2] == "0" else "0") + debug_id[-1], [0])[0], False)
    with Service(work, {**config, "mozilla": {"sources": [], "fallback_sources": []}}) as s:
        equal(v5(s, file, debug_id, [0])[0], False)


def stored(work, path, file):
    root = tempfile.mkdtemp(dir=work)
    formats.put(root, path, file)
    return root


def over_http(url, layout):
    return {"id": "web", "type": "http", "url": url, "layout": {"type": layout}}


def on_disk(root, layout):
    return {"id": "disk", "type": "filesystem", "path": root, "layout": {"type": layout}}


def test_pdb_gives_the_stacks_of_llvm(work, objects):
    for target in "x86_64", "i686", "aarch64":
        pdb = os.path.join(formats.built(objects.dir), "pdb", f"msvc-{target}-O2.pdb")
        debug = formats.identity(pdb)
        root = stored(work, f"a.pdb/{debug['breakpad_id']}/a.pdb", pdb)
        module = {"type": "pe", "debug_id": debug["debug_id"], "debug_file": "a.pdb"}
        addresses = formats.Asked(pdb).addresses(COUNT, 5)
        with nginx(work, root) as url:
            same_as_native(work, over_http(url, "symstore"), "a.pdb", debug["breakpad_id"], module, addresses)
        same_as_native(work, on_disk(root, "symstore"), "a.pdb", debug["breakpad_id"], module, addresses)


def test_dsym_gives_the_stacks_of_llvm(work, objects):
    for target in "x86_64", "arm64":
        dsym = os.path.join(formats.built(objects.dir), f"macho-{target}-O2.dwarf")
        debug = formats.identity(dsym)
        uuid = debug["code_id"].upper()
        addresses = formats.Asked(dsym).addresses(COUNT, 5)
        module = {"type": "macho", "debug_id": debug["debug_id"], "code_file": "a.dylib"}
        for layout, path in (("native", "/".join([uuid[i:i + 4] for i in range(0, 20, 4)] + [uuid[20:]])),
                             ("unified", f"{uuid[:2].lower()}/{uuid[2:].lower()}/debuginfo")):
            root = stored(work, path, dsym)
            with nginx(work, root) as url:
                same_as_native(work, over_http(url, layout), "a.dylib", debug["breakpad_id"], module, addresses)
            same_as_native(work, on_disk(root, layout), "a.dylib", debug["breakpad_id"], module, addresses)


def test_elf_is_found_by_the_start_of_its_build_id(work, objects):
    """Of a directory: requests have no more than the first 16 bytes of the build id."""
    home = formats.built(objects.dir)
    path = os.path.join(work, "a.so")
    subprocess.run(["g++", "-g", "-O2", "-fPIC", "-shared", "-Wl,--build-id", "-o", path, os.path.join(home, "a.cc")], check=True)
    debug = formats.identity(path)
    build_id = debug["code_id"]
    addresses = formats.Asked(path).addresses(COUNT, 5)
    module = {"type": "elf", "code_id": build_id, "debug_id": debug["debug_id"], "code_file": "a.so"}
    for layout, place in ("native", f"{build_id[:2]}/{build_id[2:]}.debug"), ("debuginfod", f"{build_id}/debuginfo"):
        root = stored(work, place, path)
        same_as_native(work, on_disk(root, layout), "a.so", debug["breakpad_id"], module, addresses)


def test_breakpad_symbols_come_from_ordinary_sources(work, objects):
    """In a source of the usual kind, not in one of Mozilla's."""
    text = os.path.join(formats.built(objects.dir), "msvc-i686-O2.pdb.sym")
    debug = formats.identity(text)
    root = stored(work, f"a.pdb/{debug['breakpad_id']}/a.sym", text)
    module = {"type": "pe", "debug_id": debug["debug_id"], "debug_file": "a.pdb"}
    addresses = formats.Asked(text).addresses(COUNT, 5)
    with nginx(work, root) as url:
        same_as_native(work, over_http(url, "native"), "a.pdb", debug["breakpad_id"], module, addresses)
    same_as_native(work, on_disk(root, "native"), "a.pdb", debug["breakpad_id"], module, addresses)


def test_uploaded_symbfile_is_found_by_debug_id(work, objects):
    """An upload that was told the debug id answers last, with what was inlined; a newer one at once."""
    debug_id = "44E4EC8C2F41492B9369D6B9A059577C0"
    dashed = "44e4ec8c-2f41-492b-9369-d6b9a059577c"
    with symbfile.service(work, config={"mozilla": {"sources": [], "lookup": "exact"}}) as s:
        equal(v5(s, "inline", debug_id, [0x654])[0], False)
        symbfile.good(s, symbfile.RANGES, DebugID=dashed)
        found, (inner, plain, beside) = v5(s, "inline", debug_id, [0x654, 0x64b, 0x7bc])
        equal(found, True)
        file = symbfile.FILE.decode()
        equal(levels(inner), [(name, file, line) for name, line in symbfile.FIVE])
        equal((inner["function"], inner["function_offset"], inner["module"]), ("main", "0x14", "inline"))
        equal((levels(plain), "inlines" in plain, "function" in beside), ([("main", file, 39)], False, False))
        other = "12345678123456781234567812345678A"
        symbfile.good(s, symbfile.EMPTY, DebugID=dashed)
        equal("function" in v5(s, "inline", debug_id, [0x654])[1][0], False)
        equal(v5(s, "inline", other, [0x654])[0], False)
