#!/usr/bin/env python3
"""Writes the C++ sources of the benchmark program and builds it: many units of templates, inlining and namespaces.

usage: generate.py DIRECTORY [UNITS]     makes DIRECTORY/bench.elf
"""
import concurrent.futures, os, subprocess, sys

HEAD = """#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
"""

UNIT = """namespace app { namespace unit%(u)d {
template <typename K, typename V> struct registry {
    std::map<K, V> items; std::unordered_map<std::string, std::vector<V>> groups;
    V find(const K &key, V fallback) const { auto it = items.find(key); return it == items.end() ? fallback : it->second; }
    void add(const K &key, V value, const std::string &group) { items[key] = value; groups[group].push_back(value); }
    template <typename F> void each(F f) { for (auto &[k, v] : items) f(k, v); }
};
struct shape { virtual ~shape() = default; virtual double area() const = 0; std::string name; };
%(shapes)s
int run(int seed)
{
    registry<std::string, long> r; std::vector<std::unique_ptr<shape>> shapes; long total = seed;
%(body)s
    std::sort(shapes.begin(), shapes.end(), [](const auto &a, const auto &b) { return a->area() < b->area(); });
    r.each([&](const std::string &k, long v) { total += v + (long)k.size(); });
    for (auto &s : shapes) total += (long)s->area() + r.find(s->name, 1);
    return (int)total;
}
}}
"""

SHAPE = """struct shape%(n)d : shape {
    double a, b; std::vector<std::pair<int, std::string>> tags;
    shape%(n)d(double x, double y) : a(x), b(y) { name = "shape%(n)d_%(u)d"; }
    double scale(double f) const { return f > 1 ? a * f : b / (f + 1); }
    double area() const override { double s = scale(a) * %(n)d; for (auto &t : tags) s += t.first + (double)t.second.size(); return s; }
    void tag(int k, std::function<std::string(int)> make) { tags.emplace_back(k, make(k)); if (tags.size() > %(n)d) tags.erase(tags.begin()); }
};
"""

BODY = """    { auto s = std::make_unique<shape%(n)d>(seed, %(n)d); s->tag(seed, [=](int k) { return std::to_string(k + %(n)d); });
      r.add(s->name, seed * %(n)d, "group%(n)d"); shapes.push_back(std::move(s)); }
"""


def unit(u):
    shapes = "".join(SHAPE % {"n": n, "u": u} for n in range(1, 9))
    body = "".join(BODY % {"n": n} for n in range(1, 9))
    return HEAD + UNIT % {"u": u, "shapes": shapes, "body": body}


def build(directory, units):
    os.makedirs(directory, exist_ok=True)

    def compile_unit(u):
        source, out = f"{directory}/u{u}.cc", f"{directory}/u{u}.o"
        open(source, "w").write(unit(u))
        subprocess.run(["clang++", "-std=c++17", "-g", "-gdwarf-5", "-O2", "-c", "-o", out, source], check=True)
        return out

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_unit, range(units)))
    calls = "".join(f"namespace app {{ namespace unit{u} {{ int run(int); }} }}\n" for u in range(units))
    calls += "int main(int argc, char **) { int t = 0;\n" + "".join(f"t += app::unit{u}::run(argc);\n" for u in range(units)) + "return t; }\n"
    open(f"{directory}/main.cc", "w").write(calls)
    subprocess.run(["clang++", "-g", "-gdwarf-5", "-O2", "-o", f"{directory}/bench.elf", f"{directory}/main.cc", *objects], check=True)
    for o in objects:
        os.unlink(o)


if __name__ == "__main__":
    build(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 170)
