/* Streams the functions of a Go program's line table (pclntab) in batches.
 *
 * A function has lists of values by code offset: line, number of the file, index of the inlined call (pcvalue tables). The caller of an
 * inlined call, and the location of the call, are the values at another offset of the function, go_call.call_offset. */
#include "go/impl.h"

#include "base/grow.h"
#include "function/assemble.h"
#include "base/search.h"

#include <stdlib.h>

/* KEPT_CALLS limits the memory for inlined calls of one function, whose indices a hostile file chooses. NONE: no value at that offset. */
enum { BATCH_FUNCTIONS = 1024, KEPT_CALLS = 1 << 16, STEPS_PER_VALUE = 8, NONE = -1 };

struct go_pc_value { /* valid from the end of the value before to `end`, an offset in the function */
    uint64_t end;
    int32_t value;
};

struct values {
    struct go_pc_value *items;
    size_t count, capacity;
};

struct go_inline_link { /* an inlined call, and its call site */
    struct sl_str name;
    uint32_t file, line;
    int32_t caller;   /* the call that contains it; NONE = the function itself */
    uint64_t version; /* go_reader.version of the function it was read for */
    bool good;
};

struct open_call {  /* an inlined call whose end has not been reached */
    int32_t index;  /* in the function's tree of inlined calls */
    uint64_t start; /* offset in the function */
};

struct go_reader {
    struct go_table table;
    struct sl_account account;
    struct sl_function_sink *sink;
    struct values lines, files, calls; /* of the current function */
    struct go_inline_link *links;      /* of the current function, by index */
    size_t link_capacity;
    uint64_t version;
    struct sl_line *rows;
    size_t row_count, row_capacity;
    struct sl_flat_inlinee *inlinees;
    size_t inlinee_count, inlinee_capacity;
    struct open_call open[SL_MAX_INLINE_DEPTH]; /* outermost first */
    size_t open_count;
    uint64_t open_end; /* offset in the function up to which the open calls are known to extend */
    struct sl_assembler assembler;
    /* the batch */
    struct sl_arena arena;
    struct sl_function functions[BATCH_FUNCTIONS];
    size_t function_count, delivered;
    struct sl_file *list;
    uint64_t *used;     /* indexes in table.cus (go_file_index) of the files in `list` */
    uint32_t *by_index; /* by index in table.cus: index in `list` + 1; 0 = not in the list */
    size_t file_count, file_capacity, used_capacity, index_count;
};

/* ---- values ---- */

/* Reads a list of values: pairs of the change of the value (zigzag) and the size of the code, in units of the quantum. A change of 0
 * ends the list, except as the first one. Functions may share lists, so each use is charged. True with an empty list if there is none
 * (offset 0); false if the list is damaged, or when out of memory or budget. */
static bool read_values(struct go_reader *g, uint32_t offset, struct values *v)
{
    struct sl_reader r = sl_reader(sl_bytes_from(g->table.values, offset), g->table.big_endian);
    uint64_t end = 0;
    int32_t value = NONE;
    v->count = 0;
    while (offset) {
        uint64_t change = sl_read_uleb(&r);
        if (r.failed || (!change && v->count))
            break;
        value = (int32_t)((uint32_t)value + (uint32_t)((change >> 1) ^ -(change & 1)));
        uint64_t size = sl_read_uleb(&r) * g->table.quantum;
        if (r.failed || size > UINT32_MAX || end + size > UINT32_MAX)
            return false;
        end += size;
        sl_account_spend(&g->account, STEPS_PER_VALUE); /* a used-up budget is recorded in the account */
        if (!sl_account_grow(&g->account, &v->items, &v->capacity, v->count + 1, sizeof *v->items))
            return false;
        v->items[v->count++] = (struct go_pc_value){end, value};
    }
    return !r.failed;
}

