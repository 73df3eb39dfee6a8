/* The life of jobs: start, end, look-up by id, and the stored results, which are freed when they expire. */
#include "api/jobs/jobs.h"

#include <stdlib.h>
#include <sys/random.h>

#include "api/impl.h"
#include "api/jobs/node.h"
#include "api/jobs/results.h"
#include "cache/cache.h"
#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/memory.h"
#include "core/metrics.h"
#include "fetch/fetch.h"
#include "id/id.h"

/* UNFETCHED_MS: how long after a client's last poll the service still waits for it to fetch the result before it stops.
 * JOB_CHUNK: usual size of the first chunk of a job's arena, in bytes. */
enum { UNFETCHED_MS = 5000, JOB_CHUNK = 32768 };

/* Smaller first chunk of arenas while MAX_SPARE jobs or more run: most of those jobs only wait. */
enum { CROWD_CHUNK = 5120 };

/* Limits of the free list of jobs: number of jobs, bytes of one arena, bytes of all their arenas. The arenas keep their memory, so that
 * the next job causes no page faults. */
enum { MAX_SPARE = 64, MAX_SPARE_ARENA = 1 << 20, MAX_SPARE_BYTES = 4 << 20 };

static const char *const outcome_names[] = {"running",        "completed", "failed",   "timeout",
                                            "internal_error", "busy",      "cancelled"};

/* ---- the service ---- */
size_t service_running(const struct service *service)
{
    return service->running;
}

/* True if no job runs, and no stored result waits for a client that polled in the last UNFETCHED_MS and has not got it yet. */
bool service_idle(const struct service *service)
{
    if (service->running)
        return false;
    for (const struct job *job = service->finished_first; job; job = job->next_finished)
        if (!job->fetched && loop_now_ms() - job->polled_ms < UNFETCHED_MS)
            return false;
    return true;
}

/* ---- making and ending jobs ---- */

/* Takes a job from the free list, or allocates one. The arena of a listed job may still have its memory; if not, its first chunk gets
 * JOB_CHUNK bytes. A new job's first chunk is smaller while many jobs run, as most of those only wait. NULL when out of memory. */
static struct job *job_alloc(struct service *service)
{
    struct job *job = service->spare;
    if (job) {
        service->spare = job->next_spare;
        service->spare_count--;
        service->spare_bytes -= job->arena.used;
        *job = (struct job){.arena = job->arena};
        job->arena.next_chunk = job->arena.chunks ? job->arena.next_chunk : JOB_CHUNK;
        return job;
    }
    job = calloc(1, sizeof *job);
    if (job)
        job->arena.next_chunk = service->running < MAX_SPARE ? JOB_CHUNK : CROWD_CHUNK;
    return job;
}

struct job *job_new(struct http_exchange *x, const struct job_kind *kind, struct sl_str scope)
{
    struct service *service = x->service;
    struct job *job = job_alloc(service);
    if (!job) {
        http_reply_no_memory(x);
        return NULL;
    }
    job->service = service;
    job->config = config_retain(service->config);
    job->key_id = x->key_id.size ? strndup(x->key_id.data, x->key_id.size) : NULL;
    if (job_set_kind(job, kind, scope) && (job->key_id || !x->key_id.size)) /* no key, or the copy worked */
        return job;
    http_reply_no_memory(x);
    job_discard(job);
    return NULL;
}

/* Frees what the job needed for its work: its configuration and memory. Keeps the arena for the next job if it has JOB_CHUNK to
 * MAX_SPARE_ARENA bytes. A job whose id was sent to a client (revealed) stays until its result expires, and there may be many of those,
 * so their arenas are freed. */
static void free_work(struct job *job)
{
    memory_resize(&job->memory, 0);
    config_release(job->config);
    job->config = NULL;
    if (job->arena.used > MAX_SPARE_ARENA || job->arena.used < JOB_CHUNK || job->revealed)
        sl_arena_free(&job->arena);
    else
        sl_arena_reset(&job->arena);
}

/* Frees what the job holds and puts it on the free list, or frees it if the list is full. No handler may use it. */
void job_discard(struct job *job)
{
    struct service *service = job->service;
    job_release(job);
    free_work(job);
    sl_buf_free(&job->answer);
    shared_blob_release(job->result);
    job->result = NULL;
    free(job->key_id);
    job->key_id = NULL;
    if (service->spare_count == MAX_SPARE) {
        sl_arena_free(&job->arena);
        free(job);
        return;
    }
    /* the list has too much memory: keeps the job without the memory of its arena */
    if (service->spare_bytes + job->arena.used > MAX_SPARE_BYTES)
        sl_arena_free(&job->arena);
    job->next_spare = service->spare;
    service->spare = job;
    service->spare_count++;
    service->spare_bytes += job->arena.used;
}

