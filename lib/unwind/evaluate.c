/* Finds the caller of a frame by call frame information: evaluates its rules with the registers and memory of the dump. */
#include "unwind/walk_impl.h"

#include "unwind/impl.h"

enum { ARM64_FP = 29, ARM64_LR = 30, ARM64_PC = 32, ARM_FP = 11 }; /* DWARF numbers */

/* Second names of registers in symbol files, besides those that sl_unwind_register_name() returns. */
static const struct alias {
    enum sl_cpu_family family;
    struct sl_str name;
    unsigned number;
} aliases[] = {
    {SL_CPU_ARM, SL_STR("fp"), ARM_FP},     {SL_CPU_ARM, SL_STR("r13"), 13},
    {SL_CPU_ARM, SL_STR("r14"), 14},        {SL_CPU_ARM, SL_STR("r15"), 15},
    {SL_CPU_ARM64, SL_STR("fp"), ARM64_FP}, {SL_CPU_ARM64, SL_STR("lr"), ARM64_LR},
    {SL_CPU_ARM64, SL_STR("pc"), ARM64_PC},
};

unsigned walk_register(enum sl_cpu_family family, struct sl_str name)
{
    if (name.size && name.data[0] == '$')
        name = (struct sl_str){name.data + 1, name.size - 1};
    for (unsigned i = 0; i < SL_WALK_REGISTERS; i++) {
        const char *known = sl_unwind_register_name(family, i);
        if (known && sl_str_equal(sl_str(known + (*known == '$')), name))
            return i;
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (aliases[i].family == family && sl_str_equal(aliases[i].name, name))
            return aliases[i].number;
    return SL_WALK_REGISTERS;
}

/* ---- rules ---- */

/* True for a DWARF register number whose value the walker does not store: rules for it are ignored. */
static bool is_untracked(const struct walk_cpu *cpu, uint64_t number)
{
    return number >= SL_WALK_REGISTERS || (cpu->untracked >> number & 1);
}

bool walk_callee_register(const struct walk_scope *scope, uint64_t number, uint64_t *value)
{
    if (is_untracked(scope->s->cpu, number) || !walk_known(scope->registers, (unsigned)number))
        return false;
    *value = scope->registers->value[number];
    return true;
}

/* Gets the value of a rule's base: the CFA, or a register of the callee. False if it is unknown. */
static bool base_value(const struct walk_scope *scope, unsigned base, uint64_t *value)
{
    if (base == SL_UNWIND_CFA) {
        *value = scope->cfa;
        return scope->has_cfa;
    }
    return walk_callee_register(scope, base, value);
}

/* Computes the value that the rule gives register `number` of the caller. False, and `*value` is 0, if it is undefined or cannot be
 * computed. False, and `*value` is not set, if the work budget is used up. */
static bool rule_value(const struct walk_scope *scope, const struct sl_cfi *cfi, const struct sl_unwind_rule *rule,
                       unsigned number, uint64_t *value)
{
    bool ok = false;
    if (!walk_spend(scope->s, 1))
        return false;
    switch ((enum sl_unwind_kind)rule->kind) {
    case SL_UNWIND_UNDEFINED: break;
    case SL_UNWIND_SAME: ok = base_value(scope, number, value); break;
    case SL_UNWIND_REGISTER: ok = base_value(scope, rule->base, value); break;
    case SL_UNWIND_OFFSET:
    case SL_UNWIND_MEMORY:
        ok = base_value(scope, rule->base, value);
        *value += (uint64_t)rule->offset;
        if (ok && rule->kind == SL_UNWIND_MEMORY)
            ok = walk_read(scope->s, *value, value);
        break;
    case SL_UNWIND_PROGRAM: ok = postfix_evaluate(scope, rule->program, value); break;
    case SL_UNWIND_EXPRESSION: /* those of registers, not that of the CFA, begin with the CFA on the stack */
        ok = dwarf_stack_evaluate(scope, rule->program, cfi->big_endian, rule->reg != SL_UNWIND_CFA, value);
        break;
    }
    *value = ok ? walk_truncate(scope->s->cpu, *value) : 0;
    return ok;
}

void walk_keep_preserved(const struct walk_cpu *cpu, const struct sl_registers *callee, struct sl_registers *caller)
{
    *caller = *callee;
    caller->valid &= cpu->preserved;
}

static void drop_register(struct sl_registers *registers, unsigned number)
{
    registers->valid &= ~(UINT64_C(1) << number);
}

/* Sets a register of the caller by a rule, which is not that of the CFA or the return address. If the value cannot be computed, the
 * register becomes unknown. */
static void apply_rule(const struct walk_scope *scope, const struct sl_cfi *cfi, const struct sl_unwind_rule *rule,
                       struct sl_registers *caller)
{
    uint64_t value = 0;
    enum sl_cpu_family family = scope->s->cpu->family;
    if (rule->reg == SL_UNWIND_NAMED && !walk_spend(scope->s, WALK_COST_NAME)) /* the work budget is used up */
        return;
    unsigned number = rule->reg == SL_UNWIND_NAMED ? walk_register(family, rule->name) : rule->reg;
    if (is_untracked(scope->s->cpu, number))
        return;
    if (rule_value(scope, cfi, rule, number, &value))
        sl_registers_set(caller, number, value);
    else
        drop_register(caller, number);
}

/* Computes the caller's registers by the rules of `row`: first the CFA, on which other rules depend; then the return address; then the
 * other registers, for which the rules are read a second time (`again`). WALK_END if the return address is undefined, which marks the
 * outermost function; WALK_NOTHING if CFA or return address cannot be computed. */
static enum walk_result apply_row(const struct walk_scope *scope, const struct sl_cfi *cfi, struct sl_cfi_row row,
                                  struct walk_frame *caller)
{
    const struct walk_cpu *cpu = scope->s->cpu;
    struct sl_cfi_row again = row;
    struct walk_scope with_cfa = *scope;
    struct sl_unwind_rule rule;
    uint64_t ra = 0;
    bool has_ra = false;
    if (!sl_cfi_rule(&row, &rule) || rule.reg != SL_UNWIND_CFA ||
        !rule_value(scope, cfi, &rule, SL_UNWIND_CFA, &with_cfa.cfa))
        return WALK_NOTHING;
    with_cfa.has_cfa = true;
    while (!has_ra && sl_cfi_rule(&row, &rule)) {
        if (rule.reg != SL_UNWIND_RA)
            continue;
        if (rule.kind == SL_UNWIND_UNDEFINED)
            return WALK_END;
        if (!rule_value(&with_cfa, cfi, &rule, SL_UNWIND_RA, &ra))
            return WALK_NOTHING;
        has_ra = true;
    }
    if (!has_ra)
        return WALK_NOTHING;
    walk_keep_preserved(cpu, scope->registers,
                        &caller->registers); /* callee-saved registers without a rule are unchanged */
    sl_registers_set(&caller->registers, cpu->sp, with_cfa.cfa);
    sl_registers_set(&caller->registers, cpu->pc, ra);
    while (sl_cfi_rule(&again, &rule))
        if (rule.reg != SL_UNWIND_CFA && rule.reg != SL_UNWIND_RA)
            apply_rule(&with_cfa, cfi, &rule, &caller->registers);
    return WALK_CALLER;
}

/* ---- frames ---- */

/* Removes pointer authentication codes (ARM64) from pc, frame pointer and link register. */
static void strip_signatures(const struct sl_walk_state *s, struct sl_registers *registers)
{
    registers->value[ARM64_PC] &= s->address_mask;
    registers->value[ARM64_FP] &= s->address_mask;
    registers->value[ARM64_LR] &= s->address_mask;
}

/* ARM64: true if the callee's link register cannot be trusted. If the callee was found by its frame pointer, the register is the return
 * address only at the entry of a function: at the start address of a range's first row. */
static bool guesses_link(const struct walk_frame *callee, const struct sl_cfi_row *row, uint64_t address)
{
    return callee->trust == SL_TRUST_FP && !(row->begins && row->address == address);
}

/* Finds the caller by the rules of `row`; `address` is the callee's instruction as the CFI counts addresses. The caller of a signal frame
 * was interrupted and has not made a call, so its instruction is the pc itself, not the call before it. On ARM64 a link register that
 * cannot be trusted (guesses_link) counts as unknown. */
static enum walk_result by_row(struct sl_walk_state *s, const struct sl_cfi *cfi, const struct sl_cfi_row *row,
                               uint64_t address, const struct walk_frame *callee, struct walk_frame *caller)
{
    struct sl_registers without_link;
    struct walk_scope scope = {.s = s, .registers = &callee->registers};
    if (s->cpu->family == SL_CPU_ARM64 && guesses_link(callee, row, address)) {
        without_link = callee->registers;
        drop_register(&without_link, ARM64_LR);
        scope.registers = &without_link;
    }
    enum walk_result result = apply_row(&scope, cfi, *row, caller);
    if (result != WALK_CALLER)
        return result;
    if (s->cpu->family == SL_CPU_ARM64)
        strip_signatures(s, &caller->registers); /* pointer authentication codes in the upper bits */
    if (row->signal_frame)
        caller->instruction = caller->registers.value[s->cpu->pc];
    return result;
}

/* Finds the caller of a leaf function on 64-bit Windows. A leaf has no unwind data and does not change the stack, so the return address is
 * the word at the stack pointer. WALK_NOTHING if that word is in no code; WALK_WAIT if CFI or symbols must be loaded first to judge it. */
static enum walk_result by_leaf(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller)
{
    const struct walk_cpu *cpu = s->cpu;
    uint64_t sp = callee->registers.value[cpu->sp], ra;
    if (!walk_read(s, sp, &ra))
        return WALK_NOTHING;
    enum walk_result result = walk_is_plausible_code(s, ra);
    if (result != WALK_CALLER)
        return result;
    walk_keep_preserved(cpu, &callee->registers, &caller->registers);
    sl_registers_set(&caller->registers, cpu->sp, sp + cpu->word);
    sl_registers_set(&caller->registers, cpu->pc, ra);
    return WALK_CALLER;
}

/* Finds the caller by the STACK WIN record at the address: one of type 4, which has a program, or else of type 0, which has only sizes.
 * Registers that functions must preserve and the record does not give are taken from the callee and marked as assumed. False if there is
 * no record, or it does not lead to a caller. */
static bool by_windows(struct sl_walk_state *s, const struct sl_cfi *cfi, uint64_t address,
                       const struct walk_frame *callee, struct walk_frame *caller)
{
    static const unsigned types[] = {4, 0};
    struct sl_unwind_win win;
    for (size_t i = 0; i < 2; i++)
        if (sl_cfi_find_win(cfi, types[i], address, &win)) {
            walk_keep_preserved(s->cpu, &callee->registers, &caller->registers);
            caller->registers.assumed = caller->registers.valid;
            return windows_evaluate(s, &win, callee, &caller->registers);
        }
    return false;
}

/* Returns the address of the frame's instruction as the CFI of its module counts addresses. */
static uint64_t address_in_cfi(const struct sl_walk_state *s, const struct walk_frame *frame)
{
    const struct sl_walk_module *module = &s->modules[frame->module];
    return frame->instruction - module->base + module->cfi_offset;
}

/* Finds the caller by the CFI of the callee's module: on x86 by a STACK WIN record, if there is one, else by call frame rules; a leaf of
 * 64-bit Windows has none, see by_leaf(). WALK_WAIT if the CFI must be loaded first, WALK_NOTHING if it has nothing for the address. */
enum walk_result walk_by_cfi(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller)
{
    const struct sl_cfi *cfi;
    struct sl_cfi_row row;
    if (callee->module == SL_WALK_NO_MODULE || !walk_known(&callee->registers, s->cpu->sp))
        return WALK_NOTHING;
    if (walk_cfi(s, callee->module, &cfi) == WALK_WAIT)
        return WALK_WAIT;
    if (!cfi)
        return WALK_NOTHING;
    uint64_t address = address_in_cfi(s, callee);
    if (s->cpu->family == SL_CPU_X86 && by_windows(s, cfi, address, callee, caller))
        return WALK_CALLER;
    if (sl_cfi_find(cfi, address, &row))
        return by_row(s, cfi, &row, address, callee, caller);
    /* on 64-bit Windows all functions but leaves have unwind data, so in a module with such data (row_count) a function without is a leaf;
     * a leaf calls nothing, so it can only be the innermost frame */
    bool is_leaf =
        s->cpu->family == SL_CPU_X86_64 && s->target.is_windows && callee->trust == SL_TRUST_CONTEXT && cfi->row_count;
    return is_leaf ? by_leaf(s, callee, caller) : WALK_NOTHING;
}

enum walk_result walk_has_cfi(struct sl_walk_state *s, const struct walk_frame *frame)
{
    const struct sl_cfi *cfi;
    struct sl_cfi_row row;
    struct sl_unwind_win win;
    if (frame->module == SL_WALK_NO_MODULE)
        return WALK_NOTHING;
    if (walk_cfi(s, frame->module, &cfi) == WALK_WAIT)
        return WALK_WAIT;
    uint64_t address = address_in_cfi(s, frame);
    bool found = cfi && (sl_cfi_find(cfi, address, &row) || sl_cfi_find_win(cfi, 4, address, &win) ||
                         sl_cfi_find_win(cfi, 0, address, &win));
    return found ? WALK_CALLER : WALK_NOTHING;
}

uint32_t walk_params(const struct sl_walk_state *s, const struct walk_frame *frame)
{
    struct sl_unwind_win win;
    if (s->cpu->family != SL_CPU_X86 || frame->module == SL_WALK_NO_MODULE)
        return 0;
    /* loaded before, as walk_step() waits for the CFI of each frame's module */
    const struct sl_cfi *cfi = atomic_load_explicit(&s->modules[frame->module].cfi, memory_order_acquire);
    uint64_t address = address_in_cfi(s, frame);
    bool found = cfi && (sl_cfi_find_win(cfi, 4, address, &win) || sl_cfi_find_win(cfi, 0, address, &win));
    return found ? win.params : 0;
}
