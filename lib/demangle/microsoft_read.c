/* Reads a Microsoft name into a tree. Functions return NULL, and fail the reader, if the name is malformed or memory is short. Here are the
 * lexer, qualified names with operators and templates, and the kinds of symbols. */
#include "demangle/microsoft.h"

#include <stdarg.h>
#include <stdio.h>

#include "demangle/microsoft_tree.h"

/* Limits for hostile names: nesting, bytes of all nodes, bytes of a template or a vtable's class that is printed while reading. */
enum { MAX_DEPTH = 128, MAX_MEMORY = 1 << 20, MAX_PIECE = 4096 };

/* ---- lexer ---- */

/* Records that the name is malformed or memory is short, and moves to the name's end, so that every loop over it ends. Returns NULL, for
 * the caller to return. */
void *ms_fail(struct ms_reader *r)
{
    r->failed = true;
    r->at = r->end;
    return NULL;
}

bool ms_next(struct ms_reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

bool ms_starts(const struct ms_reader *r, const char *text)
{
    size_t size = strlen(text);
    return (size_t)(r->end - r->at) >= size && memcmp(r->at, text, size) == 0;
}

bool ms_next_text(struct ms_reader *r, const char *text)
{
    if (!ms_starts(r, text))
        return false;
    r->at += strlen(text);
    return true;
}

char ms_take(struct ms_reader *r)
{
    if (r->at != r->end)
        return *r->at++;
    ms_fail(r);
    return '\0';
}

bool ms_enter(struct ms_reader *r)
{
    if (r->failed || r->depth == MAX_DEPTH)
        return ms_fail(r);
    r->depth++;
    return true;
}

struct sl_str ms_format(struct ms_reader *r, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *copy = size >= 0 && size < (int)sizeof text ? sl_arena_strndup(r->arena, text, (size_t)size) : NULL;
    if (!copy)
        ms_fail(r);
    return copy ? (struct sl_str){copy, (size_t)size} : SL_STR("");
}

/* In a mangled number a question mark is the sign; 0 to 9 mean 1 to 10; others are hexadecimal with the digits A to P, up to an `@`. */
bool ms_number(struct ms_reader *r, uint64_t *value, bool *negative)
{
    *negative = ms_next(r, '?');
    char c = ms_take(r);
    if (c >= '0' && c <= '9') {
        *value = (uint64_t)(c - '0') + 1;
        return true;
    }
    for (*value = 0; c >= 'A' && c <= 'P'; c = ms_take(r))
        *value = *value << 4 | (uint64_t)(c - 'A');
    return c == '@' || ms_fail(r);
}

/* Reads a mangled number and returns it in decimal, in the arena; empty if it is malformed. */
struct sl_str ms_number_text(struct ms_reader *r)
{
    uint64_t value;
    bool negative;
    if (!ms_number(r, &value, &negative))
        return SL_STR("");
    return ms_format(r, "%s%llu", negative ? "-" : "", (unsigned long long)value);
}

/* ---- components of names ---- */

/* Makes a piece of a name; NULL, failing the reader, when out of memory. */
static struct ms_piece *new_piece(struct ms_reader *r, enum ms_piece_kind kind, struct sl_str text)
{
    struct ms_piece *piece = SL_ARENA_NEW(r->arena, struct ms_piece);
    if (!piece)
        return ms_fail(r);
    piece->kind = kind;
    piece->text = text;
    return piece;
}

/* Records a name for back references, unless it is known or there are ten: a digit refers to one of the first ten different names. */
static void store_name(struct ms_reader *r, struct sl_str text, const struct ms_piece *piece)
{
    struct ms_references *known = &r->references;
    if (known->name_count == MS_BACK_REFERENCES)
        return;
    for (unsigned i = 0; i < known->name_count; i++)
        if (sl_str_equal(known->names[i], text))
            return;
    known->names[known->name_count] = text;
    known->pieces[known->name_count++] = piece;
}

/* Reads an identifier up to an `@`, and with `memorize` records it for back references. It fails without an `@` or if nothing precedes
 * it. */
static struct ms_piece *read_simple(struct ms_reader *r, bool memorize)
{
    const char *end = memchr(r->at, '@', (size_t)(r->end - r->at));
    if (!end || end == r->at)
        return ms_fail(r);
    struct ms_piece *piece = new_piece(r, MS_TEXT, (struct sl_str){r->at, (size_t)(end - r->at)});
    r->at = end + 1;
    if (piece && memorize)
        store_name(r, piece->text, piece);
    return piece;
}

/* Reads a digit, which refers to a recorded name, and returns a copy of that: the caller sets `outer` to the scope at this place. Fails if
 * no name was recorded under the digit. */
static struct ms_piece *read_reference(struct ms_reader *r)
{
    unsigned index = (unsigned)(ms_take(r) - '0');
    if (index >= r->references.name_count)
        return ms_fail(r);
    struct ms_piece *piece = new_piece(r, MS_TEXT, (struct sl_str){NULL, 0});
    if (!piece)
        return NULL;
    *piece = *r->references.pieces[index];
    piece->outer = NULL;
    return piece;
}

static bool at_digit(const struct ms_reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

/* ---- operators ---- */

struct operator_row {
    char code;
    const char *text;
};

/* Returns the text for the code; NULL if the table does not have it. */
static const char *operator_text(const struct operator_row *rows, size_t count, char code)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].code == code)
            return rows[i].text;
    return NULL;
}
#define OPERATOR_TEXT(rows, code) operator_text(rows, sizeof(rows) / sizeof *(rows), code)

