/* Searches for a module's best file among all files that the sources list, and for the cache entry made from that file.
 *
 *     search_cache.c: the cached result of an equal search, while the cache entries that it used are unchanged
 *     find.c: the sources' files (cache_kinds/listing.h) ──▶ `object_meta` of each candidate ──▶ the best one, by its features
 *     use.c: the cache entry made from the best file: a symcache, CFI or the table of a Portable PDB
 *     source.c: source texts; auxiliary.c: symbol maps and JVM mappings; mozilla.c: modules of Mozilla's stores;
 *     supplied_objects.c: debug files that came with the request
 *
 * A request may have thousands of searches. So a search has no fiber of its own: one fiber runs many of them in turn, each one until it
 * has to wait (doc/architecture.md). */
#pragma once

#include "base/map.h"
#include "config/config.h"
#include "cache_kinds/objects.h"
#include "cache_kinds/sources.h"

/* What a file is needed for. PURPOSE_DEBUG, _UNWIND, _SOURCE: an object with the features for it. PURPOSE_ANY_OBJECT: any object.
 * PURPOSE_DEBUG_FILE: an ELF or WASM file to be served as it is, with debug sections or, second best, only a symbol table.
 * PURPOSE_CODE_FILE: such a file with code.
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

struct candidate_use { /* result of using a file for debugging or unwinding */
    bool set;          /* false: it was not used for that */
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

/* Merges `from` into `into` and sorts it. Of two candidates with the same source and location one is kept, with the results in `from`; its
 * `debug` and `unwind` are those in `into` where `from` has none. Without memory `into` stays as it is. */
void candidates_merge(struct sl_arena *arena, struct candidate_list *into, const struct candidate_list *from);

struct supplied_objects;

struct search_scope {             /* where to look */
    const struct source *sources; /* asked in their order */
    size_t source_count;
    struct sl_str scope;
    struct sl_arena *arena;
    uint64_t list; /* source_list_number() of the sources; 0: it has none, and the search is not cached */
    struct supplied_objects *own;     /* files of the request, tried first for symbols and unwinding; NULL: none */
    struct sl_str forwarded_for, via; /* see struct remote_file */
    bool skips_upstreams;             /* leave out the sources for which origin_is_upstream() is true */
    uint64_t max_size; /* for PURPOSE_DEBUG_FILE, _CODE_FILE: do not fetch files known to be larger; 0 = no limit */
};

/* Returns the address in the process to which the addresses of the file's symbol table are relative. Usually that is `image_address`,
 * where the module was reported. A program that can only be loaded at a fixed address may be reported at segments that a tool has put in
 * front of it, while its code stays at the fixed address: then the fixed address is returned. */
uint64_t symbol_table_base(const struct fixed_load_address *fixed_load, uint64_t image_address);

struct search_result { /* result of the look-up of a module; everything but `item` lives in the arena of the search */
    enum sl_code code; /* SL_OK: `item` is set */
    struct sl_error error;
    struct cache_item *item; /* a reference: the entry made from the chosen file. NULL unless SL_OK */
    /* The contents of `item`, by its type. At most one of the two is not NULL. */
    const struct sl_symcache *symcache;
    const struct sl_ppdb_table *ppdb;
    struct sl_features features;          /* of the chosen object; all false if none */
    struct fixed_load_address fixed_load; /* of the chosen object */
    enum sl_arch arch;                    /* of the symcache; SL_ARCH_UNKNOWN if none */
    struct candidate_list candidates;
    struct sl_str source, path; /* of the chosen file: id of the source, and path relative to it; empty if none */
    bool is_public;             /* the chosen file's source is public */
    bool is_best;               /* no other file can be better for the purpose */
    /* A file was left out as it is larger than search_scope.max_size, and no other file is of the best grade for the purpose. */
    bool is_too_large;
    /* A source failed or memory was short: there may be a better file than the chosen one, or a file although none was chosen. A later
     * search may find it. */
    bool undecided;
};

/* Describes what a file is searched for. */
struct search_target {
    enum purpose purpose;          /* selects the files */
    enum file_type type;           /* for PURPOSE_ANY_FILE: the file type */
    const struct cache_kind *kind; /* cache kind made from the chosen file; its context is a struct object_request */
    bool variables, columns;       /* for a symcache: with the variables of functions, with columns of lines */
    bool is_narrow; /* for PURPOSE_DEBUG_FILE and _CODE_FILE: list only files of the type named for that */
    size_t report;  /* offsetof(struct candidate, debug or unwind), where the result is reported; 0 = nowhere */
    const struct search_hooks *steps; /* impl.h: additional steps; NULL = none */
};

