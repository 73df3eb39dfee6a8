/* Sources that are local directories. A location never leaves the root, whatever symbolic links it contains. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "core/pool.h"
#include "origin/health.h"
#include "origin/impl.h"

/* Returns the file's URI: "file://<path of the source>/<location>". Data NULL when out of memory. */
struct sl_str filesystem_uri(struct sl_arena *arena, const struct source *source, struct sl_str location)
{
    struct sl_buf uri = {0};
    sl_buf_cstr(&uri, "file://");
    sl_buf_str(&uri, source->path);
    if (location.size && !sl_str_ends(source->path, SL_STR("/")))
        sl_buf_u8(&uri, '/');
    sl_buf_str(&uri, location);
    return sl_buf_move_to_arena(&uri, arena);
}

enum { ATTEMPTS = 3, RETRY_PAUSE_MS = 20 }; /* retries like downloads: network file systems have temporary errors */

struct file_copy {
    const char *root, *location;
    int from; /* -1 = not open */
    bool any_case;
    bool must_have_root; /* a missing or empty directory is an error */
    bool may_be_empty;
    bool is_wrapped; /* result of copy_work: the copy is compressed */
    int fd;
    bool heavy; /* large files are allowed */
    bool waits; /* out: the file is large; call again with `heavy` */
    uint64_t max_size;
    enum sl_code code;
    struct sl_error *error;
};

/* True if the path is absolute or has a component "..". */
static bool climbs(const char *location)
{
    if (location[0] == '/')
        return true;
    for (const char *at = location, *slash; at; at = slash ? slash + 1 : NULL) {
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return true;
        slash = strchr(at, '/');
    }
    return false;
}

/* Opens a file below the root. The kernel rejects paths that leave the root. Without openat2, paths with ".." are rejected
 * here, and a link as last component by O_NOFOLLOW. O_NONBLOCK: a FIFO must not block the thread. */
int filesystem_open(const char *root, const char *location)
{
    int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, dir, location, &how, sizeof how);
    if (fd < 0 && errno == ENOSYS && !climbs(location)) /* kernels before 5.6 */
        fd = openat(dir, location, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    int number = errno;
    close(dir);
    errno = number;
    return fd;
}

/* Checks that the directory of a source is there and not empty: an empty one is probably a mount point without its file
 * system. */
