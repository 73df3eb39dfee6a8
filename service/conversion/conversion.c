#include "conversion/conversion.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

static const uint64_t heavy_input = UINT64_C(1) << 30, bytes_a_second = 4 << 20, second_ns = 1000000000;

static struct { /* loop thread */
    uint64_t max_memory, max_time_ns;
    unsigned max_heavy, heavy; /* limit and number of running heavy conversions */
    struct fiber_wait_list waiting;
    unsigned queued; /* number of fibers in `waiting` */
} limits = {.max_time_ns = UINT64_MAX, .max_heavy = 1};

static const struct config *configured;
static _Atomic uint64_t max_section_size, max_source_size, max_unwind_chain, max_memory; /* copies for the pool */

void conversions_configure(const struct config *config)
{
    configured = config;
    max_section_size = config->object_max_section_size;
    max_source_size = config->object_max_source_size;
    max_unwind_chain = config->max_unwind_chain;
    max_memory = config->conversion.max_memory;
    limits.max_memory = config->conversion.max_memory;
    limits.max_time_ns = config->conversion.max_time_ns;
    limits.max_heavy = config->conversion.max_heavy;
}

/* ---- the end of the process ---- */
static atomic_bool is_aborted;

void conversions_abort_all(void)
{
    atomic_store(&is_aborted, true);
}

static bool must_stop(void *clock)
{
    return atomic_load_explicit(&is_aborted, memory_order_relaxed) || cpu_clock_expired(clock);
}

/* ---- slots of heavy conversions ---- */
static bool take_place(uint64_t size)
{
    if (size <= heavy_input)
        return true;
    if (limits.heavy < limits.max_heavy) {
        limits.heavy++;
        return true;
    }
    metric_set(METRIC_WAITING, ++limits.queued, "heavy", NULL, NULL);
    fiber_set_wait_reason("a slot for a large conversion");
    /* takes over the slot of the one that ended */
    bool woken = fiber_wait_on(&limits.waiting, UINT64_MAX) == FIBER_WOKEN;
    metric_set(METRIC_WAITING, --limits.queued, "heavy", NULL, NULL);
    return woken;
}

static void leave_place(uint64_t size)
{
    if (size <= heavy_input)
        return;
    if (limits.waiting.first && limits.heavy <= limits.max_heavy)
        fiber_wake_one(&limits.waiting);
    else
        limits.heavy--;
}

/* ---- one conversion ---- */
static uint64_t time_for(uint64_t size)
{
    uint64_t more = size / bytes_a_second * second_ns;
    return limits.max_time_ns > UINT64_MAX - more ? UINT64_MAX : limits.max_time_ns + more;
}

struct conversion_call {
    struct conversion conversion;
    conversion_job *job;
    void *arg;
    struct sl_error *error;
    enum sl_code code;
    double seconds;
};

static void run_call(void *arg)
{
    struct conversion_call *call = arg;
    uint64_t begin = clock_mono_ns();
    cpu_clock_enter(&call->conversion.clock);
    call->code = call->job(&call->conversion, call->arg, call->error);
    cpu_clock_leave(&call->conversion.clock);
    call->seconds = (double)(clock_mono_ns() - begin) / 1e9;
}

static enum sl_code fail_time(const struct conversion *conversion, struct sl_error *error)
{
    struct sl_buf text = {0};
    duration_format_short(conversion->clock.limit_ns, &text);
    struct sl_str limit = text.failed ? SL_STR("the limit") : sl_buf_view(&text);
    sl_fail(error, SL_UNSUPPORTED, "needs more than " SL_STR_FMT " of time", SL_STR_ARG(limit));
    sl_buf_free(&text);
    return SL_UNSUPPORTED;
}

/* A result made although a limit was passed depends on timing and is dropped. */
static enum sl_code judge(const struct conversion_call *call, const struct conversion_input *input,
                          struct sl_error *error)
{
    const struct sl_budget *budget = &call->conversion.budget;
    int end = atomic_load(&budget->end);
    if (end != SL_BUDGET_TIME && end != SL_BUDGET_MEMORY)
        return call->code;
    if (end == SL_BUDGET_TIME && atomic_load(&is_aborted))
        return sl_fail(error, SL_CANCELLED, "cancelled");
    enum sl_code code = end == SL_BUDGET_TIME ? fail_time(&call->conversion, error) : sl_budget_fail(budget, error);
    log_info("conversion", "a conversion exceeded its limit", LOG_SLSTR("location", input->location),
             LOG_U64("bytes", input->size), LOG_ERR(error));
    return code;
}

