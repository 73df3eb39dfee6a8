/* CPU time of one job (e.g. the conversion of a file), summed over all threads that work on it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"

struct cpu_clock {
    uint64_t serial; /* unique: never reused for another clock */
    uint64_t limit_ns;
    /* Sum of all threads: each adds its time now and then (cpu_clock_expired) and at the end (cpu_clock_leave). */
    _Atomic uint64_t spent_ns;
};

void cpu_clock_init(struct cpu_clock *clock, uint64_t limit_ns);

/* Charges the calling thread's CPU time to the clock until cpu_clock_leave. False if the thread is charged to this clock already, by an
 * outer call: then do not call cpu_clock_leave, which the outer caller does. */
bool cpu_clock_enter(struct cpu_clock *clock);
void cpu_clock_leave(struct cpu_clock *clock);

/* True if all threads together have spent more CPU time than the clock's limit. Fits the member `expired` of struct sl_budget: it is cheap
 * enough to be called every few microseconds. Any thread. */
bool cpu_clock_expired(void *clock);

/* A struct sl_parallel that runs work on the threads of `base` and charges the CPU time of each to the clock. */
struct cpu_parallel {
    struct sl_parallel parallel;
    const struct sl_parallel *base;
    struct cpu_clock *clock;
};
void cpu_parallel_init(struct cpu_parallel *self, const struct sl_parallel *base, struct cpu_clock *clock);
