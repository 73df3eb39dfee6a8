/* Writes unwind information as a CFI cache (cfi_format.h). The rules at each address are stored as one byte string, called a set; equal
 * sets are stored once, because nearly all addresses have the same few. */
#include "unwind/cfi_format.h"

#include "base/map.h"
#include "base/order.h"
#include "table/writer.h"
#include "unwind/impl.h"

#include <stdlib.h>

struct unwind_row {
    uint64_t address;
    uint32_t set; /* 1 + index in cfi_writer.sets; 0: no rules from here on */
    bool begins;  /* the first row of a range */
};

struct cached_range {
    uint64_t start, end;
    size_t row, row_count; /* its rows are cfi_writer.rows[row] and the following ones */
};

struct cfi_window { /* a STACK WIN record */
    struct sl_unwind_win win;
    uint32_t program; /* index in cfi_writer.programs */
    size_t order;     /* its place among the records of its type in the debug file */
};

struct windows {
    struct cfi_window *items;
    size_t count, capacity;
};

/* Deduplicated byte strings. */
struct interned {
    struct sl_map map;
    struct sl_str *items;
    size_t count, capacity;
};

struct cfi_writer {
    struct sl_unwind_sink sink;
    struct sl_object *object;
    struct sl_account account;
    struct sl_arena arena;          /* the interned strings */
    struct sl_buf set;              /* scratch for the bytes of a set */
    struct unwind_rules now;        /* the rules at the address being added */
    struct interned sets, programs; /* the rules at an address as bytes; programs of STACK WIN records */
    struct unwind_row *rows;        /* of all ranges, in the order of the debug file */
    struct unwind_row *sorted;      /* the rows of the cache, by address */
    size_t row_count, row_capacity, sorted_count;
    struct cached_range *ranges;
    size_t range_count, range_capacity;
    struct windows windows[2]; /* of type 0; of type 4 */
};

/* Sets and returns the error for a budget that is used up or, if it is not, for memory that is short. */
static enum sl_code cfi_writer_fail(struct cfi_writer *w, struct sl_error *error)
{
    return sl_budget_fail(w->account.budget, error);
}

/* Returns the index of `bytes` among the interned strings, adding them if they are new; UINT32_MAX when out of memory or budget. The map
 * stores the index plus 1, because NULL means that the bytes are not in it. */
static uint32_t intern(struct cfi_writer *w, struct interned *set, struct sl_str bytes)
{
    uintptr_t known = (uintptr_t)sl_map_get(&set->map, bytes);
    if (known)
        return (uint32_t)(known - 1);
    char *copy = sl_arena_strndup(&w->arena, bytes.data, bytes.size);
    if (!copy || set->count == UINT32_MAX - 1 ||
        !sl_account_grow(&w->account, &set->items, &set->capacity, set->count + 1, sizeof *set->items))
        return UINT32_MAX;
    struct sl_str kept = {copy, bytes.size};
    void **slot = sl_map_find_or_add(&set->map, kept, NULL);
    if (!slot)
        return UINT32_MAX;
    set->items[set->count++] = kept;
    *slot = (void *)(uintptr_t)set->count;
    return (uint32_t)(set->count - 1);
}

/* ---- sets of rules ---- */

static void put_cfi_bytes(struct sl_buf *out, struct sl_str bytes)
{
    sl_buf_uleb(out, bytes.size);
    sl_buf_str(out, bytes);
}

static void put_cfi_register(struct sl_buf *out, unsigned reg)
{
    sl_buf_uleb(out, reg == SL_UNWIND_CFA     ? CFI_REGISTER_CFA
                     : reg == SL_UNWIND_RA    ? CFI_REGISTER_RA
                     : reg == SL_UNWIND_NAMED ? CFI_REGISTER_NAMED
                                              : reg + CFI_REGISTER_FIRST);
}

/* Writes a rule: kind, register (or its name), then what the kind needs. sl_cfi_rule() is the reader. */
static void put_cfi_rule(struct sl_buf *out, const struct sl_unwind_rule *rule)
{
    sl_buf_u8(out, rule->kind);
    put_cfi_register(out, rule->reg);
    if (rule->reg == SL_UNWIND_NAMED)
        put_cfi_bytes(out, rule->name);
    switch ((enum sl_unwind_kind)rule->kind) {
    case SL_UNWIND_UNDEFINED:
    case SL_UNWIND_SAME: break;
    case SL_UNWIND_REGISTER: put_cfi_register(out, rule->base); break;
    case SL_UNWIND_OFFSET:
    case SL_UNWIND_MEMORY:
        put_cfi_register(out, rule->base);
        sl_buf_sleb(out, rule->offset);
        break;
    case SL_UNWIND_PROGRAM:
    case SL_UNWIND_EXPRESSION: put_cfi_bytes(out, rule->program); break;
    }
}

