/* A kind with a size of its own (`bounded` of the configuration): when an entry is added and there is too much, those go that were unused for
 * longest, in rounds, until it fits. What memory holds was used last, in its order; of the rest the file's time tells, which a
 * use renews once an hour. The entry that was added stays, however large it is. */
#include "cache/engine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "core/files.h"
#include "core/log.h"
#include "core/metrics.h"
#include "core/pool.h"

#define engine cache_engine

enum { MAX_DEPTH = 4, PATH_BYTES = 128, MAX_WALKS = 8 };

struct size_limit_used { /* by memory */
    char path[PATH_BYTES];
    struct sl_str key; /* a copy */
    bool removed;
};

struct size_limit_entry {
    char path[PATH_BYTES];
    uint64_t bytes;
    int64_t used; /* when; larger = later */
    struct size_limit_used *by;
};

struct size_limit_job {
    const char *dir, *kind;
    uint64_t max_bytes, bytes;
    unsigned round;
    struct size_limit_used *used; /* the one that was used last comes first */
    size_t used_count;
    struct sl_map by_path; /* of `used` */
    struct size_limit_entry *entries;
    size_t count, capacity;
    uint64_t removed, removed_bytes;
};

static struct {
    bool known, running;
    uint64_t bytes;     /* on disk, once it is known */
    uint64_t meanwhile; /* of what was added during a walk, which saw it or did not */
} size_limit;

/* ---- on the pool ---- */

static void size_limit_see(struct size_limit_job *job, const char *path, const struct stat *st)
{
    if (!st->st_size || sl_str_ends(sl_str(path), SL_STR(".metadata")) || strlen(path) >= PATH_BYTES ||
        !sl_grow(&job->entries, &job->capacity, job->count + 1, sizeof *job->entries))
        return;
    struct size_limit_entry *entry = &job->entries[job->count++];
    snprintf(entry->path, sizeof entry->path, "%s", path);
    entry->bytes = (uint64_t)st->st_size;
    entry->by = sl_map_get(&job->by_path, sl_str(path));
    entry->used = entry->by ? INT64_MAX - (entry->by - job->used)
                            : (int64_t)st->st_mtim.tv_sec * CACHE_SECOND_NS + st->st_mtim.tv_nsec;
    job->bytes += entry->bytes;
}

static void size_limit_walk(struct size_limit_job *job, int at, const char *name, const char *path, unsigned depth)
{
    DIR *dir = dir_open(at, name);
    struct stat st;
    for (struct dirent *d; (d = dir_next(dir, &st));) {
        char below[2 * PATH_BYTES];
        if (d->d_name[0] == '.' ||
            snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", d->d_name) >= (int)sizeof below)
            continue;
        if (S_ISREG(st.st_mode))
            size_limit_see(job, below, &st);
        else if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH)
            size_limit_walk(job, dirfd(dir), d->d_name, below, depth + 1);
    }
    if (dir)
        closedir(dir);
}

static int by_use(const void *a, const void *b)
{
    const struct size_limit_entry *x = a, *y = b;
    return x->used < y->used ? -1 : x->used > y->used;
}

static void size_limit_remove(struct size_limit_job *job, int at, struct size_limit_entry *entry)
{
    char side[2 * PATH_BYTES];
    if (unlinkat(at, entry->path, 0) != 0)
        return;
    if (cache_meta_name(entry->path, side, sizeof side))
        unlinkat(at, side, 0);
    job->bytes -= entry->bytes;
    job->removed_bytes += entry->bytes;
    job->removed++;
    if (entry->by)
        entry->by->removed = true;
}

