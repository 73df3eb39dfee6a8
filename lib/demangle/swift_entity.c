/* Declarations of the current Swift mangling, and the code that belongs to them. */
#include "demangle/swift_tree.h"

/* ---- labels ---- */

/* Returns the labels that Swift 4.0 mangled in the tuple of parameters. */
static struct swift_node *labels_of_tuple(struct swift_reader *r, const struct swift_node *tuple)
{
    struct swift_node *labels = node_new(r, N_LABELS);
    bool any = false; /* a label; if no parameter has one, the list stays empty */
    for (uint32_t i = 0; tuple->kind == N_TUPLE && i < tuple->count; i++) {
        struct sl_str label = tuple->children[i]->text;
        any |= label.size > 0;
        labels = node_add(r, labels, node_text(r, label.size ? N_IDENTIFIER : N_FIRST_ELEMENT, label));
    }
    return any ? labels : node_new(r, N_LABELS);
}

/* Pops the labels of a declaration of `type`; NULL if it has none. */
static struct swift_node *pop_labels(struct swift_reader *r, const struct swift_node *type)
{
    const struct swift_node *tuple = type_parameter_tuple(type);
    if (!r->labels_in_types && reader_pop_kind(r, N_EMPTY_LIST))
        return node_new(r, N_LABELS);
    if (!tuple || (tuple->kind == N_TUPLE && !tuple->count))
        return NULL;
    if (r->labels_in_types)
        return labels_of_tuple(r, tuple);
    struct swift_node *labels = node_new(r, N_LABELS);
    bool any = false;
    for (uint32_t i = 0; labels && i < (tuple->kind == N_TUPLE ? tuple->count : 1); i++) {
        struct swift_node *label = reader_pop_kind(r, N_IDENTIFIER);
        any |= label != NULL;
        labels = node_add(r, labels, label ? label : reader_pop_kind(r, N_FIRST_ELEMENT));
    }
    return any ? node_reverse(labels, 0) : labels ? node_new(r, N_LABELS) : NULL;
}

/* Makes a declaration. If the labels were omitted completely, pop_labels() pops the declaration's name as a label; then the name is
 * missing, the stack is restored, and the declaration has no labels. */
static struct swift_node *declaration(struct swift_reader *r, enum node_kind kind, struct swift_node *type)
{
    uint32_t before = r->stack->count;
    struct swift_node *labels = pop_labels(r, type), *name = reader_pop_name(r);
    if (!name) {
        r->stack->count = before;
        labels = NULL;
        name = reader_pop_name(r);
    }
    return name && type ? node_entity(r, kind, reader_pop_context(r), name, labels, type) : NULL;
}

/* Makes `type` generic if there is a signature. */
static struct swift_node *with_signature(struct swift_reader *r, struct swift_node *signature, struct swift_node *type)
{
    return signature && type ? node_pair(r, N_GENERIC_TYPE, signature, type) : type;
}

/* ---- declarations ---- */

struct swift_node *entity_nominal(struct swift_reader *r, enum node_kind kind)
{
    struct swift_node *name = reader_pop_name(r);
    return name ? reader_substitutable(r, node_entity(r, kind, reader_pop_context(r), name, NULL, NULL)) : NULL;
}

/* Reads an extension: the nominal type, the module that extends it (not printed), and the signature of a constrained extension. */
struct swift_node *entity_extension(struct swift_reader *r)
{
    struct swift_node *signature = reader_pop_kind(r, N_SIGNATURE);
    if (!reader_pop_module(r))
        return NULL;
    return node_put(r, node_with_child(r, N_EXTENSION, reader_pop_nominal(r)), signature);
}

struct swift_node *entity_function(struct swift_reader *r)
{
    struct swift_node *signature = reader_pop_kind(r, N_SIGNATURE);
    return declaration(r, N_FUNCTION, with_signature(r, signature, type_function(r, "")));
}

