/* Metrics: one static table (metrics.def), atomics, text for Prometheus.
 *
 * A metric is defined once, by its row in metrics.def; code changes it by its number (METRIC_...) with up to four label values.
 * Callers must bound the set of label values (route patterns, source ids, codes): a metric has at most 500 series, and values with
 * further labels are counted in one series "overflow". Counters and histograms may be changed from any thread. */
#pragma once

#include "base/buf.h"

/* The numbers of metrics, METRIC_HTTP_REQUESTS and so on, made from the rows of metrics.def. */
enum metric {
#define METRIC(number, ...) METRIC_##number,
#include "core/metrics.def"
#undef METRIC
    METRIC_COUNT
};
#define METRIC_MOZILLA_NAMES METRIC_ELIOT_PAGEVIEW /* from here on: metrics of Mozilla's services, only for statsd */

/* Change the series with these label values: add `n` to a counter, set a gauge, observe a value of a histogram. Labels that the metric does
 * not have are NULL. */
void metric_add(enum metric metric, uint64_t n, const char *a, const char *b, const char *c);
void metric_add4(enum metric metric, uint64_t n, const char *a, const char *b, const char *c, const char *d);
void metric_set(enum metric metric, double value, const char *a, const char *b, const char *c);
void metric_observe(enum metric metric, double value, const char *a, const char *b, const char *c);
/* Observes the seconds that have passed since `begin_ns`, a time of clock_mono_ns, in a histogram. */
void metric_observe_since(enum metric metric, uint64_t begin_ns, const char *a);

/* Returns the series with these label values. Hot paths look a series up once and keep the pointer: it is never freed. NULL when out of
 * memory, which the functions below accept. */
struct metric_series;
struct metric_series *metric_series(enum metric metric, const char *a, const char *b, const char *c);
void metric_series_add(struct metric_series *series, uint64_t n);       /* a counter */
void metric_series_set(struct metric_series *series, double value);     /* a gauge */
void metric_series_observe(struct metric_series *series, double value); /* a histogram */

/* The current values of a series. */
struct metric_sample {
    const char *labels[4]; /* values, in the order of the table; absent ones are "" */
    double value;          /* the value of a counter or gauge; the sum of a histogram's values */
    const double *bounds;  /* upper bounds of the first `bucket_count` buckets; one more bucket has larger values */
    unsigned bucket_count;
    unsigned long long buckets[20], count; /* buckets are not cumulative; `count` is the total */
};
/* Calls `each` for every series of a metric in this process, in arbitrary order. */
void metrics_for_each(enum metric metric, void (*each)(void *arg, const struct metric_sample *sample), void *arg);
/* Returns the sum of all series with these label values; NULL = any. */
double metric_total(enum metric metric, const char *a, const char *b, const char *c);

uint64_t metrics_resident_bytes(void); /* resident memory of this process */

/* Sets the gauges of core (pool, fibers): loop thread, before metrics_write. */
void metrics_collect(void);
/* Writes all metrics of this process in Prometheus' text format 0.0.4, or OpenMetrics 1.0. Takes milliseconds; any thread. */
void metrics_write(struct sl_buf *out, bool open_metrics);
/* Writes doc/metrics.md: all metrics with their meaning. */
void metrics_reference(struct sl_buf *out);
