/* Shared by metrics_table.c, metrics.c, metrics_sum.c, metrics_names.c, metrics_process.c (the standard metrics of a process),
 * metrics_shared.c (those of several processes) and statsd.c. */
#pragma once

#include <stdatomic.h>
#include <string.h>

#include "base/buf.h"
#include "core/metrics.h"

enum { METRIC_LABELS = 4, METRIC_BUCKETS = 19 };
enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_buckets {
    unsigned count;
    double bounds[METRIC_BUCKETS];
};
extern const struct metric_buckets metric_seconds; /* for durations */

/* How the values of a metric in several processes of one service are combined: sum, minimum or maximum. */
enum metric_sum { METRIC_SUM, METRIC_MIN, METRIC_MAX };

struct metric_row {
    const char *name; /* name without symloom_; Mozilla's names are complete */
    const char *help;
    enum metric_kind kind;
    const char *labels[METRIC_LABELS];
    const struct metric_buckets *buckets;
    enum metric_sum sum;
    const char *statsd; /* name for statsd, kept compatible with other services; NULL = the same name */
    const char *form;   /* statsd type of the pushed values of a histogram; NULL = "d" */
};
extern const struct metric_row metrics_table[METRIC_COUNT];

struct metric_series {
    uint64_t hash;
    char *labels;                /* `a="x",b="y"`, escaped; empty without labels */
    char *values[METRIC_LABELS]; /* unescaped; NULL = absent */
    const struct metric_buckets *buckets;
    atomic_ullong value; /* a counter; the bits of a gauge's double; a histogram's sum (bits of a double) */
    atomic_ullong bucket[METRIC_BUCKETS + 1];
    uint64_t pushed;                            /* value of a counter at the last push */
    _Atomic(struct metric_series_cache *) kept; /* values of a histogram since the last push; NULL = none yet */
};

/* All metric series of a process: per metric a hash table (open addressing). A slot is filled once and never emptied, so readers need no
 * lock. */
enum { METRIC_SLOTS = 1024 };
struct metrics_store {
    _Atomic(struct metric_series *) *_Atomic slots[METRIC_COUNT];
    size_t counts[METRIC_COUNT]; /* number of series */
    /* The process's CPU time, and the time that its loop was busy, when metrics were last written (bits of doubles). */
    atomic_ullong cpu_seconds, busy_seconds;
    /* Size in bytes of the shared memory that begins with this struct; series and texts are allocated from the rest of it. 0 = there is
     * none: they are allocated by malloc. */
    size_t size;
    atomic_size_t used; /* bytes of the shared memory that are allocated */
};
extern struct metrics_store *metrics_own; /* store of this process */
/* Like metric_series, in any store: finds the series with these labels without a lock, or adds it. NULL when out of memory, and for
 * Mozilla's metrics unless they are enabled. */
struct metric_series *metrics_series_in(struct metrics_store *store, enum metric metric,
                                        const char *const values[METRIC_LABELS]);
/* For the store of another process, which that process may have damaged by a bad pointer. metrics_are_readable: true if the array `slots`
 * lies within the store. metrics_copy: copies one series; false if it has pointers out of the store. */
bool metrics_are_readable(const struct metrics_store *store, const void *slots);
bool metrics_copy(const struct metrics_store *store, enum metric metric, const struct metric_series *series,
                  struct metric_series *copy);
/* Writes the counters and histograms in the store of any process, but not its gauges, in the text formats of metrics_write. */
void metrics_write_counters(struct metrics_store *store, struct sl_buf *out, bool open_metrics);

static inline double metric_double(unsigned long long bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline unsigned long long metric_bits(double value)
{
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Writes the comment lines (HELP and TYPE) in front of the samples of a metric. */
void metrics_write_header(struct sl_buf *out, const char *name, const char *type, const char *help, bool open_metrics);
/* Writes the process_* metrics of this process, and the busy time of its loop. */
void metrics_write_process(struct sl_buf *out, bool open_metrics);
void metrics_write_times(struct sl_buf *out, bool open_metrics, double cpu_seconds, double busy_seconds);

/* One series as it is pushed to StatsD: its values since the last push or, for a gauge, its present value. */
struct metric_push {
    const char *name;               /* name of the metric without the prefix */
    const char *const *label_names; /* METRIC_LABELS pointers; absent ones are NULL */
    struct metric_sample sample;
    bool gauge, seconds, is_mozilla; /* seconds: the values are durations, which statsd gets in milliseconds */
    const char *form;                /* statsd type of the values */
    const float *values;             /* values of a histogram; NULL = send sample.value (for a counter: the increase) */
    size_t value_count;
    uint64_t values_seen; /* number of values observed, of which the first value_count are in `values` */
};
/* Calls `to` with the series once for each name that metrics_names.c has for it: dashboards made for another service expect these. If there
 * are none, calls it once, with the series' own name. */
void metrics_push_named(enum metric metric, const struct metric_push *push,
                        void (*to)(void *arg, const struct metric_push *push), void *arg);
/* Writes the statsd name of a metric that metrics_names.c does not rename: that of its row, for counters without `_total`. */
enum { METRIC_NAME_MAX = 80 };
void metric_pushed_name(enum metric metric, char name[METRIC_NAME_MAX]);
/* Calls each(arg, name) once for every name that metrics_names.c may push the metric under instead of its own. */
void metrics_for_each_name(enum metric metric, void (*each)(void *arg, const char *name), void *arg);
/* Returns the i-th statsd name of cache look-ups (METRIC_CACHE_LOOKUPS has several); NULL after the last. */
const char *metrics_access_name(size_t i);
/* From now on histograms also store the values observed, for metrics_push. Cannot be undone. */
void metrics_keep_values(void);
/* Enables the metrics from METRIC_MOZILLA_NAMES on, which only statsd gets, under the names of Mozilla's services. Call it before anything
 * is counted. */
void metrics_use_mozilla_names(void);
/* Calls `push` for every counter and histogram series that has changed since the last call, and for all gauges. One thread at a time. */
void metrics_push(void (*push)(void *arg, const struct metric_push *push), void *arg);
