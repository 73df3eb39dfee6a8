/* Evaluates the postfix programs of STACK CFI records (Breakpad, docs/symbol_files.md): unsigned numbers modulo 2^64. */
#include "unwind/walk_impl.h"

#include "unwind/impl.h"

enum { MAX_DEPTH = 32 };

bool postfix_number(struct sl_str token, uint64_t *value)
{
    bool negative = token.size && token.data[0] == '-', positive = token.size && token.data[0] == '+';
    size_t at = negative || positive;
    uint64_t v;
    if (!sl_parse_u64((struct sl_str){token.data + at, token.size - at}, &v) || v > (uint64_t)INT64_MAX + negative)
        return false;
    *value = negative ? 0 - v : v;
    return true;
}

bool postfix_operate(struct sl_str token, uint64_t a, uint64_t b, uint64_t *value)
{
    if (token.size != 1)
        return false;
    switch (token.data[0]) {
    case '+': *value = a + b; return true;
    case '-': *value = a - b; return true;
    case '*': *value = a * b; return true;
    case '/': *value = b ? a / b : 0; return b != 0;
    case '%': *value = b ? a % b : 0; return b != 0;
    case '@': *value = a & (0 - b); return b && (b & (b - 1)) == 0; /* rounds a down to a multiple of b */
    default: return false;
    }
}

/* True for `+ - * / % @`. The last test excludes a NUL byte, which strchr() finds in any string. */
static bool is_operator(struct sl_str token)
{
    return token.size == 1 && strchr("+-*/%@", token.data[0]) && token.data[0];
}

/* Reads a register of the callee by its name. Any text before a `$` in the token is ignored. False if the value is unknown. */
static bool register_value(const struct walk_scope *scope, struct sl_str token, uint64_t *value)
{
    const char *dollar = memchr(token.data, '$', token.size);
    if (dollar)
        token = (struct sl_str){dollar + 1, token.size - (size_t)(dollar + 1 - token.data)};
    return walk_callee_register(scope, walk_register(scope->s->cpu->family, token), value);
}

/* Gets the value of an operand: `.cfa`, a number or the name of a register. False if the value is unknown. */
static bool operand_value(const struct walk_scope *scope, struct sl_str token, uint64_t *value)
{
    if (sl_str_equal(token, SL_STR(".cfa"))) {
        *value = scope->cfa;
        return scope->has_cfa;
    }
    return postfix_number(token, value) || register_value(scope, token, value);
}

bool postfix_evaluate(const struct walk_scope *scope, struct sl_str program, uint64_t *value)
{
    uint64_t stack[MAX_DEPTH];
    size_t depth = 0;
    struct sl_str token;
    while ((token = next_field(&program)).size) {
        /* any token may be a register, whose name is searched in a list; a long token takes more time */
        if (!walk_spend(scope->s, WALK_COST_NAME + (uint32_t)token.size / 16))
            return false;
        if (is_operator(token)) {
            if (depth < 2 || !postfix_operate(token, stack[depth - 2], stack[depth - 1], &stack[depth - 2]))
                return false;
            depth--;
        } else if (sl_str_equal(token, SL_STR("^"))) {
            if (depth < 1 || !walk_read(scope->s, stack[depth - 1], &stack[depth - 1]))
                return false;
        } else if (depth == MAX_DEPTH || !operand_value(scope, token, &stack[depth++])) {
            return false;
        }
    }
    *value = depth ? stack[0] : 0;
    return depth == 1;
}
