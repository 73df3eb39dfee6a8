/* Translates DWARF expressions into the postfix text of STACK CFI records. Both are programs of a stack machine, so each item on the DWARF
 * stack is represented by the postfix text that computes it. The texts of all items, from the bottom on, form one string.
 *
 * Postfix text has + - * / % @ (round down to a multiple) and ^ (load), unsigned. Bit operations and comparisons, which linkers
 * use in the expressions for procedure linkage tables, are translated to arithmetic:
 *
 *     x & 15     x 16 %            x << 3    x 8 *
 *     x & -16    x 16 @            x >> 3    x 8 /
 *     x >= 11    x 5 + 16 /        if x is known to be less than 16 */
#include "unwind/dwarf.h"

#include <inttypes.h>
#include <stdio.h>

/* Expressions that need more stack items or bytes of text are not translated. */
enum { MAX_ITEMS = 16, MAX_TEXT = 512 };

struct unwind_stack_item {
    size_t begin;     /* its text ends where that of the next item begins */
    uint64_t max;     /* upper bound of its value */
    bool is_constant; /* its value is `max` */
};

struct translation {
    struct sl_reader r;
    enum sl_cpu_family family;
    char text[MAX_TEXT];
    size_t size;
    struct unwind_stack_item items[MAX_ITEMS];
    size_t count;
    bool failed;
};

/* Appends to t->text. If it would get longer than MAX_TEXT, the translation fails. */
static void expression_put(struct translation *t, const char *data, size_t size)
{
    if (t->size + size > MAX_TEXT) {
        t->failed = true;
        return;
    }
    memcpy(t->text + t->size, data, size);
    t->size += size;
}

/* Appends a token to the text of the topmost item, with a blank before it unless it is the item's first token. */
static void put_token(struct translation *t, const char *token)
{
    if (t->count && t->size > t->items[t->count - 1].begin)
        expression_put(t, " ", 1);
    expression_put(t, token, strlen(token));
}

/* Pushes an item whose text is one token. `max` is an upper bound of its value, or the value itself if `is_constant`. */
static void push(struct translation *t, const char *token, uint64_t max, bool is_constant)
{
    if (t->count == MAX_ITEMS) {
        t->failed = true;
        return;
    }
    t->items[t->count++] = (struct unwind_stack_item){.begin = t->size, .max = max, .is_constant = is_constant};
    put_token(t, token);
}

static void push_number(struct translation *t, uint64_t value)
{
    char token[24];
    snprintf(token, sizeof token, "%" PRId64, (int64_t)value);
    push(t, token, value, true);
}

/* Pushes `register offset +`, or `register` if the offset is 0. The upper bound is UINT64_MAX, as the value is not known. If the register
 * has no name in symbol files, the translation fails. */
static void push_register(struct translation *t, uint64_t reg, int64_t offset)
{
    const char *name = reg < SL_UNWIND_NAMED ? sl_unwind_register_name(t->family, (unsigned)reg) : NULL;
    char token[24];
    if (!name) {
        t->failed = true;
        return;
    }
    push(t, name, UINT64_MAX, false);
    if (offset) {
        snprintf(token, sizeof token, "%" PRId64, offset);
        put_token(t, token);
        put_token(t, "+");
    }
}

/* True if at least `count` items are on the stack; else the translation fails. */
static bool need(struct translation *t, size_t count)
{
    if (t->count < count)
        t->failed = true;
    return !t->failed;
}

/* Pushes a copy of the item `depth` places under the top of the stack; 0 is the top itself. */
static void expression_copy(struct translation *t, size_t depth)
{
    if (!need(t, depth + 1) || t->count == MAX_ITEMS) {
        t->failed = true;
        return;
    }
    struct unwind_stack_item item = t->items[t->count - 1 - depth];
    size_t end = depth ? t->items[t->count - depth].begin : t->size, begin = item.begin;
    item.begin = t->size;
    expression_put(t, t->text + begin, end - begin);
    t->items[t->count++] = item;
}

/* Removes the top item and its text. */
static void expression_drop(struct translation *t)
{
    if (need(t, 1))
        t->size = t->items[--t->count].begin;
}

