/* Objects of an S3 bucket, by presigned URLs ("Amazon S3 API Reference": HeadObject, PutObject, GetObject, ListObjectsV2). */
#include <stdio.h>
#include <stdlib.h>

#include "core/loop.h"
#include "core/status.h"
#include "id/id.h"
#include "objectstore/impl.h"

#define METADATA "x-amz-meta-"
enum { EXPIRES_S = 900 /* lifetime of presigned URLs; each is used at once */ };

const char object_no_bucket[] = "the bucket does not exist";

struct sl_str s3_region(const struct bucket_config *config)
{
    return config->region.data ? config->region : SL_STR("us-east-1");
}

/* ---- errors ---- */

/* True if the name is one of the list, which ends with NULL. */
static bool is_one_of(const char *const *names, struct sl_str name)
{
    for (; *names; names++)
        if (sl_str_equal(name, sl_str(*names)))
            return true;
    return false;
}

/* Converts the status, error code and message of an error response. If the error code is in one of the lists, it decides, otherwise the
 * status. SL_NOT_FOUND has an empty message, or object_no_bucket if the whole bucket is missing. */
static enum sl_code explain(int status, struct sl_str code, struct sl_str message, struct sl_error *error)
{
    static const char *const forbidden[] = {"AuthorizationHeaderMalformed",
                                            "AuthorizationQueryParametersError",
                                            "AccessDenied",
                                            "SignatureDoesNotMatch",
                                            "InvalidAccessKeyId",
                                            NULL};
    static const char *const absent[] = {"NoSuchBucket", "NoSuchKey", "NotFound", NULL};
    if (is_one_of(absent, code) || (status == 404 && !is_one_of(forbidden, code)))
        return sl_fail(error, SL_NOT_FOUND, "%s", sl_str_equal(code, SL_STR("NoSuchBucket")) ? object_no_bucket : "");
    enum sl_code result =
        is_one_of(forbidden, code) || status == 401 || status == 403 ? SL_PERMISSION_DENIED : SL_DOWNLOAD_ERROR;
    char plain[96];
    snprintf(plain, sizeof plain, "%d %s", status, status_reason(status));
    struct sl_str first = code.size ? code : sl_str(plain);
    if (message.size)
        return sl_fail(error, result, SL_STR_FMT ": " SL_STR_FMT, SL_STR_ARG(first), SL_STR_ARG(message));
    return sl_fail(error, result, SL_STR_FMT, SL_STR_ARG(first));
}

enum sl_code s3_explain(int status, struct sl_str body, struct sl_error *error)
{
    /* depth 2: <Error><Code>...</Code><Message>...</Message></Error> */
    struct xml_text texts[] = {{.name = "Code", .depth = 2}, {.name = "Message", .depth = 2}};
    enum sl_code read = body.size ? xml_texts(body, texts, 2) : SL_MALFORMED;
    bool ok = read == SL_OK;
    enum sl_code code = read == SL_BUSY ? sl_fail(error, SL_BUSY, "out of memory")
                                        : explain(status, ok ? sl_buf_view(&texts[0].text) : SL_STR(""),
                                                  ok ? sl_buf_view(&texts[1].text) : SL_STR(""), error);
    xml_texts_free(texts, 2);
    return code;
}

/* ---- signed requests ---- */

/* Signs the request with the current time; returns its URL, in the arena, or NULL when out of memory. fetch calls it again for each
 * attempt, as a signature expires. */
static const char *sign(void *arg, struct sl_arena *arena)
{
    struct aws_signing *signing = &((struct bucket_request *)arg)->signing;
    signing->now_s = clock_wall_s();
    return aws_presign(arena, signing);
}

/* Sets method, URL and headers of a request and signs it. request->signing already has the header fields and query parameters; `key` is the
 * name of the object, empty for the bucket itself. */
