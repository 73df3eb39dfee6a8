/* Types of the current Swift mangling. Functions return NULL if a type is malformed, an operand is missing, or memory is short. */
#include "demangle/swift_tree.h"

/* ---- built-in types ---- */

static const struct {
    char code;
    const char *name;
} builtins[] = {
    {'A', "Builtin.ImplicitActor"},
    {'B', "Builtin.UnsafeValueBuffer"},
    {'D', "Builtin.DefaultActorStorage"},
    {'I', "Builtin.IntLiteral"},
    {'O', "Builtin.UnknownObject"},
    {'P', "Builtin.PackIndex"},
    {'b', "Builtin.BridgeObject"},
    {'c', "Builtin.RawUnsafeContinuation"},
    {'d', "Builtin.NonDefaultDistributedActorStorage"},
    {'e', "Builtin.Executor"},
    {'j', "Builtin.Job"},
    {'o', "Builtin.NativeObject"},
    {'p', "Builtin.RawPointer"},
    {'t', "Builtin.SILToken"},
    {'w', "Builtin.Word"},
};

/* Reads a number from 1 to 4096 (the limit of Swift's demangler) and `_`. Returns the type "Builtin.", `prefix`, the number, `element`;
 * `element` is empty except for vectors. */
static struct swift_node *sized_builtin(struct swift_reader *r, const char *prefix, struct sl_str element)
{
    enum { MAX_SIZE = 4096 };
    uint32_t size;
    if (!reader_natural(r, &size) || !size || size > MAX_SIZE || !reader_eat(r, '_'))
        return NULL;
    return node_format(r, N_BUILTIN, "Builtin.%s%u" SL_STR_FMT, prefix, size, SL_STR_ARG(element));
}

/* Reads the number of elements of a vector, whose element type is on the stack. Returns "Builtin.Vec4xInt32": the element's own "Builtin."
 * is left out. */
static struct swift_node *vector(struct swift_reader *r)
{
    static const size_t prefix = sizeof "Builtin" - 1;
    struct swift_node *element = reader_pop_kind(r, N_BUILTIN);
    if (!element || element->text.size > 100) /* limits vectors of vectors of ... */
        return NULL;
    struct swift_node *name = node_format(r, N_LITERAL, "x%s", element->text.data + prefix + 1); /* 1: the dot */
    return name ? sized_builtin(r, "Vec", name->text) : NULL;
}

/* Makes a built-in type with one or two type arguments: "Builtin.FixedArray<A, B>". */
static struct swift_node *make_builtin(struct swift_reader *r, const char *name, struct swift_node *first,
                                       struct swift_node *second)
{
    struct swift_node *arguments = node_with_child(r, N_LIST, first);
    if (second)
        arguments = node_add(r, arguments, second);
    return node_add(r, node_write(r, N_BUILTIN_OF, name), arguments);
}

/* Reads a built-in type, after `B`; its type arguments are on the stack. NULL for an unknown letter. */
struct swift_node *type_builtin(struct swift_reader *r)
{
    struct swift_node *element;
    char code = reader_next(r);
    switch (code) {
    case 'f': return sized_builtin(r, "FPIEEE", (struct sl_str){"", 0});
    case 'i': return sized_builtin(r, "Int", (struct sl_str){"", 0});
    case 'v': return vector(r);
    case 'V':
        element = reader_pop_type(r);
        return element ? make_builtin(r, "Builtin.FixedArray", reader_pop_type(r), element) : NULL;
    case 'W': return make_builtin(r, "Builtin.Borrow", reader_pop_type(r), NULL);
    default: break;
    }
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (builtins[i].code == code)
            return node_write(r, N_BUILTIN, builtins[i].name);
    return NULL;
}

/* ---- functions ---- */

/* Pops the parameters or the result of a function type: one type, or the mark of an empty list, which means `()`. */
static struct swift_node *pop_parameters(struct swift_reader *r)
{
    return reader_pop_kind(r, N_EMPTY_LIST) ? node_new(r, N_TUPLE) : reader_pop_type(r);
}

/* On the stack are the result, above it the parameters, and above them the effects. */
struct swift_node *type_function(struct swift_reader *r, const char *attribute)
{
    struct swift_node *effects[EFFECT_LAST + 1] = {NULL}, *effect;
    while ((effect = reader_pop_kind(r, N_EFFECT)))
        effects[effect->index] = effect;
    struct swift_node *parameters = pop_parameters(r), *result = pop_parameters(r);
    struct swift_node *function =
        node_add(r, node_add(r, node_write(r, N_FUNCTION_TYPE, attribute), parameters), result);
    for (int i = 0; i <= EFFECT_LAST; i++) /* in the order in which they are printed, whatever that of the name */
        if (effects[i])
            function = node_add(r, function, effects[i]);
    return function;
}

