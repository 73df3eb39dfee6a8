"""Uploaded files by their names: /metadata lists them, and texts that name modules without ids find them."""
import json, os, shutil, subprocess

import texts
from cloud import S3
from harness import equal, wait_until
from test_scan import idle, scan
from test_sentry import KEYS, sha1, server, upload
from test_text import text as symbolicate_text


def ask(s, key, value):
    status, _, body = s.request("GET", f"/metadata?key={key}&value={value}")
    equal(status, 200, body)
    return json.loads(body)


def complete(s, key, value):
    """The answer after the first pass over the records, which makes it complete."""
    return wait_until("the names", lambda: (lambda got: got["complete"] and (got["results"],))(ask(s, key, value)))[0]


def program(work, name, extra):
    made = texts.Program(work, name, (".c", texts.SOURCE + extra), ["gcc", "-g", "-O1", "-Wl,--build-id=sha1"])
    return made


def found(s, made, path="/opt/shop", query=""):
    line = f"#0 0x1  ({path}+0x{made.symbols['use']:x})\n"
    module, = symbolicate_text(s, line, query=query, Accept="application/json")["modules"]
    return module.get("code_id") if module.get("guess") else None


def of(made, name, kind):
    return {"type": kind, "buildid": made.id, "file": "/" + name}


def test_uploads_are_listed_by_their_names(work, objects):
    made = program(work, "shop", "int in_a;\n")
    with server(work) as s:
        equal(complete(s, "glob", "/*"), [])
        for name in "shop", "shop.debug":
            equal(upload(s, made.files[name], "C:\\build/" + name)["state"], "ok")
        os.mkdir(os.path.join(work, "other"))
        odd = program(os.path.join(work, "other"), "odd", "int in_b;\n")
        equal(upload(s, odd.files["odd.debug"], "other name=.debug")["state"], "ok")
        equal(upload(s, made.files["shop.debug"], "shop.debug")["state"], "ok")  # again
        executable, debug = of(made, "shop", "executable"), of(made, "shop.debug", "debuginfo")
        for key, value, expected in (("file", "/shop", [executable]), ("file", "/shop.debug", [debug]), ("file", "shop", []), ("file", "/usr/bin/shop", []),
                                     ("glob", "/sho*", [executable, debug]), ("glob", "/*.debug", [debug, of(odd, "other name=.debug", "debuginfo")]),
                                     ("glob", "/[o]ther*", [of(odd, "other name=.debug", "debuginfo")]), ("glob", "*", []), ("glob", "/*/shop", [])):
            got = ask(s, key, value)
            got["results"].sort(key=lambda r: r["file"])
            equal(got, {"results": sorted(expected, key=lambda r: r["file"]), "complete": True}, (key, value))


def test_names_in_texts_lead_to_uploads(work, objects):
    """One id of the name is used; several are told apart by nothing but the request's word."""
    os.mkdir(os.path.join(work, "later"))
    first, second = program(work, "shop", "int in_a;\n"), program(os.path.join(work, "later"), "shop", "int in_b;\n")
    with server(work) as s:
        complete(s, "glob", "/*")
        equal(found(s, first), None)
        for name in "shop", "shop.debug":
            equal(upload(s, first.files[name], name)["state"], "ok")
        equal([found(s, first), found(s, first, "C:\\x\\shop.exe"), found(s, first, query="?guess=none"), found(s, first, "other")], [first.id, first.id, None, None])
        line = f"#0 0x1  (/opt/shop+0x{first.symbols['use']:x})\n"
        equal(" in use " in symbolicate_text(s, line), True)
        # The time of an upload has seconds: that of the first is set back.
        names = os.path.join(s.cache, "uploads/uploads/names/shop")
        for entry in os.listdir(names):
            os.rename(os.path.join(names, entry), os.path.join(names, "99999999998" + entry[11:]))
        for data in first.files.values():
            record = os.path.join(s.cache, "uploads/uploads/sha1", sha1(data)[:2], sha1(data))
            with open(record) as f:
                changed = {**json.load(f), "created": 1}
            with open(record, "w") as f:
                json.dump(changed, f)
        equal(upload(s, second.files["shop"], "shop")["state"], "ok")
        equal([found(s, first), found(s, first, query="?guess=newest")], [None, second.id])


