"""`symloom inspect`."""
import json, os, shutil, struct, zipfile, zlib
import dumps
from harness import contains, equal, ok, symloom


def test_format_features_and_use_are_shown(work, files):
    t = files.get("t")
    text = ok("inspect", t)
    contains(text, f"{t}\n  Format       elf (executable), ", ", object 1 of 1\n", "  Features     symtab, debug, unwind\n",
             "  Usable       yes\n")
    assert "Counts" not in text
    verified = ok("inspect", "--verify", "-v", t)
    contains(verified, "  Counts       ", " functions, ", "  File ID ", "  Producers    GNU C", " units)\n")


def test_programs_are_told_from_libraries(work, files):
    """A position independent program is one: by its flag, or by its interpreter when the linker wrote no flag."""
    files.get("t")
    for name, options in {"pie": "-pie", "static-pie": "-static-pie", "plain": "-no-pie", "soname": "-shared -Wl,-soname,x -fPIC",
                          "library": "-shared -fPIC"}.items():
        files.run(f"gcc {options} -g -o {work}/{name} -x c main.c t.c sink.c -include sink.h -Dentry2=entry")
        kind = "library" if "-shared" in options else "executable"
        contains(ok("inspect", os.path.join(work, name)), f"  Format       elf ({kind}), ")
    with open(os.path.join(work, "pie"), "rb") as f:
        old = f.read()
    flags = struct.pack("<QQ", 0x6FFFFFFB, 0x08000000)  # DT_FLAGS_1: DF_1_PIE
    equal(old.count(flags), 1)
    with open(os.path.join(work, "old"), "wb") as f:
        f.write(old.replace(flags, struct.pack("<QQ", 0x6FFFFFFB, 0)))
    contains(ok("inspect", os.path.join(work, "old")), "  Format       elf (executable), ")
    files.run(f"objcopy --only-keep-debug {work}/pie {work}/pie.debug")
    contains(ok("inspect", os.path.join(work, "pie.debug")), "  Format       elf (debug companion), ")


def test_every_format_is_recognised(work, files):
    wanted = {"t": ("elf", "x86_64"), "t.static": ("elf", "x86_64"), "t.mingw": ("pe", "x86_64"), "t.32": ("pe", "x86"),
              "t.wasm": ("wasm", "wasm32"), "t.fat": ("dsym", "x86_64"), "t.exe": ("pe", "x86_64")}
    for name, (kind, arch) in wanted.items():
        objects = json.loads(ok("inspect", "--json", "--verify", files.get(name)))
        equal((objects[0]["type"], objects[0]["arch"]), (kind, arch), name)
        equal(len(objects), 2 if name == "t.fat" else 1)
        if name != "t.exe":
            assert objects[0]["counts"]["functions"] >= 2, objects
    pdb = os.path.splitext(files.get("t.exe"))[0] + ".pdb"
    equal(json.loads(ok("inspect", "--json", "-t", "pdb", pdb))[0]["debug_id"],
          json.loads(ok("inspect", "--json", files.get("t.exe")))[0]["debug_id"])


def test_json_lists_have_all_fields(work, files):
    item = json.loads(ok("inspect", "--json", "--sections", "--symbols", "--functions", "--files", "--sources", "--cfi", files.get("t")))[0]
    equal(list(item), ["path", "size", "type", "object_index", "debug_id", "breakpad_id", "code_id", "file_id", "arch", "kind",
                       "load_address", "debug_file", "features", "counts", "is_usable", "problem", "note", "hints", "variants",
                       "sections", "symbols", "functions", "files", "sources", "cfi"])
    equal(item["variants"], [{k: item[k] for k in ("debug_id", "code_id", "arch")}])
    outer = next(f for f in item["functions"] if f["name"] == "outer")
    equal((outer["place"], outer["inlinees"][0]["name"]), ("/src/t.c:5", "mid"))
    assert any(s["name"] == ".text" for s in item["sections"])
    assert any(s["name"] == "outer" for s in item["symbols"])
    contains("\n".join(item["files"]), "/src/t.c")
    equal(item["sources"][0]["status"], "missing")
    stack = [l for l in ok("dump-syms", files.get("t")).splitlines() if l.startswith("STACK ")]
    equal(item["cfi"], stack)
    equal(item["counts"]["cfi_entries"], len([l for l in stack if l.startswith("STACK CFI INIT ")]))
    none = symloom("inspect", "--json", "/nowhere")
    equal((none.status, none.out), (1, ""))


