"""POST /minidump and POST /applecrashreport: forms, failures, and stacks of programs that crashed."""
import gzip, json, os, struct, subprocess, threading, time

import dumps
import harness
import readers
import test_loop as loop
from harness import Service, Upstream, equal

BOUNDARY = "tests-boundary"


def form(**parts):
    """A multipart body; what is no bytes is sent as JSON."""
    body = b""
    for name, value in parts.items():
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        body += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + data + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


def send(s, path, body, headers=None):
    status, _, data = s.request("POST", path, body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", **(headers or {})})
    return status, json.loads(data) if data.startswith(b"{") else data.decode()


def small_dump():
    dump = dumps.Dump(text="Linux 4.9.60-linuxkit-aufs #1 SMP Mon Nov 6 16:00:12 UTC 2017 x86_64", version=(0, 0, 0))
    stack = bytearray(64)
    stack[16:24] = (0x10200).to_bytes(8, "little")
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10010}, 0x7000, bytes(stack)))
    dump.threads.append((8, {"rsp": 0x9000, "rip": 0x5}, 0x9000, bytes(64)))
    dump.modules.append((0x10000, 0x1000, "/usr/lib/x", dumps.elf("f1c3bcc0279865fe3058404b2831d9e64135386c"), 0))
    dump.modules.append((0x20000, 0x1000, "/usr/lib/unnamed", b"", 0))
    dump.names[8] = "worker"
    return dump.crash(7, 11, 0, 69).done()


def test_minidump_without_symbols_is_answered(work, objects):
    with Service(work) as s:
        status, answer = send(s, "/minidump", form(upload_file_minidump=small_dump(), sources=[], unknown=b"value"))
        equal(status, 200, answer)
        system = {"os_name": "Linux", "os_version": "4.9.60-linuxkit-aufs", "os_build": "#1 SMP Mon Nov 6 16:00:12 UTC 2017",
                  "cpu_arch": "x86_64", "device_model": ""}
        equal({k: answer.get(k) for k in ("status", "timestamp", "system_info", "crashed", "crash_reason", "assertion", "signal",
                                          "crash_details")},
              {"status": "completed", "timestamp": 1521713273, "system_info": system, "crashed": True,
               "crash_reason": "SIGSEGV / 0x45", "assertion": "", "signal": None, "crash_details": None})
        first, second = answer["stacktraces"]
        equal((first["thread_id"], first["is_requesting"], first["registers"]["rip"]), (7, True, "0x10010"))
        equal(first["frames"], [
            {"status": "missing", "original_index": 0, "instruction_addr": "0x10010", "package": "/usr/lib/x", "trust": "context"},
            {"status": "missing", "original_index": 1, "instruction_addr": "0x10200", "package": "/usr/lib/x", "trust": "scan"}])
        equal((second["thread_name"], second["is_requesting"]), ("worker", False))
        equal(second["frames"], [{"status": "unknown_image", "original_index": 0, "instruction_addr": "0x5", "trust": "context"}])
        features = {"has_debug_info": False, "has_unwind_info": False, "has_symbols": False, "has_sources": False}
        equal(answer["modules"], [{
            "debug_status": "missing", "unwind_status": "missing", "features": features, "arch": "unknown", "type": "elf",
            "code_id": "f1c3bcc0279865fe3058404b2831d9e64135386c", "code_file": "/usr/lib/x",
            "debug_id": "c0bcc3f1-9827-fe65-3058-404b2831d9e6", "debug_file": "/usr/lib/x", "image_addr": "0x10000",
            "image_size": 4096}])


def test_unreadable_minidumps_fail_with_a_message(work, objects):
    with Service(work) as s:
        for dump, message in ((b"", "Missing minidump header (empty minidump?)"), (b"MDMP" + b"." * 9212, "Minidump version mismatch"),
                              (b"\0" * 100, "Header mismatch"),
                              (dumps.Dump().done()[:-1], "Missing stream directory (heavily truncated minidump?)")):
            equal(send(s, "/minidump", form(upload_file_minidump=dump)), (200, {"status": "failed", "message": message}))


def test_microdump_is_accepted_as_minidump(work, objects):
    """A log of Android with the crash of one thread is what a minidump is, though it begins as a form does."""
    module = "1" * 32 + "0"
    lines = dumps.microdump(dumps.ARM64, {"sp": 0x7000, "pc": 0x10010}, 0x7000, bytes(8) + (0x10200).to_bytes(8, "little") + bytes(48),
                            [(0x10000, 0x1000, module, "libapp.so")], context_size=796)
    log = "--------- beginning of crash\r\n" + "\r\n".join(lines) + "\r\n"
    with Service(work) as s:
        status, answer = send(s, "/minidump", form(upload_file_minidump=log.encode(), sources=[]))
        equal((status, answer["status"], answer.get("crash_reason")), (200, "completed", "SIGSEGV / 0x0"), answer)
        equal([f["instruction_addr"] for f in answer["stacktraces"][0]["frames"]], ["0x10010", "0x10200"])
        equal([(m["debug_id"], m["code_file"], m["type"]) for m in answer["modules"]], [("11111111-1111-1111-1111-111111111111", "libapp.so", "elf")])
        cut = log[:log.index(": C ")].encode()
        equal(send(s, "/minidump", form(upload_file_minidump=cut)),
              (200, {"status": "failed", "message": "The registers of the microdump (line C) were not found"}))


