#!/usr/bin/env python3
"""Every key of the configuration does something, or says that it does not.

usage: check_keys.py BUILD-DIRECTORY

The compiler tells what the service reads: each field of the configuration is marked in a copy of its headers, and the sources
outside of service/config are checked against that. A field that no source names must belong to a key with a warning in the
table of keys; one that is named must belong to a key without. Prints what is wrong; status 1 if there is anything.
"""
import concurrent.futures, json, os, re, shlex, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADERS = ("config/config.h", "objectstore/objectstore.h")
STRUCTS = ("config", "config_shared", "config_store", "cache_lifetimes", "bucket_config")


def read(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def marked(header):
    """The header with every field of the structs marked."""
    lines, depth = [], 0  # fields of structs without a name are found by their own
    for line in header.split("\n"):
        begins = re.fullmatch(r"struct (\w+) \{.*", line)
        if begins and (depth or begins[1] in STRUCTS):
            depth = 1
        elif depth and re.match(r"\s+struct \{", line):
            depth += 1
        elif depth and re.match(r"\s*\}", line):
            depth -= 1
        elif depth and re.match(r"\s+[a-z][\w ]* \**\w+(\[\w+\])?(, \**\w+)*[;,]", line) and lines[-1].rstrip()[-1:] != ",":
            line = "__attribute__((deprecated)) " + line
        lines.append(line)
    return "\n".join(lines)


def named_in(command, directory, include):
    """The marked fields that a source names."""
    words = shlex.split(command)
    for flag in ("-MF", "-MQ", "-o"):
        at = words.index(flag)
        del words[at:at + 2]
    words = [w for w in words if w not in ("-MD", "-c", "-w") and not w.startswith(("-W", "-fsanitize"))]
    if words[0].endswith("ccache"):
        del words[0]
    words[1:1] = ["-I" + include, "-fsyntax-only"]
    words += ["-Wdeprecated-declarations", "-fdiagnostics-color=never"]
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if done.returncode != 0:
        sys.exit(done.stderr)
    return set(re.findall(r"[‘'](\w+)[’'] is deprecated", done.stderr))


def main():
    build = os.path.abspath(sys.argv[1])
    with open(os.path.join(build, "compile_commands.json")) as f:
        commands = {os.path.relpath(os.path.join(c["directory"], c["file"]), ROOT): c for c in json.load(f)}
    commands = [c for path, c in commands.items() if path.startswith("service/") and path.endswith(".c")
                and not path.startswith("service/config/") and "config" in read(path)]
    header = read("service/config/config.h")
    nameless = re.findall(r"^    \} (\w+);$", header, re.M)
    table = read("service/config/keys.c")
    rows = re.findall(r'^    \{"([\w.]+)", KEY_\w+,\s*(?:AT|LIST)\(([\w.]+)(?:, [\w.]+)?\)([^{}]*)\},?$', table, re.M)
    count = len(re.findall(r'^    \{"[\w.]+", KEY_\w+,\s*(?:AT|LIST)\(', table, re.M))
    if len(rows) != count or count < 100:
        sys.exit(f"{len(rows)} of {count} rows of keys.c can be read")
    with tempfile.TemporaryDirectory() as include, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in HEADERS:
            os.mkdir(os.path.join(include, os.path.dirname(name)))
            with open(os.path.join(include, name), "w") as f:
                f.write(marked(read("service/" + name)))
        named = set().union(*pool.map(lambda c: named_in(c["command"], c["directory"], include), commands))
    wrong = []
    for key, field, rest in rows:
        parts, warned = field.split("."), ".no_effect" in rest
        is_read = ".then" in rest or all(part in named for part in parts if part not in nameless)
        if not is_read and not warned:
            wrong.append(f"{key}: nothing reads it, and it has no warning")
        if is_read and warned and len(parts) == 1:  # of structs of one type it is not known which of them was read
            wrong.append(f"{key}: has a warning, but is read")
    print("\n".join(wrong) or f"{count} keys: each is read or has a warning")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
