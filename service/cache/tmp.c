/* Temporary files, in a directory of each process.
 *
 *     <cache_dir>/tmp/<pid>-<random>/lock      locked by flock(2) as long as the process lives
 *                                   /ledger    journal of the process's work
 *                                   /tmp...    files being computed, uploads
 *
 * If the lock of a directory is free, its process has died. Any process then removes the directory, after it has read the journal to learn
 * how that process died and what it was working on. */
#include "cache/impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files.h"
#include "core/journal.h"
#include "core/loop.h"
#include "core/pool.h"
#include "core/temp_dir.h"

enum { ATTEMPTS = 3, TREE_DEPTH = 8 };
/* YOUNG_NS: a younger directory without a lock stays, as its process may be about to create the lock. */
#define YOUNG_NS (60 * CACHE_SECOND_NS)
#define DAY_NS   (24 * 3600 * CACHE_SECOND_NS)

/* The directory of this process. */
static struct {
    char root[200];         /* <cache_dir>/tmp; empty = use the system's directory */
    char dir[232];          /* <cache_dir>/tmp/<pid>-<random> */
    int lock;               /* descriptor of its lock, -1 = none */
    pthread_mutex_t mutex;  /* for pool threads that recreate a removed directory */
    atomic_bool unwritable; /* the last attempt to create a file in it has failed */
} own = {.lock = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};

const char *cache_tmp_dir(void)
{
    return own.root[0] ? own.dir : temp_dir();
}

/* Creates the directory own.dir and its lock, and takes that. False with errno; ENOENT: another process removed the directory before it was
 * locked, and the caller may try again. */
static bool make_dir(void)
{
    char path[256];
    if (!files_make_directory(own.dir, 0750, FILES_UNSYNCED))
        return false;
    snprintf(path, sizeof path, "%s/lock", own.dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0)
        return false;
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &st) != 0 || st.st_nlink == 0) {
        close(fd);
        errno = ENOENT; /* another process removed it before it was locked */
        return false;
    }
    sl_close(own.lock); /* of a directory that was removed */
    own.lock = fd;
    return true;
}

/* Creates the directory of this process again if somebody has removed it, for example by clearing the cache directory. Several pool threads
 * may notice that at once, so one does it under a mutex. */
static bool remake_dir(void)
{
    pthread_mutex_lock(&own.mutex);
    bool ok = access(own.dir, F_OK) == 0 || make_dir();
    pthread_mutex_unlock(&own.mutex);
    return ok;
}

enum sl_code cache_tmp_open(const char *cache_dir, struct sl_error *error)
{
    if (!cache_dir) {
        own.root[0] = '\0';
        return SL_OK;
    }
    int length = snprintf(own.root, sizeof own.root, "%s/tmp", cache_dir);
    if (length < 0 || (size_t)length >= sizeof own.root) {
        own.root[0] = '\0';
        return sl_fail(error, SL_MALFORMED, "cache_dir: the path is too long");
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        snprintf(own.dir, sizeof own.dir, "%s/%d-%08x", own.root, (int)getpid(), (unsigned)files_random());
        if (make_dir()) {
            /* path of the journal: what the pool threads work on, for the case that the process dies */
            char ledger[256];
            snprintf(ledger, sizeof ledger, "%s/ledger", own.dir);
            /* one slot for each pool thread */
            journal_open(ledger, loop_pool_threads() + pool_background_threads(loop_pool_threads()));
            return SL_OK;
        }
    }
    enum sl_code code = sl_fail(error, SL_INTERNAL, "cannot create %.150s: %s", own.dir, strerror(errno));
    own.root[0] = '\0';
    return code;
}

/* Creates an unnamed file in the system's directory for temporary files, while the cache directory takes none: its contents can be used,
 * but not published. */
static enum sl_code create_elsewhere(struct cache_tmp *tmp, struct sl_error *error)
{
    tmp->path[0] = '\0';
    tmp->fd = sl_unlinked_file(temp_dir());
    return tmp->fd >= 0 ? SL_OK : sl_fail_errno(error, errno, "cannot create a temporary file outside cache_dir");
}

void cache_tmp_probe(void *unused)
{
    struct cache_tmp tmp;
    (void)unused;
    if (cache_tmp_create(&tmp, true, NULL) == SL_OK)
        cache_tmp_discard(&tmp);
}

bool cache_writable(void)
{
    return !atomic_load(&own.unwritable);
}

/* If the cache directory takes no files, for another reason than a lack of descriptors or memory in this process (SL_BUSY), the file is
 * created elsewhere, without a name. If somebody has removed the directory of this process, creates that again. */
