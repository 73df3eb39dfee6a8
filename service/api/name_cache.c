/* Cache of the demangled names of earlier requests. */
#include "api/name_cache.h"

#include <stdlib.h>

#include "core/lru.h"

enum { CACHE_BYTES = 8 << 20 /* limit of all names */ };

struct kept_name { /* an entry of the cache, in one block of memory */
    struct lru_entry lru;
    struct sl_str readable;
    char text[]; /* the key, then the readable name */
};

struct name_cache {
    struct lru lru;
};

/* Called by the LRU list to free an entry that it drops. */
static void name_release(struct lru *lru, struct lru_entry *entry)
{
    (void)lru;
    free(LRU_ITEM(entry, struct kept_name, lru));
}

struct name_cache *name_cache_new(void)
{
    struct name_cache *cache = calloc(1, sizeof *cache);
    if (cache)
        cache->lru = (struct lru){.max_size = CACHE_BYTES, .max_count = SIZE_MAX, .release = name_release};
    return cache;
}

void name_cache_free(struct name_cache *cache)
{
    if (cache)
        lru_clear(&cache->lru);
    free(cache);
}

/* Does nothing when out of memory: the name is then demangled again when it is needed. */
void name_cache_put(struct name_cache *cache, struct sl_str key, struct sl_str readable)
{
    size_t size = sizeof(struct kept_name) + key.size + readable.size;
    struct kept_name *name = malloc(size);
    if (!name)
        return;
    memcpy(name->text, key.data, key.size);
    memcpy(name->text + key.size, readable.data, readable.size);
    name->lru = (struct lru_entry){.key = {name->text, key.size}, .size = size};
    name->readable = (struct sl_str){name->text + key.size, readable.size};
    if (!lru_put(&cache->lru, &name->lru))
        free(name);
}

const struct sl_str *name_cache_get(struct name_cache *cache, struct sl_str key)
{
    struct lru_entry *found = lru_get(&cache->lru, key, 0);
    return found ? &LRU_ITEM(found, struct kept_name, lru)->readable : NULL;
}
