/* Uploads of symbfiles (symbols of one executable for profilers, in parts): POST and PUT /api/symbols-ranges and
 * /api/symbols-returnpads; their state and removal: GET and DELETE /api/symbols/{file id}. */
#include "api/symbfile/symbfile.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "api/body_tee.h"
#include "core/duration.h"
#include "core/log.h"
#include "core/metrics.h"
#include "symbfile/fileid.h"

static size_t uploads; /* uploads in progress: limited, as the decoder of each needs memory. Loop thread */

/* ---- checks before the body ---- */
static const char *const write_rights[] = {"symbols:write", NULL};
static const char *const read_rights[] = {"symbols:read", "symbols:write", NULL};
static const char *const delete_rights[] = {"symbols:delete", NULL};

/* False if no store of symbfiles is configured: `failure` is a 404, as for unknown paths. */
static bool has_store(struct symbfile_failure *failure)
{
    char store[512]; /* not used: only whether there is one matters here */
    if (symbfile_store_dir(store))
        return true;
    symbfile_fail(failure, 404, "1301", "Not found.");
    return false;
}

/* Checks path, access key and headers of an upload, before its body is received, and stores them in `head`. False: `failure` is set.
 * head->kind is set in any case, as metrics of failed uploads need it. */
static bool read_head(struct http_exchange *x, struct upload_head *head, struct symbfile_failure *failure)
{
    struct upload_owner owner;
    *head = (struct upload_head){0};
    /* the end of the path says which of the two kinds of symbfiles is uploaded */
    head->kind = sl_str_ends(x->path, SL_STR("returnpads")) ? SYMBFILE_RETURNPADS : SYMBFILE_RANGES;
    if (!has_store(failure) || !upload_authorize(x, write_rights, &owner, failure) ||
        !upload_read_head(x, head, failure))
        return false;
    head->key_id = owner.key_id;
    /* uploads go to the first of the scopes that the key allows */
    memcpy(head->file_key.scope, owner.scopes[0], sizeof head->file_key.scope);
    /* without Content-Length (-1) the size is checked while the body arrives */
    if (x->content_length >= 0 && (uint64_t)x->content_length > current_config()->symbfile.max_part_bytes) {
        symbfile_fail(failure, 413, "1108", "Upload is too large.");
        return false;
    }
    return true;
}

/* Counts a failed upload in the metrics, and answers it. */
static void symbfile_refuse(struct http_exchange *x, enum symbfile_kind kind, const struct symbfile_failure *failure)
{
    metric_add(METRIC_SYMBFILE_PARTS, 1, symbfile_kind_names[kind], failure->code, NULL);
    upload_reply_failure(x, failure);
}

/* http_route.check: refuses an upload before its body is received if its head is invalid or too many uploads are in progress. */
static void check_upload(struct http_exchange *x)
{
    struct symbfile_failure failure = {0};
    struct upload_head head;
    bool good = read_head(x, &head, &failure);
    if (good && uploads >= current_config()->symbfile.max_uploads) {
        symbfile_fail(&failure, 503, "1401", "Too many uploads in progress.");
        good = false;
    }
    if (!good)
        symbfile_refuse(x, head.kind, &failure);
}

/* Returns the server's limit for the body of an upload. The server counts decompressed bytes, for which the limit is
 * max_part_inflated_bytes; max_part_bytes, for a body as it was sent, may be larger. Both are checked exactly while the body is stored. */
static uint64_t upload_limit(const struct http_exchange *x)
{
    (void)x;
    const struct config *config = current_config();
    return config->symbfile.max_part_inflated_bytes > config->symbfile.max_part_bytes
               ? config->symbfile.max_part_inflated_bytes
               : config->symbfile.max_part_bytes;
}

/* ---- receiving ---- */
struct symbfile_upload {
    const struct config *config; /* a reference */
    struct upload_head head;
    struct symbfile_failure failure;   /* status 0: none; set on the loop and, concurrently with storing, by `decode` */
    struct symbfile_failure stored;    /* failure of storing the bytes; reported unless `failure` is set too */
    struct symbfile_part *part;        /* decoder, which checks the part */
    struct symbfile_part_file arrived; /* set when the part is complete */
    EVP_MD_CTX *hash;                  /* SHA-256 of the part */
    int fd;                            /* file of the part, -1: none; its path is `path` */
    char path[600];
    bool encoded;             /* has a Content-Encoding, which the server decodes: sizes differ from what was sent */
    uint64_t received;        /* bytes of the part */
    uint64_t writeback_until; /* of these, bytes whose writeback to the disk was started */
};