enum sl_code origin_check_directory(const char *root, struct sl_error *error)
{
    DIR *directory = opendir(root);
    const struct dirent *entry;
    bool empty = true;
    if (!directory && errno == EACCES && access(root, X_OK) == 0)
        return SL_OK; /* its names cannot be read, but its files can be opened */
    if (!directory && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return sl_fail_errno(error, errno, "cannot open the directory of the symbol source");
    if (!directory)
        return sl_fail(error, SL_DOWNLOAD_ERROR, "cannot read the directory of the symbol source: %s", strerror(errno));
    while (empty && (entry = readdir(directory)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(directory);
    return empty ? sl_fail(error, SL_DOWNLOAD_ERROR, "the directory of the symbol source is empty; is it mounted?")
                 : SL_OK;
}

bool filesystem_is_missing(int number)
{
    return number == ENOENT || number == ENOTDIR || number == ELOOP || number == EXDEV || number == ENAMETOOLONG;
}

/* Converts the errno of a file that could not be opened. If the source's directory itself is missing or empty, that is the error, unless
 * the errno is certainly about the file. Links that lead out of the root (EXDEV, ELOOP) count as missing files. */
static enum sl_code open_error(const struct file_copy *c, int number, struct sl_error *error)
{
    /* A file server that is gone causes many different errors; checking the root detects that. SL_BUSY: this process is short of memory or
     * descriptors. */
    bool is_about_file = number == EACCES || number == EPERM || number == ELOOP || number == EXDEV ||
                         number == ENAMETOOLONG || sl_fail_errno(NULL, number, "") == SL_BUSY;
    if (c->must_have_root && !is_about_file && origin_check_directory(c->root, error) != SL_OK)
        return error->code;
    if (filesystem_is_missing(number))
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    if (number == EACCES || number == EPERM)
        return sl_fail(error, SL_PERMISSION_DENIED, "%s", strerror(number));
    return sl_fail_errno(error, number, "cannot open a file of the symbol source");
}

/* Copies the file, in the kernel if possible. Only regular files are served; others count as not found, without a message. `to` is emptied
 * first: an earlier attempt may have failed halfway. */
static enum sl_code copy_all(int from, int to, uint64_t max_size, struct sl_error *error)
{
    struct stat st;
    if (fstat(from, &st) != 0 || !S_ISREG(st.st_mode))
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    if ((uint64_t)st.st_size > max_size)
        return fetch_too_large(error);
    if (ftruncate(to, 0) != 0 || lseek(to, 0, SEEK_SET) != 0)
        return sl_fail(error, SL_INTERNAL, "cannot truncate the copy of a file of the symbol source");
    char piece[64 * 1024];
    bool in_kernel = true;
    for (uint64_t copied = 0;;) {
        ssize_t n = in_kernel ? copy_file_range(from, NULL, to, NULL, 1 << 30, 0) : read(from, piece, sizeof piece);
        if (in_kernel && (n < 0 || (n == 0 && copied == 0))) {
            in_kernel = false; /* not supported by the kernel or these file systems, some of which return 0 */
            continue;
        }
        if (n < 0 || (!in_kernel && !sl_write_all(to, (struct sl_bytes){(const uint8_t *)piece, (size_t)n})))
            return sl_fail_errno(error, errno, "cannot copy a file of the symbol source");
        copied += (uint64_t)n;
        if (n == 0)
            return SL_OK;
        if (copied > max_size) /* the file grew while it was copied */
            return fetch_too_large(error);
    }
}

/* Sets c->code to an error if the copy is empty and may not be. */
static void check_size(struct file_copy *c)
{
    struct stat st;
    if (!c->may_be_empty && fstat(c->fd, &st) == 0 && st.st_size == 0)
        c->code = sl_fail(c->error, SL_DOWNLOAD_ERROR, "the file is empty");
}

/* Pool work: opens and copies the file, and checks if it is compressed (is_wrapped). A large file is only opened by the first call, which
 * sets `waits`; a second call, as heavy work, copies it. The result is in c->code; the caller closes c->from. */
static void copy_work(void *arg)
{
    struct file_copy *c = arg;
    struct stat st;
    if (c->from < 0)
        c->from = c->any_case ? any_case_open(c->root, c->location) : filesystem_open(c->root, c->location);
    if (c->from < 0) {
        c->code = open_error(c, errno, c->error);
        return;
    }
    c->waits = !c->heavy && fstat(c->from, &st) == 0 && pool_is_heavy((uint64_t)st.st_size);
    if (c->waits)
        return;
    c->code = copy_all(c->from, c->fd, c->max_size, c->error);
    c->is_wrapped = c->code == SL_OK && fetch_is_wrapped_file(c->fd);
    if (c->code == SL_OK && !c->is_wrapped)
        check_size(c);
}

static void check_work(void *arg)
{
    check_size(arg);
}

/* Decompresses the copy if it is compressed; the result is in c->code. Returns an error only if the pool did not run the work. */
static enum sl_code unpack_copy(struct file_copy *c, struct sl_error *error) SL_SUSPENDS
{
    if (c->code != SL_OK || !c->is_wrapped)
        return SL_OK;
    c->code = fetch_unpack(c->fd, c->max_size, c->error);
    return c->code == SL_OK && !c->may_be_empty ? pool_run(POOL_IO, check_work, c, error) : SL_OK;
}

/* Makes one attempt to copy the file, a large one as heavy pool work, so that it does not block others; the result is in c->code. Returns
 * an error only if the pool did not run the work. */
static enum sl_code copy_once(struct file_copy *c, struct sl_error *error) SL_SUSPENDS
{
    c->from = -1;
    c->heavy = false;
    enum sl_code code = pool_run(POOL_IO, copy_work, c, error);
    if (code == SL_OK && c->waits) {
        c->heavy = true;
        code = pool_run(POOL_IO | POOL_HEAVY, copy_work, c, error);
    }
    sl_close(c->from);
    return code == SL_OK ? unpack_copy(c, error) : code;
}

enum sl_code filesystem_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct file_copy c = {
        .root = sl_arena_strndup(&arena, file->source->path.data, file->source->path.size),
        .location = sl_arena_strndup(&arena, file->location.data, file->location.size),
        .fd = fd,
        .any_case = file->source->casing == CASING_INSENSITIVE,
        /* Not for commands, whose directories may be missing and which report problems themselves, nor for uploads,
         * which create their directories. */
        .must_have_root = origin_health_is_watched() && !file->source->internal,
        .may_be_empty = file->may_be_empty,
        .max_size = file->max_size ? file->max_size : fetch_max_size(),
        .error = error};
    enum sl_code code = c.root && c.location ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    for (int i = 1; code == SL_OK; i++) {
        code = copy_once(&c, error);
        /* tries again only after SL_INTERNAL, an I/O error, which may be temporary */
        if (code != SL_OK || c.code != SL_INTERNAL || i == ATTEMPTS)
            break;
        if (!fiber_sleep(RETRY_PAUSE_MS))
            code = sl_fail(error, SL_CANCELLED, "cancelled");
    }
    sl_arena_free(&arena);
    return code == SL_OK ? c.code : code;
}