/* Reads the code of an operator or special function, one character; those after `_` and `__` are in tables of their own. Returns its text,
 * NULL if it is unknown. */
static const char *read_operator(struct ms_reader *r)
{
    static const struct operator_row plain[] = {
        {'2', "operator new"}, {'3', "operator delete"}, {'4', "operator="},  {'5', "operator>>"}, {'6', "operator<<"},
        {'7', "operator!"},    {'8', "operator=="},      {'9', "operator!="}, {'A', "operator[]"}, {'C', "operator->"},
        {'D', "operator*"},    {'E', "operator++"},      {'F', "operator--"}, {'G', "operator-"},  {'H', "operator+"},
        {'I', "operator&"},    {'J', "operator->*"},     {'K', "operator/"},  {'L', "operator%"},  {'M', "operator<"},
        {'N', "operator<="},   {'O', "operator>"},       {'P', "operator>="}, {'Q', "operator,"},  {'R', "operator()"},
        {'S', "operator~"},    {'T', "operator^"},       {'U', "operator|"},  {'V', "operator&&"}, {'W', "operator||"},
        {'X', "operator*="},   {'Y', "operator+="},      {'Z', "operator-="},
    };
    static const struct operator_row under[] = {
        {'0', "operator/="},
        {'1', "operator%="},
        {'2', "operator>>="},
        {'3', "operator<<="},
        {'4', "operator&="},
        {'5', "operator|="},
        {'6', "operator^="},
        {'7', "`vftable'"},
        {'8', "`vbtable'"},
        {'9', "`vcall'"},
        {'A', "`typeof'"},
        {'B', "`local static guard'"},
        {'D', "`vbase destructor'"},
        {'E', "`vector deleting destructor'"},
        {'F', "`default constructor closure'"},
        {'G', "`scalar deleting destructor'"},
        {'H', "`vector constructor iterator'"},
        {'I', "`vector destructor iterator'"},
        {'J', "`vector vbase constructor iterator'"},
        {'K', "`virtual displacement map'"},
        {'L', "`eh vector constructor iterator'"},
        {'M', "`eh vector destructor iterator'"},
        {'N', "`eh vector vbase constructor iterator'"},
        {'O', "`copy constructor closure'"},
        {'P', "`udt returning'"},
        {'S', "`local vftable'"},
        {'T', "`local vftable constructor closure'"},
        {'U', "operator new[]"},
        {'V', "operator delete[]"},
    };
    static const struct operator_row twice[] = {
        {'A', "`managed vector constructor iterator'"},
        {'B', "`managed vector destructor iterator'"},
        {'C', "`EH vector copy constructor iterator'"},
        {'D', "`EH vector vbase copy constructor iterator'"},
        {'G', "`vector copy constructor iterator'"},
        {'H', "`vector vbase copy constructor iterator'"},
        {'I', "`managed vector vbase copy constructor iterator'"},
        {'J', "`local static thread guard'"},
        {'L', "operator co_await"},
        {'M', "operator<=>"},
    };
    if (ms_next_text(r, "__"))
        return OPERATOR_TEXT(twice, ms_take(r));
    if (ms_next(r, '_'))
        return OPERATOR_TEXT(under, ms_take(r));
    return OPERATOR_TEXT(plain, ms_take(r));
}

