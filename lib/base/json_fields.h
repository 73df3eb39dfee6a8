/* Reading JSON objects by tables of their keys, as requests have them, straight from the text into structs: unknown keys are
 * skipped, null is absent, and what does not fit is told with its dotted path and place. Texts are views of the document, or
 * in the reader's arena where they have escapes; they have no NUL. */
#pragma once

#include <stddef.h>

#include "base/json.h"

struct sl_json_path { /* where in the document: a list from the innermost step outwards, on the stack */
    const struct sl_json_path *up;
    struct sl_str key; /* data NULL: `index` of an array */
    size_t index;
};

/* Every function that reads says false when something did not fit (`problem` is set), when the document is no JSON or memory
 * was short (the reader has failed). */
struct sl_field;
struct sl_fields {
    struct sl_json *json; /* what is read lies in its arena, and `problem` */
    const char *problem; /* the first: "stacktraces[0].frames: invalid type: string, expected an array at line 1 ..." */
    const char *too_much; /* of what sl_fields_admit had to refuse */
    void *context;        /* of the `read` functions */
    /* private: a table of fields, and those of it that have to be there */
    const struct sl_field *fields;
    uint64_t required;
};

/* The `count`th of a list of which `limit` may be, kept in a struct of `size` bytes: memory beyond what the document's size
 * allows. False when there are too many, which `too_much` says. */
bool sl_fields_admit(struct sl_fields *s, size_t count, uint64_t limit, size_t size, const char *too_much);

struct sl_opt_u64 {
    bool set;
    uint64_t value;
};

enum sl_opt_bool { SL_BOOL_ABSENT, SL_BOOL_FALSE, SL_BOOL_TRUE };

enum sl_field_type {
    SL_FIELD_TEXT,   /* struct sl_str; data NULL = absent */
    SL_FIELD_HEX,    /* struct sl_opt_u64: integer, "0x..." or decimal text */
    SL_FIELD_U64,    /* struct sl_opt_u64 */
    SL_FIELD_U32,    /* struct sl_opt_u64 */
    SL_FIELD_LINE,   /* struct sl_opt_u64 of 32 bits; a negative number, as JVMs have it for native code, is absent */
    SL_FIELD_BOOL,   /* enum sl_opt_bool */
    SL_FIELD_CUSTOM, /* `read` */
};

typedef bool sl_field_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

struct sl_field {
    struct sl_str key; /* data NULL ends the table */
    enum sl_field_type type;
    bool required;
    size_t offset; /* in the struct that is filled */
    sl_field_read *read;
};

/* Rows of a table: of a member of a struct by its kind, or by a function of its own; and its end. */
#define SL_FIELD(kind, required, type, member, key)                                                                    \
    {                                                                                                                  \
        SL_STR(key), SL_FIELD_##kind, required, offsetof(struct type, member), NULL                                    \
    }
#define SL_FIELD_BY(required, type, member, key, read)                                                                 \
    {                                                                                                                  \
        SL_STR(key), SL_FIELD_CUSTOM, required, offsetof(struct type, member), read                                    \
    }
#define SL_FIELDS_END                                                                                                  \
    {                                                                                                                  \
        {NULL, 0}, SL_FIELD_TEXT, false, 0, NULL                                                                       \
    }

/* Fills `out` by the table; members of absent keys are left alone. */
bool sl_fields_object(struct sl_fields *s, const struct sl_json_path *at, const struct sl_field *fields, void *out);

/* The elements of an array, each by `read`, into an array of the arena: `*items`, `*count`. */
bool sl_fields_array(struct sl_fields *s, const struct sl_json_path *at, size_t item_size, sl_field_read *read,
                     void **items, size_t *count);

/* Opens the object or array that comes next; `expected` names it otherwise. */
bool sl_fields_open(struct sl_fields *s, const struct sl_json_path *at, enum sl_json_type type, const char *expected);

/* One value. */
bool sl_fields_text(struct sl_fields *s, const struct sl_json_path *at, struct sl_str *out);
bool sl_fields_hex(struct sl_fields *s, const struct sl_json_path *at, uint64_t *out);

/* Always false. Keeps the first problem; `where` is the offset of the value it is about. */
bool sl_fields_fail(struct sl_fields *s, const struct sl_json_path *at, size_t where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
