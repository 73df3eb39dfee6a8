/* Finds the caller of a 32-bit x86 frame by a STACK WIN record (Breakpad, docs/symbol_files.md), Microsoft's description of the frame.
 * Its program is postfix with assignments, in numbers of 32 bits: `$T0 $ebp = $eip $T0 4 + ^ = ...` */
#include "unwind/walk_impl.h"

#include "unwind/impl.h"

enum { EBX = 3, ESP, EBP, ESI, EDI, EIP, MAX_VARIABLES = 32, MAX_DEPTH = 64 };

struct windows_program_variable {
    struct sl_str name;
    uint32_t value;
    bool set, assigned; /* it has a value; the program has assigned one */
};

struct windows_program_item { /* stack item: a number, `.undef`, or a variable, to which a value may be assigned */
    bool is_variable, is_undefined;
    uint32_t value; /* of the number; is_variable: index in win_program.variables */
};

struct win_program {
    const struct sl_walk_state *s;
    struct windows_program_variable variables[MAX_VARIABLES];
    size_t variable_count;
    struct windows_program_item stack[MAX_DEPTH];
    size_t depth;
};

static const struct {
    struct sl_str name;
    unsigned number;
} win_registers[] = {{SL_STR("$eip"), EIP}, {SL_STR("$esp"), ESP}, {SL_STR("$ebp"), EBP},
                     {SL_STR("$ebx"), EBX}, {SL_STR("$esi"), ESI}, {SL_STR("$edi"), EDI}};

/* Returns the index of a variable, adding it if it is new; MAX_VARIABLES when there are too many. */
static size_t find_variable(struct win_program *p, struct sl_str name)
{
    size_t i = 0;
    while (i < p->variable_count && !sl_str_equal(p->variables[i].name, name))
        i++;
    if (i == p->variable_count && i < MAX_VARIABLES)
        p->variables[p->variable_count++] = (struct windows_program_variable){.name = name};
    return i;
}

/* Sets a variable before the program begins; it does not count as assigned by the program. */
static void define(struct win_program *p, struct sl_str name, uint64_t value)
{
    size_t i = find_variable(p, name);
    p->variables[i].value = (uint32_t)value;
    p->variables[i].set = true;
}

static bool push_item(struct win_program *p, struct windows_program_item item)
{
    if (p->depth == MAX_DEPTH)
        return false;
    p->stack[p->depth++] = item;
    return true;
}

/* Pops a number, or the value of a variable; false if it is undefined or the stack is empty. */
static bool pop_value(struct win_program *p, uint64_t *value)
{
    if (!p->depth)
        return false;
    struct windows_program_item item = p->stack[--p->depth];
    *value = item.is_variable ? p->variables[item.value].value : item.value; /* of a variable, the item has the index */
    return !item.is_undefined && (!item.is_variable || p->variables[item.value].set);
}

/* Executes `=`: pops a value and assigns it to the variable below, which is popped too. `.undef` makes the variable undefined. False if the
 * value is otherwise unknown, or if there is no variable below it. */
static bool assign(struct win_program *p)
{
    uint64_t value = 0;
    bool undefined = p->depth && p->stack[p->depth - 1].is_undefined;
    if (!pop_value(p, &value) && !undefined)
        return false;
    if (!p->depth || !p->stack[p->depth - 1].is_variable)
        return false;
    struct windows_program_variable *to = &p->variables[p->stack[--p->depth].value];
    to->value = (uint32_t)value;
    to->set = to->assigned = !undefined;
    return true;
}

/* Executes `^`: replaces the address on top by the word that is stored there. */
static bool win_load(struct win_program *p)
{
    uint64_t address, value;
    return pop_value(p, &address) && walk_read(p->s, address, &value) &&
           push_item(p, (struct windows_program_item){.value = (uint32_t)value});
}

/* Executes an arithmetic operator on the two topmost values; false if one is undefined, or for a division by zero. */
static bool win_operate(struct win_program *p, struct sl_str token)
{
    uint64_t a, b, value;
    return pop_value(p, &b) && pop_value(p, &a) && postfix_operate(token, a, b, &value) &&
           push_item(p, (struct windows_program_item){.value = (uint32_t)value});
}

/* Executes a token: an operator, `.undef`, a variable (its first character is `$` or `.`), or a number from -2^31 to 2^31 - 1.
 * False if it fails or there are too many variables or items. */
static bool win_token(struct win_program *p, struct sl_str token)
{
    uint64_t value;
    if (sl_str_equal(token, SL_STR("=")))
        return assign(p);
    if (sl_str_equal(token, SL_STR("^")))
        return win_load(p);
    if (token.size == 1 && memchr("+-*/%@", token.data[0], 6))
        return win_operate(p, token);
    if (sl_str_equal(token, SL_STR(".undef")))
        return push_item(p, (struct windows_program_item){.is_undefined = true});
    if (token.data[0] == '$' || token.data[0] == '.') {
        size_t i = find_variable(p, token);
        return i < MAX_VARIABLES &&
               push_item(p, (struct windows_program_item){.is_variable = true, .value = (uint32_t)i});
    }
    bool fits = postfix_number(token, &value) && value + 0x80000000u <= UINT32_MAX;
    return fits && push_item(p, (struct windows_program_item){.value = (uint32_t)value});
}

