/* Binary search. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the first index in [low, high) for which `condition`, an expression of `index`, is false; `high` if it is always true.
 * `condition` must be true up to some index and false from there on.
 *
 *     size_t at = SL_PARTITION_POINT(i, 0, count, items[i].address < address);    the first item at or after `address` */
#define SL_PARTITION_POINT(index, low, high, condition)                                                                \
    ({                                                                                                                 \
        size_t sl_low = (low), sl_high = (high);                                                                       \
        while (sl_low < sl_high) {                                                                                     \
            size_t index = sl_low + (sl_high - sl_low) / 2;                                                            \
            if (condition)                                                                                             \
                sl_low = index + 1;                                                                                    \
            else                                                                                                       \
                sl_high = index;                                                                                       \
        }                                                                                                              \
        sl_low;                                                                                                        \
    })

/* Returns how many of `count` items, in ascending order of `member`, have a `member` of at most `number`. If that is not 0, the last of
 * them is the item at the result minus 1. */
#define SL_COUNT_UP_TO(items, count, member, number)                                                                   \
    ({                                                                                                                 \
        const __typeof__(*(items)) *sl_items = (items);                                                                \
        uint64_t sl_number = (number);                                                                                 \
        SL_PARTITION_POINT(sl_index, 0, (count), sl_items[sl_index].member <= sl_number);                              \
    })
