"""Where `symloom symbolicate` takes things from: places in their order, streams, what a request names; and what it leaves behind."""
import contextlib, http.server, json, os, signal, subprocess, threading
import harness
from harness import DEADLINE, contains, equal, ok, symloom
from test_by_id import build_id, home
from test_crash import crashed
from test_events import native
from test_jsstack import V8, artifacts
from test_symbolicate import MAPPING, written


def request_of(files):
    program, module, address = native(files)
    return program, {"modules": [module], "stacktraces": [{"frames": [{"instruction_addr": address}]}]}


def functions(work, request, *arguments, **options):
    path = written(work, "request.json", json.dumps(request))
    answer = json.loads(ok("symbolicate", path, "--offline", "-f", "json", *arguments, env=home(work), **options))
    return [f.get("function") for f in answer["stacktraces"][0]["frames"]], answer


def renamed(files, work, place, name):
    """The program with another function's name and the same id; `place` is a path below `work`."""
    path = os.path.join(work, place)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    files.run(f"sed 's/outer/{name}/' t.c > {name}.c && {harness.CC} -c {name}.c && "
              f"{harness.CC} -o {path} {name}.o u.o sink.c main.c -Wl,--build-id=0x{build_id(files)}")
    return path


def names(work, request, *arguments, **options):
    return {name for name in functions(work, request, *arguments, **options)[0] if name} - {"inner", "mid"}


def test_first_place_with_the_file_wins(work, files):
    """Whatever the places are: a directory without a layout comes before one with a layout that is named behind it."""
    _, request = request_of(files)
    code_id = build_id(files)
    renamed(files, work, "any/file", "first")
    renamed(files, work, f"laid/{code_id[:2]}/{code_id[2:]}/debuginfo", "second")
    for places, wanted in ((("any", "unified:laid"), {"first"}), (("unified:laid", "any"), {"second"}), (("any", "laid"), {"first"}),
                           (("laid", "any"), {"second"}), (("any", "unified:http://127.0.0.1:1"), {"first"})):
        found, answer = functions(work, request, "--cache-dir", "", "-d", *(w for place in places for w in ("--symbols", place)), cwd=work)
        equal({name for name in found if name} & {"first", "second"}, wanted, places)
        contains({c["source"] for c in answer["modules"][0]["candidates"]}, "local:cli")


def test_relative_place_is_resolved_in_the_working_directory(work, files):
    """What the cache has of one is not taken for the other's, which has the same name."""
    _, request = request_of(files)
    code_id = build_id(files)
    os.makedirs(os.path.join(work, "empty/s"))
    for place in ("one", "two"):
        renamed(files, work, f"{place}/s/{code_id[:2]}/{code_id[2:]}/debuginfo", place)
    source = written(work, "source.yml", "id: mine\ntype: filesystem\npath: s\nlayout: {type: unified}\n")
    for option in (("--symbols", "unified:s"), ("--source", source)):
        for place, wanted in (("one", {"one"}), ("two", {"two"}), ("empty", set()), ("one", {"one"})):
            found = names(work, request, *option, "--cache-dir", os.path.join(work, "cache"), cwd=os.path.join(work, place))
            equal(found & {"one", "two"}, wanted, (option, place))


def test_absolute_addresses_in_modules_at_zero_are_resolved(work, files):
    """Absolute addresses in a module at 0 are those of the file."""
    _, request = request_of(files)
    at_zero = json.loads(json.dumps(request))
    base = int(at_zero["modules"][0]["image_addr"], 0)
    at_zero["modules"][0]["image_addr"] = "0x0"
    for frame in at_zero["stacktraces"][0]["frames"]:
        frame["instruction_addr"] = hex(int(frame["instruction_addr"], 0) - base)
    equal(functions(work, at_zero, "--symbols", files.get("t"))[0], functions(work, request, "--symbols", files.get("t"))[0])


