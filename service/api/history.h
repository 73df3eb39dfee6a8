/* Counters of the service for each of the last minutes. A copy of the metrics' counters is kept at the start of each minute;
 * the difference of two copies is what happened between them. Loop thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_STEP_S = 60, HISTORY_POINTS = 120, HISTORY_HOUR = 60, HISTORY_KINDS = 32, HISTORY_BUCKETS = 20 };

struct history_counts {
    uint64_t requests, errors; /* errors: 5xx answers */
    uint64_t lookups, computed;
    uint64_t jobs_finished, jobs_failed;
    uint64_t kind_lookups[HISTORY_KINDS], kind_computed[HISTORY_KINDS]; /* in the order of catalog_kinds */
    /* request latencies, by the buckets of the metric */
    uint64_t latency[HISTORY_BUCKETS];
};

struct history;
struct history *history_new(void); /* begins now; NULL when out of memory */
void history_free(struct history *history);
void history_minute(struct history *history); /* call once a minute */

/* Counts of the last hour, with the current minute; of less when the service is younger. */
void history_last_hour(const struct history *history, struct history_counts *counts);

/* Fills in one point per minute, oldest first; the last one is the current minute. Returns how many. */
struct history_point {
    int64_t t; /* start of the minute, seconds since the epoch */
    uint64_t requests, errors, lookups, computed;
    double p50_ms, p99_ms; /* estimated from the metric's buckets; negative = no requests */
};
size_t history_points(const struct history *history, struct history_point points[HISTORY_POINTS + 1]);
