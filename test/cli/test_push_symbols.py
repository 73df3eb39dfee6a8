"""`symloom push-symbols`: what it shows of secrets."""
import http.server, os, threading
from harness import contains, equal, ok, symloom
from servers import free_port

SECRET = "aWQ6c2VjcmV0LWtleQ=="


class Service(http.server.BaseHTTPRequestHandler):
    """Takes everything, and notes the key that it came with and the command lines that the machine shows meanwhile."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.keys.append(self.headers.get("Authorization"))
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if b"push-symbols" in words and f"http://127.0.0.1:{self.server.server_port}".encode() in words:
                self.server.seen.append(words)
        body = b'{"success": true}' if self.command == "POST" else b"{}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *args):
        pass


def push(files, *args, **options):
    return symloom("push-symbols", "executable", "-e", files.get("t"), "--retries", "0", *args, **options)


def test_the_key_is_not_shown(work, files):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.keys, server.seen = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        path = os.path.join(work, "key")
        with open(path, "w") as f:
            f.write(SECRET + "\n")
        for args, given in ((["-t", SECRET], ""), ([f"--api-key={SECRET}"], ""), (["--api-key-file", path], ""),
                            (["--api-key-file", "-"], SECRET + "\nmore\n")):
            server.keys.clear()
            server.seen.clear()
            result = push(files, "-u", url, *args, input=given)
            equal(result.status, 0, result.err)
            equal(set(server.keys), {f"APIKey {SECRET}"})
            assert server.seen and not any(SECRET.encode() in word for words in server.seen for word in words), server.seen
            assert SECRET not in result.err + result.out
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_errors_show_no_secret(work, files):
    nobody = f"127.0.0.1:{free_port()}"
    result = push(files, "-u", f"http://user:secret@{nobody}/at?token=secret")
    equal(result.status, 1)
    contains(result.err, f"error: http://{nobody}/at: ")
    assert "secret" not in result.err, result.err
    result = symloom("push-symbols", "--api-kee=secret")
    equal((result.status, result.err.splitlines()[0]), (2, "error: unknown option --api-kee, did you mean --api-key"))
    result = symloom("lookup", "--build-id", "00112233", "--output-style", "table", "--symbols",
                     "http://user:secret@[::1/x?token=secret", "0")
    equal(result.status, 1)
    contains(result.err, "no URL that can be used: [::1/x")
    assert "secret" not in result.err, result.err


def test_usage(work, files):
    equal(ok("push-symbols", "--version"), ok("--version"))
    missing = os.path.join(work, "missing")
    result = push(files, "-u", "http://127.0.0.1:1", "--api-key-file", missing)
    equal((result.status, result.err.splitlines()),
          (2, ["error: --api-key-file: no key can be read", "  caused by: No such file or directory",
               "Try 'symloom push-symbols --help'."]))
    result = push(files, "-u", "http://127.0.0.1:1", "--api-key-file", "-")
    contains(result.err, "caused by: the file is empty")
