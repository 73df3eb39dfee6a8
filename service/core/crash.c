/* The crash report: the signal handler that writes it, and its lines. */
#include "core/crash.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "core/build.h"
#include "core/fiber.h"
#include "core/journal.h"
#include "core/log.h"

/* STACK_BYTES: size of a thread's alternate signal stack. MAX_ID: bytes of a build id. PATIENCE_S: alarm(2) ends the process when the crash
 * report takes longer, e.g. because another thread holds a lock that it needs. */
enum { STACK_BYTES = 64 * 1024, MAX_FRAMES = 64, MAX_MODULES = 64, MAX_ID = 20, PATIENCE_S = 10, MAX_LINE = 512 };

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGILL, "SIGILL"},
               {SIGFPE, "SIGFPE"},   {SIGQUIT, "SIGQUIT"}, {SIGBUS, "SIGBUS"}};
enum { SIGNALS = sizeof signals / sizeof *signals };

struct crash_module {
    uintptr_t base, begin, end;
    char path[160];
    uint8_t id[MAX_ID];
    size_t id_size;
    bool shown; /* an address in the report lies in this module, so the report lists it */
};

static struct {
    bool open;
    pid_t loop_thread;
    atomic_int thread; /* id of the thread that writes the report; 0 = none */
    struct sigaction before[SIGNALS];
    struct crash_module modules[MAX_MODULES];
    size_t module_count;
} crash;

/* ---- lines ---- */
struct crash_line {
    char text[MAX_LINE];
    size_t size;
};

/* Adds text to the line, cut where the line is full; one byte is left for the line end that crash_put adds. */
static void add_bytes(struct crash_line *line, const char *text, size_t size)
{
    size = size < MAX_LINE - 1 - line->size ? size : MAX_LINE - 1 - line->size;
    memcpy(line->text + line->size, text, size);
    line->size += size;
}

static void crash_add(struct crash_line *line, const char *text)
{
    add_bytes(line, text, strlen(text));
}

/* Appends a number in the given base (10 or 16) with at least `width` digits, and at least one. Not by printf, which is not
 * async-signal-safe. */
static void crash_add_number(struct crash_line *line, uint64_t value, unsigned base, unsigned width)
{
    char digits[24];
    size_t at = sizeof digits;
    for (; value || width || at == sizeof digits; value /= base, width -= width > 0)
        digits[--at] = "0123456789abcdef"[value % base];
    add_bytes(line, digits + at, sizeof digits - at);
}

/* Writes the line to both descriptors (-1 = none) and empties it. Uses nothing but write(2), as the heap may be damaged. */
static void crash_put(const int fds[2], struct crash_line *line)
{
    line->text[line->size++] = '\n';
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0 && write(fds[i], line->text, line->size) < 0)
            continue; /* nowhere to report this */
    line->size = 0;
}

/* Reads the GNU build id from the notes of a loaded module, at address `at`; a damaged note ends the reading. In each note, name and
 * contents are padded to 4 bytes (+ 3, & ~3). */
static void take_notes(struct crash_module *module, uintptr_t at, size_t size)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
        size_t name = (note->n_namesz + 3u) & ~3u, all = sizeof *note + name + ((note->n_descsz + 3u) & ~3u);
        if (all > size)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= MAX_ID) {
            memcpy(module->id, (const uint8_t *)(note + 1) + name, note->n_descsz);
            module->id_size = note->n_descsz;
        }
        at += all;
        size -= all;
    }
}

/* Callback of dl_iterate_phdr(3), called at the start because dl_iterate_phdr takes a lock: records address range, path and build id of a
 * loaded module for a later crash report. Two modules have no name: the first one, which is the program, and the vDSO. */
