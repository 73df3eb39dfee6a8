/* The kinds of cache entries, and the look-ups built on them.
 *
 *     sources ── list.c: what they list, less what an index (source_index.c) does not name
 *        │          └── find.c: `object_meta` of each candidate; the best one's table, or its source text
 *        v
 *     objects ──▶ object_meta                   what it is good for
 *        ├──────▶ symcaches ◀── auxdifs, il2cpp, companions.c   addresses to functions and lines
 *        ├──────▶ ppdb_caches                   the same of .NET
 *        ├──────▶ cficaches                     addresses to the rules for finding callers
 *        ├──────▶ embedded_sources              source texts in DWARF, as a bundle (bundles.c)
 *        └──────▶ proguard                      tables of JVM mappings (jvm.c)
 *     web  ─────▶ sourcefiles                   single source files, of the web or a source
 *     objects ──▶ bundled_files                 the same out of bundles of artifacts
 *        └──────▶ sourcemap_caches              places in scripts to places in their sources
 *     dumps ────▶ diagnostics                   those that could not be answered, for a while
 *     stores ───▶ mozilla_syms                  the table of a module out of Mozilla's symbol stores
 *     uploads ──▶ symbfile_index                symbfiles.h: the store, and what answers look-ups of it
 *     commands ─▶ own_symcaches                 what was converted for a user, of files of his machine
 *
 * An arrow is a computation (make.c): get the entry on the left, run a pure function over its mapping on the pool, write
 * the one on the right. Request and key of an entry are in request.c. */
#pragma once

#include "base/map.h"
#include "cache/cache.h"
#include "js/smcache.h"
#include "jvm/mapper.h"
#include "object/object.h"
#include "origin/origin.h"
#include "ppdb/table.h"
#include "source/bundle.h"
#include "symbfile/symbfile.h"
#include "symcache/symcache.h"
#include "unwind/cfi.h"

extern const struct cache_kind *const kinds_all[];
extern const size_t kinds_all_count;

/* What a file is good for: an object, by its features. PURPOSE_FILE: any object. PURPOSE_FIRST: files of one type that are no
 * objects; the first that can be had, without asking for the rest, and without a report on them. */
enum purpose { PURPOSE_DEBUG, PURPOSE_UNWIND, PURPOSE_SOURCE, PURPOSE_FILE, PURPOSE_FIRST };

struct candidate_use { /* what came of using a file */
    bool set;
    enum sl_code code;
    struct sl_str details;
};

/* The report on one remote file, as responses show it. Strings live in the lookup's arena. */
struct candidate {
    struct sl_str source, location;
    enum sl_code download;          /* SL_OK: `features` count */
    struct sl_str download_details; /* for permission denied: the reason; for the error statuses: the text form */
    struct sl_features features;
    struct candidate_use debug, unwind;
};

struct candidate_list { /* sorted and unique by (source, location) once kinds_candidates_merge has run */
    struct candidate *items;
    size_t count, capacity;
};

/* Adds `from` to `into` by the merge rules (download overwritten, debug/unwind only if set), keeping the order. */
void candidates_merge(struct sl_arena *arena, struct candidate_list *into, const struct candidate_list *from);

struct own_objects;

struct kinds_search {             /* where to look */
    const struct source *sources; /* asked in their order */
    size_t source_count;
    struct sl_str scope;
    struct sl_arena *arena;
    uint64_t list; /* source_list_number of the sources; 0: not known, and nothing is remembered of the search */
    struct own_objects *own; /* asked first, for symbols and unwinding; NULL: there are none */
};

/* Of an ELF file that can be loaded at one address alone: that address. */
struct fixed_place {
    bool is_fixed;
    uint64_t address;
};

/* The address in memory that addresses in the table of the file are relative to, of a module that begins at `image_address`. Tools
 * that edit programs put segments in front of a fixed one, and leave its debug file and its code where they are. */
uint64_t kinds_table_base(const struct fixed_place *place, uint64_t image_address);

