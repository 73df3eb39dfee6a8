/* Reading JSON objects by tables of their keys, as requests have them: unknown keys are ignored, null is absent, and what
 * does not fit is told with its dotted path and place. Texts are views of the tree, which must outlive what was read. */
#pragma once

#include "base/arena.h"
#include "core/value.h"

struct schema_place { /* where in the document: a list from the innermost step outwards, on the stack */
    const struct schema_place *up;
    const char *key; /* NULL: `index` of an array */
    size_t index;
};

struct schema {
    struct sl_arena *arena; /* for what is read, and for `problem` */
    const char *problem; /* the first: "stacktraces[0].frames: invalid type: string, expected an array at line 1 ..." */
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

struct field {
    const char *key; /* NULL ends the table */
    enum field_type type;
    bool required;
    size_t offset; /* in the struct that is filled */
    bool (*read)(struct schema *s, const struct schema_place *at, const struct value *value, void *out);
};

/* Fills `out` by the table; members of absent keys are left alone. False when something did not fit: `problem` is set. */
bool schema_object(struct schema *s, const struct schema_place *at, const struct value *value,
                   const struct field *fields, void *out);

/* The elements of an array, each by `read`, into an array of the arena: `*items`, `*count`. */
bool schema_array(struct schema *s, const struct schema_place *at, const struct value *value, size_t item_size,
                  bool (*read)(struct schema *s, const struct schema_place *at, const struct value *value, void *out),
                  void **items, size_t *count);

/* One value. */
bool schema_text(struct schema *s, const struct schema_place *at, const struct value *value, struct sl_str *out);
bool schema_hex(struct schema *s, const struct schema_place *at, const struct value *value, uint64_t *out);

/* Always false. Keeps the first problem; `value` (may be NULL) says where it is. */
bool schema_fail(struct schema *s, const struct schema_place *at, const struct value *value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* "invalid type: <what the value is>, expected <what>". Always false. */
bool schema_mismatch(struct schema *s, const struct schema_place *at, const struct value *value, const char *expected);
