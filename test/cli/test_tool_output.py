"""Under the names of GNU's and LLVM's tools answers are theirs, byte for byte: of addresses spread over all code of programs of
several languages and compilers.

GNU's answers are given but for two kinds that are wrong by what the file says (binutils 2.40). Of these ours must be LLVM's, which
reads the same file, and everything else of the answer GNU's:

  name   an inlined call without a linkage name is called by the symbol of the function around it when it is asked for the first time
  place  rows of version 5 in front of the first DW_LNS_set_file are said to be of file 0, where DWARF 5 (6.2.2) has file 1"""
import os, re, subprocess
import harness
from harness import DEADLINE, equal, linked

SOURCE = r"""
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace shapes {
template <class T> struct Box {
    T side;
    T area() const { return side * side; }
    template <class F> auto each(F f) const { return f(side); }
};
template <unsigned long N, class T> T power(T value) { T out = 1; for (unsigned long i = 0; i < N; i++) out *= value; return out; }
}
static std::map<std::string, std::vector<shapes::Box<int>>> boxes;
template <class T> T sum(const std::vector<T> &values) { T all{}; for (const auto &v : values) all += v; return all; }
int count(const std::string &name)
{
    struct Local { int more(int n) { return n + 1; } } local;
    auto inner = [&](int n) { return local.more(n) + int(boxes[name].size()); };
    boxes[name].push_back({inner(2)});
    return inner(3);
}
int main(int argc, char **argv)
{
    std::vector<int> values(argc + 3, 2);
    std::sort(values.begin(), values.end(), [](int a, int b) { return a > b; });
    shapes::Box<double> box{2.0};
    return sum(values) + count(argv[0]) + int(box.each([&](double d) { return d + argc; })) + shapes::power<3ul>(argc);
}
"""
GO = r"""
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

type byLength []string

func (b byLength) Len() int           { return len(b) }
func (b byLength) Less(i, j int) bool { return len(b[i]) < len(b[j]) }
func (b byLength) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }

func main() {
	counts := map[string]int{}
	for _, a := range os.Args {
		for _, w := range strings.Fields(a) {
			counts[w]++
		}
	}
	var keys []string
	for k := range counts {
		keys = append(keys, k)
	}
	sort.Sort(byLength(keys))
	numbers := make(chan int)
	go func() {
		for _, k := range keys {
			numbers <- counts[k]
		}
		close(numbers)
	}()
	for n := range numbers {
		fmt.Println(n)
	}
}
"""
RUST = r"""
use std::collections::HashMap;
fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for w in words.iter().flat_map(|a| a.split_whitespace()) {
        *counts.entry(w).or_insert(0) += 1;
    }
    let mut sorted: Vec<_> = counts.into_iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1));
    for (w, n) in sorted.iter().map(|x| (x.0.to_uppercase(), x.1 * 2)) {
        println!("{w}: {n}");
    }
}
"""
MOST = 2000
PROGRAMS = ["c++-O0", "c++-O2", "go", "rust"]


