/* The HTTP API: its route families, and the service behind them (jobs, results, health state). */
#pragma once

#include "config/config.h"
#include "http/http.h"

struct service;

/* Makes the service. `config` is used until service_configure replaces it. Call after loop_init. NULL when out of memory. */
struct service *service_new(const struct config *config);

/* All route families, for the options of the HTTP server; their handlers get the service as x->service. The list ends with NULL. */
extern const struct http_family *const api_families[];

/* Replaces the configuration for new requests; running ones keep the configuration with which they began. */
void service_configure(struct service *service, const struct config *config);

/* Reloads the configuration. False if it was rejected: then `problems` gets the reasons, one per line. */
typedef bool service_reload(void *arg, struct sl_buf *problems);
/* Sets the function that POST /admin/reload calls. */
void service_on_reload(struct service *service, service_reload *reload, void *arg);

/* Runs as a fiber until its group is cancelled: records the counters of the metrics each minute, for GET /status, and warns when the clock
 * was set. Ends the process if the thread pool is stalled. */
void service_watch(void *service) SL_SUSPENDS;
/* Runs as a fiber: checks that the directories of filesystem sources exist, as they may not be mounted yet. */
void service_watch_directories(void *service) SL_SUSPENDS;

/* Logs the running jobs and what each waits for (debugging aid). */
void service_log_state(const struct service *service);

/* Begins draining: health checks fail from now on, so that a load balancer sends no more requests; jobs go on. */
void service_drain(struct service *service);

/* True when the service can stop without loss: every job is done, and its result was fetched or has not been polled for 5 s. */
bool service_idle(const struct service *service);
/* Returns the number of running jobs. */
size_t service_running(const struct service *service);

/* Answers all waiting clients, cancels the running jobs, waits for their end and frees what they hold. Call it before stopping the HTTP
 * server, which must still send those answers. */
void service_stop(struct service *service) SL_SUSPENDS;
void service_free(struct service *service);
