/* Reading JSON objects by tables of their keys, as requests have them, straight from the text into structs: unknown keys are
 * skipped, null is absent, and what does not fit is told with its dotted path and place. Texts are views of the document, or
 * in the reader's arena where they have escapes; they have no NUL. */
#pragma once

#include <stddef.h>

#include "base/json.h"

struct schema_place { /* where in the document: a list from the innermost step outwards, on the stack */
    const struct schema_place *up;
    struct sl_str key; /* data NULL: `index` of an array */
    size_t index;
};

/* Every function that reads says false when something did not fit (`problem` is set), when the document is no JSON or memory
 * was short (the reader has failed). */
struct field;
struct schema {
    struct sl_json *json; /* what is read lies in its arena, and `problem` */
    const char *problem; /* the first: "stacktraces[0].frames: invalid type: string, expected an array at line 1 ..." */
    const char *too_much; /* of what schema_admit had to refuse */
    void *context;        /* of the `read` functions */
    /* private: a table of fields, and those of it that have to be there */
    const struct field *fields;
    uint64_t required;
};

/* Why a document was not read. */
struct schema_failure {
    int status; /* 400 it is no JSON, 422 it is not what was expected, 413 it is too much, 503 out of memory */
    const char *problem;
};

/* Reads a whole document, which must outlive what was read; `read` takes its one value. What is taken of the arena is in
 * proportion to the document: at most three times its size, and what is admitted. A document that is no JSON is told so even
 * if something before did not fit. False: `failure`, its text in the arena. Pure: loop or pool. */
bool schema_document(struct sl_str text, struct sl_arena *arena, bool (*read)(struct schema *s), void *context,
                     struct schema_failure *failure);

/* What a failure for want of memory is. */
extern const struct schema_failure schema_no_memory;

/* The `count`th of a list of which `limit` may be, kept in a struct of `size` bytes: memory beyond what the document's size
 * allows. False when there are too many, which `too_much` says. */
bool schema_admit(struct schema *s, size_t count, uint64_t limit, size_t size, const char *too_much);

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
    FIELD_LINE,   /* struct opt_u64 of 32 bits; a negative number, as JVMs have it for native code, is absent */
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

/* Rows of a table: of a member of a struct by its kind, or by a function of its own; and its end. */
#define SCHEMA_FIELD(kind, required, type, member, key)                                                                \
    {                                                                                                                  \
        SL_STR(key), FIELD_##kind, required, offsetof(struct type, member), NULL                                       \
    }
#define SCHEMA_CUSTOM(required, type, member, key, read)                                                               \
    {                                                                                                                  \
        SL_STR(key), FIELD_CUSTOM, required, offsetof(struct type, member), read                                       \
    }
#define SCHEMA_END                                                                                                     \
    {                                                                                                                  \
        {NULL, 0}, FIELD_TEXT, false, 0, NULL                                                                          \
    }

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

/* Values of requests that several APIs have, each a schema_read: an array of texts, kept as it is written into a struct sl_str
 * (data NULL when it is empty); "callee_first" or "caller_first" into a bool that says whether it is the former. */
bool schema_raw_texts(struct schema *s, const struct schema_place *at, void *out);
bool schema_callee_first(struct schema *s, const struct schema_place *at, void *out);

/* Always false. Keeps the first problem; `where` is the offset of the value it is about. */
bool schema_fail(struct schema *s, const struct schema_place *at, size_t where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
