"""`sort`: debug files into the layout `unified`, as symsorter does, whatever was there before."""
import gzip, json, os, re, shutil, signal, subprocess, time, zipfile
from harness import DEADLINE, contains, equal, linked, ok, symloom


def program(directory, name="app", text="int area(int a) { return a * a; }\nint main(void) { return area(3); }\n", build_id=None):
    """An executable, and its debug file beside it; returns the build id."""
    os.makedirs(directory, exist_ok=True)
    source = os.path.join(directory, name + ".c")
    with open(source, "w") as f:
        f.write(text)
    path, note = os.path.join(directory, name), f"-Wl,--build-id={'0x' + build_id if build_id else 'sha1'}"
    subprocess.run(["gcc", "-g", "-O1", note, "-o", path, source], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", path, path + ".debug"], check=True)
    subprocess.run(["strip", path], check=True)
    return re.search(r"Code ID +([0-9a-f]+)", ok("inspect", path))[1]


def read(*parts):
    with open(os.path.join(*parts), "rb") as f:
        return f.read()


def tree(directory):
    """Every file with its time of change."""
    return {os.path.relpath(os.path.join(d, name), directory): os.stat(os.path.join(d, name)).st_mtime_ns
            for d, _, names in os.walk(directory) for name in names}


def unpacked(path):
    return subprocess.run(["zstd", "-dqc", path], capture_output=True, check=True).stdout


def test_program_and_debug_file_are_sorted_by_id(work, files):
    given, out = os.path.join(work, "in"), os.path.join(work, "out")
    build_id = program(given)
    with open(os.path.join(given, "notes.txt"), "w") as f:
        f.write("no debug file\n")
    subprocess.run(["gcc", "-c", "-o", os.path.join(given, "part.o"), os.path.join(given, "app.c")], check=True)
    words = ["sort", "-zz", "-o", out, "-p", "linux", "-b", "10.11", given]
    listing = ok(*words)
    place = os.path.join(out, "linux", build_id[:2], build_id[2:])
    equal(listing.splitlines(), ["Sorting debug information files", f"app (exe, x86_64) -> {place}/executable",
                                 f"app.debug (dbg, x86_64) -> {place}/debuginfo", "Writing bundle meta data", "", "Done.",
                                 "Sorted 2 debug files"])
    for name, kind in (("app", "executable"), ("app.debug", "debuginfo")):
        equal(unpacked(os.path.join(place, kind)), read(given, name))
        equal(json.loads(read(place, kind + ".meta")), {"name": name, "arch": "x86_64", "file_format": "elf"})
    equal(read(place, "refs", "10.11"), b"")
    bundle = json.loads(read(out, "linux", "bundles", "10.11"))
    equal((bundle["name"], bundle["debug_ids"]), ("10.11", [build_id, build_id]))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", bundle["timestamp"]), bundle
    contains(ok("lookup", "--build-id", build_id, "--symbols", f"unified:{out}/linux", "area"), "area", "app.c:1")

    before = tree(out)
    again = symloom(*words)
    equal((again.status, again.out, again.err), (0, listing, ""))
    after = tree(out)
    after.pop("linux/bundles/10.11"), before.pop("linux/bundles/10.11")
    equal(after, before)


def test_mach_o_program_and_dsym_are_sorted_by_id(work, files):
    """Both under the one id; a second time nothing changes."""
    files.get("t.fat")
    given, out = os.path.join(work, "in"), os.path.join(work, "out")
    dsym = os.path.join(given, "crash.dSYM/Contents/Resources/DWARF")
    os.makedirs(dsym)
    shutil.copy(os.path.join(files.dir, "x86_64.dylib"), os.path.join(given, "crash"))
    shutil.copy(os.path.join(files.dir, "x86_64.dwarf"), os.path.join(dsym, "crash"))
    uuid = json.loads(ok("inspect", "--json", os.path.join(given, "crash")))[0]["debug_id"].replace("-", "")
    words = ["sort", "-zz", "-o", out, "-p", "macos", "-b", "10.11", given]
    listing = ok(*words)
    place = os.path.join(out, "macos", uuid[:2], uuid[2:])
    equal(listing.splitlines()[-2:], ["Done.", "Sorted 2 debug files"])
    for kind, source in (("executable", os.path.join(given, "crash")), ("debuginfo", os.path.join(dsym, "crash"))):
        with open(source, "rb") as f:
            equal(unpacked(os.path.join(place, kind)), f.read())
        meta = json.loads(read(place, kind + ".meta"))
        equal(meta, {"name": "crash", "arch": "x86_64", "file_format": "macho"})
    equal(read(place, "refs", "10.11"), b"")
    equal(json.loads(read(out, "macos", "bundles", "10.11"))["debug_ids"], [uuid, uuid])
    again = symloom(*words)
    equal((again.status, again.out, again.err), (0, listing, ""))


def test_directory_without_debug_files_is_reported(work, files):
    """Object files, texts and cores are passed over and make no directory; if nothing else is there, a warning says so, except with -q."""
    given, out = os.path.join(work, "in"), os.path.join(work, "out")
    program(given)
    app = read(given, "app")
    subprocess.run(["gcc", "-c", "-o", os.path.join(given, "part.o"), os.path.join(given, "app.c")], check=True)
    with open(os.path.join(given, "core"), "wb") as f:
        f.write(app[:16] + (4).to_bytes(2, "little") + app[18:])  # ET_CORE
    for name in ("app", "app.debug"):
        os.unlink(os.path.join(given, name))
    result = symloom("sort", "-z", "-o", out, given)
    equal((result.status, result.err, result.out.splitlines()[-1]),
          (0, "warning: no debug files found: 3 files of other kinds; -v lists them\n", "Sorted 0 debug files"))
    result = symloom("sort", "-q", "-o", out, given)
    equal((result.status, result.err, result.out), (0, "", ""))
    equal([name for _, _, names in os.walk(out) for name in names], [])


def test_symsorter_name_accepts_its_options(work, files):
    given, out = os.path.join(work, "in"), os.path.join(work, "out")
    program(given)
    result = symloom("-o", out, "--prefix", "linux", given, program=linked(work, "symsorter"))
    equal((result.status, result.err), (0, "WARNING: No compression used. Consider to pass -zz.\n"))
    equal(result.out.splitlines()[-1], "Sorted 2 debug files")
    contains(ok("--help", program=linked(work, "symsorter-1")), "usage: symsorter -o DIR")


def test_bundle_ids_are_written_and_checked(work, files):
    given = os.path.join(work, "17.0 (21A328)")
    build_id = program(given)
    for good in ("10.3_ABCD", "++lyra+main-CL-12345"):
        ok("sort", "-qz", "-o", os.path.join(work, "a"), "-b", good, given)
        assert os.path.exists(os.path.join(work, "a", "bundles", good))
    wrong = symloom("sort", "-o", os.path.join(work, "a"), "-b", "10.3.*", given)
    equal((wrong.status, wrong.out, wrong.err.splitlines()[0]), (2, "", "error: Invalid bundle id"))
    contains(ok("sort", "-z", "-o", os.path.join(work, "b"), "--multiple-bundles", given), "[bundle: 17.0_21A328]\n")
    equal(json.loads(read(work, "b", "bundles", "17.0_21A328"))["debug_ids"], [build_id] * 2)


def test_malformed_files_are_reported_and_skipped(work, files):
    given, out = os.path.join(work, "in"), os.path.join(work, "out")
    build_id = program(os.path.join(given, "good"))
    with open(os.path.join(given, "a-broken"), "wb") as f:
        f.write(read(given, "good", "app")[:40])
    program(os.path.join(given, "nameless"), build_id="00")
    subprocess.run(["gcc", "-Wl,--build-id=none", "-nostdlib", "-static", "-s", "-o", os.path.join(given, "nobody"), "-x", "c", "-"],
                   input=b"", check=True, capture_output=True)
    result = symloom("sort", "-z", "-o", out, given)
    equal(result.status, 1)
    contains(result.err, "error: failed to process file a-broken\n  caused by: invalid ELF file",
             "error: failed to process file nobody\n  caused by: failed to generate debug identifier\n",
             "\nTo skip this error, use --ignore-errors.\n")
    assert os.path.exists(os.path.join(out, build_id[:2], build_id[2:], "debuginfo"))  # all inputs were tried
    ignored = symloom("sort", "-zI", "-o", out, given)
    equal(ignored.status, 0)
    contains(ignored.err, "error: ignored error failed to generate debug identifier (nobody)\n")
    nothing = os.path.join(work, "nothing")
    os.mkdir(nothing)
    equal(ok("sort", "-z", "-o", out, nothing).splitlines()[-1], "Sorted 0 debug files")
    missing = symloom("sort", "-o", out, os.path.join(work, "nowhere"))
    equal((missing.status, missing.out.splitlines()[-1]), (1, "Sorted 0 debug files"))
    contains(missing.err, "error: failed to process file nowhere\n")


def test_first_of_equal_ids_is_kept(work, files):
    given, out = os.path.join(work, "in"), os.path.join(work, "out")
    same = "1234567890" * 4
    program(os.path.join(given, "b"), text="int main(void) { return 2; }\n", build_id=same)
    program(os.path.join(given, "a"), text="int main(void) { return 1; }\n", build_id=same)
    place = os.path.join(out, same[:2], same[2:])
    for _ in range(2):  # and what is there stays
        result = symloom("sort", "-j4", "-z", "-o", out, given)
        equal((result.status, result.out.splitlines()[-1]), (0, "Sorted 2 debug files"))
        contains(result.err, f"WARNING: File {place}/executable already exists, you seem to have duplicate debug files for ID {same}.\n"
                             "Skipping app.\n")
        equal(unpacked(os.path.join(place, "executable")), read(given, "a", "app"))
    shutil.rmtree(os.path.join(given, "a"))
    equal(symloom("sort", "-z", "-o", out, given).out.splitlines()[-1], "Sorted 0 debug files")
    ok("sort", "-zf", "-o", out, given)
    equal(unpacked(os.path.join(place, "executable")), read(given, "b", "app"))


def test_compressed_files_and_archives_are_sorted(work, files):
    given, out = os.path.join(work, "in"), os.path.join(work, "out")
    build_id = program(os.path.join(work, "plain"))
    os.mkdir(given)
    with gzip.open(os.path.join(given, "app.gz"), "wb") as f:
        f.write(read(work, "plain", "app"))
    with zipfile.ZipFile(os.path.join(given, "more.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(os.path.join(work, "plain", "app.debug"), "deep/in/it/app.debug")
        archive.writestr("deep/readme", "no debug file")
    rows = [json.loads(line) for line in ok("sort", "--json", "-o", out, given).splitlines()]
    equal(rows[-1], {"sorted": 2, "source_bundles": 0, "errors": 0})
    equal([(os.path.basename(row["input"]), row["member"], row["kind"], row["action"]) for row in rows[:-1]],
          [("app.gz", None, "exe", "written"), ("more.zip", "app.debug", "dbg", "written")])
    equal(read(rows[0]["path"]), read(work, "plain", "app"))
    equal(read(rows[1]["path"]), read(work, "plain", "app.debug"))
    equal(rows[1]["path"], os.path.join(out, build_id[:2], build_id[2:], "debuginfo"))
    dry = os.path.join(work, "dry")
    equal(len(ok("sort", "-n", "--json", "-o", dry, given).splitlines()), 3)
    assert not os.path.exists(dry)


def test_with_sources_option_adds_source_bundles(work, files):
    given, out = os.path.join(work, "in"), os.path.join(work, "out")
    build_id = program(given)
    text = ok("sort", "-z", "--with-sources", "-o", out, given)
    contains(text, "Creating source bundles\n", "(src, x86_64) -> ", "Sorted 3 debug files\nCreated 1 source bundles\n")
    place = os.path.join(out, build_id[:2], build_id[2:], "sourcebundle")
    contains(ok("inspect", "--sources", place), os.path.join(given, "app.c"))


def test_source_bundles_are_made_for_each_member_of_an_archive(work, files):
    given, out = os.path.join(work, "in"), os.path.join(work, "out")
    path = os.path.join(work, "all.zip")
    ids = {name: program(given, name, f"int {name}(int a) {{ return a; }}\nint main(void) {{ return {name}(3); }}\n")
           for name in ("one", "two", "three")}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme", "no debug file")
        for name in ids:
            archive.write(os.path.join(given, name + ".debug"), f"below/{name}.debug")
    rows = [json.loads(line) for line in ok("sort", "--json", "--with-sources", "-o", out, path).splitlines()]
    equal(rows[-1], {"sorted": 6, "source_bundles": 3, "errors": 0})
    equal({(row["input"], row["member"]) for row in rows if row.get("kind") == "src"}, {(path, name + ".debug") for name in ids})
    for name, build_id in ids.items():
        place = os.path.join(out, build_id[:2], build_id[2:], "sourcebundle")
        contains(ok("inspect", "--sources", place), os.path.join(given, name + ".c"))
        equal(json.loads(read(place + ".meta"))["name"], name + ".debug")


def test_unwritable_alias_is_reported_with_its_reason(work, files):
    """A WASM file is also written below its plain id."""
    path, out, build_id = os.path.join(work, "t.wasm"), os.path.join(work, "out"), "ab" + "cd" * 15
    shutil.copy(files.get("t.wasm"), path)
    ok("wasm-split", path, "--build-id", build_id)
    os.mkdir(out)
    with open(os.path.join(out, build_id[:2]), "w"):
        pass
    result = symloom("sort", "-o", out, path)
    equal(result.status, 1)
    contains(result.err, "error: failed to process file t.wasm\n"
             f"  caused by: cannot write {out}/{build_id[:2]}/{build_id[2:]}/executable: Not a directory\n")


def test_interrupted_sort_leaves_no_partial_file(work, files):
    from harness import SYMLOOM
    out = os.path.join(work, "out")
    run = subprocess.Popen([SYMLOOM, "sort", "-qzzzz", "-o", out, SYMLOOM], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + DEADLINE
        while run.poll() is None and not any(names for _, _, names in os.walk(out)) and time.monotonic() < deadline:
            time.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        equal(run.wait(DEADLINE), -signal.SIGTERM)
    finally:
        run.kill()
        run.wait()
    equal([name for _, _, names in os.walk(out) for name in names], [])