struct kinds_found { /* what one look-up of a module came to; everything but `item` lives in the arena of the search */
    enum sl_code code; /* SL_OK: there is an item */
    struct sl_error error;
    struct cache_item *item;            /* reference: what was made of the file that was chosen. NULL unless SL_OK */
    const struct sl_symcache *symcache; /* of `item`, when it is one; likewise */
    const struct sl_ppdb_table *ppdb;
    struct sl_features features; /* of the chosen object; all false when none */
    struct fixed_place place;    /* of the chosen object */
    enum sl_arch arch;           /* of the symcache; SL_ARCH_UNKNOWN when none */
    struct candidate_list candidates;
};

/* What a file is looked for. */
struct kinds_use {
    enum purpose purpose;            /* which files are good for it */
    enum file_type type;             /* of PURPOSE_FIRST: what is asked for */
    const struct cache_kind *kind;   /* what is made of the chosen file: asked for with its struct object_request */
    bool variables;                  /* of a symcache: its functions have their variables */
    size_t report;                   /* offsetof in struct candidate: what came of it is told there; 0 = nowhere */
    const struct kinds_steps *steps; /* search.h: further ones; NULL = none */
};

/* Debug files that came with a request, for it alone: nothing of them is kept. */
struct own_object {
    struct sl_str name;
    struct sl_bytes bytes;
    struct sl_debug_id debug_id;
    struct sl_str code_id, raw_code_id;
    struct sl_features features;
    struct fixed_place place;
    struct own_made *made; /* what was made of it, for whoever asks next */
};
struct own_objects { /* zeros but for `arena`, in which it lies, and `room` */
    struct sl_arena *arena;
    uint64_t room; /* bytes that may still be unpacked out of archives */
    struct own_object *items;
    size_t count, capacity;
    struct sl_map by_id; /* to those that an id may mean */
    bool ends;           /* with the arena */
};

/* Adds the objects of a file, or of the files of a ZIP archive, whose bytes stay the caller's; other files are passed over. False when
 * out of memory. Pure: pool. */
bool own_objects_add(struct own_objects *own, struct sl_str name, struct sl_bytes bytes);

/* The best one for the use; NULL: none is of use. */
struct own_object *own_objects_find(const struct own_objects *own, const struct kinds_use *use,
                                    const struct object_id *id);

/* The table of functions and lines: a symcache, of .NET modules the table of their Portable PDB. `variables`: one that also has
 * the variables of functions, if it is a symcache made of DWARF. */
const struct kinds_use *kinds_symbols_of(const struct object_id *id, bool variables);

/* The rules for finding callers: struct sl_cfi, which is empty when the object has none. */
extern const struct kinds_use kinds_unwind;

/* Finds the best file for the use on the sources, and what is made of it. Never fails as a call; SL_CANCELLED in `code` when
 * cancelled. */
void kinds_find(const struct kinds_search *where, const struct kinds_use *use, const struct object_id *id,
                struct kinds_found *found) SL_SUSPENDS;

/* The same of many modules, in the running fiber: those that wait are records. False when cancelled. */
struct kinds_question {
    const struct kinds_use *use;
    const struct object_id *id;
    struct kinds_found *found;
};
bool kinds_find_all(const struct kinds_search *where, const struct kinds_question *questions, size_t count) SL_SUSPENDS;

/* An object with source text, open. */
struct source_object {
    struct cache_item *item;  /* reference: the file */
    struct cache_item *table; /* reference: look-up table of the Portable PDB that it is or holds; NULL of a bundle */
    struct sl_bytes ppdb;     /* that Portable PDB, once it was needed */
    struct sl_str scope;      /* of its entries: origin_scope */
    uint64_t work;            /* bytes that kinds_source_at inflated or copied so far, whatever came of it */
};
void kinds_source_release(struct source_object *object);

/* The look-up for source context: all objects with sources, in the order they are to be asked: bundles first. SL_OK when
 * there is one. */
struct source_lookup {
    enum sl_code code;
    struct source_object *objects;
    size_t count;
    struct candidate_list candidates;
};
void kinds_find_source(const struct kinds_search *where, const struct object_id *id,
                       struct source_lookup *result) SL_SUSPENDS;