def kept_dumps(s):
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(s.cache, "diagnostics")) for name in names)


def test_failed_dumps_are_kept_when_configured(work, objects):
    failing = b"MDMP" + b"." * 5000
    for keep in (False, True):
        with Service(work, {"caches": {"diagnostics": {"keep_failed_dumps": keep}}}) as s:
            for dump in (failing, failing, small_dump()):
                send(s, "/minidump", form(upload_file_minidump=dump, sources=[]))
            send(s, "/applecrashreport", form(apple_crash_report=b"nothing"))
            contents = []
            for path in kept_dumps(s):
                with open(path, "rb") as f:
                    contents.append(f.read())
            equal([c for c in contents if c == failing], [failing] * keep)
            assert not any(small_dump()[:32] in c or b"nothing" in c for c in contents), contents


def detailed_dump():
    dump = dumps.Dump()
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10010}, 0x7000, bytes(64)))
    dump.stream(15, struct.pack("<6I", 24, 3, 4711, 1521713000, 0, 0))
    name = dump.string("gone.so")
    dump.stream(14, struct.pack("<3IQ4I", 12, 24, 1, 0x50000, 0x2000, 0, 0, name))
    key, value = (dump.put(struct.pack("<I", len(text)) + text + b"\0") for text in (b"channel", b"a \"quoted\" one"))
    simple = dump.put(struct.pack("<3I", 1, key, value))
    dump.stream(0x43500001, struct.pack("<I32s4I", 1, b"", 12, simple, 0, 0))
    return dump.done()


def test_details_of_a_dump_are_shown_when_configured(work, objects):
    wanted = {"process_id": 4711, "process_create_time": 1521713000, "annotations": [{"name": "channel", "value": 'a "quoted" one'}],
              "unloaded_modules": [{"name": "gone.so", "image_addr": "0x50000", "image_size": 0x2000}]}
    for details in (False, True):
        with Service(work, {"minidump": {"details": details}}) as s:
            _, answer = send(s, "/minidump", form(upload_file_minidump=detailed_dump(), sources=[]))
            equal(answer.get("details"), wanted if details else None, answer)
            _, answer = send(s, "/minidump", form(upload_file_minidump=small_dump(), sources=[]))
            equal((answer["status"], answer.get("details")), ("completed", None))


def test_details_of_the_crashing_instruction_are_shown(work, objects):
    dump = dumps.Dump()
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10010}, 0x7000, bytes(64)))
    dump.memory.append((0x10010, b"\x8b\x40\x08" + bytes(16)))
    dump = dump.crash(7, 11, 1, 8).done()
    for details in (False, True):
        with Service(work, {"minidump": {"details": details}}) as s:
            _, answer = send(s, "/minidump", form(upload_file_minidump=dump, sources=[]))
            equal("details" in answer, details)
            if details:
                equal(answer["details"]["crash_analysis"], {
                    "adjusted_address": {"kind": "null-pointer", "offset": "0x8"}, "instruction": "mov eax, dword [rax + 0x8]",
                    "memory_accesses": [{"address": "0x8", "size": 4, "access_type": "read"}], "instruction_pointer_update": None,
                    "possible_bit_flips": None, "crash_inconsistencies": [], "is_likely_stack_overflow": False})


def test_details_of_an_apple_report_are_shown_when_configured(work, objects):
    more = {"procName": "app", "uptime": 17, "bundleInfo": {"CFBundleVersion": "1"}, "unknown": 5}
    report = json.dumps({"threads": [{"frames": []}], "usedImages": [], **more}).encode()
    for details in (False, True):
        with Service(work, {"apple": {"details": details}}) as s:
            _, answer = send(s, "/applecrashreport", form(apple_crash_report=report, sources=[]))
            equal(answer.get("details"), {k: v for k, v in more.items() if k != "unknown"} if details else None, answer)
            _, answer = send(s, "/applecrashreport", form(apple_crash_report=REPORT.encode(), sources=[]))
            equal((answer["status"], answer.get("details")), ("completed", None))


