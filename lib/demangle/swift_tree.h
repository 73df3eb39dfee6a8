/* The tree that connects the readers of the Swift manglings (swift_read.c since Swift 4, swift_old.c before) with the printer.
 *
 * A node has a kind, a text or a number, and children; the comment at each kind lists them. An optional child may be missing
 * (NULL). Nodes are shared and immutable once two others refer to them: a substitution is the node itself. So the tree is a
 * directed acyclic graph, whose text may be exponentially long. Everything lives in the reader's arena.
 *
 * Parts that are never printed (modules of conformances, specialised types, where clauses) are parsed and checked, but have no
 * nodes. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum node_kind {
    /* Markers on the reader's stack. */
    N_EMPTY_LIST,
    N_FIRST_ELEMENT, /* also a missing label */
    N_VARIADIC,
    N_EFFECT, /* index: enum effect; text, or a type that is printed after `@`, or the type thrown */

    /* Names of declarations. */
    N_IDENTIFIER,
    N_LOCAL_NAME,   /* index; name */
    N_PRIVATE_NAME, /* name, or NULL for a declaration without a name */
    N_RELATED_NAME, /* text: the letter; name */
    N_OPERATOR,     /* text with its fixity */

    /* Parts of types. */
    N_LIST,
    N_LABELS,          /* N_IDENTIFIER or N_FIRST_ELEMENT... */
    N_TUPLE_ELEMENT,   /* text: label; index: 1 = variadic; type */
    N_ASSOCIATED_NAME, /* identifier; protocol or NULL */
    N_SIGNATURE,       /* N_PARAMETER_COUNT..., then N_PACK_MARKER, N_VALUE_MARKER, N_REQUIREMENT */
    N_PARAMETER_COUNT, /* index */
    N_PACK_MARKER,     /* generic parameter */
    N_VALUE_MARKER,    /* generic parameter; type */
    N_REQUIREMENT,     /* text: relation; subject; object */
    N_CONFORMANCE,     /* a proof that a type conforms; never printed */
    N_CONFORMANCE_REF,
    N_RETROACTIVE,
    N_IMPL_ATTRIBUTE, /* text */
    N_IMPL_PARAMETER, /* text: convention; type */
    N_IMPL_RESULT,    /* text: convention; type */

    /* Whole symbols. */
    N_ATTRIBUTE,   /* text, printed before the symbol */
    N_SPECIALIZED, /* printed once, even if it applies repeatedly */
    N_PHRASE,      /* children in sequence, N_LITERAL between them */
    N_LITERAL,
    N_TYPE_MANGLING, /* labels or NULL; type */

    /* Contexts. Entities have four children: context, name, labels, type; NULL if absent. */
    N_MODULE,
    N_FIRST_CONTEXT = N_MODULE,
    N_EXTENSION, /* type, signature or NULL */
    N_ANONYMOUS, /* context */
    N_STATIC,    /* entity */
    N_FUNCTION,
    N_VARIABLE,
    N_SUBSCRIPT,
    N_ACCESSOR, /* text; storage */
    N_INIT,     /* index: 1 = allocating */
    N_DEINIT,   /* text; index: 1 = of a class, else printed as `deinit` */
    N_CLOSURE,  /* text, index */
    N_PART_OF,  /* text: kind of code that belongs to the context; index, NO_INDEX = none */
    N_MACRO,
    N_EXPANSION, /* text, index */
    N_OPAQUE_OF, /* entity */

    /* Contexts that are types. */
    N_CLASS,
    N_FIRST_TYPE = N_CLASS,
    N_STRUCT,
    N_ENUM,
    N_PROTOCOL,
    N_ALIAS,
    N_OTHER_NOMINAL,
    N_LAST_NOMINAL = N_OTHER_NOMINAL,
    N_BOUND,          /* nominal type, N_LIST of arguments */
    N_BOUND_FUNCTION, /* function, N_LIST of arguments */
    N_LAST_CONTEXT = N_BOUND_FUNCTION,

    /* Types only. */
    N_BUILTIN,       /* text */
    N_BUILTIN_OF,    /* text; N_LIST of arguments */
    N_PARAMETER,     /* generic parameter: depth, index */
    N_SELF,          /* of an existential type */
    N_MEMBER,        /* base, N_ASSOCIATED_NAME or N_IDENTIFIER */
    N_GENERIC_TYPE,  /* signature, type */
    N_FUNCTION_TYPE, /* text: attribute; parameters, result, N_EFFECT... */
    N_IMPL_FUNCTION, /* see swift_impl.c */
    N_TUPLE,         /* N_TUPLE_ELEMENT... */
    N_MARKED,        /* text printed before; type */
    N_METATYPE,      /* text: representation; type */
    N_EXISTENTIAL_METATYPE,
    N_COMPOSITION, /* N_LIST of protocols; superclass or NULL; index: 1 = has AnyObject */
    N_CONSTRAINED, /* composition, N_LIST of requirements */
    N_DYNAMIC_SELF,
    N_OPAQUE_RESULT, /* `some` */
    N_OPAQUE,        /* N_OPAQUE_OF; index */
    N_PACK,          /* types... */
    N_SUGAR,         /* text: `?` after one type, `[` around one or `:` between two */
    N_INTEGER,       /* text */
    N_BOX,           /* N_LIST of fields; signature or NULL; N_LIST or NULL */
    N_ERROR,
    N_LAST_TYPE = N_ERROR,
};

