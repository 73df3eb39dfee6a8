/* POST /upload/v2/: the client lists symbol files with size and MD5; the answer says which ones to send, and to which URLs. */
#include "api/impl.h"
#include "api/uploads/session.h"

#include "base/json_fields.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "id/id.h"

enum { BODY_MAX = 2621440 };

struct single_file {
    struct sl_str key, md5;
    struct sl_opt_u64 size;
};

struct single { /* the body of a request: files to upload one by one */
    struct single_file *files;
    size_t count;
    bool no_memory; /* the body was not read for lack of memory */
};

/* ---- reading ---- */

static const struct sl_field file_fields[] = {
    SL_FIELD(TEXT, true, single_file, key, "key"),
    SL_FIELD(U64, true, single_file, size, "size"),
    SL_FIELD(TEXT, true, single_file, md5, "md5_hash"),
    SL_FIELDS_END,
};

static const struct sl_field single_fields[] = {
    SL_FIELD_ITEMS(single, files, count, "files", file_fields),
    SL_FIELDS_END,
};

/* Reads the body of a request. False if it is malformed or lacks a member, or for lack of memory (`no_memory` is set). */
static bool single_read(struct sl_str body, struct sl_arena *arena, struct single *single)
{
    struct sl_json j = sl_json(body, arena, true); /* true: also strings that are not UTF-8 */
    bool good = sl_json_read_object(&j, single_fields, single) && sl_json_end(&j) && single->files;
    for (size_t i = 0; good && i < single->count; i++)
        good = single->files[i].key.data && single->files[i].size.set && single->files[i].md5.data;
    single->no_memory = j.busy;
    return good;
}

/* ---- the answer ---- */

struct single_answer {
    struct http_exchange *x;
    const struct config_store *config;
    enum store_part part; /* to which the token may upload: that of releases, or else that of try builds */
    struct sl_json_writer w;
    char scope[SYMBFILE_SCOPE]; /* of the uploads */
};

/* Writes the type of an action ("upload", "skip", "error") and, if it is not NULL, the message of an error. */
static void answer_action(struct sl_json_writer *w, const char *type, const char *message)
{
    sl_json_member_str(w, "type", sl_str(type));
    if (!message)
        return;
    sl_json_member_str(w, "msg", sl_str(message));
}

/* Parses an MD5 of 32 lower-case hex digits; false for any other text. */
static bool read_md5(struct sl_str text, uint8_t md5[16])
{
    size_t size;
    for (size_t i = 0; i < text.size; i++) /* sl_hex_decode would take upper case too */
        if (text.data[i] >= 'A' && text.data[i] <= 'F')
            return false;
    return text.size == 32 && sl_hex_decode(text, md5, 16, &size) && size == 16;
}

/* Writes the action "upload" with the URL of a session, "http://<host>/upload/v2/session/<secret>", and how the file must
 * be encoded. */
static void answer_upload(struct single_answer *a, struct sl_str key, const char *secret)
{
    struct sl_buf url = {0};
    http_put_base_url(a->x, &url);
    sl_buf_printf(&url, "upload/v2/session/%s", secret);
    answer_action(&a->w, "upload", NULL);
    sl_json_member_str(&a->w, "url", sl_buf_view(&url));
    sl_json_put_key(&a->w, "content_encoding");
    if (uploads_is_packed(a->config, key))
        sl_json_put_str(&a->w, SL_STR("gzip"));
    else
        sl_json_put_null(&a->w);
    sl_buf_free(&url);
}

/* Writes what the client is to do with a file: "upload" it, "skip" it because the store has the same file, or report an "error" in key or
 * MD5. SL_OK; SL_BUSY: memory is short; else the error of the store, which could not be queried. */
static enum sl_code answer_file(struct single_answer *a, const struct single_file *file, struct sl_error *error)
{
    struct sl_str key;
    uint8_t md5[16];
    char secret[SESSION_SECRET];
    enum uploads_found found = UPLOADS_FOUND_NONE;
    if (!uploads_normalize_key(&a->x->arena, file->key, &key)) {
        if (key.size)
            return sl_fail(error, SL_BUSY, "out of memory");
        answer_action(&a->w, "error", "invalid key");
        return SL_OK;
    }
    if (!read_md5(file->md5, md5)) {
        answer_action(&a->w, "error", "invalid MD5 hex digest");
        return SL_OK;
    }
    /* 0: the size of the file as gzip is not known */
    enum sl_code code =
        uploads_find_duplicate(a->config, a->scope, a->part, key, file->size.value, md5, 0, &found, error);
    if (code == SL_OK && found == UPLOADS_FOUND_SAME) {
        answer_action(&a->w, "skip", NULL);
        return SL_OK;
    }
    uint64_t begin = clock_mono_ns();
    uint16_t node = ((const struct service *)a->x->service)->node;
    if (code != SL_OK)
        return code;
    if (!session_new(node, a->scope, a->part, key, file->size.value, md5, secret))
        return sl_fail(error, SL_BUSY, "out of memory");
    metric_observe_since(METRIC_TECKEN_INITIATE, begin, NULL);
    answer_upload(a, key, secret);
    return SL_OK;
}

