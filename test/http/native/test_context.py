"""Source context: bundles beside the debug files, links in them, and what the web answers."""
import io, json, os, re, struct, subprocess, zipfile, zlib

import harness
import test_dotnet as dotnet
import test_symbfile as symbfile

from harness import Service, Upstream, equal, frames, http_source, request, wait_until


def bundle(files, level=None, **manifest):
    """A source bundle. `files`: entry name to (description, contents)."""
    out = io.BytesIO()
    out.write(b"SYSB\2\0\0\0")
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, (_, contents) in files.items():
            archive.writestr(name, contents)
        archive.writestr("manifest.json", json.dumps({"files": {n: d for n, (d, _) in files.items()}, **manifest}))
    return out.getvalue()


def source(up, **keys):
    return http_source(up.url, layout={"type": "native"}, **keys)


def paths(objects, **more):
    """Where a native layout has the program, and what else is given by suffix."""
    stem = f"/{objects.build_id[:2]}/{objects.build_id[2:]}"
    return {stem + ".debug": objects.debug, **{stem + suffix: data for suffix, data in more.items()}}


def text_of(objects):
    return objects.read("shapes.cc")


def lines_around(text, number):
    lines = text.decode().removesuffix("\n").split("\n")
    return lines[max(0, number - 6):number - 1], lines[number - 1], lines[number:number + 5]


def full_path(objects):
    return objects.dir + "/shapes.cc"


def address(objects):
    return objects.line_addresses(3)[0]


def check_context(answer, text):
    for frame in frames(answer):
        before, line, after = lines_around(text, frame["lineno"])
        equal((frame.get("pre_context", []), frame["context_line"], frame.get("post_context", [])), (before, line, after))


def test_every_inlined_frame_gets_source_lines(work, objects):
    data = bundle({"files/s": ({"path": full_path(objects), "url": "HTTPS://x/", "type": "source"}, text_of(objects))})
    with Upstream(paths(objects, **{".src.zip": data})) as up, Service(work) as s:
        body = request(objects.module(), [address(objects)], sources=[source(up)], options={"dif_candidates": True})
        answer = s.symbolicate(body)
        equal(len(frames(answer)), 3)
        check_context(answer, text_of(objects))
        assert not any("source_link" in f for f in frames(answer)), "its scheme is not written as it has to be"
        module = answer["modules"][0]
        equal(module["features"]["has_sources"], True)
        found = [c for c in module["candidates"] if c["location"].endswith(".src.zip")]
        equal(found, [{"source": "test", "location": found[0]["location"], "download": {
            "status": "ok", "features": {"has_debug_info": False, "has_unwind_info": False, "has_symbols": False,
                                         "has_sources": True}}}])
        keys = list(frames(answer)[0])
        equal(keys[keys.index("lineno"):], ["lineno", "pre_context", "context_line", "post_context"])
        hits = dict(up.hits)
        equal(s.symbolicate(body), answer)
        equal(up.hits, hits, "the second time from the cache")
        plain = s.symbolicate({**body, "options": {"apply_source_context": False}})
        assert not any("context_line" in f for f in frames(plain))


def test_utf_16_and_crlf_sources_are_read(work, objects):
    text = text_of(objects).replace(b"\n", b"\r\n").decode().encode("utf-16-le")
    data = bundle({"files/s": ({"path": full_path(objects)}, b"\xff\xfe" + text)})
    with Upstream(paths(objects, **{".src.zip": data})) as up, Service(work) as s:
        check_context(s.symbolicate(request(objects.module(), [address(objects)], sources=[source(up)])), text_of(objects))


def sent(objects, **keys):
    """A frame that no module's symbols know, with a place of its own."""
    return {"instruction_addr": hex(0x10000000 + 0x10), "abs_path": full_path(objects), **keys}


