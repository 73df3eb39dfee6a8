/* The parser of scripts: a pushdown machine instead of recursive functions. The state says which token is expected next; a stack
 * of "levels" says which constructs enclose it. A level takes 20 bytes.
 *
 *     x = {p: (a) => a}            PROGRAM  ASSIGN x  OBJECT  PROPERTY p  ARROW     the levels at the last `a`
 *
 * Some levels are soft: no token ends them, they end together with the assignment expression inside them. Three constructs are
 * only known at their end: `(a, b)` may be parameters, `[a]` and `{a}` may be patterns, and `a[b]` may be assigned to. The names of
 * functions inside link to a placeholder (a name part of kind SL_JS_COVER); when the construct ends, the placeholder's `outer` link
 * is set to what it turned out to be. Nothing is read twice. */
#pragma once

#include "js/scope.h"

enum { DEEPEST = 16384 /* nested constructs */, LONGEST_CHAIN = 256 /* names and subscripts in `a.b[c]...` */ };

/* Which token is expected next. */
enum js_state {
    OPERAND,    /* the beginning of an expression, or the end of an empty one */
    OPERATOR,   /* a token after an operand */
    ENDED,      /* the token after a complete assignment expression, where no operator may stand */
    DECLARATOR, /* a variable of var, let, const, using */
    STATEMENT,
    MEMBER,     /* a member of the class or object literal on top of the stack, or its end */
    MEMBER_END, /* the token after a method of an object literal */
    DONE,
    FAILED,
};

/* Kinds of constructs on the parser's stack, and what the members `at`, `size`, `scope`, `what` of struct js_level hold for them. */
enum js_level_kind {
    /* "soft" constructs: no token ends them, they end with the assignment expression inside them */
    L_ASSIGN,   /* its target `a.b` is p->steps[at .. at + size]; `scope`: value of p->base to restore at the end */
    L_ARROW,    /* arrow function whose body has no braces */
    L_PROPERTY, /* value of a property; at, size: text of its key */
    L_VARIABLE, /* initial value of a variable; at, size: text of the variable's name */
    L_BINDING,  /* pattern of a declaration: `{a}` of `let {a} = b` */
    L_LAST_SOFT = L_BINDING,
    /* brackets */
    L_PAREN,
    L_CALL, /* `at`: offset of `async` in `async(...)`; UNKNOWN for any other call */
    L_ARRAY,
    L_SUBSCRIPT, /* `at`: offset of `i` in `a[i]`; `size`: value of p->base to restore at the end */
    L_OBJECT,
    L_TEMPLATE,
    L_PARAMETERS, /* also those of catch */
    L_KEY,        /* computed key; `at`: offset where its member begins, `size`: the member's modifiers */
    L_HEAD,       /* parentheses of if, while, with, switch, and of the while that ends a do */
    L_FOR,
    /* other constructs that contain expressions */
    L_CONDITION, /* between `?` and `:` */
    L_CASE,
    L_VARIABLES,
    L_FIELD,    /* value of a class field; at, size: text of its key, `what`: kind of the key (enum sl_js_part_kind) */
    L_HERITAGE, /* the expression after `extends` */
    L_DECORATOR,
    /* parts of statements */
    L_CLASS, /* at, size: text of its name; size 0: it has none */
    L_TRY,
    /* constructs that contain statements */
    L_PROGRAM,
    L_FIRST_STATEMENTS = L_PROGRAM,
    L_BLOCK,
    L_FUNCTION,
    L_SWITCH,
    L_STATIC,
    L_IF,
    L_DO,
};

enum js_level_flags {
    NO_IN = 1,         /* `in` is no operator here: it ends the first part of the head of a `for` */
    WAS_ASYNC = 2,     /* function: the code around it is async */
    WAS_GENERATOR = 4, /* function: the code around it is a generator */
    CLEAR = 8,        /* accessor of an object literal: functions inside it are named as if they stood in the literal */
    INNER = 16,       /* assignment: it is the value of another one, as `b = c` in `a = b = c` */
    CHAINED = 32,     /* subscript: a chain of names is in front of it, as in `a.b[` */
    CATCH = 64,       /* parameters: of a catch clause */
    EXPRESSION = 128, /* class, decorator: inside an expression, so an operator may follow */
};

