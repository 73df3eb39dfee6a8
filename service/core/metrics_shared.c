/* Metrics of several processes in shared memory: one store for each process, and one for their parent. */
#include "core/metrics_shared.h"

#include <stdio.h>
#include <sys/mman.h>

#include "core/loop.h"
#include "core/metrics_impl.h"

enum { STORE_BYTES = 16 << 20, MAX_TEXT = 4096 };

/* Shared memory of all processes, mapped by the parent before it forks, so at the same address in each. */
struct shared {
    atomic_uint merge_count; /* incremented before and after the counts of a dead process are merged: odd meanwhile */
    unsigned deaths;         /* processes that have died */
    int64_t last_s;          /* time and reason of the latest death */
    char last_why[sizeof((struct metrics_deaths *)0)->last_why];
};

static struct {
    struct shared *common;
    char *stores; /* STORE_BYTES for each process, then for the parent; NULL: metrics are not shared */
    size_t processes;
} all;

static struct metrics_store *store_at(size_t index)
{
    return (struct metrics_store *)(all.stores + index * STORE_BYTES);
}

/* Maps a store for each of the processes and one for the parent, which calls this. False when out of memory: then metrics are not shared.
 * Pages of the mapping that are never used take no memory. Core dumps leave it out (MADV_DONTDUMP): it would make them large. */
