/* Reading JSON objects by tables of their keys, as requests have them, straight from the text into structs: unknown keys are
 * skipped, null is absent, and what does not fit is told with its dotted path and place. Texts are views of the document, or
 * in the reader's arena where they have escapes; they have no NUL. */
#pragma once

#include "base/json.h"

struct schema_place { /* where in the document: a list from the innermost step outwards, on the stack */
    const struct schema_place *up;
    struct sl_str key; /* data NULL: `index` of an array */
    size_t index;
};

/* Every function that reads says false when something did not fit (`problem` is set), when the document is no JSON or memory
 * was short (the reader has failed). */
struct schema {
    struct sl_json *json; /* what is read lies in its arena, and `problem` */
    const char *problem; /* the first: "stacktraces[0].frames: invalid type: string, expected an array at line 1 ..." */
    void *context;       /* of the `read` functions */
};

struct opt_u64 {
    bool set;
    uint64_t value;
};

enum opt_bool { BOOL_ABSENT, BOOL_FALSE, BOOL_TRUE };

enum field_type {
    FIELD_TEXT,   /* struct sl_str; data NULL = absent */
    FIELD_HEX,    /* struct opt_u64: integer, "0x..." or decimal text */
    FIELD_U64,    /* struct opt_u64 */
    FIELD_U32,    /* struct opt_u64 */
    FIELD_BOOL,   /* enum opt_bool */
    FIELD_CUSTOM, /* `read` */
};

typedef bool schema_read(struct schema *s, const struct schema_place *at, void *out);

struct field {
    struct sl_str key; /* data NULL ends the table */
    enum field_type type;
    bool required;
    size_t offset; /* in the struct that is filled */
    schema_read *read;
};

/* Fills `out` by the table; members of absent keys are left alone. */
bool schema_object(struct schema *s, const struct schema_place *at, const struct field *fields, void *out);

/* The elements of an array, each by `read`, into an array of the arena: `*items`, `*count`. */
bool schema_array(struct schema *s, const struct schema_place *at, size_t item_size, schema_read *read, void **items,
                  size_t *count);

/* Opens the object or array that comes next; `expected` names it otherwise. */
bool schema_open(struct schema *s, const struct schema_place *at, enum sl_json_type type, const char *expected);

/* One value. */
bool schema_text(struct schema *s, const struct schema_place *at, struct sl_str *out);
bool schema_hex(struct schema *s, const struct schema_place *at, uint64_t *out);

/* Always false. Keeps the first problem; `where` is the offset of the value it is about. */
bool schema_fail(struct schema *s, const struct schema_place *at, size_t where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
