/* The kind `il2cpp`: line mappings of Unity builds. */
#include "source/il2cpp.h"
#include "kinds/auxiliary.h"

#include "core/log.h"
#include "core/pool.h"

struct check {
    int fd;
    enum sl_code code;
    struct sl_error error;
};

static void check_file(void *arg)
{
    struct check *check = arg;
    struct sl_mapping mapping;
    struct sl_il2cpp *lines;
    if (sl_map_fd(check->fd, &mapping, &check->error) != SL_OK) {
        check->code = SL_INTERNAL;
        return;
    }
    check->code = sl_il2cpp_open(mapping.bytes, &lines, &check->error);
    sl_il2cpp_close(lines);
    sl_unmap(&mapping);
}

static enum sl_code compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    const struct object_request *request = context;
    (void)arena;
    enum sl_code code = origin_fetch(request->file, tmp->fd, error);
    if (code != SL_OK)
        return code;
    struct check check = {.fd = tmp->fd};
    if (pool_run(POOL_CONVERT, check_file, &check, error) != SL_OK)
        return SL_INTERNAL;
    if (check.code != SL_OK) {
        log_warn("il2cpp", "unusable line mapping", LOG_SLSTR("location", request->file->location),
                 LOG_ERR(&check.error));
        *error = check.error;
    }
    return check.code;
}

static const unsigned older[] = {1, 0};

const struct cache_kind kind_il2cpp = {
    .name = "il2cpp",
    .section = CACHE_DOWNLOADED,
    .version = 2,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .compute = compute,
    .retain = object_request_retain,
};

enum sl_code il2cpp_find(const struct auxiliary_search *search, struct object_request **lines)
{
    struct cache_item *item;
    enum sl_code code = auxiliary_find(search, search->id, FILE_IL2CPP, &kind_il2cpp, lines, &item);
    if (code == SL_OK)
        cache_release(item);
    else
        *lines = NULL;
    return code;
}
