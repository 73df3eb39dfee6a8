/* The shared layer: entries that many machines share, asked when the disk does not have one. It has one or two back ends: a bucket (GCS,
 * S3, or a directory for tests), a Redis. Private to this folder.
 *
 *     cache.c ── shared.c: which back ends, in which order ── breaker.c: pauses those that fail
 *        │                                                        ├── redis.c ── redis/: the connection
 *        └──── write_queue.c: pending writes                      │   └── redis_log.c: invalidations
 *                 │                                               ├── bucket.c: S3, GCS
 *                 └── pack.c: zstd                                └── directory.c
 *
 * The layer never fails a request, and delays it only by the back ends' time limits: every failure is a miss and a metric. An entry's
 * name is "<kind>/<relative path>" of its current version. The first write of a name wins, as all machines make the same bytes of
 * the same key. Loop thread only, unless a function says pool. */
#pragma once

#include "cache/impl.h"

/* Result of an operation of a back end. */
enum shared_result {
    SHARED_HIT,
    SHARED_MISS,
    SHARED_WRITTEN,
    SHARED_SKIPPED,     /* not written: the entry exists already, or is too large */
    SHARED_TIMEOUT,     /* no answer */
    SHARED_UNREACHABLE, /* no connection, or it was lost */
    SHARED_ERROR,       /* an unusable answer */
    SHARED_CANCELLED,
    SHARED_BUSY, /* this process lacks memory, descriptors or a thread: nothing is known of the back end */
};

struct shared_name { /* of an entry in the back ends */
    char text[160];
};
void shared_name(struct shared_name *name, const struct cache_kind *kind, struct sl_str key);

/* What a back end has found. */
struct shared_value {
    enum sl_code code;     /* SL_OK: contents, written to the file */
    struct sl_error error; /* if `code` is not SL_OK */
    int64_t created_s;     /* 0 = not known */
};

/* What a back end is to store. */
struct shared_entry {
    const char *name;
    enum sl_code code;
    struct sl_bytes contents; /* if `code` is SL_OK */
    struct sl_bytes packed;   /* the contents as one zstd frame (RFC 8878) */
    struct sl_bytes marker;   /* if `code` is an error: its marker, by cache_error_encode */
    int64_t created_s;
    uint64_t ttl_s; /* time to live of an error */
    bool replace;   /* overwrite an existing value, as it is outdated or damaged */
};

struct shared_backend {
    const char *name;    /* metric label */
    unsigned patience;   /* consecutive unusable answers until it is paused */
    bool negative;       /* may store errors */
    bool packed;         /* stores shared_entry.packed (compressed), not `contents` */
    uint64_t max_packed; /* bytes; larger entries are not stored */
    /* Gets an entry, contents into the empty file `fd`: SHARED_HIT, SHARED_MISS or the failure, after which `fd` may have any contents. */
    enum shared_result (*get)(const char *name, int fd, struct shared_value *value) SL_SUSPENDS;
    enum shared_result (*put)(const struct shared_entry *entry) SL_SUSPENDS;
    enum shared_result (*exists)(const char *name) SL_SUSPENDS;
    /* Deletes an entry. SHARED_HIT: it does not exist now, whether it did before or not. */
    enum shared_result (*del)(const char *name) SL_SUSPENDS;
    /* SHARED_HIT when the back end answers and works. */
    enum shared_result (*probe)(void) SL_SUSPENDS;
    void (*close)(void); /* called in a fiber when nothing runs; NULL = nothing to close */

    /* breaker.c */
    unsigned failures;         /* unusable answers in a row */
    bool down;                 /* it is paused */
    bool was_up;               /* it has answered since it was paused last */
    uint64_t last_answer_ms;   /* time of the last usable answer */
    const char *last_error;    /* NULL = none yet */
    struct fiber_group *group; /* of the fiber that probes it while it is paused */
};

/* Opens the Redis of the configuration; NULL with an error if that is invalid: `*key` is the key at fault. */
struct shared_backend *shared_redis(const struct config *config, struct fiber_group *group, const char **key,
                                    struct sl_error *error);
/* Opens the bucket of the configuration; NULL with an error if that is invalid. Allocates from `arena`; its fibers belong to `group`. */
struct shared_backend *shared_bucket(const struct config *config, struct sl_arena *arena, struct fiber_group *group,
                                     struct sl_error *error);
/* Returns the error of the last request to the bucket that failed; empty if none did. */
const char *bucket_last_error(void);
/* Sets up the directory of the configuration; NULL with an error if its path is too long: `*key` is the key at fault. */
struct shared_backend *shared_directory(const struct config *config, const char **key, struct sl_error *error);
/* Validates the configuration as shared_redis does; `*key`: the key at fault. */
enum sl_code shared_check_redis(const struct config *config, const char **key, struct sl_error *error);

/* ---- breaker.c ---- */
enum shared_op { SHARED_GET, SHARED_PUT, SHARED_EXISTS, SHARED_DEL, SHARED_LISTEN, SHARED_OPS };

/* True if the back end may be used; false: it is paused. */
bool breaker_allows(const struct shared_backend *backend);
/* Counts the result of an operation that began at `begin_ms`. Pauses a back end that seems dead until a probe succeeds: one that did not
 * answer this operation nor any other since it began, or that gave many unusable answers in a row (`patience`). `kind`: metric label. */
void breaker_note(struct shared_backend *backend, enum shared_op op, const char *kind, uint64_t begin_ms,
                  enum shared_result result);