/* Exchanges the two topmost items and their texts, which lie side by side. */
static void swap(struct translation *t)
{
    if (!need(t, 2))
        return;
    struct unwind_stack_item low = t->items[t->count - 2], top = t->items[t->count - 1];
    size_t low_size = top.begin - low.begin, top_size = t->size - top.begin;
    char text[MAX_TEXT];
    memcpy(text, t->text + top.begin, top_size);
    memmove(t->text + low.begin + top_size, t->text + low.begin, low_size);
    memcpy(t->text + low.begin, text, top_size);
    t->items[t->count - 2] = (struct unwind_stack_item){low.begin, top.max, top.is_constant};
    t->items[t->count - 1] = (struct unwind_stack_item){low.begin + top_size, low.max, low.is_constant};
}

/* Replaces the two topmost items by the result of an operator, of which `max` is an upper bound: puts a blank between their texts, which
 * lie side by side, and the operator behind. */
static void expression_join(struct translation *t, const char *operator, uint64_t max)
{
    if (!need(t, 2))
        return;
    size_t begin = t->items[t->count - 1].begin;
    if (t->size == MAX_TEXT) {
        t->failed = true;
        return;
    }
    memmove(t->text + begin + 1, t->text + begin, t->size - begin);
    t->text[begin] = ' ';
    t->size++;
    t->count--;
    t->items[t->count - 1].max = max;
    t->items[t->count - 1].is_constant = false;
    put_token(t, operator);
}

/* Pops the topmost item, which must be a constant, and returns its value; otherwise the translation fails. */
static uint64_t pop_constant(struct translation *t)
{
    if (!need(t, 1) || !t->items[t->count - 1].is_constant) {
        t->failed = true;
        return 0;
    }
    uint64_t value = t->items[t->count - 1].max;
    expression_drop(t);
    return value;
}

/* Applies an operator to the topmost item and the number `value`; `max` is an upper bound of the result. */
static void with_number(struct translation *t, uint64_t value, const char *operator, uint64_t max)
{
    push_number(t, value);
    expression_join(t, operator, max);
}

/* Translates `and` with a constant: a mask of the low bits becomes `%`, a mask that clears only low bits becomes `@` (round down). With any
 * other mask the translation fails. with_number() appends a number and the operator; its last argument is the result's upper bound. */
static void mask(struct translation *t)
{
    uint64_t value = pop_constant(t), inverse = ~value;
    if (t->failed)
        return;
    /* v & (v + 1) is 0 if all set bits of v are its lowest ones; numbers in the text are signed, hence INT64_MAX */
    if ((value & (value + 1)) == 0 && value < INT64_MAX)
        with_number(t, value + 1, "%", value);
    else if ((inverse & (inverse + 1)) == 0 && inverse < INT64_MAX)
        with_number(t, inverse + 1, "@", UINT64_MAX);
    else
        t->failed = true;
}

/* Translates a shift by a constant to a multiplication or division by a power of two. The power must be below 2^63, as numbers in the text
 * are signed. with_number() appends a number and the operator; its last argument is the result's upper bound. */
static void shift(struct translation *t, bool left)
{
    uint64_t bits = pop_constant(t);
    if (!need(t, 1) || bits > 62) {
        t->failed = true;
        return;
    }
    uint64_t max = t->items[t->count - 1].max;
    if (left)
        with_number(t, UINT64_C(1) << bits, "*", max > UINT64_MAX >> bits ? UINT64_MAX : max << bits);
    else
        with_number(t, UINT64_C(1) << bits, "/", max >> bits);
}

/* Translates `item >= limit`, where limit is the constant on top plus `more` (1 for `>`, else 0), to `item (power - limit) + power /`. That
 * is 1 or 0: `power` is a power of two above the item's maximum and not below the limit, so the sum reaches it exactly if item >= limit. */
static void expression_compare(struct translation *t, uint64_t more)
{
    uint64_t limit = pop_constant(t) + more, power = 1;
    /* larger values are refused, so that neither `power` nor the sum can overflow */
    if (!need(t, 1) || t->items[t->count - 1].max >= UINT64_C(1) << 32 || limit > UINT64_C(1) << 32) {
        t->failed = true;
        return;
    }
    while (power <= t->items[t->count - 1].max || power < limit)
        power *= 2;
    with_number(t, power - limit, "+", UINT64_MAX);
    with_number(t, power, "/", 1);
}

