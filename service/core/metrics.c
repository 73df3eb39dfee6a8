/* Metrics: counts in series with label values, passes them on to StatsD, and writes them as text for Prometheus. */
#include "core/metrics.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "core/build.h"
#include "core/fiber.h"
#include "core/impl.h"
#include "core/loop.h"
#include "core/memory.h"
#include "core/metrics_impl.h"

/* MAX_SERIES: the most series of one metric, as series are never freed; values with further labels are counted in one series whose labels
 * are "overflow". */
enum { MAX_SERIES = 500, SLOTS = METRIC_SLOTS, MAX_LABELS = METRIC_LABELS };

#define table metrics_table
#define own   metrics_own

static struct metrics_store first;
struct metrics_store *metrics_own = &first;

enum { MAX_KEPT = 1000 };
/* Values of a histogram observed since the last push to StatsD, which gets the values instead of bucket counts. */
struct metric_series_cache {
    atomic_uint seen;               /* number of values observed */
    _Atomic float values[MAX_KEPT]; /* the first MAX_KEPT of these values */
};
static atomic_bool keeps_values, has_mozilla_names;

static pthread_mutex_t insert_lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the FNV-1a hash of the label values. The byte 0xFF, which UTF-8 does not have, follows each of them, so that ("a", "b") and
 * ("ab", "") differ. */
static uint64_t hash_labels(const char *const values[MAX_LABELS])
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < MAX_LABELS; i++) {
        for (const char *at = values[i] ? values[i] : ""; *at; at++)
            hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
        hash = (hash ^ 0xFF) * 0x100000001b3u;
    }
    return hash;
}

/* Allocates zeroed memory for a store. A store in shared memory (size not 0) hands out its own memory from the start to the end, and never
 * takes any back. When that is used up, and for other stores, calls calloc. */
static void *store_alloc(struct metrics_store *store, size_t size)
{
    size_t most = store->size, padded = (size + 15) & ~(size_t)15;
    size_t at = most ? atomic_fetch_add(&store->used, padded) : 0;
    return most && at + padded <= most ? (char *)store + at : calloc(1, size);
}

/* Returns a copy of the text in the store, with a NUL behind it (the memory is zeroed). NULL when out of memory, or if `text.data` is
 * NULL. */
static char *store_text(struct metrics_store *store, struct sl_str text)
{
    char *copy = text.data ? store_alloc(store, text.size + 1) : NULL;
    if (copy)
        memcpy(copy, text.data, text.size);
    return copy;
}

/* Returns the labels in Prometheus' text format, `a="x",b="y"`, escaped; NULL when out of memory. Called once per series. */
static char *format_labels(struct metrics_store *store, enum metric metric, const char *const values[MAX_LABELS])
{
    struct sl_buf text = {0};
    for (int i = 0; i < MAX_LABELS && table[metric].labels[i]; i++) {
        sl_buf_printf(&text, "%s%s=\"", i ? "," : "", table[metric].labels[i]);
        for (const char *at = values[i] ? values[i] : ""; *at; at++) {
            if (*at == '\\' || *at == '"')
                sl_buf_u8(&text, '\\');
            if (*at == '\n')
                sl_buf_cstr(&text, "\\n");
            else
                sl_buf_u8(&text, (uint8_t)*at);
        }
        sl_buf_u8(&text, '"');
    }
    sl_buf_u8(&text, 0);
    char *labels = text.failed ? NULL : store_text(store, sl_buf_view(&text));
    sl_buf_free(&text);
    return labels;
}

/* Finds a series in a hash table (open addressing) by the hash of its labels; NULL if there is none. `*at` is its slot, or the free one for
 * it. Labels are not compared, as 64 bits do not collide among a few hundred series. Takes no lock: a series is never removed, and is put
 * into its slot when it is complete. The table never gets full: MAX_SERIES is less than SLOTS. */
static struct metric_series *metrics_find(_Atomic(struct metric_series *) *metric_slots, uint64_t hash, size_t *at)
{
    for (*at = hash % SLOTS;; *at = (*at + 1) % SLOTS) {
        struct metric_series *series = atomic_load_explicit(&metric_slots[*at], memory_order_acquire);
        if (!series || series->hash == hash)
            return series;
    }
}

