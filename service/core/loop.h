/* The one event loop (libuv) of the process, its start, its clock and its end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "core/fiber.h"

/* Creates the loop and its thread pool: `pool_threads` threads (0 = loop_cores()), and further ones for background jobs
 * (pool_background_threads). Ignores SIGPIPE and SIGXFSZ. Call it once, before anything else of core. */
void loop_init(unsigned pool_threads);
uv_loop_t *loop_get(void);
unsigned loop_cores(void); /* cores that this process may use by affinity and cgroup quota: 2 to 256 */
unsigned loop_pool_threads(void);

/* Returns the default connection limit of a server: at most 10000, and less than half of the descriptors that the process may have.
 * Computed from the hard limit, to which the service raises its soft limit at the start. */
unsigned loop_default_connections(void);

/* True if the process uses nearly all descriptors that it may have. Finds out by opening one: the kernel returns the lowest free number. */
bool loop_descriptors_short(void);

/* loop_run runs the loop until loop_stop(). loop_run_fiber runs the loop with `run(arg)` as a fiber, and returns when that has ended. */
void loop_run(void);
void loop_run_fiber(void (*run)(void *arg), void *arg);
/* Ends loop_run. */
void loop_stop(void);
void loop_close(void); /* after loop_run: closes what loop_init has opened */

uint64_t loop_now_ms(void); /* monotonic, time at the start of this turn of the loop */
/* True at most once a minute for each `*next_ms`, which is 0 at first: to limit log lines about a state that lasts. */
bool loop_minutely(uint64_t *next_ms);
double loop_busy_seconds(void); /* time since the start that the loop did not spend waiting. Any thread */
uint64_t clock_mono_ns(void);   /* monotonic, now */
int64_t clock_wall_s(void);     /* seconds since the epoch, now */
uint64_t clock_wall_us(void);
