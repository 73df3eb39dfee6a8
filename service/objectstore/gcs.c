/* Objects of a Google Cloud Storage bucket, by its JSON API ("Cloud Storage JSON API", Google). */
#include <stdio.h>

#include "base/base64.h"
#include "base/json_fields.h"
#include "base/json_write.h"
#include "objectstore/impl.h"

#define HOST "https://storage.googleapis.com/"

/* ---- requests ---- */

/* Sets the URL "<HOST><before><bucket>/o<between><key><after>" (bucket and key percent-encoded) and the header Authorization. For example,
 * `before` "storage/v1/b/", `between` "/" and `after` "?alt=media" make the URL of an object's contents. */
static enum sl_code gcs_prepare(struct bucket_request *request, const char *before, const char *between,
                                const char *after, struct sl_error *error)
{
    struct sl_str token;
    struct sl_buf url = {0}, bearer = {0};
    enum sl_code code = credentials_google(request->store, &request->arena, &token, error);
    if (code != SL_OK)
        return code;
    sl_buf_cstr(&url, HOST);
    sl_buf_cstr(&url, before);
    fetch_encode(&url, request->store->config->gcs_name, false);
    sl_buf_cstr(&url, "/o");
    sl_buf_cstr(&url, between);
    fetch_encode(&url, request->key, false);
    sl_buf_cstr(&url, after);
    sl_buf_cstr(&bearer, "Bearer ");
    sl_buf_str(&bearer, token);
    struct sl_str header = sl_buf_move_to_arena(&bearer, &request->arena);
    request->fetch.url = sl_buf_move_to_arena(&url, &request->arena).data;
    request->fetch.trusted = false; /* Google's servers have no reserved addresses */
    if (request->store->is_source)
        request->fetch.refused = NULL; /* fetch's own error for the status says enough */
    object_header(request, "Authorization", header);
    return header.data && request->fetch.url ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Prepares a download of the object's contents. */
static enum sl_code gcs_get(struct bucket_request *request, struct sl_error *error)
{
    return gcs_prepare(request, "storage/v1/b/", "/", "?alt=media", error);
}

/* Prepares a request with the URL of the object: it gets the object's properties or, with method DELETE, deletes the object. */
static enum sl_code prepare_object(struct bucket_request *request, struct sl_error *error)
{
    return gcs_prepare(request, "storage/v1/b/", "/", "", error);
}

static enum sl_code gcs_delete(struct bucket_request *request, struct sl_error *error)
{
    request->fetch.method = "DELETE";
    return prepare_object(request, error);
}

/* ---- properties ---- */

/* Reads the JSON object "metadata"; keeps the fields that the caller of object_head asked for. */
static void read_metadata(struct sl_json *j, struct bucket_request *request)
{
    struct sl_str key, text;
    if (!sl_json_object(j))
        return;
    while (sl_json_next(j, &key))
        if (sl_json_text(j, &text))
            object_set_metadata(request, key, text);
}

/* Reads the properties of a GCS object from JSON. Numbers are texts in this API. False if the response is not a valid JSON object. */
static bool read_object(struct sl_json *j, struct bucket_request *request)
{
    struct object_info *info = request->info;
    struct sl_str key, text;
    size_t size;
    if (!sl_json_object(j))
        return false;
    while (sl_json_next(j, &key)) {
        if (sl_str_equal(key, SL_STR("metadata")))
            read_metadata(j, request);
        else if (!sl_json_text(j, &text))
            continue;
        else if (sl_str_equal(key, SL_STR("size")))
            sl_parse_u64(text, &info->size);
        else if (sl_str_equal(key, SL_STR("contentEncoding")))
            info->is_gzip = sl_str_equal(text, SL_STR("gzip"));
        else if (sl_str_equal(key, SL_STR("generation")) && text.size < sizeof info->version)
            snprintf(info->version, sizeof info->version, SL_STR_FMT, SL_STR_ARG(text));
        else if (sl_str_equal(key, SL_STR("md5Hash")))
            info->has_md5 = sl_base64_decode(text, info->md5, sizeof info->md5, &size) && size == sizeof info->md5;
    }
    return !j->failed;
}

/* Requests the properties of an object and reads them into request->info. */
static enum sl_code gcs_head(struct bucket_request *request, struct sl_error *error)
{
    struct sl_buf answer = {0};
    enum sl_code code = prepare_object(request, error);
    if (code == SL_OK)
        code = object_run(request, &answer, error);
    struct sl_json j = sl_json(sl_buf_view(&answer), &request->arena, true); /* true: any bytes in strings */
    if (code == SL_OK && !read_object(&j, request))
        code = j.busy ? sl_fail(error, SL_BUSY, "out of memory")
                      : sl_fail(error, SL_DOWNLOAD_ERROR, "the response of GCS is not JSON");
    sl_buf_free(&answer);
    return code;
}

/* ---- writing ---- */

/* Makes the JSON description of an object. no-transform keeps the server from decompressing gzip contents for clients. */
static struct sl_str describe(struct sl_arena *arena, const struct object_contents *contents)
{
    struct sl_buf body = {0};
    struct sl_json_writer w = sl_json_writer(&body);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "contentType", sl_str(contents->media_type));
    sl_json_member_str(&w, "cacheControl", SL_STR("no-transform"));
    if (contents->encoding)
        sl_json_member_str(&w, "contentEncoding", sl_str(contents->encoding));
    if (contents->metadata_count) {
        sl_json_member_object(&w, "metadata");
        for (size_t i = 0; i < contents->metadata_count; i++)
            sl_json_member_str(&w, contents->metadata[i].name, contents->metadata[i].value);
        sl_json_end_object(&w);
    }
    sl_json_end_object(&w);
    return sl_buf_move_to_arena(&body, arena);
}

