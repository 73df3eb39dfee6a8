/* The shared cache in a bucket of S3 or GCS: the functions of its back end (struct shared_backend). */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/shared.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "fetch/fetch.h"
#include "objectstore/objectstore.h"

#define SECOND_NS UINT64_C(1000000000)
/* A request waits for the shared layer before it computes, so the first byte (HEAD_MS) and the credentials have short limits. BODY_S: limit
 * of a whole request. RETRY_MS: pause after credentials could not be got. */
enum { HEAD_MS = 500, BODY_S = 60, CREDENTIALS_MS = 300, RETRY_MS = 1000 };

static struct {
    struct object_store store;
    struct fiber_group *group;    /* of the fiber that requests credentials */
    bool asking;                  /* that fiber runs */
    uint64_t not_before_ms;       /* earliest time of the next request for credentials */
    struct fiber_wait_list asked; /* fibers that wait for credentials */
} bucket;
static struct {
    /* uploads that run, and their limit: they share the requests per host (max_downloads_per_host) with look-ups */
    unsigned running, max;
    struct fiber_wait_list free; /* fibers that wait until fewer uploads run */
} uploads;

static bool is_s3(void)
{
    return bucket.store.config->s3_name.data != NULL;
}

/* ---- credentials ---- */

/* Runs as a fiber: gets or renews credentials and wakes those that wait for them. */
static void request_credentials(void *unused)
{
    struct sl_error error = {0};
    (void)unused;
    enum sl_code code = object_store_authorize(&bucket.store, &error);
    if (code != SL_OK)
        bucket.not_before_ms = loop_now_ms() + RETRY_MS;
    if (code != SL_OK && code != SL_CANCELLED)
        log_warn("shared", "cannot use the shared cache: no credentials for its bucket", LOG_ERR(&error));
    if (code != SL_CANCELLED)
        metric_add(METRIC_SOURCE_TOKEN, 1, is_s3() ? "shared_s3" : "shared_gcs", code == SL_OK ? "ok" : "error", NULL);
    bucket.asking = false;
    fiber_wake_all(&bucket.asked);
}

/* True if there are credentials that are valid now. Starts a fiber that gets or renews them if they are missing or expire soon, and waits
 * for missing ones at most CREDENTIALS_MS. */
static bool authorize(void)
{
    uint64_t end = loop_now_ms() + CREDENTIALS_MS;
    bool should_ask = object_store_credentials_ms(&bucket.store) < OBJECT_RENEWAL_MS;
    if (should_ask && !bucket.asking && loop_now_ms() >= bucket.not_before_ms)
        bucket.asking = fiber_start(bucket.group, request_credentials, NULL);
    while (!object_store_credentials_ms(&bucket.store) && bucket.asking) {
        uint64_t now = loop_now_ms();
        if (now >= end || fiber_wait_on(&bucket.asked, end - now) == FIBER_CANCELLED)
            break;
    }
    return object_store_credentials_ms(&bucket.store) > 0;
}

/* ---- failures ---- */

static char last_failure[sizeof((struct sl_error *)0)->message];

const char *bucket_last_error(void)
{
    return last_failure;
}

/* Returns what an error of a request means to the shared cache, and logs it with the text `what`, at most once a minute. A response with an
 * HTTP status shows that the server can be reached: SHARED_ERROR instead of SHARED_UNREACHABLE. */
static enum shared_result failure(const struct object_store_call *call, enum sl_code code, const char *what,
                                  const struct sl_error *error)
{
    static uint64_t next_ms;
    switch (code) {
    case SL_CANCELLED: return SHARED_CANCELLED;
    case SL_TIMEOUT: return SHARED_TIMEOUT;
    case SL_BUSY: return SHARED_BUSY;
    case SL_NOT_FOUND: return SHARED_MISS;
    default: break;
    }
    snprintf(last_failure, sizeof last_failure, "%s", error->message);
    if (loop_minutely(&next_ms))
        log_warn("shared", what, LOG_STR("backend", is_s3() ? "s3" : "gcs"), LOG_ERR(error));
    return call->status || code != SL_DOWNLOAD_ERROR ? SHARED_ERROR : SHARED_UNREACHABLE;
}

