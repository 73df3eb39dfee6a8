/* Evaluates DWARF expressions (DWARF 5, 2.5.1), as far as register rules use them: all values have the size of an address. */
#include "unwind/walk_impl.h"
#include "unwind/dwarf.h"

/* Limits of the number of values on the stack, and of operations that are executed, because an expression may loop. */
enum { MAX_DEPTH = 32, MAX_STEPS = 2048 };

struct stack_machine {
    const struct walk_scope *scope; /* the registers and memory that the expression may read */
    struct sl_reader r;             /* the rest of the expression */
    uint64_t stack[MAX_DEPTH];
    size_t depth;
    bool failed;
};

static void machine_push(struct stack_machine *m, uint64_t value)
{
    if (m->depth == MAX_DEPTH)
        m->failed = true;
    else
        m->stack[m->depth++] = walk_truncate(m->scope->s->cpu, value);
}

static uint64_t machine_pop(struct stack_machine *m)
{
    m->failed |= !m->depth;
    return m->depth ? m->stack[--m->depth] : 0;
}

/* Pushes a copy of the item that lies `below` places under the top of the stack; 0 is the top itself. */
static void machine_pick(struct stack_machine *m, size_t below)
{
    if (below >= m->depth)
        m->failed = true;
    else
        machine_push(m, m->stack[m->depth - 1 - below]);
}

/* Returns the value as a signed number of the size of an address. */
static int64_t as_signed(const struct stack_machine *m, uint64_t value)
{
    return m->scope->s->cpu->word == 4 ? (int32_t)value : (int64_t)value;
}

/* Pushes the value that a register has in the callee, plus the offset. */
static void machine_register(struct stack_machine *m, uint64_t number, int64_t offset)
{
    uint64_t value;
    if (walk_callee_register(m->scope, number, &value))
        machine_push(m, value + (uint64_t)offset);
    else
        m->failed = true;
}

/* Replaces the address on top of the stack by the `size` bytes at that address in the dump. walk_read() reads whole words, so a smaller
 * value is cut out of the word at the address. */
static void machine_load(struct stack_machine *m, unsigned size)
{
    uint64_t value = 0, address = machine_pop(m);
    unsigned bits = size * 8;
    if (!size || size > m->scope->s->cpu->word || !walk_read(m->scope->s, address, &value))
        m->failed = true;
    else if (bits < 64) /* keep those bytes of the word that come first in memory */
        value = m->scope->s->target.big_endian ? value >> (m->scope->s->cpu->word * 8 - bits)
                                               : value & ((UINT64_C(1) << bits) - 1);
    machine_push(m, value);
}

/* Reads the operand of DW_OP_skip or DW_OP_bra, a signed distance from the end of the operand, and jumps by it if `taken`. */
static void machine_jump(struct stack_machine *m, bool taken)
{
    int16_t by = (int16_t)sl_read_u16(&m->r);
    uint64_t to = sl_reader_offset(&m->r) + (uint64_t)(int64_t)by;
    if (taken)
        sl_reader_seek(&m->r, to);
}

/* Moves the topmost value below the next `below` ones: DW_OP_swap with 1, DW_OP_rot with 2. */
static void machine_swap(struct stack_machine *m, size_t below)
{
    if (below >= m->depth) {
        m->failed = true;
        return;
    }
    uint64_t *top = &m->stack[m->depth - 1], value = *top;
    memmove(top - below + 1, top - below, below * sizeof *top);
    top[-(ptrdiff_t)below] = value;
}

/* Executes an operation that replaces the two topmost values by one. A division by zero sets m->failed. False, and nothing is done, for any
 * other operation. */
