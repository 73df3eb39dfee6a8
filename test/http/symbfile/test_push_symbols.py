"""push-symbols with symbfiles: what is made of programs, sent in parts, and found by it."""
import base64, hashlib, json, os, subprocess, threading

import harness
from harness import equal, frames, request
from test_symbfile import FIVE, ID64, RANGES, found, push, service, written


def file_id(data):
    return hashlib.sha256(data[:4096] + data[-4096:] + len(data).to_bytes(8, "big")).hexdigest()[:32]


def resolve(s, path, addresses, image=0x10000000, **module):
    """Chains of (function, line) at addresses relative to the load address."""
    with open(path, "rb") as f:
        body = {"modules": [{"type": "elf", "image_addr": hex(image), "file_id": file_id(f.read()), **module}], "sources": [],
                "stacktraces": [{"frames": [{"instruction_addr": hex(image + a)}]} for a in addresses]}
    answer = s.symbolicate(body)
    return [frames(answer, i) for i in range(len(addresses))]


def test_pushed_symbols_are_used(work, objects):
    path = os.path.join(objects.dir, "full")
    with service(work) as s:
        url = f"http://127.0.0.1:{s.port}/"
        first = push("executable", "-e", path, "-u", url, "-t", "ci:secret", "-v")
        equal("part 1 of 1 sent" in first.stderr and "DWARF" in first.stderr, True, first.stderr)
        inlined = objects.line_addresses(3)[0]
        chain = resolve(s, path, [inlined])[0]
        equal([(f["function"], f["lineno"]) for f in chain], [("innermost", 3), ("middle", 6), ("shapes::Box::area(int)", 12)])
        equal(chain[0]["abs_path"], os.path.join(objects.dir, "shapes.cc"))
        equal(chain[-1]["sym_addr"], hex(0x10000000 + objects.address("_ZN6shapes3Box4areaEi")))
        # by build id too, as the service was told it
        answer = s.symbolicate(request(objects.module(), [inlined], sources=[]))
        equal([f["function"] for f in frames(answer)], ["innermost", "middle", "shapes::Box::area(int)"])
        again = push("executable", "-e", path, "-u", url, env={"SYMLOOM_API_KEY": "Y2k6c2VjcmV0"})
        equal(again.stderr.count("already uploaded"), 2, again.stderr)
        forced = push("executable", "-e", path, "-u", url, "-t", "ci:secret", "--force", "--compress", "none", "--progress", "json")
        equal([json.loads(l)["event"] for l in forced.stderr.splitlines() if l.startswith("{")], ["sent", "sent"])


def test_stripped_program_is_pushed_with_its_debug_file(work, objects):
    stripped, debug = (os.path.join(objects.dir, n) for n in ("stripped", "full.debug"))
    with service(work) as s:
        url = f"http://127.0.0.1:{s.port}"
        push("executable", "-e", stripped, "-d", debug, "-u", url, "-t", "ci:secret")
        chain = resolve(s, stripped, [objects.line_addresses(3)[0]])[0]
        equal([f["function"] for f in chain], ["innermost", "middle", "shapes::Box::area(int)"])
        # a caller's frame is answered by the pad of its call
        start = objects.address("_start") + objects.load
        call = [l for l in objects._run("objdump", "-d", f"--start-address={start}", "full").splitlines() if "call" in l][0]
        after = int(call.split(":")[0], 16) + len(call.split("\t")[1].split()) - objects.load
        body = {"modules": [{"type": "elf", "image_addr": "0x10000000", "file_id": file_id(objects.stripped)}], "sources": [],
                "stacktraces": [{"frames": [{"instruction_addr": hex(0x10000000 + after), "adjust_instruction_addr": True}]}]}
        equal(frames(s.symbolicate(body))[0]["function"], "_start")


def test_large_push_is_split_and_compressed(work, objects):
    """More than one part, compressed; the answers are those of the file itself."""
    source = os.path.join(work, "big.cc")
    with open(source, "w") as f:
        f.write("static volatile int sink;\n")
        inner, outer = "inner_" + "x" * 100, "function_with_" + "y" * 100
        for i in range(6000):
            f.write(f"static inline __attribute__((always_inline)) int {inner}_{i}(int a) {{ sink = a; return a + {i}; }}\n"
                    f"int {outer}_{i}(int a) {{ return {inner}_{i}(a) * 2; }}\n")
        f.write("int main() { return 0; }\n")
    path = os.path.join(work, "big")
    subprocess.run(["g++", "-g", "-O1", "-o", path, source], check=True)
    with service(work) as s:
        sent = push("executable", "-e", path, "-u", f"http://127.0.0.1:{s.port}", "-t", "ci:secret", "--chunk-size", "1048576",
                    "--concurrency", "3")
        equal("ranges: part 2 of " in sent.stderr, True, sent.stderr)
        symbols = [int(l.split()[0], 16) for l in
                   subprocess.run(["nm", path], capture_output=True, text=True).stdout.splitlines() if "function_with" in l]
        addresses = [a + d for a in sorted(symbols) for d in (0, 4)]
        mine = resolve(s, path, addresses)
        answers = subprocess.run([harness.SYMLOOM, "lookup", "-e", path, "--output-style=llvm", "-C", "-f", "-i", "--relative-address"],
                                 input="\n".join(hex(a) for a in addresses) + "\n", capture_output=True, text=True).stdout
        expected = [block.splitlines() for block in answers.strip("\n").split("\n\n")]
        equal(len(expected), len(mine))
        for address, chain, lines in zip(addresses, mine, expected):
            got = [x for f in chain for x in (f["function"], f"{f['abs_path']}:{f['lineno']}")]
            want = [":".join(l.split(":")[:2]) if "/" in l else l for l in lines]
            equal(got, want, hex(address))


