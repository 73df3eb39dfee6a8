/* A store in a bucket of S3 or GCS. */
#include "store/impl.h"

#include <stdio.h>

#include "cache/cache.h"
#include "core/pool.h"
#include "objectstore/objectstore.h"

enum { PUBLIC_EXPIRES_S = 3600 };

static struct object_store bucket;

/* Creates the temporary file that receives an upload: in the cache directory, without a name, as it is sent to the bucket
 * afterwards. */
static enum sl_code bucket_work(struct store_tmp_file *work, struct sl_error *error)
{
    struct cache_tmp tmp;
    enum sl_code code = cache_tmp_create(&tmp, true, error);
    *work = (struct store_tmp_file){.fd = code == SL_OK ? tmp.fd : -1};
    return code;
}

/* Reads an object's properties. The original size and MD5 of a compressed object are in its metadata. The MD5 in the ETag
 * serves for uncompressed objects only: of a compressed one it is the MD5 of the compressed bytes. */
static enum sl_code bucket_stat(struct sl_str name, bool with_md5, struct store_meta *meta, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct object_info info;
    struct object_field known[] = {{"original_size", {NULL, 0}}, {"original_md5_hash", {NULL, 0}}};
    size_t size;
    (void)with_md5; /* servers return the MD5 in any case */
    enum sl_code code = object_head(&bucket, name, &arena, &info, known, 2, error);
    *meta =
        (struct store_meta){.size = info.size, .is_packed = info.is_gzip, .modified_ns = info.modified_s * 1000000000};
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

static void bucket_discard(void *arg)
{
    store_tmp_file_discard(arg);
}

/* Uploads the file and discards it in any case. A 404 means that the bucket does not exist, an error of the configuration. */
static enum sl_code bucket_put(struct sl_str name, struct store_tmp_file *work, const struct store_meta *meta,
                               const char *media_type, struct sl_error *error)
{
    char size[24], md5[2 * sizeof meta->md5 + 1];
    struct object_store_call call = {0};
    snprintf(size, sizeof size, "%llu", (unsigned long long)meta->original_size);
    sl_hex_encode(meta->md5, sizeof meta->md5, md5);
    const struct object_field metadata[] = {{"original_size", sl_str(size)}, {"original_md5_hash", sl_str(md5)}};
    struct object_contents contents = {.media_type = media_type,
                                       .no_transform = true,
                                       .encoding = meta->is_packed ? "gzip" : NULL,
                                       .metadata = metadata,
                                       .metadata_count = meta->is_packed ? 2 : 0};
    enum sl_code code = object_put_file(&bucket, name, work->fd, contents, &call, error);
    pool_run(POOL_IO, bucket_discard, work, NULL);
    return call.status == 404 ? sl_fail(error, SL_INTERNAL, "%s", object_no_bucket) : code;
}

/* Writes a JSON text under several names; stops at the first failure. */
static enum sl_code bucket_put_text(const struct sl_str *names, size_t count, struct sl_str text,
                                    struct sl_error *error)
{
    const struct object_contents contents = {
        .bytes = {(const uint8_t *)text.data, text.size}, .media_type = "application/json", .no_transform = true};
    struct object_store_call call = {0};
    enum sl_code code = SL_OK;
    for (size_t i = 0; code == SL_OK && i < count; i++)
        code = object_put(&bucket, names[i], &contents, &call, error);
    return call.status == 404 ? sl_fail(error, SL_INTERNAL, "%s", object_no_bucket) : code;
}

/* Returns the uncompressed contents. */
static enum sl_code bucket_open(struct sl_str name, struct sl_mapping *mapping, struct store_meta *meta,
                                struct sl_error *error)
{
    struct store_tmp_file work = {.fd = -1};
    enum sl_code code = bucket_stat(name, false, meta, error);
    if (code == SL_OK)
        code = bucket_work(&work, error);
    if (code != SL_OK)
        return code;
    struct object_store_call call = {.unwrap = meta->is_packed}; /* also if a server or proxy drops Content-Encoding */
    code = object_get_mapped(&bucket, name, work.fd, mapping, &call, error);
    pool_run(POOL_IO, bucket_discard, &work, NULL);
    meta->is_packed = false;
    return code;
}

static const char *bucket_url(struct sl_str name, struct sl_arena *arena)
{
    return object_url(&bucket, name, PUBLIC_EXPIRES_S, arena);
}

static bool bucket_source(struct sl_arena *arena, struct sl_str prefix, struct source *source)
{
    source->type = bucket.config->s3_name.data ? SOURCE_S3 : SOURCE_GCS;
    return object_store_directory_config(&bucket, arena, prefix, &source->bucket);
}

const struct store_backend *store_bucket_backend(const struct config_store *config, struct sl_arena *arena,
                                                 struct sl_error *error)
{
    static const struct store_backend backend = {.source = bucket_source,
                                                 .work = bucket_work,
                                                 .stat = bucket_stat,
                                                 .put = bucket_put,
                                                 .put_text = bucket_put_text,
                                                 .open = bucket_open,
                                                 .url = bucket_url};
    const char *key;
    return object_store_open(&bucket, &config->bucket, "uploads", arena, &key, error) == SL_OK ? &backend : NULL;
}
