/* The thread pool: queues of jobs by class, helpers for parallel work, and detached jobs. */
#include "core/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/list.h"
#include "base/map.h"
#include "core/crash.h"
#include "core/sigbus_guard.h"
#include "core/impl.h"
#include "core/journal.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"

enum { NICE = 10 };
/* QUICK: jobs of some milliseconds; HEAVY: conversions and stack walks, which may take seconds; BACKGROUND: work that no request waits for,
 * which may take minutes. */
enum job_class { QUICK, HEAVY, BACKGROUND, JOB_CLASSES };

static uv_loop_t *loop;
static size_t max_queued = 10000;
static size_t given[JOB_CLASSES];          /* jobs submitted and not ended; loop thread */
static atomic_size_t running[JOB_CLASSES]; /* jobs that run on a thread now */
static _Atomic uint64_t heavy_done_ns;     /* when a heavy job, or an item of its parallel work, last ended */
static const char *const job_names[POOL_JOBS] = {"convert", "walk", "symbolicate", "json", "io", "compress"};

/* Returns how many threads may run heavy jobs: all but one, which is reserved for quick jobs. A single thread alternates between both
 * classes: the next heavy job is submitted when one has ended, so behind the quick ones that already wait. */
static size_t heavy_threads(void)
{
    return loop_pool_threads() > 1 ? loop_pool_threads() - 1 : 1;
}

/* Background jobs have as many threads of their own as all other jobs have, so that these other jobs never wait for a background job. */
unsigned pool_background_threads(unsigned pool_threads)
{
    return pool_threads;
}

/* ---- parallel teams ----
 * A team does the items of one parallel work. Code on a pool thread cannot submit work to libuv, so it opens a team and begins to
 * work itself; the loop, notified by an async handle, lends the team helpers (pool threads) while more than one thread is idle, also
 * when threads become idle later. */
struct parallel_team {
    atomic_uint references;
    atomic_size_t next; /* index of the next item */
    size_t count;       /* number of items */
    void (*work)(void *arg, size_t index, unsigned worker);
    void *arg;
    unsigned workers; /* most threads at once, with the caller */
    pthread_mutex_t lock;
    pthread_cond_t idle;
    unsigned entered;     /* helpers that have begun to work so far; also the latest one's worker number */
    unsigned active;      /* helpers that are working */
    bool closed, faulted; /* closed: no helper may begin any more; faulted: SIGBUS has ended a helper's work */
    unsigned lent;        /* loop thread: helpers submitted */
    /* copies of the caller's pointers: valid, as the caller waits for its helpers */
    struct sl_str request_id;
    const struct journal_work *journal_work;
    const atomic_bool *cancel;
    struct sl_link link; /* in the list `incoming` or `open_teams` */
};

static uv_async_t incoming_async;
static pthread_mutex_t incoming_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_list incoming;   /* teams; protected by incoming_lock */
static struct sl_list open_teams; /* teams that may get helpers; loop thread */

/* Drops a reference to a team (the state of one parallel work, which several threads share); the last one frees it. */
static void team_drop(struct parallel_team *team)
{
    if (atomic_fetch_sub(&team->references, 1) != 1)
        return;
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->idle);
    free(team);
}

/* Prepares a pool thread, once. Lowers its priority: on a machine short of CPU the loop comes first, as all requests wait for it. */
static void enter_thread(void)
{
    static _Thread_local bool done;
    if (done)
        return;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    pthread_setname_np(pthread_self(), "pool");
    crash_thread();
    done = true;
}

/* Records when a heavy job, or an item of one, ended: heavy_stall_ms tells from it whether heavy jobs still make progress. */
static void note_done(enum job_class job_class, uint64_t now_ns)
{
    if (job_class == HEAVY)
        atomic_store_explicit(&heavy_done_ns, now_ns, memory_order_relaxed);
}

struct team_member {
    struct parallel_team *team;
    unsigned worker;
};

struct team_helper {
    struct pool_work work; /* first: it is cast back */
    struct parallel_team *team;
};

/* Takes items of the team's parallel work and does them until none is left. Run by the thread that has opened the team and by each helper
 * (a pool thread that was idle). */
static void work_share(void *arg)
{
    struct team_member *share = arg;
    struct parallel_team *team = share->team;
    for (size_t i; (i = atomic_fetch_add(&team->next, 1)) < team->count;) {
        team->work(team->arg, i, share->worker);
        note_done(HEAVY, uv_hrtime()); /* tells heavy_stall_ms that heavy work makes progress */
    }
}

