/* Unwind tables of 32-bit ARM (Exception Handling ABI for the Arm Architecture, sections 6 and 10).
 *
 *     .ARM.exidx   function, content    a pair of words each, by address; a function extends to the next one
 *                             content = 1: cannot be unwound; or bit 31 and three instructions; or a reference to
 *     .ARM.extab   [reference to a personality routine]  instructions, as its first word says; data of the routine
 *
 * References are signed distances of 31 bits. Instructions are bytes that undo the prologue on a virtual stack pointer, packed
 * into words, the highest byte first. They are valid at calls only, so all addresses of a function get the same rules. */
#include "unwind/impl.h"

enum {
    CANNOT_UNWIND = 1,
    FINISH = 0xB0,
    NONE = -1, /* no more instructions */
    ARM_SP = 13,
    ARM_LR = 14,
    ARM_PC = 15,
    ARM_WCGR0 = 104, /* DWARF for the Arm Architecture, "DWARF register names" */
    ARM_WR0 = 112,
    ARM_D0 = 256,
    NO_BASE = 0xFFFF, /* ehabi_machine.base after sp was popped: it is unknown where further registers are stored */
};

struct instructions {
    struct sl_reader words;
    unsigned words_left;
    uint32_t word; /* the next instruction is in its highest byte */
    unsigned bytes_left;
};

struct ehabi_machine {
    struct instructions in;
    struct unwind_rules *rules;
    uint16_t base; /* number of a register: the virtual stack pointer is its value at the call plus `offset` */
    int64_t offset;
};

/* ---- instructions ---- */

/* Returns the next instruction byte; NONE at the end of the instructions or of the section. */
static int ehabi_next(struct instructions *in)
{
    if (!in->bytes_left) {
        if (!in->words_left)
            return NONE;
        in->word = sl_read_u32(&in->words);
        in->words_left--;
        in->bytes_left = 4;
    }
    int byte = (int)(in->word >> 24);
    in->word <<= 8;
    in->bytes_left--;
    return in->words.failed ? NONE : byte;
}

/* Pops `count` registers from `reg` on, `size` bytes each: gives them rules and moves the virtual stack pointer. Registers without a name
 * in symbol files (vectors) get no rule. False if the value of the virtual stack pointer is unknown or there are too many rules. */
static bool pop(struct ehabi_machine *m, unsigned reg, unsigned count, unsigned size)
{
    if (m->base == NO_BASE)
        return false;
    for (unsigned i = 0; i < count; i++, m->offset += size) {
        const struct sl_unwind_rule rule = rule_memory(reg + i, m->base, m->offset);
        if (sl_unwind_register_name(SL_CPU_ARM, reg + i) && !rules_set(m->rules, &rule))
            return false;
    }
    return true;
}

/* Pops the 4-byte register `reg` + i for each bit i of the mask. */
static bool pop_mask(struct ehabi_machine *m, unsigned reg, unsigned mask)
{
    for (unsigned i = 0; mask >> i; i++)
        if ((mask >> i & 1) && !pop(m, reg + i, 1, 4))
            return false;
    return true;
}

/* Pops r4 to r15, bit i of the mask standing for r(4 + i). If sp is popped, its value is the CFA, and what is popped after this instruction
 * cannot be located (NO_BASE). False for an empty mask, or if a pop fails. */
static bool pop_core(struct ehabi_machine *m, unsigned mask)
{
    if (!mask) /* "refuse to unwind" */
        return false;
    /* sp is stored above the registers with lower numbers */
    int64_t sp_offset = m->offset + 4 * __builtin_popcount(mask & ((1 << (ARM_SP - 4)) - 1));
    uint16_t base = m->base;
    if (!pop_mask(m, 4, mask))
        return false;
    if (mask >> (ARM_SP - 4) & 1) {
        m->rules->cfa = rule_memory(SL_UNWIND_CFA, base, sp_offset);
        m->rules->cfa_known = true;
        m->base = NO_BASE;
    }
    return true;
}

/* Sets the virtual stack pointer to a register's value at the call. False if an earlier instruction has popped the register, as rules can
 * only refer to its value at the call, and for sp and pc, which the ABI reserves. */
