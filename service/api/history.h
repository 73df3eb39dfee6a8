/* What the service did in each of the last minutes: counters of the metrics, kept as they were at the beginning of each, so
 * that the difference of two is what happened between them. Loop thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_STEP_S = 60, HISTORY_POINTS = 120, HISTORY_HOUR = 60, HISTORY_KINDS = 32, HISTORY_BUCKETS = 20 };

struct history_counts {
    uint64_t requests, errors; /* errors: answers of 5xx */
    uint64_t lookups, computed;
    uint64_t jobs_finished, jobs_failed;
    uint64_t kind_lookups[HISTORY_KINDS], kind_computed[HISTORY_KINDS]; /* in the order of kinds_all */
    uint64_t latency[HISTORY_BUCKETS];                                  /* of requests, by the bounds of the metric */
};

struct history;
struct history *history_new(void); /* begins now; NULL when out of memory */
void history_free(struct history *history);
void history_minute(struct history *history); /* a minute has passed */

/* What happened in the last hour, with the minute that runs; less when the service is younger. */
void history_last_hour(const struct history *history, struct history_counts *counts);

/* The points, oldest first; the last one is the minute that runs. */
struct history_point {
    int64_t t; /* its beginning, seconds since the epoch */
    uint64_t requests, errors, lookups, computed;
    double p50_ms, p99_ms; /* as far as the bounds of the metric tell; negative = no requests */
};
size_t history_points(const struct history *history, struct history_point points[HISTORY_POINTS + 1]);
