"""SymCache files for Windows Performance Analyzer: which version, who waits, and transcoders that misbehave."""
import concurrent.futures, hashlib, os, re, subprocess

import harness
from faults import metric
from harness import Service, Upstream, equal, http_source, wait_until

NAME = "ntdll.pdb"


def make_pdb(work):
    """A PDB file and its id."""
    source = os.path.join(work, "p.c")
    with open(source, "w") as f:
        f.write("int bare(int a) { return a + 1; }\nint mainCRTStartup(void) { return bare(1); }\n")

    def run(*command):
        return subprocess.run(command, cwd=work, check=True, capture_output=True, text=True).stdout

    run("clang-14", "--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-O1", "-c", "p.c", "-o", "p.obj")
    run("lld-link-14", "/nodefaultlib", "/debug", "/subsystem:console", "/entry:mainCRTStartup", "/pdb:p.pdb", "/out:p.exe", "p.obj")
    guid = re.search(r"GUID: \{([0-9A-F-]+)\}", run("llvm-pdbutil-14", "dump", "--summary", "p.pdb")).group(1)
    with open(os.path.join(work, "p.pdb"), "rb") as f:
        return f.read(), guid.replace("-", "")


def program(work, body, version="3.2.0"):
    """A transcoder: a shell script that knows $pdb, $name and $out, where the result belongs; it notes each run."""
    path = os.path.join(work, f"transcoder-{len(os.listdir(work))}.sh")
    with open(path, "w") as f:
        f.write(f"""#!/bin/sh
[ "$1" = -pdb ] || exit 9
echo x >> {work}/runs
pdb=$2 name=$(basename "$2")
id=$(cat {work}/id)
out=$_NT_SYMCACHE_PATH/$name/$id/$name-v{version}.symcache
mkdir -p "$(dirname "$out")"
{body}
""")
    os.chmod(path, 0o755)
    return {"version": version, "command": [path]}


def runs(work):
    try:
        with open(os.path.join(work, "runs")) as f:
            return len(f.read().split())
    except FileNotFoundError:
        return 0


class Server:
    def __init__(self, work, transcoders, cache_dir=None, source=None, **config):
        self.work = work
        if not os.path.exists(os.path.join(work, "p.pdb")):
            make_pdb(work)
        with open(os.path.join(work, "p.pdb"), "rb") as f:
            self.pdb = f.read()
        self.guid = subprocess.run(["llvm-pdbutil-14", "dump", "--summary", os.path.join(work, "p.pdb")], check=True,
                                   capture_output=True, text=True).stdout
        self.guid = re.search(r"GUID: \{([0-9A-F-]+)\}", self.guid).group(1).replace("-", "")
        with open(os.path.join(work, "id"), "w") as f:
            f.write(self.guid + "1")
        self.path = f"/{NAME}/{self.guid}/1"
        self.up = Upstream({f"/{NAME}/{self.guid}1/{NAME}": self.pdb})
        source = http_source(self.up.url, layout={"type": "symstore"}, **(source or {}))
        self.service = Service(work, {"sources": [source], "ms_symcache": {"transcoders": transcoders, **config.pop("symcache", {})},
                                      **config}, cache_dir)

    def __enter__(self):
        self.up.__enter__()
        self.service.__enter__()
        return self

    def __exit__(self, *what):
        self.service.__exit__(*what)
        self.up.__exit__(*what)

    def get(self, version, path=None, method="GET", **fields):
        headers = {k.replace("_", "-"): v for k, v in fields.items()}
        return self.service.request(method, f"/v{version}{path or self.path}", headers=headers)

    def answer(self, *args, **fields):
        """Status, the version that was served or the seconds to wait, body."""
        status, headers, body = self.get(*args, **fields)
        kind = headers.get("Content-Type") or ""
        version = kind.partition("version=")[2] if kind.startswith("application/vnd.ms-symcache") else None
        return status, version or headers.get("Retry-After"), body

    def wait(self, version, path=None, **fields):
        found = []

        def ready():
            found[:] = [self.answer(version, path, **fields)]
            return found[0][0] != 404 or found[0][1] is None

        wait_until("the file", ready)
        return found[0]


GOOD = 'printf "of %s" "$name" > "$out"'


