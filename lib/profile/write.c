/* Writes profiles: copies the text and replaces the columns that names change. */
#include "profile/impl.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/order.h"

struct edit { /* replaces `size` bytes of the text at `at` */
    size_t at, size;
    size_t begin, end; /* the replacement: range in `new_text` */
};

struct profile_writer {
    const struct sl_profile *profile;
    const struct sl_profile_name *names;
    struct sl_arena arena;      /* for one frame table at a time */
    struct sl_arena pool_arena; /* for `pools`: several frame tables may use the same strings */
    struct profile_pool *pools; /* per scope (a thread, or the shared tables): its strings; `scope` NULL = not opened */
    struct edit *edits;
    size_t edit_count, edit_capacity;
    struct sl_buf new_text;
    struct sl_error *error;
    bool has_uneven_columns; /* columns of a table differ in length: the profile is malformed */
};

/* ---- edits ---- */

/* Begins to replace `size` bytes at `at`: what is appended to `new_text` up to edit_end() replaces them. Sets new_text.failed when out of
 * memory. */
static void edit_begin(struct profile_writer *w, const char *at, size_t size)
{
    if (!sl_grow(&w->edits, &w->edit_capacity, w->edit_count + 1, sizeof *w->edits)) {
        w->new_text.failed = true;
        return;
    }
    /* the range in `new_text` is empty until edit_end() sets its end */
    w->edits[w->edit_count++] =
        (struct edit){(size_t)(at - w->profile->text.data), size, w->new_text.size, w->new_text.size};
}

static void edit_end(struct profile_writer *w)
{
    if (!w->new_text.failed)
        w->edits[w->edit_count - 1].end = w->new_text.size;
}

/* Replaces `old`, a part of the profile's text, by the number. */
static void edit_number(struct profile_writer *w, struct sl_str old, uint64_t number)
{
    edit_begin(w, old.data, old.size);
    sl_buf_decimal(&w->new_text, number);
    edit_end(w);
}

SL_ORDER_BY(edits_in_order, struct edit, at)

/* ---- cells ---- */

/* Writes a comma unless the cell is the first one of its column. */
static void put_comma(struct profile_writer *w)
{
    if (w->new_text.size && w->new_text.data[w->new_text.size - 1] != '[')
        sl_buf_u8(&w->new_text, ',');
}

/* Writes a number of a column; PROFILE_NONE becomes null. */
static void put_cell_number(struct profile_writer *w, uint32_t number)
{
    put_comma(w);
    if (number == PROFILE_NONE) {
        sl_buf_str(&w->new_text, SL_STR("null"));
        return;
    }
    sl_buf_decimal(&w->new_text, number);
}

static void put_cell(struct profile_writer *w, struct sl_str cell)
{
    put_comma(w);
    sl_buf_str(&w->new_text, cell);
}

/* ---- tables ---- */

struct table_writer {
    struct profile_writer *w;
    const struct profile_naming *n;
    /* for the stack table */
    struct profile_column frame, prefix;
    uint32_t *first; /* per old row: its new row, which rows of inlined calls follow; one more element at the end */
};

/* Writes all cells of the column `name`, without the brackets; `old` reads its cells in the profile. */
typedef void put_column(struct table_writer *t, struct sl_str name, struct sl_json *old);

/* Returns the number of cells of a column; SIZE_MAX if it is not an array. */
static size_t count_cells(struct sl_str column, struct sl_arena *arena)
{
    struct sl_json j = sl_json(column, arena, false);
    struct sl_str key;
    size_t count = 0;
    if (!sl_json_array(&j))
        return SIZE_MAX;
    for (; sl_json_next(&j, &key); count++)
        sl_json_skip(&j);
    return count;
}

/* Rewrites each column of a table with `put`, which writes its cells, and the member `length`: `rows` rows become `new_rows`. Other members
 * that are not arrays are not changed. At a column that does not have `rows` cells, sets has_uneven_columns and stops. */
