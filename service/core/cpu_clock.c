/* CPU time of one job, summed over all threads that work on it. */
#include "core/cpu_clock.h"

#include <time.h>

/* Reading a thread's CPU clock is a system call, reading the wall clock is not (vDSO). A thread cannot use more CPU time than wall
 * time has passed, so its CPU clock is read at most once per this much wall time. */
static const uint64_t step_ns = 5 * 1000 * 1000;

static _Atomic uint64_t serials;

/* `serial` names the clock to which this thread's CPU time is charged (0 = none); `cpu_ns` and `wall_ns` are the times at which the thread
 * last added to it. A serial, which is never used again, instead of a pointer: a siglongjmp out of the work skips cpu_clock_leave, and then
 * the clock may be gone. */
static _Thread_local struct {
    uint64_t serial, cpu_ns, wall_ns;
} thread_charge;

static uint64_t now_ns(clockid_t id)
{
    struct timespec time;
    clock_gettime(id, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void cpu_clock_init(struct cpu_clock *clock, uint64_t limit_ns)
{
    clock->serial = atomic_fetch_add(&serials, 1) + 1;
    clock->limit_ns = limit_ns;
    atomic_init(&clock->spent_ns, 0);
}

bool cpu_clock_enter(struct cpu_clock *clock)
{
    /* each clock has a serial number of its own; 0: no clock */
    if (thread_charge.serial == clock->serial)
        return false;
    thread_charge.serial = clock->serial;
    thread_charge.cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    thread_charge.wall_ns = now_ns(CLOCK_MONOTONIC);
    return true;
}

/* Adds to the clock the CPU time that this thread has used since it last added some. */
static void cpu_clock_report(struct cpu_clock *clock)
{
    uint64_t cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    atomic_fetch_add_explicit(&clock->spent_ns, cpu_ns - thread_charge.cpu_ns, memory_order_relaxed);
    thread_charge.cpu_ns = cpu_ns;
}

void cpu_clock_leave(struct cpu_clock *clock)
{
    cpu_clock_report(clock);
    thread_charge.serial = 0;
}

/* First adds the calling thread's CPU time, at most once per step_ns, and only if it is charged to this clock. Then compares the sum of all
 * threads with the limit. */
bool cpu_clock_expired(void *arg)
{
    struct cpu_clock *clock = arg;
    uint64_t wall_ns = now_ns(CLOCK_MONOTONIC);
    if (thread_charge.serial == clock->serial && wall_ns - thread_charge.wall_ns >= step_ns) {
        thread_charge.wall_ns = wall_ns;
        cpu_clock_report(clock);
    }
    return atomic_load_explicit(&clock->spent_ns, memory_order_relaxed) > clock->limit_ns;
}

struct cpu_timed_work {
    struct cpu_clock *clock;
    void (*work)(void *arg, size_t index, unsigned worker);
    void *arg;
};

/* Does one item of parallel work, charging its CPU time to the clock. A thread that is charged to the clock already, as it runs the item
 * inside of other work, is not charged twice. */
static void do_item(void *arg, size_t index, unsigned worker)
{
    const struct cpu_timed_work *timed = arg;
    bool entered = cpu_clock_enter(timed->clock);
    timed->work(timed->arg, index, worker);
    if (entered)
        cpu_clock_leave(timed->clock);
}

/* The function `run` of a struct cpu_parallel: lets the threads of `base` call `work` for each of the `count` items, and charges their CPU
 * time to the clock. */
static void run_items(const struct sl_parallel *parallel, size_t count,
                      void (*work)(void *arg, size_t index, unsigned worker), void *arg)
{
    const struct cpu_parallel *self = (const struct cpu_parallel *)parallel;
    struct cpu_timed_work timed = {self->clock, work, arg};
    self->base->run(self->base, count, do_item, &timed);
}

void cpu_parallel_init(struct cpu_parallel *self, const struct sl_parallel *base, struct cpu_clock *clock)
{
    *self = (struct cpu_parallel){.parallel = {base->workers, run_items}, .base = base, .clock = clock};
}
