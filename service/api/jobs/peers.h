/* Queries the other processes of this service (http.processes), for metrics and state. */
#pragma once

#include "api/api.h"

/* True if this process has to ask the others for its answer: the service has several, and the request is not forwarded by one of
 * them. */
bool peers_should_answer(const struct http_exchange *x);

/* Sends GET `path` to every other process of the service, several at a time, with the client's credentials and `accept` as Accept
 * header (data NULL: anything). Stores each body in texts[index of the process]; the text of a process that does not answer 200
 * within two seconds (restarting or stuck) stays empty, as does that of this process. `texts` has http.processes elements, empty at
 * first, which the caller frees. */
void peers_request(struct http_exchange *x, const char *path, struct sl_str accept, struct sl_buf *texts) SL_SUSPENDS;
