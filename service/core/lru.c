#include "core/lru.h"

/* Returns the entry that a link of the list belongs to. */
static struct lru_entry *get_entry(const struct sl_link *link)
{
    return SL_LIST_ITEM(link, struct lru_entry, use);
}

struct lru_entry *lru_find(const struct lru *lru, struct sl_str key)
{
    return sl_map_get(&lru->map, key);
}

/* The front of the list is the most recently used entry. */
struct lru_entry *lru_touch(struct lru *lru, struct lru_entry *entry, uint64_t now_ms)
{
    if (entry->expires_ms && entry->expires_ms <= now_ms) {
        lru_remove(lru, entry);
        return NULL;
    }
    if (lru->entries.first != &entry->use) {
        sl_list_remove(&lru->entries, &entry->use);
        sl_list_prepend(&lru->entries, &entry->use);
    }
    return entry;
}

struct lru_entry *lru_get(struct lru *lru, struct sl_str key, uint64_t now_ms)
{
    struct lru_entry *entry = lru_find(lru, key);
    return entry ? lru_touch(lru, entry, now_ms) : NULL;
}

bool lru_put(struct lru *lru, struct lru_entry *entry)
{
    struct lru_entry *old = lru_find(lru, entry->key);
    if (old) /* removed, not replaced: the map does not copy keys, so it would go on using the key of the old entry */
        lru_remove(lru, old);
    if (!sl_map_put(&lru->map, entry->key, entry))
        return false;
    sl_list_prepend(&lru->entries, &entry->use);
    lru->size += entry->size;
    lru_shrink(lru);
    return true;
}

void lru_remove(struct lru *lru, struct lru_entry *entry)
{
    sl_map_remove(&lru->map, entry->key);
    sl_list_remove(&lru->entries, &entry->use);
    lru->size -= entry->size;
    lru->release(lru, entry);
}

static bool is_too_large(const struct lru *lru)
{
    return lru->size > lru->max_size || lru->map.count > lru->max_count;
}

void lru_shrink(struct lru *lru)
{
    for (struct sl_link *link = lru->entries.last, *newer; link && is_too_large(lru); link = newer) {
        newer = link->previous;
        if (!lru->in_use || !lru->in_use(get_entry(link)))
            lru_remove(lru, get_entry(link));
    }
}

void lru_expire(struct lru *lru, uint64_t now_ms)
{
    for (struct sl_link *link = lru->entries.last, *newer; link; link = newer) {
        struct lru_entry *entry = get_entry(link);
        newer = link->previous;
        if (!entry->expires_ms || entry->expires_ms > now_ms)
            return;
        if (!lru->in_use || !lru->in_use(entry))
            lru_remove(lru, entry);
    }
}

void lru_clear(struct lru *lru)
{
    while (lru->entries.last)
        lru_remove(lru, get_entry(lru->entries.last));
    sl_map_free(&lru->map);
}
