/* Private to core: how loop.c starts and ends what runs on the event loop (time slices, fibers, the thread pool), and pool_submit. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/list.h"

void loop_slices_open(uv_loop_t *loop);
void loop_slices_close(void);
void fibers_open(uv_loop_t *loop);
bool fibers_run_ready(void);  /* runs the ready fibers until the time slice is used up; true if some are left */
void fibers_close(void);      /* closes the timers of fibers; the loop must run once more */
void fibers_free(void);       /* after the loop has ended: frees stacks and timers */
void sigbus_guard_open(void); /* installs the handler of SIGBUS */

/* Work for a thread of the pool, submitted by the loop thread. Embedded in a struct of the caller, which must live until `done` is
 * called. */
struct pool_work {
    uv_work_t request;
    struct sl_link link;
    void (*run)(struct pool_work *work);  /* on a thread of the pool */
    void (*done)(struct pool_work *work); /* afterwards, on the loop */
    bool background;                      /* it does not wait in the queue: the caller limits the number of such jobs */
};
void pool_submit_open(uv_loop_t *loop);
void pool_submit(struct pool_work *work); /* first come, first served, at most loop_pool_threads() at a time */

void pool_open(uv_loop_t *loop);
void pool_close(void);
void pool_set_metrics(void); /* sets the pool's gauges */
