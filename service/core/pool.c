#include "core/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/guard.h"
#include "core/impl.h"
#include "core/loop.h"
#include "core/metrics.h"

static uv_loop_t *loop;
static size_t max_queued = 10000;
static size_t submitted;   /* jobs and helpers given to libuv and not ended; loop thread */
static atomic_size_t busy; /* of them, running */
static const char *const job_names[POOL_JOBS] = {"convert", "walk", "symbolicate", "json", "io", "compress"};

/* ---- parallel teams ----
 * Code on a pool thread cannot submit work to libuv. It opens a team and begins to work itself; the loop, told by an
 * async, lends the team helpers while more than one thread is idle, also later when threads become free. */
struct team {
    atomic_uint references;
    atomic_size_t next; /* index of the next piece */
    size_t count;
    void (*work)(void *arg, size_t index, unsigned worker);
    void *arg;
    unsigned workers;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    unsigned entered; /* helpers that ever entered; their worker numbers */
    unsigned active;  /* helpers at work */
    bool closed, faulted;
    unsigned lent;          /* loop thread: helpers submitted */
    struct team *next_open; /* of `incoming` or `open_teams` */
};

static uv_async_t incoming_async;
static pthread_mutex_t incoming_lock = PTHREAD_MUTEX_INITIALIZER;
static struct team *incoming;   /* under incoming_lock */
static struct team *open_teams; /* loop thread */

static void team_drop(struct team *team)
{
    if (atomic_fetch_sub(&team->references, 1) != 1)
        return;
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->idle);
    free(team);
}

struct share {
    struct team *team;
    unsigned worker;
};

static void work_share(void *arg)
{
    struct share *share = arg;
    struct team *team = share->team;
    for (size_t i; (i = atomic_fetch_add(&team->next, 1)) < team->count;)
        team->work(team->arg, i, share->worker);
}

static void helper_work(uv_work_t *work)
{
    struct team *team = work->data;
    atomic_fetch_add(&busy, 1);
    pthread_mutex_lock(&team->lock);
    bool enter = !team->closed && team->entered + 1 < team->workers;
    struct share share = {team, 0};
    if (enter) {
        share.worker = ++team->entered;
        team->active++;
    }
    pthread_mutex_unlock(&team->lock);
    if (enter) {
        bool whole = guard_run(work_share, &share);
        pthread_mutex_lock(&team->lock);
        team->faulted |= !whole;
        if (--team->active == 0)
            pthread_cond_signal(&team->idle);
        pthread_mutex_unlock(&team->lock);
    }
    atomic_fetch_sub(&busy, 1);
}

static void lend_helpers(void);

static void helper_done(uv_work_t *work, int status)
{
    (void)status;
    team_drop(work->data);
    free(work);
    submitted--;
    lend_helpers();
}

static bool lend_one(struct team *team)
{
    uv_work_t *work = malloc(sizeof *work);
    if (!work)
        return false;
    work->data = team;
    atomic_fetch_add(&team->references, 1);
    team->lent++;
    submitted++;
    if (uv_queue_work(loop, work, helper_work, helper_done) == 0)
        return true;
    atomic_fetch_sub(&team->references, 1); /* never the last: the team is still open */
    submitted--;
    free(work);
    return false;
}

static void lend_helpers(void)
{
    for (struct team **link = &open_teams, *team; (team = *link);) {
        bool wants = team->lent + 1 < team->workers && atomic_load(&team->next) < team->count;
        while (wants && submitted + 1 < loop_pool_threads())
            wants = lend_one(team) && team->lent + 1 < team->workers && atomic_load(&team->next) < team->count;
        if (wants) {
            link = &team->next_open;
            continue;
        }
        *link = team->next_open;
        team_drop(team);
    }
}

static void on_incoming(uv_async_t *handle)
{
    (void)handle;
    pthread_mutex_lock(&incoming_lock);
    struct team *teams = incoming;
    incoming = NULL;
    pthread_mutex_unlock(&incoming_lock);
    while (teams) {
        struct team *next = teams->next_open;
        teams->next_open = open_teams;
        open_teams = teams;
        teams = next;
    }
    lend_helpers();
}

