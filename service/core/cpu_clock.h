/* Time of the processor that one piece of work takes, on all of the threads that share it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"

struct cpu_clock {
    uint64_t serial; /* no other clock has it, then or later */
    uint64_t limit_ns;
    _Atomic uint64_t spent_ns; /* what threads have told so far: now and then, and when they leave */
};

void cpu_clock_init(struct cpu_clock *clock, uint64_t limit_ns);

/* The calling thread works for the clock until it leaves. False, and nothing is to be left, when it does so already. */
bool cpu_clock_enter(struct cpu_clock *clock);
void cpu_clock_leave(struct cpu_clock *clock);

/* Whether the limit is passed; for a `struct sl_budget`: cheap enough to be asked every few microseconds. Any thread. */
bool cpu_clock_expired(void *clock);

/* `base`, whose pieces count for the clock. */
struct cpu_parallel {
    struct sl_parallel parallel;
    const struct sl_parallel *base;
    struct cpu_clock *clock;
};
void cpu_parallel_init(struct cpu_parallel *self, const struct sl_parallel *base, struct cpu_clock *clock);
