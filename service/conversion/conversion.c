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

/* ---- shutdown ---- */
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
    /* the conversion that ended hands over its slot: `heavy` stays */
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

struct running {
    struct conversion conversion;
    const struct converter *converter;
    struct converter_call call; /* a copy: map_inputs fills in the inputs' bytes */
    struct sl_mapping mappings[CONVERTER_MAX_INPUTS];
    void *result;
    struct sl_error *error;
    enum sl_code code;
    double seconds;
};

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

static void unmap_inputs(struct running *r)
{
    for (size_t i = 0; i < r->call.input_count; i++)
        sl_unmap(&r->mappings[i]);
}

static enum sl_code convert(struct running *r)
{
    enum sl_code code = map_inputs(r, r->error);
    if (code == SL_OK)
        code = r->converter->convert(&r->conversion, &r->call, r->result, r->error);
    unmap_inputs(r);
    return code;
}

static void run_on_pool(void *arg)
{
    struct running *r = arg;
    uint64_t begin = clock_mono_ns();
    cpu_clock_enter(&r->conversion.clock);
    r->code = convert(r);
    cpu_clock_leave(&r->conversion.clock);
    r->seconds = (double)(clock_mono_ns() - begin) / 1e9;
}

static enum sl_code fail_time(const struct conversion *conversion, struct sl_error *error)
{
    struct sl_buf text = {0};
    duration_format_short(conversion->clock.limit_ns, &text);
    struct sl_str limit = text.failed ? SL_STR("the limit") : sl_buf_view(&text);
    sl_fail(error, SL_UNSUPPORTED, "the conversion of the file needs more than " SL_STR_FMT " of time",
            SL_STR_ARG(limit));
    sl_buf_free(&text);
    return SL_UNSUPPORTED;
}

/* Drops the result if a limit was exceeded, even if the converter succeeded: it depends on timing. */
static enum sl_code judge(const struct running *r, const struct conversion_about *about, struct sl_error *error)
{
    const struct sl_budget *budget = &r->conversion.budget;
    int end = atomic_load(&budget->end);
    if (end != SL_BUDGET_TIME && end != SL_BUDGET_MEMORY)
        return r->code;
    if (end == SL_BUDGET_TIME && atomic_load(&is_aborted))
        return sl_fail(error, SL_CANCELLED, "cancelled");
    enum sl_code code = end == SL_BUDGET_TIME ? fail_time(&r->conversion, error) : sl_budget_fail(budget, error);
    log_info("conversion", "stopped a conversion that exceeded its limit", LOG_SLSTR("location", about->location),
             LOG_U64("bytes", about->size), LOG_ERR(error));
    return code;
}

static void count(const struct running *r, const struct conversion_about *about, enum sl_code code)
{
    const struct sl_budget *budget = &r->conversion.budget;
    const char *kind = about->kind, *result = sl_code_name(code);
    if (code == SL_UNSUPPORTED && atomic_load(&budget->end) == SL_BUDGET_TIME)
        result = "over_time";
    else if (code == SL_UNSUPPORTED && atomic_load(&budget->end) == SL_BUDGET_MEMORY)
        result = "over_memory";
    metric_add(METRIC_CONVERSIONS, 1, kind, result, NULL);
    metric_observe(METRIC_CONVERSION_SECONDS, r->seconds, kind, NULL, NULL);
    metric_observe(METRIC_CONVERSION_INPUT, (double)about->size, kind, NULL, NULL);
    metric_observe(METRIC_CONVERSION_PEAK, (double)sl_budget_peak(budget), kind, NULL, NULL);
}

static enum sl_code run(const struct conversion_about *about, struct running *r)
{
    if (!take_place(about->size))
        return sl_fail(r->error, SL_CANCELLED, "cancelled");
    sl_budget_init(&r->conversion.budget, about->size);
    cpu_clock_init(&r->conversion.clock, time_for(about->size));
    sl_budget_limit(&r->conversion.budget, limits.max_memory, must_stop, &r->conversion.clock);
    cpu_parallel_init(&r->conversion.parallel, pool_parallel(), &r->conversion.clock);
    enum sl_code code = pool_run(POOL_CONVERT, run_on_pool, r, r->error);
    leave_place(about->size);
    if (code == SL_OK)
        code = judge(r, about, r->error);
    if (about->kind && code != SL_CANCELLED && !(code == SL_OK && r->conversion.is_trial))
        count(r, about, code);
    return code;
}

static uint64_t size_of_inputs(const struct converter_call *call)
{
    uint64_t size = 0;
    for (size_t i = 0; i < call->input_count; i++)
        size += call->inputs[i].bytes.data ? call->inputs[i].bytes.size : get_file_size(call->inputs[i].fd);
    return size;
}

enum sl_code conversion_run(const struct conversion_about *about, const struct converter *converter,
                            const struct converter_call *call, void *result, struct sl_error *error)
{
    struct running r = {.converter = converter, .call = *call, .result = result, .error = error};
    struct conversion_about measured = *about;
    if (converter->result_size)
        memset(result, 0, converter->result_size);
    if (call->input_count > CONVERTER_MAX_INPUTS || call->options.size != converter->options_size)
        return sl_fail(error, SL_INTERNAL, "the converter %s cannot be called so", converter->name);
    if (!measured.size)
        measured.size = size_of_inputs(call);
    enum sl_code code = run(&measured, &r);
    unmap_inputs(&r); /* a SIGBUS leaves the pool job before it unmaps them */
    return code;
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
    return fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}
