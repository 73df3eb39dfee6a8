"""GET /buildid/{id}/source: texts from bundles, embedded in debug files, from directories of this machine, and from upstreams."""
import os, socket, subprocess

import harness
from harness import Service, Upstream, equal, http_source
from split_program import Client, Program, TEXT, directory


def ask(service, program, path):
    """The path as it is, which http.client would not change either; (status, body)."""
    status, _, body = service.request("GET", program.path("source") + path)
    return status, body


def bundle(program, source):
    """Adds a source bundle of the program to the directory of a source."""
    subprocess.run([harness.SYMLOOM, "bundle", "-o", "t.src.zip", "full"], cwd=program.dir, check=True, capture_output=True)
    place = os.path.join(source["path"], program.id[:2], program.id[2:], "sourcebundle")
    with open(place, "wb") as f:
        f.write(program.read("t.src.zip"))


def test_text_of_a_source_bundle_is_served(work, objects):
    t = Program(work)
    source = directory(work, t)
    bundle(t, source)
    with Service(work, {"sources": [source]}) as s:
        status, headers, body = s.request("GET", t.path("source") + t.source)
        equal((status, body.decode(), headers["X-DEBUGINFOD-FILE"], headers["X-DEBUGINFOD-SIZE"]), (200, TEXT, "t.c", str(len(TEXT))))
        equal(s.request("GET", t.path("source") + t.source, headers={"If-None-Match": headers["ETag"]})[0], 304)
        equal(s.request("GET", t.path("source") + t.source, headers={"Range": "bytes=0-7"})[2], b"#include")
        equal(Client(work, s).find("source", t.id, t.source), TEXT.encode())
        name = os.path.basename(t.dir)
        for path in (f"{t.dir}/../{name}/t.c", f"{t.dir}//./t.c", f"{t.dir}/x/../t.c", t.source.replace("t.c", "%74.c"), f"{t.dir}/%2e%2e/{name}/t.c"):
            equal(ask(s, t, path), (200, TEXT.encode()), path)
        for path in (t.source + "x", "/t.c", t.dir, "/", "/..", "/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd"):
            equal(ask(s, t, path)[0], 404, path)


def test_text_embedded_in_a_debug_file_is_served(work, objects):
    t = Program(work)
    subprocess.run(["clang", "-g", "-gdwarf-5", "-gembed-source", "-Wl,--build-id", "-o", "full", t.source], cwd=t.dir, check=True)
    import re
    t.id = re.search(r"Build ID: ([0-9a-f]+)", subprocess.run(["readelf", "-n", "full"], cwd=t.dir, capture_output=True, text=True).stdout)[1]
    t.debug = t.read("full")
    with Service(work, {"sources": [directory(work, t)]}) as s:
        os.remove(t.source)
        equal(ask(s, t, t.source), (200, TEXT.encode()))


def test_local_file_is_served_only_below_a_root_and_if_the_debug_file_names_it(work, objects):
    t = Program(work)
    secret = os.path.join(t.dir, "secret.c")
    with open(secret, "w") as f:
        f.write("key")
    source = directory(work, t)
    with Service(work, {"sources": [source]}) as s:
        equal(ask(s, t, t.source)[0], 404, "no directory is configured")
    with Service(work, {"sources": [source], "debuginfod": {"source_roots": ["/nonexistent", t.dir + "/"]}}) as s:
        equal(ask(s, t, t.source), (200, TEXT.encode()))
        equal(ask(s, t, f"{t.dir}/x/../t.c"), (200, TEXT.encode()))
        for path in (secret, t.dir + "/full", "/etc/passwd", t.dir + "/x/../secret.c", t.dir + "/t.c/../secret.c"):
            equal(ask(s, t, path)[0], 404, path)
        equal(s.request("GET", f"/buildid/00112233/source{t.source}")[0], 404, "another build")
    with Service(work, {"sources": [source], "debuginfod": {"source_roots": [t.dir + "/sub", t.dir[:-1]]}}) as s:
        equal(ask(s, t, t.source)[0], 404, "not below a root, only beside it")


def test_local_file_behind_a_link_out_of_the_root_is_not_served(work, objects):
    t = Program(work)
    outside = os.path.join(os.path.realpath(work), "outside.c")
    os.rename(t.source, outside)
    os.symlink(outside, t.source)
    with Service(work, {"sources": [directory(work, t)], "debuginfod": {"source_roots": [t.dir]}}) as s:
        equal(ask(s, t, t.source)[0], 404)
    os.remove(t.source)
    os.mkfifo(t.source)
    with Service(work, {"sources": [directory(work, t)], "debuginfod": {"source_roots": [t.dir]}}) as s:
        equal(ask(s, t, t.source)[0], 404, "nor is anything but a file")
    os.remove(t.source)
    with open(t.source, "wb") as f:
        f.write(b"x" * 4000)
    with Service(work, {"sources": [directory(work, t)], "max_source_file_size": 3000, "debuginfod": {"source_roots": [t.dir]}}) as s:
        equal(ask(s, t, t.source)[0], 404, "a file beyond the limit")


def test_text_of_an_upstream_is_served_byte_for_byte(work, objects):
    """Also when it is no UTF-8."""
    t, text = Program(work), b"\xef\xbb\xbf/* caf\xe9 \x80 */\r\n"
    with Upstream({f"/{t.id}/source{t.source}": text}) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        equal(ask(s, t, t.source), (200, text))
        equal(ask(s, t, f"{t.dir}/y/../t.c"), (200, text), "asked for by its canonical path")
        equal(up.hits[f"/{t.id}/source{t.source}"], 1)
        equal(ask(s, t, "/other.c")[0], 404)


def test_names_with_signs_reach_the_upstream(work, objects):
    """The example of the protocol: elfutils' clients escape all but letters, digits and a few signs."""
    t, text = Program(work), b"int x;\n"
    seen = []

    def route(handler):
        seen.append(handler.path)
        handler.reply(200, text)

    with Upstream({}) as up, Service(work, {"sources": [http_source(up.url)]}) as s:
        up.routes = type("Any", (dict,), {"get": lambda self, path, default=None: route if "/source/" in path else 404})()
        equal(ask(s, t, "/tmp/a%20b%2Bc/../x%3By.c"), (200, text))
        equal(seen, [f"/{t.id}/source/tmp/x;y.c"])
        equal(Client(work, s).find("source", t.id, "/tmp/a b+c/z;y#?.c"), text)
        equal(seen[-1], f"/{t.id}/source/tmp/a%20b+c/z;y%23%3F.c")


def test_hostile_source_paths_are_refused(work, objects):
    t = Program(work)
    with Service(work, {"sources": [directory(work, t)], "debuginfod": {"source_roots": ["/", t.dir]}}) as s:
        paths = ["/" + "../" * 600 + "etc/passwd", "/" + "a/" * 2000 + "b", "/%00", "/a%00b", "/%ff%fe", "/%", "/%zz", "/\\..\\..\\x", "/C:/x.c", "//////",
                 "/./././.", "/" + "%2f" * 50, "/" + "x" * 5000]
        for path in paths:
            with socket.create_connection(("127.0.0.1", s.port), 60) as connection:
                connection.sendall(f"GET {t.path('source')}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                data = connection.makefile("rb").read()
                assert data[9:12] in (b"400", b"404", b"414"), (path[:80], data[:200])
                assert b"root:" not in data
        equal(ask(s, t, t.source), (200, TEXT.encode()), "and the service goes on")