/* Values of js_level.what. Functions, js_after: what may follow the function. Parentheses after a keyword, js_head: which statement they
 * belong to. `for`, js_for: which part of its head is being read. */
enum js_after { AFTER_EXPRESSION, AFTER_ARROW, AFTER_STATEMENT, AFTER_MEMBER };
enum js_head { HEAD_IF, HEAD_WHILE, HEAD_SWITCH, HEAD_DO };
enum js_for { FOR_INIT, FOR_TEST, FOR_UPDATE, FOR_EACH };

/* A construct that encloses the next token. */
struct js_level {
    uint8_t kind, flags;
    uint8_t what; /* js_after, js_head or js_for; L_TRY: 1 after catch, 2 after finally; L_FIELD: kind of the key */
    uint32_t at, size; /* mostly where a text is in the script; enum js_level_kind says it for each kind */
    uint32_t scope;    /* function, arrow, class: the result of js_open_scope() */
    uint32_t node; /* name part to which functions inside append their names; UNKNOWN until the first such function */
};

enum { UNKNOWN = UINT32_MAX, LATE = 1u << 31 /* flag in the number of a scope: it is in js_parser.late */ };

/* Kind of the last operand. */
enum js_operand {
    O_OTHER,
    O_CHAIN,   /* `a.b[c]`, the target of an assignment if `=` follows; its names are p->steps from p->base on */
    O_PARENS,  /* parentheses: parameters if an arrow follows */
    O_PATTERN, /* an array or object literal: a pattern if `=` follows */
    O_LITERAL, /* a string or a number */
};

/* A step of a chain: `a`, `.b` or `[c]` of `a.b[c]`. */
struct js_step {
    uint32_t at, size; /* its text in the script */
    uint32_t kind;     /* enum sl_js_part_kind */
    uint32_t node;     /* of a subscript: the placeholder that names of functions inside it link to */
};

/* Modifiers before the name of a class member or property. */
enum js_modifier { M_STATIC = 1, M_ASYNC = 2, M_GENERATOR = 4, M_GET = 8, M_SET = 16, M_ACCESSOR = 32 };

struct js_parser {
    const uint8_t *at, *end, *begin; /* `at`: the next token */
    const uint8_t *token_end;        /* end of the token before `at` */
    bool newline;                    /* a line ends between token_end and `at` */
    bool async, generator;           /* the innermost function is one */
    bool operand_async;              /* the parentheses of O_PARENS follow the word `async` */
    uint8_t operand;                 /* enum js_operand: kind of the last operand */
    uint32_t operand_at;             /* the operand's offset; UNKNOWN if it cannot be a single name or parameters */
    /* for O_PARENS, O_PATTERN: the placeholder that names of functions inside the brackets link to */
    uint32_t operand_node;
    uint32_t async_at; /* offset of the last `async` that was an operand */

    struct js_level *levels;
    uint32_t depth;
    struct js_step *steps;
    /* the chain read last is steps[base .. step_count); the steps before `base` belong to constructs around it */
    uint32_t base, step_count;
    /* scopes of arrow functions that were opened after scopes of functions in their parameters */
    struct sl_js_scope *late;
    uint32_t late_count;
    size_t level_capacity, step_capacity, late_capacity;

    struct sl_js_scopes *scopes;
    struct sl_account account;
    struct sl_error *error;
    enum sl_code code;
};

enum js_word {
    W_NONE, /* a name */
    W_ASYNC,
    W_AWAIT,
    W_BREAK,
    W_CASE,
    W_CATCH,
    W_CLASS,
    W_CONST,
    W_CONTINUE,
    W_DEBUGGER,
    W_DEFAULT,
    W_DO,
    W_ELSE,
    W_EXPORT,
    W_EXTENDS,
    W_FINALLY,
    W_FOR,
    W_FUNCTION,
    W_IF,
    W_IMPORT,
    W_IN,
    W_INSTANCEOF,
    W_LET,
    W_LITERAL, /* null, true, false */
    W_NEW,
    W_OF,
    W_RESERVED, /* enum */
    W_RETURN,
    W_SUPER,
    W_SWITCH,
    W_THIS,
    W_THROW,
    W_TRY,
    W_UNARY, /* delete, typeof, void */
    W_USING,
    W_VAR,
    W_WHILE,
    W_WITH,
    W_YIELD,
};

