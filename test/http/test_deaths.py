"""How the service dies, what it says then, and what the next one makes of it."""
import glob, json, os, re, signal, struct, subprocess

import harness
from harness import Service, equal, wait_until

BIG = "9EAE93A0B01240F5BB29110A8EFB2B030"
SMALL = "9EAE93A0B01240F5BB29110A8EFB2B031"
THREADS = {"conversion": {"isolation": "thread"}}  # else the process that has the keys converts nothing


def breakpad(directory, name, debug_id, functions):
    path = os.path.join(directory, name, debug_id, name + ".sym")
    os.makedirs(os.path.dirname(path))
    with open(path, "w") as f:
        f.write(f"MODULE Linux x86_64 {debug_id} {name}\nFILE 0 a.c\n")
        for i in range(functions):
            f.write(f"FUNC {i * 64:x} 40 0 function_{i}\n" + "".join(f"{i * 64 + k:x} 4 {i + k} 0\n" for k in range(0, 64, 4)))


def source(directory):
    return {"id": "files", "type": "filesystem", "path": directory, "layout": {"type": "native"}, "filters": {"filetypes": ["breakpad"]}}


def request(name, debug_id):
    return {"modules": [{"type": "elf", "debug_id": debug_id, "debug_file": name, "code_file": name, "image_addr": "0x1000"}],
            "stacktraces": [{"frames": [{"instruction_addr": "0x1010"}]}]}


def at_work(cache, wanted):
    """The process of the service that works on something of the kind."""
    for path in glob.glob(os.path.join(cache, "tmp", "*", "ledger")):
        with open(path, "rb") as f:
            ledger = f.read()
        for at in range(32, len(ledger) - 31, 256):
            busy, kind = struct.unpack_from("=I28s", ledger, at)
            if busy and kind.startswith(wanted + b"\0"):
                return int(os.path.basename(os.path.dirname(path)).split("-")[0])


def die_at_work(service, number):
    """Has the service begin to convert the big file, and ends the process that does it."""
    asking = subprocess.Popen(["curl", "-s", "-m", "60", f"http://127.0.0.1:{service.port}/symbolicate", "-H", "Content-Type: application/json",
                               "-d", json.dumps(request("big", BIG))], stdout=subprocess.PIPE)
    pid = wait_until("the conversion", lambda: at_work(service.cache, b"symcaches"))
    os.kill(pid, number)
    asking.communicate()
    if pid == service.process.pid:
        service.process.wait()


def status_of(service, name, debug_id):
    return service.symbolicate(request(name, debug_id))["modules"][0]["debug_status"]


def quarantine(service, *options):
    path = os.path.join(service.work, "config.yml")
    return subprocess.run([harness.SYMLOOM, "cache", "quarantine", *options, "-c", path], check=True, capture_output=True, text=True).stdout


def test_file_is_quarantined_for_a_day_after_two_crashes(work, objects):
    breakpad(work, "big", BIG, 100000)
    breakpad(work, "small", SMALL, 10)
    cache = os.path.join(work, "cache")
    start = lambda: Service(work, {"sources": [source(work)], **THREADS}, cache_dir=cache)
    for turn in range(2):
        s = start()
        die_at_work(s, signal.SIGSEGV)
        for what in (r"dies: signal 11 \(SIGSEGV\)", r"in work: symcaches [0-9a-f]{32} .*big/", r"0x[0-9a-f]{16} symloom\+0x"):
            if not re.search(what, s.logged()):
                raise AssertionError(f"no {what}: {s.logged()[-3000:]}")
    with start() as s:
        if f"previous process {s.process.pid}" in s.logged() or "crashed or was killed" not in s.logged():
            raise AssertionError(s.logged())
        equal(status_of(s, "big", BIG), "unsupported")
        equal(status_of(s, "small", SMALL), "found")
        listed = quarantine(s)
        if not re.match(r"symcaches [0-9a-f]{16}  2 crashes, 0 kills, quarantined until 2\d{3}-\S+Z  .*big/", listed):
            raise AssertionError(listed)
        equal(re.search(rb"symloom_quarantined_keys (\d+)", s.request("GET", "/metrics")[2]).group(1), b"1")
        equal(quarantine(s, "--clear"), "released 1 files from quarantine\n")
        equal(quarantine(s), "")
    with start() as s:
        equal(status_of(s, "big", BIG), "found")


def test_file_is_quarantined_after_three_kills(work, objects):
    breakpad(work, "big", BIG, 100000)
    cache = os.path.join(work, "cache")
    start = lambda: Service(work, {"sources": [source(work)], **THREADS}, cache_dir=cache)
    for turn in range(3):
        s = start()
        equal(quarantine(s).count("quarantined until"), 0)
        die_at_work(s, signal.SIGKILL)
    with start() as s:
        equal(status_of(s, "big", BIG), "unsupported")
        if "0 crashes, 3 kills, quarantined until" not in quarantine(s):
            raise AssertionError(quarantine(s))


def test_file_that_kills_one_of_several_processes_is_quarantined(work, objects):
    breakpad(work, "big", BIG, 100000)
    port = harness.free_port()
    with Service(work, {"bind": f"127.0.0.1:{port}", "http": {"processes": 2}, "sources": [source(work)], **THREADS}) as s:
        for turn in range(2):
            wait_until("both", lambda: s.logged().count("symloom is up") == 2 + turn)
            die_at_work(s, signal.SIGSEGV)
        wait_until("the third", lambda: "is quarantined for a day" in s.logged())
        wait_until("the answer", lambda: status_of(s, "big", BIG) == "unsupported")
        if "Sanitizer" not in s.logged():
            equal(s.logged().count("dies: signal 11"), 2)
        open(s.log, "w").close()  # what sanitizers say of the signal is no finding


