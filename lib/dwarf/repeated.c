/* The ranges of functions met so far. Linkers that fold the copies of an inline function let the debug information of
 * every copy point to the one that was kept: only the first counts. */
#include "dwarf/impl.h"

#include <stdlib.h>

uint64_t dwarf_range_key(uint64_t address, uint64_t size)
{
    uint64_t key = address * 0x9E3779B97F4A7C15u ^ size * 0xC2B2AE3D27D4EB4Fu;
    key ^= key >> 29;
    return key ? key : 1;
}

static size_t find(const struct range_set *set, uint64_t key)
{
    size_t at = (size_t)key & (set->capacity - 1);
    while (set->keys[at] && set->keys[at] != key)
        at = (at + 1) & (set->capacity - 1);
    return at;
}

bool dwarf_range_known(const struct range_set *set, uint64_t key)
{
    return set->capacity && set->keys[find(set, key)];
}

static bool make_room(struct range_set *set)
{
    if ((set->count + 1) * 2 <= set->capacity)
        return true;
    struct range_set larger = {.capacity = set->capacity ? set->capacity * 2 : 256, .count = set->count};
    larger.keys = calloc(larger.capacity, sizeof *larger.keys);
    if (!larger.keys)
        return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->keys[i])
            larger.keys[find(&larger, set->keys[i])] = set->keys[i];
    free(set->keys);
    *set = larger;
    return true;
}

bool dwarf_range_add(struct range_set *set, uint64_t key)
{
    if (!make_room(set))
        return true;
    size_t at = find(set, key);
    if (set->keys[at])
        return false;
    set->keys[at] = key;
    set->count++;
    return true;
}

void dwarf_range_move(struct range_set *to, struct range_set *from)
{
    enum { KEPT = 1024 }; /* a large set must not be looked through again for every small unit that follows */
    if (!from->count)
        return;
    for (size_t i = 0; i < from->capacity; i++)
        if (from->keys[i])
            dwarf_range_add(to, from->keys[i]);
    from->count = 0;
    if (from->capacity <= KEPT) {
        memset(from->keys, 0, from->capacity * sizeof *from->keys);
        return;
    }
    free(from->keys);
    *from = (struct range_set){0};
}
