"""`--extract-variables`: the names and types of variables, against what llvm-dwarfdump says of the same programs."""
import json, os, subprocess
from dwarf_text import Program
from harness import contains, equal, ok, symloom

BASE = 0x10000000

PROGRAM = r"""
#ifndef SMALL
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>
#endif
namespace app {
struct point { int x, y; };
enum kind { A, B };
template <class T> struct box { T value; struct in; };
template <class T> struct box<T>::in { T value; };
}
typedef int (*callback)(const char *, int);
volatile int sink;
static inline __attribute__((always_inline)) int twice(app::point *p, const int count)
{
    int sum = p->x * count;
    for (int i = 0; i < count; i++) { long step = sum + i; sink = step; sum += step; }
    return sum;
}
extern "C" __attribute__((noinline)) int many(int a, const char *b, char *const c, app::point &d, app::point &&e,
                                              unsigned char f, callback g, void (*h)(void), double i[4], app::kind k,
                                              app::box<int>::in in)
{
    char buffer[16];
    int matrix[2][3];
    void *p = buffer;
    const volatile int cv = a;
    int (*table[3])(int, ...) = {};
    int (*row)[5] = nullptr;
    const char *const words[] = {"a", "b"};
    int app::point::*member = &app::point::x;
    struct local { static int still(int z) { int zz = z * 2; return zz; } int go(int w) { return w + 1; } } l;
    extern int elsewhere;
    matrix[1][1] = twice(&d, a);
    sink = matrix[1][1] + cv + (table[0] != 0) + (row != 0) + d.*member + l.go(3) + local::still(2) + in.value + e.x;
    { long a = 3; sink = a + words[a & 1][0]; }
    return g(b, sink) + f + (h != 0) + (int)i[0] + k + (p != 0) + *c;
}
int call(const char *text, int n) { return text[0] + n; }
int main(int argc, char **argv)
{
    app::point p{argc, 2};
    double numbers[4] = {};
#ifndef SMALL
    std::map<std::string, std::vector<int>> groups;
    std::unordered_map<std::string, std::function<int(int)>> made;
    groups[argv[0]].push_back(argc);
    std::sort(groups[argv[0]].begin(), groups[argv[0]].end());
    made[argv[0]] = [&](int more) { return p.x + more; };
#endif
    return many(argc, argv[0], argv[0], p, app::point{1, 2}, 3, call, nullptr, numbers, app::A, {});
}
"""

MANY = {"a": "long", "b": "const char*", "buffer": "char[16]", "c": "char* const", "d": "point&", "e": "point&&", "f": "unsigned char",
        "g": "callback", "h": "void(*)()", "i": "double*", "k": "kind", "in": "in", "matrix": "int[2][3]", "p": "void*",
        "cv": "const volatile int", "table": "int(*[3])(int, ...)", "row": "int(*)[5]", "words": "const char* const[2]",
        "member": "<not implemented>", "l": "local"}


def asked(path, addresses, *options):
    """The frames of these addresses, each innermost first."""
    answer = ok("symbolicate", "--module", f"{path}@{BASE:#x}", "--extract-variables", "--no-source-context", "-f", "json", *options,
                input="\n".join(hex(BASE + a) for a in addresses))
    frames = [[] for _ in addresses]
    for frame in json.loads(answer)["stacktraces"][0]["frames"]:
        frames[frame["original_index"]].append(frame)
    return frames


def built(work, name, command):
    directory = os.path.join(work, name)
    os.mkdir(directory)
    with open(os.path.join(directory, "p.cc"), "w") as f:
        f.write(PROGRAM)
    run = subprocess.run(command, shell=True, cwd=directory, capture_output=True, text=True, timeout=300)
    equal(run.returncode, 0, run.stderr)
    return os.path.join(directory, "p")


def compared(path):
    """How many functions and inlined calls there are, and variables; they must be the same."""
    program = Program(path)
    functions = program.functions()
    calls = {low: entry for entry in program.entries.values() if entry.tag == "inlined_subroutine" for low, _ in entry.ranges[:1]}
    addresses = sorted(set(functions) | set(calls))
    counted, differ = [0, 0], []
    for address, frames in zip(addresses, asked(path, addresses)):
        begin = next((int(f["sym_addr"], 16) - BASE for f in frames if "sym_addr" in f), None)
        if begin not in functions:
            continue
        chain = program.chain(functions[begin], address)
        expected = [program.variables(entry) for entry in chain]
        got = [frame.get("vars", {}) for frame in frames]
        if expected != got:
            differ.append((hex(address), expected, got))
        counted[0] += len(chain)
        counted[1] += sum(map(len, expected))
    equal(differ[:3], [], f"{len(differ)} differ in {path}")
    return counted


def of_function(path, name):
    symbols = subprocess.run(["nm", path], capture_output=True, check=True, text=True).stdout.splitlines()
    address = next(int(line.split()[0], 16) for line in symbols if line.endswith(" T " + name))
    return asked(path, [address])[0][-1]["vars"]


def test_variable_names_and_types_equal_dwarf(work, files):
    counted = [0, 0]
    for name, command in (("gcc4", "g++ -gdwarf-4 -O2 -o p p.cc"), ("clang5", "clang++ -gdwarf-5 -O0 -o p p.cc"),
                          ("gcc5", "g++ -DSMALL -gdwarf-5 -O0 -o p p.cc"), ("clang4", "clang++ -DSMALL -gdwarf-4 -O2 -o p p.cc")):
        path = built(work, name, command)
        counted = [a + b for a, b in zip(counted, compared(path))]
        names = {"long int": "long", "volatile const int": "const volatile int"}  # as gcc has them
        equal({k: names.get(v, v) for k, v in of_function(path, "many").items()}, MANY, name)
    assert counted[0] >= 1000 and counted[1] > 2000, counted


def test_variables_are_read_from_split_and_shared_dwarf(work, files):
    """What names and types are kept in another file."""
    wanted = built(work, "whole", "clang++ -gdwarf-5 -O1 -DSMALL -o p p.cc")
    wanted = of_function(wanted, "many")
    equal(set(wanted), set(MANY))
    split = built(work, "split", "clang++ -gdwarf-5 -O1 -gsplit-dwarf -DSMALL -c p.cc -o p.o && clang++ -o p p.o && llvm-dwp-19 -e p -o p.dwp && rm *.dwo")
    equal(of_function(split, "many"), wanted)
    one = built(work, "one", "g++ -g -O1 -DSMALL -o p p.cc")
    shared = built(work, "shared", "g++ -g -O1 -DSMALL -o p p.cc && dwz p")
    equal(of_function(shared, "many"), of_function(one, "many"))
