/* POST /upload/: an archive of symbols in a form. POST /upload/auth_info/: the permissions of a token. */
#include "api/uploads/by_url.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "http/multipart.h"

/* FORM_OVERHEAD: bytes that a form may have besides its archive; FIELD_MAX: limit of the bytes of a form field */
enum { FORM_OVERHEAD = 1 << 20, FIELD_MAX = 64 << 10 };

/* 9999-12-31: the expiry sent for tokens without one, the last date that all clients can parse. */
#define NEVER_EXPIRES_S INT64_C(253402214400)

struct upload {
    struct http_exchange *x;
    const struct config *config; /* a reference */
    const struct mozilla_token *token;
    struct archive archive;
    int fd;                 /* file of the request's body; after upload_fetch, the downloaded archive */
    struct sl_str boundary; /* of the multipart form; data NULL: the form is urlencoded */
    bool has_file, in_file; /* the form has an archive; the part that is being read is the archive */
    bool has_try;           /* the form has the field "try" */
    struct sl_str *field;   /* the field that is being read: `url` or `try_field`; NULL: another part */
    size_t dropped;         /* offset in the body: pages before it were read, and dropped from memory */
    struct sl_str url, try_field;
    struct uploads_url from; /* download of an archive by URL */
    enum store_part part;
    uint64_t begun_us;
};

/* ---- the form: its parts are views of the body ---- */

/* Begins a part of the form: a file or a field. The first file is the archive, and `name` its file name; other files are ignored, and so
 * are fields other than "url" and "try". */
static enum sl_code upload_begin_part(struct upload *u, struct sl_str name, bool is_file)
{
    struct sl_arena *arena = u->archive.arena;
    u->in_file = is_file && !u->has_file;
    u->field = is_file                             ? NULL
               : sl_str_equal(name, SL_STR("url")) ? &u->url
               : sl_str_equal(name, SL_STR("try")) ? &u->try_field
                                                   : NULL;
    u->has_try = u->has_try || u->field == &u->try_field;
    if (u->field)
        *u->field = SL_STR("");
    if (!u->in_file)
        return SL_OK;
    const char *kept = sl_arena_strndup(arena, name.data, name.size);
    u->has_file = true;
    u->archive.filename = (struct sl_str){kept, name.size};
    return kept ? SL_OK : SL_BUSY;
}

struct upload_form {
    struct upload *upload;
    struct multipart *multipart;
};

/* multipart_callbacks.begin. */
static enum sl_code upload_begin(void *arg, struct sl_str name, struct sl_error *error)
{
    struct upload_form *form = arg;
    enum sl_code code = upload_begin_part(form->upload, name, multipart_file_name(form->multipart).data != NULL);
    return code == SL_OK ? code : sl_fail(error, code, "out of memory");
}

/* multipart_callbacks.data: adds the next bytes of a part to it. All bytes of a part follow each other in the mapped body, so that the part
 * is a view that grows. Pages that were read are dropped from memory, as an archive may be large. */
static enum sl_code upload_data(void *arg, struct sl_bytes data, struct sl_error *error)
{
    struct upload *u = ((struct upload_form *)arg)->upload;
    size_t end = (size_t)(data.data + data.size - u->archive.body.bytes.data);
    if (end - u->dropped >= 2 * MULTIPART_PIECE) { /* not for each piece: only every 2 MiB */
        sl_mapping_drop(&u->archive.body, u->dropped, end - u->dropped);
        u->dropped = end;
    }
    if (u->in_file) {
        if (!u->archive.bytes.size)
            u->archive.bytes.data = data.data;
        u->archive.bytes.size += data.size;
    } else if (u->field) {
        if (!u->field->size)
            u->field->data = (const char *)data.data;
        u->field->size += data.size;
        if (u->field->size > FIELD_MAX)
            return sl_fail(error, SL_MALFORMED, "a form field of the upload is too large");
    }
    return SL_OK;
}

/* Reads a multipart form: sets the archive and the fields. False: the archive's `failure` is set, 503 when out of memory, 400 if the form
 * is malformed. */
