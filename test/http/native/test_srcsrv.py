"""Where native PDBs say that sources are kept: source server streams and Source Link."""
import json, os, re, subprocess

from harness import Service, Upstream, equal, frames

CODE = "int first(int a)\n{\n    return a * 3;\n}\n"
OTHER = "int second(int a)\n{\n    return a - 3;\n}\nint entry(void) { return first(2) + second(1); }\n"
PERFORCE = "VERCTRL=Perforce", "SRCSRVTRG=%targ%\\%var2%\\%fnbksl%(%var3%)\nSRCSRVCMD="


def stream(variables, entries, control="VERCTRL=http"):
    return (f"SRCSRV: ini ---\r\nVERSION=1\r\n{control}\r\nSRCSRV: variables ---\r\n{variables}\r\n"
            f"SRCSRV: source files ---\r\n{entries}\r\nSRCSRV: end ---\r\n")


class Program:
    """Two files of `C:\\build`, linked with the named streams."""

    def __init__(self, work, **streams):
        self.dir = work

        def run(*command):
            return subprocess.run(command, cwd=work, check=True, capture_output=True, text=True).stdout

        options = []
        for name, text in streams.items():
            with open(os.path.join(work, name), "w", newline="") as f:
                f.write(text)
            options.append(f"/pdbstream:{name}={name}")
        for name, text in (("a", CODE), ("b", "int first(int a);\n#line 1\n" + OTHER)):
            with open(os.path.join(work, name + ".c"), "w") as f:
                f.write(text)
            run("clang-14", "--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-ffreestanding",
                "-fdebug-compilation-dir=C:\\build", "-c", "-o", name + ".obj", name + ".c")
        run("lld-link-14", "/nodefaultlib", "/entry:entry", "/subsystem:console", "/debug", *options, "/out:p.exe", "a.obj",
            "b.obj")
        with open(os.path.join(work, "p.pdb"), "rb") as f:
            self.pdb = f.read()
        summary = run("llvm-pdbutil-14", "dump", "--summary", "p.pdb")
        self.guid = re.search(r"GUID: \{([0-9A-F-]+)\}", summary).group(1)
        self.path = f"/p.pdb/{self.guid.replace('-', '')}1/p.pdb"
        publics = run("llvm-pdbutil-14", "dump", "--publics", "p.pdb")
        self.offsets = {name: int(offset) + 0x1000 for name, offset in
                        re.findall(r"`(\w+)`\n\s+flags = \w+, addr = 0001:(\d+)", publics)}

    def request(self, up, **options):
        addresses = [hex(0x10000 + self.offsets[name]) for name in ("first", "second")]
        return {"stacktraces": [{"frames": [{"instruction_addr": a, "adjust_instruction_addr": False} for a in addresses]}],
                "modules": [{"type": "pe", "debug_file": "p.pdb", "debug_id": f"{self.guid}-1", "image_addr": "0x10000",
                             "image_size": 0x10000}],
                "sources": [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "symstore"}}],
                "options": {"dif_candidates": True}, **options}


def test_only_the_control_system_is_reported_by_default(work, objects):
    p = Program(work, srcsrv=stream(PERFORCE[1], "c:\\build\\a.c*P4*//depot/a.c*7", PERFORCE[0]))
    with Upstream({p.path: p.pdb}) as up, Service(work) as s:
        answer = s.symbolicate(p.request(up))
        equal([f["abs_path"].lower() for f in frames(answer)], ["c:\\build\\a.c", "c:\\build\\b.c"])
        assert not any(key.startswith("srcsrv") or key == "source_link" for f in frames(answer) for key in f)
        module = answer["modules"][0]
        equal(module["features"]["srcsrv_vcs"], "perforce")
        found = [c for c in module["candidates"] if c["download"]["status"] == "ok"]
        equal([c["download"]["features"]["srcsrv_vcs"] for c in found], ["perforce"])
    without = os.path.join(work, "without")
    os.mkdir(without)
    p = Program(without)
    with Upstream({p.path: p.pdb}) as up, Service(work) as s:
        assert "srcsrv_vcs" not in s.symbolicate(p.request(up))["modules"][0]["features"]


