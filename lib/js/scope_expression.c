/* Parser of scripts: expressions. p->operand is the kind of the last operand, p->steps the names of a chain `a.b[c]`. */
#include "js/scope_impl.h"

/* Reads an operand of `size` bytes that is neither a name nor a literal. */
static enum js_state other_operand(struct js_parser *p, size_t size)
{
    p->operand = O_OTHER;
    js_advance(p, size);
    return OPERATOR;
}

/* Completes a literal. `read` is what js_string() or js_number() returned: false for a string without an end, which fails with the error
 * `what`. js_number() always returns true, so `what` is not used after it. */
static enum js_state literal_operand(struct js_parser *p, bool read, const char *what)
{
    if (!read)
        return js_fail(p, what);
    p->operand = O_LITERAL;
    js_skip(p);
    return OPERATOR;
}

/* Reads an opening bracket, and pushes it on the stack of enclosing constructs. Returns `next`, what is expected inside. */
static enum js_state open_bracket(struct js_parser *p, enum js_level_kind kind, enum js_state next)
{
    uint32_t at = js_offset(p);
    if (!js_push(p, kind, 0))
        return FAILED;
    js_top(p)->at = at;
    js_advance(p, 1);
    return next;
}

/* Reads a name as an operand. It is the first step of a chain `a.b[c]`, which may be assigned to. */
enum js_state js_named_operand(struct js_parser *p, const uint8_t *end, enum sl_js_part_kind kind)
{
    uint32_t at = js_offset(p), size = (uint32_t)(end - p->at);
    p->operand = O_CHAIN;
    p->operand_at = at;
    p->step_count = p->base; /* forgets the chain of the operand before */
    js_step(p, kind, at, size, SL_JS_NONE);
    p->at = end;
    js_skip(p);
    return OPERATOR;
}

/* Reads `async`: it begins an async function or an arrow function with one parameter (`async x => 1`), or is a name. `async(...)` is read
 * as a call of that name, whose arguments may turn out to be the parameters of an arrow function. `statement`: it begins a statement. */
enum js_state js_async(struct js_parser *p, bool statement)
{
    uint32_t start = js_offset(p);
    const uint8_t *name = p->at;
    js_advance(p, 5);
    if (!p->newline && js_next_word(p) == W_FUNCTION)
        return js_function(p, start, true, statement ? AFTER_STATEMENT : AFTER_EXPRESSION);
    if (!p->newline && js_name_begins(js_peek(p, 0))) {
        p->at = js_name_end(p);
        js_skip(p);
        if (js_peek(p, 0) == '=' && js_peek(p, 1) == '>') { /* js_arrow() takes it like `async (x) =>` */
            p->operand = O_PARENS;
            p->operand_at = start;
            p->operand_async = true;
            p->operand_node = SL_JS_NONE; /* no parentheses, so no functions inside them */
            return js_arrow(p);
        }
    }
    p->at = name; /* go back: the name after `async` was looked at only */
    p->async_at = start;
    return js_named_operand(p, p->at + 5, SL_JS_IDENTIFIER);
}

/* Reads `yield`, which may have no operand. */
static enum js_state yield_operand(struct js_parser *p)
{
    js_advance(p, 5);
    enum js_word word = js_next_word(p);
    if (p->newline || p->at == p->end || strchr(")]},;:", js_peek(p, 0)) || word == W_IN || word == W_OF)
        return ENDED;
    js_take(p, '*');
    return OPERAND;
}

/* Reads import(...), import.meta and the like. */
static enum js_state import_operand(struct js_parser *p)
{
    js_advance(p, 6);
    p->operand = O_OTHER;
    uint8_t c = js_peek(p, 0);
    return c == '(' || c == '.' ? OPERATOR : js_fail(p, "expected `(` or `.` after `import`");
}

