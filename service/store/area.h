/* Named files in a directory or in a bucket of S3 or GCS: the one mechanism behind all stores of uploads.
 *
 * A name is a relative path, "v1/a.pdb/0123/a.sym". A file becomes visible by one rename (or one PUT), complete and synced. Loop
 * thread, unless a function says pool. Errors: SL_NOT_FOUND: there is no such file; SL_UNSUPPORTED: the disk is full. */
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
    const char *root;                   /* of a directory */
    struct object_store bucket;
};

/* Open an area. The directory is made if it is missing; `root` must outlive the area. The bucket's texts are in the arena.
 * `key` is the configuration key to name in errors. Both block. */
enum sl_code store_area_open_directory(struct store_area *area, const char *root, const char *key,
                                       struct sl_error *error);
/* Uses a directory that is made with the first file, as it may be mounted later. */
void store_area_use_directory(struct store_area *area, const char *root);
enum sl_code store_area_open_bucket(struct store_area *area, const struct bucket_config *config, struct sl_arena *arena,
                                    struct sl_error *error);

/* Sets type and location of a source for the files whose names begin with "<prefix>/"; texts lie in the arena. False: out of
 * memory. */
bool store_area_source(const struct store_area *area, struct sl_arena *arena, struct sl_str prefix,
                       struct source *source);

struct store_meta {
    uint64_t size;     /* stored size */
    bool is_packed;    /* gzip-compressed */
    bool has_original; /* the members below are valid; for plain objects original_size is `size` */
    uint64_t original_size;
    uint8_t md5[16];              /* of the uncompressed contents */
    int64_t modified_ns;          /* since the epoch; 0 = unknown */
    char version[OBJECT_VERSION]; /* in a bucket: for store_area_replace; empty = unknown */
};

/* A temporary file for writing an object. Where the file system permits it has no name, so that a killed process leaves nothing
 * behind. Pool. */
struct store_tmp_file {
    int fd;         /* -1: no file */
    char path[600]; /* empty: the file has no name */
};
enum sl_code store_area_tmp_file(const struct store_area *area, struct store_tmp_file *work, struct sl_error *error);
void store_tmp_file_discard(struct store_tmp_file *work); /* also allowed after store_area_put() */
/* Discards the file from the loop thread: on the pool, as the disk may be slow. */
void store_tmp_file_discard_on_pool(struct store_tmp_file *work) SL_SUSPENDS;

/* Reads the properties of a file. `with_md5`: also compute the MD5 of a plain file of a directory, which may take long. */
enum sl_code store_area_stat(const struct store_area *area, struct sl_str name, bool with_md5, struct store_meta *meta,
                             struct sl_error *error) SL_SUSPENDS;
/* Publishes the work file under the name, replacing an existing one, and closes it. It must be complete. */
enum sl_code store_area_put(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                            const struct store_meta *meta, const char *media_type, struct sl_error *error) SL_SUSPENDS;
/* Does the same if the name still has the file with the version of `before`, as store_area_open or _stat read it, or no file if
 * `before` is NULL. Else nothing is stored and `*conflict` is true, with SL_OK. There are no conflicts in a directory, where the
 * caller has the lock of the name, nor in buckets of servers without conditional requests (status 501). */
enum sl_code store_area_replace(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                                const struct store_meta *meta, const char *media_type, const struct store_meta *before,
                                bool *conflict, struct sl_error *error) SL_SUSPENDS;
/* Stores a small JSON document under each of the names. */
enum sl_code store_area_put_text(const struct store_area *area, const struct sl_str *names, size_t count,
                                 struct sl_str text, struct sl_error *error) SL_SUSPENDS;
/* Appends the contents of a small file, at most 64 KiB. */
enum sl_code store_area_read(const struct store_area *area, struct sl_str name, struct sl_buf *text,
                             struct sl_error *error) SL_SUSPENDS;
/* Maps the contents: gzip-compressed if meta->is_packed. The caller unmaps them. */
enum sl_code store_area_open(const struct store_area *area, struct sl_str name, struct sl_mapping *mapping,
                             struct store_meta *meta, struct sl_error *error) SL_SUSPENDS;
/* Removes a file; SL_OK also if there is none. */
enum sl_code store_area_delete(const struct store_area *area, struct sl_str name, struct sl_error *error) SL_SUSPENDS;
/* Lists the last components of the names of the files directly below "<directory>/", sorted, at most `most`; in the arena. */
enum sl_code store_area_list(const struct store_area *area, struct sl_str directory, size_t most,
                             struct sl_arena *arena, struct sl_str **names, size_t *count,
                             struct sl_error *error) SL_SUSPENDS;

/* Calls `visit` with the name, relative to `directory`, of each file in a directory directly below it whose name begins with `begin`
 * ("ab/file" with "" or "a"), in any order, until it returns false. The fiber waits meanwhile; `visit` runs on any thread. */
typedef bool store_area_visitor(void *arg, struct sl_str name);
enum sl_code store_area_walk(const struct store_area *area, struct sl_str directory, struct sl_str begin,
                             store_area_visitor *visit, void *arg, struct sl_error *error) SL_SUSPENDS;

/* Waits for an exclusive lock (flock(2)) on the empty file of that name, which is made; close `*fd` to unlock. Other processes that
 * use the directory wait likewise. SL_BUSY after five minutes. There are no locks in a bucket: SL_OK, and `*fd` is -1. */
enum sl_code store_area_lock(const struct store_area *area, struct sl_str name, int *fd,
                             struct sl_error *error) SL_SUSPENDS;

/* Removes the files older than `life_s` below the directory of that name, and directories that become empty, at most `depth`
 * deep. Buckets do nothing, as they have rules for that of their own. Pool. */
void store_area_sweep(const struct store_area *area, const char *name, uint64_t life_s, unsigned depth);
/* Removes temporary files that a killed process left behind. */
void store_area_sweep_tmp(const struct store_area *area);
