"""A profile of a program that is built here, and requests of the Firefox Profiler for it: up to ten jobs of one module and one stack
each, thousands of addresses, the kernel among them."""
import json, os, random, re, shutil, subprocess

import harness
from faults import Redis
from harness import Service, Upstream, equal, wait_until
from servers import nginx

PROGRAM = r"""
#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
extern "C" char __executable_start;
static unsigned long samples[4096];
static volatile int count;
static void sample(int, siginfo_t *, void *context)
{
    unsigned long pc = static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP];
    if (count < 4096)
        samples[count++] = pc - reinterpret_cast<unsigned long>(&__executable_start);
}
static inline __attribute__((always_inline)) unsigned mix(unsigned a) { a ^= a << 13; a ^= a >> 17; return a ^ a << 5; }
__attribute__((noinline)) unsigned spin(unsigned a) { for (int i = 0; i < 20000; i++) a = mix(a) + i; return a; }
__attribute__((noinline)) unsigned tree(unsigned a)
{
    std::map<unsigned, std::string> names;
    for (int i = 0; i < 200; i++)
        names[a = mix(a)] = std::to_string(a);
    return names.begin()->first;
}
int main()
{
    struct sigaction action = {};
    action.sa_sigaction = sample;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGPROF, &action, nullptr);
    itimerval every = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &every, nullptr);
    unsigned a = 1;
    while (count < 120)
        a = spin(a) + tree(a);
    setitimer(ITIMER_PROF, nullptr, nullptr);
    for (int i = 0; i < count; i++)
        std::printf("%lx\n", samples[i]);
    return a == 42;
}
"""


def run(*command, **keys):
    return subprocess.run(command, check=True, capture_output=True, text=True, **keys).stdout


