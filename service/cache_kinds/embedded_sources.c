/* The kind `embedded_sources`: the source texts in an object's DWARF, as a source bundle. */
#include "cache_kinds/impl.h"

#include "base/map.h"
#include "dwarf/dwarf.h"
#include "function/path.h"
#include "source/bundle.h"

/* Limit of all texts of an object, in bytes: a small file may name one large text under many paths. */
static const uint64_t max_texts = UINT64_C(256) << 20;

struct gather {
    struct sl_bundle_writer *writer;
    struct sl_map paths; /* paths of the texts added so far */
    struct sl_buf path;
    struct sl_arena arena;
    uint64_t size;
    bool out_of_memory;
};

/* Adds a source text to the bundle under its full path, unless it is there already. A text with which the bundle would exceed max_texts is
 * left out; smaller ones may still fit. False, which stops the iteration, when out of memory. */
static bool embedded_sources_add(void *arg, const struct sl_file *file, struct sl_bytes text)
{
    struct gather *g = arg;
    sl_buf_clear(&g->path);
    sl_path_full(&g->path, file->comp_dir, file->directory, file->name);
    struct sl_str path = sl_buf_view(&g->path);
    g->out_of_memory |= g->path.failed;
    if (g->path.failed || sl_map_get(&g->paths, path))
        return !g->path.failed;
    if (text.size > max_texts - g->size)
        return true;
    path.data = sl_arena_strndup(&g->arena, path.data, path.size);
    if (!path.data || !sl_map_put(&g->paths, path, g)) { /* g: any value; only the keys matter */
        g->out_of_memory = true;
        return false;
    }
    g->size += text.size;
    /* "": it has no URL. A text that is not UTF-8 is left out */
    sl_bundle_add(g->writer, SL_BUNDLE_SOURCE, path, SL_STR(""), text);
    return true;
}

/* Runs in a worker: writes a source bundle with all source texts in the DWARF of the object. SL_NOT_FOUND if it has none. */
static enum sl_code gather_texts(struct conversion *conversion, const struct converter_call *call, void *result,
                                 struct sl_error *error)
{
    (void)result;
    const struct reader_limits *limits = converter_options(call);
    struct gather g = {.arena = {.budget = &conversion->budget}};
    struct sl_object *object;
    struct sl_buf out = {0};
    enum sl_code code = conversion_open(conversion, converter_input_bytes(call, INPUT_FILE), limits, &object, error);
    if (code != SL_OK)
        return code;
    g.writer = sl_bundle_writer_new(&out);
    if (g.writer) {
        sl_dwarf_sources(object, embedded_sources_add, &g);
        /* fails with SL_NOT_FOUND if no text was added. NULL, 0: no attributes in the manifest, as only this service reads the bundle */
        code =
            g.out_of_memory ? sl_budget_fail(&conversion->budget, error) : sl_bundle_finish(g.writer, NULL, 0, error);
    } else {
        code = sl_fail(error, SL_BUSY, "out of memory");
    }
    if (code == SL_OK)
        code = conversion_write(conversion, call, &out, error);
    sl_bundle_writer_free(g.writer);
    sl_object_close(object);
    sl_buf_free(&out);
    sl_buf_free(&g.path);
    sl_map_free(&g.paths);
    sl_arena_free(&g.arena);
    return code;
}

const struct converter converter_embedded_sources = {"embedded_sources", sizeof(struct reader_limits), 0, gather_texts};

static enum sl_code embedded_sources_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                             struct sl_error *error)
{
    return convert_to_entry(context, NULL, &converter_embedded_sources, NULL, tmp->fd, arena, error);
}

static uint64_t embedded_sources_capacity(const struct config *config)
{
    (void)config;
    return OPEN_BUNDLES_BYTES;
}

const struct cache_kind kind_embedded_sources = {
    .name = "embedded_sources",
    .section = CACHE_DERIVED,
    .version = 1,
    .capacity = embedded_sources_capacity,
    .compute = embedded_sources_compute,
    .base = object_request_base,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
    .load = source_load,
    .free_loaded = source_unload,
};
