"""PDB: conversion of a file of several megabytes, beside answering one address for each function of it and dumping it."""
import concurrent.futures, os, re, shutil, subprocess, sys, tempfile

SYMBOLIZER, PDBUTIL, LINK = "llvm-symbolizer-14", "llvm-pdbutil-14", "lld-link-14"
UNITS, RUNS = 80, 3
TARGET = ["--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-O2", "-std=c++17"]

# No header is needed: the templates are the kind of code that the standard library has.
UNIT = """namespace base {
using size = unsigned long long;
void *allocate(size n); void release(void *p); long observe(long v);
template <typename T> struct span { T *data; size count; T *begin() const { return data; } T *end() const { return data + count; } };
template <typename T> struct vector {
    T *items = nullptr; size count = 0, room = 0;
    ~vector() { for (auto &i : all()) i.~T(); release(items); }
    span<T> all() const { return {items, count}; }
    void grow(size n) { if (n <= room) return; T *more = (T *)allocate(n * 2 * sizeof(T)); for (size i = 0; i < count; i++) more[i] = items[i]; release(items); items = more; room = n * 2; }
    void push(const T &v) { grow(count + 1); items[count++] = v; }
    template <typename F> T *find(F matches) const { for (auto &i : all()) if (matches(i)) return &i; return nullptr; }
};
template <typename K, typename V> struct map {
    struct entry { K key; V value; }; vector<entry> entries;
    V *get(const K &key) const { auto *e = entries.find([&](const entry &e) { return e.key == key; }); return e ? &e->value : nullptr; }
    void set(const K &key, const V &value) { if (auto *v = get(key)) *v = value; else entries.push({key, value}); }
};
}
namespace app { namespace unit%(u)d {
%(shapes)s
long run(long seed)
{
    long total = seed;
%(body)s
    return total;
}
} }
"""
SHAPE = """template <int N> struct shape%(n)d {
    struct point { int x, y; bool operator==(const point &o) const { return x == o.x && y == o.y; } };
    base::map<point, double> weights; base::vector<long> tags;
    double scale(double f) const { return f > N ? f * %(n)d : f / (N + %(u)d); }
    __declspec(noinline) double area(const point &p) const { auto *w = weights.get(p); return scale(w ? *w : N); }
    __declspec(noinline) void tag(long k) { tags.push(base::observe(k)); weights.set({(int)k, N}, scale((double)k)); }
    __declspec(noinline) long sum(long limit) { long t = 0; for (auto i : tags.all()) { if (i > limit) t += i * N; else t -= base::observe(i); } return t; }
};
"""
BODY = "    { shape%(n)d<%(k)d> s; s.tag(seed + %(n)d); s.tag(total); total += s.sum(seed) + (long)s.area({(int)seed, %(k)d}); }\n"


def build(directory):
    """Makes bench.exe and bench.pdb."""
    os.makedirs(directory, exist_ok=True)

    def compile_unit(u):
        source, out = f"{directory}/u{u}.cc", f"{directory}/u{u}.obj"
        shapes = "".join(SHAPE % {"n": n, "u": u} for n in range(1, 9))
        body = "".join(BODY % {"n": n, "k": k} for n in range(1, 9) for k in range(1, 4))
        with open(source, "w") as f:
            f.write(UNIT % {"u": u, "shapes": shapes, "body": body})
        subprocess.run(["clang++", *TARGET, "-c", "-o", out, source], check=True)
        return out

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_unit, range(UNITS)))
    with open(f"{directory}/main.cc", "w") as f:
        f.write("".join(f"namespace app {{ namespace unit{u} {{ long run(long); }} }}\n" for u in range(UNITS)))
        f.write("namespace base { using size = unsigned long long; char pool[1 << 20]; size used; long observe(long v) { return v ^ (long)used; }\n"
                "void *allocate(size n) { used += n; return pool + used - n; } void release(void *) {} }\n"
                "extern \"C\" int _fltused = 0, __CxxFrameHandler3 = 0, __std_terminate = 0;\nextern \"C\" int entry() { long t = 0;\n" +
                "".join(f"t += app::unit{u}::run(t);\n" for u in range(UNITS)) + "return (int)t; }\n")
    subprocess.run(["clang++", *TARGET, "-c", "-o", f"{directory}/main.obj", f"{directory}/main.cc"], check=True)
    subprocess.run([LINK, "/debug", "/entry:entry", "/nodefaultlib", "/subsystem:console", "/opt:noref,noicf",
                    f"/out:{directory}/bench.exe", f"/pdb:{directory}/bench.pdb", f"{directory}/main.obj", *objects], check=True)
    for path in objects:
        os.unlink(path)


