/* Declarations in Swift's mangling since Swift 4, which is postfix: the operands of an operator are already on the reader's stack.
 * Functions return NULL if an operand is missing or malformed, or memory is short. */
#include "demangle/swift_tree.h"

/* ---- labels ---- */

/* Returns the argument labels, an N_LABELS, that Swift 4.0 mangled in the parameter types (`tuple`): an entry for each parameter,
 * N_FIRST_ELEMENT for one without a label. It is empty if no parameter has one. */
static struct swift_node *labels_of_tuple(struct swift_reader *r, const struct swift_node *tuple)
{
    struct swift_node *labels = node_new(r, N_LABELS);
    bool any = false; /* a parameter has a label */
    for (uint32_t i = 0; tuple->kind == N_TUPLE && i < tuple->count; i++) {
        struct sl_str label = tuple->children[i]->text;
        any |= label.size > 0;
        labels = node_add(r, labels, node_text(r, label.size ? N_IDENTIFIER : N_FIRST_ELEMENT, label));
    }
    return any ? labels : node_new(r, N_LABELS);
}

/* Pops the argument labels of a declaration of `type`; NULL if it has none. An empty list says that no parameter has a label; else there is
 * one entry for each parameter, N_FIRST_ELEMENT for one without a label. Swift 4.0 has the labels in `type` instead. */
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
    /* they were popped from the last to the first */
    return any ? node_reverse(labels, 0) : labels ? node_new(r, N_LABELS) : NULL;
}

/* Makes a declaration of `type` with the labels, name and context on the stack. If it was mangled without labels, pop_labels() takes its
 * name for a label; then the name is missing, the stack is restored, and the declaration has no labels. */
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

/* Returns `type` made generic by `signature`; `type` itself if there is no signature. */
static struct swift_node *with_signature(struct swift_reader *r, struct swift_node *signature, struct swift_node *type)
{
    return signature && type ? node_pair(r, N_GENERIC_TYPE, signature, type) : type;
}

/* ---- declarations ---- */

/* Makes a class, struct, enum or protocol (`kind`) with the name and context on the stack; back references may refer to it. */
struct swift_node *entity_nominal(struct swift_reader *r, enum node_kind kind)
{
    struct swift_node *name = reader_pop_name(r);
    return name ? reader_substitutable(r, node_entity(r, kind, reader_pop_context(r), name, NULL, NULL)) : NULL;
}

/* Makes an extension of the operands: the extended type, the module that extends it (not printed), and for a constrained one a
 * signature. */
struct swift_node *entity_extension(struct swift_reader *r)
{
    struct swift_node *signature = reader_pop_kind(r, N_SIGNATURE);
    if (!reader_pop_module(r))
        return NULL;
    return node_put(r, node_with_child(r, N_EXTENSION, reader_pop_nominal(r)), signature);
}

/* Makes a function of its operands: context, name, labels, type, and for a generic one a signature. */
struct swift_node *entity_function(struct swift_reader *r)
{
    struct swift_node *signature = reader_pop_kind(r, N_SIGNATURE);
    return declaration(r, N_FUNCTION, with_signature(r, signature, type_function(r, "")));
}

/* Accessors of variables and subscripts, by the code after the operator. */
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

/* Reads the code of an accessor and makes that accessor of `storage`, a variable or subscript; `p` means the storage itself. */
static struct swift_node *accessor(struct swift_reader *r, struct swift_node *storage)
{
    if (reader_eat(r, 'p'))
        return storage;
    for (size_t i = 0; i < sizeof accessors / sizeof *accessors; i++)
        if (reader_eat_text(r, accessors[i].code))
            return node_add(r, node_write(r, N_ACCESSOR, accessors[i].text), storage);
    return NULL;
}

/* Makes a variable, or an accessor of it, of the operands: context, name, type. */
struct swift_node *entity_variable(struct swift_reader *r)
{
    return accessor(r, declaration(r, N_VARIABLE, reader_pop_type(r)));
}

/* Makes a subscript, or an accessor of it, of the operands: context, labels, type. */
struct swift_node *entity_subscript(struct swift_reader *r)
{
    reader_pop_kind(r, N_PRIVATE_NAME); /* of a file-private subscript, which has no name to print */
    struct swift_node *type = reader_pop_type(r), *labels = pop_labels(r, type);
    return type ? accessor(r, node_entity(r, N_SUBSCRIPT, reader_pop_context(r), NULL, labels, type)) : NULL;
}

/* Makes a symbol of the type on the stack, as debuggers mangle types; labels may precede the type of a function. */
struct swift_node *entity_type_mangling(struct swift_reader *r)
{
    struct swift_node *type = reader_pop_type(r), *labels = pop_labels(r, type);
    return node_add(r, node_put(r, node_new(r, N_TYPE_MANGLING), labels), type);
}

/* ---- code of declarations ---- */

/* Makes an initializer of its operands: context, labels, type. `allocating`: it also allocates the object (__allocating_init). */
static struct swift_node *initializer(struct swift_reader *r, bool allocating)
{
    reader_pop_kind(r, N_PRIVATE_NAME); /* of a file-private initializer, which has no name to print */
    struct swift_node *type = reader_pop_type(r), *labels = pop_labels(r, type);
    struct swift_node *init = type ? node_entity(r, N_INIT, reader_pop_context(r), NULL, labels, type) : NULL;
    if (init)
        init->index = allocating;
    return init;
}

/* Reads the number of a closure and makes it of its operands, context and type. `text` is "closure #" or "implicit closure #". */
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

/* Makes a part of the declaration on the stack. N_PART_OF, like a default argument, is printed as `text`, `index` (a number, or NO_INDEX
 * for none), " of " and the declaration; N_DEINIT as `text`, but with `index` 1 as "deinit" if the declaration is not a class. */
static struct swift_node *swift_entity_part(struct swift_reader *r, enum node_kind kind, const char *text,
                                            uint32_t index)
{
    struct swift_node *node = node_entity(r, kind, reader_pop_context(r), NULL, NULL, NULL);
    if (node) {
        node->text = sl_str(text);
        node->index = index;
    }
    return node;
}

/* ---- macros ---- */

/* Kinds of macro expansions, by the letter after `fM`. */
static const struct {
    char code;
    bool attached; /* to a declaration, whose name is on the stack; a freestanding macro only has its own name */
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

/* Reads the rest of the place of a macro that is used outside of any declaration: line and column. Its module and file are on the stack. */
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

/* Reads the kind and number of a macro's expansion and makes it of the operands: context, name of the declaration that it is attached to
 * (not for a freestanding one), name of the macro. After `X` it is only the place of a macro. */
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
        reader_pop_kind(r, N_PRIVATE_NAME); /* not printed */
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

/* Reads the letter after `f`, which says what function or other code belongs to the declaration on the stack. N_DEINIT with index 1: the
 * text is printed only if the declaration is a class, else "deinit". */
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
