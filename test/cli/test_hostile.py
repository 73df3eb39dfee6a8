"""Damaged debug files of every format: an answer or an error in good time, and a defect costs no more than its own part."""
import json, os, random, re, select, struct, subprocess
from harness import contains, equal, ok, symloom
import harness

SECONDS = 5  # of a processor, for one file
CUTS, FLIPS = 64, 150

# What messages begin with: the structure that is wrong, by format.
MESSAGES = re.compile(
    "invalid (ELF|PE|wasm|MachO) file: .* at 0x[0-9a-f]+$|invalid MachO file: (fat|objects?) |invalid pdb file: .|bad debug file: .|unsupported object file format$|missing breakpad symbol header$"
    "|parsing error: .|invalid architecture$|invalid module id$|bad utf-8 sequence$|no debug information: .* was not found|some debug information is damaged|no symbols|invalid (header|signature|length|"
    "stream (header|name)|blob (offset|data))|the file has no object for \\w+; it has: \\w")


class Asker:
    """One running lookup that is asked file by file."""

    def __init__(self):
        self.process = subprocess.Popen([harness.SYMLOOM, "lookup", "--output-style", "json", "-f", "-i"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")

    def processor_time(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, path, address):
        """The answer, parsed, and the time that it took."""
        start = self.processor_time()
        self.process.stdin.write(f"{path} {address:#x}\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], harness.DEADLINE)[0]:
            self.process.kill()
            raise AssertionError(f"no answer for {path}")
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"{path}: ended with {self.process.wait()}: {self.process.stderr.read()[-6000:]}")
        return json.loads(line), self.processor_time() - start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert self.process.wait() in (0, 1, 3), errors  # of the last file, or of any
        assert "Sanitizer" not in errors and "runtime error:" not in errors, errors[-6000:]


def flipped(data, chosen):
    """A few bytes replaced, now and then whole words, more often than not where the tables are."""
    data = bytearray(data)
    near_start = chosen.random() < 0.3
    for _ in range(chosen.choice((1, 1, 2, 4, 16, 64))):
        at = chosen.randrange(min(len(data), 4096) if near_start else len(data))
        if chosen.random() < 0.3:
            word = struct.pack("<I", chosen.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)))
            data[at:at + 4] = word[:len(data) - at]
        else:
            data[at] = chosen.choice((0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1 << chosen.randrange(8)))
    return bytes(data)


