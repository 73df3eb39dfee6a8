/* AWS Signature Version 4 in the query of a URL ("Authenticating Requests: Using Query Parameters", Amazon S3 API
 * Reference). */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include "origin/impl.h"

enum { DIGEST = 32 };

void aws_encode(struct sl_buf *out, struct sl_str text, bool keep_slashes)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = (uint8_t)text.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '_' || c == '.' || c == '~' || (c == '/' && keep_slashes);
        if (plain) {
            sl_buf_u8(out, c);
        } else {
            sl_buf_u8(out, '%');
            sl_buf_u8(out, (uint8_t)hex[c >> 4]);
            sl_buf_u8(out, (uint8_t)hex[c & 15]);
        }
    }
}

static bool hmac(const void *key, size_t key_size, struct sl_str text, uint8_t out[DIGEST])
{
    return HMAC(EVP_sha256(), key, (int)key_size, (const unsigned char *)text.data, text.size, out, NULL) != NULL;
}

/* The chain of keys that ends in the one for this day, region and service. */
static bool signing_key(struct sl_str secret, const char *date, struct sl_str region, uint8_t key[DIGEST])
{
    struct sl_buf first = {0};
    sl_buf_cstr(&first, "AWS4");
    sl_buf_str(&first, secret);
    bool ok = !first.failed && hmac(first.data, first.size, sl_str(date), key) && hmac(key, DIGEST, region, key) &&
              hmac(key, DIGEST, SL_STR("s3"), key) && hmac(key, DIGEST, SL_STR("aws4_request"), key);
    if (first.data)
        explicit_bzero(first.data, first.size);
    sl_buf_free(&first);
    return ok;
}

static void add_parameter(struct sl_buf *query, const char *name, struct sl_str value)
{
    sl_buf_cstr(query, query->size ? "&" : "");
    sl_buf_cstr(query, name);
    sl_buf_u8(query, '=');
    aws_encode(query, value, false);
}

struct stamp {
    char day[16], time[32];
};

static void parameters(const struct aws_signing *s, const struct stamp *stamp, struct sl_str scope,
                       struct sl_buf *query)
{
    struct sl_buf credential = {0};
    char expires[16];
    sl_buf_str(&credential, s->keys.access_key);
    sl_buf_u8(&credential, '/');
    sl_buf_str(&credential, scope);
    snprintf(expires, sizeof expires, "%u", s->expires_s);
    add_parameter(query, "X-Amz-Algorithm", SL_STR("AWS4-HMAC-SHA256"));
    add_parameter(query, "X-Amz-Credential", sl_buf_view(&credential));
    add_parameter(query, "X-Amz-Date", sl_str(stamp->time));
    add_parameter(query, "X-Amz-Expires", sl_str(expires));
    if (s->keys.session_token.size)
        add_parameter(query, "X-Amz-Security-Token", s->keys.session_token);
    add_parameter(query, "X-Amz-SignedHeaders", SL_STR("host"));
    if (s->operation)
        add_parameter(query, "x-id", sl_str(s->operation));
    query->failed |= credential.failed;
    sl_buf_free(&credential);
}

/* The hash of the canonical request. */
static bool request_hash(const struct aws_signing *s, const struct sl_buf *query, uint8_t out[DIGEST])
{
    struct sl_buf text = {0};
    sl_buf_cstr(&text, "GET\n");
    sl_buf_str(&text, s->path);
    sl_buf_u8(&text, '\n');
    sl_buf_str(&text, sl_buf_view(query));
    sl_buf_cstr(&text, "\nhost:");
    sl_buf_str(&text, s->host);
    sl_buf_cstr(&text, "\n\nhost\nUNSIGNED-PAYLOAD");
    bool ok = !text.failed && EVP_Digest(text.data, text.size, out, NULL, EVP_sha256(), NULL);
    sl_buf_free(&text);
    return ok;
}

static bool signature(const struct aws_signing *s, const struct stamp *stamp, struct sl_str scope,
                      const struct sl_buf *query, uint8_t out[DIGEST])
{
    uint8_t key[DIGEST], hash[DIGEST];
    struct sl_buf text = {0};
    bool ok = request_hash(s, query, hash) && signing_key(s->keys.secret_key, stamp->day, s->region, key);
    if (ok) {
        sl_buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n", stamp->time);
        sl_buf_str(&text, scope);
        sl_buf_u8(&text, '\n');
        sl_buf_hex(&text, hash, DIGEST);
        ok = !text.failed && hmac(key, DIGEST, sl_buf_view(&text), out);
    }
    explicit_bzero(key, sizeof key);
    sl_buf_free(&text);
    return ok;
}

const char *aws_presign(struct sl_arena *arena, const struct aws_signing *s)
{
    struct tm tm;
    time_t now = (time_t)s->now_s;
    struct stamp stamp;
    struct sl_buf scope = {0}, query = {0}, url = {0};
    uint8_t bytes[DIGEST];
    const char *out = NULL;
    gmtime_r(&now, &tm);
    strftime(stamp.day, sizeof stamp.day, "%Y%m%d", &tm);
    strftime(stamp.time, sizeof stamp.time, "%Y%m%dT%H%M%SZ", &tm);
    sl_buf_printf(&scope, "%s/" SL_STR_FMT "/s3/aws4_request", stamp.day, SL_STR_ARG(s->region));
    parameters(s, &stamp, sl_buf_view(&scope), &query);
    if (!scope.failed && !query.failed && signature(s, &stamp, sl_buf_view(&scope), &query, bytes)) {
        sl_buf_str(&url, s->scheme);
        sl_buf_str(&url, s->host);
        sl_buf_str(&url, s->path);
        sl_buf_u8(&url, '?');
        sl_buf_str(&url, sl_buf_view(&query));
        sl_buf_cstr(&url, "&X-Amz-Signature=");
        sl_buf_hex(&url, bytes, DIGEST);
        out = url.failed ? NULL : sl_arena_strndup(arena, (const char *)url.data, url.size);
    }
    sl_buf_free(&scope);
    sl_buf_free(&query);
    sl_buf_free(&url);
    return out;
}
