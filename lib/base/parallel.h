/* Runs the independent parts of one conversion on several threads, which the caller provides: lib/ itself creates none.
 *
 * The caller of a long conversion passes a `struct sl_parallel`. lib/ calls `run` with `count` independent work items; `run`
 * returns when all are done. `work(arg, index, worker)` is called once per index, from up to `workers` threads at once. `worker`
 * is in [0, workers) and no two threads have the same number at the same time, so per-worker scratch memory needs no lock.
 * Indexes are started in ascending order. With NULL, or one worker, the calling thread does all the work. */
#pragma once

#include <stddef.h>

struct sl_parallel {
    unsigned workers;
    void (*run)(const struct sl_parallel *self, size_t count, void (*work)(void *arg, size_t index, unsigned worker),
                void *arg);
};

/* Calls work(arg, index, worker) for each index below `count` and returns when all are done; in order on the calling thread if `parallel`
 * is NULL or has one worker, or if `count` is 1. */
void sl_parallel_run(const struct sl_parallel *parallel, size_t count,
                     void (*work)(void *arg, size_t index, unsigned worker), void *arg);

/* Returns how many threads may do the work at once, at least 1. */
static inline unsigned sl_parallel_workers(const struct sl_parallel *parallel)
{
    return parallel && parallel->workers > 1 ? parallel->workers : 1;
}
