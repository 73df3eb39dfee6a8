/* Failures of sources that somebody remembers, and when they are not to be believed any more.
 *
 * That a file could not be had (a time-out, an error of the server, credentials that are refused) is remembered for as long as a
 * miss. It says something of the source and of this moment, and little of the file: so while a source fails, one of the files that
 * failed is asked for again in half a minute, whichever is wanted first; and once the source answers, everything that failed before
 * is asked for again when it is wanted next. A source that answers for some files and fails for others is let off ever more rarely,
 * so that those others are not asked for again all the time.
 *
 * A source is known by its id and the root of its locations. There are two ways to fail, each with a state of its own: not to
 * answer, and to refuse. Loop thread. */
#pragma once

#include "base/error.h"
#include "base/bytes.h"

/* Whether an error is one that a source is to blame for, and not a fact about the file. */
bool origin_is_failure(enum sl_code code);

/* What the source came to when it was asked for the file at the location, a URI. */
void origin_answered(struct sl_str source, struct sl_str location, enum sl_code code);

/* Whether a failure of the file that is remembered since `made_ns` (nanoseconds since the epoch) is to be left aside, and the file
 * to be asked for. May let this one file through for all those of its source. */
bool origin_is_doubted(struct sl_str source, struct sl_str location, enum sl_code code, int64_t made_ns);

/* Another process has got something of the file at that time: the source has answered it. */
void origin_heard(struct sl_str source, struct sl_str location, int64_t made_ns);

void origin_failures_forget(void);