static int take_module(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (crash.module_count == MAX_MODULES)
        return 1; /* ends the iteration */
    struct crash_module *module = &crash.modules[crash.module_count++];
    *module = (struct crash_module){.base = info->dlpi_addr, .begin = UINTPTR_MAX};
    /* module_count is now 1 for the program itself */
    if (info->dlpi_name[0])
        strncpy(module->path, info->dlpi_name, sizeof module->path - 1);
    else if (crash.module_count > 1 || readlink("/proc/self/exe", module->path, sizeof module->path - 1) <= 0)
        strncpy(module->path, crash.module_count > 1 ? "[vdso]" : "symloom", sizeof module->path - 1);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD) {
            module->begin = begin < module->begin ? begin : module->begin;
            module->end = begin + part->p_memsz > module->end ? begin + part->p_memsz : module->end;
        } else if (part->p_type == PT_NOTE) {
            take_notes(module, begin, part->p_memsz);
        }
    }
    return 0;
}

/* Returns the loaded module that contains the address; NULL if there is none. */
static struct crash_module *module_at(uintptr_t address)
{
    for (size_t i = 0; i < crash.module_count; i++)
        if (address >= crash.modules[i].begin && address < crash.modules[i].end)
            return &crash.modules[i];
    return NULL;
}

/* ---- the report ---- */
/* Writes the first line: version, signal, address, process, thread and request. */
static void write_head(const int fds[2], int number, const siginfo_t *info)
{
    struct crash_line line = {.size = 0};
    crash_add(&line, "symloom " BUILD_VERSION " (commit ");
    crash_add(&line, build_commit());
    crash_add(&line, ") dies: signal ");
    crash_add_number(&line, (uint64_t)number, 10, 0);
    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i].number == number) {
            crash_add(&line, " (");
            crash_add(&line, signals[i].name);
            crash_add(&line, ")");
        }
    if (info->si_code > 0) { /* raised by the kernel for an instruction, not sent by kill(2) or raise(3) */
        crash_add(&line, " at address 0x");
        crash_add_number(&line, (uintptr_t)info->si_addr, 16, 0);
        if (fiber_overflowed(info->si_addr))
            crash_add(&line, ", fiber stack overflow");
    }
    crash_add(&line, ", process ");
    crash_add_number(&line, (uint64_t)getpid(), 10, 0);
    crash_add(&line, ", thread ");
    crash_add_number(&line, (uint64_t)gettid(), 10, 0);
    struct sl_str request = log_request_id();
    if (request.size) {
        crash_add(&line, ", request ");
        add_bytes(&line, request.data, request.size);
    }
    crash_put(fds, &line);
}

/* Writes a line for each thread that was working on something, from the journal's notes in memory. */
static void write_work(const int fds[2])
{
    struct crash_line line = {.size = 0};
    const struct journal_work *work;
    for (unsigned i = 0; journal_slot_work(i, &work); i++) { /* a slot for each thread */
        if (!work)                                           /* the thread is idle */
            continue;
        crash_add(&line, "in work: ");
        crash_add(&line, work->kind);
        crash_add(&line, " ");
        crash_add(&line, work->key);
        crash_add(&line, " ");
        crash_add(&line, work->about);
        crash_add(&line, work == journal_current() ? " (this thread)" : "");
        crash_put(fds, &line);
    }
}

struct crash_stack_walk {
    const int *fds;
    unsigned count;
};

/* Callback of _Unwind_Backtrace: writes one frame of the stack, and marks its module for write_modules. Ends the walk at address 0 or after
 * MAX_FRAMES frames. */
static _Unwind_Reason_Code write_frame(struct _Unwind_Context *context, void *arg)
{
    struct crash_stack_walk *walk = arg;
    struct crash_line line = {.size = 0};
    int interrupted = 0; /* 1: `address` is the interrupted instruction, not a return address */
    uintptr_t address = _Unwind_GetIPInfo(context, &interrupted);
    if (!address || walk->count++ == MAX_FRAMES)
        return _URC_END_OF_STACK;
    if (!interrupted) /* a return address may belong to the next line or, after a noreturn call, to the next function */
        address--;
    struct crash_module *module = module_at(address);
    crash_add(&line, "0x");
    crash_add_number(&line, address, 16, 16);
    if (module) {
        const char *slash = strrchr(module->path, '/');
        module->shown = true;
        crash_add(&line, " ");
        crash_add(&line, slash ? slash + 1 : module->path);
        crash_add(&line, "+0x");
        crash_add_number(&line, address - module->base, 16, 0);
    }
    crash_put(walk->fds, &line);
    return _URC_NO_REASON;
}

