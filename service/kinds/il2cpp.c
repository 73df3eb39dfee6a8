/* The kind `il2cpp`: line mappings of Unity builds. */
#include "source/il2cpp.h"
#include "kinds/impl.h"

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

static const unsigned older[] = {1, 0};

const struct cache_kind kind_il2cpp = {
    .name = "il2cpp",
    .section = CACHE_DOWNLOADED,
    .version = 2,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .compute = il2cpp_compute,
    .place = object_request_place,
    .retain = object_request_retain,
};