def test_frames_with_path_and_line_get_source_lines(work, objects):
    text = b"\xef\xbb\xbfone\n" + b"x" * 151 + b"\n\xff" + b"\n\n5"
    data = bundle({"files/s": ({"path": full_path(objects)}, text)}, source_links={})
    client = {"pre_context": ["p"], "context_line": "c", "post_context": ["q"], "source_link": "https://mine/"}
    cases = [
        ({"lineno": 1}, (None, "one", ["x" * 140 + " {snip}", "\ufffd", "", "5"], None)),
        ({"lineno": 3, **client}, (["one", "x" * 140 + " {snip}"], "\ufffd", ["", "5"], None)),
        ({"lineno": 5}, (["one", "x" * 140 + " {snip}", "\ufffd", ""], "5", None, None)),
        ({"lineno": 6}, (None, None, None, None)),
        ({"lineno": 6, **client}, (["p"], "c", ["q"], None)),
        ({"lineno": 0, **client}, (["p"], "c", ["q"], None)),
        (dict(client), (["p"], "c", ["q"], "https://mine/")),
        ({"lineno": 1, **client, "abs_path": "/elsewhere"}, (["p"], "c", ["q"], "https://mine/")),
    ]
    with Upstream(paths(objects, **{".src.zip": data})) as up, Service(work) as s:
        body = request(objects.module(), [sent(objects, **keys) for keys, _ in cases], sources=[source(up)])
        for frame, (_, wanted) in zip(frames(s.symbolicate(body)), cases):
            equal(tuple(frame.get(k) for k in ("pre_context", "context_line", "post_context", "source_link")), wanted)


def test_source_links_are_downloaded(work, objects):
    seen = {}

    def web(handler):
        seen[handler.path] = handler.headers.get("X-Token")
        handler.reply(200, b"first\nsecond\nthird\n")

    routes = {"/web/dir/a%20b.cc": web, "/web/forbidden.cc": 403, "/web/binary.cc": b"a\0b", "/web/utf16.cc": b"\xff\xfeA\0",
              "/web/moved.cc": lambda h: h.reply(302, headers=[("Location", "/web/dir/a%20b.cc")])}
    with Upstream(routes) as up, Service(work) as s:
        data = bundle({"files/s": ({"path": "/known.cc", "url": up.url + "known"}, b"known\n")},
                      source_links={"/build/*": up.url + "web/*"})
        routes.update(paths(objects, **{".src.zip": data}))
        names = ["/build/dir/a b.cc", "/build/forbidden.cc", "/build/gone.cc", "/build/binary.cc", "/known.cc",
                 "/build/utf16.cc", "/build/moved.cc", "/BUILD/dir\\a b.cc"]
        body = request(objects.module(), [sent(objects, abs_path=n, lineno=1) for n in names],
                       sources=[source(up)], options={"dif_candidates": True},
                       scraping={"enabled": True, "headers": {"X-Token": "t"}, "allowed_origins": [up.url.rstrip("/")]})
        answer = s.symbolicate(body)
        got = [(f.get("source_link", "").removeprefix(up.url), f.get("context_line")) for f in frames(answer)]
        equal(got, [("web/dir/a%20b.cc", "first"), ("web/forbidden.cc", None), ("web/gone.cc", None),
                    ("web/binary.cc", None), ("known", "known"), ("web/utf16.cc", "A"), ("web/moved.cc", "first"),
                    ("web/dir/a%20b.cc", "first")])
        equal(frames(answer)[0]["post_context"], ["second", "third"])
        equal(seen, {"/web/dir/a%20b.cc": "t"})
        linked = {c["location"].removeprefix(up.url + "web/"): c["download"] for c in answer["modules"][0]["candidates"]
                  if c["source"] == "sourcelink"}
        ok = {"status": "ok", "features": {"has_debug_info": False, "has_unwind_info": False, "has_symbols": False,
                                           "has_sources": True}}
        equal(linked, {"dir/a%20b.cc": ok, "forbidden.cc": {"status": "noperm", "details": "403 Forbidden"},
                       "gone.cc": {"status": "notfound"}, "binary.cc": {"status": "malformed"}, "utf16.cc": ok,
                       "moved.cc": ok})
        equal(up.hits["/web/dir/a%20b.cc"], 2, "once for itself, once for what was moved there")


