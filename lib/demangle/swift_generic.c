/* Generics in Swift's mangling since Swift 4, which is postfix: the operands of an operator are already on the reader's stack. Parameters,
 * associated types, signatures, conformances, types with arguments. Functions return NULL if an operand is missing or malformed, or memory
 * is short. */
#include "demangle/swift_tree.h"

enum { MAX_LEVELS = 64 }; /* of argument lists of nested types; bounds the recursion of generic_bind() */

/* ---- parameters and associated types ---- */

/* Reads which generic parameter is meant: z is number 0 of the outermost list, a number n is number n + 1 of that list, d and two numbers
 * are the depth of an inner list and the number in it, s is `Self`. */
struct swift_node *generic_parameter(struct swift_reader *r)
{
    uint32_t depth, index;
    if (reader_eat(r, 'd'))
        return reader_index(r, &depth) && reader_index(r, &index) ? node_parameter(r, depth + 1, index) : NULL;
    if (reader_eat(r, 'z'))
        return node_parameter(r, 0, 0);
    if (reader_eat(r, 's'))
        return node_new(r, N_SELF);
    return reader_index(r, &index) ? node_parameter(r, 0, index + 1) : NULL;
}

/* Pops the name of an associated type, and the protocol that declares it if that is on the stack. NULL if another type is on top. */
struct swift_node *generic_name(struct swift_reader *r)
{
    struct swift_node *protocol = NULL;
    if (node_is_type(reader_top(r)) && !(protocol = reader_pop_kind(r, N_PROTOCOL)))
        return NULL;
    struct swift_node *name = reader_pop_kind(r, N_IDENTIFIER);
    return name ? node_put(r, node_with_child(r, N_ASSOCIATED_NAME, name), protocol) : NULL;
}

/* Pops the names of a chain of associated types, A.B.C, as an N_LIST from the last to the first; N_FIRST_ELEMENT marks the first. */
static struct swift_node *pop_names(struct swift_reader *r)
{
    struct swift_node *names = node_new(r, N_LIST);
    for (bool first = false; names && !first;) {
        first = reader_pop_kind(r, N_FIRST_ELEMENT);
        names = node_add(r, names, generic_name(r));
    }
    return names;
}

/* Pops a chain of associated types and returns it as a path without a base: "A.B.C". */
struct swift_node *generic_names(struct swift_reader *r)
{
    struct swift_node *names = pop_names(r), *path = node_child(names, names ? names->count - 1 : 0);
    for (uint32_t i = names ? names->count - 1 : 0; i; i--)
        path = node_pair(r, N_MEMBER, path, names->children[i - 1]);
    return path;
}

/* Makes `base.Name` with the name of an associated type on the stack. If `base` is NULL, it is on the stack, too. */
struct swift_node *generic_member(struct swift_reader *r, struct swift_node *base)
{
    struct swift_node *name = generic_name(r);
    return name ? node_pair(r, N_MEMBER, base ? base : reader_pop_type(r), name) : NULL;
}

/* Makes `base.A.B.C` with a chain of associated types on the stack. If `base` is NULL, it is on the stack, too. */
struct swift_node *generic_path(struct swift_reader *r, struct swift_node *base)
{
    struct swift_node *names = pop_names(r), *type = names && !base ? reader_pop_type(r) : base;
    for (uint32_t i = names ? names->count : 0; i; i--)
        type = node_pair(r, N_MEMBER, type, names->children[i - 1]);
    return names ? type : NULL;
}

/* ---- requirements ---- */

/* The relation of a requirement; in this order they are printed as `A: P`, `A: Class`, `A == B`, `A.shape == B.shape`, `A: AnyObject`,
 * `A: ~Copyable`. */
enum relation { CONFORMS, INHERITS, SAME, SAME_SHAPE, LAYOUT, INVERSE };
/* The left side of a requirement: a generic parameter, given in the text after the letter; an associated type of such a parameter; a chain
 * of associated types of it; or a type on the stack. */
enum subject { PARAMETER, MEMBER, PATH, ON_STACK };

