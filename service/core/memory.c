/* The memory budget that all requests share, and the return of free memory to the kernel. */
#include "core/memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/list.h"
#include "core/cgroup.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "core/loop_slice.h"

enum {
    SMALL = 64 * 1024, /* reservations up to this size do not wait behind larger ones */
    SPARE_PART = 16,   /* small reservations may exceed the budget by 1/16 */
    MIN_MMAP_THRESHOLD = 128 << 10,
    MAX_MMAP_THRESHOLD = 2 << 20,
    TRIM_FACTOR = 8, /* M_TRIM_THRESHOLD, in multiples of M_MMAP_THRESHOLD */
    TRIM_STEP_MS = 1000,
    TRIM_EARLIEST = 10, /* in steps of TRIM_STEP_MS */
    TRIM_LATEST = 60,
    TRIM_FROM = 32 << 20, /* trim if more bytes than this are resident but not allocated */
};

struct memory_waiter {
    struct sl_link link;
    struct fiber_wait_list fiber; /* the fiber that waits */
    uint64_t need;
    bool granted;
};

static uint64_t budget = UINT64_MAX, used, wait_ms = 5000;
static _Atomic uint64_t held_by_pool;
static struct sl_list waiters;
static size_t waiting;

/* Returns M_MMAP_THRESHOLD: larger allocations are mapped, so that free() returns them to the kernel at once; smaller ones fragment the
 * heap. So the smaller the memory budget `bytes`, the lower the threshold. */
static int mmap_threshold(uint64_t bytes)
{
    uint64_t part = bytes / 1024;
    return part < MIN_MMAP_THRESHOLD ? MIN_MMAP_THRESHOLD : part > MAX_MMAP_THRESHOLD ? MAX_MMAP_THRESHOLD : (int)part;
}

void memory_configure(uint64_t bytes, uint64_t ms)
{
    budget = bytes;
    wait_ms = ms;
    mallopt(M_MMAP_THRESHOLD, mmap_threshold(bytes));
    mallopt(M_TRIM_THRESHOLD, TRIM_FACTOR * mmap_threshold(bytes));
}

uint64_t memory_of_process(void)
{
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long limit;
    FILE *file = cgroup_open("memory.max");
    if (file && fscanf(file, "%llu", &limit) == 1 && limit < bytes) /* fails for "max": no limit */
        bytes = limit;
    if (file)
        fclose(file);
    return bytes;
}

uint64_t memory_default_budget(void)
{
    return memory_of_process() / 2;
}

bool memory_fits(uint64_t bytes)
{
    return bytes <= budget;
}

bool memory_is_short(void)
{
    return memory_used() > budget / 2;
}

uint64_t memory_used(void)
{
    return used + atomic_load_explicit(&held_by_pool, memory_order_relaxed);
}

void memory_charge(uint64_t *held, uint64_t bytes)
{
    atomic_fetch_add_explicit(&held_by_pool, bytes - *held, memory_order_relaxed);
    *held = bytes;
}

uint64_t memory_limit(void)
{
    return budget;
}

/* True if `need` more bytes fit into the budget now. Small reservations may exceed it by 1/16, so that short requests go on while large
 * ones wait. */
static bool fits_now(uint64_t need)
{
    /* a budget beyond UINT64_MAX / 2 means no limit; adding 1/16 could overflow */
    uint64_t most = need > SMALL || budget > UINT64_MAX / 2 ? budget : budget + budget / SPARE_PART;
    uint64_t now = memory_used();
    return now <= most && need <= most - now;
}

/* Grants memory to the fibers that wait for it, first come, first served. Stops at the first whose need does not fit now, so that smaller
 * needs do not overtake it for ever. */
static void grant(void)
{
    for (struct memory_waiter *w; (w = SL_LIST_FIRST(&waiters, struct memory_waiter, link)) && fits_now(w->need);) {
        sl_list_remove(&waiters, &w->link);
        used += w->need;
        w->granted = true;
        fiber_wake_all(&w->fiber);
    }
}

/* A small reservation, or any if no one waits, is granted at once if it fits; else the fiber waits for grant(). If the fiber is granted
 * memory and cancelled before it runs again, it gives the memory back. */
enum sl_code memory_reserve(struct memory_reservation *share, uint64_t bytes, struct sl_error *error)
{
    struct memory_waiter w = {.need = bytes > share->bytes ? bytes - share->bytes : 0};
    if (!memory_fits(bytes))
        return sl_fail(error, SL_UNSUPPORTED, "the request needs more memory than memory.request_budget allows");
    if (fits_now(w.need) && (!waiters.first || w.need <= SMALL)) {
        used += w.need;
        share->bytes += w.need;
        return SL_OK;
    }
    sl_list_append(&waiters, &w.link);
    metric_set(METRIC_WAITING, (double)++waiting, "memory", NULL, NULL);
    uint64_t now = loop_now_ms(), end = now + wait_ms, begin_ns = clock_mono_ns();
    enum fiber_wait waited = FIBER_WOKEN;
    while (!w.granted && waited == FIBER_WOKEN && now < end) {
        fiber_set_wait_reason("memory");
        waited = fiber_wait_on(&w.fiber, end - now);
        now = loop_now_ms();
    }
    metric_set(METRIC_WAITING, (double)--waiting, "memory", NULL, NULL);
    fiber_add_wait_ns(clock_mono_ns() - begin_ns);
    if (!w.granted) {
        sl_list_remove(&waiters, &w.link);
        grant(); /* this waiter may have kept smaller ones behind it from memory that is free */
    }
    if (w.granted && !fiber_cancelled()) {
        share->bytes += w.need;
        return SL_OK;
    }
    if (w.granted) {
        used -= w.need;
        grant();
    }
    if (fiber_cancelled())
        return SL_CANCELLED;
    metric_add(METRIC_BUSY, 1, "memory", NULL, NULL);
    return sl_fail(error, SL_BUSY, "not enough memory for this request");
}

void memory_resize(struct memory_reservation *share, uint64_t bytes)
{
    used = used - share->bytes + bytes;
    share->bytes = bytes;
    if (waiters.first)
        grant();
}

void memory_transfer(struct memory_reservation *to, struct memory_reservation *from)
{
    to->bytes += from->bytes;
    from->bytes = 0;
}

/* ---- free memory that malloc retains ---- */
/* Returns the process's resident bytes without those of mapped files, which malloc does not hold; 0 if /proc cannot be read. */
static uint64_t resident(void)
{
    unsigned long long all, pages, shared, size = (unsigned long long)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    int fields = fscanf(file, "%llu %llu %llu", &all, &pages, &shared);
    fclose(file);
    return fields == 3 && pages > shared ? (pages - shared) * size : 0;
}

/* On a pool thread: returns free memory to the kernel if there is enough to be worth the time. Free are the resident bytes that are
 * allocated neither from the heap (uordblks) nor by mmap (hblkhd). */
static void trim(void *unused)
{
    (void)unused;
    struct mallinfo2 info = mallinfo2();
    if (resident() > info.uordblks + info.hblkhd + TRIM_FROM)
        malloc_trim(0);
}

/* malloc_trim blocks allocations of all threads, so it runs when the loop is not busy: 10 s after the last time or later, but after 60 s in
 * any case. */
void memory_trim_repeatedly(void *unused)
{
    for (unsigned steps = 1; fiber_sleep(TRIM_STEP_MS); steps++)
        if (steps >= TRIM_LATEST || (steps >= TRIM_EARLIEST && loop_is_calm())) {
            pool_run(POOL_IO, trim, unused, NULL);
            steps = 0;
        }
}
