/* Searches for the best files of many modules at once in one fiber: each search is a struct search, and waits without a fiber.
 *
 *     find.c       schedules searches; lists the candidates of a module, gets their features, chooses the best
 *     use.c        gets the cache entry made from the chosen file, such as a symcache, and the other files that it is made from
 *     source.c     opens the files with source texts, or returns the chosen file itself
 *     auxiliary.c  finds files that are not objects: the first that is available
 *
 * A search is a sequence of steps, functions. A step may start cache look-ups or let another fiber work (`waiting` counts both); the next
 * step runs when all of these have ended. Private to this folder. */
#pragma once

#include "conversion/conversion.h"
#include "cache_kinds/listing.h"
#include "search/search.h"

struct wanted_types { /* requested file types */
    const enum file_type *types;
    size_t count;
};

/* Values of candidate_file_grade(): how good a candidate is for the purpose of a search; lower is better. GRADE_SYMBOLS: it has only a
 * symbol table; GRADE_ERROR: it could not be examined; GRADE_NONE: it has nothing that the purpose needs, or was not looked up. */
enum { GRADE_BEST = 0, GRADE_SYMBOLS = 1, GRADE_ERROR = 3, GRADE_NONE = 4 };

struct candidate_file { /* one candidate file */
    struct object_request request;
    struct cache_key key;
    enum sl_code code; /* of the look-up; SL_OK: `features` to `fixed_load` are set */
    struct sl_error error;
    struct sl_features features;
    struct sl_stored_parts stored;
    bool has_stored; /* `stored` is known */
    struct fixed_load_address fixed_load;
    bool skipped;      /* not looked up: a pointer file that is not needed, or a file that is too large */
    bool is_too_large; /* larger than search_scope.max_size */
    bool renewed;      /* not found, and passed to cache_renew(), which looks it up again if that was long ago */
    struct candidate *candidate; /* its report in search->candidates; NULL: it is left out there */
    struct cache_lookup look;    /* of its features */
    struct search *search;       /* that it belongs to */
};

struct search {
    const struct source *sources;
    size_t source_count;
    /* the following five: as in struct search_scope */
    uint64_t list;
    struct sl_str forwarded_for, via;
    bool skips_upstreams;
    uint64_t max_size;
    const struct object_id *id;
    struct sl_str scope;
    enum purpose purpose;
    const struct wanted_types *wanted; /* NULL: determined by the module's type and the purpose */
    struct sl_arena *arena;
    void (*then)(struct search *search); /* step after the best file was chosen; NULL = the search ends then */
    void *result;                        /* set by `then`: struct search_result or source_lookup */
    const struct search_target *use;     /* what the file is searched for; NULL for source texts */
    bool opens;                          /* there are files with source texts, which a fiber must open */
    bool helped;                         /* search_run_in_fiber() was called for it: the result is not cached */
    /* result */
    struct candidate_file *chosen; /* NULL if there is none */
    struct candidate_file *files;
    size_t count, capacity;
    struct listing *listings;         /* one per source */
    struct candidate_list candidates; /* never grows: `files` have pointers to its items */
    struct sl_error failure;          /* code SL_OK = none */
    /* for `then` */
    struct candidate_file *others; /* UUID maps and il2cpp mappings of the module, which are not in `candidates` */
    size_t other_count;
    struct object_request *map, *lines; /* BCSymbolMap and il2cpp mapping, inputs of the symcache; NULL = none */
    struct cache_lookup table;          /* look-up of the entry made from the chosen file, such as a symcache */
    /* for search_run */
    void (*next)(struct search *search);   /* next step; NULL: the search has ended, or not begun */
    void (*helper)(struct search *search); /* work of search_run_in_fiber() */
    size_t waiting;                        /* look-ups and fibers that the next step waits for */
    struct search_batch *search_batch;
    struct sl_link ready; /* in search_batch->ready */
};

/* Makes a search that has not begun: search_run_all() begins it. */
struct search search_make(const struct search_scope *where, const struct object_id *id, enum purpose purpose);
/* Runs the steps of each search, beginning with its `next`, until all have ended. False when cancelled: then a search whose `next` is not
 * NULL has not ended. */
bool search_run(struct search *searches, size_t count) SL_SUSPENDS;
/* Tells a search that one of the look-ups or fibers that it waits for has ended; the last one lets its next step run. */
void search_lookup_done(struct search *search);
/* Runs `work` in another fiber, or at once in the running one if no fiber is available; the search's next step waits for its end. */
void search_run_in_fiber(struct search *search, void (*work)(struct search *search)) SL_SUSPENDS;

