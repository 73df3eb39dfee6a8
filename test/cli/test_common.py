"""What all commands share: statuses, errors, help, names, closed outputs."""
import json, os, resource, signal, subprocess
from harness import DEADLINE, contains, equal, linked, ok, symloom


def test_usage_errors(work, files):
    none = symloom()
    equal((none.status, none.out), (2, ""))
    contains(none.err, "usage: symloom COMMAND")
    unknown = symloom("lokup")
    equal((unknown.status, unknown.out, unknown.err), (2, "", "error: unknown command 'lokup', did you mean lookup\nTry 'symloom --help'.\n"))
    for command in ("lookup", "inspect", "dump-syms"):
        bad = symloom(command, "--nothing-like-it")
        equal((bad.status, bad.out), (2, ""))
        equal(bad.err.splitlines(), ["error: unknown option --nothing-like-it", f"Try 'symloom {command} --help'."])
    near = symloom("dump-syms", "--inline")
    equal(near.err.splitlines()[0], "error: unknown option --inline, did you mean --inlines")
    equal(symloom("dump-syms", "-o").err.splitlines()[0], "error: option needs a value: -o")
    twice = symloom("dump-syms", "-o", "a", "--output=b", "x")
    equal((twice.status, twice.err.splitlines()[0]), (2, "error: option given more than once: --output"))
    equal(symloom("dump-syms", "--inlines=1", "x").status, 2)
    for command in ("inspect", "dump-syms"):
        equal((symloom(command).status, symloom(command).err.splitlines()[0]), (2, "error: no file given"))
    equal(symloom("lookup", "--output-style", "xml").status, 2)
    equal(symloom("lookup", "--adjust-vma", "zz").status, 2)
    equal(symloom("dump-syms", "-j", "many", "x").err.splitlines()[0], "error: --jobs: 'many' is not a number")


def test_unexpected_arguments_are_usage_errors(work, files):
    """What a command has no use for is a usage error, and says where help is."""
    t = files.get("t")
    for words, sentence in (
            (["run", "more", "--bind", "127.0.0.1:0", "--cache-dir", ""], "unexpected argument 'more'"),
            (["run", "--shutdown-timeout", "soon"], "--shutdown-timeout: 'soon' is not a duration (example: 30s)"),
            (["healthcheck", "more"], "unexpected argument 'more'"),
            (["healthcheck", "--timeout", "x"], "--timeout: 'x' is not a number of seconds"),
            (["cleanup", "more", "--cache-dir", work], "unexpected argument 'more'"),
            (["cleanup", "--repeat=x", "--cache-dir", work], "--repeat: 'x' is not a duration (example: 1h)"),
            (["config", "show", "more"], "unexpected argument 'more'"),
            (["config", "check", "a", "b"], "unexpected argument 'b'"),
            (["lookup", "--names", "main"], "no debug file given (-e FILE)"),
            (["lookup", "-e", t, "--adjust-vma", "1" + "0" * 16, "0"], f"--adjust-vma: '1{'0' * 16}' is not an address"),
            (["dump-syms", "--mapping-src", "x", t], "--mapping-src and --mapping-dest must be given in pairs"),
            (["dump-syms", "--mapping-src", "(", "--mapping-dest", "x", t], "'(' is not a regular expression"),
            (["lookup", "0x1"], "not an address; name the debug file with -e: '0x1'"), (["lookup", "--output-style", "gnu", "0x1"], "no debug file given (-e FILE)"),
            (["lookup", "-e", t, "nobody"], "not an address or function name: 'nobody'"),
            (["lookup", "-f=foo", "-e", t, "0"], "--functions: 'foo' is not one of none, short, linkage"),
            (["lookup", "--inlining=foo", "-e", t, "0"], "--inlining: 'foo' is not true or false"),
            (["lookup", "-afx", "-e", t, "0"], "unknown option -x"), (["lookup", "-ae"], "option needs a value: -e"),
            (["version", "more"], "unexpected argument 'more'"), (["version", "--more"], "unknown option --more"),
            (["key", "new", "--id", "ci"], "expected 'key new --id ID --right RIGHT'"), (["man", "nothing"], "unknown command 'nothing'"),
            (["completion", "csh"], "expected 'completion bash', 'completion zsh' or 'completion fish'")):
        result = symloom(*words)
        equal((result.status, result.out, result.err),
              (2, "", f"error: {sentence}\nTry 'symloom {words[0]} --help'.\n"))


