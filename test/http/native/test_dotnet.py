"""Frames of .NET code: Portable PDBs, alone and inside of PE files, and what is none."""
import hashlib, os, struct, subprocess, zlib

from harness import Service, Upstream, equal, frames, wait_until

GUID = bytes(range(0x10, 0x20))
APPENDIX = 0xE60B819D
DEBUG_ID = "13121110-1514-1716-1819-1a1b1c1d1e1f"  # the first three fields are little-endian numbers
PATH = f"/app.pdb/{DEBUG_ID.replace('-', '').upper()}ffffffff/app.pdb"
LANGUAGES = {
    "csharp": "f862513fc607d311905300c04fa302a1",
    "visualbasic": "b8d0123a6cc2d011b44200a0244a1dd2",
    "fsharp": "c9384fabe6b6ba43be3b58080b2ccce3",
    "unknown": "00" * 16,
}
EMBEDDED_SOURCE = "1b578a0e26696e46b4ad8ab04611f5fe"
UNSUPPORTED = "unsupported: Only portable PDB files can be used for .NET symbolication"


class PortablePdb:
    """Writes one byte by byte (Portable PDB Format Specification v1.0): small, with narrow indexes."""

    def __init__(self):
        self.blobs, self.guids = bytearray(b"\0"), b""
        self.documents, self.methods, self.customs = [], [], []

    def blob(self, data):
        at = len(self.blobs)
        self.blobs += (bytes([len(data)]) if len(data) < 128 else bytes([0x80 | len(data) >> 8, len(data) & 255])) + data
        return at

    def guid(self, text):
        self.guids += bytes.fromhex(text)
        return len(self.guids) // 16

    def document(self, name, language="csharp"):
        part = self.blob(name.encode())
        name = self.blob(b"\0" + (bytes([part]) if part < 128 else bytes([0x80 | part >> 8, part & 255])))
        self.documents.append(struct.pack("<4H", name, 0, 0, self.guid(LANGUAGES[language])))
        return len(self.documents)

    def method(self, document=0, lines=()):
        """`lines`: (IL offset, line), ascending; line 0 is hidden."""
        points, last_offset, last_line = b"\0", 0, None
        for offset, line in lines:
            points += bytes([offset - last_offset, 0, 1 if line else 0])
            last_offset = offset
            if line and last_line is None:
                points += bytes([line, 1])
            elif line:
                delta = line - last_line
                points += bytes([(delta << 1 | (delta < 0)) & 0x7F, 0])
            last_line = line or last_line
        self.methods.append(struct.pack("<2H", document, self.blob(points) if lines else 0))
        return len(self.methods)

    def source(self, document, text):
        row = struct.pack("<3H", document << 5 | 22, self.guid(EMBEDDED_SOURCE), self.blob(struct.pack("<i", 0) + text))
        self.customs.append(row)

    def data(self):
        tables = [(0x30, self.documents), (0x31, self.methods), (0x37, self.customs)]
        valid = sum(1 << number for number, rows in tables if rows)
        stream = struct.pack("<IBBBBQQ", 0, 2, 0, 0, 1, valid, 0)
        stream += b"".join(struct.pack("<I", len(rows)) for _, rows in tables if rows)
        stream += b"".join(row for _, rows in tables for row in rows)
        pdb = GUID + struct.pack("<IIQ", APPENDIX, 0, 0)
        streams = [(b"#Pdb\0\0\0\0", pdb), (b"#~\0\0", stream), (b"#GUID\0\0\0", self.guids), (b"#Blob\0\0\0", self.blobs)]
        at = 32 + sum(8 + len(name) for name, _ in streams)
        head = b"BSJB" + struct.pack("<HHII", 1, 1, 0, 12) + b"PDB v1.0\0\0\0\0" + struct.pack("<HH", 0, len(streams))
        for name, data in streams:
            head += struct.pack("<II", at, len(data)) + name
            at += len(data)
        return head + b"".join(data for _, data in streams)


