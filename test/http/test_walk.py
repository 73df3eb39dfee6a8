"""README as somebody reads it who types every command that it shows, in order, in one directory."""
import json, os, re, shutil, subprocess

import harness
from harness import equal
from servers import free_port
from test_own_files import MAP, SCRIPT

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../README.md")
# The parts that are a walk; what is listed elsewhere has names of files that nobody has.
PARTS = "## A stack, step by step", "### Symbols of builds", "### Uploads of profilers", "## Java and Kotlin", "## JavaScript", "## The page"
AWAY = re.compile(r"\.next|web\.log")  # what only a real bundler can make


def parts(text):
    for title in PARTS:
        yield re.split(r"\n##+ ", text.split("\n" + title + "\n", 1)[1])[0]


def is_whole(command):
    """Whether nothing more belongs to it: no open quotation mark, no `<<'END'` without its END, no backslash at the end."""
    document = re.search(r"<<'(\w+)'", command)
    if document:
        return command.endswith("\n" + document[1])
    return command.count("'") % 2 == 0 and not command.endswith("\\")


def commands(part):
    """(command, what it prints) of every block that has commands."""
    for block in re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", part + "\n", re.M):
        lines = [line[4:] for line in block.splitlines()]
        found = []
        for line in lines:
            if found and not is_whole(found[-1][0]):
                found[-1][0] += "\n" + line
            elif line.startswith("$ "):
                found.append([line[2:], ""])
            elif found:
                found[-1][1] += line + "\n"
        yield from found


def pattern(expected):
    """What is shown, as an expression: ids and sizes of the moment may be others, and `...` stands for more."""
    text = re.escape(expected)
    text = re.sub(r'("id":|"size":)\d+', r"\1\\d+", text)
    text = re.sub(r"[0-9a-f]{8}(?:\\-[0-9a-f]{4}){3}\\-[0-9a-f]{12}", r"[0-9a-f-]{36}", text)
    return text.replace(r"\.\.\.", ".*")


def script(steps, ports):
    """A shell script that runs them with marks around what each prints; a service has started when it answers."""
    lines = ["set -u", "exec 2>&1"]
    for number, (command, _) in enumerate(steps):
        command = command.replace("3021", str(ports[0])).replace("8123", str(ports[1]))
        if command.startswith("npx "):  # a bundler is not everywhere; this is what it writes
            command = "cp ../app.min.js ../app.min.js.map ."
        quiet = command.endswith("&")
        lines += [f"printf '\\1%s\\2' {number}", command.removesuffix("&").strip() + " >/dev/null 2>&1 &" if quiet else command]
        if "symloom run" in command:
            lines.append(f"for i in $(seq 600); do symloom healthcheck --addr 127.0.0.1:{ports[0]} --timeout 1 >/dev/null 2>&1 && break; sleep 0.1; done")
        if command.startswith("kill "):
            lines.append("wait")
        if "http.server" in command:
            lines.append(f"for i in $(seq 100); do curl -so /dev/null localhost:{ports[1]} && break; sleep 0.1; done")
    return "\n".join([*lines, "printf '\\1%s\\2' end", "kill $(jobs -p)", "wait"])


def place(work):
    """Where the walk is, with `symloom` and a compiler that calls it /tmp/demo on its path."""
    demo, tools = os.path.join(work, "demo"), os.path.join(work, "tools")
    os.makedirs(demo)
    os.makedirs(tools)
    os.symlink(harness.SYMLOOM, os.path.join(tools, "symloom"))
    with open(os.path.join(tools, "gcc"), "w") as f:
        f.write(f'#!/bin/sh\nexec {shutil.which("gcc")} -fdebug-prefix-map={demo}=/tmp/demo "$@"\n')
    os.chmod(os.path.join(tools, "gcc"), 0o755)
    for name, text in (("app.min.js", SCRIPT), ("app.min.js.map", json.dumps(MAP)), (".curlrc", "silent\nshow-error\n")):  # as on a terminal
        with open(os.path.join(work, name), "w") as f:
            f.write(text)
    return demo, tools


def test_every_command_prints_what_is_shown(work, objects):
    with open(README) as f:
        texts = list(parts(f.read()))
    node = shutil.which("node")
    steps = [c for text in texts for c in commands(text) if not AWAY.search(c[0]) and (node or "stack.txt" not in c[0])]
    assert len(steps) > 30, len(steps)
    demo, tools = place(work)
    ports = free_port(), free_port()
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": work, "SYMLOOM_BIND": f"127.0.0.1:{ports[0]}", "LANG": "C.UTF-8"}
    text = script(steps, ports).replace("/tmp/demo", demo)
    run = subprocess.run(["bash", "-c", text], cwd=work, env=environment, capture_output=True, timeout=240, start_new_session=True)
    printed = dict(p.split(b"\2", 1) for p in run.stdout.split(b"\1")[1:])
    assert b"end" in printed, (sorted(printed), run.stdout[-2000:], run.stderr)
    for number, (command, expected) in enumerate(steps):
        found = printed[str(number).encode()].decode().replace(demo, "/tmp/demo")
        if expected:
            assert re.fullmatch(pattern(expected.rstrip("\n")), found.rstrip("\n"), re.S), f"{command}\nshown:\n{expected}\nprinted:\n{found}"
        assert not re.search(r"^error:|command not found|No such file|Traceback|cannot|refused", found, re.M), f"{command}\n{found}"
    begun = next(printed[str(n).encode()].decode() for n, (c, _) in enumerate(steps) if "symbolicate-js" in c)
    shown = re.search(r'(    \{"status":"completed","stacktraces".*?)\.\.\.', texts[4], re.S)[1]
    squeeze = lambda text: re.sub(r"\s", "", text.replace("8123", str(ports[1])))
    equal(squeeze(begun)[:len(squeeze(shown))], squeeze(shown))
