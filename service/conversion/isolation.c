/* The worker processes in which this process runs its conversions, or the reason why it has none. */
#include "conversion/isolation.h"

#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

enum {
    MAX_FUNCTIONS = 64,
    /* Workers that are started before they are needed. An idle worker has about 0.5 MB of its own. */
    MAX_WARM = 4,
    /* After so many jobs, or with so many bytes in its heap, a worker is replaced: what a hostile file may have left in it ends with it,
     * and so does a fragmented heap. A new worker costs a millisecond. */
    MAX_JOBS = 256,
    MAX_HEAP = 16 << 20,
    MAX_READY = 32, /* answers of workers that are handled in one turn of the loop */
};
_Static_assert((int)CONVERTER_MAX_INPUTS + (int)CONVERTER_MAX_TABLES <= (int)WORKER_MAX_INPUTS,
               "a worker gets all inputs");
_Static_assert((int)CONVERTER_MAX_OPTIONS <= (int)WORKER_MAX_OPTIONS, "a worker gets all options");
_Static_assert((int)CONVERTER_MAX_RESULT <= (int)WORKER_MAX_RESULT, "a worker can give all results");

static struct {
    struct worker_function functions[MAX_FUNCTIONS]; /* the converters, as workers call them */
    size_t count;
    struct worker_launcher *launcher; /* forks the workers; NULL = none, or it was given to `pool` */
    struct worker_launcher *next;     /* launcher for the serving process that is forked next */
    struct worker_pool *pool;         /* NULL: conversions run in threads */
    const char *reason;               /* why there is no pool although processes are configured; NULL = no reason */
    char reason_text[sizeof((struct sl_error *)0)->message];
    uint32_t measures;               /* what confines the workers (worker_measures_text) */
    uint64_t max_memory, max_mapped; /* settings of the workers */
    uv_poll_t ready;                 /* waits for worker_pool_ready_fd */
    bool is_waiting;                 /* `ready` is open */
} isolation;

/* ---- in the worker ---- */

/* Runs a converter in a worker (worker_function.run). A job has one list of inputs: splits it into the tables and the other inputs of the
 * call, as the caller of conversion_run() had them. */
static enum sl_code run_converter(struct worker_job *job, void *result, struct sl_error *error)
{
    const struct converter *converter = job->function->context;
    struct converter_input tables[CONVERTER_MAX_TABLES];
    struct converter_call call = {.options = job->options, .tables = tables, .out = job->out};
    for (size_t i = 0; i < job->input_count; i++) {
        const struct worker_input *given = &job->inputs[i];
        struct converter_input input = {.bytes = given->bytes, .fd = given->fd, .role = (enum input_role)given->role};
        if (input.role == INPUT_TABLE && call.table_count < CONVERTER_MAX_TABLES)
            tables[call.table_count++] = input;
        else if (input.role != INPUT_TABLE && call.input_count < CONVERTER_MAX_INPUTS)
            call.inputs[call.input_count++] = input;
        else
            return sl_fail(error, SL_INTERNAL, "the converter %s has too many inputs", converter->name);
    }
    return converter->convert(&job->conversion, &call, result, error);
}

/* True if the result that a worker has returned is valid (worker_function.check). If the converter has no check_result, only an empty
 * result is valid. */
static bool check_result(const struct worker_function *function, const void *result)
{
    const struct converter *converter = function->context;
    return converter->check_result ? converter->check_result(result) : !converter->result_size;
}

/* Makes the function by which workers run this converter. */
static struct worker_function make_function(const struct converter *converter)
{
    return (struct worker_function){.name = converter->name,
                                    .options_size = converter->options_size,
                                    .result_size = converter->result_size,
                                    .run = run_converter,
                                    .context = converter,
                                    .check = check_result};
}

/* ---- start and end ---- */

/* Makes conversions run in threads, and stores why there are no workers. */
static void use_threads(const struct sl_error *error)
{
    snprintf(isolation.reason_text, sizeof isolation.reason_text, "%s", error->message);
    isolation.reason = isolation.reason_text;
    isolation.pool = NULL;
}

bool isolation_prepare(const struct converter *const *converters, size_t count, void (*prepare)(void),
                       struct sl_error *error)
{
    for (size_t i = 0; i < count && i < MAX_FUNCTIONS; i++)
        isolation.functions[i] = make_function(converters[i]);
    /* conversion_run() fails for converters that are left out */
    isolation.count = count < MAX_FUNCTIONS ? count : MAX_FUNCTIONS;
    isolation.launcher = worker_launcher_start(isolation.functions, isolation.count, prepare, error);
    if (!isolation.launcher)
        use_threads(error);
    return isolation.launcher;
}

