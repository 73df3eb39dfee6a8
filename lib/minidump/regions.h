/* What the address space was made of. Private to this folder. */
#pragma once

#include "minidump/impl.h"

struct dump_region {
    uint64_t first, last; /* inclusive */
    bool readable, writable, executable;
    bool is_guard; /* Windows: PAGE_GUARD */
};

struct dump_regions { /* ascending, no two overlapping */
    struct dump_region *items;
    size_t count;
};

/* Into the arena. False when out of memory. */
bool dump_read_regions(const struct sl_minidump *dump, struct sl_arena *arena, struct dump_regions *regions);

/* The region that holds the address; NULL: none, or nothing is known of it. */
const struct dump_region *dump_region_at(const struct dump_regions *regions, uint64_t address);
