"""What commands say on stderr when symbols are missing: what, where they looked, what failed, and what to do."""
import json, os, re, struct, subprocess, time
import dumps
from harness import contains, equal, ok, symloom
from servers import free_port
from test_by_id import answering, build_id, home
from test_inputs import request_of

TEXTS = ("compact", "pretty", "full", "markdown", "stackwalk", "machine")




def request(work, files, **more):
    """A request with two modules, of which one is the program's; a function of it and an address in the other."""
    _, body = request_of(files)
    body["stacktraces"][0]["frames"].append({"instruction_addr": "0x70001000"})
    body["modules"].append({"type": "elf", "code_id": "ab" * 20, "code_file": "/usr/lib/libmissing.so", "image_addr": "0x70000000", "image_size": 0x10000})
    path = os.path.join(work, "two.json")
    with open(path, "w") as f:
        json.dump({**body, **more}, f)
    return path


def warnings(result):
    return [line for line in result.err.splitlines() if line.startswith("warning: ")]


def test_closing_warning_counts_missing_modules(work, files):
    path, empty = request(work, files), os.path.join(work, "empty")
    os.mkdir(empty)
    for form in ("compact", "pretty", "full", "markdown"):
        none = symloom("symbolicate", path, "--symbols", empty, "-f", form, env=home(work))
        equal((none.status, len(warnings(none))), (0, 1), none.err)
        contains(none.err, "no symbols for 2 of 2 modules on the stack: ", "libmissing.so (abababab", f"searched {empty}; ", "-f full -d")
        one = symloom("symbolicate", path, "--symbols", files.get("t"), "-f", form, env=home(work))
        equal((one.status, len(warnings(one))), (0, 1), one.err)
        contains(one.err, "no symbols for 1 of 2 modules on the stack: libmissing.so")
    advised = symloom("symbolicate", path, "--symbols", empty, "-f", "full", "-d", env=home(work))
    assert "-f full -d" not in advised.err, advised.err
    nowhere = symloom("symbolicate", path, "-f", "compact", env=home(work))
    contains(nowhere.err, "nowhere to search: pass --symbols")
    equal(symloom("symbolicate", path, "-f", "compact", "-q", env=home(work)).err, "")
    equal(symloom("symbolicate", path, "-f", "json", env=home(work)).err, "")  # says it itself


def test_fail_on_missing_sets_status_3(work, files):
    path = request(work, files)
    for form in ("compact", "json"):
        missing = symloom("symbolicate", path, "--symbols", files.get("t"), "-f", form, "--fail-on-missing", env=home(work))
        equal((missing.status, len(warnings(missing))), (3, 1), missing.err)
        assert missing.out, form
    _, body = request_of(files)
    whole = os.path.join(work, "whole.json")
    with open(whole, "w") as f:
        json.dump(body, f)
    found = symloom("symbolicate", whole, "--symbols", files.get("t"), "-f", "compact", "--fail-on-missing", env=home(work))
    equal((found.status, found.err), (0, ""))


def test_every_format_warns_of_missing_modules(work, files):
    dump, _ = dumps.of_crash(crashing(work), work)
    path, empty = os.path.join(work, "crash.dmp"), os.path.join(work, "empty")
    os.mkdir(empty)
    with open(path, "wb") as f:
        f.write(dump)
    for form in TEXTS:
        result = symloom("symbolicate", path, "--symbols", empty, "-f", form, "--offline", env=home(work))
        equal((result.status, len(warnings(result))), (0, 1), result.err)
        assert re.search(r"no symbols for \d of \d modules on the stack: .*crash", result.err), result.err


def crashing(work):
    program = os.path.join(work, "crash")
    with open(program + ".c", "w") as f:
        f.write(dumps.HANDLER + "int main(void) { *(volatile int *)69 = 7; return 0; }\n")
    subprocess.run(["gcc", "-g", "-w", "-Wl,--build-id=sha1", "-o", program, program + ".c"], check=True)
    return program