/* Encodes the rules w->now, with flags for their address, and returns their index in w->sets; UINT32_MAX when out of memory. */
static uint32_t intern_set(struct cfi_writer *w, bool signal_frame, bool not_in_text)
{
    struct sl_buf *set = &w->set;
    sl_buf_clear(set);
    sl_buf_u8(set, (uint8_t)((signal_frame ? CFI_SET_SIGNAL_FRAME : 0) | (not_in_text ? CFI_SET_BEYOND_TEXT : 0)));
    put_cfi_rule(set, &w->now.cfa);
    for (size_t i = 0; i < w->now.count; i++)
        put_cfi_rule(set, &w->now.slots[i].rule);
    return set->failed ? UINT32_MAX : intern(w, &w->sets, sl_buf_view(set));
}

/* Adds a row to the cache. `row` only has the changes since the previous row of its range; they are applied to w->now, and all rules in
 * w->now are stored. False when out of memory or budget. */
static bool add_cfi_row(struct cfi_writer *w, const struct sl_unwind_range *range, const struct sl_unwind_row *row)
{
    for (size_t i = 0; i < row->count; i++)
        rules_set(&w->now, &row->rules[i]);
    uint32_t set = intern_set(w, range->signal_frame, row->not_in_text);
    /* 4: the work of a row besides that of its rules */
    if (set == UINT32_MAX || !sl_account_spend(&w->account, 4 + count_steps(&w->now)) ||
        !sl_account_grow(&w->account, &w->rows, &w->row_capacity, w->row_count + 1, sizeof *w->rows))
        return false;
    /* set + 1, because 0 stands for no rules */
    w->rows[w->row_count++] =
        (struct unwind_row){.address = row->address, .set = set + 1, .begins = row == range->rows};
    return true;
}

/* True for an address with more bits than a column can have. */
static bool is_too_far(uint64_t end)
{
    return end >> SL_TABLE_MAX_WIDTH;
}

/* The callback sl_unwind_sink.range: adds a range. The range's rows only contain changes; in the cache each row gets all rules, so that a
 * look-up needs one row. A range at too high an address is counted in sink->skipped. Fails when out of memory or budget. */
static enum sl_code add_range(struct sl_unwind_sink *sink, const struct sl_unwind_range *range, struct sl_error *error)
{
    struct cfi_writer *w = (struct cfi_writer *)sink;
    if (is_too_far(range->start + range->size)) {
        sink->skipped++;
        return SL_OK;
    }
    struct cached_range kept = {
        .start = range->start, .end = range->start + range->size, .row = w->row_count, .row_count = range->row_count};
    rules_clear(&w->now);
    for (size_t i = 0; i < range->row_count; i++)
        if (!add_cfi_row(w, range, &range->rows[i]))
            return cfi_writer_fail(w, error);
    if (!sl_account_grow(&w->account, &w->ranges, &w->range_capacity, w->range_count + 1, sizeof *w->ranges))
        return cfi_writer_fail(w, error);
    w->ranges[w->range_count++] = kept;
    return SL_OK;
}

/* ---- STACK WIN ---- */

/* Handles a STACK WIN record that overlaps the last one in `known`: if it starts later, the last one is truncated. False if it starts no
 * later: then it must be dropped. True, without a change, if it does not overlap the last one. */
static bool repair(struct windows *known, const struct sl_unwind_win *win)
{
    struct sl_unwind_win *last = known->count ? &known->items[known->count - 1].win : NULL;
    if (!last || win->start >= last->start + last->size || last->start >= win->start + win->size)
        return true;
    if (win->start <= last->start)
        return false;
    last->size = win->start - last->start;
    return true;
}

/* The callback sl_unwind_sink.win: adds a STACK WIN record. Dropped are records of types other than 0 and 4, which nothing reads; of type 0
 * with a program, or of type 4 without one; and those that overlap the record before and do not start later. A record whose size is 0 or
 * whose address is too high is dropped and counted in sink->skipped. */
