"""Minidumps for tests: written stream by stream, or of a program that crashed."""
import os, struct, subprocess

WINDOWS, MACOS, LINUX = 2, 0x8101, 0x8201
X86, MIPS, ARM, AMD64, ARM64, MIPS64, RISCV32, RISCV64 = 0, 1, 5, 9, 12, 0x8004, 0x8005, 0x8006

RISCV = "pc ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6".split()

# Offset of each register in the processors' CONTEXT records, and what marks the record.
CONTEXTS = {
    AMD64: (1232, 48, 0x10000B, 8, {name: 120 + 8 * i for i, name in enumerate(
        "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15 rip".split())} | {"cs": 56, "eflags": 68}),
    ARM: (368, 0, 0x40000000, 4, {f"r{i}": 4 + 4 * i for i in range(16)} | {"cpsr": 68}),
    ARM64: (912, 0, 0x400000, 8, {f"x{i}": 8 + 8 * i for i in range(31)} | {"sp": 256, "pc": 264}),
    MIPS: (600, 0, 0x40000, 8, {f"r{i}": 8 + 8 * i for i in range(32)} | {"pc": 312}),
    MIPS64: (600, 0, 0x80000, 8, {f"r{i}": 8 + 8 * i for i in range(32)} | {"pc": 312}),
    RISCV32: (268, 0, 0x800003, 4, {name: 8 + 4 * i for i, name in enumerate(RISCV)}),
    RISCV64: (528, 0, 0x8000003, 8, {name: 8 + 8 * i for i, name in enumerate(RISCV)}),
    X86: (716, 0, 0x1000F, 4, dict(edi=156, esi=160, ebx=164, edx=168, ecx=172, eax=176, ebp=180, eip=184, eflags=192, esp=196)),
}


def context(cpu, registers, order="<"):
    size, flags_at, flags, width, offsets = CONTEXTS[cpu]
    raw = bytearray(size)
    struct.pack_into(order + "I", raw, flags_at, flags)
    for name, value in registers.items():
        size_of_one = "H" if name == "cs" else "I" if name == "eflags" else "Q" if width == 8 else "I"
        struct.pack_into(order + size_of_one, raw, offsets[name], value)
    return raw


class Dump:
    """`threads`: (id, registers, stack address, stack bytes); `modules`: (address, size, name, CodeView bytes, time stamp);
    `environments`: addresses of Windows' thread environment blocks, by thread.
    `order`: of the bytes, as struct has it."""

    def __init__(self, cpu=AMD64, platform=LINUX, version=(6, 1, 0), text="", time=1521713273, order="<"):
        self.order, self.cpu, self.platform, self.version, self.text, self.time = order, cpu, platform, version, text, time
        self.data, self.streams = bytearray(32), []
        self.threads, self.modules, self.names, self.memory, self.environments = [], [], {}, [], {}
        self.exception = None

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def put(self, data):
        at = len(self.data)
        self.data += data
        return at

    def string(self, text):
        raw = text.encode("utf-16-le" if self.order == "<" else "utf-16-be")
        return self.put(self.pack("I", len(raw)) + raw)

    def stream(self, kind, data):
        self.streams.append((kind, len(data), self.put(data)))

    def context(self, registers):
        raw = context(self.cpu, registers, self.order)
        return len(raw), self.put(raw)

    def crash(self, thread, code, flags=0, address=0, parameters=(), registers=None):
        self.exception = (thread, code, flags, address, list(parameters), registers)
        return self

    def done(self):
        text = self.string(self.text)
        self.stream(7, self.pack("HHHBB5IHH24x", self.cpu, 0, 0, 1, 0, *self.version, self.platform, text, 0, 0))
        entries = b""
        for id, registers, address, stack in self.threads:
            context = self.context(registers)
            entries += self.pack("4I2Q4I", id, 0, 0, 0, self.environments.get(id, 0), address, len(stack), self.put(stack), *context)
        self.stream(3, self.pack("I", len(self.threads)) + entries)
        entries = b""
        for address, size, name, codeview, timestamp in self.modules:
            entries += self.pack("Q4I52x2I24x", address, size, 0, timestamp, self.string(name), len(codeview), self.put(codeview))
        self.stream(4, self.pack("I", len(self.modules)) + entries)
        if self.memory:
            entries = b"".join(self.pack("QII", address, len(data), self.put(data)) for address, data in self.memory)
            self.stream(5, self.pack("I", len(self.memory)) + entries)
        if self.names:
            entries = b"".join(self.pack("IQ", id, self.string(name)) for id, name in self.names.items())
            self.stream(24, self.pack("I", len(self.names)) + entries)
        if self.exception:
            thread, code, flags, address, parameters, registers = self.exception
            context = self.context(registers) if registers else (0, 0)
            self.stream(6, self.pack("IIIIQQII15QII", thread, 0, code, flags, 0, address, len(parameters), 0,
                                       *(parameters + [0] * 15)[:15], *context))
        directory = self.put(b"".join(self.pack("III", *s) for s in self.streams))
        struct.pack_into(self.order + "IIIII", self.data, 0, 0x504D444D, 0xA793, len(self.streams), directory, 0)
        struct.pack_into(self.order + "I", self.data, 20, self.time)
        return bytes(self.data)


