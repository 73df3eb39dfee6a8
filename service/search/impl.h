/* The search for the best file of a module, for many modules at once in one fiber: a waiting search is a record.
 *
 *     find.c       schedules searches; lists the candidates of a module, gets their features, chooses the best
 *     use.c        makes the cache entry that the chosen file is needed for, with the other files that go into it
 *     source.c     or opens its source text, or returns the file itself
 *     auxiliary.c  files that are not objects: the first that is available
 *
 * A search goes from step to step. A step may post look-ups (`waiting` counts them) or have work done by another fiber; the
 * next step follows when all of that has finished. Private to this folder. */
#pragma once

#include "conversion/conversion.h"
#include "cache_kinds/listing.h"
#include "search/search.h"

struct wanted_types { /* requested file types */
    const enum file_type *types;
    size_t count;
};

/* How good a candidate is for the purpose of a search: lower is better (candidate_file_grade). */
enum { GRADE_BEST = 0, GRADE_SYMBOLS = 1, GRADE_ERROR = 3, GRADE_NONE = 4 };

struct candidate_file { /* one candidate file */
    struct object_request request;
    struct cache_key key;
    enum sl_code code;
    struct sl_error error;
    struct sl_features features;
    struct sl_stored_parts stored;
    bool has_stored; /* `stored` is known */
    struct fixed_load_address fixed_load;
    bool skipped;      /* an unusable pointer, or too large */
    bool is_too_large; /* for search_scope.max_size */
    bool renewed;      /* not found; looked up again if that was long ago */
    struct candidate *candidate;
    struct cache_lookup look;
    struct search *search;
};

struct search {
    const struct source *sources;
    size_t source_count;
    uint64_t list; /* like search_scope.list */
    struct sl_str forwarded_for, via;
    bool skips_upstreams;
    uint64_t max_size; /* as in search_scope */
    const struct object_id *id;
    struct sl_str scope;
    enum purpose purpose;
    const struct wanted_types *wanted; /* NULL: determined by the module's type and the purpose */
    struct sl_arena *arena;
    void (*then)(struct search *search); /* next step after the choice; NULL = none */
    void *result;                        /* for `then` */
    const struct search_target *use;     /* for use.c */
    bool opens;                          /* sources are to be opened */
    bool helped;                         /* a fiber has worked for it */
    /* result */
    struct candidate_file *chosen; /* NULL if there is none */
    struct candidate_file *files;
    size_t count, capacity;
    struct listing *listings;         /* one per source */
    struct candidate_list candidates; /* capacity reserved before the files point into it */
    struct sl_error failure;          /* code SL_OK = none */
    /* for `then` */
    struct candidate_file *others; /* candidates of other types, not in `candidates` */
    size_t other_count;
    struct object_request *map, *lines; /* further inputs of the symcache; NULL = none */
    struct cache_lookup table;
    /* for search_run */
    void (*next)(struct search *search);
    void (*helper)(struct search *search);
    size_t waiting;
    struct search_batch *search_batch;
    struct sl_link ready;
};

struct search search_make(const struct search_scope *where, const struct object_id *id, enum purpose purpose);
/* Runs each search from its `next` to its end. False when cancelled: then searches whose `next` is not NULL have not ended. */
bool search_run(struct search *searches, size_t count) SL_SUSPENDS;
void search_lookup_done(struct search *search); /* one of its look-ups has been answered */
/* Runs `work` in a fiber (in the running one if no other is available); the next step waits for it. */
void search_run_in_fiber(struct search *search, void (*work)(struct search *search)) SL_SUSPENDS;

/* Lists, fetches, chooses and uses; searches with a `next` begin there. False when cancelled. */
bool search_run_all(struct search *searches, size_t count) SL_SUSPENDS;
/* Returns the chosen file; NULL with `failure` set, or without if there is no file at all. */
struct candidate_file *search_choose(struct search *search) SL_SUSPENDS;

