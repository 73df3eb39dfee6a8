/* Temporary files for parts of uploads that arrive; none if the store of uploaded symbfiles is full. */
#include "symbfile_store/impl.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "core/loop.h"

/* Seconds for which a measured size of the store is used. Measuring walks the whole store, so it is done once a minute; but once a second
 * while the store is full, so that uploads succeed soon after files were removed. */
enum { SIZE_KNOWN_S = 60, FULL_KNOWN_S = 1 };

static _Atomic uint64_t known_bytes; /* size of the store when it was measured, and bytes received since then */
static _Atomic int64_t known_s;      /* when it was measured, in seconds since the epoch; 0: measure it */

void store_grew(uint64_t bytes)
{
    atomic_fetch_add(&known_bytes, bytes);
}

void store_shrank(void)
{
    atomic_store(&known_s, 0);
}

/* True if the store accepts uploads: its file system has min_free bytes left, and the store is below max_size (UINT64_MAX: no limit).
 * Measures the size again if that was done too long ago, or in the future (age < 0: the clock was set back). */
static bool has_room(const char *store)
{
    uint64_t reserve = store_limits.min_free, most = store_limits.max_size;
    struct statvfs fs;
    if (reserve && statvfs(store, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < reserve)
        return false;
    if (most == UINT64_MAX)
        return true;
    /* a full store is measured again sooner, as uploads are rejected until it is found to have room */
    int64_t now = clock_wall_s(), age = now - atomic_load(&known_s);
    if (age < 0 || age >= (atomic_load(&known_bytes) < most ? SIZE_KNOWN_S : FULL_KNOWN_S)) {
        atomic_store(&known_s, now);
        atomic_store(&known_bytes, store_tree_bytes(store));
    }
    return atomic_load(&known_bytes) < most;
}

bool symbfile_store_make_room(struct symbfile_failure *failure)
{
    char store[512];
    if (!symbfile_store_dir(store)) {
        symbfile_fail(failure, 404, "1301", "Not found.");
    } else if (!store_present(store)) {
        symbfile_fail_unreachable(failure, strerror(errno));
    } else if (!files_make_directory(store, 0750, FILES_DURABLE)) {
        store_fail(failure, "cannot create the directory of the upload store");
    } else if (!has_room(store)) {
        symbfile_fail(failure, 507, "1402", "Storage is full.");
    } else {
        return true;
    }
    return false;
}

/* Returns a file descriptor; -1 with `failure` if there is no store, or it is full or unreachable. */
int symbfile_store_receive(char path[600], struct symbfile_failure *failure)
{
    if (!symbfile_store_make_room(failure))
        return -1;
    char tmp[STORE_PATH];
    int fd = store_tmp(tmp) ? files_temp(tmp, "", 0750, path, 600) : -1;
    if (fd < 0)
        store_fail(failure, "cannot create a file in the upload store");
    return fd;
}