/* Returns the key of the job in service.jobs: the bytes of its id. */
static struct sl_str job_key(const struct job *job)
{
    return (struct sl_str){(const char *)job->id, sizeof job->id};
}

/* Removes an ended job from service.jobs and frees it. */
static void jobs_forget(struct job *job)
{
    job->service->stored_result_bytes -= job->stored_result_bytes;
    sl_map_remove(&job->service->jobs, job_key(job));
    job_discard(job);
}

/* True if the ended job keeps its result for polls. After an internal error or lack of memory a poll gets 404 instead, so that the
 * client submits the work again. */
static bool is_kept(const struct job *job)
{
    return job->revealed && job->outcome != JOB_INTERNAL_ERROR && job->outcome != JOB_BUSY;
}

/* Frees the job if it has ended, no handler uses it, and no poll can find it: its id was not sent to a client, or its result is not
 * kept. */
static void free_if_unreachable(struct job *job)
{
    if (job->outcome != JOB_RUNNING && job->group.count == 0 && !job->waiting && !is_kept(job))
        jobs_forget(job);
}

/* Returns for how long results of ended jobs are kept, in milliseconds. */
static uint64_t ttl_ms(const struct service *service)
{
    return DURATION_MS(service->config->result_ttl_ns);
}

/* Timer callback: frees the jobs whose results have expired. The list is ordered by the time of their ends, so the first job that is
 * not old enough ends the loop. A job that a handler is just reading ends it too; the timer then tries again in 10 ms. */
static void expire(uv_timer_t *timer)
{
    struct service *service = timer->data;
    struct job *job;
    while ((job = service->finished_first) && !job->waiting && job->finished_ms + ttl_ms(service) <= loop_now_ms()) {
        service->finished_first = job->next_finished;
        if (!job->next_finished)
            service->finished_last = NULL;
        jobs_forget(job);
    }
    if (job) {
        uint64_t end = job->finished_ms + ttl_ms(service), now = loop_now_ms();
        uv_timer_start(timer, expire, end > now ? end - now : 10, 0);
    }
}

/* Appends a job to the list of finished ones, whose first is the oldest, and starts the timer that frees expired ones. */
static void jobs_add_finished(struct job *job)
{
    struct service *service = job->service;
    if (service->finished_last)
        service->finished_last->next_finished = job;
    else
        service->finished_first = job;
    service->finished_last = job;
    if (!uv_is_active((uv_handle_t *)&service->expiry))
        uv_timer_start(&service->expiry, expire, ttl_ms(service), 0);
}

/* Counts the result in service.stored_result_bytes. If the sum would exceed the configured result_bytes, or memory is short, moves the
 * result to a file instead, which is not counted; if that fails it stays in memory. */
static void charge_result(struct job *job)
{
    struct service *service = job->service;
    size_t size = shared_blob_size(job->result);
    struct sl_error error;
    if ((service->stored_result_bytes + size > service->config->result_bytes || memory_is_short()) &&
        shared_blob_spill(job->result, cache_tmp_dir(), &error) == SL_OK)
        return;
    job->stored_result_bytes = size;
    service->stored_result_bytes += size;
}

/* ---- running ---- */

/* Returns the counter of running jobs of this task. The table takes names as they come; when it is full, all further tasks share its
 * last counter. */
static size_t *get_running_count(struct service *service, const char *task)
{
    size_t i = 0, last = sizeof service->running_of / sizeof *service->running_of - 1;
    while (i < last && service->running_of[i].task && strcmp(service->running_of[i].task, task) != 0)
        i++;
    service->running_of[i].task = task; /* takes a free entry; changes nothing if the name is known */
    return &service->running_of[i].count;
}

/* Adds `change` (1 or -1) to the numbers of running jobs. */
static void count_running(const struct job *job, int change)
{
    job->service->running += (size_t)change;
    *get_running_count(job->service, job->task) += (size_t)change;
}

/* Replaces the answer by {"status": status}. */
static void write_outcome(struct job *job, const char *status)
{
    sl_buf_clear(&job->answer);
    struct sl_json_writer w = sl_json_writer(&job->answer);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", sl_str(status));
    sl_json_end_object(&w);
}

