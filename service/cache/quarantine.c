/* Quarantine of files whose processing ended the process.
 *
 *     <cache_dir>/quarantine/<kind>-<key>        not processed until a day after its mtime
 *                            <kind>-<key>.seen   in progress at a death, but not often enough yet
 *
 * Each has a line "<crashes> <kills> <about>", such as "2 0 source: test location: http://...". The process that sweeps the
 * temporary directory of a dead one writes them, under a lock of the directory; work on a key checks for the first one. */
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

/* MAX_CRASHES, MAX_KILLS: deaths of a process with a file in work until the file is quarantined. A kill (SIGKILL, loss of power) leaves
 * no signal number, and often has nothing to do with the file. ERROR_CACHED_S: how long the error is cached. */
enum { MAX_CRASHES = 2, MAX_KILLS = 3, MAX_NAME = 80, ERROR_CACHED_S = 60 };
#define DIRECTORY "quarantine"
#define SEEN      ".seen"

void cache_quarantine_name(const char *kind, struct sl_str key, struct sl_str about, struct journal_work *work)
{
    uint8_t hash[CACHE_HASH_BYTES];
    cache_key_hash(key, hash);
    journal_describe(work, kind, hash, about);
}

/* Writes the file name of a record; false if it is too long. */
static bool record_name(const struct journal_work *work, const char *suffix, char out[MAX_NAME])
{
    return snprintf(out, MAX_NAME, "%s-%s%s", work->kind, work->key, suffix) < MAX_NAME;
}

/* True for a record that still counts; sets the end of its day. */
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
    error->duration_ns = ERROR_CACHED_S * (uint64_t)CACHE_SECOND_NS; /* an operator may clear it */
    return SL_UNSUPPORTED;
}

/* ---- counting ---- */
/* Opens the directory and locks it until it is closed: several processes may count at once. -1 if it cannot be opened. */
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

/* False, with errno, if the record cannot be read now, and with errno 0 if it is damaged; then counting begins anew. */
static bool read_record(int at, const char *name, struct cache_suspect *suspect)
{
    char text[256] = "";
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

/* Writes the record beside and renames it: a reader never sees half of it. */
static bool write_record(int at, const char *name, const struct cache_suspect *suspect)
{
    int fd = openat(at, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640);
    if (fd < 0)
        return false;
    bool written = dprintf(fd, "%u %u %s\n", suspect->crashes, suspect->kills, suspect->about) > 0;
    return close(fd) == 0 && written && renameat(at, ".new", at, name) == 0;
}

/* Counts one death for a key that was in work, and quarantines the key if these were too many. Continues the count of a record that is
 * less than a day old; an older one counts as absent. */
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

/* Logs that the process before ended without stopping, and counts a death for each file that it was working on. number 0: no signal was
 * noted, so it was killed. */
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
    int fd = death->count ? open_directory(cache_dir, true) : -1;
    if (fd < 0)
        return;
    for (unsigned i = 0; i < death->count; i++)
        count_work(fd, &death->works[i], death->number != 0);
    close(fd);
}

/* ---- listing and clearing ---- */

/* Splits "symcaches-0123...[.seen]"; false if it is not the name of a record. `*quarantined`: the name has no suffix, so its file is
 * not processed. */
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

/* Removes records that are a day old or damaged. One that cannot be opened just now still counts, but is not passed to `tell`. */
size_t cache_quarantine_list(const char *cache_dir, void (*tell)(void *arg, const struct cache_suspect *suspect),
                             void *arg)
{
    size_t count = 0;
    DIR *dir = open_directory_of_fd(open_directory(cache_dir, false));
    for (struct dirent *e; (e = dir_next(dir, NULL));) {
        struct cache_suspect suspect = {.crashes = 0};
        int64_t until_ns;
        bool quarantined;
        if (!split_name(e->d_name, &suspect, &quarantined))
            continue;
        bool fresh = is_fresh(dirfd(dir), e->d_name, &until_ns);
        if (!fresh || !read_record(dirfd(dir), e->d_name, &suspect)) {
            if (!fresh || !errno) /* one that only cannot be read now still counts */
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

/* Also removes records of files that are not quarantined yet, but does not count them. */
size_t cache_quarantine_clear(const char *cache_dir)
{
    size_t count = 0;
    DIR *dir = open_directory_of_fd(open_directory(cache_dir, false));
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
