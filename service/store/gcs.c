/* Objects of a Google Cloud Storage bucket, by its JSON API ("Cloud Storage JSON API", Google). They are written by resumable
 * uploads, as those say what an object is before its contents come. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_write.h"
#include "fetch/google.h"
#include "id/id.h"
#include "origin/memo.h"
#include "store/bucket.h"

#define SCOPE "https://www.googleapis.com/auth/devstorage.read_write"
#define HOST  "https://storage.googleapis.com/"

enum { LIST_BYTES = 8 << 20 };

/* ---- requests ---- */

static enum sl_code gcs_ask_token(const void *context, struct sl_buf *text, uint64_t *for_ns, struct sl_error *error)
{
    enum { MARGIN_S = 120 };
    const struct store_bucket *bucket = context;
    uint64_t life_s = 0;
    enum sl_code code = google_token(&bucket->account, SCOPE, "uploads", text, &life_s, error);
    life_s = life_s ? life_s : GOOGLE_TOKEN_LIFE_S;
    *for_ns = (life_s > MARGIN_S ? life_s - MARGIN_S : 0) * UINT64_C(1000000000);
    return code;
}

/* Sets the URL, "<HOST><before><bucket>/o<between><name><after>", and the credentials. */
static void gcs_prepare(struct object_request *request, const char *before, const char *between, struct sl_str name,
                        const char *after, struct sl_error *error)
{
    struct sl_str key = SL_STR("token"), token;
    struct sl_buf url = {0}, bearer = {0};
    struct store_bucket *bucket = (struct store_bucket *)request->bucket;
    if (memo_get(&bucket->tokens, &key, 1, gcs_ask_token, bucket, &request->arena, &token, error) != SL_OK)
        return;
    sl_buf_cstr(&url, HOST);
    sl_buf_cstr(&url, before);
    fetch_encode(&url, sl_str(bucket->config->gcs_bucket), false);
    sl_buf_cstr(&url, "/o");
    sl_buf_cstr(&url, between);
    fetch_encode(&url, name, false);
    sl_buf_cstr(&url, after);
    sl_buf_cstr(&bearer, "Bearer ");
    sl_buf_str(&bearer, token);
    struct sl_str header = sl_buf_keep(&bearer, &request->arena), kept = sl_buf_keep(&url, &request->arena);
    if (!header.data)
        return;
    request->fetch.trusted = false;
    object_header(request, "Authorization", header);
    request->fetch.url = kept.data;
}

/* ---- what is known ---- */

static bool gcs_text(struct sl_json *j, struct sl_str *text)
{
    if (sl_json_peek(j) == SL_JSON_STRING)
        return sl_json_string(j, text);
    sl_json_skip(j);
    return false;
}

static void gcs_read_metadata(struct sl_json *j, struct object_request *request)
{
    struct sl_str key, text;
    size_t size;
    if (sl_json_peek(j) != SL_JSON_OBJECT) {
        sl_json_skip(j);
        return;
    }
    sl_json_enter(j);
    while (sl_json_next(j, &key)) {
        if (!gcs_text(j, &text))
            continue;
        if (sl_str_equal(key, SL_STR("original_size")))
            request->has_size = store_parse_number(text, &request->meta->original_size);
        else if (sl_str_equal(key, SL_STR("original_md5_hash")))
            request->has_md5 = sl_hex_decode(text, request->meta->md5, 16, &size) && size == 16;
    }
}

static bool gcs_read_object(struct sl_json *j, struct object_request *request)
{
    struct store_meta *meta = request->meta;
    struct sl_str key, text;
    size_t size;
    if (sl_json_peek(j) != SL_JSON_OBJECT)
        return false;
    sl_json_enter(j);
    while (sl_json_next(j, &key)) {
        if (sl_str_equal(key, SL_STR("metadata")))
            gcs_read_metadata(j, request);
        else if (!gcs_text(j, &text))
            continue;
        else if (sl_str_equal(key, SL_STR("size")))
            store_parse_number(text, &meta->size);
        else if (sl_str_equal(key, SL_STR("contentEncoding")))
            meta->is_packed = sl_str_equal(text, SL_STR("gzip"));
        else if (sl_str_equal(key, SL_STR("md5Hash")))
            request->has_etag = sl_base64_decode(text, request->etag, sizeof request->etag, &size) && size == 16;
    }
    return !j->failed;
}

