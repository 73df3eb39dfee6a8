/* Counters of the service for each of the last minutes, for GET /status. */
#include "api/history.h"

#include <stdlib.h>
#include <string.h>

#include "core/loop.h"
#include "core/metrics.h"
#include "catalog/catalog.h"

struct history_sample { /* the counters at the start of a minute */
    int64_t t;          /* seconds since the epoch */
    struct history_counts counts;
};

struct history {
    size_t count; /* of `samples`; the last one is from the start of the current minute */
    struct history_sample samples[HISTORY_POINTS + 1];
};

/* ---- current counters ---- */

/* Callback for the series of METRIC_HTTP_REQUESTS: adds the requests of one series. Its third label is the HTTP status; 5xx are errors. */
static void add_request(void *arg, const struct metric_sample *sample)
{
    struct history_counts *counts = arg;
    counts->requests += (uint64_t)sample->value;
    if (sample->labels[2][0] == '5')
        counts->errors += (uint64_t)sample->value;
}

/* Callback for the series of METRIC_CACHE_LOOKUPS: adds the look-ups of one series. Its labels are the kind of cache and where the result
 * came from; "computed" means that no cache had it. */
static void add_lookup(void *arg, const struct metric_sample *sample)
{
    struct history_counts *counts = arg;
    uint64_t n = (uint64_t)sample->value;
    bool computed = strcmp(sample->labels[1], "computed") == 0;
    counts->lookups += n;
    counts->computed += computed ? n : 0;
    for (size_t i = 0; i < catalog_kind_count && i < HISTORY_KINDS; i++) {
        if (strcmp(catalog_kinds[i]->name, sample->labels[0]) != 0)
            continue;
        counts->kind_lookups[i] += n;
        counts->kind_computed[i] += computed ? n : 0;
        break;
    }
}

/* Callback for the series of METRIC_JOBS_FINISHED: adds the jobs of one series. Its second label is the outcome, of which all but
 * "completed" are failures. */
static void add_job(void *arg, const struct metric_sample *sample)
{
    struct history_counts *counts = arg;
    counts->jobs_finished += (uint64_t)sample->value;
    if (strcmp(sample->labels[1], "completed") != 0)
        counts->jobs_failed += (uint64_t)sample->value;
}

/* Callback for the series of METRIC_HTTP_REQUEST_DURATION: adds the counts in the buckets of one series. The last bucket, with index
 * `bucket_count`, has the requests above the highest bound. */
static void add_latency(void *arg, const struct metric_sample *sample)
{
    struct history_counts *counts = arg;
    for (unsigned i = 0; i <= sample->bucket_count && i < HISTORY_BUCKETS; i++)
        counts->latency[i] += sample->buckets[i];
}

/* Reads the current counters from the metrics. */
static void count_now(struct history_counts *counts)
{
    *counts = (struct history_counts){0};
    metrics_for_each(METRIC_HTTP_REQUESTS, add_request, counts);
    metrics_for_each(METRIC_CACHE_LOOKUPS, add_lookup, counts);
    metrics_for_each(METRIC_JOBS_FINISHED, add_job, counts);
    metrics_for_each(METRIC_HTTP_REQUEST_DURATION, add_latency, counts);
}

/* Subtracts each counter of `what` from that in `from`. The struct has only members of type uint64_t, so it is treated as an array. */
static void subtract(struct history_counts *from, const struct history_counts *what)
{
    uint64_t *a = (uint64_t *)from;
    const uint64_t *b = (const uint64_t *)what;
    for (size_t i = 0; i < sizeof *from / sizeof *a; i++)
        a[i] -= b[i];
}

/* ---- minutes ---- */
struct history *history_new(void)
{
    struct history *history = calloc(1, sizeof *history);
    if (history)
        history_minute(history);
    return history;
}

void history_free(struct history *history)
{
    free(history);
}

/* Stores the current counters as a new sample; drops the oldest sample when the history is full. */
void history_minute(struct history *history)
{
    enum { MAX_SAMPLES = sizeof history->samples / sizeof *history->samples };
    if (history->count == MAX_SAMPLES)
        memmove(history->samples, history->samples + 1, --history->count * sizeof *history->samples);
    struct history_sample *sample = &history->samples[history->count++];
    sample->t = clock_wall_s();
    count_now(&sample->counts);
}

void history_last_hour(const struct history *history, struct history_counts *counts)
{
    size_t from = history->count > HISTORY_HOUR ? history->count - HISTORY_HOUR : 0;
    count_now(counts);
    if (from) /* 0: the service runs for less than an hour, and all that it has counted is of this hour */
        subtract(counts, &history->samples[from].counts);
}

/* Returns the quantile `share` (0.5: the median) of the request latencies, interpolated linearly within a bucket; -1 if there were no
 * requests. `bounds` has the upper bounds of the buckets. The bucket of the slowest requests has no upper bound, so a quantile in it is
 * given as its lower bound. */
static double quantile_ms(const struct history_counts *counts, const struct metric_sample *bounds, double share)
{
    double total = 0, below = 0;
    for (unsigned i = 0; i <= bounds->bucket_count; i++)
        total += (double)counts->latency[i];
    if (total == 0 || bounds->bucket_count == 0)
        return -1;
    for (unsigned i = 0; i < bounds->bucket_count; i++) {
        double here = (double)counts->latency[i], low = i ? bounds->bounds[i - 1] : 0;
        if (here > 0 && below + here >= share * total)
            return 1e3 * (low + (bounds->bounds[i] - low) * (share * total - below) / here);
        below += here;
    }
    return 1e3 * bounds->bounds[bounds->bucket_count - 1];
}

/* Callback for the series of a histogram: keeps the last series, for the bounds of its buckets, which are the same in all. */
static void take_bounds(void *arg, const struct metric_sample *sample)
{
    *(struct metric_sample *)arg = *sample;
}

/* The counts of a minute are the sample at its end minus the sample at its start. For the current minute, which has not ended, the current
 * counters take the place of the sample at its end. */
size_t history_points(const struct history *history, struct history_point points[HISTORY_POINTS + 1])
{
    struct history_counts counts;
    struct metric_sample bounds = {.bucket_count = 0};
    metrics_for_each(METRIC_HTTP_REQUEST_DURATION, take_bounds, &bounds);
    for (size_t i = 0; i < history->count; i++) {
        if (i + 1 < history->count)
            counts = history->samples[i + 1].counts;
        else
            count_now(&counts);
        subtract(&counts, &history->samples[i].counts);
        points[i] = (struct history_point){.t = history->samples[i].t,
                                           .requests = counts.requests,
                                           .errors = counts.errors,
                                           .lookups = counts.lookups,
                                           .computed = counts.computed,
                                           .p50_ms = quantile_ms(&counts, &bounds, 0.5),
                                           .p99_ms = quantile_ms(&counts, &bounds, 0.99)};
    }
    return history->count;
}
