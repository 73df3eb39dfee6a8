/* Uploads of symbfiles: POST and PUT /api/symbols-ranges and /api/symbols-returnpads, and what has become of them:
 * GET and DELETE /api/symbols/{file id}. */
#include "api/symbfile.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "api/lanes.h"
#include "core/log.h"
#include "core/metrics.h"
#include "symbfile/fileid.h"

enum { MAX_UPLOADS = 64 }; /* each may hold a message and a string table in memory */

static size_t uploads;

/* ---- checks before the body ---- */
static const char *const write_rights[] = {"symbols:write", NULL};
static const char *const read_rights[] = {"symbols:read", "symbols:write", NULL};
static const char *const delete_rights[] = {"symbols:delete", NULL};

static bool has_store(struct symbfile_failure *failure)
{
    char store[512];
    if (symbfile_store_dir(store))
        return true;
    symbfile_fail(failure, 404, "1301", "Not found.");
    return false;
}

static bool read_head(const struct http_exchange *x, struct upload_head *head, struct symbfile_failure *failure)
{
    *head = (struct upload_head){0};
    head->kind = sl_str_ends(x->path, SL_STR("returnpads")) ? SYMBFILE_RETURNPADS : SYMBFILE_RANGES;
    if (!has_store(failure) || !upload_authorize(x, write_rights, &head->key_id, failure) ||
        !upload_read_head(x, head, failure))
        return false;
    if (x->content_length >= 0 && (uint64_t)x->content_length > symbfiles_config()->symbfile.max_part_bytes) {
        symbfile_fail(failure, 413, "1108", "Upload is too large.");
        return false;
    }
    return true;
}

static void refuse(struct http_exchange *x, enum symbfile_kind kind, const struct symbfile_failure *failure)
{
    metric_add(METRIC_SYMBFILE_PARTS, 1, symbfile_kind_names[kind], failure->code, NULL);
    upload_reply_failure(x, failure);
}

void symbfile_check(struct http_exchange *x)
{
    struct symbfile_failure failure = {0};
    struct upload_head head;
    bool good = read_head(x, &head, &failure);
    if (good && uploads >= MAX_UPLOADS) {
        symbfile_fail(&failure, 503, "1401", "Too many uploads in progress.");
        good = false;
    }
    if (!good)
        refuse(x, head.kind, &failure);
}

uint64_t symbfile_body_limit(const struct http_exchange *x)
{
    (void)x;
    const struct config *config = symbfiles_config();
    return config->symbfile.max_part_inflated_bytes > config->symbfile.max_part_bytes
               ? config->symbfile.max_part_inflated_bytes
               : config->symbfile.max_part_bytes;
}

/* ---- receiving ---- */
struct upload {
    const struct config *config; /* held */
    struct upload_head head;
    struct symbfile_failure failure;
    struct symbfile_failure stored; /* of storing; told unless decoding has failed too */
    struct symbfile_part *part;
    EVP_MD_CTX *hash;
    int fd;
    char path[600];
    bool encoded;               /* the server undoes a Content-Encoding: what arrives is not what was sent */
    uint64_t received, sent_on; /* bytes */
};

static void fail_internal(struct upload *u, const char *cause)
{
    symbfile_fail(&u->failure, 500, "1000", "Something went wrong on our side.");
    snprintf(u->failure.cause, sizeof u->failure.cause, "%.200s", cause);
}

static void begin_receiving(void *arg)
{
    struct upload *u = arg;
    u->hash = EVP_MD_CTX_new();
    u->part = symbfile_part_new(u->head.part, u->head.parts, u->config->symbfile.max_part_inflated_bytes, NULL);
    u->fd = symbfile_store_receive(u->path, &u->failure);
    if (!u->failure.status && (!u->part || !u->hash || EVP_DigestInit_ex(u->hash, EVP_sha256(), NULL) != 1))
        fail_internal(u, "out of memory");
}

/* ---- the lanes of a body; each touches only what is its own of the upload ---- */
/* What is written is sent on to the disk at once, so that the last part of the file does not wait for all of it. */
static bool store(void *arg, struct sl_bytes bytes)
{
    enum { SEND_ON = 8 << 20 };
    struct upload *u = arg;
    u->received += bytes.size;
    if (!u->encoded && u->received > u->config->symbfile.max_part_bytes) {
        symbfile_fail(&u->stored, 413, "1108", "Upload is too large.");
    } else if (!sl_write_all(u->fd, bytes)) {
        bool full = errno == ENOSPC || errno == EDQUOT;
        symbfile_fail(&u->stored, full ? 507 : 500, full ? "1402" : "1000", "%s",
                      full ? "Storage is full." : "Something went wrong on our side.");
        snprintf(u->stored.cause, sizeof u->stored.cause, "cannot write a part: %s", strerror(errno));
    } else if (u->received - u->sent_on >= SEND_ON) {
        sync_file_range(u->fd, (off_t)u->sent_on, (off_t)(u->received - u->sent_on), SYNC_FILE_RANGE_WRITE);
        u->sent_on = u->received;
    }
    return u->stored.status == 0;
}