/* ---- get ---- */
struct bucket_download {
    struct object_store_call call;
    const char *name;
    int fd;    /* the file to download into */
    bool done; /* `code` and `error` are set */
    enum sl_code code;
    struct sl_error error;
    struct fiber_wait_list finished; /* the fiber that waits for the download */
};

/* True if the downloaded file begins like a zstd frame, as the contents of no kind do. Then it is still compressed, because the response
 * had no Content-Encoding: the server died before it stored that, or a proxy drops header fields. */
static bool is_packed(int fd)
{
    static const uint8_t magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
    uint8_t head[4];
    return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head && memcmp(head, magic, sizeof head) == 0;
}

/* Runs as a fiber: downloads an entry, and decompresses it if the fetcher has not. */
static void download(void *arg)
{
    struct bucket_download *d = arg;
    d->code = object_get(&bucket.store, sl_str(d->name), d->fd, &d->call, &d->error);
    if (d->code == SL_OK && is_packed(d->fd))
        d->code = fetch_unpack(d->fd, 0, &d->error); /* 0: the contents may be as large as any download */
    d->done = true;
    fiber_wake_all(&d->finished);
}

/* True if the first byte has arrived in the file. */
static bool has_begun(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size > 0;
}

/* Downloads an entry in a fiber of its own and waits for it, but only half a second (HEAD_MS) for its first byte: then SHARED_TIMEOUT. If
 * access is denied, that is a miss: S3 also denies access to missing objects, if the credentials do not permit listing. */
static enum shared_result get_within(struct bucket_download *d)
{
    struct fiber_group group;
    enum shared_result result = SHARED_HIT;
    uint64_t timeout = HEAD_MS;
    fiber_group_init(&group, fiber_group_current());
    if (!fiber_start(&group, download, d))
        result = SHARED_BUSY;
    while (!d->done && result == SHARED_HIT) {
        enum fiber_wait woken = fiber_wait_on(&d->finished, timeout);
        if (woken == FIBER_CANCELLED)
            result = SHARED_CANCELLED;
        else if (woken == FIBER_TIMED_OUT && !has_begun(d->fd))
            result = SHARED_TIMEOUT;
        timeout = UINT64_MAX; /* the first byte is there: only the download's own limit, BODY_S, applies from now on */
    }
    if (!d->done)
        fiber_group_cancel(&group);
    fiber_group_wait(&group);
    if (result != SHARED_HIT || d->code == SL_OK)
        return result;
    return d->call.is_denied ? SHARED_MISS
                             : failure(&d->call, d->code, "cannot read from the bucket of the shared cache", &d->error);
}

/* shared_backend.get: downloads an entry into the file. Without credentials the bucket counts as unreachable. The time of creation of the
 * entry is that of the object. */
static enum shared_result bucket_get(const char *name, int fd, struct shared_value *value)
{
    /* refuse_pages: a web page, which a proxy or server may send to ask for a login, is no entry */
    struct bucket_download d = {
        .call = {.timeout_ns = BODY_S * SECOND_NS, .refuse_pages = true}, .name = name, .fd = fd};
    enum shared_result result = authorize() ? get_within(&d) : SHARED_UNREACHABLE;
    value->code = SL_OK; /* a bucket has contents only, no errors */
    value->created_s = d.call.modified_s;
    return result;
}

/* ---- exists ---- */

/* shared_backend.exists: asks the bucket whether the object exists. Denied access counts as a miss, as S3 also denies access to missing
 * objects (object_store_call.is_denied). */
static enum shared_result exists(const char *name)
{
    struct object_store_call call = {.timeout_ns = HEAD_MS * (SECOND_NS / 1000)};
    struct sl_error error;
    if (!authorize())
        return SHARED_UNREACHABLE;
    enum sl_code code = object_exists(&bucket.store, sl_str(name), &call, &error);
    return code == SL_OK    ? SHARED_HIT
           : call.is_denied ? SHARED_MISS
                            : failure(&call, code, "cannot read from the bucket of the shared cache", &error);
}