def test_scraping_headers_go_to_allowed_origins_only(work, objects):
    seen = []

    def web(handler):
        seen.append(handler.headers.get("X-Token"))
        handler.reply(200, b"first\n")

    routes = {"/a.cc": web}
    with Upstream(routes) as up, Service(work) as s:
        routes.update(paths(objects, **{".src.zip": bundle({}, source_links={"/*": up.url + "*"})}))
        port = up.server_address[1]
        settings = [({"allowed_origins": ["*"]}, "t"), ({"allowed_origins": []}, None),
                    ({"allowed_origins": ["example.com"]}, None), ({"allowed_origins": [f"127.0.0.1:{port}"]}, "t"),
                    ({"enabled": False}, None), ({}, "t"), (None, None)]
        for number, (scraping, wanted) in enumerate(settings):
            body = request(objects.module(), [sent(objects, abs_path="/a.cc", lineno=1)], sources=[source(up)])
            if scraping is not None:
                body["scraping"] = {"headers": {"X-Token": "t"}, **scraping}
            equal(frames(s.symbolicate(body, f"?scope={number}"))[0]["context_line"], "first")
            equal(seen.pop(), wanted)


def test_sources_fetched_with_headers_stay_private(work, objects):
    seen = []

    def web(handler):
        seen.append(handler.headers.get("X-Token"))
        handler.reply(200 if seen[-1] else 403, b"secret\n")

    routes = {"/a.cc": web}
    with Upstream(routes) as up, Service(work) as s:
        routes.update(paths(objects, **{".src.zip": bundle({}, source_links={"/*": up.url + "*"})}))
        body = request(objects.module(), [sent(objects, abs_path="/a.cc", lineno=1)],
                       sources=[source(up, is_public=True)])
        mine = s.symbolicate({**body, "scraping": {"headers": {"X-Token": "t"}}}, "?scope=mine")
        equal(frames(mine)[0]["context_line"], "secret")
        assert "context_line" not in frames(s.symbolicate(body, "?scope=other"))[0]
        equal(seen, ["t", None])


def test_source_links_to_reserved_addresses_are_refused(work, objects):
    with Upstream({"/a.cc": b"first\n"}) as up:
        stem = os.path.join(work, "root", objects.build_id[:2])
        os.makedirs(stem)
        for suffix, data in ((".debug", objects.debug), (".src.zip", bundle({}, source_links={"/*": up.url + "*"}))):
            with open(os.path.join(stem, objects.build_id[2:] + suffix), "wb") as f:
                f.write(data)
        local = {"id": "local", "type": "filesystem", "path": os.path.join(work, "root"), "layout": {"type": "native"}}
        with Service(work, {"connect_to_reserved_ips": False, "sources": [local]}) as s:
            body = request(objects.module(), [sent(objects, abs_path="/a.cc", lineno=1)], options={"dif_candidates": True})
            answer = s.symbolicate(body)
            frame = frames(answer)[0]
            equal((frame["source_link"], "context_line" in frame), (up.url + "a.cc", False))
            linked = [c for c in answer["modules"][0]["candidates"] if c["source"] == "sourcelink"]
            equal((linked[0]["download"]["status"], len(linked)), ("error", 1))
            equal(up.hits, {})


def test_embedded_text_wins_over_links(work, objects):
    """Two sources: the first has only a link, the second the text."""
    links = bundle({}, source_links={"/*": "http://127.0.0.1:1/*"})
    texts = bundle({"files/s": ({"path": "/a.cc"}, b"the text\n")})
    with Upstream(paths(objects, **{".src.zip": links})) as a, Upstream(paths(objects, **{".src.zip": texts})) as b, \
            Service(work) as s:
        body = request(objects.module(), [sent(objects, abs_path="/a.cc", lineno=1)],
                       sources=[source(a), source(b, id="second")])
        frame = frames(s.symbolicate(body))[0]
        equal((frame["context_line"], "source_link" in frame), ("the text", False))