def test_every_command_has_a_version_option(work, files):
    for command in ("run", "cleanup", "cache", "healthcheck", "config", "lookup", "inspect", "dump-syms", "bundle", "push-symbols"):
        equal(ok(command, "--version"), ok("version"), command)
        equal(ok("-q", command, "-V"), ok("version"), command)
    equal(ok("-v", "--version"), ok("version"))
    everything = json.loads(ok("version", "--json"))
    equal(f"symloom {everything['version']}\n", ok("version"))
    contains(ok("version", "-v"), *(f"library {name} {version}\n" for name, version in everything["libraries"].items()),
             *(f"cache {kind} {number}\n" for kind, number in everything["caches"].items()), f"commit {everything['commit']}\n")
    equal(ok("--version", program=linked(work, "symbolicator")),
          f"version: {everything['version']}\ngit commit: {everything['commit']}\n")
    equal(ok("--color", "never", "--help"), ok("--help"))
    equal(ok("--color", "never", "-h") + "\nGlobal options:", ok("--help").split("Global options:")[0] + "Global options:")


def test_commands_without_network_work_without_libcurl(work, files):
    with open(os.path.join(work, "libcurl.so.4"), "wb"):  # no library at all, found first
        pass
    env = {"LD_LIBRARY_PATH": work}
    said = "cannot load libcurl: %s/libcurl.so.4: file too short\n" % work
    for words in (["version"], ["config", "show"], ["inspect", files.get("t")], ["lookup", "-e", files.get("t"), "0x0"]):
        equal(ok(*words, env=env), ok(*words), words)
    contains(ok("version", "-v", env=env), "library libcurl missing\n")
    for words in (["run", "--bind", "127.0.0.1:0"], ["healthcheck", "--addr", "127.0.0.1:1"],
                  ["push-symbols", "symbfile", "--url", "http://127.0.0.1:1"]):
        failed = symloom(*words, env=env)
        equal(failed.status, 1, failed.err)
        contains(failed.err, said)
    missing = symloom("lookup", "--symbols", "http://127.0.0.1:1", "--cache-dir", "", "--build-id", "01" * 20, "0x0", env=env)
    contains(missing.err, said)


def test_cleanup_prints_an_aligned_table(work, files):
    lines = ok("cleanup", "--cache-dir", work).splitlines()
    equal(lines[0].split(), ["Kind", "Files", "Size", "Removed", "Freed"])
    equal(lines[-1].split(), ["total", "0", "0", "B", "0", "0", "B"])
    equal({len(line) for line in lines}, {len(lines[0])})  # right-aligned
    assert all(line[0] == " " and line[1] != " " and line == line.rstrip() for line in lines), lines
    failed = symloom("cleanup", "--json", "--cache-dir", "/dev/null/x")
    equal((failed.status, failed.out), (1, ""), failed.err)


def test_help_option_and_help_command_agree(work, files):
    for command in ("lookup", "inspect", "dump-syms"):
        text = ok(command, "--help")
        contains(text, f"usage: symloom {command} ")
        equal(ok("help", command), text)
        assert len(ok(command, "-h")) < len(text) and f"usage: symloom {command} " in ok(command, "-h")
    contains(ok("--help"), "dump-syms", "inspect", "lookup")
    contains(ok("version", "--help"), "usage: symloom version [OPTION...]\n\nPrints the version.\n")
    equal(ok("help", "-h"), "usage: symloom help [COMMAND]\n")
    for words in (["help", "--help"], ["help", "help"]):
        equal(ok(*words), "usage: symloom help [COMMAND]\n\nLists all commands, or explains one.\n")
    equal(ok("help", "version"), ok("version", "--help"))
    contains(ok("--help", program=linked(work, "llvm-symbolizer-14")), "usage: llvm-symbolizer ")
    equal(ok("--version", program=linked(work, "addr2line")), ok("--version"))


