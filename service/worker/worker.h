/* Workers: confined processes that read hostile files.
 *
 *     service                    launcher                     worker
 *     pool thread --start------> fork ----------------------> confines itself, says hello
 *          <-------- its socket, its report pipe, pid
 *          --request: inputs, output as descriptors---------> maps the inputs, runs a converter, writes the output
 *          <-----------------------------answer: code, error, result
 *          <-------- pid, wait status ------------------------ dies
 *
 * The launcher is forked before the first thread starts and before any secret is read, so a worker inherits the program and nothing
 * else. A worker has an empty environment, the descriptors of its current job, and the system calls of filter.c; confine.h lists the
 * other measures. It is replaced after some jobs.
 *
 * If a worker dies during its first job, the file is to blame. In a worker that has had other jobs an earlier file may have damaged the
 * memory or left threads running that use up the CPU time: so the job is repeated in a new worker, whose result is final.
 * Results and output of a worker are only as trustworthy as the files it has read: treat them as hostile input. */
#pragma once

#include <sys/types.h>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/error.h"
#include "core/cpu_clock.h"

/* The kernel passes at most 253 descriptors with a message. */
enum { WORKER_MAX_INPUTS = 250, WORKER_MAX_OPTIONS = 4096, WORKER_MAX_RESULT = 4096, WORKER_MAX_THREADS = 64 };

/* Inputs of at most this size are sent in the request, not as descriptors; a request has room for two of this size. In a job their `fd` is
 * -1. */
enum { WORKER_MAX_INLINE = 16 << 10 };

struct worker_input {
    struct sl_bytes bytes; /* data NULL: in a call, the input is all of `fd`; in a job, it is missing */
    int fd;                /* a file that contains `bytes`; the worker may read all of it; -1 = only in memory */
    uint32_t role;         /* meaning defined by the function */
    bool is_scratch; /* not an input: `fd` is an empty file that the function reads and writes; it is not mapped */
    /* in a call: where `bytes` begin in `fd`; in a job always 0: `fd` is -1 if they do not begin there */
    uint64_t offset;
};

struct worker_limits {
    uint64_t max_memory;  /* bytes that the function may be charged for (sl_budget); 0 = no limit */
    uint64_t max_time_ns; /* CPU time, summed over threads */
    uint64_t max_wall_ns; /* 0 = no limit */
    uint64_t input_size;  /* size of the input in bytes, by which the steps of work are limited (sl_budget_init) */
    unsigned threads;     /* maximum number; 0 and 1 = one */
};

/* State of one running conversion, in a worker or in a thread of this process. */
struct conversion {
    struct sl_budget budget;      /* charged for everything the function reads and creates */
    struct cpu_clock clock;       /* CPU time used, and its limit */
    struct cpu_parallel parallel; /* runs pieces of the work in parallel */
    bool is_trial;       /* set by the function: it only inspected the file, so a success is left out of the metrics */
    uint64_t written_ns; /* total duration of all calls of conversion_write() */
};

/* Begins a conversion within `limits`. `base` runs pieces of its work in parallel. `must_stop(clock)` is called from time to time and
 * returns true if the conversion has to end now; cpu_clock_expired does so when its time is used up. */
void conversion_begin(struct conversion *conversion, const struct worker_limits *limits, const struct sl_parallel *base,
                      bool (*must_stop)(void *clock));

/* Returns the code of an ended conversion. A conversion that exceeded a limit has failed (SL_UNSUPPORTED), even if the function
 * succeeded: what it made depends on timing. */
enum sl_code conversion_judge(const struct conversion *conversion, enum sl_code code, struct sl_error *error);

/* Sets the error of a conversion that exceeded its time: SL_UNSUPPORTED "the conversion of the file needs more than 30s of time". */
enum sl_code conversion_fail_time(uint64_t limit_ns, struct sl_error *error);

/* A call, as the function that it runs gets it in the worker. */
struct worker_job {
    const struct worker_function *function;
    struct worker_limits limits; /* as in the call; max_wall_ns is 0, as the pool enforces it */
    struct conversion conversion;
    struct worker_input inputs[WORKER_MAX_INPUTS];
    size_t input_count;
    struct sl_bytes options; /* `options_size` bytes, aligned for any struct */
    int out;                 /* empty file to write; -1 = nothing is written */
};