def test_damaged_bundles_give_no_source_lines(work, objects):
    good = bundle({"files/s": ({"path": full_path(objects)}, text_of(objects))})
    for number, data in enumerate([good[:-30], b"SYSB" + bytes(100), good.replace(b'"files"', b'"files', 1)]):
        with Upstream(paths(objects, **{".src.zip": data})) as up, Service(work) as s:
            answer = s.symbolicate(request(objects.module(), [address(objects)], sources=[source(up)],
                                           options={"dif_candidates": True}), f"?scope={number}")
            equal({f["status"] for f in frames(answer)}, {"symbolicated"})
            equal(answer["modules"][0]["features"]["has_sources"], number == 2)
            found = [c for c in answer["modules"][0]["candidates"] if c["location"].endswith(".src.zip")]
            equal(found[0]["download"]["status"], "ok" if number == 2 else "malformed")


def test_thousands_of_frames_of_one_file_get_source_lines(work, objects):
    text = b"".join(b"line %d\n" % n for n in range(1, 20001))
    data = bundle({"files/s": ({"path": "/big.cc"}, text)})
    with Upstream(paths(objects, **{".src.zip": data})) as up, Service(work) as s:
        numbers = [1 + n * 7919 % 20000 for n in range(3000)]
        body = request(objects.module(), [sent(objects, abs_path="/big.cc", lineno=n) for n in numbers],
                       sources=[source(up)])
        equal([f["context_line"] for f in frames(s.symbolicate(body))], [f"line {n}" for n in numbers])


# ---- Portable PDBs ----

SOURCE_LINK = "560511cc91a0384d9fec25ab9a351a6a"


class SourcePdb(dotnet.PortablePdb):
    def deflated_source(self, document, text, size=None):
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        blob = struct.pack("<i", len(text) if size is None else size) + deflate.compress(text) + deflate.flush()
        self.customs.append(struct.pack("<3H", document << 5 | 22, self.guid(dotnet.EMBEDDED_SOURCE), self.blob(blob)))

    def links(self, rules):
        text = json.dumps({"documents": rules}).encode()
        self.customs.append(struct.pack("<3H", 1 << 5 | 7, self.guid(SOURCE_LINK), self.blob(text)))


def source_pdb(web):
    """Five documents, a method with line 2 of each: text as it is, deflated, damaged, only linked, not even that."""
    pdb = SourcePdb()
    raw, packed, damaged, linked, nothing = (pdb.document(name) for name in
                                             ("/s/raw.cs", "/s/packed.cs", "/s/damaged.cs", "C:\\s\\linked.cs", "/n/x.cs"))
    for document in (raw, packed, damaged, linked, nothing):
        pdb.method(document, [(0, 2)])
    pdb.source(raw, b"\xef\xbb\xbfone\r\ntwo")
    pdb.deflated_source(packed, b"first\n" + b"second " * 30 + b"\nthird\n")
    pdb.deflated_source(damaged, b"text\n" * 9, size=46)
    pdb.links({"/s/*": web + "s/*", "C:\\S\\*": web + "c/*"})
    return pdb.data()


def check_dotnet_sources(up, s, data):
    up.routes.update({dotnet.PATH: data, "/c/linked.cs": b"l1\nl2\n", "/s/damaged.cs": b"d1\nd2\n"})
    body = dotnet.request(up.url, [(n, 0) for n in range(1, 6)] + [
        {"instruction_addr": 0, "function_id": 9, "abs_path": "/s/other.cs", "lineno": 1, "source_link": "https://mine/"}])
    answer = s.symbolicate(body)
    got = [(f.get("pre_context"), f.get("context_line"), f.get("post_context"), f.get("source_link")) for f in frames(answer)]
    long = "second " * 20 + " {snip}"
    equal(got, [(["one"], "two", None, None), (["first"], long, ["third"], None),
                (["d1"], "d2", None, up.url + "s/damaged.cs"), (["l1"], "l2", None, up.url + "c/linked.cs"),
                (None, None, None, None), (None, None, None, "https://mine/")])
    equal(answer["modules"][0]["features"]["has_sources"], True)
    equal(sorted(c["location"] for c in answer["modules"][0]["candidates"] if c["source"] == "sourcelink"),
          [up.url + "c/linked.cs", up.url + "s/damaged.cs"])