/* ---- shared.c ---- */
/* Opens the back ends of the configuration. SL_MALFORMED if it is invalid; SL_BUSY. */
enum sl_code shared_init(const struct config *config, struct sl_error *error);
void shared_drain(void) SL_SUSPENDS; /* writes what is queued, for a few seconds at most; then the layer is closed */
bool shared_active(void);            /* true if there is a back end */

struct shared_query { /* a question for an entry */
    const struct cache_kind *kind;
    struct cache_lifetimes lifetimes;
    struct sl_str key, scope;
    int64_t stamp_ns; /* newest invalidation stamp of the key's files: older values are not used; 0 = there is none */
    /* the start of this process: with restart_retries_malformed, older errors of malformed files count as expired */
    int64_t start_ns;
    bool restart_retries_malformed;
};
struct shared_result_value {
    struct shared_value value;
    uint64_t left_ns; /* remaining lifetime of an error */
    bool stale;       /* a value was found that cannot be used, for example as it is too old: it is to be replaced */
    const struct shared_backend *from; /* that has the value */
};
/* Asks the back ends one after the other. True if one has the entry: contents are in `fd`, whose file offset is undefined. False: the file
 * is empty again. */
bool shared_get(const struct shared_query *question, int fd, struct shared_result_value *finding) SL_SUSPENDS;

enum shared_reason {
    SHARED_NEW,     /* the entry was computed here */
    SHARED_REFRESH, /* it is in use: written again if a bucket has deleted it as old. Once an hour */
};
/* Queues contents to be written to the back ends; takes a reference of its own. `replace`: an existing value is overwritten. */
void shared_enqueue(const struct cache_kind *kind, struct sl_str key, struct cache_item *item,
                    enum shared_reason reason, bool replace);
/* If there are two back ends, and the entry was found in the second, the bucket: queues it to be written to the first, the Redis. */
void shared_fill_first(const struct cache_kind *kind, struct sl_str key, struct cache_item *item,
                       const struct shared_result_value *finding);
/* True if a result is valid on every machine: contents, or that the file does not exist or is malformed. That a source cannot be reached,
 * refuses or is slow may be the fault of this machine. */
static inline bool shared_is_definitive(enum sl_code code)
{
    return code == SL_OK || code == SL_NOT_FOUND || code == SL_MALFORMED;
}

/* Queues an error that expires `ttl_ns` from now. */
void shared_enqueue_error(const struct cache_kind *kind, struct sl_str key, const struct sl_error *error,
                          uint64_t ttl_ns);

/* Deletes the entry from all back ends. */
void shared_delete(const struct cache_kind *kind, const struct shared_name *name) SL_SUSPENDS;

/* Announces to other machines, through the Redis, that the files changed at `at_ns` (nanoseconds since the epoch). False if that failed;
 * true if there is no Redis. */
bool shared_publish_invalidation(const struct cache_file *files, size_t count, int64_t at_ns) SL_SUSPENDS;

/* ---- redis.c ---- */
struct redis_answer; /* redis/redis.h */
/* Sends a command to the shared cache's Redis; SHARED_HIT: there is an answer, possibly an error of Redis. */
enum shared_result shared_command(const struct sl_str *words, size_t count, struct redis_answer *answer) SL_SUSPENDS;

/* ---- redis_log.c ---- */
/* Starts a fiber of `group` that applies invalidations of other machines. `name`: namespace of the keys in Redis. */
void redis_log_init(const char *name, struct shared_backend *redis, struct fiber_group *group);
bool redis_log_publish(const struct cache_file *files, size_t count, int64_t at_ns) SL_SUSPENDS;
void redis_log_close(void);

/* ---- redis_policy.c: does the Redis evict? ---- */
/* Starts a fiber of `group` that checks the server's eviction policy every minute; with `bounded.redis_manage` it also sets the policy. */
void redis_policy_init(const struct config *config, struct shared_backend *redis, struct fiber_group *group);
bool redis_policy_keeps(void); /* true if it is known never to evict */

/* ---- write_queue.c: writes that wait for a fiber ---- */
enum { SHARED_BACKENDS = 2 };
struct queued_write { /* an entry to be written; allocated by malloc */
    struct sl_link link;
    const struct cache_kind *kind;
    struct shared_name name;
    struct cache_item *item; /* a reference; NULL: an error */
    struct sl_error error;
    int64_t created_s;
    uint64_t ttl_s; /* time to live of an error */
    enum shared_reason reason;
    bool replace;
    struct shared_backend *to[SHARED_BACKENDS]; /* NULL = not to this one */
};
void write_queue_init(const struct config *config);
void write_queue_add(struct queued_write *queued); /* takes it over */
void write_queue_drain(uint64_t ms) SL_SUSPENDS;

/* ---- pack.c: pool jobs ---- */
struct pack_job { /* compresses an entry */
    struct sl_bytes contents;
    uint64_t max_packed;      /* limit of the compressed size; above it the result is `too_large` */
    struct sl_mapping packed; /* result; unmapped by the caller. Empty `bytes.data`: too large, or `error` is set */
    bool too_large;
    struct sl_error error;
};
void pack_run(void *pack);

struct unpack_job { /* decompresses an entry */
    struct sl_bytes packed;
    int fd;            /* file that gets the contents */
    uint64_t max_size; /* limit of the contents */
    enum sl_code code;
    struct sl_error error;
};
void unpack_run(void *unpack); /* writes the frame's contents at offset 0 */
