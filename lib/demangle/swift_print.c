/* Prints symbols and declarations in the style of crash reports: no modules, no private discriminators. */
#include "demangle/swift_print.h"

#include <stdio.h>

/* Limits of nesting and of printed nodes. Nodes may be shared, so a short name can stand for a very long text. */
enum { MAX_DEPTH = 512, MAX_STEPS = 1 << 16 };

/* ---- text ---- */

/* Appends the text. If it exceeds the limit of the output, nothing is appended and `p->failed` is set, which ends all printing. */
void print_text(struct swift_printer *p, struct sl_str text)
{
    if (p->failed)
        return;
    if (text.size > p->end - p->out->size)
        p->failed = true;
    else
        sl_buf_str(p->out, text);
}

void print_write(struct swift_printer *p, const char *text)
{
    print_text(p, sl_str(text));
}

void print_number(struct swift_printer *p, uint32_t number)
{
    char text[16];
    int size = snprintf(text, sizeof text, "%u", number);
    print_text(p, (struct sl_str){text, (size_t)size});
}

bool print_enter(struct swift_printer *p)
{
    p->depth++;
    if (p->depth > MAX_DEPTH || ++p->steps > MAX_STEPS)
        p->failed = true;
    return !p->failed;
}

void print_leave(struct swift_printer *p)
{
    p->depth--;
}

void print_list(struct swift_printer *p, const struct swift_node *list, uint32_t from, const char *separator)
{
    for (uint32_t i = from; list && i < list->count && !p->failed; i++) {
        if (i > from)
            print_write(p, separator);
        print_node(p, list->children[i]);
    }
}

/* ---- declarations ---- */

/* The type of a declaration: none; a value's, which is not printed; a function's, whose parameters are printed. With a type, the
 * declaration cannot stand in front of a dot. */
enum type_form { NO_TYPE, AS_VALUE, AS_FUNCTION };

/* How a declaration is printed: its name (if `named`) or `word` ("subscript"), then `extra` ("closure #") and `number` unless it is
 * NO_INDEX. `arguments` replace the generic parameters of a function; NULL = print the parameters. */
struct form {
    enum type_form type;
    bool named;
    const char *word;
    struct sl_str extra;
    uint32_t number;
    const struct swift_node *arguments;
};

/* True for a text of several words: "closure #1". */
static bool has_space(struct sl_str text)
{
    return text.size && memchr(text.data, ' ', text.size);
}

/* Passes over anonymous contexts without a text, which are not printed. Returns `context` or the innermost one around it that is printed;
 * NULL if only a module is left, or nothing. */
static const struct swift_node *visible(const struct swift_node *context)
{
    while (context && context->kind == N_ANONYMOUS && !context->text.size)
        context = node_child(context, 0);
    return context && context->kind != N_MODULE ? context : NULL;
}

static void extra(struct swift_printer *p, const struct form *form)
{
    print_text(p, form->extra);
    if (form->number != NO_INDEX)
        print_number(p, form->number);
}

/* Prints the declaration's name or `form->word`, and `form->extra` after it with a dot ("f.getter") or, if `extra_first`, before it with
 * "of" ("default argument 0 of f"). */
static void name(struct swift_printer *p, const struct swift_node *entity, const struct form *form, bool extra_first)
{
    bool named = form->named || form->word;
    if (named && extra_first && form->extra.size) {
        extra(p, form);
        print_write(p, " of ");
    }
    size_t before = p->out->size;
    if (form->word)
        print_write(p, form->word);
    else if (form->named)
        print_node(p, node_child(entity, 1));
    if (!form->extra.size || (named && extra_first)) /* no `extra`, or it is printed already */
        return;
    if (p->out->size != before) /* no dot after an empty name */
        print_write(p, ".");
    extra(p, form);
}

/* Prints `context.name(types)`, or `name(types) in context` if the name has several words ("f #1", "closure #1"). With `prefix` a dot and
 * an inner declaration follow: what cannot stand in front of the dot is not printed but returned, for the caller to print after " in " or
 * " of "; else NULL. */
