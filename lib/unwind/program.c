/* Runs the call frame instructions of CIEs and FDEs (DWARF 5, 6.4.2) and passes the rules at each address to the builder. */
#include "unwind/dwarf.h"

#include <stdlib.h>

enum {
    DW_CFA_advance_loc = 0x40, /* these three have an operand in the low six bits */
    DW_CFA_offset = 0x80,
    DW_CFA_restore = 0xC0,
    DW_CFA_nop = 0x00,
    DW_CFA_set_loc,
    DW_CFA_advance_loc1,
    DW_CFA_advance_loc2,
    DW_CFA_advance_loc4,
    DW_CFA_offset_extended,
    DW_CFA_restore_extended,
    DW_CFA_undefined,
    DW_CFA_same_value,
    DW_CFA_register,
    DW_CFA_remember_state,
    DW_CFA_restore_state,
    DW_CFA_def_cfa,
    DW_CFA_def_cfa_register,
    DW_CFA_def_cfa_offset,
    DW_CFA_def_cfa_expression,
    DW_CFA_expression,
    DW_CFA_offset_extended_sf,
    DW_CFA_def_cfa_sf,
    DW_CFA_def_cfa_offset_sf,
    DW_CFA_val_offset,
    DW_CFA_val_offset_sf,
    DW_CFA_val_expression,
    DW_CFA_MIPS_advance_loc8 = 0x1D,
    DW_CFA_AARCH64_negate_ra_state_with_pc = 0x2C,
    DW_CFA_AARCH64_negate_ra_state = 0x2D,
    DW_CFA_GNU_args_size = 0x2E,
    DW_CFA_GNU_negative_offset_extended = 0x2F,
    MAX_REMEMBERED = 32,
};

struct unwind_program_run {
    const struct cfi_section_data *frames;
    const struct cie *cie;
    struct unwind_builder *b;
    struct sl_reader r;                              /* the rest of the instructions */
    struct unwind_rules now;                         /* the rules at `at` */
    struct unwind_rules *remembered[MAX_REMEMBERED]; /* by DW_CFA_remember_state; allocated when first used */
    size_t depth;                                    /* remembered rules in use */
    uint64_t at, end;                                /* current location, absolute; end of the FDE's code */
    bool has_cfa; /* the CFA is a register and an offset; def_cfa_register and def_cfa_offset change one of them */
    bool bad;     /* an instruction failed: nothing more is executed */
};

/* ---- rules ---- */

/* Returns the number under which the rule of register `number` is stored: SL_UNWIND_RA if the CIE says that it holds the return address;
 * SL_UNWIND_NAMED, which has no name and so gets no rule, if it is too large. Apple's 32-bit x86 exchanges esp (4) and ebp (5). */
static unsigned translate_register(const struct unwind_program_run *run, uint64_t number)
{
    if (number == run->cie->return_register)
        return SL_UNWIND_RA;
    if (run->frames->swapped && (number == 4 || number == 5))
        number ^= 1;
    return number < SL_UNWIND_NAMED ? (unsigned)number : SL_UNWIND_NAMED;
}

/* Returns the number of a register whose value a rule uses; SL_UNWIND_NAMED, which has no name, if it is too large. Even for the register
 * with the return address that is its own number, not SL_UNWIND_RA: its value in the callee is meant. */
static unsigned translate_base(const struct unwind_program_run *run, uint64_t number)
{
    if (run->frames->swapped && (number == 4 || number == 5))
        number ^= 1;
    return number < SL_UNWIND_NAMED ? (unsigned)number : SL_UNWIND_NAMED;
}

/* Multiplies an operand by the data alignment factor of the CIE, as DWARF demands; overflow wraps. */
static int64_t factored(const struct unwind_program_run *run, int64_t offset)
{
    return (int64_t)((uint64_t)offset * (uint64_t)run->cie->data_alignment);
}

/* Sets a rule. Rules of registers without names are dropped: nothing uses them, and a hostile file may have many. Too many rules set
 * run->bad. */
static void unwind_program_set(struct unwind_program_run *run, const struct sl_unwind_rule *rule)
{
    if (sl_unwind_register_name(run->b->family, rule->reg) && !rules_set(&run->now, rule))
        run->bad = true;
}

/* Sets the rule of register `number` to SL_UNWIND_UNDEFINED or SL_UNWIND_SAME. "Same value" for the return address means that it is still
 * in its register. */
