/* Pure work on the thread pool.
 *
 * `pool_run(fn, arg)` runs fn(arg) on a pool thread while the fiber is suspended. `fn` must be a pure function of `arg`:
 * it touches no service state, and what it needs lies in `arg` (usually on the caller's stack; the call waits for the
 * end even if the fiber is cancelled meanwhile). Work below about 50 us should stay on the loop. */
#pragma once

#include "base/error.h"
#include "base/parallel.h"
#include "core/fiber.h"

enum pool_job { POOL_CONVERT, POOL_WALK, POOL_SYMBOLICATE, POOL_JSON, POOL_IO, POOL_COMPRESS, POOL_JOBS };

/* SL_OK when fn ran; SL_UNSUPPORTED "too much work queued" when pool.max_queued is passed; SL_INTERNAL when the job was
 * ended by a SIGBUS: a mapped file has shrunk or cannot be read. */
enum sl_code pool_run(enum pool_job kind, void (*fn)(void *arg), void *arg, struct sl_error *error) SL_SUSPENDS;

/* A `struct sl_parallel` for code running inside pool_run (or on any thread): spreads pieces over idle pool threads, at
 * least one of which is left to others, and works itself. Thread safe. */
const struct sl_parallel *pool_parallel(void);

void pool_set_limit(size_t max_queued);
size_t pool_queued(void);
size_t pool_busy(void);
