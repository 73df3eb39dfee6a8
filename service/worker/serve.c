/* The main function of a worker: confines itself, sends the hello, and serves one request after the other. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "core/crash.h"
#include "core/loop.h"
#include "worker/launcher.h"

enum { SOCKET = STDIN_FILENO, MAX_ARENAS = 4 };

enum {                      /* exit codes of a worker */
       END_ASKED = 0,       /* the pool closed the socket */
       END_UNCONFINED = 10, /* the seccomp filter could not be installed */
       END_SOCKET,          /* cannot read from or write to the socket */
       END_REQUEST,         /* the request is malformed */
       END_MEMORY           /* no memory for the answer */
};

struct served_job {
    struct worker_request request;
    const struct worker_function *function; /* to run */
    int fds[WORKER_MAX_DESCRIPTORS];        /* that came with the request */
    size_t fd_count;
    struct worker_job job;
    struct sl_parallel threads;
    bool has_memory_limit;                                     /* of the process: MEASURE_MEMORY_LIMIT */
    struct sl_error error;                                     /* of the function that was run */
    unsigned jobs;                                             /* number of short jobs so far, for heap_size() */
    uint64_t heap;                                             /* size of the heap when it was measured last */
    _Alignas(max_align_t) uint8_t message[WORKER_MAX_REQUEST]; /* the request, with the bytes of small inputs */
    _Alignas(max_align_t) uint8_t options[WORKER_MAX_OPTIONS], result[WORKER_MAX_RESULT];
};

/* ---- inputs ---- */

/* Returns the number of bytes between the beginning of the memory page and the offset, as mmap() maps whole pages. */
static size_t before_in_page(uint64_t offset)
{
    return (size_t)(offset % (uint64_t)sysconf(_SC_PAGESIZE));
}

/* Maps a part of a file. Fails if the file is shorter than the request says, as reading past its end would raise SIGBUS. */
static enum sl_code map_part(int fd, uint64_t offset, size_t size, struct sl_bytes *bytes, struct sl_error *error)
{
    struct stat st;
    size_t before = before_in_page(offset);
    if (sl_fstat(fd, &st) != 0 || (uint64_t)st.st_size < offset || (uint64_t)st.st_size - offset < size)
        return sl_fail(error, SL_INTERNAL, "a file has shrunk while it was converted");
    uint8_t *data = (uint8_t *)"";
    if (size)
        data = mmap(NULL, before + size, PROT_READ, MAP_SHARED, fd, (off_t)(offset - before));
    if (data == MAP_FAILED)
        return sl_fail_errno(error, errno, "cannot map a file that is to be converted");
    *bytes = (struct sl_bytes){size ? data + before : data, size};
    return SL_OK;
}

/* Makes the job's inputs from those of the request: maps the files whose descriptors came with it, in the same order. On failure nothing is
 * unmapped or closed: unmap_inputs() does that in any case. */
static enum sl_code map_inputs(struct served_job *served, struct sl_error *error)
{
    struct worker_job *job = &served->job;
    size_t next = 0;
    job->input_count = served->request.input_count;
    for (size_t i = 0; i < job->input_count; i++) {
        size_t size = (size_t)served->request.inputs[i].size;
        job->inputs[i] = (struct worker_input){.fd = -1, .role = served->request.inputs[i].role};
        if (served->request.inputs[i].access == ACCESS_NONE)
            continue;
        if (served->request.inputs[i].access == ACCESS_INLINE) {
            job->inputs[i].bytes = (struct sl_bytes){served->request.inputs[i].bytes, size};
            continue;
        }
        uint64_t offset = served->request.inputs[i].offset;
        int fd = served->fds[next++];
        /* -1: functions that read `fd` begin at 0, so they must use the mapped bytes */
        job->inputs[i].fd = offset ? -1 : fd;
        if (served->request.inputs[i].access ==
            ACCESS_WRITE) /* a scratch file: the function reads and writes it by `fd` */
            continue;
        enum sl_code code = map_part(fd, offset, size, &job->inputs[i].bytes, error);
        if (code != SL_OK)
            return code;
    }
    job->out = served->request.has_out ? served->fds[next] : -1;
    return SL_OK;
}

static void unmap_part(const struct sl_bytes *bytes, uint64_t offset)
{
    size_t before = before_in_page(offset);
    munmap((void *)(bytes->data - before), before + bytes->size);
}

/* Unmaps the inputs and closes all descriptors of the job. */
static void unmap_inputs(struct served_job *served)
{
    for (size_t i = 0; i < served->job.input_count; i++)
        if (served->job.inputs[i].bytes.size && served->request.inputs[i].access == ACCESS_READ)
            unmap_part(&served->job.inputs[i].bytes, served->request.inputs[i].offset);
    for (size_t i = 0; i < served->fd_count; i++)
        close(served->fds[i]);
}

/* ---- one job ---- */

/* Returns the code of the ended job: SL_UNSUPPORTED if it exceeded a limit. SL_BUSY, a failed allocation, also counts as exceeding the
 * memory limit: in a worker with a limit it means that memory which the job was not charged for has reached the limit of the process. */
static enum sl_code judge_code(struct served_job *served, enum sl_code code)
{
    struct sl_budget *budget = &served->job.conversion.budget;
    if (code == SL_BUSY && served->has_memory_limit && budget->memory_limit &&
        atomic_load(&budget->end) == SL_BUDGET_LEFT)
        atomic_store(&budget->end, SL_BUDGET_MEMORY);
    return conversion_judge(&served->job.conversion, code, &served->error);
}

