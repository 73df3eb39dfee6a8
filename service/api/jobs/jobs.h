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

/* One step of a job. SL_OK; SL_MALFORMED or SL_UNSUPPORTED: the input cannot be used, and the job's answer says why;
 * SL_CANCELLED; SL_BUSY: not enough memory, clients are asked to retry. Any other code is an internal error. */
typedef enum sl_code job_step(struct job *job, void *request, struct sl_error *error);

/* One kind of job. NULL members are skipped. */
struct job_kind {
    const char *task; /* for metrics and the log */
    size_t size;      /* bytes of the struct that a request is read into */
    /* Initializes an empty request; the memory is zero on entry. */
    void (*open)(struct job *job, void *request);
    /* Reads query and headers of the exchange. */
    void (*head)(struct http_exchange *x, void *request);
    /* Reads the body, which lies in the job's arena. Pure: loop or pool. */
    bool (*read)(struct job *job, void *request, struct sl_str body, struct json_failure *failure);
    bool takes_file; /* `receive` also takes application/octet-stream, which is the file itself */
    size_t files;    /* offset of the request's struct request_files; 0: bodies are JSON only, never forms */
    /* Answers a body that cannot be read. NULL: the usual {"detail":...}, and plain text when the body is at fault. */
    void (*refuse)(struct http_exchange *x, const struct json_failure *failure);
    /* Receives the body instead of `read`. False: the answer is set, or the client is gone. */
    bool (*receive)(struct http_exchange *x, struct job *job, void *request) SL_SUSPENDS;
    /* True if this client may send such a request. False: the answer is set. */
    bool (*is_allowed)(struct http_exchange *x, const void *request);
    /* Waits for the job, answers in its own format, and leaves the job; query and media type are ignored then. NULL:
     * job_answer. */
    void (*answer)(struct http_exchange *x, struct job *job) SL_SUSPENDS;
    /* Reads a command's request (struct local_request, struct crash_file), which outlives the job. */
    bool (*read_local)(struct job *job, void *request, const void *local, struct json_failure *failure);
    /* Reads and looks up the input of `run`. May suspend. Repeated, after `undo`, when a cache file was damaged. */
    job_step *prepare;
    void (*undo)(void *request);
    /* Does the look-ups. May suspend. Repeated, with `write` and after `reset`, when a cache file was damaged. */
    job_step *run;
    void (*reset)(void *request);
    /* Writes the answer, unless `run` did. Pure: runs where `executor` says (as for job_work; NULL: POOL_SYMBOLICATE), once
     * `memory` bytes beyond the arena are reserved. */
    job_step *write;
    unsigned (*executor)(void *request);
    uint64_t (*memory)(const void *request);
    /* Called once with the result of the steps. May still write the answer of a failure. */
    void (*finish)(struct job *job, void *request, enum sl_code code, const struct sl_error *error);
    /* Releases what the request holds; also called if the job never began. */
    void (*release)(void *request);
};

enum job_outcome {
    JOB_RUNNING,
    JOB_COMPLETED,
    JOB_FAILED,
    JOB_TIMEOUT,
    JOB_INTERNAL_ERROR,
    JOB_BUSY,
    JOB_CANCELLED /* its client is gone, and the id was not given to anybody */
};

struct job {
    struct sl_arena arena;            /* memory of the work; emptied when the job is done */
    struct sl_buf answer;             /* written by the steps: the whole JSON answer */
    struct answer_limit limit;        /* size limit of the answer */
    struct memory_reservation memory; /* reservation for the arena, and for the answer while it is written */
    struct service *service;
    const struct config *config; /* configuration that it began with; held until the work is done */
    const char *task;            /* task of the kind that its route names */
    const struct job_kind *kind; /* `read` may replace it */
    bool is_large;               /* needs so much memory that its steps count as heavy work */
    struct sl_str scope;         /* cache scope; in the arena */
    void *request;               /* of kind->size bytes, in the arena; NULL: released */
    enum sl_code code;           /* result of the steps, unless JOB_RUNNING */
    enum job_outcome outcome;    /* result; `answer` is set too, unless JOB_RUNNING or JOB_BUSY */
    /* private to this folder */
    struct fiber_group group;
    struct fiber_wait_list waiters;
    unsigned waiting;  /* handlers that hold the job */
    bool revealed;     /* the id was given to a client */
    bool is_abandoned; /* cancelled: its client is gone and the id was not revealed */
    bool announced;    /* other nodes know its owner */
    bool fetched;      /* the result was sent at least once */
    uint8_t id[16];
    char *key_id; /* id of the client's access key, or NULL; clients with another key cannot find the job */
    uint64_t started_ns, finished_ms, polled_ms;
    uint64_t waited_ns;         /* time of its fiber in queues; set when it is done */
    struct shared_blob *result; /* the stored answer of a revealed job, once it is done */
    size_t stored_result_bytes; /* bytes of `result` in memory, counted in service.stored_result_bytes */
    struct job *next_finished, *next_spare;
};