/* Returns the outcome of a job whose steps ended with `code`. A wrong request is JOB_FAILED in any case. The steps of a cancelled job may
 * end with any other error, so the reason of the cancellation decides: its time limit, a client that left, or the end of the service (an
 * internal error). */
static enum job_outcome classify_outcome(const struct job *job, enum sl_code code)
{
    if (code == SL_MALFORMED || code == SL_UNSUPPORTED)
        return JOB_FAILED;
    if (code == SL_CANCELLED || (code != SL_OK && job->group.cancelled))
        return job->group.expired ? JOB_TIMEOUT : job->is_abandoned ? JOB_CANCELLED : JOB_INTERNAL_ERROR;
    if (code == SL_BUSY || job->answer.failed) /* out of memory; the latter while the answer was written */
        return JOB_BUSY;
    return code == SL_OK ? JOB_COMPLETED : JOB_INTERNAL_ERROR;
}

/* Ends the job: logs and counts its outcome, stores the result if a client knows the id (also in Redis, for other nodes), and wakes the
 * handlers that wait. If memory for the stored result is missing, the outcome becomes JOB_BUSY. A job whose id no client knows is freed
 * later, by free_if_unreachable. */
static void jobs_finish(struct job *job, enum sl_code code, const struct sl_error *error)
{
    struct service *service = job->service;
    enum job_outcome outcome = classify_outcome(job, code);
    if (outcome == JOB_BUSY) {
        metric_add(METRIC_BUSY, 1, "job", NULL, NULL);
        if (loop_minutely(&service->next_busy_log_ms))
            log_error("jobs", "cannot run a job: out of memory or file descriptors", LOG_STR("task", job->task),
                      LOG_ERR(error));
    }
    if (outcome == JOB_INTERNAL_ERROR && code != SL_CANCELLED) /* not when the service ends */
        log_error("jobs", "a job ended with an internal error", LOG_STR("task", job->task), LOG_ERR(error));
    if (outcome != JOB_COMPLETED && outcome != JOB_FAILED) /* these two have the answer that the steps wrote */
        write_outcome(job, outcome_names[outcome]);
    free_work(job); /* job->answer stays: it is not in the arena */
    if (job->revealed && (job->result = shared_blob_new(&job->answer)))
        charge_result(job);
    else if (job->revealed)
        outcome = JOB_BUSY;
    job->code = code;
    job->outcome = outcome;
    results_publish(job);
    job->finished_ms = loop_now_ms();
    count_running(job, -1);
    metric_add(METRIC_JOBS_FINISHED, 1, job->task, outcome_names[outcome], NULL);
    metric_observe(METRIC_JOB_DURATION, (double)(clock_mono_ns() - job->started_ns) / 1e9, job->task, NULL, NULL);
    if (is_kept(job))
        jobs_add_finished(job);
    else if (job->revealed) /* waiting handlers still answer with it, later polls get 404 */
        sl_map_remove(&service->jobs, job_key(job));
    fiber_wake_all(&job->waiters);
}

static void free_arena(void *arg)
{
    sl_arena_free(arg);
}

/* Frees a large arena on the pool, as unmapping 100 MB takes tens of milliseconds. First runs its destructors (`ends` is an arena that has
 * nothing but them): they release cache entries and the like, which only the loop may do. */
static void free_large_arena(struct job *job)
{
    if (job->arena.used <= MAX_FREED_ON_LOOP)
        return;
    struct sl_arena large = job->arena, ends = {.ends = large.ends};
    large.ends = NULL;
    job->arena = (struct sl_arena){.limit = large.limit, .budget = large.budget};
    sl_arena_free(&ends);
    if (pool_run(POOL_IO, free_arena, &large, NULL) == SL_BUSY) /* the pool took no job */
        sl_arena_free(&large);
}

/* The fiber of a job: runs its steps, then stores the result. */
static void job_fiber(void *arg)
{
    struct job *job = arg;
    struct sl_error error = {0};
    metric_observe(METRIC_JOB_START_DELAY, (double)(clock_mono_ns() - job->started_ns) / 1e9, NULL, NULL, NULL);
    fiber_set_cancel(&job->group.cancelled);
    enum sl_code code = job_run(job, &error);
    job->waited_ns = fiber_waited_ns();
    free_large_arena(job);
    jobs_finish(job, code, &error);
}

/* Called when the last fiber of the job has ended, which is after jobs_finish. */
static void job_ended(struct fiber_group *group)
{
    struct job *job = (struct job *)((char *)group - offsetof(struct job, group));
    fiber_group_finish(group);
    free_if_unreachable(job);
}