static const struct {
    const char *code, *text;
} accessors[] = {
    {"m", "materializeForSet"},
    {"s", "setter"},
    {"g", "getter"},
    {"G", "getter"}, /* for global variables */
    {"w", "willset"},
    {"W", "didset"},
    {"r", "read"},
    {"M", "modify"},
    {"i", "init"},
    {"x", "yielding_mutate"},
    {"y", "yielding_borrow"},
    {"b", "borrow"},
    {"z", "mutate"},
    {"aO", "owningMutableAddressor"},
    {"ao", "nativeOwningMutableAddressor"},
    {"ap", "nativePinningMutableAddressor"},
    {"au", "unsafeMutableAddressor"},
    {"lO", "owningAddressor"},
    {"lo", "nativeOwningAddressor"},
    {"lp", "nativePinningAddressor"},
    {"lu", "unsafeAddressor"},
};

/* Reads an accessor; `p` is the storage itself. */
static struct swift_node *accessor(struct swift_reader *r, struct swift_node *storage)
{
    if (reader_eat(r, 'p'))
        return storage;
    for (size_t i = 0; i < sizeof accessors / sizeof *accessors; i++)
        if (reader_eat_text(r, accessors[i].code))
            return node_add(r, node_write(r, N_ACCESSOR, accessors[i].text), storage);
    return NULL;
}

struct swift_node *entity_variable(struct swift_reader *r)
{
    return accessor(r, declaration(r, N_VARIABLE, reader_pop_type(r)));
}

struct swift_node *entity_subscript(struct swift_reader *r)
{
    reader_pop_kind(r, N_PRIVATE_NAME); /* of a file-private subscript, which has no name to print */
    struct swift_node *type = reader_pop_type(r), *labels = pop_labels(r, type);
    return type ? accessor(r, node_entity(r, N_SUBSCRIPT, reader_pop_context(r), NULL, labels, type)) : NULL;
}

/* Reads a type that is a symbol of its own, as debuggers mangle it; labels of a function may precede it. */
struct swift_node *entity_type_mangling(struct swift_reader *r)
{
    struct swift_node *type = reader_pop_type(r), *labels = pop_labels(r, type);
    return node_add(r, node_put(r, node_new(r, N_TYPE_MANGLING), labels), type);
}

/* ---- code of declarations ---- */

/* Reads an initializer; `allocating`: the one that also allocates the object (__allocating_init). */
static struct swift_node *initializer(struct swift_reader *r, bool allocating)
{
    reader_pop_kind(r, N_PRIVATE_NAME);
    struct swift_node *type = reader_pop_type(r), *labels = pop_labels(r, type);
    struct swift_node *init = type ? node_entity(r, N_INIT, reader_pop_context(r), NULL, labels, type) : NULL;
    if (init)
        init->index = allocating;
    return init;
}

/* Reads a closure: its number, type and context; `text` tells whether it is implicit. */
static struct swift_node *closure(struct swift_reader *r, const char *text)
{
    uint32_t number;
    if (!reader_index(r, &number))
        return NULL;
    struct swift_node *type = reader_pop_type(r);
    struct swift_node *closure = type ? node_entity(r, N_CLOSURE, reader_pop_context(r), NULL, NULL, type) : NULL;
    if (closure) {
        closure->text = sl_str(text);
        closure->index = number;
    }
    return closure;
}

/* Makes a part of the context on the stack: `text` and, unless NO_INDEX, the number are printed before " of " and the context. */
static struct swift_node *swift_entity_part(struct swift_reader *r, enum node_kind kind, const char *text,
                                            uint32_t number)
{
    struct swift_node *node = node_entity(r, kind, reader_pop_context(r), NULL, NULL, NULL);
    if (node) {
        node->text = sl_str(text);
        node->index = number;
    }
    return node;
}

/* ---- macros ---- */

static const struct {
    char code;
    bool attached; /* to a declaration, whose name is on the stack; the name of a freestanding macro is its own */
    const char *text;
} expansions[] = {
    {'f', false, "freestanding macro expansion #"},
    {'u', false, "unique name #"},
    {'a', true, "accessor macro @"},
    {'r', true, "member attribute macro @"},
    {'m', true, "member macro @"},
    {'p', true, "peer macro @"},
    {'c', true, "conformance macro @"},
    {'e', true, "extension macro @"},
    {'q', true, "preamble macro @"},
    {'b', true, "body macro @"},
};

