/* Writing the look-up table of a source map. Private to this folder.
 *
 *     smwrite.c      the sections; texts and names
 *     smtokens.c     tokens into blocks, with the functions they lie in
 *     smscopes.c     functions of the script: which one a token lies in, and what they are called
 *     smfunctions.c  functions of Metro's maps, which say that of the sources
 *     smoriginals.c  scopes of the sources and ranges of the script, of maps that have `scopes` */
#pragma once

#include "base/account.h"
#include "js/scope.h"
#include "js/smformat.h"
#include "js/sourcemap.h"
#include "table/writer.h"

struct source_record {
    uint32_t name, name_size, content, content_size, lines;
};

/* The functions of a source: where each begins, in order. */
struct function_start {
    uint64_t key;  /* line << 32 | column, the line 1-based */
    uint32_t name; /* 1 + its number; 0 = not known */
};

struct function_map {
    uint32_t *firsts; /* of each source, and one more; NULL: the map has none */
    struct function_start *starts;
    size_t start_count, start_capacity;
};

/* Where a walk through the script is: in `current`, up to the key `boundary`; `next` is the next scope to begin. */
struct scope_walk {
    uint32_t current, next;
    uint64_t boundary;
};

struct script_scopes {
    bool there;
    struct sl_js_scopes scopes;
    struct sl_js_places places;
    struct scope_walk tokens, ranges; /* from token to token; ahead of it, through ranges */
};

/* From this position of a source on the function (as smformat.h has it) is the innermost one. */
struct original_start {
    uint64_t key;
    uint32_t function;
};

/* From this place of the script on the node (1 + its number, 0 = none) is the innermost one. */
struct range_boundary {
    uint64_t key;
    uint32_t node;
};

struct range_node {
    uint32_t function, call_source, call_line, call_column; /* call_source: 1 + its number, 0 = no inlined call */
    uint32_t outer;                                         /* 1 + the node around it, 0 = none */
    uint16_t calls;                                         /* inlined calls that it is in, its own included */
    bool is_stack_frame, is_hidden;
};

/* What the map's `scopes` say. */
struct original_scopes {
    bool there;
    uint32_t bad_item; /* the first item with an error, from 1; 0 = none */
    uint32_t *firsts;  /* of each source, and one more: its first start */
    size_t source_count;
    struct original_start *starts;
    struct range_boundary *boundaries;
    struct range_node *nodes;
    size_t start_count, start_capacity, boundary_count, boundary_capacity, node_count, node_capacity;
};

/* Tokens that are ranges are repeated where a function begins or ends in them, so that each place has its function. */
struct range_splitter {
    bool is_open; /* the last token that came is a range */
    uint32_t line, column, source, source_line, source_column;
    struct sl_sourcemap_batch out;
};

struct smcache_writer {
    struct sl_str script;
    const struct sl_sourcemap *map;
    const struct sl_smcache_options *options;
    struct sl_budget *budget;
    struct sl_table_writer table;
    struct sl_sourcemap_contents contents;
    struct source_record *sources;
    uint32_t *numbers; /* of an index map: what its sources are numbered as, equal ones alike; NULL otherwise */
    size_t source_count, source_capacity;
    uint32_t name_count, block_count, function_count;
    uint64_t token_count;
    bool ranges;
    struct sl_buf lines, keys, places;
    struct sl_buf functions, function_offsets, scopes; /* the sections */
    struct script_scopes script_scopes;
    struct range_splitter splitter;
    struct function_map function_map;
    struct original_scopes originals;
    struct sl_account account;
};

static inline enum sl_code smcache_writer_fail(const struct smcache_writer *w, struct sl_error *error)
{
    return sl_budget_fail(w->budget, error);
}

/* What is behind the beginning of `functions` is a name, which is numbered. */
static inline void smcache_end_function(struct smcache_writer *w)
{
    sl_buf_u32(&w->function_offsets, (uint32_t)w->functions.size);
    w->function_count++;
}

/* Writes the tokens' sections. */
enum sl_code smcache_put_tokens(struct smcache_writer *w, struct sl_error *error);

/* ---- smscopes.c ---- */

/* Reads the script's scopes; there are none if it is no script. */
enum sl_code smcache_read_scopes(struct smcache_writer *w, struct sl_error *error);
void smcache_rewind_scopes(struct smcache_writer *w);

/* The first place behind this one where a scope begins or ends, UINT64_MAX = none; places are line << 32 | column, and go up. */
uint64_t smcache_next_boundary(struct smcache_writer *w, uint64_t key);

/* 1 + the scope that each token of the batch begins in, or 0. Batches come in order. */
void smcache_walk_scopes(struct smcache_writer *w, const struct sl_sourcemap_batch *batch, uint32_t *scopes);

/* Names the scopes with the help of the table as far as it is written. */
enum sl_code smcache_name_scopes(struct smcache_writer *w, struct sl_error *error);
void smcache_free_scopes(struct smcache_writer *w);

/* ---- smfunctions.c ---- */

/* Reads the function maps, and numbers their names. */
enum sl_code smcache_read_functions(struct smcache_writer *w, struct sl_error *error);

/* 1 + the function that each token's source has there, or 0. */
void smcache_find_functions(const struct smcache_writer *w, const struct sl_sourcemap_batch *batch,
                            uint32_t *functions);

/* ---- smoriginals.c ---- */

/* Reads the `scopes` of the map's parts. An error in them costs those of its part, and is noted. */
enum sl_code smcache_read_originals(struct smcache_writer *w, struct sl_error *error);

/* Writes their sections. False when out of memory. */
bool smcache_put_originals(struct smcache_writer *w);
void smcache_free_originals(struct smcache_writer *w);
