/* Source maps as look-up tables (`SLSM`): line and column of a generated script -> source, line, column, name, function; with the texts of
 * the sources. Made once of a script and its map, used in place from a mapping: opening looks at a header, a look-up is a search
 * through a sorted array and then in a block of 64 packed tokens. The layout is in smformat.h. A damaged file yields nothing, or
 * something else, never a crash. Look-ups are pure reads: any number of threads may share one.
 *
 * Lines and columns are 0-based, columns in UTF-16 code units. */
#pragma once

#include "js/names.h"
#include "source/context.h"
#include "table/table.h"

/* ---- writing ---- */

struct sl_smcache_options {
    bool partial_scopes; /* of a script with an error, those that are complete before it */
    bool compat_names;   /* functions called as Sentry's service calls them, where that leaves separators out */
};

/* Appends the table of a script and its map to `out`; equal input gives equal bytes. A script that cannot be read has no functions, and
 * its map is of use without them; that of a Hermes map is not looked at. `scopes` of the map (ECMA-426) come before what the script
 * says; an error in them costs only them, see sl_smcache.bad_scopes. SL_MALFORMED for a map that is; SL_UNSUPPORTED for
 * one that is too large; SL_BUSY when out of memory; what sl_budget_fail() says when the budget (may be NULL) is used up. */
enum sl_code sl_smcache_write(struct sl_str script, struct sl_str map, const struct sl_smcache_options *options,
                              struct sl_budget *budget, struct sl_buf *out, struct sl_error *error);

/* ---- reading ---- */

struct sl_smcache {
    uint64_t token_count;
    uint32_t source_count, name_count, function_count;
    uint32_t bad_scopes; /* the item of the map's `scopes` that has an error, from 1; 0 = none */
    /* private */
    uint32_t block_count, boundary_count, start_count, node_count;
    bool ranges, has_source_starts;
    struct sl_table table;
    struct sl_table_units names, functions;
};

/* Checks the header. SL_MALFORMED otherwise. `cache` points into `bytes`, which must outlive it. */
enum sl_code sl_smcache_open(struct sl_bytes bytes, struct sl_smcache *cache, struct sl_error *error);

/* A place in a source. Texts are views of the cache. */
struct sl_smcache_place {
    uint32_t source; /* for the functions below */
    uint32_t line, column;
    struct sl_str name; /* of the token; empty = none */
    enum sl_js_function_kind kind;
    struct sl_str function; /* SL_JS_FUNCTION_NAMED */
    bool is_hidden;         /* the map asks to leave frames of this function out of stacks */
    uint32_t inlined;       /* not 0: the function was inlined here, see sl_smcache_caller */
    uint32_t script_scope;  /* private */
};

/* Where this place of the script comes from: what the last token at or before it on its line says. (Of several at one place the
 * first when it is just this one, else the last.) False when there is none, or it is of no source. */
bool sl_smcache_look_up(const struct sl_smcache *cache, uint32_t line, uint32_t column, struct sl_smcache_place *place);

/* When the place is in a function that was inlined, makes it the place that calls it, in the function around, without name of a
 * token. False when it is in none. At most 256 calls are around a place. */
bool sl_smcache_caller(const struct sl_smcache *cache, struct sl_smcache_place *place);

/* The name of a source, its root in front, as the map has it; may be empty. */
struct sl_str sl_smcache_source(const struct sl_smcache *cache, uint32_t source);

/* Its text; data NULL when the map has none. */
struct sl_str sl_smcache_text(const struct sl_smcache *cache, uint32_t source);

/* A cursor in the text of a source, for lines around `line` (1-based, as sl_context_at has it), that need not read all in front
 * of them. */
struct sl_context_cursor sl_smcache_cursor(const struct sl_smcache *cache, uint32_t source, uint32_t line);