def test_program_name_without_meaning_is_symloom(work, files):
    for name in ("symbolicator", "symbtool.exe"):
        tool = linked(work, name)
        equal(ok("inspect", files.get("t"), program=tool), ok("inspect", files.get("t")))
        contains(symloom("nothing", program=tool).err, f"Try '{name.split('.')[0]} --help'.")


def test_symbolicli_name_selects_json(work, files):
    """JSON unless something else is asked for."""
    tool, event = linked(work, "symbolicli"), os.path.join(work, "event.json")
    with open(event, "w") as f:
        f.write('{"platform": "java", "exception": {"values": [{"type": "b", "module": "a", "stacktrace": {"frames": ['
                '{"module": "a.b", "function": "c", "lineno": 1}]}}]}}')
    equal(json.loads(ok(event, "--offline", program=tool))["stacktraces"][0]["frames"][0]["module"], "a.b")
    equal(ok("-f", "compact", "--offline", event, program=tool), ok("symbolicate", "--offline", event, "--format", "compact"))
    contains(ok("--help", program=tool), "usage: symbolicli ")


def test_global_options_may_precede_the_command(work, files):
    wanted = ok("inspect", files.get("t"))
    equal(ok("--color", "never", "-q", "inspect", files.get("t")), wanted)
    equal(ok("--log-level=debug", "inspect", "--no-network", files.get("t"), "--progress", "none"), wanted)
    equal(ok("inspect", "--", files.get("t")), wanted)


def ends(arguments, stdout):
    """Status and standard error of a run that writes to `stdout`."""
    from harness import SYMLOOM
    run = subprocess.run([SYMLOOM, *arguments], stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                         timeout=DEADLINE)
    return run.returncode, run.stderr


def test_closed_pipe_ends_the_command_silently(work, files):
    from harness import SYMLOOM
    for arguments in (["inspect", "--symbols", SYMLOOM], ["dump-syms", "-d", SYMLOOM], ["lookup", "-e", SYMLOOM, "--all"],
                      ["--help"], ["config", "show"], ["cleanup", "--cache-dir", work],
                      ["inspect", "--json", "--functions", SYMLOOM]):
        reading, writing = os.pipe()
        os.close(reading)
        equal(ends(arguments, writing), (0, ""), str(arguments))
        os.close(writing)


def test_full_disk_fails_the_command(work, files):
    t = files.get("t")
    for arguments in (["inspect", t], ["dump-syms", t], ["dump-syms", "-o", "/dev/full", t], ["lookup", "-e", t, "--all"],
                      ["--help"], ["version"], ["config", "show"], ["cleanup", "--cache-dir", work]):
        with open("/dev/full", "w") as full:
            status, err = ends(arguments, full)
            equal(status, 1, str(arguments))
            contains(err, "error: cannot write", "No space left on device")


def test_interrupted_dump_syms_leaves_no_file(work, files):
    """dump-syms waits for a FIFO's reader as its store is written: a signal ends it as if it had no handler."""
    from harness import SYMLOOM
    fifo, store = os.path.join(work, "fifo"), os.path.join(work, "store")
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen([SYMLOOM, "dump-syms", "-d", "-o", fifo, "-s", store, SYMLOOM], stderr=subprocess.PIPE)
    try:
        os.set_blocking(reader, True)
        os.read(reader, 1)  # it writes: the temporary file of the store is there
        process.send_signal(signal.SIGTERM)
        equal(process.wait(DEADLINE), -signal.SIGTERM)
    finally:
        process.kill()
        process.stderr.close()
        os.close(reader)
    equal([f for d, _, found in os.walk(store) for f in found], [])


def test_interrupted_store_leaves_only_complete_files(work, files):
    """The first module's file of the store is complete; that of the second one is a FIFO, which waits for its reader."""
    from harness import SYMLOOM
    from servers import wait_until
    store, first, second = os.path.join(work, "store"), files.get("t"), files.get("t.static")
    ok("dump-syms", "-s", store, first, second)
    written = {f: os.path.join(d, f) for d, _, found in os.walk(store) for f in found}
    equal(sorted(written), ["t.static.sym", "t.sym"])
    for path in written.values():
        os.unlink(path)
    os.mkfifo(written["t.static.sym"])
    process = subprocess.Popen([SYMLOOM, "dump-syms", "-o", os.path.join(work, "out"), "-s", store, first, second],
                               stderr=subprocess.DEVNULL)
    try:
        wait_until("the first file", lambda: os.path.exists(written["t.sym"]))
        process.send_signal(signal.SIGTERM)
        equal(process.wait(DEADLINE), -signal.SIGTERM)
    finally:
        process.kill()
    equal([name for name in os.listdir(work) if name.startswith("out")], [])