enum effect {
    EFFECT_THROWS,
    EFFECT_ASYNC,
    EFFECT_SENDING,
    EFFECT_BEFORE, /* from here on printed before the parameters, in this order */
    EFFECT_ISOLATION = EFFECT_BEFORE,
    EFFECT_DIFFERENTIABLE,
    EFFECT_SENDABLE,
    EFFECT_LAST = EFFECT_SENDABLE,
};

#define NO_INDEX UINT32_MAX

struct node {
    enum node_kind kind;
    uint32_t index, depth; /* depth: for N_PARAMETER */
    struct sl_str text;
    struct node **children;
    uint32_t count, capacity;
};

struct reader {
    struct sl_arena arena;
    struct sl_str text;
    size_t at;
    struct node *stack, *substitutions; /* N_LIST */
    struct sl_str words[26];
    unsigned word_count;
    unsigned nodes, depth;
    bool labels_in_types; /* Swift 4.0: argument labels are in the parameter tuple */
};

/* ---- nodes (swift_tree.c); NULL when memory or the limit of nodes is exhausted, or when a required child is NULL ---- */

struct node *node_new(struct reader *r, enum node_kind kind);
struct node *node_text(struct reader *r, enum node_kind kind, struct sl_str text);
struct node *node_say(struct reader *r, enum node_kind kind, const char *text); /* static text */
/* The text is copied into the arena. */
struct node *node_format(struct reader *r, enum node_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
struct node *node_number(struct reader *r, enum node_kind kind, uint32_t index);
struct node *node_copy(struct reader *r, const struct node *node);
/* Appends a child; returns `parent`. */
struct node *node_add(struct reader *r, struct node *parent, struct node *child);
/* node_add() that accepts NULL: the child is absent. */
struct node *node_put(struct reader *r, struct node *parent, struct node *child);
struct node *node_with_child(struct reader *r, enum node_kind kind, struct node *child);
struct node *node_pair(struct reader *r, enum node_kind kind, struct node *first, struct node *second);
/* Makes an entity; only `context` is required. */
struct node *node_entity(struct reader *r, enum node_kind kind, struct node *context, struct node *name,
                         struct node *labels, struct node *type);
/* Makes the phrase `before` first `between` second; the last two are absent if `between` is NULL. */
struct node *node_phrase(struct reader *r, const char *before, struct node *first, const char *between,
                         struct node *second);
/* Makes a type of the standard library. */
struct node *node_standard(struct reader *r, enum node_kind kind, const char *name);
struct node *node_parameter(struct reader *r, uint32_t depth, uint32_t index);
struct node *node_optional(struct reader *r, struct node *type);
/* Makes a type that is printed with `prefix`. */
struct node *node_marked(struct reader *r, const char *prefix, struct node *type);
struct node *node_effect(struct reader *r, enum effect effect, const char *text);
/* Reverses the children from index `from` on. */
struct node *node_reverse(struct node *node, uint32_t from);
struct node *node_child(const struct node *node, uint32_t index); /* NULL if there is no such child */
bool node_is_type(const struct node *node);
bool node_is_nominal(const struct node *node);
bool node_is_context(const struct node *node);
bool node_is_name(const struct node *node);

/* ---- names (swift_tree.c) ---- */

/* Decodes Swift's Punycode into the arena; empty text if it is invalid. */
struct sl_str name_punycode(struct reader *r, struct sl_str text);
/* Returns the operator whose characters are encoded as letters, with the fixity `i`, `p` or `P`; NULL if they are invalid. */
struct node *name_operator(struct reader *r, struct sl_str letters, char fixity);

/* ---- text and stack (swift_stack.c) ---- */

char reader_peek(const struct reader *r); /* '\0' at the end */
char reader_next(struct reader *r);
bool reader_eat(struct reader *r, char c);
bool reader_eat_text(struct reader *r, const char *text);
bool reader_natural(struct reader *r, uint32_t *value); /* false: no number, or too large */
bool reader_index(struct reader *r, uint32_t *value);   /* `_` 0, `0_` 1 ... */
/* Reads a set of a function's parameters or results: `S` for each member, `U` for each other one, then `end`. */
bool reader_subset(struct reader *r, char end);
/* Takes `size` bytes; empty if fewer are left. */
struct sl_str reader_take(struct reader *r, uint32_t size);

struct node *reader_push(struct reader *r, struct node *node);
struct node *reader_top(const struct reader *r);
struct node *reader_pop(struct reader *r);
struct node *reader_pop_kind(struct reader *r, enum node_kind kind);
struct node *reader_pop_type(struct reader *r);
struct node *reader_pop_nominal(struct reader *r);
struct node *reader_pop_entity(struct reader *r);
struct node *reader_pop_name(struct reader *r);
struct node *reader_pop_module(struct reader *r);
struct node *reader_pop_context(struct reader *r);
struct node *reader_pop_protocol(struct reader *r);
struct node *reader_substitutable(struct reader *r, struct node *node);

/* ---- operators of the current mangling, by subject; the reader is past the first character ---- */

/* swift_name.c */
struct node *name_identifier(struct reader *r);    /* a digit; called in front of it */
struct node *name_fixity(struct reader *r);        /* o */
struct node *name_local(struct reader *r);         /* L */
struct node *name_substitution(struct reader *r);  /* A */
struct node *name_standard_type(struct reader *r); /* S */

/* swift_entity.c */
struct node *entity_nominal(struct reader *r, enum node_kind kind);
struct node *entity_extension(struct reader *r);     /* E */
struct node *entity_function(struct reader *r);      /* F */
struct node *entity_variable(struct reader *r);      /* v */
struct node *entity_subscript(struct reader *r);     /* i */
struct node *entity_part(struct reader *r);          /* f */
struct node *entity_type_mangling(struct reader *r); /* D */

/* swift_type.c */
struct node *type_builtin(struct reader *r); /* B */
/* `attribute` is printed before the type. */
struct node *type_function(struct reader *r, const char *attribute);
struct node *type_parameter_tuple(const struct node *type); /* of a function type, generic or not; else NULL */
struct node *type_tuple(struct reader *r);                  /* t */
struct node *type_list(struct reader *r);
struct node *type_protocols(struct reader *r);
struct node *type_special(struct reader *r);    /* X */
struct node *type_annotation(struct reader *r); /* Y */
struct node *type_archetype(struct reader *r);  /* Q */
struct node *type_integer(struct reader *r);    /* $ */

/* swift_impl.c */
struct node *impl_function(struct reader *r); /* I */

/* swift_generic.c */
struct node *generic_parameter(struct reader *r);                 /* q */
struct node *generic_member(struct reader *r, struct node *base); /* one associated type of `base` */
struct node *generic_path(struct reader *r, struct node *base);   /* a chain of them */
struct node *generic_name(struct reader *r);
struct node *generic_names(struct reader *r);                  /* a chain without its base */
struct node *generic_requirement(struct reader *r);            /* R */
struct node *generic_signature(struct reader *r, bool counts); /* l, r */
struct node *generic_conformance(struct reader *r);            /* pops a conformance; returns the conforming type */
struct node *generic_proof(struct reader *r);                  /* pops an N_CONFORMANCE */
struct node *generic_proof_operator(struct reader *r, char c); /* H; NULL for any other operator, too */
struct node *generic_retroactive(struct reader *r);            /* g */
/* Pops the arguments of a bound type, a list for each level, innermost first; NULL if malformed. */
struct node *generic_arguments(struct reader *r);
struct node *generic_bound(struct reader *r); /* G */
/* Binds `nominal` and the types around it to the argument `lists` from index `from` on. */
struct node *generic_bind(struct reader *r, struct node *nominal, const struct node *lists, uint32_t from);

/* swift_global.c */
struct node *global_metadata(struct reader *r);      /* M */
struct node *global_record(struct reader *r);        /* H */
struct node *global_witness(struct reader *r);       /* W */
struct node *global_value_witness(struct reader *r); /* w */
/* Returns `allocateBuffer` for `al`; NULL = unknown. */
const char *global_value_witness_name(char first, char second);

/* swift_thunk.c */
struct node *thunk_operator(struct reader *r); /* T */

/* ---- readers and printer ---- */

/* Read the mangling after its prefix. Return an N_LIST of the symbol's attributes, outermost first, and last the symbol itself;
 * NULL if any part is not supported. */
struct node *swift_read(struct reader *r);
struct node *swift_read_old(struct reader *r);
bool swift_print(const struct node *symbol, bool returns, struct sl_buf *out, size_t limit);
