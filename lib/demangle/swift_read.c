/* Reader of the Swift mangling since Swift 4 (docs/ABI/Mangling.rst of Swift): postfix operators that work on a stack of nodes. */
#include "demangle/swift_tree.h"

/* ---- operators of one character ---- */

static struct swift_node *class_type(struct swift_reader *r)
{
    return entity_nominal(r, N_CLASS);
}

static struct swift_node *struct_type(struct swift_reader *r)
{
    return entity_nominal(r, N_STRUCT);
}

static struct swift_node *enum_type(struct swift_reader *r)
{
    return entity_nominal(r, N_ENUM);
}

static struct swift_node *protocol_type(struct swift_reader *r)
{
    return entity_nominal(r, N_PROTOCOL);
}

static struct swift_node *alias_type(struct swift_reader *r)
{
    return entity_nominal(r, N_ALIAS);
}

static struct swift_node *function_type(struct swift_reader *r)
{
    return type_function(r, "");
}

static struct swift_node *in_out(struct swift_reader *r)
{
    return node_marked(r, "inout ", reader_pop_type(r));
}

static struct swift_node *shared(struct swift_reader *r)
{
    return node_marked(r, "__shared ", reader_pop_type(r));
}

static struct swift_node *owned(struct swift_reader *r)
{
    return node_marked(r, "__owned ", reader_pop_type(r));
}

static struct swift_node *swift_read_metatype(struct swift_reader *r)
{
    return node_with_child(r, N_METATYPE, reader_pop_type(r));
}

static struct swift_node *type_metadata(struct swift_reader *r)
{
    return node_phrase(r, "type metadata for ", reader_pop_type(r), NULL, NULL);
}

static struct swift_node *throwing(struct swift_reader *r)
{
    return node_effect(r, EFFECT_THROWS, "");
}

static struct swift_node *swift_read_composition(struct swift_reader *r)
{
    return node_put(r, node_with_child(r, N_COMPOSITION, type_protocols(r)), NULL);
}

static struct swift_node *signature_of_one(struct swift_reader *r)
{
    return generic_signature(r, false);
}

static struct swift_node *signature_of_many(struct swift_reader *r)
{
    return generic_signature(r, true);
}

static struct swift_node *generic_type(struct swift_reader *r)
{
    struct swift_node *signature = reader_pop_kind(r, N_SIGNATURE);
    return signature ? node_pair(r, N_GENERIC_TYPE, signature, reader_pop_type(r)) : NULL;
}

static struct swift_node *first_parameter(struct swift_reader *r)
{
    return node_parameter(r, 0, 0);
}

static struct swift_node *swift_module(struct swift_reader *r)
{
    return node_write(r, N_MODULE, "Swift");
}

static struct swift_node *static_entity(struct swift_reader *r)
{
    return node_with_child(r, N_STATIC, reader_pop_entity(r));
}

static struct swift_node *empty_list(struct swift_reader *r)
{
    return node_new(r, N_EMPTY_LIST);
}

static struct swift_node *first_element(struct swift_reader *r)
{
    return node_new(r, N_FIRST_ELEMENT);
}

static struct swift_node *variadic(struct swift_reader *r)
{
    return node_new(r, N_VARIADIC);
}

static struct swift_node *identifier(struct swift_reader *r)
{
    r->at--; /* name_identifier() reads the digit itself */
    return name_identifier(r);
}

static struct swift_node *(*const operators[128])(struct swift_reader *r) = {
    ['$'] = type_integer,
    ['0' ... '9'] = identifier,
    ['A'] = name_substitution,
    ['B'] = type_builtin,
    ['C'] = class_type,
    ['D'] = entity_type_mangling,
    ['E'] = entity_extension,
    ['F'] = entity_function,
    ['G'] = generic_bound,
    ['H'] = global_record,
    ['I'] = impl_function,
    ['K'] = throwing,
    ['L'] = name_local,
    ['M'] = global_metadata,
    ['N'] = type_metadata,
    ['O'] = enum_type,
    ['P'] = protocol_type,
    ['Q'] = type_archetype,
    ['R'] = generic_requirement,
    ['S'] = name_standard_type,
    ['T'] = thunk_operator,
    ['V'] = struct_type,
    ['W'] = global_witness,
    ['X'] = type_special,
    ['Y'] = type_annotation,
    ['Z'] = static_entity,
    ['_'] = first_element,
    ['a'] = alias_type,
    ['c'] = function_type,
    ['d'] = variadic,
    ['f'] = entity_part,
    ['g'] = generic_retroactive,
    ['h'] = shared,
    ['i'] = entity_subscript,
    ['l'] = signature_of_one,
    ['m'] = swift_read_metatype,
    ['n'] = owned,
    ['o'] = name_fixity,
    ['p'] = swift_read_composition,
    ['q'] = generic_parameter,
    ['r'] = signature_of_many,
    ['s'] = swift_module,
    ['t'] = type_tuple,
    ['u'] = generic_type,
    ['v'] = entity_variable,
    ['w'] = global_value_witness,
    ['x'] = first_parameter,
    ['y'] = empty_list,
    ['z'] = in_out,
};

/* ---- the symbol ---- */

static bool is_attribute(const struct swift_node *node)
{
    return node && (node->kind == N_ATTRIBUTE || node->kind == N_SPECIALIZED);
}

/* True for nodes that can be a whole symbol; any other is an operand that no operator has used. */
static bool is_symbol(const struct swift_node *node)
{
    return node_is_type(node) || (node_is_context(node) && node->kind != N_MODULE && node->kind != N_ANONYMOUS) ||
           (node && (node->kind == N_PHRASE || node->kind == N_TYPE_MANGLING));
}

/* Pops the symbol and its attributes; returns a list of the attributes, outermost first, and last the symbol. NULL if the stack has
 * anything else, because then some operator was not understood. */
static struct swift_node *whole(struct swift_reader *r)
{
    struct swift_node *symbol = node_new(r, N_LIST);
    while (symbol && is_attribute(reader_top(r)))
        symbol = node_add(r, symbol, reader_pop(r));
    struct swift_node *entity = reader_pop(r);
    return is_symbol(entity) && !r->stack->count ? node_add(r, symbol, entity) : NULL;
}

/* The first character of each operator selects its function, which pops the operands from the stack; its result is pushed. */
struct swift_node *swift_read(struct swift_reader *r)
{
    while (r->at < r->text.size && r->text.data[r->at] != '.') { /* a dot begins a suffix appended by tools */
        unsigned char c = (unsigned char)reader_next(r);
        struct swift_node *(*operator)(struct swift_reader *) = c < 128 ? operators[c] : NULL;
        if (!operator|| !reader_push(r, operator(r)))
            return NULL;
    }
    return whole(r);
}
