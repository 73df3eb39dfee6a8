/* Symbols of the Swift runtime, since Swift 4. The mangling is postfix: the operands of an operator are already on the reader's stack.
 * Metadata, records, witness tables, outlined operations on values. Functions return NULL if an operand is missing or malformed, or memory
 * is short. */
#include "demangle/swift_tree.h"

/* The kind of node that an operator pops. ANYTHING: an entity, or an N_PHRASE that another operator made. */
enum operand { TYPE, NOMINAL, ENTITY, PROTOCOL, CONFORMANCE, ANYTHING };

/* An operator, by its last letter, whose symbol is printed as `text` and its operand. */
struct phrase {
    char letter; /* 0 ends a table */
    enum operand operand;
    const char *text;
};

static const struct phrase metadata[] = {
    {'A', CONFORMANCE, "reflection metadata associated type descriptor "},
    {'B', TYPE, "reflection metadata builtin descriptor "},
    {'C', NOMINAL, "reflection metadata superclass descriptor "},
    {'D', TYPE, "demangling cache variable for type metadata for "},
    {'F', TYPE, "reflection metadata field descriptor "},
    {'I', TYPE, "type metadata instantiation cache for "},
    {'J', ANYTHING, "cache variable for noncanonical specialized generic type metadata for "},
    {'K', ANYTHING, "metadata instantiation cache for "},
    {'L', TYPE, "lazy cache variable for type metadata for "},
    {'M', TYPE, "specialized generic metaclass for "},
    {'N', TYPE, "noncanonical specialized generic type metadata for "},
    {'P', TYPE, "generic type metadata pattern for "},
    {'Q', ANYTHING, "opaque type descriptor for "},
    {'S', PROTOCOL, "protocol self-conformance descriptor for "},
    {'U', TYPE, "ObjC metadata update function for "},
    {'V', ENTITY, "property descriptor for "},
    {'a', TYPE, "type metadata accessor for "},
    {'b', TYPE, "canonical specialized generic type metadata accessor for "},
    {'c', CONFORMANCE, "protocol conformance descriptor for "},
    {'f', TYPE, "full type metadata for "},
    {'g', ANYTHING, "opaque type descriptor accessor for "},
    {'h', ANYTHING, "opaque type descriptor accessor impl for "},
    {'i', TYPE, "type metadata instantiation function for "},
    {'j', ANYTHING, "opaque type descriptor accessor key for "},
    {'k', ANYTHING, "opaque type descriptor accessor var for "},
    {'l', TYPE, "type metadata singleton initialization cache for "},
    {'m', TYPE, "metaclass for "},
    {'n', TYPE, "nominal type descriptor for "},
    {'o', TYPE, "class metadata base offset for "},
    {'p', PROTOCOL, "protocol descriptor for "},
    {'q', ANYTHING, "uniquable prefix for "},
    {'r', TYPE, "type metadata completion function for "},
    {'s', TYPE, "ObjC resilient class stub for "},
    {'t', TYPE, "full ObjC resilient class stub for "},
    {'u', TYPE, "method lookup function for "},
    {'z', TYPE, "flag for loading of canonical specialized generic type metadata for "},
    {0, TYPE, NULL},
};

static const struct phrase records[] = {
    {'c', CONFORMANCE, "protocol conformance descriptor runtime record for "},
    {'n', TYPE, "nominal type descriptor runtime record for "},
    {'o', ANYTHING, "opaque type descriptor runtime record for "},
    {'r', PROTOCOL, "protocol descriptor runtime record for "},
    {0, TYPE, NULL},
};

static const struct phrase witnesses[] = {
    {'C', ENTITY, "enum case for "},
    {'G', CONFORMANCE, "generic protocol witness table for "},
    {'I', CONFORMANCE, "instantiation function for generic protocol witness table for "},
    {'P', CONFORMANCE, "protocol witness table for "},
    {'S', PROTOCOL, "protocol self-conformance witness table for "},
    {'V', TYPE, "value witness table for "},
    {'a', CONFORMANCE, "protocol witness table accessor for "},
    {'p', CONFORMANCE, "protocol witness table pattern for "},
    {'r', CONFORMANCE, "resilient protocol witness table for "},
    {0, TYPE, NULL},
};

static const struct phrase offsets[] = {
    {'d', ENTITY, "direct field offset for "},
    {'i', ENTITY, "indirect field offset for "},
    {0, TYPE, NULL},
};