/* Reads `new`, or `new.target`. */
static enum js_state new_operand(struct js_parser *p)
{
    js_advance(p, 3);
    if (js_peek(p, 0) != '.')
        return OPERAND;
    p->operand = O_OTHER; /* `new` of `new.target`; the caller reads `.target` like a member */
    return OPERATOR;
}

/* Reads an operand that begins with a word. `await` and `yield` are names outside of async functions and generators. */
static enum js_state word_operand(struct js_parser *p, enum js_word word, const uint8_t *end)
{
    switch (word) {
    case W_NONE:
    case W_LET:
    case W_OF:
    case W_USING: return js_named_operand(p, end, SL_JS_IDENTIFIER);
    case W_THIS: return js_named_operand(p, end, SL_JS_THIS);
    case W_AWAIT:
        if (!p->async)
            return js_named_operand(p, end, SL_JS_IDENTIFIER);
        js_advance(p, 5);
        return OPERAND;
    case W_YIELD: return p->generator ? yield_operand(p) : js_named_operand(p, end, SL_JS_IDENTIFIER);
    case W_UNARY: js_advance(p, (size_t)(end - p->at)); return OPERAND;
    case W_NEW: return new_operand(p);
    case W_LITERAL:
    case W_SUPER: return other_operand(p, (size_t)(end - p->at));
    case W_FUNCTION: return js_function(p, js_offset(p), false, AFTER_EXPRESSION);
    case W_ASYNC: return js_async(p, false);
    case W_CLASS: return js_class(p, EXPRESSION);
    case W_IMPORT: return import_operand(p);
    default: return js_fail(p, "reserved word instead of an expression");
    }
}

/* Called where an operand should begin but none does. Valid only for empty brackets, a comma before the closing bracket, holes of arrays,
 * and empty parts of a `for`; else an error. `before` is the last byte of the token in front. */
static enum js_state no_operand(struct js_parser *p)
{
    uint8_t c = js_peek(p, 0), before = p->token_end > p->begin ? p->token_end[-1] : 0;
    switch (js_top(p)->kind) {
    case L_PAREN: /* parameters of an arrow function */
        if (c == ')' && (before == '(' || before == ',')) {
            enum js_state state = js_ended(p); /* reads the `)` */
            return js_peek(p, 0) == '=' && js_peek(p, 1) == '>' ? state
                                                                : js_fail(p, "expected `=>` after empty parentheses");
        }
        break;
    case L_CALL:
    case L_PARAMETERS:
        if (c == ')' && (before == '(' || before == ','))
            return js_ended(p);
        break;
    case L_ARRAY:
        if ((c == ']' || c == ',') && (before == '[' || before == ','))
            return js_ended(p);
        break;
    case L_FOR:
        if ((c == ';' && (before == '(' || before == ';')) || (c == ')' && before == ';'))
            return js_ended(p);
        break;
    default: break;
    }
    return js_fail(p, p->at == p->end ? "unexpected end of the script in an expression" : "expected an expression");
}

/* Reads `...` in front of an operand; allowed only in brackets that are or may become lists. */
static enum js_state spread(struct js_parser *p)
{
    enum js_level_kind top = js_top(p)->kind;
    if (js_peek(p, 1) != '.' || js_peek(p, 2) != '.' ||
        (top != L_PAREN && top != L_CALL && top != L_PARAMETERS && top != L_ARRAY))
        return js_fail(p, "unexpected `...`, expected an expression");
    js_advance(p, 3);
    return OPERAND;
}

