"""What commands that take their time say of it: a line on a terminal that is erased at the end, lines or JSON when asked for."""
import contextlib, fcntl, http.server, json, os, re, select, signal, struct, subprocess, termios, threading, time
import harness
from harness import DEADLINE, contains, equal, symloom, terminal
from test_by_id import home

LINE = r"\r\x1b\[K%s \[[#-]{20}\] \d+/[1-9]\d* [0-9.]+ [KMG]?i?B  %s"
UNCOUNTED = r"\r\x1b\[K%s(?: [0-9.]+ [KMG]?i?B)?  %s"  # before it is known of how many
ERASED = "\r\x1b[K"


class Terminal:
    """A command whose standard error is a terminal, and standard output none."""

    def __init__(self, work, *words, stdin=subprocess.DEVNULL, env=None, **options):
        self.ours, theirs = terminal()
        self.text = ""
        self.run = subprocess.Popen([harness.SYMLOOM, *words], stdin=stdin, stdout=subprocess.PIPE, stderr=theirs,
                                    env={**os.environ, "TERM": "xterm", **(env or {})}, **options)
        os.close(theirs)

    def read(self):
        if not select.select([self.ours], [], [], DEADLINE)[0]:
            raise AssertionError(f"nothing comes; so far {self.text!r}")
        try:
            piece = os.read(self.ours, 65536).decode(errors="replace")
        except OSError:  # the other end is closed
            piece = ""
        self.text += piece
        return piece

    def until(self, pattern):
        while not re.search(pattern, self.text):
            if not self.read():
                raise AssertionError(f"{pattern!r} is not in {self.text[-2000:]!r}")

    def end(self):
        while self.read():
            pass
        out = self.run.stdout.read()
        self.run.stdout.close()
        os.close(self.ours)
        return self.run.wait(DEADLINE), out


@contextlib.contextmanager
def held(work, path):
    """A FIFO in the place of a file, whose bytes come when the block is left."""
    fifo = os.path.join(work, os.path.basename(path))
    os.mkfifo(fifo)

    def feed():
        with contextlib.suppress(BrokenPipeError), open(fifo, "wb") as f:
            opened.set()
            go.wait(DEADLINE)
            with open(path, "rb") as source:
                f.write(source.read())

    go, opened = threading.Event(), threading.Event()
    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield fifo, go
    finally:
        go.set()
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)  # when no command came, it waits for this one
        opened.wait()
        os.close(reader)
        thread.join()


def test_test_helpers_release_fifos_and_terminals(work, files):
    """A FIFO that nobody opens, two terminals of one test."""
    with held(work, files.get("t")) as (_, go):
        pass
    equal(go.is_set(), True)
    ends = [*terminal(), *terminal()]
    equal([os.isatty(end) for end in ends], [True] * 4)
    for end in ends:
        os.close(end)


def test_progress_line_appears_and_is_erased(work, files):
    """It comes after half a second, and nothing is left of it; what the command prints is the same."""
    t = files.get("t")
    for verb, words in (("dumping", ["dump-syms"]), ("bundling", ["bundle", "-n"]), ("reading", ["lookup", "0", "--output-style", "llvm", "-e"])):
        wanted = symloom(*words, t)
        with held(work, t) as (fifo, go):
            started = time.monotonic()
            run = Terminal(work, *words, fifo)
            run.until((UNCOUNTED if verb == "reading" else LINE) % (verb, "t"))
            assert time.monotonic() - started >= 0.5, run.text
            go.set()
            status, out = run.end()
        equal(status, wanted.status, run.text)
        if verb != "bundling":  # that names the file
            equal(out.decode(), wanted.out)
        left = run.text.replace("\r\n", "\n").split(ERASED)[-1]
        equal(left.replace(fifo, t), wanted.err, run.text)
        os.unlink(fifo)