def test_unusable_files_report_status_and_cause(work, files):
    empty, missing = os.path.join(work, "empty"), os.path.join(work, "missing")
    open(empty, "w").close()
    for command in (["dump-syms"], ["dump-syms", "--list-arch"], ["bundle"], ["bundle", "--json"]):
        for path, status, cause in ((empty, 3, "unsupported object file format"), (work, 1, f"{work} is a directory"),
                                    (missing, 1, f"cannot open {missing}: No such file or directory")):
            result = symloom(*command, path)
            equal((result.status, result.out, result.err), (status, "", f"error: failed to process file {path}\n  caused by: {cause}\n"))
    equal((symloom("inspect", "--json", empty).status, symloom("inspect", "--json", empty).out), (3, ""))
    contains(symloom("inspect", "--json", empty, files.get("t")).out, '[{"path":', "}]\n")
    result = symloom("dump-syms", "-s", empty, files.get("t"))
    equal(result.status, 1)
    contains(result.err, f"error: cannot create the directory of {empty}/t/", "  caused by: Not a directory\n")


def test_partly_written_files_are_removed(work, files):
    """The disk is full behind a few bytes: the command fails, says why, and leaves nothing."""
    from harness import SYMLOOM
    project, into = os.path.join(work, "project"), os.path.join(work, "into")
    os.makedirs(os.path.join(project, "src/main/java"))
    os.mkdir(into)
    with open(os.path.join(project, "src/main/java/A.java"), "wb") as f:
        f.write(os.urandom(100000).hex().encode())
    jvm = ["bundle", "--jvm", project, "--debug-id", "00112233-4455-6677-8899-aabbccddeeff", "-o"]
    for arguments in (["dump-syms", SYMLOOM, "-o", os.path.join(into, "x")], ["dump-syms", "-i", SYMLOOM, "-s", into],
                      ["dump-syms", SYMLOOM, "-s", into], [*jvm, into],
                      ["lookup", "-e", files.get("t"), "0", "--symcache-out", os.path.join(into, "x")]):
        limit = 10 if "-i" in arguments else 500
        run = subprocess.run([SYMLOOM, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE,
                             restore_signals=False,  # that of the limit stays ignored
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        equal(run.returncode, 1, str(arguments) + run.stderr)
        contains(run.stderr, f"error: cannot write {into}/", ": File too large\n")
        equal(len(run.stderr.splitlines()), 1, run.stderr)
        equal([name for _, _, found in os.walk(into) for name in found], [], str(arguments))


def test_full_disk_is_not_an_unreadable_input(work, files):
    """Standard input is copied to a temporary file, and that one is what cannot be written."""
    from harness import SYMLOOM
    run = subprocess.run([SYMLOOM, "symbolicate", "-"], capture_output=True, text=True, input="x" * 1000, timeout=DEADLINE,
                         restore_signals=False,  # that of the limit stays ignored
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)))
    equal((run.returncode, run.stdout), (1, ""))
    contains(run.stderr, "cannot write a temporary file: File too large")


def test_keys_without_effect_are_warned_of(work, files):
    """Said by the check and by the service itself; with --strict an error."""
    path = os.path.join(work, "config.yml")
    with open(path, "w") as f:
        f.write("bind_https: null\nhttp: {reuseport: true}\nisolation: x\ntraces_sample_rate: 1\n")
    lines = f"{path}:3:1: warning: isolation: has no effect\n{path}:4:1: warning: traces_sample_rate: has no effect\n"
    checked, strict = symloom("config", "check", path), symloom("config", "check", "--strict", path)
    equal((checked.status, checked.out), (0, lines))
    equal((strict.status, strict.out), (1, lines))
    contains(symloom("run", "-c", path, "--bind", "192.0.2.1:1").err, lines)
