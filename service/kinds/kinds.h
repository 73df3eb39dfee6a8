/* The kinds of cache entries and the look-ups built on them: objects, their features, symcaches; and choosing the best
 * object among everything the sources list. */
#pragma once

#include "cache/cache.h"
#include "object/object.h"
#include "origin/origin.h"
#include "symcache/symcache.h"

extern const struct cache_kind *const kinds_all[];
extern const size_t kinds_all_count;

enum purpose { PURPOSE_DEBUG, PURPOSE_UNWIND, PURPOSE_SOURCE, PURPOSE_FILE };

/* The report on one remote file, as responses show it. Strings live in the lookup's arena. */
struct candidate {
    struct sl_str source, location;
    enum sl_code download;          /* SL_OK: `features` count */
    struct sl_str download_details; /* for permission denied: the reason; for the error statuses: the text form */
    struct sl_features features;
    struct {
        bool set;
        enum sl_code code;
        struct sl_str details;
    } debug, unwind;
};

struct candidate_list { /* sorted and unique by (source, location) once kinds_candidates_merge has run */
    struct candidate *items;
    size_t count, capacity;
};

/* Adds `from` to `into` by the merge rules (download overwritten, debug/unwind only if set), keeping the order. */
void candidates_merge(struct sl_arena *arena, struct candidate_list *into, const struct candidate_list *from);

struct symbol_lookup { /* result of one module's debug look-up */
    enum sl_code code; /* SL_OK: `symcache` is usable */
    struct sl_error error;
    struct cache_item *item; /* reference; holds the mapping of `symcache`. NULL unless SL_OK */
    const struct sl_symcache *symcache;
    struct sl_features features; /* of the chosen object; all false when none */
    enum sl_arch arch;           /* SL_ARCH_UNKNOWN when none */
    struct candidate_list candidates;
};

/* Finds the best object for debug purposes on the sources (in their order), and its symcache. Never fails as a call;
 * SL_CANCELLED in `code` when cancelled. Everything but `item` lives in the arena. */
void kinds_find_symcache(const struct source *sources, size_t source_count, struct sl_str scope,
                         const struct object_id *id, struct sl_arena *arena, struct symbol_lookup *result) SL_SUSPENDS;

/* The look-up for source context: candidates and features only in this version; `item` is the object's file if one with
 * sources was found. */
struct source_lookup {
    enum sl_code code;
    struct cache_item *item;
    struct candidate_list candidates;
};
void kinds_find_source(const struct source *sources, size_t source_count, struct sl_str scope,
                       const struct object_id *id, struct sl_arena *arena, struct source_lookup *result) SL_SUSPENDS;

/* A file as the sources have it, of one of the types, whatever it is good for: the first that parses. */
struct file_lookup {
    enum sl_code code;
    struct sl_error error;
    struct cache_item *item; /* reference; NULL unless SL_OK */
    char etag[64];           /* strong, quoted */
    bool is_public;          /* of its source */
};
void kinds_find_file(const struct source *sources, size_t source_count, struct sl_str scope, const struct object_id *id,
                     const enum file_type *types, size_t type_count, struct sl_arena *arena,
                     struct file_lookup *result) SL_SUSPENDS;

/* Set once at start from the configuration. */
void kinds_init(const struct config *config);
