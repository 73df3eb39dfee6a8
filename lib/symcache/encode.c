/* Writes the symcache file: the contents of its sections. */
#include "symcache/encoder.h"

#include <stdlib.h>

static void renumbering_free(struct renumbering *r)
{
    free(r->id);
    free(r->order);
}

/* ---- origins of source files ---- */

/* Returns the id of a text, plus one; 0 for an empty text. */
static uint32_t symcache_encode_text(struct encoder *e, struct sl_str text)
{
    return text.size ? symcache_intern(e->w, text) + 1 : 0;
}

/* Finds the origin of a source file, which tells where its text can be fetched; `*file` is the text of its path. False if it has none. If
 * the option map_line put the file in place of another, the path is followed by a NUL and the other's path: then `*file` is set to the path
 * alone, and path and revision of the other's origin are used, but not its URL, which leads to the text of the other. */
static bool encode_origin(struct encoder *e, uint32_t *file, struct sl_arena *arena, struct sl_file_origin *origin)
{
    struct sl_symcache_writer *w = e->w;
    struct sl_str path = w->texts[*file].str;
    const char *nul = w->keeps_sources ? memrchr(path.data, '\0', path.size) : NULL;
    if (nul) {
        struct sl_str from = {nul + 1, (size_t)(path.data + path.size - nul) - 1};
        *file = symcache_intern(w, (struct sl_str){path.data, (size_t)(nul - path.data)});
        path = from;
    }
    bool known = sl_object_file_origin(w->options.origins, path, arena, origin);
    if (known && nul)
        origin->url = (struct sl_str){NULL, 0};
    return known && (origin->path.size || origin->revision.size || origin->url.size);
}

/* Finds the origins (where to fetch the text) of the source files that contexts or entries use; debug information names many more. Sets
 * FLAG_ORIGINS if any has one. False when out of memory or budget. */
static bool collect_origins(struct encoder *e)
{
    struct sl_symcache_writer *w = e->w;
    struct sl_arena arena = {.budget = w->options.budget};
    bool any = false;
    if (!w->options.origins || !e->files.count)
        return true;
    e->origins = sl_account_alloc(&w->account, e->files.count, sizeof *e->origins);
    if (e->origins)
        memset(e->origins, 0, e->files.count * sizeof *e->origins);
    for (uint32_t i = 0; e->origins && i < e->files.count; i++) {
        struct sl_file_origin origin;
        if (!encode_origin(e, &w->files[e->files.order[i]], &arena, &origin))
            continue;
        e->origins[i] =
            (struct origin_row){symcache_encode_text(e, origin.path), symcache_encode_text(e, origin.revision),
                                symcache_encode_text(e, origin.url)};
        any = true;
    }
    sl_arena_free(&arena);
    /* sl_object_status(): memory ran out while the object looked for an origin */
    bool ok = e->origins && !w->account.failed && sl_object_status(w->options.origins, NULL) == SL_OK;
    if (any) {
        e->flags |= FLAG_ORIGINS;
    } else {
        sl_account_free(&w->account, e->origins, e->files.count, sizeof *e->origins);
        e->origins = NULL;
    }
    return ok;
}

/* Marks the texts of all origins in `used`, by their ids. In struct origin_row a text is its id plus one; 0 stands for none. */
static void use_origin_texts(const struct encoder *e, uint8_t *used)
{
    for (uint32_t i = 0; e->origins && i < e->files.count; i++) {
        const uint32_t texts[] = {e->origins[i].path, e->origins[i].revision, e->origins[i].url};
        for (size_t t = 0; t < 3; t++)
            if (texts[t])
                used[texts[t] - 1] = 1;
    }
}

/* Sorts the texts that functions, files, origins and variables use: sorted texts share prefixes, which are stored once. text_order[i]
 * becomes the id of the i-th of them, text_rank the reverse. False when out of memory. */
