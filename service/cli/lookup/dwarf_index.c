/* `symloom lookup`: indexes the rows and functions of DWARF units, as the file has them, for the emulation of other tools; see
 * dwarf_index.h. */
#include "cli/lookup/dwarf_index.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/search.h"
#include "function/order.h"

/* ---- symbols ---- */

bool dwarf_index_sort_symbols(struct dwarf_index_symbol *symbols, size_t count, bool by_section)
{
    struct sl_ordered *order = calloc(2 * count + 1, sizeof *order); /* the second half is scratch memory of sl_order */
    struct dwarf_index_symbol *copy = calloc(count + 1, sizeof *copy);
    bool ok = order && copy;
    for (size_t i = 0; ok && i < count; i++) {
        order[i] = (struct sl_ordered){symbols[i].address, by_section ? symbols[i].section : 0, (uint32_t)i};
        copy[i] = symbols[i];
    }
    if (ok && count)
        sl_order(order, order + count, count);
    for (size_t i = 0; ok && i < count; i++)
        symbols[i] = copy[order[i].index];
    free(order);
    free(copy);
    return ok;
}

/* ---- lines ---- */

/* True if the row comes after the other one: by address, then by VLIW operation (DWARF 5, 6.2.2). */
static bool sorts_after(const struct sl_dwarf_row *row, const struct dwarf_index_row *other)
{
    return row->address > other->address || (row->address == other->address && row->op_index > other->op_index);
}

/* Inserts a row of the line program into its sequence (up to the next end row), sorted by address and operation (op_index,
 * of a VLIW instruction). False when the file's work budget is used up. */
static bool written_add_row(struct dwarf_unit_index *w, struct dwarf_index_unit *u, struct dwarf_index_sequence *s,
                            const struct sl_dwarf_row *row)
{
    struct dwarf_index_row *rows = u->rows + s->first, *last = s->count ? &rows[s->count - 1] : NULL;
    uint32_t at = s->count;
    struct dwarf_index_row added = {row->address,       row->file,     row->line,  row->column,
                                    row->discriminator, row->op_index, row->is_end};
    /* of several rows for one operation the last one counts */
    if (last && last->address == row->address && last->op_index == row->op_index && last->is_end == row->is_end) {
        *last = added;
        return true;
    }
    if (last && !row->is_end && !sorts_after(row, last)) /* an end row stays the last one */
        while (at && !sorts_after(row, &rows[at - 1]))
            at--;
    if (!sl_account_spend(&w->account, 1 + s->count - at))
        return false;
    memmove(rows + at + 1, rows + at, (s->count - at) * sizeof *rows);
    rows[at] = added;
    s->count++;
    u->row_count++;
    s->low = at == 0 ? row->address : s->low; /* it is the first row now */
    return true;
}

/* Orders sequences by their first address; of equal ones the longer comes first, then the one that is later in the line program (`number`
 * counts down). */
static int written_by_address(const void *left, const void *right)
{
    const struct dwarf_index_sequence *a = left, *b = right;
    if (a->low != b->low)
        return sl_compare_u64(a->low, b->low);
    return a->high != b->high ? sl_compare_u64(b->high, a->high) : sl_compare_u64(a->number, b->number);
}

/* Makes the sorted sequences of a unit disjoint: drops those inside another one, and lets others begin where the one before ends. */
static void make_disjoint(struct dwarf_index_unit *u)
{
    size_t kept = 0;
    uint64_t high = 0;
    if (u->sequence_count)
        qsort(u->sequences, u->sequence_count, sizeof *u->sequences, written_by_address);
    for (size_t i = 0; i < u->sequence_count; i++) {
        struct dwarf_index_sequence s = u->sequences[i];
        if (kept && s.low < high) {
            if (s.high <= high)
                continue;
            s.low = high;
        }
        high = s.high;
        u->sequences[kept++] = s;
    }
    u->sequence_count = kept;
}

