/* Files and directories that the service makes, and walks over directories. */
#include "core/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

enum { ATTEMPTS = 3, MAX_PATH = 4096 };
static const int64_t second_ns = 1000000000;

/* ---- making ---- */

bool files_sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = fsync(fd) == 0 || errno == EINVAL; /* EINVAL: the file system cannot sync directories */
    int reason = errno;                            /* close may change it */
    close(fd);
    errno = reason;
    return good;
}

/* Writes the directory that `path` lies in to `parent`: "." for a bare name, "/" for a file of the root. False, with errno, if the path
 * is too long. */
static bool get_parent(const char *path, char parent[MAX_PATH])
{
    const char *slash = strrchr(path, '/');
    int size = !slash ? snprintf(parent, MAX_PATH, ".")
                      : snprintf(parent, MAX_PATH, "%.*s", (int)(slash == path ? 1 : slash - path), path);
    errno = size < MAX_PATH ? errno : ENAMETOOLONG;
    return size < MAX_PATH;
}

/* Syncs the directory that `path` lies in, as a new name is durable only after that. */
static bool sync_parent(const char *path)
{
    char parent[MAX_PATH];
    return get_parent(path, parent) && files_sync_directory(parent);
}

/* Makes one directory, whose parent must exist; true also if the directory exists. With FILES_DURABLE its new name is synced. */
static bool make_one(const char *path, mode_t mode, enum files_sync sync)
{
    return mkdir(path, mode) == 0 ? sync != FILES_DURABLE || sync_parent(path) : errno == EEXIST;
}

/* Makes a directory; if that fails because its parent is missing, makes the parent in the same way and tries again. Cuts `path` at the
 * parent meanwhile. */
static bool make_directories(char *path, mode_t mode, enum files_sync sync)
{
    if (make_one(path, mode, sync))
        return true;
    char *slash = strrchr(path, '/');
    if (errno != ENOENT || !slash || slash == path)
        return false;
    *slash = '\0';
    bool good = make_directories(path, mode, sync);
    *slash = '/';
    return good && make_one(path, mode, sync);
}

bool files_make_directory(const char *path, mode_t mode, enum files_sync sync)
{
    char copy[MAX_PATH];
    errno = ENAMETOOLONG;
    return snprintf(copy, sizeof copy, "%s", path) < (int)sizeof copy && make_directories(copy, mode, sync);
}

bool files_make_parents(const char *path, mode_t mode)
{
    char parent[MAX_PATH];
    return get_parent(path, parent) && make_directories(parent, mode, FILES_UNSYNCED);
}

uint64_t files_random(void)
{
    static _Atomic uint64_t count;
    struct timespec now;
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random)
        return random;
    /* getrandom fails if seccomp forbids it, so mix the time, a counter and the process id. The factor (2^64 / golden ratio) spreads near
     * times over all bits. */
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * (uint64_t)second_ns + (uint64_t)now.tv_nsec) * 0x9E3779B97F4A7C15u + count++ +
           (uint64_t)getpid();
}

int files_temp(const char *directory, const char *prefix, mode_t make, char *path, size_t size)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int length = snprintf(path, size, "%s/%s%016llx", directory, prefix, (unsigned long long)files_random());
        if (length < 0 || (size_t)length >= size) {
            errno = ENAMETOOLONG;
            break;
        }
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
        if (fd >= 0)
            return fd;
        /* Tries again with another name if this one exists, or when the missing directory is made. */
        if (errno != EEXIST && !(errno == ENOENT && make && files_make_directory(directory, make, FILES_UNSYNCED)))
            break;
    }
    return -1;
}

int64_t files_mtime_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * second_ns + st->st_mtim.tv_nsec;
}

/* ---- publishing ---- */

