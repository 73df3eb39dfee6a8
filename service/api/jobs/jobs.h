/* Jobs: symbolications that may outlive the request that started them. A job runs as a detached fiber; its client waits for it,
 * or gets its id and polls (GET /requests/{id}). Loop thread only.
 *
 * Each kind of job is a table of functions (struct job_kind), named by the routes that start it. What all kinds share is in
 * receive.c (heads and bodies) and run.c (memory, pool, limit of the answer, damaged cache files):
 *
 *     job_handle: open ─ head ─ read ─▶ a fiber: prepare ─▶ run ─▶ write ─▶ finish ─▶ release ─▶ the answer
 *     job_run_local: open ─ read_local ─▶            the same steps                          ─▶ the answer */
#pragma once

#include "api/answer_limit.h"
#include "api/api.h"
#include "api/json_document.h"
#include "core/pool.h"

struct api_query;
struct job;

/* One step of a job. Returns SL_OK; SL_MALFORMED or SL_UNSUPPORTED if the input cannot be used (the job's answer says why);
 * SL_CANCELLED; SL_BUSY if there is not enough memory (clients are asked to retry). Any other code is an internal error. */
typedef enum sl_code job_step(struct job *job, void *request, struct sl_error *error);

/* One kind of job: the functions that job_handle and job_run call, in this order. Functions that a kind does not need are NULL. */
struct job_kind {
    const char *task; /* name of the kind in metrics and in the log */
    size_t size;      /* bytes of the struct that a request is read into */
    /* Initializes an empty request; the memory is zero on entry. */
    void (*open)(struct job *job, void *request);
    /* Stores the query and the headers of the HTTP request in `request`, before the body is received. */
    void (*head)(struct http_exchange *x, void *request);
    /* Parses the body, which lies in the job's arena, into `request`. False: `failure` says why. Runs on the loop or the pool, so it
     * neither suspends nor uses shared state. */
    bool (*read)(struct job *job, void *request, struct sl_str body, struct json_failure *failure);
    bool takes_file; /* the body may also be the file to symbolicate itself, as application/octet-stream */
    size_t files;    /* offset of the struct request_files in the request; 0: bodies are JSON only, never forms */
    /* Answers a body that `read` refused. NULL: the default answer, which is text for a wrong JSON body and {"detail":...} else. */
    void (*refuse)(struct http_exchange *x, const struct json_failure *failure);
    /* Receives and parses the body itself, instead of `read`. False: the answer is set, or the client is gone. */
    bool (*receive)(struct http_exchange *x, struct job *job, void *request) SL_SUSPENDS;
    /* True if this client may send such a request. False: the answer is set. */
    bool (*is_allowed)(struct http_exchange *x, const void *request);
    /* Waits for the job, answers in a format of its own, and calls job_remove_client; job_check then checks neither query nor
     * Content-Type. NULL: job_answer waits and answers. */
    void (*answer)(struct http_exchange *x, struct job *job) SL_SUSPENDS;
    /* Copies a command's request (struct local_request or struct crash_file, which outlives the job) into `request`. Instead of
     * `read` when job_run_local starts the job. */
    bool (*read_local)(struct job *job, void *request, const void *local, struct json_failure *failure);
    /* First step: reads and looks up the input of `run`. May suspend. Called again, after `undo` has released what it found, when a
     * cache file turned out to be damaged. */
    job_step *prepare;
    void (*undo)(void *request);
    /* Second step: does the look-ups. May suspend. When a cache file turned out to be damaged, `reset` discards the results, and `run`
     * and `write` are called again. */
    job_step *run;
    void (*reset)(void *request);
    /* Third step: writes job->answer, unless `run` has written it. Neither suspends nor uses shared state, as it runs on the pool or
     * where `executor` says (see job_work; NULL: POOL_SYMBOLICATE). `memory` returns how many bytes to reserve for it first, in addition
     * to the arena. */
    job_step *write;
    unsigned (*executor)(void *request);
    uint64_t (*memory)(const void *request);
    /* Called once after the steps, with their result. May write job->answer, for example to describe a failure. */
    void (*finish)(struct job *job, void *request, enum sl_code code, const struct sl_error *error);
    /* Releases what the request holds. Called exactly once, also for a job that was never started. */
    void (*release)(void *request);
};

enum job_outcome {
    JOB_RUNNING,
    JOB_COMPLETED,
    JOB_FAILED,
    JOB_TIMEOUT,
    JOB_INTERNAL_ERROR,
    JOB_BUSY,
    JOB_CANCELLED /* its client is gone, and the id was sent to no client */
};

struct job {
    struct sl_arena arena;            /* memory of the work; emptied when the job is done */
    struct sl_buf answer;             /* written by the steps: the whole JSON answer */
    struct answer_limit limit;        /* size limit of the answer */
    struct memory_reservation memory; /* reservation for the arena, and for the answer while it is written */
    struct service *service;
    const struct config *config; /* configuration at the start of the job (a reference); NULL when the work is done */
    const char *task;            /* name for metrics and the log: of the route's kind, even if `read` replaces `kind` */
    const struct job_kind *kind; /* `read` may replace it */
    bool is_large;               /* job_reserve was last asked for so much that steps on the pool run as POOL_HEAVY */
    struct sl_str scope;         /* scope of cached files that it may use; in the arena */
    void *request;               /* of kind->size bytes, in the arena; NULL: released */
    enum sl_code code;           /* result of the steps; valid when `outcome` is not JOB_RUNNING */
    enum job_outcome outcome;    /* JOB_RUNNING, or how the job ended */
    /* private to this folder */
    struct fiber_group group;
    struct fiber_wait_list waiters;
    unsigned waiting;  /* number of handlers that use the job, which is not freed before this is 0 */
    bool revealed;     /* the id was sent to a client, which may poll for it */
    bool is_abandoned; /* cancelled, as its client is gone and the id was sent to no client */
    bool announced;    /* the shared Redis has the marker that this node runs the job */
    bool fetched;      /* the result was sent at least once */
    uint8_t id[16];
    char *key_id; /* id of the client's access key, or NULL; clients with another key cannot find the job */
    uint64_t started_ns, finished_ms, polled_ms; /* start; end; last poll, or reply with its id */
    uint64_t waited_ns;                          /* how long its fiber waited in queues; set when it ends */
    struct shared_blob *result;                  /* the stored answer of an ended job whose id a client knows */
    size_t stored_result_bytes;             /* bytes of `result` in memory, counted in service.stored_result_bytes */
    struct job *next_finished, *next_spare; /* links of service.finished_first and service.spare */
};