static void set_kind(struct unwind_program_run *run, uint64_t number, enum sl_unwind_kind kind)
{
    struct sl_unwind_rule rule = {.reg = (uint16_t)translate_register(run, number), .kind = (uint8_t)kind};
    if (rule.reg == SL_UNWIND_RA && kind == SL_UNWIND_SAME)
        rule = rule_register(SL_UNWIND_RA, translate_base(run, number));
    unwind_program_set(run, &rule);
}

/* Sets the rule of a register relative to the CFA: the value is stored at CFA + offset or, with `is_value`, is CFA + offset. */
static void set_offset(struct unwind_program_run *run, uint64_t number, int64_t offset, bool is_value)
{
    unsigned reg = translate_register(run, number);
    struct sl_unwind_rule rule =
        is_value ? rule_offset(reg, SL_UNWIND_CFA, offset) : rule_memory(reg, SL_UNWIND_CFA, offset);
    unwind_program_set(run, &rule);
}

/* Sets the rule that a register's value is in the register `other`. If that has no name, symbol files cannot say so, and the value counts
 * as lost (`.undef`). */
static void set_register(struct unwind_program_run *run, uint64_t number, uint64_t other)
{
    struct sl_unwind_rule rule = rule_register(translate_register(run, number), translate_base(run, other));
    if (!sl_unwind_register_name(run->b->family, rule.base))
        rule = (struct sl_unwind_rule){.reg = rule.reg, .kind = SL_UNWIND_PROGRAM, .program = SL_STR(".undef")};
    unwind_program_set(run, &rule);
}

/* Charges the translation of an expression to the budget: nearly every byte of it causes a number to be printed and text to be moved. Sets
 * run->bad if the budget is used up. */
static void spend_expression(struct unwind_program_run *run, struct sl_bytes expression)
{
    enum { STEPS_PER_BYTE = 8 };
    run->bad = expression.size > UINT32_MAX / STEPS_PER_BYTE ||
               !builder_spend(run->b, (uint32_t)expression.size * STEPS_PER_BYTE);
}

/* Returns `first` and `second` as one text in the arena. When out of memory, sets run->bad and returns an empty text. */
static struct sl_str unwind_program_join(struct unwind_program_run *run, const void *first, size_t size,
                                         struct sl_str second)
{
    char *data = sl_arena_alloc(&run->b->arena, size + second.size + 1, 1); /* + 1: never 0 bytes */
    if (!data) {
        run->bad = true;
        return (struct sl_str){NULL, 0};
    }
    memcpy(data, first, size);
    memcpy(data + size, second.data, second.size);
    return (struct sl_str){data, size + second.size};
}

/* Makes a rule from a DWARF expression. If that is empty or longer than SL_UNWIND_MAX_EXPRESSION, the register becomes undefined. */
static struct sl_unwind_rule expression_rule(unsigned reg, struct sl_str expression)
{
    bool fits = expression.size && expression.size <= SL_UNWIND_MAX_EXPRESSION;
    return (struct sl_unwind_rule){.reg = (uint16_t)reg,
                                   .kind = fits ? SL_UNWIND_EXPRESSION : SL_UNWIND_PROGRAM,
                                   .program = fits ? expression : SL_STR(".undef")};
}

/* Sets the rule of a register from a DWARF expression that computes its value (`is_value`) or the address where it is stored. The rule is a
 * postfix program if that can express it, else it keeps the DWARF expression, which only CFI caches can store. */
static void set_expression(struct unwind_program_run *run, uint64_t number, struct sl_bytes expression, bool is_value)
{
    static const char deref[] = {DW_OP_deref};
    struct sl_str text;
    struct unwind_builder *b = run->b;
    unsigned reg = translate_register(run, number);
    struct sl_unwind_rule rule;
    spend_expression(run, expression);
    if (run->bad)
        return;
    /* true: DWARF demands that the CFA is on the stack initially */
    if (expression_translate(expression, b->family, run->frames->big_endian, true, &b->arena, &text)) {
        text = is_value ? text : unwind_program_join(run, text.data, text.size, SL_STR(" ^"));
        rule = rule_parse(b->family, reg, text);
    } else {
        /* without `is_value` the expression gives the address of the saved register: DW_OP_deref behind it loads the
         * value */
        text = unwind_program_join(run, expression.data, expression.size, (struct sl_str){deref, !is_value});
        rule = expression_rule(reg, text);
    }
    if (!run->bad)
        unwind_program_set(run, &rule);
}

