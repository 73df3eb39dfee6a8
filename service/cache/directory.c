/* The shared layer in a directory that several machines mount: <path>/<kind>/<relative path>, plain bytes. */
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
    int fd; /* get */
    int64_t modified_s;
    struct sl_bytes bytes; /* put */
    enum shared_result result;
};

/* False with errno if the path is too long. */
static bool make_path(const char *name, char out[CACHE_PATH_BYTES])
{
    bool fits = snprintf(out, CACHE_PATH_BYTES, "%s/%s", root, name) < CACHE_PATH_BYTES;
    if (!fits)
        errno = ENAMETOOLONG;
    return fits;
}

/* Returns what a failed look at an entry means, by errno. */
static enum shared_result missing_or_error(void)
{
    return errno == ENOENT ? SHARED_MISS : sl_fail_errno(NULL, errno, "") == SL_BUSY ? SHARED_BUSY : SHARED_ERROR;
}

/* Copies the rest of an entry. SHARED_BUSY: out of memory, or this machine cannot write its own file. */
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

/* On the pool: copies an entry into the job's descriptor. */
static void get_file(void *arg)
{
    struct cache_directory_job *job = arg;
    char path[CACHE_PATH_BYTES];
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

/* On the pool: looks whether an entry is there. */
static void exists_file(void *arg)
{
    struct cache_directory_job *job = arg;
    struct stat st;
    char path[CACHE_PATH_BYTES];
    bool there = make_path(job->name, path) && stat(path, &st) == 0;
    job->result = there ? SHARED_HIT : missing_or_error();
}

/* Uses link(2) instead of rename(2): the first writer wins, and readers never see half a file. Closes `fd`. */
static enum shared_result put_at(int fd, const char *path, const char *tmp, struct sl_bytes bytes)
{
    bool written = sl_write_all(fd, bytes) && fdatasync(fd) == 0;
    close(fd);
    enum shared_result result = !written               ? SHARED_ERROR
                                : link(tmp, path) == 0 ? SHARED_WRITTEN
                                : errno == EEXIST      ? SHARED_SKIPPED
                                                       : SHARED_ERROR;
    unlink(tmp);
    return result;
}

/* On the pool: writes an entry unless there is one. The temporary file lies beside it in `.tmp`: link(2) needs the same file system. */
static void put_file(void *arg)
{
    struct cache_directory_job *job = arg;
    char path[CACHE_PATH_BYTES], directory[CACHE_PATH_BYTES], tmp[CACHE_PATH_BYTES + 32];
    struct stat st;
    job->result = SHARED_ERROR;
    if (!make_path(job->name, path))
        return;
    if (stat(path, &st) == 0) {
        job->result = SHARED_SKIPPED;
        return;
    }
    int size = snprintf(directory, sizeof directory, "%.*s/.tmp", (int)(strrchr(path, '/') - path), path);
    int fd = size < (int)sizeof directory ? files_temp(directory, "", 0750, tmp, sizeof tmp) : -1;
    if (fd >= 0)
        job->result = put_at(fd, path, tmp, job->bytes);
}

static enum shared_result cache_directory_run(struct cache_directory_job *job, void (*fn)(void *))
{
    return pool_run(POOL_IO, fn, job, NULL) == SL_OK ? job->result : SHARED_ERROR;
}

/* The back end's `get`: copies an entry into the file. A directory stores contents only, no errors. The entry's age is the file's mtime. */
static enum shared_result cache_directory_get(const char *name, int fd, struct shared_value *value)
{
    value->code = SL_OK;
    struct cache_directory_job job = {.name = name, .fd = fd};
    enum shared_result result = cache_directory_run(&job, get_file);
    value->created_s = job.modified_s;
    return result;
}

static enum shared_result cache_directory_put(const struct shared_entry *entry)
{
    return cache_directory_run(&(struct cache_directory_job){.name = entry->name, .bytes = entry->contents}, put_file);
}

static enum shared_result exists(const char *name)
{
    return cache_directory_run(&(struct cache_directory_job){.name = name}, exists_file);
}

/* On the pool: deletes an entry. One that is not there counts as deleted. */
static void delete_file(void *arg)
{
    struct cache_directory_job *job = arg;
    char path[CACHE_PATH_BYTES];
    job->result = make_path(job->name, path) && (unlink(path) == 0 || errno == ENOENT) ? SHARED_HIT : SHARED_ERROR;
}

static enum shared_result del(const char *name)
{
    return cache_directory_run(&(struct cache_directory_job){.name = name}, delete_file);
}

/* Asks for the directory itself, to learn whether the file system answers again. */
static enum shared_result probe(void)
{
    enum shared_result result = exists(".");
    return result == SHARED_MISS ? SHARED_HIT : result; /* the first write creates the directory */
}

static struct shared_backend backend;

/* Opens the directory of the configuration; NULL with an error, and the key at fault, if its path is too long. Nothing is read yet: a
 * directory that is not there shows when it is used. */
struct shared_backend *shared_directory(const struct config *config, const char **key, struct sl_error *error)
{
    if (snprintf(root, sizeof root, "%s", config->shared.filesystem_path) >= (int)sizeof root) {
        *key = "shared_cache.filesystem.path";
        sl_fail(error, SL_MALFORMED, "the path of the shared cache directory is too long");
        return NULL;
    }
    backend = (struct shared_backend){.name = "filesystem",
                                      .patience = 20,
                                      .get = cache_directory_get,
                                      .put = cache_directory_put,
                                      .exists = exists,
                                      .del = del,
                                      .probe = probe};
    return &backend;
}