def test_dry_run_writes_symbfiles_that_can_be_pushed(work, objects):
    out = os.path.join(work, "out")  # made
    path = os.path.join(objects.dir, "full")
    for _ in range(2):
        equal(push("executable", "-e", path, "--dry-run", "--output", out).returncode, 0)
    name = file_id(objects.full)
    equal(sorted(os.listdir(out)), [name + ".ranges.symbfile", name + ".returnpads.symbfile"])
    with service(work) as s:
        push("symbfile", "--file-id", ID64, "--ranges", written(work, RANGES), "-u", f"http://127.0.0.1:{s.port}", "-t", "ci:secret")
        equal(found(s), FIVE)


def test_dry_run_writes_all_records_of_a_large_symbfile(work, objects):
    """The file is larger than a part of the given size; the copy of a dry run has every record nevertheless."""
    path, first, second = (os.path.join(work, name) for name in ("many", "first", "second"))
    with open(path + ".s", "w") as f:
        for i in range(12000):
            name = f"function_with_{'y' * 100}_{i}"
            f.write(f".globl {name}\n.type {name}, %function\n{name}: .space 8\n.size {name}, 8\n")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", path, path + ".s"], check=True)
    push("executable", path, "--no-returnpads", "--dry-run", "--output", first)
    with open(path, "rb") as f:
        identity = file_id(f.read())
    name = identity + ".ranges.symbfile"
    with open(os.path.join(first, name), "rb") as f:
        ranges = f.read()
    equal(len(ranges) > 1 << 20, True, "more than one part")
    push("symbfile", "--file-id", identity, "--ranges", os.path.join(first, name), "--chunk-size", "1048576", "--dry-run", "--output", second)
    with open(os.path.join(second, name), "rb") as f:
        equal(f.read() == ranges, True, "the copy has all bytes")


def test_push_failures_report_the_reason(work, objects):
    path = os.path.join(objects.dir, "full")
    push("executable", expect=2)
    assert "missing mode" in push("executables", "-e", path, expect=2).stderr
    assert path + ": " in push("executable", "-e", path, "--dry-run", "--output", path, expect=1).stderr
    push("-e", path, "-u", "http://127.0.0.1:1", expect=2)
    push("executable", "-e", path, "-u", "http://x", "--chunk-size", "1", expect=2)
    push("executable", "-e", os.path.join(objects.dir, "shapes.cc"), "-u", "http://x", expect=3)
    push("executable", "-e", path, "-d", harness.SYMLOOM, "--dry-run", expect=3)
    push("executable", "-e", path, "-u", "http://127.0.0.1:1", "--retries", "0", expect=1)
    with service(work) as s:
        url = f"http://127.0.0.1:{s.port}"
        denied = push("executable", "-e", path, "-u", url, "-t", "ci:wrong", expect=4)
        equal("code 1003" in denied.stderr and "quote this" in denied.stderr, True, denied.stderr)
        push("executable", "-e", path, "-u", url, "-t", base64.b64encode(b"boss:x:y").decode(), expect=4)


def test_push_retries_temporary_failures_of_other_servers(work, objects):
    """A service that knows nothing of ours gets no headers of ours; failures that may pass are tried again."""
    seen, failures = [], {"/api/symbols-ranges": [503, 415], "/api/symbols-returnpads": []}

    class Handler(harness.UpstreamHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, self.headers, body))
            left = failures[self.path]
            if left:
                self.reply(left.pop(0), headers=[("Retry-After", "0")])
            else:
                self.reply(200, b'{"success":true,"status":200}')

    up = harness.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    up.routes, up.hits, up.lock = {}, {}, threading.Lock()
    threading.Thread(target=up.serve_forever, daemon=True).start()
    try:
        push("executable", "-e", os.path.join(objects.dir, "full"), "-u", f"http://127.0.0.1:{up.server_address[1]}//", "-t", "ci:secret",
             "--compress", "zstd")
        equal([p for p, _, _ in seen], ["/api/symbols-ranges"] * 3 + ["/api/symbols-returnpads"])
        path, headers, body = seen[2]
        equal(body[:8], b"symbfile")
        equal((headers["Authorization"], headers["FilePart"], headers["FileParts"], headers["FileID"]),
              ("APIKey Y2k6c2VjcmV0", "0", "1", base64.urlsafe_b64encode(bytes.fromhex(file_id(objects.full))).decode().rstrip("=")))
        equal([h for h in ("UploadID", "BuildID", "BaseAddress", "CodeFile", "Content-Encoding") if h in headers], [])
    finally:
        up.shutdown()
        up.server_close()
