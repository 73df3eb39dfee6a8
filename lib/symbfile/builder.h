/* Structures shared by the files of the symbfile index builder. Private to this folder. */
#pragma once

#include "base/account.h"
#include "base/map.h"
#include "base/spill.h"
#include "symbfile/tree_writer.h"

/* Value of `call_file` in a range whose call file is absent. (A call file that is present but unknown is FOREST_NO_TEXT.) */
enum { INHERITED = UINT32_MAX - 1 }; /* no call file given: use the file of the enclosing function */

struct builder_range {
    uint64_t start, end;
    uint32_t function, file, call_file; /* text ids, FOREST_NO_TEXT or, for call_file, INHERITED */
    uint32_t call_line, depth;
    uint32_t line_count;
    size_t first_line; /* index in builder->lines */
};

struct builder_pad {
    uint64_t va;
    size_t first; /* index in builder->frames */
    uint32_t count;
};

/* Cached text id of an entry of the symbfile's string table. A file has several tables, each of which replaces the one before; the cached
 * id is valid only while table number `table` is the current one. */
struct symbfile_last_hit {
    uint32_t table, text;
};

struct sl_symbfile_builder {
    struct sl_symbfile_sink sink;
    struct sl_budget *limit;     /* the caller's; NULL = no limit */
    struct sl_budget own_budget; /* budget of the index if `limit` is NULL */
    struct sl_arena arena;       /* texts */
    struct sl_account account;   /* charges the arrays that are not in files */
    struct sl_map map;           /* text -> index + 1 */
    struct sl_str *texts;
    struct symbfile_last_hit *memo; /* text ids by index in the symbfile's string table */
    uint32_t table;                 /* number of the current string table */
    struct sl_spill range_memory, line_memory, pad_memory, frame_memory;
    struct builder_range *ranges;
    struct sl_symbfile_line *lines;
    struct builder_pad *pads;
    struct inline_chain_link *frames;
    size_t text_count, text_capacity, memo_capacity, range_count, line_count, pad_count, frame_count;
    uint64_t text_bytes;
    uint64_t lowest; /* lowest address of all records */
    bool has_lines, has_functions, failed;
};

/* Call for each record that is added or used, with a number `step` that grows by one: every 65536 steps drops the pages of
 * arrays in files from memory, and charges the budget, setting b->failed if it is used up. */
void builder_checkpoint(struct sl_symbfile_builder *b, size_t step);

/* Returns the indices of `count` items, sorted stably by `before`; charged to the builder's account. NULL if out of
 * memory. */
uint32_t *builder_order(struct sl_symbfile_builder *b, size_t count,
                        bool (*before)(const struct sl_symbfile_builder *b, uint32_t left, uint32_t right));

/* Converts the ranges to segments, code with one call chain, and adds them to `forest` in address order; addresses become relative
 * to `base`. SL_MALFORMED if the ranges overlap too much; the error of sl_budget_fail() if memory or budget runs out. */
enum sl_code builder_sweep(struct sl_symbfile_builder *b, uint64_t base, struct tree_writer *forest,
                           struct sl_error *error);
