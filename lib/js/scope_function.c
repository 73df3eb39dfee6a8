/* Parser of scripts: functions, classes, and the members of classes and object literals. */
#include "js/scope_impl.h"

struct js_class_member {
    uint32_t start, at, size; /* `start` of the member; `at`, `size` of its key */
    uint32_t node; /* of a computed key: the placeholder that names of functions inside the brackets link to */
    uint8_t modifiers;
    enum sl_js_part_kind kind; /* of the key */
};

/* Enters a function: pushes it on the stack of enclosing constructs. `scope`: result of js_open_scope(); `after`: what may follow its end.
 * False when out of memory or nested too deeply. */
static bool push_function(struct js_parser *p, enum js_level_kind kind, uint32_t scope, uint8_t flags,
                          enum js_after after)
{
    flags |= (p->async ? WAS_ASYNC : 0) | (p->generator ? WAS_GENERATOR : 0); /* to restore them at its end */
    if (!js_push(p, kind, flags))
        return false;
    js_top(p)->scope = scope;
    js_top(p)->what = (uint8_t)after;
    return true;
}

/* Reads the parameters of a function; their bracket is the next token. `async`, `generator`: what the function is; it decides how `await`
 * and `yield` are read. */
static enum js_state function_parameters(struct js_parser *p, bool async, bool generator)
{
    p->async = async;
    p->generator = generator;
    if (js_peek(p, 0) != '(')
        return js_fail(p, "function without parameters");
    if (!js_push(p, L_PARAMETERS, 0))
        return FAILED;
    js_advance(p, 1);
    return OPERAND;
}

/* Ends parameters at their `)`; a brace must follow. For a function, L_FUNCTION is on the stack already and stands for its body. For a
 * `catch`, L_BLOCK is pushed, as for any other block. */
enum js_state js_parameters_ended(struct js_parser *p)
{
    bool catch = js_top(p)->flags & CATCH;
    p->depth--;
    js_advance(p, 1);
    if (!js_take(p, '{'))
        return js_fail(p, "expected a body after the parameters");
    return !catch || js_push(p, L_BLOCK, 0) ? STATEMENT : FAILED;
}

/* Reads `function`, the next token, up to its parameters. Its name continues that of the code around it: `x` in `x = function f() {}`. If
 * it has a name of its own, here `f`, that is added as a further part. */
enum js_state js_function(struct js_parser *p, uint32_t start, bool async, enum js_after after)
{
    js_advance(p, 8);
    bool generator = js_take(p, '*');
    uint32_t name = js_context(p);
    if (js_name_begins(js_peek(p, 0))) {
        const uint8_t *end = js_name_end(p);
        name = js_part(p, SL_JS_OWN_NAME, js_offset(p), (uint32_t)(end - p->at), name);
        p->at = end;
        js_skip(p);
    }
    uint32_t scope = js_open_scope(p, start, SL_JS_FUNCTION, name);
    return push_function(p, L_FUNCTION, scope, 0, after) ? function_parameters(p, async, generator) : FAILED;
}

/* Ends a function; the brace at the end of its body is the next token. */
enum js_state js_function_ended(struct js_parser *p)
{
    const struct js_level top = *js_top(p);
    js_close_scope(p, top.scope, p->at + 1);
    p->async = top.flags & WAS_ASYNC;
    p->generator = top.flags & WAS_GENERATOR;
    p->depth--;
    js_advance(p, 1);
    p->operand = O_OTHER;
    switch (top.what) {
    case AFTER_EXPRESSION: return OPERATOR;
    case AFTER_ARROW: return ENDED;
    case AFTER_STATEMENT: return js_completed(p);
    /* AFTER_MEMBER; in an object a comma or `}` must follow */
    default: return js_top(p)->kind == L_CLASS ? MEMBER : MEMBER_END;
    }
}

/* Reads `=>`. Only this token shows that the name or parentheses before it are parameters. The scope of the function therefore begins with
 * them, and names of functions inside the parentheses no longer continue the name of the code around them. */