def functions(symloom, pdb):
    """The relative address of every function."""
    text = subprocess.run([symloom, "dump-syms", pdb], capture_output=True, text=True, check=True).stdout
    return [int(a, 16) for a in re.findall(r"^FUNC (?:m )?([0-9a-f]+) ", text, re.M)]


# A process's peak counts from what its parent had when it was started, so a small one starts it.
LAUNCH = """import os, sys, time
start = time.monotonic()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
_, status, usage = os.wait4(child, 0)
print(status, time.monotonic() - start, usage.ru_maxrss)
"""


def measure(command, stdin=None):
    """(seconds, peak MiB) of one run."""
    run = subprocess.run([sys.executable, "-ISc", LAUNCH, *command], stdin=open(stdin) if stdin else subprocess.DEVNULL,
                         stdout=subprocess.PIPE, text=True, check=True)
    status, seconds, peak = run.stdout.split()
    if status != "0":
        raise SystemExit(f"failed: {' '.join(command)}")
    return float(seconds), int(peak) / 1024


def conversions(converter, path, runs):
    """(seconds of the fastest, bytes of what the symcache says) of converting in process."""
    printed = subprocess.run([converter, path, str(runs)], capture_output=True, text=True, check=True).stdout.split()
    return min(map(float, printed[1:])), int(printed[0])


def memory_row(symloom, path, peak, decoded, row):
    """What the conversion of `path` took beyond the program and the mapped file itself, against what it decoded."""
    own = measure([symloom, "--version"])[1] + os.path.getsize(path) / 2**20
    row("  memory, against decoded entries", peak - own, decoded / 2**20, "MiB", "<= 3")


def main(symloom, converter, data, row):
    """`converter`: bench_convert; `data`: the directory where the program is kept."""
    directory = os.path.join(data, "pdb")
    pdb, exe = os.path.join(directory, "bench.pdb"), os.path.join(directory, "bench.exe")
    if not os.path.exists(pdb):
        shutil.rmtree(directory, ignore_errors=True)
        build(directory)
    addresses = functions(symloom, pdb)
    with tempfile.TemporaryDirectory(prefix="symloom-bench-") as work:
        listing = os.path.join(work, "addresses")
        with open(listing, "w") as f:
            f.write("".join(f"0x{a:x}\n" for a in addresses))
        convert = [symloom, "lookup", "-e", pdb, "--symcache-out", os.path.join(work, "cache"), "--jobs", "1"]
        ours = min(measure(convert) for _ in range(RUNS))
        symbolizer = min(measure([SYMBOLIZER, "--obj=" + exe, "--relative-address"], listing) for _ in range(RUNS))
        dump = min(measure([PDBUTIL, "dump", "-all", pdb]) for _ in range(RUNS))
        size = os.path.getsize(pdb) / 1e6
        row(f"PDB of {size:.0f} MB, {len(addresses)} functions, llvm-symbolizer", ours[0], symbolizer[0], "s", "<= 0.2")
        row("  peak memory", ours[1], symbolizer[1], "MiB", "")
        memory_row(symloom, pdb, ours[1], conversions(converter, pdb, 1)[1], row)
        row("  against llvm-pdbutil dump -all", ours[0], dump[0], "s", "")