/* Reads the variable that the function `text`, mangled as `??__E` or `??__F`, initializes or destroys: a whole symbol up to `@`, or only
 * the variable's name. */
static struct ms_piece *read_initializer(struct ms_reader *r, const char *text)
{
    struct ms_piece *piece = new_piece(r, MS_INITIALIZER, sl_str(text));
    if (!piece)
        return NULL;
    if (ms_starts(r, "?")) {
        piece->symbol = ms_read_symbol(r);
        return ms_next(r, '@') ? piece : ms_fail(r);
    }
    struct ms_symbol *symbol = SL_ARENA_NEW(r->arena, struct ms_symbol);
    struct ms_piece *name = read_simple(r, true);
    if (!symbol || !name)
        return ms_fail(r);
    symbol->name.innermost = name;
    piece->symbol = symbol;
    return piece;
}

/* Reads the digit, 1 to 4, that says which table of run-time type information this is; four offsets follow a 1. The class that the table
 * describes comes next in the name, as its scope. */
static struct ms_piece *read_rtti(struct ms_reader *r)
{
    static const char *const tables[] = {"`RTTI Base Class Array'", "`RTTI Class Hierarchy Descriptor'",
                                         "`RTTI Complete Object Locator'"};
    char c = ms_take(r);
    if (c >= '2' && c <= '4')
        return new_piece(r, MS_TEXT, sl_str(tables[c - '2']));
    if (c != '1')
        return ms_fail(r);
    struct sl_str numbers[4];
    for (size_t i = 0; i < 4; i++)
        numbers[i] = ms_number_text(r);
    return new_piece(
        r, MS_TEXT,
        ms_format(r, "`RTTI Base Class Descriptor at (" SL_STR_FMT ", " SL_STR_FMT ", " SL_STR_FMT ", " SL_STR_FMT ")'",
                  SL_STR_ARG(numbers[0]), SL_STR_ARG(numbers[1]), SL_STR_ARG(numbers[2]), SL_STR_ARG(numbers[3])));
}

/* Reads an operator or special name after its question mark; `__K` begins a literal operator, whose suffix follows. */
static struct ms_piece *read_operator_piece(struct ms_reader *r)
{
    if (ms_next(r, '0'))
        return new_piece(r, MS_CTOR, (struct sl_str){NULL, 0});
    if (ms_next(r, '1'))
        return new_piece(r, MS_DTOR, (struct sl_str){NULL, 0});
    if (ms_next(r, 'B'))
        return new_piece(r, MS_CONVERSION, (struct sl_str){NULL, 0});
    if (ms_next_text(r, "__E"))
        return read_initializer(r, "dynamic initializer");
    if (ms_next_text(r, "__F"))
        return read_initializer(r, "dynamic atexit destructor");
    if (ms_next_text(r, "_R"))
        return read_rtti(r);
    if (ms_next_text(r, "__K")) {
        struct ms_piece *suffix = read_simple(r, false);
        return suffix ? new_piece(r, MS_TEXT, ms_format(r, "operator \"\"" SL_STR_FMT, SL_STR_ARG(suffix->text)))
                      : NULL;
    }
    const char *text = read_operator(r);
    return text ? new_piece(r, MS_TEXT, sl_str(text)) : ms_fail(r);
}

/* ---- templates ---- */

/* Reads a template with its arguments. Digits in it refer only to names and types in it; after it the references from `outside` are valid
 * again. */
