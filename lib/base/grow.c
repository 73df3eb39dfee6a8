#include "base/grow.h"

#include "base/arena.h"
#include "base/cancel.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 64 };

/* What an array that is too small is to have; false beyond what memory holds, and for work that is cancelled. */
static bool next_capacity(size_t capacity, size_t need, size_t item, size_t *count, size_t *size)
{
    *count = capacity ? capacity + capacity / 2 : FIRST;
    *count = *count < need ? need : *count;
    return !sl_is_cancelled() && !__builtin_mul_overflow(*count, item, size);
}

bool sl_grow_array(void *array, size_t *capacity, size_t need, size_t item)
{
    size_t count, size;
    void *items;
    if (!next_capacity(*capacity, need, item, &count, &size))
        return false;
    memcpy(&items, array, sizeof items);
    items = realloc(items, size);
    if (!items)
        return false;
    memcpy(array, &items, sizeof items);
    *capacity = count;
    return true;
}

bool sl_grow_held_array(struct sl_holding *holding, void *array, size_t *capacity, size_t need, size_t item)
{
    size_t count, size, before = *capacity * item;
    if (!next_capacity(*capacity, need, item, &count, &size) || !sl_budget_take(holding->budget, size - before))
        return false;
    holding->bytes += size - before;
    if (sl_grow_array(array, capacity, need, item))
        return true;
    holding->bytes -= size - before;
    sl_budget_return(holding->budget, size - before);
    return false;
}

void *sl_alloc_held(struct sl_holding *holding, size_t count, size_t item)
{
    size_t size;
    if (__builtin_mul_overflow(count, item, &size) || !sl_budget_take(holding->budget, size))
        return NULL;
    void *items = malloc(size ? size : 1);
    if (!items)
        sl_budget_return(holding->budget, size);
    else
        holding->bytes += size;
    return items;
}

void sl_free_held(struct sl_holding *holding, void *items, size_t count, size_t item)
{
    if (!items)
        return;
    free(items);
    holding->bytes -= count * item;
    sl_budget_return(holding->budget, count * item);
}

void sl_holding_release(struct sl_holding *holding)
{
    sl_budget_return(holding->budget, holding->bytes);
    holding->bytes = 0;
}

bool sl_grow_zeroed(void *array, size_t *capacity, size_t need, size_t item)
{
    size_t before = *capacity;
    char *items;
    if (!sl_grow(array, capacity, need, item))
        return false;
    memcpy(&items, array, sizeof items);
    if (*capacity > before)
        memset(items + before * item, 0, (*capacity - before) * item);
    return true;
}

bool sl_grow_in_arena(struct sl_arena *arena, void *array, size_t *capacity, size_t need, size_t item)
{
    size_t count, size;
    void *items;
    if (need <= *capacity)
        return true;
    if (!next_capacity(*capacity, need, item, &count, &size))
        return false;
    void *grown = sl_arena_alloc(arena, size, _Alignof(max_align_t));
    if (!grown)
        return false;
    memcpy(&items, array, sizeof items);
    if (*capacity)
        memcpy(grown, items, *capacity * item);
    memcpy(array, &grown, sizeof grown);
    *capacity = count;
    return true;
}