def test_overlapping_modules_follow_the_compat_setting(work, objects):
    """As Symbolicator does, the first alone is kept; else all are, and an address belongs to the smallest that has an id."""
    dump = dumps.Dump()
    stack = b"".join(at.to_bytes(8, "little") for at in (0x12800, 0x13800, 0x16800, 0x18800)) + bytes(64)
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x14800}, 0x7000, stack))
    inside = [(0x12000, 0x6000, "/data/libmid.so"), (0x14000, 0x1000, "/data/libinner.so"), (0x16000, 0x1000, "/data/guard")]
    for number, (address, size, name) in enumerate([(0x10000, 0x10000, "/data/base.apk"), *inside]):
        dump.modules.append((address, size, name, b"" if name == "/data/guard" else dumps.elf(f"{number + 1:02x}" * 20), 0))
    dump = dump.crash(7, 11, 0, 69).done()
    nested = ["/data/libinner.so", "/data/libmid.so", "/data/libmid.so", "/data/libmid.so", "/data/base.apk"]
    for config, packages, modules in (({}, ["/data/base.apk"] * 5, ["/data/base.apk"]),
                                      ({"minidump": {"compat": "symbolicator"}}, ["/data/base.apk"] * 5, ["/data/base.apk"]),
                                      ({"minidump": {"compat": "none"}}, nested, ["/data/base.apk", "/data/libmid.so", "/data/libinner.so"])):
        with Service(work, config) as s:
            _, answer = send(s, "/minidump", form(upload_file_minidump=dump, sources=[]))
            equal([f["package"] for f in answer["stacktraces"][0]["frames"]], packages, answer)
            equal([m["code_file"] for m in answer["modules"]], modules)
            equal([m["debug_status"] for m in answer["modules"]], ["missing"] * len(modules))


def test_malformed_forms_are_refused(work, objects):
    dump = small_dump()
    with Service(work) as s:
        equal(send(s, "/minidump", form(sources=[])), (400, {"detail": "missing minidump"}))
        equal(send(s, "/applecrashreport", form(sources=[])), (400, {"detail": "missing apple crash report"}))
        equal(send(s, "/minidump", form(upload_file_minidump=b"--x\r\n")), (400, {"detail": "minidump contains multipart form data"}))
        equal(send(s, "/minidump", form(upload_file_minidump=dump, sources=b" " * (1 << 20) + b"[]")),
              (413, {"detail": "Field sources larger than 1048576 bytes"}))
        for name, bad in (("sources", b"[{"), ("sources", b"null"), ("options", b"[]"), ("platform", b"native"), ("scraping", b"7")):
            status, answer = send(s, "/minidump", form(upload_file_minidump=dump, **{name: bad}))
            equal((status, list(answer)), (400, ["detail"]), f"{name}: {answer}")
        status, answer = send(s, "/minidump", form(upload_file_minidump=dump)[:-10])
        equal((status, answer["detail"]), (400, "Error parsing `multipart/form-data` request"))
        equal(len(answer["causes"]), 1)
        equal(s.request("POST", "/minidump", b"x", {"Content-Type": "multipart/form-data"})[0], 400)
        equal(s.leftovers(), [])


def test_last_of_repeated_form_parts_wins(work, objects):
    with Service(work) as s:
        both = form(upload_file_minidump=b"junk")[:-len(BOUNDARY) - 6] + form(upload_file_minidump=small_dump(), platform=None)
        status, answer = send(s, "/minidump", both)
        equal((status, answer["status"]), (200, "completed"), answer)


REPORT = """Hardware Model:      MacBookPro14,3
Code Type:       X86-64 (Native)

Date/Time:       2019-01-09 17:42:22 +0000
OS Version:      Mac OS X 10.14.0 (18A391)
Exception Type:  SIGSEGV

Thread 0 Crashed:
0   YetAnotherMac                       0x0000000108b7092b 0x10864e000 + 5384491
1   ???                                 0x0000000000000010 0x0 + 0

Thread 0 crashed with X86-64 Thread State:
   rip: 0x00000001090a0132    rbp: 0x0000700015a616d0

Binary Images:
       0x10864e000 -        0x10ee0ffff +YetAnotherMac x86_64 (400.9.4 - 1.0.0) <2d903291397d3d14bfca52c7fb8c5e00> /Apps/YetAnotherMac
"""


def test_apple_text_report_is_answered(work, objects):
    with Service(work) as s:
        status, answer = send(s, "/applecrashreport", form(apple_crash_report=REPORT.encode(), sources=[]))
        equal(status, 200, answer)
        equal((answer["timestamp"], answer["crash_reason"], answer["system_info"]["os_name"], answer["system_info"]["cpu_arch"]),
              (1547055742, "SIGSEGV", "macOS", "x86_64"))
        equal(answer["stacktraces"], [{
            "thread_id": 0, "is_requesting": True, "registers": {"rbp": "0x700015a616d0", "rip": "0x1090a0132"}, "frames": [
                {"status": "missing", "original_index": 0, "instruction_addr": "0x108b7092b", "package": "/Apps/YetAnotherMac"},
                {"status": "unknown_image", "original_index": 1, "instruction_addr": "0x10"}]}])
        equal([("unwind_status" in m, m["image_size"], m["debug_status"]) for m in answer["modules"]], [(False, 108797951, "missing")])
        for key in ("assertion", "signal"):
            assert key not in answer, answer


SAMPLES = """Analysis of sampling app (pid 3) every 1 millisecond
Process:         app [3]
OS Version:      macOS 12.6 (21G115)
Call graph:
    9 Thread_955462   DispatchQueue_1: com.apple.main-thread  (serial)
    + 9 start  (in dyld) + 596  [0x180000254]
    +   2 ???  (in app)  load address 0x108000000 + 0x5  [0x108000005]

Binary Images:
       0x108000000 -        0x108ffffff +app (0) <2d903291-397d-3d14-bfca-52c7fb8c5e00> /Apps/app
"""


