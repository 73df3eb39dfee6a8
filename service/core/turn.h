/* The time of the loop, shared out.
 *
 * The loop looks at its descriptors, then does what came in, then looks again. When thousands of clients come at once, the
 * one whose answer takes microseconds would wait for all the others between two looks. So each part of a turn (what poll
 * reports, fibers that are ready, those who wait for their turn) has a slice of time; what can wait asks whether it is used
 * up, and if so stands in line. Loop thread only. */
#pragma once

#include <stdbool.h>

#include "base/list.h"

/* Whether the slice of what runs now is used up. */
bool turn_is_over(void);

/* Whether that has not been so for a second. */
bool turns_are_calm(void);

/* A place in the line, zero at first; part of what its owner waits with. */
struct turn_place {
    struct sl_link link;
    void (*run)(struct turn_place *place); /* it has left the line then, and may enter it again */
    bool taken;
};

void turn_wait(struct turn_place *place, void (*run)(struct turn_place *place)); /* at the end of the line, once */
void turn_leave(struct turn_place *place);                                       /* also when it is not in it */