/* shared_backend.probe: SHARED_HIT if the bucket answers a question for any object, also with "not found". */
static enum shared_result probe(void)
{
    enum shared_result result = exists("probe");
    return result == SHARED_MISS ? SHARED_HIT : result;
}

/* shared_backend.del: deletes an object. SHARED_HIT: it does not exist now. */
static enum shared_result del(const char *name)
{
    struct object_store_call call = {.timeout_ns = BODY_S * SECOND_NS};
    struct sl_error error;
    if (!authorize())
        return SHARED_UNREACHABLE;
    enum sl_code code = object_delete(&bucket.store, sl_str(name), &call, &error);
    return code == SL_OK ? SHARED_HIT
                         : failure(&call, code, "cannot delete from the bucket of the shared cache", &error);
}

/* ---- put ---- */
/* Sends an entry to the bucket; with `if_absent` only if the bucket does not have it. The server answers such a conditional request with
 * 412 or 409 if another machine was faster (SHARED_SKIPPED), and with 501 if it does not support it (SHARED_ERROR; `*status` is 501). */
static enum shared_result put_once(const struct shared_entry *entry, bool if_absent, int *status)
{
    struct object_store_call call = {.timeout_ns = BODY_S * SECOND_NS};
    const struct object_contents contents = {
        .bytes = entry->packed, .media_type = "application/octet-stream", .encoding = "zstd", .if_absent = if_absent};
    struct sl_error error;
    *status = 0;
    if (!authorize())
        return SHARED_UNREACHABLE;
    enum sl_code code = object_put(&bucket.store, sl_str(entry->name), &contents, &call, &error);
    bool there = call.status == 412 || call.status == 409;
    bool unable = call.status == 501 && if_absent;
    *status = call.status;
    return code == SL_OK ? SHARED_WRITTEN
           : there       ? SHARED_SKIPPED
           : unable      ? SHARED_ERROR
                         : failure(&call, code, "cannot write to the bucket of the shared cache", &error);
}

/* shared_backend.put: uploads an entry, unless the bucket has it. Waits until fewer than `uploads.max` uploads run. */
static enum shared_result bucket_put(const struct shared_entry *entry)
{
    int status;
    while (uploads.running >= uploads.max)
        if (fiber_wait_on(&uploads.free, UINT64_MAX) == FIBER_CANCELLED)
            return SHARED_CANCELLED;
    uploads.running++;
    enum shared_result result = put_once(entry, !entry->replace, &status);
    if (result == SHARED_ERROR && status == 501) { /* conditional requests are not supported: ask first, then upload */
        result = exists(entry->name);
        result = result == SHARED_HIT ? SHARED_SKIPPED : put_once(entry, false, &status);
    }
    uploads.running--;
    fiber_wake_one(&uploads.free);
    return result;
}

struct shared_backend *shared_bucket(const struct config *config, struct sl_arena *arena, struct fiber_group *group,
                                     struct sl_error *error)
{
    static struct shared_backend backend;
    const char *key;
    if (object_store_open(&bucket.store, &config->shared.bucket, "shared_cache", arena, &key, error) != SL_OK)
        return NULL;
    bucket.group = group;
    bucket.asking = false;
    bucket.not_before_ms = 0;
    uploads.running = 0;
    /* the other half of the requests per host is for look-ups */
    uploads.max = config->max_downloads_per_host > 3 ? config->max_downloads_per_host / 2 : 1;
    /* patience: unusable answers in a row after which it is paused; packed: entries are stored compressed, of any size */
    backend = (struct shared_backend){.name = is_s3() ? "s3" : "gcs",
                                      .patience = 20,
                                      .packed = true,
                                      .max_packed = UINT64_MAX,
                                      .get = bucket_get,
                                      .put = bucket_put,
                                      .exists = exists,
                                      .del = del,
                                      .probe = probe};
    return &backend;
}
