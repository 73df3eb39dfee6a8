/* Keeps the cache directory within its limits. Instead of a list of a million names it walks over the files twice: the first walk counts
 * the bytes of each age, which gives the age from which on files must go; the second one removes them.
 *
 * Also keeps the kind that has a size limit of its own (section CACHE_BOUNDED) within that: when an entry is added and the limit is
 * exceeded, removes the least recently used ones until it is met. Entries that are in memory were used last, in the order of the memory's
 * LRU list; for the others the mtime decides, which a use sets once an hour. The entry that was added stays, however large it is. */
#include "cache/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/grow.h"
#include "core/files.h"
#include "core/log.h"
#include "core/metrics.h"
#include "core/pool.h"

enum {
    AGES = 1 << 16,    /* ages are counted in minutes, from 0 to AGES - 1; older files count as AGES - 1 */
    SPARED_BELOW = 10, /* minutes: younger files are in use, and stay */
    PERCENT_KEPT = 90, /* percentage of the limit that the cache may still use after an eviction */
};

/* Kinds that are evicted first: their entries are downloaded or made again without an expensive conversion. */
static const char *const cheap[] = {"objects", "sourcefiles", "sourcemap_caches"};

struct eviction {
    const struct cache_budget *budget;
    int64_t now_ns;
    uint64_t used;       /* bytes of all files */
    uint64_t *by_age[2]; /* by age in minutes: bytes that may be evicted, of the cheap kinds and of the others */
    uint64_t to_free;    /* bytes that are still to be evicted */
    unsigned min_age;    /* second walk: files of this age and older go, until `to_free` is 0 */
    bool removing;       /* second walk */
    /* of the kind that is being walked */
    bool expensive; /* it is not among the cheap ones */
    bool wanted;    /* its files may be evicted */
    struct cleanup_totals *totals;
};

static bool is_cheap(const char *kind)
{
    for (size_t i = 0; i < sizeof cheap / sizeof *cheap; i++)
        if (strcmp(cheap[i], kind) == 0)
            return true;
    return false;
}

/* Returns the disk space that removing the file frees: small files take whole blocks, and new ones may have none
 * allocated yet. */
static uint64_t get_disk_space(const struct stat *st)
{
    uint64_t blocks = (uint64_t)st->st_blocks * 512, size = (uint64_t)st->st_size;
    return blocks > size ? blocks : size;
}

/* Returns the minutes since the last use, as an index of by_age: at most AGES - 1. */
static unsigned get_age(const struct eviction *e, const struct stat *st)
{
    int64_t minutes = (e->now_ns / CACHE_SECOND_NS - (int64_t)st->st_mtim.tv_sec) / 60;
    return minutes < 0 ? 0 : minutes < AGES ? (unsigned)minutes : AGES - 1;
}

/* Removes an entry and its side file, and counts that in `totals` and `to_free`; in a dry run only counts. */
static void remove_entry(struct eviction *e, int at, const char *name, const struct stat *st)
{
    char side[300];
    struct stat side_st;
    uint64_t space = get_disk_space(st);
    if (cache_meta_name(name, side, sizeof side) && fstatat(at, side, &side_st, AT_SYMLINK_NOFOLLOW) == 0)
        space += get_disk_space(&side_st);
    else
        side[0] = '\0';
    if (!e->budget->dry_run) {
        if (unlinkat(at, name, 0) != 0)
            return;
        if (side[0])
            unlinkat(at, side, 0);
    }
    e->to_free -= space < e->to_free ? space : e->to_free;
    e->totals->removed_files++;
    e->totals->removed_bytes += (uint64_t)st->st_size;
    /* not below 0: an entry that was added meanwhile is not in the totals */
    e->totals->files -= e->totals->files > 0;
    e->totals->bytes -= (uint64_t)st->st_size < e->totals->bytes ? (uint64_t)st->st_size : e->totals->bytes;
}

/* dir_walk.visit: the first walk adds each file to `used` and by_age; later ones (`removing`), which visit only kinds that may be evicted,
 * remove it if its last use was long enough ago. Returns false, so that the walk does not count the directory as emptied. */
