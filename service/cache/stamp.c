/* An invalidation stamp is an empty file whose mtime says when a source file was replaced: entries made from it before are invalid. It is
 * named by the SHA-256 of "source: <id>\nlocation: <uri>\n", or of "source: <id>\n" for a whole source:
 *
 *     <cache_dir>/invalidated/<b0>/<b1>/<b2..b31>
 *     <cache_dir>/invalidated/generation            its mtime changes with every new stamp */
#include "cache/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files.h"

enum { MAX_DEPTH = 3, ATTEMPTS = 3 };

/* ---- files that a key names ---- */
/* If the first line of `rest` begins with `name` ("": any line), removes it and sets `*value` to what follows `name` in it. Otherwise
 * false. */
static bool take_line(struct sl_str *rest, const char *name, struct sl_str *value)
{
    struct sl_str prefix = sl_str(name);
    if (!sl_str_starts(*rest, prefix))
        return false;
    const char *end = memchr(rest->data, '\n', rest->size);
    size_t size = end ? (size_t)(end - rest->data) : rest->size;
    *value = (struct sl_str){rest->data + prefix.size, size - prefix.size};
    size += end != NULL;
    *rest = (struct sl_str){rest->data + size, rest->size - size};
    return true;
}

bool cache_key_next(struct sl_str *rest, struct cache_file *file)
{
    while (rest->size) {
        struct sl_str other;
        *file = (struct cache_file){{NULL, 0}, {NULL, 0}};
        if (take_line(rest, "source_id: ", &file->source)) /* in keys of indexes, which are made from a whole source */
            return true;
        if (take_line(rest, "source: ", &file->source) && take_line(rest, "location: ", &file->location))
            return true;
        if (rest->size)
            take_line(rest, "", &other); /* another line, such as "scope: ..." */
    }
    return false;
}

/* True if the key names the file; if `wanted` has no location, true if the key names any file of the source. */
bool cache_key_names_file(struct sl_str key, const struct cache_file *wanted)
{
    struct cache_file file;
    while (cache_key_next(&key, &file))
        if (sl_str_equal(file.source, wanted->source) &&
            (!wanted->location.size || sl_str_equal(file.location, wanted->location)))
            return true;
    return false;
}

/* ---- paths ---- */
/* Writes the path "<dir>/invalidated<name>", in the directory of the invalidation stamps; `name` begins with a slash or is empty. False if
 * it is too long. */
static bool folder_path(const char *dir, const char *name, char out[CACHE_PATH_BYTES])
{
    return snprintf(out, CACHE_PATH_BYTES, "%s/invalidated%s", dir, name) < CACHE_PATH_BYTES;
}

/* Writes the path of the invalidation stamp of a file, or of the stamp of its whole source if it has no location. False if the path is too
 * long, or when out of memory. */
static bool stamp_path(const char *dir, const struct cache_file *file, char out[CACHE_PATH_BYTES])
{
    struct sl_buf text = {0};
    uint8_t hash[CACHE_HASH_BYTES];
    char relative[128];
    sl_buf_printf(&text, "source: " SL_STR_FMT "\n", SL_STR_ARG(file->source));
    if (file->location.size)
        sl_buf_printf(&text, "location: " SL_STR_FMT "\n", SL_STR_ARG(file->location));
    bool ok = !text.failed;
    if (ok) {
        cache_key_hash(sl_buf_view(&text), hash);
        cache_hash_path(hash, 0, false, relative);
        ok = folder_path(dir, relative + 2, out); /* + 2: skips the version "v0", which stamps do not have */
    }
    sl_buf_free(&text);
    return ok;
}

/* ---- reading ---- */
int64_t cache_generation(const char *dir)
{
    char path[CACHE_PATH_BYTES];
    return dir && folder_path(dir, "/generation", path) ? change_counter_read(path, false).ns : 0;
}

