/* DWARF units as they are written, for tools (listing.h). */
#include "dwarf/impl.h"

#include <stdlib.h>

enum { STEPS_PER_ENTRY = 4 };

struct sl_dwarf_listing {
    struct dwarf_reader reader;
    struct dwarf_worker worker;
    struct row_list rows;
    struct sl_arena arena;
    struct sl_dwarf_function *functions; /* of the unit being read */
    struct sl_dwarf_range *ranges;
    uint32_t *open; /* by depth: the function there, or SL_DWARF_NONE */
    size_t function_count, function_capacity, range_count, range_capacity, open_capacity;
};

struct sl_dwarf_listing *sl_dwarf_listing_new(struct sl_object *object, const struct sl_companions *companions)
{
    struct sl_dwarf_listing *l = calloc(1, sizeof *l);
    size_t skipped = 0; /* units with a damaged header are not listed; their number is not needed */
    if (!l)
        return NULL;
    struct dwarf_reader *reader = &l->reader;
    l->arena.budget = l->worker.account.budget = sl_object_budget(object);
    reader->object = object;
    reader->budget = sl_object_budget(object);
    l->worker.row_list = &l->rows;
    dwarf_file_open(&reader->main, object, false); /* false: no .dwo file or package */
    bool ok = reader->main.info.size && dwarf_index_units(&reader->main, SIZE_MAX, &l->arena, &skipped);
    if (ok && companions && companions->dwz) {
        dwarf_file_open(&reader->sup, companions->dwz, false);
        dwarf_charge_to(reader, companions->dwz); /* its work counts in the object's budget */
        ok = dwarf_index_units(&reader->sup, SIZE_MAX, &l->arena, &skipped);
        reader->main.sup = &reader->sup;
    }
    if (ok)
        return l;
    sl_dwarf_listing_free(l);
    return NULL;
}

/* Frees the listing; NULL is allowed. */
void sl_dwarf_listing_free(struct sl_dwarf_listing *l)
{
    if (!l)
        return;
    free(l->rows.rows);
    free(l->functions);
    free(l->ranges);
    free(l->open);
    dwarf_worker_free(&l->worker);
    sl_arena_free(&l->arena);
    free(l);
}

size_t sl_dwarf_listing_count(const struct sl_dwarf_listing *l)
{
    return l->reader.main.unit_count;
}

/* Copies the `count` ranges of worker->ranges to the end of the listing's ranges, whose array is never NULL after that. False when out of
 * memory. */
static bool append_ranges(struct sl_dwarf_listing *l, size_t count)
{
    struct dwarf_worker *w = &l->worker;
    if (!sl_account_grow(&w->account, &l->ranges, &l->range_capacity, l->range_count + count + 1, sizeof *l->ranges))
        return false;
    for (size_t i = 0; i < count; i++)
        l->ranges[l->range_count++] = (struct sl_dwarf_range){w->ranges[i].begin, w->ranges[i].end};
    return true;
}

size_t sl_dwarf_listing_ranges(struct sl_dwarf_listing *l, size_t index, const struct sl_dwarf_range **ranges)
{
    struct dwarf_worker *w = &l->worker;
    const struct dwarf_unit_header *header = &l->reader.main.units[index];
    struct dwarf_unit unit;
    bool is_type = header->type == DW_UT_type || header->type == DW_UT_split_type; /* has no code */
    l->range_count = 0;
    if (is_type || !dwarf_unit_peek(w, &l->reader.main, header, &unit))
        return 0;
    struct attribute list = {.value = unit.ranges, .form = unit.ranges_form};
    struct attribute low = {.value = unit.low_pc, .form = unit.has_low_pc ? DW_FORM_addr : 0};
    struct attribute high = {.value = unit.high_pc, .form = unit.high_pc_form};
    append_ranges(l, dwarf_ranges(w, &unit, &list, &low, &high)); /* when out of memory there are no ranges */
    *ranges = l->ranges;
    return l->range_count;
}

/* Returns the number of the unit in the main file; SL_DWARF_NONE for units of the supplementary file. */
static uint32_t listing_unit_number(const struct sl_dwarf_listing *l, const struct dwarf_unit *unit)
{
    return unit->file == &l->reader.main ? (uint32_t)(unit->header - l->reader.main.units) : SL_DWARF_NONE;
}

/* Returns a file number; SL_DWARF_NONE if it needs more than 32 bits. */
static uint32_t file_number(const struct attribute *a)
{
    return a->value < UINT32_MAX ? (uint32_t)a->value : SL_DWARF_NONE;
}

/* Stores an attribute of the entry, or of its abstract origin or specification, unless a nearer entry set it already. A linkage name
 * replaces a short name. */