/* Returns the most bytes that the inputs of one job may have. That is the greatest of these: four downloads (an object file with its
 * companions), an upload of symbfiles, and a file that a client may send. Returns 0, no limit, if one of these configured sizes is near
 * UINT64_MAX, which stands for "no limit". */
static uint64_t most_input(const struct config *config)
{
    const uint64_t sizes[] = {config->symbfile.max_set_bytes, config->crash_file_body_max_bytes,
                              config->core_body_max_bytes, config->symbolicate_body_max_bytes,
                              config->mozilla.store.max_upload_size};
    uint64_t most = config->max_download_size < UINT64_MAX / 4 ? 4 * config->max_download_size : 0;
    for (size_t i = 0; most && i < sizeof sizes / sizeof *sizes; i++)
        most = sizes[i] >= UINT64_MAX / 4 ? 0 : sizes[i] > most ? sizes[i] : most;
    return most;
}

/* Makes the settings of the worker pool. There are at most as many workers as the thread pool has threads, with those for background work,
 * as each thread waits for one worker. */
static struct worker_settings make_settings(const struct config *config)
{
    unsigned threads = pool_parallel()->workers;
    return (struct worker_settings){.max_workers = threads + pool_background_threads(threads),
                                    .warm = threads < MAX_WARM ? threads : MAX_WARM,
                                    .max_jobs = MAX_JOBS,
                                    .max_heap = MAX_HEAP,
                                    .max_memory = config->conversion.max_memory,
                                    .max_mapped = most_input(config),
                                    .max_threads = threads};
}

/* Called by the loop when workers have answered calls of isolation_begin(): wakes the fibers that wait for these answers. */
static void on_ready(uv_poll_t *poll, int status, int events)
{
    (void)poll, (void)status, (void)events;
    void *waiting[MAX_READY];
    size_t count = worker_list_ready(isolation.pool, waiting, MAX_READY); /* the loop calls again if there are more */
    for (size_t i = 0; i < count; i++)
        fiber_wake_one(waiting[i]);
}

/* Lets the loop wait for answers of workers. If it cannot, isolation_begin() refuses all calls, and threads of the pool wait for workers
 * instead. */
static void wait_for_answers(void)
{
    int fd = worker_pool_ready_fd(isolation.pool);
    isolation.is_waiting = fd >= 0 && uv_poll_init(loop_get(), &isolation.ready, fd) == 0;
    if (!isolation.is_waiting)
        return;
    uv_unref((uv_handle_t *)&isolation.ready); /* alone, it does not keep the loop running */
    uv_poll_start(&isolation.ready, UV_READABLE, on_ready);
}

struct running_job *isolation_begin(const struct worker_function *function, const struct worker_call *call,
                                    void *result, struct fiber_wait_list *waiting)
{
    return isolation.is_waiting ? worker_begin(isolation.pool, function, call, result, waiting) : NULL;
}

/* Opens the pool of workers and waits for the first one, to learn what confines it (isolation.measures). If that fails, conversions run in
 * threads, and the reason is stored. */
static void open_pool(const struct config *config)
{
    struct worker_settings settings = make_settings(config);
    struct sl_error error = {.code = SL_OK};
    isolation.pool = worker_pool_open(isolation.launcher, &settings, &error); /* takes over the launcher */
    isolation.launcher = NULL;
    isolation.max_memory = settings.max_memory;
    isolation.max_mapped = settings.max_mapped;
    for (size_t i = 0; isolation.pool && i < isolation.count; i++) /* creates all series of this metric with value 0 */
        metric_add(METRIC_FILES_READ, 0, isolation.functions[i].name, "worker", NULL);
    if (!isolation.pool) {
        use_threads(&error);
        return;
    }
    if (worker_pool_probe(isolation.pool, &isolation.measures, &error) == SL_OK) {
        wait_for_answers();
        return;
    }
    worker_pool_close(isolation.pool); /* use_threads() sets it to NULL */
    use_threads(&error);
}

