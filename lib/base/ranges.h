/* Maps an address to the range that owns it, where ranges may overlap or nest. Of the ranges that contain the address the owner is the
 * smallest preferred one; without a preferred one, the smallest; of several with that size, the first.
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
    uint64_t first, last; /* both inclusive; first <= last */
    bool is_preferred;
};

struct sl_range_piece {
    uint64_t first, last;
    size_t owner; /* index of the range */
};

struct sl_range_map {
    struct sl_range_piece *pieces; /* in ascending order */
    size_t count;
};

/* Builds the map from ranges in ascending order of `first`. The pieces lie in the arena. False when out of memory. */
bool sl_range_map_build(struct sl_arena *arena, const struct sl_range *ranges, size_t count, struct sl_range_map *map);

#define SL_NO_RANGE SIZE_MAX

/* Returns the index of the range that owns the address, or SL_NO_RANGE. */
static inline size_t sl_range_map_find(const struct sl_range_map *map, uint64_t address)
{
    size_t beyond = SL_COUNT_UP_TO(map->pieces, map->count, first, address);
    return beyond && address <= map->pieces[beyond - 1].last ? map->pieces[beyond - 1].owner : SL_NO_RANGE;
}