static bool sort_texts(struct encoder *e)
{
    struct sl_symcache_writer *w = e->w;
    struct sl_account *account = &w->account;
    size_t capacity = w->text_count + 1;
    uint8_t *used = sl_account_alloc(account, capacity, sizeof *used);
    e->text_order = sl_account_alloc(account, capacity, sizeof *e->text_order);
    e->text_rank = sl_account_alloc(account, capacity, sizeof *e->text_rank);
    bool ok = used && e->text_order && e->text_rank;
    if (used)
        memset(used, 0, capacity);
    for (uint32_t i = 0; ok && i < e->functions.count; i++)
        used[w->functions[e->functions.order[i]].name] = 1;
    for (uint32_t i = 0; ok && i < e->files.count; i++)
        used[w->files[e->files.order[i]]] = 1;
    if (ok)
        use_origin_texts(e, used);
    ok = ok && symcache_use_variables(e, used);
    if (ok) {
        e->text_count = symcache_sort_texts(w, used, e->text_order, e->text_rank);
        ok = e->text_count != SIZE_MAX;
    }
    sl_account_free(account, used, capacity, sizeof *used);
    return ok;
}

/* ---- sections ---- */

/* Fills the columns of contexts [from, from + count) of the file (sl_table_column_source), in the order of enum column: function, parent
 * plus one (0 = none), file plus one and line of the call, file plus one of the first line. */
static void fill_contexts(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    const struct encoder *e = arg;
    for (uint32_t i = 0; i < count; i++) {
        const struct context *c = &e->w->contexts[e->contexts.order[from + i]];
        values[0][i] = e->functions.id[c->function];
        values[1][i] = c->parent == NO_CONTEXT ? 0 : (uint64_t)e->contexts.id[c->parent] + 1;
        values[2][i] = file_plus_one(e, c->call_file);
        values[3][i] = c->call_line;
        values[4][i] = file_plus_one(e, c->file);
    }
}

/* Fills the columns of functions [from, from + count) of the file: name, entry plus one (0 = none, an inlined function), language and, if
 * the file has variables, the row of the first variable and their number. */
static void fill_functions(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    const struct encoder *e = arg;
    for (uint32_t i = 0; i < count; i++) {
        const struct function_row *f = &e->w->functions[e->functions.order[from + i]];
        values[0][i] = e->text_rank[f->name];
        values[1][i] = f->entry == UINT64_MAX ? 0 : f->entry + 1;
        values[2][i] = f->language;
    }
    for (uint32_t i = 0; e->flags & FLAG_VARIABLES && i < count; i++) {
        uint32_t list = e->w->functions[e->functions.order[from + i]].variables;
        const struct variable_rows rows = list ? e->variable_rows[list - 1] : (struct variable_rows){0, 0, false};
        values[3][i] = rows.first;
        values[4][i] = rows.count;
    }
}

/* Fills the columns of variables [from, from + count) of the file: name and type, as the positions of their texts in the sorted order. */
static void fill_variables(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    const struct encoder *e = arg;
    for (uint32_t i = 0; i < count; i++) {
        values[0][i] = e->variables[from + i].name;
        values[1][i] = e->variables[from + i].type;
    }
}

/* Fills the column of files [from, from + count) of the file: the rank of the path, its position among the sorted texts. */
static void fill_files(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    const struct encoder *e = arg;
    for (uint32_t i = 0; i < count; i++)
        values[0][i] = e->text_rank[e->w->files[e->files.order[from + i]]];
}

static uint64_t rank_plus_one(const struct encoder *e, uint32_t text_plus_one)
{
    return text_plus_one ? (uint64_t)e->text_rank[text_plus_one - 1] + 1 : 0;
}

/* Fills the columns of the origins of files [from, from + count) of the file: path, revision and URL, each as the rank of its text (the
 * position among the sorted texts) plus one; 0 = none. */
static void fill_origins(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    const struct encoder *e = arg;
    for (uint32_t i = 0; i < count; i++) {
        const struct origin_row *row = &e->origins[from + i];
        values[0][i] = rank_plus_one(e, row->path);
        values[1][i] = rank_plus_one(e, row->revision);
        values[2][i] = rank_plus_one(e, row->url);
    }
}

