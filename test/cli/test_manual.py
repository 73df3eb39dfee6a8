"""Man pages and completions say what --help says, keys that are made are taken by the configuration."""
import functools, hashlib, os, re, subprocess
from harness import DEADLINE, contains, equal, ok, symloom


@functools.cache
def commands():
    """Each command, and what is said of it in half a line."""
    return dict(re.findall(r"^  ([a-z-]+) +(.*)$", ok("--help"), re.M))


def listed(text):
    """Letter and name of each option."""
    return re.findall(r"^(?:  -(.), |      )--([a-z0-9-]+)", text, re.M)


@functools.cache
def options(command):
    return listed(ok(command, "--help") if command != "help" else "")


@functools.cache
def of_all():
    """The options that all commands have, but for those that tell of the program itself."""
    return [(letter, name) for letter, name in listed(ok("--help").split("Global options:")[1]) if name not in ("version", "help")]


def behind(command):
    """What may stand behind a command: its own options hide those of all that have their name or letter."""
    own = [(letter, name) for letter, name in options(command) if name != "help"]
    letters, names = ({option[i] for option in own} for i in (0, 1))
    return own + [("" if letter in letters else letter, name) for letter, name in of_all() if name not in names]


def test_every_command_has_a_manual_page(work, files):
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
        assert not re.search(r"^\.(?!TH|SH|SS|TP|BR?|nh|hy|nf|fi)", page, re.M), page  # no text is taken for a request
    contains(ok("man"), *(f".BR symloom\\-{command.replace('-', chr(92) + '-')} (1)" for command in commands()))
    lost = symloom("man", "--all", os.path.join(work, "no", "where"))
    equal((lost.status, lost.out), (1, ""))
    contains(lost.err, "error: cannot write ")


def test_examples_use_existing_options(work, files):
    """In help and manual; each is a command with options that it has."""
    shown = 0
    for command in commands():
        text, page = ok("help", command), ok("man", command)
        examples = text.partition("\nExamples:\n")[2].splitlines()
        equal(".SH EXAMPLES" in page, bool(examples), command)
        known = {f"--{name}" for _, name in behind(command)} | {f"-{letter}" for letter, _ in behind(command) if letter} | {"-pdb", "-zz", "-"}
        for line in examples:
            shown += 1
            contains(page, line.strip().replace("-", "\\-"))
            words = re.split(r"[ ()|]+", line.strip())
            equal(words[words.index("symloom") + 1], command, line)
            equal([word for word in words[words.index("symloom"):] if word.startswith("-") and word not in known | {"-l"}], [], line)
    assert shown > len(commands()), shown


def completed(script, *words):
    """What bash offers for the last word."""
    run = subprocess.run(["bash", "-c", 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _symloom; printf "%s\\n" "${COMPREPLY[@]}"',
                          script, *words], capture_output=True, text=True, timeout=DEADLINE)
    equal((run.returncode, run.stderr), (0, ""))
    return [word for word in run.stdout.split("\n") if word]


def test_bash_completion_offers_commands_and_options(work, files):
    script = os.path.join(work, "symloom.bash")
    with open(script, "w") as f:
        f.write(ok("completion", "bash"))
    equal(completed(script, "symloom", ""), list(commands()))
    equal(completed(script, "symloom", "--color", "never", "lo"), ["lookup"])
    equal(completed(script, "symloom", "lookup", "--output-style", ""), ["gnu", "llvm", "json", "table"])
    equal(completed(script, "symloom", "symbolicate", "-f", "com"), ["compact"])
    equal(completed(script, "symloom", "config", ""), ["check", "show", "table", "metrics"])
    equal(completed(script, "symloom", "help", "dump"), ["dump-syms"])
    equal(completed(script, "symloom", "lookup", "--file", "somewh"), [])  # bash then offers files
    said = ["--version", "--help"]
    equal(sorted(completed(script, "symloom", "--")), sorted([f"--{name}" for _, name in of_all()] + said))  # help has them in groups
    equal(completed(script, "symloom", "lookup", "--color", ""), ["auto", "always", "never"])
    equal(completed(script, "symloom", "lookup", "-e", ""), [])
    for command in commands():
        equal(sorted(completed(script, "symloom", command, "--")), sorted([f"--{name}" for _, name in behind(command)] + said))


def test_zsh_and_fish_complete_the_same_words(work, files):
    zsh, fish = ok("completion", "zsh"), ok("completion", "fish")
    before, *parts = re.split(r"^    (?=[a-z-]+\)\n)", zsh, flags=re.M)
    of_zsh = {part.split(")")[0]: part for part in parts}
    equal(list(of_zsh), list(commands()))
    words = lambda text: sorted(set(re.findall(r"^ +'(?:\(-\)|\*)?(--?[a-zA-Z0-9-]+?)[+=]?-?\[", text, re.M)))
    offered = lambda which: sorted({f"--{name}" for _, name in which} | {f"-{letter}" for letter, _ in which if letter})
    equal([word for word in words(before) if word not in ("--version", "--help")], offered(of_all()))
    for command in commands():
        equal([word for word in words(of_zsh[command]) if word not in ("--version", "--help")], offered(behind(command)), command)
    lines = fish.splitlines()
    of_fish = lambda condition: sorted(word for line in lines if f" -n {condition} -l " in line
                                       for name, letter in re.findall(r" -l (\S+)(?: -s (\S))?", line.split(" -d ")[0])
                                       for word in ([f"--{name}"] + ([f"-{letter}"] if letter else [])))
    equal(of_fish("__fish_use_subcommand"), offered(of_all()))
    for command in commands():
        equal(of_fish(f"'__fish_seen_subcommand_from {command}'"), offered(behind(command)), command)


def test_key_new_prints_key_and_configuration(work, files):
    words = ["key", "new", "--id", "ci", "--right", "symbols:write", "--right", "symbols:read", "--scope", "a", "--expires", "2031-01-31"]
    first, second = ok(*words), ok(*words)
    assert first != second, first
    key, yaml = re.fullmatch(r"# The key \(shown only once\): ([0-9a-f]{64})\n(.*)", first, re.S).groups()
    contains(yaml, hashlib.sha256(key.encode()).hexdigest(), 'rights: ["symbols:write", "symbols:read"]', 'scopes: ["a"]')
    config = os.path.join(work, "symloom.yml")
    with open(config, "w") as f:
        f.write(f"cache_dir: {work}\n{first}  require: [symbolicate, symbols, admin]\n")
    os.chmod(config, 0o600)
    equal(ok("config", "check", config), "configuration OK\n")
    for words, said in ((["--id", "a:b", "--right", "admin"], "auth.keys[0].id"), (["--id", "a", "--right", "all"], "auth.keys[0].rights"),
                        (["--id", "a", "--right", "admin", "--expires", "soon"], "auth.keys[0].expires")):
        wrong = symloom("key", "new", *words)
        equal((wrong.status, wrong.out), (2, ""))
        contains(wrong.err, said)
