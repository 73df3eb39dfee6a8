/* The HTTP API: its route families, and the service behind them (jobs, results, health state). */
#pragma once

#include "config/config.h"
#include "http/http.h"

struct service;

/* `config` is used until service_configure replaces it. Call after loop_init. NULL when out of memory. */
struct service *service_new(const struct config *config);

/* Route families for the server's options, with the service as argument; the list ends with NULL. */
extern const struct http_family *const api_families[];

/* Replaces the configuration for new work; running work holds the one that it began with. */
void service_configure(struct service *service, const struct config *config);

/* Reloads the configuration at an operator's request. False: `problems` has one problem a line. */
typedef bool service_reload(void *arg, struct sl_buf *problems);
void service_on_reload(struct service *service, service_reload *reload, void *arg);

/* A fiber that records the counters each minute, for GET /status, until its group is cancelled. */
void service_watch(void *service) SL_SUSPENDS;
/* Checks the directories of sources, as they may not be mounted yet. */
void service_watch_directories(void *service) SL_SUSPENDS;

/* Logs the running jobs and what each waits for (debugging aid). */
void service_log_state(const struct service *service);

/* Makes health checks fail (draining); jobs go on. */
void service_drain(struct service *service);

/* True when every job is done and its result was fetched, or was not polled for 5 s. */
bool service_idle(const struct service *service);
size_t service_running(const struct service *service);

/* Answers all waiting clients, cancels the running jobs, waits for their end and frees what they hold. Stop the server after
 * it. */
void service_stop(struct service *service) SL_SUSPENDS;
void service_free(struct service *service);
