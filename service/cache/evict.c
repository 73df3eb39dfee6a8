/* Keeping the directory within its budget. Two walks and a histogram of ages in between, instead of a list of a million
 * names: the first walk finds the age from which on things have to go, the second one removes them. */
#include "cache/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/files.h"
#include "core/log.h"

enum {
    MAX_DEPTH = 8,
    AGES = 1 << 16,    /* minutes; what is older is of the last age */
    SPARED_BELOW = 10, /* minutes: what has just been made is in use */
    PERCENT_KEPT = 90,
};

/* Files that are made again without converting anything go first. */
static const char *const cheap[] = {"objects", "sourcefiles", "sourcemap_caches"};

struct eviction {
    const struct cache_budget *budget;
    int64_t now_ns;
    uint64_t used;       /* everything */
    uint64_t *by_age[2]; /* bytes that may go, of the cheap kinds and of the rest */
    uint64_t to_free;
    unsigned oldest_kept; /* second walk: what is older goes; of this age, until `to_free` is 0 */
    bool expensive;       /* the kind is not among the cheap ones */
    bool removing, wanted;
    struct cleanup_totals *totals; /* of the kind */
};

static bool is_cheap(const char *kind)
{
    for (size_t i = 0; i < sizeof cheap / sizeof *cheap; i++)
        if (strcmp(cheap[i], kind) == 0)
            return true;
    return false;
}

/* What its removal gives back: small files take whole blocks, and fresh ones may have none yet. */
static uint64_t space_of(const struct stat *st)
{
    uint64_t blocks = (uint64_t)st->st_blocks * 512, size = (uint64_t)st->st_size;
    return blocks > size ? blocks : size;
}

static unsigned age_of(const struct eviction *e, const struct stat *st)
{
    int64_t minutes = (e->now_ns / CACHE_SECOND_NS - (int64_t)st->st_mtim.tv_sec) / 60;
    return minutes < 0 ? 0 : minutes < AGES ? (unsigned)minutes : AGES - 1;
}

static void remove_entry(struct eviction *e, int at, const char *name, const struct stat *st)
{
    char side[300];
    struct stat side_st;
    uint64_t space = space_of(st);
    if (cache_meta_name(name, side, sizeof side) && fstatat(at, side, &side_st, AT_SYMLINK_NOFOLLOW) == 0)
        space += space_of(&side_st);
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
    e->totals->files -= e->totals->files > 0;
    e->totals->bytes -= (uint64_t)st->st_size < e->totals->bytes ? (uint64_t)st->st_size : e->totals->bytes;
}

static void visit(struct eviction *e, int at, const char *name, const struct stat *st)
{
    unsigned age = age_of(e, st);
    bool entry = !sl_str_ends(sl_str(name), SL_STR(".metadata")) && st->st_size > 0; /* empty: a miss, and no space */
    if (!e->removing) {
        e->used += space_of(st);
        if (entry && e->wanted)
            e->by_age[e->expensive][age] += space_of(st);
    } else if (entry && age >= SPARED_BELOW && age >= e->oldest_kept && e->to_free > 0) {
        remove_entry(e, at, name, st);
    }
}

static void evict_walk(struct eviction *e, int at, const char *name, unsigned depth)
{
    DIR *dir = dir_open(at, name);
    struct stat st;
    for (struct dirent *d; (d = dir_next(dir, &st));)
        if (S_ISREG(st.st_mode))
            visit(e, dirfd(dir), d->d_name, &st);
        else if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH)
            evict_walk(e, dirfd(dir), d->d_name, depth + 1);
    if (dir)
        closedir(dir);
}

/* How much has to go. */
static uint64_t excess(const struct eviction *e)
{
    const struct cache_budget *b = e->budget;
    uint64_t allowed = b->max_size;
    struct statvfs fs;
    if (b->min_free != UINT64_MAX && statvfs(b->cache_dir, &fs) == 0) {
        uint64_t all = e->used + (uint64_t)fs.f_bavail * fs.f_frsize;
        uint64_t by_free = all > b->min_free ? all - b->min_free : 0;
        allowed = by_free < allowed ? by_free : allowed;
    }
    if (b->full && allowed > e->used)
        allowed = e->used;
    uint64_t kept = allowed / 100 * PERCENT_KEPT + allowed % 100 * PERCENT_KEPT / 100;
    return e->used > allowed || b->full ? e->used - kept : 0;
}

/* The age at which `bytes` are reached when the oldest go first. */
static unsigned cut_off(const uint64_t *by_age, uint64_t bytes)
{
    unsigned age = AGES;
    for (uint64_t sum = 0; age > SPARED_BELOW && sum < bytes;)
        sum += by_age[--age];
    return age;
}

static void walk_kinds(struct eviction *e, const char *const *names, const bool *wanted, size_t count,
                       struct cleanup_totals *totals, int at, bool expensive, bool both)
{
    for (size_t i = 0; i < count; i++) {
        e->expensive = !is_cheap(names[i]);
        e->wanted = wanted[i];
        e->totals = &totals[i];
        if (both || (e->expensive == expensive && wanted[i]))
            evict_walk(e, at, names[i], 0);
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
        walk_kinds(&e, names, wanted, count, totals, at, false, true);
        e.to_free = excess(&e);
        e.removing = true;
        for (int rest = 0; rest < 2 && e.to_free > 0; rest++) {
            e.oldest_kept = cut_off(e.by_age[rest], e.to_free);
            walk_kinds(&e, names, wanted, count, totals, at, rest != 0, false);
        }
        if (e.to_free > 0)
            log_warn("cleanup", "the cache is above its budget", LOG_U64("excess", e.to_free));
    }
    free(ages);
    if (at >= 0)
        close(at);
}