static bool hash(void *arg, struct sl_bytes bytes)
{
    struct upload *u = arg;
    return EVP_DigestUpdate(u->hash, bytes.data, bytes.size) == 1;
}

static bool decode(void *arg, struct sl_bytes bytes)
{
    struct upload *u = arg;
    return symbfile_part_feed(u->part, bytes, &u->failure);
}

static void complete(void *arg)
{
    struct upload *u = arg;
    struct symbfile_arrival arrival = {
        .file_id = u->head.file_id,
        .kind = u->head.kind,
        .parts = u->head.parts,
        .upload_id = u->head.upload_id,
        .part = {.number = (uint32_t)u->head.part},
        .path = u->path,
        .fd = u->fd,
        .info = &u->head.info,
    };
    unsigned size;
    if (!symbfile_part_finish(u->part, &u->failure))
        return;
    if (EVP_DigestFinal_ex(u->hash, arrival.part.sha256, &size) != 1) {
        fail_internal(u, "out of memory");
        return;
    }
    arrival.part.mode = (char)symbfile_part_mode(u->part);
    arrival.part.records = symbfile_part_records(u->part);
    arrival.part.inflated = symbfile_part_inflated(u->part);
    symbfile_store_add(&arrival, &u->failure);
}

static void end_receiving(void *arg)
{
    struct upload *u = arg;
    symbfile_part_free(u->part);
    EVP_MD_CTX_free(u->hash);
    if (u->fd >= 0) {
        unlink(u->path); /* gone already if the part was staged */
        close(u->fd);
    }
}

static void fail_by(struct upload *u, enum sl_code code, const struct sl_error *error)
{
    if (code == SL_UNSUPPORTED)
        symbfile_fail(&u->failure, 503, "1401", "Too many uploads in progress.");
    else if (code != SL_OK)
        fail_internal(u, error->message);
}

static bool step(struct upload *u, enum pool_job job, void (*work)(void *arg))
{
    struct sl_error error;
    fail_by(u, pool_run(job, work, u, &error), &error);
    return u->failure.status == 0;
}

/* False when the server has answered or the client is gone. */
static bool receive(struct http_exchange *x, struct upload *u)
{
    if (!step(u, POOL_IO, begin_receiving))
        return true;
    struct lane lanes[] = {{POOL_CONVERT, decode, u}, {POOL_CONVERT, hash, u}, {POOL_IO, store, u}};
    struct sl_error error = {0};
    enum sl_code code = lanes_run(x, lanes, sizeof lanes / sizeof *lanes, &error);
    if (code == SL_CANCELLED)
        return false;
    if (!u->failure.status)
        u->failure = u->stored;
    if (!u->failure.status)
        fail_by(u, code, &error);
    if (!u->failure.status)
        step(u, POOL_CONVERT, complete);
    return true;
}

static void reply_success(struct http_exchange *x)
{
    http_set_header(x, "Accept-Encoding", SL_STR("zstd, gzip"));
    http_reply(x, 200, "application/json", SL_STR("{\"success\":true,\"status\":200}"));
}

static void count_part(const struct upload *u)
{
    const char *kind = symbfile_kind_names[u->head.kind];
    metric_add(METRIC_SYMBFILE_PARTS, 1, kind, "ok", NULL);
    metric_add(METRIC_SYMBFILE_BYTES, u->received, kind, NULL, NULL);
    metric_add(METRIC_SYMBFILE_RECORDS, symbfile_part_records(u->part), kind, NULL, NULL);
}

static void log_part(const struct upload *u)
{
    char id[SL_FILE_ID_HEX];
    sl_file_id_format_hex(&u->head.file_id, id);
    log_info("symbfile", "part received", LOG_STR("file_id", id), LOG_STR("kind", symbfile_kind_names[u->head.kind]),
             LOG_U64("part", u->head.part), LOG_U64("parts", u->head.parts), LOG_U64("bytes", u->received),
             LOG_U64("records", symbfile_part_records(u->part)), LOG_SLSTR("key", u->head.key_id));
    if (symbfile_part_cut(u->part))
        log_warn("symbfile", "a range longer than 32 bits was cut", LOG_STR("file_id", id));
}

static void take(struct http_exchange *x, struct upload *u)
{
    struct sl_str coding = http_header(x, "Content-Encoding");
    u->encoded = coding.data && !sl_str_equal_nocase(coding, SL_STR("identity"));
    if (!read_head(x, &u->head, &u->failure)) {
        refuse(x, u->head.kind, &u->failure);
        return;
    }
    uploads++;
    bool mine = receive(x, u);
    uploads--;
    if (!mine) {
        metric_add(METRIC_SYMBFILE_PARTS, 1, symbfile_kind_names[u->head.kind], "cut off", NULL);
    } else if (u->failure.status) {
        refuse(x, u->head.kind, &u->failure);
    } else {
        count_part(u);
        log_part(u);
        reply_success(x);
    }
    if (u->fd >= 0 || u->part || u->hash)
        pool_run(POOL_IO, end_receiving, u, NULL);
}

