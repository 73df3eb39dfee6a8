/* Counters of the service for each of the last minutes. A copy of the metrics' counters is kept at the start of each minute;
 * the difference of two copies is what happened between them. Loop thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_STEP_S = 60, HISTORY_POINTS = 120, HISTORY_HOUR = 60, HISTORY_KINDS = 32, HISTORY_BUCKETS = 20 };

struct history_counts {
    uint64_t requests, errors;  /* errors: answers with status 5xx */
    uint64_t lookups, computed; /* of all caches; computed: look-ups whose result no cache had */
    uint64_t jobs_finished, jobs_failed;
    uint64_t kind_lookups[HISTORY_KINDS], kind_computed[HISTORY_KINDS]; /* in the order of catalog_kinds */
    /* request latencies, by the buckets of the metric */
    uint64_t latency[HISTORY_BUCKETS];
};

struct history;
/* Makes a history whose first minute begins now; NULL when out of memory. */
struct history *history_new(void);
void history_free(struct history *history);
/* Begins the next minute: call it once a minute. */
void history_minute(struct history *history);

/* Sets `*counts` to what was counted in the last hour, including the current minute; since the start if the service runs for less. */
void history_last_hour(const struct history *history, struct history_counts *counts);

struct history_point { /* what was counted in one minute */
    int64_t t;         /* start of the minute, seconds since the epoch */
    uint64_t requests, errors, lookups, computed;
    double p50_ms, p99_ms; /* request latency, estimated from the metric's buckets; negative = no requests */
};
/* Fills in one point per minute, oldest first; the last one is the current minute. Returns how many. */
size_t history_points(const struct history *history, struct history_point points[HISTORY_POINTS + 1]);
