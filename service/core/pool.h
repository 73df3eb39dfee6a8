/* Pure work on the thread pool.
 *
 * `pool_run(fn, arg)` runs fn(arg) on a pool thread while the fiber is suspended. `fn` must be a pure function of `arg`:
 * it touches no service state, and what it needs lies in `arg` (usually on the caller's stack; the call waits for the
 * end even if the fiber is cancelled meanwhile). Work below about 50 us should stay on the loop.
 *
 * There are two lanes. Heavy jobs take at most all threads but one, so that a quick one always finds a thread: whoever
 * waits for the disk does not wait for conversions. Admitted work waits for its turn, however long the queue; a limit is
 * asked for once, by pool_accepts, when new work comes in. */
#pragma once

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "core/fiber.h"

/* POOL_CONVERT and POOL_WALK are heavy; others are when POOL_HEAVY is added: work of more than some milliseconds. */
enum pool_job {
    POOL_CONVERT,
    POOL_WALK,
    POOL_SYMBOLICATE,
    POOL_JSON,
    POOL_IO,
    POOL_COMPRESS,
    POOL_JOBS,
    POOL_HEAVY = 8
};

/* Work on a file of that many bytes from one end to the other, such as copying or unpacking it. */
static inline bool pool_is_heavy(uint64_t bytes)
{
    return bytes > 1 << 20;
}

/* SL_OK when fn ran; SL_CANCELLED when the fiber was cancelled while a heavy job waited for its turn (it never began), or when
 * the flag of fiber_set_cancel was raised before fn returned: then it was not run, or whatever it left is not to be used. That
 * flag is not looked at for POOL_IO and POOL_COMPRESS, whose jobs own files and are short.
 * SL_INTERNAL when the job was ended by a SIGBUS: a mapped file has shrunk or cannot be read; SL_BUSY when libuv does not
 * take it. Log lines of the job carry the request id of the fiber. */
enum sl_code pool_run(enum pool_job kind, void (*fn)(void *arg), void *arg, struct sl_error *error) SL_SUSPENDS;

/* Runs a step that can fail as pool_run does: the step's code and error, or why it did not run to its end. */
typedef enum sl_code pool_step(void *arg, struct sl_error *error);
enum sl_code pool_call(enum pool_job kind, pool_step *step, void *arg, struct sl_error *error) SL_SUSPENDS;

/* sl_map_fd and sl_unmap, as quick jobs. */
enum sl_code pool_map_fd(int fd, struct sl_mapping *mapping, struct sl_error *error) SL_SUSPENDS;
void pool_unmap(struct sl_mapping *mapping) SL_SUSPENDS;

/* Runs fn(arg) as a quick job that nobody waits for, then done(arg) on the loop (NULL: nothing). For giving back what is large:
 * the kernel takes tens of milliseconds for a hundred megabytes. Does both at once, in the caller, when libuv does not take the
 * job. pool_close waits for both. */
enum { FREED_ON_LOOP = 4 << 20 }; /* bytes; more is given back so, or by pool_run */
void pool_detach(void (*fn)(void *arg), void (*done)(void *arg), void *arg);

/* Whether new work may come in: fewer than pool.max_queued jobs wait. When not, that is counted and logged. */
bool pool_accepts(void);

/* A `struct sl_parallel` for code running inside pool_run (or on any thread): spreads pieces over idle pool threads, as
 * heavy work, and works itself. Thread safe. */
const struct sl_parallel *pool_parallel(void);

void pool_set_limit(size_t max_queued);
size_t pool_queued(void);
/* Whether jobs have waited longer than that, and no thread that could take them has finished anything meanwhile: heavy jobs, by
 * when one of them or a piece of one was done last; quick ones, by a job that does nothing and was begun by an earlier call. */
bool pool_stalled(uint64_t most_ms);
/* Ends the process when quick jobs find no thread for so long: threads that ignore every limit do not come back. */
void pool_end_if_stalled(uint64_t most_ms);
size_t pool_busy(void);