static struct team *team_open(const struct sl_parallel *self, size_t count,
                              void (*work)(void *arg, size_t index, unsigned worker), void *arg)
{
    struct team *team = calloc(1, sizeof *team);
    if (!team)
        return NULL;
    atomic_init(&team->references, 2); /* the caller's and the loop's */
    team->count = count;
    team->work = work;
    team->arg = arg;
    team->workers = self->workers < count ? self->workers : (unsigned)count;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->idle, NULL);
    pthread_mutex_lock(&incoming_lock);
    team->next_open = incoming;
    incoming = team;
    pthread_mutex_unlock(&incoming_lock);
    uv_async_send(&incoming_async);
    return team;
}

static void run_team(const struct sl_parallel *self, size_t count,
                     void (*work)(void *arg, size_t index, unsigned worker), void *arg)
{
    struct team *team = team_open(self, count, work, arg);
    if (!team) {
        for (size_t i = 0; i < count; i++)
            work(arg, i, 0);
        return;
    }
    struct share share = {team, 0};
    bool whole = guard_run(work_share, &share);
    atomic_store(&team->next, team->count);
    pthread_mutex_lock(&team->lock);
    team->closed = true;
    while (team->active > 0)
        pthread_cond_wait(&team->idle, &team->lock);
    whole = whole && !team->faulted;
    pthread_mutex_unlock(&team->lock);
    team_drop(team);
    if (whole)
        return;
    guard_fail();
    abort(); /* a piece is missing and nobody can be told */
}

static struct sl_parallel parallel = {.workers = 1, .run = run_team};

const struct sl_parallel *pool_parallel(void)
{
    return &parallel;
}

/* ---- jobs ---- */
struct job {
    uv_work_t work;
    struct fiber *fiber;
    void (*fn)(void *arg);
    void *arg;
    uint64_t queued_ns, started_ns, ended_ns;
    bool whole, done;
};

static void job_work(uv_work_t *work)
{
    struct job *job = work->data;
    atomic_fetch_add(&busy, 1);
    job->started_ns = uv_hrtime();
    job->whole = guard_run(job->fn, job->arg);
    job->ended_ns = uv_hrtime();
    atomic_fetch_sub(&busy, 1);
}

static void job_done(uv_work_t *work, int status)
{
    (void)status;
    struct job *job = work->data;
    submitted--;
    job->done = true;
    fiber_wake(job->fiber);
    lend_helpers();
}

enum sl_code pool_run(enum pool_job kind, void (*fn)(void *arg), void *arg, struct sl_error *error)
{
    if (pool_queued() >= max_queued)
        return sl_fail(error, SL_UNSUPPORTED, "too much work queued");
    struct job job = {.fiber = fiber_self(), .fn = fn, .arg = arg, .queued_ns = uv_hrtime()};
    job.work.data = &job;
    submitted++;
    if (uv_queue_work(loop, &job.work, job_work, job_done) != 0) {
        submitted--;
        return sl_fail(error, SL_INTERNAL, "the pool does not take work");
    }
    while (!job.done)
        fiber_suspend_uncancellable();
    metric_observe(METRIC_POOL_WAIT_SECONDS, (double)(job.started_ns - job.queued_ns) / 1e9, job_names[kind], NULL,
                   NULL);
    metric_observe(METRIC_POOL_RUN_SECONDS, (double)(job.ended_ns - job.started_ns) / 1e9, job_names[kind], NULL, NULL);
    if (!job.whole)
        return sl_fail(error, SL_INTERNAL, "a mapped file could not be read");
    return SL_OK;
}

void pool_set_limit(size_t limit)
{
    max_queued = limit;
}
size_t pool_busy(void)
{
    return atomic_load(&busy);
}

size_t pool_queued(void)
{
    size_t running = atomic_load(&busy);
    return submitted > running ? submitted - running : 0;
}

void pool_open(uv_loop_t *the_loop)
{
    loop = the_loop;
    parallel.workers = loop_pool_threads() > 2 ? loop_pool_threads() - 1 : 1;
    uv_async_init(loop, &incoming_async, on_incoming); /* also what keeps an idle loop alive */
    metric_set(METRIC_POOL_THREADS, loop_pool_threads(), NULL, NULL, NULL);
}

void pool_close(void)
{
    on_incoming(&incoming_async);
    while (open_teams) {
        struct team *next = open_teams->next_open;
        team_drop(open_teams);
        open_teams = next;
    }
    uv_close((uv_handle_t *)&incoming_async, NULL);
}