/* Reads the beginning of an expression, by its first byte. */
enum js_state js_operand(struct js_parser *p)
{
    const uint8_t *end;
    uint8_t c = js_peek(p, 0);
    switch (c) {
    case 'a' ... 'z': end = js_name_end(p); return word_operand(p, js_word(p->at, (size_t)(end - p->at)), end);
    case 'A' ... 'Z':
    case '$':
    case '_':
    case '\\':
    case 0x80 ... 0xFF:
        end = js_name_end(p);
        return end > p->at ? js_named_operand(p, end, SL_JS_IDENTIFIER) : js_fail(p, "expected an expression");
    case '.':
        if (!sl_is_digit((char)js_peek(p, 1)))
            return spread(p);
        p->operand_at = js_offset(p);
        return literal_operand(p, js_number(p), ""); /* no message, as js_number() never fails */
    case '0' ... '9': p->operand_at = js_offset(p); return literal_operand(p, js_number(p), "");
    case '"':
    case '\'': p->operand_at = js_offset(p); return literal_operand(p, js_string(p), "unterminated string");
    case '(': return open_bracket(p, L_PAREN, OPERAND);
    case '[': return open_bracket(p, L_ARRAY, OPERAND);
    case '{': return open_bracket(p, L_OBJECT, MEMBER);
    case '`': p->at++; return js_template(p); /* not js_advance(): white space is part of the template's text */
    case '!':
    case '~': js_advance(p, 1); return OPERAND;
    case '+':
    case '-': js_advance(p, js_peek(p, 1) == c ? 2 : 1); return OPERAND;
    case '/':
        if (!js_regex(p))
            return js_fail(p, "unterminated regular expression");
        return other_operand(p, 0); /* 0: js_regex() has moved past it */
    case '#':                       /* #x in y */
        p->at++;
        p->at = js_name_end(p);
        js_skip(p);
        p->operand = O_OTHER;
        return js_next_word(p) == W_IN ? OPERATOR : js_fail(p, "expected `in` after a private name");
    case '@': return js_decorator(p, EXPRESSION);
    default: return no_operand(p);
    }
}

enum js_state js_decorator(struct js_parser *p, uint8_t flags)
{
    if (!js_push(p, L_DECORATOR, flags))
        return FAILED;
    js_advance(p, 1);
    return OPERAND;
}

/* Reads the name after a dot and adds it to the chain `a.b` before it. A private name, `.#x`, is not added: functions assigned to it are
 * named after the rest. */
static enum js_state parse_member(struct js_parser *p)
{
    bool hidden = js_peek(p, 0) == '#';
    p->at += hidden;
    const uint8_t *end = js_name_end(p);
    if (end == p->at || sl_is_digit((char)*p->at))
        return js_fail(p, "expected a name after the dot");
    if (p->operand == O_CHAIN && !hidden)
        js_step(p, SL_JS_MEMBER, js_offset(p), (uint32_t)(end - p->at), SL_JS_NONE);
    if (hidden)
        p->operand_at = UNKNOWN; /* `a.#x` adds no step to `a`, but is no parameter of an arrow function as `a` is */
    p->at = end;
    js_skip(p);
    return OPERATOR;
}

/* Reads `?.` with a member, call or subscript, after which the operand cannot be assigned to; else the `?` of a condition. */
static enum js_state question(struct js_parser *p)
{
    uint8_t next = js_peek(p, 1);
    if (next == '.' && !sl_is_digit((char)js_peek(p, 2))) { /* `a ?.5 : 1` is a condition */
        p->operand = O_OTHER;
        js_advance(p, 2);
        uint8_t c = js_peek(p, 0);
        return c == '(' || c == '[' ? OPERATOR : parse_member(p);
    }
    if (!js_push(p, L_CONDITION, 0))
        return FAILED;
    js_advance(p, 1);
    return OPERAND;
}

/* Reads the `[` of a subscript. The names of the chain in front of it, `a.b` of `a.b[`, stay in p->steps below p->base until it ends; the
 * stack keeps the former p->base in `size`. */
static enum js_state subscript(struct js_parser *p)
{
    bool chained = p->operand == O_CHAIN;
    if (!js_push(p, L_SUBSCRIPT, chained ? CHAINED : 0))
        return FAILED;
    js_advance(p, 1);
    struct js_level *top = js_top(p);
    top->at = js_offset(p); /* of the expression inside the brackets */
    top->size = p->base;
    if (chained)
        p->base = p->step_count;
    return OPERAND;
}