/* Sets the CFA to a register plus an offset. If the register has no name, the CFA is unknown, and the builder will end the range there. */
static void set_cfa(struct unwind_program_run *run, uint64_t number, int64_t offset)
{
    run->now.cfa = rule_offset(SL_UNWIND_CFA, translate_base(run, number), offset);
    run->now.cfa_known = sl_unwind_register_name(run->b->family, run->now.cfa.base) != NULL;
    run->has_cfa = true;
}

/* Sets the CFA to the value of a DWARF expression. If that is empty or too long, the CFA is unknown (expression_rule() gives `.undef`), and
 * the builder will end the range there. */
static void set_cfa_expression(struct unwind_program_run *run, struct sl_bytes expression)
{
    struct sl_str text;
    struct unwind_builder *b = run->b;
    run->has_cfa = false;
    spend_expression(run, expression); /* if this sets run->bad, the caller stops, and the CFA set here is not used */
    /* false: the stack is empty initially, unlike for registers, whose expressions begin with the CFA on it */
    if (expression_translate(expression, b->family, run->frames->big_endian, false, &b->arena, &text))
        run->now.cfa = rule_parse(b->family, SL_UNWIND_CFA, text);
    else
        run->now.cfa = expression_rule(SL_UNWIND_CFA, (struct sl_str){(const char *)expression.data, expression.size});
    run->now.cfa_known =
        run->now.cfa.kind != SL_UNWIND_PROGRAM || !sl_str_equal(run->now.cfa.program, SL_STR(".undef"));
}

/* Changes either the register (`change_register`: to `number`) or the offset of the CFA, which must be a register plus an offset already;
 * else run->bad is set. Exception: for MIPS, RISC-V and LoongArch, assemblers begin tables with def_cfa_register, where the offset is 0. */
static void change_cfa(struct unwind_program_run *run, bool change_register, uint64_t number, int64_t offset)
{
    if (!run->has_cfa && change_register && !run->now.cfa_known)
        set_cfa(run, number, 0);
    else if (!run->has_cfa)
        run->bad = true;
    else if (change_register)
        set_cfa(run, number, run->now.cfa.offset);
    else
        run->now.cfa.offset = offset;
}

/* Executes DW_CFA_restore: gives a register the rule that it had after the instructions of the CIE, or none if they have none for it. A
 * register has the same index in `slots` in both, because the rules of the FDE began as a copy. */
static void restore(struct unwind_program_run *run, uint64_t number)
{
    unsigned reg = translate_register(run, number);
    const struct unwind_rules *initial = &run->cie->initial;
    for (size_t i = 0; i < run->now.count; i++) {
        struct unwind_slot *slot = &run->now.slots[i];
        if (slot->rule.reg != reg)
            continue;
        slot->set = i < initial->count && initial->slots[i].set;
        if (slot->set)
            *slot = initial->slots[i];
    }
}

/* ---- remembered rules ---- */

/* Executes DW_CFA_remember_state: pushes a copy of the current rules. When there are too many, or out of memory, sets run->bad. */
static void save_rules(struct unwind_program_run *run)
{
    if (run->depth < MAX_REMEMBERED && !run->remembered[run->depth])
        run->remembered[run->depth] = malloc(sizeof **run->remembered);
    if (run->depth == MAX_REMEMBERED || !run->remembered[run->depth]) {
        run->bad = true;
        return;
    }
    rules_copy(run->remembered[run->depth++], &run->now);
}

/* Executes DW_CFA_restore_state: pops the rules that DW_CFA_remember_state pushed last, CFA included. If there are none, sets run->bad. */
static void restore_rules(struct unwind_program_run *run)
{
    if (!run->depth) {
        run->bad = true;
        return;
    }
    const struct unwind_rules *from = run->remembered[--run->depth];
    size_t count = run->now.count;
    rules_copy(&run->now, from);
    /* registers mentioned since then keep their slots, without a rule: the builder compares rules slot by slot */
    run->now.count = count;
    for (size_t i = from->count; i < count; i++)
        run->now.slots[i].set = false;
    run->has_cfa = run->now.cfa.kind == SL_UNWIND_OFFSET;
}

/* ---- locations ---- */

/* Moves the location to the address `to`, after passing the rules that hold at the old location to the builder. A lower address sets
 * run->bad. */
