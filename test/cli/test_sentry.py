"""`symloom symbolicate` with a project of Sentry: events by their ids, their attachments, files and artifacts of the project."""
import contextlib, http.server, json, os, shutil, subprocess, threading
import harness
from harness import contains, equal, ok, symloom
from servers import wait_until
from test_crash import FUNCTIONS, crashed, home
from test_events import JS, js_event, js_frames
from test_jsstack import artifacts

SECRET = "s3cr3t-t0k3n"
PROJECT = "/api/0/projects/acme/web/"
NOTHING = {name: "" for name in ("SENTRY_ORG", "SENTRY_PROJECT", "SENTRY_URL", "SENTRY_AUTH_TOKEN", "SENTRY_AUTH_COOKIES", "SYMLOOM_OFFLINE")}


@contextlib.contextmanager
def sentry(answers, header=("Authorization", "Bearer " + SECRET)):
    """A stand-in of its API: bytes or JSON below the project, for who has the secret. Yields the URL and what was asked."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            path = self.path.split("?")[0]
            known = self.headers.get(header[0]) == header[1]
            body = answers.get(path[len(PROJECT):]) if path.startswith(PROJECT) else None
            body = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(401 if not known else 404 if body is None else 200)
            self.send_header("Content-Length", str(len(body) if known and body is not None else 0))
            self.end_headers()
            if known and body is not None:
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def environment(work, url, **more):
    return {**home(work), **NOTHING, "SENTRY_URL": url, "SENTRY_ORG": "acme", "SENTRY_PROJECT": "web", **more}


def test_javascript_event_is_fetched_from_sentry(work, files):
    root = artifacts(work)
    event = {**js_event(), "event_id": "0123abcd"}
    answers = {"events/0123abcd/json/": event, "events/0123abcd/attachments/": [], "artifact-lookup/": []}
    with sentry(answers) as (url, asked):
        env = environment(work, url, SENTRY_AUTH_TOKEN=SECRET)
        equal(js_frames(json.loads(ok("symbolicate", "0123abcd", "--symbols", root, "--no-scrape", "--cache-dir", "", env=env))), JS)
        equal(asked[:2], [PROJECT + "events/0123abcd/json/", PROJECT + "events/0123abcd/attachments/"])
        assert any(path.startswith(PROJECT + "artifact-lookup/?") for path in asked), asked
        lost = symloom("symbolicate", "ffff", env=env)
        equal((lost.status, lost.out, lost.err), (1, "", "error: Response from server: Not Found\n"))
        denied = symloom("symbolicate", "0123abcd", env={**env, "SENTRY_AUTH_TOKEN": "other"})
        equal((denied.status, denied.err), (4, "error: Response from server: Unauthorized\n"))


def test_attached_minidump_is_fetched_from_sentry(work, files):
    program, dump = crashed(work)
    with open(dump, "rb") as f:
        contents = f.read()
    answers = {"events/ab/json/": {"event_id": "ab", "platform": "native"}, "files/dsyms/": [],
               "events/ab/attachments/": [{"id": "1", "type": "event.attachment"}, {"id": "7", "type": "event.minidump"}],
               "events/ab/attachments/7/": contents}
    with sentry(answers, ("Cookie", "session=" + SECRET)) as (url, asked):
        path = os.path.join(work, "cookies")
        with open(path, "w") as f:
            f.write("session=" + SECRET + "\nmore\n")
        run = symloom("symbolicate", "ab", os.path.join(work, "files"), "--cache-dir", "", "-vvv", "-o", "acme", "-p", "web", "--url", url,
                      "--auth-cookies-file", path, env={**home(work), **NOTHING})
        equal(run.status, 0, run.err)
        frames = [f for f in json.loads(run.out)["stacktraces"][0]["frames"] if f.get("package") == program]
        equal([f["function"] for f in frames[:5]], FUNCTIONS)
        assert SECRET not in run.err + run.out, run.err
        assert PROJECT + "events/ab/attachments/7/?download=1" in asked and any(p.startswith(PROJECT + "files/dsyms/?") for p in asked), asked


def test_cached_files_are_kept_apart_by_project(work, files):
    """What the cache has of one is not used for another; offline it is everybody's, and --scope says whose."""
    program, dump = crashed(work)
    with open(dump, "rb") as f:
        contents = f.read()
    answers = {"events/ab/json/": {"event_id": "ab", "platform": "native"}, "files/dsyms/": [],
               "events/ab/attachments/": [{"id": "7", "type": "event.minidump"}], "events/ab/attachments/7/": contents}

    def scopes(*words, env):
        cache = os.path.join(work, "cache")
        ok("symbolicate", *words, os.path.join(work, "files"), "--cache-dir", cache, env=env)
        found = set()
        for directory, _, names in os.walk(os.path.join(cache, "symcaches")):
            for name in names:
                if name.endswith(".metadata"):
                    with open(os.path.join(directory, name)) as f:
                        found.add(json.load(f)["scope"])
        shutil.rmtree(cache)
        return found

    with sentry(answers) as (url, _):
        env = environment(work, url, SENTRY_AUTH_TOKEN=SECRET)
        equal(scopes("ab", env=env), {"web"})
        equal(scopes("ab", "--scope", "mine", env=env), {"mine"})
    offline = {**home(work), **NOTHING}
    equal(scopes(dump, env=offline), {None})
    equal(scopes("--scope", "mine", dump, env=offline), {"mine"})