/* Ends a subscript at its `]` and adds it to the chain in front: as `[1]`, as `[name]`, or as `[<computed>]` for any other expression. If
 * no chain is in front, as in `f()[1]`, it is not added. */
static enum js_state subscript_ended(struct js_parser *p)
{
    const struct js_level top = *js_top(p);
    bool single = p->operand_at == top.at; /* the last operand is also the first one */
    uint32_t size = (uint32_t)(p->token_end - p->begin) - top.at;
    enum sl_js_part_kind kind = SL_JS_INDEX_COMPUTED;
    if (single && p->operand == O_LITERAL)
        kind = SL_JS_INDEX_LITERAL;
    else if (single && p->operand == O_CHAIN && p->step_count == p->base + 1 &&
             p->steps[p->base].kind == SL_JS_IDENTIFIER && p->steps[p->base].size == size)
        kind = SL_JS_INDEX_NAME;
    p->operand = O_OTHER;
    if (top.flags & CHAINED) {   /* a chain is in front: makes it the last operand again */
        p->step_count = p->base; /* drops the steps inside the brackets */
        p->base = top.size;      /* its value before subscript() */
        p->operand = O_CHAIN;
        p->operand_at = UNKNOWN; /* `a[b]` is no parameter of an arrow function as `a` is */
        js_step(p, kind, top.at, size, top.node);
    }
    p->depth--;
    js_advance(p, 1);
    return OPERATOR;
}

/* Reads the `(` of a call. After `async` alone the arguments may turn out to be parameters of an async arrow function, which would begin at
 * `async`: the stack keeps that offset in `at`. */
static enum js_state call(struct js_parser *p)
{
    /* the operand in front is `async` alone, and no line ends after it */
    bool async = p->operand == O_CHAIN && p->operand_at == p->async_at && p->step_count == p->base + 1 && !p->newline;
    if (!js_push(p, L_CALL, 0))
        return FAILED;
    js_top(p)->at = async ? p->async_at : UNKNOWN;
    js_advance(p, 1);
    return OPERAND;
}

/* In `a[b] = c`, names of functions inside `b` continue the assigned name: links the placeholder of each subscript among the `count` steps
 * from `from` on to that name. A step that is no subscript, or one without functions, has no placeholder. */
static void link_subscripts_to_target(struct js_parser *p, uint32_t from, uint32_t count)
{
    uint32_t name = UNKNOWN;
    for (uint32_t i = from; i < from + count; i++) {
        if (p->steps[i].node >= SL_JS_NAME_IS_COMPLETE)
            continue;
        if (name == UNKNOWN)
            name = js_context(p);
        if (name != UNKNOWN)
            js_set_outer(p, p->steps[i].node, name);
    }
}

/* Begins an assignment to the chain `a.b` just read. Assignments like `a = b = c` end together, so they are one construct on the stack. Its
 * name is that of the last target, so the steps of `b` replace those of `a`. */
static enum js_state assign_chain(struct js_parser *p)
{
    struct js_level *top = js_top(p);
    uint32_t count = p->step_count - p->base, from = p->base;
    if (top->kind == L_ASSIGN) {
        from = top->at;
        memmove(p->steps + from, p->steps + p->base, count * sizeof *p->steps);
        top->flags |= INNER;
        top->node = UNKNOWN; /* the name is another one now */
    } else {
        if (!js_push(p, L_ASSIGN, 0))
            return FAILED;
        top = js_top(p);
        top->at = from;
        top->scope = from; /* p->base to restore at the end */
    }
    top->size = count;
    p->base = p->step_count = from + count;
    link_subscripts_to_target(p, from, count);
    return OPERAND;
}

/* Reads an assignment operator of `size` bytes. */
static enum js_state assign(struct js_parser *p, size_t size)
{
    js_advance(p, size);
    if (js_top(p)->kind == L_BINDING) { /* the pattern of a declaration ends, its value follows */
        js_pop_soft(p);
        return OPERAND;
    }
    if (p->operand == O_CHAIN)
        return assign_chain(p);
    if (p->operand == O_PATTERN) /* `=` shows that the array or object before it is a pattern */
        js_make_pattern(p, p->operand_node);
    return OPERAND;
}

