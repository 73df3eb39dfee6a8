"""Nothing is ever half-written: of every command that writes files, when it is killed, interrupted or has no room; and what its
standard output holds."""
import fcntl, hashlib, json, os, re, resource, select, shutil, subprocess, termios, time
import harness
from harness import DEADLINE, contains, equal, ok, symloom
from test_by_id import terminal
from test_manual import commands, options

ID = "00112233-4455-6677-8899-aabbccddeeff"


def tree(root):
    """Each file below, and what is in it."""
    found = {}
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, root)] = hashlib.sha256(f.read()).hexdigest()
    return found


def writers(work, files):
    """Each command that writes, as a function of the directory that it writes into; `mine`: of its files, those that were there."""
    program, t, wasm = harness.SYMLOOM, files.get("t"), files.get("t.wasm")
    project = os.path.join(work, "project")
    os.makedirs(os.path.join(project, "src/main/java"))
    with open(os.path.join(project, "src/main/java/A.java"), "w") as f:
        f.write(os.urandom(2000000).hex())
    log, mapping = os.path.join(work, "log"), os.path.join(work, "mapping.txt")
    with open(log, "w") as f:
        f.write("a line of a log\n" * 300000)
    with open(mapping, "w") as f:
        f.write("a.B -> a:\n    void c() -> b\n")
    return [lambda d: ["dump-syms", program, "-d", "-o", f"{d}/x.sym"],
            lambda d: ["dump-syms", program, "-d", "-s", d],
            lambda d: ["bundle", t, "--root", f"/src={files.dir}", "-o", f"{d}/x.zip"],
            lambda d: ["bundle", "--jvm", project, "--debug-id", ID, "-o", f"{d}/jvm.zip"],
            lambda d: ["sort", "-qz", "-o", d, program, t],
            lambda d: ["lookup", "-e", program, "0", "--symcache-out", f"{d}/x.symcache"],
            lambda d: ["symcachegen", "-pdb", program, "-o", f"{d}/y.symcache"],
            lambda d: ["wasm-split", wasm, "--build-id", ID, "--strip", "-o", f"{d}/x.wasm", "-d", f"{d}/x.debug.wasm"],
            lambda d: ["push-symbols", "executable", "-e", t, "--dry-run", "--output", d],
            lambda d: ["man", "--all", d],
            lambda d: ["symbolicate", "--mapping", mapping, log, "--output", f"{d}/log"]]


