/* Objects, what is made of each, and the requests that name them: one remote file, asked for on behalf of one module, is the
 * context of most kinds, and their keys differ only by the kind. */
#pragma once

#include "cache/cache.h"
#include "jvm/mapper.h"
#include "object/object.h"
#include "origin/origin.h"
#include "ppdb/table.h"
#include "symcache/symcache.h"
#include "unwind/cfi.h"

/* ---- requests (request.c) ---- */

struct object_request {
    const struct remote_file *file;
    const struct object_id *id;
    struct sl_str scope; /* of the entries: origin_scope */
};

/* The key of the file's object, features and symcache; the text is in the arena. False when out of memory. */
bool object_request_key(const struct object_request *request, struct sl_arena *arena, struct cache_key *key);

/* cache_kind.base of what is made from the request's object, and cache_kind.place: the store that the file comes from,
 * nothing for a directory. */
bool object_request_base(const void *request, struct sl_arena *arena, const struct cache_kind **kind,
                         struct cache_key *key, const void **context);
struct sl_str object_request_place(const void *request);

/* A deep copy: the computation outlives the request that named the source. */
void *object_request_retain(const void *request, struct sl_arena *arena);

/* What a symcache is made of. */
struct symcache_request {
    struct object_request object;
    const struct object_request *map, *lines; /* NULL = none */
    bool variables;
    struct sl_str scope; /* of its entry: private as soon as one of the files is */
};

/* As those of struct object_request. */
bool symcache_request_key(const struct symcache_request *request, struct sl_arena *arena, struct cache_key *key);
bool symcache_request_base(const void *request, struct sl_arena *arena, const struct cache_kind **kind,
                           struct cache_key *key, const void **context);
struct sl_str symcache_request_place(const void *request);
void *symcache_request_retain(const void *request, struct sl_arena *arena);

/* Deep copies; NULL when out of memory. */
const struct source *kinds_copy_source(const struct source *source, struct sl_arena *arena);
const struct remote_file *kinds_copy_file(const struct remote_file *file, struct sl_arena *arena);

/* ---- the kinds: asked for with a struct object_request ---- */

extern const struct cache_kind kind_objects;     /* loaded: of source_load (sources.h) */
extern const struct cache_kind kind_object_meta; /* loaded: struct object_meta, static texts */
extern const struct cache_kind kind_symcaches; /* loaded: struct sl_symcache; asked for with struct symcache_request */
enum { SYMCACHES_VERSION = 1010 };             /* raised whenever answers change */
extern const struct cache_kind kind_ppdb_caches; /* loaded: struct sl_ppdb_table */
extern const struct cache_kind kind_cficaches;   /* loaded: struct sl_cfi */
extern const struct cache_kind kind_proguard;    /* loaded: struct sl_jvm_mapper */

/* Files that change what a symcache says without being objects: the names of Apple bitcode builds, the
 * C# lines of Unity builds (auxiliary.c). Both are found by the module's debug id, are part of the symcache's key, and their
 * absence is silent. */
extern const struct cache_kind kind_auxdifs; /* UUID maps and BCSymbolMaps; nothing loaded */
extern const struct cache_kind kind_il2cpp;  /* line mappings; nothing loaded */

/* Of an ELF file that can be loaded at one address alone: that address. */
struct fixed_place {
    bool is_fixed;
    uint64_t address;
};

struct object_meta {
    struct sl_features features;
    struct sl_features embedded; /* of the Portable PDB inside of a PE file; all false when there is none */
    struct fixed_place place;
};

/* cache_get of the request's file in its own right. */
enum sl_code kinds_get(const struct cache_kind *kind, const struct object_request *request, struct sl_arena *arena,
                       struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* The Portable PDB that a file of the kind `objects` is, or that is inside of it if it is a PE file: then it is inflated
 * into the arena, and counts for its budget. SL_NOT_FOUND when it is neither. Pure: pool. */
enum sl_code kinds_portable_pdb(struct sl_bytes file, struct sl_arena *arena, struct sl_bytes *ppdb,
                                struct sl_error *error);

/* The table of a mapping that came with a request, in no cache: `loaded` is a struct sl_jvm_mapper. SL_MALFORMED: it is no
 * mapping; SL_UNSUPPORTED: it takes too much. */
enum sl_code kinds_own_mapping(struct sl_str text, struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* ---- symcaches of a command's own (own_symcaches.c) ---- */

struct own_symcache {
    /* Makes it, on the pool: the bytes are written before anything else is done. Its error is the answer, and not kept. NULL: only what
     * is kept is wanted, else SL_CANCELLED. */
    enum sl_code (*make)(void *arg, struct sl_bytes *bytes, struct sl_error *error);
    void *arg;
};

/* What is kept under the key, which says of what files it is and how it was made; or it is made. As cache_get. */
enum sl_code kinds_own_symcache(struct sl_str key, const struct own_symcache *own, struct cache_item **item,
                                struct sl_error *error) SL_SUSPENDS;

/* Keeps a minidump that could not be answered, so that somebody may look at it: on this node alone, once whatever is its name.
 * Also in a fiber that is cancelled. */
void kinds_keep_dump(struct sl_bytes dump) SL_SUSPENDS;
