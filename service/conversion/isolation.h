/* Where conversions run: in confined worker processes (worker/worker.h), or in threads of this process.
 *
 *     isolation_prepare       first of all: forks the launcher, when there are neither threads nor secrets
 *     isolation_open          with the configuration, after loop_init: starts the workers, or ends the launcher
 *     isolation_configure     for each new configuration
 *     isolation_close         when no conversion runs any more
 *
 * Without isolation_prepare, as in commands, conversions run in threads. All functions are for the loop thread. */
#pragma once

#include "config/config.h"
#include "conversion/converter.h"

/* Forks the launcher, whose workers run these converters (catalog/catalog.h); `prepare` is that of worker_launcher_start. False with
 * `error`: conversions will run in threads. */
bool isolation_prepare(const struct converter *const *converters, size_t count, void (*prepare)(void),
                       struct sl_error *error);

/* For a service of several processes, before each fork: has the launcher fork another one, which the next child of this process uses
 * instead. After the fork, the child calls isolation_take_launcher(true), this process isolation_take_launcher(false). */
void isolation_split_launcher(void);
/* Process id of the launcher that this process keeps, to know it among its children; -1 = none. */
pid_t isolation_launcher_pid(void);
void isolation_take_launcher(bool is_child);

/* Starts the workers if the configuration asks for processes and the machine can confine them; logs why not. Blocks for some
 * milliseconds until the first worker has told what confines it. */
void isolation_open(const struct config *config);
void isolation_configure(const struct config *config);
void isolation_close(void);

struct isolation_status {
    bool is_process;             /* false: conversions run in threads */
    const char *reason;          /* why they run in threads although processes are configured; NULL = they do not */
    struct worker_text measures; /* what confines the workers */
    struct worker_counts counts;
};
void isolation_get_status(struct isolation_status *status);

/* True after the launcher has ended by itself: conversions fail with SL_BUSY until the service is started again. */
bool isolation_is_lost(void);

/* Sets the gauges of the workers, before metrics are written. */
void isolation_set_metrics(void);

/* ---- for `symloom config check` ---- */

/* Starts a worker to find out what confines it here, and ends it. SL_UNSUPPORTED: nothing does. Call it while the process has one
 * thread. */
enum sl_code isolation_probe(struct worker_text *measures, struct sl_error *error);

/* ---- for conversion_run ---- */

/* Returns the pool of workers; NULL: conversions run in threads. */
struct worker_pool *isolation_pool(void);
/* Begins a call of this pool from the loop, as worker_begin; with the answer, wakes a fiber of `waiting`. NULL: use worker_run. */
struct running_job *isolation_begin(const struct worker_function *function, const struct worker_call *call,
                                    void *result, struct fiber_wait_list *waiting);
/* Returns the function of the workers that runs the converter; NULL if it is none of isolation_prepare. Any thread. */
const struct worker_function *isolation_function(const struct converter *converter);
