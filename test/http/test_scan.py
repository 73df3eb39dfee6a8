"""Scanned directories and packages are sources of every API."""
import glob, json, os, re, shutil, signal, subprocess, tarfile

import harness
from faults import BASE, metric
from harness import Service, Upstream, equal, frames, http_source, request, wait_until
from test_companions import split
from test_processes import all_up, several
from packages import PACKERS, ar, cpio, deb, link, programs, rpm, tar, zipped


def scan(path, **keys):
    return {"debuginfod": {"scan": [{"path": path, "interval": 0, **keys}]}}


def put(directory, name, data):
    path = os.path.join(directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".tmp", "wb") as f:
        f.write(data)
    os.rename(path + ".tmp", path)
    return path


def state(service, number=0):
    return json.loads(service.request("GET", "/status")[2])["scans"][number]


def idle(service, number=0):
    """The state after the first pass."""
    return wait_until("a pass", lambda: (now := state(service, number))["last_pass"] and now["state"] == "idle" and now)


def again(service, condition):
    """Another pass, at whose end the condition holds."""
    service.process.send_signal(signal.SIGHUP)
    return wait_until("another pass", lambda: (now := state(service))["state"] == "idle" and condition(now) and now)


def symbolicated(service, program):
    module = service.symbolicate({"stacktraces": [{"frames": [{"instruction_addr": hex(0x10000000 + program.address + 1)}]}],
                                  "modules": [program.module()], "options": {"dif_candidates": True}})
    frame = frames(module)[0]
    if frame.get("function") == program.function:
        equal((frame["abs_path"], frame["lineno"]), (program.source, 2))
    return frame.get("function"), module["modules"][0]


def served(service, program, debug=True):
    name, what = ("_.debug", "elf-buildid-sym") if debug else ("x", "elf-buildid")
    status, _, body = service.request("GET", f"/proxy/{name}/{what}-{program.build_id}/{name}")
    return body if status == 200 else status


def found(service, program):
    equal(symbolicated(service, program)[0], program.function, program.name)
    equal(served(service, program) == program.debug, True, program.name)


def test_members_of_all_kinds_of_packages_are_found(work, objects):
    made = programs(work, 3 * len(PACKERS) + 5)
    rest, last = iter(made), made[-1]
    directory = os.path.join(work, "mirror")
    for packer in PACKERS:
        end = "." + packer if packer else ""
        take = lambda: {"doc/README": b"text" * 5000, (p := next(rest)).path: p.debug, "z": b"\0" * 20000}
        put(directory, f"pool/a{end}.deb", deb(take(), packer=packer))
        put(directory, f"pool/b{end}.rpm", rpm(take(), packer=packer))
        put(directory, f"pool/c.tar{end}", PACKERS[packer](tar(take())))
    take = lambda: {"a/" * 60 + "README": b"text", (p := next(rest)).path: p.debug}
    put(directory, "d.zip", zipped(take()))
    put(directory, "e.cpio.gz", PACKERS["gz"](cpio(take())))
    put(directory, "f.tar", tar(take(), tarfile.PAX_FORMAT))
    put(directory, "builds/plain.debug", next(rest).debug)
    put(directory, "builds/notes.txt", b"nothing to see\n" * 100)
    made.remove(last)
    with Service(work, scan(directory)) as s:
        now = idle(s)
        equal((now["failed"], now["skipped"], now["last_error"]), (0, 1, None))
        equal(now["new_files"], len(made))
        for program in made:
            found(s, program)
        location = symbolicated(s, made[0])[1]["candidates"][0]["location"]
        equal(location, f"file://{directory}/pool/a.deb!/{made[0].path}")
        equal(served(s, last), 404)


