/* Shared by the files of the engine: flights (in-flight look-ups), and the state of the process. Loop thread.
 *
 *     cache.c    start and end, memory, look-ups, invalidation
 *     flight.c   a flight: disk, the entry it is made from, computation, landing
 *     compute.c  computing, publishing, the shared layer, refreshing
 *     work_queue.c     queues for a fiber
 *
 * A look-up that memory cannot answer is a record (struct cache_lookup) in the list of a flight, which is a record too. A flight
 * has a fiber only while one works for it:
 *

 *     ask -> [queue: disk] -> the entry it is made from, as a look-up of its own -> [queue: host] compute -> land
 *                  |                              '- its error: [queue: disk] publish -> land

 *                  '- found -> land (-> [queue: host] refresh)
 *
 * Deadlock freedom: fibers of the disk queue wait for the pool alone. A flight that waits for its base entry, or in a queue,

 * has no fiber. One that computes may look up entries of other kinds, but never (except for recursive kinds,
 * whose queue is unlimited) one whose computation leads back to its own kind: so the fibers that its look-ups need are used
 * only by computations further down, the last of which look up no entry at all. And none of them is refused a fiber because of
 * max_fibers, which only limits new requests. */
#pragma once

#include "cache/shared.h"

struct flight;
struct refresh;
typedef void flight_step(struct flight *flight) SL_SUSPENDS;

struct work_queue { /* a queue of flights, and the fibers that work for them */
    struct sl_list flights;
    unsigned running, most; /* number of fibers and its limit */
    const char *what;       /* metric label */
    struct sl_map *map;     /* the map that it is removed from when idle; NULL: it is permanent */
    struct sl_str name;     /* its key in the map */
};

/* One look-up on disk and computation that any number of look-ups wait for. It and each of them hold a reference. */
struct flight {
    struct kind_state *state;
    struct sl_arena arena;
    struct sl_str key, scope, request_id;
    void *context;
    struct flight *owner; /* flight whose arena has the context, a reference; NULL: its own */
    struct sl_list looks; /* struct cache_lookup, waiting */
    uint32_t references;
    bool done;
    bool renews;           /* old misses count as absent */
    atomic_bool abandoned; /* nobody waits for it: its pool jobs end early */
    bool outdated;         /* its sources were replaced since it began: the result is only for its waiters */
    unsigned *
        renewal; /* `lazy` of its kind, from which this renewal has taken one and to which it returns it; NULL = it took none */
    struct cache_lookup base;
    struct cache_item *base_item; /* a reference, until compute is done */
    int64_t begun_ns, stamp_ns, generation;
    enum sl_code code;
    struct cache_item *item;
    struct sl_error error;
    struct refresh *refresh; /* after landing */
    flight_step *step;       /* next step, while queued */
    struct sl_link in_queue;
};

/* Result for a key that was neither in memory nor on disk. */
struct compute_result {
    enum sl_code code;
    struct cache_item *item; /* one reference, when `code` is SL_OK */
    struct sl_error error;
    const char *layer;
    int64_t created_s, generation;
    uint64_t keep_ns; /* lifetime in memory */
};

/* A fiber that computes for a renewal: its look-ups are renewals too. */
struct renewing {
    struct sl_link link;
    struct fiber *fiber;
};

struct kind_state {
    const struct cache_kind *kind;
    struct cache_lifetimes lifetimes;
    struct cache_memory memory;
    struct sl_map flights;   /* key -> struct flight */
    struct sl_map refreshes; /* key -> struct refresh */
    struct work_queue queue; /* queue of computations that wait for no host */
    struct sl_map queues;    /* queues of the other computations: host or store -> struct work_queue */
    unsigned *lazy; /* how many more background computations may start, shared by several kinds; NULL = no refreshes */
    struct metric_series *memory_answers[SL_CODES]; /* counters of look-ups answered by memory */
};

