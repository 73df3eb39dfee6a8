"""Under the names of GNU's and LLVM's tools answers are theirs, byte for byte: paths as they are written, and names in their styles."""
import os, re, subprocess
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
MOST = 2000


def addresses(path):
    """Of the functions that the source has or makes, at most so many, spread evenly."""
    found = []
    for line in subprocess.run(["nm", "-S", "--defined-only", path], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "TWt" and re.match(r"main$|_Z", words[3]) and ".cold" not in words[3]:
            found += range(int(words[0], 16), int(words[0], 16) + int(words[1], 16))
    found = sorted(set(found))
    return [found[i * len(found) // MOST] for i in range(MOST)] if len(found) > MOST else found


def test_as_the_tools_of_gnu_and_llvm(work, files):
    """Discriminators of lines, which GNU's tool adds, are not known here."""
    os.makedirs(os.path.join(work, "src/build"))
    with open(os.path.join(work, "src/a.cc"), "w") as f:
        f.write(SOURCE)
    ours = {name: linked(work, name) for name in ("addr2line", "llvm-symbolizer")}
    for name, flags in (("four", "-O0 -gdwarf-4"), ("five", "-O1 -gdwarf-5 -fno-reorder-blocks-and-partition -fno-ipa-icf")):
        path = os.path.join(work, name)
        subprocess.run(["g++", *flags.split(), "-g", "-o", path, "../a.cc"], cwd=os.path.join(work, "src/build"), check=True)
        wanted = addresses(path)
        equal(len(wanted) >= 1000, True)
        text = "".join(f"{a:#x}\n" for a in wanted)
        for tool, theirs, options in (("addr2line", "addr2line", ["-f", "-i"]), ("addr2line", "addr2line", ["-f", "-i", "-C", "-p"]), ("addr2line", "addr2line", ["-s"]),
                                      ("llvm-symbolizer", "llvm-symbolizer-19", []),
                                      ("llvm-symbolizer", "llvm-symbolizer-19", ["--output-style=GNU", "-s"])):
            if tool == "addr2line" and "-O1" in flags:  # GNU's 2.40 gives some inlined lines to the file that they are inlined into
                continue
            answers = [subprocess.run([program, "-a", "-e", path, *options], input=text, capture_output=True, text=True, timeout=DEADLINE, check=True).stdout
                       for program in (theirs, ours[tool])]
            answers[0] = re.sub(r" \(discriminator \d+\)$", "", answers[0], flags=re.M)
            rows = list(zip(*(answer.splitlines() for answer in answers)))
            equal([row for row in rows if row[0] != row[1]][:3], [], (name, tool, options))
            equal(answers[0] == answers[1], True, (name, tool, options))
            equal("-s" in options or "/src/build/../a.cc:" in answers[1], True)