/* Runs the program of a STACK WIN record. Some compilers omit the blank after `=`, so `=` is split off the token. False if a token fails,
 * or if the work budget is used up. */
static bool run_win_program(struct win_program *p, struct sl_str program)
{
    struct sl_str token;
    while ((token = next_field(&program)).size) {
        if (!walk_spend(p->s, WALK_COST_NAME +
                                  (uint32_t)token.size / 16)) /* searching a name in a list; longer ones cost more */
            return false;
        if (token.size > 1 && token.data[0] == '=') {
            if (!assign(p))
                return false;
            token = (struct sl_str){token.data + 1, token.size - 1};
        }
        if (!win_token(p, token))
            return false;
    }
    return true;
}

/* Finds the caller's registers by the program of a STACK WIN record of type 4, which starts with variables that Microsoft defines.
 * .raSearch is where the return address should be: above the locals, the saved registers and the parameters of the function called last;
 * or, if the program aligns the stack (`@`), above the saved ebp. False if the program fails or does not assign both $eip and $esp. */
static bool by_program(const struct sl_walk_state *s, const struct sl_unwind_win *win,
                       const struct sl_registers *callee, struct sl_registers *caller)
{
    struct win_program p = {.s = s};
    uint64_t esp = callee->value[ESP], ebp = callee->value[EBP];
    uint64_t start = esp + win->locals + win->saved + s->inner_params;
    if (memchr(win->program.data, '@', win->program.size))
        start = ebp + 4;
    define(&p, SL_STR("$esp"), esp);
    define(&p, SL_STR("$ebp"), ebp);
    if (walk_known(callee, EBX))
        define(&p, SL_STR("$ebx"), callee->value[EBX]);
    define(&p, SL_STR(".cbParams"), win->params);
    define(&p, SL_STR(".cbCalleeParams"), s->inner_params);
    define(&p, SL_STR(".cbSavedRegs"), win->saved);
    define(&p, SL_STR(".cbLocals"), win->locals);
    define(&p, SL_STR(".raSearch"), start);
    define(&p, SL_STR(".raSearchStart"), start);
    if (!run_win_program(&p, win->program))
        return false;
    bool says_both = true; /* the program has assigned both return address and stack pointer */
    for (size_t i = 0; i < sizeof win_registers / sizeof *win_registers; i++) {
        unsigned number = win_registers[i].number;
        size_t at = find_variable(&p, win_registers[i].name);
        bool is_set = at < MAX_VARIABLES && p.variables[at].set;
        /* ebx was given to the program as a start value: unless it was assigned, the callee's value remains */
        if (is_set && (number != EBX || p.variables[at].assigned))
            sl_registers_set(caller, number, p.variables[at].value);
        if (number == EIP || number == ESP)
            says_both &= at < MAX_VARIABLES && p.variables[at].assigned;
    }
    return says_both;
}

/* Finds the caller's registers by a STACK WIN record of type 0, which only has sizes. Instead of a program it has "1" or "0": with "1" the
 * function has pushed ebp, which is 8 bytes below the end of the saved registers. False if the stack cannot be read there. */
static bool by_size(const struct sl_walk_state *s, const struct sl_unwind_win *win, const struct walk_frame *callee,
                    struct sl_registers *caller)
{
    uint64_t esp = callee->registers.value[ESP], at = esp + win->locals + win->saved + s->inner_params, eip;
    uint64_t ebp = callee->registers.value[EBP];
    bool pushes_ebp = sl_str_equal(win->program, SL_STR("1"));
    if (!walk_read(s, at, &eip))
        return false;
    /* if the word equals the innermost frame's own pc, it is left over from a system call that has returned, and the return address is
     * the word above it (Breakpad has the same rule) */
    if (callee->trust == SL_TRUST_CONTEXT && eip == callee->resume) {
        at += 4;
        if (!walk_read(s, at, &eip))
            return false;
    }
    if (pushes_ebp && !walk_read(s, esp + s->inner_params + win->saved - 8, &ebp))
        return false;
    if (pushes_ebp)
        /* a function that saves ebp may have changed ebx, too, and the record does not say so: ebx is unknown */
        caller->valid &= ~(UINT64_C(1) << EBX);
    else /* ebx counts as unchanged: it is as certain as in the callee */
        caller->assumed &= callee->registers.assumed | ~(UINT64_C(1) << EBX);
    sl_registers_set(caller, EIP, eip);
    sl_registers_set(caller, ESP, (uint32_t)(at + 4));
    sl_registers_set(caller, EBP, ebp);
    return true;
}

bool windows_evaluate(const struct sl_walk_state *s, const struct sl_unwind_win *win, const struct walk_frame *callee,
                      struct sl_registers *caller)
{
    if (!walk_known(&callee->registers, ESP) || !walk_known(&callee->registers, EBP))
        return false;
    return win->type == 4 ? by_program(s, win, &callee->registers, caller) : by_size(s, win, callee, caller);
}
