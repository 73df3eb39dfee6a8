/* Writing the look-up table of a source map. Private to this folder.
 *
 *     smwrite.c   the sections; texts and names
 *     smtokens.c  tokens into blocks, with the scopes they lie in
 *     smscopes.c  which scope a token lies in, and what the scopes are called */
#pragma once

#include "base/grow.h"
#include "js/smformat.h"
#include "js/sourcemap.h"
#include "table/writer.h"

struct source_record {
    uint32_t name, name_size, content, content_size, lines;
};

struct smcache_writer {
    struct sl_str script;
    const struct sl_sourcemap *map;
    const struct sl_smcache_options *options;
    struct sl_budget *budget;
    struct sl_table_writer table;
    struct sl_holding held;
    struct source_record *sources;
    uint32_t *numbers; /* of an index map: what its sources are numbered as, equal ones alike; NULL otherwise */
    size_t source_count, source_capacity;
    uint32_t name_count, block_count;
    uint64_t token_count;
    bool ranges;
    struct sl_buf lines, keys, places;
    struct sl_purse purse;
};

static inline enum sl_code smcache_writer_fail(const struct smcache_writer *w, struct sl_error *error)
{
    return sl_budget_fail(w->budget, error);
}

/* Writes the tokens' sections. */
enum sl_code smcache_put_tokens(struct smcache_writer *w, struct sl_error *error);
