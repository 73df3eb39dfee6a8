"""Native symbolication: modules, addresses, frames, names, candidates."""
import itertools, os, re, shutil, subprocess

from faults import World, metric
from harness import Service, Upstream, debuginfod, equal, frames, http_source, nginx, request, wait_until

BASE = 0x10000000


def inlined_address(objects):
    """An address inside of what was inlined two levels deep."""
    return objects.line_addresses(3)[0]


def check_inlined(answer, base=BASE):
    chain = frames(answer)
    equal([f["function"] for f in chain], ["innermost", "middle", "shapes::Box::area(int)"])
    equal([f["lineno"] for f in chain], [3, 6, 12])
    equal({f["status"] for f in chain}, {"symbolicated"})
    equal({f["original_index"] for f in chain}, {0})
    equal({f["filename"] for f in chain}, {"shapes.cc"})
    equal({f["lang"] for f in chain}, {"cpp"})
    equal(["sym_addr" in f for f in chain], [False, False, True])
    equal(len({f["instruction_addr"] for f in chain}), 1)
    return chain


def test_inlined_frames_are_found_through_nginx(work, objects):
    root = os.path.join(work, "root")
    os.makedirs(os.path.join(root, objects.build_id))
    shutil.copy(os.path.join(objects.dir, "full"), os.path.join(root, objects.build_id, "executable"))
    with nginx(work, root) as url, Service(work) as s:
        address = inlined_address(objects)
        answer = s.symbolicate(request(objects.module(), [address], sources=[http_source(url)]))
        chain = check_inlined(answer)
        equal(chain[2]["sym_addr"], hex(BASE + objects.address("_ZN6shapes3Box4areaEi")))
        equal(chain[2]["symbol"], "_ZN6shapes3Box4areaEi")
        equal(chain[0]["package"], "/usr/bin/shapes")
        equal(chain[0]["abs_path"], os.path.join(objects.dir, "shapes.cc"))
        module = answer["modules"][0]
        equal(list(module), ["debug_status", "features", "arch", "type", "code_id", "code_file", "debug_id", "image_addr",
                             "image_size"])
        equal((module["debug_status"], module["arch"], module["debug_id"]), ("found", "x86_64", objects.debug_id))
        equal(module["features"], {"has_debug_info": True, "has_unwind_info": True, "has_symbols": True,
                                   "has_sources": False})


def test_inlined_frames_are_found_through_debuginfod(work, objects):
    root = os.path.join(work, "root")
    os.mkdir(root)
    shutil.copy(os.path.join(objects.dir, "full"), root)
    with debuginfod(work, root) as url, Service(work) as s:
        body = request(objects.module(), [inlined_address(objects)], sources=[http_source(url + "buildid/")])
        scopes = itertools.count()

        def found():  # the server scans its files in the background; what was missing is not missing in another scope
            answer = s.symbolicate(body, f"?scope={next(scopes)}")
            return answer if answer["modules"][0]["debug_status"] == "found" else None

        check_inlined(wait_until("debuginfod's scan", found))


def test_configured_filesystem_source_is_used(work, objects):
    root = os.path.join(work, "root")
    os.makedirs(os.path.join(root, objects.build_id))
    shutil.copy(os.path.join(objects.dir, "full"), os.path.join(root, objects.build_id, "executable"))
    source = {"id": "local", "type": "filesystem", "path": root, "layout": {"type": "debuginfod"}}
    with Service(work, {"sources": [source]}) as s:
        check_inlined(s.symbolicate(request(objects.module(), [inlined_address(objects)])))
        nothing = s.symbolicate(request(objects.module(), [inlined_address(objects)], sources=[]))
        equal(frames(nothing)[0]["status"], "missing")


def test_candidates_list_every_download(work, objects):
    with Upstream({f"/{objects.build_id}/debuginfo": objects.debug}) as up, Service(work) as s:
        body = request(objects.module(), [inlined_address(objects)], sources=[http_source(up.url)],
                       options={"dif_candidates": True})
        answer = s.symbolicate(body)
        check_inlined(answer)
        found = answer["modules"][0]["candidates"]
        base = f"{up.url}{objects.build_id}"
        debug_features = {"has_debug_info": True, "has_unwind_info": False, "has_symbols": True, "has_sources": False}
        equal(found, [
            {"source": "test", "location": f"{base}/debuginfo", "download": {"status": "ok", "features": debug_features},
             "debug": {"status": "ok"}},
            {"source": "test", "location": f"{base}/executable", "download": {"status": "notfound"}},
        ])


