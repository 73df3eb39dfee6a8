/* Metrics of several processes that are one service: a process counts in memory that the others see too, so that nothing it has
 * counted is lost when it dies, and what counts up never falls.
 *
 *     parent: metrics_share(n), then fork ── child i: metrics_become(i), before it counts anything
 *             metrics_bury(i) when child i has died, before another one takes its place
 *     child:  metrics_write_others, of those that cannot be asked
 *
 * Gauges die with their process. */
#pragma once

#include "base/buf.h"

/* In the parent, while it is the only process: memory for so many, and for the parent itself, which counts for those that have died.
 * False: there is none, and counters will fall. */
bool metrics_share(size_t processes);

/* In the child: from now on it counts as process `index`. */
void metrics_become(size_t index);

/* In the parent: what process `index` has counted is the parent's. Its memory is not to be trusted: it may have died of a bad pointer. */
void metrics_bury(size_t index, const char *why);

/* How many processes have died, and of the last one when (seconds since the epoch) and why ("signal 9"). False: none. */
struct metrics_deaths {
    unsigned count;
    int64_t last_s;
    char last_why[48];
};
bool metrics_deaths(struct metrics_deaths *deaths);

/* Appends what the processes have counted that are `silent`, one flag for each, and what the parent has: text as that of
 * metrics_write, to be summed with those of the others. */
void metrics_write_others(struct sl_buf *out, bool open_metrics, const bool *silent);

/* Changes whenever a process has been buried: what was gathered since then has to be gathered again. Odd while one is. */
unsigned metrics_burials(void);
