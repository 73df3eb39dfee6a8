/* Prints the tree of a Microsoft name. */
#include "demangle/microsoft_tree.h"

enum { MAX_NODES = 10000 }; /* back references share nodes, so that a short name may stand for a very long text */

struct microsoft_printer {
    struct sl_buf *out;
    size_t start, limit;
    unsigned nodes;
    bool full, failed;
};

static void print_type(struct microsoft_printer *p, const struct ms_type *type);
static void print_symbol(struct microsoft_printer *p, const struct ms_symbol *symbol);

/* Counts a node that is printed; false, and printing fails, when a limit is exceeded. */
static bool count_node_within_limit(struct microsoft_printer *p)
{
    p->failed = p->failed || ++p->nodes > MAX_NODES || p->out->size - p->start > p->limit || p->out->failed;
    return !p->failed;
}

static void text(struct microsoft_printer *p, const char *s)
{
    sl_buf_cstr(p->out, s);
}

/* Appends a space where the reference, msvc-demangler of Rust, does: after a letter, and after what may close a name or type (`]` an array,
 * `'` a scope), but not after a digit (`Table4const&`). The text must be the same, because crashes are grouped by it. */
static void space(struct microsoft_printer *p)
{
    uint8_t last = p->out->size ? p->out->data[p->out->size - 1] : ' ';
    bool wanted = (last >= 'a' && last <= 'z') || (last >= 'A' && last <= 'Z') || strchr(">*&)]'", last);
    text(p, wanted ? " " : "");
}

/* ---- types ---- */

/* Prints `const` and `volatile`, each after a space where one is needed. */
static void print_quals(struct microsoft_printer *p, uint8_t quals)
{
    static const char *const words[] = {"const", "volatile"};
    for (unsigned i = 0; i < 2; i++)
        if (quals & 1u << i) {
            space(p);
            text(p, words[i]);
        }
}

/* Prints the types or template arguments of a list with commas. */
static void print_list(struct microsoft_printer *p, const struct ms_list *list)
{
    for (const struct ms_list *at = list; at && !p->failed; at = at->next) {
        text(p, at == list ? "" : ", ");
        print_type(p, at->item);
    }
}

/* Prints the parameters of a function and what follows them: qualifiers, `&` or `&&`, noexcept. */
static void print_parameters(struct microsoft_printer *p, const struct ms_type *function)
{
    text(p, "(");
    print_list(p, function->list);
    if (function->variadic)
        text(p, function->list ? ", ..." : "...");
    else if (!function->list)
        text(p, "void");
    text(p, ")");
    print_quals(p, function->quals);
    text(p, function->sigil ? " " : "");
    text(p, function->sigil ? function->sigil : "");
    text(p, function->no_except ? " noexcept" : "");
}

static void print_name(struct microsoft_printer *p, const struct ms_name *name);

/* True for a pointer to a function or array, which is printed in brackets: "int (*)[3]". */
static bool needs_brackets(const struct ms_type *pointer)
{
    return pointer->inner->kind == MS_FUNCTION || pointer->inner->kind == MS_ARRAY;
}

/* Prints the part of a type before the declared name: "int (*" of "int (*)[3]". */
static void print_before(struct microsoft_printer *p, const struct ms_type *type)
{
    if (!count_node_within_limit(p))
        return;
    switch (type->kind) {
    case MS_PRIMITIVE: sl_buf_str(p->out, type->text); break;
    case MS_NAMED: print_name(p, type->name); break;
    case MS_POINTER:
        print_before(p, type->inner);
        if (needs_brackets(type) || type->name)
            space(p);
        text(p, needs_brackets(type) ? "(" : "");
        if (type->name) { /* a pointer to member: "int C::*" */
            print_name(p, type->name);
            text(p, "::");
        }
        text(p, type->sigil);
        break; /* its qualifiers follow: "int* const" */
    case MS_ARRAY: print_before(p, type->inner); break;
    case MS_FUNCTION:
        if (type->inner)
            print_before(p, type->inner);
        return; /* its qualifiers belong to `this` */
    case MS_NUMBER: sl_buf_str(p->out, type->text); break;
    case MS_SYMBOL: /* a template argument: "&f", or with offsets in `text` "{f, 8}" */
        text(p, type->sigil);
        if (type->symbol)
            print_symbol(p, type->symbol);
        sl_buf_str(p->out, type->text);
        break;
    case MS_NOTHING: break;
    }
    print_quals(p, type->quals);
}

