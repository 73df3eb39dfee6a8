/* Telling a service manager of our state: one datagram to NOTIFY_SOCKET (sd_notify(3)). Does nothing without one. */
#pragma once

void notify(const char *state); /* "READY=1" */