struct swift_node *type_parameter_tuple(const struct swift_node *type)
{
    if (type && type->kind == N_GENERIC_TYPE)
        type = node_child(type, 1);
    return type && type->kind == N_FUNCTION_TYPE && !type->text.size ? node_child(type, 0) : NULL;
}

/* Reads a function type whose C type is given: B for a block or C for a C function, then the length and the Itanium mangling of the C
 * type. */
static struct swift_node *c_function(struct swift_reader *r)
{
    const char *name = reader_eat(r, 'B') ? "block" : reader_eat(r, 'C') ? "c" : NULL;
    uint32_t size;
    if (!name || !reader_natural(r, &size))
        return NULL;
    struct sl_str c_type = reader_take(r, size);
    struct swift_node *attribute =
        node_format(r, N_LITERAL, "@convention(%s, mangledCType: \"" SL_STR_FMT "\") ", name, SL_STR_ARG(c_type));
    return c_type.size && attribute ? type_function(r, attribute->text.data) : NULL;
}

/* ---- lists and tuples ---- */

/* Takes types off the stack, down to the marked first one, and lists them in the order of the name. */
struct swift_node *type_list(struct swift_reader *r)
{
    struct swift_node *list = node_new(r, N_LIST);
    if (reader_pop_kind(r, N_EMPTY_LIST))
        return list;
    for (bool first = false; list && !first;) {
        first = reader_pop_kind(r, N_FIRST_ELEMENT);
        list = node_add(r, list, reader_pop_type(r));
    }
    return node_reverse(list, 0);
}

/* Reads a tuple element. On the stack are its type, then its label and the variadic mark, if it has them. */
static struct swift_node *tuple_element(struct swift_reader *r)
{
    struct swift_node *element = node_new(r, N_TUPLE_ELEMENT);
    if (!element)
        return NULL;
    element->index = reader_pop_kind(r, N_VARIADIC) ? 1 : 0;
    struct swift_node *label = reader_pop_kind(r, N_IDENTIFIER);
    if (label)
        element->text = label->text;
    return node_add(r, element, reader_pop_type(r));
}

/* Takes the elements of a tuple off the stack, down to the marked first one. */
struct swift_node *type_tuple(struct swift_reader *r)
{
    struct swift_node *tuple = node_new(r, N_TUPLE);
    if (reader_pop_kind(r, N_EMPTY_LIST))
        return tuple;
    for (bool first = false; tuple && !first;) {
        first = reader_pop_kind(r, N_FIRST_ELEMENT);
        tuple = node_add(r, tuple, tuple_element(r));
    }
    return node_reverse(tuple, 0);
}

/* ---- protocols and existential types ---- */

/* Takes protocols off the stack, down to the marked first one. */
struct swift_node *type_protocols(struct swift_reader *r)
{
    struct swift_node *list = node_new(r, N_LIST);
    if (reader_pop_kind(r, N_EMPTY_LIST))
        return list;
    for (bool first = false; list && !first;) {
        first = reader_pop_kind(r, N_FIRST_ELEMENT);
        list = node_add(r, list, reader_pop_protocol(r));
    }
    return node_reverse(list, 0);
}

static struct swift_node *swift_type_composition(struct swift_reader *r, struct swift_node *superclass, bool any_object)
{
    struct swift_node *node = node_put(r, node_with_child(r, N_COMPOSITION, type_protocols(r)), superclass);
    if (node)
        node->index = any_object;
    return node;
}

static struct swift_node *composition_with_class(struct swift_reader *r)
{
    struct swift_node *superclass = reader_pop_type(r);
    return superclass ? swift_type_composition(r, superclass, false) : NULL;
}

/* Makes an existential type with constraints, `any P<A>`: pops its requirements, down to the marked first one, and below them the
 * composition of protocols. */
static struct swift_node *constrained(struct swift_reader *r)
{
    struct swift_node *requirements = node_new(r, N_LIST);
    for (bool first = false; requirements && !first;) {
        first = reader_pop_kind(r, N_FIRST_ELEMENT);
        requirements = node_add(r, requirements, reader_pop_kind(r, N_REQUIREMENT));
    }
    return node_pair(r, N_CONSTRAINED, reader_pop_type(r), node_reverse(requirements, 0));
}

/* Reads a metatype with its representation: t thin, T thick, o Objective-C's. */
static struct swift_node *swift_type_metatype(struct swift_reader *r, enum node_kind kind)
{
    char c = reader_next(r);
    const char *text = c == 't' ? "@thin " : c == 'T' ? "@thick " : c == 'o' ? "@objc_metatype " : NULL;
    return text ? node_add(r, node_write(r, kind, text), reader_pop_type(r)) : NULL;
}