/* Runs searches: a search whose `next` is NULL begins with listing the sources' files, the others with `next`. False when cancelled. */
bool search_run_all(struct search *searches, size_t count) SL_SUSPENDS;
/* Runs one search and returns the chosen file, which may have an error as `code`. NULL if the search failed (search->failure) or no file
 * was found. */
struct candidate_file *search_choose(struct search *search) SL_SUSPENDS;

/* ---- use.c ---- */
struct search_hooks { /* what a search_target does differently; each may be NULL */
    /* Called when a file was chosen, instead of looking up the entry made from it: calls search_lookup() with another key, at once or in a
     * later step. */
    void (*ask)(struct search *search);
    /* Called if no file is usable, after the result was set to that: may try alternatives and change search and result. */
    void (*otherwise)(struct search *search);
    /* Called when the entry made from the file is available (found->item): sets further members of the result, and in `report`, for the
     * response, what is missing in the entry. */
    void (*had)(struct search_result *found, struct candidate_use *report);
};

/* Looks up the cache entry with this key, made from the chosen file (`context`: what the entry's kind needs to make it); then the result
 * is set and the search ends. */
void search_lookup(struct search *search, const struct cache_key *key, const void *context);
/* Replaces search_lookup() if the key cannot be made: ends the search with SL_CANCELLED or SL_BUSY. */
void search_lookup_failed(struct search *search, enum sl_code code);
/* Sets the candidate's field that reports this use (candidate.debug or .unwind) by the result `found`. */
void search_report(struct search *search, struct candidate *candidate, struct search_result *found,
                   const struct search_target *use);

/* Runs `search`, which it sets up, for a PE file of the module of `first` that contains a Portable PDB. NULL if the configuration does not
 * want that (dotnet_ask_pe), the module is not a .NET module, or there is no such file. */
struct candidate_file *search_embedded_ppdb(const struct search *first, struct search *search) SL_SUSPENDS;

/* ---- search_cache.c: cache of finished searches. Loop thread ----
 *
 * Programs crash with the same modules again and again. A search that read only cache entries in memory is cached, together with handles
 * of all these entries: while they are in memory and unchanged, an equal search has the same result. */
struct search_cache_value {
    enum sl_code code;
    const struct sl_error *error; /* NULL if there is none */
    struct sl_features features;
    struct fixed_load_address fixed_load;
    struct candidate_list candidates;
    /* the following four: as in struct search_result */
    struct sl_str source, path;
    bool is_public, is_best;
};

/* Returns the cached result of an equal search; NULL if there is none. `*item` (if `item` is not NULL) gets a reference to the entry made
 * from the chosen file, such as a symcache. The result lives as long as where->arena. `use`: NULL for source texts. */
const struct search_cache_value *search_cache_get(const struct search_scope *where, const struct search_target *use,
                                                  const struct object_id *id, struct cache_item **item);

/* Caches a copy of the search's result, if all cache entries that it used were in memory. */
void search_cache_put(const struct search *search, const struct search_target *use,
                      const struct search_cache_value *outcome);

/* Sets search->failure to SL_CANCELLED or SL_BUSY; returns false. */
bool search_fail(struct search *search, enum sl_code code);
/* True if a file might be better than the chosen one but could not be examined (struct search_result.undecided). Call it when the search
 * has chosen a file and has not failed. */
bool search_is_undecided(const struct search *search);
/* True if a file that was left out as too large might be better than the chosen one (struct search_result.is_too_large). */
bool search_is_too_large(const struct search *search);
/* Returns how good a file is for the purpose: GRADE_BEST to GRADE_NONE. */
unsigned candidate_file_grade(const struct candidate_file *file, enum purpose purpose);
/* Returns the error as a text for responses, in the arena; empty when out of memory. */
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

/* Find the BCSymbolMap and the il2cpp line mapping of the module search->id, which are inputs of its symcache besides the debug file.
 * `*map` and `*lines` are the files' requests, NULL unless SL_OK. SL_NOT_FOUND: there is none; SL_CANCELLED, SL_BUSY. */
enum sl_code bcsymbolmap_find(const struct auxiliary_search *search, struct object_request **map) SL_SUSPENDS;
enum sl_code il2cpp_find(const struct auxiliary_search *search, struct object_request **lines) SL_SUSPENDS;

/* ---- supplied_objects.c ---- */

/* Answers the question from a debug file that came with the request (where->own). False: none is usable; question->found is unchanged. */
bool supplied_objects_answer(const struct search_scope *where, const struct search_query *question) SL_SUSPENDS;