def test_sampling_report_gives_a_stack_for_each_path(work, objects):
    """Each path of a thread is a stack, the one with the most samples first."""
    with Service(work) as s:
        status, answer = send(s, "/applecrashreport", form(apple_crash_report=SAMPLES.encode(), sources=[]))
        equal((status, answer["status"], answer["crashed"], answer["crash_reason"]),
              (200, "completed", False, "sampling app (pid 3) every 1 millisecond"))
        equal([(t["thread_name"], [(f["instruction_addr"], f["package"]) for f in t["frames"]]) for t in answer["stacktraces"]],
              [("com.apple.main-thread (7 of 9 samples)", [("0x180000254", "dyld")]),
               ("com.apple.main-thread (2 of 9 samples)", [("0x108000005", "/Apps/app"), ("0x180000254", "dyld")])])
        equal([m["code_file"] for m in answer["modules"]], ["/Apps/app"])
        equal(send(s, "/applecrashreport", form(apple_crash_report=b"Call graph:\n  1 Thread_1\n")),
              (200, {"status": "failed", "message": "failed to parse apple crash report", "detail": "the sampling report has no row with a call"}))


def test_input_that_is_no_apple_report_fails(work, objects):
    with Service(work) as s:
        status, answer = send(s, "/applecrashreport", form(apple_crash_report=b"nothing"))
        equal((status, answer["status"], answer["message"]), (200, "failed", "failed to parse apple crash report"))
        body = b'{"bug_type":"298"}\n{"largestProcess":"x"}'
        equal(send(s, "/applecrashreport", form(apple_crash_report=body)),
              (200, {"status": "failed", "message": "unsupported apple report type 298"}))


def test_minidump_job_can_be_polled(work, objects):
    with Service(work) as s:
        status, answer = send(s, "/minidump?timeout=0", form(upload_file_minidump=b"MDMP"))
        equal(status, 200)
        while answer["status"] == "pending":
            _, _, data = s.request("GET", f"/requests/{answer['request_id']}?timeout=10")
            answer = json.loads(data)
        equal(answer, {"status": "failed", "message": "Missing minidump header (empty minidump?)"})


# ---- programs that crash ----

CRASH = dumps.HANDLER + r"""
static volatile int zero, sink;
static __attribute__((noinline)) int fall(int *where) { *where = 7; return sink++; }
static inline __attribute__((always_inline)) int inlined(int *where) { sink--; return fall(where) + 2; }
__attribute__((noinline)) int by_pointer(int depth)
{
    int room[50];
    room[depth] = depth;
    int result = depth ? by_pointer(depth - 1) : inlined((int *)0x45);
    return result + room[depth];
}
__attribute__((noinline)) int by_division(int depth) { return depth ? by_division(depth - 1) + sink : 7 / zero; }
static int compare(const void *a, const void *b) { abort(); }
__attribute__((noinline)) int by_abort(int depth)
{
    int numbers[] = {3, 2, depth};
    qsort(numbers, 3, sizeof *numbers, compare);
    return numbers[0] + sink;
}
int main(int argc, char **argv)
{
    int depth = 3;
    int result = *argv[1] == 'p' ? by_pointer(depth) : *argv[1] == 'd' ? by_division(depth) : by_abort(depth);
    return result + sink;
}
"""

WANTED = {
    "pointer": (["fall", "inlined", "by_pointer", "by_pointer", "by_pointer", "by_pointer", "main"], "SIGSEGV / SEGV_MAPERR / 0x45"),
    "division": (["by_division"] * 4 + ["main"], "SIGFPE / FPE_INTDIV"),
    "abort": (["compare", "by_abort", "main"], "SIGABRT / SI_TKILL"),
}


def crashing(work, *flags):
    home = os.path.join(work, "crash")
    os.makedirs(home, exist_ok=True)
    with open(os.path.join(home, "crash.c"), "w") as f:
        f.write(CRASH)
    program = os.path.join(home, "crash")
    subprocess.run(["gcc", "-g", "-w", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1", *flags, "-o", program, "crash.c"], cwd=home, check=True)
    return program


def served(paths):
    """Files of modules as a debuginfod has them."""
    routes = {}
    for path in paths:
        with open(path, "rb") as f:
            routes[f"/{dumps.build_id(path)}/executable"] = f.read()
    return routes


def check_stacks(work, *flags):
    program = crashing(work, *flags)
    with Upstream({}) as up, Service(work) as s:
        sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}]
        for kind, (functions, reason) in WANTED.items():
            dump, modules = dumps.of_crash(program, work, kind)
            up.routes.update(served(modules))
            status, answer = send(s, "/minidump", form(upload_file_minidump=dump, sources=sources))
            equal(status, 200, answer)
            assert answer["crash_reason"].startswith(reason), answer["crash_reason"]
            frames = answer["stacktraces"][0]["frames"]
            about = f"{kind} {flags}: {json.dumps(frames, indent=1)}"
            equal({f["trust"] for f in frames[1:] if f["original_index"]}, {"cfi"}, about)
            named = [f["function"] for f in frames if f.get("package") == program and f["function"] != "_start"]
            equal(named, functions, about)
            module = next(m for m in answer["modules"] if m["code_file"] == program)
            equal((module["unwind_status"], module["debug_status"], module["features"]["has_unwind_info"]), ("found", "found", True))


