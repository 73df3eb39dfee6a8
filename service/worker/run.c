/* Runs a call in a worker: sends it, watches the worker, and turns its answer or its death into a result. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "core/log.h"
#include "core/loop.h"
#include "worker/impl.h"

enum {
    TICK_MS = 50,     /* how often a waiting thread checks for cancellation and limits */
    UNWANTED_MS = 20, /* time for an answer that nobody wants any more: killing and replacing the worker takes longer */
    MAX_READY = 32,   /* calls that worker_list_ready() returns at once */
    MAX_REPORT = 4096, /* bytes of a worker's report pipe that are logged */
    MAX_NEW = 3,       /* the call fails after so many new workers have ended before their first job */
    MAX_TURNS = 3,     /* attempts to run a job */
};
/* time for a worker to stop by itself after its CPU time limit */
static const uint64_t grace_ns = 500 * UINT64_C(1000000);

/* How a job ended. */
enum job_end {
    JOB_ANSWERED,
    JOB_DIED,      /* the worker closed its socket */
    JOB_BROKEN,    /* the worker's message is not a valid answer */
    JOB_OVER_TIME, /* it exceeded limits.max_time_ns, CPU time */
    JOB_OVER_WALL, /* it exceeded limits.max_wall_ns */
    JOB_CANCELLED,
};

struct running_job {
    struct worker_pool *pool;
    const struct worker_function *function;
    const struct worker_call *call;
    struct worker_slot *slot;
    bool is_sent;   /* worker_begin() has sent the request of the first attempt to the worker `slot` */
    bool has_ended; /* the end of that attempt is known: `end` */
    enum job_end end;
    bool is_taken_back;    /* take_back_files() was called */
    bool is_file_kept;     /* the worker may still have a file open that it can write (result of take_back_files) */
    uint64_t serial;       /* of the current request */
    unsigned most_threads; /* limit of the pool's settings for one worker */
    int fds[WORKER_MAX_DESCRIPTORS];     /* descriptors to send */
    bool owned[WORKER_MAX_DESCRIPTORS];  /* close_descriptors closes it */
    int written[WORKER_MAX_DESCRIPTORS]; /* the caller's descriptor of a file that the worker writes; -1 = an input */
    size_t fd_count;
    uint64_t sizes[WORKER_MAX_INPUTS];               /* of the inputs, in bytes */
    const uint8_t *inline_inputs[WORKER_MAX_INPUTS]; /* in `copies`; NULL = it has a descriptor, or is missing */
    uint8_t copies[2 * WORKER_MAX_INLINE];           /* bytes of the small inputs, which are sent in the request */
    size_t copied;                                   /* bytes used of `copies` */
    struct worker_answer answer;
    void *result;                        /* of the caller */
    uint8_t message[WORKER_MAX_MESSAGE]; /* the answer as received; `answer` has views of it */
    char report[MAX_REPORT];
};

const char *const worker_end_names[WORKER_ENDS] = {"crashed", "outside", "over_time", "protocol", "cancelled"};