static enum sl_code add_win(struct sl_unwind_sink *sink, const struct sl_unwind_win *win, struct sl_error *error)
{
    struct cfi_writer *w = (struct cfi_writer *)sink;
    struct windows *known = &w->windows[win->type == 4];
    uint64_t end;
    if ((win->type != 0 && win->type != 4) || (win->type == 4) != win->has_program)
        return SL_OK;
    if (!win->size || __builtin_add_overflow(win->start, win->size, &end) || is_too_far(end)) {
        sink->skipped++;
        return SL_OK;
    }
    if (!repair(known, win))
        return SL_OK;
    uint32_t program = intern(w, &w->programs, win->program);
    if (program == UINT32_MAX || !sl_account_spend(&w->account, 4) || /* steps of work for a record */
        !sl_account_grow(&w->account, &known->items, &known->capacity, known->count + 1, sizeof *known->items))
        return cfi_writer_fail(w, error);
    /* `order`: records with equal starts will stay in the order of the debug file */
    known->items[known->count] = (struct cfi_window){.win = *win, .program = program, .order = known->count};
    known->count++;
    return SL_OK;
}

/* ---- order ---- */

/* Orders by start. Ranges with equal starts stay in the order of the debug file (`row` ascends in it), because the first one is used. */
SL_ORDER_BY(by_cfi_start, struct cached_range, start, row)

SL_ORDER_BY(by_window_start, struct cfi_window, win.start, order)

/* Charges n log n steps to the budget for sorting `count` items; false when it is used up. */
static bool spend_sort(struct cfi_writer *w, size_t count)
{
    return !count || sl_budget_spend(w->account.budget, count * (uint64_t)(64 - __builtin_clzll(count)));
}

/* Fills w->sorted with the rows of all ranges by address. A range that overlaps one with a lower start, or with the same start and earlier
 * in the debug file, is dropped. Where a range ends and no other begins there, adds a row without rules. False when out of memory or
 * budget. */
static bool sort_ranges(struct cfi_writer *w)
{
    bool sorted = true;
    uint64_t end = 0;
    for (size_t i = 1; i < w->range_count && sorted; i++)
        sorted = by_cfi_start(&w->ranges[i - 1], &w->ranges[i]) < 0;
    if (!sorted && !spend_sort(w, w->range_count))
        return false;
    if (!sorted)
        qsort(w->ranges, w->range_count, sizeof *w->ranges, by_cfi_start);
    /* + range_count: each range may need a row without rules at its end */
    w->sorted = sl_account_alloc(&w->account, w->row_count + w->range_count, sizeof *w->sorted);
    if (!w->sorted || w->row_count + w->range_count > UINT32_MAX)
        return false;
    for (size_t i = 0; i < w->range_count; i++) {
        const struct cached_range *r = &w->ranges[i];
        if (r->start < end) /* overlaps the last range that was kept */
            continue;
        if (w->sorted_count && r->start > end)
            w->sorted[w->sorted_count++] = (struct unwind_row){.address = end};
        memcpy(w->sorted + w->sorted_count, w->rows + r->row, r->row_count * sizeof *w->rows);
        w->sorted_count += r->row_count;
        end = r->end;
    }
    if (w->sorted_count)
        w->sorted[w->sorted_count++] = (struct unwind_row){.address = end};
    return true;
}

/* Sorts STACK WIN records by start and drops those that overlap an earlier one. Records that ascend already do not overlap, because
 * repair() has truncated them. False when the budget is used up. */
static bool sort_windows(struct cfi_writer *w, struct windows *windows)
{
    size_t kept = 0;
    bool sorted = true;
    for (size_t i = 1; i < windows->count && sorted; i++)
        sorted = windows->items[i - 1].win.start < windows->items[i].win.start;
    if (sorted)
        return true;
    if (!spend_sort(w, windows->count))
        return false;
    qsort(windows->items, windows->count, sizeof *windows->items, by_window_start);
    for (size_t i = 0; i < windows->count; i++) {
        const struct sl_unwind_win *last = kept ? &windows->items[kept - 1].win : NULL;
        if (!last || windows->items[i].win.start >= last->start + last->size)
            windows->items[kept++] = windows->items[i];
    }
    windows->count = kept;
    return true;
}

/* ---- the file ---- */

/* Callback sl_table_column_source.fill: fills the columns of the section ROWS for rows `from` to `from` + `count` - 1. */
static void fill_rows(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    const struct unwind_row *rows = (const struct unwind_row *)arg + from;
    for (uint32_t i = 0; i < count; i++) {
        values[CFI_ROW_ADDRESS][i] = rows[i].address;
        values[CFI_ROW_SET][i] = rows[i].set;
        values[CFI_ROW_BEGINS][i] = rows[i].begins;
    }
}

static void fill_numbers(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    const uint32_t *numbers = (const uint32_t *)arg + from;
    for (uint32_t i = 0; i < count; i++)
        values[0][i] = numbers[i];
}