static bool upload_read_multipart(struct upload *u)
{
    struct upload_form form = {.upload = u};
    const struct multipart_callbacks callbacks = {.begin = upload_begin, .data = upload_data, .arg = &form};
    struct sl_error error;
    form.multipart = multipart_new(u->archive.arena, u->boundary, &callbacks);
    if (!form.multipart)
        return archive_fail(&u->archive, 503, "out of memory");
    enum sl_code code = multipart_feed(form.multipart, u->archive.body.bytes, &error);
    code = code ? code : multipart_finish(form.multipart, &error);
    if (code == SL_BUSY)
        return archive_fail(&u->archive, 503, "out of memory");
    return code == SL_OK || archive_fail(&u->archive, 400, "Must be multipart form data with at least one file");
}

/* Reads the fields of an urlencoded form, which has no files. A form of more than FIELD_MAX bytes is treated like an empty one. False, with
 * `failure` set, when out of memory. */
static bool upload_read_urlencoded(struct upload *u)
{
    struct sl_bytes body = u->archive.body.bytes;
    size_t count;
    if (body.size > FIELD_MAX)
        return true;
    struct http_query *pairs = http_form(u->archive.arena, (struct sl_str){(const char *)body.data, body.size}, &count);
    if (body.size && !pairs)
        return archive_fail(&u->archive, 503, "out of memory");
    for (size_t i = 0; pairs && i < count; i++) {
        if (sl_str_equal(pairs[i].key, SL_STR("url")))
            u->url = pairs[i].value;
        if (sl_str_equal(pairs[i].key, SL_STR("try"))) {
            u->try_field = pairs[i].value;
            u->has_try = true;
        }
    }
    return true;
}

/* Pool work: reads the form. `failure` is set if that fails, or if the form has neither a file nor a URL. */
static void upload_read(void *arg)
{
    struct upload *u = arg;
    struct sl_error error;
    if (sl_map_fd(u->fd, &u->archive.body, &error) != SL_OK) {
        archive_fail(&u->archive, error.code == SL_BUSY ? 503 : 500, "Internal Server Error");
        return;
    }
    if (u->boundary.data && !upload_read_multipart(u))
        return;
    if (!u->boundary.data && !upload_read_urlencoded(u))
        return;
    if (!u->has_file && !u->url.size)
        archive_fail(&u->archive, 400, "Must be multipart form data with at least one file");
}

struct directory_reading {
    struct archive *archive;
    int entries; /* file of archive_list_directory */
};

/* Pool work: reads the directory that archive_list_directory has listed. */
static void upload_read_entries(void *arg)
{
    const struct directory_reading *reading = arg;
    archive_read_directory(reading->archive, reading->entries);
}

/* Reads the ZIP directory of the archive and selects the members to store. `failure` is set if the archive is refused or cannot be read. */
static void upload_read_directory(struct upload *u)
{
    struct directory_reading reading = {.archive = &u->archive};
    struct sl_error error;
    u->archive.fd = u->fd;
    if (!archive_list_directory(&u->archive, &reading.entries))
        return;
    if (pool_run(POOL_CONVERT, upload_read_entries, &reading, &error) != SL_OK)
        archive_fail(&u->archive, 503, "Internal Server Error");
    close(reading.entries);
}

/* ---- by URL ---- */

/* Pool work: unmaps the form, and maps the downloaded archive in its place. `failure` is set if that fails. */
static void upload_read_fetched(void *arg)
{
    struct upload *u = arg;
    struct sl_error error;
    sl_unmap(&u->archive.body);
    u->archive.body = (struct sl_mapping){.mapped = 0};
    if (sl_map_fd(u->fd, &u->archive.body, &error) != SL_OK) {
        archive_fail(&u->archive, error.code == SL_BUSY ? 503 : 500, "Internal Server Error");
        return;
    }
    u->archive.bytes = u->archive.body.bytes;
}

/* Downloads the archive from the form's URL, and reads its directory. As the archive replaces the form in `fd` and in memory, `url` is
 * copied before; of `try_field` only whether it is empty matters from now on. `failure` is set if that fails. */