def test_debug_information_wins_over_symbols(work, objects):
    routes = {f"/{objects.build_id}/executable": objects.stripped, f"/{objects.build_id}/debuginfo": objects.debug}
    with Upstream(routes) as up, Service(work) as s:
        check_inlined(s.symbolicate(request(objects.module(), [inlined_address(objects)], sources=[http_source(up.url)])))


def test_cached_files_are_not_used_for_other_sources(work, objects):
    with Upstream(objects.layout()) as up, Service(work) as s:
        body = request(objects.module(), [inlined_address(objects)], sources=[http_source(up.url)])
        check_inlined(s.symbolicate(body))
        equal(frames(s.symbolicate({**body, "sources": []}))[0]["status"], "missing")
        hits = dict(up.hits)
        check_inlined(s.symbolicate(body))
        equal(up.hits, hits, "answered from the cache")
        check_inlined(s.symbolicate(body, "?scope=other"))
        assert up.hits != hits, "another scope has its own files"


def test_unused_modules_fetch_nothing(work, objects):
    with Upstream(objects.layout()) as up, Service(work) as s:
        other = objects.module(image_addr="0x70000000")
        body = request(objects.module(), [], sources=[http_source(up.url)])
        body["modules"].append(other)
        body["stacktraces"][0]["frames"] = [{"instruction_addr": "0x5"}]
        answer = s.symbolicate(body)
        equal([m["debug_status"] for m in answer["modules"]], ["unused", "unused"])
        equal(up.hits, {})


def test_missing_module_sizes_reach_the_next_module(work, objects):
    def sizes(*modules):
        answer = s.symbolicate({"modules": [{"type": "elf", **m} for m in modules], "sources": []})
        return [m.get("image_size") for m in answer["modules"]]

    def packages(modules, sent):
        answer = s.symbolicate({"modules": [{"type": "elf", **m} for m in modules], "sources": [],
                                "stacktraces": [{"frames": sent}]})
        return [f.get("package") for f in frames(answer)]

    with Service(work) as s:
        equal(sizes({"image_addr": "0x2000", "image_size": 4096}, {"image_addr": "0x1000"}, {"image_addr": "0x3000"}),
              [4096, 4096, None])
        modules = [{"image_addr": "0x2000", "image_size": 4096, "code_file": "b"}, {"image_addr": "0x1000", "code_file": "a"},
                   {"image_addr": "0x4000", "code_file": "c"}]
        sent = [{"instruction_addr": a} for a in ("0x1234", "0x3456", "0x4567", "0x3000", "0x3001")]
        sent.append({"instruction_addr": "0x3456", "addr_mode": "rel:0"})
        equal(packages(modules, sent), ["a", None, "c", "b", None, "b"])
        equal(packages([{"image_addr": 42, "image_size": 0, "code_file": "x"}], [{"instruction_addr": 43}]), ["x"])
        equal(packages([{"image_addr": "0xffffffffffffff00", "image_size": 4096, "code_file": "x"}],
                       [{"instruction_addr": "0xffffffffffffff01"}]), [None])


def test_ids_are_normalised(work, objects):
    def ids(**keys):
        module = s.symbolicate({"modules": [{"type": "elf", **keys}]})["modules"][0]
        return module.get("debug_id"), module.get("code_id")

    with Service(work) as s:
        equal(ids(debug_id="DFB8E43AF2423D73A453AEB6A777EF75", code_id="AB-CD"),
              ("dfb8e43a-f242-3d73-a453-aeb6a777ef75", "abcd"))
        equal(ids(debug_id="dfb8e43a-f242-3d73-a453-aeb6a777ef75-a", code_id=""),
              ("dfb8e43a-f242-3d73-a453-aeb6a777ef75-a", None))
        equal(ids(debug_id="nonsense", code_id="xyz"), (None, ""))
        equal(ids(debug_id="418e89c31"), ("418E89C3-1", None))
        equal(s.symbolicate({"modules": [{"type": "spaceship"}]})["modules"][0]["type"], "unknown")


