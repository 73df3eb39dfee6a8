"""POST /core: forms and bare files, packed or not, ids of modules, limits, and stacks of a program that crashed."""
import gzip, json, lzma, os, subprocess

import cores
from harness import Service, Upstream, equal
from test_crash_files import form, send

OCTETS = {"Content-Type": "application/octet-stream"}
BUILD_ID = bytes.fromhex("f1c3bcc0279865fe3058404b2831d9e64135386c")


def small_core():
    """An AArch64 process with one library, frame records of two callers, and a package note."""
    core = cores.Core(cores.ARM64)
    core.thread(7, {"pc": 0x11010, "lr": 0x11020, "sp": 0x7000, "fp": 0x7010}, 11)
    process = bytearray(136)
    process[24:28] = (4711).to_bytes(4, "little")
    process[40:44], process[56:71] = b"demo", b"/bin/demo --key"
    core.notes.append(("CORE", cores.NT_PRPSINFO, bytes(process)))
    core.siginfo(11, 1, 0x45).files([(0x10000, 0x11000, 0, "/lib/x.so"), (0x11000, 0x12000, 1, "/lib/x.so")])
    package = core.note("FDO", 0xCAFE1A7E, b'{"type":"deb","name":"x","version":"1.0"}\0')
    image = core.image([(cores.R, 0, 0, 0x1000, 0x1000), (cores.R | cores.X, 0x1000, 0x1000, 0x1000, 0x1000)], BUILD_ID, package)
    core.memory(0x10000, 0x1000, cores.R, image).memory(0x11000, 0x1000, cores.R | cores.X)
    stack = bytearray(256)
    stack[0x10:0x20] = (0x7040).to_bytes(8, "little") + (0x11100).to_bytes(8, "little")
    stack[0x40:0x50] = (0).to_bytes(8, "little") + (0x11200).to_bytes(8, "little")
    return core.memory(0x7000, 256, cores.R | cores.W, bytes(stack)).done()


def test_core_without_symbols_is_answered(work, objects):
    with Service(work) as s:
        status, answer = send(s, "/core", form(upload_file_core=small_core(), sources=[]))
        equal(status, 200, answer)
        equal({k: answer.get(k) for k in ("status", "timestamp", "crashed", "crash_reason", "assertion", "process", "packages")},
              {"status": "completed", "timestamp": None, "crashed": True, "crash_reason": "SIGSEGV / SEGV_MAPERR / 0x45", "assertion": "",
               "process": {"pid": 4711, "name": "demo"},
               "packages": [{"code_file": "/lib/x.so", "image_addr": "0x10000",
                             "package": {"type": "deb", "name": "x", "version": "1.0"}}]})
        equal(answer["system_info"], {"os_name": "Linux", "os_version": "", "os_build": "", "cpu_arch": "arm64", "device_model": ""})
        thread = answer["stacktraces"][0]
        equal((thread["thread_id"], thread["is_requesting"], thread["registers"]["pc"]), (7, True, "0x11010"))
        equal([(f["instruction_addr"], f["trust"]) for f in thread["frames"]][:1], [("0x11010", "context")])
        equal([f["instruction_addr"] for f in thread["frames"] if f["trust"] == "fp"][-2:], ["0x11100", "0x11200"], thread["frames"])
        module = answer["modules"][0]
        equal((module["code_id"], module["debug_id"], module["image_addr"], module["image_size"]),
              (BUILD_ID.hex(), "c0bcc3f1-9827-fe65-3058-404b2831d9e6", "0x10000", 0x2000))


def test_bare_and_packed_cores_give_the_same_answer(work, objects):
    core = small_core()
    packed = [gzip.compress(core), lzma.compress(core),
              subprocess.run(["zstd", "-c"], input=core, capture_output=True, check=True).stdout]
    with Service(work) as s:
        wanted = send(s, "/core", form(upload_file_core=core))
        equal(wanted[0], 200, wanted[1])
        for data in (core, *packed):
            equal(send(s, "/core", data, OCTETS), wanted)
            equal(send(s, "/core", form(upload_file_core=data)), wanted)
        status, answer = send(s, "/core?timeout=0", core, OCTETS)
        equal((status, answer["status"]), (200, "pending"))
        equal(s.request("GET", f"/requests/{answer['request_id']}?timeout=30")[0], 200)


