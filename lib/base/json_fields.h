/* Reading JSON objects by tables of their keys, straight from the text into structs. Unknown keys are skipped. Texts are views
 * of the document, or in the reader's arena where they have escapes; they have no NUL.
 *
 * Requests are read strictly: null is absent, and what does not fit is told with its dotted path and place. Files and the
 * answers of other services are read quietly:
 *
 *     static const struct sl_field fields[] = {SL_FIELD(TEXT, false, person, name, "name"),
 *                                              SL_FIELD(U64, false, person, age, "age"), SL_FIELDS_END};
 *     if (sl_json_read_object(&j, fields, &person)) ... */
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
    bool quiet; /* what does not fit is skipped and counts as absent; of members of the same name the last one counts */
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
    SL_FIELD_FLAG,   /* bool; false = absent, too */
    SL_FIELD_RAW,    /* struct sl_str: a value of `json_type` as it is written; of any if that is SL_JSON_NONE */
    SL_FIELD_OBJECT, /* by `fields`, into a struct that is a part of the struct, or into the same */
    SL_FIELD_LIST, /* an array, of objects by `fields` or each by `read`: a pointer to items of `size` bytes, their count */
    SL_FIELD_CUSTOM, /* `read` */
};

typedef bool sl_field_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

struct sl_field {
    struct sl_str key; /* data NULL ends the table */
    enum sl_field_type type;
    bool required;
    size_t offset; /* in the struct that is filled */
    sl_field_read *read;
    const struct sl_field *fields;
    enum sl_json_type json_type;
    uint32_t size, count; /* of a list: that of an item, and the offset of how many there are, a size_t */
};

/* Rows of a table. */
#define SL_FIELD_ROW(is_required, owner, member, name)                                                                 \
    .key = SL_STR(name), .required = is_required, .offset = offsetof(struct owner, member)
/* A member of a struct by its kind; by a function; as it is written, if it is of a kind of JSON. */
#define SL_FIELD(kind, required, owner, member, name)                                                                  \
    {                                                                                                                  \
        SL_FIELD_ROW(required, owner, member, name), .type = SL_FIELD_##kind                                           \
    }
#define SL_FIELD_BY(required, owner, member, name, function)                                                           \
    {                                                                                                                  \
        SL_FIELD_ROW(required, owner, member, name), .type = SL_FIELD_CUSTOM, .read = function                         \
    }
#define SL_FIELD_AS_IS(kind, required, owner, member, name)                                                            \
    {                                                                                                                  \
        SL_FIELD_ROW(required, owner, member, name), .type = SL_FIELD_RAW, .json_type = SL_JSON_##kind                 \
    }
/* An object whose table fills a member, or the struct itself. */
#define SL_FIELD_PART(owner, member, name, table)                                                                      \
    {                                                                                                                  \
        SL_FIELD_ROW(false, owner, member, name), .type = SL_FIELD_OBJECT, .fields = table                             \
    }
#define SL_FIELD_SAME(name, table)                                                                                     \
    {                                                                                                                  \
        .key = SL_STR(name), .type = SL_FIELD_OBJECT, .fields = table                                                  \
    }
/* An array, of objects of one table, or of values that a function reads: sl_fields_text or sl_fields_raw, too. */
#define SL_FIELD_ITEMS(owner, items, number, name, table)                                                              \
    {                                                                                                                  \
        SL_FIELD_ROW(false, owner, items, name), .type = SL_FIELD_LIST, .fields = table,                               \
                                                 SL_FIELD_SIZES(owner, items, number)                                  \
    }
#define SL_FIELD_EACH(required, owner, items, number, name, function)                                                  \
    {                                                                                                                  \
        SL_FIELD_ROW(required, owner, items, name), .type = SL_FIELD_LIST, .read = function,                           \
                                                    SL_FIELD_SIZES(owner, items, number)                               \
    }
#define SL_FIELD_SIZES(owner, items, number)                                                                           \
    .size = sizeof *((struct owner *)0)->items, .count = offsetof(struct owner, number)
#define SL_FIELDS_END                                                                                                  \
    {                                                                                                                  \
        .key = { NULL, 0 }                                                                                             \
    }

/* Fills `out` by the table; members of absent keys are left alone. Quietly, what is no object is skipped, and false says that
 * none came, that a member that is required is absent, or that the reader has failed. */
bool sl_fields_object(struct sl_fields *s, const struct sl_json_path *at, const struct sl_field *fields, void *out);

/* The elements of an array, each by `read`, into an array of the arena: `*items`, `*count`. */
bool sl_fields_array(struct sl_fields *s, const struct sl_json_path *at, size_t item_size, sl_field_read *read,
                     void **items, size_t *count);

/* Opens the object or array that comes next; `expected` names it otherwise. */
bool sl_fields_open(struct sl_fields *s, const struct sl_json_path *at, enum sl_json_type type, const char *expected);

/* One value: a text, any value as it is written (both a struct sl_str), a number. */
bool sl_fields_text(struct sl_fields *s, const struct sl_json_path *at, void *out);
bool sl_fields_raw(struct sl_fields *s, const struct sl_json_path *at, void *out);
bool sl_fields_hex(struct sl_fields *s, const struct sl_json_path *at, uint64_t *out);

/* Always false. Keeps the first problem; `where` is the offset of the value it is about. */
bool sl_fields_fail(struct sl_fields *s, const struct sl_json_path *at, size_t where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- quietly ---- */

/* sl_fields_object, quietly and without a context. */
bool sl_json_read_object(struct sl_json *j, const struct sl_field *fields, void *out);

/* The last member of that name of the object that comes next, as it is written; data NULL: there is none. */
struct sl_str sl_json_find(struct sl_json *j, struct sl_str key);