def test_programs_are_found_by_debug_id_and_file_id(work, objects):
    directory = os.path.join(work, "builds")
    put(directory, "bin/shapes", objects.full)
    with Service(work, scan(directory)) as s:
        idle(s)
        address = objects.address("main")
        for module in ({"debug_id": objects.debug_id}, {"code_id": objects.build_id}, {"code_id": objects.build_id.upper(), "debug_id": objects.debug_id}):
            answer = s.symbolicate({"stacktraces": [{"frames": [{"instruction_addr": hex(0x10000000 + address)}]}],
                                    "modules": [{"type": "elf", "image_addr": "0x10000000", "image_size": 0x100000, **module}]})
            equal(frames(answer)[-1].get("function"), "main", module)
        import hashlib
        data = objects.full
        file_id = hashlib.sha256(data[:4096] + data[-4096:] + len(data).to_bytes(8, "big")).hexdigest()[:32]
        answer = s.request("GET", f"/proxy/x/elf-buildid-{file_id}/x")
        equal((answer[0], answer[2] == data), (200, True))


def test_what_is_hostile_in_packages_does_no_harm(work, objects):
    made = programs(work, 8)
    directory, outside = os.path.join(work, "mirror"), put(work, "secret", made[0].debug)
    good = {made[1].path: made[1].debug}
    lie = bytearray(tar({"big.debug": made[2].debug}))
    lie[124:136] = b"77777777777\0"
    lie[148:156] = b"%06o\0 " % (sum(lie[:148]) + 8 * 32 + sum(lie[156:512]))
    put(directory, "lie.tar", bytes(lie))
    put(directory, "climb.tar.xz", PACKERS["xz"](tar({"../../../tmp/up.debug": made[3].debug, "a/../../b": made[3].debug, **good})))
    put(directory, "links.tar", tar({"l.debug": link(outside), "h.debug": link("/etc/passwd", tarfile.LNKTYPE), "d": link("/", tarfile.DIRTYPE)}))
    put(directory, "nested.tar", tar({"inner.tar": tar({made[4].path: made[4].debug})}))
    subprocess.run("head -c 300000000 /dev/zero | gzip -9 >bomb.tar.gz", shell=True, cwd=directory, check=True)
    subprocess.run(["sh", "-c", "(cat; head -c 300000000 /dev/zero) | zstd -q -3 --long=27 >zeros.tar.zst"], cwd=directory, check=True,
                   input=zeros_header("zeros.debug", 300_000_000, made[2].debug))
    put(directory, "cut.deb", deb({made[5].path: made[5].debug, "z": os.urandom(100000)}, packer="")[:-60000])
    put(directory, "torn.tar.xz", PACKERS["xz"](tar({made[6].path: made[6].debug, "z": os.urandom(500000)}))[:-200000])
    put(directory, "noise.deb", b"!<arch>\ndebian-binary   " + os.urandom(5000))
    put(directory, "noise.rpm", b"\xed\xab\xee\xdb" + os.urandom(5000))
    put(directory, "noise.zip", b"PK\3\4" + os.urandom(5000))
    put(directory, "noise.xz", b"\xfd7zXZ\0" + os.urandom(5000))
    put(directory, "empty.deb", ar({"debian-binary": b"2.0\n"}))
    os.symlink(outside, os.path.join(directory, "link.debug"))
    os.symlink("/", os.path.join(directory, "root"))
    os.mkfifo(os.path.join(directory, "fifo.deb"))
    with Service(work, scan(directory)) as s:
        now = idle(s)
        found(s, made[1])
        for i in (0, 2, 3, 4):
            equal(served(s, made[i]), 404, f"program {i}")
        found(s, made[6])
        equal(now["failed"] > 0, True)
        equal(s.process.poll(), None)
        equal(os.path.exists("/tmp/up.debug"), False)
        equal(s.leftovers(), [])


def zeros_header(name, size, begin):
    """The header of a tar member of that size, and how it begins."""
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT) + begin


