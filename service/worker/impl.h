/* The pool of workers; private to this folder. All functions can be called on any thread. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "worker/launcher.h"

enum worker_state {
    WORKER_NONE,     /* the slot is free */
    WORKER_STARTING, /* the launcher has been asked to start it */
    WORKER_IDLE,
    WORKER_BUSY,  /* lent to a thread */
    WORKER_ENDING /* its socket is closed and a kill requested; waits for LAUNCHER_DIED */
};

struct worker_slot {
    enum worker_state state;
    uint64_t id; /* unique in the pool, never reused */
    pid_t pid;
    int socket, report;  /* this process's ends of the worker's job socket and of its report pipe */
    bool has_greeted;    /* its hello was read, and it has the seccomp filter */
    bool is_watched;     /* its socket is in the epoll set pool->ready */
    bool is_dead;        /* the process has ended; the slot of a busy worker is kept until its thread frees it */
    int status;          /* wait status; -1 = unknown */
    unsigned jobs;       /* number of jobs it was given */
    unsigned generation; /* of the settings it was started with */
};

struct worker_pool {
    struct worker_launcher *launcher;
    pthread_t events;        /* reads the launcher's messages */
    int ready;               /* epoll descriptor for the sockets of calls that worker_begin has begun */
    _Atomic uint64_t serial; /* of the last request */
    atomic_bool is_aborted;  /* by worker_pool_abort */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* signalled when a waiting thread may be able to go on */
    struct worker_settings settings;
    unsigned generation; /* of the settings: incremented by worker_pool_configure */
    bool is_lost;        /* the launcher has ended */
    uint64_t next_id;
    unsigned waiting, waiting_for_new; /* threads in pool_take_worker */
    uint64_t failures;                 /* number of starts that failed */
    int failure;                       /* errno of the last failed start */
    uint32_t measures; /* what confines the first worker that said hello (confine.h); 0 = none has yet */
    uint64_t started, ended[WORKER_ENDS];
    struct worker_slot slots[LAUNCHER_MAX_WORKERS];
};

/* Waits for an idle worker and lends it to the calling thread; with `is_new`, one that has had no job. SL_CANCELLED; SL_BUSY: no worker can
 * be started. */
enum sl_code pool_take_worker(struct worker_pool *pool, bool is_new, struct worker_slot **slot, struct sl_error *error);

/* Lends an idle worker whose hello was read to the calling thread, if there is one and no thread waits for a worker; else returns NULL.
 * Never blocks. */
struct worker_slot *pool_try_take_worker(struct worker_pool *pool);

/* Gives a worker back to the pool after its answer; `heap` is the size of its heap from that answer, in bytes. */
void pool_return_worker(struct worker_pool *pool, struct worker_slot *slot, uint64_t heap);

/* Kills a worker that is lent to the calling thread, waits for its death, and frees the slot. Set `*is_dying` if the worker has closed
 * its socket: then it first gets two seconds to exit by itself, and `*is_dying` becomes false if it does not. Copies the text of its
 * report pipe to `report` (`size` bytes, terminated). Returns the wait status; -1 = unknown. */
int pool_kill_worker(struct worker_pool *pool, struct worker_slot *slot, bool *is_dying, char *report, size_t size);

/* Counts the end of a worker during a job. */
void pool_count_end(struct worker_pool *pool, enum worker_end end);
/* Returns a copy of the settings. */
struct worker_settings pool_get_settings(struct worker_pool *pool);

/* True if the pool is aborted or the calling thread is cancelled (base/cancel.h). */
bool pool_is_cancelled(const struct worker_pool *pool);

/* Reads the hello of a worker that is lent to the calling thread, unless it was read before. False if no valid hello came within ten
 * seconds, or the worker has no seccomp filter. */
bool pool_read_hello(struct worker_pool *pool, struct worker_slot *slot);

/* Handles a message of the launcher about a worker. Takes over the descriptors of the worker's socket and report pipe; -1 = none. */
void pool_on_launcher_message(struct worker_pool *pool, const struct launcher_message *message, int socket, int report);
void pool_on_start_failed(struct worker_pool *pool, int error); /* a worker could not be started; errno */
void pool_on_launcher_lost(struct worker_pool *pool);           /* the launcher has ended */
void pool_keep_warm(struct worker_pool *pool);                  /* starts workers up to `settings.warm` */
void pool_retire_old(struct worker_pool *pool);                 /* ends idle workers with outdated settings */
