#include "api/history.h"

#include <stdlib.h>
#include <string.h>

#include "core/loop.h"
#include "core/metrics.h"
#include "catalog/catalog.h"

struct history_sample {
    int64_t t;
    struct history_counts counts;
};

struct history {
    size_t count; /* number of moments; the last one is the start of the current minute */
    struct history_sample moments[HISTORY_POINTS + 1];
};

/* ---- current counters ---- */

/* Counts requests, and as errors those with a status of 5xx (the third label). */
static void add_request(void *arg, const struct metric_sample *sample)
{
    struct history_counts *counts = arg;
    counts->requests += (uint64_t)sample->value;
    if (sample->labels[2][0] == '5')
        counts->errors += (uint64_t)sample->value;
}

/* Adds the look-ups of one series: labels are the cache and the layer that answered; "computed" is the one that is costly. */
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

/* Counts the finished jobs of one series; its second label is the outcome, of which all but "completed" are failures. */
static void add_job(void *arg, const struct metric_sample *sample)
{
    struct history_counts *counts = arg;
    counts->jobs_finished += (uint64_t)sample->value;
    if (strcmp(sample->labels[1], "completed") != 0)
        counts->jobs_failed += (uint64_t)sample->value;
}

/* Adds the buckets of one series; the last one, number `bucket_count`, counts requests above the highest bound. */
static void add_latency(void *arg, const struct metric_sample *sample)
{
    struct history_counts *counts = arg;
    for (unsigned i = 0; i <= sample->bucket_count && i < HISTORY_BUCKETS; i++)
        counts->latency[i] += sample->buckets[i];
}

static void count_now(struct history_counts *counts)
{
    *counts = (struct history_counts){0};
    metrics_for_each(METRIC_HTTP_REQUESTS, add_request, counts);
    metrics_for_each(METRIC_CACHE_LOOKUPS, add_lookup, counts);
    metrics_for_each(METRIC_JOBS_FINISHED, add_job, counts);
    metrics_for_each(METRIC_HTTP_REQUEST_DURATION, add_latency, counts);
}

/* Subtracts all counters: the struct has only members of type uint64_t, so it is an array of them. */
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

/* Takes the counters of this moment; drops the oldest ones when the history is full. */
void history_minute(struct history *history)
{
    enum { MAX_MOMENTS = sizeof history->moments / sizeof *history->moments };
    if (history->count == MAX_MOMENTS)
        memmove(history->moments, history->moments + 1, --history->count * sizeof *history->moments);
    struct history_sample *moment = &history->moments[history->count++];
    moment->t = clock_wall_s();
    count_now(&moment->counts);
}

void history_last_hour(const struct history *history, struct history_counts *counts)
{
    size_t from = history->count > HISTORY_HOUR ? history->count - HISTORY_HOUR : 0;
    count_now(counts);
    if (from) /* a younger service has counted only what belongs to this hour */
        subtract(counts, &history->moments[from].counts);
}

/* Returns a quantile of the request times, interpolated linearly within a bucket; -1 if there were no requests. The
 * bucket of the slowest requests has no upper bound: a quantile in it is given as its lower bound. */
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

static void take_bounds(void *arg, const struct metric_sample *sample)
{
    *(struct metric_sample *)arg = *sample;
}

/* Makes a point for each minute: the difference to the next moment; for the current minute, to now. */
size_t history_points(const struct history *history, struct history_point points[HISTORY_POINTS + 1])
{
    struct history_counts counts;
    struct metric_sample bounds = {.bucket_count = 0};
    metrics_for_each(METRIC_HTTP_REQUEST_DURATION, take_bounds, &bounds);
    for (size_t i = 0; i < history->count; i++) {
        if (i + 1 < history->count)
            counts = history->moments[i + 1].counts;
        else
            count_now(&counts);
        subtract(&counts, &history->moments[i].counts);
        points[i] = (struct history_point){.t = history->moments[i].t,
                                           .requests = counts.requests,
                                           .errors = counts.errors,
                                           .lookups = counts.lookups,
                                           .computed = counts.computed,
                                           .p50_ms = quantile_ms(&counts, &bounds, 0.5),
                                           .p99_ms = quantile_ms(&counts, &bounds, 0.99)};
    }
    return history->count;
}