static struct ms_piece *read_template(struct ms_reader *r)
{
    if (!ms_enter(r))
        return NULL;
    struct ms_references outside = r->references;
    r->references = (struct ms_references){.name_count = 0};
    struct ms_piece *piece = ms_next(r, '?') ? read_operator_piece(r) : read_simple(r, true);
    if (piece) {
        piece->is_template = true;
        /* `piece` may have been recorded for back references, as the name without arguments; so the template is a copy */
        struct ms_piece *whole = new_piece(r, piece->kind, piece->text);
        if (whole) {
            *whole = *piece;
            piece->is_template = false;
            whole->arguments = ms_read_arguments(r);
        }
        piece = whole;
    }
    r->references = outside;
    ms_leave(r);
    return r->failed ? NULL : piece;
}

/* Records a template for back references. Recorded names are compared by text, so it is printed, with its arguments; one that is too long
 * to print is not recorded. */
static void store_template(struct ms_reader *r, const struct ms_piece *piece)
{
    struct sl_buf text = {0};
    if (r->references.name_count < MS_BACK_REFERENCES && ms_print_piece(piece, &text, MAX_PIECE)) {
        char *copy = sl_arena_strndup(r->arena, (char *)text.data, text.size);
        if (copy)
            store_name(r, (struct sl_str){copy, text.size}, piece);
        else
            ms_fail(r);
    }
    sl_buf_free(&text);
}

/* Reads a template that is a scope or a class, and records it for back references. */
static struct ms_piece *read_stored_template(struct ms_reader *r)
{
    struct ms_piece *piece = read_template(r);
    if (piece && (piece->kind == MS_CTOR || piece->kind == MS_DTOR || piece->kind == MS_CONVERSION))
        return ms_fail(r); /* a constructor, destructor or conversion contains nothing else */
    if (piece)
        store_template(r, piece);
    return piece;
}

/* ---- scopes ---- */

/* Reads an anonymous namespace: the key up to `@` distinguishes it from others and is not printed. */
static struct ms_piece *read_anonymous(struct ms_reader *r)
{
    const char *end = memchr(r->at, '@', (size_t)(r->end - r->at));
    if (!end)
        return ms_fail(r);
    struct sl_str key = {r->at, (size_t)(end - r->at)};
    struct ms_piece *piece = new_piece(r, MS_TEXT, SL_STR("`anonymous namespace'"));
    r->at = end + 1;
    if (piece)
        store_name(r, key, piece);
    return piece;
}

/* True at `?1??f@@YAXXZ@`, the second block in the function f; false for anything else that begins with a question mark. */
static bool at_block(const struct ms_reader *r)
{
    const char *at = r->at + 1;
    if (!ms_starts(r, "?") || at == r->end)
        return false;
    if (*at >= '0' && *at <= '9')
        return at + 1 < r->end && at[1] == '?';
    while (at < r->end && *at >= 'A' && *at <= 'P') /* numbers above 10 are letters up to an `@` */
        at++;
    return at + 1 < r->end && at[0] == '@' && at[1] == '?';
}

/* Reads a block in a function, `?1??f@@YAXXZ@`, as two scopes: its number, printed as `2', and around it the function's whole symbol. */
static struct ms_piece *read_block(struct ms_reader *r)
{
    r->at++; /* the question mark */
    struct sl_str number = ms_number_text(r);
    if (!ms_next(r, '?'))
        return ms_fail(r);
    struct ms_piece *scope = new_piece(r, MS_SCOPE, (struct sl_str){NULL, 0});
    struct ms_piece *block = new_piece(r, MS_TEXT, ms_format(r, "`" SL_STR_FMT "'", SL_STR_ARG(number)));
    if (!scope || !block)
        return NULL;
    scope->symbol = ms_read_symbol(r);
    block->outer = scope;
    return block;
}

