/* Regions of the crashed process' address space with their access rights. Private to this folder. */
#pragma once

#include "minidump/impl.h"

struct dump_region {
    uint64_t first, last; /* inclusive */
    bool readable, writable, executable;
    bool is_guard; /* Windows: PAGE_GUARD */
};

struct dump_regions { /* sorted by address, without overlaps */
    struct dump_region *items;
    size_t count;
};

/* Reads the regions into the arena: the dump's memory info list (Windows), else its memory mappings (Linux). Returns false if out of
 * memory. */
bool dump_read_regions(const struct sl_minidump *dump, struct sl_arena *arena, struct dump_regions *regions);

/* Returns the region that contains the address; NULL if none does or the dump has no list of regions. */
const struct dump_region *dump_region_at(const struct dump_regions *regions, uint64_t address);