/* Pool work: creates the hash, the file that receives the part, and the decoder, which only checks it: the NULL is its target for decoded
 * records. `failure` is set if that fails. */
static void begin_receiving(void *arg)
{
    struct symbfile_upload *u = arg;
    u->hash = EVP_MD_CTX_new();
    u->part = symbfile_part_new(u->head.part, u->head.parts, u->config->symbfile.max_part_inflated_bytes, NULL);
    u->fd = symbfile_store_receive(u->path, &u->failure);
    if (!u->failure.status && (!u->part || !u->hash || EVP_DigestInit_ex(u->hash, EVP_sha256(), NULL) != 1))
        symbfile_fail_with_cause(&u->failure, SL_BUSY, "out of memory");
}

/* ---- lanes of the body; each uses only its own members of the upload ---- */

/* body_consumer.take: writes the next bytes of the part to its file. Starts writeback to the disk after each WRITEBACK_EVERY bytes, so that
 * the final fsync does not have to wait for the whole file. False: `stored` is set. */
static bool api_symbfile_store(void *arg, struct sl_bytes bytes)
{
    enum { WRITEBACK_EVERY = 8 << 20 };
    struct symbfile_upload *u = arg;
    u->received += bytes.size;
    /* max_part_bytes limits bytes as they were sent, but those of an encoded part come decoded: the decoder limits them */
    if (!u->encoded && u->received > u->config->symbfile.max_part_bytes) {
        symbfile_fail(&u->stored, 413, "1108", "Upload is too large.");
    } else if (!sl_write_all(u->fd, bytes)) {
        bool full = errno == ENOSPC || errno == EDQUOT;
        symbfile_fail(&u->stored, full ? 507 : 500, full ? "1402" : "1000", "%s",
                      full ? "Storage is full." : "Something went wrong on our side.");
        snprintf(u->stored.cause, sizeof u->stored.cause, "cannot write a part: %s", strerror(errno));
    } else if (u->received - u->writeback_until >= WRITEBACK_EVERY) {
        sync_file_range(u->fd, (off_t)u->writeback_until, (off_t)(u->received - u->writeback_until),
                        SYNC_FILE_RANGE_WRITE);
        u->writeback_until = u->received;
    }
    return u->stored.status == 0;
}

/* body_consumer.take: hashes the next bytes of the part. */
static bool hash(void *arg, struct sl_bytes bytes)
{
    struct symbfile_upload *u = arg;
    return EVP_DigestUpdate(u->hash, bytes.data, bytes.size) == 1;
}

/* body_consumer.take: decodes the next bytes of the part. False: the part is invalid, `failure` is set. */
static bool decode(void *arg, struct sl_bytes bytes)
{
    struct symbfile_upload *u = arg;
    return symbfile_part_feed(u->part, bytes, &u->failure);
}

/* Pool work: checks that the part ends as it should, sets `arrived`, and syncs the file, as a part must survive a crash once the client
 * has been told of success. `failure` is set if that fails. */
static void symbfile_finish(void *arg)
{
    struct symbfile_upload *u = arg;
    unsigned size;
    if (!symbfile_part_finish(u->part, &u->failure))
        return;
    /* mode: whether the part is a whole symbfile or a piece of one */
    u->arrived = (struct symbfile_part_file){.number = (uint32_t)u->head.part,
                                             .mode = (char)symbfile_part_mode(u->part),
                                             .records = symbfile_part_records(u->part),
                                             .inflated = symbfile_part_inflated(u->part)};
    if (EVP_DigestFinal_ex(u->hash, u->arrived.sha256, &size) != 1)
        symbfile_fail_with_cause(&u->failure, SL_BUSY, "out of memory");
    else if (fsync(u->fd) != 0)
        symbfile_fail_with_cause(&u->failure, SL_INTERNAL, strerror(errno));
}

/* Moves the received part into the store, to the other parts of the same upload; with the last part the upload is published. `failure` is
 * set if that fails. */
