/* Shared by the files of this folder. Private to it.
 *
 *     tree of one function ──flatten──▶ struct flat_function ──encode──▶ record in the writer's arena */
#pragma once

#include "base/buf.h"
#include "base/account.h"
#include "base/map.h"
#include "breakpad/breakpad.h"
#include "demangle/demangle.h"

/* A range of code with its innermost line. */
struct flat_line {
    uint64_t address, size;
    uint32_t file, line;
};

/* A range of an inlined call. `name` is an index into the names of the batch. */
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

/* Deduplicated texts, numbered from 0. */
struct breakpad_texts {
    struct sl_account account; /* for `items` */
    struct sl_map map;
    struct sl_str *items;
    size_t count, capacity;
};

struct breakpad_record { /* a FUNC record */
    uint64_t address, size;
    const uint8_t *data; /* its lines and inlined calls, encoded; see collect.c */
    uint32_t data_size, name, order;
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
    uint32_t *map; /* maps ids of a batch to those of the writer */
    size_t map_capacity;
    bool failed;
};

/* ---- collect.c ---- */

/* Returns the number of a text, which is copied into the arena if it is new. Sets `*failed` when out of memory. */
uint32_t breakpad_text_number(struct breakpad_texts *texts, struct sl_arena *arena, struct sl_str text, bool *failed);

/* ---- unnamed.c ---- */

/* Adds records, unsorted, for code without records and symbols. Records and symbols must be sorted. */
void breakpad_add_unnamed(struct sl_breakpad_writer *w);

/* ---- flatten.c ---- */

/* Returns the index of an inlined function's name among those of the batch. */
typedef uint32_t breakpad_name_of(void *arg, const struct sl_function *function);

/* Appends the function's innermost lines, sorted by address, and its inlined calls, grouped by call; the ranges of a group are
 * sorted and merged. `name_of` NULL: no inlined calls. Temporary memory comes from the arena. False when out of memory. */
bool breakpad_flatten(struct flat_function *flat, const struct sl_function *function, breakpad_name_of *name_of,
                      void *arg, struct sl_arena *arena);

/* ---- name.c ---- */

/* Appends a name in the form for a line of the file: demangled, without control characters, without blanks at its ends, UTF-8;
 * `<name omitted>` if it is empty then. */
void breakpad_render_name(struct sl_buf *out, struct sl_str name, enum sl_language language);

/* Appends text in the form for a line of the file; possibly nothing. */
void breakpad_render_text(struct sl_buf *out, struct sl_str text);
