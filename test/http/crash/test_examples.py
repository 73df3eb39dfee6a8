"""Whole answers about crash files of other systems, and names by which modules are looked up."""
import json, os, struct, subprocess, urllib.parse

import dumps
import harness
from harness import Service, Upstream, equal, from_corpus
from test_crash_files import anywhere, form, send, small_dump

NOTHING = {"has_debug_info": False, "has_unwind_info": False, "has_symbols": False, "has_sources": False}
REPORT = """Incident Identifier: 5C32DF84-31A0-43E7-87D0-239F7F594940
Hardware Model:      MacBookPro14,3
Code Type:       X86-64 (Native)

Date/Time:       2019-01-09 17:42:22 +0000
OS Version:      Mac OS X 10.14.0 (18A391)
Report Version:  104

Exception Type:  SIGSEGV
Exception Codes: SEGV_MAPERR at 0x88
Crashed Thread:  5

Application Specific Information:
objc_msgSend() selector name: respondsToSelector:
  more information here

Thread 0:
0   libsystem_kernel.dylib              0x00007fff61bc6c2a 0x7fff61bc6000 + 3114
10  YetAnotherMac                       0x0000000108b7092b 0x10864e000 + 5384491
13  YetanotherMac                       0x00000000000ea004 main (main.m:16)

Thread 1 Crashed: Test Thread Name
0   libsystem_kernel.dylib              0x00007fff61bc85be 0x7fff61bc6000 + 9662
2   ???                                 0x0000000054485244 0x0 + 0

Thread 1 crashed with X86-64 Thread State:
   rip: 0x00000001090a0132    rbp: 0x0000700015a616d0    rsp: 0x0000700015a613f0    rax: 0x20261bb4775b008f
   r15: 0x0000000000000000 rflags: 0x0000000000010206     cs: 0x000000000000002b     fs: 0x0000000000000000

Binary Images:
       0x10864e000 -        0x10ee0ffff +YetAnotherMac x86_64 (400.9.4 - 1.0.0) <2d903291397d3d14bfca52c7fb8c5e00> /Apps/YetAnotherMac
       0x112bb2000 -        0x112dc3fff  libPhysX3PROFILE.dylib x86_64 (0.0.0 - 0.0.0) <6deccee4a0523ea4bb67957b06f53ad1> /Apps/libPhysX3PROFILE.dylib
"""


def frame(index, address, status="unknown_image", **more):
    return {"status": status, "original_index": index, "instruction_addr": address, **more}


def image(status, path, uuid, address, size, **more):
    return {"debug_status": status, "features": NOTHING, "arch": "unknown", "type": "macho", "code_id": uuid.replace("-", ""),
            "code_file": path, "debug_id": uuid, "debug_file": path, "image_addr": address, "image_size": size, **more}


def answer_to_report():
    registers = {"cs": "0x2b", "fs": "0x0", "r15": "0x0", "rax": "0x20261bb4775b008f", "rbp": "0x700015a616d0", "rflags": "0x10206",
                 "rip": "0x1090a0132", "rsp": "0x700015a613f0"}
    kernel = {"package": "libsystem_kernel.dylib"}
    return {
        "status": "completed", "timestamp": 1547055742,
        "system_info": {"os_name": "macOS", "os_version": "10.14.0", "os_build": "18A391", "cpu_arch": "x86_64",
                        "device_model": "MacBookPro14,3"},
        "crashed": True, "crash_reason": "SIGSEGV",
        "crash_details": "objc_msgSend() selector name: respondsToSelector:\n  more information here",
        "stacktraces": [
            {"thread_id": 0, "is_requesting": False, "frames": [
                frame(0, "0x7fff61bc6c2a", **kernel), frame(1, "0x108b7092b", "missing", package="/Apps/YetAnotherMac"),
                frame(2, "0xea004", package="YetanotherMac")]},
            {"thread_id": 1, "thread_name": "Test Thread Name", "is_requesting": True, "registers": registers, "frames": [
                frame(0, "0x7fff61bc85be", **kernel), frame(1, "0x54485244")]}],
        "modules": [image("missing", "/Apps/YetAnotherMac", "2d903291-397d-3d14-bfca-52c7fb8c5e00", "0x10864e000", 108797951),
                    image("unused", "/Apps/libPhysX3PROFILE.dylib", "6deccee4-a052-3ea4-bb67-957b06f53ad1", "0x112bb2000", 2170879)]}