struct source_question {
    const struct object_id *id;
    struct source_lookup *result;
};
bool kinds_find_sources(const struct kinds_search *where, const struct source_question *questions,
                        size_t count) SL_SUSPENDS;

/* What the object says of a source path: its text (appended as it is in the object), and the URL of it or where it may be
 * had (appended; nothing when there is none). False when the object does not know the path. Pure: pool; one thread at a
 * time for one object. What is made of the object on the way stays in the arena. */
bool kinds_source_at(struct source_object *object, struct sl_arena *arena, struct sl_str path, struct sl_buf *text,
                     bool *has_text, struct sl_buf *url);

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

/* A file as the sources have it, of one of the types, whatever it is good for: the first that parses. */
struct file_lookup {
    enum sl_code code;
    struct sl_error error;
    struct cache_item *item; /* reference; NULL unless SL_OK */
    char etag[64];           /* strong, quoted */
    bool is_public;          /* of its source */
};
void kinds_find_file(const struct kinds_search *where, const struct object_id *id, const enum file_type *types,
                     size_t type_count, struct file_lookup *result) SL_SUSPENDS;

/* The best object for a purpose, as the sources have it. */
void kinds_find_object(const struct kinds_search *where, const struct object_id *id, enum purpose purpose,
                       struct file_lookup *result) SL_SUSPENDS;

/* The Portable PDB that a file of the kind `objects` is, or that is inside of it if it is a PE file: then it is inflated
 * into the arena, and counts for its budget. SL_NOT_FOUND when it is neither. Pure: pool. */
enum sl_code kinds_portable_pdb(struct sl_bytes file, struct sl_arena *arena, struct sl_bytes *ppdb,
                                struct sl_error *error);

/* What JVM programs are made readable with, by its id: a mapping, or a bundle of sources. */
struct jvm_question {
    struct sl_debug_id id;
    bool is_bundle;
    /* the answer */
    enum sl_code code; /* SL_NOT_FOUND; SL_MALFORMED: it is there, but no mapping */
    struct sl_error error;
    struct cache_item *item;            /* reference; NULL unless SL_OK */
    const struct sl_jvm_mapper *mapper; /* of a mapping */
};

/* All of them at the same time. False when cancelled; what has been found is to be released then too. */
bool kinds_find_jvm(const struct source *sources, size_t source_count, struct sl_str scope,
                    struct jvm_question *questions, size_t count, struct sl_arena *arena) SL_SUSPENDS;
void kinds_release_jvm(struct jvm_question *questions, size_t count);

/* The table of a mapping that came with a request, in no cache: `loaded` is a struct sl_jvm_mapper. SL_MALFORMED: it is no
 * mapping; SL_UNSUPPORTED: it takes too much. */