/* Answers for each file of the request whether and where the client shall upload it: 201. If that fails for one file, no answer for the
 * others is given: 503 if memory or descriptors are short, else 500. */
static void single_answer(struct http_exchange *x, const struct config *config, const struct mozilla_token *token,
                          const struct single *single)
{
    struct sl_buf body = {0};
    struct sl_error error = {0};
    /* a token that may not upload releases may upload try builds: uploads_authorize has checked it */
    struct single_answer a = {x, &config->mozilla.store, token->upload ? STORE_REGULAR : STORE_TRY,
                              sl_json_writer(&body), ""};
    enum sl_code code = SL_OK;
    uploads_get_scope(x, token, a.scope);
    sl_json_begin_object(&a.w);
    sl_json_put_key(&a.w, "id");
    sl_json_put_u64(&a.w, uploads_next_id());
    sl_json_put_key(&a.w, "created_at");
    sl_json_put_i64(&a.w, clock_wall_s());
    sl_json_put_key(&a.w, "user");
    sl_json_put_str(&a.w, token->email);
    sl_json_put_key(&a.w, "try_symbols");
    sl_json_put_boolean(&a.w, a.part == STORE_TRY);
    sl_json_put_key(&a.w, "upload_protocol");
    sl_json_put_str(&a.w, SL_STR("gcs-resumable"));
    sl_json_put_key(&a.w, "files");
    sl_json_begin_array(&a.w);
    for (size_t i = 0; code == SL_OK && i < single->count; i++) {
        sl_json_begin_object(&a.w);
        sl_json_put_key(&a.w, "key");
        sl_json_put_str(&a.w, single->files[i].key);
        sl_json_put_key(&a.w, "action");
        sl_json_begin_object(&a.w);
        code = answer_file(&a, &single->files[i], &error);
        sl_json_end_object(&a.w);
        sl_json_end_object(&a.w);
    }
    sl_json_end_array(&a.w);
    sl_json_end_object(&a.w);
    if (code == SL_OK)
        http_reply_json(x, 201, &body);
    else if (code == SL_BUSY)
        http_reply_no_memory(x);
    else
        uploads_reply_error(x, 500, SL_STR("Internal Server Error"));
    http_set_header(x, "Vary", SL_STR("Auth-Token"));
    sl_buf_free(&body);
}

/* POST /upload/v2/: answers a request to upload files one by one; 400 if it is malformed or has too many files. If its token is refused,
 * the body is read nevertheless, so that the client reads the answer. */
static void single_post(struct http_exchange *x)
{
    /* a reference, as `token` points into the configuration, which may be replaced meanwhile */
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    const struct mozilla_token *token;
    struct sl_bytes body;
    struct single single = {.files = NULL};
    uint64_t begin = clock_mono_ns();
    if (!uploads_authorize(x, &token)) {
        uploads_discard_body(x);
    } else if (http_body(x, &body) == SL_OK) {
        bool is_read = single_read((struct sl_str){(const char *)body.data, body.size}, &x->arena, &single);
        if (!is_read && single.no_memory)
            http_reply_no_memory(x);
        else if (!is_read)
            uploads_reply_error(x, 400, SL_STR("malformed JSON request body"));
        else if (single.count > config->mozilla.store.v2_max_files)
            uploads_reply_error(x, 400, SL_STR("too many files"));
        else
            single_answer(x, config, token, &single);
    }
    metric_observe_since(METRIC_TECKEN_UPLOAD_V2, begin, NULL);
    config_release(config);
}

static uint64_t single_limit(const struct http_exchange *x)
{
    (void)x;
    return BODY_MAX;
}

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/upload/v2/",
     .handler = single_post,
     .takes_work = true,
     .body_limit = single_limit,
     .there = uploads_find},
    {.method = "PUT",
     .pattern = "/upload/v2/session/{secret}",
     .handler = session_put,
     .takes_work = true,
     .body_limit = session_limit,
     .there = uploads_find},
    {.method = NULL},
};

const struct http_family family_uploads_v2 = {.routes = routes, .error = uploads_error, .allow_separator = ", "};
