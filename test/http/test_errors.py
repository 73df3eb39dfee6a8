"""Errors of the service that are reported to a Sentry."""
import json, os, shutil, signal, socket, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import DEADLINE, Service, Upstream, equal, http_source, request, wait_until


class Sentry(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, status=200):
        super().__init__(("127.0.0.1", 0), SentryHandler)
        self.status, self.envelopes = status, []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class SentryHandler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.envelopes.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


def spoil(service):
    """The configuration, so that its next reading is an error."""
    with open(os.path.join(service.work, "config.yml"), "w") as f:
        f.write("bind: [")
    service.process.send_signal(signal.SIGHUP)
    wait_until("the error", lambda: " ERROR config: " in service.logged())


def test_error_is_sent_to_sentry_once_a_minute(work, objects):
    for status in (200, 500):
        with Sentry(status) as sentry:
            dsn = f"http://publickey:oldsecret@127.0.0.1:{sentry.server_address[1]}/sub/42"
            with Service(work, {"sentry_dsn": dsn}) as s:
                for _ in range(3):
                    spoil(s)
                wait_until("the event", lambda: sentry.envelopes)
                ((path, headers, body),) = sentry.envelopes
                equal(path, "/sub/api/42/envelope/")
                assert "sentry_key=publickey" in headers["X-Sentry-Auth"], headers
                head, item, event, end = body.split(b"\n")
                equal((json.loads(item)["type"], json.loads(item)["length"], end), ("event", len(event), b""))
                event = json.loads(event)
                equal((event["event_id"], event["level"], event["logger"]), (json.loads(head)["event_id"], "error", "config"))
                assert event["release"].startswith("symloom@") and event["extra"]["level"] == "ERROR", event
                equal(s.request("GET", "/healthcheck")[0], 200)
                s.stop()
                assert "publickey" not in s.logged() and "oldsecret" not in s.logged(), s.logged()


def test_errors_logged_while_draining_are_sent(work, objects):
    """An error of the last job, after which the service ends."""
    path, answer = f"/{objects.build_id}/executable", threading.Event()

    def late(handler):
        answer.wait(DEADLINE)
        handler.reply(200, objects.full)

    with Sentry() as sentry, Upstream({path: late}) as up:
        dsn = f"http://key@127.0.0.1:{sentry.server_address[1]}/1"
        source = http_source(up.url, filters={"filetypes": ["elf_code"]})
        with Service(work, {"sentry_dsn": dsn, "sources": [source]}) as s:
            job = threading.Thread(target=s.symbolicate, args=(request(objects.module(), [4096]),))
            job.start()
            wait_until("the job", lambda: up.hits.get(path))
            s.process.send_signal(signal.SIGTERM)
            wait_until("the drain", lambda: " stopping: waiting " in s.logged())
            shutil.rmtree(os.path.join(s.cache, "objects"), ignore_errors=True)
            with open(os.path.join(s.cache, "objects"), "w"):
                pass  # no directory: nothing can be written there
            answer.set()
            job.join()
            equal(s.process.wait(DEADLINE), 0)
            assert " ERROR cache: cache write failed" in s.logged(), s.logged()
        equal([json.loads(body.split(b"\n")[2])["logger"] for _, _, body in sentry.envelopes], ["cache"])


def test_silent_sentry_does_not_delay_shutdown(work, objects):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dsn = f"http://key@127.0.0.1:{silent.getsockname()[1]}/1"
        with Service(work, {"sentry_dsn": dsn, "shutdown": {"timeout": "1ms"}}) as s:
            spoil(s)
            begin = time.monotonic()
            equal(s.stop(), 0)
            assert time.monotonic() - begin < 9, "it waits for the answer of the Sentry, which has ten seconds"


def test_unreachable_sentry_delays_no_request(work, objects):
    with Service(work, {"sentry_dsn": "http://key@127.0.0.1:1/1"}) as s:
        spoil(s)
        equal(s.request("GET", "/healthcheck")[0], 200)
