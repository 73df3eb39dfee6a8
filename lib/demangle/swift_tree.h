/* The tree that connects the readers of the Swift manglings (swift_read.c since Swift 4, swift_old.c before) with the printer.
 *
 * A node has a kind, a text or a number (`index`), and children; the comment at each kind lists what it has. A child that a comment
 * calls "or NULL" may be missing. A back reference (substitution) is the node itself: nodes that two others share never change. So it is a
 * directed acyclic graph, whose text may be exponentially long. Everything lives in the reader's arena.
 *
 * What is never printed (modules of conformances, specialised types, where clauses) is parsed and checked, but is not in the tree. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum node_kind {
    /* Marks on the reader's stack. */
    N_EMPTY_LIST,
    N_FIRST_ELEMENT, /* lies above the first element of a list, where popping ends; among labels: a missing one */
    N_VARIADIC,
    N_EFFECT, /* index: enum effect; text: as printed, or else child: the global actor or the type of error thrown */

    /* Names of declarations. */
    N_IDENTIFIER,
    N_LOCAL_NAME,   /* index: number among equal names, from 0; child: name */
    N_PRIVATE_NAME, /* child: name, or NULL for a declaration without a name */
    N_RELATED_NAME, /* text: letter for the relation; child: name */
    N_OPERATOR,     /* text: "+ infix" */

    /* Parts of types. */
    N_LIST,
    N_LABELS,          /* children: a label each, N_IDENTIFIER, or N_FIRST_ELEMENT if it is missing */
    N_TUPLE_ELEMENT,   /* text: label; index: 1 = variadic; child: type */
    N_ASSOCIATED_NAME, /* children: identifier, protocol or NULL */
    N_SIGNATURE, /* children: N_PARAMETER_COUNT of each depth, then N_PACK_MARKER, N_VALUE_MARKER, N_REQUIREMENT */
    N_PARAMETER_COUNT, /* index: number of generic parameters */
    N_PACK_MARKER,     /* child: generic parameter */
    N_VALUE_MARKER,    /* children: generic parameter, type */
    N_REQUIREMENT,     /* text: relation (": "); children: left side, right side */
    N_CONFORMANCE,     /* a proof that a type conforms to a protocol; never printed */
    N_CONFORMANCE_REF,
    N_RETROACTIVE,
    N_IMPL_ATTRIBUTE, /* text: attribute of a function type of SIL */
    N_IMPL_PARAMETER, /* text: convention; child: type */
    N_IMPL_RESULT,    /* text: convention; child: type */

    /* Whole symbols. */
    N_ATTRIBUTE,     /* text, printed before the symbol */
    N_SPECIALIZED,   /* the word "specialized", printed once a symbol, however often it occurs */
    N_PHRASE,        /* children, printed one after the other */
    N_LITERAL,       /* text within a phrase */
    N_TYPE_MANGLING, /* children: labels or NULL, type */

    /* Contexts. Unless a comment lists others, they have four children: context, name, labels, type; NULL if absent. */
    N_MODULE,
    N_FIRST_CONTEXT = N_MODULE,
    N_EXTENSION, /* children: extended type, signature or NULL */
    N_ANONYMOUS, /* child: context */
    N_STATIC,    /* child: entity */
    N_FUNCTION,
    N_VARIABLE,
    N_SUBSCRIPT,
    N_ACCESSOR, /* text: "getter" and the like; child: the variable or subscript */
    N_INIT,     /* index: 1 = allocating */
    N_DEINIT, /* text: "deinit" and the like; index: 1 = deallocating, printed as "deinit" unless the context is a class */
    N_CLOSURE, /* text: "closure #" and the like; index: number from 0 */
    N_PART_OF, /* text: code that belongs to the context, as "default argument "; index: its number, NO_INDEX = none */
    N_MACRO,
    N_EXPANSION, /* text: kind of macro expansion; index: number from 0 */
    N_OPAQUE_OF, /* child: entity whose result type is opaque */

    /* Contexts that are types. */
    N_CLASS,
    N_FIRST_TYPE = N_CLASS,
    N_STRUCT,
    N_ENUM,
    N_PROTOCOL,
    N_ALIAS,
    N_OTHER_NOMINAL,
    N_LAST_NOMINAL = N_OTHER_NOMINAL,
    N_BOUND,          /* children: nominal type, N_LIST of type arguments */
    N_BOUND_FUNCTION, /* children: function, N_LIST of type arguments */
    N_LAST_CONTEXT = N_BOUND_FUNCTION,

    /* Types only. */
    N_BUILTIN,       /* text: name of the type */
    N_BUILTIN_OF,    /* text: name of the type; child: N_LIST of type arguments */
    N_PARAMETER,     /* generic parameter: depth, index */
    N_SELF,          /* `Self` of an existential type */
    N_MEMBER,        /* children: base type, N_ASSOCIATED_NAME or N_IDENTIFIER */
    N_GENERIC_TYPE,  /* children: signature, type */
    N_FUNCTION_TYPE, /* text: attribute; children: parameters, result, N_EFFECT... */
    N_IMPL_FUNCTION, /* function type of SIL; index: 1 = sending results; children: see impl_function() in swift_impl.c */
    N_TUPLE,         /* children: N_TUPLE_ELEMENT... */
    N_MARKED,        /* text, printed before the type; child: type */
    N_METATYPE,      /* text: representation; child: type */
    N_EXISTENTIAL_METATYPE,
    N_COMPOSITION, /* index: 1 = has AnyObject; children: N_LIST of protocols, superclass or NULL */
    N_CONSTRAINED, /* children: composition, N_LIST of requirements */
    N_DYNAMIC_SELF,
    N_OPAQUE_RESULT, /* `some` */
    N_OPAQUE,        /* index: number of the `some` in the declaration; child: N_OPAQUE_OF */
    N_PACK,          /* children: types */
    N_SUGAR,         /* text: `?` after one type, `[` or `(` around one, `:` between two; children: the types */
    N_INTEGER,       /* text: the number */
    N_BOX,           /* children: N_LIST of fields, signature or NULL, N_LIST of type arguments or NULL */
    N_ERROR,
    N_LAST_TYPE = N_ERROR,
};

