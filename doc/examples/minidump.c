/* Writes `crash.dmp`, a minidump, when the program that this file is linked into crashes. Real programs link Crashpad, Breakpad or
 * sentry-native for that; this is the least that a reader of minidumps needs: the system, the modules with their build ids, and the
 * registers and the stack of the thread that crashed. For x86-64 Linux.
 *
 * A minidump is a header, a directory of streams, and the streams. Offsets count from the beginning of the file. */
#if !defined(__x86_64__) || !defined(__linux__)
#error "this example knows the registers of x86-64 Linux only"
#endif
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREAD_LIST = 3, MODULE_LIST = 4, EXCEPTION = 6, SYSTEM_INFO = 7, STREAMS = 4 };
enum { AMD64 = 9, LINUX = 0x8201, CONTEXT_FULL = 0x10000b };
enum { MOST_MODULES = 64, STACK_BYTES = 64 << 10, RED_ZONE = 128 };

struct location {
    uint32_t size, offset;
};
struct directory {
    uint32_t type;
    struct location where;
};
struct header {
    uint32_t magic, version, stream_count, directory, checksum, time;
    uint64_t flags;
};
struct system_info {
    uint16_t processor, level, revision;
    uint8_t processors, product;
    uint32_t major, minor, build, platform, service_pack;
    uint16_t suite, reserved;
    uint8_t cpu[24];
};
struct __attribute__((packed)) module {
    uint64_t base;
    uint32_t size, checksum, time, name, version[13];
    struct location build_id, other;
    uint64_t reserved[2];
};
struct __attribute__((packed)) thread {
    uint32_t id, suspended, priority_class, priority;
    uint64_t environment, stack;
    struct location stack_bytes, context;
};
struct exception {
    uint32_t thread, padding, code, flags;
    uint64_t record, address;
    uint32_t parameters, padding2;
    uint64_t parameter[15];
    struct location context;
};
struct context {
    uint64_t home[6];
    uint32_t flags, mxcsr;
    uint16_t segment[6];
    uint32_t eflags;
    uint64_t debug[6], rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15, rip;
    uint8_t rest[976];
};

static char buffer[256 << 10]; /* the file: a handler of signals must not allocate */
static uint32_t used;
static char program[PATH_MAX];
static char signal_stack[64 << 10];

static struct location add(const void *data, uint32_t size)
{
    struct location where = {size, used};
    memcpy(buffer + used, data, size);
    used += (size + 7) & ~7u;
    return where;
}

/* A name as minidumps have it: its length in bytes, then UTF-16. */
static uint32_t add_name(const char *name)
{
    uint16_t text[2 + PATH_MAX] = {0};
    uint32_t length = (uint32_t)strnlen(name, PATH_MAX - 1), bytes = length * 2;
    memcpy(text, &bytes, 4);
    for (uint32_t i = 0; i < length; i++)
        text[2 + i] = (uint8_t)name[i];
    return add(text, bytes + 6).offset;
}

struct modules {
    uint32_t count;
    struct module list[MOST_MODULES];
};

/* The build id from the note of the linker, in the record that Breakpad calls `BpEL` (a number, so it is "LEpB" in the file). */
static struct location add_build_id(const char *at, const char *end)
{
    while (at + 12 <= end) {
        uint32_t note[3], padded[2];
        memcpy(note, at, sizeof note);
        for (int i = 0; i < 2; i++)
            padded[i] = (note[i] + 3) & ~3u;
        if (note[2] == 3 && note[0] == 4 && note[1] <= 64 && memcmp(at + 12, "GNU", 4) == 0) {
            char record[4 + 64] = "LEpB";
            memcpy(record + 4, at + 16, note[1]);
            return add(record, 4 + note[1]);
        }
        at += 12 + padded[0] + padded[1];
    }
    return (struct location){0};
}

static int add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct modules *modules = arg;
    struct module module = {0};
    uint64_t begin = UINT64_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t address = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD) {
            begin = address < begin ? address & ~4095ull : begin;
            end = address + segment->p_memsz;
        }
        if (segment->p_type == PT_NOTE && module.build_id.size == 0)
            module.build_id = add_build_id((const char *)address, (const char *)address + segment->p_memsz);
    }
    if (begin >= end || modules->count == MOST_MODULES)
        return 0;
    module.base = begin;
    module.size = (uint32_t)(end - begin);
    module.name = add_name(modules->count == 0 ? program : info->dlpi_name);
    modules->list[modules->count++] = module;
    return 0;
}

static struct location add_context(const greg_t *registers)
{
    struct context context = {.flags = CONTEXT_FULL, .eflags = (uint32_t)registers[REG_EFL]};
    static const int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8,
                                REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (int i = 0; i < 17; i++)
        (&context.rax)[i] = (uint64_t)registers[order[i]];
    return add(&context, sizeof context);
}

static void write_dump(int number, siginfo_t *info, void *arg)
{
    const greg_t *registers = ((ucontext_t *)arg)->uc_mcontext.gregs;
    uint32_t thread_id = (uint32_t)gettid();
    struct directory directory[STREAMS];
    used = sizeof(struct header) + sizeof directory;

    struct system_info system = {.processor = AMD64, .processors = 1, .platform = LINUX};
    struct utsname kernel;
    if (uname(&kernel) == 0)
        sscanf(kernel.release, "%u.%u.%u", &system.major, &system.minor, &system.build);
    system.service_pack = add_name("");
    directory[0] = (struct directory){SYSTEM_INFO, add(&system, sizeof system)};

    static struct modules modules;
    dl_iterate_phdr(add_module, &modules);
    directory[1] = (struct directory){MODULE_LIST, add(&modules, 4 + modules.count * (uint32_t)sizeof(struct module))};

    struct __attribute__((packed)) {
        uint32_t count;
        struct thread thread;
    } threads = {1, {.id = thread_id, .stack = (uint64_t)registers[REG_RSP] - RED_ZONE}};
    int memory = open("/proc/self/mem", O_RDONLY);
    ssize_t stack_bytes = pread(memory, buffer + used, STACK_BYTES, (off_t)threads.thread.stack);
    threads.thread.stack_bytes = (struct location){stack_bytes > 0 ? (uint32_t)stack_bytes : 0, used};
    used += threads.thread.stack_bytes.size;
    threads.thread.context = add_context(registers);
    directory[2] = (struct directory){THREAD_LIST, add(&threads, sizeof threads)};

    struct exception exception = {.thread = thread_id,
                                  .code = (uint32_t)number,
                                  .flags = (uint32_t)info->si_code,
                                  .address = (uint64_t)info->si_addr,
                                  .context = threads.thread.context};
    directory[3] = (struct directory){EXCEPTION, add(&exception, sizeof exception)};

    struct header header = {0x504d444d, 0xa793, STREAMS, sizeof header, 0, (uint32_t)time(NULL), 0};
    memcpy(buffer, &header, sizeof header);
    memcpy(buffer + sizeof header, directory, sizeof directory);
    int file = open("crash.dmp", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (write(file, buffer, used) == (ssize_t)used)
        (void)!write(STDERR_FILENO, "crashed; see crash.dmp\n", 23);
    _exit(1);
}

__attribute__((constructor)) static void watch_for_crashes(void)
{
    (void)!readlink("/proc/self/exe", program, sizeof program - 1);
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = write_dump, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
}
