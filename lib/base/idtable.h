/* Hash table from items of an array to their indices, the ids; what an item is, its users know. Open addressing, at most half full.
 *
 *     slots     | hash 32 | number 32 |  ...      a power of two of them
 *     number    cleared + id + 1; at most `cleared`: the slot is free, so that clearing a table takes no work
 *
 * Who chooses what is hashed may choose items that meet in one place: each probe after the first is a step of the account. */
#pragma once

#include "base/account.h"

struct sl_id_slot {
    uint32_t hash, number;
};

struct sl_id_table { /* zeros are an empty one; `slots` is freed by its owner */
    struct sl_id_slot *slots;
    size_t capacity, count;
    uint32_t cleared, last; /* the last number given out, at least `cleared` */
    uint32_t generation;    /* how many times it was cleared */
};

bool sl_id_table_grow(struct sl_id_table *table, struct sl_account *account);

static inline bool sl_id_table_has(const struct sl_id_table *table, const struct sl_id_slot *slot)
{
    return slot->number > table->cleared;
}

/* The id in a slot that has one. */
static inline uint32_t sl_id_table_id(const struct sl_id_table *table, const struct sl_id_slot *slot)
{
    return slot->number - table->cleared - 1;
}

/* The slot of the item with this hash for which `same` is true, or else the free one where it belongs, until the next call. NULL:
 * the account's budget is used up, or out of memory. */
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

/* Fills a free slot that was found. Returns the id, which is below 2^31 where tables are cleared. */
static inline uint32_t sl_id_table_put(struct sl_id_table *table, struct sl_id_slot *slot, uint32_t hash, uint32_t id)
{
    *slot = (struct sl_id_slot){hash, table->cleared + id + 1};
    if (slot->number > table->last)
        table->last = slot->number;
    table->count++;
    return id;
}

/* The slot where a search begins, to be prefetched: tables are larger than the processor's caches. NULL in an empty table. */
static inline struct sl_id_slot *sl_id_table_home(const struct sl_id_table *table, uint32_t hash)
{
    return table->capacity ? &table->slots[hash & (table->capacity - 1)] : NULL;
}

void sl_id_table_clear(struct sl_id_table *table);