/* Writes base address, build id and path of each module that has a frame in the report, so that the addresses can be symbolicated. */
static void write_modules(const int fds[2])
{
    struct crash_line line = {.size = 0};
    for (size_t i = 0; i < crash.module_count; i++) {
        const struct crash_module *module = &crash.modules[i];
        if (!module->shown)
            continue;
        crash_add(&line, "module 0x");
        crash_add_number(&line, module->base, 16, 16);
        crash_add(&line, " build-id ");
        for (size_t k = 0; k < module->id_size; k++)
            crash_add_number(&line, module->id[k], 16, 2);
        crash_add(&line, " ");
        crash_add(&line, module->path);
        crash_put(fds, &line);
    }
}

void crash_report(int number, const siginfo_t *info)
{
    int nobody = 0, self = gettid();
    if (!crash.open)
        return;
    if (!atomic_compare_exchange_strong(&crash.thread, &nobody, self)) {
        /* the exchange has failed and has set `nobody` to the thread that writes the report, which ends the process */
        while (nobody != self)
            pause();
        return; /* this thread crashed again while it wrote the report: end now */
    }
    /* ends the process if the report hangs, e.g. at a lock of the unwinder that another thread holds */
    alarm(PATIENCE_S);
    int fds[2] = {STDERR_FILENO, log_report_fd()}; /* the second: the log file, -1 = none */
    struct crash_stack_walk walk = {fds, 0};
    journal_note_end(number, info->si_code > 0); /* for the process that starts next */
    write_head(fds, number, info);
    write_work(fds);
    _Unwind_Backtrace(write_frame, &walk);
    write_modules(fds);
    log_last_lines(); /* those that the log's writer thread has not written yet */
    alarm(0);
}

/* The signal handler: writes the report, restores the signal's previous action, and lets the signal happen again, which ends the
 * process. */
static void on_fatal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code == SI_USER && gettid() != crash.loop_thread) { /* sent by kill(2): report the loop's stack */
        tgkill(getpid(), crash.loop_thread, number);
        return;
    }
    crash_report(number, info);
    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i].number == number)
            sigaction(number, &crash.before[i], NULL);
    if (info->si_code <= 0) /* sent by a process; after a fault, the instruction is executed again and faults again */
        raise(number);
}

/* Callback of _Unwind_Backtrace that ends the walk at once. */
static _Unwind_Reason_Code stop_walk(struct _Unwind_Context *context, void *arg)
{
    (void)context, (void)arg;
    return _URC_END_OF_STACK;
}

/* A thread that has an alternate stack already keeps it: the sanitizers install one. */
void crash_thread(void)
{
    stack_t old, stack = {.ss_size = STACK_BYTES};
    if (!crash.open || sigaltstack(NULL, &old) != 0 || !(old.ss_flags & SS_DISABLE))
        return;
    stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack.ss_sp != MAP_FAILED)
        sigaltstack(&stack, NULL);
}

void crash_open(void)
{
    /* SA_NODEFER: if the handler itself crashes, it runs once more, and ends the process */
    struct sigaction action = {.sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    crash.open = true;
    crash.loop_thread = gettid();
    dl_iterate_phdr(take_module, NULL);
    _Unwind_Backtrace(stop_walk, NULL); /* the unwinder's first use initializes it: not safe in a handler */
    crash_thread();
    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i].number != SIGBUS) /* has a handler already (sigbus_guard.c), which calls crash_report */
            sigaction(signals[i].number, &action, &crash.before[i]);
}
