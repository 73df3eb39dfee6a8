"""Texts with stacks, as programs and tools write them, made from source: what tests give to the command, the API and the page."""
import json, os, re, subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = os.environ.get("SYMLOOM_CASES") or os.path.join(os.path.dirname(ROOT), "shared", "cases") # inputs that people had trouble with

SOURCE = """#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static inline __attribute__((always_inline)) int element(volatile int *p, int n) { return p[n]; }
__attribute__((noinline)) int use(volatile int *p, int n) { return element(p, n) + 1; }
__attribute__((noinline)) int depth(int n, const char *what)
{
    void *frames[16];
    if (n)
        return depth(n - 1, what) + 1;
    if (strcmp(what, "wait") == 0) {
        close(1);
        pause();
    } else if (strcmp(what, "backtrace") == 0)
        backtrace_symbols_fd(frames, backtrace(frames, 16), 1);
    else if (strcmp(what, "freed") == 0) {
        int *p = malloc(8);
        free(p);
        return use(p, 1);
    } else
        return use(NULL, 0);
    return 1;
}
int main(int count, char **words) { return count > 1 ? depth(2, words[1]) > 100 : 0; }
"""
RUST = """use std::io::Read;
#[inline(never)]
fn order(left: usize) -> usize {
    let mut text = String::new();
    std::fs::File::open("/proc/self/maps").unwrap().read_to_string(&mut text).unwrap();
    eprint!("{}", text);
    if left == 0 { panic!("sold out") }
    text.len()
}
fn main() { std::process::exit(order(std::env::args().count() - 1) as i32) }
"""
SCRIPT = """(()=>{function r(o){if(o.left<1)throw new Error("sold out")}function t(o){o.forEach(r)}t([{left:0}]);})();
//# sourceMappingURL=app.min.js.map
"""
MAP = json.dumps({"version": 3, "sources": ["app.js"], "names": ["checkStock", "item", "order", "items"],
                  "mappings": "MAAA,SAASA,EAAWC,EAAM,CACxB,GAAIA,EAAK,KAAO,EAAG,MAAM,IAAI,MAAM,UAAU,CAC/C,CAEO,SAASC,EAAMC,EAAO,CAC3BA,EAAM,QAAQH,CAAU,CAC1B,CAEAE,EAAM,CAAC,CAAC,KAAM,CAAC,CAAC,CAAC"})
MAPPING = """com.example.Shop -> a.b:
    1:1:void com.example.Stock.check(int):7:7 -> c
    12:12:void main(java.lang.String[]):31:31 -> d
com.example.SoldOut -> a.e:
    3:3:com.example.SoldOut of(java.lang.String):12:12 -> a
"""
UNCAUGHT = """Error: sold out
    at r (/srv/app.min.js:1:39)
    at Array.forEach (<anonymous>)
    at t (/srv/app.min.js:1:77)
"""
TRACE = """Exception in thread "main" java.lang.IllegalStateException: no stock
\tat a.b.c(SourceFile:1)
\tat a.b.d(Unknown Source:12)
\tat java.base/java.lang.Thread.run(Thread.java:833)
Caused by: a.e: sold out
\tat a.e.a(SourceFile:3)
\t... 2 more
"""
APPLE = """Process:               Shop [711]
Path:                  /Applications/Shop.app/Contents/MacOS/Shop
Exception Type:        EXC_BAD_ACCESS (SIGSEGV)

Thread 0 Crashed:
0   Shop                          \t       0x108000005 0x108000000 + 5
1   libsystem.dylib               \t       0x180000254 0x180000000 + 596

Binary Images:
       0x108000000 -        0x108ffffff com.example.Shop (1.0) <2d903291-397d-3d14-bfca-52c7fb8c5e00> /Applications/Shop.app/Contents/MacOS/Shop
       0x180000000 -        0x180ffffff libsystem.dylib (*) <3d903291-397d-3d14-bfca-52c7fb8c5e00> /usr/lib/libsystem.dylib
"""
APPLE_SYMBOLS = {"Shop.sym": "MODULE mac x86_64 2D903291397D3D14BFCA52C7FB8C5E000 Shop\nFILE 0 /src/Shop.m\nFUNC 0 20 0 -[Shop stop]\n0 20 7 0\n"}


def ips(pretty):
    """A report as JSON, of two threads whose images come last; the second frame has its name."""
    frames = [{"imageOffset": 5, "imageIndex": 1}, {"imageOffset": 596, "imageIndex": 0, "symbol": "read", "symbolLocation": 8},
              {"imageOffset": 22, "imageIndex": 1}]
    image = {"arch": "x86_64", "base": 0x108000000, "size": 0x1000000, "uuid": "2d903291-397d-3d14-bfca-52c7fb8c5e00",
             "path": "/Applications/Shop.app/Contents/MacOS/Shop", "name": "Shop"}
    system = {"base": 0x180000000, "size": 4096, "uuid": "3d903291-397d-3d14-bfca-52c7fb8c5e00", "path": "/usr/lib/libsystem.dylib"}
    body = {"bug_type": "309", "faultingThread": 0, "exception": {"type": "EXC_BAD_ACCESS"},
            "threads": [{"triggered": True, "id": 1, "frames": frames}, {"id": 2, "frames": frames[2:]}], "usedImages": [system, image]}
    header = {"app_name": "Shop", "timestamp": "2024-11-24 16:54:53.00 +0100", "bug_type": "309"}
    return f"{json.dumps(header)}\n{json.dumps(body, indent=1 if pretty else None)}\n"


