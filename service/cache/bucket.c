#include "cache/bucket.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"

#define SECOND_NS UINT64_C(1000000000)
enum { HEAD_MS = 500, BODY_S = 60, ANSWER_MAX = 64 << 10 };

static const struct bucket *bucket;
static struct {
    unsigned running, max; /* uploads: they share the download slots of their host with look-ups */
    struct fiber_wait_list free;
} uploads;

/* ---- requests ---- */
void bucket_header(struct bucket_request *request, struct sl_str name, struct sl_str value)
{
    if (request->fetch.header_count < BUCKET_HEADERS)
        request->headers[request->fetch.header_count++] = (struct fetch_header){name, {value}};
}

static bool holds(struct sl_str text, const char *part)
{
    return text.data && text.size && memmem(text.data, text.size, part, strlen(part)) != NULL;
}

/* Answers that another try would not change are final: fetch tries the others again. */
static enum sl_code bucket_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    struct bucket_request *request = arg;
    request->status = status;
    request->denied = status == 403 && holds(body, "<Code>AccessDenied</Code>");
    if (status == 404)
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    bool final = status < 500 || status == 501;
    struct sl_str start = {body.data, body.size < 200 ? body.size : 200};
    return sl_fail(error, final ? SL_PERMISSION_DENIED : SL_DOWNLOAD_ERROR, "status %d: " SL_STR_FMT, status,
                   SL_STR_ARG(start));
}

static bool bucket_begin(struct bucket_request *request, enum shared_op op, const char *name)
{
    request->fetch = (struct fetch_request){.headers = request->headers,
                                            .trusted = true,
                                            .source = "shared_cache",
                                            .keep_wrapper = true,
                                            .whole = true,
                                            .refuse_pages = op == SHARED_GET,
                                            .refused = bucket_refused,
                                            .modified_s = &request->modified_s,
                                            .arg = request};
    return bucket->prepare(request, op, name) && request->fetch.url;
}

static void bucket_end(struct bucket_request *request)
{
    sl_arena_free(&request->arena);
}

static char last_trouble[sizeof((struct sl_error *)0)->message];

const char *bucket_trouble(void)
{
    return last_trouble;
}

static void bucket_tell(const char *what, const struct sl_error *error)
{
    static uint64_t next_ms;
    snprintf(last_trouble, sizeof last_trouble, "%s", error->message);
    if (loop_minutely(&next_ms))
        log_warn("shared", what, LOG_STR("backend", bucket->name), LOG_ERR(error));
}

static enum shared_result failure(const struct bucket_request *request, enum sl_code code, const char *what,
                                  const struct sl_error *error)
{
    switch (code) {
    case SL_CANCELLED: return SHARED_CANCELLED;
    case SL_TIMEOUT: return SHARED_TIMEOUT;
    case SL_NOT_FOUND: return SHARED_MISS;
    default: break;
    }
    bucket_tell(what, error);
    return request->status || code != SL_DOWNLOAD_ERROR ? SHARED_ERROR : SHARED_UNREACHABLE;
}

/* ---- get ---- */
struct download {
    struct bucket_request *request;
    int fd;
    bool done;
    enum sl_code code;
    struct sl_error error;
    struct fiber_wait_list finished;
};

/* No kind's contents begin like a zstd frame: what does has lost its Content-Encoding, at a server that died between
 * writing one and the other, or a proxy that drops fields. */
static bool is_packed(int fd)
{
    static const uint8_t magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
    uint8_t head[4];
    return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head && memcmp(head, magic, sizeof head) == 0;
}

static void unwrap(void *arg)
{
    struct download *d = arg;
    d->code = fetch_unwrap(d->fd, 0, &d->error);
}

static void download(void *arg)
{
    struct download *d = arg;
    d->code = fetch_get(&d->request->fetch, d->fd, &d->error);
    if (d->code == SL_OK && is_packed(d->fd) && pool_run(POOL_COMPRESS, unwrap, d, &d->error) != SL_OK)
        d->code = SL_INTERNAL;
    d->done = true;
    fiber_wake_all(&d->finished);
}

static bool has_begun(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size > 0;
}

/* A whole entry may take a minute, but its first byte half a second. */
static enum shared_result get_within(struct bucket_request *request, int fd)
{
    struct download d = {.request = request, .fd = fd};
    struct fiber_group group;
    enum shared_result result = SHARED_HIT;
    uint64_t timeout = HEAD_MS;
    request->fetch.timeout_ns = BODY_S * SECOND_NS;
    fiber_group_init(&group, fiber_group_current());
    if (!fiber_start(&group, download, &d))
        result = SHARED_ERROR;
    while (!d.done && result == SHARED_HIT) {
        enum fiber_wait woken = fiber_wait_on(&d.finished, timeout);
        if (woken == FIBER_CANCELLED)
            result = SHARED_CANCELLED;
        else if (woken == FIBER_TIMED_OUT && !has_begun(fd))
            result = SHARED_TIMEOUT;
        timeout = UINT64_MAX; /* from here on the download's own limit counts */
    }
    if (!d.done)
        fiber_group_cancel(&group);
    fiber_group_wait(&group);
    if (result != SHARED_HIT || d.code == SL_OK)
        return result;
    return request->denied ? SHARED_MISS : failure(request, d.code, "cannot read from the bucket", &d.error);
}