/* ---- use.c ---- */
struct search_hooks { /* steps of a use; each may be NULL */
    /* Calls search_lookup with a key made from more than the chosen file. */
    void (*ask)(struct search *search);
    /* Called if no file is usable, as the result says already: may try alternatives and change search and result. */
    void (*otherwise)(struct search *search);
    /* Called when the entry is available, to add to the result. */
    void (*had)(struct search_result *found, struct candidate_use *report);
};

/* Looks the use's entry up, then ends the search. */
void search_lookup(struct search *search, const struct cache_key *key, const void *context);
/* Ends the search as if the look-up of search_lookup had failed with SL_CANCELLED or SL_BUSY. */
void search_lookup_failed(struct search *search, enum sl_code code);
/* Reports the result of `found` in the candidate's field of the use. */
void search_report(struct search *search, struct candidate *candidate, struct search_result *found,
                   const struct search_target *use);

/* Searches for a PE file that contains a Portable PDB. NULL if the configuration does not want that, or there is none. */
struct candidate_file *search_embedded_ppdb(const struct search *first, struct search *search) SL_SUSPENDS;

/* ---- search_cache.c: cache of finished searches. Loop thread ----
 *
 * Programs crash with the same modules again and again. A search that was answered by memory alone is cached with handles of
 * all the cache entries that it used: while these are in memory and unchanged, an equal search has the same result. */
struct search_cache_value {
    enum sl_code code;
    const struct sl_error *error; /* NULL if there is none */
    struct sl_features features;
    struct fixed_load_address fixed_load;
    struct candidate_list candidates;
    struct sl_str source, path; /* as in struct search_result, like `is_public` */
    bool is_public, is_best;
};

/* Returns the cached result of an equal search; `*item` (if not NULL) gets a reference to the table. NULL if there is none. The
 * result lives as long as the arena of the search. `use`: NULL for source texts. */
const struct search_cache_value *search_cache_get(const struct search_scope *where, const struct search_target *use,
                                                  const struct object_id *id, struct cache_item **item);

/* Caches a copy of the search's result, if all of it was answered by memory. */
void search_cache_put(const struct search *search, const struct search_target *use,
                      const struct search_cache_value *outcome);

/* Sets `failure` to SL_CANCELLED or SL_BUSY; returns false. */
bool search_fail(struct search *search, enum sl_code code);
/* struct search_result.undecided, for a search that has chosen and has not failed. */
bool search_is_undecided(const struct search *search);
/* struct search_result.is_too_large, likewise. */
bool search_is_too_large(const struct search *search);
unsigned candidate_file_grade(const struct candidate_file *file, enum purpose purpose);
struct sl_str search_error_text(struct sl_arena *arena, const struct sl_error *error);

/* ---- auxiliary.c: files that are not objects ---- */

/* Inputs of a look-up for a module. */
struct auxiliary_search {
    const struct source *sources;
    size_t source_count;
    struct sl_str scope; /* of the request */
    const struct object_id *id;
    struct sl_arena *arena;
    struct sl_error *failure; /* set for the first file that was listed but not available; NULL = not wanted */
};

/* Finds the first available file of the type for `id`, in the order of the sources: `*found` is its request and `*item` a
 * reference to it. SL_NOT_FOUND; SL_CANCELLED, SL_BUSY. */
enum sl_code auxiliary_find(const struct auxiliary_search *search, const struct object_id *id, enum file_type type,
                            const struct cache_kind *kind, struct object_request **found,
                            struct cache_item **item) SL_SUSPENDS;

/* Like auxiliary_find, for the search's module. `*map` and `*lines` become inputs of the symcache; NULL = none. */
enum sl_code bcsymbolmap_find(const struct auxiliary_search *search, struct object_request **map) SL_SUSPENDS;
enum sl_code il2cpp_find(const struct auxiliary_search *search, struct object_request **lines) SL_SUSPENDS;

/* ---- supplied_objects.c ---- */

/* Answers from a file of where->own; false: none is usable. */
bool supplied_objects_answer(const struct search_scope *where, const struct search_query *question) SL_SUSPENDS;
