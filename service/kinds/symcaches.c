/* The kind `symcaches`: lookup tables made from objects. */
#include "kinds/impl.h"

#include <stdlib.h>

#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

struct convert {
    struct sl_bytes file;
    int fd;
    bool complete; /* `items` holds what there is: convert in any case */
    bool wanting;  /* not converted: `wants` is to be got first */
    struct companion_wants wants;
    struct companion_items items;
    enum sl_code code;
    struct sl_error error;
};

/* What was written is opened once more, as a reader will: a writer's mistake must not be kept for a week. */
static enum sl_code store(struct convert *c, const struct sl_buf *out)
{
    struct sl_symcache cache;
    struct sl_error reason;
    if (sl_symcache_open(sl_buf_bytes(out), &cache, &reason) != SL_OK)
        return sl_fail(&c->error, SL_INTERNAL, "a fresh symcache cannot be opened: %s", reason.message);
    return kinds_write(c->fd, sl_buf_bytes(out), &c->error);
}

static void write_symcache(struct convert *c, struct sl_object *object)
{
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_symcache_options options = {
        .arch = info->arch,
        .debug_id = info->debug_id,
        .image_size = info->image_size,
        .is_windows = info->format == SL_FORMAT_PE || info->format == SL_FORMAT_PDB,
    };
    struct sl_companions companions;
    struct sl_buf out = {0};
    companions_open(&c->items, &companions);
    c->code = sl_symcache_convert(object, &companions, &options, pool_parallel(), &out, &c->error);
    companions_close(&companions);
    if (c->code == SL_OK)
        c->code = store(c, &out);
    sl_buf_free(&out);
}

static void convert_object(void *arg)
{
    struct convert *c = arg;
    struct sl_object *object;
    c->code = sl_object_open(c->file, kinds_object_limits(), &object, &c->error);
    if (c->code != SL_OK)
        return;
    c->wanting = !c->complete && companions_wanted(object, &c->wants);
    if (!c->wanting)
        write_symcache(c, object);
    sl_object_close(object);
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
    uint64_t begin = clock_mono_ns();
    struct convert c = {.file = object->mapping.bytes, .fd = tmp->fd};
    code = pool_run(POOL_CONVERT, convert_object, &c, &c.error);
    if (code == SL_OK && c.wanting) {
        companions_get(request, &c.wants, arena, &c.items);
        c.complete = true;
        code = pool_run(POOL_CONVERT, convert_object, &c, &c.error);
        companions_release(&c.items);
    }
    cache_release(object);
    if (code != SL_OK)
        c.code = SL_INTERNAL;
    metric_add(METRIC_CONVERSIONS, 1, kind_symcaches.name, sl_code_name(c.code), NULL);
    metric_observe(METRIC_CONVERSION_SECONDS, (double)(clock_mono_ns() - begin) / 1e9, kind_symcaches.name, NULL, NULL);
    if (c.code != SL_OK)
        *error = c.error;
    return c.code;
}

static enum sl_code load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    struct sl_symcache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    enum sl_code code = sl_symcache_open(bytes, cache, error);
    if (code != SL_OK) {
        free(cache);
        return code;
    }
    *loaded = cache;
    *weight = sizeof *cache;
    return SL_OK;
}

const struct cache_kind kind_symcaches = {
    .name = "symcaches",
    .section = CACHE_DERIVED,
    .version = 1001,
    .random_access = true,
    .compute = compute,
    .retain = object_request_retain,
    .load = load,
    .free_loaded = free,
};
