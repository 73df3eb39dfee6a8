/* Merges the metrics of several processes into one text: counters, histograms and most gauges are summed; states take the worst
 * value, times the earliest, and metrics that only carry labels appear once. Prometheus' text format 0.0.4 and OpenMetrics 1.0,
 * as core/metrics.h writes them. Any thread. */
#pragma once

#include "base/buf.h"

/* Adds up the metrics of several processes, in the text format. False when out of memory. The families have the order of the first text
 * that has them. */
bool metrics_sum(const struct sl_str *texts, size_t count, struct sl_buf *out);