/* On a pool thread: helps with the items of a parallel work that another thread (worker 0) has begun. Does nothing if the thread gets to it
 * only when the team is closed, as all items are done. */
static void helper_work(struct pool_work *work)
{
    struct parallel_team *team = ((struct team_helper *)work)->team;
    enter_thread();
    atomic_fetch_add(&running[HEAVY], 1);
    pthread_mutex_lock(&team->lock);
    bool enter = !team->closed && team->entered + 1 < team->workers; /* + 1: the caller, worker 0 */
    struct team_member share = {team, 0};
    if (enter) {
        share.worker = ++team->entered;
        team->active++;
    }
    pthread_mutex_unlock(&team->lock);
    if (enter) {
        log_set_request_id(team->request_id);
        journal_begin(team->journal_work);
        sl_cancel_watch(team->cancel);
        bool whole = sigbus_guard_run(work_share, &share); /* false: SIGBUS has ended it */
        sl_cancel_watch(NULL);
        journal_end();
        log_set_request_id((struct sl_str){NULL, 0});
        pthread_mutex_lock(&team->lock);
        team->faulted |= !whole;
        if (--team->active == 0)
            pthread_cond_signal(&team->idle);
        pthread_mutex_unlock(&team->lock);
    }
    atomic_fetch_sub(&running[HEAVY], 1);
}

static void start_heavy(void);

/* On the loop, when a helper (a thread that was lent to a team's parallel work) has ended: drops its reference to the team and starts heavy
 * jobs that waited for its thread. */
static void helper_done(struct pool_work *work)
{
    team_drop(((struct team_helper *)work)->team);
    free(work);
    given[HEAVY]--;
    start_heavy();
}

/* Submits one more job to the thread pool in which an idle thread helps with the team's parallel work. False without memory. */
static bool lend_one(struct parallel_team *team)
{
    struct team_helper *helper = malloc(sizeof *helper);
    if (!helper)
        return false;
    *helper = (struct team_helper){{.run = helper_work, .done = helper_done}, team};
    atomic_fetch_add(&team->references, 1);
    team->lent++;
    given[HEAVY]++;
    pool_submit(&helper->work);
    return true;
}

/* Lends idle threads to the open teams (parallel works that may get more threads), but keeps one free for quick jobs (heavy_threads). A
 * team that has all its helpers, or no item left to begin, leaves the list. */
static void lend_helpers(void)
{
    for (struct parallel_team *team = SL_LIST_FIRST(&open_teams, struct parallel_team, link), *next; team;
         team = next) {
        next = SL_LIST_NEXT(team, link);
        /* + 1: the thread that has opened the team works too */
        bool wants = team->lent + 1 < team->workers && atomic_load(&team->next) < team->count;
        while (wants && given[HEAVY] < heavy_threads() && given[HEAVY] + given[QUICK] < loop_pool_threads())
            wants = lend_one(team) && team->lent + 1 < team->workers && atomic_load(&team->next) < team->count;
        if (wants)
            continue;
        sl_list_remove(&open_teams, &team->link);
        team_drop(team);
    }
}

/* On the loop: moves the teams (parallel works) that pool threads have opened from `incoming` to `open_teams`, and lends them idle threads
 * as helpers. */
static void on_incoming(uv_async_t *handle)
{
    (void)handle;
    pthread_mutex_lock(&incoming_lock);
    for (struct parallel_team *team; (team = SL_LIST_FIRST(&incoming, struct parallel_team, link));) {
        sl_list_remove(&incoming, &team->link);
        sl_list_prepend(&open_teams, &team->link);
    }
    pthread_mutex_unlock(&incoming_lock);
    start_heavy(); /* ends with lend_helpers */
}

/* Opens a team for the parallel work of the calling thread and notifies the loop, which lends it idle threads as helpers. NULL when out of
 * memory. */
static struct parallel_team *team_open(const struct sl_parallel *self, size_t count,
                                       void (*work)(void *arg, size_t index, unsigned worker), void *arg)
{
    struct parallel_team *team = calloc(1, sizeof *team);
    if (!team)
        return NULL;
    atomic_init(&team->references, 2); /* one of the caller, one of the list */
    team->count = count;
    team->work = work;
    team->arg = arg;
    team->request_id = log_request_id();
    team->journal_work = journal_current();
    team->cancel = sl_cancel_flag;
    team->workers = self->workers < count ? self->workers : (unsigned)count;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->idle, NULL);
    pthread_mutex_lock(&incoming_lock);
    sl_list_prepend(&incoming, &team->link);
    pthread_mutex_unlock(&incoming_lock);
    uv_async_send(&incoming_async);
    return team;
}

