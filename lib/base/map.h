/* Hash map from text to a pointer, open addressing, for names, keys and ids. Where a key lies is another thing in every process,
 * so that nobody can choose keys that meet.
 *
 * Does not own its keys or values: the key bytes must outlive the entry. Iterates in no particular order. */
#pragma once

#include "base/budget.h"
#include "base/bytes.h"

struct sl_map_entry {
    struct sl_str key;
    uint64_t hash;
    void *value;
    bool used; /* false after a removal or when empty */
    bool dead; /* removed: a probe goes on */
};

struct sl_map {
    struct sl_map_entry *entries;
    size_t capacity, count, dead;
    uint64_t seed;            /* of the hashes; set with the first entry */
    struct sl_budget *budget; /* what entries are taken from and given back to; NULL = none. Set while empty */
};

/* XXH3-64 of `size` bytes: the hash of content, wherever there is no adversary. */
uint64_t sl_hash(const void *data, size_t size);

void sl_map_free(struct sl_map *map);

/* Gives the memory back to the budget but keeps it: the map will outlive the budget. */
void sl_map_leave_budget(struct sl_map *map);
void *sl_map_get(const struct sl_map *map, struct sl_str key); /* NULL when absent */

/* The value's slot of `key`, made (with value NULL) if absent; `*made` (may be NULL) tells. NULL when out of memory.
 * The slot is valid until the next insertion. */
void **sl_map_slot(struct sl_map *map, struct sl_str key, bool *made);

/* Sets the value of `key`, in place of what it was. False when out of memory. */
bool sl_map_put(struct sl_map *map, struct sl_str key, void *value);

/* Makes the value of `key`, which has none: zeros, `size` bytes of them, behind which a copy of the key lies, a zero byte at its
 * end. `*kept` (may be NULL) is that copy. One free() frees both; the entry must go first. NULL when out of memory. */
void *sl_map_add(struct sl_map *map, struct sl_str key, size_t size, struct sl_str *kept);

/* Removes and returns the value; NULL when absent. */
void *sl_map_remove(struct sl_map *map, struct sl_str key);

/* for (struct sl_map_entry *e = NULL; (e = sl_map_next(map, e)); ) */
struct sl_map_entry *sl_map_next(const struct sl_map *map, struct sl_map_entry *entry);
