/* `symloom run`: declarations that its files share. */
#pragma once

#include "cli/options.h"
#include "config/config.h"
#include "core/fiber.h"
#include "core/secret.h"

/* ---- processes.c ----
 *
 * Several processes that form one service (http.processes). Each is a complete service with its own loop and threads; all listen on the
 * same addresses (SO_REUSEPORT). The parent starts them, restarts those that die, forwards signals, talks to the service manager, and
 * exits when all have exited. In a cluster, process i is the node cluster.node_id + i. */

/* Runs `serve(config, options)` in each child process and returns, when all have exited, the exit status of the service. Call it before
 * any thread starts; in the children it does not return. */
int processes_run(struct config *config, const struct options *options,
                  int (*serve)(struct config *config, const struct options *options));

/* In a child: divides the memory limit, which the configuration sets for all processes together, by their number. Does nothing when the
 * service is one process. */
void process_share(struct config *config);
/* Returns how many pool threads a child starts: its share of the cores, at least 2. 0, which means all cores, when the service is one
 * process. */
unsigned process_threads(const struct config *config);

/* In a child: tells the parent that it reloaded the configuration, so that the other children reload too. Does nothing elsewhere. */
void processes_forward_reload(void);

/* ---- reload.c ---- */

/* Reloads the configuration and applies it to caches, downloads, sources and the log. Keys that need a restart keep the values that they
 * have in `before`. Returns the new configuration; NULL when it has errors: then nothing changes. `problems` gets errors and warnings, one
 * a line. */
struct config *reload_config(const struct options *options, const struct config *before, struct sl_buf *problems);

/* ---- errors.c ----
 *
 * Sends logged errors to Sentry as events (https://develop.sentry.dev/sdk/envelopes/): at most one a minute for each place in the code
 * that logs, without retries. Logging an error never waits for it. */

/* True if the text is a DSN: "https://key@host/project". */
bool errors_dsn_valid(struct sl_str dsn);

/* From now on queues logged errors for errors_send. `dsn` is read until errors_send has ended; without a DSN this does nothing. */
void errors_init(struct sl_secret dsn);

/* A fiber: sends queued errors until errors_end is called, then the rest of the queue. When its group is cancelled it ends: sending then
 * fails at once, and the rest is lost. `unused` is NULL. */
void errors_send(void *unused) SL_SUSPENDS;
void errors_end(void); /* lets errors_send send the rest of the queue and end */

/* ---- service_manager.c ----
 *
 * Service manager notifications: one datagram to NOTIFY_SOCKET (sd_notify(3)). Does nothing if that is unset. */

void service_manager_notify(const char *state); /* "READY=1" */

/* Sends a notification to the service manager, but drops it if the manager does not keep up with reading them: it never blocks. For those
 * that are repeated anyway. */
void service_manager_notify_limited(const char *state); /* "WATCHDOG=1", "STATUS=..." */

/* Returns how often "WATCHDOG=1" is to be sent, in milliseconds: a third of the manager's timeout (WATCHDOG_USEC), so that one late message
 * does not end the service; 0 when the watchdog is off (sd_watchdog_enabled(3)). */
uint64_t service_manager_watchdog_ms(void);
