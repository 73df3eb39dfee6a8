"""A large program and a dump of it: each of its many threads is somewhere else, under frames of other units.

Some units are compiled, and the others are copies of them in which the number of the unit is another: their names are their
own, and so is all of their debug information. The processes that crash run at the same addresses, so that their stacks make
one dump of many threads."""
import concurrent.futures, os, subprocess, sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import dumps, generate

COMPILED, UNITS = 4, 340
LARGE_UNITS = 1250  # some 600 MB
FLAGS = ["-g", "-gdwarf-4", "-O2"]  # dump_syms leaves out ranges of DWARF 5
STEP = """
namespace app { int go(int depth, int seed); namespace unit%(u)d {
int deep(int depth, int seed)
{
    shape%(n)d s(seed, depth);
    s.tag(seed, [=](int k) { return std::to_string(go(depth - 1, k)); });
    return (int)s.area();
}
}}
"""
MAIN = """#include <cstdlib>
%(declarations)s
typedef int (*step)(int, int);
static const step steps[] = {%(steps)s};
static volatile int *nowhere;
namespace app {
__attribute__((noinline)) int go(int depth, int seed)
{
    int next = seed * 7 + depth;
    return depth ? steps[next %% %(count)d](depth, next) + 1 : *nowhere;
}
}
int main(int argc, char **argv) { return app::go(atoi(argv[1]), atoi(argv[2])) + argc; }
"""


def numbers_of(units):
    first = 100 if units <= 900 else 1000  # each is as long as the others
    return [first + i for i in range(units)]


def compile_unit(directory, u):
    source, out = f"{directory}/u{u}.cc", f"{directory}/u{u}.o"
    with open(source, "w") as f:
        f.write(generate.unit(u) + STEP % {"u": u, "n": u % 8 + 1})
    subprocess.run(["clang++", "-std=c++17", *FLAGS, "-c", "-o", out, source], check=True)
    return out


def copy_unit(directory, first, u):
    out = f"{directory}/u{u}.o"
    with open(f"{directory}/u{first}.o", "rb") as f:
        data = f.read()
    for before, after in ((f"unit{first}", f"unit{u}"), (f"u{first}.cc", f"u{u}.cc"), (f"_{first}\0", f"_{u}\0")):
        data = data.replace(before.encode(), after.encode())
    with open(out, "wb") as f:
        f.write(data)
    return out


def build(directory, program, units=UNITS, linker="bfd"):
    os.makedirs(directory, exist_ok=True)
    numbers = numbers_of(units)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda u: compile_unit(directory, u), numbers[:COMPILED]))
    objects = [f"{directory}/u{u}.o" for u in numbers[:COMPILED]]
    objects += [copy_unit(directory, numbers[i % COMPILED], numbers[i]) for i in range(COMPILED, units)]
    with open(f"{directory}/handler.c", "w") as f:
        f.write(dumps.HANDLER)
    subprocess.run(["gcc", "-w", "-O1", "-c", "-o", f"{directory}/handler.o", f"{directory}/handler.c"], check=True)
    with open(f"{directory}/main.cc", "w") as f:
        f.write(MAIN % {"count": units, "steps": ", ".join(f"app::unit{u}::deep" for u in numbers),
                        "declarations": "".join(f"namespace app {{ namespace unit{u} {{ int deep(int, int); }} }}\n" for u in numbers)})
    subprocess.run(["clang++", *FLAGS, "-no-pie", f"-fuse-ld={linker}", "-Wl,--build-id=sha1", "-o", program, f"{directory}/main.cc", f"{directory}/handler.o",
                    *objects], check=True)
    for path in objects:
        os.unlink(path)


def dump(program, work, threads, depth):
    crashes = [dumps.Crash(program, work, str(depth), str(i), machine=FIXED) for i in range(threads)]
    return dumps.together(crashes)


FIXED = dumps.Machine(dumps.AMD64, ["gcc"], ["setarch", "-R"], " ".join(dumps.X86_64.registers))
