/* Directories with case-insensitive names. A directory is read once; the list of its names is valid until its
 * modification time changes. Pool work. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/search.h"
#include "core/files.h"
#include "core/loop.h"
#include "origin/impl.h"

/* MAX_NAMES: most names of one listing, and most names of all cached listings together. MAX_DIRECTORIES: most cached listings.
 * MAX_LOOKUPS: most directories that are searched for one file. SETTLED_S: a directory that was changed less than this before it was read
 * may change again with the same time stamp. */
enum { MAX_NAMES = 1 << 20, MAX_DIRECTORIES = 4096, MAX_LOOKUPS = 64, SETTLED_S = 2 };

struct directory_listing {
    unsigned references; /* one for the table, one for each reader */
    struct timespec modified;
    int64_t read_s;
    dev_t device;
    ino_t inode;
    struct sl_arena arena; /* for the names */
    const char **names;    /* sorted, ignoring case */
    size_t count;
    size_t key_size;
    char key[]; /* the root, a NUL, the directory */
};

/* Protects the variables below and all reference counts. Not held while reading a directory, which may be on a file
 * system that hangs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_map listings;
static size_t name_count; /* in all listings of the table */

/* Drops a reference; call with the lock held. */
static void listing_unreference(struct directory_listing *listing)
{
    if (--listing->references)
        return;
    free(listing->names);
    sl_arena_free(&listing->arena);
    free(listing);
}

static void listing_release(struct directory_listing *listing)
{
    pthread_mutex_lock(&lock);
    if (listing)
        listing_unreference(listing);
    pthread_mutex_unlock(&lock);
}

/* Empties the table of listings; the caller has the lock. */
static void forget_all(void)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&listings, e));)
        listing_unreference(e->value);
    sl_map_free(&listings);
    name_count = 0;
}

void any_case_clear_cache(void)
{
    pthread_mutex_lock(&lock);
    forget_all();
    pthread_mutex_unlock(&lock);
}

/* ---- reading a directory ---- */

/* Compares names ignoring case. Names that differ only in case are ordered by their bytes, so that the order is always the same. */
static int compare_names(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    int order = strcasecmp(x, y);
    return order ? order : strcmp(x, y);
}

/* Reads the names of a directory; beyond MAX_NAMES, the rest counts as missing. False with errno if not all names could be read: such a
 * listing must not be used, as it would make files missing. */
static bool scan_names(struct directory_listing *listing, DIR *directory)
{
    size_t capacity = 0;
    const struct dirent *entry;
    while (listing->count < MAX_NAMES && (entry = dir_next(directory, NULL))) {
        if (listing->count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            const char **more = realloc(listing->names, capacity * sizeof *more);
            if (!more) /* realloc has set errno */
                return false;
            listing->names = more;
        }
        const char *name = sl_arena_strndup(&listing->arena, entry->d_name, strlen(entry->d_name));
        if (!name) {
            errno = ENOMEM;
            return false;
        }
        listing->names[listing->count++] = name;
    }
    if (listing->count < MAX_NAMES && errno) /* dir_next sets it to 0 at the end of the directory */
        return false;
    if (listing->count)
        qsort(listing->names, listing->count, sizeof *listing->names, compare_names);
    return true;
}

/* True if the directory has not changed since it was read; false if it was changed just before, as a later change may have
 * the same time stamp. */
static bool is_still_valid(const struct directory_listing *listing, const struct stat *st)
{
    return listing->device == st->st_dev && listing->inode == st->st_ino &&
           listing->modified.tv_sec == st->st_mtim.tv_sec && listing->modified.tv_nsec == st->st_mtim.tv_nsec &&
           listing->read_s - listing->modified.tv_sec >= SETTLED_S;
}

/* Returns a listing without names, with one reference for the caller. NULL when out of memory. */
static struct directory_listing *listing_new(const char *key, size_t key_size, const struct stat *st)
{
    struct directory_listing *listing = calloc(1, sizeof *listing + key_size);
    if (!listing)
        return NULL;
    listing->references = 1;
    listing->modified = st->st_mtim;
    listing->read_s = clock_wall_s();
    listing->device = st->st_dev;
    listing->inode = st->st_ino;
    listing->key_size = key_size;
    memcpy(listing->key, key, key_size);
    return listing;
}