bool files_publish(int fd, const char *from, const char *to, enum files_sync sync)
{
    bool good = fd < 0 || sync == FILES_UNSYNCED || (sync == FILES_CONTENTS ? fdatasync(fd) : fsync(fd)) == 0;
    bool moved = good && rename(from, to) == 0;
    char parent[MAX_PATH];
    /* More than once, as another process may remove the empty directory before the file is in it. */
    for (int attempt = 0; good && !moved && errno == ENOENT && attempt < ATTEMPTS; attempt++)
        moved = get_parent(to, parent) && make_directories(parent, 0750, sync) && rename(from, to) == 0;
    return moved && (sync != FILES_DURABLE || sync_parent(to));
}

/* ---- opening a file again ---- */

struct file_place *file_place_new(const char *path, int fd)
{
    struct stat st;
    size_t size = strlen(path) + 1;
    struct file_place *place = fstat(fd, &st) == 0 ? malloc(sizeof *place + size) : NULL;
    if (!place)
        return NULL;
    /* fd -1: file_place_open opens the file by its path */
    *place = (struct file_place){.device = st.st_dev, .inode = st.st_ino, .size = st.st_size, .fd = -1};
    memcpy(place->path, path, size);
    return place;
}

static atomic_ulong unnamed_files; /* number of descriptors that file_place_new_unnamed keeps open */

/* Files without a name each keep a descriptor open. They may use an eighth of those that the process may have: the others are for
 * connections and downloads. */
static bool may_keep_unnamed(void)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) == 0 && atomic_load(&unnamed_files) < files.rlim_cur / 8;
}

struct file_place *file_place_new_unnamed(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct file_place *place = may_keep_unnamed() ? file_place_new("", fd) : NULL;
    if (!place)
        return NULL;
    place->fd = open(path, O_RDONLY | O_CLOEXEC); /* opens the unnamed file once more, for reading only */
    if (place->fd >= 0) {
        atomic_fetch_add(&unnamed_files, 1);
        return place;
    }
    free(place);
    return NULL;
}

void file_place_free(struct file_place *place)
{
    if (place && place->fd >= 0) {
        close(place->fd);
        atomic_fetch_sub(&unnamed_files, 1);
    }
    free(place);
}

/* Opens the file and checks that it is still the described one. O_NONBLOCK: if a FIFO has the name by now, opening must not wait for a
 * writer. */
