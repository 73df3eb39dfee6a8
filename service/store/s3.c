/* Objects of an S3 bucket, by presigned URLs ("Amazon S3 API Reference": HeadObject, PutObject, GetObject). */
#include <stdio.h>
#include <stdlib.h>

#include "core/loop.h"
#include "fetch/aws.h"
#include "id/id.h"
#include "origin/xml.h"
#include "store/bucket.h"

enum { EXPIRES_S = 900, PUBLIC_EXPIRES_S = 3600, LIST_BYTES = 8 << 20 };

/* ---- signed requests ---- */

static const char *s3_sign(void *arg, struct sl_arena *arena)
{
    struct object_request *request = arg;
    struct aws_signing *signing = request->own;
    signing->now_s = clock_wall_s();
    return aws_presign(arena, signing);
}

static struct aws_bucket s3_place(const struct config_bucket *config)
{
    return (struct aws_bucket){sl_str(config->s3_bucket), sl_str(config->s3_region ? config->s3_region : "us-east-1"),
                               sl_str(config->s3_endpoint)};
}

static struct aws_signing *s3_signing(const struct store_bucket *bucket, struct sl_arena *arena, const char *method,
                                      struct sl_str name)
{
    struct aws_bucket place = s3_place(bucket->config);
    struct aws_signing *signing = SL_ARENA_NEW(arena, struct aws_signing);
    struct sl_str key = store_prefixed(arena, bucket->config->s3_prefix, name);
    if (!signing || !key.data)
        return NULL;
    *signing = (struct aws_signing){.method = method, .expires_s = EXPIRES_S, .keys = bucket->keys};
    return aws_address(arena, &place, key, signing) ? signing : NULL;
}

/* The fields are signed, too: sorted by their names. */
static void s3_prepare(struct object_request *request, const char *method, struct sl_str name,
                       const struct aws_field *fields, size_t count)
{
    struct aws_signing *signing = s3_signing(request->bucket, &request->arena, method, name);
    if (!signing)
        return;
    signing->fields = fields;
    signing->field_count = count;
    for (size_t i = 0; i < count; i++)
        object_header(request, fields[i].name, fields[i].value);
    request->own = signing;
    request->fetch.sign = s3_sign;
    request->fetch.url = s3_sign(request, &request->arena);
}

/* ---- the bucket ---- */

static void s3_read_field(void *arg, struct sl_str name, struct sl_str value)
{
    struct object_request *request = arg;
    struct store_meta *meta = request->meta;
    size_t size;
    if (sl_str_equal_nocase(name, SL_STR("content-length")))
        store_parse_number(value, &meta->size);
    else if (sl_str_equal_nocase(name, SL_STR("content-encoding")))
        meta->is_packed = sl_str_equal_nocase(value, SL_STR("gzip"));
    else if (sl_str_equal_nocase(name, SL_STR("x-amz-meta-original_size")))
        request->has_size = store_parse_number(value, &meta->original_size);
    else if (sl_str_equal_nocase(name, SL_STR("x-amz-meta-original_md5_hash")))
        request->has_md5 = sl_hex_decode(value, meta->md5, sizeof meta->md5, &size) && size == sizeof meta->md5;
    else if (sl_str_equal_nocase(name, SL_STR("etag")) && value.size == 34 && !request->has_md5)
        request->has_etag = sl_hex_decode((struct sl_str){value.data + 1, 32}, request->etag, 16, &size) && size == 16;
}

/* The tag of an object that was stored in one piece is its MD5; it says nothing of what is packed in it. */
static enum sl_code s3_look(struct object_request *request, struct sl_str name, struct store_meta *meta,
                            struct sl_error *error)
{
    int64_t modified_s = 0;
    s3_prepare(request, "HEAD", name, NULL, 0);
    request->fetch.method = "HEAD";
    request->fetch.max_size = INT64_MAX;
    request->fetch.field = s3_read_field;
    request->fetch.modified_s = &modified_s;
    request->meta = meta;
    enum sl_code code = object_run(request, NULL, error);
    meta->modified_ns = modified_s * 1000000000;
    meta->has_original = request->has_size && request->has_md5;
    if (!meta->is_packed && !meta->has_original && request->has_etag) {
        memcpy(meta->md5, request->etag, sizeof meta->md5);
        meta->original_size = meta->size;
        meta->has_original = true;
    }
    return code;
}

static enum sl_code s3_put(struct object_request *request, struct sl_str name, struct sl_bytes contents,
                           const struct store_meta *meta, const char *media_type, struct sl_error *error)
{
    char size[24];
    struct sl_buf md5 = {0};
    snprintf(size, sizeof size, "%llu", (unsigned long long)meta->original_size);
    sl_buf_hex(&md5, meta->md5, sizeof meta->md5);
    const struct aws_field fields[] = {{"x-amz-meta-original_md5_hash", sl_buf_keep(&md5, &request->arena)},
                                       {"x-amz-meta-original_size", sl_str(size)}};
    s3_prepare(request, "PUT", name, fields, meta->is_packed ? 2 : 0);
    request->fetch.method = "PUT";
    request->fetch.body.hidden = (struct sl_str){(const char *)contents.data, contents.size};
    object_header(request, "Content-Type", sl_str(media_type));
    object_header(request, "Cache-Control", SL_STR("no-transform"));
    if (meta->is_packed)
        object_header(request, "Content-Encoding", SL_STR("gzip"));
    return object_run(request, NULL, error);
}

static void s3_get(struct object_request *request, struct sl_str name, struct sl_error *error)
{
    (void)error;
    s3_prepare(request, "GET", name, NULL, 0);
}