struct worker_function {
    const char *name; /* for the log */
    size_t options_size, result_size;
    /* Runs in a worker: uses only what is in the job, and opens no files. `result` is zeroed before the call, and sent back also on
     * errors. */
    enum sl_code (*run)(struct worker_job *job, void *result, struct sl_error *error);
    const void *context; /* constant data of the program */
    /* Checks, in the service, a result that came from a worker: each bool is 0 or 1, each enum a value that it has, each text ends
     * within its array, each count fits its array. Reads such members as bytes only. NULL = any bytes are valid. */
    bool (*check)(const struct worker_function *function, const void *result);
};

/* ---- the launcher ---- */
struct worker_launcher;

/* Forks the launcher, whose workers run these functions; `functions` must stay valid and unchanged. The launcher calls `prepare`
 * (NULL = nothing) before it forks workers, which inherit its memory: for libraries that open files at their first use, which a
 * worker cannot. Call this function while the process has one thread and no secrets, from a thread that lives as long as the
 * process: the launcher ends with that thread (PR_SET_PDEATHSIG). NULL on failure, with `error` set. */
struct worker_launcher *worker_launcher_start(const struct worker_function *functions, size_t count,
                                              void (*prepare)(void), struct sl_error *error);
/* Makes the launcher fork a second launcher, for a process that is going to be forked; the caller must not have given the launcher to a
 * pool. The second one ends with the first one, or when all processes have closed its socket. NULL on failure, with `error` set. */
struct worker_launcher *worker_launcher_split(struct worker_launcher *launcher, struct sl_error *error);
pid_t worker_launcher_pid(const struct worker_launcher *launcher);
/* Frees this process's handle of a launcher. The launcher continues if another process has a handle of it, else it ends. */
void worker_launcher_forget(struct worker_launcher *launcher);
/* Ends the launcher and every worker. Only for a launcher that was not given to a pool. */
void worker_launcher_end(struct worker_launcher *launcher);

/* ---- the pool ---- */
struct worker_settings {
    unsigned max_workers;
    unsigned warm;        /* number of workers kept running: started at once, replaced when they end */
    unsigned max_jobs;    /* jobs after which a worker is replaced; 0 = no limit */
    uint64_t max_heap;    /* heap size in bytes at which a worker is replaced; 0 = no limit */
    uint64_t max_memory;  /* bytes a worker may use besides mapped files; 0 = no limit */
    uint64_t max_mapped;  /* bytes of all inputs of one job; 0 = no limit */
    unsigned max_threads; /* of one worker */
};

/* Creates a pool of workers that the launcher forks. Takes over the launcher. On failure returns NULL, with SL_BUSY in `error`, and ends
 * the launcher. */
struct worker_pool *worker_pool_open(struct worker_launcher *launcher, const struct worker_settings *settings,
                                     struct sl_error *error);

/* Changes the settings of new workers, and ends idle workers that have the old ones. `max_workers` stays as in worker_pool_open(). */
void worker_pool_configure(struct worker_pool *pool, const struct worker_settings *settings);

/* Makes running and later calls return SL_CANCELLED within 100 ms. */
void worker_pool_abort(struct worker_pool *pool);

/* Ends the launcher and all workers, and waits for their end. No thread may be in worker_run. */
void worker_pool_close(struct worker_pool *pool);

/* Why a worker ended during a job. */
enum worker_end {
    WORKER_CRASHED,        /* ended by a signal such as SIGSEGV, or exited */
    WORKER_ENDED_OUTSIDE,  /* SIGKILL that the pool did not send: the OOM killer, an operator */
    WORKER_OVER_TIME,      /* killed: its job exceeded a limit of time */
    WORKER_BROKE_PROTOCOL, /* killed: it sent something that is not a valid answer */
    WORKER_CANCELLED,      /* killed: its job was cancelled */
    WORKER_ENDS
};
extern const char *const worker_end_names[WORKER_ENDS]; /* for metrics: "crashed", ... */

struct worker_counts {
    unsigned live, idle;         /* workers */
    uint64_t started;            /* total, also those that ended without a job */
    uint64_t ended[WORKER_ENDS]; /* totals */
    int launcher;                /* process id; -1 = ended */
};
/* Counts the workers that exist now, and all that were started and have ended during a job so far. */
struct worker_counts worker_pool_counts(struct worker_pool *pool);

