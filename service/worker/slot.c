/* The workers of a pool: starts them, lends each to one thread at a time, and ends them. Functions whose names end with _locked are
 * called with the pool's lock held. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/file.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "worker/impl.h"

enum {
    TICK_MS = 50,         /* how often waiting threads check for cancellation */
    HELLO_MS = 10 * 1000, /* time limit for a hello: a worker sends it at once, but the machine may be under load */
    DYING_MS = 2 * 1000,  /* time for a worker to exit after it closed its socket; then it is killed */
    DEATH_MS = 10 * 1000, /* time limit for the launcher to report the death of a killed worker */
};

bool pool_is_cancelled(const struct worker_pool *pool)
{
    return atomic_load(&pool->is_aborted) || sl_is_cancelled();
}

static uint64_t now_ms(void)
{
    return clock_mono_ns() / 1000000;
}

/* Releases the pool's lock for TICK_MS, or until pool->changed is signalled. */
static void wait_a_tick_locked(struct worker_pool *pool)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += TICK_MS * 1000000L;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&pool->changed, &pool->lock, &time);
}

/* Returns the number of workers in a state. Call with the lock held. */
static unsigned count_locked(const struct worker_pool *pool, enum worker_state state)
{
    unsigned count = 0;
    for (unsigned i = 0; i < pool->settings.max_workers; i++)
        count += pool->slots[i].state == state;
    return count;
}

/* Returns the slot of the worker with this id; NULL if it has ended. Call with the lock held. */
static struct worker_slot *find_locked(struct worker_pool *pool, uint64_t id)
{
    for (unsigned i = 0; i < pool->settings.max_workers; i++)
        if (pool->slots[i].state != WORKER_NONE && pool->slots[i].id == id)
            return &pool->slots[i];
    return NULL;
}

/* Sends a request to the launcher. False with errno. */
static bool ask_launcher(struct worker_pool *pool, const struct launcher_message *message)
{
    return worker_send(pool->launcher->socket, (struct sl_bytes){(const uint8_t *)message, sizeof *message}, NULL, 0);
}

/* ---- start and end ---- */
/* Asks the launcher to start a worker in a free slot. False if there is none, the launcher has ended, or the pool is aborted. */
static bool start_locked(struct worker_pool *pool)
{
    struct worker_slot *slot = pool->slots;
    while (slot < pool->slots + pool->settings.max_workers && slot->state != WORKER_NONE)
        slot++;
    if (slot == pool->slots + pool->settings.max_workers || pool->is_lost || atomic_load(&pool->is_aborted))
        return false;
    struct launcher_message request = {.what = LAUNCHER_START,
                                       .id = ++pool->next_id,
                                       .threads = pool->settings.max_threads,
                                       .max_memory = pool->settings.max_memory,
                                       .max_mapped = pool->settings.max_mapped};
    *slot = (struct worker_slot){.state = WORKER_STARTING, .id = request.id, .socket = -1, .report = -1};
    slot->generation = pool->generation;
    if (ask_launcher(pool, &request))
        return true;
    slot->state = WORKER_NONE;
    return false;
}

/* Closes the descriptors of a worker that has ended, makes its slot free, and wakes threads that wait for a worker. */
static void free_slot_locked(struct worker_pool *pool, struct worker_slot *slot)
{
    sl_close(slot->socket);
    sl_close(slot->report);
    slot->socket = slot->report = -1;
    slot->state = WORKER_NONE;
    pthread_cond_broadcast(&pool->changed);
}

/* Kills a worker that has no job. Frees its slot at once if it is dead already, else when the launcher reports its death. */
static void retire_locked(struct worker_pool *pool, struct worker_slot *slot)
{
    struct launcher_message request = {.what = LAUNCHER_KILL, .id = slot->id};
    if (slot->is_dead) {
        free_slot_locked(pool, slot);
        return;
    }
    slot->state = WORKER_ENDING;
    sl_close(slot->socket);
    slot->socket = -1;
    ask_launcher(pool, &request);
}

/* Starts workers until settings.warm workers exist, as far as that is possible. */
static void keep_warm_locked(struct worker_pool *pool)
{
    unsigned live = pool->settings.max_workers - count_locked(pool, WORKER_NONE);
    while (live < pool->settings.warm && start_locked(pool))
        live++;
}

void pool_keep_warm(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    keep_warm_locked(pool);
    pthread_mutex_unlock(&pool->lock);
}

void pool_count_end(struct worker_pool *pool, enum worker_end end)
{
    pthread_mutex_lock(&pool->lock);
    pool->ended[end]++;
    metric_add(METRIC_WORKER_DEATHS, 1, worker_end_names[end], NULL, NULL);
    pthread_mutex_unlock(&pool->lock);
}

struct worker_settings pool_get_settings(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct worker_settings settings = pool->settings;
    pthread_mutex_unlock(&pool->lock);
    return settings;
}