def test_passes_find_what_is_new_changed_and_gone(work, objects):
    made = programs(work, 4)
    directory = os.path.join(work, "mirror")
    put(directory, "a.deb", deb({made[0].path: made[0].debug}))
    put(directory, "b.tar", tar({made[1].path: made[1].debug}))
    with Service(work, scan(directory)) as s:
        idle(s)
        found(s, made[0])
        equal(symbolicated(s, made[2])[0], None)
        put(directory, "a.deb", deb({made[2].path: made[2].debug}))
        os.remove(os.path.join(directory, "b.tar"))
        put(directory, "sub/c.tar.zst", PACKERS["zst"](tar({made[3].path: made[3].debug})))
        now = again(s, lambda now: now["new_files"] == 2 and now["files"] == 2)
        equal(now["indexed_files"], 2)
        found(s, made[2])
        found(s, made[3])
        equal([symbolicated(s, made[i])[1]["candidates"][0]["location"] for i in (0, 1)], ["No object files listed on this source"] * 2)
        equal(served(s, made[1]), 404)
        again(s, lambda now: now["new_files"] == 0 and now["done"] == 2)
        shutil.rmtree(directory)
        now = again(s, lambda now: now["last_error"])
        equal("cannot read the scanned directory" in now["last_error"], True, now["last_error"])
        equal(now["indexed_files"], 2, "a directory that is not there leaves the index as it was")


def test_filters_choose_files(work, objects):
    made = programs(work, 4)
    directory = os.path.join(work, "mirror")
    put(directory, "main/a.deb", deb({made[0].path: made[0].debug}))
    put(directory, "main/b.tar", tar({made[1].path: made[1].debug}))
    put(directory, "old/c.deb", deb({made[2].path: made[2].debug}))
    put(directory, "main/d.debug", made[3].debug)
    for keys, expected in (({"kinds": ["deb"]}, [0, 2]), ({"kinds": ["files", "tar"]}, [1, 3]), ({"include": r"/main/.*\.deb$"}, [0]),
                           ({"exclude": "/old/|debug"}, [0, 1]), ({"include": "(a+)+$", "exclude": ".deb"}, [])):
        with Service(work, scan(directory, **keys)) as s:
            idle(s)
            equal([i for i in range(4) if served(s, made[i]) == made[i].debug], expected, keys)


def test_wrong_keys_are_reported(work, objects):
    for entry, expected in (({"path": "relative"}, "is not an absolute path"), ({"path": "/x", "include": "("}, "is not a regular expression"),
                            ({"path": "/x", "kinds": ["exe"]}, "is not one of files deb rpm tar zip"), ({"path": "/x", "interval": "soon"}, "is not a duration"), ({}, "path")):
        try:
            Service(work, {"debuginfod": {"scan": [entry]}}).stop()
        except AssertionError as error:
            equal(expected in str(error) and "debuginfod.scan[0]" in str(error), True, error)
        else:
            raise AssertionError(f"{entry} was accepted")


def test_an_ended_scan_goes_on_after_a_kill(work, objects):
    made = programs(work, 20)
    directory, cache = os.path.join(work, "mirror"), os.path.join(work, "cache")
    for i, program in enumerate(made):
        put(directory, f"{i:03}.deb", deb({program.path: program.debug, "z": os.urandom(300000)}))
    s = Service(work, scan(directory), cache_dir=cache)
    wait_until("some records", lambda: len(glob.glob(cache + "/scan_file/v*/*/*/*.metadata")) > 5)
    s.process.kill()
    s.process.wait()
    records = len(glob.glob(cache + "/scan_file/v*/*/*/*.metadata"))
    equal(records < 20, True, "it was killed in the middle")
    with Service(work, scan(directory), cache_dir=cache) as s:
        now = idle(s)
        equal((now["indexed_files"], now["failed"]), (20, 0))
        metrics = s.request("GET", "/metrics")[2].decode()
        converted = sum(int(n) for n in re.findall(r'symloom_conversions_total\{[^}]*scan_file[^}]*\} (\d+)', metrics))
        equal(converted <= 20 - records + 2, True, (converted, records))
        found(s, made[0])
        found(s, made[19])
    index = glob.glob(cache + "/scan/*.slix")
    equal(len(index), 1)
    with Service(work, scan(directory), cache_dir=cache) as s: # the index serves at once, and is not made anew
        found(s, made[10])
    with open(index[0], "r+b") as f:
        f.write(b"damage")
    with Service(work, scan(directory), cache_dir=cache) as s:
        idle(s)
        found(s, made[10])


