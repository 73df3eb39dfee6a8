"""Man pages and completions say what --help says, keys that are made are taken by the configuration."""
import functools, hashlib, os, re, subprocess
from harness import DEADLINE, contains, equal, ok, symloom


@functools.cache
def commands():
    """Each command, and what is said of it in half a line."""
    return dict(re.findall(r"^  ([a-z-]+) +(.*)$", ok("--help"), re.M))


@functools.cache
def options(command):
    return re.findall(r"^ +(?:-(.), )?--([a-z0-9-]+)", ok(command, "--help") if command != "help" else "", re.M)


def test_a_page_for_each_command(work, files):
    pages = os.path.join(work, "pages")
    ok("man", "--all", pages)
    equal(sorted(os.listdir(pages)), sorted(["symloom.1"] + [f"symloom-{command}.1" for command in commands()]))
    for command, about in commands().items():
        page = ok("man", command)
        with open(os.path.join(pages, f"symloom-{command}.1")) as f:
            equal(f.read(), page)
        contains(page, ".TH SYMLOOM\\-" + command.upper().replace("-", "\\-") + " 1 ",
                 "\\- " + about.replace("-", "\\-"), ".SH SYNOPSIS", ".SH OPTIONS", ".SH EXIT STATUS")
        for letter, name in options(command):
            contains(page, (f"\\-{letter}, " if letter else "") + "\\-\\-" + name.replace("-", "\\-"))
        assert not re.search(r"^\.(?!TH|SH|TP|BR?|nh|hy)", page, re.M), page  # no text is taken for a request
    contains(ok("man"), *(f".BR symloom\\-{command.replace('-', chr(92) + '-')} (1)" for command in commands()))
    lost = symloom("man", "--all", os.path.join(work, "no", "where"))
    equal((lost.status, lost.out), (1, ""))
    contains(lost.err, "error: cannot write ")


def completed(script, *words):
    """What bash offers for the last word."""
    run = subprocess.run(["bash", "-c", 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _symloom; printf "%s\\n" "${COMPREPLY[@]}"',
                          script, *words], capture_output=True, text=True, timeout=DEADLINE)
    equal((run.returncode, run.stderr), (0, ""))
    return [word for word in run.stdout.split("\n") if word]


def test_completion(work, files):
    script = os.path.join(work, "symloom.bash")
    with open(script, "w") as f:
        f.write(ok("completion", "bash"))
    equal(completed(script, "symloom", ""), list(commands()))
    equal(completed(script, "symloom", "--color", "never", "lo"), ["lookup"])
    equal(completed(script, "symloom", "lookup", "--output-style", ""), ["gnu", "llvm", "json", "table"])
    equal(completed(script, "symloom", "symbolicate", "-f", "com"), ["compact"])
    equal(completed(script, "symloom", "config", ""), ["check", "show", "table"])
    equal(completed(script, "symloom", "help", "dump"), ["dump-syms"])
    equal(completed(script, "symloom", "lookup", "--file", "somewh"), [])  # bash then offers files
    for command in commands():
        if command != "help":
            equal(completed(script, "symloom", command, "--"), [f"--{name}" for _, name in options(command)])
    for shell in ("zsh", "fish"):
        text = ok("completion", shell)
        for command in commands():
            contains(text, command, *(name for _, name in options(command)))


def test_a_new_key(work, files):
    words = ["key", "new", "--id", "ci", "--right", "symbols:write", "--right", "symbols:read", "--scope", "a", "--expires", "2031-01-31"]
    first, second = ok(*words), ok(*words)
    assert first != second, first
    key, yaml = re.fullmatch(r"# The key, which is shown only now: ([0-9a-f]{64})\n(.*)", first, re.S).groups()
    contains(yaml, hashlib.sha256(key.encode()).hexdigest(), 'rights: ["symbols:write", "symbols:read"]', 'scopes: ["a"]')
    config = os.path.join(work, "symloom.yml")
    with open(config, "w") as f:
        f.write(f"cache_dir: {work}\n" + first)
    os.chmod(config, 0o600)
    equal(ok("config", "check", config), "configuration OK\n")
    for words, said in ((["--id", "a:b", "--right", "admin"], "auth.keys[0].id"), (["--id", "a", "--right", "all"], "auth.keys[0].rights"),
                        (["--id", "a", "--right", "admin", "--expires", "soon"], "auth.keys[0].expires")):
        wrong = symloom("key", "new", *words)
        equal((wrong.status, wrong.out), (2, ""))
        contains(wrong.err, said)
