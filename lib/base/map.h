/* Hash map from text to a pointer, open addressing, for names, keys and ids. The hash is seeded differently in every process, so
 * nobody can choose keys that collide.
 *
 * Owns neither keys nor values: the key bytes must outlive the entry. Iteration order is unspecified. */
#pragma once

#include "base/budget.h"
#include "base/bytes.h"

struct sl_map_entry {
    struct sl_str key;
    uint64_t hash;
    void *value;
    bool used; /* false if the slot is empty or its entry was removed */
    bool dead; /* removed (tombstone): probing continues past it */
};

struct sl_map {
    struct sl_map_entry *entries;
    size_t capacity, count, dead;
    uint64_t seed;            /* of the hash; set with the first entry */
    struct sl_budget *budget; /* entries are charged to it; NULL = unlimited. May be set only while the map is empty */
};

/* Returns the XXH3-64 of `size` bytes, without a seed: only for content that nobody can choose so that it collides. */
uint64_t sl_hash(const void *data, size_t size);

void sl_map_free(struct sl_map *map);

/* Uncharges the map's memory and sets `budget` to NULL; the entries stay. For a map that outlives its budget. */
void sl_map_detach_budget(struct sl_map *map);
void *sl_map_get(const struct sl_map *map, struct sl_str key); /* NULL when absent */

/* Returns the address of the value of `key`, valid until the next insertion. An absent key is inserted with value NULL, and
 * `*made` (may be NULL) is true. NULL when out of memory. */
void **sl_map_find_or_add(struct sl_map *map, struct sl_str key, bool *made);

/* Sets or replaces the value of `key`. False when out of memory. */
bool sl_map_put(struct sl_map *map, struct sl_str key, void *value);

/* Inserts an absent `key` with a new value: `size` zero bytes, followed by a NUL-terminated copy of the key, which `*kept` (may
 * be NULL) receives. One free() of the value frees both; remove the entry first. NULL when out of memory. */
void *sl_map_add(struct sl_map *map, struct sl_str key, size_t size, struct sl_str *kept);

/* Removes and returns the value; NULL when absent. */
void *sl_map_remove(struct sl_map *map, struct sl_str key);

/* Returns the entry after `entry` (NULL: the first one); NULL if there are no more.
 *
 *     for (struct sl_map_entry *e = NULL; (e = sl_map_next(map, e)); ) */
struct sl_map_entry *sl_map_next(const struct sl_map *map, struct sl_map_entry *entry);