enum js_state js_arrow(struct js_parser *p)
{
    bool async = false, single = p->operand == O_CHAIN && p->step_count == p->base + 1;
    /* no line may end before `=>`; operand_at is UNKNOWN for what is no parameter, as `a[b]` */
    if (p->newline || p->operand_at == UNKNOWN || (p->operand != O_PARENS && !single))
        return js_fail(p, "no parameters before `=>`");
    if (p->operand == O_PARENS) { /* names that link to the placeholder of the parentheses now begin there */
        async = p->operand_async;
        js_set_outer(p, p->operand_node, SL_JS_NONE);
        js_make_pattern(p, p->operand_node);
    }
    uint32_t scope = js_open_scope(p, p->operand_at, SL_JS_FUNCTION, js_context(p));
    js_advance(p, 2);
    bool braces = js_peek(p, 0) == '{';
    if (!push_function(p, braces ? L_FUNCTION : L_ARROW, scope, 0, AFTER_ARROW))
        return FAILED;
    p->async = async;
    p->generator = false;
    if (!braces)
        return OPERAND;
    js_advance(p, 1);
    return STATEMENT;
}

/* Reads `class`, the next token, up to its body or the expression after `extends`. The class is on the stack before js_context() is called,
 * which therefore gives the scope the name of the class. */
enum js_state js_class(struct js_parser *p, uint8_t flags)
{
    uint32_t start = js_offset(p);
    if (!js_push(p, L_CLASS, flags))
        return FAILED;
    js_advance(p, 5);
    struct js_level *top = js_top(p);
    if (js_name_begins(js_peek(p, 0)) && js_next_word(p) != W_EXTENDS) {
        const uint8_t *end = js_name_end(p);
        top->at = js_offset(p);
        top->size = (uint32_t)(end - p->at);
        p->at = end;
        js_skip(p);
    }
    top->scope = js_open_scope(p, start, SL_JS_CLASS, js_context(p));
    if (js_take_word(p, W_EXTENDS))
        return js_push(p, L_HERITAGE, 0) ? OPERAND : FAILED;
    return js_take(p, '{') ? MEMBER : js_fail(p, "class without a body");
}

/* Ends a class at its closing brace. After a class expression an operator may follow; a class declaration is a whole statement. */
static enum js_state class_ended(struct js_parser *p)
{
    const struct js_level top = *js_top(p);
    js_close_scope(p, top.scope, p->at + 1);
    p->depth--;
    js_advance(p, 1);
    p->operand = O_OTHER;
    return top.flags & EXPRESSION ? OPERATOR : js_completed(p);
}

/* Ends an object literal at its `}`; if `=` follows, it turns out to be a pattern. */
static enum js_state object_ended(struct js_parser *p)
{
    p->operand = O_PATTERN; /* may be one */
    p->operand_node = js_top(p)->node;
    p->depth--;
    js_advance(p, 1);
    return OPERATOR;
}

/* ---- members ---- */

/* True for a member `constructor`, also written as a string, without modifiers. It gets no scope of its own: the scope of the class stands
 * for it. */
static bool is_constructor(const struct js_parser *p, const struct js_class_member *member)
{
    const char *text = (const char *)p->begin + member->at;
    struct sl_str key = {text, member->size};
    return !member->modifiers &&
           ((member->kind == SL_JS_IDENTIFIER && sl_str_equal(key, SL_STR("constructor"))) ||
            /* "constructor" with quotes */
            (member->kind == SL_JS_KEY_LITERAL && key.size == 13 && memcmp(text + 1, "constructor", 11) == 0));
}

/* Reads a method up to its parameters. A constructor gets no scope: positions in it belong to the scope of its class. Functions in a getter
 * or setter of an object literal, also in its computed key, are named as if they stood in the literal itself. */
static enum js_state method(struct js_parser *p, const struct js_class_member *member)
{
    bool in_class = js_top(p)->kind == L_CLASS;
    bool get = member->modifiers & M_GET, set = member->modifiers & M_SET;
    uint32_t scope = SL_JS_NONE;
    if (!in_class || !is_constructor(p, member)) {
        enum sl_js_scope_kind kind = get   ? (in_class ? SL_JS_GETTER : SL_JS_OBJECT_GETTER)
                                     : set ? (in_class ? SL_JS_SETTER : SL_JS_OBJECT_SETTER)
                                           : SL_JS_FUNCTION;
        uint32_t name = js_part(p, member->kind, member->at, member->size, js_context(p));
        /* functions inside the brackets of a computed key are named after the method */
        if (in_class || !(get || set))
            js_set_outer(p, member->node, name);
        scope = js_open_scope(p, member->start, kind, name);
    }
    /* CLEAR: names of functions in the body continue that of the object literal */
    if (!push_function(p, L_FUNCTION, scope, !in_class && (get || set) ? CLEAR : 0, AFTER_MEMBER))
        return FAILED;
    return function_parameters(p, member->modifiers & M_ASYNC, member->modifiers & M_GENERATOR);
}

