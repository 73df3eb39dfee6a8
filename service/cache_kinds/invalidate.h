/* Invalidates cache entries that were made from files which have changed since. */
#pragma once

#include "cache/cache.h"

/* What has changed at a source: one file; the files of a module, by its debug file and id; or, with neither, everything. */
struct invalidation {
    struct sl_str source, location, debug_file, debug_id; /* empty = not given */
};
/* True if `what` has a source, and at most one of a location and a module. */
bool invalidation_is_valid(const struct invalidation *what);
/* Invalidates the entries made from the files that `what` names (cache_invalidate), and drops the lists of files of all sources from
 * memory. For a module: SL_NOT_FOUND if the source is not configured, SL_MALFORMED if the debug id is invalid. Else as cache_invalidate. */
enum sl_code invalidate_entries(const struct invalidation *what, struct sl_error *error) SL_SUSPENDS;

/* Unblocks hosts to which downloads kept failing: in this process, in others with the same cache directory and, through Redis, on
 * other machines. Returns the errors of cache_invalidate, which carries the message to the other processes. */
enum sl_code release_blocked_hosts(struct sl_error *error) SL_SUSPENDS;

/* True if any process has called release_blocked_hosts since `since_s` (seconds since the epoch). */
bool were_hosts_released_since(int64_t since_s) SL_SUSPENDS;
