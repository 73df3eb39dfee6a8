/* Runs conversions within limits of time and memory: in a worker process, or on a thread of the pool (conversion.h). */
#include "conversion/conversion.h"
#include "conversion/isolation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "core/sigbus_guard.h"

enum {
    /* Limits of a conversion that the loop hands to a worker itself, without a thread of the pool. SHORT_INPUT: bytes of its input, as
     * larger inputs take long to copy and convert. SHORT_FILES: files that the loop opens for it; each takes some microseconds, as the
     * kernel caches their paths. */
    SHORT_INPUT = 256 << 10,
    SHORT_FILES = 12,
    SHORT_MS = 20, /* how long the fiber waits for the worker's answer on the loop; then a thread of the pool waits */
};

/* Conversions of inputs above `heavy_input` bytes wait for one of a few slots. The time limit of any conversion grows by a second for every
 * `bytes_a_second` bytes of its input. */
static const uint64_t heavy_input = UINT64_C(1) << 30, bytes_a_second = 4 << 20, second_ns = 1000000000;

static struct { /* for the loop thread */
    uint64_t max_memory, max_time_ns;
    unsigned max_heavy, heavy;      /* limit and number of running conversions of heavy inputs */
    struct fiber_wait_list waiting; /* fibers that wait for such a slot */
    unsigned queued;                /* their number */
} limits = {.max_time_ns = UINT64_MAX, .max_heavy = 1};

static const struct config *configured;
/* copies of configured limits for any thread, as `configured` is for the loop thread only */
static _Atomic uint64_t max_section_size, max_source_size, max_unwind_chain, max_memory;

void conversions_configure(const struct config *config)
{
    configured = config;
    /* for any thread; `limits` is for the loop thread */
    max_section_size = config->object_max_section_size;
    max_source_size = config->object_max_source_size;
    max_unwind_chain = config->max_unwind_chain;
    max_memory = config->conversion.max_memory;
    limits.max_memory = config->conversion.max_memory;
    limits.max_time_ns = config->conversion.max_time_ns;
    limits.max_heavy = config->conversion.max_heavy;
    isolation_configure(config);
    unpack_set_runner(conversion_unpack); /* downloads are decompressed by conversions, too */
}

/* ---- shutdown ---- */
static atomic_bool is_aborted;

void conversions_abort_all(void)
{
    atomic_store(&is_aborted, true);
    if (isolation_pool())
        worker_pool_abort(isolation_pool());
}

/* True if a conversion in a thread has to end: its CPU time is used up, or the process shuts down (conversion_begin). */
static bool must_stop(void *clock)
{
    return atomic_load_explicit(&is_aborted, memory_order_relaxed) || cpu_clock_expired(clock);
}

/* ---- slots of heavy conversions ---- */

/* Waits until fewer than max_heavy conversions of heavy inputs run; at once for other inputs. False when the fiber was cancelled. */
static bool wait_for_heavy_slot(uint64_t size)
{
    if (size <= heavy_input)
        return true;
    if (limits.heavy < limits.max_heavy) {
        limits.heavy++;
        return true;
    }
    metric_set(METRIC_WAITING, ++limits.queued, "heavy", NULL, NULL);
    fiber_set_wait_reason("a slot for a large conversion");
    /* the conversion that ends hands over its slot without changing `heavy` (release_heavy_slot) */
    bool woken = fiber_wait_on(&limits.waiting, UINT64_MAX) == FIBER_WOKEN; /* no timeout */
    metric_set(METRIC_WAITING, --limits.queued, "heavy", NULL, NULL);
    return woken;
}

/* Ends what wait_for_heavy_slot() began: hands the slot of a heavy input to the fiber that waits longest, whose conversion then counts in
 * `heavy` instead. If none waits, or a new configuration has lowered max_heavy, the number of running ones decreases. */
static void release_heavy_slot(uint64_t size)
{
    if (size <= heavy_input)
        return;
    if (limits.waiting.first && limits.heavy <= limits.max_heavy)
        fiber_wake_one(&limits.waiting);
    else
        limits.heavy--;
}

/* ---- one conversion ---- */