def test_apple_report_as_text_is_answered_in_full(work, objects):
    for names in (False, True):
        with Service(work, {"apple": {"names_from_report": names}}) as s:
            status, answer = send(s, "/applecrashreport", form(apple_crash_report=REPORT.encode(), sources=[], unknown=b"x"))
            wanted = answer_to_report()
            if names:  # those of frames that no debug file names
                frames = wanted["stacktraces"][0]["frames"]
                frames[2] |= {"function": "main", "filename": "main.m", "lineno": 16}
            equal((status, answer), (200, wanted))


IPS = (
    {"app_name": "Demo", "timestamp": "2021-11-24 16:54:53.00 +0100", "bug_type": "309", "os_version": "macOS 12.0.1 (21A559)",
     "incident_id": "5C32DF84-31A0-43E7-87D0-239F7F594940"},
    {"captureTime": "2021-11-24 16:54:52.1234 +0100", "osVersion": {"train": "macOS 12.0.1", "build": "21A559"},
     "modelCode": "MacBookPro18,3", "cpuType": "ARM-64", "procName": "Demo",
     "exception": {"type": "EXC_BAD_ACCESS", "signal": "SIGSEGV", "codes": "0x0000000000000001, 0x0000000000000000",
                   "subtype": "KERN_INVALID_ADDRESS at 0x0000000000000000"},
     "faultingThread": 0,
     "threads": [{"triggered": True, "id": 4711, "queue": "com.apple.main-thread",
                  "threadState": {"flavor": "ARM_THREAD_STATE64", "x": [{"value": 2**64 - 1}], "pc": {"value": 4294983536},
                                  "cpsr": {"value": 1610616832}},
                  "frames": [{"imageOffset": 16240, "imageIndex": 0, "symbol": "main", "symbolLocation": 40},
                             {"imageOffset": 21480, "imageIndex": 1, "symbol": "start"}]}],
     "usedImages": [{"source": "P", "arch": "arm64", "base": 1 << 32, "size": 16384, "uuid": "2d903291-397d-3d14-bfca-52c7fb8c5e00",
                     "path": "/Apps/Demo", "name": "Demo"},
                    {"source": "A", "base": 0, "size": 0, "uuid": "00000000-0000-0000-0000-000000000000"}]})


def test_apple_report_as_json_is_answered_in_full(work, objects):
    report = "\n".join(json.dumps(part, indent=1 if i else None) for i, part in enumerate(IPS)).encode()
    with Service(work) as s:
        status, answer = send(s, "/applecrashreport", form(apple_crash_report=report, sources=[]))
        registers = {"cpsr": "0x60001000", "pc": "0x100003f70", "x0": "0xffffffffffffffff"}
        equal((status, answer), (200, {
            "status": "completed", "timestamp": 1637769292,
            "system_info": {"os_name": "macOS", "os_version": "12.0.1", "os_build": "21A559", "cpu_arch": "arm64",
                            "device_model": "MacBookPro18,3"},
            "crashed": True, "crash_reason": "EXC_BAD_ACCESS (SIGSEGV)",
            "crash_details": "KERN_INVALID_ADDRESS at 0x0000000000000000",
            "stacktraces": [{"thread_id": 0, "thread_name": "com.apple.main-thread", "is_requesting": True, "registers": registers,
                             "frames": [frame(0, "0x100003f70", "missing", package="/Apps/Demo", function="main"),
                                        frame(1, "0x53e8", function="start")]}],
            "modules": [image("missing", "/Apps/Demo", "2d903291-397d-3d14-bfca-52c7fb8c5e00", "0x100000000", 16384)]}))


def test_downloaded_crash_files_may_be_content_encoded(work, objects):
    """A download may be encoded, whatever it holds."""
    def packed(data):
        file = subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout
        return lambda h: h.reply(200, file, headers=[("Content-Encoding", "zstd")])

    with Upstream({"/dump": packed(small_dump()), "/report": packed(REPORT.encode())}) as up, Service(work) as s:
        for kind, path, part, data in (("minidump", "/minidump", "upload_file_minidump", small_dump()),
                                       ("applecrashreport", "/applecrashreport", "apple_crash_report", REPORT.encode())):
            _, wanted = send(s, path, form(**{part: data, "sources": []}))
            place = up.url + ("dump" if kind == "minidump" else "report")
            equal(anywhere(s, {"symbolicate": {"type": kind, "storage_url": place}}), (200, wanted))


