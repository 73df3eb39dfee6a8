/* The limits of a conversion: time and memory. */
#include "core/duration.h"
#include "worker/worker.h"

void conversion_begin(struct conversion *conversion, const struct worker_limits *limits, const struct sl_parallel *base,
                      bool (*must_stop)(void *clock))
{
    /* sl_budget_init() limits the steps of work by the size of the input; sl_budget_limit() adds the limits of memory and time */
    sl_budget_init(&conversion->budget, limits->input_size);
    cpu_clock_init(&conversion->clock, limits->max_time_ns);
    sl_budget_limit(&conversion->budget, limits->max_memory, must_stop, &conversion->clock);
    cpu_parallel_init(&conversion->parallel, base, &conversion->clock);
    conversion->is_trial = false;
    conversion->written_ns = 0;
}

enum sl_code conversion_judge(const struct conversion *conversion, enum sl_code code, struct sl_error *error)
{
    switch (atomic_load(&conversion->budget.end)) {
    case SL_BUDGET_TIME: return conversion_fail_time(conversion->clock.limit_ns, error);
    case SL_BUDGET_MEMORY: return sl_budget_fail(&conversion->budget, error);
    default: return code;
    }
}

enum sl_code conversion_fail_time(uint64_t limit_ns, struct sl_error *error)
{
    struct sl_buf text = {0};
    duration_format_short(limit_ns, &text);
    struct sl_str limit = text.failed ? SL_STR("the limit") : sl_buf_view(&text);
    sl_fail(error, SL_UNSUPPORTED, "the conversion of the file needs more than " SL_STR_FMT " of time",
            SL_STR_ARG(limit));
    sl_buf_free(&text);
    return SL_UNSUPPORTED;
}
