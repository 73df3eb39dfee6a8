/* Converts requests of Mozilla's API to native requests, and counts them. */
#include "api/mozilla/mozilla.h"
#include "core/loop.h"
#include "core/metrics.h"

/* ---- the native request ---- */

struct moz_modules { /* distinct modules of all jobs */
    struct mozilla_request *request;
    struct sl_map by_name; /* key: name and id; value: index in native.modules + 1 */
    size_t count;
};

/* Returns "<file>/<id>" with the id in upper case: ids that differ only in case are the same module. Data NULL when out of memory. */
static struct sl_str moz_get_name(struct mozilla_request *r, const struct mozilla_module *module)
{
    struct sl_str name = mozilla_module_name(r->arena, module);
    for (char *c = (char *)(uintptr_t)name.data + module->file.size; name.data && c < name.data + name.size; c++)
        if (*c >= 'a' && *c <= 'f')
            *c = (char)(*c - 'a' + 'A');
    return name;
}

/* Sets module->native to its index in native.modules, where modules with the same name and id are one. False when out of memory. */
static bool add_module(struct moz_modules *m, struct mozilla_module *module, const struct sl_debug_id *debug_id)
{
    static const struct native_upload no_upload; /* requests of this API have no ids of uploaded files */
    struct native_request *native = &m->request->native;
    struct sl_str name = moz_get_name(m->request, module);
    bool made;
    void **slot = name.data ? sl_map_find_or_add(&m->by_name, name, &made) : NULL;
    if (!slot)
        return false;
    if (made) {
        struct object_id *id = SL_ARENA_NEW(m->request->arena, struct object_id);
        if (!id)
            return false;
        *id = (struct object_id){.debug_id = *debug_id, .has_debug_id = true, .debug_file = module->file};
        /* the type is not sent, so it is guessed */
        id->type = sl_str_ends(module->file, SL_STR(".pdb")) ? OBJECT_PE : OBJECT_ELF;
        native->modules[m->count] = (struct native_module){.id = id, .upload = &no_upload};
        *slot = (void *)(uintptr_t)++m->count; /* the index plus 1, as NULL means a new key */
    }
    module->native = (uint32_t)((uintptr_t)*slot - 1);
    return true;
}

/* Adds the modules of all jobs to the native request, except those without a file name or a valid debug id, which cannot be looked
 * up. False when out of memory. */
static bool add_modules(struct moz_modules *m)
{
    struct mozilla_request *r = m->request;
    struct sl_debug_id id;
    for (size_t j = 0; j < r->job_count; j++)
        for (size_t i = 0; i < r->jobs[j].module_count; i++) {
            struct mozilla_module *module = &r->jobs[j].modules[i];
            if (module->file.size && module->id.size && sl_debug_id_parse(module->id, &id) &&
                !add_module(m, module, &id))
                return false;
        }
    return true;
}

/* Returns the index of the frame's module in native.modules; NATIVE_NO_MODULE if it cannot be looked up. */
static uint32_t moz_find_module(const struct mozilla_job *job, const struct mozilla_frame *frame)
{
    return frame->module == MOZILLA_UNKNOWN ? NATIVE_NO_MODULE : job->modules[frame->module].native;
}

/* If the frame can be looked up, adds a native trace with this frame alone, as this API looks up each frame without regard to the others
 * of its stack. frame->trace is the index of the trace, UINT32_MAX if there is none. A literal keeps literal_size, which is in the same
 * memory (union). */
static void add_frame(struct mozilla_request *r, const struct mozilla_job *job, struct mozilla_frame *frame,
                      struct native_frame *frames)
{
    struct native_request *native = &r->native;
    uint32_t module = moz_find_module(job, frame);
    if (frame->kind != MOZILLA_LITERAL)
        frame->trace = UINT32_MAX;
    if (module == NATIVE_NO_MODULE)
        return;
    /* a module with a frame that is not looked up itself counts as asked for: the answer says if it was found */
    native->modules[module].referenced = true;
    if (frame->kind != MOZILLA_AT)
        return;
    frame->trace = (uint32_t)native->trace_count;
    struct native_frame *sent = &frames[native->trace_count];
    *sent = (struct native_frame){.address = frame->offset, .module = module, .is_exact = true};
    native->traces[native->trace_count++] = (struct native_trace){.frames = sent, .frame_count = 1};
}

/* Returns the number of frames for which add_frame will add a trace. */
static size_t count_wanted(const struct mozilla_request *r)
{
    size_t wanted = 0;
    for (size_t j = 0; j < r->job_count; j++)
        for (size_t i = 0; i < r->jobs[j].frame_count; i++) {
            const struct mozilla_frame *frame = &r->jobs[j].frames[i];
            wanted += frame->kind == MOZILLA_AT && moz_find_module(&r->jobs[j], frame) != NATIVE_NO_MODULE;
        }
    return wanted;
}