def test_all_processes_use_the_index(work, objects):
    made = programs(work, 2)
    directory = os.path.join(work, "mirror")
    put(directory, "a.deb", deb({made[0].path: made[0].debug}))
    with several(work, **scan(directory)) as s:
        all_up(s, 2)
        for program, name in ((made[0], "a.deb"), (made[1], "b.deb")):
            put(directory, name, deb({program.path: program.debug}))
            s.process.send_signal(signal.SIGHUP)
            good = 0

            def answers():
                nonlocal good
                good = good + 1 if served(s, program) == program.debug else 0
                return good >= 20 # every connection may come to another process

            wait_until("the index in both processes", answers)


def test_members_in_front_of_the_wanted_one_are_kept(work, objects):
    """One reading of a package that can only be read from its beginning serves several requests."""
    made = programs(work, 6)
    directory = os.path.join(work, "mirror")
    path = put(directory, "a.tar.xz", PACKERS["xz"](tar({p.path: p.debug for p in made})))
    with Service(work, scan(directory)) as s:
        idle(s)
        equal(served(s, made[5]) == made[5].debug, True)
        os.rename(path, path + ".gone")
        for program in made[:5]:
            equal(served(s, program) == program.debug, True, program.name)


def test_a_package_that_has_changed_since_is_no_answer(work, objects):
    made = programs(work, 2)
    directory = os.path.join(work, "mirror")
    put(directory, "a.tar", tar({made[0].path: made[0].debug}))
    with Service(work, scan(directory)) as s:
        idle(s)
        put(directory, "a.tar", tar({made[0].path: made[1].debug}))
        module = symbolicated(s, made[0])[1]
        equal(module["debug_status"], "fetching_failed")
        equal("has changed since it was scanned" in module["candidates"][0]["download"]["details"], True)


def test_supplementary_files_are_found_in_other_packages(work, objects):
    """dwz moves what several debug files share into one file, which has a build id of its own."""
    made = programs(work, 2)
    shared = made[0].directory
    subprocess.run(["dwz", "-m", "common.debug", "-M", "/usr/lib/debug/.dwz/common.debug", *(f"{p.name}.debug" for p in made)], cwd=shared, check=True, capture_output=True)
    read = lambda name: open(os.path.join(shared, name), "rb").read()
    directory = os.path.join(work, "mirror")
    for p in made:
        p.debug = read(f"{p.name}.debug")
        put(directory, f"{p.name}.deb", deb({p.path: p.debug}))
    put(directory, "common.deb", deb({"usr/lib/debug/.dwz/common.debug": read("common.debug")}))
    with Service(work, scan(directory)) as s:
        idle(s)
        for p in made:
            found(s, p)


def test_requests_are_answered_while_packages_are_read(work, objects):
    made = programs(work, 2)
    directory, builds = os.path.join(work, "mirror"), os.path.join(work, "builds")
    os.makedirs(directory)
    put(builds, "a.debug", made[0].debug)
    packed = PACKERS["bz2"](zeros_header("z.debug", 1 << 20, made[1].debug) + os.urandom(1 << 20))
    for i in range(40): # each takes a good part of a second to read
        put(directory, f"{i}.tar.bz2", packed)
    config = {"debuginfod": {"scan": [{"path": builds, "interval": 0}, {"path": directory, "interval": 0}]}}
    with Service(work, config) as s:
        idle(s)
        found(s, made[0])
        equal(state(s, 1)["state"], "reading")


