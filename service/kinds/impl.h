/* What the kinds share: one remote file, asked for on behalf of one module, is the context of most of them, and their keys
 * differ only by the kind. Private to this folder. */
#pragma once

#include "kinds/kinds.h"

struct sl_bundle;
struct sl_bundle_file;

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

/* Deep copies; NULL when out of memory. */
const struct source *kinds_copy_source(const struct source *source, struct sl_arena *arena);
const struct remote_file *kinds_copy_file(const struct remote_file *file, struct sl_arena *arena);

/* ---- source_index.c ---- */
/* Drops the files that the source's index does not name, and gives the rest the index's spelling. An index that cannot be
 * had is an empty one. SL_CANCELLED and SL_INTERNAL are the only errors. */
enum sl_code source_index_filter(const struct source *source, struct sl_str scope, struct sl_arena *arena,
                                 struct remote_file *files, size_t *count) SL_SUSPENDS;

/* ---- list.c ---- */
struct listing { /* what one source has for a module */
    const struct source *source;
    struct remote_file *files;
    size_t count;
    enum sl_code code; /* SL_OK, or SL_CANCELLED; a source that fails has nothing */
};
/* Fills the listings of the sources, those that need the network at the same time. SL_OK, SL_CANCELLED, SL_INTERNAL. */
enum sl_code list_sources(const struct source *sources, size_t source_count, struct sl_str scope,
                          const struct object_id *id, const enum file_type *types, size_t type_count,
                          struct sl_arena *arena, struct listing *listings) SL_SUSPENDS;

/* Whether that takes no question to anybody. */
bool lists_at_once(const struct source *sources, size_t source_count);

extern const struct cache_kind kind_source_index;
extern const struct cache_kind kind_objects;     /* loaded: of source_load */
extern const struct cache_kind kind_object_meta; /* loaded: struct object_meta, static texts */
extern const struct cache_kind kind_symcaches; /* loaded: struct sl_symcache; asked for with struct symcache_request */
enum { SYMCACHES_VERSION = 1010 };             /* raised whenever answers change */
extern const struct cache_kind kind_ppdb_caches; /* loaded: struct sl_ppdb_table */
extern const struct cache_kind kind_cficaches;   /* loaded: struct sl_cfi */

struct object_meta {
    struct sl_features features;
    struct sl_features embedded; /* of the Portable PDB inside of a PE file; all false when there is none */
    struct fixed_place place;
};

extern const struct cache_kind kind_mozilla_syms;     /* loaded: struct sl_symcache */
extern const struct cache_kind kind_source_files;     /* asked for with struct source_request; loaded: of script_load */
extern const struct cache_kind kind_bundled_files;    /* the same, with an entry */
extern const struct cache_kind kind_embedded_sources; /* loaded: of source_load */

/* What objects with source text are opened to; NULL for all others. Loading never fails. */
enum sl_code source_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error);
void source_unload(void *loaded);
/* Bytes of memory for bundles that are open; their kinds keep them from one request to the next. */
enum { OPEN_BUNDLES_BYTES = 64 << 20 };

/* Appends the text of a bundle's file, unless that is too large for a source; `*work` grows by the bytes it took. Pool. */
bool kinds_bundle_text(const struct sl_bundle *bundle, const struct sl_bundle_file *file, uint64_t *work,
                       struct sl_buf *text);

extern const struct cache_kind kind_sourcemap_caches; /* loaded: struct sl_smcache */

/* ---- source_files.c ---- */
void *source_request_retain(const void *request, struct sl_arena *arena);

/* ---- scripts.c: what texts are loaded to ---- */
enum sl_code script_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error);
void script_free(void *loaded);

/* Gets what kinds_source_at needs. */
enum sl_code source_open(const struct cache_key *key, const struct object_request *request,
                         struct source_object *object) SL_SUSPENDS;

