/* The kind `embedded_sources`: the source texts in an object's DWARF, as a source bundle. */
#include "kinds/impl.h"

#include "base/map.h"
#include "core/pool.h"
#include "dwarf/dwarf.h"
#include "function/path.h"
#include "source/bundle.h"

/* Every table may name the same text, under as many paths as there is room for. */
static const uint64_t max_texts = UINT64_C(256) << 20;

struct gather {
    struct sl_bytes file;
    int fd;
    struct sl_bundle_writer *writer;
    struct sl_map paths; /* those that are in */
    struct sl_buf path;
    struct sl_arena arena;
    uint64_t size;
    enum sl_code code;
    struct sl_error error;
};

static bool add(void *arg, const struct sl_file *file, struct sl_bytes text)
{
    struct gather *g = arg;
    sl_buf_clear(&g->path);
    sl_path_full(&g->path, file->comp_dir, file->directory, file->name);
    struct sl_str path = sl_buf_view(&g->path);
    if (g->path.failed || sl_map_get(&g->paths, path))
        return !g->path.failed;
    if (text.size > max_texts - g->size)
        return true;
    path.data = sl_arena_strndup(&g->arena, path.data, path.size);
    void **slot = path.data ? sl_map_slot(&g->paths, path, NULL) : NULL;
    if (!slot)
        return false;
    *slot = g;
    g->size += text.size;
    sl_bundle_add(g->writer, SL_BUNDLE_SOURCE, path, SL_STR(""), text);
    return true;
}

static void gather_texts(void *arg)
{
    struct gather *g = arg;
    struct sl_object *object;
    struct sl_buf out = {0};
    g->code = sl_object_open(g->file, kinds_object_limits(), &object, &g->error);
    if (g->code != SL_OK)
        return;
    g->writer = sl_bundle_writer_new(&out);
    if (g->writer) {
        sl_dwarf_sources(object, add, g);
        g->code = sl_bundle_finish(g->writer, NULL, 0, &g->error);
    } else {
        g->code = sl_fail(&g->error, SL_INTERNAL, "out of memory");
    }
    if (g->code == SL_OK)
        g->code = kinds_write(g->fd, sl_buf_bytes(&out), &g->error);
    sl_bundle_writer_free(g->writer);
    sl_object_close(object);
    sl_buf_free(&out);
    sl_buf_free(&g->path);
    sl_map_free(&g->paths);
    sl_arena_free(&g->arena);
}

static enum sl_code compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    const struct object_request *request = context;
    struct cache_key key;
    struct cache_item *object;
    if (!object_request_key(request, arena, &key))
        return sl_fail(error, SL_INTERNAL, "out of memory");
    enum sl_code code = cache_get(&kind_objects, &key, request, &object, error);
    if (code != SL_OK)
        return code;
    struct gather g = {.file = object->mapping.bytes, .fd = tmp->fd};
    code = pool_run(POOL_CONVERT, gather_texts, &g, error);
    cache_release(object);
    if (code != SL_OK)
        return SL_INTERNAL;
    if (g.code != SL_OK)
        *error = g.error;
    return g.code;
}

const struct cache_kind kind_embedded_sources = {
    .name = "embedded_sources",
    .section = CACHE_DERIVED,
    .version = 1,
    .compute = compute,
    .retain = object_request_retain,
    .load = source_load,
    .free_loaded = source_unload,
};