/* Maps the inputs, runs the function of the request and measures its CPU time, without that of mapping. Returns the code of the answer. */
static enum sl_code run_function(struct served_job *served)
{
    struct worker_job *job = &served->job;
    const struct worker_limits *limits = &served->request.limits;
    conversion_begin(&job->conversion, limits, worker_parallel(limits->threads, &served->threads), cpu_clock_expired);
    job->function = served->function;
    job->limits = *limits;
    job->options = (struct sl_bytes){served->options, served->request.options.size};
    enum sl_code code = map_inputs(served, &served->error);
    if (code != SL_OK)
        return code;
    cpu_clock_enter(&job->conversion.clock);
    code = served->function->run(job, served->result, &served->error);
    cpu_clock_leave(&job->conversion.clock);
    return judge_code(served, code);
}

/* Returns the size of the heap. Asking the allocator takes some microseconds, so after short jobs that is done only every SELDOM-th
 * time; else the last size is returned. */
static uint64_t heap_size(struct served_job *served, uint64_t duration_ns)
{
    enum { SELDOM = 16, LONG_NS = 1000000 };
    if (duration_ns > LONG_NS || served->jobs++ % SELDOM == 0) {
        struct mallinfo2 info = mallinfo2();
        served->heap = info.arena + info.hblkhd;
    }
    return served->heap;
}

/* Returns the error's message for the answer, in `space`: as valid UTF-8, since it may contain bytes of the file, and cut so that it
 * fits in a struct sl_error. Without a message, the name of the code. Empty with SL_OK. */
static struct sl_str error_text(const struct served_job *served, enum sl_code code, struct sl_buf *space)
{
    if (code == SL_OK)
        return SL_STR("");
    sl_buf_utf8(space, sl_str(served->error.message[0] ? served->error.message : sl_code_name(code)));
    struct sl_error cut;
    sl_fail(&cut, code, SL_STR_FMT, SL_STR_ARG(sl_buf_view(space)));
    sl_buf_clear(space);
    sl_buf_cstr(space, cut.message);
    return sl_buf_view(space);
}

/* Runs the job and sends the answer. If the answer cannot be made or sent, the process exits, which the service notices. */
static void do_job(struct served_job *served)
{
    uint64_t begin = clock_mono_ns();
    enum sl_code code = run_function(served);
    struct sl_buf text = {0}, out = {0};
    struct worker_answer answer = {.serial = served->request.serial,
                                   .code = code,
                                   .end = (enum sl_budget_end)atomic_load(&served->job.conversion.budget.end),
                                   .is_trial = served->job.conversion.is_trial,
                                   .peak = sl_budget_peak(&served->job.conversion.budget),
                                   .result = {served->result, served->function->result_size}};
    unmap_inputs(served);
    answer.message = error_text(served, code, &text);
    answer.duration_ns = clock_mono_ns() - begin;
    answer.heap = heap_size(served, answer.duration_ns);
    if (!worker_answer_encode(&answer, &out))
        _exit(END_MEMORY);
    if (!worker_send(SOCKET, sl_buf_bytes(&out), NULL, 0))
        _exit(END_SOCKET);
    sl_buf_free(&text);
    sl_buf_free(&out);
}

/* ---- all jobs ---- */

/* Waits for the next request and prepares the job. False if the request is malformed. Exits when the service has closed the socket. */
static bool receive_request(struct served_job *served, const struct worker_start *start)
{
    ssize_t size = worker_receive(SOCKET, served->message, sizeof served->message, served->fds, &served->fd_count);
    if (size <= 0)
        _exit(size == 0 ? END_ASKED : END_SOCKET);
    struct worker_request *request = &served->request;
    if (!worker_request_decode((struct sl_bytes){served->message, (size_t)size}, request) ||
        request->function >= start->count || worker_request_descriptors(request) != served->fd_count)
        return false;
    served->function = &start->functions[request->function];
    if (request->options.size != served->function->options_size)
        return false;
    if (request->options.size) /* copied, as functions read them as a struct, which must be aligned */
        memcpy(served->options, request->options.data, request->options.size);
    memset(served->result, 0, served->function->result_size);
    memset(&served->job, 0, sizeof served->job);
    served->error = (struct sl_error){.code = SL_OK};
    return true;
}

_Noreturn void worker_serve(const struct worker_start *start)
{
    static struct served_job served;
    struct sl_buf hello = {0};
    mallopt(M_ARENA_MAX, MAX_ARENAS);
    crash_open(); /* on a crash, writes return addresses to standard error, the report pipe */
    uint32_t measures = confine(start->filter, &start->limits, start->launcher);
    if (start->no_environment)
        measures |= MEASURE_NO_ENVIRONMENT;
    served.has_memory_limit = measures & MEASURE_MEMORY_LIMIT;
    worker_hello_encode(measures, &hello);
    if (!worker_send(SOCKET, sl_buf_bytes(&hello), NULL, 0))
        _exit(END_SOCKET);
    sl_buf_free(&hello);
    if (!(measures & MEASURE_FILTER))
        _exit(END_UNCONFINED);
    while (receive_request(&served, start))
        do_job(&served);
    _exit(END_REQUEST); /* a malformed request: nothing more is read from this socket */
}
