/* POST /page/named: a profile or a report of samples, in the form of crash files, becomes a job whose answer has the file with
 * names, byte for byte as `symloom symbolicate` writes it:
 *
 *     {"status": "completed", "named": "..."}
 *
 * Those whose file becomes larger than an answer may be are refused: half of a file is of no use. */
#include "api/crash/crash.h"

#include "api/named_file.h"
#include "apple/samples.h"
#include "base/budget.h"
#include "function/path.h"

enum { LARGE_FILE = 1 << 20, MEMORY_TIMES = 4 };

struct named_work {
    struct job *job;
    struct native_request *request;
    struct sl_bytes bytes;
    struct named_file file;
    enum sl_code code; /* of the step that ran last */
    struct sl_error error;
};

static void named_no_memory(struct named_work *work)
{
    work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
}

/* ---- the file as a request ---- */

static bool named_fill_module(struct named_work *work, size_t index)
{
    static const struct native_upload no_upload;
    struct named_module module;
    struct object_id *id = SL_ARENA_NEW(work->request->arena, struct object_id);
    if (!id)
        return false;
    work->file.format->module(&work->file, index, &module);
    *id = (struct object_id){
        .type = object_type_parse(sl_str(module.type)),
        .code_file = module.code_file,
        .debug_file = module.debug_file,
    };
    id->has_debug_id = sl_debug_id_parse(module.debug_id, &id->debug_id);
    if (module.code_id.size)
        id->code_id = sl_code_id_normalise(work->request->arena, module.code_id);
    work->request->modules[index] = (struct native_module){.id = id, .upload = &no_upload};
    return true;
}

/* A frame for each address, all of one trace. */
static bool named_fill(struct named_work *work)
{
    struct native_request *request = work->request;
    struct native_frame *frames = SL_ARENA_ARRAY(request->arena, struct native_frame, work->file.address_count + 1);
    request->modules = SL_ARENA_ARRAY(request->arena, struct native_module, work->file.module_count + 1);
    request->traces = SL_ARENA_NEW(request->arena, struct native_trace);
    if (!frames || !request->modules || !request->traces)
        return false;
    for (size_t i = 0; i < work->file.module_count; i++)
        if (!named_fill_module(work, i))
            return false;
    for (size_t i = 0; i < work->file.address_count; i++) {
        frames[i].is_exact = true;
        work->file.format->address(&work->file, i, &frames[i].module, &frames[i].address);
    }
    request->module_count = work->file.module_count;
    request->trace_count = 1;
    request->frame_count = work->file.address_count;
    request->traces->frames = frames;
    request->traces->frame_count = (uint32_t)request->frame_count;
    return native_prepare(request);
}

static void named_check(struct named_work *work)
{
    const struct config *config = work->job->config;
    if (work->file.address_count > config->max_request_frames)
        work->code = sl_fail(&work->error, SL_UNSUPPORTED, "%zu addresses, more than %llu (max_request_frames)",
                             work->file.address_count, (unsigned long long)config->max_request_frames);
    else if (work->file.module_count > config->max_request_modules)
        work->code = sl_fail(&work->error, SL_UNSUPPORTED, "%zu modules, more than %llu (max_request_modules)",
                             work->file.module_count, (unsigned long long)config->max_request_modules);
}

static void named_read(void *arg)
{
    struct named_work *work = arg;
    struct sl_arena *arena = work->request->arena;
    struct sl_str text = {(const char *)work->bytes.data, work->bytes.size};
    work->code = sl_samples_is(text) ? named_samples_read(work->bytes, arena, &work->file, &work->error)
                                     : named_profile_read(text, arena, &work->file, &work->error);
    if (work->code == SL_OK)
        named_check(work);
    if (work->code == SL_OK && !named_fill(work))
        named_no_memory(work);
}

/* ---- names ---- */

struct naming_scratch { /* what one address takes; used again for the next */
    struct sl_arena arena;
    struct sl_buf path;
};

