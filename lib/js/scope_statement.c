/* Parser of scripts: statements, import and export. The functions return what is expected next. */
#include "js/scope_impl.h"

/* Called after each statement: ends the constructs that end with it (if, do, try), unless `else`, `while`, `catch` or `finally` continues
 * them. Returns what is expected next. */
enum js_state js_completed(struct js_parser *p)
{
    for (;;) {
        struct js_level *top = js_top(p);
        switch (top->kind) {
        case L_IF:
            p->depth--;
            if (js_take_word(p, W_ELSE))
                return STATEMENT;
            break;
        case L_DO:
            if (!js_take_word(p, W_WHILE) || !js_take(p, '('))
                return js_fail(p, "do without while");
            top->kind = L_HEAD; /* the parentheses after `while` replace the loop on the stack */
            top->what = HEAD_DO;
            return OPERAND;
        case L_TRY: /* `what`: 0 after the block of `try`, 1 after that of `catch`, 2 after that of `finally` */
            if (top->what < 1 && js_take_word(p, W_CATCH)) {
                top->what = 1;
                if (js_take(p, '('))
                    return js_push(p, L_PARAMETERS, CATCH) ? OPERAND : FAILED;
                return js_take(p, '{') && js_push(p, L_BLOCK, 0) ? STATEMENT : js_fail(p, "catch without a block");
            }
            if (top->what < 2 && js_take_word(p, W_FINALLY)) {
                top->what = 2;
                return js_take(p, '{') && js_push(p, L_BLOCK, 0) ? STATEMENT : js_fail(p, "finally without a block");
            }
            if (!top->what)
                return js_fail(p, "try without catch or finally");
            p->depth--;
            break;
        default: return STATEMENT;
        }
    }
}

/* Ends a statement that does not end with an expression, such as `break`: at a semicolon, or where one may be missing. */
static enum js_state plain_end(struct js_parser *p)
{
    uint8_t c = js_peek(p, 0);
    if (c == ';')
        js_advance(p, 1);
    else if (c != '}' && p->at < p->end && !p->newline)
        return js_fail(p, "unterminated statement");
    return js_completed(p);
}

/* Ends the parentheses of `if (...)` and the like at their `)`. After those of `while` and `with` only a statement follows, so nothing is
 * pushed on the stack for them. */
enum js_state js_head_ended(struct js_parser *p)
{
    enum js_head head = js_top(p)->what;
    p->depth--;
    js_advance(p, 1);
    switch (head) {
    case HEAD_IF: return js_push(p, L_IF, 0) ? STATEMENT : FAILED;
    case HEAD_SWITCH:
        return js_take(p, '{') && js_push(p, L_SWITCH, 0) ? STATEMENT : js_fail(p, "switch without a block of cases");
    /* the semicolon after `do ... while (...)` may be missing (ECMA-262, 12.10.1) */
    case HEAD_DO: js_take(p, ';'); return js_completed(p);
    default: return STATEMENT;
    }
}

/* Reads `(` after if, while, with or switch. `what` tells js_head_ended() what follows the closing parenthesis. */
static enum js_state head(struct js_parser *p, enum js_head what)
{
    if (!js_take(p, '('))
        return js_fail(p, "expected `(` after the keyword of the statement");
    if (!js_push(p, L_HEAD, 0))
        return FAILED;
    js_top(p)->what = (uint8_t)what;
    return OPERAND;
}

/* Begins a list of variables; in the head of a `for`, `in` ends it. */
static enum js_state variables(struct js_parser *p)
{
    uint8_t no_in = js_top(p)->kind == L_FOR ? NO_IN : 0;
    return js_push(p, L_VARIABLES, no_in) ? DECLARATOR : FAILED;
}

/* True if a declaration follows the word `let`, `using` or `await`, which may also be a name. Looks ahead in a copy of the parser, as a
 * word alone does not tell: `let in x`, `using of x` and a name on the next line do not declare. */
static bool declares(struct js_parser *p, enum js_word word)
{
    struct js_parser ahead = *p;
    uint8_t c;
    if (word == W_AWAIT) {
        js_advance(&ahead, 5);
        if (ahead.newline || js_next_word(&ahead) != W_USING)
            return false;
        word = W_USING;
    }
    js_advance(&ahead, word == W_LET ? 3 : 5);
    c = js_peek(&ahead, 0);
    enum js_word next = js_next_word(&ahead);
    if (next == W_IN || next == W_INSTANCEOF || (next == W_OF && word == W_USING))
        return false;
    /* a name: for `using` on the same line; or a pattern, only for `let` */
    return js_name_begins(c) ? word == W_LET || !ahead.newline : word == W_LET && (c == '[' || c == '{');
}

/* Reads var, let, const, using, await using; OPERAND if it is none of them. */
static enum js_state declaration(struct js_parser *p, enum js_word word)
{
    bool found = word == W_VAR || word == W_CONST ||
                 ((word == W_LET || word == W_USING || word == W_AWAIT) && declares(p, word));
    if (!found)
        return OPERAND;
    js_advance(p, (size_t)(js_name_end(p) - p->at));
    if (word == W_AWAIT)
        js_advance(p, 5); /* `using` */
    return variables(p);
}

