/* The layer behind the disk, common to many machines: one bucket (GCS, S3, or a directory for tests), a Redis, or both.
 * Private to this folder.
 *
 *     cache.c ── shared.c: which back ends, in which order ── breaker.c: the dead are left alone
 *        │                                                        ├── redis.c ── redis/: the connection
 *        └──── write_queue.c: the queue of what is stored             │   └── redis_log.c: what others were told to forget
 *                 │                                               ├── bucket.c: S3, GCS
 *                 └── pack.c: zstd                                └── directory.c
 *
 * It never fails a request, and delays it only by the back ends' time limits: whatever goes wrong is a miss and a metric.
 * An entry's name is "<kind>/<relative path>" of its current version. The first write of a name wins: all machines make
 * the same bytes of the same key. Loop thread only, unless a function says pool. */
#pragma once

#include "cache/impl.h"

enum shared_result {
    SHARED_HIT,
    SHARED_MISS,
    SHARED_WRITTEN,
    SHARED_SKIPPED,     /* it was there already, or does not fit */
    SHARED_TIMEOUT,     /* no answer */
    SHARED_UNREACHABLE, /* no connection, or it broke */
    SHARED_ERROR,       /* an answer that is of no use */
    SHARED_CANCELLED,
};

struct shared_name {
    char text[160];
};
void shared_name(struct shared_name *name, const struct cache_kind *kind, struct sl_str key);

/* What a back end found. */
struct shared_value {
    enum sl_code code;     /* SL_OK: contents, and the file holds them */
    struct sl_error error; /* else */
    int64_t created_s;     /* 0 = not known */
};

/* What is stored. */
struct shared_entry {
    const char *name;
    enum sl_code code;
    struct sl_bytes contents; /* SL_OK */
    struct sl_bytes packed;   /* the same as one zstd frame (RFC 8878) */
    struct sl_bytes marker;   /* an error, by cache_error_encode */
    int64_t created_s;
    uint64_t ttl_s; /* of an error */
    bool replace;   /* what is there is known to be outdated */
};

struct shared_backend {
    const char *name;    /* metric label */
    unsigned patience;   /* useless answers in a row until it is left alone */
    bool negative;       /* may hold errors */
    bool packed;         /* stores `packed` */
    uint64_t max_packed; /* bytes */
    /* HIT or MISS or what went wrong; `fd` is empty and may hold anything after a failure. */
    enum shared_result (*get)(const char *name, int fd, struct shared_value *value) SL_SUSPENDS;
    enum shared_result (*put)(const struct shared_entry *entry) SL_SUSPENDS;
    enum shared_result (*exists)(const char *name) SL_SUSPENDS;
    /* HIT: it is not there now. */
    enum shared_result (*del)(const char *name) SL_SUSPENDS;
    /* HIT when the back end answers. */
    enum shared_result (*probe)(void) SL_SUSPENDS;
    void (*close)(void); /* in a fiber, nothing running; NULL = nothing to close */

    /* breaker.c */
    unsigned failures;
    bool down, was_up;
    uint64_t last_answer_ms;
    const char *last_error;    /* NULL = none yet */
    struct fiber_group *group; /* of the fiber that waits for the come-back */
};

/* The back end of the configuration; NULL with an error when it cannot be: `*key` is then the key at fault. */
struct shared_backend *shared_redis(const struct config *config, struct fiber_group *group, const char **key,
                                    struct sl_error *error);
/* `arena`: for what it keeps; `group`: of its fibers. */
struct shared_backend *shared_bucket(const struct config *config, struct sl_arena *arena, struct fiber_group *group,
                                     struct sl_error *error);
/* What the last request to it that failed was answered, for people; empty when none did. */
const char *bucket_trouble(void);
struct shared_backend *shared_directory(const struct config *config, const char **key, struct sl_error *error);
/* What shared_redis would refuse; SL_OK: nothing. */
enum sl_code shared_check_redis(const struct config *config, const char **key, struct sl_error *error);

/* ---- breaker.c ---- */
enum shared_op { SHARED_GET, SHARED_PUT, SHARED_EXISTS, SHARED_DEL, SHARED_LISTEN, SHARED_OPS };

/* False: it is left alone at the moment. */
bool breaker_allows(const struct shared_backend *backend);
/* Counts the result of an operation that began at `begin_ms`, and starts waiting for the come-back of a back end that
 * seems dead: one that did not answer while it answered nobody else, or gave many useless answers in a row. */
void breaker_note(struct shared_backend *backend, enum shared_op op, const char *kind, uint64_t begin_ms,
                  enum shared_result result);

