/* Code that has lines but no subprogram: from `-gline-tables-only`, split DWARF with missing .dwo files, assemblers, and linkers that
 * remove entries. Each symbol that covers such code becomes a function; without a symbol the function has no name. */
#include "dwarf/impl.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

struct uncovered {
    struct dwarf_reader *reader;
    struct dwarf_worker *w;
    const struct dwarf_unit *unit;
    enum sl_language language;
    struct sl_arena *arena;
    size_t range_count; /* number of the unit's ranges, which are in worker->ranges, sorted and joined */
    bool has_ranges;    /* `range_count` is set */
};

SL_ORDER_BY(by_begin, struct dwarf_range, begin)

/* Sorts the ranges and joins those that overlap or touch. Returns the new count. */
static size_t join_ranges(struct dwarf_range *ranges, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(ranges, count, sizeof *ranges, by_begin);
    for (size_t i = 0; i < count; i++) {
        if (!kept || ranges[i].begin > ranges[kept - 1].end)
            ranges[kept++] = ranges[i];
        else if (ranges[i].end > ranges[kept - 1].end)
            ranges[kept - 1].end = ranges[i].end;
    }
    return kept;
}

/* Shortens [begin, *end), relative to the load address, to the part in the unit's code ranges, which are absolute; false if `begin` is
 * outside. Several units may use one line table, and each adds only the lines of its own code. Without ranges nothing is shortened. */
static bool clip_to_unit(struct uncovered *u, uint64_t begin, uint64_t *end)
{
    uint64_t load = u->reader->load_address;
    const struct dwarf_unit *unit = u->unit;
    if (!u->has_ranges) {
        size_t count = dwarf_unit_ranges(u->w, unit); /* may move u->w->ranges */
        u->range_count = join_ranges(u->w->ranges, count);
        u->has_ranges = true;
    }
    if (!u->range_count)
        return true;
    const struct dwarf_range *ranges = u->w->ranges;
    /* the last range that begins at or before `begin`, or the first one */
    const struct dwarf_range *range =
        &ranges[SL_PARTITION_POINT(middle, 1, u->range_count, ranges[middle].begin <= begin + load) - 1];
    if (begin + load < range->begin || begin + load >= range->end)
        return false;
    if (range->end - load < *end)
        *end = range->end - load;
    return true;
}

/* True if the address is in an executable segment: lines of dropped code may point anywhere. Always true for relocatable files. */
static bool is_in_code(const struct uncovered *u, uint64_t address)
{
    struct sl_segment segment;
    if (u->reader->main.relocatable)
        return true;
    for (size_t i = 0; sl_object_segment(u->reader->object, i, &segment) && sl_account_spend(&u->w->account, 1); i++)
        if (segment.executable && address - segment.address < segment.memory_size)
            return true;
    return false;
}

/* Adds functions for [begin, end), which has lines but no subprogram: one for each symbol there and, if the sink takes functions without a
 * name (`nameless`), one for each part without a symbol. A symbol without size that begins before `begin` does not name the gap: the gap is
 * padding after the subprogram there. False when out of memory or budget. */
static bool add_gap(struct uncovered *u, uint64_t begin, uint64_t end)
{
    for (uint64_t at = begin; at < end;) {
        struct symbol_span span = dwarf_find_symbol_span(u->w, &u->reader->symbols, at);
        uint64_t stop = span.end < end ? span.end : end, own_end = stop;
        const struct sl_symbol *s = span.symbol;
        bool named = s && (s->size || s->address >= begin);
        if (!sl_account_spend(&u->w->account, 8)) /* the work of one part of the gap */
            return false;
        if ((named || (u->reader->nameless && is_in_code(u, at))) && clip_to_unit(u, at, &own_end)) {
            struct sl_function function = {.address = at, .size = own_end - at, .language = u->language};
            if (named)
                function.name = s->name;
            if (!dwarf_add_function(u->reader, u->w, u->arena, &function, NULL, 0)) /* no inlined calls */
                return false;
        }
        at = stop;
    }
    return true;
}

bool dwarf_add_uncovered(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                         enum sl_language language, struct sl_arena *arena)
{
    struct uncovered u = {.reader = reader, .w = w, .unit = unit, .language = language, .arena = arena};
    const struct dwarf_line_table *lines = &w->lines;
    uint64_t load = reader->load_address, done = 0; /* code before it is covered or added */
    bool sorted = true;
    /* without symbols there are no names, and the sink does not want functions without a name */
    if (!reader->symbols.count && !reader->nameless)
        return true;
    for (size_t i = 1; i < w->covered_count && sorted; i++)
        sorted = w->covered[i - 1].begin <= w->covered[i].begin;
    if (!sorted)
        qsort(w->covered, w->covered_count, sizeof *w->covered, by_begin);
    const struct dwarf_range *next = w->covered, *covered_end = next ? next + w->covered_count : NULL;
    for (size_t i = 0; i < lines->sequence_count; i++) {
        const struct sequence *s = &lines->sequences[i];
        uint64_t at = s->start < load ? 0 : s->start - load, end = s->end < load ? 0 : s->end - load;
        while (at < end) {
            /* functions that begin here or before */
            for (; next < covered_end && next->begin <= at; next++)
                done = next->end > done ? next->end : done;
            if (done > at) {
                at = done;
                continue;
            }
            uint64_t stop = next < covered_end && next->begin < end ? next->begin : end;
            if (!add_gap(&u, at, stop))
                return false;
            done = at = stop;
        }
    }
    return true;
}
