/* A bounded LRU cache in memory: a map from text to entries, whose least recently used ones are evicted.
 *
 * Entries are the caller's structs with a `struct lru_entry` in them, allocated by the caller and freed by `release`. A zeroed
 * struct with both limits and `release` set is an empty cache. Not locked: one thread at a time. */
#pragma once

#include "base/list.h"
#include "base/map.h"

struct lru_entry {
    struct sl_link use;
    struct sl_str key;   /* must live as long as the entry */
    uint64_t size;       /* bytes that count against max_size */
    uint64_t expires_ms; /* on the same clock as the now_ms that lru_get is given; 0 = never */
};

struct lru {
    uint64_t max_size;                                         /* bytes; 0 = store nothing, UINT64_MAX = no limit */
    size_t max_count;                                          /* entries; 0 = store nothing, SIZE_MAX = no limit */
    void (*release)(struct lru *lru, struct lru_entry *entry); /* frees an entry that was removed from the cache */
    /* True if an entry must not be evicted, although the cache is over its limit or the entry has expired; NULL = evict any. */
    bool (*in_use)(const struct lru_entry *entry);
    /* read only for users of the cache */
    struct sl_map map;
    struct sl_list entries; /* most recently used first */
    uint64_t size;
};

/* Returns the entry and makes it the most recently used; NULL if there is none, or if it has expired at `now_ms` (then it is
 * removed). */
struct lru_entry *lru_get(struct lru *lru, struct sl_str key, uint64_t now_ms);
/* Like lru_get, for an entry that is in the cache: makes it the most recently used; NULL if it has expired, and so was removed. */
struct lru_entry *lru_touch(struct lru *lru, struct lru_entry *entry, uint64_t now_ms);
/* Returns the entry without marking it as used; NULL if there is none. */
struct lru_entry *lru_find(const struct lru *lru, struct sl_str key);

/* Adds an entry whose key, size and expires_ms are set, and removes one with the same key. Evicts entries beyond the limits,
 * which may include this one. False when out of memory: the entry is still the caller's. */
bool lru_put(struct lru *lru, struct lru_entry *entry);

void lru_remove(struct lru *lru, struct lru_entry *entry); /* also frees it, by `release` */
/* Evicts the least recently used entries, but not those in use, until the cache is within its limits. */
void lru_shrink(struct lru *lru);
/* Removes expired entries that are not in use, from the least recently used one on, and stops at the first that has not expired: for a
 * cache whose entries expire in about the order of their use. */
void lru_expire(struct lru *lru, uint64_t now_ms);
void lru_clear(struct lru *lru); /* removes all, also those in use */

/* To iterate over all entries, from the most recently used to the least, or back. `type` has its lru_entry as `member`. */
#define LRU_ITEM(entry, type, member) ((type *)sl_list_item(&(entry)->use, offsetof(type, member.use)))
#define LRU_NEWEST(lru, type, member) SL_LIST_FIRST(&(lru)->entries, type, member.use)
#define LRU_OLDEST(lru, type, member) SL_LIST_LAST(&(lru)->entries, type, member.use)
#define LRU_OLDER(item, member)       SL_LIST_NEXT(item, member.use)
#define LRU_NEWER(item, member)       SL_LIST_PREVIOUS(item, member.use)
