#!/usr/bin/env python3
"""Uploads and symbolication at the same time: 64 uploads are always on their way, each replacing the symbols of one
executable again and again, while requests come at a fixed rate; every answer is checked.

usage: symbfile_load.py SYMLOOM [SECONDS [REQUESTS_PER_SECOND]]
"""
import asyncio, json, multiprocessing, os, random, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "test", "http"), os.path.join(ROOT, "test", "http", "symbfile")]
import harness, test_symbfile

UPLOADS, FUNCTIONS, STEP, CHUNKS = 64, 3000, 32, 8
CONNECTIONS, ASKERS = 16, 3


def uleb(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out + bytes([n]))


def symbfile(generation):
    """Functions of 32 bytes from 0x1000 on, whose names tell the generation and whose lines their number."""
    out = bytearray(b"symbfile\x00\x01")
    for i in range(FUNCTIONS):
        name, lines = f"g{generation}_{i}".encode(), b"\x0a\x01\x00\x12" + uleb(len(uleb(i + 1))) + uleb(i + 1)
        message = (b"\x60" + uleb(0x1000) if i == 0 else b"\x08" + uleb(2 * STEP)) + b"\x10" + uleb(STEP) \
            + b"\x1a" + uleb(len(name)) + name + b"\x22\x03x.c" + b"\x42" + uleb(len(lines)) + lines
        out += uleb(len(message)) + b"\x02" + message
    return bytes(out)


def file_id(slot):
    return f"{slot:032x}"


async def answer(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    length = [int(l.split(b":")[1]) for l in head.split(b"\r\n") if l.lower().startswith(b"content-length:")]
    return int(head.split(b" ", 2)[1]), await reader.readexactly(length[0])


async def upload_for_ever(port, slot, until, bodies, counts):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    generation = slot
    while time.monotonic() < until:
        body = bodies[generation % len(bodies)]
        writer.write(f"POST /api/symbols-ranges HTTP/1.1\r\nHost: x\r\nAuthorization: {test_symbfile.KEY}\r\n"
                     f"FileID: {file_id(slot)}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        size = len(body) // CHUNKS + 1
        for at in range(0, len(body), size):
            writer.write(body[at:at + size])
            await writer.drain()
            await asyncio.sleep(0.1)  # as over a network: the uploads are on their way at the same time
        status, data = await answer(reader)
        counts["uploads" if status == 200 else "failed"] += 1
        if status != 200:
            print(status, data)
        generation += 1
    writer.close()


def uploader(port, until, results):
    counts, bodies = {"uploads": 0, "failed": 0}, [symbfile(g) for g in range(4)]

    async def run():
        await asyncio.gather(*(upload_for_ever(port, slot, until, bodies, counts) for slot in range(UPLOADS)))
    asyncio.run(run())
    results.put(counts)


async def ask_for_ever(port, until, period, first, counts, latencies):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    due = time.monotonic() + first
    while due < until:
        await asyncio.sleep(max(0, due - time.monotonic()))
        i = random.randrange(FUNCTIONS)
        slot = random.randrange(UPLOADS) if random.random() < 0.1 else UPLOADS  # the last one is not replaced
        body = json.dumps({"modules": [{"type": "elf", "image_addr": "0x0", "file_id": file_id(slot)}], "stacktraces": [
            {"frames": [{"instruction_addr": hex(0x1000 + i * STEP + 5), "addr_mode": "rel:0"}]}]}).encode()
        writer.write(b"POST /symbolicate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                     % len(body) + body)
        status, data = await answer(reader)
        latencies.append(time.monotonic() - due)
        frame = json.loads(data)["stacktraces"][0]["frames"][0] if status == 200 else {}
        good = status == 200 and frame.get("lineno") == i + 1 and frame.get("function", "").endswith(f"_{i}")
        counts["answers" if good else "failed"] += 1
        if not good:
            print(status, data[:400])
        due += period
    writer.close()


def asker(port, until, rate, results):
    counts, latencies, period = {"answers": 0, "failed": 0}, [], CONNECTIONS / rate

    async def run():
        await asyncio.gather(*(ask_for_ever(port, until, period, period * n / CONNECTIONS, counts, latencies)
                               for n in range(CONNECTIONS)))
    asyncio.run(run())
    results.put({**counts, "latencies": latencies})


def main(symloom, seconds="60", rate="1000"):
    harness.SYMLOOM = symloom
    results = multiprocessing.Queue()
    with tempfile.TemporaryDirectory(prefix="symloom-load-") as work, \
            test_symbfile.service(work, config={"logging": {"access": "off"}}) as s:
        for slot in range(UPLOADS + 1):
            test_symbfile.good(s, symbfile(0), FileID=file_id(slot))
        until = time.monotonic() + float(seconds)
        children = [multiprocessing.Process(target=uploader, args=(s.port, until, results))]
        children += [multiprocessing.Process(target=asker, args=(s.port, until, float(rate) / ASKERS, results))
                     for _ in range(ASKERS)]
        for child in children:
            child.start()
        got = [results.get(timeout=float(seconds) + 120) for _ in children]
        for child in children:
            child.join()
        with open(f"/proc/{s.process.pid}/status") as f:
            peak = [int(l.split()[1]) / 1024 for l in f if l.startswith("VmHWM")][0]
    latencies = sorted(l for g in got for l in g.get("latencies", []))
    total = {k: sum(g.get(k, 0) for g in got) for k in ("uploads", "answers", "failed")}
    print(f"{seconds} s: {total['uploads']} uploads ({UPLOADS} at once), {total['answers']} answers "
          f"({total['answers'] / float(seconds):.0f}/s), {total['failed']} errors; latency median "
          f"{latencies[len(latencies) // 2] * 1e3:.1f} ms, 99% {latencies[len(latencies) * 99 // 100] * 1e3:.1f} ms; "
          f"peak memory {peak:.0f} MiB")
    return total["failed"] != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