/* Called for each header of a response: stores the URL of the upload session, the value of Location. */
static void keep_location(void *arg, struct sl_str name, struct sl_str value)
{
    struct bucket_request *request = arg;
    if (sl_str_equal_nocase(name, SL_STR("location")) && !request->location) {
        request->location = sl_arena_strndup(&request->arena, value.data, value.size);
        request->no_memory |= !request->location;
    }
}

static void set_contents(struct bucket_request *request, const struct object_contents *contents)
{
    request->fetch.body.hidden = (struct sl_str){(const char *)contents->bytes.data, contents->bytes.size};
    object_header(request, "Content-Type", sl_str(contents->media_type));
}

/* Appends the condition of an upload to its query: ifGenerationMatch=0 means that the object must not exist. A version is a generation of
 * Google, a number, so it needs no escapes. */
static void add_condition(struct sl_buf *query, const struct object_contents *contents)
{
    if (contents->if_absent || contents->if_version)
        sl_buf_printf(query, "&ifGenerationMatch=%s", contents->if_absent ? "0" : contents->if_version);
}

/* Uploads an object with properties, by a resumable upload: a first request sends the properties and gets a URL, to which a second one
 * sends the contents. */
static enum sl_code put_described(struct bucket_request *request, const struct object_contents *contents,
                                  struct sl_error *error)
{
    struct sl_buf query = {0};
    add_condition(&query, contents);
    const char *after = sl_buf_move_to_arena(&query, &request->arena).data;
    enum sl_code code = !after
                            ? sl_fail(error, SL_BUSY, "out of memory")
                            : gcs_prepare(request, "upload/storage/v1/b/", "?uploadType=resumable&name=", after, error);
    request->fetch.method = "POST";
    request->fetch.body.hidden = describe(&request->arena, contents);
    request->fetch.field = keep_location;
    object_header(request, "Content-Type", SL_STR("application/json"));
    if (code == SL_OK && !request->fetch.body.hidden.data)
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = object_run(request, NULL, error);
    if (code == SL_OK && request->no_memory)
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code != SL_OK || !request->location)
        return code == SL_OK ? sl_fail(error, SL_DOWNLOAD_ERROR, "the response of GCS contains no upload URL") : code;
    request->fetch.url = request->location;
    request->fetch.method = "PUT";
    request->fetch.header_count = 0; /* no Authorization: the URL itself is the credential */
    set_contents(request, contents);
    return object_run(request, NULL, error);
}

