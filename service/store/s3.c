/* Objects of an S3 bucket, by presigned URLs ("Amazon S3 API Reference": HeadObject, PutObject, GetObject). */
#include <stdio.h>
#include <stdlib.h>

#include "core/loop.h"
#include "fetch/aws.h"
#include "id/id.h"
#include "store/bucket.h"

enum { EXPIRES_S = 900, PUBLIC_EXPIRES_S = 3600 };

static const struct config_store *s3_config;
static struct aws_keys s3_keys;

/* ---- signed requests ---- */

static const char *s3_sign(void *arg, struct sl_arena *arena)
{
    struct object_request *request = arg;
    struct aws_signing *signing = request->own;
    signing->now_s = clock_wall_s();
    return aws_presign(arena, signing);
}

static struct aws_signing *s3_signing(struct sl_arena *arena, const char *method, struct sl_str name)
{
    struct aws_bucket place = {sl_str(s3_config->s3_bucket),
                               sl_str(s3_config->s3_region ? s3_config->s3_region : "us-east-1"),
                               sl_str(s3_config->s3_endpoint)};
    struct aws_signing *signing = SL_ARENA_NEW(arena, struct aws_signing);
    struct sl_str key = store_prefixed(arena, s3_config->s3_prefix, name);
    if (!signing || !key.data)
        return NULL;
    *signing = (struct aws_signing){.method = method, .expires_s = EXPIRES_S, .keys = s3_keys};
    return aws_address(arena, &place, key, signing) ? signing : NULL;
}

/* The fields are signed, too: sorted by their names. */
static void s3_prepare(struct object_request *request, const char *method, struct sl_str name,
                       const struct aws_field *fields, size_t count)
{
    struct aws_signing *signing = s3_signing(&request->arena, method, name);
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

static const char *s3_url(struct sl_str name, struct sl_arena *arena)
{
    struct aws_signing *signing = s3_signing(arena, "GET", name);
    if (!signing)
        return NULL;
    signing->expires_s = PUBLIC_EXPIRES_S;
    signing->now_s = clock_wall_s();
    return aws_presign(arena, signing);
}

static bool s3_source(struct sl_arena *arena, struct sl_str prefix, struct source *source)
{
    source->type = SOURCE_S3;
    source->bucket = sl_str(s3_config->s3_bucket);
    source->region = sl_str(s3_config->s3_region ? s3_config->s3_region : "us-east-1");
    source->endpoint = sl_str(s3_config->s3_endpoint);
    source->prefix = store_prefixed(arena, s3_config->s3_prefix, prefix);
    source->credentials = CREDENTIALS_STATIC;
    source->access_key.hidden = s3_keys.access_key;
    source->secret_key.hidden = s3_keys.secret_key;
    source->session_token.hidden = s3_keys.session_token;
    return source->prefix.data != NULL;
}

static struct sl_str s3_from_environment(const char *name)
{
    const char *text = getenv(name);
    return sl_str(text ? text : "");
}

const struct store_backend *store_s3(const struct config_store *config, struct sl_arena *arena, const char **key,
                                     struct sl_error *error)
{
    static const struct bucket_kind kind = {
        .look = s3_look, .put = s3_put, .get = s3_get, .url = s3_url, .source = s3_source};
    s3_config = config;
    s3_keys = (struct aws_keys){secret_open(config->s3_access_key), secret_open(config->s3_secret_key), SL_STR("")};
    if (!s3_keys.access_key.size)
        s3_keys =
            (struct aws_keys){s3_from_environment("AWS_ACCESS_KEY_ID"), s3_from_environment("AWS_SECRET_ACCESS_KEY"),
                              s3_from_environment("AWS_SESSION_TOKEN")};
    if (!s3_keys.access_key.size || !s3_keys.secret_key.size) {
        *key = "mozilla.store.s3";
        sl_fail(error, SL_MALFORMED,
                "no credentials: set access_key and secret_key, or the environment's AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY");
        return NULL;
    }
    if (!s3_signing(arena, "GET", SL_STR("x"))) {
        *key = config->s3_endpoint ? "mozilla.store.s3.endpoint" : "mozilla.store.s3.region";
        sl_fail(error, SL_MALFORMED,
                config->s3_endpoint ? "the value is not the URL of a server (example: https://s3.example.com)"
                                    : "the value is not the name of a region (example: eu-central-1)");
        return NULL;
    }
    return store_bucket_backend(&kind);
}
