/* Jobs: symbolications that may outlive the request that started them. A job runs as a detached fiber; its client waits for it,
 * or is told its id and asks again (GET /requests/{id}). Loop thread only. */
#pragma once

#include "api/api.h"
#include "core/pool.h"

struct api_query;

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
    struct sl_buf answer;       /* written by `run`: the whole JSON text of the answer */
    struct memory_share memory; /* of the arena, and of the answer while it is written */
    struct service *service;
    const struct config *config; /* that it began with; held until the work is done */
    const char *task;            /* for metrics and the log: the one of some route */
    enum job_outcome outcome;    /* what became of it; unless JOB_RUNNING or JOB_BUSY, `answer` tells as well */
    /* private to this folder */
    enum sl_code (*run)(struct job *job, void *arg, struct sl_error *error) SL_SUSPENDS;
    void *arg;
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

/* The work of a job. SL_OK: `answer` is complete. SL_MALFORMED, SL_UNSUPPORTED: what was sent
 * cannot be used, as `answer` says. SL_CANCELLED: the group was cancelled. SL_BUSY: there was not enough memory
 * for it; waiters are told to come again. Anything else is an internal error. */
typedef enum sl_code job_run(struct job *job, void *arg, struct sl_error *error) SL_SUSPENDS;

/* ---- jobs.c: the job itself ---- */

/* Whether another job may run now; counts a refusal. The answer is set when not. */
bool job_slot_free(struct http_exchange *x);

/* A job of the route's task that does not run yet: the request is read into its arena. NULL: the answer is set. */
struct job *job_new(struct http_exchange *x);
void job_discard(struct job *job); /* of a job that was not begun */

/* Begins `run(job, arg)`; `arg` lies in the job's arena. The job belongs to the service then, and the request's memory to
 * the job; the caller holds it until job_leave. False: there is no place, the answer is set and the job discarded. */
bool job_begin(struct http_exchange *x, struct job *job, job_run *run, void *arg);
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

/* job_begin and job_answer: all that most handlers do with a job that has read its request. */
void job_start(struct http_exchange *x, struct job *job, const struct api_query *query, job_run *run,
               void *arg) SL_SUSPENDS;