static bool set_from_register(struct ehabi_machine *m, unsigned reg)
{
    for (size_t i = 0; i < m->rules->count; i++)
        if (m->rules->slots[i].rule.reg == reg)
            return false;
    m->base = (uint16_t)reg;
    m->offset = 0;
    return reg != ARM_SP && reg != ARM_PC;
}

/* Executes 0xB2: adds 0x204 + 4 * the ULEB128 operand to the virtual stack pointer. False if the operand is cut off or exceeds the address
 * space. */
static bool add_large(struct ehabi_machine *m)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) { /* 35: five bytes of 7 bits are enough for 32 bits */
        int byte = ehabi_next(&m->in);
        if (byte == NONE)
            return false;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            m->offset += 0x204 + (int64_t)(value << 2);
            return value <= UINT32_MAX >> 2;
        }
    }
    return false;
}

/* Pops vector registers of 8 bytes. The high half of the operand byte is the first register, counted from `reg`; the low half is the number
 * of registers minus 1. `limit`: how many such registers exist. `behind`: bytes that follow them on the stack (4 if FSTMX saved them, else
 * 0). */
static bool pop_vector(struct ehabi_machine *m, unsigned reg, int operand, unsigned limit, unsigned behind)
{
    unsigned first = (unsigned)operand >> 4, count = ((unsigned)operand & 15) + 1;
    bool ok = operand != NONE && first + count <= limit && pop(m, reg + first, count, 8);
    m->offset += behind;
    return ok;
}

/* Executes an instruction 0xB1 to 0xBF; false if it is reserved or its operands are invalid. The operand for pop_vector() is (first
 * register << 4 | number of registers - 1); 16 is how many registers exist, and 4 the number of bytes that FSTMX stored behind them. */
static bool execute_b(struct ehabi_machine *m, int op)
{
    int operand;
    switch (op) {
    case 0xB1: operand = ehabi_next(&m->in); return operand > 0 && operand < 16 && pop_mask(m, 0, (unsigned)operand);
    case 0xB2: return add_large(m);
    case 0xB3: return pop_vector(m, ARM_D0, ehabi_next(&m->in), 16, 4);
    case 0xB4: m->offset += 4; return true; /* pops the return address authentication code */
    case 0xB5: return true;                 /* the authentication code uses the stack pointer at this point */
    case 0xB6:
    case 0xB7: return false;                                         /* reserved */
    default: return pop_vector(m, ARM_D0, 8 << 4 | (op & 7), 16, 4); /* d8 to d(8 + op & 7) */
    }
}

/* Executes an instruction 0xC0 to 0xCF, which pops registers of iWMMXt or VFP; false if it is reserved or its operands are invalid. Each
 * call of pop_vector() has 16 registers to pop from, and no bytes follow the registers on the stack (0). */
static bool execute_c(struct ehabi_machine *m, int op)
{
    int operand;
    switch (op) {
    case 0xC6: return pop_vector(m, ARM_WR0, ehabi_next(&m->in), 16, 0);
    case 0xC7:
        operand = ehabi_next(&m->in);
        return operand > 0 && operand < 16 && pop_mask(m, ARM_WCGR0, (unsigned)operand);
    case 0xC8: return pop_vector(m, ARM_D0 + 16, ehabi_next(&m->in), 16, 0);
    case 0xC9: return pop_vector(m, ARM_D0, ehabi_next(&m->in), 16, 0);
    default: return op < 0xC6 && pop_vector(m, ARM_WR0, 10 << 4 | (op & 7), 16, 0); /* wR10 to wR(10 + op & 7) */
    }
}

/* Executes one instruction (the ABI's table of frame unwinding instructions): 00 to 3F add to the virtual stack pointer, 40 to 7F subtract
 * from it, 9x sets it, the others pop registers. False for reserved ones and invalid operands, and for frames that rules cannot express. */