/* An object file in the debug files that were sent with a request. They are used for this request alone and not cached. */
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
struct supplied_objects { /* all zero at first, except `arena`, in which this struct lies, and `bytes_left` */
    struct sl_arena *arena;
    uint64_t bytes_left; /* bytes that may still be unpacked from archives */
    struct supplied_object *items;
    size_t count, capacity;
    struct sl_map by_id;   /* from an id to the items that have it */
    struct sl_map by_name; /* from a name (sl_path_module_name) to the last item with it: index plus 1 */
    bool ends; /* freeing the arena also frees the maps and entries: sl_arena_on_free() was called for that */
};

/* Adds the objects in a debug file, which may be compressed or a ZIP archive. `bytes` must live as long as the arena of `objects`. A file
 * that cannot be used is ignored: SL_OK. SL_BUSY, SL_CANCELLED, SL_INTERNAL. May also be called outside of fibers. */
enum sl_code supplied_objects_add(struct supplied_objects *objects, struct sl_str name, struct sl_bytes bytes,
                                  struct sl_error *error) SL_SUSPENDS;

/* Returns the best of the objects that have the id, and debug information, symbols or unwind information as the use needs it; NULL if there
 * is none. A module without ids is found by its file name. */
struct supplied_object *supplied_objects_find(const struct supplied_objects *objects, const struct search_target *use,
                                              const struct object_id *id);

/* Sets `*id` to the ids of the module at `path`, by the objects with its file name. Only those objects count whose paths have the most
 * components in common with `path`, counted from the end; `*parts` is that number (0: no object has the name), set in any case. If their
 * ids differ, `newest` takes those of the object that was sent last; without it the result is false, as if there were none. */
bool supplied_objects_find_named(const struct supplied_objects *objects, struct sl_str path, bool newest,
                                 struct object_id *id, size_t *parts);

/* Returns the target for the table of functions and lines: a symcache or, for .NET modules, the table of their Portable PDB.
 * `variables`: include the variables of functions, if it is a symcache made from DWARF. */
const struct search_target *search_symbols_target(const struct object_id *id, bool variables);

/* Returns the target for the table of functions and lines with the columns of lines, if the debug information has them. Use it only where
 * columns are wanted: they make tables larger. */
const struct search_target *search_columns_target(const struct object_id *id);

/* The target for unwind rules: the entry is a struct sl_cfi, which is empty if the object has no rules. */
extern const struct search_target search_unwind_target;

/* Targets for the original file, to be served: PURPOSE_DEBUG_FILE and _CODE_FILE. The id's type must be OBJECT_ELF or _WASM. An unstripped
 * program may be stored as a code file and as a debug file, so both are tried; the narrow targets try only the file of the purpose's name,
 * which saves a download. */
extern const struct search_target search_debug_file_target, search_code_file_target;
extern const struct search_target search_narrow_debug_file_target, search_narrow_code_file_target;

/* Finds the best file for the use, among the request's own files and on the sources, and gets the entry made from it. The result is in
 * `found`; found->code is SL_CANCELLED when cancelled. */
void search_find(const struct search_scope *where, const struct search_target *use, const struct object_id *id,
                 struct search_result *found) SL_SUSPENDS;

/* True for errors of a source or of this process, which say nothing about the file: a later look-up may find it. */
bool search_is_passing(enum sl_code code);

/* Answers from the cache of finished searches; false if it has no valid answer. Never suspends. */
bool search_peek(const struct search_scope *where, const struct search_target *use, const struct object_id *id,
                 struct search_result *found);

struct search_query {
    const struct search_target *use;
    const struct object_id *id;
    struct search_result *found;
};
/* Finds the best file, and gets the entry made from it, for many modules in the running fiber (search_find). False when cancelled. */
bool search_find_all(const struct search_scope *where, const struct search_query *questions, size_t count) SL_SUSPENDS;