static void move(struct unwind_program_run *run, uint64_t to)
{
    if (to < run->at) {
        run->bad = true;
        return;
    }
    if (to > run->at && run->at < run->end) /* not beyond the code of the FDE */
        builder_row(run->b, run->at - run->frames->load_address,
                    &run->now); /* its addresses are relative to the image */
    run->at = to;
}

/* Moves the location by `delta` times the code alignment factor of the CIE. An overflow sets run->bad. */
static void unwind_program_advance(struct unwind_program_run *run, uint64_t delta)
{
    uint64_t bytes, to;
    if (__builtin_mul_overflow(delta, run->cie->code_alignment, &bytes) || __builtin_add_overflow(run->at, bytes, &to))
        run->bad = true;
    else
        move(run, to);
}

/* Executes DW_CFA_set_loc: moves the location to an address, which has the pointer encoding of the CIE. */
static void set_location(struct unwind_program_run *run)
{
    uint64_t to;
    if (frames_pointer(run->frames, &run->r, run->cie->pointer_encoding, run->cie->address_size, &to))
        move(run, to);
    else
        run->bad = true;
}

/* ---- instructions ---- */

static struct sl_bytes read_block(struct unwind_program_run *run)
{
    return sl_read_bytes(&run->r, sl_read_uleb(&run->r));
}

/* Executes one of the instructions DW_CFA_def_cfa...; any other sets run->bad. */
static void step_cfa(struct unwind_program_run *run, unsigned op)
{
    struct sl_reader *r = &run->r;
    uint64_t number;
    switch (op) {
    case DW_CFA_def_cfa:
        number = sl_read_uleb(r);
        set_cfa(run, number, (int64_t)sl_read_uleb(r));
        break;
    case DW_CFA_def_cfa_sf:
        number = sl_read_uleb(r);
        set_cfa(run, number, factored(run, sl_read_sleb(r)));
        break;
    case DW_CFA_def_cfa_register: change_cfa(run, true, sl_read_uleb(r), 0); break;
    case DW_CFA_def_cfa_offset: change_cfa(run, false, 0, (int64_t)sl_read_uleb(r)); break;
    case DW_CFA_def_cfa_offset_sf: change_cfa(run, false, 0, factored(run, sl_read_sleb(r))); break;
    case DW_CFA_def_cfa_expression: set_cfa_expression(run, read_block(run)); break;
    default: run->bad = true;
    }
}

/* Executes an instruction whose first operand is a register as ULEB128. An unknown instruction sets run->bad. */
static void step_register(struct unwind_program_run *run, unsigned op)
{
    struct sl_reader *r = &run->r;
    uint64_t number = sl_read_uleb(r);
    switch (op) {
    case DW_CFA_offset_extended: set_offset(run, number, factored(run, (int64_t)sl_read_uleb(r)), false); break;
    case DW_CFA_offset_extended_sf: set_offset(run, number, factored(run, sl_read_sleb(r)), false); break;
    case DW_CFA_GNU_negative_offset_extended:
        set_offset(run, number, factored(run, (int64_t)(0 - sl_read_uleb(r))), false);
        break;
    case DW_CFA_val_offset: set_offset(run, number, factored(run, (int64_t)sl_read_uleb(r)), true); break;
    case DW_CFA_val_offset_sf: set_offset(run, number, factored(run, sl_read_sleb(r)), true); break;
    case DW_CFA_restore_extended: restore(run, number); break;
    case DW_CFA_undefined: set_kind(run, number, SL_UNWIND_UNDEFINED); break;
    case DW_CFA_same_value: set_kind(run, number, SL_UNWIND_SAME); break;
    case DW_CFA_register: set_register(run, number, sl_read_uleb(r)); break;
    case DW_CFA_expression: set_expression(run, number, read_block(run), false); break;
    case DW_CFA_val_expression: set_expression(run, number, read_block(run), true); break;
    default: run->bad = true;
    }
}

/* Executes the next call frame instruction. An unknown or malformed one sets run->bad, as the length of its operands is unknown.
 * DW_CFA_GNU_args_size does not change where registers are and is skipped. */