bool metrics_map_shared(size_t processes)
{
    size_t size = STORE_BYTES * (processes + 1);
    void *common =
        mmap(NULL, sizeof *all.common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *stores = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (common == MAP_FAILED || stores == MAP_FAILED)
        return false;
    madvise(stores, size, MADV_DONTDUMP);
    all.common = common;
    all.stores = stores;
    all.processes = processes;
    metrics_set_process(processes); /* the last store is the parent's */
    return true;
}

/* A new mapping is all zeros, which is an empty store. Series are allocated behind the struct at its beginning, aligned to 16 bytes. */
void metrics_set_process(size_t index)
{
    if (!all.stores)
        return;
    struct metrics_store *store = store_at(index);
    store->size = STORE_BYTES;
    atomic_store(&store->used, (sizeof *store + 15) & ~(size_t)15);
    metrics_own = store;
}

/* ---- the store of a dead process ---- */
/* True if `size` bytes at a pointer of a store lie within the store, aligned to 16 bytes like all that was allocated from it. The pointer
 * may have any value: a process that crashed may have overwritten it. */
static bool is_inside(const struct metrics_store *store, const void *at, size_t size)
{
    uintptr_t offset = (uintptr_t)at - (uintptr_t)store;
    return offset < STORE_BYTES && size <= STORE_BYTES - offset && offset % 16 == 0;
}

/* True if the pointer is to a text within the store that ends with a NUL after less than MAX_TEXT bytes. */
static bool is_text(const struct metrics_store *store, const char *text)
{
    size_t left = is_inside(store, text, 1) ? STORE_BYTES - (size_t)(text - (const char *)store) : 0;
    return left && memchr(text, '\0', left < MAX_TEXT ? left : MAX_TEXT);
}

bool metrics_are_readable(const struct metrics_store *store, const void *slots)
{
    return is_inside(store, slots, METRIC_SLOTS * sizeof(struct metric_series *));
}

/* Copies a series out of another process's store. False if one of its pointers does not lead into the store, as a process that crashed may
 * have overwritten it. */
bool metrics_copy(const struct metrics_store *store, enum metric metric, const struct metric_series *series,
                  struct metric_series *copy)
{
    if (!is_inside(store, series, sizeof *series))
        return false;
    memcpy(copy, series, sizeof *copy);
    if (copy->buckets != metrics_table[metric].buckets || !is_text(store, copy->labels))
        return false;
    for (int i = 0; i < METRIC_LABELS; i++)
        if (copy->values[i] && !is_text(store, copy->values[i]))
            return false;
    return true;
}

/* Adds the double `*from` to the double `*to`; both are stored as their bits. Not atomic as a whole: only the parent changes its store. */
static void add_double(atomic_ullong *to, const atomic_ullong *from)
{
    double sum = metric_double(atomic_load(to)) + metric_double(atomic_load(from));
    atomic_store(to, metric_bits(sum));
}

/* Adds a series of a dead process to the series with the same labels of the parent, so that counters never decrease. Without memory for
 * that series its values are lost. */
static void merge_series(enum metric metric, const struct metric_series *series)
{
    struct metric_series *to = metrics_series_in(metrics_own, metric, (const char *const *)series->values);
    if (!to)
        return;
    if (metrics_table[metric].kind == METRIC_COUNTER)
        atomic_fetch_add(&to->value, atomic_load(&series->value));
    else /* the sum of a histogram */
        add_double(&to->value, &series->value);
    for (unsigned i = 0; to->buckets && i <= to->buckets->count; i++)
        atomic_fetch_add(&to->bucket[i], atomic_load(&series->bucket[i]));
}

/* Adds all series of one metric of a dead process to those of the parent; skips damaged ones. */
static void merge_metric(struct metrics_store *store, enum metric metric)
{
    _Atomic(struct metric_series *) *slots = store->slots[metric];
    if (!slots || !metrics_are_readable(store, slots))
        return;
    for (size_t i = 0; i < METRIC_SLOTS; i++) {
        const struct metric_series *series = atomic_load_explicit(&slots[i], memory_order_acquire);
        struct metric_series copy;
        if (series && metrics_copy(store, metric, series, &copy))
            merge_series(metric, &copy);
    }
}

void metrics_merge_dead_process(size_t index, const char *why)
{
    if (!all.stores)
        return;
    struct metrics_store *store = store_at(index);
    /* odd until all is added: a reader sees by it that it must read again (metrics_merge_count) */
    atomic_fetch_add(&all.common->merge_count, 1);
    for (int metric = 0; metric < METRIC_COUNT; metric++)
        if (metrics_table[metric].kind != METRIC_GAUGE)
            merge_metric(store, (enum metric)metric);
    add_double(&metrics_own->cpu_seconds, &store->cpu_seconds);
    add_double(&metrics_own->busy_seconds, &store->busy_seconds);
    if (madvise(store, STORE_BYTES, MADV_REMOVE) != 0) /* frees the pages, which then read as zeros: an empty store */
        memset(store, 0, STORE_BYTES);
    metric_add(METRIC_PROCESS_DEATHS, 1, NULL, NULL, NULL);
    all.common->deaths++;
    all.common->last_s = clock_wall_s();
    snprintf(all.common->last_why, sizeof all.common->last_why, "%s", why);
    atomic_fetch_add(&all.common->merge_count, 1);
}

/* ---- in any process ---- */

/* Tells how many service processes have died, and when and why the last one did. False if none has, or if metrics are not shared. */
bool metrics_get_deaths(struct metrics_deaths *deaths)
{
    if (!all.stores || !all.common->deaths)
        return false;
    *deaths = (struct metrics_deaths){.count = all.common->deaths, .last_s = all.common->last_s};
    memcpy(deaths->last_why, all.common->last_why, sizeof deaths->last_why - 1); /* - 1: the last byte stays NUL */
    return true;
}

unsigned metrics_merge_count(void)
{
    return all.stores ? atomic_load(&all.common->merge_count) : 0;
}

/* Writes the counters, histograms, CPU time and busy time in the store of one process. */
static void write_store(struct metrics_store *store, struct sl_buf *out, bool open_metrics)
{
    metrics_write_counters(store, out, open_metrics);
    metrics_write_times(out, open_metrics, metric_double(atomic_load(&store->cpu_seconds)),
                        metric_double(atomic_load(&store->busy_seconds)));
}

void metrics_write_others(struct sl_buf *out, bool open_metrics, const bool *silent)
{
    for (size_t i = 0; all.stores && i <= all.processes; i++)
        if (i == all.processes || silent[i])
            write_store(store_at(i), out, open_metrics);
}
