/* Storage areas (store/area.h): each function calls that of the area's back end, directory.c or bucket.c. */
#include "store/impl.h"

#include <unistd.h>

#include "core/pool.h"

enum { SMALL_OBJECT = 64 << 10 /* most bytes that store_area_read() reads; it is used for JSON texts */ };

bool store_area_source(const struct store_area *area, struct sl_arena *arena, struct sl_str prefix,
                       struct source *source)
{
    return area->type->source(area, arena, prefix, source);
}

enum sl_code store_area_tmp_file(const struct store_area *area, struct store_tmp_file *work, struct sl_error *error)
{
    *work->path = '\0';
    work->fd = -1;
    return area->type->tmp_file(area, work, error);
}

void store_tmp_file_discard(struct store_tmp_file *work)
{
    if (work->fd < 0)
        return;
    close(work->fd);
    if (*work->path)
        unlink(work->path);
    work->fd = -1;
}

static void discard_tmp_file(void *work)
{
    store_tmp_file_discard(work);
}

void store_tmp_file_discard_on_pool(struct store_tmp_file *work)
{
    if (work->fd >= 0)
        pool_run(POOL_IO, discard_tmp_file, work, NULL);
}

enum sl_code store_area_stat(const struct store_area *area, struct sl_str name, bool with_md5, struct store_meta *meta,
                             struct sl_error *error)
{
    *meta = (struct store_meta){0};
    return area->type->stat(area, name, with_md5, meta, error);
}

enum sl_code store_area_put(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                            const struct store_meta *meta, const char *media_type, struct sl_error *error)
{
    return area->type->put(area, name, work, meta, media_type, error);
}

enum sl_code store_area_replace(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                                const struct store_meta *meta, const char *media_type, const struct store_meta *before,
                                bool *conflict, struct sl_error *error)
{
    *conflict = false;
    /* a directory has no `replace`: there the caller's lock prevents conflicts */
    return area->type->replace ? area->type->replace(area, name, work, meta, media_type, before, conflict, error)
                               : area->type->put(area, name, work, meta, media_type, error);
}

enum sl_code store_area_put_text(const struct store_area *area, const struct sl_str *names, size_t count,
                                 struct sl_str text, struct sl_error *error)
{
    return count ? area->type->put_text(area, names, count, text, error) : SL_OK;
}

enum sl_code store_area_open(const struct store_area *area, struct sl_str name, struct sl_mapping *mapping,
                             struct store_meta *meta, struct sl_error *error)
{
    *meta = (struct store_meta){0};
    return area->type->open(area, name, mapping, meta, error);
}

struct text_copying {
    struct sl_bytes bytes; /* mapped */
    struct sl_buf *text;   /* to which they are appended */
};

/* Copies a mapped text. Pool work: a page that is not in memory is read from disk, for which the loop thread must not wait. */
static enum sl_code copy_text(void *arg, struct sl_error *error)
{
    const struct text_copying *copy = arg;
    sl_buf_add(copy->text, copy->bytes.data, copy->bytes.size);
    return copy->text->failed ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
}

enum sl_code store_area_read(const struct store_area *area, struct sl_str name, struct sl_buf *text,
                             struct sl_error *error)
{
    struct sl_mapping mapping;
    struct store_meta meta;
    enum sl_code code = store_area_open(area, name, &mapping, &meta, error);
    if (code != SL_OK)
        return code;
    struct text_copying copy = {mapping.bytes, text};
    if (mapping.bytes.size > SMALL_OBJECT)
        code = sl_fail(error, SL_MALFORMED, "\"" SL_STR_FMT "\" in the upload store is too large for a JSON text",
                       SL_STR_ARG(name));
    else
        code = pool_call(POOL_IO, copy_text, &copy, error);
    pool_unmap(&mapping);
    return code;
}

enum sl_code store_area_delete(const struct store_area *area, struct sl_str name, struct sl_error *error)
{
    enum sl_code code = area->type->remove(area, name, error);
    return code == SL_NOT_FOUND ? SL_OK : code;
}

enum sl_code store_area_list(const struct store_area *area, struct sl_str directory, size_t most,
                             struct sl_arena *arena, struct sl_str **names, size_t *count, struct sl_error *error)
{
    *names = NULL;
    *count = 0;
    return area->type->list(area, directory, most, arena, names, count, error);
}

enum sl_code store_area_walk(const struct store_area *area, struct sl_str directory, struct sl_str begin,
                             store_area_visitor *visit, void *arg, struct sl_error *error)
{
    return area->type->walk(area, directory, begin, visit, arg, error);
}

void store_area_sweep(const struct store_area *area, const char *name, uint64_t life_s, unsigned depth)
{
    if (area->type->sweep)
        area->type->sweep(area, name, life_s, depth);
}

/* An upload is written within minutes, so a temporary file older than WORK_LIFE_S was left behind by a process that ended. */
void store_area_sweep_tmp(const struct store_area *area)
{
    enum { WORK_LIFE_S = 15 * 60 };
    store_area_sweep(area, "tmp", WORK_LIFE_S, 0);
}
