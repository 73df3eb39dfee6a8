/* How the configured sources are doing: what became of the files that were asked of each, for people who look.
 *
 * A source fails when it cannot be had or refuses us; that it has no such file is an answer. The log is told when a source
 * begins to fail and when it answers again, at most once a minute for each. Loop thread. */
#pragma once

#include "origin/origin.h"

enum { ORIGIN_OK, ORIGIN_NOT_FOUND, ORIGIN_FAILED, ORIGIN_OUTCOMES };

enum origin_state { ORIGIN_UNKNOWN, ORIGIN_UP, ORIGIN_DOWN };

struct origin_health {
    enum origin_state state;                                /* by what was asked last; ORIGIN_UNKNOWN: nothing was */
    int64_t last_success_s, last_error_s;                   /* since the epoch; 0 = never */
    char last_error[sizeof((struct sl_error *)0)->message]; /* as clients see it: no secrets */
    uint64_t last_hour[ORIGIN_OUTCOMES];                    /* files asked for */
};

/* Of a configured source; zeros when nothing was asked of it. */
void origin_health(const struct source *source, struct origin_health *health);

/* Begins to tell the log; a command's user is told otherwise. */
void origin_health_watch(void);
bool origin_health_is_watched(void); /* it is a service that asks, not a command */

/* Whether the directory of a filesystem source can be used: one that is not there, or empty, is one that is not mounted, and nothing is
 * known of its files. SL_DOWNLOAD_ERROR, SL_BUSY. Blocks. */
enum sl_code origin_check_directory(const char *root, struct sl_error *error);

/* Looks at the directories of those sources that are some: a source without one is down, also if nobody asks it for files, and up as
 * soon as it has one. True when all of them are there. */
bool origin_look_at_directories(const struct source *sources, size_t count) SL_SUSPENDS;

/* Once a minute: the last hour moves on. */
void origin_health_minute(void);

/* For how long nothing will be asked of the source's host because its downloads kept failing; 0 = it may be asked. */
uint64_t origin_blocked_ms(const struct source *source);