/* Returns a text by its position among the sorted texts. They are scattered in memory, so the next ones are prefetched. */
static struct sl_str sorted_text(const void *arg, size_t index)
{
    enum { AHEAD = 8 };
    const struct encoder *e = arg;
    if (index + 2 * AHEAD < e->text_count) {
        __builtin_prefetch(&e->w->texts[e->text_order[index + 2 * AHEAD]]);
        __builtin_prefetch(e->w->texts[e->text_order[index + AHEAD]].str.data);
    }
    return e->w->texts[e->text_order[index]].str;
}

/* Folds the operations of functions and symbols to entries of the address map, part by part, and encodes these. False when out of memory,
 * or when the section is larger than 4 GiB. */
static bool fold_all(struct encoder *e)
{
    struct symcache_folding *folding = symcache_fold(e->w);
    bool ok = folding != NULL;
    while (ok && !symcache_fold_ended(folding)) {
        const struct op *entries;
        size_t count;
        ok = symcache_fold_window(folding, &entries, &count) && symcache_encoder_add(e, entries, count);
    }
    symcache_folding_free(folding);
    return ok;
}

/* Writes the directory of the blocks, which was collected while they were encoded: their offsets, with the end of the last one, and the
 * address of the first entry of each, in 8 bytes if an address needs more than 32 bits, else in 4. */
static void write_directory(struct encoder *e)
{
    struct sl_buf *out = &e->table.file;
    uint32_t end = (uint32_t)(out->size - e->table.sections[0].offset); /* the first section is that of the blocks */
    sl_table_section(&e->table, SECTION_OFFSETS);
    for (size_t i = 0; i < e->block_count; i++)
        sl_buf_u32(out, e->offsets[i]);
    sl_buf_u32(out, end);
    sl_table_section(&e->table, SECTION_DIRECTORY);
    for (size_t i = 0; i < e->block_count; i++)
        if (e->flags & FLAG_WIDE)
            sl_buf_u64(out, e->starts[i]);
        else
            sl_buf_u32(out, (uint32_t)e->starts[i]);
}

/* ---- the file ---- */

/* Fills the fields of the header that the table writer does not know. All blocks but the last have BLOCK_ENTRIES entries. */
static void write_header(struct encoder *e)
{
    const struct sl_symcache_options *o = &e->w->options;
    struct sl_table_writer *t = &e->table;
    sl_table_put(t, AT_FLAGS, e->flags, 4);
    sl_table_put(t, AT_ARCH, o->arch, 4);
    sl_table_put(t, AT_AGE, o->debug_id.age, 4);
    memcpy(t->file.data + AT_UUID, o->debug_id.uuid, sizeof o->debug_id.uuid);
    sl_table_put(t, AT_IMAGE_SIZE, o->image_size, 8);
    sl_table_put(t, AT_LOAD_ADDRESS, o->load_address, 8);
    sl_table_put(t, AT_ENTRIES, e->block_count ? (e->block_count - 1) * BLOCK_ENTRIES + e->block.count : 0, 8);
    sl_table_put(t, AT_CONTEXTS, e->contexts.count, 8);
    sl_table_put(t, AT_FUNCTIONS, e->functions.count, 8);
    sl_table_put(t, AT_FILES, e->files.count, 8);
    sl_table_put(t, AT_STRINGS, e->text_count, 8);
    sl_table_put(t, AT_VARIABLES, e->variable_count, 8);
}

/* Writes all sections but the address map. The upper bound of the values of each column (`max`) gives its width. False when out of memory,
 * or if a section is too large. */