/* The configuration that counts now; held (config_retain) by whoever suspends while using it. Loop thread. */
const struct config *kinds_config(void);
/* Of any thread, as configured. */
struct sl_object_limits kinds_object_limits(void);
/* `budget` may be NULL. */
enum sl_code kinds_open_object(struct sl_bytes file, struct sl_budget *budget, struct sl_object **object,
                               struct sl_error *error);
uint64_t kinds_max_source_size(void);
uint64_t kinds_max_memory(void); /* of one conversion, bytes; 0 = no limit */

/* checksum.c: whether a Portable PDB has the checksum ("SHA256:<hex>") that was asked for. True when that cannot be told:
 * another kind of file, another algorithm. Pool. */
bool kinds_checksum_matches(struct sl_bytes file, struct sl_str checksum);

/* ---- make.c: what the computations of the kinds share ---- */
/* cache_get of the request's file in its own right. */
enum sl_code kinds_get(const struct cache_kind *kind, const struct object_request *request, struct sl_arena *arena,
                       struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* Runs the job on the pool: its code and error, or why it could not run: SL_CANCELLED, SL_BUSY, SL_INTERNAL. */
typedef enum sl_code kinds_job(void *arg, struct sl_error *error);
enum sl_code kinds_on_pool(kinds_job *job, void *arg, struct sl_error *error) SL_SUSPENDS;

/* Gets the request's object, and has what is made of it, an entry of `kind`, written to `fd`, as a conversion (which is counted,
 * unless `kind` is NULL). */
struct conversion; /* conversion.h */
typedef enum sl_code kinds_maker(struct conversion *conversion, struct sl_bytes object, int fd, struct sl_error *error);
enum sl_code kinds_make(const struct object_request *request, const struct cache_kind *kind, kinds_maker *make, int fd,
                        struct sl_arena *arena, struct sl_error *error) SL_SUSPENDS;

uint64_t kinds_size_of(int fd); /* bytes; 0 when that cannot be told */

/* Writes all of `bytes` to `fd` at offset 0. SL_INTERNAL when the disk does not take it. */
enum sl_code kinds_write(int fd, struct sl_bytes bytes, struct sl_error *error);

/* Opens `bytes` into a struct of `size` bytes that becomes what is loaded; free() ends it. As cache_kind.load. */
typedef enum sl_code kinds_opener(struct sl_bytes bytes, void *into, struct sl_error *error);
enum sl_code kinds_load(struct sl_bytes bytes, size_t size, kinds_opener *open, void **loaded, uint64_t *weight,
                        struct sl_error *error);

/* ---- companions.c: files with the rest of an object's debug information ---- */
struct companion_wants {
    bool package; /* DWARF package of split units */
    uint8_t dwz_id[64];
    size_t dwz_id_size; /* 0 = no supplementary file */
};
struct companion_items { /* references; NULL = none */
    struct cache_item *package, *dwz;
    bool incomplete; /* one could not be had, for another reason than that it is not there or not for us */
};

/* Whether the object refers to such files. Pool. */
bool companions_wanted(struct sl_object *object, struct companion_wants *wants);
/* Gets them from the source of the request's file; what cannot be had is left out. SL_CANCELLED, SL_BUSY. */
enum sl_code companions_get(const struct object_request *request, const struct companion_wants *wants,
                            struct sl_arena *arena, struct companion_items *items, struct sl_error *error) SL_SUSPENDS;
void companions_release(struct companion_items *items);
uint64_t companions_size(const struct companion_items *items); /* bytes */
/* Opens and closes them for a conversion. SL_BUSY, or what its budget says; one that is damaged is left out. Pool. */
enum sl_code companions_open(struct conversion *conversion, const struct companion_items *items,
                             struct sl_companions *companions, struct sl_error *error);
void companions_close(struct sl_companions *companions);

/* ---- own_objects.c ---- */

/* Answers by a file of where->own; false: none is of use. */
bool own_objects_answer(const struct kinds_search *where, const struct kinds_question *question) SL_SUSPENDS;
