/* A storage area (store/area.h) in a local directory. Files are written below tmp/ or without a name, synced, and linked or renamed to
 * their final path. */
#include "store/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "core/files.h"
#include "core/loop.h"
#include "core/pool.h"

/* ---- paths ---- */

enum { OBJECT_PATH = 1024 };

/* Makes the path of the file with this name in the area. False with errno ENAMETOOLONG if it is too long. */
static bool object_path(const struct store_area *area, struct sl_str name, char path[OBJECT_PATH])
{
    int size = snprintf(path, OBJECT_PATH, "%s/" SL_STR_FMT, area->root, SL_STR_ARG(name));
    if (size > 0 && size < OBJECT_PATH)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

/* Converts errno to an error. A file whose name is too long cannot exist: SL_NOT_FOUND. SL_UNSUPPORTED stands for a full disk or quota, as
 * for all stores. `what` describes what failed, for other errors. */
static enum sl_code directory_fail(int number, const char *what, struct sl_error *error)
{
    if (number == ENOENT || number == ENOTDIR || number == ENAMETOOLONG)
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    if (number == ENOSPC || number == EDQUOT)
        return sl_fail(error, SL_UNSUPPORTED, "the upload store is full");
    return sl_fail_errno(error, number, what);
}

/* Creates a temporary file: without a name (open(2), O_TMPFILE) or, where the file system does not support that, with a random name below
 * tmp/. Makes the directory tmp/ if it is missing. */
static enum sl_code directory_tmp_file(const struct store_area *area, struct store_tmp_file *work,
                                       struct sl_error *error)
{
    char tmp[OBJECT_PATH];
    if (!object_path(area, SL_STR("tmp"), tmp))
        return sl_fail_errno(error, errno, "cannot create a file in the upload store");
    work->fd = open(tmp, O_TMPFILE | O_RDWR | O_CLOEXEC, 0640);
    if (work->fd < 0 && errno == ENOENT && files_make_directory(tmp, 0750, FILES_DURABLE))
        work->fd = open(tmp, O_TMPFILE | O_RDWR | O_CLOEXEC, 0640);
    if (work->fd < 0)
        work->fd = files_temp(tmp, "", 0750, work->path, sizeof work->path);
    return work->fd >= 0 ? SL_OK : sl_fail_errno(error, errno, "cannot create a file in the upload store");
}

/* Gives a temporary file without a name a random one below tmp/, so that it can be renamed. False with errno on failure. */
static bool name_tmp_file(const struct store_area *area, struct store_tmp_file *work)
{
    char tmp[OBJECT_PATH], self[40];
    if (*work->path)
        return true;
    if (!object_path(area, SL_STR("tmp"), tmp))
        return false;
    int size = snprintf(work->path, sizeof work->path, "%s/%016llx", tmp, (unsigned long long)files_random());
    snprintf(self, sizeof self, "/proc/self/fd/%d", work->fd);
    if (size > 0 && (size_t)size < sizeof work->path &&
        linkat(AT_FDCWD, self, AT_FDCWD, work->path, AT_SYMLINK_FOLLOW) == 0)
        return true;
    *work->path = '\0';
    return false;
}

/* ---- pool jobs ---- */

struct directory_job { /* on the file `name` of the area */
    const struct store_area *area;
    struct sl_str name;
    bool with_md5;               /* compute the MD5 of an uncompressed file, too */
    struct store_meta *meta;     /* gets the properties */
    struct store_tmp_file *work; /* to be published under the name */
    struct sl_mapping *mapping;  /* gets the contents; NULL: only read the properties */
};

/* Computes the MD5 of a file; false if it cannot be read. */
static bool file_md5(int fd, uint8_t md5[16])
{
    uint8_t piece[64 << 10];
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    bool good = hash && EVP_DigestInit_ex(hash, EVP_md5(), NULL) == 1;
    ssize_t n = 1;
    for (off_t at = 0; good && (n = pread(fd, piece, sizeof piece, at)) > 0; at += n)
        good = EVP_DigestUpdate(hash, piece, (size_t)n) == 1;
    good = good && n == 0 && EVP_DigestFinal_ex(hash, md5, NULL) == 1;
    EVP_MD_CTX_free(hash);
    return good;
}

/* Sets job->meta to the properties of an open file, and maps it if job->mapping is not NULL. The gzip header of a compressed file has the
 * original size and MD5 (store_gzip_header_write); the MD5 of an uncompressed file is only computed if job->with_md5, as that takes reading
 * the whole file. */
static enum sl_code directory_examine(int fd, const struct directory_job *job, struct sl_error *error)
{
    uint8_t head[STORE_GZIP_HEADER_SIZE];
    struct stat st;
    struct store_meta *meta = job->meta;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    meta->size = meta->original_size = (uint64_t)st.st_size;
    meta->modified_ns = files_mtime_ns(&st);
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        return sl_fail_errno(error, errno, "cannot read a file of the upload store");
    meta->is_packed = store_gzip_header_read((struct sl_bytes){head, (size_t)n}, meta);
    if (!meta->is_packed && job->with_md5)
        meta->has_original = file_md5(fd, meta->md5);
    return job->mapping ? sl_map_fd(fd, job->mapping, error) : SL_OK;
}

/* Pool work: opens a file, reads its properties, and maps it if job->mapping is not NULL. */
static enum sl_code directory_stat_job(void *arg, struct sl_error *error)
{
    const struct directory_job *job = arg;
    char path[OBJECT_PATH];
    /* O_NONBLOCK: opening a FIFO, which is no file of the store, must not wait */
    int fd = object_path(job->area, job->name, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
    if (fd < 0)
        return directory_fail(errno, "cannot open a file of the upload store", error);
    enum sl_code code = directory_examine(fd, job, error);
    close(fd);
    return code;
}

/* Renames the synced file at the path `from` to the path of `name` in the area, replacing a file there. */
static bool move_to(const struct store_area *area, const char *from, struct sl_str name)
{
    char path[OBJECT_PATH];
    return object_path(area, name, path) && files_publish(-1, from, path, FILES_DURABLE); /* -1: it is synced already */
}

/* Links a synced temporary file without a name to the path of `name`, which must not exist yet. It never has a name below tmp/, so a killed
 * process leaves nothing behind. False: the path exists, the temporary file has a name, or an error. */
static bool link_new(const struct store_area *area, const struct store_tmp_file *work, struct sl_str name)
{
    char path[OBJECT_PATH], directory[OBJECT_PATH], self[40];
    if (*work->path || !object_path(area, name, path))
        return false;
    memcpy(directory, path, sizeof directory);
    *strrchr(directory, '/') = '\0';
    snprintf(self, sizeof self, "/proc/self/fd/%d", work->fd);
    return files_make_directory(directory, 0750, FILES_DURABLE) &&
           linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 && files_sync_directory(directory);
}

/* Ends publishing: closes the temporary file, removes its name below tmp/ if it was not published, and returns the result: SL_OK if `good`,
 * else an error by errno. A missing path is SL_INTERNAL here, not SL_NOT_FOUND, as this process makes the directories that it writes to. */
static enum sl_code put_end(struct store_tmp_file *work, bool good, struct sl_error *error)
{
    int number = errno;
    if (good)
        *work->path = '\0'; /* the name has become the published one: store_tmp_file_discard must not remove it */
    store_tmp_file_discard(work);
    enum sl_code code = good ? SL_OK : directory_fail(number, "cannot write to the upload store", error);
    return code == SL_NOT_FOUND ? sl_fail(error, SL_INTERNAL, "cannot write to the upload store: %s", strerror(number))
                                : code;
}

/* Pool work: publishes a temporary file under job->name. If that name does not exist yet, a file made with O_TMPFILE is linked to it. To
 * replace an existing file, the temporary file gets a name below tmp/ if it has none, and is renamed. */
static enum sl_code directory_put_job(void *arg, struct sl_error *error)
{
    const struct directory_job *job = arg;
    bool good = fsync(job->work->fd) == 0 &&
                (link_new(job->area, job->work, job->name) ||
                 (name_tmp_file(job->area, job->work) && move_to(job->area, job->work->path, job->name)));
    return put_end(job->work, good, error);
}

struct directory_text { /* a text to be stored under several names */
    const struct store_area *area;
    const struct sl_str *names;
    size_t count;
    struct sl_str text;
};

/* Writes the text to a temporary file and publishes that under all names, as hard links: for each name but the first it makes a link
 * "<path>+" and renames that, as link(2) itself would not replace an existing file. */
static bool directory_write_text(const struct directory_text *t, struct store_tmp_file *work)
{
    char other[sizeof work->path + 2];
    bool good =
        sl_write_all(work->fd, (struct sl_bytes){(const uint8_t *)t->text.data, t->text.size}) && fsync(work->fd) == 0;
    if (good && t->count == 1 && link_new(t->area, work, t->names[0]))
        return true;
    good = good && name_tmp_file(t->area, work);
    snprintf(other, sizeof other, "%s+", work->path);
    for (size_t i = 1; good && i < t->count; i++) {
        good = link(work->path, other) == 0 && move_to(t->area, other, t->names[i]);
        /* still there if it failed, or if the name is listed twice: rename(2) does nothing for links to one file */
        unlink(other);
    }
    return good && move_to(t->area, work->path, t->names[0]);
}

/* Pool work: stores a text under several names. */
static enum sl_code directory_text_job(void *arg, struct sl_error *error)
{
    const struct directory_text *t = arg;
    struct store_tmp_file work;
    enum sl_code code = store_area_tmp_file(t->area, &work, error);
    return code == SL_OK ? put_end(&work, directory_write_text(t, &work), error) : code;
}

/* ---- expiry ---- */

enum {
    RECORD_LIFE_S = 2 * 365 * 24 * 60 * 60, /* records of uploads are kept for two years */
    TREE_DEPTH = 3,                         /* directories below try/: v1/<debug file>/<DEBUG ID> */
};

struct sweep_limits {
    uint64_t life_s;
    int64_t now_s;
};

/* Callback of dir_walk(): removes a file that is at least `life_s` old, or a directory whose entries were all removed. True if it removed
 * the entry. */
static bool sweep_entry(void *arg, const struct dir_entry *entry)
{
    const struct sweep_limits *sweep = arg;
    int64_t age_s = sweep->now_s - (int64_t)entry->st->st_mtim.tv_sec;
    if (S_ISDIR(entry->st->st_mode))
        return entry->emptied && unlinkat(entry->at, entry->name, AT_REMOVEDIR) == 0;
    return S_ISREG(entry->st->st_mode) && age_s > 0 && (uint64_t)age_s >= sweep->life_s &&
           unlinkat(entry->at, entry->name, 0) == 0;
}

/* Removes files older than `life_s` below the directory `name` in `at`, at most `depth` directories deep, and directories that become
 * empty. */
static void sweep_tree(int at, const char *name, uint64_t life_s, unsigned depth)
{
    struct sweep_limits sweep = {life_s, clock_wall_s()};
    dir_walk(&(struct dir_walk){.depth = depth, .visit = sweep_entry, .arg = &sweep}, at, name);
}

/* Removes expired symbols of try builds and old records of uploads below the directory `fd`: the store's root or a scope. Symbols of
 * releases are kept forever. */
static void sweep_uploads(int fd, uint64_t try_life_s)
{
    sweep_tree(fd, "try", try_life_s, TREE_DEPTH);
    sweep_tree(fd, "uploads", RECORD_LIFE_S, 0);
}

/* Removes expired symbols and records of all scopes: in each directory below scopes/ of the store's root `fd`. */
static void sweep_scopes(int fd, uint64_t try_life_s)
{
    DIR *dir = dir_open(fd, "scopes");
    struct stat st;
    for (struct dirent *e; (e = dir_next(dir, &st));) {
        int scope = e->d_name[0] == '.' ? -1 : openat(dirfd(dir), e->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (scope < 0)
            continue;
        sweep_uploads(scope, try_life_s);
        close(scope);
    }
    if (dir)
        closedir(dir);
}

/* Removes what has expired: temporary files, symbols of try builds (older than try_life_s), records of uploads. */
void store_directory_sweep(const struct store_area *area, uint64_t try_life_s)
{
    store_area_sweep_tmp(area);
    int fd = open(area->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    sweep_uploads(fd, try_life_s);
    sweep_scopes(fd, try_life_s);
    close(fd);
}

/* Removes files older than `life_s` in the area's subdirectory `name`, at most `depth` directories deep. */
static void directory_sweep(const struct store_area *area, const char *name, uint64_t life_s, unsigned depth)
{
    int fd = open(area->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    sweep_tree(fd, name, life_s, depth);
    close(fd);
}

/* ---- locks ---- */

struct lock_job {
    const struct store_area *area;
    struct sl_str name;
    int fd;       /* result: the locked file; -1: not locked */
    bool is_busy; /* result: somebody else has the lock */
};

/* Pool work: tries to lock the file of that name, without waiting: SL_OK with job->is_busy if somebody else has the lock. */
static enum sl_code directory_lock_job(void *arg, struct sl_error *error)
{
    struct lock_job *job = arg;
    char path[OBJECT_PATH];
    if (!object_path(job->area, job->name, path) || !files_make_parents(path, 0750))
        return directory_fail(errno, "cannot lock a file of the upload store", error);
    job->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (job->fd < 0)
        return sl_fail_errno(error, errno, "cannot lock a file of the upload store");
    if (flock(job->fd, LOCK_EX | LOCK_NB) == 0)
        return SL_OK;
    job->is_busy = errno == EWOULDBLOCK || errno == EINTR;
    enum sl_code code = job->is_busy ? SL_OK : sl_fail_errno(error, errno, "cannot lock a file of the upload store");
    close(job->fd);
    job->fd = -1;
    return code;
}

enum sl_code store_area_lock(const struct store_area *area, struct sl_str name, int *fd, struct sl_error *error)
{
    enum { AGAIN_MS = 20, MAX_WAIT_MS = 5 * 60 * 1000 };
    uint64_t until_ms = loop_now_ms() + MAX_WAIT_MS;
    struct lock_job job = {.area = area, .name = name, .fd = -1};
    *fd = -1;
    if (!area->root) /* a bucket */
        return SL_OK;
    for (;;) {
        job.is_busy = false;
        enum sl_code code = pool_call(POOL_IO, directory_lock_job, &job, error);
        *fd = job.fd;
        if (code != SL_OK || !job.is_busy)
            return code;
        if (loop_now_ms() >= until_ms)
            return sl_fail(error, SL_BUSY, "the upload store is in use by another upload; try again later");
        /* tried again and again, as waiting in flock(2) would occupy a thread of the pool */
        if (!fiber_sleep(AGAIN_MS))
            return sl_fail(error, SL_CANCELLED, "cancelled");
    }
}

/* ---- removing and listing ---- */

/* Pool work: removes a file. SL_NOT_FOUND if there is none. */
static enum sl_code directory_remove_job(void *arg, struct sl_error *error)
{
    const struct directory_job *job = arg;
    char path[OBJECT_PATH];
    return object_path(job->area, job->name, path) && unlink(path) == 0
               ? SL_OK
               : directory_fail(errno, "cannot remove a file of the upload store", error);
}

struct listing_job {
    const struct store_area *area;
    struct sl_str directory;
    size_t most;
    struct sl_arena arena; /* not the caller's, which another fiber may use on the loop thread meanwhile */
    struct sl_str *names;
    size_t count, capacity;
};

/* Adds a copy of the name to the list; false if out of memory. */
static bool add_listed_name(struct listing_job *job, const char *name)
{
    size_t size = strlen(name);
    const char *copy = sl_arena_strndup(&job->arena, name, size);
    if (!copy || !sl_grow_in_arena(&job->arena, &job->names, &job->capacity, job->count + 1, sizeof *job->names))
        return false;
    job->names[job->count++] = (struct sl_str){copy, size};
    return true;
}

/* Pool work: lists the regular files of a directory, sorted by name; if it has more than `most`, any `most` of them. A directory that does
 * not exist is an empty list. */
static enum sl_code directory_list_job(void *arg, struct sl_error *error)
{
    struct listing_job *job = arg;
    char path[OBJECT_PATH];
    struct stat st;
    enum sl_code code = SL_OK;
    DIR *dir = object_path(job->area, job->directory, path) ? opendir(path) : NULL;
    if (!dir)
        return errno == ENOENT ? SL_OK : directory_fail(errno, "cannot list files of the upload store", error);
    errno = 0;
    for (struct dirent *e; code == SL_OK && job->count < job->most && (e = dir_next(dir, &st)); errno = 0)
        if (S_ISREG(st.st_mode) && !add_listed_name(job, e->d_name))
            code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && errno) /* reading the directory failed: the list may be incomplete */
        code = directory_fail(errno, "cannot list files of the upload store", error);
    closedir(dir);
    if (code == SL_OK && job->count)
        qsort(job->names, job->count, sizeof *job->names, sl_str_order);
    return code;
}

struct walking_job { /* a store_area_walk() on the pool */
    const struct store_area *area;
    struct sl_str directory, begin;
    store_area_visitor *visit;
    void *arg;
    bool stopped; /* `visit` has returned false */
    int number;   /* errno of the last entry that could not be read; 0: all could */
};

/* Callback of dir_walk(): enters the directories directly below job->directory whose names begin with job->begin. */
static bool walk_enter(void *arg, const struct dir_entry *entry)
{
    const struct walking_job *job = arg;
    return !job->stopped && entry->depth == 0 && sl_str_starts(sl_str(entry->name), job->begin);
}

/* Callback of dir_walk(): passes "<directory>/<file>" to the job's visitor, for regular files in the entered directories only. */
static bool walk_visit(void *arg, const struct dir_entry *entry)
{
    struct walking_job *job = arg;
    char name[2 * NAME_MAX + 2];
    if (job->stopped || !entry->parent || !entry->st || !S_ISREG(entry->st->st_mode))
        return false;
    snprintf(name, sizeof name, "%s/%s", entry->parent->name, entry->name);
    job->stopped = !job->visit(job->arg, sl_str(name));
    return false; /* not removed */
}

/* Callback of dir_walk() with errno for entries that cannot be read: records it. An entry that was removed meanwhile is no failure. */
static void walk_failed(void *arg, const struct dir_entry *entry)
{
    struct walking_job *job = arg;
    (void)entry;
    if (errno != ENOENT)
        job->number = errno;
}

/* Pool work: calls job->visit for the files in the directories below job->directory, as store_area_walk() says. */
static enum sl_code directory_walk_job(void *arg, struct sl_error *error)
{
    struct walking_job *job = arg;
    char path[OBJECT_PATH];
    const struct dir_walk walk = {
        .depth = 1, .visit = walk_visit, .enter = walk_enter, .failed = walk_failed, .arg = job};
    if (!object_path(job->area, job->directory, path))
        return directory_fail(errno, "cannot list files of the upload store", error);
    dir_walk(&walk, AT_FDCWD, path);
    return job->number ? directory_fail(job->number, "cannot list files of the upload store", error) : SL_OK;
}

/* ---- the back end ---- */

static enum sl_code directory_stat(const struct store_area *area, struct sl_str name, bool with_md5,
                                   struct store_meta *meta, struct sl_error *error)
{
    struct directory_job job = {.area = area, .name = name, .with_md5 = with_md5, .meta = meta};
    return pool_call(POOL_IO, directory_stat_job, &job, error);
}

static enum sl_code directory_open(const struct store_area *area, struct sl_str name, struct sl_mapping *mapping,
                                   struct store_meta *meta, struct sl_error *error)
{
    struct directory_job job = {.area = area, .name = name, .meta = meta, .mapping = mapping};
    return pool_call(POOL_IO, directory_stat_job, &job, error);
}

static enum sl_code directory_put(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                                  const struct store_meta *meta, const char *media_type, struct sl_error *error)
{
    struct directory_job job = {.area = area, .name = name, .work = work};
    (void)meta, (void)media_type; /* not stored: readers take them from the file's gzip header and from its name */
    return pool_call(POOL_IO, directory_put_job, &job, error);
}

static enum sl_code directory_put_text(const struct store_area *area, const struct sl_str *names, size_t count,
                                       struct sl_str text, struct sl_error *error)
{
    struct directory_text t = {.area = area, .names = names, .count = count, .text = text};
    return pool_call(POOL_IO, directory_text_job, &t, error);
}

static enum sl_code directory_remove(const struct store_area *area, struct sl_str name, struct sl_error *error)
{
    struct directory_job job = {.area = area, .name = name};
    return pool_call(POOL_IO, directory_remove_job, &job, error);
}

/* Lists the files of a directory, on the pool. The job makes the list in an arena of its own, from which it is copied here to the caller's,
 * which only the loop thread may use. */
static enum sl_code directory_list(const struct store_area *area, struct sl_str directory, size_t most,
                                   struct sl_arena *arena, struct sl_str **names, size_t *count, struct sl_error *error)
{
    struct listing_job job = {.area = area, .directory = directory, .most = most};
    enum sl_code code = pool_call(POOL_IO, directory_list_job, &job, error);
    *names =
        code == SL_OK ? SL_ARENA_ARRAY(arena, struct sl_str, job.count + 1) : NULL; /* + 1, as the number may be 0 */
    for (size_t i = 0; *names && i < job.count; i++) {
        (*names)[i] = (struct sl_str){sl_arena_strndup(arena, job.names[i].data, job.names[i].size), job.names[i].size};
        if (!(*names)[i].data)
            *names = NULL; /* ends the loop: out of memory */
    }
    *count = *names ? job.count : 0;
    sl_arena_free(&job.arena);
    return code == SL_OK && !*names ? sl_fail(error, SL_BUSY, "out of memory") : code;
}

static enum sl_code directory_walk(const struct store_area *area, struct sl_str directory, struct sl_str begin,
                                   store_area_visitor *visit, void *arg, struct sl_error *error)
{
    struct walking_job job = {.area = area, .directory = directory, .begin = begin, .visit = visit, .arg = arg};
    return pool_call(POOL_WALK, directory_walk_job, &job, error);
}

/* Sets the source's type and path to the directory `prefix` of the area; false when out of memory. */
static bool directory_source(const struct store_area *area, struct sl_arena *arena, struct sl_str prefix,
                             struct source *source)
{
    struct sl_buf path = {0};
    sl_buf_printf(&path, "%s/" SL_STR_FMT, area->root, SL_STR_ARG(prefix));
    source->type = SOURCE_FILESYSTEM;
    source->path = sl_buf_move_to_arena(&path, arena);
    return source->path.data != NULL;
}

static const struct store_area_type directory = {.source = directory_source,
                                                 .tmp_file = directory_tmp_file,
                                                 .stat = directory_stat,
                                                 .put = directory_put,
                                                 .put_text = directory_put_text,
                                                 .open = directory_open,
                                                 .remove = directory_remove,
                                                 .list = directory_list,
                                                 .walk = directory_walk,
                                                 .sweep = directory_sweep};

void store_area_use_directory(struct store_area *area, const char *root)
{
    *area = (struct store_area){.type = &directory, .root = root};
}

enum sl_code store_area_open_directory(struct store_area *area, const char *root, const char *key,
                                       struct sl_error *error)
{
    char path[OBJECT_PATH], what[128];
    *area = (struct store_area){.type = &directory, .root = root};
    if (object_path(area, SL_STR("tmp"), path) && files_make_directory(path, 0750, FILES_DURABLE) &&
        access(root, W_OK) == 0)
        return SL_OK;
    snprintf(what, sizeof what, "%s: cannot create files there", key);
    sl_fail_errno(error, errno, what);
    area->type = NULL;
    return error->code = SL_INTERNAL; /* not the code of errno: it is an error of the configuration */
}
