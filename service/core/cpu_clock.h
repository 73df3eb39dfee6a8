/* CPU time of one piece of work, summed over all threads that share it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"

struct cpu_clock {
    uint64_t serial; /* unique: never reused for another clock */
    uint64_t limit_ns;
    _Atomic uint64_t spent_ns; /* as reported by the threads: from time to time, and by cpu_clock_leave */
};

void cpu_clock_init(struct cpu_clock *clock, uint64_t limit_ns);

/* Charges the calling thread's CPU time to the clock until cpu_clock_leave. False if the thread is charged to it already: then
 * do not call cpu_clock_leave. */
bool cpu_clock_enter(struct cpu_clock *clock);
void cpu_clock_leave(struct cpu_clock *clock);

/* True if the limit is passed. For a `struct sl_budget`: cheap enough to be called every few microseconds. Any thread. */
bool cpu_clock_expired(void *clock);

/* Wraps `base`: the CPU time of its pieces is charged to the clock. */
struct cpu_parallel {
    struct sl_parallel parallel;
    const struct sl_parallel *base;
    struct cpu_clock *clock;
};
void cpu_parallel_init(struct cpu_parallel *self, const struct sl_parallel *base, struct cpu_clock *clock);
