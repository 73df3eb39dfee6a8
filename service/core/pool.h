/* Pure work on the thread pool.
 *
 * `pool_run(fn, arg)` runs fn(arg) on a pool thread while the fiber is suspended. `fn` must be a pure function of `arg`: it
 * touches no service state, and its input lies in `arg` (usually on the caller's stack; the call waits for the end even if the
 * fiber is cancelled meanwhile). Work below about 50 us should stay on the loop.
 *
 * There are three classes of jobs. Heavy jobs take at most all threads but one, so that a quick one always finds a thread:
 * reading from disk does not wait for conversions. Background jobs, which no request waits for, have threads of their own, as
 * many as the others. Admitted work waits in the queue, however long it is; the queue limit is
 * checked only by pool_can_accept, when new work comes in. */
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
    POOL_ELSEWHERE =
        32, /* the thread waits for another process: a death of this one does not blame the work (journal.h) */
};

/* True if a pass over `bytes` of a file, such as copying or unpacking it, is heavy. */
static inline bool pool_is_heavy(uint64_t bytes)
{
    return bytes > 1 << 20;
}

/* Runs fn(arg) on the pool. SL_OK when fn ran. SL_CANCELLED when the fiber was cancelled while a heavy job waited in
 * the queue (it never ran), or when the flag of fiber_set_cancel was raised before fn returned: then it did not run, or
 * its result must not be used. POOL_IO and POOL_COMPRESS ignore that flag, as their jobs own files and are short.
 * SL_INTERNAL when a SIGBUS ended the job: a mapped file was truncated or cannot be read. SL_BUSY when libuv refuses
 * it. Log lines of the job carry the request id of the fiber. */
enum sl_code pool_run(enum pool_job kind, void (*fn)(void *arg), void *arg, struct sl_error *error) SL_SUSPENDS;

/* Runs a step that can fail, like pool_run: returns the step's code and error, or why it did not run to its end. */
typedef enum sl_code pool_step(void *arg, struct sl_error *error);
enum sl_code pool_call(enum pool_job kind, pool_step *step, void *arg, struct sl_error *error) SL_SUSPENDS;

/* Call sl_map_fd and sl_unmap as quick jobs. */
enum sl_code pool_map_fd(int fd, struct sl_mapping *mapping, struct sl_error *error) SL_SUSPENDS;
void pool_unmap(struct sl_mapping *mapping) SL_SUSPENDS;

/* Runs fn(arg) as a quick job that nobody waits for, then done(arg) on the loop (NULL: nothing). To free large memory: munmap
 * takes tens of milliseconds for a hundred megabytes. Calls both at once, in the caller, when libuv refuses the job. pool_close
 * waits for both. */
enum { MAX_FREED_ON_LOOP = 4 << 20 }; /* bytes; larger memory is freed by pool_run_detached or pool_run */
void pool_run_detached(void (*fn)(void *arg), void (*done)(void *arg), void *arg);

/* True if new work may come in: fewer than pool.max_queued jobs wait. False is counted and logged. */
bool pool_can_accept(void);

/* Returns a `struct sl_parallel` for code inside pool_run (or on any thread): spreads pieces over idle pool threads, as heavy
 * work, and takes part itself. Thread safe. */
const struct sl_parallel *pool_parallel(void);

/* Returns the number of threads for background work besides `pool_threads` others. */
unsigned pool_background_threads(unsigned pool_threads);

void pool_set_limit(size_t max_queued);
size_t pool_queued(void);
/* True if jobs have waited longer than `most_ms` and no thread that could take them has finished anything meanwhile. For heavy
 * jobs: since one of them or a piece of one ended last. For quick ones: an empty job that an earlier call queued has not run. */
bool pool_stalled(uint64_t most_ms);
/* Aborts the process when quick jobs find no thread for `most_ms`: threads that ignore every limit do not come back. */
void pool_end_if_stalled(uint64_t most_ms);
size_t pool_busy(void);
