/* The one event loop (libuv) of the process, its start, its clock and its end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "core/fiber.h"

/* Sets the pool size (UV_THREADPOOL_SIZE; 0 = usable cores by affinity and cgroup quota, at least 2), ignores SIGPIPE, makes
 * the loop. Once, before anything else of core. */
void loop_init(unsigned pool_threads);
uv_loop_t *loop_get(void);
unsigned loop_cores(void); /* cores that this process may use, at least 2 */
unsigned loop_pool_threads(void);

/* Default connection limit of a server: at most 10000, and half of the descriptors that are left beside 512 for everything
 * else. Computed from the hard limit, to which the service raises its soft limit at the start. */
unsigned loop_default_connections(void);

/* True if the process is nearly out of descriptors. Tested by opening one: the kernel returns the lowest free number. */
bool loop_descriptors_short(void);

/* loop_run runs until loop_stop(). loop_run_fiber runs `run(arg)` as a fiber and returns when that has ended. */
void loop_run(void);
void loop_run_fiber(void (*run)(void *arg), void *arg);
void loop_stop(void);
void loop_close(void); /* after loop_run: closes what core opened */

uint64_t loop_now_ms(void); /* monotonic, time at the start of this turn of the loop */
/* True at most once a minute per `*next_ms` (0 at first): to limit log lines about a state that lasts. */
bool loop_minutely(uint64_t *next_ms);
double loop_busy_seconds(void); /* time since the start that the loop did not spend waiting. Any thread */
uint64_t clock_mono_ns(void);   /* monotonic, now */
int64_t clock_wall_s(void);     /* seconds since the epoch, now */
uint64_t clock_wall_us(void);