/* False when out of memory; `*known` is false of a frame without a name. */
static bool named_call_of(const struct named_work *work, const struct native_result_frame *frame,
                          struct named_call *call, struct naming_scratch *scratch, bool *known)
{
    const struct native_names *names = frame->names;
    struct sl_str path, directory;
    *known = names && (names->function.size || names->symbol.size);
    if (!*known)
        return true;
    *call = (struct named_call){.function = names->function.size ? names->function : names->symbol};
    native_frame_place(work->request, frame, &scratch->path, &path, &call->line);
    if (!path.size)
        return true;
    call->path = (struct sl_str){sl_arena_strndup(&scratch->arena, path.data, path.size), path.size};
    if (!call->path.data)
        return false;
    sl_path_split(call->path, &directory, &call->filename);
    return true;
}

/* The frames are those at one address. */
static bool named_take(struct named_work *work, const struct native_result_frame *frames, size_t count,
                       struct naming_scratch *scratch)
{
    const struct native_result_frame *outermost = &frames[count - 1];
    struct named_call *items = SL_ARENA_ARRAY(&scratch->arena, struct named_call, count);
    bool known = items != NULL;
    for (size_t i = 0; i < count && known; i++)
        if (!named_call_of(work, &frames[i], &items[i], scratch, &known))
            return false;
    const struct named_calls calls = {items, count, outermost->symbol_address, outermost->outermost};
    return items && (!known || work->file.format->take(&work->file, outermost->index, &calls));
}

static bool named_take_all(struct named_work *work)
{
    const struct native_result_trace *trace = work->request->results;
    struct naming_scratch scratch = {.path = {NULL}};
    bool good = true;
    for (size_t i = 0, end = 0; good && i < trace->count; i = end) {
        while (end < trace->count && trace->frames[end].index == trace->frames[i].index)
            end++;
        good = named_take(work, &trace->frames[i], end - i, &scratch);
        sl_arena_reset(&scratch.arena);
    }
    good = good && !scratch.path.failed;
    sl_buf_free(&scratch.path);
    sl_arena_free(&scratch.arena);
    return good;
}

/* ---- the answer ---- */

static void named_too_large(struct named_work *work, const char *what)
{
    work->code = sl_fail(&work->error, SL_UNSUPPORTED, "%s would be larger than %llu bytes (max_response_bytes)", what,
                         (unsigned long long)work->job->config->max_response_bytes);
}

static void named_put_answer(struct named_work *work, struct sl_str named)
{
    struct sl_json_writer w = sl_json_writer(&work->job->answer);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", SL_STR("completed"));
    sl_json_member_str(&w, "named", named);
    sl_json_end_object(&w);
    if (w.out->failed)
        named_no_memory(work);
    else if (w.out->size > work->job->config->max_response_bytes)
        named_too_large(work, "the answer");
}

/* What names make of a file is no larger than an answer, and the tables of its writer a few times that. */
static void named_write(void *arg)
{
    struct named_work *work = arg;
    uint64_t most = work->job->config->max_response_bytes;
    struct sl_budget budget;
    sl_budget_init(&budget, work->bytes.size);
    if (most < UINT64_MAX / MEMORY_TIMES)
        sl_budget_limit(&budget, MEMORY_TIMES * most + LARGE_FILE, NULL, NULL);
    struct sl_buf named = {.budget = &budget};
    if (named_take_all(work))
        work->code = work->file.format->write(&work->file, &named, &work->error);
    else
        named_no_memory(work);
    if (work->code == SL_OK && named.size <= most)
        named_put_answer(work, sl_buf_view(&named));
    else if (work->code == SL_OK || sl_budget_exhausted(&budget))
        named_too_large(work, "the file with names");
    sl_buf_free(&named);
}

/* Whether there are addresses that were not looked up, as the frames were too many. */
static bool named_is_cut(const struct named_work *work)
{
    const struct native_result_trace *trace = work->request->results;
    uint32_t last = trace->count ? trace->frames[trace->count - 1].index + 1 : 0;
    return work->request->result_count >= work->job->config->max_response_frames && last < work->file.address_count;
}