/* Returns the limit of CPU time: the caller's own, or the configured one plus a second for every `bytes_a_second` bytes of input. */
static uint64_t time_for(const struct conversion_description *about)
{
    uint64_t more = about->size / bytes_a_second * second_ns;
    if (about->time_ns)
        return about->time_ns;
    return limits.max_time_ns > UINT64_MAX - more ? UINT64_MAX : limits.max_time_ns + more;
}

/* Returns the limit of a worker's elapsed time, beside that of its CPU time: a worker that a hostile file has taken over could sleep for
 * ever. It is generous, as the machine may be busy. 0 = none. */
static uint64_t wall_time_for(uint64_t max_time_ns)
{
    return max_time_ns < UINT64_MAX / 20 ? 10 * max_time_ns + 60 * second_ns : 0;
}

/* A call of conversion_run. */
struct running {
    const struct converter *converter;
    struct converter_call call; /* the caller's, copied: map_inputs fills in the inputs' bytes */
    struct worker_limits limits;
    struct sl_str location; /* location of the file, for the log */
    /* in a thread of this process: */
    struct conversion conversion;
    struct sl_mapping mappings[CONVERTER_MAX_INPUTS]; /* mappings of inputs that have only a descriptor */
    /* in a worker: */
    int opened[CONVERTER_MAX_INPUTS]; /* descriptors of inputs, opened to be sent to the worker; -1 = none */
    int *opened_tables;               /* descriptors of the call's tables, opened to be sent; NULL = none */
    struct worker_input *inputs;      /* inputs and tables of `worker_call`; NULL = not made yet */
    struct worker_call worker_call;   /* `call` as a worker gets it */
    struct running_job *begun;        /* the call, if the loop has begun it (run_from_loop); NULL = it has not */
    bool is_wanted;                   /* for finish_on_pool: the caller still waits for the result */
    bool has_ended;                   /* finish_on_pool has run */
    /* the outcome: */
    void *result;
    struct sl_error *error;
    enum sl_code code;
    struct worker_outcome outcome;
    double seconds;
};

/* ---- in a thread ---- */

/* Maps the inputs that have no bytes yet. Any failure becomes SL_BUSY or SL_INTERNAL, since other codes, such as SL_MALFORMED, tell of the
 * file's contents. */
static enum sl_code map_inputs(struct running *r, struct sl_error *error)
{
    for (size_t i = 0; i < r->call.input_count; i++) {
        struct converter_input *input = &r->call.inputs[i];
        if (input->bytes.data)
            continue;
        enum sl_code code = sl_map_fd(input->fd, &r->mappings[i], error);
        if (code != SL_OK)
            return code == SL_BUSY ? code : SL_INTERNAL;
        input->bytes = r->mappings[i].bytes;
    }
    return SL_OK;
}

/* Unmaps the inputs and closes those that were opened again; a second call does nothing. A job of the pool calls it at its end. As a SIGBUS
 * (a mapped file was truncated) can end the job before that, conversion_run calls it again. */
static void release_inputs(struct running *r)
{
    for (size_t i = 0; i < r->call.input_count; i++) {
        sl_unmap(&r->mappings[i]);
        sl_close(r->opened[i]);
        r->opened[i] = -1;
    }
    for (size_t i = 0; r->opened_tables && i < r->call.table_count; i++)
        sl_close(r->opened_tables[i]);
    free(r->opened_tables);
    free(r->inputs);
    r->opened_tables = NULL;
    r->inputs = NULL;
}

/* Maps the inputs and runs the converter in this thread of the pool, within the limits. */
static enum sl_code run_in_thread(struct running *r)
{
    struct conversion *conversion = &r->conversion;
    conversion_begin(conversion, &r->limits, pool_parallel(), must_stop);
    cpu_clock_enter(&conversion->clock);
    enum sl_code code = map_inputs(r, r->error);
    if (code == SL_OK)
        code = r->converter->convert(conversion, &r->call, r->result, r->error);
    release_inputs(r);
    cpu_clock_leave(&conversion->clock);
    r->outcome = (struct worker_outcome){.is_trial = conversion->is_trial,
                                         .end = (enum sl_budget_end)atomic_load(&conversion->budget.end),
                                         .peak = sl_budget_peak(&conversion->budget)};
    if (r->outcome.end == SL_BUDGET_TIME && atomic_load(&is_aborted)) /* must_stop() ended it because of a shutdown */
        return sl_fail(r->error, SL_CANCELLED, "cancelled");
    /* fails if a limit was exceeded, even if the converter succeeded */
    return conversion_judge(conversion, code, r->error);
}

