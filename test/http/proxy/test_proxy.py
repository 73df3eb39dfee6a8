"""The symbol server proxy over the configured sources."""
import gzip, os, re

from harness import Service, Upstream, equal, http_source

FOREIGN_ID = "D48F191186D67E69DF025AD71FB91E1F0"


def paths(objects):
    return f"/proxy/_.debug/elf-buildid-sym-{objects.build_id}/_.debug", f"/proxy/shapes/elf-buildid-{objects.build_id}/shapes"


def test_files_of_the_sources_are_served(work, objects):
    routes = {f"/{objects.build_id}/executable": gzip.compress(objects.full), f"/{objects.build_id}/debuginfo": objects.debug}
    with Upstream(routes) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        debug, executable = paths(objects)
        status, headers, body = s.request("GET", debug)
        equal((status, body == objects.debug, headers["content-type"]), (200, True, "application/octet-stream"))
        equal(headers["accept-ranges"], "bytes")
        equal(headers["cache-control"], "private, max-age=3600")
        status, _, body = s.request("GET", executable)
        equal((status, body == objects.full), (200, True), "the wrapper is removed")
        equal(s.request("GET", executable.replace("shapes/", "SHAPES/", 1))[0], 200, "names match without case")
        status, head, body = s.request("HEAD", debug)
        equal((status, body, head["content-length"]), (200, b"", str(len(objects.debug))))
        status, part, body = s.request("GET", debug, headers={"Range": "bytes=4-11"})
        equal((status, body, part["content-range"]), (206, objects.debug[4:12], f"bytes 4-11/{len(objects.debug)}"))
        equal(s.request("GET", debug, headers={"If-None-Match": headers["etag"]})[::2], (304, b""))
        equal(s.request("GET", debug, headers={"Range": "bytes=999999999-"})[0], 416)


def test_breakpad_symbol_files_are_served(work, objects):
    """Breakpad's, under the name of a PDB and of any other module."""
    directory = os.path.join(work, "symbols")
    files = {f"{name}/{FOREIGN_ID}/{stem}.sym": f"MODULE a x86_64 {FOREIGN_ID} {name}\n".encode() for name, stem in (("crash.pdb", "crash"), ("libc.so.6", "libc.so.6"))}
    for path, data in files.items():
        os.makedirs(os.path.dirname(os.path.join(directory, path)))
        with open(os.path.join(directory, path), "wb") as f:
            f.write(data)
    source = {"id": "d", "type": "filesystem", "path": directory, "layout": {"type": "native"}}
    with Service(work, {"sources": [source]}) as s:
        for path, data in files.items():
            equal(s.request("GET", "/proxy/" + path)[::2], (200, data), path)
        for path in (f"crash.pdb/{FOREIGN_ID}/other.sym", "crash.pdb/nonsense/crash.sym", f"none.pdb/{FOREIGN_ID}/none.sym"):
            equal(s.request("GET", "/proxy/" + path)[::2], (404, b""), path)


def test_range_requests_get_parts_of_files(work, objects):
    with Upstream({f"/{objects.build_id}/debuginfo": objects.debug}) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        debug, _ = paths(objects)
        whole, size = s.request("GET", debug)[1], len(objects.debug)
        tag = whole["etag"]
        equal(bool(re.fullmatch(f'"[0-9a-f]{{16}}-{size:x}-[0-9a-f]+"', tag)), True, tag)
        for headers, status, told, body in (
                ({"Range": f"bytes={size - 10}-"}, 206, f"bytes {size - 10}-{size - 1}/{size}", objects.debug[-10:]),
                ({"Range": "bytes=-3"}, 206, f"bytes {size - 3}-{size - 1}/{size}", objects.debug[-3:]),
                ({"Range": "bytes=0-0,5-6"}, 200, None, objects.debug), ({"Range": "bytes=6-5"}, 200, None, objects.debug),
                ({"Range": "lines=1-2"}, 200, None, objects.debug), ({"Range": f"bytes={size}-"}, 416, f"bytes */{size}", b""),
                ({"Range": "bytes=0-3", "If-Range": tag}, 206, f"bytes 0-3/{size}", objects.debug[:4]),
                ({"Range": "bytes=0-3", "If-Range": '"another"'}, 200, None, objects.debug),
                ({"Range": "bytes=0-3", "If-Range": whole["last-modified"]}, 206, f"bytes 0-3/{size}", objects.debug[:4]),
                ({"If-None-Match": f'"x", W/{tag}'}, 304, None, b""), ({"If-None-Match": "*"}, 304, None, b""),
                ({"If-None-Match": '"x"', "If-Modified-Since": whole["last-modified"]}, 200, None, objects.debug),
                ({"If-Modified-Since": whole["last-modified"]}, 304, None, b"")):
            answered, got, sent = s.request("GET", debug, headers=headers)
            equal((answered, got["content-range"], sent == body), (status, told, True), headers)
        equal(s.request("HEAD", debug, headers={"Range": "bytes=0-3"})[1]["content-length"], str(size))


def test_missing_files_and_bad_paths_are_not_found(work, objects):
    with Upstream({}) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        for path in (*paths(objects), "/proxy/", "/proxy/a", "/proxy/a/b", "/proxy/a.pdb/nonsense/a.pdb",
                     "/proxy/foo.exe/542D574Ec2000/bar.exe"):
            equal(s.request("GET", path)[::2], (404, b""), path)
        equal(s.request("POST", "/proxy/a/b/a")[0], 405)


def test_download_failures_report_the_cause(work, objects):
    with Upstream({f"/{objects.build_id}/debuginfo": 403, f"/{objects.build_id}/executable": b"garbage" * 100}) as up, \
            Service(work, {"sources": [http_source(up.url)]}) as s:
        debug, executable = paths(objects)
        equal(s.request("GET", debug)[::2],
              (500, b'{"detail":"failed to download object","causes":["permission denied: 403 Forbidden"]}'))
        status, _, body = s.request("GET", executable)
        equal(status, 500)
        assert body.startswith(b'{"detail":"failed to download object","causes":["malformed: '), body


def test_proxy_can_be_disabled(work, objects):
    with Upstream(objects.layout()) as up, Service(work, {"sources": [http_source(up.url)], "symstore_proxy": False}) as s:
        equal(s.request("GET", paths(objects)[0])[::2], (404, b""))
        equal(up.hits, {})
