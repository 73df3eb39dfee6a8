#include "api/jobs.h"

#include <stdlib.h>
#include <sys/random.h>

#include "api/impl.h"
#include "api/native.h"
#include "cache/cache.h"
#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"

enum { RETRY_AFTER_S = 30, UNFETCHED_MS = 5000, JOB_CHUNK = 32768 };

enum { CROWD_CHUNK = 4096 }; /* first of the arena of a job beyond MAX_SPARE, which mostly waits */

/* Ended jobs whose arenas are used again, at most so many and so large: warm memory costs no page faults. */
enum { MAX_SPARE = 64, MAX_SPARE_ARENA = 1 << 20, MAX_SPARE_BYTES = 4 << 20 };

static const char *const task_names[TASKS] = {"symbolicate"};
static const char *const outcome_names[] = {"running", "completed", "failed", "timeout", "internal_error", "busy"};

/* ---- the service ---- */
static void expire(uv_timer_t *timer);

void service_configure(struct service *service, const struct config *config)
{
    service->config = config;
    metric_set(METRIC_JOBS_LIMIT, (double)config->max_concurrent_requests, NULL, NULL, NULL);
}

struct service *service_new(const struct config *config)
{
    struct service *service = calloc(1, sizeof *service);
    if (!service)
        return NULL;
    service_configure(service, config);
    service->names = name_memo_new();
    fiber_group_init(&service->jobs_group, NULL);
    uv_timer_init(loop_get(), &service->expiry);
    uv_unref((uv_handle_t *)&service->expiry);
    service->expiry.data = service;
    return service;
}

void service_on_reload(struct service *service, service_reload *reload, void *arg)
{
    service->reload = reload;
    service->reload_arg = arg;
}

void service_drain(struct service *service)
{
    service->draining = true;
}

size_t service_running(const struct service *service)
{
    return service->running;
}

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
struct job *job_new(struct service *service, enum job_task task)
{
    struct job *job = service->spare;
    if (job) {
        service->spare = job->next_spare;
        service->spare_count--;
        service->spare_bytes -= job->arena.used;
        *job = (struct job){.arena = job->arena};
        job->arena.next_chunk = job->arena.chunks ? job->arena.next_chunk : JOB_CHUNK;
    } else {
        job = calloc(1, sizeof *job);
        if (!job)
            return NULL;
        job->arena.next_chunk = service->running < MAX_SPARE ? JOB_CHUNK : CROWD_CHUNK;
    }
    job->service = service;
    job->config = config_retain(service->config);
    job->task = task;
    return job;
}

void job_count_memory(struct job *job)
{
    if (job->memory.bytes < job->arena.used)
        memory_set(&job->memory, job->arena.used);
}

static void free_work(struct job *job)
{
    memory_set(&job->memory, 0);
    config_release(job->config);
    job->config = NULL;
    if (job->arena.used > MAX_SPARE_ARENA || job->arena.used < JOB_CHUNK ||
        job->revealed) /* those whose results are kept are many */
        sl_arena_free(&job->arena);
    else
        sl_arena_reset(&job->arena);
}

void job_discard(struct job *job)
{
    struct service *service = job->service;
    free_work(job);
    sl_buf_free(&job->answer);
    content_release(job->result);
    job->result = NULL;
    if (service->spare_count == MAX_SPARE) {
        sl_arena_free(&job->arena);
        free(job);
        return;
    }
    if (service->spare_bytes + job->arena.used > MAX_SPARE_BYTES)
        sl_arena_free(&job->arena);
    job->next_spare = service->spare;
    service->spare = job;
    service->spare_count++;
    service->spare_bytes += job->arena.used;
}

static struct sl_str job_key(const struct job *job)
{
    return (struct sl_str){(const char *)job->id, sizeof job->id};
}

static void jobs_forget(struct job *job)
{
    job->service->kept_bytes -= job->kept_bytes;
    sl_map_remove(&job->service->jobs, job_key(job));
    job_discard(job);
}

/* Who polls for another one learns that the id is not known, and submits again. */
static bool is_kept(const struct job *job)
{
    return job->revealed && job->outcome != JOB_INTERNAL_ERROR && job->outcome != JOB_BUSY;
}

/* Frees a job nobody can ask for: it has ended, and its id was never told or is not valid any more. */
static void drop_if_unknown(struct job *job)
{
    if (job->outcome != JOB_RUNNING && job->group.count == 0 && !job->waiting && !is_kept(job))
        jobs_forget(job);
}

static uint64_t ttl_ms(const struct service *service)
{
    return DURATION_MS(service->config->result_ttl_ns);
}

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

static void jobs_keep(struct job *job)
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

