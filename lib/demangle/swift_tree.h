/* The tree between the readers of the Swift manglings (swift_read.c: since Swift 4, swift_old.c: before) and the printer.
 *
 * A node is a kind, a text or a number, and children; which of them a kind has stands at the kind. Children may be holes
 * (NULL) where a part is optional. Nodes are shared: a substitution is the node itself, so a tree is a directed acyclic graph
 * and may name exponentially much text. Everything lives in the reader's arena. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum node_kind {
    /* Markers on the reader's stack. */
    N_EMPTY_LIST,
    N_FIRST_ELEMENT,
    N_VARIADIC,
    N_SUFFIX,

    /* Annotations of function types: a text, or `@` and a child. */
    N_THROWS, /* child: type, or hole */
    N_ASYNC,
    N_SENDABLE,
    N_ISOLATION,
    N_DIFFERENTIABLE,
    N_SENDING_RESULT,

    /* Names of declarations. */
    N_IDENTIFIER,
    N_LOCAL_NAME,   /* index; name */
    N_PRIVATE_NAME, /* name, or a hole for what has none */
    N_RELATED_NAME, /* text: the letter; name */
    N_OPERATOR,     /* text with its fixity */

    /* Parts of types. */
    N_LIST,
    N_LABELS,          /* N_IDENTIFIER, N_FIRST_ELEMENT for `_` */
    N_TUPLE_ELEMENT,   /* text: label; index: variadic; type */
    N_ASSOCIATED_NAME, /* identifier, protocol or hole */
    N_SIGNATURE,       /* N_PARAMETER_COUNT..., then N_PACK_MARKER, N_VALUE_MARKER, N_REQUIREMENT */
    N_PARAMETER_COUNT, /* index */
    N_PACK_MARKER,     /* generic parameter */
    N_VALUE_MARKER,    /* generic parameter, type */
    N_REQUIREMENT,     /* text: relation; subject, object */
    N_CONFORMANCE_REF,
    N_ANY_CONFORMANCE,
    N_RETROACTIVE,
    N_IMPL_ATTRIBUTE, /* text, or a signature */
    N_IMPL_PARAMETER, /* text: convention; type */
    N_IMPL_RESULT,    /* text: convention; type */

    /* What a symbol stands for as a whole. */
    N_ATTRIBUTE,   /* text, put before the symbol */
    N_SPECIALIZED, /* said once, however often it was */
    N_PHRASE,      /* children in a row, N_LITERAL between them */
    N_LITERAL,
    N_TYPE_MANGLING, /* labels, type */

    /* Contexts. Entities have four children: context, name, labels, type; holes where there is none. */
    N_MODULE,
    N_FIRST_CONTEXT = N_MODULE,
    N_EXTENSION, /* type, signature or hole */
    N_ANONYMOUS,
    N_STATIC, /* entity */
    N_FUNCTION,
    N_VARIABLE,
    N_SUBSCRIPT,
    N_ACCESSOR, /* text; storage */
    N_INIT,     /* index: allocating */
    N_DEINIT,   /* text; context */
    N_CLOSURE,  /* text, index */
    N_PART_OF,  /* text: a piece of code that belongs to a declaration; index, NO_INDEX = none; context */
    N_MACRO,
    N_EXPANSION, /* text, index; context, name */
    N_OPAQUE_OF, /* entity */

    /* Contexts that are types. */
    N_CLASS,
    N_FIRST_TYPE = N_CLASS,
    N_STRUCT,
    N_ENUM,
    N_PROTOCOL,
    N_ALIAS,
    N_OTHER_NOMINAL,
    N_LAST_CONTEXT = N_OTHER_NOMINAL,

    /* Types only. */
    N_BOUND,          /* nominal type, N_LIST of arguments */
    N_BOUND_FUNCTION, /* function, N_LIST of arguments */
    N_BUILTIN,        /* text */
    N_FIXED_ARRAY,    /* count, element */
    N_PARAMETER,      /* generic parameter: index, text "Self" for the self of an existential; depth in `count2` */
    N_MEMBER,         /* base, N_ASSOCIATED_NAME */
    N_ASSOCIATED_REF, /* base, identifier */
    N_GENERIC_TYPE,   /* signature, type */
    N_FUNCTION_TYPE,  /* text: attribute; index: shown as a call; parameters, result, annotations... */
    N_IMPL_FUNCTION,  /* N_IMPL_..., see swift_type.c */
    N_TUPLE,          /* N_TUPLE_ELEMENT... */
    N_MARKED,         /* text put before; type */
    N_METATYPE,       /* text: representation; type */
    N_EXISTENTIAL_METATYPE,
    N_COMPOSITION, /* N_LIST of protocols; superclass or hole; index: has AnyObject */
    N_CONSTRAINED, /* composition, N_LIST of requirements */
    N_DYNAMIC_SELF,
    N_OPAQUE_RESULT, /* `some` */
    N_OPAQUE,        /* N_OPAQUE_OF; index */
    N_PACK,          /* types */
    N_PACK_EXPANSION,
    N_PACK_ELEMENT,
    N_SUGAR,   /* text: `?` after, `[` around one or two, */
    N_INTEGER, /* text */
    N_BOX,     /* a SIL box; N_LIST of fields, signature or hole, N_LIST or hole */
    N_ERROR,
    N_LAST_TYPE = N_ERROR,
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

