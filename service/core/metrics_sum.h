/* One text of metrics out of those of several processes: counters, histograms and most gauges are summed; of a state the worst
 * counts, of a time the earliest, and what is said in labels alone is said once. Prometheus' text format 0.0.4 and
 * OpenMetrics 1.0, as core/metrics.h writes them. Any thread. */
#pragma once

#include "base/buf.h"

/* False when out of memory. The families have the order of the first text that has them. */
bool metrics_sum(const struct sl_str *texts, size_t count, struct sl_buf *out);
