#!/usr/bin/env python3
"""Writes the page's files and the description of the API as one C source.

usage: embed.py OUT.c DIRECTORY OPENAPI VERSION

Every file is there twice: as it is, and in gzip. References among them carry a hash of all, so that a browser never shows the
files of two versions together. index.html is there once more, as mozilla.html, for services that answer Mozilla's API too.
OPENAPI is doc/openapi.yaml, which gets the program's version.

main.js and all modules that it imports are one file, which a browser asks for once instead of finding one module in the other;
those that it only loads when they are needed stay alone, and import from that file:

    export const { el, $ } = (() => { ...dom.js... return { el, $ }; })();
    export const { ... } = (() => { ...text.js... })();
    { ...main.js... }
"""
import gzip, hashlib, os, re, sys

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
UTF8 = "; charset=utf-8"
REFERENCE = re.compile(r"""(["'])((?:\./|/page/)[\w-]+\.(?:js|css|svg))\1""")
MOZILLA = ("<!-- mozilla -->", "<p>This is a Mozilla Symbolication Server too.</p>")


IMPORT = re.compile(r"""^import \{[^}]*\} from "\./([\w-]+\.js)";\n""", re.M)
EXPORT = re.compile(r"^export ((?:async )?function\*?|class|const|let) ([\w$]+)", re.M)
MAIN = "main.js"


def imported(files, name, found):
    """The modules that one needs, each behind those that it needs itself."""
    for other in IMPORT.findall(files[name]):
        if other not in found:
            imported(files, other, found)
    found.append(name)
    return found


def bundle(files):
    """The files with main.js as one module."""
    modules = imported(files, MAIN, [])
    exports = [name for module in modules for _, name in EXPORT.findall(files[module])]
    if len(set(exports)) != len(exports):
        sys.exit(f"the modules of {MAIN} export one name twice: {sorted(exports)}")
    text = ""
    for module in modules:
        names = ", ".join(name for _, name in EXPORT.findall(files[module]))
        body = EXPORT.sub(r"\1 \2", IMPORT.sub("", files[module]))
        if re.search(r"^(?:import|export)\b", body, re.M):
            sys.exit(f"{module}: an import or export of a form that is not known here")
        text += f"export const {{ {names} }} = (() => {{\n{body}return {{ {names} }};\n}})();\n" if names else f"{{\n{body}}}\n"
    first = re.compile(r'(^import \{[^}]*\} from "\./)(?:' + "|".join(map(re.escape, modules)) + ')"', re.M)
    rest = {name: first.sub(rf'\1{MAIN}"', text) for name, text in files.items() if name not in modules}
    return {**rest, MAIN: text}


def c_bytes(data):
    return ",".join(map(str, data))


def embed(number, name, media_type, plain):
    """The arrays with the bytes of a file, and its row."""
    packed = gzip.compress(plain, 9, mtime=0)
    tag = f'\\"{hashlib.sha256(plain).hexdigest()[:16]}-{len(packed):x}\\"'
    arrays = (f"static const uint8_t plain_{number}[] = {{{c_bytes(plain)}}};\n"
              f"static const uint8_t packed_{number}[] = {{{c_bytes(packed)}}};\n")
    return arrays, (f'    {{SL_STR("{name}"), "{media_type}", SL_STR("{tag}"),\n'
                    f"     {{plain_{number}, {len(plain)}}}, {{packed_{number}, {len(packed)}}}}},\n")


def described(path, version):
    """The description of the API, of this version of the program."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if text.count("@VERSION@") != 1:
        sys.exit(f"{path} does not have @VERSION@ once")
    return text.replace("@VERSION@", version)


def main():
    out, directory, openapi, api_version = sys.argv[1:]
    files = {}
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8") as f:
            files[name] = f.read()
    files = bundle(files)
    files["mozilla.html"] = files["index.html"].replace(*MOZILLA)
    files["index.html"] = files["index.html"].replace(MOZILLA[0], "")
    version = hashlib.sha256("".join(files.values()).encode()).hexdigest()[:16]
    embedded = [(name, TYPES[name.rpartition(".")[2]] + UTF8, REFERENCE.sub(rf"\1\2?v={version}\1", text).encode())
                for name, text in files.items()]
    embedded.append(("openapi.yaml", "application/yaml", described(openapi, api_version).encode()))
    arrays, rows = zip(*(embed(number, *file) for number, file in enumerate(embedded)))
    with open(out, "w") as f:
        f.write('#include "api/page/page.h"\n\n' + "".join(arrays) + "\nconst struct page_file page_files[] = {\n" +
                "".join(rows) + "    {.type = NULL},\n};\n")


if __name__ == "__main__":
    main()