static const struct swift_node *declaration(struct swift_printer *p, const struct swift_node *entity, bool prefix,
                                            struct form form)
{
    /* the children of an entity: 0 context, 1 name, 2 labels, 3 type */
    const struct swift_node *word = form.named ? node_child(entity, 1) : NULL, *type = node_child(entity, 3);
    /* NULL for a module, which is not printed */
    const struct swift_node *context = visible(node_child(entity, 0)), *rest = NULL;
    bool many_words = has_space(form.extra), phrase = many_words || (word && word->kind == N_LOCAL_NAME);
    if (prefix && (form.type != NO_TYPE || phrase)) /* "f(Int)" and "closure #1" cannot stand in front of a dot */
        return entity;
    if (phrase) {
        rest = context;
    } else if (context) {
        size_t before = p->out->size;
        rest = print_context(p, context, true); /* true: a dot follows */
        if (p->out->size != before)
            print_write(p, ".");
    }
    name(p, entity, &form, phrase);
    if (form.type == AS_FUNCTION && print_is_function(type)) { /* "f(Int)", but "closure #1 (Int)" */
        print_write(p, phrase ? " " : "");
        print_function_type(p, type, node_child(entity, 2), form.arguments);
    }
    if (prefix || !rest)
        return rest;
    print_write(p, entity->kind == N_PART_OF ? " of " : " in ");
    print_node(p, rest);
    return NULL;
}

static struct form form(enum type_form type, struct sl_str text)
{
    return (struct form){.type = type, .extra = text, .number = NO_INDEX};
}

/* Returns how a declaration of this kind is printed. Only classes have allocating initialisers and deallocating deinitialisers of their
 * own; those of other types are printed as `init` and `deinit`. */
static struct form get_form(const struct swift_node *node)
{
    struct form f = form(NO_TYPE, node->text); /* printed without its type; the text goes to `extra` */
    const struct swift_node *context = node_child(node, 0);
    bool of_class = context && context->kind == N_CLASS;
    switch (node->kind) {
    case N_FUNCTION:
    case N_MACRO: f.type = AS_FUNCTION; break;
    case N_VARIABLE: f.type = AS_VALUE; break;
    case N_SUBSCRIPT:
        f.type = AS_FUNCTION;
        f.word = "subscript";
        break;
    case N_INIT: f = form(AS_FUNCTION, node->index && of_class ? SL_STR("__allocating_init") : SL_STR("init")); break;
    case N_DEINIT: f.extra = node->index && !of_class ? SL_STR("deinit") : node->text; break;
    case N_CLOSURE:
        f.type = AS_FUNCTION;
        f.number = node->index + 1;
        break;
    case N_PART_OF: f.number = node->index; break; /* "default argument 0", the only kind that is counted from 0 */
    case N_EXPANSION: f.number = node->index + 1; break;
    default: break;
    }
    f.named = node_child(node, 1) && !f.word;
    return f;
}

/* Prints an accessor as its storage with the accessor's word: "x.getter". Returns the node that the caller must print after " in " because
 * it cannot stand in front of a dot (only with `prefix`), or NULL. */
static const struct swift_node *accessor(struct swift_printer *p, const struct swift_node *node, bool prefix)
{
    const struct swift_node *storage = node_child(node, 0);
    struct form f = get_form(storage);
    f.type = AS_VALUE;
    f.extra = node->text;
    const struct swift_node *rest = declaration(p, storage, prefix, f);
    /* nothing was printed: the caller must print the accessor later, not only its storage */
    return rest == storage ? node : rest;
}

/* Prints a generic function with its type arguments. Returns the node that the caller must print after " in " because it cannot stand in
 * front of a dot (only with `prefix`), or NULL. */
static const struct swift_node *bound_function(struct swift_printer *p, const struct swift_node *node, bool prefix)
{
    const struct swift_node *function = node_child(node, 0);
    struct form f = get_form(function);
    f.arguments = node_child(node, 1);
    const struct swift_node *rest = declaration(p, function, prefix, f);
    /* nothing was printed: the caller must print the function later with its arguments */
    return rest == function ? node : rest;
}

/* Prints a context; modules are not printed. Returns the node that the caller must print after " in " because it cannot stand in front of a
 * dot (only with `prefix`), or NULL. */
