/* LRU cache of the demangled names of earlier requests; at most 8 MiB. Loop thread only. */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"

struct name_cache;
struct name_cache *name_cache_new(void); /* NULL when out of memory */
void name_cache_free(struct name_cache *cache);

/* Adds copies of the key, which identifies a mangled name (its language and text), and of the demangled name. */
void name_cache_put(struct name_cache *cache, struct sl_str key, struct sl_str readable);

/* Returns the demangled name, valid until the next name_cache_put; NULL if it is not cached. */
const struct sl_str *name_cache_get(struct name_cache *cache, struct sl_str key);
