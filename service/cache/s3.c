/* Objects of an S3 bucket, by presigned URLs. Without an endpoint the bucket is at Amazon. */
#include <stdlib.h>

#include "cache/bucket.h"
#include "core/loop.h"

enum { EXPIRES_S = 900 };

static struct aws_signing template; /* without method and time; the path is that of all objects */

static const char *sign(void *arg, struct sl_arena *arena)
{
    struct bucket_request *request = arg;
    request->signing->now_s = clock_wall_s();
    return aws_presign(arena, request->signing);
}

static bool s3_prepare(struct bucket_request *request, enum shared_op op, const char *name)
{
    struct aws_signing *signing = SL_ARENA_NEW(&request->arena, struct aws_signing);
    struct sl_buf path = {0};
    sl_buf_str(&path, template.path);
    fetch_encode(&path, sl_str(name), true);
    struct sl_str kept = sl_buf_keep(&path, &request->arena);
    if (!signing || !kept.data)
        return false;
    *signing = template;
    signing->path = kept;
    signing->method = op == SHARED_PUT ? "PUT" : op == SHARED_DEL ? "DELETE" : "GET";
    request->signing = signing;
    request->fetch.sign = sign;
    request->fetch.url = sign(request, &request->arena);
    if (op == SHARED_EXISTS)
        request->fetch.max_size = 1;
    if (op == SHARED_PUT) {
        request->fetch.method = "PUT";
        bucket_header(request, SL_STR("Content-Type"), SL_STR("application/octet-stream"));
        bucket_header(request, SL_STR("Content-Encoding"), SL_STR("zstd"));
        if (!request->unconditional)
            bucket_header(request, SL_STR("If-None-Match"), SL_STR("*"));
    }
    return true;
}

/* "some/where/", or nothing. */
static struct sl_str prefix_of(struct sl_arena *arena, const char *text)
{
    struct sl_buf prefix = {0};
    while (text && *text == '/')
        text++;
    sl_buf_cstr(&prefix, text ? text : "");
    if (prefix.size && prefix.data[prefix.size - 1] != '/')
        sl_buf_u8(&prefix, '/');
    return sl_buf_keep(&prefix, arena);
}

static struct sl_str from_environment(const char *name)
{
    const char *text = getenv(name);
    return sl_str(text ? text : "");
}

static const struct bucket bucket = {.name = "s3", .prepare = s3_prepare};

struct shared_backend *shared_s3(const struct config *config, struct sl_arena *arena, const char **key,
                                 struct sl_error *error)
{
    const struct config_shared *shared = &config->shared;
    struct aws_bucket place = {sl_str(shared->s3_bucket), sl_str(shared->s3_region ? shared->s3_region : "us-east-1"),
                               sl_str(shared->s3_endpoint)};
    struct aws_keys *keys = &template.keys;
    template = (struct aws_signing){.expires_s = EXPIRES_S};
    *keys = (struct aws_keys){secret_open(shared->s3_access_key), secret_open(shared->s3_secret_key), SL_STR("")};
    if (!keys->access_key.size)
        *keys = (struct aws_keys){from_environment("AWS_ACCESS_KEY_ID"), from_environment("AWS_SECRET_ACCESS_KEY"),
                                  from_environment("AWS_SESSION_TOKEN")};
    if (!keys->access_key.size || !keys->secret_key.size) {
        *key = "shared_cache.s3";
        sl_fail(error, SL_MALFORMED,
                "no credentials: set access_key and secret_key, or the environment's AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY");
        return NULL;
    }
    if (!aws_address(arena, &place, prefix_of(arena, shared->s3_prefix), &template)) {
        *key = shared->s3_endpoint ? "shared_cache.s3.endpoint" : "shared_cache.s3.region";
        sl_fail(error, SL_MALFORMED,
                shared->s3_endpoint ? "the value is not the URL of a server (example: https://s3.example.com)"
                                    : "the value is not the name of a region (example: eu-central-1)");
        return NULL;
    }
    return bucket_backend(&bucket, config);
}