/* ---- in a worker ---- */

/* Reads each page of the inputs that this process has mapped. If a worker has died of a SIGBUS because a file was truncated, this raises
 * the same signal here, in a job of the pool that catches it and tells the cache which of its files is damaged. */
static void read_mapped(const struct converter_input *inputs, size_t count)
{
    enum { PAGE = 4096 };
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; inputs[i].bytes.data && at < inputs[i].bytes.size; at += PAGE)
            (void)*(const volatile uint8_t *)(inputs[i].bytes.data + at);
}

static void read_all_mapped(struct running *r)
{
    read_mapped(r->call.inputs, r->call.input_count);
    read_mapped(r->call.tables, r->call.table_count);
}

/* Returns how many threads a worker may use: one, and as many more as are idle in this process's pool. */
static unsigned count_worker_threads(void)
{
    size_t threads = pool_parallel()->workers, busy = pool_busy();
    return threads > busy ? (unsigned)(threads - busy) + 1 : 1;
}

/* Makes the input that a worker gets. Bytes that are too many to be copied into the request are sent as a descriptor. If their file is
 * known (input->place), opens it and stores the new descriptor in `*opened` for release_inputs(); else the descriptor is that of the
 * input. */
static struct worker_input make_worker_input(const struct converter_input *input, int *opened)
{
    if (input->place && input->bytes.size > WORKER_MAX_INLINE)
        *opened = file_place_open(input->place);
    return (struct worker_input){.bytes = input->bytes,
                                 .fd = *opened >= 0 ? *opened : input->fd,
                                 .role = input->role,
                                 .is_scratch = input->role == INPUT_SCRATCH,
                                 .offset = input->offset};
}

/* Makes r->inputs, the inputs that a worker gets: those of the call, then its tables. False when out of memory. */
static bool make_worker_inputs(struct running *r)
{
    size_t tables = r->call.table_count, first = r->call.input_count;
    /* + 1: malloc(0) could return NULL */
    r->opened_tables = malloc((tables + 1) * sizeof *r->opened_tables);
    r->inputs = malloc((first + tables + 1) * sizeof *r->inputs);
    if (!r->opened_tables || !r->inputs) {
        free(r->opened_tables); /* release_inputs() would close its descriptors, which are not set yet */
        r->opened_tables = NULL;
        return false;
    }
    for (size_t i = 0; i < tables; i++)
        r->opened_tables[i] = -1;
    for (size_t i = 0; i < first; i++)
        r->inputs[i] = make_worker_input(&r->call.inputs[i], &r->opened[i]);
    for (size_t i = 0; i < tables; i++)
        r->inputs[first + i] = make_worker_input(&r->call.tables[i], &r->opened_tables[i]);
    return true;
}

/* Makes r->worker_call, the call as a worker gets it. False when out of memory. */
static bool make_worker_call(struct running *r)
{
    if (!make_worker_inputs(r))
        return false;
    r->worker_call = (struct worker_call){.inputs = r->inputs,
                                          .input_count = r->call.input_count + r->call.table_count,
                                          .options = r->call.options,
                                          .out = r->call.out,
                                          .limits = r->limits,
                                          .about = r->location};
    r->worker_call.limits.threads = count_worker_threads();
    r->worker_call.limits.max_wall_ns = wall_time_for(r->limits.max_time_ns);
    return true;
}

/* Runs the converter in a worker process and waits for its answer, on a thread of the pool. SL_INTERNAL can mean that a mapped file was
 * truncated, which kills the worker: then reads the inputs in this process, to find that file (read_mapped). */