/* Reads what follows `for`: an optional `await`, the `(`, and the word of a declaration if one begins there. NO_IN: up to the first
 * semicolon `in` is not an operator, but ends the variable, as in `for (x in y)`. */
static enum js_state for_head(struct js_parser *p)
{
    js_take_word(p, W_AWAIT);
    if (!js_take(p, '('))
        return js_fail(p, "expected `(` after `for`");
    if (!js_push(p, L_FOR, NO_IN))
        return FAILED;
    return declaration(p, js_next_word(p));
}

/* Reads what follows `return`: an expression, or the end of the statement; a line end is one, too. */
static enum js_state returned(struct js_parser *p)
{
    uint8_t c = js_peek(p, 0);
    return p->newline || c == ';' || c == '}' || p->at == p->end ? plain_end(p) : OPERAND;
}

/* Reads the label after `break` or `continue`, which must be on the same line. */
static enum js_state jump(struct js_parser *p)
{
    if (!p->newline && js_name_begins(js_peek(p, 0))) {
        p->at = js_name_end(p);
        js_skip(p);
    }
    return plain_end(p);
}

static enum js_state try_block(struct js_parser *p)
{
    if (!js_take(p, '{'))
        return js_fail(p, "try without a block");
    return js_push(p, L_TRY, 0) && js_push(p, L_BLOCK, 0) ? STATEMENT : FAILED;
}

/* Reads what follows `case` or, with `other`, `default`. */
static enum js_state parse_case(struct js_parser *p, bool other)
{
    if (js_top(p)->kind != L_SWITCH)
        return js_fail(p, "case outside of switch");
    if (!other)
        return js_push(p, L_CASE, 0) ? OPERAND : FAILED;
    return js_take(p, ':') ? STATEMENT : js_fail(p, "default without a colon");
}

/* ---- modules ---- */

/* Consumes a string; false if the next token is no string, or if the string has no end. */
static bool string_token(struct js_parser *p)
{
    uint8_t c = js_peek(p, 0);
    if ((c != '"' && c != '\'') || !js_string(p))
        return false;
    js_skip(p);
    return true;
}

/* Consumes a name or a word; false for any other token, including an escape that is not part of a name. */
static bool name_token(struct js_parser *p)
{
    const uint8_t *end = js_name_end(p);
    if (end == p->at)
        return false;
    p->at = end;
    js_skip(p);
    return true;
}

/* Reads { a as b, "c" as d } or the attributes { type: "json" } after their opening brace, up to the closing one. Accepts names (`as` is
 * one), strings, commas and colons in any order; false for any other token. */
static bool braces(struct js_parser *p)
{
    while (!js_take(p, '}')) {
        if (js_name_begins(js_peek(p, 0))) {
            if (!name_token(p))
                return false;
        } else if (!string_token(p) && !js_take(p, ',') && !js_take(p, ':')) {
            return false;
        }
    }
    return true;
}

/* Reads the string of `import ... from "x"`, optionally followed by attributes: with { ... }, formerly assert { ... } on the same line. */
static enum js_state module_name(struct js_parser *p)
{
    if (!string_token(p))
        return js_fail(p, "expected a module name");
    struct sl_str word = {(const char *)p->at, (size_t)(js_name_end(p) - p->at)};
    if (sl_str_equal(word, SL_STR("with")) || (!p->newline && sl_str_equal(word, SL_STR("assert")))) {
        js_advance(p, word.size);
        if (!js_take(p, '{') || !braces(p))
            return js_fail(p, "expected module attributes in braces");
    }
    return plain_end(p);
}

/* Reads `import`, the next token, up to the name of the module: names, stars and braces. */
static enum js_state imported(struct js_parser *p)
{
    struct js_parser ahead = *p;
    js_advance(&ahead, 6);
    uint8_t c = js_peek(&ahead, 0);
    if (c == '(' || c == '.') /* import(...) or import.meta: an expression, which is read from `import` on */
        return OPERAND;
    js_advance(p, 6);
    while ((c = js_peek(p, 0)) != '"' && c != '\'') {
        if (js_name_begins(c)) {
            if (!name_token(p))
                return js_fail(p, "malformed name in an import");
        } else if (!js_take(p, '*') && !js_take(p, ',') && !(js_take(p, '{') && braces(p))) {
            return js_fail(p, "expected what to import, or the name of the module");
        }
    }
    return module_name(p);
}

