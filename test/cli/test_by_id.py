"""Debug files by id: the commands fetch them as the service does."""
import contextlib, http.server, json, os, re, shutil, subprocess, threading
import harness
from harness import contains, equal, linked, ok, symloom, terminal
from servers import debuginfod, free_port, nginx, wait_until

ANSWER = "outer\n/src/t.c:5:51\n\n"


def build_id(files, name="t"):
    return files.run(f"readelf -n {files.get(name)} | awk '/Build ID/{{print $3}}'").strip()


def debug_id(code_id):
    """The Breakpad form of an ELF build id."""
    raw = bytes.fromhex(code_id[:32])
    return (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex().upper() + "0"


def home(work, **more):
    """An environment in which nothing is configured."""
    return {"HOME": work, "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": "", "SYMLOOM_CONFIG": "", "SYMLOOM_CACHE_DIR": "",
            "DEBUGINFOD_URLS": "", "_NT_SYMBOL_PATH": "", **more}


def place(root, path, source):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return shutil.copy(source, path)


def lookup(files, work, *args, status=0, env=None, **options):
    at = f"{files.address('t', 'outer'):x}"
    result = symloom("lookup", "--no-inlines", "--output-style", "llvm", "--build-id", build_id(files), *args, at,
                     env=env or home(work), cwd=work, **options)
    if status is not None:
        equal(result.status, status, result.err)
    return result


def nobody_has_it(files, work, *args, about="", **options):
    result = lookup(files, work, *args, status=1, **options)
    equal((result.out, result.err), ("", f"error: cannot use BUILDID:{build_id(files)}\n  caused by: not found\n"), about)


def test_debug_file_from_a_symbol_source_leaves_no_warning(work, files):
    """A stripped program whose debug file is in a source of the command line; without it, all places are named."""
    stripped, symbols = os.path.join(work, "stripped"), os.path.join(work, "symbols")
    subprocess.run(["strip", "-o", stripped, files.get("t")], check=True)
    os.mkdir(symbols)
    at = f"0x{files.address('t', 'outer'):x}"
    result = symloom("lookup", "-e", stripped, "--symbols", symbols, "--cache-dir", "", at, env=home(work))
    contains(result.err, "below /usr/lib/debug, nor in the symbol sources of the command line")
    subprocess.run(["objcopy", "--only-keep-debug", files.get("t"), os.path.join(symbols, "t.debug")], check=True)
    result = symloom("lookup", "-e", stripped, "--symbols", symbols, "--cache-dir", "", at, env=home(work))
    equal((result.status, result.err), (0, ""))
    contains(result.out, "outer")


def test_debuginfod_servers_are_asked(work, files):
    root = os.path.join(work, "root")
    place(root, "t", files.get("t"))
    with debuginfod(work, root) as url:
        env = home(work, DEBUGINFOD_URLS=f"ima:ignore {url}")
        wait_until("debuginfod's scan", lambda: lookup(files, work, "--debuginfod", env=env, status=None).out == ANSWER)
        equal(lookup(files, work, "--symbols", f"debuginfod:{url}buildid/", "--cache-dir", "").out, ANSWER)
        nobody_has_it(files, work, env=env)  # only when it is asked for
        nobody_has_it(files, work, "--debuginfod", "--no-network", "--cache-dir", "", env=env)
        at, tool = f"0x{files.address('t', 'outer'):x}", linked(work, "llvm-symbolizer")
        equal(ok("--no-inlines", "--debuginfod", input=f"BUILDID:{build_id(files)} {at}\n" * 2, program=tool, env=env),
              ANSWER * 2)
    equal(lookup(files, work, "--debuginfod", env=env).out, ANSWER)  # from the cache
    assert os.path.isdir(os.path.join(work, ".cache/symloom/objects"))


def test_failed_lookup_without_sources_leaves_no_file(work, files):
    nobody_has_it(files, work)
    equal(os.listdir(work), [])


def test_every_layout_is_found_in_local_directories(work, files):
    code = build_id(files)
    upper = files.get("t")
    paths = {"unified": f"{code[:2]}/{code[2:]}/debuginfo", "native": f"{code[:2]}/{code[2:]}.debug",
             "debuginfod": f"{code}/debuginfo", "symstore": f"_.debug/elf-buildid-sym-{code}/_.debug",
             "index": "some/where/program"}
    for name, path in paths.items():
        root = os.path.join(work, name)
        place(root, path, upper)
        equal(lookup(files, work, "--symbols", root, "--cache-dir", "").out, ANSWER, name)
        if name != "index":
            equal(lookup(files, work, "--symbols", f"{name}:{root}", "--cache-dir", "").out, ANSWER, name)
        others = [n for n in ("unified", "native", "symstore") if n != name]
        for other in others:
            nobody_has_it(files, work, "--symbols", f"{other}:{root}", "--cache-dir", "", about=f"{name} {other}")
    place(os.path.join(work, "gdb"), f".build-id/{paths['native']}", upper)
    equal(lookup(files, work, "--symbols", os.path.join(work, "gdb"), "--cache-dir", "").out, ANSWER)
    equal(lookup(files, work, "--symbols", upper, "--cache-dir", "").out, ANSWER)  # the file itself


def test_prefix_before_a_colon_is_a_layout_only_if_known(work, files):
    code = build_id(files)
    for root in ("C:\\syms", "foo:/syms", "/syms", "symstore:/syms"):
        home_of = os.path.join(work, root.lstrip("/"))
        place(home_of, "any/where/t", files.get("t"))
    for text in ("C:\\syms", "foo:/syms", f"{work}/syms"):
        equal(lookup(files, work, "--symbols", text, "--cache-dir", "").out, ANSWER, text)
    nobody_has_it(files, work, "--symbols", "symstore:syms", "--cache-dir", "")  # is syms, and what lies there has no layout
    place(os.path.join(work, "syms"), f"_.debug/elf-buildid-sym-{code}/_.debug", files.get("t"))
    equal(lookup(files, work, "--symbols", "symstore:syms", "--cache-dir", "").out, ANSWER)


def test_index_follows_links(work, files):
    """To files and to directories; cycles end, and directories that many links lead to are looked through once."""
    root, elsewhere = os.path.join(work, "root"), os.path.join(work, "elsewhere")
    os.mkdir(root)
    os.symlink(files.get("t"), os.path.join(root, "link"))
    equal(lookup(files, work, "--symbols", root).out, ANSWER)
    os.remove(os.path.join(root, "link"))
    os.symlink("nothing", os.path.join(root, "dangling"))
    os.symlink("..", os.path.join(root, "cycle"))
    for level in range(40):  # 2 ** 40 paths
        os.makedirs(os.path.join(elsewhere, str(level)))
        for name in "ab":
            os.symlink(os.path.join(elsewhere, str(level + 1)), os.path.join(elsewhere, str(level), name))
    os.symlink(os.path.join(elsewhere, "0"), os.path.join(root, "many"))
    nobody_has_it(files, work, "--symbols", root)
    place(elsewhere, "40/t", files.get("t"))
    equal(lookup(files, work, "--symbols", root).out, ANSWER)


def test_first_file_in_an_indexed_directory_wins(work, files):
    root = os.path.join(work, "root")
    os.mkdir(root)
    stripped = place(root, "a/t", files.get("t"))
    files.run(f"strip -g {stripped}")
    place(root, "b/t", files.get("t"))
    equal(lookup(files, work, "--symbols", root).out, ANSWER)


def test_debug_information_is_preferred_to_breakpad_files(work, files):
    """Wherever they lie: the Breakpad file has no inlined calls."""
    at = files.address("t", "outer")
    addresses = [f"{at + i:x}" for i in range(0, 40, 4)]
    module = {"type": "elf", "code_id": build_id(files), "image_addr": "0x0"}
    request = json.dumps({"modules": [module], "stacktraces": [{"frames": [{"instruction_addr": "0x" + a} for a in addresses]}]})
    ask = lambda root: [ok(*words, *where, env=home(work), cwd=work, input=text) for words, where, text in (
        (["lookup", "--build-id", build_id(files), "--symbols", root, "--cache-dir", ""], addresses, ""),
        (["symbolicate", "--symbols", root, "--cache-dir", "", "-f", "full"], ["-"], request))]
    alone, root = os.path.join(work, "alone"), os.path.join(work, "root")
    place(alone, "m/t", files.get("t"))
    expected = [text.replace(alone, root) for text in ask(alone)]
    contains(expected[0], "inner")
    contains(expected[1], "inline")
    place(root, "m/t", files.get("t"))
    for directory in ("a", "z"):
        os.mkdir(os.path.join(root, directory))
        ok("dump-syms", files.get("t"), "-o", os.path.join(root, directory, "t.sym"))
    equal(ask(root), expected)


def test_configured_sources_are_asked(work, files):
    root = os.path.join(work, "root")
    code = build_id(files)
    place(root, f"{code[:2]}/{code[2:]}.debug", files.get("t"))
    with nginx(work, root) as url:
        source = {"id": "web", "type": "http", "url": url, "layout": {"type": "native"}}
        config = os.path.join(work, "server.yml")
        cache = os.path.join(work, "cache")
        with open(config, "w") as f:
            json.dump({"sources": [source], "cache_dir": cache, "bind": "127.0.0.1:0", "no_such_key": 1}, f)
        result = lookup(files, work, "-c", config)
        equal((result.out, result.err), (ANSWER, ""))
        assert os.path.isdir(cache)
        equal(lookup(files, work, env=home(work, SYMLOOM_CONFIG=config)).out, ANSWER)
        for number, text in enumerate([json.dumps(source), json.dumps([source]), json.dumps({"sources": [source]}, indent=1),
                                       f"# one\n- id: web\n  type: http\n  url: {url}\n", f"id: web\ntype: http\nurl: {url}\n"]):
            path = os.path.join(work, f"source{number}")
            with open(path, "w") as f:
                f.write(text)
            equal(lookup(files, work, "--source", path, "--cache-dir", "").out, ANSWER, text)
        for text in (f"[[sources]]\nid = \"web\"\ntype = 'http' # comment\nurl = \"{url}\"\n\n[sources.layout]\ntype = 'native'\n",):
            below = os.path.join(work, "project/below")
            os.makedirs(below)
            with open(os.path.join(work, "project/symbolicli.toml"), "w") as f:
                f.write(text)
            at = f"{files.address('t', 'outer'):x}"
            plain = ["lookup", "--no-inlines", "--output-style", "llvm", "--cache-dir", "", "--build-id", code, at]
            equal(ok(*plain, cwd=below, env=home(work)), ANSWER)
            with open(os.path.join(below, ".symloom.yml"), "w") as f:
                f.write("sources: []\n")
            missed = symloom(*plain, cwd=below, env=home(work))  # the nearest file ends the search
            equal((missed.status, missed.out), (1, ""))
            user = os.path.join(work, ".config/symloom")
            os.makedirs(user)
            with open(os.path.join(user, "cli.yml"), "w") as f:
                f.write(f"symbols: ['{root}']\nauth: {{token: abc}}\n")
            equal(ok(*plain, cwd=below, env=home(work)), ANSWER)  # the user's own is below it


def test_unusable_configurations_are_reported(work, files):
    path = os.path.join(work, ".symboliclirc")
    with open(path, "w") as f:
        f.write("url = 'https://sentry.example/'\nsources = []\n")
    at = ["lookup", "--output-style", "table", "--build-id", "00112233", "0"]
    result = symloom(*at, env=home(work), cwd=work)
    contains(result.err, f"{path}:2: not a plain \"key = value\" line; move the configuration to .symloom.yml")
    equal(result.out, "")
    os.unlink(path)
    bad = os.path.join(work, "bad.yml")
    with open(bad, "w") as f:
        f.write("sources:\n  - id: x\n    type: ftp\n")
    contains(symloom(*at, "-c", bad, env=home(work), cwd="/").err, f"{bad}:3:11: error: sources[0].type: unknown source type `ftp`")
    contains(symloom(*at, "--source", bad, env=home(work), cwd="/").err, "unknown source type `ftp`")
    contains(symloom(*at, "--symbols", "@nobody", env=home(work), cwd="/").err, "unknown symbol server '@nobody'")
    contains(symloom(*at, "--symbols", "http:///x", env=home(work), cwd="/").err, "not a usable URL")
    contains(symloom(*at, "--source", "/nowhere", env=home(work), cwd="/").err, "/nowhere")


def test_only_plain_lines_of_toml_are_read(work, files):
    """The part of TOML that older configuration files are made of; anything else is refused, wherever it stands."""
    path, at = os.path.join(work, "symbolicli.toml"), ["lookup", "--output-style", "table", "--build-id", "00112233", "0"]
    good = ["", "# x", "a = 1", "a=-1#x", "a = true", "a = 'x\\y' # z", 'a = "x\\ty" ', "[a]\n[b.c]\nd = 1\n[b]\ne = 2",
            "[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = 1", "a = 1\r\nb = 2\r\n", "[ a . b ]"]
    bad = ["a", "a =", "= 1", "a = 1 2", "a = x", "a = 1.5", "a = []", "a = {}", 'a = "x', "a = 'x", 'a = "\\q"', 'a = "\\',
           "a = 1\na = 2", "a b = 1", "[a", "[]", "[a]x", "[[a]", "[a..b]", "[a]\n[[a]]", "a = 1\n[a]", "[" + "a." * 20 + "a]",
           'a = """x', "a = 2020-01-01", "a" * 9000 + " = 1", "a = 1\0"]
    for text in good + bad:
        with open(path, "w", newline="") as f:
            f.write(text)
        result = symloom(*at, env=home(work), cwd=work)
        last = text.count("\n") + 1
        equal(f"{path}:{last}: not a plain" in result.err, text in bad, (text, result.err))
        equal(result.status, 1, (text, result.err))


def test_misses_are_not_cached(work, files):
    root = os.path.join(work, "root")
    os.mkdir(root)
    code = build_id(files)
    with nginx(work, root) as url:
        nobody_has_it(files, work, "--symbols", url)
        place(root, f"{code[:2]}/{code[2:]}.debug", files.get("t"))
        equal(lookup(files, work, "--symbols", url).out, ANSWER)


@contextlib.contextmanager
def answering(answer):
    """An HTTP server that has `answer(handler)` answer; yields the URL."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            answer(self)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def refuse(handler):
    handler.send_response(403)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def test_exit_status_tells_the_kind_of_failure(work, files):
    with answering(refuse) as place:
        url = f"http://user:secret@{place}?key=secret"
        denied = symloom("lookup", "--output-style", "table", "--build-id", "00112233", "--symbols", url, "0", env=home(work))
        equal((denied.status, denied.out), (4, ""))
        contains(denied.err, "error: cannot use BUILDID:00112233\n  caused by: permission denied")
        dumped = symloom("dump-syms", "--debug-id", debug_id(build_id(files)), "--symbols", url, "x", "-vvv", env=home(work))
        equal((dumped.status, dumped.out), (4, ""))
        contains(dumped.err, "error: failed to download x\n  caused by: permission denied")
        assert "secret" not in denied.err + dumped.err, denied.err + dumped.err
    refused = symloom("dump-syms", "--code-id", "00112233", "--symbols", f"http://{place}", "x", env=home(work))
    equal((refused.status, refused.out), (1, ""))
    missing = symloom("dump-syms", "--code-id", "00112233", "--symbols", work, "x", env=home(work))
    equal((missing.status, missing.out, missing.err), (1, "", "error: failed to download x\n  caused by: not found\n"))
    equal(symloom("dump-syms", "--code-id", "00112233", "x", "y", env=home(work)).status, 2)
    contains(symloom("dump-syms", "--debug-id", "zz", "x", env=home(work)).err, "error: --debug-id: 'zz' is not an id")


def on_terminal(*args, env, seen):
    """What the program writes to a terminal that is its stderr; `seen` is set when it has shown that something came."""
    ours, theirs = terminal()
    child = subprocess.Popen([linked(env["HOME"], "symloom"), *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=theirs, env={**os.environ, **env})
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):  # the end, once nobody has the other side
        while piece := os.read(ours, 65536):
            text += piece
            if b" KiB " in text:
                seen.set()
    os.close(ours)
    equal(child.wait(), 0, text)
    return text.decode()


def test_progress_is_shown_while_a_file_downloads(work, files):
    """The rest of a file comes when the beginning has been shown."""
    path = files.get("t")
    with open(path, "rb") as f:
        data = f.read()
    shown = threading.Event()

    def slow(handler):
        if not handler.path.endswith(".debug"):
            handler.send_error(404)
            return
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:3000])
        handler.wfile.flush()
        shown.wait(60)
        handler.wfile.write(data[3000:])

    with answering(slow) as place:
        args = ["lookup", "--build-id", build_id(files), "--symbols", f"http://{place}", "--cache-dir", "", "0"]
        text = on_terminal(*args, env=home(work, TERM="xterm"), seen=shown)
        host, name = place.split(":")[0], f"{build_id(files)[2:]}.debug"
        contains(text, f"\r\033[Kfetching [--------------------] 0/1 2.9 KiB  {host} {name}"[:79])
        assert text.endswith("\r\033[K"), text
        last = json.loads(symloom(*args, "--progress", "json", env=home(work)).err.splitlines()[-1])
        equal({k: last[k] for k in ("event", "verb", "done", "total", "bytes")},
              {"event": "progress", "verb": "fetching", "done": 1, "total": 1, "bytes": len(data)})
        assert re.fullmatch(r"fetching 1/1 [0-9.]+ KiB  .*\n", symloom(*args, "--progress", "plain", env=home(work)).err)
        for quiet in (["--progress", "none"], ["-q", "--progress", "json"], []):
            equal(symloom(*args, *quiet, env=home(work)).err, "")


def test_supplementary_file_is_found_by_build_id(work, files):
    """What several debug files have in common is in one more, which they name by its build id."""
    root = os.path.join(work, "root")
    t = shutil.copy(files.get("t"), os.path.join(work, "t"))
    files.run(f"cd {work} && cp t u && dwz -m common t u && readelf -S t | grep -q debugaltlink")
    alt = files.run(f"readelf -n {work}/common | awk '/Build ID/{{print $3}}'").strip()
    place(root, f"{build_id(files)}/debuginfo", t)
    common = place(root, f"{alt}/debuginfo", os.path.join(work, "common"))
    os.unlink(os.path.join(work, "common"))
    with nginx(work, root) as url:
        args = ["dump-syms", "--inlines", "--code-id", build_id(files), "--symbols", f"debuginfod:{url}", "t"]
        env = home(work)
        equal(ok(*args, env=env), ok("dump-syms", "--inlines", files.get("t")))
        equal(lookup(files, work, "--symbols", f"debuginfod:{url}").out, ANSWER)
        os.unlink(common)
        without = symloom(*args, "--cache-dir", "", env=env)
        assert without.status == 0 and without.out != ok(*args, env=env), without.err


def test_dump_syms_joins_executable_and_debug_file(work, files):
    """As of the one file from which both were made."""
    root = os.path.join(work, "root")
    code, t = build_id(files), files.get("t")
    whole = ok("dump-syms", t)
    place(root, f"{code}/executable", t)
    files.run(f"cd {root}/{code} && objcopy --only-keep-debug executable debuginfo && strip executable")
    for ids in (["--code-id", code], ["--debug-id", debug_id(code), "--code-id", code]):
        equal(ok("dump-syms", *ids, "--symbols", f"debuginfod:{root}", "t", env=home(work)), whole)
    equal(ok("dump-syms", "--debug-id", debug_id(code), "--symbols", root, "t", env=home(work)), whole)
    store = os.path.join(work, "store")
    equal(ok("dump-syms", "--code-id", code, "--symbols", root, "--store", store, "lib/t", env=home(work)), "")
    with open(f"{store}/t/{debug_id(code)}/t.sym") as f:
        equal(f.read(), whole)


def test_dump_syms_joins_pe_and_pdb(work, files):
    root = os.path.join(work, "root")
    exe = files.get("t.exe")
    pdb = os.path.splitext(exe)[0] + ".pdb"
    described = json.loads(ok("inspect", "--json", exe))[0]
    code, debug = described["code_id"], described["breakpad_id"]
    whole = ok("dump-syms", pdb)
    place(root, f"t.exe/{code[:8].upper()}{code[8:]}/t.exe", exe)
    place(root, f"t.pdb/{debug}/t.pdb", pdb)
    with nginx(work, root) as url:
        srv = f"srv*{work}/local*{url}"
        equal(ok("dump-syms", "--code-id", code, "--symbol-server", srv, "t.exe", env=home(work)), ok("dump-syms", exe))
        alone = ok("dump-syms", "--debug-id", debug, "--symbol-server", srv, "t.pdb", env=home(work))
        equal(alone.splitlines()[0], whole.splitlines()[0])
        equal([l for l in alone.splitlines() if l.startswith(("FUNC", "PUBLIC"))],
              [l for l in whole.splitlines() if l.startswith(("FUNC", "PUBLIC"))])
        os.makedirs(os.path.join(work, ".dump_syms"))
        with open(os.path.join(work, ".dump_syms/config"), "w") as f:
            f.write(srv + "\n")
        equal(ok("dump-syms", "--debug-id", debug, "t.pdb", env=home(work)), alone)
        env = home(work, _NT_SYMBOL_PATH=f"cache*;{srv}")
        os.unlink(os.path.join(work, ".dump_syms/config"))
        equal(ok("dump-syms", "--debug-id", debug, f"--nt-symbol-path={srv};{work}/more", "t.pdb", env=home(work)), alone)
        equal(ok("dump-syms", "--debug-id", debug, "--nt-symbol-path", "t.pdb", env=env), alone)


def test_verbose_options_set_the_log_level(work, files):
    """-v and its level are those of the log, and --log-level wins."""
    another = "ab" * 20  # nobody answers, which is told at DEBUG, and what lies there has another id, at INFO
    os.makedirs(os.path.join(work, "store", another))
    os.link(files.get("t"), os.path.join(work, "store", another, "debuginfo"))
    args = ["dump-syms", "--code-id", another, "--symbols", f"native:http://127.0.0.1:{free_port()}",
            "--symbols", f"debuginfod:{work}/store", "--cache-dir", ""]

    def levels(*more, **variables):
        result = symloom(*args, *more, "--log-format", "json", "t", env=home(work, **variables))
        equal(result.status, 0, result.err)
        return {json.loads(line)["level"].lower() for line in result.err.splitlines() if line.startswith("{")}
    equal(levels(), set())
    for more in (["--verbose", "warn"], ["--verbose=off"], ["-vvv", "--log-level", "error"], ["-vvv", "-q"]):
        equal(levels(*more), set(), more)
    for more in (["-v"], ["--verbose=info"]):
        equal(levels(*more), {"info"}, more)
    for more in (["-vv"], ["--verbose", "debug"], ["--verbose=trace"], ["-v", "--log-level", "debug"]):
        assert levels(*more) >= {"info", "debug"}, more
    equal(levels("--verbose=error", SYMLOOM_LOG="trace"), set())
    log = os.path.join(work, "log")
    with open(log, "w") as f:
        f.write("before\n")
        f.flush()
        subprocess.run([harness.SYMLOOM, *args, "-v", "t"], stdout=subprocess.DEVNULL, stderr=f, env={**os.environ, **home(work)}, timeout=60)
    with open(log) as f:
        lines = [line for line in f.read().splitlines() if not line.startswith("warning: ")]  # of the command, not of the log
    equal((lines[0], len(lines)), ("before", 2))
    assert re.match(r"\d{4}-\d\d-\d\dT.* INFO ", lines[1]), lines
    result = symloom("dump-syms", "--verbose=loud", files.get("t"))
    equal((result.status, result.out, result.err.splitlines()[:2]),
          (2, "", ["error: --verbose: not a log level", "  caused by: loud"]))