enum sl_code kinds_own_mapping(struct sl_str text, struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* Appends the source of this URL, byte for byte, out of a bundle that was found; false when it has none. `*work` grows by the
 * bytes that were inflated, whatever came of it. Pure: pool. */
bool kinds_jvm_source(const struct jvm_question *bundle, struct sl_str url, uint64_t *work, struct sl_buf *text);

/* An executable's uploaded symbols. */
struct symbfile_lookup {
    enum sl_code code;           /* SL_OK: at least one of `indexes` is there */
    struct cache_item *items[2]; /* references, by enum symbfile_kind of symbfiles.h; NULL = none */
    const struct sl_symbfile_index *indexes[2];
    struct sl_file_id file_id;
    bool has_base;
    uint64_t base; /* lowest page of the executable, if the upload said so */
    enum sl_arch arch;
    struct sl_features features;
};

/* How the store of uploads is. */
struct kinds_store_state {
    const char *type; /* "filesystem", "s3", "gcs"; NULL: there is none */
    bool shared;      /* by several nodes, as far as the configuration tells */
    bool up;
    const char *last_error; /* NULL: none yet */
    int64_t failed_s;       /* when that was */
};
void kinds_symbfile_store(struct kinds_store_state *state);

/* Whether uploads are asked before the sources. */
bool kinds_prefer_symbfile(bool has_file_id);

/* By the file id if there is one (else NULL), then by code id and debug id; among the uploads of the scope, then among everybody's.
 * `result` owns the items. SL_DOWNLOAD_ERROR: the store cannot be asked. */
void kinds_find_symbfile(struct sl_str scope, const struct sl_file_id *file_id, const struct object_id *id,
                         struct symbfile_lookup *result) SL_SUSPENDS;
void kinds_release_symbfile(struct symbfile_lookup *lookup);

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

/* ---- Mozilla's symbol stores (mozilla_syms.c) ---- */

/* A module by its debug file and debug id. SL_OK: `found` has a symcache. SL_DOWNLOAD_ERROR: some store could not be asked, and
 * those that could do not have it, which is not remembered. */
struct mozilla_work {    /* what it took to have a module */
    bool computed;       /* else the cache knew */
    bool is_hit;         /* and had it */
    bool parsed, is_bad; /* a file was converted, but is of no use */
    unsigned downloads, failed;
    uint64_t size; /* bytes, of the downloads or from the cache */
    double lookup_s, download_s, failed_s, parse_s, save_s;
    uint64_t begun_ns; /* when the stores were first asked, as nobody had it */
};
struct mozilla_question {
    const struct object_id *id;
    struct kinds_found *found;
    struct mozilla_work *work; /* NULL: nobody wants to know */
};
/* Asks the stores of the configuration in their order: the first usable file of that very id counts. False when cancelled. */
bool kinds_find_mozilla(const struct config *config, const struct mozilla_question *questions, size_t count,
                        struct sl_arena *arena) SL_SUSPENDS;

/* The error's message when a store had a file in the module's place, but of another id. */
extern const char kinds_another_id[];

/* Whether all stores of the configuration answer: SL_OK, SL_DOWNLOAD_ERROR, SL_TIMEOUT; SL_NOT_FOUND: a bucket is not there. Asks
 * those of which nothing is known that is newer than a few seconds, which takes three seconds at most. */
enum sl_code kinds_mozilla_reachable(const struct config *config) SL_SUSPENDS;

/* What stores have of the module is another now: what is remembered of it is forgotten, misses included. */
enum sl_code kinds_forget_mozilla(struct sl_str debug_file, struct sl_str debug_id, struct sl_error *error) SL_SUSPENDS;

/* Keeps a minidump that could not be answered, so that somebody may look at it: on this node alone, once whatever is its name.
 * Also in a fiber that is cancelled. */
void kinds_keep_dump(struct sl_bytes dump) SL_SUSPENDS;

/* A fiber that keeps the store of uploads clean until it is cancelled; `unused` is NULL. */
void kinds_sweep_symbfiles(void *unused) SL_SUSPENDS;

/* What has changed at a source: one file; the files of a module, by its debug file and id; or, with neither, all of it. */
struct invalidation {
    struct sl_str source, location, debug_file, debug_id; /* empty = not given */
};
/* Whether the parts go together: a source, and at most one way to say what of it. */
bool invalidation_sound(const struct invalidation *what);
/* cache_invalidate for all of it; answers of sources that are kept in memory are forgotten too. SL_NOT_FOUND when the
 * files of a module are to be found and the source is not configured; SL_MALFORMED for a debug id that is none. */
enum sl_code kinds_invalidate(const struct invalidation *what, struct sl_error *error) SL_SUSPENDS;

/* Hosts that downloads leave alone, because they kept failing, are asked again: by this process, by others of the cache directory and,
 * through Redis, by other machines. As cache_invalidate. */
enum sl_code kinds_release_hosts(struct sl_error *error) SL_SUSPENDS;

/* Whether that was done since then (seconds since the epoch), by whomever. */
bool kinds_hosts_released(int64_t since_s) SL_SUSPENDS;

/* At start, and when another configuration is to count from now on. The last one must outlive everything. */
void kinds_init(const struct config *config);
void kinds_cut(void);   /* whatever is made of files now is given up: the process ends */
void kinds_close(void); /* before cache_close */