enum effect {
    EFFECT_THROWS,
    EFFECT_ASYNC,
    EFFECT_SENDING,
    EFFECT_BEFORE, /* this effect and those after it are printed before the parameters, in this order */
    EFFECT_ISOLATION = EFFECT_BEFORE,
    EFFECT_DIFFERENTIABLE,
    EFFECT_SENDABLE,
    EFFECT_LAST = EFFECT_SENDABLE,
};

#define NO_INDEX UINT32_MAX

struct swift_node {
    enum node_kind kind;
    uint32_t index, depth; /* depth: for N_PARAMETER */
    struct sl_str text;
    struct swift_node **children;
    uint32_t count, capacity;
};

struct swift_reader {
    struct sl_arena arena;
    struct sl_str text;
    size_t at;
    struct swift_node *stack, *substitutions; /* each an N_LIST */
    struct sl_str words[26];
    unsigned word_count;
    unsigned nodes, depth;
    bool labels_in_types; /* argument labels are in the parameter tuple (Swift 4.0), not separate operands (later) */
};

/* ---- nodes (swift_tree.c); NULL when memory or the limit of nodes is exhausted, or when a required child is NULL ---- */

struct swift_node *node_new(struct swift_reader *r, enum node_kind kind);
struct swift_node *node_text(struct swift_reader *r, enum node_kind kind, struct sl_str text);
struct swift_node *node_write(struct swift_reader *r, enum node_kind kind, const char *text); /* static: not copied */
/* Makes a node whose text is formatted and copied into the reader's arena. */
struct swift_node *node_format(struct swift_reader *r, enum node_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
struct swift_node *node_number(struct swift_reader *r, enum node_kind kind, uint32_t index);
struct swift_node *node_copy(struct swift_reader *r, const struct swift_node *node);
/* Appends a child; returns `parent`, or NULL if either is NULL or when out of memory. */
struct swift_node *node_add(struct swift_reader *r, struct swift_node *parent, struct swift_node *child);
/* Appends a child, or NULL for an optional one that is absent. Returns `parent`; NULL if that is NULL or when out of memory. */
struct swift_node *node_put(struct swift_reader *r, struct swift_node *parent, struct swift_node *child);
struct swift_node *node_with_child(struct swift_reader *r, enum node_kind kind, struct swift_node *child);
struct swift_node *node_pair(struct swift_reader *r, enum node_kind kind, struct swift_node *first,
                             struct swift_node *second);
/* Makes a declaration; `name`, `labels` and `type` may be NULL. */
struct swift_node *node_entity(struct swift_reader *r, enum node_kind kind, struct swift_node *context,
                               struct swift_node *name, struct swift_node *labels, struct swift_node *type);
/* Makes a phrase of the text `before`, `first`, the text `between` and `second`; the last two are left out if `between` is NULL. */
struct swift_node *node_phrase(struct swift_reader *r, const char *before, struct swift_node *first,
                               const char *between, struct swift_node *second);
/* Makes the type `name` ("Int") of Swift's standard library. */
struct swift_node *node_standard(struct swift_reader *r, enum node_kind kind, const char *name);
struct swift_node *node_parameter(struct swift_reader *r, uint32_t depth, uint32_t index);
struct swift_node *node_optional(struct swift_reader *r, struct swift_node *type);
/* Makes a type that is printed with `prefix` ("inout ") in front of it. */
struct swift_node *node_marked(struct swift_reader *r, const char *prefix, struct swift_node *type);
struct swift_node *node_effect(struct swift_reader *r, enum effect effect, const char *text);
/* Reverses the children from index `from` on. */
struct swift_node *node_reverse(struct swift_node *node, uint32_t from);
struct swift_node *node_child(const struct swift_node *node, uint32_t index); /* NULL if there is no such child */
bool node_is_type(const struct swift_node *node);
bool node_is_nominal(const struct swift_node *node);
bool node_is_context(const struct swift_node *node);
bool node_is_name(const struct swift_node *node);

/* ---- names (swift_tree.c) ---- */

/* Decodes Swift's Punycode into the reader's arena; empty text if it is invalid or out of memory. */
struct sl_str name_punycode(struct swift_reader *r, struct sl_str text);
/* Returns the operator whose characters are encoded as letters, with its fixity (`i` infix, `p` prefix, `P` postfix) in words: "+ infix".
 * NULL if a letter or the fixity is invalid. */
struct swift_node *name_operator(struct swift_reader *r, struct sl_str letters, char fixity);

/* ---- text and stack (swift_stack.c) ---- */

char reader_peek(const struct swift_reader *r); /* '\0' at the end */
char reader_next(struct swift_reader *r);
bool reader_eat(struct swift_reader *r, char c);
bool reader_eat_text(struct swift_reader *r, const char *text);
bool reader_natural(struct swift_reader *r, uint32_t *value); /* false: no number, or too large */
bool reader_index(struct swift_reader *r, uint32_t *value);   /* `_` means 0, `0_` 1, `1_` 2 ... */
/* Reads a subset of a function's parameters or results: for each of them `S` if it is in the subset, else `U`; then `end`. */
bool reader_subset(struct swift_reader *r, char end);
/* Returns the next `size` bytes of the text and moves past them; empty if fewer are left. */
struct sl_str reader_take(struct swift_reader *r, uint32_t size);

struct swift_node *reader_push(struct swift_reader *r, struct swift_node *node);
struct swift_node *reader_top(const struct swift_reader *r);
struct swift_node *reader_pop(struct swift_reader *r);
struct swift_node *reader_pop_kind(struct swift_reader *r, enum node_kind kind);
struct swift_node *reader_pop_type(struct swift_reader *r);
struct swift_node *reader_pop_nominal(struct swift_reader *r);
struct swift_node *reader_pop_entity(struct swift_reader *r);
struct swift_node *reader_pop_name(struct swift_reader *r);
struct swift_node *reader_pop_module(struct swift_reader *r);
struct swift_node *reader_pop_context(struct swift_reader *r);
struct swift_node *reader_pop_protocol(struct swift_reader *r);
struct swift_node *reader_substitutable(struct swift_reader *r, struct swift_node *node);

/* ---- operators of the current mangling, by subject; the reader is past the first character; NULL: malformed, or out of memory ---- */

/* swift_name.c */
struct swift_node *name_identifier(struct swift_reader *r);    /* operators 0 to 9; the digit is not read yet */
struct swift_node *name_fixity(struct swift_reader *r);        /* operator o */
struct swift_node *name_local(struct swift_reader *r);         /* operator L */
struct swift_node *name_substitution(struct swift_reader *r);  /* operator A */
struct swift_node *name_standard_type(struct swift_reader *r); /* operator S */

/* swift_entity.c */
struct swift_node *entity_nominal(struct swift_reader *r, enum node_kind kind);
struct swift_node *entity_extension(struct swift_reader *r);     /* operator E */
struct swift_node *entity_function(struct swift_reader *r);      /* operator F */
struct swift_node *entity_variable(struct swift_reader *r);      /* operator v */
struct swift_node *entity_subscript(struct swift_reader *r);     /* operator i */
struct swift_node *entity_part(struct swift_reader *r);          /* operator f */
struct swift_node *entity_type_mangling(struct swift_reader *r); /* operator D */

/* swift_type.c */
struct swift_node *type_builtin(struct swift_reader *r); /* operator B */
/* Makes a function type of the effects, the parameters and the result on the stack; `attribute` is printed before it. */
struct swift_node *type_function(struct swift_reader *r, const char *attribute);
/* Returns the parameters of a function type, generic or not; NULL for other types. */
struct swift_node *type_parameter_tuple(const struct swift_node *type);
struct swift_node *type_tuple(struct swift_reader *r); /* operator t */
struct swift_node *type_list(struct swift_reader *r);
struct swift_node *type_protocols(struct swift_reader *r);
struct swift_node *type_special(struct swift_reader *r);    /* operator X */
struct swift_node *type_annotation(struct swift_reader *r); /* operator Y */
struct swift_node *type_archetype(struct swift_reader *r);  /* operator Q */
struct swift_node *type_integer(struct swift_reader *r);    /* operator $ */

/* swift_impl.c */
struct swift_node *impl_function(struct swift_reader *r); /* operator I */

/* swift_generic.c */
struct swift_node *generic_parameter(struct swift_reader *r);                       /* operator q */
struct swift_node *generic_member(struct swift_reader *r, struct swift_node *base); /* `base.A` */
struct swift_node *generic_path(struct swift_reader *r, struct swift_node *base);   /* `base.A.B` */
struct swift_node *generic_name(struct swift_reader *r);
struct swift_node *generic_names(struct swift_reader *r);                  /* associated types `A.B` without a base */
struct swift_node *generic_requirement(struct swift_reader *r);            /* operator R */
struct swift_node *generic_signature(struct swift_reader *r, bool counts); /* operators l, r */
/* Pops the operands of a conformance (type, protocol, module, perhaps a signature); returns the conforming type. */
struct swift_node *generic_conformance(struct swift_reader *r);
struct swift_node *generic_proof(struct swift_reader *r);                  /* pops an N_CONFORMANCE */
struct swift_node *generic_proof_operator(struct swift_reader *r, char c); /* H and the letter `c`; NULL if unknown */
struct swift_node *generic_retroactive(struct swift_reader *r);            /* operator g */
/* Pops the type arguments of a bound type: a list for it and for each type that it is declared in, innermost first; NULL if malformed. */
struct swift_node *generic_arguments(struct swift_reader *r);
struct swift_node *generic_bound(struct swift_reader *r); /* operator G */
/* Adds type arguments to `nominal` and to the types that it is declared in. `lists` has a list for each of them that can have arguments,
 * innermost first; the lists before index `from` belong to types inside of `nominal`. */
struct swift_node *generic_bind(struct swift_reader *r, struct swift_node *nominal, const struct swift_node *lists,
                                uint32_t from);

/* swift_global.c */
struct swift_node *global_metadata(struct swift_reader *r);      /* operator M */
struct swift_node *global_record(struct swift_reader *r);        /* operator H */
struct swift_node *global_witness(struct swift_reader *r);       /* operator W */
struct swift_node *global_value_witness(struct swift_reader *r); /* operator w */
/* Returns the name of a value witness by its two letters: `allocateBuffer` for `al`; NULL = unknown. */
const char *global_value_witness_name(char first, char second);

/* swift_thunk.c */
struct swift_node *thunk_operator(struct swift_reader *r); /* operator T */

/* ---- readers and printer ---- */

/* Reads a mangled name after its prefix ("$s", "_T"). Returns an N_LIST of the symbol's attributes, outermost first, and last the symbol
 * itself; NULL if any part is malformed or not supported, or when out of memory. */
struct swift_node *swift_read(struct swift_reader *r);
struct swift_node *swift_read_old(struct swift_reader *r); /* manglings before Swift 4 */
/* Appends at most `limit` bytes of text for a symbol that swift_read() has read; `returns`: print function types with effects and results.
 * False if the text is longer, empty or nested too deeply, or when out of memory; `out` may then have a part of it. */
bool swift_print(const struct swift_node *symbol, bool returns, struct sl_buf *out, size_t limit);
