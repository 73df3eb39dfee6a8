/* The tree of a Microsoft name, its reader and its printer. Private to microsoft*.c. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"

enum { MS_CONST = 1, MS_VOLATILE = 2 };

struct ms_list { /* of types or template arguments */
    const struct ms_type *item;
    struct ms_list *next;
};

enum ms_kind {
    MS_PRIMITIVE, /* text */
    MS_NAMED,     /* name */
    MS_POINTER,   /* sigil, inner; name: of the class that a member pointer belongs to */
    MS_ARRAY,     /* dimensions, inner */
    MS_FUNCTION,  /* list, inner = result or NULL; quals, sigil: of `this` */
    MS_NUMBER,    /* text */
    MS_SYMBOL,    /* sigil, symbol, text: what stands behind it in braces */
    MS_NOTHING,   /* an empty pack */
};

struct ms_type {
    enum ms_kind kind;
    uint8_t quals;
    bool variadic, no_except;
    const char *sigil;
    struct sl_str text;
    const struct ms_name *name;
    const struct ms_type *inner;
    const struct ms_list *list; /* parameters; dimensions of an array: numbers */
    const struct ms_symbol *symbol;
};

enum ms_piece_kind {
    MS_TEXT,       /* text, as it is */
    MS_CTOR,       /* the name of the next outer piece */
    MS_DTOR,       /* the same, behind a tilde */
    MS_CONVERSION, /* operator, to the type of the symbol's result */
    MS_SCOPE,      /* a symbol as a scope: `f(void)' */
    MS_INITIALIZER /* text, a symbol */
};

struct ms_piece { /* of a qualified name */
    enum ms_piece_kind kind;
    struct sl_str text;
    bool is_template;
    const struct ms_list *arguments; /* of a template */
    const struct ms_type *target;    /* of a conversion */
    const struct ms_symbol *symbol;
    struct ms_piece *outer;
};

struct ms_name {
    struct ms_piece *innermost;
};

struct ms_symbol {
    struct ms_name name;
    bool thunk, is_function;
    struct sl_str adjustor;                 /* behind the name of a thunk */
    const struct ms_type *type, *table_for; /* of a function, or a variable; may be NULL */
    struct sl_str before, behind;           /* of special symbols */
};

/* ---- reading (microsoft_read.c, microsoft_type.c) ---- */

enum { MS_BACK_REFERENCES = 10 };

struct ms_references { /* of the name, or of one list of template arguments */
    struct sl_str names[MS_BACK_REFERENCES];
    const struct ms_piece *pieces[MS_BACK_REFERENCES];
    const struct ms_type *types[MS_BACK_REFERENCES];
    struct sl_str type_texts[MS_BACK_REFERENCES]; /* as mangled */
    unsigned name_count, type_count;
};

struct ms_reader {
    const char *at, *end;
    struct sl_arena *arena;
    struct ms_references references;
    unsigned depth;
    bool failed;
};

void *ms_fail(struct ms_reader *r); /* NULL */
bool ms_next(struct ms_reader *r, char c);
bool ms_next_text(struct ms_reader *r, const char *text);
bool ms_starts(const struct ms_reader *r, const char *text);
char ms_take(struct ms_reader *r); /* NUL, and failed, at the end */

/* Recursion: true, or failed. Leave with ms_leave. */
bool ms_enter(struct ms_reader *r);
static inline void ms_leave(struct ms_reader *r)
{
    r->depth--;
}

/* A number as text, of an arena. */
bool ms_number(struct ms_reader *r, uint64_t *value, bool *negative);
struct sl_str ms_number_text(struct ms_reader *r);
struct sl_str ms_format(struct ms_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

const struct ms_symbol *ms_read_symbol(struct ms_reader *r);  /* from its question mark */
const struct ms_name *ms_read_type_name(struct ms_reader *r); /* of a class, with its scopes */
struct ms_piece *ms_read_type_piece(struct ms_reader *r);     /* unqualified */
const struct ms_list *ms_read_arguments(struct ms_reader *r); /* of a template, with the end */
uint8_t ms_read_quals(struct ms_reader *r, bool *is_member);  /* A to D, Q to T */
void ms_skip_pointer_quals(struct ms_reader *r);              /* __ptr64, __unaligned, __restrict */

/* How the qualifiers of a type itself are written: not at all, always, or behind a question mark. */
enum ms_mode { MS_BARE, MS_QUALIFIED, MS_RESULT };
/* Made by the call: nobody else has it. */
struct ms_type *ms_read_type(struct ms_reader *r, enum ms_mode mode);
struct ms_type *ms_read_function(struct ms_reader *r, bool has_this);

/* ---- printing (microsoft_print.c) ---- */

/* False when it is too long. */
bool ms_print_symbol(const struct ms_symbol *symbol, bool full, struct sl_buf *out, size_t limit);
bool ms_print_piece(const struct ms_piece *piece, struct sl_buf *out, size_t limit);
