/* Quarantine of files during whose processing the service died.
 *
 *     <cache_dir>/quarantine/<kind>-<key>        quarantined: not processed until a day after the mtime of this record
 *                            <kind>-<key>.seen   in progress when a process died, but not often enough to be quarantined
 *
 * Each record is a line "<crashes> <kills> <about>", such as "2 0 source: test location: http://...". A process that removes the temporary
 * directory of a dead one (tmp.c) writes the records, under a lock of this directory; work on a key with a record of the first kind is
 * refused. */
#include "cache/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files.h"
#include "core/log.h"

/* MAX_CRASHES, MAX_KILLS: after so many deaths of a process that was working on a file, the file is quarantined. A kill is a death without
 * a signal number in the journal (SIGKILL, loss of power), which often has nothing to do with the file. ERROR_CACHED_S: how long the error
 * for a quarantined file is cached. */
enum { MAX_CRASHES = 2, MAX_KILLS = 3, MAX_NAME = 80, ERROR_CACHED_S = 60 };
#define DIRECTORY "quarantine"
#define SEEN      ".seen"

void cache_quarantine_name(const char *kind, struct sl_str key, struct sl_str about, struct journal_work *work)
{
    uint8_t hash[CACHE_HASH_BYTES];
    cache_key_hash(key, hash);
    journal_describe(work, kind, hash, about);
}

/* Writes the file name of the record of `work`, with the suffix "" or SEEN; false if it is too long. */
static bool record_name(const struct journal_work *work, const char *suffix, char out[MAX_NAME])
{
    return snprintf(out, MAX_NAME, "%s-%s%s", work->kind, work->key, suffix) < MAX_NAME;
}

/* True if there is a record of this name that is less than a day old; sets `*until_ns` to the end of its day. */
static bool is_fresh(int at, const char *name, int64_t *until_ns)
{
    struct stat st;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    *until_ns = (int64_t)st.st_mtim.tv_sec * CACHE_SECOND_NS + CACHE_QUARANTINE_NS;
    return cache_now_ns() < *until_ns;
}

enum sl_code cache_quarantine_check(const struct journal_work *work, struct sl_error *error)
{
    char path[CACHE_PATH_BYTES], name[MAX_NAME];
    const char *dir = cache_dir_of_process();
    int64_t until_ns;
    /* without a cache directory, nothing is in quarantine */
    if (!dir || !record_name(work, "", name) ||
        snprintf(path, sizeof path, "%s/" DIRECTORY "/%s", dir, name) >= (int)sizeof path ||
        !is_fresh(AT_FDCWD, path, &until_ns))
        return SL_OK;
    sl_fail(error, SL_UNSUPPORTED, "processing this file crashed");
    error->duration_ns = ERROR_CACHED_S * (uint64_t)CACHE_SECOND_NS; /* not a day: an operator may clear it */
    return SL_UNSUPPORTED;
}

/* ---- counting ---- */
/* Opens the quarantine directory, and waits for its lock, as several processes may count at once; closing it unlocks. With `make` creates
 * it if it is missing. -1 if it cannot be opened. */
