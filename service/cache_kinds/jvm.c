/* The kind `proguard`: tables made from mappings of ProGuard and R8. */
#include "cache_kinds/impl.h"

#include <errno.h>
#include <unistd.h>

/* Replaces the text by the table made from it. */
static enum sl_code convert_mapping(struct conversion *conversion, struct sl_bytes file, void *arg,
                                    struct sl_error *error)
{
    int fd = *(const int *)arg;
    struct sl_buf out = {0};
    struct sl_str text = {(const char *)file.data, file.size};
    enum sl_code code = sl_jvm_mapper_build(text, &conversion->budget, &out, error);
    if (code == SL_OK && ftruncate(fd, 0) != 0)
        code = sl_fail(error, SL_INTERNAL, "cannot write a cache file: %s", strerror(errno));
    if (code == SL_OK)
        code = conversion_write(conversion, fd, &out, error);
    sl_buf_free(&out);
    return code;
}

static enum sl_code proguard_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                     struct sl_error *error)
{
    (void)arena;
    const struct object_request *request = context;
    enum sl_code code = origin_fetch(request->file, tmp->fd, error);
    if (code != SL_OK)
        return code;
    return conversion_check(tmp->fd, request->file->location, kind_proguard.name, convert_mapping, &tmp->fd, error);
}

static enum sl_code proguard_open(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_jvm_mapper_open(bytes, into, error);
}

const struct cache_kind kind_proguard = {
    .name = "proguard",
    .section = CACHE_DOWNLOADED,
    .version = 1003,
    .random_access = true,
    .compute = proguard_compute,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
    .open = proguard_open,
    .opened_size = sizeof(struct sl_jvm_mapper),
};

/* ---- mappings sent with a request ---- */

struct own_mapping {
    struct sl_str text;
    struct sl_buf table;
};

static enum sl_code convert_own_mapping(struct conversion *conversion, void *arg, struct sl_error *error)
{
    struct own_mapping *own = arg;
    return sl_jvm_mapper_build(own->text, &conversion->budget, &own->table, error);
}

enum sl_code item_from_mapping(struct sl_str text, struct cache_item **item, struct sl_error *error)
{
    struct own_mapping own = {.text = text};
    struct conversion_input input = {text.size, SL_STR("artifact"), kind_proguard.name};
    enum sl_code code = conversion_run(&input, convert_own_mapping, &own, error);
    *item = NULL;
    if (code == SL_OK)
        return cache_item_from_bytes(&kind_proguard, &own.table, item, error);
    sl_buf_free(&own.table);
    return code;
}