static enum sl_code s3_prepare(struct bucket_request *request, const char *method, struct sl_str key,
                               struct sl_error *error)
{
    const struct object_store *store = request->store;
    struct aws_signing *signing = &request->signing;
    signing->method = method;
    signing->expires_s = signing->expires_s ? signing->expires_s : EXPIRES_S;
    if (!aws_address(&request->arena, store->config, key, signing))
        return store->is_source /* a request may have named an invalid region or endpoint; running out of memory has the same error */
                   ? sl_fail(error, SL_DOWNLOAD_ERROR, "the region name of the S3 bucket is invalid")
                   : sl_fail(error, SL_BUSY, "out of memory"); /* object_store_open has checked the region */
    enum sl_code code = credentials_aws(store, &request->arena, &signing->keys, error);
    if (code != SL_OK)
        return code;
    for (size_t i = 0; i < signing->field_count; i++)
        object_header(request, signing->fields[i].name, signing->fields[i].value);
    request->fetch.method = strcmp(method, "GET") == 0 ? NULL : method; /* NULL: GET */
    request->fetch.sign = sign; /* fetch signs again for each attempt, as a signature expires */
    request->fetch.url = sign(request, &request->arena);
    return request->fetch.url ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

static enum sl_code s3_get(struct bucket_request *request, struct sl_error *error)
{
    request->signing.operation = request->store->is_source ? "GetObject" : NULL;
    return s3_prepare(request, "GET", request->key, error);
}

/* Prepares a download of at most one byte: for a larger object it fails with "too large", which object_exists takes for yes. */
static enum sl_code s3_exists(struct bucket_request *request, struct sl_error *error)
{
    request->fetch.max_size = 1;
    return s3_get(request, error);
}

static enum sl_code s3_delete(struct bucket_request *request, struct sl_error *error)
{
    return s3_prepare(request, "DELETE", request->key, error);
}

/* Returns a presigned URL for clients; NULL if the bucket is not S3, or on any failure, whose error is dropped. */
const char *object_url(const struct object_store *store, struct sl_str name, unsigned expires_s, struct sl_arena *arena)
{
    struct bucket_request request = {.store = store, .signing.expires_s = expires_s};
    struct sl_error error;
    struct sl_str key = bucket_key(arena, store->config, name);
    bool good = store->config->s3_name.data && key.data && s3_prepare(&request, "GET", key, &error) == SL_OK;
    const char *url = good ? sl_arena_strndup(arena, request.fetch.url, strlen(request.fetch.url)) : NULL;
    sl_arena_free(&request.arena);
    return url;
}

/* ---- properties ---- */

/* Called for each header field of a response to HEAD: stores it in request->info or as metadata. An ETag is the MD5 in quotes (34 bytes)
 * for an object that was uploaded in one piece, otherwise it has another length. */
static void read_field(void *arg, struct sl_str name, struct sl_str value)
{
    struct bucket_request *request = arg;
    struct object_info *info = request->info;
    struct sl_str prefix = SL_STR(METADATA), begin = {name.data, prefix.size};
    size_t size;
    if (sl_str_equal_nocase(name, SL_STR("content-length")))
        sl_parse_u64(value, &info->size);
    else if (sl_str_equal_nocase(name, SL_STR("content-encoding")))
        info->is_gzip = sl_str_equal_nocase(value, SL_STR("gzip"));
    else if (sl_str_equal_nocase(name, SL_STR("etag"))) {
        if (value.size < sizeof info->version && !sl_str_starts(value, SL_STR("W/"))) /* a weak tag fits no condition */
            snprintf(info->version, sizeof info->version, SL_STR_FMT, SL_STR_ARG(value));
        info->has_md5 =
            value.size == 34 && sl_hex_decode((struct sl_str){value.data + 1, 32}, info->md5, 16, &size) && size == 16;
    }
    if (name.size > prefix.size && sl_str_equal_nocase(begin, prefix))
        object_set_metadata(request, (struct sl_str){name.data + prefix.size, name.size - prefix.size}, value);
}

/* Requests the properties of an object and reads them into request->info. */
static enum sl_code s3_head(struct bucket_request *request, struct sl_error *error)
{
    enum sl_code code = s3_prepare(request, "HEAD", request->key, error);
    request->fetch.max_size = INT64_MAX; /* no limit: Content-Length is that of the object, but no body is received */
    request->fetch.field = read_field;
    if (code == SL_OK)
        code = object_run(request, NULL, error);
    request->info->modified_s = request->call->modified_s;
    return code;
}

/* ---- writing ---- */

/* Orders fields by name. */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct object_field *)a)->name, ((const struct object_field *)b)->name);
}