/* Reads a macro used outside of any declaration: `X` line column, after the module and the file. */
static struct swift_node *macro_site(struct swift_reader *r)
{
    uint32_t line, column;
    if (!reader_index(r, &line) || !reader_index(r, &column))
        return NULL;
    struct swift_node *file = reader_pop_kind(r, N_IDENTIFIER), *module = reader_pop_module(r);
    if (!file || !module)
        return NULL;
    struct swift_node *site =
        node_format(r, N_ANONYMOUS, "file " SL_STR_FMT " line %u column %u", SL_STR_ARG(file->text), line, column);
    return node_put(r, site, module);
}

/* Reads the expansion of a macro: freestanding, or attached to a declaration, whose name then is on the stack. */
static struct swift_node *macro_expansion(struct swift_reader *r)
{
    size_t kind = 0;
    if (reader_eat(r, 'X'))
        return macro_site(r);
    while (kind < sizeof expansions / sizeof *expansions && !reader_eat(r, expansions[kind].code))
        kind++;
    if (kind == sizeof expansions / sizeof *expansions)
        return NULL;
    struct swift_node *macro = reader_pop_kind(r, N_IDENTIFIER), *name = macro;
    if (expansions[kind].attached)
        name = reader_pop_name(r);
    else
        reader_pop_kind(r, N_PRIVATE_NAME);
    struct swift_node *context = reader_pop_context(r);
    uint32_t number;
    if (!macro || !name || !context || !reader_index(r, &number))
        return NULL;
    struct swift_node *expansion = expansions[kind].attached
                                       ? node_format(r, N_EXPANSION, "%s" SL_STR_FMT " expansion #",
                                                     expansions[kind].text, SL_STR_ARG(macro->text))
                                       : node_write(r, N_EXPANSION, expansions[kind].text);
    if (expansion)
        expansion->index = number;
    return node_add(r, node_add(r, expansion, context), name);
}

/* Reads the operator of a function or another part of a declaration, after 'f'. */
struct swift_node *entity_part(struct swift_reader *r)
{
    uint32_t number;
    struct swift_node *signature;
    switch (reader_next(r)) {
    case 'A': return reader_index(r, &number) ? swift_entity_part(r, N_PART_OF, "default argument ", number) : NULL;
    case 'C': return initializer(r, true);
    case 'c': return initializer(r, false);
    case 'D': return swift_entity_part(r, N_DEINIT, "__deallocating_deinit", 1);
    case 'Z': return swift_entity_part(r, N_DEINIT, "__isolated_deallocating_deinit", 1);
    case 'd': return swift_entity_part(r, N_DEINIT, "deinit", 0);
    case 'E': return swift_entity_part(r, N_DEINIT, "__ivar_destroyer", 0);
    case 'e': return swift_entity_part(r, N_DEINIT, "__ivar_initializer", 0);
    case 'F': return swift_entity_part(r, N_PART_OF, "property wrapped field init accessor", NO_INDEX);
    case 'i': return swift_entity_part(r, N_PART_OF, "variable initialization expression", NO_INDEX);
    case 'M': return macro_expansion(r);
    case 'm':
        signature = reader_pop_kind(r, N_SIGNATURE);
        return declaration(r, N_MACRO, with_signature(r, signature, reader_pop_type(r)));
    case 'P': return swift_entity_part(r, N_PART_OF, "property wrapper backing initializer", NO_INDEX);
    case 'p': return declaration(r, N_VARIABLE, reader_pop_type(r)); /* generic parameter */
    case 'U': return closure(r, "closure #");
    case 'u': return closure(r, "implicit closure #");
    case 'W': return swift_entity_part(r, N_PART_OF, "property wrapper init from projected value", NO_INDEX);
    default: return NULL;
    }
}
