/* `symloom addr2line`: what GNU's tool answers about ELF files, by its own rules (binutils 2.40), which the look-up that all other
 * answers come from does not know:
 *
 *     address ─┬─ line     the row of the unit's line program, of several at one address the last; with its discriminator
 *              ├─ function the smallest range of a function or inlined call around it, of equals the last; then its callers
 *              └─ name     the linkage name, else the symbol before the address in its section, with the FILE symbol before that
 *
 * Two answers of it are wrong by what the file says, and are not given: it takes the symbol before an address for its name however
 * far away, and calls an inlined call without linkage name, the first time it is met, by the symbol of the function around. */
#include "cli/lookup/gnu.h"
#include "cli/lookup/lookup.h"

#include <stdlib.h>

#include "base/grow.h"
#include "cli/split_files.h"
#include "dwarf/listing.h"

/* ---- units ---- */

struct gnu_row {
    uint64_t address;
    uint32_t file, line, discriminator;
    uint32_t op_index;
    bool is_end;
};

struct gnu_sequence {
    uint64_t low, high;
    uint32_t first, count, number; /* number: the later ones in the program have the smaller ones */
};

struct gnu_function {
    const struct sl_dwarf_function *entry;
    struct sl_str name;
    bool is_settled;    /* the name is a linkage name, or symbols were asked for it */
    uint64_t low, high; /* of all its ranges */
    uint64_t reach;     /* the highest end of those up to here in `by_low` */
    struct sl_dwarf_range *ranges;
    uint32_t range_count;
};

struct gnu_unit {
    struct sl_dwarf_unit listing;
    struct gnu_row *rows;
    struct gnu_sequence *sequences; /* by address, apart */
    struct gnu_function *functions; /* as in the listing */
    uint32_t *by_low;               /* functions with ranges, by their lowest address */
    size_t row_count, sequence_count, by_low_count;
    struct sl_str *paths; /* of its files, once they were asked for; data NULL: not yet */
    bool is_bad;          /* it has no lines, or cannot be read: GNU's tool leaves it out */
};

struct gnu_span {
    uint64_t begin, end, reach; /* reach: the highest end up to here */
    uint32_t unit;
};

/* Of the symbols of one address in a section the largest, of equals the first. */
struct gnu_symbol {
    uint64_t address, size;
    struct sl_str name, file; /* data NULL: none */
    uint32_t section;
};

struct gnu_tables {
    struct sl_arena arena;
    struct sl_purse purse;
    struct sl_object *object;
    struct split_files companions;
    struct sl_dwarf_listing *listing; /* NULL: the file has no DWARF */
    struct gnu_unit **units;          /* NULL: not read yet */
    struct gnu_span *spans;           /* by their begin */
    uint32_t *rangeless;              /* units whose code is where their functions and lines are */
    uint32_t *read;                   /* units that were, in that order */
    size_t unit_count, span_count, rangeless_count, read_count;
    struct gnu_symbol *symbols; /* by section and address */
    size_t symbol_count;
    const struct gnu_symbol *last; /* what was found last is found again as long as it covers the address */
    bool failed;
};

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* ---- lines ---- */

static bool sorts_after(const struct sl_dwarf_row *row, const struct gnu_row *other)
{
    return row->address > other->address || (row->address == other->address && row->op_index > other->op_index);
}

/* Adds a row to the open sequence, which is kept in order. False when the file's budget has no more. */
static bool gnu_add_row(struct gnu_tables *t, struct gnu_unit *u, struct gnu_sequence *s,
                        const struct sl_dwarf_row *row)
{
    struct gnu_row *rows = u->rows + s->first, *last = s->count ? &rows[s->count - 1] : NULL;
    uint32_t at = s->count;
    struct gnu_row made = {row->address, row->file, row->line, row->discriminator, row->op_index, row->is_end};
    if (last && last->address == row->address && last->op_index == row->op_index && last->is_end == row->is_end) {
        *last = made;
        return true;
    }
    if (last && !row->is_end && !sorts_after(row, last))
        while (at && !sorts_after(row, &rows[at - 1]))
            at--;
    if (!sl_purse_spend(&t->purse, 1 + s->count - at))
        return false;
    memmove(rows + at + 1, rows + at, (s->count - at) * sizeof *rows);
    rows[at] = made;
    s->count++;
    u->row_count++;
    s->low = at == 0 ? row->address : s->low;
    return true;
}

