#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 64 };

bool sl_grow_array(void *array, size_t *capacity, size_t need, size_t item)
{
    size_t count = *capacity ? *capacity + *capacity / 2 : FIRST, size;
    void *items;
    count = count < need ? need : count;
    if (__builtin_mul_overflow(count, item, &size))
        return false;
    memcpy(&items, array, sizeof items);
    items = realloc(items, size);
    if (!items)
        return false;
    memcpy(array, &items, sizeof items);
    *capacity = count;
    return true;
}
