/* Types of Swift's mangling before Swift 4. Functions return NULL or false if a type is malformed or memory is short. */
#include "demangle/swift_old.h"

enum { MAX_DEPTH = 200 }; /* of types in types: bounds the recursion */

bool old_enter(struct swift_reader *r)
{
    return ++r->depth <= MAX_DEPTH;
}

void old_leave(struct swift_reader *r)
{
    r->depth--;
}

/* ---- built-in types ---- */

/* Reads the size in bits of a built-in type and the `_` after it. Returns the type's name: `prefix`, size. NULL if one of the two is
 * missing, or if the size is 0 or larger than Swift's demangler accepts (MAX_SIZE). */
static struct swift_node *sized(struct swift_reader *r, const char *prefix)
{
    enum { MAX_SIZE = 4096 };
    uint32_t size;
    if (!reader_natural(r, &size) || !size || size > MAX_SIZE || !reader_eat(r, '_'))
        return NULL;
    return node_format(r, N_BUILTIN, "%s%u", prefix, size);
}

/* Reads a built-in vector: the number and type of its elements. Returns "Builtin.Vec4xInt32", in which the element type has no "Builtin."
 * of its own; NULL if it is malformed. */
static struct swift_node *vector(struct swift_reader *r)
{
    uint32_t count;
    if (!reader_natural(r, &count))
        return NULL;
    struct swift_node *element = reader_eat_text(r, "Bi")   ? sized(r, "Int")
                                 : reader_eat_text(r, "Bf") ? sized(r, "FPIEEE")
                                 : reader_eat_text(r, "Bp") ? node_write(r, N_BUILTIN, "RawPointer")
                                                            : NULL;
    return element ? node_format(r, N_BUILTIN, "Builtin.Vec%ux%s", count, element->text.data) : NULL;
}

/* Reads a built-in type, after 'B': `i` and `f` have a size in bits, `v` is a vector, other letters have a fixed meaning. NULL for unknown
 * ones. */
static struct swift_node *builtin(struct swift_reader *r)
{
    static const struct {
        char code;
        const char *name;
    } plain[] = {
        {'B', "Builtin.UnsafeValueBuffer"},
        {'O', "Builtin.UnknownObject"},
        {'b', "Builtin.BridgeObject"},
        {'o', "Builtin.NativeObject"},
        {'p', "Builtin.RawPointer"},
        {'t', "Builtin.SILToken"},
        {'w', "Builtin.Word"},
    };
    char c = reader_next(r);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (plain[i].code == c)
            return node_write(r, N_BUILTIN, plain[i].name);
    if (c == 'v')
        return vector(r);
    return c == 'i' ? sized(r, "Builtin.Int") : c == 'f' ? sized(r, "Builtin.FPIEEE") : NULL;
}

/* ---- generics ---- */

/* Reads a generic parameter: `x` is the first one of depth 0; an index alone counts the others of depth 0; `d`, depth, index is one of a
 * greater depth, counted from 1. */
static struct swift_node *parameter(struct swift_reader *r)
{
    uint32_t depth, index;
    if (reader_eat(r, 'x'))
        return node_parameter(r, 0, 0);
    if (reader_eat(r, 'd'))
        return reader_index(r, &depth) && reader_index(r, &index) ? node_parameter(r, depth + 1, index) : NULL;
    return reader_index(r, &index) ? node_parameter(r, 0, index + 1) : NULL;
}

/* Reads an associated type of `base` ("A.Element"): `S` and a back reference to one read before, or its name, with `P` and its protocol
 * before the name if that is given. */
static struct swift_node *swift_old_type_member(struct swift_reader *r, struct swift_node *base)
{
    struct swift_node *name, *protocol = NULL;
    if (!base)
        return NULL;
    if (reader_eat(r, 'S')) {
        name = old_substitution(r);
        if (!name || name->kind != N_ASSOCIATED_NAME)
            return NULL;
        return node_pair(r, N_MEMBER, base, name);
    }
    if (reader_eat(r, 'P') && !(protocol = old_protocol(r)))
        return NULL;
    name = node_put(r, node_with_child(r, N_ASSOCIATED_NAME, old_identifier(r)), protocol);
    return node_pair(r, N_MEMBER, base, reader_substitutable(r, name)); /* later names may refer back to this one */
}

/* Reads a generic parameter and a chain of associated types, "A.Iterator.Element", up to `_`. */
static struct swift_node *member_path(struct swift_reader *r)
{
    struct swift_node *type = parameter(r);
    while (type && !reader_eat(r, '_'))
        type = swift_old_type_member(r, type);
    return type;
}