/* ---- shared.c ---- */
enum sl_code shared_init(const struct config *config, struct sl_error *error);
void shared_drain(void) SL_SUSPENDS; /* stores what is queued, for a few seconds at most; then nothing is shared */
bool shared_active(void);

struct shared_question {
    const struct cache_kind *kind;
    struct cache_lifetimes lifetimes;
    struct sl_str key, scope;
    int64_t stamp_ns; /* what is older has been replaced at its source; 0 = nothing was */
    int64_t start_ns;
    bool restart_retries_malformed;
};
struct shared_finding {
    struct shared_value value;
    uint64_t left_ns; /* of an error */
    bool stale;       /* what was found is too old to count */
    const struct shared_backend *from;
};
/* Asks the back ends in their order. True when one had it: contents are in `fd`, whose offset is anywhere. False: the
 * file is empty again. */
bool shared_get(const struct shared_question *question, int fd, struct shared_finding *finding) SL_SUSPENDS;

enum shared_reason {
    SHARED_NEW,     /* computed here */
    SHARED_REFRESH, /* in use for an hour: so that rules that delete what is old do not delete it */
};
/* Queues contents; takes a reference of its own. */
void shared_offer(const struct cache_kind *kind, struct sl_str key, struct cache_item *item, enum shared_reason reason,
                  bool replace);
/* What the second back end had, the first one gets. */
void shared_pass_on(const struct cache_kind *kind, struct sl_str key, struct cache_item *item,
                    const struct shared_finding *finding);
/* Whether an error is what a source said of a file, and so true on every machine: that it is not there, or what it is. That a
 * source could not be reached, refused or was too slow may be this machine's own fault. */
static inline bool shared_is_fact(enum sl_code code)
{
    return code == SL_OK || code == SL_NOT_FOUND || code == SL_MALFORMED;
}

/* Queues an error that lives for `ttl_ns` from now on. */
void shared_offer_error(const struct cache_kind *kind, struct sl_str key, const struct sl_error *error,
                        uint64_t ttl_ns);

/* Removes an entry of that name from all back ends. */
void shared_forget(const struct cache_kind *kind, const struct shared_name *name) SL_SUSPENDS;

/* Lets other machines know that the files changed at a time (nanoseconds since the epoch). */
bool shared_tell(const struct cache_file *files, size_t count, int64_t at_ns) SL_SUSPENDS;

/* ---- redis.c ---- */
struct redis_answer; /* redis/redis.h */
/* A command of the shared cache's Redis; SHARED_HIT: answered, whatever the answer is. */
enum shared_result shared_command(const struct sl_str *words, size_t count, struct redis_answer *answer) SL_SUSPENDS;

/* ---- redis_log.c ---- */
void redis_log_init(const char *name, struct shared_backend *redis, struct fiber_group *group);
bool redis_log_tell(const struct cache_file *files, size_t count, int64_t at_ns) SL_SUSPENDS;
void redis_log_close(void);

/* ---- redis_policy.c: whether the Redis evicts ---- */
/* Looks every minute; with `bounded.redis_manage` the server is told what to keep first. */
void redis_policy_init(const struct config *config, struct shared_backend *redis, struct fiber_group *group);
bool redis_policy_keeps(void); /* as far as is known: a server that does not tell is thought to be fine */

/* ---- write_queue.c ---- */
enum { SHARED_BACKENDS = 2 };
struct queued_write { /* malloc */
    struct sl_link link;
    const struct cache_kind *kind;
    struct shared_name name;
    struct cache_item *item; /* reference; NULL: an error */
    struct sl_error error;
    int64_t created_s;
    uint64_t ttl_s;
    enum shared_reason reason;
    bool replace;
    struct shared_backend *to[SHARED_BACKENDS]; /* NULL = none */
};
void write_queue_init(const struct config *config);
void write_queue_add(struct queued_write *queued); /* takes it over */
void write_queue_drain(uint64_t ms) SL_SUSPENDS;

/* ---- pack.c: pool jobs ---- */
struct pack {
    struct sl_bytes contents;
    uint64_t max_packed;
    struct sl_mapping packed; /* out; unmapped by the caller. Empty `bytes.data`: too large, or `error` is set */
    bool too_large;
    struct sl_error error;
};
void pack_run(void *pack);

struct unpack {
    struct sl_bytes packed;
    int fd;
    uint64_t max_size;
    enum sl_code code;
    struct sl_error error;
};
void unpack_run(void *unpack); /* writes the frame's contents at offset 0 */