static void add_arrival(struct symbfile_upload *u)
{
    struct symbfile_upload_set arrival = {
        .file_key = u->head.file_key,
        .kind = u->head.kind,
        .parts = u->head.parts,
        .upload_id = u->head.upload_id,
        .part = u->arrived,
        .path = u->path,
        .fd = u->fd,
        .info = &u->head.info,
    };
    symbfile_add(&arrival, &u->failure);
}

/* Pool work: frees the decoder and the hash of an upload, and removes its temporary file. */
static void end_receiving(void *arg)
{
    struct symbfile_upload *u = arg;
    symbfile_part_free(u->part);
    EVP_MD_CTX_free(u->hash);
    if (u->fd >= 0) {
        unlink(u->path); /* no effect after success: the file was renamed (add_arrival) */
        close(u->fd);
    }
}

/* Runs `work` on the pool. False if `failure` is set, by the work itself or because the pool could not run it. In the latter case
 * clients are asked to retry (SL_BUSY becomes status 503), unless the error is internal. */
static bool symbfile_step(struct symbfile_upload *u, enum pool_job job, void (*work)(void *arg))
{
    struct sl_error error;
    enum sl_code code = pool_run(job, work, u, &error);
    if (code != SL_OK)
        symbfile_fail_with_cause(&u->failure, code == SL_INTERNAL ? code : SL_BUSY, error.message);
    return u->failure.status == 0;
}

/* Adds the part to the other parts of its upload, while the executable is locked in the store. Waits for the lock at most body_timeout,
 * as for bytes of a body. False when the client is gone. True otherwise: `failure` then says if something went wrong. */
static bool add_to_set(struct symbfile_upload *u)
{
    struct symbfile_lock lock;
    struct sl_error error;
    uint64_t wait_ms = DURATION_MS(u->config->symbfile.body_timeout_ns);
    /* true: also for an executable of which nothing is stored yet */
    enum sl_code code = symbfile_lock(&u->head.file_key, true, wait_ms, &lock, &error);
    if (code == SL_CANCELLED)
        return false;
    if (code == SL_DOWNLOAD_ERROR)
        symbfile_fail_unreachable(&u->failure, error.message);
    else if (code != SL_OK)
        symbfile_fail_with_cause(&u->failure, code, error.message);
    else
        add_arrival(u);
    symbfile_answers_clear(); /* cached answers about the store, which may have changed */
    symbfile_unlock(&lock);   /* allowed after failed locking too */
    return true;
}

/* Receives the part: decodes, hashes and stores it concurrently, then adds it to the other parts of its upload. If decoding and storing
 * both fail, the failure of decoding is reported. False when the server has answered or the client is gone. True also for a failure, which
 * the caller answers: then u->failure is set. */
static bool receive(struct http_exchange *x, struct symbfile_upload *u)
{
    if (!symbfile_step(u, POOL_IO, begin_receiving))
        return true;
    struct body_consumer lanes[] = {
        {POOL_CONVERT, decode, u}, {POOL_CONVERT, hash, u}, {POOL_IO, api_symbfile_store, u}};
    struct sl_error error = {0};
    struct body_tee_pace pace = {u->config->http.min_rate, DURATION_MS(u->config->symbfile.body_timeout_ns)};
    enum sl_code code = body_tee_run(x, lanes, sizeof lanes / sizeof *lanes, &pace, &error);
    if (code == SL_CANCELLED)
        return false;
    if (!u->failure.status)
        u->failure = u->stored; /* status 0 if storing did not fail either */
    if (!u->failure.status && code == SL_TIMEOUT)
        symbfile_fail(&u->failure, 408, "1110", "Upload timed out.");
    else if (!u->failure.status && code != SL_OK)
        symbfile_fail_with_cause(&u->failure, code, error.message);
    /* the next step is done only if the one before has not failed */
    return u->failure.status || !symbfile_step(u, POOL_CONVERT, symbfile_finish) || add_to_set(u);
}

static void reply_success(struct http_exchange *x)
{
    http_set_header(x, "Accept-Encoding", SL_STR("zstd, gzip"));
    http_reply(x, 200, "application/json", SL_STR("{\"success\":true,\"status\":200}"));
}

