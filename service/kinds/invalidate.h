/* Entries that count no longer, because what they were made of has changed. */
#pragma once

#include "cache/cache.h"

/* What has changed at a source: one file; the files of a module, by its debug file and id; or, with neither, all of it. */
struct invalidation {
    struct sl_str source, location, debug_file, debug_id; /* empty = not given */
};
/* Whether the parts go together: a source, and at most one way to say what of it. */
bool invalidation_sound(const struct invalidation *what);
/* cache_invalidate for all of it; answers of sources that are kept in memory are forgotten too. SL_NOT_FOUND when the
 * files of a module are to be found and the source is not configured; SL_MALFORMED for a debug id that is none. */
enum sl_code kinds_invalidate(const struct invalidation *what, struct sl_error *error) SL_SUSPENDS;

/* Hosts that downloads leave alone, because they kept failing, are asked again: by this process, by others of the cache directory and,
 * through Redis, by other machines. As cache_invalidate. */
enum sl_code kinds_release_hosts(struct sl_error *error) SL_SUSPENDS;

/* Whether that was done since then (seconds since the epoch), by whomever. */
bool kinds_hosts_released(int64_t since_s) SL_SUSPENDS;
