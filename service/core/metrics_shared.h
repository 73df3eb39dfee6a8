/* Metrics of several processes that form one service: each process counts in shared memory, so that its counts are not lost
 * when it dies and counters never fall.
 *
 *     parent: metrics_map_shared(n), then fork ── child i: metrics_set_process(i), before it counts anything
 *             metrics_merge_dead_process(i) when child i has died, before a new child i is forked
 *     child:  metrics_write_others, for processes that do not answer
 *
 * Gauges are lost with their process. */
#pragma once

#include "base/buf.h"

/* In the parent, while it is the only process: maps memory for `processes` and for the parent itself, which counts for those
 * that have died. False: no memory, and counters will fall when a process dies. */
bool metrics_map_shared(size_t processes);

/* In the child: from now on it counts in the memory of process `index`. */
void metrics_set_process(size_t index);

/* In the parent: adds the counts of the dead process `index` to the parent's own, and clears that process's memory for its successor. `why`
 * is for metrics_get_deaths. Skips series that a bad pointer of the process has damaged. */
void metrics_merge_dead_process(size_t index, const char *why);

/* Tells how many processes have died, and when (seconds since the epoch) and why ("signal 9") the last one did. False: none has. */
struct metrics_deaths {
    unsigned count;
    int64_t last_s;
    char last_why[48];
};
bool metrics_get_deaths(struct metrics_deaths *deaths);

/* Appends the counts of the processes whose flag in `silent` is set (those that did not answer), and of the parent, in the text format of
 * metrics_write. The caller adds them to the text of the processes that did answer (metrics_sum). */
void metrics_write_others(struct sl_buf *out, bool open_metrics, const bool *silent);

/* Returns a number that changes whenever the counts of a dead process are added to the parent's: text gathered before that must be gathered
 * again. Odd while this is going on. */
unsigned metrics_merge_count(void);
