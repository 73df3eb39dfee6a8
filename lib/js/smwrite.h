/* Writes the look-up table of a source map. Private to this folder.
 *
 *     smwrite.c      the sections; texts and names
 *     smtokens.c     packs tokens into blocks, with the function of each
 *     smscopes.c     functions of the script: finds the function around each token, names functions
 *     smfunctions.c  functions from Metro's maps, which list the functions of the sources
 *     smoriginals.c  scopes of the sources and ranges of the script, from maps with `scopes` */
#pragma once

#include "base/account.h"
#include "js/scope.h"
#include "js/smformat.h"
#include "js/sourcemap.h"
#include "table/writer.h"

/* A row of SOURCES: offset and size of the name in TEXT, offset and size of the content, first row of the content in LINES. */
struct source_record {
    uint32_t name, name_size, content, content_size, lines;
};

/* Where a function begins in a source. */
struct function_start {
    uint64_t key;  /* line << 32 | column; the line is 1-based */
    uint32_t name; /* 1 + its number; 0 = unknown */
};

struct function_map {
    uint32_t *firsts; /* functions of source i: starts[firsts[i] .. firsts[i + 1]); NULL: the map has no functions */
    struct function_start *starts;
    size_t start_count, start_capacity;
};

/* Position of a walk through the script's scopes: inside the scope `current` up to the position `boundary` (line << 32 | column); `next` is
 * the next scope to begin. */
struct scope_walk {
    uint32_t current, next;
    uint64_t boundary;
};

struct script_scopes {
    bool there;
    struct sl_js_scopes scopes;
    struct sl_js_line_index places;
    struct scope_walk tokens; /* finds the scope of each token that is written */
    struct scope_walk ranges; /* finds where to split range tokens, before these are written */
};

/* From the position `key` (line << 32 | column) of a source on, `function` is the innermost one: 1 + its name or ORIGINAL_*. */
struct original_start {
    uint64_t key;
    uint32_t function;
};

/* From the position `key` (line << 32 | column) of the script on, `node` is the innermost generated range: 1 + its number, 0 = none. */
struct range_boundary {
    uint64_t key;
    uint32_t node;
};

/* A generated range of the map's `scopes`: code of the script that was made from one function, or from an inlined call. */
struct range_node {
    uint32_t function, call_source, call_line, call_column; /* call_source: 1 + its number, 0 = not an inlined call */
    uint32_t outer;                                         /* 1 + the node around it, 0 = none */
    uint16_t calls;                                         /* nesting depth of inlined calls, its own included */
    bool is_stack_frame, is_hidden;
};

/* Contents of the map's `scopes`. */
struct original_scopes {
    bool there;
    uint32_t bad_item; /* number of the first malformed item, from 1; 0 = none */
    uint32_t *firsts;  /* rows of source i: starts[firsts[i] .. firsts[i + 1]) */
    size_t source_count;
    struct original_start *starts;
    struct range_boundary *boundaries;
    struct range_node *nodes;
    size_t start_count, start_capacity, boundary_count, boundary_capacity, node_count, node_capacity;
};

/* State of splitting range tokens. A range token maps all characters up to the next token. It is repeated wherever a function of the script
 * begins or ends in that text, so that each token is in one function. */
struct range_splitter {
    bool is_open;                                              /* the last token is a range */
    uint32_t line, column, source, source_line, source_column; /* of the last token */
    struct sl_sourcemap_batch out;                             /* tokens that are not yet written */
};

struct smcache_writer {
    struct sl_str script;
    const struct sl_sourcemap *map;
    const struct sl_smcache_options *options;
    struct sl_budget *budget;
    struct sl_table_writer table;
    struct sl_sourcemap_contents contents;
    struct source_record *sources;
    uint32_t *numbers; /* index maps: the final number of each source (equal sources share one); else NULL */
    size_t source_count, source_capacity;
    uint32_t name_count, block_count, function_count;
    uint64_t token_count;
    bool ranges;
    struct sl_buf lines, keys, places;
    struct sl_buf functions, function_offsets, scopes; /* section contents */
    struct script_scopes script_scopes;
    struct range_splitter splitter;
    struct function_map function_map;
    struct original_scopes originals;
    struct sl_account account;
};

/* Sets the error and returns the code for a step that failed: the budget is used up, or memory is. */
static inline enum sl_code smcache_writer_fail(const struct smcache_writer *w, struct sl_error *error)
{
    return sl_budget_fail(w->budget, error);
}

/* Ends a name: the bytes appended to `functions` since the last call are the name of the next function. */
static inline void smcache_end_function(struct smcache_writer *w)
{
    sl_buf_u32(&w->function_offsets, (uint32_t)w->functions.size);
    w->function_count++;
}

/* Reads the tokens of the map and writes their sections: BLOCKS, KEYS, PLACES. */
enum sl_code smcache_put_tokens(struct smcache_writer *w, struct sl_error *error);

/* ---- smscopes.c ---- */

/* Reads the script's scopes. A script that cannot be parsed has none, and is no error; one of 4 GiB or more is. */
enum sl_code smcache_read_scopes(struct smcache_writer *w, struct sl_error *error);
void smcache_rewind_scopes(struct smcache_writer *w);

/* Returns the first position after `key` where a scope begins or ends; UINT64_MAX = none. Positions are line << 32 | column; the keys of
 * successive calls must ascend. */
uint64_t smcache_next_boundary(struct smcache_writer *w, uint64_t key);

/* Sets scopes[i] to 1 + the number of the innermost scope around token i of the batch; 0 = none. Batches must come in order. */
void smcache_walk_scopes(struct smcache_writer *w, const struct sl_sourcemap_batch *batch, uint32_t *scopes);

/* Appends the names of the script's scopes to w->functions and w->scopes. Identifiers in them are replaced by the names of the tokens at
 * their positions, so the sections of the tokens must be written already. */
enum sl_code smcache_name_scopes(struct smcache_writer *w, struct sl_error *error);
void smcache_free_scopes(struct smcache_writer *w);

/* ---- smfunctions.c ---- */

/* Reads the map's x_facebook_sources: appends names to w->functions, fills w->function_map. Malformed mappings of a source are ignored. */
enum sl_code smcache_read_functions(struct smcache_writer *w, struct sl_error *error);

/* Sets functions[i] to 1 + the number of the function around the source position of token i of the batch; 0 = none. */
void smcache_find_functions(const struct smcache_writer *w, const struct sl_sourcemap_batch *batch,
                            uint32_t *functions);

/* ---- smoriginals.c ---- */

/* Reads the `scopes` of the map, or of each map of an index map, into w->originals. Malformed ones are discarded without an error, and
 * w->originals.bad_item says which item was malformed. */
enum sl_code smcache_read_originals(struct smcache_writer *w, struct sl_error *error);

/* Writes the sections for the map's `scopes`: SOURCE_STARTS, STARTS, BOUNDARIES, NODES. False when out of memory or budget. */
bool smcache_put_originals(struct smcache_writer *w);
void smcache_free_originals(struct smcache_writer *w);
