/* Private to lib/breakpad.
 *
 *     tree of one function ──flatten──▶ struct flat_function ──encode──▶ record in the writer's arena */
#pragma once

#include "base/buf.h"
#include "base/account.h"
#include "base/map.h"
#include "breakpad/breakpad.h"
#include "demangle/demangle.h"

/* A range of code and its line in the innermost function, inlined or not. */
struct flat_line {
    uint64_t address, size;
    uint32_t file, line;
};

/* A range of an inlined call. `name` is the number of the inlined function's name in the batch (breakpad_name_of). */
struct flat_inline {
    uint64_t address, size;
    uint32_t depth, call_file, call_line, name;
};

struct flat_function {
    struct sl_account account;
    struct flat_line *lines;
    struct flat_inline *inlines;
    size_t line_count, line_capacity, inline_count, inline_capacity;
};

/* A set of texts, numbered from 0 in the order in which they were added. */
struct breakpad_texts {
    struct sl_account account; /* for `items` */
    struct sl_map map;         /* from a text to its number plus 1 */
    struct sl_str *items;
    size_t count, capacity;
};

struct breakpad_record { /* a FUNC record */
    uint64_t address, size;
    const uint8_t *data; /* its lines and inlined calls, encoded; see collect.c */
    uint32_t data_size;
    uint32_t name;  /* number in the writer's names */
    uint32_t order; /* number of records before it in the input */
    uint32_t parameters : 31, multiple : 1;
};

struct breakpad_symbol {
    uint64_t address, size; /* size 0: unknown */
    struct sl_str name;
    uint32_t order, parameters : 31, multiple : 1;
};

struct code_range {
    uint64_t start, end;
};

struct sl_breakpad_writer {
    struct sl_function_sink sink;
    const struct sl_breakpad_options *options;
    struct sl_arena arena; /* texts and records */
    struct sl_account account;
    struct breakpad_texts names, files;
    struct breakpad_record *records;
    struct breakpad_symbol *symbols;
    struct code_range *unnamed;
    size_t record_count, record_capacity, symbol_count, symbol_capacity, unnamed_count, unnamed_capacity;
    struct sl_buf scratch;
    uint32_t *map; /* while a batch is consumed: from its numbers of files, then of names, to those of the writer */
    size_t map_capacity;
    bool failed;
};

/* ---- collect.c ---- */

/* Returns the number of a text in `texts`; a new one is copied into the arena and gets the next number. When out of memory, sets `*failed`
 * and returns 0. */
uint32_t breakpad_text_number(struct breakpad_texts *texts, struct sl_arena *arena, struct sl_str text, bool *failed);

/* ---- unnamed.c ---- */

/* Appends to w->records, in ascending order, a record named options.unnamed for each range of w->unnamed in which no record has code and no
 * symbol begins. Records and symbols must be sorted by address. Sets w->failed when out of memory. */
void breakpad_add_unnamed(struct sl_breakpad_writer *w);

/* ---- flatten.c ---- */

/* Returns the number of an inlined function's name among the names of the batch. */
typedef uint32_t breakpad_name_of(void *arg, const struct sl_function *function);

/* Appends two lists to `flat`. Its lines, sorted by address: where code is inlined, they are the lines of the inlined function. Its inlined
 * calls: the ranges of one call follow each other, sorted and merged. `name_of` NULL: no inlined calls. Temporary memory comes from the
 * arena. False when out of memory. */
bool breakpad_flatten(struct flat_function *flat, const struct sl_function *function, breakpad_name_of *name_of,
                      void *arg, struct sl_arena *arena);

/* ---- name.c ---- */

/* Appends a name as it is written to the file: demangled, in UTF-8, without white space at its ends, with `?` for control characters;
 * `<name omitted>` if nothing is left. */
void breakpad_render_name(struct sl_buf *out, struct sl_str name, enum sl_language language);

/* Appends text as it is written to the file: in UTF-8, without white space at its ends, with `?` for control characters. */
void breakpad_render_text(struct sl_buf *out, struct sl_str text);
