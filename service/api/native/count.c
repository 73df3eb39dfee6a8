/* Counts native requests and their results as metrics. Labels never contain text from files or clients, so the number of time series
 * is bounded. */
#include "api/native/native.h"
#include "core/metrics.h"

/* ---- counts ---- */

/* Traces with fewer frames than SHORT_TRACE count as short. The OUTERMOST last frames are searched for the function that begins a
 * thread. */
enum { SHORT_TRACE = 3, OUTERMOST = 5 };

/* True for the functions in which the stacks of threads begin on Linux, macOS and Windows. */
static bool begins_a_thread(struct sl_str function)
{
    static const struct sl_str whole[] = {SL_STR("main"), SL_STR("start"), SL_STR("_start")};
    static const struct sl_str part[] = {SL_STR("UserThreadStart"), SL_STR("thread_start"), SL_STR("start_thread"),
                                         SL_STR("start_wqthread")};
    bool begins = false;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        begins |= sl_str_equal(function, whole[i]);
    /* most names are sorted out quickly: they do not have the "rt" that every item of `part` has */
    if (begins || !function.size || !memmem(function.data, function.size, "rt", 2))
        return begins;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        begins |= memmem(function.data, function.size, part[i].data, part[i].size) != NULL;
    return begins;
}

/* True if none of the outermost frames begins a thread: the trace is probably not complete. */
static bool is_truncated(const struct native_result_trace *trace)
{
    for (size_t i = trace->count; i > 0 && trace->count - i < OUTERMOST; i--) {
        const struct native_result_frame *frame = &trace->frames[i - 1];
        if (begins_a_thread(frame->names ? frame->names->function : native_text(frame->sent, SENT_FUNCTION)))
            return false;
    }
    return true;
}

static bool is_scanned(enum native_trust trust)
{
    return trust == TRUST_SCAN || trust == TRUST_CFI_SCAN;
}

/* Counts the frames of a trace, and the trace itself if it is bad, short or truncated. It is bad if a frame was not symbolicated, or was
 * found by scanning the stack. */
static void count_trace(struct native_counts *counts, const struct native_result_trace *trace)
{
    bool bad = false;
    for (size_t i = 0; i < trace->count; i++) {
        enum native_status status = trace->frames[i].status;
        enum native_trust trust = trace->frames[i].sent->trust;
        bool missed = status != FRAME_SYMBOLICATED;
        counts->statuses[status]++;
        counts->scanned_frames += is_scanned(trust);
        counts->missed[trust] += missed;
        bad = bad || missed || is_scanned(trust);
    }
    counts->frames += trace->count;
    counts->bad_traces += bad;
    counts->short_traces += trace->count < SHORT_TRACE;
    counts->truncated_traces += is_truncated(trace);
}

void native_count_results(struct native_request *request)
{
    for (size_t i = 0; i < request->trace_count; i++)
        count_trace(&request->counts, &request->results[i]);
}

/* ---- metrics ---- */

/* Returns the label for the name of a version control system, which comes from a file: unknown ones are "other". */
static const char *source_server(struct sl_str name)
{
    static const char *const known[] = {
        "Perforce", "Team Foundation Server", "Visual SourceSafe", "Subversion", "git", "http", "CVS"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sl_str_equal_nocase(name, sl_str(known[i])))
            return known[i];
    return "other";
}

/* A number of consecutive modules with the same type and status, which are added to the metric at once: often these are all. */
struct module_run {
    const char *type, *status;
    size_t count;
};

/* Adds the modules counted so far to the metric, and starts to count from 0 again. */
static void end_run(struct module_run *run, const char *purpose)
{
    if (run->count)
        metric_add(METRIC_MODULES, run->count, run->type, purpose, run->status);
    run->count = 0;
}

static void count_module(struct module_run *run, const char *type, const char *purpose, const char *status)
{
    if (run->type != type || run->status != status)
        end_run(run, purpose);
    *run = (struct module_run){type, status, run->count + 1};
}

struct module_counts {
    size_t unusable, unparsable;
    const char *platform; /* of the first module that has one */
};