def test_client_waits_for_the_version_it_needs(work, objects):
    with Server(work, [program(work, GOOD)]) as s:
        equal(s.answer("3.5.0", If_Version_Exceeds="3.2.0"), (304, None, b""))
        equal((s.answer("2.9.0"), runs(work)), ((404, None, b""), 0))
        equal(s.answer("3.1.0", Accept_Retry_After="true"), (404, "1", b""))
        equal(s.wait("3.2.0"), (200, "3.2.0", b"of ntdll.pdb"))
        equal(runs(work), 1)
        for version, fields, expected in [
                ("3.1.0", {}, 200), ("4.0.0", {}, 200), ("3.5.0", {}, 200), ("3.5.0", {"If_Version_Exceeds": "3.2.0"}, 304),
                ("3.5.0", {"If_Version_Exceeds": "3.1.0"}, 200), ("2.9.0", {}, 404), ("1000.1.0", {}, 404)]:
            equal(s.answer(version, **fields)[0], expected, (version, fields))
        for value, text in [("3.5.0", "value must be less than the requested version."), ("x", "value is not a valid version."),
                            ("0.1.2", "value is an unsupported version number.")]:
            status, _, body = s.get("3.5.0", If_Version_Exceeds=value)
            equal((status, body.decode()), (400, "The If-Version-Exceeds header " + text))
        guid = s.guid.lower()
        dashed = f"{guid[:8]}-{guid[8:12]}-{guid[12:16]}-{guid[16:20]}-{guid[20:]}"
        for path in (f"/NTDLL.pdb/{guid}", f"/{NAME}/{dashed}/1", f"/{NAME}/%7B{dashed}%7D"):
            equal(s.answer("3.2.0", path)[:2], (200, "3.2.0"), path)
        equal(runs(work), 1)
        for path, status in ((f"/..%2fx.pdb/{guid}", 400), (f"/a%5Cb/{guid}", 400), (f"/a%01/{guid}", 400), (f"/{NAME}/xyz", 404),
                             (f"/{NAME}/{guid}/x", 404), (f"/{NAME}/{guid}/4294967296", 404)):
            equal(s.get("3.2.0", path)[0], status, path)
        for version in ("3.2", "x", "99999.0.0", "3.256.0", "3.2.0.1"):
            equal(s.get(version)[0], 404, version)
        status, headers, body = s.get("3.2.0", Range="bytes=3-7")
        equal((status, body), (206, b"ntdll"))
        equal(s.get("3.2.0", If_None_Match=headers["ETag"])[0], 304)
        equal(s.get("3.2.0", method="HEAD")[1]["Content-Length"], "12")


def test_waiting_clients_share_one_transcoding(work, objects):
    with Server(work, [program(work, "sleep 0.3; " + GOOD)]) as s, concurrent.futures.ThreadPoolExecutor(4) as pool:
        equal([f.result() for f in [pool.submit(s.answer, "3.1.0") for _ in range(4)]], [(200, "3.2.0", b"of ntdll.pdb")] * 4)
        equal((runs(work), max(s.up.hits.values())), (1, 1))
        told = s.service.request("GET", "/metrics")[2].decode()
        for line in ('symloom_transcodes_total{version="3.2.0",result="ok"} 1\n', 'symloom_transcode_seconds_count{version="3.2.0"} 1\n',
                     "symloom_transcodes_queued 0\n"):
            assert line in told, line


def test_file_ptr_leads_to_the_pdb(work, objects):
    """A server that has the PDB's place alone."""
    share = os.path.join(work, "share")
    os.mkdir(share)
    with Server(work, [program(work, GOOD)], source={"file_ptr": True}, file_ptr={"roots": [share]}) as s:
        with open(os.path.join(share, "kept.pdb"), "wb") as f:
            f.write(s.pdb)
        s.up.routes = {f"/{NAME}/{s.guid}1/file.ptr": f"PATH:{share}/kept.pdb\r\n".encode()}
        equal(s.answer("3.1.0"), (200, "3.2.0", b"of ntdll.pdb"))


def test_missing_pdb_is_not_found(work, objects):
    other = f"/{NAME}/{32 * 'A'}/1"
    with Server(work, [program(work, GOOD, "4.0.0")]) as s:
        equal(s.answer("3.2.0"), (404, None, b""))
        equal(s.answer("4.1.0", other)[:2], (404, "1"))
        equal(s.wait("4.1.0", other), (404, None, b""))
        equal(s.answer("4.1.0", f"/{NAME}/{s.guid}/7")[:2], (404, "1"))
        s.up.routes[f"/{NAME}/{32 * 'A'}1/{NAME}"] = s.pdb  # which has another id
        equal(s.answer("4.0.0", other)[0], 404)
        hits = sum(s.up.hits.values())
        cache = s.service.cache
    with Server(work, [program(work, GOOD, "4.0.0")], cache) as s:
        equal((s.answer("4.1.0", other), sum(s.up.hits.values())), ((404, None, b""), 0))
    with Server(work, [program(work, GOOD)]) as s:
        s.up.routes[f"/{NAME}/{32 * 'A'}1/{NAME}"] = s.pdb
        equal((s.answer("3.1.0", other)[0], runs(work)), (404, 0), "the id of the file counts")
    assert hits


