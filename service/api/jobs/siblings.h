/* The processes of one service (http.processes), asked for what each of them knows: its metrics, how it is. */
#pragma once

#include "api/api.h"

/* Whether an answer is to speak for all processes: there are several, and it is a client who asks, not one of them. */
bool siblings_speak(const struct http_exchange *x);

/* Asks every other process GET `path`, side by side, with the client's credentials and that Accept (empty: anything), and puts
 * what each answered into texts[its index], which is empty before; the caller frees the texts, of which there are
 * http.processes, and the one of this process is not touched. A process that does not answer within two seconds, or does not
 * say 200, is left empty: it is being started anew, or stands still. */
void siblings_ask(struct http_exchange *x, const char *path, struct sl_str accept, struct sl_buf *texts) SL_SUSPENDS;
