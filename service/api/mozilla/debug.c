/* Writes the member "debug" for clients that send the header `Debug`. It always has the same members; times are in seconds. */
#include "api/mozilla/mozilla.h"
#include "core/loop.h"

struct moz_module_stats {             /* one module of the native request */
    struct sl_str name;               /* "<file>/<id>" as first sent; data NULL: no frame is in it */
    const struct mozilla_stats *work; /* what its look-up at Mozilla's stores did */
    uint64_t stacks;                  /* number of stacks with a frame in it */
    const struct mozilla_stack *last; /* the last stack that was counted */
};

struct moz_debug { /* state of mozilla_write_debug */
    const struct mozilla_request *request;
    struct sl_json_writer *json;
    struct moz_module_stats *tallies; /* one for each of native.modules */
    size_t count;                     /* of tallies with a name */
    uint64_t frames, real_frames;     /* all; those with a module and a whole number as offset */
};

/* Counts the frames of a stack, and for each module the stacks with a frame in it. real_frames are those that are in a module and have
 * an integer as offset. A module gets its name at its first frame. */
static void count_frames(struct moz_debug *d, const struct mozilla_job *job, const struct mozilla_stack *stack)
{
    d->frames += stack->count;
    for (size_t i = 0; i < stack->count; i++) {
        const struct mozilla_frame *frame = &job->frames[stack->first + i];
        if (frame->module == MOZILLA_UNKNOWN)
            continue;
        d->real_frames += frame->kind != MOZILLA_LITERAL;
        const struct mozilla_module *module = &job->modules[frame->module];
        if (module->native == NATIVE_NO_MODULE)
            continue;
        struct moz_module_stats *tally = &d->tallies[module->native];
        tally->stacks += tally->last != stack; /* a stack counts once, however many of its frames are in the module */
        tally->last = stack;
        if (tally->name.data)
            continue;
        tally->name = mozilla_module_name(d->request->arena, module);
        tally->work = &d->request->native.modules[module->native].found->work;
        d->count++; /* modules with a frame */
    }
}

/* ---- members ---- */

static void debug_object(struct moz_debug *d, const char *key)
{
    sl_json_member_object(d->json, key);
}

static void debug_count(struct moz_debug *d, const char *key, uint64_t count)
{
    sl_json_member_u64(d->json, key, count);
}

static void debug_time(struct moz_debug *d, const char *key, double seconds)
{
    sl_json_member_double(d->json, key, seconds);
}

typedef bool debug_wanted(const struct mozilla_stats *work);
typedef double debug_value(const struct mozilla_stats *work);

/* Writes {module: value} for the modules for which `wanted` returns true. */
static void debug_map(struct moz_debug *d, const char *key, debug_wanted *wanted, debug_value *value)
{
    debug_object(d, key);
    for (size_t i = 0; i < d->request->native.module_count; i++) {
        const struct moz_module_stats *tally = &d->tallies[i];
        if (!tally->name.data || !wanted(tally->work))
            continue;
        sl_json_put_key_str(d->json, tally->name);
        sl_json_put_double(d->json, value(tally->work));
    }
    sl_json_end_object(d->json);
}

/* Returns the sum of the values of the modules for which `wanted` returns true. */
static double debug_sum(const struct moz_debug *d, debug_wanted *wanted, debug_value *value)
{
    double sum = 0;
    for (size_t i = 0; i < d->request->native.module_count; i++)
        if (d->tallies[i].name.data && wanted(d->tallies[i].work))
            sum += value(d->tallies[i].work);
    return sum;
}

static bool was_downloaded(const struct mozilla_stats *work)
{
    return work->downloads > 0;
}

static bool had_failures(const struct mozilla_stats *work)
{
    return work->failed > 0;
}

static bool was_hit(const struct mozilla_stats *work)
{
    return work->is_hit;
}

static bool was_cached(const struct mozilla_stats *work)
{
    return !work->computed;
}

static bool was_parsed(const struct mozilla_stats *work)
{
    return work->parsed && !work->is_bad;
}

static bool was_bad(const struct mozilla_stats *work)
{
    return work->is_bad;
}

/* Returns 1, so that debug_sum counts modules. */
static double one(const struct mozilla_stats *work)
{
    (void)work;
    return 1;
}

