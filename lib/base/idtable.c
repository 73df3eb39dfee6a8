#include "base/idtable.h"

enum { FIRST_CAPACITY = 256, LARGE_CAPACITY = 1 << 18 };

bool sl_id_table_grow(struct sl_id_table *table, struct sl_account *account)
{
    /* growing by four moves items less often; a large table only doubles, so that less of its memory is unused */
    size_t capacity = !table->capacity                   ? FIRST_CAPACITY
                      : table->capacity < LARGE_CAPACITY ? table->capacity * 4
                                                         : table->capacity * 2;
    struct sl_id_slot *slots = sl_account_alloc(account, capacity, sizeof *slots);
    if (!slots)
        return false;
    /* not calloc(): a page of it that is read before it is written faults twice */
    memset(slots, 0, capacity * sizeof *slots);
    for (size_t i = 0; i < table->capacity; i++) {
        if (!sl_id_table_has(table, &table->slots[i]))
            continue;
        size_t at = table->slots[i].hash & (capacity - 1);
        while (slots[at].number) /* not 0: the slot is in use */
            at = (at + 1) & (capacity - 1);
        slots[at] = table->slots[i];
    }
    sl_account_free(account, table->slots, table->capacity, sizeof *slots);
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

void sl_id_table_clear(struct sl_id_table *table)
{
    table->generation++;
    table->count = 0;
    table->cleared = table->last;
    /* A slot is free if its number is at most `cleared`, so raising that frees all slots without writing to them. Before the numbers
     * overflow, the slots are zeroed and the numbers begin at 0 again. */
    if (table->last <= INT32_MAX)
        return;
    memset(table->slots, 0, table->capacity * sizeof *table->slots);
    table->cleared = table->last = 0;
}