def test_source_lines_come_from_portable_pdbs(work, objects):
    with Upstream({}) as up, Service(work) as s:
        check_dotnet_sources(up, s, source_pdb(up.url))


def test_source_lines_come_from_portable_pdbs_in_pe_files(work, objects):
    with Upstream({}) as up, Service(work) as s:
        check_dotnet_sources(up, s, dotnet.pe_around(source_pdb(up.url)))


def test_frames_of_uploaded_ranges_get_source_lines(work, objects):
    """The table of uploaded ranges names the file, not the symbol file, which is not even asked for."""
    text = b"".join(b"line %d\n" % n for n in range(1, 50))
    data = bundle({"files/s": ({"path": symbfile.FILE.decode()}, text)})
    with Upstream(paths(objects, **{".src.zip": data})) as up, symbfile.service(work) as s:
        symbfile.good(s, symbfile.RANGES)
        answer = s.symbolicate(request(objects.module(file_id=symbfile.ID), [0x654], sources=[source(up)]))
        equal(symbfile.names(frames(answer)), symbfile.FIVE)
        check_context(answer, text)


def test_source_bundles_win_over_portable_pdbs(work, objects):
    with Upstream({}) as up, Service(work) as s:
        files = {"files/a": ({"path": "/s/raw.cs"}, b"from\nthe bundle\n")}
        directory = dotnet.PATH.rsplit("/", 1)[0]
        up.routes.update({dotnet.PATH: source_pdb(up.url), directory + "/app.src.zip": bundle(files)})
        body = dotnet.request(up.url, [(1, 0), (2, 0)])
        body["sources"][0]["layout"] = {"type": "native"}
        answer = s.symbolicate(body)
        equal([f["pre_context"] for f in frames(answer)], [["from"], ["first"]])


def test_sources_over_the_size_limit_are_left_out(work, objects):
    text = b"a" * 99 + b"\n" + b"b\n" * 200
    data = bundle({"files/s": ({"path": "/big.cc"}, text), "files/t": ({"path": "/small.cc"}, text[:100])})
    with Upstream(paths(objects, **{".src.zip": data})) as up, \
            Service(work, {"object_file_max_decompressed_source_size": 300}) as s:
        body = request(objects.module(), [sent(objects, abs_path=p, lineno=1) for p in ("/big.cc", "/small.cc")],
                       sources=[source(up)])
        equal([f.get("context_line") for f in frames(s.symbolicate(body))], [None, "a" * 99])


def test_bundles_stay_open_between_requests(work, objects):
    """More of them than the layer in memory has handles for; each tenant has its own."""
    count = 60
    bundles = [bundle({"files/s": ({"path": "/a.cc"}, b"text %d\n" % n), **{
        f"files/{i}": ({"path": f"/{n}/{i}"}, b"") for i in range(100)}}) for n in range(count)]
    routes = {}
    with Upstream(routes) as up, Service(work) as s:
        modules, sent_frames = [], []
        for n, data in enumerate(bundles):
            identity = f"{n:032x}"
            routes[f"/{identity[:2]}/{identity[2:]}.src.zip"] = data
            modules.append({"type": "elf", "code_id": identity, "debug_id": identity, "image_addr": hex((n + 1) << 32)})
            sent_frames.append({"instruction_addr": hex((n + 1) << 32), "abs_path": "/a.cc", "lineno": 1})
        body = {"stacktraces": [{"frames": sent_frames}], "modules": modules, "sources": [source(up)]}
        for scope in ("one", "two", "one"):
            lines = [f["context_line"] for f in frames(s.symbolicate(body, f"?scope={scope}"))]
            equal(lines, [f"text {n}" for n in range(count)])
        equal({up.hits[path] for path in routes}, {2})
        routes.clear()  # and what was got once is not asked for again
        equal([f["context_line"] for f in frames(s.symbolicate(body, "?scope=two"))], lines)