static enum sl_code gcs_look(struct object_request *request, struct sl_str name, struct store_meta *meta,
                             struct sl_error *error)
{
    struct sl_buf answer = {0};
    gcs_prepare(request, "storage/v1/b/", "/", name, "", error);
    request->meta = meta;
    enum sl_code code = object_run(request, &answer, error);
    struct sl_json j = sl_json(sl_buf_view(&answer), &request->arena, true);
    if (code == SL_OK && !gcs_read_object(&j, request))
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "the answer is no JSON");
    meta->has_original = request->has_size && request->has_md5;
    if (!meta->is_packed && !meta->has_original && request->has_etag) {
        memcpy(meta->md5, request->etag, sizeof meta->md5);
        meta->original_size = meta->size;
        meta->has_original = true;
    }
    sl_buf_free(&answer);
    return code;
}

/* ---- writing ---- */

static struct sl_str gcs_describe(struct sl_arena *arena, const struct store_meta *meta, const char *media_type)
{
    struct sl_buf body = {0}, hex = {0};
    struct sl_json_writer w = sl_json_writer(&body);
    char size[24];
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "contentType", sl_str(media_type));
    sl_json_member_str(&w, "cacheControl", SL_STR("no-transform"));
    if (meta->is_packed) {
        snprintf(size, sizeof size, "%llu", (unsigned long long)meta->original_size);
        sl_buf_hex(&hex, meta->md5, sizeof meta->md5);
        sl_json_member_str(&w, "contentEncoding", SL_STR("gzip"));
        sl_json_member_object(&w, "metadata");
        sl_json_member_str(&w, "original_size", sl_str(size));
        sl_json_member_str(&w, "original_md5_hash", sl_buf_view(&hex));
        sl_json_end_object(&w);
    }
    sl_json_end_object(&w);
    sl_buf_free(&hex);
    return sl_buf_keep(&body, arena);
}

static void gcs_keep_location(void *arg, struct sl_str name, struct sl_str value)
{
    struct object_request *request = arg;
    if (sl_str_equal_nocase(name, SL_STR("location")) && !request->location)
        request->location = sl_arena_strndup(&request->arena, value.data, value.size);
}

static enum sl_code gcs_put(struct object_request *request, struct sl_str name, struct sl_bytes contents,
                            const struct store_meta *meta, const char *media_type, struct sl_error *error)
{
    gcs_prepare(request, "upload/storage/v1/b/", "?uploadType=resumable&name=", name, "", error);
    request->fetch.method = "POST";
    request->fetch.body.hidden = gcs_describe(&request->arena, meta, media_type);
    request->fetch.field = gcs_keep_location;
    object_header(request, "Content-Type", SL_STR("application/json"));
    enum sl_code code = object_run(request, NULL, error);
    if (code != SL_OK || !request->location)
        return code == SL_OK ? sl_fail(error, SL_DOWNLOAD_ERROR, "no place to upload to was told") : code;
    request->fetch.url = request->location;
    request->fetch.method = "PUT";
    request->fetch.header_count = 0; /* the place is the credential */
    request->fetch.body.hidden = (struct sl_str){(const char *)contents.data, contents.size};
    object_header(request, "Content-Type", sl_str(media_type));
    return object_run(request, NULL, error);
}

static void gcs_get(struct object_request *request, struct sl_str name, struct sl_error *error)
{
    gcs_prepare(request, "storage/v1/b/", "/", name, "?alt=media", error);
}

