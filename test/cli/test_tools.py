"""The commands for debug files where inputs, outputs and options get in each other's way."""
import gzip, json, os, shutil, zipfile
from harness import contains, equal, linked, ok, symloom
from test_by_id import home
from test_progress import Terminal
from test_wasm_split import UUID, custom, module


def archived(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in members.items():
            archive.write(file, name)
    return path


def test_bundle_is_not_overwritten_by_another_of_its_name(work, files):
    """The second is refused, and the first is still there."""
    for place in ("one", "two"):
        os.mkdir(os.path.join(work, place))
        with open(os.path.join(work, place, "app.c"), "w") as f:
            f.write(f"int {place}(void) {{ return 1; }}\n")
        files.run(f"gcc -g -shared -o {work}/{place}/app {work}/{place}/app.c")
    ok("bundle", "-o", os.path.join(work, "alone.zip"), os.path.join(work, "one/app"))
    out = os.path.join(work, "out")
    both = symloom("bundle", os.path.join(work, "one/app"), os.path.join(work, "two/app"), "-o", out)
    equal((both.status, both.err), (1, f"error: another file's bundle already has this name; choose a different --output\n  caused by: {out}/app.src.zip\n"))
    equal(os.listdir(out), ["app.src.zip"])
    equal(symloom("bundle", "--max-file-size", "1K", "-o", os.path.join(work, "small.zip"), files.get("t")).status, 0)


def test_wasm_split_refuses_one_path_for_both_outputs(work, files):
    path, link = os.path.join(work, "app.wasm"), os.path.join(work, "link.wasm")
    whole = module(custom(".debug_info", b"x" * 40))
    for words in (["-d", path], ["-o", os.path.join(work, "m"), "-d", os.path.join(work, "m")]):
        with open(path, "wb") as f:
            f.write(whole)
        refused = symloom("wasm-split", path, "--strip", *words)
        equal((refused.status, refused.out), (2, ""), refused.err)
        contains(refused.err, "error: --debug-out would overwrite the module: ")
        with open(path, "rb") as f:
            equal(f.read(), whole)
    os.symlink("app.wasm", link)
    ok("wasm-split", link, "--build-id", UUID)
    assert os.path.islink(link)
    with open(path, "rb") as f:
        contains(f.read(), bytes.fromhex(UUID.replace("-", "")))
    failed = symloom("wasm-split", path, "-d", os.path.join(work, "left"), "-o", os.path.join(work, "none/m"))
    equal((failed.status, os.path.exists(os.path.join(work, "left"))), (1, False), failed.err)


def test_sort_dry_run_lists_the_actions_of_a_run(work, files):
    given = os.path.join(work, "given")
    for place in ("a", "b", "c"):
        os.makedirs(os.path.join(given, place))
        shutil.copy(files.get("t"), os.path.join(given, place, "app"))
    with open(os.path.join(given, "b/app"), "ab") as f:
        f.write(b"more")
    actions = []
    for words in (["-n"], []):
        run = symloom("sort", "-z", "--json", *words, "-o", os.path.join(work, "out"), given)
        equal(run.status, 0)
        actions.append(([json.loads(line).get("action") for line in run.out.splitlines()[:-1]], run.out.splitlines()[-1], "duplicate" in run.err))
    equal(actions[0], actions[1])
    equal(actions[0][0], ["written", "duplicate", "exists"])


def test_nested_archives_are_sorted(work, files):
    inner = archived(os.path.join(work, "lib.jar"), app=files.get("t"))
    outer = archived(os.path.join(work, "outer.zip"), **{"lib.jar": inner, "app": files.get("t")})
    with open(outer, "rb") as f, gzip.open(outer + ".gz", "wb") as packed:
        packed.write(f.read())
    for given in (outer, outer + ".gz"):
        run = symloom("sort", "-z", "-o", os.path.join(work, "of-" + os.path.basename(given)), given)
        equal((run.status, run.err, run.out.splitlines()[-1:]), (0, "", ["Sorted 1 debug files"]))


def test_missing_inputs_are_errors_unless_ignored(work, files):
    for more, status in (([], 1), (["-I"], 0)):
        run = symloom("sort", "-z", *more, "-o", os.path.join(work, "out"), files.get("t"), os.path.join(work, "nope"))
        equal((run.status, run.out.splitlines()[-1]), (status, "Sorted 1 debug files"))
        contains(run.err, "nope", "No such file or directory")
    for words in (["-b", ".."], ["-b", "."], ["--multiple-bundles", "."]):
        equal(symloom("sort", "-z", "-o", os.path.join(work, "bad"), *words, *([files.get("t")] if words[0] == "-b" else []), cwd=work).status, 2, words)


def test_single_file_in_an_archive_is_read(work, files):
    """Of one file it is a wrapping like others; a source bundle is none."""
    packed = archived(os.path.join(work, "t.zip"), t=files.get("t"))
    at = hex(files.address("t", "outer"))
    equal(ok("lookup", "-e", packed, at, "--output-style", "llvm"), ok("lookup", "-e", files.get("t"), at, "--output-style", "llvm"))
    equal(ok("dump-syms", packed).replace("t.zip", "t"), ok("dump-syms", files.get("t")))
    bundle = os.path.join(work, "b.zip")
    with open(os.path.join(work, "lib.c"), "w") as f:
        f.write("int lib(void) { return 1; }\n")
    files.run(f"gcc -g -shared -o {work}/lib.so {work}/lib.c")
    ok("bundle", "-o", bundle, os.path.join(work, "lib.so"))
    contains(ok("inspect", bundle), "  Format       sourcebundle")


def test_invalid_option_values_list_the_valid_ones(work, files):
    for words, sentence in ((["--color=purple"], "--color: 'purple' is not one of auto|always|never"), (["--progress", "x"], "--progress: 'x' is not one of auto|plain|json|none")):
        wrong = symloom("inspect", *words, files.get("t"))
        equal((wrong.status, wrong.err), (2, f"error: {sentence}\nTry 'symloom inspect --help'.\n"))
    for words in (["inspect", "no\x1b[31mfile"], ["no\x1b[31mcommand"], ["inspect", "--no\x1b[31m"]):
        run = Terminal(work, *words, env=home(work))
        run.end()
        assert "\x1b[31m" not in run.text and "\\x1b[31m" in run.text, run.text
    equal(ok("-version", program=linked(work, "symcachegen")), ok("--version", program=os.path.join(work, "symcachegen")))


def test_split_function_parts_are_not_found_by_name(work, files):
    """What a compiler has moved away has the name, too, and is not the function; of whatever file."""
    with open(os.path.join(work, "parts.cc"), "w") as f:
        f.write("#include <string>\nextern volatile int v;\nvolatile int v;\n__attribute__((noinline)) int parted(int a)\n"
                "{ std::string s(\"x\"); for (int i = 0; i < a; i++) s += char('a' + v); if (v == 7) throw std::string(s); return (int)s.size() + a; }\n"
                "int main(int n, char **) { return parted(n); }\n")
    at = lambda name: os.path.join(work, name)
    files.run(f"g++ -g -O2 -o {at('parts')} {at('parts.cc')}")
    symbols = files.run(f"nm -S {at('parts')}")
    contains(symbols, "_Z6partedi.cold")
    place, size = next(line.split()[:2] for line in symbols.splitlines() if line.endswith(" _Z6partedi"))
    ok("lookup", "-e", at("parts"), "--symcache-out", at("parts.symcache"))
    ok("dump-syms", "-o", at("parts.sym"), at("parts"))
    for name, function in (("parts.symcache", "_Z6partedi"), ("parts.sym", "parted(int)"), ("parts", "_Z6partedi")):
        found = ok("lookup", "-e", at(name), "--names", function)
        equal([int(word, 16) for word in found.split()[:2]], [int(place, 16), int(size, 16)], (name, found))


def test_missing_split_units_get_a_hint(work, files):
    with open(os.path.join(work, "split.c"), "w") as f:
        f.write("int main(void) { return 0; }\n")
    files.run(f"cd {work} && gcc -g -gsplit-dwarf -o split split.c")
    program = os.path.join(work, "split")
    assert "Hint" not in ok("inspect", "--verify", program)
    for name in os.listdir(work):
        if name.endswith(".dwo"):
            os.remove(os.path.join(work, name))
    contains(ok("inspect", "--verify", program), "  Hint         inlined calls are missing: split.dwo not found at ")