static bool visit(void *arg, const struct dir_entry *entry)
{
    struct eviction *e = arg;
    const struct stat *st = entry->st;
    if (!S_ISREG(st->st_mode))
        return false;
    unsigned age = get_age(e, st); /* minutes since the last use */
    /* an empty file is a miss and takes no space */
    bool may_go = !cache_is_side_file(entry->name) && st->st_size > 0;
    if (!e->removing) {
        e->used += get_disk_space(st);
        if (may_go && e->wanted)
            e->by_age[e->expensive][age] += get_disk_space(st);
    } else if (may_go && age >= SPARED_BELOW && age >= e->min_age && e->to_free > 0) { /* younger files are in use */
        remove_entry(e, entry->at, entry->name, st);
    }
    return false;
}

/* Returns how many bytes must go so that the cache is within its size limit and the disk has its minimum of free space. If a limit is
 * exceeded, that is more than the excess, down to PERCENT_KEPT of the limit, so that the next file does not exceed it again. With
 * budget.full, when writing has failed as the disk is full, something must go in any case. */
static uint64_t get_bytes_to_free(const struct eviction *e)
{
    const struct cache_budget *b = e->budget;
    uint64_t allowed = b->max_size;
    struct statvfs fs;
    if (b->min_free != UINT64_MAX && statvfs(b->cache_dir, &fs) == 0) {
        /* the space that the cache uses or could use; all of it but min_free is allowed */
        uint64_t all = e->used + (uint64_t)fs.f_bavail * fs.f_frsize;
        uint64_t by_free = all > b->min_free ? all - b->min_free : 0;
        allowed = by_free < allowed ? by_free : allowed;
    }
    if (b->full && allowed > e->used)
        allowed = e->used;
    uint64_t kept = allowed / 100 * PERCENT_KEPT + allowed % 100 * PERCENT_KEPT / 100; /* without overflow */
    return e->used > allowed || b->full ? e->used - kept : 0;
}

/* Returns the age at which removing all files of this age and older frees at least `bytes`; at least SPARED_BELOW, as younger files are in
 * use. */
static unsigned get_min_age(const uint64_t *by_age, uint64_t bytes)
{
    unsigned age = AGES;
    for (uint64_t sum = 0; age > SPARED_BELOW && sum < bytes;)
        sum += by_age[--age];
    return age;
}

/* Walks the directories of kinds: of all if `all`, else only of the cheap or the expensive ones (`expensive`) that may be evicted
 * (`wanted`). */
static void walk_kinds(struct eviction *e, const char *const *names, const bool *wanted, size_t count,
                       struct cleanup_totals *totals, int at, bool expensive, bool all)
{
    for (size_t i = 0; i < count; i++) {
        e->expensive = !is_cheap(names[i]);
        e->wanted = wanted[i];
        e->totals = &totals[i];
        if (all || (e->expensive == expensive && wanted[i]))
            dir_walk(&(struct dir_walk){.depth = CACHE_TREE_DEPTH, .visit = visit, .arg = e}, at, names[i]);
    }
}

