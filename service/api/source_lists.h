/* LRU cache of the source lists of requests, parsed once: a client sends the same text every time. Bounded in number. Any
 * thread. */
#pragma once

#include "config/config.h"
#include "origin/origin.h"

struct source_list {
    const struct source *items;
    size_t count;
    uint64_t number; /* identifies the list (source_list_number): results of searches in it are cached by it */
};

/* Finds the cached list with whose JSON text `text` begins, and sets `*size` to the length of the list's text. NULL if there is none. Lists
 * that were cached under another configuration are not found, as it may have allowed other sources. The list lives as long as the arena. */
const struct source_list *source_lists_find(struct sl_str text, const struct config *config, struct sl_arena *arena,
                                            size_t *size);

/* Parses and caches `text`, the JSON array of a list that `policy`, made from the configuration, allows. Returns the list, which lives as
 * long as the arena; NULL when out of memory, or if the text is too long to be cached. */
const struct source_list *source_lists_put(struct sl_str text, const struct source_policy *policy,
                                           const struct config *config, struct sl_arena *arena);

/* Frees the cache; call when no more requests are read. */
void source_lists_clear(void);
