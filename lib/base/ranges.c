#include "base/ranges.h"

/* Goes through the addresses in ascending order. The heap contains the indexes of the ranges that have begun, with the owner of the current
 * address at its top. A range that has ended is removed when it reaches the top. */
struct range_sweep {
    const struct sl_range *ranges;
    size_t *heap, heap_count;
    struct sl_range_map *map; /* gets the pieces: ranges that do not overlap, each with its owner */
};

/* True if the left range owns the addresses that are in both ranges: a preferred range comes before others, then the smaller range, then
 * the first in the list. */
static bool takes_precedence(const struct sl_range *ranges, size_t left, size_t right)
{
    const struct sl_range *a = &ranges[left], *b = &ranges[right];
    uint64_t a_size = a->last - a->first, b_size = b->last - b->first;
    if (a->is_preferred != b->is_preferred)
        return a->is_preferred;
    return a_size != b_size ? a_size < b_size : left < right;
}

/* Adds a range to the heap: parents over which it takes precedence move down. */
static void heap_push(struct range_sweep *s, size_t range)
{
    size_t at = s->heap_count++;
    for (; at && takes_precedence(s->ranges, range, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = range;
}

/* Removes the top of the heap: the last item takes its place, and moves down while a child takes precedence over it. */
static void heap_pop(struct range_sweep *s)
{
    size_t moved = s->heap[--s->heap_count], at = 0;
    for (size_t child = 1; child < s->heap_count; child = 2 * at + 1) {
        if (child + 1 < s->heap_count && takes_precedence(s->ranges, s->heap[child + 1], s->heap[child]))
            child++;
        if (!takes_precedence(s->ranges, s->heap[child], moved))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = moved;
}

/* Adds the addresses [first, last], which belong to the range with index `owner`, as a piece of the map; or extends the last piece if it
 * ends directly before them and has the same owner. */
static void add_piece(struct sl_range_map *map, uint64_t first, uint64_t last, size_t owner)
{
    struct sl_range_piece *before = map->count ? &map->pieces[map->count - 1] : NULL;
    if (before && before->owner == owner && before->last + 1 == first)
        before->last = last;
    else
        map->pieces[map->count++] = (struct sl_range_piece){first, last, owner};
}

/* Divides the addresses into pieces with one owner each: from `at` on, the range on top of the heap is the owner until it ends or another
 * range begins. */
static void sweep_ranges(struct range_sweep *s, size_t count)
{
    const struct sl_range *ranges = s->ranges;
    size_t next = 0;
    uint64_t at = 0, last = 0;
    do {
        while (s->heap_count && ranges[s->heap[0]].last < at)
            heap_pop(s);
        if (!s->heap_count && next == count)
            return;
        if (!s->heap_count) /* a gap: goes to the next range */
            at = ranges[next].first;
        while (next < count && ranges[next].first == at)
            heap_push(s, next++);
        last = ranges[s->heap[0]].last;
        if (next < count && ranges[next].first <= last)
            last = ranges[next].first - 1;
        add_piece(s->map, at, last, s->heap[0]);
        at = last + 1;
    } while (last < UINT64_MAX); /* there is no address after that */
}

bool sl_range_map_build(struct sl_arena *arena, const struct sl_range *ranges, size_t count, struct sl_range_map *map)
{
    /* at most two pieces for each range: each piece ends where a range ends, or before one begins */
    *map = (struct sl_range_map){SL_ARENA_ARRAY(arena, struct sl_range_piece, 2 * count + 1), 0};
    struct range_sweep s = {.ranges = ranges, .heap = SL_ARENA_ARRAY(arena, size_t, count + 1), .map = map};
    if (!map->pieces || !s.heap)
        return false;
    sweep_ranges(&s, count);
    return true;
}