/* Results beyond result_bytes wait in a file, and others while memory is short. When that fails they stay in memory. */
static void account(struct job *job)
{
    struct service *service = job->service;
    size_t size = content_size(job->result);
    struct sl_error error;
    if ((service->kept_bytes + size > service->config->result_bytes || memory_is_short()) &&
        content_spill(job->result, cache_tmp_dir(), &error) == SL_OK)
        return;
    job->kept_bytes = size;
    service->kept_bytes += size;
}

/* ---- running ---- */
static void write_outcome(struct job *job, const char *status)
{
    sl_buf_clear(&job->answer);
    struct json_writer w = json_writer(&job->answer);
    json_object_begin(&w);
    json_key(&w, "status");
    json_str(&w, sl_str(status));
    json_object_end(&w);
}

static void jobs_finish(struct job *job, enum sl_code code, const struct sl_error *error)
{
    struct service *service = job->service;
    enum job_outcome outcome = code == SL_BUSY || job->answer.failed        ? JOB_BUSY
                               : code == SL_OK                              ? JOB_COMPLETED
                               : code == SL_CANCELLED && job->group.expired ? JOB_TIMEOUT
                                                                            : JOB_INTERNAL_ERROR;
    if (outcome == JOB_BUSY) {
        metric_add(METRIC_BUSY, 1, "job", NULL, NULL);
        if (loop_minutely(&service->next_busy_log_ms))
            log_error("jobs", "not enough memory or descriptors for a job", LOG_STR("task", task_names[job->task]),
                      LOG_ERR(error));
    }
    if (outcome == JOB_INTERNAL_ERROR && code != SL_CANCELLED)
        log_error("jobs", "job failed", LOG_STR("task", task_names[job->task]), LOG_ERR(error));
    if (outcome != JOB_COMPLETED)
        write_outcome(job, outcome_names[outcome]);
    free_work(job);
    if (job->revealed && (job->result = content_new(&job->answer)))
        account(job);
    else if (job->revealed)
        outcome = JOB_BUSY;
    job->outcome = outcome;
    job->finished_ms = loop_now_ms();
    service->running--;
    metric_add(METRIC_JOBS_FINISHED, 1, task_names[job->task], outcome_names[outcome], NULL);
    metric_observe(METRIC_JOB_DURATION, (double)(clock_mono_ns() - job->started_ns) / 1e9, task_names[job->task], NULL,
                   NULL);
    if (is_kept(job))
        jobs_keep(job);
    else if (job->revealed) /* waiters hear of it, later polls do not know it */
        sl_map_remove(&service->jobs, job_key(job));
    fiber_wake_all(&job->waiters);
}

static void job_fiber(void *arg)
{
    struct job *job = arg;
    struct sl_error error = {0};
    enum sl_code code = job->run(job, job->arg, &error);
    jobs_finish(job, code, &error);
}

static void job_ended(struct fiber_group *group)
{
    struct job *job = (struct job *)((char *)group - offsetof(struct job, group));
    fiber_group_finish(group);
    drop_if_unknown(job);
}

bool job_slot_free(struct http_exchange *x)
{
    const struct service *service = x->service;
    uint64_t limit = service->config->max_concurrent_requests;
    if ((limit == UINT64_MAX || service->running < limit) && pool_accepts())
        return true;
    metric_add(METRIC_JOBS_REJECTED, 1, NULL, NULL, NULL);
    metric_add(METRIC_HTTP_REFUSED, 1, "slots", NULL, NULL);
    http_reply_detail(x, 503, "maximum number of concurrent requests reached", NULL);
    return false;
}

/* RFC 9562, 5.4: version 4. */
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
    id[6] = (uint8_t)((id[6] & 0x0F) | 0x40);
    id[8] = (uint8_t)((id[8] & 0x3F) | 0x80);
    return true;
}

/* Runs the job until it first waits, which one that has everything in memory never does. */
static bool jobs_begin(struct job *job)
{
    struct service *service = job->service;
    void **slot = new_id(service, job->id) ? sl_map_slot(&service->jobs, job_key(job), NULL) : NULL;
    if (!slot)
        return false;
    *slot = job;
    fiber_group_init(&job->group, &service->jobs_group);
    job->group.on_empty = job_ended;
    job->started_ns = clock_mono_ns();
    job->polled_ms = loop_now_ms();
    service->running++;
    job->waiting++; /* it may end at once */
    bool started = fiber_run(&job->group, job_fiber, job);
    job->waiting--;
    if (started) {
        metric_add(METRIC_JOBS_ACCEPTED, 1, task_names[job->task], NULL, NULL);
        if (job->outcome == JOB_RUNNING)
            fiber_group_deadline(&job->group, DURATION_MS(service->config->max_job_duration_ns));
        return true;
    }
    service->running--;
    fiber_group_finish(&job->group);
    sl_map_remove(&service->jobs, job_key(job));
    return false;
}

