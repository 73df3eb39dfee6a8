/* `symloom run`: what its files share. */
#pragma once

#include "cli/options.h"
#include "config/config.h"
#include "core/fiber.h"
#include "core/secret.h"

/* ---- processes.c ----
 *
 * Several processes that are one service (http.processes): each is a whole service with a loop and threads of its own, and all
 * accept on the same addresses (SO_REUSEPORT). The parent starts them, starts anew what dies, hands signals on, speaks for all of
 * them with the service manager, and ends when all have ended. Process i is node cluster.node_id + i. */

/* Runs `serve(config, options)` in each child and returns the status of the whole. Called before there are threads; in the
 * children it does not return. */
int processes_run(struct config *config, const struct options *options,
                  int (*serve)(struct config *config, const struct options *options));

/* In a child: its share of what the configuration gives to all of them together, which is memory. */
void process_share(struct config *config);
/* And its share of the cores, for its pool: at least 2 threads. 0, all of them, when there is one process. */
unsigned process_threads(const struct config *config);

/* In a child: tells the parent that a configuration was read anew, so that the others read it too. */
void processes_tell_reload(void);

/* ---- reload.c ---- */

/* Reads the configuration anew and makes it count for caches, downloads, sources and the log. Keys that need a restart keep
 * their values. NULL when it is wrong: then everything stays. `problems` gets errors and warnings, a line each. */
struct config *reload_config(const struct options *options, const struct config *before, struct sl_buf *problems);

/* ---- errors.c ----
 *
 * Errors of the log, sent to a Sentry as events (https://develop.sentry.dev/sdk/envelopes/): at most one a minute and call
 * site, a few at a time, each tried once. Nobody waits for it. */

/* Whether the text is a DSN: "https://key@host/project". */
bool errors_dsn_valid(struct sl_str dsn);

/* Errors are kept for errors_send from now on. `dsn` must outlive it; absent: nothing is. */
void errors_init(struct sl_secret dsn);

/* A fiber: sends until errors_end, and then what there is. Nothing more is sent when its group is cancelled. */
void errors_send(void *unused) SL_SUSPENDS;
void errors_end(void);

/* ---- notify.c ----
 *
 * Telling a service manager of our state: one datagram to NOTIFY_SOCKET (sd_notify(3)). Does nothing without one. */

void notify(const char *state); /* "READY=1" */

/* The same for what is told again and again: dropped when the manager is behind, so that it never blocks. */
void notify_often(const char *state); /* "WATCHDOG=1", "STATUS=..." */

/* How often the manager is to be told that we live: every third of what it waits (WATCHDOG_USEC), in milliseconds; 0 when
 * it does not ask (sd_watchdog_enabled(3)). */
uint64_t notify_watchdog_ms(void);
