"""`symloom lookup` and symcaches: those that it writes, answers from, and keeps; and symcachegen."""
import json, os, shutil
import harness
from compare import same_but_for_pieces
from harness import SOURCE, contains, equal, linked, ok, symloom
from test_lookup import inlined


def test_symcache_is_written_and_listed(work, files):
    cache, t = os.path.join(work, "t.symcache"), files.get("t.static")
    equal(ok("lookup", "-e", t, "--symcache-out", cache), "")
    outer = files.address("t.static", "outer")  # the addresses of the file, whichever is asked
    for name in (t, cache):
        equal(int(ok("lookup", "-e", name, "--names", "outer").split()[0], 16), outer)
    relative = int(ok("lookup", "-e", cache, "--relative-address", "--names", "outer").split()[0], 16)
    assert outer - relative >= 0x1000, relative
    direct = ok("lookup", "-e", t, "--all", "--output-style", "json")
    again = ok("lookup", "-e", cache, "--all", "--output-style", "json")
    for line, other in zip(direct.splitlines(), again.splitlines(), strict=True):  # a symcache has no symbols of pieces
        line, other = json.loads(line), json.loads(other)
        equal(other["Address"], line["Address"])
        frames = [[(s["FunctionName"], s["FileName"], s["Line"], s["Column"]) for s in a["Symbol"]] for a in (line, other)]
        equal(frames[0] == frames[1] or same_but_for_pieces(*frames), True, str(frames))
    addresses = [int(json.loads(line)["Address"], 16) for line in direct.splitlines()]
    equal(addresses, sorted(set(addresses)))


def kept(cache):
    """The tables below a cache directory, without what stands beside them."""
    return sorted(os.path.join(d, f) for d, _, names in os.walk(os.path.join(cache, "own_symcaches")) for f in names if "." not in f)


def test_cached_symcache_is_used_until_the_file_changes(work, files):
    """--cache makes one of the file; the next run answers from it, until the file is another."""
    cache, t = os.path.join(work, "cache"), shutil.copy(files.get("t"), work)
    at = f"0x{inlined(files):x}"
    keeping = ["lookup", "--cache", "--cache-dir", cache, "-e", t, at]
    for style in ("gnu", "llvm", "json", "table"):
        wanted = ok("lookup", "--cache-dir", "", "-e", t, "--output-style", style, at)
        for _ in range(2):
            equal(ok(*keeping, "--output-style", style), wanted, style)
    equal(len(kept(cache)), 2, "with columns and without")
    shutil.rmtree(cache)
    answer = ok(*keeping, "--output-style", "gnu")
    (table,) = kept(cache)
    moved = os.path.join(work, "moved.c")  # the same code, elsewhere: who answers from the table says so
    with open(moved, "w") as f:
        f.write("\n" * 100 + SOURCE)
    files.run(f"{'gcc -g -O2 -fdebug-prefix-map=' + work + '=/src -include sink.h'} -c -o {work}/moved.o {moved} && "
              f"gcc -o {work}/moved {work}/moved.o u.o sink.c main.c")
    ok("lookup", "-e", os.path.join(work, "moved"), "--symcache-out", os.path.join(work, "other"))
    shutil.copyfile(os.path.join(work, "other"), table)
    with open(table + ".metadata", "r+") as f:
        about = {**json.load(f), "size": os.path.getsize(table)}
        f.seek(0)
        f.truncate()
        json.dump(about, f)
    contains(ok(*keeping, "--output-style", "gnu"), "/src/moved.c:101\n")
    for change in (lambda: os.utime(t), lambda: os.replace(shutil.copy(t, t + ".new"), t)):
        change()
        equal(ok(*keeping, "--output-style", "gnu"), answer)
    contains(ok("cleanup", "--all", "--cache-dir", cache), "own_symcaches")
    equal(kept(cache), [])
    equal(ok(*keeping[:3], "", *keeping[4:], "--output-style", "gnu"), answer)
    equal(kept(cache), [])


def test_symcache_of_a_large_file_is_kept_once_complete(work, files):
    """Once one was made of the whole file, which one address does not need."""
    cache, large, at = os.path.join(work, "cache"), shutil.copy(files.get("t"), work), f"0x{inlined(files):x}"
    with open(large, "r+b") as f:
        f.truncate((64 << 20) + 1)
    plain = ["lookup", "--cache-dir", cache, "-e", large, "--output-style", "llvm"]
    wanted = ok(*plain, at)
    equal(kept(cache), [])
    equal(ok(*plain, *[at] * 100), wanted * 100)
    (table,) = kept(cache)
    with open(table, "r+b") as f:  # what cannot be read is made again
        f.truncate(100)
    equal(ok(*plain, *[at] * 100), wanted * 100)
    equal(ok(*plain, at), wanted)
    ok(*plain, "--symcache-out", os.path.join(work, "out"), at)
    equal(kept(cache), [table])


def test_symcaches_of_split_units_and_pipes_are_not_kept(work, files):
    """Of units in files of their own nobody can tell that they are the same; nor of what comes through a pipe."""
    cache = os.path.join(work, "cache")
    with open(os.path.join(work, "split.c"), "w") as f:
        f.write("int main(int count, char **words)\n{\n    return count + words[0][0];\n}\n")
    files.run(f"cd {work} && gcc -g -O1 -gsplit-dwarf -o split split.c")
    path = os.path.join(work, "split")
    at = "0x" + next(line.split()[0] for line in files.run(f"nm {path}").splitlines() if line.endswith(" main"))
    keeping = ["lookup", "--cache", "--cache-dir", cache, "--output-style", "gnu"]
    contains(ok(*keeping, "-e", path, at), "split.c:")
    equal(kept(cache), [])
    equal(files.run(f"cat {path} | {harness.SYMLOOM} {' '.join(keeping)} -e /dev/stdin {at}"), ok(*keeping, "-e", path, at))
    equal(kept(cache), [])


def test_symcachegen_name_writes_a_symcache(work, files):
    """Of any debug file, with the words and under the name of Microsoft's tool; what it holds is what the file says."""
    t, made, tool = files.get("t.static"), os.path.join(work, "made"), linked(work, "symcachegen")
    ok("lookup", "-e", t, "--symcache-out", os.path.join(work, "direct"))
    outer = files.address("t.static", "outer")
    addresses = [f"0x{a:x}" for a in range(outer, outer + 64)]
    wanted = ok("lookup", "-e", os.path.join(work, "direct"), *addresses)
    contains(wanted, "inner\n/src/t.c:1:0\nmid\n/src/t.c:3:0\nouter\n/src/t.c:5:0\n")
    for words in (["-pdb", t], [f"-pdb:{t}"], ["--pdb", t], [f"-pdb={t}"]):
        equal(ok(*words, "-o", made, program=tool, env={"_NT_SYMCACHE_PATH": ""}), "", str(words))
        equal(ok("lookup", "-e", made, *addresses), wanted, str(words))
        os.unlink(made)
    ok("-pdb", files.get("t.exe").replace(".exe", ".pdb"), program=tool, env={"_NT_SYMCACHE_PATH": work})
    place = [os.path.join(d, f) for d, _, names in os.walk(os.path.join(work, "t.pdb")) for f in names]
    equal([os.path.basename(path) for path in place], ["t.pdb-v1000.1.0.symcache"])
    lost = symloom("-pdb", t, program=tool, env={"_NT_SYMCACHE_PATH": ""})
    equal((lost.status, lost.out), (2, ""))
    contains(lost.err, "no output given: pass --output or set $_NT_SYMCACHE_PATH")
