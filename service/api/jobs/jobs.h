/* Jobs: symbolications that may outlive the request that started them. A job runs as a detached fiber; its client waits for it,
 * or is told its id and asks again (GET /requests/{id}). Loop thread only.
 *
 * Each kind of job is a row (struct job_kind), named by the routes that start it: it says what is done. What all have in common
 * is done by receive.c (heads and bodies) and run.c (memory, the pool, the limit of the answer, damaged cache files):
 *
 *     job_handle: open ─ head ─ read ─▶ a fiber: prepare ─▶ run ─▶ write ─▶ finish ─▶ release ─▶ the answer
 *     job_run_local: open ─ read_local ─▶            the same steps                          ─▶ the answer
 */
#pragma once

#include "api/answer_limit.h"
#include "api/api.h"
#include "api/json_document.h"
#include "core/pool.h"

struct api_query;
struct job;

/* A step of the work on a job's request. SL_OK; SL_MALFORMED, SL_UNSUPPORTED: what was sent cannot be used, as the job's answer
 * says. SL_CANCELLED. SL_BUSY: there was not enough memory for it; waiters are told to come again. Anything else is an internal
 * error. */
typedef enum sl_code job_step(struct job *job, void *request, struct sl_error *error);

/* One kind of jobs. What is NULL is left out. */
struct job_kind {
    const char *task; /* for metrics and the log */
    size_t size;      /* bytes of the struct that a request is read into */
    /* Makes an empty request of zeros. */
    void (*open)(struct job *job, void *request);
    /* Takes what the head of the exchange says. */
    void (*head)(struct http_exchange *x, void *request);
    /* Reads the body, which lies in the job's arena. Pure: loop or pool. */
    bool (*read)(struct job *job, void *request, struct sl_str body, struct json_failure *failure);
    size_t files; /* where the request has its struct own_files; 0: bodies are JSON alone, and never forms */
    /* Answers a body that cannot be read. NULL: as most APIs do, {"detail":...}, and a text when the body is at fault. */
    void (*refuse)(struct http_exchange *x, const struct json_failure *failure);
    /* Takes the body, instead of `read`. False: the answer is set, or the client gone. */
    bool (*receive)(struct http_exchange *x, struct job *job, void *request) SL_SUSPENDS;
    /* Whether this client may send such a request. False: the answer is set. */
    bool (*is_allowed)(struct http_exchange *x, const void *request);
    /* Waits for the job, answers in a form of its own, and leaves it; query and media type do not matter then. NULL: job_answer. */
    void (*answer)(struct http_exchange *x, struct job *job) SL_SUSPENDS;
    /* What a command asks for (struct local_request, struct crash_file), which outlives the job. */
    bool (*read_local)(struct job *job, void *request, const void *local, struct json_failure *failure);
    /* Reads and looks up what `run` is about. May suspend; begun anew, behind `undo`, when a cache file was damaged under it. */
    job_step *prepare;
    void (*undo)(void *request);
    /* Looks up what was asked for. May suspend; begun anew, with `write` and behind `reset`, when a cache file was damaged. */
    job_step *run;
    void (*reset)(void *request);
    /* Writes the answer, unless `run` has. Pure: it runs where job_work is told by `place` (NULL: POOL_SYMBOLICATE), once there are
     * as many bytes as `memory` says beyond those of the arena. */
    job_step *write;
    unsigned (*place)(void *request);
    uint64_t (*memory)(const void *request);
    /* Called once, with what the steps came to. May still write the answer of a failure. */
    void (*finish)(struct job *job, void *request, enum sl_code code, const struct sl_error *error);
    /* Gives back what the request holds; also of one whose job was never begun. */
    void (*release)(void *request);
};

enum job_outcome {
    JOB_RUNNING,
    JOB_COMPLETED,
    JOB_FAILED,
    JOB_TIMEOUT,
    JOB_INTERNAL_ERROR,
    JOB_BUSY,
    JOB_CANCELLED /* its client has left, and nobody else can ask for it */
};

