/* What is to be stored in the shared layer waits in a queue that is bounded in number and in bytes, because what waits
 * keeps deleted files alive. Nobody waits for it: what does not fit is dropped. */
#include <stdlib.h>
#include <sys/random.h>

#include "cache/shared.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

enum { REFRESHES_DROPPED_PERCENT = 95 };

static struct {
    struct upload *first, **end;
    size_t count, max_count;
    uint64_t bytes, max_bytes;
    unsigned running, max_running;
    struct fiber_group group;
    struct fiber_wait_list idle;
} queue;

void uploads_init(const struct config *config)
{
    queue.first = NULL;
    queue.end = &queue.first;
    queue.count = queue.running = 0;
    queue.bytes = 0;
    queue.max_count = config->shared.max_upload_queue_size;
    queue.max_bytes = config->shared.max_upload_queue_bytes;
    queue.max_running = config->shared.max_concurrent_uploads;
    fiber_group_init(&queue.group, NULL);
}

static uint64_t bytes_of(const struct upload *upload)
{
    return upload->item ? upload->item->mapping.bytes.size : 0;
}

static void upload_free(struct upload *upload)
{
    cache_release(upload->item);
    free(upload);
}

static void uploads_refuse(struct upload *upload, const char *result)
{
    for (int i = 0; i < SHARED_BACKENDS; i++)
        if (upload->to[i])
            metric_add4(METRIC_SHARED_OPS, 1, upload->to[i]->name, upload->kind->name, "put", result);
    upload_free(upload);
}

/* ---- one upload ---- */
static enum shared_result uploads_store(struct shared_backend *to, const struct upload *upload,
                                        struct shared_entry *entry)
{
    if (upload->reason == SHARED_REFRESH) {
        uint64_t begin = loop_now_ms();
        enum shared_result there = to->exists(upload->name.text);
        breaker_note(to, SHARED_EXISTS, upload->kind->name, begin, there);
        if (there == SHARED_HIT)
            return SHARED_SKIPPED;
    }
    if (!breaker_allows(to))
        return SHARED_UNREACHABLE;
    return to->put(entry);
}

static void store_counted(struct shared_backend *to, const struct upload *upload, struct shared_entry *entry)
{
    uint64_t begin = loop_now_ms();
    bool fits = upload->item == NULL || !to->packed || entry->packed.size <= to->max_packed;
    enum shared_result result = fits ? uploads_store(to, upload, entry) : SHARED_SKIPPED;
    breaker_note(to, SHARED_PUT, upload->kind->name, begin, result);
    if (result == SHARED_WRITTEN && upload->item)
        metric_add(METRIC_SHARED_BYTES, to->packed ? entry->packed.size : entry->contents.size, to->name, "out", NULL);
}

/* Whether somebody is left who takes it; the others are taken out. `*max_packed`: the most that any of them takes. */
static bool takers(struct upload *upload, bool *packed, uint64_t *max_packed)
{
    bool any = false;
    *packed = false;
    *max_packed = 0;
    for (int i = 0; i < SHARED_BACKENDS; i++) {
        struct shared_backend *to = upload->to[i];
        if (to && !breaker_allows(to)) {
            metric_add4(METRIC_SHARED_OPS, 1, to->name, upload->kind->name, "put", "dropped");
            to = upload->to[i] = NULL;
        }
        if (!to)
            continue;
        any = true;
        *packed |= to->packed;
        if (to->packed && to->max_packed > *max_packed)
            *max_packed = to->max_packed;
    }
    return any;
}

