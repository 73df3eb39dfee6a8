/* Writing the file: ids in order of first use, columns packed to the width they need, texts front-coded. */
#include "symcache/encoder.h"

#include "base/map.h"

#include <stdlib.h>

static void renumbering_free(struct renumbering *r)
{
    free(r->id);
    free(r->order);
}

/* ---- where files are kept ---- */

static uint32_t text_of(struct encoder *e, struct sl_str text)
{
    return text.size ? symcache_intern(e->w, text) + 1 : 0;
}

/* Of a mapped file, what version control has is that of the file it was mapped from; the text behind a link is another. */
static bool origin_of(struct encoder *e, uint32_t *file, struct sl_arena *arena, struct sl_file_origin *origin)
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

/* Only the files that something refers to are asked for: they are few of those that debug information names. */
static bool collect_origins(struct encoder *e)
{
    struct sl_symcache_writer *w = e->w;
    struct sl_arena arena = {.budget = w->options.budget};
    bool any = false;
    if (!w->options.origins || !e->files.count)
        return true;
    e->origins = sl_alloc_held(&w->holding, e->files.count, sizeof *e->origins);
    if (e->origins)
        memset(e->origins, 0, e->files.count * sizeof *e->origins);
    for (uint32_t i = 0; e->origins && i < e->files.count; i++) {
        struct sl_file_origin origin;
        if (!origin_of(e, &w->files[e->files.order[i]], &arena, &origin))
            continue;
        e->origins[i] =
            (struct origin_row){text_of(e, origin.path), text_of(e, origin.revision), text_of(e, origin.url)};
        any = true;
    }
    sl_arena_free(&arena);
    bool ok = e->origins && !w->failed && sl_object_complete(w->options.origins, NULL) == SL_OK;
    if (any) {
        e->flags |= FLAG_ORIGINS;
    } else {
        sl_free_held(&w->holding, e->origins, e->files.count, sizeof *e->origins);
        e->origins = NULL;
    }
    return ok;
}

static void use_origin_texts(const struct encoder *e, uint8_t *used)
{
    for (uint32_t i = 0; e->origins && i < e->files.count; i++) {
        const uint32_t texts[] = {e->origins[i].path, e->origins[i].revision, e->origins[i].url};
        for (size_t t = 0; t < 3; t++)
            if (texts[t])
                used[texts[t] - 1] = 1;
    }
}

static bool sort_texts(struct encoder *e)
{
    struct sl_symcache_writer *w = e->w;
    struct sl_holding *held = &w->holding;
    size_t room = w->text_count + 1;
    uint8_t *used = sl_alloc_held(held, room, sizeof *used);
    e->text_order = sl_alloc_held(held, room, sizeof *e->text_order);
    e->text_rank = sl_alloc_held(held, room, sizeof *e->text_rank);
    bool ok = used && e->text_order && e->text_rank;
    if (used)
        memset(used, 0, room);
    for (uint32_t i = 0; ok && i < e->functions.count; i++)
        used[w->functions[e->functions.order[i]].name] = 1;
    for (uint32_t i = 0; ok && i < e->files.count; i++)
        used[w->files[e->files.order[i]]] = 1;
    if (ok)
        use_origin_texts(e, used);
    if (ok) {
        e->text_count = symcache_sort_texts(w, used, e->text_order, e->text_rank);
        ok = e->text_count != SIZE_MAX;
    }
    sl_free_held(held, used, room, sizeof *used);
    return ok;
}

/* ---- sections ---- */

static void begin(struct encoder *e, uint32_t id)
{
    sl_buf_align(e->out, 8);
    e->sections[e->section_count].id = id;
    e->sections[e->section_count].offset = e->out->size - e->start;
}

static void end(struct encoder *e)
{
    e->sections[e->section_count].size = e->out->size - e->start - e->sections[e->section_count].offset;
    e->section_count++;
}

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

