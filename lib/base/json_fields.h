/* Reads JSON objects into structs by tables of their keys. Unknown keys are skipped. Strings are views of the document, or lie
 * in the reader's arena if they have escapes; they are not NUL-terminated.
 *
 * Requests are read strictly: null counts as absent, and a value of another type is an error with its dotted path and position.
 * Files and responses of other services are read quietly:
 *
 *     static const struct sl_field fields[] = {SL_FIELD(TEXT, false, person, name, "name"),
 *                                              SL_FIELD(U64, false, person, age, "age"), SL_FIELDS_END};
 *     if (sl_json_read_object(&j, fields, &person)) ... */
#pragma once

#include <stddef.h>

#include "base/json.h"

struct sl_json_path { /* path of a value in the document: a list on the stack, innermost step first */
    const struct sl_json_path *up;
    struct sl_str key; /* name of the member; data NULL: an array element, see `index` */
    size_t index;
};

/* Reader state. Every reading function returns false when a value has another type or is out of range (`problem` is set, unless `quiet`),
 * and when the document is not JSON or memory is short (the JSON reader has failed). */
struct sl_field;
struct sl_fields {
    struct sl_json *json; /* its arena holds the results and `problem` */
    const char *problem; /* the first: "stacktraces[0].frames: invalid type: string, expected an array at line 1 ..." */
    const char *too_much; /* set if sl_fields_admit() has refused an item: its argument of that name */
    void *context;        /* for the functions `read` of fields */
    bool quiet; /* values of another type are skipped, as if absent; of repeated members the last one counts */
    /* private: the table used last, and the bits of its required fields */
    const struct sl_field *fields;
    uint64_t required;
};

/* Admits one more item of a list, the `count`th of at most `limit`: raises the memory limit of the reader's arena by what an item of `size`
 * bytes takes. False above `limit`: the JSON reader has failed with the reason `too_much` (static). */
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
    SL_FIELD_LINE,   /* struct sl_opt_u64 of 32 bits; negative (JVMs report that for native code) = absent */
    SL_FIELD_BOOL,   /* enum sl_opt_bool */
    SL_FIELD_FLAG,   /* bool; an absent member is false */
    SL_FIELD_RAW,    /* struct sl_str: a value of type `json_type` as written; SL_JSON_NONE = any type */
    SL_FIELD_OBJECT, /* an object, read by the table `fields` into a nested struct or into the struct around it */
    SL_FIELD_LIST,   /* an array, its elements read by the table `fields` or by `read`: a pointer to items, a count */
    SL_FIELD_CUSTOM, /* any value, read by `read` */
};

/* Reads the next value into `out`; `at` is its path, for errors. False if it does not fit. */
typedef bool sl_field_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

struct sl_field {
    struct sl_str key; /* data NULL ends the table */
    enum sl_field_type type;
    bool required;
    size_t offset; /* of the member in the struct */
    sl_field_read *read;
    const struct sl_field *fields;
    enum sl_json_type json_type;
    uint32_t size, count; /* of a list: size of an item, and offset of the count (a size_t) in the struct */
};

/* Initialisers for the rows of a table of keys: `owner` is the struct, `member` what the value of key `name` is read into. */
#define SL_FIELD_ROW(is_required, owner, member, name)                                                                 \
    .key = SL_STR(name), .required = is_required, .offset = offsetof(struct owner, member)
/* SL_FIELD: a member that is read by its field type; SL_FIELD_BY: by a function; SL_FIELD_AS_IS: copied as it is written, if the value has
 * the JSON type `kind`. */
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
/* An object that a table of its own describes. SL_FIELD_PART reads it into a nested struct, SL_FIELD_SAME into the struct of the object
 * around it. */
#define SL_FIELD_PART(owner, member, name, table)                                                                      \
    {                                                                                                                  \
        SL_FIELD_ROW(false, owner, member, name), .type = SL_FIELD_OBJECT, .fields = table                             \
    }
#define SL_FIELD_SAME(name, table)                                                                                     \
    {                                                                                                                  \
        .key = SL_STR(name), .type = SL_FIELD_OBJECT, .fields = table                                                  \
    }
/* An array. SL_FIELD_ITEMS: of objects that one table describes; SL_FIELD_EACH: of values that a function reads, such as sl_fields_text. */
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

/* Fills `out` by the table; members whose keys are absent stay unchanged. When quiet, a value that is not an object is skipped;
 * false then means that it was no object, that a required member is absent, or that the reader has failed. */
bool sl_fields_object(struct sl_fields *s, const struct sl_json_path *at, const struct sl_field *fields, void *out);

/* Reads the elements of an array, each by `read`, into a new array in the arena: `*items`, `*count`. */
bool sl_fields_array(struct sl_fields *s, const struct sl_json_path *at, size_t item_size, sl_field_read *read,
                     void **items, size_t *count);

/* Opens the next value, an object or array by `type`; for any other value the error says that `expected` was expected. */
bool sl_fields_open(struct sl_fields *s, const struct sl_json_path *at, enum sl_json_type type, const char *expected);

/* Read one value. sl_fields_text: a string, into a struct sl_str. sl_fields_raw: any value as it is written, into a struct sl_str.
 * sl_fields_hex: a number, or a string of a number, also in hex with 0x. */
bool sl_fields_text(struct sl_fields *s, const struct sl_json_path *at, void *out);
bool sl_fields_raw(struct sl_fields *s, const struct sl_json_path *at, void *out);
bool sl_fields_hex(struct sl_fields *s, const struct sl_json_path *at, uint64_t *out);

/* Sets `problem` to the message with path and position of the value, unless there is one already, the JSON reader has failed or `quiet` is
 * set. `where` is the value's offset in the document. Returns false. */
bool sl_fields_fail(struct sl_fields *s, const struct sl_json_path *at, size_t where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- quietly ---- */

/* Fills `out` from the next object by the table, as sl_fields_object() does with `quiet` set and without a context. False if it is no
 * object, if a required member is absent, or if the reader has failed. */
bool sl_json_read_object(struct sl_json *j, const struct sl_field *fields, void *out);

/* Returns the last member named `key` of the next object, as written; data NULL if there is none. */
struct sl_str sl_json_find(struct sl_json *j, struct sl_str key);
