"""`symloom bundle`."""
import json, os, subprocess, zipfile

from harness import contains, equal, ok, symloom

HEADER = b"SYSB\2\0\0\0"


def write(work, name, text):
    path = os.path.join(work, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(text, bytes) else "w") as f:
        f.write(text)
    return path


def entries(path):
    """Entry name to contents, without the manifest; the manifest."""
    with open(path, "rb") as f:
        equal(f.read(8), HEADER)
    with zipfile.ZipFile(path) as archive:
        equal(archive.testzip(), None)
        assert all(i.date_time == (1980, 1, 1, 0, 0, 0) for i in archive.infolist())
        files = {i.filename: archive.read(i) for i in archive.infolist()}
        equal(archive.namelist()[-1], "manifest.json")
    return files, json.loads(files.pop("manifest.json"))


def program(work, name="app.so", options=(), compiler="gcc"):
    """One source that includes another; both below `src`."""
    write(work, "src/inner.h", "static volatile int sink;\nstatic inline int inner(int a)\n{\n    sink = a;\n    return a * 3;\n}\n")
    write(work, "src/main.c", '#include "inner.h"\nint entry(int a) { return inner(a) - 1; }\n')
    path = os.path.join(work, name)
    subprocess.run([compiler, "-g", "-O1", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=sha1", *options, "-o", path,
                    os.path.join(work, "src/main.c")], check=True, capture_output=True, cwd=work)
    return path


def test_bundle_holds_the_sources_of_an_object(work, files):
    app = program(work)
    bundle = os.path.join(work, "app.src.zip")
    equal(ok("bundle", app), bundle + "\n")
    packed, manifest = entries(bundle)
    sources = [os.path.join(work, "src", n) for n in ("inner.h", "main.c")]
    equal(sorted(packed), ["files" + s for s in sources])
    for source in sources:
        with open(source, "rb") as f:
            equal(packed["files" + source], f.read())
    about = json.loads(ok("inspect", "--json", app))[0]
    equal(manifest, {"files": {"files" + s: {"type": "source", "path": s} for s in sources}, "arch": "x86_64",
                     "code_id": about["code_id"], "debug_id": about["debug_id"], "object_name": "app.so"})
    equal(json.loads(ok("inspect", "--json", bundle))[0]["debug_id"], about["debug_id"])
    with open(bundle, "rb") as f:
        first = f.read()
    ok("bundle", app)
    with open(bundle, "rb") as f:
        equal(f.read(), first, "the same input gives the same bytes")


def test_output_option_selects_file_or_directory(work, files):
    app = program(work)
    out = os.path.join(work, "out")
    os.mkdir(out)
    equal(ok("bundle", "-o", out, app), out + "/app.src.zip\n")
    one = os.path.join(work, "one.zip")
    equal(ok("bundle", app, "-o", one), one + "\n")
    more = os.path.join(work, "more")
    other = program(work, "other")
    equal(ok("bundle", "-o", more, app, other), f"{more}/app.src.zip\n{more}/other.src.zip\n")
    before = sorted(os.listdir(work))
    equal(ok("bundle", "-n", app), "".join(os.path.join(work, "src", n) + "\n" for n in ("inner.h", "main.c")))
    equal(sorted(os.listdir(work)), before, "a list writes nothing")
    nowhere = symloom("bundle", "-o", "/nowhere/x", app)
    equal((nowhere.status, nowhere.out), (1, ""))


def test_each_slice_of_a_fat_file_gets_a_bundle(work, files):
    fat = files.get("t.fat")
    dsym = os.path.join(os.path.dirname(fat), "app.dSYM")
    out = os.path.join(work, "out")
    os.mkdir(out)
    equal(ok("bundle", "-o", out, fat), f"{out}/t.src.zip\n{out}/t.1.src.zip\n")
    equal([entries(f"{out}/t{k}.src.zip")[1]["arch"] for k in ("", ".1")], ["x86_64", "arm64"])
    equal(ok("bundle", "-o", out, "--arch", "arm64", fat), f"{out}/t.1.src.zip\n")
    equal(symloom("bundle", "--arch", "ppc", fat).status, 3)
    beside = os.path.join(os.path.dirname(fat), "app.src.zip")
    for path in (dsym, dsym + "/", dsym + "/Contents/Resources/DWARF/app"):
        equal(ok("bundle", path, "--arch", "x86_64"), beside + "\n")
        os.remove(beside)


