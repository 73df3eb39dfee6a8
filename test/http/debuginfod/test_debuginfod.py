"""The debuginfod server: files and sections by build id, their headers, and what is refused."""
import os, re, zlib

from harness import Service, Upstream, equal, http_source
from split_program import Client, Program, directory
from test_access import bearer, key

ABSENT = "00112233"


def test_debug_files_and_programs_are_served_by_build_id(work, objects):
    t = Program(work)
    with Service(work, {"sources": [directory(work, t)]}) as s:
        for kind, data, name in (("debuginfo", t.debug, "debuginfo"), ("executable", t.stripped, "executable")):
            status, headers, body = s.request("GET", t.path(kind))
            equal((status, body == data, headers["Content-Type"]), (200, True, "application/octet-stream"), kind)
            equal((headers["X-DEBUGINFOD-SIZE"], headers["X-DEBUGINFOD-FILE"]), (str(len(data)), name))
            equal((headers["X-DEBUGINFOD-ARCHIVE"], headers["Cache-Control"]), (None, "private, max-age=3600"))
            assert headers["Last-Modified"] and re.fullmatch(r'"[0-9a-f-]+"', headers["ETag"]), dict(headers)
            status, head, body = s.request("HEAD", t.path(kind))
            equal((status, body, head["X-DEBUGINFOD-SIZE"], head["Content-Length"]), (200, b"", str(len(data)), str(len(data))))
            equal(s.request("GET", t.path(kind).replace(t.id, t.id.upper()))[2] == data, True, "ids of upper case")


def test_build_id_tree_of_debuggers_is_served(work, objects):
    """`/usr/lib/debug/.build-id`, as distributions have it. The name of the file is told, its directory is not."""
    t, root = Program(work), os.path.join(work, "debug")
    os.makedirs(os.path.join(root, t.id[:2]))
    with open(os.path.join(root, t.id[:2], t.id[2:] + ".debug"), "wb") as f:
        f.write(t.debug)
    with Service(work, {"sources": [{"id": "d", "type": "filesystem", "path": root, "layout": {"type": "native"}}]}) as s:
        status, headers, body = s.request("GET", t.path("debuginfo"))
        equal((status, body == t.debug, headers["X-DEBUGINFOD-FILE"]), (200, True, t.id[2:] + ".debug"))
        assert not any(work in value for value in headers.values())


def test_ranges_and_conditions_of_files(work, objects):
    t = Program(work)
    with Service(work, {"sources": [directory(work, t)]}) as s:
        tag = s.request("GET", t.path("debuginfo"))[1]["ETag"]
        status, headers, body = s.request("GET", t.path("debuginfo"), headers={"Range": "bytes=0-99"})
        equal((status, body, headers["Content-Range"]), (206, t.debug[:100], f"bytes 0-99/{len(t.debug)}"))
        equal(s.request("GET", t.path("debuginfo"), headers={"If-None-Match": tag})[::2], (304, b""))
        equal(s.request("GET", t.path("debuginfo"), headers={"Range": f"bytes={len(t.debug)}-"})[0], 416)
        sections = {name: s.request("GET", t.path(f"section/{name}"))[1]["ETag"] for name in (".debug_info", ".debug_line", ".text")}
        equal(len({tag, *sections.values()}), 4, "each part has a tag of its own")


def test_file_larger_than_the_client_wants_is_refused_before_its_body(work, objects):
    t = Program(work)
    with Service(work, {"sources": [directory(work, t)]}) as s:
        limit = lambda n: {"X-DEBUGINFOD-MAXSIZE": str(n)}
        status, headers, body = s.request("GET", t.path("debuginfo"), headers=limit(10))
        equal((status, body, headers["Content-Type"]), (406, b"File too large, max size=10", "text/plain"))
        equal(s.request("HEAD", t.path("debuginfo"), headers=limit(10))[0], 406)
        equal(s.request("GET", t.path("debuginfo"), headers=limit(len(t.debug)))[0], 200)
        equal(s.request("GET", t.path("debuginfo"), headers=limit(len(t.debug) - 1))[0], 406)
        equal(s.request("GET", t.path("section/.text"), headers=limit(1))[0], 406)
        equal(s.request("GET", t.path("debuginfo"), headers={"X-DEBUGINFOD-MAXSIZE": "many"})[0], 200, "no number is no limit")