/* ---- jobs.c: the job itself ---- */

/* True if another job may run now; if not, counts a refusal and sets the answer. */
bool job_slot_free(struct http_exchange *x);

/* Allocates a job of this kind with an empty request; job_begin starts it. `scope` says which cached files the job may use. NULL when out
 * of memory: the answer is set. */
struct job *job_new(struct http_exchange *x, const struct job_kind *kind, struct sl_str scope);
void job_discard(struct job *job); /* frees a job that was not begun, or has ended and is used by no handler */

/* Starts the steps of the job. True: the job belongs to the service, and is not freed before the caller calls job_remove_client.
 * False: too many jobs run; the answer is set, and the caller frees the job (job_discard). */
bool job_begin(struct http_exchange *x, struct job *job);
/* Ends the use of a job that job_find or job_begin began. Cancels the job if no handler uses it any more, this handler's client has
 * disconnected, and the id was never sent to a client. */
void job_remove_client(struct job *job);

/* Parses an id, with or without hyphens, in any case. */
bool job_id_parse(struct sl_str text, uint8_t id[16]);

/* Finds a job whose id was sent to a client. NULL: no such job on this node, or it was started with another access key than this
 * request has. The caller calls job_remove_client when it no longer uses the job. */
struct job *job_find(const struct http_exchange *x, const uint8_t id[16]);

/* Answers {"status":"pending",...} with the id. */
void job_reply_pending(struct http_exchange *x, const uint8_t id[16]);
/* Returns how long a client wants to wait (`timeout` of the query), in ms; UINT64_MAX: until the job ends. */
uint64_t job_client_timeout_ms(const struct api_query *query);
void job_id_format(const uint8_t id[16], char out[37]); /* writes the id as a UUID */

void jobs_init(struct service *service);            /* before the first job */
void jobs_collect_metrics(struct service *service); /* sets the metric of running jobs */
/* Frees all jobs, which must have ended, and then calls `closed` from the loop. */
void jobs_close(struct service *service, void (*closed)(struct service *service));

/* ---- wait.c: waiting for a job ---- */

/* Waits until the job has ended, for at most `most_ms` (UINT64_MAX: no limit). FIBER_WOKEN: it has ended (see job->outcome), or
 * still runs and the service shuts down; FIBER_TIMED_OUT; FIBER_CANCELLED: the client is gone. The caller must hold the job
 * (job_begin, job_find). */
enum fiber_wait job_wait(struct job *job, uint64_t most_ms) SL_SUSPENDS;

/* Waits for a job as long as the query's `timeout` says, answers with its result or, if it still runs, with its id to poll with, and
 * calls job_remove_client. */
void job_answer(struct http_exchange *x, struct job *job, const struct api_query *query) SL_SUSPENDS;

/* ---- receive.c: requests that start a job ---- */

/* For routes that name a kind of job: job_check checks the headers before the body is read, job_handle does the rest. */
void job_check(struct http_exchange *x);
void job_handle(struct http_exchange *x) SL_SUSPENDS;

/* ---- run.c: the steps ---- */

/* Sets the job's kind, task and scope, and allocates an empty request. False when out of memory. */
bool job_set_kind(struct job *job, const struct job_kind *kind, struct sl_str scope);
/* Releases what the request holds. Further calls do nothing. */
void job_release(struct job *job);

/* Runs the steps of the job's kind, then `finish` and `release`. SL_OK: job->answer is complete; other codes as job_step. */
enum sl_code job_run(struct job *job, struct sl_error *error) SL_SUSPENDS;

/* Reserves memory for what the arena holds now and `bytes` more. Waits for a limited time while other requests have the memory
 * (memory.h). SL_BUSY if it did not become free in time, or if the whole budget is smaller; SL_CANCELLED if the job was cancelled. */
enum sl_code job_reserve(struct job *job, uint64_t bytes, struct sl_error *error) SL_SUSPENDS;

enum { JOB_ON_LOOP = 1 << 8 }; /* an executor for job_work, beside the values of enum pool_job */
/* Runs a step, which must not suspend, where `executor` says: on the pool (an enum pool_job, maybe with POOL_HEAVY), or in place
 * (JOB_ON_LOOP). Returns the step's code, or that of pool_run; SL_INTERNAL also when a mapped file could not be read. The first call after
 * `run` began starts to count the answer's size against its limit. */
enum sl_code job_work(struct job *job, unsigned executor, job_step *step, struct sl_error *error) SL_SUSPENDS;

/* Runs a request of `kind` for a command, without a server. `local` is what the kind's read_local takes; `scope` with data NULL is
 * the global scope. Appends the answer to `answer`, which must be empty; the caller frees it. SL_MALFORMED: the request is not
 * valid, `error` or the answer says why; other codes as job_step. */
enum sl_code job_run_local(const struct job_kind *kind, const struct config *config, struct sl_str scope,
                           const void *local, struct sl_buf *answer, struct sl_error *error) SL_SUSPENDS;
