/* A storage area: named files in a directory or in a bucket of S3 or GCS. All stores of uploads use it.
 *
 * A name is a relative path, "v1/a.pdb/0123/a.sym". A new file becomes visible by one rename (in a bucket: one PUT), when it is complete
 * and synced. Call these functions on the loop thread, unless a comment says pool. Errors: SL_NOT_FOUND: there is no such file;
 * SL_UNSUPPORTED: the disk is full. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "core/fiber.h"
#include "objectstore/objectstore.h"
#include "origin/origin.h"

struct store_area_type;
struct store_area {                     /* all zero: not open */
    const struct store_area_type *type; /* NULL: not open */
    const char *root;                   /* path of the directory; NULL: it is a bucket */
    struct object_store bucket;
};

/* Opens an area in a directory, which is made if it is missing; `root` must outlive the area. `key` is the configuration key that errors
 * name. Blocks. */
enum sl_code store_area_open_directory(struct store_area *area, const char *root, const char *key,
                                       struct sl_error *error);
/* Opens an area in a directory without touching the directory, which may be mounted later. It is made with the first file. */
void store_area_use_directory(struct store_area *area, const char *root);
/* Opens an area in a bucket. Allocates in the arena, which must outlive the area, like `config`. Blocks. */
enum sl_code store_area_open_bucket(struct store_area *area, const struct bucket_config *config, struct sl_arena *arena,
                                    struct sl_error *error);

/* Sets type and location of `source`, so that searches find the files of the area whose names begin with "<prefix>/"; texts lie in the
 * arena. False: out of memory. */
bool store_area_source(const struct store_area *area, struct sl_arena *arena, struct sl_str prefix,
                       struct source *source);

struct store_meta {               /* properties of a file */
    uint64_t size;                /* stored size */
    bool is_packed;               /* gzip-compressed */
    bool has_original;            /* original_size and md5 are valid */
    uint64_t original_size;       /* before compression; of a file that is not compressed: `size` */
    uint8_t md5[16];              /* of the uncompressed contents */
    int64_t modified_ns;          /* since the epoch; 0 = unknown */
    char version[OBJECT_VERSION]; /* in a bucket: of the object, for store_area_replace(); empty = unknown */
};

/* A temporary file for writing a new file of the area. If the file system supports O_TMPFILE it has no name, so that a killed process
 * leaves nothing behind. Creating and discarding it is pool work. */
struct store_tmp_file {
    int fd;         /* -1: no file */
    char path[600]; /* empty: the file has no name */
};
enum sl_code store_area_tmp_file(const struct store_area *area, struct store_tmp_file *work, struct sl_error *error);
/* Closes and removes the file. Does nothing after store_area_put(). */
void store_tmp_file_discard(struct store_tmp_file *work);
/* Discards the file from the loop thread: on the pool, as the disk may be slow. */
void store_tmp_file_discard_on_pool(struct store_tmp_file *work) SL_SUSPENDS;

/* Reads the properties of a file. `with_md5`: also get the MD5 of an uncompressed file; in a directory it must be computed, which may take
 * long. */
enum sl_code store_area_stat(const struct store_area *area, struct sl_str name, bool with_md5, struct store_meta *meta,
                             struct sl_error *error) SL_SUSPENDS;
/* Publishes the temporary file under the name, replacing an existing file, and closes it, also on failure. All contents must have been
 * written. `media_type` is for buckets. */
enum sl_code store_area_put(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                            const struct store_meta *meta, const char *media_type, struct sl_error *error) SL_SUSPENDS;
/* Publishes the temporary file as store_area_put() does, but only if the file of that name has not changed since store_area_open() or
 * _stat() read `before` (NULL: only if there is no such file). Else stores nothing: SL_OK with `*conflict`. Conflicts are not detected in a
 * directory, where the caller must hold the lock of the name (store_area_lock), nor by servers without conditional requests. */
enum sl_code store_area_replace(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                                const struct store_meta *meta, const char *media_type, const struct store_meta *before,
                                bool *conflict, struct sl_error *error) SL_SUSPENDS;
/* Stores a small JSON document under each of the names. */
enum sl_code store_area_put_text(const struct store_area *area, const struct sl_str *names, size_t count,
                                 struct sl_str text, struct sl_error *error) SL_SUSPENDS;
/* Appends the contents of a small file, at most 64 KiB. */
enum sl_code store_area_read(const struct store_area *area, struct sl_str name, struct sl_buf *text,
                             struct sl_error *error) SL_SUSPENDS;
/* Maps the contents, which are gzip-compressed if meta->is_packed is true. The caller unmaps them. */
enum sl_code store_area_open(const struct store_area *area, struct sl_str name, struct sl_mapping *mapping,
                             struct store_meta *meta, struct sl_error *error) SL_SUSPENDS;
/* Removes a file; SL_OK also if there is none. */
enum sl_code store_area_delete(const struct store_area *area, struct sl_str name, struct sl_error *error) SL_SUSPENDS;
/* Lists the files directly below "<directory>/", at most `most`: the last components of their names, sorted, in the arena. */
enum sl_code store_area_list(const struct store_area *area, struct sl_str directory, size_t most,
                             struct sl_arena *arena, struct sl_str **names, size_t *count,
                             struct sl_error *error) SL_SUSPENDS;

/* Calls `visit` with the name of each file "<directory>/<x>/<file>" whose <x> begins with `begin`, as "<x>/<file>", in any order, until
 * `visit` returns false. The fiber waits meanwhile; `visit` may run on another thread. */
typedef bool store_area_visitor(void *arg, struct sl_str name);
enum sl_code store_area_walk(const struct store_area *area, struct sl_str directory, struct sl_str begin,
                             store_area_visitor *visit, void *arg, struct sl_error *error) SL_SUSPENDS;

/* Waits for an exclusive lock against all processes that use the directory: flock(2) on an empty file of that name, which is made if it is
 * missing. Close `*fd` to unlock. SL_BUSY after five minutes. There are no locks in a bucket: SL_OK, and `*fd` is -1. */
enum sl_code store_area_lock(const struct store_area *area, struct sl_str name, int *fd,
                             struct sl_error *error) SL_SUSPENDS;

/* Removes the files older than `life_s` below the directory of that name, at most `depth` directories deep, and directories that become
 * empty. Does nothing in a bucket, which has lifecycle rules for that. Pool. */
void store_area_sweep(const struct store_area *area, const char *name, uint64_t life_s, unsigned depth);
/* Removes temporary files that a killed process left behind: those older than 15 minutes. Pool. */
void store_area_sweep_tmp(const struct store_area *area);
