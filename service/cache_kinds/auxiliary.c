/* Two kinds of cache entries: `auxdifs` (UUID maps and BCSymbolMaps) and `il2cpp` (line mappings of Unity builds). They are inputs of a
 * symcache without being objects. */
#include "cache_kinds/impl.h"

#include "core/log.h"
#include "object/bcsymbolmap.h"
#include "source/il2cpp.h"

/* Runs in a worker: checks that a UUID map can be read. */
static enum sl_code check_uuidmap(struct conversion *conversion, const struct converter_call *call, void *result,
                                  struct sl_error *error)
{
    (void)result;
    (void)conversion; /* no work limit needed: sl_uuidmap_parse reads at most a megabyte */
    struct sl_debug_id id;
    return sl_uuidmap_parse(converter_input_bytes(call, INPUT_FILE), &id, error);
}

const struct converter converter_uuidmap = {"uuidmap", 0, 0, check_uuidmap};

/* Runs in a worker: checks that a BCSymbolMap can be read. */
static enum sl_code check_bcsymbolmap(struct conversion *conversion, const struct converter_call *call, void *result,
                                      struct sl_error *error)
{
    (void)result;
    struct sl_bcsymbolmap *map;
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    enum sl_code code = sl_bcsymbolmap_open(file, &conversion->budget, &map, error);
    sl_bcsymbolmap_close(map);
    return code;
}

const struct converter converter_bcsymbolmap = {"bcsymbolmap", 0, 0, check_bcsymbolmap};

enum sl_code auxiliary_fetch(const struct object_request *request, const struct converter *check, int fd,
                             struct sl_error *error)
{
    enum sl_code code = origin_fetch(request->file, fd, error);
    if (code != SL_OK)
        return code;
    struct conversion_description about = {.location = request->file->location};
    struct converter_call call = {.out = -1}; /* -1: `check` writes nothing */
    converter_add_file(&call, INPUT_FILE, fd);
    code = conversion_run(&about, check, &call, NULL, error);
    if (code != SL_OK)
        log_debug("kinds", "cannot use a downloaded auxiliary file",
                  LOG_STR("type", file_type_name(request->file->type)), LOG_SLSTR("location", request->file->location),
                  LOG_ERR(error));
    return code;
}

/* Makes an entry of the kind `auxdifs`: downloads the BCSymbolMap or UUID map, and checks that it can be parsed. */
static enum sl_code bcsymbolmaps_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                         struct sl_error *error)
{
    (void)arena;
    const struct object_request *request = context;
    bool uuids = request->file->type == FILE_UUIDMAP;
    return auxiliary_fetch(request, uuids ? &converter_uuidmap : &converter_bcsymbolmap, tmp->fd, error);
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

/* Runs in a worker: checks that an il2cpp line mapping can be read. */
static enum sl_code check_il2cpp(struct conversion *conversion, const struct converter_call *call, void *result,
                                 struct sl_error *error)
{
    (void)result;
    struct sl_il2cpp *lines;
    enum sl_code code = sl_il2cpp_open(converter_input_bytes(call, INPUT_FILE), &conversion->budget, &lines, error);
    sl_il2cpp_close(lines);
    return code;
}

const struct converter converter_il2cpp = {"il2cpp", 0, 0, check_il2cpp};

static enum sl_code il2cpp_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    (void)arena;
    return auxiliary_fetch(context, &converter_il2cpp, tmp->fd, error);
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