int file_place_open(const struct file_place *place)
{
    struct stat st;
    int fd = place->fd >= 0 ? fcntl(place->fd, F_DUPFD_CLOEXEC, 0)
                            : open(place->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_dev == place->device && st.st_ino == place->inode && st.st_size == place->size)
        return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

/* ---- reading directories ---- */

DIR *open_directory_of_fd(int fd)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

DIR *dir_open(int at, const char *name)
{
    return open_directory_of_fd(openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

struct dirent *dir_next(DIR *dir, struct stat *st)
{
    errno = 0; /* before each readdir, which sets it only on failure */
    for (struct dirent *e; dir && (e = readdir(dir)); errno = 0)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            (!st || fstatat(dirfd(dir), e->d_name, st, AT_SYMLINK_NOFOLLOW) == 0))
            return e;
    return NULL;
}

/* ---- walking ---- */

/* Called when an entry could not be examined, opened or read, with errno. Returns true if it was removed meanwhile (ENOENT); else reports
 * it to the walk's `failed`. */
static bool walk_failed(const struct dir_walk *walk, const struct dir_entry *entry)
{
    bool gone = errno == ENOENT;
    if (!gone && walk->failed)
        walk->failed(walk->arg, entry);
    return gone;
}

static bool walk_directory(const struct dir_walk *walk, DIR *dir, const struct dir_entry *self, bool is_root);

/* Visits one entry; if it is a directory, walks its contents first. True if the entry was removed, by `visit` or by someone else. */
static bool walk_entry(const struct dir_walk *walk, struct dir_entry *entry)
{
    struct stat st;
    if (fstatat(entry->at, entry->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return walk_failed(walk, entry); /* true if it is gone, else reported */
    entry->st = &st;
    if (S_ISDIR(st.st_mode) && entry->depth < walk->depth && (!walk->enter || walk->enter(walk->arg, entry))) {
        DIR *dir = dir_open(entry->at, entry->name);
        if (!dir)
            return walk_failed(walk, entry);
        entry->emptied = walk_directory(walk, dir, entry, false);
    }
    return walk->visit(walk->arg, entry);
}

/* Visits all entries of the directory `self`, which is open as `dir`, and closes `dir`. True if it is empty afterwards. `is_root`: it is
 * where the walk began, so that its entries have no parent and depth 0. */
static bool walk_directory(const struct dir_walk *walk, DIR *dir, const struct dir_entry *self, bool is_root)
{
    bool emptied = true;
    for (struct dirent *e; (e = dir_next(dir, NULL));) {
        struct dir_entry entry = {.at = dirfd(dir),
                                  .name = e->d_name,
                                  .parent = is_root ? NULL : self,
                                  .depth = is_root ? 0 : self->depth + 1};
        emptied &= walk_entry(walk, &entry);
    }
    if (errno != 0) /* dir_next has set it: not all entries could be read */
        emptied &= walk_failed(walk, self);
    closedir(dir);
    return emptied;
}

bool dir_walk(const struct dir_walk *walk, int at, const char *name)
{
    DIR *dir = dir_open(at, name);
    struct dir_entry root = {.at = at, .name = name};
    return dir ? walk_directory(walk, dir, &root, true) : walk_failed(walk, &root);
}

/* Tries to unlink each entry first, as most are files; unlinkat(2) fails for a directory, which is then removed with its contents. */
void dir_remove(int at, const char *name, unsigned depth)
{
    DIR *dir = dir_open(at, name);
    if (!dir)
        return;
    for (struct dirent *e; (e = dir_next(dir, NULL));)
        if (unlinkat(dirfd(dir), e->d_name, 0) != 0 && depth)
            dir_remove(dirfd(dir), e->d_name, depth - 1);
    closedir(dir);
    unlinkat(at, name, AT_REMOVEDIR);
}

/* ---- change counters ---- */

/* Makes a change counter of the file's inode and mtime: at least one of them changes even if the file is deleted and created anew. */
static struct change_counter make_counter(const struct stat *st)
{
    return (struct change_counter){st->st_ino, files_mtime_ns(st)};
}

struct change_counter change_counter_read(const char *path, bool remote)
{
    struct stat st;
    int fd = remote ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool known = remote ? fd >= 0 && fstat(fd, &st) == 0 : lstat(path, &st) == 0;
    sl_close(fd);
    return known ? make_counter(&st) : (struct change_counter){0};
}

/* The new mtime is the present time. If that is not later than the file's mtime, it is the file's mtime plus a random number of
 * nanoseconds, so that two processes do not choose the same. */
bool change_counter_bump(const char *path, bool exclusive, struct change_counter *before, int64_t *made)
{
    struct timespec now, times[2];
    struct stat st;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_new = fd < 0 && errno == ENOENT;
    if (is_new)
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    bool good = fd >= 0 && (!exclusive || flock(fd, LOCK_EX | LOCK_NB) == 0) && fstat(fd, &st) == 0 &&
                clock_gettime(CLOCK_REALTIME, &now) == 0;
    if (good) {
        struct change_counter found = make_counter(&st);
        *before = is_new ? (struct change_counter){0} : found;
        *made = (int64_t)now.tv_sec * second_ns + now.tv_nsec;
        if (*made <= found.ns)
            *made = found.ns + 1 + (int64_t)(files_random() & 0xFF);
        times[0] = times[1] = (struct timespec){*made / second_ns, *made % second_ns};
        good = futimens(fd, times) == 0;
    }
    int reason = errno; /* close may change it */
    sl_close(fd);
    errno = reason;
    return good;
}
