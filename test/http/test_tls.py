"""TLS: what clients of every kind are answered, certificates that change, are wrong or have ended, and clients' own."""
import json, os, re, signal, socket, ssl, subprocess, tempfile

import harness
from harness import DEADLINE, Service, Upstream, equal, http_source, request, wait_until


def openssl(*args, **keywords):
    return subprocess.run(["openssl", *args], check=True, capture_output=True, timeout=DEADLINE, **keywords)


class Authority:
    """Makes certificates."""

    def __init__(self, work):
        self.dir = tempfile.mkdtemp(dir=work)
        self.path, self.key = self.file("ca.pem"), self.file("ca.key")
        self._request(self.path, self.key, "authority", "-x509", "-days", "30")

    def file(self, name):
        return os.path.join(self.dir, name)

    def _request(self, out, key, name, *options):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", out,
                "-subj", "/CN=" + name, *options)

    def issue(self, name, days=30, places="IP:127.0.0.1,DNS:localhost"):
        """(certificate, key); negative days: it has ended."""
        cert, key, asked, extra = (self.file(name + suffix) for suffix in (".pem", ".key", ".csr", ".ext"))
        self._request(asked, key, name)
        with open(extra, "w") as f:
            f.write("subjectAltName=" + places)
        command = ["x509", "-req", "-in", asked, "-CA", self.path, "-CAkey", self.key, "-out", cert, "-extfile", extra]
        openssl(*command, "-days", str(days), "-CAcreateserial")
        return cert, key


def settings(cert, key, **more):
    https = {"certificate_path": cert, "key_path": key}
    if "client_ca_path" in more:
        https["client_ca_path"] = more.pop("client_ca_path")
    return {"bind_https": "127.0.0.1:0", "server_config": {"https": https}, **more}


def tls_port(service):
    return int(wait_until("the port of TLS", lambda: re.search(r"Starting HTTPS server on 127\.0\.0\.1:(\d+)", service.logged()))[1])


def trusting(authority, *own):
    context = ssl.create_default_context(cafile=authority.path)
    if own:
        context.load_cert_chain(*own)
    return context


def connect(service, context):
    plain = socket.create_connection(("127.0.0.1", tls_port(service)), timeout=DEADLINE)
    return context.wrap_socket(plain, server_hostname="localhost")


def exchange(connection, text):
    connection.sendall(text)
    answer = b""
    while piece := connection.recv(65536):
        answer += piece
    return answer


GET = b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def health(service, context):
    with connect(service, context) as connection:
        return exchange(connection, GET).split(b"\r\n\r\n")[1]


def curl(service, authority, path, *args):
    done = subprocess.run(["curl", "-sS", "--cacert", authority.path, *args, f"https://localhost:{tls_port(service)}{path}",
                           "--resolve", f"localhost:{tls_port(service)}:127.0.0.1"], capture_output=True, timeout=DEADLINE)
    return done.returncode, done.stdout


def test_requests_are_answered_over_tls(work, objects):
    authority = Authority(work)
    with Upstream(objects.layout()) as upstream, Service(work, settings(*authority.issue("server"))) as s:
        equal(curl(s, authority, "/healthcheck"), (0, b"ok"))
        body = request(objects.module(), [4096], sources=[http_source(upstream.url)])
        path = os.path.join(work, "body.json")
        with open(path, "w") as f:
            json.dump(body, f)
        plain = s.symbolicate(body)
        code, answer = curl(s, authority, "/symbolicate", "-H", "Content-Type: application/json", "--data-binary", "@" + path)
        equal((code, json.loads(answer)), (0, plain))
        done = openssl("s_client", "-connect", f"127.0.0.1:{tls_port(s)}", "-CAfile", authority.path, "-verify_return_error",
                       "-alpn", "h2,http/1.1", "-quiet", input=GET).stdout
        assert done.endswith(b"\r\n\r\nok"), done
        line = wait_until("the access line", lambda: re.search(r"access: .*path=/symbolicate.*tls=TLSv1\.3", s.logged()))
        assert line


def test_many_and_large_requests_share_one_tls_connection(work, objects):
    authority = Authority(work)
    large = b'{"stacktraces": [], "modules": [], "x": "' + b"y" * 3_000_000 + b'"}'
    head = b"POST /symbolicate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with Service(work, settings(*authority.issue("server"))) as s, connect(s, trusting(authority)) as connection:
        for body in (b"{}", large, b'{"stacktraces": []}'):
            for _ in range(3):
                connection.sendall(head % len(body) + body)
                answer = connection.recv(65536)
                assert answer.startswith(b"HTTP/1.1 200 ") and b'"completed"' in answer, answer
        pipelined = b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5
        assert exchange(connection, pipelined + GET).count(b"HTTP/1.1 200 OK") == 6