/* Reads an operator that is the byte `c` one to `most` times, such as `*` and `**`; with `=` after it, an assignment. */
static enum js_state binary(struct js_parser *p, uint8_t c, size_t most)
{
    size_t size = 1;
    while (size < most && js_peek(p, size) == c)
        size++;
    if (js_peek(p, size) == '=') {
        if (c != '<' && c != '>') /* `<=` and `>=` compare, `<<=` and `>>=` assign */
            return assign(p, size + 1);
        if (size > 1)
            return assign(p, size + 1);
        size++;
    }
    js_advance(p, size);
    return OPERAND;
}

/* Reads `+`, `-`, `+=`, `-=`, `++` or `--`, after an operand. */
static enum js_state plus_or_minus(struct js_parser *p, uint8_t c)
{
    if (js_peek(p, 1) != c)
        return binary(p, c, 1);
    if (p->newline) /* `++` after a line end begins the next statement */
        return js_ended(p);
    return other_operand(p, 2);
}

/* Reads what begins with `=`: an arrow, an assignment, `==` or `===`. */
static enum js_state equals(struct js_parser *p)
{
    if (js_peek(p, 1) == '>')
        return js_arrow(p);
    if (js_peek(p, 1) != '=')
        return assign(p, 1);
    js_advance(p, js_peek(p, 2) == '=' ? 3 : 2);
    return OPERAND;
}

/* Reads `in` and `instanceof`; any other word ends the expression. */
static enum js_state word_operator(struct js_parser *p)
{
    switch (js_next_word(p)) {
    case W_IN:
        if (js_top(p)->flags & NO_IN) /* it ends the head of a `for`, as in `for (x in y)` */
            return js_ended(p);
        js_advance(p, 2);
        return OPERAND;
    case W_INSTANCEOF: js_advance(p, 10); return OPERAND;
    default: return js_ended(p);
    }
}

/* Reads the token after an operand: an operator, or the end of the expression. After a decorator `[` and `*` end it, since they begin the
 * member that it decorates: a computed key or a generator. */
enum js_state js_operator(struct js_parser *p)
{
    uint8_t c = js_peek(p, 0);
    switch (c) {
    case '.': js_advance(p, 1); return parse_member(p);
    case '(': return call(p);
    case '[': return js_top(p)->kind == L_DECORATOR ? js_ended(p) : subscript(p);
    case '=': return equals(p);
    case '?':
        if (js_peek(p, 1) == '?')
            return binary(p, c, 2);
        return question(p);
    case '+':
    case '-': return plus_or_minus(p, c);
    case '*': return js_top(p)->kind == L_DECORATOR ? js_ended(p) : binary(p, c, 2);
    case '&':
    case '|':
    case '<': return binary(p, c, 2);
    case '>': return binary(p, c, 3);
    case '/':
    case '%':
    case '^': return binary(p, c, 1);
    case '!':
        if (js_peek(p, 1) != '=')
            return js_ended(p);
        js_advance(p, js_peek(p, 2) == '=' ? 3 : 2);
        return OPERAND;
    case 'i': return word_operator(p);
    case '`': p->at++; return js_template(p); /* a tagged template; white space after the ` is part of its text */
    default: return js_ended(p);
    }
}

/* ---- ends of assignment expressions ---- */

/* Reads a comma after an assignment expression: what follows depends on the construct around it. */
static enum js_state comma(struct js_parser *p)
{
    enum js_level_kind top = js_top(p)->kind;
    switch (top) {
    case L_VARIABLES: js_advance(p, 1); return DECLARATOR;
    case L_OBJECT: js_advance(p, 1); return MEMBER;
    case L_CONDITION:
    case L_KEY:
    case L_FIELD:
    case L_HERITAGE:
    case L_DECORATOR: return js_fail(p, "unexpected comma");
    default: js_advance(p, 1); return OPERAND;
    }
}