IPS = "upload of two reports\n" + ips(True) + "next\n" + ips(False) + "done\n"
# A source map whose `scopes` say that `validate` is inlined at 1:23, and hide the function at 1:63. The bundle's URL has React Native's parameters.
SCOPES = json.dumps({"version": 3, "sources": ["a.js", "b.js"], "mappings": "AAAA,YAMI,QAJE,eAIwB,2BAJtB,oBCCL,uBDIS,KAHX,UCJD",
                     "names": ["global", "validate", "function", "x", "block", "App", "class", "handleClick", "7"],
                     "scopes": "BCAAA,BHBACCE,DG,BCBCE,CAc,CBB,BDBAIE,BFBCE,CCD,BEAH,CAK,CBB,CBA,A,"
                               "ECAA,EGKI,ECKH,GJ,IAGE,ECCC,FG,FC,Fe,EOAA,FU,EEA,FK,FK"})
SCOPED_SCRIPTS = {"a.min.js": "function m(){minified()}\n//# sourceMappingURL=a.min.js.map", "a.min.js.map": SCOPES}
SCOPED = """Error: x
    at async m (https://x.y/a.min.js//&platform=ios&dev=true:1:23)
    at new o (https://x.y/a.min.js:1:41) {
    at o (https://x.y/a.min.js:1:63)
    at p (https://x.y/a.min.js:1:13)
    at o (https://x.y/a.min.js:1:63)
    at Array.map (<anonymous>)
    at p (https://x.y/a.min.js:1:13)
{"stack":"Error\\n    at m (https://x.y/a.min.js:1:23)\\n    at n (https://x.y/a.min.js:1:13)"}
"""
SCOPED_NAMED = """Error: x
    at validate (https://x.y/a.js:3:7)
    at async handleClick (https://x.y/a.js:7:5)
    at new handleClick (https://x.y/a.js:7:31) {
    at handleClick (https://x.y/a.js:7:5)
    at validate (https://x.y/a.js:3:9)
    at Array.map (<anonymous>)
    at handleClick (https://x.y/a.js:7:5)
{"stack":"Error\\n    at validate (https://x.y/a.js:3:7)\\n    at handleClick (https://x.y/a.js:7:5)\\n    at handleClick (https://x.y/a.js:7:5)"}
"""
SCRIPTS, MAPPINGS = {"app.min.js": SCRIPT, "app.min.js.map": MAP}, {"mapping.txt": MAPPING}
CALLS = ["use", "depth", "main"]


class Text:
    """`names`: must be in the text when it is written again. `files`: symbols, scripts and mappings that come with it."""

    def __init__(self, name, text, names, files):
        self.name, self.text, self.names, self.files = name, text, names, files
        self.mappings = [file for file in files if file == "mapping.txt" or (isinstance(files[file], bytes) and file.endswith(".map") and b" -> " in files[file] and files[file][:1] != b"{")]


def run(*command, **keys):
    return subprocess.run(command, check=True, capture_output=True, text=True, **keys).stdout


def contents(path):
    with open(path, "rb") as f:
        return f.read()


class Program:
    """A program as it is delivered, without symbols, at `path`, and its debug file."""

    def __init__(self, work, name, source, compiler):
        self.name, self.path = name, os.path.join(work, name)
        given = self.path + source[0]
        with open(given, "w") as f:
            f.write(source[1])
        run(*compiler, "-o", self.path, given, cwd=work)
        run("objcopy", "--only-keep-debug", self.path, self.path + ".debug")
        symbols = run("nm", "--defined-only", self.path).splitlines()
        self.symbols = {words[-1]: int(words[0], 16) for words in map(str.split, symbols)}
        run("objcopy", "--strip-all", self.path)
        self.id = re.search(r"Build ID: (\w+)", run("readelf", "-n", self.path)).group(1)
        self.files = {name: contents(self.path), name + ".debug": contents(self.path + ".debug")}


