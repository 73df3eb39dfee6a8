/* What the files of the engine share: flights, and the state of the process. Loop thread.
 *
 *     cache.c    start and end, memory, look-ups, forgetting
 *     flight.c   a flight: disk, what it is made from, computation, landing
 *     compute.c  computing, publishing, the shared layer, refreshing
 *     line.c     whose turn it is to have a fiber
 *
 * A look-up that memory cannot answer is a record (struct cache_look) in the list of a flight, which is a record too. It
 * has a fiber only while something is done for it:
 *
 *     ask -> [line: disk] -> the entry it is made from, as a look of its own -> [line: place] compute -> land
 *                  |                             '- its error: [line: disk] publish -> land
 *                  '- found -> land (-> [line: place] refresh)
 *
 * Nothing can wait in a circle. Fibers of the line for the disk wait for the pool alone. A flight that waits for what it
 * is made from, or in a line, has no fiber and no place. One that computes may ask for entries of other kinds, never (but
 * for recursive kinds, whose line is as wide as it is long) for one whose computation leads back to its own: so what it
 * waits for finds its places taken only by computations further down, the last of which wait for no entry at all. And
 * none of them is refused a fiber because of max_fibers, which counts requests at the door. */
#pragma once

#include "cache/shared.h"

struct flight;
struct refresh;
typedef void flight_step(struct flight *flight) SL_SUSPENDS;

struct line { /* flights that wait for their turn, and the fibers that work for them */
    struct sl_list flights;
    unsigned running, most; /* fibers */
    const char *what;       /* metric label */
    struct sl_map *map;     /* that it is removed from when idle; NULL: it stays */
    struct sl_str name;     /* in the map */
};

/* One computation, or look-up on disk, that any number of looks wait for. It and each of them hold a reference. */
struct flight {
    struct kind_state *state;
    struct sl_arena arena;
    struct sl_str key, scope, request_id;
    void *context;
    struct flight *owner; /* whose context this is a part of, held; NULL: its own */
    struct sl_list looks; /* that wait: struct cache_look */
    uint32_t references;
    bool done;
    bool renews;           /* old misses are asked for again */
    atomic_bool abandoned; /* nobody waits for it any more: what the pool does for it ends early */
    bool outdated;         /* what it computes has been replaced since it began: for its waiters alone */
    unsigned *renewal;     /* what its token goes back to, or NULL when there is none */
    struct cache_look base;
    struct cache_item *base_item; /* a reference, until it is computed */
    int64_t begun_ns, stamp_ns, generation;
    enum sl_code code;
    struct cache_item *item;
    struct sl_error error;
    struct refresh *refresh; /* after landing */
    flight_step *step;       /* in a line */
    struct sl_link in_line;
};

/* What came of a key that neither memory nor disk had. */
struct outcome {
    enum sl_code code;
    struct cache_item *item; /* one reference, when `code` is SL_OK */
    struct sl_error error;
    const char *layer;
    int64_t created_s, generation;
    uint64_t keep_ns; /* in memory */
};

/* A fiber that computes for a renewal: the look-ups it makes are renewals too. */
struct renewing {
    struct sl_link link;
    struct fiber *fiber;
};

struct kind_state {
    const struct cache_kind *kind;
    struct cache_lifetimes lifetimes;
    struct cache_memory memory;
    struct sl_map flights;                          /* key -> struct flight */
    struct sl_map refreshes;                        /* key -> struct refresh */
    struct line line;                               /* computations without a place */
    struct sl_map lines;                            /* place -> struct line */
    unsigned *lazy;                                 /* free tokens of the kind's counter; NULL = no refreshes */
    struct metric_series *memory_answers[SL_CODES]; /* counters of look-ups that memory answered */
};

struct cache_engine {
    struct cache_disk disk;
    char *dir;
    struct kind_state *kinds;
    size_t count;
    struct fiber_group group; /* of all computations */
    struct line disk_line;
    unsigned redownloads, recomputations;
    struct sl_list renewing;
    uint64_t max_mapped, renew_after_ns;
    uint64_t next_log_ms;
    const struct config *config;
    int64_t generation;       /* of the stamps, as last seen */
    int64_t foreign;          /* the last one that this process did not make: entries of before are compared with it */
    bool stamping;            /* one is being made */
    int64_t meanwhile;        /* the last one seen since */
    struct cache_watch watch; /* when it is looked at again */
};
extern struct cache_engine cache_engine;

/* ---- cache.c ---- */
/* cache_ask; for another flight that owns the context, or NULL. */
bool engine_ask(struct cache_look *look, bool renews, struct flight *owner);
void engine_remember(struct kind_state *state, struct sl_str key, enum sl_code code, struct cache_item *item,
                     const struct sl_error *error, int64_t created_ns, int64_t generation, uint64_t for_ns);
void engine_count(const struct kind_state *state, const char *layer, enum sl_code code);
/* Whether a failure that the entry of this key is, made at that time, is to be left aside: origin/failures.h. */
bool engine_doubts(struct sl_str key, enum sl_code code, int64_t created_ns);
void engine_saw(int64_t generation);
void engine_shed(void);                           /* gives back some mapped files: something ran out */
int64_t engine_renew_before_ns(void);             /* misses made before this are to be asked for again by a renewal */
void engine_log_io(const char *what, int number); /* once a minute */

/* ---- line.c ---- */
/* Has step(flight) called by a fiber when it is the flight's turn. False when there is no memory for a first fiber. */
bool line_enter(struct line *line, struct flight *flight, flight_step *step);
/* The line of the flight's computation; NULL when out of memory. */
struct line *line_of(struct flight *flight);
void line_limits(const struct config *config);

/* ---- flight.c ---- */
struct flight *flight_start(struct kind_state *state, const struct cache_key *key, const void *context, bool renews,
                            struct flight *owner);
void flight_release(struct flight *flight);
/* A look was withdrawn. When it was the last one, a computation of what is only derived from other entries ends early, but the
 * second one of its key: clients that do not wait long enough get their answers at last. Downloads go on. */
void flight_left(struct flight *flight);
/* Its looks are answered, and nobody joins it any more. */
void flight_land(struct flight *flight, int64_t created_ns, int64_t generation, uint64_t keep_ns);

/* ---- compute.c: in the fiber of a line ---- */
/* Gets what neither memory nor disk has. */
void compute_entry(struct flight *flight, bool is_refresh, struct outcome *outcome) SL_SUSPENDS;
/* Publishes an error that the computation did not even have to begin for. */
void compute_publish_error(struct flight *flight, struct outcome *outcome) SL_SUSPENDS;
bool compute_publishable(enum sl_code code, const struct sl_error *error, bool is_refresh);
uint64_t compute_fresh_for(const struct kind_state *state, enum sl_code code, const struct sl_error *error);

/* ---- evict.c: in the fiber of a line ---- */
/* An entry was published: others make room for it if the kind has a size of its own. */
void cache_bounded_added(struct kind_state *state, struct sl_str key, uint64_t bytes);

/* ---- refresh.c: a new version, or a complete one, of what is used meanwhile ---- */
struct refresh *refresh_begin(struct flight *flight); /* NULL: not now */
void refresh_run(struct flight *flight, struct refresh *refresh) SL_SUSPENDS;
void refresh_give_up(struct flight *flight, struct refresh *refresh);
void refreshes_forget(struct kind_state *state, uint64_t now_ms);
