"""Every format end to end: a symbol server's files, stacks all over the code, and what llvm-symbolizer says about them."""
import functools, json, os, shutil, subprocess, sys, tempfile

import harness
from harness import Service, equal, frames, nginx

TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIFFERENTIAL = os.path.join(TESTS, "differential")
sys.path.insert(0, DIFFERENTIAL)
from compare import Asked, trim

ADDRESSES = 400


@functools.lru_cache
def built(home):
    """The directory of test/differential/formats.sh, made once for all tests."""
    out = os.path.join(home, "formats")
    os.makedirs(out)
    subprocess.run(["sh", os.path.join(DIFFERENTIAL, "formats.sh"), out, harness.SYMLOOM, "2"], check=True, capture_output=True)
    return out


def identity(path):
    return json.loads(subprocess.run([harness.SYMLOOM, "inspect", "--json", path], check=True, capture_output=True).stdout)[0]


def store_id(code_id):
    """A time in upper case, a size in lower case: how symbol stores write code ids."""
    return code_id[:8].upper() + code_id[8:]


def put(root, path, file):
    os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
    shutil.copy(file, os.path.join(root, path))


def chains(answer, count):
    """Per frame that was sent its elements, as the peers print them."""
    found = [[] for _ in range(count)]
    for frame in frames(answer):
        if frame["status"] == "symbolicated":
            found[frame["original_index"]].append((frame["symbol"], frame.get("abs_path", ""), frame["lineno"]))
        else:
            equal(frame["status"], "missing_symbol")
    return found


def check(s, url, layout, module, asked, base=0x10000000):
    """Asks about addresses all over the code; `base` 0: of the module, by number. Returns the answer's module."""
    addresses = asked.addresses(ADDRESSES, 5)
    if base:
        sent = [{"instruction_addr": hex(base + a), "adjust_instruction_addr": False} for a in addresses]
        module = {"image_addr": hex(base), "image_size": max(addresses) + 1, **module}
    else:
        sent = [{"instruction_addr": hex(a), "addr_mode": "rel:0"} for a in addresses]
    answer = s.symbolicate({"stacktraces": [{"frames": sent}], "modules": [module], "options": {"dif_candidates": True},
                            "sources": [{"id": "test", "type": "http", "url": url, "layout": {"type": layout}}]})
    equal(answer["modules"][0]["debug_status"], "found", answer["modules"])
    differ, known = [], 0
    ours = chains(answer, len(addresses))
    for address, a, b, c in zip(addresses, ours, *([trim(chain) for chain in chains] for chains in asked.answers(addresses))):
        verdict = asked.verdict(address, a, b, c)
        known += bool(a)
        if verdict and not verdict[1]:
            differ.append((hex(address), verdict[0], a, b, c))
    assert len(differ) <= 0.01 * ADDRESSES, differ[:3]
    assert known >= 0.5 * ADDRESSES and any(len(chain) > 2 for chain in ours), known
    return answer["modules"][0]


def features(module):
    return {key[4:] for key, value in module["features"].items() if value is True}


def test_pdb_and_pe_give_the_stacks_of_llvm(work, objects):
    for target, arch, unwind in ("x86_64", "x86_64", set()), ("i686", "x86", {"unwind_info"}), ("aarch64", "arm64", set()):
        pdb = os.path.join(built(objects.dir), "pdb", f"msvc-{target}-O2.pdb")
        exe = pdb[:-4] + ".exe"
        debug, code = identity(pdb), identity(exe)
        equal(debug["debug_id"], code["debug_id"])
        root = tempfile.mkdtemp(dir=work)
        put(root, f"a.pdb/{debug['breakpad_id']}/a.pdb", pdb)
        put(root, f"a.exe/{store_id(code['code_id'])}/a.exe", exe)
        with nginx(work, root) as url, Service(work) as s:
            module = {"type": "pe", "debug_id": debug["debug_id"], "code_id": code["code_id"], "debug_file": "C:\\out\\a.pdb",
                      "code_file": "C:\\out\\a.exe"}
            result = check(s, url, "symstore", module, Asked(pdb))
            equal(result["arch"], arch)
            equal(features(result), {"debug_info", "symbols"} | unwind)
            used = [c["location"].rsplit("/", 1)[1] for c in result["candidates"] if "debug" in c]
            equal(used, ["a.pdb"])


def test_dsym_gives_the_stacks_of_llvm(work, objects):
    for target, arch in ("x86_64", "x86_64"), ("arm64", "arm64"):
        dsym = os.path.join(built(objects.dir), f"macho-{target}-O2.dwarf")
        debug = identity(dsym)
        hex_id = debug["code_id"].upper()
        path = "/".join([hex_id[i:i + 4] for i in range(0, 20, 4)] + [hex_id[20:]])
        root = tempfile.mkdtemp(dir=work)
        put(root, path, dsym)
        put(root, path + ".app", dsym[:-6] + ".dylib")  # asked for first, and no better than its symbols
        with nginx(work, root) as url, Service(work) as s:
            module = {"type": "macho", "debug_id": debug["debug_id"], "code_file": "/usr/lib/a.dylib"}
            result = check(s, url, "native", module, Asked(dsym))
            equal(result["arch"], arch)
            equal([c["location"].rsplit("/", 1)[1] for c in result["candidates"] if "debug" in c], [path.rsplit("/", 1)[1]])


