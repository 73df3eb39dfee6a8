#include "store/bucket.h"

#include "core/pool.h"

/* ---- life ---- */

const struct store_bucket_keys store_mozilla_keys = {"mozilla.store.s3", "mozilla.store.s3.endpoint",
                                                     "mozilla.store.s3.region",
                                                     "mozilla.store.gcs.service_account_path"};
const struct store_bucket_keys store_symbfile_keys = {"symbfile.store.s3", "symbfile.store.s3.endpoint",
                                                      "symbfile.store.s3.region",
                                                      "symbfile.store.gcs.service_account_path"};

struct store_bucket *store_bucket_open(const struct config_bucket *config, const struct store_bucket_keys *keys,
                                       struct sl_arena *arena, const char **key, struct sl_error *error)
{
    struct store_bucket *bucket = SL_ARENA_NEW(arena, struct store_bucket);
    *error = (struct sl_error){0};
    *key = config->s3_bucket ? keys->s3 : keys->gcs_account;
    if (!bucket) {
        sl_fail(error, SL_BUSY, "out of memory");
        return NULL;
    }
    *bucket = (struct store_bucket){.config = config, .names = keys};
    bool good =
        config->s3_bucket ? store_s3_open(bucket, arena, key, error) : store_gcs_open(bucket, arena, key, error);
    if (good)
        return bucket;
    store_bucket_close(bucket);
    return NULL;
}

void store_bucket_close(struct store_bucket *bucket)
{
    if (bucket)
        memo_free(&bucket->tokens);
}

/* ---- objects ---- */

enum sl_code store_object_get(struct store_bucket *bucket, struct sl_str name, int fd, struct sl_error *error)
{
    struct object_request request;
    object_begin(&request, bucket);
    *error = (struct sl_error){0};
    bucket->kind->get(&request, name, error);
    enum sl_code code = request.fetch.url ? fetch_get(&request.fetch, fd, error)
                        : error->code     ? error->code
                                          : sl_fail(error, SL_BUSY, "out of memory");
    object_end(&request);
    return code;
}

static enum sl_code read_object(struct object_request *request, struct sl_str name, uint64_t most, struct sl_buf *text,
                                struct sl_error *error)
{
    *error = (struct sl_error){0};
    request->bucket->kind->get(request, name, error);
    request->fetch.max_size = most;
    enum sl_code code = object_run(request, text, error);
    object_end(request);
    return code == SL_OK && text->failed ? sl_fail(error, SL_BUSY, "out of memory") : code;
}

enum sl_code store_object_read(struct store_bucket *bucket, struct sl_str name, uint64_t most, struct sl_buf *text,
                               struct sl_error *error)
{
    struct object_request request;
    object_begin(&request, bucket);
    return read_object(&request, name, most, text, error);
}

enum sl_code store_object_poll(struct store_bucket *bucket, struct sl_str name, uint64_t timeout_ns, uint64_t most,
                               struct sl_buf *text, struct sl_error *error)
{
    struct object_request request;
    object_begin(&request, bucket);
    request.fetch.timeout_ns = timeout_ns;
    request.fetch.attempts = 1;
    return read_object(&request, name, most, text, error);
}

static enum sl_code put_bytes(struct store_bucket *bucket, struct sl_str name, struct sl_bytes bytes,
                              struct sl_error *error)
{
    const struct store_meta meta = {.size = bytes.size};
    struct object_request request;
    object_begin(&request, bucket);
    *error = (struct sl_error){0};
    enum sl_code code = bucket->kind->put(&request, name, bytes, &meta, "application/octet-stream", error);
    object_end(&request);
    return code == SL_NOT_FOUND ? sl_fail(error, SL_DOWNLOAD_ERROR, "there is no such bucket") : code;
}

enum sl_code store_object_write(struct store_bucket *bucket, struct sl_str name, struct sl_str text,
                                struct sl_error *error)
{
    return put_bytes(bucket, name, (struct sl_bytes){(const uint8_t *)text.data, text.size}, error);
}

struct object_file {
    int fd;
    struct sl_mapping mapping;
    enum sl_code code;
    struct sl_error *error;
};

static void object_map(void *arg)
{
    struct object_file *file = arg;
    file->code = sl_map_fd(file->fd, &file->mapping, file->error);
}

static void object_unmap(void *arg)
{
    sl_unmap(&((struct object_file *)arg)->mapping);
}

enum sl_code store_object_put(struct store_bucket *bucket, struct sl_str name, int fd, struct sl_error *error)
{
    struct object_file file = {.fd = fd, .error = error};
    enum sl_code code = pool_run(POOL_IO, object_map, &file, error);
    code = code == SL_OK ? file.code : code;
    if (code != SL_OK)
        return code;
    code = put_bytes(bucket, name, file.mapping.bytes, error);
    if (pool_run(POOL_IO, object_unmap, &file, NULL) != SL_OK)
        object_unmap(&file);
    return code;
}

enum sl_code store_object_delete(struct store_bucket *bucket, struct sl_str name, struct sl_error *error)
{
    struct object_request request;
    object_begin(&request, bucket);
    *error = (struct sl_error){0};
    enum sl_code code = bucket->kind->del(&request, name, error);
    object_end(&request);
    return code == SL_NOT_FOUND ? SL_OK : code;
}

/* ---- lists ---- */

bool store_objects_add(struct store_objects *objects, struct sl_str name, struct sl_str modified)
{
    if (!sl_str_starts(name, objects->skipped))
        return true;
    if (objects->count == STORE_LIST_MAX) {
        objects->more = true;
        return false;
    }
    name = (struct sl_str){name.data + objects->skipped.size, name.size - objects->skipped.size};
    struct store_object *object = &objects->items[objects->count];
    object->name = (struct sl_str){sl_arena_strndup(&objects->arena, name.data, name.size), name.size};
    object->modified = (struct sl_str){
        sl_arena_strndup(&objects->arena, modified.data ? modified.data : "", modified.size), modified.size};
    objects->failed |= !object->name.data || !object->modified.data;
    objects->count += !objects->failed;
    return !objects->failed;
}

enum sl_code store_objects_list(struct store_bucket *bucket, struct sl_str prefix, struct sl_str after,
                                struct store_objects *objects, struct sl_error *error)
{
    struct object_request request;
    object_begin(&request, bucket);
    *error = (struct sl_error){0};
    *objects = (struct store_objects){.count = 0};
    enum sl_code code = bucket->kind->list(&request, prefix, after, objects, error);
    object_end(&request);
    if (code == SL_NOT_FOUND)
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "there is no such bucket");
    return code == SL_OK && objects->failed ? sl_fail(error, SL_BUSY, "out of memory") : code;
}

void store_objects_free(struct store_objects *objects)
{
    sl_arena_free(&objects->arena);
    objects->count = 0;
}
