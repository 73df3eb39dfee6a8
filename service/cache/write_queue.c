/* Writes to the shared layer (a bucket or a Redis used by several machines) wait in a queue. It is bounded in number and in bytes,
 * because a waiting write keeps its file open even after that is deleted. No request waits for the queue: writes that do not fit are
 * dropped. */
#include <stdlib.h>
#include <sys/random.h>

#include "cache/shared.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

/* Percentage of the refreshes that are left out: an entry in use is offered for a refresh every hour, but buckets delete objects only when
 * they are days old. */
enum { REFRESHES_DROPPED_PERCENT = 95 };

static struct {
    struct sl_list writes;
    size_t count, max_count;
    uint64_t bytes, max_bytes;
    unsigned running, max_running;
    struct fiber_group group;
    struct fiber_wait_list idle;
} queue;

/* Empties the queue and sets its limits. */
void write_queue_init(const struct config *config)
{
    queue.writes = (struct sl_list){0};
    queue.count = queue.running = 0;
    queue.bytes = 0;
    queue.max_count = config->shared.max_upload_queue_size;
    queue.max_bytes = config->shared.max_upload_queue_bytes;
    queue.max_running = config->shared.max_concurrent_uploads;
    fiber_group_init(&queue.group, NULL);
}

/* Returns the size of the contents to be written, in bytes; 0 for a cached error. This size counts against the queue's limit while the
 * write waits or runs. */
static uint64_t count_bytes(const struct queued_write *queued)
{
    return queued->item ? queued->item->mapping.bytes.size : 0;
}

static void queued_free(struct queued_write *queued)
{
    cache_release(queued->item);
    free(queued);
}

/* Discards a write, and adds it to the metric for `result`: "dropped" (no room) or "discarded" (refresh left out), for each back end. */
static void write_queue_refuse(struct queued_write *queued, const char *result)
{
    for (int i = 0; i < SHARED_BACKENDS; i++)
        if (queued->to[i])
            metric_add4(METRIC_SHARED_OPS, 1, queued->to[i]->name, queued->kind->name, "put", result);
    queued_free(queued);
}

/* ---- one write ---- */
/* Writes to one back end. A refresh, which writes an entry in use again if the back end has deleted it as old, first asks whether the entry
 * is still there, as that costs less than sending the contents. If it is, the result is SHARED_SKIPPED. */
static enum shared_result write_queue_store(struct shared_backend *to, const struct queued_write *queued,
                                            struct shared_entry *entry)
{
    if (queued->reason == SHARED_REFRESH) {
        uint64_t begin = loop_now_ms();
        enum shared_result there = to->exists(queued->name.text);
        /* counts the result in metrics, and pauses a back end that keeps failing */
        breaker_note(to, SHARED_EXISTS, queued->kind->name, begin, there);
        if (there == SHARED_HIT)
            return SHARED_SKIPPED;
    }
    if (!breaker_allows(to)) /* the back end was paused meanwhile, perhaps because `exists` failed above */
        return SHARED_UNREACHABLE;
    return to->put(entry);
}

/* Writes to one back end and counts the result in metrics. Compressed contents above the back end's limit are not sent, and count as
 * skipped; an error (`item` is NULL) always fits. */
static void store_counted(struct shared_backend *to, const struct queued_write *queued, struct shared_entry *entry)
{
    uint64_t begin = loop_now_ms();
    bool fits = queued->item == NULL || !to->packed || entry->packed.size <= to->max_packed;
    enum shared_result result = fits ? write_queue_store(to, queued, entry) : SHARED_SKIPPED;
    breaker_note(to, SHARED_PUT, queued->kind->name, begin, result);
    if (result == SHARED_WRITTEN && queued->item)
        metric_add(METRIC_SHARED_BYTES, to->packed ? entry->packed.size : entry->contents.size, to->name, "out", NULL);
}

/* Removes from the write the back ends that are paused after failures, and counts each as dropped. False if no back end is left. Sets
 * `*packed` if any of the remaining ones stores compressed contents, and `*max_packed` to the largest size in bytes that any of those
 * accepts. */
