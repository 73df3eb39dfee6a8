/* Where conversions run: in confined worker processes (worker/worker.h), or in threads of this process.
 *
 *     isolation_prepare       first of all, when the process has neither threads nor secrets: forks the launcher (a small process that
 *                             forks the workers)
 *     isolation_open          with the configuration, after loop_init: starts the workers, or, if threads are configured, ends the launcher
 *     isolation_configure     for each new configuration
 *     isolation_close         when no conversion runs any more
 *
 * Without isolation_prepare, as in commands, conversions run in threads. All functions are for the loop thread. */
#pragma once

#include "config/config.h"
#include "conversion/converter.h"

/* Forks the launcher, a process that forks the workers, which run these converters (catalog/catalog.h). The launcher calls `prepare` first
 * (NULL = nothing): the workers inherit what it sets up. False with `error`: conversions will run in threads. */
bool isolation_prepare(const struct converter *const *converters, size_t count, void (*prepare)(void),
                       struct sl_error *error);

/* For a service of several processes, before each fork: has the launcher (the process that forks workers) fork a second launcher for the
 * child. After the fork, the child calls isolation_take_launcher(true), this process isolation_take_launcher(false). */
void isolation_split_launcher(void);
/* Returns the process id of the launcher (the process that forks workers) that this process keeps, so that it knows it among its children;
 * -1 = none. */
pid_t isolation_launcher_pid(void);
/* After the fork that isolation_split_launcher has prepared: keeps the new launcher in the child, the old one in the parent. */
void isolation_take_launcher(bool is_child);

/* Starts the workers, and blocks for some milliseconds until the first one has told what confines it. If the configuration asks for
 * threads, ends the launcher instead. If processes are configured but no worker can be started or confined, logs why: conversions then run
 * in threads. */
void isolation_open(const struct config *config);
void isolation_configure(const struct config *config);
/* Ends the workers and the launcher; call it when no conversion runs any more. */
void isolation_close(void);

struct isolation_status {
    bool is_process;             /* false: conversions run in threads */
    const char *reason;          /* if processes are configured, but conversions run in threads: why; else NULL */
    struct worker_text measures; /* names of the mechanisms that confine the workers */
    struct worker_counts counts;
};
/* Gets where conversions run. If they run in threads, `measures` and `counts` are zero. */
void isolation_get_status(struct isolation_status *status);

/* True after the launcher (the process that forks workers) has ended unasked: conversions fail with SL_BUSY until the service is
 * restarted. */
bool isolation_is_lost(void);

/* Sets the metrics of the worker processes to their present values. Call it before metrics are written. */
void isolation_set_metrics(void);

/* ---- for `symloom config check` ---- */

/* Starts a worker to find out which mechanisms confine workers on this machine, writes their names to `measures`, and ends the worker.
 * SL_UNSUPPORTED: none does. Call it while the process has one thread. */
enum sl_code isolation_probe(struct worker_text *measures, struct sl_error *error);

/* ---- for conversion_run ---- */

/* Returns the pool of worker processes; NULL if conversions run in threads. */
struct worker_pool *isolation_pool(void);
/* Begins a call of a worker process without blocking the loop (worker_begin), and wakes one fiber of `waiting` when the answer has come.
 * NULL if the call cannot begin: then call worker_run on a pool thread instead. */
struct running_job *isolation_begin(const struct worker_function *function, const struct worker_call *call,
                                    void *result, struct fiber_wait_list *waiting);
/* Returns the worker function that runs the converter; NULL if the converter was not given to isolation_prepare. Any thread. */
const struct worker_function *isolation_function(const struct converter *converter);