/* Adds the object's metadata as signed header fields, sorted by name as the signature requires. False when out of memory. */
static bool sign_metadata(struct bucket_request *request, const struct object_contents *contents)
{
    size_t count = contents->metadata_count;
    struct object_field *fields = SL_ARENA_ARRAY(&request->arena, struct object_field, count + 1); /* never empty */
    for (size_t i = 0; fields && i < count; i++) {
        struct sl_buf name = {0};
        sl_buf_printf(&name, METADATA "%s", contents->metadata[i].name);
        fields[i] =
            (struct object_field){sl_buf_move_to_arena(&name, &request->arena).data, contents->metadata[i].value};
        if (!fields[i].name)
            return false;
    }
    if (count && fields)
        qsort(fields, count, sizeof *fields, by_name);
    request->signing.fields = fields;
    request->signing.field_count = count;
    return fields != NULL;
}

/* Uploads an object with its metadata. */
static enum sl_code s3_put(struct bucket_request *request, const struct object_contents *contents,
                           struct sl_error *error)
{
    if (!sign_metadata(request, contents))
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = s3_prepare(request, "PUT", request->key, error);
    if (code != SL_OK)
        return code;
    request->fetch.body.hidden = (struct sl_str){(const char *)contents->bytes.data, contents->bytes.size};
    object_header(request, "Content-Type", sl_str(contents->media_type));
    if (contents->no_transform)
        object_header(request, "Cache-Control", SL_STR("no-transform"));
    if (contents->encoding)
        object_header(request, "Content-Encoding", sl_str(contents->encoding));
    if (contents->if_absent)
        object_header(request, "If-None-Match", SL_STR("*"));
    if (contents->if_version)
        object_header(request, "If-Match", sl_str(contents->if_version));
    return object_run(request, NULL, error);
}

/* ---- lists ---- */

struct s3_list {
    struct object_list *list;
    struct sl_buf key, modified; /* of the current object */
};

/* Called at the end of each element of a list of objects, <ListBucketResult><Contents><Key>.. (depths 1, 2, 3). An object is added at the
 * end of its element `Contents`, when its key and time are known. */
static void s3_take_text(void *arg, const char *element, unsigned depth, struct sl_str text)
{
    struct s3_list *s = arg;
    if (depth == 2 && strcmp(element, "IsTruncated") == 0) {
        s->list->more = sl_str_equal(text, SL_STR("true"));
    } else if (depth == 3 && strcmp(element, "Key") == 0) {
        sl_buf_clear(&s->key);
        sl_buf_str(&s->key, text);
    } else if (depth == 3 && strcmp(element, "LastModified") == 0) {
        sl_buf_clear(&s->modified);
        sl_buf_str(&s->modified, text);
    } else if (depth == 2 && strcmp(element, "Contents") == 0) {
        s->list->failed |= s->key.failed || s->modified.failed;
        /* sets list->failed or ->more if it cannot */
        object_list_add(s->list, sl_buf_view(&s->key), sl_buf_view(&s->modified));
    }
}

/* Gets one page of objects whose names begin with request->key and sort after `after` (empty: from the first on). */
static enum sl_code s3_list(struct bucket_request *request, struct sl_str after, struct object_list *list,
                            struct sl_error *error)
{
    const struct object_field query[] = {
        {"list-type", SL_STR("2")}, {"max-keys", SL_STR("1000")}, {"prefix", request->key}, {"start-after", after}};
    struct s3_list s = {.list = list};
    struct sl_buf answer = {0};
    request->signing.query = query;
    request->signing.query_count = after.size ? 4 : 3;
    enum sl_code code = s3_prepare(request, "GET", SL_STR(""), error);
    if (code == SL_OK)
        code = object_run(request, &answer, error);
    enum sl_code read = code == SL_OK ? xml_walk(sl_buf_view(&answer), s3_take_text, &s) : SL_OK;
    if (read == SL_BUSY)
        code = sl_fail(error, SL_BUSY, "out of memory");
    else if (read != SL_OK)
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "the response of S3 is not a list of objects");
    sl_buf_free(&s.key);
    sl_buf_free(&s.modified);
    sl_buf_free(&answer);
    return code;
}

const struct object_service object_s3 = {
    .get = s3_get, .exists = s3_exists, .del = s3_delete, .head = s3_head, .put = s3_put, .list = s3_list};