/* The function `run` of pool_parallel: calls work(arg, i, worker) for each i < count, in this thread and in helpers, and waits for the
 * helpers. A SIGBUS in one of the threads (a mapped file was truncated) ends the caller's sigbus_guard_run, which fails its job. */
static void run_team(const struct sl_parallel *self, size_t count,
                     void (*work)(void *arg, size_t index, unsigned worker), void *arg)
{
    struct parallel_team *team = team_open(self, count, work, arg);
    if (!team) {
        for (size_t i = 0; i < count; i++)
            work(arg, i, 0);
        return;
    }
    struct team_member share = {team, 0};
    bool whole = sigbus_guard_run(work_share, &share);
    atomic_store(&team->next, team->count); /* after a SIGBUS: helpers begin no further item */
    pthread_mutex_lock(&team->lock);
    team->closed = true;
    while (team->active > 0)
        pthread_cond_wait(&team->idle, &team->lock);
    whole = whole && !team->faulted;
    pthread_mutex_unlock(&team->lock);
    team_drop(team);
    if (whole)
        return;
    sigbus_guard_fail();
    abort(); /* the caller runs without sigbus_guard_run: there is no way to report that an item is missing */
}

static struct sl_parallel parallel = {.workers = 1, .run = run_team};

const struct sl_parallel *pool_parallel(void)
{
    return &parallel;
}

/* ---- jobs ----
 * A job lives on the stack of the fiber that waits for it. Quick jobs are submitted to libuv at once, whose queue is first
 * come, first served. Heavy ones wait here, in stochastic fair queues (McKenney, 1990): each request's jobs in order, the
 * requests round robin, so that one with a thousand modules does not hold up one with a single module. */
struct pool_task {
    struct pool_work work; /* first: it is cast back */
    enum job_class job_class;
    struct fiber *fiber;
    struct sl_str request_id;
    const struct journal_work *journal_work;
    const atomic_bool *cancel; /* NULL = not cancellable */
    void (*fn)(void *arg);
    void *arg;
    struct sl_link link; /* in a list of `flows` or in background_jobs */
    unsigned flow;       /* index in `flows` */
    uint64_t queued_ns, started_ns, ended_ns;
    bool waits;                  /* is in a list of `flows` or in background_jobs */
    bool whole, cancelled, done; /* whole: not ended by SIGBUS */
};

enum { FLOWS = 64 };
static struct sl_list flows[FLOWS];
static uint64_t filled_flows; /* bit set of the flows with jobs */
static unsigned next_flow;
static size_t heavy_queued;

/* Queues a heavy job behind those of its request, in one of the FLOWS lists, chosen by a hash of the request id. */
static void flow_join(struct pool_task *job)
{
    job->flow = (unsigned)(sl_hash(job->request_id.data, job->request_id.size) % FLOWS);
    sl_list_append(&flows[job->flow], &job->link);
    filled_flows |= 1ull << job->flow;
    heavy_queued++;
    job->waits = true;
}

static struct sl_list background_jobs;

/* Queues a background job: first come, first served. */
static void background_join(struct pool_task *job)
{
    sl_list_append(&background_jobs, &job->link);
    job->waits = true;
}

/* Takes a background job out of its queue, to be started or because its fiber was cancelled. */
static void background_leave(struct pool_task *job)
{
    sl_list_remove(&background_jobs, &job->link);
    job->waits = false;
}

/* Takes a heavy job out of its queue, to be started or because its fiber was cancelled. */
static void flow_leave(struct pool_task *job)
{
    sl_list_remove(&flows[job->flow], &job->link);
    if (!flows[job->flow].first)
        filled_flows &= ~(1ull << job->flow);
    heavy_queued--;
    job->waits = false;
}

/* Takes the first job out of the next queue that has jobs, round robin. At least one must have some. */
static struct pool_task *flow_next(void)
{
    /* the lowest bit from next_flow on or, if there is none, the lowest of all */
    uint64_t from_next = filled_flows >> next_flow << next_flow;
    unsigned flow = (unsigned)__builtin_ctzll(from_next ? from_next : filled_flows);
    next_flow = (flow + 1) % FLOWS;
    struct pool_task *job = SL_LIST_FIRST(&flows[flow], struct pool_task, link);
    flow_leave(job);
    return job;
}

