/* The one event loop (libuv) of the process, its start, its clock and its end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "core/fiber.h"

/* Sets the pool size (UV_THREADPOOL_SIZE; 0 = usable cores by affinity and cgroup quota, at least 2), ignores SIGPIPE,
 * makes the loop. Once, before anything else of core. */
void loop_init(unsigned pool_threads);
uv_loop_t *loop_get(void);
unsigned loop_cores(void); /* that this process may use, at least 2 */
unsigned loop_pool_threads(void);

/* How many connections a server takes by default: at most 10000, and half of the descriptors that are left beside 512 for
 * everything else. Counts with the hard limit, which the service makes its own at the start. */
unsigned loop_default_connections(void);

/* Whether nearly all descriptors that the process may have are in use: the next one it gets tells, as they are given out
 * from the bottom. */
bool loop_descriptors_short(void);

/* loop_run runs until loop_stop() was called. loop_run_fiber runs `run(arg)` as a fiber and returns when that has ended. */
void loop_run(void);
void loop_run_fiber(void (*run)(void *arg), void *arg);
void loop_stop(void);
void loop_close(void); /* after loop_run: closes what core opened */

uint64_t loop_now_ms(void); /* monotonic, as of this loop turn */
/* True at most once a minute for one `*next_ms` (0 at first): for lines of the log about a state that lasts. */
bool loop_minutely(uint64_t *next_ms);
double loop_busy_seconds(void); /* since the start, in which it did not wait. Any thread */
uint64_t clock_mono_ns(void);   /* monotonic, now */
int64_t clock_wall_s(void);     /* seconds since the epoch, now */
uint64_t clock_wall_us(void);
