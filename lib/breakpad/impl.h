/* What the files of this folder share. Private to it.
 *
 *     tree of one function ──flatten──▶ struct flat ──encode──▶ record in the writer's arena */
#pragma once

#include "base/buf.h"
#include "base/account.h"
#include "base/map.h"
#include "breakpad/breakpad.h"
#include "demangle/demangle.h"

/* A piece of code with the innermost line it comes from. */
struct flat_line {
    uint64_t address, size;
    uint32_t file, line;
};

/* One range of one inlined call. `name` counts the names of the batch. */
struct flat_inline {
    uint64_t address, size;
    uint32_t depth, call_file, call_line, name;
};

struct flat {
    struct sl_account account;
    struct flat_line *lines;
    struct flat_inline *inlines;
    size_t line_count, line_capacity, inline_count, inline_capacity;
};

/* Texts with numbers from 0, each once. */
struct texts {
    struct sl_account account; /* of `items` */
    struct sl_map map;
    struct sl_str *items;
    size_t count, capacity;
};

struct record { /* a function */
    uint64_t address, size;
    const uint8_t *data; /* its lines and inlined calls, encoded */
    uint32_t data_size, name, order;
    uint32_t parameters : 31, multiple : 1;
};

struct symbol {
    uint64_t address, size; /* size 0: not known */
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
    struct texts names, files;
    struct record *records;
    struct symbol *symbols;
    struct code_range *unnamed;
    size_t record_count, record_capacity, symbol_count, symbol_capacity, unnamed_count, unnamed_capacity;
    struct sl_buf scratch;
    uint32_t *map; /* ids of a batch to those of the writer */
    size_t map_capacity;
    bool failed;
};

/* ---- collect.c ---- */

/* The number of a text, which is copied into the arena if it is new. Out of memory sets `*failed`. */
uint32_t breakpad_text_number(struct texts *texts, struct sl_arena *arena, struct sl_str text, bool *failed);

/* ---- unnamed.c ---- */

/* Adds, in no order, records for the code that has neither records nor symbols, which are sorted. */
void breakpad_add_unnamed(struct sl_breakpad_writer *w);

/* ---- flatten.c ---- */

/* Number of an inlined function's name among those of the batch. */
typedef uint32_t breakpad_name_of(void *arg, const struct sl_function *function);

/* Appends the function's innermost lines, sorted by address, and its inlined calls, grouped by what they have in common
 * and each group's ranges sorted and joined. `name_of` NULL: no inlined calls. Scratch goes into the arena. False when out
 * of memory. */
bool breakpad_flatten(struct flat *flat, const struct sl_function *function, breakpad_name_of *name_of, void *arg,
                      struct sl_arena *arena);

/* ---- name.c ---- */

/* Appends the readable form of a name as it may stand on a line: demangled, without control characters and blanks at its
 * ends, UTF-8; `<name omitted>` when nothing is left. */
void breakpad_render_name(struct sl_buf *out, struct sl_str name, enum sl_language language);

/* Appends text as it may stand on a line; nothing when nothing is left. */
void breakpad_render_text(struct sl_buf *out, struct sl_str text);