/* Reads the colon of a property; a function as its value is named after the key. */
static enum js_state property(struct js_parser *p, const struct js_class_member *member)
{
    if (member->kind == SL_JS_IDENTIFIER) { /* strings, numbers and computed keys are not part of names */
        if (!js_push(p, L_PROPERTY, 0))
            return FAILED;
        js_top(p)->at = member->at;
        js_top(p)->size = member->size;
    }
    js_advance(p, 1);
    return OPERAND;
}

/* Enters the value of a class field: functions in it are named after the field's key. False when out of memory or nested too deeply. */
static bool push_field(struct js_parser *p, const struct js_class_member *member)
{
    if (!js_push(p, L_FIELD, 0))
        return false;
    js_top(p)->at = member->at;
    js_top(p)->size = member->size;
    js_top(p)->what = (uint8_t)member->kind;
    return true;
}

/* Reads the token after a key, which tells what the member is: a method, a property, a field, or a name alone. */
static enum js_state after_key(struct js_parser *p, const struct js_class_member *member)
{
    bool in_class = js_top(p)->kind == L_CLASS;
    uint8_t c = js_peek(p, 0);
    if (c == '(')
        return method(p, member);
    /* no `(` follows, so it is a property, which has no modifiers, or a class field, which may have `static` and `accessor` */
    if (member->modifiers & (M_GENERATOR | M_GET | M_SET | (in_class ? M_ASYNC : 0xFF)))
        return js_fail(p, "method without parameters");
    switch (c) {
    case ':': return in_class ? js_fail(p, "unexpected colon in a class") : property(p, member);
    case ',': return in_class || member->kind != SL_JS_IDENTIFIER ? js_fail(p, "unexpected comma") : js_member_end(p);
    case '=':
        if (in_class && !push_field(p, member))
            return FAILED;
        js_advance(p, 1); /* in an object: default value, so it is a pattern */
        return OPERAND;
    case ';': return in_class ? MEMBER : js_fail(p, "unexpected semicolon in an object");
    case '}': return in_class || member->kind == SL_JS_IDENTIFIER ? MEMBER : js_fail(p, "property without a value");
    default: return in_class && p->newline ? MEMBER : js_fail(p, "expected a member of the class or object");
    }
}

/* Ends a computed key at its `]`. computed_key() put the start and the modifiers of the member into `at` and `size` of the stack's top. */
enum js_state js_key_ended(struct js_parser *p)
{
    const struct js_level top = *js_top(p);
    struct js_class_member member = {
        .start = top.at, .node = top.node, .modifiers = (uint8_t)top.size, .kind = SL_JS_KEY_COMPUTED};
    p->depth--;
    js_advance(p, 1);
    return after_key(p, &member);
}

/* Reads the `[` of a computed key. The expression inside is read before the rest of the member, so the member's start and modifiers are
 * kept on the stack, in `at` and `size`, for js_key_ended(). */
static enum js_state computed_key(struct js_parser *p, const struct js_class_member *member)
{
    if (!js_push(p, L_KEY, 0))
        return FAILED;
    js_top(p)->at = member->start;
    js_top(p)->size = member->modifiers;
    js_advance(p, 1);
    return OPERAND;
}

/* Returns the modifier of this name, 0 if it is none; `static` and `accessor` only exist in classes. */
static uint8_t get_modifier(const struct js_parser *p, struct sl_str name)
{
    static const struct {
        struct sl_str name;
        uint8_t modifier, in_class;
    } modifiers[] = {
        {SL_STR("get"), M_GET, false},      {SL_STR("set"), M_SET, false},          {SL_STR("async"), M_ASYNC, false},
        {SL_STR("static"), M_STATIC, true}, {SL_STR("accessor"), M_ACCESSOR, true},
    };
    bool in_class = p->levels[p->depth - 1].kind == L_CLASS;
    if (name.size < 3 || name.size > 8) /* shorter than "get" or longer than "accessor" */
        return 0;
    for (size_t i = 0; i < sizeof modifiers / sizeof modifiers[0]; i++)
        if ((in_class || !modifiers[i].in_class) && sl_str_equal(name, modifiers[i].name))
            return modifiers[i].modifier;
    return 0;
}