/* Ends a statement: skips its semicolon, `size` 1, or nothing, `size` 0. */
static enum js_state statement_ended(struct js_parser *p, size_t size)
{
    if (size)
        js_advance(p, size);
    return js_completed(p);
}

/* Reads a semicolon: the end of a statement or field, or a separator in the head of a `for`. */
static enum js_state semicolon(struct js_parser *p)
{
    struct js_level *top = js_top(p);
    if (top->kind == L_VARIABLES) { /* the list of variables ends; a statement or the head of a `for` is around it */
        p->depth--;
        top = js_top(p);
    }
    if (top->kind >= L_FIRST_STATEMENTS) /* a construct that contains statements */
        return statement_ended(p, 1);
    if (top->kind == L_FIELD) {
        p->depth--;
        js_advance(p, 1);
        return MEMBER;
    }
    if (top->kind != L_FOR || top->what >= FOR_UPDATE)
        return js_fail(p, "unexpected semicolon");
    top->what++; /* FOR_INIT to FOR_TEST to FOR_UPDATE */
    top->flags &= (uint8_t)~NO_IN;
    js_advance(p, 1);
    return OPERAND;
}

/* Reads `in` or `of` in the head of a `for`. */
static enum js_state for_in_or_of(struct js_parser *p)
{
    if (js_top(p)->kind == L_VARIABLES) /* `for (let x of y)`: the variables end here */
        p->depth--;
    struct js_level *top = js_top(p);
    if (top->kind != L_FOR || top->what != FOR_INIT)
        return js_fail(p, "expected an operator");
    top->what = FOR_EACH;
    top->flags &= (uint8_t)~NO_IN;
    if (p->operand == O_PATTERN)
        js_make_pattern(p, p->operand_node);
    js_advance(p, 2);
    return OPERAND;
}

/* Reads a closing parenthesis. `(a)` and `async(a)` may still turn out to be parameters, if `=>` follows: O_PARENS. */
static enum js_state parenthesis(struct js_parser *p)
{
    const struct js_level top = *js_top(p);
    switch (top.kind) {
    case L_PAREN:
        p->operand = O_PARENS;
        p->operand_at = top.at;
        p->operand_async = false;
        p->operand_node = top.node;
        break;
    case L_CALL:
        p->operand = top.at == UNKNOWN ? O_OTHER : O_PARENS;
        p->operand_at = top.at;
        p->operand_async = true;
        p->operand_node = top.node;
        break;
    case L_PARAMETERS: return js_parameters_ended(p);
    case L_HEAD: return js_head_ended(p);
    case L_FOR:
        if (top.what < FOR_UPDATE)
            return js_fail(p, "`for` needs two semicolons, `in` or `of`");
        p->depth--;
        js_advance(p, 1);
        return STATEMENT;
    default: return js_fail(p, "unmatched parenthesis");
    }
    p->depth--;
    js_advance(p, 1);
    return OPERATOR;
}

/* Reads a closing square bracket. An array may still become a pattern. */
static enum js_state square_bracket(struct js_parser *p)
{
    const struct js_level *top = js_top(p);
    switch (top->kind) {
    case L_ARRAY:
        p->operand = O_PATTERN; /* may be one */
        p->operand_node = top->node;
        p->depth--;
        js_advance(p, 1);
        return OPERATOR;
    case L_SUBSCRIPT: return subscript_ended(p);
    case L_KEY: return js_key_ended(p);
    default: return js_fail(p, "unmatched bracket");
    }
}