/* ---- nodes (swift_tree.c); NULL when memory or the number of nodes is exhausted ---- */

struct node *node_new(struct reader *r, enum node_kind kind);
struct node *node_text(struct reader *r, enum node_kind kind, struct sl_str text);
struct node *node_copy(struct reader *r, const struct node *node);
/* Appends and returns `parent`; NULL when either is. */
struct node *node_add(struct reader *r, struct node *parent, struct node *child);
/* As above, a child that is NULL leaves a hole. */
struct node *node_put(struct reader *r, struct node *parent, struct node *child);
struct node *node_of(struct reader *r, enum node_kind kind, struct node *child);
struct node *node_pair(struct reader *r, enum node_kind kind, struct node *first, struct node *second);
/* An entity; `context` is required. */
struct node *node_entity(struct reader *r, enum node_kind kind, struct node *context, struct node *name,
                         struct node *labels, struct node *type);
/* `before` first, and if `between` is not NULL: `between` second. */
struct node *node_phrase(struct reader *r, const char *before, struct node *first, const char *between,
                         struct node *second);
/* A type, struct, enum ... of the standard library. */
struct node *node_standard(struct reader *r, enum node_kind kind, const char *name);
struct node *node_parameter(struct reader *r, uint32_t depth, uint32_t index);
struct node *node_optional(struct reader *r, struct node *type);
void node_reverse(struct node *node, uint32_t from);
struct node *node_child(const struct node *node, uint32_t index); /* NULL: no such child, or a hole */
bool node_is_type(const struct node *node);
bool node_is_context(const struct node *node);
bool node_is_name(const struct node *node);

/* ---- names (swift_tree.c) ---- */

/* Decodes Swift's Punycode into the arena; an empty text when it is none. */
struct sl_str name_punycode(struct reader *r, struct sl_str text);
/* The operator whose characters are written as letters, with the fixity `i`, `p` or `P`; NULL when it is none. */
struct node *name_operator(struct reader *r, struct sl_str letters, char fixity);

/* ---- the text and the stack (swift_read.c) ---- */

char reader_peek(const struct reader *r); /* '\0' at the end */
char reader_next(struct reader *r);
bool reader_eat(struct reader *r, char c);
int64_t reader_natural(struct reader *r); /* -1: none, or too large */
int64_t reader_index(struct reader *r);   /* `_` 0, `0_` 1 ...; -1: none */

struct node *reader_push(struct reader *r, struct node *node);
struct node *reader_pop(struct reader *r);
struct node *reader_pop_kind(struct reader *r, enum node_kind kind);
struct node *reader_pop_type(struct reader *r);
struct node *reader_pop_entity(struct reader *r);
struct node *reader_pop_name(struct reader *r);
struct node *reader_pop_module(struct reader *r);
struct node *reader_pop_context(struct reader *r);
struct node *reader_pop_protocol(struct reader *r);
struct node *reader_substitutable(struct reader *r, struct node *node);

/* ---- groups of operators; NULL = not understood ---- */

/* swift_type.c */
struct node *type_builtin(struct reader *r);         /* B */
struct node *type_function(struct reader *r, const char *attribute, bool call);
struct node *type_labels(struct reader *r, struct node *type); /* pops the labels of an entity of `type` */
struct node *type_tuple(struct reader *r);           /* t */
struct node *type_list(struct reader *r);
struct node *type_composition(struct reader *r);     /* p */
struct node *type_bound(struct reader *r);           /* G */
struct node *type_special(struct reader *r);         /* X */
struct node *type_annotation(struct reader *r);      /* Y */
struct node *type_archetype(struct reader *r);       /* Q */
struct node *type_impl_function(struct reader *r);   /* I */
struct node *type_integer(struct reader *r);         /* $ */

/* swift_generic.c */
struct node *generic_parameter(struct reader *r);    /* after q */
struct node *generic_member(struct reader *r, struct node *base, bool path);
struct node *generic_associated_name(struct reader *r);
struct node *generic_associated_path(struct reader *r);
struct node *generic_requirement(struct reader *r);  /* R */
struct node *generic_signature(struct reader *r, bool counts); /* l, r */
struct node *generic_conformance(struct reader *r);  /* pops a protocol conformance; the conforming type */
struct node *generic_conformance_operator(struct reader *r, char c); /* H */
struct node *generic_retroactive(struct reader *r);  /* g */
bool generic_arguments(struct reader *r, struct node **lists);

/* swift_global.c */
struct node *global_metadata(struct reader *r);      /* M */
struct node *global_record(struct reader *r);        /* H */
struct node *global_witness(struct reader *r);       /* W */
struct node *global_thunk(struct reader *r);         /* T */
const char *global_value_witness(char first, char second);

/* ---- the readers and the printer ---- */

struct node *swift_read(struct reader *r); /* the text behind the prefix; N_LIST: attributes, then one node */
struct node *swift_read_old(struct reader *r);
bool swift_print(const struct node *symbol, bool returns, struct sl_buf *out, size_t limit);
