/* The set of function ranges read so far. Linkers that fold copies of an inline function let the debug information of every copy
 * point to the one that was kept: only the first is emitted.
 *
 * One thread at a time adds while others look up, so a table that became too small is kept until the end. */
#include "dwarf/impl.h"

#include <stdlib.h>

struct range_table {
    struct range_table *smaller;
    size_t capacity, count;
    _Atomic uint64_t keys[]; /* 0 = free slot */
};

/* Mixes address and size to a hash; never 0, which marks a free slot. Different ranges with one key are so unlikely that the range
 * itself is not stored. */
uint64_t dwarf_range_key(uint64_t address, uint64_t size)
{
    uint64_t key = address * 0x9E3779B97F4A7C15u ^ size * 0xC2B2AE3D27D4EB4Fu;
    key = (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
    key ^= key >> 29;
    return key ? key : 1;
}

static uint64_t key_at(const struct range_table *table, size_t at)
{
    return atomic_load_explicit(&table->keys[at], memory_order_relaxed);
}

enum { FREE_PROBES = 64 }; /* probes of a search that are not charged; only crafted addresses need more */

/* Returns the slot of `key`, or the free one where `key` belongs. Long probes are charged, because crafted addresses could make each search
 * visit the whole table. */
static size_t repeated_find(const struct range_set *set, const struct range_table *table, uint64_t key)
{
    size_t at = (size_t)key & (table->capacity - 1), probes = 0;
    for (uint64_t found; (found = key_at(table, at)) && found != key; probes++)
        at = (at + 1) & (table->capacity - 1);
    if (probes > FREE_PROBES)
        sl_budget_spend(set->budget, probes);
    return at;
}

bool dwarf_has_range(const struct range_set *set, uint64_t key)
{
    const struct range_table *table = atomic_load_explicit(&set->table, memory_order_acquire);
    /* compare the key: another thread may have filled a free slot since */
    return table && key_at(table, repeated_find(set, table, key)) == key;
}

static size_t table_size(size_t capacity)
{
    return sizeof(struct range_table) + capacity * sizeof(uint64_t);
}

/* Makes a table of twice the size with the same keys and publishes it. The old one is kept, as other threads may still be looking up
 * there. NULL when out of memory. */
static struct range_table *enlarge(struct range_set *set, struct range_table *table)
{
    size_t capacity = table ? table->capacity * 2 : 4096;
    size_t size = table_size(capacity);
    struct range_table *larger = sl_budget_charge(set->budget, size) ? calloc(1, size) : NULL;
    if (!larger)
        return NULL;
    larger->smaller = table;
    larger->capacity = capacity;
    larger->count = table ? table->count : 0;
    for (size_t i = 0; table && i < table->capacity; i++)
        if (key_at(table, i))
            /* relaxed: no other thread sees the table before the release below */
            atomic_store_explicit(&larger->keys[repeated_find(set, larger, key_at(table, i))], key_at(table, i),
                                  memory_order_relaxed);
    atomic_store_explicit(&set->table, larger, memory_order_release);
    return larger;
}

enum range_novelty dwarf_range_add(struct range_set *set, uint64_t key)
{
    struct range_table *table = atomic_load_explicit(&set->table, memory_order_relaxed);
    /* at most half of the slots are used, so that probing stays short */
    if (!table || (table->count + 1) * 2 > table->capacity)
        table = enlarge(set, table);
    if (!table)
        return RANGE_NO_MEMORY;
    size_t at = repeated_find(set, table, key);
    if (key_at(table, at))
        return RANGE_KNOWN;
    table->count++;
    atomic_store_explicit(&table->keys[at], key, memory_order_relaxed);
    return RANGE_NEW;
}

/* Frees the table and the smaller ones that it replaced; only after all threads are done with them. */
void dwarf_range_free(struct range_set *set)
{
    struct range_table *table = atomic_load(&set->table);
    while (table) {
        struct range_table *smaller = table->smaller;
        sl_budget_uncharge(set->budget, table_size(table->capacity));
        free(table);
        table = smaller;
    }
    atomic_store(&set->table, NULL);
}
