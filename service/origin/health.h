/* State of the configured sources, for operators: results of the files requested from each.
 *
 * A source fails if it is unreachable or refuses the service; "no such file" is a success. The log has a line when a source
 * begins to fail and when it responds again, at most one a minute for each source. Loop thread. */
#pragma once

#include "origin/origin.h"

enum { ORIGIN_OK, ORIGIN_NOT_FOUND, ORIGIN_FAILED, ORIGIN_OUTCOMES };

enum origin_state { ORIGIN_UNKNOWN, ORIGIN_UP, ORIGIN_DOWN };

struct origin_health {
    enum origin_state state;                                /* by the last request; ORIGIN_UNKNOWN: no request yet */
    int64_t last_success_s, last_error_s;                   /* since the epoch; 0 = never */
    char last_error[sizeof((struct sl_error *)0)->message]; /* as shown to clients: without secrets */
    uint64_t last_hour[ORIGIN_OUTCOMES];                    /* number of requested files */
};

/* Returns the state of a configured source; zeros if nothing was requested from it. */
void origin_health(const struct source *source, struct origin_health *health);

/* Enables log lines; commands report failures in another way. */
void origin_health_watch(void);
bool origin_health_is_watched(void); /* true in a service, false in a command */

/* Checks that the directory of a filesystem source is usable. A missing or empty directory is probably not mounted, so nothing is known
 * about its files: SL_DOWNLOAD_ERROR. SL_BUSY if memory or descriptors are short. Blocks. */
enum sl_code origin_check_directory(const char *root, struct sl_error *error);

/* Checks the directories of all filesystem sources. A source without its directory is down, even if no files are requested from it, and up
 * as soon as the directory is there. Returns true if all are there, or could not be checked. */
bool origin_check_directories(const struct source *sources, size_t count) SL_SUSPENDS;

/* Call once a minute: advances the last hour's counters. */
void origin_health_minute(void);

/* Returns how long no request is sent to the source's host because its downloads kept failing; 0 = requests are
 * sent. */
uint64_t origin_blocked_ms(const struct source *source);