/* Reads the left side of a generic requirement: w "A.Element", W a chain "A.Iterator.Element", else a generic parameter. */
static struct swift_node *constrained(struct swift_reader *r)
{
    if (reader_eat(r, 'w'))
        return swift_old_type_member(r, parameter(r));
    if (reader_eat(r, 'W'))
        return member_path(r);
    return parameter(r);
}

/* Reads a layout constraint, which is not printed: a letter; after E and M follow size and alignment, after e and m the size. False if it
 * is malformed. */
static bool layout(struct swift_reader *r)
{
    uint32_t number;
    char c = reader_next(r);
    if (c == 'U' || c == 'R' || c == 'N' || c == 'C' || c == 'D' || c == 'T')
        return true;
    bool two = c == 'E' || c == 'M';
    return (two || c == 'e' || c == 'm') && reader_natural(r, &number) &&
           (!two || (reader_eat(r, '_') && reader_natural(r, &number)));
}

/* Reads a back reference, after its `S`, to what a type must conform to or inherit from: a protocol, a class, or the module of a protocol
 * whose name follows. False if it is none of these. */
static bool constraint_reference(struct swift_reader *r)
{
    struct swift_node *node = old_substitution(r);
    if (node && node->kind == N_MODULE)
        return reader_substitutable(r, node_entity(r, N_PROTOCOL, node, old_name(r), NULL, NULL));
    return node && (node->kind == N_PROTOCOL || node->kind == N_CLASS);
}

/* Skips a requirement of a generic signature, because requirements are not printed; false if it is malformed. After the constrained type:
 * "z" and the equal type, "l" and a layout, a superclass (which begins with "C"), or a protocol. */
static bool requirement(struct swift_reader *r)
{
    if (!constrained(r))
        return false;
    if (reader_eat(r, 'z'))
        return old_type(r);
    if (reader_eat(r, 'l'))
        return layout(r);
    if (reader_peek(r) == 'C')
        return old_type(r);
    /* `S`: a back reference to a superclass or protocol */
    return reader_eat(r, 'S') ? constraint_reference(r) : old_protocol(r) != NULL;
}

/* Reads a generic signature: for each depth of nested generic declarations the number of its parameters (`z` = 0; no number at all = one
 * parameter at depth 0), then `r`, or `R`, requirements and `r`. */
struct swift_node *old_signature(struct swift_reader *r)
{
    struct swift_node *signature = node_new(r, N_SIGNATURE);
    while (signature && reader_peek(r) != 'R' && reader_peek(r) != 'r') {
        /* an index i means i + 1 parameters; 0 after `++`: the number overflowed */
        uint32_t count = 0;
        if (!reader_eat(r, 'z') && (!reader_index(r, &count) || !++count))
            return NULL;
        signature = node_add(r, signature, node_number(r, N_PARAMETER_COUNT, count));
    }
    if (signature && !signature->count)
        signature = node_add(r, signature, node_number(r, N_PARAMETER_COUNT, 1));
    bool requirements = reader_eat(r, 'R');
    while (!reader_eat(r, 'r'))
        if (!requirements || !requirement(r))
            return NULL;
    return signature;
}

/* Reads the type arguments of `nominal` and of the types that it is declared in: a list up to `_` for each, the outermost type's first.
 * Returns the type with its arguments; a type whose list is empty gets none, only its parent may have some. */
static struct swift_node *bind(struct swift_reader *r, struct swift_node *nominal)
{
    if (!node_is_nominal(nominal) || !old_enter(r)) /* old_enter() is false if types are nested too deeply */
        return NULL;
    if (node_is_nominal(node_child(nominal, 0))) {
        struct swift_node *parent = bind(r, nominal->children[0]);
        /* the original may be shared: only a copy gets a bound parent */
        nominal = parent ? node_copy(r, nominal) : NULL;
        if (!nominal)
            return NULL;
        nominal->children[0] = parent;
    }
    struct swift_node *arguments = node_new(r, N_LIST);
    while (arguments && !reader_eat(r, '_'))
        arguments = node_add(r, arguments, old_type(r));
    old_leave(r);
    return arguments && arguments->count ? node_pair(r, N_BOUND, nominal, arguments) : arguments ? nominal : NULL;
}

/* Reads a declared type, or after `S` a back reference; the first letter tells the kind. NULL for other letters. */
static struct swift_node *nominal(struct swift_reader *r)
{
    switch (reader_next(r)) {
    case 'C': return old_declared(r, N_CLASS);
    case 'O': return old_declared(r, N_ENUM);
    case 'P': return old_declared(r, N_PROTOCOL);
    case 'V': return old_declared(r, N_STRUCT);
    case 'a': return old_declared(r, N_ALIAS);
    case 'S': return old_substitution(r);
    default: return NULL;
    }
}

