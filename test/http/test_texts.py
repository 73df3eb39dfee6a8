"""Texts that programs and tools wrote: the command and POST /symbolicate-text give the same (test/page asks the page too)."""
import json, os, shutil, subprocess

import harness, texts
from harness import Service, equal, multipart
from test_scan import idle, scan
from test_text import text as named


def of_command(work, text):
    """What `symloom symbolicate` writes, with the files of the text in a directory."""
    places = os.path.join(work, text.name + ".files")
    os.mkdir(places)
    for name, data in text.files.items():
        with open(os.path.join(places, name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
    given = os.path.join(work, text.name + ".in")
    with open(given, "w", newline="") as f:
        f.write(text.text)
    mapping = ["--mapping", os.path.join(places, "mapping.txt")] if "mapping.txt" in text.files else []
    told = subprocess.run([harness.SYMLOOM, "symbolicate", given, "--symbols", places, *mapping], capture_output=True)
    equal(told.returncode, 0, told.stderr)
    return told.stdout.decode()


def test_texts_are_the_same_by_command_and_api(work, objects):
    with Service(work) as s:
        for text in texts.build(work):
            told = of_command(work, text)
            equal([name for name in text.names if name not in told], [], (text.name, told))
            files = [("artifact", data, name) for name, data in text.files.items()]
            equal(named(s, text.text, *files), told, text.name)
            equal(named(s, text.text, *files, Accept="application/json")["text"], told, text.name)


def test_modules_are_found_by_name_in_scanned_directories(work, objects):
    """One file of the name is taken; several are told apart by their directories, else by nothing but the request's word."""
    made = []
    for place in ("a", "b"):
        os.makedirs(os.path.join(work, "builds/usr", place))
        made.append(texts.Program(work, "shop", (".c", texts.SOURCE + f"int in_{place};\n"), ["gcc", "-g", "-O1", "-Wl,--build-id=sha1"]))
        for name in ("shop", "shop.debug"):
            shutil.copy(os.path.join(work, name), os.path.join(work, "builds/usr", place))
    os.utime(os.path.join(work, "builds/usr/a/shop"), (1, 1))
    os.utime(os.path.join(work, "builds/usr/a/shop.debug"), (1, 1))
    with Service(work, scan(os.path.join(work, "builds"))) as s:
        idle(s)
        line = f"#0 0x1  (%s+0x{made[0].symbols['use']:x})\n"
        for path, query, wanted in (("shop", "", None), ("/opt/shop", "", None), ("/usr/a/shop", "", made[0]), ("C:\\b\\shop.exe", "", made[1]),
                                    ("/usr/b/shop", "?guess=none", None), ("shop", "?guess=newest", made[1]), ("/usr/a/shop", "?guess=newest", made[0]),
                                    ("/usr/a/other", "?guess=newest", None)):
            answer = named(s, line % path, query=query, Accept="application/json")
            equal(" in use " in answer["text"], wanted is not None, (path, query, answer))
            module, = answer["modules"]
            equal((module.get("guess"), module.get("code_id")), (True, wanted.id) if wanted else (None, None), (path, query))
        sent = ("modules", json.dumps([{"type": "elf", "code_file": "/usr/a/shop", "code_id": made[1].id}]))  # comes before guesses
        equal("guess" in named(s, line % "/usr/a/shop", sent, Accept="application/json")["modules"][0], False)
