/* The HTTP API: its families, and the service behind them: jobs, their results, and the state that health checks show. */
#pragma once

#include "config/config.h"
#include "http/http.h"

struct service;

/* `config` counts until there is another one. After loop_init; NULL when out of memory. */
struct service *service_new(const struct config *config);

/* For the server's options, with the service; ends with NULL. */
extern const struct http_family *const api_families[];

/* Another configuration counts for what begins from now on; what runs holds the one it began with. */
void service_configure(struct service *service, const struct config *config);

/* What an operator's request to read the configuration anew does: true, or false and one problem a line. */
typedef bool service_reload(void *arg, struct sl_buf *problems);
void service_on_reload(struct service *service, service_reload *reload, void *arg);

/* A fiber: what the service does is noted each minute, for GET /status, until the group is cancelled. */
void service_watch(void *service) SL_SUSPENDS;
/* Looks at the directories of sources, which may not be mounted. */
void service_watch_directories(void *service) SL_SUSPENDS;

/* Logs what runs and what it waits for, for people who ask. */
void service_log_state(const struct service *service);

/* Health checks begin to fail; work goes on. */
void service_drain(struct service *service);

/* True when every job is done and its result was fetched, or nobody has polled it for 5 s. */
bool service_idle(const struct service *service);
size_t service_running(const struct service *service);

/* Answers all waiters, cancels what runs, waits for its end and frees. The server must be stopped after it. */
void service_stop(struct service *service) SL_SUSPENDS;
void service_free(struct service *service);
