/* The HTTP API: route table and the families' handlers. */
#pragma once

#include "config/config.h"
#include "http/http.h"

struct service; /* requests in flight, configuration: service.c */

/* `config` must outlive the service. */
struct service *service_new(const struct config *config);
void service_free(struct service *service);

extern const struct http_route api_routes[]; /* ends with a NULL method */

void service_drain(struct service *service);
/* True when every job is done and its result was fetched, or nobody polled it for 5 s. */
bool service_idle(const struct service *service);
