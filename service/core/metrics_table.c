/* The rows of metrics.def as a table. */
#include "core/metrics_impl.h"

const struct metric_buckets metric_seconds = {
    16, {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900}};
static const struct metric_buckets counts = {
    19, {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000}};
static const struct metric_buckets sizes = {
    12,
    {4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864, 268435456, 1073741824, 4294967296, 17179869184}};
static const struct metric_buckets pushed = {0}; /* only for statsd, which gets the values: no buckets */

#define COUNTER       .kind = METRIC_COUNTER
#define GAUGE         .kind = METRIC_GAUGE
#define HISTOGRAM(of) .kind = METRIC_HISTOGRAM, .buckets = &(of)
#define SECONDS       HISTOGRAM(metric_seconds)
#define COUNTS        HISTOGRAM(counts)
#define SIZES         HISTOGRAM(sizes)
#define PUSHED        HISTOGRAM(pushed)

const struct metric_row metrics_table[METRIC_COUNT] = {
#define METRIC(number, kind_, ...) [METRIC_##number] = {__VA_ARGS__, kind_},
#include "core/metrics.def"
};
