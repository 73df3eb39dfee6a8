/* What the files of the index builder share. Private to this folder. */
#pragma once

#include "base/account.h"
#include "base/map.h"
#include "base/spill.h"
#include "symbfile/forest.h"

/* `file` and `call_file` of a range: besides a text, */
enum { INHERITED = UINT32_MAX - 1 }; /* no call file given: that of the function around it */

struct builder_range {
    uint64_t start, end;
    uint32_t function, file, call_file, call_line, depth;
    uint32_t line_count;
    size_t first_line; /* in builder->lines */
};

struct builder_pad {
    uint64_t va;
    size_t first; /* in builder->places */
    uint32_t count;
};

struct memo { /* what a reference means in the string table of that number */
    uint32_t table, text;
};

struct sl_symbfile_builder {
    struct sl_symbfile_sink sink;
    struct sl_budget *limit;     /* the caller's, NULL = none */
    struct sl_budget own_budget; /* of the index, when there is no other */
    struct sl_arena arena;       /* texts */
    struct sl_account account;   /* of the arrays that are not in files */
    struct sl_map map;           /* text to index + 1 */
    struct sl_str *texts;
    struct memo *memo;     /* by reference */
    uint32_t table;        /* number of the string table in force */
    const char *directory; /* where arrays lie that are large; NULL = nowhere */
    struct sl_spill range_memory, line_memory, pad_memory, place_memory;
    struct builder_range *ranges;
    struct sl_symbfile_line *lines;
    struct builder_pad *pads;
    struct link *places;
    size_t text_count, text_capacity, memo_capacity, range_count, line_count, pad_count, place_count;
    uint64_t text_bytes;
    uint64_t lowest; /* address of any record */
    bool has_lines, has_functions, failed;
};

/* To be called for every record that is added or used: now and then what was looked at so far is given up, and the budget
 * asked. */
void builder_step(struct sl_symbfile_builder *b, size_t step);

/* The indices of `count` items in the order that `before` tells, in which equal ones keep theirs: `count` items, held by the
 * builder. NULL when out of memory. */
uint32_t *builder_order(struct sl_symbfile_builder *b, size_t count,
                        bool (*before)(const struct sl_symbfile_builder *b, uint32_t left, uint32_t right));

/* Turns the ranges into segments with chains; addresses become relative to `base`. */
enum sl_code builder_sweep(struct sl_symbfile_builder *b, uint64_t base, struct forest *forest, struct sl_error *error);