def test_misbehaving_transcoders_give_not_found(work, objects):
    cases = {"hangs": "sleep 100", "forks": "sleep 99 & (sleep 98 & sleep 97); sleep 100", "fails": GOOD + "; exit 3",
             "crashes": "kill -SEGV $$", "nothing": "true", "another name": 'printf x > "$out.x"',
             "too much": 'head -c 3000000 /dev/zero > "$out"', "a directory": 'mkdir "$out"'}
    for what, body in cases.items():
        endless = what in ("hangs", "forks")
        limits = {"timeout": "300ms" if endless else "30s", "max_output": 1 << 20}
        with Server(work, [program(work, body)], symcache=limits) as s:
            before = runs(work)
            equal(s.answer("3.1.0"), (404, None, b""), what)
            equal(s.answer("3.2.0"), (404, None, b""), what)
            equal(metric(s.service, 'symloom_transcodes_total{version="3.2.0",result="malformed"}'), 1, what)
            assert endless or runs(work) - before == 1, what  # where the time is over early, it may not have come to its first line
            wait_until("the log", lambda: "cannot transcode a PDB" in s.service.logged())
            equal("the transcoder timed out" in s.service.logged(), endless, what)
            equal([n for n in os.listdir(os.path.join(s.service.cache, "tmp")) if "symcache-" in n], [])
    with Server(work, [program(work, 'd=$(dirname "$out"); mv "$d" "$d.x"; l=$(echo $id | tr A-Z a-z); mv "$d.x" "$(dirname $d)/$l"; '
                                     'printf ok > "$(dirname $d)/$l/NTDLL.PDB-V3.2.0.SymCache"; echo said')]) as s:
        equal(s.answer("3.1.0"), (200, "3.2.0", b"ok"), "another case")
        wait_until("what it says", lambda: "said" in s.service.logged())


def test_transcoder_ends_with_the_service(work, objects):
    with Server(work, [program(work, f"echo $$ > {work}/pid; sleep 100")]) as s:
        equal(s.answer("3.2.0")[:2], (404, "1"))
        pid = int(wait_until("a run", lambda: os.path.exists(f"{work}/pid") and open(f"{work}/pid").read().strip()))
        s.service.stop()
        wait_until("its end", lambda: not os.path.exists(f"/proc/{pid}"))


def test_older_version_is_served_while_a_newer_is_made(work, objects):
    with Server(work, [program(work, GOOD, "3.1.0")]) as s:
        equal(s.answer("3.1.0")[:2], (200, "3.1.0"))
        cache = s.service.cache
    with Server(work, [program(work, "sleep 0.2; printf new > $out", "3.3.0")], cache) as s:
        equal(s.answer("3.1.0"), (200, "3.1.0", b"of ntdll.pdb"))
        equal(s.answer("3.5.0", If_Version_Exceeds="3.1.0")[0], 304)
        wait_until("the new one", lambda: s.answer("3.1.0") == (200, "3.3.0", b"new"))


def test_access_is_checked_and_symcachegen_works(work, objects):
    keys = {"require": ["symcache"], "keys": [{"id": "w", "sha256": hashlib.sha256(b"key").hexdigest(), "rights": ["symcache"]}]}
    own = {"version": "1000.1.0", "command": [harness.SYMLOOM, "symcachegen"]}
    equal(subprocess.run([harness.SYMLOOM, "symcachegen", "--version"], capture_output=True, text=True).stdout, "1000.1.0\n")
    limits = {"max_memory": 1 << 62}  # under a sanitizer the program needs a large address space
    with Server(work, [own, program(work, GOOD)], auth=keys, symcache=limits) as s:
        status, headers, body = s.get("3.2.0")
        equal((status, body), (401, b""))
        equal(headers["WWW-Authenticate"], 'Bearer realm="symloom", Basic realm="symloom"')
        path = f"/p.pdb/{s.guid}/1"
        s.up.routes[f"/p.pdb/{s.guid}1/p.pdb"] = s.pdb
        status, version, body = s.wait("1000.1.0", path, Authorization="Bearer key")
        equal((status, version, body[:4]), (200, "1000.1.0", b"SLSC"))
        with open(os.path.join(work, "made"), "wb") as f:
            f.write(body)
        found = subprocess.run([harness.SYMLOOM, "lookup", "-e", os.path.join(work, "made"), "-f", "0x1000"], capture_output=True, text=True)
        assert "bare" in found.stdout, found
        equal(s.answer("3.1.0", Authorization="Bearer key")[:2], (200, "3.2.0"))


def test_route_is_missing_without_transcoders(work, objects):
    with Service(work, {}) as s:
        equal(s.request("GET", f"/v3.2.0/{NAME}/{32 * 'A'}/1")[::2], (404, b""))