/* Returns the CPU time that the process of this clock has used; 0 if it has ended. */
static uint64_t read_cpu_clock(clockid_t id)
{
    struct timespec time;
    return clock_gettime(id, &time) == 0 ? (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec : 0;
}

/* ---- descriptors ---- */

/* Copies bytes into a sealed memfd, which no process can change. Returns its descriptor, -1 with errno. */
static int make_memory_file(struct sl_bytes bytes)
{
    int fd = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (!sl_write_all(fd, bytes) ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Copies a file into a sealed memfd. Returns its descriptor, -1 with errno. */
static int copy_file(int fd)
{
    struct sl_mapping mapping;
    if (sl_map_fd(fd, &mapping, NULL) != SL_OK)
        return -1;
    int copy = make_memory_file(mapping.bytes), error = errno;
    sl_unmap(&mapping);
    errno = error;
    return copy;
}

/* Opens the file once more, read-only: a worker must not be able to write to its inputs. Without /proc the worker gets a copy in memory.
 * Returns a descriptor, -1 with errno. */
static int open_for_reading(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reading = open(path, O_RDONLY | O_CLOEXEC);
    return reading >= 0 || errno == EMFILE || errno == ENFILE ? reading : copy_file(fd);
}

/* True if the caller has passed this input; optional ones may be missing. */
static bool is_given(const struct worker_input *input)
{
    return input->bytes.data || input->fd >= 0;
}

/* Makes a second descriptor, for the worker alone, of a file that the worker is to write. This process closes it before it calls
 * has_released(), so that only the worker can still have the file open by it. Returns the descriptor, -1 with errno. */
static int open_for_writing(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Adds a descriptor to those of the request; fails if it is -1, with errno. `owned`: it is closed after the job. `written`: the caller's
 * descriptor of the same file if the worker writes it, else -1. */
static enum sl_code add_descriptor(struct running_job *run, int fd, bool owned, int written, struct sl_error *error)
{
    if (fd < 0)
        return sl_fail_errno(error, errno, "cannot pass a file to a worker process");
    run->owned[run->fd_count] = owned;
    run->written[run->fd_count] = written;
    run->fds[run->fd_count++] = fd;
    return SL_OK;
}

/* Adds the descriptor of an input to those of the request. Bytes in memory become a file in memory; a file that is open for writing is
 * opened again for reading, so that the worker cannot change it; a scratch file is opened again for writing. */
static enum sl_code add_input(struct running_job *run, const struct worker_input *input, struct sl_error *error)
{
    if (input->is_scratch)
        return add_descriptor(run, open_for_writing(input->fd), true, input->fd, error);
    if (input->fd < 0)
        return add_descriptor(run, make_memory_file(input->bytes), true, -1, error);
    bool is_writable = (fcntl(input->fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    return add_descriptor(run, is_writable ? open_for_reading(input->fd) : input->fd, is_writable, -1, error);
}

/* Returns the size of an input in bytes; 0 if it is unknown. */
static uint64_t size_of_input(const struct worker_input *input)
{
    struct stat st;
    if (input->bytes.data)
        return input->bytes.size;
    return fstat(input->fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* Copies a small input to run->copies, so that it is sent with the request and needs no descriptor. False if it is too large, a scratch
 * file, or cannot be read. */
static bool copy_input(struct running_job *run, const struct worker_input *input, uint64_t size)
{
    uint8_t *copy = run->copies + run->copied;
    if (input->is_scratch || size > WORKER_MAX_INLINE || size > sizeof run->copies - run->copied)
        return false;
    if (!input->bytes.data && pread(input->fd, copy, (size_t)size, (off_t)input->offset) != (ssize_t)size)
        return false;
    if (input->bytes.data && size)
        memcpy(copy, input->bytes.data, (size_t)size);
    run->copied += (size_t)size;
    return true;
}

/* Sets the sizes of all inputs and copies the small ones. make_job() does this before it opens descriptors: if a mapped input cannot be
 * read, the guard against SIGBUS leaves the whole call from here, and nothing else would release them. */
static void copy_small_inputs(struct running_job *run)
{
    run->copied = 0;
    for (size_t i = 0; i < run->call->input_count; i++) {
        const struct worker_input *input = &run->call->inputs[i];
        const uint8_t *copy = run->copies + run->copied;
        run->sizes[i] = is_given(input) ? size_of_input(input) : 0;
        run->inline_inputs[i] = is_given(input) && copy_input(run, input, run->sizes[i]) ? copy : NULL;
    }
}

/* Collects the descriptors of the request: those of the inputs that are not sent inline, in order, then that of the output. */
static enum sl_code collect_descriptors(struct running_job *run, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    for (size_t i = 0; code == SL_OK && i < run->call->input_count; i++)
        if (!run->inline_inputs[i] && is_given(&run->call->inputs[i]))
            code = add_input(run, &run->call->inputs[i], error);
    if (code == SL_OK && run->call->out >= 0)
        code = add_descriptor(run, open_for_writing(run->call->out), true, run->call->out, error);
    return code;
}

static void close_descriptors(struct running_job *run)
{
    for (size_t i = 0; i < run->fd_count; i++)
        if (run->owned[i])
            close(run->fds[i]);
    run->fd_count = 0;
}

/* ---- the request ---- */
/* Appends the request's message. Small inputs are part of it (run->inline_inputs), others are sent as descriptors. False when out of
 * memory. */
static bool encode_request(struct running_job *run, struct sl_buf *out)
{
    const struct worker_call *call = run->call;
    struct worker_request request = {.function = (uint32_t)(run->function - run->pool->launcher->functions),
                                     .serial = run->serial,
                                     .limits = call->limits,
                                     .has_out = call->out >= 0,
                                     .input_count = call->input_count,
                                     .options = call->options};
    if (request.limits.threads > run->most_threads)
        request.limits.threads = run->most_threads;
    for (size_t i = 0; i < call->input_count; i++) {
        request.inputs[i].role = call->inputs[i].role;
        request.inputs[i].bytes = run->inline_inputs[i];
        request.inputs[i].access = !is_given(&call->inputs[i])  ? ACCESS_NONE
                                   : run->inline_inputs[i]      ? ACCESS_INLINE
                                   : call->inputs[i].is_scratch ? ACCESS_WRITE
                                                                : ACCESS_READ;
        request.inputs[i].size = run->sizes[i];
        if (request.inputs[i].access == ACCESS_READ && call->inputs[i].fd >= 0)
            request.inputs[i].offset = call->inputs[i].offset;
    }
    return worker_request_encode(&request, out);
}

/* True if the worker's socket is open and has nothing to read: a message to which there was no request would break the protocol. */
static bool is_silent(const struct worker_slot *slot)
{
    struct pollfd ready = {slot->socket, POLLIN, 0};
    return poll(&ready, 1, 0) == 0;
}

/* Sends the request to the worker run->slot. False with errno, which is EPIPE or ECONNRESET if this worker cannot be used any more. */
static bool send_request(struct running_job *run)
{
    struct sl_buf out = {0};
    run->serial = atomic_fetch_add(&run->pool->serial, 1) + 1;
    bool sent = false;
    /* not silent: it has closed its socket or sent something unasked; it cannot be used any more */
    if (!pool_read_hello(run->pool, run->slot) || !is_silent(run->slot))
        errno = EPIPE;
    else if (!encode_request(run, &out))
        errno = ENOMEM;
    else
        sent = worker_send(run->slot->socket, sl_buf_bytes(&out), run->fds, run->fd_count);
    int error = errno;
    sl_buf_free(&out);
    errno = error;
    return sent;
}

/* Takes a worker and sends the request to it. If the worker has died or broken the protocol before it got the request, the file is not to
 * blame: kills the worker and tries the next one. SL_BUSY if that happens to MAX_NEW new workers. `is_new`: take a worker that has had no
 * job. */
static enum sl_code send_to_a_worker(struct running_job *run, bool is_new, struct sl_error *error)
{
    for (int ended = 0; ended < MAX_NEW;) {
        enum sl_code code = pool_take_worker(run->pool, is_new, &run->slot, error);
        if (code != SL_OK)
            return code;
        if (send_request(run)) {
            run->slot->jobs++;
            return SL_OK;
        }
        if (errno != EPIPE && errno != ECONNRESET) {
            int number = errno == ETOOMANYREFS ? EMFILE : errno; /* too many descriptors are in flight */
            pool_return_worker(run->pool, run->slot, 0); /* 0: the size of its heap is not known, and has not changed */
            return sl_fail_errno(error, number, "cannot pass a file to a worker process");
        }
        ended += run->slot->jobs == 0; /* used workers are not counted: their number is limited */
        bool is_dying = false;
        pool_kill_worker(run->pool, run->slot, &is_dying, run->report, sizeof run->report);
        if (pool_is_cancelled(run->pool))
            return sl_fail(error, SL_CANCELLED, "cancelled");
    }
    log_error("worker", "worker processes end before their first job", LOG_STR("report", run->report));
    return sl_fail(error, SL_BUSY, "worker processes end before their first job: see the log");
}

/* ---- the answer ---- */

/* Copies the result in the answer to the caller's, and lets the function check it. If its size or contents are invalid, returns false,
 * and the caller's result is all zeros. */
static bool take_result(struct running_job *run)
{
    const struct worker_function *function = run->function;
    if (run->answer.result.size != function->result_size)
        return false;
    if (function->result_size)
        memcpy(run->result, run->answer.result.data, function->result_size);
    if (!function->check || function->check(function, run->result))
        return true;
    memset(run->result, 0, function->result_size);
    return false;
}

/* Receives the worker's answer. JOB_DIED: the socket is closed; JOB_BROKEN: the message is no valid answer to this job. */
static enum job_end receive_answer(struct running_job *run)
{
    ssize_t size = worker_receive(run->slot->socket, run->message, sizeof run->message, NULL, NULL);
    if (size == 0 || (size < 0 && errno == ECONNRESET))
        return JOB_DIED;
    struct sl_bytes message = {run->message, size < 0 ? 0 : (size_t)size};
    bool good = worker_answer_decode(message, &run->answer) && run->answer.serial == run->serial && take_result(run);
    return good ? JOB_ANSWERED : JOB_BROKEN;
}

/* Waits for the worker's answer and receives it; ends when the call is cancelled or a limit of time exceeded. The CPU time is read from the
 * clock of the worker's process, as a worker that a hostile file has taken over may ignore its limit. */
static enum job_end await_answer(struct running_job *run)
{
    const struct worker_limits *limits = &run->call->limits;
    clockid_t clock = -1; /* of the worker; most answers come before it is needed */
    uint64_t begin = clock_mono_ns(),
             used = 0; /* used: the CPU time of its earlier jobs, and of the first tick of this one */
    struct pollfd ready = {run->slot->socket, POLLIN, 0};
    for (;;) {
        int count = poll(&ready, 1, TICK_MS);
        if (count > 0)
            return receive_answer(run);
        if (pool_is_cancelled(run->pool))
            return JOB_CANCELLED;
        if (limits->max_wall_ns && clock_mono_ns() - begin > limits->max_wall_ns)
            return JOB_OVER_WALL;
        if (clock == -1 && clock_getcpuclockid(run->slot->pid, &clock) == 0)
            used = read_cpu_clock(clock);
        uint64_t now = clock == -1 ? 0 : read_cpu_clock(clock); /* 0 also if the worker has just died */
        /* at the limit the worker stops by itself and answers; it is killed if it has not done so grace_ns later */
        if (now > used && now - used > limits->max_time_ns && now - used - limits->max_time_ns > grace_ns)
            return JOB_OVER_TIME;
    }
}

/* ---- how a job ended without an answer ---- */
/* Sets the error of a job whose worker has died by itself, by its wait status (-1: unknown), and returns its code. */
static enum sl_code fail_death(int status, struct sl_error *error)
{
    int number = status != -1 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (status == -1 || number == SIGKILL) /* not sent by the pool: the OOM killer or an operator */
        return sl_fail(error, SL_BUSY,
                       "the worker process that read the file was killed from outside, perhaps for lack of memory");
    if (number == SIGBUS)
        return sl_fail(error, SL_INTERNAL, "a file could not be read while it was converted: was it truncated?");
    const char *name = sigabbrev_np(number); /* NULL for a real-time signal */
    if (number)
        return sl_fail(error, SL_MALFORMED, "the reader crashed on this file: signal %d (SIG%s)", number,
                       name ? name : "RT");
    return sl_fail(error, SL_MALFORMED, "the reader crashed on this file: status %d", WEXITSTATUS(status));
}

/* Sets the error of a job that got no valid answer, and returns its code. `status` is the worker's wait status. */
static enum sl_code fail_end(struct running_job *run, enum job_end end, int status, struct worker_outcome *outcome,
                             struct sl_error *error)
{
    const struct worker_limits *limits = &run->call->limits;
    switch (end) {
    case JOB_CANCELLED: return sl_fail(error, SL_CANCELLED, "cancelled");
    case JOB_OVER_TIME:
    case JOB_OVER_WALL:
        outcome->end = SL_BUDGET_TIME;
        return conversion_fail_time(end == JOB_OVER_TIME ? limits->max_time_ns : limits->max_wall_ns, error);
    case JOB_BROKEN: return sl_fail(error, SL_MALFORMED, "the worker process that read this file gave no valid answer");
    default: return fail_death(status, error);
    }
}

/* Returns how the worker ended, for the metrics. `code` is that of the job's error: SL_BUSY means that another process killed the
 * worker. */
static enum worker_end find_cause(enum job_end end, enum sl_code code)
{
    switch (end) {
    case JOB_OVER_TIME:
    case JOB_OVER_WALL: return WORKER_OVER_TIME;
    case JOB_CANCELLED: return WORKER_CANCELLED;
    case JOB_BROKEN: return WORKER_BROKE_PROTOCOL;
    default: return code == SL_BUSY ? WORKER_ENDED_OUTSIDE : WORKER_CRASHED;
    }
}

static void log_end(const struct running_job *run, pid_t pid, const struct sl_error *error)
{
    log_warn("worker", "a worker ended during a job", LOG_STR("function", run->function->name),
             LOG_SLSTR("location", run->call->about), LOG_I64("process", pid), LOG_ERR(error),
             LOG_STR("report", run->report));
}

/* Makes the files that the worker could write empty again, before the job is repeated. Also sets their positions back to the beginning:
 * the worker's descriptors share the positions of those that were sent, and functions write at the position. False on failure. */
static bool empty_written_files(const struct running_job *run)
{
    bool good = true;
    for (size_t i = 0; good && i < run->fd_count; i++)
        if (run->written[i] >= 0)
            good = ftruncate(run->fds[i], 0) == 0 && lseek(run->fds[i], 0, SEEK_SET) == 0;
    return good;
}

/* True if the worker can no longer change the file. A memfd is sealed against changes, which fails while it is mapped for writing. For
 * another file the kernel is asked for a write lease (F_SETLEASE), which it grants only if nobody else has the file open: the worker's
 * descriptor would count, as it comes from an open() of its own. */
static bool has_released(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals >= 0 && !(seals & F_SEAL_SEAL))
        return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0;
    return fcntl(fd, F_SETLEASE, F_WRLCK) == 0 && fcntl(fd, F_SETLEASE, F_UNLCK) == 0;
}

/* Closes the descriptors of the job and makes sure that the worker cannot write to its files any more, before anybody reads them: what
 * was checked must not change afterwards. Sets the caller's file positions to the end, as if this process had written the files. False
 * if the worker may still have one open, or the file system has no leases. A second call returns the same. */
static bool take_back_files(struct running_job *run)
{
    int written[WORKER_MAX_DESCRIPTORS];
    size_t count = 0;
    if (run->is_taken_back)
        return !run->is_file_kept;
    run->is_taken_back = true;
    for (size_t i = 0; i < run->fd_count; i++)
        if (run->written[i] >= 0)
            written[count++] = run->written[i];
    close_descriptors(run);
    for (size_t i = 0; i < count; i++) {
        lseek(written[i], 0, SEEK_END);
        run->is_file_kept |= !has_released(written[i]);
    }
    return !run->is_file_kept;
}

/* Kills the worker after a job without a valid answer; sets `*code` and `error` by how the job ended. True if the job is to be repeated
 * in another worker: this one was not new, so that an earlier job may be to blame, or another process has killed it. */
static bool end_job(struct running_job *run, enum job_end end, struct worker_outcome *outcome, enum sl_code *code,
                    struct sl_error *error)
{
    bool is_new = run->slot->jobs == 1, is_dying = end == JOB_DIED;
    pid_t pid = run->slot->pid;
    struct sl_error own;
    int status = pool_kill_worker(run->pool, run->slot, &is_dying, run->report, sizeof run->report);
    if (end == JOB_DIED && !is_dying)
        end = JOB_BROKEN; /* it closed its socket but did not exit */
    *code = fail_end(run, end, status, outcome, &own);
    pool_count_end(run->pool, find_cause(end, *code));
    if (error)
        *error = own;
    if (*code != SL_CANCELLED)
        log_end(run, pid, &own);
    return end != JOB_CANCELLED && (!is_new || *code == SL_BUSY) && empty_written_files(run);
}

/* Passes the worker's answer to the caller, and gives the worker back to the pool; kills it instead if it may still write to its files.
 * Returns the code of the answer; SL_BUSY if such a worker cannot be killed. */
static enum sl_code take_answer(struct running_job *run, struct worker_outcome *outcome, struct sl_error *error)
{
    const struct worker_answer *answer = &run->answer;
    outcome->is_trial = answer->is_trial;
    outcome->end = answer->end;
    outcome->peak = answer->peak;
    if (answer->code != SL_OK)
        sl_fail(error, answer->code, SL_STR_FMT, SL_STR_ARG(answer->message));
    if (take_back_files(run)) {
        pool_return_worker(run->pool, run->slot, answer->heap);
    } else {
        bool is_dying = false;
        log_debug("worker", "ending a worker that may still have its output open",
                  LOG_STR("function", run->function->name));
        if (pool_kill_worker(run->pool, run->slot, &is_dying, run->report, sizeof run->report) == -1)
            return sl_fail(error, SL_BUSY, "a worker process that may still write to its result cannot be ended");
    }
    return answer->code;
}

/* ---- the call ---- */

/* Makes one attempt to run the job: sends the request and waits for its end, `*end`. If worker_begin(), worker_take_answer() or
 * worker_finish() have done a part of the first attempt, that part is not done again. */
static enum sl_code run_turn(struct running_job *run, bool is_new, enum job_end *end, struct sl_error *error)
{
    enum sl_code code = run->is_sent ? SL_OK : send_to_a_worker(run, is_new, error);
    if (code == SL_OK)
        *end = run->has_ended ? run->end : await_answer(run);
    run->is_sent = run->has_ended = false;
    return code;
}

/* Runs the job, up to MAX_TURNS times: again, in a new worker, if end_job() says so. Returns the code of the last attempt. */
static enum sl_code run_call(struct running_job *run, struct worker_outcome *outcome, struct sl_error *error)
{
    for (int turn = 1;; turn++) {
        enum job_end end;
        enum sl_code code = run_turn(run, turn > 1, &end, error);
        if (code != SL_OK)
            return code;
        if (end == JOB_ANSWERED)
            return take_answer(run, outcome, error);
        if (!end_job(run, end, outcome, &code, error) || turn == MAX_TURNS) {
            outcome->is_death = true;
            return code;
        }
    }
}

/* Checks that the call fits in a message; only a mistake in the program makes it fail. */
static enum sl_code check_call(const struct worker_function *function, const struct worker_call *call,
                               struct sl_error *error)
{
    if (call->input_count > WORKER_MAX_INPUTS || call->options.size != function->options_size ||
        call->options.size > WORKER_MAX_OPTIONS || function->result_size > WORKER_MAX_RESULT)
        return sl_fail(error, SL_INTERNAL, "the call of the conversion %s does not fit in a message to a worker",
                       function->name);
    return SL_OK;
}

/* Checks that the inputs together have at most `most` bytes (0 = no limit), as a worker's address space is limited. */
static enum sl_code check_sizes(const struct running_job *run, uint64_t most, struct sl_error *error)
{
    uint64_t mapped = 0;
    for (size_t i = 0; i < run->call->input_count; i++)
        mapped += run->sizes[i];
    return most && mapped > most
               ? sl_fail(error, SL_UNSUPPORTED, "the conversion needs more than %llu MiB of input files",
                         (unsigned long long)(most >> 20))
               : SL_OK;
}

static void free_job(struct running_job *run)
{
    close_descriptors(run);
    free(run);
}

/* Prepares a job: copies its small inputs and collects its descriptors. NULL with `*code` and `error` on failure. */
static struct running_job *make_job(struct worker_pool *pool, const struct worker_function *function,
                                    const struct worker_call *call, void *result, enum sl_code *code,
                                    struct sl_error *error)
{
    if (function->result_size)
        memset(result, 0, function->result_size);
    struct worker_settings settings = pool_get_settings(pool);
    *code = check_call(function, call, error);
    struct running_job *run = *code == SL_OK ? malloc(sizeof *run) : NULL;
    if (!run && *code == SL_OK)
        *code = sl_fail(error, SL_BUSY, "out of memory");
    if (!run)
        return NULL;
    /* Only members that are read before they are set are initialised: the buffers are large. */
    run->pool = pool;
    run->function = function;
    run->call = call;
    run->result = result;
    run->most_threads = settings.max_threads;
    run->is_sent = run->has_ended = run->is_taken_back = run->is_file_kept = false;
    run->fd_count = 0;
    memset(run->owned, 0, sizeof run->owned);
    memset(run->sizes, 0, sizeof run->sizes);
    run->report[0] = '\0';
    copy_small_inputs(run);
    *code = collect_descriptors(run, error);
    if (*code == SL_OK)
        *code = check_sizes(run, settings.max_mapped, error);
    if (*code == SL_OK)
        return run;
    free_job(run);
    return NULL;
}

enum sl_code worker_run(struct worker_pool *pool, const struct worker_function *function,
                        const struct worker_call *call, void *result, struct worker_outcome *outcome,
                        struct sl_error *error)
{
    enum sl_code code;
    *outcome = (struct worker_outcome){.end = SL_BUDGET_LEFT};
    struct running_job *run = make_job(pool, function, call, result, &code, error);
    if (!run)
        return code;
    code = run_call(run, outcome, error);
    free_job(run);
    return code;
}

/* ---- from an event loop ---- */

int worker_pool_ready_fd(const struct worker_pool *pool)
{
    return pool->ready;
}

/* Lets worker_list_ready() return `arg` once, when the worker's socket is readable. If that fails it will not be returned, and the
 * caller's wait ends by its own time limit. */
static void watch(struct running_job *run, void *arg)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = arg};
    int change = run->slot->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    run->slot->is_watched = epoll_ctl(run->pool->ready, change, run->slot->socket, &event) == 0;
}

/* Removes the worker's socket from the epoll set, so that worker_list_ready() does not return the call's `arg` any more, which may be
 * freed. */
static void unwatch(struct running_job *run)
{
    if (run->slot->is_watched)
        epoll_ctl(run->pool->ready, EPOLL_CTL_DEL, run->slot->socket, NULL);
    run->slot->is_watched = false;
}

size_t worker_list_ready(struct worker_pool *pool, void **args, size_t most)
{
    struct epoll_event events[MAX_READY];
    int count = epoll_wait(pool->ready, events, (int)(most < MAX_READY ? most : MAX_READY), 0);
    for (int i = 0; i < count; i++)
        args[i] = events[i].data.ptr;
    return count > 0 ? (size_t)count : 0;
}

/* Prepares the job and sends it to an idle worker. NULL if that is not possible at once: then nothing has happened, and the caller lets
 * another thread call worker_run(). */
struct running_job *worker_begin(struct worker_pool *pool, const struct worker_function *function,
                                 const struct worker_call *call, void *result, void *arg)
{
    enum sl_code code;
    struct sl_error ignored; /* worker_run will fail in the same way */
    struct running_job *run = pool->ready >= 0 ? make_job(pool, function, call, result, &code, &ignored) : NULL;
    if (!run)
        return NULL;
    run->slot = pool_try_take_worker(pool);
    if (run->slot && send_request(run)) {
        run->slot->jobs++;
        run->is_sent = true;
        watch(run, arg);
        return run;
    }
    if (run->slot) /* also if it is dead or has broken the protocol: worker_run(), which the caller calls next, finds out */
        pool_return_worker(pool, run->slot, 0);
    free_job(run);
    return NULL;
}

bool worker_take_answer(struct running_job *run, struct worker_outcome *outcome, enum sl_code *code,
                        struct sl_error *error)
{
    *outcome = (struct worker_outcome){.end = SL_BUDGET_LEFT};
    run->end = receive_answer(run);
    run->has_ended = true;
    /* Otherwise the worker must be killed, for which this thread, the loop's, must not wait: worker_finish() does it on another one. */
    if (run->end != JOB_ANSWERED || !take_back_files(run))
        return false;
    *code = take_answer(run, outcome, error);
    free_job(run);
    return true;
}

enum sl_code worker_finish(struct running_job *run, bool is_wanted, struct worker_outcome *outcome,
                           struct sl_error *error)
{
    *outcome = (struct worker_outcome){.end = SL_BUDGET_LEFT};
    unwatch(run);
    if (!is_wanted && !run->has_ended) {
        struct pollfd ready = {run->slot->socket, POLLIN, 0};
        run->end = poll(&ready, 1, UNWANTED_MS) > 0 ? receive_answer(run) : JOB_CANCELLED;
        run->has_ended = true;
    }
    enum sl_code code = run_call(run, outcome, error);
    free_job(run);
    return code;
}
