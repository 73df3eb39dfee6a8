/* Locks an executable in the upload store, so that its uploads change one after the other: first among the fibers of this process, in
 * the order in which they ask, then among processes, by flock(2) on a file. Waiting blocks no thread. */
#include "symbfile_store/bucket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

/* Pauses between attempts to lock the file: each is twice as long as the one before, up to the longest. */
enum { FIRST_WAIT_MS = 5, LONGEST_WAIT_MS = 250 };

struct symbfile_lock_waiter { /* the queue for an executable: one fiber has its turn, others wait */
    struct fiber_wait_list next;
    size_t waiting; /* fibers in `next`, or just woken */
    struct symbfile_key file_key;
};

static struct sl_map turns; /* the queues, by turn_key(); only executables that a fiber has locked. Loop thread */

/* Adds `by` to the number of fibers that wait for a lock, in the metrics. */
static void count_waiting(int by)
{
    static int waiting;
    metric_set(METRIC_WAITING, waiting += by, "lock", NULL, NULL);
}

/* Returns the key of an executable in `turns`: the file id and the text of the scope, which follow each other in the struct. */
static struct sl_str turn_key(const struct symbfile_key *file_key)
{
    return (struct sl_str){(const char *)file_key, sizeof file_key->file_id + strlen(file_key->scope)};
}

/* Ends this fiber's turn: the fiber that has waited longest has its turn now; if none waits, the queue is freed. */
static void turn_end(struct symbfile_lock_waiter *turn)
{
    if (turn->waiting) {
        fiber_wake_one(&turn->next);
        return;
    }
    sl_map_remove(&turns, turn_key(&turn->file_key));
    free(turn);
    if (!turns.count)
        sl_map_free(&turns);
}

/* Waits for this fiber's turn among the fibers of this process. SL_OK: it has its turn, to be ended by turn_end(*taken). SL_BUSY (at
 * `until_ms`, or out of memory) and SL_CANCELLED: it has no turn, and `*taken` must not be used. */
static enum sl_code turn_take(const struct symbfile_key *file_key, uint64_t until_ms,
                              struct symbfile_lock_waiter **taken, struct sl_error *error)
{
    struct symbfile_lock_waiter *turn = sl_map_get(&turns, turn_key(file_key));
    if (!turn) {
        turn = calloc(1, sizeof *turn);
        if (turn)
            turn->file_key = *file_key;
        if (!turn || !sl_map_put(&turns, turn_key(&turn->file_key), turn)) {
            free(turn);
            return sl_fail(error, SL_BUSY, "out of memory");
        }
        *taken = turn;
        return SL_OK;
    }
    uint64_t now = loop_now_ms();
    turn->waiting++;
    count_waiting(1);
    enum fiber_wait result = fiber_wait_on(&turn->next, until_ms > now ? until_ms - now : 0);
    count_waiting(-1);
    turn->waiting--;
    *taken = turn;
    if (result == FIBER_WOKEN)
        return SL_OK;
    return result == FIBER_CANCELLED
               ? sl_fail(error, SL_CANCELLED, "cancelled")
               : sl_fail(error, SL_BUSY, "another upload of the same executable takes too long; try again later");
}

/* Tries to lock the file `lock` in the executable's directory. -1 with errno: EWOULDBLOCK if another process has the lock, ENOENT if the
 * directory does not exist and `make` is false. */
int store_try_lock(const char *home, bool make)
{
    char path[STORE_PATH + 16];
    struct stat st;
    if (make ? !files_make_directory(home, 0750, FILES_DURABLE) : stat(home, &st) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/lock", home);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int reason = errno;
        if (reason == EINTR)
            continue;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

struct lock_attempt { /* try_home_lock() on the pool */
    const struct symbfile_key *file_key;
    bool make;      /* make the executable's directory if it is missing */
    bool present;   /* result: the store's directory is there */
    int fd, reason; /* result: locked file, -1: failed; errno */
};

/* Pool work: tries once to lock the executable's directory against other processes. */
static void try_home_lock(void *arg)
{
    struct lock_attempt *attempt = arg;
    char home[STORE_PATH];
    char store[512];
    errno = ENOENT; /* if there is no store */
    attempt->fd = -1;
    attempt->present = symbfile_store_dir(store) && store_present(store);
    if (attempt->present && store_home(attempt->file_key, home))
        attempt->fd = store_try_lock(home, attempt->make);
    attempt->reason = errno;
}

/* Waits for the lock against other processes: tries flock(2) again and again with growing pauses, as waiting in it would occupy a pool
 * thread; EWOULDBLOCK means that another process has the lock. SL_DOWNLOAD_ERROR if the store is not there; SL_NOT_FOUND if nothing was
 * uploaded for the executable and its directory is not to be made; SL_BUSY at `until_ms`. */
static enum sl_code lock_file(struct lock_attempt *attempt, uint64_t until_ms, struct sl_error *error)
{
    if (remote_bucket()) /* a bucket has no locks */
        return SL_OK;
    for (uint64_t wait_ms = FIRST_WAIT_MS;; wait_ms = wait_ms < LONGEST_WAIT_MS / 2 ? 2 * wait_ms : LONGEST_WAIT_MS) {
        enum sl_code code = pool_run(POOL_IO, try_home_lock, attempt, error);
        if (code != SL_OK) /* the pool could not run it */
            return code == SL_INTERNAL ? code : SL_BUSY;
        if (attempt->fd >= 0)
            return SL_OK;
        if (!attempt->present || store_code(attempt->reason) == SL_DOWNLOAD_ERROR) {
            /* for EWOULDBLOCK store_code() gives SL_DOWNLOAD_ERROR too, but it only means that the lock is taken: see below */
            if (attempt->reason != EWOULDBLOCK)
                return sl_fail(error, SL_DOWNLOAD_ERROR, "cannot lock a directory of the upload store: %s",
                               strerror(attempt->reason));
        }
        if (attempt->reason == ENOENT && !attempt->make)
            return sl_fail(error, SL_NOT_FOUND, "nothing was uploaded for the executable");
        if (attempt->reason != EWOULDBLOCK)
            return sl_fail_errno(error, attempt->reason, "cannot lock a directory of the upload store");
        if (loop_now_ms() >= until_ms)
            return sl_fail(error, SL_BUSY, "another process is changing uploads of this executable; try again later");
        count_waiting(1);
        bool slept = fiber_sleep(wait_ms);
        count_waiting(-1);
        if (!slept)
            return sl_fail(error, SL_CANCELLED, "cancelled");
    }
}

enum sl_code symbfile_lock(const struct symbfile_key *file_key, bool make, uint64_t wait_ms, struct symbfile_lock *lock,
                           struct sl_error *error)
{
    uint64_t now = loop_now_ms(), until_ms = wait_ms < UINT64_MAX - now ? now + wait_ms : UINT64_MAX;
    struct lock_attempt attempt = {.file_key = file_key, .make = make, .fd = -1};
    *lock = (struct symbfile_lock){.fd = -1};
    enum sl_code code = turn_take(file_key, until_ms, &lock->turn, error);
    if (code != SL_OK) {
        lock->turn = NULL;
        return code;
    }
    code = lock_file(&attempt, until_ms, error);
    lock->fd = attempt.fd;
    if (code != SL_OK)
        symbfile_unlock(lock);
    return code;
}

void symbfile_unlock(struct symbfile_lock *lock)
{
    sl_close(lock->fd);
    if (lock->turn)
        turn_end(lock->turn);
    *lock = (struct symbfile_lock){.fd = -1};
}