def wow64(dump, thread, registers, environment, saved=None):
    """Puts into the dump's memory what 64-bit Windows has of a thread that runs 32-bit code with these registers; `saved` is where."""
    block = bytearray(0x1490)
    struct.pack_into("<Q", block, 0, environment + 0x2000)
    struct.pack_into("<Q", block, 0x1488, saved or environment + 0x1490)
    dump.environments[thread] = environment
    dump.memory.append((environment, bytes(block)))
    if registers is not None:
        dump.memory.append((saved or environment + 0x1490, struct.pack("<HH", 0, 0x14C) + context(X86, registers)))


def microdump(cpu, registers, stack_address, stack, modules, context_size=None, os="A", text="brand/product/device:7.1.1/N/1:user/keys",
              reason="0000000B SIGSEGV", address=0, gpu="UNKNOWN", tag="W/google-breakpad( 3745): "):
    """The lines of a microdump of Breakpad. `modules`: (address, size, debug id as Breakpad writes it, name). `reason`: may be None."""
    names = {X86: "x86", AMD64: "x86_64", ARM: "arm", ARM64: "arm64", MIPS: "mips", MIPS64: "mips64", RISCV32: "riscv32", RISCV64: "riscv64"}
    size, flags_at, flags, width, offsets = CONTEXTS[cpu]
    context = bytearray(context_size or size)
    struct.pack_into("<I", context, flags_at, flags if not context_size else 0x80000006)
    for name, value in registers.items():
        struct.pack_into("<Q" if width == 8 else "<I", context, offsets[name], value)
    digits = 16 if cpu in (AMD64, ARM64, MIPS64, RISCV64) else 8
    number = lambda value: f"{value:0{digits}X}"
    lines = ["-----BEGIN BREAKPAD MICRODUMP-----", "V App:1.2.3", f"O {os} {names[cpu]} 04 machine {text}", "P webview"]
    lines += [f"R {reason} {number(address)}"] if reason else []
    lines += [f"G {gpu}", f"S 0 {number(stack_address)} {number(stack_address)} {number(len(stack))}"]
    lines += [f"S {number(stack_address + at)} {stack[at:at + 384].hex().upper()}" for at in range(0, len(stack), 384)]
    lines += [f"C {context.hex().upper()}"]
    lines += [f"M {number(begin)} {number(0)} {number(module)} {id} {name}" for begin, module, id, name in modules]
    return [tag + line for line in lines + ["-----END BREAKPAD MICRODUMP-----"]]


def pdb70(guid, age, name):
    a, b, c, d, e = guid.split("-")
    return struct.pack("<4sIHH", b"RSDS", int(a, 16), int(b, 16), int(c, 16)) + bytes.fromhex(d + e) + struct.pack("<I", age) + name.encode() + b"\0"


def elf(build_id, order="<"):
    return struct.pack(order + "I", 0x4270454C) + bytes.fromhex(build_id)