def test_functions_files_and_cfi_are_listed(work, files):
    text = ok("inspect", "--functions", "-C", "--files", files.get("t"))
    contains(text, "  outer  /src/t.c:5\n", "    mid  /src/t.c:3\n", "app::count(app::box<int> const&, char const*)  /src/u.cc:3\n",
             "\n  /src/t.c\n")
    contains(ok("inspect", "--cfi", files.get("t")), " CFI entries\n", "\n  STACK CFI INIT ", " .cfa: ")


def test_slices_of_fat_files_are_listed(work, files):
    fat = files.get("t.fat")
    both = ok("inspect", fat)
    contains(both, "object 1 of 2\n", "object 2 of 2\n")
    only = json.loads(ok("inspect", "--json", "--arch", "arm64", fat))
    equal([o["arch"] for o in only], ["arm64"])
    equal([v["arch"] for v in only[0]["variants"]], ["x86_64", "arm64"])
    equal(json.loads(ok("inspect", "--json", "--id", only[0]["debug_id"], fat)), only)
    equal(symloom("inspect", "--arch", "ppc", fat).status, 3)
    contains(ok("inspect", os.path.join(files.dir, "app.dSYM")), "object 2 of 2\n")


def test_check_option_reports_unusable_files(work, files):
    bare = os.path.join(work, "bare")
    files.run(f"objcopy -S -R .note.gnu.build-id {files.get('t')} {bare}")
    result = symloom("inspect", "--check", bare)
    equal(result.status, 1)
    contains(result.out, "Usable: no (missing debug identifier, likely stripped)")
    equal(ok("inspect", "--check", files.get("t")), f"Usable: yes  {files.get('t')}\n")
    equal(symloom("inspect", "--check", files.get("t"), bare).status, 1)
    equal(symloom("inspect", bare).status, 0)


def test_type_option_refuses_other_types(work, files):
    equal(symloom("inspect", "-t", "elf", files.get("t")).status, 0)
    wrong = symloom("inspect", "-t", "dsym", files.get("t"))
    equal((wrong.status, wrong.out), (1, ""))
    text = os.path.join(work, "text")
    with open(text, "w") as f:
        f.write("not a debug file\n")
    equal(symloom("inspect", text).status, 3)
    equal(symloom("inspect", work).status, 1)


def portable_pdb():
    """A Portable PDB without documents and methods: the metadata root, #Pdb (id, entry point, tables) and #~."""
    streams = [(b"#Pdb\0\0\0\0", bytes(range(1, 21)) + bytes(12)), (b"#~\0\0", struct.pack("<IBBBBQQ", 0, 2, 0, 0, 1, 0, 0))]
    version = b"PDB v1.0\0\0\0\0"
    head = struct.pack("<IHHII", 0x424A5342, 1, 1, 0, len(version)) + version + struct.pack("<HH", 0, len(streams))
    at = len(head) + sum(8 + len(name) for name, _ in streams)
    for name, data in streams:
        head += struct.pack("<II", at, len(data)) + name
        at += len(data)
    return head + b"".join(data for _, data in streams)