def of_gdb(program):
    """A crash in gdb, as people paste it: the stack, then the mappings."""
    return run("gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "run crash", "-ex", "bt", "-ex", "info proc mappings", program.path)


def of_eu_stack(program):
    """The stack of a process that waits, and its mappings."""
    process = subprocess.Popen([program.path, "wait"], stdout=subprocess.PIPE)
    process.stdout.read()  # it is closed when the process is about to wait
    try:
        return run("eu-stack", "-p", str(process.pid), env={**os.environ, "DEBUGINFOD_URLS": ""}) + contents(f"/proc/{process.pid}/maps").decode()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def by_hand(program):
    """What needs a system of its own to be written: (name, text), each with the frames of CALLS."""
    base, name = 0x555555554000, program.name
    at = [program.symbols["use"] + 1, program.symbols["depth"] + 20, program.symbols["main"] + 24]
    yield "android", "backtrace:\n" + "".join(f"      #{i:02} pc {a:016x}  /data/local/tmp/{name} (BuildId: {program.id})\n" for i, a in enumerate(at))
    yield "logcat", "".join(f"07-01 10:00:00.000   711   711 F DEBUG   :       #{i:02} pc {a:08x}  /data/app/base.apk!{name}\n" for i, a in enumerate(at))
    yield "systemd", ("Process 711 (shop) of user 1000 dumped core.\n\n" f"Module {name} with build-id {program.id}\nStack trace of thread 711:\n" +
                      "".join(f"#{i}  0x{base + a:016x} n/a ({name} + 0x{a:x})\n" for i, a in enumerate(at)) + "ELF object binary architecture: AMD x86-64\n")
    yield "hs_err", "# A fatal error has been detected by the Java Runtime Environment:\nNative frames:\n" + "".join(f"C  [{name}+0x{a:x}]\n" for a in at)
    yield "markup", (f"{{{{{{reset}}}}}}\n{{{{{{module:0:{name}:elf:{program.id}}}}}}}\n{{{{{{mmap:0x{base:x}:0x10000:load:0:rx:0x0}}}}}}\n" +
                     "".join(f"{{{{{{bt:{i}:0x{base + a:x}:{'ra' if i else 'pc'}}}}}}}\n" for i, a in enumerate(at)))
    yield "windows", "".join(f"{i:02x} 000000d1`7ff{i}f000     {name}!<BaseAddress>+0x{a:x}\n" for i, a in enumerate(at))
    yield "windows, symbols", f"00 000000d1`7ff0f000     {name}!use+0x1\n01 000000d1`7ff1f000     {name}!depth+0x14\n02 000000d1`7ff2f000     {name}!main+0x18\n"
    yield "glibc, symbols", f"./{name}(use+0x1)[0x7f0000001001]\n./{name}(depth+0x14)[0x7f0000001014]\n./{name}(main+0x18)[0x7f0000001018]\n"
    yield "addresses", "".join(f"{name} + 0x{a:x}\n" for a in at)


def native(work):
    gcc = ["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1"]
    shop = Program(work, "shop", (".c", SOURCE), gcc)
    asan = Program(work, "checked", (".c", SOURCE), [*gcc, "-fsanitize=address"])
    rust = Program(work, "panics", (".rs", RUST), ["rustc", "-g", "-C", "link-arg=-Wl,--build-id=sha1"])
    report = subprocess.run([asan.path, "freed"], stderr=subprocess.PIPE, text=True, env={"ASAN_OPTIONS": "symbolize=0"}).stderr
    yield Text("asan", report, ["element", *CALLS], asan.files)
    yield Text("glibc", run(shop.path, "backtrace"), CALLS[1:], shop.files)
    yield Text("gdb", of_gdb(shop), CALLS, shop.files)
    yield Text("eu-stack", of_eu_stack(shop), CALLS[1:], shop.files)
    panic = subprocess.run([rust.path], stderr=subprocess.PIPE, text=True, env={"RUST_BACKTRACE": "full"}).stderr
    yield Text("rust", panic, ["panics::order", "panics::main"], rust.files)
    for name, text in by_hand(shop):
        yield Text(name, text, CALLS, shop.files)


def build(work):
    """All texts."""
    texts = list(native(work))
    texts += [Text("js", UNCAUGHT, ["checkStock", "order"], SCRIPTS), Text("scopes", SCOPED, SCOPED_NAMED.splitlines(), SCOPED_SCRIPTS), Text("jvm", TRACE, ["com.example.Stock.check", "com.example.SoldOut"], MAPPINGS)]
    asan = texts[0]
    texts.append(Text("ips", IPS, ["-[Shop stop]"], APPLE_SYMBOLS))
    texts.append(Text("mixed", asan.text + UNCAUGHT + TRACE, ["use", "checkStock", "com.example.Stock.check"], {**asan.files, **SCRIPTS, **MAPPINGS}))
    texts.append(Text("windows line ends", texts[-1].text.replace("\n", "\r\n"), texts[-1].names, texts[-1].files))
    return texts


SYMBOLS = re.compile(r"\.(map|[cm]?js|jsx|ts|jsbundle|bundle|hbc|sym)$|^mapping\.txt$")
NO_TEXTS = re.compile(r"\.(py|sh|c|cc|yml|json|md|s|asm|lds?|dmp|gz)$")


def below(folder):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)


def of_cases():
    """Every text below CASES, with the scripts, mappings and symbols that are with it; none if the directory is not there."""
    for path in below(CASES):
        name = os.path.basename(path)
        if SYMBOLS.search(name) or NO_TEXTS.search(name):
            continue
        data = contents(path)
        if b"\0" in data or len(data) > 4 << 20:
            continue
        files = {os.path.basename(file): contents(file) for file in below(os.path.dirname(path)) if SYMBOLS.search(os.path.basename(file))}
        yield Text(os.path.relpath(path, CASES), data.decode("utf-8", "surrogateescape"), [], dict(list(files.items())[:32]))
