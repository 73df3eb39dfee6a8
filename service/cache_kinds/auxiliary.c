/* The kinds `auxdifs`, UUID maps and BCSymbolMaps, and `il2cpp`, line mappings of Unity builds: inputs of a symcache that are
 * not objects. */
#include "cache_kinds/impl.h"

#include "core/log.h"
#include "object/bcsymbolmap.h"
#include "source/il2cpp.h"

static enum sl_code check_uuidmap(struct conversion *conversion, struct sl_bytes file, void *arg,
                                  struct sl_error *error)
{
    (void)arg;
    (void)conversion; /* no limits needed for at most a megabyte */
    struct sl_debug_id id;
    return sl_uuidmap_parse(file, &id, error);
}

static enum sl_code check_bcsymbolmap(struct conversion *conversion, struct sl_bytes file, void *arg,
                                      struct sl_error *error)
{
    (void)arg;
    struct sl_bcsymbolmap *map;
    enum sl_code code = sl_bcsymbolmap_open(file, &conversion->budget, &map, error);
    sl_bcsymbolmap_close(map);
    return code;
}

enum sl_code auxiliary_fetch(const struct object_request *request, conversion_checker *check, int fd,
                             struct sl_error *error)
{
    enum sl_code code = origin_fetch(request->file, fd, error);
    if (code != SL_OK)
        return code;
    code = conversion_check(fd, request->file->location, NULL, check, NULL, error);
    if (code != SL_OK)
        log_debug("kinds", "unusable file", LOG_STR("type", file_type_name(request->file->type)),
                  LOG_SLSTR("location", request->file->location), LOG_ERR(error));
    return code;
}

static enum sl_code bcsymbolmaps_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                         struct sl_error *error)
{
    (void)arena;
    const struct object_request *request = context;
    bool uuids = request->file->type == FILE_UUIDMAP;
    return auxiliary_fetch(request, uuids ? check_uuidmap : check_bcsymbolmap, tmp->fd, error);
}

static const unsigned older[] = {1, 0};

const struct cache_kind kind_auxdifs = {
    .name = "auxdifs",
    .section = CACHE_DOWNLOADED,
    .version = 2,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .compute = bcsymbolmaps_compute,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
};

static enum sl_code il2cpp_check(struct conversion *conversion, struct sl_bytes file, void *arg, struct sl_error *error)
{
    (void)arg;
    struct sl_il2cpp *lines;
    enum sl_code code = sl_il2cpp_open(file, &conversion->budget, &lines, error);
    sl_il2cpp_close(lines);
    return code;
}

static enum sl_code il2cpp_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    (void)arena;
    return auxiliary_fetch(context, il2cpp_check, tmp->fd, error);
}

const struct cache_kind kind_il2cpp = {
    .name = "il2cpp",
    .section = CACHE_DOWNLOADED,
    .version = 2,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .compute = il2cpp_compute,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
};
