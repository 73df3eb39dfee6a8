/* Which of many ranges of addresses an address belongs to, where ranges may overlap or lie in one another: to the smallest
 * preferred one that holds it, and where none of those does, to the smallest. Of ranges that are equal in that the first counts.
 *
 *     ranges   |------------------ A ------------------|         pieces   |-- A --|- B -|--- C ---|- B -|-- A --|
 *                      |--------- B ---------|
 *                            |--- C ---|
 *
 * The ranges are cut once into pieces that do not overlap, at most twice as many, in O(n log n); a look-up is a binary search. */
#pragma once

#include "base/arena.h"
#include "base/search.h"

struct sl_range {
    uint64_t first, last; /* both inside; first <= last */
    bool is_preferred;
};

struct sl_range_piece {
    uint64_t first, last;
    size_t owner; /* index of a range */
};

struct sl_range_map {
    struct sl_range_piece *pieces; /* ascending */
    size_t count;
};

/* `ranges` ascend by `first`. The pieces lie in the arena. False when out of memory. */
bool sl_range_map_build(struct sl_arena *arena, const struct sl_range *ranges, size_t count, struct sl_range_map *map);

#define SL_NO_RANGE SIZE_MAX

/* The index of the range that the address belongs to; SL_NO_RANGE: none holds it. */
static inline size_t sl_range_map_find(const struct sl_range_map *map, uint64_t address)
{
    size_t beyond = SL_COUNT_UP_TO(map->pieces, map->count, first, address);
    return beyond && address <= map->pieces[beyond - 1].last ? map->pieces[beyond - 1].owner : SL_NO_RANGE;
}
