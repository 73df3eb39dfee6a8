"""Artifact bundles of JavaScript: uploaded, found by debug id and by release, and looked up by another service."""
import io, json, os, struct, subprocess, zipfile

from cloud import S3
from harness import Service, equal, from_npm, npm_path, wait_until
from test_sentry import AUTH, KEY, send_chunks, server, sha1

ASSEMBLE, LOOKUP = "/api/0/organizations/o/artifactbundle/assemble/", "/api/0/projects/o/p/artifact-lookup/"
ID = "84a17046-8a42-519d-b4a3-ed70581da4f2"


def bundle(name="plus", debug_id=None, **manifest):
    headers = {"debug-id": debug_id} if debug_id else {}
    files = {"files/_/_/app.js": ("minified_source", "~/app.js", "function a(b,c){return b+c}\n//# sourceMappingURL=app.js.map\n"),
             "files/_/_/app.js.map": ("source_map", "~/app.js.map", json.dumps(
                 {"version": 3, "sources": ["src.js"], "sourcesContent": [f"function {name}(x,y){{}}\n"], "names": [name], "mappings": "AAAA,SAASA"}))}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for path, (_, _, text) in files.items():
            z.writestr(path, text)
        z.writestr("manifest.json", json.dumps({"files": {
            path: {"type": kind, "url": url, "headers": {**headers, **({"sourcemap": "app.js.map"} if kind == "minified_source" else {})}}
            for path, (kind, url, _) in files.items()}, **manifest}))
    return prefixed(out.getvalue())


def prefixed(data):
    """The archive with the bundle's head in front; offsets of zip files made by zipfile are moved."""
    out = io.BytesIO(b"SYSB" + struct.pack("<I", 2))
    out.seek(8)
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "a") as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
    return out.getvalue()


def upload(s, data, **keys):
    body = {"checksum": sha1(data), "chunks": [sha1(data)], "projects": ["p"], **keys}
    ask = lambda: json.loads(s.post(ASSEMBLE, body, AUTH)[2])
    first = ask()
    if first["state"] == "not_found":
        equal(first["missingChunks"], [sha1(data)])
        equal(send_chunks(s, data), (200, None))
    return wait_until("the assembly", lambda: (lambda got: got["state"] in ("ok", "error") and got)(ask()))


def name(s, **keys):
    body = {"stacktraces": [{"frames": [{"abs_path": "https://x.example/app.js", "lineno": 1, "colno": 10, "function": "a"}]}],
            "scraping": {"enabled": False}, **keys}
    status, _, data = s.post("/symbolicate-js", body)
    equal(status, 200, data)
    frame = json.loads(data)["stacktraces"][0]["frames"][0]
    return frame["function"], frame["data"].get("resolved_with")


MODULE = [{"type": "sourcemap", "code_file": "https://x.example/app.js", "debug_id": ID}]


def test_bundles_are_found_by_release_and_by_debug_id(work, objects):
    with server(work) as s:
        equal(name(s, release="1"), ("a", None))
        equal(upload(s, bundle(), version="1"), {"state": "ok", "missingChunks": [], "detail": None})
        equal((name(s, release="1"), name(s, release="2"), name(s, modules=MODULE)), (("plus", "release"), ("a", None), ("a", None)))
        equal(upload(s, bundle(debug_id=ID))["state"], "ok")
        equal(name(s, modules=MODULE), ("plus", "debug-id"))
        equal(upload(s, bundle("newer"), version="1")["state"], "ok")
        equal(name(s, release="1"), ("newer", "release"))
        equal(upload(s, bundle("third"), version="1", dist="arm")["state"], "ok")
        equal((name(s, release="1"), name(s, release="1", dist="arm"), name(s, release="1", dist="x86")),
              (("newer", "release"), ("third", "release"), ("newer", "release")))
        equal(upload(s, bundle(), version="2")["state"], "ok")  # one that is stored already, for one more release
        equal(name(s, release="2"), ("plus", "release"))
        equal(upload(s, bundle("manifest", release="3"))["state"], "ok")
        equal(name(s, release="3"), ("manifest", "release"))


def test_bundles_that_cannot_be_found_are_refused(work, objects):
    with server(work) as s:
        got = upload(s, bundle())
        equal((got["state"], "neither a release nor debug ids" in got["detail"]), ("error", True))
        equal(upload(s, b"no archive", version="1")["state"], "error")
        for body in b"[]", b'{"checksum":"x","chunks":[]}', b'{"checksum":"' + b"0" * 40 + b'"}':
            equal(s.post(ASSEMBLE, body, AUTH)[0], 400)
        equal(s.post(ASSEMBLE, b"{}")[0], 401)


def test_bundles_are_in_a_bucket_that_nodes_share(work, objects):
    with S3() as s3:
        store = {"s3": {"bucket": "symbols", "endpoint": s3.url, "prefix": "here", "access_key": "AK", "secret_key": "secret"}}
        with server(work, store=store) as one, server(work, store=store) as two:
            equal(upload(one, bundle(debug_id=ID), version="1")["state"], "ok")
            for s in one, two:
                equal((name(s, modules=MODULE), name(s, release="1")), (("plus", "debug-id"), ("plus", "release")))


