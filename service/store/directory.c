/* A store in a local directory. Files are written below tmp/, synced, and renamed to their final path. */
#include "store/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files.h"
#include "core/loop.h"
#include "core/pool.h"

static const char *root;

/* ---- paths ---- */

enum { OBJECT_PATH = 1024 };

/* Makes the path of an object. False with errno ENAMETOOLONG if it is too long. */
static bool object_path(struct sl_str name, char path[OBJECT_PATH])
{
    int size = snprintf(path, OBJECT_PATH, "%s/" SL_STR_FMT, root, SL_STR_ARG(name));
    if (size > 0 && size < OBJECT_PATH)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

/* Converts errno. A name that is too long cannot exist, so it is not found. A full store is the operator's problem, not the
 * client's. */
static enum sl_code directory_fail(int number, const char *what, struct sl_error *error)
{
    if (number == ENOENT || number == ENOTDIR || number == ENAMETOOLONG)
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    if (number == ENOSPC || number == EDQUOT)
        return sl_fail(error, SL_UNSUPPORTED, "the upload store is full");
    return sl_fail_errno(error, number, what);
}

static enum sl_code directory_work(struct store_tmp_file *work, struct sl_error *error)
{
    char tmp[OBJECT_PATH];
    work->fd = object_path(SL_STR("tmp"), tmp) ? files_temp(tmp, "", 0750, work->path, sizeof work->path) : -1;
    return work->fd >= 0 ? SL_OK : sl_fail_errno(error, errno, "cannot create a file in the upload store");
}

/* ---- pool jobs ---- */

struct directory_job {
    struct sl_str name;
    bool with_md5;
    struct store_meta *meta;
    struct store_tmp_file *work;
    struct sl_mapping *mapping; /* NULL: only read the properties */
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

/* Reads the properties of an open file. A packed file has a gzip header with the original size and MD5
 * (store_gzip_header_write); the MD5 of a plain file is only computed if wanted, as that reads the whole file. */
static enum sl_code directory_examine(int fd, const struct directory_job *job, struct sl_error *error)
{
    uint8_t head[STORE_GZIP_HEADER_SIZE];
    struct stat st;
    struct store_meta *meta = job->meta;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    meta->size = meta->original_size = (uint64_t)st.st_size;
    meta->modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        return sl_fail_errno(error, errno, "cannot read from the upload store");
    meta->is_packed = store_gzip_header_read((struct sl_bytes){head, (size_t)n}, meta);
    if (!meta->is_packed && job->with_md5)
        meta->has_original = file_md5(fd, meta->md5);
    return job->mapping ? sl_map_fd(fd, job->mapping, error) : SL_OK;
}

/* Pool work: opens an object and reads its properties; maps it if that is wanted. */
static enum sl_code directory_stat_job(void *arg, struct sl_error *error)
{
    const struct directory_job *job = arg;
    char path[OBJECT_PATH];
    int fd = object_path(job->name, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
    if (fd < 0)
        return directory_fail(errno, "cannot open a file of the upload store", error);
    enum sl_code code = directory_examine(fd, job, error);
    close(fd);
    return code;
}

/* Renames a file to the path of an object. `fd` is the open file, which is synced first; -1: it is synced already. */
static bool move_to(int fd, const char *from, struct sl_str name)
{
    char path[OBJECT_PATH];
    return object_path(name, path) && files_publish(fd, from, path, FILES_DURABLE);
}

/* Closes the temporary file and reports the result; removes it if it was not published. A missing path is an internal error
 * here, as files are written to directories that this process creates. */
static enum sl_code put_end(struct store_tmp_file *work, bool good, struct sl_error *error)
{
    int number = errno;
    if (good)
        *work->path = '\0';
    store_tmp_file_discard(work);
    enum sl_code code = good ? SL_OK : directory_fail(number, "cannot write to the upload store", error);
    return code == SL_NOT_FOUND ? sl_fail(error, SL_INTERNAL, "cannot write to the upload store: %s", strerror(number))
                                : code;
}

static enum sl_code directory_put_job(void *arg, struct sl_error *error)
{
    const struct directory_job *job = arg;
    bool good = move_to(job->work->fd, job->work->path, job->name);
    return put_end(job->work, good, error);
}

struct directory_text {
    const struct sl_str *names;
    size_t count;
    struct sl_str text;
};

/* Publishes one file under several names, as hard links. */
static bool directory_write_text(const struct directory_text *t, const struct store_tmp_file *work)
{
    char other[sizeof work->path + 2];
    bool good =
        sl_write_all(work->fd, (struct sl_bytes){(const uint8_t *)t->text.data, t->text.size}) && fsync(work->fd) == 0;
    snprintf(other, sizeof other, "%s+", work->path);
    for (size_t i = 1; good && i < t->count; i++) {
        good = link(work->path, other) == 0 && move_to(-1, other, t->names[i]);
        unlink(other); /* rename(2) keeps both names if they are the same file */
    }
    return good && move_to(-1, work->path, t->names[0]);
}

static enum sl_code directory_text_job(void *arg, struct sl_error *error)
{
    const struct directory_text *t = arg;
    struct store_tmp_file work;
    enum sl_code code = directory_work(&work, error);
    return code == SL_OK ? put_end(&work, directory_write_text(t, &work), error) : code;
}

/* ---- expiry ---- */

/* Temporary files that a crash left behind live for WORK_LIFE_S, records of uploads for RECORD_LIFE_S (two years). */
enum { WORK_LIFE_S = 15 * 60, RECORD_LIFE_S = 2 * 365 * 24 * 60 * 60, TREE_DEPTH = 3 };
static uint64_t try_life_s;

struct store_directory_sweep {
    uint64_t life_s;
    int64_t now_s;
};

/* Removes a file that is too old, or a directory whose entries were all removed. True if it removed the entry. */
static bool sweep_entry(void *arg, const struct dir_entry *entry)
{
    const struct store_directory_sweep *sweep = arg;
    int64_t age_s = sweep->now_s - (int64_t)entry->st->st_mtim.tv_sec;
    if (S_ISDIR(entry->st->st_mode))
        return entry->emptied && unlinkat(entry->at, entry->name, AT_REMOVEDIR) == 0;
    return S_ISREG(entry->st->st_mode) && age_s > 0 && (uint64_t)age_s >= sweep->life_s &&
           unlinkat(entry->at, entry->name, 0) == 0;
}

/* Removes files older than `life_s` and the directories that become empty. */
static void sweep_tree(int at, const char *name, uint64_t life_s, unsigned depth)
{
    struct store_directory_sweep sweep = {life_s, clock_wall_s()};
    dir_walk(&(struct dir_walk){.depth = depth, .visit = sweep_entry, .arg = &sweep}, at, name);
}

/* Removes expired "try" symbols and old records of uploads; regular symbols are kept forever. */
static void sweep_uploads(int fd)
{
    sweep_tree(fd, "try", try_life_s, TREE_DEPTH);
    sweep_tree(fd, "uploads", RECORD_LIFE_S, 0);
}

static void sweep_scopes(int fd)
{
    DIR *dir = dir_open(fd, "scopes");
    struct stat st;
    for (struct dirent *e; (e = dir_next(dir, &st));) {
        int scope = e->d_name[0] == '.' ? -1 : openat(dirfd(dir), e->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (scope < 0)
            continue;
        sweep_uploads(scope);
        close(scope);
    }
    if (dir)
        closedir(dir);
}

static void directory_sweep(void)
{
    int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    sweep_tree(fd, "tmp", WORK_LIFE_S, 0);
    sweep_uploads(fd);
    sweep_scopes(fd);
    close(fd);
}

/* ---- the back end ---- */

static enum sl_code directory_stat(struct sl_str name, bool with_md5, struct store_meta *meta, struct sl_error *error)
{
    struct directory_job job = {.name = name, .with_md5 = with_md5, .meta = meta};
    return pool_call(POOL_IO, directory_stat_job, &job, error);
}

static enum sl_code directory_open(struct sl_str name, struct sl_mapping *mapping, struct store_meta *meta,
                                   struct sl_error *error)
{
    struct directory_job job = {.name = name, .meta = meta, .mapping = mapping};
    return pool_call(POOL_IO, directory_stat_job, &job, error);
}

static enum sl_code directory_put(struct sl_str name, struct store_tmp_file *work, const struct store_meta *meta,
                                  const char *media_type, struct sl_error *error)
{
    struct directory_job job = {.name = name, .work = work};
    (void)meta, (void)media_type; /* both are in the file and its name */
    return pool_call(POOL_IO, directory_put_job, &job, error);
}

static enum sl_code directory_put_text(const struct sl_str *names, size_t count, struct sl_str text,
                                       struct sl_error *error)
{
    struct directory_text t = {.names = names, .count = count, .text = text};
    return pool_call(POOL_IO, directory_text_job, &t, error);
}

static bool directory_source(struct sl_arena *arena, struct sl_str prefix, struct source *source)
{
    struct sl_buf path = {0};
    sl_buf_printf(&path, "%s/" SL_STR_FMT, root, SL_STR_ARG(prefix));
    source->type = SOURCE_FILESYSTEM;
    source->path = sl_buf_move_to_arena(&path, arena);
    return source->path.data != NULL;
}

static const struct store_backend directory = {.source = directory_source,
                                               .work = directory_work,
                                               .stat = directory_stat,
                                               .put = directory_put,
                                               .put_text = directory_put_text,
                                               .open = directory_open,
                                               .sweep = directory_sweep};

const struct store_backend *store_directory(const struct config_store *config, struct sl_arena *arena,
                                            struct sl_error *error)
{
    char path[OBJECT_PATH];
    (void)arena;
    root = config->filesystem_path;
    try_life_s = config->try_retention_ns / 1000000000;
    if (object_path(SL_STR("tmp"), path) && files_make_directory(path, 0750, FILES_DURABLE) && access(root, W_OK) == 0)
        return &directory;
    sl_fail_errno(error, errno, "mozilla.store.filesystem.path: cannot create files there");
    error->code = SL_INTERNAL;
    return NULL;
}
