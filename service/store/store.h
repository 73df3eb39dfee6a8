/* The store of Mozilla's symbol server: what builds have uploaded. It is data, not cache.
 *
 *     v1/<debug file>/<DEBUG ID>/<file>            symbols of releases
 *     try/v1/<debug file>/<DEBUG ID>/<file>        of tries, which expire
 *     [try/]codeinfo/<file>/<ID>                   what a symbol file says of itself, by its code and its debug ids
 *     [try/]uploads/<number>                       what an upload did; kept for two years, of tries as long as these
 *     scopes/<scope>/...                           the same of uploads that belong to a scope
 *
 * It is a directory or a bucket of S3 or GCS. Objects are gzip-compressed under their plain names when their extension says so;
 * what they were before is known of them (size and MD5), so that equal files are not stored twice: of buckets as metadata,
 * in a directory in the extra field of the gzip file (RFC 1952, 2.3.1.1), so that one rename publishes both.
 *
 * `name` is a whole name as above. Loop thread, unless a function says pool. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "config/config.h"
#include "core/fiber.h"
#include "origin/origin.h"

enum store_part { STORE_REGULAR, STORE_TRY, STORE_PARTS };
extern const char *const store_prefixes[STORE_PARTS]; /* "v1/", "try/v1/" */

/* SL_NOT_FOUND when none is configured; else the error says what is wrong with it. The configuration must stay. */
enum sl_code store_init(const struct config *config, struct sl_error *error);
void store_close(void);
/* A fiber that removes what has expired, tries and files that nobody finished, until it is cancelled; buckets have rules for that.
 * `unused` is NULL. */
void store_sweep_repeatedly(void *unused) SL_SUSPENDS;
bool store_is_open(void);
const char *store_bucket(void); /* its name in answers: the bucket's, or the last part of the directory's */

/* Both parts as sources of id "uploads", for look-ups of files; `*count` is 0 when there is no store. */
const struct source *store_sources(size_t *count);
/* The same of requests that are not about Mozilla's API: none when `mozilla.store.serve_native` says so. */
const struct source *store_native_sources(size_t *count);

/* The same of uploads that belong to a scope, by the name of its directory; in the arena. NULL: out of memory, or there is no store. */
const struct source *store_scope_sources(struct sl_str scope, struct sl_arena *arena, size_t *count);

/* The location of an object as it is in keys of cache entries; in the arena. `scope`: as above, empty: everybody's. False when out of
 * memory. */
bool store_location(struct sl_str scope, enum store_part part, struct sl_str key, struct sl_arena *arena,
                    struct sl_str *location);

struct store_meta {
    uint64_t size;     /* as it is stored */
    bool is_packed;    /* gzip */
    bool has_original; /* what follows is known. Of plain objects the size is `size` */
    uint64_t original_size;
    uint8_t md5[16];     /* of the contents, unpacked */
    int64_t modified_ns; /* since the epoch; 0 = not known */
};

/* A file to write an object into. Pool. */
struct store_work {
    int fd; /* -1: there is none */
    char path[600];
};
enum sl_code store_work_begin(struct store_work *work, struct sl_error *error);
void store_work_discard(struct store_work *work); /* also of one that was put */

/* The gzip header that says what was packed: STORE_HEAD bytes. Pure. */
enum { STORE_HEAD = 10 + 2 + 4 + 24 };
void store_head(uint64_t original_size, const uint8_t md5[16], uint8_t head[STORE_HEAD]);

/* What is known of an object: SL_NOT_FOUND. `with_md5`: also of a plain one, however long it takes. */
enum sl_code store_look(struct sl_str name, bool with_md5, struct store_meta *meta, struct sl_error *error) SL_SUSPENDS;

/* Publishes the work file, which is whole and closed afterwards, under the name; what was there before is replaced.
 * SL_UNSUPPORTED: the disk is full. */
enum sl_code store_put(struct sl_str name, struct store_work *work, const struct store_meta *meta,
                       const char *media_type, struct sl_error *error) SL_SUSPENDS;
/* A small JSON document, under each of the names. */
enum sl_code store_put_text(const struct sl_str *names, size_t count, struct sl_str text,
                            struct sl_error *error) SL_SUSPENDS;

/* Appends a small object, at most 64 KiB. */
enum sl_code store_read(struct sl_str name, struct sl_buf *text, struct sl_error *error) SL_SUSPENDS;

/* The object itself, as it is stored. The caller unmaps. */
enum sl_code store_open(struct sl_str name, struct sl_mapping *mapping, struct store_meta *meta,
                        struct sl_error *error) SL_SUSPENDS;

/* Where clients get the object from: below `public_url`, or signed for an hour; NULL: nowhere but here. In the arena. */
const char *store_url(struct sl_str name, struct sl_arena *arena) SL_SUSPENDS;