static bool machine_binary(struct stack_machine *m, unsigned op)
{
    /* the operations from DW_OP_and to DW_OP_ne, except those with one operand on the stack */
    if (op < DW_OP_and || op > DW_OP_ne || op == DW_OP_neg || op == DW_OP_not || op == DW_OP_plus_uconst ||
        op == DW_OP_bra)
        return false;
    uint64_t b = machine_pop(m), a = machine_pop(m), value = 0;
    int64_t signed_a = as_signed(m, a), signed_b = as_signed(m, b);
    unsigned bits = m->scope->s->cpu->word * 8;
    m->failed |= (op == DW_OP_div || op == DW_OP_mod) && !b;
    switch (m->failed ? DW_OP_nop : op) { /* after a failure nothing is computed, so that nothing is divided by 0 */
    case DW_OP_and: value = a & b; break;
    case DW_OP_or: value = a | b; break;
    case DW_OP_xor: value = a ^ b; break;
    case DW_OP_plus: value = a + b; break;
    case DW_OP_minus: value = a - b; break;
    case DW_OP_mul: value = a * b; break;
    /* dividing the smallest number by -1 would trap, so that division is a negation */
    case DW_OP_div: value = signed_b == -1 ? 0 - a : (uint64_t)(signed_a / signed_b); break;
    case DW_OP_mod: value = a % b; break;
    case DW_OP_shl: value = b < bits ? a << b : 0; break;
    case DW_OP_shr: value = b < bits ? a >> b : 0; break;
    case DW_OP_shra: value = (uint64_t)(signed_a >> (b < bits ? b : bits - 1)); break;
    case DW_OP_eq: value = a == b; break;
    case DW_OP_ge: value = signed_a >= signed_b; break;
    case DW_OP_gt: value = signed_a > signed_b; break;
    case DW_OP_le: value = signed_a <= signed_b; break;
    case DW_OP_lt: value = signed_a < signed_b; break;
    case DW_OP_ne: value = a != b; break;
    }
    machine_push(m, value);
    return true;
}

/* Executes the next operation; sets `failed` for one that is unknown or cannot be executed. */
static void machine_step(struct stack_machine *m)
{
    struct sl_reader *r = &m->r;
    unsigned op = sl_read_u8(r);
    uint64_t value;
    if (dwarf_constant(r, op, &value)) {
        machine_push(m, value);
        return;
    }
    if (machine_binary(m, op))
        return;
    if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
        machine_register(m, op - DW_OP_breg0, sl_read_sleb(r));
        return;
    }
    switch (op) {
    case DW_OP_bregx:
        value = sl_read_uleb(r);
        machine_register(m, value, sl_read_sleb(r));
        break;
    case DW_OP_deref: machine_load(m, m->scope->s->cpu->word); break;
    case DW_OP_deref_size: machine_load(m, sl_read_u8(r)); break;
    case DW_OP_dup: machine_pick(m, 0); break;
    case DW_OP_over: machine_pick(m, 1); break;
    case DW_OP_pick: machine_pick(m, sl_read_u8(r)); break;
    case DW_OP_drop: machine_pop(m); break;
    case DW_OP_swap: machine_swap(m, 1); break;
    case DW_OP_rot: machine_swap(m, 2); break;
    case DW_OP_abs:
        value = machine_pop(m);
        machine_push(m, as_signed(m, value) < 0 ? 0 - value : value);
        break;
    case DW_OP_neg: machine_push(m, 0 - machine_pop(m)); break;
    case DW_OP_not: machine_push(m, ~machine_pop(m)); break;
    case DW_OP_plus_uconst:
        value = machine_pop(m);
        machine_push(m, value + sl_read_uleb(r));
        break;
    case DW_OP_bra: machine_jump(m, machine_pop(m) != 0); break;
    case DW_OP_skip: machine_jump(m, true); break;
    case DW_OP_call_frame_cfa:
        m->failed |= !m->scope->has_cfa;
        machine_push(m, m->scope->cfa);
        break;
    case DW_OP_nop: break;
    default: m->failed = true;
    }
}

bool dwarf_stack_evaluate(const struct walk_scope *scope, struct sl_str expression, bool big_endian, bool pushes_cfa,
                          uint64_t *value)
{
    struct stack_machine m = {.scope = scope};
    m.r = sl_reader((struct sl_bytes){(const uint8_t *)expression.data, expression.size}, big_endian);
    if (pushes_cfa) /* as DWARF demands for the expressions of registers */
        machine_push(&m, scope->cfa);
    unsigned steps = 0;
    while (!m.failed && !m.r.failed && sl_reader_left(&m.r) && steps++ < MAX_STEPS && walk_spend(scope->s, 1))
        machine_step(&m);
    *value = machine_pop(&m);
    /* bytes are left if the loop ended because of MAX_STEPS or the work budget */
    return !m.failed && !m.r.failed && !sl_reader_left(&m.r);
}