static void edit_table(struct table_writer *t, struct sl_str table, size_t rows, size_t new_rows, put_column *put)
{
    struct profile_writer *w = t->w;
    struct sl_json j = sl_json(table, &w->arena, false);
    struct sl_str key, value;
    if (!sl_json_object(&j))
        return;
    while (sl_json_next(&j, &key) && sl_json_value(&j, &value)) {
        size_t count = count_cells(value, &w->arena);
        if (sl_str_equal(key, SL_STR("length")))
            edit_number(w, value, new_rows);
        if (count == SIZE_MAX)
            continue;
        if (count != rows) {
            w->has_uneven_columns = true;
            return;
        }
        struct sl_json old = sl_json(value, &w->arena, false);
        edit_begin(w, value.data, value.size);
        sl_buf_u8(&w->new_text, '[');
        put(t, key, &old);
        sl_buf_u8(&w->new_text, ']');
        edit_end(w);
    }
    w->new_text.failed |= j.failed;
}

/* ---- frames ---- */

/* Writes a column of the frame table: first the old rows, with new values where names were found; then, for each frame i in turn, the rows
 * of the calls inlined into it, n->frames[more[i] .. more[i + 1]). Such a row repeats the cell of frame i unless the column is one of
 * function, symbol, line, column and depth: `again` reads the old cells a second time for this. */
static void put_frames(struct table_writer *t, struct sl_str name, struct sl_json *old)
{
    const struct profile_naming *n = t->n;
    bool is_func = sl_str_equal(name, SL_STR("func")), is_symbol = sl_str_equal(name, SL_STR("nativeSymbol"));
    bool is_line = sl_str_equal(name, SL_STR("line")), is_depth = sl_str_equal(name, SL_STR("inlineDepth"));
    bool is_column = sl_str_equal(name, SL_STR("column"));
    struct sl_json again = *old;
    struct sl_str key, cell;
    sl_json_array(old);
    for (size_t i = 0; sl_json_next(old, &key) && sl_json_value(old, &cell); i++) {
        bool named = n->symbol[i] != PROFILE_NONE;
        if (named && (is_func || is_symbol))
            put_cell_number(t->w, is_func ? n->func[i] : n->symbol[i]);
        else if (named && is_line)
            put_cell_number(t->w, n->line[i] ? n->line[i] : PROFILE_NONE);
        else
            put_cell(t->w, cell);
    }
    sl_json_array(&again);
    for (size_t i = 0; sl_json_next(&again, &key) && sl_json_value(&again, &cell); i++)
        for (size_t k = n->more[i]; k < n->more[i + 1]; k++) {
            const struct new_frame *frame = &n->frames[k];
            if (is_func || is_symbol || is_depth)
                put_cell_number(t->w, is_func ? frame->func : is_symbol ? n->symbol[i] : frame->depth);
            else if (is_line || is_column)
                put_cell_number(t->w, is_line && frame->line ? frame->line : PROFILE_NONE);
            else
                put_cell(t->w, cell);
        }
}

/* ---- functions, symbols, files ---- */

/* Writes a column of the function table: rows that now describe another function (`reused`) get its name and file; new functions follow.
 * They are native: columns about JavaScript are false. Other columns, such as line and column, are null. */
static void put_funcs(struct table_writer *t, struct sl_str name, struct sl_json *old)
{
    const struct profile_naming *n = t->n;
    bool is_name = sl_str_equal(name, SL_STR("name")), is_resource = sl_str_equal(name, SL_STR("resource"));
    bool is_file = sl_str_equal(name, n->has_sources ? SL_STR("source") : SL_STR("fileName"));
    bool is_bool = sl_str_equal(name, SL_STR("isJS")) || sl_str_equal(name, SL_STR("relevantForJS"));
    struct sl_str key, cell;
    sl_json_array(old);
    for (size_t i = 0; sl_json_next(old, &key) && sl_json_value(old, &cell); i++)
        if (n->reused[i] && (is_name || is_file))
            put_cell_number(t->w, is_name ? n->name[i] : n->file[i]);
        else
            put_cell(t->w, cell);
    for (size_t i = 0; i < n->func_count; i++) {
        const struct new_func *func = &n->funcs[i];
        if (is_bool)
            put_cell(t->w, SL_STR("false"));
        else
            put_cell_number(t->w, is_name       ? func->name
                                  : is_resource ? func->resource
                                  : is_file     ? func->file
                                                : PROFILE_NONE);
    }
}