/* Uploads an object by one request, or by put_described if it has properties that one request cannot set. */
static enum sl_code gcs_put(struct bucket_request *request, const struct object_contents *contents,
                            struct sl_error *error)
{
    struct sl_buf query = {0};
    if (contents->no_transform || contents->metadata_count)
        return put_described(request, contents, error);
    add_condition(&query, contents);
    if (contents->encoding)
        sl_buf_printf(&query, "&contentEncoding=%s", contents->encoding);
    const char *after = sl_buf_move_to_arena(&query, &request->arena).data;
    enum sl_code code = !after ? sl_fail(error, SL_BUSY, "out of memory")
                               : gcs_prepare(request, "upload/storage/v1/b/", "?uploadType=media&name=", after, error);
    request->fetch.method = "POST";
    set_contents(request, contents);
    return code == SL_OK ? object_run(request, NULL, error) : code;
}

/* ---- lists ---- */

/* Reads a page of a list of objects. The page begins with the object `after` itself, as startOffset is inclusive; it is skipped. False if
 * the response is not a valid JSON object. */
static bool read_list(struct sl_json *j, struct sl_str after, struct object_list *list)
{
    struct gcs_item {
        struct sl_str name, updated;
    };
    static const struct sl_field fields[] = {SL_FIELD(TEXT, false, gcs_item, name, "name"),
                                             SL_FIELD(TEXT, false, gcs_item, updated, "updated"), SL_FIELDS_END};
    struct sl_str key;
    if (!sl_json_object(j))
        return false;
    while (sl_json_next(j, &key)) {
        if (sl_str_equal(key, SL_STR("items")) && sl_json_peek(j) == SL_JSON_ARRAY) {
            sl_json_enter(j);
            while (sl_json_next(j, &key)) {
                struct gcs_item item = {.name = {NULL, 0}};
                sl_json_read_object(j, fields, &item);
                if (item.name.data && !sl_str_equal(item.name, after))
                    object_list_add(list, item.name, item.updated); /* sets list->failed or ->more if it cannot */
            }
            continue;
        }
        list->more |= sl_str_equal(key, SL_STR("nextPageToken"));
        sl_json_skip(j);
    }
    return !j->failed;
}

/* Gets one page of objects whose names begin with request->key, from the one after `after` on (empty: from the first). */
static enum sl_code gcs_list(struct bucket_request *request, struct sl_str after, struct object_list *list,
                             struct sl_error *error)
{
    struct sl_buf query = {0}, answer = {0};
    sl_buf_cstr(&query, "&fields=items(name,updated),nextPageToken&maxResults=1000");
    if (after.size) {
        sl_buf_cstr(&query, "&startOffset=");
        fetch_encode(&query, after, false);
    }
    struct sl_str rest = sl_buf_move_to_arena(&query, &request->arena);
    if (!rest.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = gcs_prepare(request, "storage/v1/b/", "?prefix=", rest.data, error);
    if (code == SL_OK)
        code = object_run(request, &answer, error);
    struct sl_json j = sl_json(sl_buf_view(&answer), &request->arena, true); /* true: any bytes in strings */
    if (code == SL_OK && !read_list(&j, after, list))
        code = j.busy ? sl_fail(error, SL_BUSY, "out of memory")
                      : sl_fail(error, SL_DOWNLOAD_ERROR, "the response of GCS is not a list of objects");
    sl_buf_free(&answer);
    return code;
}

const struct object_service object_gcs = {
    .get = gcs_get, .exists = prepare_object, .del = gcs_delete, .head = gcs_head, .put = gcs_put, .list = gcs_list};
