/* Addresses of S3 objects, and presigned URLs (AWS Signature Version 4). */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include "objectstore/impl.h"

enum { DIGEST = 32 };

/* ---- signatures ---- */
/* Computes the HMAC-SHA-256 of a text; `out` may be the key. False on failure. */
static bool hmac(const void *key, size_t key_size, struct sl_str text, uint8_t out[DIGEST])
{
    return HMAC(EVP_sha256(), key, (int)key_size, (const unsigned char *)text.data, text.size, out, NULL) != NULL;
}

/* Derives the signing key for this day, region and service by a chain of HMACs, as Signature Version 4 prescribes. */
static bool signing_key(struct sl_str secret, const char *date, struct sl_str region, uint8_t key[DIGEST])
{
    struct sl_buf first = {0};
    sl_buf_cstr(&first, "AWS4");
    sl_buf_str(&first, secret);
    bool ok = !first.failed && hmac(first.data, first.size, sl_str(date), key) && hmac(key, DIGEST, region, key) &&
              hmac(key, DIGEST, SL_STR("s3"), key) && hmac(key, DIGEST, SL_STR("aws4_request"), key);
    sl_buf_wipe(&first);
    return ok;
}

void aws_add_parameter(struct sl_buf *query, const char *name, struct sl_str value)
{
    sl_buf_cstr(query, query->size ? "&" : "");
    sl_buf_cstr(query, name);
    sl_buf_u8(query, '=');
    fetch_encode(query, value, false);
}

struct signing_time { /* time and scope of a signature; texts lie in the arena */
    char day[16], time[32];
    struct sl_str scope, names; /* "<day>/<region>/s3/aws4_request", "host;x-amz-meta-a" */
};

/* Makes the texts of a signature that depend on the time and the header fields; false when out of memory. */
static bool make_signing_time(struct sl_arena *arena, const struct aws_signing *s, struct signing_time *signing_time)
{
    struct tm tm;
    struct sl_buf scope = {0}, names = {0};
    gmtime_r(&(time_t){(time_t)s->now_s}, &tm);
    strftime(signing_time->day, sizeof signing_time->day, "%Y%m%d", &tm);
    strftime(signing_time->time, sizeof signing_time->time, "%Y%m%dT%H%M%SZ", &tm);
    sl_buf_printf(&scope, "%s/" SL_STR_FMT "/s3/aws4_request", signing_time->day, SL_STR_ARG(s->region));
    sl_buf_cstr(&names, "host"); /* names are sorted: those of s->fields sort after it */
    for (size_t i = 0; i < s->field_count; i++)
        sl_buf_printf(&names, ";%s", s->fields[i].name);
    signing_time->scope = sl_buf_move_to_arena(&scope, arena);
    signing_time->names = sl_buf_move_to_arena(&names, arena);
    return signing_time->scope.data && signing_time->names.data;
}

/* Makes the query of the presigned URL, without the signature; data NULL when out of memory. It is sorted by name, as the canonical
 * request that is signed contains it in this order: the names in s->query sort after "X-Amz-" and before "x-id". */
static struct sl_str make_presigned_query(struct sl_arena *arena, const struct aws_signing *s,
                                          const struct signing_time *signing_time)
{
    struct sl_buf credential = {0}, query = {0};
    char expires[16];
    sl_buf_printf(&credential, SL_STR_FMT "/" SL_STR_FMT, SL_STR_ARG(s->keys.access_key),
                  SL_STR_ARG(signing_time->scope));
    snprintf(expires, sizeof expires, "%u", s->expires_s);
    aws_add_parameter(&query, "X-Amz-Algorithm", SL_STR("AWS4-HMAC-SHA256"));
    aws_add_parameter(&query, "X-Amz-Credential", sl_buf_view(&credential));
    aws_add_parameter(&query, "X-Amz-Date", sl_str(signing_time->time));
    aws_add_parameter(&query, "X-Amz-Expires", sl_str(expires));
    if (s->keys.session_token.size)
        aws_add_parameter(&query, "X-Amz-Security-Token", s->keys.session_token);
    aws_add_parameter(&query, "X-Amz-SignedHeaders", signing_time->names);
    for (size_t i = 0; i < s->query_count; i++)
        aws_add_parameter(&query, s->query[i].name, s->query[i].value);
    if (s->operation)
        aws_add_parameter(&query, "x-id", sl_str(s->operation));
    query.failed |= credential.failed;
    sl_buf_free(&credential);
    return sl_buf_move_to_arena(&query, arena);
}

/* Computes the hash of the canonical request: method, path, query, header fields, their names, and a fixed word instead of the body's
 * hash. */
static bool request_hash(const struct aws_signing *s, const struct signing_time *signing_time, struct sl_str query,
                         uint8_t out[DIGEST])
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "%s\n" SL_STR_FMT "\n" SL_STR_FMT "\nhost:" SL_STR_FMT, s->method, SL_STR_ARG(s->path),
                  SL_STR_ARG(query), SL_STR_ARG(s->host));
    for (size_t i = 0; i < s->field_count; i++)
        sl_buf_printf(&text, "\n%s:" SL_STR_FMT, s->fields[i].name, SL_STR_ARG(s->fields[i].value));
    sl_buf_printf(&text, "\n\n" SL_STR_FMT "\nUNSIGNED-PAYLOAD", SL_STR_ARG(signing_time->names));
    bool ok = !text.failed && EVP_Digest(text.data, text.size, out, NULL, EVP_sha256(), NULL);
    sl_buf_free(&text);
    return ok;
}