static void size_limit_run(void *arg)
{
    struct size_limit_job *job = arg;
    char path[CACHE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", job->dir, job->kind);
    int at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return;
    size_limit_walk(job, at, ".", "", 0);
    if (job->count)
        qsort(job->entries, job->count, sizeof *job->entries, by_use);
    for (size_t next = 0; job->bytes > job->max_bytes && next + 1 < job->count;)
        for (unsigned i = 0; i < job->round && next + 1 < job->count && job->bytes > job->max_bytes; i++)
            size_limit_remove(job, at, &job->entries[next++]);
    close(at);
}

/* ---- on the loop ---- */

static bool size_limit_use(struct size_limit_job *job, const struct cache_kind *kind, struct sl_str key)
{
    struct size_limit_used *used = &job->used[job->used_count];
    char *copy = malloc(key.size + 1);
    if (!copy)
        return false;
    memcpy(copy, key.data, key.size);
    *used = (struct size_limit_used){.key = {copy, key.size}};
    job->used_count++;
    cache_relative_path(key, kind->version, false, used->path);
    void **slot = sl_map_slot(&job->by_path, sl_str(used->path), NULL);
    if (slot && !*slot)
        *slot = used;
    return slot != NULL;
}

static bool size_limit_uses(struct size_limit_job *job, const struct kind_state *state, struct sl_str added)
{
    size_t count = 1;
    for (const struct cache_memory_entry *e = CACHE_MEMORY_NEWEST(&state->memory); e; e = LRU_OLDER(e, lru))
        count++;
    job->used = calloc(count, sizeof *job->used);
    bool good = job->used && size_limit_use(job, state->kind, added);
    for (const struct cache_memory_entry *e = CACHE_MEMORY_NEWEST(&state->memory); good && e; e = LRU_OLDER(e, lru))
        good = !e->item || size_limit_use(job, state->kind, e->lru.key);
    return good;
}

static void size_limit_end(struct size_limit_job *job, struct kind_state *state)
{
    for (size_t i = 0; i < job->used_count; i++) {
        if (job->used[i].removed)
            cache_memory_forget(&state->memory, job->used[i].key);
        free((char *)(uintptr_t)job->used[i].key.data);
    }
    free(job->used);
    free(job->entries);
    sl_map_free(&job->by_path);
    if (!job->removed)
        return;
    metric_add(METRIC_BOUNDED_EVICTED, job->removed, NULL, NULL, NULL);
    cache_count_removed(state->kind, "size", job->removed, job->removed_bytes);
    log_debug("cache", "made room", LOG_STR("cache", state->kind->name), LOG_U64("removed", job->removed),
              LOG_U64("freed", job->removed_bytes));
}

/* Counts what is on disk and makes room. False when it could not. */
static bool size_limit_count(struct kind_state *state, struct sl_str key)
{
    const struct config *config = engine.config;
    struct size_limit_job job = {.dir = engine.dir,
                                 .kind = state->kind->name,
                                 .max_bytes = config->bounded.max_size,
                                 .round = config->bounded.evict_count};
    struct sl_error error;
    size_limit.meanwhile = 0;
    bool good = size_limit_uses(&job, state, key) && pool_run(POOL_IO, size_limit_run, &job, &error) == SL_OK;
    if (good) {
        size_limit.known = true;
        size_limit.bytes = job.bytes + size_limit.meanwhile;
    }
    size_limit_end(&job, state);
    return good;
}

void size_limit_added(struct kind_state *state, struct sl_str key, uint64_t bytes)
{
    if (state->kind->section != CACHE_BOUNDED || !engine.dir)
        return;
    size_limit.bytes += bytes;
    size_limit.meanwhile += bytes;
    bool small = size_limit.known && size_limit.bytes <= engine.config->bounded.max_size;
    if (!size_limit.running && !small) {
        size_limit.running = true;
        for (int walk = 0; walk < MAX_WALKS && size_limit_count(state, key) && size_limit.meanwhile; walk++)
            ;
        size_limit.known =
            size_limit.known && !size_limit.meanwhile; /* else it is counted too high, and again with the next */
        size_limit.running = false;
    }
    metric_set(METRIC_BOUNDED_BYTES, (double)size_limit.bytes, NULL, NULL, NULL);
}