/* Runs a job on a pool thread. If its cancel flag was raised while it was queued, the job's function is not called. */
static void job_work(struct pool_work *work)
{
    struct pool_task *job = (struct pool_task *)work;
    enter_thread();
    atomic_fetch_add(&running[job->job_class], 1);
    job->started_ns = uv_hrtime();
    log_set_request_id(job->request_id);
    journal_begin(job->journal_work);
    sl_cancel_watch(job->cancel);
    job->whole = sl_is_cancelled() || sigbus_guard_run(job->fn, job->arg); /* false: SIGBUS has ended it */
    job->cancelled = sl_is_cancelled();
    sl_cancel_watch(NULL);
    journal_end();
    log_set_request_id((struct sl_str){NULL, 0});
    job->ended_ns = uv_hrtime();
    note_done(job->job_class, job->ended_ns);
    atomic_fetch_sub(&running[job->job_class], 1);
}

static void start_background(void);

/* On the loop, after a job: wakes its fiber, and starts jobs that waited for a thread. */
static void job_done(struct pool_work *work)
{
    struct pool_task *job = (struct pool_task *)work;
    given[job->job_class]--; /* its thread is free */
    job->done = true;
    fiber_wake(job->fiber);
    start_heavy();
    start_background();
}

/* Submits a job to the thread pool, and counts it in `given` until it has ended. */
static void start_job(struct pool_task *job)
{
    given[job->job_class]++;
    pool_submit(&job->work);
}

/* Starts queued heavy jobs while threads for them are free; then lends threads that are still idle to teams as helpers. */
static void start_heavy(void)
{
    while (heavy_queued && given[HEAVY] < heavy_threads())
        start_job(flow_next());
    lend_helpers();
}

/* Starts queued background jobs, first come, first served, while one of the threads for background jobs is free. */
static void start_background(void)
{
    struct pool_task *job;
    while (given[BACKGROUND] < pool_background_threads(loop_pool_threads()) &&
           (job = SL_LIST_FIRST(&background_jobs, struct pool_task, link))) {
        background_leave(job);
        start_job(job);
    }
}

/* Waits for the job. False when the fiber was cancelled while the job was in a queue of this file, from which it is taken. A job that was
 * submitted is always waited for, as it uses the fiber's stack. */
static bool job_wait(struct pool_task *job)
{
    while (!job->done) {
        /* queued in this file, or submitted */
        fiber_set_wait_reason(job->waits ? "a pool thread" : "the pool");
        if (!job->waits) {
            fiber_suspend_uncancellable();
        } else if (!fiber_suspend() && job->waits) {
            if (job->job_class == BACKGROUND)
                background_leave(job);
            else
                flow_leave(job);
            return false;
        }
    }
    return true;
}

/* Runs fn(arg) on a pool thread and waits for its end. Quick jobs are submitted at once, heavy and background jobs by start_heavy and
 * start_background when a thread for them is free. SL_CANCELLED: `fn` did not run, or its result must not be used; SL_INTERNAL: SIGBUS has
 * ended it. */
enum sl_code pool_run(enum pool_job kind, void (*fn)(void *arg), void *arg, struct sl_error *error)
{
    enum pool_job what = kind & ~(POOL_HEAVY | POOL_BACKGROUND | POOL_ELSEWHERE);
    const char *name = job_names[what];
    bool heavy = kind & POOL_HEAVY || what == POOL_CONVERT || what == POOL_WALK;
    /* jobs of these kinds are not cancelled: they own files, and are short */
    bool ignores_cancel = what == POOL_IO || what == POOL_COMPRESS;
    struct pool_task job = {.job_class = kind & POOL_BACKGROUND ? BACKGROUND
                                         : heavy                ? HEAVY
                                                                : QUICK,
                            .fiber = fiber_self(),
                            .request_id = fiber_request_id()};
    /* NULL if the job only reads a file or waits for another process: then a crash is not due to the fiber's work */
    job.journal_work = what == POOL_IO || kind & POOL_ELSEWHERE ? NULL : fiber_work();
    job.cancel = ignores_cancel ? NULL : fiber_cancel_flag();
    job.fn = fn;
    job.arg = arg;
    job.queued_ns = uv_hrtime();
    job.work = (struct pool_work){.run = job_work, .done = job_done, .background = job.job_class == BACKGROUND};
    if (job.job_class == BACKGROUND) {
        background_join(&job);
        start_background();
    } else if (heavy) {
        flow_join(&job);
        start_heavy();
    } else {
        start_job(&job);
    }
    if (!job_wait(&job))
        return sl_fail(error, SL_CANCELLED, "cancelled");
    fiber_add_wait_ns(job.started_ns - job.queued_ns);
    metric_observe(METRIC_POOL_WAIT_SECONDS, (double)(job.started_ns - job.queued_ns) / 1e9, name, NULL, NULL);
    metric_observe(METRIC_POOL_RUN_SECONDS, (double)(job.ended_ns - job.started_ns) / 1e9, name, NULL, NULL);
    if (job.cancelled) {
        metric_add(METRIC_POOL_CANCELLED, 1, name, NULL, NULL);
        return sl_fail(error, SL_CANCELLED, "cancelled");
    }
    if (!job.whole)
        return sl_fail(error, SL_INTERNAL, "a file was truncated while it was read, or its disk failed");
    return SL_OK;
}

