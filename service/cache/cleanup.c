/* Removes expired entries from the cache directory, while services use it: nothing is locked, every step may find that another process was
 * faster, and directories are removed by rmdir only, which fails if a service has just put something there. */
#include "cache/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files.h"
#include "core/log.h"
#include "core/metrics.h"

enum { MAX_DEPTH = 32, KINDS_MAX = 32 };
/* Age from which on a side file without its entry is removed: before, the entry may be about to be published again. */
#define ORPHAN_AFTER_NS (3600 * CACHE_SECOND_NS)

struct kind_run {
    const struct cache_kind *kind;
    bool wanted; /* the options want it cleaned */
};

struct cleanup_walk {
    const struct cache_kind *kind;
    const struct cache_lifetimes *lifetimes;
    const struct cleanup_options *options;
    bool restart_retries_malformed;
    int64_t now_ns, start_ns;
    struct cleanup_totals totals; /* of this kind */
    int64_t oldest_ns;            /* when the oldest entry that is left was made; INT64_MAX = there is none */
};

/* Counts and logs a failed system call on a file, by errno; not if another process has removed the file. */
static void failed(struct cleanup_walk *sweep, const char *what, const char *name)
{
    if (errno == ENOENT)
        return; /* already gone */
    sweep->totals.errors++;
    log_warn("cleanup", what, LOG_STR("cache", sweep->kind->name), LOG_STR("file", name),
             LOG_STR("error", strerror(errno)));
}

/* Sets `*is_expired` to whether the entry has expired, by its first bytes and its side file; a damaged entry counts as expired. Lowers
 * `oldest_ns` to the time at which a remaining entry was made. False, with errno, if the file or its side file cannot be read now. */
static bool expired(struct cleanup_walk *sweep, int at, const char *name, const struct stat *st, bool *is_expired)
{
    uint8_t head[128]; /* enough to tell contents from the marker of an error, and for the duration of a timeout */
    int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
    int number = errno;
    sl_close(fd);
    errno = number;
    if (n < 0)
        return false;
    struct cache_meta read;
    enum cache_meta_result result = cache_meta_read(at, name, &read);
    if (result == CACHE_META_BUSY) /* without its side file the entry could count as expired too early */
        return false;
    const struct cache_meta *meta = result == CACHE_META_READ ? &read : NULL;
    struct cache_facts facts;
    if (cache_entry_damaged((uint64_t)st->st_size, cache_mtime_ns(st), cache_creation_ns(at, name), meta)) {
        *is_expired = true;
        return true;
    }
    enum sl_code code = cache_entry_decode((struct sl_bytes){head, (size_t)n}, (uint64_t)st->st_size, &meta, NULL);
    cache_entry_facts(code, cache_mtime_ns(st), meta, &facts);
    *is_expired =
        cache_expiry(sweep->lifetimes, &facts, sweep->now_ns, sweep->start_ns, sweep->restart_retries_malformed)
            .expired;
    int64_t made_ns = facts.exact_ns ? facts.exact_ns : facts.created_ns; /* created_ns may be truncated to seconds */
    if (!*is_expired && made_ns < sweep->oldest_ns)
        sweep->oldest_ns = made_ns;
    return true;
}

