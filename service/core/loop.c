/* The event loop of the process: its start, its end, and the numbers of threads and connections it allows. */
#include "core/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/cgroup.h"
#include "core/impl.h"
#include "core/log.h"
#include "core/metrics.h"
#include "core/pool.h"

enum { LAG_PERIOD_MS = 1000 };

static uv_loop_t the_loop;
static unsigned pool_threads_now;
static bool stopping;
static uv_timer_t lag_timer;
static uint64_t lag_due_ns;
static _Atomic uint64_t started_ns; /* 0: no loop */

/* Returns the number of cores that the cgroup's CPU quota amounts to, rounded up; 0 if there is no quota. */
static unsigned quota_cores(void)
{
    FILE *file = cgroup_open("cpu.max");
    if (!file)
        return 0;
    unsigned long quota = 0, period = 0;
    int fields = fscanf(file, "%lu %lu", &quota, &period); /* fails for "max 100000": no quota */
    fclose(file);
    return fields == 2 && period > 0 ? (unsigned)((quota + period - 1) / period) : 0;
}

/* Returns the cores that this process may use, by affinity and cgroup quota; between 2 and 256. */
unsigned loop_cores(void)
{
    cpu_set_t set;
    unsigned cores = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 2;
    unsigned quota = quota_cores();
    if (quota > 0 && quota < cores)
        cores = quota;
    return cores < 2 ? 2 : cores > 256 ? 256 : cores;
}

/* Observes how late this timer fires, which is how long callbacks and fibers have kept the loop from it; starts it anew. */
static void on_lag_timer(uv_timer_t *timer)
{
    (void)timer;
    uint64_t now = uv_hrtime();
    metric_observe(METRIC_LOOP_LAG_SECONDS, now > lag_due_ns ? (double)(now - lag_due_ns) / 1e9 : 0, NULL, NULL, NULL);
    lag_due_ns = now + LAG_PERIOD_MS * 1000000ull;
    uv_update_time(&the_loop); /* the timer counts from the loop's time, which is that of the start of this turn */
    uv_timer_start(&lag_timer, on_lag_timer, LAG_PERIOD_MS, 0);
}

void loop_init(unsigned pool_threads)
{
    pool_threads_now = pool_threads ? pool_threads : loop_cores();
    char number[16];
    snprintf(number, sizeof number, "%u", pool_threads_now + pool_background_threads(pool_threads_now));
    setenv("UV_THREADPOOL_SIZE", number, 1); /* libuv reads it when it starts the threads */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* writing beyond RLIMIT_FSIZE fails with EFBIG instead */
    stopping = false;
    if (uv_loop_init(&the_loop) != 0) {
        fputs("symloom: cannot create the event loop\n", stderr);
        abort();
    }
    uv_loop_configure(&the_loop, UV_METRICS_IDLE_TIME); /* for loop_busy_seconds */
    started_ns = uv_hrtime();
    sigbus_guard_open();
    loop_slices_open(&the_loop);
    fibers_open(&the_loop);
    pool_open(&the_loop);
    uv_timer_init(&the_loop, &lag_timer);
    uv_unref((uv_handle_t *)&lag_timer); /* this timer alone does not keep the loop running */
    lag_due_ns = uv_hrtime() + LAG_PERIOD_MS * 1000000ull;
    uv_timer_start(&lag_timer, on_lag_timer, LAG_PERIOD_MS, 0);
}

/* Returns the time since loop_init less the time in which the loop waited for events; 0 without a loop. */
double loop_busy_seconds(void)
{
    uint64_t start = started_ns;
    if (!start)
        return 0;
    uint64_t idle = uv_metrics_idle_time(&the_loop), all = uv_hrtime() - start;
    return all > idle ? (double)(all - idle) / 1e9 : 0;
}

uv_loop_t *loop_get(void)
{
    return &the_loop;
}
unsigned loop_pool_threads(void)
{
    return pool_threads_now;
}

/* Of the descriptors that the process may have (hard limit), leaves 512 for other uses and returns half of the rest, but at most 10000. If
 * there are at most 1024, returns a quarter of them. The other descriptors are for files and downloads. */
unsigned loop_default_connections(void)
{
    struct rlimit files;
    uint64_t descriptors = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_max : 1024;
    uint64_t connections = descriptors > 1024 ? (descriptors - 512) / 2 : descriptors / 4;
    return connections < 10000 ? (unsigned)connections : 10000;
}

/* F_DUPFD returns the lowest free descriptor: if its number is within 5 % of the limit, nearly all are in use. */
bool loop_descriptors_short(void)
{
    struct rlimit files;
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE;
    close(fd);
    return getrlimit(RLIMIT_NOFILE, &files) == 0 && (rlim_t)fd > files.rlim_cur / 20 * 19;
}

/* Runs until loop_stop. uv_run returns earlier only if no handle is active, which does not happen: the async handle of pool_open always
 * is. */
void loop_run(void)
{
    while (!stopping)
        uv_run(&the_loop, UV_RUN_DEFAULT);
    stopping = false;
}

void loop_stop(void)
{
    stopping = true;
    uv_stop(&the_loop);
}

struct main_fiber {
    void (*run)(void *arg);
    void *arg;
};

/* Runs the main fiber's function and ends the loop. */
static void run_main(void *arg)
{
    struct main_fiber *main_fiber = arg;
    main_fiber->run(main_fiber->arg);
    loop_stop();
}

/* Runs `run(arg)` as a fiber, and the loop until that fiber has ended. After a loop_stop by someone else, goes on turning the loop until
 * the fiber has ended, as it uses this function's stack. */
void loop_run_fiber(void (*run)(void *arg), void *arg)
{
    struct fiber_group group;
    struct main_fiber main_fiber = {run, arg};
    fiber_group_init(&group, NULL);
    if (!fiber_start(&group, run_main, &main_fiber)) {
        fputs("symloom: out of memory while starting a fiber\n", stderr);
        abort();
    }
    loop_run();
    while (group.count > 0)
        uv_run(&the_loop, UV_RUN_ONCE);
    stopping = false;
    fiber_group_finish(&group);
}

/* Closes what loop_init has opened, after the last fiber. */
void loop_close(void)
{
    started_ns = 0;
    uv_close((uv_handle_t *)&lag_timer, NULL);
    pool_close();
    fibers_close();
    loop_slices_close();
    /* Each turn runs close callbacks, which may close further handles. Bounded, as a handle that its owner forgot to close would keep the
     * loop alive for ever. */
    for (int turn = 0; turn < 100 && uv_loop_alive(&the_loop); turn++)
        uv_run(&the_loop, UV_RUN_NOWAIT);
    if (uv_loop_close(&the_loop) != 0)
        log_debug("core", "the event loop ended before all its handles were closed");
    fibers_free();
}

uint64_t loop_now_ms(void)
{
    return uv_now(&the_loop);
}

bool loop_minutely(uint64_t *next_ms)
{
    uint64_t now = loop_now_ms();
    bool due = *next_ms <= now;
    if (due)
        *next_ms = now + 60000;
    return due;
}

uint64_t clock_mono_ns(void)
{
    return uv_hrtime();
}

int64_t clock_wall_s(void)
{
    return (int64_t)time(NULL);
}

uint64_t clock_wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}
