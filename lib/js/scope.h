/* Functions of a script: which function contains a position, and its display name.
 *
 * One pass over the text of a script (ECMAScript 2024, read as a module; decorators are accepted, JSX is not) finds every scope:
 * functions, arrow functions, classes, methods, accessors. No tree is built: everything that names a function is to the left of
 * it, so the reader only keeps a stack of the constructs around it. A function's name is a list of parts (`deep`, `obj`, `p`, `q`),
 * each linked to the part to its left; names that begin alike share these parts:
 *
 *     deep.obj = {p: {q() {}, r: () => 1}}      deep <- obj <- (object) <- p <- (object) <- q
 *                                                                                        <- r
 *
 * A name is assembled on request; each part that was an identifier is first translated by the source map. Positions are
 * byte offsets into the text; sl_js_line_index converts them to lines and columns. */
#pragma once

#include "base/buf.h"
#include "base/account.h"

/* Kinds of scopes; in quotes: how their names are shown. */
enum sl_js_scope_kind {
    SL_JS_FUNCTION,
    SL_JS_CLASS,         /* "new C" */
    SL_JS_GETTER,        /* "get C.x", of a class */
    SL_JS_SETTER,        /* "set C.x" */
    SL_JS_OBJECT_GETTER, /* "get o.x", of an object literal */
    SL_JS_OBJECT_SETTER, /* "set o.x" */
};

enum {
    SL_JS_NONE = 0x1FFFFFFF, /* no scope; as the index of a name part: there is no such part */
    /* in sl_js_part.outer: the name begins with this part, a variable, an assigned name or a declared class. (If `outer` is SL_JS_NONE
     * instead, the name may begin in an object literal that has no name, and is then shown as "<object>.f".) */
    SL_JS_NAME_IS_COMPLETE = 0x1FFFFFFE,
};

struct sl_js_scope {
    uint32_t start, end; /* `end` is exclusive */
    uint32_t outer;      /* the enclosing scope, which has a smaller index, or SL_JS_NONE */
    uint32_t name : 29;  /* index in `parts` of the last part of its name, SL_JS_NONE or SL_JS_NAME_IS_COMPLETE */
    uint32_t kind : 3;   /* enum sl_js_scope_kind */
};

/* Kinds of the parts of a function's name, such as `deep`, `obj` and `q` of `deep.obj.q`. Those up to SL_JS_PRIVATE have text in the
 * script; "mapped" means that the source map translates it. */
enum sl_js_part_kind {
    SL_JS_IDENTIFIER,     /* a name, mapped */
    SL_JS_OWN_NAME,       /* `f` of `x = function f() {}`, mapped; it replaces the part before it, here `x` */
    SL_JS_MEMBER,         /* `.x` of an assigned `a.x`, mapped */
    SL_JS_INDEX_NAME,     /* `[x]` of an assigned `a[x]`, mapped */
    SL_JS_INDEX_LITERAL,  /* `[1]` or `["x"]` of an assigned `a[1]` */
    SL_JS_KEY_LITERAL,    /* a number or string as a key, printed as <1.7> or <"x"> */
    SL_JS_THIS,           /* `this` of an assigned `this.x`, as written */
    SL_JS_PRIVATE,        /* `#x` as a key, mapped */
    SL_JS_INDEX_COMPUTED, /* `[f()]` of an assigned `a[f()]`, printed as [<computed>] */
    SL_JS_KEY_COMPUTED,   /* `[f()]` as a key, printed as <computed> */
    SL_JS_OBJECT,         /* no text: an object literal, printed as "<object>" where a name begins with it */
    SL_JS_PROPERTY,       /* while parsing: a property key, or part of a pattern if `=` follows the object literal */
    SL_JS_COVER,          /* while parsing: brackets, which may turn out to be parameters or a pattern; not printed */
    SL_JS_DEFAULT,        /* while parsing: an assignment, which may turn out to be a default value in a pattern */
};

struct sl_js_part {
    uint32_t at;        /* offset of its text */
    uint32_t outer;     /* index of the part to the left in the name, SL_JS_NONE or SL_JS_NAME_IS_COMPLETE */
    uint32_t size : 24; /* bytes of text */
    uint32_t kind : 4;  /* enum sl_js_part_kind */
    uint32_t field : 1; /* key of a class field; left out of names with sl_js_naming.compat */
    uint32_t pattern : 1, direct : 1; /* private: used while parsing */
};

struct sl_js_scopes {
    struct sl_str text;
    struct sl_js_scope *items; /* in order of `start`, all different; nested scopes come after the outer one */
    uint32_t count;
    struct sl_js_part *parts;
    uint32_t part_count;
    struct sl_account account; /* this and the rest are private */
    size_t capacity, part_capacity;
};

/* Finds the scopes of `text`, which is borrowed, UTF-8 and below 4 GiB. SL_MALFORMED with line and column, and no scopes, for
 * text that is not a script or is nested deeper than 16384 levels; with `partial`, the scopes that were complete before the
 * error remain. Linear in the text. The budget (may be NULL) is charged a step per nested construct, and the memory. Call
 * sl_js_scopes_free() in every case. */
enum sl_code sl_js_scopes_read(struct sl_js_scopes *scopes, struct sl_str text, bool partial, struct sl_budget *budget,
                               struct sl_error *error);
void sl_js_scopes_free(struct sl_js_scopes *scopes);

/* Options for assembling names. */
struct sl_js_naming {
    /* Returns the original name of the identifier `text` at this offset; `text` itself if unknown. NULL = no translation. */
    struct sl_str (*original)(void *arg, uint32_t at, struct sl_str text);
    void *arg;
    bool compat; /* js.compat_scope_names: names as Symbolicator writes them, which leaves out some dots */
};

/* Appends the name of a scope; nothing for a scope without a name. Scopes with equal `name` and `kind` have equal names. Of a name with
 * more than 128 parts (`a.b.c...`) the first are left out. Costs a step per byte; false when the work budget is used up. When memory is
 * exhausted, true, with `out->failed` set. */
bool sl_js_scope_name(const struct sl_js_scopes *scopes, uint32_t scope, const struct sl_js_naming *naming,
                      struct sl_account *account, struct sl_buf *out);

/* A position: line and column from 0, the column in UTF-16 units; only LF ends a line. */
struct sl_js_position {
    uint32_t line, column;
};

/* Converts offsets to positions, in any order; each conversion reads a few hundred bytes. */
struct sl_js_line_index {
    struct sl_str text;
    struct sl_js_position *marks; /* the position of every 256th byte */
    struct sl_account account;
};

/* Stores the positions of every 256th byte of `text`, which is borrowed and below 4 GiB; they take a 32nd of its size. False when memory or
 * the budget is exhausted. Call sl_js_line_index_free() in either case. */
bool sl_js_line_index_build(struct sl_js_line_index *places, struct sl_str text, struct sl_budget *budget);
struct sl_js_position sl_js_line_index_find(const struct sl_js_line_index *places,
                                            uint32_t offset); /* at most text.size */
void sl_js_line_index_free(struct sl_js_line_index *places);
