/* POST /page/named: starts a job for a profile or a sample report, sent like a crash file. The answer has the file with names,
 * byte for byte as `symloom symbolicate` writes it:
 *
 *     {"status": "completed", "named": "..."}
 *
 * A file that would exceed the size limit of answers is refused: half of it would be useless. */
#include "api/crash/crash.h"

#include "api/named_file.h"
#include "apple/samples.h"
#include "base/budget.h"
#include "function/path.h"

enum { LARGE_FILE = 1 << 20, MEMORY_TIMES = 4 };

struct named_work {
    struct crash_work crash;
    struct named_file file;
};

static struct sl_bytes named_bytes(const struct named_work *work)
{
    return work->crash.form.parts[PART_FILE];
}

/* ---- conversion to a native request ---- */

/* Makes the native module number `index`. False when out of memory. */
static bool named_fill_module(struct named_work *work, size_t index)
{
    static const struct native_upload no_upload;
    struct named_module module;
    struct object_id *id = SL_ARENA_NEW(work->crash.native.arena, struct object_id);
    if (!id)
        return false;
    work->file.format->module(&work->file, index, &module);
    *id = (struct object_id){
        .type = object_type_parse(sl_str(module.type)),
        .code_file = module.code_file,
        .debug_file = module.debug_file,
    };
    id->has_debug_id = sl_debug_id_parse(module.debug_id, &id->debug_id);
    if (module.code_id.size) {
        id->code_id = sl_code_id_normalise(work->crash.native.arena, module.code_id);
        if (!id->code_id.data)
            return false;
    }
    work->crash.native.modules[index] = (struct native_module){.id = id, .upload = &no_upload};
    return true;
}

