/* The search for a module's best file among everything the sources list, and for the cache entry made from it.
 *
 *     search_cache.c: the cached result of an equal search, while the cache entries that it used are unchanged
 *     find.c: the sources' files (cache_kinds/listing.h) ──▶ `object_meta` of each candidate ──▶ the best one, by its features
 *     use.c: the entry made from the best: a symcache, CFI, Portable PDB; if that fails, from the next
 *     source.c: source texts; auxiliary.c: symbol maps and JVM mappings; mozilla.c: modules of Mozilla's stores;
 *     supplied_objects.c: files of the request
 *
 * A search is a record that a few fibers advance, without a fiber of its own: a request has thousands (doc/architecture.md). */
#pragma once

#include "base/map.h"
#include "config/config.h"
#include "cache_kinds/objects.h"
#include "cache_kinds/sources.h"

/* What a file is needed for. PURPOSE_DEBUG, _UNWIND, _SOURCE: an object with the features for it. PURPOSE_ANY_OBJECT: any object.
 * PURPOSE_DEBUG_FILE, _CODE_FILE: an ELF or WASM file to be served as it is, which stores debug sections (else a symbol table), or code.
 * PURPOSE_ANY_FILE: any file of the given type that is not an object; the first available one, without candidates in the result. */
enum purpose {
    PURPOSE_DEBUG,
    PURPOSE_UNWIND,
    PURPOSE_SOURCE,
    PURPOSE_ANY_OBJECT,
    PURPOSE_DEBUG_FILE,
    PURPOSE_CODE_FILE,
    PURPOSE_ANY_FILE
};

struct candidate_use { /* result of using a file */
    bool set;
    enum sl_code code;
    struct sl_str details;
};

/* The report on one remote file, as responses show it. Texts live in the search's arena. */
struct candidate {
    struct sl_str source, location;
    enum sl_code download;          /* SL_OK: `features` is valid */
    struct sl_str download_details; /* permission denied: the reason; other errors: their text */
    struct sl_features features;
    struct candidate_use debug, unwind;
};

struct candidate_list { /* sorted and unique by (source, location) after candidates_merge */
    struct candidate *items;
    size_t count, capacity;
};

/* Merges `from` into `into`: sorts all candidates, and of two with the same source and location keeps one, with the newer results
 * (download, and debug or unwind if they are set). Without memory `into` stays as it is. */
void candidates_merge(struct sl_arena *arena, struct candidate_list *into, const struct candidate_list *from);

struct supplied_objects;

struct search_scope {             /* where to look */
    const struct source *sources; /* asked in their order */
    size_t source_count;
    struct sl_str scope;
    struct sl_arena *arena;
    uint64_t list;                    /* source_list_number of the sources; 0: none, and the search is not cached */
    struct supplied_objects *own;     /* asked first, for symbols and unwinding; NULL: none */
    struct sl_str forwarded_for, via; /* see struct remote_file */
    bool skips_upstreams;             /* leave out origin_is_upstream sources */
    uint64_t max_size; /* for PURPOSE_DEBUG_FILE, _CODE_FILE: do not fetch files known to be larger; 0 = no limit */
};

/* Returns the address to which addresses in the file's table are relative, for a module that was reported at
 * `image_address`. The two differ if a tool put segments before those of a program with a fixed address: its code and its
 * debug file keep their addresses. */
uint64_t symbol_table_base(const struct fixed_load_address *fixed_load, uint64_t image_address);

struct search_result { /* result of the look-up of a module; everything but `item` lives in the arena of the search */
    enum sl_code code; /* SL_OK: `item` is set */
    struct sl_error error;
    struct cache_item *item;            /* a reference: the entry made from the chosen file. NULL unless SL_OK */
    const struct sl_symcache *symcache; /* of `item`, if it is of this type; likewise `ppdb` */
    const struct sl_ppdb_table *ppdb;
    struct sl_features features;          /* of the chosen object; all false if none */
    struct fixed_load_address fixed_load; /* of the chosen object */
    enum sl_arch arch;                    /* of the symcache; SL_ARCH_UNKNOWN if none */
    struct candidate_list candidates;
    struct sl_str source, path; /* of the chosen file: id of the source, and path relative to it; empty if none */
    bool is_public;             /* the chosen file's source is public */
    bool is_best;               /* no other file can be better for the purpose */
    bool
        is_too_large; /* a file that was left out for search_scope.max_size is better than the chosen one, or there is no other */
    /* A source could not say whether it has a better file, or one at all: it failed, or memory was short. A later search may have
     * another result. */
    bool undecided;
};

