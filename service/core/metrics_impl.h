/* Between metrics_table.c, metrics.c, metrics_sum.c, metrics_names.c, metrics_process.c (the standard metrics of a process), metrics_shared.c
 * (those of several processes) and statsd.c. */
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
extern const struct metric_buckets metric_seconds; /* of durations */

/* What several processes have together: their sum, or the least or most of theirs. */
enum metric_sum { METRIC_SUM, METRIC_LEAST, METRIC_MOST };

struct metric_row {
    const char *name; /* without symloom_; of Mozilla's the whole */
    const char *help;
    enum metric_kind kind;
    const char *labels[METRIC_LABELS];
    const struct metric_buckets *buckets;
    enum metric_sum sum;
    const char *statsd; /* the name that it had elsewhere; NULL = the same */
    const char *form;   /* of pushed values of a histogram; NULL = "d" */
};
extern const struct metric_row metrics_table[METRIC_COUNT];

struct metric_series {
    uint64_t hash;
    char *labels;                /* `a="x",b="y"`, escaped; empty without labels */
    char *values[METRIC_LABELS]; /* as they are; NULL = none */
    const struct metric_buckets *buckets;
    atomic_ullong value; /* a counter; the bits of a gauge's double; a histogram's sum (bits of a double) */
    atomic_ullong bucket[METRIC_BUCKETS + 1];
    uint64_t pushed;             /* the value of a counter when it was last pushed */
    _Atomic(struct kept *) kept; /* values of a histogram since then; NULL = none yet */
};

/* All series of a process. Open addressing; a slot is filled once and never emptied, so readers need no lock. */
enum { METRIC_SLOTS = 1024 };
struct metrics_store {
    _Atomic(struct metric_series *) *_Atomic slots[METRIC_COUNT];
    size_t counts[METRIC_COUNT];
    /* What else counts up, as it was told last (bits of doubles): time of the processor, and of a loop that did not wait. */
    atomic_ullong cpu_seconds, busy_seconds;
    size_t size; /* of the memory that begins here, which series and texts are put into; 0 = they are of malloc */
    atomic_size_t used;
};
extern struct metrics_store *metrics_own; /* of this process */
/* As metric_series, in any store. */
struct metric_series *metrics_series_in(struct metrics_store *store, enum metric metric,
                                        const char *const values[METRIC_LABELS]);
/* Whether the slots and the series of another process, which may have died of a bad pointer, can be read: metrics_shared.c. */
bool metrics_are_whole(const struct metrics_store *store, const void *slots);
bool metrics_copy(const struct metrics_store *store, enum metric metric, const struct metric_series *series,
                  struct metric_series *copy);
/* As metrics_write, without gauges, of a store of any process. */
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

void metrics_write_header(struct sl_buf *out, const char *name, const char *type, const char *help, bool open_metrics);
void metrics_write_process(struct sl_buf *out, bool open_metrics);
void metrics_write_times(struct sl_buf *out, bool open_metrics, double cpu_seconds, double busy_seconds);

/* What is sent of a series for one period. */
struct metric_push {
    const char *name;               /* without prefix */
    const char *const *label_names; /* four; the missing ones are NULL */
    struct metric_sample sample;
    bool gauge, seconds, is_mozilla;
    const char *form;    /* of the values */
    const float *values; /* of a histogram; NULL = sample.value, of a counter what was added */
    size_t value_count;
    uint64_t values_seen;
};
/* Pushes it under the names that it has elsewhere, or as it is. */
void metrics_push_named(enum metric metric, const struct metric_push *push,
                        void (*to)(void *arg, const struct metric_push *push), void *arg);
/* The name that a metric is pushed under by its row: counters without `_total`. */
enum { METRIC_NAME_MAX = 80 };
void metric_pushed_name(enum metric metric, char name[METRIC_NAME_MAX]);
/* The names that a metric may be pushed under instead, each once. */
void metrics_names_each(enum metric metric, void (*each)(void *arg, const char *name), void *arg);
/* Those that look-ups of the cache are pushed under; NULL = no more. */
const char *metrics_access_name(size_t i);
/* Histograms keep their values for metrics_push from now on. Once. */
void metrics_keep_values(void);
/* Mozilla's names are pushed too. Before anything is counted. */
void metrics_use_mozilla_names(void);
/* Everything that has changed since the last call, and all gauges. One thread at a time. */
void metrics_push(void (*push)(void *arg, const struct metric_push *push), void *arg);