/* Makes the sorted rows and sequences of a unit from its line program. False when memory or the file's work budget runs out. */
static bool make_lines(struct dwarf_unit_index *w, struct dwarf_index_unit *u)
{
    const struct sl_dwarf_unit *listing = &u->listing;
    size_t ends = 1; /* 1: rows after the last end row are a sequence, too */
    for (size_t i = 0; i < listing->row_count; i++)
        ends += listing->rows[i].is_end;
    u->rows = SL_ARENA_ARRAY(&w->arena, struct dwarf_index_row, listing->row_count + 1);
    u->sequences = SL_ARENA_ARRAY(&w->arena, struct dwarf_index_sequence, ends);
    if (!u->rows || !u->sequences)
        return false;
    struct dwarf_index_sequence *s = NULL;
    for (size_t i = 0; i < listing->row_count; i++) {
        if (!s) { /* the first row of a sequence */
            s = &u->sequences[u->sequence_count];
            /* `number` counts down, so that of sequences with the same addresses the later one is sorted first */
            *s = (struct dwarf_index_sequence){.first = (uint32_t)u->row_count,
                                               .number = UINT32_MAX - (uint32_t)u->sequence_count};
            u->sequence_count++;
        }
        if (!written_add_row(w, u, s, &listing->rows[i]))
            return false;
        s->high = u->rows[s->first + s->count - 1].address;
        s = listing->rows[i].is_end ? NULL : s;
    }
    make_disjoint(u);
    return true;
}

/* Returns the last row at or before the address, in the sequence that contains the address; NULL if none does. */
static const struct dwarf_index_row *row_at(const struct dwarf_index_unit *u, uint64_t address)
{
    size_t low = SL_COUNT_UP_TO(u->sequences, u->sequence_count, high, address); /* the sequence that ends after it */
    if (low == u->sequence_count || address < u->sequences[low].low)
        return NULL;
    const struct dwarf_index_row *rows = u->rows + u->sequences[low].first;
    size_t first = SL_COUNT_UP_TO(rows, u->sequences[low].count, address, address); /* the first row after it */
    /* the last row of a sequence only marks its end */
    bool is_inside = first && first < u->sequences[low].count && !rows[first - 1].is_end;
    return is_inside ? &rows[first - 1] : NULL;
}

/* ---- functions ---- */

/* Adds an address range to a function; joins it to the first adjacent range instead, if there is one, searching as GNU addr2line does: the
 * first range, then the others from the last to the second. False when the file's work budget is used up. */
static bool add_range(struct dwarf_unit_index *w, struct dwarf_index_function *f, struct sl_dwarf_range range)
{
    if (range.begin == range.end)
        return true;
    if (!sl_account_spend(&w->account, 1 + f->range_count))
        return false;
    for (uint32_t i = 0; i < f->range_count; i++) {
        struct sl_dwarf_range *known = &f->ranges[i ? f->range_count - i : 0];
        if (range.begin == known->end) {
            known->end = range.end;
            return true;
        }
        if (range.end == known->begin) {
            known->begin = range.begin;
            return true;
        }
    }
    f->ranges[f->range_count++] = range;
    return true;
}

/* True for the DW_LANG_* code of a language without name mangling: the name of a function is also that of its symbol. */
static bool has_plain_names(uint16_t language)
{
    enum {
        C89 = 1,
        C = 2,
        COBOL_74 = 5,
        COBOL_85 = 6,
        FORTRAN_77 = 7,
        PASCAL_83 = 9,
        C99 = 0xC,
        PLI = 0xF,
        UPC = 0x12,
        C11 = 0x1D
    };
    enum {
        MIPS_ASSEMBLER = 0x8001,
        UPC_EXTENSION = 0x8765,
        HP_BASIC = 0x8004,
        HP_IMACRO = 0x8006,
        HP_ASSEMBLER = 0x8007
    };
    switch (language) {
    case C89:
    case C:
    case COBOL_74:
    case COBOL_85:
    case FORTRAN_77:
    case PASCAL_83:
    case C99:
    case PLI:
    case UPC:
    case C11:
    case MIPS_ASSEMBLER:
    case UPC_EXTENSION:
    case HP_BASIC:
    case HP_IMACRO:
    case HP_ASSEMBLER: return true;
    default: return false;
    }
}

/* Makes the functions of a unit, and lists those with ranges by their lowest address (u->by_low). `reach` of a function is the highest end
 * of all functions in this list up to it, so that a search backwards knows when to stop. False when memory or the work budget runs out. */
