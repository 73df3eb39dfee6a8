"""Code without lines in programs of which every block has a section of its own."""
import json, os, subprocess

import harness
from harness import Service, equal, frames

CODE = """#include <string.h>
int use(char *), sink[64];
static inline __attribute__((always_inline)) int leaf(int x) { for (int i = 0; i < x; i++) sink[i & 63] ^= i; return sink[x & 63]; }
static inline __attribute__((always_inline)) int middle(int x) { return x > 5 ? leaf(x) * leaf(x + 1) : leaf(3); }
int entry(int x) { int r = 0; while (x--) r += middle(x) + (x & 1 ? leaf(r) : 0); return r; }
"""


def test_inlined_calls_without_lines_are_shown_on_request(work, objects):
    """`lookup` shows what is inlined there; the API, unless it is asked for that, the innermost call with a line."""
    path, source = os.path.join(work, "symbols/blocks"), os.path.join(work, "blocks.c")
    os.mkdir(os.path.join(work, "symbols"))
    with open(source, "w") as f:
        f.write(CODE)
    subprocess.run(["clang-14", "-g", "-O2", "-fbasic-block-sections=all", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", path, source], check=True)
    symbols = subprocess.run(["nm", "-S", path], check=True, capture_output=True, text=True).stdout
    asked = [f"0x{int(words[0], 16) + at:x}" for words in map(str.split, symbols.splitlines()) if "entry" in words[-1]
             for at in range(0, int(words[1], 16), 2)]
    chains, bare = {}, []
    for answer in json.loads(subprocess.run([harness.SYMLOOM, "lookup", "--json", "-e", path, *asked], check=True,
                                            capture_output=True, text=True).stdout):
        chain = chains[answer["Address"]] = [(f["FunctionName"].partition(".")[0], f["Line"]) for f in answer["Symbol"]]
        if len(chain) > 1 and not answer["Symbol"][0]["FileName"]:
            bare.append(answer["Address"])
            equal((chain[0][0], chain[0][1], chain[1][1] > 0), ("leaf", 0, True))
    assert bare, chains
    code_id = json.loads(subprocess.run([harness.SYMLOOM, "inspect", "--json", path], check=True, capture_output=True, text=True).stdout)[0]["code_id"]
    place = os.path.join(work, "symbols", code_id[:2], code_id[2:])
    os.makedirs(place)
    os.rename(path, os.path.join(place, "executable"))
    request = {"stacktraces": [{"frames": [{"instruction_addr": hex(0x10000 + int(a, 16)), "adjust_instruction_addr": False} for a in bare]}],
               "modules": [{"type": "elf", "code_id": code_id, "image_addr": "0x10000", "image_size": 0x10000}]}
    source = {"id": "local", "type": "filesystem", "path": os.path.join(work, "symbols"), "layout": {"type": "unified"}}
    with Service(work, {"sources": [source]}) as s, Service(work, {"sources": [source], "inlines_without_lines": True}) as all_calls:
        def told(service):
            found = [[] for _ in bare]
            for frame in frames(service.symbolicate(request)):
                found[frame["original_index"]].append((frame["function"], frame["lineno"]))
            return found
        equal(told(all_calls), [chains[a] for a in bare])
        equal(told(s), [chains[a][1:] for a in bare])