/* Reads one scope: a back reference, a template (?$), an anonymous namespace (?A), a block, an interface (?Q), or a name. */
static struct ms_piece *read_scope(struct ms_reader *r)
{
    if (at_digit(r))
        return read_reference(r);
    if (ms_next_text(r, "?$"))
        return read_stored_template(r);
    if (ms_next_text(r, "?A"))
        return read_anonymous(r);
    if (at_block(r))
        return read_block(r);
    if (ms_next_text(r, "?Q")) { /* C++/CLI: the implemented interface */
        struct ms_piece *name = read_simple(r, true);
        return name && ms_next(r, '@') ? name : ms_fail(r);
    }
    return ms_starts(r, "?") ? ms_fail(r) : read_simple(r, true);
}

/* Reads the scopes of `piece`, innermost first, up to an `@`, and links them by `outer`. */
static void read_scopes(struct ms_reader *r, struct ms_piece *piece)
{
    while (!r->failed && !ms_next(r, '@')) {
        struct ms_piece *scope = read_scope(r);
        if (!scope)
            return;
        piece->outer = scope;
        piece = scope->outer ? scope->outer : scope; /* a block is two scopes */
    }
}

/* Reads the name of a class without its scopes: a back reference (a digit), a template, or an identifier. */
struct ms_piece *ms_read_type_piece(struct ms_reader *r)
{
    if (at_digit(r))
        return read_reference(r);
    if (ms_next_text(r, "?$"))
        return read_stored_template(r);
    return ms_starts(r, "?") ? ms_fail(r) : read_simple(r, true);
}

const struct ms_name *ms_read_type_name(struct ms_reader *r)
{
    struct ms_name *name = SL_ARENA_NEW(r->arena, struct ms_name);
    if (!name || !ms_enter(r))
        return ms_fail(r);
    name->innermost = ms_read_type_piece(r);
    if (name->innermost)
        read_scopes(r, name->innermost);
    ms_leave(r);
    return r->failed ? NULL : name;
}

/* ---- symbols ---- */

/* Reads the innermost component of a symbol's name: a back reference, a template, an operator or special name, or an identifier. */
static struct ms_piece *read_symbol_piece(struct ms_reader *r)
{
    if (at_digit(r))
        return read_reference(r);
    if (ms_next_text(r, "?$"))
        return read_template(r);
    if (ms_next(r, '?'))
        return read_operator_piece(r);
    return read_simple(r, true);
}

/* Reads the encoding of a vtable (6) or vbtable (7): qualifiers, and the classes that it is for, up to `@`. The classes are printed after
 * the name as {for `A'}, several as {for `As `B'}; for a vbtable with a second brace, as the reference (msvc-demangler of Rust) prints it.
 * Of the qualifiers only the `const` of a vtable is printed, before the name. */
static void read_table(struct ms_reader *r, struct ms_symbol *symbol)
{
    bool is_member, is_vbtable = ms_next(r, '7');
    if (!is_vbtable && !ms_next(r, '6')) {
        ms_fail(r);
        return;
    }
    uint8_t quals = ms_read_quals(r, &is_member);
    struct sl_buf names = {0};
    bool any = false;
    while (!r->failed && r->at < r->end && !ms_next(r, '@')) {
        struct ms_name *name = (struct ms_name *)ms_read_type_name(r);
        struct ms_symbol target = {.name = name ? *name : (struct ms_name){NULL}};
        sl_buf_cstr(&names, any ? "s `" : "");
        if (name && !ms_print_symbol(&target, false, &names, MAX_PIECE))
            ms_fail(r);
        any = true;
    }
    if (!is_vbtable && quals & MS_CONST)
        symbol->before = SL_STR("const ");
    if (any || is_vbtable) {
        char *text = sl_arena_alloc(r->arena, names.size + 16, 1); /* 16: more than the text around the names has */
        int size = text ? snprintf(text, names.size + 16, "{for `" SL_STR_FMT "'}%s", SL_STR_ARG(sl_buf_view(&names)),
                                   is_vbtable ? "}" : "")
                        : 0;
        symbol->behind = (struct sl_str){text, (size_t)size};
        if (!text)
            ms_fail(r);
    }
    sl_buf_free(&names);
}