/* ---- jobs.c: the job itself ---- */

/* True if another job may run now; if not, counts a refusal and sets the answer. */
bool job_slot_free(struct http_exchange *x);

/* Makes a job of the kind, not running yet, with an empty request. NULL: the answer is set. */
struct job *job_new(struct http_exchange *x, const struct job_kind *kind, struct sl_str scope);
void job_discard(struct job *job); /* frees a job that was not begun */

/* Starts its steps. The job then belongs to the service, and the request's memory to the job; the caller holds the job until
 * job_remove_client. False: too many jobs, the answer is set. */
bool job_begin(struct http_exchange *x, struct job *job);
/* Ends the use of the job by a client (job_find, job_begin). Cancels the job if that was its last client and its id was
 * never given to anybody. */
void job_remove_client(struct job *job);

/* Parses an id, with or without hyphens, in any case. */
bool job_id_parse(struct sl_str text, uint8_t id[16]);

/* Finds a revealed job. NULL: no such job on this node, or it was started with another access key than this request has. The
 * caller holds the job until job_remove_client. */
struct job *job_find(const struct http_exchange *x, const uint8_t id[16]);

/* Answers {"status":"pending",...} with the id. */
void job_reply_pending(struct http_exchange *x, const uint8_t id[16]);
/* Returns how long a client wants to wait; UINT64_MAX: until the job ends. */
uint64_t job_client_timeout_ms(const struct api_query *query);
void job_id_format(const uint8_t id[16], char out[37]);

void jobs_init(struct service *service);
void jobs_collect_metrics(struct service *service);
/* Call when all jobs have ended; `closed` is called later. */
void jobs_close(struct service *service, void (*closed)(struct service *service));

/* ---- wait.c: waiting for a job ---- */

/* Waits until a held job ends: at most `most_ms` (UINT64_MAX: no limit), and not when the service stops. FIBER_WOKEN: check the
 * outcome. */
enum fiber_wait job_wait(struct job *job, uint64_t most_ms) SL_SUSPENDS;

/* Waits for a held job as the query's `timeout` says, answers with its result, or its id to poll with, and leaves the job. */
void job_answer(struct http_exchange *x, struct job *job, const struct api_query *query) SL_SUSPENDS;

/* ---- receive.c: requests that start a job ---- */

/* Check (before the body is read) and handler of routes that name a kind of job. */
void job_check(struct http_exchange *x);
void job_handle(struct http_exchange *x) SL_SUSPENDS;

/* ---- run.c: the steps ---- */

/* Gives the job its kind and an empty request. False when out of memory. */
bool job_set_kind(struct job *job, const struct job_kind *kind, struct sl_str scope);
/* Releases what the request holds, once. */
void job_release(struct job *job);

/* Runs the steps of the job's kind, then `finish` and `release`. SL_OK: `answer` is complete; else as job_step. */
enum sl_code job_run(struct job *job, struct sl_error *error) SL_SUSPENDS;

/* Reserves `bytes` of the memory budget beyond what the arena holds. Waits while other requests have the memory, for a limited time
 * (memory.h). SL_BUSY if the memory was not free in time, or the whole budget is smaller; SL_CANCELLED if the job was cancelled. */
enum sl_code job_reserve(struct job *job, uint64_t bytes, struct sl_error *error) SL_SUSPENDS;

/* Runs a pure step on the pool (`executor` is an enum pool_job, maybe with POOL_HEAVY) or on the loop (JOB_ON_LOOP). SL_INTERNAL
 * when a mapped file could not be read, as for pool_run. The first call for `run` begins the limit of the answer. */
enum { JOB_ON_LOOP = 1 << 8 };
enum sl_code job_work(struct job *job, unsigned executor, job_step *step, struct sl_error *error) SL_SUSPENDS;

/* Runs a request of `kind` for a command, without a server; `scope` with data NULL is the global one. Writes the answer into
 * `answer`, which must be empty; the caller frees it. SL_MALFORMED: the request is not valid, `error` or the answer says why;
 * else as job_step. */
enum sl_code job_run_local(const struct job_kind *kind, const struct config *config, struct sl_str scope,
                           const void *local, struct sl_buf *answer, struct sl_error *error) SL_SUSPENDS;
