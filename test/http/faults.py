"""What the tests of faults share: many modules out of one program, answers that can only be right or missing, Redis."""
import contextlib, json, os, random, re, signal, socket, subprocess, tempfile

import harness

BASE = 0x10000000


class Module:
    """The shared program under a build id of its own."""

    def __init__(self, objects, number, padding=0):
        raw = bytes.fromhex(objects.build_id)
        new = number.to_bytes(4, "big") + raw[4:]
        self.build_id = new.hex()
        self.bytes = objects.full.replace(raw, new) + random.Random(number).randbytes(padding)
        fields = (new[3::-1] + new[5:3:-1] + new[7:5:-1] + new[8:16]).hex()
        self.debug_id = "-".join((fields[:8], fields[8:12], fields[12:16], fields[16:20], fields[20:]))


class World:
    """Modules on a symbol server, and what is right to say about them."""

    def __init__(self, objects, count, padding=0):
        self.objects = objects
        self.modules = [Module(objects, n, padding) for n in range(1, count + 1)]
        self.address = objects.line_addresses(3)[0]
        self.up = harness.Upstream({f"/{m.build_id}/debuginfo": m.bytes for m in self.modules})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.up.shutdown()
        self.up.server_close()

    def body(self, modules):
        """A request for one frame in each of the modules."""
        described = [self.objects.module(code_id=m.build_id, debug_id=m.debug_id, image_addr=hex(BASE + (i << 20)))
                     for i, m in enumerate(modules)]
        traces = [{"frames": [{"instruction_addr": hex(BASE + (i << 20) + self.address)}]} for i in range(len(modules))]
        source = harness.http_source(self.up.url, filters={"filetypes": ["elf_debug"]})
        return {"stacktraces": traces, "modules": described, "sources": [source]}

    def check(self, answer, count, allowed=()):
        """Every module is found and its frames are right, or it has one of the `allowed` statuses. Returns how many were
        found."""
        found = 0
        harness.equal(len(answer["modules"]), count, "modules")
        for i, module in enumerate(answer["modules"]):
            if module["debug_status"] == "found":
                harness.equal([(f["function"], f["lineno"]) for f in harness.frames(answer, i)],
                              [("innermost", 3), ("middle", 6), ("shapes::Box::area(int)", 12)], f"module {i}")
                found += 1
            elif module["debug_status"] not in allowed:
                raise AssertionError(f"module {i} is {module['debug_status']}: {json.dumps(module)}")
        return found

    def ask(self, service, modules, allowed=()):
        return self.check(service.symbolicate(self.body(modules)), len(modules), allowed)


def check_directory(cache):
    """No entry is torn: each is as long as its side file says, and of the kind that its first bytes tell."""
    entries = 0
    for folder, _, files in os.walk(cache):
        for name in files:
            path = os.path.join(folder, name)
            if name == "lock" or name.endswith(".metadata") or f"{cache}/tmp" in path or f"{cache}/quarantine" in path:
                continue
            with open(path, "rb") as f:
                data = f.read()
            kind = os.path.relpath(path, cache).split(os.sep)[0]
            if kind == "uploads":  # what was uploaded is no entry
                continue
            start = {"symcaches": b"SLSC", "object_meta": b"{", "objects": b"\x7fELF"}[kind]
            if data and not data.startswith((start, b"malformed")):
                raise AssertionError(f"{path} begins with {data[:20]!r}")
            if os.path.exists(path + ".metadata"):
                with open(path + ".metadata") as f:
                    harness.equal(json.load(f)["size"], len(data), path)
            entries += 1
    return entries


class Redis:
    """A redis-server. `pause` and `go_on` stop the process and let it run again."""

    def __init__(self, work, *options):
        self.home, self.options, self.port = tempfile.mkdtemp(dir=work), options, harness.free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self):
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                                         "--appendonly", "no", "--dir", self.home, *self.options],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        harness.wait_until("redis-server", lambda: self.answers())

    def answers(self):
        try:
            return self.ask("PING").startswith("+PONG")
        except OSError:
            return False

    def ask(self, *words):
        """Sends one inline command, or the words of a command of any length."""
        command = words[0] + "\r\n" if len(words) == 1 else f"*{len(words)}\r\n" + "".join(
            f"${len(w)}\r\n{w}\r\n" for w in words)
        with socket.create_connection(("127.0.0.1", self.port), timeout=harness.DEADLINE) as s:
            s.sendall((command + "QUIT\r\n").encode())
            data = b""
            while piece := s.recv(65536):
                data += piece
        return data.decode("latin-1")

    def size(self):
        return int(self.ask("DBSIZE")[1:].split("\r")[0])

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def metric(service, line):
    """The value of a series of /metrics; 0 when it is not there."""
    text = service.request("GET", "/metrics")[2].decode()
    found = re.search("^" + re.escape(line) + r" (\S+)$", text, re.M)
    return float(found[1]) if found else 0.0


@contextlib.contextmanager
def small_disk(work, size):
    """A directory on a file system of its own with this size, or None when the system does not let us."""
    path = tempfile.mkdtemp(dir=work)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", path], stderr=subprocess.DEVNULL)
    if mounted.returncode:
        yield None
        return
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)