static void write_interned(const void *arg, size_t unit, struct sl_buf *out)
{
    sl_buf_str(out, ((const struct interned *)arg)->items[unit]);
}

static bool add_interned(struct sl_table_writer *t, uint32_t id, const struct interned *set)
{
    struct sl_table_unit_source source = {.write = write_interned, .arg = set, .count = set->count, .per_chunk = 1024};
    return sl_table_add_units(t, id, id + 1, &source);
}

/* Writes the section BUCKETS: for each block of 2^shift addresses the number of rows before it, which narrows the search for an address.
 * The shift is chosen so that blocks have CFI_ROWS_PER_BUCKET rows on average. False when out of memory. */
static bool add_buckets(struct cfi_writer *w, struct sl_table_writer *t)
{
    uint64_t last = w->sorted_count ? w->sorted[w->sorted_count - 1].address : 0;
    unsigned shift = 0;
    while ((last >> shift) > w->sorted_count / CFI_ROWS_PER_BUCKET)
        shift++;
    /* one number for each bucket up to that of `last`, and one behind them, the end of the last bucket */
    uint32_t count = (uint32_t)(last >> shift) + 2, *before = sl_account_alloc(&w->account, count, sizeof *before);
    size_t row = 0;
    if (!before)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        while (row < w->sorted_count && w->sorted[row].address >> shift < i)
            row++;
        before[i] = (uint32_t)row;
    }
    struct sl_table_column_source source = {
        .fill = fill_numbers, .arg = before, .rows = count, .columns = 1, .max = {w->sorted_count}};
    bool ok = sl_table_add_columns(t, CFI_BUCKETS, &source);
    sl_table_put(t, CFI_AT_SHIFT, shift, 4);
    sl_account_free(&w->account, before, count, sizeof *before);
    return ok;
}

/* Writes the sections ROWS and BUCKETS. The columns are as wide as their largest values (source.max); the last row has the largest address.
 * False when out of memory. */
static bool add_rows(struct cfi_writer *w, struct sl_table_writer *t)
{
    struct sl_table_column_source source = {
        .fill = fill_rows, .arg = w->sorted, .rows = (uint32_t)w->sorted_count, .columns = CFI_ROW_COLUMNS};
    source.max[CFI_ROW_ADDRESS] = w->sorted_count ? w->sorted[w->sorted_count - 1].address : 0;
    source.max[CFI_ROW_SET] = w->sets.count;
    source.max[CFI_ROW_BEGINS] = 1;
    return sl_table_add_columns(t, CFI_ROWS, &source) && add_buckets(w, t);
}

/* Returns the STACK WIN record that is row `index` in the cache: first come all of type 0, then all of type 4. */
static const struct cfi_window *window_at(const struct cfi_writer *w, size_t index)
{
    size_t first = w->windows[0].count;
    return index < first ? &w->windows[0].items[index] : &w->windows[1].items[index - first];
}

static void window_values(const struct cfi_window *window, uint64_t values[CFI_WIN_COLUMNS])
{
    const struct sl_unwind_win *win = &window->win;
    const uint64_t all[CFI_WIN_COLUMNS] = {win->start,  win->size,  win->prolog, win->epilog,
                                           win->params, win->saved, win->locals, win->max_stack};
    memcpy(values, all, sizeof all);
}

/* Callback sl_table_column_source.fill: fills the columns of STACK WIN records [from, from + count); window_at() counts those of type 0
 * first, then those of type 4. */
static void fill_windows(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t row[CFI_WIN_COLUMNS];
        window_values(window_at(arg, from + i), row);
        for (size_t c = 0; c < CFI_WIN_COLUMNS; c++)
            values[c][i] = row[c];
    }
}

static void fill_programs(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    for (uint32_t i = 0; i < count; i++)
        values[0][i] = window_at(arg, from + i)->program;
}

/* Writes the STACK WIN records and their programs; a column is as wide as its largest value (windows.max). False when out of memory, or if
 * there are 2^32 records or more. */
static bool add_windows(struct cfi_writer *w, struct sl_table_writer *t)
{
    size_t count = w->windows[0].count + w->windows[1].count;
    struct sl_table_column_source windows = {
        .fill = fill_windows, .arg = w, .rows = (uint32_t)count, .columns = CFI_WIN_COLUMNS};
    struct sl_table_column_source programs = {
        .fill = fill_programs, .arg = w, .rows = (uint32_t)count, .columns = 1, .max = {w->programs.count}};
    if (count > UINT32_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        uint64_t row[CFI_WIN_COLUMNS];
        window_values(window_at(w, i), row);
        for (size_t c = 0; c < CFI_WIN_COLUMNS; c++)
            windows.max[c] = row[c] > windows.max[c] ? row[c] : windows.max[c];
    }
    return sl_table_add_columns(t, CFI_WINDOWS, &windows) && sl_table_add_columns(t, CFI_PROGRAM_IDS, &programs) &&
           add_interned(t, CFI_PROGRAMS, &w->programs);
}

