"""Stand-ins for cloud services, and a real S3 server.

`Cloud` plays any host of the web behind TLS: a proxy takes CONNECT requests to whatever host and leads them all to one
server, whose certificate a CA of the test's own has signed. The service finds both through the environment variables that
operators use: https_proxy and SSL_CERT_FILE.
"""
import base64, contextlib, datetime, hashlib, hmac, http.client, json, os, shutil, socket, ssl, subprocess, tempfile, threading
import urllib.request
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import equal, free_port, npm_path, serving

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
    disable_nagle_algorithm = True

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

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = answer


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
def s3_server(work):
    """A server with the bucket `symbols`; yields its URL."""
    port = free_port()
    command = ["node", s3rver_script(work), "-d", tempfile.mkdtemp(dir=work), "-a", "127.0.0.1", "-p", str(port), "--silent",
               "--no-vhost-buckets", "--configure-bucket", "symbols"]
    with serving(command, port):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def s3(work, files):
    """The same with files in it (key to bytes), behind a gate that checks signatures."""
    with s3_server(work) as url:
        for key, data in files.items():
            urllib.request.urlopen(urllib.request.Request(f"{url}/symbols/{quote(key)}", data, method="PUT")).close()
        with Web(gate(url)) as checked:
            yield checked.url


# ---- buckets of our own, which tests can look into and break ----
def stamp():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def after(objects, prefix, start):
    return sorted(n for n in objects if n.startswith(prefix) and n > start)


class S3(Web):
    """A bucket that checks signatures. `objects`: name to (bytes, fields). Lists have at most `page` names. `conditions`: it knows
    conditional writes. `before_put(name, body)` is called before an object is stored."""
    page = 1000

    def __init__(self):
        self.objects, self.modified, self.wrong, self.broken, self.conditions = {}, {}, [], False, True
        self.before_put = lambda name, body: None
        super().__init__(self.answer)

    def signature(self, h, query):
        """AWS Signature Version 4 of the query ("Authenticating Requests: Using Query Parameters")."""
        values = dict(query)
        signed = values["X-Amz-SignedHeaders"].split(";")
        canonical = "&".join(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in sorted(query) if k != "X-Amz-Signature")
        fields = "".join(f"{name}:{h.headers[name].strip()}\n" for name in signed)
        text = "\n".join([h.command, urlsplit(h.path).path, canonical, fields, ";".join(signed), "UNSIGNED-PAYLOAD"])
        _, day, region, service, _ = values["X-Amz-Credential"].split("/")
        key = b"AWS4secret"
        for part in day, region, service, "aws4_request":
            key = hmac.digest(key, part.encode(), "sha256")
        scope = f"{day}/{region}/{service}/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", values["X-Amz-Date"], scope, hashlib.sha256(text.encode()).hexdigest()])
        sent = [n.lower() for n in h.headers if n.lower().startswith("x-amz-")]
        return hmac.new(key, text.encode(), "sha256").hexdigest() == values["X-Amz-Signature"] and set(sent) <= set(signed)

    def answer(self, h):
        query = parse_qsl(urlsplit(h.path).query, keep_blank_values=True)
        name = unquote(urlsplit(h.path).path).removeprefix("/symbols/")
        if self.broken or not self.signature(h, query):
            self.wrong.append((h.command, name))
            return h.reply(500 if self.broken else 403, "<Error><Code>SignatureDoesNotMatch</Code></Error>")
        if h.command == "PUT":
            self.before_put(name, h.body)
            if self.conditions and not self.condition_holds(h, name):
                return h.reply(412, "<Error><Code>PreconditionFailed</Code></Error>")
            if not self.conditions and ("If-Match" in h.headers or "If-None-Match" in h.headers):
                return h.reply(501, "<Error><Code>NotImplemented</Code></Error>")
            kept = {n: v for n, v in h.headers.items() if n.lower().startswith("x-amz-meta-") or n.lower() in
                    ("content-type", "content-encoding", "cache-control")}
            self.objects[name] = (h.body, {**kept, "ETag": '"' + hashlib.md5(h.body).hexdigest() + '"'})
            self.modified[name] = stamp()
            return h.reply(200)
        if name == "" and h.command == "GET":
            return h.reply(200, self.listed(dict(query)))
        if h.command == "DELETE":
            self.objects.pop(name, None)
            return h.reply(204)
        if name not in self.objects:
            return h.reply(404, "<Error><Code>NoSuchKey</Code></Error>")
        data, fields = self.objects[name]
        h.reply(200, data, fields.items())

    def condition_holds(self, h, name):
        """Conditional writes: If-None-Match: *, or If-Match with an entity tag."""
        if "If-None-Match" in h.headers:
            equal(h.headers["If-None-Match"], "*")
            return name not in self.objects
        return "If-Match" not in h.headers or (name in self.objects and self.objects[name][1]["ETag"] == h.headers["If-Match"])

    def listed(self, query):
        """ListObjectsV2"""
        equal(query["list-type"], "2")
        names = after(self.objects, query["prefix"], query.get("start-after", ""))
        rows = "".join(f"<Contents><Key>{escape(n)}</Key><LastModified>{self.modified[n]}</LastModified><Size>1</Size></Contents>"
                       for n in names[:self.page])
        return (f'<?xml version="1.0"?><ListBucketResult><IsTruncated>{str(len(names) > self.page).lower()}</IsTruncated>'
                f"{rows}</ListBucketResult>")


