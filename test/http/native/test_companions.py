"""Files that hold a part of a program's debug information, and what becomes of symcaches that were made without them."""
import glob, json, os, re, resource, shutil, subprocess, threading

from faults import BASE
from harness import Service, Upstream, equal, frames, http_source, request, wait_until


def split(work, objects):
    """A program whose debug information is in a package: (build id, program, package, address of a function)."""
    def run(*command):
        return subprocess.run(command, cwd=work, check=True, capture_output=True, text=True).stdout

    def read(name):
        with open(os.path.join(work, name), "rb") as f:
            return f.read()

    shutil.copy(os.path.join(objects.dir, "shapes.cc"), work)
    run("clang++", "-g", "-gdwarf-5", "-gsplit-dwarf", "-O1", "-no-pie", "-Wl,--build-id", "-o", "split", "shapes.cc")
    run("llvm-dwp-14", "-e", "split", "-o", "split.dwp")
    build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", "split"))[1]
    address = int(re.search(r"([0-9a-f]+) T _ZN6shapes3Box4areaEi", run("nm", "split"))[1], 16) - objects.load
    return build_id, read("split"), read("split.dwp"), address


def hang(handler):
    handler.server.stopping.wait(60)


def test_unreachable_package_marks_the_table_and_is_retried(work, objects):
    """After an error or a time-out the table is used, marked, and made anew; what is not there, or not for us, is not waited
    for."""
    build_id, program, package, address = split(work, objects)
    path = f"/{build_id}/executable"
    soon = {"caches": {"upgrade_fallback_after": "1s", "downloaded": {"retry_misses_after": "1s"}},
            "max_download_timeout": "1s", "head_timeout": "1s", "deny_list_enabled": False}
    module = objects.module(code_id=build_id, debug_id=None)
    sent = [{"instruction_addr": hex(BASE + address + offset), "adjust_instruction_addr": False} for offset in range(24)]

    def inlined(s):
        answer = s.symbolicate(request(module, sent, sources=[http_source(up.url)]))
        equal(answer["modules"][0]["debug_status"], "found")
        return "innermost" in {f.get("function", "").split("(")[0] for f in frames(answer)}

    def marked(s):
        found = []
        for name in glob.glob(os.path.join(s.cache, "symcaches", "**", "*.metadata"), recursive=True):
            with open(name) as f:
                found.append(json.load(f).get("incomplete", False))
        return found

    for answer, incomplete in ((404, False), (403, False), (500, True), (hang, True)):
        with Upstream({path: program, path + ".dwp": answer}) as up:
            up.stopping = threading.Event()
            try:
                with Service(work, soon) as s:
                    equal(inlined(s), False)
                    equal(marked(s), [incomplete], str(answer))
                    up.routes[path + ".dwp"] = package
                    if incomplete:
                        wait_until("the package to be used", lambda: inlined(s))
                        wait_until("the mark to go", lambda: marked(s) == [False])
            finally:
                up.stopping.set()


def test_missing_package_is_reported_by_the_candidate(work, objects):
    """The candidate says what its answers lack."""
    build_id, program, package, address = split(work, objects)
    path = f"/{build_id}/executable"
    body = [objects.module(code_id=build_id, debug_id=None), [{"instruction_addr": hex(BASE + address)}]]
    for routes, said in (({path: program}, "Inlined calls are missing: "), ({path: program, path + ".dwp": package}, "")):
        with Upstream(routes) as up, Service(work) as s:
            answer = s.symbolicate(request(*body, sources=[http_source(up.url)], options={"dif_candidates": True}))
            used = [c["debug"] for c in answer["modules"][0]["candidates"] if "debug" in c]
            equal([u["status"] for u in used], ["ok"])
            assert used[0].get("details", "").startswith(said) and bool(said) == ("details" in used[0]), used


def test_draining_keeps_no_table_without_its_package(work, objects):
    """When the service stops meanwhile, nothing is kept: the next one has the whole table at once."""
    build_id, program, package, address = split(work, objects)
    path = f"/{build_id}/executable"
    module = objects.module(code_id=build_id, debug_id=None)
    sent = [{"instruction_addr": hex(BASE + address + offset), "adjust_instruction_addr": False} for offset in range(24)]
    with Upstream({path: program, path + ".dwp": hang}) as up:
        up.stopping = threading.Event()
        body = request(module, sent, sources=[http_source(up.url)])
        try:
            with Service(work, args=["--shutdown-timeout", "100ms"]) as s:
                equal(s.symbolicate(body, "?timeout=0")["status"], "pending")
                wait_until("the package to be asked for", lambda: up.hits.get(path + ".dwp"))
        finally:
            up.stopping.set()
        equal(glob.glob(os.path.join(s.cache, "symcaches", "**", "*.metadata"), recursive=True), [])
        up.routes[path + ".dwp"] = package
        with Service(work, cache_dir=s.cache) as again:
            answer = again.symbolicate(body)
            assert "innermost" in {f.get("function", "").split("(")[0] for f in frames(answer)}, answer


def test_no_table_is_kept_without_its_package_for_want_of_descriptors(work, objects):
    """However few there are, no table without the package is used, or kept."""
    build_id, program, package, address = split(work, objects)
    path = f"/{build_id}/executable"
    module = objects.module(code_id=build_id, debug_id=None)
    sent = [{"instruction_addr": hex(BASE + address + offset), "adjust_instruction_addr": False} for offset in range(24)]
    refused = 0
    with Upstream({path: program, path + ".dwp": package}) as up, Service(work) as s:
        def check(answer):
            equal(answer["modules"][0]["debug_status"], "found")
            assert "innermost" in {f.get("function", "").split("(")[0] for f in frames(answer)}, answer

        for spare in range(16):
            body = request(module, sent, sources=[http_source(up.url, id=f"source-{spare}")])
            client = s.connection()
            client.request("GET", "/healthcheck")
            client.getresponse().read()
            used = set(map(int, os.listdir(f"/proc/{s.process.pid}/fd")))
            unused = [number for number in range(4096) if number not in used]
            resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE, (unused[spare], 4096))
            try:
                client.request("POST", "/symbolicate", json.dumps(body), {"Content-Type": "application/json"})
                answered = client.getresponse()
                status, answer = answered.status, json.loads(answered.read())
            except (ConnectionResetError, BrokenPipeError):
                status = None  # while it was idle it made room for others
            resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE, (4096, 4096))
            client.close()
            if status == 200:
                check(answer)
            elif status:
                equal((status, answer), (503, {"detail": "not enough memory for this request"}))
                refused += 1
            check(s.symbolicate(body))
    assert 0 < refused < 16, refused