/* Defines a function that returns one number of a module's statistics. */
#define DEBUG_VALUE(name, field)                                                                                       \
    static double name(const struct mozilla_stats *work)                                                               \
    {                                                                                                                  \
        return (double)work->field;                                                                                    \
    }
DEBUG_VALUE(downloads_of, downloads)
DEBUG_VALUE(failures_of, failed)
DEBUG_VALUE(size_of, size)
DEBUG_VALUE(lookup_of, lookup_s)
DEBUG_VALUE(download_of, download_s)
DEBUG_VALUE(failure_of, failed_s)
DEBUG_VALUE(parse_of, parse_s)
DEBUG_VALUE(save_of, save_s)

/* ---- members of "debug" ---- */

/* Writes the members `stacks` and `modules`. Modules without frames are not listed. */
static void debug_stacks_and_modules(struct moz_debug *d)
{
    debug_object(d, "stacks");
    debug_count(d, "count", d->frames);
    debug_count(d, "real", d->real_frames);
    sl_json_end_object(d->json);
    debug_object(d, "modules");
    debug_count(d, "count", d->count);
    debug_object(d, "stacks_per_module");
    for (size_t i = 0; i < d->request->native.module_count; i++)
        if (d->tallies[i].name.data) {
            sl_json_put_key_str(d->json, d->tallies[i].name);
            sl_json_put_u64(d->json, d->tallies[i].stacks);
        }
    sl_json_end_object(d->json);
    sl_json_end_object(d->json);
}

/* Writes the members `cache_lookups` and `downloads`. Each number is a sum over the modules for which debug_sum's first function
 * returns true. */
static void debug_lookups_and_downloads(struct moz_debug *d)
{
    debug_object(d, "cache_lookups");
    debug_count(d, "count", d->count);
    debug_count(d, "hits", (uint64_t)debug_sum(d, was_hit, one));
    debug_count(d, "size", (uint64_t)debug_sum(d, was_hit, size_of));
    debug_time(d, "time", debug_sum(d, was_cached, lookup_of));
    sl_json_end_object(d->json);
    debug_object(d, "downloads");
    debug_count(d, "count", (uint64_t)debug_sum(d, was_downloaded, downloads_of));
    debug_count(d, "failed", (uint64_t)debug_sum(d, had_failures, failures_of));
    debug_count(d, "size", (uint64_t)debug_sum(d, was_downloaded, size_of));
    debug_time(d, "time", debug_sum(d, was_downloaded, download_of));
    debug_map(d, "size_per_module", was_downloaded, size_of);
    debug_map(d, "time_per_module", was_downloaded, download_of);
    debug_map(d, "fail_time_per_module", had_failures, failure_of);
    sl_json_end_object(d->json);
}

/* Writes the members `parse_sym` and `save_symcache`: the times for converting downloaded symbol files and storing the result. */
static void debug_conversions(struct moz_debug *d)
{
    debug_object(d, "parse_sym");
    debug_time(d, "time", debug_sum(d, was_parsed, parse_of));
    debug_map(d, "time_per_module", was_parsed, parse_of);
    debug_map(d, "fail_time_per_module", was_bad, parse_of);
    sl_json_end_object(d->json);
    debug_object(d, "save_symcache");
    debug_time(d, "time", debug_sum(d, was_parsed, save_of));
    debug_map(d, "time_per_module", was_parsed, save_of);
    sl_json_end_object(d->json);
}

void mozilla_write_debug(const struct mozilla_request *r, struct sl_json_writer *w)
{
    struct moz_debug d = {.request = r, .json = w};
    d.tallies = sl_arena_zalloc(r->arena, r->native.module_count + 1, sizeof *d.tallies);
    if (!d.tallies) {
        w->out->failed = true;
        return;
    }
    for (size_t j = 0; j < r->job_count; j++)
        for (size_t s = 0; s < r->jobs[j].stack_count; s++)
            count_frames(&d, &r->jobs[j], &r->jobs[j].stacks[s]);
    debug_object(&d, "debug");
    debug_time(&d, "time", (double)(clock_mono_ns() - r->begun_ns) / 1e9);
    debug_stacks_and_modules(&d);
    debug_lookups_and_downloads(&d);
    debug_conversions(&d);
    sl_json_end_object(w);
}