/* True if another job may start; otherwise counts the refusal, and the answer is set. */
bool job_slot_free(struct http_exchange *x)
{
    const struct service *service = x->service;
    uint64_t limit = service->config->max_concurrent_requests;
    if ((limit == UINT64_MAX || service->running < limit) && pool_can_accept())
        return true;
    metric_add(METRIC_JOBS_REJECTED, 1, NULL, NULL, NULL);
    metric_add(METRIC_HTTP_REFUSED, 1, "slots", NULL, NULL);
    http_reply_error(x, 503, "maximum number of concurrent requests reached");
    return false;
}

/* Makes a version 4 UUID (RFC 9562, section 5.4), but its first 16 bits are the number of this node, to which other nodes forward polls.
 * Takes the random bytes from a buffer, which one system call fills for many ids. False if the kernel gives none. */
static bool new_id(struct service *service, uint8_t id[16])
{
    size_t size = sizeof service->random;
    if (service->random_left < 16) {
        if (getrandom(service->random, size, 0) != (ssize_t)size)
            return false;
        service->random_left = size;
    }
    service->random_left -= 16;
    memcpy(id, service->random + service->random_left, 16);
    id[0] = (uint8_t)(service->node >> 8);
    id[1] = (uint8_t)service->node;
    id[6] = (uint8_t)((id[6] & 0x0F) | 0x40);
    id[8] = (uint8_t)((id[8] & 0x3F) | 0x80);
    return true;
}

/* Gives the job its id, adds it to service.jobs and runs it until it first suspends; a job that need not wait for anything ends in
 * here. False when out of memory, fibers or random bytes: everything is undone, the job has not started. */
static bool begin_fiber(struct job *job)
{
    struct service *service = job->service;
    if (!new_id(service, job->id) || !sl_map_put(&service->jobs, job_key(job), job))
        return false;
    fiber_group_init(&job->group, &service->jobs_group);
    job->group.on_empty = job_ended;
    job->started_ns = clock_mono_ns();
    job->polled_ms = loop_now_ms();
    count_running(job, 1);
    job->waiting++; /* for the caller; before fiber_run, in which the job may end and would be freed */
    if (fiber_run(&job->group, job_fiber, job)) {
        metric_add(METRIC_JOBS_ACCEPTED, 1, job->task, NULL, NULL);
        if (job->outcome == JOB_RUNNING)
            fiber_group_deadline(&job->group, DURATION_MS(service->config->max_job_duration_ns));
        return true;
    }
    count_running(job, -1);
    job->waiting--;
    fiber_group_finish(&job->group);
    sl_map_remove(&service->jobs, job_key(job));
    return false;
}

/* Starts the job, which takes over the memory that was reserved for the request's body. False: the answer is set. */
bool job_begin(struct http_exchange *x, struct job *job)
{
    memory_transfer(&job->memory, &x->memory);
    if (!job_slot_free(x))
        return false;
    if (begin_fiber(job))
        return true;
    /* out of memory or fibers: clients are told the same as when too many jobs run */
    metric_add(METRIC_JOBS_REJECTED, 1, NULL, NULL, NULL);
    http_reply_error(x, 503, "maximum number of concurrent requests reached");
    return false;
}

/* Called when a handler no longer uses the job. fiber_cancelled() tells that its client has disconnected. */
void job_remove_client(struct job *job)
{
    job->waiting--;
    if (job->outcome == JOB_RUNNING && !job->waiting && !job->revealed && fiber_cancelled()) {
        job->is_abandoned = true;
        fiber_group_cancel(&job->group);
    }
    free_if_unreachable(job);
}

/* Parses 32 hex digits, with hyphens at their usual places or without any. */
bool job_id_parse(struct sl_str text, uint8_t id[16])
{
    char digits[32];
    size_t count = 0, size;
    for (size_t i = 0; i < text.size; i++) {
        bool hyphen = text.data[i] == '-' && text.size == 36 && (i == 8 || i == 13 || i == 18 || i == 23);
        if (hyphen)
            continue;
        if (count == sizeof digits)
            return false;
        digits[count++] = text.data[i];
    }
    return count == sizeof digits && sl_hex_decode((struct sl_str){digits, count}, id, 16, &size);
}

/* True if the job was started with another access key than the request has. If either came without a key, knowing the id is enough. */
static bool has_other_key(const struct job *job, const struct http_exchange *x)
{
    return job->key_id && x->key_id.size && !sl_str_equal(sl_str(job->key_id), x->key_id);
}

