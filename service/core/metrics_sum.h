/* Combines the metrics of several processes in one text: counters, histograms and most gauges are summed; for others metrics.def has the
 * column `sum`: the minimum or maximum counts. Prometheus' text format 0.0.4 and OpenMetrics 1.0, as core/metrics.h writes them. Any
 * thread. */
#pragma once

#include "base/buf.h"

/* Appends the combined metrics of `texts`, one per process. False when out of memory. Metrics have the order of the first text; those that
 * only later texts have come behind. */
bool metrics_sum(const struct sl_str *texts, size_t count, struct sl_buf *out);
