/* Source texts: in objects and bundles, single files from the web or a source, scripts and their source maps. */
#pragma once

#include "cache/cache.h"
#include "js/smcache.h"
#include "cache_kinds/objects.h"
#include "source/bundle.h"

/* ---- objects with source texts (bundles.c) ---- */

/* An open object with source texts. */
struct source_object {
    struct cache_item *item; /* a reference: the file */
    /* a reference: look-up table of the Portable PDB that it is or contains; NULL for a bundle */
    struct cache_item *table;
    struct sl_bytes ppdb;       /* that Portable PDB, if it contains texts and can be read; else data NULL */
    struct sl_mapping inflated; /* the same if the object is a PE file that contains it */
    struct sl_str scope;        /* scope of its entries: origin_scope */
    uint64_t work;              /* bytes that source_object_find has inflated or copied so far, also on failure */
};
void source_object_release(struct source_object *object);

/* Gets the inputs of source_object_find. */
enum sl_code source_open(const struct cache_key *key, const struct object_request *request,
                         struct source_object *object) SL_SUSPENDS;

/* Looks up a source path: appends its text, byte for byte, and a URL from which it can be downloaded (nothing if there is
 * none). False if the object does not have the path. Pure: pool; one thread at a time for one object. */
bool source_object_find(struct source_object *object, struct sl_str path, struct sl_buf *text, bool *has_text,
                        struct sl_buf *url);

/* Appends the text of a bundle's file, unless it exceeds the limit for sources; adds the bytes processed to `*work`. Pool. */
bool append_bundle_text(const struct sl_bundle *bundle, const struct sl_bundle_file *file, uint64_t *work,
                        struct sl_buf *text);

/* ---- single files (source_files.c) ---- */

struct source_request { /* one text file; its texts are NUL-terminated */
    struct sl_str scope;
    /* from the web */
    struct sl_str url, location; /* `location`: the URL in keys, if it differs */
    struct sl_str member;        /* file in the tar archive at the URL; empty: the URL is that of the file */
    const struct fetch_header *headers;
    size_t header_count;
    bool accept_invalid_certs;
    /* True if a redirect may lead to this URL, according to the list; NULL = any may. */
    bool (*origin_allowed)(struct sl_arena *arena, const struct sl_str *origins, size_t count, struct sl_str url);
    const struct sl_str *origins;
    size_t origin_count;
    /* or, if not NULL, from a source: the file, or the entry of the bundle that it is */
    const struct remote_file *file;
    struct sl_str entry;
    bool is_utf8; /* the bytes must be UTF-8; otherwise they are decoded to it */
    bool is_raw;  /* of a file of a source: the bytes are kept as they are, text or not */
};

/* Downloads a text; the item's contents are UTF-8. Errors are those of fetch_get, SL_NOT_FOUND if it is empty, and SL_MALFORMED
 * if it is not a text. */
enum sl_code source_file_get(const struct source_request *request, struct sl_arena *arena, struct cache_item **item,
                             struct sl_error *error) SL_SUSPENDS;

/* Appends the item's contents. SL_INTERNAL: its file was damaged (cache_run_reader); SL_BUSY, SL_CANCELLED. */
enum sl_code append_item_text(struct sl_buf *to, struct cache_item *item, struct sl_error *error) SL_SUSPENDS;

/* Debug references in a script, an item of source_file_get; the text lives as long as the item. */
struct script_facts {
    bool has_map, has_debug_id;
    bool embeds_map;   /* the comment is a data URL that contains the map */
    struct sl_str map; /* reference to its source map, see sl_js_map_comment; data NULL if `embeds_map` */
    struct sl_debug_id debug_id;
    uint8_t sha256[32]; /* of the contents */
};
/* Scans the script at the first call; the result is stored in the item. SL_CANCELLED, SL_BUSY, SL_INTERNAL. */
enum sl_code script_facts_get(struct cache_item *item, struct script_facts *facts, struct sl_error *error) SL_SUSPENDS;

struct sourcemap_request {
    struct sl_str scope;
    const struct source_request *script; /* NULL: it is empty */
    const struct source_request *map;    /* NULL: the map is in the data URL `embedded` */
    struct sl_str embedded;              /* data NULL: the data URL in the script's comment */
    struct sl_str script_id, map_id;     /* identify their contents: hash or location */
};

/* Gets the table of a script and its map; `loaded` is a struct sl_smcache. SL_MALFORMED: the map is invalid; SL_UNSUPPORTED: it
 * exceeds a limit. */
enum sl_code sourcemap_get(const struct sourcemap_request *request, struct sl_arena *arena, struct cache_item **item,
                           struct sl_error *error) SL_SUSPENDS;

/* Create items for files sent with a request, outside the cache: item_from_text for a text, item_from_sourcemap for the
 * table of a script (NULL: none) and its map. The map is `map` or, if that is NULL, a data URL: `embedded` or, if that is
 * empty, the one in the script. Otherwise like source_file_get and sourcemap_get. */
enum sl_code item_from_text(struct sl_str text, struct cache_item **item, struct sl_error *error);
enum sl_code item_from_sourcemap(struct cache_item *script, struct cache_item *map, struct sl_str embedded,
                                 struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* Opens an artifact bundle; end it with source_object_release. */
enum sl_code source_object_open_bundle(const struct remote_file *file, struct sl_str scope, struct sl_arena *arena,
                                       struct source_object *bundle, struct sl_error *error) SL_SUSPENDS;

/* Finds the bundle's file with this debug id and type, or with this URL if `id` is NULL: `*file` is NULL if there is none.
 * SL_INTERNAL: the bundle was damaged (cache_run_reader). */
enum sl_code source_object_find_file(const struct source_object *bundle, const struct sl_debug_id *id,
                                     enum sl_bundle_type type, struct sl_str url, const struct sl_bundle_file **file);