static bool execute(struct ehabi_machine *m, int op)
{
    int more;
    switch (op >> 4) {
    case 0x0:
    case 0x1:
    case 0x2:
    case 0x3: m->offset += ((op & 0x3F) << 2) + 4; return true;
    case 0x4:
    case 0x5:
    case 0x6:
    case 0x7: m->offset -= ((op & 0x3F) << 2) + 4; return true;
    case 0x8: more = ehabi_next(&m->in); return more != NONE && pop_core(m, (unsigned)((op & 15) << 8 | more));
    case 0x9: return set_from_register(m, (unsigned)op & 15);
    case 0xA: return pop(m, 4, (unsigned)(op & 7) + 1, 4) && (!(op & 8) || pop(m, ARM_LR, 1, 4));
    case 0xB: return execute_b(m, op);
    case 0xC: return execute_c(m, op);
    case 0xD: return op < 0xD8 && pop_vector(m, ARM_D0, 8 << 4 | (op & 7), 16, 0);
    default: return false;
    }
}

/* ---- functions ---- */

/* Completes the rules at the end of the instructions: makes them relative to the CFA, the final virtual stack pointer. The rule of pc, or
 * of lr if pc was not popped, becomes that of the return address. A rule for sp is dropped, as the caller's sp is the CFA. */
static void ehabi_finish(struct ehabi_machine *m)
{
    struct unwind_rules *rules = m->rules;
    struct unwind_slot *ra = NULL;
    if (m->base != NO_BASE) {
        rules->cfa = rule_offset(SL_UNWIND_CFA, m->base, m->offset);
        rules->cfa_known = true;
    }
    for (size_t i = 0; i < rules->count; i++) {
        struct sl_unwind_rule *rule = &rules->slots[i].rule;
        /* a register popped relative to an earlier base, another register, keeps that base */
        if (rule->base == m->base) {
            rule->base = SL_UNWIND_CFA;
            rule->offset -= m->offset;
        }
        if (rule->reg == ARM_PC || (rule->reg == ARM_LR && !ra))
            ra = &rules->slots[i];
        rules->slots[i].set = rule->reg != ARM_SP;
    }
    if (ra)
        ra->rule.reg = SL_UNWIND_RA;
}

struct tables {
    struct sl_bytes index, table; /* .ARM.exidx, .ARM.extab */
    uint64_t index_at, table_at;  /* their addresses */
    bool big_endian;
};

/* Returns the address to which `word` refers: its low 31 bits are the signed distance from its own address, `from`. */
static uint64_t target(uint64_t from, uint32_t word)
{
    return from + (uint64_t)((int64_t)((uint64_t)word << 33) >> 33);
}

/* Reads the reference to a function at address `from` of the table. Clears the lowest bit of the function's address, which marks Thumb. */
static uint64_t function_at(uint64_t from, struct sl_reader *r)
{
    return target(from, sl_read_u32(r)) & ~UINT64_C(1);
}

/* Finds the instructions of a function. `content` is the second word of its entry in .ARM.exidx, at address `from`: it has the instructions
 * itself (bit 31 is set), or refers to .ARM.extab. False if they have a form that the ABI does not define. */
static bool find_instructions(const struct tables *t, uint64_t from, uint32_t content, struct instructions *in)
{
    bool is_inline = content >> 31;
    uint32_t word = content;
    *in = (struct instructions){.words = sl_reader(t->table, t->big_endian)};
    if (!is_inline) {
        uint64_t at = target(from, content);
        if (at < t->table_at)
            return false;
        sl_reader_seek(&in->words, at - t->table_at);
        word = sl_read_u32(&in->words);
    }
    unsigned personality = word >> 24 & 15;
    if (!(word >> 31)) {
        /* a language's own personality routine. Its data is taken to be like that of C++: the next word has in its highest byte how many
         * words follow, then three instructions */
        in->word = sl_read_u32(&in->words);
        in->words_left = in->word >> 24;
        in->word <<= 8;
        in->bytes_left = 3;
        return !in->words.failed;
    }
    /* routine 0 of the ABI has three instructions in the word; routines 1 and 2 a count of further words, then two instructions */
    in->words_left = personality == 0 ? 0 : word >> 16 & 0xFF;
    in->bytes_left = personality == 0 ? 3 : 2;
    in->word = word << (personality == 0 ? 8 : 16);
    /* bits 28 to 30 are reserved; an entry that has the instructions itself uses routine 0 */
    return !in->words.failed && (word >> 28 & 7) == 0 && personality <= (is_inline ? 0 : 2);
}

