"""What the tests of the debuginfod server share: a program of C that crashes, in the parts that a debuginfod serves, and its clients."""
import os, re, shutil, subprocess, tempfile

from harness import Service, wait_until

TEXT = """#include <stdlib.h>
__attribute__((noinline)) static int inner(int *p) { return *p + 1; }
__attribute__((noinline)) int middle(int *p) { return inner(p) + 2; }
int main(int argc, char **argv) { return middle(argc > 5 ? &argc : NULL) + 3; }
"""


class Program:
    """`t.c`, compiled and split: .full, .debug, .stripped and .symbols (without debug sections) are bytes; the files are in .dir, the text at .source."""

    def __init__(self, work, name="t", flags=()):
        self.dir = os.path.realpath(tempfile.mkdtemp(dir=work))
        self.source, self.name = os.path.join(self.dir, name + ".c"), name
        with open(self.source, "w") as f:
            f.write(TEXT)
        run = lambda *command: subprocess.run(command, cwd=self.dir, check=True, capture_output=True, text=True).stdout
        run("gcc", "-g", "-O1", "-Wl,--build-id", *flags, "-o", "full", self.source)
        run("objcopy", "--only-keep-debug", "full", name + ".debug")
        run("strip", "-o", name, "full")
        run("strip", "-g", "-o", "symbols", "full")
        self.full, self.debug, self.stripped, self.symbols = (self.read(n) for n in ("full", name + ".debug", name, "symbols"))
        self.id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", "full")).group(1)

    def read(self, name):
        with open(os.path.join(self.dir, name), "rb") as f:
            return f.read()

    def section(self, name, file=None):
        out = os.path.join(self.dir, "section")
        subprocess.run(["objcopy", "--dump-section", f"{name}={out}", file or self.name, out + ".file"], cwd=self.dir, check=True)
        return self.read(out)

    def path(self, kind):
        return f"/buildid/{self.id}/{kind}"

    def upstream_routes(self, **changes):
        """What an HTTP server of layout debuginfod has at its root."""
        return {f"/{self.id}/debuginfo": self.debug, f"/{self.id}/executable": self.stripped, **changes}


def directory(work, *programs, executables=True, whole=False):
    """A source of layout `unified` with the files of programs; `whole`: unstripped, as debug files."""
    root = tempfile.mkdtemp(dir=work)
    for program in programs:
        place = os.path.join(root, program.id[:2], program.id[2:])
        os.makedirs(place)
        for name, data in (("debuginfo", program.full if whole else program.debug), ("executable", program.stripped if executables else None)):
            if data is not None:
                with open(os.path.join(place, name), "wb") as f:
                    f.write(data)
    return {"id": "files", "type": "filesystem", "path": root, "layout": {"type": "unified"}}


class Client:
    """debuginfod-find of elfutils, with a cache of its own."""

    def __init__(self, work, *services, **environment):
        self.cache = tempfile.mkdtemp(dir=work)
        urls = " ".join(s if isinstance(s, str) else f"http://127.0.0.1:{s.port}" for s in services)
        self.environment = {**os.environ, "DEBUGINFOD_URLS": urls, "DEBUGINFOD_CACHE_PATH": self.cache, "LC_ALL": "C",
                            **{k: str(v) for k, v in environment.items()}}
        self.environment.pop("DEBUGINFOD_VERBOSE", None)

    def find(self, *words):
        """The contents of the file; None if the client has found none."""
        done = subprocess.run(["debuginfod-find", *words], env=self.environment, capture_output=True, text=True, timeout=300)
        self.error = done.stderr.strip()
        if done.returncode != 0:
            return None
        with open(done.stdout.strip(), "rb") as f:
            return f.read()

    def kept(self):
        """What the client remembers: names of files below its cache, but for its settings."""
        found = [os.path.relpath(os.path.join(d, f), self.cache) for d, _, files in os.walk(self.cache) for f in files]
        return sorted(f for f in found if not re.search("interval_s|max_unused|cache_miss", f))

    def forget(self):
        shutil.rmtree(self.cache)
        os.mkdir(self.cache)


def requests_of(service, path):
    """Requests that the service has answered, or refused, at a path, by its access log."""
    return [line for line in service.logged().splitlines() if f"path={path} " in line and "access" in line]
