/* What the files of core share among themselves: the start and end of each part with the loop. */
#pragma once

#include <stdbool.h>
#include <uv.h>

void turns_open(uv_loop_t *loop);
void turns_close(void);
void fibers_open(uv_loop_t *loop);
bool fibers_run_ready(void); /* until the slice is used up; whether some are left */
void fibers_close(void); /* closes handles; the loop must run once more */
void fibers_free(void);  /* after the loop has ended: stacks and timers */
void guard_open(void);   /* takes SIGBUS */
void pool_open(uv_loop_t *loop);
void pool_close(void);
void pool_set_metrics(void); /* the gauges */
