/* The kind `objects`: files as the sources have them, decompressed, and known to parse. */
#include "kinds/impl.h"

#include "core/log.h"
#include "core/metrics.h"
#include "core/pool.h"

struct check {
    int fd;
    const struct object_id *wanted;
    enum sl_code code;
    struct sl_error error;
    bool same_id;
    char found[SL_DEBUG_ID_TEXT];
};

/* Some producers put the length of a WASM build id before it; the forms with and without are one id. */
static struct sl_str strip_length(struct sl_str id)
{
    uint8_t length;
    size_t size;
    if (id.size >= 4 && sl_hex_decode((struct sl_str){id.data, 2}, &length, 1, &size) && (id.size - 2) / 2 == length)
        return (struct sl_str){id.data + 2, id.size - 2};
    return id;
}

static bool same_code_id(const struct object_id *wanted, struct sl_str found)
{
    struct sl_str a = wanted->code_id, b = found;
    if (wanted->type == OBJECT_WASM) {
        a = strip_length(a);
        b = strip_length(b);
    }
    return sl_str_equal(a, b);
}

/* Symbol servers answer a request for an old age with the newest file: a higher age is right. */
static bool same_id(const struct object_id *wanted, const struct sl_object_info *info)
{
    if (wanted->has_debug_id)
        return sl_debug_id_is_nil(&info->debug_id) ||
               (memcmp(wanted->debug_id.uuid, info->debug_id.uuid, sizeof info->debug_id.uuid) == 0 &&
                info->debug_id.age >= wanted->debug_id.age);
    return !wanted->code_id.size || !info->code_id.size || same_code_id(wanted, info->code_id);
}

static void check_object(void *arg)
{
    struct check *check = arg;
    struct sl_mapping mapping;
    struct sl_object *object;
    check->code = sl_map_fd(check->fd, &mapping, &check->error);
    if (check->code != SL_OK) {
        check->code = SL_INTERNAL;
        return;
    }
    check->code = sl_object_open(mapping.bytes, kinds_object_limits(), &object, &check->error);
    if (check->code == SL_OK) {
        const struct sl_object_info *info = sl_object_info(object);
        check->same_id = same_id(check->wanted, info);
        sl_debug_id_format(&info->debug_id, check->found);
        sl_object_close(object);
    }
    sl_unmap(&mapping);
}

/* Stores with wrong ids work for their users today, so the answer stays; somebody may want to know. */
static void report_mismatch(const struct object_request *request, const struct check *check)
{
    char source[64];
    int size = (int)(request->file->source->id.size < sizeof source ? request->file->source->id.size : 63);
    memcpy(source, request->file->source->id.data, (size_t)size);
    source[size] = '\0';
    metric_add(METRIC_DOWNLOAD_ID_MISMATCH, 1, source, NULL, NULL);
    log_info("objects", "the file's id is not the one asked for", LOG_STR("source", source),
             LOG_SLSTR("location", request->file->location), LOG_STR("debug_id", check->found));
}

static enum sl_code compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    const struct object_request *request = context;
    enum sl_code code = origin_fetch(request->file, tmp->fd, error);
    if (code != SL_OK)
        return code;
    struct check check = {.fd = tmp->fd, .wanted = request->id};
    if (pool_run(POOL_CONVERT, check_object, &check, error) != SL_OK)
        return SL_INTERNAL;
    if (check.code != SL_OK) {
        *error = check.error;
        return check.code;
    }
    if (!check.same_id)
        report_mismatch(request, &check);
    return SL_OK;
}

static const unsigned older[] = {1, 0};

const struct cache_kind kind_objects = {
    .name = "objects",
    .section = CACHE_DOWNLOADED,
    .version = 2,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .compute = compute,
    .retain = object_request_retain,
    .load = source_load,
    .free_loaded = source_unload,
};
