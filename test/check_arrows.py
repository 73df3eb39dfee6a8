#!/usr/bin/env python3
"""The arrows and doors of the house, read off the includes. Prints every include that goes the wrong way; status 1 if there is one.

A folder of lib or service may include what its meson.build depends on, and what that depends on. Of another folder it may include the
headers that CONTRIBUTING.md's table calls that folder's doors; the table has every folder, and no door that nobody uses."""
import glob, os, re, sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# Of lib, which knows nothing of sockets, loops or threads.
NOT_IN_LIB = re.compile(r"uv\.h|curl/|llhttp|hiredis|pthread|sys/socket|json-c")
# Families of the API that others are built on.
SHARED_FAMILIES = ("jobs", "native", "js", "jvm") # POST /symbolicate-text runs these three
# What the arrows of meson allow, and the house does not: search asks the store for files, and does not know what fills it.
FORBIDDEN = [("service/cache_kinds", "store/store.h")]

wrong = []


def read(path):
    with open(path) as f:
        return f.read()


def dependencies():
    """The folders by name, and the folders that each may include."""
    values, owners, used = {}, {}, {}  # of meson's variables: their text; the folder of NAME_dep; what a folder uses
    for path in glob.glob("lib/**/meson.build", recursive=True) + glob.glob("service/**/meson.build", recursive=True):
        folder, text = os.path.dirname(path), read(path)
        for name, value in re.findall(r"^(\w+_deps) \+?= (\[[^]]*\]|\w+)", text, re.M):
            values[name] = values.get(name, "") + value
        for name, about in re.findall(r"^(\w+_dep) = declare_dependency\(((?:[^()]|\([^()]*\))*)\)", text, re.M):
            values.setdefault(name, "")
            if "link_with" in about:
                owners[name] = folder
            else:
                values[name] += about  # it stands for others
        used.setdefault(folder, "")
        used[folder] += " ".join(re.findall(r"\bdependencies: (\[[^]]*\]|\w+)", text))

    def folders(text, seen=()):
        for name in set(re.findall(r"\w+_deps?\b", text)) - set(seen):
            if name in owners:
                yield owners[name]
            yield from folders(values.get(name, ""), (*seen, name))
    reached = {folder: set(folders(text)) for folder, text in used.items() if "/" in folder}
    changed = True
    while changed:
        changed = False
        for folder, wanted in reached.items():
            more = set().union(*(reached[name] for name in wanted if name in reached)) - wanted
            wanted |= more
            changed |= bool(more)
    return {os.path.basename(folder): folder for folder in reached}, reached


def doors():
    """By folder of CONTRIBUTING.md's table: its doors; None when all headers are."""
    rows = re.findall(r"^\| ((?:lib|service)/\w+) \| .* \| (.*) \|$", read("CONTRIBUTING.md"), re.M)
    return {folder: None if "the headers" in column else set(re.findall(r"[\w/]+\.h", column)) for folder, column in rows}


def includes():
    for path in glob.glob("lib/**/*", recursive=True) + glob.glob("service/**/*", recursive=True):
        if path.endswith((".c", ".h", ".cc")):
            for header in re.findall(r'^ *# *include *[<"]([^>"]+)[>"]', read(path), re.M):
                yield path, "/".join(path.split("/")[:2]), header


names, reached = dependencies()
doors_of, used = doors(), {}
for folder in sorted(set(reached) ^ set(doors_of)):
    wrong.append(f"CONTRIBUTING.md: {folder} is {'not in the table' if folder in reached else 'no folder'}")
for path, folder, header in includes():
    target, door = names.get(header.split("/")[0]), header.split("/", 1)[-1]
    if folder.startswith("lib/") and NOT_IN_LIB.match(header):
        wrong.append(f"{path}: lib does not include {header}")
    if (folder, header) in FORBIDDEN:
        wrong.append(f"{path}: {folder} does not include {header}")
    if folder == "service/api" and header.startswith("api/") and header.count("/") > 1:
        family = header.split("/")[1]
        if family not in SHARED_FAMILIES and not path.startswith(f"service/api/{family}/"):
            wrong.append(f"{path}: {header} is the business of service/api/{family}")
    if not target or target == folder or folder == "lib/symloom.h":
        continue
    used.setdefault(target, set()).add(door)
    if target not in reached[folder]:
        wrong.append(f"{path}: {folder} does not depend on {target}, and includes {header}")
    if doors_of.get(target) is not None and door not in doors_of[target]:
        wrong.append(f"{path}: {header} is no door of {target}")
for folder, listed in sorted(doors_of.items()):
    for door in sorted((listed or set()) - used.get(folder, set())):
        wrong.append(f"CONTRIBUTING.md: no other folder includes {folder}/{door}")
if "--doors" in sys.argv:
    for folder in sorted(used):
        print(folder, ", ".join(sorted(used[folder])))
else:
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))