/* Returns the cached listing of the directory, with a reference for the caller; NULL if there is none or it is not valid any more. */
static struct directory_listing *listing_known(struct sl_str key, const struct stat *st)
{
    pthread_mutex_lock(&lock);
    struct directory_listing *listing = sl_map_get(&listings, key);
    if (listing && is_still_valid(listing, st))
        listing->references++;
    else
        listing = NULL;
    pthread_mutex_unlock(&lock);
    return listing;
}

/* Stores the listing in the table, with a reference of its own, replacing an older one. A full table is emptied first; without memory the
 * listing is not cached. */
static void listing_keep(struct directory_listing *listing)
{
    struct sl_str key = {listing->key, listing->key_size};
    pthread_mutex_lock(&lock);
    struct directory_listing *old = sl_map_get(&listings, key);
    if (old) {
        sl_map_remove(&listings, key);
        name_count -= old->count;
        listing_unreference(old);
    }
    if (listings.count >= MAX_DIRECTORIES || name_count >= MAX_NAMES)
        forget_all();
    if (sl_map_put(&listings, key, listing)) {
        listing->references++;
        name_count += listing->count;
    }
    pthread_mutex_unlock(&lock);
}

/* Returns the names of the directory `at` below the root, cached ones if they are still valid; release with listing_release(). NULL with
 * errno if it cannot be read. */
static struct directory_listing *list_directory(const char *root, const char *at)
{
    char key[2 * PATH_MAX]; /* the root, a NUL, and the directory below it */
    struct stat st;
    int size = snprintf(key, sizeof key, "%s%c%s", root, '\0', at);
    errno = ENAMETOOLONG; /* if the key does not fit; otherwise the calls below set errno */
    DIR *directory =
        size > 0 && (size_t)size < sizeof key ? open_directory_of_fd(filesystem_open(root, *at ? at : ".")) : NULL;
    bool is_open = directory && fstat(dirfd(directory), &st) == 0;
    struct directory_listing *listing = is_open ? listing_known((struct sl_str){key, (size_t)size}, &st) : NULL;
    if (is_open && !listing && (listing = listing_new(key, (size_t)size, &st))) {
        if (scan_names(listing, directory)) {
            listing_keep(listing);
        } else {
            int number = errno;
            listing_release(listing);
            listing = NULL;
            errno = number;
        }
    }
    int number = errno;
    if (directory)
        closedir(directory);
    errno = number;
    return listing;
}

/* ---- finding a path ---- */

struct any_case_search {
    const char *root;
    char path[PATH_MAX];
    size_t lookups;
    int failed; /* errno of a directory that exists but could not be read; 0 = none */
};

/* Returns the index of the first name that equals `name` ignoring case, or where it would be. */
static size_t find_first(const struct directory_listing *listing, const char *name)
{
    return SL_PARTITION_POINT(i, 0, listing->count, strcasecmp(listing->names[i], name) < 0);
}

/* Searches `rest` below the directory s->path[0..size); true if the whole path was found. Several names may be equal
 * ignoring case: each is tried, up to MAX_LOOKUPS directories in all. */
static bool find_below(struct any_case_search *s, size_t size, const char *rest)
{
    char name[NAME_MAX + 1];
    size_t length = strcspn(rest, "/");
    const char *next = rest + length + strspn(rest + length, "/");
    s->path[size] = '\0';
    if (!length || length > NAME_MAX || s->lookups++ >= MAX_LOOKUPS)
        return false;
    memcpy(name, rest, length);
    name[length] = '\0';
    struct directory_listing *listing = list_directory(s->root, s->path);
    /* a directory that is missing or may not be read counts as one without the file */
    if (!listing && !filesystem_is_missing(errno) && errno != EACCES && errno != EPERM)
        s->failed = errno;
    size_t before = size + (size > 0); /* where the name begins, after a slash */
    bool found = false;
    for (size_t i = listing ? find_first(listing, name) : 0;
         listing && !found && i < listing->count && strcasecmp(listing->names[i], name) == 0; i++) {
        if (before + length >= sizeof s->path)
            break;
        if (size)
            s->path[size] = '/';
        memcpy(s->path + before, listing->names[i], length + 1); /* + 1: the NUL */
        found = !*next || find_below(s, before + length, next);
    }
    listing_release(listing);
    return found;
}

int any_case_open(const char *root, const char *location)
{
    int fd = filesystem_open(root, location);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    struct any_case_search s = {.root = root};
    if (find_below(&s, 0, location))
        return filesystem_open(root, s.path);
    errno = s.failed ? s.failed : ENOENT;
    return -1;
}