static void count_part(const struct symbfile_upload *u)
{
    const char *kind = symbfile_kind_names[u->head.kind];
    metric_add(METRIC_SYMBFILE_PARTS, 1, kind, "ok", NULL);
    metric_add(METRIC_SYMBFILE_BYTES, u->received, kind, NULL, NULL);
    metric_add(METRIC_SYMBFILE_RECORDS, symbfile_part_records(u->part), kind, NULL, NULL);
}

/* Logs a received part. */
static void log_part(const struct symbfile_upload *u)
{
    char id[SL_FILE_ID_HEX];
    sl_file_id_format_hex(&u->head.file_key.file_id, id);
    log_info("symbfile", "received a part of a symbfile", LOG_STR("file_id", id),
             LOG_STR("kind", symbfile_kind_names[u->head.kind]), LOG_U64("part", u->head.part),
             LOG_U64("parts", u->head.parts), LOG_U64("bytes", u->received),
             LOG_U64("records", symbfile_part_records(u->part)), LOG_SLSTR("key", u->head.key_id));
    if (symbfile_part_is_truncated(u->part))
        log_debug("symbfile", "an uploaded range longer than 32 bits was truncated", LOG_STR("file_id", id));
}

/* Receives an upload and answers it. Reads the head again, as check_upload, which ran before, only decides whether to receive the body. */
static void symbfile_take(struct http_exchange *x, struct symbfile_upload *u)
{
    struct sl_str coding = http_header(x, "Content-Encoding");
    u->encoded = coding.data && !sl_str_equal_nocase(coding, SL_STR("identity"));
    if (!read_head(x, &u->head, &u->failure)) {
        symbfile_refuse(x, u->head.kind, &u->failure);
        return;
    }
    uploads++; /* the uploads in progress, which check_upload limits */
    bool can_answer = receive(x, u);
    uploads--;
    if (!can_answer) {
        metric_add(METRIC_SYMBFILE_PARTS, 1, symbfile_kind_names[u->head.kind], "cut off", NULL);
    } else if (u->failure.status) {
        symbfile_refuse(x, u->head.kind, &u->failure);
    } else {
        count_part(u);
        log_part(u);
        reply_success(x);
    }
    /* if begin_receiving has created anything */
    if ((u->fd >= 0 || u->part || u->hash) && pool_run(POOL_IO, end_receiving, u, NULL) == SL_BUSY)
        end_receiving(u); /* the pool refused it: on the loop then */
}

/* Handler of uploads: receives one and answers. It uses the configuration of its begin, even if another one is loaded meanwhile. */
static void take_upload(struct http_exchange *x)
{
    struct symbfile_upload *u = SL_ARENA_NEW(&x->arena, struct symbfile_upload);
    struct symbfile_failure failure = {0};
    if (!u) {
        symbfile_fail_with_cause(&failure, SL_BUSY, "out of memory");
        upload_reply_failure(x, &failure);
        return;
    }
    u->fd = -1;
    u->config = config_retain(current_config());
    symbfile_take(x, u);
    config_release(u->config);
}

/* ---- status ---- */
struct status_query { /* a GET or DELETE */
    struct upload_owner owner;
    struct symbfile_key file_key; /* the executable, and the scope that is asked */
    /* answer of the store: `sets` has the parts of the kinds that are `known`; `any`: there are some; `info`: the description */
    struct symbfile_set sets[SYMBFILE_KINDS];
    bool known[SYMBFILE_KINDS], any;
    struct symbfile_info info;
};

/* Writes the SHA-256 of the SHA-256s of the stored parts, one after the other, by which clients check that what they uploaded is stored. */
static void write_hash(const struct symbfile_set *set, struct sl_json_writer *w)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    struct sl_buf hashes = {0}, hex = {0};
    unsigned size = 0;
    for (size_t i = 0; i < set->have_count; i++)
        sl_buf_add(&hashes, set->have[i].sha256, sizeof set->have[i].sha256);
    EVP_Digest(hashes.data, hashes.size, digest, &size, EVP_sha256(), NULL);
    sl_buf_hex(&hex, digest, size);
    sl_json_member_str(w, "sha256", sl_buf_view(&hex));
    sl_buf_free(&hashes);
    sl_buf_free(&hex);
}