/* Describes what a file is searched for. */
struct search_target {
    enum purpose purpose;             /* selects the files */
    enum file_type type;              /* for PURPOSE_ANY_FILE: the file type */
    const struct cache_kind *kind;    /* cache kind made from the chosen file; its context is a struct object_request */
    bool variables, columns;          /* for a symcache: with the variables of functions, with columns of lines */
    bool is_narrow;                   /* for PURPOSE_DEBUG_FILE and _CODE_FILE: only where such files usually are */
    size_t report;                    /* offsetof in struct candidate of the field that reports the result; 0 = none */
    const struct search_hooks *steps; /* impl.h: additional steps; NULL = none */
};

/* Debug files sent with a request and used for it alone: they are not cached. */
struct supplied_object {
    struct sl_str name;
    struct sl_bytes bytes;
    struct sl_debug_id debug_id;
    struct sl_str code_id, raw_code_id;
    struct sl_features features;
    struct fixed_load_address fixed_load;
    struct supplied_entry *made; /* entries made from it, for later look-ups */
    size_t next_named;           /* another object of the same name: index plus 1; 0: there is none */
};
struct supplied_objects { /* zero, except `arena`, which contains it, and `bytes_left` */
    struct sl_arena *arena;
    uint64_t bytes_left; /* bytes that may still be unpacked from archives */
    struct supplied_object *items;
    size_t count, capacity;
    struct sl_map by_id;   /* from an id to the items that it may mean */
    struct sl_map by_name; /* from a name (sl_path_module_name) to the last item with it: index plus 1 */
    bool ends;             /* is freed with the arena */
};

/* Adds the objects in a file, or in the files of a ZIP archive, whose bytes stay the caller's; ignores other files. SL_BUSY,
 * SL_CANCELLED, SL_INTERNAL. Also outside of fibers. */
enum sl_code supplied_objects_add(struct supplied_objects *objects, struct sl_str name, struct sl_bytes bytes,
                                  struct sl_error *error) SL_SUSPENDS;

/* Returns the best of the objects that have the id and serve the use; NULL if there is none. */
struct supplied_object *supplied_objects_find(const struct supplied_objects *objects, const struct search_target *use,
                                              const struct object_id *id);

/* Sets the ids of the objects with the name of the module at `path`, in the arena of `objects`: of those whose path has the most of its
 * last directories. False if there is none, or if they have different ids; with `newest` the ids of the last one are set then. `*parts`
 * is how many last components of their path are those of `path`, also if it is false; 0: no object has the name. */
bool supplied_objects_find_named(const struct supplied_objects *objects, struct sl_str path, bool newest,
                                 struct object_id *id, size_t *parts);

/* Returns the target for the table of functions and lines: a symcache or, for .NET modules, the table of their Portable PDB.
 * `variables`: include the variables of functions, if it is a symcache made from DWARF. */
const struct search_target *search_symbols_target(const struct object_id *id, bool variables);

/* Returns the target for a table that has columns, if the debug information has them. Few need them, and they make tables larger. */
const struct search_target *search_columns_target(const struct object_id *id);

/* The target for unwind rules: struct sl_cfi, which is empty if the object has none. */
extern const struct search_target search_unwind_target;

/* Targets for the original file: PURPOSE_DEBUG_FILE and _CODE_FILE. The id's type is OBJECT_ELF or _WASM. An unstripped program may be
 * stored as either; the narrow targets leave out the other place, and with it a download. */
extern const struct search_target search_debug_file_target, search_code_file_target;
extern const struct search_target search_narrow_debug_file_target, search_narrow_code_file_target;

/* Finds the best file for the use on the sources, and the entry made from it. The result is in `found`; SL_CANCELLED in `code`
 * when cancelled. */
void search_find(const struct search_scope *where, const struct search_target *use, const struct object_id *id,
                 struct search_result *found) SL_SUSPENDS;

/* True if an error says nothing about the file: a later look-up may find it. */
bool search_is_passing(enum sl_code code);

/* Answers from the cache of finished searches; false if it has no valid answer. Never suspends. */
bool search_peek(const struct search_scope *where, const struct search_target *use, const struct object_id *id,
                 struct search_result *found);

/* Does the same as search_find for many modules in the running fiber: waiting searches are records. False when cancelled. */
struct search_query {
    const struct search_target *use;
    const struct object_id *id;
    struct search_result *found;
};
bool search_find_all(const struct search_scope *where, const struct search_query *questions, size_t count) SL_SUSPENDS;

