/* Unmaps cached files: those that were deleted, because the kernel frees their disk space only once no mapping is left; and those that
 * nobody has asked for within memory_idle. Files may be deleted by a cleanup of this process or another one, or by hand. Deleted files are
 * recognized by /proc/self/maps, where the kernel marks their mappings (proc_pid_maps(5)). */
#include "cache/impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "cache/engine.h"
#include "core/duration.h"
#include "core/loop.h"
#include "core/pool.h"

enum { SWEEP_EVERY_MS = 10000, MAX_LINE = 8192 };

struct deleted_mappings {
    uintptr_t *starts; /* ascending, as the kernel lists them */
    size_t count, capacity;
};

/* True if a line of /proc/self/maps is the mapping of a deleted file below `dir`. */
static bool is_deleted_below(const char *line, const char *dir)
{
    static const char mark[] = " (deleted)\n"; /* the kernel appends it to the path */
    const char *path = strchr(line, '/');
    size_t length = strlen(line), size = strlen(dir);
    return path && length > sizeof mark && strcmp(line + length - (sizeof mark - 1), mark) == 0 &&
           strncmp(path, dir, size) == 0 && path[size] == '/';
}

/* Pool work: lists where the deleted files of the cache are mapped. When out of memory the list ends early; the next sweep finds the
 * rest. */
static void list_deleted(void *arg)
{
    struct deleted_mappings *d = arg;
    char *dir = realpath(cache_engine.dir, NULL); /* as /proc/self/maps shows it */
    FILE *maps = dir ? fopen("/proc/self/maps", "re") : NULL;
    char *line = maps ? malloc(MAX_LINE) : NULL;
    while (line && fgets(line, MAX_LINE, maps)) {
        if (!is_deleted_below(line, dir))
            continue;
        if (!sl_grow(&d->starts, &d->capacity, d->count + 1, sizeof *d->starts))
            break;
        d->starts[d->count++] = (uintptr_t)strtoull(line, NULL, 16); /* a line begins with the first address */
    }
    free(line);
    if (maps)
        fclose(maps);
    free(dir);
}

static int by_start(const void *left, const void *right)
{
    const uintptr_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* True if the mapping of the cached file `item` is in the list `arg` (struct deleted_mappings). */
static bool is_deleted(const struct cache_item *item, const void *arg)
{
    const struct deleted_mappings *d = arg;
    uintptr_t start = (uintptr_t)item->mapping.bytes.data;
    return bsearch(&start, d->starts, d->count, sizeof *d->starts, by_start) != NULL;
}

void cache_drop_deleted(void)
{
    struct deleted_mappings deleted = {0};
    if (cache_engine.dir && pool_run(POOL_IO, list_deleted, &deleted, NULL) == SL_OK && deleted.count) {
        for (size_t i = 0; i < cache_engine.count; i++) /* UINT64_MAX: whenever they were last used */
            cache_memory_drop_mapped(&cache_engine.kinds[i].memory, is_deleted, &deleted, UINT64_MAX);
    }
    free(deleted.starts);
}

/* True for every item: cache_memory_drop_mapped then selects by the last use alone. */
static bool is_any(const struct cache_item *item, const void *arg)
{
    (void)item, (void)arg;
    return true;
}

/* Unmaps the cached files that nobody has asked for within memory_idle of the configuration. */
static void drop_idle(void)
{
    uint64_t idle_ms = DURATION_MS(cache_engine.config->memory_idle_ns), now = loop_now_ms();
    if (cache_engine.config->memory_idle_ns == DURATION_NEVER || now < idle_ms)
        return; /* no limit is set, or the clock is younger than the limit: nothing can have been idle for so long */
    for (size_t i = 0; i < cache_engine.count; i++)
        cache_memory_drop_mapped(&cache_engine.kinds[i].memory, is_any, NULL, now - idle_ms);
}

void cache_unmap_repeatedly(void *unused)
{
    (void)unused;
    while (fiber_sleep(SWEEP_EVERY_MS)) {
        drop_idle();
        cache_drop_deleted();
    }
}
