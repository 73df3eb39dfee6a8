/* Sources in S3 buckets: each attempt of a download is a presigned GET, and the errors are those of the XML in the answer. */
#include "core/loop.h"
#include "core/status.h"
#include "origin/impl.h"

enum { EXPIRES_S = 900 };

const char origin_no_bucket[] = "there is no such bucket";

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
        return sl_fail(error, SL_NOT_FOUND, "%s", sl_str_equal(code, SL_STR("NoSuchBucket")) ? origin_no_bucket : "");
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
    struct aws_bucket bucket = {source->bucket, source->region, source->endpoint};
    struct aws_signing signing = {.method = "GET", .expires_s = EXPIRES_S, .operation = "GetObject"};
    if (!aws_address(arena, &bucket, file->location, &signing))
        return sl_fail(error, SL_DOWNLOAD_ERROR, "invalid region");
    enum sl_code code = aws_keys_get(source, arena, &signing.keys, error);
    if (code != SL_OK)
        return code;
    struct fetch_request request = {.source = origin_label(arena, source),
                                    .max_size = file->max_size,
                                    .refuse_empty = !file->may_be_empty,
                                    .refuse_pages = !file->may_be_page,
                                    .trusted = source->internal,
                                    .sign = sign,
                                    .refused = s3_refused,
                                    .arg = &signing};
    request.url = sign(&signing, arena);
    if (!request.url || !request.source)
        return sl_fail(error, SL_BUSY, "out of memory");
    return fetch_get(&request, fd, error);
}

enum sl_code s3_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    struct sl_arena arena = {0};
    enum sl_code code = fetch(&arena, file, fd, error);
    sl_arena_free(&arena);
    return code;
}
