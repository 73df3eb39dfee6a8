/* Converts segments, each with its whole call chain, to functions with inlined calls: the stream that a symcache is
 * written from. Private to this folder.
 *
 *     [10,20) main:3            [10,30) main   lines [10,20):3 [20,30):4
 *     [20,30) main:4 f:7   ──▶            └── [20,30) f   lines [20,30):7
 *
 * A segment is code in which the call chain and all its lines are the same. Segments must be sorted by address and not overlap. Texts
 * (names of functions and files) have ids: indexes into the array `texts` of the index builder. */
#pragma once

#include "function/function.h"
#include "symbfile/symbfile.h"

#define FOREST_NO_TEXT UINT32_MAX /* in place of a text id: unknown */

struct inline_chain_link { /* one function of a call chain: text ids, and the line of the code or of the call in it */
    uint32_t function;
    uint32_t file; /* FOREST_NO_TEXT = unknown */
    uint32_t line;
};

struct tree_writer;

/* Returns a writer that passes functions to `sink` in batches; texts are looked up in `*texts`, which may move. With `under_root` the
 * functions become inlined calls of one nameless function that spans all addresses: as inlined functions have no address of their own,
 * equal ones at many addresses are stored once. Memory is charged to `budget` (NULL = no limit). Returns NULL if out of memory. */
struct tree_writer *tree_writer_new(struct sl_function_sink *sink, struct sl_str *const *texts, bool under_root,
                                    struct sl_budget *budget);
void tree_writer_free(struct tree_writer *writer);

/* Adds the segment [start, end). `chain` has its functions, outermost first, at most SL_SYMBFILE_MAX_DEPTH + 1. Fails with the error of
 * the sink, or when memory or budget runs out. */
enum sl_code tree_writer_add(struct tree_writer *writer, uint64_t start, uint64_t end,
                             const struct inline_chain_link *chain, size_t count, struct sl_error *error);
size_t tree_writer_node_count(const struct tree_writer *writer); /* functions and inlined calls made so far */
/* Passes the last functions to the sink. */
enum sl_code tree_writer_finish(struct tree_writer *writer, struct sl_error *error);