static void upload_fetch(struct upload *u)
{
    struct cache_tmp tmp;
    struct sl_error error = {0};
    const char *url = sl_arena_strndup(u->archive.arena, u->url.data, u->url.size);
    u->from.archive = &u->archive;
    u->try_field = u->try_field.size ? SL_STR("try") : SL_STR("");
    if (!url || cache_tmp_create(&tmp, true, &error) != SL_OK) { /* true: a file without a name */
        archive_fail(&u->archive, 503, "out of memory");
        return;
    }
    close(u->fd);
    u->fd = tmp.fd;
    uint64_t begin = clock_mono_ns();
    bool fetched = uploads_fetch(&u->from, (struct sl_str){url, u->url.size}, u->fd);
    metric_observe_since(METRIC_TECKEN_UPLOAD_BY_URL, begin, NULL);
    if (fetched && pool_run(POOL_CONVERT, upload_read_fetched, u, &error) != SL_OK)
        archive_fail(&u->archive, 503, "Internal Server Error");
    if (fetched && !u->archive.failure.status)
        upload_read_directory(u);
}

/* ---- contents ---- */

struct upload_checking {
    struct upload *upload;
    size_t next;   /* index of the first member that no fiber has taken */
    size_t failed; /* index of the first bad member so far; SIZE_MAX: there is none */
};

/* Sets `failure` for a bad member. Members are checked concurrently: of several bad ones the first in the archive is reported. */
static void upload_check_failed(struct upload_checking *c, size_t index, const struct member_job *job)
{
    struct archive *archive = &c->upload->archive;
    if (index > c->failed)
        return;
    c->failed = index;
    if (job->code == SL_PERMISSION_DENIED)
        archive_fail(archive, 400, "Content of archive file contains the snippet '" SL_STR_FMT "' which is not allowed",
                     SL_STR_ARG(job->snippet));
    else if (job->code == SL_MALFORMED)
        archive_fail(archive, 400, "Bad CRC-32 for file '" SL_STR_FMT "'", SL_STR_ARG(job->member->entry->name));
    else
        archive_fail(archive, job->code == SL_BUSY ? 503 : 500, "Internal Server Error");
}

/* A worker fiber, one of several: takes members one by one and checks them, until none is left or one is bad. */
static void upload_check_some(void *arg)
{
    struct upload_checking *c = arg;
    struct archive *archive = &c->upload->archive;
    while (c->next < archive->count && c->failed == SIZE_MAX && !fiber_cancelled()) {
        size_t index = c->next++;
        struct member_job job = {.archive = archive, .member = &archive->members[index]};
        member_check(&job);
        if (job.code != SL_OK && job.code != SL_CANCELLED)
            upload_check_failed(c, index, &job);
    }
}

/* Checks the contents of the members concurrently. `failure` is set if one is bad. False when cancelled. */
static bool upload_check(struct upload *u)
{
    struct upload_checking c = {.upload = u, .failed = SIZE_MAX};
    unsigned workers = u->config->mozilla.store.workers ? u->config->mozilla.store.workers : loop_pool_threads();
    size_t helpers = u->archive.count < workers ? u->archive.count : workers;
    uint64_t begin = clock_mono_ns();
    bool whole = fiber_run_workers(upload_check_some, &c, helpers ? helpers - 1 : 0); /* - 1: this fiber works too */
    metric_observe_since(METRIC_TECKEN_UPLOAD_EXTRACT, begin, NULL);
    return whole;
}

/* ---- answers ---- */

/* Writes a time, in microseconds since the epoch, as "2018-01-26T16:04:11.123Z". */
static void upload_time(struct sl_json_writer *w, const char *key, uint64_t us)
{
    char text[64], whole[40];
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof text, "%s.%03uZ", whole, (unsigned)(us / 1000 % 1000));
    sl_json_member_str(w, key, sl_str(text));
}

