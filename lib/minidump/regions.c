/* Regions of the address space: the memory info list of Windows' dumps, else the mappings of Linux. */
#include "minidump/regions.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"

enum { REGION_SIZE = 48, MEM_FREE = 0x10000 };

SL_ORDER_BY(region_by_address, struct dump_region, first, last)

/* Reads a MINIDUMP_MEMORY_INFO. Returns false if the region is free or empty, or ends beyond the address space. The PAGE_... protections
 * are bits: a region has one of them, perhaps with PAGE_GUARD. Several of them allow reading, several allow writing, and so on. */
static bool read_region(struct sl_reader *r, struct dump_region *region)
{
    enum {
        READABLE = 0x02 | 0x04 | 0x08 | 0x20 | 0x40 | 0x80, /* PAGE_READONLY, PAGE_READWRITE, PAGE_WRITECOPY, ... */
        WRITABLE = 0x04 | 0x08 | 0x40 | 0x80,
        EXECUTABLE = 0x10 | 0x20 | 0x40 | 0x80,
        GUARD = 0x100,
    };
    region->first = sl_read_u64(r);
    sl_reader_skip(r, 16); /* base and protection of the allocation, alignment */
    uint64_t size = sl_read_u64(r);
    uint32_t state = sl_read_u32(r), protection = sl_read_u32(r);
    region->last = region->first + size - 1;
    region->readable = protection & READABLE;
    region->writable = protection & WRITABLE;
    region->executable = protection & EXECUTABLE;
    region->is_guard = protection & GUARD;
    return size && region->last >= region->first && state != MEM_FREE;
}

static bool has_access(const struct sl_minidump_mapping *mapping, char c)
{
    return mapping->access.size && memchr(mapping->access.data, c, mapping->access.size);
}

/* Adds a region for each mapping of /proc/<pid>/maps, whose ends are exclusive. */
static void add_mappings(struct dump_reader *d, struct dump_regions *regions)
{
    const struct sl_minidump *dump = d->dump;
    regions->items = dump_alloc(d, dump->mapping_count, sizeof *regions->items); /* NULL: `d` records out of memory */
    for (size_t i = 0; regions->items && i < dump->mapping_count; i++) {
        const struct sl_minidump_mapping *mapping = &dump->mappings[i];
        regions->items[regions->count++] = (struct dump_region){
            .first = mapping->begin,
            .last = mapping->end - 1, /* inclusive */
            .readable = has_access(mapping, 'r'),
            .writable = has_access(mapping, 'w'),
            .executable = has_access(mapping, 'x'),
        };
    }
}

/* Reads `count` entries of `entry_size` bytes of the memory info list. A region that read_region() refuses is not counted, so the next one
 * overwrites it. */
static void add_listed(struct dump_reader *d, struct sl_reader *r, size_t count, size_t entry_size,
                       struct dump_regions *regions)
{
    regions->items = dump_alloc(d, count, sizeof *regions->items);
    for (size_t i = 0; regions->items && i < count; i++) {
        struct sl_reader one = *r; /* a copy: entries may be longer than what read_region() reads of them */
        regions->count += read_region(&one, &regions->items[regions->count]);
        sl_reader_skip(r, entry_size);
    }
}

/* Sorts the regions by address, and drops each that overlaps the one kept before it. */
static void sort_regions(struct dump_regions *regions)
{
    size_t kept = 0;
    if (regions->count)
        qsort(regions->items, regions->count, sizeof *regions->items, region_by_address);
    for (size_t i = 0; i < regions->count; i++)
        if (!kept || regions->items[i].first > regions->items[kept - 1].last)
            regions->items[kept++] = regions->items[i];
    regions->count = kept;
}

bool dump_read_regions(const struct sl_minidump *dump, struct sl_arena *arena, struct dump_regions *regions)
{
    struct sl_minidump copy = *dump; /* a dump_reader needs a pointer that is not const; the dump is not changed */
    struct dump_reader d = {.dump = &copy, .arena = arena};
    struct sl_reader r;
    /* `true`: the list has a 64-bit count. `entry_size` is set to the size that the list states, at least REGION_SIZE */
    size_t entry_size, count = dump_extended_list(dump, STREAM_MEMORY_INFO, REGION_SIZE, true, &r, &entry_size);
    *regions = (struct dump_regions){NULL, 0};
    if (count)
        add_listed(&d, &r, count, entry_size, regions);
    else
        add_mappings(&d, regions);
    sort_regions(regions);
    return !d.out_of_memory;
}

const struct dump_region *dump_region_at(const struct dump_regions *regions, uint64_t address)
{
    size_t beyond = SL_COUNT_UP_TO(regions->items, regions->count, first, address); /* first region behind it */
    const struct dump_region *region = beyond ? &regions->items[beyond - 1] : NULL;
    return region && address <= region->last ? region : NULL;
}
