/* Shared by the files of the engine: flights (in-flight look-ups), and the state of the process. Loop thread.
 *
 *     cache.c       start and end, memory, look-ups, invalidation
 *     flight.c      the steps of a flight: disk, base, computation, answers
 *     compute.c     computing, publishing, the shared layer
 *     refresh.c     computing old entries again
 *     work_queue.c  queues of flights that need a fiber
 *
 * A look-up that memory cannot answer (struct cache_lookup) waits in the list of a flight: the one search and computation for its key.
 * The base of an entry is the entry that it is made from. A flight has a fiber only while one works for it:
 *
 *     look-up -> [queue: disk] -> look-up of the base -> [queue: host] compute -> answer the look-ups
 *                     |                    '- the base is an error: [queue: disk] publish that -> answer the look-ups
 *                     '- found -> answer the look-ups (-> [queue: host] refresh)
 *
 * Deadlock freedom: fibers of the disk queue wait for the pool alone. A flight that waits for its base, or in a queue, has no fiber. One
 * that computes may look up entries of other kinds, but never (except for recursive kinds, whose queue is unlimited) one whose
 * computation leads back to its own kind: so the fibers that its look-ups need are used only by computations further down, the last of
 * which look up no entry at all. And none of them is refused a fiber because of max_fibers, which only limits new requests. */
#pragma once

#include "cache/shared.h"

struct flight;
struct refresh;
typedef void flight_step(struct flight *flight) SL_SUSPENDS;

struct work_queue { /* a queue of flights (computations of keys), and the fibers that work for them */
    struct sl_list flights;
    unsigned running, most; /* number of fibers and its limit */
    const char *what;       /* metric label */
    struct sl_map *map;     /* the map from which the queue is removed when it is idle; NULL: it is permanent */
    struct sl_str name;     /* its key in the map */
};

/* A flight: the one search on disk and computation of a key, for which any number of look-ups wait. */
struct flight {
    struct kind_state *state;
    struct sl_arena arena; /* contains the flight itself */
    struct sl_str key, scope, request_id;
    void *context;         /* of the look-up that began it, as copied by cache_kind.retain */
    struct flight *owner;  /* flight whose arena has the context, a reference; NULL: its own */
    struct sl_list looks;  /* struct cache_lookup: those that wait for its result */
    uint32_t references;   /* the flight's own steps hold one, and so does each look-up that waits */
    bool done;             /* it has its result */
    bool renews;           /* cached misses that are old count as absent, in it and in its computation's look-ups */
    atomic_bool abandoned; /* nobody waits for it: its pool jobs end early */
    bool outdated;         /* a file it is made from was invalidated since: the result is not cached */
    /* If cache_renew has started the flight: the count of computations that may run in the background, from which it has taken 1,
     * which is added again at the flight's end. Else NULL. */
    unsigned *renewal;
    struct cache_lookup base;     /* look-up of the base */
    struct cache_item *base_item; /* a reference to the base's contents, which keeps them in memory for `compute` */
    int64_t begun_ns;             /* when it began */
    /* found on disk: times of the newest invalidation stamp of the key's files, and of any file (stamp.c) */
    int64_t stamp_ns, generation;
    enum sl_code code; /* the result */
    struct cache_item *item;
    struct sl_error error;
    struct refresh *refresh; /* set when its look-ups are answered and it goes on as a refresh */
    flight_step *step;       /* next step, while queued */
    struct sl_link in_queue;
};

/* Result for a key that was neither in memory nor on disk. */
struct compute_result {
    enum sl_code code;
    struct cache_item *item; /* one reference, when `code` is SL_OK */
    struct sl_error error;
    const char *layer;  /* "shared" or "computed", for metrics */
    int64_t created_s;  /* when it was made, if the shared cache had it; 0 = now */
    int64_t generation; /* when the last invalidation stamp of any file was written, as seen before the result */
    uint64_t keep_ns;   /* lifetime in memory */
};

/* A fiber that computes an old miss again (flight.renews): old misses that it looks up are computed again too. */
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
    /* how many more refreshes may run at once, a counter that several kinds share; NULL: this kind has no refreshes */
    unsigned *lazy;
    struct metric_series *memory_answers[SL_CODES]; /* counters of look-ups answered by memory */
};

struct cache_engine {
    struct cache_disk disk;
    char *dir;
    struct kind_state *kinds;
    size_t count;
    struct fiber_group group; /* of all computations */
    struct work_queue disk_queue;
    unsigned redownloads, recomputations; /* how many more refreshes may run (kind_state.lazy) */
    struct sl_list renewing;              /* struct renewing */
    uint64_t max_mapped;                  /* how many files may be mapped */
    uint64_t renew_after_ns; /* age of misses and incomplete entries from which on they are computed again */
    uint64_t next_log_ms;    /* when engine_log_io may log again */
    const struct config *config;
    /* A generation is the time at which the last invalidation stamp of any file was written (stamp.c). */
    int64_t generation;         /* as last read from the directory */
    int64_t remote_generation;  /* last generation of another process: older entries must be checked on disk */
    bool stamping;              /* this process is writing invalidation stamps */
    int64_t pending_generation; /* last generation that was read while `stamping` is true */
    struct cache_watch watch;   /* when to read the generation again */
};
extern struct cache_engine cache_engine;