/* Returns the value at a code offset; NONE behind the end of the list. */
static int32_t value_at(const struct values *v, uint64_t offset)
{
    /* first value that ends after the offset */
    size_t low = SL_PARTITION_POINT(middle, 0, v->count, v->items[middle].end <= offset);
    return low < v->count ? v->items[low].value : NONE;
}

/* ---- files ---- */

/* Returns the index in the batch of the file with this number in the function; adds the file if it is new. SL_NO_FILE if it has no name or
 * the number is invalid, or when out of memory or budget (account.failed). */
static uint32_t batch_file_index(struct go_reader *g, const struct go_function *f, int32_t number)
{
    uint64_t index = go_file_index(f, number);
    if (number < 0 || index >= g->index_count)
        return SL_NO_FILE;
    if (g->by_index[index])
        return g->by_index[index] - 1;
    struct sl_str name = go_file_name(&g->table, index);
    if (!name.size || !sl_account_grow(&g->account, &g->list, &g->file_capacity, g->file_count + 1, sizeof *g->list) ||
        !sl_account_grow(&g->account, &g->used, &g->used_capacity, g->file_count + 1, sizeof *g->used))
        return SL_NO_FILE;
    g->list[g->file_count] = (struct sl_file){.name = name};
    g->used[g->file_count] = index;
    g->by_index[index] = (uint32_t)++g->file_count; /* the index in the batch + 1, since 0 = not in the batch */
    return g->by_index[index] - 1;
}

/* ---- inlined calls ---- */

/* Reads inlined call `index` of the function. Its call site is the line, file and enclosing call at code offset call.call_offset. False if
 * it cannot be read, or if it is damaged and names itself as its caller. */
static bool read_link(struct go_reader *g, const struct go_function *f, int32_t index, struct go_inline_link *link)
{
    struct go_call call;
    *link = (struct go_inline_link){.version = g->version, .caller = NONE};
    if (!go_call_read(&g->table, f, (uint32_t)index, &call))
        return false;
    int32_t line = value_at(&g->lines, call.call_offset);
    link->name = call.name;
    link->file = batch_file_index(g, f, value_at(&g->files, call.call_offset));
    link->line = line > 0 ? (uint32_t)line : 0;
    link->caller = value_at(&g->calls, call.call_offset);
    return link->good = link->caller != index;
}

/* Returns the call, read once per function: g->version tells calls of the current function from old ones, so the array need not be cleared.
 * NULL if it cannot be read, or when out of memory. */
static const struct go_inline_link *link_at(struct go_reader *g, const struct go_function *f, int32_t index)
{
    if (index < 0 || index >= KEPT_CALLS || g->account.failed ||
        ((size_t)index >= g->link_capacity &&
         !sl_grow_zeroed(&g->links, &g->link_capacity, (size_t)index + 1, sizeof *g->links)))
        return NULL;
    struct go_inline_link *link = &g->links[index];
    if (link->version != g->version) /* of an earlier function, or new (0) */
        read_link(g, f, index, link);
    return link->good ? link : NULL;
}

/* Fills `chain` with the inlined call `index` and the calls that enclose it, outermost first; returns their number, 0 if they cannot be
 * read or are too many. */
static size_t read_call_chain(struct go_reader *g, const struct go_function *f, int32_t index, int32_t *chain)
{
    size_t count = 0;
    while (index >= 0) {
        const struct go_inline_link *link = link_at(g, f, index);
        sl_account_spend(&g->account, 1); /* if the budget is used up, link_at() returns NULL from now on */
        if (!link || count == SL_MAX_INLINE_DEPTH)
            return 0;
        chain[count++] = index;
        index = link->caller;
    }
    for (size_t i = 0; i < count / 2; i++) {
        int32_t other = chain[i];
        chain[i] = chain[count - 1 - i];
        chain[count - 1 - i] = other;
    }
    return count;
}

/* Ends the open inlined calls deeper than `height` at g->open_end and adds them to g->inlinees. `entry` is the function's address. Sets
 * account.failed when out of memory or budget. */