/* ---- SIL boxes ---- */

/* Reads a box of SIL: memory on the heap for captured variables. A generic one has a signature and its arguments as well. */
static struct swift_node *box(struct swift_reader *r, bool generic)
{
    struct swift_node *signature = NULL, *arguments = NULL;
    if (generic) {
        signature = reader_pop_kind(r, N_SIGNATURE);
        arguments = signature ? type_list(r) : NULL;
        if (!arguments)
            return NULL;
    }
    return node_put(r, node_put(r, node_with_child(r, N_BOX, type_list(r)), signature), arguments);
}

/* ---- operators ---- */

/* Reads a type in short form: q `A?`, a `[A]`, p `(A)`, D `[A : B]`. */
static struct swift_node *sugar(struct swift_reader *r)
{
    struct swift_node *value;
    switch (reader_next(r)) {
    case 'q': return node_add(r, node_write(r, N_SUGAR, "?"), reader_pop_type(r));
    case 'a': return node_add(r, node_write(r, N_SUGAR, "["), reader_pop_type(r));
    case 'p': return node_add(r, node_write(r, N_SUGAR, "("), reader_pop_type(r));
    case 'D': /* the type of the values is above that of the keys */
        value = reader_pop_type(r);
        return node_add(r, node_add(r, node_write(r, N_SUGAR, ":"), reader_pop_type(r)), value);
    default: return NULL;
    }
}

/* Makes an anonymous context, which is only known at run time, from the context on the stack; its type arguments and identifier are popped
 * and not printed. */
static struct swift_node *unknown_context(struct swift_reader *r)
{
    if (!type_list(r) || !reader_pop_kind(r, N_IDENTIFIER))
        return NULL;
    return node_with_child(r, N_ANONYMOUS, reader_pop_context(r));
}

/* Reads the operators of special types, after 'X'. */
struct swift_node *type_special(struct swift_reader *r)
{
    switch (reader_next(r)) {
    case 'A':
    case 'K': return type_function(r, "@autoclosure ");
    case 'B': return type_function(r, "@convention(block) ");
    case 'C': return type_function(r, "@convention(c) ");
    case 'E':
    case 'U': return type_function(r, "");
    case 'L': return type_function(r, "@escaping @convention(block) ");
    case 'O': return type_function(r, "@called(once) ");
    case 'f': return type_function(r, "@convention(thin) ");
    case 'z': return c_function(r);
    case 'D': return reader_pop_type(r) ? node_new(r, N_DYNAMIC_SELF) : NULL; /* printed as `Self`, whatever the type */
    case 'M': return swift_type_metatype(r, N_METATYPE);
    case 'm': return swift_type_metatype(r, N_EXISTENTIAL_METATYPE);
    case 'p': return node_with_child(r, N_EXISTENTIAL_METATYPE, reader_pop_type(r));
    case 'P': return constrained(r);
    case 'c': return composition_with_class(r);
    case 'l': return swift_type_composition(r, NULL, true);
    case 'b': return node_marked(r, "@box ", reader_pop_type(r));
    case 'o': return node_marked(r, "unowned ", reader_pop_type(r));
    case 'u': return node_marked(r, "unowned(unsafe) ", reader_pop_type(r));
    case 'w': return node_marked(r, "weak ", reader_pop_type(r));
    case 'X': return box(r, true);
    case 'x': return box(r, false);
    case 'Y': return entity_nominal(r, N_OTHER_NOMINAL);
    case 'Z': return unknown_context(r);
    case 'S': return sugar(r);
    case 'e': return node_new(r, N_ERROR);
    default: return NULL;
    }
}

/* Makes an effect that is printed with a type: an actor, or the type of error thrown. */
static struct swift_node *make_effect(struct swift_reader *r, enum effect effect)
{
    return node_add(r, node_effect(r, effect, ""), reader_pop_type(r));
}

/* Reads the kind of differentiability of a function type. */
static struct swift_node *differentiable(struct swift_reader *r)
{
    switch (reader_next(r)) {
    case 'd': return node_effect(r, EFFECT_DIFFERENTIABLE, "@differentiable ");
    case 'f': return node_effect(r, EFFECT_DIFFERENTIABLE, "@differentiable(_forward) ");
    case 'l': return node_effect(r, EFFECT_DIFFERENTIABLE, "@differentiable(_linear) ");
    case 'r': return node_effect(r, EFFECT_DIFFERENTIABLE, "@differentiable(reverse) ");
    default: return NULL;
    }
}

/* Reads the operators of effects and annotations, after 'Y': an effect of the function type that follows, or a mark of the type on the
 * stack. */
