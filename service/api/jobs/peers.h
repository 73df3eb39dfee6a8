/* Queries the other processes of this service (http.processes), for metrics and state. */
#pragma once

#include "api/api.h"

/* True if the answer has to cover all processes: there are several, and the request comes from a client, not from one of them. */
bool peers_should_answer(const struct http_exchange *x);

/* Sends GET `path` to every other process concurrently, with the client's credentials and that Accept (empty: anything), and
 * stores each answer in texts[index of the process]. The caller provides http.processes empty texts and frees them; the own one
 * is not touched. A process without a 200 within two seconds (restarting or stuck) is left empty. */
void peers_request(struct http_exchange *x, const char *path, struct sl_str accept, struct sl_buf *texts) SL_SUSPENDS;