/* Writes the old cells of a column unchanged. */
static void put_old(struct table_writer *t, struct sl_json *old)
{
    struct sl_str key, cell;
    sl_json_array(old);
    while (sl_json_next(old, &key) && sl_json_value(old, &cell))
        put_cell(t->w, cell);
}

/* Writes a column of the table of native symbols: the old rows, then new symbols. */
static void put_symbols(struct table_writer *t, struct sl_str name, struct sl_json *old)
{
    const struct profile_naming *n = t->n;
    bool is_lib = sl_str_equal(name, SL_STR("libIndex")), is_name = sl_str_equal(name, SL_STR("name"));
    bool is_address = sl_str_equal(name, SL_STR("address"));
    put_old(t, old);
    for (size_t i = 0; i < n->new_symbol_count; i++) {
        const struct new_symbol *symbol = &n->symbols[i];
        if (is_address) {
            put_comma(t->w);
            sl_buf_decimal(&t->w->new_text, symbol->address);
        } else {
            put_cell_number(t->w, is_lib ? symbol->lib : is_name ? symbol->name : PROFILE_NONE);
        }
    }
}

/* Writes a column of the table of sources: the old rows, then the added files. Start line and column of a whole file are 1; other columns,
 * such as an id, are null. */
static void put_sources(struct table_writer *t, struct sl_str name, struct sl_json *old)
{
    const struct profile_pool *pool = t->n->pool;
    bool is_name = sl_str_equal(name, SL_STR("filename"));
    bool is_start = sl_str_equal(name, SL_STR("startLine")) || sl_str_equal(name, SL_STR("startColumn"));
    put_old(t, old);
    for (size_t i = 0; i < pool->added_sources; i++)
        put_cell_number(t->w, is_name ? pool->sources[i] : is_start ? 1 : PROFILE_NONE);
}

/* Appends the added strings to the list of strings, before its closing bracket. Each has a comma in front of it, which the first one of an
 * empty list must not have. */
static void edit_strings(struct profile_writer *w, const struct profile_pool *pool)
{
    struct sl_str strings = pool->scope->strings, added = sl_buf_view(&pool->added);
    size_t skip = count_cells(strings, &w->arena) ? 0 : 1;
    w->new_text.failed |= pool->added.failed;
    if (added.size <= skip)
        return;
    edit_begin(w, strings.data + strings.size - 1, 0);
    sl_buf_str(&w->new_text, (struct sl_str){added.data + skip, added.size - skip});
    edit_end(w);
}

/* ---- stacks ---- */

/* Writes a column of the stack table. Each old row i, now row t->first[i], is followed by rows for the calls inlined into its frame, from
 * the outside in, each with the row before it as prefix. A stack whose prefix was an old row gets the last of these rows, the innermost
 * call, as prefix. */
static void put_stacks(struct table_writer *t, struct sl_str name, struct sl_json *old)
{
    const struct profile_naming *n = t->n;
    bool is_frame = sl_str_equal(name, SL_STR("frame")), is_prefix = sl_str_equal(name, SL_STR("prefix"));
    struct sl_str key, cell;
    sl_json_array(old);
    for (size_t i = 0; sl_json_next(old, &key) && sl_json_value(old, &cell); i++) {
        uint32_t frame = t->frame.items[i], prefix = t->prefix.items[i], row = t->first[i];
        uint32_t inlined = t->first[i + 1] - row - 1;
        if (is_prefix)
            put_cell_number(t->w, prefix < t->frame.count ? t->first[prefix + 1] - 1 : PROFILE_NONE);
        else
            put_cell(t->w, cell);
        for (uint32_t k = 0; k < inlined; k++)
            if (is_prefix)
                put_cell_number(t->w, row + k);
            else if (is_frame) /* new frames are appended to the old ones */
                put_cell_number(t->w, (uint32_t)n->set->frame_count + n->more[frame] + k);
            else
                put_cell(t->w, cell);
    }
}