def built(work):
    """(path, Breakpad's debug id, addresses of the profile)"""
    with open(os.path.join(work, "profiled.cc"), "w") as f:
        f.write(PROGRAM)
    path = os.path.join(work, "profiled")
    run("g++", "-O2", "-g", "-static-pie", "-Wl,--build-id", "-o", path, os.path.join(work, "profiled.cc"))
    build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path)).group(1)
    raw = bytes.fromhex(build_id[:32])
    debug_id = (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex().upper() + "0"
    return path, debug_id, sorted({int(line, 16) for line in run(path).split()})


def symbolizer(path, addresses):
    """Of each address the chain of (function, file, line), innermost first."""
    chains = []
    text = run("llvm-symbolizer-19", "--output-style=JSON", "--no-demangle", "--obj=" + path, *[hex(a) for a in addresses])
    for line in text.splitlines():
        for answer in json.loads(line) if line.startswith("[") else [json.loads(line)]:
            chains.append([(s["FunctionName"], s["FileName"], s["Line"]) for s in answer.get("Symbol", [])])
    return chains


def test_profile_frames_equal_those_of_llvm(work, objects):
    """Every frame is what LLVM's symbolizer makes of it."""
    path, debug_id, addresses = built(work)
    equal(len(addresses) > 20, True)
    breakpad = run(harness.SYMLOOM, "dump-syms", "--inlines", path)
    place = f"/profiled/{debug_id}/profiled.sym"
    with Upstream({place: breakpad.encode()}) as up, Service(work, {"mozilla": {"sources": [up.url], "compat": "profiler"}}) as s:
        body = {"jobs": [{"memoryMap": [["profiled", debug_id]], "stacks": [[[0, a] for a in addresses]]}]}
        status, _, text = s.request("POST", "/symbolicate/v5", json.dumps(body))
        equal(status, 200, text)
        frames = json.loads(text)["results"][0]["stacks"][0]
    names = {}
    theirs = symbolizer(path, addresses)
    mangled = sorted({name for chain in theirs for name, _, _ in chain})
    for name, readable in zip(mangled, run("llvm-cxxfilt-19", *mangled).splitlines()):
        names[name] = readable
    places, compared, by_symbol = {}, 0, 0
    for start, size, name in re.findall(r"^([0-9a-f]+) ([0-9a-f]+) \w (.*)$", run("llvm-nm-19", "--demangle", "-S", path), re.M):
        places.setdefault(bare(name), set()).add((int(start, 16), int(size, 16)))
    for address, frame, chain in zip(addresses, frames, theirs):
        ours = [(f["function"], f.get("file"), f.get("line")) for f in frame.get("inlines", [])]
        ours.append((frame.get("function"), frame.get("file"), frame.get("line")))
        lines = [(line if file else None) for _, file, line in chain]
        if not any(lines):  # functions without debug information are named by symbols alone, of which many have the same place
            ((name, _, _),) = chain
            equal((len(ours), ours[0][1:]), (1, (None, None)), hex(address))
            its = bare(names[name])
            if any(start <= address < start + size for start, size in places.get(its, set())):
                mine = bare(ours[0][0])
                equal(mine == its or bool(places.get(mine, set()) & places[its]), True, (hex(address), ours, chain))
            else:  # the nearest one below, which ended: what is there are stubs of the linker
                equal(ours[0][0], "<.plt ELF section in profiled>", (hex(address), chain))
            by_symbol += 1
            continue
        equal([(o[2] or 0) for o in ours], [line or 0 for line in lines], (hex(address), ours, chain))
        equal([(o[1] or "").rsplit("/", 1)[-1] for o in ours], [file.rsplit("/", 1)[-1] for _, file, _ in chain], hex(address))
        equal([bare(o[0]) for o in ours], [bare(names[name]) for name, _, _ in chain], hex(address))
        compared += 1
    equal((compared > 5, by_symbol > 0, compared + by_symbol), (True, True, len(addresses)), (compared, by_symbol))


def bare(name):
    """Without return type, template arguments, parameters and what the compiler made of it."""
    depth, out = 0, ""
    for c in re.sub(r" (\[clone [^]]*\]|\(\.[^)]*\))", "", name):
        depth += c in "<("
        if not depth:
            out += c
        depth -= c in ">)"
    return re.sub(r"( const|&|\.[.\w]+)+$", "", out).split(" ")[-1]


def test_large_profiler_request_is_answered(work, objects):
    """Ten jobs of a thousand addresses each, in one module each; one is the kernel, whose symbols nobody has."""
    rng = random.Random(1)
    modules, files = [], {}
    for m in range(9):
        debug_id = f"{m + 1:032X}0"
        lines = [f"MODULE Linux x86_64 {debug_id} lib{m}.so", f"FILE 0 /src/{m}.c"]
        for i in range(3000):
            lines += [f"FUNC {i * 32:x} 20 0 f{m}_{i}", f"{i * 32:x} 20 {i % 500 + 1} 0"]
        modules.append((f"lib{m}.so", debug_id))
        files[f"/lib{m}.so/{debug_id}/lib{m}.so.sym"] = ("\n".join(lines) + "\n").encode()
    modules.append(("[kernel.kallsyms]", "ABCDEF0123456789ABCDEF01234567890"))
    addresses = [rng.sample(range(96000), 1000) for _ in modules]
    body = json.dumps({"jobs": [{"memoryMap": [list(m)], "stacks": [[[0, a] for a in list_]]} for m, list_ in zip(modules, addresses)]})

    def ask(s):
        status, got, text = s.request("POST", "/symbolicate/v5", body, {"Content-Type": "text/plain;charset=UTF-8", "Origin": "https://profiler.firefox.com"})
        equal((status, got["Access-Control-Allow-Origin"]), (200, "*"), text[:300])
        results = json.loads(text)["results"]
        equal(len(results), 10)
        for m, (module, list_, result) in enumerate(zip(modules, addresses, results)):
            equal((result["found_modules"], "module_errors" in result), ({"/".join(module): m < 9}, m == 9))
            for i, (address, frame) in enumerate(zip(list_, result["stacks"][0])):
                expected = {"frame": i, "module": module[0], "module_offset": hex(address)}
                if m < 9:
                    expected |= {"function": f"f{m}_{address // 32}", "function_offset": hex(address % 32), "function_size": "0x20",
                                 "file": f"/src/{m}.c", "line": address // 32 % 500 + 1}
                equal(frame, expected)

    root = os.path.join(work, "symbols")
    for path, text in files.items():
        os.makedirs(os.path.dirname(root + path))
        with open(root + path, "wb") as f:
            f.write(text)
    with nginx(work, root) as url, Redis(work) as redis:
        mozilla = {"sources": [url], "compat": "profiler", "cache": "redis", "redis": {"url": redis.url}}
        with Service(work, {"mozilla": mozilla}) as s:
            ask(s)
            ask(s)
            wait_until("the modules in Redis", lambda: redis.size() >= 9)
        for path in files:
            os.remove(root + path)
        with Service(work, {"mozilla": mozilla}) as s:  # a node that has nothing of its own
            ask(s)


AREA = """
static int square(int a) { return a * a; }
__attribute__((noinline)) int area(int side) { return square(side) + 1; }
int main(int argc, char **argv) { return area(argc); }
"""


def test_elf_files_are_found_by_debug_id_in_every_layout(work, objects):
    """Requests have no build id: its first bytes lead to the file, in directories of every layout that has files by it."""
    with open(os.path.join(work, "area.c"), "w") as f:
        f.write(AREA)
    for flag in ("sha1", "md5", "0x0123456789abcdef"):
        path = os.path.join(work, "area")
        run("gcc", "-g", "-O1", "-Wl,--build-id=" + flag, "-o", path, os.path.join(work, "area.c"))
        build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path)).group(1)
        raw = bytes.fromhex(build_id.ljust(32, "0")[:32])
        debug_id = (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex().upper() + "0"
        other = debug_id[:8] + ("1" if debug_id[8] == "0" else "0") + debug_id[9:]
        start = int(re.search(r"([0-9a-f]+) T area", run("nm", path)).group(1), 16)
        body = json.dumps({"jobs": [{"memoryMap": [["area", i]], "stacks": [[[0, start]]]} for i in (debug_id, other)]})
        for layout, place in (("native", f"{build_id[:2]}/{build_id[2:]}.debug"), ("unified", f"{build_id[:2]}/{build_id[2:]}/debuginfo"),
                              ("debuginfod", f"{build_id}/debuginfo"), ("symstore", f"area/elf-buildid-{build_id}/area"),
                              ("ssqp", f"_.debug/elf-buildid-sym-{build_id}/_.debug")):
            if layout != "native" and flag != "sha1":
                continue
            root = os.path.join(work, flag + layout)
            os.makedirs(os.path.dirname(os.path.join(root, place)))
            shutil.copy(path, os.path.join(root, place))
            source = {"id": "disk", "type": "filesystem", "path": root, "layout": {"type": layout}}
            with Service(work, {"sources": [source], "mozilla": {"sources": []}}) as s:
                for _ in range(2):
                    results = json.loads(s.request("POST", "/symbolicate/v5", body)[2])["results"]
                    equal([list(r["found_modules"].values()) for r in results], [[True], [False]], (layout, flag))
                    frame = results[0]["stacks"][0][0]
                    equal((frame["function"], frame["function_offset"], frame["file"].endswith("/area.c"), frame["line"]), ("area", "0x0", True, 3))