static enum sl_code gcs_delete(struct object_request *request, struct sl_str name, struct sl_error *error)
{
    gcs_prepare(request, "storage/v1/b/", "/", name, "", error);
    request->fetch.method = "DELETE";
    return object_run(request, NULL, error);
}

/* ---- lists ---- */

static void gcs_read_item(struct sl_json *j, struct sl_str after, struct store_objects *objects)
{
    struct sl_str key, name = {NULL, 0}, updated = {NULL, 0}, text;
    if (sl_json_peek(j) != SL_JSON_OBJECT) {
        sl_json_skip(j);
        return;
    }
    sl_json_enter(j);
    while (sl_json_next(j, &key)) {
        if (!gcs_text(j, &text))
            continue;
        if (sl_str_equal(key, SL_STR("name")))
            name = text;
        else if (sl_str_equal(key, SL_STR("updated")))
            updated = text;
    }
    if (name.data && !sl_str_equal(name, after)) /* the list begins with it */
        store_objects_add(objects, name, updated);
}

static bool gcs_read_list(struct sl_json *j, struct sl_str after, struct store_objects *objects)
{
    struct sl_str key;
    if (sl_json_peek(j) != SL_JSON_OBJECT)
        return false;
    sl_json_enter(j);
    while (sl_json_next(j, &key)) {
        if (sl_str_equal(key, SL_STR("items")) && sl_json_peek(j) == SL_JSON_ARRAY) {
            sl_json_enter(j);
            while (sl_json_next(j, &key))
                gcs_read_item(j, after, objects);
            continue;
        }
        objects->more |= sl_str_equal(key, SL_STR("nextPageToken"));
        sl_json_skip(j);
    }
    return !j->failed;
}

static enum sl_code gcs_list(struct object_request *request, struct sl_str prefix, struct sl_str after,
                             struct store_objects *objects, struct sl_error *error)
{
    struct sl_buf query = {0}, answer = {0};
    sl_buf_cstr(&query, "&fields=items(name,updated),nextPageToken&maxResults=1000");
    if (after.size) {
        sl_buf_cstr(&query, "&startOffset=");
        fetch_encode(&query, after, false);
    }
    struct sl_str rest = sl_buf_keep(&query, &request->arena);
    if (!rest.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    gcs_prepare(request, "storage/v1/b/", "?prefix=", prefix, rest.data, error);
    request->fetch.max_size = LIST_BYTES;
    enum sl_code code = object_run(request, &answer, error);
    struct sl_json j = sl_json(sl_buf_view(&answer), &request->arena, true);
    if (code == SL_OK && !gcs_read_list(&j, after, objects))
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "the answer is no list of objects");
    sl_buf_free(&answer);
    return code;
}

/* ---- the bucket ---- */

static bool gcs_source(const struct store_bucket *bucket, struct sl_arena *arena, struct sl_str prefix,
                       struct source *source)
{
    (void)arena;
    source->type = SOURCE_GCS;
    source->bucket = sl_str(bucket->config->gcs_bucket);
    source->prefix = prefix;
    source->private_key.hidden = bucket->account.private_key;
    source->client_email = bucket->account.client_email;
    return true;
}

bool store_gcs_open(struct store_bucket *bucket, struct sl_arena *arena, const char **key, struct sl_error *error)
{
    static const struct bucket_kind kind = {
        .look = gcs_look, .put = gcs_put, .del = gcs_delete, .list = gcs_list, .get = gcs_get, .source = gcs_source};
    const char *path = bucket->config->gcs_service_account_path;
    bucket->kind = &kind;
    bucket->tokens = (struct memo){.capacity = 1};
    if (!path)
        path = getenv("GOOGLE_APPLICATION_CREDENTIALS");
    *key = bucket->names->gcs_account;
    return !path || !*path || google_account_read(path, arena, &bucket->account, error) == SL_OK;
}
