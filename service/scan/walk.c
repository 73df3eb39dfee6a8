/* Finds the files of a scanned directory: regular files on its file system, without following symbolic links. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "scan/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "core/files.h"
#include "origin/health.h"

enum {
    MAX_DEPTH = 64,
    MAX_FILES = 4000000,
    MAX_PATH = 4000,
    MATCH_LIMIT = 100000, /* of PCRE2: an expression that backtracks without end must not hang the walk */
};

struct pattern {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

struct root_walk { /* state of walking one scanned directory */
    struct scan_walk *walk;
    struct pattern include, exclude;
    dev_t device;
    char path[MAX_PATH + 2]; /* of the current file: root, slash, relative path */
    size_t root_size;        /* of the root's path at the start of `path` */
    bool no_memory;          /* the walk ends, as memory is used up */
};

/* Compiles a pattern. Without a text, p->code stays NULL: there is no pattern. False only when out of memory: the syntax was checked when
 * the configuration was read. */
static bool pattern_open(struct pattern *p, const char *text)
{
    int number;
    PCRE2_SIZE where;
    *p = (struct pattern){NULL};
    if (!text)
        return true;
    p->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &number,
                            &where, NULL);
    p->data = p->code ? pcre2_match_data_create_from_pattern(p->code, NULL) : NULL;
    p->limits = p->data ? pcre2_match_context_create(NULL) : NULL;
    if (p->limits)
        pcre2_set_match_limit(p->limits, MATCH_LIMIT);
    return p->limits;
}

static void pattern_close(struct pattern *p)
{
    pcre2_match_context_free(p->limits);
    pcre2_match_data_free(p->data);
    pcre2_code_free(p->code);
}

static bool pattern_matches(const struct pattern *p, const char *text, size_t size)
{
    return pcre2_match(p->code, (PCRE2_SPTR)text, size, 0, 0, p->data, p->limits) >= 0;
}

/* Writes the entry's path below the root to w->path, behind the root's path. Returns the length of the whole path, SIZE_MAX if it is too
 * long. */
static size_t add_path(struct root_walk *w, const struct dir_entry *entry)
{
    size_t at = entry->parent ? add_path(w, entry->parent) : w->root_size, size = strlen(entry->name);
    if (at == SIZE_MAX || at + 1 + size > MAX_PATH)
        return SIZE_MAX;
    w->path[at] = '/';
    memcpy(w->path + at + 1, entry->name, size + 1);
    return at + 1 + size;
}

/* Adds the file at w->path (`size` bytes, terminated) to the list. Its path relative to the root goes to walk->paths; the list has the
 * offset there, in 32 bits to save memory. */
static void add_file(struct root_walk *w, const struct stat *st, size_t size)
{
    struct scan_walk *walk = w->walk;
    size_t at = walk->paths.size;
    if (walk->count >= MAX_FILES || at > UINT32_MAX - 2 * MAX_PATH) {
        walk->too_many = true;
        return;
    }
    sl_buf_add(&walk->paths, w->path + w->root_size + 1, size - w->root_size); /* without the slash, with the NUL */
    if (walk->paths.failed || !sl_grow(&walk->files, &walk->capacity, walk->count + 1, sizeof *walk->files)) {
        w->no_memory = true;
        return;
    }
    walk->files[walk->count++] =
        (struct scan_found_file){.size = (uint64_t)st->st_size, .mtime_ns = files_mtime_ns(st), .path = (uint32_t)at};
}

/* Called by dir_walk() for every entry: adds a regular file to the list if it is not empty, is on the root's file system and passes the
 * patterns. Adds nothing more when the service ends (scan_is_stopping) or memory is used up. Always returns false, which tells dir_walk()
 * that the entry still exists. */
static bool visit(void *arg, const struct dir_entry *entry)
{
    struct root_walk *w = arg;
    if (!S_ISREG(entry->st->st_mode) || entry->st->st_size == 0 || entry->st->st_dev != w->device ||
        atomic_load(&scan_is_stopping) || w->no_memory)
        return false;
    size_t size = add_path(w, entry);
    if (size != SIZE_MAX && (!w->include.code || pattern_matches(&w->include, w->path, size)) &&
        (!w->exclude.code || !pattern_matches(&w->exclude, w->path, size)))
        add_file(w, entry->st, size);
    return false;
}

/* Called by dir_walk() with errno for a file or directory that cannot be examined: counts it. A missing permission or a link will not
 * change, so the walk still counts as complete. After other errors (a file server does not answer, descriptors are short) it counts as
 * incomplete. */
static void failed(void *arg, const struct dir_entry *entry)
{
    struct root_walk *w = arg;
    (void)entry;
    w->walk->unreadable++;
    w->walk->is_incomplete |= errno != EACCES && errno != EPERM && errno != ELOOP && errno != ENOTDIR;
}

/* Called by dir_walk() before a directory's contents: enters it unless it is a mount of another file system or the walk is to end. */
static bool enter(void *arg, const struct dir_entry *entry)
{
    struct root_walk *w = arg;
    return entry->st->st_dev == w->device && !atomic_load(&scan_is_stopping) && !w->no_memory;
}

/* Walks the scanned directory and lists its files in w->walk. The root may be a symbolic link; links below it are not followed. */
static enum sl_code walk_root(struct root_walk *w, struct sl_error *error)
{
    struct stat st;
    char *real = realpath(w->walk->root, NULL);
    const struct dir_walk walk = {.depth = MAX_DEPTH, .visit = visit, .enter = enter, .failed = failed, .arg = w};
    size_t size = real ? strlen(real) : 0;
    if (!real || size > MAX_PATH / 2 || stat(real, &st) != 0) { /* half of w->path is left for relative paths */
        int number = real ? ENAMETOOLONG : errno;
        free(real);
        return sl_fail(error, SL_DOWNLOAD_ERROR, "cannot read the scanned directory %s: %s", w->walk->root,
                       strerror(number));
    }
    /* it is empty, maybe not mounted: the error keeps the old index in use */
    if (origin_check_directory(real, error) != SL_OK) {
        free(real);
        return error->code;
    }
    memcpy(w->path, real, size);
    w->root_size = size == 1 ? 0 : size; /* root "/": paths are "/" and the relative path, with nothing in front */
    w->device = st.st_dev;
    dir_walk(&walk, AT_FDCWD, real);
    free(real);
    if (w->no_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    return atomic_load(&scan_is_stopping) ? sl_fail(error, SL_CANCELLED, "cancelled") : SL_OK;
}

enum sl_code scan_walk(void *arg, struct sl_error *error)
{
    struct root_walk *w = calloc(1, sizeof *w);
    if (!w)
        return sl_fail(error, SL_BUSY, "out of memory");
    w->walk = arg;
    enum sl_code code = pattern_open(&w->include, w->walk->include) && pattern_open(&w->exclude, w->walk->exclude)
                            ? walk_root(w, error)
                            : sl_fail(error, SL_BUSY, "out of memory");
    pattern_close(&w->include);
    pattern_close(&w->exclude);
    free(w);
    return code;
}