def test_root_option_finds_moved_sources(work, files):
    app = program(work, options=[f"-ffile-prefix-map={work}=/build/x"])
    equal(symloom("bundle", app).err, f"skipped {app} (no files found)\n")
    assert not os.path.exists(os.path.join(work, "app.src.zip"))
    ok("bundle", app, "--root", "/nothing=/x", "--root", "/build/x=" + work)
    packed, manifest = entries(os.path.join(work, "app.src.zip"))
    equal(sorted(packed), ["files/build/x/src/inner.h", "files/build/x/src/main.c"])
    equal([f["path"] for f in manifest["files"].values()], ["/build/x/src/inner.h", "/build/x/src/main.c"])


def test_entry_names_are_unique_for_every_kind_of_path(work, files):
    """Paths of every kind have one; of two paths that would have the same, the second has a number."""
    paths = ["C:\\foo\\bar", "\\\\UNC\\foo\\bar", "/foo/bar", "\\foo\\bar"]
    text = "".join('# 1 "{}"\nint f{}(int a) {{ return a * {}; }}\n'.format(path.replace("\\", "\\\\"), i, i + 3) for i, path in enumerate(paths))
    source = write(work, "main.c", text)
    app = os.path.join(work, "app.so")
    subprocess.run(["gcc", "-g", "-O1", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=sha1", "-o", app, source], check=True)
    roots = [word for i, path in enumerate(paths) for word in ("--root", path + "=" + write(work, f"source{i}", f"// {i}\n"))]
    ok("bundle", app, *roots)
    packed, manifest = entries(os.path.join(work, "app.src.zip"))
    named = {entry: file["path"] for entry, file in manifest["files"].items() if file["path"] != source}
    equal((named.pop("files/C/foo/bar"), named.pop("files/UNC/foo/bar")), (paths[0], paths[1]))
    equal((sorted(named), sorted(named.values())), (["files/foo/bar", "files/foo/bar.1"], sorted(paths[2:])))
    for entry, path in named.items():
        equal(packed[entry], f"// {paths.index(path)}\n".encode())


def test_skipped_sources_are_reported(work, files):
    app = program(work)
    inner, main = (os.path.join(work, "src", n) for n in ("inner.h", "main.c"))
    write(work, "src/inner.h", b"// \x9f\x92\x96\n")
    result = symloom("bundle", "-v", app)
    equal((result.status, result.err), (0, f"Skipped file {inner} due to: file could not be read as UTF-8\n"))
    equal(list(entries(os.path.join(work, "app.src.zip"))[0]), ["files" + main])
    os.remove(inner)
    os.mkfifo(inner)
    report = json.loads(ok("bundle", "--json", app))
    equal((report[0]["files"], report[0]["skipped"]), ([main], [{"path": inner, "reason": "not a regular file"}]))
    os.remove(inner)
    report = json.loads(ok("bundle", "--json", "--max-file-size", "20", app))
    equal(report[0]["bundle"], None)
    equal(report[0]["skipped"], [{"path": inner, "reason": "No such file or directory"},
                                 {"path": main, "reason": "file is too large"}])


def test_embedded_sources_are_bundled(work, files):
    app = program(work, compiler="clang-14", options=["-gdwarf-5", "-gembed-source"])
    inner, main = (os.path.join(work, "src", n) for n in ("inner.h", "main.c"))
    with open(main, "rb") as f:
        text = f.read()
    sources = json.loads(ok("inspect", "--json", "--sources", app))[0]["sources"]
    equal({s["path"]: s["status"] for s in sources}, {inner: "embedded", main: "embedded"})
    os.remove(main)
    result = symloom("bundle", "-v", app)
    contains(result.err, f"Skipped file {main} due to: embedded source\n", f"skipped {app} (no files found)\n")
    ok("bundle", "--embedded", app)
    packed, _ = entries(os.path.join(work, "app.src.zip"))
    equal(packed["files" + main], text)
    equal(sorted(packed), ["files" + inner, "files" + main])


def test_il2cpp_sources_are_bundled(work, files):
    main = write(work, "src/gen.c", "\nint x;\n//<source_info:Game.cs:42>\nint entry(int a) { return a + x; }\n")
    script = write(work, "Game.cs", "class Game {}\n")
    app = os.path.join(work, "gen.so")
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id", "-o", app, main], check=True)
    mapping = os.path.join(work, "map.json")
    ok("bundle", "--il2cpp", "--il2cpp-mapping", mapping, "--root", "Game.cs=" + script, app)
    packed, manifest = entries(os.path.join(work, "gen.src.zip"))
    equal(list(packed), ["files" + main, "files/Game.cs"])
    debug_id = manifest["debug_id"]
    with open(mapping) as f:
        equal(f.read(), f'{{"{main}":{{"Game.cs":{{"4":42}}}},"__debug-id__":{{"{debug_id}":{{}}}}}}')
    plain = program(work)
    ok("bundle", "--il2cpp-mapping", os.path.join(work, "none.json"), plain)
    assert not os.path.exists(os.path.join(work, "none.json")), "nothing to map"


def test_jvm_project_is_bundled(work, files):
    uuid = "a5619cbd-33f1-4ac2-9ef8-b6a0a3dbd4b6"
    for name in ("app/src/main/java/io/x/Foo.java", "app/src/main/kotlin/io/x/Bar.kt", "app/src/main/java/io/build/Out.java",
                 "lib/src/test/java/io/x/Foo.java", "app/build/gen/Gen.java", "target/T.java", ".gradle/G.java", "tools/Tool.groovy",
                 "notes.txt", "app/src/main/java/io/x/Secret.java", "gen/a/G.java", "gen/keep/K.java"):
        write(work, "p/" + name, "// " + name)
    write(work, "p/.gitignore", "# what is made\nSecret.java\n/gen/**/G.java\n*.groovy\n!Tool.groovy\n")
    result = symloom("bundle", "--jvm", os.path.join(work, "p"), "--debug-id", uuid.upper(), cwd=work)
    equal((result.status, result.out), (0, f"Created {uuid}.zip\n"))
    equal(result.err, "warning: lib/src/test/java/io/x/Foo.java has the same URL as app/src/main/java/io/x/Foo.java, which is packed instead\n")
    packed, manifest = entries(os.path.join(work, uuid + ".zip"))
    urls = ["~/gen/keep/K.jvm", "~/io/build/Out.jvm", "~/io/x/Bar.jvm", "~/io/x/Foo.jvm", "~/tools/Tool.jvm"]
    equal(sorted(f["url"] for f in manifest["files"].values()), urls)
    equal(packed["files/_/_/io/x/Foo.jvm"], b"// app/src/main/java/io/x/Foo.java")
    equal((manifest["debug_id"], set(manifest)), (uuid, {"files", "debug_id"}))
    out = ok("bundle", "--jvm", os.path.join(work, "p"), "--debug-id", uuid, "-o", os.path.join(work, "j.zip"), "--exclude", "io",
             "--exclude", "*.kt", "--exclude", "gen/")
    equal(out, f"Created {work}/j.zip\n")
    equal([f["url"] for f in entries(os.path.join(work, "j.zip"))[1]["files"].values()], ["~/tools/Tool.jvm"])
    missing = symloom("bundle", "--jvm", work + "/none", "--debug-id", uuid)
    equal((missing.status, missing.err), (1, f"error: Given path does not exist: {work}/none\n"))
    no_directory = symloom("bundle", "--jvm", work + "/p/notes.txt", "--debug-id", uuid)
    equal((no_directory.status, no_directory.err), (1, f"error: Given path is not a directory: {work}/p/notes.txt\n"))


def test_bundle_errors_set_the_status(work, files):
    app = program(work)
    for words, status in (((), 2), (("--jvm", work), 2), (("--jvm", work, "--debug-id", "x"), 2), (("--root", "x", app), 2),
                          (("--max-file-size", "big", app), 2), (("--arch", "pdp11", app), 2), (("/nowhere",), 1),
                          ((os.path.join(work, "src/main.c"),), 3), (("--jvm", work, app), 2)):
        equal(symloom("bundle", *words).status, status, words)
