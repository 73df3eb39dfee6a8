"""The symbol server proxy over the configured sources."""
import gzip

from harness import Service, Upstream, equal, http_source


def paths(objects):
    return f"/proxy/_.debug/elf-buildid-sym-{objects.build_id}/_.debug", f"/proxy/shapes/elf-buildid-{objects.build_id}/shapes"


def test_files_of_the_sources(work, objects):
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


def test_what_is_not_there(work, objects):
    with Upstream({}) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        for path in (*paths(objects), "/proxy/", "/proxy/a", "/proxy/a/b", "/proxy/a.pdb/nonsense/a.pdb",
                     "/proxy/foo.exe/542D574Ec2000/bar.exe"):
            equal(s.request("GET", path)[::2], (404, b""), path)
        equal(s.request("POST", "/proxy/a/b/a")[0], 405)


def test_failures_are_told(work, objects):
    with Upstream({f"/{objects.build_id}/debuginfo": 403, f"/{objects.build_id}/executable": b"garbage" * 100}) as up, \
            Service(work, {"sources": [http_source(up.url)]}) as s:
        debug, executable = paths(objects)
        equal(s.request("GET", debug)[::2],
              (500, b'{"detail":"failed to download object","causes":["permission denied: 403 Forbidden"]}'))
        status, _, body = s.request("GET", executable)
        equal(status, 500)
        assert body.startswith(b'{"detail":"failed to download object","causes":["malformed: '), body


def test_turned_off(work, objects):
    with Upstream(objects.layout()) as up, Service(work, {"sources": [http_source(up.url)], "symstore_proxy": False}) as s:
        equal(s.request("GET", paths(objects)[0])[::2], (404, b""))
        equal(up.hits, {})