enum sl_code cache_tmp_create(struct cache_tmp *tmp, bool unlinked, struct sl_error *error)
{
    *tmp = (struct cache_tmp){.fd = -1};
    for (int attempt = 0; attempt < ATTEMPTS && tmp->fd < 0; attempt++) {
        tmp->fd = files_temp(cache_tmp_dir(), "tmp", 0, tmp->path, sizeof tmp->path);
        if (tmp->fd < 0 && !(errno == ENOENT && own.root[0] && remake_dir()))
            break;
    }
    if (tmp->fd < 0 && own.root[0] && sl_fail_errno(NULL, errno, "") != SL_BUSY) {
        atomic_store(&own.unwritable, true);
        return create_elsewhere(tmp, error);
    }
    if (tmp->fd < 0) {
        tmp->path[0] = '\0';
        return sl_fail_errno(error, errno, "cannot create a temporary file");
    }
    if (own.root[0])
        atomic_store(&own.unwritable, false);
    if (unlinked || !own.root[0]) {
        unlink(tmp->path);
        tmp->path[0] = '\0';
    }
    return SL_OK;
}

void cache_tmp_discard(struct cache_tmp *tmp)
{
    if (tmp->path[0])
        unlink(tmp->path);
    sl_close(tmp->fd);
    *tmp = (struct cache_tmp){.fd = -1};
}

/* Reads the journal in the directory of a process that has died, before the directory is removed, and counts the death for the files that
 * the process was working on (quarantine.c), unless it ended on purpose. */
static void note_death(const char *cache_dir, int at, const char *name)
{
    char path[300];
    struct journal_record death;
    snprintf(path, sizeof path, "%.255s/ledger", name);
    int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    if (journal_read(fd, &death) && !death.on_purpose)
        quarantine_note(cache_dir, &death);
    close(fd);
}

/* Removes the directory of a process that has died: its lock is free, or it has no lock and is older than YOUNG_NS. A younger one without a
 * lock may be of a process that has not created its lock yet. */
static void sweep_dir(const char *cache_dir, int at, const char *name, int64_t age_ns)
{
    char path[300];
    snprintf(path, sizeof path, "%.255s/lock", name);
    int lock = openat(at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (lock < 0) {
        if (errno == ENOENT && age_ns > YOUNG_NS)
            dir_remove(at, name, TREE_DEPTH);
        return;
    }
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
        note_death(cache_dir, at, name);
        dir_remove(at, name, TREE_DEPTH);
    }
    close(lock);
}

void cache_tmp_sweep(const char *cache_dir)
{
    char root[CACHE_PATH_BYTES];
    if (snprintf(root, sizeof root, "%s/tmp", cache_dir) >= (int)sizeof root)
        return;
    DIR *dir = opendir(root);
    struct stat st;
    int64_t now = cache_now_ns();
    for (struct dirent *e; (e = dir_next(dir, &st));) {
        int64_t age_ns = now - (int64_t)st.st_mtim.tv_sec * CACHE_SECOND_NS;
        if (S_ISDIR(st.st_mode))
            sweep_dir(cache_dir, dirfd(dir), e->d_name, age_ns);
        else if (age_ns > DAY_NS) /* a file that is in no process's directory */
            unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

/* Must be async-signal-safe: so it uses system calls only, and leaves what is in subdirectories. */
void cache_tmp_abandon(void)
{
    _Alignas(struct dirent64) char block[4096]; /* for getdents64(2), as readdir(3) may allocate memory */
    journal_note_end(0, false);                 /* 0: a normal end; false: no fault of this thread */
    int fd = own.root[0] ? open(own.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    for (ssize_t size; fd >= 0 && (size = getdents64(fd, block, sizeof block)) > 0;)
        for (ssize_t at = 0; at < size;) {
            const struct dirent64 *entry = (const struct dirent64 *)(block + at);
            unlinkat(fd, entry->d_name, 0); /* fails for "." and ".." and other directories */
            at += entry->d_reclen;
        }
    rmdir(own.dir);
}

/* Removes the directory of this process while its lock is still held, so that no other process finds the lock free and takes this one for
 * dead. */
void cache_tmp_close(void)
{
    if (own.root[0])
        dir_remove(AT_FDCWD, own.dir, TREE_DEPTH);
    journal_close();
    sl_close(own.lock);
    own.lock = -1;
    own.root[0] = own.dir[0] = '\0';
    atomic_store(&own.unwritable, false);
}