def test_long_tls_answer_waits_for_its_reader(work, objects):
    root = tempfile.mkdtemp(dir=work)
    for name in objects.layout():
        os.makedirs(os.path.dirname(root + name), exist_ok=True)
        with open(root + name, "wb") as f:
            f.write(objects.full + os.urandom(6_000_000))
    authority = Authority(work)
    source = {"id": "files", "type": "filesystem", "path": root, "layout": {"type": "debuginfod"}}
    with Service(work, settings(*authority.issue("server"), sources=[source])) as s:
        path = f"/proxy/shapes/elf-buildid-sym-{objects.build_id}/_.debug"
        path = path.replace("shapes/", "_.debug/")
        status, _, whole = s.request("GET", path)
        equal(status, 200)
        with connect(s, trusting(authority)) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = connection.recv(1000) + exchange(connection, b"")
        equal(answer.split(b"\r\n\r\n", 1)[1] == whole, True)


def test_plain_http_on_the_tls_port_is_refused(work, objects):
    authority = Authority(work)
    with Service(work, settings(*authority.issue("server"))) as s:
        with socket.create_connection(("127.0.0.1", tls_port(s)), timeout=DEADLINE) as plain:
            answer = exchange(plain, GET)
        assert answer.startswith(b"HTTP/1.1 400 ") and b"HTTPS only" in answer, answer
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(authority.path)
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("DEFAULT:@SECLEVEL=0")
        other = trusting(authority)
        other.set_alpn_protocols(["h2"])
        for context in (old, other):
            try:
                health(s, context)
                raise AssertionError("the handshake succeeds")
            except (ssl.SSLError, ConnectionError):
                pass
        with socket.create_connection(("127.0.0.1", tls_port(s)), timeout=DEADLINE) as plain:
            plain.sendall(b"\x16\x03\x01\x02\x00garbage" + bytes(600))
            plain.recv(1000)  # an alert, or the end
        equal(health(s, trusting(authority)), b"ok")


def test_reload_takes_a_new_certificate_but_no_invalid_one(work, objects):
    authority, other = Authority(work), Authority(work)
    cert, key = authority.issue("server")
    with Service(work, settings(cert, key)) as s, connect(s, trusting(authority)) as old:
        for path, made in zip((cert, key), other.issue("server")):
            os.replace(made, path)
        s.process.send_signal(signal.SIGHUP)
        wait_until("the reload", lambda: "configuration reloaded" in s.logged())
        equal(health(s, trusting(other)), b"ok")
        equal(exchange(old, GET).split(b"\r\n\r\n")[1], b"ok")  # what is connected goes on
        with open(cert, "w") as f:
            f.write("nothing of the kind")
        s.process.send_signal(signal.SIGHUP)
        wait_until("the complaint", lambda: re.search("ERROR http: cannot load the new certificate; keeping the old one", s.logged()))
        equal(health(s, trusting(other)), b"ok")


def test_client_certificates_are_required_when_configured(work, objects):
    servers, clients = Authority(work), Authority(work)
    with Service(work, settings(*servers.issue("server"), client_ca_path=clients.path)) as s:
        equal(health(s, trusting(servers, *clients.issue("client"))), b"ok")
        for own in ((), servers.issue("stranger")):
            try:
                answer = health(s, trusting(servers, *own))
                raise AssertionError(f"{own}: {answer}")
            except (ssl.SSLError, ConnectionError, IndexError):
                pass


def test_expiring_certificates_are_logged(work, objects):
    authority = Authority(work)
    with Service(work, settings(*authority.issue("soon", days=3))) as s:
        assert re.search("WARN http: the certificate expires soon", s.logged()), s.logged()
    with Service(work, settings(*authority.issue("ended", days=-1))) as s:
        assert re.search("ERROR http: the certificate has expired; clients will reject it", s.logged()), s.logged()
        assert curl(s, authority, "/live")[0] == 60  # clients refuse it


def test_mismatched_key_and_certificate_fail_the_start(work, objects):
    authority = Authority(work)
    cert, key = authority.issue("server")[0], authority.issue("other")[1]
    path = os.path.join(work, "config.yml")
    for https, what in (({"certificate_path": cert, "key_path": key}, "key values mismatch"),
                        ({"certificate_path": "/nowhere", "key_path": key}, "No such file"), ({}, "bind_https: needs")):
        with open(path, "w") as f:
            json.dump({"bind": "127.0.0.1:0", "bind_https": "127.0.0.1:0", "server_config": {"https": https}}, f)
        done = subprocess.run([harness.SYMLOOM, "run", "-c", path], capture_output=True, text=True, timeout=DEADLINE)
        assert done.returncode == 1 and what in done.stderr, (done.returncode, done.stderr)
        checked = subprocess.run([harness.SYMLOOM, "config", "check", path], capture_output=True, text=True, timeout=DEADLINE)
        assert checked.returncode == 1 and what in checked.stdout, checked.stdout


def test_silent_handshakes_do_not_block_other_clients(work, objects):
    authority = Authority(work)
    with Service(work, settings(*authority.issue("server"), http={"max_connections": 50, "header_timeout": "2s"})) as s:
        silent = [socket.create_connection(("127.0.0.1", tls_port(s)), timeout=DEADLINE) for _ in range(40)]
        for connection in silent[::2]:
            connection.sendall(b"\x16\x03\x01")
        equal(health(s, trusting(authority)), b"ok")
        wait_until("their end", lambda: len([c for c in silent if gone(c)]) == len(silent))


def gone(connection):
    try:
        return connection.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