/* Reads the stack table and sets t->first, the new row of each stack: a row for each call that was inlined into the stack's frame follows.
 * SL_UNSUPPORTED if that makes too many rows. */
static enum sl_code number_stacks(struct table_writer *t)
{
    struct profile_writer *w = t->w;
    const struct profile_naming *n = t->n;
    struct sl_str frame, prefix;
    if (!profile_member(n->set->scope->stacks, &w->arena, "frame", &frame) ||
        !profile_member(n->set->scope->stacks, &w->arena, "prefix", &prefix) ||
        !profile_column_read(frame, &w->arena, &t->frame) || !profile_column_read(prefix, &w->arena, &t->prefix) ||
        !(t->first = SL_ARENA_ARRAY(&w->arena, uint32_t, t->frame.count + 1)))
        return sl_budget_fail(w->arena.budget, w->error);
    if (t->frame.count != t->prefix.count)
        return sl_fail(w->error, SL_MALFORMED, "the columns of the profile's stack table differ in length");
    uint64_t row = 0;
    for (size_t i = 0; i < t->frame.count; i++) {
        uint32_t at = t->frame.items[i];
        t->first[i] = (uint32_t)row;
        row += 1 + (at < n->set->frame_count ? n->more[at + 1] - n->more[at] : 0);
        if (row > profile_max_rows(t->frame.count))
            return sl_fail(w->error, SL_UNSUPPORTED, "too many inlined calls for the stacks of the profile");
    }
    t->first[t->frame.count] = (uint32_t)row;
    return SL_OK;
}

/* ---- tables that refer to stacks ---- */

/* Reads the member `stack` of a marker's cause, the row of a stack, and replaces it by the new row of the innermost inlined call. Returns
 * false to have a value that is not a number skipped. */
static bool edit_stack(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct table_writer *t = s->context;
    struct sl_str old;
    bool negative;
    uint64_t row;
    if (sl_json_peek(s->json) != SL_JSON_NUMBER)
        return false;
    if (sl_json_number(s->json, &old) && sl_json_integer(old, &negative, &row) && !negative && row < t->frame.count)
        edit_number(t->w, old, t->first[row + 1] - 1);
    return true;
}

/* Rewrites the column `stack` of a table, if it has one: each row of a stack becomes the new row of the innermost inlined call. */
static void put_stack_cells(struct table_writer *t, struct sl_str table)
{
    struct sl_str column, key, cell;
    struct profile_writer *w = t->w;
    bool good = profile_member(table, &w->arena, "stack", &column), negative;
    struct sl_json j = sl_json(column, &w->arena, false);
    uint64_t row;
    w->new_text.failed |= !good;
    if (!column.data || !sl_json_array(&j))
        return;
    edit_begin(w, column.data, column.size);
    sl_buf_u8(&w->new_text, '[');
    while (sl_json_next(&j, &key)) {
        bool is_number = sl_json_peek(&j) == SL_JSON_NUMBER;
        if (sl_json_value(&j, &cell) && is_number && sl_json_integer(cell, &negative, &row) && !negative &&
            row < t->frame.count)
            put_cell_number(w, t->first[row + 1] - 1);
        else
            put_cell(w, cell);
    }
    sl_buf_u8(&w->new_text, ']');
    edit_end(w);
}