/* Returns a new id: microseconds since the epoch, or the last id plus 1 if the clock has not advanced since or was set back. */
uint64_t uploads_next_id(void)
{
    static uint64_t last;
    uint64_t now = clock_wall_us();
    last = now > last ? now : last + 1;
    return last;
}

/* Writes the members that an upload has in an answer and in its record (`is_record`). In the answer "user" is the email address, in the
 * record an object with id and address; the bucket's name has different keys. */
static void write_upload(struct sl_json_writer *w, const struct upload *u, uint64_t id, bool is_record)
{
    sl_json_member_u64(w, "id", id);
    /* from.url: from where the archive was downloaded; empty: the client has sent it */
    sl_json_member_u64(w, "size", u->from.url.size ? u->from.size : u->archive.bytes.size);
    sl_json_member_str(w, "filename", u->archive.filename);
    sl_json_member_str(w, is_record ? "bucket_name" : "bucket", sl_str(store_bucket()));
    sl_json_put_key(w, "download_url");
    if (u->from.url.size)
        sl_json_put_str(w, u->from.url);
    else
        sl_json_put_null(w);
    sl_json_member_boolean(w, "try_symbols", u->part == STORE_TRY);
    sl_json_member_array(w, "redirect_urls");
    for (size_t i = 0; i < u->from.redirect_count; i++)
        sl_json_put_str(w, u->from.redirects[i]);
    sl_json_end_array(w);
    upload_time(w, "completed_at", clock_wall_us());
    upload_time(w, "created_at", u->begun_us);
    sl_json_put_key(w, "user");
    if (is_record)
        uploads_write_user(w, u->token);
    else
        sl_json_put_str(w, u->token->email);
    sl_json_put_key(w, "skipped_keys"); /* names as in the archive, by which clients know their files */
    sl_json_begin_array(w);
    for (size_t i = 0; i < u->archive.count; i++)
        if (u->archive.members[i].skipped)
            sl_json_put_str(w, u->archive.members[i].entry->name);
    sl_json_end_array(w);
}