static enum sl_code s3_delete(struct object_request *request, struct sl_str name, struct sl_error *error)
{
    s3_prepare(request, "DELETE", name, NULL, 0);
    request->fetch.method = "DELETE";
    return object_run(request, NULL, error);
}

/* ---- lists: ListObjectsV2 ---- */

struct s3_list {
    struct store_objects *objects;
    struct sl_buf key, modified; /* of the object that is being read */
};

static void s3_take_text(void *arg, const char *element, unsigned depth, struct sl_str text)
{
    struct s3_list *list = arg;
    if (depth == 2 && strcmp(element, "IsTruncated") == 0) {
        list->objects->more = sl_str_equal(text, SL_STR("true"));
    } else if (depth == 3 && strcmp(element, "Key") == 0) {
        sl_buf_clear(&list->key);
        sl_buf_str(&list->key, text);
    } else if (depth == 3 && strcmp(element, "LastModified") == 0) {
        sl_buf_clear(&list->modified);
        sl_buf_str(&list->modified, text);
    } else if (depth == 2 && strcmp(element, "Contents") == 0) {
        list->objects->failed |= list->key.failed || list->modified.failed;
        store_objects_add(list->objects, sl_buf_view(&list->key), sl_buf_view(&list->modified));
    }
}

static enum sl_code s3_list(struct object_request *request, struct sl_str prefix, struct sl_str after,
                            struct store_objects *objects, struct sl_error *error)
{
    const char *before = request->bucket->config->s3_prefix;
    struct sl_str whole = store_prefixed(&request->arena, before, prefix);
    struct sl_str start = after.size ? store_prefixed(&request->arena, before, after) : SL_STR("");
    struct aws_bucket place = s3_place(request->bucket->config);
    struct aws_signing *signing = SL_ARENA_NEW(&request->arena, struct aws_signing);
    const struct aws_field query[] = {
        {"list-type", SL_STR("2")}, {"max-keys", SL_STR("1000")}, {"prefix", whole}, {"start-after", start}};
    struct s3_list list = {.objects = objects};
    struct sl_buf answer = {0};
    objects->skipped = store_prefixed(&objects->arena, before, SL_STR(""));
    if (!whole.data || !start.data || !signing || !objects->skipped.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    *signing = (struct aws_signing){.method = "GET",
                                    .expires_s = EXPIRES_S,
                                    .keys = request->bucket->keys,
                                    .query = query,
                                    .query_count = start.size ? 4 : 3};
    if (!aws_address(&request->arena, &place, SL_STR(""), signing))
        return sl_fail(error, SL_BUSY, "out of memory");
    request->own = signing;
    request->fetch.sign = s3_sign;
    request->fetch.url = s3_sign(request, &request->arena);
    request->fetch.max_size = LIST_BYTES;
    enum sl_code code = object_run(request, &answer, error);
    if (code == SL_OK && !xml_walk(sl_buf_view(&answer), s3_take_text, &list))
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "the answer is no list of objects");
    sl_buf_free(&list.key);
    sl_buf_free(&list.modified);
    sl_buf_free(&answer);
    return code;
}

static const char *s3_url(const struct store_bucket *bucket, struct sl_str name, struct sl_arena *arena)
{
    struct aws_signing *signing = s3_signing(bucket, arena, "GET", name);
    if (!signing)
        return NULL;
    signing->expires_s = PUBLIC_EXPIRES_S;
    signing->now_s = clock_wall_s();
    return aws_presign(arena, signing);
}

static bool s3_source(const struct store_bucket *bucket, struct sl_arena *arena, struct sl_str prefix,
                      struct source *source)
{
    struct aws_bucket place = s3_place(bucket->config);
    source->type = SOURCE_S3;
    source->bucket = place.name;
    source->region = place.region;
    source->endpoint = place.endpoint;
    source->prefix = store_prefixed(arena, bucket->config->s3_prefix, prefix);
    source->credentials = CREDENTIALS_STATIC;
    source->access_key.hidden = bucket->keys.access_key;
    source->secret_key.hidden = bucket->keys.secret_key;
    source->session_token.hidden = bucket->keys.session_token;
    return source->prefix.data != NULL;
}

static struct sl_str s3_from_environment(const char *name)
{
    const char *text = getenv(name);
    return sl_str(text ? text : "");
}

bool store_s3_open(struct store_bucket *bucket, struct sl_arena *arena, const char **key, struct sl_error *error)
{
    static const struct bucket_kind kind = {.look = s3_look,
                                            .put = s3_put,
                                            .del = s3_delete,
                                            .list = s3_list,
                                            .get = s3_get,
                                            .url = s3_url,
                                            .source = s3_source};
    const struct config_bucket *config = bucket->config;
    struct aws_keys *keys = &bucket->keys;
    bucket->kind = &kind;
    *keys = (struct aws_keys){secret_open(config->s3_access_key), secret_open(config->s3_secret_key), SL_STR("")};
    if (!keys->access_key.size)
        *keys =
            (struct aws_keys){s3_from_environment("AWS_ACCESS_KEY_ID"), s3_from_environment("AWS_SECRET_ACCESS_KEY"),
                              s3_from_environment("AWS_SESSION_TOKEN")};
    *key = bucket->names->s3;
    if (!keys->access_key.size || !keys->secret_key.size) {
        sl_fail(error, SL_MALFORMED,
                "no credentials: set access_key and secret_key, or the environment's AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY");
        return false;
    }
    if (s3_signing(bucket, arena, "GET", SL_STR("x")))
        return true;
    *key = config->s3_endpoint ? bucket->names->s3_endpoint : bucket->names->s3_region;
    sl_fail(error, SL_MALFORMED,
            config->s3_endpoint ? "the value is not the URL of a server (example: https://s3.example.com)"
                                : "the value is not the name of a region (example: eu-central-1)");
    return false;
}
