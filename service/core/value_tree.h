/* A tree of plain values (null, number, string, list, map) with their positions in the text. YAML configurations and JSON requests are both
 * parsed into such trees, so that the same code reads the symbol sources in both. A tree lives in an arena. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/json_write.h"

enum value_type { VALUE_NULL, VALUE_BOOL, VALUE_INT, VALUE_DOUBLE, VALUE_STRING, VALUE_LIST, VALUE_MAP };

struct value {
    enum value_type type;
    bool boolean;
    bool negative;        /* VALUE_INT: the value is -integer */
    uint64_t integer;     /* VALUE_INT: the value without its sign */
    double number;        /* VALUE_DOUBLE and VALUE_INT: the value as a double */
    struct sl_str string; /* VALUE_STRING: the string; also the text of numbers and other YAML scalars as written */
    struct value *items;  /* VALUE_LIST: elements; VALUE_MAP: values */
    struct sl_str *keys;  /* VALUE_MAP, parallel to items */
    size_t count;
    uint32_t line, column; /* 1-based; 0 when not known (value_from_json) */
};

/* Key and value of a map whose values are texts. */
struct text_pair {
    struct sl_str key, value;
};

/* Returns the value of a key of a map; NULL if it has no such key, or if `map` is NULL or not a map. */
struct value *value_get(const struct value *map, const char *key);

/* Reads the next JSON value of the reader `j`. The arrays of lists and maps are allocated in `arena`; texts are views of the document or
 * lie in the reader's arena, so the tree must outlive neither. False: the reader has failed. */
bool value_from_json(struct sl_arena *arena, struct sl_json *j, struct value *out);

/* An error, warning or note about a value that does not fit its schema, such as an unknown key. */
struct value_problem {
    struct sl_str path; /* dotted path of the value */
    struct sl_str what; /* a sentence */
    uint32_t line, column;
    bool warning, info;
};
struct value_problems {
    struct sl_arena *arena;
    struct value_problem *items;
    size_t count, capacity;
    size_t errors;
};
/* Adds a warning or, with `warning` false, an error about the value `at`, whose dotted path is `path`. `at` NULL: about the whole
 * document. */
void value_problem(struct value_problems *problems, const struct value *at, bool warning, const char *path,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Adds a note (`info`) about the value `at`. */
void value_info(struct value_problems *problems, const struct value *at, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Returns the number of warnings; that of errors is `problems->errors`. */
size_t value_warnings(const struct value_problems *problems);