RULES = [{"from": r"[^/\\]+ (?<suffix>Framework|Helper( \(.+\))?)$", "to": "Electron $suffix"},
         {"from": r"[^/\\]+\.exe\.pdb$", "to": "electron.exe.pdb"}, {"from": r"[^/\\]+$", "to": "electron"}]


def test_rewrite_rules_map_names_of_packaged_electron_apps(work, objects):
    names = {"My Awesome Crasher": "electron", "My Awesome Crasher Helper (Renderer)": "Electron Helper (Renderer)",
             "C:\\projects\\src\\out\\Default\\myapp.exe.pdb": "electron.exe.pdb", "/home/x/usr/lib/slack/slack": "electron"}
    guid = "3249d99d-0c40-4931-8610-f4e4fb0b6936"
    with Upstream({}) as up, Service(work) as s:
        sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "symstore"}}]
        for name, wanted in names.items():
            dump = dumps.Dump(platform=dumps.WINDOWS, version=(10, 0, 1))
            dump.threads.append((7, {"rsp": 0x7000, "rip": 0x10010}, 0x7000, bytes(64)))
            dump.modules.append((0x10000, 0x1000, "C:\\my.exe", dumps.pdb70(guid, 1, name), 0x5AB38077))
            body = form(upload_file_minidump=dump.done(), sources=sources, rewrite_first_module=RULES, options={"dif_candidates": True})
            _, answer = send(s, "/minidump", body)
            module = answer["modules"][0]
            equal(module["debug_file"], name)
            asked = {urllib.parse.unquote(c["location"].split("/")[-1]) for c in module["candidates"]}
            assert wanted in asked and name.replace("\\", "/").split("/")[-1] not in asked - {wanted}, (name, asked)


@from_corpus
def test_truncated_cfi_falls_back_to_symbols(work, objects):
    """Its rules cover one function only: without regard for its symbols each scanned address would be refused."""
    folder = "sentry_example/73781EDEBF5B34EC81B2749A0F1FA5FD0/"
    base, system = 0x1006B4000, 0x18B700000
    dump = dumps.Dump(cpu=dumps.ARM64, platform=dumps.MACOS, version=(26, 2, 0), text="25C56")
    stack = [0, 0x1006B6484, 0, 0x18B727F28, 5, 0x1006B4020, base, 0x1006B4590, system, 0x18B728994, 0x18B728978, 0, 0x18B72898C,
             0x18B7A0184, 0x18B72943C, 0x70000000]
    dump.threads.append((6130742, {"sp": 0x16F000000, "pc": 0x18BB0105C}, 0x16F000000, struct.pack(f"<{len(stack)}Q", *stack)))
    dump.modules.append((base, 0x10000, "/tmp/sentry_example", dumps.pdb70("73781ede-bf5b-34ec-81b2-749a0f1fa5fd", 0, "sentry_example"), 0))
    dump.modules.append((system, 0x410000, "/usr/lib/dyld", dumps.pdb70("0" * 8 + "-bf5b-34ec-81b2-749a0f1fa5fd", 0, "dyld"), 0))
    with open(os.path.join(harness.CORPUS, "fixtures/symbols", folder, "sentry_example.sym"), "rb") as f:
        symbols = f.read()
    with Upstream({"/" + folder + "sentry_example.sym": symbols}) as up, Service(work) as s:
        sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "native"}}]
        dump = dump.crash(6130742, 1, 1, 0x18BB0105C).done()
        _, answer = send(s, "/minidump", form(upload_file_minidump=dump, sources=sources))
        found = [(f["trust"], f.get("function"), f.get("lineno")) for f in answer["stacktraces"][0]["frames"]]
        unnamed, start = ("scan", None, None), ("scan", "_mh_execute_header", 0)
        equal(found, [("context", None, None), ("scan", "main", 975), unnamed, start, start] + 5 * [unnamed], json.dumps(answer, indent=1))
        equal([m["unwind_status"] for m in answer["modules"]], ["found", "missing"])