def survive(work, path, address):
    with open(path, "rb") as f:
        data = f.read()
    chosen = random.Random(path.rsplit("/", 1)[1])
    variants = [data[:len(data) * i // CUTS] for i in range(CUTS)] + [flipped(data, chosen) for _ in range(FLIPS)]
    known = 0
    with Asker() as asker:
        for number, variant in enumerate(variants):
            damaged = os.path.join(work, f"{number}.{os.path.basename(path)}")
            with open(damaged, "wb") as f:
                f.write(variant)
            answer, seconds = asker.ask(damaged, address)
            os.unlink(damaged)
            about = f"{path}, variant {number}: "
            assert seconds < SECONDS, about + f"{seconds} s"
            if "Error" in answer:
                message = answer["Error"]["Message"]
                assert MESSAGES.match(message), about + message
            known += "Symbol" in answer
    assert known > FLIPS / 10, f"only {known} variants of {path} were read at all"


def test_damaged_elf_never_crashes(work, files):
    survive(work, files.get("t"), files.address("t", "outer"))


def test_damaged_mach_o_never_crashes(work, files):
    files.get("t.fat")
    survive(work, os.path.join(files.dir, "arm64.dwarf"), 0x300)
    survive(work, files.get("t.fat"), 0x300)


def test_damaged_pe_with_dwarf_never_crashes(work, files):
    survive(work, files.get("t.32"), 0x401000)


def test_damaged_pdb_never_crashes(work, files):
    survive(work, os.path.splitext(files.get("t.exe"))[0] + ".pdb", 0x1000)


def test_damaged_wasm_never_crashes(work, files):
    survive(work, files.get("t.wasm"), 0x100)


def test_damaged_breakpad_file_never_crashes(work, files):
    path = os.path.join(work, "t.sym")
    ok("dump-syms", "-d", "-o", path, files.get("t"))
    survive(work, path, files.address("t", "outer"))


def test_truncated_files_leave_no_symcache(work, files):
    with open(files.get("t"), "rb") as f:
        data = f.read()
    cut, out = os.path.join(work, "cut"), os.path.join(work, "out")
    for part in (8, 24, 40, 63):
        with open(cut, "wb") as f:
            f.write(data[:len(data) * part // 64])
        result = symloom("lookup", "-e", cut, "--symcache-out", out, "0x1000")
        contains(result.err, "invalid ELF file: ")
        assert result.status != 0, part
        equal(sorted(os.listdir(work)), ["cut"])


def section(path, name):
    """Offset and size in the file."""
    table = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    fields = re.search(rf"\s{re.escape(name)}\s+PROGBITS\s+\w+ (\w+) (\w+)", table)
    return int(fields[1], 16), int(fields[2], 16)


def units(data, begin, size):
    """Where the units of .debug_info begin (DWARF v5 section 7.5.1)."""
    at = begin
    while at < begin + size:
        yield at
        at += 4 + struct.unpack_from("<I", data, at)[0]


def names_at(path, addresses):
    text = "".join(f"{a:#x}\n" for a in addresses)
    out = ok("lookup", "-e", path, "--output-style", "json", "-f", input=text)
    return [(lambda s: (s[-1]["FunctionName"], s[-1]["Line"]))(json.loads(line)["Symbol"]) for line in out.splitlines()]


def test_malformed_unit_leaves_other_units_readable(work, files):
    path = files.get("t")
    with open(path, "rb") as f:
        data = f.read()
    functions = ("outer", "entry2", "main")  # of a unit each
    addresses = [files.address("t", f) for f in functions]
    whole = names_at(path, addresses)
    assert all(line for _, line in whole), whole
    lost = 0
    for at in units(data, *section(path, ".debug_info")):
        for offset, value in ((4, b"\x63\0"), (8, b"\xff\xff\xff\xff"), (12, b"\x70\x70\x70")):  # version, abbreviations, root
            damaged = os.path.join(work, "damaged")
            with open(damaged, "wb") as f:
                f.write(data[:at + offset] + value + data[at + offset + len(value):])
            got = names_at(damaged, addresses)
            equal([name for name, _ in got], [name for name, _ in whole])  # the symbol table is whole
            missing = [f for f, before, after in zip(functions, whole, got) if before != after]
            assert len(missing) <= 1, missing
            lost += len(missing)
    assert lost >= len(functions), lost


def test_malformed_breakpad_lines_leave_others_readable(work, files):
    path = os.path.join(work, "x.sym")
    good = ("MODULE Linux x86_64 6216C672A8D33EC9CF4A1BAB8B29D00E0 x\nFILE 0 a.c\nINLINE_ORIGIN 0 in\nFUNC 1000 20 0 f\nINLINE 0 7 0 0 1000 8\n"
            "1000 10 1 0\n1010 10 2 0\nFUNC 2000 10 0 g\n2000 10 3 0\nPUBLIC 3000 0 p\n").splitlines(True)
    addresses = (0x1000, 0x1010, 0x2000, 0x3000)
    bad = ("FUNC xyz 10 0 h\n", "1018 zz 9 0\n", "INLINE 0 7 0 0 1000\n", "INLINE_ORIGIN 1\n", "FILE\n", "PUBLIC\n", "\x01\x02\n",
           "FUNC 99999999999999999999 1 0 q\n", "STACK CFI INIT\n", "INFO\n")
    with open(path, "w") as f:
        f.writelines(good)
    wanted = names_at(path, addresses)
    equal(wanted, [("f", 7), ("f", 2), ("g", 3), ("p", 0)])
    for line in bad:
        # lines belong to the function before them, which these records end even when they cannot be read
        for at in (len(good),) if line.startswith(("FUNC", "STACK", "PUBLIC")) else range(2, len(good) + 1):
            with open(path, "w") as f:
                f.writelines(good[:at] + [line] + good[at:])
            equal(names_at(path, addresses), wanted, f"{line!r} as line {at}")
