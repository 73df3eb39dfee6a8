/* The tree between the readers of the Swift manglings (swift_read.c since Swift 4, swift_old.c before) and the
 * printer.
 *
 * A node is a kind, a text or a number, and children; which of them a kind has stands at the kind. A child may be a
 * hole (NULL) where a part is optional. Nodes are shared and never changed once they can be reached from two places: a
 * substitution is the node itself, so a tree is a directed acyclic graph and may name exponentially much text. All of
 * it lives in the reader's arena.
 *
 * What the printed style never shows (modules of conformances, specialised types, where clauses) is read and checked
 * for its form, but has no node of its own. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum node_kind {
    /* Markers on the reader's stack. */
    N_EMPTY_LIST,
    N_FIRST_ELEMENT, /* also a missing label */
    N_VARIADIC,
    N_EFFECT, /* index: enum effect; text, or a type that is put behind `@`, or the type thrown */

    /* Names of declarations. */
    N_IDENTIFIER,
    N_LOCAL_NAME,   /* index; name */
    N_PRIVATE_NAME, /* name, or a hole for what has none */
    N_RELATED_NAME, /* text: the letter; name */
    N_OPERATOR,     /* text with its fixity */

    /* Parts of types. */
    N_LIST,
    N_LABELS,          /* N_IDENTIFIER or N_FIRST_ELEMENT... */
    N_TUPLE_ELEMENT,   /* text: label; index: 1 = variadic; type */
    N_ASSOCIATED_NAME, /* identifier; protocol or hole */
    N_SIGNATURE,       /* N_PARAMETER_COUNT..., then N_PACK_MARKER, N_VALUE_MARKER, N_REQUIREMENT */
    N_PARAMETER_COUNT, /* index */
    N_PACK_MARKER,     /* generic parameter */
    N_VALUE_MARKER,    /* generic parameter; type */
    N_REQUIREMENT,     /* text: relation; subject; object */
    N_CONFORMANCE,     /* a proof that a type conforms; never shown */
    N_CONFORMANCE_REF,
    N_RETROACTIVE,
    N_IMPL_ATTRIBUTE, /* text */
    N_IMPL_PARAMETER, /* text: convention; type */
    N_IMPL_RESULT,    /* text: convention; type */

    /* What a symbol stands for as a whole. */
    N_ATTRIBUTE,   /* text, put before the symbol */
    N_SPECIALIZED, /* said once, however often it was */
    N_PHRASE,      /* children in a row, N_LITERAL between them */
    N_LITERAL,
    N_TYPE_MANGLING, /* labels or hole; type */

    /* Contexts. Entities have four children: context, name, labels, type; holes where there is none. */
    N_MODULE,
    N_FIRST_CONTEXT = N_MODULE,
    N_EXTENSION, /* type, signature or hole */
    N_ANONYMOUS, /* context */
    N_STATIC,    /* entity */
    N_FUNCTION,
    N_VARIABLE,
    N_SUBSCRIPT,
    N_ACCESSOR, /* text; storage */
    N_INIT,     /* index: 1 = allocating */
    N_DEINIT,   /* text; index: 1 = that of a class, else said as `deinit` */
    N_CLOSURE,  /* text, index */
    N_PART_OF,  /* text: a piece of code that belongs to the context; index, NO_INDEX = none */
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
    N_MARKED,        /* text put before; type */
    N_METATYPE,      /* text: representation; type */
    N_EXISTENTIAL_METATYPE,
    N_COMPOSITION, /* N_LIST of protocols; superclass or hole; index: 1 = has AnyObject */
    N_CONSTRAINED, /* composition, N_LIST of requirements */
    N_DYNAMIC_SELF,
    N_OPAQUE_RESULT, /* `some` */
    N_OPAQUE,        /* N_OPAQUE_OF; index */
    N_PACK,          /* types... */
    N_SUGAR,         /* text: `?` behind one type, `[` around one or `:` between two */
    N_INTEGER,       /* text */
    N_BOX,           /* N_LIST of fields; signature or hole; N_LIST or hole */
    N_ERROR,
    N_LAST_TYPE = N_ERROR,
};

enum effect {
    EFFECT_THROWS,
    EFFECT_ASYNC,
    EFFECT_SENDING,
    EFFECT_BEFORE, /* from here on shown before the parameters, in this order */
    EFFECT_ISOLATION = EFFECT_BEFORE,
    EFFECT_DIFFERENTIABLE,
    EFFECT_SENDABLE,
    EFFECT_LAST = EFFECT_SENDABLE,
};

#define NO_INDEX UINT32_MAX

struct node {
    enum node_kind kind;
    uint32_t index, depth; /* depth: of an N_PARAMETER */
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
    bool labels_in_types; /* Swift 4.0: argument labels are written in the tuple */
};

/* ---- nodes (swift_tree.c); NULL when memory or the number of nodes is exhausted, or when a child is NULL ---- */