def test_blocked_loop_logs_its_stack(work, objects):
    """What systemd sends when the watchdog is not fed."""
    s = Service(work)
    equal(s.request("GET", "/healthcheck")[0], 200)  # the loop runs
    s.process.send_signal(signal.SIGABRT)
    s.process.wait()
    offsets = re.findall(r"^0x[0-9a-f]{16} symloom\+(0x[0-9a-f]+)$", s.logged(), re.M)
    names = subprocess.run([harness.SYMLOOM, "lookup", "-e", harness.SYMLOOM, "-f", *offsets], check=True, capture_output=True, text=True).stdout
    called = re.search(r"^loop_run\n\S+/loop\.c:(\d+)", names, re.M)  # the line of the call, not the one it returns to
    with open(os.path.join(os.path.dirname(__file__), "../../service/core/loop.c")) as f:
        source = f.read().splitlines()
    if not called or "uv_run(" not in source[int(called[1]) - 1] or not re.search(r"module 0x[0-9a-f]{16} build-id [0-9a-f]{40} .*symloom", s.logged()):
        raise AssertionError(s.logged() + names)


def test_report_that_crashes_the_service_is_quarantined(work, objects):
    cache, path = os.path.join(work, "cache"), os.path.join(work, "report")
    with open(path, "w") as f:
        f.write("Incident Identifier: 2d8a5c3b-6a3f-4c0e-9d8e-0123456789ab\nOS Version: Mac OS X 10.15\n\nThread 0 Crashed:\n")
        f.writelines(f"{i % 400} name_{i} 0x{i * 16:016x} 0x1000 + {i}\n" for i in range(300000))
    send = lambda s: ["curl", "-s", "-m", "60", f"http://127.0.0.1:{s.port}/applecrashreport", "-F", f"apple_crash_report=@{path}"]
    kills = 0
    while True:
        s = Service(work, cache_dir=cache)
        if kills >= 2 and "is quarantined for a day" in s.logged():
            break
        assert kills < 20, s.logged()
        asking = subprocess.Popen(send(s), stdout=subprocess.PIPE)
        wait_until("reading", lambda: at_work(cache, b"applecrashreport"))
        s.process.send_signal(signal.SIGSEGV)  # on a busy machine it may have been read by then
        kills += 1
        asking.communicate()
        s.process.wait()
    with s:
        answer = subprocess.run(send(s), stdout=subprocess.PIPE).stdout
        equal(json.loads(answer), {"status": "failed", "message": "processing this file crashed"})


def test_core_dumps_are_enabled_by_the_key(work, objects):
    def limit(service):
        with open(f"/proc/{service.process.pid}/limits") as f:
            return re.search(r"Max core file size +(\S+) +(\S+)", f.read()).groups()

    with open("/proc/self/limits") as f:
        own = re.search(r"Max core file size +(\S+) +(\S+)", f.read()).groups()
    with Service(work) as s, Service(work, {"core_dumps": True}) as dumped:
        equal(limit(s), ("0", "0"))
        equal(limit(dumped), own)
        with open(f"/proc/{dumped.process.pid}/smaps") as f:
            flags = re.findall(r"^VmFlags: (.*)$", f.read(), re.M)
        if not any(" dd" in line for line in flags):
            raise AssertionError("nothing is left out of dumps")


def is_undumped(service, text):
    """Whether the text is in memory that core dumps leave out (proc_pid_smaps(5), flag dd)."""
    found, most = False, 64 << 20  # AddressSanitizer reserves terabytes
    with open(f"/proc/{service.process.pid}/smaps") as maps, open(f"/proc/{service.process.pid}/mem", "rb") as memory:
        for line in maps.readlines():
            place = re.match(r"([0-9a-f]+)-([0-9a-f]+) (r?)", line)
            if place:
                begin, end, readable = int(place[1], 16), int(place[2], 16), place[3]
            elif line.startswith("VmFlags:") and re.search(r" dd\b", line) and readable and end - begin <= most:
                try:
                    memory.seek(begin)
                    found = found or text.encode() in memory.read(end - begin)
                except OSError:  # unmapped since, or not memory
                    pass
    return found


def test_core_dumps_leave_out_secrets_of_a_reloaded_configuration(work, objects):
    """The limit of core dumps is set at the start, so a reload that turns the key off changes nothing."""
    secrets = ["first-" + "s" * 40, "second-" + "t" * 40]
    config = lambda secret, dumps: {"core_dumps": dumps, "sources": [
        {"id": "a", "type": "http", "url": "http://127.0.0.1:1/", "headers": {"X-Key": secret}, "layout": {"type": "native"}}]}
    with Service(work, config(secrets[0], True)) as s:
        equal(is_undumped(s, secrets[0]), True)
        path = os.path.join(s.work, "config.yml")
        with open(path) as f:
            changed = {**json.load(f), **config(secrets[1], False)}
        with open(path, "w") as f:
            json.dump(changed, f)
        s.process.send_signal(signal.SIGHUP)
        wait_until("the new configuration is left out", lambda: is_undumped(s, secrets[1]))
        equal("the old value stays in use key=core_dumps" in s.logged(), True)
