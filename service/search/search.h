/* Looking for the best file for a module among everything the sources list, and for what is made of it.
 *
 *     remember.c: what an equal search came to, while the entries that it used are still there
 *     find.c: the sources' files (kinds/listing.h) ──▶ `object_meta` of each candidate ──▶ the best one, by its features
 *     use.c: what is made of the best: a symcache, CFI, Portable PDB; when that fails, of the next
 *     source.c: source texts; auxiliary.c: symbol maps and JVM mappings; mozilla.c: modules of Mozilla's stores; own_objects.c: files of the request
 *
 * A search is a record that a few fibers advance, and no fiber of its own: a request has thousands (doc/architecture.md). */
#pragma once

#include "base/map.h"
#include "config/config.h"
#include "kinds/objects.h"
#include "kinds/sources.h"

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

struct candidate_list { /* sorted and unique by (source, location) once candidates_merge has run */
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
    const struct kinds_steps *steps; /* impl.h: further ones; NULL = none */
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

/* Appends the source of this URL, byte for byte, out of a bundle that was found; false when it has none. `*work` grows by the
 * bytes that were inflated, whatever came of it. Pure: pool. */
bool kinds_jvm_source(const struct jvm_question *bundle, struct sl_str url, uint64_t *work, struct sl_buf *text);

/* ---- Mozilla's symbol stores (mozilla.c) ---- */

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

extern const struct cache_kind kind_mozilla_syms; /* loaded: struct sl_symcache */

/* What searches remember (remember.c), when another configuration is to count; what is known of Mozilla's stores, at the end of the
 * process. */
void remember_nothing(void);
void mozilla_health_forget(void);