static void count(const struct conversion_call *call, const struct conversion_input *input, enum sl_code code)
{
    const struct sl_budget *budget = &call->conversion.budget;
    const char *kind = input->kind, *result = sl_code_name(code);
    if (code == SL_UNSUPPORTED && atomic_load(&budget->end) == SL_BUDGET_TIME)
        result = "over_time";
    else if (code == SL_UNSUPPORTED && atomic_load(&budget->end) == SL_BUDGET_MEMORY)
        result = "over_memory";
    metric_add(METRIC_CONVERSIONS, 1, kind, result, NULL);
    metric_observe(METRIC_CONVERSION_SECONDS, call->seconds, kind, NULL, NULL);
    metric_observe(METRIC_CONVERSION_INPUT, (double)input->size, kind, NULL, NULL);
    metric_observe(METRIC_CONVERSION_PEAK, (double)sl_budget_peak(budget), kind, NULL, NULL);
}

enum sl_code conversion_run(const struct conversion_input *input, conversion_job *job, void *arg,
                            struct sl_error *error)
{
    struct conversion_call call = {.job = job, .arg = arg, .error = error};
    if (!take_place(input->size))
        return sl_fail(error, SL_CANCELLED, "cancelled");
    sl_budget_init(&call.conversion.budget, input->size);
    cpu_clock_init(&call.conversion.clock, time_for(input->size));
    sl_budget_limit(&call.conversion.budget, limits.max_memory, must_stop, &call.conversion.clock);
    cpu_parallel_init(&call.conversion.parallel, pool_parallel(), &call.conversion.clock);
    enum sl_code code = pool_run(POOL_CONVERT, run_call, &call, error);
    leave_place(input->size);
    if (code == SL_OK)
        code = judge(&call, input, error);
    if (input->kind && code != SL_CANCELLED && !(code == SL_OK && call.conversion.is_trial))
        count(&call, input, code);
    return code;
}

struct conversion_checking {
    int fd;
    conversion_checker *check;
    void *arg;
};

static enum sl_code check_file(struct conversion *conversion, void *arg, struct sl_error *error)
{
    const struct conversion_checking *c = arg;
    struct sl_mapping mapping;
    enum sl_code code = sl_map_fd(c->fd, &mapping, error);
    if (code != SL_OK)
        return code == SL_BUSY ? code : SL_INTERNAL;
    code = c->check(conversion, mapping.bytes, c->arg, error);
    sl_unmap(&mapping);
    return code;
}

enum sl_code conversion_check(int fd, struct sl_str location, const char *kind, conversion_checker *check, void *arg,
                              struct sl_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return sl_fail_errno(error, errno, "cannot read a downloaded file");
    struct conversion_checking c = {fd, check, arg};
    struct conversion_input input = {(uint64_t)st.st_size, location, kind};
    return conversion_run(&input, check_file, &c, error);
}

enum sl_code conversion_open(struct conversion *conversion, struct sl_bytes file, struct sl_object **object,
                             struct sl_error *error)
{
    return open_object_in_limits(file, &conversion->budget, object, error);
}

enum sl_code conversion_write(struct conversion *conversion, int fd, const struct sl_buf *out, struct sl_error *error)
{
    if (out->failed || !sl_budget_charge(&conversion->budget, out->capacity))
        return sl_budget_fail(&conversion->budget, error);
    enum sl_code code = write_whole_file(fd, sl_buf_bytes(out), error);
    sl_budget_uncharge(&conversion->budget, out->capacity);
    return code;
}

/* ---- shared by computations ---- */

const struct config *current_config(void)
{
    return configured;
}

enum sl_code open_object_in_limits(struct sl_bytes file, struct sl_budget *budget, struct sl_object **object,
                                   struct sl_error *error)
{
    struct sl_object_limits limits = current_object_limits();
    limits.budget = budget;
    return sl_object_open(file, &limits, object, error);
}

struct sl_object_limits current_object_limits(void)
{
    return (struct sl_object_limits){.max_section_size = max_section_size, .max_unwind_chain = max_unwind_chain};
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
    return fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}