struct node *node_new(struct reader *r, enum node_kind kind);
struct node *node_text(struct reader *r, enum node_kind kind, struct sl_str text);
struct node *node_say(struct reader *r, enum node_kind kind, const char *text); /* of static storage */
/* A text of the arena, terminated. */
struct node *node_format(struct reader *r, enum node_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
struct node *node_number(struct reader *r, enum node_kind kind, uint32_t index);
struct node *node_copy(struct reader *r, const struct node *node);
/* Appends and returns `parent`. */
struct node *node_add(struct reader *r, struct node *parent, struct node *child);
/* As above, a child that is NULL leaves a hole. */
struct node *node_put(struct reader *r, struct node *parent, struct node *child);
struct node *node_of(struct reader *r, enum node_kind kind, struct node *child);
struct node *node_pair(struct reader *r, enum node_kind kind, struct node *first, struct node *second);
/* An entity; only `context` is required. */
struct node *node_entity(struct reader *r, enum node_kind kind, struct node *context, struct node *name,
                         struct node *labels, struct node *type);
/* `before` first, and if `between` is not NULL: `between` second. */
struct node *node_phrase(struct reader *r, const char *before, struct node *first, const char *between,
                         struct node *second);
/* A type of the standard library. */
struct node *node_standard(struct reader *r, enum node_kind kind, const char *name);
struct node *node_parameter(struct reader *r, uint32_t depth, uint32_t index);
struct node *node_optional(struct reader *r, struct node *type);
/* `prefix`, then the subject as a type. */
struct node *node_marked(struct reader *r, const char *prefix, struct node *type);
struct node *node_effect(struct reader *r, enum effect effect, const char *text);
/* Turns the children from index `from` around. */
struct node *node_reverse(struct node *node, uint32_t from);
struct node *node_child(const struct node *node, uint32_t index); /* NULL: no such child, or a hole */
bool node_is_type(const struct node *node);
bool node_is_nominal(const struct node *node);
bool node_is_context(const struct node *node);
bool node_is_name(const struct node *node);

/* ---- names (swift_tree.c) ---- */

/* Decodes Swift's Punycode into the arena; an empty text when it is none. */
struct sl_str name_punycode(struct reader *r, struct sl_str text);
/* The operator whose characters are written as letters, with the fixity `i`, `p` or `P`; NULL when it is none. */
struct node *name_operator(struct reader *r, struct sl_str letters, char fixity);

/* ---- the text and the stack (swift_stack.c) ---- */

char reader_peek(const struct reader *r); /* '\0' at the end */
char reader_next(struct reader *r);
bool reader_eat(struct reader *r, char c);
bool reader_eat_text(struct reader *r, const char *text);
bool reader_natural(struct reader *r, uint32_t *value); /* false: none, or too large */
bool reader_index(struct reader *r, uint32_t *value);   /* `_` 0, `0_` 1 ... */
/* Which of a function's parameters or results take part, `S` yes and `U` no, then `end`. */
bool reader_subset(struct reader *r, char end);
/* `size` bytes; empty when there are not so many. */
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

/* ---- the operators of the current mangling, by subject; each is called behind its first character ---- */

/* swift_name.c */
struct node *name_identifier(struct reader *r);    /* a digit; called before it */
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
/* `attribute` is put before the type. */
struct node *type_function(struct reader *r, const char *attribute);
struct node *type_parameter_tuple(const struct node *type); /* of a function type, generic or not; NULL = it is none */
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
struct node *generic_names(struct reader *r);                  /* a chain without the base */
struct node *generic_requirement(struct reader *r);            /* R */
struct node *generic_signature(struct reader *r, bool counts); /* l, r */
struct node *generic_conformance(struct reader *r);            /* pops a conformance; the conforming type */
struct node *generic_proof(struct reader *r);                  /* pops an N_CONFORMANCE */
struct node *generic_proof_operator(struct reader *r, char c); /* H; NULL also when it is none of these */
struct node *generic_retroactive(struct reader *r);            /* g */
/* The arguments of a bound type, a list for each level, innermost first; NULL = not well-formed. */
struct node *generic_arguments(struct reader *r);
struct node *generic_bound(struct reader *r); /* G */
/* `nominal` and the types around it with the arguments `lists` from index `from` on. */
struct node *generic_bind(struct reader *r, struct node *nominal, const struct node *lists, uint32_t from);

/* swift_global.c */
struct node *global_metadata(struct reader *r);      /* M */
struct node *global_record(struct reader *r);        /* H */
struct node *global_witness(struct reader *r);       /* W */
struct node *global_value_witness(struct reader *r); /* w */
/* `allocateBuffer` for `al`; NULL = unknown. */
const char *global_value_witness_name(char first, char second);

/* swift_thunk.c */
struct node *thunk_operator(struct reader *r); /* T */

/* ---- the readers and the printer ---- */

/* Both read what stands behind the prefix. The attributes of the symbol, outermost first, and last the symbol itself,
 * as an N_LIST; NULL when it is not understood completely. */
struct node *swift_read(struct reader *r);
struct node *swift_read_old(struct reader *r);
bool swift_print(const struct node *symbol, bool returns, struct sl_buf *out, size_t limit);
