/* Syntax tree of a Microsoft name, its reader and its printer. Private to microsoft*.c. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"

enum { MS_CONST = 1, MS_VOLATILE = 2 };

struct ms_list { /* list of types or template arguments */
    const struct ms_type *item;
    struct ms_list *next;
};

/* Kinds of types and template arguments, with the members of struct ms_type that each uses. */
enum ms_kind {
    MS_PRIMITIVE, /* text */
    MS_NAMED,     /* name */
    MS_POINTER,   /* sigil, inner; name: class of a pointer to member */
    MS_ARRAY,     /* list: sizes of the dimensions; inner: element */
    MS_FUNCTION,  /* list: parameters; inner: result or NULL; quals and sigil: those of `this` */
    MS_NUMBER,    /* text */
    MS_SYMBOL,    /* sigil, symbol and text, printed in this order: "&" and f, or "{", f and ", 8}" with an offset */
    MS_NOTHING,   /* an empty pack */
};

struct ms_type { /* a type or a template argument; enum ms_kind says which members are used */
    enum ms_kind kind;
    uint8_t quals; /* MS_CONST, MS_VOLATILE */
    bool variadic, no_except;
    const char *sigil; /* "*", "&", "&&"; before a symbol also "{" or "" */
    struct sl_str text;
    const struct ms_name *name;
    const struct ms_type *inner;
    const struct ms_list *list; /* parameters; or dimensions of an array, as numbers */
    const struct ms_symbol *symbol;
};

enum ms_piece_kind {
    MS_TEXT,       /* text, printed unchanged */
    MS_CTOR,       /* constructor: printed as the name of the scope around it, its class */
    MS_DTOR,       /* destructor: printed as a tilde and the name of the scope around it */
    MS_CONVERSION, /* conversion operator to the type of the symbol's result */
    MS_SCOPE,      /* a symbol as a scope: `f(void)' */
    MS_INITIALIZER /* a function that initializes or destroys a variable: text says which, symbol is the variable */
};

struct ms_piece { /* a component of a qualified name */
    enum ms_piece_kind kind;
    struct sl_str text;
    bool is_template;
    const struct ms_list *arguments; /* template arguments */
    const struct ms_type *target;    /* target type of a conversion */
    const struct ms_symbol *symbol;
    struct ms_piece *outer; /* the scope around it; NULL: none */
};

struct ms_name {
    struct ms_piece *innermost;
};

struct ms_symbol {
    struct ms_name name;
    bool thunk, is_function;
    struct sl_str adjustor;          /* printed after the name of a thunk */
    const struct ms_type *type;      /* of a function or variable; may be NULL */
    const struct ms_type *table_for; /* RTTI type descriptors: the type that is described; else NULL */
    struct sl_str before, behind;    /* printed around the name of special symbols */
};

/* ---- reader (microsoft_read.c, microsoft_type.c) ---- */

enum { MS_BACK_REFERENCES = 10 };

struct ms_references { /* back references of the name, or of one list of template arguments */
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

void *ms_fail(struct ms_reader *r);                          /* fails the reader; returns NULL */
bool ms_next(struct ms_reader *r, char c);                   /* skips `c`; false if another character is next */
bool ms_next_text(struct ms_reader *r, const char *text);    /* skips `text`; false if something else is next */
bool ms_starts(const struct ms_reader *r, const char *text); /* true if `text` is next */
char ms_take(struct ms_reader *r); /* takes the next character; at the end fails and returns NUL */

/* Enters a recursion level; false, and failed, if it is too deep. Pair it with ms_leave(). */
bool ms_enter(struct ms_reader *r);
static inline void ms_leave(struct ms_reader *r)
{
    r->depth--;
}

/* Read a number: as sign and magnitude (false if it is malformed), or as decimal text in the arena (empty if it is malformed). */
bool ms_number(struct ms_reader *r, uint64_t *value, bool *negative);
struct sl_str ms_number_text(struct ms_reader *r);

/* Formats a text in the arena. Fails the reader, with an empty text, when it is longer than 511 bytes or memory is short. */
struct sl_str ms_format(struct ms_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Read a part of a name. NULL, with the reader failed, if it is malformed; ms_read_arguments() also returns NULL for an empty list. */
const struct ms_symbol *ms_read_symbol(struct ms_reader *r);  /* at its question mark */
const struct ms_name *ms_read_type_name(struct ms_reader *r); /* name of a class, with its scopes */
struct ms_piece *ms_read_type_piece(struct ms_reader *r);     /* name of a class without scopes */
const struct ms_list *ms_read_arguments(struct ms_reader *r); /* template arguments, including the end mark */

/* Reads `const` and `volatile` (MS_CONST, MS_VOLATILE): a letter A to D, or Q to T for the target of a pointer to member (`*is_member`). */
uint8_t ms_read_quals(struct ms_reader *r, bool *is_member);
void ms_skip_pointer_quals(struct ms_reader *r); /* __ptr64, __unaligned, __restrict: not printed */

/* Whether a type's own qualifiers precede it: never, always, or after a question mark. */
enum ms_mode { MS_BARE, MS_QUALIFIED, MS_RESULT };
/* Reads a type. Returns a new one, which the caller may modify; NULL, with the reader failed, if it is malformed. */
struct ms_type *ms_read_type(struct ms_reader *r, enum ms_mode mode);
/* Reads the type of a function. `has_this`: it is a member function that is not static, so qualifiers of `this` come first. */
struct ms_type *ms_read_function(struct ms_reader *r, bool has_this);

/* ---- printer (microsoft_print.c) ---- */

/* Append the text of a symbol (`full`: with the type of the result or variable) or of one piece of a name. False if it is longer than
 * `limit`, visits too many nodes, or memory is short. */
bool ms_print_symbol(const struct ms_symbol *symbol, bool full, struct sl_buf *out, size_t limit);
bool ms_print_piece(const struct ms_piece *piece, struct sl_buf *out, size_t limit);
