/* Objects, the cache entries made from them, and the requests for both. A request names a remote file and the module that it is needed
 * for; the object and the entries made from it alone have the same key, in different kinds. */
#pragma once

#include "cache/cache.h"
#include "conversion/conversion.h"
#include "jvm/mapper.h"
#include "object/object.h"
#include "object/stored.h"
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

/* Makes the key under which the object and the entries made from it alone are cached, each in its own kind. The key's text is in the arena.
 * False when out of memory. */
bool object_request_key(const struct object_request *request, struct sl_arena *arena, struct cache_key *key);

/* For cache_kind.base: names the request's object as the entry from which this one is made. For cache_kind.queue_name: returns the URL or
 * bucket of the file's source; empty for a local directory. `request` is a struct object_request. */
bool object_request_base(const void *request, struct sl_arena *arena, const struct cache_kind **kind,
                         struct cache_key *key, const void **context);
struct sl_str object_request_queue_name(const void *request);

/* Returns a deep copy of a struct object_request: a computation may outlive the request that started it. NULL when out of memory. */
void *object_request_retain(const void *request, struct sl_arena *arena);

/* Inputs of a symcache. */
struct symcache_request {
    struct object_request object;
    const struct object_request *map, *lines; /* NULL = none */
    bool variables, columns;                  /* store these, too */
    struct sl_str scope;                      /* scope of the symcache: private if one of the files is */
};

/* Makes the key under which a symcache is cached: the files and options that it is made with. False when out of memory. */
bool symcache_request_key(const struct symcache_request *request, struct sl_arena *arena, struct cache_key *key);
/* For cache_kind.base, .queue_name and .retain of symcaches. Base and queue are those of the request's object. */
bool symcache_request_base(const void *request, struct sl_arena *arena, const struct cache_kind **kind,
                           struct cache_key *key, const void **context);
struct sl_str symcache_request_queue_name(const void *request);
void *symcache_request_retain(const void *request, struct sl_arena *arena);

/* Return deep copies in the arena; NULL when out of memory. */
const struct source *source_copy(const struct source *source, struct sl_arena *arena);
const struct remote_file *remote_file_copy(const struct remote_file *file, struct sl_arena *arena);

/* ---- the kinds; their context is a struct object_request ---- */

extern const struct cache_kind kind_objects;     /* loaded by source_load (sources.h) */
extern const struct cache_kind kind_object_meta; /* loaded: struct object_meta, whose texts are static */
/* loaded: struct sl_symcache; the context is a struct symcache_request */
extern const struct cache_kind kind_symcaches;
enum { SYMCACHES_VERSION = 1010 };               /* increment it when conversions change */
extern const struct cache_kind kind_ppdb_caches; /* loaded: struct sl_ppdb_table */
extern const struct cache_kind kind_cficaches;   /* loaded: struct sl_cfi */
extern const struct cache_kind kind_proguard;    /* loaded: struct sl_jvm_mapper */

/* Files that contribute to a symcache without being objects: names for Apple bitcode builds, and C# lines for Unity builds
 * (auxiliary.c). They are found by the module's debug id and named in the symcache's key. Most modules have none: clients are not told
 * when they are absent. */
extern const struct cache_kind kind_auxdifs; /* UUID maps and BCSymbolMaps; nothing loaded */
extern const struct cache_kind kind_il2cpp;  /* line mappings; nothing loaded */

/* Whether an ELF file can be loaded at one address only, and that address. */
struct fixed_load_address {
    bool is_fixed;
    uint64_t address;
};

struct object_meta {
    struct sl_features features;
    struct sl_features embedded; /* of the Portable PDB inside a PE file; all false if there is none */
    struct fixed_load_address fixed_load;
    struct sl_stored_parts
        stored; /* valid if `has_stored`; entries of older versions lack this, and are made anew when used */
    bool has_stored;
};

/* Gets the entry of `kind` for the request's file, as cache_get does: `*item` is a reference, NULL on errors. */
enum sl_code cache_get_own_file(const struct cache_kind *kind, const struct object_request *request,
                                struct sl_arena *arena, struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* Finds a section of an object (an item of kind_objects) by its full name; `*store` says whether the file contains it (object/stored.h),
 * and `*bytes` are its bytes in the item's mapping, empty if it does not. */
enum sl_code object_raw_section(struct cache_item *object, struct sl_str name, enum sl_section_store *store,
                                struct sl_bytes *bytes, struct sl_error *error) SL_SUSPENDS;

/* Finds out whether a line table of an object (an item of kind_objects) names the source file with this clean path. `*relative`, which is
 * in the arena, receives the path in the line table if that is relative to the compilation directory; else it is empty. SL_UNSUPPORTED if
 * the search exceeded a limit. */
enum sl_code object_names_source(struct cache_item *object, struct sl_str path, struct sl_arena *arena, bool *named,
                                 struct sl_str *relative, struct sl_error *error) SL_SUSPENDS;

/* Adds the contents of a cache entry as an input of a conversion; does nothing if `item` is NULL. */
void converter_add_item(struct converter_call *call, enum input_role role, const struct cache_item *item);

/* Creates an unlinked file on the disk of the cache, for output of a converter that is not cached; the caller closes it. Works outside of
 * fibers, too. */
enum sl_code create_work_file(int *fd, struct sl_error *error) SL_SUSPENDS;

/* Runs the converter with an in-memory file as its output (`call->out`), and opens that as an item of `kind` that is not in the cache.
 * Returns the conversion's error, or SL_MALFORMED if the output is not a valid file of the kind. */
enum sl_code convert_to_item(const struct cache_kind *kind, const struct conversion_description *about,
                             const struct converter *converter, struct converter_call *call, void *result,
                             struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* Makes the look-up table of a ProGuard or R8 mapping sent with a request; it is not cached. The item's `loaded` is a
 * struct sl_jvm_mapper. SL_MALFORMED if the text is not a mapping, SL_UNSUPPORTED if it exceeds a limit. */
enum sl_code item_from_mapping(struct sl_str text, struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* ---- symcaches of local files, for commands (local_symcaches.c) ---- */

struct local_symcache {
    /* Makes the symcache, on a pool thread; `*bytes` must be valid until the thread has written them to a file. An error becomes that of
     * local_symcache_get. NULL: only look for a cached symcache; SL_CANCELLED if there is none. */
    enum sl_code (*make)(void *arg, struct sl_bytes *bytes, struct sl_error *error);
    void *arg;
};

/* Gets the symcache that is cached under the key, or makes it. The key must identify the contents of the files it is made from and the way
 * it is made. Returns as cache_get does. */
enum sl_code local_symcache_get(struct sl_str key, const struct local_symcache *own, struct cache_item **item,
                                struct sl_error *error) SL_SUSPENDS;

/* Stores a minidump that could not be processed, for later analysis: on this machine only, and once for equal contents. Also works in a
 * cancelled fiber. */
void save_failed_minidump(struct sl_bytes dump) SL_SUSPENDS;
