/* Registers of a thread, from the CONTEXT records of each processor. */
#include "minidump/impl.h"

/* Registers of one size that follow each other in a CONTEXT record. */
struct context_run {
    uint16_t offset;   /* of the first */
    uint8_t size;      /* bytes per register */
    uint8_t number;    /* DWARF number of the first register; the others count up */
    const char *names; /* names in output, separated by blanks; "-": not shown */
};

enum {
    NOT_WALKED = 0xFF, /* context_run.number of registers that stack walking does not need */
    MAX_RUNS = 11      /* in one CONTEXT record */
};

#define R0_TO_R31                                                                                                      \
    "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 r13 r14 r15 r16 r17 r18 r19 r20 r21 r22 r23 r24 r25 r26 r27 r28 r29 "   \
    "r30 r31"
#define X0_TO_LR                                                                                                       \
    "x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11 x12 x13 x14 x15 x16 x17 x18 x19 x20 x21 x22 x23 x24 x25 x26 x27 x28 fp lr"
#define RA_TO_T6 "ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6"
#define X86_RUNS                                                                                                       \
    {                                                                                                                  \
        {156, 4, 7, "edi"}, {160, 4, 6, "esi"}, {164, 4, 3, "ebx"}, {168, 4, 2, "edx"}, {172, 4, 1, "ecx"},            \
            {176, 4, 0, "eax"}, {180, 4, 5, "ebp"}, {184, 4, 8, "eip"}, {192, 4, 9, "eflags"}, {196, 4, 4, "esp"},     \
    }
#define X86_ON_AMD64_RUNS                                                                                              \
    {                                                                                                                  \
        {120, 4, 0, "eax"}, {128, 4, 1, "ecx"}, {136, 4, 2, "edx"}, {144, 4, 3, "ebx"}, {152, 4, 4, "esp"},            \
            {160, 4, 5, "ebp"}, {168, 4, 6, "esi"}, {176, 4, 7, "edi"}, {248, 4, 8, "eip"}, {68, 4, 9, "eflags"},      \
    }
#define MIPS_RUNS                                                                                                      \
    {                                                                                                                  \
        {8, 8, 0, "- - - - - - - - - - - - - - - - s0 s1 s2 s3 s4 s5 s6 s7 - - - - gp sp fp ra"}, {312, 8, 34, "pc"},  \
    }

/* Layout of the CONTEXT record of each processor. Sizes cover what all versions of a record share: in those of RISC-V floating-point
 * registers follow, whose width differs in Breakpad and Crashpad. */
static const struct context_layout {
    uint32_t cpu;                 /* as in the system stream */
    uint16_t size;                /* least size of a record */
    uint8_t flags_at, flags_size; /* offset and size of the context flags */
    uint32_t bit;                 /* the flag that every record of this processor has */
    struct context_run runs[MAX_RUNS];
} layouts[] = {
    {0, 716, 0, 4, 0x10000, X86_RUNS},
    {10, 716, 0, 4, 0x10000, X86_RUNS},
    {9,
     1232,
     48,
     4,
     0x100000,
     {{120, 8, 0, "rax"},
      {128, 8, 2, "rcx"},
      {136, 8, 1, "rdx"},
      {144, 8, 3, "rbx"},
      {152, 8, 7, "rsp"},
      {160, 8, 6, "rbp"},
      {168, 8, 4, "rsi"},
      {176, 8, 5, "rdi"},
      {184, 8, 8, "r8 r9 r10 r11 r12 r13 r14 r15"},
      {248, 8, 16, "rip"}}},
    {DUMP_X86_ON_AMD64, 1232, 48, 4, 0x100000, X86_ON_AMD64_RUNS},
    {5, 368, 0, 4, 0x40000000, {{4, 4, 0, "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 fp r12 sp lr pc"}}},
    {12, 912, 0, 4, 0x400000, {{8, 8, 0, X0_TO_LR}, {256, 8, 31, "sp pc"}}},
    {0x8003, 796, 0, 8, 0x80000000, {{8, 8, 0, X0_TO_LR}, {256, 8, 31, "sp pc"}}},
    {1, 600, 0, 4, 0x40000, MIPS_RUNS},
    {0x8004, 600, 0, 4, 0x80000, MIPS_RUNS},
    {0x8005, 136, 0, 4, 0x800000, {{8, 4, SL_WALK_RISCV_PC, "pc"}, {12, 4, 1, RA_TO_T6}}},
    {0x8006, 264, 0, 4, 0x8000000, {{8, 8, SL_WALK_RISCV_PC, "pc"}, {16, 8, 1, RA_TO_T6}}},
    {3,
     1004,
     0,
     4,
     0x20000000,
     {{4, 4, SL_WALK_ONLY_PC, "srr0"},
      {8, 4, NOT_WALKED, "srr1"},
      {12, 4, NOT_WALKED, R0_TO_R31},
      {140, 4, NOT_WALKED, "cr xer lr ctr mq vrsave"}}},
    {0x8002,
     1160,
     0,
     8,
     0x1000000,
     {{8, 8, SL_WALK_ONLY_PC, "srr0"},
      {16, 8, NOT_WALKED, "srr1"},
      {24, 8, NOT_WALKED, R0_TO_R31},
      {280, 8, NOT_WALKED, "cr xer lr ctr vrsave"}}},
    {0x8001,
     584,
     0,
     4,
     0x10000000,
     {{8, 8, NOT_WALKED,
       "g_r0 g_r1 g_r2 g_r3 g_r4 g_r5 g_r6 g_r7 g_r8 g_r9 g_r10 g_r11 g_r12 g_r13 g_r14 g_r15 g_r16 "
       "g_r17 g_r18 g_r19 g_r20 g_r21 g_r22 g_r23 g_r24 g_r25 g_r26 g_r27 g_r28 g_r29 g_r30 g_r31"},
      {264, 8, NOT_WALKED, "ccr"},
      {272, 8, SL_WALK_ONLY_PC, "pc"},
      {280, 8, NOT_WALKED, "npc y asi fprs"}}},
};

