/* Jobs: symbolications that outlive the request that started them. A job runs as a detached fiber; its client waits for it,
 * or is told its id and asks again. Loop thread only. */
#pragma once

#include "api/api.h"
#include "core/pool.h"

enum job_task { TASK_SYMBOLICATE, TASKS };

enum job_outcome { JOB_RUNNING, JOB_COMPLETED, JOB_FAILED, JOB_TIMEOUT, JOB_INTERNAL_ERROR, JOB_BUSY };

struct job {
    struct sl_arena arena; /* for the work; empty once the job is done */
    struct sl_buf answer;  /* written by `run`: the whole JSON text of the answer */
    struct service *service;
    const struct config *config; /* that it began with; held until the work is done */
    /* private to jobs.c */
    enum job_task task;
    enum job_outcome outcome;
    /* SL_OK: `answer` is complete. SL_CANCELLED: the group was cancelled. SL_BUSY: there was not enough
     * memory for it; waiters are told to come again. Anything else is an internal error. */
    enum sl_code (*run)(struct job *job, void *arg, struct sl_error *error) SL_SUSPENDS;
    void *arg;
    struct fiber_group group;
    struct fiber_wait_list waiters;
    unsigned waiting; /* handlers that wait */
    bool revealed;    /* somebody knows the id */
    bool fetched;     /* the result was answered at least once */
    uint8_t id[16];
    uint64_t started_ns, finished_ms, polled_ms;
    size_t kept_bytes; /* of `answer`, counted in the service */
    int spilled;       /* file that holds the answer instead of `answer`; -1 = none */
    size_t spilled_size;
    struct job *next_finished, *next_spare;
};

/* Whether another job may run now; counts a refusal. The answer is set when not. */
bool job_slot_free(struct http_exchange *x);

/* A job that does not run yet: the request is read into its arena. NULL when out of memory. */
struct job *job_new(struct service *service, enum job_task task);
void job_discard(struct job *job); /* of a job that was not started */

/* Starts `run(job, arg)`; `arg` lies in the job's arena. Then waits as the query's `timeout` says and answers. The job
 * belongs to the service afterwards. */
void job_start(struct http_exchange *x, struct job *job,
               enum sl_code (*run)(struct job *job, void *arg, struct sl_error *error), void *arg) SL_SUSPENDS;

/* GET /requests/{id} */
void job_poll(struct http_exchange *x) SL_SUSPENDS;