struct swift_node *type_annotation(struct swift_reader *r)
{
    switch (reader_next(r)) {
    case 'A': return node_effect(r, EFFECT_ISOLATION, "@isolated(any) ");
    case 'C': return node_effect(r, EFFECT_ISOLATION, "nonisolated(nonsending) ");
    case 'c': return make_effect(r, EFFECT_ISOLATION);
    case 'K': return make_effect(r, EFFECT_THROWS);
    case 'T': return node_effect(r, EFFECT_SENDING, "sending ");
    case 'a': return node_effect(r, EFFECT_ASYNC, " async");
    case 'b': return node_effect(r, EFFECT_SENDABLE, "@Sendable ");
    case 'j': return differentiable(r);
    case 'i': return node_marked(r, "isolated ", reader_pop_type(r));
    case 'k': return node_marked(r, "@noDerivative ", reader_pop_type(r));
    case 't': return node_marked(r, "_const ", reader_pop_type(r));
    case 'u': return node_marked(r, "sending ", reader_pop_type(r));
    default: return NULL;
    }
}

/* ---- archetypes, packs, opaque types ---- */

/* Reads an opaque result type by reference: the number of the `some` in the declaration that is on the stack. Its generic arguments are not
 * printed. */
static struct swift_node *opaque(struct swift_reader *r)
{
    uint32_t number;
    if (!reader_index(r, &number) || !generic_arguments(r)) /* the arguments are only popped */
        return NULL;
    struct swift_node *node = node_with_child(r, N_OPAQUE, reader_pop_kind(r, N_OPAQUE_OF));
    if (node)
        node->index = number;
    return reader_substitutable(r, node);
}

/* Makes a pack of the types on the stack. A pack of SIL has the letter d (direct) or i (indirect), which is not printed. */
static struct swift_node *swift_type_pack(struct swift_reader *r, bool of_sil)
{
    if (of_sil && !reader_eat(r, 'd') && !reader_eat(r, 'i'))
        return NULL;
    struct swift_node *types = type_list(r);
    if (types)
        types->kind = N_PACK;
    return types;
}

/* Reads an expansion of a pack. The type that gives the number of elements is on top of the stack and is not printed. */
static struct swift_node *pack_expansion(struct swift_reader *r)
{
    return reader_pop_type(r) ? node_marked(r, "repeat ", reader_pop_type(r)) : NULL;
}

static struct swift_node *associated(struct swift_reader *r)
{
    struct swift_node *name = reader_pop_kind(r, N_IDENTIFIER);
    return name ? node_pair(r, N_MEMBER, reader_pop_type(r), name) : NULL;
}

/* Reads the operators of opaque and associated types, after `Q`: O, o the opaque result of a declaration, r, u, R, U `some` in a
 * declaration, P, S, p, e packs, a an associated type. x, y and z are a type `T.A`, where T is on the stack (x), a generic parameter (y) or
 * the first one (z); X, Y and Z are the same with a chain `T.A.B`. The number after R, U and e is not printed. */
struct swift_node *type_archetype(struct swift_reader *r)
{
    uint32_t number;
    switch (reader_next(r)) {
    case 'O': return node_with_child(r, N_OPAQUE_OF, reader_pop_context(r));
    case 'o': return opaque(r);
    case 'r':
    case 'u': return node_new(r, N_OPAQUE_RESULT);
    case 'R':
    case 'U': return reader_index(r, &number) ? node_new(r, N_OPAQUE_RESULT) : NULL;
    case 'P': return swift_type_pack(r, false);
    case 'S': return swift_type_pack(r, true);
    case 'p': return pack_expansion(r);
    case 'e': return reader_index(r, &number) ? node_marked(r, "each ", reader_pop_type(r)) : NULL;
    case 'a': return reader_substitutable(r, associated(r));
    case 'x': return reader_substitutable(r, generic_member(r, NULL));
    case 'y': return reader_substitutable(r, generic_member(r, generic_parameter(r)));
    case 'z': return reader_substitutable(r, generic_member(r, node_parameter(r, 0, 0)));
    case 'X': return reader_substitutable(r, generic_path(r, NULL));
    case 'Y': return reader_substitutable(r, generic_path(r, generic_parameter(r)));
    case 'Z': return reader_substitutable(r, generic_path(r, node_parameter(r, 0, 0)));
    default: return NULL;
    }
}

/* Reads an integer that is a generic argument: `n` if it is negative, then its absolute value. */
struct swift_node *type_integer(struct swift_reader *r)
{
    bool negative = reader_eat(r, 'n');
    uint32_t value;
    if (!reader_index(r, &value))
        return NULL;
    return node_format(r, N_INTEGER, "%s%u", negative ? "-" : "", value);
}