def test_unknown_ids_and_bad_paths_are_not_found(work, objects):
    t = Program(work)
    with Service(work, {"sources": [directory(work, t)]}) as s:
        for path in (f"/buildid/{ABSENT}/debuginfo", t.path("section/.nosuch"), f"/buildid/{t.id[:-1]}/debuginfo", f"/buildid/{t.id}0/debuginfo",
                     "/buildid/" + "ab" * 65 + "/debuginfo", "/buildid/xyzxyz/executable", "/buildid/0x12/debuginfo", t.path("section/" + "a" * 300)):
            status, headers, body = s.request("GET", path)
            equal((status, headers["Content-Type"], body), (404, "text/plain", b"not found"), path)
            equal(headers["Cache-Control"], "no-store")
        for path in (t.path("foo"), t.path("source"), t.path("source/"), t.path("section/"), t.path("section/a/b"), f"/buildid/{t.id}", "/buildid/"):
            equal(s.request("GET", path)[0], 404, path)
        for method in ("POST", "PUT", "DELETE"):
            equal(s.request(method, t.path("debuginfo"))[0], 405, method)


def test_file_is_chosen_by_what_it_stores(work, objects):
    """Wherever it is stored: an unstripped program has both, a debug file is no program, and one of symbols alone is better than none."""
    t, u, v = Program(work), Program(work, "u", ["-DU"]), Program(work, "v", ["-O2"])
    source = directory(work, t, executables=False, whole=True)
    for program, data in ((u, u.debug), (v, v.symbols)):
        place = os.path.join(source["path"], program.id[:2], program.id[2:])
        os.makedirs(place)
        with open(os.path.join(place, "executable"), "wb") as f:
            f.write(data)
    with Service(work, {"sources": [source]}) as s:
        for kind in ("debuginfo", "executable"):
            equal(s.request("GET", t.path(kind))[2] == t.full, True, kind)
        equal(s.request("GET", u.path("debuginfo"))[2] == u.debug, True, "a debug file under the name of a program")
        equal(s.request("GET", u.path("executable"))[0], 404, "and it is none")
        equal(s.request("GET", v.path("debuginfo"))[0], 200, "a table of symbols")


def test_first_source_with_debug_sections_wins(work, objects):
    t = Program(work)
    with Upstream({f"/{t.id}/debuginfo": t.symbols}) as worse, Upstream(t.upstream_routes()) as better:
        sources = [http_source(worse.url, id="worse"), http_source(better.url, id="better")]
        with Service(work, {"sources": sources}) as s:
            equal(s.request("GET", t.path("debuginfo"))[2] == t.debug, True)


def test_stripped_program_is_no_debug_file(work, objects):
    t = Program(work)
    with Upstream({f"/{t.id}/executable": t.stripped}) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        equal(s.request("GET", t.path("debuginfo"))[0], 404)
        equal(s.request("GET", t.path("executable"))[2] == t.stripped, True)


def test_webassembly_modules_are_served(work, objects):
    """With a build id, which tells nothing of the format."""
    leb = lambda n: bytes([n]) if n < 128 else bytes([n & 127 | 128]) + leb(n >> 7)
    custom = lambda name, data: b"\0" + leb(len(name) + 1 + len(data)) + leb(len(name)) + name + data
    build_id = bytes(range(1, 21))
    code = b"\1\4\1\x60\0\0" + b"\3\2\1\0" + b"\x0a\4\1\2\0\x0b"
    head = b"\0asm\1\0\0\0"
    program = head + code + custom(b"build_id", leb(20) + build_id)
    debug = head + custom(b"build_id", leb(20) + build_id) + custom(b".debug_info", b"x" * 40)
    root = os.path.join(work, "wasm")
    place = os.path.join(root, build_id.hex()[:2], build_id.hex()[2:])
    os.makedirs(place)
    for name, data in (("executable", program), ("debuginfo", debug)):
        with open(os.path.join(place, name), "wb") as f:
            f.write(data)
    with Service(work, {"sources": [{"id": "d", "type": "filesystem", "path": root, "layout": {"type": "unified"}}]}) as s:
        equal(s.request("GET", f"/buildid/{build_id.hex()}/executable")[2], program)
        equal(s.request("GET", f"/buildid/{build_id.hex()}/debuginfo")[2], debug)
        equal(s.request("GET", f"/buildid/{build_id.hex()}/section/.debug_info")[2], b"x" * 40)
        equal(s.request("GET", f"/buildid/{build_id.hex()}/section/code")[2], b"\1\2\0\x0b")


# ---- sections ----

def test_sections_are_those_of_the_file(work, objects):
    t = Program(work)
    with Service(work, {"sources": [directory(work, t)]}) as s:
        for name, data in ((".text", t.section(".text")), (".debug_info", t.section(".debug_info", "t.debug")), (".comment", t.section(".comment"))):
            status, headers, body = s.request("GET", t.path("section/" + name))
            equal((status, body == data, headers["X-DEBUGINFOD-SIZE"]), (200, True, str(len(data))), name)
        equal(s.request("GET", t.path("section/.text"), headers={"Range": "bytes=2-5"})[2], t.section(".text")[2:6])
        equal(s.request("GET", t.path("section/%2etext"))[2], t.section(".text"))
        for name in (".bss", "%2e%2e", ".", "..", "x%2fy", ".shstrtab%00"):
            assert s.request("GET", t.path("section/" + name))[0] in (400, 404), name


