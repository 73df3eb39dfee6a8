/* Handles two failures of the cache directory. If the disk is full, cleans the cache in the background, so that later writes succeed. If
 * the directory takes no files, results are used, but not stored there, until a fiber finds that it takes files again. */
#include "cache/impl.h"

#include <errno.h>
#include <sys/statvfs.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"

#define CLEAN_EVERY_MS  60000u       /* at most one cleanup in this time */
#define PROBE_EVERY_MS  5000u        /* interval of attempts to create a file */
#define DISK_FULL_BELOW (4ull << 20) /* bytes free */

static struct {
    const struct config *config;
    const struct cache_kind *const *kinds;
    size_t count;
    struct fiber_group *group;
    uint64_t not_before_ms; /* earliest time of the next cleanup */
    uint64_t next_log_ms;
    bool probing; /* probe_fiber runs */
} space;

/* Sets what later cleanups work with, whose fibers belong to `group`. */
void space_init(const struct config *config, const struct cache_kind *const *kinds, size_t count,
                struct fiber_group *group)
{
    space.config = config;
    space.kinds = kinds;
    space.count = count;
    space.group = group;
    space.not_before_ms = 0;
    space.probing = false;
}

void space_configure(const struct config *config)
{
    space.config = config;
}

struct cache_cleanup_run { /* pool work */
    const struct config *config;
    struct cleanup_totals totals;
};

/* Pool work: cleans the cache, and evicts entries even if no limit is configured, as the disk is full (`full`). */
static void clean(void *arg)
{
    struct cache_cleanup_run *c = arg;
    struct cleanup_options options = {.full = true};
    struct sl_error error;
    if (cache_cleanup(c->config, space.kinds, space.count, &options, &c->totals, NULL, &error) != SL_OK)
        log_error("cache", "cannot remove entries from the cache directory to free disk space", LOG_ERR(&error));
}

/* Runs as a fiber: cleans the cache, then unmaps the deleted files, whose disk space the kernel frees only then. */
static void clean_fiber(void *arg)
{
    (void)arg;
    struct cache_cleanup_run c = {.config = config_retain(space.config)};
    if (pool_run(POOL_IO, clean, &c, NULL) == SL_OK)
        log_warn("cache", "removed cache entries to free disk space", LOG_U64("removed", c.totals.removed_files),
                 LOG_U64("freed", c.totals.removed_bytes), LOG_U64("left", c.totals.files));
    config_release(c.config);
    cache_drop_deleted();
}

void space_reclaim(int number)
{
    uint64_t now = loop_now_ms();
    if ((number != ENOSPC && number != EDQUOT) || !space.config->cache_dir || now < space.not_before_ms)
        return;
    space.not_before_ms = now + CLEAN_EVERY_MS;
    log_error("cache", "the disk is full; removing entries from the cache directory",
              LOG_STR("cache_dir", space.config->cache_dir));
    fiber_start(space.group, clean_fiber, NULL);
}

/* Runs as a fiber: tries to create a file in the cache directory every PROBE_EVERY_MS, until that succeeds. */
static void probe_fiber(void *arg)
{
    (void)arg;
    do {
        if (loop_minutely(&space.next_log_ms))
            log_error("cache", "cache directory not writable; new cache entries stay in memory only",
                      LOG_STR("cache_dir", space.config->cache_dir));
        if (!fiber_sleep(PROBE_EVERY_MS))
            break;
        pool_run(POOL_IO, cache_tmp_probe, NULL, NULL);
    } while (!cache_writable());
    space.probing = false;
}

void space_retry(void)
{
    if (!cache_writable() && !space.probing)
        space.probing = fiber_start_admitted(space.group, probe_fiber, NULL);
}

struct space_check {
    const char *dir;
    bool full;
};

/* Pool work, as statvfs waits for the disk: finds out whether the disk is full. */
static void look_for_space(void *arg)
{
    struct space_check *look = arg;
    struct statvfs fs;
    look->full = statvfs(look->dir, &fs) == 0 && fs.f_bavail * fs.f_frsize < DISK_FULL_BELOW;
}

bool space_is_disk_full(void)
{
    struct space_check look = {.dir = space.config->cache_dir}; /* a reload does not change it */
    if (!look.dir || pool_run(POOL_IO, look_for_space, &look, NULL) != SL_OK || !look.full)
        return false;
    space_reclaim(ENOSPC);
    return true;
}
