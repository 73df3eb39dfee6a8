#include "cache/engine.h"

#include <stdlib.h>

#include "core/metrics.h"

/* Limits of fibers. DISK_FIBERS for all look-ups on disk: they are short, and the pool that runs them has few threads. HOST_FIBERS for
 * computations that download from one host: more than the downloads that may run at once, so that no download waits for a fiber. */
enum { DISK_FIBERS = 32, HOST_FIBERS = 64 };

static unsigned host_fibers = HOST_FIBERS;

/* Sets how many fibers each queue may have: DISK_FIBERS for all look-ups on disk. For computations: twice max_downloads_per_host, as some
 * wait for other entries instead of downloading, and at least HOST_FIBERS. A kind whose computations wait for entries of the same kind
 * (`recursive`) has no limit: waiting computations could use all fibers, and the one that they wait for could not begin. */
void work_queue_configure(const struct config *config)
{
    uint64_t twice = (uint64_t)config->max_downloads_per_host * 2;
    host_fibers = twice > HOST_FIBERS ? (unsigned)(twice < UINT32_MAX ? twice : UINT32_MAX) : HOST_FIBERS;
    cache_engine.disk_queue.most = DISK_FIBERS;
    cache_engine.disk_queue.what = "disk"; /* label of the metric that counts waiting work */
    for (size_t i = 0; i < cache_engine.count; i++) {
        struct kind_state *state = &cache_engine.kinds[i];
        state->queue.most = state->kind->recursive ? UINT32_MAX : host_fibers;
        state->queue.what = "computation";
    }
}

struct work_queue *work_queue_for(struct flight *flight)
{
    struct kind_state *state = flight->state;
    struct sl_str queue_name =
        state->kind->queue_name ? state->kind->queue_name(flight->context) : (struct sl_str){NULL, 0};
    if (!queue_name.size) /* it waits for no host: use the queue that the kind always has */
        return &state->queue;
    struct work_queue *queue = sl_map_get(&state->queues, queue_name);
    if (queue)
        return queue;
    queue = sl_map_add(&state->queues, queue_name, sizeof *queue, &queue_name); /* queue_name: now the map's copy */
    if (queue)
        *queue =
            (struct work_queue){.most = host_fibers, .what = "computation", .map = &state->queues, .name = queue_name};
    return queue;
}

/* Frees the queue of a host if it has no work left. The queues of the kinds and of the disk (`map` is NULL) are never freed. */
static void drop_idle(struct work_queue *queue)
{
    if (queue->running || queue->flights.first || !queue->map)
        return;
    sl_map_remove(queue->map, queue->name);
    free(queue);
}

/* Adds `by` to the metric that counts the flights (in-flight look-ups) that wait for a fiber: one number for the disk queue, one for all
 * queues of computations. */
static void count_waiting(const struct work_queue *changed, long by)
{
    static long disk, computation;
    long *total = changed == &cache_engine.disk_queue ? &disk : &computation;
    *total += by;
    metric_set(METRIC_WAITING, (double)*total, changed->what, NULL, NULL);
}

/* Takes the oldest flight (in-flight look-up) from the queue; NULL if none waits. */
static struct flight *take_next(struct work_queue *queue)
{
    struct flight *flight = SL_LIST_FIRST(&queue->flights, struct flight, in_queue);
    if (!flight)
        return NULL;
    sl_list_remove(&queue->flights, &flight->in_queue);
    count_waiting(queue, -1);
    return flight;
}

/* A fiber of the queue: does the work of one flight after the other, and ends when none waits. */
static void work_on_queue(void *arg)
{
    struct work_queue *queue = arg;
    for (struct flight *flight; (flight = take_next(queue));) {
        fiber_set_request_id(flight->request_id); /* for log lines */
        flight->step(flight);                     /* the work given to work_queue_push */
    }
    queue->running--;
    drop_idle(queue); /* frees a host's queue that has no work left */
}

bool work_queue_push(struct work_queue *queue, struct flight *flight, flight_step *step)
{
    if (queue->running < queue->most) {
        /* "admitted": not subject to max_fibers, as flights serve requests that were let in already */
        if (fiber_start_admitted(&cache_engine.group, work_on_queue, queue)) {
            queue->running++;
        } else if (!queue->running) { /* else a running fiber will take the flight */
            /* drop_idle frees the queue if it was made for this flight */
            drop_idle(queue);
            return false;
        }
    }
    flight->step = step;
    sl_list_append(&queue->flights, &flight->in_queue);
    count_waiting(queue, 1);
    return true;
}
