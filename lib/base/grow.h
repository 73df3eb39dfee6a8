/* Arrays that grow, in memory of malloc: by half of what they have, so that adding items one by one is linear. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_arena;

/* The capacity, and its size in bytes, of an array that is too small for `need` items. False beyond what memory can hold, and for
 * work that is cancelled. */
bool sl_grow_capacity(size_t capacity, size_t need, size_t item, size_t *count, size_t *size);

bool sl_grow_array(void *array, size_t *capacity, size_t need, size_t item);

/* Makes room for `need` items of `item` bytes. `array` is the address of the pointer to them (NULL at first), `*capacity` the
 * number there is room for (0 at first); new items are not initialised. False when out of memory; the array is then as it
 * was. */
static inline bool sl_grow(void *array, size_t *capacity, size_t need, size_t item)
{
    return __builtin_expect(need <= *capacity, 1) || sl_grow_array(array, capacity, need, item);
}

/* The same, with new items all zero. */
bool sl_grow_zeroed(void *array, size_t *capacity, size_t need, size_t item);

/* The same in the arena, which keeps what the array leaves behind: at most twice as much as it holds. */
bool sl_grow_in_arena(struct sl_arena *arena, void *array, size_t *capacity, size_t need, size_t item);
