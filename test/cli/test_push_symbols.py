"""`symloom push-symbols`: whose symbols it sends, and what it shows."""
import http.server, json, os, re, shutil, subprocess, tempfile, threading, time
from harness import contains, equal, ok, symloom, terminal
from servers import free_port

SECRET = "aWQ6c2VjcmV0LWtleQ=="


class Service(http.server.BaseHTTPRequestHandler):
    """Takes everything, and notes the key that it came with and the command lines that the machine shows meanwhile."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.keys.append(self.headers.get("Authorization"))
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if b"push-symbols" in words and f"http://127.0.0.1:{self.server.server_port}".encode() in words:
                self.server.seen.append(words)
        body = b'{"success": true}' if self.command == "POST" else b"{}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *args):
        pass


def push(files, *args, **options):
    return symloom("push-symbols", "executable", "-e", files.get("t"), "--retries", "0", *args, **options)


def test_api_key_is_not_shown(work, files):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.keys, server.seen = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        path = os.path.join(work, "key")
        with open(path, "w") as f:
            f.write(SECRET + "\n")
        for args, given in ((["-t", SECRET], ""), ([f"--api-key={SECRET}"], ""), (["--api-key-file", path], ""),
                            (["--api-key-file", "-"], SECRET + "\nmore\n")):
            server.keys.clear()
            server.seen.clear()
            result = push(files, "-u", url, *args, input=given)
            equal(result.status, 0, result.err)
            equal(set(server.keys), {f"APIKey {SECRET}"})
            assert server.seen and not any(SECRET.encode() in word for words in server.seen for word in words), server.seen
            assert SECRET not in result.err + result.out
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_push_errors_show_no_secret(work, files):
    nobody = f"127.0.0.1:{free_port()}"
    result = push(files, "-u", f"http://user:secret@{nobody}/at?token=secret")
    equal(result.status, 1)
    contains(result.err, f"error: http://{nobody}/at: ")
    assert "secret" not in result.err, result.err
    result = symloom("push-symbols", "--api-kee=secret")
    equal((result.status, result.err.splitlines()[0]), (2, "error: unknown option --api-kee, did you mean --api-key"))
    result = symloom("lookup", "--build-id", "00112233", "--output-style", "table", "--symbols",
                     "http://user:secret@[::1/x?token=secret", "0")
    equal(result.status, 1)
    contains(result.err, "not a usable URL: [::1/x")
    assert "secret" not in result.err, result.err


def test_push_usage_errors_set_status_2(work, files):
    equal(ok("push-symbols", "--version"), ok("--version"))
    missing = os.path.join(work, "missing")
    result = push(files, "-u", "http://127.0.0.1:1", "--api-key-file", missing)
    equal((result.status, result.err.splitlines()),
          (2, ["error: --api-key-file: cannot read a key from this file", "  caused by: No such file or directory",
               "Try 'symloom push-symbols --help'."]))
    result = push(files, "-u", "http://127.0.0.1:1", "--api-key-file", "-")
    contains(result.err, "caused by: the file is empty")

def made(work, *args, status=0):
    """The symbfiles of a dry run, by file id and kind, and standard error."""
    out = tempfile.mkdtemp(dir=work)
    result = symloom("push-symbols", "executable", "--dry-run", "--output", out, *args)
    equal(result.status, status, result.err)
    contents = {}
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), "rb") as f:
            contents[name] = f.read()
    return contents, result.err


def test_debug_file_of_a_stripped_executable_is_found(work, files):
    """By debug link, by build id, or with a warning that says what is missing."""
    plain, program = files.get("t"), os.path.join(work, "t")
    files.run(f"objcopy --only-keep-debug {plain} {work}/t.debug && strip -o {program} {plain} && "
              f"cd {work} && objcopy --add-gnu-debuglink=t.debug t")
    wanted, err = made(work, "-e", program, "-d", plain)
    equal(len(wanted), 2)
    assert "warning" not in err, err
    found, err = made(work, "-v", "-e", program)
    equal(found, wanted)
    contains(err, f"{program}: symbols of {work}/t.debug\n")
    identity = json.loads(ok("inspect", "--json", program))[0]["code_id"]
    os.makedirs(os.path.join(work, "dbg/.build-id", identity[:2]))
    os.rename(program + ".debug", os.path.join(work, "dbg/.build-id", identity[:2], identity[2:] + ".debug"))
    equal(made(work, "-e", program, "--debug-file-directory", os.path.join(work, "dbg"))[0], wanted)
    _, err = made(work, "-e", program, status=3)
    contains(err, f"warning: {program}: stripped, and its debug file was not found (build id {identity}, debug link t.debug); "
             "sending only names from the symbol table, no lines\n", "no symbols found")


def test_several_executables_are_pushed(work, files):
    """Named behind the mode, and found below directories, where files of other kinds do not count."""
    folder = os.path.join(work, "folder")
    os.makedirs(os.path.join(folder, "below"))
    for name in ("t", "t.static"):
        shutil.copy(files.get(name), os.path.join(folder, "below" if name == "t" else "."))
    both = dict(made(work, "-e", files.get("t"))[0], **made(work, "-e", files.get("t.static"))[0])
    equal(len(both), 4)
    equal(made(work, files.get("t"), files.get("t.static"))[0], both)
    with open(os.path.join(folder, "text"), "w") as f:
        f.write("no program\n")
    files.run(f"objcopy --only-keep-debug t {folder}/t.debug; gcc -c -o {folder}/main.o main.c")
    shutil.copy(files.get("t.wasm"), folder)
    equal(made(work, "-e", folder)[0], both)
    empty = os.path.join(work, "empty")
    os.mkdir(empty)
    contains(made(work, empty, status=3)[1], "error: none of the executables has symbols\n")
    contains(made(work, os.path.join(folder, "text"), status=3)[1], "error: ")
    contains(made(work, folder, "-d", files.get("t"), status=2)[1], "error: --debug-file can be used with one executable only\n")


def test_executable_of_a_running_process_is_pushed(work, files):
    program = os.path.join(work, "waits")
    files.run(f"echo '#include <unistd.h>\nint main(void) {{ return pause(); }}' | gcc -g -static -o {program} -x c -")
    wanted = made(work, program)[0]
    process = subprocess.Popen([program])
    try:
        equal(made(work, "--pid", str(process.pid))[0], wanted)
        os.unlink(program)
        equal(made(work, "--pid", str(process.pid))[0], wanted)
    finally:
        process.kill()
        process.wait()
    gone = made(work, "--pid", str(process.pid), status=1)[1]
    contains(gone, f"error: /proc/{process.pid}/maps: No such file or directory\n")
    contains(made(work, "--pid", "self", status=2)[1], "error: --pid: 'self' is not a process id\n")


class Slow(Service):
    """Takes its time, so that there is something to show."""

    def answer(self):
        time.sleep(0.8)
        super().answer()

    do_GET = do_POST = answer


def test_push_progress_bar_is_erased(work, files):
    """A bar that is erased at the end; lines when it is no terminal."""
    from harness import SYMLOOM, DEADLINE
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.keys, server.seen = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        contains(push(files, "-u", url).err, " ranges: part 1 of 1 sent\n", " returnpads: part 1 of 1 sent\n")
        ours, theirs = terminal()
        run = subprocess.Popen([SYMLOOM, "push-symbols", "executable", "-u", url, files.get("t")], stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # the other end was closed
            pass
        equal(run.wait(DEADLINE), 0)
        os.close(ours)
        bars = re.findall(rb"\r\x1b\[Ksending \[[#-]{20}\] ([0-9]+)/([0-9]+) [0-9.]+ [KM]?i?B  (\w+) [0-9a-f]+", shown)
        assert bars and (b"1", b"2", b"returnpads") in bars, shown
        assert b"part 1 of 1" not in shown, shown
        assert re.search(rb"\r\x1b\[K(note: [^\r\n]*\r\n)$", shown), shown
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