struct step_run {
    pool_step *step;
    void *arg;
    struct sl_error *error;
    enum sl_code code;
};

static void run_step(void *arg)
{
    struct step_run *s = arg;
    s->code = s->step(s->arg, s->error);
}

enum sl_code pool_call(enum pool_job kind, pool_step *step, void *arg, struct sl_error *error)
{
    struct step_run s = {step, arg, error, SL_OK};
    enum sl_code code = pool_run(kind, run_step, &s, error);
    return code == SL_OK ? s.code : code;
}

struct mapped_file {
    int fd;
    struct sl_mapping *mapping;
};

static enum sl_code map_file(void *arg, struct sl_error *error)
{
    const struct mapped_file *file = arg;
    return sl_map_fd(file->fd, file->mapping, error);
}

enum sl_code pool_map_fd(int fd, struct sl_mapping *mapping, struct sl_error *error)
{
    return pool_call(POOL_IO, map_file, &(struct mapped_file){fd, mapping}, error);
}

static void unmap_file(void *arg)
{
    sl_unmap(arg);
}

/* Unmaps the file on the pool, as this takes long for a large one. */
void pool_unmap(struct sl_mapping *mapping)
{
    pool_run(POOL_IO, unmap_file, mapping, NULL);
}

/* ---- detached work ---- */
struct detached_task {
    struct pool_work work; /* first: it is cast back */
    void (*fn)(void *arg), (*done)(void *arg);
    void *arg;
};

static size_t detached_count; /* jobs of pool_run_detached that have not ended; loop thread */

static void detached_work(struct pool_work *work)
{
    struct detached_task *d = (struct detached_task *)work;
    d->fn(d->arg);
}

/* On the loop, when the job of pool_run_detached has ended: calls the caller's `done`. */
static void detached_done(struct pool_work *work)
{
    struct detached_task *d = (struct detached_task *)work;
    if (d->done)
        d->done(d->arg);
    free(d);
    detached_count--;
}

/* Runs `fn` on the pool and then `done` (may be NULL) on the loop; no fiber waits for them. Without memory, or before the loop exists, both
 * are called at once, in the caller. */
void pool_run_detached(void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
    struct detached_task *d = loop ? malloc(sizeof *d) : NULL;
    if (d) {
        *d = (struct detached_task){{.run = detached_work, .done = detached_done}, fn, done, arg};
        detached_count++;
        pool_submit(&d->work);
        return;
    }
    fn(arg);
    if (done)
        done(arg);
}

/* ---- state ---- */
static uint64_t quick_stall_ms(void);

void pool_end_if_stalled(uint64_t most_ms)
{
    if (quick_stall_ms() <= most_ms)
        return;
    log_error("pool", "all pool threads are stuck; aborting so that the process can be restarted");
    abort();
}

void pool_set_limit(size_t limit)
{
    max_queued = limit;
}

/* When the queue is full, logs at most one line a minute. */
bool pool_can_accept(void)
{
    static uint64_t next_warning_ms;
    if (pool_queued() < max_queued)
        return true;
    metric_add(METRIC_BUSY, 1, "pool", NULL, NULL);
    if (loop_minutely(&next_warning_ms))
        log_warn("pool", "the thread pool queue is full (pool.max_queued); rejecting new requests",
                 LOG_U64("queued", pool_queued()));
    return false;
}

