/* Errors of the log, sent to a Sentry as events (https://develop.sentry.dev/sdk/envelopes/): at most one a minute and call
 * site, a few at a time, each tried once. Nobody waits for it. */
#pragma once

#include "core/fiber.h"
#include "core/secret.h"

/* Whether the text is a DSN: "https://key@host/project". */
bool errors_dsn_valid(struct sl_str dsn);

/* Errors are kept for errors_send from now on. `dsn` must outlive it; absent: nothing is. */
void errors_init(struct sl_secret dsn);

/* A fiber: sends until errors_end, and then what there is. Nothing more is sent when its group is cancelled. */
void errors_send(void *unused) SL_SUSPENDS;
void errors_end(void);
