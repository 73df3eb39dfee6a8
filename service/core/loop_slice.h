/* Time slices for work on the event loop.
 *
 * The loop polls its descriptors, handles the events, then polls again. When thousands of clients come at once, one whose answer
 * takes microseconds would wait for the work of all the others between two polls. So each part of a turn of the loop (events of the
 * poll, ready fibers, the queue of loop_waiter_enter) has a time slice. Work that can wait for the next turn calls
 * loop_slice_is_used_up() and, if that is true, loop_waiter_enter. Loop thread only. */
#pragma once

#include <stdbool.h>

#include "base/list.h"

/* True if the current time slice is used up. */
bool loop_slice_is_used_up(void);

/* True if no time slice was used up within the last second. */
bool loop_is_calm(void);

/* An entry of the queue of work that waits for the next turn of the loop; zero at first, embedded in a struct of its owner. */
struct loop_waiter {
    struct sl_link link;
    void (*run)(struct loop_waiter *waiter); /* called after it has left the queue; may queue it again */
    bool taken;                              /* the entry is in the queue */
};

/* Appends the entry to the queue, unless it is in it already; `run` is called in this or a later turn of the loop. */
void loop_waiter_enter(struct loop_waiter *waiter, void (*run)(struct loop_waiter *waiter));
void loop_waiter_leave(struct loop_waiter *waiter); /* takes it out of the queue, if it is there */