/* Frees a series that could not be completed. Not for shared stores, whose memory is not from malloc. */
static void series_free(struct metric_series *series)
{
    for (int i = 0; i < MAX_LABELS; i++)
        free(series->values[i]);
    free(series->labels);
    free(series);
}

/* Returns the series with these labels, added if necessary; NULL when out of memory. The caller holds insert_lock. If the metric has
 * MAX_SERIES series already, returns the one whose labels are all "overflow". The incomplete series of a shared store (size not 0) is not
 * freed: its memory ends with the store. */
static struct metric_series *insert(struct metrics_store *store, enum metric metric, uint64_t hash,
                                    const char *const values[MAX_LABELS])
{
    _Atomic(struct metric_series *) *slots = store->slots[metric];
    if (!slots)
        store->slots[metric] = slots = store_alloc(store, SLOTS * sizeof *slots);
    if (!slots)
        return NULL;
    if (store->counts[metric] >= MAX_SERIES) {
        static const char *const overflow[MAX_LABELS] = {"overflow", "overflow", "overflow", "overflow"};
        values = overflow;
        hash = hash_labels(values);
    }
    size_t at;
    struct metric_series *series = metrics_find(slots, hash, &at);
    if (series)
        return series;
    series = store_alloc(store, sizeof *series);
    if (!series)
        return NULL;
    series->hash = hash;
    series->buckets = table[metric].buckets;
    series->labels = format_labels(store, metric, values);
    bool whole = series->labels != NULL;
    for (int i = 0; whole && i < MAX_LABELS && values[i]; i++)
        whole = (series->values[i] = store_text(store, sl_str(values[i]))) != NULL;
    if (!whole && !store->size)
        series_free(series);
    if (!whole)
        return NULL;
    store->counts[metric]++;
    atomic_store_explicit(&slots[at], series, memory_order_release);
    return series;
}

/* Looks for the series without the lock first. `insert` looks again under the lock, as another thread may have added the series
 * meanwhile. */
struct metric_series *metrics_series_in(struct metrics_store *store, enum metric metric,
                                        const char *const values[MAX_LABELS])
{
    if (metric >= METRIC_MOZILLA_NAMES && !atomic_load_explicit(&has_mozilla_names, memory_order_relaxed))
        return NULL;
    uint64_t hash = hash_labels(values);
    size_t at;
    struct metric_series *series = store->slots[metric] ? metrics_find(store->slots[metric], hash, &at) : NULL;
    if (series)
        return series;
    pthread_mutex_lock(&insert_lock);
    series = insert(store, metric, hash, values);
    pthread_mutex_unlock(&insert_lock);
    return series;
}

static struct metric_series *find_series(enum metric metric, const char *const values[MAX_LABELS])
{
    return metrics_series_in(own, metric, values);
}

struct metric_series *metric_series(enum metric metric, const char *a, const char *b, const char *c)
{
    return find_series(metric, (const char *const[MAX_LABELS]){a, b, c});
}

void metric_series_add(struct metric_series *series, uint64_t n)
{
    if (series)
        atomic_fetch_add_explicit(&series->value, n, memory_order_relaxed);
}

void metric_series_set(struct metric_series *series, double value)
{
    if (series)
        atomic_store_explicit(&series->value, metric_bits(value), memory_order_relaxed);
}

/* Stores a value of a histogram until the next push to StatsD. Values after the first MAX_KEPT are only counted, for the sample rate;
 * without memory none is stored. */
static void store_pushed_value(struct metric_series *series, double value)
{
    struct metric_series_cache *kept = atomic_load(&series->kept), *fresh = kept ? NULL : calloc(1, sizeof *fresh);
    if (fresh && !atomic_compare_exchange_strong(&series->kept, &kept, fresh))
        free(fresh); /* another thread was first: now `kept` is the one that it has stored */
    else if (fresh)
        kept = fresh;
    unsigned at = kept ? atomic_fetch_add_explicit(&kept->seen, 1, memory_order_relaxed) : MAX_KEPT;
    if (at < MAX_KEPT)
        atomic_store_explicit(&kept->values[at], (float)value, memory_order_relaxed);
}