/* Kinds of requirements, by the letter after `R`; any other letter begins the parameter that conforms to a protocol. */
static const struct {
    char letter;
    enum relation relation;
    enum subject subject;
} requirements[] = {
    {'p', CONFORMS, MEMBER}, {'P', CONFORMS, PATH}, {'Q', CONFORMS, ON_STACK}, {'b', INHERITS, PARAMETER},
    {'c', INHERITS, MEMBER}, {'C', INHERITS, PATH}, {'B', INHERITS, ON_STACK}, {'s', SAME, PARAMETER},
    {'t', SAME, MEMBER},     {'T', SAME, PATH},     {'S', SAME, ON_STACK},     {'l', LAYOUT, PARAMETER},
    {'m', LAYOUT, MEMBER},   {'M', LAYOUT, PATH},   {'L', LAYOUT, ON_STACK},   {'i', INVERSE, PARAMETER},
    {'j', INVERSE, MEMBER},  {'J', INVERSE, PATH},  {'I', INVERSE, ON_STACK},  {'h', SAME_SHAPE, PARAMETER},
};

/* Layout constraints, by their letter. */
static const struct {
    char letter;
    int numbers; /* size and alignment, which follow the letter and are not printed */
    const char *name;
} layouts[] = {
    {'A', 0, "AnyReference"},
    {'B', 0, "_BridgeObject"},
    {'C', 0, "AnyObject"},
    {'D', 0, "_NativeClass"},
    {'E', 2, "_Trivial"},
    {'M', 2, "_TrivialAtMost"},
    {'N', 0, "_NativeRefCountedObject"},
    {'R', 0, "_RefCountedObject"},
    {'S', 1, "_TrivialStride"},
    {'T', 0, "_Trivial"},
    {'U', 0, "_UnknownLayout"},
    {'e', 1, "_Trivial"},
    {'m', 1, "_TrivialAtMost"},
};

/* Reads a layout constraint; the sizes and alignments that some have are not printed. NULL if its letter is unknown or a number is
 * missing. */
static struct swift_node *layout(struct swift_reader *r)
{
    uint32_t number;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (!reader_eat(r, layouts[i].letter))
            continue;
        for (int n = 0; n < layouts[i].numbers; n++)
            if (!reader_index(r, &number))
                return NULL;
        return node_write(r, N_LITERAL, layouts[i].name);
    }
    return NULL;
}

/* Reads the left side of a requirement; `kind` says what it is and whether it is on the stack or in the text. */
static struct swift_node *read_subject(struct swift_reader *r, enum subject kind)
{
    struct swift_node *base = kind == ON_STACK ? reader_pop_type(r) : generic_parameter(r);
    if (!base || kind == PARAMETER || kind == ON_STACK)
        return base;
    return reader_substitutable(r, kind == MEMBER ? generic_member(r, base) : generic_path(r, base));
}

/* Reads a requirement of a signature, such as "A: Equatable": a left side (`subject`), its relation, and a right side (`object`). */
static struct swift_node *requirement(struct swift_reader *r, enum relation relation, enum subject kind)
{
    uint32_t bit = 0;
    if (relation == INVERSE && !reader_index(r, &bit)) /* which protocol it does not conform to: 0 Copyable */
        return NULL;
    struct swift_node *subject = read_subject(r, kind), *object = NULL;
    if (!subject)
        return NULL;
    switch (relation) {
    case CONFORMS: object = reader_pop_protocol(r); break;
    case LAYOUT: object = layout(r); break;
    case INVERSE: object = node_write(r, N_LITERAL, bit ? "~Escapable" : "~Copyable"); break;
    default: object = reader_pop_type(r);
    }
    const char *text = relation == SAME ? " == " : relation == SAME_SHAPE ? ".shape == " : ": ";
    return node_add(r, node_add(r, node_write(r, N_REQUIREMENT, text), subject), object);
}

/* Reads what follows `R`: v marks a generic parameter as a pack, V as a value; other letters are kinds of requirements; any other character
 * begins a parameter that conforms to the protocol on the stack. */
struct swift_node *generic_requirement(struct swift_reader *r)
{
    struct swift_node *type;
    if (reader_eat(r, 'v'))
        return node_with_child(r, N_PACK_MARKER, generic_parameter(r));
    if (reader_eat(r, 'V')) {
        type = reader_pop_type(r);
        return type ? node_pair(r, N_VALUE_MARKER, generic_parameter(r), type) : NULL;
    }
    for (size_t i = 0; i < sizeof requirements / sizeof *requirements; i++)
        if (reader_eat(r, requirements[i].letter))
            return requirement(r, requirements[i].relation, requirements[i].subject);
    return requirement(r, CONFORMS, PARAMETER);
}

