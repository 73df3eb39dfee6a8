"""Crash files whose symbols and unwind rules only the store has; and stores without room."""
import json, os

import dumps
from faults import small_disk
from harness import equal
from pushing import SYM, XPC, get, server, stored, upload

X = "x/C0BCC3F19827FE653058404B2831D9E60/x.sym"
X_SYM = (b"MODULE Linux x86_64 C0BCC3F19827FE653058404B2831D9E60 x\nFUNC 0 100 0 inner\nFUNC 1f0 100 0 outer\n"
         b"STACK CFI INIT 0 300 .cfa: $rsp 24 + .ra: .cfa 8 - ^\n")
MAC = "YetAnotherMac/2D903291397D3D14BFCA52C7FB8C5E000/YetAnotherMac.sym"
MAC_SYM = b"MODULE mac x86_64 2D903291397D3D14BFCA52C7FB8C5E000 YetAnotherMac\nFUNC 522900 100 0 -[App run]\n"
REPORT = b"""Incident Identifier: 5C32DF84-31A0-43E7-87D0-239F7F594940
Code Type:       X86-64 (Native)
Report Version:  104
Crashed Thread:  0

Thread 0 Crashed:
0   YetAnotherMac                       0x0000000108b7092b 0x10864e000 + 5384491

Binary Images:
       0x10864e000 -        0x10ee0ffff +YetAnotherMac x86_64 (400.9.4 - 1.0.0) <2d903291397d3d14bfca52c7fb8c5e00> /Apps/YetAnotherMac
"""


def dump():
    made = dumps.Dump(text="Linux 4.9.60 x86_64", version=(0, 0, 0))
    stack = bytearray(64)
    stack[16:24] = (0x10200).to_bytes(8, "little")
    made.threads.append((7, {"rsp": 0x7000, "rip": 0x10010}, 0x7000, bytes(stack)))
    made.modules.append((0x10000, 0x1000, "/usr/lib/x", dumps.elf("f1c3bcc0279865fe3058404b2831d9e64135386c"), 0))
    return made.crash(7, 11, 0, 69).done()


def ask_crash(s, path, name, data):
    """The functions of the first thread's frames, and how each was found."""
    body = f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + data
    body += b'\r\n--B\r\nContent-Disposition: form-data; name="sources"\r\n\r\n[]\r\n--B--\r\n'
    status, _, answer = s.request("POST", path, body, {"Content-Type": "multipart/form-data; boundary=B"})
    equal(status, 200, answer)
    return [(f.get("function"), f.get("trust")) for f in json.loads(answer)["stacktraces"][0]["frames"]]


def ask_minidump(s):
    return ask_crash(s, "/minidump", "upload_file_minidump", dump())


def test_crash_files_are_answered_from_the_store(work, objects):
    with server(work) as s:
        report = lambda: ask_crash(s, "/applecrashreport", "apple_crash_report", REPORT)
        equal((ask_minidump(s), report()), ([(None, "context"), (None, "scan")], [(None, None)]))
        upload(s, {X: X_SYM, MAC: MAC_SYM})
        equal(ask_minidump(s)[:2], [("inner", "context"), ("outer", "cfi")])
        equal(report(), [("-[App run]", None)])
        upload(s, {X: X_SYM.replace(b"inner", b"other")})
        equal(ask_minidump(s)[0], ("other", "context"))
    with server(work, {"serve_native": False}) as s:
        equal(ask_minidump(s)[0], (None, "context"))


def test_full_store_keeps_whole_files(work, objects):
    """What fitted stays and is whole, nothing else is there, and later the rest comes to it."""
    big = {f"lib{i}.so/AB{i:04X}0/lib{i}.so": os.urandom(700000) for i in range(6)}
    with small_disk(work, "3m") as disk:
        if not disk:
            return
        with server(work, {"workers": 1, "filesystem": {"path": os.path.join(disk, "store")}}) as s:
            equal(upload(s, big), (500, {"error": "Internal Server Error"}))
            equal(s.request("GET", "/healthcheck")[0], 200)
            root = os.path.join(disk, "store")
            there = {os.path.relpath(os.path.join(d, f), root): os.path.join(d, f) for d, _, files in os.walk(root) for f in files}
            assert 1 <= len(there) < len(big) and all(n.startswith("v1/") for n in there), there
            for name, path in there.items():
                with open(path, "rb") as f:
                    assert f.read() == big[name.removeprefix("v1/")], name
            os.unlink(there.pop("v1/lib0.so/AB00000/lib0.so"))
            few = dict(list(big.items())[:2])
            status, answer = upload(s, few)
            equal((status, answer["upload"]["skipped_keys"]), (201, [n for n in few if "v1/" + n in there]))


def test_full_cache_dir_refuses_uploads(work, objects):
    """The body of an upload has no place: the client is told so, and nothing stays."""
    with small_disk(work, "2m") as disk:
        if not disk:
            return
        store = os.path.join(work, "store")
        with server(work, {"filesystem": {"path": store}}, cache_dir=os.path.join(disk, "cache")) as s:
            status, answer = upload(s, {"a/AB/a.bin": os.urandom(5000000)})
            equal((status, answer), (500, {"error": "Internal Server Error"}))
            equal(upload(s, {XPC: SYM})[0], 201)
            equal(get(s, XPC)[2], SYM)
            equal([n for n in stored(work) if "a.bin" in n or n.startswith("tmp/")], [])
