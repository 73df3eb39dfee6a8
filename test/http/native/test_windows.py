"""Programs for Windows whose debug information lacks something."""
import os, re, subprocess

from harness import Service, Upstream, equal, frames

CODE = """int sink;
static inline __attribute__((always_inline)) void inner(int x) { sink += x * 3; sink ^= 5; }
void __attribute__((noinline)) bare(int x) { sink++; inner(x); sink--; }
int entry(int x) { bare(x); return sink; }
"""


def test_inlined_calls_without_lines_are_shown_on_request(work, objects):
    """Who asks for them sees them; by default the function stands alone."""
    def run(*command, **options):
        return subprocess.run(command, cwd=work, check=True, capture_output=True, text=True, **options).stdout

    with open(os.path.join(work, "p.c"), "w") as f:
        f.write(CODE)
    clang = ("clang-14", "--target=x86_64-pc-windows-msvc")
    text = run(*clang, "-g", "-gcodeview", "-O1", "-ffreestanding", "-fdebug-compilation-dir=C:\\build", "-S", "-o", "-", "p.c")
    run(*clang, "-c", "-x", "assembler", "-o", "p.obj", "-", input=re.sub(r"\t\.cv_loc\t0 .*\n", "", text))
    run("lld-link-14", "/nodefaultlib", "/entry:entry", "/subsystem:console", "/debug", "/out:p.exe", "p.obj")
    guid = re.search(r"GUID: \{([0-9A-F-]+)\}", run("llvm-pdbutil-14", "dump", "--summary", "p.pdb")).group(1)
    offset = 0x1000 + int(re.search(r"`bare`\n\s+flags = \w+, addr = 0001:(\d+)", run("llvm-pdbutil-14", "dump", "--publics", "p.pdb"))[1])
    with open(os.path.join(work, "p.pdb"), "rb") as f:
        routes = {f"/p.pdb/{guid.replace('-', '')}1/p.pdb": f.read()}
    with Upstream(routes) as up:
        request = {"stacktraces": [{"frames": [{"instruction_addr": hex(0x10000 + offset + at), "adjust_instruction_addr": False}
                                               for at in (0, 8)]}],
                   "modules": [{"type": "pe", "debug_file": "p.pdb", "debug_id": f"{guid}-1", "image_addr": "0x10000",
                                "image_size": 0x10000}],
                   "sources": [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "symstore"}}]}
        with Service(work) as s, Service(work, {"inlines_without_lines": True}) as all_calls:
            def told(service):
                return [(f["original_index"], f["function"], f["lineno"], f.get("filename"), f.get("sym_addr"))
                        for f in frames(service.symbolicate(request))]
            bare = ("bare(int)", 0, None, hex(0x10000 + offset))
            equal(told(s), [(0, *bare), (1, *bare)])
            equal(told(all_calls), [(0, *bare), (1, "inner(int)", 2, "p.c", None), (1, *bare)])