/* ---- answering ---- */
static void format_id(const uint8_t id[16], char out[37])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0, at = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            out[at++] = '-';
        out[at++] = digits[id[i] >> 4];
        out[at++] = digits[id[i] & 15];
    }
    out[36] = '\0';
}

static void reply_pending(struct http_exchange *x, struct job *job)
{
    char id[37];
    struct sl_buf body = {0};
    struct json_writer w = json_writer(&body);
    format_id(job->id, id);
    job->revealed = true;
    job->polled_ms = loop_now_ms();
    json_object_begin(&w);
    json_key(&w, "status");
    json_str(&w, SL_STR("pending"));
    json_key(&w, "request_id");
    json_str(&w, sl_str(id));
    json_key(&w, "retry_after");
    json_u64(&w, RETRY_AFTER_S);
    json_object_end(&w);
    http_reply_json(x, 200, &body);
}

/* What only this client can ask for is its own; what others may ask for too is shared. */
static void reply_result(struct http_exchange *x, struct job *job)
{
    job->fetched = true;
    if (job->outcome == JOB_BUSY)
        http_reply_no_memory(x);
    else if (job->result)
        http_reply_content(x, 200, "application/json", content_hold(job->result));
    else
        http_reply_json(x, 200, &job->answer);
}

static enum fiber_wait wait_for(struct job *job, const struct api_query *query)
{
    uint64_t now = loop_now_ms(), ms, end = UINT64_MAX;
    enum fiber_wait result = FIBER_WOKEN;
    if (query->has_timeout && !__builtin_mul_overflow(query->timeout_s, 1000u, &ms) &&
        __builtin_add_overflow(now, ms, &end))
        end = UINT64_MAX;
    while (job->outcome == JOB_RUNNING && !job->service->stopping && result == FIBER_WOKEN) {
        now = loop_now_ms();
        if (now >= end)
            return FIBER_TIMED_OUT;
        result = fiber_wait_on(&job->waiters, end == UINT64_MAX ? UINT64_MAX : end - now);
    }
    return result;
}

static void answer(struct http_exchange *x, struct job *job, const struct api_query *query)
{
    job->waiting++;
    enum fiber_wait waited = wait_for(job, query);
    job->waiting--;
    if (job->outcome != JOB_RUNNING) {
        metric_add(METRIC_POLLS, 1, "done", NULL, NULL);
        reply_result(x, job);
    } else if (waited == FIBER_CANCELLED) {
        return; /* the client is gone; the job goes on and nobody will ask for it */
    } else if (job->service->stopping && !query->has_timeout) {
        http_reply_detail(x, 503, "service is shutting down", NULL);
    } else {
        metric_add(METRIC_POLLS, 1, "pending", NULL, NULL);
        reply_pending(x, job);
    }
    drop_if_unknown(job);
}

void job_start(struct http_exchange *x, struct job *job,
               enum sl_code (*run)(struct job *job, void *arg, struct sl_error *error), void *arg)
{
    struct api_query query;
    job->run = run;
    job->arg = arg;
    memory_move(&job->memory, &x->memory);
    if (!query_read(x, &query) || !job_slot_free(x)) {
        job_discard(job);
        return;
    }
    if (!jobs_begin(job)) {
        job_discard(job);
        metric_add(METRIC_JOBS_REJECTED, 1, NULL, NULL, NULL);
        http_reply_detail(x, 503, "maximum number of concurrent requests reached", NULL);
        return;
    }
    answer(x, job, &query);
}

/* With or without hyphens, in any case. */
static bool parse_id(struct sl_str text, uint8_t id[16])
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

void job_poll(struct http_exchange *x)
{
    struct service *service = x->service;
    struct api_query query;
    uint8_t id[16];
    if (!query_read(x, &query))
        return;
    struct job *job =
        parse_id(x->captures[0], id) ? sl_map_get(&service->jobs, (struct sl_str){(const char *)id, sizeof id}) : NULL;
    if (!job || !job->revealed) {
        metric_add(METRIC_POLLS, 1, "unknown", NULL, NULL);
        http_reply_empty(x, 404);
        return;
    }
    job->polled_ms = loop_now_ms();
    answer(x, job, &query);
}

/* ---- the end ---- */
void service_stop(struct service *service)
{
    service->stopping = true;
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&service->jobs, e));) {
        struct job *job = e->value;
        fiber_wake_all(&job->waiters);
    }
    if (service->running)
        log_warn("jobs", "jobs are cut short by the shutdown", LOG_U64("jobs", service->running));
    fiber_sleep(0); /* waiters answer */
    fiber_group_cancel(&service->jobs_group);
    while (service->running)
        fiber_sleep(1);
    fiber_group_wait(&service->jobs_group);
}

static void closed(uv_handle_t *handle)
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
    name_memo_free(service->names);
    free(service);
}

void service_free(struct service *service)
{
    uv_close((uv_handle_t *)&service->expiry, closed);
}
