#include "kinds/kinds.h"

#include <stdlib.h>

struct place { /* a candidate and where it came from, so that a later one wins */
    const struct candidate *candidate;
    size_t order;
};

static int compare_key(const struct candidate *a, const struct candidate *b)
{
    int order = sl_str_compare(a->source, b->source);
    return order ? order : sl_str_compare(a->location, b->location);
}

static int candidates_compare(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    int order = compare_key(a->candidate, b->candidate);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static void overwrite(struct candidate *into, const struct candidate *newer)
{
    into->download = newer->download;
    into->download_details = newer->download_details;
    into->features = newer->features;
    if (newer->debug.set) {
        into->debug.set = true;
        into->debug.code = newer->debug.code;
        into->debug.details = newer->debug.details;
    }
    if (newer->unwind.set) {
        into->unwind.set = true;
        into->unwind.code = newer->unwind.code;
        into->unwind.details = newer->unwind.details;
    }
}

void candidates_merge(struct sl_arena *arena, struct candidate_list *into, const struct candidate_list *from)
{
    size_t count = into->count + from->count, kept = 0;
    if (from->count == 0)
        return;
    struct candidate *items = SL_ARENA_ARRAY(arena, struct candidate, count);
    struct place *places = SL_ARENA_ARRAY(arena, struct place, count);
    if (!items || !places)
        return;
    for (size_t i = 0; i < count; i++)
        places[i] = (struct place){i < into->count ? &into->items[i] : &from->items[i - into->count], i};
    qsort(places, count, sizeof *places, candidates_compare);
    for (size_t i = 0; i < count; i++)
        if (kept && compare_key(&items[kept - 1], places[i].candidate) == 0)
            overwrite(&items[kept - 1], places[i].candidate);
        else
            items[kept++] = *places[i].candidate;
    *into = (struct candidate_list){.items = items, .count = kept, .capacity = count};
}