/* Returns the time of the invalidation stamp of a file, or of a whole source if it has no location; 0 if there is none. */
static int64_t read_stamp(const char *dir, const struct cache_file *file)
{
    char path[CACHE_PATH_BYTES];
    struct stat st;
    return stamp_path(dir, file, path) && lstat(path, &st) == 0 ? cache_mtime_ns(&st) : 0;
}

/* Each file that the key names has two invalidation stamps: its own and that of its whole source. */
int64_t cache_newest_stamp(const char *dir, struct sl_str key)
{
    struct cache_file file;
    int64_t newest = 0;
    while (cache_key_next(&key, &file)) {
        int64_t one = file.location.size ? read_stamp(dir, &file) : 0;
        file.location.size = 0; /* the invalidation stamp of the source */
        int64_t all = read_stamp(dir, &file);
        newest = one > newest ? one : newest;
        newest = all > newest ? all : newest;
    }
    return newest;
}

/* ---- writing ---- */

/* Creates the invalidation stamp if it is missing, and sets its mtime to `ns`, unless it is newer. The mtime that the kernel sets is
 * not used, as it has a resolution of some milliseconds: results are compared with the stamp to the nanosecond. False, with errno, on
 * failure. */
static bool touch(const char *path, int64_t ns)
{
    struct timespec time = {ns / CACHE_SECOND_NS, ns % CACHE_SECOND_NS}, times[2] = {time, time};
    struct stat st;
    if (lstat(path, &st) == 0 && cache_mtime_ns(&st) >= ns)
        return true;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    bool ok = fd >= 0 && futimens(fd, times) == 0;
    int number = errno;
    sl_close(fd);
    errno = number;
    return ok;
}

enum sl_code cache_write_stamp(const char *dir, const struct cache_file *files, size_t count, int64_t at_ns,
                               struct cache_generations *generations, struct sl_error *error)
{
    char path[CACHE_PATH_BYTES];
    for (size_t i = 0; i < count; i++) {
        if (!stamp_path(dir, &files[i], path))
            return sl_fail(error, SL_MALFORMED, "cache_dir: the path is too long");
        bool ok = false;
        /* several attempts, as a cleanup may remove the new directory before the invalidation stamp is in it */
        for (int attempt = 0; !ok && attempt < ATTEMPTS; attempt++)
            ok = files_make_parents(path, 0750) && touch(path, at_ns);
        if (!ok)
            return sl_fail(error, SL_INTERNAL, "cannot write %.150s: %s", path, strerror(errno));
    }
    struct change_counter previous = {0};
    *generations = (struct cache_generations){0, 0};
    /* The generation is changed last: a process that reads the new one finds the stamps. true: fails while another process changes it. */
    if (count &&
        (!folder_path(dir, "/generation", path) || !change_counter_bump(path, true, &previous, &generations->made)))
        return errno == EWOULDBLOCK ? sl_fail(error, SL_BUSY, "another process is invalidating files; try again")
                                    : sl_fail(error, SL_INTERNAL, "cannot write %.150s/invalidated/generation: %s", dir,
                                              strerror(errno));
    generations->previous = previous.ns;
    return SL_OK;
}

/* ---- removing ---- */
/* dir_walk.visit: removes invalidation stamps that are older than `*arg`, a time in nanoseconds, and directories that have become empty.
 * Not the files directly in the directory of the stamps, such as `generation`. */
static bool sweep(void *arg, const struct dir_entry *entry)
{
    int64_t before_ns = *(const int64_t *)arg;
    if (S_ISDIR(entry->st->st_mode))
        return entry->emptied && unlinkat(entry->at, entry->name, AT_REMOVEDIR) == 0;
    return entry->depth > 0 && cache_mtime_ns(entry->st) < before_ns && unlinkat(entry->at, entry->name, 0) == 0;
}

void cache_sweep_stamps(const char *dir, int64_t before_ns)
{
    char path[CACHE_PATH_BYTES];
    const struct dir_walk walk = {.depth = MAX_DEPTH, .visit = sweep, .arg = &before_ns};
    if (folder_path(dir, "", path))
        dir_walk(&walk, AT_FDCWD, path);
}