def test_fat_dsym_slices_are_found_by_their_ids(work, objects):
    home = built(objects.dir)
    slices = [os.path.join(home, f"macho-{target}-O2.dwarf") for target in ("x86_64", "arm64")]
    fat = os.path.join(work, "fat")
    subprocess.run(["llvm-lipo-14", "-create", *slices, "-output", fat], check=True)
    root = tempfile.mkdtemp(dir=work)
    ids = [identity(path) for path in slices]
    for one in ids:
        put(root, f"{one['code_id'][:2]}/{one['code_id'][2:]}/debuginfo", fat)
    with nginx(work, root) as url, Service(work) as s:
        for path, one in zip(slices, ids):
            result = check(s, url, "unified", {"type": "macho", "code_id": one["code_id"], "debug_id": one["debug_id"]}, Asked(path))
            equal(result["arch"], one["arch"])


def test_breakpad_files_give_the_stacks_of_lookup(work, objects):
    for name in "macho-arm64-O2.dwarf", "mingw-gcc-O2.exe", "msvc-i686-O2.pdb":
        text = os.path.join(built(objects.dir), name + ".sym")
        debug = identity(text)
        root = tempfile.mkdtemp(dir=work)
        put(root, f"a.pdb/{debug['breakpad_id']}/a.sym", text)
        with nginx(work, root) as url, Service(work) as s:
            module = {"type": "pe", "debug_id": debug["debug_id"], "debug_file": "a.pdb"}
            result = check(s, url, "native", module, Asked(text))
            equal(result["arch"], debug["arch"])


def test_wasm_gives_the_stacks_of_llvm(work, objects):
    path = os.path.join(built(objects.dir), "wasm-O2.wasm")
    debug = identity(path)
    root = tempfile.mkdtemp(dir=work)
    put(root, f"{debug['code_id'][:2]}/{debug['code_id'][2:]}.debug", path)
    with nginx(work, root) as url, Service(work) as s:
        module = {"type": "wasm", "code_id": debug["code_id"], "debug_id": debug["debug_id"], "debug_file": "http://x.invalid/a.wasm"}
        result = check(s, url, "native", module, Asked(path, llvm="llvm-symbolizer-14"), base=0)  # 19 takes names from elsewhere
        equal((result["arch"], result["image_addr"]), ("wasm32", "0x0"))


def test_pe_with_dwarf_gives_the_stacks_of_llvm(work, objects):
    for name, arch in ("mingw-gcc-O2.exe", "x86_64"), ("mingw-clang-O2.exe", "x86"):
        path = os.path.join(built(objects.dir), name)
        code = identity(path)
        root = tempfile.mkdtemp(dir=work)
        put(root, f"a.exe/{store_id(code['code_id'])}/a.exe", path)
        with nginx(work, root) as url, Service(work) as s:
            module = {"type": "pe", "debug_id": code["debug_id"], "code_id": code["code_id"], "code_file": "C:\\a.exe"}
            result = check(s, url, "symstore", module, Asked(path))
            equal(result["arch"], arch)


GO = """package main

type counter struct{ n int }

func (c *counter) add(by int) int {
	c.n += by
	return c.n
}

//go:noinline
func work(c *counter, n int) (total int) {
	for i := 0; i < n; i++ {
		total += c.add(i)
	}
	return
}

func main() { println(work(&counter{}, 3)) }
"""


def go_program(work, flags):
    """Built with `flags` for the linker, and where main.work is in it."""
    directory = tempfile.mkdtemp(dir=work)
    with open(os.path.join(directory, "main.go"), "w") as f:
        f.write(GO)
    env = {**os.environ, "HOME": directory, "GO111MODULE": "off", "CGO_ENABLED": "0", "GOFLAGS": "-modcacherw"}
    for out, ldflags in ("full", "-B 0x" + "12345678" * 5), ("bare", "-B 0x" + "12345678" * 5 + flags):
        subprocess.run(["go", "build", "-ldflags=" + ldflags, "-o", out, "main.go"], cwd=directory, env=env, check=True)
    symbols = subprocess.run(["go", "tool", "nm", "-size", "full"], cwd=directory, env=env, check=True, capture_output=True,
                             text=True).stdout
    address, size = next(line.split()[:2] for line in symbols.splitlines() if line.endswith(" main.work"))
    return os.path.join(directory, "bare"), int(address, 16), int(size)


def test_go_program_without_dwarf_is_symbolicated(work, objects):
    for flags in " -w", " -s -w":
        path, address, size = go_program(work, flags)
        code = identity(path)
        root = tempfile.mkdtemp(dir=work)
        put(root, f"{code['code_id'][:2]}/{code['code_id'][2:]}", path)
        with nginx(work, root) as url, Service(work) as s:
            sent = [{"instruction_addr": hex(a), "adjust_instruction_addr": False} for a in range(address, address + size)]
            module = {"type": "elf", "code_id": code["code_id"], "debug_id": code["debug_id"], "code_file": "/bin/bare",
                      "image_addr": "0x400000"}
            answer = s.symbolicate({"stacktraces": [{"frames": sent}], "modules": [module],
                                    "sources": [{"id": "test", "type": "http", "url": url, "layout": {"type": "native"}}]})
            equal(answer["modules"][0]["debug_status"], "found", answer["modules"])
            equal(answer["modules"][0]["features"]["has_debug_info"], False)
            found = chains(answer, len(sent))
            equal({c[-1][0] for c in found}, {"main.work"})
            equal({os.path.basename(place[1]) for c in found for place in c}, {"main.go"})
            inlined = [c for c in found if len(c) == 2]
            equal({(c[0][0], c[1][2]) for c in inlined}, {("main.(*counter).add", 13)})
            equal({c[0][2] for c in inlined}, {6})
