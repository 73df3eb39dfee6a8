/* Bounded cache in memory: a map from text to entries, of which the least recently used go first.
 *
 * Entries are the caller's structs with a `struct lru_entry` in them, allocated by the caller and freed by `release`. Zeros with
 * both limits and `release` set are an empty cache. Not locked: one thread at a time. */
#pragma once

#include "base/list.h"
#include "base/map.h"

struct lru_entry {
    struct sl_link use;
    struct sl_str key;   /* must live as long as the entry */
    uint64_t size;       /* bytes, that count against max_size */
    uint64_t expires_ms; /* of the clock whose time lru_get is given; 0 = never */
};

struct lru {
    uint64_t max_size;                                         /* bytes; 0 = nothing is kept, UINT64_MAX = no limit */
    size_t max_count;                                          /* entries; 0 = nothing is kept, SIZE_MAX = no limit */
    void (*release)(struct lru *lru, struct lru_entry *entry); /* frees an entry that has left the cache */
    /* Whether an entry must stay, although the cache is too large or its time is over; NULL = none must. */
    bool (*in_use)(const struct lru_entry *entry);
    /* read only */
    struct sl_map map;
    struct sl_list entries; /* the most recently used first */
    uint64_t size;
};

/* The entry, which becomes the most recently used; NULL when there is none, or its time is over at `now_ms`: then it is gone. */
struct lru_entry *lru_get(struct lru *lru, struct sl_str key, uint64_t now_ms);
/* The same of an entry that is known to be in the cache. */
struct lru_entry *lru_use(struct lru *lru, struct lru_entry *entry, uint64_t now_ms);
/* The entry as it is; NULL when there is none. */
struct lru_entry *lru_find(const struct lru *lru, struct sl_str key);

/* Adds an entry whose key, size and expires_ms are set; one with the same key goes. Entries that are too many, maybe this one
 * too, go. False when out of memory: the entry is still the caller's. */
bool lru_put(struct lru *lru, struct lru_entry *entry);

void lru_drop(struct lru *lru, struct lru_entry *entry);
/* Drops the least recently used that are more than the limits allow. */
void lru_shrink(struct lru *lru);
/* Drops entries whose time is over, from the least recently used on, up to the first whose time is not. */
void lru_expire(struct lru *lru, uint64_t now_ms);
void lru_clear(struct lru *lru); /* drops all, also those in use */

/* For walks over all entries: from the most recently used to the least, or back. `type` has its lru_entry as `member`. */
#define LRU_ITEM(entry, type, member) ((type *)sl_list_item(&(entry)->use, offsetof(type, member.use)))
#define LRU_NEWEST(lru, type, member) SL_LIST_FIRST(&(lru)->entries, type, member.use)
#define LRU_OLDEST(lru, type, member) SL_LIST_LAST(&(lru)->entries, type, member.use)
#define LRU_OLDER(item, member)       SL_LIST_NEXT(item, member.use)
#define LRU_NEWER(item, member)       SL_LIST_PREVIOUS(item, member.use)
