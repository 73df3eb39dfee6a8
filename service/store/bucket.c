/* A storage area (store/area.h) in a bucket of S3 or GCS. */
#include "store/impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "cache/cache.h"
#include "core/fiber.h"
#include "core/pool.h"
#include "objectstore/objectstore.h"

enum {
    PUBLIC_EXPIRES_S = 3600, /* how long a presigned URL is valid */
    PUT_AT_ONCE = 8,         /* concurrent PUT requests of bucket_put_text() */
};

/* Creates the temporary file that receives an upload, in the cache directory: it is sent to the bucket afterwards and never needs a
 * name. */
static enum sl_code bucket_tmp_file(const struct store_area *area, struct store_tmp_file *work, struct sl_error *error)
{
    (void)area;
    struct cache_tmp tmp;
    enum sl_code code = cache_tmp_create(&tmp, true, error);
    *work = (struct store_tmp_file){.fd = code == SL_OK ? tmp.fd : -1};
    return code;
}

/* Reads an object's properties. The original size and MD5 of a compressed object are in its metadata (put_described). For an uncompressed
 * object without such metadata the MD5 in the ETag is taken; for a compressed one that would be the MD5 of the compressed bytes. */
static enum sl_code bucket_stat(const struct store_area *area, struct sl_str name, bool with_md5,
                                struct store_meta *meta, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct object_info info;
    struct object_field known[] = {{"original_size", {NULL, 0}}, {"original_md5_hash", {NULL, 0}}};
    size_t size;
    (void)with_md5; /* servers return the MD5 in any case */
    enum sl_code code = object_head(&area->bucket, name, &arena, &info, known, 2, error);
    *meta =
        (struct store_meta){.size = info.size, .is_packed = info.is_gzip, .modified_ns = info.modified_s * 1000000000};
    memcpy(meta->version, info.version, sizeof meta->version);
    meta->has_original = sl_parse_u64(known[0].value, &meta->original_size) &&
                         sl_hex_decode(known[1].value, meta->md5, sizeof meta->md5, &size) && size == sizeof meta->md5;
    if (!meta->is_packed && !meta->has_original && info.has_md5) {
        memcpy(meta->md5, info.md5, sizeof meta->md5);
        meta->original_size = meta->size;
        meta->has_original = true;
    }
    sl_arena_free(&arena);
    return code;
}

/* Uploads the file under the condition in `contents` (if_absent or if_version), if it has one. If the condition is not met, `*conflict`
 * is true, with SL_OK. Servers without conditional requests answer 501: then it is uploaded without condition. Status 404: with
 * if_version, the object is gone, which is a conflict; otherwise the bucket does not exist, an error of the configuration. */
static enum sl_code put_file(const struct store_area *area, struct sl_str name, int fd, struct object_contents contents,
                             bool *conflict, struct sl_error *error)
{
    struct object_store_call call = {0};
    enum sl_code code = object_put_file(&area->bucket, name, fd, contents, &call, error);
    bool is_conditional = contents.if_absent || contents.if_version;
    if (code != SL_OK && is_conditional && call.status == 501) {
        contents.if_absent = false;
        contents.if_version = NULL;
        return put_file(area, name, fd, contents, conflict, error);
    }
    *conflict = code != SL_OK && is_conditional &&
                (call.status == 412 || call.status == 409 || (call.status == 404 && contents.if_version));
    if (*conflict)
        return SL_OK;
    return call.status == 404 ? sl_fail(error, SL_INTERNAL, "%s", object_no_bucket) : code;
}

/* Uploads the temporary file with its properties as metadata, and discards it in any case. If `conflict` is not NULL, uploads only if the
 * object still has the version of `before` or, if `before` is NULL, only if there is no object (put_file). */
static enum sl_code put_described(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                                  const struct store_meta *meta, const char *media_type,
                                  const struct store_meta *before, bool *conflict, struct sl_error *error)
{
    char size[24], md5[2 * sizeof meta->md5 + 1];
    bool no_conflict;
    snprintf(size, sizeof size, "%llu", (unsigned long long)meta->original_size);
    sl_hex_encode(meta->md5, sizeof meta->md5, md5);
    const struct object_field metadata[] = {{"original_size", sl_str(size)}, {"original_md5_hash", sl_str(md5)}};
    struct object_contents contents = {.media_type = media_type,
                                       .no_transform = true,
                                       .encoding = meta->is_packed ? "gzip" : NULL,
                                       .metadata = metadata,
                                       /* an uncompressed object's own size and ETag say the same */
                                       .metadata_count = meta->is_packed ? 2 : 0,
                                       .if_absent = conflict && !before,
                                       /* empty: the server has sent no version to compare with */
                                       .if_version = conflict && before && *before->version ? before->version : NULL};
    enum sl_code code = put_file(area, name, work->fd, contents, conflict ? conflict : &no_conflict, error);
    store_tmp_file_discard_on_pool(work);
    return code;
}