/* Reads the encoding of the guard of a static variable: its type, always `4IA` or `5`, and perhaps a number, which is printed in braces. */
static void read_guard(struct ms_reader *r, struct ms_symbol *symbol)
{
    if (!ms_next_text(r, "4IA") && !ms_next(r, '5')) {
        ms_fail(r);
        return;
    }
    if (r->at < r->end) {
        struct sl_str number = ms_number_text(r);
        symbol->behind = ms_format(r, "{" SL_STR_FMT "}", SL_STR_ARG(number));
    }
}

/* Reads the encoding of a thunk that calls a virtual function by its offset in the vtable, which is printed: `vcall'{8, {flat}}. */
static void read_vcall(struct ms_reader *r, struct ms_symbol *symbol)
{
    if (!ms_next_text(r, "$B")) {
        ms_fail(r);
        return;
    }
    struct sl_str offset = ms_number_text(r);
    symbol->thunk = true;
    symbol->behind = ms_format(r, "{" SL_STR_FMT ", {flat}}", SL_STR_ARG(offset));
}

/* Reads the encoding of a variable: its access (one digit), type, and qualifiers. If the variable is a pointer, but not to a function, they
 * belong to what it points to; else to the variable. */
static void read_variable(struct ms_reader *r, struct ms_symbol *symbol)
{
    bool is_member;
    r->at++; /* the access is not printed */
    struct ms_type *type = ms_read_type(r, MS_BARE);
    if (!type)
        return;
    ms_skip_pointer_quals(r);
    uint8_t quals = ms_read_quals(r, &is_member);
    if (type->kind == MS_POINTER && type->inner && type->inner->kind != MS_FUNCTION)
        ((struct ms_type *)type->inner)->quals |= quals; /* a new type, which may be changed */
    else
        type->quals |= quals;
    symbol->type = type;
}

/* Reads the `count` numbers by which a thunk moves `this`; they are printed with the thunk's kind `name` as `adjustor{8}'. */
static void read_adjustor(struct ms_reader *r, struct ms_symbol *symbol, const char *name, unsigned count)
{
    struct sl_str numbers[4] = {{NULL, 0}};
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = 0;
        bool negative = false;
        ms_number(r, &value, &negative);
        numbers[i] = ms_format(r, "%d", (int32_t)(negative ? 0 - value : value));
    }
    symbol->thunk = true;
    symbol->adjustor =
        ms_format(r, "`%s{" SL_STR_FMT "%s" SL_STR_FMT "%s" SL_STR_FMT "%s" SL_STR_FMT "}'", name,
                  SL_STR_ARG(numbers[0]), count > 1 ? ", " : "", SL_STR_ARG(numbers[1]), count > 2 ? ", " : "",
                  SL_STR_ARG(numbers[2]), count > 3 ? ", " : "", SL_STR_ARG(numbers[3]));
}

/* Reads the encoding of a function: `$R` or `$0` to `$5` a thunk for a virtual base (vtordisp), else a letter for access and kind, then the
 * type. A to H are private, I to P protected, Q to X public; in each eight, pairs (near, far) are: member, static, virtual, thunk. Y and Z
 * are functions outside of classes. */
static void read_encoded_function(struct ms_reader *r, struct ms_symbol *symbol)
{
    bool has_this = true;
    symbol->is_function = true;
    if (ms_next_text(r, "$R")) {
        ms_take(r); /* the access is not printed */
        read_adjustor(r, symbol, "vtordispex", 4);
    } else if (ms_next(r, '$')) {
        char c = ms_take(r); /* the access is not printed */
        if (c < '0' || c > '5') {
            ms_fail(r);
            return;
        }
        read_adjustor(r, symbol, "vtordisp", 2);
    } else {
        unsigned code = (unsigned)(ms_take(r) - 'A');
        if (code > 25) {
            ms_fail(r);
            return;
        }
        if (code % 8 >= 6 && code < 24) /* a thunk that adjusts `this` */
            read_adjustor(r, symbol, "adjustor", 1);
        has_this = code < 24 && code % 8 != 2 && code % 8 != 3; /* neither outside of classes nor static */
    }
    symbol->type = ms_read_function(r, has_this);
}

/* Reads the part of a symbol after its name: what kind of symbol it is, and its type. The first character tells the kind. After some
 * special names, recognised by their text, this part has a form of its own instead. */
