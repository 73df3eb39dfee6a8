/* Address ranges of an entry (DWARF 5, 2.17, 7.25; .debug_ranges of versions 2 to 4). */
#include "dwarf/impl.h"
#include "base/search.h"

enum { STEPS_PER_RANGE = 24 };

struct dwarf_range_collector {
    struct dwarf_worker *w;
    size_t count;
    uint64_t dead;   /* addresses from here on are tombstones of dropped code */
    bool keeps_zero; /* address 0 may be live code */
};

/* Returns a collector that appends to the first `count` ranges of worker->ranges. */
static struct dwarf_range_collector make_collector(struct dwarf_worker *w, size_t count, const struct dwarf_unit *unit)
{
    const struct dwarf_file *file = unit->address_file;
    return (struct dwarf_range_collector){w, count, dwarf_dead(file, unit->header->address_size),
                                          dwarf_may_have_code_at_zero(file)};
}

/* Adds a range unless it is empty or of code that the linker dropped (a tombstone, or address 0). Lack of memory or budget is recorded in
 * the worker's account. */
static void dwarf_ranges_add(struct dwarf_range_collector *c, uint64_t begin, uint64_t end)
{
    if (begin >= end || begin >= c->dead || (begin == 0 && !c->keeps_zero))
        return;
    if (!sl_account_grow(&c->w->account, &c->w->ranges, &c->w->range_capacity, c->count + 1, sizeof *c->w->ranges))
        return;
    c->w->ranges[c->count++] = (struct dwarf_range){begin, end};
}

/* Adds a range relative to `base`. A tombstone as base makes all its ranges dead. */
static void add_offset_pair(struct dwarf_range_collector *c, uint64_t base, uint64_t begin, uint64_t end)
{
    if (base < c->dead && begin <= UINT64_MAX - base && end <= UINT64_MAX - base)
        dwarf_ranges_add(c, base + begin, base + end);
}

/* Charges the work for one entry of a list and its range. Entries may share lists, so each use is charged. False if the budget is used
 * up. */
static bool charge_entry(struct dwarf_range_collector *c)
{
    return sl_account_spend(&c->w->account, STEPS_PER_RANGE);
}

/* Reads a list of version 5 into the collector. Ends at an unknown kind of entry, whose operands are unknown, and at an index outside of
 * .debug_addr; the ranges before it are kept. A length that overflows makes an empty range. */
static void read_rnglist(struct dwarf_range_collector *c, const struct dwarf_unit *unit, uint64_t offset)
{
    const struct dwarf_file *file = unit->file;
    unsigned size = unit->header->address_size;
    struct sl_reader r = sl_reader(file->rnglists, file->big_endian);
    uint64_t base = unit->low_pc, begin, end;
    sl_reader_seek(&r, offset);
    while (!r.failed && charge_entry(c)) {
        switch (sl_read_u8(&r)) {
        case DW_RLE_end_of_list: return;
        case DW_RLE_base_addressx:
            if (!dwarf_indexed_address(unit, dwarf_uleb(&r), &base))
                return;
            break;
        case DW_RLE_startx_endx:
            if (!dwarf_indexed_address(unit, dwarf_uleb(&r), &begin) ||
                !dwarf_indexed_address(unit, dwarf_uleb(&r), &end))
                return;
            dwarf_ranges_add(c, begin, end);
            break;
        case DW_RLE_startx_length:
            if (!dwarf_indexed_address(unit, dwarf_uleb(&r), &begin))
                return;
            end = dwarf_uleb(&r);
            dwarf_ranges_add(c, begin, end > UINT64_MAX - begin ? begin : begin + end);
            break;
        case DW_RLE_offset_pair:
            begin = dwarf_uleb(&r);
            end = dwarf_uleb(&r);
            add_offset_pair(c, base, begin, end);
            break;
        case DW_RLE_base_address: base = sl_read_uint(&r, size); break;
        case DW_RLE_start_end:
            begin = sl_read_uint(&r, size);
            end = sl_read_uint(&r, size);
            dwarf_ranges_add(c, begin, end);
            break;
        case DW_RLE_start_length:
            begin = sl_read_uint(&r, size);
            end = dwarf_uleb(&r);
            dwarf_ranges_add(c, begin, end > UINT64_MAX - begin ? begin : begin + end);
            break;
        default: return;
        }
    }
}

/* Reads a list of versions 2 to 4: pairs relative to the base, which starts as the unit's low_pc; the largest address as `begin` sets
 * another base. */