static bool make_functions(struct dwarf_unit_index *w, struct dwarf_index_unit *u)
{
    const struct sl_dwarf_unit *listing = &u->listing;
    size_t count = listing->function_count;
    struct sl_dwarf_range *ranges = SL_ARENA_ARRAY(&w->arena, struct sl_dwarf_range, listing->range_count + 1);
    struct sl_ordered *order = calloc(2 * count + 1, sizeof *order); /* the second half is scratch memory of sl_order */
    u->functions = sl_arena_zalloc(&w->arena, count + 1, sizeof *u->functions);
    u->by_low = SL_ARENA_ARRAY(&w->arena, uint32_t, count + 1);
    bool ok = ranges && order && u->functions && u->by_low;
    for (size_t i = 0; ok && i < count; i++) {
        struct dwarf_index_function *f = &u->functions[i];
        f->entry = &listing->functions[i];
        f->name = f->entry->name;
        /* then the name is also that of the symbol, which need not be searched */
        f->is_settled = f->entry->has_linkage_name || has_plain_names(listing->language);
        f->ranges = ranges + f->entry->first_range;
        for (uint32_t j = 0; ok && j < f->entry->range_count; j++)
            ok = add_range(w, f, listing->ranges[f->entry->first_range + j]);
        for (uint32_t j = 0; j < f->range_count; j++) {
            f->low = !j || f->ranges[j].begin < f->low ? f->ranges[j].begin : f->low;
            f->high = f->ranges[j].end > f->high ? f->ranges[j].end : f->high;
        }
        if (f->range_count)
            order[u->by_low_count++] = (struct sl_ordered){f->low, 0, (uint32_t)i};
    }
    if (ok)
        sl_order(order, order + count, u->by_low_count);
    uint64_t reach = 0;
    for (size_t i = 0; ok && i < u->by_low_count; i++) {
        struct dwarf_index_function *f = &u->functions[order[i].index];
        u->by_low[i] = order[i].index;
        f->reach = reach = f->high > reach ? f->high : reach;
    }
    free(order);
    return ok;
}

/* Returns the function with the smallest range around the address, of equal ones the last; NULL when there is none. */
static struct dwarf_index_function *written_function_at(struct dwarf_index_unit *u, uint64_t address)
{
    struct dwarf_index_function *best = NULL;
    uint64_t best_size = UINT64_MAX;
    /* the first function that begins after the address */
    size_t low = SL_PARTITION_POINT(i, 0, u->by_low_count, u->functions[u->by_low[i]].low <= address);
    while (low-- && u->functions[u->by_low[low]].reach > address) {
        struct dwarf_index_function *f = &u->functions[u->by_low[low]];
        for (uint32_t i = 0; i < f->range_count; i++) {
            uint64_t size = f->ranges[i].end - f->ranges[i].begin;
            if (address - f->ranges[i].begin >= size || address < f->ranges[i].begin)
                continue;
            if (size < best_size || (size == best_size && f > best)) { /* f > best: it is later in the unit */
                best = f;
                best_size = size;
            }
        }
    }
    return best;
}

/* ---- the unit of an address ---- */

struct dwarf_index_unit *dwarf_index_read_unit(struct dwarf_unit_index *w, uint32_t number)
{
    struct dwarf_index_unit *u = w->units[number];
    struct sl_error error;
    if (u)
        return u;
    u = sl_arena_zalloc(&w->arena, 1, sizeof *u);
    if (!u) {
        w->failed = true;
        return NULL;
    }
    enum sl_code code = sl_dwarf_listing_read(w->listing, number, &w->arena, &u->listing, &error);
    u->is_bad = !u->listing.line_version; /* it has no line table that can be read */
    /* a damaged unit is no failure if it has no line table, which makes search_unit skip it, or if its functions could be read: then it is
     * used as far as it was read */
    bool ok = code == SL_OK || (code == SL_MALFORMED && (u->is_bad || u->listing.functions));
    if (ok && !u->is_bad) {
        u->paths = sl_arena_zalloc(&w->arena, u->listing.file_count + 1, sizeof *u->paths);
        ok = u->paths && make_lines(w, u) && make_functions(w, u);
    }
    w->failed = w->failed || !ok;
    if (ok)
        w->read[w->read_count++] = number;
    return w->units[number] = ok ? u : NULL;
}

/* Orders address ranges of units by their beginning, then by the number of the unit. */
static int by_begin(const void *left, const void *right)
{
    const struct dwarf_index_span *a = left, *b = right;
    return a->begin != b->begin ? sl_compare_u64(a->begin, b->begin) : sl_compare_u64(a->unit, b->unit);
}

/* Lists the address ranges of all units, sorted (w->spans); units without ranges are listed apart (w->rangeless), and searched for every
 * address. False when out of memory. */
