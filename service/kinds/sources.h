/* Source texts: those in objects and bundles, single files of the web or a source, scripts and their source maps. */
#pragma once

#include "cache/cache.h"
#include "js/smcache.h"
#include "kinds/objects.h"
#include "source/bundle.h"

/* ---- objects with source texts (bundles.c) ---- */

/* An object with source text, open. */
struct source_object {
    struct cache_item *item;  /* reference: the file */
    struct cache_item *table; /* reference: look-up table of the Portable PDB that it is or holds; NULL of a bundle */
    struct sl_bytes ppdb;     /* that Portable PDB, once it was needed */
    struct sl_str scope;      /* of its entries: origin_scope */
    uint64_t work;            /* bytes that kinds_source_at inflated or copied so far, whatever came of it */
};
void kinds_source_release(struct source_object *object);

/* Gets what kinds_source_at needs. */
enum sl_code source_open(const struct cache_key *key, const struct object_request *request,
                         struct source_object *object) SL_SUSPENDS;

/* What the object says of a source path: its text (appended as it is in the object), and the URL of it or where it may be
 * had (appended; nothing when there is none). False when the object does not know the path. Pure: pool; one thread at a
 * time for one object. What is made of the object on the way stays in the arena. */
bool kinds_source_at(struct source_object *object, struct sl_arena *arena, struct sl_str path, struct sl_buf *text,
                     bool *has_text, struct sl_buf *url);

/* Appends the text of a bundle's file, unless that is too large for a source; `*work` grows by the bytes it took. Pool. */
bool kinds_bundle_text(const struct sl_bundle *bundle, const struct sl_bundle_file *file, uint64_t *work,
                       struct sl_buf *text);

/* ---- single files (source_files.c) ---- */

struct source_request { /* one text file; the texts are terminated */
    struct sl_str scope;
    /* of the web */
    struct sl_str url, location; /* `location`: the URL as keys have it, if that is another one */
    struct sl_str member;        /* of the archive (tar) that the URL leads to; empty: it leads to the file */
    const struct fetch_header *headers;
    size_t header_count;
    bool accept_invalid_certs;
    /* Whether a redirect may lead to this URL, by the list; NULL = any may. */
    bool (*origin_allowed)(struct sl_arena *arena, const struct sl_str *origins, size_t count, struct sl_str url);
    const struct sl_str *origins;
    size_t origin_count;
    /* or, if it is not NULL, of a source: the file, or the entry of the bundle that it is */
    const struct remote_file *file;
    struct sl_str entry;
    bool is_utf8; /* it must be UTF-8 as it is; otherwise it is decoded to that */
};

/* Downloads a text; the item's contents are UTF-8. Errors are those of fetch_get, SL_NOT_FOUND when it is empty, and
 * SL_MALFORMED when it is no text. */
enum sl_code kinds_get_source_file(const struct source_request *request, struct sl_arena *arena,
                                   struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* Appends the item's contents. SL_INTERNAL: its file was damaged (cache_run_reader); SL_BUSY, SL_CANCELLED. */
enum sl_code kinds_append_text(struct sl_buf *to, struct cache_item *item, struct sl_error *error) SL_SUSPENDS;

/* What a script says of itself, of an item of kinds_get_source_file; the text lives as long as the item. */
struct script_facts {
    bool has_map, has_debug_id;
    bool embeds_map;   /* the comment is a data URL: the script holds its map */
    struct sl_str map; /* reference to its source map, as sl_js_map_comment; data NULL when it embeds it */
    struct sl_debug_id debug_id;
    uint8_t sha256[32]; /* of the contents */
};
/* Looks once; then the item knows. SL_CANCELLED, SL_BUSY, SL_INTERNAL. */
enum sl_code kinds_script_facts(struct cache_item *item, struct script_facts *facts,
                                struct sl_error *error) SL_SUSPENDS;

struct sourcemap_request {
    struct sl_str scope;
    const struct source_request *script; /* NULL: it is empty */
    const struct source_request *map;    /* NULL: `embedded`, a data URL, holds it */
    struct sl_str embedded;              /* data NULL: the data URL in the script's comment */
    struct sl_str script_id, map_id;     /* what tells them apart from others: hash or location */
};

/* The table of a script and its map, `loaded` is a struct sl_smcache. SL_MALFORMED: the map cannot be read; SL_UNSUPPORTED: it
 * takes too much. */
enum sl_code kinds_get_sourcemap(const struct sourcemap_request *request, struct sl_arena *arena,
                                 struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* What came with a request, as items that no cache holds: a text; the table of a script (NULL: there is none) and its map, or
 * a data URL that holds it (`map` NULL), that of the script when `embedded` has none. Otherwise as the two above. */
enum sl_code kinds_own_text(struct sl_str text, struct cache_item **item, struct sl_error *error);
enum sl_code kinds_own_sourcemap(struct cache_item *script, struct cache_item *map, struct sl_str embedded,
                                 struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* Opens a bundle of artifacts; kinds_source_release ends it. */
enum sl_code kinds_open_bundle(const struct remote_file *file, struct sl_str scope, struct sl_arena *arena,
                               struct source_object *bundle, struct sl_error *error) SL_SUSPENDS;

/* Finds the bundle's file with this debug id and type, or this URL if `id` is NULL: `*file` is NULL when it has none.
 * SL_INTERNAL: the bundle was damaged (cache_run_reader). */
enum sl_code kinds_bundle_file(const struct source_object *bundle, const struct sl_debug_id *id,
                               enum sl_bundle_type type, struct sl_str url, const struct sl_bundle_file **file);
