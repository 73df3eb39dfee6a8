/* Metrics of several processes that form one service: each process counts in shared memory, so that its counts are not lost
 * when it dies and counters never fall.
 *
 *     parent: metrics_map_shared(n), then fork ── child i: metrics_set_process(i), before it counts anything
 *             metrics_merge_dead_process(i) when child i has died, before another one takes its place
 *     child:  metrics_write_others, for those that do not answer
 *
 * Gauges are lost with their process. */
#pragma once

#include "base/buf.h"

/* In the parent, while it is the only process: maps memory for `processes` and for the parent itself, which counts for those
 * that have died. False: no memory, and counters will fall when a process dies. */
bool metrics_map_shared(size_t processes);

/* In the child: it counts as process `index` from now on. */
void metrics_set_process(size_t index);

/* In the parent: adds the counts of dead process `index` to its own. Checks that memory first: a bad pointer may have corrupted
 * it. */
void metrics_merge_dead_process(size_t index, const char *why);

/* How many processes have died, and for the last one when (seconds since the epoch) and why ("signal 9"). False: none has. */
struct metrics_deaths {
    unsigned count;
    int64_t last_s;
    char last_why[48];
};
bool metrics_get_deaths(struct metrics_deaths *deaths);

/* Appends the counts of the processes whose flag in `silent` is set, and the parent's: text as by metrics_write, to be summed
 * with that of the others. */
void metrics_write_others(struct sl_buf *out, bool open_metrics, const bool *silent);

/* Changes whenever the counts of a dead process are merged: text gathered before that must be gathered again. Odd while they are being
 * merged. */
unsigned metrics_merge_count(void);