static enum sl_code bucket_put(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                               const struct store_meta *meta, const char *media_type, struct sl_error *error)
{
    return put_described(area, name, work, meta, media_type, NULL, NULL, error);
}

static enum sl_code bucket_replace(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                                   const struct store_meta *meta, const char *media_type,
                                   const struct store_meta *before, bool *conflict, struct sl_error *error)
{
    return put_described(area, name, work, meta, media_type, before, conflict, error);
}

struct text_putting { /* writes one text under several names */
    const struct store_area *area;
    struct sl_str text;
    enum sl_code code; /* of the first failure */
    struct sl_error error;
};

struct text_put { /* writes the text of `all` under one of the names: an item of fiber_for_each() */
    struct text_putting *all;
    struct sl_str name;
};

/* Writes the text under one name, unless writing it under another name has failed. The first failure is recorded in all->code and
 * ->error. */
static void put_text(void *arg)
{
    struct text_put *put = arg;
    struct text_putting *all = put->all;
    const struct object_contents contents = {.bytes = {(const uint8_t *)all->text.data, all->text.size},
                                             .media_type = "application/json",
                                             .no_transform = true};
    struct object_store_call call = {0};
    struct sl_error error = {.code = SL_OK};
    if (all->code != SL_OK)
        return;
    enum sl_code code = object_put(&all->area->bucket, put->name, &contents, &call, &error);
    if (call.status == 404) /* an object is created, so only the bucket can be missing */
        code = sl_fail(&error, SL_INTERNAL, "%s", object_no_bucket);
    if (code != SL_OK && all->code == SL_OK) {
        all->code = code;
        all->error = error;
    }
}

/* Writes a JSON text under several names, PUT_AT_ONCE at a time. After a failure no further name is begun; those written before stay. */
static enum sl_code bucket_put_text(const struct store_area *area, const struct sl_str *names, size_t count,
                                    struct sl_str text, struct sl_error *error)
{
    struct text_putting all = {.area = area, .text = text};
    struct text_put *puts = calloc(count + 1, sizeof *puts); /* + 1, as the number may be 0 */
    void **items = calloc(count + 1, sizeof *items);
    bool has_memory = puts && items, is_done = false;
    for (size_t i = 0; has_memory && i < count; i++) {
        puts[i] = (struct text_put){&all, names[i]};
        items[i] = &puts[i];
    }
    if (has_memory)
        is_done = fiber_for_each(put_text, items, count, PUT_AT_ONCE);
    free(puts);
    free(items);
    if (!has_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (all.code != SL_OK && error)
        *error = all.error;
    return all.code == SL_OK && !is_done ? sl_fail(error, SL_CANCELLED, "cancelled") : all.code;
}

/* Downloads an object and maps its contents, always uncompressed: meta->is_packed is false. */
static enum sl_code bucket_open(const struct store_area *area, struct sl_str name, struct sl_mapping *mapping,
                                struct store_meta *meta, struct sl_error *error)
{
    struct store_tmp_file work = {.fd = -1};
    enum sl_code code = bucket_stat(area, name, false, meta, error);
    if (code == SL_OK)
        code = bucket_tmp_file(area, &work, error);
    if (code != SL_OK)
        return code;
    /* decompress, even if the response lacks Content-Encoding */
    struct object_store_call call = {.unwrap = meta->is_packed};
    code = object_get_mapped(&area->bucket, name, work.fd, mapping, &call, error);
    store_tmp_file_discard_on_pool(&work);
    meta->is_packed = false;
    return code;
}

static const char *bucket_url(const struct store_area *area, struct sl_str name, struct sl_arena *arena)
{
    return object_url(&area->bucket, name, PUBLIC_EXPIRES_S, arena);
}

static bool bucket_source(const struct store_area *area, struct sl_arena *arena, struct sl_str prefix,
                          struct source *source)
{
    source->type = area->bucket.config->s3_name.data ? SOURCE_S3 : SOURCE_GCS;
    return object_store_directory_config(&area->bucket, arena, prefix, &source->bucket);
}

static enum sl_code bucket_remove(const struct store_area *area, struct sl_str name, struct sl_error *error)
{
    return object_delete(&area->bucket, name, NULL, error);
}

/* Lists the objects whose names begin with `begin`, page by page, and calls `visit` with each name without its first `skip` bytes, until it
 * returns false. */
static enum sl_code visit_objects(const struct store_area *area, struct sl_str begin, size_t skip,
                                  store_area_visitor *visit, void *arg, struct sl_error *error)
{
    struct object_list *page = calloc(1, sizeof *page);
    struct sl_buf after = {0}; /* the last name of the page before */
    bool more = true;
    enum sl_code code = page ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    while (code == SL_OK && more) {
        code = object_list(&area->bucket, begin, sl_buf_view(&after), page, error);
        if (code != SL_OK)
            break;
        more = page->more && page->count && !page->failed;
        for (size_t i = 0; i < page->count; i++) {
            struct sl_str name = page->items[i].name;
            /* not an object whose name is only the skipped beginning: some tools make one for a directory */
            if (name.size > skip && !visit(arg, (struct sl_str){name.data + skip, name.size - skip})) {
                more = false;
                break;
            }
        }
        sl_buf_clear(&after);
        if (more)
            sl_buf_str(&after, page->items[page->count - 1].name);
        if (page->failed || after.failed)
            code = sl_fail(error, SL_BUSY, "out of memory");
        object_list_free(page);
    }
    sl_buf_free(&after);
    free(page);
    return code;
}

struct bucket_listing {
    struct sl_arena *arena;
    struct sl_str *names;
    size_t count, capacity, most;
    bool failed; /* out of memory */
};

/* Callback of visit_objects(): adds a copy of the name to the list. Objects in deeper directories (with a slash) are left out. Returns
 * false to end the listing: it has `most` names, or memory is used up (l->failed). */
static bool add_object(void *arg, struct sl_str name)
{
    struct bucket_listing *l = arg;
    if (memchr(name.data, '/', name.size))
        return true;
    const char *copy = sl_arena_strndup(l->arena, name.data, name.size);
    l->failed = !copy || !sl_grow_in_arena(l->arena, &l->names, &l->capacity, l->count + 1, sizeof *l->names);
    if (!l->failed)
        l->names[l->count++] = (struct sl_str){copy, name.size};
    return !l->failed && l->count < l->most;
}

/* Lists the first `most` names of the objects directly below "<directory>/"; a bucket's server returns them sorted. */
static enum sl_code bucket_list(const struct store_area *area, struct sl_str directory, size_t most,
                                struct sl_arena *arena, struct sl_str **names, size_t *count, struct sl_error *error)
{
    struct bucket_listing listing = {.arena = arena, .most = most};
    struct sl_buf prefix = {0};
    sl_buf_str(&prefix, directory);
    sl_buf_u8(&prefix, '/');
    struct sl_str begin = sl_buf_move_to_arena(&prefix, arena);
    enum sl_code code = begin.data ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && most)
        code = visit_objects(area, begin, begin.size, add_object, &listing, error);
    if (code == SL_OK && listing.failed)
        code = sl_fail(error, SL_BUSY, "out of memory");
    *names = listing.names;
    *count = listing.count;
    return code;
}