/* Runs the instructions of a function, which set m->rules. False if one cannot be executed, or if the budget is used up. */
static bool ehabi_run(struct ehabi_machine *m, struct unwind_builder *b)
{
    int op;
    while ((op = ehabi_next(&m->in)) != NONE && op != FINISH)
        /* the work of an instruction grows with the rules: each register popped is searched in them */
        if (!execute(m, op) || !builder_spend(b, 1 + (uint32_t)m->rules->count))
            return false;
    ehabi_finish(m);
    return !m->in.words.failed;
}

/* Passes the rules to the builder for those parts of [start, end) that have no rules from .debug_frame or .eh_frame. Rules from there are
 * preferred, as they are valid at all addresses, not only at calls. */
static void add_uncovered(struct unwind_builder *b, uint64_t start, uint64_t end, const struct unwind_rules *rules)
{
    struct unwind_span gap;
    while (b->code == SL_OK && builder_gap(b, start, end, &gap)) {
        builder_row(b, gap.start, rules);
        builder_end(b, gap.end);
        start = gap.end;
    }
}

/* Returns the end of the section that contains `address` (relative to the load address); `address` itself if none does. */
static uint64_t section_end(struct sl_object *object, uint64_t address)
{
    struct sl_section_info s;
    uint64_t load_address = sl_object_info(object)->load_address;
    for (size_t i = 0; sl_object_section_info(object, i, &s); i++) {
        uint64_t start = s.address - load_address;
        /* sections with address 0 are not loaded */
        if (s.address >= load_address && s.address && address >= start && address - start < s.size)
            return start + s.size;
    }
    return address;
}

/* Adds the rules of the function at [start, end). `at` is the address of its entry in .ARM.exidx, `content` the entry's second word. A
 * function marked as not unwindable gets no rules; a damaged entry is counted in sink->skipped. */
static void read_function(const struct tables *t, uint64_t at, uint64_t start, uint64_t end, uint32_t content,
                          struct unwind_builder *b, struct unwind_rules *rules)
{
    struct ehabi_machine m = {.rules = rules, .base = ARM_SP};
    if (content == CANNOT_UNWIND)
        return;
    rules_clear(rules);
    if (start < end && find_instructions(t, at + 4, content, &m.in) && ehabi_run(&m, b)) /* at + 4: the second word */
        add_uncovered(b, start, end, rules);
    else
        b->sink->skipped++;
}

enum sl_code ehabi_read(struct sl_object *object, struct unwind_builder *b)
{
    struct unwind_rules rules;
    struct tables t = {.big_endian = sl_object_info(object)->big_endian};
    if (!sl_object_section(object, "ARM.exidx", &t.index, &t.index_at))
        return b->code;
    sl_object_section(object, "ARM.extab", &t.table, &t.table_at);
    builder_close_spans(b); /* from now on add_uncovered() can ask which code other tables cover */
    b->ra = ARM_LR;
    struct sl_reader r = sl_reader(t.index, t.big_endian);
    uint64_t at = t.index_at, start = function_at(at, &r);
    /* `start` was made of the first word of an entry; each iteration reads the second one, and the first one of the next entry */
    while (b->code == SL_OK && sl_reader_left(&r) >= 4) {
        uint32_t content = sl_read_u32(&r);
        bool is_last = sl_reader_left(&r) < 8;
        /* entries have no end: a function reaches to the next one, the last one to the end of its section */
        uint64_t next_start = is_last ? section_end(object, start) : function_at(at + 8, &r);
        builder_spend(b, 1);
        /* ARM addresses have 32 bits */
        if (next_start <= UINT32_MAX)
            read_function(&t, at, start, next_start, content, b, &rules);
        else
            b->sink->skipped++;
        start = next_start;
        at += 8;
        if (is_last)
            break;
    }
    return b->code;
}
