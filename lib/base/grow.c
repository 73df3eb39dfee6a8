#include "base/grow.h"

#include "base/arena.h"
#include "base/cancel.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 64 };

bool sl_grow_capacity(size_t capacity, size_t need, size_t item, size_t *count, size_t *size)
{
    *count = capacity ? capacity + capacity / 2 : FIRST;
    *count = *count < need ? need : *count;
    return !sl_is_cancelled() && !__builtin_mul_overflow(*count, item, size);
}

bool sl_grow_array(void *array, size_t *capacity, size_t need, size_t item)
{
    size_t count, size;
    void *items;
    if (!sl_grow_capacity(*capacity, need, item, &count, &size))
        return false;
    memcpy(&items, array, sizeof items); /* `array` is the address of a pointer of any type, so it is copied as bytes */
    items = realloc(items, size);
    if (!items)
        return false;
    memcpy(array, &items, sizeof items);
    *capacity = count;
    return true;
}

bool sl_grow_zeroed(void *array, size_t *capacity, size_t need, size_t item)
{
    size_t before = *capacity;
    char *items;
    if (!sl_grow(array, capacity, need, item))
        return false;
    memcpy(&items, array, sizeof items); /* `array` is the address of a pointer of any type, so it is copied as bytes */
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
    if (!sl_grow_capacity(*capacity, need, item, &count, &size))
        return false;
    void *grown = sl_arena_alloc(arena, size, _Alignof(max_align_t));
    if (!grown)
        return false;
    memcpy(&items, array, sizeof items); /* `array` is the address of a pointer of any type, so it is copied as bytes */
    if (*capacity)
        memcpy(grown, items, *capacity * item);
    memcpy(array, &grown, sizeof grown);
    *capacity = count;
    return true;
}