static int gnu_by_address(const void *left, const void *right)
{
    const struct gnu_sequence *a = left, *b = right;
    if (a->low != b->low)
        return compare(a->low, b->low);
    return a->high != b->high ? compare(b->high, a->high) : compare(a->number, b->number);
}

/* Sequences within others are dropped, and what overlaps is cut off. */
static void separate(struct gnu_unit *u)
{
    size_t kept = 0;
    uint64_t high = 0;
    if (u->sequence_count)
        qsort(u->sequences, u->sequence_count, sizeof *u->sequences, gnu_by_address);
    for (size_t i = 0; i < u->sequence_count; i++) {
        struct gnu_sequence s = u->sequences[i];
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

static bool make_lines(struct gnu_tables *t, struct gnu_unit *u)
{
    const struct sl_dwarf_unit *listing = &u->listing;
    size_t ends = 1;
    for (size_t i = 0; i < listing->row_count; i++)
        ends += listing->rows[i].is_end;
    u->rows = SL_ARENA_ARRAY(&t->arena, struct gnu_row, listing->row_count + 1);
    u->sequences = SL_ARENA_ARRAY(&t->arena, struct gnu_sequence, ends);
    if (!u->rows || !u->sequences)
        return false;
    struct gnu_sequence *s = NULL;
    for (size_t i = 0; i < listing->row_count; i++) {
        if (!s) {
            s = &u->sequences[u->sequence_count];
            *s = (struct gnu_sequence){.first = (uint32_t)u->row_count,
                                       .number = UINT32_MAX - (uint32_t)u->sequence_count};
            u->sequence_count++;
        }
        if (!gnu_add_row(t, u, s, &listing->rows[i]))
            return false;
        s->high = u->rows[s->first + s->count - 1].address;
        s = listing->rows[i].is_end ? NULL : s;
    }
    separate(u);
    return true;
}

static const struct gnu_row *row_at(const struct gnu_unit *u, uint64_t address)
{
    size_t low = 0, high = u->sequence_count;
    while (low < high) { /* the first sequence that ends behind the address */
        size_t middle = low + (high - low) / 2;
        if (u->sequences[middle].high <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == u->sequence_count || address < u->sequences[low].low)
        return NULL;
    const struct gnu_row *rows = u->rows + u->sequences[low].first;
    size_t first = 0, end = u->sequences[low].count;
    while (first < end) { /* the first row behind it */
        size_t middle = first + (end - first) / 2;
        if (rows[middle].address <= address)
            first = middle + 1;
        else
            end = middle;
    }
    bool is_inside = first && first < u->sequences[low].count && !rows[first - 1].is_end;
    return is_inside ? &rows[first - 1] : NULL;
}

/* ---- functions ---- */

/* A range that touches one that is there already is joined to it: the tool looks at the first one, then at the others from the latest
 * on. False when the file's budget has no more. */
static bool add_range(struct gnu_tables *t, struct gnu_function *f, struct sl_dwarf_range range)
{
    if (range.begin == range.end)
        return true;
    if (!sl_purse_spend(&t->purse, 1 + f->range_count))
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

/* Languages whose names the linker sees as they are. */
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

static bool make_functions(struct gnu_tables *t, struct gnu_unit *u)
{
    const struct sl_dwarf_unit *listing = &u->listing;
    size_t count = listing->function_count;
    struct sl_dwarf_range *ranges = SL_ARENA_ARRAY(&t->arena, struct sl_dwarf_range, listing->range_count + 1);
    struct sl_ordered *order = calloc(2 * count + 1, sizeof *order);
    u->functions = sl_arena_zalloc(&t->arena, count + 1, sizeof *u->functions);
    u->by_low = SL_ARENA_ARRAY(&t->arena, uint32_t, count + 1);
    bool ok = ranges && order && u->functions && u->by_low;
    for (size_t i = 0; ok && i < count; i++) {
        struct gnu_function *f = &u->functions[i];
        f->entry = &listing->functions[i];
        f->name = f->entry->name;
        f->is_settled = f->entry->has_linkage_name || has_plain_names(listing->language);
        f->ranges = ranges + f->entry->first_range;
        for (uint32_t j = 0; ok && j < f->entry->range_count; j++)
            ok = add_range(t, f, listing->ranges[f->entry->first_range + j]);
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
        struct gnu_function *f = &u->functions[order[i].index];
        u->by_low[i] = order[i].index;
        f->reach = reach = f->high > reach ? f->high : reach;
    }
    free(order);
    return ok;
}

/* The one with the smallest range around the address, of equals the last. NULL when there is none. */
static struct gnu_function *gnu_function_at(struct gnu_unit *u, uint64_t address)
{
    struct gnu_function *best = NULL;
    uint64_t best_size = UINT64_MAX;
    size_t low = 0, high = u->by_low_count;
    while (low < high) { /* the first one that begins behind the address */
        size_t middle = low + (high - low) / 2;
        if (u->functions[u->by_low[middle]].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    while (low-- && u->functions[u->by_low[low]].reach > address) {
        struct gnu_function *f = &u->functions[u->by_low[low]];
        for (uint32_t i = 0; i < f->range_count; i++) {
            uint64_t size = f->ranges[i].end - f->ranges[i].begin;
            if (address - f->ranges[i].begin >= size || address < f->ranges[i].begin)
                continue;
            if (size < best_size || (size == best_size && f > best)) {
                best = f;
                best_size = size;
            }
        }
    }
    return best;
}

/* ---- the unit of an address ---- */

static struct gnu_unit *unit_read(struct gnu_tables *t, uint32_t number)
{
    struct gnu_unit *u = t->units[number];
    struct sl_error error;
    if (u)
        return u;
    u = sl_arena_zalloc(&t->arena, 1, sizeof *u);
    if (!u) {
        t->failed = true;
        return NULL;
    }
    enum sl_code code = sl_dwarf_listing_read(t->listing, number, &t->arena, &u->listing, &error);
    u->is_bad = code == SL_MALFORMED || !u->listing.line_version;
    bool ok = u->is_bad || code == SL_OK;
    if (ok && !u->is_bad) {
        u->paths = sl_arena_zalloc(&t->arena, u->listing.file_count + 1, sizeof *u->paths);
        ok = u->paths && make_lines(t, u) && make_functions(t, u);
    }
    t->failed = t->failed || !ok;
    if (ok)
        t->read[t->read_count++] = number;
    return t->units[number] = ok ? u : NULL;
}

static int by_begin(const void *left, const void *right)
{
    const struct gnu_span *a = left, *b = right;
    return a->begin != b->begin ? compare(a->begin, b->begin) : compare(a->unit, b->unit);
}

static bool index_units(struct gnu_tables *t)
{
    struct gnu_span *spans = NULL;
    size_t capacity = 0;
    t->unit_count = sl_dwarf_listing_count(t->listing);
    t->units = sl_arena_zalloc(&t->arena, t->unit_count + 1, sizeof *t->units);
    t->rangeless = SL_ARENA_ARRAY(&t->arena, uint32_t, t->unit_count + 1);
    t->read = SL_ARENA_ARRAY(&t->arena, uint32_t, t->unit_count + 1);
    bool ok = t->units && t->rangeless && t->read;
    for (size_t i = 0; ok && i < t->unit_count; i++) {
        const struct sl_dwarf_range *ranges;
        size_t count = sl_dwarf_listing_ranges(t->listing, i, &ranges);
        ok = sl_grow(&spans, &capacity, t->span_count + count + 1, sizeof *spans);
        for (size_t j = 0; ok && j < count; j++)
            spans[t->span_count++] = (struct gnu_span){ranges[j].begin, ranges[j].end, 0, (uint32_t)i};
        if (!count)
            t->rangeless[t->rangeless_count++] = (uint32_t)i;
    }
    if (ok && t->span_count)
        qsort(spans, t->span_count, sizeof *spans, by_begin);
    uint64_t reach = 0;
    for (size_t i = 0; ok && i < t->span_count; i++)
        spans[i].reach = reach = spans[i].end > reach ? spans[i].end : reach;
    t->spans = spans;
    return ok;
}

struct gnu_place {
    struct gnu_unit *unit;
    const struct gnu_row *row;     /* NULL: none */
    struct gnu_function *function; /* NULL: none */
};

static bool look_into(struct gnu_tables *t, uint32_t number, uint64_t address, struct gnu_place *place)
{
    struct gnu_unit *u = unit_read(t, number);
    if (!u || u->is_bad)
        return false;
    *place = (struct gnu_place){u, row_at(u, address), gnu_function_at(u, address)};
    return place->row || place->function;
}

/* Units say less than all that their lines and functions cover: of those that were read for other addresses, that counts too. */
static bool find_in_read_units(struct gnu_tables *t, uint64_t address, struct gnu_place *place)
{
    for (size_t i = 0; i < t->read_count; i++)
        if (look_into(t, t->read[i], address, place))
            return true;
    *place = (struct gnu_place){NULL, NULL, NULL};
    return false;
}

/* The first unit, in file order, that knows something of the address. */
static bool find_place(struct gnu_tables *t, uint64_t address, struct gnu_place *place)
{
    uint32_t next = 0;
    while (t->listing && !t->failed) {
        size_t low = 0, high = t->span_count, rangeless = 0;
        uint32_t number = UINT32_MAX;
        while (low < high) { /* the first span behind the address */
            size_t middle = low + (high - low) / 2;
            if (t->spans[middle].begin <= address)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low-- && t->spans[low].reach > address;)
            if (address < t->spans[low].end && t->spans[low].unit >= next && t->spans[low].unit < number)
                number = t->spans[low].unit;
        while (rangeless < t->rangeless_count && t->rangeless[rangeless] < next)
            rangeless++;
        if (rangeless < t->rangeless_count && t->rangeless[rangeless] < number)
            number = t->rangeless[rangeless];
        if (number == UINT32_MAX)
            break;
        if (look_into(t, number, address, place))
            return true;
        next = number + 1;
    }
    return find_in_read_units(t, address, place);
}

/* ---- symbols ---- */

static int by_section(const void *left, const void *right)
{
    const struct gnu_symbol *a = left, *b = right;
    return a->section != b->section ? compare(a->section, b->section) : compare(a->address, b->address);
}

/* A symbol is said to come from the FILE symbol before it; a global one only where no FILE symbol stands behind any other symbol. */
static bool index_symbols(struct gnu_tables *t)
{
    struct sl_table_symbol *all;
    size_t count, kept = 0;
    struct sl_str file = {NULL, 0};
    bool seen = false, apart = false; /* a symbol was; a FILE symbol behind one */
    if (sl_object_symbol_table(t->object, &t->arena, &all, &count, NULL) != SL_OK)
        return false;
    t->symbols = SL_ARENA_ARRAY(&t->arena, struct gnu_symbol, count + 1);
    struct sl_ordered *order = calloc(2 * count + 1, sizeof *order);
    struct gnu_symbol *list = calloc(count + 1, sizeof *list);
    bool ok = t->symbols && order && list;
    for (size_t i = 0; ok && i < count; i++) {
        const struct sl_table_symbol *s = &all[i];
        if (s->is_file) {
            file = s->name.data ? s->name : SL_STR("");
            apart = apart || seen;
            continue;
        }
        seen = true;
        bool is_mark = !s->size && s->is_local && s->is_untyped && s->is_hidden;
        if (!s->section || s->is_section || s->is_data || is_mark)
            continue;
        list[kept] = (struct gnu_symbol){s->address, s->size, s->name, {NULL, 0}, s->section};
        if (s->is_local || !apart)
            list[kept].file = file;
        order[kept] = (struct sl_ordered){s->address, 0, (uint32_t)kept};
        kept++;
    }
    if (ok && kept)
        sl_order(order, order + count, kept);
    for (size_t i = 0; ok && i < kept; i++) {
        const struct gnu_symbol *s = &list[order[i].index];
        struct gnu_symbol *same = NULL;
        for (size_t j = t->symbol_count; j-- && t->symbols[j].address == s->address && !same;)
            same = t->symbols[j].section == s->section ? &t->symbols[j] : NULL;
        if (!same)
            t->symbols[t->symbol_count++] = *s;
        else if ((s->size ? s->size : 1) > (same->size ? same->size : 1))
            *same = *s;
    }
    if (ok && t->symbol_count)
        qsort(t->symbols, t->symbol_count, sizeof *t->symbols, by_section);
    free(order);
    free(list);
    return ok;
}

/* Code is aligned to so many bytes at most: what is further behind a symbol than that is something else. */
enum { MOST_PADDING = 64 };

static bool reaches(const struct gnu_symbol *s, uint64_t address)
{
    return !s->size || address - s->address < s->size || address - s->address - s->size < MOST_PADDING;
}

/* The symbol at or before the address in the section. */
static const struct gnu_symbol *symbol_at(struct gnu_tables *t, uint32_t section, uint64_t address)
{
    const struct gnu_symbol *last = t->last;
    if (last && last->section == section && address - last->address < (last->size ? last->size : 1))
        return last;
    size_t low = 0, high = t->symbol_count;
    while (low < high) { /* the first one behind the address */
        size_t middle = low + (high - low) / 2;
        const struct gnu_symbol *s = &t->symbols[middle];
        if (s->section < section || (s->section == section && s->address <= address))
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low && t->symbols[low - 1].section == section;
    t->last = is_there ? &t->symbols[low - 1] : NULL;
    return is_there && reaches(t->last, address) ? t->last : NULL;
}

/* ---- answers ---- */

static bool is_absolute(struct sl_str path)
{
    return path.size && path.data[0] == '/';
}

static void add_directory(struct sl_buf *path, struct sl_str directory)
{
    if (!directory.data)
        return;
    sl_buf_str(path, directory);
    sl_buf_u8(path, '/');
}

/* The path of a file, of which only the compilation directory is left out where it is said twice. */
static struct sl_str gnu_path(struct gnu_tables *t, struct gnu_unit *u, uint32_t file)
{
    const struct sl_dwarf_unit *unit = &u->listing;
    const struct sl_str unknown = SL_STR("<unknown>");
    if (file >= unit->file_count || (file == 0 && unit->line_version < 5) || !unit->files[file].name.data)
        return unknown;
    if (u->paths[file].data)
        return u->paths[file];
    const struct sl_file *f = &unit->files[file];
    struct sl_str directory = f->directory;
    if (!directory.data && unit->line_version >= 5)
        directory = unit->directory;
    else if (unit->line_version < 5 && directory.data == unit->comp_dir.data)
        directory = (struct sl_str){NULL, 0};
    struct sl_buf path = {0};
    if (!is_absolute(f->name)) {
        if (!is_absolute(directory))
            add_directory(&path, unit->comp_dir);
        add_directory(&path, directory);
    }
    sl_buf_str(&path, f->name);
    const char *text = path.failed ? NULL : sl_arena_strndup(&t->arena, (const char *)path.data, path.size);
    u->paths[file] = (struct sl_str){text, text ? path.size : 0};
    sl_buf_free(&path);
    t->failed = t->failed || !text;
    return u->paths[file];
}

/* The name that symbols have for a function without linkage name; for one that is inlined, only if that begins where they say. */
static void name_by_symbol(struct gnu_tables *t, uint32_t section, uint64_t address, struct gnu_function *f,
                           struct gnu_element *e)
{
    const struct gnu_symbol *s = symbol_at(t, section, address);
    if (s && !e->file.data)
        e->file = s->file;
    if (!f || !f->entry->is_inlined)
        e->name = s ? s->name : e->name;
    if (f && s && !f->entry->is_inlined && s->address == f->ranges[0].begin)
        f->name = s->name;
    if (f)
        f->is_settled = true;
}

static uint32_t section_at(const struct gnu_tables *t, uint64_t address)
{
    struct sl_section_info section;
    for (uint32_t i = 0; sl_object_section_info(t->object, i, &section); i++)
        if (section.is_loaded && address >= section.address && address - section.address < section.size)
            return i;
    return 0;
}

static void add_callers(struct gnu_tables *t, const struct gnu_place *place, struct gnu_answer *answer)
{
    const struct gnu_function *f = place->function;
    for (; f && f->entry->is_inlined && f->entry->parent != SL_DWARF_NONE && answer->count < MAX_CHAIN;) {
        const struct gnu_function *caller = &place->unit->functions[f->entry->parent];
        struct gnu_element *e = &answer->elements[answer->count++];
        *e = (struct gnu_element){.name = caller->name, .line = f->entry->call_line};
        if (f->entry->call_file != SL_DWARF_NONE)
            e->file = gnu_path(t, place->unit, f->entry->call_file);
        f = caller;
    }
}

bool gnu_look_up(struct gnu_tables *t, uint64_t address, bool inlines, struct gnu_answer *answer)
{
    struct gnu_place place;
    struct gnu_element *e = &answer->elements[0];
    uint32_t section = section_at(t, address);
    answer->count = 0;
    answer->discriminator = 0;
    if (!section)
        return true;
    bool found = find_place(t, address, &place);
    *e = (struct gnu_element){.line = 0};
    if (place.row) {
        e->file = gnu_path(t, place.unit, place.row->file);
        e->line = place.row->line;
        answer->discriminator = place.row->discriminator;
    }
    if (place.function)
        e->name = place.function->name;
    if (!place.function || !place.function->is_settled)
        name_by_symbol(t, section, address, place.function, e);
    answer->count = found || e->name.data;
    if (inlines && answer->count)
        add_callers(t, &place, answer);
    return !t->failed;
}

/* ---- opening ---- */

static struct gnu_tables *tables_new(struct lookup_module *m)
{
    struct gnu_tables *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->object = input_debug(&m->input);
    t->arena.budget = t->purse.budget = sl_object_budget(t->object);
    sl_budget_grow(t->arena.budget, sl_object_file(t->object).size);
    split_files_open(&m->input, &t->companions);
    t->listing = sl_dwarf_listing_new(t->object, &t->companions.companions);
    t->failed = !index_symbols(t) || (t->listing && !index_units(t));
    return t;
}

struct gnu_tables *gnu_tables_of(struct lookup_module *m)
{
    const struct sl_object_info *info = m->input.object ? sl_object_info(input_debug(&m->input)) : NULL;
    if (!info || info->format != SL_FORMAT_ELF || info->kind == SL_KIND_REL)
        return NULL;
    if (!m->gnu)
        m->gnu = tables_new(m);
    return m->gnu && !m->gnu->failed ? m->gnu : NULL;
}

void gnu_tables_free(struct gnu_tables *t)
{
    if (!t)
        return;
    sl_dwarf_listing_free(t->listing);
    split_files_close(&t->companions, 0, "");
    free(t->spans);
    sl_arena_free(&t->arena);
    free(t);
}
