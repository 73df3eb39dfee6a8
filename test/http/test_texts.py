"""Texts that programs and tools wrote: the command and POST /symbolicate-text give the same (test/page asks the page too)."""
import io, json, os, re, shutil, subprocess, zipfile

import harness, texts
from harness import Service, equal, multipart
from test_scan import idle, scan
from test_text import text as named


def of_command(work, text, *words):
    """What `symloom symbolicate` writes, with the files of the text in a directory."""
    places = os.path.join(work, text.name.replace("/", "-") + ".files")
    os.makedirs(places, exist_ok=True)
    for name, data in text.files.items():
        with open(os.path.join(places, name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
    given = places[:-len(".files")] + ".in"
    with open(given, "w", newline="", errors="surrogateescape") as f:
        f.write(text.text)
    mapping = [word for name in text.mappings for word in ("--mapping", os.path.join(places, name))]
    told = subprocess.run([harness.SYMLOOM, "symbolicate", given, "--symbols", places, *mapping, *words], capture_output=True)
    equal(told.returncode, 0, told.stderr)
    return told.stdout.decode("utf-8", "surrogateescape")


def frames_of(answer):
    """The stacks of a JSON answer, and what each frame is called."""
    traces = [answer[kind]["stacktraces"] for kind in ("js", "jvm") if kind in answer] + [answer["stacktraces"]]
    return answer["stacks"], [[[(f.get("function"), f.get("module"), f.get("lineno")) for f in trace["frames"]] for trace in kind] for kind in traces]


def test_texts_are_the_same_by_command_and_api(work, objects):
    with Service(work) as s:
        for text in texts.build(work):
            told = of_command(work, text)
            equal([name for name in text.names if name not in told], [], (text.name, told))
            files = [("artifact", data, name) for name, data in text.files.items()]
            equal(named(s, text.text, *files), told, text.name)
            equal(named(s, text.text, *files, Accept="application/json")["text"], told, text.name)


def test_texts_of_cases_are_the_same_by_command_and_api(work, objects):
    with Service(work) as s:
        for text in texts.of_cases():
            told = of_command(work, text, "--type", "text", "--format", "text")
            files = [("artifact", data, name) for name, data in text.files.items()]
            given = text.text.encode("utf-8", "surrogateescape")
            equal(named(s, given, *files), told, text.name)
            told = json.loads(of_command(work, text, "--type", "text", "--format", "json"))
            answer = named(s, given, *files, Accept="application/json")
            equal(frames_of(answer), frames_of(told), text.name)


def test_scopes_of_source_maps_shape_stacks(work, objects):
    """Inlined functions have lines of their own, hidden ones none if their caller follows, and a call without position hides the caller."""
    files = [("artifact", data, name) for name, data in texts.SCOPED_SCRIPTS.items()]
    with Service(work) as s:
        equal(named(s, texts.SCOPED, *files), texts.SCOPED_NAMED)
        answer = named(s, texts.SCOPED, *files, Accept="application/json")
        equal(answer["text"], texts.SCOPED_NAMED)
        frames = [(f["index"], f["function"], f["lineno"], f["colno"]) for t in answer["js"]["stacktraces"] for f in t["frames"]]
        equal(frames, [(0, "validate", 3, 7), (0, "handleClick", 7, 5), (1, "handleClick", 7, 31), (3, "handleClick", 7, 5), (4, "validate", 3, 9),
                       (5, "handleClick", 7, 5), (6, "validate", 3, 7), (6, "handleClick", 7, 5), (7, "handleClick", 7, 5)])
        equal([(stack["format"], stack["frames"]) for stack in answer["stacks"]], [("js", 8)])


def test_bytecode_is_mapped_by_the_source_map_beside_it(work, objects):
    """Bytecode of Hermes is no text, and names no source map."""
    code = b"\xC6\x1F\xBC\x03\xC1\x03\x19\x1F\0\xff"
    files = [("artifact", code, "index.hbc"), ("artifact", texts.MAP, "index.hbc.map")]
    with Service(work) as s:
        told = named(s, "    at r (address at index.hbc:1:39)\n", *files)
        equal(("app.js:" in told, "index.hbc" in told), (True, False), told)


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


def test_files_of_the_request_count_with_scanned_ones(work, objects):
    """Their name alone does not make them right: another file of the name, whose path fits as well or better, is a second answer."""
    made = []
    for place in ("scanned", "sent"):
        made.append(texts.Program(work, "shop", (".c", texts.SOURCE + f"int in_{place};\n"), ["gcc", "-g", "-O1", "-Wl,--build-id=sha1"]))
        with open(os.path.join(work, "shop"), "rb") as f:
            made[-1].file = f.read()
        if place == "scanned":
            os.makedirs(os.path.join(work, "builds/usr/a"))
            shutil.copy(os.path.join(work, "shop"), os.path.join(work, "builds/usr/a"))
    scanned, sent = made
    with Service(work, scan(os.path.join(work, "builds"))) as s:
        idle(s)

        def guessed(path, program, name, query=""):
            line = f"#0 0x1  ({path}+0x{program.symbols['use']:x})\n"
            module, = named(s, line, ("artifact", program.file, name), query=query, Accept="application/json")["modules"]
            return module.get("code_id") if module.get("guess") else None

        equal(guessed("shop", sent, "shop"), None, "two files of one name")
        equal(guessed("shop", scanned, "shop"), scanned.id, "the same file twice")
        equal(guessed("/usr/a/shop", sent, "shop"), scanned.id, "the path of the scanned file fits better")
        equal(guessed("shop", sent, "shop", "?guess=newest"), sent.id, "it came last")
        equal(guessed("other", sent, "other"), sent.id)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("b/shop", sent.file)
        sent.file = packed.getvalue()
        equal(guessed("/usr/b/shop", sent, "files.zip"), sent.id, "the path of the sent one fits better")


ORDER = """namespace ns {
__attribute__((noinline)) int order(int n) { return n * 3; }
__attribute__((noinline)) int twice(int n) { return n * 2; }
__attribute__((noinline)) int twice(char n) { return n * 2; }
}
extern "C" __attribute__((noinline)) int plain(int n) { return n + 7; }
int more(int);
static __attribute__((noinline)) int helper(int n) { return n - 1; }
int main(int count, char **) { return ns::order(count) + ns::twice(count) + ns::twice('a') + plain(count) + more(count) + helper(count); }
"""
MORE = "static __attribute__((noinline)) int helper(int n) { return n - 2; }\nint more(int n) { return helper(n) + 1; }\n"


def test_symbols_with_offsets_are_found_by_name(work, objects):
    """A name at several addresses is not guessed at."""
    with open(os.path.join(work, "more.cc"), "w") as f:
        f.write(MORE)
    app = texts.Program(work, "app", (".cc", ORDER), ["g++", "-g", "-O1", "-fno-ipa-icf", "-Wl,--build-id=sha1", "more.cc"])
    files = [("artifact", data, name) for name, data in app.files.items()]
    with Service(work) as s:
        for symbol, wanted in (("plain", "plain"), ("ns::order", "ns::order(int)"), ("_ZN2ns5orderEi", "ns::order(int)"), ("ns::twice", None), ("twice", None),
                               ("_ZN2ns5twiceEc", "ns::twice(char)"), ("helper", None), ("_ZL6helperi", None), ("order", None), ("nothing", None), ("ns::", None)):
            for given in (f"00 00d1 7ff9     app!{symbol}+0x2\n", f"/x/app({symbol}+0x2)[0x7f0000001182]\n", f"/x/app({symbol}+0x2) [0x7f0000001182]\n"):
                answer = named(s, given, *files, Accept="application/json")
                frame, = answer["stacktraces"][0]["frames"]
                found = (frame["status"], frame.get("function"), answer["text"] != given)
                equal(found, ("symbolicated", wanted, True) if wanted else ("missing_symbol", frame.get("function"), False), given)
        equal(named(s, "app!ns::order+0x2\n", *files), f"app!ns::order(int)+0x2 [{app.path}.cc @ 2]\n")
        equal(named(s, "app!ns::order+0x2\n"), "app!ns::order+0x2\n")


LAST = """__attribute__((noreturn, noinline)) void die(void) { for (;;) __asm__ volatile(""); }
__attribute__((noinline)) void last(void) { die(); }
__attribute__((noinline)) int next(int n) { return n + 1; }
int main(int count, char **words) { if (count > 1) last(); return next(count); }
"""


def test_callers_are_looked_up_before_the_addresses_they_return_to(work, objects):
    """The call of a function that does not return may be the last instruction of its function."""
    app = texts.Program(work, "app", (".c", LAST), ["gcc", "-g", "-O1", "-falign-functions=1", "-Wl,--build-id=sha1"])
    files = [("artifact", data, name) for name, data in app.files.items()]
    base, first, at = 0x555555554000, app.symbols["die"], app.symbols["next"]
    maps = f"{base:x}-{base + 0x10000:x} r-xp 00000000 fe:00 1   {app.path}\n"
    forms = (lambda n, a: f"#{n}  0x{base + a:016x} n/a (app + 0x{a:x})\n", lambda n, a: f"C  [app+0x{a:x}]\n", lambda n, a: f"app!<BaseAddress>+0x{a:x}\n",
             lambda n, a: f"#{n}  0x{base + a:016x} in ?? ()\n", lambda n, a: f"#{n}  0x{base + a:016x}\n", lambda n, a: f"   {n}:     0x{base + a:x} - <unknown>\n",
             lambda n, a: f"{n}   app    0x{base + a:016x} 0x{base:x} + {a}\n", lambda n, a: f"app(+0x{a:x})[0x{base + a:x}]\n", lambda n, a: f"app + 0x{a:x}\n")
    with Service(work) as s:
        for form in forms:
            given = form(0, first + 1) + form(1, at) + maps
            answer = named(s, given, *files, Accept="application/json")
            equal([f.get("function") for f in answer["stacktraces"][0]["frames"]], ["die", "last"], given)
        equal(named(s, "C  [app+0x1]\n" + f"C  [app+0x{at:x}]\n", *files).splitlines()[1].split("  (")[0], f"C  [app+0x{at:x}]  last+0x{at - app.symbols['last']:x}")


def test_reports_of_apple_are_written_as_texts(work, objects):
    report = texts.Text("apple", texts.APPLE, ["-[Shop stop] + 5 (/src/Shop.m:7)"], texts.APPLE_SYMBOLS)
    with Service(work) as s:
        told = named(s, report.text, *[("artifact", data, name) for name, data in report.files.items()])
        equal(told, report.text.replace("0x108000000 + 5\n", report.names[0] + "\n"))
    equal(of_command(work, report, "-f", "text"), told)


def reports(text):
    """The JSON documents in a text of reports."""
    return [json.loads(part[part.index("}\n") + 2:]) for part in re.split(r"(?m)^(?:upload of two reports|next|done)\n", text) if part]


def test_json_reports_of_apple_are_written_with_names(work, objects):
    """In the middle of a text; all else stays byte for byte."""
    with Service(work) as s:
        file = [("artifact", data, name) for name, data in texts.APPLE_SYMBOLS.items()]
        told = named(s, texts.IPS, *file)
        names = {"symbol": "-[Shop stop]", "sourceFile": "/src/Shop.m", "sourceLine": 7}
        for report in reports(told):
            equal(report["threads"][0]["frames"],
                  [{"imageOffset": 5, "imageIndex": 1, **names, "symbolLocation": 5},
                   {"imageOffset": 596, "imageIndex": 0, "symbol": "read", "symbolLocation": 8},
                   {"imageOffset": 22, "imageIndex": 1, **names, "symbolLocation": 22}])
            equal(report["threads"][1]["frames"], [{"imageOffset": 22, "imageIndex": 1, **names, "symbolLocation": 22}])
        equal(len(reports(told)), 2)
        equal(re.sub(r',"symbol":"-\[Shop stop\]","symbolLocation":\d+,"sourceFile":"/src/Shop.m","sourceLine":7', "", told), texts.IPS)
        answer = named(s, texts.IPS, *file, Accept="application/json")
        equal([[f.get("function") for f in t["frames"]] for t in answer["stacktraces"]], 2 * [["-[Shop stop]", "read", "-[Shop stop]"], ["-[Shop stop]"]])
        equal((answer["formats"], answer["text"]), (["apple"], told))
        equal(named(s, texts.IPS), texts.IPS, "without symbols")
        cut = texts.IPS[:texts.IPS.index('"usedImages"')]
        equal(named(s, cut, *file), cut, "a truncated report names no images")


def test_json_reports_are_waited_for_in_a_pipe(work, objects):
    """A part of a log ends in front of a report whose images have not come yet; lines in front of it are answered at once."""
    places = os.path.join(work, "symbols")
    os.mkdir(places)
    for name, data in texts.APPLE_SYMBOLS.items():
        with open(os.path.join(places, name), "w") as f:
            f.write(data)
    process = subprocess.Popen([harness.SYMLOOM, "symbolicate", "-", "--symbols", places, "-q"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    begin = texts.IPS.index('"usedImages"')
    process.stdin.write("#0 0x1  (a+0x1)\n" + texts.IPS[:begin])
    process.stdin.flush()
    equal([process.stdout.readline() for _ in range(2)], ["#0 0x1  (a+0x1)\n", "upload of two reports\n"])
    process.stdin.write(texts.IPS[begin:])
    process.stdin.close()
    told = "upload of two reports\n" + process.stdout.read()
    equal((process.wait(), [len(r["threads"][0]["frames"][0]) for r in reports(told)]), (0, [6, 6]))

    # a log is read in parts of 4 MiB: a part ends in front of the report
    filler = 41943 * (99 * "x" + "\n")
    told = subprocess.run([harness.SYMLOOM, "symbolicate", "-", "--symbols", places, "-q"], input=filler + texts.IPS, capture_output=True, text=True)
    equal((told.returncode, told.stdout[:len(filler)] == filler, told.stdout.count("-[Shop stop]")), (0, True, 6))


def test_several_json_reports_in_one_file_are_a_text(work, objects):
    """None is left out; a single one is a crash file with a structured answer."""
    one, both = texts.ips(True), texts.ips(False) + texts.ips(True)
    told = of_command(work, texts.Text("text", both, [], texts.APPLE_SYMBOLS), "-q")
    equal((told.startswith(both.split("\n")[0]), told.count("-[Shop stop]")), (True, 6))
    for text, stacks in ((both, 4), (one, 2)):
        told = of_command(work, texts.Text(f"{stacks}", text, [], texts.APPLE_SYMBOLS), "-q", "-f", "json")
        equal([f["function"] for t in json.loads(told)["stacktraces"] for f in t["frames"]], stacks // 2 * ["-[Shop stop]", "read", "-[Shop stop]", "-[Shop stop]"])