def test_compressed_section_keeps_its_header(work, objects):
    t = Program(work, flags=["-gz=zlib"])
    with Service(work, {"sources": [directory(work, t)]}) as s:
        body = s.request("GET", t.path("section/.debug_info"))[2]
        equal(int.from_bytes(body[:4], "little"), 1, "ELFCOMPRESS_ZLIB")
        size = int.from_bytes(body[8:16], "little")
        equal(len(zlib.decompress(body[24:])), size)


def test_section_that_no_file_has_does_not_fetch_the_program(work, objects):
    """gdb asks for .gdb_index of every library."""
    t = Program(work)
    with Upstream(t.upstream_routes()) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        equal(s.request("GET", t.path("section/.gdb_index"))[0], 404)
        equal(f"/{t.id}/executable" in up.hits, False, up.hits)
        equal(s.request("GET", t.path("section/.text"))[2] == t.section(".text"), True)
        equal(up.hits[f"/{t.id}/executable"], 1)
        equal([path for path in up.hits if "section" in path], [], "files serve all their sections")


def test_damaged_files_have_no_sections(work, objects):
    """Bounds of a section header that lie: past the end of the file, and around it."""
    t = Program(work)
    offset = int.from_bytes(t.debug[40:48], "little")
    count, size = int.from_bytes(t.debug[60:62], "little"), int.from_bytes(t.debug[58:60], "little")
    for at, value in ((24, 2**63), (32, 2**63), (24, len(t.debug) - 1)):
        data = bytearray(t.debug)
        for i in range(count):
            data[offset + i * size + at:offset + i * size + at + 8] = value.to_bytes(8, "little")
        with Upstream({f"/{t.id}/debuginfo": bytes(data), f"/{t.id}/executable": t.stripped}) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
            equal(s.request("GET", t.path("section/.debug_info"))[0], 404, (at, value))


# ---- switches, keys, metrics ----

def test_server_can_be_switched_off_and_have_a_prefix(work, objects):
    t = Program(work)
    with Service(work, {"sources": [directory(work, t)], "debuginfod": {"enabled": False}}) as s:
        equal(s.request("GET", t.path("debuginfo"))[0], 404)
    with Service(work, {"sources": [directory(work, t)], "debuginfod": {"path_prefix": "/symbols/elf"}}) as s:
        equal(s.request("GET", "/symbols/elf" + t.path("debuginfo"))[2] == t.debug, True)
        equal(Client(work, f"http://127.0.0.1:{s.port}/symbols/elf").find("debuginfo", t.id) == t.debug, True, "clients keep a path in the URL")


def test_access_key_can_be_required(work, objects):
    t = Program(work)
    keys = {"auth": {"require": ["debuginfod"], "keys": [key("a", "debuginfod"), key("b", "proxy")]}}
    with Service(work, {"sources": [directory(work, t)], **keys}) as s:
        for headers, status in (({}, 401), (bearer("a"), 200), (bearer("b"), 403)):
            equal(s.request("GET", t.path("debuginfo"), headers=headers)[0], status, headers)
        sent = os.path.join(work, "headers")
        with open(sent, "w") as f:
            f.write("".join(f"{name}: {value}\n" for name, value in bearer("a").items()))
        equal(Client(work, s, DEBUGINFOD_HEADERS_FILE=sent).find("debuginfo", t.id) == t.debug, True)
        equal(Client(work, s).find("debuginfo", t.id), None)


def test_metric_counts_requests_by_result(work, objects):
    t = Program(work)
    with Service(work, {"sources": [directory(work, t)]}) as s:
        for _ in range(3):
            s.request("GET", t.path("debuginfo"))
        s.request("GET", t.path("section/.text"))
        s.request("GET", t.path("section/.nosuch"))
        s.request("GET", t.path("source/none.c"))
        s.request("GET", f"/buildid/{ABSENT}/executable")
        s.request("GET", t.path("debuginfo"), headers={"X-DEBUGINFOD-MAXSIZE": "1"})
        text = s.request("GET", "/metrics")[2].decode()
        counts = dict(re.findall(r'symloom_debuginfod_requests_total\{type="(\w+",result="\w+)"\} (\d+)', text))
        asked = {}
        for labels, number in counts.items():
            kind, result = labels.split('",result="')
            asked[kind, result] = int(number)
        equal(asked.pop(("debuginfo", "fetched")) + asked.pop(("debuginfo", "hit"), 0), 3)
        equal(asked.pop(("section", "fetched"), 0) + asked.pop(("section", "hit"), 0), 1)
        equal(asked, {("section", "not_found"): 1, ("source", "not_found"): 1, ("executable", "not_found"): 1, ("debuginfo", "too_large"): 1})
