/* The builder: format readers give it all unwind rules at successive addresses. It passes ranges of addresses to the sink, in which each
 * row has only the rules that changed. */
#include "unwind/impl.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* Work charged to the budget for a rule: making it, comparing it, and writing it as text. */
enum { STEPS_PER_RULE = 8 };

bool builder_init(struct unwind_builder *b, struct sl_unwind_sink *sink, enum sl_cpu_family family,
                  struct sl_budget *budget, struct sl_error *error)
{
    *b = (struct unwind_builder){
        .sink = sink,
        .error = error,
        .family = family,
        .ra = SL_UNWIND_RA, /* no register has the return address; readers set another value */
        .account = {.budget = budget},
        .arena = {.budget = budget},
    };
    b->last = malloc(sizeof *b->last); /* the rules at the last address, with which the next ones are compared */
    return b->last != NULL;
}

/* Frees the builder's arrays and the texts of its rules, also after a failed read. */
void builder_free(struct unwind_builder *b)
{
    free(b->last);
    free(b->rows);
    free(b->rules);
    free(b->spans);
    sl_account_release(&b->account);
    sl_arena_free(&b->arena);
}

bool builder_spend(struct unwind_builder *b, uint32_t steps)
{
    if (b->code == SL_OK && !sl_account_spend(&b->account, steps))
        b->code = sl_budget_fail(b->account.budget, b->error);
    return b->code == SL_OK;
}

/* True if the texts are equal. Mostly even the pointers are, so they are compared first. */
static bool same_text(struct sl_str a, struct sl_str b)
{
    return (a.data == b.data && a.size == b.size) || sl_str_equal(a, b);
}

static bool same_register(const struct sl_unwind_rule *a, const struct sl_unwind_rule *b)
{
    return a->reg == b->reg && (a->reg != SL_UNWIND_NAMED || same_text(a->name, b->name));
}

bool rules_set(struct unwind_rules *rules, const struct sl_unwind_rule *rule)
{
    size_t i = 0;
    if (rule->reg == SL_UNWIND_CFA) {
        rules->cfa = *rule;
        rules->cfa_known = true;
        return true;
    }
    while (i < rules->count && !same_register(&rules->slots[i].rule, rule))
        i++;
    if (i == MAX_SLOTS)
        return false;
    if (i == rules->count)
        rules->count++;
    rules->slots[i] = (struct unwind_slot){.rule = *rule, .set = true};
    return true;
}

void rules_clear(struct unwind_rules *rules)
{
    rules->count = 0;
    rules->cfa = (struct sl_unwind_rule){.reg = SL_UNWIND_CFA};
    rules->cfa_known = rules->not_in_text = false;
}

static bool same_rule(const struct sl_unwind_rule *a, const struct sl_unwind_rule *b)
{
    return a->reg == b->reg && a->kind == b->kind && a->base == b->base && a->offset == b->offset &&
           same_text(a->program, b->program);
}

/* Grows an array for one more item of `item` bytes. If the budget is used up or memory is short, sets b->code and returns false. */
static bool grow(struct unwind_builder *b, void *array, size_t count, size_t *capacity, size_t item)
{
    if (sl_account_grow(&b->account, array, capacity, count + 1, item))
        return true;
    b->code = sl_budget_fail(b->account.budget, b->error);
    return false;
}

static void add_rule(struct unwind_builder *b, const struct sl_unwind_rule *rule)
{
    if (builder_spend(b, STEPS_PER_RULE) && grow(b, &b->rules, b->rule_count, &b->rule_capacity, sizeof *b->rules))
        b->rules[b->rule_count++] = *rule;
}

/* Returns the rule that means the same as the absence of a rule: a register keeps its value; the return address is in the register where
 * calls store it (b->ra), or undefined if calls store it in none (b->ra is SL_UNWIND_RA). */
static struct sl_unwind_rule default_rule(const struct unwind_builder *b, uint16_t reg)
{
    if (reg != SL_UNWIND_RA)
        return (struct sl_unwind_rule){.reg = reg, .kind = SL_UNWIND_SAME};
    if (b->ra != SL_UNWIND_RA)
        return rule_register(reg, b->ra);
    return (struct sl_unwind_rule){.reg = reg, .kind = SL_UNWIND_PROGRAM, .program = SL_STR(".undef")};
}

/* True if there is a rule for the return address. */
static bool mentions_ra(const struct unwind_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rules->slots[i].set && rules->slots[i].rule.reg == SL_UNWIND_RA)
            return true;
    return false;
}

/* Adds all rules at the first address of a range. If none of them is for the return address, and calls store it in a register (b->ra),
 * it is still there: adds a rule that says so, because Breakpad does not use a range without a rule for it. */
static void add_first(struct unwind_builder *b, const struct unwind_rules *now)
{
    add_rule(b, &now->cfa);
    for (size_t i = 0; i < now->count; i++)
        if (now->slots[i].set)
            add_rule(b, &now->slots[i].rule);
    if (!mentions_ra(now) && b->ra != SL_UNWIND_RA) {
        struct sl_unwind_rule ra = default_rule(b, SL_UNWIND_RA);
        add_rule(b, &ra);
    }
}

/* Adds the rules that differ from those at the range's previous address (b->last). Within a range a register keeps its index in `slots`, so
 * equal indexes mean equal registers. A rule that is gone becomes the rule with the same meaning as none. */