/* Ends a statement or a field without a semicolon: at a line end, a closing brace, or the end of the script; else an error. */
static enum js_state insert_semicolon(struct js_parser *p)
{
    uint8_t c = js_peek(p, 0);
    enum js_level_kind top = js_top(p)->kind;
    if (!p->newline && c != '}' && p->at < p->end)
        return js_fail(p, "expected an operator");
    if (top == L_FIELD) {
        p->depth--;
        return MEMBER;
    }
    if (top == L_VARIABLES) { /* the list of variables ends with the statement that it is part of */
        p->depth--;
        top = js_top(p)->kind;
    }
    return top >= L_FIRST_STATEMENTS ? statement_ended(p, 0) : js_fail(p, "a bracket has no end");
}

/* Reads a closing brace: of an object, of an expression in a template, or of a block, which ends the statement in it. */
static enum js_state curly_bracket(struct js_parser *p)
{
    switch (js_top(p)->kind) {
    case L_OBJECT: return MEMBER; /* js_member() reads the brace */
    case L_TEMPLATE:
        p->depth--;
        p->at++; /* not js_advance(): white space is part of the template's text */
        return js_template(p);
    default: return insert_semicolon(p);
    }
}

/* Reads the colon of a condition or a case. */
static enum js_state colon(struct js_parser *p)
{
    enum js_level_kind top = js_top(p)->kind;
    if (top != L_CONDITION && top != L_CASE)
        return js_fail(p, "unexpected colon");
    p->depth--;
    js_advance(p, 1);
    return top == L_CASE ? STATEMENT : OPERAND;
}

/* Reads a word after a complete expression: `in` or `of` in the head of a `for`, else the next statement. */
static enum js_state word_ends(struct js_parser *p)
{
    enum js_word word = js_next_word(p);
    return (word == W_OF || word == W_IN) && js_top(p)->flags & NO_IN ? for_in_or_of(p) : insert_semicolon(p);
}

/* Reads the token at which an assignment expression ends, and continues with the construct around it. */
enum js_state js_ended(struct js_parser *p)
{
    js_end_soft(p); /* assignments, properties, arrow functions: they end with the expression inside them */
    const struct js_level *top = js_top(p);
    if (top->kind == L_DECORATOR) { /* what it decorates follows: a class expression, a member or a class */
        enum js_state next = top->flags & EXPRESSION ? OPERAND : top[-1].kind == L_CLASS ? MEMBER : STATEMENT;
        p->depth--;
        return next;
    }
    switch (js_peek(p, 0)) {
    case ',': return comma(p);
    case ';': return semicolon(p);
    case ')': return parenthesis(p);
    case ']': return square_bracket(p);
    case '}': return curly_bracket(p);
    case ':': return colon(p);
    case 'i': /* `in` or `of` in the head of a `for` */
    case 'o': return word_ends(p);
    case '{':
        if (top->kind != L_HERITAGE)
            return insert_semicolon(p);
        p->depth--; /* the expression after `extends` ends, the body of the class begins */
        js_advance(p, 1);
        return MEMBER;
    default: return insert_semicolon(p);
    }
}

/* Reads a variable of `var`, `let`, `const` or `using`, up to its `=`: a name, or a pattern. */
enum js_state js_declarator(struct js_parser *p)
{
    uint8_t c = js_peek(p, 0);
    if (c == '{' || c == '[') /* a pattern is read like an object or array literal */
        return js_push(p, L_BINDING, 0) ? OPERAND : FAILED;
    if (!js_name_begins(c))
        return js_fail(p, "expected a variable name");
    uint32_t at = js_offset(p);
    const uint8_t *end = js_name_end(p);
    uint32_t size = (uint32_t)(end - p->at);
    p->at = end;
    js_skip(p);
    p->operand = O_OTHER;
    /* `==` is no initializer */
    if (js_peek(p, 0) != '=' || js_peek(p, 1) == '=')
        return ENDED;
    if (!js_push(p, L_VARIABLE, 0))
        return FAILED;
    /* where the name is: a function that is the initial value gets this name */
    js_top(p)->at = at;
    js_top(p)->size = size;
    js_advance(p, 1);
    return OPERAND;
}