def test_uploads_and_scanned_files_count_together(work, objects):
    os.makedirs(os.path.join(work, "builds/usr/bin"))
    os.mkdir(os.path.join(work, "later"))
    scanned, sent = program(work, "shop", "int in_a;\n"), program(os.path.join(work, "later"), "shop", "int in_b;\n")
    for name in scanned.files:
        shutil.copy(os.path.join(work, name), os.path.join(work, "builds/usr/bin"))
        os.utime(os.path.join(work, "builds/usr/bin", name), (1, 1))
    with server(work, **scan(os.path.join(work, "builds"))) as s:
        idle(s)
        complete(s, "glob", "/*")
        equal(found(s, scanned), scanned.id)
        equal(upload(s, scanned.files["shop.debug"], "shop.debug")["state"], "ok")
        equal(found(s, scanned), scanned.id)  # the same id
        for name in "uploads/sha1", "uploads/names":
            shutil.rmtree(os.path.join(s.cache, "uploads", name))
        equal(upload(s, sent.files["shop"], "shop")["state"], "ok")
        equal([found(s, scanned), found(s, scanned, "/usr/bin/shop"), found(s, scanned, query="?guess=newest")], [None, scanned.id, sent.id])
        equal(len(ask(s, "glob", "/sho*")["results"]), 1)
        equal(len(ask(s, "file", "/usr/bin/shop")["results"]), 1)


def test_stores_of_older_versions_get_their_names(work, objects):
    """Records without entries get them at the next start; a file that was replaced or removed is not answered."""
    made = program(work, "shop", "int in_a;\n")
    with server(work) as s:
        cache = s.cache
        complete(s, "glob", "/*")
        for name in made.files:
            equal(upload(s, made.files[name], name)["state"], "ok")
    store = os.path.join(cache, "uploads")
    shutil.rmtree(os.path.join(store, "uploads/names"))
    with server(work, cache_dir=cache) as s:
        equal(sorted(r["file"] for r in complete(s, "glob", "/*")), ["/shop", "/shop.debug"])
        equal(found(s, made), made.id)
        at = os.path.join(store, "objects", made.id[:2], made.id[2:])
        os.unlink(os.path.join(at, "executable"))
        with open(os.path.join(at, "debuginfo"), "ab") as f:
            f.write(b"x")
        equal([ask(s, "glob", "/*"), found(s, made)], [{"results": [], "complete": True}, None])
    shutil.rmtree(os.path.join(store, "uploads/names/shop"))  # lost, though all names were complete
    with open(os.path.join(at, "executable"), "wb") as f:
        f.write(made.files["shop"])
    with server(work, cache_dir=cache) as s:
        equal(wait_until("the name", lambda: ask(s, "glob", "/*")["results"]), [of(made, "shop", "executable")])


def test_names_of_a_bucket(work, objects):
    made = [program(work, name, f"int in_{name};\n") for name in ("shop", "a", "b", "c")]
    with S3() as s3:
        s3.page = 3  # of a list
        store = {"s3": {"bucket": "symbols", "endpoint": s3.url, "prefix": "here", "access_key": "AK", "secret_key": "secret"}}
        with server(work, store=store) as one, server(work, store=store) as two:
            for s in one, two:
                equal(complete(s, "glob", "/*"), [])
            for each in made:
                for name in each.files:
                    equal(upload(one, each.files[name], name)["state"], "ok")
            equal(sorted(r["file"] for r in ask(two, "glob", "/*.debug")["results"]), ["/" + n + ".debug" for n in ("a", "b", "c", "shop")])
            equal(ask(two, "file", "/c.debug"), {"results": [of(made[3], "c.debug", "debuginfo")], "complete": True})
            equal(found(two, made[0]), made[0].id)
            s3.broken = True
            equal([ask(two, "glob", "/*")["complete"], found(two, made[0])], [False, None])
            s3.broken = False
        for name in [n for n in s3.objects if "/names" in n]:
            del s3.objects[name]
        with server(work, store=store) as s:
            equal(sorted(r["file"] for r in complete(s, "glob", "/*")), sorted("/" + name for each in made for name in each.files))
