/* Objects of a bucket of S3 or GCS by their names, for who keeps things there that are not Mozilla's. Each function is one request,
 * tried three times; SL_NOT_FOUND: there is no such object. What else fails says nothing about the object: the server did not answer
 * (SL_TIMEOUT, SL_DOWNLOAD_ERROR), or refused (SL_PERMISSION_DENIED). Loop thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "config/config.h"
#include "core/fiber.h"

/* What the keys of a bucket are called in the configuration. */
struct store_bucket_keys {
    const char *s3, *s3_endpoint, *s3_region, *gcs_account;
};
extern const struct store_bucket_keys store_mozilla_keys, store_symbfile_keys;

struct store_bucket;

/* The bucket of the configuration, which must stay as the arena that it lies in. NULL: `error`, and `*key` is the key at fault;
 * nobody is asked. */
struct store_bucket *store_bucket_open(const struct config_bucket *config, const struct store_bucket_keys *keys,
                                       struct sl_arena *arena, const char **key, struct sl_error *error);
void store_bucket_close(struct store_bucket *bucket); /* may be NULL; no request may be running */

/* Writes the contents at the file's offset 0; the file is empty before. */
enum sl_code store_object_get(struct store_bucket *bucket, struct sl_str name, int fd,
                              struct sl_error *error) SL_SUSPENDS;
/* Appends the contents, at most `most` bytes. */
enum sl_code store_object_read(struct store_bucket *bucket, struct sl_str name, uint64_t most, struct sl_buf *text,
                               struct sl_error *error) SL_SUSPENDS;
/* The same for who asks often: tried once, for at most so long. */
enum sl_code store_object_poll(struct store_bucket *bucket, struct sl_str name, uint64_t timeout_ns, uint64_t most,
                               struct sl_buf *text, struct sl_error *error) SL_SUSPENDS;
/* What was there before is replaced. */
enum sl_code store_object_write(struct store_bucket *bucket, struct sl_str name, struct sl_str text,
                                struct sl_error *error) SL_SUSPENDS;
/* The same of a file. */
enum sl_code store_object_put(struct store_bucket *bucket, struct sl_str name, int fd,
                              struct sl_error *error) SL_SUSPENDS;
/* Also SL_OK when it is not there. */
enum sl_code store_object_delete(struct store_bucket *bucket, struct sl_str name, struct sl_error *error) SL_SUSPENDS;

struct store_object { /* texts in the list's arena */
    struct sl_str name;
    struct sl_str modified; /* as the server has it: times of one server are in order as texts are */
};

enum { STORE_LIST_MAX = 1000 };

struct store_objects {
    struct sl_arena arena;
    struct store_object items[STORE_LIST_MAX];
    size_t count;
    bool more;             /* than these */
    struct sl_str skipped; /* the configured prefix that names have in the bucket */
    bool failed;           /* out of memory */
};

/* The first STORE_LIST_MAX objects, in the order of their names, whose names begin with `prefix` and come behind `after` (empty: from
 * the first). The caller gives the list to store_objects_free. */
enum sl_code store_objects_list(struct store_bucket *bucket, struct sl_str prefix, struct sl_str after,
                                struct store_objects *objects, struct sl_error *error) SL_SUSPENDS;
void store_objects_free(struct store_objects *objects);