static const struct context_layout *find_layout(uint32_t cpu)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].cpu == cpu)
            return &layouts[i];
    return NULL;
}

bool dump_is_context(const struct sl_minidump *dump, uint32_t cpu, struct sl_bytes context)
{
    const struct context_layout *layout = find_layout(cpu);
    struct sl_reader r = dump_make_reader(dump, context);
    if (!layout || !context.data || context.size < layout->size)
        return false;
    sl_reader_seek(&r, layout->flags_at);
    return (sl_read_uint(&r, layout->flags_size) & layout->bit) !=
           0; /* the bit that marks contexts of this processor */
}

/* ---- the registers, one after the other ---- */

struct context_walk {
    struct sl_reader r;
    const struct context_run *run, *end;
    const char *names; /* remaining names of the run */
    unsigned index;
};

struct context_value {
    struct sl_str name;
    unsigned number;
    uint64_t value;
};

static struct context_walk context_begin(const struct sl_minidump *dump, uint32_t cpu, struct sl_bytes context)
{
    const struct context_layout *layout = find_layout(cpu);
    return (struct context_walk){dump_make_reader(dump, context), layout->runs, layout->runs + MAX_RUNS,
                                 layout->runs->names, 0};
}

/* Reads the next register of a CONTEXT record; false at the end. The names of a run of registers (struct context_run) are one text,
 * separated by blanks; after the last of them the next run begins. */
static bool context_next(struct context_walk *w, struct context_value *value)
{
    if (w->names && !*w->names) {
        w->run++;
        w->names = w->run < w->end ? w->run->names : NULL;
        w->index = 0;
    }
    if (!w->names)
        return false;
    size_t size = strcspn(w->names, " ");
    value->name = (struct sl_str){w->names, size};
    value->number = w->run->number == NOT_WALKED ? NOT_WALKED : w->run->number + w->index;
    sl_reader_seek(&w->r, w->run->offset + w->index * w->run->size);
    value->value = sl_read_uint(&w->r, w->run->size);
    w->names += size + (w->names[size] == ' ');
    w->index++;
    return true;
}

bool dump_context_registers(struct dump_reader *d, uint32_t cpu, struct sl_bytes context,
                            struct sl_crash_thread *thread)
{
    enum { MAX_REGISTERS = 48 }; /* more than any processor shows */
    struct sl_crash_register registers[MAX_REGISTERS];
    struct context_walk w = context_begin(d->dump, cpu, context);
    struct context_value value;
    size_t count = 0;
    while (count < MAX_REGISTERS && context_next(&w, &value))
        /* "-" stands for bytes of the context that are no register to show */
        if (!sl_str_equal(value.name, SL_STR("-")))
            registers[count++] = (struct sl_crash_register){value.name, value.value};
    bool done = sl_crash_set_registers(thread, registers, count, d->arena);
    d->out_of_memory |= !done;
    return done;
}

void dump_context_read(const struct sl_minidump *dump, const struct sl_minidump_thread *thread,
                       struct sl_registers *registers)
{
    struct context_walk w = context_begin(dump, thread->cpu, thread->context);
    struct context_value value;
    /* records of 32-bit processors may store registers in 64 bits */
    bool is_narrow = thread->family != SL_CPU_UNKNOWN && sl_cpu_pointer_size(thread->family) == 4;
    *registers = (struct sl_registers){.valid = 0};
    while (context_next(&w, &value))
        if (value.number != NOT_WALKED)
            sl_registers_set(registers, value.number, is_narrow ? (uint32_t)value.value : value.value);
}
