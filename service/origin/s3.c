/* Sources in S3 buckets: each attempt of a download is a presigned GET, and the errors are those of the XML in the answer. */
#include "core/loop.h"
#include "core/status.h"
#include "origin/impl.h"

enum { EXPIRES_S = 900 };

/* ---- where an object is ---- */
static bool letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Whether the text can be a label of a host name (RFC 1123, 2.1), in lower case as buckets are. */
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

static struct sl_str path_of(struct sl_arena *arena, struct sl_str before, struct sl_str bucket, struct sl_str key)
{
    struct sl_buf path = {0};
    sl_buf_str(&path, before);
    if (bucket.size) {
        sl_buf_u8(&path, '/');
        aws_encode(&path, bucket, false);
    }
    sl_buf_u8(&path, '/');
    aws_encode(&path, key, true);
    return buf_in_arena(arena, &path);
}

/* `<endpoint>/<bucket>/<key>` */
static bool at_endpoint(struct sl_arena *arena, const struct source *source, struct sl_str key, struct aws_signing *out)
{
    struct sl_buf text = {0};
    if (!memmem(source->endpoint.data, source->endpoint.size, "://", 3))
        sl_buf_cstr(&text, "https://");
    sl_buf_str(&text, source->endpoint);
    struct sl_str url = buf_in_arena(arena, &text);
    url = http_location_url(arena, url, SL_STR(""), false);
    if (!url.data)
        return false;
    const char *host = (const char *)memmem(url.data, url.size, "://", 3) + 3;
    const char *slash = memchr(host, '/', url.size - (size_t)(host - url.data));
    const char *end = url.data + url.size;
    struct sl_str before = slash ? (struct sl_str){slash, (size_t)(end - slash)} : SL_STR("");
    out->scheme = (struct sl_str){url.data, (size_t)(host - url.data)};
    out->host = (struct sl_str){host, (size_t)((slash ? slash : end) - host)};
    while (sl_str_ends(before, SL_STR("/")))
        before.size--;
    out->path = path_of(arena, before, source->bucket, key);
    return out->path.data != NULL;
}

bool s3_address(struct sl_arena *arena, const struct source *source, struct sl_str key, struct aws_signing *out)
{
    out->region = source->region;
    if (source->endpoint.data)
        return at_endpoint(arena, source, key, out);
    if (!host_label(source->region))
        return false;
    bool in_host = host_label(source->bucket);
    struct sl_buf host = {0};
    if (in_host) {
        sl_buf_str(&host, source->bucket);
        sl_buf_u8(&host, '.');
    }
    sl_buf_cstr(&host, "s3.");
    sl_buf_str(&host, source->region);
    sl_buf_cstr(&host, sl_str_starts(source->region, SL_STR("cn-")) ? ".amazonaws.com.cn" : ".amazonaws.com");
    out->scheme = SL_STR("https://");
    out->host = buf_in_arena(arena, &host);
    out->path = path_of(arena, SL_STR(""), in_host ? SL_STR("") : source->bucket, key);
    return out->host.data && out->path.data;
}

/* ---- errors ---- */
static bool one_of(const char *const *names, struct sl_str name)
{
    for (; *names; names++)
        if (sl_str_equal(name, sl_str(*names)))
            return true;
    return false;
}

static enum sl_code explain(int status, struct sl_str code, struct sl_str message, struct sl_error *error)
{
    static const char *const forbidden[] = {"AuthorizationHeaderMalformed",
                                            "AuthorizationQueryParametersError",
                                            "AccessDenied",
                                            "SignatureDoesNotMatch",
                                            "InvalidAccessKeyId",
                                            NULL};
    static const char *const absent[] = {"NoSuchBucket", "NoSuchKey", "NotFound", NULL};
    if (one_of(absent, code) || (status == 404 && !one_of(forbidden, code)))
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    enum sl_code result =
        one_of(forbidden, code) || status == 401 || status == 403 ? SL_PERMISSION_DENIED : SL_DOWNLOAD_ERROR;
    char plain[96];
    snprintf(plain, sizeof plain, "%d %s", status, status_reason(status));
    struct sl_str first = code.size ? code : sl_str(plain);
    if (message.size)
        return sl_fail(error, result, SL_STR_FMT ": " SL_STR_FMT, SL_STR_ARG(first), SL_STR_ARG(message));
    return sl_fail(error, result, SL_STR_FMT, SL_STR_ARG(first));
}

enum sl_code s3_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    struct xml_text texts[] = {{.name = "Code", .depth = 2}, {.name = "Message", .depth = 2}};
    bool ok = body.size && xml_texts(body, texts, 2);
    enum sl_code code = explain(status, ok ? sl_buf_view(&texts[0].text) : SL_STR(""),
                                ok ? sl_buf_view(&texts[1].text) : SL_STR(""), error);
    xml_texts_free(texts, 2);
    return code;
}

/* ---- the download ---- */
static const char *sign(void *arg, struct sl_arena *arena)
{
    struct aws_signing *signing = arg;
    signing->now_s = clock_wall_s();
    return aws_presign(arena, signing);
}

static enum sl_code fetch(struct sl_arena *arena, const struct remote_file *file, int fd, struct sl_error *error)
{
    const struct source *source = file->source;
    struct aws_signing signing = {.expires_s = EXPIRES_S, .operation = "GetObject"};
    if (!s3_address(arena, source, file->location, &signing))
        return sl_fail(error, SL_DOWNLOAD_ERROR, "invalid region");
    enum sl_code code = aws_keys_get(source, arena, &signing.keys, error);
    if (code != SL_OK)
        return code;
    struct fetch_request request = {.source = source_label(arena, source),
                                    .max_size = file->max_size,
                                    .sign = sign,
                                    .refused = s3_refused,
                                    .arg = &signing};
    request.url = sign(&signing, arena);
    if (!request.url || !request.source)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    return fetch_get(&request, fd, error);
}

enum sl_code s3_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    struct sl_arena arena = {0};
    enum sl_code code = fetch(&arena, file, fd, error);
    sl_arena_free(&arena);
    return code;
}