void symbfile_handle(struct http_exchange *x)
{
    struct upload *u = SL_ARENA_NEW(&x->arena, struct upload);
    struct symbfile_failure failure = {0};
    if (!u) {
        symbfile_fail(&failure, 500, "1000", "Something went wrong on our side.");
        upload_reply_failure(x, &failure);
        return;
    }
    u->fd = -1;
    u->config = config_retain(symbfiles_config());
    take(x, u);
    config_release(u->config);
}

/* ---- status ---- */
struct question {
    struct sl_file_id file_id;
    struct symbfile_set sets[SYMBFILE_KINDS];
    bool known[SYMBFILE_KINDS], any;
    struct symbfile_info info;
};

static void ask(void *arg)
{
    struct question *q = arg;
    q->any = symbfile_store_status(&q->file_id, q->sets, q->known, &q->info);
}

static void delete (void *arg)
{
    struct question *q = arg;
    q->any = symbfile_store_delete(&q->file_id);
}

/* The hash over the hashes of the parts, by which a client tells that the same was uploaded. */
static void write_hash(const struct symbfile_set *set, struct json_writer *w)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    struct sl_buf hashes = {0}, hex = {0};
    unsigned size = 0;
    for (size_t i = 0; i < set->have_count; i++)
        sl_buf_add(&hashes, set->have[i].sha256, sizeof set->have[i].sha256);
    EVP_Digest(hashes.data, hashes.size, digest, &size, EVP_sha256(), NULL);
    sl_buf_hex(&hex, digest, size);
    json_key(w, "sha256");
    json_str(w, sl_buf_view(&hex));
    sl_buf_free(&hashes);
    sl_buf_free(&hex);
}

static void write_set(const struct symbfile_set *set, struct json_writer *w)
{
    char time[32];
    time_t seconds = (time_t)set->updated_s;
    struct tm tm;
    gmtime_r(&seconds, &tm);
    strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_object_begin(w);
    json_key(w, "state");
    json_str(w, set->published ? SL_STR("published") : SL_STR("staged"));
    json_key(w, "parts");
    json_u64(w, set->parts);
    json_key(w, "received");
    json_array_begin(w);
    for (size_t i = 0; i < set->have_count; i++)
        json_u64(w, set->have[i].number);
    json_array_end(w);
    json_key(w, "records");
    json_u64(w, set->records);
    write_hash(set, w);
    json_key(w, "updated");
    json_str(w, sl_str(time));
    json_object_end(w);
}

static void reply_status(struct http_exchange *x, const struct question *q)
{
    char id[SL_FILE_ID_HEX];
    struct sl_buf json = {0};
    struct json_writer w = json_writer(&json);
    sl_file_id_format_hex(&q->file_id, id);
    json_object_begin(&w);
    json_key(&w, "file_id");
    json_str(&w, sl_str(id));
    json_key(&w, "build_id");
    if (*q->info.build_id)
        json_str(&w, sl_str(q->info.build_id));
    else
        json_null(&w);
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
        json_key(&w, symbfile_kind_names[kind]);
        if (q->known[kind])
            write_set(&q->sets[kind], &w);
        else
            json_null(&w);
    }
    json_object_end(&w);
    http_set_header(x, "Accept-Encoding", SL_STR("zstd, gzip"));
    http_reply_json(x, 200, &json);
}

/* What GET and DELETE have in common. False: answered. */
static bool run_question(struct http_exchange *x, const char *const *rights, void (*work)(void *arg),
                         struct question *q)
{
    struct symbfile_failure failure = {0};
    struct sl_str key_id;
    struct sl_error error;
    *q = (struct question){0};
    if (has_store(&failure) && upload_authorize(x, rights, &key_id, &failure)) {
        if (!sl_file_id_parse_any(x->captures[0], &q->file_id))
            symbfile_fail(&failure, 404, "1301", "Not found.");
        else if (pool_run(POOL_IO, work, q, &error) != SL_OK)
            symbfile_fail(&failure, 503, "1401", "Too many uploads in progress.");
        else if (!q->any)
            symbfile_fail(&failure, 404, "1301", "Not found.");
    }
    if (failure.status)
        upload_reply_failure(x, &failure);
    return failure.status == 0;
}

void symbfile_status_handle(struct http_exchange *x)
{
    struct question q;
    if (run_question(x, read_rights, ask, &q))
        reply_status(x, &q);
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++)
        free(q.sets[kind].have);
}

void symbfile_delete_handle(struct http_exchange *x)
{
    struct question q;
    if (run_question(x, delete_rights, delete, &q))
        reply_success(x);
}

void symbfile_unknown_handle(struct http_exchange *x)
{
    struct symbfile_failure failure;
    symbfile_fail(&failure, 404, "1301", "Not found.");
    upload_reply_failure(x, &failure);
}