static void read_encoding(struct ms_reader *r, struct ms_symbol *symbol)
{
    struct sl_str special = symbol->name.innermost->text;
    if (ms_next(r, '9')) /* extern "C": only the name */
        return;
    if (sl_str_equal(special, SL_STR("`vcall'")))
        read_vcall(r, symbol);
    else if (sl_str_equal(special, SL_STR("`local static guard'")) ||
             sl_str_equal(special, SL_STR("`local static thread guard'")))
        read_guard(r, symbol);
    else if (ms_starts(r, "6") || ms_starts(r, "7"))
        read_table(r, symbol);
    else if (ms_next(r, '8')) /* a table of RTTI, which has no type */
        return;
    else if (r->at < r->end && *r->at >= '0' && *r->at <= '4')
        read_variable(r, symbol);
    else
        read_encoded_function(r, symbol);
}

/* Reads a string literal: its symbol contains its length, its hash and its beginning, which are not printed. */
static const struct ms_symbol *read_string_literal(struct ms_reader *r, struct ms_symbol *symbol)
{
    symbol->name.innermost = new_piece(r, MS_TEXT, SL_STR("`string'"));
    r->at = r->end;
    return symbol;
}

/* Reads the rest of the RTTI descriptor of a type after `??_R0`: the type and `@8`. */
static const struct ms_symbol *read_type_descriptor(struct ms_reader *r, struct ms_symbol *symbol)
{
    symbol->table_for = ms_read_type(r, MS_RESULT);
    symbol->name.innermost = new_piece(r, MS_TEXT, SL_STR("`RTTI Type Descriptor'"));
    return ms_next_text(r, "@8") && symbol->name.innermost ? symbol : ms_fail(r);
}

/* If the symbol is a conversion operator, moves its result type to its name, "operator int": the type to which it converts is only mangled
 * as the result type. */
static void move_target(struct ms_symbol *symbol)
{
    struct ms_piece *piece = symbol->name.innermost;
    struct ms_type *type = (struct ms_type *)symbol->type;
    if (piece->kind != MS_CONVERSION || !type || type->kind != MS_FUNCTION)
        return;
    piece->target = type->inner;
    type->inner = NULL;
}

/* Reads a symbol from its question mark: its name from the innermost component to the outermost, then its kind and type. Constructors and
 * destructors need a scope, whose name they have. */
const struct ms_symbol *ms_read_symbol(struct ms_reader *r)
{
    struct ms_symbol *symbol = SL_ARENA_NEW(r->arena, struct ms_symbol);
    if (!symbol || !ms_next(r, '?'))
        return ms_fail(r);
    if (ms_next_text(r, "?_C@"))
        return read_string_literal(r, symbol);
    if (ms_next_text(r, "?_R0"))
        return read_type_descriptor(r, symbol);
    if (!ms_enter(r))
        return NULL;
    symbol->name.innermost = read_symbol_piece(r);
    if (symbol->name.innermost) {
        struct ms_piece *piece = symbol->name.innermost;
        /* an initializer may have no list of scopes: the encoding of its function (Y) follows at once */
        if (piece->kind != MS_INITIALIZER || !ms_starts(r, "Y"))
            read_scopes(r, piece);
        bool needs_scope = piece->kind == MS_CTOR || piece->kind == MS_DTOR;
        if (!r->failed && (piece->outer || !needs_scope))
            read_encoding(r, symbol);
        else
            ms_fail(r);
    }
    ms_leave(r);
    if (r->failed)
        return NULL;
    move_target(symbol);
    return symbol;
}

bool microsoft_demangle(struct sl_str name, bool full, struct sl_buf *out, size_t limit)
{
    struct sl_arena arena;
    sl_arena_init(&arena, MAX_MEMORY);
    struct ms_reader r = {.at = name.data, .end = name.data + name.size, .arena = &arena};
    const struct ms_symbol *symbol = ms_read_symbol(&r);
    bool good = symbol && !r.failed && ms_print_symbol(symbol, full, out, limit);
    sl_arena_free(&arena);
    return good;
}
