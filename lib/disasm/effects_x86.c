/* Effects of x86 instructions, decoded by Zydis. */
#include "disasm/effects_impl.h"

#include <Zydis/Zydis.h>
#include <stdarg.h>
#include <stdio.h>

struct decoded {
    bool is_64bit;
    uint64_t address;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* ---- text: memory operands with width and blanks, "dword [rax + rcx * 4 - 0x8]" ---- */

/* Returns the word for an operand's width in Intel's syntax, with a blank; empty for other widths. */
static const char *width_name(unsigned bits)
{
    static const struct {
        unsigned bits;
        const char *name;
    } widths[] = {{8, "byte "},   {16, "word "},     {32, "dword "},    {64, "qword "},
                  {80, "tword "}, {128, "xmmword "}, {256, "ymmword "}, {512, "zmmword "}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i].bits == bits)
            return widths[i].name;
    return "";
}

/* True if the instruction has a segment prefix. */
static bool has_own_segment(const ZydisDecodedInstruction *instruction)
{
    return instruction->attributes &
           (ZYDIS_ATTRIB_HAS_SEGMENT_CS | ZYDIS_ATTRIB_HAS_SEGMENT_SS | ZYDIS_ATTRIB_HAS_SEGMENT_DS |
            ZYDIS_ATTRIB_HAS_SEGMENT_ES | ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS);
}

/* Appends to the text, which is truncated at SL_DISASM_TEXT. */
__attribute__((format(printf, 2, 3))) static void put(char *text, const char *format, ...)
{
    size_t size = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + size, SL_DISASM_TEXT - size, format, args);
    va_end(args);
}

/* Appends the displacement of a memory operand. It is the whole address if it is the first part, else a signed summand, left out if 0. */
static void put_displacement(char *text, const ZydisDecodedOperandMem *memory, bool is_first)
{
    int64_t value = memory->disp.value;
    if (is_first) /* sign-extended 32 bits are shown as 32 bits */
        put(text, "0x%llx", (unsigned long long)(value == (int32_t)value ? (uint32_t)value : (uint64_t)value));
    else if (value)
        put(text, " %c 0x%llx", value < 0 ? '-' : '+',
            (unsigned long long)(value < 0 ? -(uint64_t)value : (uint64_t)value));
}

/* Appends a memory operand; the address of LEA has no width. */
static void put_memory(const struct decoded *d, const ZydisDecodedOperand *operand, char *text)
{
    const ZydisDecodedOperandMem *memory = &operand->mem;
    bool has_base = memory->base != ZYDIS_REGISTER_NONE, has_index = memory->index != ZYDIS_REGISTER_NONE;
    put(text, "%s", memory->type == ZYDIS_MEMOP_TYPE_AGEN ? "" : width_name(operand->size));
    if (has_own_segment(&d->instruction))
        put(text, "%s:", ZydisRegisterGetString(memory->segment));
    put(text, "[%s", has_base ? ZydisRegisterGetString(memory->base) : "");
    if (has_index)
        put(text, "%s%s", has_base ? " + " : "", ZydisRegisterGetString(memory->index));
    if (has_index && memory->scale > 1)
        put(text, " * %d", memory->scale);
    put_displacement(text, memory, !has_base && !has_index);
    put(text, "]");
}

