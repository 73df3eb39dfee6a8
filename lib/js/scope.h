/* The functions of a script: which of them a position lies in, and what people call it.
 *
 * One pass over the text of a script (ECMAScript 2024, read as a module; decorators are accepted, JSX is not) finds each
 * function-like piece of syntax: functions, arrow functions, classes, methods, accessors. No tree is built: what names a
 * function lies to the left of it, so the reader keeps a stack of what it is inside of, and a function's name is a leaf of
 * a tree of components that neighbours share:
 *
 *     deep.obj = {p: {q() {}, r: () => 1}}      deep <- obj <- (object) <- p <- (object) <- q
 *                                                                                        <- r
 *
 * A name is put together when it is asked for, each component that was an identifier through what a source map says of
 * its position. Positions are byte offsets into the text; sl_js_places tells their lines and columns. */
#pragma once

#include "base/buf.h"
#include "base/account.h"

enum sl_js_scope_kind {
    SL_JS_FUNCTION,
    SL_JS_CLASS,         /* "new C" */
    SL_JS_GETTER,        /* "get C.x", of a class */
    SL_JS_SETTER,        /* "set C.x" */
    SL_JS_OBJECT_GETTER, /* "get o.x", of an object literal */
    SL_JS_OBJECT_SETTER, /* "set o.x" */
};

enum {
    SL_JS_NONE = 0x1FFFFFFF,   /* no scope; no component: the name begins here */
    SL_JS_ENOUGH = 0x1FFFFFFE, /* the same behind a variable, an assigned name or a declared class */
};

struct sl_js_scope {
    uint32_t start, end; /* the end is exclusive */
    uint32_t outer;      /* the scope around it, which has a smaller number, or SL_JS_NONE */
    uint32_t name : 29;  /* its last component, or SL_JS_NONE or SL_JS_ENOUGH */
    uint32_t kind : 3;   /* enum sl_js_scope_kind */
};

/* What a component of a name is. Those up to SL_JS_PRIVATE have text. */
enum sl_js_part_kind {
    SL_JS_IDENTIFIER,     /* a name, to be mapped */
    SL_JS_OWN,            /* the function's own name, to be mapped; it takes the place of the component before it */
    SL_JS_MEMBER,         /* `.x` of an assigned chain, to be mapped */
    SL_JS_INDEX_NAME,     /* `[x]` of one, to be mapped */
    SL_JS_INDEX_LITERAL,  /* `[1]` or `["x"]` */
    SL_JS_KEY_LITERAL,    /* <1.7> or <"x"> */
    SL_JS_THIS,           /* as it is written */
    SL_JS_PRIVATE,        /* #x, to be mapped */
    SL_JS_INDEX_COMPUTED, /* [<computed>] */
    SL_JS_KEY_COMPUTED,   /* <computed> */
    SL_JS_OBJECT,         /* nothing: an object literal lies here, which is "<object>" where a name would begin */
    SL_JS_PROPERTY,       /* while reading: an identifier, unless the literal turns out to be a pattern */
    SL_JS_COVER,          /* while reading: brackets of which only their end shows what they are */
    SL_JS_DEFAULT,        /* while reading: an assignment, or a default value of a pattern */
};

struct sl_js_part {
    uint32_t at;                      /* offset of its text */
    uint32_t outer;                   /* the component to the left of it, or SL_JS_NONE or SL_JS_ENOUGH */
    uint32_t size : 24;               /* bytes of text */
    uint32_t kind : 4;                /* enum sl_js_part_kind */
    uint32_t field : 1;               /* key of a field of a class; compatible names leave it out */
    uint32_t pattern : 1, direct : 1; /* private */
};

struct sl_js_scopes {
    struct sl_str text;
    struct sl_js_scope
        *items; /* by start: an outer scope before those inside, which lie wholly in it; no two start alike */
    uint32_t count;
    struct sl_js_part *parts;
    uint32_t part_count;
    struct sl_account account; /* what follows is private */
    size_t capacity, part_capacity;
};

/* Finds the scopes of `text`, which is borrowed, UTF-8 and below 4 GiB. All or nothing: SL_MALFORMED, with line and column, for
 * text that is no script or is nested too deep (16384 levels); with `partial`, a script that breaks has the scopes that were
 * complete before. Linear in the text. The budget (may be NULL) pays for the levels and holds the memory. To be freed in every case. */
enum sl_code sl_js_scopes_read(struct sl_js_scopes *scopes, struct sl_str text, bool partial, struct sl_budget *budget,
                               struct sl_error *error);
void sl_js_scopes_free(struct sl_js_scopes *scopes);

/* How names are put together. */
struct sl_js_naming {
    /* The original of the identifier `text` at this offset: text itself where nothing is known. NULL = nothing is known. */
    struct sl_str (*original)(void *arg, uint32_t at, struct sl_str text);
    void *arg;
    bool compat; /* js.compat_scope_names: names as Sentry's service has them where its separators are missing */
};

/* Appends the name of a scope, nothing for one without a name. Two scopes with equal `name` and `kind` are called the same. Of
 * more than 128 components the outer ones are left out. Each byte is a step; false when the work budget is used up; out of memory is in
 * `out`. */
bool sl_js_scope_name(const struct sl_js_scopes *scopes, uint32_t scope, const struct sl_js_naming *naming,
                      struct sl_account *account, struct sl_buf *out);

/* Where an offset is: both from 0, the column in UTF-16 units; only LF ends a line. */
struct sl_js_place {
    uint32_t line, column;
};

/* Places of offsets, in any order, each at the cost of some hundred bytes looked at. */
struct sl_js_places {
    struct sl_str text;
    struct sl_js_place *marks; /* of each 256th byte */
    struct sl_account account;
};

/* The text is borrowed and below 4 GiB; takes a 32nd of it. False when memory, or the budget's, ran out. To be freed in
 * either case. */
bool sl_js_places_make(struct sl_js_places *places, struct sl_str text, struct sl_budget *budget);
struct sl_js_place sl_js_place_of(const struct sl_js_places *places, uint32_t offset); /* up to text.size */
void sl_js_places_free(struct sl_js_places *places);
