"""`config check --connect`: whether what a configuration names answers. `config check --user`: what commands of a user read."""
import contextlib, http.server, json, os, re, threading
from harness import contains, equal, ok, symloom
from servers import free_port, serving
from test_by_id import home

SECRET = "hunter2hunter2"


class Source(http.server.BaseHTTPRequestHandler):
    status = 404

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Authorization", "")))
        if self.server.status == 200:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"[]")
        else:
            self.send_error(self.server.status)

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def source(status=404):
    """A server that says the same to every question; yields its place and what it was asked."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Source)
    server.status, server.asked = status, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", server.asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def redis():
    port = free_port()
    with serving(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--requirepass", SECRET], port):
        yield f"127.0.0.1:{port}"


def check(work, config, *words, env=None):
    """The configuration is JSON, which is YAML. What was found, each its level, key and sentence."""
    path = os.path.join(work, "config.yml")
    with open(path, "w") as f:
        json.dump({"connect_to_reserved_ips": True, **config}, f)
    os.chmod(path, 0o600)
    env = {**home(work), **(env or {})}
    result = symloom("config", "check", "--connect", *words, path, env=env)
    rows = json.loads(ok_or_not(symloom("config", "check", "--connect", "--json", *words, path, env=env), result.status))
    rows = [{**row, "message": re.sub(r"after \d+ ms", "at once", row["message"])} for row in rows]
    lines = re.sub(r"after \d+ ms", "at once", result.out).splitlines()
    for row in rows:  # the same as lines
        line = f"{row['level']}: {row['key']}: {row['message']}"
        assert any(l.startswith(path) and l.endswith(line) for l in lines), (line, lines)
        assert row["line"] > 0 and row["file"] == path, row
    assert SECRET not in result.out + result.err, result.out
    equal(result.err, "")
    fine = not any(row["level"] != "info" for row in rows)
    equal(lines[len(rows):], ["configuration OK"] if fine else [], result.out)
    return result.status, [(row["level"], row["key"], row["message"]) for row in rows]


def ok_or_not(result, status):
    equal((result.status, result.err), (status, ""))
    return result.out


def test_connect_check_asks_each_source_once(work, files):
    """One question each: for a file that nobody has, of Sentry for a list."""
    dead = f"127.0.0.1:{free_port()}"
    with source() as (place, asked), source(403) as (closed, _), source(200) as (sentry, listed):
        url = f"http://user:{SECRET}@{place}/files?key={SECRET}"
        good = {"id": "a", "type": "http", "url": url, "layout": {"type": "symstore"}, "headers": {"Authorization": "Bearer " + SECRET},
                "filters": {"filetypes": ["pdb"], "path_patterns": ["*/nothing/of/ours"]}}
        equal(check(work, {"sources": [good]}), (0, [("info", "sources[0]", f"http://{place}/files answers")]))
        equal(len(asked), 2, asked)  # it was checked twice
        assert asked[0][0].startswith("/files/symloom-check/") and "key=" + SECRET in asked[0][0], asked
        equal(asked[0][1], "Bearer " + SECRET)
        token = {"id": "s", "type": "sentry", "url": f"http://{sentry}/api/0/projects/a/b/files/dsyms/", "token": SECRET}
        equal(check(work, {"sources": [good, token, {"id": "d", "type": "filesystem", "path": work}]}),
              (0, [("info", "sources[0]", f"http://{place}/files answers"),
                   ("info", "sources[1]", f"http://{sentry}/api/0/projects/a/b/files/dsyms/ answers")]))
        assert listed and all(auth == "Bearer " + SECRET for _, auth in listed), listed
        shut = {"id": "c", "type": "http", "url": f"http://{closed}/"}
        for words, status in ((), 0), (("--strict",), 1):
            got, rows = check(work, {"sources": [shut]}, *words)
            equal((got, [row[:2] for row in rows]), (status, [("warning", "sources[0]")]))
            contains(rows[0][2], f"http://{closed}/ refuses the request (", "credentials are wrong or missing")
        bucket = {"id": "b", "type": "s3", "bucket": "symbols", "region": ["minio", f"http://{dead}"], "access_key": "key", "secret_key": SECRET}
        gone = {"id": "g", "type": "http", "url": f"http://user:{SECRET}@{dead}/"}
        status, rows = check(work, {"sources": [good, bucket, gone]})
        equal((status, [row[:2] for row in rows]), (1, [("info", "sources[0]"), ("error", "sources[1]"), ("error", "sources[2]")]))
        contains(rows[1][2], "s3://symbols", " does not respond: ")
        contains(rows[2][2], f"http://{dead}/ does not respond: ")
        before = len(asked)  # who asks for nothing else is not told of the network
        contains(ok("config", "check", os.path.join(work, "config.yml")), "configuration OK")
        equal(len(asked), before)


def test_connect_check_refuses_reserved_addresses(work, files):
    with source() as (place, asked):
        status, rows = check(work, {"connect_to_reserved_ips": False, "sources": [{"id": "a", "type": "http", "url": f"http://{place}/"}]})
        equal((status, rows, asked), (1, [("error", "sources[0]", f"http://{place}/ is not asked: its address is private or reserved; "
                                           "allow it with connect_to_reserved_ips or allowed_reserved_networks")], []))


def test_connect_check_tries_redis_and_buckets(work, files):
    dead = f"127.0.0.1:{free_port()}"
    with redis() as place, source() as (bucket, asked):
        def shared(where, password, s3=bucket):
            return {"shared_cache": {"redis": {"url": f"redis://{where}/0", "password": password},
                                     "s3": {"bucket": "cache", "endpoint": f"http://{s3}", "access_key": "key", "secret_key": SECRET}}}
        equal(check(work, shared(place, SECRET)),
              (0, [("info", "shared_cache.redis.url", f"redis://{place}/0 answers"), ("info", "shared_cache.s3.bucket", "cache answers")]))
        assert asked, asked
        status, rows = check(work, shared(place, SECRET + "x"))
        equal((status, rows[0][:2]), (1, ("error", "shared_cache.redis.url")))
        contains(rows[0][2], f"redis://{place}/0 does not respond: ", "WRONGPASS")
        status, rows = check(work, shared(dead, SECRET, dead))
        equal((status, [row[0] for row in rows]), (1, ["error", "error"]))
        contains(rows[0][2], f"redis://{dead}/0 does not respond: ", "refused")
        contains(rows[1][2], "cache does not respond: ")
        inside = {"shared_cache": {"redis": {"url": f"redis://:{SECRET}@{place}/0"}}}
        equal(check(work, inside), (0, [("info", "shared_cache.redis.url", f"redis://{place}/0 answers")]))
        store = {"mozilla": {"sources": [f"http://{bucket}/try"], "store": {"s3": {"bucket": "uploads", "endpoint": f"http://{bucket}", "access_key": "key", "secret_key": SECRET}}}}
        equal(check(work, store), (0, [("info", "mozilla.sources", f"http://{bucket}/try answers"),
                                       ("info", "mozilla.store.s3.bucket", "uploads answers")]))
        uploads = {"symbfile": {"store": {"s3": {"bucket": "profilers", "endpoint": f"http://{dead}", "access_key": "key", "secret_key": SECRET}}}}
        status, rows = check(work, uploads)
        equal((status, rows[0][:2]), (1, ("error", "symbfile.store.s3.bucket")))
        contains(rows[0][2], "profilers does not respond: ")
        everything = {**shared(place, SECRET), "mozilla": {**store["mozilla"], "sources": []}, **uploads}
        status, rows = check(work, everything)
        equal((status, [row[:2] for row in rows]),
              (1, [("info", "shared_cache.redis.url"), ("info", "shared_cache.s3.bucket"), ("info", "mozilla.store.s3.bucket"),
                   ("error", "symbfile.store.s3.bucket")]))


def test_connect_check_covers_project_and_user_files(work, files):
    """The nearest project file and the user's own, each with its own complaints."""
    project, below, own = os.path.join(work, "project"), os.path.join(work, "project/a/b"), os.path.join(work, ".config/symloom")
    os.makedirs(below)
    os.makedirs(own)
    env = home(work, XDG_CACHE_HOME=os.path.join(work, "cache"))

    def user(*words, cwd=below):
        result = symloom("config", "check", "--user", *words, env=env, cwd=cwd)
        equal(result.err, "")
        return result.status, result.out.replace(project, "PROJECT").replace(own, "OWN")

    equal(user(), (0, "configuration OK\n"))
    with source() as (place, asked):
        with open(os.path.join(project, ".symloom.yml"), "w") as f:
            f.write(f"symbls: x\nsymbols: ['srv*http://{place}/', {work}]\n")
        equal(user(), (0, "PROJECT/.symloom.yml:1:1: warning: symbls: unknown key, did you mean symbols?\n"))
        with open(os.path.join(own, "cli.yml"), "w") as f:
            f.write(f"url: http://{place}/\norg: acme\nproject: web\nauth: {{token: {SECRET}}}\n"
                    f"sources: [{{id: a, type: http, url: 'http://{place}/'}}]\n")
        os.chmod(os.path.join(own, "cli.yml"), 0o600)
        status, text = user("--connect")
        equal((status, text.splitlines()),
              (0, ["PROJECT/.symloom.yml:1:1: warning: symbls: unknown key, did you mean symbols?",
                   f"PROJECT/.symloom.yml:2:10: info: symbols: http://{place}/ answers",
                   f"OWN/cli.yml:5:11: info: sources[0]: http://{place}/ answers"]))
        equal(len(asked), 2)
    equal(user("--strict")[0], 1)
    os.unlink(os.path.join(project, ".symloom.yml"))
    with open(os.path.join(project, "symbolicli.toml"), "w") as f:
        f.write('org = "acme"\nx = [1]\n')
    result = symloom("config", "check", "--user", env=env, cwd=below)
    equal((result.status, result.out), (1, ""))
    contains(result.err, "error: failed loading config\n  caused by: ", 'symbolicli.toml:2: not a plain "key = value" line; move the configuration to .symloom.yml')
    given = os.path.join(work, "given.yml")
    with open(given, "w") as f:
        f.write("symbols: ['@nobody']\n")
    result = symloom("config", "check", "--user", given, env=env, cwd=below)
    equal(result.status, 1)
    contains(result.out, f"{given}:1:10: error: symbols: ", "@nobody")
