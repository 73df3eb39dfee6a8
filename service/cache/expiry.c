/* Expiry of cache entries: contents by the time since their last use (the file's mtime), errors by the time since they were made. */
#include "cache/impl.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "core/duration.h"

int64_t cache_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * CACHE_SECOND_NS + now.tv_nsec;
}

int64_t cache_start_ns(void)
{
    static _Atomic int64_t start;
    int64_t unset = 0, now = cache_now_ns();
    return atomic_compare_exchange_strong(&start, &unset, now) ? now : unset;
}

/* Returns the configured lifetimes of a section; a section unknown here has those of diagnostics. */
const struct cache_lifetimes *cache_get_lifetimes(const struct config *config, enum cache_section section)
{
    switch (section) {
    case CACHE_DOWNLOADED: return &config->downloaded;
    case CACHE_DERIVED: return &config->derived;
    case CACHE_INDEX: return &config->index;
    case CACHE_BOUNDED: return &config->bounded.lifetimes;
    case CACHE_TRANSCODED: return &config->transcoded;
    case CACHE_DIAGNOSTICS: break;
    }
    return &config->diagnostics;
}

enum cache_class cache_get_class(enum sl_code code)
{
    return code == SL_OK ? CACHE_CONTENTS : code == SL_MALFORMED ? CACHE_MALFORMED : CACHE_NEGATIVE;
}

/* Returns the age in nanoseconds; 0 for a time in the future, which a clock that was set back causes. */
static uint64_t age(int64_t then_ns, int64_t now_ns)
{
    return then_ns < now_ns ? (uint64_t)(now_ns - then_ns) : 0;
}

/* Returns the freshness of an entry of this age that expires at the age `limit_ns`. */
static struct cache_freshness until(uint64_t age_ns, uint64_t limit_ns)
{
    if (limit_ns == DURATION_NEVER)
        return (struct cache_freshness){.left_ns = DURATION_NEVER};
    return (struct cache_freshness){.expired = age_ns >= limit_ns,
                                    .left_ns = age_ns < limit_ns ? limit_ns - age_ns : 0};
}

/* True if the entry was made before this process started. A time that is truncated to seconds is compared in whole seconds: else an entry
 * that this process has made in its first second would count as older. */
static bool before_start(const struct cache_facts *facts, int64_t start_ns)
{
    if (facts->created_in_seconds)
        return facts->created_ns / CACHE_SECOND_NS < start_ns / CACHE_SECOND_NS;
    return facts->created_ns < start_ns;
}

struct cache_freshness cache_expiry(const struct cache_lifetimes *lifetimes, const struct cache_facts *facts,
                                    int64_t now_ns, int64_t start_ns, bool restart_retries_malformed)
{
    uint64_t unused = age(facts->mtime_ns, now_ns), old = age(facts->created_ns, now_ns);
    struct cache_freshness verdict;
    switch (facts->class) {
    case CACHE_CONTENTS: /* expire by the time since the last use, which their mtime shows to an hour */
        verdict = (struct cache_freshness){.expired = lifetimes->max_unused_for != DURATION_NEVER &&
                                                      unused > lifetimes->max_unused_for};
        verdict.touch = !verdict.expired && unused >= (uint64_t)CACHE_TOUCH_EVERY_NS;
        /* memory asks the disk again when the mtime is due to be set again */
        verdict.left_ns = verdict.touch                             ? (uint64_t)CACHE_TOUCH_EVERY_NS
                          : unused < (uint64_t)CACHE_TOUCH_EVERY_NS ? (uint64_t)CACHE_TOUCH_EVERY_NS - unused
                                                                    : 0;
        return verdict;
    case CACHE_NEGATIVE:
        return until(old, facts->is_public ? lifetimes->retry_misses_after_public : lifetimes->retry_misses_after);
    case CACHE_MALFORMED: break; /* below */
    }
    verdict = until(old, lifetimes->retry_malformed_after);
    if (restart_retries_malformed && before_start(facts, start_ns))
        verdict.expired = true;
    return verdict;
}

/* True if the entry has another size than its side file says, and the side file is not that of an older entry: the entry was last changed,
 * or made (`born_ns`; 0: unknown), before the side file was written. */
bool cache_entry_damaged(uint64_t size, int64_t mtime_ns, int64_t born_ns, const struct cache_meta *meta)
{
    return meta && meta->has_size && meta->size != size &&
           (mtime_ns <= meta->mtime_ns || (born_ns && born_ns <= meta->mtime_ns));
}

int64_t cache_creation_ns(int at, const char *name)
{
    struct statx stx;
    if (statx(at, name, AT_SYMLINK_NOFOLLOW | (name[0] ? 0 : AT_EMPTY_PATH), STATX_BTIME, &stx) != 0 ||
        !(stx.stx_mask & STATX_BTIME))
        return 0;
    return (int64_t)stx.stx_btime.tv_sec * CACHE_SECOND_NS + stx.stx_btime.tv_nsec;
}

enum sl_code cache_entry_decode(struct sl_bytes head, uint64_t size, const struct cache_meta **meta,
                                struct sl_error *error)
{
    /* An entry is published before its side file: in between, an older side file is still there. */
    if (*meta && (*meta)->has_size && (*meta)->size != size)
        *meta = NULL;
    enum sl_code by_marker = cache_error_decode(head, error);
    if (!*meta || !(*meta)->has_status)
        return by_marker;
    if ((*meta)->status == SL_OK) /* contents that happen to begin like an error's marker */
        return SL_OK;
    if (by_marker != (*meta)->status) /* the side file of an older entry of this name */
        *meta = NULL;
    return by_marker;
}

void cache_entry_facts(enum sl_code code, int64_t mtime_ns, const struct cache_meta *meta, struct cache_facts *facts)
{
    *facts = (struct cache_facts){.class = cache_get_class(code), .mtime_ns = mtime_ns, .created_ns = mtime_ns};
    if (!meta)
        return;
    facts->is_public = meta->is_public;
    facts->created_in_seconds = true;
    facts->exact_ns = meta->created_ns;
    int64_t limit = INT64_MAX / CACHE_SECOND_NS;
    int64_t seconds = meta->created_s < 0 ? 0 : meta->created_s > limit ? limit : meta->created_s;
    facts->created_ns = seconds * CACHE_SECOND_NS;
}