static const struct swift_node *context_node(struct swift_printer *p, const struct swift_node *node, bool prefix)
{
    switch (node->kind) {
    case N_MODULE: return NULL;
    case N_EXTENSION: /* the extended type and, if there is one, the generic signature: "Array<A>" */
        print_node(p, node_child(node, 0));
        print_node(p, node_child(node, 1));
        return NULL;
    case N_ANONYMOUS: print_text(p, node->text); return NULL;
    case N_STATIC:
        print_write(p, "static ");
        print_node(p, node_child(node, 0));
        return NULL;
    case N_ACCESSOR: return accessor(p, node, prefix);
    case N_OPAQUE_OF:
        print_write(p, "<<opaque return type of ");
        print_node(p, node_child(node, 0));
        print_write(p, ">>");
        return NULL;
    case N_BOUND: print_type(p, node); return NULL;
    case N_BOUND_FUNCTION: return bound_function(p, node, prefix);
    default: return declaration(p, node, prefix, get_form(node));
    }
}

const struct swift_node *print_context(struct swift_printer *p, const struct swift_node *node, bool prefix)
{
    const struct swift_node *rest = print_enter(p) ? context_node(p, node, prefix) : NULL;
    print_leave(p);
    return rest;
}

/* ---- symbols ---- */

/* Prints the name of a local declaration ("f #1", counted from 1), of one derived from another ("related decl 'e' for f"), or of a private
 * one (the name alone). */
static void special_name(struct swift_printer *p, const struct swift_node *node)
{
    const struct swift_node *named = node_child(node, 0);
    if (node->kind == N_RELATED_NAME) {
        print_write(p, "related decl '");
        print_text(p, node->text);
        print_write(p, "' for ");
    }
    print_node(p, named);
    if (node->kind == N_LOCAL_NAME) {
        print_write(p, " #");
        print_number(p, node->index + 1);
    }
}

/* Prints a node that is neither a declaration nor a type. "specialized" is printed once, however often the symbol was specialized. */
static void other_node(struct swift_printer *p, const struct swift_node *node)
{
    switch (node->kind) {
    case N_IDENTIFIER:
    case N_OPERATOR:
    case N_LITERAL: print_text(p, node->text); break;
    case N_LOCAL_NAME:
    case N_PRIVATE_NAME:
    case N_RELATED_NAME: special_name(p, node); break;
    case N_LIST: print_list(p, node, 0, ", "); break;
    case N_ASSOCIATED_NAME: /* "Protocol.Name", or "Name" if its protocol is not given */
        print_node(p, node_child(node, 1));
        print_write(p, node_child(node, 1) ? "." : "");
        print_node(p, node_child(node, 0));
        break;
    case N_SIGNATURE: print_signature(p, node); break;
    case N_REQUIREMENT:
        print_node(p, node_child(node, 0));
        print_text(p, node->text);
        print_node(p, node_child(node, 1));
        break;
    case N_PHRASE: print_list(p, node, 0, ""); break;
    case N_ATTRIBUTE: print_text(p, node->text); break;
    case N_SPECIALIZED:
        print_write(p, p->specialized ? "" : "specialized ");
        p->specialized = true;
        break;
    case N_TYPE_MANGLING: /* a type that is the whole symbol; a function type may have argument labels (child 0) */
        if (node_child(node, 0))
            print_function_type(p, node_child(node, 1), node_child(node, 0), NULL);
        else
            print_node(p, node_child(node, 1));
        break;
    default: p->failed = true;
    }
}

/* Prints any node; NULL: nothing. Sets p->failed when nodes are nested too deeply (print_enter). */
void print_node(struct swift_printer *p, const struct swift_node *node)
{
    if (!node)
        return;
    if (!print_enter(p)) /* counts the level even then, so print_leave() is called in each case */
        p->failed = true;
    else if (node_is_context(node))
        context_node(p, node, false);
    else if (node_is_type(node))
        print_type(p, node);
    else
        other_node(p, node);
    print_leave(p);
}

bool swift_print(const struct swift_node *symbol, bool returns, struct sl_buf *out, size_t limit)
{
    struct swift_printer p = {.out = out, .end = out->size + limit, .returns = returns};
    size_t start = out->size;
    print_list(&p, symbol, 0, "");
    return !p.failed && !out->failed && out->size > start;
}
