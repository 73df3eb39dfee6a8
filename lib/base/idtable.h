/* Hash table that finds the index (id) of an item in an array. The caller stores, hashes and compares the items. Open addressing, at most
 * half full.
 *
 *     slots     | hash 32 | number 32 |  ...      the capacity is a power of two
 *     number    cleared + id + 1; the slot is free if number <= cleared, so clearing a table only raises `cleared`
 *
 * A file may contain items chosen to collide, so each probe after the first costs a step of the account. */
#pragma once

#include "base/account.h"

struct sl_id_slot {
    uint32_t hash, number;
};

struct sl_id_table { /* all zeros is valid and empty; the owner frees `slots` */
    struct sl_id_slot *slots;
    size_t capacity, count;
    uint32_t cleared, last; /* `last`: the largest number given out, at least `cleared` */
    uint32_t generation;    /* how often it was cleared: ids from before the last time are no longer valid */
};

/* Makes the table larger, and moves its items. False, with the table unchanged, when the budget or memory is exhausted. */
bool sl_id_table_grow(struct sl_id_table *table, struct sl_account *account);

/* True if the slot is occupied. */
static inline bool sl_id_table_has(const struct sl_id_table *table, const struct sl_id_slot *slot)
{
    return slot->number > table->cleared;
}

/* Returns the id in an occupied slot. */
static inline uint32_t sl_id_table_id(const struct sl_id_table *table, const struct sl_id_slot *slot)
{
    return slot->number - table->cleared - 1;
}

/* Returns the slot of the item with this hash for which same(items, id, key) is true, or else the free slot where it belongs; valid until
 * the next call. NULL when the account's budget or memory is exhausted. */
static inline struct sl_id_slot *sl_id_table_find(struct sl_id_table *table, struct sl_account *account, uint32_t hash,
                                                  bool (*same)(const void *items, uint32_t id, const void *key),
                                                  const void *items, const void *key)
{
    if ((table->count + 1) * 2 > table->capacity && !sl_id_table_grow(table, account))
        return NULL;
    size_t mask = table->capacity - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        struct sl_id_slot *slot = &table->slots[at];
        if (!sl_id_table_has(table, slot) || (slot->hash == hash && same(items, sl_id_table_id(table, slot), key)))
            return slot;
        if (!sl_account_spend(account, 1))
            return NULL;
    }
}

/* Fills the free slot that sl_id_table_find() returned, and returns `id`. In a table that is cleared now and then, ids must be below 2^31:
 * the slot holds the id plus `cleared`, which is at most 2^31. */
static inline uint32_t sl_id_table_put(struct sl_id_table *table, struct sl_id_slot *slot, uint32_t hash, uint32_t id)
{
    *slot = (struct sl_id_slot){hash, table->cleared + id + 1};
    if (slot->number > table->last)
        table->last = slot->number;
    table->count++;
    return id;
}

/* Returns the slot where a search begins, to prefetch it: large tables do not fit into the processor's caches. NULL in an empty
 * table. */
static inline struct sl_id_slot *sl_id_table_first_slot(const struct sl_id_table *table, uint32_t hash)
{
    return table->capacity ? &table->slots[hash & (table->capacity - 1)] : NULL;
}

/* Empties the table but keeps its memory. The slots are only overwritten when their numbers would soon exceed 32 bits. */
void sl_id_table_clear(struct sl_id_table *table);