def build_id(path):
    """Of an ELF file, by its note; empty when there is none."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    return next((line.split()[-1] for line in notes.splitlines() if "Build ID:" in line), "")


# What a crashing program runs in its signal handler: it writes registers, the stack and the mappings as they are, and which call of
# which function was made where, as the program itself noted with CALL. Each on a line of its own.
HANDLER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static volatile struct { const char *function; uint64_t line; } calls[64];
static volatile int depth_of_calls;
#define CALL() (calls[depth_of_calls].function = __func__, calls[depth_of_calls++].line = __LINE__)
#define RETURN() (depth_of_calls--)

static void copy_file(int to, const char *path)
{
    char data[4096];
    int from = open(path, O_RDONLY);
    for (ssize_t n; (n = read(from, data, sizeof data)) > 0;)
        write(to, data, n);
    close(from);
}

static void put(int out, uint64_t value)
{
    write(out, &value, 8);
}

static void put_calls(int out)
{
    put(out, depth_of_calls);
    for (int i = depth_of_calls; i-- > 0;) {
        char name[32] = "";
        strncpy(name, calls[i].function, sizeof name - 1);
        write(out, name, sizeof name);
        put(out, calls[i].line);
    }
}

#if defined __x86_64__ || defined __i386__
#define REGISTER(i) u->uc_mcontext.gregs[i]
#if defined __x86_64__
enum { REGISTERS = 17, SP = REG_RSP };
#else
enum { REGISTERS = 17, SP = REG_ESP };
#endif
#elif defined __arm__
#define REGISTER(i) (&u->uc_mcontext.arm_r0)[i]
enum { REGISTERS = 17, SP = 13 };
#elif defined __mips__
#define REGISTER(i) ((i) < 32 ? u->uc_mcontext.gregs[i] : u->uc_mcontext.pc)
enum { REGISTERS = 33, SP = 29 };
#elif defined __riscv
#define REGISTER(i) u->uc_mcontext.__gregs[i] /* pc has the place of x0 */
enum { REGISTERS = 32, SP = 2 };
#else
#define REGISTER(i) u->uc_mcontext.regs[i] /* sp and pc follow */
enum { REGISTERS = 33, SP = 31 };
#endif

extern void *__libc_stack_end;

static void on_crash(int number, siginfo_t *info, void *context)
{
    const ucontext_t *u = context;
    int out = open(getenv("CRASH_OUT"), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    uintptr_t sp = REGISTER(SP), end = (uintptr_t)__libc_stack_end;
    put(out, number);
    put(out, info->si_code);
    put(out, (uintptr_t)info->si_addr);
    put(out, sp);
    put(out, end - sp);
    put(out, REGISTERS);
    for (int i = 0; i < REGISTERS; i++)
        put(out, (uintptr_t)REGISTER(i));
    put_calls(out);
    write(out, (void *)sp, end - sp);
    copy_file(out, "/proc/self/maps");
    close(out);
    _exit(0);
}

__attribute__((constructor)) static void watch(void)
{
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    for (const int *s = (const int[]){SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGTRAP, 0}; *s; s++)
        sigaction(*s, &action, NULL);
}
"""


class Machine:
    """What compiles programs of a processor, and what runs them here; `registers` as its kernel numbers them."""

    def __init__(self, cpu, compiler, runner, registers, order="<"):
        self.cpu, self.compiler, self.runner, self.registers, self.order = cpu, compiler, runner, registers.split(), order


