/* Looking for the best file of a module, of many modules at once, in one fiber: what waits is a record.
 *
 *     find.c       whose turn it is; the candidates of a module: list them, ask what each is good for, choose
 *     use.c        what the chosen one is used for: what is made of it, and what goes into the table of a module beside it
 *     source.c     or its source text, or the file itself
 *     auxiliary.c  files that are no objects: the first that can be had
 *
 * A search goes from step to step. A step may post look-ups (`waiting` counts them) or have something done by a fiber of
 * its own; the next step follows when all of that is answered. Private to this folder. */
#pragma once

#include "kinds/conversion.h"
#include "kinds/listing.h"
#include "search/search.h"

struct wanted { /* file types that are asked for */
    const enum file_type *types;
    size_t count;
};

enum { GRADE_BEST = 0, GRADE_SYMBOLS = 1, GRADE_ERROR = 3, GRADE_NONE = 4 };

struct probe { /* one listed file */
    struct object_request request;
    struct cache_key key;
    enum sl_code code;
    struct sl_error error;
    struct sl_features features;
    struct fixed_place place;
    bool skipped; /* a pointer that is of no use */
    bool renewed; /* a miss: it is asked for again when it is old */
    struct candidate *candidate;
    struct cache_look look;
    struct search *search;
};

struct search {
    const struct source *sources;
    size_t source_count;
    uint64_t list; /* as that of struct kinds_search */
    const struct object_id *id;
    struct sl_str scope;
    enum purpose purpose;
    const struct wanted *wanted; /* NULL: as the module's type and the purpose say */
    struct sl_arena *arena;
    void (*then)(struct search *search); /* the step after choosing; NULL = none */
    void *result;                        /* of `then` */
    const struct kinds_use *use;         /* of use.c */
    bool opens;                          /* has sources to be opened */
    bool helped;                         /* a fiber did something for it */
    /* what comes of it */
    struct probe *chosen; /* NULL when there is nothing */
    struct probe *probes;
    size_t count, capacity;
    struct listing *listings;         /* of each source */
    struct candidate_list candidates; /* capacity reserved before the probes point into it */
    struct sl_error failure;          /* code SL_OK = none */
    /* of `then` */
    struct probe *others; /* looks that are not candidates */
    size_t other_count;
    struct object_request *map, *lines; /* what the table is made with; NULL = nothing */
    struct cache_look table;
    /* of the fiber that runs it */
    void (*next)(struct search *search);
    void (*helper)(struct search *search);
    size_t waiting;
    struct crowd *crowd;
    struct sl_link ready;
};

struct search search_of(const struct kinds_search *where, const struct object_id *id, enum purpose purpose);
/* Runs each from its `next` on to the end. False when cancelled: those that have a `next` still have not come to one. */
bool search_run(struct search *searches, size_t count) SL_SUSPENDS;
void search_answered(struct search *search); /* one of what it waits for */
/* `work` is done by a fiber (by the running one when there is none to be had); the next step waits for its end. */
void search_in_fiber(struct search *search, void (*work)(struct search *search)) SL_SUSPENDS;

/* Lists, fetches, chooses and uses; those that have a `next` begin with that. False when cancelled. */
bool search_all(struct search *searches, size_t count) SL_SUSPENDS;
/* The chosen file; NULL with `failure` set, or without when there is nothing at all. */
struct probe *search_one(struct search *search) SL_SUSPENDS;

/* ---- use.c ---- */
struct kinds_steps { /* of a use; each may be NULL */
    /* Asks for the kind (search_ask) in another way than by the chosen file alone. */
    void (*ask)(struct search *search);
    /* No file is usable, which the result says already: what else there may be. Search and result may be changed. */
    void (*otherwise)(struct search *search);
    /* The kind is there: more about it. */
    void (*had)(struct kinds_found *found, struct candidate_use *report);
};

/* Asks for the use's kind, and goes on to the end. */
void search_ask(struct search *search, const struct cache_key *key, const void *context);
/* Goes on to the end as if that had failed: SL_CANCELLED, SL_BUSY. */
void search_ask_failed(struct search *search, enum sl_code code);
/* What came of `found` is told in the candidate's field of the use. */
void search_report(struct search *search, struct candidate *candidate, struct kinds_found *found,
                   const struct kinds_use *use);

/* A Portable PDB inside of a PE file: NULL when it is not looked for, or there is none. */
struct probe *search_in_pe(const struct search *first, struct search *search) SL_SUSPENDS;

/* ---- remember.c: what searches came to. Loop thread ----
 *
 * Programs crash with the same modules again and again. A search that memory answered at once is kept with marks of all the
 * entries that it asked for: as long as memory holds these very entries, another such search would end in the same way. */
struct outcome {
    enum sl_code code;
    const struct sl_error *error; /* NULL when there is none */
    struct sl_features features;
    struct fixed_place place;
    struct candidate_list candidates;
};

/* What the same search came to; `*item` (if not NULL) gets a reference of the table. NULL when it has to be done. What is
 * returned stays as long as the arena of the search. `use`: NULL for source texts. */
const struct outcome *recall(const struct kinds_search *where, const struct kinds_use *use, const struct object_id *id,
                             struct cache_item **item);

/* Copies what the finished search came to, if memory has answered all of it. */
void remember(const struct search *search, const struct kinds_use *use, const struct outcome *outcome);

/* Sets `failure`: SL_CANCELLED, or SL_BUSY. False. */
bool search_fail(struct search *search, enum sl_code code);
unsigned probe_grade(const struct probe *probe, enum purpose purpose);
struct sl_str search_error_text(struct sl_arena *arena, const struct sl_error *error);

/* ---- auxiliary.c: files that are no objects ---- */

/* Everything that a look-up for a module has at hand. */
struct auxiliary_search {
    const struct source *sources;
    size_t source_count;
    struct sl_str scope; /* of the request */
    const struct object_id *id;
    struct sl_arena *arena;
    struct sl_error *failure; /* of the first file that was listed but could not be had; NULL = nobody wants to know */
};

/* The first file of the type for `id` that can be had, in the order of the sources: `*found` is its request and `*item` a
 * reference to it. SL_NOT_FOUND; SL_CANCELLED, SL_BUSY. */
enum sl_code auxiliary_find(const struct auxiliary_search *search, const struct object_id *id, enum file_type type,
                            const struct cache_kind *kind, struct object_request **found,
                            struct cache_item **item) SL_SUSPENDS;

/* As auxiliary_find, of the search's module. The request says what the symcache is made with; NULL = nothing. */
enum sl_code bcsymbolmap_find(const struct auxiliary_search *search, struct object_request **map) SL_SUSPENDS;
enum sl_code il2cpp_find(const struct auxiliary_search *search, struct object_request **lines) SL_SUSPENDS;

/* ---- own_objects.c ---- */

/* Answers by a file of where->own; false: none is of use. */
bool own_objects_answer(const struct kinds_search *where, const struct kinds_question *question) SL_SUSPENDS;
