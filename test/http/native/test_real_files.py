"""Programs that others have published, with their debug information, against the tools of LLVM where these read them."""
import bisect, collections, json, os, random, re, subprocess, sys

import harness
from harness import Service, Upstream, equal, frames, from_npm, npm_path

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "differential"))
from binary import code_ranges

LLVM = "llvm-symbolizer-19"
PLAIN = {**os.environ, "LLVM_DISABLE_SYMBOLIZATION": "1"}  # where it breaks down, it need not say how

def asked(command, addresses):
    """Chains (name, file, line) by address; an address at which the tool breaks down has none."""
    answers, left = {}, list(addresses)
    while left:
        text = "".join(f"0x{address:x}\n" for address in left)
        out = subprocess.run(command, input=text, capture_output=True, text=True, env=PLAIN).stdout
        told = 0
        for line in out.splitlines():
            try:
                chain = json.loads(line)["Symbol"]
            except ValueError:
                break
            answers[left[told]] = [(f["FunctionName"], f["FileName"], f["Line"]) for f in chain]
            told += 1
        assert told == len(left) or command[0] == LLVM, f"{command} ends at 0x{left[told]:x}"
        left = left[told + 1:]
    return answers


def picked(path, count=600):
    r, ranges = random.Random(1), code_ranges(path)
    return [start + r.randrange(size) for start, size in r.choices(ranges, [size for _, size in ranges], k=count)]


def plain(name):
    """A name without arguments, blanks and keywords: PDBs have them as they like."""
    name = re.sub(r"\b(class|struct|enum|union) ", "", re.sub(r"\) const$", ")", name)).replace(" ", "").replace("dtor'", "destructor'")
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += (name[i] == ")") - (name[i] == "(")
        if name[-1] != ")" or depth == 0:
            return name[:i] if name[-1:] == ")" and not name.endswith("operator()") else name
    return name


HIDDEN = (0xF00F00, 0xFEEFEE)  # lines that are none: LLVM shows them in files for ARM


def compare(ours, theirs):
    """What a pair of chains has in common. LLVM misses inlined calls, or takes lines of theirs for those of the record before;
    it names what lies behind a function; of several names of one address it knows another one."""
    ours = [(plain(name), file.lower(), line) for name, file, line in ours]
    theirs = [(plain(name), file.lower(), line) for name, file, line in theirs]
    if ours == theirs:
        return "same"
    if ours == [("", "", 0)] or not ours:
        return "padding" if theirs[-1][2] == 0 else "missing"
    if theirs[-1][2] in HIDDEN or ours[-1][1:] == theirs[-1][1:]:
        names, others = [e[0] for e in ours], [e[0] for e in theirs]
        if len(others) > len(names):
            return "fewer calls"
        return "calls" if names[-1] == others[-1] else "alias"
    return "place"


class Lines:
    """The line records of a PDB's first section as they stand there: LLVM mixes up those of functions with code of several files."""

    def __init__(self, pdb):
        text = subprocess.run(["llvm-pdbutil-14", "dump", "--l", pdb], capture_output=True, text=True, check=True).stdout
        self.records, file, first = collections.defaultdict(set), "", False
        for line in text.splitlines():
            if re.match(r"\S.* \((SHA-256|SHA-1|MD5|no checksum)", line):
                file = line.rsplit(" (", 1)[0].lower()
            elif re.match(r"  [0-9A-F]{4}:", line):
                first = line.startswith("  0001:")
            elif first:
                for number, offset in re.findall(r"(\d+) ([0-9A-F]{8})", line):
                    self.records[int(offset, 16) + 0x1000].add((file, int(number)))
        self.starts = sorted(self.records)

    def have(self, address, place):
        at = bisect.bisect_right(self.starts, address)
        return at > 0 and (place[0].lower(), place[1]) in self.records[self.starts[at - 1]]


