/* Between metrics.c (the table), metrics_process.c (the standard metrics of a process) and statsd.c. */
#pragma once

#include "base/buf.h"
#include "core/metrics.h"

void metrics_write_header(struct sl_buf *out, const char *name, const char *type, const char *help, bool open_metrics);
void metrics_write_process(struct sl_buf *out, bool open_metrics);

/* What is sent of a series for one period. */
struct metric_push {
    const char *name;               /* without prefix */
    const char *const *label_names; /* four; the missing ones are NULL */
    struct metric_sample sample;
    bool gauge, seconds;
    const float *values; /* of a histogram; NULL = sample.value, of a counter what was added */
    size_t value_count;
    uint64_t values_seen;
};
/* Histograms keep their values for metrics_push from now on. Once. */
void metrics_keep_values(void);
/* Everything that has changed since the last call, and all gauges. One thread at a time. */
void metrics_push(void (*push)(void *arg, const struct metric_push *push), void *arg);