def test_crashed_program_is_unwound(work, objects):
    check_stacks(work, "-O1", "-fomit-frame-pointer")


def test_optimised_program_is_unwound(work, objects):
    check_stacks(work, "-O2", "-fno-ipa-icf", "-fno-ipa-cp", "-fno-ipa-sra", "-fno-inline-small-functions", "-fno-optimize-strlen")


def test_only_modules_with_frames_are_fetched(work, objects):
    program = crashing(work, "-O1")
    dump, modules = dumps.of_crash(program, work, "pointer")
    with Upstream(served(modules)) as up, Service(work) as s:
        sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}]
        _, answer = send(s, "/minidump", form(upload_file_minidump=dump, sources=sources))
        used = {m["code_id"] for m in answer["modules"] if m["unwind_status"] != "unused"}
        equal({path.split("/")[1] for path in up.hits}, used)
        assert len(used) < len(answer["modules"]), answer["modules"]
        equal(max(up.hits.values()), 1, up.hits)


def test_tables_in_memory_are_offered_to_the_first_round_of_a_walk(work, objects):
    """A dump whose tables are in memory takes one call of the walker; a module whose table is offered but not needed stays unused."""
    modules, source = [], os.path.join(work, "files")
    for place, name in ((0x400000, "liba.so"), (0x800000, "libb.so")):
        path = os.path.join(work, name)
        with open(os.path.join(work, "f.c"), "w") as f:
            f.write(f"int f(int x) {{ return x + 1; }}\nconst char name[] = \"{name}\";\n")
        subprocess.run(["gcc", "-g", "-O1", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=sha1", "-o", path, "f.c"], cwd=work, check=True)
        entry = next(int(line.split()[0], 16) for line in subprocess.run(["nm", path], capture_output=True, text=True).stdout.splitlines() if line.endswith(" T f"))
        build_id = dumps.build_id(path)
        os.makedirs(os.path.join(source, build_id))
        os.rename(path, os.path.join(source, build_id, "executable"))
        modules.append((place, entry, name, build_id))

    def dump(*called):
        made = dumps.Dump()
        words = [modules[i][0] + modules[i][1] + 1 for i in called]  # return addresses: at its entry f has nothing on the stack
        stack = b"".join(word.to_bytes(8, "little") for word in words[1:]).ljust(64, b"\0")
        made.threads.append((7, {"rsp": 0x7000, "rip": words[0] - 1}, 0x7000, stack))
        for place, _, name, build_id in modules:
            made.modules.append((place, 0x10000, name, dumps.elf(build_id), 0))
        return made.crash(7, 11).done()

    def walked(s, data):
        def calls():
            return sum(n for (reader, _), n in readers.counts(s).items() if reader == "walk")
        before = calls()
        status, answer = send(s, "/minidump", form(upload_file_minidump=data))
        equal((status, answer["status"]), (200, "completed"), answer)
        return calls() - before, {m["code_file"]: m["unwind_status"] for m in answer["modules"]}, answer

    with Service(work, {"sources": [{"id": "local", "type": "filesystem", "path": source, "layout": {"type": "debuginfod"}}]}) as s:
        both, one = dump(0, 1), dump(0)
        calls, status, first = walked(s, both)
        equal((calls, status), (2, {"liba.so": "found", "libb.so": "found"}))
        equal([f["function"] for f in first["stacktraces"][0]["frames"]], ["f", "f"])
        walked(s, both)  # a search is cached when its files were in the cache: by the second request
        calls, status, again = walked(s, both)
        equal((calls, status), (1, {"liba.so": "found", "libb.so": "found"}))
        equal(json.dumps(again), json.dumps(first))
        calls, status, _ = walked(s, one)
        equal((calls, status), (1, {"liba.so": "found", "libb.so": "unused"}))


def test_symbols_and_cfi_are_searched_concurrently(work, objects):
    """The file with a module's rules is answered when that with its symbols was asked for, which a walk needs after the rules only."""
    program, wanted = crashing(work, "-O1"), WANTED["pointer"][0]
    dump, _ = dumps.of_crash(program, work, "pointer")
    (path, data), = served([program]).items()
    symbols_asked, waited = threading.Event(), []

    def rules(handler):
        waited.append(symbols_asked.wait(30))
        handler.reply(200, data)

    def symbols(handler):
        symbols_asked.set()
        handler.reply(404)

    with Upstream({path: rules, path.replace("/executable", "/debuginfo"): symbols}) as up, Service(work) as s:
        sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}]
        _, answer = send(s, "/minidump", form(upload_file_minidump=dump, sources=sources))
        equal(waited, [True], "symbols were asked for while the rules were awaited")
        equal([f.get("function") for f in answer["stacktraces"][0]["frames"][:len(wanted)]], wanted, answer)