static void store_attribute(struct sl_dwarf_listing *l, const struct dwarf_unit *unit, uint16_t attribute,
                            const struct attribute *a, struct sl_dwarf_function *f)
{
    switch (attribute) {
    case DW_AT_name:
        if (!f->short_name.size)
            f->short_name = dwarf_text(&l->worker.account, unit, a);
        if (!f->has_linkage_name)
            f->name = f->short_name;
        break;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name:
        if (!f->has_linkage_name) {
            f->name = dwarf_linkage_name(&l->worker, unit, a);
            f->has_linkage_name = f->name.size > 0;
        }
        break;
    case DW_AT_decl_line:
        if (!f->decl_line)
            f->decl_line = a->value < UINT32_MAX ? (uint32_t)a->value : 0;
        break;
    case DW_AT_decl_file:
        if (f->decl_file == SL_DWARF_NONE) {
            f->decl_file = file_number(a);
            f->decl_file_in_abbrev = a->form == DW_FORM_implicit_const;
            f->decl_unit = listing_unit_number(l, unit);
        }
        break;
    }
}

/* Completes the function from its chain of abstract origins and specifications. A chain that cannot be read to its end, or has more than
 * MAX_REFERENCES links, leaves the rest unknown. */
static void complete_from_origin(struct sl_dwarf_listing *l, const struct dwarf_unit *from, struct reference reference,
                                 struct sl_dwarf_function *f)
{
    struct dwarf_worker *w = &l->worker;
    struct dwarf_unit copy;
    const struct dwarf_unit *unit = from;
    for (int hops = 0; hops < MAX_REFERENCES && reference.file; hops++) {
        const struct dwarf_unit *next = dwarf_find_unit(w, unit, reference);
        if (!next)
            return;
        if (next != unit) {
            copy = *next; /* its cache slot may be reused while the chain is followed */
            unit = &copy;
        }
        struct sl_reader r =
            sl_reader((struct sl_bytes){unit->file->info.data, (size_t)unit->header->end}, unit->file->big_endian);
        sl_reader_seek(&r, reference.offset);
        const struct abbrev *abbrev = abbrev_find(unit->abbrevs, dwarf_uleb(&r));
        if (!abbrev || r.failed || !sl_account_spend(&w->account, abbrev->step_count + STEPS_PER_ENTRY))
            return;
        struct attribute_walk walk = dwarf_attributes(unit, abbrev);
        struct attribute a;
        reference.file = NULL;
        for (const struct abbrev_step *step; (step = dwarf_next_attribute(&walk, &r, &a));)
            if (step->attribute == DW_AT_abstract_origin || step->attribute == DW_AT_specification)
                reference = dwarf_reference(unit, &a);
            else
                store_attribute(l, unit, step->attribute, &a, f);
    }
}

/* Reads the entry of a function or inlined call, and adds it with its ranges; `r` is past its abbreviation code. A number that does not fit
 * 32 bits counts as unknown (0). False if the entry cannot be read, or when out of memory or budget. */
static bool listing_read_function(struct sl_dwarf_listing *l, const struct dwarf_unit *unit,
                                  const struct abbrev *abbrev, struct sl_reader *r, size_t depth)
{
    struct dwarf_worker *w = &l->worker;
    struct attribute low = {0}, high = {0}, list = {0}, a;
    struct reference origin = {NULL, 0};
    struct sl_dwarf_function f = {.is_inlined = abbrev->kind == KIND_INLINED,
                                  .parent = SL_DWARF_NONE,
                                  .call_file = SL_DWARF_NONE,
                                  .decl_file = SL_DWARF_NONE,
                                  .decl_unit = SL_DWARF_NONE};
    struct attribute_walk walk = dwarf_attributes(unit, abbrev);
    for (const struct abbrev_step *step; (step = dwarf_next_attribute(&walk, r, &a));)
        switch (step->attribute) {
        case DW_AT_low_pc: low = a; break;
        case DW_AT_high_pc: high = a; break;
        case DW_AT_ranges: list = a; break;
        case DW_AT_call_file: f.call_file = file_number(&a); break;
        case DW_AT_call_line: f.call_line = a.value < UINT32_MAX ? (uint32_t)a.value : 0; break;
        case DW_AT_call_column: f.call_column = a.value < UINT32_MAX ? (uint32_t)a.value : 0; break;
        case DW_AT_GNU_discriminator: f.call_discriminator = a.value < UINT32_MAX ? (uint32_t)a.value : 0; break;
        case DW_AT_abstract_origin:
        case DW_AT_specification: origin = dwarf_reference(unit, &a); break;
        default: store_attribute(l, unit, step->attribute, &a, &f);
        }
    if (walk.failed || !sl_account_spend(&w->account, abbrev->step_count) ||
        !sl_account_grow(&w->account, &l->functions, &l->function_capacity, l->function_count + 1,
                         sizeof *l->functions))
        return false;
    size_t count = dwarf_ranges(w, unit, &list, &low, &high);
    if (!low.form || !dwarf_address(unit, &low, &f.low_pc))
        f.low_pc = UINT64_MAX;
    f.first_range = (uint32_t)l->range_count;
    f.range_count = (uint32_t)count;
    if (!append_ranges(l, count))
        return false;
    if (count) /* functions without code are never looked up, so they need no names */
        complete_from_origin(l, unit, origin, &f);
    /* entries that are no functions, such as blocks, lie between a call and its caller */
    for (size_t i = depth; f.is_inlined && i-- > 0 && f.parent == SL_DWARF_NONE;)
        f.parent = l->open[i];
    l->open[depth] = (uint32_t)l->function_count;
    l->functions[l->function_count++] = f;
    return true;
}