static void upload_contents(struct upload *upload, struct shared_entry *entry)
{
    struct pack pack = {.contents = upload->item->mapping.bytes};
    bool packed;
    if (!takers(upload, &packed, &pack.max_packed))
        return;
    entry->contents = pack.contents;
    if (packed && pool_run(POOL_COMPRESS | POOL_HEAVY, pack_run, &pack, NULL) != SL_OK)
        return;
    entry->packed = pack.packed.bytes;
    for (int i = 0; i < SHARED_BACKENDS; i++)
        if (upload->to[i] && (!upload->to[i]->packed || pack.packed.bytes.data))
            store_counted(upload->to[i], upload, entry);
        else if (upload->to[i] && pack.too_large)
            breaker_note(upload->to[i], SHARED_PUT, upload->kind->name, loop_now_ms(), SHARED_SKIPPED);
    if (pack.packed.bytes.data)
        sl_unmap(&pack.packed);
}

static void upload_error(struct upload *upload, struct shared_entry *entry)
{
    struct sl_buf marker = {0};
    bool packed;
    uint64_t max_packed;
    upload->error.code = entry->code;
    cache_error_encode(&upload->error, &marker);
    entry->marker = sl_buf_bytes(&marker);
    if (!marker.failed && takers(upload, &packed, &max_packed))
        for (int i = 0; i < SHARED_BACKENDS; i++)
            if (upload->to[i])
                store_counted(upload->to[i], upload, entry);
    sl_buf_free(&marker);
}

static void upload_run(struct upload *upload)
{
    struct shared_entry entry = {.name = upload->name.text,
                                 .code = upload->item ? SL_OK : upload->error.code,
                                 .created_s = upload->created_s,
                                 .ttl_s = upload->ttl_s,
                                 .replace = upload->replace};
    if (upload->item)
        upload_contents(upload, &entry);
    else
        upload_error(upload, &entry);
}

/* ---- the queue ---- */
static struct upload *uploads_take(void)
{
    struct upload *upload = queue.first;
    if (!upload)
        return NULL;
    queue.first = upload->next;
    if (!queue.first)
        queue.end = &queue.first;
    queue.count--;
    return upload;
}

static void uploads_show(void)
{
    metric_set(METRIC_SHARED_QUEUE, (double)queue.count, NULL, NULL, NULL);
    metric_set(METRIC_SHARED_UPLOADS, queue.running, NULL, NULL, NULL);
}

static void uploads_work(void *arg)
{
    (void)arg;
    for (struct upload *upload; !fiber_cancelled() && (upload = uploads_take());) {
        uploads_show();
        upload_run(upload);
        queue.bytes -= bytes_of(upload);
        upload_free(upload);
    }
    if (--queue.running == 0)
        fiber_wake_all(&queue.idle);
    uploads_show();
}

static bool by_chance(unsigned percent)
{
    uint32_t random = 0;
    return getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random && random % 100 < percent;
}

void uploads_add(struct upload *upload)
{
    uint64_t bytes = bytes_of(upload);
    if (upload->reason == SHARED_REFRESH && by_chance(REFRESHES_DROPPED_PERCENT)) {
        uploads_refuse(upload, "discarded");
        return;
    }
    if (queue.count >= queue.max_count || bytes > queue.max_bytes - queue.bytes) {
        log_warn("shared", "Shared cache upload queue full", LOG_U64("entries", queue.count),
                 LOG_U64("bytes", queue.bytes));
        uploads_refuse(upload, "dropped");
        return;
    }
    *queue.end = upload;
    queue.end = &upload->next;
    queue.count++;
    queue.bytes += bytes;
    if (queue.running < queue.max_running && fiber_start(&queue.group, uploads_work, NULL))
        queue.running++;
    uploads_show();
}

void uploads_drain(uint64_t ms)
{
    uint64_t end = loop_now_ms() + ms;
    for (uint64_t now; queue.running && (now = loop_now_ms()) < end;)
        if (fiber_wait_on(&queue.idle, end - now) == FIBER_CANCELLED)
            break;
    fiber_group_cancel(&queue.group);
    fiber_group_wait(&queue.group);
    for (struct upload *upload; (upload = uploads_take());)
        uploads_refuse(upload, "dropped");
    queue.bytes = 0;
}
