/* Between metrics_table.c, metrics.c, metrics_names.c, metrics_process.c (the standard metrics of a process) and statsd.c. */
#pragma once

#include "base/buf.h"
#include "core/metrics.h"

enum { METRIC_LABELS = 4, METRIC_BUCKETS = 19 };
enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_buckets {
    unsigned count;
    double bounds[METRIC_BUCKETS];
};
extern const struct metric_buckets metric_seconds; /* of durations */

struct metric_row {
    const char *name; /* without symloom_; of Mozilla's the whole */
    enum metric_kind kind;
    const char *labels[METRIC_LABELS];
    const struct metric_buckets *buckets;
    const char *help;
    const char *statsd; /* the name that it had elsewhere; NULL = the same */
    const char *form;   /* of pushed values of a histogram; NULL = "d" */
};
extern const struct metric_row metrics_table[METRIC_COUNT];

void metrics_write_header(struct sl_buf *out, const char *name, const char *type, const char *help, bool open_metrics);
void metrics_write_process(struct sl_buf *out, bool open_metrics);

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
/* Histograms keep their values for metrics_push from now on. Once. */
void metrics_keep_values(void);
/* Mozilla's names are pushed too. Before anything is counted. */
void metrics_use_mozilla_names(void);
/* Everything that has changed since the last call, and all gauges. One thread at a time. */
void metrics_push(void (*push)(void *arg, const struct metric_push *push), void *arg);