/* Signs the hash of the request; false on failure. The key is wiped from memory, as it is valid for the whole day. */
static bool signature(const struct aws_signing *s, const struct signing_time *signing_time, struct sl_str query,
                      uint8_t out[DIGEST])
{
    uint8_t key[DIGEST], hash[DIGEST];
    struct sl_buf text = {0};
    bool ok = request_hash(s, signing_time, query, hash) &&
              signing_key(s->keys.secret_key, signing_time->day, s->region, key);
    if (ok) {
        sl_buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n" SL_STR_FMT "\n", signing_time->time,
                      SL_STR_ARG(signing_time->scope));
        sl_buf_hex(&text, hash, DIGEST);
        ok = !text.failed && hmac(key, DIGEST, sl_buf_view(&text), out);
    }
    explicit_bzero(key, sizeof key);
    sl_buf_free(&text);
    return ok;
}

const char *aws_presign(struct sl_arena *arena, const struct aws_signing *s)
{
    struct signing_time signing_time;
    struct sl_buf url = {0};
    uint8_t bytes[DIGEST];
    if (!make_signing_time(arena, s, &signing_time))
        return NULL;
    struct sl_str query = make_presigned_query(arena, s, &signing_time);
    if (!query.data || !signature(s, &signing_time, query, bytes))
        return NULL;
    sl_buf_printf(&url, SL_STR_FMT SL_STR_FMT SL_STR_FMT "?" SL_STR_FMT "&X-Amz-Signature=", SL_STR_ARG(s->scheme),
                  SL_STR_ARG(s->host), SL_STR_ARG(s->path), SL_STR_ARG(query));
    sl_buf_hex(&url, bytes, DIGEST);
    return sl_buf_move_to_arena(&url, arena).data;
}

/* ---- addresses of objects ---- */
static bool letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* True if the text is valid as a label of a host name (RFC 1123, 2.1), in lower case as bucket names are. */
static bool host_label(struct sl_str text)
{
    if (text.size == 0 || text.size > 63 || !letter_or_digit(text.data[0]) ||
        !letter_or_digit(text.data[text.size - 1]))
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (!letter_or_digit(text.data[i]) && text.data[i] != '-')
            return false;
    return true;
}

/* Makes "<before>/<bucket>/<key>", or "<before>/<key>" for an empty bucket: the host name contains it then. `before` is encoded already. */
static struct sl_str make_path(struct sl_arena *arena, struct sl_str before, struct sl_str bucket, struct sl_str key)
{
    struct sl_buf path = {0};
    sl_buf_str(&path, before);
    if (bucket.size) {
        sl_buf_u8(&path, '/');
        fetch_encode(&path, bucket, false);
    }
    sl_buf_u8(&path, '/');
    fetch_encode(&path, key, true);
    return sl_buf_move_to_arena(&path, arena);
}

/* Sets the address `<endpoint>/<bucket>/<key>`; it begins with https:// if the endpoint states no scheme. False if the endpoint is not a
 * URL, or when out of memory. */
static bool at_endpoint(struct sl_arena *arena, const struct bucket_config *bucket, struct sl_str key,
                        struct aws_signing *out)
{
    struct sl_buf text = {0};
    struct fetch_url parts;
    if (!memmem(bucket->endpoint.data, bucket->endpoint.size, "://", 3))
        sl_buf_cstr(&text, "https://");
    sl_buf_str(&text, bucket->endpoint);
    struct sl_str url = sl_buf_move_to_arena(&text, arena);
    if (!url.data || !fetch_split_url(arena, url.data, &parts))
        return false;
    while (sl_str_ends(parts.path, SL_STR("/")))
        parts.path.size--;
    out->scheme = parts.is_secure ? SL_STR("https://") : SL_STR("http://");
    out->host = parts.host;
    out->path = make_path(arena, parts.path, bucket->s3_name, key);
    return out->path.data != NULL;
}

/* Sets the address at Amazon: `<bucket>.s3.<region>.amazonaws.com/<key>`. A bucket that is not a valid label goes to the path instead: with
 * dots, for example, Amazon's wildcard certificate would not match. False if the region is not a label, or when out of memory. */
static bool at_amazon(struct sl_arena *arena, const struct bucket_config *bucket, struct sl_str key,
                      struct aws_signing *out)
{
    bool in_host = host_label(bucket->s3_name);
    struct sl_str region = s3_region(bucket);
    struct sl_buf host = {0};
    if (!host_label(region))
        return false;
    if (in_host) {
        sl_buf_str(&host, bucket->s3_name);
        sl_buf_u8(&host, '.');
    }
    sl_buf_cstr(&host, "s3.");
    sl_buf_str(&host, region);
    sl_buf_cstr(&host, sl_str_starts(region, SL_STR("cn-")) ? ".amazonaws.com.cn"
                                                            : ".amazonaws.com"); /* China is a partition of its own */
    out->scheme = SL_STR("https://");
    out->host = sl_buf_move_to_arena(&host, arena);
    out->path = make_path(arena, SL_STR(""), in_host ? SL_STR("") : bucket->s3_name, key);
    return out->host.data && out->path.data;
}

bool aws_address(struct sl_arena *arena, const struct bucket_config *bucket, struct sl_str key, struct aws_signing *out)
{
    out->region = s3_region(bucket);
    return bucket->endpoint.data ? at_endpoint(arena, bucket, key, out) : at_amazon(arena, bucket, key, out);
}