static void read_ranges(struct dwarf_range_collector *c, const struct dwarf_unit *unit, uint64_t offset)
{
    const struct dwarf_file *file = unit->address_file;
    unsigned size = unit->header->address_size;
    uint64_t base = unit->low_pc;
    uint64_t last = size == MAX_ADDRESS_SIZE ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
    struct sl_reader r = sl_reader(file->ranges, file->big_endian);
    sl_reader_seek(&r, offset);
    for (;;) {
        uint64_t begin = sl_read_uint(&r, size), end = sl_read_uint(&r, size);
        if (r.failed || (begin == 0 && end == 0) || !charge_entry(c))
            return;
        if (begin == last)
            base = end;
        else if (begin < c->dead) /* not dropped code */
            add_offset_pair(c, base, begin, end);
    }
}

/* Reads the list that DW_AT_ranges refers to. The value is an offset from the start of the section, or, in split files of version 4, from
 * the skeleton's DW_AT_GNU_ranges_base. With DW_FORM_rnglistx it is an index into a table of offsets. */
static void read_range_list(struct dwarf_range_collector *c, const struct dwarf_unit *unit,
                            const struct attribute *ranges)
{
    uint64_t offset = ranges->value;
    if (unit->header->version < 5) {
        read_ranges(c, unit, offset + (unit->file->split ? unit->gnu_ranges_base : 0));
        return;
    }
    if (ranges->form == DW_FORM_rnglistx) {
        const struct dwarf_file *file = unit->file;
        if (!dwarf_table_at(file->rnglists, file->big_endian, unit->rnglists_base, offset, unit->header->offset_size,
                            &offset))
            return;
        offset += unit->rnglists_base;
    }
    read_rnglist(c, unit, offset);
}

size_t dwarf_ranges(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct attribute *ranges,
                    const struct attribute *low_pc, const struct attribute *high_pc)
{
    struct dwarf_range_collector c = make_collector(w, 0, unit); /* 0: replaces what is in worker->ranges */
    uint64_t begin, end;
    if (ranges->form)
        read_range_list(&c, unit, ranges);
    /* no list, or no live range in it */
    if (c.count == 0 && low_pc->form && high_pc->form && dwarf_address(unit, low_pc, &begin)) {
        begin &= ~unit->address_file->mode_bit;  /* the mark of Thumb and microMIPS code is no part of the address */
        if (!dwarf_address(unit, high_pc, &end)) /* high_pc is a size */
            end = high_pc->value > UINT64_MAX - begin ? begin : begin + high_pc->value;
        dwarf_ranges_add(&c, begin, end);
    }
    return c.count;
}

size_t dwarf_ranges_with_lines(struct dwarf_worker *w, size_t count)
{
    const struct dwarf_line_table *t = &w->lines;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        /* first sequence that begins after the range's start */
        size_t low = SL_PARTITION_POINT(middle, 0, t->sequence_count, t->sequences[middle].start <= w->ranges[i].begin);
        /* all are kept if the unit has no lines at all */
        if (!t->sequence_count || (low && w->ranges[i].begin < t->sequences[low - 1].end))
            w->ranges[kept++] = w->ranges[i];
    }
    return kept;
}

/* Appends the ranges of one set of .debug_aranges, up to the pair of zeros that ends it. */
static void read_aranges(struct dwarf_range_collector *c, const struct dwarf_file *file, const struct aranges_set *set)
{
    struct sl_reader r = sl_reader((struct sl_bytes){file->aranges.data, (size_t)set->end}, file->big_endian);
    sl_reader_seek(&r, set->begin);
    for (;;) {
        uint64_t begin = sl_read_uint(&r, set->address_size), length = sl_read_uint(&r, set->address_size);
        if (r.failed || (begin == 0 && length == 0) || !charge_entry(c))
            return;
        if (length <= UINT64_MAX - begin)
            dwarf_ranges_add(c, begin, begin + length);
    }
}

size_t dwarf_unit_ranges(struct dwarf_worker *w, const struct dwarf_unit *unit)
{
    struct attribute ranges = {.value = unit->ranges, .form = unit->ranges_form};
    struct attribute low = {.value = unit->low_pc, .form = unit->has_low_pc ? DW_FORM_addr : 0};
    struct attribute high = {.value = unit->high_pc, .form = unit->high_pc_form};
    size_t own = dwarf_ranges(w, unit, &ranges, &low, &high), sets;
    struct dwarf_range_collector c = make_collector(w, own, unit); /* appends behind the `own` ranges */
    const struct aranges_set *set = dwarf_find_aranges(unit, &sets);
    for (size_t i = 0; i < sets; i++)
        read_aranges(&c, unit->file, &set[i]);
    return c.count;
}