def test_module_relative_addresses_are_resolved(work, objects):
    with Upstream(objects.layout()) as up, Service(work) as s:
        address = inlined_address(objects)
        frame = {"instruction_addr": hex(address), "addr_mode": "rel:0"}
        answer = s.symbolicate(request(objects.module(), [frame], sources=[http_source(up.url)]))
        chain = check_inlined(answer)
        equal(("addr_mode" in chain[0], chain[0]["instruction_addr"]), (False, hex(BASE + address)))
        module = objects.module()
        del module["image_addr"]
        answer = s.symbolicate(request(module, [frame, {"instruction_addr": hex(address)}], sources=[http_source(up.url)]))
        chain = frames(answer)
        equal((chain[0]["addr_mode"], chain[0]["instruction_addr"]), ("rel:0", hex(address)))
        equal(chain[2]["sym_addr"], hex(objects.address("_ZN6shapes3Box4areaEi")))
        equal(chain[3]["status"], "missing_symbol", "an absolute address into a module at 0")
        missing = {"instruction_addr": "0x1", "addr_mode": "rel:7"}
        answer = s.symbolicate(request(objects.module(), [missing], sources=[]))
        equal((frames(answer)[0]["status"], frames(answer)[0]["addr_mode"]), ("unknown_image", "rel:7"))


def test_return_addresses_are_adjusted_to_the_call(work, objects):
    """A function's first byte is, as a return address, the end of what lies before it."""
    plain = objects.address("plain")

    def function(index=0, registers=None, signal=None, **frame):
        sent = [{"instruction_addr": "0x5"}] * index + [{"instruction_addr": hex(BASE + plain), **frame}]
        body = {"stacktraces": [{"frames": sent, "registers": registers or {}}], "modules": [objects.module()],
                "sources": [http_source(up.url)]}
        if signal:
            body["signal"] = signal
        answer = frames(s.symbolicate(body))
        return [f for f in answer if f["original_index"] == index][-1].get("function")

    with Upstream(objects.layout()) as up, Service(work) as s:
        equal(function(), "plain")
        assert function(index=1) != "plain"
        equal(function(index=1, adjust_instruction_addr=False), "plain")
        assert function(adjust_instruction_addr=True) != "plain"
        other, same = {"rip": "0x4242"}, {"rip": hex(BASE + plain)}
        assert function(registers=other, signal=11) != "plain"
        assert function(registers=other, signal=7) != "plain"
        equal(function(registers=other, signal=6), "plain")
        equal(function(registers=same, signal=11), "plain")
        equal(function(registers={"pc": "0x4242"}, signal=11), "plain")
        equal(function(signal=11), "plain")


def test_frame_order_option_reverses_stacks(work, objects):
    with Upstream(objects.layout()) as up, Service(work) as s:
        sent = [{"instruction_addr": "0x1"}, {"instruction_addr": hex(BASE + inlined_address(objects))}]
        body = request(objects.module(), sent, sources=[http_source(up.url)], options={"frame_order": "caller_first"})
        chain = frames(s.symbolicate(body))
        equal([f.get("function") for f in chain],
              [None, "shapes::Box::area(int)", "middle", "innermost"])
        equal([f["original_index"] for f in chain], [1, 0, 0, 0])


def test_failed_frames_keep_what_was_sent(work, objects):
    sent = {"instruction_addr": "0x5", "platform": "native", "package": "mine", "lang": "c", "symbol": "s", "sym_addr": "0x4",
            "function": "f", "filename": "a.c", "abs_path": "/a.c", "lineno": 5, "pre_context": ["1"], "context_line": "",
            "post_context": ["2"], "source_link": "https://x", "in_app": True, "vars": {"b": 1.0, "a": [None]},
            "trust": "cfi", "function_id": 7, "adjust_instruction_addr": True, "unknown": 1}
    with Service(work) as s:
        answer = frames(s.symbolicate({"stacktraces": [{"frames": [sent]}]}))[0]
        expected = {"status": "unknown_image", "original_index": 0, **sent, "function_id": "0x7"}
        del expected["unknown"]
        equal(answer, expected)
        equal(list(answer), ["status", "original_index", "platform", "instruction_addr", "adjust_instruction_addr",
                             "function_id", "package", "lang", "symbol", "sym_addr", "function", "filename", "abs_path",
                             "lineno", "pre_context", "context_line", "post_context", "source_link", "in_app", "vars",
                             "trust"])


