"""`symloom symbolicate` of addresses: in files where they were loaded, in lists of mappings, in processes."""
import json, os, subprocess
from harness import contains, equal, ok, symloom
from test_profiles import addresses, chain

WAITS = r"""
#include <stdio.h>
static volatile int sink;
static inline __attribute__((always_inline)) int within(int x) { sink += x; return sink; }
__attribute__((noinline)) int called(int x) { return within(x) * 3; }
int main(void) { printf("%p %p\n", (void *)called, (void *)main); fflush(stdout); called(2); return getchar() == 0; }
"""


def found(*arguments, **options):
    """Name and line of each frame."""
    answer = json.loads(ok("symbolicate", "--cache-dir", "", "--no-network", *arguments, **options))
    return [(f.get("function"), f.get("lineno")) for f in answer["stacktraces"][0]["frames"]]


def test_addresses_of_a_module_option_are_named(work, files):
    path, base = files.get("t"), 0x555500000000
    entry, inlined = addresses(files)
    at = [f"{base + inlined:#x}", f"{base + entry:x}"]
    expected = chain(files, inlined)[::-1] + chain(files, entry)[::-1]
    module = f"--module={path}@{base:#x}"
    equal(found(module, *at), expected)
    equal(found(module, "--type", "addresses", input=f"{at[0]} \n\n{at[1]},"), expected)
    equal(found(f"{module}+1000000", *at), expected)
    equal(found(f"--module=x86_64:{path}@{base:x}", *at), expected)
    equal(found(f"--module={path}@0", f"{inlined:#x}", f"{entry:x}"), expected)
    equal(found(module, f"{base - 1:#x}"), [(None, None)])
    # a return address at the beginning of a function is behind a call in the one before
    outer = f"{base + files.address('t', 'outer'):#x}"
    equal(found(module, outer, outer)[-1][0], "outer")
    equal(found(module, outer, outer, "--return-addresses")[0][0], "outer")
    assert found(module, outer, outer, "--return-addresses")[-1][0] != "outer"
    lines = ok("symbolicate", "--cache-dir", "", "-f", "compact", module, *at).splitlines()
    equal([line.split()[0] for line in lines], ["Trust", "inline", "inline", "none", "none"])
    contains(lines[3], f"  t            +{inlined:#x}  outer")


def test_addresses_of_a_process_are_named(work, files):
    with open(os.path.join(work, "waits.c"), "w") as f:
        f.write(WAITS)
    for flags in ([], ["-no-pie"], ["-fuse-ld=lld"]):
        program = os.path.join(work, "waits")
        subprocess.run(["gcc", "-g", "-O1", "-w", *flags, "-Wl,--build-id=sha1", "-o", program, "waits.c"], cwd=work, check=True)
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            at = process.stdout.readline().split()
            expected = [("within", 4), ("called", 5), ("main", 6)]
            equal(found("--pid", str(process.pid), *at), expected, flags)
            maps = os.path.join(work, "maps")
            with open(f"/proc/{process.pid}/maps") as f, open(maps, "w") as g:
                g.write(f.read())
            process.stdin.close()
            process.wait()
        equal(found("--maps", maps, *at), expected, flags)
        os.rename(program, program + ".gone")
        equal(found("--maps", maps, *at), [(None, None)] * 2)
        os.remove(program + ".gone")


def test_invalid_address_arguments_are_refused(work, files):
    path = files.get("t")
    for status, arguments in ((2, ["--module", path, "1"]), (2, ["--module", f"{path}@x", "1"]), (2, ["--module", f"{path}@1+", "1"]),
                              (2, ["--module", f"{path}@0", "--pid", "1", "1"]), (2, ["--module", f"{path}@0", "--module", f"{path}@1", "1"]),
                              (2, ["--module", f"{path}@1", "zz"]), (2, ["--module", f"{path}@1", "11112222333344445"]),
                              (1, ["--module", "/nowhere@1", "1"]), (3, ["--module", f"{path}@1"]), (2, ["--pid", "self", "1"]),
                              (1, ["--pid", "4194999999", "1"]), (1, ["--maps", "/nowhere", "1"]), (2, ["--type", "apple", "--pid", "1", "1"]),
                              (2, ["--module", f"{path}@1", "-f", "machine", "1"])):
        result = symloom("symbolicate", "--cache-dir", "", *arguments)
        equal((result.status, result.out), (status, ""), (arguments, result.err))