size_t pool_busy(void)
{
    return atomic_load(&running[QUICK]) + atomic_load(&running[HEAVY]);
}

/* Returns the number of jobs of a class that wait for a thread: those submitted and not running, and heavy ones not yet submitted. `given`
 * and `running` are changed by different threads, so their difference may be negative for a moment. */
static size_t class_queued(enum job_class job_class)
{
    size_t at_work = atomic_load(&running[job_class]),
           queued = given[job_class] > at_work ? given[job_class] - at_work : 0;
    return job_class == HEAVY ? queued + heavy_queued : queued;
}

size_t pool_queued(void)
{
    return class_queued(QUICK) + class_queued(HEAVY);
}

static struct { /* an empty job, submitted to find out whether threads still run quick jobs; loop thread */
    uint64_t since_ms;
    bool waits;
} probe;

/* The job of quick_stall_ms: does nothing. */
static void probe_work(void *arg)
{
    (void)arg;
}

/* On the loop: a thread has run the job of quick_stall_ms. */
static void probe_done(void *arg)
{
    (void)arg;
    probe.waits = false;
}

/* Returns how long a job that does nothing has waited for a thread: long if all threads are blocked. Each call submits such a job if none
 * waits, so that the next call tells. */
static uint64_t quick_stall_ms(void)
{
    uint64_t now = loop ? loop_now_ms() : 0;
    if (loop && !probe.waits) {
        probe.waits = true;
        probe.since_ms = now;
        pool_run_detached(probe_work, probe_done, NULL);
    }
    return probe.waits ? now - probe.since_ms : 0;
}

/* Returns how long the oldest queued heavy job has waited, but counts only from the last end of a heavy job or of an item of its parallel
 * work; 0 if none is queued. */
static uint64_t heavy_stall_ms(void)
{
    uint64_t now = uv_hrtime(), oldest = now, done = atomic_load(&heavy_done_ns);
    const struct pool_task *first;
    for (unsigned i = 0; i < FLOWS; i++)
        if ((first = SL_LIST_FIRST(&flows[i], struct pool_task, link)) && first->queued_ns < oldest)
            oldest = first->queued_ns;
    oldest = done > oldest ? done : oldest;
    return now > oldest ? (now - oldest) / 1000000 : 0;
}

/* Returns how long jobs, quick or heavy, have waited while no thread has finished one: the larger of both times. */
static uint64_t stall_ms(void)
{
    uint64_t quick = quick_stall_ms(), heavy = heavy_stall_ms();
    return quick > heavy ? quick : heavy;
}

bool pool_stalled(uint64_t most_ms)
{
    return stall_ms() > most_ms;
}

/* Sets the gauges of the pool to their present values. */
void pool_set_metrics(void)
{
    metric_set(METRIC_POOL_BUSY, (double)pool_busy(), NULL, NULL, NULL);
    metric_set(METRIC_POOL_QUEUED, (double)pool_queued(), NULL, NULL, NULL);
    metric_set(METRIC_POOL_STALLED, (double)stall_ms() / 1e3, NULL, NULL, NULL);
    metric_set(METRIC_WAITING, (double)class_queued(QUICK), "pool_quick", NULL, NULL);
    metric_set(METRIC_WAITING, (double)class_queued(HEAVY), "pool_heavy", NULL, NULL);
}

/* Prepares the pool for this loop. Called by loop_init. */
void pool_open(uv_loop_t *the_loop)
{
    loop = the_loop;
    pool_submit_open(loop);
    parallel.workers = (unsigned)heavy_threads();      /* `parallel` is what pool_parallel returns */
    uv_async_init(loop, &incoming_async, on_incoming); /* also keeps an idle loop alive */
    metric_set(METRIC_POOL_THREADS, loop_pool_threads(), NULL, NULL, NULL);
}

/* Waits for the jobs of pool_run_detached, then frees the teams that are still in lists: all jobs have ended, so no thread uses them. */
void pool_close(void)
{
    while (detached_count > 0)
        uv_run(loop, UV_RUN_ONCE);
    on_incoming(&incoming_async); /* moves the last teams to open_teams */
    for (struct parallel_team *team; (team = SL_LIST_FIRST(&open_teams, struct parallel_team, link));) {
        sl_list_remove(&open_teams, &team->link);
        team_drop(team);
    }
    uv_close((uv_handle_t *)&incoming_async, NULL);
}
