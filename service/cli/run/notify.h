/* Telling a service manager of our state: one datagram to NOTIFY_SOCKET (sd_notify(3)). Does nothing without one. */
#pragma once

#include <stdint.h>

void notify(const char *state); /* "READY=1" */

/* The same for what is told again and again: dropped when the manager is behind, so that it never blocks. */
void notify_often(const char *state); /* "WATCHDOG=1", "STATUS=..." */

/* How often the manager is to be told that we live: every third of what it waits (WATCHDOG_USEC), in milliseconds; 0 when
 * it does not ask (sd_watchdog_enabled(3)). */
uint64_t notify_watchdog_ms(void);
