/* The store of Mozilla's symbol server: files that builds have uploaded. It is data, not a cache.
 *
 *     v1/<debug file>/<DEBUG ID>/<file>            symbols of releases
 *     try/v1/<debug file>/<DEBUG ID>/<file>        symbols of try builds, which expire
 *     [try/]codeinfo/<file>/<ID>                   module properties read from a symbol file, by code id and by debug id
 *     [try/]uploads/<number>                       record of an upload; kept for two years, for try builds as long as their files
 *     scopes/<scope>/...                           all of these for uploads that belong to a scope
 *
 * The store is a directory or a bucket of S3 or GCS. Files with certain extensions are stored gzip-compressed under their plain
 * names. Their original size and MD5 are stored too, so that equal files are not uploaded twice: in a bucket as metadata of the object,
 * in a directory in the extra field of the gzip header (RFC 1952, 2.3.1.1), so that one rename publishes file and properties.
 *
 * Parameters `name` are complete names like these. Call the functions on the loop thread, unless a comment says pool. */
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

/* Opens the configured store. SL_NOT_FOUND: none is configured; other errors: it cannot be used. `config` must outlive the store. */
enum sl_code store_init(const struct config *config, struct sl_error *error);
void store_close(void);
/* Run in a fiber: removes expired objects (of try builds, abandoned temporary files) from time to time, until the fiber is cancelled.
 * Returns at once for a bucket, which has lifecycle rules for that. `unused` is NULL. */
void store_sweep_repeatedly(void *unused) SL_SUSPENDS;
bool store_is_open(void);
/* Returns the store's name for responses: that of the bucket, or the last component of the directory. */
const char *store_bucket(void);

/* Returns the regular and the try part of the store as sources with id "uploads", for searches; `*count` is 0 if there is no store. */
const struct source *store_sources(size_t *count);
/* Returns the store's sources for requests outside of Mozilla's API: `*count` is 0 unless `mozilla.store.serve_native` is set. */
const struct source *store_native_sources(size_t *count);

/* Returns the store's sources for uploads that belong to a scope, in the arena; `scope` is the name of its directory below scopes/. NULL:
 * out of memory, or there is no store. */
const struct source *store_scope_sources(struct sl_str scope, struct sl_arena *arena, size_t *count);

/* Sets `*location` to the location of an object, as cache keys contain it, in the arena. `key` is the object's name below the prefix of its
 * part: "<debug file>/<DEBUG ID>/<file>". `scope` is the name of its directory below scopes/; empty: the object is of no scope. False if
 * out of memory. */
bool store_location(struct sl_str scope, enum store_part part, struct sl_str key, struct sl_arena *arena,
                    struct sl_str *location);

/* Creates a temporary file for an object (area.h). Pool. */
enum sl_code store_tmp_file_create(struct store_tmp_file *work, struct sl_error *error);

/* Sets the error of a write to `place` that failed with errno `number`, and returns its code: SL_UNSUPPORTED, "`place` is full", if the
 * disk or quota is full, which the APIs answer with 507 or a code of their own; else the code of sl_fail_errno(). */
enum sl_code store_fail_write(struct sl_error *error, int number, const char *place);

/* Writes a gzip header with the size and MD5 of the uncompressed file in its extra field: STORE_GZIP_HEADER_SIZE bytes. Any thread. */
enum { STORE_GZIP_HEADER_SIZE = 10 + 2 + 4 + 24 };
void store_gzip_header_write(uint64_t original_size, const uint8_t md5[16], uint8_t head[STORE_GZIP_HEADER_SIZE]);

/* Reads the properties of an object; SL_NOT_FOUND. `with_md5`: also get the MD5 of an uncompressed object, which may take long, as a
 * directory has to compute it. */
enum sl_code store_stat(struct sl_str name, bool with_md5, struct store_meta *meta, struct sl_error *error) SL_SUSPENDS;

/* Publishes the temporary file under the name, replacing an existing object, and closes it, also on failure. All contents must have been
 * written. SL_UNSUPPORTED: the disk is full. */
enum sl_code store_put(struct sl_str name, struct store_tmp_file *work, const struct store_meta *meta,
                       const char *media_type, struct sl_error *error) SL_SUSPENDS;
/* Stores a small JSON document under each of the names. */
enum sl_code store_put_text(const struct sl_str *names, size_t count, struct sl_str text,
                            struct sl_error *error) SL_SUSPENDS;

/* Appends the contents of a small object, at most 64 KiB. */
enum sl_code store_read(struct sl_str name, struct sl_buf *text, struct sl_error *error) SL_SUSPENDS;

/* Maps the contents of the object, which are gzip-compressed if meta->is_packed is true: a directory gives them as they are stored, a
 * bucket always uncompressed. The caller unmaps them. */
enum sl_code store_open(struct sl_str name, struct sl_mapping *mapping, struct store_meta *meta,
                        struct sl_error *error) SL_SUSPENDS;

/* Returns the URL where clients can get the object, in the arena: below `mozilla.store.public_url`, or a URL of the bucket that is signed
 * for an hour. NULL: only this service can send it. */
const char *store_url(struct sl_str name, struct sl_arena *arena) SL_SUSPENDS;