static enum shared_result bucket_get(const char *name, int fd, struct shared_value *value)
{
    struct bucket_request request = {0};
    value->code = SL_OK;
    enum shared_result result =
        bucket_begin(&request, SHARED_GET, name) ? get_within(&request, fd) : SHARED_UNREACHABLE;
    value->created_s = request.modified_s;
    bucket_end(&request);
    return result;
}

/* ---- exists ---- */
static enum shared_result exists(const char *name)
{
    struct bucket_request request = {0};
    struct sl_buf answer = {0};
    struct sl_error error = {0};
    enum shared_result result = SHARED_UNREACHABLE;
    if (bucket_begin(&request, SHARED_EXISTS, name)) {
        request.fetch.timeout_ns = HEAD_MS * (SECOND_NS / 1000);
        enum sl_code code = fetch_text(&request.fetch, &answer, &error);
        bool there = code == SL_OK || (code == SL_MALFORMED && !request.status);
        result = there            ? SHARED_HIT
                 : request.denied ? SHARED_MISS
                                  : failure(&request, code, "cannot read from the bucket", &error);
    }
    sl_buf_free(&answer);
    bucket_end(&request);
    return result;
}

static enum shared_result probe(void)
{
    enum shared_result result = exists("probe");
    return result == SHARED_MISS ? SHARED_HIT : result;
}

static enum shared_result del(const char *name)
{
    struct bucket_request request = {0};
    struct sl_buf answer = {0};
    struct sl_error error = {0};
    enum shared_result result = SHARED_UNREACHABLE;
    if (bucket_begin(&request, SHARED_DEL, name)) {
        request.fetch.method = "DELETE";
        request.fetch.max_size = ANSWER_MAX;
        request.fetch.timeout_ns = BODY_S * SECOND_NS;
        enum sl_code code = fetch_text(&request.fetch, &answer, &error);
        result = code == SL_OK || code == SL_NOT_FOUND
                     ? SHARED_HIT
                     : failure(&request, code, "cannot delete from the bucket", &error);
    }
    sl_buf_free(&answer);
    bucket_end(&request);
    return result;
}

/* ---- put ---- */
static enum shared_result put_once(const struct shared_entry *entry, bool unconditional, int *status)
{
    struct bucket_request request = {.unconditional = unconditional || entry->replace};
    struct sl_buf answer = {0};
    struct sl_error error = {0};
    enum shared_result result = SHARED_UNREACHABLE;
    if (bucket_begin(&request, SHARED_PUT, entry->name)) {
        request.fetch.body.hidden = (struct sl_str){(const char *)entry->packed.data, entry->packed.size};
        request.fetch.max_size = ANSWER_MAX;
        request.fetch.timeout_ns = BODY_S * SECOND_NS;
        enum sl_code code = fetch_text(&request.fetch, &answer, &error);
        bool there = request.status == 412 || request.status == 409;
        bool unable = request.status == 501 && !request.unconditional;
        result = code == SL_OK    ? SHARED_WRITTEN
                 : there          ? SHARED_SKIPPED
                 : unable         ? SHARED_ERROR
                 : request.denied ? (bucket_tell("cannot write to the bucket", &error), SHARED_ERROR)
                                  : failure(&request, code, "cannot write to the bucket", &error);
        result = result == SHARED_MISS ? SHARED_ERROR : result; /* there is no such bucket */
    }
    *status = request.status;
    sl_buf_free(&answer);
    bucket_end(&request);
    return result;
}

static enum shared_result bucket_put(const struct shared_entry *entry)
{
    int status;
    while (uploads.running >= uploads.max)
        if (fiber_wait_on(&uploads.free, UINT64_MAX) == FIBER_CANCELLED)
            return SHARED_CANCELLED;
    uploads.running++;
    enum shared_result result = put_once(entry, false, &status);
    if (result == SHARED_ERROR && status == 501) { /* no conditions there: look first */
        result = exists(entry->name);
        result = result == SHARED_HIT ? SHARED_SKIPPED : put_once(entry, true, &status);
    }
    uploads.running--;
    fiber_wake_one(&uploads.free);
    return result;
}

static void close_bucket(void)
{
    if (bucket->close)
        bucket->close();
}

struct shared_backend *bucket_backend(const struct bucket *which, const struct config *config)
{
    static struct shared_backend backend;
    bucket = which;
    uploads.running = 0;
    uploads.max = config->max_downloads_per_host > 3 ? config->max_downloads_per_host / 2 : 1;
    backend = (struct shared_backend){.name = which->name,
                                      .patience = 20,
                                      .packed = true,
                                      .max_packed = UINT64_MAX,
                                      .get = bucket_get,
                                      .put = bucket_put,
                                      .exists = exists,
                                      .del = del,
                                      .probe = probe,
                                      .close = close_bucket};
    return &backend;
}