/* Ends idle workers that were started with older settings; busy ones end after their job (pool_return_worker). */
void pool_retire_old(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    for (unsigned i = 0; i < pool->settings.max_workers; i++)
        if (pool->slots[i].state == WORKER_IDLE && pool->slots[i].generation != pool->generation)
            retire_locked(pool, &pool->slots[i]);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- messages of the launcher ---- */
/* The launcher has started a worker: makes it available, or ends it if the settings have changed since the request to start it. */
static void on_start_locked(struct worker_pool *pool, struct worker_slot *slot, pid_t pid, int socket, int report)
{
    slot->pid = pid;
    slot->socket = socket;
    slot->report = report;
    slot->state = WORKER_IDLE;
    pool->started++;
    metric_add(METRIC_WORKERS_STARTED, 1, NULL, NULL, NULL);
    if (slot->generation != pool->generation) /* it was started with settings that have changed meanwhile */
        retire_locked(pool, slot);
}

/* Records the death of a worker and frees its slot, unless it is lent to a thread, which frees it later (pool_kill_worker). */
static void on_death_locked(struct worker_pool *pool, struct worker_slot *slot, int status)
{
    slot->is_dead = true;
    slot->status = status;
    if (slot->state == WORKER_BUSY)
        return;
    /* A worker that ended by itself and never had a job is not replaced: the next one may end too, and so on for ever. */
    bool is_replaced = slot->jobs || slot->state == WORKER_ENDING;
    free_slot_locked(pool, slot);
    if (is_replaced)
        keep_warm_locked(pool);
}

void pool_on_launcher_message(struct worker_pool *pool, const struct launcher_message *message, int socket, int report)
{
    pthread_mutex_lock(&pool->lock);
    struct worker_slot *slot = find_locked(pool, message->id);
    if (slot && message->what == LAUNCHER_STARTED) {
        on_start_locked(pool, slot, message->pid, socket, report);
        socket = report = -1; /* the slot has them: not closed below */
    } else if (slot && message->what == LAUNCHER_FAILED) {
        pool->failures++;
        pool->failure = message->number;
        slot->state = WORKER_NONE;
    } else if (slot && message->what == LAUNCHER_DIED) {
        on_death_locked(pool, slot, message->number);
    }
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    sl_close(socket);
    sl_close(report);
}

/* Counts a failed start and wakes waiting threads, which give up if there is no other worker to wait for. */
void pool_on_start_failed(struct worker_pool *pool, int error)
{
    pthread_mutex_lock(&pool->lock);
    pool->failures++;
    pool->failure = error;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

/* All workers have ended with the launcher. Frees their slots, except those of workers that are lent to threads, which free them. */
void pool_on_launcher_lost(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_lost = true;
    for (unsigned i = 0; i < pool->settings.max_workers; i++) {
        struct worker_slot *slot = &pool->slots[i];
        slot->is_dead = true;
        slot->status = -1;
        if (slot->state != WORKER_BUSY && slot->state != WORKER_NONE)
            free_slot_locked(pool, slot);
    }
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- lending ---- */

/* True if a slot must be freed for a thread that waits for a new worker: fewer workers are ending or starting than such threads wait. */
static bool is_place_wanted_locked(const struct worker_pool *pool)
{
    return pool->waiting_for_new > count_locked(pool, WORKER_ENDING) + count_locked(pool, WORKER_STARTING);
}

/* Finds an idle worker; NULL if there is none. With `is_new`: one that has had no job. Otherwise: the one that has had the most jobs, as
 * its heap already has the memory that jobs need; one without jobs is not taken while a thread waits for such a worker. */
static struct worker_slot *find_idle_locked(struct worker_pool *pool, bool is_new)
{
    struct worker_slot *best = NULL;
    for (unsigned i = 0; i < pool->settings.max_workers; i++) {
        struct worker_slot *slot = &pool->slots[i];
        if (slot->state != WORKER_IDLE || (is_new && slot->jobs) || (!is_new && !slot->jobs && pool->waiting_for_new))
            continue;
        if (!best || slot->jobs > best->jobs)
            best = slot;
    }
    return best;
}

/* Ends idle workers that have had a job, if the pool is full and a thread waits for a new one. */
static void retire_for_new_locked(struct worker_pool *pool)
{
    for (unsigned i = 0; i < pool->settings.max_workers && is_place_wanted_locked(pool); i++)
        if (pool->slots[i].state == WORKER_IDLE && pool->slots[i].jobs)
            retire_locked(pool, &pool->slots[i]);
}

/* Waits until an idle worker can be lent, and lends it. Starts workers as needed. SL_BUSY if starting one fails and there is no other
 * worker that could become idle, or the launcher has ended; SL_CANCELLED. */
static enum sl_code wait_for_worker_locked(struct worker_pool *pool, bool is_new, struct worker_slot **slot,
                                           struct sl_error *error)
{
    uint64_t failures = pool->failures;
    for (;;) {
        if (pool_is_cancelled(pool))
            return sl_fail(error, SL_CANCELLED, "cancelled");
        if (pool->is_lost)
            return sl_fail(error, SL_BUSY, "the launcher of workers has ended; restart the service");
        if ((*slot = find_idle_locked(pool, is_new))) {
            (*slot)->state = WORKER_BUSY;
            return SL_OK;
        }
        if (pool->failures != failures && !count_locked(pool, WORKER_BUSY) && !count_locked(pool, WORKER_IDLE))
            return sl_fail(error, SL_BUSY, "cannot start a worker: %s", strerror(pool->failure));
        unsigned starting = count_locked(pool, WORKER_STARTING);
        /* one new worker for each waiting thread, as far as the limit allows */
        while (starting < pool->waiting && pool->failures == failures && start_locked(pool))
            starting++;
        if (is_new)
            retire_for_new_locked(pool); /* if the pool is full: ends an idle worker that has had a job */
        wait_a_tick_locked(pool);
    }
}

enum sl_code pool_take_worker(struct worker_pool *pool, bool is_new, struct worker_slot **slot, struct sl_error *error)
{
    pthread_mutex_lock(&pool->lock);
    pool->waiting++;
    pool->waiting_for_new += is_new;
    enum sl_code code = wait_for_worker_locked(pool, is_new, slot, error);
    pool->waiting--;
    pool->waiting_for_new -= is_new;
    pthread_mutex_unlock(&pool->lock);
    return code;
}

struct worker_slot *pool_try_take_worker(struct worker_pool *pool)
{
    if (pthread_mutex_trylock(&pool->lock) != 0)
        return NULL;
    bool may_take = !pool->waiting && !pool->is_lost && !pool_is_cancelled(pool);
    struct worker_slot *slot = may_take ? find_idle_locked(pool, false) : NULL;
    if (slot && !slot->has_greeted)
        slot = NULL;
    if (slot)
        slot->state = WORKER_BUSY;
    pthread_mutex_unlock(&pool->lock);
    return slot;
}

void pool_return_worker(struct worker_pool *pool, struct worker_slot *slot, uint64_t heap)
{
    pthread_mutex_lock(&pool->lock);
    const struct worker_settings *settings = &pool->settings;
    slot->state = WORKER_IDLE;
    /* A worker with too many jobs or too large a heap is replaced to free its memory, one with old settings to get the new ones. Any
     * worker is replaced if a thread waits for one without jobs and none is starting or ending that would serve this thread. */
    if (slot->is_dead || slot->generation != pool->generation || atomic_load(&pool->is_aborted) ||
        (settings->max_jobs && slot->jobs >= settings->max_jobs) ||
        (settings->max_heap && heap >= settings->max_heap) || is_place_wanted_locked(pool))
        retire_locked(pool, slot);
    if (pool->waiting)
        pthread_cond_broadcast(&pool->changed);
    if (slot->state == WORKER_NONE) /* it was dead already; else it is replaced when its death is reported */
        keep_warm_locked(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* Reads the text that the worker wrote to its report pipe before it died, without waiting for more: the pipe is non-blocking. */
static void read_report(int fd, char *report, size_t size)
{
    size_t at = 0;
    for (ssize_t got; at < size - 1 && (got = read(fd, report + at, size - 1 - at)) > 0;)
        at += (size_t)got;
    report[at] = '\0';
}

/* Waits at most `most_ms` until the launcher has reported the death of a worker that is lent to this thread. True if it has. */
static bool await_death_locked(struct worker_pool *pool, const struct worker_slot *slot, uint64_t most_ms)
{
    for (uint64_t end = now_ms() + most_ms; !slot->is_dead && now_ms() < end;)
        wait_a_tick_locked(pool);
    return slot->is_dead;
}

int pool_kill_worker(struct worker_pool *pool, struct worker_slot *slot, bool *is_dying, char *report, size_t size)
{
    struct launcher_message request = {.what = LAUNCHER_KILL, .id = slot->id};
    pthread_mutex_lock(&pool->lock);
    *is_dying = *is_dying && await_death_locked(pool, slot, DYING_MS);
    if (!slot->is_dead)
        ask_launcher(pool, &request);
    int status = await_death_locked(pool, slot, DEATH_MS) ? slot->status : -1;
    read_report(slot->report, report, size);
    retire_locked(pool, slot); /* if its death is not reported yet, the slot is freed when it is */
    keep_warm_locked(pool);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

bool pool_read_hello(struct worker_pool *pool, struct worker_slot *slot)
{
    if (slot->has_greeted)
        return true;
    uint8_t message[WORKER_MAX_MESSAGE];
    struct pollfd ready = {slot->socket, POLLIN, 0};
    uint32_t measures;
    for (uint64_t end = now_ms() + HELLO_MS; poll(&ready, 1, TICK_MS) == 0;)
        if (pool_is_cancelled(pool) || now_ms() > end)
            return false;
    ssize_t size = worker_receive(slot->socket, message, sizeof message, NULL, NULL);
    if (size <= 0 || !worker_hello_decode((struct sl_bytes){message, (size_t)size}, &measures))
        return false;
    pthread_mutex_lock(&pool->lock);
    if (!pool->measures)
        pool->measures = measures;
    pthread_mutex_unlock(&pool->lock);
    slot->has_greeted = measures & MEASURE_FILTER;
    return slot->has_greeted;
}