def test_a_request_inflates_no_more_than_a_gigabyte(work, objects):
    """Files of 60 MiB that compress to next to nothing."""
    count = 20
    data = bundle({f"files/{n}": ({"path": f"/{n:02}.cc"}, b"line\n" + b" " * (60 << 20)) for n in range(count)}, 1)
    with Upstream(paths(objects, **{".src.zip": data})) as up, Service(work) as s:
        body = request(objects.module(), [sent(objects, abs_path=f"/{n:02}.cc", lineno=1) for n in range(count)],
                       sources=[source(up)])
        got = [f.get("context_line") for f in frames(s.symbolicate(body))]
        equal((got[0], got[16], got[-1]), ("line", "line", None))
        wait_until("the log line", lambda: "no more source files" in s.logged())


def test_source_lines_come_from_embedded_dwarf_sources(work, objects):
    """DWARF 5 as clang -gembed-source writes it: the lines come out of the debug file."""
    inner = "static volatile int sink;\nstatic inline int twice(int a)\n{\n    return sink * a;\n}\n"
    outer = '#include "inner.h"\nint entry(int a)\n{\n    return twice(a) - 1;\n}\n'
    for name, text in (("inner.h", inner), ("outer.c", outer)):
        with open(os.path.join(work, name), "w") as f:
            f.write(text)

    def build(out, *options):
        subprocess.run(["clang-14", "-gdwarf-5", "-O1", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=0x" + "ab" * 20,
                        *options, "-o", out, "outer.c"], cwd=work, check=True, capture_output=True)
        with open(os.path.join(work, out), "rb") as f:
            return f.read()

    data = build("with.so", "-gembed-source", "-gz=zlib")
    nm = subprocess.run(["nm", "with.so"], cwd=work, check=True, capture_output=True, text=True).stdout
    at = int(re.search(r"([0-9a-f]+) T entry", nm).group(1), 16)
    module = {"type": "elf", "code_id": "ab" * 20, "image_addr": "0x10000000", "image_size": 0x10000}
    path = "/ab/" + "ab" * 19 + ".debug"
    with Upstream({path: data}) as up, Service(work) as s:
        for _ in range(2):
            answer = s.symbolicate(request(module, [at], sources=[source(up)], options={"dif_candidates": True}))
            texts = {"inner.h": inner, "outer.c": outer}
            equal([f["filename"] for f in frames(answer)], ["inner.h", "outer.c"])
            for frame in frames(answer):
                before, line, after = lines_around(texts[frame["filename"]].encode(), frame["lineno"])
                equal((frame.get("pre_context", []), frame["context_line"], frame.get("post_context", [])),
                      (before, line, after))
            equal(answer["modules"][0]["features"]["has_sources"], True)
            found = [c for c in answer["modules"][0]["candidates"] if c["location"].endswith(path)]
            equal(found[0]["download"]["features"]["has_sources"], True)
        equal(up.hits[path], 1)
    with Upstream({path: build("without.so")}) as up, Service(work) as s:
        answer = s.symbolicate(request(module, [at], sources=[source(up)]))
        equal(answer["modules"][0]["features"]["has_sources"], False)
        assert not any("context_line" in f for f in frames(answer))


def test_bundle_made_by_the_command_gives_source_lines(work, objects):
    """What `symloom bundle` packs gives every frame its lines."""
    subprocess.run([harness.SYMLOOM, "bundle", "-o", os.path.join(work, "b.zip"), os.path.join(objects.dir, "full.debug")],
                   check=True, capture_output=True)
    with open(os.path.join(work, "b.zip"), "rb") as f:
        data = f.read()
    with Upstream(paths(objects, **{".src.zip": data})) as up, Service(work) as s:
        answer = s.symbolicate(request(objects.module(), [address(objects)], sources=[source(up)]))
        equal(len(frames(answer)), 3)
        check_context(answer, text_of(objects))