static bool write_tables(struct encoder *e)
{
    uint32_t functions = e->functions.count, files = e->files.count, contexts = e->contexts.count;
    uint64_t texts = e->text_count;
    struct sl_table_column_source context_rows = {.fill = fill_contexts,
                                                  .arg = e,
                                                  .rows = contexts,
                                                  .columns = 5,
                                                  .max = {functions, contexts, files, e->max_call_line, files}};
    struct sl_table_column_source function_rows = {
        .fill = fill_functions,
        .arg = e,
        .rows = functions,
        .columns = function_columns(e->flags),
        .max = {texts, e->max_entry, e->max_language, e->variable_count, e->max_variables}};
    struct sl_table_column_source file_rows = {
        .fill = fill_files, .arg = e, .rows = files, .columns = 1, .max = {texts}};
    struct sl_table_column_source variable_rows = {
        .fill = fill_variables, .arg = e, .rows = (uint32_t)e->variable_count, .columns = 2, .max = {texts, texts}};
    struct sl_table_column_source origin_rows = {
        .fill = fill_origins, .arg = e, .rows = files, .columns = 3, .max = {texts, texts, texts}};
    struct sl_table_string_source strings = {.get = sorted_text, .arg = e, .count = e->text_count};
    struct sl_table_writer *t = &e->table;
    if (!sl_table_add_columns(t, SECTION_CONTEXTS, &context_rows) ||
        !sl_table_add_columns(t, SECTION_FUNCTIONS, &function_rows) ||
        !sl_table_add_columns(t, SECTION_FILES, &file_rows) ||
        !sl_table_add_strings(t, SECTION_STRINGS, SECTION_GROUPS, &strings))
        return false;
    if (e->w->options.module_file.size) {
        sl_table_section(t, SECTION_MODULE);
        sl_buf_str(&t->file, e->w->options.module_file);
    }
    return (!e->origins || sl_table_add_columns(t, SECTION_ORIGINS, &origin_rows)) &&
           (!(e->flags & FLAG_VARIABLES) || sl_table_add_columns(t, SECTION_VARIABLES, &variable_rows));
}

/* Writes what follows the blocks, fills the header, and moves the complete file to `out`. False when out of memory, or if a section is too
 * large. */
static bool write_file(struct encoder *e, struct sl_buf *out)
{
    write_directory(e);
    if (!write_tables(e))
        return false;
    write_header(e);
    return sl_table_finish(&e->table, out);
}

struct encoder *symcache_encoder_new(struct sl_symcache_writer *w)
{
    struct encoder *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->w = w;
    const struct sl_table_format *format = w->options.variables ? &symcache_format : &symcache_plain_format;
    if (!sl_table_writer_init(&e->table, format, w->parallel, w->options.budget)) {
        free(e);
        return NULL;
    }
    sl_table_section(&e->table, SECTION_BLOCKS); /* entries are written as they come, so their section is the first */
    return e;
}

void symcache_encoder_free(struct encoder *e)
{
    if (!e)
        return;
    sl_buf_free(&e->table.file);
    free(e->offsets);
    free(e->starts);
    renumbering_free(&e->contexts);
    renumbering_free(&e->functions);
    renumbering_free(&e->files);
    free(e->origins);
    free(e->variable_rows);
    free(e->used_variables);
    free(e->variables);
    free(e->text_order);
    free(e->text_rank);
    free(e);
}

/* Encodes all sections and moves the file to `out`. The address map comes first, because its entries decide which functions, files and
 * texts are used. False when out of memory, or if a section is too large (table.too_large). */
static bool symcache_encode_encode(struct encoder *e, struct sl_buf *out)
{
    struct sl_symcache_writer *w = e->w;
    /* with `flow` functions came in address order and are encoded already, but for the last entries */
    bool ok = w->flow ? symcache_ordered_fold_end(w->flow, e) : fold_all(e);
    symcache_collectors_free(w->collectors, sl_parallel_workers(w->parallel)); /* frees the operations, too */
    w->collectors = NULL;
    e->flags |= e->block.address > UINT32_MAX ? FLAG_WIDE : 0; /* that of the last entry, the highest */
    e->flags |= w->sink.skipped_units || w->partial ? FLAG_PARTIAL : 0;
    e->flags |= w->sink.missing_units ? FLAG_LACKS_UNITS : 0;
    e->flags |= w->options.positions ? FLAG_POSITIONS : 0;
    return ok && collect_origins(e) && sort_texts(e) && symcache_write_variables(e) && write_file(e, out);
}

enum sl_code symcache_encode(struct sl_symcache_writer *w, struct sl_buf *out, struct sl_error *error)
{
    if (!w->encoder)
        w->encoder = symcache_encoder_new(w);
    if (w->encoder && symcache_encode_encode(w->encoder, out))
        return SL_OK;
    if (w->encoder && w->encoder->table.too_large)
        return sl_fail(error, SL_UNSUPPORTED, "a section of the symcache would be larger than 4 GiB");
    return sl_budget_fail(w->options.budget, error);
}
