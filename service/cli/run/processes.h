/* Several processes that are one service (http.processes): each is a whole service with a loop and threads of its own, and all
 * accept on the same addresses (SO_REUSEPORT). The parent starts them, starts anew what dies, hands signals on, speaks for all of
 * them with the service manager, and ends when all have ended. Process i is node cluster.node_id + i. */
#pragma once

#include "config/config.h"

struct options;

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
