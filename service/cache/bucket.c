/* The shared layer in a bucket of S3 or GCS: time limits, and what the bucket's answers mean to the layer. */
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
/* A request waits for the shared layer before it computes, so the first byte and the credentials have short limits. */
enum { HEAD_MS = 500, BODY_S = 60, CREDENTIALS_MS = 300, RETRY_MS = 1000 };

static struct {
    struct object_store store;
    struct fiber_group *group; /* of the fiber that requests credentials */
    bool asking;
    uint64_t not_before_ms; /* earliest time of the next request */
    struct fiber_wait_list asked;
} bucket;
static struct {
    unsigned running, max; /* uploads: they share the download slots of their host with look-ups */
    struct fiber_wait_list free;
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

/* True if there are credentials; waits for them at most CREDENTIALS_MS. A separate fiber renews them before they expire. */
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

/* Returns what an error of a request means to the shared cache. An HTTP status shows that the server works:
 * SHARED_ERROR instead of SHARED_UNREACHABLE. */
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
    int fd;
    bool done;
    enum sl_code code;
    struct sl_error error;
    struct fiber_wait_list finished;
};

/* No kind's contents begin like a zstd frame. Contents that do have lost their Content-Encoding: the server died before it
 * stored that, or a proxy drops header fields. */
static bool is_packed(int fd)
{
    static const uint8_t magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
    uint8_t head[4];
    return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head && memcmp(head, magic, sizeof head) == 0;
}

/* Runs as a fiber: downloads an entry. */
static void download(void *arg)
{
    struct bucket_download *d = arg;
    d->code = object_get(&bucket.store, sl_str(d->name), d->fd, &d->call, &d->error);
    if (d->code == SL_OK && is_packed(d->fd))
        d->code = fetch_unpack(d->fd, 0, &d->error);
    d->done = true;
    fiber_wake_all(&d->finished);
}

/* True if the first byte has arrived. */
static bool has_begun(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size > 0;
}

/* Downloads an entry in a fiber of its own, and waits: a whole entry may take a minute, but its first byte at most half a second. A bucket
 * that denies access to a missing object (S3 without the right to list) is a miss. */
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
        timeout = UINT64_MAX; /* from here on the time limit of the download applies */
    }
    if (!d->done)
        fiber_group_cancel(&group);
    fiber_group_wait(&group);
    if (result != SHARED_HIT || d->code == SL_OK)
        return result;
    return d->call.is_denied ? SHARED_MISS
                             : failure(&d->call, d->code, "cannot read from the bucket of the shared cache", &d->error);
}

/* The back end's `get`: downloads an entry into the file. Without credentials the bucket counts as unreachable. The entry's age is that of
 * the object. */
static enum shared_result bucket_get(const char *name, int fd, struct shared_value *value)
{
    struct bucket_download d = {
        .call = {.timeout_ns = BODY_S * SECOND_NS, .refuse_pages = true}, .name = name, .fd = fd};
    enum shared_result result = authorize() ? get_within(&d) : SHARED_UNREACHABLE;
    value->code = SL_OK;
    value->created_s = d.call.modified_s;
    return result;
}

/* ---- exists ---- */

/* Asks the bucket whether the object exists. Denied access counts as a miss: S3 denies access to missing objects (object_store_call.is_denied). */
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

/* Finds out whether the bucket works: any answer shows it, also that there is no such object. */
static enum shared_result probe(void)
{
    enum shared_result result = exists("probe");
    return result == SHARED_MISS ? SHARED_HIT : result;
}

/* The back end's `del`: deletes an object; one that is not there is SHARED_MISS or, where the server does not tell, a success. */
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
/* Uploads an entry once. 412 and 409 mean that another machine was faster; 501 that the server knows no conditional requests. */
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

/* Uploads an entry, after waiting until less than `uploads.max` others are running. */
static enum shared_result bucket_put(const struct shared_entry *entry)
{
    int status;
    while (uploads.running >= uploads.max)
        if (fiber_wait_on(&uploads.free, UINT64_MAX) == FIBER_CANCELLED)
            return SHARED_CANCELLED;
    uploads.running++;
    enum shared_result result = put_once(entry, !entry->replace, &status);
    if (result == SHARED_ERROR && status == 501) { /* conditional requests are not supported: look first */
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
    uploads.max = config->max_downloads_per_host > 3 ? config->max_downloads_per_host / 2 : 1;
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