def test_metadata_finds_files_by_their_path(work, objects):
    made = programs(work, 3)
    directory = os.path.join(work, "mirror")
    put(directory, "a.deb", deb({made[0].path: made[0].debug}))
    put(directory, "b.rpm", rpm({"usr/bin/tool": made[1].stripped}))
    put(directory, "c/plain", made[2].stripped)

    def ask(service, key, value):
        status, _, body = service.request("GET", f"/metadata?key={key}&value={value}")
        return json.loads(body) if status == 200 else status

    tool = {"type": "executable", "buildid": made[1].build_id, "file": "/usr/bin/tool", "archive": "b.rpm"}
    debug = {"type": "debuginfo", "buildid": made[0].build_id, "file": "/" + made[0].path, "archive": "a.deb"}
    plain = {"type": "executable", "buildid": made[2].build_id, "file": "/c/plain"}
    other = {"type": "executable", "buildid": "ab" * 20, "file": "/usr/bin/tool", "archive": "z.rpm"}
    answer = {"/metadata": json.dumps({"results": [{**other, "more": [1]}, {"type": 3}], "complete": True}).encode()}
    with Service(work, scan(directory)) as s:
        idle(s)
        for key, value, expected in (("file", "/usr/bin/tool", [tool]), ("file", "/c/plain", [plain]), ("glob", "/usr/*/tool", [tool]), ("file", "/usr/*/tool", []),
                                     ("glob", "/*/tool", []), ("glob", "/usr/lib/debug/.build-id/*/*.debug", [debug]), ("file", "/nothing", [])):
            equal(ask(s, key, value), {"results": expected, "complete": True}, (key, value))
        equal([ask(s, "buildid", "/x"), ask(s, "file", "")], [400, 400])
        equal(s.request("GET", "/metadata")[0], 400)
    with Upstream(answer) as up, Service(work, {**scan(directory), "sources": [http_source(up.url)]}) as s:
        idle(s)
        equal(ask(s, "file", "/usr/bin/tool"), {"results": [tool, other], "complete": True})
        for route in (500, b"{", b'{"results":[]}'):
            up.routes["/metadata"] = route
            equal(ask(s, "file", "/usr/bin/tool"), {"results": [tool], "complete": False}, route)
        up.routes["/metadata"] = 404
        equal(ask(s, "file", "/usr/bin/tool"), {"results": [tool], "complete": True}, "a server that does not know the route")


def test_debuginfod_serves_sources_out_of_source_packages(work, objects):
    """The text of a program is in the archive that its package was built from; `debuginfod-find` gets it by the path in the debug file."""
    made, directory = programs(work, 1)[0], os.path.join(work, "mirror")
    text = open(made.source, "rb").read()
    put(directory, "app_1.0-1_amd64.deb", deb({"usr/bin/app": made.stripped}, "app"))
    put(directory, "app-dbgsym_1.0-1_amd64.deb", deb({made.path: made.debug}, "app-dbgsym", source="app"))
    below = made.source.lstrip("/")
    put(directory, "app_1.0.orig.tar.xz", PACKERS["xz"](tar({f"app-1.0/{below}": text, "app-1.0/README": b"read me\n"})))
    with Service(work, scan(directory)) as s:
        idle(s)
        status, headers, body = s.request("GET", f"/buildid/{made.build_id}/source{made.source}")
        equal((status, body), (200, text))
        equal(s.request("GET", f"/buildid/{made.build_id}/source/nowhere/else.c")[0], 404)
        env = {**os.environ, "DEBUGINFOD_URLS": f"http://127.0.0.1:{s.port}", "DEBUGINFOD_CACHE_PATH": os.path.join(work, "found")}
        out = subprocess.run(["debuginfod-find", "source", made.build_id, made.source], env=env, capture_output=True, text=True)
        equal((out.returncode, open(out.stdout.strip(), "rb").read()), (0, text), out.stderr)
        status, headers, body = s.request("GET", f"/buildid/{made.build_id}/debuginfo")
        equal((status, body, headers.get("x-debuginfod-archive"), headers.get("x-debuginfod-file")),
              (200, made.debug, "app-dbgsym_1.0-1_amd64.deb", "/" + made.path))


