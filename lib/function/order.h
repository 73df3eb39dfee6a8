/* Sorting by address what is mostly in order already: lists that are several ascending ones, one after the other. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_ordered {
    uint64_t key;
    uint32_t minor; /* among equal keys */
    uint32_t index; /* of what is sorted, for the caller */
};

/* Stable; linear for one ascending list. `scratch` has room for as many. */
void sl_order(struct sl_ordered *items, struct sl_ordered *scratch, size_t count);
