"""What is uploaded at one door reaches every API and client; each door refuses in its own form."""
import json, os
from uuid import UUID

from harness import Service, equal, frames, request
from split_program import Client, Program
from test_companions import split
from test_context import bundle, text_of
from test_mappings import NAMES, ORIGINAL, PLIST, Hidden, place
from test_pyroscope import call, file_of
from test_scan import idle, put, scan
from test_sentry import send_chunks, server, upload
from test_sym_upload import create, upload as sym_upload


def test_clients_of_debuginfod_get_uploads_of_every_door(work, objects):
    """A debug file from sentry-cli, another one from sym_upload, a third one from Pyroscope, and a program."""
    doors = {
        "sentry": lambda s, t: equal(upload(s, t.debug, "t.debug")["state"], "ok"),
        "breakpad": lambda s, t: equal(sym_upload(s, t.debug, "t.debug", t.id, "ELF")[0], 200),
        "pyroscope": lambda s, t: [equal(call(s, "ShouldInitiateUpload", {"file": {"gnuBuildId": t.id, "name": "t"}})[0], 200),
                                   equal(call(s, "Upload/" + t.id, t.debug, kind="application/octet-stream")[0], 200),
                                   equal(call(s, "UploadFinished", {"gnuBuildId": t.id}), (200, {}))],
    }
    with server(work, debuginfod={"hold": "1s"}) as s:
        for flag, (door, send) in enumerate(doors.items()):
            t, client = Program(work, flags=[f"-DDOOR={flag}", f"-Wl,--build-id=0x{'%02x' % flag * 20}"]), Client(work, s)
            equal(client.find("debuginfo", t.id), None)
            client = Client(work, s)
            send(s, t)
            equal(upload(s, t.stripped, "t")["state"], "ok")
            for kind, data in (("debuginfo", t.debug), ("executable", t.stripped)):
                equal(client.find(kind, t.id) == data, True, (door, kind, client.error))
            equal(client.find("section", t.id, ".text") == t.section(".text"), True, door)


def test_files_of_a_scanned_directory_have_their_names(work, objects):
    """The answers for `t.debug` and `t` of a directory of builds, as curl shows them."""
    t = Program(work)
    builds = os.path.join(work, "builds")
    put(builds, "t.debug", t.debug)
    put(builds, "t", t.stripped)
    with Service(work, scan(builds)) as s:
        idle(s)
        for kind, name, data in (("debuginfo", "t.debug", t.debug), ("executable", "t", t.stripped)):
            status, headers, body = s.request("GET", t.path(kind))
            equal((status, body == data, headers["X-DEBUGINFOD-SIZE"], headers["X-DEBUGINFOD-FILE"], headers["X-DEBUGINFOD-ARCHIVE"]),
                  (200, True, str(len(data)), name, None))
            equal(headers["Cache-Control"].startswith("private"), True)
        status, headers, body = s.request("GET", t.path("debuginfo"), headers={"Range": "bytes=0-99"})
        equal((status, body), (206, t.debug[:100]))
        equal(s.request("GET", t.path("debuginfo"), headers={"X-DEBUGINFOD-MAXSIZE": "10"})[0], 406)
        for path in "/buildid/00112233/debuginfo", t.path("section/.nosuch"), t.path("foo"):
            equal(s.request("GET", path)[0], 404, path)


def test_doors_refuse_in_their_own_forms(work, objects):
    """A file that is too large, and a full disk."""
    with server(work, store={"max_file_size": "1KiB"}) as s:
        url, _ = create(s)
        equal(s.request("PUT", f"{url.path}?{url.query}", objects.debug)[0], 413)
        equal(call(s, "ShouldInitiateUpload", {"file": file_of(objects)})[0], 200)
        status, answer = call(s, "Upload/" + objects.build_id, objects.debug, kind="application/octet-stream")
        equal((status, list(answer)), (413, ["code", "message"]), answer)
    with server(work, symbfile={"store_min_free": 1 << 60}) as s:
        status, answer = send_chunks(s, objects.debug)
        equal((status, list(answer)), (507, ["error"]), answer)
        url, _ = create(s)
        equal(s.request("PUT", f"{url.path}?{url.query}", objects.debug)[0], 507)
        equal(call(s, "ShouldInitiateUpload", {"file": file_of(objects)})[0], 200)
        status, answer = call(s, "Upload/" + objects.build_id, objects.debug, kind="application/octet-stream")
        equal((status, answer["code"]), (507, "resource_exhausted"), answer)


def test_a_pyroscope_upload_that_stopped_gives_way_after_seven_minutes(work, objects):
    with server(work) as s:
        ask = lambda: call(s, "ShouldInitiateUpload", {"file": file_of(objects)})[1]["shouldInitiateUpload"]
        equal((ask(), ask()), (True, False))
        record = os.path.join(s.cache, "uploads", "uploads", "pyroscope", objects.build_id)
        with open(record) as f:
            kept = json.load(f)
        time, = [k for k in kept if "start" in k.lower()]
        with open(record, "w") as f:
            json.dump({**kept, time: kept[time] - 7 * 60 - 1}, f)
        equal((ask(), ask()), (True, False))


def test_files_beside_debug_files_are_found_by_their_ids(work, objects):
    """Symbol maps and UUID maps are named by their ids, line mappings state that of the program."""
    program = Hidden(work)
    uuid = str(UUID(program.debug_id))
    lines = json.dumps({program.path: {"C:\\Game\\Game.cs": {"5": 42}}, "__debug-id__": {uuid: {}}})
    with server(work) as s:
        equal(upload(s, program.file, "a")["state"], "ok")
        for data, name, keys in ((PLIST, f"{uuid}.plist", {}), (NAMES, f"{ORIGINAL}.bcsymbolmap", {}), (lines, "il2cpp.json", {"debug_id": uuid})):
            got = upload(s, data.encode(), name, **keys)
            equal(got["state"], "ok", (name, got))
        equal(place(s.symbolicate(program.request())), ("_Z6secondi", "_Z6secondi", 42, "Game.cs"))


def test_an_uploaded_source_bundle_gives_context(work, objects):
    text = text_of(objects)
    with server(work) as s:
        equal(upload(s, objects.debug)["state"], "ok")
        path = frames(s.symbolicate(request(objects.module(), [objects.address("main")])))[-1]["abs_path"]
        packed = bundle({"files/shapes.cc": ({"type": "source", "path": path}, text)}, debug_id=objects.debug_id, arch="x86_64")
        equal(upload(s, packed, "shapes.src.zip")["state"], "ok")
        frame = frames(s.symbolicate(request(objects.module(), [objects.address("main")], options={"apply_source_context": True})))[-1]
        equal(frame["context_line"], text.decode().split("\n")[frame["lineno"] - 1])


def test_dwarf_packages_are_kept_by_the_id_that_the_client_states(work, objects):
    """They have none of their own."""
    build_id, _, package, _ = split(work, objects)
    with server(work) as s:
        equal(sym_upload(s, package, "split.dwp", build_id, "dwp")[0], 200)
        stored = os.path.join(s.cache, "uploads", "objects", build_id[:2], build_id[2:])
        names = os.listdir(stored)
        equal([open(os.path.join(stored, n), "rb").read() == package for n in names], [True], names)
