/* The pool of workers as the service sees it: opens and closes it, counts its workers. slot.c has the workers themselves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "core/log.h"
#include "worker/impl.h"

/* ---- events of the launcher ---- */
/* The pool's thread: reads the launcher's messages about workers until the launcher closes the socket. */
static void *read_events(void *arg)
{
    struct worker_pool *pool = arg;
    for (;;) {
        struct launcher_message message;
        int fds[WORKER_MAX_DESCRIPTORS];
        size_t count;
        ssize_t size = worker_receive(pool->launcher->socket, &message, sizeof message, fds, &count);
        /* No free descriptors to receive those of a new worker: its socket is closed, so it ends, and LAUNCHER_DIED follows. */
        if (size < 0 && errno == EPROTO) {
            pool_on_start_failed(pool, EMFILE);
            continue;
        }
        if (size != sizeof message)
            break;
        pool_on_launcher_message(pool, &message, count == 2 ? fds[0] : -1, count == 2 ? fds[1] : -1);
    }
    if (!atomic_load(&pool->is_aborted))
        log_error("worker", "the launcher of workers has ended: no file can be converted; restart the service");
    pool_on_launcher_lost(pool);
    return NULL;
}

/* ---- the pool ---- */
/* Sets the settings, cut to what is possible; max_workers stays as it was when the pool was opened. */
static void set_settings(struct worker_pool *pool, const struct worker_settings *settings)
{
    unsigned workers = pool->settings.max_workers;
    pool->settings = *settings;
    pool->settings.max_workers = workers;
    if (pool->settings.warm > workers)
        pool->settings.warm = workers;
    if (pool->settings.max_threads > WORKER_MAX_THREADS)
        pool->settings.max_threads = WORKER_MAX_THREADS;
}

/* Initialises the locks and starts the thread that reads messages of the launcher. The condition variable uses the monotonic clock, so that
 * waits do not depend on changes of the system time. False if the thread cannot be started. */
static bool start_events(struct worker_pool *pool)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return pthread_create(&pool->events, NULL, read_events, pool) == 0;
}

static void free_pool(struct worker_pool *pool)
{
    sl_close(pool->ready);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

struct worker_pool *worker_pool_open(struct worker_launcher *launcher, const struct worker_settings *settings,
                                     struct sl_error *error)
{
    struct worker_pool *pool = calloc(1, sizeof *pool);
    if (pool) {
        unsigned wanted = settings->max_workers ? settings->max_workers : 1;
        pool->settings.max_workers = wanted < LAUNCHER_MAX_WORKERS ? wanted : LAUNCHER_MAX_WORKERS;
        pool->launcher = launcher;
        pool->ready = epoll_create1(EPOLL_CLOEXEC); /* -1: worker_begin returns NULL */
        set_settings(pool, settings);
    }
    if (pool && start_events(pool)) {
        pool_keep_warm(pool);
        return pool;
    }
    if (pool)
        free_pool(pool);
    worker_launcher_end(launcher);
    sl_fail(error, SL_BUSY, "cannot open the pool of workers: out of memory or threads");
    return NULL;
}

void worker_pool_configure(struct worker_pool *pool, const struct worker_settings *settings)
{
    pthread_mutex_lock(&pool->lock);
    set_settings(pool, settings);
    pool->generation++;
    pthread_mutex_unlock(&pool->lock);
    pool_retire_old(pool);
    pool_keep_warm(pool);
}

void worker_pool_abort(struct worker_pool *pool)
{
    atomic_store(&pool->is_aborted, true);
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

void worker_pool_close(struct worker_pool *pool)
{
    worker_pool_abort(pool);
    shutdown(pool->launcher->socket, SHUT_RDWR);
    pthread_join(pool->events, NULL);
    worker_launcher_end(pool->launcher);
    free_pool(pool);
}

struct worker_counts worker_pool_counts(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct worker_counts counts = {.started = pool->started, .launcher = pool->is_lost ? -1 : pool->launcher->pid};
    memcpy(counts.ended, pool->ended, sizeof counts.ended);
    for (unsigned i = 0; i < pool->settings.max_workers; i++) {
        counts.live += pool->slots[i].state != WORKER_NONE;
        counts.idle += pool->slots[i].state == WORKER_IDLE;
    }
    pthread_mutex_unlock(&pool->lock);
    return counts;
}

enum sl_code worker_pool_probe(struct worker_pool *pool, uint32_t *measures, struct sl_error *error)
{
    struct worker_slot *slot;
    enum sl_code code = pool_take_worker(pool, false, &slot, error);
    if (code != SL_OK)
        return code;
    bool good = pool_read_hello(pool, slot), is_dying = false;
    char report[256] = "";
    if (good)
        pool_return_worker(pool, slot, 0); /* 0: it had no job, so its heap has not grown */
    else
        pool_kill_worker(pool, slot, &is_dying, report, sizeof report);
    pthread_mutex_lock(&pool->lock);
    *measures = pool->measures;
    pthread_mutex_unlock(&pool->lock);
    if (good)
        return SL_OK;
    return *measures && !(*measures & MEASURE_FILTER) /* a worker without a filter says hello and ends */
               ? sl_fail(error, SL_UNSUPPORTED, "this system has no seccomp filters: workers cannot be confined")
               : sl_fail(error, SL_BUSY, "a worker process ended while it started, so that workers cannot be used%s%s",
                         *report ? ": " : "", report);
}