/* Reads all entries of the unit in order, and adds its functions and inlined calls to the listing. l->open[depth] is the function that was
 * opened at that depth, SL_DWARF_NONE for other entries. False if an entry cannot be read, when they are nested too deep, or when out of
 * memory or budget. */
static bool read_entries(struct sl_dwarf_listing *l, const struct dwarf_unit *unit)
{
    struct dwarf_worker *w = &l->worker;
    struct sl_reader r =
        sl_reader((struct sl_bytes){unit->file->info.data, (size_t)unit->header->end}, unit->file->big_endian);
    struct attribute a;
    sl_reader_seek(&r, unit->header->die);
    for (size_t depth = 0; r.at < r.end;) {
        uint64_t code = dwarf_uleb(&r);
        if (!code && depth) /* the end of a list of children; outside of the root 0 is padding */
            depth--;
        if (!code)
            continue;
        const struct abbrev *abbrev = abbrev_find(unit->abbrevs, code);
        if (r.failed || !abbrev || depth >= MAX_DIE_DEPTH || !sl_account_spend(&w->account, abbrev->step_count + 1) ||
            !sl_account_grow(&w->account, &l->open, &l->open_capacity, depth + 1, sizeof *l->open))
            return false;
        l->open[depth] = SL_DWARF_NONE;
        if (abbrev->kind == KIND_SUBPROGRAM || abbrev->kind == KIND_INLINED) {
            if (!listing_read_function(l, unit, abbrev, &r, depth))
                return false;
        } else {
            struct attribute_walk walk = dwarf_attributes(unit, abbrev);
            while (dwarf_next_attribute(&walk, &r, &a))
                continue;
            if (walk.failed)
                return false;
        }
        depth += abbrev->children;
    }
    return !w->account.failed;
}

/* Returns a copy in the arena, which is not NULL for an empty array: NULL means out of memory. */
static const void *copy_items(struct sl_arena *arena, const void *items, size_t count, size_t size)
{
    void *copy = sl_arena_zalloc(arena, count + 1, size);
    if (copy && count)
        memcpy(copy, items, count * size);
    return copy;
}

enum sl_code sl_dwarf_listing_read(struct sl_dwarf_listing *l, size_t index, struct sl_arena *arena,
                                   struct sl_dwarf_unit *out, struct sl_error *error)
{
    struct dwarf_worker *w = &l->worker;
    const struct dwarf_unit_header *header = &l->reader.main.units[index];
    struct dwarf_unit unit;
    *out = (struct sl_dwarf_unit){0};
    l->function_count = l->range_count = l->rows.count = 0;
    l->rows.version = 0;   /* stays 0 if the unit has no line table */
    if (w->account.failed) /* by an earlier call */
        return sl_budget_fail(l->reader.budget, error);
    if (!dwarf_unit_open(w, &l->reader.main, header, &unit))
        return sl_fail(error, SL_MALFORMED,
                       "the unit at 0x%llx of .debug_info has invalid abbreviations or an invalid first entry",
                       (unsigned long long)header->offset);
    dwarf_read_lines(w, &unit);
    w->pinned = unit.abbrevs; /* keeps the table in the cache while other units are opened for references */
    bool whole = read_entries(l, &unit);
    w->pinned = NULL;
    if (w->account.failed)
        return sl_budget_fail(l->reader.budget, error);
    *out = (struct sl_dwarf_unit){
        .functions = copy_items(arena, l->functions, l->function_count, sizeof *l->functions),
        .ranges = copy_items(arena, l->ranges, l->range_count, sizeof *l->ranges),
        .rows = copy_items(arena, l->rows.rows, l->rows.count, sizeof *l->rows.rows),
        .files = copy_items(arena, w->lines.files, w->lines.file_count, sizeof *w->lines.files),
        .function_count = l->function_count,
        .range_count = l->range_count,
        .row_count = l->rows.count,
        .file_count = w->lines.file_count,
        .name = unit.name,
        .comp_dir = unit.comp_dir,
        .directory = l->rows.directory,
        .line_version = l->rows.version,
        .language = unit.language_code,
    };
    if (!out->functions || !out->ranges || !out->rows || !out->files)
        return sl_fail(error, SL_BUSY, "out of memory");
    return whole ? SL_OK
                 : sl_fail(error, SL_MALFORMED, "some entries of the unit at 0x%llx of .debug_info cannot be read",
                           (unsigned long long)header->offset);
}