/* Returns an upper bound of the sum of the two topmost items; UINT64_MAX if the sum may overflow. */
static uint64_t add_max(const struct translation *t)
{
    uint64_t a = t->count > 1 ? t->items[t->count - 2].max : 0, b = t->count ? t->items[t->count - 1].max : 0;
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Translates a load of `size` bytes to `^`, which loads words of pointer size; with another size the translation fails. */
static void deref(struct translation *t, unsigned size)
{
    if (size != sl_cpu_pointer_size(t->family))
        t->failed = true;
    if (!need(t, 1))
        return;
    put_token(t, "^");
    t->items[t->count - 1].max = UINT64_MAX;
    t->items[t->count - 1].is_constant = false;
}

bool dwarf_constant(struct sl_reader *r, unsigned op, uint64_t *value)
{
    switch (op) {
    case DW_OP_const1u: *value = sl_read_u8(r); break;
    case DW_OP_const1s: *value = (uint64_t)(int8_t)sl_read_u8(r); break;
    case DW_OP_const2u: *value = sl_read_u16(r); break;
    case DW_OP_const2s: *value = (uint64_t)(int16_t)sl_read_u16(r); break;
    case DW_OP_const4u: *value = sl_read_u32(r); break;
    case DW_OP_const4s: *value = (uint64_t)(int32_t)sl_read_u32(r); break;
    case DW_OP_const8u:
    case DW_OP_const8s: *value = sl_read_u64(r); break;
    case DW_OP_constu: *value = sl_read_uleb(r); break;
    case DW_OP_consts: *value = (uint64_t)sl_read_sleb(r); break;
    default:
        if (op < DW_OP_lit0 || op > DW_OP_lit31)
            return false;
        *value = op - DW_OP_lit0;
    }
    return true;
}

/* Translates the next operation; the translation fails if postfix text cannot express it. */
static void expression_step(struct translation *t)
{
    struct sl_reader *r = &t->r;
    unsigned op = sl_read_u8(r);
    uint64_t constant;
    if (dwarf_constant(r, op, &constant)) {
        push_number(t, constant);
        return;
    }
    if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
        push_register(t, op - DW_OP_breg0, sl_read_sleb(r));
        return;
    }
    switch (op) {
    case DW_OP_bregx: {
        uint64_t reg = sl_read_uleb(r);
        push_register(t, reg, sl_read_sleb(r));
        break;
    }
    case DW_OP_deref: deref(t, sl_cpu_pointer_size(t->family)); break;
    case DW_OP_deref_size: deref(t, sl_read_u8(r)); break;
    case DW_OP_dup: expression_copy(t, 0); break;
    case DW_OP_over: expression_copy(t, 1); break;
    case DW_OP_drop: expression_drop(t); break;
    case DW_OP_swap: swap(t); break;
    case DW_OP_plus: expression_join(t, "+", add_max(t)); break;
    case DW_OP_minus: expression_join(t, "-", UINT64_MAX); break;
    case DW_OP_mul: expression_join(t, "*", UINT64_MAX); break;
    case DW_OP_plus_uconst:
        push_number(t, sl_read_uleb(r));
        expression_join(t, "+", add_max(t));
        break;
    case DW_OP_and: mask(t); break;
    case DW_OP_shl: shift(t, true); break;
    case DW_OP_shr: shift(t, false); break;
    case DW_OP_ge: expression_compare(t, 0); break;
    case DW_OP_gt: expression_compare(t, 1); break;
    case DW_OP_nop: break;
    default: t->failed = true;
    }
}

bool expression_translate(struct sl_bytes expression, enum sl_cpu_family family, bool big_endian, bool pushes_cfa,
                          struct sl_arena *arena, struct sl_str *text)
{
    struct translation t; /* its large arrays are not cleared */
    t.r = sl_reader(expression, big_endian);
    t.family = family;
    t.size = t.count = 0;
    t.failed = false;
    if (pushes_cfa)
        push(&t, ".cfa", UINT64_MAX, false);
    while (!t.failed && !t.r.failed && sl_reader_left(&t.r))
        expression_step(&t);
    if (t.failed || t.r.failed || !t.count)
        return false;
    /* the result is the topmost item; texts of items below it are dropped */
    size_t begin = t.items[t.count - 1].begin, size = t.size - begin;
    char *data = sl_arena_strndup(arena, t.text + begin, size);
    *text = (struct sl_str){data, size};
    return data != NULL;
}
