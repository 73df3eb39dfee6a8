/* The shared cache in a directory that several machines mount: <path>/<kind>/<relative path>, contents as they are, not compressed. */
#include "cache/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files.h"
#include "core/pool.h"

enum { CHUNK = 256 << 10 };

static char root[CACHE_PATH_BYTES / 2];

struct cache_directory_job {
    const char *name;
    int fd;                /* get: the file to copy the entry into */
    int64_t modified_s;    /* get: mtime of the entry */
    struct sl_bytes bytes; /* put: the contents */
    bool replace;          /* put: the entry that exists is overwritten, as it is damaged or outdated */
    enum shared_result result;
};

/* Writes the path of the entry of this name. False, with errno, if it is too long. */
static bool make_path(const char *name, char out[CACHE_PATH_BYTES])
{
    bool fits = snprintf(out, CACHE_PATH_BYTES, "%s/%s", root, name) < CACHE_PATH_BYTES;
    if (!fits)
        errno = ENAMETOOLONG;
    return fits;
}

/* Returns the result for an entry that could not be opened or examined, by errno: sl_fail_errno gives SL_BUSY if this process lacks memory
 * or descriptors. */
static enum shared_result missing_or_error(void)
{
    return errno == ENOENT ? SHARED_MISS : sl_fail_errno(NULL, errno, "") == SL_BUSY ? SHARED_BUSY : SHARED_ERROR;
}

/* Copies the file `from` to the file `to`. SHARED_HIT; SHARED_ERROR: cannot read; SHARED_BUSY: out of memory, or cannot write `to`, which
 * is on this machine's disk. */
static enum shared_result copy_entry(int from, int to)
{
    uint8_t *chunk = malloc(CHUNK);
    enum shared_result result = chunk ? SHARED_HIT : SHARED_BUSY;
    for (ssize_t n = 1; n > 0 && result == SHARED_HIT;) {
        n = read(from, chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            result = SHARED_ERROR;
        else if (n > 0 && !sl_write_all(to, (struct sl_bytes){chunk, (size_t)n}))
            result = SHARED_BUSY;
    }
    free(chunk);
    return result;
}

/* Pool work: copies an entry to the file job->fd. */
static void get_file(void *arg)
{
    struct cache_directory_job *job = arg;
    char path[CACHE_PATH_BYTES];
    /* O_NONBLOCK: opening a FIFO does not wait for a writer */
    int fd = make_path(job->name, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0) {
        job->result = missing_or_error();
        return;
    }
    struct stat st;
    job->modified_s = fstat(fd, &st) == 0 ? (int64_t)st.st_mtim.tv_sec : 0;
    job->result = copy_entry(fd, job->fd);
    close(fd);
}

/* Pool work: SHARED_HIT if the entry exists. */
static void exists_file(void *arg)
{
    struct cache_directory_job *job = arg;
    struct stat st;
    char path[CACHE_PATH_BYTES];
    bool there = make_path(job->name, path) && stat(path, &st) == 0;
    job->result = there ? SHARED_HIT : missing_or_error();
}

/* Writes the contents to the temporary file `fd`, whose path is `tmp`, and gives it the name `path`: by link(2), which fails if another
 * machine was faster (SHARED_SKIPPED), or by rename(2) to replace an entry. Readers never see half a file. Closes `fd`, removes `tmp`. */
static enum shared_result put_at(int fd, const char *path, const char *tmp, const struct cache_directory_job *job)
{
    bool written = sl_write_all(fd, job->bytes) && fdatasync(fd) == 0;
    close(fd);
    bool is_named = written && (job->replace ? rename(tmp, path) : link(tmp, path)) == 0;
    enum shared_result result = is_named                                      ? SHARED_WRITTEN
                                : written && !job->replace && errno == EEXIST ? SHARED_SKIPPED
                                                                              : SHARED_ERROR;
    unlink(tmp);
    return result;
}

/* Pool work: writes an entry unless it exists and is not to be replaced (SHARED_SKIPPED). The temporary file is in the directory `.tmp`
 * beside it, as link(2) and rename(2) need the same file system. */
static void put_file(void *arg)
{
    struct cache_directory_job *job = arg;
    char path[CACHE_PATH_BYTES], directory[CACHE_PATH_BYTES], tmp[CACHE_PATH_BYTES + 32];
    struct stat st;
    job->result = SHARED_ERROR;
    if (!make_path(job->name, path))
        return;
    if (!job->replace && stat(path, &st) == 0) {
        job->result = SHARED_SKIPPED;
        return;
    }
    int size = snprintf(directory, sizeof directory, "%.*s/.tmp", (int)(strrchr(path, '/') - path), path);
    int fd = size < (int)sizeof directory ? files_temp(directory, "", 0750, tmp, sizeof tmp) : -1;
    if (fd >= 0)
        job->result = put_at(fd, path, tmp, job);
}

/* Runs a job on the pool, and returns its result; SHARED_ERROR if it could not run. */
static enum shared_result cache_directory_run(struct cache_directory_job *job, void (*fn)(void *))
{
    return pool_run(POOL_IO, fn, job, NULL) == SL_OK ? job->result : SHARED_ERROR;
}

/* shared_backend.get: copies an entry into the file. A directory stores contents only, no errors (SL_OK). The mtime of the file is the time
 * at which the entry was made. */
static enum shared_result cache_directory_get(const char *name, int fd, struct shared_value *value)
{
    value->code = SL_OK;
    struct cache_directory_job job = {.name = name, .fd = fd};
    enum shared_result result = cache_directory_run(&job, get_file);
    value->created_s = job.modified_s;
    return result;
}

/* shared_backend.put. */
static enum shared_result cache_directory_put(const struct shared_entry *entry)
{
    struct cache_directory_job job = {.name = entry->name, .bytes = entry->contents, .replace = entry->replace};
    return cache_directory_run(&job, put_file);
}

/* shared_backend.exists. */
static enum shared_result exists(const char *name)
{
    return cache_directory_run(&(struct cache_directory_job){.name = name}, exists_file);
}

/* Pool work: deletes an entry. One that is not there counts as deleted. */
static void delete_file(void *arg)
{
    struct cache_directory_job *job = arg;
    char path[CACHE_PATH_BYTES];
    job->result = make_path(job->name, path) && (unlink(path) == 0 || errno == ENOENT) ? SHARED_HIT : SHARED_ERROR;
}

/* shared_backend.del. */
static enum shared_result del(const char *name)
{
    return cache_directory_run(&(struct cache_directory_job){.name = name}, delete_file);
}

/* shared_backend.probe: examines the directory itself, to learn whether the file system answers again. */
static enum shared_result probe(void)
{
    enum shared_result result = exists(".");
    return result == SHARED_MISS ? SHARED_HIT : result; /* the first write creates the directory */
}

static struct shared_backend backend;

/* Sets up the back end for the configured directory. NULL, with an error and the configuration key at fault, if its path is too long. The
 * directory is not accessed yet. */
struct shared_backend *shared_directory(const struct config *config, const char **key, struct sl_error *error)
{
    if (snprintf(root, sizeof root, "%s", config->shared.filesystem_path) >= (int)sizeof root) {
        *key = "shared_cache.filesystem.path";
        sl_fail(error, SL_MALFORMED, "the path of the shared cache directory is too long");
        return NULL;
    }
    /* patience: unusable answers in a row after which it is paused */
    backend = (struct shared_backend){.name = "filesystem",
                                      .patience = 20,
                                      .get = cache_directory_get,
                                      .put = cache_directory_put,
                                      .exists = exists,
                                      .del = del,
                                      .probe = probe};
    return &backend;
}
