/* What answers do not tell of a minidump: registers of callers, the processor, versions, and how other tools call things. */
#include "cli/symbolicate/dump_print.h"

#include <string.h>

/* ---- what was walked ---- */

static unsigned call_size(enum sl_cpu_family family)
{
    struct sl_walk_numbers numbers;
    sl_walk_numbers(family, &numbers);
    return numbers.call;
}

bool walked_dump_keep(void *arg, const struct sl_minidump *dump)
{
    struct walked_dump *w = arg;
    size_t count = dump->crash.thread_count;
    w->resume = SL_ARENA_ARRAY(&w->arena, uint64_t *, count + 1);
    w->instruction = SL_ARENA_ARRAY(&w->arena, uint64_t *, count + 1);
    w->registers = SL_ARENA_ARRAY(&w->arena, struct sl_registers *, count + 1);
    w->counts = SL_ARENA_ARRAY(&w->arena, size_t, count + 1);
    if (!w->resume || !w->instruction || !w->registers || !w->counts)
        return false;
    w->thread_count = count;
    for (size_t i = 0; i < count; i++) {
        const struct sl_crash_thread *thread = &dump->crash.threads[i];
        size_t size = thread->frame_count * sizeof(struct sl_registers);
        unsigned call = call_size(dump->threads[i].family);
        if (!dump->threads[i].is_walked || !thread->frame_count)
            continue;
        w->resume[i] = SL_ARENA_ARRAY(&w->arena, uint64_t, thread->frame_count);
        w->instruction[i] = SL_ARENA_ARRAY(&w->arena, uint64_t, thread->frame_count);
        if (!w->resume[i] || !w->instruction[i])
            return false;
        for (size_t k = 0; k < thread->frame_count; k++) {
            bool is_exact = !k || thread->frames[k].is_exact;
            w->resume[i][k] = thread->frames[k].address;
            w->instruction[i][k] = thread->frames[k].address - (is_exact ? 0 : call);
        }
        w->counts[i] = thread->frame_count;
        if (!dump->threads[i].registers)
            continue;
        if (!(w->registers[i] = sl_arena_alloc(&w->arena, size, _Alignof(struct sl_registers))))
            return false;
        memcpy(w->registers[i], dump->threads[i].registers, size);
    }
    return true;
}

enum sl_code walked_dump_read(struct walked_dump *w, struct sl_bytes bytes, struct sl_error *error)
{
    enum sl_code code = sl_minidump_read(bytes, &w->arena, &w->dump, error);
    if (code == SL_OK && !sl_minidump_enter_wow64(&w->dump, &w->arena))
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && w->wants_facts)
        code = sl_minidump_read_facts(&w->dump, &w->arena, &w->facts, error);
    if (code == SL_OK && w->wants_facts)
        code = sl_minidump_analyse(&w->dump, &w->arena, &w->analysis, error);
    return code;
}

void walked_dump_free(struct walked_dump *w)
{
    sl_arena_free(&w->arena);
}

enum sl_cpu_family thread_family(const struct walked_dump *w, size_t thread)
{
    return thread < w->dump.crash.thread_count ? w->dump.threads[thread].family : w->dump.family;
}

const struct sl_registers *frame_registers(const struct walked_dump *w, size_t thread, const struct answer_frame *frame)
{
    size_t index = (size_t)frame->index.value;
    bool known = thread < w->thread_count && index < w->counts[thread] && w->registers[thread];
    return known ? &w->registers[thread][index] : NULL;
}

/* Frames that the client walked took the place of those that were walked here. */
static bool is_walked_here(const struct walked_dump *w, size_t thread, const struct answer_frame *frame)
{
    return thread < w->thread_count && (size_t)frame->index.value < w->counts[thread] &&
           !sl_str_equal(frame->trust, SL_STR("prewalked"));
}

uint64_t frame_resume(const struct walked_dump *w, size_t thread, const struct answer_frame *frame)
{
    return is_walked_here(w, thread, frame) ? w->resume[thread][frame->index.value] : frame->address.value;
}

uint64_t frame_instruction(const struct walked_dump *w, size_t thread, const struct answer_frame *frame)
{
    return is_walked_here(w, thread, frame) ? w->instruction[thread][frame->index.value] : frame->address.value;
}

bool dump_thread_is_writer(const struct walked_dump *w, size_t thread)
{
    return thread < w->dump.crash.thread_count && w->dump.threads[thread].is_writer;
}

size_t dump_thread_number(const struct walked_dump *w, size_t thread)
{
    size_t number = 0;
    for (size_t i = 0; i < thread; i++)
        number += !dump_thread_is_writer(w, i);
    return number;
}

/* ---- registers ---- */

static const struct shown_register x86_shown[] = {{"eip", 8}, {"esp", 4}, {"ebp", 5}, {"ebx", 3},
                                                  {"esi", 6}, {"edi", 7}, {"eax", 0}, {"ecx", 1},
                                                  {"edx", 2}, {"efl", 9}, {NULL, 0}};
static const struct shown_register amd64_shown[] = {
    {"rax", 0}, {"rdx", 1},  {"rcx", 2},  {"rbx", 3},  {"rsi", 4},  {"rdi", 5},  {"rbp", 6},  {"rsp", 7},  {"r8", 8},
    {"r9", 9},  {"r10", 10}, {"r11", 11}, {"r12", 12}, {"r13", 13}, {"r14", 14}, {"r15", 15}, {"rip", 16}, {NULL, 0}};