def test_names_that_were_sent_are_demangled(work, objects):
    mangled = "_ZN12_GLOBAL__N_15startEv"

    def names(**keys):
        frame = frames(s.symbolicate({"stacktraces": [{"frames": [{"instruction_addr": 1, **keys}]}]}))[0]
        return frame.get("symbol"), frame.get("function")

    with Service(work) as s:
        equal(names(function=mangled), (mangled, "(anonymous namespace)::start()"))
        equal(names(symbol=mangled), (mangled, "(anonymous namespace)::start()"))
        equal(names(function="plain"), (None, "plain"))
        equal(names(symbol="plain"), ("plain", None))
        equal(names(function=mangled, symbol="x"), ("x", mangled))


def test_unknown_scanned_and_outer_frames_are_removed(work, objects):
    with Service(work) as s:
        unknown, scan = {"instruction_addr": "0x5"}, {"instruction_addr": "0x6", "trust": "scan"}
        start = {"instruction_addr": "0x7", "function": "_start", "symbol": "_start"}
        answer = s.symbolicate({"stacktraces": [{"frames": [unknown, scan, unknown]}, {"frames": [unknown, start, unknown]},
                                                {"frames": [start, unknown, unknown]}]})
        equal([[f["original_index"] for f in trace["frames"]] for trace in answer["stacktraces"]], [[0, 2], [0, 1], [0, 1, 2]])


def test_traces_are_echoed(work, objects):
    with Service(work) as s:
        trace = {"thread_id": 18446744073709551615, "thread_name": "ünï", "is_requesting": False,
                 "registers": {"rip": 1, "eax": "0x02"}, "frames": []}
        answer = s.symbolicate({"signal": 11, "threads": [trace]})
        equal(answer["stacktraces"], [{**trace, "registers": {"eax": "0x2", "rip": "0x1"}}])
        equal(list(answer["stacktraces"][0]["registers"]), ["eax", "rip"])
        equal(answer["signal"], 11)


def test_large_requests_get_the_same_answers_from_the_pool(work, objects):
    """Large requests go through the pool: the same answers."""
    with Upstream(objects.layout()) as up, Service(work) as s:
        address = inlined_address(objects)
        few = frames(s.symbolicate(request(objects.module(), [address, address + 1], sources=[http_source(up.url)])))
        many = [{"instruction_addr": hex(BASE + address), "adjust_instruction_addr": False}] * 50000
        chain = frames(s.symbolicate(request(objects.module(), many, sources=[http_source(up.url)])))
        equal(len(chain), 150000)
        equal([f["function"] for f in chain[-3:]], [f["function"] for f in few[:3]])
        equal(chain[-1]["original_index"], 49999)
        cut = {"max_response_frames": 100}
    with Upstream(objects.layout()) as up, Service(work, cut) as s:
        chain = frames(s.symbolicate(request(objects.module(), many, sources=[http_source(up.url)])))
        equal(len(chain), 102)


def test_partial_debug_information_is_reported(work, objects):
    """Debug information of which something cannot be read: the rest answers, and log, metric and candidate say so."""
    damaged = b"MODULE windows x86 3249D99D0C4049318610F4E4FB0B69361 crash.pdb\nFILE 0 a.c\nFUNC zz 10 0 bad\nFUNC 10 10 0 main\n10 10 1 0\n"
    module = {"type": "pe", "debug_id": "3249d99d-0c40-4931-8610-f4e4fb0b6936-1", "debug_file": "crash.pdb",
              "image_addr": hex(BASE), "image_size": 4096}
    source = {"id": "store", "type": "http", "filters": {"filetypes": ["breakpad"]}, "layout": {"type": "native"}}
    path = "/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.sym"
    for data, details in ((damaged, {"details": "Some of the debug information could not be read"}),
                          (damaged.replace(b"zz", b"0"), {})):
        with Upstream({path: data}) as up, Service(work) as s:
            body = request(module, [0x14], sources=[{**source, "url": up.url}], options={"dif_candidates": True})
            for _ in range(2):  # also from the cache
                answer = s.symbolicate(body)
                equal(frames(answer)[0]["function"], "main")
                used = [c["debug"] for c in answer["modules"][0]["candidates"] if "debug" in c]
                equal(used, [{"status": "ok", **details}])
            partial = 'symloom_conversions_partial_total{cache="symcaches"} 1' in s.request("GET", "/metrics")[2].decode()
            equal(partial, bool(details))
            line = "skipped damaged debug information of a file"
            if details:
                wait_until("the line in the log", lambda: line in s.logged())
            equal(s.logged().count(line), len(details))