class Crowd:
    """Clients that send the same dump at the same time, each in a scope of its own: none finds what is made for another."""

    def __init__(self, s, body, count):
        self.service, self.body, self.answers = s, body, [None] * count
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, index):
        connection = self.service.connection()
        connection.timeout = CROWD_SECONDS
        connection.request("POST", f"/minidump?scope={index}", self.body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})
        answer = connection.getresponse()
        self.answers[index] = answer.status, json.loads(answer.read())

    def wait(self):
        end = time.monotonic() + CROWD_SECONDS
        for thread in self.threads:
            thread.join(max(0, end - time.monotonic()))
        waiting = sum(answer is None for answer in self.answers)
        if waiting:
            raise AssertionError(f"{waiting} of {len(self.answers)} dumps are not answered after {CROWD_SECONDS} s")
        return self.answers


CROWD_SECONDS = 300


def crowd_of_dumps(work, threads, clients, config, meanwhile):
    """All threads of a dump come to the same modules at once, whose files are there when `meanwhile` has returned."""
    program, wanted = crashing(work, "-O1"), WANTED["pointer"][0]
    dump, _ = dumps.of_crash(program, work, "pointer", threads=threads)
    gate, asked = threading.Event(), threading.Semaphore(0)

    def late(data):
        def route(handler):
            asked.release()
            gate.wait(CROWD_SECONDS)
            handler.reply(200, data)
        return route

    with Upstream({path: late(data) for path, data in served([program]).items()}) as up:
        source = {"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}
        limits = {"max_concurrent_requests": None, "max_downloads_per_host": clients, "max_downloads": clients,
                  "connect_timeout": "10m", "head_timeout": "10m"}
        with Service(work, {"sources": [source], **limits, **config}) as s:
            crowd = Crowd(s, form(upload_file_minidump=dump), clients)
            for _ in range(clients):
                assert asked.acquire(timeout=CROWD_SECONDS), "a dump's first file is not asked for"
            meanwhile(s)
            gate.set()
            for status, answer in crowd.wait():
                equal((status, answer.get("status")), (200, "completed"), answer)
                equal(len(answer["stacktraces"]), threads)
                for trace in answer["stacktraces"]:
                    equal([f.get("function") for f in trace["frames"][:len(wanted)]], wanted, trace)
            equal({up.hits[path] for path in up.routes}, {clients})


def test_threads_waiting_for_modules_finish_with_few_fibers(work, objects):
    """Whoever waits for a module is woken, with less fibers than there are threads."""
    crowd_of_dumps(work, 60, 8, {"max_fibers": 48}, lambda s: time.sleep(0.2))


def test_many_dumps_leave_fibers_to_other_requests(work, objects):
    """200 dumps of 60 threads would take 12,000 fibers, with a helper for each thread."""
    def others(s):
        status, answer = send(s, "/minidump", form(upload_file_minidump=small_dump(), sources=[]))
        equal((status, answer.get("status")), (200, "completed"), answer)

    crowd_of_dumps(work, 60, 200, {"max_fibers": 2000}, others)


def test_rewrite_rules_rename_the_first_module(work, objects):
    rules = [{"from": "^no match$", "to": "x"}, {"from": r"[^/\\]+\.exe\.(?<kind>pdb)$", "to": "electron.exe.${kind}$$"},
             {"from": "pdb", "to": "never"}]
    dump = dumps.Dump(platform=dumps.WINDOWS, version=(10, 0, 1))
    dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10010}, 0x7000, bytes(64)))
    guid = "3249d99d-0c40-4931-8610-f4e4fb0b6936"
    dump.modules.append((0x10000, 0x1000, "C:\\my.exe", dumps.pdb70(guid, 1, "C:\\out\\my.exe.pdb"), 0x5AB38077))
    dump.modules.append((0x20000, 0x1000, "C:\\other.dll", dumps.pdb70("0" * 8 + guid[8:], 1, "C:\\other.exe.pdb"), 1))
    with Upstream({}) as up, Service(work) as s:
        sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "symstore"}}]
        body = form(upload_file_minidump=dump.done(), sources=sources, rewrite_first_module=rules, options={"dif_candidates": True})
        status, answer = send(s, "/minidump", body)
        equal(status, 200, answer)
        equal([m["debug_file"] for m in answer["modules"]], ["C:\\out\\my.exe.pdb", "C:\\other.exe.pdb"])
        asked = {c["location"].split("/")[-1] for c in answer["modules"][0]["candidates"]}
        assert "electron.exe.pdb$" in asked and "my.exe.pdb" not in asked, asked
        started = sum(loop.cpu(s))
        for pattern in (r"\w*?\w*![0-9]", r"(\w+)+$", "(a|b|ab)*c", ".*.*.*=.*"):  # each takes hours over some name, or minutes
            dump.modules[0] = (*dump.modules[0][:3], dumps.pdb70(guid, 1, "w" * 30000 + "!x"), 1)
            body = form(upload_file_minidump=dump.done(), rewrite_first_module=[{"from": pattern, "to": "a"}] * 20)
            status, answer = send(s, "/minidump", body)
            equal((status, answer["modules"][0]["debug_file"]), (200, "w" * 30000 + "!x"))
        equal((sum(loop.cpu(s)) - started) / 1e9 < 20, True)  # with sanitizers; 0.1 s each without
        status, answer = send(s, "/minidump", form(upload_file_minidump=dump.done(), rewrite_first_module=[{"from": "a" * 5000, "to": ""}]))
        equal((status, "the pattern is longer than 4096 bytes" in answer["detail"]), (400, True), answer)
        for bad in ("(", "a(?=b)", r"(a)\1", "(?>a)", "a++", "(?R)"):
            status, answer = send(s, "/minidump", form(upload_file_minidump=dump.done(), rewrite_first_module=[{"from": bad, "to": ""}]))
            equal((status, list(answer)), (400, ["detail"]), bad)
        status, answer = send(s, "/minidump", form(upload_file_minidump=dump.done(), rewrite_first_module=[{"from": "x"}]))
        equal(status, 400, answer)


