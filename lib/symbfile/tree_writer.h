/* Converts segments, each with its whole call chain, to functions with inlined calls: the stream that a symcache is
 * written from. Private to this folder.
 *
 *     [10,20) main:3            [10,30) main   lines [10,20):3 [20,30):4
 *     [20,30) main:4 f:7   ──▶            └── [20,30) f   lines [20,30):7
 *
 * Segments must be sorted by address and not overlap. Text ids are those of the builder. */
#pragma once

#include "function/function.h"
#include "symbfile/symbfile.h"

#define FOREST_NO_TEXT UINT32_MAX

struct inline_chain_link { /* one function of a chain */
    uint32_t function;
    uint32_t file; /* FOREST_NO_TEXT = unknown */
    uint32_t line;
};

struct tree_writer;

/* Functions go to `sink`; texts are looked up in `*texts`, which may move. With `under_root` they become inlined
 * calls of one nameless function that spans all addresses, so that equal functions at many addresses are stored
 * once. Memory is charged to `budget` (NULL = no limit). Returns NULL if out of memory. */
struct tree_writer *tree_writer_new(struct sl_function_sink *sink, struct sl_str *const *texts, bool under_root,
                                    struct sl_budget *budget);
void tree_writer_free(struct tree_writer *writer);

/* `chain` is outermost first and has at most SL_SYMBFILE_MAX_DEPTH + 1 links. */
enum sl_code tree_writer_add(struct tree_writer *writer, uint64_t start, uint64_t end,
                             const struct inline_chain_link *chain, size_t count, struct sl_error *error);
size_t tree_writer_node_count(const struct tree_writer *writer); /* functions opened so far */
enum sl_code tree_writer_finish(struct tree_writer *writer, struct sl_error *error);
