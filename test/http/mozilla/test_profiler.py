"""What the Firefox Profiler shows of a function: its machine code and its source, as symloom answers both."""
import bisect, json, os, re, subprocess

from harness import Service, Upstream, equal, http_source

NAME = "code"
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <time.h>
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv)
{
    double sum = 0;
    int numbers[64];
    for (int i = 0; i < 64; i++) {
        numbers[i] = atoi(argv[i % argc]);
        sum += sin(numbers[i]) * pow(numbers[i], 1.5);
    }
    qsort(numbers, 64, sizeof *numbers, order);
    printf("%f %d %s", sum, numbers[0], ctime(&(time_t){numbers[1]}));
    return strlen(argv[0]);
}
"""


def run(*command, **keys):
    return subprocess.run(command, check=True, capture_output=True, text=True, **keys).stdout


def built(work, compiler, *flags, link="-static-pie"):
    """(path, build id, functions: address and size) of a static program, whose addresses begin at 0."""
    source, path = os.path.join(work, "code.c"), os.path.join(work, f"{NAME}-{compiler}")
    with open(source, "w") as f:
        f.write(PROGRAM)
    run(compiler, "-O2", "-g", link, "-Wl,--build-id", *flags, "-o", path, source, "-lm")
    build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path)).group(1)
    functions = {}
    for line in run("llvm-nm-19", "-S", path).splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in ("tTwW" if compiler.startswith("arm") else "tTwWi") and int(parts[1], 16):
            start = int(parts[0], 16) & ~compiler.startswith("arm")  # bit 0 tells Thumb
            functions[start] = max(int(parts[1], 16), functions.get(start, 0))
    return path, build_id, sorted(functions.items())


def serving(work, path, build_id, **mozilla):
    with open(path, "rb") as f:
        upstream = Upstream({f"/{build_id}/executable": f.read()})
    config = {"sources": [http_source(upstream.url)], "mozilla": {"compat": "profiler", "sources": [], **mozilla}}
    return upstream, Service(work, config)


def asm(s, build_id, start, size, **more):
    body = {"name": NAME, "codeId": build_id, "debugName": NAME, "debugId": None, "startAddress": hex(start), "size": hex(size), **more}
    status, got, text = s.request("POST", "/asm/v1", json.dumps(body), {"Origin": "http://x.com"})
    equal((status, got["Access-Control-Allow-Origin"]), (200, "*"), text)
    return json.loads(text)


PREFIXES = {"rep", "repz", "repnz", "repe", "repne", "lock", "bnd", "notrack", "data16", "rex64",
            "xacquire", "xrelease", "addr32"}


def objdump(path, functions=None):
    """Text of each instruction and each piece of data by its address, of these functions if there are some; None of what is
    neither."""
    lines, at_prefix = {}, -1
    starts = functions and [start for start, _ in functions]
    process = subprocess.Popen(["llvm-objdump-19", "-d", "--no-show-raw-insn", "--x86-asm-syntax=intel", path],
                               stdout=subprocess.PIPE, text=True, errors="replace")
    for line in process.stdout:
        found = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
        if not found:
            continue
        at = int(found[1], 16)
        if functions:
            before = bisect.bisect_right(starts, at) - 1
            if before < 0 or at >= starts[before] + functions[before][1]:
                continue
        text = re.sub(r"\s+", " ", re.sub(r"^([0-9a-f]{2}\s)+\s*(?=\.)", "", found[2].strip()))
        if at - 1 == at_prefix:  # in a line of its own
            at, text = at - 1, f"{lines[at - 1]} {text}"
        at_prefix = at if text in PREFIXES else -1
        lines[at] = None if text.startswith(("<unknown>", ".inst", ".long", ".xword")) else text
    equal(process.wait(), 0, path)
    return lines


def functions_of(functions, lines, most):
    """Evenly chosen ones that objdump can read."""
    step = max(1, len(functions) // most)
    for start, size in functions[::step]:
        if start in lines and all(lines.get(at) for at in range(start, start + size) if at in lines):
            yield start, size


SAME = {"movabs": "mov", "fucompi": "fucomip", "fcompi": "fcomip", "jz": "je", "jnz": "jne", "jnbe": "ja", "jnb": "jae", "jbe": "jbe", "jb": "jb", "jnl": "jge", "jnle": "jg", "jl": "jl", "jle": "jle",
        "setz": "sete", "setnz": "setne", "setnbe": "seta", "setnb": "setae", "setnl": "setge", "setnle": "setg", "cmovz": "cmove",
        "cmovnz": "cmovne", "cmovnbe": "cmova", "cmovnb": "cmovae", "cmovnl": "cmovge", "cmovnle": "cmovg", "retn": "ret", "int3": "int3",
        "ud2a": "ud2", "movsd": "movsd", "sal": "shl", "xchg": "xchg", "fwait": "wait"}


def mnemonic(text):
    words = [w for w in text.split(" ") if w not in PREFIXES]
    word = words[0] if words else text
    return SAME.get(word, word)


def x86(ours, theirs):
    """The same instruction: comparisons may have their condition as a name or as a number."""
    plain = re.sub(r"^(v?p?cmp)(eq|n?lt|n?le|neq|n?gt|n?ge|unord|ord|false|true)(_\w\w)?(u?[bwdq]|[ps][sd])$", r"\1\4", mnemonic(theirs))
    return mnemonic(ours) in (mnemonic(theirs), plain)


def bare(text):
    """Without names of targets, comments, and the width of constants."""
    text = re.sub(r" (<.*|//.*|@ .*)$", "", text)
    return re.sub(r"\s+", " ", text).strip()


def same_text(ours, theirs):
    return bare(ours) == bare(theirs)


def compare(s, build_id, functions, lines, same, base=0):
    """Every instruction of the functions is the same here and there: how many there were, and what was not."""
    count, others = 0, []
    for start, size in functions:
        answer = asm(s, build_id, start - base, size)
        ours = {start + offset: text for offset, text in answer["instructions"]}
        theirs = {at: lines[at] for at in range(start, start + size) if at in lines}
        equal(int(answer["size"], 16) >= size, True)
        count += len(theirs)
        others += [(hex(at), ours.get(at), theirs.get(at)) for at in sorted(ours.keys() | theirs.keys())
                   if ours.get(at) is None or theirs.get(at) is None or not same(ours[at], theirs[at])]
    return count, others


def base_of(path):
    """The address that offsets count from."""
    return min(int(line.split()[2], 16) for line in run("readelf", "-lW", path).splitlines() if line.startswith("  LOAD"))


def test_disassembly_equals_objdump(work, objects):
    """Of ARM in both of its forms, with the data between: the program's code is ARM, that of the C library Thumb and a bit of ARM."""
    most = 40
    for compiler, arch, same, flags, link in (("gcc", "x86_64", x86, (), "-static-pie"),
                                              ("aarch64-linux-gnu-gcc", "aarch64", same_text, (), "-static-pie"),
                                              ("arm-linux-gnueabihf-gcc", "arm", same_text, ("-marm", "-Wl,-Ttext-segment=0"), "-static")):
        path, build_id, functions = built(work, compiler, *flags, link=link)
        lines = objdump(path)
        upstream, service = serving(work, path, build_id)
        if arch == "arm":
            names = {n: int(a, 16) & ~1 for a, _, n in (line.split(" ") for line in run("llvm-nm-19", path).splitlines() if line[0] != " ")}
            wanted = {names["main"], names["__sigsetjmp"]}
            functions = [f for f in functions if f[0] in wanted] + [f for f in functions if f[0] not in wanted]
            equal(sum(f[0] in wanted for f in functions), 2)
        with upstream, service as s:
            chosen = list(functions_of(functions, lines, most))
            equal(len(chosen) > min(most, len(functions)) // 2, True, (arch, len(chosen), len(functions)))
            answer = asm(s, build_id, chosen[0][0] - base_of(path), chosen[0][1])
            equal((answer["arch"], answer["syntax"], answer["startAddress"]),
                  (arch, ["Intel" if arch == "x86_64" else "ARM"], hex(chosen[0][0] - base_of(path))))
            if arch == "arm":
                chosen = list(functions_of(functions[:2], lines, 2)) + chosen
                equal(any(lines[at].startswith(".word") for a, n in chosen for at in range(a, a + n) if at in lines), True)
            count, others = compare(s, build_id, chosen, lines, same, base_of(path))
            equal(others[:20], [], f"{len(others)} of {count}, {arch}")