def test_the_command_makes_the_first_pass(work, objects):
    made = programs(work, 1)
    directory, cache = os.path.join(work, "mirror"), os.path.join(work, "cache")
    put(directory, "a.deb", deb({made[0].path: made[0].debug}))
    put(directory, "notes", b"text\n" * 50)
    run = lambda *words: subprocess.run([harness.SYMLOOM, "scan", "--log-level", "error", *words], capture_output=True, text=True)
    summary = json.loads(run("--cache-dir", cache, "--json", directory).stdout)[0]
    equal([summary[key] for key in ("files", "read", "packages", "skipped", "failed", "ids", "error")], [2, 1, 1, 1, 0, 1, None])
    text = run("--cache-dir", cache, directory).stdout
    equal(text.startswith(f"{directory}: 2 files, 0 read (0 packages), 1 without debug files, 0 failed\n  index: 1 ids of 1 files, "), True, text)
    with Service(work, scan(directory), cache_dir=cache) as s: # the index of the command serves
        equal(state(s)["ids"], 1)
        found(s, made[0])
    none = run("--cache-dir", cache)
    equal((none.returncode, "name a directory" in none.stderr), (2, True), none.stderr)
    gone = run("--cache-dir", cache, os.path.join(work, "gone"))
    equal((gone.returncode, "cannot read the directory" in gone.stderr), (1, True), gone.stderr)


def test_a_member_larger_than_the_client_wants_is_not_taken_out(work, objects):
    """The index tells its size: 406 without reading the package."""
    made, directory = programs(work, 1)[0], os.path.join(work, "mirror")
    put(directory, "a.deb", deb({made.path: made.debug}))
    put(directory, "b.rpm", rpm({"usr/bin/tool": made.stripped}))
    with Service(work, scan(directory, kinds=["deb", "rpm"])) as s:
        idle(s)
        path = f"/buildid/{made.build_id}/"
        ask = lambda part, size: s.request("GET", path + part, headers={"X-DEBUGINFOD-MAXSIZE": str(size)})
        taken_out = lambda: sum(map(float, re.findall(r"scan_extract_seconds_count.* (\S+)", s.request("GET", "/metrics")[2].decode())))
        for part, size in (("debuginfo", len(made.debug)), ("executable", len(made.stripped))):
            for limit in (size - 1, 10, 0):
                status, _, body = ask(part, limit)
                equal((status, body), (406, b"File too large, max size=%d" % limit), part)
        equal((taken_out(), metric(s, 'symloom_debuginfod_requests_total{type="executable",result="too_large"}')), (0, 3))
        equal(ask("debuginfo", len(made.debug))[::2], (200, made.debug))
        equal(ask("executable", len(made.stripped))[::2], (200, made.stripped))
        equal(ask("debuginfo", 10)[0], 406, "it is in the cache now")
        equal(taken_out() > 0, True)
        equal(ask("section/.text", 10)[0], 406)


def test_split_debug_information_of_a_package_is_found_beside_its_program(work, objects):
    """A DWARF package has no id: it belongs to the file whose name it has, in the same package or directory."""
    build_id, program, package, address = split(work, objects)
    directory = os.path.join(work, "mirror")
    put(directory, "a.deb", deb({"usr/lib/debug/usr/bin/split.debug": program, "usr/lib/debug/usr/bin/split.debug.dwp": package}))
    put(directory, "b.deb", deb({"opt/other.dwp": package}))

    def inlined(s):
        module = objects.module(code_id=build_id, debug_id=None)
        sent = [{"instruction_addr": hex(BASE + address + offset), "adjust_instruction_addr": False} for offset in range(24)]
        return "innermost" in {f.get("function", "").split("(")[0] for f in frames(s.symbolicate(request(module, sent)))}

    for name in "a.deb", "split", "split.debug":
        with Service(work, scan(directory)) as s:
            idle(s)
            equal(inlined(s), True, name)
        shutil.rmtree(directory)
        if name == "a.deb":
            put(directory, "bin/split", program)
            put(directory, "bin/split.dwp", package)
        else:
            put(directory, "bin/split.debug", program)
            put(directory, "bin/split.dwp", package)
    put(directory, "bin/split.dwp", b"no package")
    put(directory, "else/split.dwp", package)
    with Service(work, scan(directory)) as s:
        idle(s)
        equal(inlined(s), False)
