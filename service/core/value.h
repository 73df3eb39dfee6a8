/* A tree of plain values with positions: what a YAML configuration and a JSON request have in common, so that one schema
 * reader serves both (sources). Lives in an arena. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/json_write.h"

enum value_type { VALUE_NULL, VALUE_BOOL, VALUE_INT, VALUE_DOUBLE, VALUE_STRING, VALUE_LIST, VALUE_MAP };

struct value {
    enum value_type type;
    bool boolean;
    bool negative;        /* VALUE_INT: the value is -(int64_t)integer's magnitude */
    uint64_t integer;     /* magnitude */
    double number;        /* also set for VALUE_INT */
    struct sl_str string; /* VALUE_STRING; of numbers and other YAML scalars their text */
    struct value *items;  /* VALUE_LIST: elements; VALUE_MAP: values */
    struct sl_str *keys;  /* VALUE_MAP, parallel to items */
    size_t count;
    uint32_t line, column; /* 1-based; 0 when not known (value_from_json) */
};

/* Of a map of texts. */
struct text_pair {
    struct sl_str key, value;
};

/* The member of a map; NULL when absent or `map` is no map. */
struct value *value_get(const struct value *map, const char *key);

/* The value that comes next in `j`. Lists lie in `arena`; texts, keys and numbers (whose text is in `string`) are views of
 * the document or in the reader's arena, so that the tree may go before they do. False: the reader has failed. */
bool value_from_json(struct sl_arena *arena, struct sl_json *j, struct value *out);

/* Collects what a schema reader found wrong: each entry a dotted path and a sentence. */
struct value_problem {
    struct sl_str path;
    struct sl_str what;
    uint32_t line, column;
    bool warning, info;
};
struct value_problems {
    struct sl_arena *arena;
    struct value_problem *items;
    size_t count, capacity;
    size_t errors;
};
void value_problem(struct value_problems *problems, const struct value *at, bool warning, const char *path,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Something that is as it should be, for who asked. */
void value_info(struct value_problems *problems, const struct value *at, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* How many warnings there are; errors are counted in `errors`. */
size_t value_warnings(const struct value_problems *problems);
