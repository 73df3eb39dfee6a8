#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cache/bucket.h"

enum { DIGEST = 32 };

struct stamp {
    char day[16], time[32];
};

static bool hmac(const void *key, size_t key_size, struct sl_str text, uint8_t out[DIGEST])
{
    return HMAC(EVP_sha256(), key, (int)key_size, (const unsigned char *)text.data, text.size, out, NULL) != NULL;
}

/* Day, region and service each make the next key out of the one before. */
static bool derive_key(const struct s3_signing *s, const char *day, uint8_t key[DIGEST])
{
    struct sl_buf start = {0};
    const struct sl_str steps[] = {sl_str(day), s->region, SL_STR("s3"), SL_STR("aws4_request")};
    sl_buf_cstr(&start, "AWS4");
    sl_buf_str(&start, s->secret_key);
    bool ok = !start.failed && hmac(start.data, start.size, steps[0], key);
    for (int i = 1; ok && i < 4; i++)
        ok = hmac(key, DIGEST, steps[i], key);
    if (start.data)
        explicit_bzero(start.data, start.size);
    sl_buf_free(&start);
    return ok;
}

static void write_query(const struct s3_signing *s, const struct stamp *stamp, struct sl_str scope,
                        struct sl_buf *query)
{
    sl_buf_cstr(query, "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=");
    bucket_encode(query, s->access_key, false);
    sl_buf_cstr(query, "%2F");
    bucket_encode(query, scope, false);
    sl_buf_printf(query, "&X-Amz-Date=%s&X-Amz-Expires=%u", stamp->time, s->expires_s);
    if (s->session_token.size) {
        sl_buf_cstr(query, "&X-Amz-Security-Token=");
        bucket_encode(query, s->session_token, false);
    }
    sl_buf_cstr(query, "&X-Amz-SignedHeaders=host");
}

/* Of the canonical request: method, path, query, the only signed header, the payload's hash. */
static bool hash_request(const struct s3_signing *s, const struct sl_buf *query, uint8_t out[DIGEST])
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "%s\n" SL_STR_FMT "\n", s->method, SL_STR_ARG(s->path));
    sl_buf_str(&text, sl_buf_view(query));
    sl_buf_printf(&text, "\nhost:" SL_STR_FMT "\n\nhost\nUNSIGNED-PAYLOAD", SL_STR_ARG(s->host));
    bool ok = !text.failed && EVP_Digest(text.data, text.size, out, NULL, EVP_sha256(), NULL) == 1;
    sl_buf_free(&text);
    return ok;
}

static bool sign(const struct s3_signing *s, const struct stamp *stamp, struct sl_str scope, const struct sl_buf *query,
                 uint8_t out[DIGEST])
{
    uint8_t key[DIGEST] = {0}, hash[DIGEST];
    struct sl_buf text = {0};
    bool ok = hash_request(s, query, hash) && derive_key(s, stamp->day, key);
    sl_buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n" SL_STR_FMT "\n", stamp->time, SL_STR_ARG(scope));
    if (ok)
        sl_buf_hex(&text, hash, DIGEST);
    ok = ok && !text.failed && hmac(key, DIGEST, sl_buf_view(&text), out);
    explicit_bzero(key, sizeof key);
    sl_buf_free(&text);
    return ok;
}

const char *s3_presign(const struct s3_signing *s, struct sl_arena *arena)
{
    struct tm tm;
    struct stamp stamp;
    time_t now = (time_t)s->now_s;
    uint8_t signature[DIGEST];
    struct sl_buf scope = {0}, query = {0}, url = {0};
    gmtime_r(&now, &tm);
    strftime(stamp.day, sizeof stamp.day, "%Y%m%d", &tm);
    strftime(stamp.time, sizeof stamp.time, "%Y%m%dT%H%M%SZ", &tm);
    sl_buf_printf(&scope, "%s/" SL_STR_FMT "/s3/aws4_request", stamp.day, SL_STR_ARG(s->region));
    write_query(s, &stamp, sl_buf_view(&scope), &query);
    url.failed = scope.failed || query.failed || !sign(s, &stamp, sl_buf_view(&scope), &query, signature);
    if (!url.failed) {
        sl_buf_printf(&url, SL_STR_FMT SL_STR_FMT SL_STR_FMT "?", SL_STR_ARG(s->scheme), SL_STR_ARG(s->host),
                      SL_STR_ARG(s->path));
        sl_buf_str(&url, sl_buf_view(&query));
        sl_buf_cstr(&url, "&X-Amz-Signature=");
        sl_buf_hex(&url, signature, DIGEST);
    }
    sl_buf_free(&scope);
    sl_buf_free(&query);
    return bucket_text(arena, &url);
}
