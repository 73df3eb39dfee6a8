/* The kind `ppdb_caches`: look-up tables made from Portable PDBs, also from those inside PE files. */
#include "cache_kinds/impl.h"

#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "object/embedded.h"

struct ppdb_conversion {
    struct sl_bytes file;
    int fd;
    size_t dropped;
};

/* Opens and reads the new table before it is stored: a writer's bug must not be cached for a week. */
static enum sl_code ppdbcaches_store(struct conversion *conversion, const struct ppdb_conversion *c,
                                     const struct sl_buf *out, struct sl_error *error)
{
    struct sl_ppdb_table table;
    struct sl_error reason;
    if (sl_ppdb_table_open(sl_buf_bytes(out), &table, &reason) != SL_OK ||
        sl_ppdb_table_verify(&table, &reason) != SL_OK)
        return sl_fail(error, SL_INTERNAL, "cannot open a newly converted portable PDB cache: %s", reason.message);
    return conversion_write(conversion, c->fd, out, error);
}

static enum sl_code ppdbcaches_build(struct conversion *conversion, struct ppdb_conversion *c, struct sl_bytes bytes,
                                     struct sl_arena *arena, struct sl_error *error)
{
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info info;
    struct sl_error reason;
    struct sl_buf out = {0};
    enum sl_code code = sl_ppdb_open(bytes, arena, &ppdb, &info, &reason);
    if (code == SL_OK)
        code = sl_ppdb_table_build(ppdb, &info, &out, &c->dropped, &reason);
    if (code != SL_OK)
        sl_fail(error, code, "error processing portable pdb file: %s", reason.message);
    else
        code = ppdbcaches_store(conversion, c, &out, error);
    sl_buf_free(&out);
    return code;
}

static enum sl_code convert_object(struct conversion *conversion, void *arg, struct sl_error *error)
{
    struct ppdb_conversion *c = arg;
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_bytes ppdb;
    enum sl_code code = find_portable_pdb(c->file, &arena, &ppdb, error);
    if (code == SL_NOT_FOUND)
        code = sl_fail(error, SL_UNSUPPORTED, "Only portable PDB files can be used for .NET symbolication");
    else if (code == SL_OK)
        code = ppdbcaches_build(conversion, c, ppdb, &arena, error);
    sl_arena_free(&arena);
    return code;
}

enum sl_code find_portable_pdb(struct sl_bytes file, struct sl_arena *arena, struct sl_bytes *ppdb,
                               struct sl_error *error)
{
    struct sl_object *object;
    *ppdb = file;
    if (sl_format_detect(file) == SL_FORMAT_PORTABLEPDB)
        return SL_OK;
    if (sl_format_detect(file) != SL_FORMAT_PE)
        return sl_fail(error, SL_NOT_FOUND, "no Portable PDB");
    enum sl_code code = open_object_in_limits(file, arena->budget, &object, error);
    if (code != SL_OK)
        return code;
    code = sl_object_embedded_ppdb(object, arena, ppdb, error);
    sl_object_close(object);
    return code;
}

static enum sl_code ppdbcaches_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                       struct sl_error *error)
{
    const struct object_request *request = context;
    struct cache_item *object;
    enum sl_code code = cache_get_own_file(&kind_objects, request, arena, &object, error);
    if (code != SL_OK)
        return code;
    struct ppdb_conversion c = {.file = object->mapping.bytes, .fd = tmp->fd};
    struct conversion_input input = {object->mapping.bytes.size, request->file->location, kind_ppdb_caches.name};
    code = conversion_run(&input, convert_object, &c, error);
    cache_release(object);
    if (code == SL_OK && c.dropped) {
        metric_add(METRIC_CONVERSIONS_PARTIAL, 1, kind_ppdb_caches.name, NULL, NULL);
        log_warn("ppdb", "some methods or documents could not be read", LOG_U64("count", c.dropped),
                 LOG_SLSTR("location", request->file->location));
    }
    return code;
}

static enum sl_code open_into(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_ppdb_table_open(bytes, into, error);
}

const struct cache_kind kind_ppdb_caches = {
    .name = "ppdb_caches",
    .section = CACHE_DERIVED,
    .version = 1001,
    .random_access = true,
    .compute = ppdbcaches_compute,
    .base = object_request_base,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
    .open = open_into,
    .opened_size = sizeof(struct sl_ppdb_table),
};
