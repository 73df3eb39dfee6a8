"""What the HTTP tests share: the built service, symbol servers to point it at, and objects made by a compiler.

Everything listens on loopback, on ports the system chooses, works below one temporary directory and is ended by its own
process id.
"""
import contextlib, hashlib, http.client, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import readers
from servers import DEADLINE, debuginfod, free_port, nginx, serving, wait_until

SYMLOOM = None  # path of the binary, set by run.py
CORPUS = None   # directory of the conformance corpus, likewise
CHECK = None    # what looks at each request and its answer (openapi.check), likewise: benchmarks have nothing that does
ISOLATION = os.environ.get("SYMLOOM_TEST_ISOLATION")  # conversion.isolation of services whose test does not choose one; None = default
os.environ.setdefault("TSAN_OPTIONS",
                      "suppressions=" + os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tsan.supp"))


def from_npm(test):
    """Marks a test that installs programs from npm's registry: it runs only when that is asked for (run.py --npm)."""
    test.from_npm = True
    return test


SYSTEM_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def npm_path(work, package, path):
    """A path below node_modules, of a package that is installed once for all tests of a run, with others where `package` names
    several. Each such set is apart: what one brings would change the versions of another."""
    home = os.path.join(os.path.dirname(work), "npm", hashlib.sha256(package.encode()).hexdigest()[:16])
    found = os.path.join(home, "node_modules", path)
    if not os.path.exists(found):
        os.makedirs(home, exist_ok=True)
        command = ["npm", "install", "--prefix", home, "--no-audit", "--no-fund", "--silent", "--ignore-scripts"]
        if os.path.exists(SYSTEM_CERTIFICATES):  # which the registry's, or a proxy's, must be among
            command += ["--cafile", SYSTEM_CERTIFICATES]
        done = subprocess.run([*command, *package.split()], capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise AssertionError(f"npm cannot install {package}: {done.stderr[-1000:]}")
    return found


def from_corpus(test):
    """Marks a test that needs the files of the conformance corpus: it runs only when told where they are (run.py --corpus)."""
    test.from_corpus = True
    return test


class Answer(http.client.HTTPResponse):
    """One that CHECK looks at when it is read at once."""

    def read(self, amount=None):
        data = super().read() if amount is None else super().read(amount)
        asked, self.asked = self.asked, None
        if CHECK and asked and amount is None:
            try:
                CHECK(*asked[:4], self.status, self.headers, data, *asked[4:])
            except AssertionError as e:
                self.found.append(e)
                raise
        return data


class Connection(http.client.HTTPConnection):
    """To a service. CHECK looks at requests, unless they are written piece by piece; `found` gets what it complains of."""

    def __init__(self, port, prefixes=(), found=None, **keys):
        super().__init__("127.0.0.1", port, timeout=DEADLINE, **keys)
        self.prefixes, self.response_class, self.asked = prefixes, self.answer, None
        self.found = [] if found is None else found

    def request(self, method, url, body=None, headers={}, **keys):
        self.asked = (method, url, headers, body, self.prefixes)
        super().request(method, url, body, headers, **keys)

    def answer(self, *args, **keys):
        answer = Answer(*args, **keys)
        answer.asked, answer.found = self.asked, self.found
        return answer


class Service:
    """A running symloom. `config`: keys of the configuration; a cache directory of its own unless one is given. `program`: what runs
    it in its own way."""

    def __init__(self, work, config=None, cache_dir=None, args=(), program=None):
        self.work = tempfile.mkdtemp(dir=work)
        self.cache = cache_dir or os.path.join(self.work, "cache")
        settings = {"bind": "127.0.0.1:0", "cache_dir": self.cache, "connect_to_reserved_ips": True, **(config or {})}
        if ISOLATION:  # for programs under ThreadSanitizer, whose shadow memory a confined worker cannot map
            settings["conversion"] = {"isolation": ISOLATION, **(settings.get("conversion") or {})}
        self.found = []  # by CHECK, also on threads whose errors nobody hears of
        self.prefixes = [(settings.get(section) or {}).get("path_prefix") for section in ("mozilla", "symbfile", "debuginfod")]
        path = os.path.join(self.work, "config.yml")
        with open(path, "w") as f:
            json.dump({k: v for k, v in settings.items() if v is not ...}, f)  # JSON is YAML
        self.log = os.path.join(self.work, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program or SYMLOOM, "run", "-c", path, "--log-format", "simplified", *args], stderr=log,
                                            stdout=log)
        self.port = int(wait_until("the service's port", self._find_port))

    def _find_port(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the service ended: {self.logged()}")
        found = re.search(r"Starting HTTP server on 127\.0\.0\.1:(\d+)", self.logged())
        return found and found.group(1)

    def logged(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def connection(self):
        return Connection(self.port, self.prefixes, self.found)

    def request(self, method, path, body=None, headers=None):
        """(status, headers, body)"""
        connection = self.connection()
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def post(self, path, body, headers=None):
        data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        return self.request("POST", path, data, {"Content-Type": "application/json", **(headers or {})})

    def symbolicate(self, body, query=""):
        status, _, data = self.post("/symbolicate" + query, body)
        if status != 200:
            raise AssertionError(f"status {status}: {data[:500]!r}")
        return json.loads(data)

    def leftovers(self):
        """Files in the cache's temporary directories, but for what tells whose they are."""
        return [os.path.join(d, f) for d, _, files in os.walk(os.path.join(self.cache, "tmp")) for f in files if f not in ("lock", "ledger")]

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            status = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the service does not end")
        text = self.logged()
        found = re.search("AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:", text)
        if found:
            raise AssertionError("a sanitizer found something:\n" + text[max(0, found.start() - 500):][:12000])
        return status

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        with contextlib.suppress(OSError, http.client.HTTPException):  # of a service that has ended or hides its metrics
            readers.record(self)
        status = self.stop()
        if kind is None and status != 0:
            raise AssertionError(f"the service ended with status {status}:\n{self.logged()[-4000:]}")
        if kind is None and self.found:
            raise self.found[0]


class Upstream(ThreadingHTTPServer):
    """A symbol server that does what the test says. `routes`: path to bytes, a status, or a function of the handler.
    `hits` counts requests by path."""

    daemon_threads = True
    request_queue_size = 2048

    def __init__(self, routes):
        super().__init__(("127.0.0.1", 0), UpstreamHandler)
        self.routes, self.hits, self.lock = routes, {}, threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def handle_error(self, request, client_address):
        pass  # clients that hang up are part of the tests

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class UpstreamHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, data=b"", headers=()):
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_GET(self):
        path = self.path.split("?")[0]
        with self.server.lock:
            self.server.hits[path] = self.server.hits.get(path, 0) + 1
        route = self.server.routes.get(path, 404)
        if callable(route):
            route(self)
        elif isinstance(route, int):
            self.reply(route)
        else:
            self.reply(200, route)


SOURCE = """
static volatile int sink;
static inline __attribute__((always_inline)) int innermost(int a) { sink = a; return a * 3; }
static inline __attribute__((always_inline)) int middle(int a)
{
    return innermost(a) + 1;
}
namespace shapes {
struct Box { int area(int side); };
int Box::area(int side)
{
    return middle(side) - 1;
}
}
extern "C" int plain(int a) { return a - 1; }
int main() { shapes::Box box; return box.area(4) + plain(2); }
"""


class Objects:
    """One C++ program: with everything, its debug file, and stripped."""

    def __init__(self, work):
        self.dir = os.path.join(work, "objects")
        os.mkdir(self.dir)
        with open(os.path.join(self.dir, "shapes.cc"), "w") as f:
            f.write(SOURCE)
        self._run("g++", "-g", "-O1", "-fno-pie", "-no-pie", "-Wl,--build-id", "-o", "full", "shapes.cc")
        self._run("objcopy", "--only-keep-debug", "full", "full.debug")
        self._run("strip", "-o", "stripped", "full")
        self.full, self.debug, self.stripped = (self.read(n) for n in ("full", "full.debug", "stripped"))
        notes = self._run("readelf", "-n", "full")
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
        raw = bytes.fromhex(self.build_id[:32])
        fields = raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]
        text = fields.hex()
        self.debug_id = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        self.load = 0x400000
        self.symbols = {}
        for line in self._run("nm", "-S", "full").splitlines():
            parts = line.split()
            if len(parts) == 4:
                self.symbols[parts[3]] = (int(parts[0], 16), int(parts[1], 16))

    def _run(self, *command):
        return subprocess.run(command, cwd=self.dir, check=True, capture_output=True, text=True).stdout

    def read(self, name):
        with open(os.path.join(self.dir, name), "rb") as f:
            return f.read()

    def address(self, name):
        """Of a symbol, relative to the load address."""
        return self.symbols[name][0] - self.load

    def line_addresses(self, line):
        """Addresses of a source line, relative, by the line table that binutils reads."""
        found = []
        for row in self._run("objdump", "--dwarf=decodedline", "full").splitlines():
            parts = row.split()
            if len(parts) >= 3 and parts[0] == "shapes.cc" and parts[1] == str(line):
                found.append(int(parts[2], 16) - self.load)
        return found

    def module(self, **changes):
        return {"type": "elf", "code_id": self.build_id, "debug_id": self.debug_id, "code_file": "/usr/bin/shapes",
                "image_addr": "0x10000000", "image_size": 0x10000, **changes}

    def layout(self):
        """Paths in a debuginfod tree."""
        return {f"/{self.build_id}/executable": self.full, f"/{self.build_id}/debuginfo": self.debug}


def request(module, addresses, **keys):
    frames = [a if isinstance(a, dict) else {"instruction_addr": hex(0x10000000 + a)} for a in addresses]
    return {"stacktraces": [{"frames": frames}], "modules": [module], **keys}


def multipart(parts, boundary="xyz"):
    """(body, headers) of a form: a part for each of (name, contents) or (name, contents, file name); texts and bytes."""
    body = b""
    for name, data, *file in parts:
        head = f'name="{name}"' + (f'; filename="{file[0]}"' if file else "")
        body += f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode()
        body += (data.encode() if isinstance(data, str) else data) + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def http_source(url, **keys):
    return {"id": "test", "type": "http", "url": url, "layout": {"type": "debuginfod"}, **keys}


def frames(answer, trace=0):
    return answer["stacktraces"][trace]["frames"]


def equal(actual, expected, what=""):
    if actual != expected:
        cut = lambda value: text if len(text := repr(value)) <= 4000 else text[:4000] + f"... ({len(text)} characters)"
        raise AssertionError(f"{what}: expected {cut(expected)}, got {cut(actual)}")
