/* Runs the steps of a job: reserves memory for them, and repeats them when a cache file turns out to be damaged. */
#include "api/impl.h"
#include "cache/cache.h"
#include "core/sigbus_guard.h"

bool job_set_kind(struct job *job, const struct job_kind *kind, struct sl_str scope)
{
    const char *kept = sl_arena_strndup(&job->arena, scope.data, scope.size);
    job->task = kind->task;
    job->kind = kind;
    job->scope = (struct sl_str){kept, scope.size};
    job->request = sl_arena_zalloc(&job->arena, 1, kind->size);
    if (!kept || !job->request)
        return false;
    if (kind->open)
        kind->open(job, job->request);
    return true;
}

void job_release(struct job *job)
{
    if (job->request && job->kind->release)
        job->kind->release(job->request);
    job->request = NULL;
}

/* ---- steps ---- */

/* Steps that need more bytes than this run as POOL_HEAVY, which never takes the last pool thread: short work of other jobs is not
 * delayed by them. */
enum { LARGE_STEP = 512 << 10 };

enum sl_code job_reserve(struct job *job, uint64_t bytes, struct sl_error *error)
{
    enum sl_code code = memory_reserve(&job->memory, job->arena.used + bytes, error);
    job->is_large = bytes > LARGE_STEP;
    /* any error (SL_OK is 0) but a cancellation means that memory is missing */
    return code && code != SL_CANCELLED ? sl_fail(error, SL_BUSY, "not enough memory for the response") : code;
}

struct job_attempt { /* one call of a step, and its result */
    struct job *job;
    job_step *step;
    enum sl_code code;
    struct sl_error *error;
};

static void work(void *arg)
{
    struct job_attempt *w = arg;
    w->code = w->step(w->job, w->job->request, w->error);
}

/* On the loop a guard catches SIGBUS, which reading a damaged or truncated mapped file raises; pool_run has a guard of its own. */
enum sl_code job_work(struct job *job, unsigned executor, job_step *step, struct sl_error *error)
{
    struct job_attempt w = {.job = job, .step = step, .error = error};
    enum sl_code code = SL_OK;
    /* no arena: the first call since `run` began */
    if (!job->limit.arena)
        answer_limit_begin(&job->limit, &job->arena, job->config->max_response_bytes);
    if (executor != JOB_ON_LOOP)
        code = pool_run(job->is_large ? executor | POOL_HEAVY : executor, work, &w, error);
    else if (!sigbus_guard_run(work, &w))
        code = sl_fail(error, SL_INTERNAL,
                       "a file that the answer needs was truncated while it was read, or its disk failed");
    /* the reservation follows the arena when a step has used more than was reserved */
    if (job->memory.bytes < job->arena.used)
        memory_resize(&job->memory, job->arena.used);
    return code == SL_OK ? w.code : code;
}

/* ---- the steps as two functions that cache_run_reader can repeat ---- */

static enum sl_code prepare(void *arg, struct sl_error *error)
{
    struct job *job = arg;
    return job->kind->prepare(job, job->request, error);
}

/* Restores the state before `prepare`. */
static void undo(void *arg)
{
    struct job *job = arg;
    if (job->kind->undo)
        job->kind->undo(job->request);
    sl_buf_clear(&job->answer);
}

/* Does the look-ups, then writes the answer. Does not write it if `run` has already done so, or has tried and failed (answer.failed,
 * which job_run checks). The limit of the answer starts from zero, as this may be called again. */
static enum sl_code run_and_write(void *arg, struct sl_error *error)
{
    struct job *job = arg;
    const struct job_kind *kind = job->kind;
    job->limit = (struct answer_limit){.arena = NULL};
    enum sl_code code = kind->run(job, job->request, error);
    if (code != SL_OK || !kind->write || job->answer.size || job->answer.failed)
        return code;
    if (kind->memory && (code = job_reserve(job, kind->memory(job->request), error)) != SL_OK)
        return code;
    return job_work(job, kind->executor ? kind->executor(job->request) : POOL_SYMBOLICATE, kind->write, error);
}

/* Restores the state before `run`. */
static void reset(void *arg)
{
    struct job *job = arg;
    if (job->kind->reset)
        job->kind->reset(job->request);
    sl_buf_clear(&job->answer);
}

/* cache_run_reader repeats the steps when a cache file turns out to be damaged; `undo` and `reset` first discard what they have found. */
enum sl_code job_run(struct job *job, struct sl_error *error)
{
    const struct job_kind *kind = job->kind;
    enum sl_code code = kind->prepare ? cache_run_reader(&(struct cache_reader){prepare, undo}, job, error) : SL_OK;
    if (code == SL_OK)
        code = cache_run_reader(&(struct cache_reader){run_and_write, reset}, job, error);
    /* replaces the reservation, an estimate, by what is used */
    memory_resize(&job->memory, job->arena.used + job->answer.capacity);
    if (code == SL_OK && job->answer.failed)
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (kind->finish)
        kind->finish(job, job->request, code, error);
    job_release(job);
    return code;
}

/* ---- commands ---- */

/* Reads a command's request, `local`, and runs the steps. If it cannot be read, the error is what an HTTP client would be answered. */
static enum sl_code read_and_run(struct job *job, const void *local, struct sl_error *error)
{
    struct json_failure failure = json_no_memory;
    if (job->kind->read_local(job, job->request, local, &failure))
        return job_run(job, error);
    return sl_fail(error, failure.status == 503 ? SL_BUSY : SL_MALFORMED, "%s",
                   failure.problem ? failure.problem : "out of memory");
}

/* Runs a job for a command of the program: it is never queued and has no id and no other clients, so of its service only the
 * configuration and the name cache are set. */
enum sl_code job_run_local(const struct job_kind *kind, const struct config *config, struct sl_str scope,
                           const void *local, struct sl_buf *answer, struct sl_error *error)
{
    struct service service = {.config = config, .names = name_cache_new()};
    struct job job = {.service = &service, .config = config, .answer = *answer};
    bool is_open = service.names && job_set_kind(&job, kind, scope.data ? scope : SL_STR("global"));
    enum sl_code code = is_open ? read_and_run(&job, local, error) : sl_fail(error, SL_BUSY, "out of memory");
    job_release(&job);
    *answer = job.answer;
    memory_resize(&job.memory, 0);
    sl_arena_free(&job.arena);
    name_cache_free(service.names);
    return code;
}