/* Pops a requirement or the mark of a pack or value parameter; NULL if something else is on top of the stack. */
static struct swift_node *pop_clause(struct swift_reader *r)
{
    const struct swift_node *top = reader_top(r);
    bool clause = top && (top->kind == N_REQUIREMENT || top->kind == N_PACK_MARKER || top->kind == N_VALUE_MARKER);
    return clause ? reader_pop(r) : NULL;
}

/* Reads a generic signature: the number of parameters of each list, the outermost first, up to `l`; z is the number 0. Without `counts` it
 * reads nothing: there is one list with one parameter. Then it pops the requirements. */
struct swift_node *generic_signature(struct swift_reader *r, bool counts)
{
    struct swift_node *signature = node_new(r, N_SIGNATURE), *clause;
    if (!counts)
        signature = node_add(r, signature, node_number(r, N_PARAMETER_COUNT, 1));
    while (counts && signature && !reader_eat(r, 'l')) {
        uint32_t count = 0;
        if (!reader_eat(r, 'z') && (!reader_index(r, &count) || !++count)) /* mangled as one less */
            return NULL;
        signature = node_add(r, signature, node_number(r, N_PARAMETER_COUNT, count));
    }
    uint32_t lists = signature ? signature->count : 0;
    while ((clause = pop_clause(r)))
        signature = node_add(r, signature, clause);
    return node_reverse(signature, lists); /* they were popped from the last to the first */
}

/* ---- conformances ---- */

/* Pops a conformance: type, protocol, module, and for a generic type a signature. Returns what is printed of it: the type, after its
 * signature if there is one. */
struct swift_node *generic_conformance(struct swift_reader *r)
{
    struct swift_node *signature = reader_pop_kind(r, N_SIGNATURE);
    if (!reader_pop_module(r) || !reader_pop_protocol(r))
        return NULL;
    struct swift_node *type = reader_pop_type(r);
    return type && signature ? node_pair(r, N_GENERIC_TYPE, signature, type) : type;
}

struct swift_node *generic_proof(struct swift_reader *r)
{
    return reader_pop_kind(r, N_CONFORMANCE);
}

/* Pops a list of proofs (N_CONFORMANCE) that types conform to protocols; false if there is neither a proof nor the mark of an empty
 * list. */
static bool pop_proofs(struct swift_reader *r)
{
    if (reader_pop_kind(r, N_EMPTY_LIST))
        return true;
    for (bool first = false; !first;) { /* the first of the list, marked by N_FIRST_ELEMENT, is popped last */
        first = reader_pop_kind(r, N_FIRST_ELEMENT);
        if (!generic_proof(r))
            return false;
    }
    return true;
}

/* Pops the declaration of a conformance that a proof refers to: a reference, or a protocol and a module. */
static bool pop_proof_reference(struct swift_reader *r)
{
    return reader_pop_kind(r, N_CONFORMANCE_REF) || (reader_pop_module(r) && reader_pop_protocol(r));
}

/* Reads and pops the operands of a proof that a type conforms to a protocol; `c` is its kind: A of an associated type, C of a concrete
 * type, D of a generic parameter, I by inheritance between protocols, O of an opaque type, X of a pack. They are only checked, as proofs
 * are not printed. False if they are malformed. */
static bool pop_proof(struct swift_reader *r, char c)
{
    uint32_t index;
    switch (c) {
    case 'A': return reader_index(r, &index) && reader_pop_protocol(r) && reader_pop_type(r) && generic_proof(r);
    case 'C': return pop_proofs(r) && pop_proof_reference(r) && reader_pop_type(r);
    case 'D': return reader_index(r, &index) && reader_pop_protocol(r) && reader_pop_type(r);
    case 'I': return reader_index(r, &index) && reader_pop_protocol(r) && generic_proof(r);
    case 'O': return reader_pop_type(r) && generic_proof(r);
    case 'X': return pop_proofs(r);
    default: return false;
    }
}

