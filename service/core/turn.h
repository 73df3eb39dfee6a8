/* Time slices for work on the event loop.
 *
 * The loop polls its descriptors, handles the events, then polls again. When thousands of clients come at once, the one whose
 * answer takes microseconds would wait for all the others between two polls. So each part of a turn of the loop (poll events,
 * ready fibers, the queue of turn_wait) has a time slice; work that can wait checks turn_is_over() and, if so, calls turn_wait.
 * Loop thread only. */
#pragma once

#include <stdbool.h>

#include "base/list.h"

/* True if the current time slice is used up. */
bool turn_is_over(void);

/* True if no time slice was used up within the last second. */
bool turns_are_calm(void);

/* An entry of the queue, zero at first; a member of its owner. */
struct turn_place {
    struct sl_link link;
    void (*run)(struct turn_place *place); /* called after it has left the queue; may queue it again */
    bool taken;
};

void turn_wait(struct turn_place *place, void (*run)(struct turn_place *place)); /* appends it, once */
void turn_leave(struct turn_place *place);                                       /* allowed also if it is not queued */
