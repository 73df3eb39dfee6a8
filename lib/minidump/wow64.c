/* 32-bit programs on 64-bit Windows (WoW64), in dumps that a 64-bit program wrote.
 *
 * Each thread has two stacks. The dump's registers are mostly those of the 64-bit stack, which ends in wow64cpu.dll wherever the
 * program was, because the thread waits for the system there. The registers of the program itself are in one of two places:
 *
 *   - in the dump's own record, if its code segment is that of 32-bit code: the thread was running the program's code
 *   - in memory, if it is that of 64-bit code (Microsoft's documentation of WOW64_CONTEXT; winternl.h of Wine):
 *
 *         64-bit TEB + 0x1480 + 8 ──▶ slot 1 of its thread-local storage: u16 flags, u16 machine, WOW64_CONTEXT
 *
 * WOW64_CONTEXT is the CONTEXT of x86. The 64-bit TEB begins with the address of the 32-bit one. */
#include "minidump/impl.h"

#include <strings.h>

enum { X86 = 0, X86_SIZE = 716 };
enum { SEGMENT_AT = 56, SEGMENT_OF_32_BITS = 0x23 }; /* SegCs of amd64's CONTEXT; KGDT64_R3_CMCODE | 3 */
enum { SLOT_1 = 0x1480 + 8, CONTEXT_AT = 4 };

/* True if wow64.dll, which runs 32-bit programs, is among the modules (in any folder and spelling). */
static bool has_wow64_module(const struct sl_minidump *dump)
{
    static const char name[] = "wow64.dll";
    for (size_t i = 0; i < dump->crash.module_count; i++) {
        const struct sl_str file = dump->crash.modules[i].code_file;
        const char *end = file.size ? file.data + file.size : NULL;
        /* `sizeof name` counts the NUL, so it is the length of "\wow64.dll" */
        bool is_behind_folder = file.size >= sizeof name && end[-(ptrdiff_t)sizeof name] == '\\';
        if (is_behind_folder && strncasecmp(end - (sizeof name - 1), name, sizeof name - 1) == 0)
            return true;
    }
    return false;
}

/* True if the code segment in the context is that of 32-bit code. */
static bool runs_32_bit_code(const struct sl_minidump *dump, struct sl_bytes context)
{
    struct sl_reader r = dump_make_reader(dump, context);
    sl_reader_seek(&r, SEGMENT_AT);
    return sl_read_u16(&r) == SEGMENT_OF_32_BITS;
}

/* Returns the x86 CONTEXT that WoW64 saved in memory; data NULL if the dump does not have it. Slot 1 of the thread-local storage in the
 * 64-bit TEB (thread->environment) points to a structure of WoW64: two u16, then the CONTEXT. */
static struct sl_bytes saved_context(const struct sl_minidump *dump, const struct sl_minidump_thread *thread)
{
    uint64_t saved;
    bool has_slot = thread->environment && dump_memory_read(dump, thread->environment + SLOT_1, 8, &saved);
    const struct sl_minidump_memory *memory = has_slot ? sl_minidump_memory_at(dump, saved) : NULL;
    uint64_t at = memory ? saved - memory->address + CONTEXT_AT : 0;
    struct sl_bytes context = memory ? sl_bytes_slice(memory->bytes, at, X86_SIZE, NULL) : (struct sl_bytes){NULL, 0};
    return dump_is_context(dump, X86, context) ? context : (struct sl_bytes){NULL, 0};
}

/* Replaces the thread's 64-bit TEB by the 32-bit one, and its stack by the memory region that its 32-bit stack pointer is in. A TEB or
 * stack that the dump does not have is left empty. */
static void enter_32_bits(struct sl_minidump *dump, struct sl_minidump_thread *thread)
{
    struct sl_registers registers;
    struct sl_walk_numbers numbers;
    uint64_t environment;
    thread->family = SL_CPU_X86;
    /* the 64-bit TEB begins with the address of the 32-bit one */
    bool has_environment = thread->environment && dump_memory_read(dump, thread->environment, 8, &environment);
    thread->environment = has_environment && environment <= UINT32_MAX ? environment : 0;
    dump_context_read(dump, thread, &registers);
    sl_walk_numbers(SL_CPU_X86, &numbers);
    const struct sl_minidump_memory *stack = sl_minidump_memory_at(dump, registers.value[numbers.sp]);
    thread->stack = stack ? *stack : (struct sl_minidump_memory){.address = 0};
}

/* Replaces the registers and the stack of a thread by its 32-bit ones. Returns false if the dump does not have them, or if the budget is
 * used up; if only the stack is missing, the registers are replaced all the same. True, without changes, for a thread that crashed in
 * 64-bit code. */
static bool switch_thread(struct dump_reader *d, size_t index, const struct dump_exception *exception)
{
    struct sl_minidump_thread *thread = &d->dump->threads[index];
    /* finish_thread() has given the context of the exception to the thread that crashed */
    bool is_crash = exception->is_there && thread->context.data == exception->context.data;
    if (runs_32_bit_code(d->dump, thread->context)) {
        thread->cpu = DUMP_X86_ON_AMD64; /* the 64-bit context holds the 32-bit registers */
    } else if (!is_crash) {
        const struct sl_bytes context = saved_context(d->dump, thread);
        if (!context.data || !dump_charge(d, context.size))
            return false;
        thread->cpu = X86;
        thread->context = context;
    }
    if (thread->cpu == d->dump->cpu) /* crashed in 64-bit code */
        return true;
    enter_32_bits(d->dump, thread);
    dump_context_registers(d, thread->cpu, thread->context, &d->dump->crash.threads[index]);
    return thread->stack.bytes.size != 0;
}

bool sl_minidump_enter_wow64(struct sl_minidump *dump, struct sl_arena *arena)
{
    struct dump_reader d = {.dump = dump, .arena = arena};
    struct dump_exception exception = {.is_there = false};
    dump->is_wow64 = dump->os == SL_MINIDUMP_WINDOWS && dump->family == SL_CPU_X86_64 && has_wow64_module(dump);
    if (!dump->is_wow64)
        return true;
    /* all contexts that are copied together may be as large as the dump, because threads of a crafted dump may share one */
    sl_budget_init(&d.budget, dump->bytes.size);              /* work, in proportion to this size */
    sl_budget_limit(&d.budget, dump->bytes.size, NULL, NULL); /* memory, in bytes; no time limit */
    dump_read_exception(dump, &exception);
    for (size_t i = 0; i < dump->crash.thread_count && !d.out_of_memory; i++)
        if (dump->threads[i].is_walked && !switch_thread(&d, i, &exception))
            dump->wow64_missing++;
    return !d.out_of_memory;
}