static enum sl_code run_in_worker(struct running *r)
{
    const struct worker_function *function = isolation_function(r->converter);
    if (!function)
        return sl_fail(r->error, SL_INTERNAL, "the worker processes were started without the converter %s",
                       r->converter->name);
    if (!make_worker_call(r))
        return sl_fail(r->error, SL_BUSY, "out of memory");
    enum sl_code code = worker_run(isolation_pool(), function, &r->worker_call, r->result, &r->outcome, r->error);
    release_inputs(r);
    if (code == SL_INTERNAL)
        read_all_mapped(r); /* does not return if a file was truncated */
    return code;
}

/* ---- in a worker, from the loop ----
 *
 * For a short conversion the loop itself sends the request to a worker and gets the answer: no thread of the pool has to wait for it. */

/* Number of running conversions that the loop itself has given to workers (run_from_loop). For the loop thread. */
static unsigned short_running;

/* True if the loop may hand the conversion to a worker itself. Its input must be small, and only few of its tables so large that the loop
 * has to open their `files`. No job may wait for a thread of the pool, since the conversion would overtake it. Such conversions and the
 * busy threads together must be fewer than the pool's threads. */
static bool is_short(const struct running *r, const struct conversion_description *about)
{
    size_t files = 0;
    for (size_t i = 0; i < r->call.table_count; i++)
        files += r->call.tables[i].bytes.size > WORKER_MAX_INLINE;
    return isolation_pool() && !about->is_background && about->size <= SHORT_INPUT && files <= SHORT_FILES &&
           !pool_queued() && pool_busy() + short_running < pool_parallel()->workers;
}

struct beginning {
    struct running *r;
    struct fiber_wait_list *waiting; /* woken when the worker has answered */
};

/* Sends the conversion to an idle worker; r->begun stays NULL if there is none. Runs under sigbus_guard_run(), as it reads mapped
 * inputs. */
static void begin_on_loop(void *arg)
{
    struct beginning *b = arg;
    const struct worker_function *function = isolation_function(b->r->converter);
    if (function && make_worker_call(b->r))
        b->r->begun = isolation_begin(function, &b->r->worker_call, b->r->result, b->waiting);
}

/* Waits on a thread of the pool for the end of a conversion that the loop has begun. */
static void finish_on_pool(void *arg)
{
    struct running *r = arg;
    r->has_ended = true;
    r->code = worker_finish(r->begun, r->is_wanted, &r->outcome, r->error);
}

/* Ends a conversion that the loop has begun, if its answer did not come in time or was not valid: a POOL_CONVERT job waits for the worker.
 * The pool does not run that job if the fiber is cancelled, now or while the job is queued: then a POOL_IO job, which cannot be cancelled,
 * ends the conversion and kills a slow worker. */
static void finish_begun(struct running *r, bool is_cancelled)
{
    r->is_wanted = !is_cancelled;
    enum sl_code code =
        r->is_wanted ? pool_run(POOL_CONVERT | POOL_ELSEWHERE, finish_on_pool, r, r->error) : SL_CANCELLED;
    r->is_wanted = false;
    if (!r->has_ended && pool_run(POOL_IO, finish_on_pool, r, NULL) != SL_OK && !r->has_ended)
        finish_on_pool(r); /* the pool refused the job: block the loop, for at most some milliseconds */
    if (code != SL_OK)
        r->code = code;
}

/* Runs read_all_mapped() as a job of the pool, where a SIGBUS is caught. */
static void read_all_on_pool(void *arg)
{
    read_all_mapped(arg);
}

/* Runs a short conversion (is_short) in a worker, without a thread of the pool. False if no worker was idle: the conversion has not begun,
 * and the caller runs it on the pool. Else true; `*code` is SL_OK if the conversion ran to its end, with r->code as its result, and
 * otherwise why it did not. */