static const struct phrase outlined[] = {
    {'B', TYPE, "outlined init with take of "},
    {'C', TYPE, "outlined init with copy of "},
    {'D', TYPE, "outlined assign with take of "},
    {'F', TYPE, "outlined assign with copy of "},
    {'H', TYPE, "outlined destroy of "},
    {'b', TYPE, "outlined init with take of "},
    {'c', TYPE, "outlined init with copy of "},
    {'d', TYPE, "outlined assign with take of "},
    {'e', TYPE, "outlined consume of "},
    {'f', TYPE, "outlined assign with copy of "},
    {'g', TYPE, "outlined enum get tag of "},
    {'h', TYPE, "outlined destroy of "},
    {'i', TYPE, "outlined enum tag store of "},
    {'j', TYPE, "outlined enum project data of "},
    {'r', TYPE, "outlined retain of "},
    {'s', TYPE, "outlined release of "},
    {'y', TYPE, "outlined copy of "},
    {0, TYPE, NULL},
};

/* Pops an operand of this kind; NULL if another kind of node is on top of the stack. */
static struct swift_node *pop_operand(struct swift_reader *r, enum operand operand)
{
    switch (operand) {
    case TYPE: return reader_pop_type(r);
    case NOMINAL: return reader_pop_nominal(r);
    case ENTITY: return reader_pop_entity(r);
    case PROTOCOL: return reader_pop_protocol(r);
    case CONFORMANCE: return generic_conformance(r);
    case ANYTHING: return reader_top(r) && reader_top(r)->kind == N_PHRASE ? reader_pop(r) : reader_pop_entity(r);
    }
    return NULL;
}

/* Makes the symbol for letter `c` of a table with the operand on the stack; NULL if the letter is not in the table or the operand
 * missing. */
static struct swift_node *from_table(struct swift_reader *r, const struct phrase *table, char c)
{
    for (; table->letter; table++)
        if (table->letter == c)
            return node_phrase(r, table->text, pop_operand(r, table->operand), NULL, NULL);
    return NULL;
}

/* ---- metadata and records ---- */

/* Reads a letter and makes the descriptor of the context on the stack: E an extension, M a module, X or Y a context without a name (Y with
 * an identifier, which is not printed). */
static struct swift_node *context_descriptor(struct swift_reader *r)
{
    switch (reader_next(r)) {
    case 'E': return node_phrase(r, "extension descriptor ", reader_pop_context(r), NULL, NULL);
    case 'M': return node_phrase(r, "module descriptor ", reader_pop_module(r), NULL, NULL);
    case 'Y':
        if (!reader_pop_name(r))
            return NULL;
        return node_phrase(r, "anonymous descriptor ", reader_pop_context(r), NULL, NULL);
    case 'X': return node_phrase(r, "anonymous descriptor ", reader_pop_context(r), NULL, NULL);
    default: return NULL;
    }
}

/* Reads the letter after `M`: X a context descriptor, others in the table `metadata`. */
struct swift_node *global_metadata(struct swift_reader *r)
{
    char c = reader_next(r);
    return c == 'X' ? context_descriptor(r) : from_table(r, metadata, c);
}

/* Reads the letter after `H`: F is an attribute that is not printed; others are proofs of conformances or in the table `records`. */
struct swift_node *global_record(struct swift_reader *r)
{
    char c = reader_next(r);
    if (c == 'F')
        return node_write(r, N_ATTRIBUTE, "");
    struct swift_node *proof = generic_proof_operator(r, c);
    return proof ? proof : from_table(r, records, c);
}

/* ---- witnesses ---- */

static const struct {
    char code[3];
    const char *name;
} value_witnesses[] = {
    {"al", "allocateBuffer"},
    {"ca", "assignWithCopy"},
    {"ta", "assignWithTake"},
    {"de", "deallocateBuffer"},
    {"xx", "destroy"},
    {"XX", "destroyBuffer"},
    {"Xx", "destroyArray"},
    {"CP", "initializeBufferWithCopyOfBuffer"},
    {"Cp", "initializeBufferWithCopy"},
    {"cp", "initializeWithCopy"},
    {"TK", "initializeBufferWithTakeOfBuffer"},
    {"Tk", "initializeBufferWithTake"},
    {"tk", "initializeWithTake"},
    {"pr", "projectBuffer"},
    {"xs", "storeExtraInhabitant"},
    {"xg", "getExtraInhabitantIndex"},
    {"Cc", "initializeArrayWithCopy"},
    {"Tt", "initializeArrayWithTakeFrontToBack"},
    {"tT", "initializeArrayWithTakeBackToFront"},
    {"ug", "getEnumTag"},
    {"up", "destructiveProjectEnumData"},
    {"ui", "destructiveInjectEnumTag"},
    {"et", "getEnumTagSinglePayload"},
    {"st", "storeEnumTagSinglePayload"},
};

const char *global_value_witness_name(char first, char second)
{
    for (size_t i = 0; i < sizeof value_witnesses / sizeof *value_witnesses; i++)
        if (value_witnesses[i].code[0] == first && value_witnesses[i].code[1] == second)
            return value_witnesses[i].name;
    return NULL;
}