/* Appends the lock and repeat prefixes. */
static void put_prefix(const struct decoded *d, char *text)
{
    ZydisInstructionAttributes attributes = d->instruction.attributes;
    if (attributes & ZYDIS_ATTRIB_HAS_LOCK)
        put(text, "lock ");
    if (attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
        put(text, attributes & ZYDIS_ATTRIB_HAS_REPNE  ? "repne "
                  : attributes & ZYDIS_ATTRIB_HAS_REPE ? "repe "
                                                       : "rep ");
}

/* Appends the instruction in Intel's syntax. Zydis formats the operands except those in memory: they are written as rust-minidump does,
 * `dword [rax + 0x8]`, without `ptr`. */
static void put_instruction(const struct decoded *d, char *text)
{
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
    put_prefix(d, text);
    put(text, "%s", ZydisMnemonicGetString(d->instruction.mnemonic));
    for (uint8_t i = 0; i < d->instruction.operand_count_visible; i++) {
        char operand[64];
        put(text, i ? ", " : " ");
        if (d->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
            put_memory(d, &d->operands[i], text);
        else if (ZYAN_SUCCESS(ZydisFormatterFormatOperand(&formatter, &d->instruction, &d->operands[i], operand,
                                                          sizeof operand, d->address, NULL)))
            put(text, "%s", operand);
    }
}

/* ---- registers ---- */

/* Sets `*value` to that of a register, truncated to its width. False if it is unknown, or not a general register. */
static bool register_value(struct effects_reading *r, const struct decoded *d, ZydisRegister reg, uint64_t *value)
{
    /* Zydis numbers registers as instructions do (rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi); these are the numbers of
     * DWARF; r8 to r15 have the same in both */
    static const uint8_t numbers_64[] = {0, 2, 1, 3, 7, 6, 4, 5}, numbers_32[] = {0, 1, 2, 3, 4, 5, 6, 7};
    ZydisMachineMode mode = d->is_64bit ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32;
    ZydisRegisterClass class = ZydisRegisterGetClass(reg);
    *value = 0;
    if (class == ZYDIS_REGCLASS_IP) {
        *value = d->address + d->instruction.length; /* the next instruction */
        return true;
    }
    int id = ZydisRegisterGetId(reg);
    bool is_general = class == ZYDIS_REGCLASS_GPR64 || class == ZYDIS_REGCLASS_GPR32 || class == ZYDIS_REGCLASS_GPR16;
    if (!is_general || id < 0 || id > 15) {
        r->is_complete = false;
        return false;
    }
    unsigned number = id > 7 ? (unsigned)id : d->is_64bit ? numbers_64[id] : numbers_32[id];
    unsigned width = ZydisRegisterGetWidth(mode, reg);
    if (!effects_base(r, number, ZydisRegisterGetString(ZydisRegisterGetLargestEnclosing(mode, reg)), value))
        return false;
    *value &= width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX;
    return true;
}

/* Sets `*base` to the base address of a segment. Of FS and GS only the one with the thread block is known (GS on x86-64, FS on x86): for
 * the other one it returns false, and the accesses are incomplete. All other segments have base 0. */
static bool segment_base(struct effects_reading *r, const struct decoded *d, ZydisRegister segment, uint64_t *base)
{
    ZydisRegister own = d->is_64bit ? ZYDIS_REGISTER_GS : ZYDIS_REGISTER_FS;
    *base = 0;
    if (segment != ZYDIS_REGISTER_FS && segment != ZYDIS_REGISTER_GS)
        return true;
    if (segment != own || !r->registers->has_segment) {
        r->is_complete = false;
        return false;
    }
    *base = r->registers->segment;
    return true;
}

/* ---- memory ---- */

/* Computes the address of an operand; false, and the accesses are incomplete, if a register is unknown. `*base_is_null`: the base register
 * is 0, so a null pointer is accessed. */
static bool memory_address(struct effects_reading *r, const struct decoded *d, const ZydisDecodedOperand *operand,
                           uint64_t *address, bool *base_is_null)
{
    const ZydisDecodedOperandMem *memory = &operand->mem;
    uint64_t base = 0, index = 0, segment;
    if (memory->base != ZYDIS_REGISTER_NONE && !register_value(r, d, memory->base, &base))
        return false;
    if (memory->index != ZYDIS_REGISTER_NONE && !register_value(r, d, memory->index, &index))
        return false;
    if (!segment_base(r, d, memory->segment, &segment))
        return false;
    uint64_t at = base + index * memory->scale + (uint64_t)memory->disp.value;
    at = d->instruction.address_width < 64 ? at & ((UINT64_C(1) << d->instruction.address_width) - 1) : at;
    *address = segment + at;
    *base_is_null = memory->base != ZYDIS_REGISTER_NONE && !base && !segment;
    return true;
}

static bool is_stack_pointer(ZydisRegister reg)
{
    return reg == ZYDIS_REGISTER_RSP || reg == ZYDIS_REGISTER_ESP || reg == ZYDIS_REGISTER_SP;
}

/* Adds the access of a memory operand, if it has one (LEA does not). Pushes write below the stack pointer: the decoder reports the address
 * before the decrement. */
static void add_operand(struct effects_reading *r, const struct decoded *d, const ZydisDecodedOperand *operand)
{
    struct sl_disasm_access access = {.size = operand->size / 8};
    if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
        access.direction |= SL_DISASM_READS;
    if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
        access.direction |= SL_DISASM_WRITES;
    if (operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN || !access.direction)
        return;
    /* the stack operand of a push, pop, call or return: its register is not in the text, so it is not recorded */
    r->is_implied = operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && is_stack_pointer(operand->mem.base);
    if (operand->mem.type != ZYDIS_MEMOP_TYPE_MEM)
        r->is_complete = false; /* a gather or scatter: several addresses */
    else if (memory_address(r, d, operand, &access.address, &access.base_is_null)) {
        access.address -= r->is_implied && access.direction == SL_DISASM_WRITES ? access.size : 0; /* a push */
        effects_access(r, &access);
    }
}

/* Adds the memory operands of the instruction, hidden ones such as the stack included. */
static void read_accesses(struct effects_reading *r, const struct decoded *d)
{
    switch (d->instruction.meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1: return; /* these do not fault */
    default: break;
    }
    for (uint8_t i = 0; i < d->instruction.operand_count; i++)
        if (d->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
            add_operand(r, d, &d->operands[i]);
}

/* ---- control flow ---- */

/* Sets where execution continues; SL_DISASM_UNKNOWN if the target is not known. */
static void flow_to(struct effects_reading *r, enum sl_disasm_flow flow, bool known, uint64_t target)
{
    r->out->flow = known ? flow : SL_DISASM_UNKNOWN;
    r->out->target = target;
}

/* Reads the target of a branch. Its registers are recorded in `ignored`, because they are no bases of the instruction's own accesses. */
static void read_branch(struct effects_reading *r, const struct decoded *d)
{
    const ZydisDecodedOperand *operand = &d->operands[0];
    struct sl_disasm_effects ignored = {.size = 0};
    struct effects_reading other = {.registers = r->registers, .out = &ignored, .is_complete = true};
    uint64_t target = 0;
    bool known, is_null;
    switch (operand->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER:
        known = register_value(&other, d, operand->reg.value, &target);
        flow_to(r, SL_DISASM_DIRECT, known, target);
        break;
    case ZYDIS_OPERAND_TYPE_MEMORY:
        known = memory_address(&other, d, operand, &target, &is_null);
        flow_to(r, SL_DISASM_INDIRECT, known, target);
        break;
    default: r->out->flow = SL_DISASM_UNKNOWN; /* a constant address */
    }
}

/* Finds where execution continues. For conditional branches that is unknown, because flags are not evaluated; a return reads the address
 * from the top of the stack. */
static void read_flow(struct effects_reading *r, const struct decoded *d)
{
    uint64_t target = 0;
    switch (d->instruction.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_UNCOND_BR: read_branch(r, d); break;
    case ZYDIS_CATEGORY_COND_BR: r->out->flow = SL_DISASM_UNKNOWN; break;
    case ZYDIS_CATEGORY_RET: {
        /* The DWARF numbers of RSP and ESP. */
        bool known = r->registers->get(r->registers->arg, d->is_64bit ? 7 : 4, &target);
        flow_to(r, SL_DISASM_INDIRECT, known, target);
        break;
    }
    default: r->out->flow = SL_DISASM_NEXT;
    }
}

/* ---- causes of faults ---- */

/* True if the instruction faults in user mode, or may do so depending on the system's settings. */
static bool is_privileged(const ZydisDecodedInstruction *instruction)
{
    switch (instruction->meta.category) {
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_INTERRUPT: return true; /* if the process's privilege level does not allow it */
    default: break;
    }
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_CLI:
    case ZYDIS_MNEMONIC_STI:
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_MONITOR:
    case ZYDIS_MNEMONIC_MWAIT:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ: return true;
    default: return instruction->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED;
    }
}

/* True if the instruction has a memory operand of more than 64 bits, which may have to be aligned; false for the unaligned moves. */
static bool may_need_alignment(const struct decoded *d)
{
    switch (d->instruction.mnemonic) {
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_LDDQU: return false;
    default: break;
    }
    for (uint8_t i = 0; i < d->instruction.operand_count; i++)
        if (d->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && d->operands[i].size > 64)
            return true;
    return false;
}

bool effects_x86(struct effects_reading *r, bool is_64bit, struct sl_bytes bytes, uint64_t address)
{
    struct decoded d = {.is_64bit = is_64bit, .address = address};
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, is_64bit ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
                     is_64bit ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data, bytes.size, &d.instruction, d.operands)))
        return false;
    put_instruction(&d, r->out->text);
    r->out->size = d.instruction.length;
    read_accesses(r, &d);
    read_flow(r, &d);
    r->out->is_division = d.instruction.mnemonic == ZYDIS_MNEMONIC_DIV || d.instruction.mnemonic == ZYDIS_MNEMONIC_IDIV;
    r->out->is_privileged = is_privileged(&d.instruction);
    /* if all this holds, a general protection fault has no other cause than a non-canonical address */
    r->out->faults_only_non_canonical = r->is_complete && !r->out->is_privileged && !may_need_alignment(&d);
    return true;
}
