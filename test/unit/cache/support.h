/* A directory of its own for each test, and files with chosen ages in it. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../directory.h"
#include "cache/impl.h"
#include "core/duration.h"
#include "core/loop.h"

#define MS 1000000ull
#define S  1000000000ull

static char test_dir[64];
static struct config test_config;

/* Default life times; the directory is new. */
static inline int dir_setup(void **state)
{
    snprintf(test_dir, sizeof test_dir, "/tmp/symloom-test-XXXXXX");
    if (!mkdtemp(test_dir))
        return -1;
    struct cache_lifetimes lifetimes = {.max_unused_for = 24 * 3600 * S,
                                        .retry_misses_after = 3600 * S,
                                        .retry_misses_after_public = 24 * 3600 * S,
                                        .retry_malformed_after = 24 * 3600 * S,
                                        .max_lazy = 20};
    test_config = (struct config){.cache_dir = test_dir,
                                  .downloaded = lifetimes,
                                  .derived = lifetimes,
                                  .index = lifetimes,
                                  .diagnostics = lifetimes,
                                  .restart_retries_malformed = true,
                                  .object_meta_capacity = 1 << 20,
                                  .default_capacity = 100 << 10,
                                  .max_mapped_files = UINT64_MAX,
                                  .upgrade_fallback_after_ns = 3600 * S,
                                  .conversion = {.max_memory = 1 << 30, .max_time_ns = 30 * S, .max_heavy = 1},
                                  .cache_max_size = UINT64_MAX,
                                  .cache_min_free_space = UINT64_MAX,
                                  .max_inflate_ratio = 1000,
                                  .shared = {.redis_namespace = "test",
                                             .redis_max_value_size = 8 << 20,
                                             .redis_negative = true,
                                             .max_concurrent_uploads = 20,
                                             .max_upload_queue_size = 400,
                                             .max_upload_queue_bytes = 1 << 30}};
    return 0;
}

static inline int dir_teardown(void **state)
{
    return directory_remove(test_dir);
}

/* The loop of all tests of a file. */
static inline int loop_begin(void **state)
{
    loop_init(2);
    return 0;
}

static inline int loop_end(void **state)
{
    loop_close();
    return 0;
}

static inline const char *in_dir(const char *name)
{
    static char path[8][512];
    static unsigned next;
    char *out = path[next++ % 8];
    snprintf(out, sizeof path[0], "%s/%s", test_dir, name);
    return out;
}

static inline void make_parent(const char *path)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = copy; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        if (mkdir(copy, 0750) != 0)
            assert_int_equal(errno, EEXIST);
        *slash = '/';
    }
}

static inline void set_age(const char *path, uint64_t age_ns)
{
    int64_t then = cache_now_ns() - (int64_t)age_ns;
    struct timespec times[2] = {{then / CACHE_SECOND_NS, then % CACHE_SECOND_NS},
                                {then / CACHE_SECOND_NS, then % CACHE_SECOND_NS}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

/* A file of the directory, last changed `age_ns` ago. */
static inline void put_file(const char *name, const char *text, uint64_t age_ns)
{
    const char *path = in_dir(name);
    make_parent(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    set_age(path, age_ns);
}

static inline bool exists(const char *name)
{
    struct stat st;
    return lstat(in_dir(name), &st) == 0;
}

/* The file's text, or NULL; valid until the next call. */
static inline const char *file_text(const char *name)
{
    static char text[4096];
    int fd = open(in_dir(name), O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return NULL;
    text[n] = '\0';
    return text;
}

static inline size_t files_below(const char *name)
{
    DIR *dir = opendir(in_dir(name));
    size_t count = 0;
    if (!dir)
        return 0;
    for (struct dirent *e; (e = readdir(dir));)
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}