def anywhere(s, body):
    status, _, data = s.post("/symbolicate-any", body)
    return status, json.loads(data) if data.startswith(b"{") else data.decode()


def test_crash_file_is_downloaded_from_storage_url(work, objects):
    def guarded(handler):
        known = handler.headers.get("Authorization") == "Bearer secret"
        handler.reply(200 if known else 403, small_dump() if known else b"")

    routes = {"/dump": small_dump(), "/report": REPORT.encode(), "/guarded": guarded}
    with Upstream(routes) as up, Service(work) as s:
        def file(kind, path, **more):
            return {"symbolicate": {"type": kind, "storage_url": up.url + path, **more}}

        _, wanted = send(s, "/minidump", form(upload_file_minidump=small_dump(), sources=[]))
        equal(anywhere(s, file("minidump", "dump", rewrite_first_module=[])), (200, wanted))
        equal(anywhere(s, file("minidump", "guarded", storage_token="secret")), (200, wanted))
        _, wanted = send(s, "/applecrashreport", form(apple_crash_report=REPORT.encode(), sources=[]))
        equal(anywhere(s, {**file("applecrashreport", "report"), "platform": "native", "sources": []}), (200, wanted))
        equal(anywhere(s, file("minidump", "nowhere")), (200, {"status": "failed", "message": "not found"}))
        status, answer = anywhere(s, file("minidump", "guarded"))
        equal((status, answer["status"]), (200, "failed"))
        assert answer["message"].startswith("permission denied"), answer
        equal(anywhere(s, file("minidump", "report")), (200, {"status": "failed", "message": "Header mismatch"}))
        for bad in ({}, file("unknown", "dump"), {"symbolicate": {"type": "minidump"}}):
            equal(anywhere(s, bad)[0], 422)
        equal(anywhere(s, "{")[0], 400)
        equal(s.leftovers(), [])


def test_compressed_crash_files_are_unpacked(work, objects):
    dump, packed = small_dump(), gzip.compress(small_dump())
    with Service(work) as s:
        _, wanted = send(s, "/minidump", form(upload_file_minidump=dump))
        equal(send(s, "/minidump", form(upload_file_minidump=packed)), (200, wanted))
        equal(send(s, "/minidump", gzip.compress(form(upload_file_minidump=dump)), {"Content-Encoding": "gzip"}), (200, wanted))
        equal(send(s, "/minidump", form(upload_file_minidump=packed[:-20])), (200, {"status": "failed", "message": "Header mismatch"}))
        equal(s.leftovers(), [])


def test_frames_without_symbols_use_names_from_the_report(work, objects):
    report = REPORT.replace("0x10864e000 + 5384491", "main (main.m:16)").replace("Mac OS X 10.14.0 (18A391)", "iPhone OS 13.3.1 (17D50)")
    with Service(work, {"apple": {"names_from_report": True, "split_os_version": True}}) as s:
        _, answer = send(s, "/applecrashreport", form(apple_crash_report=report.encode()))
        frame = answer["stacktraces"][0]["frames"][0]
        equal({key: frame.get(key) for key in ("status", "function", "filename", "lineno")},
              {"status": "missing", "function": "main", "filename": "main.m", "lineno": 16})
        equal([answer["system_info"][key] for key in ("os_name", "os_version", "os_build")], ["iOS", "13.3.1", "17D50"])
    with Service(work) as s:
        _, answer = send(s, "/applecrashreport", form(apple_crash_report=report.encode()))
        assert "function" not in answer["stacktraces"][0]["frames"][0], answer
        equal(answer["system_info"]["os_name"], "iPhone OS 13.3.1 (17D50)")


def test_unwind_strategy_can_prefer_frame_pointers(work, objects):
    program = crashing(work, "-O1", "-fno-omit-frame-pointer")
    dump, modules = dumps.of_crash(program, work, "pointer")
    for strategy, trust in (("cfi_first", "cfi"), ("fp_first", "fp")):
        with Upstream(served(modules)) as up, Service(work, {"unwind_strategy": strategy}) as s:
            sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}]
            _, answer = send(s, "/minidump", form(upload_file_minidump=dump, sources=sources))
            ours = [f for f in answer["stacktraces"][0]["frames"] if f.get("package") == program and f["function"] != "_start"]
            equal([f["function"] for f in ours][-3:], WANTED["pointer"][0][-3:]) # a pointer knows no caller of a leaf
            equal({f["trust"] for f in ours[1:] if f["original_index"]}, {trust})