/* Reads what follows `export`: a star or a list in braces, and the module that the names are from. */
static enum js_state export_list(struct js_parser *p)
{
    bool all = js_take(p, '*');
    if (!all && !(js_take(p, '{') && braces(p)))
        return js_fail(p, "malformed list of exports");
    /* the words `as x` and `from`; after `}` a line end may end the export instead */
    while (js_name_begins(js_peek(p, 0)) && !(p->newline && !all)) {
        if (!name_token(p))
            return js_fail(p, "malformed name in an export");
        /* after `*` a module is required, so each word must be followed by the string with its name, or by a further word */
        if (all && js_peek(p, 0) != '\'' && js_peek(p, 0) != '"' && !js_name_begins(js_peek(p, 0)))
            return js_fail(p, "expected the name of the module after `export *`");
    }
    uint8_t c = js_peek(p, 0);
    return c == '"' || c == '\'' ? module_name(p) : plain_end(p);
}

/* Reads `export`: a list, a default, or a declaration. */
static enum js_state exported(struct js_parser *p)
{
    js_advance(p, 6);
    uint8_t c = js_peek(p, 0);
    if (c == '*' || c == '{')
        return export_list(p);
    if (!js_take_word(p, W_DEFAULT))
        return STATEMENT;
    switch (js_next_word(p)) {
    case W_FUNCTION: return js_function(p, js_offset(p), false, AFTER_STATEMENT);
    case W_ASYNC: return js_async(p, true);
    case W_CLASS: return js_class(p, 0);
    default: return js_peek(p, 0) == '@' ? STATEMENT : OPERAND; /* a class with decorators, or an expression */
    }
}

/* ---- statements ---- */

/* Reads a name at the beginning of a statement, up to `end`. If a colon follows it is a label, else the first operand of an expression. */
static enum js_state label_or_operand(struct js_parser *p, const uint8_t *end)
{
    enum js_state next = js_named_operand(p, end, SL_JS_IDENTIFIER);
    return js_take(p, ':') ? STATEMENT : next;
}

/* Reads a statement that begins with a word. Words that begin no statement of their own begin an expression, or, W_NONE, a label. */
static enum js_state word_statement(struct js_parser *p)
{
    const uint8_t *end = js_name_end(p);
    size_t size = (size_t)(end - p->at);
    enum js_word word = js_word(p->at, size);
    switch (word) {
    /* size 0: a malformed escape, which js_operand() reports */
    case W_NONE: return size ? label_or_operand(p, end) : OPERAND;
    case W_VAR:
    case W_LET:
    case W_CONST:
    case W_USING:
    case W_AWAIT: return declaration(p, word);
    case W_FUNCTION: return js_function(p, js_offset(p), false, AFTER_STATEMENT);
    case W_ASYNC: return js_async(p, true);
    case W_CLASS: return js_class(p, 0);
    case W_IMPORT: return imported(p);
    case W_EXPORT: return exported(p);
    case W_IF: js_advance(p, size); return head(p, HEAD_IF);
    case W_WHILE:
    case W_WITH: js_advance(p, size); return head(p, HEAD_WHILE); /* after both a statement follows */
    case W_SWITCH: js_advance(p, size); return head(p, HEAD_SWITCH);
    case W_FOR: js_advance(p, size); return for_head(p);
    case W_DO: js_advance(p, size); return js_push(p, L_DO, 0) ? STATEMENT : FAILED;
    case W_TRY: js_advance(p, size); return try_block(p);
    case W_RETURN: js_advance(p, size); return returned(p);
    case W_THROW: js_advance(p, size); return OPERAND;
    case W_BREAK:
    case W_CONTINUE: js_advance(p, size); return jump(p);
    case W_DEBUGGER: js_advance(p, size); return plain_end(p);
    case W_CASE:
    case W_DEFAULT: js_advance(p, size); return parse_case(p, word == W_DEFAULT);
    default: return OPERAND;
    }
}

/* Reads the closing brace of a block, a switch, a function's body or a static block of a class. */
static enum js_state block_ended(struct js_parser *p)
{
    switch (js_top(p)->kind) {
    case L_FUNCTION: return js_function_ended(p);
    case L_BLOCK:
    case L_SWITCH:
        p->depth--;
        js_advance(p, 1);
        return js_completed(p);
    case L_STATIC:
        p->depth--;
        js_advance(p, 1);
        return MEMBER;
    default: return js_fail(p, "unmatched brace");
    }
}

/* Reads the beginning of a statement, or the end of the block or script around it. */
enum js_state js_statement(struct js_parser *p)
{
    switch (js_peek(p, 0)) {
    case 'a' ... 'z':
    case 'A' ... 'Z':
    case '$':
    case '_':
    case '\\':
    case 0x80 ... 0xFF: return word_statement(p);
    case '}': return block_ended(p);
    case ';': js_advance(p, 1); return js_completed(p);
    case '{':
        if (!js_push(p, L_BLOCK, 0))
            return FAILED;
        js_advance(p, 1);
        return STATEMENT;
    case '@': return js_decorator(p, 0);
    case 0:
        if (p->at < p->end)
            return js_fail(p, "the script contains a zero byte");
        return js_top(p)->kind == L_PROGRAM ? DONE : js_fail(p, "unexpected end of the script in a block");
    default: return OPERAND;
    }
}