static bool run_from_loop(struct running *r, enum sl_code *code)
{
    struct fiber_wait_list waiting = {.first = NULL};
    uint64_t start = clock_mono_ns();
    *code = SL_OK;
    r->begun = NULL;
    r->has_ended = false;
    if (!sigbus_guard_run(begin_on_loop, &(struct beginning){r, &waiting}))
        *code = sl_fail(r->error, SL_INTERNAL,
                        "the input of a conversion was truncated while it was read, or its disk failed");
    if (!r->begun) {
        release_inputs(r);
        return *code != SL_OK;
    }
    short_running++;
    fiber_set_wait_reason("a worker");
    enum fiber_wait end = fiber_wait_on(&waiting, SHORT_MS);
    if (end != FIBER_WOKEN || !worker_take_answer(r->begun, &r->outcome, &r->code, r->error))
        finish_begun(r, end == FIBER_CANCELLED);
    short_running--;
    release_inputs(r);
    if (r->code == SL_INTERNAL) /* as in run_in_worker: find an input that was truncated */
        *code = pool_run(POOL_CONVERT, read_all_on_pool, r, r->error);
    r->seconds = (double)(clock_mono_ns() - start) / 1e9;
    return true;
}

/* Runs the conversion, as a job of the pool, in a worker or in this thread, and measures how long it takes. */
static void run_on_pool(void *arg)
{
    struct running *r = arg;
    uint64_t begin = clock_mono_ns();
    r->code = isolation_pool() ? run_in_worker(r) : run_in_thread(r);
    r->seconds = (double)(clock_mono_ns() - begin) / 1e9;
}

/* ---- the outcome ---- */

/* Returns the code of the conversion: SL_TIMEOUT instead of SL_UNSUPPORTED if it exceeded a time limit that the caller has set
 * (time_ns). */
static enum sl_code code_for_caller(const struct running *r, const struct conversion_description *about)
{
    bool is_late = r->code == SL_UNSUPPORTED && r->outcome.end == SL_BUDGET_TIME;
    return is_late && about->time_ns ? sl_fail(r->error, SL_TIMEOUT, "the conversion exceeded its time limit")
                                     : r->code;
}

/* Logs a conversion that was stopped at its limit of time or memory. */
static void log_limit(const struct running *r, const struct conversion_description *about)
{
    bool is_failure = r->code == SL_UNSUPPORTED || r->code == SL_TIMEOUT;
    if (is_failure && (r->outcome.end == SL_BUDGET_TIME || r->outcome.end == SL_BUDGET_MEMORY))
        log_info("conversion", "stopped a conversion that exceeded its limit", LOG_SLSTR("location", about->location),
                 LOG_U64("bytes", about->size), LOG_ERR(r->error));
}

/* Adds the conversion to the metrics, labelled with the kind of the cache entry and with how it ended. That is over_time, over_memory,
 * crashed (the worker died), or else the name of `code`. */
static void count_conversion(const struct running *r, const struct conversion_description *about, enum sl_code code)
{
    const char *kind = about->kind, *result = sl_code_name(code);
    if (code == SL_UNSUPPORTED && r->outcome.end == SL_BUDGET_TIME)
        result = "over_time";
    else if (code == SL_UNSUPPORTED && r->outcome.end == SL_BUDGET_MEMORY)
        result = "over_memory";
    else if (r->outcome.is_death && (code == SL_MALFORMED || code == SL_UNSUPPORTED))
        result = "crashed";
    metric_add(METRIC_CONVERSIONS, 1, kind, result, NULL);
    metric_observe(METRIC_CONVERSION_SECONDS, r->seconds, kind, NULL, NULL);
    metric_observe(METRIC_CONVERSION_INPUT, (double)about->size, kind, NULL, NULL);
    metric_observe(METRIC_CONVERSION_PEAK, (double)r->outcome.peak, kind, NULL, NULL);
}