struct swift_node *old_bound(struct swift_reader *r)
{
    return bind(r, nominal(r));
}

/* ---- functions and tuples ---- */

/* Reads a function type: `z` if it throws, the parameters, the result. `attribute` is printed before it. */
static struct swift_node *function(struct swift_reader *r, const char *attribute)
{
    bool throws = reader_eat(r, 'z');
    struct swift_node *parameters = old_type(r), *result = parameters ? old_type(r) : NULL;
    struct swift_node *node = node_add(r, node_add(r, node_write(r, N_FUNCTION_TYPE, attribute), parameters), result);
    return throws ? node_add(r, node, node_effect(r, EFFECT_THROWS, "")) : node;
}

/* Reads the elements of a tuple up to '_', each a label (if a digit follows) and a type. `variadic`: the last element stands for any number
 * of values. */
static struct swift_node *tuple(struct swift_reader *r, bool variadic)
{
    struct swift_node *node = node_new(r, N_TUPLE), *last = NULL;
    while (node && !reader_eat(r, '_')) {
        char c = reader_peek(r);
        last = node_new(r, N_TUPLE_ELEMENT);
        if (c >= '0' && c <= '9' && last) {
            const struct swift_node *label = old_identifier(r);
            if (!label)
                return NULL;
            last->text = label->text;
        }
        node = node_add(r, node, node_add(r, last, old_type(r)));
    }
    if (node && variadic) {
        if (!last)
            return NULL;
        last->index = 1; /* printed as "Int..." */
    }
    return node;
}

/* Reads the protocols of a composition, "A & B", up to `_`; it has no superclass (NULL). */
static struct swift_node *swift_old_type_composition(struct swift_reader *r)
{
    struct swift_node *protocols = node_new(r, N_LIST);
    while (protocols && !reader_eat(r, '_'))
        protocols = node_add(r, protocols, old_protocol(r));
    return node_put(r, node_with_child(r, N_COMPOSITION, protocols), NULL);
}

/* ---- function types of SIL ---- */

enum swift_role { CALLEE, PARAMETER, RESULT };

/* Reads how a callee, parameter or result is passed; NULL if the letter has no meaning for that role. */
static const char *convention(struct swift_reader *r, enum swift_role role)
{
    static const struct {
        char code;
        const char *texts[3]; /* by role: callee, parameter, result; NULL = the letter does not occur there */
    } conventions[] = {
        {'D', {NULL, NULL, "@unowned_inner_pointer "}},
        {'G', {NULL, "@in_guaranteed ", NULL}},
        {'a', {NULL, NULL, "@autoreleased "}},
        {'d', {"@callee_unowned ", "@unowned ", "@unowned "}},
        {'e', {NULL, "@deallocating ", NULL}},
        {'g', {"@callee_guaranteed ", "@guaranteed ", NULL}},
        {'i', {NULL, "@in ", "@out "}},
        {'l', {NULL, "@inout ", NULL}},
        {'o', {"@callee_owned ", "@owned ", "@owned "}},
        {'t', {"@convention(thin) ", NULL, NULL}},
    };
    for (size_t i = 0; i < sizeof conventions / sizeof *conventions; i++)
        if (reader_peek(r) == conventions[i].code && conventions[i].texts[role]) {
            reader_next(r);
            return conventions[i].texts[role];
        }
    return NULL;
}

static struct swift_node *impl_attribute(struct swift_reader *r, struct swift_node *function, const char *text)
{
    return text ? node_add(r, function, node_write(r, N_IMPL_ATTRIBUTE, text)) : NULL;
}

/* Reads the letter for the calling convention of a SIL function; NULL for an unknown one. */
static const char *representation(struct swift_reader *r)
{
    switch (reader_next(r)) {
    case 'O': return "@convention(objc_method) ";
    case 'b': return "@convention(block) ";
    case 'c': return "@convention(c) ";
    case 'm': return "@convention(method) ";
    case 'w': return "@convention(witness_method) ";
    default: return NULL;
    }
}

/* Reads parameters or results, each a convention and a type, up to `_`, and adds them to `function`. A result after `z` is the error that
 * the function throws, which can only be @owned. */
static struct swift_node *impl_parts(struct swift_reader *r, struct swift_node *function, enum swift_role role)
{
    while (function && !reader_eat(r, '_')) {
        bool error = role == RESULT && reader_eat(r, 'z');
        const char *text = convention(r, role);
        if (!text || (error && strcmp(text, "@owned ") != 0))
            return NULL;
        struct swift_node *part =
            node_write(r, role == RESULT ? N_IMPL_RESULT : N_IMPL_PARAMETER, error ? "@error @owned " : text);
        function = node_add(r, function, node_add(r, part, old_type(r)));
    }
    return function;
}