/* Makes one trace with a frame for each address. */
static bool named_fill(struct named_work *work)
{
    struct native_request *request = &work->crash.native;
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

/* Refuses files with too many addresses or modules, instead of symbolicating a part. */
static enum sl_code named_check(const struct named_work *work, const struct config *config, struct sl_error *error)
{
    if (work->file.address_count > config->max_request_frames)
        return sl_fail(error, SL_UNSUPPORTED, "%zu addresses, more than %llu (max_request_frames)",
                       work->file.address_count, (unsigned long long)config->max_request_frames);
    if (work->file.module_count > config->max_request_modules)
        return sl_fail(error, SL_UNSUPPORTED, "%zu modules, more than %llu (max_request_modules)",
                       work->file.module_count, (unsigned long long)config->max_request_modules);
    return SL_OK;
}

/* Reads a sample report or a profile and makes a native request of its addresses. SL_BUSY when out of memory; else the
 * error of the reader or of a limit. */
static enum sl_code named_read_file(struct job *job, void *arg, struct sl_error *error)
{
    struct named_work *work = arg;
    struct sl_bytes bytes = named_bytes(work);
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    enum sl_code code = sl_samples_is_text(text) ? named_samples_read(bytes, &job->arena, &work->file, error)
                                                 : named_profile_read(text, &job->arena, &work->file, error);
    if (code == SL_OK)
        code = named_check(work, job->config, error);
    return code != SL_OK || named_fill(work) ? code : sl_fail(error, SL_BUSY, "out of memory");
}

/* ---- names ---- */

struct naming_scratch { /* scratch memory for one address, reused for the next */
    struct sl_arena arena;
    struct sl_buf path;
};

/* Makes the call of a frame; `*known` is false if it has no name. False when out of memory. */
static bool named_make_call(const struct named_work *work, const struct native_result_frame *frame,
                            struct named_call *call, struct naming_scratch *scratch, bool *known)
{
    const struct native_names *names = frame->names;
    struct sl_str path, directory;
    *known = names && (names->function.size || names->symbol.size);
    if (!*known)
        return true;
    *call = (struct named_call){.function = names->function.size ? names->function : names->symbol};
    native_frame_location(&work->crash.native, frame, &scratch->path, &path, &call->line);
    if (!path.size)
        return true;
    call->path = (struct sl_str){sl_arena_strndup(&scratch->arena, path.data, path.size), path.size};
    if (!call->path.data)
        return false;
    sl_path_split(call->path, &directory, &call->filename);
    return true;
}

/* Stores the calls of one address. If one of them has no name, nothing is stored: the address stays without names. */
static bool named_take(struct named_work *work, const struct native_result_frame *frames, size_t count,
                       struct naming_scratch *scratch)
{
    const struct native_result_frame *outermost = &frames[count - 1];
    struct named_call *items = SL_ARENA_ARRAY(&scratch->arena, struct named_call, count);
    bool known = items != NULL;
    for (size_t i = 0; i < count && known; i++)
        if (!named_make_call(work, &frames[i], &items[i], scratch, &known))
            return false;
    const struct named_calls calls = {items, count, outermost->symbol_address, outermost->outermost};
    return items && (!known || work->file.format->take(&work->file, outermost->index, &calls));
}

/* Hands the calls of each address to the file's format. Consecutive frames with one index are the inlined calls at one
 * address. */
static bool named_take_all(struct named_work *work)
{
    const struct native_result_trace *trace = work->crash.native.results;
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

static enum sl_code named_too_large(const struct config *config, const char *what, struct sl_error *error)
{
    return sl_fail(error, SL_UNSUPPORTED, "%s would be larger than %llu bytes (max_response_bytes)", what,
                   (unsigned long long)config->max_response_bytes);
}

/* Writes the answer; fails if it is larger than the configured size. */
static enum sl_code named_put_answer(struct job *job, struct sl_str named, struct sl_error *error)
{
    struct sl_json_writer w = sl_json_writer(&job->answer);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", SL_STR("completed"));
    sl_json_member_str(&w, "named", named);
    sl_json_end_object(&w);
    if (w.out->failed || w.out->size <= job->config->max_response_bytes)
        return SL_OK;
    sl_buf_clear(&job->answer);
    return named_too_large(job->config, "the answer", error);
}

/* Writes the file within a memory limit: its output may be as large as an answer, the writer's tables a few times that. A
 * writer that fails at this limit would have written too large a file. */
static enum sl_code named_write_file(struct job *job, struct named_work *work, struct sl_error *error)
{
    uint64_t most = job->config->max_response_bytes;
    struct sl_budget budget;
    sl_budget_init(&budget, named_bytes(work).size);
    if (most < UINT64_MAX / MEMORY_TIMES)
        sl_budget_limit(&budget, MEMORY_TIMES * most + LARGE_FILE, NULL, NULL);
    struct sl_buf named = {.budget = &budget};
    enum sl_code code = named_take_all(work) ? work->file.format->write(&work->file, &named, error)
                                             : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && named.size <= most)
        code = named_put_answer(job, sl_buf_view(&named), error);
    else if (code == SL_OK || sl_budget_exhausted(&budget))
        code = named_too_large(job->config, "the symbolicated file", error);
    sl_buf_free(&named);
    return code;
}

/* True if addresses were not looked up because there were too many frames. */
static bool named_is_cut(const struct named_work *work, const struct config *config)
{
    const struct native_result_trace *trace = work->crash.native.results;
    uint32_t last = trace->count ? trace->frames[trace->count - 1].index + 1 : 0;
    return work->crash.native.result_count >= config->max_response_frames && last < work->file.address_count;
}

/* Writes the answer. A file of which only a part has names is refused. */
static enum sl_code named_write(struct job *job, void *arg, struct sl_error *error)
{
    struct named_work *work = arg;
    if (job->limit.omitted)
        return named_too_large(job->config, "the names", error);
    if (named_is_cut(work, job->config))
        return sl_fail(error, SL_UNSUPPORTED, "more than %llu frames with inlined functions (max_response_frames)",
                       (unsigned long long)job->config->max_response_frames);
    enum sl_code code = named_write_file(job, work, error);
    native_check_residency(&work->crash.native);
    return code;
}

/* ---- steps ---- */

static uint64_t named_memory(const void *work)
{
    return MEMORY_TIMES * named_bytes(work).size;
}

/* Reads the file. Its output is at least as large as itself, so a file beyond the limit of answers is refused at once. */
static enum sl_code named_read(struct job *job, void *arg, struct sl_error *error)
{
    struct named_work *work = arg;
    unsigned heavy = named_bytes(work).size > LARGE_FILE ? POOL_HEAVY : 0;
    work->crash.native.options.apply_source_context = SL_BOOL_FALSE;
    if (named_bytes(work).size > job->config->max_response_bytes)
        return named_too_large(job->config, "the symbolicated file", error);
    enum sl_code code = job_reserve(job, named_memory(work), error);
    return code == SL_OK ? job_work(job, POOL_SYMBOLICATE | heavy, named_read_file, error) : code;
}

/* Like the executor of native answers, but never the loop: writing the file may take long even if the names are in memory. */
static unsigned named_executor(void *work)
{
    unsigned executor = native_results_executor(work);
    return executor == JOB_ON_LOOP ? POOL_SYMBOLICATE : executor;
}

static void named_forget_file(void *arg)
{
    struct named_work *work = arg;
    named_file_end(&work->file);
    work->file = (struct named_file){.format = NULL};
}

/* Forgets the names of a run that is repeated; keeps what was read from the file. */
static void named_reset(void *arg)
{
    struct named_work *work = arg;
    native_reset(&work->crash.native);
    work->file.format->forget(&work->file);
}

static void named_release(void *arg)
{
    named_forget_file(arg);
    crash_release(arg);
}

static const struct crash_kind crash_named = {
    .job =
        {
            .task = "named_file",
            .size = sizeof(struct named_work),
            .open = crash_work_open,
            .receive = crash_receive,
            .is_allowed = native_is_allowed,
            .prepare = crash_prepare,
            .undo = named_forget_file,
            .run = native_run,
            .reset = named_reset,
            .write = named_write,
            .executor = named_executor,
            .memory = named_memory,
            .finish = crash_finish,
            .release = named_release,
        },
    .name = "named",
    .part = "file",
    .missing = "missing file",
    .read = named_read,
    .malformed = "cannot symbolicate this file",
    .unsupported = "cannot symbolicate this file",
};

static const struct http_route routes[] = {CRASH_POST("/page/named", &crash_named), {.method = NULL}};

static bool named_enabled(const void *service)
{
    return ((const struct service *)service)->config->page_enabled;
}

/* In the group `symbolicate`, as it does that API's work; the page is only its client. */
const struct http_family family_named = {.routes = routes, .enabled = named_enabled, .group = "symbolicate"};