/* Writes the state of the parts of one kind: which have arrived, whether they are complete ("published"), and when that changed. */
static void write_set(const struct symbfile_set *set, struct sl_json_writer *w)
{
    char time[32];
    time_t seconds = (time_t)set->updated_s;
    struct tm tm;
    gmtime_r(&seconds, &tm);
    strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &tm);
    sl_json_begin_object(w);
    sl_json_member_str(w, "state", set->published ? SL_STR("published") : SL_STR("staged"));
    sl_json_member_u64(w, "parts", set->parts);
    sl_json_member_array(w, "received");
    for (size_t i = 0; i < set->have_count; i++)
        sl_json_put_u64(w, set->have[i].number);
    sl_json_end_array(w);
    sl_json_member_u64(w, "records", set->records);
    write_hash(set, w);
    sl_json_member_str(w, "updated", sl_str(time));
    sl_json_end_object(w);
}

/* Answers what is stored for an executable; a kind of symbfile of which nothing is stored is null. */
static void reply_status(struct http_exchange *x, const struct status_query *q)
{
    char id[SL_FILE_ID_HEX];
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    sl_file_id_format_hex(&q->file_key.file_id, id);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "file_id", sl_str(id));
    sl_json_put_key(&w, "build_id");
    if (*q->info.build_id)
        sl_json_put_str(&w, sl_str(q->info.build_id));
    else
        sl_json_put_null(&w);
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
        sl_json_put_key(&w, symbfile_kind_names[kind]);
        if (q->known[kind])
            write_set(&q->sets[kind], &w);
        else
            sl_json_put_null(&w);
    }
    sl_json_end_object(&w);
    http_set_header(x, "Accept-Encoding", SL_STR("zstd, gzip"));
    http_reply_json(x, 200, &json);
}

/* Begins to answer a GET or DELETE: checks the access key and reads the file id in the path. False: `failure` is set. */
static bool read_status_query(struct http_exchange *x, const char *const *rights, struct status_query *q,
                              struct symbfile_failure *failure)
{
    *q = (struct status_query){0};
    *failure = (struct symbfile_failure){0};
    if (!has_store(failure) || !upload_authorize(x, rights, &q->owner, failure))
        return false;
    if (!sl_file_id_parse_any(x->captures[0], &q->file_key.file_id))
        symbfile_fail(failure, 404, "1301", "Not found.");
    return failure->status == 0;
}

static void free_sets(struct status_query *q)
{
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
        free(q->sets[kind].have);
        q->sets[kind].have = NULL;
    }
}

/* Sets `failure` for an error of a GET or DELETE: SL_INTERNAL becomes 500, SL_BUSY and SL_CANCELLED 503, other errors 503 because the store
 * does not respond. SL_OK changes nothing. */
static void fail_status_query(struct symbfile_failure *failure, enum sl_code code, const struct sl_error *error)
{
    if (code == SL_BUSY || code == SL_INTERNAL || code == SL_CANCELLED)
        symbfile_fail_with_cause(failure, code == SL_INTERNAL ? code : SL_BUSY, error->message);
    else if (code != SL_OK)
        symbfile_fail_unreachable(failure, error->message);
}

/* Gets the state of the uploads in one scope, or in the shared one if `scope` is NULL. False: there are none, or `failure` is set. */
static bool find_status(struct status_query *q, const char *scope, struct symbfile_failure *failure)
{
    struct sl_error error;
    free_sets(q); /* those of the scope that was asked before */
    memset(q->file_key.scope, 0, sizeof q->file_key.scope);
    if (scope)
        memcpy(q->file_key.scope, scope, sizeof q->file_key.scope);
    enum sl_code code = symbfile_status(&q->file_key, q->sets, q->known, &q->info, &q->any, &error);
    fail_status_query(failure, code, &error);
    return code == SL_OK && q->any;
}

/* GET: answers the state of the executable's uploads in the first scope of the key that has some; if none has, in the shared scope, if
 * the key may read that. 404 if there are none. */
static void answer_status(struct http_exchange *x)
{
    struct status_query q;
    struct symbfile_failure failure;
    bool found = false;
    if (read_status_query(x, read_rights, &q, &failure)) {
        for (size_t i = 0; !found && !failure.status && i < q.owner.count; i++)
            found = find_status(&q, q.owner.scopes[i], &failure);
        if (!found && !failure.status && q.owner.reads_shared)
            found = find_status(&q, NULL, &failure);
        if (!found && !failure.status)
            symbfile_fail(&failure, 404, "1301", "Not found.");
    }
    if (failure.status)
        upload_reply_failure(x, &failure);
    else
        reply_status(x, &q);
    free_sets(&q);
}