class Google:
    """A bucket of Google's JSON API. `objects`: name to (bytes, what was said of it). Lists have at most `page` names."""
    page = 1000

    def __init__(self):
        self.objects, self.modified, self.sessions, self.generations = {}, {}, {}, {}
        self.before_put = lambda name, body: None

    def __call__(self, h):
        at = urlsplit(h.path)
        query = dict(parse_qsl(at.query))
        if at.path == "/oauth2/v4/token" or "computeMetadata" in at.path:
            return h.reply(200, json.dumps({"access_token": "T", "expires_in": 3600, "token_type": "Bearer"}))
        if at.path == "/session":
            name, said, generation = self.sessions[query["id"]]
            self.before_put(name, h.body)
            if generation is not None and int(generation) != self.generations.get(name, 0):
                return h.reply(412, "{}")
            self.objects[name] = (h.body, said)
            self.modified[name] = stamp()
            self.generations[name] = max(self.generations.values(), default=1700000000000000) + 1
            return h.reply(200, "{}")
        if h.headers.get("Authorization") != "Bearer T":
            return h.reply(401, "{}")
        if at.path == "/upload/storage/v1/b/symbols/o":
            key = str(len(self.sessions))
            self.sessions[key] = (query["name"], json.loads(h.body), query.get("ifGenerationMatch"))
            return h.reply(200, "", [("Location", f"https://storage.googleapis.com/session?id={key}")])
        if at.path == "/storage/v1/b/symbols/o":
            names = [n for n in after(self.objects, query["prefix"], "") if n >= query.get("startOffset", "")]
            listed = {"items": [{"name": n, "updated": self.modified[n]} for n in names[:self.page]]}
            return h.reply(200, json.dumps({**listed, **({"nextPageToken": "x"} if len(names) > self.page else {})}))
        name = unquote(at.path.removeprefix("/storage/v1/b/symbols/o/"))
        if h.command == "DELETE":
            self.generations.pop(name, None)
            return h.reply(204 if self.objects.pop(name, None) else 404)
        if name not in self.objects:
            return h.reply(404, "{}")
        data, said = self.objects[name]
        if query.get("alt") == "media":
            return h.reply(200, data, [("Content-Encoding", said["contentEncoding"])] if "contentEncoding" in said else [])
        h.reply(200, json.dumps({**said, "generation": str(self.generations.get(name, 0)), "size": str(len(data)), "md5Hash": base64.b64encode(hashlib.md5(data).digest()).decode()}))


def google_account(work):
    """The file of a service account."""
    path = os.path.join(work, "account.json")
    with open(path, "w") as f:
        json.dump({"private_key": openssl("genrsa", "-traditional", "2048").decode(), "client_email": "x@y.z",
                   "token_uri": "https://www.googleapis.com/oauth2/v4/token"}, f)
    return path