def test_command_line_is_shown_only_if_configured(work, objects):
    with Service(work, {"core": {"command_line": True}}) as s:
        equal(send(s, "/core", small_core(), OCTETS)[1]["process"], {"pid": 4711, "name": "demo", "command_line": "/bin/demo --key"})


def test_core_is_fetched_for_symbolicate_any(work, objects):
    with Upstream({"/core.gz": gzip.compress(small_core())}) as up, Service(work) as s:
        body = {"symbolicate": {"type": "core", "storage_url": up.url + "core.gz"}}
        status, _, data = s.request("POST", "/symbolicate-any", json.dumps(body), {"Content-Type": "application/json"})
        equal((status, json.loads(data)), send(s, "/core", form(upload_file_core=small_core(), sources=[])))


def test_ids_are_taken_from_the_request(work, objects):
    core = cores.Core(cores.ARM64).thread(7, {"pc": 0x11010, "sp": 0x7000}, 11)
    core.files([(0x10000, 0x12000, 0, "/opt/app/prog")]).memory(0x10000, 0x2000, cores.R | cores.X)
    with Service(work) as s:
        module = send(s, "/core", form(upload_file_core=core.done()))[1]["modules"][0]
        equal((module.get("code_id"), module.get("debug_id"), module["debug_status"]), (None, None, "missing"))
        for name in ("/opt/app/prog", "prog"):
            modules = [{"type": "elf", "code_file": name, "code_id": BUILD_ID.hex()}]
            module = send(s, "/core", form(upload_file_core=core.done(), modules=modules))[1]["modules"][0]
            equal((module["code_id"], module["debug_id"]), (BUILD_ID.hex(), "c0bcc3f1-9827-fe65-3058-404b2831d9e6"))
        equal(send(s, "/core", form(upload_file_core=core.done(), modules=[{"type": "elf"}]))[0], 400)


def test_unusable_requests_are_refused(work, objects):
    with Service(work, {"core_body_max_bytes": 20000}) as s:
        equal(send(s, "/core", form(options={})), (400, {"detail": "missing core file"}))
        equal(send(s, "/core", b"hello", OCTETS), (200, {"status": "failed", "message": "not an ELF core file"}))
        equal(send(s, "/core", cores.Core().done(), OCTETS)[1]["status"], "failed")
        equal(send(s, "/core", small_core(), {"Content-Type": "text/plain"})[0], 400)
        equal(send(s, "/core", b"x" * 20001, OCTETS)[0], 413)
        status, answer = send(s, "/core", gzip.compress(small_core() + bytes(1 << 20)), OCTETS)
        equal(status, 413, answer)
        equal(send(s, "/core", gzip.compress(small_core())[:100], OCTETS)[0], 400)


def test_null_dereference_is_symbolicated(work, objects):
    """The files of the program come with the request: the stripped program, which has the unwind tables, and its debug file."""
    program = cores.build(work, cores.NULL, "t")
    subprocess.run(["objcopy", "--only-keep-debug", "t", "t.debug"], cwd=work, check=True)
    subprocess.run(["strip", program], check=True)
    core = cores.by_kernel(program, work)
    command = ["curl", "-s", "-F", f"upload_file_core=@{core}", "-F", f"artifact=@{program}", "-F", f"artifact=@{program}.debug"]
    with Service(work, {"minidump": {"details": True}}) as s:
        done = subprocess.run([*command, f"http://127.0.0.1:{s.port}/core"], capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout)
        equal(answer["crash_reason"], "SIGSEGV / SEGV_MAPERR / 0x0")
        frames = [(f.get("function"), f.get("lineno"), f["trust"]) for f in answer["stacktraces"][0]["frames"][:3]]
        equal(frames, [("inner", 3, "context"), ("middle", 4, "context"), ("main", 5, "cfi")])
        analysis = answer["details"]["crash_analysis"]
        equal((analysis["adjusted_address"], analysis["memory_accesses"][0]["address"]), ({"kind": "null-pointer", "offset": "0x0"}, "0x0"))
        equal("missing_code" in answer["details"], False)