/* Result of a search for source context: all objects with sources, in the order in which to ask them: bundles first. SL_OK if
 * there is one. */
struct source_lookup {
    enum sl_code code;
    struct source_object *objects;
    size_t count;
    struct candidate_list candidates;
    bool undecided; /* as in struct search_result; false if the answer came from the cache of finished searches */
};
void search_find_source(const struct search_scope *where, const struct object_id *id,
                        struct source_lookup *result) SL_SUSPENDS;

struct source_query {
    const struct object_id *id;
    struct source_lookup *result;
};
bool search_find_sources(const struct search_scope *where, const struct source_query *questions,
                         size_t count) SL_SUSPENDS;

/* Result of a search for a file of the given types, whatever features it has: the first file that can be parsed. */
struct file_lookup {
    enum sl_code code;
    struct sl_error error;
    struct cache_item *item; /* a reference; NULL unless SL_OK */
    char etag[64];           /* strong, quoted */
    bool is_public;          /* its source is public */
};
void search_find_file(const struct search_scope *where, const struct object_id *id, const enum file_type *types,
                      size_t type_count, struct file_lookup *result) SL_SUSPENDS;

/* Finds the best object for a purpose and returns the original file. */
void search_find_object(const struct search_scope *where, const struct object_id *id, enum purpose purpose,
                        struct file_lookup *result) SL_SUSPENDS;

/* A file for JVM stack traces, by its id: a mapping, or a bundle of sources. */
struct jvm_query {
    struct sl_debug_id id;
    bool is_bundle;
    /* the answer */
    enum sl_code code; /* SL_NOT_FOUND; SL_MALFORMED: it exists, but is not a mapping */
    struct sl_error error;
    struct cache_item *item;            /* a reference; NULL unless SL_OK */
    const struct sl_jvm_mapper *mapper; /* if it is a mapping */
};

/* Finds all of them concurrently. False when cancelled; items that were found must be released then, too. */
bool search_find_jvm(const struct source *sources, size_t source_count, struct sl_str scope,
                     struct jvm_query *questions, size_t count, struct sl_arena *arena) SL_SUSPENDS;
void search_release_jvm(struct jvm_query *questions, size_t count);

/* Appends the source with this URL, byte for byte, from a bundle; false if it has none. Adds the inflated bytes to `*work`,
 * also on failure. Pure: pool. */
bool search_append_jvm_source(const struct jvm_query *bundle, struct sl_str url, uint64_t *work, struct sl_buf *text);

/* ---- Mozilla's symbol stores (mozilla.c) ---- */

/* A module by its debug file and debug id. SL_OK: `found` has a symcache. SL_DOWNLOAD_ERROR: some store was not reachable, and
 * the others do not have it; this is not cached. */
struct mozilla_stats {   /* statistics of a look-up */
    bool computed;       /* false: answered by the cache */
    bool is_hit;         /* the cache had the module */
    bool parsed, is_bad; /* a file was converted; it was unusable */
    unsigned downloads, failed;
    uint64_t size; /* bytes, downloaded or from the cache */
    double lookup_s, download_s, failed_s, parse_s, save_s;
    uint64_t begun_ns; /* when the stores were first asked; set if it was not cached */
};
struct mozilla_query {
    const struct object_id *id;
    struct search_result *found;
    struct mozilla_stats *work; /* NULL: not wanted */
};
/* Asks the configured stores in order: the first usable file with exactly this id counts. False when cancelled. */
bool search_find_mozilla(const struct config *config, const struct mozilla_query *questions, size_t count,
                         struct sl_arena *arena) SL_SUSPENDS;

/* Message of the error for a file at the module's location that has another id. */
extern const char mozilla_wrong_id_message[];

/* Checks if all configured stores answer: SL_OK, SL_DOWNLOAD_ERROR, SL_TIMEOUT; SL_NOT_FOUND: a bucket does not exist. Asks
 * those whose state is older than a few seconds; takes at most three seconds. */
enum sl_code mozilla_check_stores(const struct config *config) SL_SUSPENDS;

extern const struct cache_kind kind_mozilla_syms; /* loaded: struct sl_symcache */

/* search_cache_clear clears the cache of searches (search_cache.c), for a new configuration; mozilla_health_clear clears the state
 * of Mozilla's stores, at the end of the process. */
void search_cache_clear(void);
void mozilla_health_clear(void);
