/* Which parts of the address space the segments of a core cover. */
#include "elfcore/impl.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"

SL_ORDER_BY(load_by_address, struct core_load, begin, end)

void core_list_loads(struct core_reader *c)
{
    struct core_loads *loads = &c->loads;
    size_t executable = 0;
    uint64_t before = 0;
    loads->items = SL_ARENA_ARRAY(c->arena, struct core_load, c->segment_count + 1);
    c->out_of_memory |= !loads->items;
    for (size_t i = 0; loads->items && i < c->segment_count; i++) {
        const struct core_segment *s = &c->segments[i];
        if (s->type == PT_LOAD && s->address + s->memory_size > s->address)
            loads->items[loads->count++] =
                (struct core_load){s->address, s->address + s->memory_size, (s->flags & PF_X) != 0, 0};
    }
    if (loads->count)
        qsort(loads->items, loads->count, sizeof *loads->items, load_by_address);
    /* until here `executable` is 1 for an executable segment; now it becomes the number of executable ones before this segment, and
     * `before` the size of all segments before it: a subtraction then counts those of a range. The last item gets the totals. */
    for (size_t i = 0; loads->items && i <= loads->count; i++) {
        struct core_load *load = &loads->items[i];
        size_t is_executable = load->executable;
        load->executable = executable;
        load->before = before;
        executable += is_executable;
        before += load->end - load->begin;
    }
}

void core_list_mappings(struct core_reader *c)
{
    /* by the flags r = 4, w = 2, x = 1; `p` for private, as in /proc/self/maps */
    static const struct sl_str access[] = {SL_STR("---p"), SL_STR("--xp"), SL_STR("-w-p"), SL_STR("-wxp"),
                                           SL_STR("r--p"), SL_STR("r-xp"), SL_STR("rw-p"), SL_STR("rwxp")};
    struct sl_minidump *dump = &c->core->dump;
    /* + 1: NULL only when out of memory */
    dump->mappings = SL_ARENA_ARRAY(c->arena, struct sl_minidump_mapping, c->segment_count + 1);
    c->out_of_memory |= !dump->mappings;
    for (size_t i = 0; dump->mappings && i < c->segment_count; i++) {
        const struct core_segment *s = &c->segments[i];
        if (s->type == PT_LOAD && s->address + s->memory_size > s->address)
            dump->mappings[dump->mapping_count++] = (struct sl_minidump_mapping){
                s->address, s->address + s->memory_size, access[s->flags & (PF_R | PF_W | PF_X)], SL_STR("")};
    }
}

bool core_may_hold_code(const struct core_reader *c, uint64_t begin, uint64_t end)
{
    const struct core_load *items = c->loads.items;
    size_t first = SL_PARTITION_POINT(i, 0, c->loads.count, items[i].end <= begin);
    size_t beyond = SL_PARTITION_POINT(i, 0, c->loads.count, items[i].begin < end);
    /* no segment, or an executable one (`executable`: number of such segments before the item) */
    if (first >= beyond || items[beyond].executable > items[first].executable)
        return true;
    /* bytes of the range that segments cover: whole segments, without what lies outside of the range */
    uint64_t covered = items[beyond].before - items[first].before;
    covered -= items[first].begin < begin ? begin - items[first].begin : 0;
    covered -= items[beyond - 1].end > end ? items[beyond - 1].end - end : 0;
    return covered < end - begin;
}

uint64_t core_run_end(const struct core_reader *c, uint64_t address)
{
    const struct core_load *items = c->loads.items;
    size_t i = SL_COUNT_UP_TO(items, c->loads.count, begin, address);
    if (!i || items[i - 1].end <= address)
        return 0;
    while (i < c->loads.count && items[i].begin == items[i - 1].end)
        i++;
    return items[i - 1].end;
}

/* True if a segment of a file may be mapped at [begin, end): a segment of the core begins at `begin`, rounded down to a page of any of the
 * usual sizes. If the file's segment is code, it also ends at `end`, rounded up; data may be followed by other memory. Also true if no
 * segment of the core holds `begin`, so there is nothing to compare; else sets `*is_known`. */
static bool may_be_mapped_at(const struct core_reader *c, uint64_t begin, uint64_t end, bool is_code, bool *is_known)
{
    static const uint64_t pages[] = {1 << 12, 1 << 14, 1 << 16};
    const struct core_load *items = c->loads.items;
    size_t i = SL_COUNT_UP_TO(items, c->loads.count, begin, begin);
    if (!i || items[i - 1].end <= begin)
        return true;
    *is_known = true;
    for (size_t k = 0; k < sizeof pages / sizeof *pages; k++) {
        uint64_t mask = pages[k] - 1;
        if (items[i - 1].begin == (begin & ~mask) && (!is_code || items[i - 1].end == ((end + mask) & ~mask)))
            return true;
    }
    return false;
}

bool sl_elfcore_fits(struct sl_bytes bytes, uint64_t address, const struct sl_object *file)
{
    struct sl_arena arena = {0};
    struct sl_elfcore core;
    struct core_reader c = {.core = &core, .arena = &arena, .bytes = bytes};
    struct sl_segment segment;
    bool is_known = false, fits = core_open(&c, NULL) == SL_OK;
    if (fits)
        core_list_loads(&c);
    fits = fits && !c.out_of_memory;
    for (size_t i = 0; fits && sl_object_segment(file, i, &segment); i++) {
        uint64_t begin = address + segment.address;
        fits = may_be_mapped_at(&c, begin, begin + segment.memory_size, segment.executable, &is_known);
    }
    sl_arena_free(&arena);
    return fits && is_known;
}
