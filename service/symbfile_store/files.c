/* Directories of the store of uploaded symbfiles, and failures of uploads. */
#include "symbfile_store/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TREE_DEPTH = 6 }; /* only so many levels of directories are removed or measured; the store has fewer */

/* Opens and closes each directory of the path from the store's directory on. On NFS that makes the client fetch the directory's current
 * attributes, so that changes by other nodes are seen. Does nothing if the store is not shared. */
void store_refresh(const char *path)
{
    const char *store = store_limits.shared_dir;
    char part[STORE_PATH + SYMBFILE_ID_MAX + 8];
    size_t size = store ? strlen(store) : 0;
    if (!store || strncmp(path, store, size) != 0 || strlen(path) >= sizeof part)
        return;
    for (; path[size]; size++) {
        if (path[size] != '/')
            continue;
        memcpy(part, path, size);
        part[size] = '\0';
        int fd = open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return;
        close(fd);
    }
}

void store_remove_tree(const char *path)
{
    dir_remove(AT_FDCWD, path, TREE_DEPTH);
}

/* Callback of dir_walk(): adds the disk space of a file (st_blocks counts units of 512 bytes) to the sum `arg`. Of a file with N links each
 * link adds one N-th. Returns false: the entry was not removed. */
static bool add_blocks(void *arg, const struct dir_entry *entry)
{
    const struct stat *st = entry->st;
    if (!S_ISDIR(st->st_mode))
        *(uint64_t *)arg += (uint64_t)st->st_blocks * 512 / (st->st_nlink ? st->st_nlink : 1);
    return false;
}

uint64_t store_tree_bytes(const char *path)
{
    uint64_t sum = 0;
    dir_walk(&(struct dir_walk){.depth = TREE_DEPTH, .visit = add_blocks, .arg = &sum}, AT_FDCWD, path);
    return sum;
}

/* Sets the failure to a response with this HTTP status, error code and text. Its kind is SL_MALFORMED, "the upload is invalid"; callers set
 * another kind for other failures. */
void symbfile_fail(struct symbfile_failure *failure, int status, const char *code, const char *format, ...)
{
    va_list arguments;
    *failure = (struct symbfile_failure){.status = status, .kind = SL_MALFORMED};
    snprintf(failure->code, sizeof failure->code, "%s", code);
    va_start(arguments, format);
    vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
}

void symbfile_fail_with_cause(struct symbfile_failure *failure, enum sl_code code, const char *cause)
{
    if (code == SL_BUSY)
        symbfile_fail(failure, 503, "1401", "Too many uploads in progress.");
    else
        symbfile_fail(failure, 500, "1000", "Something went wrong on our side.");
    failure->kind = code;
    snprintf(failure->cause, sizeof failure->cause, "%.230s", cause);
}

void symbfile_fail_unreachable(struct symbfile_failure *failure, const char *cause)
{
    symbfile_fail(failure, 503, "1403", "The upload store does not respond.");
    failure->kind = SL_DOWNLOAD_ERROR;
    snprintf(failure->cause, sizeof failure->cause, "%.230s", cause);
}

/* True for errors that mean that memory or file descriptors are used up. */
static bool is_scarce(int number)
{
    return number == ENOMEM || number == EMFILE || number == ENFILE;
}

/* True for errors that mean that the file server does not respond, or does not know the open file any more. */
static bool is_unreachable(int number)
{
    return number == ESTALE || number == EIO || number == ETIMEDOUT || number == EHOSTDOWN || number == EHOSTUNREACH ||
           number == ENOTCONN || number == ECONNREFUSED || number == ENODEV;
}

enum sl_code store_code(int number)
{
    return number == 0 || number == ENOENT ? SL_OK : is_scarce(number) ? SL_BUSY : SL_DOWNLOAD_ERROR;
}

bool store_fail(struct symbfile_failure *failure, const char *what)
{
    int reason = errno;
    bool scarce = is_scarce(reason);
    /* Sets the most general failure first; the more specific ones below replace it. ENOENT: another process has replaced or removed the
     * upload meanwhile. */
    symbfile_fail_with_cause(failure, scarce ? SL_BUSY : reason == ENOENT ? SL_NOT_FOUND : SL_INTERNAL, "");
    if (is_unreachable(reason))
        symbfile_fail_unreachable(failure, "");
    if (reason == ENOSPC || reason == EDQUOT) {
        symbfile_fail(failure, 507, "1402", "Storage is full.");
        failure->kind = SL_INTERNAL;
    }
    snprintf(failure->cause, sizeof failure->cause, "%s: %s", what, strerror(reason));
    return false;
}