/* Prints the part of a type after the declared name: ")[3]" of "int (*)[3]". */
static void print_behind(struct microsoft_printer *p, const struct ms_type *type)
{
    if (!count_node_within_limit(p))
        return;
    if (type->kind == MS_POINTER) {
        text(p, needs_brackets(type) ? ")" : "");
        print_behind(p, type->inner);
    } else if (type->kind == MS_ARRAY) {
        for (const struct ms_list *at = type->list; at; at = at->next) {
            text(p, "[");
            print_type(p, at->item);
            text(p, "]");
        }
        print_behind(p, type->inner);
    } else if (type->kind == MS_FUNCTION) {
        print_parameters(p, type);
        if (type->inner)
            print_behind(p, type->inner);
    }
}

/* Prints a type that declares no name. A function type with a result has a space where its name would be: "int (char)". */
static void print_type(struct microsoft_printer *p, const struct ms_type *type)
{
    print_before(p, type);
    text(p, type->kind == MS_FUNCTION && type->inner ? " " : "");
    print_behind(p, type);
}

/* ---- names ---- */

/* Prints template arguments; a space separates two closing brackets. */
static void print_arguments(struct microsoft_printer *p, const struct ms_piece *piece)
{
    if (!piece->is_template)
        return;
    text(p, "<");
    print_list(p, piece->arguments);
    text(p, p->out->size && p->out->data[p->out->size - 1] == '>' ? " >" : ">");
}

/* Prints a component of a name with its template arguments. Constructors and destructors have the name of the scope around them. */
static void print_piece(struct microsoft_printer *p, const struct ms_piece *piece)
{
    if (!count_node_within_limit(p))
        return;
    switch (piece->kind) {
    case MS_TEXT: sl_buf_str(p->out, piece->text); break;
    case MS_DTOR:
    case MS_CTOR:
        text(p, piece->kind == MS_DTOR ? "~" : "");
        if (piece->outer)
            print_piece(p, piece->outer);
        break;
    case MS_CONVERSION:
        text(p, "operator ");
        if (piece->target)
            print_type(p, piece->target);
        break;
    case MS_SCOPE: /* a function in which the name is local: `f(int)' */
        text(p, "`");
        print_symbol(p, piece->symbol);
        text(p, "'");
        break;
    case MS_INITIALIZER: /* `dynamic initializer for 'x'' */
        text(p, "`");
        sl_buf_str(p->out, piece->text);
        text(p, " for '");
        print_symbol(p, piece->symbol);
        text(p, "''");
        break;
    }
    print_arguments(p, piece);
}

/* Prints the scopes from the outermost to `piece`; they are linked in the other direction. Fails the printer if there are more than
 * MAX_PIECES. */
static void print_scopes(struct microsoft_printer *p, const struct ms_piece *piece)
{
    enum { MAX_PIECES = 512 };
    const struct ms_piece *pieces[MAX_PIECES];
    size_t count = 0;
    for (; piece && count < MAX_PIECES; piece = piece->outer)
        pieces[count++] = piece;
    p->failed |= piece != NULL;
    while (count--) {
        print_piece(p, pieces[count]);
        text(p, count ? "::" : "");
    }
}

static void print_name(struct microsoft_printer *p, const struct ms_name *name)
{
    print_scopes(p, name->innermost);
}

/* Prints a symbol; the type of a variable and the result of a function only with p->full. Special symbols have texts from the reader: a
 * thunk `adjustor`, a table `before` and `behind`; table_for is the type that a RTTI descriptor describes. */
static void print_symbol(struct microsoft_printer *p, const struct ms_symbol *symbol)
{
    if (!count_node_within_limit(p))
        return;
    /* result: the result type of a function; of a variable its type */
    const struct ms_type *type = symbol->type, *result = symbol->is_function && type ? type->inner : type;
    text(p, symbol->thunk ? "[thunk]: " : "");
    sl_buf_str(p->out, symbol->before);
    if (symbol->table_for) {
        print_type(p, symbol->table_for);
        text(p, " ");
    }
    if (p->full && result) {
        print_before(p, result);
        text(p, " ");
    }
    print_name(p, &symbol->name);
    sl_buf_str(p->out, symbol->adjustor);
    sl_buf_str(p->out, symbol->behind);
    if (symbol->is_function && type)
        print_parameters(p, type);
    if (p->full && result)
        print_behind(p, result);
}

/* True if printing has not failed and the output is within its limit. */
static bool good(const struct microsoft_printer *p)
{
    return !p->failed && !p->out->failed && p->out->size - p->start <= p->limit;
}

bool ms_print_symbol(const struct ms_symbol *symbol, bool full, struct sl_buf *out, size_t limit)
{
    struct microsoft_printer p = {.out = out, .start = out->size, .limit = limit, .full = full};
    print_symbol(&p, symbol);
    return good(&p);
}

bool ms_print_piece(const struct ms_piece *piece, struct sl_buf *out, size_t limit)
{
    struct microsoft_printer p = {.out = out, .start = out->size, .limit = limit};
    print_piece(&p, piece);
    return good(&p);
}
