/* Growing arrays in memory of malloc. Capacity grows by half, so adding items one by one takes linear time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_arena;

/* Computes a larger capacity, `*count` items in `*size` bytes, for an array that is too small for `need` items. False when the size
 * overflows or the calling thread's work is cancelled (base/cancel.h). */
bool sl_grow_capacity(size_t capacity, size_t need, size_t item, size_t *count, size_t *size);

/* The slow path of sl_grow(): enlarges an array that is too small for `need` items. False, with the array unchanged, when out of memory. */
bool sl_grow_array(void *array, size_t *capacity, size_t need, size_t item);

/* Enlarges the array, if needed, for `need` items of `item` bytes. `array` is the address of the pointer to them (NULL at first),
 * `*capacity` the capacity in items (0 at first); new items are not initialised. False when out of memory; the array is then unchanged. */
static inline bool sl_grow(void *array, size_t *capacity, size_t need, size_t item)
{
    return __builtin_expect(need <= *capacity, 1) || sl_grow_array(array, capacity, need, item);
}

/* Enlarges the array as sl_grow() does, and zeroes the new items. */
bool sl_grow_zeroed(void *array, size_t *capacity, size_t need, size_t item);

/* Enlarges an array in an arena, with the arguments of sl_grow(). The smaller arrays that it replaces stay in the arena until that is
 * freed: together at most twice the size of the array. False when out of memory; the array is then unchanged. */
bool sl_grow_in_arena(struct sl_arena *arena, void *array, size_t *capacity, size_t need, size_t item);
