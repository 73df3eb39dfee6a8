/* Source maps as look-up tables (`SLSM`): line and column of a generated script -> source, line, column, name, function; with
 * the texts of the sources. Made once from a script and its map, then used in place from a mapping: opening checks a header; a
 * look-up searches a sorted array, then a block of up to 64 packed tokens. smformat.h has the layout. A damaged file may give
 * wrong results, but never a crash. Look-ups only read, so any number of threads may share one.
 *
 * Lines and columns are 0-based, columns in UTF-16 code units. */
#pragma once

#include "js/names.h"
#include "source/context.h"
#include "table/table.h"

/* ---- writing ---- */

struct sl_smcache_options {
    bool partial_scopes; /* of a script with an error, keep the scopes that are complete before it */
    bool compat_names;   /* name functions as Symbolicator does, which leaves out some dots */
};

/* Appends the table of a script and its map to `out`; equal input gives equal bytes. If the script cannot be parsed the table
 * has no functions but is still useful. The script of a Hermes map is not read. `scopes` of the map (ECMA-426) take precedence
 * over functions found in the script; an error in them discards only them, see sl_smcache.bad_scopes. SL_MALFORMED for a
 * malformed map, SL_UNSUPPORTED for one that is too large, SL_BUSY when out of memory, and the codes of sl_budget_fail() when
 * the budget (may be NULL) is used up. */
enum sl_code sl_smcache_write(struct sl_str script, struct sl_str map, const struct sl_smcache_options *options,
                              struct sl_budget *budget, struct sl_buf *out, struct sl_error *error);

/* ---- reading ---- */

struct sl_smcache {
    uint64_t token_count;
    uint32_t source_count, name_count, function_count;
    uint32_t bad_scopes; /* number of the malformed item in the map's `scopes`, from 1; 0 = none */
    /* private */
    uint32_t block_count, boundary_count, start_count, node_count;
    bool ranges, has_source_starts;
    struct sl_table table;
    struct sl_table_units names, functions;
};

/* Checks the header; SL_MALFORMED if it is wrong. `cache` points into `bytes`, which must outlive it. */
enum sl_code sl_smcache_open(struct sl_bytes bytes, struct sl_smcache *cache, struct sl_error *error);

/* A position in a source. Texts are views of the cache. */
struct sl_smcache_position {
    uint32_t source; /* number of the source, as for sl_smcache_source() */
    uint32_t line, column;
    struct sl_str name; /* name of the token; empty = none */
    enum sl_js_function_kind kind;
    struct sl_str function; /* for SL_JS_FUNCTION_NAMED */
    bool is_hidden;         /* the map asks to omit frames of this function from stacks */
    uint32_t inlined;       /* not 0: the function was inlined here; sl_smcache_caller() returns the call */
    uint32_t script_scope;  /* private */
};

/* Finds the original position of a position in the script: that of the last token at or before it on its line. If several tokens
 * are there: the first one if the position is exactly theirs, else the last. False when there is no token, or it has no
 * source. */
bool sl_smcache_lookup(const struct sl_smcache *cache, uint32_t line, uint32_t column,
                       struct sl_smcache_position *place);

/* If the position is in an inlined function, changes it to the position of the call, which is in the function around it. `name` becomes
 * empty, because calls have none. False for a position that is not inlined. Calls are nested at most 256 deep. */
bool sl_smcache_caller(const struct sl_smcache *cache, struct sl_smcache_position *place);

/* Returns the name of a source as written in the map, with the map's source root in front; may be empty. */
struct sl_str sl_smcache_source(const struct sl_smcache *cache, uint32_t source);

/* Returns the text of a source; data NULL if the map does not contain it. */
struct sl_str sl_smcache_text(const struct sl_smcache *cache, uint32_t source);

/* Returns a cursor in the text of a source for reading lines around `line` (1-based, see sl_context_at()). The cursor starts shortly before
 * these lines, so that most of the text in front of them need not be read. */
struct sl_context_cursor sl_smcache_cursor(const struct sl_smcache *cache, uint32_t source, uint32_t line);