static void fill_functions(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    const struct encoder *e = arg;
    for (uint32_t i = 0; i < count; i++) {
        const struct function_row *f = &e->w->functions[e->functions.order[from + i]];
        values[0][i] = e->text_rank[f->name];
        values[1][i] = f->entry == UINT64_MAX ? 0 : f->entry + 1;
        values[2][i] = f->language;
    }
}

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

static bool write_columns(struct encoder *e, uint32_t id, const struct column_source *source)
{
    begin(e, id);
    bool ok = symcache_write_columns(e->out, e->w->parallel, source);
    end(e);
    return ok;
}

/* A section of units, and one of the offsets where they begin. */
static bool write_units(struct encoder *e, uint32_t id, uint32_t offsets_id, const struct unit_source *source)
{
    struct sl_buf offsets = {.budget = e->w->options.budget};
    begin(e, id);
    size_t start = e->out->size;
    bool ok = symcache_write_units(e->out, start, &offsets, e->w->parallel, source);
    end(e);
    begin(e, offsets_id);
    sl_buf_add(e->out, offsets.data, offsets.size);
    sl_buf_u32(e->out, (uint32_t)(e->sections[e->section_count - 1].size));
    end(e);
    ok = ok && !offsets.failed;
    e->too_large = e->too_large || (!ok && e->out->size - start > UINT32_MAX);
    sl_buf_free(&offsets);
    return ok;
}

/* Folds the operations; the entries become blocks as they come. */
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

static void write_directory(struct encoder *e)
{
    begin(e, SECTION_DIRECTORY);
    for (size_t i = 0; i < e->block_count; i++)
        if (e->flags & FLAG_WIDE)
            sl_buf_u64(e->out, e->starts[i]);
        else
            sl_buf_u32(e->out, (uint32_t)e->starts[i]);
    end(e);
}

/* The blocks stay where they are if nothing else is in `out`. */
static void begin_file(struct encoder *e)
{
    size_t size = e->file.size - HEAD_SIZE;
    sl_buf_align(e->out, 8);
    e->start = e->out->size;
    if (e->start) {
        sl_buf_add(e->out, e->file.data, e->file.size);
    } else {
        sl_buf_free(e->out);
        *e->out = e->file;
        e->file = (struct sl_buf){0};
    }
    e->sections[e->section_count].id = SECTION_BLOCKS;
    e->sections[e->section_count].offset = HEAD_SIZE;
    e->sections[e->section_count++].size = size;
    begin(e, SECTION_OFFSETS);
    for (size_t i = 0; i < e->block_count; i++)
        sl_buf_u32(e->out, e->offsets[i]);
    sl_buf_u32(e->out, (uint32_t)size);
    end(e);
}

static bool write_strings(struct encoder *e)
{
    struct unit_source groups = {symcache_write_group, e, (e->text_count + GROUP_STRINGS - 1) / GROUP_STRINGS, 128};
    return write_units(e, SECTION_STRINGS, SECTION_GROUPS, &groups);
}

/* ---- the file ---- */

