/* Gets source texts: from objects and bundles, as single files from the web or a symbol source, and scripts with their source maps. */
#pragma once

#include "cache/cache.h"
#include "js/smcache.h"
#include "cache_kinds/objects.h"
#include "source/bundle.h"

/* ---- objects with source texts (bundles.c) ---- */

/* An open object with source texts. */
struct source_object {
    struct cache_item *item; /* a reference: the file, or the bundle made from its DWARF */
    /* a reference: look-up table of the Portable PDB that the file is or contains; NULL for a bundle */
    struct cache_item *table;
    struct sl_bytes ppdb;       /* the Portable PDB, if it contains texts and can be read; else data NULL */
    struct sl_mapping inflated; /* mapping of `ppdb` if the file is a PE file that contains it, compressed */
    struct sl_str scope;        /* scope of the cache entries: origin_scope */
    uint64_t work;              /* bytes that source_object_find has inflated or copied so far, also on failure */
};
void source_object_release(struct source_object *object);

/* Opens the sources of the object with this key, for source_object_find. End it with source_object_release, except after an error. */
enum sl_code source_open(const struct cache_key *key, const struct object_request *request,
                         struct source_object *object) SL_SUSPENDS;

/* Looks up a source path in an object: appends the text, byte for byte, if the object contains it (`*has_text`), and a URL from which it
 * can be downloaded, if there is one. False if the object knows nothing of the path. Runs on the pool, for one object on one thread at a
 * time. */
bool source_object_find(struct source_object *object, struct sl_str path, struct sl_buf *text, bool *has_text,
                        struct sl_buf *url);

/* Appends the text of a bundle's file; false if it exceeds the limit for source texts or cannot be read. Adds the bytes inflated to
 * `*work`, also on failure. Runs on the pool. */
bool append_bundle_text(const struct sl_bundle *bundle, const struct sl_bundle_file *file, uint64_t *work,
                        struct sl_buf *text);

/* ---- single files (source_files.c) ---- */

struct source_request { /* one text file; its texts are NUL-terminated */
    struct sl_str scope;
    /* if `file` is NULL: a file from the web */
    struct sl_str url, location; /* `location`: replaces the URL in cache keys and logs; empty: it does not */
    struct sl_str member;        /* file in the tar archive at the URL; empty: the URL is that of the file */
    const struct fetch_header *headers;
    size_t header_count;
    bool accept_invalid_certs;
    /* True if a redirect may lead to this URL, as its origin is in the list; NULL: redirects may lead anywhere. */
    bool (*origin_allowed)(struct sl_arena *arena, const struct sl_str *origins, size_t count, struct sl_str url);
    const struct sl_str *origins;
    size_t origin_count;
    /* if not NULL: a file from a symbol source */
    const struct remote_file *file;
    struct sl_str entry; /* name of the wanted file if `file` is a source bundle; empty: `file` itself is wanted */
    bool is_utf8;        /* the bytes must be UTF-8. False: the encoding is detected, and the text converted to UTF-8 */
    bool is_raw;         /* the bytes are kept as they are, text or not */
};

/* Gets a text file, from the cache or by a download; the item's contents are UTF-8, unless request->is_raw. Errors are those of fetch_get,
 * SL_NOT_FOUND if the file is empty, and SL_MALFORMED if it is not text. */
enum sl_code source_file_get(const struct source_request *request, struct sl_arena *arena, struct cache_item **item,
                             struct sl_error *error) SL_SUSPENDS;

/* Appends the contents of a cache item to `to`. Fails with SL_INTERNAL if its file was damaged since it was mapped, SL_BUSY or
 * SL_CANCELLED. */
enum sl_code append_item_text(struct sl_buf *to, struct cache_item *item, struct sl_error *error) SL_SUSPENDS;

/* What a script's comments say of its debug information; `map` lives as long as the script's item. */
struct script_facts {
    bool has_map, has_debug_id;
    bool embeds_map;   /* the comment is a data URL that contains the map */
    struct sl_str map; /* reference to its source map, see sl_js_map_comment; data NULL if `embeds_map` */
    struct sl_debug_id debug_id;
    uint8_t sha256[32]; /* of the contents */
};
/* Gets what the comments of a script say, and its hash. `item` is one of source_file_get: the first call reads the script and keeps the
 * facts in the item. Fails with SL_CANCELLED, SL_BUSY or SL_INTERNAL. */
enum sl_code script_facts_get(struct cache_item *item, struct script_facts *facts, struct sl_error *error) SL_SUSPENDS;

struct sourcemap_request {
    struct sl_str scope;
    const struct source_request *script; /* NULL: it is empty */
    const struct source_request *map;    /* NULL: the map is in the data URL `embedded` */
    struct sl_str embedded;              /* data URL with the map; data NULL: the one in the script's comment */
    struct sl_str script_id, map_id; /* identify script and map in the cache key: hash of the contents, or location */
};

/* Gets the look-up table of a script and its source map, from the cache or newly made; the item's `loaded` is a struct sl_smcache.
 * SL_MALFORMED if the map is invalid, SL_UNSUPPORTED if it exceeds a limit, or an error of source_file_get. */
enum sl_code sourcemap_get(const struct sourcemap_request *request, struct sl_arena *arena, struct cache_item **item,
                           struct sl_error *error) SL_SUSPENDS;

/* For files sent with a request, which are not cached. item_from_text makes an item of a text. item_from_sourcemap makes the look-up table
 * of a script (NULL: none) and its source map; this is `map` or, if that is NULL, in a data URL: `embedded` or, if its data are NULL, the
 * URL in the script's comment. */
enum sl_code item_from_text(struct sl_str text, struct cache_item **item, struct sl_error *error);
enum sl_code item_from_sourcemap(struct cache_item *script, struct cache_item *map, struct sl_str embedded,
                                 struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* Gets an artifact bundle (a source bundle of scripts and source maps) and opens it; end it with source_object_release. SL_MALFORMED if the
 * file is not a usable bundle. */
enum sl_code source_object_open_bundle(const struct remote_file *file, struct sl_str scope, struct sl_arena *arena,
                                       struct source_object *bundle, struct sl_error *error) SL_SUSPENDS;

/* Finds the bundle's file with this debug id and type, or with this URL if `id` is NULL: `*file` is NULL if there is none. SL_INTERNAL: the
 * bundle's file was damaged since it was mapped. */
enum sl_code source_object_find_file(const struct source_object *bundle, const struct sl_debug_id *id,
                                     enum sl_bundle_type type, struct sl_str url, const struct sl_bundle_file **file);