/* Writes the header; the last argument of sl_table_put() is the size of a field in bytes. If the object is a PE file that names its PDB,
 * also writes the id and name of that PDB. */
static void put_cfi_header(const struct cfi_writer *w, struct sl_table_writer *t)
{
    const struct sl_object_info *info = sl_object_info(w->object);
    bool names_pdb = info->format == SL_FORMAT_PE && info->debug_file.size;
    sl_table_put(
        t, CFI_AT_FLAGS,
        (info->big_endian ? CFI_FLAG_BIG_ENDIAN : 0) | (names_pdb && info->debug_id.pdb20 ? CFI_FLAG_PDB20 : 0), 2);
    sl_table_put(t, CFI_AT_ARCH, info->arch, 2);
    if (names_pdb) {
        memcpy(t->file.data + CFI_AT_UUID, info->debug_id.uuid, sizeof info->debug_id.uuid);
        sl_table_put(t, CFI_AT_AGE, info->debug_id.age, 4);
        sl_table_section(t, CFI_MODULE);
        sl_buf_str(&t->file, info->debug_file);
    }
    sl_table_put(t, CFI_AT_ROWS, w->sorted_count, 4);
    sl_table_put(t, CFI_AT_SETS, w->sets.count, 4);
    sl_table_put(t, CFI_AT_WIN_0, w->windows[0].count, 4);
    sl_table_put(t, CFI_AT_WIN_4, w->windows[1].count, 4);
}

/* Sorts the collected ranges and records, and appends the file to `out`. Fails when out of memory or budget, or if the file would be too
 * large. */
static enum sl_code write_cfi(struct cfi_writer *w, const struct sl_parallel *parallel, struct sl_buf *out,
                              struct sl_error *error)
{
    struct sl_table_writer t;
    if (!sort_ranges(w) || !sort_windows(w, &w->windows[0]) || !sort_windows(w, &w->windows[1]) ||
        !sl_table_writer_init(&t, &cfi_format, parallel, w->account.budget))
        return cfi_writer_fail(w, error);
    if (add_rows(w, &t) && add_interned(&t, CFI_SETS, &w->sets) && add_windows(w, &t))
        put_cfi_header(w, &t);
    else
        t.file.failed = true; /* also for failures that the table writer does not know of: sl_table_finish() fails */
    return sl_table_finish(&t, out) ? SL_OK : cfi_writer_fail(w, error);
}

/* Frees the writer and all that it collected. */
static void free_cfi_writer(struct cfi_writer *w)
{
    sl_map_free(&w->sets.map);
    sl_map_free(&w->programs.map);
    free(w->sets.items);
    free(w->programs.items);
    free(w->rows);
    free(w->sorted);
    free(w->ranges);
    free(w->windows[0].items);
    free(w->windows[1].items);
    sl_account_release(&w->account);
    sl_buf_free(&w->set);
    sl_arena_free(&w->arena);
    free(w);
}

enum sl_code sl_cfi_convert(struct sl_object *object, const struct sl_parallel *parallel, struct sl_buf *out,
                            size_t *skipped, struct sl_error *error)
{
    struct sl_budget *budget = sl_object_budget(object);
    struct cfi_writer *w = calloc(1, sizeof *w);
    if (!w)
        return sl_fail(error, SL_BUSY, "out of memory");
    w->sink = (struct sl_unwind_sink){.range = add_range, .win = add_win};
    w->object = object;
    w->account.budget = w->arena.budget = w->set.budget = budget;
    w->sets.map.budget = w->programs.map.budget = budget;
    enum sl_code code = sl_unwind_read(object, &w->sink, error);
    /* An object without unwind information gives an empty cache. If a table is malformed, the rules that were read before the error are
     * kept, and the error is counted in `skipped`. */
    if (code == SL_NOT_FOUND || (code == SL_MALFORMED && !sl_budget_exhausted(budget))) {
        w->sink.skipped += code == SL_MALFORMED;
        code = SL_OK;
    }
    if (code == SL_OK)
        code = write_cfi(w, parallel, out, error);
    if (skipped)
        *skipped = w->sink.skipped;
    free_cfi_writer(w);
    return code;
}