def test_stackwalk_matches_symbolicator_by_default(work, objects):
    """Unless the configuration says otherwise: then the caller of a call to a bad address is there, and there is no limit of 256."""
    base, stack = 0x100000000, 0x7FFE0000000
    registers = {"rip": 0, "rsp": stack, "rbp": stack + 16}
    words = [base + 0x105, 0] + [word for i in range(1, 400) for word in (stack + 16 + 16 * i, base + 0x500)]
    dump = dumps.Dump().crash(1, 11, 1, registers=registers)
    dump.threads.append((1, registers, stack, struct.pack(f"<{len(words)}Q", *words)))
    dump.modules.append((base, 0x10000, "/app", dumps.elf("01" * 20), 0))
    dump = dump.done()
    for settings, count, first in (({}, 256, "0x100000500"), ({"minidump": {"compat": "symbolicator"}}, 256, "0x100000500"),
                                   ({"minidump": {"compat": "none"}}, 400, "0x100000105")):
        with Service(work, settings) as s:
            _, answer = send(s, "/minidump", form(upload_file_minidump=dump))
            frames = answer["stacktraces"][0]["frames"]
            equal((len(frames) >= count and (count > 256 or len(frames) == count), frames[1]["instruction_addr"], frames[1]["trust"]),
                  (True, first, "fp"), settings)


def test_riscv_frames_are_shown_only_without_compat(work, objects):
    """Its answers have the threads of RISC-V without registers and frames; `minidump.compat: none` walks them."""
    base, stack = 0x100000000, 0x7FFE0000000
    for cpu, name, word in ((dumps.RISCV64, "riscv64", "Q"), (dumps.RISCV32, "riscv", "I")):
        base, stack = (base, stack) if word == "Q" else (0x10000000, 0x70000000)
        registers = {"pc": base + 0x204, "sp": stack, "ra": base + 0x104, "s0": stack + 2 * struct.calcsize(word)}
        dump = dumps.Dump(cpu=cpu).crash(1, 11, 1, 0x45, registers=registers)
        dump.threads.append((1, registers, stack, struct.pack(f"<8{word}", 0, base + 0x504, *[0] * 6)))
        dump.modules.append((base, 0x10000, "/app", dumps.elf("01" * 20), 0))
        dump = dump.done()
        with Service(work) as s:
            _, answer = send(s, "/minidump", form(upload_file_minidump=dump))
            equal((answer["system_info"]["cpu_arch"], answer["crash_reason"], answer["stacktraces"]),
                  ("unknown", "SIGSEGV / SEGV_MAPERR / 0x45", [{"thread_id": 1, "is_requesting": True, "frames": []}]))
        with Service(work, {"minidump": {"compat": "none"}}) as s:
            _, answer = send(s, "/minidump", form(upload_file_minidump=dump))
            equal(answer["system_info"]["cpu_arch"], name)
            thread = answer["stacktraces"][0]
            equal((len(thread["registers"]), thread["registers"]["s0"]), (32, hex(registers["s0"])))
            equal([(f["instruction_addr"], f["trust"]) for f in thread["frames"]],
                  [(hex(base + 0x204), "context"), (hex(base + 0x104), "fp"), (hex(base + 0x504), "fp")])


def test_wow64_stacks_are_shown_only_without_compat(work, objects):
    """Symbolicator shows those of the emulation; the program's are there with `minidump.compat: none` or `minidump.details`."""
    dump = dumps.Dump(platform=dumps.WINDOWS)
    dump.modules += [(0x400000, 0x10000, "C:\\app.exe", b"", 1), (0x755B0000, 0x3F000, "C:\\Windows\\System32\\wow64.dll", b"", 1)]
    dump.threads.append((1, {"rip": 0x755B2E09, "rsp": 0x20E518, "cs": 0x33}, 0x20E518, bytes(64)))
    dumps.wow64(dump, 1, {"eip": 0x400108, "esp": 0x37F5C0, "ebp": 0x37F5C8}, 0x7EFDB000)
    dump.memory.append((0x37F5C0, struct.pack("<6I", 0, 0, 0, 0x400204, 0, 0)))
    dump = dump.done()
    for settings, name, addresses in (({}, "rip", ["0x755b2e09"]), ({"minidump": {"compat": "none"}}, "eip", ["0x400108", "0x400204"]),
                                      ({"minidump": {"details": True}}, "eip", ["0x400108", "0x400204"])):
        with Service(work, settings) as s:
            _, answer = send(s, "/minidump", form(upload_file_minidump=dump))
            thread = answer["stacktraces"][0]
            equal((thread["registers"][name], [f["instruction_addr"] for f in thread["frames"]], answer["system_info"]["cpu_arch"]),
                  (addresses[0], addresses, "x86_64"), settings)
            equal(answer.get("details", {}).get("wow64_missing_stacks"), 0 if settings.get("minidump", {}).get("details") else None)