static const struct shown_register arm_shown[] = {
    {"r0", 0}, {"r1", 1},   {"r2", 2},   {"r3", 3},  {"r4", 4},  {"r5", 5},  {"r6", 6},  {"r7", 7}, {"r8", 8},
    {"r9", 9}, {"r10", 10}, {"r12", 12}, {"fp", 11}, {"sp", 13}, {"lr", 14}, {"pc", 15}, {NULL, 0}};
static const struct shown_register arm64_shown[] = {
    {"x0", 0},   {"x1", 1},   {"x2", 2},   {"x3", 3},   {"x4", 4},   {"x5", 5},   {"x6", 6},   {"x7", 7},   {"x8", 8},
    {"x9", 9},   {"x10", 10}, {"x11", 11}, {"x12", 12}, {"x13", 13}, {"x14", 14}, {"x15", 15}, {"x16", 16}, {"x17", 17},
    {"x18", 18}, {"x19", 19}, {"x20", 20}, {"x21", 21}, {"x22", 22}, {"x23", 23}, {"x24", 24}, {"x25", 25}, {"x26", 26},
    {"x27", 27}, {"x28", 28}, {"fp", 29},  {"lr", 30},  {"sp", 31},  {"pc", 32},  {NULL, 0}};
static const struct shown_register mips_shown[] = {{"gp", 28}, {"sp", 29}, {"fp", 30}, {"ra", 31}, {"pc", 34},
                                                   {"s0", 16}, {"s1", 17}, {"s2", 18}, {"s3", 19}, {"s4", 20},
                                                   {"s5", 21}, {"s6", 22}, {"s7", 23}, {NULL, 0}};
static const struct shown_register riscv_shown[] = {
    {"pc", 32},  {"ra", 1},  {"sp", 2},  {"gp", 3},  {"tp", 4},  {"t0", 5},  {"t1", 6},  {"t2", 7},  {"s0", 8},
    {"s1", 9},   {"a0", 10}, {"a1", 11}, {"a2", 12}, {"a3", 13}, {"a4", 14}, {"a5", 15}, {"a6", 16}, {"a7", 17},
    {"s2", 18},  {"s3", 19}, {"s4", 20}, {"s5", 21}, {"s6", 22}, {"s7", 23}, {"s8", 24}, {"s9", 25}, {"s10", 26},
    {"s11", 27}, {"t3", 28}, {"t4", 29}, {"t5", 30}, {"t6", 31}, {NULL, 0}};

const struct shown_register *shown_registers(enum sl_cpu_family family)
{
    static const struct shown_register none[] = {{NULL, 0}};
    switch (family) {
    case SL_CPU_X86: return x86_shown;
    case SL_CPU_X86_64: return amd64_shown;
    case SL_CPU_ARM: return arm_shown;
    case SL_CPU_ARM64: return arm64_shown;
    case SL_CPU_MIPS:
    case SL_CPU_MIPS64: return mips_shown;
    case SL_CPU_RISCV:
    case SL_CPU_RISCV64: return riscv_shown;
    default: return none;
    }
}

/* ---- how things are called ---- */

const char *dump_cpu_name(const struct sl_minidump *dump)
{
    return dump->family == SL_CPU_X86_64 ? "amd64" : sl_arch_name(dump->crash.system.arch);
}

const char *dump_os_name(const struct sl_minidump *dump)
{
    static const char *const names[] = {
        [SL_MINIDUMP_OTHER] = "unknown",   [SL_MINIDUMP_WINDOWS] = "Windows NT",
        [SL_MINIDUMP_MACOS] = "Mac OS X",  [SL_MINIDUMP_IOS] = "iOS",
        [SL_MINIDUMP_LINUX] = "Linux",     [SL_MINIDUMP_SOLARIS] = "Solaris",
        [SL_MINIDUMP_ANDROID] = "Android", [SL_MINIDUMP_PS3] = "PS3",
        [SL_MINIDUMP_NACL] = "NaCl",
    };
    return names[dump->os];
}

struct sl_str dump_reason(const struct answer *answer)
{
    static const struct sl_str mark = SL_STR(" / 0x");
    struct sl_str reason = answer->reason;
    for (size_t i = reason.size; i-- > 0;)
        if (sl_str_starts((struct sl_str){reason.data + i, reason.size - i}, mark))
            return (struct sl_str){reason.data, i};
    return reason;
}

bool dump_uptime(const struct sl_minidump *dump, uint64_t *seconds)
{
    int64_t begin = dump->create_time, now = dump->crash.timestamp;
    *seconds = (uint64_t)(now - begin);
    return dump->has_create_time && dump->crash.has_timestamp && now >= begin;
}

static bool is_before(const struct answer_module *known, const struct sl_crash_module *module)
{
    return known->address.value != module->address ? known->address.value < module->address
                                                   : known->size.value < module->size;
}

const struct answer_module *dump_next_answer(const struct answer *answer, const struct sl_crash_module *module,
                                             size_t *next)
{
    while (*next < answer->module_count && is_before(&answer->modules[*next], module))
        (*next)++;
    const struct answer_module *known = *next < answer->module_count ? &answer->modules[*next] : NULL;
    if (!known || !known->address.set || known->address.value != module->address || known->size.value != module->size ||
        !sl_str_equal(known->code_file, module->code_file))
        return NULL;
    (*next)++;
    return known;
}
