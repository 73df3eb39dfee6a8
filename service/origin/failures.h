/* Invalidation of cached failures: decides when a cached failure of a source is no longer valid.
 *
 * If a file could not be fetched (timeout, server error, refused credentials), the failure is cached as long as a miss. But it says
 * more about the source at that moment than about the file. So while a source fails, one probe is made every half minute: the next
 * failed file that is requested is fetched again. Once the source responds, all earlier failures are invalid, and the files are fetched
 * again when they are requested next. If a source responds for some files and fails for others, the interval between such
 * invalidations doubles each time, up to an hour, so that the others are not fetched over and over.
 *
 *     12:00:00  a.so: timeout, b.so: timeout      both failures are cached
 *     12:00:30  b.so requested                    probe: fetched again, timeout; a.so keeps its cached failure until 12:01:00
 *     12:01:00  a.so requested                    probe: found; the failure of b.so is now invalid
 *
 * A source is identified by its id and the scheme and host of its locations. Two kinds of failure have separate states: unreachable
 * and refused. Loop thread. */
#pragma once

#include "base/error.h"
#include "base/bytes.h"

/* True if the error says something about the source and not about the file. */
bool origin_is_failure(enum sl_code code);

/* Records the result of requesting the file at the location, a URI, from the source. */
void origin_record_result(struct sl_str source, struct sl_str location, enum sl_code code);

/* True if the failure of the file cached at `made_ns` (nanoseconds since the epoch) is to be ignored and the file to
 * be fetched. May choose this file as the probe of its source. */
bool origin_should_retry(struct sl_str source, struct sl_str location, enum sl_code code, int64_t made_ns);

/* Called for a file that a client waits for: if the source has not failed within the last 5 s, the next probe may be made at once. */
void origin_hurry_probe(struct sl_str source, struct sl_str location);

/* Records that another process got a response for the file from the source at `made_ns` (nanoseconds since the epoch). */
void origin_note_success(struct sl_str source, struct sl_str location, int64_t made_ns);

void origin_failures_clear(void);