/* Finds a job for a poll, and keeps it from being freed until job_remove_client. NULL: there is none, or this client may not see it. */
struct job *job_find(const struct http_exchange *x, const uint8_t id[16])
{
    const struct service *service = x->service;
    struct job *job = sl_map_get(&service->jobs, (struct sl_str){(const char *)id, 16});
    if (!job || !job->revealed || has_other_key(job, x))
        return NULL;
    job->waiting++;
    job->polled_ms = loop_now_ms();
    return job;
}

/* Sets the number of running jobs of each kind that has a route: also 0, for kinds without a job so far. */
void jobs_collect_metrics(struct service *service)
{
    for (const struct http_family *const *family = api_families; *family; family++)
        for (const struct http_route *route = (*family)->routes; route->method; route++)
            if (route->job)
                metric_set(METRIC_JOBS_RUNNING, (double)*get_running_count(service, route->job->task), route->job->task,
                           NULL, NULL);
}

/* ---- the end ---- */

/* Shuts down: wakes the handlers that wait for jobs, which see `stopping` and answer at once; then cancels the jobs and waits until
 * they have ended and their results are published. */
void service_stop(struct service *service)
{
    service->stopping = true;
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&service->jobs, e));) {
        struct job *job = e->value;
        fiber_wake_all(&job->waiters);
    }
    if (service->running)
        log_warn("jobs", "canceling the jobs that still run at shutdown", LOG_U64("jobs", service->running));
    fiber_sleep(0); /* runs the handlers that were woken */
    fiber_group_cancel(&service->jobs_group);
    while (service->running) /* a job counts as running until its result is stored; its fibers may end a little later */
        fiber_sleep(1);
    fiber_group_wait(&service->jobs_group);
    results_close(service->results);
    service->results = NULL;
}

/* Initializes what the service needs for jobs. The timer that frees results does not keep the loop alive (uv_unref). */
void jobs_init(struct service *service)
{
    fiber_group_init(&service->jobs_group, NULL);
    service->node = node_own_id(service->config);
    service->results = results_open(service);
    uv_timer_init(loop_get(), &service->expiry);
    uv_unref((uv_handle_t *)&service->expiry);
    service->expiry.data = service;
}

/* Called when the timer is closed: frees the jobs that have kept results, and the free list. Then tells the owner of the service
 * (jobs_closed), which frees the rest. */
static void on_closed(uv_handle_t *handle)
{
    struct service *service = handle->data;
    while (service->finished_first) {
        struct job *job = service->finished_first;
        service->finished_first = job->next_finished;
        job_discard(job);
    }
    while (service->spare) {
        struct job *job = service->spare;
        service->spare = job->next_spare;
        sl_arena_free(&job->arena);
        free(job);
    }
    sl_map_free(&service->jobs);
    service->jobs_closed(service);
}

void jobs_close(struct service *service, void (*closed)(struct service *service))
{
    service->jobs_closed = closed;
    uv_close((uv_handle_t *)&service->expiry, on_closed);
}

/* ---- debug output ---- */

/* Logs a running job, its age, and what it waits for. */
static void log_job(const struct job *job)
{
    char id[37];
    const char *waits = fiber_group_wait_reason(&job->group);
    job_id_format(job->id, id);
    const struct log_field fields[] = {LOG_STR("job", id),
                                       LOG_STR("task", job->task),
                                       LOG_U64("age_ms", (clock_mono_ns() - job->started_ns) / 1000000),
                                       LOG_STR("waits_for", waits ? waits : "its turn"),
                                       {.key = NULL}};
    log_write(NULL, LOG_INFO, "state", __FILE__, __LINE__, "job", fields);
}

void service_log_state(const struct service *service)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&service->jobs, e));)
        if (((const struct job *)e->value)->outcome == JOB_RUNNING)
            log_job(e->value);
    cache_log_state();
    fetch_log_state();
    log_info("state", "state of the process", LOG_U64("jobs", service->running),
             LOG_U64("results_bytes", service->stored_result_bytes), LOG_U64("pool_busy", pool_busy()),
             LOG_U64("pool_queued", pool_queued()), LOG_U64("pool_threads", loop_pool_threads()),
             LOG_U64("fibers", fiber_count()), LOG_U64("fiber_stacks", fiber_stacks_allocated()),
             LOG_U64("memory_used", memory_used()), LOG_U64("memory_budget", memory_limit()));
}