/* Updates the stacks in the data of markers: {"cause": {"stack": 12, ...}, ...}. */
static void edit_markers(struct table_writer *t, struct sl_str markers)
{
    static const struct sl_field cause[] = {{SL_STR("stack"), SL_FIELD_CUSTOM, false, 0, edit_stack}, SL_FIELDS_END};
    static const struct sl_field marker[] = {SL_FIELD_SAME("cause", cause), SL_FIELDS_END};
    struct sl_str data, key;
    bool good = profile_member(markers, &t->w->arena, "data", &data);
    struct sl_json j = sl_json(data, &t->w->arena, false);
    struct sl_fields s = {.json = &j, .context = t, .quiet = true}; /* quiet: members of other types are no error */
    t->w->new_text.failed |= !good;
    if (data.data && sl_json_array(&j))
        while (sl_json_next(&j, &key))
            sl_fields_object(&s, NULL, marker, t);
}

/* Updates the tables that refer to rows of this stack table: those of its thread, or of all threads that use it if it is shared. */
static void edit_users(struct table_writer *t)
{
    const struct sl_profile *p = t->w->profile;
    for (size_t i = 0; i < p->scope_count; i++) {
        const struct profile_scope *scope = &p->scopes[i];
        if (scope->set != t->n->set)
            continue;
        put_stack_cells(t, scope->samples);
        put_stack_cells(t, scope->js_allocations);
        put_stack_cells(t, scope->native_allocations);
        edit_markers(t, scope->markers);
    }
}

/* ---- entry point ---- */

/* Names the frames of one frame table, and replaces the columns of all tables that change with it; nothing if no name was found. */
static enum sl_code edit_set(struct profile_writer *w, struct profile_naming *n)
{
    struct table_writer t = {.w = w, .n = n};
    const struct profile_scope *scope = n->set->scope;
    enum sl_code code = profile_name_frames(n, &w->arena, w->error);
    if (code == SL_OK && n->frame_count) /* frames were added, for inlined calls: stacks get more rows */
        code = number_stacks(&t);
    if (code != SL_OK ||
        !n->new_symbol_count) /* each named frame has a symbol, so without new ones nothing was named */
        return code;
    edit_table(&t, scope->frames, n->set->frame_count, n->set->frame_count + n->frame_count, put_frames);
    edit_table(&t, scope->funcs, n->set->func_count, n->set->func_count + n->func_count, put_funcs);
    edit_table(&t, scope->symbols, n->set->symbol_count, n->set->symbol_count + n->new_symbol_count, put_symbols);
    if (n->frame_count) {
        edit_table(&t, scope->stacks, t.frame.count, t.first[t.frame.count], put_stacks);
        edit_users(&t);
    }
    return SL_OK;
}

/* True if the object, JSON text, has a member `name`. Sets new_text.failed when out of memory. */
static bool has_member(struct profile_writer *w, struct sl_str object, const char *name)
{
    struct sl_str value;
    w->new_text.failed |= !profile_member(object, &w->arena, name, &value);
    return value.data != NULL;
}

/* Names the frames of all frame tables. The strings of a thread, or those that threads share, are read for the first frame table that uses
 * them. Ends at columns of uneven length, which apply_edits() then reports. */
static enum sl_code edit_sets(struct profile_writer *w)
{
    const struct sl_profile *p = w->profile;
    enum sl_code code = SL_OK;
    for (size_t i = 0; code == SL_OK && i < p->set_count && !w->has_uneven_columns; i++) {
        const struct profile_scope *scope = p->sets[i].scope->pool;
        struct profile_pool *pool = &w->pools[scope - p->scopes];
        struct profile_naming naming = {
            .profile = p, .names = w->names, .set = &p->sets[i], .pool = pool, .budget = w->new_text.budget};
        if (!pool->scope)
            code = profile_pool_open(scope, &w->pool_arena, pool, w->error);
        naming.has_sources = has_member(w, p->sets[i].scope->funcs, "source");
        if (code == SL_OK)
            code = edit_set(w, &naming);
        profile_naming_free(&naming);
        sl_arena_reset(&w->arena);
    }
    return code;
}