def test_depot_and_revision_are_shown_when_configured(work, objects):
    p = Program(work, srcsrv=stream(PERFORCE[1], "C:\\BUILD\\a.c*P4*//depot/a.c*7\nc:\\build\\b.c*depot/b.c", PERFORCE[0]))
    with Upstream({p.path: p.pdb}) as up, Service(work, {"srcsrv_frames": True}) as s:
        a, b = frames(s.symbolicate(p.request(up)))
        equal((a["srcsrv_path"], a["srcsrv_revision"]), ("depot/a.c", "7"))
        keys = list(a)
        equal(keys[keys.index("lineno"):], ["lineno", "srcsrv_path", "srcsrv_revision"])
        # its target needs a third field
        assert "srcsrv_path" not in b and "srcsrv_revision" not in b, b


def context(frame):
    return frame.get("source_link"), frame.get("context_line")


def test_srcsrv_links_are_downloaded_when_configured(work, objects):
    with Upstream({"/src/2/a.c": CODE.encode(), "/rules/b.c": OTHER.encode()}) as up:
        p = Program(work, srcsrv=stream(f"HOST={up.url}src\r\nSRCSRVTRG=%host%/%var3%/%var2%", "c:\\build\\a.c*a.c*2"),
                    sourcelink=json.dumps({"documents": {"C:\\build\\*": up.url + "rules/*"}}))
        up.routes[p.path] = p.pdb
        with Service(work, {"srcsrv_links": True}) as s:
            answer = s.symbolicate(p.request(up))
            equal([context(f) for f in frames(answer)], [(up.url + "src/2/a.c", "{"), (up.url + "rules/b.c", "{")])
            linked = [c for c in answer["modules"][0]["candidates"] if c["source"] == "sourcelink"]
            equal([(c["location"], c["download"]["status"]) for c in linked],
                  [(up.url + "rules/b.c", "ok"), (up.url + "src/2/a.c", "ok")])
            equal(answer["modules"][0]["features"]["srcsrv_vcs"], "other")
            hits = dict(up.hits)
            equal(s.symbolicate(p.request(up)), answer)
            equal(up.hits, hits, "the second time from the cache")
            answer = s.symbolicate(p.request(up, options={"apply_source_context": False}))
            equal([context(f) for f in frames(answer)], [(None, None)] * 2)
        with Service(work) as s:
            equal([context(f) for f in frames(s.symbolicate(p.request(up)))], [(None, None)] * 2)


def test_srcsrv_links_with_commands_are_not_followed(work, objects):
    with Upstream({"/a.c": CODE.encode()}) as up:
        p = Program(work, srcsrv=stream(f"SRCSRVTRG={up.url}%var2%\r\nSRCSRVCMD=", "c:\\build\\a.c*a.c"))
        up.routes[p.path] = p.pdb
        with Service(work, {"srcsrv_links": True, "srcsrv_frames": True}) as s:
            equal([context(f) for f in frames(s.symbolicate(p.request(up)))], [(None, None)] * 2)
            assert "/a.c" not in up.hits


def test_csharp_files_keep_depot_and_revision(work, objects):
    """A line mapping leads two files to one; each keeps what version control has, and no link to the text it came from."""
    build = "c:\\build\\"
    with Upstream({"/src/a.c": CODE.encode()}) as up:
        p = Program(work, srcsrv=stream(PERFORCE[1], f"{build}a.c*P4*//depot/a.c*7\n{build}b.c*P4*//depot/b.c*8", PERFORCE[0]),
                    sourcelink=json.dumps({"documents": {"C:\\build\\*": up.url + "src/*"}}))
        lines = {f"C:\\build\\{name}": {"C:\\Game\\Game.cs": {"1": number}} for name, number in (("a.c", 42), ("b.c", 43))}
        lower = {key.lower(): value for key, value in lines.items()}
        at = p.guid.replace("-", "").lower()
        mapping = json.dumps({**lines, **lower}).encode()
        up.routes.update({f"/{at[:2]}/{at[2:]}{'1'}/{what}": data for what, data in (("debuginfo", p.pdb), ("il2cpp", mapping))})
        body = p.request(up, sources=[{"id": "test", "type": "http", "url": up.url, "layout": {"type": "unified"}}])
        with Service(work, {"srcsrv_frames": True, "srcsrv_links": True}) as s:
            a, b = frames(s.symbolicate(body))
            equal([(f["abs_path"], f["lineno"], f.get("srcsrv_path"), f.get("srcsrv_revision")) for f in (a, b)],
                  [("C:\\Game\\Game.cs", 42, "depot/a.c", "7"), ("C:\\Game\\Game.cs", 43, "depot/b.c", "8")])
            equal([context(f) for f in (a, b)], [(None, None)] * 2)
            assert "/src/a.c" not in up.hits