static bool index_units(struct dwarf_unit_index *w)
{
    struct dwarf_index_span *spans = NULL;
    size_t capacity = 0;
    w->unit_count = sl_dwarf_listing_count(w->listing);
    w->units = sl_arena_zalloc(&w->arena, w->unit_count + 1, sizeof *w->units);
    w->rangeless = SL_ARENA_ARRAY(&w->arena, uint32_t, w->unit_count + 1);
    w->read = SL_ARENA_ARRAY(&w->arena, uint32_t, w->unit_count + 1);
    bool ok = w->units && w->rangeless && w->read;
    for (size_t i = 0; ok && i < w->unit_count; i++) {
        const struct sl_dwarf_range *ranges;
        size_t count = sl_dwarf_listing_ranges(w->listing, i, &ranges);
        ok = sl_grow(&spans, &capacity, w->span_count + count + 1, sizeof *spans);
        for (size_t j = 0; ok && j < count; j++)
            spans[w->span_count++] = (struct dwarf_index_span){ranges[j].begin, ranges[j].end, 0, (uint32_t)i};
        if (!count)
            w->rangeless[w->rangeless_count++] = (uint32_t)i;
    }
    if (ok && w->span_count)
        qsort(spans, w->span_count, sizeof *spans, by_begin);
    uint64_t reach = 0;
    for (size_t i = 0; ok && i < w->span_count; i++) /* highest end so far: where a search backwards stops */
        spans[i].reach = reach = spans[i].end > reach ? spans[i].end : reach;
    w->spans = spans;
    return ok;
}

/* Searches unit `number` for the address; reads the unit first if no earlier call did. True if it has a row or a function there. */
static bool search_unit(struct dwarf_unit_index *w, uint32_t number, uint64_t address,
                        struct dwarf_index_location *location)
{
    struct dwarf_index_unit *u = dwarf_index_read_unit(w, number);
    if (!u || u->is_bad)
        return false;
    *location = (struct dwarf_index_location){u, row_at(u, address), written_function_at(u, address)};
    return location->row || location->function;
}

/* Searches the units that were read for earlier addresses. Lines and functions of a unit may lie outside of the unit's ranges: then GNU
 * addr2line, too, finds them only after it has read the unit for another address. False if none has the address. */
static bool find_in_read_units(struct dwarf_unit_index *w, uint64_t address, struct dwarf_index_location *location)
{
    for (size_t i = 0; i < w->read_count; i++)
        if (search_unit(w, w->read[i], address, location))
            return true;
    *location = (struct dwarf_index_location){NULL, NULL, NULL};
    return false;
}

bool dwarf_index_find(struct dwarf_unit_index *w, uint64_t address, struct dwarf_index_location *location)
{
    uint32_t next = 0;
    /* tries the units that may have the address in file order; units before `next` were tried */
    while (w->listing && !w->failed) {
        size_t low = SL_COUNT_UP_TO(w->spans, w->span_count, begin, address); /* the first range behind it */
        size_t rangeless = 0;
        uint32_t number = UINT32_MAX;
        for (; low-- && w->spans[low].reach > address;)
            if (address < w->spans[low].end && w->spans[low].unit >= next && w->spans[low].unit < number)
                number = w->spans[low].unit;
        while (rangeless < w->rangeless_count && w->rangeless[rangeless] < next)
            rangeless++;
        if (rangeless < w->rangeless_count && w->rangeless[rangeless] < number)
            number = w->rangeless[rangeless];
        if (number == UINT32_MAX)
            break;
        if (search_unit(w, number, address, location))
            return true;
        next = number + 1;
    }
    return find_in_read_units(w, address, location);
}

/* ---- opening ---- */

/* Makes the index of a module; NULL when out of memory. The file's work budget grows by the file's size, because its units may be read a
 * second time. */
static struct dwarf_unit_index *written_new(struct lookup_module *m)
{
    struct dwarf_unit_index *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->object = input_debug(&m->input);
    w->arena.budget = w->account.budget = sl_object_budget(w->object);
    sl_budget_grow(w->arena.budget, sl_object_file(w->object).size);
    split_files_open(&m->input, &w->companions);
    w->listing = sl_dwarf_listing_new(w->object, &w->companions.companions);
    w->failed = w->listing && !index_units(w);
    return w;
}

struct dwarf_unit_index *dwarf_index_get(struct lookup_module *m)
{
    const struct sl_object_info *info = m->input.object ? sl_object_info(input_debug(&m->input)) : NULL;
    if (!info || info->format != SL_FORMAT_ELF)
        return NULL;
    if (!m->written)
        m->written = written_new(m);
    return m->written && !m->written->failed ? m->written : NULL;
}

void dwarf_index_free(struct dwarf_unit_index *w)
{
    if (!w)
        return;
    sl_dwarf_listing_free(w->listing);
    split_files_close(&w->companions, 0, ""); /* 0: without notes about missing split units */
    free(w->spans);
    sl_arena_free(&w->arena);
    free(w);
}