static int open_directory(const char *cache_dir, bool make)
{
    char path[CACHE_PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/" DIRECTORY, cache_dir) >= (int)sizeof path)
        return -1;
    if (make)
        mkdir(path, 0750);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        flock(fd, LOCK_EX);
    return fd;
}

/* Reads a record. False, with errno, if it cannot be read now, or with errno 0 if it is damaged: then counting begins anew. */
static bool read_record(int at, const char *name, struct cache_suspect *suspect)
{
    char text[256] = "";
    /* `used`: offset of <about> in the line "<crashes> <kills> <about>" */
    int used = 0, fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    int number = size < 0 ? errno : 0;
    sl_close(fd);
    errno = number;
    if (size <= 0 || sscanf(text, "%u %u %n", &suspect->crashes, &suspect->kills, &used) < 2 || !used)
        return false;
    snprintf(suspect->about, sizeof suspect->about, "%.*s", (int)strcspn(text + used, "\n"), text + used);
    return true;
}

/* Writes a record as ".new" and renames that, so that a reader never sees half of it. Call it under the lock of open_directory. */
static bool write_record(int at, const char *name, const struct cache_suspect *suspect)
{
    int fd = openat(at, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640);
    if (fd < 0)
        return false;
    bool written = dprintf(fd, "%u %u %s\n", suspect->crashes, suspect->kills, suspect->about) > 0;
    return close(fd) == 0 && written && renameat(at, ".new", at, name) == 0;
}

/* Counts one death of a process, by a crash or by a kill, for the file that it was working on, and quarantines the file if these were too
 * many. Continues the count of a record that is less than a day old; an older record counts as absent. */
static void count_work(int at, const struct journal_work *work, bool crashed)
{
    char quarantined[MAX_NAME], seen[MAX_NAME];
    struct cache_suspect suspect = {.crashes = 0};
    int64_t until_ns;
    if (!record_name(work, "", quarantined) || !record_name(work, SEEN, seen))
        return;
    if (!(is_fresh(at, quarantined, &until_ns) && read_record(at, quarantined, &suspect)) &&
        !(is_fresh(at, seen, &until_ns) && read_record(at, seen, &suspect)))
        suspect = (struct cache_suspect){.crashes = 0};
    suspect.crashes += crashed;
    suspect.kills += !crashed;
    snprintf(suspect.about, sizeof suspect.about, "%s", work->about);
    bool is_too_much = suspect.crashes >= MAX_CRASHES || suspect.kills >= MAX_KILLS;
    if (!write_record(at, is_too_much ? quarantined : seen, &suspect)) {
        log_warn("cache", "cannot record which file crashed the service, so it will not be quarantined",
                 LOG_STR("error", strerror(errno)));
        return;
    }
    if (!is_too_much)
        return;
    unlinkat(at, seen, 0);
    log_warn("cache", "a file is quarantined for a day: processing it repeatedly ended the service",
             LOG_STR("cache", work->kind), LOG_STR("key", work->key), LOG_STR("about", work->about),
             LOG_U64("crashes", suspect.crashes), LOG_U64("kills", suspect.kills));
}

/* Logs that a process of the service died, and counts its death for each file that it was working on. death->number is the signal; 0: none
 * was recorded, so the process was killed. */
void quarantine_note(const char *cache_dir, const struct journal_record *death)
{
    char text[96];
    struct sl_buf keys = {0};
    for (unsigned i = 0; i < death->count; i++)
        sl_buf_printf(&keys, "%s%s %.16s", i ? ", " : "", death->works[i].kind, death->works[i].key);
    snprintf(text, sizeof text, "the previous service process, %d, crashed or was killed", (int)death->pid);
    log_warn("cache", text, LOG_STR("signal", death->number ? strsignal(death->number) : "unknown"),
             LOG_SLSTR("in_work", sl_buf_view(&keys)));
    sl_buf_free(&keys);
    int fd = death->count ? open_directory(cache_dir, true) : -1; /* true: makes it if it is missing */
    if (fd < 0)
        return;
    for (unsigned i = 0; i < death->count; i++)
        count_work(fd, &death->works[i], death->number != 0);
    close(fd);
}

/* ---- listing and clearing ---- */

/* Splits the name of a record, "symcaches-0123..." or "symcaches-0123....seen", into kind and key; false if it is none. `*quarantined`: it
 * has no suffix ".seen", so the file is quarantined. */
static bool split_name(const char *name, struct cache_suspect *suspect, bool *quarantined)
{
    const char *dash = strchr(name, '-');
    size_t kind = dash ? (size_t)(dash - name) : 0, hex = dash ? strspn(dash + 1, "0123456789abcdef") : 0;
    if (!kind || kind >= sizeof suspect->kind || hex != 32 || (dash[33] && strcmp(dash + 33, SEEN) != 0))
        return false;
    snprintf(suspect->kind, sizeof suspect->kind, "%.*s", (int)kind, name);
    snprintf(suspect->key, sizeof suspect->key, "%.32s", dash + 1);
    *quarantined = !dash[33];
    return true;
}

/* Also removes records that are a day old or damaged. A record that cannot be read now still counts, but is not passed to `tell`. */
size_t cache_quarantine_list(const char *cache_dir, void (*tell)(void *arg, const struct cache_suspect *suspect),
                             void *arg)
{
    size_t count = 0;
    DIR *dir = open_directory_of_fd(open_directory(cache_dir, false)); /* NULL: there are no records */
    for (struct dirent *e; (e = dir_next(dir, NULL));) {
        struct cache_suspect suspect = {.crashes = 0};
        int64_t until_ns;
        bool quarantined;
        if (!split_name(e->d_name, &suspect, &quarantined))
            continue;
        bool fresh = is_fresh(dirfd(dir), e->d_name, &until_ns);
        if (!fresh || !read_record(dirfd(dir), e->d_name, &suspect)) {
            if (!fresh || !errno) /* a day old, or damaged (read_record) */
                unlinkat(dirfd(dir), e->d_name, 0);
            else
                count += quarantined;
            continue;
        }
        suspect.until_s = quarantined ? until_ns / CACHE_SECOND_NS : 0;
        count += quarantined;
        if (tell)
            tell(arg, &suspect);
    }
    if (dir)
        closedir(dir);
    return count;
}

/* Removes all records, but returns only the number of quarantined files, without those that were seen too seldom. */
size_t cache_quarantine_clear(const char *cache_dir)
{
    size_t count = 0;
    DIR *dir = open_directory_of_fd(open_directory(cache_dir, false)); /* NULL: there are no records */
    for (struct dirent *e; (e = dir_next(dir, NULL));) {
        struct cache_suspect suspect;
        bool quarantined;
        if (split_name(e->d_name, &suspect, &quarantined) && unlinkat(dirfd(dir), e->d_name, 0) == 0)
            count += quarantined;
    }
    if (dir)
        closedir(dir);
    return count;
}