/* ---- scope_text.c: tokens ---- */

/* Classes of bytes: letters, digits, `$`, `_`; digits; white space; the slash; above 0x7F. 0 = any other byte. */
enum { B_NAME = 1, B_DIGIT = 2, B_BLANK = 4, B_COMMENT = 8, B_HIGH = 16 };
extern const uint8_t js_bytes[256];

void js_skip_slowly(struct js_parser *p);
const uint8_t *js_name_end_slowly(const struct js_parser *p, const uint8_t *at);
enum js_word js_word(const uint8_t *name, size_t size);

/* Move p->at past the literal that begins there; false when the literal has no end. */
bool js_string(struct js_parser *p);
bool js_number(struct js_parser *p);
bool js_regex(struct js_parser *p);

/* Reads the text of a template from p->at on. Returns OPERATOR after its end, OPERAND inside its next `${`. */
enum js_state js_template(struct js_parser *p);

enum js_state js_fail(struct js_parser *p, const char *what);

static inline uint32_t js_offset(const struct js_parser *p)
{
    return (uint32_t)(p->at - p->begin);
}

/* Returns the byte at an offset from the beginning of the next token; 0 at or after the end of the text. */
static inline uint8_t js_peek(const struct js_parser *p, size_t ahead)
{
    return ahead < (size_t)(p->end - p->at) ? p->at[ahead] : 0;
}

/* Moves from the end of a token to the next token. */
static inline void js_skip(struct js_parser *p)
{
    p->token_end = p->at;
    p->newline = false;
    if (p->at < p->end && *p->at == ' ')
        p->at++;
    if (p->at < p->end && js_bytes[*p->at] & (B_BLANK | B_COMMENT | B_HIGH))
        js_skip_slowly(p);
}

static inline void js_advance(struct js_parser *p, size_t size)
{
    p->at += size;
    js_skip(p);
}

static inline bool js_name_begins(uint8_t c)
{
    return (js_bytes[c] & (B_NAME | B_DIGIT)) == B_NAME || c >= 0x80 || c == '\\';
}

/* Returns the end of the name that begins at p->at. */
static inline const uint8_t *js_name_end(const struct js_parser *p)
{
    const uint8_t *at = p->at;
    while (at < p->end && js_bytes[*at] & B_NAME)
        at++;
    return at < p->end && (*at >= 0x80 || *at == '\\') ? js_name_end_slowly(p, at) : at;
}

/* Consumes the next token if it is this byte. */
static inline bool js_take(struct js_parser *p, uint8_t c)
{
    if (js_peek(p, 0) != c)
        return false;
    js_advance(p, 1);
    return true;
}

/* Consumes the next token if it is this word. */
bool js_take_word(struct js_parser *p, enum js_word word);

/* Returns the word that comes next, W_NONE for any other token. */
enum js_word js_next_word(const struct js_parser *p);

/* ---- scope_context.c: enclosing constructs (levels), names, scopes ---- */

/* Makes room for one more level; false if the script is nested too deeply or out of memory, which p->code tells. */
bool js_grow_levels(struct js_parser *p);

static inline struct js_level *js_top(struct js_parser *p)
{
    return &p->levels[p->depth - 1];
}

/* Pushes a construct on the stack of those around the next token; its `node` is UNKNOWN, and its `at`, `size`, `scope`, `what` are 0. False
 * if nested too deeply or out of memory, with p->code set; also when the work budget is used up, but then p->code stays SL_OK. */
static inline bool js_push(struct js_parser *p, enum js_level_kind kind, uint8_t flags)
{
    if (__builtin_expect(p->depth == p->level_capacity, 0) && !js_grow_levels(p))
        return false;
    /* in the head of a `for`, `in` ends an assignment, too; within brackets it is an operator again */
    if (kind <= L_LAST_SOFT)
        flags |= p->levels[p->depth - 1].flags & NO_IN;
    p->levels[p->depth++] = (struct js_level){.kind = (uint8_t)kind, .flags = flags, .node = UNKNOWN};
    return sl_account_spend(&p->account, 1);
}