static void close_calls(struct go_reader *g, uint64_t entry, size_t height)
{
    while (g->open_count > height) {
        const struct open_call *open = &g->open[--g->open_count];
        const struct go_inline_link *link = &g->links[open->index];
        if (!sl_account_grow(&g->account, &g->inlinees, &g->inlinee_capacity, g->inlinee_count + 1,
                             sizeof *g->inlinees))
            return;
        g->inlinees[g->inlinee_count++] = (struct sl_flat_inlinee){
            .address = entry + open->start,
            .size = g->open_end - open->start,
            .name = link->name,
            .language = SL_LANG_GO,
            .depth = (uint32_t)g->open_count,
            .call_file = link->file,
            .call_line = link->line,
        };
    }
}

/* Lists the inlined calls of the function at `entry`, whose code ends at offset `end`, in g->inlinees. The calls around adjacent code are
 * mostly the same, so only those that differ are closed and opened. */
static void read_calls(struct go_reader *g, const struct go_function *f, uint64_t entry, uint64_t end)
{
    int32_t chain[SL_MAX_INLINE_DEPTH];
    uint64_t start = 0;
    g->inlinee_count = g->open_count = 0;
    /* without the tree, names and callers of the calls are unknown */
    for (size_t i = 0; f->tree.size && i < g->calls.count && start < end && !g->account.failed; i++) {
        uint64_t stop = g->calls.items[i].end < end ? g->calls.items[i].end : end;
        size_t count = read_call_chain(g, f, g->calls.items[i].value, chain), same = 0;
        while (same < count && same < g->open_count && g->open[same].index == chain[same])
            same++;
        close_calls(g, entry, same);
        for (; same < count; same++)
            g->open[g->open_count++] = (struct open_call){chain[same], start};
        g->open_end = start = stop;
    }
    close_calls(g, entry, 0);
}

/* ---- functions ---- */

/* Merges the function's lists of lines and files into g->rows. Code with a line but behind the last file has no file. Sets account.failed
 * when out of memory or budget. */
static void read_rows(struct go_reader *g, const struct go_function *f, uint64_t entry)
{
    uint64_t at = 0;
    g->row_count = 0;
    for (size_t line = 0, file = 0; line < g->lines.count && !g->account.failed;) {
        uint64_t end = g->lines.items[line].end;
        bool has_file = file < g->files.count;
        uint64_t file_end = has_file ? g->files.items[file].end : end;
        uint64_t stop = file_end < end ? file_end : end;
        if (stop > at && g->lines.items[line].value > 0 &&
            sl_account_grow(&g->account, &g->rows, &g->row_capacity, g->row_count + 1, sizeof *g->rows))
            g->rows[g->row_count++] = (struct sl_line){
                entry + at, stop - at, has_file ? batch_file_index(g, f, g->files.items[file].value) : SL_NO_FILE,
                (uint32_t)g->lines.items[line].value};
        at = stop > at ? stop : at;
        line += stop == end; /* the item that ends first is done, or both */
        file += has_file && stop == file_end;
    }
}

/* Adds a function to the batch; one without code or name is left out. False if it is malformed, or when out of memory or budget
 * (account.failed). */
static bool read_function(struct go_reader *g, uint64_t index)
{
    struct go_function f;
    uint64_t load = sl_object_info(g->table.object)->load_address;
    g->version++; /* calls kept in g->links are of another function from now on */
    if (!go_function_read(&g->table, index, &f) || f.entry < load || !read_values(g, f.lines, &g->lines) ||
        !read_values(g, f.files, &g->files) || !read_values(g, f.calls, &g->calls))
        return false;
    uint64_t size = g->lines.count ? g->lines.items[g->lines.count - 1].end : 0, entry = f.entry - load;
    if (!size || !f.name.size || entry > UINT64_MAX - size)
        return true;
    read_rows(g, &f, entry);
    read_calls(g, &f, entry, size);
    struct sl_function *function = &g->functions[g->function_count++];
    *function = (struct sl_function){.address = entry, .size = size, .name = f.name, .language = SL_LANG_GO};
    g->account.failed = g->account.failed || !sl_assemble(&g->assembler, &g->arena, function, g->inlinees,
                                                          g->inlinee_count, g->rows, g->row_count);
    return true;
}