/* Removes a file. True if it does not exist afterwards; always true in a dry run, which removes nothing. */
static bool remove_file(struct cleanup_walk *sweep, int at, const char *name)
{
    if (sweep->options->dry_run || unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return true;
    failed(sweep, "cannot remove a file of the cache directory", name);
    return false;
}

/* Removes an entry with its side file if it has expired, or in any case if the options say `all`; counts it as removed or remaining. True
 * if it does not exist afterwards. */
static bool sweep_entry(struct cleanup_walk *sweep, int at, const char *name, const struct stat *st)
{
    bool is_expired = sweep->options->all;
    if (!is_expired && !expired(sweep, at, name, st, &is_expired)) {
        bool gone = errno == ENOENT;
        failed(sweep, "cannot read a cache entry", name);
        return gone;
    }
    if (!is_expired || !remove_file(sweep, at, name)) {
        sweep->totals.files++;
        sweep->totals.bytes += (uint64_t)st->st_size;
        return false;
    }
    char side[300];
    if (cache_meta_name(name, side, sizeof side))
        remove_file(sweep, at, side);
    log_debug("cleanup", "removed a cache file", LOG_STR("cache", sweep->kind->name), LOG_STR("file", name),
              LOG_U64("bytes", (uint64_t)st->st_size), LOG_BOOL("dry_run", sweep->options->dry_run));
    sweep->totals.removed_files++;
    sweep->totals.removed_bytes += (uint64_t)st->st_size;
    return true;
}

/* Removes an old side file whose entry is gone: usually both are removed together. */
static void sweep_side_file(struct cleanup_walk *sweep, int at, const char *name, const struct stat *st)
{
    char entry[300];
    struct stat ignored;
    snprintf(entry, sizeof entry, "%.*s", (int)(strlen(name) - strlen(".metadata")), name);
    if (fstatat(at, entry, &ignored, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return;
    if (sweep->options->all || sweep->now_ns - cache_mtime_ns(st) > ORPHAN_AFTER_NS)
        remove_file(sweep, at, name);
}

/* dir_walk.visit, called for each file, and for each directory after its files: removes expired entries, symbolic links, and directories
 * that have become empty. True if the file or directory is gone, so that the one above may be empty. Always true for side files: whether
 * they are still there, rmdir finds out. */
static bool sweep_visit(void *arg, const struct dir_entry *entry)
{
    struct cleanup_walk *sweep = arg;
    mode_t mode = entry->st->st_mode;
    if (S_ISDIR(mode))
        return entry->emptied &&
               (sweep->options->dry_run || unlinkat(entry->at, entry->name, AT_REMOVEDIR) == 0 || errno == ENOENT);
    if (!S_ISREG(mode))
        return S_ISLNK(mode) && remove_file(sweep, entry->at, entry->name);
    if (!cache_is_side_file(entry->name))
        return sweep_entry(sweep, entry->at, entry->name, entry->st);
    sweep_side_file(sweep, entry->at, entry->name, entry->st);
    return true;
}

/* dir_walk.failed: counts and logs a file or directory that cannot be examined. */
static void sweep_failed(void *arg, const struct dir_entry *entry)
{
    failed(arg, entry->st ? "cannot open a directory of the cache" : "cannot examine a file of the cache", entry->name);
}

/* Removes expired entries of one kind. Creates the cache directory and the kind's directory if they are missing, as a
 * service does. SL_INTERNAL if they cannot be created or read; SL_MALFORMED if the path is too long. */
static enum sl_code sweep_kind(struct cleanup_walk *sweep, const char *cache_dir, struct sl_error *error)
{
    char path[CACHE_PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", cache_dir, sweep->kind->name) >= (int)sizeof path)
        return sl_fail(error, SL_MALFORMED, "cache_dir: the path is too long");
    if (mkdir(cache_dir, 0750) != 0 && errno != EEXIST)
        return sl_fail(error, SL_INTERNAL, "cannot create %.150s: %s", cache_dir, strerror(errno));
    if (mkdir(path, 0750) != 0 && errno != EEXIST)
        return sl_fail(error, SL_INTERNAL, "cannot create %.150s: %s", path, strerror(errno));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return sl_fail(error, SL_INTERNAL, "cannot open %.150s: %s", path, strerror(errno));
    const struct dir_walk walk = {.depth = MAX_DEPTH, .visit = sweep_visit, .failed = sweep_failed, .arg = sweep};
    dir_walk(&walk, fd, ".");
    close(fd);
    return SL_OK;
}

/* Adds the totals of a kind to those of all. */
static void cleanup_add(struct cleanup_totals *totals, const struct cleanup_totals *kind)
{
    totals->files += kind->files;
    totals->bytes += kind->bytes;
    totals->removed_files += kind->removed_files;
    totals->removed_bytes += kind->removed_bytes;
    totals->errors += kind->errors;
}

/* True if the options want the kind of this name cleaned: it is in the list `only`, or that list is empty. */
static bool wanted(const struct cleanup_options *options, const char *name)
{
    for (size_t i = 0; i < options->only_count; i++)
        if (strcmp(options->only[i], name) == 0)
            return true;
    return options->only_count == 0;
}

/* Returns the first name of `only` that is no kind; NULL if there is none. */
static const char *unknown_name(const struct cleanup_options *options, const struct cache_kind *const *kinds,
                                size_t kind_count)
{
    for (size_t i = 0; i < options->only_count; i++) {
        size_t k = 0;
        while (k < kind_count && strcmp(kinds[k]->name, options->only[i]) != 0)
            k++;
        if (k == kind_count)
            return options->only[i];
    }
    return NULL;
}

/* Evicts contents that exceed the configured limits of the cache directory; call it when the expired entries are removed. Counts the
 * evicted entries in the metrics. */
static void evict(const struct config *config, const struct cleanup_options *options, const struct kind_run *runs,
                  size_t count, struct cleanup_totals *totals)
{
    struct cache_budget budget = {.cache_dir = config->cache_dir,
                                  .max_size = config->cache_max_size,
                                  .min_free = config->cache_min_free_space,
                                  .full = options->full,
                                  .dry_run = options->dry_run};
    const char *names[KINDS_MAX];
    bool wanted[KINDS_MAX];
    if (budget.max_size == UINT64_MAX && budget.min_free == UINT64_MAX && !budget.full) /* there is no limit */
        return;
    for (size_t i = 0; i < count; i++) {
        names[i] = runs[i].kind->name;
        wanted[i] = runs[i].wanted;
    }
    struct cleanup_totals before[KINDS_MAX];
    memcpy(before, totals, count * sizeof *before);
    cache_evict(&budget, names, wanted, count, totals);
    for (size_t i = 0; i < count; i++)
        cache_count_removed(runs[i].kind, "size", totals[i].removed_files - before[i].removed_files,
                            totals[i].removed_bytes - before[i].removed_bytes);
}

/* Removes the expired entries of one kind, and counts them in the metrics. A failure is logged and counted; `totals` also has what was
 * removed before it. For a kind of the section CACHE_BOUNDED, whose entries do not expire by age, lowers `*oldest_ns` to the time at which
 * its oldest remaining entry was made; to 0 if that is unknown. */
static enum sl_code sweep_wanted(const struct config *config, const struct cleanup_options *options,
                                 const struct cache_kind *kind, struct cleanup_totals *totals, int64_t *oldest_ns,
                                 struct sl_error *error)
{
    struct cleanup_walk sweep = {.kind = kind,
                                 .oldest_ns = INT64_MAX,
                                 .lifetimes = cache_get_lifetimes(config, kind->section),
                                 .options = options,
                                 .now_ns = cache_now_ns(),
                                 .start_ns = cache_start_ns(),
                                 .restart_retries_malformed = config->restart_retries_malformed};
    enum sl_code code = sweep_kind(&sweep, config->cache_dir, error);
    if (code != SL_OK) {
        sweep.totals.errors++;
        log_error("cleanup", "cache cleanup failed", LOG_STR("cache", kind->name), LOG_ERR(error));
    }
    cache_count_removed(kind, "age", sweep.totals.removed_files, sweep.totals.removed_bytes);
    *totals = sweep.totals;
    if (sweep.totals.errors) /* an entry that cannot be read or removed may be of any age */
        sweep.oldest_ns = 0;
    if (kind->section == CACHE_BOUNDED && sweep.oldest_ns < *oldest_ns)
        *oldest_ns = sweep.oldest_ns;
    return code;
}

/* Sets the gauges of a kind's disk use. */
static void cleanup_show(const char *kind, const struct cleanup_totals *totals)
{
    metric_set(METRIC_CACHE_DISK_BYTES, (double)totals->bytes, kind, NULL, NULL);
    metric_set(METRIC_CACHE_DISK_FILES, (double)totals->files, kind, NULL, NULL);
}

/* Removes invalidation stamps (stamp.c) that can invalidate no entry any more, as all entries are newer. An entry that was unused for
 * the longest of the lifetimes is gone. Entries of the section CACHE_BOUNDED do not expire by age: the oldest of them was made at
 * `oldest_ns`. */
static void sweep_stamps(const struct config *config, int64_t oldest_ns)
{
    static const enum cache_section sections[] = {CACHE_DOWNLOADED, CACHE_DERIVED, CACHE_INDEX, CACHE_TRANSCODED};
    uint64_t longest = 0, now = (uint64_t)cache_now_ns();
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        uint64_t unused = cache_get_lifetimes(config, sections[i])->max_unused_for;
        longest = unused > longest ? unused : longest;
    }
    int64_t before_ns = longest < now ? (int64_t)(now - longest) : 0;
    cache_sweep_stamps(config->cache_dir, before_ns < oldest_ns ? before_ns : oldest_ns);
}

enum sl_code cache_cleanup(const struct config *config, const struct cache_kind *const *kinds, size_t kind_count,
                           const struct cleanup_options *options, struct cleanup_totals *totals,
                           struct cleanup_totals *by_kind, struct sl_error *error)
{
    struct kind_run runs[KINDS_MAX];
    struct cleanup_totals own[KINDS_MAX];
    *totals = (struct cleanup_totals){0};
    if (!config->cache_dir)
        return sl_fail(error, SL_NOT_FOUND, "no caching configured! Did you provide a path to your config file?");
    const char *unknown = unknown_name(options, kinds, kind_count);
    if (unknown || kind_count > KINDS_MAX) /* the latter cannot happen with the table of this program */
        return sl_fail(error, SL_MALFORMED, "unknown cache kind: %.60s", unknown ? unknown : "too many");
    by_kind = by_kind ? by_kind : own;
    memset(by_kind, 0, kind_count * sizeof *by_kind);
    /* the first call sets the start of the process, to which ages of malformed entries are compared */
    cache_start_ns();
    if (!options->dry_run)
        cache_tmp_sweep(config->cache_dir);
    /* Begins with a random kind, so that cleanups that are interrupted do not always leave out the same kinds. */
    unsigned first = 0;
    if (getrandom(&first, sizeof first, 0) != (ssize_t)sizeof first)
        first = (unsigned)cache_start_ns();
    enum sl_code result = SL_OK;
    int64_t oldest_ns = INT64_MAX;
    for (size_t i = 0; i < kind_count; i++) {
        struct sl_error failure;
        size_t at = (first + i) % kind_count;
        runs[at] = (struct kind_run){kinds[at], wanted(options, kinds[at]->name)};
        if (runs[at].wanted && sweep_wanted(config, options, kinds[at], &by_kind[at], &oldest_ns, &failure) != SL_OK &&
            result == SL_OK)
            result = sl_fail(error, SL_INTERNAL, "%s", failure.message);
    }
    for (size_t i = 0; i < kind_count; i++)
        if (!runs[i].wanted && kinds[i]->section == CACHE_BOUNDED)
            oldest_ns = 0; /* its entries were not examined, so the oldest one is unknown */
    if (!options->dry_run)
        sweep_stamps(config, oldest_ns);
    evict(config, options, runs, kind_count, by_kind);
    for (size_t i = 0; i < kind_count; i++) {
        cleanup_add(totals, &by_kind[i]);
        if (runs[i].wanted)
            cleanup_show(runs[i].kind->name, &by_kind[i]);
    }
    return result;
}

/* ---- how much of each kind is on disk ---- */

/* dir_walk.visit: adds an entry to the totals. Returns false, as it removes nothing. */
static bool measure(void *arg, const struct dir_entry *entry)
{
    struct cleanup_totals *totals = arg;
    bool counts = S_ISREG(entry->st->st_mode) && !cache_is_side_file(entry->name);
    totals->files += counts;
    totals->bytes += counts ? (uint64_t)entry->st->st_size : 0;
    return false;
}

void cache_measure(const char *cache_dir, const struct cache_kind *const *kinds, size_t count)
{
    int at = open(cache_dir, O_PATH | O_DIRECTORY | O_CLOEXEC); /* if it cannot be opened, all sizes are 0 */
    for (size_t i = 0; i < count; i++) {
        struct cleanup_totals totals = {0};
        dir_walk(&(struct dir_walk){.depth = CACHE_TREE_DEPTH, .visit = measure, .arg = &totals}, at, kinds[i]->name);
        cleanup_show(kinds[i]->name, &totals);
    }
    sl_close(at);
}