struct bucket_walk { /* the visitor that visit_in_directory() calls */
    store_area_visitor *visit;
    void *arg;
};

/* Callback of visit_objects(): calls the walk's visitor for names "<directory>/<file>" and skips all others, with fewer or more slashes.
 * False ends the walk. */
static bool visit_in_directory(void *arg, struct sl_str name)
{
    const struct bucket_walk *w = arg;
    const char *slash = memchr(name.data, '/', name.size);
    size_t at = slash ? (size_t)(slash - name.data) + 1 : name.size;
    return at == name.size || memchr(name.data + at, '/', name.size - at) || w->visit(w->arg, name);
}

/* Walks the objects "<directory>/<x>/<file>" whose <x> begins with `begin`: lists the names that begin with "<directory>/<begin>". */
static enum sl_code bucket_walk(const struct store_area *area, struct sl_str directory, struct sl_str begin,
                                store_area_visitor *visit, void *arg, struct sl_error *error)
{
    struct bucket_walk walk = {visit, arg};
    struct sl_buf prefix = {0};
    sl_buf_str(&prefix, directory);
    sl_buf_u8(&prefix, '/');
    sl_buf_str(&prefix, begin);
    enum sl_code code =
        prefix.failed ? sl_fail(error, SL_BUSY, "out of memory")
                      : visit_objects(area, sl_buf_view(&prefix), directory.size + 1, visit_in_directory, &walk, error);
    sl_buf_free(&prefix);
    return code;
}

/* SL_BUSY: out of memory; other errors: the configuration of the bucket cannot be used. */
enum sl_code store_area_open_bucket(struct store_area *area, const struct bucket_config *config, struct sl_arena *arena,
                                    struct sl_error *error)
{
    static const struct store_area_type type = {.source = bucket_source,
                                                .tmp_file = bucket_tmp_file,
                                                .stat = bucket_stat,
                                                .put = bucket_put,
                                                .replace = bucket_replace,
                                                .put_text = bucket_put_text,
                                                .open = bucket_open,
                                                .remove = bucket_remove,
                                                .list = bucket_list,
                                                .walk = bucket_walk,
                                                .url = bucket_url};
    const char *key; /* the faulty key of the configuration, not used here */
    *area = (struct store_area){NULL};
    /* "uploads" is the label of its requests in the metrics */
    enum sl_code code = object_store_open(&area->bucket, config, "uploads", arena, &key, error);
    if (code == SL_OK)
        area->type = &type;
    return code;
}