static bool drop_paused(struct queued_write *queued, bool *packed, uint64_t *max_packed)
{
    bool any = false;
    *packed = false;
    *max_packed = 0;
    for (int i = 0; i < SHARED_BACKENDS; i++) {
        struct shared_backend *to = queued->to[i];
        if (to && !breaker_allows(to)) {
            metric_add4(METRIC_SHARED_OPS, 1, to->name, queued->kind->name, "put", "dropped");
            to = queued->to[i] = NULL;
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

/* Writes the contents of an entry to its back ends. They are compressed once, for all back ends that store them compressed. If the
 * compressed contents are too large, the write counts as skipped for the back ends that would store them. */
static void queued_contents(struct queued_write *queued, struct shared_entry *entry)
{
    struct pack_job pack = {.contents = queued->item->mapping.bytes};
    bool packed;
    if (!drop_paused(queued, &packed, &pack.max_packed))
        return;
    entry->contents = pack.contents;
    if (packed && pool_run(POOL_COMPRESS | POOL_HEAVY, pack_run, &pack, NULL) != SL_OK)
        return; /* shutdown, no memory or an unreadable file: the shared layer goes without this entry */
    entry->packed = pack.packed.bytes;
    for (int i = 0; i < SHARED_BACKENDS; i++)
        if (queued->to[i] && (!queued->to[i]->packed || pack.packed.bytes.data))
            store_counted(queued->to[i], queued, entry);
        else if (queued->to[i] && pack.too_large)
            breaker_note(queued->to[i], SHARED_PUT, queued->kind->name, loop_now_ms(), SHARED_SKIPPED);
    if (pack.packed.bytes.data)
        sl_unmap(&pack.packed);
}

/* Writes a cached error to its back ends, in the format of error files on disk (`marker`). */
static void queued_error(struct queued_write *queued, struct shared_entry *entry)
{
    struct sl_buf marker = {0};
    bool packed; /* unused here, like max_packed: errors are never compressed */
    uint64_t max_packed;
    queued->error.code = entry->code;
    cache_error_encode(&queued->error, &marker);
    entry->marker = sl_buf_bytes(&marker);
    if (!marker.failed && drop_paused(queued, &packed, &max_packed))
        for (int i = 0; i < SHARED_BACKENDS; i++)
            if (queued->to[i])
                store_counted(queued->to[i], queued, entry);
    sl_buf_free(&marker);
}

/* Writes a queued entry, contents or an error, to its back ends. */
static void queued_run(struct queued_write *queued)
{
    struct shared_entry entry = {.name = queued->name.text,
                                 .code = queued->item ? SL_OK : queued->error.code,
                                 .created_s = queued->created_s,
                                 .ttl_s = queued->ttl_s,
                                 .replace = queued->replace};
    if (queued->item)
        queued_contents(queued, &entry);
    else
        queued_error(queued, &entry);
}

/* ---- the queue ---- */
/* Takes the oldest write from the queue; NULL if it is empty. queue.bytes still counts it, until the caller has written it. */
static struct queued_write *write_queue_take(void)
{
    struct queued_write *queued = SL_LIST_FIRST(&queue.writes, struct queued_write, link);
    if (!queued)
        return NULL;
    sl_list_remove(&queue.writes, &queued->link);
    queue.count--;
    return queued;
}

static void write_queue_show(void)
{
    metric_set(METRIC_SHARED_QUEUE, (double)queue.count, NULL, NULL, NULL);
    metric_set(METRIC_SHARED_UPLOADS, queue.running, NULL, NULL, NULL);
}

/* A fiber that writes queued entries until the queue is empty or it is cancelled. The last of these fibers wakes write_queue_drain. */
static void write_queue_work(void *arg)
{
    (void)arg;
    for (struct queued_write *queued; !fiber_cancelled() && (queued = write_queue_take());) {
        write_queue_show();
        queued_run(queued);
        queue.bytes -= count_bytes(queued);
        queued_free(queued);
    }
    if (--queue.running == 0)
        fiber_wake_all(&queue.idle);
    write_queue_show();
}

/* Returns true at random, in `percent` of a hundred calls on average; false if the system returns no random bytes. */
static bool by_chance(unsigned percent)
{
    uint32_t random = 0;
    return getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random && random % 100 < percent;
}

/* Queues a write, and starts a fiber if fewer than max_running run; takes over `queued` in any case. Leaves out most refreshes, chosen at
 * random, as entries in use are refreshed often enough. A full queue drops the write. */
void write_queue_add(struct queued_write *queued)
{
    uint64_t bytes = count_bytes(queued);
    if (queued->reason == SHARED_REFRESH && by_chance(REFRESHES_DROPPED_PERCENT)) {
        write_queue_refuse(queued, "discarded");
        return;
    }
    if (queue.count >= queue.max_count || bytes > queue.max_bytes - queue.bytes) {
        log_warn("shared", "Shared cache upload queue full; entries are dropped", LOG_U64("entries", queue.count),
                 LOG_U64("bytes", queue.bytes));
        write_queue_refuse(queued, "dropped");
        return;
    }
    sl_list_append(&queue.writes, &queued->link);
    queue.count++;
    queue.bytes += bytes;
    if (queue.running < queue.max_running && fiber_start(&queue.group, write_queue_work, NULL))
        queue.running++; /* if no fiber can start, the write waits for a running fiber or for the next call */
    write_queue_show();
}

/* Waits up to `ms` milliseconds until all writes are done, then cancels those that run and drops those that wait. */
void write_queue_drain(uint64_t ms)
{
    uint64_t end = loop_now_ms() + ms;
    for (uint64_t now; queue.running && (now = loop_now_ms()) < end;)
        if (fiber_wait_on(&queue.idle, end - now) == FIBER_CANCELLED)
            break;
    fiber_group_cancel(&queue.group);
    fiber_group_wait(&queue.group);
    for (struct queued_write *queued; (queued = write_queue_take());)
        write_queue_refuse(queued, "dropped");
    queue.bytes = 0; /* write_queue_take leaves subtracting to its caller */
}
