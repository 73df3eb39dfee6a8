/* Shared by the files of core: start and end of each part of the loop. */
#pragma once

#include <stdbool.h>
#include <uv.h>

void loop_slices_open(uv_loop_t *loop);
void loop_slices_close(void);
void fibers_open(uv_loop_t *loop);
bool fibers_run_ready(void);  /* runs them until the time slice is used up; true if some are left */
void fibers_close(void);      /* closes handles; the loop must run once more */
void fibers_free(void);       /* after the loop has ended: stacks and timers */
void sigbus_guard_open(void); /* installs the handler of SIGBUS */
void pool_open(uv_loop_t *loop);
void pool_close(void);
void pool_set_metrics(void); /* sets the pool's gauges */