def pe_around(ppdb, declared=None):
    """A PE file whose debug directory has the Portable PDB as entry of type 17 (PE/COFF additions for .NET)."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    inside = b"MPDB" + struct.pack("<I", len(ppdb) if declared is None else declared)
    inside += deflate.compress(ppdb) + deflate.flush()
    directory = struct.pack("<IIHHIIII", 0, 0, 0x100, 0x100, 17, len(inside), 0, 0x400)
    optional = struct.pack("<HBBIIIII", 0x20B, 14, 0, 0, 0, 0, 0, 0x1000) + struct.pack("<QII", 0x180000000, 0x1000, 0x200)
    optional += struct.pack("<6HIIIIHHQQQQII", 4, 0, 0, 0, 4, 0, 0, 0x3000, 0x200, 0, 3, 0, 0, 0, 0, 0, 0, 16)
    directories = [(0, 0)] * 16
    directories[6] = (0x1000, len(directory))
    optional += b"".join(struct.pack("<II", *d) for d in directories)
    head = b"MZ" + b"\0" * 58 + struct.pack("<I", 64)
    head += b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, 1, 0x12345678, 0, 0, len(optional), 0x2022) + optional
    head += b".rdata\0\0" + struct.pack("<IIIIIIHHI", 0x200, 0x1000, 0x200, 0x200, 0, 0, 0, 0, 0x40000040)
    return head.ljust(0x200, b"\0") + directory.ljust(0x200, b"\0") + inside


def program():
    pdb = PortablePdb()
    main, other = pdb.document("/src/app/Program.cs"), pdb.document("C:\\src\\Module.vb", "visualbasic")
    odd = pdb.document("odd", "unknown")
    pdb.method(main, [(0, 10), (6, 12), (10, 0), (20, 11)])
    pdb.method()
    pdb.method(other, [(3, 7)])
    pdb.method(odd, [(0, 1)])
    return pdb


def module(**changes):
    return {"type": "pe_dotnet", "debug_file": "app.pdb", "debug_id": f"{DEBUG_ID}-{APPENDIX:x}", **changes}


def request(url, sent, **changes):
    source = {"id": "test", "type": "http", "url": url, "layout": {"type": "symstore"}}
    sent = [f if isinstance(f, dict) else {"instruction_addr": f[1], "function_id": f[0]} for f in sent]
    return {"stacktraces": [{"frames": [{"addr_mode": "rel:0", **f} for f in sent]}], "modules": [module(**changes)],
            "sources": [source], "options": {"dif_candidates": True}}


def download_of(answer, path=PATH):
    return [c for c in answer["modules"][0]["candidates"] if c["location"].endswith(path)][0]


def lines(answer):
    return [f.get("lineno", f["status"]) for f in frames(answer)]


def test_lines_are_found_by_method_and_offset(work, objects):
    with Upstream({PATH: program().data()}) as up, Service(work) as s:
        sent = [(1, 0), (1, 5), (1, 6), (1, 15), (1, 20), (1, 1000), (3, 2), (3, 3), (2, 0), (0, 0), (5, 0)]
        answer = s.symbolicate(request(up.url, sent))
        missing = "missing_symbol"
        equal(lines(answer), [10, 10, 12, 12, 11, 11, missing, 7, missing, missing, missing])
        equal(frames(answer)[0], {"status": "symbolicated", "original_index": 0, "addr_mode": "rel:0",
                                  "instruction_addr": "0x0", "function_id": "0x1", "lang": "csharp",
                                  "filename": "Program.cs", "abs_path": "/src/app/Program.cs", "lineno": 10})
        equal([frames(answer)[7][k] for k in ("lang", "filename", "abs_path")], ["visualbasic", "Module.vb",
                                                                               "C:\\src\\Module.vb"])
        found = answer["modules"][0]
        equal((found["debug_status"], found["arch"], found["type"]), ("found", "unknown", "pe_dotnet"))
        features = {"has_debug_info": True, "has_unwind_info": False, "has_symbols": False, "has_sources": False}
        equal(found["features"], features)
        equal(download_of(answer), {"source": "test", "location": up.url + PATH[1:], "debug": {"status": "ok"},
                                    "download": {"status": "ok", "features": features}})
        equal(up.hits[PATH], 1)


def test_fields_of_sent_frames_are_kept(work, objects):
    sent = {"instruction_addr": "0x6", "function_id": "0x1", "platform": "csharp", "package": "App", "lang": "fsharp",
            "symbol": "App.Program.Main", "sym_addr": "0x5", "function": "Main", "filename": "old.cs", "abs_path": "/old.cs",
            "lineno": 1, "pre_context": ["before"], "context_line": "line", "post_context": ["after"],
            "source_link": "https://example.com/x", "in_app": True, "vars": {"b": 1, "a": None}, "trust": "fp",
            "adjust_instruction_addr": True}
    with Upstream({PATH: program().data()}) as up, Service(work) as s:
        answer = s.symbolicate({**request(up.url, [sent], code_file="app.dll"),
                                "options": {"apply_source_context": False}})
        equal(frames(answer)[0], {**sent, "status": "symbolicated", "original_index": 0, "addr_mode": "rel:0",
                                  "package": "app.dll", "lang": "csharp", "filename": "Program.cs",
                                  "abs_path": "/src/app/Program.cs", "lineno": 12})
        # A miss keeps even what a hit overwrites.
        missed = {k: v for k, v in sent.items() if k != "function_id"}
        answer = s.symbolicate({**request(up.url, [missed]), "options": {"apply_source_context": False}})
        equal({**frames(answer)[0], "package": 0}, {**missed, "status": "missing_symbol", "original_index": 0,
                                                    "addr_mode": "rel:0", "package": 0})


def test_method_tokens_and_offsets_are_read_in_all_forms(work, objects):
    with Upstream({PATH: program().data()}) as up, Service(work) as s:
        sent = [("0x06000001", 6),           # a whole metadata token
                ("0x100000001", 6),          # only the low 32 bits count
                (1, "0x100000006"),
                (1, "0xffffffff"),           # "not known"
                (1, "0xffffffffffffffff"),
                ("0x02000001", 6)]           # a token of another table
        missing = "missing_symbol"
        equal(lines(s.symbolicate(request(up.url, sent))), [12, 12, 12, missing, missing, missing])
        # The offset is what was sent, not what lies so far inside of the module.
        answer = s.symbolicate({**request(up.url, [(1, 6)], image_addr="0x1000", image_size=4096)})
        equal((lines(answer), frames(answer)[0]["addr_mode"], frames(answer)[0]["instruction_addr"]), ([12], "rel:0", "0x6"))
        # Absolute frames find a module at 0.
        body = request(up.url, [{"addr_mode": "abs", "instruction_addr": 6, "function_id": 1}])
        answer = s.symbolicate(body)
        equal(lines(answer), [12])
        assert "addr_mode" not in frames(answer)[0]
        equal(frames(s.symbolicate(request(up.url, [(4, 0)])))[0]["lang"], "unknown")


def test_windows_pdbs_are_unsupported(work, objects):
    yaml, pdb = os.path.join(work, "w.yaml"), os.path.join(work, "w.pdb")
    with open(yaml, "w") as f:
        f.write("---\nPdbStream:\n  Guid: '{13121110-1514-1716-1819-1A1B1C1D1E1F}'\n...\n")
    subprocess.run(["llvm-pdbutil-14", "yaml2pdb", "-pdb=" + pdb, yaml], check=True, capture_output=True)
    with open(pdb, "rb") as f:
        data = f.read()
    with Upstream({PATH: data}) as up, Service(work) as s:
        for _ in range(2):  # fresh and from the cache
            answer = s.symbolicate(request(up.url, [(1, 0)]))
            equal(frames(answer)[0]["status"], "missing")
            found = answer["modules"][0]
            equal((found["debug_status"], found["arch"]), ("unsupported", "unknown"))
            equal(found["features"]["has_debug_info"], True)
            equal(download_of(answer)["debug"], {"status": "error", "details": UNSUPPORTED})
            equal(download_of(answer)["download"]["status"], "ok")


def test_malformed_portable_pdbs_are_reported(work, objects):
    whole = program().data()
    with Upstream({PATH: whole[:200]}) as up, Service(work) as s:
        answer = s.symbolicate(request(up.url, [(1, 0)]))
        equal(frames(answer)[0]["status"], "malformed")
        equal(answer["modules"][0]["debug_status"], "malformed")
        equal((download_of(answer)["download"], download_of(answer)["debug"]), ({"status": "malformed"},) * 2)
    with Upstream({}) as up, Service(work) as s:
        answer = s.symbolicate(request(up.url, [(1, 0)]))
        equal((frames(answer)[0]["status"], answer["modules"][0]["debug_status"]), ("missing", "missing"))
        assert "debug" not in download_of(answer)


def test_defective_method_leaves_others_readable(work, objects):
    pdb = program()
    pdb.methods[0] = struct.pack("<2H", 1, 0xFFFF)  # its points lie outside of the file
    with Upstream({PATH: pdb.data()}) as up, Service(work) as s:
        equal(lines(s.symbolicate(request(up.url, [(1, 0), (3, 3)]))), ["missing_symbol", 7])
        wait_until("the log line", lambda: "skipped damaged methods or documents" in s.logged())


def test_portable_pdb_in_a_pe_file_is_read(work, objects):
    pdb = program()
    pdb.source(1, b"class Program {}\n")
    with Upstream({PATH: pe_around(pdb.data())}) as up, Service(work) as s:
        for _ in range(2):
            answer = s.symbolicate(request(up.url, [(1, 6), (3, 3)]))
            equal(lines(answer), [12, 7])
            equal(answer["modules"][0]["debug_status"], "found")
            equal(answer["modules"][0]["features"]["has_debug_info"], True)
            equal(download_of(answer)["debug"], {"status": "ok"})
            equal(answer["modules"][0]["features"]["has_sources"], True)
    # The same file of a native module is a PE file without debug information.
    with Upstream({PATH: pe_around(program().data())}) as up, Service(work) as s:
        body = request(up.url, [(1, 6)], type="pe", image_addr="0x1000", image_size=4096)
        equal(s.symbolicate(body)["modules"][0]["features"]["has_debug_info"], False)


def test_pe_files_are_fetched_when_configured(work, objects):
    pdb = program()
    pdb.source(1, b"using System;\n" * 12)
    inside, plain = "/app.dll/123456783000/app.dll", "/app.dll/123456783001/app.dll"
    routes = {inside: pe_around(pdb.data()), plain: pe_around(b"BSJB" + b"\0" * 50)}
    with Upstream(routes) as up, Service(work, {"dotnet_ask_pe": True}) as s, Service(work) as other:
        body = request(up.url, [(1, 6)], code_file="app.dll", code_id="123456783000")
        answer = s.symbolicate(body)
        equal((lines(answer), frames(answer)[0]["context_line"]), ([12], "using System;"))
        equal((answer["modules"][0]["debug_status"], answer["modules"][0]["features"]["has_sources"]), ("found", True))
        equal(download_of(answer, inside)["debug"], {"status": "ok"})
        equal(download_of(answer)["download"], {"status": "notfound"})
        # a Portable PDB of its own comes first, and then nobody is asked
        up.routes[PATH] = program().data()
        body["scope"] = "other"
        hits = up.hits[inside]
        equal(lines(other.symbolicate(body)), [12])
        equal(up.hits[inside], hits)
        del up.routes[PATH]
        answer = s.symbolicate(request(up.url, [(1, 6)], code_file="app.dll", code_id="123456783001"))
        equal((lines(answer), answer["modules"][0]["debug_status"]), (["missing"], "missing"))
        answer = other.symbolicate(request(up.url, [(1, 6)], code_file="app.dll", code_id="123456783000"))
        equal(up.hits[inside], hits, "not asked unless it is configured")


def test_pe_files_without_usable_pdb_are_missing(work, objects):
    whole = program().data()
    for inside in (pe_around(whole, len(whole) + 1), pe_around(b"BSJB" + b"\0" * 50)):
        with Upstream({PATH: inside}) as up, Service(work) as s:
            answer = s.symbolicate(request(up.url, [(1, 6)]))
            equal((frames(answer)[0]["status"], answer["modules"][0]["debug_status"]), ("missing", "missing"))


def test_checksum_mismatches_are_reported(work, objects):
    data = program().data()
    at = data.index(GUID)
    checksum = "SHA256:" + hashlib.sha256(data[:at] + b"\0" * 20 + data[at + 20:]).hexdigest()
    for changes, problem in (({"debug_checksum": checksum}, None),
                             ({"debug_checksum": checksum[:-2].upper() + checksum[-2:]}, None),
                             ({"debug_checksum": "SHA1:00"}, None),
                             ({"debug_checksum": "SHA256:" + "0" * 64}, "the downloaded file's checksum is not the one asked for"),
                             ({"debug_id": DEBUG_ID[:-1] + "0"}, "the downloaded file's id is not the one asked for")):
        path = PATH.replace(DEBUG_ID[-1:].upper() + "ffffffff", "0ffffffff") if "debug_id" in changes else PATH
        with Upstream({path: data}) as up, Service(work) as s:
            equal(lines(s.symbolicate(request(up.url, [(1, 6)], **changes))), [12])
            s.stop()  # the log is complete
            equal([p for p in ("checksum is not", "id is not") if p in s.logged()],
                  [p for p in ("checksum is not", "id is not") if p in (problem or "")])


def is_table(path):
    with open(path, "rb") as f:
        return f.read(4) == b"SLPP"


def test_portable_pdb_tables_survive_a_restart(work, objects):
    with Upstream({PATH: program().data()}) as up:
        with Service(work) as s:
            equal(lines(s.symbolicate(request(up.url, [(1, 6)]))), [12])
        root = os.path.join(s.cache, "ppdb_caches", "v1001")
        tables = [os.path.join(d, f) for d, _, names in os.walk(root) for f in names if is_table(os.path.join(d, f))]
        equal(len(tables), 1)
        with Service(work, cache_dir=s.cache) as again:
            equal(lines(again.symbolicate(request(up.url, [(1, 6)]))), [12])
        equal(up.hits[PATH], 1)
        with open(tables[0], "r+b") as f:  # damaged: made anew
            f.seek(40)
            f.write(b"\xff\xff")
        with Service(work, cache_dir=s.cache) as third:
            equal(lines(third.symbolicate(request(up.url, [(1, 6)]))), [12])


def test_portable_pdbs_have_no_native_symbols(work, objects):
    path = PATH.replace("ffffffff", f"{APPENDIX:x}")  # native modules ask with the whole id
    with Upstream({path: program().data()}) as up, Service(work) as s:
        answer = s.symbolicate(request(up.url, [(1, 6)], type="pe", image_addr="0x1000", image_size=4096))
        equal(frames(answer)[0]["status"], "missing_symbol")
        equal(answer["modules"][0]["debug_status"], "found")
        equal(download_of(answer, path)["debug"], {"status": "ok"})