def test_another_service_looks_artifacts_up(work, objects):
    data = bundle(debug_id=ID)
    with server(work) as s, Service(work) as other:
        equal(upload(s, data, version="1")["state"], "ok")
        look = lambda query: json.loads(s.request("GET", LOOKUP + query, headers=AUTH)[2])
        url = f"http://127.0.0.1:{s.port}{LOOKUP}?download=artifact_bundle/{sha1(data)}"
        equal(look(f"?debug_id={ID}"), [{"type": "bundle", "id": "artifact_bundle/" + sha1(data), "url": url, "resolved_with": "debug-id"}])
        equal([b["resolved_with"] for b in look("?release=1&url=app")], ["release"])
        equal((look("?release=1"), look("?release=2&url=app"), look("")), ([], [], []))
        equal(s.request("GET", f"{LOOKUP}?download=artifact_bundle/{sha1(data)}", headers=AUTH)[::2], (200, data))
        equal(s.request("GET", f"{LOOKUP}?download=artifact_bundle/..", headers=AUTH)[0], 404)
        equal(s.request("GET", f"{LOOKUP}?download=x", headers=AUTH)[0], 404)
        equal(s.request("GET", f"{LOOKUP}?download=artifact_bundle/{'0' * 40}", headers=AUTH)[0], 404)
        source = {"id": "uploads", "url": f"http://127.0.0.1:{s.port}{LOOKUP}", "token": KEY}
        equal(name(other, source=source, release="1"), ("plus", "release"))
        equal(name(other, source=source, modules=MODULE), ("plus", "debug-id"))


def sentry_cli(work, version):
    """A function that runs it for a service, and a directory with files of a release."""
    cli = npm_path(work, f"@sentry/cli@{version}", "@sentry/cli-linux-x64/bin/sentry-cli")
    files = os.path.join(work, "files")
    os.mkdir(files)
    with zipfile.ZipFile(io.BytesIO(bundle())) as z:
        for path in "app.js", "app.js.map":
            with open(os.path.join(files, path), "wb") as f:
                f.write(z.read("files/_/_/" + path))
    return lambda s, *args: subprocess.run([cli, "--auth-token", KEY, *args], capture_output=True, text=True, timeout=120,
                                           env={**os.environ, "SENTRY_URL": f"http://127.0.0.1:{s.port}"}), files


def test_releases_are_names_of_bundles(work, objects):
    releases = "/api/0/projects/o/p/releases/"
    with server(work) as s:
        ask = lambda method, path, body=None: (lambda a: (a[0], json.loads(a[2])))(s.request(method, path, body and json.dumps(body).encode(), {**AUTH, "Content-Type": "application/json"}))
        status, made = ask("POST", releases, {"version": "app@1.0", "projects": ["p"], "dateStarted": "2026-01-01T00:00:00Z"})
        equal((status, made["version"], made["dateReleased"]), (201, "app@1.0", None))
        released = {"dateReleased": "2026-01-02T00:00:00Z"}
        for path in releases + "app%401.0/", "/api/0/organizations/o/releases/app%401.0/":
            status, made = ask("PUT", path, released)
            equal((status, made["version"], made["dateReleased"]), (200, "app@1.0", released["dateReleased"]))
        equal(ask("GET", releases + "app%401.0/files/?cursor="), (200, []))
        equal(ask("POST", releases, {"projects": []})[0], 400)
        equal(ask("POST", releases, ["x"])[0], 400)
        status, refused = ask("POST", releases + "1/files/", {})
        equal((status, "sourcemaps upload" in refused["error"]), (405, True))
        equal(s.request("POST", releases, b'{"version":"1"}', {"Content-Type": "application/json"})[0], 401)


@from_npm
def test_sentry_cli_2_uploads_files_of_releases(work, objects):
    run, files = sentry_cli(work, "2.58.6")
    with server(work) as s:
        target = ["-o", "any", "-p", "any"]
        for release, command in (("1", "sourcemaps upload --release 1"), ("2", "releases files 2 upload-sourcemaps"), ("3", "releases files 3 upload")):
            equal(run(s, "releases", "new", *target, release).returncode, 0)
            done = run(s, *command.split(), *target, "--url-prefix", "~/", files)
            equal(done.returncode, 0, done.stdout + done.stderr)
            equal(run(s, "releases", "finalize", *target, release).returncode, 0)
            equal(name(s, release=release), ("plus", "release"), command)
        done = run(s, "debug-files", "upload", *target, objects.dir)
        equal((done.returncode, "missing debug information file" in done.stdout + done.stderr), (0, True), done.stdout + done.stderr)
        single = run(s, "releases", "files", "4", "upload", *target, os.path.join(files, "app.js"), "~/app.js")
        equal((single.returncode, "Upload the files of a release together" in single.stdout + single.stderr), (1, True), single.stdout + single.stderr)


@from_npm
def test_sentry_cli_uploads_source_maps(work, objects):
    cli, files = sentry_cli(work, "3.8.0")
    with server(work) as s:
        run = lambda *args: cli(s, "sourcemaps", *args)
        done = run("upload", "-o", "any", "-p", "any", "--release", "1", files)
        equal((done.returncode, "Uploaded files" in done.stdout + done.stderr), (0, True), done.stdout + done.stderr)
        equal(name(s, release="1"), ("plus", "release"))
        again = run("upload", "-o", "any", "-p", "any", "--release", "1", files)
        equal((again.returncode, "Nothing to upload" in again.stdout + again.stderr), (0, True), again.stdout + again.stderr)