/* Counts modules by type and status, and the version control systems that their debug files name. Goes backwards, so that `platform`
 * ends as the type of the first module that has one. Adjacent modules with the same labels are added to the metric at once, the last
 * ones by end_run. */
static struct module_counts count_modules(const struct native_request *request)
{
    struct module_counts counts = {.platform = object_type_name(OBJECT_UNKNOWN)};
    struct module_run debug = {.count = 0}, unwind = {.count = 0};
    for (size_t i = request->module_count; i-- > 0;) {
        const struct native_module *module = &request->modules[i];
        const char *type = object_type_name(module->id->type);
        enum sl_code code = module->referenced ? module->found->lookup.code : SL_OK;
        if (module->id->type != OBJECT_UNKNOWN)
            counts.platform = type;
        counts.unusable += code != SL_OK && code != SL_MALFORMED;
        counts.unparsable += code == SL_MALFORMED;
        count_module(&debug, type, "debug", native_module_status(module));
        if (request->unwind)
            count_module(&unwind, type, "unwind", request->unwind[i]->status);
        if (module->found && module->found->lookup.features.srcsrv_vcs.size)
            metric_add(METRIC_SRCSRV, 1, source_server(module->found->lookup.features.srcsrv_vcs), NULL, NULL);
    }
    end_run(&debug, "debug");
    end_run(&unwind, "unwind");
    return counts;
}

enum { ITEMS = 14 /* number of item_names */, MAX_ROWS = 64 };

static const char *const item_names[ITEMS] = {"num_modules",
                                              "unusable_modules",
                                              "unparsable_modules",
                                              "num_stacktraces",
                                              "short_stacktraces",
                                              "truncated_stacktraces",
                                              "bad_stacktraces",
                                              "num_frames",
                                              "scanned_frames",
                                              "unsymbolicated_frames",
                                              "unsymbolicated_context_frames",
                                              "unsymbolicated_cfi_frames",
                                              "unsymbolicated_scanned_frames",
                                              "unmapped_frames"};

/* Returns the metric series of all items for these labels. They are looked up once and kept in a table; `origin` and `platform` are
 * string literals, so comparing addresses is enough. When the table is full, its last row is looked up anew for each other pair. */
static struct metric_series *const *item_series(const char *origin, const char *platform)
{
    static struct native_frame_count_key {
        const char *origin, *platform;
        struct metric_series *items[ITEMS];
    } rows[MAX_ROWS];
    struct native_frame_count_key *row = rows;
    while (row < rows + MAX_ROWS - 1 && row->origin && (row->origin != origin || row->platform != platform))
        row++;
    if (row->origin == origin && row->platform == platform)
        return row->items;
    *row = (struct native_frame_count_key){.origin = origin, .platform = platform};
    for (size_t i = 0; i < ITEMS; i++)
        row->items[i] = metric_series(METRIC_ITEMS, origin, item_names[i], platform);
    return row->items;
}

/* The elements of `items` are in the order of item_names. */
void native_count(const struct native_request *request)
{
    const struct native_counts *c = &request->counts;
    const struct module_counts modules = count_modules(request);
    struct metric_series *const *series = item_series(request->origin, modules.platform);
    const size_t items[ITEMS] = {request->module_count,
                                 modules.unusable,
                                 modules.unparsable,
                                 request->trace_count,
                                 c->short_traces,
                                 c->truncated_traces,
                                 c->bad_traces,
                                 c->frames,
                                 c->scanned_frames,
                                 c->frames - c->statuses[FRAME_SYMBOLICATED],
                                 c->missed[TRUST_CONTEXT],
                                 c->missed[TRUST_CFI],
                                 c->missed[TRUST_SCAN] + c->missed[TRUST_CFI_SCAN],
                                 c->statuses[FRAME_UNKNOWN_IMAGE]};
    for (size_t i = 0; i < ITEMS; i++)
        metric_series_observe(series[i], (double)items[i]);
    for (size_t i = 0; i < FRAME_STATUSES; i++)
        if (c->statuses[i])
            metric_add(METRIC_FRAMES, c->statuses[i], request->origin, modules.platform,
                       native_frame_status((enum native_status)i));
}