def test_progress_line_fits_the_terminal(work, files):
    name = "x" * 200
    path = os.path.join(work, name)
    os.symlink(files.get("t"), path)
    os.mkdir(os.path.join(work, "fifo"))
    with held(os.path.join(work, "fifo"), path) as (fifo, go):
        run = Terminal(work, "dump-syms", fifo)
        fcntl.ioctl(run.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        run.until(r"\r\x1b\[Kdumping .*x")
        go.set()
        equal(run.end()[0], 0)
    for line in run.text.split(ERASED):
        assert len(line) < 60, run.text


def test_progress_line_can_be_disabled(work, files):
    t = files.get("t")
    for words, env in ((["--progress", "none"], {}), (["-q"], {})):
        with held(work, t) as (fifo, go):
            run = Terminal(work, "dump-syms", *words, fifo, env=env)
            with contextlib.suppress(AssertionError):
                if select.select([run.ours], [], [], 1.2)[0]:
                    run.read()
            go.set()
            status, _ = run.end()
        equal((status, run.text), (0, ""))
        os.unlink(fifo)
    equal(symloom("dump-syms", t).err, "")  # no terminal


def test_finished_items_are_listed(work, files):
    """Each of every command, at once and whatever they take."""
    t, exe, wasm = files.get("t"), files.get("t.exe"), files.get("t.wasm")
    out, cache = os.path.join(work, "out"), os.path.join(work, "cache")
    os.makedirs(cache)
    project = os.path.join(work, "project")
    os.makedirs(os.path.join(project, "src/main/java"))
    with open(os.path.join(project, "src/main/java/A.java"), "w") as f:
        f.write("class A {}\n")
    mapping = os.path.join(work, "mapping.txt")
    with open(mapping, "w") as f:
        f.write("a.B -> a:\n    void c() -> b\n")
    for verb, names, words in (
            ("inspecting", ["t", "t.exe"], ["inspect", t, exe]),
            ("inspecting", ["t"], ["inspect", "--verify", "-r", t]),
            ("dumping", ["t", "t.exe"], ["dump-syms", "-s", out, t, exe]),
            ("bundling", ["t"], ["bundle", "-n", t]),
            ("bundling", ["project"], ["bundle", "--jvm", project, "--debug-id", "00112233-4455-6677-8899-aabbccddeeff", "-o", out]),
            ("splitting", ["t.wasm"], ["wasm-split", wasm, "-o", os.path.join(work, "w.wasm")]),
            ("sorting", ["t"], ["sort", "-z", "-o", os.path.join(work, "sorted"), t]),
            ("cleaning", ["cache"], ["cleanup", "--cache-dir", cache])):
        result = symloom(*words, "--progress", "json")
        equal(result.status, 0, result.err)
        events = [json.loads(line) for line in result.err.splitlines() if line.startswith('{"event"')]
        equal([(e["event"], e["verb"], e["item"]) for e in events], [("progress", verb, name) for name in names], str(words))
        equal([(e["done"], e["total"] >= e["done"]) for e in events], [(i + 1, True) for i in range(len(names))])
        for event in events:
            equal(list(event), ["event", "verb", "done", "total", "bytes", "item"])
        plain = symloom(*words, "--progress", "plain", "-f") if verb == "sorting" else symloom(*words, "--progress", "plain")
        for i, name in enumerate(names):
            assert re.search(rf"(?m)^{verb} {i + 1}/\d+ [0-9.]+ [KMG]?i?B  {re.escape(name)}$", plain.err), plain.err


class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.go.wait(DEADLINE)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def slow():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.go = threading.Event()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", server.go
    finally:
        server.go.set()
        server.shutdown()
        thread.join()
        server.server_close()


def test_progress_line_is_shown_while_a_server_is_slow(work, files):
    config = os.path.join(work, "config.yml")
    for words in (["healthcheck", "--addr"], ["config", "check", "--connect", config]):
        with slow() as (place, go):
            with open(config, "w") as f:
                f.write(f"connect_to_reserved_ips: true\nsources: [{{id: a, type: http, url: 'http://{place}/'}}]\n")
            run = Terminal(work, *words, *([place] if words[-1] == "--addr" else []), env=home(work))
            run.until(UNCOUNTED % ("asking", r"[^\r]+"))
            go.set()
            status, out = run.end()
        equal(status, 0, out)
        assert run.text.endswith(ERASED), run.text


def test_interrupt_erases_the_progress_line(work, files):
    """Ctrl-C erases it, and the shell learns of the signal."""
    with held(work, files.get("t")) as (fifo, go):
        run = Terminal(work, "dump-syms", "-o", os.path.join(work, "t.sym"), fifo)
        run.until(LINE % ("dumping", "t"))
        run.run.send_signal(signal.SIGINT)
        status, _ = run.end()
    equal(status, -signal.SIGINT)
    assert run.text.endswith(ERASED), run.text
    equal(sorted(name for name in os.listdir(work) if "sym" in name), [])


def test_errors_do_not_mix_with_the_progress_line(work, files):
    """An error is not appended to the line of what is done."""
    broken = os.path.join(work, "broken")
    with open(broken, "wb") as f:
        f.write(b"nothing of use" * 10)
    os.mkdir(os.path.join(work, "fifo"))
    with held(os.path.join(work, "fifo"), broken) as (fifo, go):
        run = Terminal(work, "dump-syms", fifo)
        run.until(LINE % ("dumping", "broken"))
        go.set()
        status, _ = run.end()
    equal(status, 3, run.text)
    assert ERASED + "error: failed to process file " in run.text, run.text