def dotnet_image(pdb):
    """A PE32+ image of one section that holds the debug directory and, deflated, the Portable PDB."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    blob = b"MPDB" + struct.pack("<I", len(pdb)) + deflate.compress(pdb) + deflate.flush()
    section = struct.pack("<IIHHIIII", 0, 0, 0x100, 0x100, 17, len(blob), 0x1000 + 28, 0x200 + 28) + blob
    section += bytes(-len(section) % 0x200)
    coff = struct.pack("<HHIIIHH", 0x8664, 1, 0x12345678, 0, 0, 240, 0x22)
    optional = struct.pack("<HBBIIIII", 0x20B, 0, 0, 0, 0, 0, 0, 0x1000) + struct.pack("<QII", 0x140000000, 0x1000, 0x200)
    optional += struct.pack("<HHHHHHIIIIHHQQQQII", 6, 0, 0, 0, 6, 0, 0, 0x2000, 0x200, 0, 3, 0, 0, 0, 0, 0, 0, 16)
    optional += b"".join(struct.pack("<II", *((0x1000, 28) if i == 6 else (0, 0))) for i in range(16))
    header = struct.pack("<8sIIIIIIHHI", b".text", len(section), 0x1000, len(section), 0x200, 0, 0, 0, 0, 0x60000020)
    image = b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + coff + optional + header
    return image + bytes(0x200 - len(image)) + section


def test_portable_pdb_is_inspected_alone_and_embedded(work, files):
    inside, alone = os.path.join(work, "app.exe"), os.path.join(work, "app.pdb")
    for path, data in ((alone, portable_pdb()), (inside, dotnet_image(portable_pdb()))):
        with open(path, "wb") as f:
            f.write(data)
    item = json.loads(ok("inspect", "--json", "--verify", "--sources", alone))[0]
    equal((item["type"], item["sources"], item["counts"]["functions"]), ("portablepdb", [], 0))
    both = json.loads(ok("inspect", "--json", inside))
    equal([(o["type"], o["object_index"]) for o in both], [("pe", 0), ("portablepdb", 1)])
    equal(both[1]["debug_id"], item["debug_id"])
    equal(len(both[0]["variants"]), 2)
    nothing = symloom("dump-syms", alone)
    equal((nothing.status, nothing.out), (3, ""))


def test_source_bundle_lists_its_files(work, files):
    """Its files are all in it."""
    path = os.path.join(work, "x.src.zip")
    manifest = {"debug_id": "0123456789abcdef0123456789abcdef", "source_links": {"/src/*": "https://example.com/src/*"},
                "files": {"files/a.c": {"type": "source", "path": "/src/a.c"},
                          "files/b.c": {"type": "source", "path": "/src/b.c", "url": "https://example.com/b.c"},
                          "files/gone.c": {"type": "source", "path": "/src/gone.c"}}}
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("files/a.c", "int a;\n")
        z.writestr("files/b.c", "int b;\n")
        z.writestr("manifest.json", json.dumps(manifest))
    found = json.loads(ok("inspect", "--json", "--sources", path))[0]
    equal((found["type"], found["features"], found["counts"]["files"]), ("sourcebundle", "sources", 3))
    equal(found["sources"], [{"path": "/src/a.c", "status": "embedded", "url": "https://example.com/src/a.c"},
                             {"path": "/src/b.c", "status": "embedded", "url": "https://example.com/b.c"},
                             {"path": "/src/gone.c", "status": "missing", "url": "https://example.com/src/gone.c"}])
    contains(ok("inspect", "--verify", path), "Counts       3 files")


def test_artifact_bundle_lists_scripts_and_maps(work, files):
    """Scripts and maps, which are found by URL or by ids of their own."""
    path = os.path.join(work, "artifacts.zip")
    debug_id = "2f259f80-58b7-44cb-d7cd-de1505e7e718"
    manifest = {"org": "o", "files": {
        "files/_/_/a.js": {"type": "minified_source", "url": "~/a.js", "headers": {"Debug-Id": debug_id, "Sourcemap": "a.js.map"}},
        "files/_/_/a.js.map": {"type": "source_map", "url": "~/a.js.map"}}}
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("files/_/_/a.js", "f()")
        z.writestr("files/_/_/a.js.map", "{}")
        z.writestr("manifest.json", json.dumps(manifest))
    contains(ok("inspect", "--sources", path), "  Usable       yes\n", f"  embedded  ~/a.js  minified_source {debug_id}\n",
             "  embedded  ~/a.js.map  source_map\n")
    found = json.loads(ok("inspect", "--json", "--sources", path))[0]
    equal((found["is_usable"], found["sources"][0]["type"], found["sources"][0]["debug_id"], found["sources"][1]["debug_id"]),
          (True, "minified_source", debug_id, None))


def test_source_map_is_inspected(work, files):
    path, damaged = os.path.join(work, "a.js.map"), os.path.join(work, "b.js.map")
    source_map = {"version": 3, "sources": ["a.js", "b.js", None], "sourcesContent": ["x", None], "names": ["n"], "ignoreList": [1, 9],
                  "debug_id": "2f259f80-58b7-44cb-d7cd-de1505e7e718", "mappings": "AAAAA,C;;AAAA"}
    with open(path, "w") as f:
        json.dump(source_map, f)
    with open(damaged, "w") as f:
        f.write(")]}'\n" + json.dumps({"sections": [{"offset": {"line": 0, "column": 0}, "map": dict(source_map, mappings="A!")}]}))
    equal(ok("inspect", "--sources", path), f"{path}\n  Format       sourcemap, {os.path.getsize(path)} bytes\n"
          "  Debug ID     2f259f80-58b7-44cb-d7cd-de1505e7e718\n"
          "  Counts       3 sources (1 embedded, 1 ignored), 1 name, 3 mappings of 2 lines\n  Usable       yes\n"
          "  embedded  a.js\n  missing   (ignored) b.js\n  missing   \n")
    items = json.loads(ok("inspect", "--json", "-t", "sourcemap", "--files", path, damaged))
    equal(items[0]["counts"], {"sections": 0, "sources": 3, "embedded": 1, "ignored": 1, "names": 1, "mappings": 3, "lines": 2})
    equal(items[0]["sources"][1], {"path": "b.js", "embedded": False, "ignored": True})
    equal((items[0]["is_usable"], items[0]["problem"], items[1]["counts"]["sections"], items[1]["is_usable"]), (True, None, 1, False))
    contains(items[1]["problem"], "no segment of `mappings` is valid; the first invalid one is after generated line 0")
    for scopes, item, words in (("BAAA,CBA", None, "with scopes"), ("BAAA,CB", 2, "with malformed scopes (item 2)")):
        with open(damaged, "w") as f:
            json.dump({**source_map, "scopes": scopes}, f)
        contains(ok("inspect", damaged), f" bytes, {words}\n")
        found = json.loads(ok("inspect", "--json", damaged))[0]
        equal((found["has_scopes"], found["malformed_scopes_item"], found["is_usable"]), (item is None, item, True))
    with open(damaged, "w") as f:
        json.dump(dict(source_map, mappings="A!"), f)
    contains(symloom("inspect", "--check", path, damaged).out, f"Usable: yes  {path}\n", "Usable: no (source map: no segment of `mappings` is valid")
    contains(ok("inspect", "--id", "2f259f80-58b7-44cb-d7cd-de1505e7e718", path), "sourcemap")
    equal(symloom("inspect", "--id", "3f259f80-58b7-44cb-d7cd-de1505e7e718", path).status, 3)


def test_files_are_found_by_id(work, files):
    files.get("t"), files.get("t.wasm")
    identity = json.loads(ok("inspect", "--json", files.get("t")))[0]
    for wanted in (identity["debug_id"], identity["breakpad_id"], identity["code_id"]):
        found = json.loads(ok("inspect", "-r", "--json", "--id", wanted, files.dir))
        assert files.get("t") in [f["path"] for f in found], found
    equal(symloom("inspect", "-r", "--id", "ab" * 16, files.dir).status, 3)


def test_symcache_is_verified(work, files):
    cache = os.path.join(work, "t.symcache")
    ok("lookup", "-e", files.get("t"), "--symcache-out", cache)
    contains(ok("inspect", "--verify", cache), "  Format       symcache, ", "  Usable       yes\n")
    data = bytearray(open(cache, "rb").read())
    data[-9] ^= 0xFF
    with open(cache, "wb") as f:
        f.write(data)
    contains(ok("inspect", "--verify", cache), "  Usable       no (damaged contents)\n")
    equal(json.loads(ok("inspect", "--json", cache))[0]["type"], "symcache")


def test_damaged_files_give_one_json_value(work, files):
    """Damaged copies: no crash, and standard output is one JSON value."""
    for name in ("t", "t.fat", "t.exe", "t.wasm", "t.mingw"):
        data = open(files.get(name), "rb").read()
        for i in range(12):
            damaged = bytearray(data[:len(data) * (i + 4) // 16])
            for at in range(i * 5, min(len(damaged), 4096), 97):
                damaged[at] ^= 0x5A
            path = os.path.join(work, "damaged")
            with open(path, "wb") as f:
                f.write(damaged)
            result = symloom("inspect", "--json", "--verify", "--sections", "--functions", path)
            assert result.status in (0, 1, 3), result.status
            assert json.loads(result.out) if result.out else result.status, result.status
            assert symloom("dump-syms", "-d", path).status in (0, 1, 3)


def test_recursive_inspection_of_a_missing_path_fails(work, files):
    missing = os.path.join(work, "missing")
    for more in ([], ["--json"], ["--check"]):
        result = symloom("inspect", "-r", *more, missing)
        equal((result.status, result.err),
              (1, f"error: cannot inspect {missing}\n  caused by: No such file or directory\n"))
    text = os.path.join(work, "text")
    with open(text, "w") as f:
        f.write("no debug file")
    equal(symloom("inspect", "-r", text).status, 3)  # named, not met on the way
    equal(symloom("inspect", "-r", work).status, 0)
    directory, link = os.path.join(work, "d"), os.path.join(work, "link")
    os.mkdir(directory)
    shutil.copy(files.get("t"), directory)
    os.symlink(directory, link)
    contains(ok("inspect", "-r", link), f"{link}/t")


def a_dump():
    dump = dumps.Dump(text="Linux 6.1 #1 SMP x86_64", version=(0, 0, 0))
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10010}, 0x7000, bytes(64)))
    dump.modules.append((0x10000, 0x1000, "/bin/x", dumps.elf("f1c3bcc0279865fe3058404b2831d9e64135386c"), 0))
    dump.names[7] = "main"
    return dump.crash(7, 11, 1, 0x45)


def test_control_characters_of_symbfiles_are_escaped(work, files):
    """A function name with ESC must not reach a terminal."""
    path = os.path.join(work, "escape")
    with open(path, "wb") as f:  # as in lib/symbfile/symbfile.h: header, string table, one range
        f.write(b"symbfile" + bytes.fromhex("0001 05040a03") + b"a.c" + bytes.fromhex("190260c00c10241a04") + b"m\x1b[A"
                + bytes.fromhex("5000420a0a0300081012032627 29"))
    contains(ok("inspect", "--symbols", path), "  m\\x1b[A (a.c:38)\n")


def test_minidump_is_inspected(work, files):
    path, cut = os.path.join(work, "x.dmp"), os.path.join(work, "cut.dmp")
    whole = a_dump().done()
    for name, data in ((path, whole), (cut, whole[:-1])):
        with open(name, "wb") as f:
            f.write(data)
    contains(ok("inspect", "--raw", path), "  Format       minidump, ", "  System       Linux 6.1 #1 SMP, x86_64\n",
             "  Reason       SIGSEGV / SEGV_MAPERR / 0x45\n", "  Threads      7 main (crashed), 64 bytes of stack\n",
             "  c0bcc3f1-9827-fe65-3058-404b2831d9e6  /bin/x\n", "0x3  ThreadListStream  ", "  Usable       yes\n")
    item = json.loads(ok("inspect", "--json", "-t", "minidump", path))[0]
    equal((item["type"], item["is_usable"], item["problem"], item["os_name"], item["arch"], item["crash_reason"]),
          ("minidump", True, None, "Linux", "x86_64", "SIGSEGV / SEGV_MAPERR / 0x45"))
    equal(item["threads"], [{"thread_id": 7, "thread_name": "main", "crashed": True, "stack_size": 64}])
    equal([s["name"] for s in item["streams"]],
          ["SystemInfoStream", "ThreadListStream", "ModuleListStream", "ThreadNamesStream", "ExceptionStream"])
    bad = symloom("inspect", "--check", cut)
    equal((bad.status, bad.out), (1, f"Usable: no (Missing stream directory (heavily truncated minidump?))  {cut}\n"))


def test_control_characters_in_paths_do_not_reach_the_terminal(work, files):
    for name, text in (("m\x1b[31m.txt", b"a.B -> c:\n    int f() -> g\n"), ("s\x1b[31m.symbfile", b"symbfile"), ("t\x1b[31m", None)):
        path = os.path.join(work, name)
        if text is None:
            shutil.copyfile(files.get("t"), path)
        else:
            with open(path, "wb") as f:
                f.write(text)
        for arguments in ((path,), ("--check", path)):
            assert "\x1b" not in symloom("inspect", *arguments).out, (name, arguments)
