"""Mozilla's API: the cost of warm requests, the rate of small ones against nginx, and a large symbol file from its last byte to
the answer."""
import http.client, json, os, random, tempfile, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import harness, http_rows

FRAMES, MODULES, REQUESTS = 200, 30, 10000
BIG = 300e6


def module(number, functions=2000, every=2):
    """(debug file, debug id, text): of `every` functions one has an inlined call at all of its addresses."""
    debug_id = f"{number:032X}0"
    lines = [f"MODULE Linux x86_64 {debug_id} lib{number}.so", f"INFO CODE_ID {number:08X} lib{number}.so", "FILE 0 /src/outer.cpp",
             "FILE 1 /src/inner.h", "INLINE_ORIGIN 0 inner::call(int)"]
    for i in range(functions):
        lines.append(f"FUNC {i * 64:x} 40 0 ns::function_{number}_{i}(std::string const&)")
        if i % every == 0:
            lines.append(f"INLINE 0 {i % 900 + 7} 0 0 {i * 64:x} 40")
        lines.append(f"{i * 64:x} 40 {i % 900 + 1} {1 if i % every == 0 else 0}")
    return f"lib{number}.so", debug_id, "\n".join(lines) + "\n"


def place(m):
    return f"/{m[0]}/{m[1]}/{m[0]}.sym"


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def warm(modules, s):
    """Milliseconds of processor that a request takes, on one connection; and inlined calls a frame."""
    rng = random.Random(1)
    stack = [[i % MODULES, rng.randrange(2000) * 64 + rng.randrange(64)] for i in range(FRAMES)]
    body = json.dumps({"jobs": [{"memoryMap": [m[:2] for m in modules], "stacks": [stack]}]})
    connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)

    def post():
        connection.request("POST", "/symbolicate/v5", body)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return text

    result = json.loads(post())["results"][0]
    assert all(result["found_modules"].values()) and all(f.get("function") for f in result["stacks"][0])
    levels = sum(1 + len(f.get("inlines", [])) for f in result["stacks"][0]) / FRAMES
    begin = cpu_seconds(s.process.pid)
    for _ in range(REQUESTS):
        post()
    return (cpu_seconds(s.process.pid) - begin) * 1000 / REQUESTS, levels


def one_frame(work, modules, s, row):
    body = json.dumps({"memoryMap": [modules[0][:2]], "stacks": [[[0, 70]]]})
    status, _, text = s.request("POST", "/symbolicate/v5", body)
    answer = text.decode()
    assert status == 200 and "function_" in answer, answer
    with http_rows.nginx(work, f"default_type application/json; return 200 '{answer}';") as url:
        a, b = http_rows.side_by_side(
            lambda: http_rows.requests_per_second(f"http://127.0.0.1:{s.port}/symbolicate/v5", body, work),
            lambda: http_rows.requests_per_second(url, body, work))
    row("cached one-frame v5, requests/s, nginx", a, b, "1/s", ">= 0.7")


class Slow(BaseHTTPRequestHandler):
    """Sends a file, and notes when its last byte was sent."""
    protocol_version = "HTTP/1.1"
    data, done = b"", 0.0

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.data)))
        self.end_headers()
        self.wfile.write(self.data[:-1])
        self.wfile.flush()
        time.sleep(0.5)  # all but one byte is there
        Slow.done = time.monotonic()
        self.wfile.write(self.data[-1:])


def big_file():
    """Functions of a dozen lines, each with an inlined call in it, as files of large programs have them."""
    debug_id = f"{999:032X}0"
    pieces = [f"MODULE Linux x86_64 {debug_id} big.so\n", *(f"FILE {i} /src/folder_{i % 50}/file_{i}.cpp\n" for i in range(5000)),
              *(f"INLINE_ORIGIN {i} inner::call_{i}(int)\n" for i in range(9000))]
    size, number = sum(map(len, pieces)), 0
    while size < BIG:
        base, file = number * 96, number // 40 % 5000
        lines = "".join(f"{base + i * 8:x} 8 {number % 3000 + i + 1} {file}\n" for i in range(12))
        pieces.append(f"FUNC {base:x} 60 0 ns::function_{number}(std::string const&)\n"
                      f"INLINE 0 {number % 3000 + 3} {file} {number % 9000} {base + 16:x} 10 {base + 64:x} 10\n{lines}")
        size += len(pieces[-1])
        number += 1
    return "big.so", debug_id, "".join(pieces).encode()


def large(work):
    """(bytes, seconds from the last byte to the answer)"""
    name, debug_id, data = big_file()
    Slow.data = data
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with harness.Service(work, {"mozilla": {"sources": [f"http://127.0.0.1:{server.server_address[1]}"]}}) as s:
            body = json.dumps({"memoryMap": [[name, debug_id]], "stacks": [[[0, 70]]]})
            status, _, text = s.request("POST", "/symbolicate/v5", body)
            took = time.monotonic() - Slow.done
            assert status == 200 and b"function_" in text, text[:300]
    finally:
        server.shutdown()
        server.server_close()
    return len(data), took


def main(symloom, row):
    harness.SYMLOOM = symloom
    with tempfile.TemporaryDirectory(prefix="symloom-bench-") as work:
        modules = [module(i + 1) for i in range(MODULES)]
        with harness.Upstream({place(m): m[2].encode() for m in modules}) as up, \
                harness.Service(work, {**http_rows.QUIET, "mozilla": {"sources": [up.url]}}) as s:
            cost, levels = warm(modules, s)
            print(f"warm v5 of {FRAMES} frames over {MODULES} modules, {levels:.2f} functions a frame: {cost:.3f} ms of CPU a request "
                  "(must < 0.3)")
            one_frame(work, modules, s, row)
        size, took = large(work)
        print(f"a Breakpad file of {size / 1e6:.0f} MB, last byte to the answer: {took:.2f} s, {size / took / 1e6:.0f} MB/s (must >= 200)")


if __name__ == "__main__":
    import sys
    main(sys.argv[1], lambda what, a, b, unit, must: print(f"{what}: {a:.0f} {b:.0f} {a / b:.3f} {must}"))
