/* LRU cache of the source lists of requests, parsed once: a client sends the same text every time. Bounded in number. Any
 * thread. */
#pragma once

#include "config/config.h"
#include "origin/origin.h"

struct source_list {
    const struct source *items;
    size_t count;
    uint64_t number; /* source_list_number */
};

/* Finds the cached list whose JSON text is a prefix of `text`; sets `*size` to that text's length. NULL if there is none. The
 * arena keeps a reference. */
const struct source_list *source_lists_find(struct sl_str text, const struct config *config, struct sl_arena *arena,
                                            size_t *size);

/* Parses and caches `text`, one valid JSON array, under the policy of the configuration; the arena keeps a reference. NULL when
 * out of memory or the text is too long to cache. */
const struct source_list *source_lists_put(struct sl_str text, const struct source_policy *policy,
                                           const struct config *config, struct sl_arena *arena);

/* Frees the cache; call when no more requests are read. */
void source_lists_clear(void);