struct swift_node *generic_proof_operator(struct swift_reader *r, char c)
{
    if (c == 'P' || c == 'p')
        return reader_pop_protocol(r) ? node_new(r, N_CONFORMANCE_REF) : NULL;
    return pop_proof(r, c) ? node_new(r, N_CONFORMANCE) : NULL;
}

struct swift_node *generic_retroactive(struct swift_reader *r)
{
    uint32_t index;
    return reader_index(r, &index) && generic_proof(r) ? node_new(r, N_RETROACTIVE) : NULL;
}

/* ---- bound types ---- */

/* Pops the generic arguments of a type: a list for the type itself and one for each type around it, innermost first. N_FIRST_ELEMENT
 * separates lists on the stack, N_EMPTY_LIST is below the last one. */
struct swift_node *generic_arguments(struct swift_reader *r)
{
    struct swift_node *lists = node_new(r, N_LIST), *type;
    while (reader_pop_kind(r, N_RETROACTIVE)) /* conformances of the arguments, which are not printed */
        ;
    while (lists && lists->count < MAX_LEVELS) {
        struct swift_node *list = node_new(r, N_LIST);
        while (list && (type = reader_pop_type(r)))
            list = node_add(r, list, type);
        lists = node_add(r, lists, node_reverse(list, 0)); /* popped from the last to the first */
        if (reader_pop_kind(r, N_EMPTY_LIST))
            return lists;
        if (!reader_pop_kind(r, N_FIRST_ELEMENT))
            return NULL;
    }
    return NULL;
}

/* True if one of the lists of generic arguments is for this declaration itself; variables, closures and the like have none. */
static bool takes_arguments(const struct swift_node *node)
{
    switch (node->kind) {
    case N_VARIABLE:
    case N_SUBSCRIPT:
    case N_CLOSURE:
    case N_PART_OF:
    case N_STATIC: return false;
    default: return true;
    }
}

/* Returns a copy of a context whose parent is bound to the argument lists from index `from` on. Back references may share the node itself,
 * so that is not changed. */
static struct swift_node *bind_parent(struct swift_reader *r, const struct swift_node *node,
                                      const struct swift_node *lists, uint32_t from)
{
    struct swift_node *parent = generic_bind(r, node_child(node, 0), lists, from), *copy = node_copy(r, node);
    if (!parent || !copy)
        return NULL;
    copy->children[0] = parent;
    return copy;
}

/* Takes a list for `nominal` if it can have arguments, and gives the next ones to the declarations around it. The recursion ends with the
 * lists (at most MAX_LEVELS), and r->depth limits contexts that have no arguments themselves. */
struct swift_node *generic_bind(struct swift_reader *r, struct swift_node *nominal, const struct swift_node *lists,
                                uint32_t from)
{
    enum { MAX_CONTEXTS = 256 };
    struct swift_node *result = NULL;
    /* without children (count) it is no declaration */
    if (!nominal || !nominal->count || from >= lists->count || ++r->depth > MAX_CONTEXTS)
        return NULL;
    struct swift_node *arguments = lists->children[from];
    if (nominal->kind == N_EXTENSION || !takes_arguments(nominal)) { /* the list is for the declaration around it */
        result = bind_parent(r, nominal, lists, from);
    } else {
        if (from + 1 < lists->count)
            nominal = bind_parent(r, nominal, lists, from + 1);
        /* only a type or function can have arguments */
        bool bindable = nominal && (node_is_nominal(nominal) || nominal->kind == N_FUNCTION || nominal->kind == N_INIT);
        enum node_kind kind = bindable && !node_is_nominal(nominal) ? N_BOUND_FUNCTION : N_BOUND;
        if (nominal && !arguments->count) /* it is not generic itself */
            result = nominal;
        else if (bindable)
            result = node_pair(r, kind, nominal, arguments);
    }
    r->depth--;
    return result;
}

/* Makes a type with generic arguments, "Array<Int>", of the type and the argument lists on the stack. */
struct swift_node *generic_bound(struct swift_reader *r)
{
    struct swift_node *lists = generic_arguments(r);
    return lists ? reader_substitutable(r, generic_bind(r, reader_pop_nominal(r), lists, 0)) : NULL;
}
