/* A store in a bucket of S3 or GCS: requests for one object, which both have in common but for their form. */
#include "store/bucket.h"

#include <fcntl.h>
#include <unistd.h>

#include "cache/cache.h"
#include "core/pool.h"

static struct store_bucket *bucket; /* of Mozilla's store */

/* ---- requests ---- */

void object_header(struct object_request *request, const char *name, struct sl_str value)
{
    if (request->fetch.header_count < OBJECT_HEADERS)
        request->headers[request->fetch.header_count++] = (struct fetch_header){sl_str(name), {value}};
}

static enum sl_code object_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    struct object_request *request = arg;
    struct sl_str start = {body.data, body.size < 200 ? body.size : 200};
    request->status = status;
    if (status == 404)
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    if (request->is_final && request->is_final(status))
        return SL_OK;
    return sl_fail(error, status < 500 ? SL_PERMISSION_DENIED : SL_DOWNLOAD_ERROR, "status %d: " SL_STR_FMT, status,
                   SL_STR_ARG(start));
}

void object_begin(struct object_request *request, const struct store_bucket *of)
{
    *request = (struct object_request){.bucket = of};
    request->fetch = (struct fetch_request){.headers = request->headers,
                                            .trusted = true,
                                            .source = "uploads",
                                            .keep_wrapper = true,
                                            .whole = true,
                                            .refused = object_refused,
                                            .arg = request};
}

void object_end(struct object_request *request)
{
    sl_arena_free(&request->arena);
}

enum sl_code object_run(struct object_request *request, struct sl_buf *answer, struct sl_error *error)
{
    struct sl_buf own = {0};
    if (!request->fetch.url)
        return error->code ? error->code : sl_fail(error, SL_BUSY, "out of memory");
    if (!request->fetch.max_size)
        request->fetch.max_size = 1 << 20;
    enum sl_code code = fetch_text(&request->fetch, answer ? answer : &own, error);
    sl_buf_free(&own);
    return code;
}

/* ---- the back end ---- */

static enum sl_code bucket_work(struct store_work *work, struct sl_error *error)
{
    struct cache_tmp tmp;
    enum sl_code code = cache_tmp_create(&tmp, true, error);
    *work = (struct store_work){.fd = code == SL_OK ? tmp.fd : -1};
    return code;
}

static enum sl_code bucket_look(struct sl_str name, bool with_md5, struct store_meta *meta, struct sl_error *error)
{
    struct object_request request;
    (void)with_md5; /* servers know it */
    object_begin(&request, bucket);
    *error = (struct sl_error){0};
    enum sl_code code = bucket->kind->look(&request, name, meta, error);
    object_end(&request);
    return code;
}

struct bucket_file {
    int fd;
    struct sl_mapping mapping;
    enum sl_code code;
    struct sl_error *error;
};

static void bucket_map(void *arg)
{
    struct bucket_file *file = arg;
    file->code = sl_map_fd(file->fd, &file->mapping, file->error);
}

static void bucket_unmap(void *arg)
{
    sl_unmap(&((struct bucket_file *)arg)->mapping);
}

static void bucket_discard(void *arg)
{
    store_work_discard(arg);
}

static enum sl_code bucket_put(struct sl_str name, struct store_work *work, const struct store_meta *meta,
                               const char *media_type, struct sl_error *error)
{
    struct bucket_file file = {.fd = work->fd, .error = error};
    struct object_request request;
    enum sl_code code = pool_run(POOL_IO, bucket_map, &file, error);
    code = code == SL_OK ? file.code : code;
    if (code == SL_OK) {
        object_begin(&request, bucket);
        *error = (struct sl_error){0};
        code = bucket->kind->put(&request, name, file.mapping.bytes, meta, media_type, error);
        object_end(&request);
        pool_run(POOL_IO, bucket_unmap, &file, NULL);
        code = code == SL_NOT_FOUND ? sl_fail(error, SL_INTERNAL, "there is no such bucket") : code;
    }
    pool_run(POOL_IO, bucket_discard, work, NULL);
    return code;
}

static enum sl_code bucket_put_text(const struct sl_str *names, size_t count, struct sl_str text,
                                    struct sl_error *error)
{
    const struct store_meta meta = {.size = text.size};
    const struct sl_bytes contents = {(const uint8_t *)text.data, text.size};
    struct object_request request;
    enum sl_code code = SL_OK;
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        object_begin(&request, bucket);
        *error = (struct sl_error){0};
        code = bucket->kind->put(&request, names[i], contents, &meta, "application/json", error);
        object_end(&request);
    }
    return code == SL_NOT_FOUND ? sl_fail(error, SL_INTERNAL, "there is no such bucket") : code;
}

/* The contents, unpacked. */
static enum sl_code bucket_open(struct sl_str name, struct sl_mapping *mapping, struct store_meta *meta,
                                struct sl_error *error)
{
    struct store_work work = {.fd = -1};
    struct bucket_file file = {.error = error};
    struct object_request request;
    enum sl_code code = bucket_look(name, false, meta, error);
    if (code == SL_OK)
        code = bucket_work(&work, error);
    if (code != SL_OK)
        return code;
    object_begin(&request, bucket);
    *error = (struct sl_error){0};
    bucket->kind->get(&request, name, error);
    request.fetch.keep_wrapper = !meta->is_packed; /* a server or a proxy may drop Content-Encoding */
    code = request.fetch.url ? fetch_get(&request.fetch, work.fd, error)
           : error->code     ? error->code
                             : sl_fail(error, SL_BUSY, "out of memory");
    object_end(&request);
    file.fd = work.fd;
    if (code == SL_OK)
        code = pool_run(POOL_IO, bucket_map, &file, error);
    pool_run(POOL_IO, bucket_discard, &work, NULL);
    code = code == SL_OK ? file.code : code;
    meta->is_packed = false;
    *mapping = file.mapping;
    return code;
}

static const char *bucket_url(struct sl_str name, struct sl_arena *arena)
{
    return bucket->kind->url ? bucket->kind->url(bucket, name, arena) : NULL;
}

static bool bucket_source(struct sl_arena *arena, struct sl_str prefix, struct source *source)
{
    return bucket->kind->source(bucket, arena, prefix, source);
}

const struct store_backend *store_bucket_backend(struct store_bucket *of)
{
    static const struct store_backend backend = {.source = bucket_source,
                                                 .work = bucket_work,
                                                 .look = bucket_look,
                                                 .put = bucket_put,
                                                 .put_text = bucket_put_text,
                                                 .open = bucket_open,
                                                 .url = bucket_url};
    bucket = of;
    return &backend;
}

struct sl_str store_prefixed(struct sl_arena *arena, const char *prefix, struct sl_str name)
{
    struct sl_buf text = {0};
    while (prefix && *prefix == '/')
        prefix++;
    sl_buf_cstr(&text, prefix ? prefix : "");
    if (text.size && text.data[text.size - 1] != '/')
        sl_buf_u8(&text, '/');
    sl_buf_str(&text, name);
    return sl_buf_keep(&text, arena);
}

bool store_parse_number(struct sl_str text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.size; i++)
        if (!sl_is_digit(text.data[i]) || __builtin_mul_overflow(*number, 10u, number) ||
            __builtin_add_overflow(*number, (uint64_t)(text.data[i] - '0'), number))
            return false;
    return text.size > 0;
}