/* The job may use so much more from now on; waits until there is as much. */
static enum sl_code named_ask(struct named_work *work, struct sl_error *error)
{
    struct job *job = work->job;
    enum sl_code code = memory_ask(&job->memory, job->arena.used + MEMORY_TIMES * work->bytes.size, error);
    return code && code != SL_CANCELLED ? sl_fail(error, SL_BUSY, "not enough memory for a file with names") : code;
}

static enum sl_code named_steps(void *arg, struct sl_error *error)
{
    struct named_work *work = arg;
    struct job *job = work->job;
    struct native_means means = {job->config, job->service->names, &job->memory, NULL};
    enum sl_code code = native_run(work->request, &means, error);
    if (code != SL_OK)
        return code;
    if (work->request->limit->omitted)
        named_too_large(work, "the names");
    else if (named_is_cut(work))
        work->code =
            sl_fail(&work->error, SL_UNSUPPORTED, "more than %llu frames with the inlined (max_response_frames)",
                    (unsigned long long)work->job->config->max_response_frames);
    else
        code = named_ask(work, error);
    if (code == SL_OK && work->code == SL_OK)
        code = native_on_pool(work->request, work->request->result_count, named_write, work, error);
    memory_set(&job->memory, job->arena.used + job->answer.capacity);
    return code;
}

static void named_reset(void *arg)
{
    struct named_work *work = arg;
    native_reset(work->request);
    work->file.format->forget(&work->file);
    sl_buf_clear(&work->job->answer);
}

static enum sl_code named_run(struct named_work *work, struct sl_error *error)
{
    unsigned heavy = work->bytes.size > LARGE_FILE ? POOL_HEAVY : 0;
    if (work->bytes.size > work->job->config->max_response_bytes) {
        named_too_large(work, "the file with names");
        return SL_OK;
    }
    enum sl_code code = named_ask(work, error);
    if (code == SL_OK)
        code = pool_run(POOL_SYMBOLICATE | heavy, named_read, work, error);
    if (code != SL_OK || work->code != SL_OK)
        return code;
    code = cache_run_reader(&(struct cache_reader){named_steps, named_reset}, work, error);
    if (code == SL_OK && work->code == SL_OK)
        native_count(work->request);
    native_release(work->request);
    return code;
}

static enum sl_code named_symbolicate(struct job *job, struct crash_work *crash, struct sl_bytes file,
                                      struct sl_error *error)
{
    struct named_work *work = SL_ARENA_NEW(&job->arena, struct named_work);
    if (!work)
        return sl_fail(error, SL_BUSY, "out of memory");
    work->job = job;
    work->request = crash->request;
    work->bytes = file;
    work->request->options.apply_source_context = SL_BOOL_FALSE;
    enum sl_code code = named_run(work, error);
    named_file_end(&work->file);
    if (code != SL_OK || work->code == SL_OK)
        return code;
    *error = work->error;
    sl_buf_clear(&job->answer);
    if (work->code == SL_MALFORMED || work->code == SL_UNSUPPORTED)
        crash_write_failure(&job->answer, "the file cannot be written with names", error->message);
    return work->code;
}

static const struct crash_kind crash_named = {
    .name = "named",
    .part = "file",
    .missing = "missing file",
    .symbolicate = named_symbolicate,
};

static void named_handle(struct http_exchange *x)
{
    crash_handle(x, &crash_named);
}

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/page/named",
     .handler = named_handle,
     .takes_work = true,
     .check = crash_check,
     .body_limit = crash_body_limit,
     .rights = API_RIGHT("symbolicate"),
     .task = "named_file"},
    {.method = NULL},
};

static bool named_enabled(const void *service)
{
    return ((const struct service *)service)->config->page_enabled;
}

/* Of the group of the APIs whose work it does: the page is only who asks. */
const struct http_family family_named = {.routes = routes, .enabled = named_enabled, .group = "symbolicate"};