static void put(uint8_t *at, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static void write_header(struct encoder *e)
{
    const struct sl_symcache_options *o = &e->w->options;
    uint8_t *h = e->out->data + e->start, *table = h + HEADER_SIZE;
    size_t content = HEADER_SIZE + (size_t)e->section_count * SECTION_ENTRY;
    memcpy(h + AT_MAGIC, "SLSC", 4);
    put(h + AT_MAJOR, FORMAT_MAJOR, 2);
    put(h + AT_MINOR, FORMAT_MINOR, 2);
    put(h + AT_HEADER_SIZE, HEADER_SIZE, 4);
    put(h + AT_FLAGS, e->flags, 4);
    put(h + AT_ARCH, o->arch, 4);
    put(h + AT_AGE, o->debug_id.age, 4);
    memcpy(h + AT_UUID, o->debug_id.uuid, 16);
    put(h + AT_IMAGE_SIZE, o->image_size, 8);
    put(h + AT_ENTRIES, e->block_count ? (e->block_count - 1) * BLOCK_ENTRIES + e->block.count : 0, 8);
    put(h + AT_CONTEXTS, e->contexts.count, 8);
    put(h + AT_FUNCTIONS, e->functions.count, 8);
    put(h + AT_FILES, e->files.count, 8);
    put(h + AT_STRINGS, e->text_count, 8);
    put(h + AT_SECTION_COUNT, e->section_count, 4);
    for (uint32_t i = 0; i < e->section_count; i++) {
        put(table + i * SECTION_ENTRY, e->sections[i].id, 4);
        put(table + i * SECTION_ENTRY + 8, e->sections[i].offset, 8);
        put(table + i * SECTION_ENTRY + 16, e->sections[i].size, 8);
    }
    put(h + AT_CONTENT_HASH, sl_hash(h + content, e->out->size - e->start - content), 8);
    put(h + AT_HEADER_HASH, sl_hash(h, content), 8);
}

static bool write_tables(struct encoder *e)
{
    uint32_t functions = e->functions.count, files = e->files.count, contexts = e->contexts.count;
    uint64_t texts = e->text_count;
    struct column_source context_rows = {
        fill_contexts, e, contexts, 5, {functions, contexts, files, e->max_call_line, files}};
    struct column_source function_rows = {fill_functions, e, functions, 3, {texts, e->max_entry, e->max_language}};
    struct column_source file_rows = {fill_files, e, files, 1, {texts}};
    struct column_source origin_rows = {fill_origins, e, files, 3, {texts, texts, texts}};
    if (!write_columns(e, SECTION_CONTEXTS, &context_rows) || !write_columns(e, SECTION_FUNCTIONS, &function_rows) ||
        !write_columns(e, SECTION_FILES, &file_rows) || !write_strings(e))
        return false;
    if (e->w->options.module_file.size) {
        begin(e, SECTION_MODULE);
        sl_buf_str(e->out, e->w->options.module_file);
        end(e);
    }
    return !e->origins || write_columns(e, SECTION_ORIGINS, &origin_rows);
}

static bool write_file(struct encoder *e)
{
    begin_file(e);
    write_directory(e);
    bool ok = write_tables(e);
    sl_buf_align(e->out, 8);
    if (!ok || e->out->failed)
        return false;
    write_header(e);
    return true;
}

struct encoder *symcache_encoder_new(struct sl_symcache_writer *w)
{
    struct encoder *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->w = w;
    e->file.budget = w->options.budget;
    sl_buf_fill(&e->file, 0, HEAD_SIZE);
    if (e->file.failed) {
        free(e);
        return NULL;
    }
    return e;
}

void symcache_encoder_free(struct encoder *e)
{
    if (!e)
        return;
    sl_buf_free(&e->file);
    free(e->offsets);
    free(e->starts);
    renumbering_free(&e->contexts);
    renumbering_free(&e->functions);
    renumbering_free(&e->files);
    free(e->origins);
    free(e->text_order);
    free(e->text_rank);
    free(e);
}

/* The address map comes first: its entries tell which functions, files and texts are used at all. */
static bool encode(struct encoder *e)
{
    struct sl_symcache_writer *w = e->w;
    bool ok = w->flow ? symcache_flow_end(w->flow, e) : fold_all(e);
    symcache_collectors_free(w->collectors, sl_parallel_workers(w->parallel)); /* with the operations */
    w->collectors = NULL;
    e->flags |= e->block.address > UINT32_MAX ? FLAG_WIDE : 0;
    e->flags |= w->sink.skipped_units ? FLAG_PARTIAL : 0;
    return ok && collect_origins(e) && sort_texts(e) && write_file(e);
}

enum sl_code symcache_encode(struct sl_symcache_writer *w, struct sl_buf *out, struct sl_error *error)
{
    if (!w->encoder)
        w->encoder = symcache_encoder_new(w);
    if (w->encoder)
        w->encoder->out = out;
    bool ok = w->encoder && encode(w->encoder);
    sl_buf_leave_budget(out);
    if (ok)
        return SL_OK;
    if (w->encoder && w->encoder->too_large)
        return sl_fail(error, SL_UNSUPPORTED, "the symcache would have a section of more than 4 GiB");
    return sl_budget_fail(w->options.budget, error);
}