/* Runs the conversion within its limits, in a worker or on the pool, and logs and counts it. */
static enum sl_code run_in_limits(const struct conversion_description *about, struct running *r)
{
    /* no request waits for background work: it needs no slot */
    uint64_t heavy_size = about->is_background ? 0 : about->size;
    enum pool_job job = about->is_background ? POOL_CONVERT | POOL_BACKGROUND : POOL_CONVERT;
    if (!wait_for_heavy_slot(heavy_size))
        return sl_fail(r->error, SL_CANCELLED, "cancelled");
    r->limits = (struct worker_limits){
        .max_memory = limits.max_memory, .max_time_ns = time_for(about), .input_size = about->size};
    r->location = about->location;
    enum sl_code code;
    /* POOL_ELSEWHERE: the thread of the pool only waits for a worker */
    if (!is_short(r, about) || !run_from_loop(r, &code))
        code = pool_run(job | (isolation_pool() ? POOL_ELSEWHERE : 0), run_on_pool, r, r->error);
    release_heavy_slot(heavy_size);
    metric_add(METRIC_FILES_READ, 1, r->converter->name, isolation_pool() ? "worker" : "thread", NULL);
    if (code == SL_OK) { /* the job ran to its end: r->code is its result */
        code = r->code = code_for_caller(r, about);
        log_limit(r, about); /* logs it only if a limit stopped it */
    }
    /* a trial only inspects a file: it makes no cache entry that could be counted */
    if (about->kind && code != SL_CANCELLED && !(code == SL_OK && r->outcome.is_trial))
        count_conversion(r, about, code);
    return code;
}

/* Sums up the bytes of all inputs and tables; inputs without bytes in memory count with the size of their file. */
static uint64_t size_of_inputs(const struct converter_call *call)
{
    uint64_t size = 0;
    for (size_t i = 0; i < call->input_count; i++)
        size += call->inputs[i].bytes.data ? call->inputs[i].bytes.size : get_file_size(call->inputs[i].fd);
    for (size_t i = 0; i < call->table_count; i++)
        size += call->tables[i].bytes.size;
    return size;
}

/* Runs the converter in the calling thread: outside of fibers, as in commands and tests, there is no pool. */
static enum sl_code run_here(struct running *r)
{
    enum sl_code code = map_inputs(r, r->error);
    if (code == SL_OK)
        code = converter_run_here(r->converter, &r->call, r->result, r->error);
    release_inputs(r);
    return code;
}

enum sl_code conversion_run(const struct conversion_description *about, const struct converter *converter,
                            const struct converter_call *call, void *result, struct sl_error *error)
{
    struct sl_error own = {.code = SL_OK};
    struct running r = {.converter = converter, .call = *call, .result = result, .error = error ? error : &own};
    struct conversion_description measured = *about;
    if (converter->result_size)
        memset(result, 0, converter->result_size);
    if (call->input_count > CONVERTER_MAX_INPUTS || call->table_count > CONVERTER_MAX_TABLES ||
        call->options.size != converter->options_size)
        return sl_fail(error, SL_INTERNAL, "the converter %s was called with too many inputs or wrong options",
                       converter->name);
    if (!measured.size)
        measured.size = size_of_inputs(call);
    for (size_t i = 0; i < call->input_count; i++)
        r.opened[i] = -1; /* inputs are opened when they are first needed */
    if (!fiber_self())    /* a command or test: no loop, no workers */
        return run_here(&r);
    enum sl_code code = run_in_limits(&measured, &r);
    release_inputs(&r);
    return code;
}

int conversion_new_output(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* ---- shared by computations ---- */

const struct config *current_config(void)
{
    return configured;
}

enum sl_code open_object_in_limits(struct sl_bytes file, const struct reader_limits *limits, struct sl_budget *budget,
                                   struct sl_object **object, struct sl_error *error)
{
    struct sl_object_limits all = make_object_limits(limits, budget);
    return sl_object_open(file, &all, object, error);
}

struct reader_limits current_reader_limits(void)
{
    return (struct reader_limits){max_section_size, max_unwind_chain};
}

uint64_t current_max_source_size(void)
{
    return max_source_size;
}

uint64_t current_max_conversion_memory(void)
{
    return max_memory;
}

enum sl_code write_whole_file(int fd, struct sl_bytes bytes, struct sl_error *error)
{
    return sl_write_all_at(fd, bytes, 0)
               ? SL_OK
               : sl_fail(error, SL_INTERNAL, "cannot write a cache file: %s", strerror(errno));
}

uint64_t get_file_size(int fd)
{
    struct stat st;
    return sl_fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}
