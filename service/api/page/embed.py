#!/usr/bin/env python3
"""Writes the page's files as one C source.

usage: embed.py OUT.c DIRECTORY

Every file is there twice: as it is, and in gzip. References among them carry a hash of all, so that a browser never shows the
files of two versions together. index.html is there once more, as mozilla.html, for services that answer Mozilla's API too.
"""
import gzip, hashlib, os, re, sys

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
REFERENCE = re.compile(r"""(["'])((?:\./|/page/)[\w-]+\.(?:js|css|svg))\1""")
MOZILLA = ("<!-- mozilla -->", "<p>This is a Mozilla Symbolication Server too.</p>")


def c_bytes(data):
    return ",".join(map(str, data))


def main():
    out, directory = sys.argv[1:]
    files = {}
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8") as f:
            files[name] = f.read()
    files["mozilla.html"] = files["index.html"].replace(*MOZILLA)
    files["index.html"] = files["index.html"].replace(MOZILLA[0], "")
    version = hashlib.sha256("".join(files.values()).encode()).hexdigest()[:16]
    rows, arrays = [], []
    for number, (name, text) in enumerate(files.items()):
        plain = REFERENCE.sub(rf"\1\2?v={version}\1", text).encode()
        packed = gzip.compress(plain, 9, mtime=0)
        tag = f'\\"{hashlib.sha256(plain).hexdigest()[:16]}-{len(packed):x}\\"'
        arrays.append(f"static const uint8_t plain_{number}[] = {{{c_bytes(plain)}}};\n"
                      f"static const uint8_t packed_{number}[] = {{{c_bytes(packed)}}};\n")
        rows.append(f'    {{SL_STR("{name}"), "{TYPES[name.rpartition(".")[2]]}; charset=utf-8", SL_STR("{tag}"),\n'
                    f"     {{plain_{number}, {len(plain)}}}, {{packed_{number}, {len(packed)}}}}},\n")
    with open(out, "w") as f:
        f.write('#include "api/page/page.h"\n\n' + "".join(arrays) + "\nconst struct page_file page_files[] = {\n" +
                "".join(rows) + "    {.type = NULL},\n};\n")


if __name__ == "__main__":
    main()
