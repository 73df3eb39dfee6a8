"""What the tests of the commands share: running the program, also under other names, and debug files made by compilers."""
import fcntl, os, pty, struct, subprocess, tempfile

SYMLOOM = None  # path of the binary, set by run.py
DEADLINE = 120  # seconds after which a command that should have ended is a failure


class Result:
    def __init__(self, run):
        self.status, self.out, self.err = run.returncode, run.stdout, run.stderr
        if "Sanitizer" in self.err or "runtime error:" in self.err:
            raise AssertionError("a sanitizer found something:\n" + self.err[-6000:])


def symloom(*args, input="", cwd=None, program=None, env=None):
    """Runs the program; `program` is a link to it with another name."""
    run = subprocess.run([program or SYMLOOM, *args], input=input, capture_output=True, text=True, timeout=DEADLINE,
                         cwd=cwd, errors="replace", env={**os.environ, **(env or {})})
    return Result(run)


def ok(*args, **options):
    """Standard output of a run that must succeed."""
    result = symloom(*args, **options)
    equal(result.status, 0, result.err)
    return result.out


def terminal():
    """Both sides of a new terminal. Where there are none, as in a bare chroot, root makes some (devpts(5), ioctl_tty(2))."""
    try:
        return pty.openpty()
    except OSError:
        set_lock, get_peer = 0x40045431, 0x5441
        with tempfile.TemporaryDirectory(prefix="symloom-pts-") as place:
            subprocess.run(["mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0600", "devpts", place], check=True)
            try:
                ours = os.open(os.path.join(place, "ptmx"), os.O_RDWR | os.O_NOCTTY)
                fcntl.ioctl(ours, set_lock, struct.pack("i", 0))
                return ours, fcntl.ioctl(ours, get_peer, os.O_RDWR | os.O_NOCTTY)
            finally:
                subprocess.run(["umount", "--lazy", place], check=True)


def linked(work, name):
    path = os.path.join(work, name)
    os.symlink(SYMLOOM, path)
    return path


def equal(got, wanted, about=""):
    if got != wanted:
        raise AssertionError(f"got      {got!r}\nexpected {wanted!r}\n{about}")


def contains(text, *parts):
    for part in parts:
        if part not in text:
            raise AssertionError(f"{part!r} is not in\n{text[:4000]}")


# outer (5) inlines mid (3), which inlines inner (1)
SOURCE = """static inline __attribute__((always_inline)) void inner(int x) { sink += x * 3; sink ^= 5; }

static inline __attribute__((always_inline)) void mid(int x) { sink--; inner(x + sink); }

void __attribute__((noinline)) outer(int x) { sink++; mid(x); sink--; }
int entry(int x) { outer(x); return x * sink; }
"""

CXX = """namespace app {
template <class T> struct box { T value; __attribute__((noinline)) T get(int x) { return value * x; } };
__attribute__((noinline)) int count(const box<int> &b, const char *text) { return b.value + text[0]; }
}
extern "C" int entry2(int x) { app::box<int> b{x}; return b.get(x) + app::count(b, "a"); }
"""


class Files:
    """Debug files of one program, in `src` below the work directory."""

    def __init__(self, work):
        self.dir = os.path.join(work, "src")
        os.mkdir(self.dir)
        os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")  # nothing is left with who runs the tests
        for name, text in {"t.c": SOURCE, "u.cc": CXX}.items():
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)
        self.made = {}

    def run(self, command):
        run = subprocess.run(command, shell=True, cwd=self.dir, capture_output=True, text=True, timeout=DEADLINE)
        if run.returncode != 0:
            raise AssertionError(f"{command}\n{run.stderr}")
        return run.stdout

    def get(self, name):
        """Path of a file, made when it is first wanted."""
        if name not in self.made:
            self.run(COMMANDS[name])
            self.made[name] = os.path.join(self.dir, name)
        return self.made[name]

    def address(self, name, symbol):
        for line in self.run(f"nm {self.get(name)}").splitlines():
            if line.split()[-1] == symbol:
                return int(line.split()[0], 16)
        raise AssertionError(f"no symbol {symbol} in {name}")


CC = "gcc -g -O2 -fdebug-prefix-map=$PWD=/src -Dsink=sink -include sink.h"
HEADER = "printf 'extern volatile int sink;\\n' >sink.h; printf 'volatile int sink;\\n' >sink.c"
MAIN = "printf 'int entry(int);int entry2(int);int main(void) { return entry(1) + entry2(2); }\\n' >main.c"
MSVC = "-fno-rtti -fno-exceptions -ffreestanding -fno-builtin -g -gcodeview -O1 -include sink.h"

COMMANDS = {
    # C and C++, with and without position independence, 64 and 32 bits
    "t": f"{HEADER}; {MAIN}; {CC} -c t.c && {CC} -c u.cc && {CC} -o t t.o u.o sink.c main.c -Wl,--build-id=sha1",
    "t.static": f"{HEADER}; {MAIN}; {CC} -no-pie -o t.static t.c u.cc sink.c main.c -Wl,--build-id=sha1",
    "t.32": f"{HEADER}; i686-w64-mingw32-gcc -g -O2 -include sink.h -shared -o t.32 t.c sink.c",
    "t.mingw": f"{HEADER}; x86_64-w64-mingw32-gcc -g -O2 -include sink.h -shared -o t.mingw t.c sink.c",
    "t.wasm": f"{HEADER}; for f in t sink; do clang-14 --target=wasm32 -g -gdwarf-4 -O1 -include sink.h -c -o $f.wo $f.c || exit; "
              "done; wasm-ld-14 --no-entry --export-all --allow-undefined -o t.wasm t.wo sink.wo",
    "t.fat": f"{HEADER}; for a in x86_64 arm64; do clang-14 --target=$a-apple-macos11 -g -gdwarf-4 -O1 -include sink.h -c -o $a.o t.c && "
             "clang-14 --target=$a-apple-macos11 -c -o $a.sink.o sink.c && "
             "ld64.lld-14 -platform_version macos 11 11 -arch $a -dylib -undefined dynamic_lookup -o $a.dylib $a.o $a.sink.o && "
             "dsymutil-14 --flat -o $a.dwarf $a.dylib || exit; done; "
             "llvm-lipo-14 -create x86_64.dwarf arm64.dwarf -output t.fat && "
             "mkdir -p app.dSYM/Contents/Resources/DWARF && cp t.fat app.dSYM/Contents/Resources/DWARF/app",
    "t.exe": f"{HEADER}; for f in t.c u.cc sink.c; do clang-14 --target=x86_64-pc-windows-msvc {MSVC} -c -o $f.obj $f || exit; done; "
             "lld-link-14 /nodefaultlib /entry:entry /subsystem:console /debug /opt:noref /opt:noicf /out:t.exe t.c.obj u.cc.obj sink.c.obj",
}