/* Deletes the executable's uploads in one scope; sets `*any` to true if there were some, else leaves it. False when the client is gone;
 * other errors are in `failure`. */
static bool delete_sets(struct status_query *q, const char *scope, bool *any, struct symbfile_failure *failure)
{
    struct symbfile_lock lock;
    struct sl_error error;
    uint64_t wait_ms = DURATION_MS(current_config()->symbfile.body_timeout_ns);
    memcpy(q->file_key.scope, scope, sizeof q->file_key.scope);
    /* false: SL_NOT_FOUND if nothing is stored for the executable */
    enum sl_code code = symbfile_lock(&q->file_key, false, wait_ms, &lock, &error);
    if (code == SL_CANCELLED)
        return false;
    if (code == SL_OK)
        code = symbfile_delete(&q->file_key, &q->any, &error);
    *any |= code == SL_OK && q->any;
    if (code != SL_NOT_FOUND) /* nothing to delete in this scope is no failure: another one may have uploads */
        fail_status_query(failure, code, &error);
    symbfile_answers_clear(); /* cached answers about the store, which may have changed */
    symbfile_unlock(&lock);   /* allowed after failed locking too */
    return true;
}

/* Sets the failure for a DELETE that has found nothing to delete: 403 if the shared scope has uploads, which a key with scopes may read but
 * not delete, else 404. */
static void refuse_delete(struct status_query *q, struct symbfile_failure *failure)
{
    if (q->owner.reads_shared && find_status(q, NULL, failure))
        symbfile_fail(failure, 403, "1004", "API key is not allowed to delete symbols of all scopes.");
    else if (!failure->status)
        symbfile_fail(failure, 404, "1301", "Not found.");
    free_sets(q);
}

/* DELETE: removes the executable's uploads in all scopes of the key. */
static void delete_upload(struct http_exchange *x)
{
    struct status_query q;
    struct symbfile_failure failure;
    bool any = false;
    if (read_status_query(x, delete_rights, &q, &failure)) {
        for (size_t i = 0; !failure.status && i < q.owner.count; i++)
            if (!delete_sets(&q, q.owner.scopes[i], &any, &failure))
                return; /* the client is gone */
        if (!any && !failure.status)
            refuse_delete(&q, &failure);
    }
    if (failure.status)
        upload_reply_failure(x, &failure);
    else
        reply_success(x);
}

static void answer_unknown(struct http_exchange *x)
{
    struct symbfile_failure failure;
    symbfile_fail(&failure, 404, "1301", "Not found.");
    upload_reply_failure(x, &failure);
}

/* ---- the family ---- */

/* A route that receives uploads; clients send them by POST or PUT. */
#define UPLOAD(method_, pattern_)                                                                                      \
    {                                                                                                                  \
        .method = (method_), .pattern = (pattern_), .handler = take_upload, .takes_work = true, .check = check_upload, \
        .body_limit = upload_limit                                                                                     \
    }

/* Without `rights`: the handlers check access keys themselves, as this protocol has an error code for each way a key can be wrong. */
static const struct http_route routes[] = {
    UPLOAD("POST", "/api/symbols-ranges"),
    UPLOAD("PUT", "/api/symbols-ranges"),
    UPLOAD("POST", "/api/symbols-returnpads"),
    UPLOAD("PUT", "/api/symbols-returnpads"),
    {.method = "GET", .pattern = "/api/symbols/{id}", .handler = answer_status},
    {.method = "DELETE", .pattern = "/api/symbols/{id}", .handler = delete_upload},
    {.method = "GET", .pattern = "/api/symbols/{rest..}", .handler = answer_unknown},
    {.method = NULL},
};

static const char *path_prefix(const void *service)
{
    return ((const struct service *)service)->config->symbfile.path_prefix;
}

static uint64_t body_timeout_ms(const void *service)
{
    return DURATION_MS(((const struct service *)service)->config->symbfile.body_timeout_ns);
}

const struct http_family family_symbfile = {
    .routes = routes,
    .prefix = path_prefix,
    .group = "symbols",
    .error = upload_reply_error,
    .allow_separator = ", ",
    .body_timeout_ms = body_timeout_ms,
};
