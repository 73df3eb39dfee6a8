#include "base/map.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <xxhash.h>

uint64_t sl_hash(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

static uint64_t map_hash(const struct sl_map *map, struct sl_str key)
{
    return XXH3_64bits_withSeed(key.data, key.size, map->seed);
}

/* Returns a seed made from the 16 random bytes that the kernel gives every process (AT_RANDOM), so that nobody can choose keys that
 * collide. */
static uint64_t new_seed(void)
{
    const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
    return random ? sl_hash(random, 16) : 0;
}

void sl_map_free(struct sl_map *map)
{
    sl_budget_uncharge(map->budget, map->capacity * sizeof *map->entries);
    free(map->entries);
    *map = (struct sl_map){.budget = map->budget};
}

void sl_map_detach_budget(struct sl_map *map)
{
    sl_budget_uncharge(map->budget, map->capacity * sizeof *map->entries);
    map->budget = NULL;
}

/* Returns the entry of a key with this hash; NULL if there is none. Removed entries are marked as dead, so that the search continues after
 * them. The loop ends because map_grow() always leaves empty entries. */
static struct sl_map_entry *map_find(const struct sl_map *map, struct sl_str key, uint64_t hash)
{
    if (!map->capacity)
        return NULL;
    size_t mask = map->capacity - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        struct sl_map_entry *entry = &map->entries[i];
        if (!entry->used && !entry->dead)
            return NULL;
        if (entry->used && entry->hash == hash && sl_str_equal(entry->key, key))
            return entry;
    }
}

/* Returns the free entry where a new key with this hash belongs; that may be the entry of a removed key. */
static struct sl_map_entry *free_entry(struct sl_map_entry *entries, size_t capacity, uint64_t hash)
{
    size_t mask = capacity - 1, i = (size_t)hash & mask;
    while (entries[i].used)
        i = (i + 1) & mask;
    return &entries[i];
}

/* Makes a new table if one more entry would leave less than a quarter of the entries empty; empty ones end a search. Removed (dead) entries
 * count as not empty, and the new table has none, so it may have the same size. False when memory or the budget is exhausted. */
static bool map_grow(struct sl_map *map)
{
    if ((map->count + map->dead + 1) * 4 <= map->capacity * 3)
        return true;
    size_t capacity = map->capacity ? map->capacity : 16;
    while ((map->count + 1) * 2 > capacity)
        capacity *= 2;
    if (!sl_budget_charge(map->budget, capacity * sizeof *map->entries))
        return false;
    struct sl_map_entry *entries = calloc(capacity, sizeof *entries);
    if (!entries) {
        sl_budget_uncharge(map->budget, capacity * sizeof *entries);
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].used)
            *free_entry(entries, capacity, map->entries[i].hash) = map->entries[i];
    sl_budget_uncharge(map->budget, map->capacity * sizeof *entries);
    free(map->entries);
    map->entries = entries;
    map->capacity = capacity;
    map->dead = 0;
    return true;
}

void *sl_map_get(const struct sl_map *map, struct sl_str key)
{
    struct sl_map_entry *entry = map_find(map, key, map_hash(map, key));
    return entry ? entry->value : NULL;
}

void **sl_map_find_or_add(struct sl_map *map, struct sl_str key, bool *made)
{
    if (!map->capacity)
        map->seed = new_seed();
    uint64_t hash = map_hash(map, key);
    struct sl_map_entry *entry = map_find(map, key, hash);
    if (made)
        *made = !entry;
    if (entry)
        return &entry->value;
    if (!map_grow(map))
        return NULL;
    entry = free_entry(map->entries, map->capacity, hash);
    if (entry->dead) /* the entry of a removed key is used again */
        map->dead--;
    *entry = (struct sl_map_entry){.key = key, .hash = hash, .used = true};
    map->count++;
    return &entry->value;
}

bool sl_map_put(struct sl_map *map, struct sl_str key, void *value)
{
    void **slot = sl_map_find_or_add(map, key, NULL);
    if (slot)
        *slot = value;
    return slot;
}

void *sl_map_add(struct sl_map *map, struct sl_str key, size_t size, struct sl_str *kept)
{
    char *value = calloc(1, size + key.size + 1);
    if (!value)
        return NULL;
    if (key.size)
        memcpy(value + size, key.data, key.size);
    key.data = value + size;
    if (!sl_map_put(map, key, value)) {
        free(value);
        return NULL;
    }
    if (kept)
        *kept = key;
    return value;
}

void *sl_map_remove(struct sl_map *map, struct sl_str key)
{
    struct sl_map_entry *entry = map_find(map, key, map_hash(map, key));
    if (!entry)
        return NULL;
    void *value = entry->value;
    *entry = (struct sl_map_entry){.dead = true};
    map->count--;
    map->dead++;
    return value;
}

struct sl_map_entry *sl_map_next(const struct sl_map *map, struct sl_map_entry *entry)
{
    size_t i = entry ? (size_t)(entry - map->entries) + 1 : 0;
    for (; i < map->capacity; i++)
        if (map->entries[i].used)
            return &map->entries[i];
    return NULL;
}