def test_unsupported_inputs_are_named(work, files):
    """An error says what they look like, and what is read."""
    for text, kind in (("*** *** *** *** *** *** ***\nBuild fingerprint: 'x'\n", "an Android tombstone"), ("MODULE Linux x86_64 0 a\n", "a Breakpad symbol file"),
                       ("", "an empty file")):
        result = symloom("symbolicate", "-", input=text, env=home(work))
        equal((result.status, result.out), (3, ""), result.err)
        contains(result.err, "error: unsupported input: this looks like ", kind, "\n  caused by: supported: minidumps, ")
    contains(symloom("symbolicate", files.get("t"), env=home(work)).err, "this looks like an ELF file")
    for content, kind in ((b"\xFE\xED\xFA\xCE" + bytes(28), "a Mach-O file"), (b"\xCA\xFE\xBA\xBE" + struct.pack(">II", 2, 7) + bytes(20), "a Mach-O file"),
                          (b"\xCA\xFE\xBA\xBE" + struct.pack(">HH", 0, 61) + bytes(20), "a Java class file"), (b"MZ" + bytes(62), "a Windows program"),
                          (b"PAGEDU64" + bytes(24), "a Windows kernel dump"),
                          (b"PERFILE2" + bytes(24), "a perf recording"),
                          (b"H\xfc\x8a\xaa\x18\n\x04\x08\x01\x10\x02\n\x04\x08\x03\x10\x04", "a pprof profile"), (b'{"nodes":[{"id":1,"callFrame":{}}]}', "a V8 profile"), (b"BSJB" + bytes(28), "a Portable PDB")):
        path = os.path.join(work, "binary")
        with open(path, "wb") as f:
            f.write(content)
        contains(symloom("symbolicate", path, env=home(work)).err, "this looks like " + kind)
    with open(path, "wb") as f:
        f.write(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00\x3e\x00" + bytes(44))
    contains(symloom("symbolicate", path, env=home(work)).err, "the core file has no threads: its notes are missing or lie beyond its end")


def test_text_starting_with_mz_is_read_as_a_stack(work, files):
    text = "MZError: too far\n    at far (https://a.test/app.js:1:2)\n"
    result = symloom("symbolicate", "-", "--symbols", work, input=text, env=home(work))
    equal((result.status, result.out), (0, text), result.err)


def test_unsupported_processor_is_reported(work, files):
    """The command and `inspect` agree that nothing comes of such a dump, and say why."""
    d = dumps.Dump(cpu=6)
    path = os.path.join(work, "itanium.dmp")
    with open(path, "wb") as f:
        f.write(d.done())
    result = symloom("symbolicate", path, "-f", "compact", env=home(work))
    contains(result.err, "warning: no stacks: registers and stacks of this processor (Itanium, 6) are not supported")
    shown = symloom("inspect", path, env=home(work))
    contains(shown.out, ", Itanium\n", "Usable       no (no stacks: registers of this processor (Itanium, 6) are not supported)")


def test_threads_without_registers_are_reported(work, files):
    """Records that are not the processor's, or of no processor at all, give no stacks: it is said, by both commands."""
    names = {dumps.X86: "x86", dumps.AMD64: "x86_64", dumps.ARM: "arm", dumps.ARM64: "arm64", dumps.MIPS: "mips", dumps.MIPS64: "mips64",
             dumps.RISCV32: "riscv", dumps.RISCV64: "riscv64"}
    equal(names.keys(), dumps.CONTEXTS.keys())
    for cpu, name in names.items():
        d = dumps.Dump(cpu=cpu)
        d.threads += [(i, {}, 0x7000, bytes(64)) for i in (1, 2)]
        path, marks = os.path.join(work, "empty.dmp"), dumps.CONTEXTS[cpu]
        with open(path, "wb") as f:
            f.write(d.done().replace(struct.pack("<I", marks[2]), bytes(4)))
        said = f"no stacks: none of the 2 threads has registers of this processor ({name})"
        contains(symloom("symbolicate", path, "-f", "compact", env=home(work)).err, f"warning: {said}\n")
        contains(symloom("inspect", path, env=home(work)).out, f"Usable       no ({said})")


def test_missing_place_is_an_error(work, files):
    """Is an error at once, of whatever command, before anything is asked."""
    path, absent = request(work, files), os.path.join(work, "absent")
    for words in (["symbolicate", path, "--symbols", absent], ["symbolicate", path, absent], ["symbolicate", path, "--symbols", f"native:{absent}"],
                  ["symbolicate", path, "--symbols", work, "--symbols", absent, "-f", "json"], ["lookup", "-e", files.get("t"), "--symbols", absent, "0x10"],
                  ["symbolicate", "--type", "jsstack", "-", "--symbols", absent], ["dump-syms", files.get("t"), "--symbols", absent]):
        result = symloom(*words, env=home(work))
        equal((result.status, result.out, result.err), (2, "", f"error: {absent}: no such directory or file\n"), words)
    source = os.path.join(work, "source.yml")
    with open(source, "w") as f:
        f.write(f"id: mine\ntype: filesystem\npath: {absent}\nlayout: {{type: unified}}\n")
    configured = symloom("symbolicate", path, "--source", source, "-f", "compact", env=home(work))
    equal(configured.status, 0)
    contains(configured.err, f"failed: {absent}: no such directory; ")
    store = symloom("symbolicate", path, "--symbols", f"srv*{absent}*http://127.0.0.1:{free_port()}", "-f", "compact", env=home(work))
    equal(store.status, 0, store.err)  # a store that nothing was kept in yet


def fail(handler):
    handler.send_response(500)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def test_failing_server_is_warned_of_once(work, files):
    """A warning for each server, however many files it was asked for, and again in the closing line."""
    path, port = request(work, files), free_port()
    result = symloom("symbolicate", path, "--symbols", f"http://user:secret@127.0.0.1:{port}/", "-f", "compact", "--cache-dir", "", env=home(work))
    equal(result.status, 0)
    equal(warnings(result)[0], f"warning: 127.0.0.1:{port}: connection refused")
    equal(len(warnings(result)), 2, result.err)
    contains(result.err, f"searched http://127.0.0.1:{port}/; failed: 127.0.0.1:{port}: connection refused; run")
    assert "secret" not in result.err, result.err
    with answering(fail) as place:
        result = symloom("symbolicate", path, "--symbols", f"http://{place}", "-f", "json", "--cache-dir", "", env=home(work))
    equal(warnings(result), [f"warning: {place[:-1]}: 500 Internal Server Error"])
    with answering(lambda handler: time.sleep(0.5)) as place:
        config = os.path.join(work, "config.yml")
        with open(config, "w") as f:
            f.write("connect_timeout: 200ms\nhead_timeout: 100ms\nmax_download_timeout: 200ms\n")
        result = symloom("symbolicate", path, "--symbols", f"native:http://{place}", "-f", "compact", "--cache-dir", "", "-c", config, env=home(work))
    contains(result.err, f"warning: {place[:-1]}: timed out after ", f"failed: {place[:-1]}: timed out after ")


def test_unreadable_debug_files_are_reported(work, files):
    code_id = build_id(files)
    store = os.path.join(work, "store")
    bad = os.path.join(store, code_id[:2], code_id[2:])
    os.makedirs(bad)
    with open(os.path.join(bad, "debuginfo"), "w") as f:
        f.write("this is no debug file")
    result = symloom("symbolicate", request(work, files), "--symbols", f"unified:{store}", "-f", "compact", "--cache-dir", "", env=home(work))
    contains(result.err, "failed: ", "debuginfo: ")
