/* Combines the metrics of several processes in one text. Counters, histograms and most gauges are summed. For a gauge whose row in
 * metrics.def says so (`sum`), the minimum or maximum is taken. Reads and writes Prometheus' text format 0.0.4 and OpenMetrics 1.0. Any
 * thread. */
#pragma once

#include "base/buf.h"

/* Appends the combined metrics of `texts`, one per process. False when out of memory. Metrics have the order of the first text; those that
 * only later texts have come behind. */
bool metrics_sum(const struct sl_str *texts, size_t count, struct sl_buf *out);