def addresses(path):
    """Spread evenly over the section .text."""
    headers = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    begin, size = (int(n, 16) for n in re.search(r" \.text +PROGBITS +(\w+) \w+ (\w+)", headers).groups())
    return sorted({begin + i * size // MOST for i in range(MOST)})


def build(work, name):
    """The program; its sources are found by a path with `..` in it."""
    folder = os.path.join(work, "src/build")
    os.makedirs(folder, exist_ok=True)
    commands = {"c++-O0": "g++ -g -gdwarf-4 -O0 -o OUT ../a.cc", "c++-O2": "g++ -g -gdwarf-5 -O2 -o OUT ../a.cc",
                "go": "go build -o OUT ../a.go", "rust": "rustc -g -C opt-level=2 -o OUT ../a.rs"}
    for extension, text in (("cc", SOURCE), ("go", GO), ("rs", RUST)):
        with open(os.path.join(work, "src", "a." + extension), "w") as f:
            f.write(text)
    path = os.path.join(work, name)
    environment = os.environ | {"HOME": work, "GO111MODULE": "off", "CGO_ENABLED": "0"} if name == "go" else None
    subprocess.run(commands[name].replace("OUT", path).split(), cwd=folder, check=True, env=environment)
    return path


def ask(program, path, options, text):
    return subprocess.run([program, "-a", "-e", os.path.basename(path), *options], cwd=os.path.dirname(path), input=text, capture_output=True, text=True,
                          timeout=DEADLINE, check=True).stdout


def answers(text):
    """By address: its lines."""
    blocks = re.split(r"^(0x[0-9a-f]+)(?:\n|: )", text, flags=re.M)
    return [(int(a, 16), b.splitlines()) for a, b in zip(blocks[1::2], blocks[2::2])]


def symbols(path, *table):
    """Where the code of each name is."""
    found = {}
    for line in subprocess.run(["nm", "-S", "--defined-only", *table, path], capture_output=True, text=True, check=True).stdout.splitlines():
        if len(line.split()) == 4:
            begin, size, _, name = line.split()
            found.setdefault(name, []).append(range(int(begin, 16), int(begin, 16) + int(size, 16)))
    return found


def explained(at, theirs, ours, llvm, names):
    """The causes of differences between answers of -fi; an assertion where there is another one."""
    causes = []
    equal(len(theirs), len(ours))
    for i, (a, b) in enumerate(zip(theirs, ours)):
        if a == b:
            continue
        by_llvm = llvm[i].rsplit(":", 1)[0] if i % 2 else llvm[i]
        equal(re.sub(r" \(discriminator \d+\)$", "", b), by_llvm, (theirs, ours, llvm))
        if i % 2:
            equal(a.rsplit(":", 1)[1], b.rsplit(":", 1)[1], (theirs, ours, llvm))
            equal(bool(re.search(r"\.(c|cc|cpp):", a)), True, a)
        else:
            equal(i < len(ours) - 2 and any(at in code for code in names[a]), True, (theirs, ours, llvm))
        causes.append("place" if i % 2 else "name")
    return causes


def compare_with_gnu(tool, path, wanted):
    text = "".join(f"{a:#x}\n" for a in wanted)
    by_llvm = answers(ask("llvm-symbolizer-19", path, ["--no-demangle"], text))
    causes, names = {}, symbols(path)  # causes: by address
    theirs, ours = (answers(ask(t, path, ["-fi"], text)) for t in ("addr2line", tool))
    equal(len(ours), len(wanted))
    for (at, a), (_, b), (_, c) in zip(theirs, ours, by_llvm):
        if a != b:
            causes |= {at: explained(at, a, b, c, names)}
    for options in (["-fiCp"], ["-fs"], ["-p"]):
        theirs, ours = (answers(ask(t, path, options, text)) for t in ("addr2line", tool))
        equal([(hex(at), a, b) for (at, a), (_, b) in zip(theirs, ours) if a != b and at not in causes][:3], [], options)
        equal(len(ours), len(wanted))
    return [cause for kinds in causes.values() for cause in kinds]


def test_addr2line_output_equals_gnu(work, files):
    tool = linked(work, "addr2line")
    found = {name: compare_with_gnu(tool, path, addresses(path)) for name, path in [(n, build(work, n)) for n in PROGRAMS] + [("symloom", harness.SYMLOOM)]}
    for name, causes in found.items():
        print(name, *(f"{causes.count(kind)} of GNU's {kind}s are wrong" for kind in ("name", "place")), sep="; ")
        equal(set(causes) <= {"c++-O0": set(), "go": {"name"}, "rust": set()}.get(name, {"name", "place"}), True, (name, set(causes)))


def test_stripped_program_names_end_at_padding(work, files):
    """GNU's tool takes the dynamic symbol before an address for its name, whatever its size; ours only up to the padding behind it."""
    path = os.path.join(work, "stripped")
    subprocess.run(["strip", "-o", path, build(work, "c++-O2")], check=True)
    text, code = "".join(f"{a:#x}\n" for a in addresses(path)), symbols(path, "-D")
    equal(*(ask(t, path, [], text) for t in ("llvm-symbolizer-19", linked(work, "llvm-symbolizer"))))
    theirs, ours = (answers(ask(t, path, ["-f"], text)) for t in ("addr2line", linked(work, "addr2line")))
    for (at, a), (_, b) in zip(theirs, ours):
        equal(a == b or (b == ["??", "??:0"] and all(at >= part.stop + 64 for part in code[a[0]])), True, (hex(at), a, b))
    equal(len(theirs), len(ours))


def test_mangled_names_in_c_are_demangled_as_llvm(work, files):
    """LLVM's tools go by the name, whatever the language of the unit."""
    with open(os.path.join(work, "a.c"), "w") as f:
        f.write('int read_to_end(int) __asm__("_ZN3std2io4Read11read_to_end17hb85a0f6802e14499E");\nint sink;\n'
                "inline __attribute__((always_inline)) int read_to_end(int a) { for (int i = 0; i < a; i++) sink += i ^ a; return sink; }\n"
                "int main(int argc, char **argv) { (void)argv; return read_to_end(argc); }\n")
    files.run(f"cd {work} && gcc -g -O2 -o program a.c")
    path = os.path.join(work, "program")
    text = "".join(f"{a:#x}\n" for a in addresses(path))
    told = [ask(t, path, [], text) for t in ("llvm-symbolizer-19", linked(work, "llvm-symbolizer"))]
    equal(told[0] == told[1] and "std::io::Read::read_to_end::hb85a0f6802e14499" in told[1], True, told[1][:500])


def test_object_file_output_equals_gnu_and_llvm(work, files):
    """Of one section with code; GNU's also by the name of a section."""
    with open(os.path.join(work, "a.c"), "w") as f:
        f.write("int sink;\nstatic int twice(int n) { return n * 2; }\nint first(int n)\n{\n    for (int i = 0; i < n; i++)\n        sink += i % 3 ? twice(i) : i;\n"
                "    return sink;\n}\n__attribute__((section(\".text.other\"))) int other(int n) { return n ? first(n) : twice(n); }\n")
    files.run(f"cd {work} && gcc -g -O2 -c -o one.o -Dother=second '-D__attribute__(x)=' a.c && gcc -g -O2 -c -o two.o a.c")
    text = "".join(f"{a:#x}\n" for a in range(64))
    for tool, theirs, name, options in (("addr2line", "addr2line", "one.o", ["-fi"]), ("addr2line", "addr2line", "two.o", ["-fi", "-j", ".text.other"]),
                                        ("llvm-symbolizer", "llvm-symbolizer-19", "one.o", ["--output-style=JSON"])):
        ours = os.path.join(work, tool)
        if not os.path.lexists(ours):
            linked(work, tool)
        answers = [ask(t, os.path.join(work, name), options, text) for t in (theirs, ours)]
        equal(answers[0] == answers[1], True, (name, options))
        equal("first" in answers[0] or "other" in answers[0], True)


def agreed(path, tool):
    """The addresses, without those of units that do not say where their code is, as of files whose only code is what sanitizers add:
    LLVM's tool does not find these, and ours has the lines that GNU's has."""
    kept, text = [], "".join(f"{a:#x}\n" for a in addresses(path))
    for (at, a), (_, b) in zip(*(answers(ask(t, path, [], text)) for t in ("llvm-symbolizer-19", tool))):
        if a != b:
            gnu = subprocess.run(["addr2line", "-e", path, hex(at)], capture_output=True, text=True, check=True).stdout.strip()
            equal(bool(re.fullmatch(r"[^/]+:0:0", a[1])) and len(a) == len(b) and a[0] == b[0] and b[1].rsplit(":", 1)[0] == gnu, True, (hex(at), a, b, gnu))
        else:
            kept.append(at)
    equal(len(kept) >= MOST - 10, True)
    return kept


def test_symbolizer_output_equals_llvm(work, files):
    tools = {name: linked(work, name) for name in ("llvm-symbolizer", "llvm-addr2line")}
    asked = [("llvm-symbolizer", options.split()) for options in ("--output-style=JSON", "--output-style=GNU -s -p", "--verbose --no-inlines", "-f=short --no-demangle")]
    for path in [build(work, name) for name in PROGRAMS] + [harness.SYMLOOM]:
        text = "".join(f"{a:#x}\n" for a in agreed(path, tools["llvm-symbolizer"])[::5])
        for tool, options in asked + [("llvm-addr2line", ["-f"]), ("llvm-addr2line", ["-fiC"])]:
            theirs, ours = (ask(t, path, options, text).splitlines() for t in (tool + "-19", tools[tool]))
            equal([(a, b) for a, b in zip(theirs, ours) if a != b][:3], [], (path, tool, options))
            equal(len(ours), len(theirs), (path, tool, options))


def test_short_go_names_keep_parentheses(work, files):
    """Their parentheses are no parameters."""
    path = build(work, "go")
    at = re.search(r"^(\w+) T main\.\(\*byLength\)\.Swap$", subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout, re.M)[1]
    equal(harness.ok("lookup", "-e", path, "--output-style", "gnu", "--functions=short", "--no-inlines", "0x" + at).splitlines()[0], "main.(*byLength).Swap")