/* Counts the value in the first bucket whose bound it does not exceed, and adds it to the sum: by compare and swap, as there is no
 * atomic addition of doubles. */
void metric_series_observe(struct metric_series *series, double value)
{
    if (!series)
        return;
    if (atomic_load_explicit(&keeps_values, memory_order_relaxed)) /* for StatsD, which gets the values themselves */
        store_pushed_value(series, value);
    unsigned i = 0;
    while (i < series->buckets->count && value > series->buckets->bounds[i])
        i++;
    atomic_fetch_add_explicit(&series->bucket[i], 1, memory_order_relaxed);
    unsigned long long old = atomic_load_explicit(&series->value, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&series->value, &old, metric_bits(metric_double(old) + value),
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void metric_add(enum metric metric, uint64_t n, const char *a, const char *b, const char *c)
{
    metric_series_add(metric_series(metric, a, b, c), n);
}

void metric_add4(enum metric metric, uint64_t n, const char *a, const char *b, const char *c, const char *d)
{
    metric_series_add(find_series(metric, (const char *const[MAX_LABELS]){a, b, c, d}), n);
}

void metric_set(enum metric metric, double value, const char *a, const char *b, const char *c)
{
    metric_series_set(metric_series(metric, a, b, c), value);
}

void metric_observe(enum metric metric, double value, const char *a, const char *b, const char *c)
{
    metric_series_observe(metric_series(metric, a, b, c), value);
}

void metric_observe_since(enum metric metric, uint64_t begin_ns, const char *a)
{
    metric_observe(metric, (double)(clock_mono_ns() - begin_ns) / 1e9, a, NULL, NULL);
}

/* ---- reading ---- */
/* Returns the present values of a series. Other threads may change it meanwhile, so the buckets may include values that the sum does
 * not. */
static struct metric_sample make_sample(enum metric metric, struct metric_series *series)
{
    unsigned long long value = atomic_load_explicit(&series->value, memory_order_relaxed);
    struct metric_sample sample = {.value =
                                       table[metric].kind == METRIC_COUNTER ? (double)value : metric_double(value)};
    for (int i = 0; i < MAX_LABELS; i++)
        sample.labels[i] = series->values[i] ? series->values[i] : "";
    if (!series->buckets)
        return sample;
    sample.bounds = series->buckets->bounds;
    sample.bucket_count = series->buckets->count;
    for (unsigned i = 0; i <= sample.bucket_count; i++) {
        sample.buckets[i] = atomic_load_explicit(&series->bucket[i], memory_order_relaxed);
        sample.count += sample.buckets[i];
    }
    return sample;
}

/* Calls `each` for every series of a metric in this process, in arbitrary order. Series that are added meanwhile may be missing. */
void metrics_for_each(enum metric metric, void (*each)(void *arg, const struct metric_sample *sample), void *arg)
{
    for (size_t i = 0; own->slots[metric] && i < SLOTS; i++) {
        struct metric_series *series = atomic_load_explicit(&own->slots[metric][i], memory_order_acquire);
        if (!series)
            continue;
        struct metric_sample sample = make_sample(metric, series);
        each(arg, &sample);
    }
}

struct metric_total_sum {
    const char *labels[3];
    double sum;
};

/* Adds the value of a series to the sum if its first three labels are the wanted ones; NULL = any. */
static void add_matching(void *arg, const struct metric_sample *sample)
{
    struct metric_total_sum *summing = arg;
    for (int i = 0; i < 3; i++)
        if (summing->labels[i] && strcmp(summing->labels[i], sample->labels[i]) != 0)
            return;
    summing->sum += sample->value;
}

double metric_total(enum metric metric, const char *a, const char *b, const char *c)
{
    struct metric_total_sum summing = {{a, b, c}, 0};
    metrics_for_each(metric, add_matching, &summing);
    return summing.sum;
}

/* ---- pushing ---- */
void metrics_keep_values(void)
{
    atomic_store(&keeps_values, true);
}

void metrics_use_mozilla_names(void)
{
    atomic_store(&has_mozilla_names, true);
}

struct metric_pusher {
    void (*push)(void *arg, const struct metric_push *push);
    void *arg;
};

/* Pushes the values of a histogram that were observed since the last push; nothing if there were none. */
static void push_values(const struct metric_pusher *to, enum metric metric, struct metric_series *series,
                        struct metric_push *push)
{
    struct metric_series_cache *kept = atomic_load(&series->kept);
    unsigned seen = kept ? atomic_exchange_explicit(&kept->seen, 0, memory_order_relaxed) : 0;
    float values[MAX_KEPT];
    if (!seen)
        return;
    push->values_seen = seen;
    push->value_count = seen < MAX_KEPT ? seen : MAX_KEPT;
    for (size_t i = 0; i < push->value_count; i++)
        values[i] = atomic_load_explicit(&kept->values[i], memory_order_relaxed);
    push->values = values;
    metrics_push_named(metric, push, to->push, to->arg);
}

/* Writes the name of a metric for statsd: the one in the table's column `statsd` if that is set, else the Prometheus name without
 * "_total". */
void metric_pushed_name(enum metric metric, char name[METRIC_NAME_MAX])
{
    const struct metric_row *row = &table[metric];
    struct sl_str text = sl_str(row->statsd ? row->statsd : row->name), total = SL_STR("_total");
    if (!row->statsd && sl_str_ends(text, total))
        text.size -= total.size;
    snprintf(name, METRIC_NAME_MAX, SL_STR_FMT, SL_STR_ARG(text));
}

/* Pushes one series: a gauge's value, a histogram's values since the last push, or what was added to a counter since then (nothing if
 * 0). */
static void push_series(const struct metric_pusher *to, enum metric metric, struct metric_series *series)
{
    char name[METRIC_NAME_MAX];
    metric_pushed_name(metric, name);
    struct metric_push push = {.name = name,
                               .label_names = table[metric].labels,
                               .sample = make_sample(metric, series),
                               .gauge = table[metric].kind == METRIC_GAUGE,
                               .seconds = table[metric].buckets == &metric_seconds, /* StatsD gets milliseconds */
                               .is_mozilla = metric >= METRIC_MOZILLA_NAMES,
                               .form = table[metric].form ? table[metric].form : "d"}; /* DogStatsD's distribution */
    if (table[metric].kind == METRIC_HISTOGRAM) {
        push_values(to, metric, series, &push);
        return;
    }
    if (table[metric].kind == METRIC_COUNTER) {
        uint64_t now = (uint64_t)push.sample.value;
        push.sample.value = (double)(now - series->pushed);
        series->pushed = now;
        if (push.sample.value == 0)
            return;
    }
    metrics_push_named(metric, &push, to->push, to->arg);
}

/* StatsD names of cache look-ups. Dashboards made for another service expect them: it counts look-ups by groups of layers (memory, disk,
 * ...) that have answered them. For each name the look-ups whose label `layer` is in its list are added up. */
static const struct {
    const char *name, *layers; /* layers that are counted, each between blanks; NULL = all */
} access_names[] = {
    {"caches.access", NULL},
    {"caches.memory.hit", " memory joined "},
    {"caches.file.hit", " disk fallback "},
    {"caches.file.miss", " shared computed "},
    {"caches.computation", " computed "},
};
enum { ACCESS_NAMES = sizeof access_names / sizeof *access_names, ACCESS_CACHES = 40 };

const char *metrics_access_name(size_t i)
{
    return i < ACCESS_NAMES ? access_names[i].name : NULL;
}

struct cache_access_sums {
    size_t count;
    struct {
        const char *cache;
        double sums[ACCESS_NAMES];
    } caches[ACCESS_CACHES];
};

/* Adds the `added` look-ups of `series` to the sums of its cache (label 0). Each StatsD name in access_names has a sum, which gets the
 * look-ups if the name counts the layer (label 1) that has answered them. */
static void add_access(struct cache_access_sums *all, const struct metric_series *series, uint64_t added)
{
    size_t at = 0;
    char layer[32]; /* between blanks, as in the lists of access_names */
    snprintf(layer, sizeof layer, " %s ", series->values[1] ? series->values[1] : "");
    while (at < all->count && strcmp(all->caches[at].cache, series->values[0]) != 0)
        at++;
    if (at == ACCESS_CACHES)
        return; /* does not happen: there are fewer kinds of caches */
    if (at == all->count)
        all->caches[all->count++].cache = series->values[0];
    for (size_t i = 0; i < ACCESS_NAMES; i++)
        if (!access_names[i].layers /* NULL: all layers */ || strstr(access_names[i].layers, layer))
            all->caches[at].sums[i] += (double)added;
}

/* Pushes the cache look-ups since the last push, under the names in access_names, with the label `cache`. */
static void push_accesses(const struct metric_pusher *to)
{
    static const char *const label_names[MAX_LABELS] = {"cache"};
    struct cache_access_sums all = {.count = 0};
    for (size_t i = 0; own->slots[METRIC_CACHE_LOOKUPS] && i < SLOTS; i++) {
        struct metric_series *series = atomic_load_explicit(&own->slots[METRIC_CACHE_LOOKUPS][i], memory_order_acquire);
        if (!series || !series->values[0])
            continue;
        uint64_t now = atomic_load_explicit(&series->value, memory_order_relaxed);
        add_access(&all, series, now - series->pushed);
        series->pushed = now;
    }
    for (size_t cache = 0; cache < all.count; cache++)
        for (size_t i = 0; i < ACCESS_NAMES; i++) {
            struct metric_push push = {
                .name = access_names[i].name,
                .label_names = label_names,
                .sample = {.labels = {all.caches[cache].cache}, .value = all.caches[cache].sums[i]}};
            if (push.sample.value > 0)
                to->push(to->arg, &push);
        }
}

/* Cache look-ups (METRIC_CACHE_LOOKUPS) are added up under other names, so push_accesses pushes them. */
void metrics_push(void (*push)(void *arg, const struct metric_push *push), void *arg)
{
    struct metric_pusher to = {push, arg};
    for (int metric = 0; metric < METRIC_COUNT; metric++)
        for (size_t i = 0; own->slots[metric] && metric != METRIC_CACHE_LOOKUPS && i < SLOTS; i++) {
            struct metric_series *series = atomic_load_explicit(&own->slots[metric][i], memory_order_acquire);
            if (series)
                push_series(&to, (enum metric)metric, series);
        }
    push_accesses(&to);
}

/* ---- text ---- */

/* Writes the beginning of a sample line, `symloom_name{labels}` and a blank; the caller adds the value. `extra` is one more label (`le` of
 * a bucket). `labels` and `extra` may be empty. */
static void write_sample(struct sl_buf *out, const char *name, const char *suffix, const char *labels,
                         const char *extra)
{
    sl_buf_printf(out, "symloom_%s%s", name, suffix);
    if (*labels || *extra)
        sl_buf_printf(out, "{%s%s%s}", labels, *labels && *extra ? "," : "", extra);
    sl_buf_u8(out, ' ');
}

/* Writes the lines of a histogram. Buckets are cumulative in the text format, but not in memory, so they are added up. */
static void write_histogram(struct sl_buf *out, const char *name, struct metric_series *series)
{
    unsigned long long total = 0;
    for (unsigned i = 0; i <= series->buckets->count; i++) {
        char bound[40] = "le=\"+Inf\"";
        if (i < series->buckets->count)
            snprintf(bound, sizeof bound, "le=\"%.15g\"", series->buckets->bounds[i]);
        total += atomic_load_explicit(&series->bucket[i], memory_order_relaxed);
        write_sample(out, name, "_bucket", series->labels, bound);
        sl_buf_printf(out, "%llu\n", total);
    }
    write_sample(out, name, "_sum", series->labels, "");
    sl_buf_printf(out, "%.15g\n", metric_double(atomic_load_explicit(&series->value, memory_order_relaxed)));
    write_sample(out, name, "_count", series->labels, "");
    sl_buf_printf(out, "%llu\n", total);
}

/* Writes the sample lines of a series. `value` of a counter is an integer, that of a gauge the bits of a double. */
static void write_series(struct sl_buf *out, enum metric metric, struct metric_series *series)
{
    const char *name = table[metric].name;
    unsigned long long value = atomic_load_explicit(&series->value, memory_order_relaxed);
    if (table[metric].kind == METRIC_HISTOGRAM) {
        write_histogram(out, name, series);
        return;
    }
    write_sample(out, name, "", series->labels, "");
    if (table[metric].kind == METRIC_COUNTER)
        sl_buf_printf(out, "%llu\n", value);
    else
        sl_buf_printf(out, "%.15g\n", metric_double(value));
}

/* Writes the two comment lines, HELP and TYPE, in front of the samples of a metric (in Prometheus' terms, a metric family). */
void metrics_write_header(struct sl_buf *out, const char *name, const char *type, const char *help, bool open_metrics)
{
    size_t size = strlen(name), suffix = strlen("_total");
    /* OpenMetrics names a counter's family without the suffix of its samples. */
    if (open_metrics && strcmp(type, "counter") == 0 && size > suffix && strcmp(name + size - suffix, "_total") == 0)
        size -= suffix;
    sl_buf_printf(out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)size, name, help, (int)size, name, type);
}

/* True if the counter's name without "_total", which OpenMetrics requires in its comment lines, is the name of another metric. */
static bool family_taken(enum metric metric)
{
    size_t size = strlen(table[metric].name) - strlen("_total");
    for (int i = 0; i < METRIC_MOZILLA_NAMES; i++) /* the metrics from there on are only for statsd */
        if (strlen(table[i].name) == size && memcmp(table[i].name, table[metric].name, size) == 0)
            return true;
    return false;
}

/* Writes a metric with all its series in one store; nothing if the store has none. The store of another process may be damaged and may
 * change at any moment, so its series are checked and copied first. */
static void write_metric(struct metrics_store *store, struct sl_buf *out, enum metric metric, bool open_metrics)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    const char *type = types[table[metric].kind];
    char name[80];
    _Atomic(struct metric_series *) *slots = store->slots[metric];
    if (!slots || (store != own && !metrics_are_readable(store, slots)))
        return;
    snprintf(name, sizeof name, "symloom_%s", table[metric].name);
    if (open_metrics && table[metric].kind == METRIC_COUNTER && family_taken(metric))
        type = "unknown"; /* unlike a counter, this type allows the full name in the comment lines */
    metrics_write_header(out, name, type, table[metric].help, open_metrics);
    for (size_t i = 0; i < SLOTS; i++) {
        struct metric_series *series = atomic_load_explicit(&slots[i], memory_order_acquire);
        struct metric_series copy;
        if (series && store == own)
            write_series(out, metric, series);
        else if (series && metrics_copy(store, metric, series, &copy))
            write_series(out, metric, &copy);
    }
}