@from_npm
def test_windows_programs_of_npm_are_symbolicated(work, objects):
    root = npm_path(work, "node-pty@1.1.0", "node-pty/prebuilds")
    files = [os.path.join(root, f"win32-{arch}", name) for arch in ("x64", "arm64")
             for name in ("conpty.node", "conpty_console_list.node", "pty.node", "winpty-agent.exe", "winpty.dll")]
    for path in files:
        pdb = os.path.splitext(path)[0] + ".pdb"
        code, debug = (json.loads(subprocess.run([harness.SYMLOOM, "inspect", "--json", f], capture_output=True, text=True).stdout)[0]
                       for f in (path, pdb))
        equal(code["debug_id"], debug["debug_id"])
        addresses = picked(path)
        ours = asked([harness.SYMLOOM, "lookup", "-e", pdb, "--relative-address", "--output-style", "json"], addresses)
        theirs = asked([LLVM, f"--obj={path}", "--relative-address", "--output-style=JSON"], addresses)
        kinds, examples, lines = collections.Counter(), {}, Lines(pdb)
        for address, chain in theirs.items():
            kind = compare(ours[address], chain)
            if kind == "place" and lines.have(address, ours[address][-1][1:]):
                kind = "record"
            kinds[kind] += 1
            examples.setdefault(kind, (hex(address), ours[address], chain))
        print(os.path.relpath(path, root), dict(kinds))
        right = sum(kinds[kind] for kind in ("same", "padding", "calls", "alias", "record"))
        assert right >= 0.995 * len(theirs) and kinds["alias"] <= 0.06 * len(theirs) and len(theirs) > 500, (kinds, examples)


@from_npm
def test_wasm_with_dwarf_equals_llvm(work, objects):
    path = npm_path(work, "web-tree-sitter@0.27.1", "web-tree-sitter/debug/web-tree-sitter.wasm")
    addresses = picked(path)
    ours = asked([harness.SYMLOOM, "lookup", "-e", path, "--output-style", "json"], addresses)
    code = code_ranges(path)[0][0]  # LLVM counts from there
    theirs = asked([LLVM, f"--obj={path}", "--output-style=JSON"], [address - code for address in addresses])

    def places(chain):
        return [(os.path.normpath(file), line) for _, file, line in chain if line]

    wrong = [(hex(a), ours[a], theirs[a - code]) for a in addresses if places(ours[a]) != places(theirs[a - code])]
    assert len(wrong) <= 0.005 * len(addresses), (len(wrong), wrong[:3])


def methods(service, up, module, count):
    """(file, line) by method of a .NET module, at its first instruction."""
    request = {"stacktraces": [{"frames": [{"instruction_addr": "0x0", "addr_mode": "rel:0", "function_id": hex(i + 1)}
                                           for i in range(count)]}],
               "modules": [{"type": "pe_dotnet", **module}],
               "sources": [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "symstore"}}]}
    answer = service.symbolicate(request)
    return [(f.get("filename", ""), f.get("lineno", 0)) for f in frames(answer) if f["status"] == "symbolicated"]


def inspected(path):
    return json.loads(subprocess.run([harness.SYMLOOM, "inspect", "--json", path], capture_output=True, text=True, check=True).stdout)


@from_npm
def test_portable_pdb_of_npm_gives_lines(work, objects):
    root = npm_path(work, "@autorest/csharp@3.0.0-beta.20251203.1", "@autorest/csharp")
    library, pdb = os.path.join(root, "AutoRest.CSharp.dll"), os.path.join(root, "AutoRest.CSharp.pdb")
    code, debug = inspected(library)[0], inspected(pdb)[0]
    equal(code["debug_id"], debug["debug_id"])
    guid = debug["debug_id"].replace("-", "")[:32].upper()
    with open(pdb, "rb") as f:
        routes = {f"/AutoRest.CSharp.pdb/{guid}ffffffff/AutoRest.CSharp.pdb": f.read()}
    with Upstream(routes) as up, Service(work) as s:
        found = methods(s, up, {"debug_file": "AutoRest.CSharp.pdb", "debug_id": debug["debug_id"]}, 6000)
    assert len(found) > 4000, len(found)
    assert all(name.endswith(".cs") and 0 < line < 20000 for name, line in found), found[:5]
    assert len({name for name, _ in found}) > 300, len({name for name, _ in found})


@from_npm
def test_embedded_portable_pdb_of_npm_gives_lines(work, objects):
    path = npm_path(work, "@autorest/csharp@3.0.0-beta.20251203.1", "@autorest/csharp/Humanizer.dll")
    code = inspected(path)[0]
    with open(path, "rb") as f:
        routes = {f"/Humanizer.dll/{code['code_id'].upper()}/Humanizer.dll": f.read()}
    with Upstream(routes) as up, Service(work, {"dotnet_ask_pe": True}) as s:
        found = methods(s, up, {"debug_file": "Humanizer.pdb", "debug_id": code["debug_id"], "code_file": "Humanizer.dll",
                                "code_id": code["code_id"]}, 3000)
    assert len(found) > 1000, len(found)
    assert all(name.endswith(".cs") and 0 < line < 20000 for name, line in found), found[:5]
