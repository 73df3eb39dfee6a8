/* Sorts lists that consist of a few ascending runs, such as functions by address: a natural merge sort. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_ordered {
    uint64_t key;
    uint32_t minor; /* orders equal keys */
    uint32_t index; /* the caller's index of the item */
};

/* Sorts the items; stable, and in linear time for a sorted list. `scratch` is memory for `count` items. */
void sl_order(struct sl_ordered *items, struct sl_ordered *scratch, size_t count);