def test_local_debug_info_option_finds_separate_files(work, files):
    """--local-debug-info finds the separate debug file of a module that is stripped, as lookup does."""
    program = os.path.join(work, "separate")
    files.run(f"cp {files.get('t')} {program} && cd {work} && objcopy --only-keep-debug separate separate.debug && strip -g separate"
              " && objcopy --add-gnu-debuglink=separate.debug separate")
    _, request = request_of(files)
    request["modules"][0]["code_file"] = program
    contains(functions(work, request, "--local-debug-info")[0], "outer")
    os.mkdir(os.path.join(work, ".debug"))
    os.rename(program + ".debug", os.path.join(work, ".debug/separate.debug"))
    found, answer = functions(work, request, "--local-debug-info", "--cache-dir", "")
    contains(found, "outer")
    equal(answer["modules"][0]["features"]["has_debug_info"], True)


def test_sources_in_requests_are_ignored_unless_allowed(work, files):
    """They do not count, whatever they are, unless somebody says so; also for a service that is asked."""
    program, request = request_of(files)
    for source in ({"id": "own", "type": "filesystem", "path": "/"}, {"id": "own", "type": "nonsense"}):
        found, _ = functions(work, {**request, "sources": [source]}, "--symbols", program)
        contains(found, "outer")
        path = os.path.join(work, "request.json")
        equal(symloom("symbolicate", path, "--use-request-sources", "--offline", env=home(work)).status, 3)
    got = []

    class Service(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = b'{"status":"completed","stacktraces":[{"frames":[]}],"modules":[]}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        for more in ((), ("--use-request-sources",)):
            functions(work, {**request, "sources": []}, "-s", url, *more)
        equal(["sources" in body for body in got], [False, True])
        refused = symloom("symbolicate", os.path.join(work, "request.json"), "-s", url, "--no-network", env=home(work))
        equal((refused.status, len(got)), (2, 2), refused.err)
    finally:
        server.shutdown()
        server.server_close()


def test_commands_that_need_the_network_refuse_no_network(work, files):
    for words in (["healthcheck"], ["push-symbols", "executable", files.get("t"), "--url", "http://127.0.0.1:1"], ["config", "check", "--connect"]):
        result = symloom(*words, "--no-network", env=home(work))
        equal((result.status, result.out), (2, ""), result.err)
        contains(result.err, "error: --no-network does not allow this: ")


def test_mapping_option_does_not_change_the_kind_of_input(work, files):
    """It makes no trace of what is none; a log may begin with anything else, also with dashes."""
    _, dump = crashed(work)
    mapping = written(work, "mapping.txt", MAPPING)
    contains(ok("symbolicate", "--mapping", mapping, "-f", "compact", "--offline", dump, env=home(work)), " Trust ")
    log = written(work, "log", "--------- beginning of crash\n\tat a.b.c(SourceFile:1)\n")
    contains(ok("symbolicate", "--mapping", mapping, log, env=home(work)), "--------- beginning of crash\n", "com.example.Main.run(Main.kt:20)")


def test_layouts_are_ignored_for_scripts(work, files):
    root, stack = artifacts(work), written(work, "stack.txt", V8)
    wanted = ok("symbolicate", stack, root)
    assert "test.js" in wanted, wanted
    for layout in ("unified", "native", "auto"):
        equal(ok("symbolicate", stack, f"{layout}:{root}"), wanted, layout)


def test_fifo_input_and_closed_output_work(work, files):
    """A FIFO is read as a file is; standard output that is closed is nobody's."""
    _, dump = crashed(work)
    command = [harness.SYMLOOM, "symbolicate", "-f", "compact", "--offline", "--color", "never"]
    wanted = ok(*command[1:], dump, env=home(work))
    run = subprocess.run(["bash", "-c", '"$@" <(cat "$0")', dump, *command], capture_output=True, text=True, timeout=DEADLINE,
                         env={**os.environ, **home(work)})
    equal((run.returncode, run.stdout), (0, wanted), run.stderr)
    directory = symloom(*command[1:], work, env=home(work))
    equal((directory.status, directory.err), (1, f'error: Could not open event file at "{work}"\n  caused by: Is a directory\n'))
    closed = subprocess.run(["bash", "-c", '"$@" >&-', "-", *command, dump], capture_output=True, text=True, timeout=DEADLINE,
                            env={**os.environ, **home(work)})
    equal((closed.returncode, closed.stderr), (1, "error: cannot write output\n  caused by: Bad file descriptor\n"))


def test_thread_options_need_a_format_with_threads(work, files):
    _, dump = crashed(work)
    equal(ok("symbolicate", dump, "--offline", "--all-threads", env=home(work)), ok("symbolicate", dump, "--offline", env=home(work)))
    for words in (("-f", "minidump-json", "--thread-index", "0"), ("-f", "json", "--crashed-only")):
        equal(symloom("symbolicate", dump, "--offline", *words, env=home(work)).status, 2, words)


def test_unknown_global_option_gets_a_suggestion(work, files):
    wrong = symloom("--verison")
    equal((wrong.status, wrong.out, wrong.err), (2, "", "error: unknown option --verison, did you mean --version\nTry 'symloom --help'.\n"))
    equal(symloom("--secret=x").err, "error: unknown option --secret\nTry 'symloom --help'.\n")
    contains(symloom("-v", "--color", "never").err, "usage: symloom COMMAND")


def test_config_show_tells_where_values_come_from(work, files):
    shown = ok("config", "show", "--cache-dir", "/tmp/x", env={**home(work), "SYMLOOM_BIND": "127.0.0.1:99"})
    contains(shown, 'bind: ["127.0.0.1:99"] # env\n', 'cache_dir: "/tmp/x" # option\n')


def test_source_lines_keep_their_tabs(work, files):
    source = written(work, "tabs.c", "int f(int a)\n{\n\treturn a * 3;\n}\n")
    library = os.path.join(work, "lib/tabs.so")
    os.mkdir(os.path.dirname(library))
    files.run(f"gcc -g -O1 -shared -fPIC -Wl,--build-id -o {library} {source}")
    ok("bundle", "-o", os.path.join(work, "lib/sources.zip"), library)
    at = files.run(f"nm {library} | awk '$3 == \"f\" {{print $1}}'").strip()
    text = ok("symbolicate", "--module", f"{library}@0x10000", "--symbols", os.path.join(work, "lib"), "-f", "full", "--context", "1",
              hex(0x10000 + int(at, 16) + 1), env=home(work))
    contains(text, "|\treturn a * 3;" if "|\treturn" in text else "| \treturn a * 3;")
    assert "\\x09" not in text, text


@contextlib.contextmanager
def silent():
    """A server that takes connections, and says when it has one."""
    came, over = threading.Event(), threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            came.set()
            over.wait(DEADLINE)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", came
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def test_interrupted_run_leaves_no_cache_entry(work, files):
    """Nothing of it stays in the cache, and the next run has nothing to say about it."""
    _, request = request_of(files)
    path, cache = written(work, "request.json", json.dumps(request)), os.path.join(work, "cache")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with silent() as (url, came):
            run = subprocess.Popen([harness.SYMLOOM, "symbolicate", path, "--symbols", url, "--cache-dir", cache],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **home(work)}, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
            assert came.wait(DEADLINE)
            run.send_signal(number)
            run.communicate(timeout=DEADLINE)
            equal(run.returncode, -number)
        equal(os.listdir(os.path.join(cache, "tmp")), [], number)
    again = symloom("symbolicate", path, "--offline", "--cache-dir", cache, env=home(work))
    equal((again.status, again.err), (0, ""))


def test_lookup_uses_the_first_place_with_the_file(work, files):
    code_id = build_id(files)
    renamed(files, work, "any/file", "first")
    renamed(files, work, f"laid/{code_id[:2]}/{code_id[2:]}/debuginfo", "second")
    for places, wanted in ((("any", "unified:laid"), "first"), (("unified:laid", "any"), "second"), (("any", "laid"), "first")):
        found = ok("lookup", "--build-id", code_id, *(w for place in places for w in ("--symbols", place)), "--cache-dir", "",
                   hex(files.address("t", "outer")), "--output-style", "llvm", "--no-inlines", cwd=work, env=home(work))
        equal(found.splitlines()[0], wanted, places)
