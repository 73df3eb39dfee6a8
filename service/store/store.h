/* The store of Mozilla's symbol server: files that builds have uploaded. It is data, not a cache.
 *
 *     v1/<debug file>/<DEBUG ID>/<file>            symbols of releases
 *     try/v1/<debug file>/<DEBUG ID>/<file>        symbols of try builds, which expire
 *     [try/]codeinfo/<file>/<ID>                   properties from a symbol file, by code id and by debug id
 *     [try/]uploads/<number>                       record of an upload; kept for two years, for try builds as long as their files
 *     scopes/<scope>/...                           the same for uploads that belong to a scope
 *
 * The store is a directory or a bucket of S3 or GCS. Files with certain extensions are stored gzip-compressed under their plain
 * names. Their original size and MD5 are stored too, so that equal files are not uploaded twice: as metadata of the object in a
 * bucket, in the extra field of the gzip header in a directory (RFC 1952, 2.3.1.1), so that one rename publishes both.
 *
 * `name` is a complete name as above. Loop thread, unless a function says pool. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "config/config.h"
#include "core/fiber.h"
#include "origin/origin.h"
#include "store/area.h"

enum store_part { STORE_REGULAR, STORE_TRY, STORE_PARTS };
extern const char *const store_prefixes[STORE_PARTS]; /* "v1/", "try/v1/" */

/* SL_NOT_FOUND if no store is configured; other errors say what is wrong. `config` must outlive the store. */
enum sl_code store_init(const struct config *config, struct sl_error *error);
void store_close(void);
/* A fiber that removes expired objects (try builds, abandoned temporary files) until it is cancelled; buckets have
 * lifecycle rules for that. `unused` is NULL. */
void store_sweep_repeatedly(void *unused) SL_SUSPENDS;
bool store_is_open(void);
const char *store_bucket(void); /* its name in responses: the bucket's, or the last component of the directory */

/* Returns both parts as sources with id "uploads", for file lookups; `*count` is 0 if there is no store. */
const struct source *store_sources(size_t *count);
/* The same for requests outside of Mozilla's API: no sources unless `mozilla.store.serve_native` is set. */
const struct source *store_native_sources(size_t *count);

/* The same for uploads that belong to a scope; `scope` is its directory's name. In the arena. NULL: out of memory,
 * or there is no store. */
const struct source *store_scope_sources(struct sl_str scope, struct sl_arena *arena, size_t *count);

/* Returns the location of an object as used in cache keys; in the arena. `scope` as above; empty: not of a scope.
 * Returns false if out of memory. */
bool store_location(struct sl_str scope, enum store_part part, struct sl_str key, struct sl_arena *arena,
                    struct sl_str *location);

/* Creates a temporary file for an object (area.h). Pool. */
enum sl_code store_tmp_file_create(struct store_tmp_file *work, struct sl_error *error);

/* Sets the error of a write that failed with errno `number`. SL_UNSUPPORTED, "`place` is full", when the disk or a quota is
 * full, which APIs answer with 507 or their own code for that; else as sl_fail_errno. */
enum sl_code store_fail_write(struct sl_error *error, int number, const char *place);

/* Writes the gzip header with the original's size and MD5: STORE_GZIP_HEADER_SIZE bytes. Pure. */
enum { STORE_GZIP_HEADER_SIZE = 10 + 2 + 4 + 24 };
void store_gzip_header_write(uint64_t original_size, const uint8_t md5[16], uint8_t head[STORE_GZIP_HEADER_SIZE]);

/* Reads the properties of an object; SL_NOT_FOUND. `with_md5`: also compute the MD5 of a plain object, which may
 * take long. */
enum sl_code store_stat(struct sl_str name, bool with_md5, struct store_meta *meta, struct sl_error *error) SL_SUSPENDS;

/* Publishes the work file under the name, replacing an existing object, and closes the file. It must be complete.
 * SL_UNSUPPORTED: the disk is full. */
enum sl_code store_put(struct sl_str name, struct store_tmp_file *work, const struct store_meta *meta,
                       const char *media_type, struct sl_error *error) SL_SUSPENDS;
/* Stores a small JSON document under each of the names. */
enum sl_code store_put_text(const struct sl_str *names, size_t count, struct sl_str text,
                            struct sl_error *error) SL_SUSPENDS;

/* Appends the contents of a small object, at most 64 KiB. */
enum sl_code store_read(struct sl_str name, struct sl_buf *text, struct sl_error *error) SL_SUSPENDS;

/* Maps the contents of the object: gzip-compressed if meta->is_packed. A directory gives them as they are stored, a bucket
 * uncompressed. The caller unmaps them. */
enum sl_code store_open(struct sl_str name, struct sl_mapping *mapping, struct store_meta *meta,
                        struct sl_error *error) SL_SUSPENDS;

/* Returns the URL where clients can get the object: below `public_url`, or signed for an hour; NULL: only from this
 * service. In the arena. */
const char *store_url(struct sl_str name, struct sl_arena *arena) SL_SUSPENDS;
