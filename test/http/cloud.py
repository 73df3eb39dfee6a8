"""Stand-ins for cloud services, and a real S3 server.

`Cloud` plays any host of the web behind TLS: a proxy takes CONNECT requests to whatever host and leads them all to one
server, whose certificate a CA of the test's own has signed. The service finds both through the environment variables that
operators use: https_proxy and SSL_CERT_FILE.
"""
import contextlib, http.client, os, shutil, socket, ssl, subprocess, tempfile, threading, urllib.request
from urllib.parse import parse_qsl, quote, urlsplit
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import free_port, npm_path, serving

HOSTS = ["www.googleapis.com", "storage.googleapis.com", "s3.us-east-1.amazonaws.com", "*.s3.us-east-1.amazonaws.com",
         "*.s3.eu-west-1.amazonaws.com", "*.s3.amazonaws.com", "hg.mozilla.org", "raw.githubusercontent.com", "static.crates.io",
         "sentry.test", "storage.test"]


@contextlib.contextmanager
def environment(**changes):
    before = {k: os.environ.get(k) for k in changes}
    try:
        os.environ.update({k: v for k, v in changes.items() if v is not None})
        yield
    finally:
        for k, v in before.items():
            os.environ.pop(k, None)
            if v is not None:
                os.environ[k] = v


def openssl(*args, **keys):
    return subprocess.run(["openssl", *args], check=True, capture_output=True, **keys).stdout


def make_certificates(home):
    """ca.pem, and server.pem with its key."""
    path = lambda name: os.path.join(home, name)
    with open(path("ext"), "w") as f:
        f.write("subjectAltName=" + ",".join("DNS:" + h for h in HOSTS) + "\n")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path("ca.key"), "-out", path("ca.pem"), "-subj",
            "/CN=test CA", "-days", "2")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", path("server.key"), "-out", path("server.csr"), "-subj",
            "/CN=test")
    openssl("x509", "-req", "-in", path("server.csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-CAcreateserial",
            "-out", path("server.pem"), "-extfile", path("ext"), "-days", "2")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, data=b"", headers=()):
        data = data.encode() if isinstance(data, str) else data
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else data)

    def answer(self):
        size = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(size)
        with self.server.lock:
            self.server.seen.append((self.command, self.headers.get("Host"), self.path))
        self.server.route(self)

    do_GET = do_POST = do_PUT = do_HEAD = answer


class Web(ThreadingHTTPServer):
    """A server that does what `route(handler)` says. `seen`: (method, host, path with query) of each request."""
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, route):
        super().__init__(("127.0.0.1", 0), Handler)
        self.route, self.seen, self.lock = route, [], threading.Lock()
        self.port = self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


class Cloud(Web):
    def __init__(self, work, route):
        super().__init__(route)
        self.home = tempfile.mkdtemp(dir=work)
        make_certificates(self.home)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(self.home, "server.pem"), os.path.join(self.home, "server.key"))
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.proxy = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.proxy.accept()
                threading.Thread(target=self._tunnel, args=(client,), daemon=True).start()

    def _tunnel(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(4096)
            if not data:
                return client.close()
            head += data
        server = socket.create_connection(("127.0.0.1", self.port))
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        back = threading.Thread(target=pump, args=(server, client), daemon=True)
        back.start()
        pump(client, server)
        back.join()
        client.close()
        server.close()

    def environment(self):
        return environment(https_proxy=f"http://127.0.0.1:{self.proxy.getsockname()[1]}",
                           SSL_CERT_FILE=os.path.join(self.home, "ca.pem"))

    def __exit__(self, *args):
        self.proxy.close()
        super().__exit__(*args)


# ---- s3rver: an S3 server with the keys S3RVER / S3RVER. It lets every signature of version 4 pass, so AWS's own library
# for Python, which it is reached through, checks those. ----
def signature_is_right(handler, secret):
    from botocore.auth import S3SigV4QueryAuth  # Debian: python3-botocore
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    path, _, query = handler.path.partition("?")
    values = dict(parse_qsl(query))
    key, _, region, service, _ = values["X-Amz-Credential"].split("/")
    auth = S3SigV4QueryAuth(Credentials(key, secret, values.get("X-Amz-Security-Token")), service, region)
    unsigned = "&".join(pair for pair in query.split("&") if not pair.startswith("X-Amz-Signature="))
    checked = AWSRequest("GET", f"http://{handler.headers['Host']}{path}?{unsigned}")
    checked.context["timestamp"] = values["X-Amz-Date"]
    text = auth.string_to_sign(checked, auth.canonical_request(checked))
    return auth.signature(text, checked) == values["X-Amz-Signature"]


def gate(server):
    """Refuses wrong signatures; the rest is the server's."""
    def route(handler):
        if not signature_is_right(handler, "S3RVER"):
            return handler.reply(403, "<Error><Code>SignatureDoesNotMatch</Code><Message>Check your key.</Message></Error>")
        headers = {k: v for k, v in handler.headers.items() if k.lower() != "host"}
        connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=60)
        connection.request("GET", handler.path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        handler.reply(answer.status, body, [(k, v) for k, v in answer.getheaders() if k.lower() in ("content-range", "etag")])
        connection.close()
    return route


def s3rver_script(work):
    return npm_path(work, "s3rver@3.7.1", ".bin/s3rver")


@contextlib.contextmanager
def s3(work, files):
    """A server with the bucket `symbols` that holds the files (key to bytes); yields its URL."""
    port = free_port()
    command = ["node", s3rver_script(work), "-d", tempfile.mkdtemp(dir=work), "-a", "127.0.0.1", "-p", str(port), "--silent",
               "--no-vhost-buckets", "--configure-bucket", "symbols"]
    with serving(command, port):
        url = f"http://127.0.0.1:{port}"
        for key, data in files.items():
            urllib.request.urlopen(urllib.request.Request(f"{url}/symbols/{quote(key)}", data, method="PUT")).close()
        with Web(gate(url)) as checked:
            yield checked.url
