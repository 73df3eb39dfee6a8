/* Objects of an S3 bucket, by presigned URLs. Without an endpoint the bucket is at Amazon. */
#include <stdlib.h>

#include "cache/bucket.h"
#include "core/loop.h"

enum { EXPIRES_S = 900 };

static struct {
    struct s3_signing signing; /* without method, path and time */
    struct sl_str base;        /* percent-encoded path up to the object's name */
} s3;

static const char *sign(void *arg, struct sl_arena *arena)
{
    struct bucket_request *request = arg;
    struct s3_signing *signing = request->signing;
    signing->now_s = clock_wall_s();
    return s3_presign(signing, arena);
}

static bool prepare(struct bucket_request *request, enum shared_op op, const char *name)
{
    struct s3_signing *signing = SL_ARENA_NEW(&request->arena, struct s3_signing);
    struct sl_buf path = {0};
    sl_buf_str(&path, s3.base);
    bucket_encode(&path, sl_str(name), true);
    size_t size = path.size;
    const char *text = bucket_text(&request->arena, &path);
    if (!signing || !text)
        return false;
    *signing = s3.signing;
    signing->path = (struct sl_str){text, size};
    signing->method = op == SHARED_PUT ? "PUT" : "GET";
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

/* ---- where the bucket is ---- */
static struct sl_str keep(struct sl_arena *arena, struct sl_buf *buf)
{
    const char *text = bucket_text(arena, buf);
    return sl_str(text ? text : "");
}

/* The path of names below `before`: the bucket, unless it is part of the host's name, and the prefix. */
static struct sl_str base_of(struct sl_arena *arena, struct sl_str before, const char *bucket, const char *prefix)
{
    struct sl_buf path = {0};
    sl_buf_str(&path, before);
    sl_buf_u8(&path, '/');
    if (bucket) {
        bucket_encode(&path, sl_str(bucket), false);
        sl_buf_u8(&path, '/');
    }
    while (prefix && *prefix == '/')
        prefix++;
    if (prefix && *prefix) {
        bucket_encode(&path, sl_str(prefix), true);
        if (prefix[strlen(prefix) - 1] != '/')
            sl_buf_u8(&path, '/');
    }
    return keep(arena, &path);
}

static bool at_endpoint(struct sl_arena *arena, const struct config_shared *config)
{
    struct sl_buf text = {0};
    if (!strstr(config->s3_endpoint, "://"))
        sl_buf_cstr(&text, "https://");
    sl_buf_cstr(&text, config->s3_endpoint);
    struct sl_str url = keep(arena, &text);
    if (!fetch_url_valid(url.data) || url.data[strcspn(url.data, "@?#")])
        return false;
    const char *host = strstr(url.data, "://") + 3;
    size_t size = strcspn(host, "/");
    struct sl_str before = sl_str(host + size);
    while (sl_str_ends(before, SL_STR("/")))
        before.size--;
    s3.signing.scheme = (struct sl_str){url.data, (size_t)(host - url.data)};
    s3.signing.host = (struct sl_str){host, size};
    s3.base = base_of(arena, before, config->s3_bucket, config->s3_prefix);
    return size > 0;
}

/* The bucket is in the host's name, unless dots in it would defeat the certificate. */
static void at_amazon(struct sl_arena *arena, const struct config_shared *config)
{
    struct sl_buf host = {0};
    bool dots = strchr(config->s3_bucket, '.') != NULL;
    sl_buf_printf(&host, "%s%ss3." SL_STR_FMT ".amazonaws.com%s", dots ? "" : config->s3_bucket, dots ? "" : ".",
                  SL_STR_ARG(s3.signing.region), sl_str_starts(s3.signing.region, SL_STR("cn-")) ? ".cn" : "");
    s3.signing.scheme = SL_STR("https://");
    s3.signing.host = keep(arena, &host);
    s3.base = base_of(arena, SL_STR(""), dots ? config->s3_bucket : NULL, config->s3_prefix);
}

static struct sl_str from_environment(const char *name)
{
    const char *text = getenv(name);
    return sl_str(text ? text : "");
}

static const struct bucket bucket = {.name = "s3", .prepare = prepare};

struct shared_backend *shared_s3(const struct config *config, struct sl_arena *arena, struct sl_error *error)
{
    const struct config_shared *shared = &config->shared;
    s3.signing = (struct s3_signing){.region = sl_str(shared->s3_region ? shared->s3_region : "us-east-1"),
                                     .access_key = secret_open(shared->s3_access_key),
                                     .secret_key = secret_open(shared->s3_secret_key),
                                     .expires_s = EXPIRES_S};
    if (!s3.signing.access_key.size) {
        s3.signing.access_key = from_environment("AWS_ACCESS_KEY_ID");
        s3.signing.secret_key = from_environment("AWS_SECRET_ACCESS_KEY");
        s3.signing.session_token = from_environment("AWS_SESSION_TOKEN");
    }
    if (!s3.signing.access_key.size || !s3.signing.secret_key.size) {
        sl_fail(error, SL_MALFORMED, "shared_cache.s3 needs access_key and secret_key");
        return NULL;
    }
    if (!shared->s3_endpoint) {
        at_amazon(arena, shared);
    } else if (!at_endpoint(arena, shared)) {
        sl_fail(error, SL_MALFORMED, "shared_cache.s3.endpoint is not the URL of a server");
        return NULL;
    }
    return bucket_backend(&bucket, config);
}
