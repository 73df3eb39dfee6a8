/* Work on the thread pool.
 *
 * `pool_run(fn, arg)` runs fn(arg) on a pool thread while the fiber is suspended. `fn` uses only what `arg` leads to, and no other
 * state of the service. `arg` is usually on the caller's stack: the call returns after `fn` has, even if the fiber is cancelled
 * meanwhile. Work below about 50 us should stay on the loop.
 *
 * There are three classes of jobs. Heavy jobs take at most all threads but one, so that a quick one always finds a thread:
 * reading from disk does not wait for conversions. Background jobs, which no request waits for, have threads of their own, as
 * many as the others. Jobs are queued without a limit: only pool_can_accept, called when a new request comes in, checks
 * pool.max_queued. */
#pragma once

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "core/fiber.h"

/* POOL_CONVERT and POOL_WALK are always heavy; add POOL_HEAVY to the others if they take more than some milliseconds. Add
 * POOL_BACKGROUND to work that no request waits for: it runs on threads that only such work uses. */
enum pool_job {
    POOL_CONVERT,
    POOL_WALK,
    POOL_SYMBOLICATE,
    POOL_JSON,
    POOL_IO,
    POOL_COMPRESS,
    POOL_JOBS,
    POOL_HEAVY = 8,
    POOL_BACKGROUND = 16,
    POOL_ELSEWHERE = 32, /* the thread only waits for another process: the journal does not note the work */
};

/* True if copying or unpacking this many bytes takes more than some milliseconds, so that it needs POOL_HEAVY. */
static inline bool pool_is_heavy(uint64_t bytes)
{
    return bytes > 1 << 20;
}

/* Runs fn(arg) on the pool. SL_OK when fn ran. SL_CANCELLED when the fiber was cancelled while a heavy or background job waited in the
 * queue (fn did not run), or when the flag of fiber_set_cancel was raised before fn returned (fn did not run, or its result must not be
 * used). POOL_IO and POOL_COMPRESS ignore that flag, as their jobs own files and are short. SL_INTERNAL when a SIGBUS ended the job: a
 * mapped file was truncated or cannot be read. Log lines of the job have the request id of the fiber. */
enum sl_code pool_run(enum pool_job kind, void (*fn)(void *arg), void *arg, struct sl_error *error) SL_SUSPENDS;

/* Runs on the pool, like pool_run, a function that returns a code. Returns its code and error, or those of pool_run if it did not run to
 * its end. */
typedef enum sl_code pool_step(void *arg, struct sl_error *error);
enum sl_code pool_call(enum pool_job kind, pool_step *step, void *arg, struct sl_error *error) SL_SUSPENDS;

/* Call sl_map_fd and sl_unmap on the pool, as quick jobs. */
enum sl_code pool_map_fd(int fd, struct sl_mapping *mapping, struct sl_error *error) SL_SUSPENDS;
void pool_unmap(struct sl_mapping *mapping) SL_SUSPENDS;

/* Runs fn(arg) as a quick job that no fiber waits for, then done(arg) on the loop (NULL: nothing). To free large memory: munmap takes tens
 * of milliseconds for a hundred megabytes. Without memory for the job, calls both at once in the caller. pool_close waits for both. */
enum { MAX_FREED_ON_LOOP = 4 << 20 }; /* bytes; larger memory is freed by pool_run_detached or pool_run */
void pool_run_detached(void (*fn)(void *arg), void (*done)(void *arg), void *arg);

/* True if fewer than pool.max_queued jobs wait for a thread; if not, the caller must reject the new request. False is counted in a metric
 * and, once a minute, logged. */
bool pool_can_accept(void);

/* Returns a `struct sl_parallel` for code on a pool thread or any other: its `run` spreads items over idle pool threads, as heavy work, and
 * the calling thread takes part. Thread safe. */
const struct sl_parallel *pool_parallel(void);

/* Returns the number of threads for background jobs that a pool has besides `pool_threads` threads for other jobs. */
unsigned pool_background_threads(unsigned pool_threads);

/* Sets the number of waiting jobs from which on pool_can_accept is false (pool.max_queued). */
void pool_set_limit(size_t max_queued);
/* Returns the number of quick and heavy jobs that wait for a thread. */
size_t pool_queued(void);
/* True if jobs have waited for longer than `most_ms` and no thread has finished one meanwhile. For heavy jobs the time counts from the last
 * end of a heavy job, or of an item of its parallel work. For quick jobs, each call submits a job that does nothing, unless one waits
 * already; the time is how long that job has waited. */
bool pool_stalled(uint64_t most_ms);
/* Aborts the process when quick jobs have found no thread for `most_ms`: then all threads are stuck, and only a restart helps. */
void pool_end_if_stalled(uint64_t most_ms);
size_t pool_busy(void);