static void unwind_program_step(struct unwind_program_run *run)
{
    struct sl_reader *r = &run->r;
    unsigned op = sl_read_u8(r), low = op & 0x3F;
    switch (op & 0xC0) {
    case DW_CFA_advance_loc: unwind_program_advance(run, low); return;
    case DW_CFA_offset: set_offset(run, low, factored(run, (int64_t)sl_read_uleb(r)), false); return;
    case DW_CFA_restore: restore(run, low); return;
    }
    switch (op) {
    case DW_CFA_nop: break;
    case DW_CFA_set_loc: set_location(run); break;
    case DW_CFA_advance_loc1: unwind_program_advance(run, sl_read_u8(r)); break;
    case DW_CFA_advance_loc2: unwind_program_advance(run, sl_read_u16(r)); break;
    case DW_CFA_advance_loc4: unwind_program_advance(run, sl_read_u32(r)); break;
    case DW_CFA_MIPS_advance_loc8: unwind_program_advance(run, sl_read_u64(r)); break;
    case DW_CFA_remember_state: save_rules(run); break;
    case DW_CFA_restore_state: restore_rules(run); break;
    case DW_CFA_GNU_args_size: sl_read_uleb(r); break;
    case DW_CFA_AARCH64_negate_ra_state_with_pc:
    case DW_CFA_AARCH64_negate_ra_state:
        /* Ignored: whoever uses the rules strips the signature from the return address. Only ARM64 has these instructions, but 0x2D is
         * DW_CFA_GNU_window_save on SPARC and changes rules there. SPARC is of no known family (SL_CPU_UNKNOWN, pointer size 4), so it is
         * refused with the 32-bit CPUs. */
        run->bad = sl_cpu_pointer_size(run->b->family) != 8;
        break;
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_sf:
    case DW_CFA_def_cfa_register:
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_offset_sf:
    case DW_CFA_def_cfa_expression: step_cfa(run, op); break;
    default: step_register(run, op);
    }
}

/* Executes instructions up to their end. False, and run->bad is set, if one is malformed or unsupported, or if the budget is used up. */
static bool execute(struct unwind_program_run *run, struct sl_bytes instructions)
{
    run->r = sl_reader(instructions, run->frames->big_endian);
    while (!run->bad && sl_reader_left(&run->r)) {
        unwind_program_step(run);
        if (run->r.failed || !builder_spend(run->b, count_steps(&run->now)))
            run->bad = true;
    }
    return !run->bad;
}

/* Initialises everything except `now`, which the caller fills: it is a large array, and clearing it for each FDE would be slow. */
static void unwind_program_begin(struct unwind_program_run *run, const struct cfi_section_data *frames,
                                 const struct cie *cie, struct unwind_builder *b)
{
    memset(run, 0, offsetof(struct unwind_program_run, now));
    memset(run->remembered, 0, sizeof *run - offsetof(struct unwind_program_run, remembered));
    run->frames = frames;
    run->cie = cie;
    run->b = b;
}

static void unwind_program_end(struct unwind_program_run *run)
{
    for (size_t i = 0; i < MAX_REMEMBERED && run->remembered[i]; i++) /* allocated from the lowest index on */
        free(run->remembered[i]);
}

bool program_begin(const struct cfi_section_data *frames, struct cie *cie, struct unwind_builder *b)
{
    struct unwind_program_run run;
    unwind_program_begin(&run, frames, cie, b);
    rules_clear(&run.now);
    rules_clear(&cie->initial); /* which DW_CFA_restore reads, in a CIE before it is filled */
    /* in a CIE, instructions that move the location are invalid */
    bool ok = execute(&run, cie->instructions) && run.at == 0;
    unwind_program_end(&run);
    rules_copy(&cie->initial, &run.now);
    return ok;
}

bool program_run(const struct cfi_section_data *frames, const struct cie *cie, const struct fde *fde,
                 struct unwind_builder *b)
{
    struct unwind_program_run run;
    unwind_program_begin(&run, frames, cie, b);
    run.at = fde->start;
    run.end = fde->end;
    builder_spend(b, count_steps(&cie->initial));
    rules_copy(&run.now, &cie->initial);
    run.has_cfa = run.now.cfa.kind == SL_UNWIND_OFFSET;
    bool ok = execute(&run, fde->instructions);
    unwind_program_end(&run);
    if (ok && run.at < run.end)
        builder_row(b, run.at - frames->load_address, &run.now);
    /* after an error the rules are known only up to the address that was reached */
    builder_end(b, (ok || run.at > run.end ? run.end : run.at) - frames->load_address);
    return ok;
}