/* Result of a search for source texts: all files that contain some, in the order in which to look for a text in them: source bundles first.
 * `code` is SL_OK if there is one. */
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
/* Finds the files with source texts of many modules in the running fiber (search_find_source). False when cancelled. */
bool search_find_sources(const struct search_scope *where, const struct source_query *questions,
                         size_t count) SL_SUSPENDS;

/* Result of a search for an original file. */
struct file_lookup {
    enum sl_code code;
    struct sl_error error;
    struct cache_item *item; /* a reference; NULL unless SL_OK */
    char etag[64];           /* strong, quoted */
    bool is_public;          /* its source is public */
};
/* Finds the first file of the given types that can be parsed as an object, whatever features it has, and returns its contents. */
void search_find_file(const struct search_scope *where, const struct object_id *id, const enum file_type *types,
                      size_t type_count, struct file_lookup *result) SL_SUSPENDS;

/* Finds the best object for a purpose and returns the original file. */
void search_find_object(const struct search_scope *where, const struct object_id *id, enum purpose purpose,
                        struct file_lookup *result) SL_SUSPENDS;

/* A query for a file that JVM stack traces need, by its id: a ProGuard mapping or a bundle of sources. */
struct jvm_query {
    struct sl_debug_id id;
    bool is_bundle;
    /* the answer */
    enum sl_code code; /* SL_NOT_FOUND; SL_MALFORMED: it exists, but is not a mapping */
    struct sl_error error;
    struct cache_item *item;            /* a reference; NULL unless SL_OK */
    const struct sl_jvm_mapper *mapper; /* if it is a mapping */
};

/* Finds the files of all queries concurrently and sets their answers. False when cancelled: some may be answered then. Call
 * search_release_jvm() in any case. */
bool search_find_jvm(const struct source *sources, size_t source_count, struct sl_str scope,
                     struct jvm_query *questions, size_t count, struct sl_arena *arena) SL_SUSPENDS;
void search_release_jvm(struct jvm_query *questions, size_t count);

/* Appends the source text with this URL, byte for byte, from the bundle of an answered query; false if the bundle has none. Adds the number
 * of inflated bytes to `*work`, also on failure. Uses no shared state: any thread. */
bool search_append_jvm_source(const struct jvm_query *bundle, struct sl_str url, uint64_t *work, struct sl_buf *text);

/* ---- Mozilla's symbol stores (mozilla.c) ---- */

struct mozilla_stats {          /* statistics of a look-up */
    bool computed;              /* false: answered by the cache */
    bool is_hit;                /* the cache had the module */
    bool parsed, is_bad;        /* a file was converted; it was unusable */
    unsigned downloads, failed; /* number of requests to stores that gave the file, and that did not */
    uint64_t size;              /* bytes, downloaded or from the cache */
    /* durations: of the look-up in the cache, of these requests (gave, did not), of converting, of writing the symcache */
    double lookup_s, download_s, failed_s, parse_s, save_s;
    uint64_t begun_ns; /* when the stores were first asked; set if it was not cached */
};
/* A module by its debug file and debug id. found->code is SL_OK: `found` has a symcache; SL_DOWNLOAD_ERROR: a store was not reachable, and
 * the others do not have the module; such a failure is not cached. */
struct mozilla_query {
    const struct object_id *id;
    struct search_result *found;
    struct mozilla_stats *work; /* NULL: not wanted */
};
/* Finds the modules on the configured stores, concurrently. For each module the stores are asked in order until one has a usable file with
 * exactly this id. False when cancelled. */
bool search_find_mozilla(const struct config *config, const struct mozilla_query *questions, size_t count,
                         struct sl_arena *arena) SL_SUSPENDS;

/* Message of the error for a file whose debug id is not the one in its path on the store. */
extern const char mozilla_wrong_id_message[];

/* Checks whether all configured stores answer: SL_OK; SL_DOWNLOAD_ERROR or SL_TIMEOUT if one does not; SL_NOT_FOUND: a bucket does not
 * exist. Asks the stores whose last answer is older than some seconds; takes at most three seconds. */
enum sl_code mozilla_check_stores(const struct config *config) SL_SUSPENDS;

extern const struct cache_kind kind_mozilla_syms; /* loaded: struct sl_symcache */

/* Clears the cache of finished searches (search_cache.c), as sources or indexes have changed. */
void search_cache_clear(void);
/* Frees what is known about the health of Mozilla's stores, at the end of the process. */
void mozilla_health_clear(void);