void cache_evict(const struct cache_budget *budget, const char *const *names, const bool *wanted, size_t count,
                 struct cleanup_totals *totals)
{
    struct eviction e = {.budget = budget, .now_ns = cache_now_ns()};
    int at = open(budget->cache_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t *ages = calloc((size_t)2 * AGES, sizeof *ages);
    if (at >= 0 && ages) {
        e.by_age[0] = ages;
        e.by_age[1] = ages + AGES;
        walk_kinds(&e, names, wanted, count, totals, at, false, true); /* counts the files of all kinds */
        e.to_free = get_bytes_to_free(&e);
        e.removing = true;
        for (int expensive = 0; expensive < 2 && e.to_free > 0; expensive++) { /* first the cheap kinds */
            e.min_age = get_min_age(e.by_age[expensive], e.to_free);
            walk_kinds(&e, names, wanted, count, totals, at, expensive != 0, false);
        }
        if (e.to_free > 0)
            log_warn("cleanup", "the cache is still larger than its limit after cleanup: files in use are kept",
                     LOG_U64("excess", e.to_free));
    }
    free(ages);
    sl_close(at);
}

/* ---- the kind with a size limit of its own ---- */

#define engine cache_engine

enum { PATH_BYTES = 128, MAX_WALKS = 8 };

struct bounded_used {      /* an entry in memory, or the one that was added: used later than all others */
    char path[PATH_BYTES]; /* below the kind's directory */
    struct sl_str key;     /* a copy */
    bool removed;          /* its file was removed */
};

struct bounded_entry { /* a file of the kind */
    char path[PATH_BYTES];
    uint64_t bytes;
    int64_t used;            /* order of use; larger = later */
    struct bounded_used *by; /* the same entry in bounded_job.used; NULL: it is not in memory */
};

struct bounded_job {
    const char *dir, *kind;
    uint64_t max_bytes, bytes; /* limit; sum of all files */
    struct bounded_used *used; /* most recently used first */
    size_t used_count;
    struct sl_map by_path; /* path -> item of `used` */
    struct bounded_entry *entries;
    size_t count, capacity; /* of `entries` */
    uint64_t removed, removed_bytes;
};

/* Size on disk of the kind that has a limit of its own (CACHE_BOUNDED); loop thread. */
static struct {
    bool known, running; /* running: a fiber walks over the files */
    uint64_t bytes;      /* on disk, valid if `known` */
    uint64_t meanwhile;  /* bytes added during a walk, which may have seen them or not */
} bounded;

/* ---- on the pool ---- */

/* Writes the path of a file or directory relative to the directory where the walk began. Returns its length, or `size` or more if it does
 * not fit. */
static size_t path_below(const struct dir_entry *entry, char *path, size_t size)
{
    size_t parents = entry->parent ? path_below(entry->parent, path, size) : 0;
    if (parents >= size)
        return size;
    return parents + (size_t)snprintf(path + parents, size - parents, "%s%s", parents ? "/" : "", entry->name);
}

/* dir_walk.visit: adds a file of the kind to the list. A file that is also in memory was used later than any other, in the order of the
 * list `used`: it gets a value of `used` above all mtimes. A file for which memory or `path` has no space is left out, and so not removed.
 * Returns false, as it removes nothing. */
static bool see_bounded(void *arg, const struct dir_entry *file)
{
    struct bounded_job *job = arg;
    const struct stat *st = file->st;
    char path[PATH_BYTES];
    if (!S_ISREG(st->st_mode) || !st->st_size || cache_is_side_file(file->name) ||
        path_below(file, path, sizeof path) >= sizeof path ||
        !sl_grow(&job->entries, &job->capacity, job->count + 1, sizeof *job->entries))
        return false;
    struct bounded_entry *entry = &job->entries[job->count++];
    snprintf(entry->path, sizeof entry->path, "%s", path);
    entry->bytes = (uint64_t)st->st_size;
    entry->by = sl_map_get(&job->by_path, sl_str(path));
    entry->used = entry->by ? INT64_MAX - (entry->by - job->used) : cache_mtime_ns(st);
    job->bytes += entry->bytes;
    return false;
}

/* For qsort: the least recently used first. */
static int by_use(const void *a, const void *b)
{
    const struct bounded_entry *x = a, *y = b;
    return x->used < y->used ? -1 : x->used > y->used;
}

/* Removes an entry with its side file, and counts it. One that another process has removed is not counted. */
static void remove_bounded(struct bounded_job *job, int at, struct bounded_entry *entry)
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

/* Pool work: lists all files of the kind and removes the least recently used ones until the kind is within its limit. The most recently
 * used one stays in any case. */
static void make_room(void *arg)
{
    struct bounded_job *job = arg;
    char path[CACHE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", job->dir, job->kind);
    int at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return;
    dir_walk(&(struct dir_walk){.depth = CACHE_TREE_DEPTH, .visit = see_bounded, .arg = job}, at, ".");
    if (job->count)
        qsort(job->entries, job->count, sizeof *job->entries, by_use);
    for (size_t next = 0; job->bytes > job->max_bytes && next + 1 < job->count; next++)
        remove_bounded(job, at, &job->entries[next]);
    close(at);
}

/* ---- on the loop ---- */

/* Adds an entry to the list `used`, with a copy of its key and the path of its file. For an entry that is in the list already, by_path
 * stays with the earlier item, which was used later. False when out of memory. */
static bool add_use(struct bounded_job *job, const struct cache_kind *kind, struct sl_str key)
{
    struct bounded_used *used = &job->used[job->used_count];
    char *copy = malloc(key.size + 1);
    if (!copy)
        return false;
    memcpy(copy, key.data, key.size);
    *used = (struct bounded_used){.key = {copy, key.size}};
    job->used_count++;
    cache_relative_path(key, kind->version, false, used->path); /* false: not the old path format */
    void **slot = sl_map_find_or_add(&job->by_path, sl_str(used->path), NULL);
    if (slot && !*slot)
        *slot = used;
    return slot != NULL;
}

/* Fills the list `used`: the entry that was just added, then those in memory, the most recently used first. False when out of memory. */
static bool add_uses(struct bounded_job *job, const struct kind_state *state, struct sl_str added)
{
    size_t count = 1;
    for (const struct cache_memory_entry *e = CACHE_MEMORY_NEWEST(&state->memory); e; e = LRU_OLDER(e, lru))
        count++;
    job->used = calloc(count, sizeof *job->used);
    bool good = job->used && add_use(job, state->kind, added);
    for (const struct cache_memory_entry *e = CACHE_MEMORY_NEWEST(&state->memory); good && e; e = LRU_OLDER(e, lru))
        good = !e->item || add_use(job, state->kind, e->lru.key); /* without errors */
    return good;
}

/* Drops entries whose files were removed from memory as well, counts and logs them, and frees the job. */
static void bounded_end(struct bounded_job *job, struct kind_state *state)
{
    for (size_t i = 0; i < job->used_count; i++) {
        if (job->used[i].removed)
            cache_memory_drop(&state->memory, job->used[i].key);
        free((char *)(uintptr_t)job->used[i].key.data);
    }
    free(job->used);
    free(job->entries);
    sl_map_free(&job->by_path);
    if (!job->removed)
        return;
    metric_add(METRIC_BOUNDED_EVICTED, job->removed, NULL, NULL, NULL);
    cache_count_removed(state->kind, "size", job->removed, job->removed_bytes);
    log_debug("cache", "evicted entries", LOG_STR("cache", state->kind->name), LOG_U64("removed", job->removed),
              LOG_U64("freed", job->removed_bytes));
}

/* Measures the kind's files and removes those beyond its limit, on the pool; `key` was added last and stays. False if it could not run. */
static bool count_bounded(struct kind_state *state, struct sl_str key)
{
    struct bounded_job job = {
        .dir = engine.dir, .kind = state->kind->name, .max_bytes = engine.config->bounded.max_size};
    struct sl_error error;
    bounded.meanwhile = 0;
    bool good = add_uses(&job, state, key) && pool_run(POOL_IO, make_room, &job, &error) == SL_OK;
    if (good) {
        bounded.known = true;
        bounded.bytes = job.bytes + bounded.meanwhile;
    }
    bounded_end(&job, state);
    return good;
}

void cache_bounded_note_added(struct kind_state *state, struct sl_str key, uint64_t bytes)
{
    if (state->kind->section != CACHE_BOUNDED || !engine.dir)
        return;
    bounded.bytes += bytes;
    bounded.meanwhile += bytes; /* for a walk that is running in another fiber */
    bool small = bounded.known && bounded.bytes <= engine.config->bounded.max_size;
    if (!bounded.running && !small) {
        bounded.running = true;
        /* a walk may have seen entries that were added during it, or not: then walk again */
        for (int walk = 0; walk < MAX_WALKS && count_bounded(state, key) && bounded.meanwhile; walk++)
            ;
        /* if entries were added during the last walk too, the size is not exact: the next added entry starts a walk */
        bounded.known = bounded.known && !bounded.meanwhile;
        bounded.running = false;
    }
    metric_set(METRIC_BOUNDED_BYTES, (double)bounded.bytes, NULL, NULL, NULL);
}