/* Ends the construct on top of the stack, which must be soft: one that no token of its own ends (an assignment, a property, an arrow). */
void js_pop_soft(struct js_parser *p);

/* Ends all constructs that end with the assignment expression just read. */
static inline void js_end_soft(struct js_parser *p)
{
    while (js_top(p)->kind <= L_LAST_SOFT)
        js_pop_soft(p);
}

/* Adds `a`, `.b` or `[c]` to the chain `a.b[c]` being read. `node`: the placeholder that names of functions in a subscript link to. */
void js_step(struct js_parser *p, enum sl_js_part_kind kind, uint32_t at, uint32_t size, uint32_t node);

/* Returns the index of the name part that the name of a function at this position continues; UNKNOWN, with p->code set, when memory is
 * exhausted. */
uint32_t js_context(struct js_parser *p);

/* Adds a part of a name, whose text is at `at`, to the right of the part `outer`. Returns its index; UNKNOWN when out of memory. */
uint32_t js_part(struct js_parser *p, enum sl_js_part_kind kind, uint32_t at, uint32_t size, uint32_t outer);

/* Marks brackets as a pattern: functions inside are not named after its keys. `node` is the placeholder of the brackets; if no function was
 * inside they have none, and nothing is done. */
static inline void js_make_pattern(struct js_parser *p, uint32_t node)
{
    if (node < SL_JS_NAME_IS_COMPLETE)
        p->scopes->parts[node].pattern = 1;
}

/* Sets which part is to the left of the part `node` in names; nothing if there is no such part. */
static inline void js_set_outer(struct js_parser *p, uint32_t node, uint32_t outer)
{
    if (node < SL_JS_NAME_IS_COMPLETE)
        p->scopes->parts[node].outer = outer;
}

/* Opens a scope at `start`; `name` is the last part of its name. Returns its number, for js_close_scope(); SL_JS_NONE when memory is
 * exhausted. */
uint32_t js_open_scope(struct js_parser *p, uint32_t start, enum sl_js_scope_kind kind, uint32_t name);

/* Sets the end of a scope, the first byte after it. SL_JS_NONE as `scope` does nothing. */
void js_close_scope(struct js_parser *p, uint32_t scope, const uint8_t *end);

/* Completes the scopes at the end of the text: puts all in order, drops those without an end, finds the enclosing scope of each, and
 * resolves placeholders in names. False when out of memory. */
bool js_finish_scopes(struct js_parser *p);

/* ---- scope_expression.c: expressions ---- */
enum js_state js_operand(struct js_parser *p);
enum js_state js_operator(struct js_parser *p);
enum js_state js_ended(struct js_parser *p);
enum js_state js_declarator(struct js_parser *p);

/* Consumes the next token, up to `end`, as an operand that is a name. */
enum js_state js_named_operand(struct js_parser *p, const uint8_t *end, enum sl_js_part_kind kind);
enum js_state js_async(struct js_parser *p, bool statement);
enum js_state js_decorator(struct js_parser *p, uint8_t flags);

/* ---- scope_function.c: functions and classes ---- */

/* Reads a function up to its parameters. The next token is `function`; the function began at `start`, which may be its `async`. */
enum js_state js_function(struct js_parser *p, uint32_t start, bool async, enum js_after after);
enum js_state js_function_ended(struct js_parser *p);
enum js_state js_parameters_ended(struct js_parser *p);

/* Reads `=>`, which shows that the operand before it was a list of parameters. */
enum js_state js_arrow(struct js_parser *p);

/* Reads the head of a class. The next token is `class`. `flags`: EXPRESSION, or 0 for a declaration. */
enum js_state js_class(struct js_parser *p, uint8_t flags);

/* Called where a member of a class or an object may begin, or the end of the members. */
enum js_state js_member(struct js_parser *p);
/* Called after a method or a name alone in an object: a comma or the end of the object must follow. */
enum js_state js_member_end(struct js_parser *p);
enum js_state js_key_ended(struct js_parser *p);

/* ---- scope_statement.c: statements ---- */
enum js_state js_statement(struct js_parser *p);

/* Called at the end of a statement: continues with the construct around it. */
enum js_state js_completed(struct js_parser *p);
enum js_state js_head_ended(struct js_parser *p);