void metrics_write_counters(struct metrics_store *store, struct sl_buf *out, bool open_metrics)
{
    for (int i = 0; i < METRIC_MOZILLA_NAMES; i++)
        if (table[i].kind != METRIC_GAUGE)
            write_metric(store, out, (enum metric)i, open_metrics);
}

void metrics_collect(void)
{
    pool_set_metrics();
    metric_set(METRIC_FIBERS, (double)fiber_count(), NULL, NULL, NULL);
    metric_set(METRIC_FIBER_STACKS, (double)fiber_stacks_allocated(), NULL, NULL, NULL);
    metric_set(METRIC_FIBER_STACK_PEAK, (double)fiber_stack_peak(), NULL, NULL, NULL);
    metric_set(METRIC_ARENAS, (double)sl_arena_all_bytes(), NULL, NULL, NULL);
    metric_set(METRIC_MEMORY_LIMIT, (double)memory_of_process(), NULL, NULL, NULL);
    metric_set(METRIC_MEMORY_BUDGET, (double)memory_used(), "used", NULL, NULL);
    metric_set(METRIC_MEMORY_BUDGET, (double)memory_limit(), "limit", NULL, NULL);
}

void metrics_write(struct sl_buf *out, bool open_metrics)
{
    metric_set(METRIC_BUILD_INFO, 1, BUILD_VERSION, build_commit(), __VERSION__);
    for (int i = 0; i < METRIC_MOZILLA_NAMES; i++) { /* the metrics from there on are only for statsd */
        if (!table[i].labels[0])
            metric_series((enum metric)i, NULL, NULL, NULL); /* a metric without labels always has a sample */
        write_metric(own, out, (enum metric)i, open_metrics);
    }
    metrics_write_process(out, open_metrics);
    if (open_metrics)
        sl_buf_cstr(out, "# EOF\n");
}