/* ---- cache.c ---- */
/* Does what cache_lookup_async does. `renews`: cached misses that are old are computed again. `owner`: another flight that owns the context
 * of the look-up and stays alive for it; NULL: the context is the caller's. */
bool engine_lookup_async(struct cache_lookup *look, bool renews, struct flight *owner);
/* Stores a result, contents or an error, in memory for `for_ns`; DURATION_NEVER: without limit, 0: does not store it. `created_ns` 0:
 * now. `generation`: time of the last invalidation stamp of any file, as it was before the result was found or computed. */
void engine_store(struct kind_state *state, struct sl_str key, enum sl_code code, struct cache_item *item,
                  const struct sl_error *error, int64_t created_ns, int64_t generation, uint64_t for_ns);
/* Counts a look-up by the layer that answered it and its result. */
void engine_count(const struct kind_state *state, const char *layer, enum sl_code code);
/* True if the entry is a failure, made at `created_ns`, of a source that may work again, so that it should be computed again
 * (origin/failures.h). */
bool engine_should_retry(struct sl_str key, enum sl_code code, int64_t created_ns);
/* Records the generation, the time of the last invalidation stamp of any file, as it was read from the cache directory. */
void engine_note_generation(int64_t generation);
/* Drops some entries with mapped files from memory; call it when memory or maps are exhausted. */
void engine_unmap_some(void);
/* Returns the time before which a cached miss must have been made to count as old, so that cache_renew computes it again. */
int64_t engine_renew_before_ns(void);
/* Logs a failed access to the cache directory, with errno `number`, at most once a minute; nothing if `number` is 0. */
void engine_log_io(const char *what, int number);

/* ---- work_queue.c ---- */
/* Queues the flight until a fiber of the queue calls step(flight). False if the queue has no fiber and none can be started. */
bool work_queue_push(struct work_queue *queue, struct flight *flight, flight_step *step);
/* Returns the queue in which the flight (an in-flight look-up) waits for its computation: that of the host it downloads from or, if it has
 * none, of its kind. NULL when out of memory. */
struct work_queue *work_queue_for(struct flight *flight);
void work_queue_configure(const struct config *config);

/* ---- flight.c ---- */
/* Starts the flight of a key, which must have none: its search on disk is queued. NULL when out of memory. */
struct flight *flight_start(struct kind_state *state, const struct cache_key *key, const void *context, bool renews,
                            struct flight *owner);
void flight_release(struct flight *flight);
/* Called when a look-up was withdrawn from the flight. If it was the last one, the flight's computation ends early, unless it is a
 * download, or a computation of the same key has ended so before: so clients with short timeouts get their answer in the end. */
void flight_waiter_left(struct flight *flight);
/* Stores the flight's result in memory for `keep_ns`, and answers its look-ups. Removes the flight from the table of running ones, so that
 * no further look-up joins it. */
void flight_finish(struct flight *flight, int64_t created_ns, int64_t generation, uint64_t keep_ns);

/* ---- compute.c: in a fiber of a queue ---- */
/* Gets an entry from the shared layer or computes it, and publishes it on disk. `is_refresh`: it replaces an entry that is in use, so an
 * error is not published. */
void compute_entry(struct flight *flight, bool is_refresh, struct compute_result *outcome) SL_SUSPENDS;
/* Publishes the error in `outcome`, that of the base, as the error of this entry, without a computation. */
void compute_publish_error(struct flight *flight, struct compute_result *outcome) SL_SUSPENDS;
/* True if a result may be written to disk: contents, and errors that say something lasting about the key. */
bool compute_publishable(enum sl_code code, const struct sl_error *error, bool is_refresh);
/* Returns how long a new result stays in memory, in nanoseconds; 0 = not at all. */
uint64_t compute_memory_lifetime(const struct kind_state *state, enum sl_code code, const struct sl_error *error);

/* ---- evict.c: in a fiber of a queue ---- */
/* Call when an entry was published: if its kind has a size limit of its own (CACHE_BOUNDED), evicts the least recently used entries. */
void cache_bounded_note_added(struct kind_state *state, struct sl_str key, uint64_t bytes);

/* ---- refresh.c: computing an entry again that is used until then ---- */
/* Begins a refresh of the flight's entry: lists its key in kind_state.refreshes, and takes 1 from kind_state.lazy. NULL if a refresh of the
 * key runs already or failed a short time ago, if too many run, or when out of memory: then the old entry stays in use. */
struct refresh *refresh_begin(struct flight *flight);
/* Computes the entry, and ends the refresh. */
void refresh_run(struct flight *flight, struct refresh *refresh) SL_SUSPENDS;
/* Ends a refresh that could not run. */
void refresh_give_up(struct flight *flight, struct refresh *refresh);
/* Frees the records of refreshes that failed and may be tried again at `now_ms`. */
void refreshes_expire(struct kind_state *state, uint64_t now_ms);
