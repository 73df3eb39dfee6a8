"""What each metric says, by what became of something."""
import json, os, re, socket, subprocess

import harness
from faults import metric
from harness import Service, Upstream, equal, http_source, request, wait_until
from test_crash_files import form, send, small_dump
from test_memory import MIB, big_request, post_unread
from test_symbfile import ask, good, service as uploads
from test_symbfile import EMPTY


def series(service, name):
    """The values of a metric by its labels, as they are written."""
    text = service.request("GET", "/metrics")[2].decode()
    return {labels: float(value) for labels, value in re.findall(rf"^symloom_{name}(?:\{{(.*)\}})? (\S+)$", text, re.M)}


def test_reference_lists_every_metric(work, shared):
    """What is scraped is what `config metrics` says."""
    said = subprocess.run([harness.SYMLOOM, "config", "metrics"], capture_output=True, text=True, check=True).stdout
    listed = dict(re.findall(r"^\| `((?:symloom|process)_\w+)` \| (\w+) \|", said, re.M))
    with Service(work, {}) as s:
        s.symbolicate({"stacktraces": [], "modules": []})
        scraped = dict(re.findall(r"^# TYPE (\w+) (\w+)$", s.request("GET", "/metrics")[2].decode(), re.M))
    equal({name: listed.get(name) for name in scraped}, scraped)


def test_downloads_are_counted_by_result(work, objects):
    bodies = {"01": 404, "02": 403, "03": bytes(5000), "04": bytes(500), "05": 500, "06": bytes(500)}
    source = {**http_source("", id="s", filters={"filetypes": ["elf_code"]})}
    with Upstream({f"/{name * 20}/executable": body for name, body in bodies.items()}) as up, \
            Service(work, {"sources": [{**source, "url": up.url}], "max_download_size": 1000, "deny_list_threshold": 1}) as s:
        for name in bodies:  # the fifth one blocks the host
            s.symbolicate(request(objects.module(code_id=name * 20, debug_id=None), [4096]))
        results = {re.search('result="(.*)"', labels)[1]: n for labels, n in series(s, "downloads_total").items()}
        equal(results, {"not_found": 1, "permission_denied": 1, "too_large": 1, "ok": 1, "error": 1, "blocked": 1})
        equal(series(s, "blocked_hosts"), {"": 1})
        phases = {re.search('phase="(.*)"', labels)[1]: n for labels, n in series(s, "download_seconds_count").items()}
        equal(phases["total"], 5)  # one never began
        assert phases["connect"] >= 5 and phases["body"] >= 1, phases


def test_conversions_are_counted_by_result(work, objects):
    first = EMPTY + bytes.fromhex("080260c00c10101a0161")
    long = first + b"".join(bytes.fromhex("f00702082010101ae907") + b"%04d" % i + 997 * b"x" for i in range(3000))
    many = first + 130000 * bytes.fromhex("0702082010101a0161")
    for limit, body, result in (({"max_time": "1ms"}, many, "over_time"), ({"max_memory": "1MiB"}, long, "over_memory"), ({}, first, "ok")):
        with uploads(work, config={"conversion": limit}) as s:
            good(s, body)
            ask(s, [0x644])
            equal(metric(s, f'symloom_conversions_total{{cache="symbfile_index",result="{result}"}}'), 1, result)
            for name in ("seconds", "input_bytes", "peak_bytes"):
                equal(metric(s, f'symloom_conversion_{name}_count{{cache="symbfile_index"}}'), 1, (result, name))
            peak = metric(s, 'symloom_conversion_peak_bytes_sum{cache="symbfile_index"}')
            assert 0 < peak <= (MIB if result == "over_memory" else 1 << 34), (result, peak)


def items(service, origin):
    found = series(service, "symbolication_items_sum")
    return {re.search('item="(.*?)"', labels)[1]: n for labels, n in found.items() if f'origin="{origin}"' in labels and 'platform="elf"' in labels}


