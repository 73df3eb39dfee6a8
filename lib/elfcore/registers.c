/* Registers of a thread: pr_reg of struct elf_prstatus, which is the kernel's struct user_regs_struct or pt_regs of each processor
 * (sys/procfs.h). */
#include "elfcore/impl.h"

#define ARM64_REGISTERS                                                                                                \
    "x0:0 x1:1 x2:2 x3:3 x4:4 x5:5 x6:6 x7:7 x8:8 x9:9 x10:10 x11:11 x12:12 x13:13 x14:14 x15:15 x16:16 x17:17 "       \
    "x18:18 x19:19 x20:20 x21:21 x22:22 x23:23 x24:24 x25:25 x26:26 x27:27 x28:28 fp:29 lr:30 sp:31 pc:32"
#define RISCV_REGISTERS                                                                                                \
    "pc:32 ra:1 sp:2 gp:3 tp:4 t0:5 t1:6 t2:7 s0:8 s1:9 a0:10 a1:11 a2:12 a3:13 a4:14 a5:15 a6:16 a7:17 s2:18 s3:19 "  \
    "s4:20 s5:21 s6:22 s7:23 s8:24 s9:25 s10:26 s11:27 t3:28 t4:29 t5:30 t6:31"

/* Each processor: e_machine, 64-bit, architecture, and the registers in the order of pr_reg (struct core_cpu). */
static const struct core_cpu cpus[] = {
    {62, true, SL_ARCH_X86_64,
     "r15:15 r14:14 r13:13 r12:12 rbp:6 rbx:3 r11:11 r10:10 r9:9 r8:8 rax:0 rcx:2 rdx:1 rsi:4 rdi:5 - rip:16 - - "
     "rsp:7"},
    {3, false, SL_ARCH_X86, "ebx:3 ecx:1 edx:2 esi:6 edi:7 ebp:5 eax:0 - - - - - eip:8 - eflags:9 esp:4"},
    {183, true, SL_ARCH_ARM64, ARM64_REGISTERS},
    {40, false, SL_ARCH_ARM, "r0:0 r1:1 r2:2 r3:3 r4:4 r5:5 r6:6 r7:7 r8:8 r9:9 r10:10 fp:11 r12:12 sp:13 lr:14 pc:15"},
    /* o32: six words of arguments come first, then the general registers, lo, hi and the program counter */
    {8, false, SL_ARCH_MIPS,
     "- - - - - - -:0 -:1 -:2 -:3 -:4 -:5 -:6 -:7 -:8 -:9 -:10 -:11 -:12 -:13 -:14 -:15 s0:16 s1:17 s2:18 s3:19 "
     "s4:20 s5:21 s6:22 s7:23 -:24 -:25 -:26 -:27 gp:28 sp:29 fp:30 ra:31 - - pc:34"},
    {243, true, SL_ARCH_RISCV64, RISCV_REGISTERS},
    {243, false, SL_ARCH_RISCV, RISCV_REGISTERS},
    {8, true, SL_ARCH_MIPS64, NULL},
    {20, false, SL_ARCH_PPC, NULL},
    {21, true, SL_ARCH_PPC64, NULL},
    {22, true, SL_ARCH_S390X, NULL},
    {258, true, SL_ARCH_LOONGARCH64, NULL},
};

const struct core_cpu *core_find_cpu(uint16_t machine, bool is_wide)
{
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++)
        if (cpus[i].machine == machine && cpus[i].is_wide == is_wide)
            return &cpus[i];
    return NULL;
}

/* Splits the next "NAME:NUMBER" off a list that is separated by blanks. Returns false at its end; *number is UINT64_MAX for an item without
 * a number ("-"), whose register is not used. */
static bool next_register(struct sl_str *list, struct sl_str *name, uint64_t *number)
{
    size_t size = 0, length = 0;
    if (!list->size)
        return false;
    while (size < list->size && list->data[size] != ' ')
        size++;
    while (length < size && list->data[length] != ':')
        length++;
    *name = (struct sl_str){list->data, length};
    if (length == size || !sl_parse_u64((struct sl_str){list->data + length + 1, size - length - 1}, number))
        *number = UINT64_MAX;
    size += size < list->size;
    *list = (struct sl_str){list->data + size, list->size - size};
    return true;
}

bool core_set_registers(struct core_reader *c, struct sl_bytes bytes, struct sl_crash_thread *thread,
                        struct sl_minidump_thread *more)
{
    struct sl_crash_register shown[SL_WALK_REGISTERS];
    struct sl_registers *initial = SL_ARENA_NEW(c->arena, struct sl_registers);
    struct sl_reader r = core_make_reader(c, bytes);
    struct sl_str list = sl_str(c->cpu->registers), name;
    size_t count = 0;
    uint64_t number;
    c->out_of_memory |= !initial;
    while (initial && next_register(&list, &name, &number)) {
        uint64_t value = core_read_word(c, &r);
        if (number >= SL_WALK_REGISTERS) /* a register that is not used: only its word is read */
            continue;
        sl_registers_set(initial, (unsigned)number, value);
        if (!sl_str_equal(name, SL_STR("-"))) /* "-:7": used to walk the stack, but not shown */
            shown[count++] = (struct sl_crash_register){name, value};
    }
    if (!initial || r.failed)
        return false;
    more->initial = initial;
    bool done = sl_crash_set_registers(thread, shown, count, c->arena);
    c->out_of_memory |= !done;
    return done;
}