/* Reads a function type of SIL, Swift's intermediate language: how the callee is passed, `C` and its calling convention, `G` or `g` and a
 * generic signature, `_`, parameters, results. The parts with a letter are optional. */
static struct swift_node *intermediate_function(struct swift_reader *r)
{
    struct swift_node *function = impl_attribute(r, node_new(r, N_IMPL_FUNCTION), convention(r, CALLEE));
    if (reader_eat(r, 'C'))
        function = impl_attribute(r, function, representation(r));
    if (reader_eat(r, 'G') || reader_eat(r, 'g'))
        function = node_add(r, function, old_signature(r));
    if (!reader_eat(r, '_'))
        return NULL;
    return impl_parts(r, impl_parts(r, function, PARAMETER), RESULT);
}

/* ---- operators ---- */

/* Reads a metatype: a letter for its representation, and the type whose type it is. */
static struct swift_node *swift_old_type_metatype(struct swift_reader *r, enum node_kind kind)
{
    char c = reader_next(r);
    const char *text = c == 't' ? "@thin " : c == 'T' ? "@thick " : c == 'o' ? "@objc_metatype " : NULL;
    return text ? node_add(r, node_write(r, kind, text), old_type(r)) : NULL;
}

/* Reads the rest of a type after `X`: functions of another convention, metatypes with a representation, boxes and references that do not
 * own. NULL if it is none of these. */
static struct swift_node *special(struct swift_reader *r)
{
    switch (reader_next(r)) {
    case 'F': return intermediate_function(r);
    case 'M': return swift_old_type_metatype(r, N_METATYPE);
    case 'P': return reader_eat(r, 'M') ? swift_old_type_metatype(r, N_EXISTENTIAL_METATYPE) : NULL;
    case 'b': return node_marked(r, "@box ", old_type(r));
    case 'f': return function(r, "@convention(thin) ");
    case 'o': return node_marked(r, "unowned ", old_type(r));
    case 'u': return node_marked(r, "unowned(unsafe) ", old_type(r));
    case 'w': return node_marked(r, "weak ", old_type(r));
    default: return NULL;
    }
}

static struct swift_node *generic(struct swift_reader *r)
{
    struct swift_node *signature = old_signature(r);
    return signature ? node_pair(r, N_GENERIC_TYPE, signature, old_type(r)) : NULL;
}

/* Reads an opaque result type after `Q`: `u`, or `U` and its number in the declaration. It is printed as "some" without the number. */
static struct swift_node *opaque_result(struct swift_reader *r)
{
    uint32_t number;
    if (reader_eat(r, 'u') || (reader_eat(r, 'U') && reader_index(r, &number)))
        return node_new(r, N_OPAQUE_RESULT);
    return NULL;
}

/* Reads a type of the mangling before Swift 4 ("_Tt..."): its first letter says of which kind it is. NULL if the text is malformed. */
static struct swift_node *type(struct swift_reader *r)
{
    char c = reader_peek(r);
    if (c == 'C' || c == 'O' || c == 'V' || c == 'a')
        return nominal(r);
    if (c == 'x')
        return parameter(r);
    switch (reader_next(r)) {
    case 'B': return builtin(r);
    case 'D': return old_type(r) ? node_new(r, N_DYNAMIC_SELF) : NULL; /* printed as `Self`, whatever the type */
    case 'E': return reader_eat_text(r, "RR") ? node_new(r, N_ERROR) : NULL;
    case 'F':
    case 'f': return function(r, "");
    case 'G': return old_bound(r);
    case 'K': return function(r, "@autoclosure ");
    case 'M': return node_with_child(r, N_METATYPE, old_type(r));
    case 'P':
        return reader_eat(r, 'M') ? node_with_child(r, N_EXISTENTIAL_METATYPE, old_type(r))
                                  : swift_old_type_composition(r);
    case 'Q': return opaque_result(r);
    case 'R': return node_marked(r, "inout ", old_type(r));
    case 'S': return old_substitution(r);
    case 'T': return tuple(r, false);
    case 'W': return member_path(r);
    case 'X': return special(r);
    case 'b': return function(r, "@convention(block) ");
    case 'c': return function(r, "@convention(c) ");
    case 'q': return parameter(r);
    case 't': return tuple(r, true);
    case 'u': return generic(r);
    case 'w': return swift_old_type_member(r, parameter(r));
    default: return NULL;
    }
}

struct swift_node *old_type(struct swift_reader *r)
{
    struct swift_node *node = old_enter(r) ? type(r) : NULL;
    old_leave(r);
    return node_is_type(node) ? node : NULL;
}