/* Reads a two-letter code and makes "destroy for Type": a function that copies, moves or destroys values of the type on the stack. */
struct swift_node *global_value_witness(struct swift_reader *r)
{
    char first = reader_next(r);
    const char *name = global_value_witness_name(first, reader_next(r));
    return name ? node_phrase(r, name, node_phrase(r, " for ", reader_pop_type(r), NULL, NULL), NULL, NULL) : NULL;
}

/* Makes "<text>A and conformance B" of the operands: a type A, and a conformance whose type is B. */
static struct swift_node *lazy_table(struct swift_reader *r, const char *text)
{
    struct swift_node *conforming = generic_conformance(r);
    return conforming ? node_phrase(r, text, reader_pop_type(r), " and conformance ", conforming) : NULL;
}

/* Makes "associated type metadata accessor for Name in Type" of the operands: a conformance and a name. */
static struct swift_node *associated_type(struct swift_reader *r)
{
    struct swift_node *name = reader_pop_name(r);
    return name ? node_phrase(r, "associated type metadata accessor for ", name, " in ", generic_conformance(r)) : NULL;
}

/* Makes "associated type witness table accessor for A.B : Protocol in Type" of the operands: a conformance, a chain of associated types,
 * and a protocol. */
static struct swift_node *associated_table(struct swift_reader *r)
{
    struct swift_node *protocol = reader_pop_protocol(r);
    if (!protocol)
        return NULL;
    struct swift_node *path = generic_names(r);
    struct swift_node *phrase = node_phrase(r, "associated type witness table accessor for ", path, " : ", protocol);
    return path ? node_add(r, node_add(r, phrase, node_write(r, N_LITERAL, " in ")), generic_conformance(r)) : NULL;
}

/* Makes "base witness table accessor for Protocol in Type" of the operands: a conformance and a protocol. */
static struct swift_node *base_table(struct swift_reader *r)
{
    struct swift_node *protocol = reader_pop_protocol(r);
    return protocol ? node_phrase(r, "base witness table accessor for ", protocol, " in ", generic_conformance(r))
                    : NULL;
}

/* Reads the letter of an outlined operation on values of the type on the stack. A generic signature after the type is not printed. */
static struct swift_node *outlined_operation(struct swift_reader *r)
{
    reader_pop_kind(r, N_SIGNATURE);
    return from_table(r, outlined, reader_next(r));
}

/* Makes the symbol for an initialiser that runs once for all variables of a declaration: `text` and the name, or the names in brackets. On
 * the stack are a context, which is not printed, and the names, each followed by N_FIRST_ELEMENT. */
static struct swift_node *once(struct swift_reader *r, const char *text)
{
    struct swift_node *names = node_new(r, N_LIST);
    while (reader_pop_kind(r, N_FIRST_ELEMENT))
        names = node_add(r, names, reader_pop_name(r));
    struct swift_node *context = names && names->count ? reader_pop_context(r) : NULL;
    if (!context || names->count == 1)
        return context ? node_phrase(r, text, names->children[0], NULL, NULL) : NULL;
    struct swift_node *phrase = node_phrase(r, text, node_write(r, N_LITERAL, "("), "", node_reverse(names, 0));
    return node_add(r, phrase, node_write(r, N_LITERAL, ")"));
}

/* Reads a differentiability witness of the entity on the stack: its kind, and which parameters (`p`) and results (`r`) it is for, which is
 * not printed. A generic signature is not printed either. */
static struct swift_node *differentiability(struct swift_reader *r)
{
    char kind = reader_next(r);
    reader_pop_kind(r, N_SIGNATURE);
    const char *text = kind == 'f'   ? "forward-mode differentiability witness for "
                       : kind == 'r' ? "reverse-mode differentiability witness for "
                       : kind == 'd' ? "normal differentiability witness for "
                       : kind == 'l' ? "linear differentiability witness for "
                                     : NULL;
    return text && reader_subset(r, 'p') && reader_subset(r, 'r')
               ? node_phrase(r, text, reader_pop_entity(r), NULL, NULL)
               : NULL;
}

/* Reads the letter after `W`, for a symbol of witness tables, an outlined operation, or a one-time initializer. */
struct swift_node *global_witness(struct swift_reader *r)
{
    char c = reader_next(r);
    switch (c) {
    case 'J': return differentiability(r);
    case 'L': return lazy_table(r, "lazy protocol witness table cache variable for type ");
    case 'l': return lazy_table(r, "lazy protocol witness table accessor for type ");
    case 'O': return outlined_operation(r);
    case 'T': return associated_table(r);
    case 'Z': return once(r, "one-time initialization function for ");
    case 'b': return base_table(r);
    case 't': return associated_type(r);
    case 'v': return from_table(r, offsets, reader_next(r));
    case 'z': return once(r, "one-time initialization token for ");
    default: return from_table(r, witnesses, c);
    }
}
