/* Counts the results of requests as metrics. Labels never contain text that clients sent, so the number of time series is bounded. */
#include "api/jvm/jvm.h"
#include "core/metrics.h"

static const char *const platforms[] = {"java", "android", "kotlin", "none", "other"};
enum { PLATFORMS = sizeof platforms / sizeof *platforms, NONE = 3, OTHER = 4 }; /* NONE and OTHER are indexes */

/* Returns the index in `platforms` of the name; NONE if it was not sent, OTHER if it is not listed. */
static unsigned classify_platform(struct sl_str platform)
{
    if (!platform.data)
        return NONE;
    for (unsigned i = 0; i < NONE; i++)
        if (sl_str_equal(platform, sl_str(platforms[i])))
            return i;
    return OTHER;
}

static bool same_exception(struct jvm_exception a, struct jvm_exception b)
{
    return sl_str_equal(a.type, b.type) && sl_str_equal(a.module, b.module);
}

/* Counts the results of a request. `exceptions`: those that no mapping has changed. `classes`: those without an original name. `frames`
 * and `unmapped`: all frames, and those that no mapping knows, by platform; `all` and `missing` are the sums of these two. */
void jvm_count(const struct jvm_request *r, const char *task)
{
    uint64_t frames[PLATFORMS] = {0}, unmapped[PLATFORMS] = {0}, exceptions = 0, classes = 0, all = 0, missing = 0;
    for (size_t i = 0; i < r->exception_count; i++)
        exceptions += same_exception(r->exceptions[i], r->mapped[i]);
    for (size_t i = 0; i < r->class_count; i++)
        classes += !r->classes[i].original.data;
    for (size_t t = 0; t < r->trace_count; t++)
        for (size_t i = 0; i < r->results[t].count; i++) {
            const struct jvm_frame *frame = &r->results[t].frames[i];
            unsigned platform = classify_platform(frame->platform);
            frames[platform]++;
            unmapped[platform] += !frame->mapped;
        }
    for (unsigned i = 0; i < PLATFORMS; i++) {
        all += frames[i];
        missing += unmapped[i];
        if (frames[i] > unmapped[i])
            metric_add(METRIC_FRAMES, frames[i] - unmapped[i], task, platforms[i], "symbolicated");
        if (unmapped[i])
            metric_add(METRIC_FRAMES, unmapped[i], task, platforms[i], "missing");
    }
    const struct {
        const char *item;
        uint64_t count;
    } items[] = {{"num_exceptions", r->exception_count}, {"unsymbolicated_exceptions", exceptions},
                 {"num_classes", r->class_count},        {"unsymbolicated_classes", classes},
                 {"num_stacktraces", r->trace_count},    {"num_frames", all},
                 {"unsymbolicated_frames", missing}};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        metric_observe(METRIC_ITEMS, (double)items[i].count, task, items[i].item,
                       platforms[classify_platform(r->platform)]);
}