/* True if the word just read is a modifier: a key follows. Otherwise the word is itself a key, such as `get` in `{get: 1}`. */
static bool modifies(const struct js_parser *p, uint8_t modifier)
{
    uint8_t c = js_peek(p, 0);
    if (modifier & (M_ASYNC | M_ACCESSOR) && p->newline) /* a field of that name, which the line end ends */
        return false;
    if (modifier & (M_GET | M_SET) && c == '*') /* a field named `get`, then a generator */
        return false;
    /* a name, a number, a string, `[key]`, `#key`, the `*` of a generator, a number like `.5`, or a static block */
    return js_name_begins(c) || sl_is_digit((char)c) || (c && strchr("\"'[#*.", c)) ||
           (modifier == M_STATIC && c == '{');
}

/* Consumes modifiers and a key that is a name. False if no name follows the modifiers, which stay consumed. */
static bool name_key(struct js_parser *p, struct js_class_member *member)
{
    while (js_name_begins(js_peek(p, 0))) {
        const uint8_t *begin = p->at, *end = js_name_end(p);
        uint8_t modifier = get_modifier(p, (struct sl_str){(const char *)begin, (size_t)(end - begin)});
        if (end == begin) /* a backslash that begins no valid escape */
            return false;
        p->at = end;
        js_skip(p);
        if (modifier && modifies(p, modifier)) {
            member->modifiers |= modifier;
            if (js_take(p, '*'))
                member->modifiers |= M_GENERATOR;
            continue;
        }
        member->at = (uint32_t)(begin - p->begin);
        member->size = (uint32_t)(end - begin);
        member->kind = SL_JS_IDENTIFIER;
        return true;
    }
    return false;
}

/* Reads a key that is not a name: computed, a string, a number or a private name. */
static enum js_state other_key(struct js_parser *p, struct js_class_member *member)
{
    uint8_t c = js_peek(p, 0);
    member->at = js_offset(p);
    member->kind = SL_JS_KEY_LITERAL;
    if (c == '[')
        return computed_key(p, member);
    if (c == '"' || c == '\'') {
        if (!js_string(p))
            return js_fail(p, "unterminated string");
    } else if (sl_is_digit((char)c) || (c == '.' && sl_is_digit((char)js_peek(p, 1)))) {
        js_number(p);
    } else if (c == '#' && js_name_begins(js_peek(p, 1))) {
        p->at++;
        p->at = js_name_end(p);
        member->kind = SL_JS_PRIVATE;
    } else {
        return js_fail(p, "expected a member of the class or object");
    }
    member->size = js_offset(p) - member->at;
    js_skip(p);
    return after_key(p, member);
}

/* Reads a member that begins with a key, modifiers or `*`; or a static block, whose `static` name_key() reads as a modifier. */
static enum js_state keyed_member(struct js_parser *p)
{
    struct js_class_member member = {.start = js_offset(p), .node = SL_JS_NONE};
    if (js_take(p, '*'))
        member.modifiers = M_GENERATOR;
    if (name_key(p, &member))
        return after_key(p, &member);
    if (member.modifiers == M_STATIC && js_take(p, '{'))
        return js_push(p, L_STATIC, 0) ? STATEMENT : FAILED;
    return other_key(p, &member);
}

/* Reads the beginning of a member of the class or object literal on top of the stack, or its closing brace. */
enum js_state js_member(struct js_parser *p)
{
    bool in_class = js_top(p)->kind == L_CLASS;
    switch (js_peek(p, 0)) {
    case '}': return in_class ? class_ended(p) : object_ended(p);
    case ';':
        if (!in_class)
            return js_fail(p, "unexpected semicolon in an object");
        js_advance(p, 1);
        return MEMBER;
    case '@': return in_class ? js_decorator(p, 0) : js_fail(p, "unexpected decorator in an object");
    case '.':
        /* `...expression` in an object */
        if (!in_class && js_peek(p, 1) == '.' && js_peek(p, 2) == '.') {
            js_advance(p, 3);
            return OPERAND;
        }
        return keyed_member(p); /* a number as key, `.5`, or an error */
    default: return keyed_member(p);
    }
}

enum js_state js_member_end(struct js_parser *p)
{
    if (js_peek(p, 0) == '}')
        return MEMBER;
    return js_take(p, ',') ? MEMBER : js_fail(p, "expected a comma after a member");
}