void isolation_open(const struct config *config)
{
    if (config->conversion.isolation == ISOLATION_THREAD) {
        if (isolation.launcher)
            worker_launcher_end(isolation.launcher);
        isolation.launcher = NULL;
        isolation.reason = NULL;
        return;
    }
    if (isolation.launcher)
        open_pool(config);
    if (isolation.pool)
        log_info("conversion", "files are read by confined processes",
                 LOG_STR("confined_by", worker_measures_text(isolation.measures).text));
    else if (isolation.reason)
        log_warn("conversion",
                 "hostile files are not isolated: threads of this process, which holds secrets, read them",
                 LOG_STR("why", isolation.reason));
}

/* Passes changed limits to the workers; isolation.max_memory and max_mapped are the ones that they have. Without workers, only notes the
 * limits. */
void isolation_configure(const struct config *config)
{
    struct worker_settings settings = make_settings(config);
    bool is_same = settings.max_memory == isolation.max_memory && settings.max_mapped == isolation.max_mapped;
    if (isolation.pool && !is_same) /* replaces all workers, as these cannot change their own limits */
        worker_pool_configure(isolation.pool, &settings);
    isolation.max_memory = settings.max_memory;
    isolation.max_mapped = settings.max_mapped;
}

void isolation_close(void)
{
    if (isolation.is_waiting)
        uv_close((uv_handle_t *)&isolation.ready, NULL);
    isolation.is_waiting = false;
    if (isolation.pool)
        worker_pool_close(isolation.pool);
    if (isolation.launcher)
        worker_launcher_end(isolation.launcher);
    isolation.pool = NULL;
    isolation.launcher = NULL;
}

/* ---- several processes ---- */

void isolation_split_launcher(void)
{
    struct sl_error error;
    if (!isolation.launcher)
        return;
    isolation.next = worker_launcher_split(isolation.launcher, &error);
    if (!isolation.next)
        log_error("conversion",
                  "cannot start worker processes for another serving process: it will read files in threads",
                  LOG_ERR(&error));
}

pid_t isolation_launcher_pid(void)
{
    return isolation.launcher ? worker_launcher_pid(isolation.launcher) : -1;
}

/* After a fork, leaves each of the two processes with one launcher of workers: the child with the new one, the parent with the one that it
 * had. worker_launcher_forget() frees only this process's handle of the other launcher, which serves the other process. */
void isolation_take_launcher(bool is_child)
{
    if (is_child && isolation.launcher) {
        worker_launcher_forget(isolation.launcher);
        isolation.launcher = isolation.next;
        isolation.reason = isolation.next ? NULL : "the launcher of worker processes could not be started";
    } else if (isolation.next) {
        worker_launcher_forget(isolation.next);
    }
    isolation.next = NULL;
}

/* ---- state ---- */

struct worker_pool *isolation_pool(void)
{
    return isolation.pool;
}

const struct worker_function *isolation_function(const struct converter *converter)
{
    for (size_t i = 0; i < isolation.count; i++)
        if (isolation.functions[i].context == converter)
            return &isolation.functions[i];
    return NULL;
}

void isolation_get_status(struct isolation_status *status)
{
    *status = (struct isolation_status){.is_process = isolation.pool, .reason = isolation.reason};
    if (!isolation.pool)
        return;
    status->measures = worker_measures_text(isolation.measures);
    status->counts = worker_pool_counts(isolation.pool);
}

bool isolation_is_lost(void)
{
    return isolation.pool && worker_pool_counts(isolation.pool).launcher < 0;
}

void isolation_set_metrics(void)
{
    struct isolation_status status;
    isolation_get_status(&status);
    metric_set(METRIC_WORKERS, status.counts.idle, "idle", NULL, NULL);
    metric_set(METRIC_WORKERS, status.counts.live - status.counts.idle, "busy", NULL, NULL);
}

enum sl_code isolation_probe(struct worker_text *measures, struct sl_error *error)
{
    const struct worker_settings settings = {.max_workers = 1, .max_threads = 1, .max_memory = 1 << 30};
    /* 0 functions: the worker runs no converter, it only tells what confines it */
    struct worker_launcher *launcher = worker_launcher_start(isolation.functions, 0, NULL, error);
    struct worker_pool *pool = launcher ? worker_pool_open(launcher, &settings, error) : NULL;
    uint32_t bits = 0;
    if (!pool)
        return SL_BUSY; /* no worker could be started: `error` says why */
    enum sl_code code = worker_pool_probe(pool, &bits, error);
    *measures = worker_measures_text(bits);
    worker_pool_close(pool);
    return code;
}