struct cache_engine {
    struct cache_disk disk;
    char *dir;
    struct kind_state *kinds;
    size_t count;
    struct fiber_group group; /* of all computations */
    struct work_queue disk_queue;
    unsigned redownloads, recomputations; /* how many more may run in the background (kind_state.lazy) */
    struct sl_list renewing;
    uint64_t max_mapped, renew_after_ns;
    uint64_t next_log_ms;
    const struct config *config;
    int64_t generation;         /* of the invalidation stamps, as last seen */
    int64_t remote_generation;  /* last generation made by another process: older entries must be checked on disk */
    bool stamping;              /* this process is writing stamps */
    int64_t pending_generation; /* last generation seen while it did */
    struct cache_watch watch;   /* when to check the generation again */
};
extern struct cache_engine cache_engine;

/* ---- cache.c ---- */
/* Like cache_lookup_async; `owner` is another flight that owns the context, or NULL. */
bool engine_lookup_async(struct cache_lookup *look, bool renews, struct flight *owner);
/* Stores a result in memory for `for_ns`, DURATION_NEVER: without limit, 0: not at all. */
void engine_store(struct kind_state *state, struct sl_str key, enum sl_code code, struct cache_item *item,
                  const struct sl_error *error, int64_t created_ns, int64_t generation, uint64_t for_ns);
/* Counts a look-up by the layer that answered it and its result. */
void engine_count(const struct kind_state *state, const char *layer, enum sl_code code);
/* True if an entry for the key that is a failure made at `created_ns` should be ignored: origin/failures.h. */
bool engine_should_retry(struct sl_str key, enum sl_code code, int64_t created_ns);
void engine_note_generation(int64_t generation);
void engine_unmap_some(void);                     /* unmaps some files: a resource is exhausted */
int64_t engine_renew_before_ns(void);             /* renewals ignore misses made before this */
void engine_log_io(const char *what, int number); /* once a minute */

/* ---- work_queue.c ---- */
/* Queues the flight until a fiber calls step(flight). False without memory for a first fiber. */
bool work_queue_push(struct work_queue *queue, struct flight *flight, flight_step *step);
/* Returns the queue of the flight's computation; NULL when out of memory. */
struct work_queue *work_queue_for(struct flight *flight);
void work_queue_configure(const struct config *config);

/* ---- flight.c ---- */
/* Starts the flight of a key, which must have none: its search on disk is queued. NULL when out of memory. */
struct flight *flight_start(struct kind_state *state, const struct cache_key *key, const void *context, bool renews,
                            struct flight *owner);
void flight_release(struct flight *flight);
/* Called when a look-up was withdrawn. If it was the last one, a computation from other entries ends early, but not the second
 * time for a key: so clients with short timeouts get their answer in the end. Downloads always go on. */
void flight_waiter_left(struct flight *flight);
/* Answers its look-ups and removes it from the table, so that nobody joins it any more. */
void flight_finish(struct flight *flight, int64_t created_ns, int64_t generation, uint64_t keep_ns);

/* ---- compute.c: in a fiber of a queue ---- */
/* Gets an entry that is neither in memory nor on disk. */
void compute_entry(struct flight *flight, bool is_refresh, struct compute_result *outcome) SL_SUSPENDS;
/* Publishes the base entry's error as the error of this entry, without a computation. */
void compute_publish_error(struct flight *flight, struct compute_result *outcome) SL_SUSPENDS;
bool compute_publishable(enum sl_code code, const struct sl_error *error, bool is_refresh);
uint64_t compute_memory_lifetime(const struct kind_state *state, enum sl_code code, const struct sl_error *error);

/* ---- evict.c: in a fiber of a queue ---- */
/* Call when an entry was published: evicts others if the kind has a size limit of its own. */
void cache_bounded_note_added(struct kind_state *state, struct sl_str key, uint64_t bytes);

/* Takes an entry in `refreshes`, and one of the kind's background computations (`lazy`). NULL if a refresh of the key runs already or
 * has just failed, if too many run, or when out of memory: then the old entry stays in use. */
struct refresh *refresh_begin(struct flight *flight);
void refresh_run(struct flight *flight, struct refresh *refresh) SL_SUSPENDS;
void refresh_give_up(struct flight *flight, struct refresh *refresh);
void refreshes_expire(struct kind_state *state, uint64_t now_ms);