/* Writes the member "file_uploads": the files that this upload has stored, without those that the store had already. */
static void write_file_uploads(struct sl_json_writer *w, const struct upload *u)
{
    sl_json_member_array(w, "file_uploads");
    for (size_t i = 0; i < u->archive.count; i++) {
        const struct archive_member *member = &u->archive.members[i];
        if (!member->location.data)
            continue;
        sl_json_begin_object(w);
        sl_json_member_u64(w, "id", uploads_next_id());
        sl_json_member_str(w, "bucket_name", sl_str(store_bucket()));
        sl_json_member_str(w, "key", member->key);
        sl_json_member_boolean(w, "update", member->is_update);
        sl_json_member_boolean(w, "compressed", member->is_packed);
        sl_json_member_u64(w, "size", member->stored_size);
        upload_time(w, "completed_at", clock_wall_us());
        upload_time(w, "created_at", u->begun_us);
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* Stores the record of an upload. Clients get their answer even if that fails, as the symbols are stored already. */
static void upload_keep_record(const struct upload *u, uint64_t id)
{
    struct sl_buf record = {0};
    struct sl_json_writer w = sl_json_writer(&record);
    struct sl_error error = {0};
    sl_json_begin_object(&w);
    sl_json_member_object(&w, "upload");
    write_upload(&w, u, id, true); /* true: as in a record */
    sl_json_member_array(&w, "ignored_keys");
    for (size_t i = 0; i < u->archive.ignored_count; i++)
        sl_json_put_str(&w, u->archive.ignored[i]);
    sl_json_end_array(&w);
    write_file_uploads(&w, u);
    sl_json_put_key(&w, "related"); /* other uploads with the same contents: always empty, as they are not searched */
    sl_json_begin_array(&w);
    sl_json_end_array(&w);
    sl_json_end_object(&w);
    sl_json_end_object(&w);
    if (uploads_record_put(u->archive.scope, u->part, id, sl_buf_view(&record), &error) != SL_OK)
        log_warn("uploads", "cannot store the record of an upload; it will be missing in lists of uploads",
                 LOG_U64("id", id), LOG_ERR(&error));
    sl_buf_free(&record);
}

/* Stores the record of a finished upload, and answers 201. */
static void upload_reply(struct upload *u)
{
    struct sl_buf body = {0};
    struct sl_json_writer w = sl_json_writer(&body);
    uint64_t id = uploads_next_id();
    upload_keep_record(u, id);
    sl_json_begin_object(&w);
    sl_json_member_object(&w, "upload");
    write_upload(&w, u, id, false); /* false: as in an answer */
    sl_json_end_object(&w);
    sl_json_end_object(&w);
    http_reply_json(u->x, 201, &body);
    http_set_header(u->x, "Vary", SL_STR("Auth-Token"));
}

/* Counts and logs a successful upload. */
static void upload_log(const struct upload *u)
{
    size_t stored = 0, skipped = 0;
    /* the first label says whether it is a try build, as Mozilla's service writes it */
    metric_add(METRIC_TECKEN_UPLOADS, 1, u->part == STORE_TRY ? "True" : "False", store_bucket(), NULL);
    for (size_t i = 0; i < u->archive.count; i++) {
        stored += u->archive.members[i].location.data != NULL;
        skipped += u->archive.members[i].skipped;
    }
    log_info("uploads", "symbols uploaded", LOG_SLSTR("user", u->token->email),
             LOG_STR("store", u->part == STORE_TRY ? "try" : "regular"), LOG_U64("bytes", u->archive.bytes.size),
             LOG_U64("stored", stored), LOG_U64("skipped", skipped));
}

/* Answers with the archive's `failure`, and logs it. */
static void upload_refuse(struct upload *u)
{
    const struct uploads_failure *failure = &u->archive.failure;
    uploads_reply_error(u->x, failure->status, failure->text);
    log_info("uploads", "rejected a symbol upload", LOG_U64("status", (uint64_t)failure->status),
             LOG_SLSTR("text", failure->text));
}

/* ---- the request ---- */

/* Chooses the part of the store. With the field "try": that of try builds if it has a value, else that of releases. Without the field: that
 * of releases, unless the token may only upload try builds. False, with `failure`, if the token may not upload to it. */
static bool upload_choose_store(struct upload *u)
{
    bool is_try = u->has_try ? u->try_field.size != 0 : !u->token->upload;
    u->part = is_try ? STORE_TRY : STORE_REGULAR;
    return (is_try ? u->token->upload_try : u->token->upload) || archive_fail(&u->archive, 403, "Forbidden");
}

/* Reads, checks and stores an upload. `failure` is set if the upload is refused or cannot be stored. It may stay unset when cancelled, as
 * then nobody is answered. */
static void upload_store(struct upload *u)
{
    struct sl_error error = {0};
    if (pool_run(POOL_CONVERT, upload_read, u, &error) != SL_OK) {
        archive_fail(&u->archive, error.code == SL_INTERNAL ? 500 : 503, "Internal Server Error");
        return;
    }
    if (!u->archive.failure.status && u->has_file)
        upload_read_directory(u);
    /* upload_choose_store is false, with `failure`, if the token may not upload to that part of the store */
    if (!u->archive.failure.status && upload_choose_store(u) && !u->has_file)
        upload_fetch(u);
    if (u->archive.failure.status || !upload_check(u) || u->archive.failure.status) /* upload_check may set it, too */
        return;
    enum sl_code code = uploads_publish(&u->archive, u->part, &error);
    if (code == SL_OK || code == SL_CANCELLED)
        return;
    log_error("uploads", "cannot store an uploaded archive; the client gets an error",
              LOG_SLSTR("archive", u->archive.filename), LOG_ERR(&error));
    archive_fail(&u->archive, code == SL_BUSY ? 503 : 500, "Internal Server Error");
}

/* Pool work: unmaps and closes the file of the upload. */
static void upload_end(void *arg)
{
    struct upload *u = arg;
    if (u->archive.body.bytes.data)
        sl_unmap(&u->archive.body);
    sl_close(u->fd);
}

/* Receives an upload, stores it and answers. Nothing is answered if the client is gone. */
static void upload_take(struct http_exchange *x, const struct mozilla_token *token)
{
    struct upload *u = SL_ARENA_NEW(&x->arena, struct upload);
    if (!u) {
        http_reply_no_memory(x);
        return;
    }
    *u = (struct upload){.x = x, .token = token, .fd = -1, .begun_us = clock_wall_us()};
    u->config = config_retain(((const struct service *)x->service)->config);
    u->archive = (struct archive){.arena = &x->arena, .config = &u->config->mozilla.store, .fd = -1};
    uploads_get_scope(x, token, u->archive.scope);
    multipart_boundary(http_header(x, "content-type"), &u->boundary);
    if (http_body_take(x, &u->fd) == SL_OK) {
        upload_store(u);
        if (u->archive.failure.status) {
            upload_refuse(u);
        } else if (!fiber_cancelled()) {
            upload_log(u);
            upload_reply(u);
        }
    }
    if (pool_run(POOL_IO, upload_end, u, NULL) == SL_BUSY)
        upload_end(u);
    config_release(u->config);
}

/* POST /upload/: receives an archive. If the token is refused, the body is read nevertheless, so that the client reads the answer. */
static void upload_post(struct http_exchange *x)
{
    const struct mozilla_token *token;
    /* a reference, as `token` points into the configuration, which may be replaced meanwhile */
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    uint64_t begin = clock_mono_ns();
    if (uploads_authorize(x, &token))
        upload_take(x, token);
    else
        uploads_discard_body(x);
    metric_observe_since(METRIC_TECKEN_UPLOAD_ARCHIVE, begin, NULL);
    config_release(config);
}

static uint64_t upload_limit(const struct http_exchange *x)
{
    return ((const struct service *)x->service)->config->mozilla.store.max_upload_size + FORM_OVERHEAD;
}

/* ---- permissions of a token ---- */

/* POST /upload/auth_info/: answers what the request's token may do. For a token that never expires the answer has a date in the far future,
 * as clients expect a date. */
static void auth_info(struct http_exchange *x)
{
    const struct mozilla_token *token;
    struct sl_buf body = {0};
    struct sl_json_writer w = sl_json_writer(&body);
    if (!uploads_authorize(x, &token))
        return;
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "email", token->email);
    sl_json_member_u64(&w, "user_id", token->user_id);
    sl_json_member_boolean(&w, "try_symbols", !token->upload);
    sl_json_member_i64(&w, "token_expires_at", token->expires_s < NEVER_EXPIRES_S ? token->expires_s : NEVER_EXPIRES_S);
    sl_json_member_u64(&w, "upload_api_version", token->upload_api);
    sl_json_end_object(&w);
    http_reply_json(x, 200, &body);
    http_set_header(x, "Vary", SL_STR("Auth-Token"));
}

static void upload_unknown(struct http_exchange *x)
{
    uploads_error(x, 404, NULL);
}

#define UPLOAD(pattern_)                                                                                               \
    {                                                                                                                  \
        .method = "POST", .pattern = (pattern_), .handler = upload_post, .takes_work = true,                           \
        .body_limit = upload_limit, .there = uploads_find                                                              \
    }
#define UNKNOWN(method_)                                                                                               \
    {                                                                                                                  \
        .method = (method_), .pattern = "/upload/{rest..}", .handler = upload_unknown, .there = uploads_find,          \
        .immediate = true                                                                                              \
    }
static const struct http_route routes[] = {
    UPLOAD("/upload/"),
    UPLOAD("/upload"),
    {.method = "POST", .pattern = "/upload/auth_info/", .handler = auth_info, .there = uploads_find},
    {.method = "GET", .pattern = "/api/uploads/upload/{id}", .handler = uploads_record_get, .there = uploads_find},
    UNKNOWN("GET"),
    UNKNOWN("POST"),
    UNKNOWN("PUT"),
    UNKNOWN("DELETE"),
    {.method = NULL},
};

const struct http_family family_uploads = {.routes = routes, .error = uploads_error, .allow_separator = ", "};