def test_split_dwarf_and_dwz_files_are_fetched(work, objects):
    """A package beside the program, and the file that dwz made: both come from the same source."""
    def build(*command):
        subprocess.run(command, cwd=work, check=True, capture_output=True)

    shutil.copy(os.path.join(objects.dir, "shapes.cc"), work)
    build("clang++", "-g", "-gdwarf-5", "-gsplit-dwarf", "-O1", "-no-pie", "-Wl,--build-id", "-o", "split", "shapes.cc")
    build("llvm-dwp-14", "-e", "split", "-o", "split.dwp")
    build("g++", "-g", "-gdwarf-4", "-O1", "-no-pie", "-Wl,--build-id", "-o", "one", "shapes.cc")
    build("g++", "-g", "-gdwarf-4", "-O2", "-no-pie", "-Wl,--build-id", "-o", "two", "shapes.cc")
    build("dwz", "-m", "common", "one", "two")

    def read(name):
        with open(os.path.join(work, name), "rb") as f:
            return f.read()

    def build_id(name):
        notes = subprocess.run(["readelf", "-n", name], cwd=work, capture_output=True, text=True).stdout
        return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]

    def address(name):
        table = subprocess.run(["nm", name], cwd=work, capture_output=True, text=True).stdout
        return int(re.search(r"([0-9a-f]+) T _ZN6shapes3Box4areaEi", table)[1], 16) - objects.load

    routes = {f"/{build_id('split')}/executable": read("split"), f"/{build_id('split')}/executable.dwp": read("split.dwp"),
              f"/{build_id('one')}/executable": read("one"), f"/{build_id('common')}/debuginfo": read("common")}
    with Upstream(routes) as up, Service(work) as s:
        for name, companion in (("split", f"/{build_id('split')}/executable.dwp"), ("one", f"/{build_id('common')}/debuginfo")):
            module = objects.module(code_id=build_id(name), debug_id=None)
            sent = [{"instruction_addr": hex(BASE + address(name) + offset), "adjust_instruction_addr": False}
                    for offset in range(0, 24)]
            answer = s.symbolicate(request(module, sent, sources=[http_source(up.url)]))
            functions = {f.get("function", "").split("(")[0] for f in frames(answer)}
            assert {"innermost", "middle", "shapes::Box::area"} <= functions, (name, functions)
            assert up.hits.get(companion), (name, up.hits)


def test_resident_tables_are_read_on_the_loop(work, objects):
    """A hundred frames over thirty modules: when all of their tables are loaded, the loop answers by itself."""
    def jobs(service):
        return [metric(service, f'symloom_pool_run_seconds_count{{job="{name}"}}') for name in ("json", "symbolicate", "walk",
                                                                                               "convert")]

    with World(objects, 30) as world, Service(work) as s:
        body = world.body(world.modules)
        body["stacktraces"] = [{"frames": [body["stacktraces"][i % 30]["frames"][0] for i in range(100)]}]
        first = s.symbolicate(body)
        equal({m["debug_status"] for m in first["modules"]}, {"found"})
        equal({f["status"] for f in first["stacktraces"][0]["frames"]}, {"symbolicated"})
        equal(s.symbolicate(body), first)
        assert jobs(s)[3] > 0, jobs(s)

        def none_for_five_requests():  # now and then a table's pages are looked at
            before = jobs(s)
            for _ in range(5):
                equal(s.symbolicate(body), first)
            return jobs(s) == before

        wait_until("answers without a job", none_for_five_requests)