X86_64 = Machine(AMD64, ["gcc"], [], "r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip")
MACHINES = {
    "x86_64": X86_64,
    "x86": Machine(X86, ["gcc", "-m32"], ["qemu-i386"], "- - - - edi esi ebp esp ebx edx ecx eax - - eip - eflags"),
    "arm": Machine(ARM, ["arm-linux-gnueabihf-gcc"], ["qemu-arm", "-L", "/usr/arm-linux-gnueabihf"],
                   " ".join(f"r{i}" for i in range(16)) + " cpsr"),
    "arm64": Machine(ARM64, ["aarch64-linux-gnu-gcc"], ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
                     " ".join(f"x{i}" for i in range(31)) + " sp pc"),
    "mips": Machine(MIPS, ["mipsel-linux-gnu-gcc"], ["qemu-mipsel", "-L", "/usr/mipsel-linux-gnu"],
                    " ".join(f"r{i}" for i in range(32)) + " pc"),
    "mips big": Machine(MIPS, ["mips-linux-gnu-gcc"], ["qemu-mips", "-L", "/usr/mips-linux-gnu"],
                        " ".join(f"r{i}" for i in range(32)) + " pc", ">"),
    "mips64 big": Machine(MIPS64, ["mips64-linux-gnuabi64-gcc"], ["qemu-mips64", "-L", "/usr/mips64-linux-gnuabi64"],
                          " ".join(f"r{i}" for i in range(32)) + " pc", ">"),
    "mips64": Machine(MIPS64, ["mips64el-linux-gnuabi64-gcc"], ["qemu-mips64el", "-L", "/usr/mips64el-linux-gnuabi64"],
                      " ".join(f"r{i}" for i in range(32)) + " pc"),
    "riscv64": Machine(RISCV64, ["riscv64-linux-gnu-gcc"], ["qemu-riscv64", "-L", "/usr/riscv64-linux-gnu"], " ".join(RISCV)),
}


def mapped(maps):
    """Modules of /proc/self/maps: path to its first and last address."""
    found = {}
    for line in maps.splitlines():
        columns = line.split(None, 5)
        if len(columns) == 6 and columns[5].startswith("/"):
            begin, end = (int(x, 16) for x in columns[0].split("-"))
            low, high = found.get(columns[5], (begin, end))
            found[columns[5]] = (min(low, begin), max(high, end))
    return found


class Crash:
    """Of a program that has HANDLER in it. `calls`: function and line of each call that was made, the innermost first."""

    def __init__(self, program, work, *arguments, machine=X86_64):
        out = os.path.join(work, "crash.raw")
        subprocess.run([*machine.runner, program, *arguments], env={**os.environ, "CRASH_OUT": out}, timeout=60)
        with open(out, "rb") as f:
            self.raw = f.read()
        self.machine, self.at = machine, 0
        self.number, self.code, self.address, self.sp, size = self.take("5Q")
        values = self.take("%dQ" % self.take("Q"))
        self.registers = {name: value for name, value in zip(machine.registers, values) if name != "-"}
        self.calls = []
        for _ in range(*self.take("Q")):
            name, line = self.take("32sQ")
            self.calls.append((name.rstrip(b"\0").decode(), line))
        self.stack, self.maps = self.raw[self.at:self.at + size], self.raw[self.at + size:].decode()
        self.modules = [path for path in mapped(self.maps) if os.path.exists(path)]

    def take(self, form):
        form = self.machine.order + form
        values = struct.unpack_from(form, self.raw, self.at)
        self.at += struct.calcsize(form)
        return values

    def dump(self, threads=1):
        """Of several threads all are where the crashing one is."""
        return together([self] * threads)


def together(crashes):
    """One dump with a thread for each crash, of processes that were at the same addresses. The first is the one that crashed."""
    first = crashes[0]
    dump = Dump(cpu=first.machine.cpu, text="Linux 6.1 #1 SMP x86_64", version=(0, 0, 0), order=first.machine.order)
    dump.threads += [(1 + i, crash.registers, crash.sp, crash.stack) for i, crash in enumerate(crashes)]
    for path, (begin, end) in mapped(first.maps).items():
        if path in first.modules:
            dump.modules.append((begin, end - begin, path, elf(build_id(path), first.machine.order), 0))
    return dump.crash(1, first.number, first.code & 0xFFFFFFFF, first.address).done()


def of_crash(program, work, *arguments, threads=1):
    """The dump of a program's crash, and the paths of its modules."""
    crash = Crash(program, work, *arguments)
    return crash.dump(threads), crash.modules


def finished(streams, body):
    """A dump without strings and lists of its own: `streams`: (type, bytes); `body` follows the header."""
    data, directory = bytearray(32) + body, b""
    for kind, content in streams:
        directory += struct.pack("<III", kind, len(content), len(data))
        data += content
    struct.pack_into("<4sIIII", data, 0, b"MDMP", 0xA793, len(streams), len(data), 0)
    return bytes(data + directory)
