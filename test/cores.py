"""ELF core files for tests, written part by part (elf(5); struct elf_prstatus of linux/elfcore.h)."""
import os, re, resource, socket, struct, subprocess, tempfile

X86, MIPS, ARM, AMD64, ARM64, RISCV = 3, 8, 40, 62, 183, 243
NT_PRSTATUS, NT_PRPSINFO, NT_AUXV, NT_FILE, NT_SIGINFO = 1, 3, 6, 0x46494C45, 0x53494749
AT_PHDR, AT_PHNUM, AT_ENTRY, AT_EXECFN, AT_VDSO = 3, 5, 9, 31, 33
R, W, X = 4, 2, 1

# The registers in the order of pr_reg; "-": others.
REGISTERS = {
    (AMD64, 64): "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi - rip - - rsp - - - - - - -".split(),
    (X86, 32): "ebx ecx edx esi edi ebp eax - - - - - eip - eflags esp -".split(),
    (ARM64, 64): [f"x{i}" for i in range(29)] + "fp lr sp pc -".split(),
    (ARM, 32): [f"r{i}" for i in range(11)] + "fp r12 sp lr pc - -".split(),
    (RISCV, 64): "pc ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6".split(),
}


class Core:
    """`notes`: (owner, type, contents); `segments`: (address, size in memory, flags, bytes in the file)."""

    def __init__(self, machine=AMD64, bits=64, order="<"):
        self.machine, self.bits, self.order = machine, bits, order
        self.notes, self.segments = [], []

    def pack(self, form, *values):
        return struct.pack(self.order + form.replace("W", "Q" if self.bits == 64 else "I"), *values)

    def note(self, owner, kind, contents):
        def padded(data):
            return data + b"\0" * (-len(data) % 4)
        name = owner.encode() + b"\0"
        return self.pack("III", len(name), len(contents), kind) + padded(name) + padded(contents)

    def thread(self, id, registers, signal=0):
        values = b"".join(self.pack("W", registers.get(name, 0)) for name in REGISTERS[self.machine, self.bits])
        before = 112 if self.bits == 64 else 72
        status = bytearray(before)
        struct.pack_into(self.order + "H", status, 12, signal)
        struct.pack_into(self.order + "I", status, 32 if self.bits == 64 else 24, id)
        self.notes.append(("CORE", NT_PRSTATUS, bytes(status) + values + b"\0" * 8))
        return self

    def siginfo(self, signal, code, address):
        head = self.pack("III", signal, 0, code & 0xFFFFFFFF) + (b"\0" * 4 if self.bits == 64 else b"") + self.pack("W", address)
        self.notes.append(("CORE", NT_SIGINFO, head + b"\0" * (128 - len(head))))
        return self

    def auxv(self, pairs):
        self.notes.append(("CORE", NT_AUXV, b"".join(self.pack("WW", *pair) for pair in pairs)))
        return self

    def files(self, rows, page=4096):
        """`rows`: (begin, end, offset in pages, name)."""
        entries = b"".join(self.pack("WWW", begin, end, offset) for begin, end, offset, _ in rows)
        names = b"".join(name.encode() + b"\0" for *_, name in rows)
        self.notes.append(("CORE", NT_FILE, self.pack("WW", len(rows), page) + entries + names))
        return self

    def memory(self, address, size, flags, data=b""):
        self.segments.append((address, size, flags, data))
        return self

    def header(self, kind, count):
        ident = b"\x7fELF" + bytes([self.bits // 32, 1 if self.order == "<" else 2, 1]) + b"\0" * 9
        head, entry = (64, 56) if self.bits == 64 else (52, 32)
        return ident + self.pack("HHIWWWIHHHHHH", kind, self.machine, 1, 0, head, 0, 0, head, entry, count, 0, 0, 0)

    def segment(self, kind, flags, offset, address, size, memory):
        if self.bits == 64:
            return self.pack("IIQQQQQQ", kind, flags, offset, address, 0, size, memory, 4)
        return self.pack("IIIIIIII", kind, offset, address, 0, size, memory, flags, 4)

    def image(self, segments, build_id=b"", more=b""):
        """The first page of a program or library: `segments` (flags, offset, address, size, size in memory) and its notes."""
        notes = (self.note("GNU", 3, build_id) if build_id else b"") + more
        head, entry = (64, 56) if self.bits == 64 else (52, 32)
        at = head + (len(segments) + 1) * entry
        rows = b"".join(self.segment(1, flags, offset, address, size, memory) for flags, offset, address, size, memory in segments)
        return self.header(3, len(segments) + 1) + rows + self.segment(4, R, at, at, len(notes), len(notes)) + notes

    def done(self):
        notes = b"".join(self.note(*note) for note in self.notes)
        head, entry = (64, 56) if self.bits == 64 else (52, 32)
        at = head + (len(self.segments) + 1) * entry
        rows = self.segment(4, 0, at, 0, len(notes), 0)
        at += len(notes)
        parts = [notes]
        for address, size, flags, contents in self.segments:
            rows += self.segment(1, flags, at, address, len(contents), size)
            parts.append(contents)
            at += len(contents)
        return self.header(4, len(self.segments) + 1) + rows + b"".join(parts)


# ---- of programs ----

NULL = r"""
#include <stddef.h>
static int inner(volatile int *p) { return *p + 1; }
__attribute__((noinline)) static int middle(volatile int *p) { return inner(p) + 2; }
int main(int argc, char **argv) { volatile int *p = argc > 5 ? &argc : NULL; return middle(p) + 3; }
"""
THREADS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_barrier_t all;
static volatile int waiting;
__attribute__((noinline)) static void wait_here(int depth)
{
    if (depth)
        wait_here(depth - 1);
    else {
        pthread_barrier_wait(&all);
        __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
        for (;;)
            pause();
    }
    __asm__ volatile("");
}
static void *work(void *arg) { wait_here((int)(long)arg); return NULL; }
int main(int argc, char **argv)
{
    pthread_t thread;
    pthread_barrier_init(&all, NULL, 8);
    for (long i = 0; i < 7; i++)
        pthread_create(&thread, NULL, work, (void *)i);
    pthread_barrier_wait(&all);
    while (waiting < 7)
        sched_yield();
    abort();
}
"""


def build(work, source, name, *flags, compiler="gcc"):
    with open(os.path.join(work, name + ".c"), "w") as f:
        f.write(source)
    subprocess.run([compiler, "-g", "-O1", "-w", "-Wl,--build-id=sha1", *flags, "-o", name, name + ".c"], cwd=work, check=True)
    return os.path.join(work, name)


def by_gdb(program, work):
    """The core that gdb's gcore writes when the program has crashed."""
    path = os.path.join(work, os.path.basename(program) + ".gcore")
    subprocess.run(["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "run", "-ex", f"gcore {path}", program],
                   cwd=work, check=True, capture_output=True, timeout=120)
    return path


def by_kernel(program, work):
    """The core that the kernel writes when the program crashes; where it gives cores to another program, that of gdb."""
    with open("/proc/sys/kernel/core_pattern") as f:
        pattern = f.read().strip()
    if pattern.startswith(("|", "/")):
        return by_gdb(program, work)
    place = tempfile.mkdtemp(dir=work)
    done = subprocess.run(["sh", "-c", 'ulimit -c unlimited && exec "$0"', program], cwd=place, timeout=60, stderr=subprocess.DEVNULL)
    found = os.listdir(place)
    if done.returncode >= 0 or len(found) != 1:
        raise AssertionError(f"{program} ended with {done.returncode}, and left {found}")
    return os.path.join(place, found[0])


def by_qemu(program, work, runner, root=None):
    """The core that qemu-user writes of a program for another processor."""
    place = tempfile.mkdtemp(dir=work)
    subprocess.run([runner, *(["-L", root] if root else []), program], cwd=place, timeout=60, capture_output=True,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
    found = [name for name in os.listdir(place) if name.startswith("qemu_")]
    if len(found) != 1:
        raise AssertionError(f"{runner} left {os.listdir(place)}")
    return os.path.join(place, found[0])


def by_debugger(program, work, runner):
    """A core made of what a debugger reads of a program that crashed in qemu-user: for processors of which that writes no cores. As the
    kernel does, it leaves out the code. Returns it with the names of the frames that the debugger finds."""
    registers = REGISTERS[RISCV, 64]
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    stack, page = os.path.join(work, "stack"), os.path.join(work, "page")
    begin = int(re.search(r"LOAD +0x0+ 0x([0-9a-f]+)", subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout).group(1), 16) & ~4095
    emulator = subprocess.Popen([runner, "-g", str(port), program], stderr=subprocess.DEVNULL)
    try:
        printed = subprocess.run(["gdb-multiarch", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set tcp connect-timeout 60",
                                  "-ex", f"target remote 127.0.0.1:{port}", "-ex", "continue", "-ex", "bt",
                                  *[word for name in registers for word in ("-ex", f"printf \"reg {name} %lu\\n\", ${name}")],
                                  "-ex", f"dump binary memory {stack} $sp $sp+1024", "-ex", f"dump binary memory {page} {begin} {begin}+4096", program],
                                 capture_output=True, text=True, timeout=120, check=True).stdout
    finally:
        emulator.kill()
        emulator.wait()
    values = {name: int(value) for name, value in re.findall(r"^reg (\w+) (\d+)$", printed, re.M)}
    core = Core(RISCV).thread(7, values, 11).siginfo(11, 1, 0).files([(begin, begin + 0x100000, 0, program)])
    with open(page, "rb") as f:
        core.memory(begin, 0x100000, R | X, f.read())
    with open(stack, "rb") as f:
        core.memory(values["sp"], 1024, R | W, f.read())
    path = os.path.join(work, os.path.basename(program) + ".core")
    with open(path, "wb") as f:
        f.write(core.done())
    return path, of_backtrace(printed)


def of_backtrace(printed):
    """The function names of gdb's `bt`, the innermost first. Before it gdb prints the frame where the program stopped."""
    return re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\S+) \(", printed[printed.rindex("#0 "):], re.M)


def of_gdb(core, program, debugger="gdb"):
    """The function names that gdb finds, up to `main`."""
    done = subprocess.run([debugger, "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "bt", program, core],
                          capture_output=True, text=True, timeout=60)
    return of_backtrace(done.stdout)


def of_eu_stack(core, program):
    """The function names that elfutils finds: by thread, the innermost first."""
    printed = subprocess.run(["eu-stack", "--core", core, "-e", program, "-i"], capture_output=True, text=True, timeout=60,
                             env={**os.environ, "DEBUGINFOD_URLS": ""}).stdout
    stacks, stack = {}, None
    for line in printed.splitlines():
        thread, frame = re.match(r"TID (\d+):", line), re.match(r"#\d+\s+0x[0-9a-f]+(?: - 1)?\s*(\S*)", line)
        if thread:
            stack = stacks.setdefault(int(thread.group(1)), [])
        elif frame:
            stack.append(frame.group(1).split("@")[0])
    return stacks