def crashed_library(core_code=b""):
    """The core of an x86-64 library that crashed in `mov eax, dword [rdi]`, and the library. The kernel leaves code out of cores."""
    core = cores.Core(cores.AMD64).thread(7, {"rip": 0x11010, "rsp": 0x7000, "rdi": 0x45}, 11).siginfo(11, 1, 0x45)
    segments = [(cores.R, 0, 0, 0x1000, 0x1000), (cores.R | cores.X, 0x1000, 0x1000, 0x1000, 0x1000)]
    image = core.image(segments, BUILD_ID).ljust(0x1000, b"\0")
    core.files([(0x10000, 0x11000, 0, "/lib/x.so"), (0x11000, 0x12000, 1, "/lib/x.so")])
    core.memory(0x10000, 0x1000, cores.R, image).memory(0x11000, 0x1000, cores.R | cores.X, core_code).memory(0x7000, 16, cores.R | cores.W, bytes(16))
    return core.done(), image + (b"\x90" * 16 + b"\x8b\x07").ljust(0x1000, b"\x90")


def code_seen(answer):
    details = answer.get("details", {})
    return details.get("crash_analysis", {}).get("instruction"), details.get("missing_code")


def test_code_of_a_crash_is_read_from_the_file_with_the_id(work, objects):
    core, library = crashed_library()
    held, _ = crashed_library(b"\x90" * 16 + b"\x8b\x06")
    missing = {"code_file": "/lib/x.so", "code_id": BUILD_ID.hex(), "image_addr": "0x10000"}
    path = f"/{BUILD_ID.hex()[:2]}/{BUILD_ID.hex()[2:]}/executable"
    with Upstream({}) as up, Service(work, {"minidump": {"details": True}}) as s:
        source = {"id": "up", "type": "http", "url": up.url, "layout": {"type": "unified"}, "filters": {"filetypes": ["elf_code"]}}
        equal(code_seen(send(s, "/core", form(upload_file_core=core, sources=[]))[1]), (None, missing))
        equal(code_seen(send(s, "/core", form(upload_file_core=held, sources=[]))[1]), ("mov eax, dword [rsi]", None), "the core has it")
        up.routes[path] = library
        answer = send(s, "/core", form(upload_file_core=core, sources=[source]))[1]
        equal(code_seen(answer), ("mov eax, dword [rdi]", None), up.hits)
        equal(answer["details"]["crash_analysis"]["memory_accesses"], [{"address": "0x45", "size": 4, "access_type": "read"}])


def test_code_of_another_file_is_not_used(work, objects):
    core, library = crashed_library()
    path = f"/{BUILD_ID.hex()[:2]}/{BUILD_ID.hex()[2:]}/executable"
    with Upstream({path: library.replace(BUILD_ID, bytes(20 * [7]))}) as up, Service(work, {"minidump": {"details": True}}) as s:
        source = {"id": "up", "type": "http", "url": up.url, "layout": {"type": "unified"}, "filters": {"filetypes": ["elf_code"]}}
        equal(code_seen(send(s, "/core", form(upload_file_core=core, sources=[source]))[1])[0], None)
        equal(up.hits.get(path, 0) > 0, True, up.hits)


def test_details_of_a_crash_are_left_out_by_default(work, objects):
    with Service(work) as s:
        equal(send(s, "/core", form(upload_file_core=crashed_library()[0], sources=[]))[1].get("details"), None)
