/* Looking things up in arrays that are sorted by a number. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many of `count` items are at or below `number`: the last of them, if any, is the one before this index. Each item has
 * `size` bytes and its number, of 64 bits, at `offset`. */
static inline size_t sl_count_up_to(const void *items, size_t count, size_t size, size_t offset, uint64_t number)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t there;
        memcpy(&there, (const char *)items + middle * size + offset, sizeof there);
        if (there <= number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#define SL_COUNT_UP_TO(items, count, member, number)                                                                   \
    sl_count_up_to((items), (count), sizeof *(items), offsetof(__typeof__(*(items)), member), (number))