/* Passes the batch to the sink and starts a new one. Only entries of by_index that were used are cleared: a program has many files. */
static enum sl_code deliver(struct go_reader *g, struct sl_error *error)
{
    struct sl_function_batch batch = {
        .files = g->list,
        .file_count = g->file_count,
        .functions = g->functions,
        .function_count = g->function_count,
        .producer = SL_STR("Go"),
        .lasting = true, /* all texts are in the object's memory */
    };
    enum sl_code code = SL_OK;
    if (batch.function_count && g->sink->prepare)
        g->sink->prepare(g->sink, &batch, &g->arena, 0); /* 0: worker number of the only thread */
    if (batch.function_count)
        code = g->sink->consume(g->sink, &batch, error);
    for (size_t i = 0; i < g->file_count; i++)
        g->by_index[g->used[i]] = 0;
    g->delivered += g->function_count;
    g->function_count = g->file_count = 0;
    sl_arena_reset(&g->arena);
    return code;
}

/* Reads all functions in the order of the table. Malformed ones are counted in sink->skipped_units; SL_MALFORMED if there are such and no
 * function was read. */
static enum sl_code go_read_all(struct go_reader *g, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    size_t skipped = 0;
    g->index_count = g->table.cus.size / 4; /* a u32 for each file: the offset of its name */
    g->by_index = sl_account_alloc(&g->account, g->index_count + 1, sizeof *g->by_index);
    if (!g->by_index)
        return sl_budget_fail(g->account.budget, error);
    memset(g->by_index, 0, (g->index_count + 1) * sizeof *g->by_index);
    for (uint64_t i = 0; i < g->table.count && code == SL_OK; i++) {
        bool good = read_function(g, i);
        if (g->account.failed)
            return sl_budget_fail(g->account.budget, error);
        if (!good && !skipped++ && !g->sink->skipped_units)
            sl_fail(&g->sink->first_skipped, SL_MALFORMED, "function %llu of the Go line table: invalid record",
                    (unsigned long long)i);
        if (g->function_count == BATCH_FUNCTIONS)
            code = deliver(g, error);
    }
    g->sink->skipped_units += skipped;
    if (code == SL_OK)
        code = deliver(g, error);
    if (code == SL_OK && skipped && !g->delivered)
        code = sl_fail(error, SL_MALFORMED, "Go line table: no readable function");
    return code;
}

/* Frees the reader and its arrays; names are in the object's memory. */
static void go_reader_free(struct go_reader *g)
{
    sl_assembler_free(&g->assembler);
    sl_arena_free(&g->arena);
    free(g->lines.items);
    free(g->files.items);
    free(g->calls.items);
    free(g->links);
    free(g->rows);
    free(g->inlinees);
    free(g->list);
    free(g->used);
    free(g->by_index);
    sl_account_release(&g->account);
    free(g);
}

enum sl_code sl_go_read(struct sl_object *object, struct sl_function_sink *sink, struct sl_error *error)
{
    struct go_reader *g = calloc(1, sizeof *g);
    if (!g)
        return sl_fail(error, SL_BUSY, "out of memory");
    struct sl_budget *budget = sl_object_budget(object);
    g->account.budget = g->arena.budget = g->assembler.account.budget = budget;
    g->sink = sink;
    enum sl_code code = go_table_open(&g->table, object, &g->account, error);
    if (code == SL_OK)
        code = go_read_all(g, error);
    go_reader_free(g);
    return code;
}