/* Converts the modules and frames of all jobs to native ones. False when out of memory. */
static bool moz_fill(struct mozilla_request *r)
{
    struct moz_modules modules = {.request = r};
    struct native_request *native = &r->native;
    size_t most = 0;
    for (size_t j = 0; j < r->job_count; j++)
        most += r->jobs[j].module_count;
    native->modules = SL_ARENA_ARRAY(r->arena, struct native_module, most + 1);
    bool good = native->modules && add_modules(&modules);
    sl_map_free(&modules.by_name);
    native->module_count = modules.count;
    size_t wanted = good ? count_wanted(r) : 0;
    struct native_frame *frames = SL_ARENA_ARRAY(r->arena, struct native_frame, wanted + 1);
    native->traces = SL_ARENA_ARRAY(r->arena, struct native_trace, wanted + 1);
    good = good && frames && native->traces;
    for (size_t j = 0; good && j < r->job_count; j++)
        for (size_t i = 0; i < r->jobs[j].frame_count; i++)
            add_frame(r, &r->jobs[j], &r->jobs[j].frames[i], frames);
    native->frame_count = native->trace_count;
    return good;
}

void mozilla_open(struct job *job, void *arg)
{
    struct mozilla_request *r = arg;
    native_open(job, &r->native);
    r->native.scope = SL_STR("global");
    r->arena = &job->arena;
    r->config = job->config;
    r->begun_ns = clock_mono_ns();
}

/* Sets the options of the native request: asks Mozilla's stores first, then the configured fallback sources and the symbol store of this
 * server; lists inlined functions also if they have no lines; adds no source lines. With `nearest`, an address outside of all functions
 * gets the function before it. */
bool mozilla_prepare(struct mozilla_request *r)
{
    struct native_request *native = &r->native;
    native_configure(native, r->config);
    native->includes_symbol_store = true;
    native->options.apply_source_context = SL_BOOL_FALSE;
    native->inlines_without_lines = true;
    native->stores = r->config; /* which lists Mozilla's stores */
    native->reports_work = r->wants_debug;
    native->sources = r->config->mozilla.fallbacks;
    native->source_count = r->config->mozilla.fallbacks_count;
    native->sources_number = r->config->mozilla.fallbacks_number; /* searches are cached under it */
    native->nearest = r->config->mozilla.lookup == MOZILLA_NEAREST;
    return moz_fill(r) && native_prepare(native);
}

/* ---- the job ---- */

/* True if the code means that a symbol store did not answer. */
static bool is_transport(enum sl_code code)
{
    return code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT;
}

/* True if a module was not found while a symbol store, which may have its symbols, did not answer, and the configuration makes such
 * requests fail. */
static bool is_unreachable(const struct mozilla_request *r)
{
    if (r->config->mozilla.transport_errors != MOZILLA_UNAVAILABLE)
        return false;
    for (size_t i = 0; i < r->native.module_count; i++) {
        const struct native_module *module = &r->native.modules[i];
        if (!module->referenced || module->found->lookup.code == SL_OK)
            continue;
        if (is_transport(module->found->lookup.code) || is_transport(module->found->stores))
            return true;
    }
    return false;
}

enum sl_code mozilla_write_answer(struct job *job, void *arg, struct sl_error *error)
{
    const struct mozilla_request *r = arg;
    if (is_unreachable(r))
        return sl_fail(error, SL_UNSUPPORTED, "symbol storage is temporarily unavailable");
    mozilla_write(r, &job->answer);
    /* this step has read the tables, maybe on the pool: checks if their pages are in memory now, so that the loop may read them */
    native_check_residency(&r->native);
    return SL_OK;
}

/* Counts an answered request under this service's own metrics and under those of Mozilla's service (Eliot), whose dashboards can be
 * kept. Counts modules whose debug id is not valid under the latter only. */
void mozilla_finish(struct job *job, void *arg, enum sl_code code, const struct sl_error *error)
{
    const struct mozilla_request *r = arg;
    if (code != SL_OK)
        return;
    const char *version = r->version == 4 ? "v4" : "v5";
    metric_observe_since(METRIC_MOZILLA_SECONDS, r->begun_ns, version);
    metric_observe_since(METRIC_ELIOT_API, r->begun_ns, version);
    metric_observe(METRIC_MOZILLA_ITEMS, (double)r->job_count, "jobs", NULL, NULL);
    metric_observe(METRIC_ELIOT_JOBS, (double)r->job_count, version, NULL, NULL);
    metric_observe(METRIC_MOZILLA_ITEMS, (double)r->frame_count, "frames", NULL, NULL);
    metric_observe(METRIC_ELIOT_FRAMES, (double)r->frame_count, NULL, NULL, NULL);
    for (size_t i = 0; i < r->job_count; i++) {
        metric_observe(METRIC_MOZILLA_ITEMS, (double)r->jobs[i].stack_count, "stacks", NULL, NULL);
        metric_observe(METRIC_ELIOT_STACKS, (double)r->jobs[i].stack_count, version, NULL, NULL);
    }
    for (size_t i = 0; i < r->job_count; i++)
        for (size_t m = 0; m < r->jobs[i].module_count; m++) {
            const struct mozilla_module *module = &r->jobs[i].modules[m];
            if (module->referenced && module->native == NATIVE_NO_MODULE && module->file.size && module->id.size)
                metric_add(METRIC_ELIOT_PARSE_ERROR, 1, "bad_debug_id", NULL, NULL);
        }
}