static void add_changes(struct unwind_builder *b, const struct unwind_rules *now)
{
    const struct unwind_rules *last = b->last;
    if (!same_rule(&now->cfa, &last->cfa))
        add_rule(b, &now->cfa);
    for (size_t i = 0; i < now->count || i < last->count; i++) {
        const struct unwind_slot *is = i < now->count && now->slots[i].set ? &now->slots[i] : NULL;
        const struct unwind_slot *was = i < last->count && last->slots[i].set ? &last->slots[i] : NULL;
        if (is && !(was && same_rule(&is->rule, &was->rule))) {
            add_rule(b, &is->rule);
        } else if (was && !is) {
            struct sl_unwind_rule rule = default_rule(b, was->rule.reg);
            rule.name = was->rule.name;
            add_rule(b, &rule);
        }
    }
}

/* Copies the rules. Of the large array `slots` only those in use are copied, because this is done at every address with new rules. */
void rules_copy(struct unwind_rules *to, const struct unwind_rules *from)
{
    to->cfa = from->cfa;
    to->cfa_known = from->cfa_known;
    to->not_in_text = from->not_in_text;
    to->count = from->count;
    memcpy(to->slots, from->slots, from->count * sizeof *from->slots);
}

/* True if the rule of the CFA is a DWARF expression, which symbol files cannot express. They omit such a range, because all its other rules
 * depend on the CFA. */
static bool cfa_beyond_text(const struct unwind_rules *rules)
{
    return rules->cfa.kind == SL_UNWIND_EXPRESSION;
}

void builder_row(struct unwind_builder *b, uint64_t address, const struct unwind_rules *rules)
{
    /* a range ends where the CFA becomes unknown, where it has too many rules, and where the CFA begins or ceases to be a DWARF expression:
     * STACK CFI text, which cannot express those, must contain a range wholly or not at all */
    bool ends = b->open && (!rules->cfa_known || b->rule_count > MAX_ROW_RULES ||
                            cfa_beyond_text(rules) != cfa_beyond_text(b->last));
    if (ends)
        builder_end(b, address);
    if (!rules->cfa_known || !builder_spend(b, count_steps(rules)) ||
        !grow(b, &b->rows, b->row_count, &b->row_capacity, sizeof *b->rows))
        return;
    size_t first_rule = b->rule_count;
    if (b->open)
        add_changes(b, rules);
    else
        add_first(b, rules);
    if (b->code != SL_OK || b->rule_count == first_rule) /* nothing changed: no row */
        return;
    if (!b->open)
        b->start = address;
    b->open = true;
    b->rows[b->row_count++] = (struct sl_unwind_row){.address = address,
                                                     .count = b->rule_count - first_rule,
                                                     .not_in_text = rules->not_in_text || cfa_beyond_text(rules)};
    rules_copy(b->last, rules);
}

enum sl_code builder_end(struct unwind_builder *b, uint64_t end)
{
    size_t at = 0;
    /* the array of rules may have moved while it grew, so rows get their pointers into it only now */
    for (size_t i = 0; i < b->row_count; i++) {
        b->rows[i].rules = b->rules + at;
        at += b->rows[i].count;
    }
    const struct sl_unwind_range range = {.start = b->start,
                                          .size = end - b->start,
                                          .rows = b->rows,
                                          .row_count = b->row_count,
                                          .signal_frame = b->signal_frame};
    if (b->open && b->code == SL_OK && end > b->start) {
        b->code = b->sink->range(b->sink, &range, b->error);
        b->emitted++; /* so that the file does not count as one without unwind information */
        /* remember which code has rules, for builder_gap(); not code whose rules STACK CFI text cannot express: ARM's tables may have
         * others for it */
        if (b->keeps_spans && !b->rows[0].not_in_text &&
            grow(b, &b->spans, b->span_count, &b->span_capacity, sizeof *b->spans))
            b->spans[b->span_count++] = (struct unwind_span){b->start, end};
    }
    b->open = false;
    b->row_count = b->rule_count = 0;
    return b->code;
}

/* ---- spans ---- */

SL_ORDER_BY(unwind_build_by_start, struct unwind_span, start)

/* Sorts the recorded address spans, merges those that overlap or touch, and records no more. */
void builder_close_spans(struct unwind_builder *b)
{
    size_t kept = 0;
    b->keeps_spans = false;
    if (b->span_count)
        qsort(b->spans, b->span_count, sizeof *b->spans, unwind_build_by_start);
    for (size_t i = 0; i < b->span_count; i++) {
        struct unwind_span *last = kept ? &b->spans[kept - 1] : NULL;
        if (last && b->spans[i].start <= last->end)
            last->end = b->spans[i].end > last->end ? b->spans[i].end : last->end;
        else
            b->spans[kept++] = b->spans[i];
    }
    b->span_count = kept;
}

bool builder_gap(const struct unwind_builder *b, uint64_t start, uint64_t end, struct unwind_span *gap)
{
    size_t low = SL_PARTITION_POINT(middle, 0, b->span_count,
                                    b->spans[middle].end <= start); /* first that ends behind `start` */
    if (low < b->span_count && b->spans[low].start <= start) /* it covers `start`: the gap can only begin at its end */
        start = b->spans[low++].end;
    *gap = (struct unwind_span){start, low < b->span_count && b->spans[low].start < end ? b->spans[low].start : end};
    return start < end;
}