/* Adds new strings and source files to the profile. Several frame tables may have added to the same list, so call this after all of
 * them. */
static void edit_pools(struct profile_writer *w)
{
    for (size_t i = 0; i < w->profile->scope_count; i++) {
        struct profile_pool *pool = &w->pools[i];
        struct profile_naming naming = {.pool = pool}; /* put_sources() uses no more of it */
        struct table_writer t = {.w = w, .n = &naming};
        if (!pool->scope)
            continue;
        edit_strings(w, pool);
        if (pool->added_sources)
            edit_table(&t, pool->scope->sources, pool->source_count, pool->source_count + pool->added_sources,
                       put_sources);
    }
}

/* Sets the member `symbolicated` of the profile's `meta` to true, so that viewers do not request names. Adds it in front of the others if
 * it is missing. */
static void edit_meta(struct profile_writer *w)
{
    static const struct sl_str mark = SL_STR("\"symbolicated\":true");
    struct sl_str meta = w->profile->meta, value, key;
    struct sl_json j = sl_json(meta, &w->arena, false);
    w->new_text.failed |= !profile_member(meta, &w->arena, "symbolicated", &value);
    if (!sl_json_object(&j))
        return;
    edit_begin(w, value.data ? value.data : meta.data + 1, value.size); /* + 1: behind the opening brace */
    sl_buf_str(&w->new_text, value.data ? SL_STR("true") : mark);
    if (!value.data && sl_json_next(&j, &key))
        sl_buf_u8(&w->new_text, ',');
    edit_end(w);
}

/* Appends the text of the profile with its edits to `out`. Edits that overlap are an error: they occur only in malformed profiles. */
static enum sl_code apply_edits(struct profile_writer *w, struct sl_buf *out)
{
    struct sl_str text = w->profile->text, added = sl_buf_view(&w->new_text);
    size_t at = 0;
    if (w->has_uneven_columns)
        return sl_fail(w->error, SL_MALFORMED, "the columns of one of the profile's tables differ in length");
    if (w->new_text.failed)
        return sl_budget_fail(w->new_text.budget, w->error);
    qsort(w->edits, w->edit_count, sizeof *w->edits, edits_in_order);
    for (size_t i = 0; i < w->edit_count; i++) {
        const struct edit *edit = &w->edits[i];
        if (edit->at < at)
            return sl_fail(w->error, SL_MALFORMED, "two tables of the profile overlap in its text");
        sl_buf_str(out, (struct sl_str){text.data + at, edit->at - at});
        sl_buf_str(out, (struct sl_str){added.data + edit->begin, edit->end - edit->begin});
        at = edit->at + edit->size;
    }
    sl_buf_str(out, (struct sl_str){text.data + at, text.size - at});
    return out->failed ? sl_budget_fail(out->budget, w->error) : SL_OK;
}

enum sl_code sl_profile_write(const struct sl_profile *profile, const struct sl_profile_name *names, struct sl_buf *out,
                              struct sl_error *error)
{
    struct profile_writer w = {.profile = profile, .names = names, .error = error};
    w.arena.budget = w.pool_arena.budget = w.new_text.budget = out->budget;
    w.pools = calloc(profile->scope_count + 1, sizeof *w.pools);
    enum sl_code code = w.pools ? edit_sets(&w) : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && w.edit_count) /* without edits nothing was named */
        edit_pools(&w);
    if (code == SL_OK)
        edit_meta(&w);
    if (code == SL_OK)
        code = apply_edits(&w, out);
    for (size_t i = 0; w.pools && i < profile->scope_count; i++)
        profile_pool_free(&w.pools[i]);
    free(w.pools);
    free(w.edits);
    sl_buf_free(&w.new_text);
    sl_arena_free(&w.arena);
    sl_arena_free(&w.pool_arena);
    return code;
}
