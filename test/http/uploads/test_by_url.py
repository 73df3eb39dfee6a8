"""Archives that are fetched from where a build has left them."""
import contextlib
from urllib.parse import urlencode

import cloud
from harness import equal
from pushing import SAMPLE, TOKEN, XPC, form, get, pack, send, server

HOST = "https://storage.test"


@contextlib.contextmanager
def fetching(work, routes, **store):
    """`routes`: what answers a path, (status, body, fields), or a list of such, one after another."""
    def answer(h):
        found = routes.get(h.path, (404,))
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        if found[0] is None:
            return h.connection.close()
        h.reply(*found)

    with cloud.Cloud(work, answer) as web, web.environment():
        with server(work, {"allowed_download_domains": ["storage.test"], **store}) as s:
            s.web = web
            yield s


def post(s, url, **fields):
    return send(s, urlencode({"url": url, **fields}).encode(), kind="application/x-www-form-urlencoded")


def test_archives_are_fetched_by_url(work, objects):
    data = pack(SAMPLE)
    routes = {"/a/symbols.zip": (302, b"", [("Location", "/b/real.zip?x=1")]), "/b/real.zip?x=1": (200, data)}
    with fetching(work, routes) as s:
        status, answer = post(s, HOST + "/a/symbols.zip")
        answer = answer["upload"]
        equal((status, answer["download_url"], answer["redirect_urls"], answer["filename"], answer["size"]),
              (201, HOST + "/a/symbols.zip", [HOST + "/b/real.zip?x=1"], "symbols.zip", len(data)))
        equal(get(s, XPC)[0], 200)
        equal([m for m, _, _ in s.web.seen], ["HEAD", "HEAD", "GET"])
        equal(send(s, form([], [("url", HOST + "/b/real.zip?x=1")]))[1]["upload"]["skipped_keys"], ["flag/deadbeef/flag.jpeg", XPC])
        equal(post(s, HOST + "/a/symbols.zip", **{"try": "1"}), (403, {"error": "Forbidden"}))


def test_redirects_are_resolved_as_references(work, objects):
    """RFC 3986, 4.2 and 5.2: a reference is absolute if it begins with a scheme, wherever else "://" stands."""
    data = pack(SAMPLE)
    steps = [("/a/b/first.zip?from=c/d", "second.zip?u=https://x.test/y"), ("/a/b/second.zip?u=https://x.test/y", "?v=1"),
             ("/a/b/second.zip?v=1", "../third.zip"), ("/a/third.zip", "//storage.test/fourth.zip")]
    routes = {path: (302, b"", [("Location", to)]) for path, to in steps}
    with fetching(work, {**routes, "/fourth.zip": (200, data)}) as s:
        status, answer = post(s, HOST + steps[0][0])
        equal((status, answer["upload"]["redirect_urls"]), (201, [HOST + path for path, _ in steps[1:]] + [HOST + "/fourth.zip"]))


def test_disallowed_and_failing_urls_are_refused(work, objects):
    there = HOST + "/symbols.zip"
    routes = {"/symbols.zip": [(500,), (429,), (200, b"no zip")], "/gone.zip": (410,), "/bad.zip": (502,),
              "/leads.zip": (302, b"", [("Location", "https://sentry.test/symbols.zip")]),
              "/plain.zip": (302, b"", [("Location", "http://storage.test/symbols.zip")]),
              "/loop.zip": (302, b"", [("Location", "loop.zip")]), "/closed.zip": (None,),
              "/changes.zip": [(200, b"x"), (403,)], "/large.zip": (200, bytes(2000))}
    with fetching(work, routes, max_upload_size=1000) as s:
        domain = "Not an allowed domain ('%s') to download from."
        for url, status, text in [
                ("http://example.com/symbols.zip", 400, "Insecure URL"), ("nothing", 400, "Enter a valid URL."),
                ("https://notallowed.example.com/symbols.zip", 400, domain % "notallowed.example.com"),
                (HOST + "/none.zip", 400, HOST + "/none.zip can't be found (404)"),
                (HOST + "/gone.zip", 400, HOST + "/gone.zip can't be found (410)"),
                (HOST + "/bad.zip", 500, HOST + "/bad.zip errored (502)"),
                (HOST + "/leads.zip", 400, domain % "sentry.test"), (HOST + "/plain.zip", 400, "Insecure URL"),
                (HOST + "/loop.zip", 400, f"Too many redirects trying to open {HOST}/loop.zip"),
                (HOST + "/changes.zip", 400, f"non-200 status code when retrieving {HOST}/changes.zip"),
                (HOST + "/large.zip", 413, "Upload is too large"), (there, 400, "File is not a zip file")]:
            equal(post(s, url), (status, {"error": text}))
        equal(post(s, ""), (400, {"error": "Must be multipart form data with at least one file"}))
        equal(post(s, HOST + "/closed.zip"), (500, {"error": f"ConnectionError trying to open {HOST}/closed.zip"}))