def test_killed_command_leaves_whole_files(work, files):
    """What lies under a name is whole, whenever the run ended."""
    for number, write in enumerate(writers(work, files)):
        whole, into = os.path.join(work, f"whole{number}"), os.path.join(work, f"into{number}")
        os.mkdir(whole)
        ok(*write(whole))
        wanted = tree(whole)
        assert wanted, write(whole)
        for wait in (0, 0.02):
            shutil.rmtree(into, ignore_errors=True)
            os.mkdir(into)
            run = subprocess.Popen([harness.SYMLOOM, *write(into)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while run.poll() is None and not any(names for _, _, names in os.walk(into)):
                time.sleep(0.0005)
            time.sleep(wait)  # into the writing; whatever it has come to by then must hold
            run.kill()
            run.wait()
            for path, content in tree(into).items():
                if not re.search(r"\.[A-Za-z0-9]{6}$", path) or path in wanted:  # that is a temporary one
                    equal(content, wanted.get(path), f"{path} of {write(into)}")


def test_full_disk_leaves_former_files(work, files):
    """The command says so, and leaves what was there before."""
    for number, write in enumerate(writers(work, files)):
        into, limit = os.path.join(work, f"into{number}"), 300
        os.mkdir(into)
        ok(*write(into))
        before = tree(into)
        for path in before:  # what is there is something else, so that it has to be written anew
            with open(os.path.join(into, path), "w") as f:
                f.write("old")
        old = tree(into)
        words = write(into) + (["-f"] if write(into)[0] == "sort" else [])
        run = subprocess.run([harness.SYMLOOM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE,
                             restore_signals=False,  # that of the limit stays ignored
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        equal(run.returncode, 1, str(words) + run.stderr)
        contains(run.stderr, "File too large")
        left = tree(into)
        for path, content in left.items():
            assert content in (old.get(path), before.get(path)), (path, words)


def test_in_place_wasm_split_leaves_the_old_or_the_new_module(work, files):
    """There is the old one or the new one."""
    path = shutil.copy(files.get("t.wasm"), os.path.join(work, "t.wasm"))
    with open(path, "rb") as f:
        before = f.read()
    run = subprocess.run([harness.SYMLOOM, "wasm-split", path, "--build-id", ID], capture_output=True, text=True, restore_signals=False,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
    equal(run.returncode, 1)
    with open(path, "rb") as f:
        equal(f.read(), before)
    equal(os.listdir(work), ["t.wasm"])


def test_interrupted_sort_at_a_terminal_gives_status_130(work, files):
    """Ctrl-C while `sort` packs: the shell sees 130, and nothing is left of the file."""
    out = os.path.join(work, "out")
    ours, theirs = terminal()
    shell = ["bash", "-c", 'trap : INT; "$0" sort -qzzzz -o "$1" "$0"; echo "status $?"', harness.SYMLOOM, out]
    run = subprocess.Popen(shell, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                           preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(theirs)
    text, deadline, sent = b"", time.monotonic() + DEADLINE, False
    try:
        while time.monotonic() < deadline:
            if not sent and any(names for _, _, names in os.walk(out)):
                os.write(ours, b"\x03")
                sent = True
            if select.select([ours], [], [], 0.01)[0]:
                text += os.read(ours, 4096)
    except OSError:  # the other end is closed
        pass
    run.wait(DEADLINE)
    os.close(ours)
    contains(text.decode(errors="replace"), "status 130")
    equal([path for path in tree(out) if not path.startswith("refs")], [])


def json_runs(work, files):
    """Of each command that has --json, runs that succeed and runs that fail."""
    t, wasm, missing, broken = files.get("t"), files.get("t.wasm"), os.path.join(work, "missing"), os.path.join(work, "broken")
    with open(broken, "w") as f:
        f.write("nothing of use\n" * 100)
    config = os.path.join(work, "config.yml")
    with open(config, "w") as f:
        f.write("max_downloads: many\n")
    return {"inspect": [[t], [t, files.get("t.exe")], ["--functions", "--verify", t], [missing], [broken], ["--id", ID, t]],
            "bundle": [["-n", t], [missing], [broken], ["--id", ID, t]],
            "cleanup": [["--cache-dir", work], ["--cache-dir", "", "--config", config], ["--only", "nothing"]],
            "config": [["check"], ["check", config], ["check", missing], ["show"], ["show", "-c", config]],
            "scan": [["--cache-dir", "", work], ["--cache-dir", "", missing], ["--cache-dir", "", "-c", missing]],
            "sort": [["-o", os.path.join(work, "s"), t], ["-o", os.path.join(work, "s"), missing], ["-o", os.path.join(work, "s"), broken]],
            "wasm-split": [[wasm, "-o", os.path.join(work, "w")], [missing], [broken], [t]],
            "lookup": [["-e", t, "0", "0x1"], ["-e", missing, "0"], ["-e", broken, "0"], ["-e", t, "nobody"], ["--names", "main", "-e", t]],
            "stress": [["-w", missing], ["-w", broken], []],
            "symbolicate": [["--module", f"{t}@0x1000", "0x2174", "--cache-dir", ""], [missing], [broken], ["-f", "full", t], ["--thread", "9", t]],
            "version": [[], ["more"]]}


def test_json_output_is_one_value_or_nothing(work, files):
    runs = json_runs(work, files)
    equal(sorted(runs), sorted(c for c in commands() if "json" in [name for _, name in options(c)]))
    for command, all_words in runs.items():
        for words in all_words:
            result = symloom(command, *words, "--json")
            values = result.out.splitlines() if command == "sort" else [result.out] if result.out else []
            for value in values:
                json.loads(value)
            assert not result.out or result.out.endswith("\n"), (command, words)
            equal(result.out.count("\n"), len(values), str((command, words)))
            if result.status == 2:
                equal(result.out, "", str((command, words)))


def test_every_command_has_help(work, files):
    """Its help, with what is in it, also as `help COMMAND`; and it takes the options of all commands."""
    everywhere = re.findall(r"^ +(?:-(.), )?--([a-z-]+)( \S+)?", ok("help").split("Global options:")[1], re.M)
    assert len(everywhere) > 10, everywhere
    values = {"jobs": "1", "color": "never", "progress": "none", "log-level": "warn", "log-format": "json"}
    for command in commands():
        text = ok(command, "--help")
        equal(ok("help", command), text)
        assert re.match(rf"usage: symloom {command}( |$)", text), text
        brief = ok(command, "-h")
        starts = lambda shown: [line for line in shown.splitlines() if line.startswith(("usage: ", "  -", "      --"))]
        told = starts(brief)
        assert told[0] == starts(text)[0] and set(told) <= set(starts(text)), (text, brief)
        words = [word for _, name, value in everywhere if name != "version" for word in (f"--{name}", values.get(name, work))[:2 if value else 1]]
        if command != "help":  # which takes a command
            equal(ok(command, *words, "--help"), text, command)