def test_contents_of_native_requests_are_counted(work, objects):
    with Upstream(objects.layout()) as up, Service(work) as s:
        other = objects.module(code_id="ab" * 20, debug_id=None, image_addr="0x20000000")
        body = request(objects.module(), [objects.address("plain"), 0x10000000, objects.address("plain")], sources=[http_source(up.url)])
        body["modules"].append(other)
        body["stacktraces"].append({"frames": [{"instruction_addr": "0x20000010"}]})
        body["stacktraces"].append({"frames": [{"instruction_addr": hex(0x10000000 + objects.address("main"))}] * 3})
        answer = s.symbolicate(body)
        counts = [len(trace["frames"]) for trace in answer["stacktraces"]]
        equal([f["status"] for f in answer["stacktraces"][0]["frames"]], ["symbolicated", "missing", "symbolicated"])
        equal(items(s, "symbolicate"), {
            "num_modules": 2, "unusable_modules": 1, "unparsable_modules": 0, "num_stacktraces": 3, "short_stacktraces": 1,
            "truncated_stacktraces": 2, "bad_stacktraces": 2, "num_frames": sum(counts), "scanned_frames": 0, "unsymbolicated_frames": 2,
            "unsymbolicated_context_frames": 0, "unsymbolicated_cfi_frames": 0, "unsymbolicated_scanned_frames": 0, "unmapped_frames": 0})


def test_contents_of_dumps_are_counted(work, objects):
    with Service(work) as s:
        send(s, "/minidump", form(upload_file_minidump=small_dump(), sources=[]))
        equal(series(s, "modules_total"), {'platform="elf",purpose="debug",status="missing"': 1, 'platform="elf",purpose="unwind",status="missing"': 1})
        counted = items(s, "minidump")
        equal({name: counted[name] for name in ("num_stacktraces", "num_frames", "scanned_frames", "unsymbolicated_context_frames",
                                                "unsymbolicated_scanned_frames", "unmapped_frames", "unusable_modules")},
              {"num_stacktraces": 2, "num_frames": 3, "scanned_frames": 1, "unsymbolicated_context_frames": 2,
               "unsymbolicated_scanned_frames": 1, "unmapped_frames": 1, "unusable_modules": 1})
        equal(series(s, "jobs_accepted_total"), {'task="minidump_stackwalk"': 1})
        equal(series(s, "minidump_multipart_total"), {"": 0})
        equal(send(s, "/minidump", form(upload_file_minidump=b"--another\r\nContent-Disposition: form-data\r\n\r\n"))[0], 400)
        equal(series(s, "minidump_multipart_total"), {"": 1})


def test_refusals_are_counted_by_reason(work, objects):
    with Service(work, {"symbolicate_body_max_bytes": 100}) as s:
        equal(s.request("POST", "/symbolicate", "{}", {"Content-Type": "text/plain"})[0], 415)
        equal(s.request("POST", "/symbolicate", "{}", {"Content-Type": "application/json", "Content-Encoding": "br"})[0], 415)
        equal(s.post("/symbolicate", " " * 101)[0], 413)
        equal(s.request("POST", "/symbolicate", (b" " * 60 for _ in range(2)), {"Content-Type": "application/json"})[0], 413)  # no length was declared
        equal(series(s, "http_refused_total"), {'reason="media_type"': 2, 'reason="too_large"': 2})


def test_connections_are_counted_by_state(work, objects):
    def connections():
        return {labels[7:-1]: n for labels, n in series(s, "http_connections").items()}

    with Service(work, {"http": {"write_timeout": "2m"}}) as s:
        equal(sorted(connections()), ["handshake", "idle", "reading", "working", "writing"])
        slow = post_unread(s, big_request(8 * MIB))
        with socket.create_connection(("127.0.0.1", s.port)) as half:
            half.sendall(b"GET / HT")
            wait_until("both", lambda: {**connections(), "idle": 0} == {"handshake": 0, "idle": 0, "reading": 1, "working": 1, "writing": 1})
        slow.close()
        wait_until("their end", lambda: (connections()["writing"], connections()["reading"]) == (0, 0))


def test_memory_of_the_process_is_reported(work, objects):
    with Service(work) as s:
        s.symbolicate({"stacktraces": [], "modules": []})
        arenas, stack, limit = (series(s, name)[""] for name in ("arena_bytes", "fiber_stack_peak_bytes", "memory_limit_bytes"))
        assert 0 < arenas < 64 * MIB and 4096 <= stack <= 256 * 1024 and stack % 4096 == 0 and limit > 64 * MIB, (arenas, stack, limit)