/* Gets the set of measures (confine.h) that confine the workers, as the first worker has reported it; starts a worker if there is none.
 * SL_BUSY if none could be started; SL_UNSUPPORTED if this machine has no seccomp filters, without which no job can run. */
enum sl_code worker_pool_probe(struct worker_pool *pool, uint32_t *measures, struct sl_error *error);

/* Formats a set of measures (confine.h) for the log and status pages: "seccomp filter, Landlock, ...". */
struct worker_text {
    char text[256];
};
struct worker_text worker_measures_text(uint32_t measures);

/* ---- one call ---- */
struct worker_call {
    const struct worker_input *inputs;
    size_t input_count;
    struct sl_bytes options;
    int out; /* an empty regular file, or -1; a memfd that allows seals is sealed against writing after the job */
    struct worker_limits limits;
    struct sl_str about; /* location of the file, for the log */
};

struct worker_outcome {
    bool is_trial;          /* the function only inspected the file (conversion.is_trial) */
    bool is_death;          /* the worker died, was killed or broke the protocol */
    enum sl_budget_end end; /* SL_BUDGET_TIME also if the worker was killed for exceeding its time */
    uint64_t peak;          /* bytes charged to the budget at most */
};

/* Runs a function of the launcher's table in a worker. Blocks, also while all workers are busy: call it on any thread but the loop's.
 * Returns the function's code, error and result, or
 * - SL_MALFORMED "the reader crashed on this file: signal 11 (SIGSEGV)", or if the worker broke the protocol
 * - SL_UNSUPPORTED "the conversion of the file needs more than 30s of time", "... more than 512 MiB of memory"
 * - SL_INTERNAL if a mapped file could not be read, or a descriptor could not be passed
 * - SL_CANCELLED after worker_pool_abort(), or when the thread's flag (base/cancel.h) is raised
 * - SL_BUSY if no worker could be started, or another process (the OOM killer) killed it
 * `result` has room for `result_size` bytes, all zero unless the function answered. The file call->out is valid with SL_OK only. */
enum sl_code worker_run(struct worker_pool *pool, const struct worker_function *function,
                        const struct worker_call *call, void *result, struct worker_outcome *outcome,
                        struct sl_error *error);

/* ---- one call, from an event loop ----
 *
 * For short calls, so that no other thread has to wait for the worker: the thread of the loop sends the request and later reads the
 * answer. None of these functions but worker_finish blocks, and all are for that one thread.
 *
 *     running = worker_begin(..., arg)           NULL: call worker_run on another thread
 *     wait until worker_pool_ready_fd is readable and worker_list_ready returns `arg`
 *     worker_take_answer(running, ...)           the usual end
 *     worker_finish(running, ...)                instead, if the call takes long, or if that returned false; on a thread that may wait */
struct running_job;

/* Returns a descriptor that is readable while a call that worker_begin began has an answer. The pool keeps it. */
int worker_pool_ready_fd(const struct worker_pool *pool);
/* Sets `args` to the `arg` of calls of worker_begin() that have an answer: up to `most`, at most 32, each call once. Returns their
 * number. */
size_t worker_list_ready(struct worker_pool *pool, void **args, size_t most);

/* Sends the call if a worker is idle and no thread waits for one. Otherwise returns NULL, and nothing has happened: call worker_run() on
 * another thread. Reads the small inputs: if they are mapped, call this under a guard against SIGBUS. `call`, with all it refers to, and
 * `result` must live until the call has ended. */
struct running_job *worker_begin(struct worker_pool *pool, const struct worker_function *function,
                                 const struct worker_call *call, void *result, void *arg);

/* Takes the answer of a call that worker_list_ready() has returned, sets `*code` to what worker_run() would return, and ends the call.
 * False if the worker gave no valid answer, or may still have its output open: then call worker_finish(). */
bool worker_take_answer(struct running_job *running, struct worker_outcome *outcome, enum sl_code *code,
                        struct sl_error *error);

/* Waits for the end of the call, as worker_run() does, repeating the job if necessary. With `is_wanted` false it waits only some
 * milliseconds for the answer, then kills the worker and returns SL_CANCELLED. */
enum sl_code worker_finish(struct running_job *running, bool is_wanted, struct worker_outcome *outcome,
                           struct sl_error *error);
