/* Invalidation of entries whose sources have changed. */
#pragma once

#include "cache/cache.h"

/* What has changed at a source: one file; the files of a module, by its debug file and id; or, with neither, everything. */
struct invalidation {
    struct sl_str source, location, debug_file, debug_id; /* empty = not given */
};
/* True for a source with at most one of these. */
bool invalidation_is_valid(const struct invalidation *what);
/* Calls cache_invalidate for the files; also drops responses of sources that are cached in memory. SL_NOT_FOUND if the files of
 * a module are wanted and the source is not configured; SL_MALFORMED for an invalid debug id. */
enum sl_code invalidate_entries(const struct invalidation *what, struct sl_error *error) SL_SUSPENDS;

/* Unblocks hosts to which downloads kept failing: in this process, in others of the cache directory and, through Redis, on
 * other machines. Like cache_invalidate. */
enum sl_code release_blocked_hosts(struct sl_error *error) SL_SUSPENDS;

/* True if any process has done that since `since_s` (seconds since the epoch). */
bool were_hosts_released_since(int64_t since_s) SL_SUSPENDS;