def test_auth_token_is_not_shown(work, files):
    """Not in the list of processes, nor in the log."""
    with sentry({"events/ab/json/": js_event(), "events/ab/attachments/": []}) as (url, _):
        command = [harness.SYMLOOM, "symbolicate", "-", "-vvv", "--cache-dir", "", "--auth-token", SECRET, "-o", "acme", "-p", "web", "--url", url]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **home(work), **NOTHING})
        try:  # it waits for its input: its words are hidden by then, or will be
            wait_until("the token to vanish", lambda: SECRET not in open(f"/proc/{process.pid}/cmdline").read())
            out, err = process.communicate(json.dumps({**js_event(), "event_id": "1"}), timeout=harness.DEADLINE)
        finally:
            process.kill()
            process.wait()
        assert SECRET not in out + err, err


def test_sentry_settings_come_from_the_nearest_file(work, files):
    """The nearest file of the project, then the user's own; options and the environment go before."""
    project, own = os.path.join(work, "project/a"), os.path.join(work, ".config/symloom")
    os.makedirs(project)
    os.makedirs(own)
    with sentry({"events/ab/json/": js_event(), "events/ab/attachments/": []}) as (url, asked):
        for token in (f"auth: {{token: {SECRET}}}", f"auth_token: {SECRET}"):
            with open(os.path.join(own, "cli.yml"), "w") as f:
                f.write(f"url: {url}\norg: other\n{token}\n")
            with open(os.path.join(work, "project/.symboliclirc"), "w") as f:
                f.write("org = 'acme'\nproject = 'web'\n")
            for words in ([], ["--org", "acme"]):
                del asked[:]
                run = symloom("symbolicate", "ab", "--cache-dir", "", *words, env={**home(work), **NOTHING}, cwd=project)
                equal((run.status, asked[0]), (0, PROJECT + "events/ab/json/"), run.err)
        refused = symloom("symbolicate", "ab", "--cache-dir", "", env={**home(work), **NOTHING, "SENTRY_AUTH_TOKEN": "other"}, cwd=project)
        equal((refused.status, refused.out), (4, ""), refused.err)
        assert SECRET not in refused.err
        del asked[:]  # a file at hand needs no Sentry, and asks none
        with open(os.path.join(work, "event.json"), "w") as f:
            json.dump(js_event(), f)
        equal((symloom("symbolicate", os.path.join(work, "event.json"), "--cache-dir", "", "--no-scrape", "--symbols", work, env={**home(work), **NOTHING},
                       cwd=project).status, asked), (0, []))


def test_missing_sentry_settings_are_reported(work, files):
    env = {**home(work), **NOTHING}
    for arguments, more, status, text in (
            (("0123abcd", "--offline"), {}, 1, "error: Event not found in local file system and symbolicli is in offline mode. Stopping.\n"),
            (("0123abcd",), {"SYMLOOM_OFFLINE": "1"}, 1, "is in offline mode. Stopping.\n"),
            (("0123abcd",), {}, 4, "error: No auth token or cookies provided. "),
            (("0123abcd", "--org", "acme"), {"SENTRY_AUTH_TOKEN": SECRET}, 2, "error: No project provided. "),
            (("0123abcd",), {"SENTRY_AUTH_TOKEN": SECRET}, 2, "error: No organization provided. "),
            (("0123abcd", "--auth-token", "a", "--auth-cookies", "b"), {}, 2, "--auth-token and --auth-cookies cannot be combined"),
            (("0123abcd", "--auth-token-file", "/nowhere"), {}, 1, "/nowhere")):
        refused = symloom("symbolicate", *arguments, env={**env, **more})
        equal((refused.status, refused.out), (status, ""), refused.err)
        contains(refused.err, text)
    equal(symloom("symbolicate", "-", input='{"event_id":"1","platform":"perl"}', env={**env, "SENTRY_ORG": "acme"}).status, 4)
