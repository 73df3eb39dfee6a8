/* Cleans the store of uploaded symbfiles: removes sets (all parts of an upload) that were not completed in time, measures the rest. */
#include "symbfile_store/impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files.h"
#include "core/loop.h"

enum {
    TMP_AGE_S = 24 * 3600, /* age at which a temporary file counts as left behind by a crash */
    TMP_DEPTH = 3,         /* depth to which directories in tmp/ (local copies of sets) are removed */
};

/* Counts the incomplete sets in an executable's directory that got no part for `ttl_s`; with `remove` removes them. */
static size_t expired_sets(const char *home, int64_t now, int64_t ttl_s, bool remove)
{
    char path[STORE_PATH + 200];
    size_t count, expired = 0;
    struct symbfile_set *sets = store_sets(home, &count);
    for (size_t i = 0; i < count; i++) {
        if (sets[i].published || now - sets[i].updated_s < ttl_s)
            continue;
        expired++;
        snprintf(path, sizeof path, "%s/%s", home, sets[i].name);
        if (remove)
            store_remove_tree(path);
    }
    free(sets);
    return expired;
}

/* Removes incomplete sets that are too old from an executable's directory. Looks for them without the lock first, as usually there are
 * none; then again under the lock, as a part may have arrived meanwhile. If the lock is taken, the next sweep tries again. */
static void sweep_home(const char *home, int64_t now, int64_t ttl_s)
{
    if (!expired_sets(home, now, ttl_s, false))
        return;
    int lock = store_try_lock(home, false);
    if (lock < 0)
        return;
    expired_sets(home, now, ttl_s, true);
    close(lock);
}

/* Adds the bytes of an executable's sets to the size of incomplete or published ones. */
static void add_bytes(const char *home, struct symbfile_store_size *size)
{
    char path[STORE_PATH + 200];
    size_t count;
    struct symbfile_set *sets = store_sets(home, &count);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", home, sets[i].name);
        *(sets[i].published ? &size->published : &size->staging) += store_tree_bytes(path);
    }
    free(sets);
}

/* Removes temporary files that a crash has left behind. */
static void sweep_tmp(const char *store, int64_t now)
{
    char path[STORE_PATH];
    snprintf(path, sizeof path, "%s/tmp", store);
    DIR *dir = opendir(path);
    struct stat st;
    for (struct dirent *e; (e = dir_next(dir, &st));)
        if (now - (int64_t)st.st_mtim.tv_sec > TMP_AGE_S)
            dir_remove(dirfd(dir), e->d_name, TMP_DEPTH);
    if (dir)
        closedir(dir);
}

/* Sweeps the executables of one scope. Their directories are in 256 groups, by the first byte of the file id, in hex. */
static void sweep_root(const char *root, int64_t now, int64_t ttl_s, struct symbfile_store_size *size)
{
    char path[STORE_PATH + FILE_ID_HEX + 8];
    for (unsigned first = 0; first < 256; first++) {
        snprintf(path, sizeof path, "%s/%02x", root, first);
        DIR *dir = opendir(path);
        for (struct dirent *e; (e = dir_next(dir, NULL));) {
            if (strlen(e->d_name) != FILE_ID_HEX - 1)
                continue;
            snprintf(path, sizeof path, "%s/%02x/%s", root, first, e->d_name);
            sweep_home(path, now, ttl_s);
            add_bytes(path, size);
        }
        if (dir)
            closedir(dir);
    }
}

/* Sweeps the executables of all scopes but the global one. */
static void sweep_scopes(const char *store, int64_t now, int64_t ttl_s, struct symbfile_store_size *size)
{
    char path[STORE_PATH];
    snprintf(path, sizeof path, "%s/scopes", store);
    DIR *dir = opendir(path);
    for (struct dirent *e; (e = dir_next(dir, NULL));)
        if (store_root(e->d_name, path))
            sweep_root(path, now, ttl_s, size);
    if (dir)
        closedir(dir);
}

enum sl_code symbfile_store_sweep(struct symbfile_store_size *size, struct sl_error *error)
{
    char store[512], path[STORE_PATH];
    int64_t now = clock_wall_s(), ttl_s = (int64_t)(store_limits.staging_ttl_ns / 1000000000);
    *size = (struct symbfile_store_size){0};
    if (!symbfile_store_dir(store))
        return SL_OK;
    snprintf(path, sizeof path, "%s/tmp", store);
    if (!store_present(store))
        return sl_fail(error, SL_DOWNLOAD_ERROR, "cannot read the upload store's directory %s (is it mounted?): %s",
                       store, strerror(errno));
    if (!files_make_directory(path, 0750, FILES_DURABLE))
        return sl_fail(error, SL_INTERNAL, "cannot create the directory %s in the upload store: %s", path,
                       strerror(errno));
    store_changed(store); /* announces changes of processes that crashed before they could announce them */
    sweep_tmp(store, now);
    sweep_root(store, now, ttl_s, size);
    sweep_scopes(store, now, ttl_s, size);
    return SL_OK;
}