struct job {
    struct sl_arena arena;      /* for the work; empty once the job is done */
    struct sl_buf answer;       /* written by the steps: the whole JSON text of the answer */
    struct answer_limit limit;  /* of the answer */
    struct memory_share memory; /* of the arena, and of the answer while it is written */
    struct service *service;
    const struct config *config; /* that it began with; held until the work is done */
    const char *task;            /* of the kind that its route names */
    const struct job_kind *kind; /* `read` may put another one in its place */
    bool is_large;               /* steps need so much memory that they are heavy work */
    struct sl_str scope;         /* whose entries of the cache count; in the arena */
    void *request;               /* of the kind's size, in the arena; NULL: it was released */
    enum job_outcome outcome;    /* what became of it; unless JOB_RUNNING or JOB_BUSY, `answer` tells as well */
    /* private to this folder */
    struct fiber_group group;
    struct fiber_wait_list waiters;
    unsigned waiting; /* handlers that hold it */
    bool revealed;    /* somebody knows the id */
    bool is_left;     /* cancelled, as nobody does and its client is gone */
    bool announced;   /* and other nodes know whose it is */
    bool fetched;     /* the result was answered at least once */
    uint8_t id[16];
    char *key_id; /* of the access key that was shown, or NULL: who shows another one does not find the job */
    uint64_t started_ns, finished_ms, polled_ms;
    uint64_t waited_ns;     /* of its own fiber, in queues; once it is done */
    struct content *result; /* the answer of a job whose id somebody knows, once it is done */
    size_t kept_bytes;      /* of `result`, in memory and counted in the service */
    struct job *next_finished, *next_spare;
};

/* ---- jobs.c: the job itself ---- */

/* Whether another job may run now; counts a refusal. The answer is set when not. */
bool job_slot_free(struct http_exchange *x);

/* A job of the kind that does not run yet, with an empty request. NULL: the answer is set. */
struct job *job_new(struct http_exchange *x, const struct job_kind *kind, struct sl_str scope);
void job_discard(struct job *job); /* of a job that was not begun */

/* Begins its steps. The job belongs to the service then, and the request's memory to the job; the caller holds it until
 * job_leave. False: there is no place, the answer is set. */
bool job_begin(struct http_exchange *x, struct job *job);
/* A job whose last client leaves because it is gone, and whose id was told to nobody, is cancelled. */
void job_leave(struct job *job);

/* With or without hyphens, in any case. */
bool job_id_parse(struct sl_str text, uint8_t id[16]);

/* For whoever knows the id, and shows the key that the job was sent with; NULL: no such job here. Held as above. */
struct job *job_find(const struct http_exchange *x, const uint8_t id[16]);

/* {"status":"pending",...} with the id. */
void job_reply_pending(struct http_exchange *x, const uint8_t id[16]);
/* How long a client waits; UINT64_MAX = as long as it takes. */
uint64_t job_patience_ms(const struct api_query *query);
void job_id_format(const uint8_t id[16], char out[37]);

void jobs_init(struct service *service);
void jobs_collect_metrics(struct service *service);
/* When all have ended; `closed` is called later. */
void jobs_close(struct service *service, void (*closed)(struct service *service));

/* ---- wait.c: who waits for it ---- */

/* Waits for the end of a held job: at most `most_ms` (UINT64_MAX: as long as it takes), and not when the service stops.
 * FIBER_WOKEN: look at the outcome. */
enum fiber_wait job_wait(struct job *job, uint64_t most_ms) SL_SUSPENDS;

/* Waits for a held job as the query's `timeout` says, and answers: its result, or its id to ask again with. Leaves it. */
void job_answer(struct http_exchange *x, struct job *job, const struct api_query *query) SL_SUSPENDS;

/* ---- receive.c: requests that start a job ---- */

/* Of routes that name a kind of jobs: the checks before the body is read, and the handler. */
void job_check(struct http_exchange *x);
void job_handle(struct http_exchange *x) SL_SUSPENDS;

/* ---- run.c: the steps ---- */

/* Gives the job its kind and an empty request. False when out of memory. */
bool job_open(struct job *job, const struct job_kind *kind, struct sl_str scope);
/* Gives back what the request holds, once. */
void job_release(struct job *job);

/* Takes the request through the steps of its kind, finishes and releases it. SL_OK: `answer` is complete; else as job_step. */
enum sl_code job_run(struct job *job, struct sl_error *error) SL_SUSPENDS;

/* Waits for so many bytes beyond those that the arena holds. SL_BUSY when they cannot be had; SL_CANCELLED. */
enum sl_code job_reserve(struct job *job, uint64_t bytes, struct sl_error *error) SL_SUSPENDS;

/* Does a step that is pure: on the pool (`place` is an enum pool_job, with POOL_HEAVY), or on the loop itself. SL_INTERNAL when a
 * mapped file could not be read, as of pool_run. The limit of the answer begins with the first step of `run`. */
enum { JOB_ON_LOOP = 1 << 8 };
enum sl_code job_work(struct job *job, unsigned place, job_step *step, struct sl_error *error) SL_SUSPENDS;

/* The whole of a request of `kind` for a command, without a server; the scope's data is NULL for everybody's. Puts the whole answer
 * into `answer`, which is empty before and the caller's to free. SL_MALFORMED when it is no such request, as `error` says, or
 * the answer; else as job_step. */
enum sl_code job_run_local(const struct job_kind *kind, const struct config *config, struct sl_str scope,
                           const void *local, struct sl_buf *answer, struct sl_error *error) SL_SUSPENDS;
